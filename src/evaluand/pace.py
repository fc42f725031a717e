"""Pace: how many calls may start in a period, whoever makes them.

A pace of n calls per period has n slots; a slot lends one start, and the next when a period has passed. The starts of
one slot lie at least a period apart, so no period, wherever it begins, holds more than n. Compared with one start
every n-th of a period the first n need not wait, and what is late takes nothing from what follows.

A slot counts from when its start really happened, not from when it was allowed: who wakes late makes the next wait,
never the limit break. An event loop tells so after the call's first step, thus exactly. A thread can only tell just
before it; for the moment until the task's first line its period is taken 2.5 percent longer.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import re
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from evaluand.errors import SpecError

MARGIN = 0.025  # of the period, where a start is told before it happens


class Pace:
    """At most so many starts in any period; one object shared by all who start calls.

    Args:
        calls: starts in a period.
        seconds: the period.
        clock: what tells the time, in seconds.

    Example:
        >>> pace = Pace(2, 60)
        >>> [pace.wait(threading.Event()), pace.wait(threading.Event())]
        [True, True]
        >>> with pace.turn() as turn:
        ...     turn.pause() > 59
        True
    """

    def __init__(self, calls: int, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        _check(calls, seconds)
        self.calls, self.seconds = calls, float(seconds)
        self._clock = clock
        self._lock = threading.Lock()
        self._free: list[float] = []  # when each slot that nobody holds may lend its next start; a heap
        self._made = 0

    @classmethod
    def parse(cls, text: str) -> Pace:
        """The pace that a text such as `60/min`, `10/s`, `5000/h` or `100/0.5 s` says.

        Raises:
            SpecError: the text says none.

        Example:
            >>> Pace.parse("60/min")
            Pace(60, 60.0)
        """
        found = _RATE.fullmatch(text)
        if found is None:
            raise SpecError(f"rate is {text!r}; write calls per period, such as 10/s, 60/min or 5000/h")
        calls, times, unit = found.groups()
        return cls(int(calls.replace("_", "")), float(times or 1) * _UNITS[unit.lower()])

    def __repr__(self) -> str:
        return f"Pace({self.calls}, {self.seconds})"

    def __str__(self) -> str:
        """As `parse` reads it."""
        unit = next((name for name, length in _NAMES if length == self.seconds), f"{self.seconds:g} s")
        return f"{self.calls}/{unit}"

    def turn(self) -> Turn:
        """The turn of one call: ask it for its pause until there is none, and tell it of the start."""
        return Turn(self)

    def wait(self, stop: threading.Event, margin: float = MARGIN) -> bool:
        """Waits in a thread until a call may start; false when it was stopped instead.

        Args:
            stop: ends the waiting.
            margin: the share of the period within which the call is counted, wherever that is done.
        """
        time.sleep(0)  # lets other threads go first: one that is made to yield just after its turn would start late
        with self.turn() as turn:
            while pause := turn.pause():
                if stop.wait(pause):
                    return False
            turn.start(margin)
        return not stop.is_set()

    async def wait_async(self, margin: float = 0.0) -> None:
        """Waits in an event loop until a call may start; the margin as of `wait`, from the call's first step on."""
        turn = self.turn()
        try:
            while pause := turn.pause():
                await asyncio.sleep(pause)
        except BaseException:
            turn.give_back()
            raise
        asyncio.get_running_loop().call_soon(turn.started, margin)  # comes after the first step of what follows


class Turn:
    """One call's turn: it holds a slot from when there is one until the call has started, or its `with` block ends."""

    __slots__ = ("_pace", "_slot")

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._slot: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.give_back()

    @property
    def soonest(self) -> float:
        """Seconds until it is worth asking again."""
        now = self._pace._clock()
        return self._pace.seconds if self._slot is None else max(self._slot - now, 0.0)

    def give_back(self) -> None:
        """Gives the slot back as it was where the call did not start."""
        if self._slot is not None:
            with self._pace._lock:
                heapq.heappush(self._pace._free, self._slot)
            self._slot = None

    def pause(self) -> float:
        """Seconds to wait before asking again; 0 says that the call may start."""
        pace = self._pace
        with pace._lock:
            if self._slot is None:
                self._slot = self._take()
            if self._slot is None:
                return pace.seconds  # all slots are held by turns that start from now on, so none is free sooner
            return max(self._slot - pace._clock(), 0.0)

    def start(self, margin: float = MARGIN) -> None:
        """Counts a call that is about to start."""
        self._count(self._pace.seconds * (1 + margin))

    def started(self, margin: float = 0.0) -> None:
        """Counts a call that has started."""
        self._count(self._pace.seconds * (1 + margin))

    def _count(self, period: float) -> None:
        with self._pace._lock:
            heapq.heappush(self._pace._free, self._pace._clock() + period)
            self._slot = None

    def _take(self) -> float | None:
        pace = self._pace
        if pace._made < pace.calls and not (pace._free and pace._free[0] <= pace._clock()):
            pace._made += 1
            return -math.inf
        return heapq.heappop(pace._free) if pace._free else None


def _check(calls: Any, seconds: Any) -> None:
    if not isinstance(calls, int) or isinstance(calls, bool) or calls < 1:
        raise SpecError(f"a pace of {calls!r} calls; give a whole number of at least 1")
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 < seconds < math.inf:
        raise SpecError(f"a pace over {seconds!r} seconds; give a number above 0")


_UNITS = {"s": 1.0, "sec": 1.0, "second": 1.0, "min": 60.0, "minute": 60.0, "h": 3600.0, "hour": 3600.0, "day": 86400.0}
_NAMES = (("s", 1.0), ("min", 60.0), ("h", 3600.0), ("day", 86400.0))
_RATE = re.compile(rf"\s*(\d[\d_]*)\s*/\s*(\d+(?:\.\d+)?)?\s*({'|'.join(_UNITS)})\s*", re.IGNORECASE)
