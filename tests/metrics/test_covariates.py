"""Strengths at equal length, style or position: Bradley–Terry with covariates."""

from __future__ import annotations

import math

import numpy as np
import pytest
import statsmodels.api as sm

from evaluand.core.errors import SpecError
from evaluand.metrics.ratings.bradley_terry import fit_bradley_terry
from evaluand.metrics.ratings.counts import MatchRows, count_matches
from evaluand.metrics.ratings.covariates import fit_with_covariates, relative_differences
from evaluand.metrics.ratings.strength_intervals import standard_errors


def draw(examples: int, effects: tuple[float, ...], seed: int, tie_share: float = 0.2) -> MatchRows:
    """All pairs of three systems, in both orders; covariates are the position, and what system 0 has more of."""
    random = np.random.default_rng(seed)
    strength = np.array([0.2, 0.3, -0.5])
    a, b, order = (np.tile(each, examples) for each in ([0, 0, 1] * 2, [1, 2, 2] * 2, [1] * 3 + [-1] * 3))
    cluster = np.repeat(np.arange(examples), 6)
    amount = random.normal([[1.0], [0.0], [0.0]], 1.0, (len(effects) - 1, 3, examples))
    columns = [order, *(each[a, cluster] - each[b, cluster] for each in amount)]
    covariates = np.stack(columns, axis=1).astype(np.float64)
    shared = random.normal(0, 0.7, (3, examples))
    log_odds = strength[a] - strength[b] + covariates @ np.array(effects) + shared[a, cluster] - shared[b, cluster]
    outcome = (random.random(len(a)) < 1 / (1 + np.exp(-log_odds))).astype(np.float64)
    outcome[random.random(len(a)) < tie_share] = 0.5
    return MatchRows.read(a, b, outcome, cluster, systems=3, covariates=covariates)


def test_a_fit_equals_clustered_logistic_regression() -> None:
    rows = draw(60, (0.4, 0.8, -0.3), seed=0)
    design = np.column_stack([(rows.a[:, None] == [0, 1]) * 1.0 - (rows.b[:, None] == [0, 1]), rows.covariates])
    model = sm.GLM(rows.outcome, design, family=sm.families.Binomial())
    theirs = model.fit(cov_type="cluster", cov_kwds={"groups": rows.cluster, "use_correction": False})
    ours = fit_with_covariates(rows, ["position", "length", "headings"])
    assert ours.strength[:2] - ours.strength[2] == pytest.approx(theirs.params[:2], abs=1e-7)
    assert ours.strength.sum() == pytest.approx(0, abs=1e-9)
    assert ours.coefficient == pytest.approx(theirs.params[2:], abs=1e-7)
    error = np.sqrt(np.diagonal(theirs.cov_params()) * 60 / 59)
    assert ours.coefficient_error == pytest.approx(error[2:], rel=1e-6)
    assert ours.difference_error[2, :2] == pytest.approx(error[:2], rel=1e-6)
    assert (ours.examples, ours.reasons) == (60, (None, None, None))
    assert ours.quantile(0.95) == pytest.approx(2.001, abs=1e-3)


def test_without_covariates_strengths_are_those_of_bradley_terry() -> None:
    rows = draw(30, (0.0,), seed=1)
    plain = MatchRows.read(rows.a, rows.b, rows.outcome, rows.cluster)
    ours, other = fit_with_covariates(plain, []), fit_bradley_terry(count_matches(plain))
    assert ours.strength == pytest.approx(other.strength, abs=1e-9)
    assert ours.strength_error == pytest.approx(standard_errors(plain, other).strength, rel=1e-9)
    ours, other = fit_with_covariates(plain, [], penalty=3.0), fit_bradley_terry(count_matches(plain), penalty=3.0)
    assert ours.strength == pytest.approx(other.strength, abs=1e-9)
    assert ours.strength_error == pytest.approx(standard_errors(plain, other).strength, rel=1e-9)


def test_a_biased_judge_is_seen_through() -> None:
    """The judge favours the longer answer and the first; system 0 writes long ones and looks best, but 1 is."""
    rows = draw(1500, (0.5, 0.8), seed=2, tie_share=0.0)
    naive = fit_bradley_terry(count_matches(rows)).strength
    ours = fit_with_covariates(rows, ["position", "length"])
    assert naive.argmax() == 0
    assert ours.strength.argmax() == 1
    attenuated = 1 / math.sqrt(1 + 2 * 0.7**2 / 1.7**2)  # by what examples share beyond the covariates
    limit = 4 * ours.quantile(0.95) / 2
    assert np.abs(ours.strength - np.array([0.2, 0.3, -0.5]) * attenuated).max() < limit * ours.strength_error.max()
    assert ours.coefficient == pytest.approx(np.array([0.5, 0.8]) * attenuated, abs=0.1)


