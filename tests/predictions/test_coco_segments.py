"""Segments: the rules of panopticapi over arrays of pixels, and files of semantic segmentation."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

from evaluand.aggregation.groups import summarise
from evaluand.core.errors import DataError, SpecError
from evaluand.evaluation.scorers.segmentation import Segmentation
from evaluand.metrics.names import make_metric
from evaluand.predictions.coco import score_coco

masks = pytest.importorskip("pycocotools.mask")

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation")  # of pycocotools with NumPy 2

CATEGORIES = {1: ("cat", 1), 2: ("sky", 0), 5: ("dog", 1), 9: ("grass", 0)}
SIDE = 20


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


PANOPTIC = [
    f"{kind}_quality{part}"
    for part in ("", "_things", "_stuff")
    for kind in ("panoptic", "segmentation", "recognition")
]


def panoptic(pairs, metrics):
    """The rows of metrics over pairs of true and predicted segments; an image is an array of ids and their segments."""
    classes = [Segmentation().score(segments(*found), segments(*truth)).columns["classes"] for truth, found in pairs]
    columns = {"classes": [json.dumps(each) for each in classes], "status": ["scored"] * len(pairs)}
    table = pa.table({"_index_": range(len(pairs)), **columns})
    return summarise([table], [make_metric(each) for each in metrics])


def segments(ids, info):
    return [
        {
            "label": CATEGORIES[each["category_id"]][0],
            "thing": bool(CATEGORIES[each["category_id"]][1]),
            "crowd": each.get("iscrowd", 0),
            "mask": rle(ids == each["id"]),
        }
        for each in info
    ]


def rle(pixels):
    found = masks.encode(np.asfortranarray(pixels, np.uint8))
    return {"size": [*pixels.shape], "counts": found["counts"].decode()}


def values(scores):
    return [np.nan if value is None else value for value in scores.results.aggregation.table()["value"].to_pylist()]


def draw(random, near=None):
    """Rectangles, one over the other; or an image near another one."""
    ids, category = np.zeros((SIDE, SIDE + 3), np.int64), {}
    if near is not None:
        for info in near[1]:
            if random.random() < 0.9:
                pixels = np.roll(near[0] == info["id"], random.integers(-2, 3, 2), (0, 1))
                ids[pixels] = new = int(random.integers(1, 2**24))
                category[new] = info["category_id"] if random.random() < 0.9 else 5
    for _ in range(random.integers(0, 8 if near is None else 2)):
        y, x, height, width = random.integers(1, SIDE, 4)
        ids[y : y + height, x : x + width] = new = int(random.integers(1, 2**24))
        category[new] = int(random.choice([*CATEGORIES]))
    info = [{"id": id, "category_id": each} for id, each in category.items() if (ids == id).any()]
    if near is None:
        info = [{**each, "iscrowd": int(random.random() < 0.2)} for each in info]
    return ids, info


# The rules, over arrays of pixels


def panoptic_reference(pairs):
    """PQ, SQ and RQ of all, things and stuff, as A. Kirillov et al. and panopticapi have them."""
    sums = {category: np.zeros(4) for category in CATEGORIES}  # overlap, matched, missed, extra
    for (truth, true_info), (found, found_info) in pairs:
        missed = {info["id"]: info for info in true_info if not info["iscrowd"]}
        for one in found_info:
            area, pixels = int((found == one["id"]).sum()), found == one["id"]
            void = int((pixels & (truth == 0)).sum())
            crowds = [i["id"] for i in true_info if i["iscrowd"] and i["category_id"] == one["category_id"]]
            ignored = void + (int((pixels & (truth == crowds[-1])).sum()) if crowds else 0)
            for id in [id for id, info in missed.items() if info["category_id"] == one["category_id"]]:
                both = int((pixels & (truth == id)).sum())
                overlap = both / (area - void + int((truth == id).sum()) - both)
                if overlap > 0.5:
                    sums[one["category_id"]] += [overlap, 1, 0, 0]
                    del missed[id]
                    break
            else:
                sums[one["category_id"]][3] += ignored / area <= 0.5
        for info in missed.values():
            sums[info["category_id"]][2] += 1
    for things in ({0, 1}, {1}, {0}):
        rows = [row for category, row in sums.items() if CATEGORIES[category][1] in things and row[1:].any()]
        table = np.array(rows).reshape(-1, 4)
        overlap, matched, missing, extra = table.T
        below = matched + (missing + extra) / 2
        quality = np.divide(overlap, matched, out=np.zeros_like(overlap), where=matched > 0)
        for each in (overlap / below, quality, matched / below):
            yield each.mean() if len(each) else np.nan


def iou_reference(pairs):
    """The mean over categories with truth, from the categories of all pixels that are not void."""
    truth, found = (np.concatenate([paint(*pair[side]).ravel() for pair in pairs]) for side in (0, 1))
    truth, found = truth[truth > 0], found[truth > 0]
    return np.mean(
        [((truth == c) & (found == c)).sum() / ((truth == c) | (found == c)).sum() for c in np.unique(truth)]
    )


def paint(ids, info):
    category = {each["id"]: each["category_id"] for each in info} | {0: 0}
    return np.vectorize(category.get)(ids)


@pytest.mark.parametrize("seed", [*range(1), *(pytest.param(i, marks=pytest.mark.slow) for i in range(1, 4))])
def test_segments_have_the_values_of_the_reference(seed):
    random = np.random.default_rng(seed)
    truth = [draw(random) for _ in range(3)]
    pairs = [(each, draw(random, near=each)) for each in truth]
    found = [row.value for row in panoptic(pairs, [*PANOPTIC, "mean_iou"])]
    assert found == pytest.approx([*panoptic_reference(pairs), iou_reference(pairs)], abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("seed", range(2))
def test_semantic_results_have_the_iou_of_the_reference(folder, seed):
    random = np.random.default_rng(seed)
    truth = {id: draw(random) for id in (1, 2)}
    found = {id: draw(random, near=each) for id, each in truth.items()}
    (folder / "truth.json").write_text(json.dumps(semantic_truth(regions(truth))))
    (folder / "found.json").write_text(json.dumps(regions(found)))
    scores = score_coco("truth.json", "found.json", intervals=False)
    assert values(scores) == pytest.approx([iou_reference([(truth[id], found[id]) for id in truth])])
    assert scores.notes[0] == "scored semantic segmentation"


def regions(images):
    """A mask of each image and category, some compressed and some not."""
    found = []
    for id, image in images.items():
        painted = paint(*image)
        found += [
            {"image_id": id, "category_id": category, "segmentation": rle(painted == category)}
            for category in np.unique(painted[painted > 0]).tolist()
        ]
    return found


def semantic_truth(annotations):
    images = sorted({each["image_id"] for each in annotations})
    return {
        "images": [{"id": id} for id in images],
        "annotations": annotations,
        "categories": [{"id": id, "name": name} for id, (name, _) in CATEGORIES.items()],
    }


# One rule each


def strip(*segments, crowd=(), length=8):
    """An image of 1 × 8 pixels: (category, start, stop) of each segment; ids from 1."""
    ids = np.zeros((1, length), np.int64)
    for id, (_, start, stop) in enumerate(segments, 1):
        ids[0, start:stop] = id
    return ids, [{"id": id, "category_id": c, "iscrowd": int(id in crowd)} for id, (c, _, _) in enumerate(segments, 1)]


@pytest.mark.parametrize(
    ("truth", "found", "quality"),
    [
        (strip((1, 0, 4)), strip((1, 0, 3)), 3 / 4),
        (strip((1, 0, 4), (2, 4, 8)), strip((1, 0, 2), (2, 4, 8)), (0 + 1) / 2),  # an overlap of one half is no match
        (strip((1, 0, 4), (2, 4, 8)), strip((1, 4, 8), (2, 0, 4)), 0),  # other labels
        (strip((1, 0, 3)), strip((1, 0, 3), (1, 3, 8)), 1),  # wrong, but in void
        (strip((1, 0, 3)), strip((1, 0, 8)), 1),  # void is no part of the union
        (strip((1, 0, 3), (1, 3, 8), crowd=[2]), strip((1, 0, 3), (1, 4, 7)), 1),  # in a crowd of its class
        (strip((1, 0, 3), (2, 3, 8), crowd=[2]), strip((1, 0, 3), (1, 4, 7)), 1 / 1.5),  # in a crowd of another class
        (strip((1, 0, 3), (2, 3, 8), crowd=[2]), strip((1, 0, 3)), 1),  # a crowd need not be found
    ],
)
def test_rules_of_panoptic_quality(truth, found, quality):
    [row] = panoptic([(truth, found)], ["panoptic_quality"])
    assert row.value == pytest.approx(quality)


def test_a_part_without_segments_is_undefined_with_its_reason():
    [row] = panoptic([(strip((1, 0, 4)), strip((1, 0, 4)))], ["segmentation_quality_stuff"])
    assert (np.isnan(row.value), row.reason) == (True, "no image has a segment of stuff that counts")


# Faults of files


def test_panoptic_files_are_refused_with_the_scorer_that_reads_segments(folder):
    document = semantic_truth([{"image_id": 1, "file_name": "1.png", "segments_info": [{"id": 1, "category_id": 1}]}])
    (folder / "truth.json").write_text(json.dumps(document))
    with pytest.raises(SpecError, match=r"truth\.json has panoptic segments in PNG files; give them as run lengths to"):
        score_coco("truth.json", "found.json")


def region(image, category, counts):
    return {"image_id": image, "category_id": category, "segmentation": {"size": [1, 8], "counts": counts}}


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ([region(1, 2, [0, 4, 4]) | {"segmentation": None}], r"found.json: \[0\]: has no segmentation"),
        ([region(1, 2, [0, 4])], "found.json: image 1: segmentation: "),
        (["region"], "is no object"),
    ],
)
def test_a_fault_of_semantic_results_is_reported_with_its_place(folder, found, message):
    (folder / "truth.json").write_text(json.dumps(semantic_truth([region(1, 2, [0, 4, 4])])))
    (folder / "found.json").write_text(json.dumps(found))
    with pytest.raises(DataError, match=message):
        score_coco("truth.json", "found.json", shape="semantic")


def test_images_without_regions_are_missed_and_counted_and_empty_regions_are_none(folder):
    (folder / "truth.json").write_text(json.dumps(semantic_truth([region(1, 2, [0, 8]), region(2, 2, [0, 8])])))
    (folder / "found.json").write_text(json.dumps([region(1, 2, [0, 8]), region(1, 9, [8])]))
    scores = score_coco("truth.json", "found.json")
    assert values(scores) == [0.5]
    assert scores.notes[1:] == ["found.json: 1 image without any region: all true pixels are missed"]


def test_results_without_any_entry_are_scored_by_masks_where_the_truth_has_no_boxes(folder):
    document = semantic_truth([region(1, 2, [0, 8]) | {"area": 8}])
    (folder / "truth.json").write_text(json.dumps(document))
    (folder / "found.json").write_text("[]")
    assert values(score_coco("truth.json", "found.json", metrics=["AP"], intervals=False)) == [0.0]
    with pytest.raises(SpecError, match=r"truth\.json: not every object has a bbox, so boxes cannot be scored"):
        score_coco("truth.json", "found.json", shape="boxes")
