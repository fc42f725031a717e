"""Resampling: what the points of other samples of the same size would have been.

The rows are counts in a table of groups, truths and, for each model, the stretch between thresholds that its confidence
lies in. Another sample is another draw of that table, so a thousand of them cost as much as drawing some numbers for
each cell, and models stay as alike as they are. Rows that belong together are drawn together, and each counts by its
weight.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.stats.intervals import Spread, interval_within
from evaluand.tradeoff.confidences import Confidences, Groups, cells_of
from evaluand.tradeoff.objectives import Objective

REPLICATES: Final = 1000

HALVES: Final = 400
"""How often rows are halved: enough for a mean and a standard deviation."""


def replicated(
    given: Confidences,
    thresholds: Mapping[str, np.ndarray],
    objectives: Sequence[Objective],
    replicates: int = REPLICATES,
    seed: int = 0,
) -> list[np.ndarray]:
    """The values of points in other samples, for each model: replicates × thresholds × objectives.

    Args:
        given: the rows that are drawn from.
        thresholds: those of each model that is looked at.
        objectives: of decisions, not of confidences.
        replicates: how many samples are drawn.
        seed: of the draws.
    """
    cells = _Cells(given, thresholds, _attributes(objectives))
    points = sum(map(len, thresholds.values()))
    _check_size(f"{replicates:,} replicates of {points:,} points", replicates * points * len(objectives))
    values = [np.empty((replicates, len(each), len(objectives))) for each in thresholds.values()]
    random, n = np.random.default_rng(seed), int(cells.often.sum())
    for some in _blocks(replicates, cells.widest):
        drawn = random.multinomial(n, cells.often / n, size=some.stop - some.start)
        for found, each in zip(values, _values(cells, drawn, thresholds, objectives), strict=True):
            found[some] = each
    return values


def halved(
    given: Confidences,
    thresholds: Mapping[str, np.ndarray],
    objectives: Sequence[Objective],
    replicates: int = HALVES,
    seed: int = 0,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The values of points in one half of the rows and in the other, some replicates at a time.

    Each row is in either half by chance. So the halves are samples of their own, without rows that come twice, and
    what is chosen on one is tried on rows it was not chosen on.

    Yields:
        Of all models one after the other: replicates × points × objectives, of either half; arguments as of
        `replicated`.
    """
    cells, random = _Cells(given, thresholds, _attributes(objectives)), np.random.default_rng(seed)
    for some in _blocks(replicates, cells.widest * len(thresholds)):
        one = random.binomial(cells.often, 0.5, size=(some.stop - some.start, len(cells.often)))
        first, second = (
            np.concatenate(list(_values(cells, half, thresholds, objectives)), axis=1)
            for half in (one, cells.often - one)
        )
        yield first, second


def between_worths(
    volume: float, chosen: np.ndarray, tried: np.ndarray, rows: float, confidence: float
) -> tuple[float, float]:
    """The interval of what a front is worth that was chosen on rows, and of the most that there was to choose from.

    A hypervolume is too high on the rows its front was chosen on. By how much, is seen in halves of the rows, whose
    front is tried on the other half: noise is √2 times as large there, and this √2 to 2 times as much as of all rows.
    The lower end is one of what is left when the most of it is taken off, the upper end one of the hypervolume as it
    is. The spread is that among halves: a half of the rows lies as far off all of them, as these do off all there are.
    Source: D. Politis, J. Romano & M. Wolf, Subsampling (1999), chapter 2, for parts of the rows as samples; the ends
    are those of a score interval with that spread (`interval_within`).

    Args:
        volume: of the front, on all rows.
        chosen: the hypervolumes of the fronts of halves of the rows; NaN where there is none.
        tried: those of the same points on the other halves.
        rows: how many there are, or clusters of them; of equal weight.
        confidence: of the interval.

    Returns:
        NaN where fewer than two halves have a front or all are alike.
    """
    known = ~np.isnan(chosen) & ~np.isnan(tried)
    spread = float(np.var(chosen[known])) if known.sum() > 1 else 0.0
    if not spread > _ALIKE:
        return math.nan, math.nan
    optimism = max(float((chosen - tried)[known].mean()), 0.0) / math.sqrt(2)
    of = Spread(*(np.array(each, np.float64) for each in (spread, rows, rows)))
    low, _ = interval_within(np.array(max(volume - optimism, 0.0)), of, (0.0, 1.0), confidence)
    _, high = interval_within(np.array(volume), of, (0.0, 1.0), confidence)
    return float(low), float(high)


