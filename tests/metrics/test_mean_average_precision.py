"""Detection on the path: boxes of images are checked by the scorer and averaged by the metric."""

from __future__ import annotations

import contextlib
import io
import itertools
import math
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from support.effort import FEW_EXAMPLES
from support.thinned import thinned

from evaluand.aggregation.aggregator import Aggregator, Measure
from evaluand.aggregation.groups import MetricRow, merge, summarise, summarise_shard
from evaluand.core.errors import DataError, SpecError
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluator
from evaluand.evaluation.scorers.detection import Detection
from evaluand.metrics.box_averages import AverageRecall, MeanAveragePrecision, OfBoxes
from evaluand.metrics.detection.precision import average_precision_by_label
from evaluand.metrics.detection.tables import BOX_LISTS
from evaluand.run.runner import Runner

Boxes = list[dict[str, Any]]


def box(side: float, label: str | None = None, confidence: float | None = None, size: float = 10) -> dict[str, Any]:
    """A square that begins at `side`."""
    reported = {"box": [side, side, side + size, side + size], "label": label, "confidence": confidence}
    return {name: cell for name, cell in reported.items() if cell is not None}


def table(images: list[tuple[Boxes | None, Boxes]], **columns: list[Any]) -> pa.Table:
    """The scorer's table: of each image what was detected (None: the task failed) and what is there."""
    rows = []
    for detected, expected in images:
        held = Detection().unanswered(expected) if detected is None else Detection().score(detected, expected).columns
        rows.append({name: (held or {}).get(name) for name in ("truths", "detections")})
    text = {name: [None if row[name] is None else orjson.dumps(row[name]).decode() for row in rows] for name in rows[0]}
    status = ["failed" if detected is None else "scored" for detected, _ in images]
    columns = {"_index_": list(range(len(images))), "status": status, **text, **columns}
    return pa.table(columns, pa.schema([(n, pa.string()) for n in text]) if not images else None)


def value_of(metric: OfBoxes, images: list[tuple[Boxes | None, Boxes]], **columns: list[Any]) -> MetricRow:
    [row] = summarise([table(images, **columns)], [metric])
    return row


def drawn(seed: int, images: int = 20, labels: str = "abc", ties: bool = False) -> list[tuple[Boxes | None, Boxes]]:
    random = np.random.default_rng(seed)
    found: list[tuple[Boxes | None, Boxes]] = []
    for _ in range(images):
        expected = [box(float(side), str(random.choice(list(labels)))) for side in random.integers(0, 80, 6)]
        detected = []
        for one in expected:
            side, label = one["box"][0] + float(random.integers(-3, 4)), str(random.choice([one["label"], labels[0]]))
            sure = float(random.integers(0, 8)) / 8 if ties else float(random.random())
            detected.append(box(side, label, sure, float(random.integers(7, 13))))
        found.append((detected, expected))
    return found


def flat(images: list[tuple[Boxes | None, Boxes]]) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """The boxes of all images as columns."""
    sides = []
    for side in (0, 1):
        rows = [(image, one) for image, pair in enumerate(images) for one in pair[side] or ()]
        columns = {"image": [image for image, _ in rows], "box": [one["box"] for _, one in rows]}
        sides.append(columns | {name: [one.get(name) for _, one in rows] for name in ("label", "confidence")})
    del sides[1]["confidence"]
    return sides[0], sides[1]


# The value


def test_the_mean_is_over_labels_that_have_true_boxes() -> None:
    images: list[tuple[Boxes | None, Boxes]] = [
        ([box(0, "cat", 0.9), box(50, "dog", 0.8)], [box(0, "cat"), box(20, "cat"), box(50, "dog")]),
        ([box(0, "bird", 0.9)], []),
    ]
    row = value_of(MeanAveragePrecision(), images)
    assert row.value == pytest.approx(0.75, abs=1e-15)
    assert row.data["labels"] == {
        "bird": {"value": None, "expected": 0, "predicted": 1},
        "cat": {"value": 0.5, "expected": 2, "predicted": 1},
        "dog": {"value": 1.0, "expected": 1, "predicted": 1},
    }
    assert (row.data["expected"], row.data["predicted"]) == (3, 3)


