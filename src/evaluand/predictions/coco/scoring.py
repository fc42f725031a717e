"""`score_coco`: results of detectors and segmenters scored against the truth, compared, and checked by gates."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from evaluand.aggregation.aggregator import Measure
from evaluand.comparison.rule import Gate
from evaluand.core import identity
from evaluand.core.errors import DataError, Fault, SpecError, alternatives, plural
from evaluand.data.dataset import Dataset
from evaluand.evaluation.score_tables import ScoredRows
from evaluand.evaluation.scorer import Scorer
from evaluand.evaluation.scorers.detection import Detection
from evaluand.evaluation.scorers.segmentation import Segmentation
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.names import make_metric
from evaluand.predictions.coco.files import Objects, Shape, read_instances, read_results
from evaluand.predictions.columns.gates import check_system_gates
from evaluand.predictions.columns.notes import PYTHON, Notes
from evaluand.predictions.columns.scoring import check_groups
from evaluand.predictions.options import MOST_GROUPS
from evaluand.predictions.result import SystemScores, Values
from evaluand.predictions.steps import Results, Steps
from evaluand.run.tasks.recorded import GivenTask
from evaluand.store.store import MemoryStore, Store

NAMES: Final = {
    **{f"AP{more}": f"coco_ap{more}" for more in ("", "50", "75")},
    **{f"AP{size[0]}": f"coco_ap_{size}" for size in ("small", "medium", "large")},
    **{f"AR{most}": f"coco_ar_{most}" for most in (1, 10, 100)},
    **{f"AR{size[0]}": f"coco_ar_{size}" for size in ("small", "medium", "large")},
}
"""The twelve numbers of pycocotools, in its order: the name there and here."""

_SEMANTIC: Final = {"mIoU": "mean_iou"}
_MEAN: Final = {"map": "ap", "mean_average_precision": "ap", "map50": "ap50", "map75": "ap75"}
"""Names under which others report COCO's averages over classes."""


def score_coco(
    instances: str | os.PathLike[str],
    results: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    metrics: Sequence[str] = (),
    by: Sequence[str] = (),
    gates: Sequence[str] = (),
    shape: Shape | None = None,
    intervals: bool = True,
    groups: int = MOST_GROUPS,
    store: Store | None = None,
    name: str = "coco",
    origin: Mapping[str, Any] | None = None,
    notes: Notes | None = None,
) -> SystemScores:
    """Scores detections or segmentations by the metrics of COCO.

    The values equal those of pycocotools. Intervals resample images.

    Args:
        instances: the file with the true objects or regions.
        results: the files with what systems found; the first is the baseline.
        metrics: `AP`, `AP50`, `APs`, `AR100` …; of semantic segmentation `mIoU`. All if empty.
        by: fields of images to group by, several together as `light,weather`.
        gates: rules such as `coco_ap >= 0.4`; of several systems all but the first are judged.
        shape: `boxes`, `masks` or `semantic`. Masks where every object and every detection has an outline and no box;
            semantic where moreover no result has a score.
        intervals: whether to compute intervals of values.
        groups: the most groups of a grouping.
        store: where the images, detections and values are stored; None for values only, in memory.
        name: what they are called.
        notes: where to note what is taken for granted, with the names that options have.

    Raises:
        SpecError: there is no such metric, or the results have no such shape.
        DataError: a file is not what it should be; each fault with its place.
    """
    paths = [results] if isinstance(results, str | os.PathLike) else [*results]
    if not paths:
        raise SpecError("name at least one file of results")
    parsed = [Gate.parse(gate) for gate in gates]
    named = {re.sub(r"(\.[A-Za-z0-9]+)+$", "", Path(path).name) or Path(path).name: path for path in paths}
    if len(named) < len(paths):
        raise SpecError("two files of results have the same name; rename one")
    truth = read_instances(instances)
    systems = {each: read_results(path, truth, semantic=shape == "semantic") for each, path in named.items()}
    shape = _shape(shape, truth, systems)
    scorer, kind = ("segments", Segmentation()) if shape == "semantic" else ("objects", Detection())
    names = _SEMANTIC if shape == "semantic" else NAMES
    groupings = tuple(tuple(part.strip() for part in each.split(",")) for each in by)
    measures = [
        Measure(
            scorer,
            metric if intervals else replace(metric, confidence=None),  # type: ignore[call-arg]
            groupings,
            ("difference",) if by else (),
        )
        for metric in (_metric(each, names, shape) for each in metrics or names)
    ]
    notes = Notes(PYTHON) if notes is None else notes
    notes.append(f"scored {'semantic segmentation' if shape == 'semantic' else shape}")
    notes += [note for objects in (truth, *systems.values()) for note in objects.notes]
    if shape == "semantic":
        notes += [note for objects in systems.values() for note in _missed(truth, objects)]
    else:
        notes += [doubt for objects in (truth, *systems.values()) for doubt in objects.doubts]
    attributes = [*dict.fromkeys(part for grouping in groupings for part in grouping)]
    _check_attributes(truth, attributes, notes)
    for grouping in groupings:
        values = {tuple(image.get(part) for part in grouping) for image in truth.images.values()}
        check_groups(grouping, len(values), len(truth.images), groups, notes)
    graded = _GradedImages(scorer, kind, truth, systems, shape, attributes, measures, {**(origin or {})})
    made = graded.unsaved() if store is None else graded.save(store, name)
    return SystemScores(
        systems=[*systems],
        values=Values.of(made),
        gates=check_system_gates(parsed, made, measures),
        noted=notes,
        graded=graded,
        made=made,
    )


