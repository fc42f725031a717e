"""Objectives of a trade-off, a metric or the disparity of a metric between groups, and limits on their values.

An objective evaluates an existing metric at a threshold. The counts of decisions are the weights of four rows, one for
each truth and decision, and a metric of weighted rows is computed from them for all thresholds at once. Leaving out one
row of each cell gives the jackknife's interval in closed form.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import Any, Final, Literal, cast, get_args

import numpy as np

from evaluand.aggregation.disparity import GroupComparison, GroupValues
from evaluand.aggregation.fairness import CRITERIA, Criterion
from evaluand.core import registry
from evaluand.core.errors import SpecError, kind_of, nearest
from evaluand.core.key_columns import INDEX
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
from evaluand.metrics.names import is_name, resolve_metric, with_parameters
from evaluand.metrics.stats.disparity import IntervalEnds, Kind, disparity, point_disparity
from evaluand.metrics.stats.intervals import (
    ShareInterval,
    Spread,
    clustered_wilson,
    correlation_of,
    interval_within,
    mean_of_shares,
    share_interval,
)
from evaluand.tradeoff.arguments import read_list
from evaluand.tradeoff.confidences import CELLS, Confidences
from evaluand.tradeoff.front import ROUNDING
from evaluand.tradeoff.short_names import full_name

Undefined = Literal["nan", "zero"]
"""The value of a rate without rows. `nan`: undefined, and the group is left out of a disparity. `zero`: 0, without an
interval for any value that rests on it. A ratio of zeros is 0 too under `zero`, and otherwise undefined; of equalized
odds the recall alone decides where no group has a false positive, and under `nan` the false positive rate alone where
no group has a true positive."""

COLUMNS: Final = ("system", "model", "threshold", "trivial")
"""Columns of a point that are not values of objectives."""

DISPARITIES: Final = tuple(kind for kind in get_args(Kind) if not kind.endswith("overall"))


@dataclass(frozen=True)
class Objective:
    """A metric, or a disparity of a metric between groups, that is to be high or low.

    Args:
        metric: a metric of decisions or of confidences, such as `accuracy`, `f_beta`, `roc_auc`; or a criterion of
            fairness, such as `equalized_odds`, whose value is that of its worse rate.
        disparity: how the values of the groups are compared: `difference`, `ratio`, `min` or `max`.
        by: the attributes whose groups are compared, crossed.
        scorer: the scorer whose stored scores the metric reads.
        name: a name for it; its text by default.
        parts: the metrics it is computed from, two for some criteria; by default those of decisions.

    Raises:
        SpecError: there is no such metric, or the metric has no direction or no finite range.

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
        for what, value in (("metric", self.metric), ("name", self.name)):
            if not isinstance(value, str):
                raise SpecError(f"the {what} of an objective must be text and is {kind_of(value)}")
        object.__setattr__(self, "by", tuple(read_list(f"{self.metric}: by", self.by, str, "('sex',)")))
        if (self.disparity is None) != (not self.by):
            raise SpecError(f"{self.metric}: a disparity needs attributes to group by: give both or neither")
        check_disparity(self.metric, self.disparity)
        if self.disparity is None and self.metric in CRITERIA:
            raise SpecError(f"{self.metric} compares groups; write {self.metric} difference by ATTRIBUTE")
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
            raise SpecError(f"{self.metric} has no best or no worst value, so it cannot be an objective")

    @classmethod
    def parse(cls, text: str) -> Objective:
        """From text: `METRIC`, or `METRIC difference|ratio|min|max by ATTRIBUTE[, ATTRIBUTE…]`.

        Where several scorers have stored scores, the metric is `METRIC(SCORER)`.

        Raises:
            SpecError: the text is not an objective.
        """
        return cls(**parse_text(text))

    @property
    def text(self) -> str:
        """The text that `parse` reads."""
        metric = f"{self.metric}({self.scorer})" if self.scorer else self.metric
        return f"{metric} {self.disparity} by {', '.join(self.by)}" if self.disparity else metric

    @property
    def of_confidences(self) -> bool:
        """Whether it is computed from confidences, and so is the same at all thresholds of a model."""
        return isinstance(self.parts[0], OfScores)

    @property
    def direction(self) -> Direction | None:
        """Whether a higher or a lower value is better."""
        fixed: dict[Kind | None, Direction] = {"difference": "lower", "ratio": "higher"}
        return fixed.get(self.disparity, self.parts[0].direction)

    @property
    def range(self) -> tuple[float, float]:
        """The lowest and the highest possible value."""
        low, high = self.parts[0].range
        return {"difference": (0.0, high - low), "ratio": (0.0, 1.0)}.get(self.disparity or "", (low, high))

    def normalise(self, value: np.ndarray) -> np.ndarray:
        """Values scaled to the range: 0 for its lower end, 1 for its upper end."""
        low, high = self.range
        return np.asarray((value - low) / (high - low))

    def loss(self, value: np.ndarray) -> np.ndarray:
        """Values scaled from 0, the ideal, to 1, the worst possible."""
        return 1 - self.normalise(value) if self.direction == "higher" else self.normalise(value)

    def of_counts(self, counts: np.ndarray, undefined: Undefined = "nan") -> np.ndarray:
        """The values of decisions.

        Args:
            counts: any axes × groups × `CELLS`; the groups are those of `by`, or all rows as one.
            undefined: see `Undefined`.
        """
        return self._combine([_cell_values(part, counts, undefined) for part in self.parts], undefined)

    def of_model(self, confidences: Confidences, model: str, undefined: Undefined = "nan") -> float:
        """The value of a model, the same at all thresholds.

        Args:
            confidences: with the attributes of `by`.
            undefined: see `Undefined`.
        """
        value, kind = self._compute_by_group(confidences, model, None).value, self.parts[0].kind
        value = np.nan_to_num(value) if undefined == "zero" and kind == _MEAN_OF_RATES else value
        return float(self._combine([value], undefined))

    def with_interval(
        self, counts: np.ndarray, confidence: float, undefined: Undefined = "nan", products: np.ndarray | None = None
    ) -> IntervalEnds:
        """The values of decisions, each with a pointwise interval.

        Args:
            counts: as for `of_counts`.
            confidence: the confidence level of the intervals.
            undefined: see `Undefined`.
            products: the products of counts from `products_at`, for rows with weights or clusters.
        """
        parts = [_cell_intervals(part, counts, confidence, products) for part in self.parts]
        return self._add_intervals(parts, self.of_counts(counts, undefined), confidence, undefined)

    def of_model_with_interval(
        self, confidences: Confidences, model: str, confidence: float, undefined: Undefined = "nan"
    ) -> IntervalEnds:
        """The value of a model, the same at all thresholds, with its interval."""
        computed = self._compute_by_group(confidences, model, confidence)
        part = IntervalEnds(computed.value, computed.low, computed.high)
        value = np.array(self.of_model(confidences, model, undefined))
        return self._add_intervals([part], value, confidence, undefined)

    def compare_groups(
        self,
        confidences: Confidences,
        model: str,
        counts: np.ndarray,
        confidence: float,
        undefined: Undefined,
        products: np.ndarray | None = None,
    ) -> GroupComparison:
        """The groups of a disparity at each threshold; one entry for all thresholds if computed from confidences.

        Args:
            confidences: with the attributes of `by`.
            counts: thresholds × groups × `CELLS`.
            confidence: the confidence level of the intervals.
            undefined: see `Undefined`.
            products: see `with_interval`.
        """
        names, parts = confidences.groups(self.by).names, self.parts
        if self.of_confidences:
            computed = self._compute_by_group(confidences, model, confidence)
            values = [IntervalEnds(computed.value[None], computed.low[None], computed.high[None])]
            basis = [np.array([[data.get("rests_on", data["n"]) for data in computed.data]])]
        else:
            values = [_cell_intervals(part, counts, confidence, products) for part in parts]
            basis = [_basis(part, counts) for part in parts]
        return GroupComparison(parts, GroupValues(names, values, basis), confidence, as_zero=undefined == "zero")

    def why_undefined(self, confidences: Confidences | None) -> str:
        """The reason why a value is undefined; general where the rows are unknown."""
        if confidences is None:
            return "it is undefined where the points come from"
        if self.disparity is None:
            return "there are no rows to compute it from"
        if self.disparity in ("min", "max"):
            return "no group has a value"
        return f"fewer than two groups have a value{', or all have 0' if self.disparity == 'ratio' else ''}"

    def _compute_by_group(self, confidences: Confidences, model: str, confidence: float | None) -> Values:
        """What a metric of confidences computes for each group."""
        groups = confidences.groups(self.by)
        known = groups.code >= 0
        columns = {
            TRUTH: confidences.truth[known].astype(np.int64),
            CONFIDENCE: confidences.models[model][known],
            LABELS: np.array([False, True], np.object_),
            INDEX: np.flatnonzero(known),
        }
        weighted = groups.weight is not None
        configured = type(self.parts[0])(label=True, scored_by="positive", confidence=confidence, weighted=weighted)  # type: ignore[call-arg]
        cluster = columns[INDEX] if groups.cluster is None else groups.cluster[known]
        prepared = {**configured.prepare(columns), CLUSTER: cluster.astype(np.uint64)}
        if groups.weight is not None:
            prepared[WEIGHT] = groups.weight[known]
        state = configured.state(prepared, groups.code[known], len(groups.names))
        return configured.compute(state)

    def _combine(self, values: Sequence[np.ndarray], undefined: Undefined) -> np.ndarray:
        if not self.disparity:
            return values[0][..., 0]
        kind, fewest = self.disparity, 2 if undefined == "nan" else 1
        if kind in ("min", "max"):
            return point_disparity(values[0], kind, fewest)
        disparities = np.stack([point_disparity(one, kind, fewest) for one in values])
        if undefined == "zero" and not self.of_confidences:
            disparities[0] = np.nan_to_num(disparities[0])
            disparities = np.where(np.isnan(disparities), disparities[0], disparities)
        elif kind == "ratio":  # where all groups have 0 by one rate, the other decides
            zeros = np.stack([point_disparity(one, "max", fewest) == 0 for one in values])
            disparities = np.where(zeros & ~zeros.all(axis=0), np.inf, disparities)
        return np.asarray(disparities.max(axis=0) if self.disparity == "difference" else disparities.min(axis=0))

    def _add_intervals(
        self, parts: Sequence[IntervalEnds], value: np.ndarray, confidence: float, undefined: Undefined
    ) -> IntervalEnds:
        """The value with an interval that holds for whichever groups differ most; none for rates without rows."""
        if self.disparity:
            _, low, high = disparity(parts, self.disparity, confidence, self.parts[0].range).ends
        else:
            low, high = (end[..., 0] for end in parts[0][1:])
        without_rows = np.any([np.isnan(one.value).any(axis=-1) for one in parts], axis=0) & (undefined == "zero")
        return IntervalEnds(value, *(np.where(without_rows, np.nan, end) for end in (low, high)))


