"""Feedback functions: what they are bound to, what they say, and what becomes of it in stored runs."""

from __future__ import annotations

import asyncio
import importlib
import json
import math
import pkgutil
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from support.thinned import thinned

import evaluand.evaluation.providers
import evaluand.interop.trulens
from evaluand import Dataset, Evaluation, Evaluator, Policy, Run, Runner
from evaluand.aggregation.aggregator import Aggregator, Measure
from evaluand.apps.app import App
from evaluand.apps.leaderboards.board import leaderboard
from evaluand.cli import main
from evaluand.comparison import compare
from evaluand.core.errors import DataError, EvaluandWarning, Skipped, SpecError, TaskError, TransientError
from evaluand.core.selector import Selector
from evaluand.engine.engines.processes import ProcessEngine
from evaluand.evaluation.feedback import Feedback, mean
from evaluand.evaluation.feedback.references import (
    _IMPLEMENTATIONS,
    _REFERENCES,
    _SERVICES,
    AGGREGATES,
    reference_of,
    referred,
)
from evaluand.evaluation.feedback.selector_checks import may_see_times
from evaluand.evaluation.preflight import check_gradable
from evaluand.evaluation.provider import Judgement, Provider
from evaluand.evaluation.scorer import Score
from evaluand.evaluation.scorers.feedback import FeedbackKind
from evaluand.interop.trulens import Feedback as TruLens
from evaluand.metrics.column_statistics import Mean
from evaluand.store.store import MemoryStore
from evaluand.trace import span

RETS = "__record__.app.retriever.search.rets[:]"
SOURCE = {
    "__record__": {
        "main_input": "Who wrote Emma?",
        "main_output": "Jane Austen",
        "app": {"retriever": {"search": [{"rets": ["Emma is by Jane Austen", "Emma Stone"]}]}, "none": [{"rets": []}]},
    },
    "__app__": {"app_id": "rag", "app": {"model": "m"}},
    "__example__": {"expected": "Austen", "metadata": {"topic": "books"}},
}


loads = json.loads


def length(text: str) -> float:
    return float(len(text))


def pair(a: str, b: str = "-") -> float:
    return float(len(a) * 100 + len(b))


def three(a: Any, b: Any, c: Any) -> float:
    return 1.0


def by_name(a: Any, *, b: Any) -> float:
    return 2.0


def open_ended(a: Any, *args: Any, **more: Any) -> float:
    return float(len(more))


def nothing() -> float:
    return 1.0


def by_place(a: Any, b: Any = 0, /) -> float:
    return float(len(a) - len(b))


def no_stone(text: str) -> float:
    if "Stone" in text:
        raise ValueError("no stones")
    return 1.0


def worst(values: list[float]) -> float:
    return min(values)


class Weighed(Provider):
    def __init__(self, weight: float, unit: str = "") -> None:
        self.weight, self.unit = weight, unit

    def weigh(self, text: str) -> float:
        return self.weight * len(text)


@dataclass(frozen=True)
class Measured(Provider):
    size: int = 1

    def fits(self, text: str) -> Judgement:
        return Judgement(float(len(text) <= self.size), {"reason": f"{len(text)} letters"})


def value(feedback: Feedback, **given: Any) -> Any:
    return feedback.evaluate(SOURCE, **given).value


# ---------------------------------------------------------------- binding


def test_selectors_without_a_name_are_bound_in_order() -> None:
    one = Feedback(pair).on("__record__.main_input", "__record__.main_output")
    assert one == Feedback(pair).on("__record__.main_input").on("__record__.main_output")
    assert one == Feedback(pair).on(b="__record__.main_output", a="__record__.main_input")
    assert one == Feedback(pair).on("__record__.main_input", b="__record__.main_output")
    assert one == Feedback(pair).on(b="__record__.main_output").on_input() == Feedback(pair).on_input_output()
    assert value(one) == 1511.0


def test_one_definition_has_one_identity_however_it_was_written() -> None:
    one = Feedback(pair).on("__record__.main_input", "__record__.main_output")
    other = Feedback(pair).on(b=Selector("__record__.main_output")).on(a="__record__['main_input']")
    assert one.identify() == Feedback(pair).on(b="__record__.main_output", a="__record__.main_input").identify()
    assert one.identify() != other.identify()  # a key in brackets goes through no lists


def test_two_selections_of_one_function_are_two_definitions() -> None:
    assert Feedback(length).on_input().identify() != Feedback(length).on_output().identify()


@pytest.mark.parametrize(
    "changed",
    [
        Feedback(length).on_input().aggregate(worst),
        Feedback(length).on_input().aggregate(combinations="zip"),
        Feedback(length, if_missing="ignore").on_input(),
        Feedback(length, if_exists="__app__").on_input(),
        Feedback(length, on_error="leave_out").on_input(),
        Feedback(length, version="1").on_input(),
        Feedback(len).on_input(),
    ],
)
def test_whatever_changes_what_is_said_changes_the_identity(changed: Feedback) -> None:
    assert changed.identify().spec != Feedback(length).on_input().identify().spec


def test_names_and_directions_change_no_identity() -> None:
    named = Feedback(length, name="n", higher_is_better=False, range=(0, 99)).on_input()
    assert named.identify() == Feedback(length).on_input().identify()


def test_a_feedback_is_not_changed_by_what_is_made_of_it() -> None:
    first = Feedback(pair).on_input()
    second = first.on_output().aggregate(worst)
    assert list(first.selectors) == ["a"]
    assert first.aggregator is mean
    assert list(second.selectors) == ["a", "b"]
    with pytest.raises(AttributeError):
        first.name = "x"  # type: ignore[misc]


def test_the_next_argument_is_that_behind_those_bound_by_name() -> None:
    assert list(Feedback(pair).on_output("b").on_input().selectors) == ["a", "b"]


def test_arguments_bound_again_are_bound_anew() -> None:
    assert value(Feedback(length).on_input().on_output("text")) == 11.0


@pytest.mark.parametrize(
    ("bound", "reported"),
    [
        (lambda: Feedback(length).on_input("txt"), "length has no argument 'txt' (did you mean 'text'?); it has text"),
        (lambda: Feedback(length).on(txt="__app__"), "length has no argument 'txt'"),
        (lambda: Feedback(length).on_input().on_output(), "length has no argument left: it has text, bound already"),
        (lambda: Feedback(nothing).on_input(), "nothing has no argument left: it has none"),
        (lambda: Feedback(open_ended).on_input().on_output(), "further ones are bound by name"),
        (lambda: Feedback(three).on_default(), "three has more than two arguments"),
        (lambda: Feedback(open_ended).on_default(), "open_ended has more than two arguments"),
        (lambda: Feedback(lambda a=1, b=2: 1.0, name="f").on_default(), "requires none of a, b; bind arguments"),
        (lambda: Feedback(length).on("__record__["), "is not a path"),
        (lambda: Feedback(length).on(3), "the integer 3 is not a selector"),  # type: ignore[arg-type]
        (lambda: Feedback(length, if_exists="a["), "feedback 'length': if_exists: 'a[' is not a path"),
        (lambda: Feedback(length).aggregate(), "aggregate(…) needs a function or combinations"),
        (lambda: Feedback(length, aggregate="max"), "aggregate is the text 'max'"),  # type: ignore[arg-type]
        (lambda: Feedback(length, combinations="zap"), "(did you mean 'zip'?)"),
        (lambda: Feedback(length, if_missing="skip"), "give one of error, warn, ignore"),
        (lambda: Feedback(length, on_error="ignore"), "give one of fail, leave_out"),
        (lambda: Feedback("length"), "a feedback needs a function, not the text 'length'"),  # type: ignore[arg-type]
        (lambda: Feedback(None), "a feedback needs a function, not null"),  # type: ignore[arg-type]
        (lambda: Feedback(dict), "dict has no readable signature"),
        (lambda: Feedback(length, name=5), "name is the integer 5; give a text"),
        (lambda: Feedback(length, version=5), "feedback 'length': version is the integer 5; give a text, such as '1'"),
        (lambda: Feedback(length, higher_is_better="no"), "higher_is_better is the text 'no'; give True, False or"),
        (lambda: Feedback(length).evaluate(SOURCE, text="a", txt="b"), "length has no argument 'txt' (did you mean"),
    ],
)
def test_what_cannot_be_bound_is_reported_at_once(bound: Any, reported: str) -> None:
    with pytest.raises(SpecError) as raised:
        bound()
    assert reported in str(raised.value)


