"""How calls are made: how many at once, for how long, how often again, and what stops them."""

from __future__ import annotations

import asyncio
import functools
import itertools
import re
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.patience import PATIENCE
from support.processes import press_ctrl_c
from support.unread import Unread

from evaluand.core.errors import SpecError, TaskError, TaskTimeout, TransientError
from evaluand.data.dataset import Dataset
from evaluand.engine.engine import Engine
from evaluand.engine.engines.local import LocalEngine, make_calls, make_calls_inline
from evaluand.engine.engines.processes import ProcessEngine
from evaluand.engine.event_loop import run_coroutine
from evaluand.engine.outcome import Aborted, Outcome
from evaluand.engine.policy import MAX_BACKOFF, Policy
from evaluand.engine.repeats import repeat_request, repeat_request_async
from evaluand.run.runner import Run, Runner
from evaluand.run.task import task
from evaluand.store.store import MemoryStore

LIMIT = 0.3  # seconds; calls that are to end in time take microseconds

Call = Callable[[Any], Any]
Make = Callable[[Any, Call, Any, Policy], None]


def plain(function: Call) -> Call:
    return function


def coroutine(function: Call) -> Call:
    @functools.wraps(function)
    async def call(unit: Any) -> Any:
        return function(unit)

    return call


WAYS = pytest.mark.parametrize("way", [pytest.param(plain, id="threads"), pytest.param(coroutine, id="coroutines")])


def outcomes(call: Call, units: Iterable[int], policy: Policy, make: Make = make_calls) -> dict[int, Outcome]:
    """What became of each unit; every unit has one outcome."""
    found: dict[int, Outcome] = {}
    collect(found, call, units, policy, make)
    return found


def collect(
    found: dict[int, Outcome], call: Call, units: Iterable[int], policy: Policy, make: Make = make_calls
) -> None:
    def done(unit: int, outcome: Outcome) -> None:
        if unit in found:
            raise AssertionError(f"unit {unit} ended twice")
        found[unit] = outcome

    make(iter(units), call, done, policy)


def numbers(n: int) -> Dataset:
    return Dataset.from_rows([{"input": i} for i in range(n)])


def statuses(run: Run) -> list[str]:
    return [response.status for response in run]


def by_index(run: Run) -> dict[int, Any]:
    return {response.index: response for response in run}


# Concurrency


