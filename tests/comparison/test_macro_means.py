"""Means over problems, and their intervals of a paired, stratified bootstrap."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from evaluand import Dataset, Evaluator, Mean, MemoryStore, Runner, evaluate
from evaluand.comparison.macro_means import (
    REPLICATES,
    ResampledProblem,
    macro_means,
    resample_problem,
    seed_of,
)
from evaluand.comparison.pairing import pair_rows
from evaluand.evaluation.evaluator import Evaluation
from evaluand.metrics.names import make_metric
from evaluand.metrics.stats.resampling import acceleration, draw_weights, resampling_units


def problem_of(values: np.ndarray, seed: int) -> ResampledProblem:
    """A problem with the values of rows (rows × systems)."""
    n = len(values)
    weights = draw_weights(n, REPLICATES, seed)
    mean = values.mean(axis=0)
    return ResampledProblem(mean, weights @ values / n, (values - mean) / n, n)


def evaluations_of(columns: list[list[float | None]]) -> list[Evaluation]:
    """An evaluation for each system, of the scores of its rows; None is a call that failed."""
    data = Dataset.from_rows([{"input": row} for row in range(len(columns[0]))])

    def score(output: float) -> float:
        return output

    found = []
    for column in columns:

        def answer(row: int, column: list[float | None] = column) -> float:
            if (value := column[row]) is None:
                raise ValueError("no answer")
            return value

        found.append(Evaluator().evaluate(Runner().run(answer, data), {"score": score}))
    return found


def test_intervals_of_a_mean_are_nearly_those_of_the_stratified_normal_theory() -> None:
    rng = np.random.default_rng(5)
    rows = [rng.normal(each, 1 + each, (size, 2)) for each, size in ((0, 200), (1, 300), (2, 400))]
    best, found = macro_means([problem_of(each, place) for place, each in enumerate(rows)], 0.95)
    for system, each in enumerate(found):
        error = math.sqrt(sum(np.var(of[:, system], ddof=1) / len(of) for of in rows)) / 3
        assert each.value == pytest.approx(np.mean([of[:, system].mean() for of in rows]))
        assert (each.low, each.high) == pytest.approx(
            (each.value - 1.96 * error, each.value + 1.96 * error), abs=0.15 * error
        )
    other = found[1 - best]
    error = math.sqrt(sum(np.var(of[:, 0] - of[:, 1], ddof=1) / len(of) for of in rows)) / 3
    assert other.difference_high - other.difference_low == pytest.approx(3.92 * error, rel=0.08)


def test_the_interval_of_one_problem_is_nearly_that_of_scipy() -> None:
    values = np.random.default_rng(2).exponential(1, (400, 1))
    _, [found] = macro_means([problem_of(values, 7)], 0.9)
    expected = stats.bootstrap((values[:, 0],), np.mean, confidence_level=0.9, method="BCa", rng=1).confidence_interval
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.012)


def test_pairing_makes_the_interval_of_a_difference_narrower() -> None:
    hard = np.random.default_rng(3).normal(0, 1, 100)
    pair = np.stack([hard, hard + 0.1 + np.random.default_rng(4).normal(0, 0.1, 100)], axis=1)
    _, found = macro_means([problem_of(pair, 1)], 0.95)
    assert found[0].difference_high - found[0].difference_low < 0.2 * (found[0].high - found[0].low)
    assert found[0].difference_high < 0


def test_few_rows_give_wider_intervals_that_cover() -> None:
    covered = 0
    for trial in range(200):
        rows = [np.random.default_rng([trial, place]).normal(0, 1, (5, 1)) for place in range(4)]
        _, [found] = macro_means([problem_of(each, 97 * trial + place) for place, each in enumerate(rows)], 0.95)
        covered += found.low <= 0 <= found.high
    assert covered >= 180  # without the corrections for few rows 172 and less


def test_lower_is_better_where_the_metric_says_so() -> None:
    values = np.array([[1.0, 2.0]] * 5 + [[2.0, 3.0]] * 5)
    assert macro_means([problem_of(values, 0)], 0.95, higher_is_better=False)[0] == 0
    assert macro_means([problem_of(values, 0)], 0.95)[0] == 1


def test_one_row_and_equal_rows_have_no_interval() -> None:
    for values in (np.ones((1, 1)), np.ones((9, 1))):
        _, [found] = macro_means([problem_of(values, 0)], 0.95)
        assert math.isnan(found.low)
        assert found.value == 1


def test_draws_of_a_problem_do_not_depend_on_the_others() -> None:
    assert seed_of(0, "a") != seed_of(0, "b") != seed_of(1, "b")
    assert seed_of(0, "arithmetic") == 2059753217183747377


def test_rows_without_a_score_are_left_out_of_each_system_alone() -> None:
    evaluations = evaluations_of([[1.0, 0.0, 1.0, None], [1.0, 1.0, 0.0, 0.0]])
    found = resample_problem(evaluations, "score", Mean(range=(0, 1)), seed=0, replicates=50)
    assert found.value == pytest.approx([2 / 3, 1 / 2])
    assert found.units == 4
    assert {*np.round(found.drawn[:, 1] * 4)} <= {0.0, 1.0, 2.0, 3.0, 4.0}
    assert np.isnan(found.drawn[:, 0]).mean() < 0.1


@pytest.mark.parametrize("name", ["accuracy", "f1_macro", "mcc"])
def test_any_metric_is_computed_on_the_same_samples(name: str) -> None:
    """The value of each sample is that of the metric on its rows, drawn by hand."""
    rng, store, metric = np.random.default_rng(8), MemoryStore(), make_metric(name)
    truth, said = rng.random(30) < 0.5, rng.random((2, 30)) < 0.5
    made = [evaluate(truth, one, metrics=name).to_evaluation(store, f"s{place}") for place, one in enumerate(said)]
    found = resample_problem(made, "prediction", metric, seed=3, replicates=5)
    rows = pair_rows(made, "prediction", metric)
    units = resampling_units(rows.example)
    for weights, drawn in zip(draw_weights(units.n, 5, 3), found.drawn, strict=True):
        times = np.zeros(30, np.int64)
        times[rows.index[0]] = weights[units.of_row]
        sample = np.repeat(np.arange(30), times)
        for one, value in zip(said, drawn, strict=True):
            assert value == pytest.approx(evaluate(truth[sample], one[sample], metrics=name)[name].value)


def test_influence_of_means_gives_the_acceleration_of_rows() -> None:
    values = [1.0, 2.0, 4.0, 9.0]
    found = resample_problem(evaluations_of([values]), "score", Mean(), seed=0, replicates=50)
    deviation = np.array(values) - 4
    expected = (deviation**3).sum() / (6 * (deviation**2).sum() ** 1.5)
    assert acceleration(found.influence)[0] == pytest.approx(expected)
