"""Calibration errors without bias, their intervals, tests of calibration and reliability of bins.

    pytest -m slow tests/metrics/test_calibration.py -s

prints the tables of docs/intervals.md.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.stats
from sklearn.calibration import calibration_curve

from evaluand.aggregation.groups import MetricRow, summarise
from evaluand.core.errors import DataError, SpecError
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.calibration import ClasswiseCalibrationError, DebiasedCalibrationError, assign_bins
from evaluand.metrics.stats.calibration import Rows, calibration_p, error_interval, spiegelhalter, squared_errors
from evaluand.metrics.stats.intervals import mid_p

SCORES = pa.list_(pa.struct([("label", pa.string()), ("score", pa.float64())]))
ILL = DebiasedCalibrationError(scored_by="positive", label="ill")


def binary(probability: np.ndarray, ill: np.ndarray, **columns: Any) -> pa.Table:
    n = len(probability)
    fixed = {"_index_": np.arange(n), "status": ["scored"] * n, "truth": np.where(ill, "ill", "well")}
    return pa.table({**fixed, "confidence": probability, **columns})


def of_classes(scores: np.ndarray, truth: np.ndarray) -> pa.Table:
    n, labels = len(scores), [f"c{place}" for place in range(scores.shape[1])]
    held = [[{"label": label, "score": x} for label, x in zip(labels, row, strict=True) if x == x] for row in scores]
    return pa.table(
        {
            "_index_": np.arange(n),
            "status": ["scored"] * n,
            "truth": np.array(labels)[truth],
            "scores": pa.array(held, SCORES),
        }
    )


def one(shard: pa.Table, metric: Metric) -> MetricRow:
    [row] = summarise([shard], [metric])
    return row


def single(probability: np.ndarray, outcome: np.ndarray, bins: int) -> Rows:
    """Independent rows of one class, in bins of equal mass."""
    n = len(probability)
    cell = assign_bins(probability, np.ones(n), bins, "mass")
    return Rows(probability[:, None], outcome[:, None].astype(float), cell[:, None], np.arange(n), bins)


# The value


@pytest.mark.parametrize("cluster", [[0, 1, 2, 3, 4, 5], [0, 0, 1, 1, 2, 2]])
def test_the_squared_error_of_fixed_confidences_is_right_on_average(cluster: list[int]) -> None:
    said, true = np.array([0.2, 0.2, 0.3, 0.7, 0.9, 0.9]), np.array([0.5, 0.1, 0.4, 0.6, 0.6, 0.9])
    cell = np.array([0, 0, 0, 0, 0, 0])[:, None]
    on_average = 0.0
    distinct = sorted(set(cluster))
    for answers in itertools.product((0, 1), repeat=len(distinct)):  # the rows of a cluster have one outcome
        outcome = np.array([answers[each] for each in cluster], float)
        chance = np.array([true[cluster.index(each)] for each in distinct])
        weight = float(np.prod(np.where(np.array(answers) == 1, chance, 1 - chance)))
        rows = Rows(said[:, None], outcome[:, None], cell, np.array(cluster), 1)
        on_average += weight * float(squared_errors(rows, np.ones((1, 6)))[0])
    off = said - np.array([true[cluster.index(each)] for each in cluster])
    by_cluster = np.array([off[np.array(cluster) == each].sum() for each in distinct])
    size = np.array([cluster.count(each) for each in distinct])
    expected = (by_cluster.sum() ** 2 - (by_cluster**2).sum()) / (size.sum() ** 2 - (size**2).sum())
    assert on_average == pytest.approx(expected)


def test_of_equal_confidences_it_is_the_estimate_of_kumar_et_al() -> None:
    random = np.random.default_rng(0)
    said = random.choice([0.1, 0.35, 0.6, 0.95], 400)
    outcome = random.random(400) < said**1.5
    expected = 0.0
    for each in np.unique(said):
        right = outcome[said == each]
        share, n = right.mean(), len(right)
        expected += n / 400 * ((each - share) ** 2 - share * (1 - share) / (n - 1))
    row = one(
        binary(said, outcome), DebiasedCalibrationError(scored_by="positive", label="ill", bins=4, binning="width")
    )
    assert row.value == pytest.approx(math.sqrt(expected))


def test_values_of_few_rows_are_right_on_average_where_the_plug_in_is_far_too_high() -> None:
    random = np.random.default_rng(1)
    debiased, plug_in = [], []
    for _ in range(200):
        said = random.random(200)
        rows = single(said, random.random(200) < said, 15)
        debiased.append(float(squared_errors(rows, np.ones((1, 200)))[0]))
        cell, off = rows.cell[:, 0], (rows.probability - rows.outcome)[:, 0]
        plug_in.append(float(np.square(np.bincount(cell, off) / np.bincount(cell)).mean()))
    assert abs(np.mean(debiased)) < 4 * np.std(debiased) / math.sqrt(200)
    assert np.sqrt(np.mean(plug_in)) > 0.1


def test_copies_of_a_row_in_its_cluster_change_nothing() -> None:
    random = np.random.default_rng(2)
    said = random.random(60)
    ill = random.random(60) < said**4
    plain = one(binary(said, ill), ILL)
    twice = one(binary(said.repeat(2), ill.repeat(2), _cluster_=np.arange(60).repeat(2)), ILL)
    independent = one(binary(said.repeat(2), ill.repeat(2)), ILL)
    assert twice.value == pytest.approx(plain.value)
    assert twice.low < independent.low
    assert independent.value > plain.value


def test_shards_have_the_value_and_interval_of_the_whole() -> None:
    random = np.random.default_rng(3)
    scores = random.dirichlet([1, 1, 1], 90)
    truth = random.integers(0, 3, 90)
    whole = of_classes(scores, truth)
    metric = ClasswiseCalibrationError(bins=3)
    assert str(summarise([whole.slice(0, 40), whole.slice(40)], [metric])) == str(summarise([whole], [metric]))


def test_the_classwise_error_is_the_root_of_the_mean_square_of_its_classes() -> None:
    random = np.random.default_rng(4)
    scores = random.dirichlet([1, 2, 3], 300)
    truth = random.integers(0, 3, 300)
    row = one(of_classes(scores, truth), ClasswiseCalibrationError(bins=5))
    each = [
        one(
            of_classes(scores, truth),
            DebiasedCalibrationError(scored_by="classes", label=f"c{place}", bins=5),
        ).value
        for place in range(3)
    ]
    assert [entry["value"] for entry in row.data["classes"]] == pytest.approx(each)
    assert row.value == pytest.approx(math.sqrt(np.mean(np.square(each))))
    assert row.low < row.value < row.high


def test_top_label_errors_read_the_confidence_in_the_prediction() -> None:
    said = np.array([0.9, 0.9, 0.9, 0.9])
    shard = binary(said, np.array([True, True, False, False]), prediction=["ill"] * 4)
    assert one(shard, DebiasedCalibrationError()).value == pytest.approx(math.sqrt(0.4**2 - 1 / 12))


# What cannot be known


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: ClasswiseCalibrationError(scored_by="positive"), "must be classes: it needs those of all classes"),
        (lambda: ClasswiseCalibrationError(bins=0), "bins is the integer 0"),
        (lambda: ClasswiseCalibrationError(binning="log"), "binning is the text 'log'; give one of width, mass"),
        (lambda: DebiasedCalibrationError(binning="log"), "binning is the text 'log'; give one of width, mass"),
        (lambda: DebiasedCalibrationError(scored_by="classes"), "needs label"),
    ],
)
def test_contradictory_parameters_are_refused(make: Callable[[], Metric], why: str) -> None:
    with pytest.raises(SpecError, match=why):
        make()


def test_rows_of_one_cluster_have_no_value() -> None:
    row = one(binary(np.array([0.2, 0.9]), np.array([True, True]), _cluster_=[7, 7]), ILL)
    assert math.isnan(row.value)
    assert row.reason == "no bin has rows of two clusters"


def test_a_missing_probability_leaves_the_value_undefined_unless_it_is_0() -> None:
    scores = np.array([[0.5, 0.5, np.nan], [0.2, 0.3, 0.5], [0.1, 0.2, 0.7], [0.6, 0.4, np.nan]])
    shard = of_classes(scores, np.array([0, 1, 2, 2]))
    row = one(shard, ClasswiseCalibrationError(bins=1))
    assert math.isnan(row.value)
    assert row.reason is not None
    assert row.reason.endswith("or absent=0")
    assert math.isfinite(one(shard, ClasswiseCalibrationError(bins=1, absent=0)).value)


def test_what_is_no_probability_is_refused() -> None:
    with pytest.raises(DataError, match="a score lies outside 0 and 1"):
        one(binary(np.array([0.2, 1.4]), np.array([True, False])), ILL)


def test_without_a_confidence_there_is_the_same_value_and_no_interval() -> None:
    random = np.random.default_rng(5)
    shard = binary(random.random(50), random.random(50) < 0.5, _cluster_=np.arange(50) // 2)
    plain = one(shard, DebiasedCalibrationError(scored_by="positive", label="ill", confidence=None))
    assert (plain.value, plain.reason) == (one(shard, ILL).value, None)
    assert math.isnan(plain.low)


# Intervals and tests against independent computations


def brute_interval(said: np.ndarray, outcome: np.ndarray, cell: np.ndarray) -> tuple[float, float]:
    """By SciPy's noncentral χ² with the mean and variance of the docstring of `error_interval`."""
    each = [np.flatnonzero(cell == place) for place in np.unique(cell)]
    n = np.array([len(rows) for rows in each])
    share, off = n / n.sum(), [(said - outcome)[rows] for rows in each]
    mean = np.array([x.mean() for x in off])
    found = np.array([x.var(ddof=1) for x in off])
    expected = np.array([(said * (1 - said))[rows].mean() for rows in each])
    variance = ((n - 1) * found + 4 * expected) / (n + 3) / n
    square = float(share @ (mean**2 - found / n))
    true = np.maximum(mean**2 - variance, 0)
    chance, null = float(share @ variance), float(share**2 @ variance**2)
    slope = float(share**2 @ (variance * mean**2)) / float(share @ mean**2)
    noise = float(share @ (2 * variance**2 + 4 * true * variance))
    spread = max(float(share @ (true - share @ true) ** 2) - noise, 0) / n.sum()
    between = min(spread / square**2, 1)

    def below(error: float, observed: float) -> float:
        scale = (2 * null + 4 * error * slope + error**2 * between) / (2 * (chance + 2 * error))
        return float(scipy.stats.ncx2.cdf(observed / scale, chance / scale, error / scale))

    beyond = scipy.stats.norm.sf(scipy.stats.t.ppf(0.975, n.sum() - 1))
    observed = square + chance
    grid = np.linspace(1e-9, 0.5, 200_001) ** 2
    inside = [e for e in grid[::50] if beyond <= below(e, observed) <= 1 - beyond]
    return math.sqrt(min(inside)), math.sqrt(max(inside))


