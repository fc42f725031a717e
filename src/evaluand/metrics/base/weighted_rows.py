"""Base of metrics that are a function of all their weighted rows and not a mean over them, with an interval.

A kind defines which columns make a row and the value of weighted rows; everything else is here. The interval leaves out
one block of examples at a time: a block is a pure function of the key of an example (or cluster), so the same rows give
the same interval on any machine and in any shards. A replicate is the same value with other weights, so one function
computes both. A kind that knows the influence of each row, the derivative of its value by the row's weight, needs no
replicates: summed by cluster, influences are the change caused by leaving a cluster out.

Rows that consist only of labels are counted: the state is a table of how often each combination occurred in each block,
which does not grow with the rows; an interval also needs the key of each row, to count the clusters. Other rows are
stored in the state as they are.

    prepare ──▶ rows by group, block and weight ── merge ──▶ arranged once per group ── value(weights) ──▶ Values
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from evaluand.metrics.base.labels import one_vocabulary
from evaluand.metrics.base.left_out import MOST_CELLS, Blocks, LeftOut, rarest_parts, spread_of_parts
from evaluand.metrics.base.metric import (
    CLUSTER,
    INDEPENDENT,
    LABELS,
    NO_ROWS,
    WEIGHT,
    WEIGHTLESS,
    Columns,
    Metric,
    State,
    Values,
    check_confidence,
    weights_of,
)
from evaluand.metrics.stats.intervals import (
    Spread,
    correlation_of,
    count_rows,
    interval_within,
    mean_of_shares,
    random_bits,
    runs,
    steady_interval,
)

BLOCKS: Final = 256
"""The largest number of blocks of the jackknife; its interval has one degree of freedom less."""

FEW_BLOCKS: Final = 64
"""The number of blocks for more than `MANY_ROWS` rows that are not counted."""

MANY_ROWS: Final = 50_000


class Changes(NamedTuple):
    """The influences of rows, from which the spread of the value follows.

    Attributes:
        key: the cluster of each row.
        change: the influence of each row times its weight.
        effective_rows: the number of rows of equal weight with as much information.
        expected: the share of these rows of which a proportion would vary as expected.
    """

    key: np.ndarray
    change: np.ndarray
    effective_rows: float
    expected: float


class GroupResult(NamedTuple):
    """The result of one group of rows.

    Attributes:
        value: NaN where undefined.
        details: further results.
        reason: why the value, or only its interval, is undefined; None if nothing speaks against them.
        basis: the share of the rows that the value depends on, up to 1.
        without: the values without each block, for an interval by the jackknife.
        least: see `least_variance`.
        changes: the influences, for an interval by influence.
        often: the number of blocks that each entry of `without` stands for; one by default.
        ends: the interval, if it is known without blocks and influences.
        bounds: number of clusters of equal weight → interval, for a kind that computes it in another way.
    """

    value: float
    details: dict[str, Any]
    reason: str | None
    basis: float = 1.0
    without: np.ndarray = np.empty(0)
    least: float = 0.0
    changes: Changes | None = None
    often: np.ndarray | None = None
    ends: tuple[float, float] | None = None
    bounds: Callable[[float], tuple[float, float]] | None = None


@dataclass(frozen=True, kw_only=True)
class WeightedRowsMetric(Metric):
    """A function of weighted rows, with an interval by the rows' influence, or else by the jackknife over blocks.

    If the range is bounded on both sides, the interval is the score interval of a proportion with the measured
    variance, so it stays within the range and has a width even if all rows agree; otherwise it is Student's.
    Source: J. Shao & D. Tu, The Jackknife and Bootstrap (1995), section 2.3 for blocks left out and 2.4 for influences
    (the infinitesimal jackknife); see `clustered_wilson` and `steady_interval` for the score interval.

    Args:
        weighted: each row counts by the weight of its example.
        confidence: of the interval; None for no interval, which costs less: an interval needs a key of each row.

    Attributes:
        row_columns: the prepared columns that make a row; their first axis is the row.
        counted: rows consist only of labels, and the state holds a table of their counts.
        adds: columns of numbers that are summed, as weights are, when rows are counted.

    Raises:
        SpecError: the confidence does not lie between 0 and 1.
    """

    row_columns: ClassVar[tuple[str, ...]]
    counted: ClassVar[bool] = False
    adds: ClassVar[tuple[str, ...]] = ()

    weighted: bool = False
    confidence: float | None = 0.95

    def __post_init__(self) -> None:
        if self.confidence is not None:
            object.__setattr__(self, "confidence", check_confidence(self.kind, self.confidence))
        super().__post_init__()

    @property
    def interval(self) -> str | None:
        if self.confidence is None:
            return None
        return "jackknife" if type(self).influence is WeightedRowsMetric.influence else "influence"

    @property
    def by_cluster(self) -> bool:
        return self.confidence is not None

    @property
    def counts_independent_rows(self) -> bool:
        return self.counted and self.by_cluster and not self.weighted

    @abstractmethod
    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        """The values of some rows under several weightings.

        Args:
            rows: what `arranged` returned, of one group; at least one row.
            weight: replicates × rows, 0 or more; rows of weight 0 do not count.

        Returns:
            One value for each replicate, NaN where it is undefined.
        """

    def basis(self, rows: Columns, weight: np.ndarray) -> float:
        """The share of the rows, each with a weight, that the value depends on: of recall, the expected rows."""
        return 1.0

    def influence(self, rows: Columns, weight: np.ndarray) -> np.ndarray | None:
        """The derivative of the value by the weight of each row; NaN if there are too few rows to estimate its spread.

        A kind that defines it gets its interval from it; other kinds from the values without each block.
        `CLUSTER` says which rows belong together.
        """
        return None

    def least_variance(self, rows: Columns, value: float) -> float:
        """A lower bound of the value's variance, unless that is 0: few blocks may be equal by chance."""
        return 0.0

    def expected_basis(self, rows: Columns, weight: np.ndarray) -> float:
        """The share of the rows of which a proportion would vary as much as the value is expected to by its influence.

        The measured variance counts more, relative to this expectation, the more rows there are: see `steady_interval`.
        """
        return self.basis(rows, weight)

    def why_unbounded(self, rows: Columns) -> str | None:
        """Why the value of these rows, which is defined, has no interval; None if nothing speaks against one."""
        return None

    def parts(self, rows: Columns, weight: np.ndarray) -> np.ndarray | None:
        """The part of each row, such as its class, if the influences of the rows of a part have a mean of 0."""
        return None

    def arranged(self, rows: Columns) -> Columns:
        """The rows of one group, reordered, with everything that is computed once for all weightings.

        Every column of the rows' length must be in the new order, `WEIGHT` and `BLOCK` too.
        """
        return rows

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        """Why existing rows have no value, in words."""
        return "undefined for these rows"

    def details(self, rows: Columns, weight: np.ndarray) -> dict[str, Any]:
        """Further results of a group's rows, JSON-like; `weight` has one entry per row."""
        return {}

    def without_each(self, rows: Columns, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The blocks that hold rows of positive weight, and the value without each of them.

        A kind may override it with a faster method than recomputing the value for each block.

        Args:
            rows: what `arranged` returned; if the metric is `counted`, the counted rows.
            block: the block of each row.
        """
        weight = rows[WEIGHT]
        blocks = np.unique(block[weight > 0])
        if self.counted:
            left = self._left(rows, block, blocks)
            if left is not None:
                return blocks, self._values(*left)
            rows = self.arranged(rows)
        step = max(1, _AT_ONCE // max(len(weight), 1))
        found = [
            self._values(rows, np.where(block == blocks[i : i + step, None], 0.0, weight))
            for i in range(0, len(blocks), step)
        ]
        return blocks, np.concatenate(found) if found else np.empty(0)

    def _left(self, rows: Columns, block: np.ndarray, blocks: np.ndarray) -> tuple[Columns, np.ndarray] | None:
        """Distinct rows, and their counts without each block; None with `adds`, or if the table would be too large."""
        if self.adds:
            return None
        cell = np.zeros(len(block), np.int64)
        for name in self.row_columns:
            cell = np.unique(cell * (int(rows[name].max()) + 3) + rows[name] + 2, return_inverse=True)[1]
        _, first = np.unique(cell, return_index=True)
        shape = len(blocks), len(first)
        if math.prod(shape) > _AT_ONCE:
            return None
        place = np.searchsorted(blocks, block) * shape[1] + cell
        known = rows[WEIGHT] > 0
        here, often = (
            np.bincount(place[known], each, minlength=math.prod(shape)).reshape(shape)
            for each in (rows[WEIGHT][known], None)
        )
        left = np.where(often == often.sum(axis=0), 0.0, here.sum(axis=0) - here)
        cells = {name: rows[name][first] for name in self.row_columns}
        weight = here.sum(axis=0)
        arranged = self.arranged({**cells, LABELS: rows[LABELS], WEIGHT: weight, BLOCK: np.arange(len(first))})
        return arranged, left[:, arranged[BLOCK]]

    def state(self, columns: Columns, group: np.ndarray, n_groups: int) -> State:
        n = len(group)
        weight = weights_of(columns, self.kind) if self.weighted else np.ones(n)
        table = {_GROUP: group, BLOCK: np.zeros(n, np.int64), WEIGHT: weight}
        table |= {name: columns[name] for name in (*self.row_columns, *self.adds)}
        clusters: Columns = {}
        if self.by_cluster:
            keys = np.asarray(columns[INDEPENDENT if INDEPENDENT in columns else CLUSTER]).astype(np.int64, copy=False)
            hashed = (random_bits(keys.view(np.uint64), 0) & np.uint64(BLOCKS - 1)).view(np.int64)
            table[BLOCK] = columns.get(BLOCK, hashed)
            clusters = dict(zip(_CLUSTERS, (keys, group, weight), strict=True))
            if INDEPENDENT in columns:
                clusters = {INDEPENDENT: count_rows(group, n_groups)}
        vocabulary = columns.get(LABELS, np.empty(0, np.object_))
        if self.counted:
            table = _count_equal_rows(table, self.row_columns, len(vocabulary), self.adds)
        return {"n": count_rows(group, n_groups), **clusters, LABELS: vocabulary, **_prefix_columns(table)}

    def merge(self, states: Sequence[State]) -> State:
        vocabulary, codes = one_vocabulary([state[LABELS] for state in states])
        tables = []
        for state, code in zip(states, codes, strict=True):
            table = _row_table(state)
            labels = [name for name in self.row_columns if name in self.label_columns]
            table |= {name: _recode(table[name], code, len(vocabulary)) for name in labels}
            scores = [name for name in self.row_columns if name in self.score_columns]
            table |= {name: _place_columns(table[name], code, len(vocabulary)) for name in scores}
            tables.append(table)
        table = {name: np.concatenate([one[name] for one in tables]) for name in tables[0]}
        if self.counted:
            table = _count_equal_rows(table, self.row_columns, len(vocabulary), self.adds)
        clusters = {name: np.concatenate([state[name] for state in states]) for name in _CLUSTERS if name in states[0]}
        sums = {name: reduce(np.add, [state[name] for state in states]) for name in _by_group_in(states[0])}
        return {**sums, **clusters, LABELS: vocabulary, **_prefix_columns(table)}

    def place(self, state: State, positions: np.ndarray, n_groups: int) -> State:
        placed = super().place({name: state[name] for name in _by_group_in(state)}, positions, n_groups)
        rows = [name for name in (_PREFIX + _GROUP, "cluster_group") if name in state]
        return {**state, **placed, **{name: positions[state[name]] for name in rows}}

    def compute(self, state: State) -> Values:
        n = state["n"]
        value, low, high = (np.full(n.shape, np.nan) for _ in range(3))
        reasons: list[str | None] = [NO_ROWS] * len(n)
        data: list[dict[str, Any]] = [{"n": int(rows)} for rows in n]
        clusters, effective = clusters_of(state)
        variance, blocks = np.full(n.shape, np.nan), np.zeros(n.shape, np.int64)
        for group, found in self.group_results(state):
            value[group], reasons[group] = found.value, found.reason
            data[group] |= found.details
            if found.basis < 1 - _ROUNDING:
                data[group]["rests_on"] = round(float(n[group]) * found.basis, 1)
            if found.reason is not None:
                continue
            if found.ends is not None:
                low[group], high[group] = found.ends
                continue
            if found.bounds is not None:
                low[group], high[group] = found.bounds(float(effective[group]))
                continue
            if found.changes is not None:
                low[group], high[group] = self._interval_by_influence(found.value, [found], effective[[group]])
                continue
            effective[group] *= found.basis
            variance[group], blocks[group] = self._variance(found.value, found.without, found.least, found.often)
        if _has_blocks(state):
            known = np.isfinite(variance)
            spread = Spread(variance[known], blocks[known], effective[known])
            low[known], high[known] = self._score_interval(value[known], spread)
            for group in np.flatnonzero(np.isfinite(value)).tolist():
                few, all_ = int(clusters[group]), int(n[group])
                reasons[group] = None if math.isfinite(low[group]) else _no_interval(all_, few, reasons[group])
                data[group] |= {"clusters": few} if few != all_ else {}
        return Values(value, low, high, reasons, data)

    def group_results(self, state: State) -> Iterator[tuple[int, GroupResult]]:
        """The result of each group that has rows, group by group.

        A kind may override it with a method for many groups at once.
        """
        for group, rows in self.rows_of(state):
            arranged = self.arranged(self._merge_equal_rows(rows))
            weight = arranged[WEIGHT]
            value = float(self._values(arranged, weight[None])[0])
            details = self.details(arranged, weight)
            if not math.isfinite(value):
                yield group, GroupResult(value, details, self._undefined_reason(arranged, weight))
                continue
            why = self.why_unbounded(arranged) if _has_blocks(state) else None
            found = GroupResult(value, details, why, min(self.basis(arranged, weight), 1.0))
            if _has_blocks(state) and self.interval == "influence":
                found = found._replace(changes=self._changes(arranged))
            elif _has_blocks(state):
                without = self._without(rows if self.counted else arranged, int(state["n"][group]))
                found = found._replace(without=without, least=self.least_variance(arranged, value))
            yield group, found

    def _merge_equal_rows(self, rows: Columns) -> Columns:
        """Rows of labels, with equal rows of all blocks merged into one."""
        if not self.counted:
            return rows
        table = {name: rows[name] for name in (WEIGHT, *self.row_columns, *self.adds)}
        table |= dict.fromkeys((_GROUP, BLOCK), np.zeros_like(rows[BLOCK]))
        return {**_count_equal_rows(table, self.row_columns, len(rows[LABELS]), self.adds), LABELS: rows[LABELS]}

    def rows_of(self, state: State) -> Iterator[tuple[int, Columns]]:
        """The rows of each group that has any, as `arranged` takes them."""
        keys = {} if self.counted or "cluster_key" not in state else {CLUSTER: state["cluster_key"]}
        for group, rows in _by_group({**_row_table(state), **keys}):
            yield group, {**rows, LABELS: state[LABELS]}

    def replicates(self, state: State, n_blocks: int = BLOCKS) -> LeftOut:
        """The value of each group, and the values without each block."""
        n = state["n"]
        value, without, basis = np.full(n.shape, np.nan), np.full((n_blocks, *n.shape), np.nan), np.ones(n.shape)
        reason: list[str | None] = [None] * len(n)
        for group, rows in self.rows_of(state):
            arranged = self.arranged(rows)
            weight = arranged[WEIGHT]
            value[group] = without[:, group] = self._values(arranged, weight[None])[0]
            if math.isfinite(value[group]):
                basis[group] = min(self.basis(arranged, weight), 1.0)
                reason[group] = self.why_unbounded(arranged)
            blocks, left = self.without_each(arranged, arranged[BLOCK])
            without[blocks, group] = left if reason[group] is None else np.nan
        return LeftOut(value, without, basis, reason=reason)

    def most_blocks(self, n: int) -> int:
        if self.interval == "influence":
            return n
        most = MOST_CELLS // max(n, 1)
        return most if most >= BLOCKS else FEW_BLOCKS if n > MANY_ROWS and not self.counted else BLOCKS

    def leave_out(self, columns: Columns, group: np.ndarray, n_groups: int, blocks: Blocks) -> LeftOut:
        state = self.state({**columns, BLOCK: blocks.of_row}, group, n_groups)
        if not _row_table(state):
            return super().leave_out(columns, group, n_groups, blocks)
        if self.interval != "influence":
            return self.replicates(state, blocks.n)
        value, without = np.full(n_groups, np.nan), np.full((blocks.n, n_groups), np.nan)
        basis, expected, parts = np.ones(n_groups), np.ones(n_groups), np.full((blocks.n, n_groups), -1)
        reason: list[str | None] = [None] * n_groups
        for place, rows in self.rows_of(state):
            arranged = self.arranged(rows)
            value[place] = self._values(arranged, arranged[WEIGHT][None])[0]
            if not math.isfinite(value[place]):
                continue
            changes, part = self._changes(arranged), self.parts(arranged, arranged[WEIGHT])
            reason[place] = self.why_unbounded(arranged)
            change = np.bincount(arranged[BLOCK], changes.change, minlength=blocks.n)
            if part is not None:
                parts[:, place] = rarest_parts(part, Blocks(arranged[BLOCK], blocks.n))
                change = change * spread_of_parts(parts[:, place])
            if reason[place] is None:
                without[:, place] = value[place] - change * (blocks.n / max(blocks.n - 1, 1))
            basis[place], expected[place] = min(self.basis(arranged, arranged[WEIGHT]), 1.0), changes.expected
        known = (parts >= 0).any()
        return LeftOut(value, without, basis, None, expected if known else None, parts if known else None, reason)

    def mean_over(self, state: State, groups: Sequence[np.ndarray]) -> Values:
        """With an interval that leaves a block out of all groups at once, or in which a cluster changes all of them."""
        found = super().mean_over(state, groups)
        if self.confidence is None:
            each = zip(found.value, found.reason, strict=True)
            return replace(found, reason=[None if value == value else reason for value, reason in each])
        results = dict(self.group_results(state))
        ends, reason = self._ends_of_means(state, found.value, groups, results), [*found.reason]
        for place in np.flatnonzero(np.isfinite(found.value)).tolist():
            faults = filter(None, (results[group].reason for group in groups[place].tolist()))
            reason[place] = None if math.isfinite(ends[place, 0]) else next(faults, _FEW_DECIDE)
        return replace(found, low=ends[:, 0], high=ends[:, 1], reason=reason)

    def _ends_of_means(
        self, state: State, value: np.ndarray, groups: Sequence[np.ndarray], results: Mapping[int, GroupResult]
    ) -> np.ndarray:
        """The ends of the interval of each mean; one of which a value is undefined or unbounded has none."""
        ends = np.full((len(groups), 2), np.nan)
        if not _has_blocks(state):
            return ends
        finite = np.flatnonzero(np.isfinite(value)).tolist()
        known = [place for place in finite if not any(results[group].reason for group in groups[place].tolist())]
        _, effective = clusters_of(state)
        if self.interval == "influence":
            for place in known:
                members = groups[place]
                each = [results[group] for group in members.tolist()]
                ends[place] = self._interval_by_influence(float(value[place]), each, effective[members])
            return ends
        table = _row_table(state)
        without = self.replicates(state).without
        for place in known:
            members = groups[place]
            blocks = np.unique(table[BLOCK][np.isin(table[_GROUP], members) & (table[WEIGHT] > 0)])
            means = without[:, members].mean(axis=1)[blocks]
            each = [results[group] for group in members.tolist()]
            if all(found.bounds is not None for found in each):
                ends[place] = self._interval_by_bounds(each, without[:, members][blocks], effective[members])
                continue
            variance, n = self._variance(float(value[place]), means, float(np.mean([found.least for found in each])))
            if math.isfinite(variance):
                rests_on = min(float(k) * found.basis for k, found in zip(effective[members], each, strict=True))
                spread = Spread(*(np.array([x]) for x in (variance, n, rests_on)))
                ends[place] = np.concatenate(self._score_interval(value[place : place + 1], spread))
        return ends

    def _undefined_reason(self, rows: Columns, weight: np.ndarray) -> str:
        if not weight.sum() > 0:
            return WEIGHTLESS
        return self.undefined(rows, weight)

    def _values(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            found = np.asarray(self.value(rows, weight), np.float64)
        return np.where(np.isfinite(found) & (weight.sum(axis=1) > 0), found, np.nan)

    def _changes(self, rows: Columns) -> Changes:
        weight = rows[WEIGHT]
        influence = self.influence(rows, weight)
        assert influence is not None
        effective_rows = float(weight.sum() ** 2 / np.square(weight).sum())
        return Changes(rows[CLUSTER], weight * influence, effective_rows, min(self.expected_basis(rows, weight), 1.0))

    def _without(self, rows: Columns, n: int) -> np.ndarray:
        """The value without each block, for the interval."""
        many = n > MANY_ROWS and not self.counted
        return self.without_each(rows, rows[BLOCK] % FEW_BLOCKS if many else rows[BLOCK])[1]

    def _variance(
        self, value: float, without: np.ndarray, least: float = 0.0, often: np.ndarray | None = None
    ) -> tuple[float, int]:
        """The jackknife variance of a value, NaN if undefined, and the number of blocks; see `GroupResult`."""
        n = len(without) if often is None else int(often.sum())
        if n < 2 or not np.isfinite(without).all():
            return math.nan, n
        with np.errstate(over="ignore", invalid="ignore"):
            if often is None:
                variance = (n - 1) / n * float(np.square(without - without.mean()).sum())
            else:  # the order of kinds of rows depends on other groups
                off = without - math.fsum(often * without) / n
                variance = (n - 1) / n * math.fsum(often * np.square(off))
        if not math.isfinite(variance):
            return math.nan, n
        variance = self._drop_rounding(variance, value, n)
        variance = max(variance, least) if variance else variance
        return variance if variance or math.isfinite(self.range[1] - self.range[0]) else math.nan, n

    def _score_interval(self, value: np.ndarray, spread: Spread) -> tuple[np.ndarray, np.ndarray]:
        """The interval: that of a proportion if the range is bounded, else Student's."""
        assert self.confidence is not None
        variance, blocks, effective = spread
        effective = np.where(variance > 0, np.minimum(effective, blocks), effective)
        return interval_within(value, Spread(variance, blocks, effective), self.range, self.confidence)

    def _interval_by_influence(
        self, value: float, groups: Sequence[GroupResult], effective: np.ndarray
    ) -> tuple[float, float]:
        """The interval of the mean of the values of groups that may share clusters.

        The information is that of the clusters (`effective` of equal weight in each group), but at most that of the
        rows that a value depends on.
        """
        assert self.confidence is not None
        each = [(found.basis, found.changes) for found in groups if found.changes is not None]
        change = np.concatenate([changes.change for _, changes in each]) / len(each)
        sizes = zip(effective, each, strict=True)
        resting = [min(float(n), changes.effective_rows * basis) for n, (basis, changes) in sizes]
        fewest = min(resting)
        if fewest < _FEWEST or not np.isfinite(change).all():
            return math.nan, math.nan
        expected = min(n / basis * changes.expected for n, (basis, changes) in zip(resting, each, strict=True))
        change = _sum_by_cluster(np.concatenate([changes.key for _, changes in each]), change)
        variance = fewest / (fewest - 1) * float(np.square(change).sum())
        variance = self._drop_rounding(variance, value, len(change))
        return steady_interval(value, variance, expected, fewest, self.range, self.confidence)

    def _interval_by_bounds(
        self, groups: Sequence[GroupResult], without: np.ndarray, effective: np.ndarray
    ) -> tuple[float, float]:
        """The interval of the mean of the values of groups, from the groups' intervals.

        Groups without spread are taken to be fully correlated. `without` has blocks × groups, `effective` the number
        of clusters of equal weight in each group.
        """
        each = [found.bounds(float(n)) for n, found in zip(effective, groups, strict=True) if found.bounds is not None]
        low, high = np.array(each).T
        off = without - without.mean(axis=0)
        off[:, [math.sqrt(float(one @ one)) <= _ROUNDING * math.sqrt(len(one)) for one in off.T]] = 0.0
        together = correlation_of(off.T @ off, 1.0)
        ends = mean_of_shares(np.array([found.value for found in groups]), low, high, together, self.range)
        return float(ends[0]), float(ends[1])

    def _drop_rounding(self, variance: float, value: float, n: int) -> float:
        """The variance; 0 if rounding alone may explain it."""
        width = self.range[1] - self.range[0]
        least = _ROUNDING * (width if math.isfinite(width) else abs(value)) * math.sqrt(n)
        return 0.0 if math.sqrt(variance) <= least else variance


def blocks_by_kind(state: State, columns: Sequence[str]) -> tuple[State, np.ndarray]:
    """Independent counted rows, with each kind of equal rows as one block; these columns make a row.

    Groups with more than `BLOCKS` kinds of rows keep their blocks.

    Returns:
        The state, and which groups have such blocks.
    """
    table, n_groups = _row_table(state), len(state["n"])
    kinds = _count_equal_rows({**table, BLOCK: np.zeros_like(table[BLOCK])}, columns, len(state[LABELS]), ())
    few = count_rows(kinds[_GROUP], n_groups) <= BLOCKS
    kinds[BLOCK] = np.arange(len(kinds[_GROUP]))
    by_kind, by_block = few[kinds[_GROUP]], ~few[table[_GROUP]]
    parts = {name: np.concatenate([kinds[name][by_kind], table[name][by_block]]) for name in table}
    return {**state, **_prefix_columns(parts)}, few


def reordered(rows: Columns, order: np.ndarray) -> dict[str, np.ndarray]:
    """The rows of a group in another order."""
    return {name: column if name == LABELS else column[order] for name, column in rows.items()}


BLOCK: Final = "_block_"
_GROUP: Final = "_group_"
_PREFIX: Final = "row:"
_CLUSTERS: Final = ("cluster_key", "cluster_group", "cluster_weight")
"""Arrays of `CLUSTER_TABLE`, with an entry for each row: clusters are complete only when all states are merged."""
_AT_ONCE: Final = 1 << 22  # weights in memory at once
_ROUNDING: Final = 64 * float(np.finfo(np.float64).eps)
_FEWEST: Final = 1.5  # a single deciding row has no spread
_FEW_DECIDE: Final = "no interval: leaving a few rows out leaves no value, or changes nothing, or too much"


def _no_interval(n: int, clusters: int, reason: str | None) -> str:
    if clusters > 1:
        return reason or _FEW_DECIDE
    return "one scored row has no interval" if n == 1 else "one cluster has no interval"


def row_column(state: State, name: str) -> np.ndarray:
    """One of the columns that make a row, from a state."""
    return state[_PREFIX + name]


def _sum_by_cluster(key: np.ndarray, change: np.ndarray) -> np.ndarray:
    """The sum of each cluster."""
    if (key[1:] > key[:-1]).all():
        return change
    order = np.argsort(key, kind="stable")
    return np.asarray(np.add.reduceat(change[order], runs(key[order])))


def _prefix_columns(table: Columns) -> dict[str, np.ndarray]:
    return {_PREFIX + name: column for name, column in table.items()}


def _row_table(state: State) -> dict[str, np.ndarray]:
    return {name.removeprefix(_PREFIX): column for name, column in state.items() if name.startswith(_PREFIX)}


def _has_blocks(state: State) -> bool:
    """Whether the state has the keys or counts of rows that an interval needs."""
    return "cluster_key" in state or INDEPENDENT in state


def _by_group_in(state: State) -> list[str]:
    """The arrays that have one entry for each group."""
    return [name for name in state if not name.startswith(_PREFIX) and name not in (*_CLUSTERS, LABELS)]


def clusters_of(state: State) -> tuple[np.ndarray, np.ndarray]:
    """The number of clusters with weight in each group, and Kish's effective number of equal weight."""
    n_groups = len(state["n"])
    if INDEPENDENT in state:
        return state[INDEPENDENT], state[INDEPENDENT].astype(np.float64)
    if "cluster_key" not in state:
        return np.zeros(n_groups), np.zeros(n_groups)
    key, group, weight = (state[name] for name in _CLUSTERS)
    if (key[1:] <= key[:-1]).any():
        order = np.lexsort((key, group))
        key, group, weight = key[order], group[order], weight[order]
        starts = runs(key, group)
        group, weight = group[starts], np.add.reduceat(weight, starts)
    weight = np.ldexp(weight, -int(np.frexp(weight.max(initial=0.0))[1]))  # so that squares are numbers
    total, square = (np.bincount(group, each, minlength=n_groups) for each in (weight, weight * weight))
    with np.errstate(divide="ignore", invalid="ignore"):
        return count_rows(group[weight > 0], n_groups), total * total / square


def _count_equal_rows(
    table: Columns, names: Sequence[str], n_labels: int, adds: Sequence[str]
) -> dict[str, np.ndarray]:
    """Merge rows with equal codes in the columns `names`, and add up their weights and the columns `adds`."""
    keys = {_GROUP: table[_GROUP], BLOCK: table[BLOCK], **{name: table[name] + 2 for name in names}}
    sizes = {name: int(key.max(initial=-1)) + 1 for name, key in keys.items()}
    if math.prod(sizes.values()) < 2**62:
        packed = {name: (np.arange(sizes[name]), key) for name, key in keys.items()}
    else:  # only those in use, numbered from 0
        packed = {name: np.unique(key, return_inverse=True) for name, key in keys.items()}
    cell, n_cells = np.zeros(len(table[_GROUP]), np.int64), 1
    for values, codes in packed.values():
        if len(values) > 1:
            cell = cell * len(values) + codes
        n_cells *= len(values)
    if n_cells <= max(4 * len(cell), 1 << 16):
        used = np.flatnonzero(np.bincount(cell, minlength=n_cells))
        found = {name: np.bincount(cell, table[name], minlength=n_cells)[used] for name in (WEIGHT, *adds)}
    else:
        used, cell = np.unique(cell, return_inverse=True)
        found = {name: np.bincount(cell, table[name], minlength=len(used)) for name in (WEIGHT, *adds)}
    for name, (values, _) in reversed(packed.items()):
        found[name] = values[used % len(values)] - 2 * (name in names) if len(values) else used
        used = used // max(len(values), 1)
    return found


def _recode(labels: np.ndarray, code: np.ndarray, n_labels: int) -> np.ndarray:
    """Codes of labels, or a matrix of sets of labels, in a larger vocabulary."""
    return code[labels] if labels.ndim == 1 else _place_columns(labels, code, n_labels, otherwise=0.0)


def _place_columns(matrix: np.ndarray, code: np.ndarray, n_labels: int, otherwise: float = np.nan) -> np.ndarray:
    """The columns of a matrix of rows × labels at their places in a larger vocabulary."""
    found = np.full((len(matrix), n_labels), otherwise)
    found[:, code[: matrix.shape[1]]] = matrix
    return found


def sorted_parts(state: State, width: int) -> Iterator[tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]]:
    """The rows sorted by group and block, some groups at a time, with the group and block of each row.

    The caller computes `width` numbers for each block.
    """
    table = _row_table(state)
    order = np.lexsort((table[BLOCK], table[_GROUP]))
    group, block = table[_GROUP][order], table[BLOCK][order]
    starts, first = runs(group, block), runs(group)
    part = np.searchsorted(starts, first) // max(1, _AT_ONCE // max(width, 1))
    borders = [*first[runs(part)].tolist(), len(order)]
    for start, end in pairwise(borders):
        some = order[start:end]
        rows = {name: column[some] for name, column in table.items() if name != _GROUP}
        yield {**rows, LABELS: state[LABELS]}, group[start:end], block[start:end]


def _by_group(table: Mapping[str, np.ndarray]) -> Iterator[tuple[int, dict[str, np.ndarray]]]:
    """The rows of each group that has any."""
    group = table[_GROUP]
    rows = {name: column for name, column in table.items() if name != _GROUP}
    if not len(group):
        return
    if (group == group[0]).all():
        yield int(group[0]), rows
        return
    order = np.argsort(group, kind="stable")
    starts = runs(group[order])
    for part in np.split(order, starts[1:]):
        yield int(group[part[0]]), {name: column[part] for name, column in rows.items()}
