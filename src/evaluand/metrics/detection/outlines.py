"""Outlines: polygons in place of boxes, written in any of the usual orders, and how much two of them overlap.

A polygon is a list of its corners in order, clockwise or not: `x1,y1,x2,y2,…`, or pairs. If it is a rectangle with
horizontal and vertical sides, it is a box, exactly, in whatever order its four corners are written: from the top left
down (D3M 4.x) or to the right, from any other corner, or crosswise.

The overlap of two polygons is the sum of the overlaps of the triangles of their fans, each with the sign of its
orientation: exact for every polygon that does not cross itself, convex or not. Triangles are clipped by one another's
sides (I. Sutherland & G. Hodgman, "Reentrant polygon clipping", Communications of the ACM 17, 1974), all pairs at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

FEWEST: Final = 6  # numbers of a polygon: three corners


def flat_numbers(value: Any) -> Any:
    """The numbers of a polygon written as a list of pairs, or in one list more, as COCO's files have them."""
    if isinstance(value, list | tuple) and value and all(isinstance(each, list | tuple) for each in value):
        if len(value) == 1:
            return list(value[0])
        if all(len(each) == 2 for each in value):
            return [number for pair in value for number in pair]
    return value


def as_box(numbers: Sequence[float]) -> list[float] | None:
    """The box that eight numbers describe, or None if they are no rectangle with horizontal and vertical sides.

    Example:
        >>> as_box([1, 2, 1, 8, 5, 8, 5, 2]), as_box([5, 8, 1, 8, 1, 2, 5, 2]), as_box([0, 0, 1, 4, 5, 5, 4, 1])
        ([1, 2, 5, 8], [1, 2, 5, 8], None)
    """
    if len(numbers) != 8:
        return None
    xs, ys = list(numbers[::2]), list(numbers[1::2])
    left, right, top, bottom = min(xs), max(xs), min(ys), max(ys)
    corners = {(left, top), (left, bottom), (right, top), (right, bottom)}
    if len(corners) != 4 or {*zip(xs, ys, strict=True)} != corners:
        return None
    return [left, top, right, bottom]


def read_outline(numbers: Sequence[float]) -> tuple[str | None, list[float], np.ndarray | None]:
    """What four numbers or a polygon describe.

    Returns:
        What is wrong with them, or None; the box, or the smallest one around the polygon; and the corners × 2 of a
        polygon that is no box.
    """
    if len(numbers) == 4:
        return None, list(numbers), None
    numbers = _without_repetitions(numbers)
    box = as_box(numbers)
    if box is not None:
        return None, box, None
    fault = polygon_fault(numbers)
    if fault is not None:
        return fault, [np.nan] * 4, None
    corners = np.array(numbers, np.float64).reshape(-1, 2)
    return None, [*corners.min(axis=0).tolist(), *corners.max(axis=0).tolist()], corners


def _without_repetitions(numbers: Sequence[float]) -> list[float]:
    """The numbers without corners that repeat the one before, as the last repeats the first of a closed ring."""
    if len(numbers) % 2:
        return list(numbers)
    pairs = list(zip(numbers[::2], numbers[1::2], strict=True))
    before = [*pairs[-1:], *pairs[:-1]]
    return [number for last, pair in zip(before, pairs, strict=True) if pair != last for number in pair]


def polygon_of(box: Sequence[float]) -> list[float]:
    """The eight numbers of a box as D3M 4.x writes them: from the top left down, then to the right.

    Example:
        >>> polygon_of([1, 2, 5, 8])
        [1, 2, 1, 8, 5, 8, 5, 2]
    """
    left, top, right, bottom = box
    return [left, top, left, bottom, right, bottom, right, top]


def polygon_fault(numbers: Sequence[float]) -> str | None:
    """What is wrong with the numbers of a polygon, or None."""
    if len(numbers) % 2 or len(numbers) < FEWEST:
        return f"has {len(numbers)} numbers; give x_min, y_min, x_max, y_max, or x and y of each corner of a polygon"
    corners = np.array(numbers, np.float64).reshape(-1, 2)
    if abs(_signed_area(corners)) == 0:
        return "has no area; give the corners of a polygon in order"
    if _meets_itself(corners):
        return "crosses or touches itself; give its corners in the order of its outline"
    return None


def area_of(outline: np.ndarray) -> float:
    """The area of a polygon of corners × 2."""
    return abs(_signed_area(outline))


def _signed_area(outline: np.ndarray) -> float:
    x, y = (outline - outline[0]).T
    return float((x * np.roll(y, -1) - np.roll(x, -1) * y).sum() / 2)


