"""How often comparisons err: their tests on one look, and their intervals after a rule has stopped a run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from support.effort import simulations

from evaluand.comparison.comparing import compare
from evaluand.comparison.difference import Sample
from evaluand.comparison.significance import mid_mcnemar
from evaluand.comparison.verdict import families_text
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluation, Evaluator
from evaluand.metrics.accuracy import Accuracy
from evaluand.metrics.column_statistics import Mean
from evaluand.run.runner import Runner
from evaluand.store.store import MemoryStore, Store

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


def draw_runs(rng: np.random.Generator, n: int, runs: int, won: float) -> Sample:
    """Examples run several times, of which only a few are ever won by B, and none is lost."""
    chance = rng.beta(4 * won, 4 * (1 - won), (n, 1))
    values = np.stack([np.zeros((n, runs)), rng.random((n, runs)) < chance]).reshape(2, -1)
    return Sample.of(values, np.ones(n * runs), np.repeat(np.arange(n), runs), (0.0, 1.0))


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, 50, 100])
def test_differences_of_few_rows_in_runs_are_covered_and_agree_with_p(n: int) -> None:
    rng, repeats, won = np.random.default_rng(n), simulations(2000), 0.08
    samples = [draw_runs(rng, n, 5, won) for _ in range(repeats)]
    ends = np.array([sample.interval(0.95) for sample in samples])
    covered = int(((ends[:, 0] <= won) & (won <= ends[:, 1])).sum())
    assert scipy.stats.binomtest(covered, repeats, 0.95, alternative="less").pvalue > 0.001
    for sample, (low, high) in zip(samples, ends, strict=True):
        assert (sample.p <= LEVEL) == (not low <= 0 <= high)


def test_of_runs_as_alike_as_independent_rows_the_interval_is_near_that_of_pairs() -> None:
    """Where no row depends on others, its number and not that of the clusters decides."""
    rng, n = np.random.default_rng(2), 2_000
    luck = rng.random(n)
    values = np.stack([luck < 0.5, luck < 0.56]).astype(float)
    pairs = replace(Sample.of(values, np.ones(n), np.arange(n), (0.0, 1.0)), independent=True)
    runs = Sample.of(values, np.ones(n), np.arange(n) // 5, (0.0, 1.0))
    assert runs.interval(0.95) == pytest.approx(pairs.interval(0.95), abs=0.003)


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


N, SHARES = 150, (0.3, 0.6, 0.55, 0.63)


def right_answers() -> np.ndarray:
    return np.random.default_rng(11).random((len(SHARES), N)) < np.array(SHARES)[:, None]


def evaluated(store: Store, stopped: set[int]) -> list[Evaluation]:
    """Four systems, of which a rule stopped some."""
    data = Dataset.from_rows([{"input": n, "expected": 1, "part": "abcde"[n % 5]} for n in range(N)], attributes="part")
    found = []
    for number, right in enumerate(right_answers()):
        until = {"rule": "accuracy better than a", "drawn": N, "of": 1000} if number in stopped else None
        origin = {"experiment": "/m.yaml", "until": until}
        run = Runner(store=store).run(lambda n, right=right: int(right[n]), data, origin=origin, name=f"s{number}")
        grade = {"right": lambda output, expected: output == expected}
        found.append(Evaluator(store).evaluate(run, grade, name=f"s{number}"))
    return found


def interval_of(a: int, b: int, tests: int, rows: slice = slice(None)) -> tuple[float, float]:
    """The interval at all looks, with an equal share of the level for each test."""
    values = right_answers()[[a, b], rows].astype(float)
    n = values.shape[1]
    sample = Sample.of(values, np.ones(n), np.arange(n), (0, 1))
    return replace(sample, heaviest=1.0).interval(1 - LEVEL / tests)


def test_after_looks_all_pairs_of_a_family_are_decided_by_intervals_that_hold_together() -> None:
    compared = compare(*evaluated(MemoryStore(), {1, 2, 3}), metrics="accuracy")
    alone = []
    for pair in compared.pairs:
        assert (pair["low"], pair["high"]) == pytest.approx(interval_of(pair["a"], pair["b"], 6))
        assert (pair["p"], pair["p_holm"], pair["p_shaffer"]) == (None, None, None)
        low, high = interval_of(pair["a"], pair["b"], 1)
        alone.append(not low <= 0 <= high)
        assert ("is better" in pair["verdict"]) == (not pair["low"] <= 0 <= pair["high"])
        assert "at all looks and for all 6 tests" in pair["verdict"]
    assert sum("is better" in pair["verdict"] for pair in compared.pairs) < sum(alone)
    letters = {row["evaluation"]: row["letters"] for row in compared.ranking}
    for pair in compared.pairs:
        apart = not set(letters[pair["a"]]) & set(letters[pair["b"]])
        assert apart == ("is better" in pair["verdict"])
    assert families_text(compared.pairs) == "primary: 6 tests, adjusted together (Bonferroni, in the intervals)"


def test_after_looks_groups_and_secondary_metrics_are_adjusted_too() -> None:
    first, second, *_ = evaluated(MemoryStore(), {1})
    metrics = [Accuracy(), Mean(range=(0, 1)), Mean(range=(0, 1), missing="wrong")]
    compared = compare(first, second, metrics=metrics, by="part")
    tests = {"primary": 1, "secondary": 2, "groups": 5}
    assert {pair["family"] for pair in compared.pairs} == {*tests}
    for pair in compared.pairs:
        rows = slice("abcde".index(pair["by"]["part"]), None, 5) if pair["by"] else slice(None)
        assert (pair["low"], pair["high"]) == pytest.approx(interval_of(0, 1, tests[pair["family"]], rows))


def test_tests_with_p_count_those_at_all_looks() -> None:
    """Of three pairs only that of two whole runs has p."""
    whole, looked = (compare(*evaluated(MemoryStore(), those)[:3], metrics="accuracy").pairs for those in ({}, {2}))
    assert looked[0]["p"] == whole[0]["p"]
    assert looked[0]["p_holm"] == pytest.approx(3 * whole[0]["p"])
    assert (looked[1]["low"], looked[1]["high"]) == pytest.approx(interval_of(0, 2, 3))
    assert families_text(looked) == "primary: 3 tests, adjusted together (Shaffer and Bonferroni, in the intervals)"
