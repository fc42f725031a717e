"""Pinball loss and deviances: losses whose best constant prediction is a quantile, or the mean under a distribution.

D² is how much of such a loss predictions explain, compared with that best constant prediction.
"""

import math
from abc import abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.base.metric import WEIGHT, Columns, Metric, refuse
from evaluand.metrics.base.numeric_pairs import PREDICTION, TRUTH, MeanError
from evaluand.metrics.base.sums import OfSums
from evaluand.metrics.correlations import OfNumbers

QUANTILES: Final = "quantiles"
MEDIAN: Final = 0.5


@dataclass(frozen=True, kw_only=True)
class OfQuantile(Metric):
    """A metric of predictions of one quantile.

    Args:
        alpha: the level of the predicted quantile, from 0 to 1.

    Raises:
        SpecError: `alpha` is not a number from 0 to 1.
    """

    alpha: float = 0.5

    def __post_init__(self) -> None:
        alpha: Any = self.alpha
        if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 <= alpha <= 1:
            raise SpecError(f"{self.kind}: alpha={alpha!r} must be a number from 0 to 1")
        object.__setattr__(self, "alpha", float(alpha))
        super().__post_init__()

    def columns_for(self, available: Collection[str]) -> tuple[str, ...]:
        found = super().columns_for(available)
        return (*found, QUANTILES) if self.alpha != MEDIAN and QUANTILES in available else found

    def prepare(self, columns: Columns) -> Columns:
        if QUANTILES in columns:
            listed = columns[QUANTILES]
            if listed.ndim == 1:
                has_quantiles = np.array([values is not None for values in listed], np.bool_)
            else:
                has_quantiles = np.asarray(~np.isnan(listed).all(axis=1))
            advice = f"for one of its levels use mean_quantile_loss with levels: [{self.alpha:g}]"
            refuse(columns, has_quantiles, lambda row: f"forecasts several quantiles; {advice}")
        return super().prepare({name: column for name, column in columns.items() if name != QUANTILES})


