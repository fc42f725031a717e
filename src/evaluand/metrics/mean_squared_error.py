"""The mean of squared errors, and its root."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from evaluand.metric import State, Values
from evaluand.metrics.errors import MeanError


@dataclass(frozen=True, kw_only=True)
class MeanSquaredError(MeanError):
    """The mean of (prediction − truth)², in squared units of the truth; one large error outweighs many small ones.

    Args:
        weighted: each row counts by the weight of its example.
        confidence: of the interval.
        bootstrap: take the interval from so many bootstrap replicates instead.

    Example:
        >>> metric = MeanSquaredError()
        >>> columns = {"truth": np.array([1.0, 2.0]), "prediction": np.array([1.0, 5.0]), "_index_": np.arange(2)}
        >>> metric.compute(metric.state(metric.prepare(columns), np.zeros(2, int), n_groups=1)).value
        array([4.5])
    """

    kind = "mean_squared_error"

    def error(self, truth: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        return np.asarray(np.square(prediction - truth))


@dataclass(frozen=True, kw_only=True)
class RootMeanSquaredError(MeanSquaredError):
    """The square root of the mean squared error, in units of the truth.

    Value and ends of the interval are the roots of those of `mean_squared_error`. It is no mean of one number per row:
    to compare runs take `mean_squared_error`, which orders them alike.

    Args:
        weighted: each row counts by the weight of its example.
        confidence: of the interval.
        bootstrap: take the interval from so many bootstrap replicates instead.

    Example:
        >>> RootMeanSquaredError().signature
        'root_mean_squared_error v1 missing=leave_out reduce=first interval=student 95%'
    """

    kind = "root_mean_squared_error"
    averages: ClassVar[bool] = False

    def slope(self, value: np.ndarray) -> np.ndarray:
        return np.asarray(1 / (2 * value))

    def compute(self, state: State) -> Values:
        found = super().compute(state)
        data = [
            {"n": told["n"], **({"clusters": told["clusters"]} if "clusters" in told else {})} for told in found.data
        ]
        return replace(found, value=np.sqrt(found.value), low=np.sqrt(found.low), high=np.sqrt(found.high), data=data)
