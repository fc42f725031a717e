"""`GroundTruthAggregator` of TruLens: its aggregates beside scipy and scikit-learn, and what it refuses."""

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
def test_aggregates_are_those_of_scipy_and_scikit_learn(name: str, expected: float) -> None:
    aggregate = getattr(GroundTruthAggregator(LABELS), name)
    assert aggregate(SCORES) == pytest.approx(expected)
    assert (
        aggregate(np.array(SCORES)) == aggregate([[score, {"reason": "so"}] for score in SCORES]) == aggregate(SCORES)
    )


def test_rankings_look_at_the_first_k_by_score() -> None:
    beside = GroundTruthAggregator([0, 1, 0, 1, 1], k=2)
    scores = [0.9, 0.8, 0.7, 0.6, 0.5]
    assert (beside.precision_at_k(scores), beside.recall_at_k(scores)) == (0.5, pytest.approx(1 / 3))
    assert (beside.ir_hit_rate(scores), beside.mrr(scores)) == (1.0, 0.5)
    assert beside.ndcg_at_k(scores) == pytest.approx(sk.ndcg_score([beside.true_labels], [scores], k=2))
    assert GroundTruthAggregator([0, 1], k=1).ir_hit_rate([0.5, 0.5]) == 0.0  # who scores all the same finds nothing


def test_labels_may_be_degrees_where_that_is_defined() -> None:
    beside = GroundTruthAggregator([0.0, 0.5, 1.0])
    assert beside.mae([0.1, 0.2, 0.3]) == pytest.approx(1.1 / 3)
    assert beside.kendall_tau([0.1, 0.2, 0.3]) == pytest.approx(1.0)
    assert beside.ndcg_at_k([0.1, 0.2, 0.3]) == pytest.approx(1.0)
    for name in ("auc", "brier_score", "precision", "recall", "f1_score", "cohens_kappa", "matthews_correlation"):
        with pytest.raises(DataError, match=r"a label is 0\.5: this is defined for labels 0 and 1"):
            getattr(beside, name)([0.1, 0.2, 0.3])


def test_a_threshold_decides_what_a_score_means() -> None:
    beside = GroundTruthAggregator([1, 0, 1])
    assert beside.precision([0.5, 0.4, 0.3]) == 1.0  # from the threshold on
    assert beside.recall([0.5, 0.4, 0.3], threshold=0.3) == 1.0


def test_the_calibration_error_is_of_how_sure_scores_are() -> None:
    beside = GroundTruthAggregator([1, 0, 1, 0])
    pairs = [(0.9, 0.8), (0.2, 0.9), (0.4, 0.6), (0.6, 0.5)]  # right, right, wrong, wrong
    assert beside.ece(pairs) == pytest.approx((0.2 + 0.1 + 0.6 + 0.5) / 4)
    assert GroundTruthAggregator([1, 0]).ece([(0.9, 0.0), (0.6, 0.4)]) == pytest.approx(0.7)  # a confidence of 0 counts
    with pytest.raises(DataError, match="ece takes pairs of a score and its confidence"):
        beside.ece([0.9, 0.2, 0.4, 0.6])  # type: ignore[list-item]


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
def test_what_is_not_defined_is_nan_with_its_reason(name: str, labels: list[int], scores: list[float]) -> None:
    with pytest.warns(EvaluandWarning, match="is not defined: ."):
        assert math.isnan(getattr(GroundTruthAggregator(labels), name)(scores))


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([0.5], "there are 1 scores and 2 labels; give one for each"),
        ([0.5, None], "a score is null, not a number; leave it out together with its label"),
        ([0.5, math.nan], "a score is .*, not a number"),
        ([0.5, "1"], "a score is .*, not a number"),
    ],
)
def test_scores_that_have_no_place_beside_the_labels_are_refused(scores: list[Any], message: str) -> None:
    for name in ("mae", "auc", "recall", "mrr"):
        with pytest.raises(DataError, match=message):
            getattr(GroundTruthAggregator([1, 0]), name)(scores)


@pytest.mark.parametrize("wrong", [[], ["1"], [1, None], {1: 0}, 1])
def test_labels_that_are_none_are_refused(wrong: Any) -> None:
    with pytest.raises(SpecError, match=r"true_labels is .*give a list of one number for each score"):
        GroundTruthAggregator(wrong)


def test_k_and_bins_are_checked() -> None:
    with pytest.raises(SpecError, match="k is 0"):
        GroundTruthAggregator([1], k=0)
    with pytest.raises(SpecError, match="bins"):
        GroundTruthAggregator([1], n_bins=0)


def largest_miss(scores: Scores, beside: GroundTruthAggregator) -> float:
    return max(abs(score - label) for score, label in zip(scores, beside.true_labels, strict=True))


def test_functions_of_ones_own_are_methods_too() -> None:
    beside = GroundTruthAggregator([1, 0])
    beside.register_custom_agg_func("largest_miss", largest_miss)
    assert beside.largest_miss([0.9, 0.3]) == pytest.approx(0.3)
    assert pickle.loads(pickle.dumps(beside)).largest_miss([0.9, 0.3]) == pytest.approx(0.3)
    for taken in ("mae", "k", "two words"):
        with pytest.raises(SpecError, match="cannot be the name of an aggregate"):
            beside.register_custom_agg_func(taken, largest_miss)
    with pytest.raises(AttributeError, match="has no 'smallest'"):
        _ = beside.smallest


def length(text: str) -> float:
    return len(text) / 10


def test_a_feedback_has_it_as_its_aggregate_stored_and_identified_with_its_labels() -> None:
    def judged(aggregate: Callable[[Scores], float]) -> Feedback:
        return Feedback(length).on("__record__.main_output[:]").aggregate(aggregate)

    judges = judged(GroundTruthAggregator([1, 0]).mae)
    source = {"__record__": {"main_output": ["abcdefgh", "ab"]}}
    assert judges.evaluate(source).value == pytest.approx(0.2)
    assert Feedback.from_json(judges.to_json(), modules=[__name__]).evaluate(source).value == pytest.approx(0.2)
    others = [judged(GroundTruthAggregator([0, 1]).mae), judged(GroundTruthAggregator([1, 0]).auc)]
    assert all(other.identify().spec != judges.identify().spec for other in others)
    assert judged(GroundTruthAggregator([1, 0]).mae).identify() == judges.identify()
    assert judges.identify().pinned
    failed = judged(GroundTruthAggregator([1, 0, 1]).mae).evaluate(source)
    assert (failed.status, failed.reason) == (
        "failed",
        "the aggregate failed: DataError: there are 2 scores and 3 labels; give one for each",
    )
