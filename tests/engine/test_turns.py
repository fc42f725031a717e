"""What an engine hands over together: the coroutines that end in one turn of the event loop, and nothing later."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from evaluand.engine.engine import Made, Recipe
from evaluand.engine.engines.local import InlineEngine, LocalEngine
from evaluand.engine.outcome import Outcome
from evaluand.engine.policy import Policy

TURN = 0.001  # seconds, at most


def line(unit: int, outcome: Outcome) -> tuple[bytes, int]:
    return b"%d\n" % unit, int(outcome.error is not None)


class Kept:
    """The batches that an engine hands over."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []

    def __call__(self, made: Sequence[Made[int]]) -> None:
        self.batches.append([unit for unit, *_ in made])

    @property
    def units(self) -> list[int]:
        return [unit for batch in self.batches for unit in batch]


def run(call: Callable[[int], Any], n: int, at_once: int, kept: Kept, engine: LocalEngine | None = None) -> None:
    (engine or LocalEngine()).map_lines(iter(range(n)), Recipe(call, line), kept, Policy(concurrency=at_once))


def test_what_ends_in_one_turn_is_handed_over_together() -> None:
    kept = Kept()

    async def call(unit: int) -> None:
        if unit:
            await gate.wait()
        else:
            await asyncio.sleep(0.05)
            gate.set()

    gate = asyncio.Event()
    run(call, 100, 100, kept)
    assert sorted(kept.units) == [*range(100)]
    assert len(kept.batches) < 50


def test_before_anything_is_waited_for_all_that_has_ended_is_handed_over() -> None:
    kept, seen = Kept(), list[tuple[int, int]]()

    async def call(unit: int) -> None:
        if unit % 10 == 9:
            await asyncio.sleep(0.01)
            seen.append((unit, len(kept.units)))

    run(call, 100, 1, kept)
    assert seen == [(unit, unit) for unit in range(9, 100, 10)]


@pytest.mark.parametrize("is_async", [True, False])
def test_a_call_that_takes_a_millisecond_is_handed_over_before_the_next_begins(is_async: bool) -> None:
    kept, before = Kept(), list[int]()

    def work(unit: int) -> None:
        before.append(len(kept.units))
        time.sleep(2 * TURN)

    async def call(unit: int) -> None:
        work(unit)

    run(call if is_async else work, 5, 1, kept)
    assert before == [0, 1, 2, 3, 4]


def test_no_call_begins_before_those_that_ended_beside_its_own_are_handed_over() -> None:
    kept, before = Kept(), list[list[int]]()

    async def call(unit: int) -> None:
        if unit < 3:
            await asyncio.sleep(0.1)
        else:
            before.append(sorted(kept.units))
            time.sleep(0.1)

    run(call, 6, 3, kept)
    assert before[0] == [0, 1, 2]


def test_threads_hand_over_each_call_at_once() -> None:
    kept = Kept()
    run(abs, 50, 1, kept)
    assert kept.batches == [[unit] for unit in range(50)]


def test_inline_calls_are_gathered_for_a_millisecond() -> None:
    kept = Kept()
    run(abs, 5000, 1, kept, InlineEngine())
    assert kept.units == [*range(5000)]
    assert len(kept.batches) < 2500


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("n", [1, 3, 100_000])
def test_an_error_of_the_receiver_ends_the_calls(n: int, waits: bool) -> None:
    begun = []

    async def call(unit: int) -> None:
        begun.append(unit)
        if waits:
            await asyncio.sleep(0)

    def refuse(made: Sequence[Made[int]]) -> None:
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        LocalEngine().map_lines(iter(range(n)), Recipe(call, line), refuse, Policy(concurrency=4))
    assert len(begun) < 50_000


def test_a_failure_that_stops_the_calls_is_handed_over_with_what_ended_before() -> None:
    kept = Kept()

    async def call(unit: int) -> None:
        if unit == 3:
            raise ValueError("three")

    with pytest.raises(Exception, match="three"):
        LocalEngine().map_lines(iter(range(9)), Recipe(call, line), kept, Policy(concurrency=1, abort_on_error=True))
    assert kept.units == [0, 1, 2, 3]
