"""Differences of metrics that are no mean of one number per row: F1, areas under curves, R², average precision.

The value of both sides is computed from the rows that both have, and again without each block of examples, the same on
both sides. See `metrics.stats.paired_change` for the interval that follows, and docs/intervals.md for its coverage.
"""

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Final

import numpy as np

from evaluand.aggregation.groups import prepare_rows, shown_fill, unit_rows
from evaluand.comparison.difference import POWER, Difference, count_pairs, row_weights
from evaluand.comparison.pairing import PairedRows
from evaluand.metrics.base.left_out import Blocks, LeftOut
from evaluand.metrics.base.metric import CLUSTER, LABELS, WEIGHT, WEIGHTLESS, Columns, Fill, Metric
from evaluand.metrics.stats.intervals import t_quantile
from evaluand.metrics.stats.paired_change import ChangeOfEnds, PairedChange

METHOD: Final = "jackknife"
_UNBOUNDED: Final = (-math.inf, math.inf)


Computed = dict[tuple[int, bytes], LeftOut]
"""What is known of a side over some rows, so that it is computed once for all its pairs."""


def metric_difference(
    rows: PairedRows, a: int, b: int, confidence: float, computed: Computed | None = None
) -> Difference:
    """Compares side `b` with side `a` over the rows of one group, by a metric of any kind.

    Args:
        rows: paired rows, see `pairing.pair_rows`.
        confidence: of the interval.
        computed: of other pairs of the same rows; filled in.
    """
    counts, found = count_pairs(rows, a, b), MetricSample.from_rows(rows, a, b, computed)
    change = found.change
    low, high = change.interval(confidence)
    return Difference(
        **counts,
        clusters=None if rows.cluster is None and found.clusters == counts["n_used"] else found.clusters,
        binary=False,
        value_a=change.a,
        value_b=change.b,
        difference=change.value,
        low=low,
        high=high,
        interval=METHOD,
        bootstrap_low=math.nan,
        bootstrap_high=math.nan,
        worst=_extreme_difference(rows, a, b, change.value, "worst"),
        best=_extreme_difference(rows, a, b, change.value, "best"),
        p=change.p,
        test=METHOD,
        p_permutation=math.nan,
        permutation="none",
        won=None,
        tied=None,
        lost=None,
        effect=math.nan,
        detectable=_detectable(change, confidence),
        reason=_reason(counts, found),
    )


def metric_value(rows: PairedRows, side: int) -> float:
    """The value of one side over paired rows; NaN where undefined."""
    rows = rows.take(row_weights(rows, rows.metric) > 0)
    return _value(rows, side, rows.metric, shown_fill(rows.metric))


@dataclass(frozen=True)
class MetricSample:
    """The values of two sides over the rows that both have.

    Attributes:
        change: from one value to the other.
        clusters: the number of independent examples or clusters.
        span: the largest possible distance of two values; infinite where unknown.
        fault: why a value, which is defined, has no interval; None where nothing speaks against one.
    """

    change: PairedChange
    clusters: int
    span: float
    fault: str | None = None

    @classmethod
    def from_rows(cls, rows: PairedRows, a: int, b: int, computed: Computed | None = None) -> "MetricSample":
        metric, computed = rows.metric, {} if computed is None else computed
        chosen = rows.known[a] & rows.known[b] & (row_weights(rows, metric) > 0)
        used, key = rows.take(chosen), chosen.tobytes()
        keys, place = np.unique(used.example if used.cluster is None else used.cluster, return_inverse=True)
        span = metric.range[1] - metric.range[0]
        clusters, n = len(keys), min(len(keys), metric.most_blocks(len(place)))
        if clusters < 2:
            value_a, value_b = (_value(used, side, metric, shown_fill(metric)) for side in (a, b))
            none = np.empty(0)
            return cls(PairedChange(value_a, value_b, none, none, metric.range, 0.0), clusters, span)
        for side in (a, b):
            if (side, key) not in computed:
                computed[side, key] = _leave_out(used, side, metric, Blocks(place % n, n))
        of_a, of_b = computed[a, key], computed[b, key]
        return cls(paired_change(of_a, of_b, metric, clusters), clusters, span, of_a.reason[0] or of_b.reason[0])

    @property
    def value(self) -> float:
        return self.change.value

    def interval(self, confidence: float) -> tuple[float, float]:
        low, high = self.change.interval(confidence)
        return max(low, -self.span), min(high, self.span)

    def bounds(self, level: float) -> tuple[float, float]:
        """One-sided bounds at a level such as 0.95."""
        return self.interval(2 * level - 1)