@pytest.mark.parametrize("ask", [Feedback.check, Feedback.identify, lambda f: f.evaluate(SOURCE)])
def test_an_argument_that_is_not_bound_is_reported_before_anything_is_called(ask: Any) -> None:
    with pytest.raises(SpecError, match="feedback 'three': three needs b, which is not bound"):
        ask(Feedback(three).on_input().on(c="__app__"))


def test_arguments_taken_by_position_only_have_no_gaps() -> None:
    assert value(Feedback(by_place).on_input_output()) == 4.0
    with pytest.raises(SpecError, match="needs a, which is not bound"):
        Feedback(by_place).on_output("b").check()


def test_arguments_with_defaults_need_not_be_bound() -> None:
    assert value(Feedback(pair).on_input()) == 1501.0


def test_arguments_by_name_only_and_further_ones_are_bound_by_name() -> None:
    assert value(Feedback(by_name).on_default()) == 2.0
    assert value(Feedback(open_ended).on_input().on(z="__app__", y="__app__")) == 2.0


@pytest.mark.parametrize(("function", "bound"), [(nothing, []), (length, ["main_output"])])
def test_by_default_the_one_argument_is_the_output(function: Any, bound: list[str]) -> None:
    selectors = Feedback(function).on_default().selectors
    assert [str(selector) for selector in selectors.values()] == [f"__record__.{part}" for part in bound]


def long_enough(text: str, at_least: int = 3, *, lang: str = "en") -> float:
    return float(len(text) >= at_least)


@pytest.mark.parametrize("ask", [Feedback.on_default, lambda f: FeedbackKind(implementation=f.implementation).scorer])
def test_by_default_arguments_keep_their_defaults(ask: Any) -> None:
    assert ask(Feedback(long_enough)) == Feedback(long_enough).on(text="__record__.main_output")
    assert ask(Feedback(by_name)) == Feedback(by_name).on_input_output()
    assert value(ask(Feedback(long_enough))) == 1.0


def test_given_values_stand_in_for_selections() -> None:
    assert value(Feedback(length).on_input(), text="four") == 4.0
    assert value(Feedback(length), text="four") == 4.0


STRUCTURE = {
    "app_id": "rag",
    "app": {"k": 3},
    "instrumented": {"": ["query"], "steps[0].ask": ["run", "stop"]},
    "arguments": {"query": ["question"], "steps[0].ask.run": ["x"]},
}


@pytest.mark.parametrize(
    "text",
    [
        "__app__.app.k",
        "__record__.app.query.rets",
        "__record__.app.steps[0].ask.run[:].args.x",
        "__record__.app.steps[-1].ask.run.rets",
        "__record__.app.steps[:].ask.run[0].args['x']",
        "__record__.app.steps.ask.run[0,-1].error",
        "__record__.app.steps[*].ask.walk",
        "__record__.app.steps[0].ask.stop.args.anything",
        "__record__.app.query.__call__[0].rets",
        "__record__.app..rets",
        "__record__.app.steps",
        "__record__.app",
        "__record__",
        "__record__.main_input",
        "__record__.main_output.anything",
        "__record__['cost','perf']",
        "__record__.cost.n_tokens",
        "__record__.perf.latency",
        "__record__.calls[-1].args.anything",
        "__record__.calls[?@.kind == 'llm'].rets",
        "__record__.calls[*].stack[-1].method",
        "__example__.expected",
        "__example__.metadata.topic",
        "$..rets",
    ],
)
def test_selectors_that_lead_somewhere_in_an_app_are_right(text: str) -> None:
    Feedback(length, if_exists=text).on(text).check_app(STRUCTURE)


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("main_output", "a selector begins with __record__, __app__, __example__, not with 'main_output'"),
        ("__recrd__.x", "not with '__recrd__' (did you mean '__record__'?)"),
        ("__record__.main_outptu", "__record__ has no 'main_outptu' (did you mean 'main_output'?)"),
        ("__record__['main_input','tag']", "__record__ has no 'tag' (did you mean 'tags'?)"),
        ("__record__.cost.n_tokns", "__record__.cost has no 'n_tokns' (did you mean 'n_tokens'?)"),
        ("__record__.perf.latncy", "__record__.perf has no 'latncy' (did you mean 'latency'?)"),
        ("__example__.expectd", "__example__ has no 'expectd' (did you mean 'expected'?)"),
    ],
)
@pytest.mark.parametrize("if_missing", ["error", "ignore"])
def test_selectors_of_what_is_in_no_record_are_refused(text: str, reported: str, if_missing: str) -> None:
    for feedback in (Feedback(length, if_missing=if_missing).on(text), Feedback(length, if_exists=text).on_output()):
        with pytest.raises(SpecError) as raised:
            feedback.check_app(STRUCTURE)
        assert reported in str(raised.value)


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("__record__.calls[-1].retz", "a call has no 'retz' (did you mean 'rets'?)"),
        ("__record__.calls.retz[:]", "a call has no 'retz'"),
        ("__record__.app.query.retz[:]", "a call of query has no 'retz' (did you mean 'rets'?)"),
        ("__record__.app.query[-1]['rets','arg']", "a call of query has no 'arg' (did you mean 'args'?)"),
        ("__record__.app.query[:].args.qestion", "args of a call of query has no 'qestion' (did you mean 'question'?)"),
        ("__record__.app.steps[-1].ask.runs", "selects no call that the app instruments"),
        ("__record__.main_error.message", "it is always null for a feedback"),
    ],
)
def test_what_calls_do_not_have_is_doubted(text: str, reported: str) -> None:
    for feedback in (Feedback(length).on(text), Feedback(length, if_exists=text).on_output()):
        with pytest.warns(EvaluandWarning) as warned:
            feedback.check_app(STRUCTURE)
        assert reported in str(warned[0].message)
    Feedback(length, if_missing="ignore").on(text).check_app(STRUCTURE)


def test_that_nothing_of_an_app_is_there_to_exist_is_doubted() -> None:
    with pytest.warns(EvaluandWarning, match="if_exists: __app__.nope: __app__ has no 'nope'"):
        Feedback(length, if_exists="__app__.nope").on_output().check_app(STRUCTURE)


