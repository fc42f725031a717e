"""Rankings of labels, against scikit-learn on random cases."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import sklearn.metrics as sk
from support.random_cases import Case, check_cases

from evaluand.aggregation.groups import summarise
from evaluand.core.errors import SpecError
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.rankings import CoverageError, LabelRankingAveragePrecision, LabelRankingLoss, MeanReciprocalRank
from evaluand.predictions.evaluating import evaluate

SCHEMA = {
    "truth": pa.list_(pa.string()),
    "scores": pa.list_(pa.struct([("label", pa.string()), ("score", pa.float64())])),
    "_weight_": pa.float64(),
}
KINDS: dict[str, tuple[type[Metric], float, Any]] = {
    "precision": (LabelRankingAveragePrecision, 1.0, sk.label_ranking_average_precision_score),
    "coverage": (CoverageError, 0.0, sk.coverage_error),
    "loss": (LabelRankingLoss, 0.0, sk.label_ranking_loss),
}


def drawn(n_cases: int, seed: int) -> list[Case]:
    """Cases of 1 to 20 rows of 2 to 6 labels, with tied scores in half of them, and rows with no label or all."""
    generator = np.random.default_rng(seed)
    cases = []
    for number in range(n_cases):
        n, k = int(generator.integers(1, 21)), int(generator.integers(2, 7))
        member = generator.random((n, k)) < generator.random()
        score = generator.integers(0, 4, (n, k)) / 4 if number % 2 else generator.normal(size=(n, k))
        names = [f"l{place}" for place in range(k)]
        cases.append(
            {
                "truth": [[name for name, there in zip(names, row, strict=True) if there] for row in member],
                "scores": [[{"label": x, "score": y} for x, y in zip(names, row, strict=True)] for row in score],
                "_weight_": generator.exponential(size=n),
                "member": member,
                "matrix": score,
            }
        )
    return cases


def check(name: str, n_cases: int) -> int:
    kind, empty, reference = KINDS[name]
    defined = 0
    for weighted in (False, True):

        def expected(case: Case, weighted: bool = weighted) -> float:
            weight = case["_weight_"] if weighted else None
            return float(reference(case["member"].astype(int), case["matrix"], sample_weight=weight))

        metric = kind(empty=empty, weighted=weighted)  # type: ignore[call-arg]
        defined += check_cases(metric, drawn(n_cases, int(weighted)), expected, SCHEMA)
    return defined


@pytest.mark.parametrize("name", KINDS)
def test_random_cases_have_the_values_of_the_reference(name: str) -> None:
    assert check(name, 15) == 30


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_two_thousand_random_cases_have_the_values_of_the_reference(name: str) -> None:
    assert check(name, 1000) == 2000


@pytest.mark.parametrize("name", KINDS)
def test_shards_with_other_labels_merge_to_the_whole(name: str) -> None:
    [case, *_] = [case for case in drawn(30, 1) if len(case["truth"]) > 15]
    n = len(case["truth"])
    scores = [pairs[: 2 + row % 2] for row, pairs in enumerate(case["scores"])]
    truth = [[label for label in labels if label in ("l0", "l1")] for labels in case["truth"]]
    columns = {"truth": pa.array(truth, SCHEMA["truth"]), "scores": pa.array(scores, SCHEMA["scores"])}
    whole = pa.table({"_index_": np.arange(n), "status": ["scored"] * n, **columns})
    metric = KINDS[name][0](empty=KINDS[name][1])  # type: ignore[call-arg]
    [one], [other] = (summarise(parts, [metric]) for parts in ([whole], [whole.slice(0, 5), whole.slice(5)]))
    assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high), abs=1e-12)


@pytest.mark.parametrize(
    ("kind", "truth", "why"),
    [
        (LabelRankingAveragePrecision, [["a"], []], "1 row has nothing to rank"),
        (CoverageError, [["a"], []], "1 row has nothing to rank"),
        (LabelRankingLoss, [["a", "b"], []], "2 rows have nothing to rank"),
        (LabelRankingLoss, [["c"], ["a"]], "1 row has nothing to rank, or no score for a label of the truth"),
    ],
)
def test_what_is_undefined_has_a_reason_and_no_value(kind: type[Metric], truth: Any, why: str) -> None:
    row = evaluate(truth, [["a"], ["b"]], metrics=kind(), scores={"a": [0.1, 0.2], "b": [0.3, 0.4]}).rows[0]
    assert math.isnan(row.value)
    assert why in str(row.reason)


def test_a_missing_score_can_be_taken_for_a_number() -> None:
    scores = {"a": [0.1, 0.2], "b": [0.3, 0.4]}
    metric = LabelRankingLoss(absent=0.0)
    assert evaluate([["c"], ["b"]], [["a"], ["b"]], metrics=metric, scores=scores).rows[0].value == 0.5


def test_single_labels_have_the_mean_reciprocal_rank() -> None:
    truth, scores = ["a", "b", "c"], {"a": [0.5, 0.9, 0.1], "b": [0.4, 0.8, 0.2], "c": [0.1, 0.0, 0.3]}
    value = evaluate(truth, truth, metrics="label_ranking_average_precision", scores=scores).rows[0].value
    ranks = MeanReciprocalRank().prepare({"first_rank": np.array([1.0, 2.0, 1.0])})["value"]
    assert value == pytest.approx(ranks.mean())


def test_the_number_of_an_empty_row_is_in_the_range() -> None:
    with pytest.raises(SpecError, match="label_ranking_loss: empty=2 must be a number from 0 to 1"):
        LabelRankingLoss(empty=2)


def test_the_name_in_scikit_learn_has_its_value_for_rows_without_labels() -> None:
    truth, matrix = [["a"], [], ["a", "b"]], np.array([[0.1, 0.3], [0.2, 0.4], [0.6, 0.5]])
    scores = {"a": matrix[:, 0], "b": matrix[:, 1]}
    member = np.array([[1, 0], [0, 0], [1, 1]])
    name = "label_ranking_average_precision_score"
    found, lrap = (evaluate(truth, [["a"]] * 3, metrics=[each], scores=scores).rows[0] for each in (name, "lrap"))
    assert found.value == pytest.approx(sk.label_ranking_average_precision_score(member, matrix), abs=1e-12)
    assert math.isnan(lrap.value)
