"""Measures of judges in words, for the terminal, notebooks and pages; imports neither NumPy nor Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from evaluand.core.errors import plural
from evaluand.models.usage_total import UsageTotal


def measure_name(row: Mapping[str, Any]) -> tuple[str, str]:
    """The name of a measure in tables, with the part that it covers.

    Example:
        >>> measure_name({"measure": "cohen_kappa", "part": "first order"})
        ("Cohen's kappa", 'first order')
    """
    return _NAMES.get(row["measure"], row["measure"].replace("_", " ")), row["part"]


_NAMES: Final = {
    "cohen_kappa": "Cohen's kappa",
    "krippendorff_alpha": "Krippendorff's alpha",
    "people_alpha": "people among themselves, alpha",
    "brier": "Brier score",
    "retest_alpha": "retest, alpha",
    "retest_agreement": "retest, agreement",
    "self_preference": "self-preference",
}


def measure_cells(row: Mapping[str, Any]) -> tuple[str, str]:
    """The value and the interval of a measure as text.

    Example:
        >>> measure_cells({"value": 0.918, "low": 0.85, "high": 0.96}), measure_cells({"value": None})
        (('0.92', '[0.85, 0.96]'), ('–', ''))
    """
    if row["value"] is None:
        return "–", ""
    interval = "" if row["low"] is None else f"[{row['low']:.2f}, {row['high']:.2f}]"
    return f"{row['value']:.2f}", interval


def measure_text(row: Mapping[str, Any]) -> str:
    """A measure in a line."""
    name, part = measure_name(row)
    parts = (f"{name}{f', {part}' if part else ''}:", *measure_cells(row))
    why = "; ".join(filter(None, (row["note"], row["reason"])))
    return " ".join(filter(None, parts)) + (f" ({why})" if why else "")


def cost_text(card: Mapping[str, Any]) -> str:
    """What the judgements of a card cost and how long they took; empty if nothing is known.

    Example:
        >>> cost_text({"usage": {"rows": 40, "cost": {"USD": 0.2}}, "seconds": {"median": 1.5, "high": 4.0}})
        '40 judgements: cost 0.20 USD; 1.5 s each (median), 4.0 s at most in 95 of 100'
    """
    return "; ".join(_cost_parts(UsageTotal.read(card["usage"]), card["seconds"]))


def _cost_parts(total: UsageTotal, seconds: Mapping[str, float] | None) -> Iterator[str]:
    if total.without_tokens == total.rows:  # of files, which have no tokens
        total = replace(total, without_tokens=0)
    if total:
        yield f"{plural(total.rows, 'judgement')}: {total.describe('judgement')}"
    if seconds:
        yield f"{_seconds(seconds['median'])} each (median), {_seconds(seconds['high'])} at most in 95 of 100"


def _seconds(number: float) -> str:
    return f"{number:.1f} s" if number >= 1 else f"{number:.2g} s"
