"""Detection: boxes are matched and ranked as each public definition says, and the default knows no order of rows."""

from __future__ import annotations

import contextlib
import io
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from support.places import VECTORS_FOLDER, missing
from support.thinned import thinned

from evaluand.core.errors import DataError, SpecError
from evaluand.interop.d3m.metrics import object_detection_ap, objectDetectionAP
from evaluand.metrics.detection.boxes import Boxes
from evaluand.metrics.detection.definition import DEFINITIONS
from evaluand.metrics.detection.precision import BoxPrecisionCurve, average_precision, average_precision_by_label

VECTORS = VECTORS_FOLDER / "d3m" / "detection.json"
PUBLISHED = {"published": False, "published_voc07": True}

Rows = list[list[Any]]

WITH = [
    ["img_00285.png", 330, 463, 387, 505, 0.0739],
    ["img_00285.png", 420, 433, 451, 498, 0.0910],
    ["img_00285.png", 328, 465, 403, 540, 0.1008],
    ["img_00285.png", 480, 477, 508, 522, 0.1012],
    ["img_00285.png", 357, 460, 417, 537, 0.1058],
    ["img_00285.png", 356, 456, 391, 521, 0.0843],
    ["img_00225.png", 345, 460, 415, 547, 0.0539],
    ["img_00225.png", 381, 362, 455, 513, 0.0542],
    ["img_00225.png", 382, 366, 416, 422, 0.0559],
    ["img_00225.png", 730, 463, 763, 583, 0.0588],
]
TRUTH = [
    ["img_00285.png", 480, 457, 515, 529],
    ["img_00285.png", 480, 457, 515, 529],
    ["img_00225.png", 522, 540, 576, 660],
    ["img_00225.png", 739, 460, 768, 545],
]


def without(rows: Rows) -> Rows:
    return [row[:5] for row in rows]


def drawn(seed: int, *, images: int = 12, boxes: int = 8, ties: bool = False, whole: bool = True) -> tuple[Rows, Rows]:
    """Detections near true boxes and elsewhere; some images lack either."""
    random = np.random.default_rng(seed)
    truths, detections = Rows(), Rows()
    for image in range(images):
        for _ in range(int(random.integers(0, boxes + 1))):
            x, y = random.uniform(0, 60, 2)
            width, height = random.uniform(5, 40, 2)
            box = np.array([x, y, x + width, y + height])
            truths.append([image, *box.tolist()])
            for _ in range(int(random.integers(0, 3))):
                near = box + random.uniform(-4, 4, 4)
                detections.append([image, *near[:2].tolist(), *np.maximum(near[:2] + 1, near[2:]).tolist()])
        for _ in range(int(random.integers(0, 4))):
            x, y = random.uniform(0, 60, 2)
            detections.append([image, x, y, x + 10, y + 10])
    random.shuffle(detections)
    if whole:
        truths, detections = ([[r[0], *map(round, r[1:])] for r in rows] for rows in (truths, detections))
    sure = random.integers(0, 6, len(detections)) / 5 if ties else random.permutation(len(detections)) / 1000
    return [[*row, float(each)] for row, each in zip(detections, sure, strict=True)], truths


# The printed examples and recorded cases


def test_the_seeds_examples_give_what_is_printed() -> None:
    rec, prec, ap = objectDetectionAP(WITH, TRUTH)
    assert ap == pytest.approx(0.125, abs=1e-15)
    assert rec.tolist() == [0, *[0.25] * 9]
    assert prec.tolist() == [0, *(1 / rank for rank in range(2, 11))]
    assert objectDetectionAP(without(WITH), TRUTH).ap == pytest.approx(0.0625, abs=1e-15)


def test_the_well_defined_average_of_the_seeds_example_is_the_same() -> None:
    assert object_detection_ap(WITH, TRUTH).ap == pytest.approx(0.125, abs=1e-15)
    assert object_detection_ap(without(WITH), TRUTH).ap == pytest.approx(0.025, abs=1e-15)  # all at once: 1 of 10


