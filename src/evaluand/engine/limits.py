"""So many calls or tokens in a period, as numbers and as a text such as `60/min`."""

from __future__ import annotations

import math
import re
from typing import Any

from evaluand.core.errors import SpecError

MARGIN = 0.025  # of the period, where a start is reported before it happens


class InvalidLimit(SpecError, ValueError):
    """A limit of calls is no number that limits them; a ValueError, as that of an executor."""


def read_limit(text: str, name: str, unit: str, examples: str) -> tuple[int, float]:
    """How many per how many seconds a text such as `60/min` allows.

    Args:
        name: of the parameter, `unit` of what it limits and `examples`, for the message of the error.

    Raises:
        SpecError: the text is not a rate.
    """
    found = _RATE.fullmatch(text)
    if found is None:
        raise InvalidLimit(f"{name} is {text!r}; write {unit} per period, such as {examples}")
    count, times, period = found.groups()
    return int(count.replace("_", "")), float(times or 1) * _UNITS[period.lower()]


def limit_text(count: int, seconds: float) -> str:
    """The text that `read_limit` reads."""
    unit = next((name for name, length in _NAMES if length == seconds), f"{seconds:g} s")
    return f"{count}/{unit}"


def check_limit(count: Any, seconds: Any, unit: str) -> None:
    """Raise an InvalidLimit if so many calls or tokens in so many seconds are no limit."""
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise InvalidLimit(f"a rate of {count!r} {unit}; give an integer of at least 1")
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 < seconds < math.inf:
        raise InvalidLimit(f"a rate over {seconds!r} seconds; give a number above 0")


_UNITS = {"s": 1.0, "sec": 1.0, "second": 1.0, "min": 60.0, "minute": 60.0, "h": 3600.0, "hour": 3600.0, "day": 86400.0}
_NAMES = (("s", 1.0), ("min", 60.0), ("h", 3600.0), ("day", 86400.0))
_RATE = re.compile(rf"\s*(\d[\d_]*)\s*/\s*(\d+(?:\.\d+)?)?\s*({'|'.join(_UNITS)})\s*", re.IGNORECASE)
