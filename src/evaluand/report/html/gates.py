"""The gates of an experiment on the first screen of its report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from evaluand.report.facts.base import Facts
from evaluand.report.facts.gates import shorten_refusals
from evaluand.report.html.page import clean, name, table, th
from evaluand.report.text import between, numbers

_CLASSES: Final = {"passed": "value", "failed": "failed", "undecided": "unscored"}


def gates_section(gates: Sequence[Facts], results: str | None = None) -> str:
    """Each gate with its result, its value with an interval, the one-sided bound that decides, and the limit.

    Args:
        gates: with `gate`, `subject`, `passed`, `result`, `limit`, `message` and `values`.
        results: by which results they were checked, in words.
    """
    n_passed = sum(gate["passed"] for gate in gates)
    caption = f"{n_passed:,} of {len(gates):,} gates passed"
    heads = "".join(th(head, "text") for head in ("Gate", "of", "result"))
    heads += "".join(map(th, ("value", "interval", "bound"))) + th("limit", "text") + th("why", "text")
    note = "" if results is None else f'<p class="note">{clean(results[:1].upper() + results[1:])}.</p>'
    return table(caption, heads, f"<tbody>{''.join(map(_line, shorten_refusals(gates)))}</tbody>") + note


def _line(gate: Facts) -> str:
    result = gate["result"]
    values = gate["values"]
    shown, intervals, bounds = ("<br>".join(map(cell, values)) for cell in (_value, _interval, _bound))
    scorer = f'<span class="why">scores of {name(gate["scorer"])}</span>' if "scorer" in gate else ""
    return (
        f'<tr><th scope="row">{clean(gate["gate"])}{scorer}</th><td class="text">{name(gate["subject"])}</td>'
        f'<td class="text {_CLASSES[result]}">{result}</td><td class="value">{shown}</td>'
        f"<td>{intervals}</td><td>{bounds}</td>"
        f'<td class="text">{clean(gate["limit"])}</td><td class="text">{clean(gate["message"])}</td></tr>'
    )


def _value(found: dict[str, Any]) -> str:
    """A value, or a difference from the baseline."""
    value = found.get("difference", found.get("value"))
    sign = "+" if "difference" in found and value is not None and value > 0 else ""
    return sign + numbers(value)[0]


def _interval(found: dict[str, Any]) -> str:
    """The interval, or both one-sided bounds of a rule with a level."""
    low, high = numbers(found.get("low"), found.get("high"))
    shown = between(low, high)
    return f"{shown} (bounds)" if shown and found.get("bound") is not None else shown


def _bound(found: dict[str, Any]) -> str:
    """The bound that decides, with the digits of the message; empty where the value decides."""
    if found.get("bound") is None:
        return ""
    return f"{found['side']} {found['bound']:{'+' if 'difference' in found else ''}.4g}"
