"""A judgement is a pair, and computes as its value."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from evaluand import Judgement
from evaluand.core.errors import DataError, SpecError
from evaluand.evaluation.feedback import Feedback
from evaluand.interop.trulens import GroundTruthAgreement

NUMBERS = st.floats(-1e6, 1e6)
OPERATORS: tuple[Callable[[Any, Any], Any], ...] = (
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    operator.eq,
    operator.ne,
    operator.add,
    operator.sub,
    operator.mul,
)


def judged(value: float | None) -> Judgement:
    return Judgement(value, {"reason": "measured"})


@given(st.sampled_from(OPERATORS), NUMBERS, NUMBERS)
def test_a_judgement_computes_as_its_value(operate: Callable[[Any, Any], Any], one: float, other: float) -> None:
    expected = operate(one, other)
    assert operate(judged(one), other) == expected
    assert operate(one, judged(other)) == expected
    if operate not in (operator.eq, operator.ne):
        assert operate(judged(one), judged(other)) == expected


@given(st.lists(NUMBERS, min_size=1, max_size=5))
def test_judgements_are_summed_sorted_and_averaged(values: list[float]) -> None:
    judgements = [judged(value) for value in values]
    assert sum(judgements) == sum(values)
    assert [float(one) for one in sorted(judgements)] == sorted(values)
    assert float(np.mean(judgements)) == float(np.mean(values))
    assert np.array(judgements).dtype == np.float64


def test_a_judgement_is_still_a_pair() -> None:
    value, meta = judged(0.5)
    assert (value, meta) == (0.5, {"reason": "measured"})
    assert judged(0.5) == (0.5, {"reason": "measured"})
    assert judged(0.5) != judged(0.25)
    assert judged(0.5) != Judgement(0.5, {"reason": "guessed"})
    assert repr(judged(0.5)) == "Judgement(value=0.5, meta={'reason': 'measured'})"
    assert (f"{judged(0.5):.0%}", round(judged(0.26), 1), int(judged(1.0)), abs(-judged(2.0))) == ("50%", 0.3, 1, 2.0)
    assert (judged(1.0) / 4, 1 / judged(4.0)) == (0.25, 0.25)


@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge, operator.eq])
def test_what_is_undefined_is_neither_above_nor_below_nor_equal(compare: Callable[[Any, Any], Any]) -> None:
    missing = Judgement.undefined("no text")
    assert not compare(missing, 0.5)
    assert not compare(0.5, missing)
    assert not missing
    assert math.isnan(missing)


# -- rankings with scores and k of their own

CHUNKS = [{"text": "a", "expect_score": 3}, {"text": "b", "expect_score": 2}, {"text": "c", "expect_score": 1}]
TRUTH = GroundTruthAgreement([{"query": "q", "expected_response": "r", "expected_chunks": CHUNKS}], k=2)


def gain(*relevances: float) -> float:
    return sum(relevance / math.log2(place) for place, relevance in enumerate(relevances, 2))


@pytest.mark.parametrize(
    ("method", "arguments", "value"),
    [
        ("ndcg_at_k", {"k": 3}, gain(0, 2, 3) / gain(3, 2, 1)),
        ("ndcg_at_k", {"k": 3, "relevance_scores": [0.1, 0.2, 0.9]}, gain(3, 2, 0) / gain(3, 2, 1)),
        ("precision_at_k", {}, 1 / 2),
        ("precision_at_k", {"k": 1}, 0.0),
        ("precision_at_k", {"k": 1, "relevance_scores": [0.1, 0.2, 0.9]}, 1.0),
        ("recall_at_k", {"k": 3}, 2 / 3),
        ("recall_at_k", {"relevance_scores": [0.1, 0.2, 0.9], "k": 1}, 1 / 3),
        ("mrr", {}, 1 / 2),
        ("mrr", {"relevance_scores": [0.1, 0.2, 0.9]}, 1.0),
        ("ir_hit_rate", {"k": 1}, 0.0),
        ("ir_hit_rate", {}, 1.0),
    ],
)
def test_k_and_scores_of_a_call_replace_those_of_the_provider(
    method: str, arguments: dict[str, Any], value: float
) -> None:
    result = getattr(TRUTH, method)("q", ["x", "b", "a"], **arguments)
    assert result == pytest.approx(value)
    assert result > value - 0.1
    assert "relevant among 3" in result.reason


def test_there_must_be_a_score_for_each_chunk_and_a_valid_k() -> None:
    with pytest.raises(DataError, match="there are 1 scores for 2 items; give one score for each"):
        TRUTH.ndcg_at_k("q", ["a", "b"], relevance_scores=[0.5])
    with pytest.raises(SpecError, match=re.escape("k is the integer 0; give an integer of at least 1")):
        TRUTH.recall_at_k("q", ["a", "b"], k=0)


def test_a_feedback_keeps_the_details_of_a_ranking() -> None:
    source = {"__record__": {"main_input": "q", "main_output": "a", "found": ["x", "a"]}}
    recall = Feedback(TRUTH.recall_at_k).on(query="__record__.main_input", retrieved_context_chunks="__record__.found")
    result = recall.evaluate(source)
    assert result.value == pytest.approx(1 / 3)
    assert result.calls[0]["meta"]["reason"] == "1 of 3 relevant among 2, the first in place 2; looked at 2"
