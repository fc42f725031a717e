"""Rankings against what is relevant, and what truth and prediction share at the top."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import sklearn.metrics as sk
from hypothesis import given, strategies as st

from evaluand.aggregation.aggregator import Aggregator, Measure
from evaluand.aggregation.groups import MetricRow, summarise
from evaluand.comparison.pairing import why_unpairable
from evaluand.core import registry
from evaluand.core.errors import DataError, SpecError
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluator
from evaluand.evaluation.scorers.ranking import Ranking
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.rankings import (
    HitsAtK,
    MapAtK,
    MeanReciprocalRank,
    Ndcg,
    PrecisionAtK,
    PrecisionAtTopK,
    RecallAtK,
)
from evaluand.predictions.evaluating import evaluate
from evaluand.run.runner import Runner
from evaluand.store.store import MemoryStore

LISTS = pa.list_(pa.float64())


def graded(*cases: tuple[Any, Any]) -> pa.Table:
    """The table of the scorer for outputs and what was expected."""
    scores = [Ranking().score(output, expected) for output, expected in cases]
    held = {name: [(score.columns or {}).get(name) for score in scores] for name in Ranking().columns}
    types = {name: LISTS if kind == "numbers" else pa.float64() for name, kind in Ranking().columns.items()}
    columns = {name: pa.array(cells, types[name]) for name, cells in held.items()}
    return pa.table({"_index_": range(len(cases)), "status": [score.status for score in scores], **columns})


def one(shard: pa.Table, metric: Metric) -> MetricRow:
    [row] = summarise([shard], [metric])
    return row


THREE = graded((["a", "b", "c"], "a"), (["a", "b", "c"], ["c", "x"]), (["a", "b"], "x"))


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        (MeanReciprocalRank(), (1 + 1 / 3 + 0) / 3),
        (MeanReciprocalRank(absent_rank=500), (1 + 1 / 3 + 1 / 500) / 3),
        (HitsAtK(k=1), 1 / 3),
        (HitsAtK(k=3), 2 / 3),
        (RecallAtK(k=3), (1 + 1 / 2 + 0) / 3),
        (RecallAtK(k=2), 1 / 3),
        (PrecisionAtK(k=2), (1 / 2 + 0 + 0) / 3),
        (PrecisionAtK(k=10), (1 / 10 + 1 / 10 + 0) / 3),
        (MapAtK(k=3), (1 + (1 / 3) / 2 + 0) / 3),
        (MapAtK(k=1), (1 + 0 + 0) / 3),
        (Ndcg(), (1 + 0.5 / (1 + 1 / math.log2(3)) + 0) / 3),
    ],
    ids=lambda given: getattr(given, "kind", ""),
)
def test_values_are_means_over_rankings(metric: Metric, value: float) -> None:
    row = one(THREE, metric)
    assert row.value == pytest.approx(value, rel=1e-12)
    assert row.low < row.value < row.high
    assert why_unpairable(metric) is None
    halves = summarise([THREE.slice(0, 2), THREE.slice(2)], [metric])
    assert halves[0].value == pytest.approx(value, rel=1e-12)


rankings = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=2, max_size=8).filter(
    lambda pairs: any(grade for grade, _ in pairs)
)


@given(pairs=rankings, k=st.none() | st.integers(1, 9), exponential=st.booleans())
def test_ndcg_is_that_of_scikit_learn_also_with_ties(pairs: Any, k: int | None, exponential: bool) -> None:
    grades, scores = zip(*pairs, strict=True)
    names = [f"doc {place}" for place in range(len(pairs))]
    shard = graded((dict(zip(names, scores, strict=True)), dict(zip(names, grades, strict=True))))
    gains = [2**grade - 1 for grade in grades] if exponential else grades
    metric = Ndcg(k=k, gains="exponential" if exponential else "linear")
    assert one(shard, metric).value == pytest.approx(sk.ndcg_score([gains], [scores], k=k), rel=1e-12)


@given(scores=st.permutations(range(8)), relevant=st.sets(st.integers(0, 7), min_size=1))
def test_average_precision_without_ties_is_that_of_scikit_learn(scores: Any, relevant: set[int]) -> None:
    shard = graded(({str(place): score for place, score in enumerate(scores)}, [str(place) for place in relevant]))
    expected = sk.average_precision_score([place in relevant for place in range(8)], scores)
    assert one(shard, MapAtK(k=8)).value == pytest.approx(expected, rel=1e-12)


def test_tied_answers_share_the_last_of_their_places() -> None:
    shard = graded(({"a": 0.5, "b": 0.5, "c": 0.5, "d": 0.1}, ["a", "d"]))
    assert one(shard, MeanReciprocalRank()).value == pytest.approx(1 / 3)
    assert one(shard, HitsAtK(k=2)).value == 0
    assert one(shard, MapAtK(k=4)).value == pytest.approx((1 / 3 + 2 / 4) / 2)


def test_answers_may_come_with_ranks_or_scores_in_any_order() -> None:
    ranked = [{"answer": "b", "rank": 7}, {"answer": "a", "rank": 2}]
    scored = [{"answer": "b", "score": 0.1}, {"answer": "a", "score": 0.2}]
    assert Ranking().score(ranked, "b").value == 1 / 7
    assert Ranking().score(scored, "b").value == 1 / 2
    assert Ranking(answer_key="id").score([{"id": 3, "rank": 1}], 3).value == 1


def test_an_answer_that_may_come_again_is_irrelevant_in_its_further_places() -> None:
    columns = Ranking(repeats=True).score(["x", "a", "a", "b"], ["a", "b"]).columns
    assert columns is not None
    assert (columns["grades"], columns["ranks"]) == ([0.0, 1.0, 0.0, 1.0], [1.0, 2.0, 3.0, 4.0])
    scored = [{"answer": "a", "score": 0.1}, {"answer": "b", "score": 0.5}, {"answer": "a", "score": 0.9}]
    assert Ranking(repeats=True).score(scored, "a").columns["grades"] == [1.0, 0.0, 0.0]  # type: ignore[index]


def test_answers_compare_with_their_types() -> None:
    assert Ranking().score([1, "1", 1.5], "1").value == 1 / 2


def test_an_empty_ranking_is_a_ranking_and_no_answer_is_none() -> None:
    assert Ranking().score([], "a").value == 0
    assert one(graded(([], "a"), (["a"], "a")), MapAtK(k=2)).value == 0.5
    assert one(graded(([], "a")), Ndcg(k=2)).value == 0
    assert Ranking().score(None, "a").status == "abstained"
    for nothing in (None, [], {"a": 0}):
        assert Ranking().score(["a"], nothing).status == "abstained"


@pytest.mark.parametrize(
    ("output", "expected", "why"),
    [
        ("a", "a", "the ranking is the text 'a'"),
        (["a", "b", "a"], "a", "has 'a' twice"),
        ([{"answer": "a", "rank": 1}, {"answer": "b", "rank": 1}], "a", "the rank 1 occurs twice"),
        ([{"answer": "a", "rank": 0}], "a", "the rank is the integer 0, not an integer of 1 or more"),
        ([{"answer": "a", "rank": 1.5}], "a", "the rank is the number 1.5, not an integer of 1 or more"),
        ([{"answer": "a", "rank": math.inf}], "a", "the rank is the number inf, not an integer"),
        ([{"answer": "a", "rank": 1}, {"answer": "b"}], "a", "not all of them a rank"),
        ({"a": "high"}, "a", "the score of 'a' is the text 'high'"),
        (["a"], {"a": -1}, "the relevance of 'a' is the integer -1, not a number of 0 or more"),
    ],
)
def test_what_is_no_ranking_costs_its_row(output: Any, expected: Any, why: str) -> None:
    with pytest.raises(DataError, match=why):
        Ranking().score(output, expected)


@pytest.mark.parametrize("rank", [1.5, 0.0, -1.0, math.inf])
@pytest.mark.parametrize("metric", [HitsAtK(k=2), Ndcg(), MeanReciprocalRank()], ids=lambda metric: metric.kind)
def test_a_rank_that_is_no_whole_number_is_refused_by_row(metric: Metric, rank: float) -> None:
    columns = {
        "ranks": [[1.0], [rank]],
        "grades": [[1.0], [1.0]],
        "relevant": [[1.0], [1.0]],
        "first_rank": [1.0, rank],
    }
    with pytest.raises(DataError, match=rf"_index_ 1: .*rank.* has {rank:g}; ranks are integers from 1 on"):
        one(pa.table({"_index_": [0, 1], "status": ["scored"] * 2, **columns}), metric)


def test_huge_and_tiny_relevances_have_the_share_that_their_gains_have() -> None:
    for best, other in ((2000.0, 1999.0), (1e300, 0.0), (2.0, 1.0)):
        row = one(graded((["a", "b"], {"a": other, "b": best})), Ndcg(gains="exponential"))
        ratio = {1999.0: 0.5, 0.0: 0.0, 1.0: 1 / 3}[other]
        share = (ratio + 1 / math.log2(3)) / (1 + ratio / math.log2(3))
        assert row.value == pytest.approx(share, rel=1e-12)
    for relevance, gains in ((1.7e308, "linear"), (5e-324, "linear"), (1e-17, "exponential"), (1e-300, "exponential")):
        row = one(graded((["x", "a", "b"], dict.fromkeys("ab", relevance))), Ndcg(gains=gains))  # type: ignore[arg-type]
        assert row.value == pytest.approx((1 / math.log2(3) + 1 / 2) / (1 + 1 / math.log2(3)), rel=1e-12)


@pytest.mark.parametrize("metric", [Ndcg(), RecallAtK(k=1), MapAtK(k=1)], ids=lambda metric: metric.kind)
@pytest.mark.parametrize(
    ("relevant", "why"), [([0.0], "has nothing relevant"), ([math.inf], "has an infinite relevance")]
)
def test_relevances_that_leave_no_number_are_refused_by_row(metric: Metric, relevant: Any, why: str) -> None:
    columns = {"ranks": [[1.0]], "grades": [[0.0]], "relevant": [relevant]}
    with pytest.raises(DataError, match=f"_index_ 0: .*{why}"):
        one(pa.table({"_index_": [0], "status": ["scored"], **columns}), metric)


def test_rankings_go_the_whole_path() -> None:
    rows = [
        {"input": 0, "expected": "a"},
        {"input": 1, "expected": ["b", "c"]},
        {"input": 2, "expected": {"a": 2, "b": 1}},
    ]
    run = Runner(MemoryStore()).run(
        lambda i: [["a", "b"], ["a", "b", "c"], {"a": 0.1, "b": 0.2}][i], Dataset.from_rows(rows)
    )
    evaluation = Evaluator().evaluate(run, {"it": Ranking()})
    assert evaluation.table("it")["ranks"].to_pylist() == [[1, 2], [1, 2, 3], [1, 2]]
    kinds = {"mean_reciprocal_rank": {}, "ndcg": {}, "hits_at_k": {"k": 1}, "recall_at_k": {"k": 1}}
    measures = [Measure("it", registry.find("metrics", kind)(**given)) for kind, given in kinds.items()]
    found = Aggregator().aggregate([evaluation], measures).table()["value"].to_pylist()
    ndcg = [1, (1 / math.log2(3) + 1 / 2) / (1 + 1 / math.log2(3)), (1 + 2 / math.log2(3)) / (2 + 1 / math.log2(3))]
    assert found == pytest.approx([(1 + 1 / 2 + 1) / 3, np.mean(ndcg), 2 / 3, (1 + 0 + 1 / 2) / 3])


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (lambda: HitsAtK(k=0), "hits_at_k: k is the integer 0"),
        (lambda: Ndcg(gains="cubic"), "gains is the text 'cubic'"),  # type: ignore[arg-type]
        (lambda: Ndcg(k=0), "ndcg: k is the integer 0"),
        (lambda: MeanReciprocalRank(absent_rank=0.5), "absent_rank=0.5 must be at least 1"),
        (lambda: PrecisionAtTopK(k=3, top="last"), "top is the text 'last'"),  # type: ignore[arg-type]
    ],
)
def test_parameters_that_cannot_be_are_refused(wrong: Any, why: str) -> None:
    with pytest.raises(SpecError, match=why):
        wrong()


# The top of all rows


@pytest.mark.parametrize("top", ["largest", "first"])
@pytest.mark.parametrize(("k", "value"), [(3, 2 / 3), (4, 3 / 4), (20, 1 / 4)])
def test_the_printed_example_is_the_same_by_values_and_by_rows(top: Any, k: int, value: float) -> None:
    found = evaluate([0, 1, 2, 3, 4], [1, 3, 2, 4, 0], metrics=PrecisionAtTopK(k=k, top=top))
    assert found["precision_at_top_k"].value == value


def test_of_equal_values_the_later_rows_come_first() -> None:
    row = evaluate([3, 3, 3, 1, 1, 1], [3, 1, 3, 3, 1, 1], metrics=PrecisionAtTopK(k=2))["precision_at_top_k"]
    assert (row.value, math.isnan(row.low)) == (0.5, True)


def test_the_first_rows_are_those_of_the_dataset_in_any_shards_and_by_group() -> None:
    text = pa.table(
        {
            "_index_": range(6),
            "status": ["scored"] * 6,
            "truth": ["a", "b", "c", "d", "e", "f"],
            "prediction": ["b", "a", "x", "x", "x", "e"],
            "part": [0, 0, 0, 1, 1, 1],
        }
    )
    metric = PrecisionAtTopK(k=2, top="first")
    for cut in (6, 1, 4):
        rows = summarise([text.slice(0, cut), text.slice(cut)], [metric], [(), ("part",)])
        assert [row.value for row in rows] == [1.0, 1.0, 0.0]


def test_weights_leave_the_top_as_it_is() -> None:
    assert evaluate([1, 2], [1, 2], weight=[1, 9], metrics=PrecisionAtTopK(k=1))["precision_at_top_k"].value == 1


def test_a_precision_of_tops_says_why_it_has_no_interval() -> None:
    found = evaluate([1.0, 2.0, 3.0], [1.0, 3.0, 2.0], metrics=PrecisionAtTopK(k=2))["precision_at_top_k"]
    assert (found.value, found.reason) == (1.0, "no interval: a top hangs on the order of rows")
