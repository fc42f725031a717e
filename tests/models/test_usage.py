"""What calls use: counted, reported by user code, stored with each row, and summed without adding currencies."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, strategies as st

from evaluand.core.errors import DataError, TransientError
from evaluand.data.dataset import Dataset
from evaluand.engine.engines.local import LocalEngine
from evaluand.engine.engines.processes import ProcessEngine
from evaluand.engine.policy import Policy
from evaluand.evaluation.evaluator import Evaluation, Evaluator
from evaluand.evaluation.scorer import scorer
from evaluand.models.capture import Capture, current_capture
from evaluand.models.usage import Spending, count, report_usage, spending
from evaluand.models.usage_total import UsageTotal, cost_text
from evaluand.run.runner import Run, Runner


def data(n: int = 2) -> Dataset:
    return Dataset.from_rows([{"input": i} for i in range(n)])


def usages(run: Run) -> list[Any]:
    return [row and {k: v for k, v in row.items() if v is not None} for row in run.table()["usage"].to_pylist()]


# In runs


def plain(number: int) -> int:
    report_usage(input_tokens=100, output_tokens=number, cost=0.5, currency="USD", model="m")
    return number


async def coroutine(number: int) -> int:
    return plain(number)


def in_a_thread(number: int) -> int:
    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(plain, number))
    thread.start()
    thread.join()
    return number


@pytest.mark.parametrize("task", [plain, coroutine, in_a_thread])
@pytest.mark.parametrize("processes", [False, True])
def test_what_a_task_reports_is_stored_with_its_row(task: Any, processes: bool) -> None:
    engine = ProcessEngine(2) if processes else LocalEngine()
    run = Runner(policy=Policy(concurrency=2), engine=engine).run(task, data())
    counted = {"requests": 1, "failed": 0, "cached": 0, "input_tokens": 100, "cost": 0.5, "currency": "USD"}
    assert usages(run) == [{**counted, "output_tokens": i, "model": "m"} for i in range(2)]
    assert str(UsageTotal.read(run.manifest["usage"])) == "2 requests, 200 input tokens, 1 output token, cost 1.00 USD"


def test_all_attempts_of_a_call_count() -> None:
    tried: list[int] = []

    def flaky(number: int) -> int:
        report_usage(input_tokens=10, cost=0.25, currency="USD")
        tried.append(number)
        if len(tried) == 1:
            raise ConnectionError
        return number

    run = Runner(policy=Policy(retries=1, backoff=0)).run(flaky, data(1))
    counted = {"requests": 2, "failed": 0, "cached": 0}
    assert usages(run) == [{**counted, "input_tokens": 20, "cost": 0.5, "currency": "USD"}]


def test_a_task_that_reports_nothing_has_no_usage() -> None:
    run = Runner().run(str, data())
    assert usages(run) == [None, None]
    assert "usage" not in run.manifest


def test_unknown_costs_are_unknown_and_counted() -> None:
    def half(number: int) -> int:
        report_usage(input_tokens=10, cost=0.25 if number else None)
        return number

    run = Runner().run(half, data(3))
    assert [row.get("cost") for row in usages(run)] == [None, 0.25, 0.25]
    assert str(UsageTotal.read(run.manifest["usage"])) == (
        "3 requests, 30 input tokens, cost 0.50 and unknown for 1 of 3 rows"
    )


def test_a_row_with_one_request_of_unknown_cost_has_an_unknown_cost() -> None:
    def mixed(number: int) -> int:
        report_usage(input_tokens=10, cost=0.25)
        report_usage(output_tokens=5)
        report_usage(cost=1.0)
        return number

    [row] = usages(Runner().run(mixed, data(1)))
    assert row == {"requests": 3, "failed": 0, "cached": 0}  # nor are its tokens known


def test_costs_in_several_currencies_are_listed_and_never_added() -> None:
    def mixed(number: int) -> int:
        report_usage(input_tokens=10, cost=0.25, currency="USD")
        report_usage(input_tokens=10, cost=1.0, currency="EUR")
        return number

    run = Runner().run(mixed, data(2))
    assert [row["costs"] for row in usages(run)] == [
        [{"cost": 1.0, "currency": "EUR"}, {"cost": 0.25, "currency": "USD"}]
    ] * 2
    assert all("cost" not in row for row in usages(run))
    total = UsageTotal.read(run.manifest["usage"])
    assert (total.cost, total.without_cost) == ({"EUR": 2.0, "USD": 0.5}, 0)
    assert str(total) == "4 requests, 40 input tokens, cost 2.00 EUR and 0.50 USD"


def test_what_is_reported_outside_of_a_call_is_lost_without_harm() -> None:
    report_usage(cost=1.0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"input_tokens": -1}, "input_tokens is -1, not an integer of at least 0"),
        ({"cost": float("inf")}, "cost is inf, not a number of at least 0"),
        ({"currency": 5}, "currency is 5, not a text"),
        ({"requests": 1.5}, "requests is 1.5, not an integer of at least 0"),
    ],
)
def test_what_cannot_be_counted_fails_the_row_with_the_reason(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=f"^this usage cannot be counted: {message}$"):
        report_usage(**wrong)


def test_reused_rows_keep_what_they_cost_when_they_were_made() -> None:
    runner = Runner()
    runner.run(plain, data(2))
    again = runner.run(plain, data(3))
    assert again.receipt is not None
    assert (again.receipt.reused, again.receipt.called) == (2, 1)
    assert again.manifest["usage"]["cost"] == {"USD": 1.5}
    assert again.manifest["spent"] == {"USD": 0.5}


# In evaluations


def judge(output: int) -> float:
    report_usage(input_tokens=output, output_tokens=1, cost=0.5, currency="USD")
    return float(output)


async def judge_async(output: int) -> float:
    return judge(output)


@pytest.mark.parametrize("graded_by", [judge, judge_async])
def test_what_a_scorer_reports_is_stored_with_each_score(graded_by: Any) -> None:
    run = Runner().run(lambda number: number, data())
    evaluation = Evaluator().evaluate(run, {"judge": graded_by, "plain": lambda output: 1.0})
    assert [row["input_tokens"] for row in score_usages(evaluation)] == [0, 1]
    assert evaluation.manifest["usage"]["judge"]["cost"] == {"USD": 1.0}
    assert evaluation.manifest["spent"] == {"judge": {"USD": 1.0}}
    assert "plain" not in evaluation.manifest["usage"]


@pytest.mark.parametrize("processes", [False, True])
def test_what_a_batch_uses_is_divided_among_its_rows(processes: bool) -> None:
    def judge_all(outputs: list[int]) -> list[float]:
        report_usage(input_tokens=100, cost=0.75, currency="EUR")
        return [1.0 for _ in outputs]

    run = Runner().run(lambda number: number, data(6))
    in_batches = scorer(judge_all, name="judge", version="1", batch=True)
    engine = ProcessEngine(2) if processes else LocalEngine()
    evaluation = Evaluator(engine=engine).evaluate(run, {"judge": in_batches})
    rows = list(score_usages(evaluation))
    assert [row["cost"] for row in rows] == [0.125] * 6
    assert sorted(row["input_tokens"] for row in rows) == [16, 16, 17, 17, 17, 17]
    total = UsageTotal.read(evaluation.manifest["usage"]["judge"])
    assert str(total) == "1 request, 100 input tokens, cost 0.75 EUR"


def test_all_attempts_at_a_batch_count() -> None:
    tried: list[int] = []

    def flaky(outputs: list[int]) -> list[float]:
        report_usage(cost=0.5, currency="EUR")
        tried.append(len(outputs))
        if len(tried) == 1:
            raise TransientError("not now")
        return [1.0 for _ in outputs]

    run = Runner().run(lambda number: number, data(4))
    in_batches = scorer(flaky, name="judge", version="1", batch=True)
    evaluation = Evaluator(policy=Policy(retries=1, backoff=0)).evaluate(run, {"judge": in_batches})
    assert [row["cost"] for row in score_usages(evaluation)] == [0.25] * 4
    assert evaluation.manifest["spent"] == {"judge": {"EUR": 1.0}}


def score_usages(evaluation: Evaluation) -> Iterator[dict[str, Any]]:
    import orjson

    return (orjson.loads(text) for text in evaluation.table("judge")["usage"].to_pylist())


# Sums

usage = st.none() | st.fixed_dictionaries(
    {"requests": st.integers(0, 3)},
    optional={
        "failed": st.integers(0, 3),
        "cached": st.integers(0, 3),
        "input_tokens": st.integers(0, 100),
        "cost": st.sampled_from([0.0, 0.5, 2.0]),
        "currency": st.sampled_from(["USD", "EUR", None]),
    },
)


@given(st.lists(usage), st.integers(0, 10))
def test_totals_of_parts_merge_to_the_total(rows: list[Any], border: int) -> None:
    whole, first, second = UsageTotal(), UsageTotal(), UsageTotal()
    for place, row in enumerate(rows):
        whole.add(row)
        (first if place < border else second).add(row)
    first.merge(second)
    assert first == whole
    assert UsageTotal.read(whole.to_dict()) == whole
    assert whole.without_cost <= whole.rows == sum(row is not None for row in rows)


@pytest.mark.parametrize("wrong", [5, "x", [], {"cost": "5"}, {"cost": True}, {"cost": -1.0}, {"input_tokens": 1e400}])
def test_what_is_no_usage_counts_as_unknown(wrong: Any) -> None:
    total = UsageTotal()
    total.add(wrong)
    assert total.cost == {}
    assert total.input_tokens == 0
    assert total.without_cost == total.rows == isinstance(wrong, dict)


def test_replies_from_the_cache_cost_nothing_and_are_counted() -> None:
    total = UsageTotal()
    spent = Spending()
    with spending(spent):
        count(known=1)
    total.add(spent.usage)
    assert str(total) == "1 reply from the cache"
    assert total.without_cost == 0


def test_failed_requests_are_no_requests_of_unknown_cost() -> None:
    spent = Spending()
    spent.add(requests=1, failed=1)
    spent.add(requests=1, usage={"input_tokens": 5, "cost": 0.5, "currency": "USD"})
    assert spent.usage is not None
    assert (spent.usage["failed"], spent.usage["cost"]) == (1, 0.5)


@pytest.mark.parametrize(
    ("cost", "text"), [(0.0, "0"), (0.000123, "0.00012"), (0.05, "0.050"), (0.1, "0.10"), (1234.567, "1,234.57")]
)
def test_costs_are_shown_with_two_significant_digits_at_least(cost: float, text: str) -> None:
    assert cost_text(cost, "USD") == f"{text} USD"


def test_a_recording_that_ends_within_a_block_ends_alone() -> None:
    recording = Capture(None, None, is_on=False)
    recording.__enter__()
    with spending() as spent:
        count(requests=1)
        recording.__exit__(None, None, None)
        count(requests=1)
    assert spent.n_requests == 2
    assert current_capture() is None
