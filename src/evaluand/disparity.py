"""Disparities: how far a metric's values by group lie apart, with intervals that hold for the worst pair of groups.

Which groups differ most is chosen by looking at all of them, and the largest of many differences is large by chance
alone. So every pair gets an interval at a level that holds for all pairs at once (Bonferroni), and the interval of the
largest difference reaches from the largest lower end to the largest upper end: whichever pair is truly the worst, it is
covered. With two groups nothing is lost by this. A group without an interval takes no part in it and is named; where it
is one of the two farthest apart, there is no interval at all.

The interval of a pair is made of those of its two groups, for any metric that has some: G. Y. Zou & A. Donner,
"Construction of confidence limits about effect measures: a general approach" (Statistics in Medicine 27, 2008), on
logarithms for ratios. It takes groups as independent. Where a group is compared with all rows it is wider than need be;
where clusters reach across groups it may be too wide or too narrow: too narrow where a cluster that is good in one
group is bad in another.

No pair is looked at that cannot be the widest: a pair's ends grow with the values of its groups and with how far their
own ends reach, so only groups that at most one other surpasses in both are paired.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final, Literal, NamedTuple, get_args

import numpy as np

from evaluand.errors import SpecError
from evaluand.groups import By, MetricRow, Summary
from evaluand.metric import Metric
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
        reason: why the value, or else only its interval, is undefined; or which groups the interval leaves out.
        lowest: the group with the smallest value, attribute by attribute; None where undefined.
        highest: the group with the largest value.
        n_groups: how many groups were compared.
        small: groups compared whose values rest on fewer than `SMALL` scored rows.
        undefined: groups without a value, which were left out.
        decided_by: of several metrics, the one whose groups lie so far apart; None of one, and where undefined.
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
    decided_by: str | None = None


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
    summary: Summary,
    positions: Sequence[int],
    over: By,
    kinds: Sequence[Kind],
    *,
    name: str | None = None,
    attributes: By | None = None,
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
        attributes: what those of `over` are called, if not so.
    """
    metrics = [summary.settled(position) for position in positions]

    @cache
    def found(place: int, names: By, confidence: float | None) -> dict[str | None, _Groups]:
        return _Groups.by_target(summary.values(positions[place], names, confidence), attributes or over)

    targets = [
        _Compared(target, metrics, [found(place, over, None)[target] for place in range(len(metrics))], found, over)
        for target in found(0, over, None)
    ]
    return [each.row(kind, name, attributes or over) for each in targets for kind in kinds]


Group = dict[str, str | None]


class _Groups(NamedTuple):
    """The values of one metric by group: arrays with an entry for each group that has one."""

    names: list[Group]
    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    small: list[Group]
    undefined: list[Group]

    @classmethod
    def by_target(cls, rows: Iterable[MetricRow], attributes: By) -> dict[str | None, _Groups]:
        of: dict[str | None, list[MetricRow]] = {}
        for row in rows:
            held = of.setdefault(row.target, [])
            if None not in row.by.values():
                held.append(row)
        return {target: cls._of(members, attributes) for target, members in of.items()}

    @classmethod
    def _of(cls, rows: Sequence[MetricRow], attributes: By) -> _Groups:
        names = [dict(zip(attributes, row.by.values(), strict=False)) for row in rows]
        known = [math.isfinite(row.value) for row in rows]
        there = [row for row, has in zip(rows, known, strict=True) if has]
        value, low, high = (np.array([getattr(row, end) for row in there]) for end in ("value", "low", "high"))
        return cls(
            [name for name, has in zip(names, known, strict=True) if has],
            value,
            low,
            high,
            [name for name, row, has in zip(names, rows, known, strict=True) if has and _rests_on(row) < SMALL],
            [name for name, has in zip(names, known, strict=True) if not has],
        )

    @property
    def bounded(self) -> np.ndarray:
        """Which have an interval."""
        return np.asarray(~np.isnan(self.low) & ~np.isnan(self.high))

    def scaled(self, kind: str) -> _Groups:
        """On the scale on which disparities of a kind are differences."""
        if not kind.startswith("ratio"):
            return self
        with np.errstate(divide="ignore"):
            logs = {end: np.log(np.maximum(getattr(self, end), 0.0)) for end in ("value", "low", "high")}
        return self._replace(**logs)


class _Found(NamedTuple):
    """A disparity of one metric: how far apart its groups lie on a scale of differences, and where."""

    metric: int  # by its place
    apart: float
    low: float  # the largest of the pairs' lower ends; -inf where no pair has an interval
    high: float
    lowest: Group
    highest: Group
    sure: bool  # both groups it lies between have intervals
    without: list[str]  # the names of what has none


