"""Statistics: metrics that are a function of all their rows and no mean of them, with an interval by the jackknife.

A kind says which columns make a row and what the value of weighted rows is; everything else is here. The interval
leaves out one block of examples after the other: blocks are a pure function of what tells examples (or clusters)
apart, so the same rows give the same interval on any machine and in any shards. A replicate is the same value with
other weights, so one function serves for both.

Rows that consist of labels alone are counted: what is kept is a table of how often each combination occurred in each
block, which does not grow with the rows; only an interval needs a key of each row besides, to count the clusters. Other
rows are kept as they are.

    prepare ──▶ rows by group, block and weight ── merge ──▶ arranged once per group ── value(weights) ──▶ Values
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, ClassVar, Final

import numpy as np

from evaluand.intervals import Spread, count_rows, interval_within, scrambled
from evaluand.labels import one_vocabulary
from evaluand.metric import (
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

BLOCKS: Final = 256
"""How many blocks the jackknife leaves out at most; its interval has a degree of freedom less than there are."""

FEW_BLOCKS: Final = 64
"""How many it leaves out of more than `MANY_ROWS` rows."""

MANY_ROWS: Final = 50_000


@dataclass(frozen=True, kw_only=True)
class Statistic(Metric):
    """A function of weighted rows, with a jackknife interval over blocks of examples or clusters.

    Where the range is bounded on both sides, the interval is the score interval of a proportion with the jackknife's
    variance, so it stays within the range and has a width where all rows agree; else it is Student's.
    Source: J. Shao & D. Tu, The Jackknife and Bootstrap (1995), section 2.3, for blocks left out; see
    `clustered_wilson` for the score interval.

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
        return None if self.confidence is None else "jackknife"

    @property
    def by_cluster(self) -> bool:
        return self.confidence is not None

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
            rows: what `arranged` gave.
            block: the block of each row.
        """
        weight = rows[WEIGHT]
        blocks = np.unique(block[weight > 0])
        step = max(1, _AT_ONCE // max(len(weight), 1))
        found = [
            self._values(rows, np.where(block == blocks[i : i + step, None], 0.0, weight))
            for i in range(0, len(blocks), step)
        ]
        return blocks, np.concatenate(found) if found else np.empty(0)

    def state(self, columns: Columns, group: np.ndarray, n_groups: int) -> State:
        n = len(group)
        weight = weights_of(columns, self.kind) if self.weighted else np.ones(n)
        table = {_GROUP: group, BLOCK: np.zeros(n, np.int64), WEIGHT: weight}
        table |= {name: columns[name] for name in (*self.keeps, *self.adds)}
        clusters: Columns = {}
        if self.by_cluster:
            keys = np.asarray(columns[CLUSTER]).astype(np.int64, copy=False)
            table[BLOCK] = (scrambled(keys.view(np.uint64), 0) % np.uint64(BLOCKS)).astype(np.int64)
            clusters = dict(zip(_CLUSTERS, (keys, group, weight), strict=True))
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
        for group, rows in self.rows_of(state):
            arranged = self.arranged(rows)
            value[group] = self._values(arranged, arranged[WEIGHT][None])[0]
            data[group] |= self.told(arranged, arranged[WEIGHT])
            if not math.isfinite(value[group]):
                reasons[group] = self._why(arranged, arranged[WEIGHT])
                continue
            reasons[group] = None
            basis = min(self.basis(arranged, arranged[WEIGHT]), 1.0)
            if basis < 1:
                data[group]["rests_on"] = round(float(n[group]) * basis, 1)
            if "cluster_key" in state:
                ends = self._ends(arranged, float(value[group]), int(n[group]), float(effective[group]) * basis)
                low[group], high[group] = ends
                reasons[group] = None if math.isfinite(ends[0]) else _no_interval(int(n[group]), int(clusters[group]))
                data[group] |= {"clusters": int(clusters[group])} if clusters[group] != n[group] else {}
        return Values(value, low, high, reasons, data)

    def rows_of(self, state: State) -> Iterator[tuple[int, Columns]]:
        """The rows of each group that has some, as `arranged` takes them."""
        for group, rows in _by_group(_table(state)):
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
        """With the jackknife's interval, in which a block is left out of all groups at once."""
        found = super().mean_over(state, groups)
        if self.confidence is None:
            return replace(
                found, reason=[None if v == v else r for v, r in zip(found.value, found.reason, strict=True)]
            )
        table = _table(state)
        _, without = self.replicates(state)
        _, effective = clusters_of(state)
        ends = np.full((len(groups), 2), np.nan)
        for place, members in enumerate(groups):
            blocks = np.unique(table[BLOCK][np.isin(table[_GROUP], members) & (table[WEIGHT] > 0)])
            means = without[:, members].mean(axis=1)[blocks]
            if len(means) > 1 and np.isfinite(means).all() and math.isfinite(found.value[place]):
                ends[place] = self._about(float(found.value[place]), means, float(effective[members].max()))
        reason = [
            None if known else why if value != value else _FEW_DECIDE
            for known, value, why in zip(np.isfinite(ends[:, 0]), found.value, found.reason, strict=True)
        ]
        return replace(found, low=ends[:, 0], high=ends[:, 1], reason=reason)

    def _why(self, rows: Columns, weight: np.ndarray) -> str:
        if not weight.sum() > 0:
            return WEIGHTLESS
        return self.undefined(rows, weight)

    def _values(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            found = np.asarray(self.value(rows, weight), np.float64)
        return np.where(np.isfinite(found) & (weight.sum(axis=1) > 0), found, np.nan)

    def _ends(self, rows: Columns, value: float, n: int, effective: float) -> tuple[float, float]:
        """The interval: that of a proportion where the range is bounded, else Student's."""
        blocks, without = self.without_each(rows, rows[BLOCK] if n <= MANY_ROWS else rows[BLOCK] % FEW_BLOCKS)
        if len(blocks) < 2 or not np.isfinite(without).all():
            return math.nan, math.nan
        return self._about(value, without, effective, self.least_variance(rows, value))

    def least_variance(self, rows: Columns, value: float) -> float:
        """What a value's variance cannot lie below, whatever few blocks say that are alike by chance."""
        return 0.0

    def _about(self, value: float, without: np.ndarray, effective: float, least: float = 0.0) -> tuple[float, float]:
        """The interval about a value, from the values without each block."""
        assert self.confidence is not None
        n = len(without)
        with np.errstate(over="ignore", invalid="ignore"):
            variance = (n - 1) / n * float(np.square(without - without.mean()).sum())
        if not math.isfinite(variance):
            return math.nan, math.nan
        width = self.range[1] - self.range[0]
        if variance <= (_ROUNDING * (width if math.isfinite(width) else abs(value))) ** 2 * n:
            variance = 0.0
        elif variance < least:
            variance = least
        if variance == 0 and not math.isfinite(width):
            return math.nan, math.nan
        spread = Spread(*(np.array([x]) for x in (variance, n, effective)))
        low, high = interval_within(np.array([value]), spread, self.range, self.confidence)
        return float(low[0]), float(high[0])


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


_FEW_DECIDE: Final = "no interval: leaving a few rows out leaves no value, or changes nothing, or too much"


def _no_interval(n: int, clusters: int) -> str:
    if clusters > 1:
        return _FEW_DECIDE
    return "one scored row has no interval" if n == 1 else "one cluster has no interval"


def _held(table: Columns) -> dict[str, np.ndarray]:
    return {_PREFIX + name: column for name, column in table.items()}


def _table(state: State) -> dict[str, np.ndarray]:
    return {name.removeprefix(_PREFIX): column for name, column in state.items() if name.startswith(_PREFIX)}


def _by_group_in(state: State) -> list[str]:
    """The arrays that have one entry for each group."""
    return [name for name in state if not name.startswith(_PREFIX) and name not in (*_CLUSTERS, LABELS)]


def clusters_of(state: State) -> tuple[np.ndarray, np.ndarray]:
    """How many clusters with weight each group has, and how many of equal weight would tell as much (Kish)."""
    n_groups = len(state["n"])
    if "cluster_key" not in state:
        return np.zeros(n_groups), np.zeros(n_groups)
    key, group, weight = (state[name] for name in _CLUSTERS)
    if (key[1:] <= key[:-1]).any():
        order = np.lexsort((key, group))
        key, group, weight = key[order], group[order], weight[order]
        starts = np.flatnonzero(np.r_[True, (key[1:] != key[:-1]) | (group[1:] != group[:-1])])
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
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    for part in np.split(order, starts[1:]):
        yield int(group[part[0]]), {name: column[part] for name, column in rows.items()}