def recorded() -> list[Any]:
    return list(json.loads(VECTORS.read_text())["cases"]) if VECTORS.exists() else []


@pytest.fixture(params=recorded() or [None], ids=lambda case: case["id"] if case else "none")
def case(request: pytest.FixtureRequest) -> Any:
    if request.param is None:
        pytest.skip(missing(VECTORS))
    return request.param


def rows_of(boxes: Rows) -> Rows:
    """Boxes of a recorded case, where null is a coordinate that is NaN."""
    return [[math.nan if cell is None else cell for cell in row] for row in boxes]


@pytest.mark.parametrize("key", PUBLISHED)
def test_the_published_code_is_followed_where_it_ran(case: Any, key: str) -> None:
    expected = case[key]
    detections, truths = rows_of(case["dets"]), rows_of(case["gts"])
    found = objectDetectionAP(detections, truths, case["ovthresh"], PUBLISHED[key])
    if "error" in expected:
        assert 0 <= found.ap <= 1 or not truths
        return
    if any(len(row) == 6 for row in detections) and len({row[5] for row in detections}) < len(detections) > 2:
        pytest.skip("its order among equal confidences depends on the processor")
    assert found.ap == pytest.approx(expected["ap"], abs=1e-9)
    np.testing.assert_allclose(found.recall, expected["rec"], atol=1e-9)
    np.testing.assert_allclose(found.precision, expected["prec"], atol=1e-9)


def test_d3m_core_is_followed_where_it_ran(case: Any) -> None:
    expected = case["core_2022_5_5"]
    found = object_detection_ap(rows_of(case["dets"]), rows_of(case["gts"]), iou=case["ovthresh"], dialect="core-2022")
    if "error" not in expected:
        assert found.ap == pytest.approx(expected["ap"], abs=1e-9)


@pytest.mark.parametrize("pixel", [0, 1])
def test_pycocotools_is_followed_where_it_ran(case: Any, pixel: int) -> None:
    expected = case[("pycocotools_iou50", "pycocotools_iou50_plus1")[pixel]]
    if "error" in expected:
        return
    larger = [[[r[0], *r[1:3], r[3] + pixel, r[4] + pixel, *r[5:]] for r in rows_of(case[k])] for k in ("dets", "gts")]
    found = average_precision(larger[0], larger[1], definition="coco")
    assert found.ap == pytest.approx(expected["ap_101pt"], abs=1e-9)


# Against independent implementations


def coco(detections: Rows, truths: Rows, ious: list[float]) -> np.ndarray:
    """COCO's average precision at each threshold, all sizes, at most 100 detections per image."""
    pytest.importorskip("pycocotools", reason="needs pycocotools: pip install pycocotools")
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    def box(row: list[Any]) -> dict[str, Any]:
        x_min, y_min, x_max, y_max = row[1:5]
        width, height = x_max - x_min, y_max - y_min
        return {"image_id": row[0], "category_id": 1, "bbox": [x_min, y_min, width, height], "area": width * height}

    images = sorted({row[0] for row in detections + truths})
    with contextlib.redirect_stdout(io.StringIO()):
        whole = COCO()
        whole.dataset = {
            "images": [{"id": image} for image in images],
            "categories": [{"id": 1}],
            "annotations": [{**box(row), "id": i + 1, "iscrowd": 0} for i, row in enumerate(truths)],
            "info": {},
        }
        whole.createIndex()
        found = whole.loadRes([{**box(row), "score": row[5]} for row in detections])
        judged = COCOeval(whole, found, "bbox")
        judged.params.iouThrs = np.array(ious)
        judged.evaluate()
        judged.accumulate()
    return np.asarray(judged.eval["precision"][:, :, 0, 0, 2].mean(axis=1))