@dataclass(frozen=True, kw_only=True)
class PinballLoss(OfQuantile, MeanError):
    """The mean pinball loss of predicted quantiles, which weighs errors below and above the truth differently.

    alpha · (truth − prediction) if the truth is above, else (1 − alpha) · (prediction − truth).
    For predicted quantiles: the prediction that minimises it is the quantile `alpha` of the truth. With alpha 0.5 it is
    half the mean absolute error.
    Source: R. Koenker & G. Bassett, "Regression quantiles" (Econometrica 46, 1978).

    Args:
        alpha: the level of the predicted quantile, from 0 to 1.

    Raises:
        SpecError: `alpha` is not a number from 0 to 1.

    Example:
        >>> PinballLoss(alpha=0.9).error(np.array([3.0, 1.0]), np.array([1.0, 3.0])).round(3)
        array([1.8, 0.2])
    """

    kind = "pinball_loss"

    def error(self, truth: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        return pinball(truth, prediction, self.alpha)


def pinball(truth: np.ndarray, prediction: np.ndarray, alpha: float | np.ndarray) -> np.ndarray:
    """The pinball loss of each prediction of the quantile `alpha`."""
    above = truth - prediction
    return np.asarray(np.where(above >= 0, alpha * above, (alpha - 1) * above))


@dataclass(frozen=True, kw_only=True)
class MeanTweedieDeviance(MeanError):
    """The mean unit deviance of the Tweedie family: 2 · (log likelihood of a perfect prediction − that of this one).

    Undefined if a truth or a prediction is outside the domain of the distribution: with a power below 0 predictions
    must be positive; from 1 to below 2 truths must be at least 0 and predictions positive; from 2 on both positive.
    Source: B. Jørgensen, "Exponential dispersion models" (Journal of the Royal Statistical Society B 49, 1987).

    Args:
        power: 0 is the squared error, 1 Poisson, 2 gamma, 3 inverse Gaussian; larger powers weigh errors of large
            truths less. There is no distribution between 0 and 1.

    Raises:
        SpecError: `power` is not a finite number, or lies between 0 and 1.

    Example:
        >>> MeanTweedieDeviance(power=0).error(np.array([3.0]), np.array([1.0]))
        array([4.])
    """

    kind = "mean_tweedie_deviance"

    power: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "power", check_power(self.kind, self.power))
        super().__post_init__()

    @property
    def unfit(self) -> str:  # type: ignore[override]
        return f"{outside_domain(self.power)}, where there is no deviance"

    def error(self, truth: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        return deviance(truth, prediction, self.power)


class MeanPoissonDeviance(MeanError):
    """The mean Poisson deviance, for counts: `mean_tweedie_deviance` with power 1.

    Undefined if a truth is below 0, or a prediction is not positive.

    Example:
        >>> MeanPoissonDeviance().error(np.array([0.0, 2.0]), np.array([1.0, 2.0]))
        array([2., 0.])
    """

    kind = "mean_poisson_deviance"
    unfit = "a truth below 0 or a prediction that is not positive, where there is no Poisson deviance"

    def error(self, truth: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        return deviance(truth, prediction, 1.0)


class MeanGammaDeviance(MeanError):
    """The mean gamma deviance, for positive amounts: `mean_tweedie_deviance` with power 2.

    It depends only on the ratio of truth and prediction. Undefined if one of them is not positive.

    Example:
        >>> MeanGammaDeviance().error(np.array([2.0, 20.0]), np.array([1.0, 10.0])).round(4)
        array([0.6137, 0.6137])
    """

    kind = "mean_gamma_deviance"
    unfit = "a truth or a prediction that is not positive, where there is no gamma deviance"

    def error(self, truth: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        return deviance(truth, prediction, 2.0)


def deviance(truth: np.ndarray, prediction: np.ndarray, power: float) -> np.ndarray:
    """The unit deviance of each prediction, NaN outside the domain.

    Example:
        >>> deviance(np.array([0.0, -1.0]), np.array([1.0, 1.0]), 1.0)
        array([ 2., nan])
    """
    if power == 0:
        return np.asarray(np.square(truth - prediction))
    least = -np.inf if power < 0 else 0.0 if power < 2 else _ABOVE_ZERO
    fits = (truth >= least) & (prediction > 0)
    true, predicted = np.where(fits, truth, np.nan), np.where(fits, prediction, np.nan)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if power == 1:
            ratio = np.where(true > 0, true / predicted, 1.0)
            found = 2 * (true * np.log(ratio) - true + predicted)
        elif power == 2:
            found = 2 * (np.log(predicted / true) + true / predicted - 1)
        else:
            of_truth = np.power(np.maximum(true, 0.0), 2 - power) / ((1 - power) * (2 - power))
            of_both = true * np.power(predicted, 1 - power) / (1 - power)
            found = 2 * (of_truth - of_both + np.power(predicted, 2 - power) / (2 - power))
    return np.asarray(np.maximum(found, 0.0))  # rounding may leave less


def check_power(kind: str, power: Any) -> float:
    """Return the power of a Tweedie distribution as a float; a SpecError if there is no such distribution."""
    if isinstance(power, bool) or not isinstance(power, int | float) or not np.isfinite(power) or 0 < power < 1:
        raise SpecError(f"{kind}: power={power!r} must be 0 or below, or 1 or above; 1 is Poisson, 2 gamma")
    return float(power)


def outside_domain(power: float) -> str:
    """What a row outside the domain has, in words."""
    if power < 0:
        return "a prediction that is not positive"
    return f"a truth {'below 0' if power < 2 else 'that is not positive'} or a prediction that is not positive"


_ABOVE_ZERO: Final = float(np.nextafter(0.0, 1.0))


class ExplainedLoss(OfNumbers, OfSums):
    """1 − the loss of the predictions / the loss of the best constant prediction of these rows.

    1 for perfect predictions, 0 for the best constant, below 0 for worse ones. Undefined if all truths are equal, since
    a constant then has no loss.

    Attributes:
        unfit: what a row without a loss has, in words that follow "3 rows have".
    """

    direction = "higher"
    range = (-np.inf, 1.0)
    unfit: ClassVar[str] = "no loss"

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
    def unfit(self) -> str:  # type: ignore[override]
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
