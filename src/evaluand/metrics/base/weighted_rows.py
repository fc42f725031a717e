"""Statistics: metrics that are a function of all their rows and no mean of them, with an interval.

A kind says which columns make a row and what the value of weighted rows is; everything else is here. The interval
leaves out one block of examples after the other: blocks are a pure function of what tells examples (or clusters)
apart, so the same rows give the same interval on any machine and in any shards. A replicate is the same value with
other weights, so one function serves for both. A kind that knows the influence of each row, the derivative of its value
by the row's weight, needs no replicate: summed by cluster, influences are what leaving one out would change.

Rows that consist of labels alone are counted: what is kept is a table of how often each combination occurred in each
block, which does not grow with the rows; only an interval needs a key of each row besides, to count the clusters. Other
rows are kept as they are.

    prepare ──▶ rows by group, block and weight ── merge ──▶ arranged once per group ── value(weights) ──▶ Values
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from evaluand.metrics.base.labels import one_vocabulary
from evaluand.metrics.base.metric import (
    APART,
    CLUSTER,
    LABELS,
    NO_ROWS,
    WEIGHT,
    WEIGHTLESS,
    Columns,
    Metric,
    State,
    Values,
    confidence_of,
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
"""How many blocks the jackknife leaves out at most; its interval has a degree of freedom less than there are."""

FEW_BLOCKS: Final = 64
"""How many it leaves out of more than `MANY_ROWS` rows that are not counted."""

MANY_ROWS: Final = 50_000


@dataclass(frozen=True, kw_only=True)
class WeightedRowsMetric(Metric):
    """A function of weighted rows, with an interval by rows' influence, or else by the jackknife over blocks of them.

    Where the range is bounded on both sides, the interval is the score interval of a proportion with the variance
    found, so it stays within the range and has a width where all rows agree; else it is Student's.
    Source: J. Shao & D. Tu, The Jackknife and Bootstrap (1995), section 2.3 for blocks left out and 2.4 for influences
    (the infinitesimal jackknife); see `clustered_wilson` and `steady_interval` for the score interval.

    Args:
        weighted: each row counts by the weight of its example.
        confidence: of the interval; None for a value without one, which costs less: with it, a key is kept of each row.

    Attributes:
        keeps: the prepared columns that make a row; their first axis is the row.
        counted: the rows are labels and nothing else, and are kept as a table of counts.
        adds: columns of numbers that are added up where rows are counted, as weights are.

    Raises:
        SpecError: the confidence does not lie between 0 and 1.
    """

    keeps: ClassVar[tuple[str, ...]]
    counted: ClassVar[bool] = False
    adds: ClassVar[tuple[str, ...]] = ()

    weighted: bool = False
    confidence: float | None = 0.95

    def __post_init__(self) -> None:
        if self.confidence is not None:
            object.__setattr__(self, "confidence", confidence_of(self.kind, self.confidence))
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
    def counts_apart(self) -> bool:
        return self.counted and self.by_cluster and not self.weighted

    @abstractmethod
    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        """The values of some rows under several weightings.

        Args:
            rows: what `arranged` gave, of one group; with at least one row.
            weight: replicates × rows, 0 or more; the rows of weight 0 are not there.

        Returns:
            One value for each replicate, NaN where it is undefined.
        """

    def basis(self, rows: Columns, weight: np.ndarray) -> float:
        """The share of the rows that a value rests on: recall rests on those expected, and knows nothing of others.

        Args:
            rows: what `arranged` gave.
            weight: one for each row.
        """
        return 1.0

    def influence(self, rows: Columns, weight: np.ndarray) -> np.ndarray | None:
        """The derivative of the value by the weight of each row; NaN where rows are too few to tell its spread.

        A kind that gives it has its interval from it, and else from the values without each block.

        Args:
            rows: what `arranged` gave; with `CLUSTER`, which rows belong together.
            weight: one for each row.
        """
        return None

    def least_variance(self, rows: Columns, value: float) -> float:
        """What a value's variance cannot lie below unless it is 0, whatever few blocks say that are alike by chance.

        Args:
            rows: what `arranged` gave.
        """
        return 0.0

    def expected_basis(self, rows: Columns, weight: np.ndarray) -> float:
        """The share of the rows of which a proportion would vary as a value by influence is expected to.

        What is measured counts the more against it, the more rows there are, see `steady_interval`.
        """
        return self.basis(rows, weight)

    def arranged(self, rows: Columns) -> Columns:
        """The rows of one group in another order, and what else is found out once for all weightings.

        What has the length of the rows is to be in their new order, `WEIGHT` and `BLOCK` too.
        """
        return rows

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        """Why rows that are there have no value, in words."""
        return "undefined for these rows"

    def told(self, rows: Columns, weight: np.ndarray) -> dict[str, Any]:
        """What else there is to say of a group's rows, JSON-like; `weight` has one entry for each."""
        return {}

    def without_each(self, rows: Columns, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The blocks that hold rows of any weight, and the value without each of them.

        A kind that knows a quicker way than to begin anew for each block takes that.

        Args:
            rows: what `arranged` gave; where they are `counted`, as they are counted.
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
        """What occurs, and how often without each block; None where more is kept of it, or there is too much of it."""
        if self.adds:
            return None
        cell = np.zeros(len(block), np.int64)
        for name in self.keeps:
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
        cells = {name: rows[name][first] for name in self.keeps}
        weight = here.sum(axis=0)
        arranged = self.arranged({**cells, LABELS: rows[LABELS], WEIGHT: weight, BLOCK: np.arange(len(first))})
        return arranged, left[:, arranged[BLOCK]]

    def state(self, columns: Columns, group: np.ndarray, n_groups: int) -> State:
        n = len(group)
        weight = weights_of(columns, self.kind) if self.weighted else np.ones(n)
        table = {_GROUP: group, BLOCK: np.zeros(n, np.int64), WEIGHT: weight}
        table |= {name: columns[name] for name in (*self.keeps, *self.adds)}
        clusters: Columns = {}
        if self.by_cluster:
            keys = np.asarray(columns[APART if APART in columns else CLUSTER]).astype(np.int64, copy=False)
            table[BLOCK] = (random_bits(keys.view(np.uint64), 0) & np.uint64(BLOCKS - 1)).view(np.int64)
            clusters = dict(zip(_CLUSTERS, (keys, group, weight), strict=True))
            if APART in columns:
                clusters = {APART: count_rows(group, n_groups)}
        vocabulary = columns.get(LABELS, np.empty(0, np.object_))
        if self.counted:
            table = _counted(table, self.keeps, len(vocabulary), self.adds)
        return {"n": count_rows(group, n_groups), **clusters, LABELS: vocabulary, **_held(table)}

    def merge(self, states: Sequence[State]) -> State:
        vocabulary, codes = one_vocabulary([state[LABELS] for state in states])
        tables = []
        for state, code in zip(states, codes, strict=True):
            table = _table(state)
            table |= {name: code[table[name]] for name in self.keeps if name in self.label_columns}
            scores = [name for name in self.keeps if name in self.score_columns]
            table |= {name: _placed_columns(table[name], code, len(vocabulary)) for name in scores}
            tables.append(table)
        table = {name: np.concatenate([one[name] for one in tables]) for name in tables[0]}
        if self.counted:
            table = _counted(table, self.keeps, len(vocabulary), self.adds)
        clusters = {name: np.concatenate([state[name] for state in states]) for name in _CLUSTERS if name in states[0]}
        sums = {name: reduce(np.add, [state[name] for state in states]) for name in _by_group_in(states[0])}
        return {**sums, **clusters, LABELS: vocabulary, **_held(table)}

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
        for group, found in self.judged(state):
            value[group], reasons[group] = found.value, found.why
            data[group] |= found.told
            if found.why is not None:
                continue
            if found.basis < 1 - _ROUNDING:
                data[group]["rests_on"] = round(float(n[group]) * found.basis, 1)
            if found.ends is not None:
                low[group], high[group] = found.ends
                continue
            if found.bounds is not None:
                low[group], high[group] = found.bounds(float(effective[group]))
                continue
            if found.changes is not None:
                low[group], high[group] = self._by_influence(found.value, [found], effective[[group]])
                continue
            effective[group] *= found.basis
            variance[group], blocks[group] = self._variance(found.value, found.without, found.least, found.often)
        if _has_blocks(state):
            held = np.isfinite(variance)
            spread = Spread(variance[held], blocks[held], effective[held])
            low[held], high[held] = self._within(value[held], spread)
            for group in np.flatnonzero(np.isfinite(value)).tolist():
                few, all_ = int(clusters[group]), int(n[group])
                reasons[group] = None if math.isfinite(low[group]) else _no_interval(all_, few)
                data[group] |= {"clusters": few} if few != all_ else {}
        return Values(value, low, high, reasons, data)

    def judged(self, state: State) -> Iterator[tuple[int, Judged]]:
        """What the rows of each group that has some come to, group by group.

        A kind that knows a way for many groups at once takes that.
        """
        for group, rows in self.rows_of(state):
            arranged = self.arranged(self._alike(rows))
            weight = arranged[WEIGHT]
            value = float(self._values(arranged, weight[None])[0])
            told = self.told(arranged, weight)
            if not math.isfinite(value):
                yield group, Judged(value, told, self._why(arranged, weight))
                continue
            found = Judged(value, told, None, min(self.basis(arranged, weight), 1.0))
            if _has_blocks(state) and self.interval == "influence":
                found = found._replace(changes=self._changes(arranged))
            elif _has_blocks(state):
                without = self._without(rows if self.counted else arranged, int(state["n"][group]))
                found = found._replace(without=without, least=self.least_variance(arranged, value))
            yield group, found

    def _alike(self, rows: Columns) -> Columns:
        """Rows of labels that are alike in whatever block, as one."""
        if not self.counted:
            return rows
        nothing = np.zeros_like(rows[BLOCK])
        table = {_GROUP: nothing, BLOCK: nothing, **{name: rows[name] for name in (WEIGHT, *self.keeps, *self.adds)}}
        return {**_counted(table, self.keeps, len(rows[LABELS]), self.adds), LABELS: rows[LABELS]}

    def rows_of(self, state: State) -> Iterator[tuple[int, Columns]]:
        """The rows of each group that has some, as `arranged` takes them."""
        keys = {} if self.counted or "cluster_key" not in state else {CLUSTER: state["cluster_key"]}
        for group, rows in _by_group({**_table(state), **keys}):
            yield group, {**rows, LABELS: state[LABELS]}

    def replicates(self, state: State) -> tuple[np.ndarray, np.ndarray]:
        """The value of each group, and all of them once more without each block (`BLOCKS` × groups).

        A group without rows in a block has its own value there.
        """
        n = state["n"]
        value, without = np.full(n.shape, np.nan), np.full((BLOCKS, *n.shape), np.nan)
        for group, rows in self.rows_of(state):
            arranged = self.arranged(rows)
            value[group] = self._values(arranged, arranged[WEIGHT][None])[0]
            without[:, group] = value[group]
            blocks, left = self.without_each(arranged, arranged[BLOCK])
            without[blocks, group] = left
        return value, without

    def mean_over(self, state: State, groups: Sequence[np.ndarray]) -> Values:
        """With an interval, in which a block is left out of all groups at once, or a cluster changes all of them."""
        found = super().mean_over(state, groups)
        if self.confidence is None:
            return replace(
                found, reason=[None if v == v else r for v, r in zip(found.value, found.reason, strict=True)]
            )
        ends = self._ends_of_means(state, found.value, groups)
        reason = [
            None if known else why if value != value else _FEW_DECIDE
            for known, value, why in zip(np.isfinite(ends[:, 0]), found.value, found.reason, strict=True)
        ]
        return replace(found, low=ends[:, 0], high=ends[:, 1], reason=reason)

    def _ends_of_means(self, state: State, value: np.ndarray, groups: Sequence[np.ndarray]) -> np.ndarray:
        ends = np.full((len(groups), 2), np.nan)
        if not _has_blocks(state):
            return ends
        known = [place for place in range(len(groups)) if math.isfinite(value[place])]
        _, effective = clusters_of(state)
        judged = dict(self.judged(state))
        if self.interval == "influence":
            for place in known:
                members = groups[place]
                each = [judged[group] for group in members.tolist()]
                ends[place] = self._by_influence(float(value[place]), each, effective[members])
            return ends
        table = _table(state)
        _, without = self.replicates(state)
        for place in known:
            members = groups[place]
            blocks = np.unique(table[BLOCK][np.isin(table[_GROUP], members) & (table[WEIGHT] > 0)])
            means = without[:, members].mean(axis=1)[blocks]
            each = [judged[group] for group in members.tolist()]
            if all(found.bounds is not None for found in each):
                ends[place] = self._by_bounds(each, without[:, members][blocks], effective[members])
                continue
            variance, n = self._variance(float(value[place]), means, float(np.mean([found.least for found in each])))
            if math.isfinite(variance):
                rests_on = min(float(k) * found.basis for k, found in zip(effective[members], each, strict=True))
                spread = Spread(*(np.array([x]) for x in (variance, n, rests_on)))
                ends[place] = np.concatenate(self._within(value[place : place + 1], spread))
        return ends

    def _why(self, rows: Columns, weight: np.ndarray) -> str:
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
        alike = float(weight.sum() ** 2 / np.square(weight).sum())
        return Changes(rows[CLUSTER], weight * influence, alike, min(self.expected_basis(rows, weight), 1.0))

    def _without(self, rows: Columns, n: int) -> np.ndarray:
        """The values without each block that is left out for the interval."""
        many = n > MANY_ROWS and not self.counted
        return self.without_each(rows, rows[BLOCK] % FEW_BLOCKS if many else rows[BLOCK])[1]

    def _variance(
        self, value: float, without: np.ndarray, least: float = 0.0, often: np.ndarray | None = None
    ) -> tuple[float, int]:
        """The jackknife's variance of a value, NaN where there is none, and from how many blocks.

        Args:
            least: see `least_variance`.
            often: how many blocks each value is without; one if not given.
        """
        n = len(without) if often is None else int(often.sum())
        if n < 2 or not np.isfinite(without).all():
            return math.nan, n
        with np.errstate(over="ignore", invalid="ignore"):
            if often is None:
                variance = (n - 1) / n * float(np.square(without - without.mean()).sum())
            else:  # kinds of rows have no order that other groups do not change
                off = without - math.fsum(often * without) / n
                variance = (n - 1) / n * math.fsum(often * np.square(off))
        if not math.isfinite(variance):
            return math.nan, n
        variance = self._unless_rounding(variance, value, n)
        variance = max(variance, least) if variance else variance
        return variance if variance or math.isfinite(self.range[1] - self.range[0]) else math.nan, n

    def _within(self, value: np.ndarray, spread: Spread) -> tuple[np.ndarray, np.ndarray]:
        """The interval: that of a proportion where the range is bounded, else Student's."""
        assert self.confidence is not None
        variance, blocks, effective = spread
        effective = np.where(variance > 0, np.minimum(effective, blocks), effective)
        return interval_within(value, Spread(variance, blocks, effective), self.range, self.confidence)

    def _by_influence(self, value: float, groups: Sequence[Judged], effective: np.ndarray) -> tuple[float, float]:
        """The interval about the mean of the values of groups that may share clusters.

        Clusters tell as much as they are, but no more than the rows that a value rests on.

        Args:
            effective: how many clusters of equal weight each group has.
        """
        assert self.confidence is not None
        each = [(found.basis, found.changes) for found in groups if found.changes is not None]
        change = np.concatenate([changes.change for _, changes in each]) / len(each)
        resting = [min(float(n), changes.alike * basis) for n, (basis, changes) in zip(effective, each, strict=True)]
        fewest = min(resting)
        if fewest < _FEWEST or not np.isfinite(change).all():
            return math.nan, math.nan
        expected = min(n / basis * changes.expected for n, (basis, changes) in zip(resting, each, strict=True))
        change = _summed(np.concatenate([changes.key for _, changes in each]), change)
        variance = fewest / (fewest - 1) * float(np.square(change).sum())
        variance = self._unless_rounding(variance, value, len(change))
        return steady_interval(value, variance, expected, fewest, self.range, self.confidence)

    def _by_bounds(self, groups: Sequence[Judged], without: np.ndarray, effective: np.ndarray) -> tuple[float, float]:
        """The interval about the mean of the values of groups by theirs; groups without spread are taken as alike.

        Args:
            without: the values without each block, blocks × groups.
            effective: how many clusters of equal weight each group has.
        """
        each = [found.bounds(float(n)) for n, found in zip(effective, groups, strict=True) if found.bounds is not None]
        low, high = np.array(each).T
        off = without - without.mean(axis=0)
        off[:, [math.sqrt(float(one @ one)) <= _ROUNDING * math.sqrt(len(one)) for one in off.T]] = 0.0
        together = correlation_of(off.T @ off, 1.0)
        ends = mean_of_shares(np.array([found.value for found in groups]), low, high, together, self.range)
        return float(ends[0]), float(ends[1])

    def _unless_rounding(self, variance: float, value: float, n: int) -> float:
        """The variance, 0 where it may be of rounding alone."""
        width = self.range[1] - self.range[0]
        least = _ROUNDING * (width if math.isfinite(width) else abs(value)) * math.sqrt(n)
        return 0.0 if math.sqrt(variance) <= least else variance


class Changes(NamedTuple):
    """What the influences of rows tell of the spread of their value.

    Attributes:
        key: the cluster of each row.
        change: by the influence of each row with its weight.
        alike: of how many rows of equal weight it is.
        expected: the share of them of which a proportion would vary as is expected.
    """

    key: np.ndarray
    change: np.ndarray
    alike: float
    expected: float


class Judged(NamedTuple):
    """What the rows of one group come to.

    Attributes:
        value: NaN where undefined.
        told: what else there is to say.
        why: why it is undefined; None where it is not.
        basis: the share of the rows that it rests on, up to 1.
        without: the values without each block, where there is to be an interval by them.
        least: see `least_variance`.
        changes: the influences, where there is to be an interval by them.
        often: how many blocks each of `without` stands for; one if not given.
        ends: the interval, where it is known without them.
        bounds: the interval of so many clusters of equal weight, of a kind that has it otherwise.
    """

    value: float
    told: dict[str, Any]
    why: str | None
    basis: float = 1.0
    without: np.ndarray = np.empty(0)
    least: float = 0.0
    changes: Changes | None = None
    often: np.ndarray | None = None
    ends: tuple[float, float] | None = None
    bounds: Callable[[float], tuple[float, float]] | None = None


def of_kinds(state: State, keeps: Sequence[str], most: int = BLOCKS) -> tuple[State, np.ndarray]:
    """Counted rows that nothing belongs to but themselves, with those that are alike as a block.

    Of groups that have too many kinds of rows for that, the blocks stay as they are.

    Args:
        keeps: the columns that make a row.
        most: how many kinds of rows a group may have.

    Returns:
        The state, and which groups have such blocks.
    """
    table, n_groups = _table(state), len(state["n"])
    alike = _counted({**table, BLOCK: np.zeros_like(table[BLOCK])}, keeps, len(state[LABELS]), ())
    few = count_rows(alike[_GROUP], n_groups) <= most
    alike[BLOCK] = np.arange(len(alike[_GROUP]))
    held = few[alike[_GROUP]], ~few[table[_GROUP]]
    parts = {name: np.concatenate([alike[name][held[0]], table[name][held[1]]]) for name in table}
    return {**state, **_held(parts)}, few


def reordered(rows: Columns, order: np.ndarray) -> dict[str, np.ndarray]:
    """The rows of a group in another order."""
    return {name: column if name == LABELS else column[order] for name, column in rows.items()}


BLOCK: Final = "_block_"
_GROUP: Final = "_group_"
_PREFIX: Final = "row:"
_CLUSTERS: Final = ("cluster_key", "cluster_group", "cluster_weight")
"""Arrays of `CLUSTER_TABLE`, with an entry for each row: which rows belong together is known when all are there."""
_AT_ONCE: Final = 1 << 22  # weights held in memory
_ROUNDING: Final = 64 * float(np.finfo(np.float64).eps)


_FEWEST: Final = 1.5  # rows that decide: of one alone nothing can be told


_FEW_DECIDE: Final = "no interval: leaving a few rows out leaves no value, or changes nothing, or too much"


def _no_interval(n: int, clusters: int) -> str:
    if clusters > 1:
        return _FEW_DECIDE
    return "one scored row has no interval" if n == 1 else "one cluster has no interval"


def kept(state: State, name: str) -> np.ndarray:
    """One of the columns that rows are kept as."""
    return state[_PREFIX + name]


def _summed(key: np.ndarray, change: np.ndarray) -> np.ndarray:
    """The sum of each cluster."""
    if (key[1:] > key[:-1]).all():
        return change
    order = np.argsort(key, kind="stable")
    return np.asarray(np.add.reduceat(change[order], runs(key[order])))


def _held(table: Columns) -> dict[str, np.ndarray]:
    return {_PREFIX + name: column for name, column in table.items()}


def _table(state: State) -> dict[str, np.ndarray]:
    return {name.removeprefix(_PREFIX): column for name, column in state.items() if name.startswith(_PREFIX)}


def _has_blocks(state: State) -> bool:
    """Whether rows are told apart, so that there is an interval."""
    return "cluster_key" in state or APART in state


def _by_group_in(state: State) -> list[str]:
    """The arrays that have one entry for each group."""
    return [name for name in state if not name.startswith(_PREFIX) and name not in (*_CLUSTERS, LABELS)]


def clusters_of(state: State) -> tuple[np.ndarray, np.ndarray]:
    """How many clusters with weight each group has, and how many of equal weight would tell as much (Kish)."""
    n_groups = len(state["n"])
    if APART in state:
        return state[APART], state[APART].astype(np.float64)
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


def _counted(table: Columns, names: Sequence[str], n_labels: int, adds: Sequence[str]) -> dict[str, np.ndarray]:
    """Rows that are alike as one, with their weights added.

    Args:
        names: columns of codes from -2 to `n_labels` - 1.
        adds: columns that are added up too.
    """
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


def _placed_columns(matrix: np.ndarray, code: np.ndarray, n_labels: int) -> np.ndarray:
    """The columns of a matrix of rows × labels at their places in a larger vocabulary, NaN elsewhere."""
    found = np.full((len(matrix), n_labels), np.nan)
    found[:, code[: matrix.shape[1]]] = matrix
    return found


def sorted_parts(state: State, width: int) -> Iterator[tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]]:
    """The rows by group and block, some groups at a time, with the group and block of each.

    Args:
        width: how many numbers there will be for each block.
    """
    table = _table(state)
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
    """The rows of each group that has some."""
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
