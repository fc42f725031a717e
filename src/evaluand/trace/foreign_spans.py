"""Read spans that other systems have written, as traces.

Three formats are supported: OTLP as JSON (`resourceSpans`), as collectors and exporters write it; spans as
OpenTelemetry's Python SDK prints them; and spans of OpenInference with nested attributes and `span_kind`, as Phoenix
exports them, also as rows of a data frame with a column for each attribute. Attributes of GenAI and OpenInference
become kinds, inputs, outputs and native attributes (`conventions`).
"""

from __future__ import annotations

import base64
import heapq
import json
import os
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson

from evaluand.core.errors import DataError, Fault, warn, with_article
from evaluand.trace import conventions
from evaluand.trace.spans import STATUSES, Span, TaskSpan
from evaluand.trace.traces import Trace
from evaluand.trace.values import fault_message, nanoseconds

COMMON_ROOT = "trace"
"""The name of the root that is added above spans without a common root."""

HOLDERS = ("resourceSpans",), ("scopeSpans", "instrumentationLibrarySpans"), ("spans",)
"""The keys under which OTLP has spans, from the outside in."""


def read_spans(path: str | os.PathLike[str], *, stack_traces: bool = False) -> list[Trace]:
    """Read the traces in a file of JSON documents, with or without line breaks in them; see `traces_of`.

    Raises:
        DataError: the file cannot be read, or holds no spans of a supported format; names the place.
    """
    place = os.fspath(path)
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise DataError(Fault(place, f"cannot be read: {error.strerror}")) from None
    return traces_of(_documents(text, place), stack_traces=stack_traces, where=place)


def traces_of(documents: Iterable[Any], *, stack_traces: bool = False, where: str = "spans") -> list[Trace]:
    """The traces of parsed documents, ordered by their start.

    Documents that are not spans, and traces whose spans form a cycle, are left out with a warning (`EvaluandWarning`).
    Another warning counts the spans whose parents are missing; these are placed at the top of their traces.

    Args:
        documents: OTLP documents, spans, or lists of these.
        stack_traces: whether to read stack traces of exceptions.
        where: the name of the documents in messages.

    Raises:
        DataError: no trace is left.

    Example:
        >>> span = {"traceId": "0a" * 16, "spanId": "0b" * 8, "name": "ask", "startTimeUnixNano": "1000",
        ...         "attributes": [{"key": "openinference.span.kind", "value": {"stringValue": "LLM"}}]}
        >>> print(traces_of([{"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}])[0])
        ask (llm) open
    """
    found = read_traces(documents, stack_traces=stack_traces, where=where)
    if found.faults and not found.traces:
        raise DataError(found.faults[0])
    if found.faults:
        more = f" (and {len(found.faults) - 1} more such faults)" if len(found.faults) > 1 else ""
        warn(f"{found.faults[0]}; left out{more}")
    if found.orphans:
        warn(f"{where}: {describe_orphans(found.orphans, found.n_spans)}")
    return found.traces


@dataclass
class FoundTraces:
    """The traces of some documents, and what is wrong with them.

    Attributes:
        traces: ordered by their start.
        n_spans: how many spans were found.
        faults: of documents that are not spans, and of traces whose spans form a cycle.
        orphans: the names of the spans whose parents are missing.
    """

    traces: list[Trace]
    n_spans: int
    faults: list[Fault]
    orphans: list[str]


def read_traces(documents: Iterable[Any], *, stack_traces: bool = False, where: str = "spans") -> FoundTraces:
    """As `traces_of`, without warnings and errors."""
    by_trace: dict[int, dict[int, _SpanData]] = {}
    faults: list[Fault] = []
    for document in documents:
        for span in spans_of(document):
            try:
                data = _read_span(span)
            except UNREADABLE as error:
                faults.append(Fault(_place(where, span), f"not a span: {fault_message(error)}"))
            else:
                by_trace.setdefault(data.trace, {})[data.id] = data
    traces: list[Trace] = []
    for trace_id, spans in by_trace.items():
        try:
            traces.append(_build_trace(trace_id, list(spans.values()), stack_traces))
        except _SpanCycle as error:
            faults.append(Fault(where, str(error)))
    all_spans = [(span, known) for known in by_trace.values() for span in known.values()]
    orphans = [span.name for span, known in all_spans if span.parent and span.parent not in known]
    return FoundTraces(sorted(traces, key=lambda trace: trace.root.start_ns), len(all_spans), faults, orphans)