def test_selectors_that_lead_nowhere_in_an_app_are_reported() -> None:
    with pytest.raises(SpecError, match=r"text: __app__.app.kk: __app__.app has no 'kk' \(did you mean 'k'\?\)"):
        Feedback(length).on("__app__.app.kk").check_app(STRUCTURE)
    for text in ("__record__.app.quer.rets", "__record__.app.steps[1].ask.run", "__record__.app.steps[0].ask.runs"):
        with pytest.warns(
            EvaluandWarning, match=r"selects no call that the app instruments.*it instruments query, steps\[0\].ask.run"
        ):
            Feedback(length).on(text).check_app(STRUCTURE)
    Feedback(length, if_missing="ignore").on("__app__.app.kk").check_app(STRUCTURE)


# ---------------------------------------------------------------- combinations and aggregates


def test_a_selection_of_several_values_is_a_call_for_each() -> None:
    result = Feedback(length).on(RETS).evaluate(SOURCE)
    assert [(call["args"], call["ret"]) for call in result.calls] == [
        ({"text": "Emma is by Jane Austen"}, 22.0),
        ({"text": "Emma Stone"}, 10.0),
    ]
    assert result.value == 16.0


def test_collected_values_are_one() -> None:
    assert value(Feedback(len).on(f"{RETS}.collect()")) == 2.0


def test_every_combination_is_called_and_with_zip_each_with_each() -> None:
    both = Feedback(pair).on(RETS, RETS)
    assert [call["ret"] for call in both.evaluate(SOURCE).calls] == [2222.0, 2210.0, 1022.0, 1010.0]
    zipped = both.aggregate(combinations="zip")
    assert [call["ret"] for call in zipped.evaluate(SOURCE).calls] == [2222.0, 1010.0]


def test_zip_tells_of_values_that_are_left_over() -> None:
    result = Feedback(pair, combinations="zip").on(RETS).on_output().evaluate(SOURCE)
    assert result.value == 2211.0
    assert result.note == "zip combines to the end of the shortest: there are 2 of a, 1 of b"


@pytest.mark.parametrize(("aggregate", "said"), [(max, 22), (len, 2), (np.min, 10), (statistics.median, 16)])
def test_an_aggregate_is_given_what_all_calls_said(aggregate: Any, said: float) -> None:
    assert value(Feedback(length).on(RETS).aggregate(aggregate)) == said


def ratio(text: str) -> float:
    return len(text) / 22


ratio.range = (0, 1)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("feedback", "ends"),
    [
        (Feedback(ratio), (0.0, 1.0)),
        (Feedback(ratio, range=(0, 2)), (0.0, 2.0)),
        (Feedback(length, range=[0, 99]), (0.0, 99.0)),  # type: ignore[arg-type]
        (Feedback(length), None),
        *((Feedback(ratio).aggregate(keeping), (0.0, 1.0)) for keeping in (mean, min, max, np.mean, np.max)),
        *((Feedback(ratio).aggregate(keeping), (0.0, 1.0)) for keeping in (statistics.fmean, statistics.median)),
        *((Feedback(ratio).aggregate(leaving), None) for leaving in (sum, len, math.prod, statistics.stdev, worst)),
    ],
)
def test_a_range_is_known_where_the_implementation_says_it_and_the_aggregate_keeps_it(
    feedback: Feedback, ends: tuple[float, float] | None
) -> None:
    assert feedback.on_output().ranges == ({} if ends is None else {"value": ends})


@pytest.mark.parametrize("ends", [(1, 0), (0, 0), (0,), (0, 1, 2), 1, "01", (0, math.inf), (math.nan, 1), (None, 1)])
def test_a_range_without_two_ends_is_refused(ends: Any) -> None:
    with pytest.raises(SpecError, match=r"feedback 'length': range is .*; give the lowest and the highest number"):
        Feedback(length, range=ends)


def test_what_an_object_calls_its_range_is_none_of_its_values() -> None:
    class Near:
        range = "50 km"

        def __call__(self, text: str) -> float:
            return 7.0

    assert Feedback(Near()).on_output().ranges == {}


def summary(feedback: Feedback, answers: list[str]) -> dict[str, Any]:
    data = Dataset.from_rows([{"input": text} for text in answers])
    evaluation = Evaluator().evaluate(Runner(MemoryStore()).run(str, data), {"f": feedback})
    [row] = Aggregator().aggregate([evaluation], [Measure("f", Mean())]).table().to_pylist()
    return dict(row)


@pytest.mark.parametrize("answers", [["a" * 22, "a" * 21], ["a" * 22] * 2, ["a" * 11] * 3, ["", "a", ""]])
def test_the_interval_of_a_mean_stays_in_the_range(answers: list[str]) -> None:
    row = summary(Feedback(ratio).on_output(), answers)
    assert 0 <= row["low"] <= row["value"] <= row["high"] <= 1
    assert row["low"] < row["high"]


def test_a_mean_of_no_known_range_has_an_interval_that_is_not_cut() -> None:
    assert summary(Feedback(length).on_output(), ["a" * 22, "a"])["low"] < 0


def test_values_outside_the_range_are_refused() -> None:
    with pytest.raises(DataError, match=r"mean of 'f': _index_ 0: value 2\.0 lies outside the range 0\.0 to 1\.0"):
        summary(Feedback(ratio).on_output(), ["a" * 44, "a"])


def test_a_comparison_by_no_declared_metric_knows_the_range() -> None:
    data, store = Dataset.from_rows([{"input": "a" * n} for n in range(9)]), MemoryStore()
    runs = [Runner(store).run(task, data) for task in (str.upper, str.split)]
    reported = {}
    for feedback in (Feedback(ratio).on_input(), Feedback(length).on_input()):
        [row] = compare(*(Evaluator().evaluate(run, {"f": feedback}) for run in runs)).pairs
        reported[feedback.name] = "range=(0.0,1.0)" in row["signature"], row["share"]
    assert reported == {"ratio": (True, True), "length": (False, False)}


@pytest.mark.parametrize(
    ("aggregate", "said"),
    [(mean, 8.0), (max, 11.0), (min, 5.0), (sum, 16.0), (len, 2), (statistics.median, 8.0), (np.max, 11.0)],
)
def test_lists_of_numbers_count_with_their_means_for_every_aggregate(aggregate: Any, said: float) -> None:
    feedback = Feedback(lambda text: [0, len(text)]).on(RETS).aggregate(aggregate)
    assert value(feedback) == said
    assert [call["ret"] for call in feedback.evaluate(SOURCE).calls] == [[0.0, 22.0], [0.0, 10.0]]


@pytest.mark.parametrize(
    ("combinations", "sizes", "reported"),
    [
        ("product", (400, 300), "120,000 calls (400 of a × 300 of b) are more than 100,000; combine them by zip"),
        ("product", (100_001, 1), "100,001 calls (100,001 of a) are more than 100,000"),
        ("zip", (100_001, 100_002), "are more than 100,000; make one list of them with .collect()"),
    ],
)
def test_too_many_combinations_fail_before_the_first_call(combinations: str, sizes: Any, reported: str) -> None:
    def never(a: int, b: int) -> float:
        raise AssertionError

    source = {"a": range(sizes[0]), "b": range(sizes[1])}
    score = Feedback(never, combinations=combinations).on("a[:]", "b[:]").score(source)
    assert (score.status, score.columns) == ("failed", None)
    assert reported in score.reason


def test_as_many_combinations_as_are_allowed_are_called() -> None:
    source = {"a": list(range(100_001))}
    assert len(Feedback(lambda a: 1.0).on("a[1:]").evaluate(source).calls) == 100_000


