"""Means of a score over several problems, each of which counts once, with intervals of a paired, stratified bootstrap.

The problems are taken as they are; another sample would have other rows of the same problems. So rows are drawn within
each problem, the same ones for all systems, and the interval says nothing about problems that were not asked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Final

import numpy as np

from evaluand.aggregation.groups import shown_fill
from evaluand.comparison.difference import row_weights
from evaluand.comparison.metric_differences import read_columns
from evaluand.comparison.pairing import PairedRows, pair_rows
from evaluand.core.errors import SpecError
from evaluand.evaluation.evaluator import Evaluation
from evaluand.metrics.base.metric import LABELS, Metric
from evaluand.metrics.base.weighted_rows import WeightedRowsMetric
from evaluand.metrics.stats.intervals import t_quantile
from evaluand.metrics.stats.resampling import Units, acceleration, bca_ends, draw_weights, resampling_units

REPLICATES: Final = 2000


@dataclass(frozen=True)
class ResampledProblem:
    """The values of systems on one problem, and those on samples of its rows.

    Attributes:
        value: of each system.
        drawn: replicates × systems; NaN where a sample has no row that a system has a value for.
        influence: of each independent row or cluster on each value; zeros if the metric is no mean of rows.
        units: the number of independent rows or clusters that are drawn.
    """

    value: np.ndarray
    drawn: np.ndarray
    influence: np.ndarray
    units: int


@dataclass(frozen=True)
class MacroMean:
    """The mean of a system's values over problems.

    Attributes:
        value: NaN without problems.
        low: lower end of its interval, NaN where there is none.
        high: upper end of its interval.
        difference: from the best system: its value minus that of the best.
        difference_low: lower end of the interval of the difference; NaN for the best itself.
        difference_high: upper end of the interval of the difference.
    """

    value: float
    low: float
    high: float
    difference: float
    difference_low: float
    difference_high: float


def resample_problem(
    evaluations: Sequence[Evaluation], scorer: str, metric: Metric, seed: int, replicates: int = REPLICATES
) -> ResampledProblem:
    """The values of evaluations of one problem on samples of its rows, drawn with replacement, clusters as a whole.

    The draws are a pure function of the seed, the replicate and the number of clusters, on any machine.

    Raises:
        SpecError: the rows cannot be paired, or have several targets.
        DataError: the metric refuses rows.
    """
    rows = pair_rows(evaluations, scorer, metric)
    if len(rows.keys) > 1:
        raise SpecError(f"{metric.kind} has a value for each of {len(rows.keys)} targets")
    rows = rows.take(row_weights(rows, metric) > 0)
    units = resampling_units(rows.example if rows.cluster is None else rows.cluster)
    if units.n == 0:
        raise SpecError("there are no rows")
    weights = draw_weights(units.n, replicates, seed)
    return _resample_means(rows, units, weights) if metric.averages else _resample_metric(rows, units, weights)


def seed_of(seed: int, problem: str) -> int:
    """The seed of the draws of a problem, which do not depend on the other problems."""
    return int.from_bytes(blake2b(f"{seed}/{problem}".encode(), digest_size=8).digest(), "big")


def macro_means(
    problems: Sequence[ResampledProblem], confidence: float, *, higher_is_better: bool = True
) -> tuple[int, list[MacroMean]]:
    """The unweighted means over problems, with bias-corrected and accelerated intervals.

    The interval is as wide as the bootstrap's and wider by what that lacks with few rows: the factor n / (n − 1) of the
    variance of each problem, and Student's quantile, whose degrees of freedom are those of F. Satterthwaite, "An
    approximate distribution of estimates of variance components" (Biometrics Bulletin 2, 1946).

    Returns:
        The place of the best system, and the mean of each.
    """
    value = np.mean([each.value for each in problems], axis=0)
    best = int(np.argmax(value) if higher_is_better else np.argmin(value))
    found = []
    for system in range(len(value)):
        low, high = _interval(problems, np.eye(len(value))[system], confidence)
        against = np.eye(len(value))[system] - np.eye(len(value))[best]
        ends = (math.nan, math.nan) if system == best else _interval(problems, against, confidence)
        found.append(MacroMean(float(value[system]), low, high, float(value[system] - value[best]), *ends))
    return best, found


def _interval(problems: Sequence[ResampledProblem], contrast: np.ndarray, confidence: float) -> tuple[float, float]:
    """The interval of a combination of the systems' means; NaN where a problem has one row, or no row differs."""
    n = len(problems)
    if any(each.units < 2 for each in problems):
        return math.nan, math.nan
    drawn = np.stack([_combine(each.drawn, contrast) for each in problems]) / n
    influence = np.concatenate([_combine(each.influence, contrast) for each in problems]) / n
    freedom = np.array([each.units - 1 for each in problems])
    with np.errstate(invalid="ignore"):
        variance = np.nanvar(drawn, axis=1)
    whole = variance * (freedom + 1) / freedom
    if not (total := float(whole.sum())) > 0:
        return math.nan, math.nan
    degrees = max(int(total**2 / float((whole**2 / freedom).sum())), 1)
    wider = math.sqrt(total / float(variance.sum()))
    quantile = float(t_quantile(confidence, np.array([degrees]))[0]) * wider
    value = np.array(sum(float(_combine(each.value, contrast)) for each in problems) / n)
    ends = bca_ends(drawn.sum(axis=0), value, np.array(acceleration(influence)), quantile)
    low, high = (float(f"{float(end):.{_DIGITS}g}") for end in ends)
    return low, high


