"""What metrics share that are ratios of what a class comes to: of one class, or an average over classes or rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal, Self, get_args

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.base.confusion import (
    ALL_WRONG,
    EXPECTED,
    NO_CLASS,
    PREDICTED,
    RIGHT,
    TRUTH,
    ByClass,
    ClassCounts,
    Label,
    class_counts,
    harmonic,
    has_sets,
    table_of,
    truths_of,
)
from evaluand.metrics.base.metric import LABELS, Columns, Direction, Labels, State, Values

Average = Literal["micro", "macro", "weighted", "example"]


@dataclass(frozen=True, kw_only=True)
class ClassRatio(ByClass):
    """A ratio of counts, of one class or averaged.

    Where neither a label nor an average is given, the labels of the truth decide, of all rows together, and what they
    decide stands in the signature. Of bools `true` is the class that is looked at, of integers that are all 0 or 1 it
    is 1. Of other labels one has to be chosen where there are only two, or an average; of more it is the mean over
    classes. Sets of labels are taken all together (`micro`). A class that is only ever predicted decides nothing: to
    predict it is wrong.

    Args:
        label: the class that is looked at: the positive one.
        average: `macro` is the mean over classes, `weighted` the mean over classes by how often they are expected,
            `micro` the ratio of sums over classes, `example` the mean over rows of what each row's labels come to.
            Classes and rows for which the ratio is undefined are left out of the mean, and told in `data`.
        labels: the classes that are averaged over; those of truth and prediction if not given.
        zero_division: what an undefined ratio is taken for.
        weighted: each row counts by the weight of its example.
        confidence: of the interval; None for a value without one.

    Raises:
        SpecError: the parameters contradict each other.
    """

    version = 2
    direction: ClassVar[Direction | None] = "higher"
    nothing: ClassVar[str]

    label: Label | None = None
    average: Average | None = None
    labels: Sequence[Label] | None = None
    zero_division: float | None = None

    def __post_init__(self) -> None:
        if self.average not in (None, *get_args(Average)):
            known = ", ".join(get_args(Average))
            raise SpecError(f"{self.kind}: average={self.average!r} does not work here; choose one of {known}")
        if self.label is not None:
            check_labels(self.kind, "label", [self.label])
            for name in ("average", "labels"):
                if getattr(self, name) is not None:
                    raise SpecError(
                        f"{self.kind}: label={self.label!r} is about one class; leave it or {name}="
                        f"{getattr(self, name)!r} out"
                    )
        if self.labels is not None:
            object.__setattr__(self, "labels", distinct_labels(self.kind, self.labels))
        if self.zero_division is not None:
            if self.zero_division not in (0, 1):
                raise SpecError(f"{self.kind}: zero_division={self.zero_division!r} must be 0, 1 or left out")
            object.__setattr__(self, "zero_division", float(self.zero_division))
        super().__post_init__()

    @property
    def of_strays(self) -> float:
        """How much a wrong answer that is none of the classes adds to what `micro` divides by."""
        return 0.0

    @abstractmethod
    def ratio(self, expected: Any, predicted: Any, right: Any, total: Any) -> tuple[Any, Any]:
        """What is divided by what."""

    @property
    def is_share(self) -> bool:
        """Whether the value is a share of some of the rows."""
        return self.label is not None

    @property
    def interval(self) -> str | None:
        return "wilson" if self.is_share and self.confidence is not None else super().interval

    def share_of(self, counts: ClassCounts) -> tuple[np.ndarray, np.ndarray] | None:
        above, below = self._parts(counts)
        return (above[:, 0], below[:, 0]) if self.is_share else None

    def rests_on(self, counts: ClassCounts) -> np.ndarray:
        """How much of the rows the ratio of each class is about."""
        return self._parts(counts)[1]

    def basis_of(self, counts: ClassCounts, vocabulary: np.ndarray) -> float:
        way = self._way
        total, about = float(counts.total[0]), self.rests_on(counts)[0]
        if way == "example":
            return 1.0
        if way in ("macro", "weighted"):
            return harmonic(np.where(self._there(counts)[0], about, 0.0), total)
        return float(about.sum()) / total

    def settled(self, labels: Labels) -> Self:
        truths = labels.get(TRUTH, ())
        if self.label is not None or self.average is not None or not truths:
            return self
        if isinstance(truths[0], tuple):
            return replace(self, average="micro")
        if self.labels is not None or len(truths) > 2:
            return replace(self, average="macro")
        return replace(self, label=positive(self.kind, truths, "give average='macro', 'weighted' or 'micro'"))

    def compute(self, state: State) -> Values:
        return super(ClassRatio, self._of(state)).compute(state)

    def mean_over(self, state: State, groups: Sequence[np.ndarray]) -> Values:
        return super(ClassRatio, self._of(state)).mean_over(state, groups)

    def _of(self, state: State) -> Self:
        """Settled by a state's own truths, for states that stand by themselves."""
        return self.settled({TRUTH: truths_of(state)})

    def prepare(self, columns: Columns) -> Columns:
        check_labels(self.kind, "label", [] if self.label is None else [self.label], columns[LABELS])
        check_labels(self.kind, "labels", self.labels or [], columns[LABELS])
        return super().prepare(columns)

    def classes(self, vocabulary: np.ndarray) -> Sequence[Label] | None:
        return self.labels if self.label is None else (self.label,)

    def is_open(self, vocabulary: np.ndarray) -> bool:
        return self.labels is None and self._way == "macro"

    def worst_prediction(self, vocabulary: np.ndarray) -> int:
        one_answer = self.average == "micro" and not has_sets(vocabulary)
        return NO_CLASS if one_answer and self.of_strays else ALL_WRONG

    def at_once(self, vocabulary: np.ndarray) -> bool:
        return self._way not in ("example", "micro")

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        return self._over_rows(rows, weight) if self._way == "example" else super().value(rows, weight)

    def of_counts(self, counts: ClassCounts, vocabulary: np.ndarray) -> np.ndarray:
        way = self._way
        above, below = self._parts(counts)
        if way in ("micro", "label"):
            strays = self.of_strays * counts.astray if way == "micro" else 0.0
            return self._divided(above.sum(axis=1), below.sum(axis=1) + strays)
        share = (counts.expected if way == "weighted" else np.ones_like(counts.expected)) * self._there(counts)
        return _mean(self._divided(above, below), share)

    def of_classes(self, counts: ClassCounts) -> np.ndarray:
        """The ratio of each class, replicates × classes."""
        return self._divided(*self._parts(counts))

    def _parts(self, counts: ClassCounts) -> tuple[np.ndarray, np.ndarray]:
        return self.ratio(counts.expected, counts.predicted, counts.right, counts.total[:, None])

    def _there(self, counts: ClassCounts) -> np.ndarray:
        """Which classes are averaged over; those that were asked for always are."""
        return np.asarray((counts.expected + counts.predicted > 0) | (self.labels is not None))

    def _over_rows(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        n, n_classes = weight.shape[1], len(class_counts(rows, weight[:1]).classes)
        expected, predicted, right = (np.bincount(rows[name][0], minlength=n) for name in (EXPECTED, PREDICTED, RIGHT))
        return _mean(self._divided(*self.ratio(expected, predicted, right, n_classes)), weight)

    def _divided(self, above: np.ndarray, below: np.ndarray) -> np.ndarray:
        other = np.nan if self.zero_division is None else self.zero_division
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(below > 0, above / below, other)

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        return self.nothing if self.label is None else f"{self.nothing} with the label {self.label!r}"

    def told_of(self, counts: ClassCounts, vocabulary: np.ndarray) -> dict[str, Any]:
        way = self._way
        return {**({} if way == "label" else {"average": way}), **table_of(counts, self.of_classes(counts)[0])}

    @property
    def _way(self) -> str:
        """What is averaged over, or `label`; without any truth there is nothing to average."""
        return "label" if self.label is not None else self.average or "micro"


def positive(kind: str, labels: Sequence[Label], remedy: str = "") -> Label:
    """The class that is looked at where none is chosen.

    Args:
        labels: all there are, at least one.
        remedy: what else to do than to choose one.

    Raises:
        SpecError: it does not follow from the labels; names them.
    """
    if all(isinstance(label, bool) for label in labels):
        return True
    if all(label in (0, 1) for label in labels):
        return 1
    names = [repr(label) for label in labels[:_SHOWN]]
    told = ", ".join([*names, "…"]) if len(labels) > _SHOWN else " and ".join(names)
    of = f"the labels {told} is that of one of them" if len(labels) > 1 else f"the one label {told} may be of another"
    raise SpecError(f"{kind} of {of}: say which, as in label={labels[0]!r}{f', or {remedy}' if remedy else ''}")


_SHOWN: Final = 4


def check_labels(kind: str, name: str, labels: Sequence[Any], vocabulary: np.ndarray | None = None) -> None:
    """Checks labels that are parameters.

    Raises:
        SpecError: one is no label, or none of the type of those there are.
    """
    among = () if vocabulary is None else vocabulary.tolist()
    found = next((label for one in among for label in (one if isinstance(one, tuple) else (one,))), None)
    for label in labels:
        if not isinstance(label, str | int):
            raise SpecError(f"{kind}: {name}={label!r} is no label; give text, an integer or a bool")
        if found is not None and type(label) is not type(found):
            raise SpecError(f"{kind}: the labels are such as {found!r}, and {label!r} is none; write it as one")


def distinct_labels(kind: str, labels: Any) -> tuple[Label, ...]:
    """The parameter `labels`, checked and in order.

    Raises:
        SpecError: it is no list of different labels of one type.
    """
    if not isinstance(labels, list | tuple) or not labels:
        raise SpecError(f"{kind}: labels={labels!r} must be a list of labels")
    check_labels(kind, "labels", labels)
    if len({type(label) for label in labels}) > 1 or len(set(labels)) < len(labels):
        raise SpecError(f"{kind}: labels={labels!r} must be of one type, each once")
    return tuple(sorted(labels))


def _mean(values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The mean of those that are defined."""
    share = np.where(np.isnan(values), 0.0, weight)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((np.nan_to_num(values) * share).sum(axis=1) / share.sum(axis=1))
