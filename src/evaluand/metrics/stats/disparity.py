"""Disparities: values by group → one disparity, the two groups that define it, and its interval.

All of it works on arrays whose last axis are groups, with any leading axes: one table of groups, or one for each of a
thousand thresholds.

The interval of the difference of two groups is computed from those of the groups, for any metric that has intervals:
G. Y. Zou & A. Donner, "Construction of confidence limits about effect measures: a general approach" (Statistics in
Medicine 27, 2008), on logarithms for ratios. It assumes independent groups.

The two groups that differ most are selected from all of them, and the largest of many differences is large by chance
alone. An interval that shares its level among all pairs of groups and both ends would be too wide: the upper end errs
no more often for many pairs than for one; and as signs are ignored, the upper end of a small difference does not err at
all. See `interval_of_largest`. Of more than `FEW` differences, only the lower end shares its level among them
(Bonferroni): that is faster, and as good for so many.

And shrinkage: the values of many groups, each drawn towards their mean as far as chance may have moved it.
A small group that looks worst is often only small. How much groups truly differ is uncertain too: few groups that
look alike may differ all the same. So all spreads between groups count, each by its likelihood, with a flat prior:
D. Rubin, "Estimation in parallel randomized experiments" (J. Educational Statistics 6, 1981); A. Gelman, "Prior
distributions for variance parameters in hierarchical models" (Bayesian Analysis 1, 2006).
"""

import math
from collections.abc import Callable, Sequence
from functools import cache
from operator import itemgetter
from typing import Final, Literal, NamedTuple, Self

import numpy as np

from evaluand.metrics.stats.intervals import normal_quantile

Kind = Literal["difference", "ratio", "min", "max", "difference_to_overall", "ratio_to_overall"]
"""The largest difference, or the smallest ratio, between two groups; the smallest or the largest value of a group; or
the largest difference, or the ratio farthest from 1 (below 1), to the value over all rows."""


class IntervalEnds(NamedTuple):
    """A value with its interval, arrays of one shape; NaN where undefined."""

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @property
    def bounded(self) -> np.ndarray:
        """Which values have an interval."""
        return np.asarray(~(np.isnan(self.value) | np.isnan(self.low) | np.isnan(self.high)))

    def map(self, change: Callable[[np.ndarray], np.ndarray]) -> Self:
        return type(self)(*(change(part) for part in self))


