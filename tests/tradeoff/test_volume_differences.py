"""Differences of hypervolumes of two models on the same rows, against areas under curves and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

import evaluand
from evaluand.core.errors import SpecError
from evaluand.tradeoff import Confidences, Tradeoff, solve

CURVE = ("recall", "false_positive_rate")
FAIR = ("accuracy", "equalized_odds difference by g")


def drawn(rng: np.random.Generator, n: int, shifts: tuple[float, float], unfair: float = 0.0) -> Confidences:
    """Two models with normal scores of a correlation of .5; the second misses positive rows of the group b."""
    truth, second, shared = rng.random(n) < 0.4, rng.random(n) < 0.3, rng.normal(size=n)
    scores = [math.sqrt(0.5) * (shared + rng.normal(size=n)) + shift * truth for shift in shifts]
    scores[1] = scores[1] - unfair * (second & truth)
    return Confidences.read(truth, {"a": scores[0], "b": scores[1]}, {"g": np.where(second, "b", "a")})


@pytest.mark.slow
def test_the_difference_of_two_curves_is_that_of_their_areas() -> None:
    rows = drawn(np.random.default_rng(0), 600, (0.8, 1.2))
    found = solve(rows, CURVE).hypervolume_difference("a", "b")
    areas = [
        evaluand.evaluate(rows.truth, scores=1 / (1 + np.exp(-score)), metrics="roc_auc")
        for score in rows.models.values()
    ]
    [pair] = evaluand.compare(*areas, metrics="roc_auc").pairs
    assert (found.value_a, found.value_b) == pytest.approx((pair["value_a"], pair["value_b"]))
    assert found.value == found.value_b - found.value_a
    assert found.low == pytest.approx(pair["low"], abs=0.012)
    assert found.high == pytest.approx(pair["high"], abs=0.012)
    assert found.low > 0
    assert found.p < 0.01
    back = solve(rows, CURVE).hypervolume_difference("b", "a")
    assert (back.value, back.low, back.high) == pytest.approx((-found.value, -found.high, -found.low), abs=1e-9)
    assert back.p == pytest.approx(found.p)


def test_paired_rows_tell_more_than_each_model_alone() -> None:
    rows = drawn(np.random.default_rng(1), 400, (1.0, 1.0))
    points = solve(rows, CURVE)
    found = points.hypervolume_difference("a", "b")
    alone = [points.take(points.model == place).hypervolume_interval() for place in (0, 1)]
    assert found.high - found.low < 0.9 * math.hypot(*(high - low for low, high in alone))


def test_equal_models_have_no_interval_and_unknown_ones_are_refused() -> None:
    rows = drawn(np.random.default_rng(2), 100, (1.0, 1.0))
    same = Confidences.read(rows.truth, {"a": rows.models["a"], "copy": rows.models["a"]})
    points = solve(same, CURVE)
    found = points.hypervolume_difference("a", "copy")
    assert found.value == 0
    assert math.isnan(found.low)
    with pytest.raises(SpecError, match=r"no point is of the model 'cop' \(did you mean 'copy'"):
        points.hypervolume_difference("a", "cop")


def points_of(rng: np.random.Generator, n: int, cell: tuple[tuple[float, float], float, tuple[str, str]]) -> Tradeoff:
    shifts, unfair, objectives = cell
    return solve(drawn(rng, n, shifts, unfair), objectives, 25)


CELLS = {
    "equal curves": ((1.0, 1.0), 0.0, CURVE),
    "curves that differ": ((0.8, 1.2), 0.0, CURVE),
    "equally fair": ((1.0, 1.0), 0.0, FAIR),
    "one unfair": ((1.0, 1.3), 0.6, FAIR),
}


@pytest.mark.slow
@pytest.mark.parametrize("n", [200, 2000])
@pytest.mark.parametrize("name", CELLS)
def test_intervals_cover_the_difference_of_the_population(name: str, n: int) -> None:
    cell, repeats = CELLS[name], 200
    large = points_of(np.random.default_rng(99), 200_000, cell)
    volume = [large.take(large.model == place).indicators()["hv"] for place in (0, 1)]
    truth = 0.0 if name.startswith("equal") else volume[1] - volume[0]
    rng = np.random.default_rng([n, len(name)])
    found = [
        points_of(rng, n, cell).hypervolume_difference("a", "b", replicates=100, seed=number)
        for number in range(repeats)
    ]
    covered = np.mean([one.low <= truth <= one.high for one in found])
    clear = np.mean([one.p <= 0.05 for one in found])
    print(f"| {name} | {n:,} | {covered:.3f} | {clear:.3f} |")  # noqa: T201 - for the documentation
    assert covered >= 0.91
    if truth == 0:
        assert clear <= 0.055 + 2 * math.sqrt(0.05 * 0.95 / repeats)
