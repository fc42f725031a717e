"""One-sided bounds of differences between clusters of unequal sizes, as gates use them."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import scipy.stats
from support.effort import simulations

from evaluand.aggregation.seen import Seen
from evaluand.metrics.column_statistics import Mean
from evaluand.metrics.stats.least_mean import least_mean

MARGIN = 0.1


def passes(total: np.ndarray, size: np.ndarray, mean: float) -> bool:
    return least_mean(total, size, -1.0, 0.95) > mean


def student_passes(total: np.ndarray, size: np.ndarray, mean: float) -> bool:
    n, found = len(size), total.sum() / size.sum()
    error = math.sqrt(n / (n - 1) * np.square(total - found * size).sum()) / size.sum()
    return bool(found - scipy.stats.t.ppf(0.95, n - 1) * error > mean)


def test_an_unseen_cluster_weighs_as_much_as_all_by_their_effective_number() -> None:
    light, heavy = np.ones(50), np.r_[np.ones(49), 20.0]
    zero = np.zeros(50)
    equal = 1 - 0.05 ** (1 / 50)
    assert least_mean(zero, light, -1.0, 0.95) == pytest.approx(-equal, rel=0.03)
    assert -0.5 < least_mean(zero, heavy, -1.0, 0.95) < -3 * equal


@pytest.mark.slow
@pytest.mark.parametrize("clusters", [30, 100, 300])
@pytest.mark.parametrize("losses", ["only", "rare", "many"])
def test_simulated_gates_on_unequal_clusters_err_at_most_in_five_of_a_hundred_cases(clusters: int, losses: str) -> None:
    """Clusters of lognormal sizes that are won or lost whole, where B is truly worse by just the margin."""
    draw = np.random.default_rng([clusters, len(losses)])
    value, chance = {
        "only": ([-1, 0], [MARGIN, 1 - MARGIN]),
        "rare": ([-1, 0.01], [0.02, 0.98]),
        "many": ([-1, 0, 1], [0.25, 0.6, 0.15]),
    }[losses]
    truth = float(np.dot(value, chance))
    erring, repeats = 0, simulations(2000)
    for _ in range(repeats):
        size = np.ceil(np.exp(draw.normal(1, 1, clusters)))
        erring += passes(draw.choice(value, clusters, p=chance) * size, size, truth)
    assert erring / repeats <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / repeats)


@pytest.mark.slow
@pytest.mark.parametrize(("clusters", "share"), [(100, 0.65), (300, 0.9), (1000, 0.97)])
def test_gates_on_unequal_clusters_pass_nearly_as_often_as_by_student_s_bound(clusters: int, share: float) -> None:
    """Two equal systems, four rows in ten differ, correlation 0.2 within clusters of lognormal sizes."""
    draw = np.random.default_rng(clusters)
    value, chance = [-1, 0, 1], [0.2, 0.6, 0.2]
    own, student = 0, 0
    for _ in range(500):
        size = np.ceil(np.exp(draw.normal(1, 1, clusters))).astype(np.int64)
        common = draw.binomial(size, math.sqrt(0.2))
        total = draw.multinomial(size - common, chance) @ value + common * draw.choice(value, clusters, p=chance)
        own += passes(total, size.astype(float), -MARGIN)
        student += student_passes(total, size.astype(float), -MARGIN)
    assert own >= share * student


Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]
RARE: dict[str, tuple[int, Draw, float, float]] = {  # rows, how values are drawn, their mean, the highest possible one
    "rare 10": (100, lambda rng, of: np.where(rng.random(of) < 0.02, 10, rng.random(of)), 0.69, 10.0),
    "rare 0 below 1": (50, lambda rng, of: np.where(rng.random(of) < 0.05, 0, rng.uniform(0.9, 1, of)), 0.9025, 1.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("law", RARE)
def test_gates_on_a_mean_rarely_pass_where_few_rows_matter(law: str) -> None:
    """The gate that rare values would fail, by the metric's interval alone and with the bound for an unseen value."""
    n, draw, mean, highest = RARE[law]
    values = draw(np.random.default_rng(n), (1000, n))
    metric = Mean(range=(0.0, highest), confidence=0.9)
    of_metric = metric.compute(metric.state({"value": values.ravel()}, np.repeat(np.arange(1000), n), 1000))
    bounds = np.array([Seen(row, np.ones(n), (0.0, highest), 1.0).bounds_of_one_look(0.95) for row in values])
    if highest > 1:
        alone, own = (np.mean(high < mean) for high in (of_metric.high, np.fmax(of_metric.high, bounds[:, 1])))
    else:
        alone, own = (np.mean(low > mean) for low in (of_metric.low, np.fmin(of_metric.low, bounds[:, 0])))
    print(f"{law}: interval alone {alone:.3f}, gate {own:.3f}")  # noqa: T201 - for the documentation
    assert own <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 1000)
    assert own < alone
