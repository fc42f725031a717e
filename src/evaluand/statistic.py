"""Statistics: metrics that are a function of all their rows and no mean of them, with an interval by the jackknife.

A kind says which columns make a row and what the value of weighted rows is; everything else is here. The interval
leaves out one block of examples after the other: blocks are a pure function of what tells examples (or clusters)
apart, so the same rows give the same interval on any machine and in any shards. A replicate is the same value with
other weights, so one function serves for both.

Rows that consist of labels alone are counted: what is kept is a table of how often each combination occurred in each
block, which does not grow with the rows. Other rows are kept as they are.

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
from evaluand.metric import CLUSTER, LABELS, NO_ROWS, WEIGHT, Columns, Metric, State, Values, confidence_of, weights_of

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
        confidence: of the interval; None for a value without one, which costs less.

    Attributes:
        keeps: the prepared columns that make a row; their first axis is the row.
        counted: the rows are labels and nothing else, and are kept as a table of counts.

    Raises:
        SpecError: the confidence does not lie between 0 and 1.
    """

    keeps: ClassVar[tuple[str, ...]]
    counted: ClassVar[bool] = False

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
        block, clusters = np.zeros(n, np.int64), np.zeros(n_groups, np.int64)
        if self.by_cluster:
            keys = np.asarray(columns[CLUSTER]).astype(np.int64, copy=False)
            block = (scrambled(keys.view(np.uint64), 0) % np.uint64(BLOCKS)).astype(np.int64)
            clusters = _distinct(keys, group, n_groups)
        table = {_GROUP: group, BLOCK: block, WEIGHT: weight, _NUMBER: np.ones(n)}
        table |= {name: columns[name] for name in self.keeps}
        vocabulary = columns.get(LABELS, np.empty(0, np.object_))
        if self.counted:
            table = _counted(table, self.keeps, len(vocabulary))
        return {"n": count_rows(group, n_groups), "clusters": clusters, LABELS: vocabulary, **_held(table)}

    def merge(self, states: Sequence[State]) -> State:
        plain = {name: reduce(np.add, [state[name] for state in states]) for name in _BY_GROUP}
        vocabulary, states = _one_vocabulary(states, self.label_columns, self.score_columns)
        tables = [_table(state) for state in states]
        table = {name: np.concatenate([one[name] for one in tables]) for name in tables[0]}
        if self.counted:
            table = _counted(table, self.keeps, len(vocabulary))
        return {**plain, LABELS: vocabulary, **_held(table)}

    def place(self, state: State, positions: np.ndarray, n_groups: int) -> State:
        placed = super().place({name: state[name] for name in _BY_GROUP}, positions, n_groups)
        group = _PREFIX + _GROUP
        moved = positions[state[group]] if len(positions) else state[group]
        return {**state, **placed, group: moved}

    def compute(self, state: State) -> Values:
        n = state["n"]
        value, low, high = (np.full(n.shape, np.nan) for _ in range(3))
        reasons: list[str | None] = [NO_ROWS] * len(n)
        data: list[dict[str, Any]] = [{"n": int(rows)} for rows in n]
        for group, rows in _by_group(_table(state)):
            found = self._of_group({**rows, LABELS: state[LABELS]}, int(n[group]), int(state["clusters"][group]))
            value[group], low[group], high[group], reasons[group], told = found
            data[group] |= told
        return Values(value, low, high, reasons, data)

    def replicates(self, state: State) -> tuple[np.ndarray, np.ndarray]:
        """The value of each group, and all of them once more without each block (`BLOCKS` × groups).

        A group without rows in a block has its own value there.
        """
        n = state["n"]
        value, without = np.full(n.shape, np.nan), np.full((BLOCKS, *n.shape), np.nan)
        for group, rows in _by_group(_table(state)):
            arranged = self.arranged({**rows, LABELS: state[LABELS]})
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
        ends = np.full((len(groups), 2), np.nan)
        for place, members in enumerate(groups):
            of = np.isin(table[_GROUP], members)
            weight = np.bincount(table[BLOCK][of], table[WEIGHT][of], minlength=BLOCKS)
            means = without[:, members].mean(axis=1)[weight > 0]
            if len(means) > 1 and np.isfinite(means).all() and math.isfinite(found.value[place]):
                clusters = int(state["clusters"][members].max())
                ends[place] = self._about(float(found.value[place]), means, weight[weight > 0], clusters)
        reason = [
            None if known else why if value != value else _FRAGILE
            for known, value, why in zip(np.isfinite(ends[:, 0]), found.value, found.reason, strict=True)
        ]
        return replace(found, low=ends[:, 0], high=ends[:, 1], reason=reason)

    def _of_group(self, rows: Columns, n: int, clusters: int) -> tuple[float, float, float, str | None, dict[str, Any]]:
        rows = self.arranged(rows)
        weight = rows[WEIGHT]
        value = float(self._values(rows, weight[None])[0])
        told = self.told(rows, weight)
        nothing = math.nan, math.nan
        if not math.isfinite(value):
            return math.nan, *nothing, self._why(rows, weight), told
        if self.confidence is None:
            return value, *nothing, None, told
        low, high = self._ends(rows, value, n, clusters)
        why = None if math.isfinite(low) else _alone(n) if clusters < 2 else _FRAGILE
        return value, low, high, why, told | ({"clusters": clusters} if clusters != n else {})

    def _why(self, rows: Columns, weight: np.ndarray) -> str:
        if not weight.sum() > 0:
            return "all weights are 0"
        return self.undefined(rows, weight)

    def _values(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            found = np.asarray(self.value(rows, weight), np.float64)
        return np.where(np.isfinite(found) & (weight.sum(axis=1) > 0), found, np.nan)

    def _ends(self, rows: Columns, value: float, n: int, clusters: int) -> tuple[float, float]:
        """The interval: of a proportion where the range is bounded, else Student's."""
        block = rows[BLOCK] if n <= MANY_ROWS else rows[BLOCK] % FEW_BLOCKS
        blocks, without = self.without_each(rows, block)
        if len(blocks) < 2 or not np.isfinite(without).all():
            return math.nan, math.nan
        return self._about(value, without, np.bincount(block, rows[WEIGHT]), clusters)

    def _about(self, value: float, without: np.ndarray, weight: np.ndarray, clusters: int) -> tuple[float, float]:
        """The interval about a value, from the values without each block, and the blocks' weights."""
        assert self.confidence is not None
        n = len(without)
        variance = (n - 1) / n * float(np.square(without - without.mean()).sum())
        if variance <= (_ROUNDING * max(abs(value), 1e-300)) ** 2 * n:
            variance = 0.0
        kish = float(weight.sum() ** 2 / np.square(weight).sum())
        bounded = math.isfinite(self.range[1] - self.range[0])
        effective = kish * clusters / n if bounded and variance == 0 else kish
        spread = Spread(*(np.array([x]) for x in (variance, n, effective)))
        low, high = interval_within(np.array([value]), spread, self.range, self.confidence)
        return float(low[0]), float(high[0])


def reordered(rows: Columns, order: np.ndarray) -> dict[str, np.ndarray]:
    """The rows of a group in another order."""
    return {name: column if name == LABELS else column[order] for name, column in rows.items()}


BLOCK: Final = "_block_"
_GROUP: Final = "_group_"
_NUMBER: Final = "_n_"
_PREFIX: Final = "row:"
_BY_GROUP: Final = ("n", "clusters")
_AT_ONCE: Final = 1 << 22  # weights held in memory
_ROUNDING: Final = 64 * float(np.finfo(np.float64).eps)
_FRAGILE: Final = "no interval: a few rows decide whether there is a value at all"


def _alone(n: int) -> str:
    return "one scored row has no interval" if n == 1 else "one cluster has no interval"


def _held(table: Columns) -> dict[str, np.ndarray]:
    return {_PREFIX + name: column for name, column in table.items()}


def _table(state: State) -> dict[str, np.ndarray]:
    return {name.removeprefix(_PREFIX): column for name, column in state.items() if name.startswith(_PREFIX)}


def _distinct(keys: np.ndarray, group: np.ndarray, n_groups: int) -> np.ndarray:
    """How many different keys each group has."""
    order = np.lexsort((keys, group))
    keys, group = keys[order], group[order]
    new = np.ones(len(keys), np.bool_)
    new[1:] = (keys[1:] != keys[:-1]) | (group[1:] != group[:-1])
    return count_rows(group[new], n_groups)


def _counted(table: Mapping[str, np.ndarray], names: Sequence[str], n_labels: int) -> dict[str, np.ndarray]:
    """Rows that are alike as one, with their weights and numbers added.

    Args:
        names: columns of codes from -1 to `n_labels` - 1.
    """
    group = table[_GROUP]
    sizes = [int(group.max(initial=-1)) + 1, BLOCKS, *[n_labels + 1] * len(names)]
    columns = [group, table[BLOCK], *(table[name] + 1 for name in names)]
    if math.prod(sizes) >= 2**62:  # the codes in use, numbered from 0
        packed = [np.unique(column, return_inverse=True) for column in columns]
    else:
        packed = [(np.arange(size), column) for size, column in zip(sizes, columns, strict=True)]
    cell = np.zeros(len(group), np.int64)
    for values, codes in packed:
        cell = cell * len(values) + codes
    n_cells = math.prod(len(values) for values, _ in packed)
    if n_cells <= max(4 * len(cell), 1 << 16):
        number = np.bincount(cell, table[_NUMBER], minlength=n_cells)
        weight = np.bincount(cell, table[WEIGHT], minlength=n_cells)
        used = np.flatnonzero(number)
        number, weight = number[used], weight[used]
    else:
        used, inverse = np.unique(cell, return_inverse=True)
        number, weight = (np.bincount(inverse, table[name], minlength=len(used)) for name in (_NUMBER, WEIGHT))
    found: dict[str, np.ndarray] = {}
    for name, (values, _) in zip([*names[::-1], BLOCK, _GROUP], packed[::-1], strict=True):
        found[name] = np.asarray(values)[used % len(values)] - (name in names)
        used = used // len(values)
    return {**found, _NUMBER: number, WEIGHT: weight}


def _one_vocabulary(
    states: Sequence[State], names: Sequence[str], matrices: Sequence[str]
) -> tuple[np.ndarray, Sequence[State]]:
    """All labels, in the order they appear, and the states with their codes and columns of matrices in it."""
    place: dict[Any, int] = {}
    own = [[place.setdefault(label, len(place)) for label in state[LABELS].tolist()] for state in states]
    coded = []
    for state, codes in zip(states, own, strict=True):
        code = np.array([*codes, -1], np.int64)  # -1 stays -1
        found = dict(state)
        for key in (_PREFIX + name for name in names if _PREFIX + name in state):
            found[key] = code[state[key]]
        for key in (_PREFIX + name for name in matrices if _PREFIX + name in state):
            found[key] = np.full((len(state[key]), len(place)), np.nan)
            found[key][:, codes] = state[key]
        coded.append(found)
    return np.fromiter(place, np.object_, len(place)), coded


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
