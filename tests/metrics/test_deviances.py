"""Pinball loss, deviances and D², against scikit-learn on random cases."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import sklearn.metrics as sk
from support.random_cases import Case, check_cases, summarise_cases

from evaluand.core.errors import DataError, SpecError
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.correlations import RSquared
from evaluand.metrics.deviances import (
    D2AbsoluteError,
    D2Pinball,
    D2Tweedie,
    MeanGammaDeviance,
    MeanPoissonDeviance,
    MeanTweedieDeviance,
    PinballLoss,
)
from evaluand.predictions.evaluating import evaluate

COLUMNS = {"truth": pa.float64(), "prediction": pa.float64(), "_weight_": pa.float64()}


def drawn(n_cases: int, seed: int = 0) -> list[Case]:
    """Cases of 1 to 30 rows: half with few values, so with ties; some constant, some with zeros or negatives."""
    generator = np.random.default_rng(seed)
    cases = []
    for number in range(n_cases):
        n = int(generator.integers(1, 31))
        truth = generator.integers(1, 6, n) / 2 if number % 2 else generator.gamma(2.0, 2.0, n)
        prediction = truth * generator.lognormal(0, 0.5, n) if number % 4 else generator.integers(1, 6, n) / 2.0
        if number % 11 == 0:
            truth[generator.integers(n)] = 0.0
        if number % 13 == 0:
            prediction[generator.integers(n)] = -1.0
        if number % 17 == 0:
            truth[:] = 2.5
        weight = generator.integers(1, 4, n).astype(float) if number % 3 else generator.exponential(size=n)
        cases.append({"truth": truth, "prediction": prediction, "_weight_": weight})
    return cases


def of_domain(power: float, reference: Callable[..., float], case: Case, weighted: bool) -> float:
    """The reference's value, NaN where it refuses the case."""
    weight = case["_weight_"] if weighted else None
    try:
        return float(reference(case["truth"], case["prediction"], sample_weight=weight))
    except ValueError:
        return math.nan


def explained(reference: Callable[..., float], case: Case, weighted: bool) -> float:
    """The reference's value; NaN for equal truths, whose D² it calls infinite or 1, and where it refuses the case."""
    if len(set(case["truth"].tolist())) == 1:
        return math.nan
    return of_domain(0, reference, case, weighted)


LOSSES: dict[str, tuple[Metric, Any]] = {
    "pinball": (PinballLoss(), sk.mean_pinball_loss),
    "pinball 0.9": (PinballLoss(alpha=0.9), partial(sk.mean_pinball_loss, alpha=0.9)),
    "pinball 0": (PinballLoss(alpha=0), partial(sk.mean_pinball_loss, alpha=0)),
    "poisson": (MeanPoissonDeviance(), sk.mean_poisson_deviance),
    "gamma": (MeanGammaDeviance(), sk.mean_gamma_deviance),
    **{
        f"tweedie {power}": (MeanTweedieDeviance(power=power), partial(sk.mean_tweedie_deviance, power=power))
        for power in (-1.5, 0, 1, 1.5, 2, 3)
    },
    "d2 absolute": (D2AbsoluteError(), sk.d2_absolute_error_score),
    "d2 pinball": (D2Pinball(alpha=0.3), partial(sk.d2_pinball_score, alpha=0.3)),
    "d2 pinball 0.9": (D2Pinball(alpha=0.9), partial(sk.d2_pinball_score, alpha=0.9)),
    **{f"d2 {power}": (D2Tweedie(power=power), partial(sk.d2_tweedie_score, power=power)) for power in (0, 1, 1.5, 2)},
}


def check(name: str, n_cases: int) -> int:
    """Checks cases with and without weights; returns how many are defined."""
    metric, reference = LOSSES[name]
    kind = explained if name.startswith("d2") else partial(of_domain, 0)
    defined = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's about single rows
        for weighted in (False, True):
            unit = type(metric)(**{**metric.spec["parameters"], "weighted": weighted})
            own = partial(kind, reference, weighted=weighted)
            defined += check_cases(unit, drawn(n_cases, int(weighted)), own, COLUMNS, 1e-11)
    return defined


@pytest.mark.parametrize("name", LOSSES)
def test_random_cases_have_the_values_of_the_reference(name: str) -> None:
    assert check(name, 15) > 15


@pytest.mark.slow
@pytest.mark.parametrize("name", LOSSES)
def test_two_thousand_random_cases_have_the_values_of_the_reference(name: str) -> None:
    assert check(name, 1000) > 1000


def test_explained_squared_error_is_r_squared_with_its_interval() -> None:
    [case] = [case for case in drawn(40) if len(case["truth"]) == 30][:1]
    row, other = (summarise_cases(metric, [case], COLUMNS)[0] for metric in (D2Tweedie(), RSquared()))
    assert (row.value, row.low, row.high) == pytest.approx((other.value, other.low, other.high), rel=1e-9)


@pytest.mark.parametrize(
    ("metric", "truth", "prediction", "why"),
    [
        (MeanPoissonDeviance(), [-1.0, 2.0], [1.0, 1.0], "1 row has a truth below 0"),
        (MeanGammaDeviance(), [0.0, 2.0], [1.0, 0.0], "2 rows have a truth or a prediction that is not positive"),
        (MeanTweedieDeviance(power=-1), [0.0, 2.0], [1.0, 0.0], "1 row has a prediction that is not positive"),
        (MeanTweedieDeviance(power=1.5), [-1.0], [1.0], "1 row has a truth below 0 or a prediction that is not"),
        (D2Tweedie(power=2), [0.0, 2.0], [1.0, 1.0], "1 row has a truth that is not positive or a prediction"),
        (D2AbsoluteError(), [0.1, 0.1, 0.1], [0.1, 0.2, 0.3], "all truths are one value"),
        (D2Tweedie(), [2.0], [2.0], "all truths are one value"),
    ],
)
def test_what_is_undefined_has_a_reason_and_no_value(metric: Metric, truth: Any, prediction: Any, why: str) -> None:
    row = evaluate(truth, prediction, metrics=metric).rows[0]
    assert math.isnan(row.value)
    assert why in str(row.reason)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PinballLoss(alpha=1.5), "pinball_loss: alpha=1.5 must be a number from 0 to 1"),
        (lambda: D2Pinball(alpha=True), "d2_pinball: alpha=True must be a number from 0 to 1"),
        (lambda: MeanTweedieDeviance(power=0.5), "power=0.5 must be 0 or below, or 1 or above"),
        (lambda: D2Tweedie(power=math.inf), "power=inf must be 0 or below"),
    ],
)
def test_parameters_are_checked(make: Callable[[], Metric], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        make()


@pytest.mark.parametrize("metric", [PinballLoss, D2Pinball])
def test_one_quantile_of_a_forecast_of_several_is_asked_for_by_level(metric: type[PinballLoss | D2Pinball]) -> None:
    columns = {"truth": [4.0, 5.0], "prediction": [3.0, 5.0], "quantiles": [[1.0, 3.0], None]}
    table = {name: np.array(values, object if name == "quantiles" else float) for name, values in columns.items()}
    table["_index_"] = np.arange(2)
    assert metric(alpha=0.1).columns_for([*columns]) == ("truth", "prediction", "quantiles")
    with pytest.raises(DataError, match=r"_index_ 0: forecasts several .* mean_quantile_loss with levels: \[0.1\]"):
        metric(alpha=0.1).prepare(table)
    assert metric().columns_for([*columns]) == ("truth", "prediction")  # the point is the median