class Disparity(NamedTuple):
    """The disparity of groups, with one entry for each leading axis.

    Attributes:
        ends: the disparity with its interval.
        lowest: the place of the group with the smallest value; one past the last means all rows. Meaningless where the
            disparity is undefined.
        highest: that of the group with the largest value.
        of: the place of the metric with the largest disparity.
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
    fewest: int = 2,
) -> Disparity:
    """The disparity of the groups; of several metrics, the largest.

    Groups without a value are left out. The disparity is undefined if fewer than `fewest` groups have a value, or if
    it is undefined for one of several metrics; but where all groups have the value 0 by one metric, a ratio is that of
    the other metrics. A group without an interval is left out of that of the disparity; if it is one of the two groups
    that differ most, the disparity has no interval.

    Args:
        groups: the values of each metric, … × groups.
        confidence: the level of the groups' intervals, and of the disparity's.
        range: the range of the metrics.
        overall: the value of each metric over all rows, … × 1; for the kinds that need it. Or that of a reference
            group, which is then none of the groups.
        fewest: 1 where a single group is compared with a reference group.

    Example:
        >>> of = IntervalEnds(np.array([0.9, 0.5, np.nan]), np.array([0.85, 0.4, 0.0]), np.array([0.94, 0.6, 1.0]))
        >>> found = disparity([of], "difference", 0.95, (0.0, 1.0))
        >>> int(found.lowest), [round(float(end), 2) for end in found.ends]
        (1, [0.4, 0.29, 0.51])
    """
    shape, n = groups[0].value.shape[:-1], groups[0].value.shape[-1]
    flat, totals = (
        [one.map(lambda part: part.reshape(-1, part.shape[-1])) for one in side] for side in (groups, overall or [])
    )
    compared = 1 if kind not in ("difference", "ratio") else n if n <= _PAIRED else _AT_ONCE
    step = max(1, _AT_ONCE // max(len(groups) * n * compared, 1))  # of many groups, single entries
    found = []
    for start in np.arange(0, max(len(flat[0].value), 1), step).tolist():
        block = itemgetter(slice(start, start + step))  # of entries whose distances fit into memory
        of_groups, of_all = ([one.map(block) for one in side] for side in (flat, totals))
        found.append(_disparity(of_groups, of_all, kind, confidence, range, fewest))
    ends, *places = zip(*found, strict=True)
    joined = IntervalEnds(*(np.concatenate(parts).reshape(shape) for parts in zip(*ends, strict=True)))
    return Disparity(joined, *(np.concatenate(parts).reshape(shape) for parts in places))


def point_disparity(values: np.ndarray, kind: Kind, fewest: int = 2) -> np.ndarray:
    """The disparity of one metric without its interval: … × groups, NaN where undefined → ….

    NaN if fewer than `fewest` groups have a value; not for the kinds that compare with the value over all rows.
    """
    known = ~np.isnan(values)
    least = np.where(known, values, np.inf).min(axis=-1, initial=np.inf)
    most = np.where(known, values, -np.inf).max(axis=-1, initial=-np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        result = {"min": least, "max": most}.get(kind)
        if result is None:
            result = most - least if kind == "difference" else least / most
    return np.where(known.sum(axis=-1) >= fewest, result, np.nan)


def interval_of_largest(
    distances: IntervalEnds, confidence: float, *, signed: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """The interval of the largest of some distances.

    Whichever is truly the largest, the highest of all upper ends covers it as surely as its own upper end does. The
    lower end is the smallest largest distance that the data do not contradict: one that the distances would exceed as
    clearly as they do at least as often as the upper end may err. There each distance is taken to be as large as
    possible (`_SLACK`), as if they were independent and normal: D. Andrews & G. Soares, "Inference for parameters
    defined by moment inequalities using generalized moment selection" (Econometrica 78, 2010).

    How clearly a distance exceeds another is counted in its own standard errors, so that a small group, whose distances
    are large by chance, hides no difference of large groups; and distances with small errors have a little more of the
    level (`_FAVOUR`), so that adding a small group costs the large ones nearly nothing.

    Args:
        distances: … × distances, which are not negative, each with a pointwise interval at this confidence, which may
            reach below 0; NaN for unknown ones.
        signed: the values are not distances and may be negative; each end then errs equally often.

    Returns:
        Lower and upper ends, 0 or more for distances; NaN where no distance has an interval.
    """
    if not distances.value.shape[-1]:
        return (np.full(distances.value.shape[:-1], np.nan),) * 2
    z, bounded = normal_quantile(confidence), distances.bounded
    finite = bounded & np.isfinite(distances.value)
    high = _most(np.where(bounded, distances.high if signed else np.maximum(distances.high, -distances.low), np.nan))
    endless = _most(np.where(bounded & ~finite, distances.low, np.nan))
    observed = np.where(finite, distances.value, 0.0)
    down = np.where(finite, np.maximum(observed - distances.low, _TINY) / z, _TINY)
    up = np.where(finite, np.maximum(distances.high - observed, _TINY) / z, _TINY)
    y = np.nan_to_num(_most(np.where(finite, observed, np.nan)))[..., None]
    first = finite & (observed >= y)
    least = np.where(finite, down, np.inf).min(axis=-1, keepdims=True)
    penalty = _FAVOUR * np.maximum(np.log(down) - np.log(least), 0.0)
    low, most = y - _FAR * down.max(axis=-1, keepdims=True) if signed else np.zeros_like(y), y
    for _ in range(_STEPS):
        middle = (low + most) / 2
        excess = np.where(finite, (observed - middle) / down - penalty, -np.inf).max(axis=-1, keepdims=True)
        as_large = np.minimum(observed + _SLACK * down, middle)
        within = _chance_within(middle + down * (excess + penalty), as_large, down, signed)
        below = np.where(finite, within, 1.0).prod(axis=-1, keepdims=True)
        share = np.array(0.5)
        if not signed:
            as_small = np.where(first, middle, np.maximum(np.minimum(observed, middle) - _SLACK * up, 0.0))
            above = np.where(finite, _chance_within(middle - z * up, as_small, up), 1.0).prod(axis=-1, keepdims=True)
            share = np.minimum(AT_MOST, 1 - above / (1 - confidence))
        refuted = 1 - below < (1 - confidence) * share
        low, most = np.where(refuted, middle, low), np.where(refuted, most, middle)
    lower = np.where(finite.any(axis=-1), low[..., 0], np.nan)
    return np.where(np.isnan(high), np.nan, np.fmax(lower, endless)), high


def _disparity(
    groups: list[IntervalEnds],
    overall: list[IntervalEnds],
    kind: Kind,
    confidence: float,
    range: tuple[float, float],
    fewest: int,
) -> tuple[IntervalEnds, np.ndarray, np.ndarray, np.ndarray]:
    """The disparities of entries × groups, with the places of the two groups and of the metric."""
    log = kind.startswith("ratio")
    if log:
        with np.errstate(divide="ignore"):
            groups, overall = ([one.map(_logarithm) for one in side] for side in (groups, overall))
    none: list[IntervalEnds | None] = [None] * len(groups)
    against = [*overall] or none
    extremes = (_extremes(*each, fewest) for each in zip(groups, against, strict=True))
    lowest, highest, distances, zeros = (np.stack(parts) for parts in zip(*extremes, strict=True))
    zeros &= log
    undefined = np.isnan(np.where(zeros.all(axis=0) | ~zeros, distances, 0.0)).any(axis=0)
    of, entry = np.where(np.isnan(distances), -np.inf, distances).argmax(axis=0), np.arange(distances.shape[1])
    lowest, highest, value = (parts[of, entry] for parts in (lowest, highest, distances))
    bounded = np.concatenate([np.stack([one.bounded for one in side]) for side in (groups, overall) if side], axis=-1)
    has_low, has_high = (bounded[of, entry, place] for place in (lowest, highest))
    known = {"min": has_low, "max": has_high}.get(kind, has_low & has_high) & ~undefined
    if kind in ("min", "max"):
        value, low, high = _extreme_interval(groups[0], kind, confidence, range)
    else:
        low, high = _distance_interval(groups, against, confidence)
        if log:
            value, low, high = np.exp(-value), np.exp(-high), np.exp(-low)
    ends = IntervalEnds(np.where(undefined, np.nan, value), *(np.where(known, end, np.nan) for end in (low, high)))
    return ends, lowest, highest, of


def _logarithm(part: np.ndarray) -> np.ndarray:
    return np.asarray(np.log(np.maximum(part, 0.0)))


def _extremes(
    one: IntervalEnds, overall: IntervalEnds | None, fewest: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The two groups that differ most, the lower first, and their distance; NaN for too few values.

    Also whether all groups, enough of them, are −∞, which is the logarithm of 0, and so are all rows.
    """
    known, n = ~np.isnan(one.value), one.value.shape[-1]
    enough = known.sum(axis=-1) >= fewest
    zero = (known == np.isneginf(one.value)).all(axis=-1) & enough
    entry = np.arange(len(known))
    lowest = np.where(known, one.value, np.inf).argmin(axis=-1)
    highest = np.where(known, one.value, -np.inf).argmax(axis=-1)
    least, most = one.value[entry, lowest], one.value[entry, highest]
    with np.errstate(invalid="ignore"):
        if overall is None:
            others = known & (np.arange(n) != lowest[:, None])
            highest = np.where(least == most, others.argmax(axis=-1), highest)
            distance = most - least
        else:
            above, below = most - overall.value[:, 0], overall.value[:, 0] - least
            lowest, highest = np.where(above >= below, n, lowest), np.where(above >= below, highest, n)
            distance = np.maximum(above, below)
            zero &= np.isneginf(overall.value[:, 0])
    return lowest, highest, np.where(enough, distance, np.nan), zero


