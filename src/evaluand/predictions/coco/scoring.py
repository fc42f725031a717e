"""`score_coco`: results of detectors and segmenters scored against the truth, compared, and checked by gates."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from evaluand.aggregation.aggregator import Measure
from evaluand.comparison.rule import Gate
from evaluand.core import identity
from evaluand.core.errors import DataError, Fault, SpecError, alternatives, plural
from evaluand.data.dataset import Dataset
from evaluand.evaluation.scorer import Scorer
from evaluand.evaluation.scorers.detection import Detection
from evaluand.evaluation.scorers.segmentation import Segmentation
from evaluand.metrics.detection.masks import areas_of, read_mask
from evaluand.metrics.names import make_metric
from evaluand.predictions.coco.files import (
    Detections,
    Instances,
    Shape,
    read_document,
    read_instances,
    read_regions,
    read_results,
    results_of,
)
from evaluand.predictions.coco.panoptic import is_panoptic, read_panoptic
from evaluand.predictions.columns.gates import check_system_gates
from evaluand.predictions.columns.scoring import SystemScores
from evaluand.predictions.steps import Steps
from evaluand.run.tasks.recorded import RecordedTask
from evaluand.store.store import MemoryStore, Store

NAMES: Final = {
    **{f"AP{more}": f"coco_ap{more}" for more in ("", "50", "75")},
    **{f"AP{size[0]}": f"coco_ap_{size}" for size in ("small", "medium", "large")},
    **{f"AR{most}": f"coco_ar_{most}" for most in (1, 10, 100)},
    **{f"AR{size[0]}": f"coco_ar_{size}" for size in ("small", "medium", "large")},
}
"""The twelve numbers of pycocotools, in its order: the name there and here."""

_MEAN: Final = {"map": "ap", "mean_average_precision": "ap", "map50": "ap50", "map75": "ap75"}
"""Names under which others report COCO's averages over classes."""
_LVIS: Final = ("AP", "AP50", "AP75", "APs", "APm", "APl", "APr", "APc", "APf", "AR300", "ARs", "ARm", "ARl")
_LVIS_MOST: Final = 300


_PANOPTIC: Final = {
    **{
        f"{name}Q": f"{kind}_quality" for name, kind in (("P", "panoptic"), ("S", "segmentation"), ("R", "recognition"))
    },
    **{
        f"{name}Q{part[:2]}": f"{kind}_quality_{part}"
        for part in ("things", "stuff")
        for name, kind in (("P", "panoptic"), ("S", "segmentation"), ("R", "recognition"))
    },
    "mIoU": "mean_iou",
}
"""The nine numbers of panopticapi, and the mean over categories of what their segments share."""

_SEMANTIC: Final = {"mIoU": "mean_iou"}


@dataclass(frozen=True)
class _Files:
    """What the files say, as an experiment takes it.

    Attributes:
        path: the file of the truth.
        shape: what is scored, in words.
        scorer: the name of the scorer, and the scorer.
        images: id → fields.
        expected: image id → the true objects.
        systems: the name of each system → image id → its objects.
        metrics: the metrics to compute.
        notes: what was left out.
    """

    path: str
    shape: str
    scorer: tuple[str, Scorer]
    images: Mapping[int, Mapping[str, Any]]
    expected: Callable[[int], Sequence[Any]]
    systems: Mapping[str, Callable[[int], Sequence[Any]]]
    metrics: Sequence[Any]
    notes: Sequence[str]