@pytest.mark.parametrize("power", [0.4, 2.5])
@pytest.mark.slow
def test_intervals_agree_with_the_noncentral_chi_squared_law(power: float) -> None:
    random = np.random.default_rng(6)
    said = random.random(400)
    rows = single(said, random.random(400) < said**power, 8)
    expected = brute_interval(said, rows.outcome[:, 0], rows.cell[:, 0])
    assert error_interval(rows, np.ones(400), 0.95) == pytest.approx(expected, abs=2e-3)


def test_covariances_of_classes_count() -> None:
    random = np.random.default_rng(7)
    said = random.random(200)
    rows = single(said, random.random(200) < said**2, 4)
    doubled = Rows(  # the other class of two is wrong together with the first
        np.concatenate([rows.probability, 1 - rows.probability], axis=1),
        np.concatenate([rows.outcome, 1 - rows.outcome], axis=1),
        np.concatenate([rows.cell, 4 + rows.cell], axis=1),
        rows.cluster,
        8,
    )
    weight = np.ones(200)
    assert error_interval(doubled, weight, 0.95) == pytest.approx(error_interval(rows, weight, 0.95), rel=1e-9)


def test_spiegelhalters_test_is_his_formula() -> None:
    random = np.random.default_rng(8)
    said = random.random(150)
    outcome = (random.random(150) < said).astype(float)
    z = ((outcome - said) * (1 - 2 * said)).sum() / math.sqrt(((1 - 2 * said) ** 2 * said * (1 - said)).sum())
    test = spiegelhalter(single(said, outcome, 3), np.ones(150))
    assert test is not None
    assert (test.z, test.p) == pytest.approx((z, 2 * scipy.stats.norm.sf(abs(z))))