UNREADABLE = (KeyError, TypeError, ValueError, AttributeError, OverflowError)
"""What reading something else than a span raises."""


def describe_orphans(names: Sequence[str], n_spans: int) -> str:
    """How many spans have no parent, and their names, in words."""
    have, are, their = ("has", "is", "its trace") if len(names) == 1 else ("have", "are", "their traces")
    return (
        f"{len(names):,} of {n_spans:,} spans {have} no parent in the input and {are} placed at the top "
        f"of {their}: {reprlib.repr([*names])}"
    )


@dataclass
class _SpanData:
    """A span of any format, before it becomes part of a trace."""

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
            raise ValueError("a trace id needs 16 bytes and a span id 8, which are not all 0")
        times = self.start, self.end or 0, *(time for _, time, _ in self.events)
        if not all(0 <= time < 2**63 for time in times):
            raise ValueError("its times must lie between 1970 and 2262")


class _SpanCycle(Exception):
    """Spans are each other's parents."""


def _documents(text: bytes, where: str) -> list[Any]:
    text = text.removeprefix(b"\xef\xbb\xbf")
    for parts in ([text], text.splitlines()):
        try:
            return [orjson.loads(part) for part in parts if part.strip()]
        except orjson.JSONDecodeError:
            pass
    return _decode_sequence(text.decode("utf-8", "replace").rstrip(), where)


def _decode_sequence(text: str, where: str) -> list[Any]:
    """Decode documents of several lines, or with NaN, as OpenTelemetry's console exporter writes them."""
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


def spans_of(document: Any) -> Iterator[Any]:
    """The spans of a document, and other items in place of spans, in order."""
    waiting = [(document, 0)]
    while waiting:
        each, depth = waiting.pop()
        if isinstance(each, list):
            waiting += ((item, depth) for item in reversed(each))
        elif isinstance(each, Mapping) and (depth or "resourceSpans" in each) and depth < len(HOLDERS):
            waiting.append((next((each[name] for name in HOLDERS[depth] if each.get(name)), []), depth + 1))
        else:
            yield each


def _read_span(span: Any) -> _SpanData:
    if not isinstance(span, Mapping):
        raise ValueError(f"it is {with_article(type(span).__name__)}")
    if "entry_type" in span:
        raise ValueError("it is a line of a FileTracer; read its file with FileTracer(path).traces()")
    return _read_otlp(span) if "spanId" in span else _read_printed(span)


def trace_id_of(span: Any) -> int:
    """The trace to which a span belongs.

    Raises:
        KeyError, TypeError, ValueError: it is not a span; see `UNREADABLE`.

    Example:
        >>> trace_id_of({"traceId": "0000000000000000000000000000002a", "spanId": "000000000000002b"})
        42
    """
    if "context.span_id" in span:
        return _id(span["context.trace_id"])
    return _id(span["traceId"] if "spanId" in span else span["context"]["trace_id"])


def _read_otlp(span: Mapping[str, Any]) -> _SpanData:
    status = span.get("status") or {}
    end = _read_nanoseconds(span.get("endTimeUnixNano") or 0)
    return _SpanData(
        _id(span["traceId"]),
        _id(span["spanId"]),
        _id(span.get("parentSpanId") or "0"),
        str(span["name"]),
        _read_nanoseconds(span["startTimeUnixNano"]),
        end or None,
        _status(status.get("code", 0)),
        status.get("message", ""),
        _attribute_dict(span.get("attributes")),
        [
            (str(event["name"]), _read_nanoseconds(event["timeUnixNano"]), _attribute_dict(event.get("attributes")))
            for event in span.get("events") or ()
        ],
    )