def test_one_label_alone() -> None:
    images: list[tuple[Boxes | None, Boxes]] = [
        ([box(0, "cat", 0.9), box(50, "dog", 0.8)], [box(0, "cat"), box(20, "cat"), box(50, "dog")])
    ]
    assert value_of(MeanAveragePrecision(label="cat"), images).value == 0.5
    row = value_of(MeanAveragePrecision(label="cow"), images)
    assert math.isnan(row.value)
    assert row.reason == "no image has a true box with the label 'cow'"


def test_boxes_without_labels_and_confidence() -> None:
    images: list[tuple[Boxes | None, Boxes]] = [([box(0), box(50)], [box(0)])]
    row = value_of(MeanAveragePrecision(), images)
    assert row.value == 0.5
    assert row.data == {"n": 1, "expected": 1, "predicted": 2}


def test_nothing_detected_is_0_and_nothing_there_is_undefined() -> None:
    assert value_of(MeanAveragePrecision(), [([], [box(0, "cat")]), ([], [])]).value == 0
    row = value_of(MeanAveragePrecision(), [([box(0, "cat", 0.5)], []), ([], [])])
    assert math.isnan(row.value)
    assert row.reason == "no image has a true box"


@pytest.mark.parametrize("definition", ["standard", "3.1.1", "core-2022", "coco"])
@thinned("ties", [False, True], every=2)
@pytest.mark.parametrize("points", [None, 11])
def test_it_is_the_mean_of_the_average_precision_of_each_label(definition: str, ties: bool, points: Any) -> None:
    images = drawn(1, ties=ties)
    metric = MeanAveragePrecision(definition=definition, points=points, iou=0.6)
    each = average_precision_by_label(*flat(images), iou=0.6, definition=definition, points=points)
    row = value_of(metric, images)
    assert row.value == pytest.approx(np.mean([found.ap for found in each.values()]), abs=1e-12)
    reported = {label: found["value"] for label, found in row.data["labels"].items()}
    assert reported == {label: pytest.approx(found.ap, abs=1e-12) for label, found in each.items()}
    assert row.low < row.value < row.high


def pycocotools(images: list[tuple[Boxes | None, Boxes]]) -> Any:
    """What pycocotools makes of the same boxes, of labels a to c: its arrays `precision` and `recall`."""
    pytest.importorskip("pycocotools", reason="needs pycocotools: pip install pycocotools")
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    def row(image: int, one: dict[str, Any], number: int) -> dict[str, Any]:
        x_min, y_min, x_max, y_max = one["box"]
        size = [x_max - x_min, y_max - y_min]
        kind = {"image_id": image, "category_id": "abc".index(one["label"]) + 1, "iscrowd": int(one.get("crowd", 0))}
        return {**kind, "bbox": [x_min, y_min, *size], "area": size[0] * size[1], "id": number}

    detected, expected = (
        [(image, one) for image, pair in enumerate(images) for one in pair[side] or ()] for side in (0, 1)
    )
    with contextlib.redirect_stdout(io.StringIO()):
        whole = COCO()
        whole.dataset = {
            "images": [{"id": image} for image in range(len(images))],
            "categories": [{"id": i} for i in (1, 2, 3)],
            "annotations": [row(image, one, number) for number, (image, one) in enumerate(expected, 1)],
            "info": {},
        }
        whole.createIndex()
        found = [row(image, one, 0) | {"score": one["confidence"]} for image, one in detected]
        judged = COCOeval(whole, whole.loadRes(found), "bbox")
        judged.evaluate()
        judged.accumulate()
    return judged.eval


def test_cocos_mean_is_that_of_pycocotools() -> None:
    images = drawn(2, ties=True)
    precision = pycocotools(images)["precision"][:, :, :, 0, 2]
    for iou, expected in (("0.50:0.95", precision), (0.5, precision[0]), (0.75, precision[5])):
        metric = MeanAveragePrecision(iou=iou, definition="coco")
        assert value_of(metric, images).value == pytest.approx(expected.mean(), abs=1e-12)


