"""Aggregations as a kind of artifact, and what comparisons have in common with them: both summarise evaluations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from evaluand.evaluation.kind import EVALUATIONS
from evaluand.run.kind import RUNS
from evaluand.store import checks
from evaluand.store.checks import Check, or_null
from evaluand.store.kinds import METRIC, Kind, Origin, Page, list_origins, provenance

AGGREGATIONS: Final = "aggregations"

_MEASURE: Final = checks.object_of(
    {"scorer": checks.text, "metric": METRIC, "by": checks.list_of(checks.NAMES)},
    {
        "disparities": checks.TEXTS,
        "criterion": or_null(checks.text),
        "called": checks.TEXTS,
        "where": or_null(checks.text),
        "rules": checks.OBJECT,
        "worst_groups": checks.OBJECT,
    },
)
SUMMARISED: Final[dict[str, Check]] = {
    "evaluations": checks.TEXTS,
    "runs": checks.TEXTS,
    "datasets": checks.TEXTS,
    "labels": checks.TEXTS,
    "measures": checks.list_of(_MEASURE),
}
"""What the spec of a summary of evaluations has."""

PEOPLE: Final[dict[str, Check]] = {"people": checks.list_of(or_null(checks.text))}
STATED: Final = {"evaluation_ids": "evaluations"}
FOUND_BY: Final = (RUNS, EVALUATIONS)


def list_evaluations(spec: Mapping[str, Any], made: Mapping[str, Any]) -> list[Origin]:
    """The evaluations that were summarised."""
    return list_origins(EVALUATIONS, made.get("evaluations"), spec.get("evaluations"))


def agree_in_length(manifest: Mapping[str, Any], sealed: bool) -> str:
    """Where a list has not one entry for each evaluation, and how many it has."""
    spec, made_from = manifest["spec"], manifest["provenance"]
    n_evaluations = len(spec["evaluations"])
    lists = [(f".spec.{name}", spec[name]) for name in ("runs", "datasets", "labels")]
    lists += [(f".provenance.{name}", made_from[name]) for name in ("evaluations", "labels") if name in made_from]
    for path, entries in lists:
        if len(entries) != n_evaluations:
            return f"{path}: expected {n_evaluations} entries, one for each evaluation, found {len(entries)}"
    return ""


_OF_TRADEOFF: Final[dict[str, Check]] = {
    "objectives": checks.TEXTS,
    "name": checks.text,
    "tasks": checks.TEXTS,
    "thresholds": checks.anything,
    "label": or_null(checks.scalar),
    "scorer": or_null(checks.text),
}
_TRADEOFF: Final = checks.closed_object(
    checks.object_of({"objectives": checks.TEXTS}, _OF_TRADEOFF), _OF_TRADEOFF, "a part of a trade-off"
)

KIND: Final = Kind(
    name=AGGREGATIONS,
    rank=30,
    spec=checks.object_of(SUMMARISED, {"tradeoffs": checks.list_of(_TRADEOFF)} | PEOPLE),
    provenance=provenance({"evaluations": checks.IDS}),
    view="evaluand.report.kinds.aggregations:AggregationView",
    made_from=(EVALUATIONS,),
    origins=list_evaluations,
    stated=STATED,
    found_by=FOUND_BY,
    agree=agree_in_length,
    page=Page("aggregation", {"sealed": "v"}),
)
