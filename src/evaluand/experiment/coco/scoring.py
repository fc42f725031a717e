"""`score_coco`: results of detectors scored against instances, compared, and checked by gates."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from evaluand.aggregation.aggregator import Measure
from evaluand.comparison.rule import Gate
from evaluand.core import identity
from evaluand.core.errors import SpecError, alternatives
from evaluand.data.dataset import Dataset
from evaluand.evaluation.scorers.detection import Detection
from evaluand.experiment.coco.files import Detections, Instances, Shape, read_instances, read_results
from evaluand.experiment.columns.scoring import SystemScores, check_system_gates
from evaluand.experiment.experiment import Experiment
from evaluand.metrics.names import make_metric
from evaluand.run.tasks.recorded import RecordedTask
from evaluand.store.store import MemoryStore, Store

SCORER: Final = "objects"
NAMES: Final = {
    **{f"AP{more}": f"coco_ap{more}" for more in ("", "50", "75")},
    **{f"AP{size[0]}": f"coco_ap_{size}" for size in ("small", "medium", "large")},
    **{f"AR{most}": f"coco_ar_{most}" for most in (1, 10, 100)},
    **{f"AR{size[0]}": f"coco_ar_{size}" for size in ("small", "medium", "large")},
}
"""The twelve numbers of pycocotools, in its order: the name there and here."""

_LVIS: Final = ("AP", "AP50", "AP75", "APs", "APm", "APl", "APr", "APc", "APf", "AR300", "ARs", "ARm", "ARl")
_LVIS_MOST: Final = 300


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
    """Scores results of object detection by the metrics of COCO, or of LVIS where the instances are its.

    The values equal those of pycocotools and lvis. Intervals resample images.

    Args:
        instances: the file with the true objects.
        results: the files with what detectors found; the first is the baseline.
        metrics: `AP`, `AP50`, `APs`, `AR100` …; of LVIS also `APr`, `APc`, `APf` and `AR300`. All if empty.
        by: fields of images to group by.
        gates: rules such as `coco_ap >= 0.4`.
        shape: `boxes` or `masks`; masks where every object and every detection has an outline and no box.
        intervals: whether to compute intervals of values.
        store: where the images, detections and values are stored; None is memory.
        name: what they are called.

    Raises:
        SpecError: there is no such metric, or the detections have no such shape.
        DataError: a file is not what it should be; each fault with its place.
    """
    files = [results] if isinstance(results, str | os.PathLike) else [*results]
    if not files:
        raise SpecError("name at least one file of results")
    parsed = [Gate.parse(gate) for gate in gates]
    truth = read_instances(instances)
    systems = {_name(file): read_results(file, truth) for file in files}
    if len(systems) < len(files):
        raise SpecError("two files of results have the same name; rename one")
    shape = _shape(shape, truth, systems)
    notes = [note for each in systems.values() for note in each.notes]
    measures = [
        Measure(
            SCORER, metric if intervals else replace(metric, confidence=None), tuple(by), ("difference",) if by else ()
        )
        for metric in (_metric(each, truth) for each in metrics or (_LVIS if truth.is_lvis else NAMES))
    ]
    experiment = Experiment(
        name,
        _dataset(truth, shape, by),
        {system: _task(system, found, truth, shape) for system, found in systems.items()},
        {SCORER: Detection()},
        measures,
        origin={**(origin or {})},
    )
    stored = experiment.run(store or MemoryStore())
    return SystemScores(
        systems=[*systems],
        results=stored,
        gates=check_system_gates(parsed, stored, measures),
        notes=[f"scored {shape}", *notes],
    )


def _name(file: str | os.PathLike[str]) -> str:
    return re.sub(r"(\.[A-Za-z0-9]+)+$", "", Path(file).name) or Path(file).name


def _shape(asked: Shape | None, truth: Instances, systems: Mapping[str, Detections]) -> Shape:
    """Boxes or masks.

    Raises:
        SpecError: objects or detections do not have the shape.
    """
    found = asked or ("boxes" if all(each.has_boxes for each in systems.values()) else "masks")
    if found == "masks":
        lacking = [] if truth.has_masks else [truth.path]
        lacking += [each.path for each in systems.values() if not each.has_masks]
        if lacking:
            raise SpecError(f"{lacking[0]}: not every object has a segmentation, so masks cannot be scored")
    elif not all(each.has_boxes for each in systems.values()):
        lacking = [each.path for each in systems.values() if not each.has_boxes]
        raise SpecError(f"{lacking[0]}: not every detection has a bbox, so boxes cannot be scored")
    return found


def _metric(name: str, truth: Instances) -> Any:
    if not truth.is_lvis:
        known = {each.lower(): own for each, own in NAMES.items()}
        return make_metric(known.get(name.lower(), name))
    known = {each.lower(): each for each in _LVIS}
    own = known.get(name.lower())
    if own is None:
        raise SpecError(f"LVIS has no metric {name!r}{alternatives(name, _LVIS)}")
    if own == "AR300":
        return make_metric("coco_ar_100", max_detections=_LVIS_MOST)
    if own[:2] == "AP" and own[2:] in ("r", "c", "f"):
        return make_metric("coco_ap", max_detections=_LVIS_MOST, label=truth.labels(own[2:]))
    return make_metric(NAMES[own], max_detections=_LVIS_MOST)


def _measure(metric: Any, by: Sequence[str], intervals: bool) -> Measure:
    chosen = metric if intervals else replace(metric, confidence=None)
    return Measure(SCORER, chosen, tuple(by), ("difference",) if by else ())


def _dataset(truth: Instances, shape: Shape, by: Sequence[str]) -> Dataset:
    rows = []
    for id, image in truth.images.items():
        lacking = [name for name in by if name not in image]
        if lacking:
            raise SpecError(f"{truth.path}: image {id} has no {lacking[0]!r}{alternatives(lacking[0], [*image])}")
        rows.append(
            {"image": str(image.get("file_name", id)), "id": str(id), "objects": truth.expected(id, shape)}
            | {name: image[name] for name in by}
        )
    return Dataset.from_rows(rows, input="image", expected="objects", id="id", attributes=list(by))


def _task(name: str, found: Detections, truth: Instances, shape: Shape) -> RecordedTask:
    outputs = {(0, place): identity.encode(found.found(id, truth, shape)) for place, id in enumerate(truth.images)}
    return RecordedTask.from_outputs(name, outputs)
