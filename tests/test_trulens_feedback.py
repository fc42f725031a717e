"""`Feedback` against recorded evaluations of TruLens, where these lie beside the project, and what it does better.

What TruLens does wrong is expected as its documentation has it: wrong, missing and surplus arguments are refused, an
empty selection is skipped, a failing call leaves the others told, and what is stored is the same when it is read.
Messages are not compared.
"""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluand.errors import Doubt, EvaluandError, SpecError
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

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "vectors" / "trulens"
FILE = FOLDER / "feedback.json"
RECORDED = json.loads(FILE.read_text()) if FILE.exists() else {"source_data": {}, "cases": []}
REFUSED = {"fb-022", "fb-023", "fb-034", "fb-037"}
SKIPPED = {"fb-059", "fb-060", "fb-061", "fb-121"}


def implementations() -> Any:
    """The functions that were recorded, as a module that can be imported."""
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


def made(text: str) -> Any:
    names = {"Feedback": Feedback, "Select": Select, "Lens": Lens, "RC": Select.RecordCalls, "np": np}
    enums = {"C": FeedbackCombinations, "M": FeedbackOnMissingParameters}
    return eval(text, {**names, **enums, "F": implementations()})


def cases(*, stored: bool = False) -> pytest.MarkDecorator:
    chosen = [case for case in RECORDED["cases"] if (case["kind"] == "serialise") == stored]
    return pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in chosen])


def same(told: Any, recorded: Any) -> bool:
    if isinstance(recorded, dict):
        return told.keys() == recorded.keys() and all(same(told[key], recorded[key]) for key in recorded)
    if isinstance(recorded, list):
        return len(told) == len(recorded) and all(map(same, told, recorded))
    if recorded == "NaN":
        return math.isnan(told)
    return bool(told == (pytest.approx(recorded) if isinstance(recorded, float) else recorded))


def told(result: Any) -> dict[str, Any]:
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
def test_a_feedback_says_what_was_recorded(case: dict[str, Any]) -> None:
    expect, source = case["expect"], RECORDED["source_data"]
    if "build" in expect:
        with pytest.raises(EvaluandError):
            made(case["python"])
        return
    if case["id"] in REFUSED:
        with pytest.raises(SpecError):
            made(case["python"]).run(source_data=source)
        return
    feedback = made(case["python"])
    assert {name: str(lens) for name, lens in feedback.selectors.items()} == expect["selectors"]
    assert (feedback.name, feedback.higher_is_better) == (expect["name"], expect["higher_is_better"])
    assert (feedback.combinations, feedback.if_missing) == (expect["combinations"], expect["if_missing"])
    assert (feedback.if_exists and str(feedback.if_exists)) == expect["if_exists"]
    given = case["run_kwargs"] or {}
    if isinstance(expect["args"], dict):
        with pytest.raises(InvalidSelector):
            feedback.extract_selection(source_data=source)
    else:
        assert list(feedback.extract_selection(source_data=source, **given)) == expect["args"]
    with pytest.warns(Doubt) if feedback.if_missing == "warn" else nullcontext():
        result = feedback.run(source_data=source, **given)
    if case["id"] in SKIPPED:
        assert result.status is FeedbackResultStatus.SKIPPED
        assert result.reason
        return
    run = {key: value for key, value in expect["run"].items() if key != "error_last_line"}
    if run["status"] == "failed":  # where each call is told, and each that did not fail with what it said
        assert result.status is FeedbackResultStatus.FAILED
        assert result.error
        assert len(result.calls) == len(expect["args"])
        return
    assert same(told(result), run)


@cases(stored=True)
def test_a_stored_feedback_is_the_same_when_it_is_read(case: dict[str, Any]) -> None:
    feedback = made(case["python"])
    if "lambda" in case["python"]:
        with pytest.raises(SpecError, match="lambda"):
            feedback.model_dump()
        return
    stored = json.loads(json.dumps(feedback.model_dump()))
    again = Feedback.model_validate(stored)
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
