"""Files of COCO: the values of pycocotools, notes where they differ from it, and faults with their places."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from evaluand.cli import main
from evaluand.core.errors import DataError, SpecError
from evaluand.predictions.coco import score_coco
from evaluand.store.store import MemoryStore

pycocotools = pytest.importorskip("pycocotools.coco")
cocoeval = pytest.importorskip("pycocotools.cocoeval")
masks = pytest.importorskip("pycocotools.mask")

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation")  # of pycocotools with NumPy 2

SIDE = 200
CATEGORIES = {3: "cat", 7: "dog", 9: "cow"}


def draw(seed, images=25):
    """Instances with polygons, crowds and areas, and detections near some of them, with equal confidences."""
    random = np.random.default_rng(seed)
    listed = [
        {"id": int(id), "file_name": f"{id}.jpg", "height": SIDE, "width": SIDE, "license": int(id) % 2}
        for id in random.permutation(100)[:images]
    ]
    annotations, found = [], []
    for image in listed:
        for _ in range(random.integers(0, 6)):
            outline = polygon(random)
            pixels = masks.merge(masks.frPyObjects([outline], SIDE, SIDE))
            if masks.area(pixels) < 4:
                continue
            crowd, category = bool(random.random() < 0.1), int(random.choice([*CATEGORIES]))
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": image["id"],
                    "category_id": category,
                    "bbox": masks.toBbox(pixels).tolist(),
                    "area": float(masks.area(pixels)),
                    "iscrowd": int(crowd),
                    "segmentation": uncompressed(pixels) if crowd else [outline],
                }
            )
            for _ in range(random.integers(0, 3)):
                near = [number + float(random.normal(0, 6)) for number in outline]
                pixels = masks.merge(masks.frPyObjects([near], SIDE, SIDE))
                if masks.area(pixels):
                    label = category if random.random() < 0.85 else int(random.choice([*CATEGORIES]))
                    found.append((image["id"], label, round(float(random.random()), 1), pixels))
    instances = {
        "images": listed,
        "annotations": annotations,
        "categories": [{"id": id, "name": name} for id, name in CATEGORIES.items()],
    }
    return instances, found


def polygon(random):
    width, height = random.uniform(8, 150, 2)
    x, y = random.uniform(0, SIDE - width), random.uniform(0, SIDE - height)
    angle = np.sort(random.uniform(0, 2 * np.pi, random.integers(3, 9)))
    points = np.stack([x + width / 2 * (1 + np.cos(angle)), y + height / 2 * (1 + np.sin(angle))], axis=1)
    return points.ravel().tolist()


def uncompressed(pixels):
    flat = masks.decode(pixels).ravel(order="F")
    runs = np.diff([0, *(np.flatnonzero(np.diff(flat)) + 1), len(flat)]).tolist()
    return {"size": [SIDE, SIDE], "counts": [0, *runs] if flat[0] else runs}


def as_boxes(found):
    return [
        {"image_id": image, "category_id": label, "score": score, "bbox": masks.toBbox(pixels).tolist()}
        for image, label, score, pixels in found
    ]


def as_masks(found):
    return [
        {
            "image_id": image,
            "category_id": label,
            "score": score,
            "segmentation": {"size": [SIDE, SIDE], "counts": pixels["counts"].decode()},
        }
        for image, label, score, pixels in found
    ]


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(**files):
        for name, content in files.items():
            (tmp_path / f"{name}.json").write_text(json.dumps(content))

    return write


def values(scores):
    return [np.nan if value is None else value for value in scores.results.aggregation.table()["value"].to_pylist()]


@pytest.mark.parametrize("seed", [*range(1), *(pytest.param(i, marks=pytest.mark.slow) for i in range(1, 3))])
@pytest.mark.parametrize(("kind", "form"), [("bbox", as_boxes), ("segm", as_masks)])
def test_the_twelve_values_are_those_of_pycocotools(write, seed, kind, form):
    instances, found = draw(seed)
    write(instances=instances, found=form(found))
    with contextlib.redirect_stdout(io.StringIO()):
        truth = pycocotools.COCO("instances.json")
        reference = cocoeval.COCOeval(truth, truth.loadRes("found.json"), kind)
        reference.evaluate()
        reference.accumulate()
        reference.summarize()
    expected = np.where(reference.stats < 0, np.nan, reference.stats)  # -1 stands for no true object
    assert values(score_coco("instances.json", "found.json", intervals=False)) == pytest.approx(
        expected.tolist(), abs=1e-12, nan_ok=True
    )


BOX = [10, 10, 20, 20]


def coco(images, annotations):
    return {
        "images": [{"id": id, "height": 50, "width": 50, **fields} for id, fields in images.items()],
        "annotations": [
            {"id": place + 1, "image_id": image, "category_id": category, "bbox": BOX, "area": 400}
            for place, (image, category) in enumerate(annotations)
        ],
        "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "yak"}],
    }


def detect(*found):
    return [
        {"image_id": image, "category_id": category, "score": score, "bbox": box}
        for image, category, score, box in found
    ]


FAR = [30, 30, 5, 5]


def test_the_names_that_others_report_are_coco_s_averages(write):
    instances, found = draw(0)
    write(instances=instances, found=as_boxes(found))
    for name, own in (("mAP", "AP"), ("map", "AP"), ("mean_average_precision", "AP"), ("mAP50", "AP50")):
        as_reported, as_named = (
            score_coco("instances.json", "found.json", metrics=[each], intervals=False) for each in (name, own)
        )
        assert values(as_reported) == values(as_named)


def test_the_command_compares_files_of_results_by_group_and_gate(write):
    instances, found = draw(0)
    write(instances=instances, a=as_boxes(found), b=as_boxes(found[::2]))
    arguments = "score --coco instances.json a.json b.json --metric AP --by license --gate coco_ap>=0.99 --json"
    result = CliRunner().invoke(main, arguments.split())
    assert result.exit_code == 3, result.output
    facts = json.loads(result.stdout)
    assert [(row["task"], row["by"]) for row in facts["metrics"]] == [
        (task, by) for task in "ab" for by in ({}, {"license": "0"}, {"license": "1"})
    ]
    assert [gate["passed"] for gate in facts["gates"]] == [False]


# What is odd: the value of pycocotools, or a note that says why it differs


def reference(**files):
    """AP of pycocotools; None where it fails or finds no true object."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            truth = pycocotools.COCO("instances.json")
            judged = cocoeval.COCOeval(truth, truth.loadRes("found.json"), "bbox")
            judged.evaluate()
            judged.accumulate()
            judged.summarize()
        return None if judged.stats[0] < 0 else judged.stats[0]
    except (AssertionError, AttributeError, IndexError, KeyError, TypeError, ValueError):
        return None


