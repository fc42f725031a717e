"""MLflow's evaluation results (`result_df` as JSON records) and traces, with their assessments as scores.

The table `eval_results_table.json`, which `mlflow.models.evaluate` logs, has a column `NAME/score` for each metric.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final

from evaluand.core.files.json_items import parse_json
from evaluand.exchange.importer import Importer, LogFile, json_records
from evaluand.exchange.sample import (
    Grade,
    Sample,
    by_name,
    mapping,
    microseconds,
    named_values,
    parse_object,
    require,
    sequence,
)
from evaluand.trace.foreign_spans import traces_of

_SCORE: Final = "/score"
_COLUMNS: Final = {
    "output": ("outputs", "predictions", "prediction", "output"),
    "expected": ("ground_truth", "targets", "target", "label"),
}
"""What the columns of a table that the user made are usually called."""


class MLflow(Importer):
    """Results of `mlflow.genai.evaluate`, or traces, as JSON records or JSON lines."""

    kind: ClassVar[str] = "mlflow"

    @classmethod
    def recognizes(cls, file: LogFile) -> bool:
        if {"trace_id", "trace"} <= file.keys or any(name.endswith(_SCORE) for name in file.keys):
            return True
        if file.keys == {"columns", "data"}:
            return b'/score"' in file.head.replace(b"\\/", b"/")
        return {"info", "data"} <= file.keys and b"mlflow." in file.head

    def records(self) -> Iterator[tuple[str, Any]]:
        if self.file.keys != {"columns", "data"}:
            yield from json_records(self.path)
            return
        table = mapping(parse_json(self.path.read_bytes(), str(self.path)))
        for n, cells in enumerate(sequence(table["data"])):
            yield f"{self.path}: data[{n}]", dict(zip(table["columns"], cells, strict=True))

    def samples(self, record: Any) -> Iterable[Sample]:
        row = parse_object(record)
        if "trace" not in row and any(name.endswith(_SCORE) for name in row):
            yield _sample_of_row(row)
            return
        trace = row.get("trace", row)
        trace = mapping(parse_json(trace, "trace") if isinstance(trace, str) else trace)
        info = mapping(require(trace, "info"))
        metadata = mapping(info.get("trace_metadata"))
        request, answer = _values(row, info, metadata)
        expected, grades = _assess(info)
        failed = info.get("state") not in (None, "OK", "IN_PROGRESS", "STATE_UNSPECIFIED")
        duration = info.get("execution_duration_ms", info.get("execution_duration"))
        yield Sample(
            str(info.get("client_request_id") or require(info, "trace_id")),
            request,
            None if failed else answer,
            system=str(metadata.get("mlflow.modelId") or mapping(info.get("tags")).get("mlflow.traceName") or ""),
            expected=next(iter(expected.values())) if len(expected) == 1 else expected or None,
            attributes={k: v for k, v in named_values(info.get("tags")).items() if not k.startswith("mlflow.")},
            error=("TraceError", str(answer or info.get("state"))) if failed else None,
            grades=grades,
            usage=_usage(metadata),
            started=microseconds(info.get("request_time")),
            duration=round(duration * 1000) if isinstance(duration, int | float) else None,
            spans=_spans(sequence(mapping(trace.get("data")).get("spans"))),
        )

    def facts(self) -> dict[str, Any]:
        return {}


def _sample_of_row(row: Mapping[str, Any]) -> Sample:
    """The sample of a row of `eval_results_table.json`."""
    found = {role: next((name for name in names if name in row), None) for role, names in _COLUMNS.items()}
    input = {name: value for name, value in row.items() if "/" not in name and name not in found.values()}
    latency, tokens = input.pop("latency", None), input.pop("token_count", None)
    return Sample(
        None,
        next(iter(input.values())) if len(input) == 1 else input,
        row.get(found["output"] or ""),
        expected=row.get(found["expected"] or ""),
        grades=({} if tokens is None else {"token_count": Grade.of(tokens)})
        | {
            name.removesuffix(_SCORE): Grade.of(
                value, explanation=row.get(f"{name.removesuffix(_SCORE)}/justification")
            )
            for name, value in row.items()
            if name.endswith(_SCORE)
        },
        duration=round(latency * 1e6) if isinstance(latency, int | float) else None,
    )


def _values(row: Mapping[str, Any], info: Mapping[str, Any], metadata: Mapping[str, Any]) -> tuple[Any, Any]:
    """What was asked and what was answered: complete values before previews."""
    texts = metadata.get("mlflow.traceInputs"), metadata.get("mlflow.traceOutputs")
    names = (("request", "request_preview"), ("response", "response_preview"))
    found = []
    for text, keys in zip(texts, names, strict=True):
        given = row.get(keys[0], info.get(keys[0]))
        if given is None:
            given = parse_json(text, keys[0]) if text else info.get(keys[1])  # text is empty after an error
        found.append(given)
    return found[0], found[1]


def _assess(info: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Grade]]:
    """The expectations and the valid feedback of a trace; of several expectations of one name the last."""
    expected: dict[str, Any] = {}
    grades: list[tuple[str, Grade]] = []
    for each in map(mapping, sequence(info.get("assessments"))):
        if each.get("valid") is False:
            continue
        name, reason = str(require(each, "assessment_name")), each.get("rationale")
        if (expectation := each.get("expectation")) is not None:
            serialized = mapping(expectation).get("serialized_value")
            expected[name] = (
                parse_json(mapping(serialized)["value"], name) if serialized else mapping(expectation).get("value")
            )
        elif (feedback := each.get("feedback")) is not None:
            error = mapping(feedback).get("error")
            value = mapping(feedback).get("value")
            value = {"yes": True, "no": False}.get(value, value) if isinstance(value, str) else value
            grade = Grade(reason=f"mlflow: {error}") if error else Grade.of(value, explanation=reason)
            grades.append((name, grade))
    return expected, by_name(grades)


def _usage(metadata: Mapping[str, Any]) -> dict[str, Any] | None:
    text = metadata.get("mlflow.trace.tokenUsage")
    tokens = mapping(parse_json(text, "tokenUsage") if isinstance(text, str) else text)
    return {name: n for name in ("input_tokens", "output_tokens") if type(n := tokens.get(name)) is int} or None


def _spans(spans: Any) -> list[list[Any]]:
    """The spans of a trace that MLflow has written with their times, as of OpenTelemetry."""
    known = [each for each in map(_as_otlp, spans) if each]
    traces = traces_of([{"resourceSpans": [{"scopeSpans": [{"spans": known}]}]}], where="trace") if known else []
    return traces[0].rows() if len(traces) == 1 else []


def _as_otlp(span: Any) -> dict[str, Any] | None:
    if not isinstance(span, Mapping) or "start_time_unix_nano" not in span:
        return None
    kind = str(parse_json(mapping(span.get("attributes")).get("mlflow.spanType") or '""', "spanType"))
    values = {"openinference.span.kind": kind.upper()}
    for ours, theirs in (("input.value", "mlflow.spanInputs"), ("output.value", "mlflow.spanOutputs")):
        if (text := mapping(span.get("attributes")).get(theirs)) is not None:
            values |= {ours: text, ours.replace("value", "mime_type"): "application/json"}
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in values.items()]
    code = mapping(span.get("status")).get("code")
    return {
        "traceId": span.get("trace_id"),
        "spanId": span.get("span_id"),
        "parentSpanId": span.get("parent_span_id") or "",
        "name": span.get("name"),
        "startTimeUnixNano": str(span["start_time_unix_nano"]),
        "endTimeUnixNano": str(span.get("end_time_unix_nano") or span["start_time_unix_nano"]),
        "status": {"code": {"STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2}.get(str(code), 0)},
        "attributes": attributes,
    }
