"""The columns of prediction and truth files: their index, their targets and the types of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from evaluand.core.errors import SpecError
from evaluand.predictions.problem.definitions import STANDARD_METRICS, Reads, Rule, rule_of
from evaluand.predictions.problem.problem import Criterion, Problem, SubType, Target, TaskType

INDEX_COLUMN: Final = "d3mIndex"
"""The column that is the index of a file wherever it occurs; without it, the first column that is no target is."""

IMAGE_COLUMN: Final = "image"
BY_CLASS: Final = frozenset({"scores", "confidence"})
"""What metrics read of predictions that have a row for each class."""


@dataclass(frozen=True, kw_only=True)
class FileLayout:
    """The columns of prediction and truth files.

    Attributes:
        index: the columns of the index.
        key: the index column by which predictions and truth are matched.
        second_key: the one by which they are matched where a file lacks the first; None where each file needs it.
        ignored: columns of the index that not every file has, so none is matched by them.
        targets: target → the type of its cells, one of `evaluand.core.files.cells.TYPES`.
        index_types: index column → the type of its cells.
        repeats: whether several rows may have one key: several labels, answers of a ranking, scores of classes.
        by_class: whether predictions with a confidence have one row for each class.
        gathers: whether a key may have any number of rows, also none: an image with its boxes.
        sets: whether an example has any number of labels; with none, its one row is empty.
        numeric: the number and the name of the first metric that needs numbers.
    """

    index: tuple[str, ...]
    key: str
    targets: Mapping[str, str]
    index_types: Mapping[str, str]
    second_key: str | None = None
    ignored: tuple[str, ...] = ()
    repeats: bool = False
    by_class: bool = False
    gathers: bool = False
    sets: bool = False
    numeric: tuple[int, str] | None = None

    @property
    def columns(self) -> dict[str, str]:
        """All required columns with their types."""
        return {**self.index_types, **self.targets}

    def for_file(self, header: Sequence[str]) -> FileLayout:
        """The layout by which a file with these columns is matched."""
        if self.second_key is None or self.key in header:
            return self
        types = {name: kind for name, kind in self.index_types.items() if name != self.key}
        return replace(
            self, index=tuple(types), index_types=types, key=self.second_key, second_key=None, ignored=(self.key,)
        )


def layout_of(problem: Problem, index: tuple[str, ...], types: Mapping[str, str], *, several_rows: bool) -> FileLayout:
    """The layout of a problem's files.

    Args:
        index: the columns of the index, first the one that names rows; where boxes are judged, the last names images.
        types: of columns, as far as they are declared.
        several_rows: whether several rows of the truth may have one value of the first column of the index. Where it
            names images too, a file need not have their names.
    """
    reads = reads_of(*problem.criteria)
    boxes = "boxes" in reads
    targets = predicted_targets(problem)
    numeric = ((i, each.metric) for i, each in enumerate(problem.criteria) if reads_of(each) == {"numbers"})
    return FileLayout(
        index=index,
        key=index[-1] if boxes else index[0],
        second_key=index[0] if boxes and len(index) > 1 and several_rows else None,
        targets={each.name: _target_type(problem, types.get(each.name), len(targets)) for each in targets},
        index_types={name: "integer" if types.get(name) == "integer" else "text" for name in index},
        repeats=several_rows or SubType.MULTI_LABEL in problem.sub_types or "ranking" in reads,
        by_class=bool(reads & BY_CLASS),
        gathers=boxes,
        sets=SubType.MULTI_LABEL in problem.sub_types,
        numeric=next(numeric, None),
    )


def guess_layout(problem: Problem, header: Sequence[str]) -> FileLayout | None:
    """The layout of a truth file by its header, with an index of text; None where no column can be the index."""
    targets = {target.name for target in predicted_targets(problem)}
    others = [name for name in header if name not in targets]
    if not others:
        return None
    index = [INDEX_COLUMN if INDEX_COLUMN in others else others[0]]
    remaining = [name for name in others if name not in index]
    if "boxes" in reads_of(*problem.criteria) and remaining:
        index.append(IMAGE_COLUMN if IMAGE_COLUMN in remaining else remaining[0])
    return layout_of(problem, tuple(index), {}, several_rows=False)


def predicted_targets(problem: Problem) -> tuple[Target, ...]:
    """The targets that prediction files have columns for."""
    with_targets = [dataset for dataset in problem.datasets if dataset.targets]
    if len(with_targets) > 1:
        names = ", ".join(dataset.id for dataset in with_targets)
        raise SpecError(
            f"problem {problem.id} has targets in {len(with_targets)} datasets ({names}), and a file of predictions "
            "does not say whose rows it has; state one problem for each dataset"
        )
    if not with_targets:
        raise SpecError(f"problem {problem.id} has no target, so nothing can be predicted; name one in its dataset")
    return with_targets[0].targets


def reads_of(*criteria: Criterion) -> set[Reads]:
    """What metrics read of each example."""
    rules = (rule_of(criterion.metric, None) for criterion in criteria)
    return {rule.reads for rule in rules if isinstance(rule, Rule)}


def _target_type(problem: Problem, declared: str | None, n_targets: int) -> str:
    reads = reads_of(*problem.criteria)
    if "boxes" in reads and n_targets == 1:  # of several one is the label of the boxes
        return "vector"
    numeric = NUMERIC.intersection(problem.task_types)
    standard = any(criterion.metric in STANDARD_METRICS for criterion in problem.criteria)
    if "numbers" in reads or (declared is None and numeric and not standard):
        return "real"
    return "text" if declared in (None, "time") else declared


NUMERIC: Final = frozenset({TaskType.REGRESSION, TaskType.FORECASTING})
