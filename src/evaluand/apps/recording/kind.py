"""Recordings of apps as a kind of artifact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from evaluand.evaluation.kind import EVALUATIONS
from evaluand.run.kind import RUNS
from evaluand.store import checks
from evaluand.store.checks import or_null
from evaluand.store.kinds import APP, Kind, Origin, Page, provenance

RECORDINGS: Final = "recordings"


def _list_results(spec: Mapping[str, Any], made: Mapping[str, Any]) -> list[Origin]:
    """The run and the evaluation that a recording was made into."""
    return [Origin(kind, id) for kind, id in ((RUNS, made.get("run")), (EVALUATIONS, made.get("evaluation"))) if id]


def _agree(manifest: Mapping[str, Any], sealed: bool) -> str:
    missing = manifest["spec"]["feedbacks"].keys() - manifest["provenance"]["columns"].keys()
    return f".provenance.columns.{checks.describe_key(min(missing))}: is missing" if missing else ""


KIND: Final = Kind(
    name=RECORDINGS,
    rank=90,
    spec=checks.object_of(
        {"app": APP, "attempts": checks.count, "feedbacks": checks.map_of(checks.OBJECT), "mode": checks.text}
    ),
    provenance=provenance(
        {
            "columns": checks.map_of(checks.map_of(checks.text)),
            "forms": checks.map_of(or_null(checks.OBJECT)),
            "timeout": or_null(checks.seconds),
        },
        {
            "run": or_null(checks.id_),
            "evaluation": or_null(checks.id_),
            "higher_is_better": checks.map_of(or_null(checks.flag)),
        },
    ),
    view="evaluand.report.kinds.recordings:RecordingView",
    made_into=(RUNS, EVALUATIONS),
    origins=_list_results,
    keys={"pinned": checks.flag},
    agree=_agree,
    page=Page("recording", {"sealed": "a", "open": "a"}),
)
