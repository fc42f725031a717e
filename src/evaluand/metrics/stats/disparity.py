"""How far groups lie apart: values by group → one disparity, the groups it lies between, and its interval.

All of it works on arrays whose last axis are groups, with any axes before: one table of groups, or one for each of a
thousand thresholds.

The interval of the distance of two groups is made of those of the groups, for any metric that has some: G. Y. Zou &
A. Donner, "Construction of confidence limits about effect measures: a general approach" (Statistics in Medicine 27,
2008), on logarithms for ratios. It takes groups as independent.

Which groups differ most is chosen by looking at all of them, and the largest of many distances is large by chance
alone. An interval that shares its level among all pairs of groups and both ends is too wide: the upper end errs no more
often for many pairs than for one; and as the sign of a distance is not looked at, that of a small one does not err at
all. See `of_largest`. Of more than `FEW` distances, only the lower end shares its level among them (Bonferroni): that
is quicker, and of so many as good.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, Literal, NamedTuple

import numpy as np

from evaluand.metrics.stats.intervals import normal_quantile

Kind = Literal["difference", "ratio", "min", "max", "difference_to_overall", "ratio_to_overall"]
"""What is made of the values by group: the largest difference, or the smallest ratio, between two groups; the smallest
or the largest value; or the largest difference, or the ratio farthest from 1 (below 1), to the value over all rows."""


class IntervalEnds(NamedTuple):
    """A value with its interval, arrays of one shape; NaN where undefined."""

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @property
    def bounded(self) -> np.ndarray:
        """Which have an interval."""
        return np.asarray(~(np.isnan(self.value) | np.isnan(self.low) | np.isnan(self.high)))


class Disparity(NamedTuple):
    """How far groups lie apart, an entry for each of the axes before that of the groups.

    Attributes:
        ends: the disparity with its interval.
        lowest: the place of the group with the smallest value; one past the last stands for all rows. Without meaning
            where the disparity is undefined.
        highest: that of the group with the largest value.
        of: which of several metrics decides.
    """

    ends: IntervalEnds
    lowest: np.ndarray
    highest: np.ndarray
    of: np.ndarray


def disparity(
    groups: Sequence[IntervalEnds],
    kind: Kind,
    confidence: float,
    range: tuple[float, float],
    overall: Sequence[IntervalEnds] | None = None,
) -> Disparity:
    """The disparity of the groups; of several metrics, the largest.

    Groups without a value are left out; with fewer than two that have one there is no disparity, and neither is there
    of several metrics if one has none; but of ratios, where all groups have the value 0 by one metric, the others
    decide. A group without an interval takes no part in that of the disparity; where it is
    one of the two that lie farthest apart, there is none at all.

    Args:
        groups: of each metric, … × groups.
        kind: what is made of their values.
        confidence: that of the groups' intervals, and of the disparity's.
        range: of the metrics.
        overall: of each metric the value over all rows, … × 1; for the kinds that need it.

    Example:
        >>> of = IntervalEnds(np.array([0.9, 0.5, np.nan]), np.array([0.85, 0.4, 0.0]), np.array([0.94, 0.6, 1.0]))
        >>> found = disparity([of], "difference", 0.95, (0.0, 1.0))
        >>> int(found.lowest), [round(float(end), 2) for end in found.ends]
        (1, [0.4, 0.29, 0.51])
    """
    shape, n = groups[0].value.shape[:-1], groups[0].value.shape[-1]
    flat = [IntervalEnds(*(part.reshape(-1, n) for part in one)) for one in groups]
    whole = None if overall is None else [IntervalEnds(*(part.reshape(-1, 1) for part in one)) for one in overall]
    of_pairs = kind in ("difference", "ratio")
    found = [_disparity(*part, kind, confidence, range) for part in _in_parts(flat, whole or [], of_pairs)]
    ends, *places = zip(*found, strict=True)
    joined = IntervalEnds(*(np.concatenate(parts).reshape(shape) for parts in zip(*ends, strict=True)))
    return Disparity(joined, *(np.concatenate(parts).reshape(shape) for parts in places))


def spread(values: np.ndarray, kind: Kind, fewest: int = 2) -> np.ndarray:
    """The disparity of one metric without its interval: … × groups → ….

    Args:
        values: NaN where undefined.
        kind: what is made of them; not one to the value over all rows.
        fewest: how many groups need a value.
    """
    known = ~np.isnan(values)
    least = np.where(known, values, np.inf).min(axis=-1, initial=np.inf)
    most = np.where(known, values, -np.inf).max(axis=-1, initial=-np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        made = {"min": least, "max": most}.get(kind)
        if made is None:
            made = most - least if kind == "difference" else least / most
    return np.where(known.sum(axis=-1) >= fewest, made, np.nan)


def of_largest(apart: IntervalEnds, confidence: float, *, signed: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """The interval of the largest of some distances.

    Whichever is truly the largest, it lies below the highest of the upper ends as surely as below its own. The lower
    end is the least largest distance that the data do not contradict: for which the largest seen is so large as seen
    with at least the probability that the upper end leaves to err. There each distance is taken for as large as it may
    be (`_SLACK`), as if they were independent and normal: D. Andrews & G. Soares, "Inference for parameters defined by
    moment inequalities using generalized moment selection" (Econometrica 78, 2010).

    Args:
        apart: … × distances, which are not negative, each with an interval of its own that holds with `confidence` and
            may reach below 0; NaN for those that are not known.
        confidence: of the interval.
        signed: they are no distances but values, which may be negative; each end then errs as often as the other.

    Returns:
        Lower and upper ends, 0 or more of distances; NaN where no distance has an interval.
    """
    if not apart.value.shape[-1]:
        return (np.full(apart.value.shape[:-1], np.nan),) * 2
    z, bounded = normal_quantile(confidence), apart.bounded
    finite = bounded & np.isfinite(apart.value)
    high = _most(np.where(bounded, apart.high if signed else np.maximum(apart.high, -apart.low), np.nan))
    endless = _most(np.where(bounded & ~finite, apart.low, np.nan))
    seen = np.where(finite, apart.value, 0.0)
    down = np.where(finite, np.maximum(seen - apart.low, _TINY) / z, _TINY)
    up = np.where(finite, np.maximum(apart.high - seen, _TINY) / z, _TINY)
    y = np.nan_to_num(_most(np.where(finite, seen, np.nan)))[..., None]
    first = finite & (seen >= y)
    low, most = y - _FAR * down.max(axis=-1, keepdims=True) if signed else np.zeros_like(y), y
    for _ in range(_STEPS):
        middle = (low + most) / 2
        as_large = np.minimum(seen + _SLACK * down, middle)
        below = np.where(finite, _within(y, as_large, down, signed), 1.0).prod(axis=-1, keepdims=True)
        share = np.array(0.5)
        if not signed:
            as_small = np.where(first, middle, np.maximum(np.minimum(seen, middle) - _SLACK * up, 0.0))
            above = np.where(finite, _within(middle - z * up, as_small, up), 1.0).prod(axis=-1, keepdims=True)
            share = np.minimum(AT_MOST, 1 - above / (1 - confidence))
        refuted = 1 - below < (1 - confidence) * share
        low, most = np.where(refuted, middle, low), np.where(refuted, most, middle)
    found = np.where(finite.any(axis=-1), low[..., 0], np.nan)
    return np.where(np.isnan(high), np.nan, np.fmax(found, endless)), high


def _in_parts(
    groups: list[IntervalEnds], overall: list[IntervalEnds], of_pairs: bool
) -> Iterator[tuple[list[IntervalEnds], list[IntervalEnds]]]:
    """Some entries at a time, few enough that their distances fit into memory; of very many groups, one."""
    n, k = groups[0].value.shape
    each = len(groups) * (k if not of_pairs else k * k if k <= _PAIRED else _AT_ONCE)
    step = max(1, _AT_ONCE // max(each, 1))
    for start in range(0, max(n, 1), step):
        some = slice(start, start + step)
        of, whole = ([IntervalEnds(*(part[some] for part in one)) for one in given] for given in (groups, overall))
        yield of, whole


def _disparity(
    groups: list[IntervalEnds], overall: list[IntervalEnds], kind: Kind, confidence: float, range: tuple[float, float]
) -> tuple[IntervalEnds, np.ndarray, np.ndarray, np.ndarray]:
    """Of entries × groups."""
    log = kind.startswith("ratio")
    groups, overall = ([_logarithms(one) if log else one for one in given] for given in (groups, overall))
    none: list[IntervalEnds | None] = [None] * len(groups)
    against = [*overall] or none
    lowest, highest, apart = (np.stack(parts) for parts in zip(*map(_extremes, groups, against), strict=True))
    zeros = np.stack([_of_zeros(*each) for each in zip(groups, against, strict=True)]) & log
    undefined = np.isnan(np.where(zeros.all(axis=0) | ~zeros, apart, 0.0)).any(axis=0)
    of, entry = np.where(np.isnan(apart), -np.inf, apart).argmax(axis=0), np.arange(apart.shape[1])
    lowest, highest, value = (parts[of, entry] for parts in (lowest, highest, apart))
    bounded = np.stack([one.bounded for one in groups])
    if overall:
        bounded = np.concatenate([bounded, np.stack([one.bounded for one in overall])], axis=-1)
    sure = {place: bounded[of, entry, at] for place, at in (("min", lowest), ("max", highest))}
    if kind in ("min", "max"):
        value, low, high = _of_extreme(groups[0], kind, confidence, range)
        held = sure[kind]
    else:
        low, high = _of_distances(groups, against, confidence)
        held = sure["min"] & sure["max"]
        if log:
            value, low, high = np.exp(-value), np.exp(-high), np.exp(-low)
    held = held & ~undefined
    ends = IntervalEnds(np.where(undefined, np.nan, value), *(np.where(held, end, np.nan) for end in (low, high)))
    return ends, lowest, highest, of


def _of_zeros(one: IntervalEnds, overall: IntervalEnds | None) -> np.ndarray:
    """Where all groups, two or more, have the value 0, and all rows: of logarithms."""
    known, nothing = ~np.isnan(one.value), np.isneginf(one.value)
    found = (known == nothing).all(axis=-1) & (known.sum(axis=-1) > 1)
    return np.asarray(found if overall is None else found & np.isneginf(overall.value[:, 0]))


def _logarithms(one: IntervalEnds) -> IntervalEnds:
    with np.errstate(divide="ignore"):
        return IntervalEnds(*(np.log(np.maximum(part, 0.0)) for part in one))


def _extremes(one: IntervalEnds, overall: IntervalEnds | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The two groups farthest apart, the lower first, and how far; NaN where there are no two values."""
    known, n = ~np.isnan(one.value), one.value.shape[-1]
    entry = np.arange(len(known))
    lowest = np.where(known, one.value, np.inf).argmin(axis=-1)
    highest = np.where(known, one.value, -np.inf).argmax(axis=-1)
    least, most = one.value[entry, lowest], one.value[entry, highest]
    with np.errstate(invalid="ignore"):
        if overall is None:
            others = known & (np.arange(n) != lowest[:, None])
            highest = np.where(least == most, others.argmax(axis=-1), highest)
            apart = most - least
        else:
            above, below = most - overall.value[:, 0], overall.value[:, 0] - least
            lowest, highest = np.where(above >= below, n, lowest), np.where(above >= below, highest, n)
            apart = np.maximum(above, below)
    return lowest, highest, np.where(known.sum(axis=-1) > 1, apart, np.nan)


