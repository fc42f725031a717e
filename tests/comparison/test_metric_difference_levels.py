"""How often paired intervals cover the true difference, and how often equal systems seem to differ.

Each cell is a population: the truth is known, or that of a very large sample. The table is in docs/intervals.md.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pytest
from scipy.special import ndtr
from support.effort import simulations

from evaluand.comparison.difference import Sample
from evaluand.comparison.disparity_differences import disparity_change
from evaluand.comparison.metric_differences import MetricSample, paired_change
from evaluand.core.key_columns import INDEX
from evaluand.metrics.base.left_out import LeftOut
from evaluand.metrics.base.metric import CLUSTER, LABELS, VALUE, WEIGHT, Metric
from evaluand.metrics.names import make_metric
from evaluand.metrics.stats.disparity import Kind

CODES = np.array(["a", "b", "c"], np.object_)
LARGE = 200_000
Side = dict[str, np.ndarray]
Draw = Callable[[np.random.Generator, int], tuple[Side, Side]]


class Cell(NamedTuple):
    """A population of two systems, equally good if the true difference is 0."""

    draw: Draw
    truth: float


def labels(prior: Sequence[float], errors: Sequence[Sequence[float]]) -> Draw:
    """Labels that each system mistakes with a chance of their own, half of the time by the same luck."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Side, Side]:
        truth, shared = rng.choice(len(prior), n, p=prior), rng.random(n)

        def side(of: Sequence[float]) -> Side:
            luck = np.where(rng.random(n) < 0.5, shared, rng.random(n))
            other = (truth + rng.integers(1, len(prior), n)) % len(prior)
            predicted = np.where(luck < np.array(of)[truth], other, truth)
            return {"truth": truth, "prediction": predicted, LABELS: CODES[: len(prior)]}

        return side(errors[0]), side(errors[1])

    return draw


def f1(prior: Sequence[float], errors: Sequence[float]) -> float:
    """F1 macro of two classes of which these shares are mistaken for the other."""
    right = [p * (1 - e) for p, e in zip(prior, errors, strict=True)]
    predicted = [right[0] + prior[1] * errors[1], right[1] + prior[0] * errors[0]]
    return sum(2 * r / (p + q) for r, p, q in zip(right, prior, predicted, strict=True)) / 2


def scores(share: float, shifts: Sequence[float], common: float = 0.5) -> Draw:
    """Normal scores of positive and negative rows, with this correlation between the systems."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Side, Side]:
        truth = (rng.random(n) < share).astype(np.int64)
        truth[:3], shared = [1, 1, 0], rng.normal(size=n)

        def side(shift: float) -> Side:
            noise = math.sqrt(common) * shared + math.sqrt(1 - common) * rng.normal(size=n)
            score = noise + shift * truth
            return {"truth": truth, "scores": np.column_stack([-score, score]), LABELS: CODES[:2]}

        return side(shifts[0]), side(shifts[1])

    return draw


def few_positives(positives: int, shift: float) -> Draw:
    """Independent normal scores of rows of which so many are positive."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Side, Side]:
        truth = (np.arange(n) < positives).astype(np.int64)

        def side() -> Side:
            score = rng.normal(size=n) + shift * truth
            return {"truth": truth, "scores": np.column_stack([-score, score]), LABELS: CODES[:2]}

        return side(), side()

    return draw


def area(shift: float) -> float:
    return math.erfc(-shift / 2) / 2


def numbers(skewed: bool, variances: Sequence[float]) -> Draw:
    """Numbers of variance 1, and systems whose errors have these variances and a correlation of .5."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Side, Side]:
        truth, shared = (rng.exponential(size=n) - 1 if skewed else rng.normal(size=n) for _ in "ab")

        def side(variance: float) -> Side:
            return {"truth": truth, "prediction": truth + math.sqrt(variance / 2) * (shared + rng.normal(size=n))}

        return side(variances[0]), side(variances[1])

    return draw


def rankings(relevant: float, quality: Sequence[float]) -> Draw:
    """Ten documents for each question, ranked by their grade and noise of which half is common to the systems."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Side, Side]:
        grades = np.where(rng.random((n, 10)) < relevant, rng.integers(1, 4, (n, 10)), 0).astype(float)
        grades[~grades.any(axis=1), 0] = 1.0
        shared = rng.normal(size=(n, 10))

        def side(weight: float) -> Side:
            order = np.argsort(-(weight * grades + shared + rng.normal(size=(n, 10))), axis=1)
            ranks = np.tile(np.arange(1.0, 11), (n, 1))
            ideal = -np.sort(-grades, axis=1)
            return {"grades": np.take_along_axis(grades, order, axis=1), "ranks": ranks, "relevant": ideal}

        return side(quality[0]), side(quality[1])

    return draw


