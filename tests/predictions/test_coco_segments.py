"""Panoptic and semantic files of COCO: the rules of panopticapi over arrays of pixels, and faults with their places."""

from __future__ import annotations

import json
import struct
import zlib

import numpy as np
import pytest
from click.testing import CliRunner

from evaluand.cli import main
from evaluand.core.errors import DataError, SpecError
from evaluand.predictions.coco import score_coco

Image = pytest.importorskip("PIL.Image")
masks = pytest.importorskip("pycocotools.mask")

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation")  # of pycocotools with NumPy 2

CATEGORIES = {1: ("cat", 1), 2: ("sky", 0), 5: ("dog", 1), 9: ("grass", 0)}
SIDE = 20


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder, name, images, **more):
    """A document with its PNG files; an image is an array of ids and a list of segments."""
    (folder / name).mkdir(exist_ok=True)
    annotations = []
    for id, (ids, info) in images.items():
        colours = np.stack([ids % 256, ids // 256 % 256, ids // 65536], axis=2).astype(np.uint8)
        Image.fromarray(colours).save(folder / name / f"{id}.png")
        annotations.append({"image_id": id, "file_name": f"{id}.png", "segments_info": info})
    categories = [{"id": id, "name": name, "isthing": thing} for id, (name, thing) in CATEGORIES.items()]
    listed = [{"id": id, "height": len(ids), "width": len(ids[0]), "light": id % 2} for id, (ids, _) in images.items()]
    document = {"images": listed, "annotations": annotations, "categories": categories} | more
    (folder / f"{name}.json").write_text(json.dumps(document))
    return document


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
def test_panoptic_files_have_the_values_of_the_reference(folder, seed):
    random = np.random.default_rng(seed)
    truth = {id: draw(random) for id in (7, 3, 5)}
    found = {id: draw(random, near=each) for id, each in truth.items()}
    write(folder, "truth", truth)
    write(folder, "found", found)
    pairs = [(truth[id], found[id]) for id in truth]
    expected = [*panoptic_reference(pairs), iou_reference(pairs)]
    scores = score_coco("truth.json", "found.json", intervals=False)
    assert values(scores) == pytest.approx(expected, abs=1e-12, nan_ok=True)


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
        for category in np.unique(painted[painted > 0]).tolist():
            pixels = masks.encode(np.asfortranarray(painted == category, np.uint8))
            mask = {"size": [*painted.shape], "counts": pixels["counts"].decode()}
            found.append({"image_id": id, "category_id": category, "segmentation": mask})
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
def test_rules_of_panoptic_quality(folder, truth, found, quality):
    write(folder, "truth", {1: truth})
    write(folder, "found", {1: found})
    assert values(score_coco("truth.json", "found.json", metrics=["pq"])) == pytest.approx([quality])


def test_a_part_without_segments_is_undefined_with_its_reason(folder):
    for name in ("truth", "found"):
        write(folder, name, {1: strip((1, 0, 4))})
    [row] = score_coco("truth.json", "found.json", metrics=["SQst"]).results.aggregation.table().to_pylist()
    assert (row["value"], row["reason"]) == (None, "no image has a segment of stuff that counts")


def test_the_command_scores_segments_by_group_and_gate(folder):
    random = np.random.default_rng(0)
    truth = {id: draw(random) for id in range(4)}
    write(folder, "truth", truth)
    for name in "ab":
        write(folder, name, {id: draw(random, near=each) for id, each in truth.items()})
    arguments = "score --coco truth.json a.json b.json --metric PQ --by light --gate panoptic_quality>=0.99 --json"
    result = CliRunner().invoke(main, arguments.split())
    assert result.exit_code == 3, result.output
    facts = json.loads(result.stdout)
    assert [(row["task"], row["by"]) for row in facts["metrics"]] == [
        (task, by) for task in "ab" for by in ({}, {"light": "0"}, {"light": "1"})
    ]
    assert facts["metrics"][0]["low"] < facts["metrics"][0]["value"] < facts["metrics"][0]["high"]


def test_files_may_be_next_to_the_document(folder):
    write(folder, "truth", {1: strip((1, 0, 4))})
    for file in (folder / "truth").iterdir():
        file.rename(folder / file.name)
    (folder / "truth").rmdir()
    (folder / "found.json").write_text((folder / "truth.json").read_text())
    assert values(score_coco("truth.json", "found.json", metrics=["PQ", "mIoU"])) == [1.0, 1.0]


def test_images_that_the_truth_does_not_list_are_left_out(folder):
    write(folder, "truth", {1: strip((1, 0, 4))})
    write(folder, "found", {1: strip((1, 0, 4)), 2: strip((2, 0, 4))})
    scores = score_coco("truth.json", "found.json", metrics=["PQ"])
    assert values(scores) == [1.0]
    assert scores.notes[1:] == ["found.json: 1 image that truth.json does not list are left out"]


# Faults


def change(part, **fields):
    """A change of the only entry of a document, or of its only segment."""

    def apply(document):
        entry = document["annotations"][0]
        (entry if part == "entry" else entry["segments_info"][0]).update(fields)

    return apply


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            change("entry", file_name="../truth/1.png"),
            r"annotations\[0\]: file_name is '../truth/1.png', which is not in",
        ),
        (change("entry", file_name="/etc/passwd"), "file_name is '/etc/passwd', which is not in the folder found"),
        (change("entry", file_name="a\0b.png"), "which is not in the folder"),
        (change("entry", file_name=None), "file_name is None, not the name of a PNG file"),
        (change("entry", file_name="2.png"), "2.png: no such file"),
        (change("entry", image_id="1"), "image_id is '1', not an integer"),
        (change("entry", image_id=4), "has no segments of image 1; give every image of truth.json"),
        (change("entry", segments_info=[]), "1.png has pixels of the segment 1, which segments_info does not list"),
        (change("segment", id=0), r"segments_info\[0\]: id is 0; give red"),
        (change("segment", category_id=4), "category_id is 4, which the truth does not list"),
        (lambda document: document["annotations"].append(document["annotations"][0]), r"\[1\]: repeats the image 1"),
        (
            lambda document: document["annotations"][0]["segments_info"].append({"id": 8, "category_id": 1}),
            r"segments_info\[1\]: 1.png has no pixel of the segment 8",
        ),
    ],
)
def test_a_fault_of_a_panoptic_document_is_reported_with_its_place(folder, damage, message):
    write(folder, "truth", {1: strip((1, 0, 4))})
    document = write(folder, "found", {1: strip((1, 0, 4))})
    damage(document)
    (folder / "found.json").write_text(json.dumps(document))
    with pytest.raises(DataError, match=message):
        score_coco("truth.json", "found.json")


