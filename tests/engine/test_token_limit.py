"""How many tokens requests use in a period: more than allowed only by what is in flight, and hardly less."""

from __future__ import annotations

import asyncio
import heapq
import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, strategies as st
from support.clock import Clock, fullest

from evaluand.core.errors import SpecError
from evaluand.engine.rate_limit import RateLimit
from evaluand.engine.token_limit import Reservation, TokenLimit


@dataclass
class Asking:
    """A request: when it comes, its size, what it will use, how long it takes, and after how long it gives up."""

    comes: float
    characters: int
    input_tokens: int
    output_tokens: int
    takes: float
    gives_up: float | None = None

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


@dataclass
class Sent:
    """A request that was sent: when, what the limit expected of it, what it used, and whether that is known."""

    number: int
    at: float
    expected: int
    used: int
    is_settled: bool = False


def check_period(sent: Sequence[Sent], limit: TokenLimit) -> None:
    """Checks the period that ends with the last request sent."""
    period = [each for each in sent if each.at > sent[-1].at - limit.seconds]
    in_flight = sum(each.used for each in period if not each.is_settled)
    assert sum(each.used for each in period) <= limit.tokens + in_flight
    assert len(period) == 1 or sum(each.used if each.is_settled else each.expected for each in period) <= limit.tokens


def simulate(limit: TokenLimit, clock: Clock, askings: Sequence[Asking]) -> list[Sent]:
    """Sends requests as the limit allows, moment by moment."""
    reservations: dict[int, Reservation] = {}
    events = [(asking.comes, number, "asks") for number, asking in enumerate(askings)]
    events += [(each.comes + each.gives_up, n, "leaves") for n, each in enumerate(askings) if each.gives_up is not None]
    heapq.heapify(events)
    waiting: list[int] = []
    sent: list[Sent] = []
    places: dict[int, int] = {}
    while events:
        clock.now, number, what = heapq.heappop(events)
        asking = askings[number]
        if what == "asks":
            waiting.append(number)
            reservations[number] = limit.reserve(asking.characters)
        elif what == "ends":
            reservations[number].settle(asking.input_tokens, asking.output_tokens)
            sent[places[number]].is_settled = True
        elif what == "leaves" and number in waiting:
            waiting.remove(number)
            reservations[number].give_back()
        for each in [*waiting]:  # the first of them that must wait is followed by none
            pause = reservations[each].pause()
            if pause == 0:
                waiting.remove(each)
                reservations[each].start()
                sent.append(Sent(each, clock.now, reservations[each].tokens, askings[each].tokens))
                places[each] = len(sent) - 1
                check_period(sent, limit)
                heapq.heappush(events, (clock.now + askings[each].takes, each, "ends"))
            else:
                assert pause < float("inf")
                heapq.heappush(events, (clock.now + pause, each, "wakes"))
                break
    return sent


asking = st.builds(
    Asking,
    st.floats(0, 5),
    st.integers(0, 2000),
    st.integers(0, 500),
    st.integers(0, 500),
    st.floats(0, 2),
    st.none() | st.floats(0, 3),
)


@given(st.integers(1, 3000), st.lists(asking, max_size=30))
def test_periods_hold_what_is_allowed_and_in_flight_in_the_order_of_coming(tokens: int, askings: list[Asking]) -> None:
    clock = Clock()
    sent = simulate(TokenLimit(tokens, 1.0, clock=clock), clock, askings)
    assert len(sent) >= sum(each.gives_up is None for each in askings)
    came = [askings[each.number].comes for each in sent]
    assert came == sorted(came)  # in the order in which they came


