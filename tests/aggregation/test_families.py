"""All disparities of a request as one family: their ends, and how often a fair system seems unfair by them."""

import numpy as np
import pytest

from evaluand import evaluate
from evaluand.aggregation.aggregator import Aggregator, Measure
from evaluand.aggregation.disparity import DisparityRow, with_family_ends
from evaluand.aggregation.group_rules import read_rules
from evaluand.errors import SpecError
from evaluand.metrics.accuracy import Accuracy
from evaluand.metrics.stats.intervals import clopper_pearson
from evaluand.report.facts.aggregation import disparities_facts
from evaluand.store.store import MemoryStore

RATES = ["accuracy", "selection_rate", "recall", "precision"]


def fair(seed: int, adjust: str = "bonferroni", worse: float = 0.8) -> tuple[DisparityRow, ...]:
    """16 differences of a system that is right for all alike; for one sex as often as `worse` says."""
    generator = np.random.default_rng(seed)
    truth = (generator.random(600) < 0.4).astype(int)
    by = {name: generator.integers(0, 3, 600) for name in ("sex", "race", "age", "site")}
    right = generator.random(600) < np.where(by["sex"] == 0, worse, 0.8)
    asked = evaluate(
        truth,
        np.where(right, truth, 1 - truth),
        metrics=RATES,
        by=by,
        disparities="difference",
        label=1,
        kind="binary",
        adjust=adjust,
    )
    return asked.disparities


def test_family_ends_are_those_of_a_level_shared_by_all_disparities() -> None:
    group = {"sex": ["f", "m"] * 50, "age": ["young"] * 40 + ["old"] * 60}
    truth, given = [1] * 100, [1] * 70 + [0] * 30
    first, second = evaluate(truth, given, metrics="accuracy", by=group, disparities="difference").disparities
    shared = Accuracy(confidence=0.975)
    for row, by in ((first, "sex"), (second, "age")):
        [alone] = evaluate(truth, given, metrics=shared, by={by: group[by]}, disparities="difference").disparities
        assert (row.family_low, row.family_high) == pytest.approx((alone.low, alone.high))
        assert (row.family_size, row.family_method) == (2, "bonferroni")
        assert row.family_low <= row.low <= row.high <= row.family_high
    assert (first.found, second.found) == (False, True)


def test_pairs_and_strata_are_in_the_family() -> None:
    group = {"race": list("abc") * 100, "sex": ["f", "m", "m", "f"] * 75}
    rules = read_rules([("race",)], reference="a", given="sex")
    result = evaluate([1] * 300, [1, 1, 1, 0, 1] * 60, metrics="accuracy", by=group)
    evaluation = result.to_evaluation(MemoryStore(), "mine")
    measure = Measure("prediction", Accuracy(), "race", ("difference",), rules=rules)
    rows = disparities_facts(Aggregator().aggregate([evaluation], [measure]))
    kinds = {(row["other"] is not None, row["given"] is not None) for row in rows}
    assert kinds == {(False, False), (True, False), (False, True), (True, True)}
    assert {row["family_size"] for row in rows} == {len(rows)}
    assert all(row["family_low"] <= row["low"] and row["high"] <= row["family_high"] for row in rows)


def test_a_disparity_alone_is_a_family_of_one() -> None:
    [row] = evaluate(
        [1] * 40, [1, 0] * 20, metrics="accuracy", by=["a", "a", "b", "b"] * 10, disparities="ratio"
    ).disparities
    assert (row.family_low, row.family_high, row.family_size) == (row.low, row.high, 1)


def test_disparities_without_an_interval_are_not_counted() -> None:
    sure, group = np.linspace(0.1, 0.9, 60), ["a", "b"] * 30
    rows = evaluate(
        [1, 0, 0] * 20, sure > 0.4, confidence=sure, by=group, fairness=["equal_opportunity", "calibration_by_group"]
    ).disparities
    assert [row.family_size for row in rows] == [2] * 4
    assert [np.isnan(row.family_low) for row in rows] == [False, False, True, True]


def test_ends_of_the_false_coverage_rate_allow_for_as_many_as_are_found() -> None:
    shares: list[float] = []

    def compute(share: float) -> list[DisparityRow]:
        shares.append(share)
        lows = [clopper_pearson(right, 100, 1 - 0.05 * share)[0] - 0.5 for right in (80, 75, 58, 50)]
        return [row._replace(low=low, high=low + 0.5) for row, low in zip(rows, lows, strict=True)]

    [plain] = evaluate(
        [1] * 40, [1, 0] * 20, metrics="accuracy", by=["a", "b"] * 20, disparities="difference"
    ).disparities
    rows = [plain._replace(family_method="fdr_by")] * 4
    result = with_family_ends(rows, compute)
    harmonic = 1 + 1 / 2 + 1 / 3 + 1 / 4
    assert [row.found for row in result] == [True, True, False, False]
    assert shares == pytest.approx([1 / 4, 4 / (4 * harmonic), 2 / (4 * harmonic)])


def test_another_adjustment_is_refused() -> None:
    with pytest.raises(SpecError, match="adjust is 'fdr'; write bonferroni or fdr_by"):
        evaluate([1, 0], [1, 0], by=["a", "b"], metrics="accuracy", disparities="ratio", adjust="fdr")


@pytest.mark.slow
@pytest.mark.parametrize("adjust", ["bonferroni", "fdr_by"])
def test_a_fair_system_with_16_disparities_seems_unfair_in_at_most_5_of_100_requests(adjust: str) -> None:
    requests = [fair(seed, adjust) for seed in range(150)]
    assert {len(rows) for rows in requests} == {16}
    alone = sum(any(row.low > 0 for row in rows) for rows in requests)
    family = sum(any(row.found for row in rows) for rows in requests)
    assert clopper_pearson(family, 150, 0.98)[0] <= 0.05
    assert alone > 35


@pytest.mark.slow
@pytest.mark.parametrize("adjust", ["bonferroni", "fdr_by"])
def test_a_system_that_is_worse_for_one_group_is_found(adjust: str) -> None:
    requests = [fair(seed, adjust, worse=0.5) for seed in range(60)]
    found = [row for rows in requests for row in rows if row.found]
    false = sum(row.over != ("sex",) for row in found)
    assert sum(any(row.found and row.over == ("sex",) for row in rows) for rows in requests) > 55
    assert false / len(found) < 0.05
