"""Cards of judges as a kind of artifact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from evaluand.evaluation.kind import EVALUATIONS
from evaluand.store import checks
from evaluand.store.checks import or_null
from evaluand.store.kinds import Kind, Origin, Page, provenance

CARDS: Final = "cards"

_ORIGIN: Final = checks.object_of({"kind": checks.text, "id": checks.id_})
_JUDGE: Final = checks.object_of({"name": checks.text, "digest": checks.id_, "spec": checks.OBJECT})


def _list_origins(spec: Mapping[str, Any], made: Mapping[str, Any]) -> list[Origin]:
    """What was labelled, and the labels: evaluations, or artifacts of a kind above."""
    made_from = made.get("made_from")
    if not isinstance(made_from, list):
        return [Origin(EVALUATIONS, None)]
    return [Origin(origin["kind"], origin["id"]) for origin in made_from]


KIND: Final = Kind(
    name=CARDS,
    rank=70,
    spec=checks.object_of(
        {
            "judge": _JUDGE,
            "labels": checks.id_,
            "judgements": checks.id_,
            "items": checks.count,
            "confidence": checks.confidence,
            "options": checks.OBJECT,
        },
        {"part": or_null(checks.OBJECT)},
    ),
    provenance=provenance(
        {"made_from": checks.list_of(_ORIGIN)},
        {"usage": checks.OBJECT, "seconds": or_null(checks.map_of(checks.number)), "judge": checks.OBJECT},
    ),
    view="evaluand.report.kinds.cards:CardView",
    made_from=(EVALUATIONS,),
    origins=_list_origins,
    page=Page("judge card", {"sealed": "j"}),
)
