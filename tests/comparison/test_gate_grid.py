"""How often gates pass wrongly and intervals cover, over metrics, forms of gates, sizes and clusters.

Each cell is a population on the border of what a gate forbids: the true value, or the true difference, is just the
number that the gate names. The table is in docs/intervals.md.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

import numpy as np
import pytest
import scipy.stats
from support.effort import simulations

from evaluand.aggregation.seen import Seen
from evaluand.comparison.difference import AT_ONE_END, Measured, Sample
from evaluand.comparison.gate_rows import bounds_of_value
from evaluand.comparison.metric_differences import MetricSample, paired_change
from evaluand.metrics.base.metric import CLUSTER, INDEPENDENT, LABELS, VALUE, Metric
from evaluand.metrics.class_rates import ClassRatio
from evaluand.metrics.names import make_metric
from evaluand.metrics.stats.disparity import IntervalEnds, disparity
from evaluand.metrics.stats.intervals import cluster_sums

NAMES: Final = np.array(["a", "b", "c"], np.object_)
LARGE: Final = 400_000
ROWS_OF_CLUSTER: Final = 4
DRAWS: Final = 2_000

Columns = dict[str, np.ndarray]


def uniform(rng: np.random.Generator, cluster: np.ndarray) -> np.ndarray:
    """Uniform numbers, of which four in ten are that of their cluster."""
    shared = rng.random(int(cluster.max()) + 1)[cluster]
    return np.where(rng.random(len(cluster)) < 0.4, shared, rng.random(len(cluster)))


def two(rng: np.random.Generator, cluster: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The luck of two systems, half of the time the same."""
    first = uniform(rng, cluster)
    return first, np.where(rng.random(len(cluster)) < 0.5, first, uniform(rng, cluster))


def rates(rng: np.random.Generator, cluster: np.ndarray) -> list[Columns]:
    return [{VALUE: (luck < share).astype(float)} for luck, share in zip(two(rng, cluster), (0.9, 0.85), strict=True)]


def grades(rng: np.random.Generator, cluster: np.ndarray) -> list[Columns]:
    return [{VALUE: luck ** (1 / power)} for luck, power in zip(two(rng, cluster), (4, 3.5), strict=True)]


def labels(*prior: float) -> Draw:
    def draw(rng: np.random.Generator, cluster: np.ndarray) -> list[Columns]:
        truth = rng.choice(len(prior), len(cluster), p=prior)
        other = (truth + rng.integers(1, len(prior), len(cluster))) % len(prior)
        sides = zip(two(rng, cluster), (0.2, 0.25), strict=True)
        names = {LABELS: NAMES[: len(prior)]}
        return [names | {"truth": truth, "prediction": np.where(luck < wrong, other, truth)} for luck, wrong in sides]

    return draw


def scores(rng: np.random.Generator, cluster: np.ndarray) -> list[Columns]:
    truth = (rng.random(len(cluster)) < 0.4).astype(np.int64)
    noise = (scipy.stats.norm.ppf(luck) for luck in two(rng, cluster))
    return [
        {"truth": truth, "scores": np.column_stack([-each, each]), LABELS: NAMES[:2]}
        for each in (one + shift * truth for one, shift in zip(noise, (1.4, 1.2), strict=True))
    ]


def numbers(rng: np.random.Generator, cluster: np.ndarray) -> list[Columns]:
    truth = scipy.stats.norm.ppf(uniform(rng, cluster))
    errors = zip(two(rng, cluster), (0.5, 0.55), strict=True)
    return [{"truth": truth, "prediction": truth + scale * scipy.stats.norm.ppf(luck)} for luck, scale in errors]


Draw = Callable[[np.random.Generator, np.ndarray], list[Columns]]

POPULATIONS: dict[str, tuple[Draw, Mapping[str, Any]]] = {
    "accuracy": (rates, {}),
    "mean": (grades, {"range": (0.0, 1.0)}),
    "recall": (labels(0.6, 0.4), {"label": "b"}),
    "f1": (labels(0.6, 0.4), {"label": "b"}),
    "f1_macro": (labels(0.5, 0.3, 0.2), {}),
    "balanced_accuracy": (labels(0.5, 0.3, 0.2), {}),
    "cohen_kappa": (labels(0.5, 0.3, 0.2), {}),
    "mcc": (labels(0.6, 0.4), {}),
    "roc_auc": (scores, {"label": "b"}),
    "r2": (numbers, {}),
    "mae": (numbers, {}),
    "pearson": (numbers, {}),
}


