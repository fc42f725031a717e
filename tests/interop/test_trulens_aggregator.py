"""`GroundTruthAggregator` of TruLens: its aggregates against scipy and scikit-learn, and its errors."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sklearn.metrics as sk
from scipy import stats

from evaluand.core.errors import DataError, EvaluandWarning, SpecError
from evaluand.evaluation.feedback import Feedback
from evaluand.interop.trulens import GroundTruthAggregator
from evaluand.interop.trulens.aggregator import Scores

LABELS = [0, 0, 1, 0, 1, 1, 1, 1, 0, 0, 1, 0]
SCORES = [0.39, 0.61, 0.7, 0.27, 0.8, 0.59, 0.1, 0.32, 0.65, 0.2, 0.88, 0.32]
DECIDED = [int(score >= 0.5) for score in SCORES]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mae", sk.mean_absolute_error(LABELS, SCORES)),
        ("auc", sk.roc_auc_score(LABELS, SCORES)),
        ("brier_score", sk.brier_score_loss(LABELS, SCORES)),
        ("kendall_tau", stats.kendalltau(LABELS, SCORES).statistic),
        ("pearson_correlation", stats.pearsonr(LABELS, SCORES).statistic),
        ("spearman_correlation", stats.spearmanr(LABELS, SCORES).statistic),
        ("precision", sk.precision_score(LABELS, DECIDED)),
        ("recall", sk.recall_score(LABELS, DECIDED)),
        ("f1_score", sk.f1_score(LABELS, DECIDED)),
        ("cohens_kappa", sk.cohen_kappa_score(LABELS, DECIDED)),
        ("matthews_correlation", sk.matthews_corrcoef(LABELS, DECIDED)),
        ("ndcg_at_k", sk.ndcg_score([LABELS], [SCORES])),
    ],
)
def test_aggregates_equal_those_of_scipy_and_scikit_learn(name: str, expected: float) -> None:
    aggregate = getattr(GroundTruthAggregator(LABELS), name)
    assert aggregate(SCORES) == pytest.approx(expected)
    assert (
        aggregate(np.array(SCORES)) == aggregate([[score, {"reason": "so"}] for score in SCORES]) == aggregate(SCORES)
    )


def test_rankings_consider_the_first_k_by_score() -> None:
    aggregator = GroundTruthAggregator([0, 1, 0, 1, 1], k=2)
    scores = [0.9, 0.8, 0.7, 0.6, 0.5]
    assert (aggregator.precision_at_k(scores), aggregator.recall_at_k(scores)) == (0.5, pytest.approx(1 / 3))
    assert (aggregator.ir_hit_rate(scores), aggregator.mrr(scores)) == (1.0, 0.5)
    assert aggregator.ndcg_at_k(scores) == pytest.approx(sk.ndcg_score([aggregator.true_labels], [scores], k=2))
    assert GroundTruthAggregator([0, 1], k=1).ir_hit_rate([0.5, 0.5]) == 0.0  # equal scores share the last place


def test_labels_may_be_any_number_where_the_metric_allows_it() -> None:
    aggregator = GroundTruthAggregator([0.0, 0.5, 1.0])
    assert aggregator.mae([0.1, 0.2, 0.3]) == pytest.approx(1.1 / 3)
    assert aggregator.kendall_tau([0.1, 0.2, 0.3]) == pytest.approx(1.0)
    assert aggregator.ndcg_at_k([0.1, 0.2, 0.3]) == pytest.approx(1.0)
    for name in ("auc", "brier_score", "precision", "recall", "f1_score", "cohens_kappa", "matthews_correlation"):
        with pytest.raises(DataError, match=r"true_labels\[1\] is 0\.5, but this method takes only labels 0 and 1"):
            getattr(aggregator, name)([0.1, 0.2, 0.3])


def test_a_score_of_at_least_the_threshold_means_label_1() -> None:
    aggregator = GroundTruthAggregator([1, 0, 1])
    assert aggregator.precision([0.5, 0.4, 0.3]) == 1.0  # the threshold itself counts
    assert aggregator.recall([0.5, 0.4, 0.3], threshold=0.3) == 1.0


def test_the_calibration_error_compares_confidence_with_correctness() -> None:
    aggregator = GroundTruthAggregator([1, 0, 1, 0])
    pairs = [(0.9, 0.8), (0.2, 0.9), (0.4, 0.6), (0.6, 0.5)]  # right, right, wrong, wrong
    assert aggregator.ece(pairs) == pytest.approx((0.2 + 0.1 + 0.6 + 0.5) / 4)
    assert GroundTruthAggregator([1, 0]).ece([(0.9, 0.0), (0.6, 0.4)]) == pytest.approx(0.7)  # a confidence of 0 counts
    with pytest.raises(DataError, match="ece takes pairs of a score and its confidence, not scores alone"):
        aggregator.ece([0.9, 0.2, 0.4, 0.6])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("name", "labels", "scores"),
    [
        ("auc", [1, 1], [0.2, 0.4]),
        ("precision", [1, 0], [0.2, 0.4]),
        ("kendall_tau", [1, 0], [0.5, 0.5]),
        ("matthews_correlation", [1, 1], [0.2, 0.4]),
        ("ndcg_at_k", [0, 0], [0.2, 0.4]),
    ],
)
def test_an_undefined_value_is_nan_with_a_reason(name: str, labels: list[int], scores: list[float]) -> None:
    with pytest.warns(EvaluandWarning, match="is not defined: ."):
        assert math.isnan(getattr(GroundTruthAggregator(labels), name)(scores))


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([0.5], "1 score for 2 labels; pass one score per label"),
        ([0.5, None], r"scores\[1\] is null, not a number; remove it and its label"),
        ([0.5, math.nan], r"scores\[1\] is .*, not a number"),
        ([0.5, "1"], r"scores\[1\] is .*, not a number"),
    ],
)
def test_scores_that_do_not_match_the_labels_are_refused(scores: list[Any], message: str) -> None:
    for name in ("mae", "auc", "recall", "mrr"):
        with pytest.raises(DataError, match=message):
            getattr(GroundTruthAggregator([1, 0]), name)(scores)


@pytest.mark.parametrize("wrong", [[], ["1"], [1, None], {1: 0}, 1])
def test_invalid_labels_are_refused(wrong: Any) -> None:
    with pytest.raises(SpecError, match=r"true_labels is .*pass a list with one number per score"):
        GroundTruthAggregator(wrong)


def test_k_and_bins_are_checked() -> None:
    with pytest.raises(SpecError, match="k is the integer 0"):
        GroundTruthAggregator([1], k=0)
    with pytest.raises(SpecError, match="bins"):
        GroundTruthAggregator([1], n_bins=0)


def largest_miss(scores: Scores, aggregator: GroundTruthAggregator) -> float:
    return max(abs(score - label) for score, label in zip(scores, aggregator.true_labels, strict=True))


def test_custom_functions_become_methods() -> None:
    aggregator = GroundTruthAggregator([1, 0])
    aggregator.register_custom_agg_func("largest_miss", largest_miss)
    assert aggregator.largest_miss([0.9, 0.3]) == pytest.approx(0.3)
    assert pickle.loads(pickle.dumps(aggregator)).largest_miss([0.9, 0.3]) == pytest.approx(0.3)
    for taken in ("mae", "k", "two words"):
        with pytest.raises(SpecError, match="cannot be the name of an aggregate"):
            aggregator.register_custom_agg_func(taken, largest_miss)
    with pytest.raises(AttributeError, match="has no attribute 'smallest'"):
        _ = aggregator.smallest


def length(text: str) -> float:
    return len(text) / 10


def test_a_feedback_stores_and_identifies_its_aggregate_with_its_labels() -> None:
    def build_feedback(aggregate: Callable[[Scores], float]) -> Feedback:
        return Feedback(length).on("__record__.main_output[:]").aggregate(aggregate)

    feedback = build_feedback(GroundTruthAggregator([1, 0]).mae)
    source = {"__record__": {"main_output": ["abcdefgh", "ab"]}}
    assert feedback.evaluate(source).value == pytest.approx(0.2)
    assert Feedback.from_json(feedback.to_json(), modules=[__name__]).evaluate(source).value == pytest.approx(0.2)
    others = [build_feedback(GroundTruthAggregator([0, 1]).mae), build_feedback(GroundTruthAggregator([1, 0]).auc)]
    assert all(other.identify().spec != feedback.identify().spec for other in others)
    assert build_feedback(GroundTruthAggregator([1, 0]).mae).identify() == feedback.identify()
    assert feedback.identify().pinned
    failed = build_feedback(GroundTruthAggregator([1, 0, 1]).mae).evaluate(source)
    assert (failed.status, failed.reason) == (
        "failed",
        "the aggregate failed: DataError: 2 scores for 3 labels; pass one score per label",
    )