@pytest.mark.parametrize("seconds", [1.0, 60.0])
@pytest.mark.parametrize("usual", [20, 200])
@pytest.mark.slow
def test_where_there_is_work_at_least_90_percent_are_used(seconds: float, usual: int) -> None:
    clock, draw = Clock(), random.Random(usual)
    limit = TokenLimit(100 * usual, seconds, clock=clock)
    askings = []
    for _ in range(600):
        input_tokens, output_tokens = draw.randint(usual // 4, usual), draw.randint(usual // 10, usual // 2)
        askings.append(Asking(0.0, 3 * input_tokens, input_tokens, output_tokens, seconds / 20 * draw.random()))
    sent = simulate(limit, clock, askings)
    steady = [each for each in sent if seconds <= each.at < 4 * seconds]
    assert sum(each.used for each in steady) >= 0.9 * limit.tokens * 3
    assert steady[-1].at > 3 * seconds


def test_estimates_are_the_prompt_and_the_longest_reply_and_then_what_requests_use() -> None:
    limit = TokenLimit(100_000, 60, clock=Clock())
    assert limit.reserve(400).tokens == 100 + 512
    assert limit.reserve(400, max_output=50).tokens == 100 + 50
    for _ in range(3):
        with limit.reserve(1000, max_output=50) as reservation:
            pass
        reservation.settle(input_tokens=500, output_tokens=20)
    assert limit.reserve(400, max_output=50).tokens == 200 + 20
    assert limit.reserve(400, max_output=10).tokens == 200 + 10
    assert limit.used == 3 * 520


def test_a_reply_that_reports_nothing_counts_as_estimated() -> None:
    limit = TokenLimit(1000, 60, clock=Clock())
    with limit.reserve(400, max_output=50) as reservation:
        pass
    reservation.settle()
    assert limit.used == 150
    assert limit.reserve(400, max_output=50).tokens == 150


def test_a_failed_request_counts_and_one_that_was_not_sent_does_not() -> None:
    limit = TokenLimit(1000, 60, clock=Clock())
    with pytest.raises(OSError, match="reset"), limit.reserve(400, max_output=50):
        raise OSError("reset")
    assert limit.used == 150
    unsent = limit.reserve(400, max_output=50)
    unsent.wait()
    assert limit.used == 300
    unsent.give_back()
    assert limit.used == 150


def test_a_request_larger_than_the_limit_goes_alone() -> None:
    clock = Clock()
    limit = TokenLimit(100, 60, clock=clock)
    large, small = limit.reserve(4000, max_output=10), limit.reserve(4, max_output=10)
    assert large.pause() == 0
    large.start()
    assert small.pause() == pytest.approx(61.5)
    clock.now = 61.6
    assert small.pause() == 0


@pytest.mark.parametrize(
    ("text", "tokens", "seconds"), [("100_000/min", 100_000, 60.0), ("2000/s", 2000, 1.0), ("5/0.5 s", 5, 0.5)]
)
def test_a_limit_is_tokens_per_period(text: str, tokens: int, seconds: float) -> None:
    limit = TokenLimit.parse(text)
    assert (limit.tokens, limit.seconds) == (tokens, seconds)
    assert repr(TokenLimit.parse(str(limit))) == repr(limit)


def test_a_wrong_limit_is_refused_with_what_to_write() -> None:
    with pytest.raises(SpecError, match="token_rate is 'many'; write tokens per period, such as 100_000/min or 2000/s"):
        TokenLimit.parse("many")
    with pytest.raises(SpecError, match="a rate of 0 tokens; give an integer of at least 1"):
        TokenLimit(0, 60)


# In threads and event loops


def send_all(limit: TokenLimit, rate: RateLimit | None, n: int, way: str) -> list[tuple[float, int]]:
    """Sends n requests of 80 to 120 tokens, 20 at once: when each was sent, and what it used."""
    sent: list[tuple[float, int]] = []
    sizes = iter([80 + i * 37 % 41 for i in range(n)])

    def settle(reservation: Reservation, size: int) -> None:
        reservation.settle(input_tokens=size - 20, output_tokens=20)

    def work() -> None:
        for size in sizes:
            reservation = limit.reserve(4 * (size - 20), max_output=400)
            with rate.request(reservation) if rate else reservation:
                sent.append((time.monotonic(), size))
                time.sleep(0.01)
            settle(reservation, size)

    async def work_async() -> None:
        for size in sizes:
            reservation = limit.reserve(4 * (size - 20), max_output=400)
            async with rate.request_async(reservation) if rate else reservation:
                sent.append((time.monotonic(), size))
                await asyncio.sleep(0.01)
            settle(reservation, size)

    async def work_all() -> None:
        await asyncio.gather(*(work_async() for _ in range(20)))

    if way == "loop":
        asyncio.run(work_all())
        return sent
    targets: list[Any] = [work] * 20 if way == "threads" else [lambda: asyncio.run(work_all())] * 2
    threads = [threading.Thread(target=each) for each in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sent


@pytest.mark.parametrize("way", ["threads", "loop", "two loops"])
@pytest.mark.parametrize("rate", [None, "15/0.3 s"])
def test_callers_in_threads_and_loops_share_a_limit(way: str, rate: str | None) -> None:
    sent = send_all(TokenLimit(2000, 0.3), RateLimit.parse(rate) if rate else None, 30, way)
    assert len(sent) == 30
    # of each period, 40 requests in flight may use what is beyond their estimates, about 100
    tokens = [sum(size for other, size in sent if at <= other < at + 0.3) for at, _ in sent]
    assert max(tokens) <= 2000 + 40 * 20
    if rate:
        assert fullest([at for at, _ in sent], 0.3) <= 15


def test_a_caller_that_is_cancelled_lets_the_next_go() -> None:
    async def work() -> list[str]:
        limit, sent = TokenLimit(100, 0.3), []

        async def send(name: str, characters: int) -> None:
            async with limit.reserve(characters, max_output=10):
                sent.append(name)

        first = asyncio.create_task(send("first", 320))
        await asyncio.sleep(0)
        large, small = asyncio.create_task(send("large", 360)), asyncio.create_task(send("small", 4))
        await asyncio.sleep(0)
        large.cancel()
        await asyncio.gather(first, small)
        return sent

    assert asyncio.run(work()) == ["first", "small"]
