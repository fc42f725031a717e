"""Disparities: how far a metric's values by group lie apart, with intervals that hold for the worst pair of groups.

Which groups differ most is chosen by looking at all of them, and the largest of many differences is large by chance
alone. So every pair gets an interval at a level that holds for all pairs at once (Bonferroni), and the interval of the
largest difference reaches from the largest lower end to the largest upper end: whichever pair is truly the worst, it is
covered. With two groups nothing is lost by this.

The interval of a pair is made of those of its two groups, for any metric that has some: G. Y. Zou & A. Donner,
"Construction of confidence limits about effect measures: a general approach" (Statistics in Medicine 27, 2008), on
logarithms for ratios. It takes groups as independent; where clusters reach across groups, or a group is compared with
all rows, it is wider than need be.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, get_args

import numpy as np

from evaluand.errors import SpecError
from evaluand.groups import By, MetricRow, Summary
from evaluand.registry import nearest

Kind = Literal["difference", "ratio", "min", "max", "difference_to_overall", "ratio_to_overall"]
"""What is made of the values by group: the largest difference, or the smallest ratio, between two groups; the smallest
or the largest value; or the largest difference, or the ratio farthest from 1 (below 1), to the value over all rows."""

SMALL: Final = 30
"""Groups whose values rest on fewer scored rows are told as small: recall rests on those expected."""


class DisparityRow(NamedTuple):
    """How far groups lie apart.

    Attributes:
        metric: the metric's kind; of several metrics, what they are called together.
        signature: the metric with all its parameters; of several, each.
        target: which of several things expected; None where there are no targets.
        over: the attributes whose groups are compared.
        disparity: what is made of the groups' values.
        value: NaN where undefined, with a `reason`.
        low: lower end of the interval, NaN where there is none.
        high: upper end of the interval.
        reason: why the value, or else only its interval, is undefined.
        lowest: the group with the smallest value, attribute by attribute; None where undefined.
        highest: the group with the largest value.
        n_groups: how many groups were compared.
        small: groups compared whose values rest on fewer than `SMALL` scored rows.
        undefined: groups without a value, which were left out.
    """

    metric: str
    signature: str
    target: str | None
    over: tuple[str, ...]
    disparity: str
    value: float
    low: float
    high: float
    reason: str | None
    lowest: Mapping[str, str | None] | None
    highest: Mapping[str, str | None] | None
    n_groups: int
    small: tuple[Mapping[str, str | None], ...]
    undefined: tuple[Mapping[str, str | None], ...]


def kinds_of(given: Any) -> tuple[Kind, ...]:
    """The disparities asked for, checked.

    Raises:
        SpecError: one is none.

    Example:
        >>> kinds_of("difference")
        ('difference',)
    """
    listed = (given,) if isinstance(given, str) else tuple(given or ())
    known = get_args(Kind)
    for name in listed:
        if name not in known:
            raise SpecError(f"no disparity is called {name!r}{nearest(str(name), known)}; there are {', '.join(known)}")
    return tuple(dict.fromkeys(listed))


def disparities(
    summary: Summary, positions: Sequence[int], over: By, kinds: Sequence[Kind], *, name: str | None = None
) -> list[DisparityRow]:
    """How far the groups of one grouping lie apart, for each target.

    Rows without an attribute's value are no group; groups without a value are left out and told.

    Args:
        summary: of all shards, by `over` and over all rows.
        positions: which of its metrics; of several, the largest disparity counts (equalized odds is that of the true
            and the false positive rates).
        over: attributes whose groups are compared.
        kinds: what is made of their values.
        name: what several metrics are called together.
    """
    compared = _Compared(summary, tuple(positions), over, name)
    return [compared.row(target, kind) for target in compared.targets for kind in kinds]


class _Groups(NamedTuple):
    """The values of one metric by group, of those that have one: arrays with an entry for each."""

    rows: list[MetricRow]
    value: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, rows: Sequence[MetricRow]) -> _Groups:
        known = [row for row in rows if math.isfinite(row.value)]
        return cls(known, *(np.array([getattr(row, name) for row in known]) for name in ("value", "low", "high")))

    def scaled(self, kind: str) -> _Groups:
        """On the scale on which disparities of a kind are differences."""
        if not kind.startswith("ratio"):
            return self
        with np.errstate(divide="ignore"):
            return _Groups(self.rows, *(np.log(np.maximum(array, 0.0)) for array in self[1:]))


class _Compared(NamedTuple):
    summary: Summary
    positions: tuple[int, ...]
    over: By
    name: str | None

    @property
    def targets(self) -> list[str | None]:
        return list(dict.fromkeys(row.target for row in self._rows(self.positions[0], self.over)))

    def row(self, target: str | None, kind: Kind) -> DisparityRow:
        metrics = [self.summary.settled(position) for position in self.positions]
        groups = [self._groups(position, target) for position in self.positions]
        fault = self._fault(groups, kind)
        found = (math.nan, math.nan, math.nan, None, None) if fault else self._found(target, kind, groups)
        every = [row for one in groups for row in one.rows]
        left_out = [row for position in self.positions for row in self._members(position, target)]
        return DisparityRow(
            metric=self.name or metrics[0].kind,
            signature=" | ".join(metric.signature for metric in metrics),
            target=target,
            over=self.over,
            disparity=kind,
            value=found[0],
            low=found[1],
            high=found[2],
            reason=fault or (None if math.isfinite(found[1]) else "no interval: a group has none"),
            lowest=found[3],
            highest=found[4],
            n_groups=min(len(one.rows) for one in groups),
            small=_named(row for row in every if _rests_on(row) < SMALL),
            undefined=_named(row for row in left_out if not math.isfinite(row.value)),
        )

    def _rows(self, position: int, names: By, confidence: float | None = None) -> list[MetricRow]:
        return self.summary.values(position, names, confidence)

    def _members(self, position: int, target: str | None, confidence: float | None = None) -> list[MetricRow]:
        rows = self._rows(position, self.over, confidence)
        return [row for row in rows if row.target == target and None not in row.by.values()]

    def _groups(self, position: int, target: str | None, confidence: float | None = None) -> _Groups:
        return _Groups.of(self._members(position, target, confidence))

    def _overall(self, position: int, target: str | None, confidence: float | None) -> _Groups:
        return _Groups.of([row for row in self._rows(position, (), confidence) if row.target == target])

    def _fault(self, groups: Sequence[_Groups], kind: Kind) -> str | None:
        fewest = min(len(one.rows) for one in groups)
        if fewest < 2:
            return f"{'no group has' if not fewest else 'only one group has'} a value; a disparity is one of two groups"
        if kind in ("min", "max") and len(groups) > 1:
            return f"several metrics have no common {kind}"
        if not kind.startswith("ratio"):
            return None
        if any(self.summary.metrics[position].range[0] < 0 for position in self.positions):
            return "a ratio needs values that cannot be negative"
        return None if all(one.value.max() > 0 for one in groups) else "a ratio of zeros: all groups have the value 0"

    def _found(self, target: str | None, kind: Kind, groups: Sequence[_Groups]) -> tuple[Any, ...]:
        """The disparity, its ends, and the groups it lies between."""
        if kind in ("min", "max"):
            return self._extreme(target, kind, groups[0])
        comparisons = sum(
            len(one.rows) if kind.endswith("overall") else len(one.rows) * (len(one.rows) - 1) // 2 for one in groups
        )
        best: tuple[Any, ...] | None = None
        for position in self.positions:
            level = self._level(position, comparisons)
            one = self._groups(position, target, level).scaled(kind)
            other = self._overall(position, target, level).scaled(kind) if kind.endswith("overall") else one
            found = _apart(one, other)
            if best is None:
                best = found
            else:
                wider = found if found[0] > best[0] else best
                best = wider[0], np.maximum(found[1], best[1]), np.maximum(found[2], best[2]), *wider[3:]
        assert best is not None
        apart, low, high, lowest, highest = best
        low = max(low, 0.0) if low == low else low
        if kind.startswith("ratio"):
            apart, low, high = math.exp(-apart), math.exp(-high), math.exp(-low)
        return float(apart), float(low), float(high), lowest, highest

    def _extreme(self, target: str | None, kind: Kind, groups: _Groups) -> tuple[Any, ...]:
        position = self.positions[0]
        found = self._groups(position, target, self._level(position, len(groups.rows)))
        pick = np.min if kind == "min" else np.max
        return float(pick(found.value)), float(pick(found.low)), float(pick(found.high)), *_ends(found)

    def _level(self, position: int, comparisons: int) -> float | None:
        confidence = getattr(self.summary.metrics[position], "confidence", None)
        return None if confidence is None else 1 - (1 - confidence) / comparisons


def _apart(one: _Groups, other: _Groups) -> tuple[Any, ...]:
    """The largest distance from a group to another, its ends over all pairs, and the two groups it lies between."""
    up, down = _distances(one, other), _distances(other, one)
    found = [np.stack(pair) for pair in zip(up, (each.T for each in down), strict=True)]
    if one is other:
        for array in found:
            array[:, np.arange(len(one.rows)), np.arange(len(one.rows))] = -np.inf
    way, i, j = np.unravel_index(int(np.argmax(found[0])), found[0].shape)
    first, second = dict(one.rows[i].by), dict(other.rows[j].by)
    lowest, highest = (second, first) if way == 0 else (first, second)
    return *(float(array.max()) for array in found), lowest, highest


def _distances(one: _Groups, other: _Groups) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The signed differences of each of some groups from each of others, and the ends of their intervals."""
    (_, a, low_a, high_a), (_, b, low_b, high_b) = one, other
    with np.errstate(invalid="ignore"):
        apart = a[:, None] - b
        low = apart - np.hypot((a - low_a)[:, None], high_b - b)
        high = apart + np.hypot((high_a - a)[:, None], b - low_b)
        endless = ~np.isfinite(a)[:, None] | ~np.isfinite(b)  # the logarithm of 0: only the ends tell something
        low, high = (
            np.where(endless, low_a[:, None] - high_b, low),
            np.where(endless, high_a[:, None] - low_b, high),
        )
    unknown = np.isnan(low_a + high_a)[:, None] | np.isnan(low_b + high_b)
    return np.nan_to_num(apart, nan=0.0, posinf=np.inf, neginf=-np.inf), *(
        np.where(unknown, np.nan, end) for end in (low, high)
    )


def _ends(groups: _Groups) -> tuple[dict[str, str | None], dict[str, str | None]]:
    return dict(groups.rows[int(groups.value.argmin())].by), dict(groups.rows[int(groups.value.argmax())].by)


def _rests_on(row: MetricRow) -> float:
    """How many scored rows a value is about: recall only about those that were expected."""
    return float((row.data or {}).get("rests_on", row.n_scored))


def _named(rows: Iterator[MetricRow]) -> tuple[dict[str, str | None], ...]:
    found: list[dict[str, str | None]] = []
    for row in rows:
        if row.by not in found:
            found.append(dict(row.by))
    return tuple(found)
