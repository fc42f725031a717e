"""Neither the order of rows nor the names of labels move a value, an interval or a p value."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import evaluand
from evaluand.comparison.comparing import compare
from evaluand.metrics.names import make_metric

N = 700
RNG = np.random.default_rng(4)
SETS = [[f"c{j}" for j in range(5) if RNG.random() < 0.3] or ["c0"] for _ in range(N)]
LABELS = RNG.choice(["a", "b", "c", "d"], N).tolist()
NUMBERS = RNG.gamma(2, 2, N).round(3).tolist()
GROUP, CLUSTER, WEIGHT = RNG.integers(0, 40, N), RNG.integers(0, 200, N), RNG.choice([0.5, 1, 3], N)


def noisy(values: Sequence[Any], share: float) -> list[Any]:
    wrong = RNG.random(N) < share
    return [values[RNG.integers(N)] if bad else value for value, bad in zip(values, wrong, strict=True)]


def median_error(truth: np.ndarray, prediction: np.ndarray) -> float:
    return float(np.median(np.abs(truth - prediction)))


DATA = {"sets": SETS, "labels": LABELS, "numbers": NUMBERS}
SIDES = {name: (noisy(values, 0.1), noisy(values, 0.15)) for name, values in DATA.items()}
CASES: list[tuple[str, Any, dict[str, Any]]] = [
    ("sets", "overlapping_mutual_information", {}),
    ("sets", "overlapping_mutual_information", {"weight": WEIGHT}),
    ("sets", "omega_index", {"cluster": CLUSTER}),
    ("labels", "f1_macro", {"cluster": CLUSTER}),
    ("labels", "v_measure", {"weight": WEIGHT}),
    ("labels", "cohen_kappa", {"by": GROUP, "disparities": ["difference"]}),
    ("labels", make_metric("accuracy", bootstrap=200), {}),
    ("numbers", "r_squared", {"weight": WEIGHT, "cluster": CLUSTER}),
    ("numbers", "spearman", {}),
    ("numbers", make_metric("mean_absolute_error", bootstrap=200), {"cluster": CLUSTER}),
    ("numbers", "root_mean_squared_error", {"by": GROUP}),
    ("numbers", median_error, {}),
]


def numbers(
    data: str, metric: Any, columns: dict[str, Any], order: np.ndarray, rename: Callable[[Any], Any]
) -> list[float]:
    """All values, ends and p values of two systems and their difference."""
    options = {name: {"by": column[order]} if name == "by" else column for name, column in columns.items()}
    options |= {name: columns[name][order] for name in ("weight", "cluster") if name in columns}
    truth, *sides = ([rename(values[row]) for row in order] for values in (DATA[data], *SIDES[data]))
    a, b = (evaluand.evaluate(truth, side, metrics=[metric], **options) for side in sides)
    found = [
        [row.value, row.low, row.high] for each in (a, b) for row in sorted(each.rows, key=lambda row: str(row.by))
    ]
    if not callable(metric):
        found += [[pair[name] for name in ("difference", "low", "high", "p")] for pair in compare(a, b).pairs]
    return [np.nan if number is None else number for row in found for number in row]


def renamed(value: Any) -> Any:
    """Another label, which sorts otherwise."""
    if isinstance(value, list):
        return [renamed(label) for label in value]
    return value if isinstance(value, float) else f"{ord('z') - ord(value[-1])}-{value}"


@pytest.mark.parametrize(("data", "metric", "columns"), CASES)
def test_neither_order_nor_names_move_a_number(data: str, metric: Any, columns: dict[str, Any]) -> None:
    same = np.arange(N)
    first = numbers(data, metric, columns, same, lambda value: value)
    order = np.random.default_rng(1).permutation(N)
    assert np.isfinite(first).any()
    assert numbers(data, metric, columns, order, renamed) == pytest.approx(first, rel=1e-9, abs=1e-12, nan_ok=True)
