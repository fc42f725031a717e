"""What files of predictions and of truth are made of: their index and targets, and the types of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from evaluand.core.errors import SpecError
from evaluand.interop.d3m.dataset import Resource
from evaluand.interop.d3m.names import COLUMN_TYPES
from evaluand.problem import Reads, Rule, rule_of
from evaluand.problem.problem import STANDARD_METRICS, Problem, SubType, Target, TaskType


@dataclass(frozen=True, kw_only=True)
class Form:
    """What files of predictions and truth are made of.

    Attributes:
        index: the columns of the index.
        key: the one of them by which predictions and truth belong together.
        targets: target → the type of its cells, one of `evaluand.core.files.cells.TYPES`.
        index_types: the types of the index's columns, likewise.
        repeats: whether several rows may have one key: several labels, answers of a ranking, scores of classes.
        by_class: whether that is so of predictions that have a confidence: one row for each class.
        gathers: whether the key names what has any number of rows, also none: an image with its boxes.
        sets: whether an example has any number of labels, also none: then its one row is empty.
        labels: whether target values are names, so that one that never occurs in the truth is worth a note.
    """

    index: tuple[str, ...]
    key: str
    targets: Mapping[str, str]
    index_types: Mapping[str, str]
    repeats: bool = False
    by_class: bool = False
    gathers: bool = False
    sets: bool = False
    labels: bool = False

    @property
    def columns(self) -> dict[str, str]:
        """All columns that must be there, with their types."""
        return {**self.index_types, **self.targets}


def form_of(problem: Problem, resource: Resource) -> Form:
    """What files are made of, by the document of the dataset.

    Raises:
        SpecError: no dataset has targets, or several have.
    """
    declared = {column.name: COLUMN_TYPES[column.type] for column in resource.columns}
    index = tuple(column.name for column in resource.index)
    gathers = "boxes" in reads_of(problem)
    key = resource.gathers.name if gathers and resource.gathers else index[0]
    return _made(problem, index, key, declared, several="multiIndex" in resource.index[0].roles)


def guessed_form(problem: Problem, header: Sequence[str]) -> Form | None:
    """What files are made of, by the header of one with the truth, all of whose index is text; None without an index.

    Raises:
        SpecError: no dataset has targets, or several have.
    """
    targets = {target.name for target in predicted(problem)}
    others = [name for name in header if name not in targets]
    if not others:
        return None
    index = [_INDEX if _INDEX in others else others[0]]
    beside = [name for name in others if name not in index]
    if "boxes" in reads_of(problem) and beside:
        index.append("image" if "image" in beside else beside[0])
    return _made(problem, tuple(index), index[-1], {}, several=False)


def predicted(problem: Problem) -> tuple[Target, ...]:
    """The targets of which files hold predictions.

    Raises:
        SpecError: no dataset has targets, or several have, since nothing then says whose rows those of a file are.
    """
    having = [dataset for dataset in problem.datasets if dataset.targets]
    if len(having) > 1:
        named = ", ".join(dataset.id for dataset in having)
        raise SpecError(
            f"problem {problem.id} has targets in {len(having)} datasets ({named}), and D3M's schema does not say "
            "whose rows those of a file of predictions are; state a problem for each dataset"
        )
    if not having:
        raise SpecError(f"problem {problem.id} has no target, so that nothing can be predicted; name one in its data")
    return having[0].targets


def _made(problem: Problem, index: tuple[str, ...], key: str, declared: Mapping[str, str], *, several: bool) -> Form:
    reads = reads_of(problem)
    targets = {target.name: _type(problem, declared.get(target.name)) for target in predicted(problem)}
    boxes = "boxes" in reads
    return Form(
        index=index,
        key=key,
        targets=targets,
        index_types={name: {"integer": "integer"}.get(declared.get(name, "text"), "text") for name in index},
        repeats=several or SubType.MULTI_LABEL in problem.sub_types or "ranking" in reads,
        by_class=bool(reads & BY_CLASS),
        gathers=boxes,
        sets=SubType.MULTI_LABEL in problem.sub_types,
        labels=bool(_CLASSES.intersection(problem.task_types)) and not boxes,
    )


def _type(problem: Problem, declared: str | None) -> str:
    """What the cells of a target are."""
    reads = reads_of(problem)
    if "boxes" in reads:
        return "vector"
    numbers = {TaskType.REGRESSION, TaskType.FORECASTING}.intersection(problem.task_types)
    if "numbers" in reads or (declared is None and numbers and not _metrics(problem).intersection(STANDARD_METRICS)):
        return "real"
    return "text" if declared in (None, "time") else declared


def reads_of(problem: Problem) -> set[Reads]:
    """What the problem's metrics are computed from."""
    rules = (rule_of(name, None) for name in _metrics(problem))
    return {rule.reads for rule in rules if isinstance(rule, Rule)}


def _metrics(problem: Problem) -> set[str]:
    return {criterion.metric for criterion in problem.criteria}


_INDEX: Final = "d3mIndex"
BY_CLASS: Final = frozenset({"scores", "sure"})
"""What is read of predictions that have a row for each class."""

_CLASSES: Final = frozenset({TaskType.CLASSIFICATION, TaskType.VERTEX_CLASSIFICATION, TaskType.VERTEX_NOMINATION})
