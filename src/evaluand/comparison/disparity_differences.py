"""Differences of disparities: how far two systems differ in how they treat groups, over the examples that both have.

As for other metrics (`metric_differences`), both disparities are computed again without each block of examples.
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
from evaluand.metrics.base.left_out import Blocks
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
    keys, place = np.unique(rows.example if rows.cluster is None else rows.cluster, return_inverse=True)
    n = max(min(len(keys), _MOST_VALUES // max(len(groups), 1)), 1)
    blocks = Blocks(place % n, n)
    found = [_values(part, groups, blocks) for part in parts] if len(keys) > 1 else []
    basis = np.min([rows for *_, rows in found], axis=0) if found else np.zeros(len(groups))
    for side in (side for a, b, _ in found for side in (a, b)):
        side[:, basis < smallest] = np.nan
    low, high = rows.metric.range
    change = disparity_change([(a, b) for a, b, _ in found], kind, len(keys))
    return MetricSample.of(change, len(keys), 1.0 if kind == "ratio" else high - low), basis


def disparity_change(values: Sequence[tuple[np.ndarray, np.ndarray]], kind: Kind, n: int) -> PairedChange:
    """The change of a disparity, the worst of some metrics, of n examples or clusters.

    Args:
        values: by metric and side, those of the groups (the first row), and those without each block.
    """
    if not values:
        return PairedChange(math.nan, math.nan, np.empty(0), np.empty(0), _UNBOUNDED, n)
    a, b = (_disparity([one[side] for one in values], kind) for side in (0, 1))
    edge, distances = 1.0 if kind == "ratio" else 0.0, sum(math.comb(one.shape[1], 2) for one, _ in values)
    known = float(a[0]), float(b[0]), a[1:], b[1:], _UNBOUNDED, n, edge, distances
    if kind == "difference" or not (min(known[:2]) > 0 and np.isfinite(a).all() and np.isfinite(b).all()):
        return PairedChange(*known)  # a ratio of 0 has no logarithm
    ends_a, ends_b = (partial(ratio_ends, float(of[0]), of[1:]) for of in (a, b))
    return ChangeOfRatios(*known, ends_a=ends_a, ends_b=ends_b)


def _values(rows: PairedRows, groups: Sequence[int], blocks: Blocks) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The values of groups on both sides, and the rows that they rest on, on the side with fewer.

    The values of all rows are first, then those without each block; NaN where one side has none.
    """
    position = np.searchsorted(groups, rows.group)
    sides, basis = [], []
    for side in (0, 1):
        columns, row = read_columns(rows, side, rows.metric, shown_fill(rows.metric))
        left = rows.metric.leave_out(columns, position[row], len(groups), blocks._replace(of_row=blocks.of_row[row]))
        if left.ends is not None:
            raise SpecError(
                f"a disparity of {rows.metric.kind} has no difference with an interval; compare each group by itself,"
                " or the disparity of another metric"
            )
        sides.append(np.vstack([left.value[None], left.without]))
        basis.append(left.basis * np.bincount(position[row], minlength=len(groups)))
    undefined = np.isnan(sides[0][0]) | np.isnan(sides[1][0])
    for each in sides:
        each[np.isnan(each[:, ~undefined]).any(axis=1)] = np.nan  # a group that loses its value is not left out
        each[:, undefined] = np.nan
    return sides[0], sides[1], np.minimum(*basis)


def _disparity(values: Sequence[np.ndarray], kind: Kind) -> np.ndarray:
    """The disparity of the groups, the worst of all metrics: replicates × groups for each metric → replicates."""
    each = np.array([point_disparity(one, kind) for one in values])
    return np.asarray(each.max(axis=0) if kind == "difference" else each.min(axis=0))


_UNBOUNDED: Final = (-math.inf, math.inf)
_MOST_VALUES: Final = 1 << 22
