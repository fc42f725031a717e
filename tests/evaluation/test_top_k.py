"""Is the right answer among the first k: of a ranking in one response, or of several responses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from sklearn.metrics import top_k_accuracy_score

from evaluand import Accuracy, Aggregator, Candidates, Dataset, Evaluator, Measure, Runner, SpecError, evaluate, task
from evaluand.aggregation.groups import MetricRow, summarise
from evaluand.core.errors import DataError
from evaluand.evaluation.scorers.exact_match import TopK
from evaluand.metrics.accuracy import TopK as TopKMetric

LABELS = ("ant", "bee", "cow", "dog")


# The scorer


@pytest.mark.parametrize(("k", "value"), [(1, 0.0), (2, 1.0), (3, 1.0)])
def test_a_label_is_right_among_the_first_k(k: int, value: float) -> None:
    assert TopK(k=k).score(["cow", "bee", "ant"], "bee").value == value
    assert TopK(k=k).score({"ant": 0.1, "bee": 0.3, "cow": 0.6}, "bee").value == value


def test_a_label_that_is_not_in_the_ranking_is_wrong() -> None:
    assert TopK(k=9).score(["cow"], "bee").value == 0.0


def test_equal_scores_put_no_label_first() -> None:
    same = dict.fromkeys(LABELS, 0.25)
    assert [TopK(k=k).score(same, "ant").value for k in (1, 3, 4)] == [0.0, 0.0, 1.0]
    scores = {"ant": 0.6, "bee": 0.2, "cow": 0.2}
    assert [TopK(k=2).score(scores, label).value for label in ("ant", "bee", "cow")] == [1.0, 0.0, 0.0]


def test_a_label_given_twice_takes_two_places() -> None:
    assert TopK(k=2).score(["ant", "ant", "bee"], "bee").value == 0.0


def test_a_ranking_stands_under_a_key_of_the_output() -> None:
    output = {"prediction": "ant", "confidence": 0.6, "probabilities": {"ant": 0.6, "bee": 0.4}}
    assert TopK(k=2, ranking_key="probabilities").score(output, "bee").value == 1.0
    assert TopK(k=2, ranking_key="probabilities").score(["ant", "bee"], "bee").value == 1.0
    with pytest.raises(DataError, match="the output has 'labels' and not 'probabilities'"):
        TopK(k=2, ranking_key="probabilities").score({"labels": []}, "bee")


def test_labels_compare_as_those_of_exact_match() -> None:
    assert TopK(k=2, normalise=("case",)).score(["Ant", "Bee"], "bee").value == 1.0
    assert TopK(k=2, any_of=True).score(["ant", "bee"], ["cow", "bee"]).value == 1.0
    assert TopK(k=2).score([3, 7], 7).value == 1.0
    with pytest.raises(DataError, match="the output is the text '7' and the expected answer the integer 7"):
        TopK(k=2).score({"3": 0.2, "7": 0.8}, 7)


def test_without_a_ranking_or_an_expected_label_there_is_nothing_to_grade() -> None:
    for output, expected in ((None, "ant"), ([], "ant"), ({}, "ant"), (["ant"], None)):
        assert TopK(k=2).score(output, expected).status == "abstained"
    assert TopK(k=2, any_of=True).score(["ant"], []).status == "abstained"


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("ant", "the ranking is the text 'ant', not a list of labels .* the metric top_k"),
        ({"ant": "high"}, "the score of 'ant' is the text 'high', not a number"),
        ({"ant": float("nan")}, "the score of 'ant' is the number nan, not a number"),
        ({"ant": True}, "the score of 'ant' is true, not a number"),
    ],
)
def test_what_is_no_ranking_is_named(output: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        TopK(k=1).score(output, "ant")


@pytest.mark.parametrize("k", [0, -1, 2.0, True, "2"])
def test_k_is_a_whole_number_of_at_least_one(k: Any) -> None:
    with pytest.raises(SpecError, match="an integer of at least 1"):
        TopK(k=k)
    with pytest.raises(SpecError, match="an integer of at least 1"):
        TopKMetric(k=k)


@given(seed=st.integers(0, 99), k=st.integers(1, 3))
def test_the_share_is_that_of_scikit_learn_where_no_scores_are_equal(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    truth, scores = rng.integers(0, 4, 30), rng.permuted(np.tile([0.4, 0.3, 0.2, 0.1], (30, 1)), axis=1)
    graded = [
        TopK(k=k).score(dict(zip(LABELS, row, strict=True)), LABELS[label]).value
        for label, row in zip(truth.tolist(), scores.tolist(), strict=True)
    ]
    assert np.mean(graded) == pytest.approx(top_k_accuracy_score(truth, scores, k=k, labels=range(4)))


# The metric


def one(values: list[list[float | None]], metric: TopKMetric) -> MetricRow:
    """Rows of grades, one for each answer; None is a failed grade."""
    keys = [(i, n, value) for i, row in enumerate(values) for n, value in enumerate(row)]
    index, response, value = zip(*keys, strict=True)
    status = ["failed" if v is None else "scored" for v in value]
    columns = {"_index_": index, "_response_index_": response, "status": status, "value": pa.array(value, pa.float64())}
    [row] = summarise([pa.table(columns)], [metric])
    return row


def test_one_right_answer_among_the_first_k_is_enough() -> None:
    grades: list[list[float | None]] = [[0, 0, 1], [0, 1], [1, 0, 0], [0]]
    assert [one(grades, TopKMetric(k=k)).value for k in (1, 2, 3, 9)] == [0.25, 0.5, 0.75, 0.75]


def test_a_failed_grade_matters_only_among_the_first_k() -> None:
    early, late = one([[None, 0], [1, 0]], TopKMetric(k=2)), one([[0, 0, None], [1, 0, 0]], TopKMetric(k=2))
    assert (early.value, early.worst, early.best) == (0.5, 0.5, 1.0)
    assert (late.value, late.worst, late.best) == (0.5, 0.5, 0.5)


def test_a_place_is_that_of_the_answer_and_not_that_among_the_grades() -> None:
    """The first answer has no grade; the second is then still the second."""
    assert one([[None, 1], [0, 0]], TopKMetric(k=1)).value == 0.0


def test_the_same_grades_serve_every_k() -> None:
    @task(version="1")
    def guesses(text: str) -> Candidates | None:
        if text == "crash":
            raise RuntimeError("out of memory")
        return Candidates(["cow", "bee", "ant"])

    data = Dataset.from_rows([{"input": label, "expected": label} for label in (*LABELS, "crash")])
    evaluation = Evaluator().evaluate(Runner().run(guesses, data), {"same": "exact_match"})
    measures = [Measure("same", TopKMetric(k=k)) for k in (1, 2, 3)]
    rows = Aggregator().aggregate([evaluation], measures).table().to_pylist()
    assert [(row["value"], row["worst"], row["best"], row["n"]) for row in rows] == [
        (1 / 4, 1 / 5, 2 / 5, 5),
        (2 / 4, 2 / 5, 3 / 5, 5),
        (3 / 4, 3 / 5, 4 / 5, 5),
    ]


def test_a_table_without_several_answers_has_one_for_each_row() -> None:
    row = evaluate(["a", "b"], ["a", None], metrics=[TopKMetric(k=5)])["top_k"]
    assert (row.value, row.worst, row.best) == (1.0, 0.5, 1.0)


@pytest.mark.parametrize(("k", "value"), [(1, 1 / 3), (2, 2 / 3), (3, 1.0)])
def test_the_first_k_of_classes_are_those_with_the_highest_scores(k: int, value: float) -> None:
    scores = {"a": [0.5, 0.6, 0.2], "b": [0.4, 0.3, 0.7], "c": [0.1, 0.1, 0.1]}
    found = evaluate(["a", "b", "c"], ["a", "a", "b"], scores=scores, metrics=[TopKMetric(k=k)])
    assert found["top_k"].value == pytest.approx(value)


def test_the_first_k_of_classes_are_those_of_scikit_learn() -> None:
    from sklearn.metrics import top_k_accuracy_score

    rng = np.random.default_rng(7)
    truth, scores = rng.integers(0, 5, 200), rng.random((200, 5))
    for k in (2, 3):
        mine = evaluate(truth, scores=scores, classes=[*range(5)], metrics=[TopKMetric(k=k)])["top_k"]
        assert mine.value == pytest.approx(top_k_accuracy_score(truth, scores, k=k))


@pytest.mark.parametrize("names", ["abc", "cba"])
def test_equal_scores_have_no_order(names: str) -> None:
    scores = dict(zip(names, ([0.4, 0.4], [0.4, 0.4], [0.2, 0.4]), strict=True))
    truth = [names[0], names[2]]
    assert evaluate(truth, truth, scores=scores, metrics=[TopKMetric(k=2)])["top_k"].value == 0.5


def test_a_row_without_scores_abstains_wherever_it_stands() -> None:
    scores = {"a": [0.5, None, 0.2], "b": [0.4, None, 0.7], "c": [0.1, None, 0.1]}
    row = evaluate(["a", "b", "c"], ["a", "b", "b"], scores=scores, metrics=[TopKMetric(k=2)])["top_k"]
    assert (row.value, row.n_scored, row.n_abstained) == (0.5, 2, 1)


def test_a_ranking_as_one_response_gives_the_same_share() -> None:
    rankings = {"x": ["ant", "bee"], "y": ["bee", "cow"], "z": ["dog", "ant"]}
    data = Dataset.from_rows([{"input": name, "expected": "ant"} for name in rankings])
    whole = Evaluator().evaluate(Runner().run(task(version="1")(rankings.get), data), {"first": TopK(k=2)})
    [row] = Aggregator().aggregate([whole], [Measure("first", Accuracy())]).table().to_pylist()
    assert row["value"] == pytest.approx(2 / 3)
