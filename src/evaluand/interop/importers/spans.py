"""Traces as OpenTelemetry and OpenInference write them (also Phoenix): every trace is a sample.

The results of `gen_ai.evaluation.result` events are its scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Final

from evaluand.experiment.imports.importer import Importer, LogFile
from evaluand.experiment.imports.sample import Grade, Sample
from evaluand.trace.foreign_spans import read_spans
from evaluand.trace.traces import Trace

_EVENT: Final = "gen_ai.evaluation.result"
_PREFIX: Final = "gen_ai.evaluation."
_SPAN_KEYS: Final = ({"traceId", "spanId"}, {"context", "start_time", "attributes"}, {"resourceSpans"})


class Spans(Importer):
    """Files of spans."""

    kind: ClassVar[str] = "spans"

    @classmethod
    def recognizes(cls, file: LogFile) -> bool:
        return any(keys <= file.keys for keys in _SPAN_KEYS)

    def records(self) -> Iterator[tuple[str, Any]]:
        for number, trace in enumerate(read_spans(self.path)):
            yield f"{self.path}: trace {number}", trace

    def samples(self, record: Any) -> Iterable[Sample]:
        trace: Trace = record
        root = trace.root
        ended = root.end_ns
        failed = root.status == "error"
        yield Sample(
            str(trace.id),
            root.input,
            None if failed else root.output,
            system=root.name,
            error=("TraceError", "the root span has the status error") if failed else None,
            grades=dict(_grades(trace)),
            started=root.start_ns // 1000,
            duration=None if ended is None else (ended - root.start_ns) // 1000,
            spans=trace.rows(),
        )


def _grades(trace: Trace) -> Iterator[tuple[str, Grade]]:
    for span in trace.spans:
        for event in span.events:
            if event.name == _EVENT and isinstance(event.body, dict):
                said = {key.removeprefix(_PREFIX): value for key, value in event.body.items()}
                label = said.get("score.label")
                grade = Grade.of(said.get("score.value", label), explanation=said.get("explanation"))
                yield str(said.get("name")), grade._replace(label=label)