def _extreme_interval(
    one: IntervalEnds, kind: Kind, confidence: float, range: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The smallest or the largest value with its interval, within a range."""
    sign = 1 if kind == "max" else -1
    turned = one if kind == "max" else IntervalEnds(-one.value, -one.high, -one.low)
    if one.value.shape[-1] <= FEW:
        low, high = interval_of_largest(turned, confidence, signed=True)
    else:
        known = turned.bounded.sum(axis=-1)
        low = _most(_widen(turned, known, 1 - confidence, confidence).low)
        high = _most(np.where(turned.bounded, turned.high, np.nan))
    ends = [np.clip(sign * end, *range) for end in (low, high)][::sign]
    return sign * _most(turned.value), ends[0], ends[1]


def _distance_interval(
    groups: list[IntervalEnds], overall: Sequence[IntervalEnds | None], confidence: float
) -> tuple[np.ndarray, np.ndarray]:
    """The interval of the largest distance of all metrics."""
    n = groups[0].value.shape[-1]
    pairs = n * (n - 1) // 2 if overall[0] is None else n
    if len(groups) * pairs <= FEW:
        each = zip(*map(_distances, groups, overall), strict=True)
        return interval_of_largest(IntervalEnds(*(np.concatenate(parts, axis=-1) for parts in each)), confidence)
    known = np.stack([one.bounded.sum(axis=-1) for one in groups])
    distances = (known if overall[0] is not None else known * (known - 1) // 2).sum(axis=0)
    farther = [
        [one and _widen(one, distances, (1 - confidence) / 2, confidence) for one in each_side]
        for each_side in (groups, overall)
    ]
    low = np.fmax.reduce([_farthest_ends(*each)[0] for each in zip(*farther, strict=True)])
    high = np.fmax.reduce([_farthest_ends(*each)[1] for each in zip(groups, overall, strict=True)])
    return np.maximum(low, 0.0), high


def _widen(one: IntervalEnds, often: np.ndarray, errs: float, confidence: float) -> IntervalEnds:
    """Intervals widened so that so many of them hold simultaneously (Bonferroni), by the normal distribution.

    The upper end of a zero, on logarithms, is that of a proportion, which grows with the square of the quantile.
    """
    each = {n: normal_quantile(1 - errs / max(n, 1)) for n in np.unique(often).tolist()}
    scale = np.array([each[n] for n in often.tolist()])[:, None] / normal_quantile(confidence)
    with np.errstate(invalid="ignore"):
        low, high = (one.value + scale * (end - one.value) for end in one[1:])
    endless = np.isneginf(one.value)
    high = np.where(endless, one.high + 2 * np.log(scale), high)
    return IntervalEnds(one.value, np.where(endless, one.low, low), high)


def _farthest_ends(one: IntervalEnds, overall: IntervalEnds | None) -> tuple[np.ndarray, np.ndarray]:
    """The largest lower and the largest upper end of all distances; for very many groups, of a single entry."""
    n = one.value.shape[-1]
    if overall is None and n > _PAIRED:
        of = one.map(itemgetter(0))
        ends = (
            _farthest(_Reach(of.value, end, of.bounded), _Reach(-of.value, -other, of.bounded), sign)
            for sign, end, other in ((-1, of.low, of.high), (1, of.high, of.low))
        )
        low, high = (np.array([end if end > -math.inf else math.nan]) for end in ends)
        return low, high
    distances = _distances(one, overall)
    return _most(distances.low), _most(np.maximum(distances.high, -distances.low))


def _distances(one: IntervalEnds, overall: IntervalEnds | None) -> IntervalEnds:
    """The distances of all pairs of groups, or of each group to all rows, with intervals: … × distances."""
    if overall is not None:
        return _between(one, overall.map(lambda part: np.broadcast_to(part, one.value.shape)))
    i, j = np.triu_indices(one.value.shape[-1], 1)
    return _between(*(one.map(itemgetter((..., place))) for place in (i, j)))


def _between(one: IntervalEnds, other: IntervalEnds) -> IntervalEnds:
    """The distances of values, with Zou and Donner's interval; where a value is infinite, from the ends alone."""
    down = one.value < other.value
    upper, lower = (
        IntervalEnds(*(np.where(swap, *parts) for parts in zip(other, one, strict=True))) for swap in (down, ~down)
    )
    with np.errstate(invalid="ignore"):
        distance = upper.value - lower.value
        low = distance - np.hypot(upper.value - upper.low, lower.high - lower.value)
        high = distance + np.hypot(upper.high - upper.value, lower.value - lower.low)
        endless = ~np.isfinite(upper.value) | ~np.isfinite(lower.value)
        low = np.where(endless, upper.low - lower.high, low)
        high = np.where(endless, upper.high - lower.low, high)
    return IntervalEnds(distance, low, high)


class _Reach(NamedTuple):
    """Values with one end of their intervals, some of them known.

    The end of a pair grows with the values of its groups and with the lengths of their intervals. So only groups that
    at most one other group exceeds in both can be in the widest pair, and only these are paired.
    """

    value: np.ndarray
    end: np.ndarray
    known: np.ndarray

    def widest(self) -> np.ndarray:
        """The groups that can be in the widest pair: those that at most one other exceeds in value and length."""
        finite = np.flatnonzero(self.known & np.isfinite(self.value))
        endless = np.flatnonzero(self.known & ~np.isfinite(self.value))
        first = self._front(finite)
        second = self._front(np.setdiff1d(finite, first))
        ends = [some[np.argsort(-self.end[some], kind="stable")[:2]] for some in (finite, endless)]
        return np.unique(np.concatenate([first, second, *ends]))

    def _front(self, some: np.ndarray) -> np.ndarray:
        """The groups among some that no other exceeds in both value and length of the interval."""
        reach = self.end[some] - self.value[some]
        order = np.lexsort((-reach, -self.value[some]))
        farthest = np.maximum.accumulate(np.concatenate([[-np.inf], reach[order]]))
        return np.asarray(some[order[reach[order] > farthest[:-1]]])


def _farthest(one: _Reach, other: _Reach, sign: int) -> float:
    """The largest end of a sum of two values over all pairs; `sign` is 1 for upper ends, -1 for lower ones.

    `other` has negative values, so that differences of groups are sums.
    """
    rows, columns = one.widest(), other.widest()
    best = -math.inf
    step = max(1, _AT_ONCE // max(len(columns), 1))
    for start in range(0, len(rows), step):
        i, j = rows[start : start + step, None], columns
        with np.errstate(invalid="ignore"):
            found = one.value[i] + other.value[j]
            found += sign * np.hypot((one.end - one.value)[i], (other.end - other.value)[j])
            endless = ~np.isfinite(one.value[i] + other.value[j])  # the logarithm of 0: only the ends are finite
            found = np.where(endless, one.end[i] + other.end[j], found)
        found[np.isnan(found) | (i == j)] = -np.inf
        best = max(best, float(found.max(initial=-np.inf)))
    return best


def _chance_within(limit: np.ndarray, mean: np.ndarray, error: np.ndarray, signed: bool = False) -> np.ndarray:
    """The probability that a normal variable is closer to 0 than a limit; of a signed one, that it is below it."""
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
"""Up to so many distances `interval_of_largest` is used: the pairs of 11 groups, or of 8 groups by two rates."""

_PAIRED: Final = 128
"""Up to so many groups all pairs are compared; of more, those that may be the widest."""

_SLACK: Final = 1.0
"""The number of standard errors by which a distance may exceed the observed one."""

_FAVOUR: Final = 0.15
"""The standard errors by which a distance must exceed more for each logarithm of its error over the smallest."""

AT_MOST: Final = 0.75
"""The largest share of the errors that the lower end of a distance, or the upper end of a ratio, may make alone: with
few rows, tails are only roughly normal."""

_TINY: Final = 1e-12
_FAR: Final = 10.0
_STEPS: Final = 30
_AT_ONCE: Final = 1 << 20


def shrink(values: IntervalEnds, confidence: float, range: tuple[float, float]) -> IntervalEnds:
    """Values drawn towards their mean, with intervals; NaN where a value has no interval, or if fewer than three have.

    The standard error of a value is its interval's width over twice the normal quantile. The intervals allow for the
    errors of the mean and of the spread between groups; how often they cover: docs/intervals.md.

    Args:
        values: of k groups, in one dimension, with intervals at this confidence.
        range: of the metric; no shrunk value is outside.

    Example:
        >>> width = np.array([0.02, 0.02, 0.02, 0.3])
        >>> rate = np.array([0.1, 0.2, 0.3, 0.9])
        >>> shrink(IntervalEnds(rate, rate - width, rate + width), 0.95, (0, 1)).value.round(2).tolist()
        [0.1, 0.2, 0.3, 0.83]
    """
    z, known = normal_quantile(confidence), values.bounded
    blank = np.full(values.value.shape, np.nan)
    if known.sum() < _FEWEST:
        return IntervalEnds(blank, blank, blank)
    value, error = values.value[known], np.maximum((values.high - values.low)[known] / (2 * z), _LEAST_ERROR)
    shrunk, deviation = _posterior(value, error)
    ends = [blank.copy() for _ in IntervalEnds._fields]
    for end, found in zip(ends, (shrunk, shrunk - z * deviation, shrunk + z * deviation), strict=True):
        end[known] = np.clip(found, *range)
    return IntervalEnds(*ends)


def _posterior(value: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each group's true value, over all spreads between groups.

    Args:
        value: of k groups.
        error: their standard errors, above 0.
    """
    place = (np.arange(_SPREADS) + 0.5) / _SPREADS
    scale = float(np.sqrt(np.mean(error**2)) + value.std())
    variance = error**2 + np.square(scale * place / (1 - place))[:, None]  # spreads × groups
    weight = 1 / variance
    total = weight.sum(axis=1)
    mean = (weight * value).sum(axis=1) / total
    off = (weight * np.square(value - mean[:, None])).sum(axis=1)
    likelihood = 0.5 * (np.log(weight).sum(axis=1) - np.log(total) - off) - 2 * np.log(1 - place)
    share = np.exp(likelihood - likelihood.max())
    share = (share / share.sum())[:, None]
    own = 1 - error**2 * weight  # of a group's own value; the rest is the mean's
    centre = own * value + (1 - own) * mean[:, None]
    spread = own * error**2 + np.square(1 - own) / total[:, None]
    found = (share * centre).sum(axis=0)
    return found, np.sqrt((share * (spread + np.square(centre - found))).sum(axis=0))


_FEWEST: Final = 3
_SPREADS: Final = 400
"""The spreads between groups that are tried, from 0 to infinity."""
_LEAST_ERROR: Final = 1e-9
