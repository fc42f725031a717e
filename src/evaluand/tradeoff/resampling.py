"""Resampling: the values of points in other samples of the same size.

The rows are counted in a table by group, truth and, for each model, the two thresholds that its confidence lies
between. Another sample is another draw of that table, so a thousand samples cost a few random numbers per cell, and the
correlation of the models is preserved. Clusters are drawn as a whole, and rows count by their weights. Halves of the
rows give intervals of hypervolumes in the population of rows, and of differences of two models.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.stats.intervals import Spread, interval_within, t_quantile, t_tail
from evaluand.tradeoff.confidences import Confidences, Groups, cells_of
from evaluand.tradeoff.front import fronts, hypervolumes
from evaluand.tradeoff.objectives import Objective

REPLICATES: Final = 1000

HALVES: Final = 400
"""The number of random splits into halves: enough for a mean and a standard deviation."""


def draw_samples(
    confidences: Confidences,
    thresholds: Mapping[str, np.ndarray],
    objectives: Sequence[Objective],
    replicates: int = REPLICATES,
    seed: int = 0,
) -> list[np.ndarray]:
    """The values of decisions in other samples, for each model: replicates × its thresholds × objectives."""
    cells = _Cells(confidences, thresholds, objectives)
    points = sum(map(len, thresholds.values()))
    _check_size(f"{replicates:,} replicates of {points:,} points", replicates * points * len(objectives))
    values = [np.empty((replicates, len(each), len(objectives))) for each in thresholds.values()]
    random, n = np.random.default_rng(seed), int(cells.counts.sum())
    for some in _blocks(replicates, cells.size):
        draws = random.multinomial(n, cells.counts / n, size=some.stop - some.start)
        for output, each in zip(values, cells.evaluate(draws), strict=True):
            output[some] = each
    return values


def halved_volumes(
    parts: Sequence[Mapping[str, np.ndarray]],
    objectives: Sequence[Objective],
    rows: Confidences,
    replicates: int,
    seed: int,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Of some parts of the points, the hypervolumes of fronts of half the rows, and of the same points on the others.

    The halves are separate samples without repeated rows, so points selected on one can be tested on the other.

    Args:
        parts: the thresholds by model of each part; no two parts have the same model.
        replicates: how often the rows are split into halves, the same for all parts.
    """
    thresholds = {model: each for part in parts for model, each in part.items()}
    cells, random = _Cells(rows, thresholds, objectives), np.random.default_rng(seed)
    ends = np.cumsum([sum(map(len, part.values())) for part in parts])[:-1]
    found: list[list[np.ndarray]] = [[] for _ in parts]
    for some in _blocks(replicates, cells.size * len(thresholds)):
        half = random.binomial(cells.counts, 0.5, size=(some.stop - some.start, len(cells.counts)))
        halves = (np.concatenate([*cells.evaluate(draws)], axis=1) for draws in (half, cells.counts - half))
        split = zip(*(np.split(values, ends, axis=1) for values in halves), strict=True)
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


def simultaneous_levels(samples: np.ndarray, value: np.ndarray, confidence: float) -> list[float]:
    """The confidence level of each point's interval at which the intervals of all points hold simultaneously.

    It follows from the largest deviation of any point in another sample, in standard errors. The intervals themselves
    are not those of resampling: a rate of 1 is 1 in all other samples too, and yet uncertain.
    Source: J. Montiel Olea & M. Plagborg-Møller, "Simultaneous confidence bands: theory, implementation, and an
    application to SVARs" (Journal of Applied Econometrics 34, 2019).

    Args:
        samples: replicates × points × objectives.
        value: points × objectives.
        confidence: the level for all points together.

    Returns:
        One level per objective.
    """
    known = ~np.isnan(samples)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(known, samples, 0.0).sum(axis=0) / known.sum(axis=0)
        error = np.sqrt(np.where(known, np.square(samples - mean), 0.0).sum(axis=0) / known.sum(axis=0))
        off = np.abs(samples - value) / np.where(error > 0, error, np.nan)
    largest = np.quantile(np.where(np.isnan(off), 0.0, off).max(axis=1), confidence, axis=0)
    return [min(max(math.erf(each / math.sqrt(2)), confidence), _HIGHEST) for each in largest.tolist()]