def score_coco(
    instances: str | os.PathLike[str],
    results: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    metrics: Sequence[str] = (),
    by: Sequence[str] = (),
    gates: Sequence[str] = (),
    shape: Shape | None = None,
    intervals: bool = True,
    store: Store | None = None,
    name: str = "coco",
    origin: Mapping[str, Any] | None = None,
) -> SystemScores:
    """Scores detections or segmentations by the metrics of COCO, or of LVIS where the instances are its.

    The values equal those of pycocotools, lvis and panopticapi. Intervals resample images.

    Args:
        instances: the file with the true objects, regions or segments.
        results: the files with what systems found; the first is the baseline.
        metrics: `AP`, `AP50`, `APs`, `AR100` …; of LVIS also `APr`, `APc`, `APf` and `AR300`; of panoptic files `PQ`,
            `SQth`, `RQst` … and `mIoU`; of semantic segmentation `mIoU`. All if empty.
        by: fields of images to group by.
        gates: rules such as `coco_ap >= 0.4`.
        shape: `boxes`, `masks` or `semantic`. Masks where every object and every detection has an outline and no box;
            semantic where moreover no result has a score.
        intervals: whether to compute intervals of values.
        store: where the images, detections and values are stored; None is memory.
        name: what they are called.

    Raises:
        SpecError: there is no such metric, or the results have no such shape.
        DataError: a file is not what it should be; each fault with its place.
    """
    paths = [results] if isinstance(results, str | os.PathLike) else [*results]
    if not paths:
        raise SpecError("name at least one file of results")
    parsed = [Gate.parse(gate) for gate in gates]
    named = {_name(path): path for path in paths}
    if len(named) < len(paths):
        raise SpecError("two files of results have the same name; rename one")
    files = _read_files(instances, named, shape, metrics)
    scorer, grades = files.scorer
    measures = [
        Measure(
            scorer, metric if intervals else replace(metric, confidence=None), tuple(by), ("difference",) if by else ()
        )
        for metric in files.metrics
    ]
    experiment = Steps(
        name,
        _dataset(files, by),
        {system: _task(system, found, files.images) for system, found in files.systems.items()},
        {scorer: grades},
        measures,
        origin={**(origin or {})},
    )
    stored = experiment.run(store or MemoryStore())
    return SystemScores(
        systems=[*files.systems],
        results=stored,
        gates=check_system_gates(parsed, stored, measures),
        notes=[f"scored {files.shape}", *files.notes],
    )


def _read_files(
    path: str | os.PathLike[str],
    named: Mapping[str, str | os.PathLike[str]],
    shape: Shape | None,
    metrics: Sequence[str],
) -> _Files:
    document = read_document(path)
    found = {name: read_document(each) for name, each in named.items()}
    if is_panoptic(document):
        if shape is not None:
            raise SpecError(f"{path} has panoptic segments, which are scored as they are; remove shape {shape!r}")
        return _panoptic_files(path, document, named, found, metrics)
    entries = {name: results_of(named[name], each) for name, each in found.items()}
    truth = read_instances(path, document)
    if shape == "semantic" or (shape is None and all(map(_is_semantic, entries.values()))):
        return _semantic_files(
            truth, {name: read_regions(named[name], truth, each) for name, each in entries.items()}, metrics
        )
    systems = {name: read_results(named[name], truth, each) for name, each in entries.items()}
    return _object_files(truth, systems, _shape(shape, truth, systems), metrics)


def _object_files(truth: Instances, systems: Mapping[str, Detections], shape: Shape, metrics: Sequence[str]) -> _Files:
    return _Files(
        truth.path,
        shape,
        ("objects", Detection()),
        truth.images,
        partial(truth.expected, shape=shape),
        {name: partial(found.found, instances=truth, shape=shape) for name, found in systems.items()},
        [_metric(each, truth) for each in metrics or (_LVIS if truth.is_lvis else NAMES)],
        [note for each in systems.values() for note in each.notes],
    )


def _semantic_files(truth: Instances, systems: Mapping[str, Detections], metrics: Sequence[str]) -> _Files:
    notes = [note for each in systems.values() for note in each.notes]
    for each in systems.values():
        lacking = sum(bool(truth.objects.get(id)) and not each.by_image.get(id) for id in truth.images)
        if lacking:
            notes.append(f"{each.path}: {plural(lacking, 'image')} without any region: all true pixels are missed")
    return _Files(
        truth.path,
        "semantic segmentation",
        ("segments", Segmentation()),
        truth.images,
        partial(_regions, truth, truth.path, truth.objects),
        {name: partial(_regions, truth, found.path, found.by_image) for name, found in systems.items()},
        [_segment_metric(each, _SEMANTIC, "semantic segmentation") for each in metrics or _SEMANTIC],
        notes,
    )


def _panoptic_files(
    path: str | os.PathLike[str],
    document: Any,
    named: Mapping[str, str | os.PathLike[str]],
    found: Mapping[str, Any],
    metrics: Sequence[str],
) -> _Files:
    chosen = [_segment_metric(each, _PANOPTIC, "panoptic segmentation") for each in metrics or _PANOPTIC]
    truth = read_panoptic(path, document)
    systems = {name: read_panoptic(each, found[name], truth) for name, each in named.items()}
    return _Files(
        truth.path,
        "panoptic segments",
        ("segments", Segmentation()),
        truth.images,
        truth.segments.__getitem__,
        {name: each.segments.__getitem__ for name, each in systems.items()},
        chosen,
        [note for each in (truth, *systems.values()) for note in each.notes],
    )


