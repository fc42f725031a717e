"""Traces in a file, one line per step, which stays readable if the process dies.

The lines are those of the Pharia SDKs: `{"trace_id", "entry_type", "entry"}` with the types StartTask, StartSpan,
PlainEntry, EndSpan and EndTask. Entries have additional keys, which their readers ignore: `kind` and `attributes`, and
`input` and `output` of spans that are not task calls. Several processes may write to one file: a line is appended in
one step.
"""

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, cast
from uuid import UUID

import orjson
from orjson import Fragment

from evaluand.core.errors import DataError, EngineError, Fault, warn
from evaluand.core.invalid_data import InvalidData
from evaluand.core.system import BINARY, read_at
from evaluand.trace.export import ErrorValue, ExportedSpan, ExportedSpanList, at, json_text
from evaluand.trace.spans import Span
from evaluand.trace.tracers.in_memory import ENTRIES, InMemorySpan, InMemoryTracer
from evaluand.trace.tracers.recording import WatchedTracer
from evaluand.trace.traces import Trace
from evaluand.trace.values import fault_message, nanoseconds, stack_trace
from evaluand.trace.watcher import Watcher


class TracerLogEntryFailed(EngineError):
    """A line of a trace could not be written."""

    def __init__(self, error_message: str, id: str) -> None:
        super().__init__(f"the trace {id} could not be written: {error_message}")


class MissingTraceFile(DataError, FileNotFoundError):
    """There is no file of traces at a path."""


class FileTracer(WatchedTracer):
    """Writes every step to a file as it happens: opened, logged, closed.

    Attributes set on an open span, and its output, are written when it is closed.

    Attributes:
        stack_traces: whether stack traces are written with exceptions.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "trace.jsonl"
        >>> with FileTracer(path).task_span("answer", "q") as task_span:
        ...     task_span.log("hits", 3)
        >>> FileTracer(path).traces().entries[0].entries[0].value
        3
    """

    def __init__(self, log_file_path: str | os.PathLike[str], *, stack_traces: bool = False) -> None:
        self._path = Path(log_file_path)
        self.stack_traces = stack_traces
        self._lines = _Lines(self._path, stack_traces)

    @property
    def watchers(self) -> Sequence[Watcher]:
        return (self._lines,)

    def traces(self, trace_id: str | None = None) -> InMemoryTracer:
        """Read the traces in the file, or one of them; spans that were never closed are open.

        Raises:
            MissingTraceFile: there is no such file.
            InvalidData: a line other than the last is not a line of a trace; also a pydantic `ValidationError`.
        """
        return read_traces(self._path, trace_id)

    def export_for_viewing(self) -> Sequence[ExportedSpan]:
        return self.traces().export_for_viewing()

    def convert_file_for_viewing(self, file_path: str | os.PathLike[str]) -> None:
        """Write the spans of `export_for_viewing` to a file, as one list."""
        exported = ExportedSpanList(root=self.export_for_viewing())
        Path(file_path).write_text(exported.model_dump_json(), encoding="utf-8")


def read_traces(path: str | os.PathLike[str], trace_id: str | None = None) -> InMemoryTracer:
    """Read the traces in a file of `FileTracer` or of the Pharia SDKs; see `FileTracer.traces`."""
    tracer = InMemoryTracer()
    reader = _Reader(tracer)
    cut, refused = False, list[Fault]()
    for number, line in _read_lines(Path(path)):
        where = f"{os.fspath(path)}:{number}"
        try:
            parsed = orjson.loads(line)
        except orjson.JSONDecodeError:
            if reader.none_read and not _BEGINNING.startswith(line[: len(_BEGINNING)].rstrip()):
                refused.append(Fault(where, "not a line of a trace, which is JSON; is it another file?"))
                if len(refused) > 1:
                    break
                cut = True
                continue
            cut = True
            warn(f"{where}: the line is incomplete, as if its process died; left out")
            continue
        try:
            if trace_id is None or parsed["trace_id"] == trace_id:
                reader.read(parsed["entry_type"], parsed["entry"], parsed["trace_id"])
        except _UnknownSpan as error:
            if not cut:
                raise InvalidData.from_faults(
                    Fault(where, f"not a line of a trace: {error.args[0]!r} is missing")
                ) from None
            warn(f"{where}: belongs to a span whose first line is incomplete; left out")
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidData.from_faults(Fault(where, f"not a line of a trace: {fault_message(error)}")) from None
        if refused and reader.none_read:
            warn(f"{refused[0].where}: the line is incomplete; left out")
        reader.none_read = False
    if refused and reader.none_read:
        raise InvalidData.from_faults(refused[0])
    return tracer


