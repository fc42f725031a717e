"""Objectives: what a trade-off is between: a metric, or how far its values by group lie apart.

An objective is a metric that exists already, at a threshold: the counts of decisions are the weights of four rows, one
for each truth and decision, and a metric of weighted rows says what they are worth, for all thresholds at once. Leaving
out one row of each cell gives the jackknife's interval in closed form.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import Any, Final, Literal, cast, get_args

import numpy as np

from evaluand.aggregation.disparity import Compared
from evaluand.aggregation.fairness import CRITERIA, Criterion
from evaluand.core import registry
from evaluand.core.errors import SpecError, kind_of
from evaluand.core.key_columns import INDEX
from evaluand.core.registry import nearest
from evaluand.metrics.base.class_scores import CONFIDENCE, OfScores
from evaluand.metrics.base.confusion import PREDICTION, TRUTH, ClassCounts, Confusion, OfCounts, class_counts
from evaluand.metrics.base.metric import (
    CLUSTER,
    LABELS,
    VALUE,
    WEIGHT,
    Columns,
    Direction,
    Metric,
    Values,
    check_confidence,
)
from evaluand.metrics.base.weighted_rows import WeightedRowsMetric
from evaluand.metrics.stats.disparity import IntervalEnds, Kind, disparity, spread
from evaluand.metrics.stats.intervals import (
    Spread,
    clustered_wilson,
    correlation_of,
    interval_within,
    mean_of_shares,
    wilson,
)
from evaluand.tradeoff.arguments import listed
from evaluand.tradeoff.confidences import CELLS, Confidences, Groups
from evaluand.tradeoff.short_names import meant

Undefined = Literal["nan", "zero"]
"""What a rate without rows is: undefined, and its group left out of a disparity; or 0. A ratio of zeros is then 0 too,
and else undefined; but of equalized odds the recall alone decides where no group has a false positive, and if nothing
counts as 0 the false positive rate alone where no group has a true one. What rests on a rate without rows that is 0 has
no interval."""

COLUMNS: Final = ("system", "model", "threshold", "trivial")
"""What is told of a point besides its values."""

DISPARITIES: Final = tuple(kind for kind in get_args(Kind) if not kind.endswith("overall"))


@dataclass(frozen=True)
class Objective:
    """What is to be high, or low.

    Args:
        metric: a metric of decisions or of confidences, such as `accuracy`, `f_beta`, `roc_auc`; or a criterion of
            fairness, such as `equalized_odds`, which is that of its worse rate.
        disparity: what is made of the values by group: `difference`, `ratio`, `min` or `max`.
        by: the attributes whose groups are compared, crossed.
        scorer: whose scores the metric is of, where these are stored.
        name: what it is called; its text if not given.
        parts: the metrics it is made of, of which a criterion may have two; those of decisions if not given.

    Raises:
        SpecError: there is no such metric, or nothing can be traded for it.

    Example:
        >>> Objective.parse("equalized_odds difference by sex").by
        ('sex',)
        >>> Objective("accuracy").direction
        'higher'
    """

    metric: str
    disparity: Kind | None = None
    by: tuple[str, ...] = ()
    scorer: str | None = None
    name: str = ""
    parts: tuple[Metric, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        for what, given in (("metric", self.metric), ("name", self.name)):
            if not isinstance(given, str):
                raise SpecError(f"the {what} of an objective must be text and is {kind_of(given)}")
        object.__setattr__(self, "by", tuple(listed(f"{self.metric}: by", self.by, str, "('sex',)")))
        if (self.disparity is None) != (not self.by):
            raise SpecError(f"{self.metric}: a disparity is one by attributes: give both or neither")
        if self.disparity not in (None, *DISPARITIES):
            hint = nearest(str(self.disparity), DISPARITIES)
            raise SpecError(
                f"{self.metric}: no disparity is called {self.disparity!r}{hint}; there are {', '.join(DISPARITIES)}"
            )
        if self.disparity is None and self.metric in CRITERIA:
            raise SpecError(f"{self.metric} is about groups; write {self.metric} difference by ATTRIBUTE")
        if not self.name:
            object.__setattr__(self, "name", self.text)
        if not self.parts:
            kinds = CRITERIA.get(cast(Criterion, self.metric), (self.metric,))
            object.__setattr__(self, "parts", tuple(map(_metric, kinds)))
        if self.disparity in ("min", "max") and len(self.parts) > 1:
            raise SpecError(f"{self.metric}: several rates have no common {self.disparity}; use difference or ratio")
        if self.disparity == "ratio" and any(part.range[0] < 0 for part in self.parts):
            raise SpecError(f"{self.metric}: a ratio needs values that cannot be negative")
        if self.name in COLUMNS:
            raise SpecError(f"{self.name!r} is a column of points; give the objective {self.text!r} another name")
        if self.direction is None:
            raise SpecError(
                f"{self.metric} is neither better high nor low by itself; use its difference by an attribute"
            )
        if not np.isfinite(self.range).all():
            raise SpecError(f"{self.metric} has no best or no worst value, so nothing can be traded for it")

    @classmethod
    def parse(cls, text: str) -> Objective:
        """From text: `METRIC`, or `METRIC difference|ratio|min|max by ATTRIBUTE[, ATTRIBUTE…]`.

        Where there are stored scores of several scorers, the metric is `METRIC(SCORER)`.

        Raises:
            SpecError: it is written in another way.
        """
        return cls(**written(text))

    @property
    def text(self) -> str:
        """What `parse` reads."""
        metric = f"{self.metric}({self.scorer})" if self.scorer else self.metric
        return f"{metric} {self.disparity} by {', '.join(self.by)}" if self.disparity else metric

    @property
    def of_confidences(self) -> bool:
        """Whether it is the same at all thresholds of a model."""
        return isinstance(self.parts[0], OfScores)

    @property
    def direction(self) -> Direction | None:
        """Whether a higher or a lower value is better."""
        fixed: dict[Kind | None, Direction] = {"difference": "lower", "ratio": "higher"}
        return fixed.get(self.disparity, self.parts[0].direction)

    @property
    def range(self) -> tuple[float, float]:
        """The values it can take."""
        low, high = self.parts[0].range
        return {"difference": (0.0, high - low), "ratio": (0.0, 1.0)}.get(self.disparity or "", (low, high))

    def share(self, value: np.ndarray) -> np.ndarray:
        """Values as shares of the range."""
        low, high = self.range
        return np.asarray((value - low) / (high - low))

    def loss(self, value: np.ndarray) -> np.ndarray:
        """Values from 0, the ideal, to 1, the worst there can be."""
        return 1 - self.share(value) if self.direction == "higher" else self.share(value)

    def of_counts(self, counts: np.ndarray, undefined: Undefined = "nan") -> np.ndarray:
        """The values of decisions.

        Args:
            counts: any axes × groups × `CELLS`; the groups are those of `by`, or all rows as one.
            undefined: see `Undefined`.
        """
        return self._reduced([_of_cells(part, counts, undefined) for part in self.parts], undefined)

    def of_model(self, given: Confidences, model: str, undefined: Undefined = "nan") -> float:
        """The value of a model at all thresholds.

        Args:
            given: with the attributes of `by`.
        """
        values = _of_rows(self.parts[0], given, model, given.groups(self.by), None, undefined)
        return float(self._reduced([values.value], undefined))

    def with_interval(
        self,
        counts: np.ndarray,
        confidence: float,
        undefined: Undefined = "nan",
        crossed: np.ndarray | None = None,
    ) -> IntervalEnds:
        """The values of decisions with their intervals, that of each point by itself; arguments as of `of_counts`.

        Args:
            counts: of decisions.
            confidence: of the intervals.
            undefined: see `Undefined`.
            crossed: the products of counts that `crossed_at` gives, of rows with weights or clusters.
        """
        found = [_with_ends(part, counts, confidence, crossed) for part in self.parts]
        return self._apart(found, self.of_counts(counts, undefined), confidence, undefined)

    def of_model_with_interval(
        self, given: Confidences, model: str, confidence: float, undefined: Undefined = "nan"
    ) -> IntervalEnds:
        """The value of a model at all thresholds with its interval."""
        found = _of_rows(self.parts[0], given, model, given.groups(self.by), confidence, "nan")
        value = np.array(self.of_model(given, model, undefined))
        return self._apart([found], value, confidence, undefined)

    def compared(
        self,
        given: Confidences,
        model: str,
        counts: np.ndarray,
        confidence: float,
        undefined: Undefined,
        crossed: np.ndarray | None = None,
    ) -> Compared:
        """The groups of a disparity at each threshold; of confidences, one entry for all of them.

        Args:
            given: with the attributes of `by`.
            model: one of its models.
            counts: thresholds × groups × `CELLS`.
            confidence: of the intervals.
            undefined: see `Undefined`.
            crossed: see `with_interval`.
        """
        groups, parts = given.groups(self.by), self.parts
        if self.of_confidences:
            found = _judged(parts[0], given, model, groups, confidence)
            values = [IntervalEnds(found.value[None], found.low[None], found.high[None])]
            rests_on = [np.array([[told.get("rests_on", told["n"]) for told in found.data]])]
        else:
            values = [_with_ends(part, counts, confidence, crossed) for part in parts]
            rests_on = [_rests_on(part, counts) for part in parts]
        return Compared(parts, groups.names, values, rests_on, None, confidence, undefined == "zero")

    def why_undefined(self, given: Confidences | None) -> str:
        """Why a value is undefined, of rows that are known or not."""
        if given is None:
            return "it is undefined where the points come from"
        if self.disparity is None:
            return "there are no rows that it is about"
        if self.disparity in ("min", "max"):
            return "no group has a value"
        return f"fewer than two groups have a value{', or all have 0' if self.disparity == 'ratio' else ''}"

    def _reduced(self, values: Sequence[np.ndarray], undefined: Undefined) -> np.ndarray:
        """One value of those of the groups, of the worse rate where there are two."""
        if not self.disparity:
            return values[0][..., 0]
        kind, fewest = self.disparity, 2 if undefined == "nan" else 1
        if kind in ("min", "max"):
            return spread(values[0], kind, fewest)
        found = np.stack([spread(one, kind, fewest) for one in values])
        if undefined == "zero" and not self.of_confidences:
            found[0] = np.nan_to_num(found[0])
            found = np.where(np.isnan(found), found[0], found)
        elif kind == "ratio":  # where all groups have 0 by one rate, the other decides
            zeros = np.stack([spread(one, "max", fewest) == 0 for one in values])
            found = np.where(zeros & ~zeros.all(axis=0), np.inf, found)
        return np.asarray(found.max(axis=0) if self.disparity == "difference" else found.min(axis=0))

    def _apart(
        self, found: Sequence[IntervalEnds], value: np.ndarray, confidence: float, undefined: Undefined
    ) -> IntervalEnds:
        """The interval that holds for whichever groups are the worst; none where a rate without rows counts as 0."""
        if self.disparity:
            _, low, high = disparity(found, self.disparity, confidence, self.parts[0].range).ends
        else:
            low, high = (end[..., 0] for end in found[0][1:])
        lacks = np.any([np.isnan(one.value).any(axis=-1) for one in found], axis=0) & (undefined == "zero")
        return IntervalEnds(value, *(np.where(lacks, np.nan, end) for end in (low, high)))


def written(text: Any) -> dict[str, Any]:
    """What the text of an objective says: `metric`, `disparity`, `by` and `scorer`.

    Raises:
        SpecError: it is written in another way.
    """
    found = _WRITTEN.fullmatch(text.strip()) if isinstance(text, str) else None
    if not found:
        hint = _of_files(text) if isinstance(text, str) else ""
        raise SpecError(f"{text!r} is no objective{hint}; write it as in 'accuracy' or 'recall difference by sex'")
    by = tuple(part.strip() for part in (found["by"] or "").split(",") if part.strip())
    return {**found.groupdict(), "by": by}


def _of_files(text: str) -> str:
    """What a name of score files is called here."""
    full = meant(text)
    return f" (did you mean {full!r}?)" if full else ""


def objectives_of(given: str | Objective | Sequence[str | Objective]) -> tuple[Objective, ...]:
    """Objectives of what was asked for.

    Raises:
        SpecError: there is none, or one twice.
    """
    each = listed("objectives", given, str | Objective, _EXAMPLE)
    found = tuple(one if isinstance(one, Objective) else Objective.parse(one) for one in each)
    if not found:
        raise SpecError(f"no objective is given; write such as {_EXAMPLE}")
    names = [one.name for one in found]
    for name in names:
        if names.count(name) > 1:
            raise SpecError(f"the objective {name!r} is given twice")
    return found


def group_rates(
    objective: Objective, counts: np.ndarray, part: int, confidence: float, crossed: np.ndarray | None = None
) -> IntervalEnds:
    """What one of the metrics of an objective is in each group, with intervals; counts are groups × `CELLS`."""
    return _with_ends(objective.parts[part], counts, check_confidence("rates", confidence), crossed)


def group_counts(objective: Objective, counts: np.ndarray, part: int) -> tuple[np.ndarray | None, np.ndarray]:
    """How many rows each rate counts, and of how many it is; for a metric that is no rate None, and all rows."""
    rate = _rate(objective.parts[part])
    return (counts @ rate[0], counts @ rate[1]) if rate else (None, counts.sum(axis=-1))


def _metric(name: str) -> Metric:
    """A metric of two classes, of which the positive one is looked at."""
    if name not in registry.names("metrics") and (hint := _of_files(name) or nearest(name, CRITERIA)):
        raise SpecError(f"no metric is called {name!r}{hint}")
    kind = registry.find("metrics", name)
    if any(one.init and one.default is one.default_factory is MISSING for one in fields(kind)):
        raise SpecError(f"{name} is no metric of decisions between two classes, as it needs to be told more")
    settings: dict[str, Any] = {"label": True, "scored_by": "positive"}
    known = {key: value for key, value in settings.items() if key in kind.__dataclass_fields__}
    metric: Metric = kind(**known)
    reads = set(metric.columns)
    decided = metric.averages and reads <= {TRUTH, PREDICTION, VALUE}
    if not (
        decided
        or isinstance(metric, Confusion)
        or (isinstance(metric, OfScores) and isinstance(metric, WeightedRowsMetric))
    ):
        raise SpecError(
            f"{name} is no metric of decisions between two classes; use such as accuracy, f_beta or roc_auc"
        )
    return metric


def _of_cells(metric: Metric, counts: np.ndarray, undefined: Undefined) -> np.ndarray:
    """The value of each group: counts … × groups × `CELLS` → … × groups."""
    rate = _rate(metric)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (counts @ rate[0]) / (counts @ rate[1]) if rate else _of_weights(metric, counts)
    return np.nan_to_num(found) if undefined == "zero" else np.asarray(found)


@cache
def _rate(metric: Metric) -> tuple[np.ndarray, np.ndarray] | None:
    """Which cells a rate counts, and of which; None for metrics that are no rate of cells."""
    if isinstance(metric, OfCounts):
        found = metric.share_of(_of_classes(metric, np.eye(len(CELLS))))
        return None if found is None else (found[0].astype(np.int64), found[1].astype(np.int64))
    if isinstance(metric, Confusion):
        return None
    return metric.prepare(_ROWS)[VALUE].astype(np.int64), np.ones(len(CELLS), np.int64)


def _of_weights(metric: Metric, counts: np.ndarray) -> np.ndarray:
    weight = counts.reshape(-1, len(CELLS)).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        if isinstance(metric, Confusion):
            found = metric.value(metric.arranged(metric.prepare(_ROWS)), weight)
        else:
            found = weight @ metric.prepare(_ROWS)[VALUE] / weight.sum(axis=1)
    return np.asarray(found).reshape(counts.shape[:-1])


def _with_ends(
    metric: Metric, counts: np.ndarray, confidence: float, crossed: np.ndarray | None = None
) -> IntervalEnds:
    """The value of each group with its interval: of rates and means of them by Wilson's, of others what leaving out
    single rows gives.

    The rows that a rate is about are taken as given; so it has no spread but that of the rate.
    """
    if crossed is not None:
        return _between_clusters(metric, counts, crossed, confidence)
    unique, place = np.unique(counts.reshape(-1, len(CELLS)), axis=0, return_inverse=True)
    value = _of_cells(metric, unique, "nan")
    rate = _rate(metric)
    ends = wilson(unique @ rate[0], unique @ rate[1], confidence) if rate else None
    if ends is None and isinstance(metric, OfCounts):
        ends = metric.bounds_of(_of_classes(metric, unique), confidence)
    low, high = ends or _left_out(metric, unique, confidence)
    return IntervalEnds(*(array[place.ravel()].reshape(counts.shape[:-1]) for array in (value, low, high)))


def _between_clusters(metric: Metric, counts: np.ndarray, crossed: np.ndarray, confidence: float) -> IntervalEnds:
    """The value of each group with the interval that the spread between clusters gives, as metrics of rows have it.

    A value is linearised about its counts, and so its variance is a sum of products of the counts of clusters: a rate
    is a ratio of two sums over clusters (see `intervals.cluster_variance`), and of others the slopes are differences.
    Metrics of rows leave out blocks of clusters for most, so that their ends are near these and not the same.
    """
    value, rate, sides = _of_cells(metric, counts, "nan"), _rate(metric), np.eye(len(CELLS))
    shares = None if rate or not isinstance(metric, OfCounts) else metric.shares_of(_of_classes(metric, sides))
    if rate:
        slope, share = _slope(*rate, counts), 1.0
        of = rate[1].astype(np.float64)
    elif shares is not None:
        return IntervalEnds(value, *_of_shares(shares[0].T, shares[1].T, counts, crossed, confidence))
    else:
        of, step = np.ones(len(CELLS)), _STEP * counts.sum(axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            more = [_of_cells(metric, counts + step[..., None] * side, "nan") for side in sides]
            slope = np.stack([(each - value) / step for each in more], axis=-1)
            share = _rests_on(metric, counts) / counts.sum(axis=-1)
    variance = np.einsum("...i,...ij,...j->...", slope, crossed, slope)
    spread = _spread(variance, of, counts, crossed, share)
    return IntervalEnds(value, *interval_within(value, spread, metric.range, confidence))


def _of_shares(
    right: np.ndarray, of: np.ndarray, counts: np.ndarray, crossed: np.ndarray, confidence: float
) -> tuple[np.ndarray, np.ndarray]:
    """The interval of a mean of rates that are the more alike, the more clusters reach across them.

    Args:
        right: which cells each rate counts, rates × `CELLS`.
        of: and of which.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        value = (counts @ right.T) / (counts @ of.T)
    slope = np.stack([_slope(*each, counts) for each in zip(right, of, strict=True)], axis=-2)
    covariance = np.einsum("...ai,...ij,...bj->...ab", slope, crossed, slope)
    ends = []
    for place, mine in enumerate(of):
        spread = _spread(covariance[..., place, place], mine, counts, crossed)
        spread = spread._replace(  # of a single cluster nothing is known but that it is one
            variance=np.nan_to_num(spread.variance), clusters=np.full(spread.clusters.shape, 2.0)
        )
        ends.append(clustered_wilson(value[..., place], spread, confidence))
    low, high = (np.stack(each, axis=-1) for each in zip(*ends, strict=True))
    low, high = mean_of_shares(value, low, high, correlation_of(covariance))
    whole = _spread(np.zeros(value.shape[:-1]), np.ones(len(CELLS)), counts, crossed)
    return tuple(np.where(np.isnan(whole.variance), np.nan, end) for end in (low, high))  # type: ignore[return-value]


