"""Guardrails: what passes, what is blocked, and what happens to what cannot be judged."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from evaluand import Judgement, SpecError
from evaluand.apps import App, block_input, block_output, filter_contexts, instrument
from evaluand.core.errors import EvaluandWarning, TaskError
from evaluand.evaluation.feedback import Feedback
from evaluand.interop import trulens


def amount(text: str) -> float:
    return float(text)


async def amount_async(text: str) -> float:
    await asyncio.sleep(0)
    return float(text)


def undefined(text: str) -> Judgement:
    return Judgement.undefined("nothing to judge")


def broken(text: str) -> float:
    raise ValueError("the judge is broken")


def nan(text: str) -> float:
    return float("nan")


def several(text: str) -> dict[str, float]:
    return {"a": 1.0, "b": 1.0}


def distance(question: str, context: str) -> float:
    return abs(float(question) - float(context))


HIGH = Feedback(amount, higher_is_better=True)
LOW = Feedback(amount, higher_is_better=False)
ASYNC = Feedback(amount_async, higher_is_better=True)
NEAR = Feedback(distance, higher_is_better=False)


def echo(text: str) -> str:
    return text


async def echo_async(text: str) -> str:
    return text


@given(st.floats(-10, 10), st.floats(-10, 10))
def test_what_is_worse_than_the_threshold_is_blocked_and_what_equals_it_passes(value: float, threshold: float) -> None:
    for decorate in (block_input, block_output):
        high, low = (
            decorate(HIGH, threshold, return_value="no")(echo),
            decorate(LOW, threshold, return_value="no")(echo),
        )
        assert high(str(value)) == (str(value) if value >= threshold else "no")
        assert low(str(value)) == (str(value) if value <= threshold else "no")


@given(st.lists(st.integers(0, 9)), st.integers(0, 9))
def test_contexts_that_are_better_than_the_threshold_remain_in_their_order(numbers: list[int], threshold: int) -> None:
    contexts = list(map(str, numbers))
    kept = filter_contexts(NEAR, threshold)(lambda query: contexts)("5")
    assert kept == [each for each in contexts if abs(int(each) - 5) < threshold]


@pytest.mark.parametrize("feedback", [HIGH, ASYNC], ids=["plain", "async"])
@pytest.mark.parametrize("decorate", [block_input, block_output])
def test_functions_and_feedbacks_may_be_plain_or_async(decorate: Callable[..., Any], feedback: Feedback) -> None:
    plain = decorate(feedback, 2, return_value="no")(echo)
    coroutine = decorate(feedback, 2, return_value="no")(echo_async)
    assert [plain("1"), plain("3")] == ["no", "3"]
    assert asyncio.iscoroutinefunction(coroutine)

    async def both() -> list[str]:
        return [await coroutine("1"), await coroutine("3"), plain("3")]

    assert asyncio.run(both()) == ["no", "3", "3"]


def test_contexts_of_an_async_function_are_filtered() -> None:
    @filter_contexts(NEAR, 2, "query")
    async def retrieve(*, query: str) -> list[str]:
        return ["1", "5", "6"]

    assert asyncio.run(retrieve(query="5")) == ["5", "6"]


def test_contexts_are_judged_at_the_same_time() -> None:
    together = threading.Barrier(4)

    def wait(question: str, context: str) -> float:
        together.wait(timeout=30)
        return 1.0

    kept = filter_contexts(Feedback(wait, higher_is_better=True), 0.5)(lambda query: list("abcd"))
    assert kept("?") == list("abcd")


def test_a_blocked_input_calls_nothing_and_other_arguments_are_passed_on() -> None:
    calls: list[Any] = []

    class Chat:
        @block_input(HIGH, threshold=2, keyword_for_prompt="question", return_value="no")
        def answer(self, user: str, question: str = "1", *, top: int = 3) -> str:
            """Answer."""
            calls.append((user, question, top))
            return question

    chat = Chat()
    assert chat.answer("ann", "5", top=1) == "5"
    assert [chat.answer("ann"), chat.answer("ann", question="0")] == ["no", "no"]
    assert calls == [("ann", "5", 1)]
    assert (Chat.answer.__name__, Chat.answer.__doc__) == ("answer", "Answer.")


@pytest.mark.parametrize(
    ("judge", "reason"),
    [
        (undefined, "nothing to judge"),
        (broken, "ValueError: the judge is broken"),
        (nan, "it returned the number nan"),
        (several, "it returned an object"),
    ],
    ids=["undefined", "broken", "NaN", "several"],
)
@pytest.mark.parametrize("decorate", [block_input, block_output])
def test_what_cannot_be_judged_is_blocked_unless_said_otherwise(
    decorate: Callable[..., Any], judge: Any, reason: str
) -> None:
    feedback = Feedback(judge, higher_is_better=True)
    with pytest.warns(EvaluandWarning, match="what it could not judge is blocked"):
        assert decorate(feedback, 0.5, return_value="no")(echo)("x") == "no"
    with pytest.warns(EvaluandWarning, match="what it could not judge passes"):
        assert decorate(feedback, 0.5, undecided="pass")(echo)("x") == "x"
    with pytest.raises(TaskError, match=f"guardrail '{feedback.name}' has no score: .*{reason}"):
        decorate(feedback, 0.5, undecided="fail")(echo)("x")


def test_a_context_that_cannot_be_judged_is_left_out_alone() -> None:
    retrieve = filter_contexts(NEAR, 9)(lambda query: ["1", "many", "6"])
    with pytest.warns(EvaluandWarning, match="ValueError: could not convert"):
        assert retrieve("5") == ["1", "6"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: block_input(amount, 0.5), "needs a feedback function, not a function"),
        (lambda: block_input(Feedback(amount), 0.5), "'amount' has no direction; pass higher_is_better"),
        (lambda: block_output(HIGH, float("nan")), "the guardrail's threshold is the number nan; give a number"),
        (lambda: block_output(HIGH, "0.5"), "the guardrail's threshold is the text '0.5'"),
        (lambda: block_output(HIGH, 1, undecided="skip"), "undecided is 'skip'; give one of block, pass, fail"),
        (
            lambda: block_input(HIGH, 1, "txt")(echo),
            r"echo has no argument 'txt' \(did you mean 'text'\?\); it has text",
        ),
        (lambda: block_input(HIGH, 1)(lambda: ""), "has no argument that a guardrail could judge"),
        (lambda: block_output(HIGH, 1)(staticmethod(echo)), "put the guardrail below @staticmethod"),
        (lambda: block_output(HIGH, 1)(lambda: (yield)), "yields its output in pieces"),
        (lambda: filter_contexts(HIGH, 1)(lambda q: ["1"])("1"), "passes 2 arguments, but amount has text"),
        (lambda: filter_contexts(NEAR, 1)(lambda q: "1")("1"), "returned the text '1'; a guardrail filters a list"),
    ],
)
def test_what_cannot_guard_is_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        make()


def test_each_decision_is_a_span_of_the_call() -> None:
    class Rag:
        @instrument
        @filter_contexts(NEAR, 2)
        def retrieve(self, query: str) -> list[str]:
            return ["1", "5"]

        @instrument
        @block_output(HIGH, 0, return_value="no")
        def answer(self, query: str) -> str:
            return self.retrieve(query)[0]

    rag = Rag()
    app = App(rag, name="rag", version="1")
    with app as recording:
        rag.answer("5")
    recording.close()
    rows = [row for batch in recording.run.spans() for row in batch.to_pylist()]
    guards = [row for row in rows if row["kind"] == "guardrail"]
    assert sorted(row["name"] for row in guards) == ["amount", "distance", "distance"]
    assert all('"passed"' in row["attributes"] and '"threshold"' in row["attributes"] for row in guards)


def test_the_names_of_trulens_are_the_same_decorators() -> None:
    assert (trulens.context_filter, trulens.block_input, trulens.block_output) == (
        filter_contexts,
        block_input,
        block_output,
    )
    judged = trulens.Feedback(amount)  # whose direction is higher unless said otherwise
    guarded = trulens.block_input(feedback=judged, threshold=2, keyword_for_prompt="text", return_value="no")(echo)
    assert [guarded("1"), guarded(text="3")] == ["no", "3"]
