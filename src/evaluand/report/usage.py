"""What runs and judges have used, as lines and cells of tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from evaluand.models.usage_total import UsageTotal
from evaluand.report.text import safe

_CELL = 400


def usage_totals(usage: Any) -> Iterator[tuple[str, UsageTotal]]:
    """The total of a run, without a name, or those of an evaluation by scorer, as their manifests have them."""
    if not isinstance(usage, Mapping):
        return
    named = [("", usage)] if "rows" in usage else usage.items()
    for name, one in named:
        if total := UsageTotal.read(one):
            yield name, total


def usage_lines(usage: Any) -> Iterator[str]:
    """A line for a run, and one for each judge of an evaluation."""
    for name, total in usage_totals(usage):
        yield safe(f"{name}: {total}" if name else str(total), _CELL)


def step_usage_lines(step: Mapping[str, Any]) -> Iterator[str]:
    """What a step has used now, a line for a run or matches, and one for each judge of an evaluation.

    What rows have used that were reused or made before stands in parentheses, since it was paid then.

    Args:
        step: with `usage`, that of all rows, and `receipt`, as facts have them.
    """
    receipt = step.get("receipt")
    if receipt is None:
        return (yield from usage_lines(step.get("usage")))
    made_now = None if receipt["usage"] is None else dict(usage_totals(receipt["usage"]))
    for name, total in usage_totals(step.get("usage")):
        now = UsageTotal() if made_now is None else made_now.get(name, UsageTotal())
        text = (
            str(now) if now else "nothing asked now" if made_now is not None else "what this process asked is unknown"
        )
        if earlier := total.without(now):
            text += f" (rows made {'earlier' if made_now is not None else 'by any process'}: {earlier})"
        yield safe(f"{name}: {text}" if name else text, _CELL)


def command_usage(steps: Iterable[Mapping[str, Any] | None]) -> UsageTotal:
    """What the steps of a command have used now, together."""
    return total_used((step or {}).get("receipt") or {} for step in steps)


def spent_text(manifest: Mapping[str, Any]) -> str:
    """What making a run, an evaluation or matches has cost, where that is not what its rows have used.

    Rows that were reused were paid before; calls that were interrupted were paid and have no row.
    """
    spent = _brief_spent(manifest)
    return safe(f"{spent}, without reused rows and with interrupted calls", _CELL) if spent else ""


def _brief_spent(manifest: Mapping[str, Any]) -> str:
    """The cost of making an artifact; empty where it is that of its rows."""
    whole, spent = total_used([manifest]), total_spent([manifest])
    currencies = whole.cost.keys() | spent.cost.keys()
    if all(math.isclose(whole.cost.get(each, 0.0), spent.cost.get(each, 0.0), rel_tol=1e-9) for each in currencies):
        return ""
    return " and ".join(spent.costs()) or "nothing"


def total_used(made: Iterable[Mapping[str, Any]]) -> UsageTotal:
    """What the rows of some artifacts have used.

    Args:
        made: their manifests, or facts with the same `usage`.
    """
    whole = UsageTotal()
    for _, total in (used for each in made for used in usage_totals(each.get("usage"))):
        whole.merge(total)
    return whole


def total_spent(made: Iterable[Mapping[str, Any]]) -> UsageTotal:
    """What making some artifacts has cost, without the rows that they reuse.

    Args:
        made: their manifests, or facts with the same `spent`: costs by currency, in parts or not.
    """
    total = UsageTotal()
    for costs in (each.get("spent") or {} for each in made):
        for one in costs.values() if any(isinstance(cost, Mapping) for cost in costs.values()) else [costs]:
            total.merge(UsageTotal.read({"cost": one}))
    return total


def whole_cost(steps: Iterable[Mapping[str, Any]]) -> str:
    """What making some artifacts has cost, each counted once, and of how many rows that is unknown.

    Args:
        steps: facts with `id`, `usage` and `spent`.

    Returns:
        An empty text if no request was made.
    """
    made = {step["id"]: step for step in steps}.values()
    used = total_used(made)
    return replace(used, cost=dict.fromkeys(used.cost, 0.0) | total_spent(made).cost).describe_cost()


def brief_usage(entry: Mapping[str, Any], row: str = "row") -> str:
    """Tokens and cost of the rows of an artifact together, and what making it has cost if that differs.

    Args:
        entry: with `usage` and `spent`, as its manifest has them.
        row: the word for what was counted.
    """
    if not entry.get("usage"):
        return ""
    whole = total_used([entry])
    tokens, cost = whole.input_tokens + whole.output_tokens, whole.describe_cost(row)
    cost = cost if whole.cost else f"cost {cost}" if cost else ""
    parts = [part for part in (f"{tokens:,} tokens" if tokens else "", cost) if part]
    spent = _brief_spent(entry) if parts else ""
    return ", ".join(parts) + (f" (spent {spent})" if spent else "")


def usage_cells(totals: Sequence[UsageTotal]) -> tuple[list[str], list[list[str]]]:
    """The headings of the columns that any total fills, and the cells of each total."""
    rows = [_cells(total) for total in totals]
    heads = [head for head in _HEADS if any(row[head] for row in rows)]
    return heads, [[safe(row[head] or "–", _CELL) for head in heads] for row in rows]


_HEADS = ("requests", "failed", "from the cache", "tokens in", "tokens out", "cost")


def _cells(total: UsageTotal) -> dict[str, str]:
    tokens = _coverage(total.rows - total.without_tokens, total.rows)
    cost = " + ".join(total.costs()) + _coverage(total.rows - total.without_cost, total.rows) if total.cost else ""
    counts = {"requests": total.requests, "failed": total.failed, "from the cache": total.cached}
    return {name: f"{count:,}" if count else "" for name, count in counts.items()} | {
        "tokens in": f"{total.input_tokens:,}{tokens}" if total.input_tokens else "",
        "tokens out": f"{total.output_tokens:,}{tokens}" if total.output_tokens else "",
        "cost": cost or ("unknown" if total.without_cost else ""),
    }


def _coverage(known: int, of: int) -> str:
    """How many of all rows have a known value; empty if all have."""
    return "" if known == of else f" ({known:,} of {of:,} rows known)"
