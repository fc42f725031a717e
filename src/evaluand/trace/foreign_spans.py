"""Spans that other systems have written, read as traces.

Three forms are known: OTLP as JSON (`resourceSpans`), as collectors and exporters write it; spans as OpenTelemetry's
Python SDK prints them; and those of OpenInference with nested attributes and `span_kind`, as Phoenix exports them.
Attributes of GenAI and OpenInference become kinds, inputs, outputs and native attributes (`conventions`).
"""

from __future__ import annotations

import base64
import heapq
import json
import os
import reprlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson

from evaluand.core.errors import DataError, Fault, warn, with_article
from evaluand.trace import STATUSES, Span, TaskSpan, Trace, conventions, nanoseconds

GATHERED = "trace"
"""The name of the root that is put above spans which have none in common."""

_HOLDERS = ("resourceSpans",), ("scopeSpans", "instrumentationLibrarySpans"), ("spans",)


def read_spans(path: str | os.PathLike[str], *, stack_traces: bool = False) -> list[Trace]:
    """The traces in a file: JSON documents, one after another, with or without line breaks in them.

    What is no span, and a trace whose spans do not fit together, is left out with a warning (`EvaluandWarning`).
    Another one tells how many spans stand at the top of their traces because their parents are not there.

    Raises:
        DataError: it cannot be read, or holds no spans of a known form; names the place.
    """
    place = os.fspath(path)
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise DataError(Fault(place, f"cannot be read: {error.strerror}")) from None
    return traces_of(_documents(text, place), stack_traces=stack_traces, where=place)


def traces_of(documents: Iterable[Any], *, stack_traces: bool = False, where: str = "spans") -> list[Trace]:
    """The traces of parsed documents, in the order in which they begin.

    Args:
        documents: each a document of OTLP, a span, or a list of these.
        stack_traces: whether stack traces of exceptions are kept.
        where: what the documents are called in messages.

    Raises:
        DataError: there is nothing but what is left out: what is not a span of a known form, and traces whose spans do
            not fit together. Where there is more, a warning (`EvaluandWarning`) tells of these. Another one tells how
            many spans stand at the top of their traces because their parents are not there.

    Example:
        >>> span = {"traceId": "0a" * 16, "spanId": "0b" * 8, "name": "ask", "startTimeUnixNano": "1000",
        ...         "attributes": [{"key": "openinference.span.kind", "value": {"stringValue": "LLM"}}]}
        >>> print(traces_of([{"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}])[0])
        ask (llm) open
    """
    by_trace: dict[int, dict[int, _Told]] = {}
    faults: list[Fault] = []
    for document in documents:
        for span in _spans(document):
            try:
                told = _told(span)
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
                faults.append(Fault(_place(where, span), f"not a span: {_fault(error)}"))
            else:
                by_trace.setdefault(told.trace, {})[told.id] = told
    traces: list[Trace] = []
    for trace_id, spans in by_trace.items():
        try:
            traces.append(_trace(trace_id, list(spans.values()), stack_traces))
        except _Circle as error:
            faults.append(Fault(where, str(error)))
    if faults and not traces:
        raise DataError(faults[0])
    if faults:
        more = f" (and {len(faults) - 1} more such faults)" if len(faults) > 1 else ""
        warn(f"{faults[0]}; left out{more}")
    _tell_orphans(by_trace.values(), where)
    return sorted(traces, key=lambda trace: trace.root.start_ns)


def _tell_orphans(traces: Collection[Mapping[int, _Told]], where: str) -> None:
    orphans = [told for spans in traces for told in spans.values() if told.parent and told.parent not in spans]
    if orphans:
        n, of = len(orphans), sum(map(len, traces))
        names = reprlib.repr([orphan.name for orphan in orphans])
        told = f"{n:,} of {of:,} spans: the parent is not there, so each stands at the top of its trace: {names}"
        warn(f"{where}: {told}")