FAR = [30, 30, 5, 5]
TWO = coco({1: {}, 2: {}}, [(1, 1), (2, 1)])
FOUND = detect((1, 1, 0.9, BOX), (2, 1, 0.5, BOX))


def annotated(*changes):
    """Two images with an object each, which are changed."""
    return TWO | {"annotations": [own | change for own, change in zip(TWO["annotations"], changes, strict=True)]}


def listed(part, *entries):
    return TWO | {part: [*entries]}


def corners(n, left=20, **sizes):
    """Boxes of a truth that are x_min, y_min, x_max, y_max, each at a place of its own."""
    images = [{"id": 1, **sizes}]
    boxes = [[left + i, left + i, left + i + 22, left + i + 21] for i in range(n)]
    own = [{"id": i + 1, "image_id": 1, "category_id": 1, "area": 9, "bbox": box} for i, box in enumerate(boxes)]
    return {"images": images, "annotations": own, "categories": [{"id": 1, "name": "cat"}]}


ZERO = "an annotation has the id 0; here it is an object like others, and pycocotools never takes it for found"
TWICE = "1 id of annotations occurs more than once, such as {}; each annotation is an object here, and pycocotools"
IDS = [
    (annotated({"id": 0}, {"id": 1}), FOUND, 1.0, [ZERO]),
    (annotated({"id": 0.0}, {"id": 1}), FOUND, 1.0, [ZERO]),
    (annotated({"id": -1}, {"id": 1}), FOUND, 1.0, []),
    (annotated({"id": 7}, {"id": 7, "bbox": FAR}), FOUND, 0.504950495, [TWICE.format(7)]),
    (annotated({"id": 0}, {"id": 0}), FOUND, 1.0, [TWICE.format(0), ZERO]),
    (annotated({"id": None}, {"id": None}), FOUND, 1.0, []),
    (annotated({"id": "a"}, {"id": "b"}), FOUND, 1.0, []),
    (annotated({"id": 2**40}, {"id": 1}), FOUND, 1.0, []),
    (annotated({"id": 0, "iscrowd": 1}, {"id": 2}), FOUND, 1.0, []),
    (annotated({"image_id": 1.0}, {"category_id": 1.0}), FOUND, 1.0, []),
    (coco({0: {}, 2: {}}, [(0, 1), (2, 1)]), detect((0, 1, 0.9, BOX), (2, 1, 0.5, BOX)), 1.0, []),
    (listed("images", {"id": 2}, {"id": 1}), FOUND, 1.0, []),
    (listed("categories", {"id": 1, "name": "a"}, {"id": 0, "name": "a"}), FOUND, 1.0, ["2 categories have no names"]),
]
LOOK = "boxes look like x_min, y_min, x_max, y_max: of all {} the third number is larger than the first and the fourth"
CORNERS = [
    (corners(6, width=50, height=50), [], 0.0, [LOOK.format(6), "and 6 would end beyond their image", "no detection"]),
    (corners(6), [], 0.0, [LOOK.format(6), "no detection"]),
    (corners(4, width=50, height=50), [], 0.0, ["no detection"]),
    (corners(6, left=0, width=80, height=80), [], 0.0, ["no detection"]),
    (corners(6, width=50), [], 0.0, [LOOK.format(6), "no detection"]),
    (corners(6, width="50", height="50"), [], 0.0, [LOOK.format(6), "no detection"]),
    (corners(30, left=2, width=60, height=60), [], 0.0, [LOOK.format(30), "no detection"]),
    (corners(6, width=800, height=800), [], 0.0, ["no detection"]),
    (TWO, [{**FOUND[0], "bbox": [20, 20, 42, 41]}] * 6, 0.0, [LOOK.format(6)]),
    (TWO, [{**FOUND[0], "bbox": [20, 20, 20, 41]}] * 6, 0.0, []),
]
LEFT = "1 detection of {} that instances.json does not list is left out"
OTHERS = [
    (TWO, [*FOUND, *detect((8, 1, 0.95, BOX))], 1.0, [LEFT.format("an image")]),
    (TWO, [*FOUND, *detect((1, 5, 0.95, BOX))], 1.0, [LEFT.format("a category")]),
    (TWO, [*FOUND, *detect((8, 5, 0.95, BOX))], 1.0, [LEFT.format("an image")]),
    (TWO, [*FOUND, *detect((1, 2, 0.95, BOX))], 1.0, []),
    (TWO, [], 0.0, ["has no detection; every true object is missed"]),
    (TWO | {"annotations": []}, FOUND, None, ["has no annotation, so there is nothing to find"]),
    (TWO | {"annotations": []}, [], None, ["has no annotation", "has no detection"]),
    (coco({1: {}, 2: {}, 3: {}}, [(1, 1), (2, 1)]), FOUND, 1.0, []),
    (TWO, {"annotations": FOUND}, 1.0, []),
    (coco({1: {"neg_category_ids": [2]}}, [(1, 1)]), FOUND[:1], 1.0, ["as those of LVIS do; here every detection"]),
    (annotated({"iscrowd": 1}, {}), FOUND, 1.0, []),
    (annotated({"iscrowd": 1}, {"iscrowd": True}), FOUND, None, []),
    (annotated({"iscrowd": None}, {"iscrowd": False}), FOUND, 1.0, []),
    (annotated({"area": None}, {}), FOUND, 1.0, ["1 annotation states no area, and has that of the box or mask"]),
    (annotated({"area": 0}, {}), FOUND, 1.0, []),
    (annotated({"area": 2e10}, {}), FOUND, 1.0, []),
    (annotated({"bbox": [10, 10, 0, 20]}, {}), FOUND, 0.252475247, []),
    (TWO, detect((1, 1, 0.9, [10, 10, 0, 0]), (1, 1, 0.8, BOX), (2, 1, 0.5, BOX)), 2 / 3, []),
    (TWO, detect((1, 1, 9, BOX), (2, 1, -3, BOX)), 1.0, []),
    (TWO, [{**FOUND[0], "id": 0}, {**FOUND[1], "id": 0}], 1.0, []),
]


