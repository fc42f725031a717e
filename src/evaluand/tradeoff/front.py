"""Fronts: the points that no other point beats, and indicators of how good a front is.

Points are losses here: coordinates from 0, the ideal, to 1, the worst. A point dominates another if it is nowhere worse
and somewhere better; equal points do not dominate each other. What differs by rounding alone is equal: see `settled`.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Final

import numpy as np

from evaluand.core.errors import SpecError

NICHE: Final = 0.01
"""Points nearer than this share a niche."""

EQUAL: Final = 1e-6
"""Points that differ by no more than about this in each coordinate are one."""


ROUNDING: Final = 1e-12
"""Numbers that lie no farther apart, from one to the next, are one: 0.1 + 0.2 is 0.3."""


def settled(values: np.ndarray) -> np.ndarray:
    """Columns of numbers in which those that differ by rounding alone are the same one.

    Rounding would part two that lie on either side of a border, however near they are.

    Example:
        >>> settled(np.array([[0.1 + 0.2], [0.3], [0.4]])).ravel().tolist()
        [0.3, 0.3, 0.4]
    """
    order = np.argsort(values, axis=0, kind="stable")
    ranked = np.take_along_axis(values, order, 0)
    with np.errstate(invalid="ignore"):
        alike = np.diff(ranked, axis=0) <= ROUNDING
    new = np.concatenate([np.ones_like(ranked[:1], bool), ~alike])
    first = np.maximum.accumulate(np.where(new, np.arange(len(ranked))[:, None], 0), axis=0)
    found = np.empty_like(ranked)
    np.put_along_axis(found, order, np.take_along_axis(ranked, first, 0), 0)
    return found


def non_dominated(loss: np.ndarray) -> np.ndarray:
    """Which points no other dominates; points with an undefined coordinate are none of these.

    Args:
        loss: points × objectives.

    Example:
        >>> non_dominated(np.array([[0.1, 0.9], [0.5, 0.5], [0.6, 0.5], [0.5, 0.5]])).tolist()
        [True, True, False, True]
    """
    known = ~np.isnan(loss).any(axis=1)
    points, place = np.unique(settled(loss[known]), axis=0, return_inverse=True)
    kept = {2: _kept_of_two, 3: _kept_of_three}.get(loss.shape[1], _kept)(points)
    found = np.zeros(len(loss), bool)
    found[known] = kept[place.ravel()]
    return found


def distinct(values: np.ndarray, apart: float = EQUAL) -> np.ndarray:
    """The first of each points that are equal, in their order.

    Args:
        values: points × coordinates; undefined coordinates are equal.
        apart: how little points differ that are one; rounding alone never parts points.

    Raises:
        SpecError: `apart` is no number of 0 or more.

    Example:
        >>> distinct(np.array([[0.5, 0.1], [0.3, 0.2], [0.5, 0.1 + 1e-12]])).tolist()
        [0, 1]
    """
    if not isinstance(apart, Real) or not apart >= 0:
        raise SpecError(f"points lie apart by a number of 0 or more, such as {EQUAL}, and not by {apart!r}")
    borders = np.floor(values / apart + _OFF_THE_BORDER) if apart > ROUNDING else settled(values)
    _, first = np.unique(np.nan_to_num(borders, nan=np.inf), axis=0, return_index=True)
    return np.sort(first)


def hypervolume(loss: np.ndarray) -> float:
    """The share of the space of losses that the points dominate: 1 for the ideal, 0 for no points.

    Source: E. Zitzler & L. Thiele (IEEE Trans. Evolutionary Computation 3, 1999); see `_volume_of_many` for more than
    three objectives.

    Example:
        >>> hypervolume(np.array([[0.5, 0.0], [0.0, 0.5]]))
        0.75
    """
    points = np.unique(loss[(loss < 1).all(axis=1)], axis=0)
    return _volume(points) if len(points) else 0.0


def hypervolumes(loss: np.ndarray) -> np.ndarray:
    """The hypervolume of each of many sets of points; NaN of a set without any.

    Args:
        loss: sets × points × objectives; NaN for points that are not there.
    """
    there = ~np.isnan(loss).any(axis=-1)
    if loss.shape[-1] == 2:
        found = hypervolumes_of_two(loss)
    else:
        found = np.array(
            [hypervolume(each[kept][non_dominated(each[kept])]) for each, kept in zip(loss, there, strict=True)]
        )
    return np.where(there.any(axis=-1), found, np.nan)


def fronts(loss: np.ndarray) -> np.ndarray:
    """Which points of each of many sets no other of the set dominates; of equal ones it may be one.

    Args:
        loss: sets × points × objectives; NaN for points that are not there.
    """
    if loss.shape[-1] != 2:
        return np.stack([non_dominated(each) for each in loss])
    x, y = np.moveaxis(np.where(np.isnan(loss).any(axis=-1, keepdims=True), np.inf, loss), -1, 0)
    order = np.lexsort((y, x), axis=-1)
    y = np.take_along_axis(y, order, -1)
    least = np.minimum.accumulate(np.insert(y, 0, np.inf, axis=-1), axis=-1)
    found = np.empty(y.shape, bool)
    np.put_along_axis(found, order, y < least[:, :-1] - ROUNDING, -1)
    return found


def hypervolumes_of_two(loss: np.ndarray) -> np.ndarray:
    """The hypervolume of each of many sets of points with two objectives.

    Args:
        loss: sets × points × 2; NaN for points that are not there.
    """
    known = np.where(np.isnan(loss).any(axis=-1, keepdims=True), 1.0, np.clip(loss, 0.0, 1.0))
    order = np.argsort(known[..., 0], axis=-1, kind="stable")
    x, y = (np.take_along_axis(known[..., i], order, -1) for i in (0, 1))
    best = np.minimum.accumulate(y, axis=-1)
    width = np.diff(x, axis=-1, append=1.0)
    return np.asarray((width * (1 - best)).sum(axis=-1))


def uniformity(points: np.ndarray, niche: float = NICHE) -> float:
    """How evenly points are spread: 1 where each has as many others in its niche, less the more they crowd.

    Source: K. Tan, T. Lee & E. Khor, "Evolutionary algorithms for multi-objective optimization: performance assessments
    and comparisons" (Artificial Intelligence Review 17, 2002).

    Args:
        points: points × objectives.
        niche: how near another has to be.
    """
    n = len(points)
    if n < 2:
        return 1.0
    near = _within(points, niche)
    return 1 / (1 + float(np.sqrt(np.square(near - near.mean()).sum() / (n - 1))))


def spreads(loss: np.ndarray) -> tuple[float, float]:
    """Of how much of the range of each objective the points reach over: the product (overall), and the mean."""
    if not len(loss):
        return 0.0, 0.0
    reach = np.ptp(loss, axis=0)
    return float(reach.prod()), float(reach.mean())


def radar_area(values: Sequence[float], most: float = 1.0) -> float:
    """The area that values on the axes of a radar chart enclose, as a share of that of the greatest ones.

    Example:
        >>> radar_area([0.5, 0.5, 0.5])
        0.25
    """
    if len(values) < 3:
        raise ValueError("a radar chart needs three axes or more")
    v = np.asarray(values, np.float64)
    return float((v * np.roll(v, -1)).sum() / (len(v) * most**2))


def additive_epsilon(loss: np.ndarray, reference: np.ndarray) -> float:
    """By how much every loss has to fall so that the points nowhere lose to the reference's; 0 or less: they do not.

    Source: E. Zitzler et al., "Performance assessment of multiobjective optimizers" (IEEE Trans. Evolutionary
    Computation 7, 2003).
    """
    return float(_nearest(loss, reference, lambda gap: gap.max(axis=-1)).max())


def igd_plus(loss: np.ndarray, reference: np.ndarray) -> float:
    """How far, in the mean over the reference's points, the points fall short of them; 0 where they nowhere do.

    Source: H. Ishibuchi et al., "Modified distance calculation in generational distance and inverted generational
    distance" (EMO 2015).
    """
    distance = _nearest(loss, reference, lambda gap: np.sqrt(np.square(np.maximum(gap, 0)).sum(axis=-1)))
    return float(distance.mean())


def _nearest(loss: np.ndarray, reference: np.ndarray, distance: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """How far the nearest point lies from each of the reference's; a single NaN where there are none."""
    if not len(loss) or not len(reference):
        return np.array([math.nan])
    step = max(1, _AT_ONCE // (len(loss) * loss.shape[1]))
    starts = range(0, len(reference), step)
    return np.concatenate([distance(loss - reference[i : i + step, None]).min(axis=1) for i in starts])


def _within(points: np.ndarray, niche: float) -> np.ndarray:
    """How many points lie nearer to each than a niche, itself among them.

    Only those are looked at that are near by the coordinate that tells points apart best.
    """
    points = points[np.argsort(points[:, np.argmax(np.ptp(points, axis=0))])]
    x = points[:, np.argmax(np.ptp(points, axis=0))]
    reach = niche * (1 + 1e-9)
    first, last = np.searchsorted(x, x - reach), np.searchsorted(x, x + reach, side="right")
    step = max(1, _AT_ONCE // int((last - first).max()))
    found = [np.zeros(0, np.int64)]
    for start in range(0, len(points), step):
        mine = np.arange(start, min(start + step, len(points)))
        many = (last - first)[mine]
        begins = np.cumsum(many) - many
        others = np.arange(many.sum()) + np.repeat(first[mine] - begins, many)
        apart = points[np.repeat(mine, many)] - points[others]
        found.append(np.add.reduceat(np.square(apart).sum(axis=-1) < niche**2, begins, dtype=np.int64))
    return np.concatenate(found)


def _kept_of_two(points: np.ndarray) -> np.ndarray:
    """Of different points in order."""
    least = np.minimum.accumulate(points[:, 1])
    return np.append(np.ones(min(len(points), 1), bool), points[1:, 1] < least[:-1])


def _kept_of_three(points: np.ndarray) -> np.ndarray:
    """Of different points in order, by the staircase of the other two coordinates of those so far.

    Source: H. Kung, F. Luccio & F. Preparata, "On finding the maxima of a set of vectors" (J. ACM 22, 1975).
    """
    kept = np.zeros(len(points), bool)
    ys, zs = [-math.inf], [math.inf]
    for place, (y, z) in enumerate(points[:, 1:].tolist()):
        end = bisect_right(ys, y)
        if zs[end - 1] <= z:
            continue
        kept[place] = True
        start = end - (ys[end - 1] == y)
        while end < len(zs) and zs[end] >= z:
            end += 1
        ys[start:end], zs[start:end] = [y], [z]
    return kept


def _kept(points: np.ndarray) -> np.ndarray:
    """Of different points in order: none is dominated by a later one."""
    kept = np.zeros(len(points), bool)
    front = points[:0]
    for start in range(0, len(points), _BLOCK):
        block = points[start : start + _BLOCK]
        free = np.flatnonzero(~_dominated(block, front))
        rest = block[free]
        mine = free[~_dominated(rest, rest)]
        kept[start + mine] = True
        front = np.concatenate([front, block[mine]])
    return kept


def _dominated(points: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Which points some others, from which they differ or which they are, dominate."""
    found = np.zeros(len(points), bool)
    step = max(1, _AT_ONCE // max(len(points), 1))
    for start in range(0, len(by), step):
        others = by[start : start + step]
        below = np.ones((len(points), len(others)), bool)
        same = np.ones_like(below)
        for i in range(points.shape[1]):
            below &= others[:, i] <= points[:, i, None]
            same &= others[:, i] == points[:, i, None]
        found |= (below & ~same).any(axis=1)
    return found


def _volume(points: np.ndarray) -> float:
    """The volume between different points and the worst point, 1 in each coordinate."""
    d = points.shape[1]
    if d == 1:
        return float(1 - points.min())
    if d == 2:
        return float(hypervolumes_of_two(points[None])[0])
    if d == 3:
        return _volume_of_three(points)
    return _volume_of_many(np.maximum(points, 0.0))


def _volume_of_three(points: np.ndarray) -> float:
    """Slices along the last coordinate, over a staircase of those so far."""
    xs, ys, area, total, at = [-math.inf, 1.0], [1.0, -math.inf], 0.0, 0.0, 0.0
    for x, y, z in points[np.argsort(points[:, 2])].tolist():
        total += area * (z - at)
        at = z
        place = bisect_left(xs, x)
        if ys[place - 1] <= y or (xs[place] == x and ys[place] <= y):
            continue
        end, left, high = place, x, ys[place - 1]
        while ys[end] >= y:
            area += (xs[end] - left) * (high - y)
            left, high = xs[end], ys[end]
            end += 1
        area += (xs[end] - left) * (high - y)
        xs[place:end], ys[place:end] = [x], [y]
    return total + area * (1 - at)


def _volume_of_many(points: np.ndarray) -> float:
    """Slices along the last coordinate, of which each is what is left of a cube: boxes that end at local upper bounds.

    Such a bound has in each coordinate the value of one point that defines it, and there is a box for each: it begins
    where the points that define it by the coordinates before do. Coordinates are looked at as ranks, in which no two
    points are alike; boxes between points that are have no volume.
    Source: R. Lacour, K. Klamroth & C. Fonseca, "A box decomposition algorithm to compute the hypervolume indicator"
    (Computers & Operations Research 79, 2017).
    """
    points = points[np.argsort(points[:, -1], kind="stable")]
    sides = points[:, :-1]
    n, d = sides.shape
    axes, order = np.arange(d), np.argsort(sides, axis=0, kind="stable")
    ranks = np.empty((n, d), np.int64)
    np.put_along_axis(ranks, order, np.arange(1, n + 1)[:, None], 0)
    values = np.concatenate([np.zeros((1, d)), np.take_along_axis(sides, order, 0), np.ones((1, d))])
    before = np.triu(np.ones((d, d), np.int64), 1)

    def volume(bounds: np.ndarray, by: np.ndarray) -> float:
        return float((values[bounds, axes] - values[(by * before).max(axis=1), axes]).prod(axis=1).sum())

    bounds, by = (
        np.full((1, d), n + 1),
        np.zeros((1, d, d), np.int64),
    )  # by: bounds × points × coordinates, but for its own
    left, total, at = 1.0, 0.0, 0.0
    for rank, z in zip(ranks, points[:, -1].tolist(), strict=True):
        total, at = total + (1 - left) * (z - at), z
        cut = (bounds > rank).all(axis=1)
        if not cut.any():
            continue
        old, old_by = bounds[cut], by[cut]
        place, axis = np.nonzero(old_by.max(axis=1) < rank)
        new, new_by, each = old[place], old_by[place], np.arange(len(place))
        new[each, axis] = rank[axis]
        new_by[each, axis] = rank
        new_by[each, axis, axis] = 0
        left += volume(new, new_by) - volume(old, old_by)
        bounds, by = np.concatenate([bounds[~cut], new]), np.concatenate([by[~cut], new_by])
    return total + (1 - left) * (1 - at)


_OFF_THE_BORDER: Final = 0.3819660112501051  # numbers people meet lie in the middle of something, not on this
_BLOCK: Final = 512
_AT_ONCE: Final = 1 << 22