def test_tests_of_certain_confidences_are_undefined() -> None:
    rows = single(np.ones(20), np.ones(20), 2)
    assert spiegelhalter(rows, np.ones(20)) is None
    assert calibration_p(rows, np.ones(20)) is None


@pytest.mark.parametrize(("right", "n"), [(0, 7), (1, 20), (7, 7), (30, 100), (950, 1000), (3, 100_000)])
def test_mid_p_ends_leave_half_of_the_error_on_either_side(right: int, n: int) -> None:
    low, high = mid_p(right, n, 0.95)
    law = scipy.stats.binom
    if right:
        assert law.sf(right, n, low) + law.pmf(right, n, low) / 2 == pytest.approx(0.025, rel=1e-5)
    if right < n:
        assert law.cdf(right, n, high) - law.pmf(right, n, high) / 2 == pytest.approx(0.025, rel=1e-5)


# Reliability as data


def test_the_reliability_of_bins_is_that_of_scikit_learn_with_intervals_and_a_wider_band() -> None:
    random = np.random.default_rng(9)
    said = random.random(500)
    ill = random.random(500) < said
    row = one(binary(said, ill), ILL)
    share, mean = calibration_curve(ill, said, n_bins=10, strategy="quantile")
    bins = row.data["reliability"]
    assert [entry["right"] for entry in bins] == pytest.approx(share.tolist())
    assert [entry["confidence"] for entry in bins] == pytest.approx(mean.tolist())
    assert sum(entry["n"] for entry in bins) == 500
    for entry in bins:
        right = round(entry["right"] * entry["n"])
        assert (entry["low"], entry["high"]) == pytest.approx(mid_p(right, entry["n"], 0.95))
        assert (entry["band_low"], entry["band_high"]) == pytest.approx(mid_p(right, entry["n"], 0.95**0.1))
    assert row.data["plug_in"] == pytest.approx(math.sqrt(np.mean(np.square(share - mean))))