def test_numbers_under_keys_are_aggregated_key_by_key() -> None:
    score = Feedback(lambda text: {"n": len(text), "one": True}).on(RETS).score(SOURCE)
    assert (score.status, score.value, score.data) == ("scored", None, {"n": 16.0, "one": 1.0})


def test_numbers_of_any_kind_are_numbers() -> None:
    for said in (3, 3.0, np.float32(3), np.int64(3), np.array(3.0), True):
        assert value(Feedback(lambda said=said: said)) == pytest.approx(float(said))


def test_the_reason_of_the_one_call_explains_the_score() -> None:
    score = Feedback(lambda text: (0.5, {"reason": "half", "at": [1]})).on_output().score(SOURCE)
    assert (score.value, score.explanation) == (0.5, "half")
    assert score.columns["calls"][0]["meta"] == {"reason": "half", "at": [1]}


@pytest.mark.parametrize(
    ("said", "reported"),
    [
        (None, "returned null"),
        ("0.5", "returned the text '0.5'"),
        ((0.5, "why"), "a tuple must be a value and a dictionary of metadata"),
        ((0.5, {}, {}), "a tuple must be a value and a dictionary of metadata"),
        ([], "returned an empty list or object"),
        (np.array([0.5, 1.0]), "returned a ndarray; it must return a number, a list of numbers"),
        ({}, "returned an empty list or object"),
        ({"x": "1"}, "returned the text '1' under 'x'"),
        ([0.5, None], "returned null at place 1"),
        (10**400, "returned a very long integer"),
    ],
)
def test_what_is_no_number_fails_the_call(said: Any, reported: str) -> None:
    result = Feedback(lambda text: said).on_output().evaluate(SOURCE)
    assert result.status == "failed"
    assert reported in str(result.reason)
    assert len(result.calls) == 1


def test_an_aggregate_that_fails_or_gives_no_number_keeps_the_calls() -> None:
    for aggregate, reported in (
        (lambda values: values[9], "the aggregate failed: IndexError"),
        (str, "returned the text"),
    ):
        score = Feedback(length).on(RETS).aggregate(aggregate).score(SOURCE)
        assert score.status == "failed"
        assert reported in score.reason
        assert len(score.columns["calls"]) == 2


def test_calls_that_say_different_things_have_no_aggregate() -> None:
    result = Feedback(lambda text: {"n": 1.0} if "Stone" in text else 1.0).on(RETS).evaluate(SOURCE)
    assert (result.status, len(result.calls)) == ("failed", 2)


@pytest.mark.parametrize("said", [math.nan, math.inf])
def test_a_value_that_is_not_finite_is_no_score(said: float) -> None:
    score = Feedback(lambda text: said).on_output().score(SOURCE)
    assert (score.status, score.reason) == ("abstained", f"the value is {said}")


def test_where_one_of_several_values_is_undefined_every_count_says_that_the_row_abstains() -> None:
    def parts(text: str) -> dict[str, float]:
        return {"a": math.nan if text == "A" else 1.0, "b": 0.5}

    feedback = Feedback(parts, version="1").on_output()
    run = Runner().run(str.upper, Dataset.from_rows([{"input": "a"}, {"input": "b"}]))
    evaluation = Evaluator().evaluate(run, {"parts": feedback})
    assert evaluation.counts == {"parts": {"abstained": 1, "scored": 1}}
    assert evaluation.table("parts")["reason"].to_pylist() == ["'a' is nan", None]
    measures = [Measure("parts", Mean(column=f"data.{key}")) for key in "ab"]
    metrics = Aggregator().aggregate([evaluation], measures).table().to_pylist()
    reported = [(row["value"], row["n_scored"], row["n_abstained"]) for row in metrics]
    board = [(row["mean"], row["n_scored"], row["n_abstained"]) for row in leaderboard([evaluation]).rows]
    assert reported == board == [(1.0, 1, 1), (0.5, 1, 1)]
    assert len(json.loads(evaluation.table("parts")["calls"][0].as_py())) == 1


# ---------------------------------------------------------------- what is missing, and what fails


def test_a_selector_that_leads_nowhere_fails_and_tells_how_far_it_goes() -> None:
    score = Feedback(length).on("__record__.app.retriver.search").score(SOURCE)
    assert score.status == "failed"
    assert score.reason == (
        "text: __record__.app.retriver.search: __record__.app has no 'retriver' (did you mean 'retriever'?)"
    )


def test_a_selector_that_leads_nowhere_may_skip_with_or_without_a_warning() -> None:
    assert Feedback(length, if_missing="ignore").on("__record__.x").score(SOURCE).status == "skipped"
    with pytest.warns(EvaluandWarning, match="feedback 'length' is skipped: text: __record__.x"):
        assert Feedback(length, if_missing="warn").on("__record__.x").score(SOURCE).status == "skipped"


@pytest.mark.parametrize("combinations", ["product", "zip"])
def test_a_selection_without_values_is_skipped_with_a_reason(combinations: str) -> None:
    score = Feedback(pair, combinations=combinations).on_input().on("__record__.app.none.rets[:]").score(SOURCE)
    assert score == Score(status="skipped", reason="b: __record__.app.none.rets[:] selects no values")


SEVERAL = {
    "__record__": {"app": {"search": [{"rets": ["a"]}, {"rets": ["b"], "error": "late"}], "none": [{"rets": []}]}}
}


@pytest.mark.parametrize("rest", ["", "[:]", ".args.query"])
def test_a_name_that_no_call_of_several_has_leads_nowhere(rest: str) -> None:
    score = Feedback(length).on(f"__record__.app.search.retz{rest}").score(SEVERAL)
    assert score.status == "failed"
    assert score.reason.endswith("__record__.app.search is a list of 2 without 'retz' (did you mean 'rets'?)")
    exists = Feedback(nothing, if_exists=f"__record__.app.search.retz{rest}")
    assert exists.score(SEVERAL).status == "skipped"


def test_a_name_that_some_calls_have_leads_to_those() -> None:
    assert Feedback(length).on("__record__.app.search.error").score(SEVERAL).value == 4.0


@pytest.mark.parametrize("rest", [".text", "[:].text", ".text.more[:]"])
def test_names_of_an_empty_list_select_no_values(rest: str) -> None:
    score = Feedback(length).on(f"__record__.app.none.rets{rest}").score(SEVERAL)
    assert (score.status, score.reason) == ("skipped", f"text: __record__.app.none.rets{rest} selects no values")


def test_rows_without_what_is_to_exist_are_skipped() -> None:
    assert Feedback(length, if_exists="__record__.app.x").on_output().score(SOURCE).reason == (
        "__record__.app.x is not there"
    )
    assert Feedback(length, if_exists="__record__.app").on_output().score(SOURCE).value == 11.0


def test_a_failing_call_leaves_the_others_reported() -> None:
    score = Feedback(no_stone).on(RETS).score(SOURCE)
    assert (score.status, score.reason) == ("failed", "1 of 2 calls failed: ValueError: no stones")
    assert [(call["ret"], call.get("error")) for call in score.columns["calls"]] == [
        (1.0, None),
        (None, "ValueError: no stones"),
    ]


