"""The forms in which traces are told to viewers and other programs: ids, times and values as JSON has them.

They are those of the Pharia SDKs, so that files, viewers and code made for these read what evaluand traces. A trace
itself knows nothing of them; see `evaluand.trace`.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import math
from collections.abc import Mapping, Sequence, Set
from datetime import UTC, date, datetime, time, timedelta
from enum import Enum, StrEnum
from pathlib import PurePath
from typing import Annotated, Any, Literal
from uuid import UUID

import orjson
from orjson import Fragment
from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, RootModel
from rich.json import JSON
from rich.panel import Panel
from rich.text import Text

from evaluand.core.json_like import unstorable

EXCEPTION = frozenset(("type", "message"))


def utc_now() -> datetime:
    """The time of day, with its zone."""
    return datetime.now(UTC)


def json_text(value: Any) -> bytes:
    """A value as plain JSON, for readers that know no other: sets are lists, NaN and infinities their names as text.

    Never fails: what is not data stands as `{"$unstorable":"<type>"}`.

    Example:
        >>> json_text({"a": (1, float("nan"))}), json_text(object())
        (b'{"a":[1,"NaN"]}', b'{"$unstorable":"object"}')
    """
    try:
        text = orjson.dumps(value, default=_plain, option=orjson.OPT_PASSTHROUGH_DATACLASS)
        return text if b"null" not in text else orjson.dumps(_spelled(value, 0))  # it may be NaN, too
    except Exception:  # integers beyond 64 bits, keys other than text, lone surrogates, code of the value's own
        return json.dumps(_spelled(value, 0), ensure_ascii=False).encode("utf-8", "replace")


PydanticSerializable = Annotated[Any, PlainSerializer(lambda value: json.loads(json_text(value)), when_used="json")]
"""Any value that can be written as JSON: text, numbers, pydantic models, lists, sets and dictionaries of them."""


class SpanType(StrEnum):
    """Whether a span is that of a task call."""

    SPAN = "SPAN"
    TASK_SPAN = "TASK_SPAN"


class SpanStatus(Enum):
    """How a span ended."""

    OK = "OK"
    ERROR = "ERROR"


class Context(BaseModel):
    """Which span, of which trace."""

    trace_id: UUID
    span_id: UUID


class ErrorValue(BaseModel):
    """An exception; its stack trace is empty where nobody asked for it."""

    error_type: str
    message: str
    stack_trace: str


class Event(BaseModel):
    """Something logged on a span: `name` is always `log`, `message` says what."""

    name: str
    message: str
    body: PydanticSerializable
    timestamp: datetime


class SpanAttributes(BaseModel):
    """What is known of a span: the attributes it was given and, where it has them, `kind`, `input` and `output`.

    An attribute that is called as one of these, or `type`, has `attributes.` before its name.

    Example:
        >>> SpanAttributes(kind="llm", model="small").model_dump_json()
        '{"type":"SPAN","kind":"llm","model":"small"}'
    """

    __pydantic_extra__: dict[str, PydanticSerializable]
    model_config = ConfigDict(extra="allow")
    type: Literal[SpanType.SPAN] = SpanType.SPAN


class TaskSpanAttributes(BaseModel):
    """What is known of the span of a task call: what it was called with, what it gave, and its attributes."""

    __pydantic_extra__: dict[str, PydanticSerializable]
    model_config = ConfigDict(extra="allow")
    type: Literal[SpanType.TASK_SPAN] = SpanType.TASK_SPAN
    input: PydanticSerializable
    output: PydanticSerializable


class ExportedSpan(BaseModel):
    """A span on its own, with all it holds."""

    context: Context
    name: str | None
    parent_id: UUID | None
    start_time: datetime
    end_time: datetime
    attributes: SpanAttributes | TaskSpanAttributes
    events: Sequence[Event]
    status: SpanStatus


class ExportedSpanList(RootModel[Sequence[ExportedSpan]]):
    """The spans of a trace or several."""


class LogEntry(BaseModel):
    """Something logged, as it stands among the entries of a span in memory."""

    message: str
    value: PydanticSerializable
    timestamp: datetime = Field(default_factory=utc_now)
    trace_id: UUID

    def _rich_render_(self) -> Panel:
        return panel(self.message, self.value)


def exported(span: Any) -> ExportedSpan:
    """The form of a closed `evaluand.trace.Span`."""
    return ExportedSpan(
        context=span.context,
        name=span.name,
        parent_id=span.parent_id,
        start_time=at(span.start_ns),
        end_time=at(span.end_ns),
        attributes=_attributes(span),
        events=[
            Event(name="log", message=message, body=body, timestamp=at(time))
            for message, time, body in map(told, span.events)
        ],
        status=span.status_code,
    )


def _attributes(span: Any) -> SpanAttributes | TaskSpanAttributes:
    given = {f"attributes.{key}" if key in _TAKEN else key: value for key, value in span.attributes.items()}
    if span.kind == "task":
        return TaskSpanAttributes(**given, input=span.input, output=span.output)
    own = {"kind": None if span.kind == "span" else span.kind, "input": span.input, "output": span.output}
    return SpanAttributes(**{key: value for key, value in own.items() if value is not None}, **given)


def told(event: Any) -> tuple[str, int, Any]:
    """Message, time and value of an event; those of an exception are its message and an `ErrorValue`."""
    name, time_ns, body = event
    if name == "exception" and isinstance(body, Mapping) and body.keys() - {"stack_trace"} == EXCEPTION:
        message = body["message"]
        error = ErrorValue(error_type=body["type"], message=message, stack_trace=body.get("stack_trace", ""))
        return message, time_ns, error
    return name, time_ns, body


def at(time_ns: int) -> datetime:
    """A time of day from nanoseconds since 1970, rounded down to microseconds."""
    return _EPOCH + timedelta(microseconds=time_ns // 1000)


def panel(title: str, value: Any) -> Panel:
    """A value in a frame, for people: nothing in it is taken for markup or a control code."""
    text = JSON(json_text(value).decode(), indent=2).text
    text.no_wrap, text.overflow = False, "fold"
    return Panel(text, title=Text(one_line(title)))


def one_line(text: str) -> str:
    """Some text without line breaks and control codes; names come from anywhere."""
    return text if text.isprintable() else repr(text)[1:-1]


_TAKEN = frozenset(("type", "kind", "input", "output"))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DEEPEST = 200


def _plain(value: Any) -> Any:
    """What stands for a value that orjson does not write."""
    if isinstance(value, BaseModel):
        return value.model_dump()
    if dataclasses.is_dataclass(type(value)):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, bytes | bytearray):
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            return base64.b64encode(value).decode()
    if isinstance(value, Set | Sequence):
        return list(value)
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if type(value).__module__ == "decimal":
        return str(value)
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return value.tolist()
    return unstorable(type(value).__qualname__)


def _spelled(value: Any, depth: int) -> Any:
    """The same for the writer of the standard library, which takes integers of any size."""
    if depth > _DEEPEST:
        return unstorable("nested too deeply")
    if isinstance(value, Enum):
        return _spelled(value.value, depth + 1)
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return (
            value if math.isfinite(value) else "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        )
    if isinstance(value, Fragment | date | time | UUID):
        return json.loads(orjson.dumps(value))
    if isinstance(value, Mapping):
        return {str(key): _spelled(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | Set):
        return [_spelled(item, depth + 1) for item in value]
    try:
        return _spelled(_plain(value), depth + 1)
    except Exception:  # a model_dump that fails
        return unstorable(type(value).__qualname__)
