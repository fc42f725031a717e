"""Variance components against the mean squares of statsmodels, and against designs whose components are known."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from statsmodels.formula.api import ols

from evaluand.metrics.stats.variance_components import variance_components

FACETS = ("examples", "variants", "judges")


def drawn(
    rng: np.random.Generator, sizes: tuple[int, ...], spread: dict[tuple[int, ...], float], mean: float = 0.0
) -> np.ndarray:
    """A balanced design with independent normal effects of these standard deviations, by axes."""
    values = np.full(sizes, mean)
    for axes, deviation in spread.items():
        shape = [n if axis in axes else 1 for axis, n in enumerate(sizes)]
        values = values + rng.normal(0, deviation, shape)
    return values


@pytest.mark.filterwarnings("ignore:divide by zero")  # the full model leaves no residual
def test_mean_squares_of_a_crossed_design_are_those_of_statsmodels() -> None:
    sizes = (6, 3, 4)
    spread = {(0,): 1.0, (1,): 2.0, (2,): 0.5, (0, 1): 1.0, (0, 1, 2): 0.4}
    values = drawn(np.random.default_rng(1), sizes, spread, mean=1e6)
    frame = pd.DataFrame(
        [(*map(str, place), values[place]) for place in itertools.product(*map(range, sizes))],
        columns=["e", "v", "j", "y"],
    )
    frame["y"] -= 1e6
    table = sm.stats.anova_lm(ols("y ~ C(e) * C(v) * C(j)", frame).fit())
    square = {name: table.loc[name, "sum_sq"] / table.loc[name, "df"] for name in table.index if name != "Residual"}
    found = variance_components(values, FACETS)
    last = square["C(e):C(v):C(j)"]
    ev, ej, vj = ((square[f"C({a}):C({b})"] - last) / n for a, b, n in (("e", "v", 4), ("e", "j", 3), ("v", "j", 6)))
    assert found[FACETS] == pytest.approx(last)
    assert found["examples", "variants"] == pytest.approx(max(ev, 0))
    assert found["variants", "judges"] == pytest.approx(max(vj, 0))
    assert found["examples",] == pytest.approx(max((square["C(e)"] - last - 4 * ev - 3 * ej) / 12, 0))
    assert found["variants",] == pytest.approx(max((square["C(v)"] - last - 4 * ev - 6 * vj) / 24, 0))


def test_nested_replications_are_a_one_way_analysis() -> None:
    values = drawn(np.random.default_rng(2), (30, 4), {(0,): 1.0, (0, 1): 0.7})
    table = sm.stats.anova_lm(
        ols("y ~ C(e)", pd.DataFrame({"e": np.repeat(np.arange(30), 4).astype(str), "y": values.ravel()})).fit()
    )
    between, within = table["mean_sq"]
    found = variance_components(values, ("examples", "replications"), {"replications": ["examples"]})
    assert found == pytest.approx({("examples",): (between - within) / 4, ("examples", "replications"): within})


def test_estimates_are_right_on_average() -> None:
    rng, sizes = np.random.default_rng(3), (40, 3, 2, 3)
    facets = (*FACETS, "replications")
    spread = {(0,): 0.5, (1,): 0.3, (2,): 0.6, (0, 1): 0.4, (0, 2): 0.3, (0, 1, 3): 0.8, (0, 1, 2, 3): 0.2}
    nested = {"replications": ["examples", "variants"]}
    found = [variance_components(drawn(rng, sizes, spread), facets, nested) for _ in range(400)]
    assert ("replications",) not in found[0]
    assert ("examples", "replications") not in found[0]
    for axes, deviation in spread.items():
        name = tuple(facets[axis] for axis in axes)
        each = [one[name] for one in found]
        assert np.mean(each) == pytest.approx(deviation**2, abs=4 * np.std(each) / 20 + 0.01)


def test_equal_numbers_vary_in_nothing() -> None:
    assert max(variance_components(np.full((3, 2), 0.1), ("a", "b")).values()) < 1e-30
