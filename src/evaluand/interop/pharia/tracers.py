"""The SDKs' names for tracing; all of it is `evaluand.trace` and the kinds of `evaluand.tracers`."""

from __future__ import annotations

from evaluand.trace import Span, TaskSpan, Tracer
from evaluand.tracers.composite import CompositeTracer
from evaluand.tracers.file import FileTracer, TracerLogEntryFailed
from evaluand.tracers.in_memory import InMemorySpan, InMemoryTaskSpan, InMemoryTracer
from evaluand.tracers.no_op import NoOpTracer
from evaluand.tracers.open_telemetry import OpenTelemetryTracer
from evaluand.viewing import (
    Context,
    ErrorValue,
    Event,
    ExportedSpan,
    ExportedSpanList,
    LogEntry,
    PydanticSerializable,
    SpanAttributes,
    SpanStatus,
    SpanType,
    TaskSpanAttributes,
    utc_now,
)

__all__ = [
    "CompositeTracer",
    "Context",
    "ErrorValue",
    "Event",
    "ExportedSpan",
    "ExportedSpanList",
    "FileTracer",
    "InMemorySpan",
    "InMemoryTaskSpan",
    "InMemoryTracer",
    "LogEntry",
    "NoOpTracer",
    "OpenTelemetryTracer",
    "PydanticSerializable",
    "Span",
    "SpanAttributes",
    "SpanStatus",
    "SpanType",
    "TaskSpan",
    "TaskSpanAttributes",
    "Tracer",
    "TracerLogEntryFailed",
    "utc_now",
]
