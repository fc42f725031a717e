"""Fronts and their indicators, by hand and beside other programs."""

from __future__ import annotations

import math
from typing import Any

import moocore
import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as stn

from evaluand.core.errors import SpecError
from evaluand.tradeoff import Tradeoff, compare_systems
from evaluand.tradeoff.front import (
    additive_epsilon,
    distinct,
    fronts,
    hypervolume,
    hypervolumes,
    hypervolumes_of_two,
    igd_plus,
    non_dominated,
    radar_area,
    spreads,
    uniformity,
)
from evaluand.tradeoff.objectives import Objective

NAN = math.nan


def dominates(a: np.ndarray, b: np.ndarray) -> bool:
    return bool((a <= b).all() and (a < b).any())


def sets_of_points(values: Any, most: int = 25) -> st.SearchStrategy[np.ndarray]:
    return st.integers(1, 5).flatmap(
        lambda d: stn.arrays(np.float64, st.tuples(st.integers(0, most), st.just(d)), elements=values)
    )


def points_of(*value: tuple[float, float], objectives: tuple[str, ...] = ("accuracy", "recall")) -> Tradeoff:
    n = len(value)
    wanted = tuple(map(Objective.parse, objectives))
    array = np.array(value, float).reshape(n, len(wanted))
    return Tradeoff(wanted, ("m",), np.zeros(n, int), np.arange(n) / 10, array, np.zeros(n, bool))


# Dominance


@given(sets_of_points(st.sampled_from([0.0, 0.25, 0.5, 1.0, NAN])))
def test_the_front_is_what_no_point_dominates(points: np.ndarray) -> None:
    known = ~np.isnan(points).any(axis=1)
    expected = [bool(known[i]) and not any(dominates(b, a) for b in points[known]) for i, a in enumerate(points)]
    assert non_dominated(points).tolist() == expected


@pytest.mark.parametrize("objectives", [2, 3, 5])
def test_the_front_of_many_points_is_that_of_moocore(objectives: int) -> None:
    points = np.random.default_rng(objectives).random((1500, objectives)).round(2)
    assert non_dominated(points).tolist() == moocore.is_nondominated(points, keep_weakly=True).tolist()


@given(
    points=sets_of_points(st.sampled_from([0.0, 0.1, 0.3, 1 / 3, 0.7, 1.0, NAN])),
    random=st.integers(0, 2**32 - 1).map(np.random.default_rng),
)
def test_the_front_is_the_same_in_any_order_and_with_noise_of_rounding(
    points: np.ndarray, random: np.random.Generator
) -> None:
    order = random.permutation(len(points))
    noisy = points[order] + random.uniform(-1e-15, 1e-15, points.shape)
    assert non_dominated(noisy).tolist() == non_dominated(points)[order].tolist()
    assert np.sort(order[distinct(noisy, 0)]).size == distinct(points, 0).size


def test_what_is_dominated_but_for_rounding_is_not_on_the_front() -> None:
    points = points_of((0.1 + 0.2, 0.5), (0.3, 0.6), (0.3, 0.4), objectives=("accuracy", "recall"))
    assert points.front().threshold.tolist() == [0.1]
    assert points.pick("accuracy").threshold.tolist() == [0.1]
    assert distinct(np.array([[0.1 + 0.2], [0.3]]), tolerance=0.0).tolist() == [0]
    assert non_dominated(np.array([[0.5, 0.5], [0.5 - 1e-9, 0.5]])).tolist() == [False, True]


def test_points_that_are_undefined_are_neither_on_the_front_nor_dominated() -> None:
    points = points_of((0.9, 0.5), (NAN, 1.0), (0.5, 0.4))
    assert points.front().threshold.tolist() == [0.0]
    assert points.dominated().threshold.tolist() == [0.2]


def test_the_first_of_equal_points_stays() -> None:
    points = points_of((0.5, 0.1), (0.3, NAN), (0.5, 0.1 + 1e-9), (0.3, NAN), (0.5, 0.2))
    assert points.deduplicated().threshold.tolist() == [0.0, 0.1, 0.4]
    assert distinct(np.array([[0.5], [0.5 + 1e-9]]), tolerance=0.0).tolist() == [0, 1]


# Indicators


