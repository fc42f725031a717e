"""Intervals of strengths and of their differences, by a bootstrap over examples.

A replicate draws examples with all their matches. In some replicates a system wins or loses all matches, or the
systems fall into groups that no chain of wins links. Such replicates are not left out, which would make intervals too
short at the side of the rarest result. The difference of two systems is then

    +∞        if a chain of wins and ties leads from the first to the second, and none back
    −∞        if one leads from the second to the first alone
    unknown   if none leads either way: it counts as −∞ at the lower end and as +∞ at the upper

and a strength is the mean of its differences from all rated systems. So an end is infinite where enough replicates are:
the matches do not exclude that the system would win, or lose, ever so often.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from evaluand.metrics.ratings.bradley_terry import BradleyTerryFit, fit_bradley_terry
from evaluand.metrics.ratings.counts import MatchRows, resample_counts
from evaluand.metrics.ratings.standard_errors import influences
from evaluand.metrics.stats.intervals import t_quantile
from evaluand.metrics.stats.resampling import acceleration, bca_ends, resampling_units


class StrengthIntervals(NamedTuple):
    """Intervals of strengths and differences.

    An end may be infinite. Both are NaN for systems that are not rated, below two examples, and where all examples
    agree so much that all replicates are equal.

    Attributes:
        low: of each strength, as is `high`.
        difference_low: systems × systems, of the strength of the first minus that of the second, as is
            `difference_high`.
    """

    low: np.ndarray
    high: np.ndarray
    difference_low: np.ndarray
    difference_high: np.ndarray


class Replicates(NamedTuple):
    """Strengths in replicates of the bootstrap.

    Attributes:
        strength: replicates × systems, with mean 0 in each component.
        parted: the numbers of the replicates in which rated systems are in different components or have no strength.
        difference: of these: parted × systems × systems: 0 within a component, else ±∞, or NaN if unknown.
    """

    strength: np.ndarray
    parted: np.ndarray
    difference: np.ndarray

    def differences(self, system: int) -> np.ndarray:
        """Replicates × systems: the strength of a system minus those of all."""
        found = self.strength[:, system, None] - self.strength
        found[self.parted] += self.difference[:, system]
        return np.asarray(found)


def strength_intervals(
    rows: MatchRows, fit: BradleyTerryFit, confidence: float = 0.95, replicates: int = 1000, seed: int = 0
) -> StrengthIntervals:
    """Intervals of a fit to all matches, which has no leading axes.

    They are bias-corrected and accelerated, and widened to have the coverage of Student's with few examples. How often
    they include the true value is measured in benchmarks/README.md.

    Example:
        >>> from evaluand.metrics.ratings.counts import count_matches
        >>> rows = MatchRows.read([0] * 40, [1] * 40, [1.0, 1, 1, 0] * 10, cluster=list(range(40)))
        >>> fit = fit_bradley_terry(count_matches(rows))
        >>> ends = strength_intervals(rows, fit)
        >>> round(float(ends.difference_low[0, 1]), 2), round(float(ends.difference_high[0, 1]), 2)
        (0.41, 1.95)
    """
    units, systems, rated = resampling_units(rows.cluster), rows.systems, np.flatnonzero(fit.rated)
    ends = StrengthIntervals(*(np.full(shape, np.nan) for shape in [systems] * 2 + [(systems, systems)] * 2))
    if units.n < 2 or not len(rated):
        return ends
    drawn, influence = draw_strengths(rows, fit, replicates, seed), influences(rows, fit, units)
    quantile = widened_quantile(confidence, len(np.unique(rows.cluster)))
    for system in rated.tolist():
        differences = drawn.differences(system)[:, rated]
        value = fit.strength[system] - fit.strength[rated]
        skew = acceleration(influence[:, system, None] - influence[:, rated])
        low, high = bca_ends(differences, value, skew, quantile)
        ends.difference_low[system, rated], ends.difference_high[system, rated] = low, high
        ends.difference_low[system, system] = ends.difference_high[system, system] = 0.0
        with np.errstate(invalid="ignore"):
            mean = drawn.strength[:, system] if fit.penalty else differences.mean(axis=1)
        skew = acceleration(influence[:, system])
        ends.low[system], ends.high[system] = bca_ends(mean, fit.strength[system], skew, quantile)
    return ends


def draw_strengths(rows: MatchRows, fit: BradleyTerryFit, replicates: int, seed: int = 0) -> Replicates:
    """The strengths in each replicate."""
    pairs = len(rows.pairs[0])
    rated = np.flatnonzero(fit.rated)
    strength, parted, difference = [], [], []
    step = max(1, _AT_ONCE // max(pairs, 1))
    for first in range(0, replicates, step):
        counts = resample_counts(rows, min(step, replicates - first), seed, first)
        found = fit_bradley_terry(counts, fit.ties, fit.penalty, start=fit.strength)
        strength.append(found.inner)
        apart = (found.connections.component[:, rated] != found.connections.component[:, rated[:1]]).any(axis=-1)
        apart = ~found.converged | (apart & (fit.penalty == 0))
        parted.append(first + np.flatnonzero(apart))
        above = found.connections.above[apart]
        below = np.swapaxes(above, -1, -2)
        order = np.select([above & below, above, below], [0.0, np.inf, -np.inf], np.nan)
        difference.append(np.where(found.converged[apart][:, None, None], order, np.nan))
    return Replicates(*(np.concatenate(each) for each in (strength, parted, difference)))


def widened_quantile(confidence: float, examples: int) -> float:
    """The normal quantile that makes the interval of a mean from n examples as wide as Student's.

    Replicates vary less than samples do, by the factor (n − 1) / n of the variance.
    Source: T. C. Hesterberg, "What teachers should know about the bootstrap" (The American Statistician 69, 2015).
    """
    student = float(t_quantile(confidence, np.array([examples - 1]))[0])
    return student * math.sqrt(examples / (examples - 1))


_AT_ONCE: Final = 1 << 22  # counts in memory