def boxes(shares: Sequence[float]) -> Draw:
    """Images with up to three objects of two classes, detected with these chances, and a wrong box in two of five."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Side, Side]:
        counts = rng.integers(1, 4, n)
        classes, shared = rng.choice(2, (n, 3), p=[0.7, 0.3]), rng.random((n, 3))
        image = [[place for place in range(3) if place < count] for count in counts]
        truths = [[_box(place, row[place]) for place in places] for places, row in zip(image, classes, strict=True)]

        def side(share: float) -> Side:
            luck = np.where(rng.random((n, 3)) < 0.5, shared, rng.random((n, 3)))
            found, spurious, sure = luck < share, rng.random(n) < 0.4, rng.random((n, 4))
            detections = [
                [
                    _box(p, classes[row, p], 0.3 + 0.7 * sure[row, p])
                    if found[row, p]
                    else _box(p + 5, 0, sure[row, p])
                    for p in places
                ]
                + ([_box(9, classes[row, 0], 0.8 * sure[row, 3])] if spurious[row] else [])
                for row, places in enumerate(image)
            ]
            return {"truths": _texts(truths), "detections": _texts(detections)}

        return side(shares[0]), side(shares[1])

    return draw


def _box(place: int, label: int, confidence: float | None = None) -> dict[str, Any]:
    known = {} if confidence is None else {"confidence": float(confidence)}
    return {"box": [20.0 * place, 0.0, 20.0 * place + 10, 10.0], "label": "ab"[label], **known}


def _texts(images: Sequence[Any]) -> np.ndarray:
    """The boxes of images as the scorer stores them."""
    columns = [{name: [one[name] for one in image] for name in _named(image)} for image in images]
    return np.array([orjson.dumps(each).decode() for each in columns], np.object_)


def _named(image: Sequence[dict[str, Any]]) -> list[str]:
    return [*image[0]] if image else ["box", "label", "confidence"]


def prepared(metric: Metric, side: Side) -> Side:
    """The columns that the metric makes states of."""
    n = len(next(iter(side.values())))
    if metric.read is not None:
        side = metric.read({name: pa.array(column) for name, column in side.items()} | {INDEX: np.arange(n)})
    return dict(metric.prepare(side)) if metric.kind in PREPARED else side


def value_of(name: str, side: Side) -> float:
    metric = make_metric(name, **PARAMETERS.get(name, {}))
    columns = prepared(metric, side)
    n = len(next(iter(side.values())))
    state = metric.state({**columns, CLUSTER: np.arange(n)}, np.zeros(n, np.int64), 1)
    return float(metric.compute(state).value[0])


def of_large_sample(name: str, draw: Draw, n: int = LARGE) -> Cell:
    sides = draw(np.random.default_rng(99), n)
    return Cell(draw, value_of(name, sides[1]) - value_of(name, sides[0]))


def confidences(sharp: float, sides: Sequence[tuple[float, float]]) -> Draw:
    """Probabilities of a class, calibrated with a factor of 1 and a shift of 0; half of their noise is common."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Side, Side]:
        latent, shared = rng.normal(size=n), rng.normal(size=n)
        truth = (latent > 0).astype(np.int64)

        def side(factor: float, shift: float) -> Side:
            noise = math.sqrt(0.5) * (shared + rng.normal(size=n))
            seen = sharp * latent + math.sqrt(1 - sharp**2) * noise
            right = ndtr(factor * sharp * seen / math.sqrt(1 - sharp**2) + shift)
            return {"truth": truth, "scores": np.column_stack([1 - right, right]), LABELS: CODES[:2]}

        return side(*sides[0]), side(*sides[1])

    return draw


def decisions(shares: Sequence[float], sides: Sequence[Sequence[tuple[float, float]]]) -> Draw:
    """Labels of groups of these shares, which systems mistake with a chance by group and label."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Side, Side]:
        group, truth, shared = rng.choice(len(shares), n, p=shares), rng.integers(0, 2, n), rng.random(n)

        def side(errors: Sequence[tuple[float, float]]) -> Side:
            luck = np.where(rng.random(n) < 0.5, shared, rng.random(n))
            predicted = np.where(luck < np.array(errors)[group, truth], 1 - truth, truth)
            return {"truth": truth, "prediction": predicted, "group": group, LABELS: CODES[:2]}

        return side(sides[0]), side(sides[1])

    return draw


def selections(shares: Sequence[float], chances: Sequence[Sequence[float]]) -> Draw:
    """Rows of groups of these shares that systems select with a chance by group, half of the time by the same luck."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Side, Side]:
        group, shared = rng.choice(len(shares), n, p=shares), rng.random(n)

        def side(of: Sequence[float]) -> Side:
            luck = np.where(rng.random(n) < 0.5, shared, rng.random(n))
            chosen = (luck < np.array(of)[group]).astype(np.int64)
            return {"truth": np.ones(n, np.int64), "prediction": chosen, "group": group, LABELS: CODES[:2]}

        return side(chances[0]), side(chances[1])

    return draw


