"""Spans as text, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluand.trace.values import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evaluand.trace.spans import Span


def tree(spans: Iterable[Span], root: Span) -> str:
    """Spans indented below their parents, with their durations."""
    children: dict[int | None, list[Span]] = {}
    for each in spans:
        children.setdefault(each.parent, []).append(each)
    lines = []
    waiting: list[tuple[Span, str, str]] = [(root, "", "")]
    while waiting:  # not recursive: agents nest deeply
        each, branch, indent = waiting.pop()
        lines.append(branch + label(each))
        below = [(child, indent + "├─ ", indent + "│  ") for child in children.get(each.number, [])]
        if below:
            below[-1] = (below[-1][0], indent + "└─ ", indent + "   ")
        waiting += reversed(below)
    return "\n".join(lines)


def label(span: Span) -> str:
    """Name, kind, duration and failure of a span in one line."""
    kind = "" if span.kind in ("span", "task") else f" ({span.kind})"
    return one_line(f"{span.name}{kind} {_time(span)}{_failure(span)}")


def _time(span: Span) -> str:
    if span.end_ns is None:
        return "open" if hasattr(span, "_is_open") else "time unknown"
    return _format_duration(span.end_ns - span.start_ns)


def _failure(span: Span) -> str:
    if span.status != "error":
        return ""
    bodies = [event.body for event in span.events if event.name == "exception"]
    if not bodies or not isinstance(bodies[-1], dict):
        return " error"
    kind, message = (bodies[-1].get(name) for name in ("type", "message"))
    text = "was cancelled" if kind == "CancelledError" else f"{kind}: {message}" if message else kind
    return f" error: {text}"


def _format_duration(ns: int) -> str:
    if ns < 0:  # foreign times may be inconsistent
        return f"ended {_format_duration(-ns)} before it began"
    if ns < 999_500:
        return f"{ns / 1e3:.0f} µs"
    if ns < 999_500_000:
        return f"{ns / 1e6:.3g} ms"
    return f"{ns / 1e9:.3g} s" if ns < 60e9 else f"{ns / 60e9:.0f} min {ns % 60e9 / 1e9:.0f} s"
