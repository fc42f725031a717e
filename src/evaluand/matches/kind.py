"""Matches, and ratings made of them, as kinds of artifacts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from evaluand.evaluation.kind import JUDGED
from evaluand.judges.kind import CARDS
from evaluand.run.kind import RUNS
from evaluand.store import checks
from evaluand.store.kinds import AMOUNTS, METRIC, USAGE, WORK, Kind, Page, list_origins, provenance

MATCHES: Final = "matches"
RATINGS: Final = "ratings"

_SCHEDULE: Final = checks.object_of({"kind": checks.text}, {"parameters": checks.OBJECT})


def _agree_on_systems(manifest: Mapping[str, Any], sealed: bool) -> str:
    spec, made_from = manifest["spec"], manifest["provenance"]["runs"]
    n_runs = len(spec["systems"]) if "runs" in spec else 0
    for path, entries in ((".spec.runs", spec.get("runs", [])), (".provenance.runs", made_from)):
        if len(entries) != n_runs:
            return f"{path}: expected {n_runs} entries, one for each system, found {len(entries)}"
    return ""


def _agree_on_matches(manifest: Mapping[str, Any], sealed: bool) -> str:
    n_matches, n_made_from = len(manifest["spec"]["matches"]), len(manifest["provenance"]["matches"])
    if n_matches != n_made_from:
        return f".provenance.matches: expected {n_matches} entries, one for each digest, found {n_made_from}"
    return ""


KIND: Final = Kind(
    name=MATCHES,
    rank=50,
    spec=checks.object_of(
        {"systems": checks.TEXTS},
        {
            "runs": checks.TEXTS,
            "dataset": checks.id_,
            "judge": checks.OBJECT,
            "schedule": _SCHEDULE,
            "orders": checks.text,
            "seed": checks.integer,
            "limit": checks.count,
            "battles": checks.text,
            "file": checks.OBJECT,
        },
    ),
    provenance=provenance({"runs": checks.IDS}, {"fields": checks.map_of(checks.text)} | JUDGED),
    view="evaluand.report.kinds.matches:MatchesView",
    singular="set of matches",
    made_from=(RUNS,),
    made_into=(CARDS,),
    origins=lambda spec, made: list_origins(RUNS, made.get("runs") or [], spec.get("runs")),
    stated={"run_ids": "runs"},
    found_by=("dataset", "runs"),
    keys=WORK,
    optional={"usage": USAGE, "spent": checks.map_of(AMOUNTS)},
    agree=_agree_on_systems,
    row="finished judgement",
    answers="matches",
    restart="repeat the command that began it",
    page=Page("match set", {"sealed": "m"}),
)
KIND_OF_RATINGS: Final = Kind(
    name=RATINGS,
    rank=60,
    spec=checks.object_of(
        {"matches": checks.TEXTS, "systems": checks.TEXTS, "confidence": checks.confidence, "method": METRIC},
    ),
    provenance=provenance({"matches": checks.IDS}),
    view="evaluand.report.kinds.matches:RatingsView",
    singular="set of ratings",
    made_from=(MATCHES,),
    origins=lambda spec, made: list_origins(MATCHES, made.get("matches"), spec.get("matches")),
    stated={"match_ids": "matches"},
    found_by=("matches",),
    agree=_agree_on_matches,
    page=Page("rating", {"sealed": "m"}),
)
