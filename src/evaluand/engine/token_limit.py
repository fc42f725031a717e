"""Token limits: how many tokens requests may use in a period, across all callers.

How many tokens a request uses is known only when its reply has come. So it reserves an estimate before it is sent, and
settles it afterwards. The requests of any period use more than the limit by at most what those in flight use beyond
their estimates; with the mean of earlier requests as estimate, that is little.

Requests go in the order in which they came, so that a large one is not passed by small ones forever. One that is larger
than the limit goes when no other counts. Tokens count from when their request is sent, because that is when services
count them; the period is taken 2.5 percent longer, for the way there.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Self

from evaluand.engine.limits import MARGIN, Limit

CHARACTERS_PER_TOKEN: Final = 4.0  # of English text, until replies say how many there are
USUAL_OUTPUT: Final = 512  # tokens of a reply without a limit, until replies say how many they have
_FADING: Final = 0.99  # weight of an earlier request in the means, relative to the next one


class TokenLimit(Limit):
    """At most `tokens` tokens in any period; one object, shared by all callers.

    Args:
        tokens: of requests and their replies, in a period.
        seconds: the length of the period.
        clock: returns the time in seconds.

    Example:
        >>> limit = TokenLimit(1000, 60)
        >>> with limit.reserve(characters=400, max_output=100) as reservation:
        ...     reservation.tokens  # before the request is sent
        200
        >>> reservation.settle(input_tokens=90, output_tokens=10)
        >>> limit.used
        100
    """

    unit, option, examples = "tokens", "token_rate", "100_000/min or 2000/s"

    def __init__(self, tokens: int, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(tokens, seconds, clock)
        self.tokens = tokens
        self._waiting: deque[Reservation] = deque()
        self._sent: deque[Reservation] = deque()  # in the order of time
        self._used = 0  # by all that count now: admitted, and sent less than a period ago
        self._characters = _FadingMean()
        self._input, self._output = _FadingMean(), _FadingMean()

    @property
    def used(self) -> int:
        """Tokens that count now: of the last period, and reserved ones."""
        with self._lock:
            self._forget(self._clock())
            return self._used

    def reserve(self, characters: int, max_output: int | None = None) -> Reservation:
        """A reservation for a request, whose block or `wait` waits until it may be sent.

        Args:
            characters: the length of the texts in the request.
            max_output: the largest number of tokens of the reply, if it is limited.
        """
        return Reservation(self, characters, max_output)

    def _admit(self, now: float) -> None:
        """Admits those who are first in line while there is room, and wakes the next, who watches the time then."""
        self._forget(now)
        first = self._waiting[0] if self._waiting else None
        while self._waiting and (self._used == 0 or self._used + self._waiting[0].tokens <= self.tokens):
            reservation = self._waiting.popleft()
            reservation._admit()
            self._used += reservation.tokens
        if self._waiting and self._waiting[0] is not first:
            self._waiting[0]._wake()

    def _pause(self, tokens: int, now: float) -> float:
        """Seconds until so many tokens are free, if no reservation is settled before."""
        excess = self._used + tokens - self.tokens
        for reservation in self._sent:
            excess -= reservation.tokens
            if excess <= 0:
                return max(reservation.until - now, 0.001)
        return max(self._sent[-1].until - now, 0.001) if self._sent else self.seconds

    def _forget(self, now: float) -> None:
        while self._sent and self._sent[0].until <= now:
            expired = self._sent.popleft()
            expired._state = _OVER
            self._used -= expired.tokens

    def _estimate(self, characters: int, max_output: int | None) -> tuple[int, int]:
        """The tokens that a request will probably use: input and output."""
        input_tokens = characters * self._input.ratio(self._characters, 1 / CHARACTERS_PER_TOKEN)
        output_tokens = self._output.mean(USUAL_OUTPUT if max_output is None else max_output)
        return math.ceil(input_tokens), math.ceil(min(output_tokens, math.inf if max_output is None else max_output))


class Reservation:
    """The tokens of one request: estimated, until they are settled.

    `with` and `async with` wait until the request may be sent, and count it as sent; the block sends it. If it fails,
    the estimate counts, because services may count failed requests too.
    """

    def __init__(self, limit: TokenLimit, characters: int, max_output: int | None) -> None:
        self._limit, self._characters, self._max_output = limit, characters, max_output
        self._counted: tuple[int, int] | None = None  # input and output; a request that waits is estimated anew
        self._state = _NEW
        self._wake: Callable[[], None] = lambda: None
        self.until = math.inf

    @property
    def tokens(self) -> int:
        """The estimate, or the tokens used once they are known; at least 1."""
        return max(sum(self._counted or self._limit._estimate(self._characters, self._max_output)), 1)

    def __enter__(self) -> Self:
        self.wait()
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back()

    async def __aenter__(self) -> Self:
        await self.wait_async()
        self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.give_back()

    def wait(self) -> None:
        """Waits in a thread until there is room."""
        woken = threading.Event()
        self._wake = woken.set
        try:
            while pause := self.pause():
                woken.wait(min(pause, threading.TIMEOUT_MAX))
                woken.clear()
        except BaseException:
            self.give_back()
            raise

    async def wait_async(self) -> None:
        """Waits in an event loop until there is room."""
        loop, woken = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop is closed, and whoever waited in it has ended
                loop.call_soon_threadsafe(woken.set)

        self._wake = wake
        try:
            while pause := self.pause():
                with suppress(TimeoutError):
                    async with asyncio.timeout(None if pause == math.inf else pause):
                        await woken.wait()
                woken.clear()
        except BaseException:
            self.give_back()
            raise

    def pause(self) -> float:
        """Seconds until it is worth asking again; 0 if there is room, infinite while others are first in line."""
        limit = self._limit
        with limit._lock:
            now = limit._clock()
            if self._state == _NEW:
                self._state = _WAITING
                limit._waiting.append(self)
            limit._admit(now)
            if self._state == _ADMITTED:
                return 0.0
            return limit._pause(self.tokens, now) if limit._waiting[0] is self else math.inf

    def start(self) -> None:
        """Counts the request as sent."""
        limit = self._limit
        with limit._lock:
            if self._state == _ADMITTED:
                self._state = _SENT
                self.until = limit._clock() + limit.seconds * (1 + MARGIN)
                limit._sent.append(self)
                limit._admit(limit._clock())

    def settle(self, input_tokens: int | None = None, output_tokens: int | None = None) -> None:
        """Replaces the estimate by the tokens that the reply reports; None leaves an estimate as it is."""
        limit = self._limit
        with limit._lock:
            if input_tokens is not None:
                limit._characters.add(self._characters)
                limit._input.add(input_tokens)
            if output_tokens is not None:
                limit._output.add(output_tokens)
            if self._counted is not None and self._state in (_ADMITTED, _SENT):
                before, (input_estimate, output_estimate) = self.tokens, self._counted
                self._counted = (
                    input_estimate if input_tokens is None else input_tokens,
                    output_estimate if output_tokens is None else output_tokens,
                )
                limit._used += self.tokens - before
                limit._admit(limit._clock())

    def give_back(self) -> None:
        """Returns the tokens of a request that was not sent; of others nothing."""
        limit = self._limit
        with limit._lock:
            if self._state == _WAITING:
                is_first = limit._waiting[0] is self
                limit._waiting.remove(self)
                if is_first and limit._waiting:
                    limit._waiting[0]._wake()
            elif self._state == _ADMITTED:
                limit._used -= self.tokens
            if self._state in (_WAITING, _ADMITTED):
                self._state = _OVER
                limit._admit(limit._clock())

    def _admit(self) -> None:
        self._counted = self._limit._estimate(self._characters, self._max_output)
        self._state = _ADMITTED
        self._wake()


class _FadingMean:
    """A mean in which earlier values count less and less."""

    def __init__(self) -> None:
        self._sum = self._weight = 0.0

    def add(self, value: float) -> None:
        self._sum = self._sum * _FADING + value
        self._weight = self._weight * _FADING + 1.0

    def mean(self, unknown: float) -> float:
        return self._sum / self._weight if self._weight else unknown

    def ratio(self, other: _FadingMean, unknown: float) -> float:
        return self._sum / other._sum if other._sum else unknown


_NEW, _WAITING, _ADMITTED, _SENT, _OVER = range(5)
