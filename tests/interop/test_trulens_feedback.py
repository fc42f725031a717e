"""`Feedback` against recorded evaluations of TruLens, if the test vectors are present, and improvements on TruLens.

Where TruLens contradicts its documentation, the tests expect what is documented: wrong, missing and surplus arguments
are refused, an empty selection is skipped, a failing call does not hide the others, and a stored feedback is read back
unchanged. Messages are not compared.
"""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.places import VECTORS_FOLDER

from evaluand import Dataset, Evaluator, Runner
from evaluand.core.errors import EvaluandError, EvaluandWarning, SpecError
from evaluand.interop.trulens import (
    Feedback,
    FeedbackCombinations,
    FeedbackOnMissingParameters,
    FeedbackResultStatus,
    InvalidSelector,
    Lens,
    Select,
    SkipEval,
)
from evaluand.trace import span

FOLDER = VECTORS_FOLDER / "trulens"
FILE = FOLDER / "feedback.json"
RECORDED = json.loads(FILE.read_text()) if FILE.exists() else {"source_data": {}, "cases": []}
REFUSED = {"fb-022", "fb-023", "fb-034", "fb-037"}
SKIPPED = {"fb-059", "fb-060", "fb-061", "fb-121"}


def implementations() -> Any:
    """The recorded functions, as an importable module."""
    name = "fbfuncs"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
        sys.modules[name].skip_odd = skip_odd  # type: ignore[attr-defined]
    return sys.modules[name]


def skip_odd(a: int) -> float:
    if a % 2:
        raise SkipEval("odd")
    return float(a)


def build(text: str) -> Any:
    names = {"Feedback": Feedback, "Select": Select, "Lens": Lens, "RC": Select.RecordCalls, "np": np}
    enums = {"C": FeedbackCombinations, "M": FeedbackOnMissingParameters}
    return eval(text, {**names, **enums, "F": implementations()})


def cases(*, stored: bool = False) -> pytest.MarkDecorator:
    chosen = [case for case in RECORDED["cases"] if (case["kind"] == "serialise") == stored]
    return pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in chosen])


def same(actual: Any, recorded: Any) -> bool:
    if isinstance(recorded, dict):
        return actual.keys() == recorded.keys() and all(same(actual[key], recorded[key]) for key in recorded)
    if isinstance(recorded, list):
        return len(actual) == len(recorded) and all(map(same, actual, recorded))
    if recorded == "NaN":
        return math.isnan(actual)
    return bool(actual == (pytest.approx(recorded) if isinstance(recorded, float) else recorded))


def result_data(result: Any) -> dict[str, Any]:
    calls = [{"args": dict(c.args), "ret": c.ret, "meta": dict(c.meta)} for c in result.calls]
    return {
        "status": result.status.value,
        "result": result.result,
        "n_calls": len(calls),
        "calls": calls,
        "multi_result": result.multi_result,
        "n_requests": result.cost.n_requests,
    }


@cases()
def test_a_feedback_returns_the_recorded_results(case: dict[str, Any]) -> None:
    expect, source = case["expect"], RECORDED["source_data"]
    if "build" in expect:
        with pytest.raises(EvaluandError):
            build(case["python"])
        return
    if case["id"] in REFUSED:
        with pytest.raises(SpecError):
            build(case["python"]).run(source_data=source)
        return
    feedback = build(case["python"])
    assert {name: str(lens) for name, lens in feedback.selectors.items()} == expect["selectors"]
    assert (feedback.name, feedback.higher_is_better) == (expect["name"], expect["higher_is_better"])
    assert (feedback.combinations, feedback.if_missing) == (expect["combinations"], expect["if_missing"])
    assert (feedback.if_exists and str(feedback.if_exists)) == expect["if_exists"]
    arguments = case["run_kwargs"] or {}
    if isinstance(expect["args"], dict):
        with pytest.raises(InvalidSelector):
            feedback.extract_selection(source_data=source)
    else:
        assert list(feedback.extract_selection(source_data=source, **arguments)) == expect["args"]
    with pytest.warns(EvaluandWarning) if feedback.if_missing == "warn" else nullcontext():
        result = feedback.run(source_data=source, **arguments)
    if case["id"] in SKIPPED:
        assert result.status is FeedbackResultStatus.SKIPPED
        assert result.reason
        return
    run = {key: value for key, value in expect["run"].items() if key != "error_last_line"}
    if run["status"] == "failed":  # every call is reported, also those that did not fail
        assert result.status is FeedbackResultStatus.FAILED
        assert result.error
        assert len(result.calls) == len(expect["args"])
        return
    assert same(result_data(result), run)


