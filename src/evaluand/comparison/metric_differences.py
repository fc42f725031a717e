"""Differences of metrics that are no mean of one number per row: F1, areas under curves, R², average precision.

The value of both sides is computed from the rows that both have, and again without each example or cluster, the same on
both sides. See `metrics.stats.paired_change` for the interval that follows, and docs/intervals.md for its coverage.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import numpy as np

from evaluand.aggregation.groups import MetricRows, shown_fill
from evaluand.comparison.difference import Measured, is_weighted, row_weights
from evaluand.comparison.pairing import PairedRows
from evaluand.metrics.base.left_out import LeftOut
from evaluand.metrics.base.metric import CLUSTER, LABELS, WEIGHT, WEIGHTLESS, Columns, Fill, Metric
from evaluand.metrics.stats.paired_change import ChangeOfEnds, PairedChange

_UNBOUNDED: Final = (-math.inf, math.inf)


Computed = dict[tuple[int, bytes], LeftOut]
"""What is known of a side over some rows, so that it is computed once for all its pairs."""


def metric_value(rows: PairedRows, side: int) -> float:
    """The value of one side over paired rows; NaN where undefined."""
    rows = rows.take(row_weights(rows, rows.metric) > 0)
    return _value(rows, side, rows.metric, shown_fill(rows.metric))


@dataclass(frozen=True, kw_only=True, eq=False)
class MetricSample(Measured):
    """The difference of a metric of any kind over the rows that both have.

    Attributes:
        change: from one value to the other.
        undefined: why a value, which is defined, has no interval; None where nothing speaks against one.
    """

    change: PairedChange
    undefined: str | None = None
    method: ClassVar[str] = "jackknife"

    @classmethod
    def of(cls, change: PairedChange, clusters: int, span: float, **more: Any) -> MetricSample:
        more |= {"value_a": change.a, "value_b": change.b, "value": change.value}
        return cls(clusters=clusters, span=span, change=change, **more)

    @classmethod
    def from_rows(
        cls, rows: PairedRows, a: int, b: int, computed: Computed | None = None, heaviest: float | None = None
    ) -> MetricSample:
        metric, computed = rows.metric, {} if computed is None else computed
        chosen = rows.known[a] & rows.known[b] & (row_weights(rows, metric) > 0)
        used, key = rows.take(chosen), chosen.tobytes()
        keys, place = np.unique(used.example if used.cluster is None else used.cluster, return_inverse=True)
        span = metric.range[1] - metric.range[0]
        clusters = len(keys)
        if clusters < 2:
            value_a, value_b = (_value(used, side, metric, shown_fill(metric)) for side in (a, b))
            none, why = np.empty(0), f"one {'row' if len(place) == 1 else 'cluster'} has no interval"
            change = PairedChange(value_a, value_b, none, none, metric.range, 0.0)
            return cls.of(change, clusters, span, undefined=why, heaviest=heaviest)
        for side in (a, b):
            if (side, key) not in computed:
                columns, row = read_columns(used, side, metric, shown_fill(metric), place)
                computed[side, key] = metric.leave_out(columns, np.zeros(len(row), np.int64), 1)
        of_a, of_b = computed[a, key], computed[b, key]
        weight = np.bincount(place, row_weights(used, metric)) if is_weighted(metric) else None
        change = paired_change(of_a, of_b, metric, clusters, weight)
        return cls.of(change, clusters, span, undefined=of_a.reason[0] or of_b.reason[0], heaviest=heaviest)

    @property
    def fault(self) -> str | None:
        change = self.change
        if self.clusters == 0:
            return WEIGHTLESS
        if math.isnan(change.value):
            sides = [name for name, value in (("a", change.a), ("b", change.b)) if math.isnan(value)]
            return f"the metric is undefined for these rows of {' and '.join(sides)}"
        if change.has_interval:
            return None
        if self.undefined or change.error != 0:
            return self.undefined or "no interval: without a few rows a side has no value"
        return "no interval: leaving any row out changes nothing"

    def ends(self, confidence: float) -> tuple[float, float]:
        low, high = self.change.interval(confidence)
        return max(low, -self.span), min(high, self.span)

    @property
    def p_of_ends(self) -> float:
        return self.change.p

    @property
    def contributions(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.change.without_a, self.change.without_b, np.ones(len(self.change.without_a))

    def extreme(self, rows: PairedRows, a: int, b: int, end: Fill) -> float:
        metric, asked = rows.metric, rows.asked[a] & rows.asked[b]
        if not (rows.unscored[a] | rows.unscored[b])[asked].any():
            return self.value
        if not all(map(math.isfinite, metric.ends)):
            return math.nan
        rows = rows.take(asked & (row_weights(rows, metric) > 0))
        other: Fill = "best" if end == "worst" else "worst"
        return _value(rows, b, metric, end) - _value(rows, a, metric, other)

    def detectable(self, confidence: float) -> float:
        error = self.change.error
        return self.with_power(error, self.change.degrees, confidence) if error > 0 else math.nan


def paired_change(
    a: LeftOut, b: LeftOut, metric: Metric, clusters: int, weight: np.ndarray | None = None
) -> PairedChange:
    """The change of one group's value, over so many independent examples or clusters, with weights if given."""
    effective: float = clusters
    if weight is not None:
        weight = weight / weight.max()
        effective = float(weight.sum() ** 2 / (weight @ weight))
        weight = weight if a.n == clusters else None  # of sets of clusters each has many
    rests_on = min(float(a.basis[0]), float(b.basis[0])) * effective
    without_a, without_b = (side.of_clusters(0, side.n)[:, 0] for side in (a, b))
    known = float(a.value[0]), float(b.value[0]), without_a, without_b
    if a.ends is None or b.ends is None:
        within = metric.range if metric.like_share else _UNBOUNDED
        change = PairedChange(*known, within, rests_on, weight=weight)
        if a.parts is None or a.expected is None or b.expected is None:
            return change
        expected = float(a.expected[0]) * effective, float(b.expected[0]) * effective
        return replace(change, expected=expected, parts=a.parts)
    ends_a, ends_b = a.ends[0], b.ends[0]
    if ends_a is None or ends_b is None:
        nothing = np.empty(0)
        return PairedChange(*known[:2], nothing, nothing, metric.range, rests_on)
    return ChangeOfEnds(*known, metric.range, rests_on, metric.range[0], ends_a=ends_a, ends_b=ends_b)


def _value(rows: PairedRows, side: int, metric: Metric, fill: Fill | None) -> float:
    columns, row = read_columns(rows, side, metric, fill)
    return float(metric.compute(metric.state(columns, np.zeros(len(row), np.int64), 1)).value[0])


def read_columns(
    rows: PairedRows, side: int, metric: Metric, fill: Fill | None, cluster: np.ndarray | None = None
) -> tuple[Columns, np.ndarray]:
    """The columns that a metric reads of paired rows on one side, with other clusters if given; each row's place."""
    assert rows.unit is not None
    table, units = rows.sides[side]
    columns, unit = MetricRows(metric, table, units).filled(fill)
    place = np.full(len(units.first), -1)
    place[rows.unit[side]] = np.arange(len(rows.group))
    row = place[unit]
    if (row < 0).any():
        chosen = np.flatnonzero(row >= 0)
        row = row[chosen]
        columns = {name: column if name == LABELS else column[chosen] for name, column in columns.items()}
    own = rows.example if rows.cluster is None else rows.cluster
    extra = {CLUSTER: own if cluster is None else cluster, WEIGHT: row_weights(rows, metric)}
    return {**columns, **{name: column[row] for name, column in extra.items()}}, row
