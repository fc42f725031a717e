"""The verdict of a comparison in words."""

from __future__ import annotations

from typing import Any

from evaluand.comparison.verdict import verdict

PAIR: dict[str, Any] = {
    "a": 0,
    "b": 1,
    "difference": -0.375,
    "low": -0.7,
    "high": -0.05,
    "p": 0.03,
    "p_holm": 0.375,
    "direction": "higher",
    "share": True,
    "detectable": 0.4,
    "n_used": 8,
    "won": 0,
    "lost": 3,
    "reason": None,
}


def test_an_interval_without_0_beside_an_adjusted_p_is_explained() -> None:
    said = verdict(PAIR, ["small", "big"], 0.95, 3)
    assert "[-70.0, -5.0]; p = 0.3750 after Holm (the interval is not adjusted for the 3 comparisons); with" in said


def test_a_p_that_its_own_interval_denies_is_of_an_exact_test() -> None:
    for family in (1, 3):
        said = verdict(PAIR | {"p": 0.125}, ["small", "big"], 0.95, family)
        assert " (exact test; the interval is approximate)" in said
        assert "not adjusted" not in said


def test_nothing_is_explained_where_interval_and_p_agree_or_nothing_is_adjusted() -> None:
    assert "not adjusted" not in verdict(PAIR | {"high": 0.1}, ["small", "big"], 0.95, 3)
    assert "not adjusted" not in verdict(PAIR, ["small", "big"], 0.95, 1)
    assert "not adjusted" not in verdict(PAIR | {"low": None, "high": None}, ["small", "big"], 0.95, 3)
    assert "not adjusted" not in verdict(PAIR | {"p_holm": 0.01}, ["small", "big"], 0.95, 3)