class _Cells:
    """The distinct kinds of rows, and the units that are drawn: kinds of rows, or clusters with rows of several kinds.

    Attributes:
        counts: how often each drawn unit occurs.
    """

    def __init__(
        self, confidences: Confidences, thresholds: Mapping[str, np.ndarray], objectives: Sequence[Objective]
    ) -> None:
        self._thresholds, self._objectives = [*thresholds.values()], objectives
        self.groups = confidences.groups([*dict.fromkeys(name for one in objectives for name in one.by)])
        group = np.where(self.groups.code >= 0, self.groups.code, len(self.groups.names))
        self._sizes = [len(each) + 1 for each in self._thresholds]
        reached = [
            np.searchsorted(np.sort(each), confidences.models[model], side="right")
            for model, each in thresholds.items()
        ]
        columns = [group * 2 + confidences.truth, *reached]
        columns += [] if confidences.cluster is None else [confidences.cluster]
        weights = np.empty(0)
        if confidences.weight is not None:
            weights, weight = np.unique(confidences.weight, return_inverse=True)
            columns.append(weight)
        kinds, counts = np.unique(np.stack(columns), axis=1, return_counts=True)
        self._place, self._reached = kinds[0], kinds[1 : len(reached) + 1]
        self._weights = weights[kinds[-1]] if len(weights) else None
        self._unit, self.counts = np.arange(len(counts)), counts
        if confidences.cluster is not None:
            self._unit, self.counts = kinds[len(reached) + 1], np.ones(int(confidences.cluster.max()) + 1, np.int64)
            self._weights = counts if self._weights is None else counts * self._weights
        points = sum(map(len, thresholds.values()))
        _check_size(f"{len(self.groups.names):,} groups at {points:,} thresholds", self.size)

    @property
    def size(self) -> int:
        """The most numbers that a draw needs at once."""
        return max(len(self._unit), len(self.counts), max(self._sizes) * self._kinds)

    @property
    def _kinds(self) -> int:
        return 2 * (len(self.groups.names) + 1)

    def evaluate(self, draws: np.ndarray) -> Iterator[np.ndarray]:
        """The values of points in some draws, for each model: draws × thresholds × objectives."""
        for model, thresholds in enumerate(self._thresholds):
            counts, order = cells_of(self.table(draws, model)), np.argsort(thresholds)
            values = np.empty((len(draws), len(thresholds), len(self._objectives)))
            for place, objective in enumerate(self._objectives):
                values[:, order, place] = objective.of_counts(_marginal(counts, self.groups, objective.by))
            yield values

    def table(self, draws: np.ndarray, model: int) -> np.ndarray:
        """The result of `bin_rows` for each draw; the last group has no attributes."""
        place = self._reached[model] * self._kinds + self._place
        order = np.argsort(place, kind="stable")
        starts = np.flatnonzero(np.diff(place[order], prepend=-1))
        size, rows = self._sizes[model], draws[:, self._unit[order]]
        if self._weights is not None:
            rows = rows * self._weights[order]
        table = np.zeros((len(draws), size * self._kinds), rows.dtype)
        table[:, place[order][starts]] = np.add.reduceat(rows, starts, axis=1)
        return table.reshape(len(draws), size, self._kinds // 2, 2)


def _blocks(replicates: int, size: int) -> Iterator[slice]:
    step = max(1, _AT_ONCE // size)
    return (slice(start, min(start + step, replicates)) for start in range(0, replicates, step))


def _check_size(what: str, size: int) -> None:
    if size > _MOST:
        raise SpecError(
            f"{what} would need {size:,} numbers; at most {_MOST:,} are allowed; use fewer thresholds or groups"
        )


def _marginal(counts: np.ndarray, crossed: Groups, by: Sequence[str]) -> np.ndarray:
    """The counts by some of the crossed attributes; the last group has no attributes."""
    if not by:
        return np.asarray(counts.sum(axis=-2, keepdims=True))
    keys = [tuple(name[attribute] for attribute in by) for name in crossed.names]
    groups = [[place for place, key in enumerate(keys) if key == one] for one in dict.fromkeys(keys)]
    return np.stack([counts[..., members, :].sum(axis=-2) for members in groups], axis=-2)


_MOST: Final = 1 << 28
_AT_ONCE: Final = 1 << 21
_HIGHEST: Final = 1 - 1e-6
_EQUAL: Final = 1e-24
"""A variance that comes from rounding alone."""
