"""What a trace tells of names, values, times and errors, such that it can always be written."""

from __future__ import annotations

import traceback as tracebacks
from datetime import UTC, datetime
from typing import Any

import orjson
from orjson import Fragment

from evaluand.core.identity import decode


def text_of(value: object) -> str:
    """Some text for a name or message that can always be written."""
    try:
        text = str.__str__(value) if isinstance(value, str) else str(value)
        return text.encode("utf-8", "backslashreplace").decode()
    except Exception:  # a __str__ that fails
        return type(value).__qualname__


def value_of(kept: Any) -> Any:
    """The value that a span keeps as it is or as canonical text."""
    return decode(orjson.dumps(kept)) if type(kept) is Fragment else kept


def stack_trace(error: BaseException) -> str:
    """Where an exception came from, as Python tells it."""
    return "".join(tracebacks.format_exception(error))


def nanoseconds(time: datetime) -> int:
    """Since 1970; a time without a zone is taken for UTC."""
    zoned = time if time.tzinfo else time.replace(tzinfo=UTC)
    since = zoned - _EPOCH
    return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