def test_units_of_covariates_change_only_their_coefficients() -> None:
    rows = draw(40, (0.3, 0.5), seed=3)
    scaled = MatchRows.read(
        rows.a, rows.b, rows.outcome, rows.cluster, covariates=rows.covariates * np.array([1.0, 1e6])
    )
    one, other = (fit_with_covariates(each, ["position", "length"]) for each in (rows, scaled))
    assert one.strength == pytest.approx(other.strength, abs=1e-9)
    assert one.coefficient == pytest.approx(other.coefficient * [1.0, 1e6], rel=1e-8)
    assert one.coefficient_error == pytest.approx(other.coefficient_error * [1.0, 1e6], rel=1e-8)


def test_sides_may_be_swapped() -> None:
    rows = draw(40, (0.3, 0.5), seed=3)
    swapped = MatchRows.read(rows.b, rows.a, 1 - rows.outcome, rows.cluster, covariates=-rows.covariates)
    one, other = (fit_with_covariates(each, ["position", "length"]) for each in (rows, swapped))
    assert one.strength == pytest.approx(other.strength, abs=1e-9)
    assert one.coefficient == pytest.approx(other.coefficient, abs=1e-9)


def test_covariates_without_an_effect_of_their_own_are_named() -> None:
    rows = draw(20, (0.3, 0.5), seed=4)
    system = np.array([1.0, 2.0, 5.0])
    columns = [rows.covariates, system[rows.a] - system[rows.b], rows.covariates[:, 1] * 3, np.zeros(len(rows))]
    wider = MatchRows.read(rows.a, rows.b, rows.outcome, rows.cluster, covariates=np.column_stack(columns))
    fit = fit_with_covariates(wider, ["position", "length", "price", "words", "headings"])
    assert fit.reasons == (
        None,
        None,
        "price follows from which systems play, position, length, so its effect cannot be separated",
        "words follows from which systems play, position, length, so its effect cannot be separated",
        "headings is equal on both sides of every match",
    )
    assert np.isnan(fit.coefficient).tolist() == [False, False, True, True, True]
    assert fit.strength == pytest.approx(fit_with_covariates(rows, ["position", "length"]).strength, abs=1e-9)


def test_systems_without_a_strength_are_left_out() -> None:
    rows = draw(20, (0.3,), seed=5)
    more = MatchRows.read(
        [*rows.a, 3, 3],
        [*rows.b, 0, 1],
        [*rows.outcome, 1.0, 1.0],
        [*rows.cluster, 1, 2],
        covariates=[*rows.covariates[:, 0], 1, 1],
    )
    fit = fit_with_covariates(more, ["position"])
    assert fit.rated.tolist() == [True, True, True, False]
    assert fit.strength[:3] == pytest.approx(fit_with_covariates(rows, ["position"]).strength, abs=1e-9)
    assert np.isnan([fit.strength[3], fit.strength_error[3]]).all()


def test_wins_that_a_covariate_explains_without_exception_have_no_estimate() -> None:
    longer = np.array([1.0, 2.0, -1.0, -3.0] * 5)
    rows = MatchRows.read([0] * 20, [1] * 20, longer > 0, range(20), covariates=longer)
    fit = fit_with_covariates(rows, ["length"])
    assert not fit.converged
    assert np.isnan(fit.strength).all()
    assert fit.reasons == (
        "wins follow from the systems and covariates without exception, so there is no finite estimate",
    )
    penalised = fit_with_covariates(rows, ["length"], penalty=1.0)
    assert penalised.coefficient[0] > 1


def test_names_are_validated() -> None:
    with pytest.raises(SpecError, match="2 covariates need as many names, not 1"):
        fit_with_covariates(draw(3, (0.3, 0.5), seed=0), ["length"])


def test_relative_differences_are_between_minus_one_and_one() -> None:
    assert relative_differences(np.array([3, 0, 0]), np.array([1, 5, 0])).tolist() == [0.5, -1.0, 0.0]
