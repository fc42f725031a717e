"""How often comparisons err: their tests on one look, and their intervals after a rule has stopped a run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from support.effort import simulations

from evaluand.comparison.difference import Sample
from evaluand.comparison.significance import mid_mcnemar

LEVEL = 0.05


@pytest.mark.parametrize("n", [10, 30, 100, 300])
def test_pairs_of_0_and_1_err_in_five_of_a_hundred_cases_and_find_what_mid_p_finds(n: int) -> None:
    """Summed over all outcomes. Where all rows differ, mid-p values err in up to 5.7 % of cases, as Fagerland shows."""
    significant = np.array([[mid_mcnemar(won, m - won).mid_p <= LEVEL for won in range(n + 1)] for m in range(n + 1)])
    for m in range(n + 1 if n <= 30 else 0):
        for won in range(m + 1):
            values = np.zeros((2, n))
            values[1, :won], values[0, won:m] = 1, 1
            pairs = replace(Sample.of(values, np.ones(n), np.arange(n), (0, 1)), independent=True)
            assert (pairs.p <= LEVEL) == significant[m, won]
    count = np.arange(n + 1)
    erring = (scipy.stats.binom.pmf(count, count[:, None], 0.5) * significant).sum(axis=1)
    for differ in (0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0):
        size = scipy.stats.binom.pmf(count, n, differ) @ erring
        assert size <= (0.0502 if differ < 1 else 0.057)


def draw_equal(rng: np.random.Generator, shape: str, n: int, clustered: bool) -> Sample:
    """Two equal systems; five rows of a cluster share how much they differ."""
    size = 5 if clustered else 1
    kinds = {"normal": rng.normal, "skewed": rng.lognormal, "grades": lambda size: rng.choice([0, 0.5, 1], size)}
    own = kinds[shape](size=(2, n, size)) + 0.5 * rng.normal(size=(2, n, 1)) * clustered
    values = own.reshape(2, -1)
    return Sample.of(values, np.ones(n * size), np.repeat(np.arange(n), size), (-np.inf, np.inf))


@pytest.mark.slow
@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("shape", ["normal", "skewed", "grades"])
@pytest.mark.parametrize("n", [10, 30, 100, 1000])
def test_equal_means_differ_in_five_of_a_hundred_cases(n: int, shape: str, clustered: bool) -> None:
    rng = np.random.default_rng([n, len(shape), clustered])
    repeats = simulations(5000 if n < 1000 else 2000)
    samples = (draw_equal(rng, shape, n, clustered) for _ in range(repeats))
    erring = sum(sample.p_of_ends <= LEVEL and sample.p <= LEVEL for sample in samples)
    assert scipy.stats.binom.ppf(0.99, repeats, LEVEL) >= erring


@pytest.mark.slow
@pytest.mark.parametrize("gain", [0.0, 0.05, 0.2])
@pytest.mark.parametrize("graded", [False, True])
def test_after_many_looks_intervals_cover_the_true_difference(gain: float, graded: bool) -> None:
    """A look after every ten rows, up to 1,000, until the lower 95 % bound exceeds 0."""
    rng, most, repeats = np.random.default_rng([round(100 * gain), graded]), 1000, simulations(1000)
    covered = 0
    for _ in range(repeats):
        a, b = (rng.choice([0, 0.5, 1] if graded else [0, 1], most) for _ in range(2))
        better = rng.random(most) < gain
        b = np.where(better, 1, b)
        true = gain / 2
        for n in range(10, most + 1, 10):
            sample = Sample.of(np.stack([a, b])[:, :n].astype(float), np.ones(n), np.arange(n), (0, 1))
            sample = replace(sample, heaviest=1.0)
            assert sample.seen is not None
            if sample.seen.bounds(0.95)[0] > 0:
                break
        low, high = sample.interval(0.95)
        covered += low <= true <= high
    assert covered / repeats >= 0.94