@pytest.mark.parametrize("objectives", [1, 2, 3, 4, 5])
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 25), ties=st.booleans())
def test_the_hypervolume_is_that_of_moocore(objectives: int, seed: int, n: int, ties: bool) -> None:
    points = np.random.default_rng(seed).random((n, objectives)).round(1 if ties else 9)
    expected = moocore.hypervolume(points, ref=np.ones(objectives)) if objectives > 1 else 1 - points.min()
    assert hypervolume(points) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("objectives", "n"), [(3, 800), (4, 300), (5, 150), (6, 60)])
@pytest.mark.parametrize("power", [0.5, 1, 2])
@pytest.mark.parametrize("digits", [2, 9])
def test_the_hypervolume_of_a_large_front_is_that_of_moocore(
    objectives: int, n: int, power: float, digits: int
) -> None:
    """Fronts that bulge in, are flat and bulge out; with ties and without."""
    points = np.random.default_rng(objectives).dirichlet(np.ones(objectives), n) ** power
    points = points.round(digits)
    assert hypervolume(points) == pytest.approx(moocore.hypervolume(points, ref=np.ones(objectives)), abs=1e-12)


def test_a_hypervolume_of_three_objectives_by_hand() -> None:
    assert hypervolume(np.array([[0.5, 0.0, 0.5], [0.0, 0.5, 0.5]])) == pytest.approx(0.75 * 0.5)
    assert hypervolume(np.zeros((1, 3))) == 1.0
    assert hypervolume(np.array([[1.0, 0.0, 0.0]])) == 0.0
    assert hypervolume(np.zeros((0, 3))) == 0.0


@pytest.mark.parametrize("objectives", [2, 3, 4, 5])
def test_the_hypervolume_is_the_share_of_outcomes_that_some_point_beats(objectives: int) -> None:
    random = np.random.default_rng(0)
    points, outcomes = random.random((8, objectives)), random.random((40_000, objectives))
    beaten = (points[:, None] <= outcomes).all(axis=-1).any(axis=0).mean()
    assert hypervolume(points) == pytest.approx(beaten, abs=0.015)


def test_many_sets_of_two_objectives_have_the_volumes_of_each() -> None:
    sets = np.random.default_rng(1).random((30, 12, 2)).round(1)
    sets[3, 5:] = NAN
    expected = [hypervolume(each[~np.isnan(each).any(axis=1)]) for each in sets]
    assert hypervolumes_of_two(sets) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("objectives", [2, 3, 4])
def test_many_sets_have_the_fronts_and_volumes_of_each(objectives: int) -> None:
    sets = np.random.default_rng(2).random((30, 12, objectives)).round(1)
    sets[3, 5:], sets[4], sets[5, :, 0] = NAN, NAN, NAN
    kept, volumes = fronts(sets), hypervolumes(sets)
    for each, front, volume in zip(sets, kept, volumes, strict=True):
        found = each[non_dominated(each)]
        assert np.unique(each[front], axis=0).tolist() == np.unique(found, axis=0).tolist()
        assert volume == pytest.approx(hypervolume(found), abs=1e-12) if len(found) else math.isnan(volume)


@given(
    loss=stn.arrays(np.float64, (5, 3), elements=st.floats(0, 1)),
    reference=stn.arrays(np.float64, (4, 3), elements=st.floats(0, 1)),
)
def test_what_a_front_falls_short_of_is_that_of_moocore(loss: np.ndarray, reference: np.ndarray) -> None:
    assert igd_plus(loss, reference) == pytest.approx(moocore.igd_plus(loss, ref=reference), abs=1e-12)
    assert additive_epsilon(loss, reference) == pytest.approx(moocore.epsilon_additive(loss, ref=reference), abs=1e-12)


def test_what_a_front_falls_short_of_by_hand() -> None:
    loss, reference = np.array([[0.5, 0.5]]), np.array([[0.2, 0.1], [0.6, 0.6]])
    assert igd_plus(loss, reference) == pytest.approx((0.5 + 0.0) / 2)
    assert additive_epsilon(loss, reference) == pytest.approx(0.4)
    assert math.isnan(igd_plus(np.zeros((0, 2)), reference))


def test_points_that_crowd_evenly_are_uniform() -> None:
    assert uniformity(np.array([[0.1, 0.1], [0.5, 0.5], [0.9, 0.9]])) == 1.0
    assert uniformity(np.array([[0.1, 0.1]])) == 1.0
    # two points share a niche and one is alone: counts 2, 2, 1, whose standard deviation is √(1/3)
    assert uniformity(np.array([[0.1, 0.1], [0.1, 0.105], [0.9, 0.9]])) == pytest.approx(1 / (1 + math.sqrt(1 / 3)))