def check_disparity(what: str, kind: Any) -> None:
    """Refuses a disparity that objectives do not have; `what` begins the message."""
    if kind not in (None, *DISPARITIES):
        hint = f"{nearest(str(kind), DISPARITIES)}; there are {', '.join(DISPARITIES)}"
        raise SpecError(f"{what}: no disparity is called {kind!r}{hint}")


def parse_text(text: Any) -> dict[str, Any]:
    """The parts of an objective's text: `metric`, `disparity`, `by` and `scorer`."""
    match = _OBJECTIVE.fullmatch(text.strip()) if isinstance(text, str) else None
    if not match:
        hint = _hint_full_name(text) if isinstance(text, str) else ""
        raise SpecError(f"{text!r} is not an objective{hint}; write it as in 'accuracy' or 'recall difference by sex'")
    by = tuple(part.strip() for part in (match["by"] or "").split(",") if part.strip())
    return {**match.groupdict(), "by": by}


def _hint_full_name(text: str) -> str:
    full = full_name(text)
    return f" (did you mean {full!r}?)" if full else ""


def parse_objectives(objectives: str | Objective | Sequence[str | Objective]) -> tuple[Objective, ...]:
    """Objectives from texts."""
    each = read_list("objectives", objectives, str | Objective, _EXAMPLE)
    parsed = tuple(one if isinstance(one, Objective) else Objective.parse(one) for one in each)
    if not parsed:
        raise SpecError(f"there are no objectives; write such as {_EXAMPLE}")
    names = [one.name for one in parsed]
    for name in names:
        if names.count(name) > 1:
            raise SpecError(f"the objective {name!r} occurs twice; leave one out")
    return parsed


