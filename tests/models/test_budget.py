"""Budgets: work stops before the next request, stays open, and continues with more money."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.unread import Unread

from evaluand.core.errors import SpecError
from evaluand.data.dataset import Dataset
from evaluand.engine.budget import Budget, BudgetReached
from evaluand.engine.engines.processes import ProcessEngine
from evaluand.engine.outcome import Aborted
from evaluand.engine.policy import Policy
from evaluand.evaluation.evaluator import Evaluator
from evaluand.evaluation.provider import RemoteProvider, Reply, asks
from evaluand.evaluation.scorer import scorer
from evaluand.models.usage import report_usage
from evaluand.run.runner import Runner
from evaluand.run.task import task
from evaluand.store.directory import DirectoryStore
from evaluand.store.store import MemoryStore


def data(n: int) -> Dataset:
    return Dataset.from_rows([{"input": i} for i in range(n)])


@dataclass(frozen=True, kw_only=True)
class Paid(RemoteProvider):
    """Answers every question for 1 USD, or for what `usage` says."""

    usage: Any = None

    @asks
    def answer(self, number: int) -> int:
        ASKED.append(number)
        return Reply(number, {"cost": 1.0, "currency": "USD"} if self.usage is None else self.usage)  # type: ignore[return-value]

    @asks
    async def answer_async(self, number: int) -> int:
        await asyncio.sleep(0)
        ASKED.append(number)
        return Reply(number, {"cost": 1.0, "currency": "USD"})  # type: ignore[return-value]


ASKED: list[int] = []


@pytest.fixture(autouse=True)
def nothing_asked() -> None:
    ASKED.clear()


def paid(**fields: Any) -> Paid:
    return Paid(model="paid", version="1", cache=False, **fields)


@task(version="1")
def asking(number: int) -> int:
    return paid().answer(number)


@task(version="1")
async def asking_async(number: int) -> int:
    return await paid().answer_async(number)


@task(version="1")
def reporting(number: int) -> int:
    ASKED.append(number)
    report_usage(cost=1.0, currency="USD")
    return number


def one_by_one(budget: Any) -> Policy:
    return Policy(concurrency=1, budget=budget)


# Stopping and continuing


@pytest.mark.parametrize("kind", [asking, asking_async, reporting])
def test_a_run_stops_once_its_budget_is_spent_and_continues_with_a_larger_one(kind: Any) -> None:
    store = MemoryStore()
    with pytest.raises(Aborted, match=r"^the budget of 3 USD is spent \(3 USD\); 3 of 5 are done$"):
        Runner(store, one_by_one("3 USD")).run(kind, data(5))
    assert ASKED == [0, 1, 2]
    with pytest.raises(Aborted, match=r"^the budget of 4 USD is spent \(4 USD\); 4 of 5 are done$"):
        Runner(store, one_by_one("4 USD")).run(kind, data(5))
    run = Runner(store, one_by_one("10 USD")).run(kind, data(5))
    assert ASKED == [0, 1, 2, 3, 4]
    assert run.counts == {"completed": 5}
    assert run.manifest["spent"] == {"USD": 5.0}
    assert run.manifest["provenance"]["policy"]["budget"] == "3 USD"


@pytest.mark.parametrize("kind", [asking, asking_async])
def test_calls_in_flight_end_and_count(kind: Any) -> None:
    store = MemoryStore()
    with pytest.raises(Aborted, match="the budget of 2 USD is spent"):
        Runner(store, Policy(concurrency=4, budget="2 USD")).run(kind, data(40))
    assert len(ASKED) == 2
    run = Runner(store).run(kind, data(40))
    assert sorted(ASKED) == list(range(40))  # nothing was asked twice
    assert run.manifest["spent"] == {"USD": 40.0}


@task(version="1")
async def waiting(number: int) -> int:
    await asyncio.sleep(0.01)
    return await paid().answer_async(number)


def test_many_requests_in_flight_spend_no_more_than_few() -> None:
    with pytest.raises(Aborted, match=r"^the budget of 9.5 USD is spent \(10 USD\); 10 of 400 are done$"):
        Runner(policy=Policy(concurrency=256, budget="9.5 USD")).run(waiting, data(400))
    assert len(ASKED) == 10


def test_a_request_that_makes_another_one_does_not_wait_for_itself() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Outer(RemoteProvider):
        @asks
        def answer(self, number: int) -> int:
            return Reply(paid().answer(number), {"cost": 0.5, "currency": "USD"})  # type: ignore[return-value]

    nested = task(lambda number: Outer(model="outer", version="1", cache=False).answer(number), version="1")
    run = Runner(policy=Policy(concurrency=4, budget="100 USD")).run(nested, data(6))
    assert run.manifest["spent"] == {"USD": 9.0}


def test_a_call_whose_request_was_refused_stays_open_whatever_it_made_of_that() -> None:
    @task(version="1")
    def robust(number: int) -> int:
        try:
            return asking(number) + asking(number + 100)
        except Exception:
            return -1

    store = MemoryStore()
    with pytest.raises(Aborted, match="1 of 3 are done"):
        Runner(store, one_by_one("3 USD")).run(robust, data(3))
    run = Runner(store).run(robust, data(3))
    assert [response.responses for response in run] == [[100], [102], [104]]


def test_a_refused_judgement_stays_open_and_fails_no_row() -> None:
    run = Runner().run(str, data(4))
    scorers = {"judge": scorer(lambda index: paid().answer(index), version="1")}
    with pytest.raises(Aborted, match=r"the budget of 2 USD is spent \(2 USD\); 2 of 4 are done"):
        Evaluator(policy=one_by_one("2 USD")).evaluate(run, scorers)
    evaluation = Evaluator(policy=one_by_one("4 USD")).evaluate(run, scorers)
    assert evaluation.counts["judge"] == {"scored": 4}
    assert ASKED == [0, 1, 2, 3]


def test_work_without_requests_goes_on_when_the_budget_is_spent() -> None:
    store, policy = MemoryStore(), one_by_one("3 USD")
    run = Runner(store, policy).run(asking, data(3))
    evaluation = Evaluator(policy=policy).evaluate(run, {"same": lambda output, input: output == input})
    assert evaluation.counts["same"] == {"scored": 3}
    assert Runner(store, policy).run(str, data(3)).counts == {"completed": 3}


# What counts


def test_one_budget_is_shared_by_all_that_receive_it() -> None:
    store, budget = MemoryStore(), Budget(4, "USD")
    run = Runner(store, one_by_one(budget)).run(asking, data(3))
    with pytest.raises(Aborted, match=r"\(4 USD\); 1 of 3 are done"):
        Evaluator(policy=one_by_one(budget)).evaluate(run, {"judge": lambda output: paid().answer(output)})
    assert budget.spent == 4.0


def test_finished_work_counts_once_however_often_it_is_requested() -> None:
    store, budget = MemoryStore(), Budget(4, "USD")
    for _ in range(3):
        Runner(store, one_by_one(budget)).run(asking, data(3))
    assert budget.spent == 3.0
    later = Budget(4, "USD")
    run = Runner(store, one_by_one(later)).run(asking, data(3))
    assert later.spent == 3.0
    with pytest.raises(Aborted):
        Evaluator(policy=one_by_one(later)).evaluate(run, {"judge": lambda output: paid().answer(output)})


def test_replies_from_the_cache_cost_nothing() -> None:
    def cached(number: int) -> int:
        return Paid(model="paid", version="budget-cache").answer(number % 2)

    run = Runner(policy=one_by_one("2.5 USD")).run(cached, data(6))
    assert run.counts == {"completed": 6}
    assert run.manifest["usage"]["cached"] == 4


@pytest.mark.parametrize(
    ("usage", "message"),
    [
        ({"input_tokens": 5, "model": "m"}, "the cost of a request to m is unknown"),
        ({"cost": 1.0, "currency": "EUR"}, "a request cost 1 EUR"),
        ({"cost": 1.0}, "a request cost 1 in an unknown currency"),
    ],
)
def test_costs_that_cannot_be_counted_stop_the_work(usage: dict[str, Any], message: str) -> None:
    def odd(number: int) -> int:
        return paid(usage=usage).answer(number)

    with pytest.raises(
        Aborted,
        match=f"^{message}, so the budget of 3 USD cannot count it(; report it, as 0 if the request is free)?; 1 of 4",
    ):
        Runner(policy=one_by_one("3 USD")).run(odd, data(4))
    assert len(ASKED) == 1


@pytest.mark.slow
def test_a_call_that_never_ends_counts_what_it_has_spent(tmp_path: Path) -> None:
    """A process is killed in a call that had spent: its row is lost, what it cost is not."""
    code = """
        import sys, time
        from evaluand import Dataset, DirectoryStore, Policy, Runner, report_usage, task
        def slow(number):
            report_usage(cost=1.0, currency="USD")
            if number == 1 and sys.argv[1] == "hang":
                print("spent", flush=True)
                time.sleep(600)
            return number
        data = Dataset.from_rows([{"input": i} for i in range(4)])
        store = DirectoryStore("store")
        policy = Policy(concurrency=1, budget=sys.argv[2])
        run = Runner(store, policy).run(task(slow, version="1"), data)
        print(run.counts, run.manifest["spent"])
    """
    file = tmp_path / "work.py"
    file.write_text("\n".join(line[8:] for line in code.splitlines()))

    def start(*arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(file), *arguments]
        return subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    killed = start("hang", "3 USD")
    assert killed.stdout is not None
    assert killed.stdout.readline() == "spent\n"
    killed.kill()
    killed.communicate()
    _, errors = start("go", "3 USD").communicate()
    assert "the budget of 3 USD is spent (3 USD); 2 of 4 are done" in errors
    out, _ = start("go", "9 USD").communicate()
    assert out == "{'completed': 4} {'USD': 5.0}\n"


def test_what_another_process_spends_on_the_same_run_counts(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    with pytest.raises(Aborted):
        Runner(store, one_by_one("1 USD")).run(meddled, data(50))
    OPENED.value[:] = store.ids("runs")
    FOLDER.value[:] = [tmp_path]
    with pytest.raises(Aborted, match=r"the budget of 60 USD is spent \(10[56] USD\)"):
        Runner(store, one_by_one("60 USD")).run(meddled, data(50))


OPENED = Unread(list[str]())
FOLDER = Unread(list[Path]())


@task(version="1")
def meddled(number: int) -> int:
    """In the sixth call, another writer notes that it has spent 100 USD."""
    if OPENED.value and len(ASKED) == 5:
        lane = DirectoryStore(FOLDER.value[0]).lane("runs", OPENED.value.pop(), "responses", 50)
        lane.note_spent(100.0, "USD")
        lane.close()
        threading.Event().wait(1.1)  # the journal is read again after a second
    return asking(number)


# How a budget is written


@pytest.mark.parametrize(
    ("text", "cost", "currency"), [("5 USD", 5.0, "USD"), ("0.50EUR", 0.5, "EUR"), (" 1_000 CHF ", 1000.0, "CHF")]
)
def test_a_budget_is_an_amount_and_its_currency(text: str, cost: float, currency: str) -> None:
    budget = Budget.parse(text)
    assert (budget.cost, budget.currency) == (cost, currency)
    assert repr(Budget.parse(str(budget))) == repr(budget)
    assert repr(Budget.read({"cost": cost, "currency": currency})) == repr(budget)


@pytest.mark.parametrize("wrong", ["5", "USD", "five USD", "-1 USD", 5, {"cost": 5}, {"currency": "USD"}])
def test_what_is_no_budget_is_refused_with_what_to_write(wrong: Any) -> None:
    with pytest.raises(SpecError, match=r"budget is .*'5 USD'"):
        Policy(budget=wrong)


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf"), True, "5"])
def test_an_amount_must_be_above_0(wrong: Any) -> None:
    with pytest.raises(SpecError, match="give a number above 0"):
        Budget(wrong, "USD")


def test_a_budget_cannot_stop_other_processes() -> None:
    rows = Dataset.from_rows([{"input": "a"}])
    runner = Runner(policy=Policy(budget="5 USD"), engine=ProcessEngine(1))
    with pytest.raises(SpecError, match="leave it out, or choose engine `local`"):
        runner.run(str.upper, rows)
    assert not [*runner.store.ids("runs")]


def test_a_refusal_is_an_error_of_the_call() -> None:
    budget = Budget(1, "USD")
    budget.count("work", 1.0, "USD")
    with pytest.raises(BudgetReached, match=r"the budget of 1 USD is spent \(1 USD\)"):
        budget.check()