# Simulations

LAWS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "uniform": lambda random, n: random.random(n),
    "mostly sure": lambda random, n: random.beta(8, 2, n),
    "nearly all right": lambda random, n: random.beta(20, 1, n).clip(0, 1 - 1e-6),
    "rare": lambda random, n: random.beta(1, 15, n).clip(1e-6, 1),
    "six words": lambda random, n: random.choice([0.5, 0.6, 0.7, 0.8, 0.9, 0.95], n, p=[0.1, 0.1, 0.2, 0.3, 0.2, 0.1]),
}
TRUTHS = {"calibrated": (1.0, 0.0), "too sure": (0.5, 0.0), "not sure enough": (1.5, 0.0), "too high": (1.0, -0.5)}


def happens(said: np.ndarray, slope: float, shift: float) -> np.ndarray:
    """The true probability of what was said, by its logit."""
    logit = slope * np.log(said / (1 - said)) + shift
    return np.asarray(1 / (1 + np.exp(-logit)))


def true_error(law: str, truth: str) -> float:
    said = np.sort(LAWS[law](np.random.default_rng(0), 400_000))
    cell = assign_bins(said, np.ones(len(said)), 10, "mass")
    off = np.bincount(cell, said - happens(said, *TRUTHS[truth]))
    n = np.bincount(cell)
    return 0.0 if truth == "calibrated" else float(np.sqrt((off[n > 0] ** 2 / n[n > 0]).sum() / n.sum()))


@pytest.mark.slow
@pytest.mark.parametrize("n", [200, 2000])
def test_intervals_of_the_error_cover_and_tests_keep_their_level(n: int) -> None:
    random, runs, covered = np.random.default_rng(n), 1000, []
    for law in LAWS:
        for truth in TRUTHS:
            error, hits, found, by_squares = true_error(law, truth), [], [], []
            for _ in range(runs):
                said = LAWS[law](random, n)
                rows = single(said, random.random(n) < happens(said, *TRUTHS[truth]), 10)
                low, high = error_interval(rows, np.ones(n), 0.95)
                hits.append(low <= error <= high)
                p, test = calibration_p(rows, np.ones(n)), spiegelhalter(rows, np.ones(n))
                assert p is not None
                assert test is not None
                found.append(p <= 0.05)
                by_squares.append(test.p <= 0.05)
            covered.append(float(np.mean(hits)))
            figures = f"{covered[-1]:.3f} | {np.mean(found):.3f} | {np.mean(by_squares):.3f}"
            print(f"| {n:,} | {law} | {truth} | {error:.3f} | {figures} |")  # noqa: T201
            if truth == "calibrated":
                assert np.mean(found) <= 0.075
                assert np.mean(by_squares) <= 0.075
    print(f"| {n:,} | all | | | {np.mean(covered):.3f}, least {min(covered):.3f} | | |")  # noqa: T201
    assert 0.93 <= np.mean(covered) <= 0.97
    assert min(covered) >= 0.91


