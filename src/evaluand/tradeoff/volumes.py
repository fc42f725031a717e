"""Hypervolumes of fronts in the population of rows: intervals and differences of two models, by halves of the rows."""

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from evaluand.metrics.stats.intervals import Spread, interval_within, t_quantile, t_tail
from evaluand.tradeoff.confidences import Confidences
from evaluand.tradeoff.front import fronts, hypervolumes
from evaluand.tradeoff.objectives import Objective
from evaluand.tradeoff.resampling import draw_halves


def halved_volumes(
    parts: Sequence[Mapping[str, np.ndarray]],
    objectives: Sequence[Objective],
    rows: Confidences,
    replicates: int,
    seed: int,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Of some parts of the points, the hypervolumes of fronts of half the rows, and of the same points on the others.

    Args:
        parts: the thresholds by model of each part; no two parts have the same model.
        replicates: how often the rows are split into halves, the same for all parts.
    """
    thresholds = {model: each for part in parts for model, each in part.items()}
    ends = np.cumsum([sum(map(len, part.values())) for part in parts])[:-1]
    found: list[list[np.ndarray]] = [[] for _ in parts]
    for halves in draw_halves(rows, thresholds, objectives, replicates, seed):
        split = zip(*(np.split(half, ends, axis=1) for half in halves), strict=True)
        for volumes, (first, second) in zip(found, split, strict=True):
            volumes.append(_volumes(objectives, first, second))
    joined = [np.concatenate(volumes, axis=-1) for volumes in found]
    return [(selected, tested) for selected, tested in joined]


def _volumes(objectives: Sequence[Objective], first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The hypervolumes of the fronts of the first half of the rows, and of the same points on the second half."""
    here, there = (
        np.stack([one.loss(each[..., place]) for place, one in enumerate(objectives)], axis=-1)
        for each in (first, second)
    )
    return np.stack([hypervolumes(here), hypervolumes(np.where(fronts(here)[..., None], there, np.nan))])


def hypervolume_ends(
    volume: float, selected: np.ndarray, tested: np.ndarray, rows: float, confidence: float
) -> tuple[float, float]:
    """An interval that covers the hypervolume of the selected front on new rows, and the best hypervolume possible.

    A hypervolume is too high on the rows its front was selected on. Halves of the rows show by how much: the front of
    one half is tested on the other. Noise is √2 times as large there, and this excess √2 to 2 times as large as that of
    all rows. The lower end is computed after subtracting the most it can be, the upper end without. The spread is that
    between halves: a half differs from all rows by as much as these differ from the population.
    Source: D. Politis, J. Romano & M. Wolf, Subsampling (1999), chapter 2, for parts of the rows as samples; the ends
    are those of a score interval with that spread (`interval_within`).

    Args:
        volume: the hypervolume of the front on all rows.
        selected: the hypervolumes of the fronts of halves of the rows; NaN where there is none.
        tested: those of the same points on the other halves.
        rows: the effective number of rows, or of clusters.

    Returns:
        NaN where fewer than two halves have a front, or all are equal.
    """
    known = ~np.isnan(selected) & ~np.isnan(tested)
    variance = float(np.var(selected[known])) if known.sum() > 1 else 0.0
    if not variance > _EQUAL:
        return math.nan, math.nan
    optimism = _optimism(selected[known], tested[known])
    spread = Spread(*(np.array(each, np.float64) for each in (variance, rows, rows)))
    low, _ = interval_within(np.array(max(volume - optimism, 0.0)), spread, (0.0, 1.0), confidence)
    _, high = interval_within(np.array(volume), spread, (0.0, 1.0), confidence)
    return float(low), float(high)


class VolumeDifference(NamedTuple):
    """How far the hypervolumes of two models' fronts lie apart.

    Attributes:
        value_a: that of the baseline on all rows.
        value_b: that of the other model.
        value: b − a.
        low: lower end of the interval; NaN where there is none.
        high: upper end.
        p: the two-sided p value of no difference, at which the interval ends at 0; NaN without an interval.
    """

    value_a: float
    value_b: float
    value: float
    low: float
    high: float
    p: float


def volume_difference(
    volumes: tuple[float, float], selected: np.ndarray, tested: np.ndarray, rows: float, confidence: float
) -> VolumeDifference:
    """The difference of two hypervolumes; further arguments as for `hypervolume_ends`, of both models.

    The spread is that of the difference between halves of the rows, the same for both models. Each end allows for the
    hypervolume that is too high because its front was selected on these rows: the lower one for that of b, the upper
    one for that of a.

    Args:
        volumes: of a and b on all rows.
    """
    (a, b), known = volumes, ~np.isnan(selected).any(axis=0) & ~np.isnan(tested).any(axis=0)
    change = selected[1, known] - selected[0, known]
    error = float(np.std(change)) if known.sum() > 1 else 0.0
    if not error * error > _EQUAL or math.isnan(b - a):
        return VolumeDifference(a, b, b - a, math.nan, math.nan, math.nan)
    too_high = [_optimism(one[known], other[known]) for one, other in zip(selected, tested, strict=True)]
    degrees = max(int(rows) - 1, 1)
    half = float(t_quantile(confidence, np.array([degrees]))[0]) * error
    low, high = b - a - half - too_high[1], b - a + half + too_high[0]
    clear = (b - a - too_high[1] if b > a else a - b - too_high[0]) / error
    return VolumeDifference(a, b, b - a, max(low, -1.0), min(high, 1.0), t_tail(clear, degrees) if clear > 0 else 1.0)


def _optimism(selected: np.ndarray, tested: np.ndarray) -> float:
    """By how much a hypervolume is too high at most, on the rows its front was selected on."""
    return max(float((selected - tested).mean()), 0.0) / math.sqrt(2)


_EQUAL: Final = 1e-24
"""A variance that comes from rounding alone."""
