"""Intervals of means of values with a range that are skewed, few or weighted."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from evaluand.metrics.column_statistics import Mean

SIMULATIONS = 4000
Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]


def graded(*chances: float) -> Draw:
    """Equally spaced grades from 0 to 1."""
    grades = np.linspace(0, 1, len(chances))
    return lambda rng, shape: rng.choice(grades, shape, p=chances)


def rarely_lost(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return np.where(rng.random(shape) < 0.1, 0.0, rng.uniform(0.9, 1, shape))


CASES: dict[str, tuple[Draw, float, tuple[int, ...]]] = {  # how values are drawn, their mean, and numbers of rows
    "beta(0.2, 1.8)": (lambda rng, shape: rng.beta(0.2, 1.8, shape), 0.1, (10, 20, 50)),
    "0, ½ and 1, nearly all 1": (graded(0.03, 0.04, 0.93), 0.95, (50, 200)),
    "0.9 to 1, one in ten 0": (rarely_lost, 0.855, (20, 50)),
    "uniform": (lambda rng, shape: rng.random(shape), 0.5, (10, 20, 50)),
    "five grades": (graded(0.05, 0.1, 0.2, 0.4, 0.25), 0.675, (10, 20, 50)),
    "beta(5, 5)": (lambda rng, shape: rng.beta(5, 5, shape), 0.5, (20, 50, 200)),
    "beta(2, 1), a fifth weighs 8": (lambda rng, shape: rng.beta(2, 1, shape), 2 / 3, (20, 50)),
}


@pytest.mark.slow
@pytest.mark.parametrize(("case", "n"), [(case, n) for case, (_, _, sizes) in CASES.items() for n in sizes])
def test_intervals_of_values_with_a_range_cover_the_mean(case: str, n: int) -> None:
    draw, mean, _ = CASES[case]
    values = draw(np.random.default_rng(n), (SIMULATIONS, n))
    ends = [intervals(values, n, case, range) for range in ((0.0, 1.0), (-math.inf, math.inf))]
    covered, by_student = (float(np.mean((low <= mean) & (mean <= high))) for low, high in ends)
    wider = np.nanmean(ends[0][1] - ends[0][0]) / np.nanmean(ends[1][1] - ends[1][0])
    print(f"| {case}, n = {n} | {covered:.3f} | {by_student:.3f} | {wider:.2f} |")  # noqa: T201 - for the documentation
    assert covered >= 0.93


def intervals(values: np.ndarray, n: int, case: str, range: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    group = np.repeat(np.arange(len(values)), n)
    columns = {"value": values.ravel(), "_cluster_": np.arange(values.size)}
    weighted = "weighs" in case
    if weighted:
        columns["_weight_"] = np.tile(np.where(np.arange(n) < n // 5, 8.0, 1.0), len(values))
    found = Mean(range=range, weighted=weighted)
    made = found.compute(found.state(columns if weighted else {"value": values.ravel()}, group, len(values)))
    return made.low, made.high


def test_a_range_says_what_a_sample_of_skewed_values_does_not_show() -> None:
    values = np.array([0.0] * 9 + [0.02])
    group = np.zeros(10, np.int64)
    (with_range, without) = (
        metric.compute(metric.state({"value": values}, group, 1)) for metric in (Mean(range=(0, 1)), Mean())
    )
    assert without.high[0] < 0.01
    assert 0.15 < with_range.high[0] < 0.4
    assert with_range.low[0] >= 0


def test_an_interval_moves_and_scales_with_the_range() -> None:
    values = np.random.default_rng(3).beta(0.5, 2, 12)
    group = np.zeros(12, np.int64)
    unit, wide = (Mean(range=range) for range in ((0, 1), (-5, 15)))
    of_unit, of_wide = (np.array([f.low[0], f.high[0]]) for f in (
        unit.compute(unit.state({"value": values}, group, 1)),
        wide.compute(wide.state({"value": 20 * values - 5}, group, 1)),
    ))  # fmt: skip
    assert of_wide == pytest.approx(20 * of_unit - 5)
