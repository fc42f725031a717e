"""Rate limits: how many calls may start in a period, across all callers.

A limit of n calls per period has n slots. A slot allows one start, and the next one a period later, so no period,
wherever it begins, contains more than n starts. Unlike one start every n-th of a period, the first n calls need not
wait, and a late start takes nothing from the following ones.

A slot counts from when its call really started, not from when it was allowed to: a caller that wakes late delays the
next one, and the limit always holds. An event loop reports the start after the call's first step, so exactly. A thread
can only report it just before; its period is taken 2.5 percent longer, for the moment until the task's first line.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Self
from weakref import WeakKeyDictionary

from evaluand.engine.limits import MARGIN, Limit
from evaluand.engine.token_limit import Reservation

TRANSIT = 0.5  # seconds until a sent request counts as arrived, unless its reply comes first
LONGEST_TRANSIT = 1.0  # the same from the start of the request, where the client does not report when it is sent
_NEWEST = 0.1  # weight of the newest reply in the usual wait
STEP = 0.005  # seconds for which a request of an event loop delays the next, unless it is sent earlier


class RateLimit(Limit):
    """At most `calls` starts in any period; one object, shared by all callers.

    Args:
        calls: starts in a period.
        seconds: the length of the period.
        clock: returns the time in seconds.

    Example:
        >>> limit = RateLimit(2, 60)
        >>> [limit.wait(threading.Event()), limit.wait(threading.Event())]
        [True, True]
        >>> with limit.turn() as turn:
        ...     turn.pause() > 59
        True
    """

    unit, option, examples = "calls", "rate", "10/s, 60/min or 5000/h"

    def __init__(self, calls: int, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(calls, seconds, clock)
        self.calls = calls
        self._free: list[_Slot] = []  # a heap of the slots that no caller holds
        self._slots_made = 0
        self._usual_wait = 0.0  # seconds for a reply: a mean in which earlier ones count less and less
        self._sending_locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    def turn(self) -> Turn:
        """The turn of one call: ask for its pause until that is 0, then report the start."""
        return Turn(self)

    def wait(self, stop: threading.Event) -> bool:
        """Waits in a thread until a call may start; false if it was stopped first."""
        time.sleep(0)  # lets other threads go first: a thread that has to yield just after its turn would start late
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
    def request(self, tokens: Reservation | None = None) -> Iterator[None]:
        """Waits in a thread until a request may be sent; the block makes the request.

        Args:
            tokens: what the request reserves of a token limit.
        """
        time.sleep(0)
        with self.turn() as turn:
            while pause := turn.pause():
                time.sleep(pause)
            with tokens or nullcontext(), turn._sending():
                yield

    @asynccontextmanager
    async def request_async(self, tokens: Reservation | None = None) -> AsyncIterator[None]:
        """As `request`, in an event loop, whose requests are sent one after another."""
        turn = self.turn()
        await turn._wait_async()
        try:
            if tokens:
                await tokens.wait_async()
            await turn._enter(self._sending_lock())
            if tokens:
                tokens.start()
            with turn._sending():
                yield
        finally:
            turn._leave()
            turn.give_back()
            if tokens:
                tokens.give_back()

    def _sending_lock(self) -> asyncio.Lock:
        """A lock that a request of this event loop holds until it is sent.

        Requests whose slots become free together would otherwise interleave their steps: all would be sent late, see
        their replies late, and free their slots late again, by a few percent of a short period each time.
        """
        with self._lock:
            return self._sending_locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())


def sent() -> None:
    """Reports that the request of this thread or task has been sent.

    Called by clients that know this, so that a slow reply delays no other request. A request counts as arrived half a
    second after it was sent, or a second after it began if the client does not report this; at the latest, with its
    reply. Where replies usually take longer than the period, waiting half a second for each would waste much of a short
    period, so it is at most 2.5 percent of the period then.
    """
    turn = _turn.get()
    if turn is not None:
        turn._note_sent()


class Turn:
    """The turn of one call: it holds a slot until the call has started or the `with` block ends."""

    __slots__ = ("_in_transit", "_limit", "_lock", "_loop", "_slot")

    def __init__(self, limit: RateLimit) -> None:
        self._limit = limit
        self._lock: asyncio.Lock | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._slot: _Slot | None = None
        self._in_transit: _Slot | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back()

    def give_back(self) -> None:
        """Returns the slot unchanged if the call did not start."""
        if self._slot is not None:
            with self._limit._lock:
                heapq.heappush(self._limit._free, self._slot)
            self._slot = None

    def pause(self) -> float:
        """Seconds to wait before asking again; 0 if the call may start."""
        limit = self._limit
        with limit._lock:
            if self._slot is None:
                self._slot = self._take_slot()
            if self._slot is None:
                return limit.seconds  # all slots are held by turns that start from now on, so none is free sooner
            return self._slot.pause(limit._clock())

    def start(self) -> None:
        """Counts a call that is about to start."""
        self._count(self._limit.seconds * (1 + MARGIN))

    def started(self) -> None:
        """Counts a call that has started."""
        self._count(self._limit.seconds)

    def send(self) -> None:
        """Counts a request that is about to be sent, and is in transit until `arrive`."""
        self._in_transit = self._count(self._limit.seconds, LONGEST_TRANSIT)

    def arrive(self) -> float:
        """Counts the request as arrived; the time of that."""
        limit = self._limit
        with limit._lock:
            now = limit._clock()
            if self._in_transit is not None:
                self._in_transit.set_arrived(now + limit.seconds)
        return now

    async def _wait_async(self) -> None:
        try:
            while pause := self.pause():
                await asyncio.sleep(pause)
        except BaseException:
            self.give_back()
            raise

    async def _enter(self, lock: asyncio.Lock) -> None:
        await lock.acquire()
        self._lock, self._loop = lock, asyncio.get_running_loop()
        self._loop.call_later(STEP, self._leave)

    def _leave(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()

    @contextmanager
    def _sending(self) -> Iterator[None]:
        """Counts a request that the block makes; it arrives before the block ends."""
        limit, began = self._limit, self._limit._clock()
        self.send()
        token = _turn.set(self)
        try:
            yield
        finally:
            _turn.reset(token)
            now = self.arrive()
            with limit._lock:
                limit._usual_wait += _NEWEST * (now - began - limit._usual_wait)

    def _note_sent(self) -> None:
        limit = self._limit
        if self._lock is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._leave)  # the client may send in any thread
        with limit._lock:
            if self._in_transit is not None:
                is_slow = limit._usual_wait > limit.seconds
                transit = min(TRANSIT, limit.seconds * MARGIN) if is_slow else TRANSIT
                self._in_transit.set_latest(limit._clock() + limit.seconds + transit)

    def _count(self, period: float, transit: float | None = None) -> _Slot:
        with self._limit._lock:
            free = self._limit._clock() + period
            slot = _Slot(free, None if transit is None else free + transit)
            heapq.heappush(self._limit._free, slot)
            self._slot = None
        return slot

    def _take_slot(self) -> _Slot | None:
        limit = self._limit
        if limit._slots_made < limit.calls and not (limit._free and limit._free[0].since <= limit._clock()):
            limit._slots_made += 1
            return _Slot(-math.inf)
        return heapq.heappop(limit._free) if limit._free else None


class _Slot:
    """When a slot allows its next start: at `since` at the earliest, at `latest` for certain.

    The two differ while the last request may be in transit.
    """

    __slots__ = ("_free", "_latest", "since")

    def __init__(self, since: float, latest: float | None = None) -> None:
        self.since = self._free = since
        self._latest = latest

    def __lt__(self, other: _Slot) -> bool:
        return self.since < other.since

    def pause(self, now: float) -> float:
        """Seconds until it is worth asking again; 0 if the next call may start."""
        if self._latest is not None and now >= self._free:
            self._free, self._latest = self._latest, None
        return max(self._free - now, 0.0)

    def set_latest(self, latest: float) -> None:
        """Sets a more exact time at which the slot is free for certain."""
        if self._latest is not None:
            self._latest = latest

    def set_arrived(self, free: float) -> None:
        """Sets the time at which the slot is free, now that its request has arrived."""
        if self._latest is not None:
            self._free, self._latest = min(free, self._latest), None


_turn: ContextVar[Turn | None] = ContextVar("_turn", default=None)
