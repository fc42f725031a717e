"""Errors of predicted numbers, squared or absolute: their means, and other numbers of their distribution."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Final

import numpy as np

from evaluand.metrics.base.averaging import TOO_FAR
from evaluand.metrics.base.left_out import LeftOut
from evaluand.metrics.base.metric import NO_ROWS, VALUE, Columns, Metric, State, Values
from evaluand.metrics.base.numeric_pairs import PREDICTION, TOO_LARGE, TRUTH, MeanError, absolute_errors, paired_numbers
from evaluand.metrics.column_statistics import Positional, at_share
from evaluand.metrics.stats.intervals import count_rows


class MeanSquaredError(MeanError):
    """The mean of (prediction − truth)², in squared units of the truth; one large error outweighs many small ones.

    Example:
        >>> metric = MeanSquaredError()
        >>> columns = {"truth": np.array([1.0, 2.0]), "prediction": np.array([1.0, 5.0]), "_index_": np.arange(2)}
        >>> metric.compute(metric.state(metric.prepare(columns), np.zeros(2, int), n_groups=1)).value
        array([4.5])
    """

    kind = "mean_squared_error"

    def error(self, truth: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        difference = prediction - truth
        return np.asarray(np.square(difference, out=difference))


class RootMeanSquaredError(MeanSquaredError):
    """The square root of the mean squared error, in units of the truth.

    Value and interval are the roots of those of `mean_squared_error`.

    Example:
        >>> RootMeanSquaredError().signature
        'root_mean_squared_error v1 missing=leave_out reduce=first interval=hall 95%'
    """

    kind = "root_mean_squared_error"
    averages: ClassVar[bool] = False

    def error(self, truth: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        """The absolute error, squared later after division by a power of two, so that no square overflows."""
        return absolute_errors(truth, prediction)

    def reduced(self, values: np.ndarray, starts: np.ndarray) -> np.ndarray:
        if self.reduce != "mean":
            return super().reduced(values, starts)
        exponent = np.frexp(np.maximum.reduceat(values, starts))[1]
        with np.errstate(over="ignore"):
            squares = np.square(np.ldexp(values, -np.repeat(exponent, np.diff(starts, append=len(values)))))
            return np.asarray(np.ldexp(np.sqrt(super().reduced(squares, starts)), exponent))

    def state(self, columns: Columns, group: np.ndarray, n_groups: int) -> State:
        largest = np.zeros(n_groups)
        np.maximum.at(largest, group, columns[VALUE])
        exponent = np.where(largest > 0, np.frexp(largest)[1], _OF_NOTHING)
        with np.errstate(over="ignore"):  # if an error is too large
            squares = np.square(np.ldexp(columns[VALUE], -exponent[group]))
        return {**super().state({**columns, VALUE: squares}, group, n_groups), _EXPONENT: exponent}

    def merge(self, states: Sequence[State]) -> State:
        exponent = np.max([np.where(state["n"] > 0, state[_EXPONENT], _OF_NOTHING) for state in states], axis=0)
        return {**super().merge([_rescale(state, exponent) for state in states]), _EXPONENT: exponent}

    def leave_out(self, columns: Columns, group: np.ndarray, n_groups: int) -> LeftOut:
        largest = float(columns[VALUE].max(initial=0.0)) or 1.0
        found = super().leave_out({**columns, VALUE: np.square(columns[VALUE] / largest)}, group, n_groups)
        value, without = (largest * np.sqrt(np.maximum(each, 0.0)) for each in (found.value, found.without))
        return found._replace(value=value, without=without)

    def slope(self, state: State, value: np.ndarray) -> np.ndarray:
        exponent = state[_EXPONENT]
        return np.asarray(np.ldexp(1 / (2 * np.ldexp(value, -exponent)), exponent))

    def compute(self, state: State) -> Values:
        found = super().compute(state)
        with np.errstate(over="ignore"):
            value, *ends = (np.ldexp(np.sqrt(end), state[_EXPONENT]) for end in (found.value, found.low, found.high))
        too_large = np.isinf(ends[1])
        low, high = (np.where(too_large, np.nan, end) for end in ends)
        reason = [TOO_FAR if bad else other for bad, other in zip(too_large.tolist(), found.reason, strict=True)]
        data = [{name: entry[name] for name in ("n", "clusters") if name in entry} for entry in found.data]
        return replace(found, value=value, low=low, high=high, reason=reason, data=data)


class MeanSquaredLogError(MeanError):
    """The mean of (log(1 + prediction) − log(1 + truth))²: for counts that grow by factors.

    Undefined if a truth or a prediction is below 0.

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


