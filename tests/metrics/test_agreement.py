"""Weighted kappa, adjusted mutual information and pairs of classes, against scikit-learn on random cases."""

from __future__ import annotations

import math
import warnings
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import sklearn.metrics as sk
from support.random_cases import Case, check_cases

from evaluand.aggregation.groups import summarise
from evaluand.core.errors import DataError, SpecError
from evaluand.metrics.adjusted_mutual_information import AdjustedMutualInformation, expected_information
from evaluand.metrics.areas import OneVsOneRocAuc
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.confusion_matrix import ConfusionMatrix, WeightedKappa
from evaluand.predictions.evaluating import evaluate

LABELS = {"truth": pa.int64(), "prediction": pa.int64(), "_weight_": pa.float64()}
SCORES = pa.list_(pa.struct([("label", pa.string()), ("score", pa.float64())]))


def drawn(n_cases: int, seed: int, most: int = 6) -> list[Case]:
    """Cases of 1 to 40 integers, of 1 to `most` labels, some of which occur on one side only."""
    generator = np.random.default_rng(seed)
    cases = []
    for _ in range(n_cases):
        n, k = int(generator.integers(1, 41)), int(generator.integers(1, most + 1))
        truth = generator.integers(0, k, n)
        prediction = np.where(generator.random(n) < generator.random(), truth, generator.integers(0, k, n))
        cases.append({"truth": truth, "prediction": prediction, "_weight_": generator.exponential(size=n)})
    return cases


def kappa(weights: str, weighted: bool, case: Case) -> float:
    both = np.concatenate([case["truth"], case["prediction"]])
    if both.min() == both.max():
        return math.nan
    between = list(range(both.min(), both.max() + 1))
    weight = case["_weight_"] if weighted else None
    return float(
        sk.cohen_kappa_score(case["truth"], case["prediction"], labels=between, weights=weights, sample_weight=weight)
    )


def information(mean: str, case: Case) -> float:
    if (
        len(set(zip(case["truth"], case["prediction"], strict=True)))
        == len(set(case["truth"]))
        == len(set(case["prediction"]))
    ):
        return 1.0
    return float(sk.adjusted_mutual_info_score(case["truth"], case["prediction"], average_method=mean))


def check_kappa(n_cases: int) -> int:
    return sum(
        check_cases(
            WeightedKappa(weights=weights, weighted=weighted),
            drawn(n_cases, int(weighted)),
            partial(kappa, weights, weighted),
            LABELS,
        )
        for weights in ("linear", "quadratic")
        for weighted in (False, True)
    )


def check_information(n_cases: int) -> int:
    cases = drawn(n_cases, 7, 9)
    return sum(
        check_cases(AdjustedMutualInformation(mean=mean), cases, partial(information, mean), LABELS, 1e-11)
        for mean in ("arithmetic", "max", "geometric")
    )


def pairs_of_classes(n_cases: int, seed: int) -> list[Case]:
    """Cases of two to four classes, each of which occurs, with tied scores in half of the cases."""
    generator = np.random.default_rng(seed)
    cases = []
    for number in range(n_cases):
        k = int(generator.integers(2, 5))
        n = int(generator.integers(k + 1, 30))
        score = generator.integers(1, 5, (n, k)) if number % 2 else generator.exponential(size=(n, k))
        score = score / score.sum(axis=1, keepdims=True)
        truth = np.concatenate([np.arange(k), generator.integers(0, k, n - k)])
        labels = [f"l{place}" for place in range(k)]
        rows = [[{"label": x, "score": y} for x, y in zip(labels, row, strict=True)] for row in score]
        cases.append({"truth": [f"l{code}" for code in truth], "scores": rows, "matrix": score, "code": truth})
    return cases


def one_vs_one(average: str, case: Case) -> float:
    if case["matrix"].shape[1] == 2:
        return float(np.mean([sk.roc_auc_score(case["code"] == place, case["matrix"][:, place]) for place in range(2)]))
    return float(sk.roc_auc_score(case["code"], case["matrix"], multi_class="ovo", average=average))


def check_pairs(n_cases: int) -> int:
    schema = {"truth": pa.string(), "scores": SCORES}
    return sum(
        check_cases(OneVsOneRocAuc(average=average), pairs_of_classes(n_cases, 3), partial(one_vs_one, average), schema)
        for average in ("macro", "weighted")
    )


@pytest.mark.slow
def test_random_cases_have_the_values_of_the_reference() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert check_kappa(12) > 30
        assert check_information(12) == 36
        assert check_pairs(12) == 24


@pytest.mark.slow
def test_many_random_cases_have_the_values_of_the_reference() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert check_kappa(400) > 1200
        assert check_information(400) == 1200
        assert check_pairs(400) == 800


# Weighted kappa


def test_labels_give_the_order_of_text() -> None:
    order = ["low", "medium", "high"]
    generator = np.random.default_rng(1)
    truth, prediction = ([order[code] for code in generator.integers(0, 3, 50)] for _ in range(2))
    expected = sk.cohen_kappa_score(truth, prediction, labels=order, weights="quadratic")
    assert evaluate(truth, prediction, metrics=WeightedKappa(labels=order)).rows[0].value == pytest.approx(expected)


