"""Runs as a kind of artifact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from evaluand.data.kind import DATASETS
from evaluand.store import checks
from evaluand.store.checks import or_null
from evaluand.store.journal import MOST_SLOTS
from evaluand.store.kinds import AMOUNTS, KEPT, USAGE, WORK, Kind, Origin, Page, provenance

RUNS: Final = "runs"


def _task(value: Any) -> str:
    if type(value) is dict and value.get("kind") == "app":
        optional = {"name": or_null(checks.text), "version": or_null(checks.scalar)}
        return checks.object_of({"recording": checks.id_}, optional)(value)
    return checks.OBJECT(value)


def _agree(manifest: Mapping[str, Any], sealed: bool) -> str:
    examples, replications = manifest["spec"]["examples"], manifest["spec"]["replications"]
    if replications < 1 or examples * replications > MOST_SLOTS:
        return f".spec.replications: expected 1 to {MOST_SLOTS:,} calls, found {examples} × {replications}"
    if sealed and (rows := sum(manifest["counts"].values())) > MOST_SLOTS:
        return f".counts: expected at most {MOST_SLOTS:,} rows, found {rows}"
    return ""


KIND: Final = Kind(
    name=RUNS,
    rank=10,
    spec=checks.object_of(
        {
            "task": _task,
            "dataset": checks.id_,
            "examples": checks.count,
            "replications": checks.count,
            "seed": checks.integer,
        }
    ),
    provenance=provenance(),
    view="evaluand.report.kinds.runs:RunView",
    made_from=(DATASETS,),
    origins=lambda spec, made: [Origin(DATASETS, spec.get("dataset"))],
    found_by=("dataset",),
    keys=WORK,
    optional={"usage": USAGE, "spent": AMOUNTS, "kept": KEPT},
    agree=_agree,
    row="finished call",
    answers="responses",
    page=Page("run", {"sealed": "r", "open": "live"}, served=("open",)),
)
