"""Pinball loss and deviances: losses whose best constant prediction is a quantile, or the mean under a distribution."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.base.metric import Columns, Metric, refuse
from evaluand.metrics.base.numeric_pairs import MeanError

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


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
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
            found = 2 * (
                np.power(np.maximum(true, 0.0), 2 - power) / ((1 - power) * (2 - power))
                - true * np.power(predicted, 1 - power) / (1 - power)
                + np.power(predicted, 2 - power) / (2 - power)
            )
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