@dataclass(frozen=True)
class Limit:
    """A lower or an upper bound on the values of an objective; differences by rounding alone do not count.

    Attributes:
        above: whether the bound is a minimum; otherwise it is a maximum.
        bound: the last value that is allowed.
        text: the limit as the user wrote it.
    """

    name: str
    above: bool
    bound: float
    text: str

    @classmethod
    def parse(cls, text: str, example: str = "accuracy") -> Limit:
        """A limit from text such as `accuracy >= 0.8`; the last sign counts, since names may contain others.

        Args:
            text: an objective, a sign and a bound.
            example: a known objective, for the message.

        Example:
            >>> Limit.parse("recall difference by a<=b <= 0.05").name
            'recall difference by a<=b'
        """
        match = _LIMIT.fullmatch(text)
        try:
            bound = float(match["bound"]) if match else math.nan
        except ValueError:
            bound = math.nan
        if match is None or math.isnan(bound):
            raise SpecError(f"{text!r} is not a limit; write it as in '{example} <= 0.05'")
        return cls(match["name"].strip(), match["sign"] == ">=", bound, text)

    def allows(self, values: np.ndarray, objective: Objective) -> np.ndarray:
        """Which values of the objective are within the limit."""
        rounding = rounding_of(objective)
        return values >= self.bound - rounding if self.above else values <= self.bound + rounding

    def describe_misses(self, values: np.ndarray, objective: Objective) -> str:
        """How many values are within the limit, and the range of all values, in words."""
        n = int(self.allows(values, objective).sum())
        return f"{self.text!r} is met by {n}, and the values lie between {values.min():.4g} and {values.max():.4g}"


