"""Answers of code without a version are reused once two came out the same again in the first other process."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.servers import PostgresServer, S3Server
from support.unread import Unread

from evaluand import Dataset, DirectoryStore, Evaluation, Evaluator, Run, Runner, report_usage
from evaluand.engine.policy import Policy
from evaluand.evaluation.scorers.pattern import Includes
from evaluand.matches import Matcher, Matches
from evaluand.run import earlier_work
from evaluand.store.folder_store import FolderStore
from evaluand.store.opening import open_store

DATA = Dataset.from_rows([{"input": f"q{i}"} for i in range(20)])
CALLS = Unread(list[str]())
WORDS = Unread("!")


@pytest.fixture(autouse=True)
def no_calls() -> Iterator[None]:
    CALLS.value.clear()
    yield
    WORDS.value = "!"


def steady(text: str) -> str:
    CALLS.value.append(text)
    return text.upper()


def secretly_changing(text: str) -> str:
    CALLS.value.append(text)
    return text + WORDS.value


def counting(text: str) -> str:
    CALLS.value.append(text)
    return str(len(CALLS.value))


def slow_at_times(text: str) -> str:
    CALLS.value.append(text)
    if WORDS.value == "slow":
        time.sleep(0.2)  # four times the timeout
    return text.upper()


def writing(text: str) -> str:
    Path("out").write_text(text)
    return steady(text)


def paid(text: str) -> str:
    report_usage(input_tokens=1, output_tokens=1, cost=0.1, currency="USD", model="m")
    return steady(text)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The objects of this test are not read, and leave their code pinned."""
    monkeypatch.setattr(Unread, "__fingerprint__", lambda self: (), raising=False)


def run_in_another_process(store: FolderStore, code: Any, data: Dataset = DATA, **options: Any) -> tuple[int, Run]:
    """The number of calls, and the run."""
    earlier_work._made_here.clear()
    CALLS.value.clear()
    run = Runner(store).run(code, data, name="x", **options)
    return len(CALLS.value), run


def why(run: Run) -> str:
    assert run.receipt is not None
    return run.receipt.why


pytestmark = pytest.mark.usefixtures("seen")