def odds(errors: Sequence[tuple[float, float]]) -> float:
    return float(np.ptp(np.array(errors), axis=0).max())


def lowest_ratio(chances: Sequence[float]) -> float:
    return min(chances) / max(chances)


PREPARED = ("ndcg", "mean_average_precision", "debiased_calibration_error")
FAIR, UNFAIR = [(0.2, 0.2)] * 3, [(0.1, 0.2), (0.35, 0.2), (0.2, 0.2)]
DISPARITIES: dict[str, tuple[tuple[str, ...], Kind]] = {
    "equalized_odds": (("tpr", "fpr"), "difference"),
    "ratio of selection rates": (("tpr",), "ratio"),  # all rows are positive
}
PARAMETERS: dict[str, dict[str, Any]] = {"debiased_calibration_error": {"label": "b", "scored_by": "classes"}}
EQUAL_OR_NOT = {
    "f1_macro": lambda: [
        Cell(labels(prior, errors), f1(prior, errors[1]) - f1(prior, errors[0]))
        for prior, errors in [
            ((0.5, 0.5), ((0.3, 0.3), (0.3, 0.3))),
            ((0.9, 0.1), ((0.1, 0.4), (0.1, 0.4))),
            ((0.9, 0.1), ((0.05, 0.5), (0.05, 0.3))),
            ((0.95, 0.05), ((0.02, 0.3), (0.03, 0.2))),
            ((0.7, 0.3), ((0.1, 0.1), (0.05, 0.08))),
        ]
    ],
    "roc_auc": lambda: [
        Cell(scores(share, shifts), area(shifts[1]) - area(shifts[0]))
        for share in (0.05, 0.2, 0.5)
        for shifts in ((1, 1), (1, 1.5), (2, 2), (2, 3), (3, 3))
    ],
    "roc_auc of few positives": lambda: [
        *(Cell(few_positives(positives, shift), 0.0) for positives in (3, 4, 6, 10, 20) for shift in (0, 1.5)),
        *(
            Cell(scores(0.02, shifts, common), area(shifts[1]) - area(shifts[0]))
            for shifts in ((0, 0), (2, 2), (1, 3))
            for common in (0.0, 0.9)
        ),
    ],
    "average_precision of few positives": lambda: [
        Cell(few_positives(positives, shift), 0.0) for positives in (3, 6, 20) for shift in (0, 1.5)
    ],
    "r2": lambda: [
        Cell(numbers(skewed, variances), variances[0] - variances[1])
        for skewed in (False, True)
        for variances in ((1, 1), (1, 0.8), (0.3, 0.2))
    ],
    "ndcg": lambda: [
        of_large_sample("ndcg", rankings(relevant, quality))
        if quality[0] != quality[1]
        else Cell(rankings(relevant, quality), 0.0)
        for relevant in (0.15, 0.5)
        for quality in ((0.5, 0.5), (0.5, 0.7), (3, 3), (2, 3))
    ],
    "mean_average_precision": lambda: [
        of_large_sample("mean_average_precision", boxes(shares), 40_000)
        if shares[0] != shares[1]
        else Cell(boxes(shares), 0.0)
        for shares in ((0.5, 0.5), (0.5, 0.6), (0.9, 0.9), (0.85, 0.95))
    ],
    "equalized_odds": lambda: [
        Cell(decisions(shares, sides), odds(sides[1]) - odds(sides[0]))
        for shares in ((0.5, 0.5), (0.8, 0.2), (0.5, 0.35, 0.15))
        for sides in [
            [of[: len(shares)] for of in both]
            for both in (
                (FAIR, FAIR),
                (FAIR, UNFAIR),
                (UNFAIR, UNFAIR),
                (UNFAIR, [(0.1, 0.2), (0.2, 0.2), (0.2, 0.2)]),
                ([(0.1, 0.2), (0.25, 0.1), (0.2, 0.15)], [(0.1, 0.2), (0.2, 0.2), (0.2, 0.2)]),
                ([(0.1, 0.3), (0.3, 0.1), (0.2, 0.2)], [(0.1, 0.4), (0.1, 0.1), (0.1, 0.2)]),
            )
        ]
    ],
    "ratio of selection rates": lambda: [
        Cell(selections(shares, chances), lowest_ratio(chances[1]) - lowest_ratio(chances[0]))
        for shares, chances in (
            ((0.6, 0.1, 0.1, 0.1, 0.1), ([0.3] * 5, (0.3, 0.2, 0.3, 0.3, 0.4))),
            ((0.6, 0.1, 0.1, 0.1, 0.1), ([0.3] * 5, [0.3] * 5)),
            ((0.6, 0.1, 0.1, 0.1, 0.1), ((0.3, 0.2, 0.3, 0.3, 0.4), (0.3, 0.15, 0.3, 0.3, 0.4))),
            ((0.8, 0.1, 0.1), ((0.3, 0.2, 0.4), (0.3, 0.3, 0.3))),
            ((0.5, 0.5), ((0.5, 0.5), (0.5, 0.5))),
            ((0.9, 0.1), ((0.5, 0.4), (0.5, 0.4))),
            ((0.9, 0.1), ((0.5, 0.3), (0.5, 0.5))),
            ((0.5, 0.5), ((0.6, 0.12), (0.6, 0.24))),
        )
    ],
    "debiased_calibration_error": lambda: [
        of_large_sample("debiased_calibration_error", confidences(sharp, sides))
        if sides[0] != sides[1]
        else Cell(confidences(sharp, sides), 0.0)
        for sharp in (0.5, 0.8)
        for sides in (
            ((1, 0), (1, 0)),
            ((1, 0), (1.3, 0.2)),
            ((1, 0), (2, 0.5)),
            ((1.3, 0.2), (1.3, 0.2)),
            ((1.3, 0.2), (2, 0.5)),
            ((2, 0.5), (2, 0.5)),
        )
    ],
}


