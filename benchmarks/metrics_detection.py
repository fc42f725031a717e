"""Average precision of object detection: from Arrow columns and COCO's files, by a loop over detections, and by others.

The loop is written here in the style of the code that is published with PASCAL VOC and D3M's problem schema: boxes as
lists, sorted by confidence, each compared with all true boxes of its image at once by NumPy. pycocotools is given what
it reads as Python objects; only its `evaluate` and `accumulate` are timed, at one threshold and one range of areas.
From files all is timed: reading, the twelve numbers and, on our side, their intervals.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import json
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from metrics import OURS, Case, Peer

LOOP, COCO, FASTER = "loop", "pycocotools", "faster-coco-eval"
PEERS = {
    FASTER: Peer("faster-coco-eval==1.8.0", "faster_coco_eval"),
    LOOP: Peer(None, "numpy"),
    COCO: Peer("pycocotools==2.0.11", "pycocotools.cocoeval"),
}
ROWS = 100_000


def _data(n: int, per_image: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """As many true boxes as detections, of which two thirds are near one: image, corners, detected corners, confidence.

    Coordinates are whole, in images of 640 × 480; no two confidences are equal.
    """
    random = np.random.default_rng(0)
    image = np.repeat(np.arange(n // per_image), per_image)
    begin = np.stack([random.integers(0, 560, n), random.integers(0, 400, n)])
    truth = np.concatenate([begin, begin + random.integers(20, 80, (2, n))])
    other = np.stack([random.integers(0, 560, n), random.integers(0, 400, n)])
    wrong = np.concatenate([other, other + random.integers(20, 80, (2, n))])
    detected = np.where(random.random(n) < 1 / 3, wrong, truth + random.integers(-6, 7, (4, n)))
    return image, truth, detected, random.permutation(n) / n


def _ours(definition: str, per_image: int, n: int) -> Callable[[], float]:
    import pyarrow as pa

    from evaluand.interop.d3m.metrics import object_detection_ap

    image, truth, detected, confidence = _data(n, per_image)
    names = pa.array([f"img_{number:06d}.png" for number in image.tolist()])

    def table(corners: np.ndarray) -> Any:
        columns = zip(("x_min", "y_min", "x_max", "y_max"), corners, strict=True)
        return pa.table({"image": names} | {name: pa.array(column) for name, column in columns})

    truths = table(truth)
    detections = table(detected).append_column("confidence", pa.array(confidence))
    order = np.random.default_rng(1).permutation(n)
    detections = detections.take(pa.array(order))
    return lambda: object_detection_ap(detections, truths, dialect=definition).ap


def _loop(per_image: int, n: int) -> Callable[[], float]:
    image, truth, detected, confidence = _data(n, per_image)
    truths = [[f"img_{i:06d}.png", *box] for i, box in zip(image.tolist(), truth.T.tolist(), strict=True)]
    detections = [
        [f"img_{i:06d}.png", *box, sure]
        for i, box, sure in zip(image.tolist(), detected.T.tolist(), confidence.tolist(), strict=True)
    ]
    return lambda: _one_by_one(detections, truths)


def _one_by_one(detections: list[list[Any]], truths: list[list[Any]]) -> float:
    by_image: dict[str, list[list[float]]] = {}
    for name, *box in truths:
        by_image.setdefault(name, []).append(box)
    boxes = {name: np.array(each, np.float64) for name, each in by_image.items()}
    taken = {name: np.zeros(len(each), np.bool_) for name, each in by_image.items()}
    order = np.argsort([-row[5] for row in detections], kind="stable")
    right = np.zeros(len(detections))
    for place, row in enumerate(order.tolist()):
        name, x_min, y_min, x_max, y_max, _ = detections[row]
        there = boxes[name]
        width = np.maximum(np.minimum(there[:, 2], x_max) - np.maximum(there[:, 0], x_min) + 1, 0)
        height = np.maximum(np.minimum(there[:, 3], y_max) - np.maximum(there[:, 1], y_min) + 1, 0)
        both = width * height
        areas = (there[:, 2] - there[:, 0] + 1) * (there[:, 3] - there[:, 1] + 1)
        overlap = both / ((x_max - x_min + 1) * (y_max - y_min + 1) + areas - both)
        best = np.argmax(overlap)
        if overlap[best] > 0.5 and not taken[name][best]:
            taken[name][best], right[place] = True, 1
    found = np.cumsum(right)
    recall = np.concatenate([[0.0], found / len(truths), [1.0]])
    precision = np.concatenate([[0.0], found / np.arange(1, len(found) + 1), [0.0]])
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    return float((np.diff(recall) * envelope[1:]).sum())


def _coco(per_image: int, n: int, *, whole: bool = False) -> Callable[[], float]:
    from pycocotools import coco, cocoeval

    image, truth, detected, confidence = _data(n, per_image)

    def boxes(corners: np.ndarray) -> list[dict[str, Any]]:
        sizes = np.concatenate([corners[:2], corners[2:] - corners[:2]]).T.tolist()
        return [
            {"id": i + 1, "image_id": im, "category_id": 1, "bbox": box, "area": box[2] * box[3], "iscrowd": 0}
            for i, (im, box) in enumerate(zip(image.tolist(), sizes, strict=True))
        ]

    truths = boxes(truth)
    detections = [{**box, "score": sure} for box, sure in zip(boxes(detected), confidence.tolist(), strict=True)]
    images = [{"id": int(i)} for i in np.unique(image)]

    def read() -> Any:
        there = coco.COCO()
        there.dataset = {"images": images, "categories": [{"id": 1}], "annotations": truths, "info": {}}
        there.createIndex()
        judged = cocoeval.COCOeval(there, there.loadRes([dict(box) for box in detections]), "bbox")
        judged.params.iouThrs, judged.params.maxDets = np.array([0.5]), [100]
        judged.params.areaRng, judged.params.areaRngLbl = [[0, 1e10]], ["all"]
        return judged

    with contextlib.redirect_stdout(io.StringIO()):
        held = read()

    def work() -> float:
        with contextlib.redirect_stdout(io.StringIO()):
            judged = read() if whole else held
            judged.evaluate()
            judged.accumulate()
        return float(judged.eval["precision"].mean())

    return work


def _cases(per_image: int, times: float) -> list[Case]:
    loop, coco = partial(_loop, per_image), partial(_coco, per_image)
    targets = {LOOP: times, COCO: times}
    ours = {name: partial(_ours, name, per_image) for name in ("standard", "3.1.1", "coco")}
    what = f"{per_image} boxes per image"
    return [
        Case(f"objectDetectionAP, {what}", {OURS: ours["3.1.1"], LOOP: loop, COCO: coco}, ROWS, targets, (OURS, LOOP)),
        Case(f"definition coco, {what}", {OURS: ours["coco"], COCO: coco}, ROWS, targets, (OURS, COCO)),
        Case(f"  with its index, {what}", {OURS: ours["coco"], COCO: partial(coco, whole=True)}, ROWS, {}),
        Case(f"definition standard, {what}", {OURS: ours["standard"], LOOP: loop, COCO: coco}, ROWS, targets),
    ]


def _files(per_image: int, n: int) -> tuple[Path, Path]:
    """Instances of 80 categories, and as many results, in a folder that goes with the process."""
    image, truth, detected, confidence = _data(n, per_image)
    category = np.random.default_rng(2).integers(1, 81, n).tolist()
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)

    def boxes(corners: np.ndarray) -> list[dict[str, Any]]:
        sizes = np.concatenate([corners[:2], np.maximum(corners[2:] - corners[:2], 0)]).T.tolist()
        return [
            {"image_id": im, "category_id": kind, "bbox": box, "area": box[2] * box[3], "iscrowd": 0}
            for im, kind, box in zip(image.tolist(), category, sizes, strict=True)
        ]

    instances, results = Path(folder.name, "instances.json"), Path(folder.name, "results.json")
    annotations = [{"id": place, **box} for place, box in enumerate(boxes(truth), 1)]
    images = [{"id": int(i), "width": 640, "height": 480} for i in np.unique(image)]
    names = [{"id": place, "name": f"class {place}"} for place in range(1, 81)]
    instances.write_text(json.dumps({"images": images, "categories": names, "annotations": annotations}))
    found = [{**box, "score": sure} for box, sure in zip(boxes(detected), confidence.tolist(), strict=True)]
    results.write_text(json.dumps(found))
    return instances, results


def _ours_of_files(per_image: int, n: int) -> Callable[[], float]:
    from evaluand.predictions.coco import score_coco

    files = _files(per_image, n)
    return lambda: float(score_coco(*files).results.aggregation.table()["value"][0].as_py())


def _theirs_of_files(module: str, per_image: int, n: int) -> Callable[[], float]:
    if module == "pycocotools":
        from pycocotools import coco, cocoeval

        index, evaluation = coco.COCO, cocoeval.COCOeval
    else:
        import faster_coco_eval

        index, evaluation = faster_coco_eval.COCO, faster_coco_eval.COCOeval_faster
    instances, results = map(str, _files(per_image, n))

    def work() -> float:
        with contextlib.redirect_stdout(io.StringIO()):
            truth = index(instances)
            judged = evaluation(truth, truth.loadRes(results), "bbox")
            judged.evaluate()
            judged.accumulate()
            judged.summarize()
        return float(judged.stats[0])

    return work


def _case_of_files(per_image: int, n: int) -> Case:
    works = {OURS: partial(_ours_of_files, per_image), COCO: partial(_theirs_of_files, "pycocotools", per_image)}
    works[FASTER] = partial(_theirs_of_files, "faster_coco_eval", per_image)
    return Case(f"COCO from files, {per_image} boxes per image", works, n, {COCO: 3}, (OURS, COCO, FASTER))


CASES = [*_cases(10, 10), *_cases(100, 3), _case_of_files(10, 50_000), _case_of_files(100, 500_000)]