def test_text_without_an_order_is_refused() -> None:
    with pytest.raises(SpecError, match="weighted_kappa needs the order of labels, which text such as 'low' does not"):
        evaluate(["low", "high"], ["low", "low"], metrics="weighted_kappa")


def test_a_label_outside_the_order_is_refused_by_row() -> None:
    with pytest.raises(DataError, match="_index_ 1: prediction 'other' is not among labels"):
        evaluate(["low", "high"], ["low", "other"], metrics=WeightedKappa(labels=["low", "high"]))


def test_integers_are_as_far_from_each_other_as_their_values() -> None:
    with_gap = evaluate([1, 2, 5, 5], [1, 5, 5, 2], metrics="weighted_kappa").rows[0].value
    expected = sk.cohen_kappa_score([1, 2, 5, 5], [1, 5, 5, 2], labels=[1, 2, 3, 4, 5], weights="quadratic")
    assert with_gap == pytest.approx(expected)


def test_a_single_label_has_no_kappa() -> None:
    row = evaluate([3, 3], [3, 3], metrics="weighted_kappa").rows[0]
    assert math.isnan(row.value)
    assert row.reason == "all truths and predictions are one label, so chance agrees everywhere"


# Adjusted mutual information


@pytest.mark.parametrize("seed", range(2))
def test_expected_information_is_the_mean_over_all_permutations(seed: int) -> None:
    from itertools import permutations

    generator = np.random.default_rng(seed)
    truth, prediction = generator.integers(0, 3, 5), generator.integers(0, 3, 5)
    orders = set(permutations(prediction.tolist()))
    mean = np.mean([sk.mutual_info_score(truth, np.array(order)) for order in orders])
    sizes = [np.bincount(each).astype(float) for each in (truth, prediction)]
    assert expected_information(*sizes) == pytest.approx(mean, abs=1e-12)


def test_large_clusters_have_the_expected_information_of_the_reference() -> None:
    generator = np.random.default_rng(5)
    truth, prediction = generator.integers(0, 4, 20_000), generator.integers(0, 3, 20_000)
    expected = sk.adjusted_mutual_info_score(truth, prediction)
    found = evaluate(truth, prediction, metrics=AdjustedMutualInformation(confidence=None)).rows[0].value
    assert found == pytest.approx(expected, abs=1e-9)  # the reference loses digits in logarithms of factorials


# All of them


@pytest.mark.parametrize("metric", [WeightedKappa(), WeightedKappa(weights="linear"), AdjustedMutualInformation()])
def test_shards_merge_to_the_whole(metric: Metric) -> None:
    generator = np.random.default_rng(2)
    n = 300
    columns: dict[str, Any] = {name: generator.integers(0, 5, n) for name in ("truth", "prediction")}
    whole = pa.table({"_index_": np.arange(n), "status": ["scored"] * n, **columns})
    [one], [other] = (summarise(parts, [metric]) for parts in ([whole], [whole.slice(0, 70), whole.slice(70)]))
    assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high), abs=1e-12)


def test_pairs_need_two_classes_and_every_class_as_a_truth() -> None:
    scores = {"a": [0.5, 0.4], "b": [0.5, 0.6]}
    row = evaluate(["a", "a"], ["a", "b"], metrics=OneVsOneRocAuc(), scores=scores).rows[0]
    assert math.isnan(row.value)
    assert row.reason == "all truths are 'a'"
    row = evaluate(["a", "a"], ["a", "a"], metrics=OneVsOneRocAuc(scored_by="labels")).rows[0]
    assert row.reason == "there is one class, and a pair needs two"


def test_predicted_labels_replace_the_scores_of_pairs() -> None:
    generator = np.random.default_rng(4)
    truth, prediction = generator.integers(0, 3, 40), generator.integers(0, 3, 40)
    hard = np.eye(3)[prediction]
    row = evaluate(truth, prediction, metrics=OneVsOneRocAuc(scored_by="labels")).rows[0]
    expected = sk.roc_auc_score(truth, hard, multi_class="ovo", labels=[0, 1, 2]) if hard.sum(axis=1).all() else 0
    assert row.value == pytest.approx(expected, abs=1e-12)
    assert [pair["labels"] for pair in row.data["pairs"]] == [[0, 1], [0, 2], [1, 2]]


@pytest.mark.parametrize("normalize", ["true", "pred", "all"])
def test_a_confusion_matrix_can_hold_shares(normalize: Any) -> None:
    [case] = drawn(1, 11)
    truth, prediction = case["truth"].tolist(), [*case["prediction"].tolist()[:-1], 9]
    row = evaluate(truth, prediction, metrics=ConfusionMatrix(normalize=normalize)).rows[0]
    expected = sk.confusion_matrix(truth, prediction, normalize=normalize)
    found = np.zeros(expected.shape)
    for i, j, share in row.data["cells"]:
        found[i, j] = share
    assert found == pytest.approx(expected, abs=1e-12)
    assert row.value == len(truth)
    with pytest.raises(SpecError, match="normalize='rows' must be true, pred or all"):
        ConfusionMatrix(normalize="rows")  # type: ignore[arg-type]
