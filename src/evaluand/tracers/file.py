"""Traces in a file, one line per step, which a trace whose process died leaves readable.

The lines are those of the Pharia SDKs: `{"trace_id", "entry_type", "entry"}` with the types StartTask, StartSpan,
PlainEntry, EndSpan and EndTask. Several processes may write into one file: a line is appended in one step.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
from orjson import Fragment

from evaluand.errors import DataError, EngineError, Fault
from evaluand.trace import Span, TaskSpan, Trace, Watcher, stack_trace
from evaluand.tracers.in_memory import ENTRIES, InMemorySpan, InMemoryTaskSpan, InMemoryTracer
from evaluand.tracers.recording import RecordingTracer
from evaluand.viewing import ErrorValue, ExportedSpan, ExportedSpanList, at, json_text


class TracerLogEntryFailed(EngineError):
    """A line of a trace could not be written."""

    def __init__(self, error_message: str, id: str) -> None:
        super().__init__(f"the trace {id} could not be written: {error_message}")


class FileTracer(RecordingTracer):
    """Writes every step into a file as it is taken.

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
        """What the file holds, of all traces or of one; spans that were never closed are open.

        Raises:
            DataError: the file is missing, or a line in its midst is not that of a trace.
        """
        return read_traces(self._path, trace_id)

    def export_for_viewing(self) -> Sequence[ExportedSpan]:
        return self.traces().export_for_viewing()

    def convert_file_for_viewing(self, file_path: str | os.PathLike[str]) -> None:
        """Writes the spans as `export_for_viewing` tells them, one list of all."""
        exported = ExportedSpanList(root=self.export_for_viewing())
        Path(file_path).write_text(exported.model_dump_json(), encoding="utf-8")