def paired_change(a: LeftOut, b: LeftOut, metric: Metric, clusters: int) -> PairedChange:
    """The change of the first group's value, over so many independent examples or clusters."""
    rests_on = min(float(a.basis[0]), float(b.basis[0])) * clusters
    known = float(a.value[0]), float(b.value[0]), a.without[:, 0], b.without[:, 0]
    if a.ends is None or b.ends is None:
        within = metric.range if metric.like_share else _UNBOUNDED
        change = PairedChange(*known, within, rests_on)
        if a.parts is None or a.expected is None or b.expected is None:
            return change
        expected = float(a.expected[0]) * clusters, float(b.expected[0]) * clusters
        return replace(change, expected=expected, parts=a.parts[:, 0])
    ends_a, ends_b = a.ends[0], b.ends[0]
    if ends_a is None or ends_b is None:
        nothing = np.empty(0)
        return PairedChange(*known[:2], nothing, nothing, metric.range, rests_on)
    return ChangeOfEnds(*known, metric.range, rests_on, metric.range[0], ends_a=ends_a, ends_b=ends_b)


def _leave_out(rows: PairedRows, side: int, metric: Metric, blocks: Blocks) -> LeftOut:
    columns, row = read_columns(rows, side, metric, shown_fill(metric))
    return metric.leave_out(columns, np.zeros(len(row), np.int64), 1, blocks._replace(of_row=blocks.of_row[row]))


def _value(rows: PairedRows, side: int, metric: Metric, fill: Fill | None) -> float:
    columns, row = read_columns(rows, side, metric, fill)
    return float(metric.compute(metric.state(columns, np.zeros(len(row), np.int64), 1)).value[0])


def read_columns(rows: PairedRows, side: int, metric: Metric, fill: Fill | None) -> tuple[Columns, np.ndarray]:
    """The columns that a metric reads of paired rows on one side, and the place of each among the rows."""
    assert rows.unit is not None
    table, units = rows.sides[side]
    columns, unit = unit_rows(metric, table, prepare_rows(metric, table, units)[0], units, fill)
    place = np.full(len(units.first), -1)
    place[rows.unit[side]] = np.arange(len(rows.group))
    row = place[unit]
    if (row < 0).any():
        chosen = np.flatnonzero(row >= 0)
        row = row[chosen]
        columns = {name: column if name == LABELS else column[chosen] for name, column in columns.items()}
    extra = {CLUSTER: rows.example if rows.cluster is None else rows.cluster, WEIGHT: row_weights(rows, metric)}
    return {**columns, **{name: column[row] for name, column in extra.items()}}, row


def _extreme_difference(rows: PairedRows, a: int, b: int, value: float, end: Fill) -> float:
    """The difference if all missing rows counted for or against B; NaN where their values have no bound."""
    metric = rows.metric
    asked = rows.asked[a] & rows.asked[b]
    if not (rows.unscored[a] | rows.unscored[b])[asked].any():
        return value
    if not all(map(math.isfinite, metric.ends)):
        return math.nan
    rows = rows.take(asked & (row_weights(rows, metric) > 0))
    other: Fill = "best" if end == "worst" else "worst"
    return _value(rows, b, metric, end) - _value(rows, a, metric, other)


def _detectable(change: PairedChange, confidence: float) -> float:
    """The difference that as many rows detect in 80 of 100 cases, at the observed spread."""
    if not change.error > 0:
        return math.nan
    quantile = float(t_quantile(confidence, np.array([change.degrees]))[0])
    return (quantile + NormalDist().inv_cdf(POWER)) * change.error


def _reason(counts: dict[str, int], sample: MetricSample) -> str | None:
    change = sample.change
    if counts["n"] == 0:
        return "no row was asked of both"
    if counts["n_used"] == 0:
        return "no row has a score on both sides"
    if sample.clusters == 0:
        return WEIGHTLESS
    if math.isnan(change.value):
        sides = [name for name, value in (("a", change.a), ("b", change.b)) if math.isnan(value)]
        return f"the metric is undefined for these rows of {' and '.join(sides)}"
    if change.has_interval:
        return None
    if sample.clusters == 1:
        return "one row has no interval" if counts["n_used"] == 1 else "one cluster has no interval"
    if sample.fault:
        return sample.fault
    if change.error == 0:
        return "no interval: leaving any row out changes nothing"
    return "no interval: without a few rows a side has no value"
