"""The verdict of a comparison in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evaluand import compare, evaluate
from evaluand.comparison.verdict import verdict

PAIR: dict[str, Any] = {
    "a": 0,
    "b": 1,
    "difference": -0.375,
    "low": -0.7,
    "high": -0.05,
    "interval": "paired score",
    "family": "primary",
    "p": 0.03,
    "p_holm": 0.375,
    "direction": "higher",
    "share": True,
    "detectable": 0.4,
    "n_used": 8,
    "won": 0,
    "tied": 5,
    "lost": 3,
    "reason": None,
}


def test_an_interval_without_0_beside_an_adjusted_p_is_explained() -> None:
    said = verdict(PAIR, ["small", "big"], 0.95, 3)
    assert "[-70.0, -5.0]; p = 0.3750 after Holm (the interval is not adjusted for the 3 comparisons); with" in said


def test_a_secondary_metric_is_marked() -> None:
    said = verdict(PAIR | {"family": "secondary", "p_holm": 0.03}, ["small", "big"], 0.95, 2)
    assert said == "small is better: big − small = -37.5 points [-70.0, -5.0]; p = 0.0300 after Holm, secondary"


def test_after_several_looks_the_interval_alone_decides() -> None:
    looked = PAIR | {"interval": "anytime", "p": None, "p_holm": None, "detectable": None}
    assert verdict(looked, ["old", "new"], 0.95, 0).endswith("[-70.0, -5.0]; at all looks")
    assert verdict(looked, ["old", "new"], 0.95, 6).endswith("[-70.0, -5.0]; at all looks and for all 6 tests")
    assert verdict(looked | {"high": 0.1}, ["old", "new"], 0.95, 0).startswith("no difference could be shown")


def test_nothing_is_explained_where_interval_and_p_agree_or_nothing_is_adjusted() -> None:
    assert "not adjusted" not in verdict(PAIR | {"high": 0.1}, ["small", "big"], 0.95, 3)
    assert "not adjusted" not in verdict(PAIR, ["small", "big"], 0.95, 1)
    assert "not adjusted" not in verdict(PAIR | {"low": None, "high": None}, ["small", "big"], 0.95, 3)
    assert "not adjusted" not in verdict(PAIR | {"p_holm": 0.01}, ["small", "big"], 0.95, 3)


def test_where_p_is_undefined_nothing_is_adjusted() -> None:
    unknown = PAIR | dict.fromkeys(("low", "high", "p", "p_holm", "detectable")) | {"reason": "no interval: why"}
    for family in (PAIR["family"], "secondary"):
        said = verdict(unknown | {"family": family}, ["small", "big"], 0.95, 2)
        assert said == "no difference could be shown: big − small = -37.5 points; p undefined; no interval: why"


TRUTH = np.arange(50) % 2
WRONG = np.where(np.arange(50) < 3, 1 - TRUTH, TRUTH)


def weighted(weight: np.ndarray, metric: str) -> dict[str, Any]:
    """A comparison with a system that is wrong in the first three of 50 rows."""
    [pair] = compare(*(evaluate(TRUTH, answers, metrics=[metric], weight=weight) for answers in (TRUTH, WRONG))).pairs
    return pair


def test_rows_without_weight_are_no_rows_that_could_differ() -> None:
    said = weighted(np.where(np.arange(50) < 40, 0.0, 1.0), "accuracy")["verdict"]
    assert said.endswith("; 10 rows, of which 0 differ, are too few to show any")


def test_one_heavy_row_detects_nothing() -> None:
    pair = weighted(np.where(np.arange(50) == 0, 1e6, 1.0), "accuracy")
    assert pair["detectable"] is None
    assert pair["verdict"].endswith("; 50 rows, of which 3 differ, are too few to show any")


@pytest.mark.parametrize("metric", ["accuracy", "f1_macro"])
@pytest.mark.parametrize("heavy", [1.0, 5.0, 20.0])
def test_nothing_is_detectable_that_the_interval_could_hide(metric: str, heavy: float) -> None:
    pair = weighted(np.where(np.arange(50) == 0, heavy, 1.0), metric)
    assert pair["detectable"] >= (pair["high"] - pair["low"]) / 2
