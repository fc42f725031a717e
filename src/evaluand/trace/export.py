"""The export format of traces for viewers and other programs: ids, times and values as JSON.

It is the format of the Pharia SDKs, so that their files, viewers and code read traces of evaluand. A trace itself does
not depend on it; see `evaluand.trace`.
"""

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

from evaluand.core.placeholders import unstorable
from evaluand.trace.values import one_line

EXCEPTION = frozenset(("type", "message"))


def utc_now() -> datetime:
    """The current time, with its time zone."""
    return datetime.now(UTC)


def json_text(value: Any) -> bytes:
    """A value as standard JSON: sets become lists, NaN and infinities become text.

    Never fails: what is not data becomes `{"$unstorable":"<type>"}`.

    Example:
        >>> json_text({"a": (1, float("nan"))}), json_text(object())
        (b'{"a":[1,"NaN"]}', b'{"$unstorable":"object"}')
    """
    try:
        text = orjson.dumps(value, default=_to_plain, option=orjson.OPT_PASSTHROUGH_DATACLASS)
        return text if b"null" not in text else orjson.dumps(_to_json_value(value, 0))  # null may also stand for NaN
    except Exception:  # integers beyond 64 bits, non-text keys, lone surrogates, the value's code
        return json.dumps(_to_json_value(value, 0), ensure_ascii=False).encode("utf-8", "replace")


PydanticSerializable = Annotated[Any, PlainSerializer(lambda value: json.loads(json_text(value)), when_used="json")]
"""Any value that can be written as JSON: text, numbers, pydantic models, lists, sets and dictionaries of them."""


class SpanType(StrEnum):
    """Whether a span belongs to a task call."""

    SPAN = "SPAN"
    TASK_SPAN = "TASK_SPAN"


class SpanStatus(Enum):
    """How a span ended."""

    OK = "OK"
    ERROR = "ERROR"


class Context(BaseModel):
    """The ids of a span and its trace."""

    trace_id: UUID
    span_id: UUID


class ErrorValue(BaseModel):
    """An exception; its stack trace is empty unless requested."""

    error_type: str
    message: str
    stack_trace: str


class Event(BaseModel):
    """A value logged on a span: `name` is always `log`, `message` is the name of the value."""

    name: str
    message: str
    body: PydanticSerializable
    timestamp: datetime = Field(default_factory=utc_now)


class SpanAttributes(BaseModel):
    """The attributes of a span and, if set, `kind`, `input` and `output`.

    Attributes with one of these names, or `type`, get the prefix `attributes.`.

    Example:
        >>> SpanAttributes(kind="llm", model="small").model_dump_json()
        '{"type":"SPAN","kind":"llm","model":"small"}'
    """

    __pydantic_extra__: dict[str, PydanticSerializable]
    model_config = ConfigDict(extra="allow")
    type: Literal[SpanType.SPAN] = SpanType.SPAN


class TaskSpanAttributes(BaseModel):
    """The attributes of a task call's span, with its input and output."""

    __pydantic_extra__: dict[str, PydanticSerializable]
    model_config = ConfigDict(extra="allow")
    type: Literal[SpanType.TASK_SPAN] = SpanType.TASK_SPAN
    input: PydanticSerializable
    output: PydanticSerializable


class ExportedSpan(BaseModel):
    """A complete span."""

    context: Context
    name: str | None
    parent_id: UUID | None
    start_time: datetime
    end_time: datetime
    attributes: SpanAttributes | TaskSpanAttributes
    events: Sequence[Event]
    status: SpanStatus


class ExportedSpanList(RootModel[Sequence[ExportedSpan]]):
    """The spans of one or several traces."""


class LogEntry(BaseModel):
    """A logged value, as an entry of a span in memory."""

    message: str
    value: PydanticSerializable
    timestamp: datetime = Field(default_factory=utc_now)
    trace_id: UUID

    def _rich_render_(self) -> Panel:
        return panel(self.message, self.value)


def export_span(span: Any) -> ExportedSpan:
    """Convert a closed `evaluand.trace.Span`."""
    return ExportedSpan(
        context=span.context,
        name=span.name,
        parent_id=span.parent_id,
        start_time=at(span.start_ns),
        end_time=at(span.end_ns),
        attributes=_attributes(span),
        events=[
            Event(name="log", message=message, body=body, timestamp=at(time))
            for message, time, body in map(event_parts, span.events)
        ],
        status=span.status_code,
    )


def _attributes(span: Any) -> SpanAttributes | TaskSpanAttributes:
    attributes = {f"attributes.{key}" if key in _RESERVED else key: value for key, value in span.attributes.items()}
    if span.kind == "task":
        return TaskSpanAttributes(**attributes, input=span.input, output=span.output)
    own = {"kind": None if span.kind == "span" else span.kind, "input": span.input, "output": span.output}
    return SpanAttributes(**{key: value for key, value in own.items() if value is not None}, **attributes)


def event_parts(event: Any) -> tuple[str, int, Any]:
    """Message, time and value of an event; for an exception its message and an `ErrorValue`."""
    name, time_ns, body = event
    if name == "exception" and isinstance(body, Mapping) and body.keys() - {"stack_trace"} == EXCEPTION:
        message = body["message"]
        error = ErrorValue(error_type=body["type"], message=message, stack_trace=body.get("stack_trace", ""))
        return message, time_ns, error
    return name, time_ns, body


def at(time_ns: int) -> datetime:
    """The time for nanoseconds since 1970, rounded down to microseconds."""
    return _EPOCH + timedelta(microseconds=time_ns // 1000)


def panel(title: str, value: Any) -> Panel:
    """A value in a frame, for people; markup and control codes are escaped."""
    text = JSON(json_text(value).decode(), indent=2).text
    text.no_wrap, text.overflow = False, "fold"
    return Panel(text, title=Text(one_line(title)))


_RESERVED = frozenset(("type", "kind", "input", "output"))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_DEPTH = 200


def _to_plain(value: Any) -> Any:
    """A writable value in place of one that orjson does not write."""
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


def _to_json_value(value: Any, depth: int) -> Any:
    """A value for the JSON writer of the standard library, which takes integers of any size."""
    if depth > _MAX_DEPTH:
        return unstorable("nested too deeply")
    if isinstance(value, Enum):
        return _to_json_value(value.value, depth + 1)
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return (
            value if math.isfinite(value) else "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        )
    if isinstance(value, Fragment | date | time | UUID):
        return json.loads(orjson.dumps(value))
    if isinstance(value, Mapping):
        return {str(key): _to_json_value(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | Set):
        return [_to_json_value(item, depth + 1) for item in value]
    try:
        return _to_json_value(_to_plain(value), depth + 1)
    except Exception:  # a model_dump that fails
        return unstorable(type(value).__qualname__)
