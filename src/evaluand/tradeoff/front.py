"""Fronts (the points that no other point dominates) and indicators of their quality.

Points are losses here: coordinates from 0, the ideal, to 1, the worst. A point dominates another if no coordinate is
worse and at least one is better; equal points do not dominate each other. Numbers that differ by rounding alone are
equal: see `settled`.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Final

import numpy as np

from evaluand.core.errors import SpecError

NICHE: Final = 0.01
"""Points nearer to each other than this share a niche."""

EQUAL: Final = 1e-6
"""Points that differ by no more than about this in each coordinate are equal."""

ROUNDING: Final = 1e-12
"""Sorted numbers with no larger gap between neighbours are equal: 0.1 + 0.2 is 0.3."""


def settled(values: np.ndarray) -> np.ndarray:
    """The columns with all numbers that differ by rounding alone replaced by the smallest of them.

    Rounding to a grid instead would separate two numbers on either side of a border, however close they are.

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
    result = np.empty_like(ranked)
    np.put_along_axis(result, order, np.take_along_axis(ranked, first, 0), 0)
    return result


def non_dominated(loss: np.ndarray) -> np.ndarray:
    """Which points no other dominates; never points with an undefined coordinate.

    Args:
        loss: points × objectives.

    Example:
        >>> non_dominated(np.array([[0.1, 0.9], [0.5, 0.5], [0.6, 0.5], [0.5, 0.5]])).tolist()
        [True, True, False, True]
    """
    known = ~np.isnan(loss).any(axis=1)
    points, place = np.unique(settled(loss[known]), axis=0, return_inverse=True)
    on_front = {2: _front_of_two, 3: _front_of_three}.get(loss.shape[1], _front_of_many)(points)
    result = np.zeros(len(loss), bool)
    result[known] = on_front[place.ravel()]
    return result


def distinct(values: np.ndarray, tolerance: float = EQUAL) -> np.ndarray:
    """The places of the first of all equal points, in order.

    Args:
        values: points × coordinates; undefined coordinates are equal.
        tolerance: the distance in each coordinate up to which points are equal; at least that of rounding.

    Example:
        >>> distinct(np.array([[0.5, 0.1], [0.3, 0.2], [0.5, 0.1 + 1e-12]])).tolist()
        [0, 1]
    """
    if not isinstance(tolerance, Real) or not tolerance >= 0:
        raise SpecError(f"tolerance={tolerance!r} must be a number of 0 or more, such as {EQUAL}")
    borders = np.floor(values / tolerance + _OFF_THE_BORDER) if tolerance > ROUNDING else settled(values)
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
    """The hypervolume of each of many sets of points (sets × points × objectives, NaN if missing); NaN if empty."""
    known = ~np.isnan(loss).any(axis=-1)
    if loss.shape[-1] == 2:
        volumes = hypervolumes_of_two(loss)
    else:
        sets = (points[some] for points, some in zip(loss, known, strict=True))
        volumes = np.array([hypervolume(points[non_dominated(points)]) for points in sets])
    return np.where(known.any(axis=-1), volumes, np.nan)


def fronts(loss: np.ndarray) -> np.ndarray:
    """Which points are on the front of each of many sets, as for `hypervolumes`; of equal points possibly only one."""
    if loss.shape[-1] != 2:
        return np.stack([non_dominated(each) for each in loss])
    x, y = np.moveaxis(np.where(np.isnan(loss).any(axis=-1, keepdims=True), np.inf, loss), -1, 0)
    order = np.lexsort((y, x), axis=-1)
    y = np.take_along_axis(y, order, -1)
    least = np.minimum.accumulate(np.insert(y, 0, np.inf, axis=-1), axis=-1)
    result = np.empty(y.shape, bool)
    np.put_along_axis(result, order, y < least[:, :-1] - ROUNDING, -1)
    return result


def hypervolumes_of_two(loss: np.ndarray) -> np.ndarray:
    """The hypervolume of each of many sets of points with two objectives: sets × points × 2."""
    known = np.where(np.isnan(loss).any(axis=-1, keepdims=True), 1.0, np.clip(loss, 0.0, 1.0))
    order = np.argsort(known[..., 0], axis=-1, kind="stable")
    x, y = (np.take_along_axis(known[..., i], order, -1) for i in (0, 1))
    best = np.minimum.accumulate(y, axis=-1)
    width = np.diff(x, axis=-1, append=1.0)
    return np.asarray((width * (1 - best)).sum(axis=-1))


def uniformity(points: np.ndarray) -> float:
    """How evenly points are spread: 1 if all have equally many neighbours in their niches, less if points crowd.

    `points` is points × objectives.
    Source: K. Tan, T. Lee & E. Khor, "Evolutionary algorithms for multi-objective optimization: performance assessments
    and comparisons" (Artificial Intelligence Review 17, 2002).
    """
    n = len(points)
    if n < 2:
        return 1.0
    near = _neighbours(points, NICHE)
    return 1 / (1 + float(np.sqrt(np.square(near - near.mean()).sum() / (n - 1))))


def spreads(loss: np.ndarray) -> tuple[float, float]:
    """The shares of the objectives' ranges that the points cover: their product (overall), and their mean."""
    if not len(loss):
        return 0.0, 0.0
    reach = np.ptp(loss, axis=0)
    return float(reach.prod()), float(reach.mean())


def radar_area(values: Sequence[float], highest: float = 1.0) -> float:
    """The area that values enclose on the axes of a radar chart, as a share of the largest possible area.

    Example:
        >>> radar_area([0.5, 0.5, 0.5])
        0.25
    """
    if len(values) < 3:
        raise ValueError("a radar chart needs three axes or more")
    v = np.asarray(values, np.float64)
    return float((v * np.roll(v, -1)).sum() / (len(v) * highest**2))