def test_failing_calls_may_be_left_out() -> None:
    score = Feedback(no_stone, on_error="leave_out").on(RETS).score(SOURCE)
    assert (score.value, score.explanation) == (1.0, "left out: 1 of 2 calls failed: ValueError: no stones")
    assert Feedback(no_stone, on_error="leave_out").on("__record__.app.retriever.search[0].rets[1]").score(
        SOURCE
    ).status == ("failed")


def test_skipped_calls_are_left_out_and_where_all_are_so_is_the_row() -> None:
    def unless_stone(text: str) -> float:
        if "Stone" in text:
            raise Skipped("a stone")
        return 0.5

    score = Feedback(unless_stone).on(RETS).score(SOURCE)
    assert (score.value, score.explanation) == (0.5, "1 of 2 calls were skipped: Skipped: a stone")
    every = Feedback(unless_stone).on("__record__.app.retriever.search[0].rets[1]").score(SOURCE)
    assert (every.status, every.reason) == ("skipped", "Skipped: a stone")


def test_calls_without_a_value_are_left_out_and_where_all_are_there_is_no_score() -> None:
    feedback = Feedback(lambda text: Judgement.undefined("too short") if len(text) < 15 else Judgement(0.5, {}))
    assert feedback.on(RETS).score(SOURCE).explanation == "1 of 2 calls have no value: too short"
    score = feedback.on_output().score(SOURCE)
    assert (score.status, score.reason) == ("abstained", "too short")


def test_an_error_that_stops_everything_does() -> None:
    def locked(text: str) -> float:
        raise TaskError("no key", stops=True)

    with pytest.raises(TaskError, match="no key"):
        Feedback(locked).on_output().score(SOURCE)


def test_implementations_change_nothing_of_what_others_are_given() -> None:
    def spoil(contexts: list[str], text: str) -> float:
        contexts.append(text)
        return float(len(contexts))

    result = Feedback(spoil).on(f"{RETS}.collect()", RETS).evaluate(SOURCE)
    assert [call["ret"] for call in result.calls] == [3.0, 3.0]
    assert len(result.calls[0]["args"]["contexts"]) == 2


def test_arguments_that_are_no_data_are_reported_by_their_type() -> None:
    score = Feedback(lambda a: 1.0).on("x").score({"x": object()})
    assert score.columns["calls"][0]["args"] == {"a": {"$unstorable": "object"}}


def test_half_a_character_costs_no_value_and_is_escaped() -> None:
    def judge(text: str) -> tuple[dict[str, float], dict[str, Any]]:
        return {"half \ud800": 0.5}, {"reason": "half \ud801", "\ud802": ["\ud803"]}

    def answer(text: str) -> str:
        return f"{text} \ud804"

    plain = Feedback(lambda text: (1.0, {"reason": "half \ud801"}), name="plain", version="1").on_output()
    app = App(answer, feedbacks=[Feedback(judge, version="1").on_output(), plain])
    with app as recording:
        app.app("é \ud805")
    record = recording.records[0]
    assert (record["main_input"], record["main_output"]) == ("é \\ud805", "é \\ud805 \\ud804")
    evaluation = recording.evaluation
    assert evaluation is not None
    [row] = evaluation.table("judge").to_pylist()
    assert (row["status"], json.loads(row["data"])) == ("scored", {"half \\ud800": 0.5})
    [call] = json.loads(row["calls"])
    assert call["meta"] == {"reason": "half \\ud801", "\\ud802": ["\\ud803"]}
    assert evaluation.table("plain").select(["value", "explanation"]).to_pylist() == [
        {"value": 1.0, "explanation": "half \\ud801"}
    ]


def test_an_async_implementation_is_awaited() -> None:
    async def later(text: str) -> float:
        await asyncio.sleep(0)
        return no_stone(text)

    feedback = Feedback(later, on_error="leave_out").on(RETS)
    assert feedback.is_async
    score = asyncio.run(feedback.score(SOURCE))
    assert (score.value, score.explanation) == (1.0, "left out: 1 of 2 calls failed: ValueError: no stones")
    assert asyncio.run(feedback.evaluate_async(SOURCE)).value == 1.0
    with pytest.raises(SpecError, match="await evaluate_async"):
        feedback.evaluate(SOURCE)


# ---------------------------------------------------------------- stored


@pytest.mark.parametrize(
    "feedback",
    [
        Feedback(pair, name="n", higher_is_better=False, if_exists="__app__").on_input_output().aggregate(worst),
        Feedback(Weighed(0.5).weigh, if_missing="warn", on_error="leave_out").on_output().aggregate(np.max),
        Feedback(len, version="2").on("__record__.app['a key'].'b.c'[1:][-1]").aggregate(statistics.median, "zip"),
    ],
)
def test_what_is_stored_is_the_same_when_it_is_read(feedback: Feedback) -> None:
    stored = json.loads(json.dumps(feedback.to_json()))
    again = Feedback.from_json(stored, modules=[__name__])
    assert again.to_json() == stored
    assert again.identify() == feedback.identify()
    assert (again.name, again.higher_is_better) == (feedback.name, feedback.higher_is_better)


def test_objects_are_stored_by_what_they_were_made_with() -> None:
    stored = Feedback(Weighed(0.5).weigh).on_output().to_json()["implementation"]
    assert stored == {"class": f"{__name__}:Weighed", "parameters": {"weight": 0.5}, "method": "weigh"}


class Keyed(Provider):
    def __init__(self, api_key: str) -> None:
        self.api_key = api_key

    def ask(self, text: str) -> float:
        return 1.0


class Forgetful(Provider):
    def __init__(self, size: int) -> None:
        self.length = size

    def ask(self, text: str) -> float:
        return 1.0


class Bare:
    def ask(self, text: str) -> float:
        return 1.0


class Touching:
    """Overwrites a file when it is made."""

    def __init__(self, path: str, say: float = 0.0) -> None:
        Path(path).write_text("overwritten")

    def ask(self, text: str) -> float:
        return 1.0


class TouchingProvider(Touching, Provider):
    """The same as a provider."""


class Holding(Weighed):
    def __init__(self, weight: Any) -> None:
        self.weight = weight


@pytest.mark.parametrize(
    ("code", "reported"),
    [
        (lambda text: 1.0, "implementation: a lambda cannot be stored"),
        (Keyed("secret").ask, "cannot be stored with its api_key"),
        (Forgetful(1).ask, "has no attribute 'size'"),
        (Holding(object()).weigh, "Holding cannot be stored: $.weight: an object is not data"),
        (Bare().ask, "Bare cannot be stored: it is not a provider; derive it from evaluand.Provider"),
        (Touching, "Touching is a class, which cannot be stored"),
        (json.loads, "call json.loads from your own function"),
    ],
)
def test_what_cannot_be_imported_again_is_refused_when_it_is_stored(code: Any, reported: str) -> None:
    with pytest.raises(SpecError) as raised:
        Feedback(code).on_output().to_json()
    assert reported in str(raised.value)
    assert "secret" not in str(raised.value)


def test_an_aggregate_that_cannot_be_imported_is_refused_too() -> None:
    with pytest.raises(SpecError, match="aggregate: a lambda"):
        Feedback(length).on_output().aggregate(lambda values: 1.0).to_json()