def test_a_link_out_of_the_folder_is_not_followed(folder):
    for name in ("truth", "found"):
        write(folder, name, {1: strip((1, 0, 4))})
    (folder / "found" / "1.png").rename(folder / "secret.png")
    (folder / "found" / "1.png").symlink_to(folder / "secret.png")
    with pytest.raises(DataError, match=r"file_name is '1\.png', which is not in the folder found"):
        score_coco("truth.json", "found.json")


def png(width, height, data=b""):
    """A PNG file that claims a size."""

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (png(9000, 9000), "has 9000 × 9000 pixels, more than 67108864"),
        (png(10000, 10000), "has more than 67108864 pixels"),
        (png(100000, 100000), "has more than 67108864 pixels"),
        (png(8, 1), "is no readable PNG file"),
        (b"GIF89a", "is no readable PNG file"),
    ],
    ids=["large", "larger", "huge", "cut", "other"],
)
def test_an_image_that_is_too_large_or_damaged_is_refused(folder, content, message):
    document = write(folder, "truth", {1: strip((1, 0, 4))})
    (folder / "truth" / "1.png").write_bytes(content)
    for name in ("truth", "found"):  # without the size of the image
        (folder / f"{name}.json").write_text(json.dumps(document | {"images": []}))
    with pytest.raises(DataError, match=message):
        score_coco("truth.json", "found.json")


def test_an_image_of_another_size_or_mode_is_refused(folder):
    write(folder, "truth", {1: strip((1, 0, 4))})
    write(folder, "found", {1: strip((1, 0, 4), length=9)})
    with pytest.raises(DataError, match="has 1 × 9 pixels, but the image has 1 × 8"):
        score_coco("truth.json", "found.json")
    Image.fromarray(np.zeros((1, 8), np.uint8)).save(folder / "found" / "1.png")
    with pytest.raises(DataError, match="has the mode L; give red, green and blue"):
        score_coco("truth.json", "found.json")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shape": "masks"}, "truth.json has panoptic segments, which are scored as they are; remove shape 'masks'"),
        ({"metrics": ["AP"]}, "panoptic segmentation has no metric 'AP'"),
    ],
)
def test_panoptic_files_have_no_shape_and_no_metric_of_boxes(folder, arguments, message):
    for name in ("truth", "found"):
        write(folder, name, {1: strip((1, 0, 4))})
    with pytest.raises(SpecError, match=message):
        score_coco("truth.json", "found.json", **arguments)


def region(image, category, counts):
    return {"image_id": image, "category_id": category, "segmentation": {"size": [1, 8], "counts": counts}}


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ([region(1, 2, [0, 4, 4]) | {"segmentation": None}], r"found.json: \[0\]: has no segmentation"),
        ([region(1, 2, [0, 4])], "found.json: image 1: the segmentation"),
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
    with pytest.raises(DataError, match=r"truth\.json: image 1: has no height and width, which masks need"):
        score_coco("truth.json", "found.json", shape="masks")
    document["images"][0] |= {"height": 1, "width": 8}
    (folder / "truth.json").write_text(json.dumps(document))
    assert values(score_coco("truth.json", "found.json", metrics=["AP"], intervals=False)) == [0.0]
    with pytest.raises(SpecError, match=r"truth\.json: not every object has a bbox, so boxes cannot be scored"):
        score_coco("truth.json", "found.json", shape="boxes")