def _combine(of_systems: np.ndarray, contrast: np.ndarray) -> np.ndarray:
    """The combination of one or two systems, whose last digits do not depend on the number of the others."""
    chosen = np.flatnonzero(contrast)
    return np.asarray(sum(contrast[system] * of_systems[..., system] for system in chosen.tolist()))


def _resample_means(rows: PairedRows, units: Units, weights: np.ndarray) -> ResampledProblem:
    known = rows.known
    weight = np.where(known, row_weights(rows, rows.metric), 0.0)
    total = _sum_by_unit(np.where(known, rows.value, 0.0) * weight, units)
    count = _sum_by_unit(weight, units)
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn = (weights @ total) / (weights @ count)
        value = total.sum(axis=0) / count.sum(axis=0)
        influence = (total - value * count) / count.sum(axis=0)
    return ResampledProblem(value, drawn, influence, units.n)


def _sum_by_unit(columns: np.ndarray, units: Units) -> np.ndarray:
    """The sums of rows by unit: units × systems."""
    return np.stack([np.bincount(units.of_row, column, minlength=units.n) for column in columns], axis=1)


def _resample_metric(rows: PairedRows, units: Units, weights: np.ndarray) -> ResampledProblem:
    metric = rows.metric
    metric = replace(metric, confidence=None) if isinstance(metric, WeightedRowsMetric) else metric
    systems = range(len(rows.status))
    columns = [read_columns(rows, side, metric, shown_fill(metric)) for side in systems]
    drawn = [_draw_metric(metric, own, units.of_row[row], weights) for own, row in columns]
    value = [_draw_metric(metric, own, units.of_row[row], np.ones((1, units.n))) for own, row in columns]
    return ResampledProblem(
        np.concatenate(value), np.stack(drawn, axis=1), np.zeros((units.n, len(rows.status))), units.n
    )


def _draw_metric(metric: Metric, columns: Any, unit: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The value of each replicate: its rows, as often as they are drawn, are a group."""
    n, found = len(unit), []
    step = max(1, _AT_ONCE // max(n, 1))
    for first in range(0, len(weights), step):
        times = weights[first : first + step, unit].astype(np.int64)
        row = np.repeat(np.tile(np.arange(n), len(times)), times.ravel())
        group = np.repeat(np.arange(len(times)), times.sum(axis=1))
        own = {name: column if name == LABELS else column[row] for name, column in columns.items()}
        found.append(metric.compute(metric.state(own, group, len(times))).value)
    return np.concatenate(found)


_AT_ONCE: Final = 1 << 20
_DIGITS: Final = 12
