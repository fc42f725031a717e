"""Differences of metrics that are no mean of one number per row, against brute force."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import evaluand
from evaluand.aggregation.aggregator import Measure
from evaluand.aggregation.group_rules import read_rules
from evaluand.comparison.comparing import Comparison, compare
from evaluand.comparison.disparity_differences import disparity_change
from evaluand.comparison.gates import check_gates
from evaluand.comparison.metric_differences import paired_change
from evaluand.core.errors import SpecError
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluation, Evaluator
from evaluand.metrics.base.left_out import LeftOut
from evaluand.metrics.base.metric import CLUSTER, LABELS
from evaluand.metrics.names import make_metric
from evaluand.metrics.stats.intervals import t_quantile
from evaluand.run.runner import Runner
from evaluand.store.store import MemoryStore

Values = Callable[[np.ndarray, np.ndarray], float]


def compared(truth: Any, sides: Sequence[Any], metric: str, confidence: float = 0.95, **further: Any) -> Comparison:
    as_scores = metric in ("roc_auc", "average_precision", "debiased_calibration_error")
    made = [
        evaluand.evaluate(truth, **{"scores" if as_scores else "predictions": side}, metrics=metric, **further)
        for side in sides
    ]
    return compare(*made, confidence=confidence, metrics=metric)


def f1_macro(truth: np.ndarray, predicted: np.ndarray) -> float:
    found = []
    for label in np.union1d(truth, predicted):
        right = ((truth == label) & (predicted == label)).sum()
        found.append(2 * right / ((truth == label).sum() + (predicted == label).sum()))
    return float(np.mean(found))


def r_squared(truth: np.ndarray, predicted: np.ndarray) -> float:
    return float(1 - np.square(truth - predicted).sum() / np.square(truth - truth.mean()).sum())


def rmse(truth: np.ndarray, predicted: np.ndarray) -> float:
    return float(np.sqrt(np.square(truth - predicted).mean()))


def auc(truth: np.ndarray, score: np.ndarray) -> float:
    above = score[truth == 1][:, None] - score[truth == 0][None]
    return float(((above > 0) + 0.5 * (above == 0)).mean())


def squared_calibration_error(truth: np.ndarray, score: np.ndarray) -> float:
    """The mean product of the errors of two different rows of one bin, over ten bins of equally many rows."""
    total = 0.0
    for rows in np.array_split(np.argsort(score, kind="stable"), 10):
        products = np.outer(*[(score - truth)[rows]] * 2)
        n = len(rows)
        total += n * (products.sum() - np.trace(products)) / (n * (n - 1))
    return total / len(truth)


def numbers(rng: np.random.Generator, n: int) -> tuple[np.ndarray, list[np.ndarray]]:
    truth = rng.normal(size=n)
    return truth, [truth + spread * rng.normal(size=n) for spread in (1.0, 0.8)]


def labels(rng: np.random.Generator, n: int) -> tuple[np.ndarray, list[np.ndarray]]:
    truth = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    return truth, [np.where(rng.random(n) < right, truth, rng.integers(0, 3, n)) for right in (0.5, 0.6)]


def scores(rng: np.random.Generator, n: int) -> tuple[np.ndarray, list[np.ndarray]]:
    truth = (rng.random(n) < 0.3).astype(int)
    shared = rng.normal(size=n)
    return truth, [1 / (1 + np.exp(-(shared + rng.normal(size=n) + d * truth - 1))) for d in (1.0, 1.6)]


def jackknife_error(truth: np.ndarray, sides: Sequence[np.ndarray], value: Values) -> float:
    left = []
    for row in range(len(truth)):
        kept = np.arange(len(truth)) != row
        left.append(value(truth[kept], sides[1][kept]) - value(truth[kept], sides[0][kept]))
    n = len(left)
    return math.sqrt((n - 1) / n * np.square(np.array(left) - np.mean(left)).sum())


@pytest.mark.parametrize(
    ("metric", "value", "draw"),
    [("f1_macro", f1_macro, labels), ("r2", r_squared, numbers), ("root_mean_squared_error", rmse, numbers)],
)
def test_the_interval_is_that_of_leaving_each_example_out(metric: str, value: Values, draw: Any) -> None:
    truth, sides = draw(np.random.default_rng(3), 150)
    [pair] = compared(truth, sides, metric).pairs
    assert pair["difference"] == pytest.approx(value(truth, sides[1]) - value(truth, sides[0]), abs=1e-12)
    error = jackknife_error(truth, sides, value)
    half = (pair["high"] - pair["low"]) / 2
    assert 1.96 * error < half < 2.2 * error
    assert (pair["won"], pair["tied"], pair["lost"], pair["interval"]) == (None, None, None, "jackknife")


def test_the_error_of_a_difference_of_areas_is_delong_s() -> None:
    truth, sides = scores(np.random.default_rng(1), 300)
    [pair] = compared(truth, sides, "roc_auc").pairs
    positive, negative = truth == 1, truth == 0
    components = []
    for score in sides:
        wins = score[positive][:, None] - score[negative][None]
        wins = (wins > 0) + 0.5 * (wins == 0)
        components.append((wins.mean(axis=1), wins.mean(axis=0)))
    of_positive, of_negative = (components[1][part] - components[0][part] for part in (0, 1))
    variance = of_positive.var(ddof=1) / positive.sum() + of_negative.var(ddof=1) / negative.sum()
    half = (pair["high"] - pair["low"]) / 2
    assert pair["difference"] == pytest.approx(of_positive.mean(), abs=1e-12)
    assert half == pytest.approx(1.97 * math.sqrt(variance), rel=0.03)
    assert pair["p"] == pytest.approx(math.erfc(pair["difference"] / math.sqrt(2 * variance)), abs=0.01)


@pytest.mark.parametrize("label", [None, "p"])
def test_few_positive_rows_have_few_degrees_of_freedom(label: str | None) -> None:
    rng, truth, keys = np.random.default_rng(2), (np.arange(100) < 4).astype(int), np.arange(100)
    sides, metric = [rng.normal(size=100) + truth for _ in "ab"], make_metric("roc_auc", label=label)
    left, components = [], []
    for score in sides:
        scores = np.column_stack([-score, score])
        columns = metric.prepare({"truth": truth, "scores": scores, LABELS: np.array(["n", "p"], np.object_)})
        left.append(metric.leave_out({**columns, CLUSTER: keys}, np.zeros(100, np.int64), 1))
        wins = score[truth == 1][:, None] > score[truth == 0][None]
        components.append((wins.mean(axis=1), wins.mean(axis=0)))
    change = paired_change(left[0], left[1], metric, 100)
    parts = [np.var(components[1][part] - components[0][part], ddof=1) / n for part, n in ((0, 4), (1, 96))]
    assert change.error == pytest.approx(math.sqrt(sum(parts)), rel=0.01)
    assert change.degrees <= sum(parts) ** 2 / (parts[0] ** 2 / 3 + parts[1] ** 2 / 95) + 1e-9
    assert change.rests_on == pytest.approx(4)
    low, high = change.interval(0.95)
    assert -1 <= low < change.value < high <= 1


@pytest.mark.parametrize(
    ("metric", "value", "draw"),
    [
        ("f1_macro", f1_macro, labels),
        ("roc_auc", auc, scores),
        ("r2", r_squared, numbers),
    ],
)
def test_the_interval_is_as_wide_as_the_paired_bootstrap_spreads(metric: str, value: Values, draw: Any) -> None:
    rng = np.random.default_rng(7)
    truth, sides = draw(rng, 400)
    [pair] = compared(truth, sides, metric).pairs
    drawn = []
    for _ in range(400):
        rows = rng.integers(0, 400, 400)
        drawn.append(value(truth[rows], sides[1][rows]) - value(truth[rows], sides[0][rows]))
    assert pair["difference"] == pytest.approx(value(truth, sides[1]) - value(truth, sides[0]), abs=1e-9)
    assert (pair["high"] - pair["low"]) / (2 * 1.97 * np.std(drawn)) == pytest.approx(1, abs=0.15)


def test_calibration_is_compared_by_the_error_without_bias() -> None:
    rng = np.random.default_rng(11)
    logit = rng.normal(size=1000)
    truth = (rng.random(1000) < 1 / (1 + np.exp(-logit))).astype(int)
    sides = [1 / (1 + np.exp(-logit * factor + rng.normal(scale=0.1, size=1000))) for factor in (1.6, 3.0)]
    made = [evaluand.evaluate(truth, scores=side, metrics="debiased_calibration_error") for side in sides]
    by = "debiased_calibration_error"
    [pair] = compare(*made, metrics=by).pairs
    errors = [math.sqrt(squared_calibration_error(truth, side)) for side in sides]
    assert [pair["value_a"], pair["value_b"]] == pytest.approx(errors, abs=1e-9)
    drawn = []
    for _ in range(300):
        rows = rng.integers(0, 1000, 1000)
        distances = [of_bins(truth[rows], side[rows]) for side in sides]
        drawn.append(distances[1] - distances[0])
    assert (pair["high"] - pair["low"]) / (2 * 1.97 * np.std(drawn)) == pytest.approx(1, abs=0.2)
    assert pair["p"] < 0.001
    [back] = compare(made[1], made[0], metrics=by).pairs
    assert [back["low"], back["high"], back["p"]] == pytest.approx([-pair["high"], -pair["low"], pair["p"]])
    [same] = compare(
        made[0], evaluand.evaluate(truth, scores=sides[0].copy(), metrics="debiased_calibration_error"), metrics=by
    ).pairs
    assert (same["difference"], same["p"]) == (0.0, 1.0)
    assert same["low"] < 0 < same["high"]
    message = "expected_calibration_error has no differences with an interval; compare by debiased_calibration_error"
    with pytest.raises(SpecError, match=message):
        compare(*made, metrics="expected_calibration_error")


def of_bins(truth: np.ndarray, score: np.ndarray) -> float:
    """The root of the mean squared distance of ten bins of equally many rows."""
    parts = np.array_split(np.argsort(score, kind="stable"), 10)
    return math.sqrt(sum(len(rows) * (score - truth)[rows].mean() ** 2 for rows in parts) / len(truth))


def test_p_is_where_the_interval_ends_at_0() -> None:
    for draw, metric in ((labels, "f1_macro"), (numbers, "r2"), (scores, "roc_auc")):
        truth, sides = draw(np.random.default_rng(5), 120)
        p = compared(truth, sides, metric).pairs[0]["p"]
        [pair] = compared(truth, sides, metric, confidence=1 - p).pairs
        assert min(abs(pair["low"]), abs(pair["high"])) < 1e-6


def test_the_order_of_examples_and_systems_does_not_matter() -> None:
    truth, sides = labels(np.random.default_rng(2), 100)
    store, order = MemoryStore(), np.random.default_rng(3).permutation(100)

    def evaluated(name: str, side: np.ndarray, rows: Sequence[int]) -> Evaluation:
        data = Dataset.from_rows([{"input": str(n), "expected": f"c{truth[n]}"} for n in rows])
        run = Runner(store).run(lambda text: f"c{side[int(text)]}", data)
        return Evaluator(store).evaluate(run, {"prediction": "prediction"}, name=name)

    a, b = evaluated("a", sides[0], range(100)), evaluated("b", sides[1], range(100))
    shuffled = evaluated("c", sides[1], order.tolist())
    metric = make_metric("f1_macro")
    [one], [other], [back] = (compare(*both, metrics=metric).pairs for both in ((a, b), (a, shuffled), (b, a)))
    for name in ("difference", "low", "high", "p", "n_used"):
        assert one[name] == pytest.approx(other[name], abs=1e-12)
    assert [back["low"], back["high"], back["p"]] == pytest.approx([-one["high"], -one["low"], one["p"]])


def test_equal_systems_have_an_interval_that_allows_for_unseen_changes() -> None:
    truth, [side, _] = labels(np.random.default_rng(2), 200)
    [pair] = compared(truth, [side, side.copy()], "f1_macro").pairs
    assert (pair["difference"], pair["p"]) == (0.0, 1.0)
    assert -0.1 < pair["low"] < -0.01
    assert 0.01 < pair["high"] < 0.1


def test_a_value_that_one_example_decides_has_no_interval_but_a_reason() -> None:
    truth = np.array([1, *[0] * 20])
    sides = [np.linspace(0.9, 0.1, 21), np.linspace(0.1, 0.9, 21)]
    [pair] = compared(truth, sides, "roc_auc").pairs
    assert pair["difference"] == -1.0
    assert (pair["low"], pair["high"], pair["p"]) == (None, None, None)
    assert pair["reason"] == "no interval: without a few rows a side has no value"
    [pair] = compared(np.zeros(20, int), [sides[0][:20], sides[1][:20]], "roc_auc").pairs
    assert pair["difference"] is None
    assert pair["reason"] == "the metric is undefined for these rows of a and b"


@pytest.mark.parametrize("metric", ["max_error"])
def test_largest_values_have_no_differences(metric: str) -> None:
    truth, sides = numbers(np.random.default_rng(1), 20)
    with pytest.raises(SpecError, match="max_error has no differences with an interval"):
        compared(truth, sides, metric)


# Gates


def graded(store: MemoryStore, name: str, truth: np.ndarray, side: np.ndarray, group: np.ndarray) -> Evaluation:
    rows = [{"input": str(n), "expected": f"c{truth[n]}", "sex": f"s{group[n]}"} for n in range(len(truth))]
    run = Runner(store).run(lambda text: f"c{side[int(text)]}", Dataset.from_rows(rows, attributes="sex"))
    return Evaluator(store).evaluate(run, {"prediction": "prediction"}, name=name)


def biased(seed: int, n: int) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    """Labels, those of a system that treats two groups alike and of one that does not, and the groups."""
    rng = np.random.default_rng(seed)
    truth, group = rng.integers(0, 2, n), rng.integers(0, 2, n)
    fair = np.where(rng.random(n) < 0.2, 1 - truth, truth)
    unfair = np.where(rng.random(n) < np.where(group == 1, 0.35, 0.05), 1 - truth, truth)
    return truth, [fair, unfair], group


def rates(truth: np.ndarray, side: np.ndarray, group: np.ndarray) -> float:
    """Equalized odds: the larger of the differences of true and of false positive rates."""
    found = []
    for of in (0, 1):
        each = [side[(truth == of) & (group == g)].mean() for g in (0, 1)]
        found.append(abs(each[0] - each[1]))
    return float(max(found))


def test_a_disparity_is_compared_with_that_of_a_baseline() -> None:
    store = MemoryStore()
    truth, sides, group = biased(4, 600)
    fair, unfair = (graded(store, name, truth, side, group) for name, side in zip(("a", "b"), sides, strict=True))
    odds = [
        Measure("prediction", make_metric(name, label="c1"), ("sex",), ("difference",), "equalized_odds")
        for name in ("tpr", "fpr")
    ]
    gate = "equalized_odds difference by sex better than base"
    [found] = check_gates([gate], {"mine": fair, "base": unfair}, "base", measures=odds)
    [facts] = found.facts["values"]
    expected = rates(truth, sides[0], group) - rates(truth, sides[1], group)
    assert found.passed
    assert facts["difference"] == pytest.approx(expected, abs=1e-12)
    rng, drawn = np.random.default_rng(1), []
    for _ in range(400):
        rows = rng.integers(0, 600, 600)
        drawn.append(rates(truth[rows], sides[0][rows], group[rows]) - rates(truth[rows], sides[1][rows], group[rows]))
    above, below = facts["high"] - facts["difference"], facts["difference"] - facts["low"]
    assert above == pytest.approx(1.97 * np.std(drawn), rel=0.2)
    assert below > above  # the fair system may be unfair by chance alone
    [found] = check_gates([gate], {"mine": unfair, "base": fair}, "base", measures=odds)
    assert not found.passed
    [found] = check_gates(["accuracy ratio by sex not worse than base by 0.1"], {"mine": fair, "base": unfair}, "base")
    assert found.passed
    with pytest.raises(SpecError, match="kind 'max' has no difference with an interval; take difference or ratio"):
        check_gates(["accuracy max by sex better than base"], {"mine": fair, "base": unfair}, "base")


def test_groups_below_the_declared_size_count_in_no_gate_on_a_disparity() -> None:
    """Six rows of a third group would hide what thousands show, and no difference of two rates exceeds 1."""
    store, rng = MemoryStore(), np.random.default_rng(8)
    group = np.array(["a"] * 1500 + ["b"] * 800 + ["tiny"] * 6)
    truth = rng.integers(0, 2, len(group))
    wrong = np.where(group == "b", [[0.3], [0.1]], 0.1)
    wrong[0, group == "tiny"] = 0.9
    sides = [np.where(rng.random(len(group)) < each, 1 - truth, truth) for each in wrong]
    unfair, fair = (graded(store, name, truth, side, group) for name, side in zip(("a", "b"), sides, strict=True))
    rules = ["fpr difference by sex better than base", "fpr difference by sex <= 0.3"]
    without, of_all = (
        [Measure("prediction", make_metric("fpr", label="c1"), ("sex",), ("difference",), rules=each)]
        for each in (read_rules([("sex",)], smallest=30), None)
    )
    [better, _, absolute] = check_gates(
        rules, {"fair": fair, "unfair": unfair, "base": unfair}, "base", measures=without
    )[:3]
    assert better.passed
    assert absolute.passed
    assert "too few rows, so not judged: sex=stiny" in better.message
    [facts] = better.facts["values"]
    fprs = [[np.mean(side[(group == name) & (truth == 0)]) for name in ("a", "b")] for side in (sides[1], sides[0])]
    assert facts["difference"] == pytest.approx(np.ptp(fprs[0]) - np.ptp(fprs[1]))
    [better] = check_gates(rules[:1], {"fair": fair, "base": unfair}, "base", measures=of_all)
    assert "few rows: sex=stiny" in better.message
    [facts] = better.facts["values"]
    assert -1 <= facts["low"] <= facts["high"] <= 1


def test_ratios_are_compared_on_logarithms() -> None:
    group, chosen = np.arange(400) % 2, [np.zeros(400), np.zeros(400)]
    for side, counts in zip(chosen, ((160, 40), (160, 80)), strict=True):
        for of, count in enumerate(counts):
            side[np.flatnonzero(group == of)[:count]] = 1
    a, b = (left_out(side, group) for side in chosen)
    change = disparity_change([a], [b], "ratio", 400)
    assert (change.a, change.b) == pytest.approx((0.25, 0.5))
    off = [np.log(change.without_a), np.log(change.without_b)]
    errors = [math.sqrt(399 / 400 * np.square(one - one.mean()).sum()) for one in off]
    together, t = np.corrcoef(*off)[0, 1], float(t_quantile(0.95, np.array([change.degrees]))[0])
    down, up = 0.5 - 0.5 * math.exp(-t * errors[1]), 0.25 * math.exp(t * errors[0]) - 0.25
    low, high = change.interval(0.95)
    assert low == pytest.approx(0.25 - math.sqrt(down**2 + up**2 - 2 * together * down * up), abs=0.01)
    back = disparity_change([b], [a], "ratio", 400)
    assert back.interval(0.95) == pytest.approx((-high, -low))
    assert back.p == pytest.approx(change.p)
    low, high = change.interval(1 - change.p)
    assert min(abs(low), abs(high)) < 1e-6


def left_out(side: np.ndarray, group: np.ndarray) -> LeftOut:
    """The rates of two groups, and those without each row."""
    rows = np.arange(len(side))
    without = [side[(group == of) & (rows != row)].mean() for row, of in enumerate(group.tolist())]
    rates = [side[group == of].mean() for of in (0, 1)]
    return LeftOut(np.array(rates), rows, group, np.array(without), len(side), np.ones(2))


def test_equality_needs_both_bounds_within_the_margin() -> None:
    store = MemoryStore()
    truth, sides, group = biased(4, 600)
    a = graded(store, "a", truth, sides[0], group)
    b = graded(store, "b", truth, np.where(np.arange(600) % 50 == 0, 1 - sides[0], sides[0]), group)
    c = graded(store, "c", truth, sides[1], group)
    for metric in ("accuracy", "f1_macro"):
        gates = [f"{metric} equal to base within {margin}" for margin in (0.05, 0.01)]
        near, far = check_gates(gates, {"mine": b, "base": a}, "base")
        assert near.passed
        assert not far.passed
        [facts] = near.facts["values"]
        [bounds] = [compare(a, b, metrics=make_metric(metric), confidence=0.9).pairs]
        assert -0.05 < bounds[0]["low"] < bounds[0]["high"] < 0.05
        assert facts["low"] < facts["difference"] < facts["high"]
    [found] = check_gates(["f1_macro better than base"], {"mine": a, "base": c}, "base")
    assert not found.passed
    [same] = check_gates(["accuracy equal to base within 0.01"], {"mine": a, "base": a}, "base")
    assert same.passed