def crowded(seed: int) -> list[tuple[Boxes | None, Boxes]]:
    """Boxes of all areas, also just at the ends of their ranges, some of them crowds, and detections all over them."""
    random = np.random.default_rng(seed)
    images: list[tuple[Boxes | None, Boxes]] = []
    for _ in range(12):
        expected, detected = Boxes(), Boxes()
        for _ in range(int(random.integers(0, 6))):
            label, size = str(random.choice(list("abc"))), float(random.choice([8, 20, 32, 50, 96, 130, 200]))
            x, y = random.integers(0, 100, 2).astype(float).tolist()
            one = {"box": [x, y, x + size, y + size], "label": label}
            expected.append(one | ({"crowd": True} if random.random() < 0.25 else {}))
            for _ in range(int(random.integers(0, 8))):
                shift = random.integers(-3, 4, 4) * size / 20
                within = float(random.choice([1.0, 1.0, 0.4]))
                corners = np.array([x, y, x + size * within, y + size * within]) + np.sort(shift)
                sure = float(random.integers(0, 30)) / 30 if seed % 2 else float(random.random())
                other = label if random.random() < 0.9 else "a"
                detected.append({"box": corners.tolist(), "label": other, "confidence": sure})
        images.append(([detected[i] for i in random.permutation(len(detected))], expected))
    return images