@thinned("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 12))], every=2)
@pytest.mark.parametrize("ties", [False, True])
def test_pycocotools_gives_the_same_on_random_boxes(seed: int, ties: bool) -> None:
    detections, truths = drawn(seed, ties=ties, boxes=8 if seed % 2 else 80, images=12 if seed % 2 else 3)
    ious = list(DEFINITIONS["coco"].over_thresholds)
    ours = [average_precision(detections, truths, iou=iou, definition="coco").ap for iou in ious]
    np.testing.assert_allclose(ours, coco(detections, truths, ious), rtol=0, atol=1e-12)


def test_pycocotools_drops_what_an_image_has_beyond_a_hundred_detections() -> None:
    truths = [[1, 0, 0, 10, 10]]
    detections = [[1, 50, 50, 60, 60 + i, 1 - i / 1000] for i in range(100)]
    for one_more in (0, 1):
        some = [*detections[one_more:], [1, 0, 0, 10, 10, 0.1]]
        ours = average_precision(some, truths, definition="coco").ap
        assert ours == pytest.approx(one_more / 100, abs=1e-12)
        np.testing.assert_allclose(ours, coco(some, truths, [0.5]), atol=1e-12)


def overlap(one: list[Any], other: list[Any], pixel: int) -> float:
    width = min(one[3], other[3]) - max(one[1], other[1]) + pixel
    height = min(one[4], other[4]) - max(one[2], other[2]) + pixel
    both = max(width, 0) * max(height, 0)
    areas = [(box[3] - box[1] + pixel) * (box[4] - box[2] + pixel) for box in (one, other)]
    return both / (sum(areas) - both) if both else 0.0


def by_hand(detections: Rows, truths: Rows, iou: float, definition: str) -> float:
    """Box by box, for detections that are all of different confidence."""
    rules = DEFINITIONS[definition]
    free, right = [True] * len(truths), []
    for one in sorted(detections, key=lambda row: -row[5]):
        able = [(overlap(one, box, rules.pixel), -i) for i, box in enumerate(truths) if box[0] == one[0]]
        able = [(share, i) for share, i in able if (share > iou if rules.strict else share >= iou)]
        if not rules.only_best:
            able = [(share, i) for share, i in able if free[-i]]
        best = max(able, default=None)
        right.append(best is not None and free[-best[1]])
        if best is not None:
            free[-best[1]] = False
    precision = [sum(right[: i + 1]) / (i + 1) for i in range(len(right))]
    return sum(max(precision[i:]) for i, hit in enumerate(right) if hit) / len(truths)


@pytest.mark.parametrize("definition", ["standard", "3.1.1", "core-2022"])
@thinned("seed", [*range(2), *(pytest.param(i, marks=pytest.mark.slow) for i in range(2, 8))], every=3)
@pytest.mark.parametrize("iou", [0.05, 0.3, 0.5, 0.75])
def test_going_box_by_box_gives_the_same(definition: str, seed: int, iou: float) -> None:
    detections, truths = drawn(seed, whole=seed % 2 == 0, images=seed + 1, boxes=30)
    ours = average_precision(detections, truths, iou=iou, definition=definition).ap
    assert ours == pytest.approx(by_hand(detections, truths, iou, definition), abs=1e-12)


def test_pairs_are_found_however_far_apart_coordinates_lie() -> None:
    detections, truths = drawn(3, images=40)
    for shift in (0.0, 1e9, -1e9):
        moved = [
            [[r[0], *(c + shift * (r[0] % 2) for c in r[1:5]), *r[5:]] for r in rows] for rows in (detections, truths)
        ]
        assert average_precision(*moved).ap == pytest.approx(average_precision(detections, truths).ap, abs=1e-12)


# What the default means


def test_rows_of_one_confidence_are_one_step() -> None:
    truths = [["a", 0, 0, 9, 9]]
    right, wrong = ["a", 0, 0, 9, 9, 0.5], ["a", 50, 50, 60, 60, 0.5]
    for rows in ([right, wrong], [wrong, right]):
        found = average_precision(rows, truths)
        assert (found.recall.tolist(), found.precision.tolist(), found.ap) == ([1.0], [0.5], 0.5)


def test_of_one_confidence_the_larger_overlap_takes_its_box_first() -> None:
    """Else the first would take the box that alone the second overlaps enough."""
    truths = [["a", 0, 0, 10, 10], ["a", 0, 4, 10, 14]]
    between, on_top = ["a", 0, 1, 10, 11, 0.5], ["a", 0, 0, 10, 10, 0.5]
    for rows in ([between, on_top], [on_top, between]):
        assert average_precision(rows, truths).recall.tolist() == [1.0]


def test_an_overlap_of_the_threshold_matches_by_default_and_not_where_it_has_to_be_more() -> None:
    detections, truths = [["a", 0, 0, 10, 5, 0.9]], [["a", 0, 0, 10, 10]]
    assert average_precision(detections, truths).ap == 1
    assert average_precision([["a", 0, 0, 9, 4, 0.9]], [["a", 0, 0, 9, 9]], definition="3.1.1").ap == 0


def test_a_box_whose_best_partner_is_taken_goes_to_the_next_unless_only_the_best_counts() -> None:
    truths = [["a", 0, 0, 10, 10], ["a", 1, 0, 11, 10]]
    detections = [["a", 0, 0, 10, 10, 0.9], ["a", 0, 0, 10, 10, 0.8]]
    assert average_precision(detections, truths).ap == 1
    assert average_precision(detections, truths, definition="3.1.1").ap == 0.5


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_without_detections_the_average_is_0_and_without_true_boxes_undefined(definition: str) -> None:
    assert average_precision([], TRUTH, definition=definition).ap == 0
    nothing = average_precision(WITH, [], definition=definition)
    assert math.isnan(nothing.ap)
    assert np.isnan(nothing.recall).all()
    assert math.isnan(average_precision([], [], definition=definition).ap)


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_detections_in_an_image_without_true_boxes_are_wrong(definition: str) -> None:
    found = average_precision(
        [["a", 0, 0, 9, 9, 0.9], ["b", 0, 0, 9, 9, 0.95]], [["a", 0, 0, 9, 9]], definition=definition
    )
    assert found.precision.tolist() == pytest.approx([0, 0.5])


def test_recalls_of_exact_tenths_count_except_where_they_are_rounded() -> None:
    truths = [["a", 50 * i, 0, 50 * i + 9, 9] for i in range(10)]
    detections = [[*row, 0.9 - i / 100] for i, row in enumerate(truths[:3])]
    assert average_precision(detections, truths, points=11).ap == pytest.approx(4 / 11, abs=1e-15)
    assert average_precision(detections, truths, definition="3.1.1", points=11).ap == pytest.approx(3 / 11, abs=1e-15)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.slow
def test_a_hundred_orders_of_rows_give_one_value(ties: bool) -> None:
    detections, truths = drawn(5, ties=ties, boxes=20)
    detections += detections[:30]  # the same box twice
    truths += truths[:10]
    random = np.random.default_rng(0)
    found = set()
    for _ in range(100):
        rows = [[list[Any](each[i]) for i in random.permutation(len(each))] for each in (detections, truths)]
        found.add(tuple(average_precision(*rows, points=points).ap for points in ("area", 11, 101)))
    assert len(found) == 1


COORDINATE = st.integers(0, 6)
BOX = st.tuples(st.sampled_from("ab"), COORDINATE, COORDINATE, st.integers(1, 6), st.integers(1, 6)).map(
    lambda b: [b[0], b[1], b[2], b[1] + b[3], b[2] + b[4]]
)


@given(st.lists(st.tuples(BOX, st.integers(0, 3)), max_size=12), st.lists(BOX, min_size=1, max_size=8), st.randoms())
def test_the_default_never_depends_on_order_and_stays_in_range(found: list[Any], truths: Rows, random: Any) -> None:
    detections = [[*box, sure / 4] for box, sure in found]
    one = average_precision(detections, truths, iou=0.3)
    random.shuffle(detections)
    random.shuffle(truths)
    other = average_precision(detections, truths, iou=0.3)
    assert one.ap == other.ap
    assert one.recall.tolist() == other.recall.tolist()
    assert one.precision.tolist() == other.precision.tolist()
    assert 0 <= one.ap <= 1
    assert (np.diff(one.recall) >= 0).all()
    assert one.recall.max(initial=0) <= min(1, len(detections) / len(truths))


@given(st.lists(BOX, max_size=12), st.lists(BOX, min_size=1, max_size=8), st.sampled_from(["standard", "3.1.1"]))
def test_boxes_on_a_small_grid_match_as_box_by_box(found: Rows, truths: Rows, definition: str) -> None:
    """Overlaps are often equal here, so that it matters which comes first."""
    detections = [[*box, 1 - i / 100] for i, box in enumerate(found)]
    ours = average_precision(detections, truths, iou=0.3, definition=definition).ap
    if definition == "standard":
        truths = sorted(truths, key=lambda row: row[1:])
    assert ours == pytest.approx(by_hand(detections, truths, 0.3, definition), abs=1e-12)


# Labels


def test_boxes_of_other_labels_never_match() -> None:
    truths = {"image": [1, 1], "box": ["0,0,9,9", "0,0,9,9"], "label": ["dog", "cat"]}
    detections = {"image": [1], "box": ["0,0,9,9"], "label": ["cat"], "confidence": [0.9]}
    found = average_precision_by_label(detections, truths)
    assert list(found) == ["cat", "dog"]
    assert (found["cat"].ap, found["dog"].ap) == (1, 0)


def test_labels_are_not_left_out_of_account() -> None:
    labelled = {"image": [1], "box": ["0,0,9,9"], "label": ["cat"]}
    with pytest.raises(SpecError, match="use average_precision_by_label"):
        average_precision(labelled, labelled)
    with pytest.raises(DataError, match="detections have labels, but truths do not"):
        average_precision_by_label(labelled, [[1, 0, 0, 9, 9]])


# What boxes are read from


def columns(rows: Rows) -> dict[str, list[Any]]:
    names = ["image", "x_min", "y_min", "x_max", "y_max", "confidence"][: len(rows[0])]
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


FORMS: dict[str, Callable[[Rows], Any]] = {
    "rows": lambda rows: rows,
    "tuples": lambda rows: [tuple(row) for row in rows],
    "text": lambda rows: [[row[0], *map(str, row[1:])] for row in rows],
    "text with spaces": lambda rows: [[row[0], *(f" {cell} " for cell in row[1:])] for row in rows],
    "boxes as text": lambda rows: [[row[0], ",".join(map(str, row[1:5])), *row[5:]] for row in rows],
    "columns": columns,
    "NumPy columns": lambda rows: {name: np.array(column) for name, column in columns(rows).items()},
    "Arrow table": lambda rows: pa.table(columns(rows)),
    "Arrow table in chunks": lambda rows: pa.concat_tables(
        [pa.table(columns(rows)).slice(0, 2), pa.table(columns(rows)).slice(2)]
    ),
    "Arrow dictionary": lambda rows: pa.table(
        columns(rows) | {"image": pa.array([row[0] for row in rows]).dictionary_encode()}
    ),
    "frame": lambda rows: pd.DataFrame(columns(rows)),
}


@pytest.mark.parametrize("form", FORMS)
def test_boxes_are_read_from(form: str) -> None:
    found = average_precision(FORMS[form](WITH), FORMS[form](TRUTH))
    assert found.ap == pytest.approx(0.125, abs=1e-15)


def test_a_column_without_any_confidence_is_none() -> None:
    empty = columns(without(WITH)) | {"confidence": [None] * len(WITH)}
    assert Boxes.of(empty).confidence is None


BAD: dict[str, tuple[Any, str]] = {
    "NaN": (
        [["a", 0, 0, 9, 9, 0.5], ["b", 0, math.nan, 9, 9, 0.5]],
        r"detection row 1 \(image 'b'\): y_min is missing",
    ),
    "none": ([["b", 0, None, 9, 9, 0.5]], r"detection row 0 \(image 'b'\): y_min is missing or NaN"),
    "infinite": ([["b", 0, 0, math.inf, 9, 0.5]], r"row 0 \(image 'b'\): x_max is inf, which is too large"),
    "no confidence": ([["a", 0, 0, 9, 9, 0.5], ["b", 0, 0, 9, 9, None]], r"row 1 \(image 'b'\): confidence is missing"),
    "inverted": ([["b", 9, 0, 0, 9, 0.5]], r"row 0 \(image 'b'\): x_max 0 is smaller than x_min 9"),
    "no number": ([["b", 0, 0, "nine", 9, 0.5]], r"row 0 \(image 'b'\): x_max is 'nine', not a number$"),
    "a bool": ([["b", 0, 0, True, 9, 0.5]], r"row 0 \(image 'b'\): x_max is True, not a number"),
    "quotes": (
        [["b", "'0", 0, 9, "9'", 0.5]],
        r"row 0 \(image 'b'\): x_min is \"'0\", not a number; remove the quotes",
    ),
    "quoted box": ([["b", "'0,0,9,9'", 0.5]], r"row 0 \(image 'b'\): x_min is \"'0\", not a number; remove the quotes"),
    "three numbers": ([["b", "0,0,9", 0.5]], r"row 0 \(image 'b'\): box is '0,0,9'; give x_min,y_min,x_max,y_max"),
    "lengths": ([["a", 0, 0, 9, 9, 0.5], ["b", 0, 0, 9, 9]], r"row 1 \(image 'b'\): has 5 cells, and the first 6"),
    "too short": ([["b", 0, 0, 9]], r"row 0 \(image 'b'\): has 4 cells; give image, x_min"),
    "no row": ([7], r"detection row 0: is 7, not a list of image, x_min"),
    "no image": ([[None, 0, 0, 9, 9, 0.5], ["a", 0, 0, 9, 9, 0.5]], r"detection row 0: has no image"),
    "mixed images": ([[1, 0, 0, 9, 9], ["a", 0, 0, 9, 9]], r"detection: image: the column holds values of several"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_box_that_is_none_is_named_by_row_and_image(name: str) -> None:
    detections, message = BAD[name]
    with pytest.raises(DataError, match=message):
        average_precision(detections, [["a", 0, 0, 9, 9]])


def test_every_bad_box_is_reported_at_once() -> None:
    with pytest.raises(DataError) as reported:
        average_precision([["a", 0, 0, 9, 9, 1]], [["a", math.nan, 0, 9, 9], ["a", 9, 9, 0, 0]])
    assert [fault.where for fault in reported.value.faults] == [
        "truth row 0 (image 'a')",
        *["truth row 1 (image 'a')"] * 2,
    ]


def test_columns_that_are_missing_or_of_other_lengths_are_named() -> None:
    with pytest.raises(SpecError, match="detections lack 'y_max'; the columns are 'image', 'x_min', 'y_min', 'x_max'"):
        average_precision({"image": [1], "x_min": [0], "y_min": [0], "x_max": [9]}, [])
    with pytest.raises(DataError, match="detection: the columns have 1 and 2 rows"):
        average_precision({"image": [1], "x_min": [0], "y_min": [0], "x_max": [9], "y_max": [9, 9]}, [])
    with pytest.raises(SpecError, match="detections must be a table, columns by name or a list of rows, not int"):
        average_precision(7, [])


def test_the_published_definition_takes_boxes_as_they_are() -> None:
    """There a NaN overlaps nothing, and in the image of a true box with one nothing is found."""
    nan, right = ["a", math.nan, 0, 9, 9, 0.9], ["a", 0, 0, 9, 9, 0.8]
    assert objectDetectionAP([nan, right], [right[:5]]).precision.tolist() == [0, 0.5]
    assert objectDetectionAP([right], [right[:5], nan[:5]]).recall.tolist() == [0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"iou": 0}, "iou=0 must lie between 0 and 1"),
        ({"iou": 1.5}, "iou=1.5 must lie"),
        ({"iou": math.nan}, "iou=nan must lie"),
        ({"iou": "0.5"}, "iou='0.5' must lie"),
        (
            {"definition": "cocoo"},
            "definition='cocoo' must be one of standard, 3.1.1, core-2022, coco .did you mean 'coco'",
        ),
        ({"points": 12}, "points=12 does not work here"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        average_precision(WITH, TRUTH, **options)


def test_a_result_is_three_values() -> None:
    assert BoxPrecisionCurve._fields == ("recall", "precision", "ap")


# Crowds, areas and limits


def test_tables_have_crowds_areas_and_limits() -> None:
    truths = {"image": [1, 1], "box": ["0,0,100,100", "200,0,220,20"], "crowd": [True, None]}
    detections = {
        "image": [1] * 4,
        "box": ["10,10,20,20", "50,50,60,60", "300,0,400,100", "200,0,220,20"],
        "confidence": [0.9, 0.8, 0.7, 0.6],
    }
    found = average_precision(detections, truths)
    assert (found.recall.tolist(), found.precision.tolist(), found.ap) == ([0.0, 1.0], [0.0, 0.5], 0.5)
    assert average_precision(detections, truths, area="small").ap == 1
    assert math.isnan(average_precision(detections, truths, area="large").ap)
    assert average_precision(detections, truths, max_detections=3).ap == 0
    labelled = [{**columns, "label": ["a"] * len(columns["image"])} for columns in (detections, truths)]
    assert average_precision_by_label(*labelled, area="small")["a"].ap == 1


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"crowd": [0, 2]}, r"truth row 1 \(image 'b'\): crowd is 2; give true or false, or 1 or 0"),
        ({"crowd": ["0", "yes"]}, r"truth row 1 \(image 'b'\): crowd is 'yes', not a number"),
        ({"x_min": [0, 9 - 1e-200], "x_max": [9, 9]}, None),
        (
            {"x_min": [0, 0], "x_max": [9, 1e-200]},
            r"truth row 1 \(image 'b'\): x_max exceeds x_min by only 1e-200; the box has no area",
        ),
        ({"x_min": [0, math.nan]}, r"truth row 1 \(image 'b'\): x_min is missing or NaN; give a finite number"),
        ({"y_max": [9, -1]}, r"truth row 1 \(image 'b'\): y_max -1 is smaller than y_min 0"),
        ({"y_max": [9, math.inf]}, r"truth row 1 \(image 'b'\): y_max is inf, which is too large"),
        ({"x_min": [-9, -9], "y_min": [-9, -9], "x_max": [-1, -1]}, None),
        ({"x_max": [9, 0]}, None),
    ],
)
def test_a_true_box_that_is_none_is_named_and_one_of_no_area_is_never_found(columns: Any, message: str | None) -> None:
    corners = {"x_min": [0, 0], "y_min": [0, 0], "x_max": [9, 9], "y_max": [9, 9]}
    truths = {"image": ["a", "b"], **corners, **columns}
    if message is None:
        found = average_precision({name: truths[name] for name in ("image", *corners)}, truths).ap
        assert found == (1 if truths["x_max"][1] != truths["x_min"][1] else 0.25)  # one of two right, and one found
        return
    with pytest.raises(DataError, match=message):
        average_precision([], truths)