@pytest.mark.parametrize(
    ("reference", "reported"),
    [
        ({"function": "os:system"}, "only your own modules"),
        ({"function": "builtins:eval"}, "only your own modules"),
        ({"function": "numpy:os.system"}, "may not be imported"),
        ({"function": "numpy:save"}, r"may not be imported; allow it by name: modules=\['numpy'\]"),
        ({"function": "evaluand.core.files.paths:os.remove"}, "may not be imported"),
        ({"function": "evaluand.evaluation.feedback.references:referred"}, "may not be imported"),
        ({"function": "evaluand.feedback.stored:referred"}, "may not be imported"),
        ({"function": "evaluand.evaluation.feedback.feedback:inspect.getsource"}, "may not be imported"),
        ({"function": "evaluand.evaluation.providers.local:Local.identify"}, "may not be imported"),
        ({"class": "evaluand.evaluation.providers.english:_English", "method": "identify"}, "may not be imported"),
        ({"function": f"{__name__}:json.loads"}, f"is not a function or class of {__name__}"),
        ({"function": f"{__name__}:loads"}, f"is not a function or class of {__name__}"),
        ({"function": f"{__name__}:sys.modules.get"}, f"is not a function or class of {__name__}"),
        ({"function": f"{__name__}:length.__call__"}, "write it as module:name"),
        ({"function": f"{__name__}:Bare"}, "is a class, not a function"),
        ({"function": "not_imported_yet:x"}, "may not be imported"),
        ({"function": "__main__:x"}, "may not be imported"),
        ({"function": "numpy:nan"}, "may not be imported"),
        ({"function": "no code"}, "write it as module:name"),
        ({"function": 5}, "write it as module:name"),
        ({"class": f"{__name__}:length"}, "is not a provider; only providers can be constructed"),
        ({"class": f"{__name__}:Bare", "method": "ask"}, "is not a provider; only providers can be constructed"),
        ({"class": f"{__name__}:Weighed", "parameters": {"wait": 1}, "method": "weigh"}, "cannot be constructed"),
        ({"class": f"{__name__}:Weighed", "parameters": 5, "method": "weigh"}, "cannot be constructed"),
        ({"class": f"{__name__}:Weighed", "parameters": {"weight": 1}, "method": "__init__"}, "has no method"),
        ({"class": f"{__name__}:Weighed", "parameters": {"weight": 1}, "method": 5}, "has no method 5"),
        ("numpy:max", "names no code"),
    ],
)
def test_code_is_only_read_from_where_it_may_be(reference: Any, reported: str) -> None:
    stored = Feedback(length).on_output().to_json() | {"implementation": reference}
    with pytest.raises(SpecError, match=reported):
        Feedback.from_json(stored, modules=[__name__])


@pytest.mark.slow
def test_every_judge_of_evaluand_can_be_read_without_permission() -> None:
    packages = (evaluand.evaluation.providers, evaluand.interop.trulens)
    for found in [
        one for package in packages for one in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
    ]:
        importlib.import_module(found.name)
    judges = {kind for kind in _subclasses(Provider) if kind.__module__.startswith(tuple(p.__name__ for p in packages))}
    listed = {f"{judge.__module__}:{judge.__qualname__}" for judge in judges if not judge.__name__.startswith("_")}
    listed.add("evaluand.interop.trulens.providers:HuggingFace")  # another name of a class
    asking = {name for name in listed if name in _SERVICES}  # they send what they judge, so they need permission
    unstored = {f"evaluand.interop.trulens.{name}" for name in ("provider:Provider", "moderation:Moderation")}
    unstored.add("evaluand.interop.trulens.models:Langchain")  # it holds an object
    assert asking == _SERVICES
    assert listed - asking - unstored == _IMPLEMENTATIONS - _REFERENCES
    for name in asking:
        with pytest.raises(SpecError, match="may not be imported; allow it by name"):
            referred({"class": name, "method": "identify", "parameters": {}})
    for name in listed - asking - unstored:
        assert referred({"class": name, "method": "identify", "parameters": _needed(name)}).likeness.__self__


def _subclasses(kind: type) -> set[type]:
    return {kind}.union(*map(_subclasses, kind.__subclasses__()))


def _needed(name: str) -> dict[str, Any]:
    needed = {
        "GroundTruth": "ground_truth",
        "GroundTruthAgreement": "ground_truth",
        "GroundTruthAggregator": "true_labels",
    }
    return {needed[kind]: None} if (kind := name.partition(":")[2]) in needed else {}


def test_code_of_ones_own_is_only_read_where_it_is_allowed_by_name() -> None:
    stored = Feedback(length).on_output().to_json()
    with pytest.raises(SpecError, match=f"allow it by name: modules=\\['{__name__}'\\]"):
        Feedback.from_json(stored)
    with pytest.raises(SpecError, match="modules is a list of names"):
        Feedback.from_json(stored, modules=__name__)
    assert Feedback.from_json(stored, modules=[__name__]).implementation is length


@pytest.mark.parametrize(
    ("changes", "modules"),
    [
        ({"implementation": {"class": "numpy:memmap", "parameters": {"filename": "PATH", "mode": "w+"}}}, ["numpy"]),
        ({"implementation": {"class": f"{__name__}:Touching", "parameters": {"path": "PATH"}}}, [__name__]),
        ({}, []),
        ({"selectors": {"txt": "__record__.main_output"}}, [__name__]),
        ({"selectors": {"text": "a["}}, [__name__]),
        ({"aggregate": {"function": "os:remove"}}, [__name__]),
        ({"if_missing": "sometimes"}, [__name__]),
        ({"name": 5}, [__name__]),
    ],
)
def test_nothing_is_made_of_a_definition_of_which_anything_is_wrong(
    tmp_path: Path, changes: dict[str, Any], modules: list[str]
) -> None:
    precious = tmp_path / "precious.txt"
    precious.write_text("precious")
    reference = {"class": f"{__name__}:TouchingProvider", "parameters": {"path": str(precious)}, "method": "ask"}
    stored = Feedback(length).on_output().to_json() | {"implementation": reference}
    stored |= {"aggregate": {"function": "builtins:max"}, "identity": None}
    text = json.dumps(stored | changes).replace("PATH", str(precious))
    for read in (Feedback.from_json, TruLens.model_validate):
        with pytest.raises(SpecError):
            read(json.loads(text), modules=modules)
    assert precious.read_text() == "precious"
    Feedback.from_json(stored, modules=[__name__])
    assert precious.read_text() == "overwritten"


@pytest.mark.parametrize(
    ("key", "wrong", "reported"),
    [
        ("selectors", 5, "selectors of a feedback are the integer 5; give a text for each argument"),
        ("selectors", {"text": 5}, "the integer 5 is not a selector"),
        ("selectors", {5: "__record__"}, "length has no argument '5'"),
        ("if_exists", 5, "the integer 5 is not a selector"),
        ("name", 5, "name is the integer 5; give a text"),
        ("version", 5, "version is the integer 5; give a text"),
        ("higher_is_better", "no", "higher_is_better is the text 'no'; give True, False or None"),
        ("combinations", [], "combinations is a list"),
        ("implementation", 5, "names no code"),
        ("aggregate", None, "names no code"),
        ("kind", "judge", "is of the kind 'judge', not 'feedback'"),
        ("more", 1, "this is not a stored feedback"),
    ],
)
def test_a_definition_with_a_part_of_another_type_is_refused_in_a_sentence(key: Any, wrong: Any, reported: str) -> None:
    stored = Feedback(length).on_output().to_json() | {key: wrong}
    with pytest.raises(SpecError) as raised:
        Feedback.from_json(stored, modules=[__name__])
    assert reported in str(raised.value)