@pytest.mark.slow
@pytest.mark.parametrize("n", [200, 2000])
def test_intervals_of_bins_cover_and_bands_hold_all_bins(n: int) -> None:
    random, runs, covered, least, bands = np.random.default_rng(n), 300, [], [], []
    ends = functools.cache(mid_p)
    for law in LAWS:
        for truth in TRUTHS:
            hits, held = np.full((runs, 10), np.nan), []
            for run in range(runs):
                said = LAWS[law](random, n)
                true = happens(said, *TRUTHS[truth])
                ill = random.random(n) < true
                cell = assign_bins(said, np.ones(n), 10, "mass")
                there, within = np.unique(cell), True
                for place in there:
                    rows = cell == place
                    low, high = ends(int(ill[rows].sum()), int(rows.sum()), 0.95)
                    hits[run, place] = low <= true[rows].mean() <= high
                    low, high = ends(int(ill[rows].sum()), int(rows.sum()), 0.95 ** (1 / len(there)))
                    within &= bool(low <= true[rows].mean() <= high)
                held.append(within)
            covered.append(np.nanmean(hits))
            usual = np.isfinite(hits).sum(axis=0) > runs / 2
            least.append(np.nanmean(hits[:, usual], axis=0).min())
            bands.append(np.mean(held))
            print(f"| {n:,} | {law} | {truth} | {covered[-1]:.3f} | {least[-1]:.3f} | {bands[-1]:.3f} |")  # noqa: T201
    print(f"| {n:,} | all | | {np.mean(covered):.3f} | {min(least):.3f} | {np.mean(bands):.3f} |")  # noqa: T201
    assert 0.93 <= np.mean(covered) <= 0.97
    assert min(covered) >= 0.91
    assert min(bands) >= 0.91


@pytest.mark.slow
@pytest.mark.parametrize(("n", "size"), [(200, 4), (2000, 10)])
def test_clusters_and_classes_are_respected(n: int, size: int) -> None:
    """Rows of a cluster share their confidence, and mostly their outcome; classes of a row depend on each other."""
    random, covered = np.random.default_rng(n), {"clusters": [], "classes": []}  # type: ignore[var-annotated]
    cluster = np.arange(n) // size
    grid = np.sort(np.random.default_rng(0).random(400_000))
    off = (grid - grid**1.5).reshape(10, -1).mean(axis=1)
    error = math.sqrt(float(np.square(off).mean()))
    for _ in range(1000):
        said = random.random(n // size).repeat(size)
        shared = random.random(n // size).repeat(size)
        lot = np.where(random.random(n) < 0.5, shared, random.random(n))
        rows = single(said, lot < said**1.5, 10)._replace(cluster=cluster)
        low, high = error_interval(rows, np.ones(n), 0.95)
        covered["clusters"].append(low <= error <= high)
        scores = random.dirichlet([1, 1, 1], n)
        truth = (random.random(n)[:, None] > np.cumsum(scores, axis=1)).sum(axis=1)
        cell = np.stack([assign_bins(c, np.ones(n), 10, "mass") + 10 * i for i, c in enumerate(scores.T)], axis=1)
        of_all = Rows(scores, (truth[:, None] == np.arange(3)).astype(float), cell, np.arange(n), 30)
        covered["classes"].append(error_interval(of_all, np.ones(n), 0.95)[0] == 0)
    for name, hits in covered.items():
        print(f"| {n:,} | {name} | {np.mean(hits):.3f} |")  # noqa: T201
        assert np.mean(hits) >= 0.91
