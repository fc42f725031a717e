"""Examples that a task is not asked about: rows that are there, say so, and count in no denominator."""

from __future__ import annotations

from typing import Any

import pytest
from support.unread import Unread

from evaluand.aggregation.aggregator import Aggregator, Measure
from evaluand.core.errors import Skipped, SpecError
from evaluand.data.dataset import Dataset
from evaluand.engine.engines.local import LocalEngine
from evaluand.engine.engines.processes import ProcessEngine
from evaluand.engine.outcome import Aborted
from evaluand.engine.policy import Policy
from evaluand.evaluation.evaluator import Evaluator
from evaluand.metrics.accuracy import Accuracy
from evaluand.report.facts.evaluation import evaluation_facts
from evaluand.report.facts.run import missing_facts, run_facts
from evaluand.report.verification import verify
from evaluand.run.runner import Run, Runner
from evaluand.run.task import Task
from evaluand.store.directory import DirectoryStore
from evaluand.store.store import MemoryStore
from evaluand.trace import TaskSpan

CALLS: list[Any] = []


class Odd(Task[int, int]):
    """Is asked about odd numbers only; in the second repeat about those above 5."""

    version = "1"

    def skips(self, index: int, id: str, replication: int) -> bool:
        return index % 2 == 0 or (replication == 1 and index <= 5)

    def fold(self, index: int, id: str, replication: int) -> int | None:
        return None if self.skips(index, id, replication) else 0

    def do_run(self, input: int, task_span: TaskSpan) -> int:
        CALLS.append(input)
        if input == 7:
            raise ValueError("seven")
        return input


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    CALLS.clear()


def data(n: int = 10) -> Dataset:
    return Dataset.from_rows([{"input": i, "expected": i if i % 3 else -1} for i in range(n)])


def statuses(run: Run) -> str:
    return "".join(row.status[0] for row in run)


def test_a_skipped_row_stands_in_the_run_without_a_call() -> None:
    run = Runner().run(Odd(), data())
    assert sorted(CALLS) == [1, 3, 5, 7, 9]
    assert statuses(run) == "scscscsfsc"
    assert run.counts == {"skipped": 5, "completed": 4, "failed": 1}
    table = run.table().to_pylist()
    assert [row["fold"] for row in table] == [None, 0] * 5
    first = table[0]
    assert (first["attempts"], first["n_responses"], first["responses"], first["error"]) == (0, 0, None, None)
    assert (run.receipt.total, run.receipt.called, run.receipt.skipped) == (10, 5, 5)
    assert str(run.receipt).startswith("5 of 10 done now, 1 failed (1 ValueError), 5 skipped")


@pytest.mark.parametrize("processes", [False, True])
def test_a_task_may_find_that_an_example_is_to_be_left_out(processes: bool) -> None:
    def picky(text: str) -> str:
        if text == "b":
            raise Skipped("not in my language", code="language")
        return text.upper()

    rows = Dataset.from_rows([{"input": text, "expected": text.upper()} for text in "abc"])
    run = Runner(engine=ProcessEngine(2) if processes else LocalEngine()).run(picky, rows)
    assert run.counts == {"completed": 2, "skipped": 1}
    evaluation = Evaluator().evaluate(run, {"same": "exact_match"})
    assert evaluation.table("same")["reason"].to_pylist() == [None, "task: not in my language", None]
    [row] = Aggregator().aggregate([evaluation], [Measure("same", Accuracy())]).table().to_pylist()
    assert (row["value"], row["n"], row["n_skipped"]) == (1.0, 2, 1)
    assert verify(run.store, "runs", run.id) == []


def test_what_a_task_left_out_is_not_reported_as_failed() -> None:
    def picky(text: str) -> str:
        if text == "b":
            raise Skipped("not in my language")
        if text == "c":
            raise ValueError("no answer")
        return text

    run = Runner().run(picky, Dataset.from_rows([{"input": text} for text in "abc"]))
    reported = {(reason["status"], reason["count"], reason["reason"]) for reason in missing_facts(run, None)}
    assert reported == {
        ("skipped", 1, "not in my language"),
        ("failed", 1, "ValueError: no answer"),
    }


def test_repeats_skip_for_themselves() -> None:
    run = Runner().run(Odd(), data(), replications=2)
    assert statuses(run) == "ss" + "cs" + "ss" + "cs" + "ss" + "cs" + "ss" + "ff" + "ss" + "cc"


@pytest.mark.parametrize("n", [1, 3000], ids=["all of one", "several shards"])
def test_runs_end_however_many_rows_are_skipped(n: int) -> None:
    class Never(Odd):
        def skips(self, index: int, id: str, replication: int) -> bool:
            return not 1100 <= index < 1103

    run = Runner().run(Never(), data(n))
    called = sum(1100 <= i < 1103 for i in range(n))
    assert {status: count for status, count in run.counts.items() if count} == (
        {"skipped": n - called} | ({"completed": called} if called else {})
    )