@pytest.mark.parametrize("reach", [0.001, 0.05, 1.0])
def test_niches_are_those_of_every_pair(reach: float) -> None:
    points = np.random.default_rng(0).random((300, 3)) * reach
    near = (np.linalg.norm(points[:, None] - points, axis=-1) < 0.01).sum(axis=1)
    assert uniformity(points) == pytest.approx(1 / (1 + near.std(ddof=1)), rel=1e-12)


def test_spreads_are_the_reach_of_each_objective() -> None:
    assert spreads(np.array([[0.1, 0.9], [0.5, 0.4]])) == pytest.approx((0.2, 0.45))
    assert spreads(np.zeros((0, 2))) == (0.0, 0.0)


def test_the_area_of_a_radar_chart_is_a_share_of_the_greatest() -> None:
    angles = np.linspace(0, 2 * np.pi, 6)[:5]
    values = np.array([0.2, 0.9, 0.5, 1.0, 0.7])

    def shoelace(v: np.ndarray) -> float:
        x, y = v * np.cos(angles), v * np.sin(angles)
        return float(abs((x * np.roll(y, -1) - y * np.roll(x, -1)).sum()) / 2)

    assert radar_area(values.tolist()) == pytest.approx(shoelace(values) / shoelace(np.ones(5)))
    assert radar_area([2.0, 2.0, 2.0], highest=2.0) == 1.0
    with pytest.raises(ValueError, match="three axes"):
        radar_area([1.0, 1.0])


def test_the_indicators_of_a_small_front() -> None:
    found = points_of((0.9, 0.5), (0.5, 0.8), (0.5, 0.5), (0.9, 0.5)).indicators()
    assert found == pytest.approx(
        # niches hold 2, 2 and 1 points
        {"hv": 0.45 + 0.15, "os": 0.12, "as": 0.35, "onvg": 3, "onvgr": 0.75, "ud": 1 / (1 + math.sqrt(1 / 3))}
    )


def test_points_without_values_have_no_indicators() -> None:
    found = points_of((NAN, 0.5)).indicators()
    assert found["onvg"] == 0
    assert all(math.isnan(value) for name, value in found.items() if name != "onvg")


def test_one_objective_is_no_trade_off() -> None:
    points = points_of((0.5,), objectives=("accuracy",))  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="two objectives or more"):
        points.indicators()


def test_systems_are_compared_with_the_best_of_all() -> None:
    good, poor = points_of((0.9, 0.5), (0.5, 0.9)), points_of((0.6, 0.4))
    found = compare_systems({"good": good, "poor": poor})
    assert (found["good"]["relative_onvg"], found["poor"]["relative_onvg"]) == (1.0, 0.5)
    assert (found["good"]["igd_plus"], found["good"]["epsilon"]) == (0.0, 0.0)
    # short of (0.9, 0.5) by 0.3 and 0.1, of (0.5, 0.9) by 0.5
    assert found["poor"]["igd_plus"] == pytest.approx((math.hypot(0.3, 0.1) + 0.5) / 2)
    assert found["poor"]["epsilon"] == pytest.approx(0.5)
    axes = [found["poor"][name] for name in ("relative_onvg", "onvgr", "ud", "as", "hv")]
    assert found["poor"]["area"] == pytest.approx(radar_area(axes))


def test_systems_with_other_objectives_are_not_compared() -> None:
    other = points_of((0.6, 0.4), objectives=("accuracy", "precision"))
    with pytest.raises(SpecError, match="b has other objectives"):
        compare_systems({"a": points_of((0.6, 0.4)), "b": other})


def test_points_crowd_by_shares_of_the_range_and_not_by_values() -> None:
    """A step of 0.012 in a range from -1 to 1 is one of 0.006, which is within a niche."""
    objectives = ("matthews_correlation", "accuracy difference by g")
    steps = [(0.1 + 0.012 * i, 0.1 + 1e-5 * i) for i in range(2)] + [(0.9, 0.9)]
    assert points_of(*steps, objectives=objectives).indicators()["ud"] == pytest.approx(
        uniformity(np.array([[0, 0], [0.006, 0], [0.5, 0.5]]))
    )


def test_what_is_undefined_is_not_the_same_as_any_value() -> None:
    assert distinct(np.array([[NAN], [-1.0], [-0.9e-6], [NAN]])).tolist() == [0, 1, 2]
    assert distinct(np.array([[NAN], [-1.0], [np.inf]]), 0).tolist() == [0, 1, 2]
