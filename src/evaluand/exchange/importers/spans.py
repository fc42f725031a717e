"""Traces as OpenTelemetry and OpenInference write them (also Phoenix): every trace is a sample.

The results of `gen_ai.evaluation.result` events are its scores. What evaluand has exported (`evaluand.…` attributes)
has its examples, repeats and errors again.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Final

import orjson

from evaluand.core.errors import DataError, plural
from evaluand.core.files.json_items import JsonCursor, parse_json
from evaluand.exchange.importer import Importer, LogFile, first_fault
from evaluand.exchange.sample import Grade, Sample, by_name, named_values, sequence
from evaluand.exchange.spool import Texts
from evaluand.store.tables import COMPLETED
from evaluand.trace.conventions import COLUMN, GRADE, GRADE_EVENT, OWN
from evaluand.trace.foreign_spans import (
    HOLDERS,
    UNREADABLE,
    describe_orphans,
    read_traces,
    spans_of,
    trace_id_of,
)
from evaluand.trace.spans import Event, Span
from evaluand.trace.traces import Trace
from evaluand.trace.values import fault_message

_SPAN_KEYS: Final = (
    *({"traceId", "spanId"}, {"resourceSpans"}),
    *({"context", "start_time", "attributes"}, {"context.trace_id", "context.span_id", "start_time"}),
)


class Spans(Importer):
    """Files of spans."""

    kind: ClassVar[str] = "spans"

    def __init__(self, file: LogFile) -> None:
        super().__init__(file)
        self._orphans: list[str] = []
        self._names: set[str] = set()  # of roots
        self._n_silent = self._n_answers = self._n_grades = 0

    @classmethod
    def recognizes(cls, file: LogFile) -> bool:
        return any(keys <= file.keys for keys in _SPAN_KEYS)

    def records(self) -> Iterator[tuple[str, Any]]:
        texts = Texts()
        places: dict[int, array[int]] = {}
        for where, span in self._spans():
            try:
                trace = trace_id_of(span)
            except UNREADABLE as error:
                self.leave_out(where, f"not a span: {fault_message(error)}")
                continue
            try:
                text = orjson.dumps(span)
            except TypeError:
                self.leave_out(where, "has a text that is not valid Unicode, or a number of more than 64 bits")
                continue
            if not (span.get("parentSpanId") or span.get("parent_id")):
                self._names.add(str(span.get("name")))
            places.setdefault(trace, array("q")).append(texts.add(text))
        for trace, own in places.items():
            yield f"{self.path}: trace {trace:032x}", [orjson.loads(texts.read(place)) for place in own]
        if self._orphans:
            self.notes.append(f"{self.path.name}: {describe_orphans(self._orphans, sum(map(len, places.values())))}")
        if self._n_silent:
            self.notes.append(
                f"{self.path.name}: {self._n_silent:,} of {len(places):,} traces have calls of models without input and"
                " output; instrumentations leave these out, or write them as logs, unless they are set to record them"
            )
        if self._n_answers:
            self.notes.append(
                f"{self.path.name}: {plural(self._n_answers, 'further answer')} left out, with"
                f" {plural(self._n_grades, 'grade')}: the first answer of each call is imported"
            )

    def samples(self, record: Any) -> Iterable[Sample]:
        found = read_traces(record, where=str(self.path))
        self.left_out += found.faults
        self._orphans += found.orphans
        self._n_silent += sum(any(map(_is_silent, trace.spans)) for trace in found.traces)
        events = (event for trace in found.traces for span in trace.spans for event in span.events)
        self._n_grades += sum(_is_grade(event) and _is_further(event) for event in events)
        self._n_answers += sum(max(len(_answers(trace)) - 1, 0) for trace in found.traces)
        return [_sample(trace, has_own_problem=len(self._names) > 1) for trace in found.traces]

    def _spans(self) -> Iterator[tuple[str, Any]]:
        """The spans of documents that follow each other, and where each begins; reads up to one that ends early."""
        cursor = JsonCursor.open(self.path)
        try:
            for _ in cursor.documents():
                levels = HOLDERS if cursor.starts_with(_OTLP) else ()
                for place in _walk(cursor, levels) if levels or cursor.kind == "[" else [cursor.place]:
                    where = f"{self.path}, byte {place:,}"
                    try:
                        yield from ((where, span) for span in spans_of(cursor.value()))
                    except DataError as error:
                        if cursor.place == place:
                            raise
                        self.leave_out(where, first_fault(error))
        except DataError as error:
            self.leave_out(error.faults[0].where, f"{first_fault(error)}; all behind it is left out")


def _walk(cursor: JsonCursor, levels: Sequence[Collection[str]]) -> Iterator[int]:
    """The places of the parts of a list, or of a document of OTLP, which may be all of a large file."""
    if cursor.kind == "[":
        for _ in cursor.items():
            yield from _walk(cursor, levels) if levels and cursor.kind == "{" else [cursor.place]
        return
    for name in cursor.members():
        if name in levels[0]:
            yield from _walk(cursor, levels[1:]) if cursor.kind == "[" else [cursor.place]


_OTLP: Final = re.compile(rb'\{\s*"resourceSpans"')


def _is_silent(span: Span) -> bool:
    """Whether a span is of a model whose messages were not recorded."""
    return span.kind == "llm" and span.status != "error" and span.input is None and span.output is None


def _sample(trace: Trace, *, has_own_problem: bool) -> Sample:
    """The sample of a trace; where a file has traces of several applications, these have no examples in common."""
    root = trace.root
    failed = root.status == "error"
    sample = Sample(
        str(trace.id),
        root.input,
        None if failed else root.output,
        problem=root.name if has_own_problem else "",
        system="" if has_own_problem else root.name,
        error=("TraceError", "the root span has the status error") if failed else None,
        grades=by_name(_grades(trace)),
        started=root.start_ns // 1000,
        duration=None if root.end_ns is None else (root.end_ns - root.start_ns) // 1000,
        spans=trace.rows(),
    )
    if f"{OWN}example.id" in root.attributes:
        _restore(sample, trace)
    return sample


def _grades(trace: Trace) -> Iterator[tuple[str, Grade]]:
    for span in trace.spans:
        for event in span.events:
            if _is_grade(event) and not _is_further(event):
                said = {key.removeprefix(GRADE): value for key, value in event.body.items()}
                label, reason = said.get("score.label"), said.get(f"{OWN}score.reason")
                grade = Grade.of(said.get("score.value", label), explanation=said.get("explanation"))
                grade = grade._replace(label=label, data=_data(event))
                yield str(said.get("name")), grade if reason is None else grade._replace(reason=str(reason))


def _data(event: Event) -> Any:
    """The data of a grade that evaluand has written; with other columns of its scorer, or without data, all of them."""
    columns = {key.removeprefix(COLUMN): value for key, value in event.body.items() if key.startswith(COLUMN)}
    if isinstance(columns.get("data"), str):
        columns["data"] = parse_json(columns["data"], "data")
    return columns["data"] if columns.keys() == {"data"} else columns or None


def _is_grade(event: Event) -> bool:
    return event.name == GRADE_EVENT and isinstance(event.body, dict)


def _is_further(event: Event) -> bool:
    """Whether a grade is that of a second or later answer."""
    return bool(event.body.get(f"{OWN}score.answer"))


def _answers(trace: Trace) -> Sequence[Any]:
    """All answers of a call, as evaluand has written them; none where it had one."""
    said = trace.root.attributes.get(f"{OWN}answers")
    return sequence(parse_json(said, "answers") if isinstance(said, str) else said)


def _restore(sample: Sample, trace: Trace) -> None:
    """Adds what evaluand has written about a call."""
    said = trace.root.attributes
    own = {key.removeprefix(OWN): value for key, value in said.items() if key.startswith(OWN)}
    sample.id, sample.replication = str(own["example.id"]), own.get("replication")
    sample.problem, sample.system = str(own.get("problem", "")), str(own.get("system", ""))
    sample.expected = parse_json(own.get("example.expected", "null"), "expected")
    sample.attributes = named_values(parse_json(own.get("example.attributes", "{}"), "attributes"))
    if own.get("status") != COMPLETED:
        errors = [event.body["message"] for event in trace.root.events if event.name == "exception"]
        sample.output, sample.error = None, (str(said.get("error.type")), str(errors[-1]) if errors else "")
        sample.grades = {name: grade for name, grade in sample.grades.items() if grade.reason is None}
    sample.usage = {name: own[f"usage.{name}"] for name in _USAGE if f"usage.{name}" in own} or None
    if own.get("untimed"):
        sample.started = sample.duration = None


_USAGE: Final = ("requests", "input_tokens", "output_tokens", "cost", "currency", "model")