def test_the_same_again_calls_nothing_and_gives_the_same() -> None:
    runner = Runner()
    first = runner.run(Odd(), data())
    again = runner.run(Odd(), data())
    assert (again.id, again.receipt.called, again.receipt.kept) == (first.id, 0, 10)
    fresh = runner.run(Odd(), data(), fresh=True)
    assert (fresh.receipt.called, fresh.receipt.skipped, fresh.digest) == (5, 5, first.digest)


def test_more_examples_reuse_the_calls_and_skip_their_own() -> None:
    runner = Runner()
    runner.run(Odd(), data(), limit=5)
    more = runner.run(Odd(), data())
    assert (more.receipt.called, more.receipt.reused, more.receipt.skipped) == (3, 2, 5)
    assert statuses(more) == "scscscsfsc"


def test_what_was_completed_elsewhere_does_not_fill_a_row_that_is_skipped() -> None:
    skipping = Unread(False)

    class Sometimes(Odd):
        def skips(self, index: int, id: str, replication: int) -> bool:
            return skipping.value and super().skips(index, id, replication)

    runner = Runner()
    assert runner.run(Sometimes(), data(4)).counts == {"completed": 4}
    skipping.value = True
    run = runner.run(Sometimes(), data(5))
    assert statuses(run) == "scscs"
    assert (run.receipt.reused, run.receipt.skipped) == (2, 3)


def test_a_run_that_was_stopped_goes_on_with_the_rows_it_has(tmp_path: Any) -> None:
    store = DirectoryStore(tmp_path / "store")
    with pytest.raises(Aborted):
        Runner(store, Policy(concurrency=1, abort_on_error=True)).run(Odd(), data())
    assert CALLS == [1, 3, 5, 7]
    run = Runner(store).run(Odd(), data())
    assert CALLS == [1, 3, 5, 7, 9]
    assert statuses(run) == "scscscsfsc"
    assert (run.receipt.called, run.receipt.skipped, run.receipt.kept) == (1, 1, 8)
    assert verify(store, "runs", run.id) == []


def test_failures_are_tried_again_and_skipped_rows_are_not() -> None:
    runner = Runner()
    runner.run(Odd(), data())
    again = runner.run(Odd(), data(), retry_failed=True)
    assert (again.receipt.called, again.receipt.reused, again.receipt.skipped) == (1, 4, 5)


def test_skipped_rows_are_outside_of_every_number() -> None:
    run = Runner().run(Odd(), data())
    evaluation = Evaluator().evaluate(run, {"exact": "exact_match"})
    assert evaluation.counts == {"exact": {"skipped": 5, "scored": 4, "failed": 1}}
    [row] = Aggregator().aggregate([evaluation], [Measure("exact", Accuracy(missing="wrong"))]).table().to_pylist()
    assert row["value"] == 2 / 5  # of 1, 3, 5, 7, 9: 3 and 9 expect -1, 7 failed
    assert (row["n"], row["n_scored"], row["n_failed"], row["n_skipped"]) == (5, 4, 1, 5)


def test_reports_tell_failures_and_not_rows_that_were_never_asked() -> None:
    store = MemoryStore()
    run = Runner(store).run(Odd(), data())
    evaluation = Evaluator().evaluate(run, {"exact": "exact_match"})
    assert [reason["reason"] for reason in missing_facts(run, evaluation)] == ["ValueError: seven"]
    assert [row["_index_"] for row in run_facts(run, 3, failed=True)["rows"]] == [7]
    assert [row["_index_"] for row in run_facts(run, 3)["rows"]] == [7, 1, 3]
    assert [row["_index_"] for row in evaluation_facts(evaluation, run, 3)["rows"]["exact"]] == [7, 1, 3]


# A task that knows its repeats


class Repeats(Odd):
    @property
    def replications(self) -> int | None:
        return 2


def test_a_task_may_tell_how_often_it_repeats() -> None:
    runner = Runner()
    assert sum(runner.run(Repeats(), data()).counts.values()) == 20
    assert runner.run(Repeats(), data(), replications=2).receipt.called == 0
    with pytest.raises(SpecError, match="'Repeats' repeats each example 2 times; set replications: 2, not 3"):
        runner.run(Repeats(), data(), replications=3)
    assert len(CALLS) == 7


# What depends on the dataset


def test_answers_that_depend_on_the_dataset_are_never_reused_for_another() -> None:
    class OfTheWhole(Odd):
        @property
        def reads(self) -> tuple[str, ...]:
            return ("dataset", "index")

    runner = Runner()
    runner.run(OfTheWhole(), data(), limit=4)
    same = runner.run(OfTheWhole(), data())
    assert (same.receipt.called, same.receipt.reused) == (3, 2)
    other = runner.run(OfTheWhole(), data(11))
    assert (other.receipt.called, other.receipt.reused) == (5, 0)