@pytest.mark.parametrize(("instances", "found", "value", "notes"), [*IDS, *CORNERS, *OTHERS])
def test_an_odd_file_has_the_value_of_pycocotools_or_a_note(write, instances, found, value, notes):
    write(instances=instances, found=found)
    scores = score_coco("instances.json", "found.json", metrics=["AP"], intervals=False)
    assert values(scores) == pytest.approx([np.nan if value is None else value], nan_ok=True)
    text = "\n".join(scores.notes[1:])
    assert all(note in text for note in notes), text
    assert bool(notes) == bool(text), text
    theirs = reference()
    assert value is None or theirs is None or theirs == pytest.approx(value) or "pycocotools" in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bbox": [1, 2, 3]}, r"found.json: \[0\]: bbox is \[1, 2, 3\]; give x, y, width and height"),
        ({"bbox": [1, 2, -3, 4]}, "bbox has the size -3 × 4; width and height are 0 or more"),
        ({"bbox": [1, 2, 3, -0.5]}, "width and height are 0 or more"),
        ({"bbox": "1,2,3,4"}, "bbox is '1,2,3,4'; give x, y, width and height"),
        ({"bbox": [1, 2, 3, "4"]}, "give x, y, width and height"),
        ({"bbox": [1, 2, 3, True]}, "give x, y, width and height"),
        ({"bbox": None}, "bbox is None; give x, y, width and height"),
        ({"bbox": [1e200, 2, 3, 4]}, "which is too large; give pixels"),
        ({"bbox": [1, 2, 3, 4, 5]}, "give x, y, width and height"),
        ({"bbox": {"x": 1}}, "give x, y, width and height"),
        ({"score": None}, r"\[0\]: score is None, not a number; each detection needs its confidence"),
        ({"score": "0.9"}, "score is '0.9', not a number"),
        ({"score": [0.9]}, r"score is \[0.9\], not a number"),
        ({"score": True}, "score is True, not a number"),
        ({"image_id": "1"}, "image_id is '1', not an integer"),
        ({"image_id": 1.5}, "image_id is 1.5, not an integer"),
        ({"image_id": None}, "image_id is None, not an integer"),
        ({"category_id": True}, "category_id is True, not an integer"),
        ({"category_id": [1]}, r"category_id is \[1\], not an integer"),
        ({"image_id": 9, "category_id": 9}, "no detection is of an image and category of instances.json"),
    ],
)
def test_a_fault_of_a_detection_is_reported_with_its_place(write, change, message):
    write(instances=TWO, found=[FOUND[0] | change])
    with pytest.raises(DataError, match=message):
        score_coco("instances.json", "found.json")


