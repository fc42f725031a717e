"""Labels and class scores of a million rows: from Arrow columns with an index, and by scikit-learn from arrays.

Ours is given two tables, brings the rows together by their index and checks every cell; scikit-learn is given arrays
that stand in one order and are known to be right. In the cases with `rows in another order` the rows of the predictions
are shuffled, which scikit-learn's are not. For the area under the ROC curve ours reads a table of class scores, two
rows for each example.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from metrics import OURS, Case, Peer

SKLEARN = "scikit-learn"
PEERS = {SKLEARN: Peer("scikit-learn==1.9.1", "sklearn.metrics")}
ROWS = 1_000_000
CLASSES = 10


def _labels(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Truth and prediction as text; seven in ten are right."""
    random = np.random.default_rng(0)
    names = np.array([f"class {place}" for place in range(CLASSES)], np.object_)
    truth = random.integers(0, CLASSES, n)
    return names[truth], names[np.where(random.random(n) < 0.7, truth, random.integers(0, CLASSES, n))]


def _scores(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Whether each row is positive, and its score, of which some are equal."""
    random = np.random.default_rng(0)
    positive = random.random(n) < 0.3
    return positive, (np.clip(random.normal(positive * 0.8, 1), -3, 4).round(6) + 3) / 7


def _ours(metric: str, n: int, *, shuffled: bool = False) -> Callable[[], float]:
    import pyarrow as pa

    from evaluand.interop.d3m import compute_metric

    truth, predictions = (pa.table({"d3mIndex": np.arange(n), "y": pa.array(side, pa.string())}) for side in _labels(n))
    if shuffled:
        predictions = predictions.take(pa.array(np.random.default_rng(1).permutation(n)))
    return lambda: _number(compute_metric(metric, truth, predictions, targets="y"))


def _area(n: int) -> Callable[[], float]:
    import pyarrow as pa

    from evaluand.interop.d3m import compute_metric

    positive, score = _scores(n)
    names = pa.array(["no", "yes"])
    truth = pa.table({"d3mIndex": np.arange(n), "y": names.take(pa.array(positive.astype(np.int8)))})
    both = {
        "d3mIndex": np.repeat(np.arange(n), 2),
        "y": names.take(pa.array(np.tile([1, 0], n))),
        "confidence": np.stack([score, 1 - score], axis=1).ravel(),
    }
    predictions = pa.table(both)
    return lambda: _number(compute_metric("rocAuc", truth, predictions, targets="y"))


def _number(value: Any) -> float:
    assert isinstance(value, float)
    return value


def _theirs(metric: str, n: int) -> Callable[[], float]:
    from sklearn import metrics

    truth, predictions = _labels(n)
    if metric == "accuracy":
        return lambda: float(metrics.accuracy_score(truth, predictions))
    return lambda: float(metrics.f1_score(truth, predictions, average="macro"))


def _their_area(n: int) -> Callable[[], float]:
    from sklearn import metrics

    positive, score = _scores(n)
    truth = np.where(positive, "yes", "no")
    return lambda: float(metrics.roc_auc_score(truth, score))


def _cases(metric: str, times: float) -> list[Case]:
    ours, theirs = partial(_ours, metric), partial(_theirs, metric)
    both = (OURS, SKLEARN)
    return [
        Case(f"{metric} of text", {OURS: ours, SKLEARN: theirs}, ROWS, {SKLEARN: times}, both),
        Case(
            f"  {metric}, rows in another order", {OURS: partial(ours, shuffled=True), SKLEARN: theirs}, ROWS, {}, both
        ),
    ]


CASES = [
    *_cases("f1Macro", 15),
    *_cases("accuracy", 10),
    Case("rocAuc", {OURS: _area, SKLEARN: _their_area}, ROWS, {SKLEARN: 1}, (OURS, SKLEARN)),
]
