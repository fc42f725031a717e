"""A worker of a Ray cluster: an actor that makes calls as `LocalEngine` does, and reports finished lines.

    take  → units with their earlier attempts
          ← what has happened since: finished lines, costs, and turns that are wanted or used, the end
    give  → more units, and turns of rate limits that may start

Units and lines are sent as columns: Ray packs each tuple in a list by itself.

It holds no store and no limits, and nothing of it outlives the process that started it.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import socket
import threading
import time
import traceback
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from evaluand._version import __version__
from evaluand.engine.engine import Recipe
from evaluand.engine.engines.local import make_calls
from evaluand.engine.engines.shared_limits import AskedLimit
from evaluand.engine.observation import as_machinery, machinery
from evaluand.engine.outcome import Aborted, Outcome, error_text
from evaluand.engine.policy import Policy
from evaluand.engine.rate_limit import RateLimit

_LINGER: Final = 0.05  # seconds for which finished lines wait for more, while there is still work
_LINGER_MANY: Final = 0.01  # the same where as many wait as there are calls at once: all are called again if this dies
_LINGER_IDLE: Final = 0.005  # the same where there is none
_LONGEST: Final = 1.0  # seconds after which a worker reports that nothing has happened


class Begun(NamedTuple):
    """That a worker can make calls, with the identity of the code as it was found there."""

    place: str
    spec: Any
    parts: Any


class Ended(NamedTuple):
    """The end of all calls of a worker, and why if something has failed; what it still holds is not called any more."""

    reason: str = ""
    is_aborted: bool = False


class Finished(NamedTuple):
    """A unit that is done, and what calls have cost since the last one."""

    slot: int
    line: bytes
    failed: int
    attempts: int
    costs: Sequence[tuple[float, str]]


Columns = list[list[Any]]
"""A table by its columns; empty without rows."""


def columns(rows: Iterable[Sequence[Any]]) -> Columns:
    """The columns of a table that is given by its rows.

    Example:
        >>> columns([(1, b"a"), (2, b"b")]), columns([])
        ([[1, 2], [b'a', b'b']], [])
    """
    return [[*column] for column in zip(*rows, strict=True)]


Event = Finished | Ended | tuple[Any, ...]


class Worker:
    """Makes calls in a process of a cluster; several of its methods run at once."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._events: list[Event] = []
        self._limits: dict[int, AskedLimit] = {}
        self._before: dict[int, int] = {}  # slot → attempts of workers that have died
        self._feed: _Feed | None = None
        self._at_once = 1
        self._thread: threading.Thread | None = None
        self._is_installed = False

    def begin(self, version: str, sent: Any) -> Begun | str:
        """Begins to make the calls of a recipe; or the reason why it cannot.

        Args:
            sent: a `wire.Sent` as a tuple; it is unpacked only if this worker has the same version.
        """
        place = f"{socket.gethostname()} (process {os.getpid()})"
        if version != __version__:
            return f"{place} has evaluand {__version__}, but this is {version}; install the same version there"
        try:
            return self._begin(place, sent)
        except BaseException as error:
            at = traceback.extract_tb(error.__traceback__)[-1]
            what = f"{error_text(error)} ({os.path.basename(at.filename)}:{at.lineno})"
            return f"{place} cannot load the code: {what}; packages and files that it needs must be there, too"

    def _begin(self, place: str, sent: Any) -> Begun:
        from evaluand.engine.engines import wire  # after the version is known to be the same

        if self._thread is not None:
            self._thread.join()  # of the recipe before, which has ended
        sent = wire.Sent(*sent)
        if not self._is_installed:
            wire.install(sent)
            self._is_installed = True
        self._events, self._limits, self._before = [], {}, {}
        recipe, policy = wire.load(sent, self._limit)
        assert recipe.code is not None
        found = recipe.code.identify()
        recipe.code.prepare()
        self._at_once = policy.calls_at_once
        self._feed = _Feed(inspect.iscoroutinefunction(recipe.call))
        self._thread = threading.Thread(target=self._run, args=(recipe, policy, self._feed), daemon=True)
        self._thread.start()
        return Begun(place, found.spec, found.parts)

    def _limit(self, number: int, like: RateLimit) -> RateLimit:
        return self._limits.setdefault(number, AskedLimit(number, like, self._post))

    def give(self, orders: Columns, turns: Sequence[tuple[int, int]]) -> None:
        """Receives units, as slots, earlier attempts and what was packed, and turns that may start."""
        if not orders and not turns:
            return
        for limit, number in turns:
            self._limits[limit].granted.add(number)
        assert self._feed is not None
        units = [*zip(*orders, strict=True)]
        self._before.update((slot, attempts) for slot, attempts, _ in units if attempts)
        self._feed.put([(slot, packed) for slot, _, packed in units])

    def finish(self) -> None:
        """Ends after the calls in flight."""
        if self._feed is not None:
            self._feed.close()

    def take(self, orders: Columns) -> list[Any]:
        """Receives units as `give` does; what has happened since the last time: finished lines, costs, other events.

        Waits for something, and then a moment for more.
        """
        self.give(orders, ())
        with self._changed:
            self._changed.wait_for(lambda: self._events, _LONGEST)
            begun = time.monotonic()
            while self._events and (left := begun + self._lingering() - time.monotonic()) > 0:
                self._changed.wait(left)
            events, self._events = self._events, []
        finished = [event for event in events if type(event) is Finished]
        costs = [[*cost] for event in finished for cost in event.costs]
        return [columns(event[:4] for event in finished), costs, [e for e in events if type(e) is not Finished]]

    def _lingering(self) -> float:
        """Seconds for which events wait for more."""
        if not isinstance(self._events[-1], Finished):
            return 0.0
        if not self._feed:
            return _LINGER_IDLE
        return _LINGER if len(self._events) < self._at_once else _LINGER_MANY

    def _run(self, recipe: Recipe[Any], policy: Policy, feed: _Feed) -> None:
        assert recipe.wire is not None
        assert recipe.code is not None
        ledger, unpack, end = recipe.code.ledger, recipe.wire.unpack, Ended()

        def unit_of(given: Any) -> Any:  # a future of more stays as it is
            return unpack(given[1]) if isinstance(given, tuple) else given

        def done(unit: Any, outcome: Outcome) -> None:
            outcome = outcome._replace(attempts=outcome.attempts + self._before.pop(unit.slot, 0))
            if outcome.error is not None and policy.stops_at(outcome.error):
                feed.close()
            costs = ledger.take_costs() if ledger else ()
            self._post(Finished(unit.slot, *recipe.line(unit, outcome), outcome.attempts, costs))

        try:
            with machinery():
                make_calls(as_machinery(map(unit_of, feed)), recipe.call, done, policy)
        except Aborted as error:
            end = Ended(str(error), is_aborted=True)
        except BaseException as error:
            end = Ended(error_text(error))
        try:
            recipe.wire.close()
        finally:
            self._post(end)

    def _post(self, *events: Event) -> None:
        with self._changed:
            self._events += events
            self._changed.notify()


class _Feed:
    """The units that a worker has still to do: an iterator that waits for more until it is closed.

    Threads wait in it. For coroutines, which must not, it gives futures of the time when there are more.
    """

    def __init__(self, is_async: bool) -> None:
        self._is_async = is_async
        self._changed = threading.Condition()
        self._units: deque[tuple[int, bytes]] = deque()
        self._futures: list[asyncio.Future[None]] = []
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._units)

    def put(self, units: Sequence[tuple[int, bytes]]) -> None:
        with self._changed:
            self._units += units
            self._wake()

    def close(self) -> None:
        """Gives no more units."""
        with self._changed:
            self._is_closed = True
            self._units.clear()
            self._wake()

    def _wake(self) -> None:
        self._changed.notify_all()
        for future in self._futures:
            future.get_loop().call_soon_threadsafe(_settle, future)
        self._futures.clear()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        with self._changed:
            if not self._is_async:
                self._changed.wait_for(lambda: self._units or self._is_closed)
            if self._units:
                return self._units.popleft()
            if self._is_closed:
                raise StopIteration
            future = asyncio.get_running_loop().create_future()
            self._futures.append(future)
            return future


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