@pytest.mark.parametrize(
    ("instances", "message"),
    [
        (annotated({"image_id": 9}, {}), r"annotations\[0\]: image_id is 9, which the file does not list"),
        (annotated({}, {"category_id": 9}), r"annotations\[1\]: category_id is 9, which the file does not list"),
        (annotated({}, {"image_id": None}), r"annotations\[1\]: image_id is None, not an integer"),
        (annotated({"area": -1}, {}), r"annotations\[0\]: area is -1, not a number of pixels"),
        (annotated({"area": "9"}, {}), "area is a text, not a number of pixels"),
        (annotated({"iscrowd": "0"}, {}), "iscrowd is '0', not 0 or 1"),
        (annotated({"iscrowd": 2}, {}), "iscrowd is 2, not 0 or 1"),
        (annotated({"bbox": [1, 2, 3]}, {}), r"annotations\[0\]: bbox is \[1, 2, 3\]"),
        (TWO | {"annotations": [3]}, r"annotations\[0\]: is no object"),
        (listed("images", {"id": 1}, {"id": 1}), r"images\[1\]: repeats the id 1"),
        (listed("images", {"id": 1}, {"id": 1.0}), r"images\[1\]: repeats the id 1"),
        (listed("images"), "lists no image, so there is nothing to score"),
        (listed("categories", "cat"), r"categories\[0\]: has no integer id"),
        (TWO | {"images": None}, "is no file of instances; it needs the lists images, annotations, categories"),
        ([], "is no file of instances"),
    ],
)
def test_a_fault_of_instances_is_reported_with_its_place(write, instances, message):
    write(instances=instances, found=[])
    with pytest.raises(DataError, match=message):
        score_coco("instances.json", "found.json")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[{"score": NaN}]', "found.json:1:12: is not JSON: .*; NaN is no number of JSON: leave out what has none"),
        ('[{"score": -Infinity}]', "; Infinity is no number of JSON"),
        ('[{"score": Infinity}]', "; Infinity is no number of JSON"),
        ("[", "found.json:1:2: is not JSON"),
        ("", "found.json:1:1: is not JSON"),
        ('"text"', "is no file of results; give a list of objects"),
        ("{}", "is no file of results; give a list of objects"),
        ("null", "is no file of results"),
        ("[[1]]", r"\[0\]: is no object"),
        ("[{}]", r"\[0\]: image_id is None, not an integer"),
    ],
)
def test_a_file_that_is_no_list_of_results_is_refused_with_its_place(write, tmp_path, content, message):
    write(instances=TWO)
    (tmp_path / "found.json").write_text(content)
    with pytest.raises(DataError, match=message):
        score_coco("instances.json", "found.json")