def rounding_of(objective: Objective) -> float:
    """The largest distance at which two values of an objective count as equal."""
    low, high = objective.range
    return ROUNDING * (high - low)


def group_rates(
    metric: Metric, counts: np.ndarray, confidence: float, products: np.ndarray | None = None
) -> tuple[IntervalEnds, np.ndarray | None, np.ndarray]:
    """The value of a metric in each group, with intervals; counts are groups × `CELLS`.

    Also the numerator and the denominator of each rate, in rows; for a metric that is not a rate None, and all rows.
    """
    rate, ends = _rate(metric), _cell_intervals(metric, counts, check_confidence("rates", confidence), products)
    return (ends, counts @ rate[0], counts @ rate[1]) if rate else (ends, None, counts.sum(axis=-1))


def _metric(name: str) -> Metric:
    """A metric of two classes, with the positive one as its label."""
    if not is_name(name) and (hint := _hint_full_name(name) or nearest(name, CRITERIA)):
        raise SpecError(f"no metric is called {name!r}{hint}")
    found = resolve_metric(name)
    kind = registry.find("metrics", found.kind)
    required = (one.name for one in fields(kind) if one.init and one.default is one.default_factory is MISSING)
    if not found.parameters.keys() >= {*required}:
        raise SpecError(f"{name} is not a metric of decisions between two classes, as it has required parameters")
    settings: dict[str, Any] = {"label": True, "scored_by": "positive"}
    known = {key: value for key, value in settings.items() if key in kind.__dataclass_fields__}
    metric: Metric = kind(**with_parameters(found.parameters, known))
    of_rows = metric.averages and {*metric.columns} <= {TRUTH, PREDICTION, VALUE}
    of_scores = isinstance(metric, OfScores) and isinstance(metric, WeightedRowsMetric)
    if not (of_rows or of_scores or isinstance(metric, Confusion)):
        raise SpecError(
            f"{name} is not a metric of decisions between two classes; use such as accuracy, f_beta or roc_auc"
        )
    return metric


def _cell_values(metric: Metric, counts: np.ndarray, undefined: Undefined = "nan") -> np.ndarray:
    """The value of each group: counts … × groups × `CELLS` → … × groups."""
    rate = _rate(metric)
    with np.errstate(divide="ignore", invalid="ignore"):
        if rate:
            found = (counts @ rate[0]) / (counts @ rate[1])
        else:
            assert isinstance(metric, Confusion)
            weight = counts.reshape(-1, len(CELLS)).astype(np.float64)
            found = metric.value(metric.arranged(metric.prepare(_ROWS)), weight).reshape(counts.shape[:-1])
    return np.nan_to_num(found) if undefined == "zero" else np.asarray(found)