def simultaneous(drawn: np.ndarray, value: np.ndarray, confidence: float) -> list[float]:
    """With which confidence the interval of each point has to hold, that those of all points do at once.

    The farthest that any point lies off in another sample, in its own standard errors, tells. The intervals themselves
    are not those of resampling: a rate of 1 is 1 in all other samples, and yet not known for sure.
    Source: J. Montiel Olea & M. Plagborg-Møller, "Simultaneous confidence bands: theory, implementation, and an
    application to SVARs" (Journal of Applied Econometrics 34, 2019).

    Args:
        drawn: replicates × points × objectives.
        value: points × objectives.
        confidence: of all points at once.

    Returns:
        For each objective.
    """
    known = ~np.isnan(drawn)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(known, drawn, 0.0).sum(axis=0) / known.sum(axis=0)
        error = np.sqrt(np.where(known, np.square(drawn - mean), 0.0).sum(axis=0) / known.sum(axis=0))
        off = np.abs(drawn - value) / np.where(error > 0, error, np.nan)
    farthest = np.quantile(np.where(np.isnan(off), 0.0, off).max(axis=1), confidence, axis=0)
    return [min(max(math.erf(each / math.sqrt(2)), confidence), _SUREST) for each in farthest.tolist()]


class _Cells:
    """The different kinds of rows there are, and what is drawn of them: kinds, or clusters with rows of several kinds.

    Attributes:
        often: how often each of what is drawn is there.
    """

    def __init__(self, given: Confidences, thresholds: Mapping[str, np.ndarray], by: Sequence[str]) -> None:
        self.groups = given.groups(by)
        group = np.where(self.groups.code >= 0, self.groups.code, len(self.groups.names))
        self._sizes = [len(each) + 1 for each in thresholds.values()]
        reached = [
            np.searchsorted(np.sort(each), given.models[model], side="right") for model, each in thresholds.items()
        ]
        columns = [group * 2 + given.truth, *reached]
        columns += [] if given.cluster is None else [given.cluster]
        weights = np.empty(0)
        if given.weight is not None:
            weights, weight = np.unique(given.weight, return_inverse=True)
            columns.append(weight)
        kinds, often = np.unique(np.stack(columns), axis=1, return_counts=True)
        self._place, self._reached = kinds[0], kinds[1 : len(reached) + 1]
        self._counts = weights[kinds[-1]] if len(weights) else None
        self._drawn, self.often = np.arange(len(often)), often
        if given.cluster is not None:
            self._drawn, self.often = kinds[len(reached) + 1], np.ones(int(given.cluster.max()) + 1, np.int64)
            self._counts = often if self._counts is None else often * self._counts
        points = sum(map(len, thresholds.values()))
        _check_size(f"{len(self.groups.names):,} groups at {points:,} thresholds", self.widest)

    @property
    def widest(self) -> int:
        """How many numbers there are of a draw at most."""
        return max(len(self._drawn), len(self.often), max(self._sizes) * self._kinds)

    @property
    def _kinds(self) -> int:
        return 2 * (len(self.groups.names) + 1)

    def table(self, drawn: np.ndarray, model: int) -> np.ndarray:
        """What `binned` would give of each draw; the last group has no attributes."""
        place = self._reached[model] * self._kinds + self._place
        order = np.argsort(place, kind="stable")
        starts = np.flatnonzero(np.diff(place[order], prepend=-1))
        size, rows = self._sizes[model], drawn[:, self._drawn[order]]
        if self._counts is not None:
            rows = rows * self._counts[order]
        table = np.zeros((len(drawn), size * self._kinds), rows.dtype)
        table[:, place[order][starts]] = np.add.reduceat(rows, starts, axis=1)
        return table.reshape(len(drawn), size, self._kinds // 2, 2)


def _attributes(objectives: Sequence[Objective]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for objective in objectives for name in objective.by))


def _values(
    cells: _Cells, drawn: np.ndarray, thresholds: Mapping[str, np.ndarray], objectives: Sequence[Objective]
) -> Iterator[np.ndarray]:
    """The values of points in some draws, for each model: draws × thresholds × objectives."""
    for model, each in enumerate(thresholds.values()):
        counts, order = cells_of(cells.table(drawn, model)), np.argsort(each)
        values = np.empty((len(drawn), len(each), len(objectives)))
        for place, objective in enumerate(objectives):
            values[:, order, place] = objective.of_counts(_marginal(counts, cells.groups, objective.by))
        yield values


def _blocks(replicates: int, each: int) -> Iterator[slice]:
    step = max(1, _AT_ONCE // each)
    return (slice(start, min(start + step, replicates)) for start in range(0, replicates, step))


def _check_size(told: str, size: int) -> None:
    if size > _MOST:
        raise SpecError(f"{told} are {size:,} numbers, and {_MOST:,} are the most; take fewer thresholds or groups")


def _marginal(counts: np.ndarray, crossed: Groups, by: Sequence[str]) -> np.ndarray:
    """The counts of the groups of some of the crossed attributes; the last group has no attributes."""
    if not by:
        return np.asarray(counts.sum(axis=-2, keepdims=True))
    keys = [tuple(name[attribute] for attribute in by) for name in crossed.names]
    groups = [[place for place, key in enumerate(keys) if key == one] for one in dict.fromkeys(keys)]
    return np.stack([counts[..., members, :].sum(axis=-2) for members in groups], axis=-2)


_ALIKE: Final = 1e-24
"""A variance that is one of rounding."""

_MOST: Final = 1 << 28
_AT_ONCE: Final = 1 << 21
_SUREST: Final = 1 - 1e-6