def outlined(outline, **sizes):
    """A truth and results of one object with an outline in place of a box."""
    own = {"id": 1, "image_id": 1, "category_id": 1, "area": 9, "segmentation": outline}
    truth = {"images": [{"id": 1, **sizes}], "categories": [{"id": 1, "name": "cat"}], "annotations": [own]}
    return truth, [{"image_id": 1, "category_id": 1, "score": 0.5, "segmentation": outline}]


SQUARE = [[1, 1, 9, 1, 9, 9, 1, 9]]
SIZES = {"height": 20, "width": 20}


@pytest.mark.parametrize(
    ("outline", "sizes", "message"),
    [
        (SQUARE, SIZES, None),
        ([*SQUARE, [11, 11, 15, 11, 15, 15]], SIZES, None),
        ({"size": [20, 20], "counts": [5, 10, 385]}, SIZES, None),
        ({"size": [20, 20], "counts": [5, 10, 385]}, {}, None),
        (SQUARE, {}, "image 1: has no height and width, which masks need"),
        (SQUARE, {"height": 20.5, "width": 20}, "has no height and width"),
        ([[1, 1, 9, 1]], SIZES, "image 1: segmentation: has no polygon of three corners or more"),
        ([["a"] * 6], SIZES, "segmentation: is no mask"),
        ({"size": [20, 20], "counts": [5, 10]}, SIZES, "image 1: segmentation: the runs of a mask cover 15 pixels"),
        ({"size": [20, 20], "counts": "é"}, SIZES, "segmentation: is no mask"),
        ({"counts": [400]}, SIZES, "segmentation: is no mask"),
        (7, SIZES, "segmentation: is no mask"),
    ],
)
def test_outlines_are_polygons_or_run_lengths(write, outline, sizes, message):
    truth, found = outlined(outline, **sizes)
    write(instances=truth, found=found)
    if message is None:
        assert values(score_coco("instances.json", "found.json", metrics=["AP"], intervals=False)) == pytest.approx([1])
    else:
        with pytest.raises(DataError, match=message):
            score_coco("instances.json", "found.json")