@cache
def _rate(metric: Metric) -> tuple[np.ndarray, np.ndarray] | None:
    """The cells in the numerator and in the denominator of a rate; None for metrics that are not rates."""
    if isinstance(metric, OfCounts):
        found = metric.share_of(_class_counts(metric, np.eye(len(CELLS))))
        return None if found is None else (found[0].astype(np.int64), found[1].astype(np.int64))
    if isinstance(metric, Confusion):
        return None
    return metric.prepare(_ROWS)[VALUE].astype(np.int64), np.ones(len(CELLS), np.int64)


def _cell_intervals(
    metric: Metric, counts: np.ndarray, confidence: float, products: np.ndarray | None = None
) -> IntervalEnds:
    """The value of each group with its interval: that of shares or means of rates, the jackknife's of others.

    The denominator of a rate is taken as fixed.
    """
    if products is not None:
        return _clustered_intervals(metric, counts, products, confidence)
    unique, place = np.unique(counts.reshape(-1, len(CELLS)), axis=0, return_inverse=True)
    value = _cell_values(metric, unique)
    rate = _rate(metric)
    kind: ShareInterval = getattr(metric, "interval", "wilson")
    ends = share_interval(kind, unique @ rate[0], unique @ rate[1], confidence) if rate else None
    if ends is None and isinstance(metric, OfCounts):
        ends = metric.bounds_of(_class_counts(metric, unique), confidence)
    low, high = ends or _jackknife_interval(metric, unique, confidence)
    return IntervalEnds(*(array[place.ravel()].reshape(counts.shape[:-1]) for array in (value, low, high)))


