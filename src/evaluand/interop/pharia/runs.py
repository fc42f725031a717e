"""Repositories of runs: in memory, or in a folder as `runs/<id>.json` and, for all examples together,
`runs/<id>/outputs.jsonl` and `runs/<id>/traces.jsonl`. The files of the SDKs, one for each example, are read as well.

Each row marks whether its output is a failure, so that a failure is never read as an answer, whatever the type.

The trace of an example is written once, when its root span is closed, so a span costs microseconds. Traces of calls in
flight are lost when a process dies; their examples have no output and are run again. To see such traces as well, pass a
`FileTracer` to the runner.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple, cast
from uuid import UUID

import orjson
from orjson import Fragment

from evaluand.core.errors import warn
from evaluand.core.identity import decode, encode
from evaluand.interop.pharia.backends import FileShelf, MemoryShelf
from evaluand.interop.pharia.domain import (
    ExampleOutput,
    FailedExampleRun,
    RecoveryData,
    RunOverview,
    as_failure,
    new_id,
    read_each,
)
from evaluand.interop.pharia.file_systems import (
    FileSystem,
    FileSystemBasedRepository,
    FileSystemShelf,
    LocalFiles,
    Shelf,
    open_shelf,
)
from evaluand.interop.pharia.repository_files import exact_text, place, sdk_place
from evaluand.interop.pharia.types import read_as, read_head
from evaluand.run.task import Output
from evaluand.trace.export import ExportedSpan, at, json_text
from evaluand.trace.spans import STATUSES, Span, TaskSpan
from evaluand.trace.tracer import OpenSpanError, RootTracer, Tracer
from evaluand.trace.tracers.file import FileTracer
from evaluand.trace.tracers.in_memory import InMemoryTracer
from evaluand.trace.traces import Trace
from evaluand.trace.watcher import Watcher


class ExampleTracer(RootTracer):
    """A tracer that stores each trace, as JSON text, when its root span is closed.

    Args:
        store: stores a trace.
        read: the stored traces, as parsed JSON.
    """

    def __init__(self, store: Callable[[bytes], None], read: Callable[[], Iterable[Any]]) -> None:
        self._writer, self._read = _Writer(store), read

    def new_trace(self) -> Trace:
        return Trace(kinds=(_WrittenSpan, _WrittenTaskSpan), watchers=(self._writer,))

    def traces(self) -> InMemoryTracer:
        """The traces stored so far."""
        return restore_traces(self._read())

    def export_for_viewing(self) -> Sequence[ExportedSpan]:
        if self._writer.open_roots:
            names = ", ".join(repr(root.name) for root in self._writer.open_roots.copy())
            raise OpenSpanError(f"the span {names} is still open; close it before you export the trace")
        return self.traces().export_for_viewing()


def restore_traces(rows: Iterable[Any]) -> InMemoryTracer:
    """The traces that an `ExampleTracer` stored, with the same ids, times and numbers."""
    tracer = InMemoryTracer()
    for each in rows:
        _restore(tracer, _StoredTrace(*each))
    return tracer


class _WrittenSpan(Span):
    """A span that stores its input as it was at the start; the root span too."""

    _by_reference: ClassVar[bool] = False

    def _unstorable(self, value: Any, attribute: str, error: Exception) -> Any:
        """The JSON that other tracers write: a list for a set, text for a path."""
        try:
            return Fragment(encode(orjson.loads(json_text(value))).decode())
        except Exception:  # methods of the value may raise anything
            return super()._unstorable(value, attribute, error)


class _WrittenTaskSpan(_WrittenSpan, TaskSpan):
    """The same for the span of a task."""


class _Writer(Watcher):
    """Stores a trace when its root span is closed."""

    __slots__ = ("_store", "open_roots")

    def __init__(self, store: Callable[[bytes], None]) -> None:
        self._store = store
        self.open_roots: set[Span] = set()

    def opened(self, span: Span) -> None:
        if span._above is None:
            self.open_roots.add(span)

    def closed(self, span: Span) -> None:
        if span._above is not None:
            return
        self.open_roots.discard(span)
        trace, end = span._trace, cast(int, span.end_ns)
        status = STATUSES.index(span.status)
        head = (trace.id.hex, span.name, span.kind, span.start_ns, end, status, span._input, span._output)
        ids = [(each.number, id.hex) for each in trace.spans if (id := each.explicit_id)]
        self._store(orjson.dumps((*head, trace.rows(), ids) if ids else (*head, trace.rows())))


class _StoredTrace(NamedTuple):
    """A trace as it is stored; the root span without the values that have a separate row."""

    id: str
    name: str
    kind: str
    start_ns: int
    end_ns: int
    status: int
    input: Any
    output: Any
    rows: list[list[Any]]
    ids: Sequence[tuple[int, str]] = ()  # of spans whose id was set explicitly


def _restore(tracer: InMemoryTracer, stored: _StoredTrace) -> None:
    """Open, log and close all spans again in the original order."""
    origin = stored.start_ns
    root = tracer.span(stored.name, at(origin), kind=stored.kind, input=_value(stored.input))
    root._trace._id = UUID(stored.id)
    spans: dict[int, Span] = {0: root}
    events = [(origin + time * 1000, row[0], name, body) for row in stored.rows for name, time, body in row[-1] or ()]
    logged = deque(sorted(events, key=itemgetter(0)))
    for number, parent, name, kind, start, *_, input, _, attributes, _ in stored.rows:
        began = origin + start * 1000
        while logged and logged[0][0] < began:
            _log(spans, *logged.popleft())
        if parent is not None:
            spans[number] = spans[parent].span(name, at(began), kind=kind, input=_value(input))
        if attributes:
            spans[number].set(**_value(attributes))
    for number, id in stored.ids:
        spans[number]._id = UUID(id)
    for event in logged:
        _log(spans, *event)
    for number, _, _, _, start, duration, status, _, output, _, _ in reversed(stored.rows):
        if number:
            _close(spans[number], _value(output), status, None if duration is None else start + duration, origin)
    _close(root, _value(stored.output), stored.status, 0, stored.end_ns)


def _log(spans: dict[int, Span], time_ns: int, number: int, name: str, body: Any) -> None:
    spans[number].log(name, _value(body), at(time_ns))


def _close(span: Span, output: Any, status: int, end: int | None, origin: int) -> None:
    if output is not None:
        span.record_output(output)
    if status:
        span.status = STATUSES[status]
    if end is not None:
        span.end(at(origin + end * 1000))


def _value(stored: Any) -> Any:
    return decode(orjson.dumps(stored)) if isinstance(stored, dict | list) else stored


NOTE: Final = ".tmp"
FINISHED: Final = "finished"
Result = ExampleOutput[Output] | ExampleOutput[FailedExampleRun]


class RunRepository(ABC):
    """Stores runs: a head, and for each example an output and perhaps a trace.

    Methods of a derived class that store something are called in one thread at a time.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()

    @abstractmethod
    def store_run_overview(self, overview: RunOverview) -> None:
        """Store the head of a run, which completes it."""

    @abstractmethod
    def run_overview(self, run_id: str) -> RunOverview | None:
        """The head of a run, or None."""

    @abstractmethod
    def run_overview_ids(self) -> Sequence[str]:
        """The ids of all runs, sorted."""

    @abstractmethod
    def store_example_output(self, example_output: ExampleOutput[Output]) -> None:
        """Store the output for an example."""

    @abstractmethod
    def example_output(self, run_id: str, example_id: str, output_type: type[Output]) -> Result[Output] | None:
        """The output for an example, or None."""

    @abstractmethod
    def example_output_ids(self, run_id: str) -> Sequence[str]:
        """The ids of the examples that have an output, sorted."""

    @abstractmethod
    def create_tracer_for_example(self, run_id: str, example_id: str) -> Tracer:
        """A tracer for one example, whose traces are stored."""

    @abstractmethod
    def example_tracer(self, run_id: str, example_id: str) -> Tracer | None:
        """The traces of an example, or None."""

    @abstractmethod
    def _create_temporary_run_data(self, tmp_hash: str, run_id: str) -> None:
        """Note that a run has begun, so that it can be resumed.

        Args:
            tmp_hash: the key for finding the run again; see `Runner`.
            run_id: its id.
        """

    @abstractmethod
    def _delete_temporary_run_data(self, tmp_hash: str) -> None:
        """Delete the note, if there is one."""

    @abstractmethod
    def _temp_store_finished_example(self, tmp_hash: str, example_id: str) -> None:
        """Note that an example is done."""

    @abstractmethod
    def finished_examples(self, tmp_hash: str) -> RecoveryData | None:
        """The run that began under this note, with the examples that are done; None if there is no note."""

    def create_temporary_run_data(self, tmp_hash: str, run_id: str) -> None:
        """Note that a run has begun, so that it can be resumed; in one thread at a time.

        Args:
            tmp_hash: the key for finding the run again; see `Runner`.
            run_id: its id.
        """
        with self._lock:
            self._create_temporary_run_data(tmp_hash, run_id)

    def delete_temporary_run_data(self, tmp_hash: str) -> None:
        """Delete the note, if there is one; in one thread at a time."""
        with self._lock:
            self._delete_temporary_run_data(tmp_hash)

    def temp_store_finished_example(self, tmp_hash: str, example_id: str) -> None:
        """Note that an example is done; in one thread at a time."""
        with self._lock:
            self._temp_store_finished_example(tmp_hash, example_id)

    def store_example_output_parallel(self, tmp_hash: str, example_output: ExampleOutput[Output]) -> None:
        """Store the output for an example of a run that can be resumed; in one thread at a time."""
        with self._lock:
            self.store_example_output(example_output)

    def store_finished(self, tmp_hash: str, example_output: ExampleOutput[Output]) -> None:
        """Store the output for an example, and note that the example is done."""
        self.store_example_output_parallel(tmp_hash, example_output)
        self.temp_store_finished_example(tmp_hash, example_output.example_id)

    @contextmanager
    def begun(self, tmp_hash: str, resume: bool) -> Iterator[RecoveryData]:
        """Begin a run, which is in progress within the block; after an error it can be resumed.

        Args:
            tmp_hash: the key for finding the run again.
            resume: continue an unfinished run, if there is one that is not in progress elsewhere.
        """
        run = self.finished_examples(tmp_hash) if resume else None
        if run is None:
            run = RecoveryData(run_id=new_id())
            self.create_temporary_run_data(tmp_hash, run.run_id)
        yield run
        self.delete_temporary_run_data(tmp_hash)

    def run_overviews(self) -> Iterable[RunOverview]:
        """The heads of all runs, in the order of their ids."""
        return read_each(self.run_overview, self.run_overview_ids())

    def example_outputs(self, run_id: str, output_type: type[Output]) -> Iterable[Result[Output]]:
        """The output for each example, in the order of their ids."""
        return read_each(lambda id: self.example_output(run_id, id, output_type), self.example_output_ids(run_id))

    def successful_example_outputs(self, run_id: str, output_type: type[Output]) -> Iterable[ExampleOutput[Output]]:
        """The outputs of the examples that did not fail."""
        for each in self.example_outputs(run_id, output_type):
            if not isinstance(each.output, FailedExampleRun):
                yield each  # type: ignore[misc]

    def failed_example_outputs(
        self, run_id: str, output_type: type[Output]
    ) -> Iterable[ExampleOutput[FailedExampleRun]]:
        """The failures."""
        for each in self.example_outputs(run_id, output_type):
            if isinstance(each.output, FailedExampleRun):
                yield each  # type: ignore[misc]