class _Lines(Watcher):
    """Appends a line for each step."""

    __slots__ = ("_file", "_lock", "_open", "_path", "_process", "_stack_traces")

    def __init__(self, path: Path, stack_traces: bool) -> None:
        self._path, self._stack_traces = path, stack_traces
        self._file: int | None = None
        self._open = 0  # number of open spans; the file stays open while there are any
        self._lock, self._process = threading.Lock(), os.getpid()

    def opened(self, span: Span) -> None:
        entry = {"uuid": span.id, "parent": span.parent_id or span.id, "name": span.name, "start": at(span.start_ns)}
        is_task = span.kind == "task"
        if is_task or span._input is not None:
            entry["input"] = _json_value(span._input)
        if span.kind not in ("span", "task"):
            entry["kind"] = span.kind
        _put_attributes(entry, span)
        self._append(span, "StartTask" if is_task else "StartSpan", entry | {"trace_id": span._trace.id}, opens=1)

    def logged(self, span: Span, event: tuple[str, int, Any]) -> None:
        message, time_ns, value = event
        entry = {"message": message, "value": _json_value(value), "timestamp": at(time_ns), "parent": span.id}
        self._append(span, "PlainEntry", entry | {"trace_id": span._trace.id})

    def failed(self, span: Span, event: tuple[str, int, Any], error: BaseException) -> None:
        _, time_ns, body = event
        message = body["message"]
        where = stack_trace(error) if self._stack_traces else ""
        value = {"error_type": type(error).__qualname__, "message": message, "stack_trace": where}
        self.logged(span, (message, time_ns, value))

    def closed(self, span: Span) -> None:
        entry = {"uuid": span.id, "end": at(span.end_ns or 0)}
        is_task = span.kind == "task"
        if is_task or span._output is not None:
            entry["output"] = _json_value(span._output)
        entry["status_code"] = "ERROR" if span.status == "error" else "OK"
        _put_attributes(entry, span)
        self._append(span, "EndTask" if is_task else "EndSpan", entry, opens=-1)

    def _append(self, span: Span, kind: str, entry: Mapping[str, Any], opens: int = 0) -> None:
        line = {"trace_id": span._trace.id, "entry_type": kind, "entry": entry}
        try:
            text = orjson.dumps(line, option=orjson.OPT_UTC_Z | orjson.OPT_APPEND_NEWLINE)
        except TypeError:  # a name that orjson cannot write
            text = json_text(line) + b"\n"
        if self._process != os.getpid():  # a lock that was held at a fork stays locked
            self._lock, self._process = threading.Lock(), os.getpid()
        try:
            with self._lock:
                self._write(text)
                self._open += opens
                if self._open <= 0:
                    self._close()
        except OSError as error:
            self._open += min(opens, 0)  # a span that was not written as open needs no end
            raise TracerLogEntryFailed(f"{self._path}: {error.strerror}", str(span._trace.id)) from None

    def _write(self, text: bytes) -> None:
        if self._file is None:
            self._file = _open_for_append(self._path)
        try:
            written = os.write(self._file, text)
            while written < len(text):
                written += os.write(self._file, text[written:])
        except OSError:
            self._close()  # opening it again ends an incomplete line
            raise

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    __del__ = _close


_BEGINNING: Final = b'{"trace_id"'


def _open_for_append(path: Path) -> int:
    """Open the file for another line, ending an incomplete one that a dead process left."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | BINARY, 0o666)
    size = os.fstat(file).st_size
    if size and read_at(file, 1, size - 1) != b"\n":
        os.write(file, b"\n")
    return file


def _json_value(value: Any) -> Any:
    return value if value is None or type(value) in (bool, int) else Fragment(json_text(value))


def _put_attributes(entry: dict[str, Any], span: Span) -> None:
    if span.has_attributes:
        entry["attributes"] = Fragment(json_text(span.attributes))


def _read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with path.open("rb") as file:
            yield from ((number, line) for number, line in enumerate(file, 1) if not line.isspace())
    except OSError as error:
        kind = MissingTraceFile if isinstance(error, FileNotFoundError) else DataError
        raise kind(Fault(os.fspath(path), f"cannot be read: {error.strerror}")) from None


class _UnknownSpan(Exception):
    """A line belongs to a span without a first line."""


class _Reader:
    """Builds spans from the lines of a file."""

    def __init__(self, tracer: InMemoryTracer) -> None:
        self.tracer = tracer
        self.spans: dict[str, InMemorySpan] = {}
        self.none_read = True

    def read(self, kind: str, entry: Mapping[str, Any], trace_id: str) -> None:
        if kind in ("StartTask", "StartSpan"):
            self._start(entry, trace_id, kind == "StartTask")
        elif kind in ("EndTask", "EndSpan"):
            self._end(self._span(entry["uuid"]), entry)
        elif kind == "PlainEntry":
            self._log(self._span(entry["parent"]), entry)
        else:
            raise ValueError(f"the entry_type {kind!r} is unknown")

    def _span(self, id: str) -> InMemorySpan:
        try:
            return self.spans[id]
        except KeyError:
            raise _UnknownSpan(id) from None

    def _start(self, entry: Mapping[str, Any], trace_id: str, is_task: bool) -> None:
        above = self.spans.get(entry["parent"])
        if above is None:
            trace = Trace(kinds=self.tracer.kinds, watchers=self.tracer.watchers)
            trace._id = UUID(trace_id)
        else:
            trace = above._trace
        kind = "task" if is_task else entry.get("kind", "span")
        attributes, started = entry.get("attributes") or {}, _time(entry["start"])
        span = trace.kinds[is_task](trace, above, entry["name"], kind, entry.get("input"), attributes, started)
        span._id = UUID(entry["uuid"])
        self.spans[entry["uuid"]] = cast(InMemorySpan, span)

    def _log(self, span: InMemorySpan, entry: Mapping[str, Any]) -> None:
        message, value = entry["message"], entry["value"]
        if isinstance(value, dict) and value.keys() == ErrorValue.model_fields.keys() and value["message"] == message:
            body = {"type": value["error_type"], "message": message}
            message, value = "exception", body | ({"stack_trace": value["stack_trace"]} if value["stack_trace"] else {})
        event = message, nanoseconds(_time(entry["timestamp"])), value
        span._events.append(event)
        ENTRIES.logged(span, event)

    def _end(self, span: InMemorySpan, entry: Mapping[str, Any]) -> None:
        span._output = entry.get("output")
        span._attributes.update(entry.get("attributes") or {})
        span._status = 2 if entry.get("status_code") == "ERROR" else 1  # older versions of the SDKs write none
        span.end_ns = nanoseconds(_time(entry["end"]))


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
