"""Base of metrics that are ratios of a class's counts: of one class, or averaged over classes or rows."""

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
from evaluand.metrics.base.metric import LABELS, WEIGHT, Columns, Direction, Labels, State, Values, check_choice
from evaluand.metrics.base.weighted_rows import mean_without
from evaluand.metrics.stats.intervals import ShareInterval, Spread, effective_rows, share_interval

Average = Literal["micro", "macro", "weighted", "example", "binary"]

BINARY: Final = "binary"


@dataclass(frozen=True, kw_only=True)
class ClassRatio(ByClass):
    """A ratio of counts, of one class or averaged. Reads labels or sets of labels (scorer `prediction`).

    Without `label` and `average`, the truths of all rows decide, and the signature states the decision: for bools the
    positive class is `true`; for integers that are all 0 or 1 it is 1; for more than two labels the value is the mean
    over classes (`macro`); for sets of labels it is `micro`. For two other labels one must be chosen. A class that is
    only predicted, never expected, decides nothing: predicting it is wrong.

    Args:
        label: the positive class.
        average: `macro` is the mean over classes, `weighted` the mean over classes weighted by how often each is
            expected, `micro` the ratio of sums over classes, `example` the mean over rows of each row's ratio. Classes
            and rows whose ratio is undefined are left out of the mean; `data` lists the classes. `binary` refuses all
            but two labels, so that the value is always that of one class; of counted items it decides nothing.
        labels: the classes to average over; by default those of truth and prediction.
        zero_division: the value of an undefined ratio, 0 or 1; undefined by default.
        interval: of the share of one class: `wilson`, `exact` or `mid_p`, see `share_interval`.

    Attributes:
        nothing: why the ratio is undefined, such as "nothing was predicted".

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
    interval: ShareInterval = "wilson"

    def __post_init__(self) -> None:
        if self.average not in (None, *get_args(Average)):
            known = ", ".join(get_args(Average))
            raise SpecError(f"{self.kind}: average={self.average!r} does not work here; choose one of {known}")
        if self.average == BINARY and self.labels is not None:
            raise SpecError(
                f"{self.kind}: average='binary' is of one class; give label, or another average of the labels"
            )
        check_choice(self.kind, "interval", self.interval, get_args(ShareInterval))
        if self.label is not None:
            if self.average == BINARY:
                object.__setattr__(self, "average", None)
            check_labels(self.kind, "label", [self.label])
            for name in ("average", "labels"):
                if getattr(self, name) is not None:
                    raise SpecError(
                        f"{self.kind}: label={self.label!r} selects one class; remove it or {name}="
                        f"{getattr(self, name)!r}"
                    )
        if self.labels is not None:
            object.__setattr__(self, "labels", distinct_labels(self.kind, self.labels))
        if self.zero_division is not None:
            if self.zero_division not in (0, 1):
                raise SpecError(f"{self.kind}: zero_division={self.zero_division!r} must be 0 or 1, or be omitted")
            object.__setattr__(self, "zero_division", float(self.zero_division))
        averages = self.average not in (None, BINARY) or self.labels is not None
        if self.interval != "wilson" and (averages or (self.label is not None and not self.is_share)):
            raise SpecError(f"{self.kind}: interval={self.interval!r} needs a share of rows, and this is another ratio")
        super().__post_init__()

    @property
    def named_labels(self) -> Sequence[Label]:
        return self.labels or () if self.label is None else (self.label,)

    @property
    def stray_weight(self) -> float:
        """How much a wrong prediction outside the classes adds to the denominator of `micro`."""
        return 0.0

    @abstractmethod
    def ratio(self, expected: Any, predicted: Any, right: Any, total: Any) -> tuple[Any, Any]:
        """Numerator and denominator."""

    @property
    def is_share(self) -> bool:
        """Whether the value is a proportion of some of the rows."""
        return self.label is not None

    @property
    def interval_name(self) -> str | None:
        return self.interval if self.is_share and self.confidence is not None else super().interval_name

    def share_of(self, counts: ClassCounts) -> tuple[np.ndarray, np.ndarray] | None:
        above, below = self._parts(counts)
        return (above[:, 0], below[:, 0]) if self.is_share else None

    def bounds_of(self, counts: ClassCounts, confidence: float) -> tuple[np.ndarray, np.ndarray] | None:
        share = self.share_of(counts)
        if share is None:
            return super().bounds_of(counts, confidence)
        return share_interval(self.interval, *share, confidence)

    def interval_by(self, value: float, spread: Spread) -> tuple[float, float]:
        if not self.is_share or self.interval == "wilson":
            return super().interval_by(value, spread)
        assert self.confidence is not None
        rows = effective_rows(np.array([value]), spread, self.confidence)
        (low,), (high,) = share_interval(self.interval, value * rows, rows, self.confidence)
        return float(low), float(high)

    def rests_on(self, counts: ClassCounts) -> np.ndarray:
        """The number of rows that the ratio of each class depends on."""
        return self._parts(counts)[1]

    def basis_of(self, counts: ClassCounts, vocabulary: np.ndarray) -> float:
        mode = self._mode
        total, about = float(counts.total[0]), self.rests_on(counts)[0]
        if mode == "example":
            return 1.0
        if mode in ("macro", "weighted"):
            return harmonic(np.where(self._there(counts)[0], about, 0.0), total)
        return float(about.sum()) / total

    def averaged(self, counts: ClassCounts) -> np.ndarray | None:
        is_defined = np.isfinite(self.of_classes(counts)[0])
        return self._there(counts)[0] & is_defined if self._mode == "macro" else None

    def settled(self, labels: Labels) -> Self:
        truths = labels.get(TRUTH, ())
        if self.label is not None or self.average not in (None, BINARY) or not truths:
            return self
        if self.average == BINARY:
            return replace(self, average=None, label=self._only_class(truths))
        if isinstance(truths[0], tuple):
            return replace(self, average="micro")
        if self.labels is not None or len(truths) > 2:
            return replace(self, average="macro")
        return replace(self, label=choose_positive(self.kind, truths, "give average='macro', 'weighted' or 'micro'"))

    @property
    def prefix(self) -> str:
        """What the names of its averages begin with."""
        return self.kind

    def _only_class(self, truths: Sequence[Any]) -> Label:
        """The positive class of two; a SpecError leads to the averages if there are more."""
        averages = f"{self.prefix}_macro, {self.prefix}_weighted or {self.prefix}_micro"
        if isinstance(truths[0], tuple):
            raise SpecError(f"{self.prefix} is of one class, and each row has a set of labels: name {averages}")
        if len(truths) > 2:
            listed = ", ".join(map(repr, truths[:_MAX_LABELS])) + (", …" if len(truths) > _MAX_LABELS else "")
            raise SpecError(
                f"{self.prefix} is of one class, and there are {len(truths)} labels ({listed}): name {averages}, or "
                f"choose the class, as in label={truths[0]!r}"
            )
        return choose_positive(self.prefix, truths, f"name {averages}")

    def compute(self, state: State) -> Values:
        return super(ClassRatio, self._of(state)).compute(state)

    def mean_over(self, state: State, groups: Sequence[np.ndarray]) -> Values:
        return super(ClassRatio, self._of(state)).mean_over(state, groups)

    def _of(self, state: State) -> Self:
        """The metric settled by the truths of the state itself, for states that are computed alone."""
        return self.settled({TRUTH: truths_of(state)})

    def prepare(self, columns: Columns) -> Columns:
        check_labels(self.kind, "label", [] if self.label is None else [self.label], columns[LABELS])
        check_labels(self.kind, "labels", self.labels or [], columns[LABELS])
        return super().prepare(columns)

    def classes(self, vocabulary: np.ndarray) -> Sequence[Label] | None:
        return self.labels if self.label is None else (self.label,)

    def is_open(self, vocabulary: np.ndarray) -> bool:
        if self.labels is not None or self._mode != "macro" or np.isnan(self._ratio_if_unexpected):
            return False
        return self.weighted or has_sets(vocabulary) or not self._loses_by_new_classes

    @property
    def _ratio_if_unexpected(self) -> float:
        """The ratio of a class that is predicted in one of two rows and expected in none; NaN if it is undefined."""
        one = np.ones(1)
        return float(self._divided(*self.ratio(0 * one, one, 0 * one, 2 * one))[0])

    @property
    def _loses_by_new_classes(self) -> bool:
        """Whether a class that is only predicted has the worst ratio, so that its mean with others is worse."""
        return self.direction == "higher" and self._ratio_if_unexpected == 0

    def worst_prediction(self, vocabulary: np.ndarray) -> int:
        one_answer = self.average == "micro" and not has_sets(vocabulary)
        return NO_CLASS if one_answer and self.stray_weight else ALL_WRONG

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        if self._mode != "example":
            return super().value(rows, weight)
        return _mean(self._of_rows(rows), weight)

    def without_rows(self, rows: Columns, one: np.ndarray) -> np.ndarray:
        if self._mode != "example":
            return super().without_rows(rows, one)
        return mean_without(self._of_rows(rows), rows[WEIGHT], one)

    def of_counts(self, counts: ClassCounts, vocabulary: np.ndarray) -> np.ndarray:
        mode = self._mode
        above, below = self._parts(counts)
        if mode in ("micro", "label"):
            strays = self.stray_weight * counts.stray if mode == "micro" else 0.0
            return self._divided(above.sum(axis=1), below.sum(axis=1) + strays)
        share = (counts.expected if mode == "weighted" else np.ones_like(counts.expected)) * self._there(counts)
        return _mean(self._divided(above, below), share, self._new_classes(counts))

    def of_classes(self, counts: ClassCounts) -> np.ndarray:
        """The ratio of each class, replicates × classes."""
        return self._divided(*self._parts(counts))

    def _parts(self, counts: ClassCounts) -> tuple[np.ndarray, np.ndarray]:
        return self.ratio(counts.expected, counts.predicted, counts.right, counts.total[:, None])

    def _there(self, counts: ClassCounts) -> np.ndarray:
        """Which classes are averaged over: those chosen with `labels`, else those that occur."""
        beside = self._new_classes(counts)[:, None] * (1 + _ROUNDING)  # the rows that would predict any class
        return np.asarray((counts.expected > 0) | (counts.predicted > beside) | (self.labels is not None))

    def _new_classes(self, counts: ClassCounts) -> np.ndarray:
        """How many further classes may be predicted by rows that are wrong about every class, if this is worse."""
        is_worse = self.labels is None and self._mode == "macro" and self._loses_by_new_classes
        return counts.opposite * is_worse

    def _of_rows(self, rows: Columns) -> np.ndarray:
        """The ratio of each row's classes."""
        n, n_classes = len(rows[WEIGHT]), len(class_counts(rows, rows[WEIGHT][None]).classes)
        expected, predicted, right = (np.bincount(rows[name][0], minlength=n) for name in (EXPECTED, PREDICTED, RIGHT))
        return self._divided(*self.ratio(expected, predicted, right, n_classes))

    def _divided(self, above: np.ndarray, below: np.ndarray) -> np.ndarray:
        other = np.nan if self.zero_division is None else self.zero_division
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(below > 0, above / below, other)

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        return self.nothing if self.label is None else f"{self.nothing} with the label {self.label!r}"

    def details_of(self, counts: ClassCounts, vocabulary: np.ndarray) -> dict[str, Any]:
        mode = self._mode
        return {**({} if mode == "label" else {"average": mode}), **table_of(counts, self.of_classes(counts)[0])}

    @property
    def _mode(self) -> str:
        """The average, or `label`; `micro` if there is no truth to decide."""
        if self.label is not None:
            return "label"
        return "micro" if self.average in (None, BINARY) else str(self.average)