@dataclass(frozen=True)
class _GradedImages:
    """What systems found in images, as the path from a dataset to values takes it."""

    scorer_name: str
    scorer: Scorer
    truth: Objects
    systems: Mapping[str, Objects]
    shape: Shape
    attributes: Sequence[str]
    measures: Sequence[Measure]
    origin: dict[str, Any]
    cluster_column: None = None

    def unsaved(self) -> Results:
        """The results in memory; of boxes without the objects of each image, which nothing reads again."""
        if self.shape != "boxes":
            return self.save(MemoryStore(), "coco")
        known = {name: {self.scorer_name: _scores(self.truth, objects)} for name, objects in self.systems.items()}
        return self._steps("coco", kept=False).run(MemoryStore(), known_scores=known)

    def save(self, store: Store, name: str) -> Results:
        return self._steps(name, kept=True).run(store)

    def _steps(self, name: str, *, kept: bool) -> Steps:
        truth, shape = self.truth, self.shape
        tasks = {
            system: GivenTask.from_texts(system, partial(_outputs, own, shape, kept))
            for system, own in self.systems.items()
        }
        dataset = _dataset(truth, truth.described(shape) if kept else truth.counts().tolist(), self.attributes)
        return Steps(name, dataset, tasks, {self.scorer_name: self.scorer}, self.measures, origin=self.origin)


def _shape(asked: Shape | None, truth: Objects, systems: Mapping[str, Objects]) -> Shape:
    """What is scored.

    Raises:
        SpecError: objects or detections do not have the shape.
        DataError: detections have no scores.
    """
    if asked is None and all(objects.is_semantic for objects in systems.values()):
        return "semantic"
    if asked != "semantic" and (unscored := [objects.path for objects in systems.values() if objects.score is None]):
        raise DataError(Fault(unscored[0], "no result has a score; each detection needs its confidence"))
    every = [truth, *systems.values()]
    shape = asked or ("boxes" if all(objects.has("boxes") for objects in every) else "masks")
    if lacking := [objects.path for objects in every if not objects.has(shape)]:
        cell, what = ("bbox", "boxes") if shape == "boxes" else ("segmentation", "masks")
        raise SpecError(f"{lacking[0]}: not every object has a {cell}, so {what} cannot be scored")
    return shape


def _metric(name: str, names: Mapping[str, str], shape: Shape) -> Metric:
    known = {each.lower(): own for each, own in names.items()}
    metric = make_metric(known.get(_MEAN.get(name.lower(), name.lower()), name))
    if shape == "semantic" and metric.kind not in names.values():
        raise SpecError(f"semantic segmentation has no metric {name!r}{alternatives(name, [*names])}")
    return metric


def _missed(truth: Objects, results: Objects) -> list[str]:
    missed = int(((truth.counts() > 0) & (results.counts() == 0)).sum())
    what = f"{plural(missed, 'image')} without any region: all true pixels are missed"
    return [f"{results.path}: {what}"] if missed else []


def _check_attributes(truth: Objects, attributes: Sequence[str], notes: Notes) -> None:
    """Refuses fields that no image has, and notes those that some lack."""
    for name in attributes:
        lacking = sum(image.get(name) is None for image in truth.images.values())
        if lacking == len(truth.images):
            known = [*dict.fromkeys(key for image in truth.images.values() for key in image)]
            raise SpecError(f"{truth.path}: no image has {name!r}{alternatives(name, known)}")
        if lacking:
            notes.append(f"{truth.path}: {plural(lacking, 'image')} without {name!r} are a group of their own")


def _dataset(truth: Objects, objects: Any, attributes: Sequence[str]) -> Dataset:
    """The images with their true objects, or the number of these."""
    rows = [
        {"image": str(image.get("file_name", id)), "id": str(id), "objects": own}
        | {name: image.get(name) for name in attributes}
        for (id, image), own in zip(truth.images.items(), objects, strict=True)
    ]
    return Dataset.from_rows(rows, input="image", expected="objects", id="id", attributes=[*attributes])


def _outputs(results: Objects, shape: Shape, kept: bool) -> pa.Array:
    """What a system found in each image, or where that stands."""
    outputs = results.described(shape) if kept else [{"file": results.path, "image": id} for id in results.images]
    return pa.array([*map(identity.encode, outputs)], pa.large_string())


def _scores(truth: Objects, results: Objects) -> ScoredRows:
    """The rows of the scorer `detection`, whose boxes nothing has to read again."""
    n = len(truth.images)
    columns = {
        "truths": truth.lists(),
        "detections": results.lists(),
        "n_expected": pa.array(truth.counts()),
        "n_predicted": pa.array(results.counts()),
    }
    places = {name: _places(objects) for name, objects in (("truths", truth), ("detections", results))}
    return ScoredRows(np.arange(n), pa.nulls(n, pa.float64()), columns, stand_ins=places)


def _places(objects: Objects) -> pa.Array:
    return pa.array([f"{objects.path}: image {id}" for id in objects.images])
