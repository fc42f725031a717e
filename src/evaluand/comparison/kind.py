"""Comparisons as a kind of artifact."""

from __future__ import annotations

from typing import Final

from evaluand.aggregation.kind import FOUND_BY, PEOPLE, STATED, SUMMARISED, agree_in_length, list_evaluations
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.store import checks
from evaluand.store.checks import or_null
from evaluand.store.kinds import Kind, Page, provenance

COMPARISONS: Final = "comparisons"

_LEFT_OUT: Final = checks.object_of(
    {"scorer": checks.text, "metric": checks.text, "reason": checks.text}, {"signature": or_null(checks.text)}
)

_OVER: Final = checks.object_of({"factor": checks.text, "other": checks.text, "levels": checks.TEXTS})

KIND: Final = Kind(
    name=COMPARISONS,
    rank=40,
    spec=checks.object_of(
        SUMMARISED | {"confidence": checks.confidence, "flips": checks.count},
        {
            "left_out": checks.list_of(_LEFT_OUT),
            "primary": checks.one_or_list(checks.count),
            "stopped": checks.list_of(checks.count),
            "by": checks.TEXTS,
            "where": checks.text,
            "over": _OVER,
        }
        | PEOPLE,
    ),
    provenance=provenance({"evaluations": checks.IDS, "labels": checks.TEXTS}),
    view="evaluand.report.kinds.comparisons:ComparisonView",
    made_from=(EVALUATIONS,),
    origins=list_evaluations,
    stated=STATED,
    found_by=FOUND_BY,
    agree=agree_in_length,
    page=Page("comparison", {"sealed": "c"}, served=("sealed",)),
)
