"""Traces as OTLP in JSON lines, one request for each call, with its grades by OpenTelemetry's GenAI conventions.

A call has the spans that its run has stored, or one span. Each grade is an event `gen_ai.evaluation.result` of the span
of the call. What the conventions have no name for, such as the example, has attributes that begin with `evaluand.`;
the importer of spans reads them again.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from evaluand._version import __version__
from evaluand.core.errors import plural
from evaluand.core.files.paths import replaced
from evaluand.core.identity import digest
from evaluand.exchange.exporter import Exporter, Result, Sample, own_columns, text_of
from evaluand.report.export import json_line
from evaluand.report.facts.base import Facts
from evaluand.store.tables import COMPLETED, FAILED
from evaluand.trace.conventions import (
    COLUMN,
    GRADE,
    GRADE_EVENT,
    OWN,
    named_attributes,
    plain_text,
    span_attributes,
    value_attributes,
)
from evaluand.trace.export import json_text
from evaluand.trace.spans import Event, Span
from evaluand.trace.traces import Trace
from evaluand.trace.values import nanoseconds


class OTel(Exporter):
    """Traces of OpenTelemetry."""

    kind: ClassVar[str] = "otel"

    def write(self, result: Result, path: Path) -> list[Path]:
        request, untimed = _Request(result), 0
        with replaced(path) as file:
            for sample, trace in result.traces():
                file.write(json_line(request.of(sample, trace)) + b"\n")
                untimed += sample.call["started"] is None
        if untimed:
            self.notes.append(f"{plural(untimed, 'call')} without a time: their spans have that of the run")
        if result.values:
            self.notes.append("values of metrics left out: traces have no place for them")
        return [path]


class _Request:
    """The request of a trace, as collectors receive it."""

    def __init__(self, result: Result) -> None:
        self._result = result
        self._begun = _time(result.run.manifest["created"])
        self._graded = _time(result.newest["sealed"])
        self._resource = {"attributes": _attributes({"service.name": result.system})}
        dataset = result.run.dataset
        self._about = {
            "system": result.system,
            "problem": result.problem,
            "run.id": result.run.id,
            "run.digest": result.run.manifest["digest"],
            "dataset.name": dataset.name,
            "dataset.digest": dataset.digest,
        }

    def of(self, sample: Sample, trace: Trace) -> Facts:
        if sample.call["started"] is None:
            _move(trace, self._begun)
        id = digest([self._result.run.id, *sample.key]).hex()
        spans = [_span(span, id) for span in trace.spans]
        self._complete(spans[0], sample, trace)
        scopes = [{"scope": {"name": "evaluand", "version": __version__}, "spans": spans}]
        return {"resourceSpans": [{"resource": self._resource, "scopeSpans": scopes}]}

    def _complete(self, root: Facts, sample: Sample, trace: Trace) -> None:
        """Adds to the span of a call what is known of it besides its spans, and its grades."""
        call, graded = sample.call, [named for named, _ in sample.all_grades()]
        events = [each for each in trace.root.events if not _is_grade_by(each, graded)]
        about = self._about | _facts(sample)
        root["status"] = {"code": _OK}
        if call["status"] != COMPLETED:
            error = {"type": call["error_type"] or call["status"], "message": call["error_message"] or ""}
            root["status"] = {"code": _ERROR, "message": plain_text(error["message"])}
            root["attributes"] += _attributes({"error.type": error["type"]})
            if not any(each.name == "exception" and _same_error(each.body, error) for each in events):
                events.append(Event("exception", trace.root.end_ns or trace.root.start_ns, error))
        stored = {each["key"] for each in root["attributes"]}
        root["attributes"] += _attributes({OWN + k: v for k, v in about.items() if OWN + k not in stored})
        root["events"] = [*map(_event, events), *self._grades(sample, trace)]

    def _grades(self, sample: Sample, trace: Trace) -> Iterator[Facts]:
        specs = self._result.newest["spec"].get("scorers", {})
        response = next(filter(None, (span.attribute("gen_ai.response.id") for span in reversed(trace.spans))), None)
        for name, row in sample.all_grades():
            said = {
                f"{GRADE}name": name,
                f"{GRADE}score.value": row["value"],
                f"{GRADE}score.label": row["label"],
                f"{GRADE}explanation": row["explanation"],
                "gen_ai.response.id": response,
                "error.type": _OTHER_ERROR if row["status"] == FAILED else None,
            }
            spec = specs[row["scorer"]]
            ours = {
                "score.status": row["status"],
                "score.reason": row["reason"],
                "score.answer": row["_response_index_"],
                "scorer.kind": spec.get("kind"),
                "scorer.version": text_of(spec.get("version", spec.get("fingerprint"))),
            }
            columns = {COLUMN + name: value for name, value in own_columns(row).items()}
            if f"{COLUMN}data" in columns:
                columns[f"{COLUMN}data"] = json_text(columns[f"{COLUMN}data"]).decode()
            attributes = said | {OWN + key: value for key, value in ours.items()} | columns
            yield {"name": GRADE_EVENT, "timeUnixNano": str(self._graded), "attributes": _attributes(attributes)}


_CLIENTS: Final = ("llm", "embedding")
_INTERNAL, _CLIENT = 1, 3
_OK, _ERROR = 1, 2
_CODES: Final = {"unset": 0, "ok": _OK, "error": _ERROR}
_OTHER_ERROR: Final = "_OTHER"
"""The class of an error that the conventions give where it is unknown."""


def _time(text: str) -> int:
    return nanoseconds(dt.datetime.fromisoformat(text))


def _move(trace: Trace, start: int) -> None:
    """Lets a trace without times begin at a time."""
    for span in trace.spans:
        span.start_ns += start
        span.end_ns = None if span.end_ns is None else span.end_ns + start


def _span(span: Span, trace: str) -> Facts:
    """A span in OTLP; one that ended at an unknown time ends when it starts."""
    end = span.end_ns or (span.start_ns if span.status != "unset" else 0)
    found = {
        "traceId": trace,
        "spanId": _span_id(trace, span.number),
        "name": plain_text(span.name),
        "kind": _CLIENT if span.kind in _CLIENTS else _INTERNAL,
        "startTimeUnixNano": str(span.start_ns),
        "endTimeUnixNano": str(end),
        "attributes": _attributes(_said_by(span)),
        "events": [*map(_event, span.events)],
        "status": {"code": _CODES[span.status]},
    }
    return found if span.parent is None else found | {"parentSpanId": _span_id(trace, span.parent)}


def _span_id(trace: str, number: int) -> str:
    return digest([trace, number])[:8].hex()


def _said_by(span: Span) -> Facts:
    found = named_attributes(span.attributes) | span_attributes(span.kind, span.name)
    is_task = span.kind == "task"
    if is_task or span.input is not None:
        found |= value_attributes("input", span.input)
    if span.output is not None or (is_task and span.status == "ok"):
        found |= value_attributes("output", span.output)
    return found


def _facts(sample: Sample) -> Facts:
    """What is known of a call, by the ends of the names of attributes."""
    call = sample.call
    facts = {
        "example.id": call["id"],
        "example.expected": None if sample.expected is None else json_text(sample.expected).decode(),
        "example.attributes": json_text(sample.about).decode() if sample.about else None,
        "replication": call["replication"],
        "fold": call["fold"],
        "status": call["status"],
        "error.place": call["error_place"],
        "answers": call.get("responses"),
        "untimed": call["started"] is None or None,
    }
    return facts | {f"usage.{name}": call[name] for name in _USAGE if call[name] is not None}


_USAGE: Final = (
    *("requests", "failed_requests", "cached_replies", "input_tokens", "output_tokens"),
    *("cost", "currency", "model", "costs", "attempts"),
)


def _is_grade_by(event: Event, names: Collection[str]) -> bool:
    """Whether an event is an earlier form of a grade that is written anyway."""
    body = event.body
    return event.name == GRADE_EVENT and isinstance(body, Mapping) and str(body.get(f"{GRADE}name")) in names


def _same_error(body: Any, error: Facts) -> bool:
    return isinstance(body, Mapping) and {k: body.get(k) for k in error} == error


def _event(event: Event) -> Facts:
    body = event.body
    values: Mapping[str, Any]
    if event.name == "exception" and isinstance(body, Mapping) and {"type", "message"} <= body.keys():
        values = {_EXCEPTION.get(key, key): value for key, value in body.items()}
    elif event.name == GRADE_EVENT and isinstance(body, Mapping):
        values = body
    else:
        values = {"value": json_text(body).decode()}
    return {"name": plain_text(event.name), "timeUnixNano": str(event.time_ns), "attributes": _attributes(values)}


_EXCEPTION: Final[Mapping[str, str]] = {
    "type": "exception.type",
    "message": "exception.message",
    "stack_trace": "exception.stacktrace",
}


def _attributes(values: Mapping[str, Any]) -> list[Facts]:
    """Attributes in OTLP, without those that are None."""
    return [{"key": plain_text(key), "value": _any_value(v)} for key, v in values.items() if v is not None]


def _any_value(value: Any) -> Facts:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, str):
        return {"stringValue": plain_text(value)}
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value if math.isfinite(value) else json_text(value).decode().strip('"')}
    if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
        return {"arrayValue": {"values": [*map(_any_value, value)]}}
    return {"stringValue": json_text(value).decode()}