class Meter:
    """How many calls are in flight, and how many were at most."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.now = self.peak = 0

    def __enter__(self) -> None:
        with self._lock:
            self.now += 1
            self.peak = max(self.peak, self.now)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.now -= 1


@pytest.mark.parametrize("concurrency", [1, 5])
def test_threads_make_as_many_calls_at_once_as_allowed_and_no_more(concurrency: int) -> None:
    meter, together = Meter(), threading.Barrier(concurrency)

    def call(unit: int) -> int:
        with meter:
            together.wait(PATIENCE)  # passes only when as many calls as allowed are in flight
            return unit

    found = outcomes(call, range(concurrency * 12), Policy(concurrency=concurrency))
    assert len(found) == concurrency * 12
    assert meter.peak == concurrency


@pytest.mark.parametrize("waits_first", [False, True])
def test_quick_calls_are_made_by_one_thread_also_after_slow_ones(waits_first: bool) -> None:
    concurrency, n_quick = 8, 40_000
    together = threading.Barrier(concurrency)

    def call(unit: int) -> int:
        if waits_first and unit < concurrency:
            together.wait(PATIENCE)  # passes only in as many threads
        return threading.get_ident()

    found = outcomes(call, range(concurrency + n_quick), Policy(concurrency=concurrency))
    threads = [found[unit].value for unit in range(concurrency, concurrency + n_quick)]
    n_at_once = [len({*threads[start : start + 2_000]}) for start in range(n_quick // 2, n_quick, 2_000)]
    assert len(found) == concurrency + n_quick
    assert statistics.median(n_at_once) <= 2  # of 8: others join only where the machine holds a call up


def test_others_work_while_one_call_waits_for_its_next_attempt() -> None:
    done: list[int] = []

    def call(unit: int) -> int:
        if unit == 0 and not done:
            raise TransientError("busy")
        return unit

    make_calls(iter(range(50)), call, lambda unit, _: done.append(unit), Policy(4, retries=1, backoff=LIMIT))
    assert done[-1] == 0
    assert sorted(done) == [*range(50)]


@pytest.mark.parametrize("concurrency", [1, 5])
def test_coroutines_make_as_many_calls_at_once_as_allowed_and_no_more(concurrency: int) -> None:
    meter, waiting = Meter(), list[asyncio.Event]()

    async def call(unit: int) -> int:
        with meter:
            mine = asyncio.Event()
            waiting.append(mine)
            if len(waiting) == concurrency:
                for event in waiting:
                    event.set()
                waiting.clear()
            await asyncio.wait_for(mine.wait(), PATIENCE)
            return unit

    found = outcomes(call, range(concurrency * 12), Policy(concurrency=concurrency))
    assert len(found) == concurrency * 12
    assert meter.peak == concurrency


@WAYS
def test_units_are_taken_only_when_a_call_can_be_made(way: Callable[[Call], Call]) -> None:
    taken, ended, ahead = 0, 0, 0

    def units() -> Iterator[int]:
        nonlocal taken, ahead
        for unit in range(200):
            taken += 1
            ahead = max(ahead, taken - ended)
            yield unit

    def done(unit: int, outcome: Outcome) -> None:
        nonlocal ended
        ended += 1

    make_calls(units(), way(lambda unit: unit), done, Policy(concurrency=4))
    assert taken == ended == 200
    assert ahead <= 4


@WAYS
def test_every_unit_has_one_outcome_with_what_its_call_gave(way: Callable[[Call], Call]) -> None:
    found = outcomes(way(lambda unit: unit * 2), range(500), Policy(concurrency=16))
    assert {unit: outcome.value for unit, outcome in found.items()} == {unit: unit * 2 for unit in range(500)}
    assert {(o.error, o.attempts) for o in found.values()} == {(None, 1)}


@WAYS
def test_nothing_to_do_ends_at_once(way: Callable[[Call], Call]) -> None:
    assert outcomes(way(lambda unit: unit), [], Policy()) == {}


@WAYS
def test_outcomes_are_handed_over_one_at_a_time(way: Callable[[Call], Call]) -> None:
    meter = Meter()

    def done(unit: int, outcome: Outcome) -> None:
        with meter:
            threading.Event().wait(0.0005)

    make_calls(iter(range(100)), way(lambda unit: unit), done, Policy(concurrency=8))
    assert meter.peak == 1


# Timeouts


def test_a_coroutine_that_takes_too_long_costs_one_example() -> None:
    @task
    async def sometimes_hangs(number: int) -> int:
        if number == 3:
            await asyncio.sleep(PATIENCE)
        return number

    run = Runner(policy=Policy(concurrency=2, timeout=LIMIT)).run(sometimes_hangs, numbers(20))
    assert run.counts == {"completed": 19, "failed": 1}
    error = by_index(run)[3].error
    assert (error["type"], error["code"]) == ("TaskTimeout", "timeout")
    assert f"{LIMIT} s" in error["message"]


def test_a_thread_that_hangs_costs_one_example_and_the_run_ends() -> None:
    never = threading.Event()

    @task
    def sometimes_hangs(number: int) -> int:
        if number == 3:
            never.wait(PATIENCE)
        return number

    try:
        run = Runner(policy=Policy(concurrency=2, timeout=LIMIT)).run(sometimes_hangs, numbers(20))
        assert not never.is_set()
    finally:
        never.set()
    assert run.counts == {"completed": 19, "failed": 1}
    error = by_index(run)[3].error
    assert (error["type"], error["code"]) == ("TaskTimeout", "timeout")


def test_as_many_hanging_threads_as_are_allowed_do_not_stop_the_rest() -> None:
    never = threading.Event()

    def call(unit: int) -> int:
        if unit < 2:
            never.wait(PATIENCE)
        return unit

    try:
        found = outcomes(call, range(50), Policy(concurrency=2, timeout=LIMIT))
    finally:
        never.set()
    assert {unit for unit, outcome in found.items() if isinstance(outcome.error, TaskTimeout)} == {0, 1}
    assert len(found) == 50


def test_what_a_thread_gives_after_its_time_is_ignored() -> None:
    others_run, late_ended = threading.Event(), threading.Event()

    def call(unit: int) -> str:
        if unit == 0:
            others_run.wait(PATIENCE)
            late_ended.set()
            return "late"
        others_run.set()
        assert late_ended.wait(PATIENCE)
        return "in time"

    found = outcomes(call, range(10), Policy(concurrency=1, timeout=LIMIT))
    assert isinstance(found[0].error, TaskTimeout)
    assert found[0].value is None
    assert {found[unit].value for unit in range(1, 10)} == {"in time"}


@WAYS
def test_a_timeout_raised_by_the_task_itself_is_no_timeout_of_the_run(way: Callable[[Call], Call]) -> None:
    def call(unit: int) -> int:
        raise TimeoutError("the server says so")

    found = outcomes(way(call), range(3), Policy(timeout=PATIENCE))
    assert {type(outcome.error) for outcome in found.values()} == {TimeoutError}


def hangs_at_first(counts: Counter[int], before: int) -> tuple[Call, Call]:
    """A call that raises a transient error `before` times, then hangs once, then works; for threads and coroutines."""

    def starts(unit: int) -> str:
        counts[unit] += 1
        if counts[unit] <= before:
            raise TransientError("busy")
        return "hang" if counts[unit] == before + 1 else "work"

    def in_thread(unit: int) -> int:
        if starts(unit) == "hang":
            threading.Event().wait(4 * LIMIT)
        return unit

    async def in_loop(unit: int) -> int:
        if starts(unit) == "hang":
            await asyncio.sleep(PATIENCE)
        return unit

    return in_thread, in_loop


@pytest.mark.parametrize("place", [pytest.param(0, id="threads"), pytest.param(1, id="coroutines")])
def test_a_call_that_took_too_long_is_tried_again_where_that_is_declared_transient(place: int) -> None:
    counts = Counter[int]()
    policy = Policy(timeout=LIMIT, retries=2, backoff=0, transient=("TaskTimeout",))
    found = outcomes(hangs_at_first(counts, before=0)[place], [7], policy)
    assert (found[7].value, found[7].error, found[7].attempts) == (7, None, 2)
    assert counts == {7: 2}


@pytest.mark.parametrize("place", [pytest.param(0, id="threads"), pytest.param(1, id="coroutines")])
def test_a_call_that_takes_too_long_counts_the_attempts_before_it(place: int) -> None:
    counts = Counter[int]()
    policy = Policy(timeout=LIMIT, retries=5, backoff=0)
    found = outcomes(hangs_at_first(counts, before=2)[place], [7], policy)
    assert isinstance(found[7].error, TaskTimeout)
    assert found[7].attempts == counts[7] == 3


# Retries


class Busy(ConnectionResetError):
    """Transient, since one of its bases is."""


class Hiccup(Exception):
    """Transient only where its name is declared."""


def fails_at_first(times: int, error: BaseException) -> tuple[Call, Counter[int]]:
    counts = Counter[int]()

    def call(unit: int) -> int:
        counts[unit] += 1
        if counts[unit] <= times:
            raise error
        return unit

    return call, counts


@WAYS
@pytest.mark.parametrize("error", [TransientError("busy"), ConnectionError("gone"), Busy("reset")])
def test_a_transient_error_is_tried_again_until_the_call_works(
    way: Callable[[Call], Call], error: BaseException
) -> None:
    call, counts = fails_at_first(2, error)
    found = outcomes(way(call), range(10), Policy(retries=3, backoff=0.001))
    assert {(o.error, o.attempts) for o in found.values()} == {(None, 3)}
    assert set(counts.values()) == {3}


@WAYS
def test_retries_end(way: Callable[[Call], Call]) -> None:
    call, counts = fails_at_first(99, TransientError("busy"))
    found = outcomes(way(call), range(10), Policy(retries=3, backoff=0.001))
    assert {(type(o.error), o.attempts) for o in found.values()} == {(TransientError, 4)}
    assert set(counts.values()) == {4}


@WAYS
@pytest.mark.parametrize("error", [ValueError("no"), KeyError("no"), Hiccup("no"), OSError("no")])
def test_an_error_that_is_not_declared_transient_is_not_tried_again(
    way: Callable[[Call], Call], error: BaseException
) -> None:
    call, counts = fails_at_first(1, error)
    found = outcomes(way(call), range(10), Policy(retries=3, backoff=0.001))
    assert {(type(o.error), o.attempts) for o in found.values()} == {(type(error), 1)}
    assert set(counts.values()) == {1}


@WAYS
def test_without_retries_a_transient_error_fails_at_once(way: Callable[[Call], Call]) -> None:
    call, counts = fails_at_first(1, TransientError("busy"))
    found = outcomes(way(call), range(3), Policy())
    assert {(type(o.error), o.attempts) for o in found.values()} == {(TransientError, 1)}
    assert set(counts.values()) == {1}


@WAYS
def test_any_class_can_be_declared_transient_by_name(way: Callable[[Call], Call]) -> None:
    call, _ = fails_at_first(1, Hiccup("once"))
    found = outcomes(way(call), range(3), Policy(retries=1, backoff=0, transient=("Hiccup",)))
    assert {(o.error, o.attempts) for o in found.values()} == {(None, 2)}


# Repeated requests


def test_a_request_is_repeated_without_the_rest_of_its_call_and_each_repeat_is_an_attempt() -> None:
    first, requested = fails_at_first(1, TransientError("busy"))
    second, again = fails_at_first(2, TransientError("busy"))
    calls = Counter[int]()

    def call(unit: int) -> int:
        calls[unit] += 1
        return repeat_request(lambda: first(unit)) + repeat_request(lambda: second(unit))

    found = outcomes(call, range(5), Policy(retries=2, backoff=0.001))
    assert {(outcome.value == 2 * unit, outcome.attempts) for unit, outcome in found.items()} == {(True, 4)}
    assert (set(calls.values()), set(requested.values()), set(again.values())) == ({1}, {2}, {3})


def test_repeats_of_a_request_end_and_the_call_is_not_repeated_for_it() -> None:
    request, requested = fails_at_first(99, TransientError("busy"))
    found = outcomes(lambda unit: repeat_request(lambda: request(unit)), [7], Policy(retries=2, backoff=0.001))
    assert isinstance(found[7].error, TransientError)
    assert found[7].attempts == requested[7] == 3
    with pytest.raises(TransientError):
        repeat_request(lambda: request(8))
    assert requested[8] == 1  # nothing says outside of a run how often


def test_each_repeat_of_a_request_has_the_time_and_the_turn_of_an_attempt() -> None:
    starts: list[float] = []

    def request() -> int:
        starts.append(time.monotonic())
        if len(starts) < 2:
            raise TransientError("busy")
        return 7

    policy = Policy(timeout=LIMIT, retries=1, backoff=0, rate=f"1/{1.5 * LIMIT} s")
    found = outcomes(lambda unit: repeat_request(request), [7], policy)
    assert (found[7].value, found[7].attempts) == (7, 2)
    assert starts[1] - starts[0] >= 1.5 * LIMIT


async def asked(request: Callable[[int], int], unit: int) -> int:
    await asyncio.sleep(0)
    return request(unit)


def in_coroutine(request: Callable[[int], int]) -> Call:
    async def call(unit: int) -> int:
        return await repeat_request_async(lambda: asked(request, unit))

    return call


def in_thread_that_waits(request: Callable[[int], int]) -> Call:
    return lambda unit: run_coroutine(repeat_request_async(lambda: asked(request, unit)))


@pytest.mark.parametrize("way", [in_coroutine, in_thread_that_waits])
def test_a_request_of_an_event_loop_is_repeated_alone(way: Callable[[Callable[[int], int]], Call]) -> None:
    request, requested = fails_at_first(2, TransientError("busy"))
    found = outcomes(way(request), range(5), Policy(retries=2, backoff=0.001, rate="1000/s"))
    assert {(outcome.value == unit, outcome.attempts) for unit, outcome in found.items()} == {(True, 3)}
    assert set(requested.values()) == {3}

    request, requested = fails_at_first(99, TransientError("busy"))
    found = outcomes(way(request), [7], Policy(retries=2, backoff=0.001))
    assert isinstance(found[7].error, TransientError)
    assert found[7].attempts == requested[7] == 3
    with pytest.raises(TransientError):
        asyncio.run(repeat_request_async(lambda: asked(request, 8)))
    assert requested[8] == 1  # nothing says outside of a run how often


@pytest.mark.parametrize("waits", [asyncio.sleep, lambda seconds: asyncio.to_thread(time.sleep, seconds)])
@pytest.mark.slow
def test_each_repeat_in_an_event_loop_has_the_time_and_the_turn_of_an_attempt(waits: Any) -> None:
    starts: list[float] = []

    async def request() -> int:
        starts.append(time.monotonic())
        await waits(0.2 * LIMIT if len(starts) < 3 else 0)
        if len(starts) < 3:
            raise TransientError("busy")
        return 7

    async def call(unit: int) -> int:
        return await repeat_request_async(request)

    policy = Policy(timeout=1.5 * LIMIT, retries=2, backoff=0, rate=f"1/{2 * LIMIT} s")
    found = outcomes(call, [7], policy)
    assert (found[7].value, found[7].attempts) == (7, 3)
    assert min(later - start for start, later in itertools.pairwise(starts)) >= 2 * LIMIT


def test_a_repeat_in_an_event_loop_that_takes_too_long_fails_its_call() -> None:
    requested = Counter[int]()

    async def request() -> int:
        requested[7] += 1
        if requested[7] == 1:
            raise TransientError("busy")
        await asyncio.sleep(PATIENCE)
        return 7

    async def call(unit: int) -> int:
        return await repeat_request_async(request)

    found = outcomes(call, [7], Policy(timeout=LIMIT, retries=1, backoff=0))
    assert isinstance(found[7].error, TaskTimeout)
    assert requested[7] == 2


def test_a_plain_request_of_a_coroutine_does_not_block_the_loop_with_pauses() -> None:
    request, requested = fails_at_first(1, TransientError("busy"))

    async def call(unit: int) -> int:
        return repeat_request(lambda: request(unit))

    found = outcomes(call, [7], Policy(retries=2, backoff=0.001))
    assert (found[7].value, found[7].attempts, requested[7]) == (7, 2, 2)  # the complete call is made again


def test_a_client_with_a_policy_repeats_by_that_anywhere() -> None:
    request, requested = fails_at_first(2, TransientError("busy"))
    policy = Policy(retries=2, backoff=0)
    assert repeat_request(lambda: request(7), policy) == 7
    assert asyncio.run(repeat_request_async(lambda: asked(request, 8), policy)) == 8
    assert {*requested.values()} == {3}
    found = outcomes(lambda unit: repeat_request(lambda: request(unit), policy), [9], Policy(retries=0))
    assert (found[9].value, found[9].attempts) == (9, 1)


def test_an_abandoned_call_repeats_no_request() -> None:
    requested, may_end, ended = Counter[int](), threading.Event(), threading.Event()

    def call(unit: int) -> int:
        def request() -> int:
            requested[unit] += 1
            assert may_end.wait(PATIENCE)
            raise TransientError("busy")

        try:
            return repeat_request(request)
        finally:
            ended.set()

    found = outcomes(call, [7], Policy(timeout=LIMIT, retries=3, backoff=0))
    may_end.set()
    assert ended.wait(PATIENCE)
    assert isinstance(found[7].error, TaskTimeout)
    assert requested[7] == 1


@pytest.mark.parametrize("catches", [False, True])
def test_an_interrupt_does_not_turn_a_waiting_request_into_a_failure_or_an_answer(catches: bool) -> None:
    request, _ = fails_at_first(99, TransientError("busy", after=PATIENCE))
    quick, _ = fails_at_first(1, TransientError("busy"))
    waiting = threading.Event()

    def call(unit: int) -> int:
        if unit == 1:
            assert waiting.wait(PATIENCE)
            threading.Event().wait(0.05)  # lets unit 0 reach its pause
            press_ctrl_c()
            return unit
        repeat_request(lambda: quick(unit))
        waiting.set()
        try:
            return repeat_request(lambda: request(unit))
        except Exception:
            if not catches:
                raise
            return -1

    found: dict[int, Outcome] = {}
    with pytest.raises(KeyboardInterrupt):
        collect(found, call, range(2), Policy(concurrency=2, retries=1, backoff=0.001))
    assert [*found] == [1]


def test_the_pause_doubles_up_to_a_minute() -> None:
    policy = Policy(retries=20, backoff=1.5)
    assert [policy.pause(attempts) for attempts in range(1, 8)] == [1.5, 3, 6, 12, 24, 48, MAX_BACKOFF]
    assert policy.pause(2000) == MAX_BACKOFF


def test_the_pause_grows_as_it_is_reported_to() -> None:
    assert [Policy(backoff=2, backoff_growth=3).pause(attempts) for attempts in range(1, 6)] == [2, 6, 18, 54, 60]
    assert {Policy(backoff=5, backoff_growth=1).pause(attempts) for attempts in (1, 2, 50, 2000)} == {5}


def test_a_pause_longer_than_a_minute_is_kept_and_grows_no_further() -> None:
    assert [Policy(backoff=90).pause(attempts) for attempts in (1, 2, 9)] == [90, 90, 90]


def test_an_error_that_knows_how_long_to_wait_is_waited_for_so_long() -> None:
    policy = Policy(backoff=2)
    assert policy.pause(1, TransientError("busy", after=90)) == 90
    assert policy.pause(2, TransientError("busy", after=1)) == 4
    assert policy.pause(1, TransientError("busy")) == policy.pause(1, ValueError()) == 2


def test_a_run_records_how_often_each_example_was_tried() -> None:
    counts = Counter[int]()

    @task
    def flaky(number: int) -> int:
        counts[number] += 1
        if counts[number] <= number % 3:
            raise TransientError("busy")
        return number

    run = Runner(policy=Policy(retries=1, backoff=0)).run(flaky, numbers(6))
    assert run.table()["attempts"].to_pylist() == [1, 2, 2, 1, 2, 2]
    assert statuses(run) == ["completed", "completed", "failed"] * 2


# What a call may raise


class Quit(BaseException):
    """What some libraries raise to get past every `except Exception`."""


class Unprintable(Exception):
    """Breaks whoever asks what it says."""

    def __str__(self) -> str:
        raise RuntimeError("an error about the error")


def dives(unit: int) -> Any:
    return dives(unit)


RAISED = [
    SystemExit(3),
    asyncio.CancelledError("by the task"),
    Quit(),
    StopIteration(1),
    MemoryError(),
    ValueError("\ud800 half a character"),
    Unprintable(),
]


def raises(error: BaseException) -> Call:
    def call(number: int) -> int:
        if number == 3:
            raise error
        return number

    return call


@WAYS
@pytest.mark.parametrize("timeout", [None, PATIENCE])
@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
def test_whatever_a_task_raises_costs_one_example(
    way: Callable[[Call], Call], timeout: float | None, error: BaseException
) -> None:
    run = Runner(policy=Policy(concurrency=4, timeout=timeout)).run(way(raises(error)), numbers(10))
    assert run.counts == {"completed": 9, "failed": 1}
    assert [r.index for r in run if r.status == "failed"] == [3]


@pytest.mark.parametrize(
    "error", [SystemExit(3), asyncio.CancelledError("by the task"), Quit()], ids=lambda error: type(error).__name__
)
def test_whatever_a_quick_call_raises_costs_one_unit(error: BaseException) -> None:
    found = outcomes(raises(error), range(10), Policy(), make_calls_inline)
    assert {unit: outcome.error for unit, outcome in found.items() if outcome.error} == {3: error}
    assert len(found) == 10


@WAYS
def test_a_task_that_never_stops_calling_itself_costs_one_example(way: Callable[[Call], Call]) -> None:
    run = Runner().run(way(lambda number: dives(number) if number == 3 else number), numbers(10))
    assert run.counts == {"completed": 9, "failed": 1}
    assert by_index(run)[3].error["type"] == "RecursionError"


class CodedError(Exception):
    """An error with a code no table can hold as it is."""

    code = "\udcff"


def test_a_code_that_is_no_text_costs_one_example() -> None:
    run = Runner().run(raises(CodedError("refused")), numbers(10))
    assert run.counts == {"completed": 9, "failed": 1}
    assert by_index(run)[3].error["type"] == "CodedError"


def test_the_error_tells_its_class_message_and_code() -> None:
    class HttpError(Exception):
        code = 429

    def call(number: int) -> int:
        raise HttpError("slow down")

    run = Runner().run(call, numbers(1))
    error = by_index(run)[0].error or {}
    assert (error["type"], error["message"], error["code"]) == ("HttpError", "slow down", "429")
    assert re.fullmatch(r"test_engine\.py:\d+ in call", error["place"])


# Stopping


@WAYS
def test_the_first_failure_stops_the_work_where_that_is_asked(way: Callable[[Call], Call]) -> None:
    calls = Counter[int]()

    def call(unit: int) -> int:
        calls[unit] += 1
        if unit == 10:
            raise ValueError("ten")
        return unit

    found: dict[int, Outcome] = {}
    with pytest.raises(Aborted, match="10: ValueError: ten") as raised:
        collect(found, way(call), range(10_000), Policy(concurrency=4, abort_on_error=True))
    assert isinstance(raised.value.__cause__, ValueError)
    assert len(calls) <= 11 + 4 * 2
    assert set(found) <= set(calls)
    assert set(range(7)) <= set(found)  # what had ended before is kept


STOPS = TaskError("the quota is used up", stops=True)


@pytest.mark.parametrize("engine", [LocalEngine(), ProcessEngine(1)], ids=["local", "processes"])
@WAYS
def test_an_error_that_says_so_stops_the_work_whatever_the_policy(way: Callable[[Call], Call], engine: Engine) -> None:
    store, policy = MemoryStore(), Policy(concurrency=1)
    stopping = task(name="quota", version="1")(way(raises(STOPS)))
    with pytest.raises(Aborted, match="_index_ 3, replication 0: TaskError: the quota is used up; this stops the run"):
        Runner(store, policy, engine).run(stopping, numbers(6))
    run = Runner(store, policy, engine).run(stopping, numbers(6))
    assert statuses(run) == ["completed"] * 3 + ["failed"] + ["completed"] * 2
    assert run.receipt is not None
    assert (run.receipt.kept, run.receipt.called) == (4, 2)


@pytest.mark.parametrize("engine", [LocalEngine(), ProcessEngine(1)], ids=["local", "processes"])
@WAYS
def test_no_call_starts_after_the_time_for_all_of_them(
    way: Callable[[Call], Call], engine: Engine, tmp_path: Path
) -> None:
    def note(unit: int) -> None:
        with (tmp_path / "calls").open("a") as file:
            file.write(f"{unit}\n")
        time.sleep(pause.value)

    store, slow, pause = MemoryStore(), task(name="slow", version="1")(way(note)), Unread(0.2)
    policy = Policy(concurrency=1, timeout=PATIENCE, total_timeout=0.1)
    with pytest.raises(Aborted, match=r"total_timeout: the 0\.1 s allowed for all calls are over; [01] of 4 are done"):
        Runner(store, policy, engine).run(slow, numbers(4))
    pause.value = 0
    run = Runner(store).run(slow, numbers(4))
    assert statuses(run) == ["completed"] * 4
    assert sorted((tmp_path / "calls").read_text().split()) == ["0", "1", "2", "3"]


def test_a_call_without_a_limit_of_its_own_has_that_of_all() -> None:
    async def hangs(unit: int) -> None:
        await asyncio.sleep(PATIENCE)

    with pytest.raises(Aborted, match="total_timeout"):
        Runner(policy=Policy(concurrency=1, total_timeout=0.1)).run(hangs, numbers(3))


def test_a_quick_call_that_fails_stops_the_work_where_that_is_asked() -> None:
    found: dict[int, Outcome] = {}
    with pytest.raises(Aborted):
        collect(found, raises(ValueError("three")), range(100), Policy(abort_on_error=True), make_calls_inline)
    assert sorted(found) == [0, 1, 2, 3]


def test_stopping_at_a_failure_does_not_wait_for_a_thread_that_hangs() -> None:
    never, hanging = threading.Event(), threading.Event()

    def call(unit: int) -> int:
        if unit == 0:
            hanging.set()
            never.wait(PATIENCE)
        hanging.wait(PATIENCE)
        raise ValueError("stop")

    try:
        with pytest.raises(Aborted):
            outcomes(call, range(100), Policy(concurrency=2, abort_on_error=True))
        assert not never.is_set()
    finally:
        never.set()


@WAYS
def test_an_aborted_run_stays_open_and_is_resumed_without_repeating_a_call(way: Callable[[Call], Call]) -> None:
    calls, broken = Counter[int](), Unread(True)

    def call(number: int) -> int:
        calls[number] += 1
        if broken.value and number == 40:
            raise ValueError("forty")
        if broken.value and number > 40:
            time.sleep(0.1)  # until the failure is noticed, on a busy machine too
        return number

    answer = task(version="1")(way(call))
    store, data = MemoryStore(), numbers(300)
    with pytest.raises(Aborted, match="_index_ 40"):
        Runner(store, Policy(concurrency=4, abort_on_error=True)).run(answer, data, name="careful")
    [id] = store.ids("runs")
    assert not store.is_sealed("runs", id)
    before = Counter(calls)
    assert len(before) <= 41 + 4 * 2

    broken.value = False
    run = Runner(store, Policy(concurrency=4)).run(answer, data, name="careful")
    assert run.id == id
    assert store.is_sealed("runs", id)
    assert sum(run.counts.values()) == 300
    assert set(calls) == set(range(300))
    assert run.receipt is not None
    repeated = [number for number, times in calls.items() if times > 1]
    assert len(repeated) <= 4  # at most what was in flight
    assert run.receipt.kept >= len(before) - 4
    assert run.receipt.called + run.receipt.kept == 300


@WAYS
def test_an_error_while_units_are_read_comes_through(way: Callable[[Call], Call]) -> None:
    def units() -> Iterator[int]:
        yield from range(5)
        raise OSError("the dataset went away")

    found: dict[int, Outcome] = {}
    with pytest.raises(OSError, match="went away"):
        collect(found, way(lambda unit: unit), units(), Policy(concurrency=3))
    assert set(found) <= set(range(5))


def test_threads_hand_over_what_was_in_flight_when_reading_units_failed() -> None:
    failed = threading.Event()

    def units() -> Iterator[int]:
        yield from range(3)
        failed.set()
        raise OSError("the dataset went away")

    def call(unit: int) -> int:
        assert failed.wait(PATIENCE)
        return unit

    found: dict[int, Outcome] = {}
    with pytest.raises(OSError, match="went away"):
        collect(found, call, units(), Policy(concurrency=4))
    assert {unit: outcome.value for unit, outcome in found.items()} == {0: 0, 1: 1, 2: 2}


@WAYS
def test_an_outcome_that_cannot_be_kept_stops_the_work(way: Callable[[Call], Call]) -> None:
    calls = Counter[int]()

    def call(unit: int) -> int:
        calls[unit] += 1
        return unit

    def done(unit: int, outcome: Outcome) -> None:
        if unit == 5:
            raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        make_calls(iter(range(10_000)), way(call), done, Policy(concurrency=4))
    assert len(calls) <= 6 + 4 * 2


def test_an_interrupt_does_not_turn_a_waiting_retry_into_a_failure() -> None:
    waiting = threading.Event()

    def call(unit: int) -> int:
        if unit == 0:
            waiting.set()
            raise TransientError("busy")
        if unit == 1:
            assert waiting.wait(PATIENCE)
            threading.Event().wait(0.05)  # lets unit 0 reach its pause
            press_ctrl_c()
        return unit

    found: dict[int, Outcome] = {}
    with pytest.raises(KeyboardInterrupt):
        collect(found, call, range(2), Policy(concurrency=2, retries=3, backoff=PATIENCE))
    assert 0 not in found
    assert found[1].value == 1


def test_an_interrupt_tells_at_once_how_many_calls_are_waited_for() -> None:
    began, reported = threading.Barrier(3), threading.Event()
    counts: list[int] = []

    def call(unit: int) -> int:
        began.wait(PATIENCE)
        if unit == 0:
            press_ctrl_c()
        assert reported.wait(PATIENCE)
        return unit

    def finishing(calls: int) -> None:
        counts.append(calls)
        reported.set()

    found: dict[int, Outcome] = {}
    with pytest.raises(KeyboardInterrupt):
        collect(found, call, range(9), Policy(concurrency=3, finishing=finishing))
    assert counts == [3]
    assert {unit: outcome.value for unit, outcome in found.items()} == {0: 0, 1: 1, 2: 2}


def test_an_interrupt_ends_coroutines_and_keeps_what_had_ended() -> None:
    async def call(unit: int) -> int:
        if unit == 1:
            await asyncio.sleep(0.01)
            press_ctrl_c()
            await asyncio.sleep(PATIENCE)
        return unit

    found: dict[int, Outcome] = {}
    with pytest.raises(KeyboardInterrupt):
        collect(found, call, range(2), Policy(concurrency=2))
    assert set(found) == {0}


# In a notebook


@WAYS
def test_a_run_can_be_made_from_within_a_running_event_loop(way: Callable[[Call], Call]) -> None:
    async def cell() -> Run:
        return Runner().run(way(lambda number: number + 1), numbers(50))

    run = asyncio.run(cell())
    assert run.counts == {"completed": 50}
    assert [response.responses for response in run] == [[i + 1] for i in range(50)]


def test_what_stops_the_work_comes_through_a_running_event_loop() -> None:
    async def call(unit: int) -> int:
        raise ValueError("no")

    async def cell() -> None:
        outcomes(call, range(10), Policy(abort_on_error=True))

    with pytest.raises(Aborted):
        asyncio.run(cell())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"concurrency": 0}, "concurrency is 0; give an integer of at least 1"),
        ({"concurrency": "8"}, "concurrency is '8'; give an integer of at least 1"),
        ({"retries": 1.5}, "retries is 1.5; give an integer of at least 0"),
        ({"retries": -1}, "retries is -1; give an integer of at least 0"),
        ({"backoff": -0.1}, "backoff is -0.1; give a number of at least 0"),
        ({"backoff": float("nan")}, "backoff is nan; give a number of at least 0"),
        ({"backoff": float("inf")}, "backoff is inf; give a number of at least 0"),
        ({"backoff_growth": 0.5}, "backoff_growth is 0.5; give a number of at least 1"),
        ({"timeout": "60"}, "timeout is '60'; give seconds above 0, or leave it out for none"),
        ({"timeout": 0}, "timeout is 0; give seconds above 0"),
        ({"timeout": -1.0}, "timeout is -1.0; give seconds above 0"),
        ({"transient": "HttpError"}, "give a tuple of names of error classes"),
    ],
)
def test_a_policy_that_cannot_work_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as raised:
        Policy(**wrong)
    assert message in str(raised.value)


def test_a_call_that_cancels_the_loop_it_runs_in_costs_one_example() -> None:
    async def call(number: int) -> int:
        if number == 1:
            asyncio.current_task().cancel()  # type: ignore[union-attr]
            await asyncio.sleep(0)
        return number

    run = Runner(policy=Policy(concurrency=1)).run(call, numbers(4))
    assert [r.error and r.error["type"] for r in run] == [None, "CancelledError", None, None]


def test_a_call_that_lets_its_time_limit_pass_has_failed_all_the_same() -> None:
    async def call(number: int) -> str:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            return "swallowed"
        return "slept"

    run = Runner(policy=Policy(timeout=0.05)).run(call, numbers(1))
    assert [r.error and r.error["code"] for r in run] == ["timeout"]


def test_more_calls_than_a_run_can_hold_are_refused_before_anything_is_called() -> None:
    with pytest.raises(SpecError, match="1 examples × 3,000,000,000 replications exceed the 268,435,456 calls"):
        Runner().run(str, numbers(1), replications=3_000_000_000)


@pytest.mark.parametrize("name", ["RateLimitError", "APIConnectionError", "ReadTimeout", "InternalServerError"])
def test_errors_of_common_clients_are_worth_a_retry(name: str) -> None:
    error = type(name, (Exception,), {})("busy")
    assert Policy(retries=1).retries_after(error, 1)
    assert not Policy(retries=1, transient=()).retries_after(error, 1)


def test_the_log_of_a_retry_hides_keys(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="evaluand"):
        Policy(retries=1).draw_pause(1, TransientError("503 of https://host/?key=sk-12345678"))
    assert "attempt 1 failed: 503 of https://host/?key=***" in caplog.text
