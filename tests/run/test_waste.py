"""Runs that waste nothing: failures that are all alike, failures counted by kind, and parameters of `do_run`."""

from typing import Any

import pytest

from evaluand import Dataset, LocalEngine, MemoryStore, Policy, ProcessEngine, Runner, SpecError, Task
from evaluand.engine.outcome import Aborted
from evaluand.run.task import as_task

DATA = Dataset.from_rows([{"input": i} for i in range(60)])


def refuse(input: int) -> int:
    raise ValueError("no key")


async def refuse_async(input: int) -> int:
    raise ValueError("no key")


@pytest.mark.parametrize("task", [refuse, refuse_async])
@pytest.mark.parametrize("processes", [False, True])
def test_the_same_failure_from_the_start_stops_the_run(task: Any, processes: bool) -> None:
    store = MemoryStore()
    engine = ProcessEngine(2) if processes else LocalEngine()
    with pytest.raises(
        Aborted, match="the first 20 calls failed, all with the same error: ValueError: no key; none of"
    ):
        Runner(store, Policy(concurrency=2), engine).run(task, DATA, name="bot")
    run = Runner(store, Policy(same_failures=0)).run(task, DATA, name="bot")
    assert run.receipt is not None
    assert (run.receipt.kept, run.receipt.called) == (0, 60)  # no row counted as failed before
    assert run.counts == {"failed": 60}
    assert str(run.receipt).startswith("60 of 60 done now, 60 failed (60 ValueError)")


def test_one_success_or_another_error_lets_the_run_go_on() -> None:
    def once(input: int) -> int:
        return 1 if input == 5 else refuse(input)

    def numbered(input: int) -> int:
        raise ValueError(f"no {input}")

    for task in (once, numbered):
        counts = Runner(policy=Policy(concurrency=1)).run(task, DATA).counts
        assert counts["failed"] >= 59


def test_failures_are_counted_by_kind_now_and_later() -> None:
    def mixed(input: int) -> int:
        raise (KeyError if input % 3 == 0 else ValueError)(str(input))

    store = MemoryStore()
    first, again = (Runner(store).run(mixed, DATA, name="bot") for _ in range(2))
    assert first.failures == again.failures == {"ValueError": 40, "KeyError": 20}
    assert str(first.receipt).startswith("60 of 60 done now, 60 failed (40 ValueError, 20 KeyError)")
    assert "60 failed earlier (40 ValueError, 20 KeyError), 60 kept" in str(again.receipt)
    retried = Runner(store).run(mixed, DATA, name="bot", retry_failed=True)
    assert retried.receipt is not None
    assert retried.receipt.called == 60


class Seeded:
    def do_run(self, input: int, task_span: Any, seed: int, replication: int) -> list[int]:
        return [seed, replication]


class Indexed(Task[int, int]):
    async def do_run(self, input: int, span: Any, *, index: int, more: int = 0) -> int:
        return index + more


class Short:
    def do_run(self, input: int) -> int:
        return input


class Unfilled(Task[int, int]):
    def do_run(self, input: int, task_span: Any, temperature: float) -> int:
        return 0


def responses(task: Any) -> list[Any]:
    rows = Dataset.from_rows([{"input": 7}, {"input": 8}])
    return [response.responses[0] for response in Runner().run(task, rows, replications=2) if response.responses]


def test_do_run_receives_what_functions_receive() -> None:
    def seeded(input: int, seed: int, replication: int) -> list[int]:
        return [seed, replication]

    assert responses(Seeded()) == responses(seeded)
    assert responses(Indexed()) == [0, 0, 1, 1]
    assert as_task(Indexed()).reads == ("index",)
    assert responses(Short()) == [7, 7, 8, 8]


def test_a_parameter_of_do_run_that_is_not_filled_in_is_refused_before_the_first_call() -> None:
    with pytest.raises(
        SpecError, match=r"^Unfilled\.do_run requires temperature, which is not filled in \(filled in are"
    ):
        Runner().run(Unfilled(), DATA)