class Sizes(NamedTuple):
    """How many rows, and whether four belong together."""

    n: int
    clustered: bool

    @property
    def cluster(self) -> np.ndarray:
        return np.arange(self.n) // (ROWS_OF_CLUSTER if self.clustered else 1)


@functools.cache
def truths(name: str) -> tuple[float, float]:
    """The values of both systems in a very large sample."""
    draw, parameters = POPULATIONS[name]
    metric, index = make_metric(name, **parameters), np.arange(LARGE)
    sides = draw(np.random.default_rng(99), index)
    found = [metric.compute(state_of(metric, side, index)) for side in sides]
    return float(found[0].value[0]), float(found[1].value[0])


def state_of(metric: Metric, side: Columns, cluster: np.ndarray) -> Any:
    columns = prepared(metric, side) | {CLUSTER: cluster}
    return metric.state(columns, np.zeros(len(cluster), np.int64), 1)


def prepared(metric: Metric, side: Columns) -> Columns:
    """The columns as `prepare` would return them."""
    if VALUE in side or LABELS in side:
        return side
    return dict(metric.prepare(side | {"_index_": np.arange(len(side["truth"]))}))


def measure(metric: Metric, sides: list[Columns], cluster: np.ndarray) -> Measured:
    """The measured difference of two systems."""
    a, b = (prepared(metric, side) for side in sides)
    if metric.averages:
        sample = Sample.of(np.stack([a[VALUE], b[VALUE]]), np.ones(len(cluster)), cluster, metric.row_range)
        return replace(sample, independent=sample.clusters == len(cluster))
    clusters = int(cluster.max()) + 1
    group = np.zeros(len(cluster), np.int64)
    left = [metric.leave_out({**side, CLUSTER: cluster}, group, 1) for side in (a, b)]
    return MetricSample.of(
        paired_change(left[0], left[1], metric, clusters), clusters, metric.range[1] - metric.range[0]
    )


class Found(NamedTuple):
    """What repeated samples came to: shares of passes by form of gate, and of covering intervals with their widths."""

    passed: dict[str, float]
    covered: dict[str, float]
    width: dict[str, float]


def found_of_values(name: str, sizes: Sizes, repeats: int) -> Found:
    """Gates on a value, and on the difference of two groups, of which one is judged by the second system."""
    draw, parameters = POPULATIONS[name]
    metric, truth = make_metric(name, **parameters), truths(name)
    gap, n = abs(truth[1] - truth[0]), sizes.n
    rng = np.random.default_rng([len(name), n, sizes.clustered])
    draws = np.repeat(np.arange(repeats), n)
    cluster = np.unique(draws * n + np.tile(sizes.cluster, repeats), return_inverse=True)[1]
    sides = [prepared(metric, side) for side in draw(rng, cluster)]
    ends, values = [], []
    is_exact = isinstance(metric, ClassRatio) and metric.is_share and not sizes.clustered
    exact = {"interval": "exact", "confidence": 2 * LEVEL - 1} if is_exact else {}
    for own in ({}, {"confidence": 2 * LEVEL - 1}, exact or {"confidence": 1 - (1 - LEVEL) / AT_ONE_END}):
        of_level = replace(metric, **own)
        keys = {CLUSTER: cluster} if sizes.clustered else {INDEPENDENT: cluster}
        keys = {CLUSTER: cluster} if metric.averages and sizes.clustered else {} if metric.averages else keys
        both = [of_level.compute(of_level.state(side | keys, draws, repeats)) for side in sides]
        ends.append(both)
        values.append(IntervalEnds(*(np.stack([getattr(side, end) for side in both], axis=1) for end in ENDS)))
    usual, bounds = ends[0][0], ends[2][0]
    low, high = bounds.low.copy(), bounds.high.copy()
    if metric.averages and np.isfinite(metric.row_range).all():
        for place, data in enumerate(bounds.data):
            rows = draws == place
            state = cluster_sums(sides[0][VALUE][rows], np.ones(n), cluster[rows], np.zeros(n, np.int64))
            seen = Seen(state["cluster_sum"], state["cluster_weight"], metric.row_range, 1.0)
            is_exact = data.keys() == {"correct", "n"}
            row: Any = SimpleNamespace(low=low[place], high=high[place], data=data, is_exact=is_exact)
            low[place], high[place] = bounds_of_value(row, seen, LEVEL)
    apart = disparity([values[1]], "difference", 2 * LEVEL - 1, metric.range).ends
    known = np.isfinite(usual.low)
    return Found(
        {"at least": share(low > truth[0]), "at most": share(high < truth[0]), "disparity": share(apart.high < gap)},
        {"value": share((usual.low <= truth[0]) & (truth[0] <= usual.high), known)},
        {"value": float(np.mean((usual.high - usual.low)[known])) if known.any() else math.nan},
    )


