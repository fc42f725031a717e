"""D²: how much of a loss predictions explain, compared with the best constant prediction."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evaluand.metrics.base.metric import WEIGHT, Columns
from evaluand.metrics.base.numeric_pairs import PREDICTION, TRUTH
from evaluand.metrics.base.sums import OfSums
from evaluand.metrics.correlations import OfNumbers
from evaluand.metrics.deviances import OfQuantile, check_power, deviance, outside_domain, pinball


@dataclass(frozen=True, kw_only=True)
class ExplainedLoss(OfNumbers, OfSums):
    """1 − the loss of the predictions / the loss of the best constant prediction of these rows.

    1 for perfect predictions, 0 for the best constant, below 0 for worse ones. Undefined if all truths are equal, since
    a constant then has no loss.
    """

    direction = "higher"
    range = (-np.inf, 1.0)

    @abstractmethod
    def loss(self, truth: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        """The loss of each prediction; NaN where undefined."""

    @abstractmethod
    def best_constant(self, truth: np.ndarray, weight: np.ndarray) -> float:
        """The constant prediction with the smallest loss; without a row it changes so little that the loss stays."""

    def arranged(self, rows: Columns) -> Columns:
        there = rows[WEIGHT] > 0
        truth, weight = rows[TRUTH][there], rows[WEIGHT][there]
        with np.errstate(over="ignore", invalid="ignore"):
            constant = math.nan if (truth == truth[:1]).all() else self.best_constant(truth, weight)
        return {**rows, _CONSTANT: np.array(constant)}

    def terms(self, rows: Columns) -> Sequence[np.ndarray]:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            losses = (self.loss(rows[TRUTH], other) for other in (rows[PREDICTION], rows[_CONSTANT]))
            return [np.where(rows[WEIGHT] > 0, loss, 0.0) for loss in losses]

    def of_sums(self, sums: Sequence[np.ndarray], rows: Columns) -> np.ndarray:
        loss, least = sums
        return np.asarray(1 - loss / least)

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        counted = weight > 0
        truth, prediction = rows[TRUTH][counted], rows[PREDICTION][counted]
        with np.errstate(over="ignore", invalid="ignore"):
            bad = int(np.isnan(self.loss(truth, prediction)).sum())
        if bad:
            return f"{bad} {'row has' if bad == 1 else 'rows have'} {self.unfit}, where there is no deviance"
        if (truth == truth[0]).all():
            return "all truths are one value, of which a constant explains everything"
        return "the numbers are too large for their losses"

    @property
    def unfit(self) -> str:
        """What a row without a loss has, in words that follow "3 rows have"."""
        return "no loss"


@dataclass(frozen=True, kw_only=True)
class D2Pinball(OfQuantile, ExplainedLoss):
    """The share of the pinball loss that predicted quantiles explain; see `pinball_loss`.

    The best constant is the quantile `alpha` of the truths.
    Source: R. Koenker & J. Machado, "Goodness of fit and related inference processes for quantile regression" (Journal
    of the American Statistical Association 94, 1999).

    Args:
        alpha: the level of the predicted quantile, from 0 to 1.

    Raises:
        SpecError: `alpha` is not a number from 0 to 1.

    Example:
        >>> metric = D2Pinball(alpha=0.9, confidence=None)
        >>> columns = {"truth": np.array([1.0, 2.0, 3.0]), "prediction": np.array([1.0, 3.0, 3.0])}
        >>> metric.compute(metric.state(columns, np.zeros(3, int), n_groups=1)).value.round(4)
        array([0.6667])
    """

    kind = "d2_pinball"

    def loss(self, truth: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        return pinball(truth, prediction, self.alpha)

    def best_constant(self, truth: np.ndarray, weight: np.ndarray) -> float:
        return lower_quantile(truth, weight, self.alpha)


@dataclass(frozen=True, kw_only=True)
class D2AbsoluteError(ExplainedLoss):
    """The share of the absolute error that predictions explain, compared with the median of the truths.

    Example:
        >>> metric = D2AbsoluteError(confidence=None)
        >>> columns = {"truth": np.array([1.0, 2.0, 3.0]), "prediction": np.array([1.0, 3.0, 3.0])}
        >>> metric.compute(metric.state(columns, np.zeros(3, int), n_groups=1)).value
        array([0.5])
    """

    kind = "d2_absolute_error"

    def loss(self, truth: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        return np.asarray(np.abs(truth - prediction))

    def best_constant(self, truth: np.ndarray, weight: np.ndarray) -> float:
        return lower_quantile(truth, weight, 0.5)


@dataclass(frozen=True, kw_only=True)
class D2Tweedie(ExplainedLoss):
    """The share of the Tweedie deviance that predictions explain, compared with the mean of the truths.

    With power 0 it equals `r_squared`. Undefined outside the domain of the distribution; see `mean_tweedie_deviance`.
    Source: T. Hastie, R. Tibshirani & M. Wainwright, Statistical Learning with Sparsity (2015), section 3.1.

    Args:
        power: 0 is the squared error, 1 Poisson, 2 gamma.

    Raises:
        SpecError: `power` is not a finite number, or lies between 0 and 1.

    Example:
        >>> metric = D2Tweedie(power=1, confidence=None)
        >>> columns = {"truth": np.array([1.0, 2.0, 3.0]), "prediction": np.array([1.0, 3.0, 3.0])}
        >>> metric.compute(metric.state(columns, np.zeros(3, int), n_groups=1)).value.round(4)
        array([0.6387])
    """

    kind = "d2_tweedie"

    power: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "power", check_power(self.kind, self.power))
        super().__post_init__()

    def loss(self, truth: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        return deviance(truth, prediction, self.power)

    def best_constant(self, truth: np.ndarray, weight: np.ndarray) -> float:
        return float(np.average(truth, weights=weight))

    def terms(self, rows: Columns) -> Sequence[np.ndarray]:
        off = rows[TRUTH] - rows[_CONSTANT]
        return [*super().terms(rows), np.ones(len(off)), off]

    def of_sums(self, sums: Sequence[np.ndarray], rows: Columns) -> np.ndarray:
        """Less what the best constant gains by following the mean; exact for squares, else to the second order."""
        loss, least, total, off = sums
        return super().of_sums([loss, least - rows[_CONSTANT] ** -self.power * off * off / total], rows)

    @property
    def unfit(self) -> str:
        return outside_domain(self.power)


def lower_quantile(values: np.ndarray, weight: np.ndarray, level: float) -> float:
    """The smallest value with at least this share of the weight at or below it.

    Example:
        >>> lower_quantile(np.array([3.0, 1.0, 2.0]), np.ones(3), 0.5)
        2.0
    """
    order = np.argsort(values)
    below = np.cumsum(weight[order])
    reached = (below >= level * below[-1] * (1 - _ROUNDING)) & (below > 0)
    return float(values[order[np.argmax(reached)]])


_CONSTANT = "_constant_"
_ROUNDING = 1e-14