def _slope(right: np.ndarray, of: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """By how much a rate changes with each cell: … × `CELLS`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        whole = (counts @ of)[..., None]
        return np.asarray((right - (counts @ right)[..., None] / whole * of) / whole)


def _spread(
    variance: np.ndarray, of: np.ndarray, counts: np.ndarray, crossed: np.ndarray, share: np.ndarray | float = 1.0
) -> Spread:
    """How far a value may be off, whose slopes have this variance.

    Args:
        of: which cells it is about.
        share: of these, the one that it rests on.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        effective = np.square(counts @ of) / np.einsum("i,...ij,j->...", of, crossed, of)
        variance = variance * effective / (effective - 1)
    several = effective > 1 + _STEP
    variance = np.where(several, np.where(variance > _ALIKE, variance, 0.0), np.nan)
    return Spread(variance, np.where(several, effective, 1.0), np.minimum(effective, effective * share))


def _of_classes(metric: OfCounts, counts: np.ndarray) -> ClassCounts:
    """What the two classes come to: counts replicates × `CELLS`."""
    return class_counts(metric.arranged(metric.prepare(_ROWS)), counts.astype(np.float64))


def _left_out(metric: Metric, unique: np.ndarray, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    value = _of_cells(metric, unique, "nan")
    without = np.stack(
        [_of_cells(metric, np.maximum(unique - one, 0), "nan") for one in np.eye(len(CELLS), dtype=np.int64)]
    )
    n, often = unique.sum(axis=1).astype(np.float64), unique.T
    known = np.where(often > 0, without, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (often * known).sum(axis=0) / n
        variance = (n - 1) / n * (often * np.square(np.where(often > 0, known - mean, 0.0))).sum(axis=0)
    basis = _rests_on(metric, unique)
    return interval_within(value, Spread(variance, n, basis), metric.range, confidence)


def _rests_on(metric: Metric, counts: np.ndarray) -> np.ndarray:
    """How many rows the value of each group is about: counts … × `CELLS` → …."""
    rate, n = _rate(metric), counts.sum(axis=-1)
    if rate:
        return np.asarray(counts @ rate[1])
    assert isinstance(metric, Confusion)
    unique, place = np.unique(counts.reshape(-1, len(CELLS)), axis=0, return_inverse=True)
    rows = metric.arranged(metric.prepare(_ROWS))
    with np.errstate(divide="ignore", invalid="ignore"):
        basis = [min(metric.basis(rows, each), 1.0) if each.sum() else 0.0 for each in unique.astype(np.float64)]
    return np.asarray(n * np.array(basis)[place.ravel()].reshape(n.shape))


def _of_rows(
    metric: Metric, given: Confidences, model: str, groups: Groups, confidence: float | None, undefined: Undefined
) -> IntervalEnds:
    """The value of each group of a metric of confidences."""
    found = _judged(metric, given, model, groups, confidence)
    value = np.nan_to_num(found.value) if undefined == "zero" and metric.kind == _A_RATE else found.value
    return IntervalEnds(value, found.low, found.high)


def _judged(metric: Metric, given: Confidences, model: str, groups: Groups, confidence: float | None) -> Values:
    there = groups.code >= 0
    columns = {
        TRUTH: given.truth[there].astype(np.int64),
        CONFIDENCE: given.models[model][there],
        LABELS: np.array([False, True], np.object_),
        INDEX: np.flatnonzero(there),
    }
    weighted = groups.weight is not None
    chosen = type(metric)(label=True, scored_by="positive", confidence=confidence, weighted=weighted)  # type: ignore[call-arg]
    together = columns[INDEX] if groups.cluster is None else groups.cluster[there]
    prepared = {**chosen.prepare(columns), CLUSTER: together.astype(np.uint64)}
    if groups.weight is not None:
        prepared[WEIGHT] = groups.weight[there]
    state = chosen.state(prepared, groups.code[there], len(groups.names))
    return chosen.compute(state)


_ROWS: Final[Columns] = {
    TRUTH: np.array([truth for truth, _ in CELLS], np.int64),
    PREDICTION: np.array([decided for _, decided in CELLS], np.int64),
    VALUE: np.array([truth == decided for truth, decided in CELLS], np.float64),
    LABELS: np.array([False, True], np.object_),
    INDEX: np.arange(len(CELLS)),
}

_EXAMPLE: Final = "['accuracy', 'equalized_odds difference by sex']"

_STEP: Final = 1e-6
"""By which share of all rows a cell is made larger, for the slope of a value."""

_ALIKE: Final = 1e-20
"""A variance that is one of rounding."""

_A_RATE: Final = "average_precision"
"""A mean of rates, which are 0 without rows; the area under the ROC curve is none, and stays undefined."""

_WRITTEN: Final = re.compile(r"(?P<metric>\w+)(?:\((?P<scorer>[^()]+)\))?(?:\s+(?P<disparity>\w+)\s+by\s+(?P<by>.+))?")
