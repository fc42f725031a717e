"""Problems: what is to be predicted, from which examples, by which split, and how it will be judged.

A problem is plain data and knows no file format. It says which columns of which datasets are targets, how rows are
divided into those to learn from and those to be tested on, and by which metrics predictions are judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Literal

from evaluand.core.errors import DataError, Fault, SpecError
from evaluand.core.files.paths import is_inside, outside_message
from evaluand.data.split import Split
from evaluand.predictions.problem.definitions import STANDARD_METRICS, TAKES_K, TAKES_POSITIVE


class TaskType(StrEnum):
    """What kind of thing is predicted."""

    CLASSIFICATION = "classification"
    REGRESSION = "regression"
    CLUSTERING = "clustering"
    LINK_PREDICTION = "link_prediction"
    VERTEX_NOMINATION = "vertex_nomination"
    VERTEX_CLASSIFICATION = "vertex_classification"
    COMMUNITY_DETECTION = "community_detection"
    GRAPH_CLUSTERING = "graph_clustering"
    GRAPH_MATCHING = "graph_matching"
    FORECASTING = "forecasting"
    COLLABORATIVE_FILTERING = "collaborative_filtering"
    OBJECT_DETECTION = "object_detection"

    @property
    def sub_types(self) -> tuple[SubType, ...]:
        """The sub-types that a task of this type may have.

        Example:
            >>> [str(sub_type) for sub_type in TaskType.REGRESSION.sub_types]
            ['univariate', 'multivariate']
        """
        return tuple(sub_type for sub_type in SubType if self in sub_type.task_types)


class SubType(StrEnum):
    """How many classes, responses or memberships a task has."""

    BINARY = "binary"
    MULTI_CLASS = "multi_class"
    MULTI_LABEL = "multi_label"
    UNIVARIATE = "univariate"
    MULTIVARIATE = "multivariate"
    OVERLAPPING = "overlapping"
    NON_OVERLAPPING = "non_overlapping"

    @property
    def task_types(self) -> frozenset[TaskType]:
        """The task types that it applies to."""
        return _APPLIES[self]


_CLASSES: Final = frozenset({TaskType.CLASSIFICATION, TaskType.VERTEX_NOMINATION, TaskType.VERTEX_CLASSIFICATION})
_MEMBERSHIPS: Final = frozenset({TaskType.CLUSTERING, TaskType.COMMUNITY_DETECTION})
_APPLIES: Final = {
    SubType.BINARY: _CLASSES,
    SubType.MULTI_CLASS: _CLASSES,
    SubType.MULTI_LABEL: frozenset({TaskType.CLASSIFICATION, TaskType.VERTEX_CLASSIFICATION}),
    SubType.UNIVARIATE: frozenset({TaskType.REGRESSION}),
    SubType.MULTIVARIATE: frozenset({TaskType.REGRESSION}),
    SubType.OVERLAPPING: _MEMBERSHIPS,
    SubType.NON_OVERLAPPING: _MEMBERSHIPS,
}
_CLUSTERED: Final = frozenset({*_MEMBERSHIPS, TaskType.GRAPH_CLUSTERING})


@dataclass(frozen=True, kw_only=True)
class ColumnPlace:
    """A column of a table, by its name and by its position.

    Attributes:
        resource: the id of the table within its dataset.
        column: the column's position, from 0.
    """

    resource: str
    column: int
    name: str


@dataclass(frozen=True, kw_only=True)
class Target(ColumnPlace):
    """A column that is to be predicted.

    Attributes:
        index: the number of the target within its dataset.
        clusters: the number of clusters, if it is known beforehand.
    """

    index: int
    clusters: int | None = None


@dataclass(frozen=True, kw_only=True)
class Horizon:
    """How far ahead a forecast reaches: a number of steps of a column of times."""

    place: ColumnPlace
    steps: float


@dataclass(frozen=True, kw_only=True)
class TargetDataset:
    """A dataset of a problem, with its targets.

    Attributes:
        targets: the columns to be predicted.
        privileged: columns that only training rows have.
        horizon: of a forecast.
    """

    id: str
    targets: tuple[Target, ...] = ()
    privileged: tuple[ColumnPlace, ...] = ()
    horizon: Horizon | None = None


@dataclass(frozen=True, kw_only=True)
class DatasetView:
    """A part of a dataset that is stored as a separate dataset: `part` is train, test or score."""

    part: Literal["train", "test", "score"]
    dataset: str
    id: str


@dataclass(frozen=True, kw_only=True)
class Division:
    """How a problem's rows are split, as far as the problem says so; the split file decides.

    Attributes:
        method: one hold-out, or folds of which each is tested once.
        test: the share that is held out, from 0 to 1; None where only the file says it.
        folds: how many folds there are; None where only the file says it.
        stratified: whether all parts have the same distribution of target values.
        repeats: how often rows are split, each time differently.
        seed: of the random split.
        file: the path of the split file in the problem's folder.
        script: the path of the script that made it.
        views: the parts that are separate datasets.
    """

    method: Literal["hold_out", "folds"] = "hold_out"
    test: float | None = None
    folds: int | None = None
    stratified: bool = True
    repeats: int = 1
    seed: int | None = None
    file: str | None = None
    script: str | None = None
    views: tuple[DatasetView, ...] = ()

    def split(self, **changed: Any) -> Split:
        """A split by these parameters, for data without one.

        Args:
            changed: other parameters of `Split`, such as `groups="patient"`.

        Raises:
            SpecError: the number of test rows is unknown.

        Example:
            >>> Division(test=0.2, seed=42).split()
            Split(test=0.2, folds=None, repeats=1, stratified=True, groups=False, seed=42)
        """
        size = {"folds": self.folds} if self.method == "folds" else {"test": self.test}
        parameters: dict[str, Any] = {
            **size,
            "repeats": self.repeats,
            "stratified": self.stratified,
            "seed": self.seed or 0,
            **changed,
        }
        if parameters.get("test") is None and parameters.get("folds") is None:
            raise SpecError("the problem does not say how many rows are tested; give test or folds")
        return Split(**parameters)


@dataclass(frozen=True, kw_only=True)
class Criterion:
    """A metric by which predictions are judged, with its parameters.

    Attributes:
        metric: one of `STANDARD_METRICS`, or the name of a registered kind of metric.
        k: the number of rows or ranks that count (`precision_at_top_k`, `hits_at_k`).
        positive: the label that counts as positive, for metrics of two classes.
        jointly: whether it gives one value for all targets together, instead of one for each.
    """

    metric: str
    k: int | None = None
    positive: str | None = None
    jointly: bool = False


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """The files that a solution writes, by their paths in its folder."""

    predictions: str = "predictions.csv"
    scores: str | None = "scores.csv"


@dataclass(frozen=True, kw_only=True)
class Augmentation:
    """External data that may help to solve a problem: the fields that they are from, and other words about them."""

    domains: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What is to be predicted, and how it is judged.

    Attributes:
        id: unique among problems.
        name: for people; None if there is none.
        description: some sentences for people.
        uri: of a page about the problem.
        version: of the problem.
        task_types: what kinds of things are predicted, the most important first; usually one.
        sub_types: how many classes, responses or memberships there are.
        keywords: other words about data and task.
        division: how rows are split; None if unknown.
        criteria: the metrics, the most important first.
        outputs: the files of a solution.
        augmentations: external data that may help.

    Raises:
        DataError: the problem contradicts itself: every fault with its place and code.

    Example:
        >>> species = Target(index=0, resource="learningData", column=5, name="species")
        >>> problem = Problem(
        ...     id="iris",
        ...     task_types=(TaskType.CLASSIFICATION,),
        ...     sub_types=(SubType.MULTI_CLASS,),
        ...     datasets=(TargetDataset(id="iris_dataset", targets=(species,)),),
        ...     division=Division(test=0.2, seed=1),
        ...     criteria=(Criterion(metric="f1_macro"),),
        ... )
        >>> [target.name for target in problem.targets]
        ['species']
    """

    id: str
    name: str | None = None
    description: str | None = None
    uri: str | None = None
    version: str = "1.0"
    task_types: tuple[TaskType, ...] = ()
    sub_types: tuple[SubType, ...] = ()
    keywords: tuple[str, ...] = ()
    datasets: tuple[TargetDataset, ...] = ()
    division: Division | None = None
    criteria: tuple[Criterion, ...] = ()
    outputs: Outputs = Outputs()
    augmentations: tuple[Augmentation, ...] = ()

    def __post_init__(self) -> None:
        if faults := faults_of(self._checks()):
            raise DataError(faults)

    @property
    def targets(self) -> tuple[Target, ...]:
        """The targets of all datasets."""
        return tuple(target for dataset in self.datasets for target in dataset.targets)

    @property
    def main(self) -> int:
        """The position of the dataset whose rows are split and predicted: the first with targets."""
        return next((place for place, dataset in enumerate(self.datasets) if dataset.targets), 0)

    def _checks(self) -> Iterator[Check]:
        yield not self.id, "id", "is empty; give the problem an id", "empty"
        for i, sub_type in enumerate(self.sub_types):
            misfit = not sub_type.task_types.intersection(self.task_types)
            yield misfit, f"sub_types[{i}]", misfit_message(sub_type, self.task_types), "not_applicable"
        for i, dataset in enumerate(self.datasets):
            yield not dataset.id, f"datasets[{i}].id", "is empty; name the dataset", "empty"
            for k, target in enumerate(dataset.targets):
                checks = target_checks(target, dataset.targets[:k], self.task_types)
                yield from within(f"datasets[{i}].targets[{k}]", checks)
        if self.division is not None:
            yield from within("division", division_checks(self.division))
        for i, criterion in enumerate(self.criteria):
            yield from within(f"criteria[{i}]", _criterion_checks(criterion))
        yield from within("outputs", _path_checks(self.outputs, "predictions", "scores"))


