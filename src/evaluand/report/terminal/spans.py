"""The spans of a call for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import orjson
from orjson import Fragment
from rich.console import Group, RenderableType
from rich.text import Text

from evaluand.report.facts.base import Facts
from evaluand.report.terminal.cells import CELL, LINES, long_text, name_values
from evaluand.report.text import safe
from evaluand.trace import STATUSES, Trace
from evaluand.trace.record import CALL


def span_contents(spans: Sequence[Facts]) -> Iterator[RenderableType]:
    """The contents of each span that has any."""
    contents = ((span, list(_span_values(span))) for span in spans)
    full = [(span, pairs) for span, pairs in contents if pairs]
    for span, pairs in full[: 2 * LINES]:
        kind = "" if span["kind"] in ("span", "task") else f" ({safe(span['kind'], CELL)})"
        yield Group(Text(f"  {safe(span['name'], CELL)}{kind}", "bold"), name_values(pairs, "    "))
    if (more := len(full) - 2 * LINES) > 0:
        yield Text(f"  and {more:,} more spans (--json lists all)", "dim")


def _span_values(span: Facts) -> Iterator[tuple[str, str]]:
    for name in ("input", "output"):
        if span[name] is not None and span["span"] != 0:  # those of the call itself are shown above
            yield name, long_text(orjson.loads(span[name]))
    for name, value in orjson.loads(span["attributes"] or "{}").items():
        if name != CALL:
            yield name, long_text(value)
        elif isinstance(value, dict) and value.get("arguments"):
            yield "with", long_text(value["arguments"])  # in addition to its input
    for name, _, body in orjson.loads(span["events"] or "[]"):
        yield name, long_text(body)


def request_and_reply(span: Facts) -> Iterator[tuple[str, str]]:
    """The beginning of the request to a service, and its reply if that was no answer."""
    for name, _, body in orjson.loads(span["events"] or "[]") if span["span"] == 0 else ():
        if name in ("request", "answer") and isinstance(body, str):
            yield name, safe(body, 2 * CELL)


def span_tree(row: Facts, task: str) -> str:
    """The spans of a call as a tree, shortened where there are many."""
    spans = [
        [s["span"], s["parent"], s["name"], s["kind"], s["start"], s["duration"], STATUSES.index(s["status"])]
        + [None if s[name] is None else Fragment(s[name]) for name in ("input", "output", "attributes", "events")]
        for s in row["spans"]
    ]
    status = "error" if row["error"] else "ok"
    end = None if row["duration"] is None else round(row["duration"] * 1e9)
    trace = Trace.from_rows(spans, name=task, end_ns=end, status=status)
    lines = trace.tree().splitlines()
    more = [f"… {len(lines) - 2 * LINES:,} more spans"] if len(lines) > 2 * LINES else []
    return "\n".join([safe(line, 2 * CELL) for line in lines[: 2 * LINES]] + more)
