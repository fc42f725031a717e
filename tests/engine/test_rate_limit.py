"""How many calls start in a period: never more than allowed, hardly fewer where there is work."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, strategies as st
from support.clock import Clock, fullest
from support.patience import PATIENCE
from support.processes import press_ctrl_c

from evaluand.core.errors import SpecError, TransientError
from evaluand.data.dataset import Dataset
from evaluand.engine.engines.local import make_calls
from evaluand.engine.limits import MARGIN
from evaluand.engine.outcome import Outcome
from evaluand.engine.policy import Policy
from evaluand.engine.rate_limit import RateLimit, Turn
from evaluand.run.runner import Runner


def test_the_fullest_period_is_found_wherever_it_begins() -> None:
    assert fullest([0.0, 0.9, 1.0, 1.1, 1.8, 5.0], 1.0) == 4
    assert fullest([], 1.0) == 0


Caller = tuple[float, float, float, float | None]
"""When it comes, how late it wakes, how late its call then starts, and after how long it gives up."""


def starts_of(pace: RateLimit, clock: Clock, callers: Sequence[Caller], after: bool = False) -> list[float]:
    """When the calls of all callers start, moment by moment; the pace is told just before a start, or after it."""
    events = [(comes, number, "asks") for number, (comes, *_) in enumerate(callers)]
    events += [(c[0] + c[3], number, "leaves") for number, c in enumerate(callers) if c[3] is not None]
    heapq.heapify(events)
    turns = {number: pace.turn() for number in range(len(callers))}
    started: dict[int, Turn] = {}
    starts = []
    while events:
        clock.now, number, what = heapq.heappop(events)
        if what == "has started":
            started.pop(number).started()
            continue
        turn = turns.get(number)
        if turn is None:
            continue
        pause = turn.pause() if what == "asks" else 0.0
        if pause:
            heapq.heappush(events, (clock.now + pause + callers[number][1], number, "asks"))
            continue
        if what == "asks" and after:
            starts.append(clock.now)
            started[number] = turns.pop(number)
            heapq.heappush(events, (clock.now + callers[number][2], number, "has started"))
            continue
        if what == "asks":
            turn.start()
            starts.append(clock.now + callers[number][2])
        turn.give_back()
        del turns[number]
    return starts


moments = st.floats(0, 5, allow_nan=False)
late = st.floats(0, 0.3)
unseen = st.floats(0, MARGIN)
caller = st.tuples(moments, late, unseen, st.none() | st.floats(0, 3))


@given(st.integers(1, 7), st.lists(caller, max_size=80), st.booleans())
def test_no_period_ever_holds_more_starts_than_allowed(calls: int, callers: list[Caller], after: bool) -> None:
    clock = Clock()
    starts = starts_of(RateLimit(calls, 1.0, clock=clock), clock, callers, after)
    assert fullest(starts, 1.0) <= calls
    assert len(starts) >= sum(gives_up is None for *_, gives_up in callers)


@given(st.integers(1, 20), st.integers(1, 40), st.sampled_from([0.1, 1.0, 60.0]))
def test_where_there_is_work_at_least_95_percent_of_a_pace_are_used(calls: int, workers: int, seconds: float) -> None:
    clock = Clock()
    pace = RateLimit(calls, seconds, clock=clock)
    waiting = [(0.0, number, pace.turn()) for number in range(workers)]
    starts = []
    while clock.now < 30 * seconds:
        clock.now, number, turn = heapq.heappop(waiting)
        pause = turn.pause()
        if not pause:
            starts.append(clock.now)
            turn.start()
            turn = pace.turn()
        heapq.heappush(waiting, (clock.now + pause, number, turn))
    assert fullest(starts, seconds) == calls
    assert len(starts) >= 0.95 * calls * 30


def test_what_nobody_used_does_not_add_up() -> None:
    clock = Clock()
    pace = RateLimit(3, 1.0, clock=clock)
    assert len(starts_of(pace, clock, [(0.0, 0, 0, None)])) == 1
    starts = starts_of(pace, clock, [(10.0, 0, 0, None)] * 7)
    assert sorted(starts) == pytest.approx([10.0] * 3 + [11.025] * 3 + [12.05])


def test_a_turn_given_up_costs_no_start() -> None:
    clock = Clock()
    pace = RateLimit(1, 1.0, clock=clock)
    with pace.turn() as first:
        assert first.pause() == 0
        first.start()
    with pace.turn() as second:
        assert second.pause() == pytest.approx(1.025)
        assert pace.turn().pause() == 1.0  # the one slot is held by the second
    with pace.turn() as third:
        assert third.pause() == pytest.approx(1.025)
        clock.now = 1.03
        assert third.pause() == 0


# In what a rate is written


@pytest.mark.parametrize(
    ("text", "calls", "seconds"),
    [
        ("10/s", 10, 1.0),
        ("60/min", 60, 60.0),
        ("5000/h", 5000, 3600.0),
        ("5_000 / hour", 5000, 3600.0),
        ("1/day", 1, 86400.0),
        ("100/0.5 s", 100, 0.5),
        ("30/10 Min", 30, 600.0),
    ],
)
def test_a_rate_is_calls_per_period(text: str, calls: int, seconds: float) -> None:
    policy = Policy(rate=text)
    assert policy.rate_limit is not None
    assert (policy.rate_limit.calls, policy.rate_limit.seconds) == (calls, seconds)
    again = RateLimit.parse(str(policy.rate_limit))
    assert (again.calls, again.seconds) == (calls, seconds)


@pytest.mark.parametrize("wrong", ["", "60", "60/", "/min", "60/fortnight", "fast", "1.5/s", "-1/s", "60 per min"])
def test_a_text_that_says_no_rate_is_refused_with_what_to_write(wrong: str) -> None:
    with pytest.raises(SpecError) as raised:
        Policy(rate=wrong)
    assert f"rate is {wrong!r}; write calls per period, such as 10/s, 60/min or 5000/h" in str(raised.value)


@pytest.mark.parametrize("wrong", [60, 1.5, ("60", "min"), True])
def test_a_rate_of_another_type_is_refused(wrong: Any) -> None:
    with pytest.raises(SpecError, match="give a RateLimit, or a text such as 10/s"):
        Policy(rate=wrong)


@pytest.mark.parametrize(
    ("calls", "seconds", "message"),
    [
        (0, 1, "a rate of 0 calls; give an integer of at least 1"),
        (1.5, 1, "a rate of 1.5 calls"),
        (True, 1, "a rate of True calls"),
        (1, 0, "a rate over 0 seconds; give a number above 0"),
        (1, float("nan"), "a rate over nan seconds"),
        (1, float("inf"), "a rate over inf seconds"),
        (1, "60", "a rate over '60' seconds"),
    ],
)
def test_a_pace_that_cannot_be_kept_is_refused(calls: Any, seconds: Any, message: str) -> None:
    with pytest.raises(SpecError) as raised:
        RateLimit(calls, seconds)
    assert message in str(raised.value)


# In runs


def data(n: int) -> Dataset:
    return Dataset.from_rows([{"input": i} for i in range(n)])


class Stamps:
    """Notes when each call starts, from inside the task."""

    def __init__(self) -> None:
        self.all: list[float] = []

    def plain(self, number: int) -> int:
        self.all.append(time.monotonic())
        return number

    async def coroutine(self, number: int) -> int:
        self.all.append(time.monotonic())
        await asyncio.sleep(0)
        return number


# How soon a thread reaches its task's first line depends on who else uses the machine; an event loop's time is exact.
WAYS = pytest.mark.parametrize("way", [pytest.param("plain", marks=pytest.mark.slow), "coroutine"])


@WAYS
def test_calls_stamped_inside_the_task_keep_the_limit(way: str) -> None:
    stamps = Stamps()
    run = Runner(policy=Policy(concurrency=16, rate="50/0.5 s")).run(getattr(stamps, way), data(100))
    assert run.counts == {"completed": 100}
    assert fullest(stamps.all, 0.5) <= 50
    assert run.manifest["provenance"]["policy"]["rate"] == "50/0.5 s"


@pytest.mark.slow
@pytest.mark.parametrize("way", ["plain", "coroutine"])
def test_a_long_run_uses_its_rate(way: str) -> None:
    def used() -> bool:
        stamps = Stamps()
        Runner(policy=Policy(concurrency=16, rate="100/0.5 s")).run(getattr(stamps, way), data(2000))
        calls_per_period = 2000 / ((stamps.all[-1] - stamps.all[0]) / 0.5 + 1)
        return fullest(stamps.all, 0.5) <= 100 and calls_per_period >= 0.95 * 100

    assert any(used() for _ in range(3))  # on a busy machine a call may begin long after its turn


@WAYS
def test_one_pace_is_shared_by_several_runs(way: str) -> None:
    stamps, pace = Stamps(), RateLimit(20, 0.5)
    runners = [Runner(policy=Policy(concurrency=8, rate=pace)) for _ in range(2)]
    threads = [threading.Thread(target=r.run, args=(getattr(stamps, way), data(20))) for r in runners]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(stamps.all) == 40
    assert fullest(stamps.all, 0.5) <= 20


@WAYS
def test_further_attempts_wait_for_their_turn_too(way: str) -> None:
    stamps, calls = Stamps(), Counter[int]()

    def flaky(number: int) -> int:
        stamps.plain(number)
        calls[number] += 1
        if calls[number] < 3:
            raise TransientError("busy")
        return number

    async def flaky_async(number: int) -> int:
        return flaky(number)

    policy = Policy(concurrency=8, rate=RateLimit(12, 0.4), retries=2, backoff=0)
    run = Runner(policy=policy).run(flaky if way == "plain" else flaky_async, data(8))
    assert run.table()["attempts"].to_pylist() == [3] * 8
    assert len(stamps.all) == 24
    assert fullest(stamps.all, 0.4) <= 12


@pytest.mark.parametrize("way", ["plain", "coroutine"])
@pytest.mark.slow
def test_waiting_for_a_turn_is_no_part_of_the_time_a_call_may_take(way: str) -> None:
    stamps = Stamps()
    run = Runner(policy=Policy(concurrency=3, rate=RateLimit(2, 1.5), timeout=1.2)).run(getattr(stamps, way), data(3))
    assert run.counts == {"completed": 3}
    assert stamps.all[-1] - stamps.all[0] >= 1.5


@pytest.mark.parametrize("way", ["plain", "coroutine"])
def test_an_interrupt_ends_the_waiting_at_once_and_gives_the_turns_back(way: str) -> None:
    pace = RateLimit(3, PATIENCE)
    found: dict[int, Outcome] = {}
    made = itertools.count(1)

    def call(unit: int) -> int:
        if next(made) == 3:
            threading.Event().wait(0.1)  # lets the others reach their turn
            press_ctrl_c()
        return unit

    async def call_async(unit: int) -> int:
        return call(unit)

    with pytest.raises(KeyboardInterrupt):
        make_calls(
            iter(range(10)), call if way == "plain" else call_async, found.__setitem__, Policy(concurrency=5, rate=pace)
        )
    assert next(made) == 4
    assert len(found) <= 3
    assert len(pace._free) == 3
    assert max(slot.since for slot in pace._free) > time.monotonic()  # the period has not passed
