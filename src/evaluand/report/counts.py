"""What an artifact has, in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from evaluand.core.errors import plural
from evaluand.report.text import LABEL, safe
from evaluand.store.statuses import COMPLETED, SCORE_STATUSES

_ORDER: Final = (
    COMPLETED,
    *SCORE_STATUSES,
    "metrics",
    "disparities",
    "worst_groups",
    "curves",
    "pairs",
    "ranking",
    "flips",
)
_NOUNS: Final = {  # of the rows of tables, singular and plural
    "examples": ("example", "examples"),
    "metrics": ("value", "values"),
    "disparities": ("disparity", "disparities"),
    "worst_groups": ("worst group", "worst groups"),
    "curves": ("point of curves", "points of curves"),
    "pairs": ("pair compared", "pairs compared"),
    "ranking": ("place ranked", "places ranked"),
    "flips": ("example listed", "examples listed"),
    "left_out": ("metric left out", "metrics left out"),
    "ratings": ("system rated", "systems rated"),
    "measures": ("measure", "measures"),
    "misses": ("miss", "misses"),
}
_DETAILS: Final = (  # of ratings and cards, whose number says little
    *("win_rates", "differences", "parameters", "bias"),
    *("confusion", "calibration"),
)


def format_counts(counts: Mapping[str, Any]) -> str:
    """`7 scored, 3 failed`, by scorer if counts are nested; or the number of rows by table."""
    parts = []
    known = [name for name in _ORDER if name in counts]
    for name in dict.fromkeys([*known, *counts]):
        count = counts[name]
        if isinstance(count, Mapping):
            parts.append(f"{safe(name, LABEL)}: {format_counts(count)}")
        elif name in _DETAILS:
            continue
        elif count or name not in ("ranking", "flips"):
            parts.append(plural(count, *(safe(noun, LABEL) for noun in _NOUNS.get(name, (name, name)))))
    return ("; " if any(isinstance(c, Mapping) for c in counts.values()) else ", ").join(parts)
