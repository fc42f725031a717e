"""A problem stated by two files and the names of metrics, where there is no document."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evaluand.core.errors import DataError, Fault, SpecError
from evaluand.core.files.json import Findings
from evaluand.interop.d3m.columns import guessed_form, reads_of
from evaluand.interop.d3m.names import name_of
from evaluand.interop.d3m.predictions import CONFIDENCE, RANK, header_in, read_truth
from evaluand.problem import Rule, rule_of
from evaluand.problem.problem import Criterion, Problem, SubType, Target, TargetDataset, TaskType


def criterion_of(metric: str, definition: str | None, *, positive: str | None, k: int | None) -> Criterion:
    """A metric by its name, with what it takes of the parameters.

    Raises:
        DataError: there is no such metric.
    """
    name = name_of(metric)
    rule = rule_of(name, definition)
    if not isinstance(rule, Rule):
        return Criterion(metric=name)
    return Criterion(
        metric=name,
        positive=positive if rule.positive != "none" else None,
        k=k if rule.k is not None else None,
    )


def stated_problem(predictions: Path, truth: Path, criteria: Sequence[Criterion]) -> Problem:
    """The problem of predicting what both files have: their first column, or `d3mIndex`, names the rows.

    Raises:
        DataError: a file cannot be read, or they have no column in common to be judged.
        SpecError: there is no metric.
    """
    if not criteria:
        raise SpecError("no metric is named", python="give criteria", command="give --metric, such as accuracy")
    given, right = header_in(predictions), header_in(truth)
    index = "d3mIndex" if "d3mIndex" in right else right[0]
    shared = [name for name in right if name in given and name != index and name.lower() not in (CONFIDENCE, RANK)]
    problem = Problem(
        id=truth.stem,
        task_types=(TaskType.CLASSIFICATION,),
        datasets=(TargetDataset(id=truth.stem, targets=tuple(map(_target, range(len(shared)), shared))),),
        criteria=tuple(criteria),
    )
    reads = reads_of(problem)
    if "boxes" in reads:
        shared = [name for name in shared if name != "image"] if "image" in shared else shared[1:]
    if not shared:
        told = f"has no column in common with {truth} but the index {index!r}; there are {', '.join(given)}"
        raise DataError(Fault(str(predictions), told, code="missing_column"))
    several = "sets" in reads and _has_several(truth, problem, right)
    return Problem(
        id=truth.stem,
        task_types=(TaskType.REGRESSION if "numbers" in reads else TaskType.CLASSIFICATION,),
        sub_types=(SubType.MULTI_LABEL,) if several and "numbers" not in reads else (),
        datasets=(TargetDataset(id=truth.stem, targets=tuple(map(_target, range(len(shared)), shared))),),
        criteria=tuple(criteria),
    )


def _target(place: int, name: str) -> Target:
    return Target(index=place, resource="learningData", column=place + 1, name=name)


def _has_several(truth: Path, problem: Problem, header: Sequence[str]) -> bool:
    """Whether an example has several rows."""
    form = guessed_form(problem, header)
    cells = read_truth(truth, form, Findings()) if form else None
    return bool(cells and form and len(cells.keys(form).unique()) < cells.table.num_rows)