def _clustered_intervals(metric: Metric, counts: np.ndarray, products: np.ndarray, confidence: float) -> IntervalEnds:
    """The value of each group with the interval from the spread between clusters.

    A value is linearised about its counts, so its variance is a sum of products of the counts of clusters: a rate is a
    ratio of two sums over clusters (see `intervals.cluster_variance`); other slopes are finite differences. Most
    metrics of rows leave out blocks of clusters instead, so their intervals are close to these, but not equal.
    """
    value, rate, cells = _cell_values(metric, counts), _rate(metric), np.eye(len(CELLS))
    shares = None if rate or not isinstance(metric, OfCounts) else metric.shares_of(_class_counts(metric, cells))
    if rate:
        slope, share = _rate_slope(*rate, counts), 1.0
        denominator = rate[1].astype(np.float64)
    elif shares is not None:
        return IntervalEnds(value, *_mean_rate_interval(shares[0].T, shares[1].T, counts, products, confidence))
    else:
        denominator, step = np.ones(len(CELLS)), _STEP * counts.sum(axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            shifted = [_cell_values(metric, counts + step[..., None] * cell) for cell in cells]
            slope = np.stack([(each - value) / step for each in shifted], axis=-1)
            share = _basis(metric, counts) / counts.sum(axis=-1)
    variance = np.einsum("...i,...ij,...j->...", slope, products, slope)
    spread = _spread_of(variance, denominator, counts, products, share)
    return IntervalEnds(value, *interval_within(value, spread, metric.range, confidence))


def _mean_rate_interval(
    right: np.ndarray, of: np.ndarray, counts: np.ndarray, products: np.ndarray, confidence: float
) -> tuple[np.ndarray, np.ndarray]:
    """The interval of a mean of rates, whose correlation comes from clusters that count for several rates.

    Args:
        right: the cells in the numerator of each rate, rates × `CELLS`.
        of: the cells in the denominator.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        value = (counts @ right.T) / (counts @ of.T)
    slope = np.stack([_rate_slope(*each, counts) for each in zip(right, of, strict=True)], axis=-2)
    covariance = np.einsum("...ai,...ij,...bj->...ab", slope, products, slope)
    ends = []
    for place, cells in enumerate(of):
        spread = _spread_of(covariance[..., place, place], cells, counts, products)
        spread = spread._replace(  # a single cluster has no variance
            variance=np.nan_to_num(spread.variance), clusters=np.full(spread.clusters.shape, 2.0)
        )
        ends.append(clustered_wilson(value[..., place], spread, confidence))
    low, high = (np.stack(each, axis=-1) for each in zip(*ends, strict=True))
    low, high = mean_of_shares(value, low, high, correlation_of(covariance))
    overall = _spread_of(np.zeros(value.shape[:-1]), np.ones(len(CELLS)), counts, products)
    return tuple(np.where(np.isnan(overall.variance), np.nan, end) for end in (low, high))  # type: ignore[return-value]


def _rate_slope(right: np.ndarray, of: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The derivatives of a rate by the counts: … × `CELLS`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        total = (counts @ of)[..., None]
        return np.asarray((right - (counts @ right)[..., None] / total * of) / total)


def _spread_of(
    variance: np.ndarray, of: np.ndarray, counts: np.ndarray, products: np.ndarray, share: np.ndarray | float = 1.0
) -> Spread:
    """The spread of a value from the variance of its linearisation.

    Args:
        variance: of the linearised value.
        of: the cells in the value's denominator.
        counts: … × `CELLS`.
        products: the products of counts, see `products_at`.
        share: the share of the denominator that decides the value.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        effective = np.square(counts @ of) / np.einsum("i,...ij,j->...", of, products, of)
        variance = variance * effective / (effective - 1)
    several = effective > 1 + _STEP
    variance = np.where(several, np.where(variance > _ALIKE, variance, 0.0), np.nan)
    return Spread(variance, np.where(several, effective, 1.0), np.minimum(effective, effective * share))


def _class_counts(metric: OfCounts, counts: np.ndarray) -> ClassCounts:
    """The counts of the two classes, from replicates × `CELLS`."""
    return class_counts(metric.arranged(metric.prepare(_ROWS)), counts.astype(np.float64))


def _jackknife_interval(metric: Metric, unique: np.ndarray, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    value = _cell_values(metric, unique)
    without = np.stack(
        [_cell_values(metric, np.maximum(unique - one, 0)) for one in np.eye(len(CELLS), dtype=np.int64)]
    )
    n, often = unique.sum(axis=1).astype(np.float64), unique.T
    known = np.where(often > 0, without, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (often * known).sum(axis=0) / n
        variance = (n - 1) / n * (often * np.square(np.where(often > 0, known - mean, 0.0))).sum(axis=0)
    basis = _basis(metric, unique)
    return interval_within(value, Spread(variance, n, basis), metric.range, confidence)


def _basis(metric: Metric, counts: np.ndarray) -> np.ndarray:
    """The number of rows that decide the value of each group: counts … × `CELLS` → …."""
    rate, n = _rate(metric), counts.sum(axis=-1)
    if rate:
        return np.asarray(counts @ rate[1])
    assert isinstance(metric, Confusion)
    unique, place = np.unique(counts.reshape(-1, len(CELLS)), axis=0, return_inverse=True)
    rows = metric.arranged(metric.prepare(_ROWS))
    with np.errstate(divide="ignore", invalid="ignore"):
        basis = [min(metric.basis(rows, each), 1.0) if each.sum() else 0.0 for each in unique.astype(np.float64)]
    return np.asarray(n * np.array(basis)[place.ravel()].reshape(n.shape))


_ROWS: Final[Columns] = {
    TRUTH: np.array([truth for truth, _ in CELLS], np.int64),
    PREDICTION: np.array([decided for _, decided in CELLS], np.int64),
    VALUE: np.array([truth == decided for truth, decided in CELLS], np.float64),
    LABELS: np.array([False, True], np.object_),
    INDEX: np.arange(len(CELLS)),
}

_EXAMPLE: Final = "['accuracy', 'equalized_odds difference by sex']"

_STEP: Final = 1e-6
"""The step of finite differences, as a share of all rows."""

_ALIKE: Final = 1e-20
"""A variance that comes from rounding alone."""

_MEAN_OF_RATES: Final = "average_precision"
"""A mean of rates, which are 0 without rows under `zero`; the area under the ROC curve stays undefined."""

_LIMIT: Final = re.compile(r"(?P<name>.*)(?P<sign>[<>]=)(?P<bound>.*)", re.DOTALL)

_OBJECTIVE: Final = re.compile(
    r"(?P<metric>\w+)(?:\((?P<scorer>[^()]+)\))?(?:\s+(?P<disparity>\w+)\s+by\s+(?P<by>.+))?"
)


def check_policy(undefined: Any) -> Undefined:
    """The value of `undefined`, checked."""
    if undefined not in get_args(Undefined):
        raise SpecError(f"undefined={undefined!r} must be 'nan', which leaves such groups out, or 'zero'")
    return undefined  # type: ignore[no-any-return]
