"""What runs and judges have used, as lines and cells of tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
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


def spent_text(manifest: Mapping[str, Any]) -> str:
    """What making a run, an evaluation or matches has cost, where that is not what its rows have used.

    Rows that were reused were paid before; calls that were interrupted were paid and have no row.
    """
    whole, spent = UsageTotal(), UsageTotal()
    for _, total in usage_totals(manifest.get("usage")):
        whole.merge(total)
    costs = manifest.get("spent") or {}
    for one in costs.values() if any(isinstance(cost, Mapping) for cost in costs.values()) else [costs]:
        spent.merge(UsageTotal.read({"cost": one}))
    currencies = whole.cost.keys() | spent.cost.keys()
    if all(math.isclose(whole.cost.get(each, 0.0), spent.cost.get(each, 0.0), rel_tol=1e-9) for each in currencies):
        return ""
    return safe(f"{' and '.join(spent.costs()) or 'nothing'}, without reused rows and with interrupted calls", _CELL)


def brief_usage(usage: Any) -> str:
    """Tokens and cost of a run, or of all judges of an evaluation together; empty where nothing is known."""
    whole = UsageTotal()
    for _, total in usage_totals(usage):
        whole.merge(total)
    tokens = whole.input_tokens + whole.output_tokens
    return ", ".join([*([f"{tokens:,} tokens"] if tokens else []), *([whole.describe_cost()] if whole.cost else [])])


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