def misfit_message(sub_type: SubType, task_types: tuple[TaskType, ...]) -> str:
    """The message for a sub-type that fits none of the task types."""
    valid = " and ".join(sorted(sub_type.task_types))
    return f"{sub_type} is only for {valid}; the task is {', '.join(task_types) or 'of no type'}"


Check = tuple[bool, str, str, str]
"""Whether something is wrong, in which attribute, what it is, and its code."""


def faults_of(checks: Iterable[Check]) -> list[Fault]:
    """What is wrong."""
    return [Fault(where, message, code=code) for wrong, where, message, code in checks if wrong]


def within(place: str, checks: Iterable[Check]) -> Iterator[Check]:
    """The same checks of a value that has a place in another."""
    return ((wrong, f"{place}.{attribute}", message, code) for wrong, attribute, message, code in checks)


def target_checks(target: Target, earlier: Sequence[Target], task_types: tuple[TaskType, ...]) -> Iterator[Check]:
    """What may be wrong with a target, after others of its dataset."""
    index, column, n = target.index, target.column, target.clusters
    yield index in {other.index for other in earlier}, "index", f"two targets have the index {index}", "twice"
    yield index < 0, "index", f"is {index}; count from 0", "out_of_range"
    yield column < 0, "column", f"is {column}; count from 0", "out_of_range"
    yield n is not None and n < 1, "clusters", f"is {n}; give at least 1", "out_of_range"
    useless = n is not None and n >= 1 and not _CLUSTERED.intersection(task_types)
    yield useless, "clusters", "is only for clustering and community detection", "not_applicable"