def test_modules_that_are_allowed_are_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "judging_apart.py").write_text("def short(text):\n    return float(len(text) < 20)\n")
    monkeypatch.syspath_prepend(tmp_path)
    stored = Feedback(length).on_output().to_json() | {"implementation": {"function": "judging_apart:short"}}
    stored |= {"selectors": {"text": "__record__.main_output"}, "identity": None}
    with pytest.raises(SpecError, match="may not be imported"):
        Feedback.from_json(stored, modules=["judging"])
    assert value(Feedback.from_json(stored, modules=["judging_apart"])) == 1.0
    del sys.modules["judging_apart"]


def test_data_that_are_no_feedback_are_refused() -> None:
    for data in ({"kind": "feedback"}, 5, None):
        with pytest.raises(SpecError, match="this is not a stored feedback"):
            Feedback.from_json(data)  # type: ignore[arg-type]


# ---------------------------------------------------------------- providers


def test_a_method_of_a_provider_is_identified_and_stored_by_the_provider() -> None:
    feedback = Feedback(Measured(2).fits).on_output()
    assert feedback.identify().spec["implementation"] == Measured(2).identify("fits").spec
    assert feedback.identify() != Feedback(Measured(3).fits).on_output().identify()
    assert reference_of(feedback.implementation) == {
        "class": f"{__name__}:Measured",
        "parameters": {"size": 2},
        "method": "fits",
    }
    assert Feedback.from_json(feedback.to_json(), modules=[__name__]).identify() == feedback.identify()


# ---------------------------------------------------------------- stored runs


def answer(question: str) -> str:
    for k in (1, 2):
        with span("retriever.search", input={"query": question, "k": k}) as search:
            search.output = [f"{question} {n}" for n in range(k)]
    return question.upper()


DATA = Dataset.from_rows(
    [{"input": "a", "expected": "A", "g": "x"}, {"input": "bb", "expected": "B", "g": "y"}, {"input": "ccc", "g": "y"}],
    attributes=["g"],
)
ON_CONTEXTS = Feedback(pair).on_input().on(RETS)


def evaluated(run: Run, **options: Any) -> Evaluation:
    scorers = {"contexts": ON_CONTEXTS, "expected": Feedback(length, if_missing="ignore").on("__example__.expected")}
    return Evaluator(**options).evaluate(run, scorers, fresh=True)


def test_a_stored_run_of_any_task_is_graded_by_what_was_traced() -> None:
    evaluation = evaluated(Runner().run(answer, DATA))
    table = evaluation.table("contexts").to_pylist()
    assert [row["value"] for row in table] == [103.0, 204.0, 305.0]
    assert json.loads(table[0]["calls"])[1] == {"args": {"a": "a", "b": "a 0"}, "ret": 103.0}
    assert [row["status"] for row in evaluation.table("expected").to_pylist()] == ["scored", "scored", "skipped"]


def test_the_same_comes_out_whoever_makes_the_calls() -> None:
    run = Runner().run(answer, DATA)
    ways: list[dict[str, Any]] = [{}, {"policy": Policy(concurrency=1)}, {"engine": ProcessEngine(2)}]
    digests = {evaluated(run, **way).digest for way in ways}
    assert len(digests) == 1


def test_the_record_of_a_row_has_its_app_example_and_times() -> None:
    begun = time.monotonic()
    run = Runner().run(answer, DATA, replications=2)
    lasted = time.monotonic() - begun
    parts = {
        "k": Feedback(lambda k: k).on("__record__.app.retriever.search[1].args.k"),
        "latency": Feedback(lambda s: s).on("__record__.perf.latency"),
        "id": Feedback(lambda id: float(id in ("2", "2/1"))).on("__record__.record_id"),
        "group": Feedback(lambda g: float(g == "y")).on("__example__.attributes.g"),
        "last": Feedback(lambda last: float(last.isupper())).on("__record__.calls[-1].rets"),
    }
    evaluation = Evaluator().evaluate(run, parts)
    said = {name: evaluation.table(name)["value"].to_pylist() for name in parts}
    assert said["k"] == [2.0] * 6
    assert all(0 <= seconds <= lasted for seconds in said["latency"])
    assert said["id"] == [0, 0, 0, 0, 1, 1]
    assert said["group"] == [0, 0, 1, 1, 1, 1]
    assert said["last"] == [1.0] * 6


def test_a_row_is_not_graded_again_where_nothing_it_could_see_is_another() -> None:
    store = MemoryStore()
    first = Runner(store).run(answer, DATA)
    Evaluator().evaluate(first, {"contexts": ON_CONTEXTS})
    again = Runner(store).run(answer, DATA, fresh=True)
    receipt = Evaluator().evaluate(again, {"contexts": ON_CONTEXTS}).receipt
    assert receipt is not None
    assert (receipt.called, receipt.reused) == (0, 3)


def test_runs_that_answered_the_same_in_other_ways_are_graded_apart() -> None:
    store = MemoryStore()
    found = [["one"], ["one", "three"]]

    def searching(question: str) -> str:
        with span("retriever.search") as search:
            search.output = found[0]
        return "answer"

    feedback = Feedback(length).on(RETS)
    runs = []
    for contexts in found:
        found[0] = contexts
        runs.append(Runner(store).run(searching, Dataset.from_rows([{"input": "q"}]), fresh=True))
    assert runs[0].digest == runs[1].digest
    values = [Evaluator().evaluate(run, {"n": feedback}).table("n")["value"].to_pylist() for run in runs]
    assert values == [[3.0], [4.0]]


def test_times_are_seen_only_where_a_selector_can_reach_them() -> None:
    store = MemoryStore()
    timed = Feedback(lambda calls: float(len(calls))).on("__record__.calls[:].collect()")
    plain = Feedback(lambda rets: 1.0).on("__record__.calls[:].rets.collect()")
    assert (timed.sees_times, plain.sees_times) == (True, False)
    for attempt in range(2):
        run = Runner(store).run(answer, DATA, fresh=True)
        receipt = Evaluator().evaluate(run, {"timed": timed, "plain": plain}).receipt
        assert receipt is not None
        assert receipt.reused == (3 if attempt else 0)


@pytest.mark.parametrize(
    ("text", "reaches"),
    [
        ("__record__.main_input", False),
        ("__record__.main_output.perf", False),
        ("__record__.cost.n_tokens", False),
        ("__record__", True),
        ("__record__.ts", True),
        ("__record__.perf.latency", True),
        ("__record__.record_id", True),
        ("__record__.calls[-1].args.perf", False),
        ("__record__.calls[-1].perf", True),
        ("__record__.calls", True),
        ("__record__.app.a.b", True),
        ("__record__.app.a.b.rets[:]", False),
        ("__record__.app.a[0].b[:].args.x", False),
        ("__record__.app.args", True),
        ("__record__['app','perf']", True),
        ("$.__record__..rets", True),
        ("__example__.expected", False),
        ("__example__.id", True),
        ("__example__", True),
        ("__app__.app.model", False),
        ("$", True),
        ("extra", True),
    ],
)
def test_which_selectors_can_reach_times(text: str, reaches: bool) -> None:
    assert may_see_times(Selector(text)) == reaches