def test_the_first_other_process_repeats_two_answers_and_later_ones_none(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    assert run_in_another_process(store, steady)[0] == 20
    called, run = run_in_another_process(store, steady)
    assert (called, why(run).endswith("; 2 answers repeated as a check, the same again")) == (2, True)
    assert [run_in_another_process(store, steady)[0] for _ in range(2)] == [0, 0]


def test_what_depends_on_the_calls_before_is_found_although_the_first_rows_are_repeated(tmp_path: Path) -> None:
    two = Dataset.from_rows([{"input": "a"}, {"input": "b"}])
    run_in_another_process(DirectoryStore(tmp_path), counting, two)
    _, run = run_in_another_process(DirectoryStore(tmp_path), counting, two)
    assert why(run) == "unpinned, so never reused: 2 answers repeated as a check came out differently"


def test_a_process_does_not_check_what_it_made(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    for expected in (20, 20):
        Runner(store).run(steady, DATA)
        assert len(CALLS.value) == expected


def test_other_packages_are_checked_again_by_other_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = DirectoryStore(tmp_path)
    _, run = run_in_another_process(store, steady)
    rows = []
    for version in ("3.11.0", "3.12.1", "3.13.2"):
        monkeypatch.setattr("platform.python_version", lambda version=version: version)
        assert run_in_another_process(store, steady)[0] == 2
        rows.append(frozenset(CALLS.value))
    assert len({*rows}) == 3
    assert len(store.checks("runs", run.id)) == 3


def test_one_difference_and_nothing_of_that_code_is_reused(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    run_in_another_process(store, secretly_changing)
    WORDS.value = "?"
    called, run = run_in_another_process(store, secretly_changing)
    assert (called, {row.responses[0][-1] for row in run if row.responses}) == (2 + 20, {"?"})
    assert why(run) == "unpinned, so never reused: 2 answers repeated as a check came out differently"
    for _ in range(2):
        called, run = run_in_another_process(store, secretly_changing)
        assert (called, {row.responses[0][-1] for row in run if row.responses}) == (20, {"?"})
    WORDS.value = "!"
    more = Dataset.from_rows([{"input": f"q{i}"} for i in range(30)])
    assert run_in_another_process(store, secretly_changing, more)[0] == 30


def test_a_repeated_call_that_takes_too_long_says_nothing_of_the_answer(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    run_in_another_process(store, slow_at_times)
    WORDS.value = "slow"
    earlier_work._made_here.clear()
    run = Runner(store, Policy(timeout=0.05)).run(slow_at_times, DATA, name="x")
    assert (run.receipt and run.receipt.called, "no answer was repeated as a check" in why(run)) == (0, True)
    WORDS.value = "!"
    assert run_in_another_process(store, slow_at_times)[0] == 2  # the check is still to be made


@pytest.mark.parametrize("code", [writing, paid])
def test_answers_that_cost_or_write_are_not_repeated_and_the_receipt_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    store = DirectoryStore(tmp_path / "store")
    run_in_another_process(store, code)
    for _ in range(2):
        called, run = run_in_another_process(store, code)
        assert (called, "no answer was repeated as a check" in why(run)) == (0, True)


def test_answers_for_a_larger_dataset_are_checked_before_they_are_taken_over(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    run_in_another_process(store, steady)
    more = Dataset.from_rows([{"input": f"q{i}"} for i in range(30)])
    called, run = run_in_another_process(store, steady, more)
    assert run.receipt is not None
    assert (called, run.receipt.reused, run.receipt.called) == (2 + 10, 20, 10)


def test_an_interrupted_run_goes_on_without_a_check(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    stops = Unread(True)

    def stopping(text: str) -> str:
        if text == "q9" and stops.value:
            raise KeyboardInterrupt
        return steady(text)

    with pytest.raises(KeyboardInterrupt):
        run_in_another_process(store, stopping)
    done = len(CALLS.value)
    stops.value = False
    assert run_in_another_process(store, stopping)[0] == 20 - done


def exact(output: str, expected: str) -> bool:
    CALLS.value.append(output)
    return output == expected + WORDS.value


def grade_in_another_process(run: Run, *, again: bool = True) -> tuple[int, Evaluation]:
    if again:
        earlier_work._made_here.clear()
    CALLS.value.clear()
    evaluation = Evaluator().evaluate(run, {"exact": exact, "words": Includes()})
    return len(CALLS.value), evaluation


def test_scores_are_checked_likewise_each_scorer_by_itself(tmp_path: Path) -> None:
    rows = [{"input": f"q{i}", "expected": f"Q{i}"} for i in range(20)]
    run = Runner(DirectoryStore(tmp_path)).run(steady, Dataset.from_rows(rows))
    assert grade_in_another_process(run)[0] == 20
    assert grade_in_another_process(run, again=False)[0] == 0
    assert [grade_in_another_process(run)[0] for _ in range(3)] == [2, 0, 0]
    WORDS.value = ""
    [path] = tmp_path.glob("evaluations/*/check-*.json")
    path.unlink()
    called, evaluation = grade_in_another_process(run)
    assert (called, evaluation.table("exact")["value"].to_pylist()) == (2 + 20, [1.0] * 20)
    assert evaluation.receipt is not None
    assert "exact: 2 answers repeated as a check came out differently" in evaluation.receipt.why


def test_code_that_now_fails_is_not_reused(tmp_path: Path) -> None:
    fails = Unread(False)

    def failing(text: str) -> str:
        if fails.value:
            raise ValueError("no more")
        return steady(text)

    store = DirectoryStore(tmp_path)
    run_in_another_process(store, failing)
    fails.value = True
    called, run = run_in_another_process(store, failing)
    assert (called, run.counts) == (0, {"failed": 20})
    assert why(run) == "unpinned, so never reused: 2 answers repeated as a check came out differently"


def test_a_check_in_a_bucket_counts_for_all_who_use_it(s3: S3Server, postgres: PostgresServer) -> None:
    store = open_store(f"{s3.bucket()}/evals?catalog={postgres.database()}")
    called = [run_in_another_process(store, steady)[0] for _ in range(3)]
    assert called == [20, 2, 0]


def test_scores_of_new_answers_are_graded_without_a_check(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    first, other = (
        Runner(store).run(code, Dataset.from_rows([{"input": f"q{i}", "expected": "Q"} for i in range(20)]))
        for code in (steady, secretly_changing)
    )
    assert [grade_in_another_process(run)[0] for run in (first, other)] == [20, 20]


def shorter(first: str, second: str) -> str:
    CALLS.value.append(first)
    return "tie" if WORDS.value == "?" else "first" if len(first) < len(second) else "second"


def rank_by_length(responses: list[str]) -> list[float]:
    CALLS.value.append(responses[0])
    return [len(text) + (WORDS.value == "?") for text in responses]


def judge_in_another_process(runs: list[Run], judge: Any, **options: Any) -> tuple[int, Matches]:
    earlier_work._made_here.clear()
    CALLS.value.clear()
    matches = Matcher().match(runs, judge, labels=["a", "b", "c"], **options)
    return len(CALLS.value), matches


@pytest.mark.parametrize(("judge", "total"), [(shorter, 120), (rank_by_length, 40)])
@pytest.mark.parametrize("orders", ["both", "random"])
def test_judgements_are_checked_likewise(tmp_path: Path, judge: Any, total: int, orders: str) -> None:
    store, tasks = DirectoryStore(tmp_path), [str.upper, lambda text: text * 2, lambda text: text * 3]
    runs = [Runner(store).run(task, DATA) for task in tasks]
    total = total if orders == "both" else total // 2
    called = [judge_in_another_process(runs, judge, orders=orders)[0] for _ in range(3)]
    assert called == [total, 2, 0]
    WORDS.value = "?"
    [path] = tmp_path.glob("matches/*/check-*.json")
    path.unlink()
    called_again, matches = judge_in_another_process(runs, judge, orders=orders)
    assert matches.receipt is not None
    assert (called_again, matches.manifest["pinned"]) == (2 + total, False)
    assert "2 answers repeated as a check came out differently" in matches.receipt.why


def test_a_damaged_outcome_is_checked_again(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    for _ in range(2):
        run_in_another_process(store, steady)
    [path] = tmp_path.glob("runs/*/check-*.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"same": False}))
    assert run_in_another_process(store, steady)[0] == 2
