"""Means of absolute errors, in units of the truth and as shares of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evaluand.metrics.base.numeric_pairs import MeanError, absolute_errors


@dataclass(frozen=True, kw_only=True)
class MeanAbsoluteError(MeanError):
    """The mean of |prediction − truth|, in units of the truth.

    The parameters are those of `MeanError`.

    Example:
        >>> MeanAbsoluteError().error(np.array([1.0, 2.0]), np.array([1.5, 0.0]))
        array([0.5, 2. ])
    """

    kind = "mean_absolute_error"

    def error(self, truth: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        return absolute_errors(truth, prediction)


@dataclass(frozen=True, kw_only=True)
class MeanAbsolutePercentageError(MeanError):
    """The mean of |prediction − truth| / |truth|, as a share: 0.1 is ten percent.

    Undefined if a truth is 0 (other tools divide by a tiny number then, and return a huge value). Use it if all truths
    are well above 0; it favours predictions that are too low.

    The parameters are those of `MeanError`.

    Example:
        >>> MeanAbsolutePercentageError().error(np.array([2.0, 0.0]), np.array([1.0, 1.0]))
        array([0.5, nan])
    """

    kind = "mean_absolute_percentage_error"
    unfit = "the truth 0, of which no error is a share; take mean_absolute_error"

    def error(self, truth: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        size, error = np.where(truth == 0, np.nan, np.abs(truth)), absolute_errors(truth, prediction)
        return np.where(np.isinf(error), absolute_errors(truth / 2, prediction / 2) / (size / 2), error / size)
