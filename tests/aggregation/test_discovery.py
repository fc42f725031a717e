"""Groups that are looked for on one half and judged on the other."""

from __future__ import annotations

import numpy as np
import pytest

from evaluand.aggregation.discovery import discover_groups
from evaluand.core.errors import SpecError
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluation, Evaluator
from evaluand.metrics.accuracy import Accuracy
from evaluand.run.runner import Runner


def evaluated(worse: float, n: int = 1200, seed: int = 0) -> Evaluation:
    """Right four times of five; less often, by so much, for the group a, x."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        g, h = "ab"[rng.integers(2)], "xyz"[rng.integers(3)]
        right = rng.random() < (0.8 - worse * (g == "a" and h == "x"))
        rows.append({"input": i, "expected": i if right else -1, "g": g, "h": h, "person": i // 2})
    data = Dataset.from_rows(rows, attributes=["g", "h"], cluster="person")
    return Evaluator().evaluate(Runner().run(int, data), {"same": lambda output, expected: output == expected})


def test_the_worst_group_is_found_on_one_half_and_confirmed_on_the_other() -> None:
    evaluation = evaluated(0.4)
    first = discover_groups(evaluation, "same", Accuracy(), ["g", "h"])[0]
    assert first.by == {"g": "a", "h": "x"}
    assert first.confirmed
    assert first.low <= first.value <= first.high < first.overall
    assert discover_groups(evaluation, "same", Accuracy(), ["g", "h"])[0] == first
    assert discover_groups(evaluation, "same", Accuracy(), ["g", "h"], seed=1)[0].value != first.value


def test_groups_that_differ_by_chance_are_rarely_confirmed() -> None:
    found = [
        discover_groups(evaluated(0.0, 300, seed), "same", Accuracy(), ["g", "h"], smallest=5) for seed in range(12)
    ]
    assert sum(any(group.confirmed for group in groups) for groups in found) <= 2
    assert np.mean([groups[0].found - groups[0].value for groups in found]) < 0  # what was looked for looked too bad


def test_an_unknown_attribute_is_refused() -> None:
    with pytest.raises(SpecError, match="'gg' is not an attribute of the dataset"):
        discover_groups(evaluated(0.0, 20), "same", Accuracy(), ["gg"])
