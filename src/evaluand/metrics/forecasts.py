"""Errors of forecasts: of points, relative or scaled, and of quantiles and samples.

They are means over rows, so a grouping by series or by horizon gives the value of each series or step.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.base.metric import VALUE, Columns, numbers, refuse
from evaluand.metrics.base.numeric_pairs import PREDICTION, TRUTH, MeanError, absolute_errors
from evaluand.metrics.base.sums import OfSums
from evaluand.metrics.correlations import OfNumbers
from evaluand.metrics.deviances import pinball

SCALE, SAMPLES, LEVELS, QUANTILES = "scale", "samples", "levels", "quantiles"


class SymmetricMeanAbsolutePercentageError(MeanError):
    """sMAPE: the mean of 2 |prediction − truth| / (|truth| + |prediction|), as a share from 0 to 2.

    0 where both are 0. Other tools leave out the factor 2, or multiply by 100.
    Source: S. Makridakis & M. Hibon, "The M3-Competition" (International Journal of Forecasting 16, 2000).

    Example:
        >>> SymmetricMeanAbsolutePercentageError().error(np.array([1.0, 0.0, 0.0]), np.array([3.0, 0.0, 1.0]))
        array([1., 0., 2.])
    """

    kind = "symmetric_mean_absolute_percentage_error"
    range: ClassVar[tuple[float, float]] = (0.0, 2.0)

    def error(self, truth: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        total = np.abs(truth) / 2 + np.abs(prediction) / 2  # no overflow
        half = np.abs(prediction / 2 - truth / 2)
        return np.where(total > 0, np.minimum(2 * (half / np.where(total > 0, total, 1.0)), 2.0), 0.0)


class WeightedAbsolutePercentageError(OfNumbers, OfSums):
    """WAPE, also called ND: Σ |prediction − truth| / Σ |truth|, as a share: 0.1 is ten percent.

    Unlike the mean of percentage errors it is defined if some truths are 0; undefined if all are. Large series count
    more than small ones.
    Source: S. Kolassa & W. Schütz, "Advantages of the MAD/mean ratio over the MAPE" (Foresight 6, 2007).

    Example:
        >>> metric = WeightedAbsolutePercentageError(confidence=None)
        >>> columns = {"truth": np.array([0.0, 4.0]), "prediction": np.array([1.0, 4.0])}
        >>> metric.compute(metric.state(columns, np.zeros(2, int), n_groups=1)).value
        array([0.25])
    """

    kind = "weighted_absolute_percentage_error"
    direction = "lower"
    range = (0.0, np.inf)

    def terms(self, rows: Columns) -> Sequence[np.ndarray]:
        return absolute_errors(rows[TRUTH], rows[PREDICTION]), np.abs(rows[TRUTH])

    def of_sums(self, sums: Sequence[np.ndarray], rows: Columns) -> np.ndarray:
        return np.asarray(sums[0] / sums[1])

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        if not rows[TRUTH][weight > 0].any():
            return "all truths are 0, of which no error is a share; take mean_absolute_error"
        return "the numbers are too large for their sum"


@dataclass(frozen=True, kw_only=True)
class MeanAbsoluteScaledError(MeanError):
    """MASE: the mean of |prediction − truth| / scale, where the scale is the error of a naive forecast in the past.

    The scale of a series is the mean |yₜ − yₜ₋ₘ| over its history before the forecast, with m the length of a season:
    below 1 the forecast is better than repeating the last season. Nothing is assumed about it: it is the column `scale`
    of the rows (the scorer `forecast` computes it from each history), or one number for a single series; see
    `seasonal_naive_scale`. Undefined if a scale is 0, as of a constant history.
    Source: R. Hyndman & A. Koehler, "Another look at measures of forecast accuracy" (International Journal of
    Forecasting 22, 2006).

    Args:
        scale: the scale of all rows; by default the column `scale` has that of each row.

    Raises:
        SpecError: `scale` is not a positive number.

    Example:
        >>> metric = MeanAbsoluteScaledError(scale=seasonal_naive_scale([1, 5, 3, 6], season=2))
        >>> metric.error(np.array([4.0]), np.array([7.0]))
        array([2.])
    """

    kind = "mean_absolute_scaled_error"
    unfit = "no scale above 0; give the history before the forecast, or take mean_absolute_error"
    drawn_by = None

    scale: float | None = None

    def __post_init__(self) -> None:
        if self.scale is not None:
            scale: Any = self.scale
            if isinstance(scale, bool) or not isinstance(scale, int | float) or not 0 < scale < np.inf:
                raise SpecError(f"{self.kind}: scale={scale!r} must be a positive number, such as seasonal_naive_scale")
            object.__setattr__(self, "scale", float(scale))
        super().__post_init__()

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return (TRUTH, PREDICTION) if self.scale is not None else (TRUTH, PREDICTION, SCALE)

    def columns_for(self, available: Collection[str]) -> tuple[str, ...]:
        if SCALE in self.columns and SCALE not in available:
            raise SpecError(
                f"{self.kind} needs the scale of each series, which the table lacks; use the scorer forecast with "
                "history or scale, or set the metric's scale to one number"
            )
        return super().columns_for(available)

    def error(self, truth: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        return absolute_errors(truth, prediction) / (1.0 if self.scale is None else self.scale)

    def prepare(self, columns: Columns) -> Columns:
        found = super().prepare(columns)
        if self.scale is not None:
            return found
        scale = columns[SCALE]
        if len(scale) and scale.dtype.kind not in "fiu":
            raise SpecError(f"{self.kind} needs numbers, but the column {SCALE!r} holds none")
        scale = scale.astype(np.float64)
        refuse(columns, scale < 0, lambda row: f"scale is {scale[row]:g}; a scale is 0 or more")
        usable = (scale > 0) & np.isfinite(scale)
        with np.errstate(over="ignore"):
            return {VALUE: np.where(usable, found[VALUE] / np.where(usable, scale, 1.0), np.nan)}


def seasonal_naive_scale(history: Sequence[float], season: Any = 1) -> float:
    """The mean |yₜ − yₜ₋ₘ| of a series, the scale of `mean_absolute_scaled_error`; NaN without such a pair.

    Args:
        history: the values before the forecast, in order.
        season: m, the number of steps of a season: 12 for months, 1 without seasons.

    Raises:
        SpecError: `season` is not an integer of at least 1, or `history` is not a list of finite numbers.

    Example:
        >>> seasonal_naive_scale([1, 2, 4, 7])
        2.0
    """
    if not isinstance(season, int) or isinstance(season, bool) or season < 1:
        raise SpecError(f"season={season!r} must be an integer of at least 1")
    values = np.asarray(history, np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise SpecError("history must be a list of finite numbers")
    return float(np.abs(values[season:] - values[:-season]).mean()) if len(values) > season else float("nan")


class _OfDistribution(MeanError):
    """A mean error of predicted distributions, in units of the truth."""

    drawn_by = None

    def columns_for(self, available: Collection[str]) -> tuple[str, ...]:
        lacking = [name for name in self.columns if name not in available and name != TRUTH]
        if lacking:
            raise SpecError(
                f"{self.kind} needs forecasts with {' and '.join(lacking)}, which the table lacks; use the scorer "
                "forecast, or pass evaluate(…, columns={…})"
            )
        return super().columns_for(available)

    def error(self, truth: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        raise NotImplementedError(f"{self.kind} has no error of a point")

    def predicted_quantiles(self, columns: Columns) -> tuple[np.ndarray, np.ndarray]:
        """Levels and quantiles of each row, NaN beyond their number; a DataError if a row has none, or odd ones."""
        levels, quantiles = (as_matrix(columns[name], name, self.kind) for name in (LEVELS, QUANTILES))
        if levels.shape != quantiles.shape:
            width = max(levels.shape[1], quantiles.shape[1])
            levels, quantiles = (
                np.pad(each, ((0, 0), (0, width - each.shape[1])), constant_values=np.nan)
                for each in (levels, quantiles)
            )
        uneven = np.asarray((np.isnan(levels) != np.isnan(quantiles)).any(axis=1))
        refuse(columns, uneven, lambda row: "has quantiles without a level, or levels without a quantile")
        refuse(columns, np.isnan(levels).all(axis=1), lambda row: "is scored but has no quantiles; such rows abstain")
        outside = np.asarray(((levels <= 0) | (levels >= 1)).any(axis=1))
        refuse(columns, outside, lambda row: "has a quantile whose level does not lie between 0 and 1")
        return levels, quantiles


@dataclass(frozen=True, kw_only=True)
class MeanQuantileLoss(_OfDistribution):
    """The mean pinball loss over all predicted quantiles of a row, and over rows; see `pinball_loss`.

    All rows must have the same levels, since values of different levels cannot be compared.

    Args:
        levels: only these levels; by default all that the rows have.

    Raises:
        SpecError: `levels` is not a list of distinct numbers between 0 and 1.

    Example:
        >>> metric = MeanQuantileLoss()
        >>> row = {"truth": np.array([3.0]), "levels": np.array([[0.1, 0.9]]), "quantiles": np.array([[1.0, 4.0]])}
        >>> metric.prepare({**row, "_index_": np.arange(1)})["value"]
        array([0.15])
    """

    kind = "mean_quantile_loss"
    columns = (TRUTH, LEVELS, QUANTILES)

    levels: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if self.levels is not None:
            listed: Any = self.levels
            numeric = isinstance(listed, list | tuple) and listed and all(isinstance(x, int | float) for x in listed)
            if not numeric or len(set(listed)) < len(listed) or not all(0 < x < 1 for x in listed):
                raise SpecError(f"{self.kind}: levels={listed!r} must be a list of distinct numbers between 0 and 1")
            object.__setattr__(self, "levels", tuple(sorted(map(float, listed))))
        super().__post_init__()

    @property
    def constant_column(self) -> str | None:
        return LEVELS if self.levels is None else None

    def prepare(self, columns: Columns) -> Columns:
        truth = numbers(columns, TRUTH, self.kind)
        levels, quantiles = self.predicted_quantiles(columns)
        if self.levels is not None:
            chosen = np.isin(levels, self.levels)
            lacking = chosen.sum(axis=1) < len(self.levels)
            listed = ", ".join(f"{level:g}" for level in self.levels)
            refuse(columns, lacking, lambda row: f"lacks a quantile of the levels {listed}")
            levels, quantiles = (np.where(chosen, each, np.nan) for each in (levels, quantiles))
        else:
            _refuse_other_levels(columns, levels, "choose levels")
        return {VALUE: np.nanmean(pinball(truth[:, None], quantiles, levels), axis=1)}


@dataclass(frozen=True, kw_only=True)
class Crps(_OfDistribution):
    """The continuous ranked probability score: ∫ (F(x) − 1[x ≥ truth])² dx of the predicted distribution F; the mean.

    In units of the truth; of a single sample it is the absolute error. From samples it is the score of their
    distribution, mean |x − truth| − ½ mean |x − x'|; `fair` corrects for their number, so that systems with different
    numbers of samples can be compared. From quantiles it is twice their mean pinball loss, which approaches the score
    with many evenly spaced levels; all rows must have the same levels.
    Source: T. Gneiting & A. Raftery, "Strictly proper scoring rules, prediction, and estimation" (Journal of the
    American Statistical Association 102, 2007); C. Ferro, "Fair scores for ensemble forecasts" (Quarterly Journal of
    the Royal Meteorological Society 140, 2014).

    Args:
        source: what the distribution is read from: `samples` or `quantiles`.
        fair: of samples, take the mean |x − x'| over pairs of different samples; undefined for one sample.

    Raises:
        SpecError: there is no such source, or quantiles are to be fair.

    Example:
        >>> Crps().prepare({"truth": np.array([2.0]), "samples": np.array([[1.0, 3.0]]), "_index_": np.arange(1)})
        {'value': array([0.5])}
    """

    kind = "crps"
    unfit = "a single sample, which has no fair score"

    source: Literal["samples", "quantiles"] = "samples"
    fair: bool = False

    def __post_init__(self) -> None:
        if self.source not in (SAMPLES, QUANTILES):
            raise SpecError(f"{self.kind}: source={self.source!r} must be samples or quantiles")
        if self.fair is True and self.source == QUANTILES:
            raise SpecError(f"{self.kind}: fair=true corrects for the number of samples; quantiles have none")
        super().__post_init__()

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return (TRUTH, SAMPLES) if self.source == SAMPLES else (TRUTH, LEVELS, QUANTILES)

    @property
    def constant_column(self) -> str | None:
        return LEVELS if self.source == QUANTILES else None

    def prepare(self, columns: Columns) -> Columns:
        truth = numbers(columns, TRUTH, self.kind)
        if self.source == QUANTILES:
            levels, quantiles = self.predicted_quantiles(columns)
            _refuse_other_levels(columns, levels, f"{self.kind} of quantiles needs the same in every row")
            return {VALUE: 2 * np.nanmean(pinball(truth[:, None], quantiles, levels), axis=1)}
        samples = as_matrix(columns[SAMPLES], SAMPLES, self.kind)
        refuse(columns, np.isnan(samples).all(axis=1), lambda row: "is scored but has no samples; such rows abstain")
        return {VALUE: self._of_samples(truth, np.sort(samples, axis=1))}

    def _of_samples(self, truth: np.ndarray, samples: np.ndarray) -> np.ndarray:
        """The score of sorted samples, with NaN after the last of each row."""
        n = (~np.isnan(samples)).sum(axis=1)
        error = np.nanmean(np.abs(samples - truth[:, None]), axis=1)
        place = np.arange(1, samples.shape[1] + 1)
        between = np.nansum((2 * place - n[:, None] - 1) * samples, axis=1)  # Σ over pairs i < j of |xⱼ − xᵢ|
        pairs = n * (n - 1.0) if self.fair else np.square(n.astype(np.float64))
        return np.asarray(error - between / np.where(pairs > 0, pairs, np.nan))


def _refuse_other_levels(columns: Columns, levels: np.ndarray, advice: str) -> None:
    """Refuse rows whose levels are not those of the first row, in any order: their losses cannot be compared."""
    ordered = np.sort(levels, axis=1)
    other = ~((ordered == ordered[:1]) | (np.isnan(ordered) & np.isnan(ordered[:1]))).all(axis=1)
    refuse(columns, other, lambda row: f"has quantiles of other levels than the first row; {advice}")


def as_matrix(column: np.ndarray, name: str, kind: str) -> np.ndarray:
    """Lists of numbers as a matrix, NaN beyond their ends; a SpecError if the column holds something else."""
    if column.ndim != 2:
        if len(column) and not all(value is None for value in column.tolist()):
            raise SpecError(f"{kind} needs lists of numbers, but the column {name!r} holds none")
        return np.full((len(column), 1), np.nan)
    return column if column.shape[1] else np.full((len(column), 1), np.nan)