@thinned("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 10))], every=2)
def test_crowds_areas_and_limits_are_those_of_pycocotools(seed: int) -> None:
    images = crowded(seed)
    theirs = pycocotools(images)
    for (place, area), (limit, most) in itertools.product(
        enumerate([None, "small", "medium", "large"]), enumerate([1, 10, 100])
    ):
        options: dict[str, Any] = {"iou": "0.50:0.95", "area": area, "max_detections": most, "definition": "coco"}
        for kind, expected in (
            (MeanAveragePrecision, theirs["precision"][..., place, limit]),
            (AverageRecall, theirs["recall"][..., place, limit]),
        ):
            known = expected[expected > -1]
            value = value_of(kind(**options, confidence=None), images).value
            assert value == pytest.approx(known.mean() if len(known) else math.nan, abs=1e-12, nan_ok=True)


def test_the_standard_has_crowds_and_areas_too() -> None:
    crowd: list[tuple[Boxes | None, Boxes]] = [
        (
            [box(20, "a", 0.9), box(30, "a", 0.8), box(100, "a", 0.7)],
            [box(0, "a", size=60) | {"crowd": True}, box(100, "a")],
        )
    ]
    assert value_of(MeanAveragePrecision(), crowd).value == 1
    assert value_of(MeanAveragePrecision(), crowd).data["expected"] == 1
    reported = [(name, found) for name, found in crowd[0][1][0].items() if name != "crowd"]
    assert value_of(MeanAveragePrecision(), [(crowd[0][0], [dict(reported), crowd[0][1][1]])]).value == pytest.approx(
        1 / 6
    )
    sizes: list[tuple[Boxes | None, Boxes]] = [
        ([box(0, "a", 0.9, 50), box(200, "a", 0.8, 20), box(400, "a", 0.7)], [box(0, "a", size=50), box(400, "a")])
    ]
    assert value_of(MeanAveragePrecision(area="medium"), sizes).value == 1
    assert value_of(MeanAveragePrecision(area="small"), sizes).value == 0.5
    row = value_of(MeanAveragePrecision(area="large", label="a"), sizes)
    assert row.reason == "no image has a true box of the area 'large' with the label 'a'"


def test_a_box_that_counts_is_not_missed_for_a_crowd_that_covers_more() -> None:
    images: list[tuple[Boxes | None, Boxes]] = [
        ([box(1, "a", 0.9)], [box(0, "a", size=60) | {"crowd": True}, box(0, "a")])
    ]
    assert value_of(MeanAveragePrecision(), images).value == 1
    assert value_of(AverageRecall(iou=0.5), images).value == 1


def test_a_crowd_is_wide_and_begins_far_before_what_it_covers() -> None:
    far = {"box": [0, 0, 10_000, 10], "label": "a", "crowd": True}
    images: list[tuple[Boxes | None, Boxes]] = [
        ([{"box": [9000, 0, 9010, 10], "label": "a", "confidence": 0.9}, box(50, "a", 0.8)], [far, box(50, "a")])
    ]
    assert value_of(MeanAveragePrecision(iou=0.95), images).value == 1


# Average recall


def test_average_recall_is_the_mean_of_recalls_and_knows_nothing_of_wrong_detections() -> None:
    images: list[tuple[Boxes | None, Boxes]] = [
        ([box(0, "a", 0.2), box(60, "a", 0.9), box(40, "b", 0.3)], [box(0, "a"), box(20, "a"), box(40, "b")]),
        ([], [box(0, "b")]),
    ]
    row = value_of(AverageRecall(), images)
    assert row.value == 0.5
    assert row.low < 0.5 < row.high
    assert row.data["labels"]["a"] == {"value": 0.5, "expected": 2, "predicted": 2}
    assert value_of(AverageRecall(max_detections=1), images).value == 0.25
    assert AverageRecall().thresholds == tuple(i / 100 for i in range(50, 100, 5))


def test_an_image_that_failed_may_have_found_all_its_boxes_or_none() -> None:
    images: list[tuple[Boxes | None, Boxes]] = [
        ([box(0, "a", 0.9)], [box(0, "a"), box(20, "a")]),
        (None, [box(0, "a")]),
    ]
    row = value_of(AverageRecall(), images)
    assert (row.value, row.worst, row.best) == (0.5, pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert value_of(AverageRecall(missing="wrong"), images).value == pytest.approx(1 / 3)


def square(a: float, b: float, c: float, d: float, confidence: float | None = None) -> dict[str, Any]:
    return {"box": [a, b, c, d]} | ({} if confidence is None else {"confidence": confidence})


@pytest.mark.parametrize("definition", ["coco", "standard"])
def test_two_images_that_are_alike_by_chance_make_no_narrow_interval(definition: str) -> None:
    images: list[tuple[Boxes | None, Boxes]] = [
        ([square(12, 9, 60, 62, 0.9)], [square(10, 10, 60, 60), square(80, 10, 120, 50)]),
        ([square(50, 50, 70, 70, 0.4), square(0, 0, 38, 30, 0.3)], [square(0, 0, 40, 30)]),
    ]
    row = value_of(MeanAveragePrecision(definition=definition), images)
    assert 0.55 < row.value < 0.56
    assert (row.low < 0.02, row.high > 0.98) == (True, True)


def test_several_thresholds_are_averaged() -> None:
    images = drawn(3)
    each = [value_of(MeanAveragePrecision(iou=iou), images).value for iou in (0.5, 0.7)]
    assert value_of(MeanAveragePrecision(iou=[0.5, 0.7]), images).value == pytest.approx(np.mean(each), abs=1e-14)


def test_an_image_of_weight_2_is_an_image_twice() -> None:
    images = drawn(4, images=6)
    weight = [2.0, 1.0, 1.0, 3.0, 1.0, 0.0]
    twice = [image for image, n in zip(images, weight, strict=True) for _ in range(int(n))]
    weighted = value_of(MeanAveragePrecision(weighted=True), images, _weight_=weight)
    assert weighted.value == pytest.approx(value_of(MeanAveragePrecision(), twice).value, abs=1e-12)


def test_lists_of_boxes_are_read_like_their_json() -> None:
    for seed, labelled in ((0, True), (1, True), (1, False)):
        images = crowded(seed)
        for one in itertools.chain.from_iterable(itertools.chain(*pair) for pair in images if not labelled):
            del one["label"]
        text = table(images)
        lists = text.select(["_index_", "status"])
        for name, side in (("truths", 1), ("detections", 0)):
            cells = pa.array([pair[side] for pair in images], pa.list_(pa.struct([*STRUCT])))
            lists = lists.append_column(name, cells)
        metrics: list[OfBoxes] = [MeanAveragePrecision(), AverageRecall(definition="coco", area="medium")]
        assert repr(summarise([lists], metrics)) == repr(summarise([text], metrics))


STRUCT = [
    pa.field("label", pa.string()) if field.name == "label" else field for field in BOX_LISTS.value_type
]  # which Arrow builds from Python's objects


# Merging, order, groups


@settings(max_examples=FEW_EXAMPLES)
@given(st.integers(0, 1000), st.integers(0, 12), st.sampled_from(["standard", "3.1.1", "coco", "core-2022"]))
def test_halves_merge_to_the_whole(seed: int, cut: int, definition: str) -> None:
    images = [(detected, expected) for detected, expected in drawn(seed, images=12, ties=True)]
    random = np.random.default_rng(seed)
    groups = [str(each) for each in random.integers(0, 3, len(images))]
    whole, metric = table(images, group=groups), MeanAveragePrecision(definition=definition)
    by: list[tuple[str, ...]] = [(), ("group",)]
    parts = [part for part in (whole.slice(0, cut), whole.slice(cut)) if part.num_rows]
    merged = merge([summarise_shard(part, [metric], by) for part in parts]).rows()
    assert repr(merged) == repr(summarise([whole], [metric], by))  # where NaN is NaN


def test_twenty_orders_of_boxes_and_images_give_one_value() -> None:
    images, random, found = drawn(5, ties=True), np.random.default_rng(0), set()
    metric = MeanAveragePrecision(confidence=None)
    for _ in range(20):
        shuffled = [tuple([each[i] for i in random.permutation(len(each))] for each in image) for image in images]
        found.add(value_of(metric, [shuffled[i] for i in random.permutation(len(shuffled))]).value)  # type: ignore[misc]
    assert len(found) == 1


def test_a_group_has_what_its_images_have() -> None:
    images = drawn(6)
    group = [str(image % 2) for image in range(len(images))]
    _, *rows = summarise([table(images, group=group)], [MeanAveragePrecision()], [(), ("group",)])
    for parity, row in enumerate(rows):
        alone = value_of(MeanAveragePrecision(), images[parity::2])
        assert (row.value, row.n) == (alone.value, 10)


def test_the_curves_are_those_the_value_averages() -> None:
    images = drawn(7)
    metric = MeanAveragePrecision(iou=(0.75, 0.5))
    columns = {name: table(images)[name].combine_chunks() for name in metric.columns}
    prepared = metric.prepare(metric.read({"_index_": np.arange(len(images)), **columns}))
    [found] = metric.curves(metric.state({**prepared, "_cluster_": np.arange(20)}, np.zeros(20, np.int64), 1))
    assert [(one.kind, one.part) for one in found] == [("precision_recall", label) for label in "abc"]
    for one in found:
        whole = average_precision_by_label(*flat(images), iou=0.5)[one.part]
        assert one.points.x.tolist() == whole.recall.tolist()
        assert one.points.y.tolist() == whole.precision.tolist()
        assert (np.diff(one.points.threshold) < 0).all()


# Images without a score


def test_an_image_that_failed_has_found_nothing_where_that_is_asked_and_bounds_otherwise() -> None:
    images: list[tuple[Boxes | None, Boxes]] = [
        ([box(0, "a", 0.9), box(40, "a", 0.95)], [box(0, "a")]),
        (None, [box(0, "a")]),
    ]
    left_out, wrong = (value_of(MeanAveragePrecision(missing=way), images) for way in ("leave_out", "wrong"))
    assert (left_out.value, left_out.worst) == (0.5, 0)
    assert left_out.best == pytest.approx((1 + 2 / 3) / 2, abs=1e-12)  # the box of the other image first
    assert wrong.value == 0.25
    assert (left_out.n, left_out.n_failed) == (2, 1)


def test_labels_that_only_a_failed_image_has_count_too() -> None:
    images: list[tuple[Boxes | None, Boxes]] = [([box(0, "b", 0.9)], [box(0, "b")]), (None, [box(0, "a")])]
    assert value_of(MeanAveragePrecision(missing="wrong"), images).value == 0.5
    assert value_of(MeanAveragePrecision(), images).best == 1


def test_nothing_counts_as_wrong_where_nothing_is_known() -> None:
    rows = table([([box(0)], [box(0)]), (None, [box(0)])]).drop_columns(["truths"])
    rows = rows.append_column("truths", pa.array([orjson.dumps({"box": [[0, 0, 9, 9]]}).decode(), None]))
    with pytest.raises(DataError, match="_index_ 1: has no score, and its boxes are unknown"):
        summarise([rows], [MeanAveragePrecision(missing="wrong")])
    [row] = summarise([rows], [MeanAveragePrecision()])
    assert (row.worst, row.best) == (0, 1)


# The scorer


def test_the_scorer_keeps_checked_boxes_as_columns() -> None:
    score = Detection().score([{"box": "1,2,3,4", "confidence": ".5"}], [[1, 2, 3, 4], [5, 5, 6, 6]])
    assert score.value is None
    assert score.columns == {
        "truths": {"box": [[1.0, 2.0, 3.0, 4.0], [5.0, 5.0, 6.0, 6.0]]},
        "detections": {"box": [[1.0, 2.0, 3.0, 4.0]], "confidence": [0.5]},
        "n_expected": 2,
        "n_predicted": 1,
    }


def test_crowds_are_kept_where_there_are_some() -> None:
    there = [box(0, "a"), box(9, "a") | {"crowd": 1}, box(20, "a") | {"crowd": None}]
    score = Detection().score([box(0, "a") | {"crowd": "never read"}], there)
    assert score.columns["truths"]["crowd"] == [False, True, False]  # type: ignore[index]
    assert "crowd" not in score.columns["detections"]  # type: ignore[index]
    marked = Detection(crowd_key="iscrowd").score([], [{"box": [0, 0, 1, 1], "iscrowd": 1}])
    assert marked.columns["truths"]["crowd"] == [True]  # type: ignore[index]


def test_boxes_beyond_the_image_and_of_no_area_are_boxes() -> None:
    outside: list[tuple[Boxes | None, Boxes]] = [([box(-50, "a", 0.9)], [box(-50, "a")])]
    assert value_of(MeanAveragePrecision(), outside).value == 1
    line: list[tuple[Boxes | None, Boxes]] = [
        ([box(5, "a", 0.9, 0), box(0, "a", 0.8)], [box(5, "a", size=0), box(0, "a")])
    ]
    row = value_of(MeanAveragePrecision(), line)  # one true box that nothing can find, one wrong detection
    assert (row.value, row.data["expected"], row.data["predicted"]) == (0.25, 2, 2)


def test_null_is_no_empty_image() -> None:
    assert Detection().score([], None).status == "abstained"
    assert Detection().score(None, []).status == "abstained"
    assert Detection().score([], []).status == "scored"


BAD: dict[str, tuple[Any, Any, str]] = {
    "no list": ("cat", [], "the detected boxes are the text 'cat', not a list of boxes"),
    "no box": ([{"bbox": [0, 0, 1, 1]}], [], "detected box 0 has 'bbox' and not 'box'"),
    "three numbers": (
        [],
        [[0, 0, 1, 1], [0, 0, 1]],
        "expected box 1 has 3 numbers; give x_min, .* of each corner of a polygon",
    ),
    "NaN": ([[0, 0, 1, 1], [0, math.nan, 1, 1]], [], "detected box 1: y_min is the number nan, not a finite number"),
    "quotes": (["'0,0,1,1'"], [], 'detected box 0: x_min is the text "\'0", not a finite number'),
    "infinite": ([[0, 0, math.inf, 1]], [], "detected box 0: x_max is the number inf, not a finite number"),
    "too large": ([[0, 0, 1e200, 1]], [], "detected box 0: x_max is the number 1e.200, not a finite number"),
    "too small": (
        [[0, 0, 1e-200, 1]],
        [],
        "detected box 0: x_max exceeds x_min by only 1e-200; the box has no area",
    ),
    "a crowd that is none": ([], [box(0) | {"crowd": 2}], "expected box 0: crowd is the integer 2, not true or false"),
    "inverted": ([[5, 0, 1, 1]], [], "detected box 0: x_max is 1 and smaller than x_min, 5"),
    "a label that is none": ([{"box": "0,0,1,1", "label": 0.5}], [], "detected box 0: label is the number 0.5"),
    "labels for some": ([box(0, "a", 1), box(0, None, 1)], [], "detected box 1 has no label, but other boxes"),
    "confidence for some": ([box(0, None, 1), box(0)], [], "detected box 1 has no confidence, but other boxes"),
    "labels on one side": (
        [box(0, "a", 1)],
        [box(0)],
        "the detected boxes have labels and the expected ones have none",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_box_that_is_none_is_named(name: str) -> None:
    output, expected, message = BAD[name]
    with pytest.raises(DataError, match=message):
        Detection().score(output, expected)


def test_images_that_do_not_agree_on_labels_or_confidence_are_named() -> None:
    with pytest.raises(DataError, match="_index_ 1: its detections have no confidence, but those of other images do"):
        value_of(MeanAveragePrecision(), [([box(0, None, 0.5)], []), ([box(0)], [])])
    with pytest.raises(DataError, match="_index_ 0: its truths have no label"):
        value_of(MeanAveragePrecision(), [([], [box(0)]), ([], [box(0, "a")])])


def test_another_table_is_refused() -> None:
    with pytest.raises(SpecError, match="mean_average_precision reads 'truths', 'detections', which the table lacks"):
        summarise([pa.table({"_index_": [0], "status": ["scored"], "value": [1.0]})], [MeanAveragePrecision()])
    other = pa.table({"_index_": [0], "status": ["scored"], "truths": ["7"], "detections": ["7"]})
    with pytest.raises(DataError, match="the column does not hold boxes"):
        summarise([other], [MeanAveragePrecision()])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"iou": 0}, "iou=0 must lie between 0 and 1"),
        ({"iou": "0.5"}, "iou='0.5' must lie"),
        ({"iou": []}, "has no threshold"),
        ({"definition": "voc"}, "definition='voc' must be one of"),
        ({"points": 40}, "points=40 does not work"),
        ({"area": "tiny"}, "area='tiny' must be one of small, medium, large"),
        ({"area": [0, 9]}, r"area=\[0, 9\] must be one of"),
        ({"max_detections": 0}, "max_detections=0 must be an integer of at least 1"),
        ({"max_detections": True}, "max_detections=True must be"),
    ],
)
def test_parameters_that_cannot_be_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        MeanAveragePrecision(**options)


