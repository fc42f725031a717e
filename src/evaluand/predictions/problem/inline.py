"""A problem stated by two files and the names of metrics, without a document."""

from collections.abc import Sequence
from pathlib import Path

from evaluand.core.errors import DataError, Fault, SpecError
from evaluand.core.files.json import Findings
from evaluand.predictions.problem.definitions import Rule, rule_of
from evaluand.predictions.problem.files import read_cells, read_header
from evaluand.predictions.problem.formats import default_format
from evaluand.predictions.problem.layout import IMAGE_COLUMN, INDEX_COLUMN, guess_layout, reads_of
from evaluand.predictions.problem.problem import Criterion, Problem, SubType, Target, TargetDataset, TaskType
from evaluand.predictions.problem.sides import CONFIDENCE, RANK


def criterion_named(metric: str, definition: str | None, *, positive: str | None, k: int | None) -> Criterion:
    """A metric by its name, ours or that of documents, with those of the parameters that it takes.

    Raises:
        DataError: there is no such metric.
    """
    name = default_format().metric_name(metric)
    rule = rule_of(name, definition)
    if not isinstance(rule, Rule):
        return Criterion(metric=name)
    positive = positive if rule.positive != "none" else None
    return Criterion(metric=name, positive=positive, k=k if rule.k is not None else None)


def inline_problem(predictions: Path, truth: Path, criteria: Sequence[Criterion]) -> Problem:
    """The problem of predicting the columns that both files have; `d3mIndex` or the first column names the rows.

    Raises:
        DataError: a file cannot be read, or no column to judge is in both.
        SpecError: there is no criterion.
    """
    if not criteria:
        raise SpecError("no metric is named", python="give criteria", command="give --metric, such as accuracy")
    predicted, true = read_header(predictions), read_header(truth)
    index = INDEX_COLUMN if INDEX_COLUMN in true else true[0]
    shared = [name for name in true if name in predicted and name != index and name.lower() not in (CONFIDENCE, RANK)]
    problem = _problem(truth, shared, criteria, TaskType.CLASSIFICATION)
    reads = reads_of(*problem.criteria)
    if "boxes" in reads:
        image = IMAGE_COLUMN in true or (index == INDEX_COLUMN and _has_repeated_keys(truth, problem, true))
        shared = [name for name in shared if name != IMAGE_COLUMN] if image else shared[1:]
    if not shared:
        message = (
            f"has no column in common with {truth} except the index {index!r}; its columns: {', '.join(predicted)}"
        )
        raise DataError(Fault(str(predictions), message, code="missing_column"))
    if "numbers" in reads:
        return _problem(truth, shared, criteria, TaskType.REGRESSION)
    several = "sets" in reads and _has_repeated_keys(truth, problem, true)
    return _problem(truth, shared, criteria, TaskType.CLASSIFICATION, *[SubType.MULTI_LABEL] * several)


def _problem(
    truth: Path, targets: Sequence[str], criteria: Sequence[Criterion], task_type: TaskType, *sub_types: SubType
) -> Problem:
    columns = tuple(
        Target(index=place, resource="learningData", column=place + 1, name=name) for place, name in enumerate(targets)
    )
    datasets = (TargetDataset(id=truth.stem, targets=columns),)
    return Problem(
        id=truth.stem, task_types=(task_type,), sub_types=sub_types, datasets=datasets, criteria=tuple(criteria)
    )


def _has_repeated_keys(truth: Path, problem: Problem, header: Sequence[str]) -> bool:
    layout = guess_layout(problem, header)
    cells = read_cells(truth, layout, Findings()) if layout else None
    return bool(cells and layout and len(cells.column(layout.key).unique()) < cells.table.num_rows)