@pytest.mark.parametrize("shape", [None, "masks"])
def test_masks_without_scores_are_no_detections(write, shape):
    truth, found = outlined(SQUARE, **SIZES)
    write(instances=truth, found=found, unscored=[{k: v for k, v in found[0].items() if k != "score"}])
    with pytest.raises(DataError, match=r"unscored\.json: no result has a score; each detection needs its confidence"):
        score_coco("instances.json", ["found.json", "unscored.json"], shape=shape)


def test_masks_of_detections_without_outlines_cannot_be_scored(write):
    write(instances=TWO, found=FOUND)
    with pytest.raises(SpecError, match="not every object has a segmentation"):
        score_coco("instances.json", "found.json", shape="masks")


# Doors


@pytest.mark.parametrize("seed", [0, 1])
def test_stored_images_have_the_same_values_groups_and_comparison(write, seed):
    instances, found = draw(seed)
    write(instances=instances, a=as_boxes(found), b=as_boxes(found[::2]))
    memory, stored = (
        score_coco("instances.json", ["a.json", "b.json"], by=["license"], gates=["coco_ap > baseline"], store=store)
        for store in (None, MemoryStore())
    )
    rows, same = (each.results.aggregation.table().to_pylist() for each in (memory, stored))
    numbers = ("value", "low", "high", "worst", "best")
    for row, other in zip(rows, same, strict=True):
        assert [row[name] for name in numbers] == pytest.approx([other[name] for name in numbers], abs=1e-12)
        assert (row["by"], row["data"], row["n"]) == (other["by"], other["data"], other["n"])
    pairs, others = (each.facts()["comparison"]["pairs"] for each in (memory, stored))
    assert [pair["verdict"] for pair in pairs] == [pair["verdict"] for pair in others]
    assert [str(gate) for gate in memory.gates] == [str(gate) for gate in stored.gates]


def test_images_without_a_field_are_a_group_of_their_own(write):
    images = {1: {"light": "day"}, 2: {}}
    write(instances=coco(images, [(1, 1), (2, 1)]), found=FOUND)
    scores = score_coco("instances.json", "found.json", metrics=["AP"], by=["light"], intervals=False)
    assert [row["by"] for row in scores.facts()["metrics"]] == [{}, {"light": "day"}, {"light": None}]
    assert "instances.json: 1 image without 'light' are a group of their own" in scores.notes
    with pytest.raises(SpecError, match="no image has 'lihgt' \\(did you mean 'light'\\?\\)"):
        score_coco("instances.json", "found.json", by=["lihgt"])


def test_the_result_of_images_is_that_of_every_door(tmp_path: Path) -> None:
    truth, results = tmp_path / "truth.json", tmp_path / "mine.json"
    images = [{"id": n, "light": f"l{n}"} for n in range(60)]
    boxes = [{"id": n + 1, "image_id": n, "category_id": 1, "bbox": [0, 0, 9, 9], "area": 81} for n in range(60)]
    truth.write_text(json.dumps({"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "cat"}]}))
    answers = [{"image_id": box["image_id"], "category_id": 1, "bbox": box["bbox"], "score": 0.9} for box in boxes]
    results.write_text(json.dumps(answers))
    scores = score_coco(truth, results, metrics=["AP50"], gates=["coco_ap50 >= 0.9"])
    assert (scores["coco_ap50"].value, scores["coco_ap50"].n) == (1.0, 60)
    assert (scores.passed, [gate.subject for gate in scores.gates]) == (True, ["mine"])
    saved = scores.save(MemoryStore(), "kept").aggregation
    assert saved is not None
    assert saved.table()["value"].to_pylist() == [1.0]
    with pytest.raises(SpecError, match=r"by='light': 60 groups in 60 rows; .* or give groups=60 to see all"):
        score_coco(truth, results, metrics=["AP50"], by=["light"])