def test_the_whole_path() -> None:
    images = drawn(8)
    data = Dataset.from_rows([{"input": image, "expected": expected} for image, (_, expected) in enumerate(images)])

    def detect(image: int) -> Any:
        if image == 3:
            raise RuntimeError("out of memory")
        return images[image][0]

    evaluation = Evaluator().evaluate(Runner().run(detect, data), {"boxes": "detection"})
    metric = MeanAveragePrecision(missing="wrong")
    [row] = Aggregator().aggregate([evaluation], [Measure("boxes", metric)]).table().to_pylist()
    images[3] = ([], images[3][1])
    assert row["value"] == pytest.approx(value_of(MeanAveragePrecision(), images).value, abs=1e-12)
    assert (row["n"], row["n_failed"]) == (20, 1)


def test_detections_that_are_all_ignored_draw_a_curve_without_a_warning() -> None:
    data = Dataset.from_rows([{"input": i, "expected": [{"box": [0, 0, 5, 5], "label": "a"}]} for i in range(2)])
    run = Runner().run(lambda i: [{"box": [50 + i, 50, 250, 250], "label": "a", "confidence": 0.9}], data)
    metric = MeanAveragePrecision(definition="coco", area="small")
    aggregation = Aggregator().aggregate(
        [Evaluator().evaluate(run, {"boxes": Detection()})], [Measure("boxes", metric)]
    )
    assert aggregation.table()["value"].to_pylist() == [0.0]
    assert aggregation.curves().num_rows > 0