def _is_semantic(entries: Sequence[Any]) -> bool:
    """Whether results are regions of categories: outlines without a box and a score."""
    return bool(entries) and all(
        isinstance(each, dict) and each.get("segmentation") and not {"bbox", "score"} & each.keys() for each in entries
    )


def _regions(
    truth: Instances, path: str, by_image: Mapping[int, Sequence[Mapping[str, Any]]], id: int
) -> list[dict[str, Any]]:
    """The regions of an image that have pixels, as the scorer `segmentation` reads them."""
    found = []
    for each in by_image.get(id, ()):
        outline = each.get("segmentation")
        if not outline:
            raise DataError(Fault(f"{path}: image {id}", "has an annotation without a segmentation"))
        size = None if isinstance(outline, Mapping) else truth.size(id)
        try:
            mask = read_mask(outline, size)
        except DataError as error:
            message = error.faults[0].message
            raise DataError(Fault(f"{path}: image {id}", f"the segmentation {message}")) from None
        if areas_of([mask])[1]:
            found.append({"label": truth.names[each["category_id"]], "mask": mask})
    return found


def _segment_metric(name: str, names: Mapping[str, str], what: str) -> Any:
    own = {each.lower(): kind for each, kind in names.items()}.get(name.lower(), name)
    metric = make_metric(own)
    if metric.kind not in {make_metric(each).kind for each in names.values()}:
        raise SpecError(f"{what} has no metric {name!r}{alternatives(name, [*names])}")
    return metric


def _name(file: str | os.PathLike[str]) -> str:
    return re.sub(r"(\.[A-Za-z0-9]+)+$", "", Path(file).name) or Path(file).name


def _shape(asked: Shape | None, truth: Instances, systems: Mapping[str, Detections]) -> Shape:
    """Boxes or masks.

    Raises:
        SpecError: objects or detections do not have the shape.
    """
    each: list[Instances | Detections] = [truth, *systems.values()]
    found = asked or ("boxes" if all(one.has_boxes for one in each) else "masks")
    if found == "masks":
        lacking = [one.path for one in each if not one.has_masks]
        if lacking:
            raise SpecError(f"{lacking[0]}: not every object has a segmentation, so masks cannot be scored")
    else:
        lacking = [one.path for one in each if not one.has_boxes]
        if lacking:
            raise SpecError(f"{lacking[0]}: not every object has a bbox, so boxes cannot be scored")
    return found


def _metric(name: str, truth: Instances) -> Any:
    if not truth.is_lvis:
        known = {each.lower(): own for each, own in NAMES.items()}
        return make_metric(known.get(_MEAN.get(name.lower(), name.lower()), name))
    known = {each.lower(): each for each in _LVIS}
    own = known.get(_MEAN.get(name.lower(), name.lower()))
    if own is None:
        raise SpecError(f"LVIS has no metric {name!r}{alternatives(name, _LVIS)}")
    if own == "AR300":
        return make_metric("coco_ar_100", max_detections=_LVIS_MOST)
    if own[:2] == "AP" and own[2:] in ("r", "c", "f"):
        return make_metric("coco_ap", max_detections=_LVIS_MOST, label=truth.labels(own[2:]))
    return make_metric(NAMES[own], max_detections=_LVIS_MOST)


def _dataset(files: _Files, by: Sequence[str]) -> Dataset:
    rows = []
    for id, image in files.images.items():
        lacking = [name for name in by if name not in image]
        if lacking:
            raise SpecError(f"{files.path}: image {id} has no {lacking[0]!r}{alternatives(lacking[0], [*image])}")
        rows.append(
            {"image": str(image.get("file_name", id)), "id": str(id), "objects": files.expected(id)}
            | {name: image[name] for name in by}
        )
    return Dataset.from_rows(rows, input="image", expected="objects", id="id", attributes=list(by))


def _task(name: str, found: Callable[[int], Sequence[Any]], images: Mapping[int, Any]) -> RecordedTask:
    outputs = {(0, place): identity.encode(found(id)) for place, id in enumerate(images)}
    return RecordedTask.from_outputs(name, outputs)