def additive_epsilon(loss: np.ndarray, reference: np.ndarray) -> float:
    """The amount by which all losses must fall so that the points are nowhere worse than the reference.

    It is 0 or less if they already are.

    Source: E. Zitzler et al., "Performance assessment of multiobjective optimizers" (IEEE Trans. Evolutionary
    Computation 7, 2003).
    """
    return float(_nearest(loss, reference, lambda gap: gap.max(axis=-1)).max())


def igd_plus(loss: np.ndarray, reference: np.ndarray) -> float:
    """The mean distance by which the points fall short of those of the reference; 0 if they fall short of none.

    Source: H. Ishibuchi et al., "Modified distance calculation in generational distance and inverted generational
    distance" (EMO 2015).
    """
    distance = _nearest(loss, reference, lambda gap: np.sqrt(np.square(np.maximum(gap, 0)).sum(axis=-1)))
    return float(distance.mean())


def _nearest(loss: np.ndarray, reference: np.ndarray, distance: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """The distance of each reference point to the nearest point; a single NaN where there are none."""
    if not len(loss) or not len(reference):
        return np.array([math.nan])
    step = max(1, _AT_ONCE // (len(loss) * loss.shape[1]))
    starts = range(0, len(reference), step)
    return np.concatenate([distance(loss - reference[i : i + step, None]).min(axis=1) for i in starts])


def _neighbours(points: np.ndarray, niche: float) -> np.ndarray:
    """The number of points within a niche of each point, including itself.

    Only points that are near by the coordinate with the widest range are compared.
    """
    points = points[np.argsort(points[:, np.argmax(np.ptp(points, axis=0))])]
    x = points[:, np.argmax(np.ptp(points, axis=0))]
    reach = niche * (1 + 1e-9)
    first, last = np.searchsorted(x, x - reach), np.searchsorted(x, x + reach, side="right")
    step = max(1, _AT_ONCE // int((last - first).max()))
    counts = [np.zeros(0, np.int64)]
    for start in range(0, len(points), step):
        some = np.arange(start, min(start + step, len(points)))
        many = (last - first)[some]
        begins = np.cumsum(many) - many
        others = np.arange(many.sum()) + np.repeat(first[some] - begins, many)
        difference = points[np.repeat(some, many)] - points[others]
        counts.append(np.add.reduceat(np.square(difference).sum(axis=-1) < niche**2, begins, dtype=np.int64))
    return np.concatenate(counts)


def _front_of_two(points: np.ndarray) -> np.ndarray:
    """Which of distinct sorted points are on the front."""
    least = np.minimum.accumulate(points[:, 1])
    return np.append(np.ones(min(len(points), 1), bool), points[1:, 1] < least[:-1])


def _front_of_three(points: np.ndarray) -> np.ndarray:
    """The same in three dimensions, by a staircase in the last two coordinates of the points so far.

    Source: H. Kung, F. Luccio & F. Preparata, "On finding the maxima of a set of vectors" (J. ACM 22, 1975).
    """
    on_front = np.zeros(len(points), bool)
    ys, zs = [-math.inf], [math.inf]
    for place, (y, z) in enumerate(points[:, 1:].tolist()):
        end = bisect_right(ys, y)
        if zs[end - 1] <= z:
            continue
        on_front[place] = True
        start = end - (ys[end - 1] == y)
        while end < len(zs) and zs[end] >= z:
            end += 1
        ys[start:end], zs[start:end] = [y], [z]
    return on_front


def _front_of_many(points: np.ndarray) -> np.ndarray:
    """The same in any dimension, block by block: no sorted point is dominated by a later one."""
    on_front = np.zeros(len(points), bool)
    front = points[:0]
    for start in range(0, len(points), _BLOCK):
        block = points[start : start + _BLOCK]
        free = np.flatnonzero(~_dominated(block, front))
        rest = block[free]
        best = free[~_dominated(rest, rest)]
        on_front[start + best] = True
        front = np.concatenate([front, block[best]])
    return on_front


def _dominated(points: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Which points any of the others dominates; a point never dominates an equal one."""
    result = np.zeros(len(points), bool)
    step = max(1, _AT_ONCE // max(len(points), 1))
    for start in range(0, len(by), step):
        others = by[start : start + step]
        below = np.ones((len(points), len(others)), bool)
        same = np.ones_like(below)
        for i in range(points.shape[1]):
            below &= others[:, i] <= points[:, i, None]
            same &= others[:, i] == points[:, i, None]
        result |= (below & ~same).any(axis=1)
    return result


def _volume(points: np.ndarray) -> float:
    """The volume between distinct points and the worst point, 1 in each coordinate."""
    d = points.shape[1]
    if d == 1:
        return float(1 - points.min())
    if d == 2:
        return float(hypervolumes_of_two(points[None])[0])
    if d == 3:
        return _volume_of_three(points)
    return _volume_of_many(np.maximum(points, 0.0))


def _volume_of_three(points: np.ndarray) -> float:
    """Volume by slices along the last coordinate, over the staircase of the points so far."""
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
    """Volume by slices along the last coordinate; the undominated part of a slice is split into boxes.

    Each box ends at a local upper bound. Each coordinate of a bound is that of one defining point, and the box begins
    where the points that define the coordinates before it end. Coordinates are compared as ranks, so that no two points
    are equal; boxes between points with equal coordinates have no volume.
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

    # by: bounds × defining points × coordinates; 0 for the coordinate that the point defines
    bounds, by = np.full((1, d), n + 1), np.zeros((1, d, d), np.int64)
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


_OFF_THE_BORDER: Final = 0.3819660112501051  # round numbers do not lie on a border shifted by this
_BLOCK: Final = 512
_AT_ONCE: Final = 1 << 22
