"""Metrics of a million numbers in NumPy arrays, with and without intervals, beside scikit-learn's values alone.

With an interval by `evaluate`, which reads the same arrays as scikit-learn, finds what they hold and checks them. The
values alone of numbers and labels by `compute_metric`, from two Arrow tables whose rows it joins by an index, since
these two metrics always have an interval in `evaluate`; that of scores by `evaluate` without the interval.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from metrics import OURS, Case, Peer

SKLEARN = "scikit-learn"
PEERS = {SKLEARN: Peer("scikit-learn==1.9.1", "sklearn.metrics")}
ROWS = 1_000_000
CLASSES = 10
WITH, ALONE = 1 / 2.5, 1 / 1.2  # of the peer's time, at least
KINDS = ("mean squared error", "accuracy", "ROC AUC")


def _data(kind: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Truth and predictions, or scores of which some are equal."""
    random = np.random.default_rng(0)
    if kind == "mean squared error":
        truth = random.normal(size=n)
        return truth, truth + random.normal(scale=0.1, size=n)
    if kind == "accuracy":
        truth = random.integers(0, CLASSES, n)
        return truth, np.where(random.random(n) < 0.7, truth, random.integers(0, CLASSES, n))
    positive = (random.random(n) < 0.3).astype(np.int64)
    return positive, (np.clip(random.normal(positive * 0.8, 1), -3, 4).round(6) + 3) / 7


def _ours(kind: str, n: int, *, interval: bool) -> Callable[[], float]:
    from evaluand import evaluate
    from evaluand.metrics.areas import RocAuc

    truth, other = _data(kind, n)
    if kind == "ROC AUC":
        metric = RocAuc(label=1, scored_by="classes", confidence=0.95 if interval else None)
        return lambda: float(evaluate(truth, scores=other, metrics=metric).rows[0])
    if interval:
        metric = {"mean squared error": "mse", "accuracy": "accuracy"}[kind]
        return lambda: float(evaluate(truth, other, metrics=metric).rows[0])
    return _joined(kind, truth, other)


def _joined(kind: str, truth: np.ndarray, prediction: np.ndarray) -> Callable[[], float]:
    import pyarrow as pa

    from evaluand.interop.d3m import compute_metric

    name = {"mean squared error": "meanSquaredError", "accuracy": "accuracy"}[kind]
    tables = [pa.table({"d3mIndex": np.arange(len(side)), "y": side}) for side in (truth, prediction)]

    def work() -> float:
        value = compute_metric(name, *tables, targets="y")
        assert isinstance(value, float)
        return value

    return work


def _theirs(kind: str, n: int) -> Callable[[], float]:
    from sklearn import metrics

    function = {
        "mean squared error": metrics.mean_squared_error,
        "accuracy": metrics.accuracy_score,
        "ROC AUC": metrics.roc_auc_score,
    }[kind]
    sides = _data(kind, n)
    return lambda: float(function(*sides))


CASES = [
    Case(
        f"{kind}{', with its interval' if interval else ''}",
        {OURS: partial(_ours, kind, interval=interval), SKLEARN: partial(_theirs, kind)},
        ROWS,
        {SKLEARN: WITH if interval else ALONE},
        (OURS, SKLEARN),
    )
    for kind in KINDS
    for interval in (False, True)
]
