"""Rate limits that workers share: one process holds them, and workers ask it for each turn.

A slot is held from the grant until the worker reports that the call has started, so what the reports take on their way
delays further calls, and no period ever contains more starts than the limit allows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Literal

from evaluand.engine.rate_limit import RateLimit, Turn

_POLL: Final = 0.005  # seconds between two looks whether a turn was granted

Report = tuple[Literal["wanted", "started", "sending", "arrived", "returned"], int, int]
"""What became of a turn: the event, the number of the limit, and the number of the turn."""


class HeldLimits:
    """The limits that this process holds for the workers."""

    def __init__(self, limits: Sequence[RateLimit]) -> None:
        self._limits = limits
        self._waiting: dict[tuple[Any, int, int], Turn] = {}  # by worker, limit and number
        self._granted: dict[tuple[Any, int, int], Turn] = {}

    def note(self, worker: Any, report: Report) -> None:
        """Notes what a worker reports."""
        event, limit, number = report
        key = worker, limit, number
        if event == "wanted":
            self._waiting[key] = self._limits[limit].turn()
        elif event == "sending":
            self._granted[key].send()
        else:
            turn = self._waiting.pop(key, None) or self._granted.pop(key)
            {"arrived": turn.arrive, "started": turn.started, "returned": turn.give_back}[event]()

    def grant(self) -> list[tuple[Any, int, int]]:
        """The worker, the number of the limit and that of the turn, for all turns that may start now."""
        granted = [key for key, turn in self._waiting.items() if turn.pause() <= 0]
        self._granted.update((key, self._waiting.pop(key)) for key in granted)
        return granted

    @property
    def soonest(self) -> float:
        """Seconds until it is worth asking again; infinite if nobody waits."""
        return min((turn.pause() for turn in self._waiting.values()), default=math.inf)

    def forget(self, worker: Any) -> None:
        """Frees what a worker that has died held; a turn that was granted counts as started."""
        for key in [key for key in self._waiting if key[0] is worker]:
            self._waiting.pop(key).give_back()
        for key in [key for key in self._granted if key[0] is worker]:
            self._granted.pop(key).started()


class AskedLimit(RateLimit):
    """A limit that another process holds.

    Args:
        number: of the limit there.
        like: has its calls and seconds.
        report: sends a report there.
    """

    def __init__(self, number: int, like: RateLimit, report: Callable[[Report], None]) -> None:
        super().__init__(like.calls, like.seconds)
        self.number, self.report = number, report
        self.granted: set[int] = set()
        self._numbers = itertools.count()

    def turn(self) -> Turn:
        return _AskedTurn(self, next(self._numbers))


class _AskedTurn(Turn):
    """A turn that is asked for; it is counted where the limit is held."""

    __slots__ = ("_asked", "_is_open", "_number")

    _limit: AskedLimit

    def __init__(self, limit: AskedLimit, number: int) -> None:
        super().__init__(limit)
        self._asked, self._number = limit, number
        self._is_open = False  # asked for, and neither counted nor returned

    def pause(self) -> float:
        if not self._is_open:
            self._is_open = True
            self._report("wanted")
        return 0.0 if self._number in self._asked.granted else _POLL

    def started(self) -> None:
        self._close("started")

    start = started

    def give_back(self) -> None:
        if self._is_open:
            self._close("returned")

    @contextmanager
    def _sending(self) -> Iterator[None]:
        self._report("sending")
        try:
            yield
        finally:
            self._close("arrived")

    def _close(self, event: Any) -> None:
        self._is_open = False
        self._asked.granted.discard(self._number)
        self._report(event)

    def _report(self, event: Any) -> None:
        self._asked.report((event, self._asked.number, self._number))
