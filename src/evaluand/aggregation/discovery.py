"""The groups for which a metric is worst: looked for on one half of the examples, confirmed on the other.

Of many crossed groups some look bad by chance, and those that look worst most of all. So the halves, which are drawn by
a seed, never share a cluster, and intervals come only from the half that was not looked at. They hold at the same time
for all groups that are shown (Bonferroni).
"""

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from evaluand.aggregation.groups import MetricRow, summary_of_shards
from evaluand.aggregation.score_shards import attribute_columns, attribute_values, dataset_of, is_repeated, shards
from evaluand.core.errors import SpecError, nearest
from evaluand.core.key_columns import INDEX
from evaluand.evaluation.evaluator import Evaluation
from evaluand.metrics.base.metric import CLUSTER, Metric
from evaluand.metrics.stats.intervals import normal_quantile, random_bits


class FoundGroup(NamedTuple):
    """A group that looked worse than all rows on the first half, judged on the second.

    Attributes:
        by: attribute → value.
        found: the value on the first half, which is too bad, since the group was chosen by it.
        value: the value on the second half, with its interval.
        low: lower end; the intervals of all groups hold at the same time.
        high: upper end.
        n: scored rows of the group on the second half.
        overall: the value over all rows of the second half.
        confirmed: whether it is worse than that value, allowing for the errors of both and for the number of groups.
    """

    by: dict[str, str | None]
    found: float
    value: float
    low: float
    high: float
    n: int
    overall: float
    confirmed: bool


def discover_groups(
    evaluation: Evaluation,
    scorer: str,
    metric: Metric,
    attributes: Sequence[str],
    *,
    depth: int = 2,
    most: int = 5,
    smallest: int = 30,
    seed: int = 0,
) -> list[FoundGroup]:
    """The groups for which a metric is worst, the most clearly different first.

    Args:
        attributes: whose values, and crossed values, define the groups.
        depth: how many attributes are crossed at most.
        most: the largest number of groups.
        smallest: groups with fewer scored rows on the first half are not looked at.
        seed: of the halves.

    Raises:
        SpecError: the metric has no direction or interval, or there is no such attribute.
    """
    dataset = dataset_of(evaluation)
    for name in attributes:
        if name not in dataset.roles.attributes:
            raise SpecError(f"{name!r} is not an attribute of the dataset{nearest(name, dataset.roles.attributes)}")
    if metric.direction is None or not hasattr(metric, "confidence"):
        raise SpecError(f"{metric.kind} has no {'direction' if metric.direction is None else 'interval'}, so no worst")
    groupings = [each for n in range(1, depth + 1) for each in combinations(attribute_columns(attributes), n)]
    halves = [
        summary_of_shards(
            _half(shards(evaluation, dataset, scorer, attributes), seed, half),
            [metric],
            [(), *groupings],
            repeated=is_repeated(evaluation),
        )
        for half in (0, 1)
    ]
    sign = 1.0 if metric.direction == "lower" else -1.0
    [first] = halves[0].values(0, ())
    looked = [(row, tuple(row.by)) for each in groupings for row in halves[0].values(0, each)]
    able = [(row, each) for row, each in looked if row.n_scored >= smallest and None not in row.by.values()]
    ranked = sorted(able, key=lambda pair: -_distance(pair[0], first.value, sign))
    chosen = [pair for pair in ranked if _distance(pair[0], first.value, sign) > 0][:most]
    confidence = 1 - (1 - metric.confidence) / max(len(chosen), 1)
    [total] = halves[1].values(0, (), confidence)
    read = partial(halves[1].values, 0, confidence=confidence)
    result = []
    for row, columns in chosen:
        there = next((other for other in read(columns) if other.by == row.by), None)
        value, low, high = (np.nan,) * 3 if there is None else (there.value, there.low, there.high)
        end, other_end = (low, total.high) if sign > 0 else (high, total.low)
        worse = sign * (value - total.value) > np.hypot(value - end, other_end - total.value)
        n = 0 if there is None else there.n_scored
        by = attribute_values(row.by)
        result.append(FoundGroup(by, row.value, value, low, high, n, total.value, bool(worse)))
    return result


def _distance(row: MetricRow, overall: float, sign: float) -> float:
    """By how many standard errors a group is worse than all rows; below 0 where it is better or unknown."""
    error = (row.high - row.low) / (2 * normal_quantile(_USUAL))
    found = sign * (row.value - overall) / max(error, _TINY)
    return -1.0 if np.isnan(found) else float(found)


def _half(tables: Iterable[pa.Table], seed: int, half: int) -> Iterable[pa.Table]:
    """The rows of the clusters, or examples, of one half."""
    for table in tables:
        key = table[CLUSTER if CLUSTER in table.column_names else INDEX].to_numpy().astype(np.int64).view(np.uint64)
        drawn = random_bits(key, seed + 1) & np.uint64(1)
        yield table.filter(pa.array(drawn == half))


_USUAL: Final = 0.95
_TINY: Final = 1e-9