class _ShelfRuns(RunRepository):
    """Stores runs on a shelf."""

    _shelf: Shelf

    def store_run_overview(self, overview: RunOverview) -> None:
        self._shelf.put(overview.id, exact_text(overview, indent=2))
        for name in ("outputs", "traces"):
            self._shelf.rows(overview.id, name).close()

    def run_overview(self, run_id: str) -> RunOverview | None:
        return read_head(RunOverview, self._shelf.get(run_id), self._shelf.where(run_id))

    def run_overview_ids(self) -> Sequence[str]:
        return self._shelf.ids()

    def store_example_output(self, example_output: ExampleOutput[Output]) -> None:
        output, rows = example_output.output, self._shelf.rows(example_output.run_id, "outputs")
        rows.append(example_output.example_id, exact_text(output), failed=isinstance(output, FailedExampleRun))

    def example_output(self, run_id: str, example_id: str, output_type: type[Output]) -> Result[Output] | None:
        rows = self._shelf.all_rows(run_id, "outputs")
        row = rows.get(example_id) if rows else None
        return None if row is None else _output(run_id, row, output_type)

    def example_outputs(self, run_id: str, output_type: type[Output]) -> Iterator[Result[Output]]:
        for row in self._shelf.all_rows(run_id, "outputs") or ():
            yield _output(run_id, row, output_type)

    def example_output_ids(self, run_id: str) -> Sequence[str]:
        rows = self._shelf.all_rows(run_id, "outputs")
        return rows.ids() if rows else []

    def store_finished(self, tmp_hash: str, example_output: ExampleOutput[Output]) -> None:
        """Store the output for an example, which shows that the example is done."""
        self.store_example_output_parallel(tmp_hash, example_output)

    def _create_temporary_run_data(self, tmp_hash: str, run_id: str) -> None:
        self._shelf.put(tmp_hash, exact_text({"id": tmp_hash, "run_id": run_id}), NOTE)

    def _delete_temporary_run_data(self, tmp_hash: str) -> None:
        self._shelf.remove_rows(tmp_hash, FINISHED)
        self._shelf.let_go(tmp_hash, NOTE, remove=True)

    def _temp_store_finished_example(self, tmp_hash: str, example_id: str) -> None:
        self._shelf.rows(tmp_hash, FINISHED).append(example_id, b"null")

    def finished_examples(self, tmp_hash: str) -> RecoveryData | None:
        text = self._shelf.get(tmp_hash, NOTE)
        if text is None:
            return None
        note = RecoveryData.model_validate_json(text)  # that of the SDKs contains the examples
        noted = self._shelf.rows(tmp_hash, FINISHED).ids_as_written()
        finished = dict.fromkeys([*note.finished_examples, *noted, *self.example_output_ids(note.run_id)])
        return RecoveryData(run_id=note.run_id, finished_examples=list(finished))

    @contextmanager
    def begun(self, tmp_hash: str, resume: bool) -> Iterator[RecoveryData]:
        """Begin a run with a separate note for each run, which is locked while the run is in progress."""
        locked = self._lock_unfinished(tmp_hash) if resume else None
        if resume and not locked:
            self._warn_of_another_task(tmp_hash)
        note, run = locked or self._begin(tmp_hash)
        try:
            yield run
        except BaseException:
            self._shelf.let_go(note, NOTE, remove=False)
            raise
        self._delete_temporary_run_data(note)

    def _lock_unfinished(self, tmp_hash: str) -> tuple[str, RecoveryData] | None:
        """Lock the unfinished run with the most finished examples; None if there is none."""
        notes = [note for note in self._shelf.ids(NOTE) if note.startswith(f"{tmp_hash}-")]
        locked = [(note, run) for note in notes if (run := self._lock_note(note))]
        locked.sort(key=lambda each: len(each[1].finished_examples))
        for note, _ in locked[:-1]:
            self._shelf.let_go(note, NOTE, remove=False)
        return locked[-1] if locked else None

    def _warn_of_another_task(self, tmp_hash: str) -> None:
        """Warn if the same request is unfinished with a task of another identity, the second half of the hash."""
        request = tmp_hash[: len(tmp_hash) // 2]
        others = [note for note in self._shelf.ids(NOTE) if note.startswith(request) and not note.startswith(tmp_hash)]
        if others:
            ids = ", ".join(note.partition("-")[2] for note in others)
            warn(
                f"a new run begins: the unfinished run {ids} has the same dataset and description, but its task has"
                " other code, arguments or version"
            )

    def _lock_note(self, note: str) -> RecoveryData | None:
        if not self._shelf.hold(note, NOTE):
            return None
        run = self.finished_examples(note)
        if run is None:  # it has ended meanwhile
            self._shelf.let_go(note, NOTE, remove=False)
        return run

    def _begin(self, tmp_hash: str) -> tuple[str, RecoveryData]:
        while True:
            run = RecoveryData(run_id=new_id())
            note = f"{tmp_hash}-{run.run_id}"
            self.create_temporary_run_data(note, run.run_id)
            if self._shelf.hold(note, NOTE):  # else a resuming process took it first
                return note, run


class InMemoryRunRepository(_ShelfRuns):
    """Stores runs in memory, outputs as JSON, so that later changes of an object change no run."""

    def __init__(self) -> None:
        super().__init__()
        self._shelf = MemoryShelf()
        self._tracers: dict[tuple[str, str], InMemoryTracer] = {}

    def create_tracer_for_example(self, run_id: str, example_id: str) -> Tracer:
        return self._tracers.setdefault((run_id, example_id), InMemoryTracer())

    def example_tracer(self, run_id: str, example_id: str) -> Tracer | None:
        return self._tracers.get((run_id, example_id))


class FileSystemRunRepository(_ShelfRuns, FileSystemBasedRepository):
    """Stores runs on a file system; see `FileSystemBasedRepository`."""

    def __init__(self, file_system: FileSystem, root_directory: Path) -> None:
        super().__init__()
        FileSystemBasedRepository.__init__(self, file_system, root_directory)
        folder = self._root_directory / "runs"
        self._shelf: FileShelf | FileSystemShelf = open_shelf(
            file_system, folder, lambda folder: folder / "output", _parse_row
        )

    def create_tracer_for_example(self, run_id: str, example_id: str) -> Tracer:
        rows = self._shelf.rows(run_id, "traces")
        return ExampleTracer(
            lambda text: rows.append(example_id, text), lambda: (row["value"] for row in rows.all(example_id))
        )

    def example_tracer(self, run_id: str, example_id: str) -> Tracer | None:
        rows = self._shelf.rows(run_id, "traces").all(example_id)
        if rows:
            return restore_traces(row["value"] for row in rows)
        if isinstance(self._shelf, FileSystemShelf):
            return None
        sdk_file = place(sdk_place(self._shelf.folder, run_id) / "trace", example_id, ".jsonl")
        return FileTracer(sdk_file).traces() if sdk_file.is_file() else None


class FileRunRepository(FileSystemRunRepository):
    """Stores runs in a folder, which the first write creates."""

    def __init__(self, root_directory: Path) -> None:
        super().__init__(LocalFiles(), root_directory)


def _parse_row(content: dict[str, Any]) -> dict[str, Any]:
    """The row of a file of the SDKs, which marks a failure only by its form."""
    output = content["output"]
    return {"example_id": content["example_id"], "failed": as_failure(output) is not None, "value": output}


def _output(run_id: str, row: dict[str, Any], output_type: Any) -> ExampleOutput[Any]:
    type_ = FailedExampleRun if row["failed"] else output_type
    output = read_as(type_, row["value"], f"the output of run {run_id} for example {row['example_id']}")
    return ExampleOutput(run_id=run_id, example_id=row["example_id"], output=output)
