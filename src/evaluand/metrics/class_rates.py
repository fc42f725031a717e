"""Shares of a class's rows: of what was expected, of what was predicted, or of the rest.

Precision, recall and F are of labels, or of counted items such as spans: they read one of two tables. The table of
`prediction` has a truth and a prediction in each row, or a set of each: see `ClassRatio`. The table of a scorer such as
`spans` holds for each row how many items were expected and predicted, and how many of these were found and right. A
value is then one sum over rows divided by another, so its interval is that of a ratio of sums over examples: examples
are the sampled units, and hold different numbers of items.
"""

import math
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple, Self

import numpy as np
import orjson

from evaluand.core.errors import SpecError
from evaluand.core.parameters import Within
from evaluand.metrics.accuracy import Accuracy
from evaluand.metrics.base.confusion import (
    ALL_WRONG,
    EXPECTED,
    NO_CLASS,
    OPPOSITE,
    PREDICTED,
    PREDICTION,
    RIGHT,
    TRUTH,
    TRUTH_UNKNOWN,
    ByClass,
    ClassCounts,
    Label,
    class_counts,
    harmonic,
    has_sets,
    table_of,
    truths_of,
)
from evaluand.metrics.base.labels import object_array
from evaluand.metrics.base.left_out import LeftOut, count_clusters
from evaluand.metrics.base.metric import (
    CLUSTER,
    FEWEST_REPLICATES,
    INDEPENDENT,
    LABELS,
    NO_ROWS,
    VALUE,
    WEIGHT,
    Columns,
    Direction,
    Fill,
    Labels,
    Metric,
    State,
    Values,
    numbers,
    refuse,
    refuse_empty,
    weights_of,
)
from evaluand.metrics.base.weighted_rows import mean_without
from evaluand.metrics.names import BINARY
from evaluand.metrics.stats.intervals import (
    CLUSTER_TABLE,
    ShareInterval,
    Spread,
    cluster_table,
    cluster_variance,
    clustered_wilson,
    count_rows,
    effective_rows,
    share_interval,
)
from evaluand.metrics.stats.resampling import bootstrap