@dataclass
class _Told:
    """A span as it was told, in one form for all."""

    trace: int
    id: int
    parent: int
    name: str
    start: int
    end: int | None
    status: int
    message: str
    attributes: dict[str, Any]
    events: list[tuple[str, int, dict[str, Any]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not (0 <= self.trace < 2**128 and 0 < self.id < 2**64 and 0 <= self.parent < 2**64):
            raise ValueError("an id of a trace has 16 bytes, and one of a span 8, which are not all 0")
        times = self.start, self.end or 0, *(time for _, time, _ in self.events)
        if not all(0 <= time < 2**63 for time in times):
            raise ValueError("its times are not those from 1970 to 2262")


class _Circle(Exception):
    """Spans are one another's parents."""


def _documents(text: bytes, where: str) -> list[Any]:
    for parts in ([text], text.splitlines()):
        try:
            return [orjson.loads(part) for part in parts if part.strip()]
        except orjson.JSONDecodeError:
            pass
    return _one_after_another(text.decode("utf-8", "replace").rstrip(), where)


def _one_after_another(text: str, where: str) -> list[Any]:
    """Documents of several lines, or with NaN, as OpenTelemetry's exporter for the console writes them."""
    decoder, documents, place = json.JSONDecoder(), list[Any](), 0
    while place < len(text):
        if text[place].isspace():
            place += 1
            continue
        try:
            document, place = decoder.raw_decode(text, place)
        except (json.JSONDecodeError, RecursionError) as error:
            line = text.count("\n", 0, getattr(error, "pos", place)) + 1
            raise DataError(
                Fault(f"{where}:{line}", f"not JSON: {getattr(error, 'msg', 'nested too deeply')}")
            ) from None
        documents.append(document)
    return documents


def _place(where: str, span: Any) -> str:
    name = span.get("name") if isinstance(span, Mapping) else None
    return f"{where}, span {name!r}" if name else where


def _fault(error: Exception) -> str:
    return f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)


def _spans(document: Any) -> Iterator[Any]:
    """The spans of a document, and in their order what stands in a place of spans."""
    waiting = [(document, 0)]
    while waiting:
        each, depth = waiting.pop()
        if isinstance(each, list):
            waiting += ((item, depth) for item in reversed(each))
        elif isinstance(each, Mapping) and (depth or "resourceSpans" in each) and depth < len(_HOLDERS):
            waiting.append((next((each[name] for name in _HOLDERS[depth] if each.get(name)), []), depth + 1))
        else:
            yield each


def _told(span: Any) -> _Told:
    if not isinstance(span, Mapping):
        raise ValueError(f"it is {with_article(type(span).__name__)}")
    if "entry_type" in span:
        raise ValueError("it is a line of a FileTracer; open its file with FileTracer(path).traces()")
    return _otlp(span) if "spanId" in span else _printed(span)


def _otlp(span: Mapping[str, Any]) -> _Told:
    status = span.get("status") or {}
    end = int(span.get("endTimeUnixNano") or 0)
    return _Told(
        _id(span["traceId"]),
        _id(span["spanId"]),
        _id(span.get("parentSpanId") or "0"),
        str(span["name"]),
        int(span["startTimeUnixNano"]),
        end or None,
        _status(status.get("code", 0)),
        status.get("message", ""),
        _listed(span.get("attributes")),
        [
            (str(event["name"]), int(event["timeUnixNano"]), _listed(event.get("attributes")))
            for event in span.get("events") or ()
        ],
    )


def _printed(span: Mapping[str, Any]) -> _Told:
    """A span as the SDK prints it, or as OpenInference exports it."""
    status = span.get("status") or {"status_code": span.get("status_code"), "description": span.get("status_message")}
    attributes = dict(conventions.flat(span.get("attributes") or {}))
    if span.get("span_kind"):
        attributes.setdefault("openinference.span.kind", span["span_kind"])
    return _Told(
        _id(span["context"]["trace_id"]),
        _id(span["context"]["span_id"]),
        _id(span.get("parent_id") or "0"),
        str(span["name"]),
        _time(span["start_time"]),
        _time(span["end_time"]) if span.get("end_time") else None,
        _status(status.get("status_code")),
        status.get("description") or "",
        attributes,
        [
            (str(event["name"]), _time(event["timestamp"]), dict(event.get("attributes") or {}))
            for event in span.get("events") or ()
        ],
    )


def _id(text: str) -> int:
    try:
        return int(text, 16)
    except ValueError:  # protobuf's own JSON writes bytes in base64
        raw = base64.b64decode(text, validate=True)
        if len(raw) not in (8, 16):
            raise ValueError(f"{text!r} is no id") from None
        return int.from_bytes(raw, "big")


def _time(text: str) -> int:
    return nanoseconds(datetime.fromisoformat(text))


def _status(code: Any) -> int:
    """An index into `STATUSES`; what was not told to have failed is well."""
    return STATUSES.index("error" if str(code).rpartition("_")[2] in ("2", "ERROR") else "ok")


def _listed(attributes: Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
    return {str(attribute["key"]): _any_value(attribute.get("value") or {}) for attribute in attributes or ()}


def _any_value(value: Mapping[str, Any]) -> Any:
    for kind, told in value.items():
        if kind == "intValue":
            return int(told)
        if kind == "arrayValue":
            return [_any_value(item) for item in told.get("values") or ()]
        if kind == "kvlistValue":
            return _listed(told.get("values"))
        if kind == "bytesValue":
            return base64.b64decode(told)
        return told
    return None


def _trace(trace_id: int, spans: list[_Told], stack_traces: bool) -> Trace:
    known = {told.id for told in spans}
    below: dict[int, list[_Told]] = {}
    for told in spans:
        below.setdefault(told.parent if told.parent in known else 0, []).append(told)
    tops = below.get(0, [])
    trace = Trace()
    trace._id = UUID(int=trace_id)
    made: dict[int, Span] = {}
    if len(tops) > 1:
        made[0] = _gathering(trace, spans)
    waiting = [(told.start, told.id, told) for told in tops]
    heapq.heapify(waiting)
    while waiting:  # in order of time, but none before its parent
        *_, told = heapq.heappop(waiting)
        above = made.get(told.parent) or made.get(0)
        made[told.id] = _span(trace, above, told, stack_traces)
        for child in below.get(told.id, ()):
            heapq.heappush(waiting, (child.start, child.id, child))
    if len(made) - (0 in made) < len(spans):
        names = ", ".join(repr(told.name) for told in spans if told.id not in made)
        raise _Circle(f"the spans {names} are one another's parents")
    return trace


def _gathering(trace: Trace, spans: Sequence[_Told]) -> Span:
    root = TaskSpan(trace, None, GATHERED, "task", None, {})
    ends = [told.end for told in spans]
    root.start_ns = min(told.start for told in spans)
    root.end_ns = None if None in ends else max(end for end in ends if end is not None)
    root._status = max(told.status for told in spans)
    return root


def _span(trace: Trace, above: Span | None, told: _Told, stack_traces: bool) -> Span:
    kind, given, gave, attributes = conventions.understood(told.name, told.attributes)
    if told.message and not any(name == "exception" for name, *_ in told.events):
        attributes["status_message"] = told.message
    span = trace.kinds[kind == "task"](trace, above, told.name, kind, given, attributes)
    span.record_output(gave)
    for name, time, body in told.events:
        event = _exception(body, stack_traces) if name == "exception" else _body(body)
        span._events.append((name, time, span._kept(event, "events", name)))
    span._id = UUID(int=(trace.id.int >> 64 << 64) | told.id)
    span.start_ns, span.end_ns, span._status = told.start, told.end, 0 if told.end is None else told.status
    return span


def _exception(body: Mapping[str, Any], stack_traces: bool) -> dict[str, Any]:
    event = {"type": body.get("exception.type", "Exception"), "message": body.get("exception.message", "")}
    where = body.get("exception.stacktrace")
    return event | {"stack_trace": where} if stack_traces and where else event


def _body(body: dict[str, Any]) -> Any:
    """A value as `OpenTelemetryTracer` writes it, or all attributes of the event."""
    if body.keys() == {"value"} and isinstance(body["value"], str):
        try:
            return orjson.loads(body["value"])
        except orjson.JSONDecodeError:
            return body["value"]
    return body
