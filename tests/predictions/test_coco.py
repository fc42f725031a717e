"""Files of COCO and LVIS: the values of pycocotools, the rules of lvis, and faults with their places."""

from __future__ import annotations

import contextlib
import io
import json

import numpy as np
import pytest
from click.testing import CliRunner

from evaluand.cli import main
from evaluand.core.errors import DataError, SpecError
from evaluand.predictions.coco import score_coco

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


def lvis(images, annotations):
    return {
        "images": [{"id": id, "height": 50, "width": 50, **fields} for id, fields in images.items()],
        "annotations": [
            {"id": place, "image_id": image, "category_id": category, "bbox": BOX, "area": 400}
            for place, (image, category) in enumerate(annotations)
        ],
        "categories": [{"id": 1, "name": "cat", "frequency": "f"}, {"id": 2, "name": "yak", "frequency": "r"}],
    }


def detect(*found):
    return [
        {"image_id": image, "category_id": category, "score": score, "bbox": box}
        for image, category, score, box in found
    ]


FAR = [30, 30, 5, 5]


@pytest.mark.parametrize(
    ("fields", "precision"),
    [
        ({"neg_category_ids": []}, 1.0),  # yaks were not looked for in image 2: its detection does not count
        ({"neg_category_ids": [2]}, 0.5),  # there is none: the detection is wrong
    ],
)
def test_lvis_counts_only_categories_that_were_verified(write, fields, precision):
    verified = {"neg_category_ids": [], "not_exhaustive_category_ids": []}
    instances = lvis({1: verified, 2: verified | fields}, [(1, 2)])
    write(instances=instances, found=detect((2, 2, 0.9, BOX), (1, 2, 0.5, BOX)))
    scores = score_coco("instances.json", "found.json", metrics=["AP50", "APr"], intervals=False)
    assert values(scores)[0] == pytest.approx(precision)


@pytest.mark.parametrize(("incomplete", "precision"), [([], 0.5), ([1], 1.0)])
def test_lvis_ignores_surplus_finds_where_not_all_objects_are_annotated(write, incomplete, precision):
    fields = {"neg_category_ids": [], "not_exhaustive_category_ids": incomplete}
    write(instances=lvis({1: fields}, [(1, 1)]), found=detect((1, 1, 0.9, FAR), (1, 1, 0.5, BOX)))
    found = score_coco("instances.json", "found.json", metrics=["AP"], intervals=False)
    assert values(found) == pytest.approx([precision])


def test_lvis_splits_precision_by_frequency(write):
    fields = {"neg_category_ids": [], "not_exhaustive_category_ids": []}
    write(instances=lvis({1: fields}, [(1, 1), (1, 2)]), found=detect((1, 1, 0.9, BOX)))
    found = score_coco("instances.json", "found.json", metrics=["AP", "APr", "APc", "APf"], intervals=False)
    assert values(found) == pytest.approx([0.5, 0.0, np.nan, 1.0], nan_ok=True)


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
    assert [gate["passed"] for gate in facts["gates"]] == [False, False]


def test_detections_of_unknown_images_and_categories_are_left_out_and_counted(write):
    instances = lvis({1: {}}, [(1, 1)])
    write(instances=instances, found=detect((1, 1, 0.5, BOX), (8, 1, 0.5, BOX), (1, 5, 0.5, BOX)))
    scores = score_coco("instances.json", "found.json", metrics=["AP50"], intervals=False)
    assert values(scores) == pytest.approx([1.0])
    assert [note.split(": ")[1].split(" that")[0] for note in scores.notes[1:]] == [
        "1 detection of an image",
        "1 detection of a category",
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bbox": [1, 2, 3]}, r"found.json: \[0\]: bbox is \[1, 2, 3\]; give x, y, width and height"),
        ({"bbox": [1, 2, -3, 4]}, "width and height are 0 or more"),
        ({"score": None}, r"\[0\]: score is None, not a number"),
        ({"image_id": "1"}, "image_id is '1', not an integer"),
    ],
)
def test_a_fault_of_a_detection_is_reported_with_its_place(write, change, message):
    write(instances=lvis({1: {}}, [(1, 1)]), found=[detect((1, 1, 0.5, BOX))[0] | change])
    with pytest.raises(DataError, match=message):
        score_coco("instances.json", "found.json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"annotations": [{"image_id": 9, "category_id": 1, "bbox": BOX}]}, r"annotations\[0\]: image_id is 9, which"),
        ({"images": [{"id": 1}, {"id": 1}]}, r"images\[1\]: repeats the id 1"),
        ({"images": None}, "is no file of instances"),
        ({"categories": ["cat"]}, r"categories\[0\]: has no integer id"),
    ],
)
def test_a_fault_of_instances_is_reported_with_its_place(write, change, message):
    write(instances=lvis({1: {}}, [(1, 1)]) | change, found=[])
    with pytest.raises(DataError, match=message):
        score_coco("instances.json", "found.json")


def test_masks_of_detections_without_outlines_cannot_be_scored(write):
    write(instances=lvis({1: {}}, [(1, 1)]), found=detect((1, 1, 0.5, BOX)))
    with pytest.raises(SpecError, match="not every object has a segmentation"):
        score_coco("instances.json", "found.json", shape="masks")