def share(events: np.ndarray, among: np.ndarray | None = None) -> float:
    chosen = events if among is None else events[among]
    return float(np.mean(chosen)) if len(chosen) >= FEWEST * len(events) else math.nan


def found_of_pairs(name: str, sizes: Sizes, repeats: int) -> Found:
    """Gates on the difference of two systems: its true value is on the border of each."""
    draw, parameters = POPULATIONS[name]
    metric = make_metric(name, **parameters)
    (first, second), cluster = truths(name), sizes.cluster
    rng = np.random.default_rng([len(name), sizes.n, sizes.clustered, 1])
    measured = [measure(metric, draw(rng, cluster), cluster) for _ in range(repeats)]
    low, high = np.array([one.bounds(LEVEL) for one in measured]).T
    ends = np.array([one.interval(0.95) for one in measured])
    difference = second - first
    swapped = [measure(metric, exchanged(rng, draw(rng, cluster)), cluster) for _ in range(repeats)]
    better = np.array([one.bounds(LEVEL)[0] for one in swapped]) > 0
    significant = np.array([one.p <= 0.05 for one in swapped])
    known = np.isfinite(ends[:, 0])
    return Found(
        {"not worse": share(low > difference), "equal within": share(high < difference), "better": share(better)}
        | {"significant": share(significant)},
        {"difference": share((ends[:, 0] <= difference) & (difference <= ends[:, 1]), known)},
        {"difference": float(np.mean(np.ptp(ends, axis=1)[known])) if known.any() else math.nan},
    )


def exchanged(rng: np.random.Generator, sides: list[Columns]) -> list[Columns]:
    """Two equally good systems: the answers of both are exchanged at random, cluster by cluster."""
    turned = rng.random(max(map(len, sides[0].values()))) < 0.5
    found = []
    for one, other in (sides, sides[::-1]):
        columns = {name: column for name, column in one.items() if name != LABELS}
        turn = {name: turned[:, None] if column.ndim == 2 else turned for name, column in columns.items()}
        found.append(one | {name: np.where(turn[name], column, other[name]) for name, column in columns.items()})
    return found


ENDS: Final = ("value", "low", "high")
LEVEL: Final = 0.95
FEWEST: Final = 0.5
"""Fewer samples with an interval are no grid cell: gates are undecided there."""

GRID: Final = [
    pytest.param(name, n, clustered, id=f"{name}-{n}-{'clusters' if clustered else 'rows'}")
    for name in POPULATIONS
    for n in (10, 30, 100, 1_000)
    for clustered in (False, True)
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "n", "clustered"), GRID)
def test_gates_pass_wrongly_at_most_as_often_as_they_say(name: str, n: int, clustered: bool) -> None:
    repeats = simulations(DRAWS)
    sizes = Sizes(n, clustered)
    found = [of(name, sizes, repeats) for of in (found_of_values, found_of_pairs)]
    passed, covered = ({**getattr(found[0], what), **getattr(found[1], what)} for what in ("passed", "covered"))
    shown = " ".join(f"{what}={rate:.3f}" for what, rate in (passed | covered).items())
    print(f"| {name} | {n} | {'clusters' if clustered else 'rows'} | {shown} |")  # noqa: T201 - for the documentation
    wrong = {what: rate for what, rate in passed.items() if lowest(rate, repeats) > 1 - LEVEL}
    assert not wrong
    few = {what: rate for what, rate in covered.items() if highest(rate, repeats) < 0.91}
    assert not few


def lowest(rate: float, repeats: int) -> float:
    """The lower 99 % limit of a share; that of 99.99 % where fewer are drawn, as there are 672 shares."""
    k = round(rate * repeats)
    return float(scipy.stats.beta.ppf(beyond(repeats), k, repeats - k + 1)) if k else 0.0


def beyond(repeats: int) -> float:
    return 0.01 if repeats >= DRAWS else 0.0001


def highest(rate: float, repeats: int) -> float:
    if math.isnan(rate):
        return 1.0
    k = round(rate * repeats)
    return float(scipy.stats.beta.ppf(1 - beyond(repeats), k + 1, repeats - k)) if k < repeats else 1.0