def _of_extreme(
    one: IntervalEnds, kind: Kind, confidence: float, range: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The smallest or the largest value, with its interval within a range."""
    sign = 1 if kind == "max" else -1
    turned = one if kind == "max" else IntervalEnds(-one.value, -one.high, -one.low)
    if one.value.shape[-1] <= FEW:
        low, high = of_largest(turned, confidence, signed=True)
    else:
        known = turned.bounded.sum(axis=-1)
        low, high = (
            _most(_stretched(turned, known, 1 - confidence, confidence).low),
            _most(np.where(turned.bounded, turned.high, np.nan)),
        )
    ends = [np.clip(sign * end, *range) for end in (low, high)][::sign]
    return sign * _most(turned.value), ends[0], ends[1]


def _of_distances(
    groups: list[IntervalEnds], overall: Sequence[IntervalEnds | None], confidence: float
) -> tuple[np.ndarray, np.ndarray]:
    """The interval of the largest distance of all metrics."""
    n = groups[0].value.shape[-1]
    pairs = n * (n - 1) // 2 if overall[0] is None else n
    if len(groups) * pairs <= FEW:
        found = list(map(_distances, groups, overall))
        return of_largest(
            IntervalEnds(*(np.concatenate(parts, axis=-1) for parts in zip(*found, strict=True))), confidence
        )
    known = np.stack([one.bounded.sum(axis=-1) for one in groups])
    distances = (known if overall[0] is not None else known * (known - 1) // 2).sum(axis=0)
    farther = [
        [one and _stretched(one, distances, (1 - confidence) / 2, confidence) for one in given]
        for given in (groups, overall)
    ]
    low = np.fmax.reduce([_farthest_ends(*each)[0] for each in zip(*farther, strict=True)])
    high = np.fmax.reduce([_farthest_ends(*each)[1] for each in zip(groups, overall, strict=True)])
    return np.maximum(low, 0.0), high


def _stretched(one: IntervalEnds, often: np.ndarray, errs: float, confidence: float) -> IntervalEnds:
    """Intervals as wide as all of so many have to be that whichever holds (Bonferroni), by the normal distribution.

    The upper end of a zero, on logarithms, is taken for one of a share: that goes by the square.
    """
    each = {n: normal_quantile(1 - errs / max(n, 1)) for n in np.unique(often).tolist()}
    scale = np.array([each[n] for n in often.tolist()])[:, None] / normal_quantile(confidence)
    with np.errstate(invalid="ignore"):
        low, high = (one.value + scale * (end - one.value) for end in one[1:])
    endless = np.isneginf(one.value)
    return IntervalEnds(
        one.value, np.where(endless, one.low, low), np.where(endless, one.high + 2 * np.log(scale), high)
    )


def _farthest_ends(one: IntervalEnds, overall: IntervalEnds | None) -> tuple[np.ndarray, np.ndarray]:
    """The largest lower and the largest upper end of all distances; of very many groups, of one entry."""
    n = one.value.shape[-1]
    if overall is None and n > _PAIRED:
        of = IntervalEnds(*(part[0] for part in one))
        ends = (
            _farthest(_Reach(of.value, end, of.bounded), _Reach(-of.value, -other, of.bounded), way)
            for way, end, other in ((-1, of.low, of.high), (1, of.high, of.low))
        )
        low, high = (np.array([end if end > -math.inf else math.nan]) for end in ends)
        return low, high
    apart = _distances(one, overall)
    return _most(apart.low), _most(np.maximum(apart.high, -apart.low))


def _distances(one: IntervalEnds, overall: IntervalEnds | None) -> IntervalEnds:
    """How far two groups lie apart, or each from all rows, with intervals: … × distances; NaN where one has none."""
    if overall is not None:
        return _between(one, IntervalEnds(*(np.broadcast_to(part, one.value.shape) for part in overall)))
    i, j = np.triu_indices(one.value.shape[-1], 1)
    return _between(*(IntervalEnds(*(part[..., place] for part in one)) for place in (i, j)))


def _between(one: IntervalEnds, other: IntervalEnds) -> IntervalEnds:
    """The distance of values, 0 or more, with Zou and Donner's interval; where one is endless, the ends alone tell."""
    down = one.value < other.value
    upper, lower = (
        IntervalEnds(*(np.where(swap, *parts) for parts in zip(other, one, strict=True))) for swap in (down, ~down)
    )
    with np.errstate(invalid="ignore"):
        apart = upper.value - lower.value
        low = apart - np.hypot(upper.value - upper.low, lower.high - lower.value)
        high = apart + np.hypot(upper.high - upper.value, lower.value - lower.low)
        endless = ~np.isfinite(upper.value) | ~np.isfinite(lower.value)
        low = np.where(endless, upper.low - lower.high, low)
        high = np.where(endless, upper.high - lower.low, high)
    return IntervalEnds(apart, low, high)


class _Reach(NamedTuple):
    """Values, and one end of their intervals, of which some are known.

    No pair is looked at that cannot be the widest: a pair's ends grow with the values of its groups and with how far
    their own ends reach, so only groups that at most one other surpasses in both are paired.
    """

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


def _farthest(one: _Reach, other: _Reach, way: int) -> float:
    """The largest end of a sum of two values over all pairs; `way` is 1 for upper ends and -1 for lower ones.

    Args:
        one: of the groups.
        other: the same turned around, so that differences are sums.
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
        found[np.isnan(found) | (i == j)] = -np.inf
        best = max(best, float(found.max(initial=-np.inf)))
    return best


def _within(limit: np.ndarray, mean: np.ndarray, error: np.ndarray, signed: bool = False) -> np.ndarray:
    """The probability of a normal variable to be nearer to 0 than a limit; of a signed one, to lie below it."""
    if signed:
        return _normal((limit - mean) / error)
    return np.where(limit > 0, _normal((limit - mean) / error) - _normal((-limit - mean) / error), 0.0)


def _normal(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.interp(x, *_normal_table()))


@cache
def _normal_table() -> tuple[np.ndarray, np.ndarray]:
    grid = np.linspace(-8.0, 8.0, 4001)
    return grid, np.array([math.erfc(-x / math.sqrt(2)) / 2 for x in grid.tolist()])


def _most(values: np.ndarray) -> np.ndarray:
    most = np.where(np.isnan(values), -np.inf, values).max(axis=-1, initial=-np.inf)
    return np.where(np.isneginf(most), np.nan, most)


FEW: Final = 64
"""Of so many distances the lower end is found as `of_largest` does: the pairs of 11 groups, or of 8 by two rates."""

_PAIRED: Final = 128
"""Of so many groups all pairs are looked at; of more, those that may be the widest."""

_SLACK: Final = 1.0
"""By how many of its standard errors a distance may be larger than seen."""

AT_MOST: Final = 0.75
"""The share of the errors that the lower end of a distance may make alone, and the upper end of a ratio: of few rows,
tails are only roughly normal."""

_TINY: Final = 1e-12
_FAR: Final = 10.0
_STEPS: Final = 30
_AT_ONCE: Final = 1 << 20