def _read_printed(span: Mapping[str, Any]) -> _SpanData:
    """Read a span as the SDK prints it, or as OpenInference exports it."""
    if "context.span_id" in span:
        span = {**span, "context": _members(span, "context."), "attributes": _members(span, "attributes.")}
    status = span.get("status") or {"status_code": span.get("status_code"), "description": span.get("status_message")}
    attributes = dict(conventions.flatten(span.get("attributes") or {}))
    if span.get("span_kind"):
        attributes.setdefault("openinference.span.kind", span["span_kind"])
    return _SpanData(
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


def _members(row: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """What the columns with a prefix hold; empty ones are of other rows."""
    return {name[len(prefix) :]: value for name, value in row.items() if name.startswith(prefix) and value is not None}


def _id(text: str) -> int:
    try:
        return int(text, 16)
    except ValueError:  # protobuf's own JSON writes bytes in base64
        raw = b""
        with suppress(ValueError):
            raw = base64.b64decode(text, validate=True)
        if len(raw) not in (8, 16):
            raise ValueError(f"{text!r:.80} is not an id") from None
        return int.from_bytes(raw, "big")


def _read_nanoseconds(nanoseconds: Any) -> int:
    try:
        return int(nanoseconds)
    except (TypeError, ValueError):
        raise ValueError(f"{nanoseconds!r:.80} is not a time in nanoseconds") from None


def _time(time: str | int) -> int:
    """Nanoseconds of a time in ISO 8601, or in milliseconds, as pandas writes it."""
    return time * 1_000_000 if isinstance(time, int) else nanoseconds(datetime.fromisoformat(time))


def _status(code: Any) -> int:
    """An index into `STATUSES`; `ok` unless the span failed."""
    return STATUSES.index("error" if str(code).rpartition("_")[2] in ("2", "ERROR") else "ok")


def _attribute_dict(attributes: Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
    return {str(attribute["key"]): _any_value(attribute.get("value") or {}) for attribute in attributes or ()}


def _any_value(value: Mapping[str, Any]) -> Any:
    for kind, item in value.items():
        if kind == "intValue":
            return int(item)
        if kind == "arrayValue":
            return [_any_value(each) for each in item.get("values") or ()]
        if kind == "kvlistValue":
            return _attribute_dict(item.get("values"))
        if kind == "bytesValue":
            return base64.b64decode(item)
        return item
    return None


def _build_trace(trace_id: int, spans: list[_SpanData], stack_traces: bool) -> Trace:
    known = {span.id for span in spans}
    below: dict[int, list[_SpanData]] = {}
    for span in spans:
        below.setdefault(span.parent if span.parent in known else 0, []).append(span)
    tops = below.get(0, [])
    trace = Trace()
    trace._id = UUID(int=trace_id)
    built: dict[int, Span] = {}
    if len(tops) > 1:
        built[0] = _make_common_root(trace, spans)
    waiting = [(span.start, span.id, span) for span in tops]
    heapq.heapify(waiting)
    while waiting:  # in order of time, but parents first
        *_, span = heapq.heappop(waiting)
        above = built.get(span.parent) or built.get(0)
        built[span.id] = _build_span(trace, above, span, stack_traces)
        for child in below.get(span.id, ()):
            heapq.heappush(waiting, (child.start, child.id, child))
    if len(built) - (0 in built) < len(spans):
        names = ", ".join(repr(span.name) for span in spans if span.id not in built)
        raise _SpanCycle(f"the spans {names} are each other's parents")
    return trace


def _make_common_root(trace: Trace, spans: Sequence[_SpanData]) -> Span:
    root = TaskSpan(trace, None, COMMON_ROOT, "task", None, {})
    ends = [span.end for span in spans]
    root.start_ns = min(span.start for span in spans)
    root.end_ns = None if None in ends else max(end for end in ends if end is not None)
    root._status = max(span.status for span in spans)
    return root


def _build_span(trace: Trace, above: Span | None, data: _SpanData, stack_traces: bool) -> Span:
    kind, input, output, attributes = conventions.read_attributes(data.name, data.attributes)
    if data.message and not any(name == "exception" for name, *_ in data.events):
        attributes["status_message"] = data.message
    span = trace.kinds[kind == "task"](trace, above, data.name, kind, input, attributes)
    span.record_output(output)
    for name, time, body in data.events:
        event = _exception(body, stack_traces) if name == "exception" else _event_body(body)
        span._events.append((name, time, span._storable(event, "events", name)))
    span._id = UUID(int=(trace.id.int >> 64 << 64) | data.id)
    span.start_ns, span.end_ns, span._status = data.start, data.end, 0 if data.end is None else data.status
    return span


def _exception(body: Mapping[str, Any], stack_traces: bool) -> dict[str, Any]:
    event = {"type": body.get("exception.type", "Exception"), "message": body.get("exception.message", "")}
    where = body.get("exception.stacktrace")
    return event | {"stack_trace": where} if stack_traces and where else event


def _event_body(body: dict[str, Any]) -> Any:
    """A value as `OpenTelemetryTracer` writes it, or all attributes of the event."""
    if body.keys() == {"value"} and isinstance(body["value"], str):
        try:
            return orjson.loads(body["value"])
        except orjson.JSONDecodeError:
            return body["value"]
    return body
