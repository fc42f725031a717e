"""Names, values, times and errors of a trace in forms that can always be written."""

import traceback as tracebacks
from datetime import UTC, datetime
from typing import Any

import orjson
from orjson import Fragment

from evaluand.core.identity import decode
from evaluand.core.redaction import redact


def text_of(value: object) -> str:
    """Text for a name or message that can always be encoded."""
    try:
        text = str.__str__(value) if isinstance(value, str) else str(value)
        return text.encode("utf-8", "backslashreplace").decode()
    except Exception:  # a __str__ that fails
        return type(value).__qualname__


def error_text(error: BaseException) -> str:
    """The message of an exception, without credentials."""
    return redact(text_of(error))


def value_of(stored: Any) -> Any:
    """The value that a span stores as it is or as canonical text."""
    return decode(orjson.dumps(stored)) if type(stored) is Fragment else stored


def parse_cell(cell: Any) -> Any:
    """A cell of a row, parsed if it is JSON text."""
    return orjson.loads(orjson.dumps(cell)) if type(cell) is Fragment else cell


def one_line(text: str) -> str:
    """Text without line breaks and control codes."""
    return text if text.isprintable() else repr(text)[1:-1]


def fault_message(error: Exception) -> str:
    """What is wrong with data that could not be read."""
    if isinstance(error, KeyError):
        return f"{error.args[0]!r} is missing"
    if isinstance(error, TypeError | AttributeError):
        return "a part of it is of another type than is expected there"
    return str(error)


def stack_trace(error: BaseException) -> str:
    """The stack trace of an exception, as Python prints it, without credentials."""
    return redact("".join(tracebacks.format_exception(error)))


def nanoseconds(time: datetime) -> int:
    """Nanoseconds since 1970; a time without a zone is UTC."""
    zoned = time if time.tzinfo else time.replace(tzinfo=UTC)
    since = zoned - _EPOCH
    return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