@functools.cache
def cells(name: str) -> list[Cell]:
    return EQUAL_OR_NOT[name]()


OFF_BY_CHANCE = ("equalized_odds", "debiased_calibration_error", "ratio of selection rates")
"""Two systems whose true values are at the edge of what is possible are covered nearly always."""


class Found(NamedTuple):
    """What is found of one pair: the 95 % interval, the p value, and the one-sided bounds of gates."""

    low: float
    high: float
    p: float
    bound: float
    upper: float


def compare(name: str, sides: tuple[Side, Side], n: int) -> Found:
    if name in DISPARITIES:
        of, kind = DISPARITIES[name]
        a, b = ([rates(rate, side, n) for rate in of] for side in sides)
        by_groups = MetricSample.of(disparity_change(a, b, kind, n), n, 1.0)
        return Found(*by_groups.interval(0.95), by_groups.change.p, *by_groups.bounds(0.95))
    name = name.split()[0]
    metric, keys, group = make_metric(name, **PARAMETERS.get(name, {})), np.arange(n), np.zeros(n, np.int64)
    a, b = (prepared(metric, side) for side in sides)
    if metric.averages:
        by_rows = Sample.of(np.stack([a[VALUE], b[VALUE]]), np.ones(n), keys, metric.row_range)
        return Found(*by_rows.interval(0.95), by_rows.p, *by_rows.bounds(0.95))
    left = [metric.leave_out({**side, CLUSTER: keys}, group, 1) for side in (a, b)]
    found = MetricSample.of(paired_change(left[0], left[1], metric, n), n, 1.0)
    return Found(*found.interval(0.95), found.change.p, *found.bounds(0.95))


def rates(name: str, side: Side, n: int) -> LeftOut:
    """The rates of the groups of one side, and those without each example."""
    metric, group = make_metric(name, label="b"), side["group"]
    columns = {column: cells for column, cells in side.items() if column != "group"} | {CLUSTER: np.arange(n)}
    return metric.leave_out(columns, group, int(group.max()) + 1)


class Levels(NamedTuple):
    """Shares of simulated pairs, by cell: wrong and passed those of equal systems, beyond those of the worse bound."""

    covered: list[float]
    beyond: list[float]
    wrong: list[float]
    passed: list[float]