def choose_positive(kind: str, labels: Sequence[Label], remedy: str = "") -> Label:
    """The positive class that follows from at least one label; else a SpecError lists them, with a `remedy`."""
    if all(isinstance(label, bool) for label in labels):
        return True
    if all(label in (0, 1) for label in labels):
        return 1
    names = [repr(label) for label in labels[:_MAX_LABELS]]
    more = "…" if len(labels) > _MAX_LABELS else names.pop()
    listed = f"{', '.join(names)} and {more}" if names else more
    alternative = f", or {remedy}" if remedy else ""
    raise SpecError(
        f"{kind} needs a positive class, and the labels are {listed}: choose it, as in label={labels[0]!r} or"
        f" --pos-label {labels[0]}{alternative}"
    )


_MAX_LABELS: Final = 4
_ROUNDING: Final = 1e-9


def check_labels(kind: str, name: str, labels: Sequence[Any], vocabulary: np.ndarray | None = None) -> None:
    """Check labels that are parameters; a SpecError unless each is a label of the type of the labels in the data."""
    among = () if vocabulary is None else vocabulary.tolist()
    found = next((label for one in among for label in (one if isinstance(one, tuple) else (one,))), None)
    for label in labels:
        if not isinstance(label, str | int):
            raise SpecError(f"{kind}: {name}={label!r} is not a label; give text, an integer or a bool")
        if found is not None and type(label) is not type(found):
            raise SpecError(
                f"{kind}: {name}={label!r} has another type than the labels in the data, such as {found!r}; give it in "
                "their type"
            )


def distinct_labels(kind: str, labels: Any) -> tuple[Label, ...]:
    """Sort the parameter `labels`; a SpecError if it is not a list of distinct labels of one type."""
    if not isinstance(labels, list | tuple) or not labels:
        raise SpecError(f"{kind}: labels={labels!r} must be a list of labels")
    check_labels(kind, "labels", labels)
    if len({type(label) for label in labels}) > 1 or len(set(labels)) < len(labels):
        raise SpecError(f"{kind}: labels={labels!r} must be distinct and of one type")
    return tuple(sorted(labels))


def _mean(values: np.ndarray, weight: np.ndarray, zeros: np.ndarray | float = 0.0) -> np.ndarray:
    """The mean of the defined values, and of further zeros."""
    share = np.where(np.isnan(values), 0.0, weight)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((np.nan_to_num(values) * share).sum(axis=1) / (share.sum(axis=1) + zeros))
