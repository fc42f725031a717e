"""Evaluations as a kind of artifact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from evaluand.run.kind import RUNS
from evaluand.store import checks
from evaluand.store.kinds import AMOUNTS, KEPT, USAGE, WORK, Kind, Origin, Page, provenance

EVALUATIONS: Final = "evaluations"


def _agree(manifest: Mapping[str, Any], sealed: bool) -> str:
    missing = manifest["spec"]["scorers"].keys() - manifest["counts"].keys() if sealed else ()
    return f".counts.{checks.describe_key(min(missing))}: is missing" if missing else ""


def _division(value: Any) -> str:
    """How a rubric divides a text: the fields, and the words of the request."""
    if type(value) is not list or len(value) != 2:
        return checks.mismatch("an object and a text", value)
    reasons = _PARTS(value[0]), checks.text(value[1])
    return next((f"[{place}]{reason}" for place, reason in enumerate(reasons) if reason), "")


_PARTS: Final = checks.object_of(
    {
        "of": checks.text,
        "name": checks.text,
        "split": checks.text,
        "instructions": checks.text,
        "material": checks.TEXTS,
    },
    {"most": checks.count},
)
_MESSAGE: Final = checks.object_of({"role": checks.text, "content": checks.text})
_RUBRIC: Final = checks.object_of(
    {
        "title": checks.text,
        "content": checks.object_of(
            {
                "reading": checks.count,
                "opening": checks.list_of(_MESSAGE),
                "material": checks.NAMES,
                "optional": checks.TEXTS,
                "schema": checks.OBJECT,
                "values": checks.list_of(checks.list_of(checks.anything)),
                "parts": checks.or_null(_division),
            }
        ),
    },
    {"question": checks.text, "then": checks.OBJECT},
)
JUDGED: Final = {"judges": checks.or_null(checks.TEXTS), "rubrics": checks.map_of(checks.list_of(_RUBRIC))}
"""The provenance of judges' scores: which scorers are judges, and the rubrics of each."""

KIND: Final = Kind(
    name=EVALUATIONS,
    rank=20,
    spec=checks.object_of(
        {"run": checks.text, "dataset": checks.id_, "scorers": checks.map_of(checks.OBJECT)},
        {"samples": checks.map_of(checks.OBJECT)},
    ),
    provenance=provenance({"run": checks.id_}, JUDGED),
    view="evaluand.report.kinds.evaluations:EvaluationView",
    made_from=(RUNS,),
    origins=lambda spec, made: [Origin(RUNS, made.get("run"), spec.get("run"))],
    stated={"run_id": "run"},
    found_by=("dataset", "run"),
    counts=checks.map_of(checks.COUNTS),
    keys=WORK,
    optional={"usage": checks.map_of(USAGE), "spent": checks.map_of(AMOUNTS), "kept": KEPT},
    agree=_agree,
    row="finished grade",
    answers="scores/",
    page=Page("evaluation", {"sealed": "v"}),
)
