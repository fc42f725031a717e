"""Polygons and masks in place of boxes: read in every order of corners, matched by their exact overlap."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from evaluand.core.errors import DataError
from evaluand.evaluation.scorers.detection import Detection
from evaluand.interop.d3m.metrics import object_detection_ap
from evaluand.metrics.detection.boxes import Boxes
from evaluand.metrics.detection.masks import areas_of, read_mask
from evaluand.metrics.detection.outlines import area_of, as_box, polygon_fault, polygon_of, read_outline, shared_areas
from evaluand.metrics.detection.precision import average_precision

SQUARE = [1, 1, 5, 1, 5, 5, 1, 5]
BOX = [10, 20, 50, 90]
CORNERS = [(10, 20), (10, 90), (50, 90), (50, 20)]
DIAMOND = [0, 2, 2, 0, 4, 2, 2, 4]


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_the_corners_of_an_upright_rectangle_are_its_box_in_every_order(order):
    numbers = [number for place in order for number in CORNERS[place]]
    assert as_box(numbers) == BOX


def test_a_box_is_written_from_the_top_left_down_and_read_back():
    assert polygon_of(BOX) == [10, 20, 10, 90, 50, 90, 50, 20]
    assert as_box(polygon_of(BOX)) == BOX


@pytest.mark.parametrize("form", ["text", "numbers", "pairs", "nested"])
def test_polygons_are_read_in_every_form(form):
    forms = {
        "text": "10,20,10,90,50,90,50,20",
        "numbers": polygon_of(BOX),
        "pairs": [list(pair) for pair in CORNERS],
        "nested": [polygon_of(BOX)],
    }
    columns = Detection().score([{"box": forms[form]}], [{"box": BOX}]).columns
    assert columns["detections"] == columns["truths"] == {"box": [[10.0, 20.0, 50.0, 90.0]]}


def test_a_closed_ring_and_repeated_corners_are_the_same_polygon():
    closed = [*polygon_of(BOX), 10, 20]
    repeated = [10, 20, 10, 20, 10, 90, 50, 90, 50, 20]
    assert [read_outline(numbers)[1] for numbers in (closed, repeated)] == [BOX, BOX]


@pytest.mark.parametrize("definition", ["standard", "3.1.1", "core-2022", "coco"])
def test_upright_rectangles_of_eight_numbers_score_as_boxes(definition):
    boxes = [["a", 0, 0, 10, 10, 0.9], ["a", 50, 50, 70, 60, 0.8], ["b", 1, 1, 9, 12, 0.4]]
    truths = [["a", 0, 0, 10, 9], ["a", 52, 50, 70, 60], ["b", 30, 30, 40, 40]]
    as_polygons = [[row[0], *polygon_of(row[1:5]), *row[5:]] for row in boxes]
    true_polygons = [[row[0], *polygon_of(row[1:])] for row in truths]
    expected = average_precision(boxes, truths, definition=definition).ap
    assert average_precision(as_polygons, true_polygons, definition=definition).ap == expected
    assert average_precision(boxes, true_polygons, definition=definition).ap == expected


def test_the_example_of_d3m_core_scores_as_it_printed():
    truths = [["img_00001.png", *polygon_of([100, 100, 200, 200])], ["img_00002.png", *polygon_of([5, 5, 20, 20])]]
    detections = [
        ["img_00001.png", *polygon_of([110, 110, 210, 210]), 0.6],
        ["img_00002.png", *polygon_of([5, 10, 20, 20]), 0.9],
    ]
    assert object_detection_ap(detections, truths, dialect="core-2022").ap == 1.0


def test_polygons_match_by_the_area_that_they_share():
    truths = {"image": ["a"], "box": ["0,0,4,0,4,4,0,4"]}
    found = {"image": ["a"], "box": [",".join(map(str, DIAMOND))]}
    assert [average_precision(found, truths, iou=iou).ap for iou in (0.5, 0.51)] == [1.0, 0.0]  # 8 of 16
    # the boxes around these two overlap by a third; the polygons hardly
    truths, found = {"image": ["a"], "box": ["0,0,0,10,10,10"]}, {"image": ["a"], "box": ["1,0,10,0,10,9"]}
    assert average_precision(found, truths, iou=0.01).ap == 0.0


@pytest.mark.parametrize("definition", ["3.1.1", "core-2022"])
def test_definitions_in_pixels_refuse_polygons_that_are_no_boxes(definition):
    rows = {"image": ["a"], "box": [",".join(map(str, DIAMOND))]}
    with pytest.raises(DataError, match="use the definition standard or coco"):
        average_precision(rows, rows, definition=definition)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ([0, 0, 1, 1, 2], "has 5 numbers"),
        ([0, 0, 1, 1, 2, 2], "has no area"),
        ([], "has 0 numbers"),
        ([3, 3] * 4, "has 0 numbers"),
        ([0, 0, 4, 5, 4, 0, 0, 4], "crosses or touches itself"),
        ([0, 0, 2, 2, 6, 6, 6, -2, 2, 2, 0, 4], "crosses or touches itself"),
        ([0, 0, 4, 0, 4, 4, 2, 0, 0, 4], "crosses or touches itself"),
        ([0, 0, math.nan, 1, 2, 2], "not a finite number"),
    ],
)
def test_a_polygon_that_is_none_is_reported(numbers, message):
    with pytest.raises(DataError, match=f"detected box 0.*{message}"):
        Detection().score([{"box": numbers}], [])


def test_a_faulty_polygon_of_a_table_is_reported_with_its_row_and_image():
    with pytest.raises(DataError, match=r"detection row 1 \(image 'b'\): the polygon crosses or touches itself"):
        Boxes.of({"image": ["a", "b"], "box": ["0,0,1,1", "0,0,4,5,4,0,0,4"]}, "detection")


def star(random, corners):
    angle, radius = np.sort(random.uniform(0, 2 * np.pi, corners)), random.uniform(0.2, 1, corners)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)[:: random.choice([-1, 1])]


@given(st.integers(0, 10**6), st.integers(3, 8), st.integers(3, 8))
def test_shared_areas_are_symmetric_and_add_up(seed, n, m):
    random = np.random.default_rng(seed)
    one, other = star(random, n), star(random, m) + random.uniform(-0.5, 0.5, 2)
    if polygon_fault(one.ravel().tolist()) or polygon_fault(other.ravel().tolist()):
        return
    shared = shared_of(one, other)
    assert shared_of(other, one) == pytest.approx(shared, abs=1e-12)
    assert shared_of(one, one) == pytest.approx(area_of(one), abs=1e-12)
    left = np.array([[-9.0, -9], [0.1, -9], [0.1, 9], [-9, 9]])
    right = left + np.array([9.1, 0])
    halves = shared_of(left, one) + shared_of(right, one)
    assert halves == pytest.approx(area_of(one), abs=1e-12)


def shared_of(one, other):
    zero = np.zeros(1, np.int64)
    return float(shared_areas([np.asarray(one, float)], [np.asarray(other, float)], zero, zero)[0])


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=6, max_size=6))
def test_triangles_share_what_exact_fractions_say(points):
    one, other = points[:3], points[3:]
    if 0 in (twice_area(one), twice_area(other)):
        return
    assert shared_of(one, other) == pytest.approx(float(exact_shared(one, other)), abs=1e-12)


def twice_area(points):
    pairs = zip(points, [*points[1:], points[0]], strict=True)
    return sum(a[0] * b[1] - b[0] * a[1] for a, b in pairs)


def exact_shared(one, other):
    """Clips one triangle by the sides of the other, in fractions."""
    kept = [tuple(map(Fraction, point)) for point in (one if twice_area(one) > 0 else one[::-1])]
    other = other if twice_area(other) > 0 else other[::-1]
    for a, b in zip(other, [*other[1:], other[0]], strict=True):
        heights = [(b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0]) for x, y in kept]
        clipped = []
        for place, (point, height) in enumerate(zip(kept, heights, strict=True)):
            following, next_height = kept[(place + 1) % len(kept)], heights[(place + 1) % len(kept)]
            if height >= 0:
                clipped.append(point)
            if height * next_height < 0:
                share = height / (height - next_height)
                clipped.append(tuple(p + share * (q - p) for p, q in zip(point, following, strict=True)))
        kept = clipped
    return abs(twice_area(kept)) / 2 if kept else 0


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"size": [2, 2], "counts": [1, 2]}, "cover 3 pixels, but its size is 2 × 2"),
        ({"size": [2, 2], "counts": "zzz"}, "is no mask"),
        ({"size": [2, 2]}, "is no mask: 'counts'"),
        ([[0, 0, 1, 1, 0, 1]], "need the size of the image"),
    ],
)
def test_a_mask_that_is_none_is_refused_before_it_reaches_c(value, message):
    with pytest.raises(DataError, match=message):
        read_mask(value)


@pytest.mark.parametrize(
    ("polygons", "message"),
    [
        ([], "has no polygon of three corners or more"),
        ([[]], "has no polygon of three corners or more"),
        ([[1, 1, 3, 3]], "has no polygon of three corners or more"),
        ([SQUARE, []], "has a polygon without corners"),
        ([SQUARE, [5]], "has a polygon without corners"),
        ([[20, 5, 29, 5, 29, 2**53]], r"corners are 9\.0072e\+15 pixels apart in all; at most 5,000,000 can be"),
        ([[1e9, 1e9, 1e9, 1e9 + 5, 1e9 + 5, 1e9]], r"corners are 2e\+09 pixels apart in all"),
        ([[0, 0, math.inf, 1, math.inf, 2]], "corners are nan pixels apart"),
        ([[0, 0, 5, math.nan, 5, 5]], "corners are nan pixels apart"),
        ([[0, 0, 30_000, 0] * 100], r"corners are 5\.97e\+06 pixels apart"),
    ],
)
def test_polygons_that_c_cannot_draw_are_refused(polygons, message):
    with pytest.raises(DataError, match=message):
        read_mask(polygons, (40, 50))


@pytest.mark.parametrize(
    ("polygons", "pixels"),
    [
        ([[-20_000, 0, 20_000, 0, 20_000, 10, -20_000, 10]], 10 * 50),
        ([SQUARE, [20, 20]], 16),
        ([SQUARE, [20, 20, 21, 21]], 16),
    ],
)
def test_polygons_far_outside_or_with_few_corners_are_drawn_as_pycocotools_does(polygons, pixels):
    assert areas_of([read_mask(polygons, (40, 50))])[0].tolist() == [pixels]
