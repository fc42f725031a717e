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
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Self
from weakref import WeakKeyDictionary

from evaluand.core.errors import SpecError

MARGIN = 0.025  # of the period, where a start is told before it happens
WAY = 0.5  # seconds in which a request that was sent is counted, unless its reply is there before
LONGEST_WAY = 1.0  # the same from when it began, where nobody tells when it was sent
STEP = 0.005  # seconds for which a request of an event loop holds up the next, unless it is sent before


class RateLimit:
    """At most so many starts in any period; one object shared by all who start calls.

    Args:
        calls: starts in a period.
        seconds: the period.
        clock: what tells the time, in seconds.

    Example:
        >>> pace = RateLimit(2, 60)
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
        self._free: list[_Slot] = []  # those that nobody holds; a heap
        self._made = 0
        self._doors: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    @classmethod
    def parse(cls, text: str) -> RateLimit:
        """The pace that a text such as `60/min`, `10/s`, `5000/h` or `100/0.5 s` says.

        Raises:
            SpecError: the text says none.

        Example:
            >>> RateLimit.parse("60/min")
            RateLimit(60, 60.0)
        """
        found = _RATE.fullmatch(text)
        if found is None:
            raise SpecError(f"rate is {text!r}; write calls per period, such as 10/s, 60/min or 5000/h")
        calls, times, unit = found.groups()
        return cls(int(calls.replace("_", "")), float(times or 1) * _UNITS[unit.lower()])

    def __repr__(self) -> str:
        return f"RateLimit({self.calls}, {self.seconds})"

    def __str__(self) -> str:
        """As `parse` reads it."""
        unit = next((name for name, length in _NAMES if length == self.seconds), f"{self.seconds:g} s")
        return f"{self.calls}/{unit}"

    def turn(self) -> Turn:
        """The turn of one call: ask it for its pause until there is none, and tell it of the start."""
        return Turn(self)

    def wait(self, stop: threading.Event) -> bool:
        """Waits in a thread until a call may start; false when it was stopped instead."""
        time.sleep(0)  # lets other threads go first: one that is made to yield just after its turn would start late
        with self.turn() as turn:
            while pause := turn.pause():
                if stop.wait(pause):
                    return False
            turn.start()
        return not stop.is_set()

    async def wait_async(self) -> None:
        """Waits in an event loop until a call may start."""
        turn = self.turn()
        await turn._wait_async()
        asyncio.get_running_loop().call_soon(turn.started)  # comes after the first step of what follows

    @contextmanager
    def request(self) -> Iterator[None]:
        """Waits in a thread until a request may be sent, which is then made in the block."""
        turn = self.turn()
        time.sleep(0)
        try:
            while pause := turn.pause():
                time.sleep(pause)
            with turn._sending():
                yield
        finally:
            turn.give_back()

    @asynccontextmanager
    async def request_async(self) -> AsyncIterator[None]:
        """The same in an event loop, whose requests are sent one after another."""
        turn = self.turn()
        await turn._wait_async()
        try:
            await turn._enter(self._door())
            with turn._sending():
                yield
        finally:
            turn._leave()
            turn.give_back()

    def _door(self) -> asyncio.Lock:
        """What the requests of this event loop go through one after another, each until it is sent.

        Those whose slots come free together would else take their steps in turn: all would be sent late and see their
        replies late, and so lend their slots late again, by a few percent of a short period each time.
        """
        with self._lock:
            return self._doors.setdefault(asyncio.get_running_loop(), asyncio.Lock())


def sent() -> None:
    """Tells that the request of this thread or task, for which its pace was waited, is on its way now.

    For clients that know this, so that a slow reply holds up nobody. A request is taken to arrive within half a
    second after it was sent, or where nobody tells that within a second; and surely before its reply.
    """
    turn = _turn.get()
    if turn is not None:
        turn._sent()


class Turn:
    """One call's turn: it holds a slot from when there is one until the call has started, or its `with` block ends."""

    __slots__ = ("_door", "_loop", "_pace", "_slot", "_under_way")

    def __init__(self, pace: RateLimit) -> None:
        self._pace = pace
        self._door: asyncio.Lock | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._slot: _Slot | None = None
        self._under_way: _Slot | None = None

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
        return self._pace.seconds if self._slot is None else self._slot.pause(now)

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
            return self._slot.pause(pace._clock())

    def start(self) -> None:
        """Counts a call that is about to start."""
        self._count(self._pace.seconds * (1 + MARGIN))

    def started(self) -> None:
        """Counts a call that has started."""
        self._count(self._pace.seconds)

    async def _wait_async(self) -> None:
        try:
            while pause := self.pause():
                await asyncio.sleep(pause)
        except BaseException:
            self.give_back()
            raise

    async def _enter(self, door: asyncio.Lock) -> None:
        await door.acquire()
        self._door, self._loop = door, asyncio.get_running_loop()
        self._loop.call_later(STEP, self._leave)

    def _leave(self) -> None:
        door, self._door = self._door, None
        if door is not None:
            door.release()

    @contextmanager
    def _sending(self) -> Iterator[None]:
        """Counts a request that is made in the block: it arrives there, and not later than the block ends."""
        self._under_way = self._count(self._pace.seconds, LONGEST_WAY)
        token = _turn.set(self)
        try:
            yield
        finally:
            _turn.reset(token)
            with self._pace._lock:
                self._under_way.arrived(self._pace._clock() + self._pace.seconds)

    def _sent(self) -> None:
        pace = self._pace
        if self._door is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._leave)  # whatever thread the client sends in
        with pace._lock:
            if self._under_way is not None:
                self._under_way.arrives(pace._clock() + pace.seconds + WAY)

    def _count(self, period: float, way: float | None = None) -> _Slot:
        with self._pace._lock:
            free = self._pace._clock() + period
            slot = _Slot(free, None if way is None else free + way)
            heapq.heappush(self._pace._free, slot)
            self._slot = None
        return slot

    def _take(self) -> _Slot | None:
        pace = self._pace
        if pace._made < pace.calls and not (pace._free and pace._free[0].since <= pace._clock()):
            pace._made += 1
            return _Slot(-math.inf)
        return heapq.heappop(pace._free) if pace._free else None


