"""Facts read from the trace of a call: its latency and the number of generated tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from evaluand.interop.pharia.domain import Refused
from evaluand.trace.export import ExportedSpan, TaskSpanAttributes

_GENERATED = ("num_tokens_generated", "completion_tokens", "output_tokens")


def extract_latency_from_trace(trace: Sequence[ExportedSpan]) -> int:
    """The duration of the call, in microseconds.

    Raises:
        Refused: the trace has no root span.
    """
    root = next((span for span in trace if span.parent_id is None), None)
    if root is None:
        raise Refused("the trace has no span without a parent")
    return (root.end_time - root.start_time) // timedelta(microseconds=1)


def extract_token_count_from_trace(trace: Sequence[ExportedSpan]) -> int:
    """The number of generated tokens, summed over the innermost spans whose outputs report it.

    An output reports it as `num_tokens_generated`, or in its `usage` as `completion_tokens` or `output_tokens`.
    """
    counts = {span.context.span_id: _token_count(span) for span in trace}
    parents = {span.context.span_id: span.parent_id for span in trace}
    reported_below: set[UUID] = set()
    for id, count in counts.items():
        above = parents[id] if count is not None else None
        while above is not None and above not in reported_below:
            reported_below.add(above)
            above = parents.get(above)
    return sum(count for id, count in counts.items() if count is not None and id not in reported_below)


def _token_count(span: ExportedSpan) -> int | None:
    if not isinstance(span.attributes, TaskSpanAttributes):
        return None
    output = span.attributes.output
    for part in (output, _item(output, "usage")):
        for name in _GENERATED:
            if isinstance(count := _item(part, name), int):
                return count
    return None


def _item(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
