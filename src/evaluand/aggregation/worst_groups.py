"""The groups for which a metric is worst: looked for on one half of the examples, judged on the other.

Of many crossed groups some look bad by chance, and those that look worst most of all. So the halves, which are drawn by
a seed, never share a cluster, and intervals come only from the half that was not looked at. They hold at the same time
for all groups that are shown (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from evaluand.aggregation.groups import MetricRow, Summary, summary_of_shards
from evaluand.aggregation.metric_errors import read_shards
from evaluand.aggregation.score_shards import dataset_of, draw_places, is_repeated, shards
from evaluand.aggregation.shard import Shard
from evaluand.core.errors import SpecError
from evaluand.core.key_columns import INDEX
from evaluand.evaluation.evaluator import Evaluation
from evaluand.metrics.base.metric import Metric, check_whole_number
from evaluand.metrics.stats.intervals import clopper_pearson, normal_quantile


@dataclass(frozen=True)
class GroupSearch:
    """Where to look for the worst groups.

    Attributes:
        attributes: whose values, and crossed values, define the groups.
        depth: how many attributes are crossed at most.
        most: the largest number of groups that are judged.
        smallest: groups whose value rests on fewer rows of the first half are not looked at.
        seed: of the halves.

    Raises:
        SpecError: there is no attribute, or a number is too small.
    """

    attributes: Sequence[str]
    depth: int = 2
    most: int = 5
    smallest: int = 30
    seed: int = 0

    def __post_init__(self) -> None:
        names = (self.attributes,) if isinstance(self.attributes, str) else tuple(self.attributes)
        object.__setattr__(self, "attributes", tuple(dict.fromkeys(names)))
        if not names:
            raise SpecError("worst_groups: name the attributes whose groups are looked at")
        for name, least in (("depth", 1), ("most", 1), ("smallest", 2), ("seed", 0)):
            check_whole_number("worst_groups", name, getattr(self, name), least)

    @property
    def spec(self) -> dict[str, Any]:
        return asdict(self) | {"attributes": list(self.attributes)}

    @property
    def groupings(self) -> list[tuple[str, ...]]:
        return [each for n in range(1, self.depth + 1) for each in combinations(self.attributes, n)]

    def check(self, metric: Metric) -> None:
        """Refuses a metric without a worst group.

        Raises:
            SpecError: the metric has no direction or no interval.
        """
        if metric.direction is None or getattr(metric, "confidence", None) is None:
            lacking = "direction" if metric.direction is None else "interval"
            raise SpecError(f"worst_groups: {metric.kind} has no {lacking}, so no group is worst")


class WorstGroup(NamedTuple):
    """A group that looked worse than all rows on the first half, judged on the second.

    Attributes:
        metric: the metric's kind.
        signature: the metric with all its parameters.
        target: None without targets.
        by: attribute → value; None if no group looked worse.
        found: the value on the first half, which is too bad, since the group was chosen by it.
        value: the value on the second half; NaN without rows there.
        low: lower end of its interval; the intervals of all groups of a target hold at the same time.
        high: upper end.
        n: scored rows of the group on the second half.
        rest: the value over all other rows of the second half; NaN without any.
        confirmed: whether the group is worse than them, allowing for the errors of both and for the number of groups.
        n_looked: how many groups were large enough to be looked at.
    """

    metric: str
    signature: str
    target: str | None
    by: dict[str, str | None] | None
    found: float
    value: float
    low: float
    high: float
    n: int
    rest: float
    confirmed: bool
    n_looked: int


def worst_groups_of(
    evaluation: Evaluation, scorer: str, metric: Metric, search: GroupSearch, where: str | None
) -> list[WorstGroup]:
    """The groups for which a metric is worst, by target, the most clearly different on the first half first.

    Args:
        where: the condition for rows.

    Raises:
        SpecError: the metric has no direction or no interval.
    """
    search.check(metric)
    sign = 1.0 if metric.direction == "lower" else -1.0
    dataset, repeated = dataset_of(evaluation), is_repeated(evaluation)
    is_second = draw_places(dataset, search.seed, purpose=1) >= 1 / 2
    indices = np.frombuffer(dataset.indices, np.int64)

    def read(chosen: np.ndarray) -> Iterator[pa.Table]:
        for table in read_shards(shards(evaluation, scorer, search.attributes, where=where, labelled_for=metric)):
            yield table.filter(pa.array(chosen[np.searchsorted(indices, table[INDEX].to_numpy())]))

    first = summary_of_shards(read(~is_second), [metric], [(), *search.groupings], repeated=repeated)
    found = [_choose(first, overall, search, sign) for overall in first.values(0, ())]
    chosen = dict.fromkeys(tuple(row.by.items()) for each in found for row in each.rows)
    marks = {mark: str(mark) for mark in chosen}  # which is the name of no attribute
    marked = (_mark(table, marks) for table in read(is_second))
    second = summary_of_shards(marked, [metric], [(), *((name,) for name in marks.values())], repeated=repeated)
    alpha = 1 - metric.confidence  # type: ignore[attr-defined] # of a metric that was checked
    return [group for each in found for group in _judge(second, each, marks, alpha, sign)]


_Mark = tuple[tuple[str, str | None], ...]
"""The attributes of a group with their values."""


class _Chosen(NamedTuple):
    """The worst groups of a target on the first half."""

    overall: MetricRow
    rows: list[MetricRow]
    n_looked: int


def _choose(first: Summary, overall: MetricRow, search: GroupSearch, sign: float) -> _Chosen:
    """The groups that are worse than all rows, the most clearly different first; of groups of the same rows, one."""
    looked = [row for columns in search.groupings for row in first.values(0, columns) if row.target == overall.target]
    large = [row for row in looked if None not in row.by.values() and row.rests_on >= search.smallest]
    chosen: list[MetricRow] = []
    for row in sorted(large, key=lambda row: -_distance(row, overall.value, sign)):
        alike = [one for one in chosen if (one.value, one.n, one.n_scored) == (row.value, row.n, row.n_scored)]
        is_part = any(one.by.items() <= row.by.items() for one in alike)
        if len(chosen) < search.most and _distance(row, overall.value, sign) > 0 and not is_part:
            chosen.append(row)
    return _Chosen(overall, chosen, len(large))


def _distance(row: MetricRow, overall: float, sign: float) -> float:
    """By how many standard errors a group is worse than all rows; below 0 where it is better or unknown."""
    error = (row.high - row.low) / (2 * normal_quantile(_USUAL))
    found = sign * (row.value - overall) / max(error, _TINY)
    return -1.0 if math.isnan(found) else found


def _judge(
    second: Summary, chosen: _Chosen, marks: Mapping[_Mark, str], alpha: float, sign: float
) -> Iterator[WorstGroup]:
    """The chosen groups on the second half; one entry without a group if none was chosen.

    Args:
        alpha: the chance that one of the intervals of a target does not cover, and that a group is confirmed wrongly.
    """
    of, nan, n = chosen.overall, math.nan, len(chosen.rows)
    nothing = WorstGroup(of.metric, of.signature, of.target, None, nan, nan, nan, nan, 0, nan, False, chosen.n_looked)
    if not n:
        yield nothing
    for row in chosen.rows:
        name = marks[tuple(row.by.items())]
        group = nothing._replace(by=row.by, found=row.value)
        sides = second.values(0, (name,), 1 - alpha / n)
        own, rest = (next((s for s in sides if (s.target, s.by[name]) == (of.target, e)), None) for e in (_IN, _REST))
        if own is not None:
            group = group._replace(value=own.value, low=own.low, high=own.high, n=own.n_scored)
        if rest is not None:
            group = group._replace(rest=rest.value)
        yield group._replace(confirmed=_is_worse(own, rest, sign, 1 - alpha / n))


def _is_worse(own: MetricRow | None, rest: MetricRow | None, sign: float, level: float) -> bool:
    """Whether a group is worse than the rest by more than the errors of both; they share no rows.

    Of right and wrong rows the bound of the group is exact, as the score interval of few rows errs too often at so high
    a level. Of other values it is the end of the two-sided interval.
    """
    if own is None or rest is None:
        return False
    low, high = own.low, own.high
    if own.is_exact:
        low, high = clopper_pearson(own.data["correct"], own.data["n"], level)
    end, other_end = (low, rest.high) if sign > 0 else (high, rest.low)
    return sign * (own.value - rest.value) > math.hypot(own.value - end, other_end - rest.value)


def _mark(table: pa.Table, marks: Mapping[_Mark, str]) -> pa.Table:
    """The table with a column for each group that tells its rows from the rest."""
    shard = Shard.of(table)
    for mark, name in marks.items():
        columns, values = zip(*mark, strict=True)
        groups = shard.groups(columns)
        sides = np.array([_IN if key[1:] == values else _REST for key in groups.keys], np.object_)
        table = table.append_column(name, pa.array(sides[groups.code], pa.string()))
    return table


_IN, _REST = "in", "rest"
_USUAL: Final = 0.95
_TINY: Final = 1e-9
