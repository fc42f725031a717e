"""The trade-offs of an aggregation, the points to choose from, and a point on other data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from evaluand.aggregation.aggregator import Aggregation
from evaluand.aggregation.kind import AGGREGATIONS
from evaluand.core.errors import EvaluandError, NotFound, SpecError
from evaluand.evaluation.evaluator import Evaluation
from evaluand.report.commands import DEFAULT_STORE, format_store
from evaluand.report.facts.base import Facts
from evaluand.report.html.tradeoff import figures_section, plane_frames
from evaluand.report.html.tradeoff_choice import Choices, choice_facts
from evaluand.report.page.resources.base import Source, read_number, resource
from evaluand.report.text import SHORT_ID
from evaluand.store.store import resolve
from evaluand.tradeoff.files.metrics import parse_metric
from evaluand.tradeoff.objectives import Objective
from evaluand.tradeoff.points import Tradeoff
from evaluand.tradeoff.short_names import FAIRNESS, UTILITIES, WITHIN
from evaluand.tradeoff.trade import TradeoffResult, stored_results

_MOST_ELSEWHERE: Final = 20
_EVERY: Final = "every"


def _list_aggregations(source: Source) -> Iterator[Mapping[str, str]]:
    """The names and ids of the aggregations that have trade-offs."""
    ids = [entry["id"] for entry in source.finished(AGGREGATIONS)]
    with_tradeoffs = {id for id in ids if source.store.manifest(AGGREGATIONS, id)["spec"].get("tradeoffs")}
    yield from ({"name": id} for id in sorted(with_tradeoffs))
    yield from (
        {"name": ref.name} for ref in source.store.refs() if ref.kind == AGGREGATIONS and ref.id in with_tradeoffs
    )


@resource("tradeoffs/{name}", _list_aggregations)
def read_tradeoffs(source: Source, name: str) -> Facts:
    """The trade-offs of an aggregation: figures as markup, and the points of the fronts to choose from.

    Args:
        name: its name, which is that of its experiment, or its id.
    """
    aggregation = _find_aggregation(source, name)
    specs = aggregation.manifest["spec"].get("tradeoffs", ())
    results = _read_results(source, aggregation)
    return {
        "title": aggregation.name or f"aggregation {aggregation.id[:SHORT_ID]}",
        "id": aggregation.id,
        "tradeoffs": [
            _describe(source, aggregation, spec, result) for spec, result in zip(specs, results, strict=True)
        ],
    }


def _find_aggregation(source: Source, name: str) -> Aggregation:
    _, id = resolve(source.store, name, AGGREGATIONS)
    if not source.store.is_sealed(AGGREGATIONS, id):
        raise NotFound("this aggregation is not finished")
    return Aggregation(source.store, id)


def _read_results(source: Source, aggregation: Aggregation) -> list[TradeoffResult]:
    return source.contents.get(("tradeoffs", aggregation.id), lambda: stored_results(aggregation))


def _describe(source: Source, aggregation: Aggregation, spec: Facts, result: TradeoffResult) -> Facts:
    about = {"name": result.name, "objectives": list(result.objectives), "reason": result.reason}
    if result.points is None:
        return about
    systems = {result.name: result.points}
    if result.points.threshold_groups:
        return about | {"reason": "its points have a threshold for each group, which no page shows"}
    rates = {} if result.rates is None else {result.name: result.rates}
    metrics = _name_metrics(spec, result.points.objectives)
    return about | {
        "figures": figures_section(systems, {result.name: result.indicators}),
        "frames": plane_frames(systems),
        "choice": choice_facts(systems, rates),
        "metrics": metrics,
        "command": None if metrics is None else _format_pick(source, aggregation, spec, metrics),
    }


def _name_metrics(spec: Facts, objectives: Sequence[Objective]) -> list[str] | None:
    """The names of the objectives on the command line; None where it has none for one of them."""
    if spec["thresholds"] is None:
        return [one.name for one in objectives]
    names = [_find_short_name(one) for one in objectives]
    return None if None in names else [name for name in names if name is not None]


def _find_short_name(objective: Objective) -> str | None:
    """The short name of an objective of decisions at thresholds, such as `acc` or `eod+sex`."""
    attribute = "+".join(objective.by)
    if "+" in attribute:
        return None
    names = [*UTILITIES, *(f"{head}+{attribute}" for head in FAIRNESS)]
    names += [f"{head}+{utility}+{attribute}" for head in WITHIN for utility in UTILITIES]
    return next((name for name in names if _is_same(name, objective)), None)


def _is_same(name: str, objective: Objective) -> bool:
    try:
        known = parse_metric(name)
    except SpecError:
        return False
    return (known.text, known.parts) == (objective.text, objective.parts)


def _format_pick(source: Source, aggregation: Aggregation, spec: Facts, metrics: Sequence[str]) -> list[str]:
    """The words of the command that picks a point, without what is best and the limits; the last one is the store."""
    words = [word for name in _name_stored(source, aggregation, spec) for word in ("--stored", name)]
    words += [word for name in metrics for word in ("--metric", name)]
    options = {"--label": spec["label"], "--scorer": spec["scorer"], "--thresholds": spec["thresholds"]}
    for option, value in options.items():
        if value is not None:
            words += [option, ",".join(map(str, value)) if isinstance(value, list) else str(value)]
    return [*words, format_store(source.root, DEFAULT_STORE).strip()]


def _name_stored(source: Source, aggregation: Aggregation, spec: Facts) -> list[str]:
    """What the command is to read: the aggregation, or the evaluations of some of its tasks."""
    if not spec["tasks"]:
        is_named = any(
            (ref.kind, ref.id, ref.name) == (AGGREGATIONS, aggregation.id, aggregation.name)
            for ref in source.store.refs()
        )
        return [aggregation.name if is_named and aggregation.name else aggregation.id[:SHORT_ID]]
    ids = dict(zip(aggregation.labels, aggregation.manifest["provenance"]["evaluations"], strict=True))
    return [ids[task][:SHORT_ID] for task in spec["tasks"]]


@resource("tradeoff-elsewhere/{name}/{number}/{point}")
def read_elsewhere(source: Source, name: str, number: str, point: str) -> list[Facts]:
    """A point on other data: its values in trade-offs of other aggregations that have the same objectives and model.

    Args:
        number: which trade-off.
        point: its place among those to choose from.
    """
    aggregation = _find_aggregation(source, name)
    results = _read_results(source, aggregation)
    result = results[_read_place(number, len(results))]
    if result.points is None:
        raise NotFound("this trade-off has no points")
    [(_, places)] = Choices.of({result.name: result.points}).places.items()
    front = result.points.front().take(np.array([places[_read_place(point, len(places))]]))
    found: list[Facts] = []
    for entry in source.finished(AGGREGATIONS):
        if entry["id"] != aggregation.id and len(found) < _MOST_ELSEWHERE:
            found += _find_elsewhere(source, aggregation, Aggregation(source.store, entry["id"]), front)
    return found


def _read_place(text: str, n: int) -> int:
    number = read_number(text, "trade-off or point")
    if number >= n:
        raise NotFound("there is no such trade-off or point")
    return number


def _find_elsewhere(source: Source, here: Aggregation, there: Aggregation, point: Tradeoff) -> Iterator[Facts]:
    specs = there.manifest["spec"].get("tradeoffs", ())
    wanted = [one.text for one in point.objectives]
    dataset = _find_dataset(source, there)
    if not specs or dataset is None or dataset == _find_dataset(source, here):
        return
    for spec, other in zip(specs, _read_results(source, there), strict=True):
        if other.points is None or [one.text for one in other.points.objectives] != wanted:
            continue
        place = _find_point(other.points, point.models[point.model[0]], float(point.threshold[0]), spec["thresholds"])
        if place is not None:
            ends = None if other.points.ends is None else [end[place].tolist() for end in other.points.ends[1:]]
            yield {
                "name": there.name or there.id[:SHORT_ID],
                "id": there.id,
                "dataset": source.find_dataset_name(dataset) or dataset[:SHORT_ID],
                "values": other.points.value[place].tolist(),
                "ends": ends,
                "front": bool(other.points.on_front[place]),
            }


def _find_dataset(source: Source, aggregation: Aggregation) -> str | None:
    try:
        evaluation = Evaluation(source.store, aggregation.manifest["provenance"]["evaluations"][0])
        return str(evaluation.manifest["spec"]["dataset"])
    except (EvaluandError, KeyError, IndexError):
        return None


def _find_point(points: Tradeoff, model: str, threshold: float, thresholds: Any) -> int | None:
    """The place of a model at a threshold.

    Where each of its confidences was tried, the next higher one that occurs there decides the same.
    """
    if model not in points.models:
        return None
    own = np.flatnonzero(points.model == points.models.index(model))
    if np.isnan(threshold):
        own = own[np.isnan(points.threshold[own])]
        return int(own[0]) if len(own) else None
    tried = points.threshold[own]
    fits = tried >= threshold if thresholds == _EVERY else tried == threshold
    return int(own[fits][np.argmin(tried[fits])]) if fits.any() else None