def levels(name: str, n: int, repeats: int) -> Levels:
    found = Levels([], [], [], [])
    for place, cell in enumerate(cells(name)):
        rng = np.random.default_rng([place, n])
        pairs = [compare(name, cell.draw(rng, n), n) for _ in range(repeats)]
        found.covered.append(float(np.mean([pair.low <= cell.truth <= pair.high for pair in pairs])))
        beyond = [(pair.bound > cell.truth, pair.upper < cell.truth) for pair in pairs]
        found.beyond.append(float(np.mean(beyond, axis=0).max()))
        if cell.truth == 0:
            found.wrong.append(float(np.mean([pair.p <= 0.05 for pair in pairs])))
            found.passed.append(float(np.mean([pair.bound > 0 for pair in pairs])))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n", "quoted"),
    [
        ("f1_macro", 200, 1000),
        ("f1_macro", 2000, 1000),
        ("roc_auc", 200, 600),
        ("roc_auc", 2000, 500),
        ("roc_auc of few positives", 200, 400),
        ("average_precision of few positives", 200, 400),
        ("r2", 200, 1000),
        ("r2", 2000, 300),
        ("ndcg", 200, 600),
        ("ndcg", 2000, 300),
        ("mean_average_precision", 200, 400),
        ("mean_average_precision", 2000, 100),
        ("equalized_odds", 200, 300),
        ("equalized_odds", 2000, 100),
        ("ratio of selection rates", 200, 300),
        ("ratio of selection rates", 2000, 300),
        ("debiased_calibration_error", 200, 200),
        ("debiased_calibration_error", 2000, 100),
    ],
)
def test_paired_intervals_cover_the_true_difference(name: str, n: int, quoted: int) -> None:
    repeats = simulations(quoted)
    found = levels(name, n, repeats)
    figures = [np.mean(found.covered), min(found.covered), np.mean(found.wrong), np.mean(found.passed)]
    shown = " | ".join(f"{figure:.3f}" for figure in (*figures, max(found.beyond)))
    print(f"| {name} | {n} | {len(found.covered)} | {repeats} | {shown} |")  # noqa: T201 - for the documentation

    def noise(share: float, cells: int = 1) -> float:
        """Two standard errors of a mean over cells."""
        return 2 * math.sqrt(share * (1 - share) / (repeats * cells))

    fewer = repeats < quoted  # than the bounds were found with
    most, n_cells = 0.99 if name in OFF_BY_CHANCE else 0.998 if "few" in name else 0.97, len(found.covered)
    of_mean = fewer * noise(0.95, n_cells)
    assert 0.93 - of_mean <= np.mean(found.covered) <= most + of_mean
    assert min(found.covered) >= 0.91 - (fewer or repeats < 300) * noise(0.91)
    for errors in (found.wrong, found.passed):
        assert np.mean(errors) <= 0.055 + (fewer and noise(0.055, len(errors)))
    if name.startswith("ratio"):
        assert max(found.beyond) <= 0.07 + (2 + fewer) * math.sqrt(0.07 * 0.93 / repeats)
    if "few" in name:
        assert max(found.wrong) <= 0.055 + 2 * math.sqrt(0.055 * 0.945 / repeats)


@pytest.mark.parametrize(("n", "sigma"), [(60, 1.0), (60, 2.0), pytest.param(400, 2.0, marks=pytest.mark.slow)])
def test_weighted_differences_of_equal_systems_are_found_no_more_often_than_they_may_be(n: int, sigma: float) -> None:
    rng, repeats, keys = np.random.default_rng(8), simulations(500), np.arange(n)
    wrong = dict.fromkeys(["f1_macro", "cohen_kappa", "mcc", "r2", "pearson", "spearman", "rmse"], 0)
    for _ in range(repeats):
        truth, number = rng.integers(0, 2, n), rng.normal(5, 1, n)
        by_label = [np.where(rng.random(n) < 0.75, truth, 1 - truth) for _ in "ab"]
        by_number = [number + rng.normal(0, 1, n) for _ in "ab"]
        weight = np.exp(rng.normal(0, sigma, n))
        for name in wrong:
            is_label, metric = name in ("f1_macro", "cohen_kappa", "mcc"), make_metric(name, weighted=True)
            given: Side = {LABELS: CODES[:2]} if is_label else {}
            sides = [
                given | {"truth": truth if is_label else number, "prediction": side, "_index_": keys}
                for side in (by_label if is_label else by_number)
            ]
            more = {CLUSTER: keys, WEIGHT: weight}
            left = [metric.leave_out({**metric.prepare(side), **more}, np.zeros(n, np.int64), 1) for side in sides]
            low, high = paired_change(left[0], left[1], metric, n, weight).interval(0.95)
            wrong[name] += not low <= 0 <= high
    print(n, sigma, {name: count / repeats for name, count in wrong.items()})  # noqa: T201 - for the documentation
    most = 0.05 + 2 * math.sqrt(0.05 * 0.95 / repeats)
    assert all(count / repeats <= most for count in wrong.values()), wrong
