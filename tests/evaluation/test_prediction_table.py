"""The table of predictions built from columns, against the scorer `prediction` row by row."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given, reject
from support.prediction_columns import columns

from evaluand.core import identity
from evaluand.core.errors import DataError, SpecError
from evaluand.evaluation.evaluator import Evaluator
from evaluand.evaluation.prediction_table import PredictionColumns
from evaluand.evaluation.scorer import Score, as_scorer
from evaluand.predictions import evaluate
from evaluand.store.store import MemoryStore


def rows_of_scorer(made: PredictionColumns) -> list[Score | Exception]:
    """What the scorer says of each row alone."""
    truths = [None if text is None else text for text in made.truth.to_pylist()]
    if made.type == "json":
        truths = [None if text is None else identity.decode(text) for text in truths]
    weights = [None] * len(truths) if made.weight is None else made.weight.to_pylist()
    scores: list[Score | Exception] = []
    for output, truth, weight in zip(made.outputs(), truths, weights, strict=True):
        try:
            scores.append(made.scorer.score(output, truth, weight))  # type: ignore[call-arg]
        except DataError as error:
            scores.append(error)
    return scores


@example(PredictionColumns.build([math.inf, 1.0], [None, 2.0], type="number"))
@given(columns())
def test_the_table_is_what_the_scorer_says_row_by_row(made: PredictionColumns) -> None:
    for row, score in zip(made.table().to_pylist(), rows_of_scorer(made), strict=True):
        if isinstance(score, Exception):
            assert row["status"] == "failed"
            continue
        assert row["status"] == score.status
        if score.status != "scored":
            continue
        assert row.get("value") == score.value
        expected = dict(score.columns or {})
        for name in ("truth", "prediction", "confidence_of"):
            if made.type == "json" and expected[name] is not None:
                expected[name] = identity.encode(expected[name]).decode()
        if expected["scores"] is not None:
            expected["scores"] = [{"label": label, "score": score} for label, score in expected["scores"].items()]
        assert {name: row.get(name) for name in expected} == expected


@pytest.mark.filterwarnings("ignore::evaluand.evaluation.evaluator.ScorerFailed")
@given(columns())
def test_known_scores_are_stored_as_the_scorer_grades_them(made: PredictionColumns) -> None:
    metric = "mean_absolute_error" if made.type == "number" else "accuracy"
    try:
        result = evaluate(made.truth, made.prediction, metrics=metric)
    except SpecError:
        reject()  # text that reads as values that are never equal, such as [] and ""
    [saved] = result.save(MemoryStore(), "x").tasks
    spec = saved.evaluation.manifest["spec"]["scorers"]["prediction"]
    scorer = as_scorer("prediction", {"kind": "prediction", **spec["parameters"]})
    direct = Evaluator(MemoryStore()).evaluate(saved.run, {"prediction": scorer})
    assert saved.evaluation.digest == direct.digest
    assert saved.evaluation.receipt.reused == saved.evaluation.counts["prediction"].get("scored", 0)


def test_scores_need_classes() -> None:
    with pytest.raises(SpecError, match="scores need classes, but a prediction is a number"):
        PredictionColumns.build([0.5], [0.7], scores={"a": [0.1]})


def test_infinite_scores_are_refused_with_their_rows() -> None:
    with pytest.raises(DataError, match="score of 'a', row 1: is infinite; give a finite number"):
        PredictionColumns.build(["a", "b"], ["a", "a"], scores={"a": [0.1, math.inf]})