class _Slot:
    """When a slot may lend its next start: from `since` on at the soonest, and surely from `surely` on.

    The two differ while the last request may be under way.
    """

    __slots__ = ("_free", "_surely", "since")

    def __init__(self, since: float, surely: float | None = None) -> None:
        self.since = self._free = since
        self._surely = surely

    def __lt__(self, other: _Slot) -> bool:
        return self.since < other.since

    def pause(self, now: float) -> float:
        """Seconds until it is worth asking again; 0 where the next may start."""
        if self._surely is not None and now >= self._free:
            self._free, self._surely = self._surely, None
        return max(self._free - now, 0.0)

    def arrives(self, surely: float) -> None:
        """Learns more exactly from when on it is surely free."""
        if self._surely is not None:
            self._surely = surely

    def arrived(self, free: float) -> None:
        """Learns from when on it is free."""
        if self._surely is not None:
            self._free, self._surely = min(free, self._surely), None


def _check(calls: Any, seconds: Any) -> None:
    if not isinstance(calls, int) or isinstance(calls, bool) or calls < 1:
        raise SpecError(f"a pace of {calls!r} calls; give a whole number of at least 1")
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 < seconds < math.inf:
        raise SpecError(f"a pace over {seconds!r} seconds; give a number above 0")


_turn: ContextVar[Turn | None] = ContextVar("_turn", default=None)
_UNITS = {"s": 1.0, "sec": 1.0, "second": 1.0, "min": 60.0, "minute": 60.0, "h": 3600.0, "hour": 3600.0, "day": 86400.0}
_NAMES = (("s", 1.0), ("min", 60.0), ("h", 3600.0), ("day", 86400.0))
_RATE = re.compile(rf"\s*(\d[\d_]*)\s*/\s*(\d+(?:\.\d+)?)?\s*({'|'.join(_UNITS)})\s*", re.IGNORECASE)
