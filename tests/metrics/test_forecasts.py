"""Errors of forecasts, against their definitions written out, on random cases."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from statistics import NormalDist
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.random_cases import Case, check_cases

from evaluand.aggregation.groups import MetricRow, summarise
from evaluand.core.errors import DataError, SpecError
from evaluand.evaluation.scorers.forecast import Forecast
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.forecasts import (
    Crps,
    MeanAbsoluteScaledError,
    MeanQuantileLoss,
    SymmetricMeanAbsolutePercentageError,
    WeightedAbsolutePercentageError,
    seasonal_naive_scale,
)

NUMBERS = pa.list_(pa.float64())
SCHEMA = {
    **dict.fromkeys(("truth", "prediction", "scale", "_weight_"), pa.float64()),
    **dict.fromkeys(("samples", "levels", "quantiles"), NUMBERS),
}


def drawn(n_cases: int, seed: int) -> list[Case]:
    """Cases of 1 to 12 rows; with ties, zeros, scales of 0 and numbers of samples that differ."""
    generator = np.random.default_rng(seed)
    levels = sorted(generator.choice(np.arange(1, 20) / 20, 4, replace=False).tolist())
    cases = []
    for number in range(n_cases):
        n = int(generator.integers(1, 13))
        truth = generator.integers(-3, 4, n) / 2 if number % 2 else generator.normal(size=n) * 10
        samples = [
            (generator.integers(-4, 5, k) / 2 if number % 2 else generator.normal(size=k) * 5).tolist()
            for k in generator.integers(1, 9, n)
        ]
        cases.append(
            {
                "truth": truth,
                "prediction": truth + generator.integers(-2, 3, n) / 2,
                "scale": generator.integers(0 if number % 10 == 0 else 1, 9, n) / 4,
                "samples": samples,
                "levels": [levels] * n,
                "quantiles": [sorted(generator.normal(size=len(levels)).tolist()) for _ in range(n)],
                "_weight_": generator.exponential(size=n),
            }
        )
    return cases


def mean(number: Callable[[Case, int], float], weighted: bool, case: Case) -> float:
    weight = case["_weight_"] if weighted else np.ones(len(case["truth"]))
    return float(sum(w * number(case, row) for row, w in enumerate(weight)) / sum(weight))


def smape(case: Case, row: int) -> float:
    truth, prediction = case["truth"][row], case["prediction"][row]
    return 2 * abs(truth - prediction) / (abs(truth) + abs(prediction)) if truth or prediction else 0.0


def mase(case: Case, row: int) -> float:
    scale = case["scale"][row]
    return abs(case["truth"][row] - case["prediction"][row]) / scale if scale else math.nan


def quantile_loss(case: Case, row: int) -> float:
    truth, pairs = case["truth"][row], zip(case["levels"][row], case["quantiles"][row], strict=True)
    return float(np.mean([level * (truth - q) if truth > q else (1 - level) * (q - truth) for level, q in pairs]))


def crps_of_samples(case: Case, row: int) -> float:
    """∫ (F(x) − 1[x ≥ truth])² dx, piece by piece between the jumps."""
    truth, samples = case["truth"][row], np.array(case["samples"][row])
    borders = np.sort(np.append(samples, truth))
    shares = [(samples <= x).mean() - (x >= truth) for x in borders[:-1]]
    return float(np.square(shares) @ np.diff(borders))


def fair_crps(case: Case, row: int) -> float:
    truth, samples = case["truth"][row], case["samples"][row]
    n = len(samples)
    if n == 1:
        return math.nan
    between = sum(abs(a - b) for a in samples for b in samples) / (2 * n * (n - 1))
    return float(np.mean(np.abs(np.array(samples) - truth)) - between)


def wape(weighted: bool, case: Case) -> float:
    weight = case["_weight_"] if weighted else np.ones(len(case["truth"]))
    total = float(weight @ np.abs(case["truth"]))
    return float(weight @ np.abs(case["truth"] - case["prediction"])) / total if total else math.nan


MEANS: dict[type[Metric], tuple[dict[str, Any], Callable[[Case, int], float]]] = {
    SymmetricMeanAbsolutePercentageError: ({}, smape),
    MeanAbsoluteScaledError: ({}, mase),
    MeanQuantileLoss: ({}, quantile_loss),
    Crps: ({}, crps_of_samples),
}


def check(n_cases: int) -> None:
    for weighted in (False, True):
        cases = drawn(n_cases, int(weighted))
        for kind, (parameters, reference) in MEANS.items():
            defined = check_cases(
                kind(weighted=weighted, **parameters), cases, partial(mean, reference, weighted), SCHEMA
            )
            assert defined > n_cases / 2
        fair = Crps(fair=True, weighted=weighted)
        assert check_cases(fair, cases, partial(mean, fair_crps, weighted), SCHEMA, 1e-11) > n_cases / 50
        of_quantiles = Crps(source="quantiles", weighted=weighted)
        assert check_cases(of_quantiles, cases, lambda c, w=weighted: 2 * mean(quantile_loss, w, c), SCHEMA) == n_cases  # type: ignore[misc]
        ratio = WeightedAbsolutePercentageError(weighted=weighted)
        assert check_cases(ratio, cases, partial(wape, weighted), SCHEMA) > n_cases / 2


def test_random_cases_have_the_values_of_the_definitions() -> None:
    check(25)


@pytest.mark.slow
def test_two_thousand_random_cases_have_the_values_of_the_definitions() -> None:
    check(1000)


def table(**columns: Any) -> pa.Table:
    n = len(columns["truth"])
    kinds = {name: pa.array(column, SCHEMA.get(name)) for name, column in columns.items()}
    return pa.table({"_index_": np.arange(n), "status": ["scored"] * n, **kinds})


def one(metric: Metric, **columns: Any) -> MetricRow:
    [row] = summarise([table(**columns)], [metric])
    return row


def test_samples_of_a_normal_distribution_approach_its_integral() -> None:
    normal = NormalDist()
    exact = 0.7 * (2 * normal.cdf(0.7) - 1) + 2 * normal.pdf(0.7) - 1 / math.sqrt(math.pi)  # Gneiting & Raftery (21)
    levels = ((np.arange(500) + 0.5) / 500).tolist()
    quantiles = [normal.inv_cdf(level) for level in levels]
    assert one(Crps(), truth=[0.7], samples=[quantiles]).value == pytest.approx(exact, abs=1e-3)
    columns = {"levels": [levels], "quantiles": [quantiles]}
    assert one(Crps(source="quantiles"), truth=[0.7], **columns).value == pytest.approx(exact, abs=1e-3)


def test_groups_are_series_and_horizons() -> None:
    case = drawn(3, 5)[1]
    n = len(case["truth"])
    shard = table(**{k: v for k, v in case.items() if k != "scale"}, scale=np.ones(n), series=np.arange(n) % 2)
    rows = summarise([shard], [MeanAbsoluteScaledError()], [(), ("series",)])
    errors = np.abs(case["truth"] - case["prediction"])
    assert [row.value for row in rows] == pytest.approx([errors.mean(), errors[::2].mean(), errors[1::2].mean()])


@pytest.mark.parametrize("metric", [kind(**parameters) for kind, (parameters, _) in MEANS.items()])
def test_shards_merge_to_the_whole(metric: Metric) -> None:
    case = next(case for case in drawn(30, 3) if len(case["truth"]) == 12 and all(case["scale"]))
    whole = table(**case)
    [one], [other] = (summarise(parts, [metric]) for parts in ([whole], [whole.slice(0, 5), whole.slice(5)]))
    assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high), abs=1e-12)


@pytest.mark.parametrize(
    ("metric", "columns", "why"),
    [
        (MeanAbsoluteScaledError(), {"prediction": [1.0, 2.0], "scale": [0.0, None]}, "2 rows have no scale above 0"),
        (WeightedAbsolutePercentageError(), {"truth": [0.0, 0.0], "prediction": [1.0, 2.0]}, "all truths are 0"),
        (Crps(fair=True), {"samples": [[1.0], [1.0, 2.0]]}, "1 row has a single sample, which has no fair score"),
    ],
)
def test_what_is_undefined_has_a_reason_and_no_value(metric: Metric, columns: Any, why: str) -> None:
    row = one(metric, **{"truth": [1.0, 2.0], **columns})
    assert math.isnan(row.value)
    assert why in str(row.reason)


@pytest.mark.parametrize(
    ("metric", "columns", "message"),
    [
        (MeanAbsoluteScaledError(), {"prediction": [1.0, 2.0], "scale": [1.0, -2.0]}, "_index_ 1: scale is -2"),
        (Crps(), {"samples": [[1.0], None]}, "_index_ 1: is scored but has no samples"),
        (
            MeanQuantileLoss(),
            {"levels": [[0.1, 0.9], [0.1, 0.8]], "quantiles": [[1.0, 2.0], [1.0, 2.0]]},
            "_index_ 1: has quantiles of other levels than the first row; choose levels",
        ),
        (
            MeanQuantileLoss(levels=[0.1]),
            {"levels": [[0.1, 0.9], [0.2]], "quantiles": [[1.0, 2.0], [1.0]]},
            "_index_ 1: lacks a quantile of the levels 0.1",
        ),
        (
            Crps(source="quantiles"),
            {"levels": [[0.1, 0.9], [0.5]], "quantiles": [[1.0, 2.0], [1.0]]},
            "^_index_ 1: has quantiles of other levels than the first row; crps of quantiles needs the same in ",
        ),
        (
            Crps(source="quantiles"),
            {"levels": [[0.1], [1.5]], "quantiles": [[1.0], [1.0]]},
            "_index_ 1: has a quantile whose level does not lie between 0 and 1",
        ),
        (
            Crps(source="quantiles"),
            {"levels": [[0.1], [0.1, 0.2]], "quantiles": [[1.0], [1.0]]},
            "_index_ 1: has quantiles without a level, or levels without a quantile",
        ),
    ],
)
def test_what_is_no_forecast_is_refused_by_row(metric: Metric, columns: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        one(metric, truth=[1.0, 2.0], **columns)


def test_a_choice_of_levels_leaves_out_the_others() -> None:
    columns = {"levels": [[0.1, 0.9], [0.1, 0.8]], "quantiles": [[1.0, 2.0], [1.0, 2.0]]}
    assert one(MeanQuantileLoss(levels=[0.1]), truth=[3.0, 0.0], **columns).value == pytest.approx((0.2 + 0.9) / 2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MeanAbsoluteScaledError(scale=0), "scale=0 must be a positive number"),
        (lambda: MeanQuantileLoss(levels=[0.1, 0.1]), "must be a list of distinct numbers between 0 and 1"),
        (lambda: Crps(source="points"), "source='points' must be samples or quantiles"),
        (lambda: Crps(source="quantiles", fair=True), "fair=true corrects for the number of samples"),
        (lambda: seasonal_naive_scale([1, 2], season=0), "season=0 must be an integer of at least 1"),
        (lambda: seasonal_naive_scale([1, math.nan]), "history must be a list of finite numbers"),
    ],
)
def test_parameters_are_checked(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        make()


def test_a_table_without_scales_or_samples_is_refused_with_the_way_out() -> None:
    with pytest.raises(
        SpecError, match="needs the scale of each series, which the table lacks; use the scorer forecast"
    ):
        one(MeanAbsoluteScaledError(), truth=[1.0], prediction=[2.0])
    with pytest.raises(SpecError, match="crps needs forecasts with samples, which the table lacks; use the scorer"):
        one(Crps(), truth=[1.0], prediction=[2.0])


def test_the_scale_is_the_error_of_the_seasonal_naive_forecast() -> None:
    assert seasonal_naive_scale([1, 2, 4, 7, 11], season=2) == (3 + 5 + 7) / 3
    assert math.isnan(seasonal_naive_scale([1, 2], season=2))


# The scorer


class Example:
    """The parts of an example that the scorer looks at."""

    def __init__(self, **parts: Any) -> None:
        self.input, self.expected = parts.get("input"), parts.get("expected")
        self.metadata, self.attributes = parts.get("metadata", {}), parts.get("attributes", {})


@pytest.mark.parametrize(
    ("output", "prediction", "samples", "levels", "quantiles"),
    [
        (3, 3.0, None, None, None),
        ([1, 2, 6], 2.0, [1.0, 2.0, 6.0], None, None),
        ({"quantiles": {"0.9": 8, "0.1": 3}}, None, None, [0.1, 0.9], [3.0, 8.0]),
        ({"quantiles": {"0.5": 4}, "samples": [1, 2]}, 4.0, [1.0, 2.0], [0.5], [4.0]),
        ({"prediction": 7, "samples": [1, 2]}, 7.0, [1.0, 2.0], None, None),
    ],
)
def test_a_forecast_is_a_point_quantiles_or_samples(
    output: Any, prediction: Any, samples: Any, levels: Any, quantiles: Any
) -> None:
    columns = Forecast().score(output, 5).columns
    assert columns is not None
    found = tuple(columns[name] for name in ("prediction", "samples", "levels", "quantiles"))
    assert found == (prediction, samples, levels, quantiles)
    assert Forecast(point="mean").score([1, 2, 6], 5).columns["prediction"] == 3  # type: ignore[index]


def test_the_scale_comes_from_the_example() -> None:
    example = Example(metadata={"scale": 2.5}, input={"history": [1, 2, 4, 7, 11]})
    stated, computed = Forecast(scale="metadata.scale"), Forecast(history="input.history", season=2)
    assert stated.arguments == ("output", "expected", "weight", "example")
    assert stated.score(1, 2, None, example).columns["scale"] == 2.5  # type: ignore[index]
    assert computed.score(1, 2, None, example).columns["scale"] == 5.0  # type: ignore[index]
    assert Forecast(history="input.history", season=9).score(1, 2, None, example).columns["scale"] is None  # type: ignore[index]
    with pytest.raises(DataError, match=r"the example has nothing at 'metadata.other'; name a path"):
        Forecast(scale="metadata.other").score(1, 2, None, example)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("high", "the prediction is the text 'high', not a number"),
        (math.inf, "the prediction is inf, not a finite number"),
        ({"mean": 3}, "an object without 'prediction', 'samples' or 'quantiles'"),
        ({"quantiles": {"1.5": 3}}, "the quantiles have the level '1.5'; levels lie between 0 and 1"),
        ({"quantiles": {"0.5": 3, "0.50": 3}}, "the quantiles have the level 0.5 twice"),
        ({"quantiles": [1, 2]}, "quantiles are .*, not an object level → number"),
        ([], "samples are .*, not a list of numbers"),
        ([1, "a"], "one of the samples is the text 'a', not a number"),
    ],
)
def test_what_is_no_forecast_fails_with_a_reason(output: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Forecast().score(output, 5)


def test_settings_of_the_scorer_are_checked() -> None:
    for settings, message in (
        ({"scale": "metadata.scale", "history": "input"}, "set scale or history, not both"),
        ({"season": 12}, "season needs history"),
        ({"history": "input", "season": 0}, "season is the integer 0; give an integer of at least 1"),
        ({"point": "mode"}, "point"),
    ):
        with pytest.raises(SpecError, match=message):
            Forecast(**settings)  # type: ignore[arg-type]


def test_rows_without_truth_or_answer_abstain() -> None:
    assert Forecast().score(3, None).status == "abstained"
    assert Forecast().score(None, 3).columns == {"truth": 3.0}