Average = Literal["micro", "macro", "weighted", "example", "binary"]


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
        stray_weight: how much a wrong prediction outside the classes adds to the denominator of `micro`.

    Raises:
        SpecError: the parameters contradict each other.
    """

    version = 2
    direction: ClassVar[Direction | None] = "higher"
    nothing: ClassVar[str]
    stray_weight: ClassVar[float] = 0.0

    label: Label | None = None
    average: Average | None = None
    labels: Sequence[Label] | None = None
    zero_division: float | None = None
    interval: ShareInterval = "wilson"

    def __post_init__(self) -> None:
        if self.average == BINARY and self.labels is not None:
            raise SpecError(
                f"{self.kind}: average='binary' is of one class; give label, or another average of the labels"
            )
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
        check_labels(self.kind, "labels" if self.label is None else "label", self.named_labels, columns[LABELS])
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


_COUNTS: Final = ("expected", "found", "predicted", "right")
_BY_TAG: Final = "by_tag"
_TOTALS: Final = ("correct", "partial", "n_expected", "n_predicted")
_TABLE: Final = ("tag", "tag_group", "tag_cluster", "tag_counts")
"""The arrays of a state with an entry per row and tag; the others have one per group."""


class _Sums(NamedTuple):
    """Sums by group and tag."""

    tags: list[str]
    code: np.ndarray  # of each row of the state's table, which of the tags
    counts: np.ndarray  # group × tag × count
    weight: np.ndarray  # group × tag: what the ratio divides by
    ratio: np.ndarray  # group × tag: NaN where undefined
    value: np.ndarray  # group

    @classmethod
    def of(cls, state: State, sides: tuple[float, float]) -> Self:
        each = state["tag"].tolist()
        tags = sorted(set(each))
        place = {tag: position for position, tag in enumerate(tags)}
        code = np.fromiter((place[tag] for tag in each), np.int64, len(each))
        shape, cell = (len(state["n"]), len(tags)), state["tag_group"] * len(tags) + code
        sums = (np.bincount(cell, column, minlength=shape[0] * shape[1]) for column in state["tag_counts"].T)
        counts = np.stack([column.reshape(shape) for column in sums], axis=-1).astype(np.float64)  # also without a row
        with np.errstate(divide="ignore", invalid="ignore"):
            total, weight = _ratio_of(counts, sides)
            ratio = np.where(weight > 0, total / weight, np.nan)
            value = np.where(weight > 0, ratio, 0.0).sum(axis=1) / (weight > 0).sum(axis=1)
        return cls(tags, code, counts, weight, ratio, value)

    def clusters(self, state: State, sides: tuple[float, float]) -> Mapping[str, np.ndarray]:
        """The value as a ratio of two sums over clusters.

        The mean of ratios over tags is linearised about its value: each cluster contributes what it adds to each ratio,
        divided by the number of tags. For one tag this is the ratio itself.
        """
        group, place = state["tag_group"], (state["tag_group"], self.code)
        total, weight = _ratio_of(state["tag_counts"], sides)
        defined = self.weight > 0
        with np.errstate(divide="ignore"):
            scale = np.where(defined, 1 / (self.weight * defined.sum(axis=1, keepdims=True)), 0.0)[place]
        deviation = (total - np.where(defined, self.ratio, 0.0)[place] * weight) * scale
        share = weight * scale
        summed = deviation + np.where(share > 0, self.value[group], 0.0) * share
        return cluster_table(state["tag_cluster"], group, summed, share)


@dataclass(frozen=True, kw_only=True)
class Counting(ClassRatio):
    """A ratio of counts: of labels, or of counted items such as spans, whose tags are then the labels.

    Reads truth and prediction, labels or sets of labels (scorer `prediction`), or the counts of a scorer such as
    `spans`, where a partial match counts half.

    For counted items the average is `micro` by default, and the interval is the score interval of a proportion over
    clustered rows. A row that failed has no counts, but the number of its expected items may be known from the scorer:
    `best` is the value if it had found these and nothing else. It could have predicted any number of wrong items, so
    `worst` is 0 if predictions count. With `missing="wrong"` each expected item of such a row counts as one wrong
    prediction.

    Args:
        label: the positive class; for items, only those with this tag.
        average: see `ClassRatio`; for items `micro`, or `macro`: the mean over tags. Tags whose ratio is undefined are
            left out of the mean.
        labels: the classes to average over; by default those of truth and prediction.
        zero_division: the value of an undefined ratio of labels, 0 or 1; undefined by default.
        bootstrap: for items: compute the interval from this many bootstrap replicates of whole examples or clusters.

    Attributes:
        of_things: the metric is settled, and for counted items.
        sides: the weights of what was expected and of what was predicted in the ratio.

    Raises:
        SpecError: the parameters contradict each other.
    """

    of_things: ClassVar[bool] = False
    sides: ClassVar[tuple[float, float]]

    bootstrap: Annotated[int, Within(FEWEST_REPLICATES)] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.average == "macro" and self.bootstrap is not None:
            raise SpecError(f"{self.kind}: average='macro' has no bootstrap interval; remove bootstrap")

    @property
    def stray_weight(self) -> float:  # type: ignore[override]
        return self.sides[1]

    def rests_on(self, counts: ClassCounts) -> np.ndarray:
        of_expected, of_predicted = (float(side > 0) for side in self.sides)
        both = counts.right if of_expected and of_predicted else 0.0
        return np.asarray(of_expected * counts.expected + of_predicted * counts.predicted - both)

    def ratio(self, expected: Any, predicted: Any, right: Any, total: Any) -> tuple[Any, Any]:
        of_expected, of_predicted = self.sides
        return (of_expected + of_predicted) * right, of_expected * expected + of_predicted * predicted

    @property
    def is_share(self) -> bool:
        return super().is_share and not all(self.sides)

    @property
    def interval_name(self) -> str | None:
        if self.confidence is None or not (self.bootstrap or self.of_things):
            return super().interval_name
        return f"bootstrap-{self.bootstrap}" if self.bootstrap else "wilson"

    @property
    def by_tag(self) -> bool:
        """Whether counts are taken by tag."""
        return self.average == "macro" or self.label is not None

    def settled(self, labels: Labels) -> Self:
        if TRUTH in labels:
            return super().settled(labels)
        average = None if self.average == BINARY else self.average
        found = replace(self, average=average or (None if self.label is not None else "micro"))
        object.__setattr__(found, "of_things", True)
        return found

    def columns_for(self, available: Collection[str]) -> tuple[str, ...]:
        if TRUTH in available and PREDICTION in available:
            if self.bootstrap is not None:
                raise SpecError(f"{self.kind}: metrics of labels have no bootstrap interval; remove bootstrap")
            return self.columns
        counted = (_BY_TAG,) if self.by_tag else _TOTALS
        lacking = [name for name in counted if name not in available]
        if lacking:
            raise SpecError(
                f"{self.kind} reads 'truth' and 'prediction', or else {', '.join(map(repr, counted))}; the table has "
                f"{', '.join(map(repr, available))}; take the scorer prediction for classes, or spans for items"
            )
        if self.average not in (None, "micro", "macro", BINARY):
            raise SpecError(f"{self.kind}: average={self.average!r} does not work for counted items")
        if self.labels is not None:
            raise SpecError(f"{self.kind}: labels={self.labels!r} does not work for counted items")
        if self.zero_division is not None:
            raise SpecError(f"{self.kind}: zero_division does not work for counted items; remove it")
        if self.interval != "wilson":
            raise SpecError(f"{self.kind}: interval={self.interval!r} does not work for counted items; remove it")
        return counted

    @property
    def fill_columns(self) -> tuple[str, ...]:
        return (TRUTH, _BY_TAG if self.by_tag else "n_expected")

    def prepare(self, columns: Columns) -> Columns:
        if LABELS in columns:
            return super().prepare(columns)
        if self.by_tag:
            refuse_empty(columns, _BY_TAG)
            return {_BY_TAG: self._tags(columns)}
        correct, partial, expected, predicted = (numbers(columns, name, self.kind) for name in _TOTALS)
        credit = correct + partial / 2
        bad = (correct + partial > np.minimum(expected, predicted)) | (np.minimum(correct, partial) < 0)
        refuse(columns, bad, lambda row: "counts more correct items than were expected or predicted")
        return dict(zip(_COUNTS, (expected, credit, predicted, credit), strict=True))

    def filled(self, columns: Columns, scored: np.ndarray, missing: Columns, fill: Fill) -> Columns:
        if LABELS in columns:
            return super().filled(columns, scored, missing, fill)
        expected = missing[_BY_TAG if self.by_tag else "n_expected"]
        unknown = np.array([value is None or value != value for value in expected.tolist()], bool)
        if fill == "wrong":
            refuse(missing, unknown, lambda row: TRUTH_UNKNOWN)
        limits = {name: np.zeros(len(scored), np.bool_) for name in _LIMITS}
        limits["to_zero"][~scored] = (fill == "worst") & (unknown | (self.sides[1] > 0))
        limits["to_one"][~scored] = (fill == "best") & unknown
        if self.by_tag:
            tags = np.empty(len(scored), np.object_)
            tags[scored] = columns[_BY_TAG]
            tags[~scored] = object_array(
                {tag: _substitute_counts(fill, counts[0]) for tag, counts in by_tag.items()}
                for by_tag in self._tags(missing)
            )
            return {_BY_TAG: tags, **limits}
        taken = _substitute_counts(fill, np.where(unknown, 0.0, missing["n_expected"].astype(np.float64)))
        found = {name: np.empty(len(scored)) for name in _COUNTS}
        for name, value in zip(_COUNTS, taken, strict=True):
            found[name][scored], found[name][~scored] = columns[name], value
        return {**found, **limits}

    def _tags(self, columns: Columns) -> np.ndarray:
        """The counts of each row by tag: of all tags, or of `label` only."""
        found = []
        for row, text in enumerate(columns[_BY_TAG].tolist()):
            try:
                by_tag = {} if text is None else orjson.loads(text)
                found.append({t: [float(c[n]) for n in _COUNTS] for t, c in by_tag.items() if self.label in (None, t)})
            except (AttributeError, KeyError, TypeError, ValueError):
                refuse(columns, np.arange(len(columns[_BY_TAG])) == row, lambda row: _NO_TAGS)
        return object_array(found)

    def state(self, columns: Columns, group: np.ndarray, n_groups: int) -> State:
        if LABELS in columns:
            return super().state(columns, group, n_groups)
        row, tag, counts = _entries(columns)
        weights = weights_of(columns, self.kind) if self.weighted else np.ones(len(group))
        cluster = columns.get(CLUSTER, columns.get(INDEPENDENT, group))
        table = tag, group[row], cluster[row], counts * weights[row, None]
        limits = {n: count_rows(group[columns[n]] if n in columns else group[:0], n_groups) for n in _LIMITS}
        return {"n": count_rows(group, n_groups), **limits, **dict(zip(_TABLE, table, strict=True))}

    def merge(self, states: Sequence[State]) -> State:
        if LABELS in states[0]:
            return super().merge(states)
        by_group = [{name: state[name] for name in state if name not in _TABLE} for state in states]
        table = {name: np.concatenate([state[name] for state in states]) for name in _TABLE}
        return {**Metric.merge(self, by_group), **table}

    def place(self, state: State, positions: np.ndarray, n_groups: int) -> State:
        if LABELS in state:
            return super().place(state, positions, n_groups)
        by_group = Metric.place(self, {name: state[name] for name in state if name not in _TABLE}, positions, n_groups)
        return {**state, **by_group, "tag_group": positions[state["tag_group"]]}

    def mean_over(self, state: State, groups: Sequence[np.ndarray]) -> Values:
        return super().mean_over(state, groups) if LABELS in state else Metric.mean_over(self, state, groups)

    def leave_out(self, columns: Columns, group: np.ndarray, n_groups: int) -> LeftOut:
        if LABELS in columns:
            return super().leave_out(columns, group, n_groups)
        state = self.state(columns, group, n_groups)
        sums = _Sums.of(state, self.sides)
        table = sums.clusters(state, self.sides)
        cluster, of, total, share = (table[name] for name in CLUSTER_TABLE)
        n = count_clusters(columns[CLUSTER])
        change = (total - sums.value[of] * share) * (n / max(n - 1, 1))
        return LeftOut(sums.value, cluster, of, sums.value[of] - change, n, np.ones(n_groups))

    def compute(self, state: State) -> Values:
        if LABELS in state:
            return super().compute(state)
        n = state["n"]
        sums = _Sums.of(state, self.sides)
        value = sums.value
        clusters = sums.clusters(state, self.sides)
        spread = cluster_variance(clusters, value)
        low = high = np.full(len(n), np.nan)
        if self.confidence is not None:
            low, high = clustered_wilson(value, spread, self.confidence)
        if self.bootstrap and self.confidence is not None:
            drawn = bootstrap(clusters, value, self.confidence, self.bootstrap)
            low, high = (np.where(np.isnan(end), other, end) for end, other in zip(drawn, (low, high), strict=True))
        value = np.where(state["to_zero"] > 0, 0.0, np.where(state["to_one"] > 0, 1.0, value))
        each = zip(n.tolist(), np.isfinite(value).tolist(), np.isfinite(low).tolist(), strict=True)
        data = [self._data(sums, group, int(spread.clusters[group])) for group in np.arange(len(n)).tolist()]
        return Values(value, low, high, [self._reason(*group) for group in each], data)

    def _reason(self, n: int, has_value: bool, has_interval: bool) -> str | None:
        if n == 0:
            return NO_ROWS
        if not has_value:
            reason = self.nothing if self.label is None else f"{self.nothing} with the label {self.label!r}"
            return f"{reason}, or none of finite weight" if self.weighted else reason
        if has_interval or self.confidence is None:
            return None
        return "no interval: all counted items come from one example or cluster"

    def _data(self, sums: _Sums, group: int, clusters: int) -> dict[str, Any]:
        data = _counts_data(sums.counts[group].sum(axis=0)) | (
            {} if self.confidence is None else {"clusters": clusters}
        )
        if self.average != "macro":
            return data
        cells = zip(sums.tags, sums.counts[group], sums.ratio[group].tolist(), strict=True)
        tags = {
            tag: {"value": v if v == v else None, **_counts_data(counts)} for tag, counts, v in cells if counts.any()
        }
        return data | {"tags": tags}


_LIMITS: Final = ("to_zero", "to_one")
"""How many rows may have had so many items that the value approaches 0, or 1."""

_NO_TAGS: Final = f"{_BY_TAG} does not hold {', '.join(_COUNTS)} for each tag"


def _substitute_counts(fill: Fill, expected: Any) -> tuple[Any, ...]:
    """The counts that stand in for a row without a score, which expects this many items."""
    found, predicted = {"best": (1, 1), "wrong": (0, 1), "worst": (0, 0)}[fill]
    return expected, found * expected, predicted * expected, found * expected


def _entries(columns: Columns) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row, tag and counts of every entry."""
    if _BY_TAG not in columns:
        counts = np.stack([columns[name] for name in _COUNTS], axis=1)
        return np.arange(len(counts)), object_array(repeat("", len(counts))), counts
    rows = columns[_BY_TAG].tolist()
    row = np.repeat(np.arange(len(rows)), [len(tags) for tags in rows])
    every = np.array([counts for tags in rows for counts in tags.values()], np.float64)
    return row, object_array(tag for tags in rows for tag in tags), every.reshape(-1, len(_COUNTS))


