"""So many calls or tokens in a period, as numbers and as a text such as `60/min`."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable
from typing import Any, ClassVar, Self

from evaluand.core.errors import SpecError

MARGIN = 0.025  # of the period, where a start is reported before it happens


class InvalidLimit(SpecError, ValueError):
    """A limit of calls is no number that limits them; a ValueError, as that of an executor."""


class Limit:
    """So many calls or tokens in a period.

    Args:
        count: how many.
        seconds: the length of the period.
        clock: returns the time in seconds.

    Attributes:
        unit: of what is counted.
        option: the parameter that takes a limit.
        examples: of its texts.
    """

    unit: ClassVar[str]
    option: ClassVar[str]
    examples: ClassVar[str]

    def __init__(self, count: Any, seconds: Any, clock: Callable[[], float]) -> None:
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise InvalidLimit(f"a rate of {count!r} {self.unit}; give an integer of at least 1")
        if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 < seconds < math.inf:
            raise InvalidLimit(f"a rate over {seconds!r} seconds; give a number above 0")
        self.count, self.seconds = count, float(seconds)
        self._clock, self._lock = clock, threading.Lock()

    @classmethod
    def parse(cls, text: str) -> Self:
        """The limit of a text such as `60/min`, `10/s`, `5000/h` or `100/0.5 s`.

        Raises:
            SpecError: the text is not a rate.

        Example:
            >>> from evaluand.engine.rate_limit import RateLimit
            >>> RateLimit.parse("60/min")
            RateLimit(60, 60.0)
        """
        found = _RATE.fullmatch(text)
        if found is None:
            raise InvalidLimit(f"{cls.option} is {text!r}; write {cls.unit} per period, such as {cls.examples}")
        count, times, period = found.groups()
        return cls(int(count.replace("_", "")), float(times or 1) * _UNITS[period.lower()])  # type: ignore[call-arg]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.count}, {self.seconds})"

    def __str__(self) -> str:
        """The text that `parse` reads."""
        unit = next((name for name, length in _NAMES if length == self.seconds), f"{self.seconds:g} s")
        return f"{self.count}/{unit}"


_UNITS = {"s": 1.0, "sec": 1.0, "second": 1.0, "min": 60.0, "minute": 60.0, "h": 3600.0, "hour": 3600.0, "day": 86400.0}
_NAMES = (("s", 1.0), ("min", 60.0), ("h", 3600.0), ("day", 86400.0))
_RATE = re.compile(rf"\s*(\d[\d_]*)\s*/\s*(\d+(?:\.\d+)?)?\s*({'|'.join(_UNITS)})\s*", re.IGNORECASE)
