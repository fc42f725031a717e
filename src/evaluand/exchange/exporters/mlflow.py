"""Runs of MLflow in a folder with an SQLite store, written by MLflow's own client.

The layout of the store belongs to MLflow, and changes with its versions; so the extra `mlflow` writes it.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

import orjson

from evaluand.exchange.exporter import Exporter, Result, Sample, own_columns, text_of
from evaluand.exchange.exporters.optional import environment, need, table_of
from evaluand.report.facts.base import Facts
from evaluand.store.tables import FAILED
from evaluand.trace.conventions import OPENINFERENCE_KINDS, named_attributes
from evaluand.trace.export import json_text
from evaluand.trace.spans import Event
from evaluand.trace.traces import Trace

TABLE: Final = "eval_results_table.json"
"""The name of the table that MLflow's page shows as an evaluation."""


class MLflow(Exporter):
    """A run of MLflow, with metrics, parameters, tags, a table of the samples and, where calls have spans, traces."""

    kind: ClassVar[str] = "mlflow"
    is_folder: ClassVar[bool] = True

    def write(self, result: Result, path: Path) -> list[Path]:
        with environment(**_QUIET):
            mlflow = need("mlflow", "exporting to MLflow", "sqlalchemy", "alembic", "pandas")
            path.mkdir(parents=True, exist_ok=True)
            uri = f"sqlite:///{(path / _STORE).resolve()}"
            client = mlflow.MlflowClient(tracking_uri=uri)
            experiment = _find_experiment(client, result, path)
            run = _write_run(client, experiment, result)
            client.log_table(run, table_of(sample.row() for sample in result.samples()), TABLE)
            if "spans" in result.run.manifest["tables"]:
                with _tracking(mlflow, uri):
                    for sample, trace in result.traces():
                        _write_trace(mlflow, experiment, run, sample, trace)
            client.set_terminated(run, "FINISHED", _milliseconds(result.newest["sealed"]))
        self.notes += result.describe_left_out()
        return [path / _STORE]


_STORE: Final = "mlflow.db"
_QUIET: Final = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ENABLE_ASYNC_TRACE_LOGGING": "false",
    "MLFLOW_CONFIGURE_LOGGING": "false",
}


def _find_experiment(client: Any, result: Result, path: Path) -> str:
    """The experiment of the problem, which further runs share."""
    name = result.problem
    if (found := client.get_experiment_by_name(name)) is not None:
        return str(found.experiment_id)
    return str(client.create_experiment(name, artifact_location=(path / "artifacts").resolve().as_uri()))


def _write_run(client: Any, experiment: str, result: Result) -> str:
    from mlflow.entities import Metric, Param, RunTag

    begun, sealed = (_milliseconds(text) for text in (result.run.manifest["created"], result.newest["sealed"]))
    run = str(client.create_run(experiment, start_time=begun, run_name=result.system).info.run_id)
    facts = _by_key(result.facts())
    metrics = [Metric(key, value, sealed, 0) for key, value in _by_key(result.measured()).items()]
    for part in _parts(metrics, 1000):
        client.log_batch(run, metrics=part)
    for part in _parts([Param(key, str(value)[:_LONGEST]) for key, value in facts.items()], 100):
        client.log_batch(run, params=part)
    tags = {"mlflow.source.name": "evaluand", "mlflow.source.git.commit": facts.get("git.commit")}
    client.log_batch(run, tags=[RunTag(key, str(value)) for key, value in tags.items() if value is not None])
    return run


def _by_key(values: Facts) -> Facts:
    """Values by names that MLflow accepts as keys; names that become equal are numbered.

    Example:
        >>> _by_key({"a/b": 1, "a:b": 2, "a_b": 3})
        {'a_b': 1, 'a:b': 2, 'a_b 2': 3}
    """
    found: Facts = {}
    for name, value in values.items():
        key = free = re.sub(r"[^\w.\- :]", "_", name)[:_LONGEST_KEY]
        n = 1
        while free in found:
            n += 1
            free = f"{key} {n}"
        found[free] = value
    return found


_LONGEST: Final = 6000
_LONGEST_KEY: Final = 240
_T = TypeVar("_T")


def _parts(items: list[_T], size: int) -> Iterator[list[_T]]:
    waiting = iter(items)
    while part := [*islice(waiting, size)]:
        yield part


@contextmanager
def _tracking(mlflow: Any, uri: str) -> Iterator[None]:
    """Sends traces to a store."""
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(uri)
    try:
        yield
    finally:
        mlflow.set_tracking_uri(before)


def _write_trace(mlflow: Any, experiment: str, run: str, sample: Sample, trace: Trace) -> None:
    written: dict[int, Any] = {}
    for span in trace.spans:
        about: Facts = {"parent_span": written[span.parent]} if span.parent is not None else {}
        if span.parent is None:
            about = {"experiment_id": experiment, "metadata": {"mlflow.sourceRun": run}, "tags": _tags(sample)}
        written[span.number] = mlflow.start_span_no_context(
            span.name or "span",
            span_type=OPENINFERENCE_KINDS.get(span.kind, span.kind.upper()),
            inputs=_data(span.input),
            attributes=named_attributes(span.attributes),
            start_time_ns=span.start_ns,
            **about,
        )
    for span in reversed(trace.spans):  # the root last, which closes the trace
        end = span.end_ns or span.start_ns
        each = written[span.number]
        for event in span.events:
            each.add_event(_event(event))
        each.end(outputs=_data(span.output), status=_STATUSES[span.status], end_time_ns=end)
    _assess(mlflow, written[0].trace_id, sample)


_STATUSES: Final = {"unset": "UNSET", "ok": "OK", "error": "ERROR"}


def _tags(sample: Sample) -> dict[str, str]:
    call = sample.call
    tags = {"evaluand.example.id": call["id"], "evaluand.replication": str(call["replication"])}
    return tags | {key: text_of(value)[:_LONGEST] for key, value in _by_key(sample.about).items()}


def _data(value: Any) -> Any:
    """A value as JSON has it."""
    return orjson.loads(json_text(value))


def _event(event: Event) -> Any:
    from mlflow.entities import SpanEvent

    body = event.body
    if event.name == "exception" and isinstance(body, Mapping):
        values = {f"exception.{key.replace('stack_trace', 'stacktrace')}": text_of(each) for key, each in body.items()}
    else:
        values = {"value": json_text(body).decode()}
    return SpanEvent(event.name, timestamp=event.time_ns, attributes=values)


def _assess(mlflow: Any, trace: str, sample: Sample) -> None:
    """Adds the grades of a call, and what was expected, to its trace."""
    from mlflow.entities import AssessmentError, AssessmentSource

    if sample.expected is not None:
        source = AssessmentSource(source_type="HUMAN", source_id="dataset")
        mlflow.log_expectation(trace_id=trace, name="expected", value=_data(sample.expected), source=source)
    for name, row in sample.all_grades():
        further = {"status": row["status"], "label": row["label"], "answer": row["_response_index_"]} | own_columns(row)
        value = row["label"] if row["value"] is None else row["value"]
        error = None
        if value is None:
            error = AssessmentError("FAILED" if row["status"] == FAILED else "NO_SCORE", row["reason"] or row["status"])
        mlflow.log_feedback(
            trace_id=trace,
            name=name,
            value=value,
            error=error,
            rationale=row["explanation"],
            source=AssessmentSource(source_type="CODE", source_id=row["scorer"]),
            metadata={key: text_of(each) for key, each in further.items() if each is not None},
        )


def _milliseconds(text: str) -> int:
    return round(dt.datetime.fromisoformat(text).timestamp() * 1000)