def _meets_itself(corners: np.ndarray) -> bool:
    """Whether two sides that are not neighbours have a point in common."""
    n = len(corners)
    one, two = np.triu_indices(n, 2)
    distant = ~((one == 0) & (two == n - 1))
    begin, end = corners, np.roll(corners, -1, axis=0)
    a, b, c, d = begin[one[distant]], end[one[distant]], begin[two[distant]], end[two[distant]]
    crossing = (np.sign(_turn(a, b, c)) * np.sign(_turn(a, b, d)) < 0) & (
        np.sign(_turn(c, d, a)) * np.sign(_turn(c, d, b)) < 0
    )
    touching = _is_on(a, b, c) | _is_on(a, b, d) | _is_on(c, d, a) | _is_on(c, d, b)
    return bool((crossing | touching).any())


def _is_on(begin: np.ndarray, end: np.ndarray, point: np.ndarray) -> np.ndarray:
    """Whether points are on segments."""
    within = (np.minimum(begin, end) <= point) & (point <= np.maximum(begin, end))
    return np.asarray((_turn(begin, end, point) == 0) & within.all(axis=1))


def _turn(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Twice the signed area of triangles."""
    return np.asarray(
        (b[..., 0] - a[..., 0]) * (c[..., 1] - a[..., 1]) - (b[..., 1] - a[..., 1]) * (c[..., 0] - a[..., 0])
    )


def shared_areas(
    outlines: Sequence[np.ndarray], others: Sequence[np.ndarray], one: np.ndarray, two: np.ndarray
) -> np.ndarray:
    """The area that pairs of polygons share.

    Args:
        outlines: corners × 2 each.
        others: likewise.
        one: of each pair, the place of the first polygon in `outlines`.
        two: of each pair, the place of the second in `others`.

    Example:
        >>> square, diamond = np.array([[0, 0], [2, 0], [2, 2], [0, 2.0]]), np.array([[1, 0], [2, 1], [1, 2], [0, 1.0]])
        >>> shared_areas([square], [diamond], np.array([0]), np.array([0]))
        array([2.])
    """
    fans, first = _fans(outlines)
    other_fans, other_first = _fans(others)
    n, m = np.diff(first)[one], np.diff(other_first)[two]
    counts = n * m
    pair = np.repeat(np.arange(len(one)), counts)
    number = np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts)
    triangle = fans[first[one][pair] + number // np.maximum(m[pair], 1)]
    other = other_fans[other_first[two][pair] + number % np.maximum(m[pair], 1)]
    shared = np.zeros(len(one))
    for start in range(0, len(pair), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        np.add.at(shared, pair[some], _triangles_share(triangle[some], other[some]))
    return np.maximum(shared, 0.0)


_AT_ONCE: Final = 1 << 16


def _fans(outlines: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The triangles of polygons turned the same way, each from the first corner; and where those of each begin."""
    each = []
    for outline in outlines:
        corners = outline if _signed_area(outline) >= 0 else outline[::-1]
        each.append(np.stack([np.repeat(corners[:1], len(corners) - 2, axis=0), corners[1:-1], corners[2:]], axis=1))
    first = np.cumsum([0, *map(len, each)])
    return np.concatenate([np.zeros((0, 3, 2)), *each]), first


def _triangles_share(triangle: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The signed area that pairs of triangles share; pairs × 3 × 2 each."""
    sign = np.sign(_turn(*np.moveaxis(triangle, 1, 0))) * np.sign(_turn(*np.moveaxis(other, 1, 0)))
    other = np.where((_turn(*np.moveaxis(other, 1, 0)) < 0)[:, None, None], other[:, ::-1], other)
    origin = triangle[:, :1]  # differences of nearby corners lose less
    corners, count = triangle - origin, np.full(len(triangle), 3)
    for side in range(3):
        begin, end = other[:, side] - origin[:, 0], other[:, (side + 1) % 3] - origin[:, 0]
        corners, count = _clip(corners, count, begin, end)
    x, y = corners[..., 0], corners[..., 1]
    area = (x * np.roll(y, -1, axis=1) - np.roll(x, -1, axis=1) * y).sum(axis=1) / 2
    return np.asarray(np.where(count > 2, sign * np.abs(area), 0.0))


def _clip(corners: np.ndarray, count: np.ndarray, begin: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The parts of convex polygons on the inner side of lines, one line for each.

    A polygon with fewer corners than places repeats its first one, which adds no area.
    """
    n = corners.shape[1]
    height = _turn(begin[:, None], end[:, None], corners)
    following, next_height = np.roll(corners, -1, axis=1), np.roll(height, -1, axis=1)
    crosses = (height > 0) & (next_height < 0) | (height < 0) & (next_height > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(crosses, height / (height - next_height), 0.0)
    met = corners + share[..., None] * (following - corners)
    candidates = np.stack([corners, met], axis=2).reshape(len(corners), 2 * n, 2)
    valid = np.stack([(height >= 0) & (np.arange(n) < count[:, None]), crosses], axis=2).reshape(len(corners), 2 * n)
    order = np.argsort(~valid, axis=1, kind="stable")[:, : n + 1]
    count = valid.sum(axis=1)
    packed = np.take_along_axis(candidates, order[..., None], axis=1)
    beyond = np.arange(n + 1) >= count[:, None]
    return np.where(beyond[..., None], packed[:, :1], packed), count