def division_checks(division: Division) -> Iterator[Check]:
    """What may be wrong with a division."""
    test, folds, seed, folding = division.test, division.folds, division.seed, division.method == "folds"
    wrong, out = "not_applicable", "out_of_range"
    yield folding and test is not None, "test", "is only for hold-outs; folds test every row once", wrong
    outside = not folding and test is not None and not 0 <= test <= 1
    yield outside, "test", f"is {test}; give a share from 0 to 1", out
    yield folding and folds is not None and folds < 2, "folds", f"is {folds}; give at least 2", out
    yield not folding and folds is not None, "folds", "is only for folds; a hold-out has a test size", wrong
    yield division.repeats < 1, "repeats", f"is {division.repeats}; give at least 1", out
    yield seed is not None and not -(2**63) <= seed < 2**63, "seed", "does not fit in 64 bits", out
    yield from _path_checks(division, "file", "script")


def _path_checks(holder: Division | Outputs, *names: str) -> Iterator[Check]:
    for name in names:
        path = getattr(holder, name)
        yield path is not None and not is_inside(path), name, outside_message(path or ""), "unsafe_path"


def _criterion_checks(criterion: Criterion) -> Iterator[Check]:
    metric, k, standard = criterion.metric, criterion.k, criterion.metric in STANDARD_METRICS
    yield k is not None and k < 1, "k", f"is {k}; give at least 1", "out_of_range"
    useless = standard and k is not None and metric not in TAKES_K
    yield useless, "k", f"{metric} takes no k", "not_applicable"
    useless = standard and criterion.positive is not None and metric not in TAKES_POSITIVE
    yield useless, "positive", f"{metric} has no positive label", "not_applicable"