def test_what_may_pass_is_tried_again_and_what_stays_keeps_the_calls() -> None:
    asked: list[str] = []

    def busy(text: str) -> float:
        asked.append(text)
        if len(asked) < 3 or text == "CCC":
            raise TransientError("busy")
        return 1.0

    run = Runner().run(answer, DATA)
    policy = Policy(retries=2, backoff=0, concurrency=1)
    evaluation = Evaluator(policy=policy).evaluate(run, {"busy": Feedback(busy, version="1").on_output()})
    rows = evaluation.table("busy").to_pylist()
    assert [row["status"] for row in rows] == ["scored", "scored", "failed"]
    assert rows[2]["reason"] == "scorer: TransientError: busy"
    assert json.loads(rows[2]["calls"])[0]["args"] == {"text": "CCC"}
    assert asked == ["A", "A", "A", "BB", "CCC", "CCC", "CCC"]


def test_a_function_may_ask_for_the_source_itself() -> None:
    def searches(source: Any) -> int:
        return len(source["__record__"]["app"]["retriever"]["search"])

    evaluation = Evaluator().evaluate(Runner().run(answer, DATA), {"n": searches})
    assert evaluation.table("n")["value"].to_pylist() == [2.0, 2.0, 2.0]


def test_scores_of_feedbacks_are_summarised_by_groups() -> None:
    evaluation = evaluated(Runner().run(answer, DATA))
    rows = Aggregator().aggregate([evaluation], [Measure("contexts", Mean(), (("g",),))]).table().to_pylist()
    assert {dict(row["by"]).get("g"): row["value"] for row in rows} == {None: 204.0, "x": 103.0, "y": 254.5}


def test_two_apps_are_compared_by_feedbacks() -> None:
    store = MemoryStore()

    def silent(question: str) -> str:
        with span("retriever.search") as search:
            search.output = [""]
        return question

    evaluations = [
        Evaluator().evaluate(Runner(store).run(task, DATA), {"contexts": ON_CONTEXTS}) for task in (answer, silent)
    ]
    [row] = compare(*evaluations, metrics="mean").pairs
    assert row["difference"] == pytest.approx(200.0 - 204.0)


def test_a_dataset_of_which_no_example_has_what_is_selected_is_refused() -> None:
    check_gradable(Feedback(length).on("__example__.expected"), DATA, {})
    check_gradable(Feedback(length, if_missing="ignore").on("__example__.metadata.x"), DATA, {})
    with pytest.raises(SpecError, match=r"no example can be graded: text: __example__.attributes.h: .* has no 'h'"):
        check_gradable(Feedback(length).on("__example__.attributes.h"), DATA, {})


# ---------------------------------------------------------------- experiments


def test_the_kind_of_experiment_files_is_the_feedback_in_all_that_is_asked_of_it() -> None:
    kind = FeedbackKind(implementation=length, on="output", name="letters", higher_is_better=False, aggregate="median")
    feedback = Feedback(length, name="letters", higher_is_better=False, aggregate=statistics.median).on_output()
    assert kind.scorer == feedback
    assert kind.to_json() == feedback.to_json()
    assert kind.identify() == feedback.identify()
    unnamed = FeedbackKind(implementation=Measured(2).fits, on="output")
    assert (unnamed.name, unnamed.higher_is_better) == ("fits", None)
    with pytest.raises(SpecError, match="__record__ has no 'outptu'"):
        FeedbackKind(implementation=length, on=["__record__.outptu"]).check_app(STRUCTURE)


@pytest.mark.parametrize("name", AGGREGATES)
def test_every_aggregate_that_has_a_name_can_be_stored_and_read(name: str) -> None:
    kind = FeedbackKind(implementation=length, on=[RETS], aggregate=name)
    again = Feedback.from_json(kind.to_json(), modules=[__name__])
    assert math.isfinite(value(again))
    assert again.identify() == kind.identify()


CODE = """
from evaluand.trace import span

def one(question):
    with span("search", input=question) as found:
        found.output = [question * 3, ""]
    return question

def two(question):
    with span("search", input=question) as found:
        found.output = [question]
    return question

def share(context, question="-"):
    return context.count(question) / 3, {"reason": "counted"}

def worst(values):
    return min(values)
"""

FILE = """
name: searching
dataset: {path: rows.jsonl, input: q, attributes: [site]}
tasks:
  one: {function: "code_of_it.py:one"}
  two: {function: "code_of_it.py:two"}
scorers:
  contexts:
    kind: feedback
    implementation: code_of_it.py:share
    on: {context: "__record__.app.search.rets[:]", question: __record__.main_input}
    aggregate: AGGREGATE
  short: {kind: feedback, implementation: "builtins:len", on: output}
metrics:
  - {kind: mean, scorer: contexts, range: [0, 1], by: site, disparities: difference}
  - {kind: mean, scorer: short}
tradeoffs:
  - {name: found for all, objectives: [mean(contexts), mean(contexts) difference by site]}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "code_of_it.py").write_text(CODE)
    rows = [{"q": "ab"[i % 2], "site": "xy"[i // 2]} for i in range(4)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def ran(folder: Path, text: str) -> dict[str, Any]:
    (folder / "experiment.yaml").write_text(text)
    runner = CliRunner(env={"COLUMNS": "160"})
    for arguments in (["run", "experiment.yaml", "--report"], ["show", "searching", "--json"]):
        result = runner.invoke(main, [*arguments, "--store", "store"])
        assert result.exit_code == 0, result.output
    reported: dict[str, Any] = json.loads(result.stdout)
    return reported


@thinned(("aggregate", "one"), [("mean", 0.5), ("max", 1.0), ("code_of_it.py:worst", 0.0), ("fmean", 0.5)], every=2)
def test_an_experiment_grades_by_feedbacks_and_trades_them_off(folder: Path, aggregate: str, one: float) -> None:
    [trade] = ran(folder, FILE.replace("AGGREGATE", aggregate))["tradeoffs"]
    points = {point["model"]: point["values"]["mean(contexts)"]["value"] for point in trade["points"]}
    assert points == {"one": one, "two": pytest.approx(1 / 3)}


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        (FILE.replace("context: ", "contex: ").replace("AGGREGATE", "mean"), "share has no argument 'contex'"),
        (
            FILE.replace("AGGREGATE", "best"),
            "aggregate is the text 'best'; give one of mean, min, max, sum, len, median, ",
        ),
        (FILE.replace("AGGREGATE", "mean").replace("on: output", "on: outputs"), "(did you mean 'output'?)"),
        (FILE.replace("AGGREGATE", "mean").replace("py:share", "py:shares"), "has no 'shares' (did you mean 'share'?)"),
        (FILE.replace("AGGREGATE", "mean").replace("on: output", 'on: {obj: "a["}'), "is not a path"),
    ],
)
def test_what_is_wrong_in_a_file_is_reported_before_anything_is_called(folder: Path, text: str, reported: str) -> None:
    (folder / "experiment.yaml").write_text(text)
    result = CliRunner().invoke(main, ["run", "experiment.yaml", "--store", "store"])
    assert result.exit_code == 1
    assert reported in " ".join(result.output.split())
    assert not (folder / "store" / "runs").exists()


def test_outputs_seen_through_a_view_are_none_that_a_feedback_selects_from(folder: Path) -> None:
    view = FILE.replace("AGGREGATE", "mean").replace(
        "on: output}", "on: output, view: [{kind: Rename, configuration: {a: b}}]}"
    )
    (folder / "experiment.yaml").write_text(view)
    result = CliRunner().invoke(main, ["run", "experiment.yaml", "--store", "store"])
    assert "selects from what was recorded" in " ".join(result.output.split())