def _rescale(state: State, exponent: np.ndarray) -> State:
    """A state of squares, rescaled to other powers of two."""
    less = np.where(state["n"] > 0, 2 * (state[_EXPONENT] - exponent), 0)
    found = {name: np.ldexp(state[name], power * less) for name, power in _POWERS.items() if name in state}
    if "cluster_sum" in state:
        found["cluster_sum"] = np.ldexp(state["cluster_sum"], less[state["cluster_group"]])
    return {**state, **found}


_POWERS: Final = {"mean": 1, "rest": 1, "weight_value": 1, "m2": 2, "m3": 3}
_EXPONENT: Final = "exponent"
_OF_NOTHING: Final = -5000
"""Below the exponent of any number: used for a group without errors, or whose errors are all 0."""


class MeanAbsoluteError(MeanError):
    """The mean of |prediction − truth|, in units of the truth.

    Example:
        >>> MeanAbsoluteError().error(np.array([1.0, 2.0]), np.array([1.5, 0.0]))
        array([0.5, 2. ])
    """

    kind = "mean_absolute_error"

    def error(self, truth: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        return absolute_errors(truth, prediction)


class MeanAbsolutePercentageError(MeanError):
    """The mean of |prediction − truth| / |truth|, as a share: 0.1 is ten percent.

    Undefined if a truth is 0 (other tools divide by a tiny number then, and return a huge value). Use it if all truths
    are well above 0; it favours predictions that are too low.

    Example:
        >>> MeanAbsolutePercentageError().error(np.array([2.0, 0.0]), np.array([1.0, 1.0]))
        array([0.5, nan])
    """

    kind = "mean_absolute_percentage_error"
    unfit = "the truth 0, of which no error is a share; take mean_absolute_error"

    def error(self, truth: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        size, error = np.where(truth == 0, np.nan, np.abs(truth)), absolute_errors(truth, prediction)
        return np.where(np.isinf(error), absolute_errors(truth / 2, prediction / 2) / (size / 2), error / size)


class _OfAbsoluteErrors(Metric):
    direction = "lower"
    range = (0.0, np.inf)
    row_range = (0.0, np.inf)
    columns = (TRUTH, PREDICTION)

    def prepare(self, columns: Columns) -> Columns:
        return {VALUE: absolute_errors(**paired_numbers(columns, self.kind))}


class MedianAbsoluteError(_OfAbsoluteErrors, Positional):
    """The median of |prediction − truth|, which large outliers do not affect.

    For an even number of rows, the mean of the two middle errors. The interval is that of `quantile`. Unweighted.

    Args:
        confidence: of the interval.

    Example:
        >>> MedianAbsoluteError().signature
        'median_absolute_error v1 missing=leave_out reduce=first interval=woodruff 95%'
    """

    kind = "median_absolute_error"
    reductions = ("first", "best", "mean", "all")
    share = 0.5

    def locate(self, values: np.ndarray, starts: np.ndarray, n: np.ndarray) -> np.ndarray:
        lower, upper = (at_share(values, starts, n, place / np.maximum(n, 1)) for place in ((n + 1) // 2, n // 2 + 1))
        halves = lower / 2 + upper / 2
        return np.where(upper > _HALF, halves, (np.minimum(lower, _HALF) + np.minimum(upper, _HALF)) / 2)


_HALF: Final = float(np.finfo(np.float64).max) / 2
"""The sum of two larger numbers overflows; halving such numbers is exact."""


class MaxError(_OfAbsoluteErrors):
    """The largest |prediction − truth|; without an interval, since unseen errors may be larger.

    Example:
        >>> MaxError().signature
        'max_error v1 missing=leave_out reduce=first'
    """

    kind = "max_error"
    has_differences: ClassVar[bool] = False
    reductions = ("first", "best", "all")

    def state(self, columns: Columns, group: np.ndarray, n_groups: int) -> State:
        largest = np.zeros(n_groups)
        np.maximum.at(largest, group, columns[VALUE])
        return {"n": count_rows(group, n_groups), "largest": largest}

    def merge(self, states: Sequence[State]) -> State:
        largest = np.max([state["largest"] for state in states], axis=0)
        return {"n": np.sum([state["n"] for state in states], axis=0), "largest": largest}

    def compute(self, state: State) -> Values:
        n = state["n"]
        nothing = np.full(n.shape, np.nan)
        value = np.where((n > 0) & np.isfinite(state["largest"]), state["largest"], np.nan)
        of_rows = np.where(np.isnan(value), TOO_LARGE, "a largest error has no interval")
        reason = np.where(n == 0, NO_ROWS, of_rows).tolist()
        return Values(value, nothing, nothing, reason, [{"n": rows} for rows in n.tolist()])