def _ratio_of(counts: np.ndarray, sides: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    expected, found, predicted, right = np.moveaxis(counts, -1, 0)
    of_expected, of_predicted = sides
    return of_expected * found + of_predicted * right, of_expected * expected + of_predicted * predicted


def _counts_data(counts: np.ndarray) -> dict[str, float]:
    return {n: int(c) if c.is_integer() else c for n, c in zip(_COUNTS, counts.tolist(), strict=True)}


_MOST_STEPS: Final = 1 << 22


class Precision(Counting):
    """The share of what was predicted that is right; undefined if nothing was predicted.

    A system that predicts little is precise: look at the recall as well.

    Example:
        >>> Precision(label="PER").signature
        'precision v2 missing=leave_out reduce=first label=PER interval=wilson 95%'
    """

    kind = "precision"
    nothing = "nothing was predicted"
    sides = 0.0, 1.0


class Recall(Counting):
    """The share of what was expected that was found; undefined if nothing was expected.

    A system that predicts everything finds everything: look at the precision as well.

    Example:
        >>> Recall(average="macro").signature
        'recall v2 missing=leave_out reduce=first average=macro interval=jackknife 95%'
    """

    kind = "recall"
    nothing = "nothing was expected"
    sides = 1.0, 0.0


@dataclass(frozen=True, kw_only=True)
class FBeta(Counting):
    """The harmonic mean of precision and recall, in which recall has β² times the weight.

    With P predicted, E expected and c right (of spans, a partial match counts half): F = (1 + β²) c / (P + β² E). It is
    undefined if nothing was expected or predicted, and 0 if only nothing was predicted. For one tag of spans, in the
    modes in which a pair may have two tags, c differs for predicted and expected spans: (right + β² found) /
    (P + β² E).
    Source: C. J. van Rijsbergen, Information Retrieval (2nd ed., 1979), chapter 7.

    Args:
        beta: how much more recall counts than precision; 1 weighs both equally. 0 gives the precision, which is
            undefined if nothing was predicted.

    Example:
        >>> FBeta(beta=2).signature
        'f_beta v2 missing=leave_out reduce=first beta=2.0 interval=jackknife 95%'
    """

    kind = "f_beta"

    beta: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.beta < math.inf:
            raise SpecError(
                f"f_beta: beta={self.beta!r} must be a number of at least 0; 1 weighs precision and recall alike"
            )
        object.__setattr__(self, "beta", float(self.beta))
        super().__post_init__()

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        found = super().value(rows, weight)
        averages = self._mode == "macro" and self.beta > 0 and not (self.weighted or has_sets(rows[LABELS]))
        if not averages or not rows[OPPOSITE].any():
            return found
        least = [self._least_mean(rows, each) for each in weight]
        return np.where(np.isfinite(least), least, found)

    def _least_mean(self, rows: Columns, weight: np.ndarray) -> float:
        """The lowest mean over classes, by what rows that count as wrong about every class could be predicted as.

        One more prediction of a class lowers its value by less than the one before, so the largest steps are taken,
        or else each row is predicted as a class that nothing else has; the bound is reached. NaN where a class has no
        value, or rows and classes are too many.
        """
        counts = class_counts(rows, weight[None])
        row, code = rows[EXPECTED]
        own = np.bincount(code, (weight * rows[OPPOSITE])[row], minlength=len(counts.classes))
        n = round(float(counts.opposite[0]))
        if n * len(own) > _MOST_STEPS:
            return math.nan
        expected, right = counts.expected[0, :, None], counts.right[0, :, None]
        predicted = counts.predicted[0, :, None] - (counts.opposite[0] - own)[:, None] + np.arange(n + 1)
        of_class = self._divided(*self.ratio(expected, predicted, right, counts.total[0]))
        there = (counts.expected[0] > 0) | (predicted[:, 0] > 0) | (self.labels is not None)
        if np.isnan(of_class[there]).any():
            return math.nan
        steps = np.where(np.arange(n) < (n - own)[:, None], of_class[:, :-1] - of_class[:, 1:], 0.0)[there]
        largest = np.sort(steps, axis=None)[::-1][:n]
        left = of_class[there, 0].sum() - np.concatenate([[0.0], np.cumsum(largest)])
        if self.labels is not None:
            return float(left[-1] / there.sum())
        return float((left / (there.sum() + n - np.arange(len(left)))).min())

    @property
    def nothing(self) -> str:  # type: ignore[override]
        """What an undefined value lacks."""
        return "nothing was expected or predicted" if self.beta else Precision.nothing

    @property
    def prefix(self) -> str:
        return f"f{self.beta:g}" if self.beta else Precision.kind

    @property
    def sides(self) -> tuple[float, float]:  # type: ignore[override]
        return self.beta**2, 1.0


class _OfOtherRows(ClassRatio):
    """A share of the rows outside a class."""

    nothing = "no row expects another label"

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        return self.nothing if self.label is None else f"{self.nothing} than {self.label!r}"


class Specificity(_OfOtherRows):
    """The share of rows outside a class that were not predicted as it; undefined if there are none.

    True negatives of all negatives. A system that never predicts the class has the specificity 1: look at the recall as
    well.

    Example:
        >>> Specificity(label="yes").signature
        'specificity v2 missing=leave_out reduce=first label=yes interval=wilson 95%'
    """

    kind = "specificity"

    def ratio(self, expected: Any, predicted: Any, right: Any, total: Any) -> tuple[Any, Any]:
        return total - expected - predicted + right, total - expected


class FalsePositiveRate(_OfOtherRows):
    """The share of rows outside a class that were predicted as it; undefined if there are none.

    False positives of all negatives: 1 − specificity.

    Example:
        >>> FalsePositiveRate(label="yes").signature
        'false_positive_rate v2 missing=leave_out reduce=first label=yes interval=wilson 95%'
    """

    kind = "false_positive_rate"
    direction = "lower"

    def ratio(self, expected: Any, predicted: Any, right: Any, total: Any) -> tuple[Any, Any]:
        return predicted - right, total - expected


class FalseNegativeRate(ClassRatio):
    """The share of what was expected that was not found; undefined if nothing was expected.

    False negatives of all positives: 1 − recall.

    Example:
        >>> FalseNegativeRate(label="yes").signature
        'false_negative_rate v2 missing=leave_out reduce=first label=yes interval=wilson 95%'
    """

    kind = "false_negative_rate"
    direction = "lower"
    nothing = "nothing was expected"

    def ratio(self, expected: Any, predicted: Any, right: Any, total: Any) -> tuple[Any, Any]:
        return expected - right, expected


class Jaccard(ClassRatio):
    """The share of all that was expected or predicted that is right; undefined if there is nothing.

    c / (P + E − c), with P predicted, E expected and c right: intersection over union.
    Source: P. Jaccard, "The distribution of the flora in the alpine zone" (New Phytologist 11, 1912).

    Example:
        >>> Jaccard(label="yes").signature
        'jaccard v2 missing=leave_out reduce=first label=yes interval=wilson 95%'
    """

    kind = "jaccard"
    nothing = "nothing was expected or predicted"
    stray_weight = 1.0

    def ratio(self, expected: Any, predicted: Any, right: Any, total: Any) -> tuple[Any, Any]:
        return right, expected + predicted - right


@dataclass(frozen=True, kw_only=True)
class SelectionRate(Accuracy):
    """The share of rows that are predicted as a class, such as selected or flagged, with Wilson's score interval.

    It does not say whether the predictions are right, so neither high nor low is better. For the column `truth` it is
    the base rate.

    Args:
        label: the class; by default `true` for bools, and 1 for integers that are all 0 or 1.
        column: the column of labels, or of sets of labels.

    Raises:
        SpecError: the parameters contradict each other.

    Example:
        >>> SelectionRate(label="hired").signature
        'selection_rate v1 missing=leave_out reduce=first column=prediction label=hired interval=wilson 95%'
    """

    kind = "selection_rate"
    reductions = ("first", "all")
    direction = None

    column: str = PREDICTION
    label: Label | None = None

    def __post_init__(self) -> None:
        check_labels(self.kind, "label", [] if self.label is None else [self.label])
        super().__post_init__()

    @property
    def label_columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def named_labels(self) -> Sequence[Label]:
        return () if self.label is None else (self.label,)

    def settled(self, labels: Labels) -> Self:
        found = labels.get(self.column, ())
        if self.label is not None or not found:
            return self
        single = dict.fromkeys(label for each in found for label in (each if isinstance(each, tuple) else (each,)))
        return replace(self, label=choose_positive(self.kind, [*single]))

    def prepare(self, columns: Columns) -> Columns:
        codes, vocabulary = columns[self.column], columns[LABELS]
        refuse(columns, codes < 0, lambda row: f"is scored but has no {self.column}; such rows must abstain")
        check_labels(self.kind, "label", [] if self.label is None else [self.label], vocabulary)
        label = True if self.label is None else self.label  # True == 1
        within = vocabulary.tolist() if has_sets(vocabulary) else [(one,) for one in vocabulary.tolist()]
        return {VALUE: np.array([label in one for one in within], np.float64)[codes]}

    def compute(self, state: State) -> Values:
        values = super().compute(state)
        return replace(values, data=[{"selected": entry.pop("correct"), **entry} for entry in map(dict, values.data)])
