"""The mean of squared errors of logarithms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evaluand.metrics.base.numeric_pairs import MeanError


@dataclass(frozen=True, kw_only=True)
class MeanSquaredLogError(MeanError):
    """The mean of (log(1 + prediction) − log(1 + truth))²: for counts that grow by factors.

    Undefined if a truth or a prediction is below 0.

    The parameters are those of `MeanError`.

    Example:
        >>> MeanSquaredLogError().error(np.array([0.0, -2.0]), np.array([np.e - 1, 1.0]))
        array([ 1., nan])
    """

    kind = "mean_squared_log_error"
    unfit = "a truth or a prediction below 0, of which there is no logarithm of a count"

    def error(self, truth: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        negative = np.minimum(truth, prediction) < 0
        expected, predicted = (np.log1p(np.where(negative, np.nan, values)) for values in (truth, prediction))
        return np.asarray(np.square(predicted - expected))
