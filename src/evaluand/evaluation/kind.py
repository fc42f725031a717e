"""Evaluations as a kind of artifact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from evaluand.run.kind import RUNS
from evaluand.store import checks
from evaluand.store.kinds import AMOUNTS, USAGE, WORK, Kind, Origin, Page, provenance

EVALUATIONS: Final = "evaluations"


def _agree(manifest: Mapping[str, Any], sealed: bool) -> str:
    missing = manifest["spec"]["scorers"].keys() - manifest["counts"].keys() if sealed else ()
    return f".counts.{checks.describe_key(min(missing))}: is missing" if missing else ""


KIND: Final = Kind(
    name=EVALUATIONS,
    rank=20,
    spec=checks.object_of(
        {"run": checks.text, "dataset": checks.id_, "scorers": checks.map_of(checks.OBJECT)}, {"attempt": checks.id_}
    ),
    provenance=provenance({"run": checks.id_}),
    view="evaluand.report.kinds.evaluations:EvaluationView",
    made_from=(RUNS,),
    origins=lambda spec, made: [Origin(RUNS, made.get("run"), spec.get("run"))],
    found_by=("dataset", "run"),
    counts=checks.map_of(checks.COUNTS),
    keys=WORK,
    optional={"usage": checks.map_of(USAGE), "spent": checks.map_of(AMOUNTS)},
    agree=_agree,
    row="finished grade",
    page=Page("evaluation", {"sealed": "v"}),
)
