"""Differences of disparities: how far two systems differ in how they treat groups, over the examples that both have.

As for other metrics (`metric_differences`), both disparities are computed again without each example or cluster.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final, Literal, NamedTuple

import numpy as np

from evaluand.aggregation.disparity import SMALL
from evaluand.aggregation.groups import shown_fill
from evaluand.comparison.difference import count_pairs, row_weights
from evaluand.comparison.metric_differences import MetricSample, read_columns
from evaluand.comparison.pairing import PairedRows, Pairing
from evaluand.core.errors import SpecError
from evaluand.evaluation.evaluator import Evaluation
from evaluand.metrics.base.left_out import LeftOut
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.stats.disparity import Kind, point_disparity
from evaluand.metrics.stats.paired_change import ChangeOfRatios, PairedChange, ratio_ends

COMPARED: Final[tuple[Kind, ...]] = ("difference", "ratio")
"""The kinds whose differences are compared."""


class DisparityDifference(NamedTuple):
    """How a disparity differs from that of a baseline, for one target.

    Attributes:
        target: None without targets.
        sample: the two disparities; `b` minus `a`.
        counts: of pairs, see `count_pairs`.
        small: compared groups whose values rest on few rows.
        unjudged: groups that are too small to be compared.
    """

    target: str | None
    sample: MetricSample
    counts: dict[str, int]
    small: Sequence[Mapping[str, str]]
    unjudged: Sequence[Mapping[str, str]]


def better_disparity(kind: str) -> Literal["higher", "lower"]:
    """Whether a higher or a lower disparity is better."""
    return "higher" if kind.startswith("ratio") else "lower"


def disparity_differences(
    evaluations: Sequence[Evaluation],
    scorer: str,
    metrics: Sequence[Metric],
    kind: Kind,
    by: Sequence[str],
    smallest: int = 0,
) -> Iterator[DisparityDifference]:
    """The differences of a disparity between two evaluations, by target.

    Groups without a value on a side are left out of both, and rows without a value of an attribute are in no group.

    Args:
        evaluations: the baseline and the other.
        metrics: of several, the largest disparity counts, as for equalized odds.
        kind: one of `COMPARED`.
        by: the attributes whose groups are compared.
        smallest: groups that fewer rows rest on, on either side, are left out.

    Raises:
        SpecError: the scorer, a column or an attribute does not exist, or the metric has no such differences.
    """
    pairing = Pairing(evaluations, scorer, by=by)
    paired = [pairing.rows(metric) for metric in metrics]
    keys = paired[0].keys
    known = np.all([rows.known.all(axis=0) & (row_weights(rows, rows.metric) > 0) for rows in paired], axis=0)
    for target in sorted({key[0] for key in keys}, key=lambda target: target or ""):
        groups = [place for place, key in enumerate(keys) if key[0] == target and None not in key[1:]]
        here = np.isin(paired[0].group, groups)
        parts = [rows.take(here & known) for rows in paired]
        sample, basis = _sample(parts, groups, kind, smallest)
        named = [dict(zip(by, map(str, keys[group][1:]), strict=True)) for group in groups]
        small, unjudged = (basis >= smallest) & (basis < SMALL), basis < smallest
        counts = count_pairs(paired[0].take(here), 0, 1)
        few, left = ([named[place] for place in np.flatnonzero(some)] for some in (small, unjudged))
        yield DisparityDifference(target, sample, counts, few, left)


def _sample(
    parts: Sequence[PairedRows], groups: Sequence[int], kind: Kind, smallest: int
) -> tuple[MetricSample, np.ndarray]:
    """The disparities of both sides, and the rows that each group's values rest on."""
    rows = parts[0]
    keys, cluster = np.unique(rows.example if rows.cluster is None else rows.cluster, return_inverse=True)
    found = [_leave_out(part, groups, cluster) for part in parts] if len(keys) > 1 else []
    basis = np.min([basis for _, basis in found], axis=0) if found else np.zeros(len(groups))
    sides = [left for sides, _ in found for left in sides]
    for left in sides:
        left.value[basis < smallest] = np.nan
    low, high = rows.metric.range
    change = disparity_change(sides[::2], sides[1::2], kind, len(keys))
    return MetricSample.of(change, len(keys), 1.0 if kind == "ratio" else high - low), basis


def _leave_out(
    rows: PairedRows, groups: Sequence[int], cluster: np.ndarray
) -> tuple[tuple[LeftOut, LeftOut], np.ndarray]:
    """The values of groups on both sides, NaN where one has none; and the rows they rest on, on the side with fewer."""
    position = np.searchsorted(groups, rows.group)
    sides, basis = [], []
    for side in (0, 1):
        columns, row = read_columns(rows, side, rows.metric, shown_fill(rows.metric), cluster)
        left = rows.metric.leave_out(columns, position[row], len(groups))
        if left.ends is not None:
            raise SpecError(
                f"a disparity of {rows.metric.kind} has no difference with an interval; compare each group by itself,"
                " or the disparity of another metric"
            )
        sides.append(left)
        basis.append(left.basis * np.bincount(position[row], minlength=len(groups)))
    a, b = sides
    undefined = np.isnan(a.value) | np.isnan(b.value)
    for left in sides:
        left.value[undefined] = np.nan
    return (a, b), np.minimum(*basis)


def disparity_change(a: Sequence[LeftOut], b: Sequence[LeftOut], kind: Kind, n: int) -> PairedChange:
    """The change of a disparity of groups, the worst of some metrics, of n examples or clusters; by side and metric."""
    if not a:
        return PairedChange(math.nan, math.nan, np.empty(0), np.empty(0), _UNBOUNDED, n)
    value_a, value_b = (float(_disparity([left.value[None] for left in side], kind)[0]) for side in (a, b))
    without_a, without_b = (_disparities_without(side, kind) for side in (a, b))
    edge, distances = 1.0 if kind == "ratio" else 0.0, sum(math.comb(len(left.value), 2) for left in a)
    known = value_a, value_b, without_a, without_b, _UNBOUNDED, n, edge, distances
    if kind == "difference" or not (min(value_a, value_b) > 0 and np.isfinite(without_a + without_b).all()):
        return PairedChange(*known)  # a ratio of 0 has no logarithm
    ends_a, ends_b = partial(ratio_ends, value_a, without_a), partial(ratio_ends, value_b, without_b)
    return ChangeOfRatios(*known, ends_a=ends_a, ends_b=ends_b)


def _disparities_without(metrics: Sequence[LeftOut], kind: Kind) -> np.ndarray:
    """The disparity without each cluster; NaN where a group loses its value, which is not left out."""
    n = metrics[0].n
    step, found = max(1, _AT_ONCE // max(len(metrics[0].value), 1)), np.empty(n)
    for first in range(0, n, step):
        last = min(first + step, n)
        values = [left.of_clusters(first, last) for left in metrics]
        for table, left in zip(values, metrics, strict=True):
            known = ~np.isnan(left.value)
            table[:, ~known] = np.nan
            table[np.isnan(table[:, known]).any(axis=1)] = np.nan
        found[first:last] = _disparity(values, kind)
    return found


def _disparity(values: Sequence[np.ndarray], kind: Kind) -> np.ndarray:
    """The disparity of the groups, the worst of all metrics: replicates × groups for each metric → replicates."""
    each = np.array([point_disparity(one, kind) for one in values])
    return np.asarray(each.max(axis=0) if kind == "difference" else each.min(axis=0))


_UNBOUNDED: Final = (-math.inf, math.inf)
_AT_ONCE: Final = 1 << 22  # values of groups in memory
