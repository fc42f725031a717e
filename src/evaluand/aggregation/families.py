"""Disparities of a request as one family: intervals that allow for all of them.

Of 16 disparities of a fair system, in every third request one has an unadjusted interval that leaves "no disparity"
out. Two kinds of intervals allow for that. Those of `bonferroni` hold at once. Those of `fdr_by` control the false
coverage rate: the share of intervals that do not cover, among the disparities that are found, is on average at most
that of the level, whatever their dependence: Y. Benjamini & D. Yekutieli, "False discovery rate-adjusted multiple
confidence intervals for selected parameters" (JASA 100, 2005).
"""

import math
from collections.abc import Callable, Sequence

from evaluand.aggregation.disparity import DisparityRow
from evaluand.aggregation.group_rules import BONFERRONI, is_beyond_none


def with_family_ends(
    rows: Sequence[DisparityRow], compute: Callable[[float], Sequence[DisparityRow]]
) -> list[DisparityRow]:
    """The disparities of a request with the ends, the size and the method of their family.

    Args:
        compute: computes the same rows with intervals that each make a share of the error of one interval.
    """
    n = sum(not math.isnan(row.low) for row in rows)
    if not n:
        return [*rows]
    joint = compute(1 / n)
    ends = {BONFERRONI: joint}
    if any(row.family_method != BONFERRONI for row in rows):
        ends["fdr_by"] = _selected_ends(joint, compute, n)
    result = []
    for place, row in enumerate(rows):
        low, high = ends[row.family_method][place].low, ends[row.family_method][place].high
        found = is_beyond_none(row.disparity, low, high)
        result.append(row._replace(family_low=low, family_high=high, family_size=n, found=found))
    return result


def _selected_ends(
    joint: Sequence[DisparityRow], compute: Callable[[float], Sequence[DisparityRow]], n: int
) -> Sequence[DisparityRow]:
    """Rows of which as many are found as the share of the error allows for: the most for which that is so."""
    harmonic = sum(1 / rank for rank in range(1, n + 1))
    selected = n
    while True:
        rows = compute(max(selected, 1) / (n * harmonic))
        found = sum(is_beyond_none(row.disparity, row.low, row.high) for row in rows)
        if found >= selected:
            return rows
        selected = found