class _Compared(NamedTuple):
    """The groups of one target; `found` gives them with intervals of any confidence."""

    target: str | None
    metrics: Sequence[Metric]
    groups: Sequence[_Groups]
    found: Callable[[int, By, float | None], Mapping[str | None, _Groups]]
    over: By

    def row(self, kind: Kind, name: str | None, attributes: By) -> DisparityRow:
        fault = self._fault(kind)
        each = [] if fault else [found for place in range(len(self.metrics)) for found in self._of(place, kind)]
        worst = max(each, key=lambda found: found.apart, default=None)
        value, low, high = (math.nan,) * 3 if worst is None else _shown(kind, each, worst)
        return DisparityRow(
            metric=name or self.metrics[0].kind,
            signature=" | ".join(metric.signature for metric in self.metrics),
            target=self.target,
            over=attributes,
            disparity=kind,
            value=value,
            low=low,
            high=high,
            reason=fault or self._left_out(each, math.isfinite(low)),
            lowest=worst and worst.lowest,
            highest=worst and worst.highest,
            n_groups=min(len(one.names) for one in self.groups),
            small=_once(one.small for one in self.groups),
            undefined=_once(one.undefined for one in self.groups),
            decided_by=self._called[worst.metric] if worst and len(self.metrics) > 1 else None,
        )

    @property
    def _called(self) -> list[str]:
        """What tells the metrics apart."""
        kinds = [metric.kind for metric in self.metrics]
        return kinds if len(set(kinds)) == len(kinds) else [metric.signature for metric in self.metrics]

    def _fault(self, kind: Kind) -> str | None:
        fewest = min(len(one.names) for one in self.groups)
        if fewest < 2:
            return f"{'no group has' if not fewest else 'only one group has'} a value; a disparity is one of two groups"
        if kind in ("min", "max") and len(self.groups) > 1:
            return f"several metrics have no common {kind}"
        if kind.endswith("overall") and not all(self._overall(i, None).names for i in range(len(self.groups))):
            return f"{_ALL_ROWS} is undefined"
        if not kind.startswith("ratio"):
            return None
        if any(metric.range[0] < 0 for metric in self.metrics):
            return "a ratio needs values that cannot be negative"
        return (
            None if all(one.value.max() > 0 for one in self.groups) else "a ratio of zeros: all groups have the value 0"
        )

    def _overall(self, place: int, confidence: float | None) -> _Groups:
        return self.found(place, (), confidence)[self.target]

    def _of(self, place: int, kind: Kind) -> list[_Found]:
        """One disparity of a metric, or two: above and below the value over all rows."""
        pairs = not kind.endswith("overall") and kind not in ("min", "max")
        n = [len(one.names) for one in self.groups]
        confidence = getattr(self.metrics[place], "confidence", None)
        if confidence is not None:
            confidence = 1 - (1 - confidence) / sum(k * (k - 1) // 2 if pairs else k for k in n)
        groups = self.found(place, self.over, confidence)[self.target]
        if kind in ("min", "max"):
            return [_extreme(place, groups, kind)]
        one = groups.scaled(kind)
        if pairs:
            return [_apart(place, one, one)]
        other = self._overall(place, confidence).scaled(kind)
        return [_apart(place, one, other), _apart(place, other, one)]

    def _left_out(self, each: Sequence[_Found], bounded: bool) -> str | None:
        """What has no interval, in words."""
        of = [f" of {called}" if len(self.metrics) > 1 else "" for called in self._called]
        names = list(dict.fromkeys(name + of[found.metric] for found in each for name in found.without))
        if not names:
            return None
        shown = [*names[:_NAMED], *([f"{len(names) - _NAMED:,} more"] if len(names) > _NAMED else [])]
        told = " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))
        has = "has" if len(names) == 1 else "have"
        if bounded:
            return f"the interval leaves out {told}, which {has} none"
        return f"no interval: {told} {has} none"


_NAMED: Final = 3
_ALL_ROWS: Final = "the value over all rows"
_AT_ONCE: Final = 1 << 20


def _shown(kind: Kind, each: Sequence[_Found], worst: _Found) -> tuple[float, float, float]:
    """The disparity of several metrics and its ends, on the scale of its kind."""
    low, high = (max(getattr(found, end) for found in each) for end in ("low", "high"))
    if not worst.sure:
        low = high = math.nan
    if kind in ("min", "max"):
        return worst.apart, low, high
    low = max(low, 0.0) if worst.sure else low
    if kind.startswith("ratio"):
        return math.exp(-worst.apart), math.exp(-high), math.exp(-low)
    return worst.apart, low, high


def _extreme(metric: int, groups: _Groups, kind: Kind) -> _Found:
    """The smallest or the largest value."""
    pick = np.min if kind == "min" else np.max
    least, most = int(groups.value.argmin()), int(groups.value.argmax())
    bounded = groups.bounded
    low, high = (float(pick(end[bounded])) if bounded.any() else -math.inf for end in (groups.low, groups.high))
    return _Found(
        metric,
        float(pick(groups.value)),
        low,
        high,
        groups.names[least],
        groups.names[most],
        bool(bounded[least if kind == "min" else most]),
        _without(groups),
    )


def _apart(metric: int, one: _Groups, other: _Groups) -> _Found:
    """The largest distance of a group above another, its ends over all pairs, and the two groups it lies between."""
    i, j = int(one.value.argmax()), int(other.value.argmin())
    if one is other and i == j:  # all are equal
        i, j = 1, 0
    above, below = one.bounded, other.bounded
    apart = float(one.value[i] - other.value[j]) if one.value[i] != other.value[j] else 0.0
    low, high = (
        _farthest(_Reach(one.value, end, above), _Reach(-other.value, -other_end, below), way, one is other)
        for way, end, other_end in ((-1, one.low, other.high), (1, one.high, other.low))
    )
    without = [*_without(one), *_without(other)]
    return _Found(metric, apart, low, high, other.names[j], one.names[i], bool(above[i] and below[j]), without)


def _without(groups: _Groups) -> list[str]:
    return [_named(groups.names[place]) for place in np.flatnonzero(~groups.bounded).tolist()]


def _named(group: Group) -> str:
    return ", ".join(f"{attribute}={value}" for attribute, value in group.items()) or _ALL_ROWS


class _Reach(NamedTuple):
    """Values, and one end of their intervals, of which some are known."""

    value: np.ndarray
    end: np.ndarray
    known: np.ndarray

    def widest(self) -> np.ndarray:
        """The groups of which one is in the widest pair: those that at most one other surpasses in all that counts."""
        finite = np.flatnonzero(self.known & np.isfinite(self.value))
        endless = np.flatnonzero(self.known & ~np.isfinite(self.value))
        first = self._front(finite)
        rest = np.setdiff1d(finite, first)
        second = self._front(rest)
        ends = [some[np.argsort(-self.end[some], kind="stable")[:2]] for some in (finite, endless)]
        return np.unique(np.concatenate([first, second, *ends]))

    def _front(self, some: np.ndarray) -> np.ndarray:
        """Of some groups those that no other surpasses, in its value and in how far its end reaches."""
        reach = self.end[some] - self.value[some]
        order = np.lexsort((-reach, -self.value[some]))
        farthest = np.maximum.accumulate(np.concatenate([[-np.inf], reach[order]]))
        return np.asarray(some[order[reach[order] > farthest[:-1]]])


def _farthest(one: _Reach, other: _Reach, way: int, same: bool) -> float:
    """The largest end of a sum of two values over all pairs; `way` is 1 for upper ends and -1 for lower ones.

    Args:
        other: turned around, so that differences are sums.
        same: a group is not paired with itself.
    """
    rows, columns = one.widest(), other.widest()
    best = -math.inf
    step = max(1, _AT_ONCE // max(len(columns), 1))
    for start in range(0, len(rows), step):
        i, j = rows[start : start + step, None], columns
        with np.errstate(invalid="ignore"):
            found = one.value[i] + other.value[j]
            found += way * np.hypot((one.end - one.value)[i], (other.end - other.value)[j])
            endless = ~np.isfinite(one.value[i] + other.value[j])  # the logarithm of 0: only the ends tell something
            found = np.where(endless, one.end[i] + other.end[j], found)
        found[np.isnan(found) | (same & (i == j))] = -np.inf
        best = max(best, float(found.max(initial=-np.inf)))
    return best


def _rests_on(row: MetricRow) -> float:
    """How many scored rows a value is about: recall only about those that were expected."""
    return float((row.data or {}).get("rests_on", row.n_scored))


def _once(lists: Iterable[Sequence[Group]]) -> tuple[Group, ...]:
    return tuple({tuple(group.items()): group for some in lists for group in some}.values())