@cases(stored=True)
def test_a_stored_feedback_is_read_back_unchanged(case: dict[str, Any]) -> None:
    feedback = build(case["python"])
    if "lambda" in case["python"]:
        with pytest.raises(SpecError, match="lambda"):
            feedback.model_dump()
        return
    stored = json.loads(json.dumps(feedback.model_dump()))
    again = Feedback.model_validate(stored, modules=["fbfuncs"])
    expect = case["expect"]
    assert stored["selectors"] == expect["dumped_selectors"]
    assert again.selectors == feedback.selectors
    assert again.feedback_definition_id == feedback.feedback_definition_id
    source = RECORDED["source_data"]
    if not expect["loads"]:
        return
    assert (again.name, again.higher_is_better) == (expect["name"], expect["higher_is_better"])
    result = again.run(source_data=source)
    assert (result.status.value, result.result) == (expect["status"], pytest.approx(expect["result"]))


# Without recorded evaluations

RECORD = {"main_input": "Q", "main_output": "ANS", "app": {"search": [{"rets": [1, 2, 3]}], "none": [{"rets": []}]}}
RETS = Select.RecordCalls.search.rets[:]


def pair(a: str, b: str) -> float:
    return float(len(a) * 10 + len(b))


def parts(a: int) -> dict[str, float]:
    return {"a": float(a), "twice": 2.0 * a}


def fragile(a: int) -> float:
    if a == 2:
        raise ValueError("two")
    return float(a)


def test_selectors_without_a_name_are_bound_in_order() -> None:
    bound = Feedback(pair).on(Select.RecordInput, Select.RecordOutput)
    assert bound.run(record=RECORD).result == 13.0
    assert bound.feedback_definition_id == Feedback(pair).on_input_output().feedback_definition_id


def test_two_selections_of_one_function_are_two_definitions() -> None:
    ids = {
        feedback.feedback_definition_id for feedback in (Feedback(fragile).on_input(), Feedback(fragile).on_output())
    }
    assert len(ids) == 2


def test_a_missing_part_raises_or_skips() -> None:
    missing = Select.RecordCalls.nothing.rets
    with pytest.raises(InvalidSelector, match="has no 'nothing'"):
        Feedback(fragile).on(missing).run(record=RECORD)
    with pytest.raises(InvalidSelector):
        Feedback(fragile, if_missing="ignore").on(missing).extract_selection(record=RECORD)
    assert Feedback(fragile, if_missing="ignore").on(missing).run(record=RECORD).status.value == "skipped"
    assert Feedback(fragile).on(RETS).check_selectors(record=RECORD)
    with pytest.warns(EvaluandWarning, match="has no 'nothing'"):
        assert not Feedback(fragile).on(missing).check_selectors(record=RECORD, warning=True)


def test_skipped_calls_are_left_out() -> None:
    result = Feedback(skip_odd).on(RETS).run(record=RECORD)
    assert (result.status.value, result.result) == ("done", 2.0)
    nothing = Feedback(skip_odd).on(Select.RecordCalls.search.rets[::2]).run(record=RECORD)
    assert (nothing.status.value, nothing.result) == ("skipped", None)


def test_a_failing_call_does_not_hide_the_others() -> None:
    result = Feedback(fragile).on(RETS).run(record=RECORD)
    assert (result.status.value, result.result) == ("failed", None)
    assert [(call.ret, call.error) for call in result.calls] == [(1.0, None), (None, "ValueError: two"), (3.0, None)]
    assert Feedback(fragile, on_error="leave_out").on(RETS).run(record=RECORD).result == 2.0


def test_several_numbers_are_in_the_multi_result() -> None:
    result = Feedback(parts).on(RETS).run(record=RECORD)
    assert math.isnan(result.result)
    assert json.loads(result.multi_result or "") == {"a": 2.0, "twice": 4.0}
    assert [call.ret for call in result.calls] == [1.5, 3.0, 4.5]


def test_a_record_is_laid_out_and_objects_are_selected_from_by_attributes() -> None:
    class CallLog:
        def layout_calls_as_app(self) -> Any:
            return RECORD

    app = SimpleNamespace(app_id="a", app=SimpleNamespace(model="mm"))
    feedback = Feedback(pair).on(Select.App.app.model, Select.RecordOutput)
    assert feedback.run(app=app, record=CallLog()).result == 23.0


def test_a_result_is_dumped_as_data() -> None:
    data = Feedback(pair, name="n").on_input_output().run(record=RECORD | {"record_id": "r"}).model_dump()
    assert json.loads(json.dumps(data)) == data
    assert (data["name"], data["record_id"], data["status"], data["cost"]["n_requests"]) == ("n", "r", "done", 0)


def test_a_selector_must_be_a_lens_and_a_feedback_needs_a_function() -> None:
    with pytest.raises(ValueError, match=r"is not a lens; pass one such as Select\.RecordInput"):
        Feedback(fragile).on("__record__.main_input")
    with pytest.raises(SpecError, match="a feedback needs a function"):
        Feedback().on_input()


def test_a_feedback_is_a_scorer_of_stored_runs() -> None:
    def answer(question: str) -> str:
        with span("search") as found:
            found.output = [1, 3]
        return question

    run = Runner().run(answer, Dataset.from_rows([{"input": "q"}]))
    evaluation = Evaluator().evaluate(run, {"fragile": Feedback(fragile).on(RETS)})
    assert evaluation.table("fragile")["value"].to_pylist() == [2.0]
