"""Standard errors and intervals of strengths and of their differences, from the spread between examples.

Matches on one example are not independent: both orders, all pairs and all opponents share its difficulty. So what each
example adds to the slope of the likelihood is summed first, and the spread between examples gives the error.
Source: the robust ("sandwich") variance of K.-Y. Liang & S. L. Zeger, "Longitudinal data analysis using generalized
linear models" (Biometrika 73, 1986), times G / (G − 1) for G examples.

Intervals are made by a bootstrap over examples.
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
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.ratings.bradley_terry import BradleyTerryFit, fit_bradley_terry, inverse_hessian, pair_slopes
from evaluand.metrics.ratings.counts import MatchCounts, MatchRows, count_matches, resample_counts, weigh_outcomes
from evaluand.metrics.stats.intervals import t_quantile
from evaluand.metrics.stats.resampling import Units, acceleration, bca_ends, resampling_units


class StandardErrors(NamedTuple):
    """The uncertainty of strengths from the spread between examples.

    Attributes:
        strength: of each system; NaN if it is not rated, with fewer than two examples, and if there are only ties.
        difference: systems × systems: of the difference of two strengths.
        tie: of the parameter of ties; NaN if there is none.
        covariance: systems × systems, of strengths.
        examples: the number of examples.
    """

    strength: np.ndarray
    difference: np.ndarray
    tie: float
    covariance: np.ndarray
    examples: int


def standard_errors(rows: MatchRows, fit: BradleyTerryFit) -> StandardErrors:
    """The standard errors of a fit to all matches, which has no leading axes.

    Example:
        >>> from evaluand.metrics.ratings.bradley_terry import fit_bradley_terry
        >>> rows = MatchRows.read([0] * 8, [1] * 8, [1.0, 1, 1, 1, 1, 1, 0, 0], cluster=[0, 0, 1, 1, 2, 2, 3, 3])
        >>> fit = fit_bradley_terry(count_matches(rows))
        >>> standard_errors(rows, fit).difference.round(3).tolist()  # 4 examples, of which one differs
        [[0.0, 1.333], [1.333, 0.0]]
    """
    keys, place = np.unique(rows.cluster, return_inverse=True)
    n, systems = len(keys), rows.systems
    meat = np.zeros((systems + 1, systems + 1))
    for some in _score_tables(rows, fit, Units(place, n)):
        meat += some.T @ some
    bread = inverse_hessian(count_matches(rows), fit)
    covariance = bread @ meat @ bread * (n / (n - 1) if n > 1 else np.nan)
    tie = float(np.sqrt(covariance[-1, -1]) * fit.tie) if np.isfinite(fit.tie) else np.nan
    known = fit.rated & ~np.isinf(fit.tie)
    covariance = np.where(known[:, None] & known, covariance[:-1, :-1], np.nan)
    variance = np.maximum(np.diagonal(covariance), 0.0)  # rounding may make 0 negative
    squares = np.maximum(variance[:, None] + variance - 2 * covariance, 0.0)
    return StandardErrors(np.sqrt(variance), np.sqrt(squares), tie, covariance, n)


def influences(rows: MatchRows, fit: BradleyTerryFit, units: Units) -> np.ndarray:
    """By how much each unit moves each strength: units × systems, to first order."""
    bread = inverse_hessian(count_matches(rows), fit)
    return np.concatenate([some @ bread for some in _score_tables(rows, fit, units)])[:, :-1]


def sum_scores(rows: MatchRows, slope: np.ndarray, more: np.ndarray, units: Units) -> Iterator[np.ndarray]:
    """What each unit adds to the slope of the likelihood, in parts: units × (systems, further parameters).

    Args:
        rows: the matches.
        slope: of each match, by the difference of `a` and `b`.
        more: matches × further parameters: the slopes by these.
        units: of the matches.
    """
    systems, width = rows.systems, rows.systems + more.shape[1]
    order = np.argsort(units.of_row, kind="stable")
    unit, a, b, slope, more = units.of_row[order], rows.a[order], rows.b[order], slope[order], more[order]
    step = max(1, _AT_ONCE // max(width, 1))
    for first in range(0, units.n, step):
        last = min(first + step, units.n)
        some = slice(*np.searchsorted(unit, [first, last]).tolist())
        here, cells = (unit[some] - first) * width, (last - first) * width
        table = np.bincount(here + a[some], slope[some], cells) - np.bincount(here + b[some], slope[some], cells)
        for place in range(width - systems):
            table += np.bincount(here + systems + place, more[some, place], cells)
        yield table.reshape(last - first, width)


_AT_ONCE: Final = 1 << 22


def _score_tables(rows: MatchRows, fit: BradleyTerryFit, units: Units) -> Iterator[np.ndarray]:
    """The parts of `sum_scores` at a fit; the further parameter is the logarithm of that of ties."""
    counts = MatchCounts(rows.systems, rows.a, rows.b, *weigh_outcomes(rows.weight, rows.outcome))
    slope, tie_slope = pair_slopes(counts, fit)
    return sum_scores(rows, slope, tie_slope[:, None], units)


class StrengthIntervals(NamedTuple):
    """Intervals of strengths and differences.

    An end may be infinite. Both are NaN for systems that are not rated, below two examples, and where all examples
    agree so much that all replicates are equal.

    Attributes:
        low: of each strength, as is `high`.
        difference_low: systems × systems, of the strength of the first minus that of the second, as is
            `difference_high`.
        parted: of each system, the share of replicates in which it is not linked with more than half of the rated ones.
    """

    low: np.ndarray
    high: np.ndarray
    difference_low: np.ndarray
    difference_high: np.ndarray
    parted: np.ndarray


class Replicates(NamedTuple):
    """Strengths in replicates of the bootstrap.

    Attributes:
        strength: replicates × systems, with mean 0 in each component.
        parted: the numbers of the replicates in which rated systems are in different components or have no strength.
        order: of these: parted × systems × systems, a code: within a component, above, below or unknown.
    """

    strength: np.ndarray
    parted: np.ndarray
    order: np.ndarray

    def differences(self, system: int) -> np.ndarray:
        """Replicates × systems: the strength of a system minus those of all."""
        found = self.strength[:, system, None] - self.strength
        found[self.parted] += _DIFFERENCES[self.order[:, system]]
        return np.asarray(found)


def strength_intervals(
    rows: MatchRows, fit: BradleyTerryFit, confidence: float = 0.95, replicates: int = 1000, seed: int = 0
) -> StrengthIntervals:
    """Intervals of a fit to all matches, which has no leading axes.

    They are bias-corrected and accelerated, and widened to have the coverage of Student's with few examples. How often
    they include the true value is measured in benchmarks/README.md.

    Raises:
        SpecError: There are no replicates.

    Example:
        >>> from evaluand.metrics.ratings.counts import count_matches
        >>> rows = MatchRows.read([0] * 40, [1] * 40, [1.0, 1, 1, 0] * 10, cluster=list(range(40)))
        >>> fit = fit_bradley_terry(count_matches(rows))
        >>> ends = strength_intervals(rows, fit)
        >>> round(float(ends.difference_low[0, 1]), 2), round(float(ends.difference_high[0, 1]), 2)
        (0.41, 1.95)
    """
    if replicates < 1:
        raise SpecError(f"replicates={replicates} must be at least 1")
    units, systems, rated = resampling_units(rows.cluster), rows.systems, np.flatnonzero(fit.rated)
    shapes = [(systems,)] * 2 + [(systems, systems)] * 2 + [(systems,)]
    ends = StrengthIntervals(*(np.full(shape, np.nan) for shape in shapes))
    if units.n < 2 or not len(rated):
        return ends
    drawn, influence = draw_strengths(rows, fit, replicates, seed), influences(rows, fit, units)
    linked = (drawn.order[:, :, rated] == _TOGETHER).sum(axis=-1)
    ends.parted[rated] = (linked <= len(rated) / 2).sum(axis=0)[rated] / replicates
    quantile = widened_quantile(confidence, len(np.unique(rows.cluster)))
    skew, skews = acceleration(influence), _accelerations_of_differences(influence)
    for system in rated.tolist():
        differences = drawn.differences(system)[:, rated]
        value = fit.strength[system] - fit.strength[rated]
        low, high = bca_ends(differences, value, skews[system, rated], quantile)
        ends.difference_low[system, rated], ends.difference_high[system, rated] = low, high
        ends.difference_low[system, system] = ends.difference_high[system, system] = 0.0
        with np.errstate(invalid="ignore"):
            mean = drawn.strength[:, system] if fit.penalty else differences.mean(axis=1)
        ends.low[system], ends.high[system] = bca_ends(mean, fit.strength[system], skew[system], quantile)
    return ends


def explain_open_ends(ends: StrengthIntervals, labels: Sequence[str] | None = None) -> list[str | None]:
    """Why each system's interval has an infinite end; None for those with two finite ends, or none at all.

    Args:
        labels: the names of the systems; their numbers by default.

    Example:
        >>> from evaluand.metrics.ratings.counts import count_matches
        >>> rows = MatchRows.read([0] * 20, [1] * 20, [1.0] * 19 + [0.0], cluster=list(range(20)))
        >>> ends = strength_intervals(rows, fit_bradley_terry(count_matches(rows)))
        >>> explain_open_ends(ends, ["A", "B"])[0]
        'the interval is open, as wins and ties do not link "A" both ways with the others in 36% of the draws'
    """
    names = [f"system {each}" for each in range(len(ends.low))] if labels is None else [f'"{each}"' for each in labels]
    share = np.nan_to_num(ends.parted)
    most = int(np.argmax(share)) if len(names) else 0
    reasons: list[str | None] = []
    for system, name in enumerate(names):
        if not (np.isinf(ends.low[system]) or np.isinf(ends.high[system])):
            reasons.append(None)
            continue
        own = share[system] > 0.5 * share[most]
        which, place = (name, system) if own else (names[most], most)
        relative = "" if own else "strengths are relative to the mean of all, and "
        reasons.append(
            f"the interval is open, as {relative}wins and ties do not link {which} both ways with the others "
            f"in {share[place]:.0%} of the draws"
        )
    return reasons


def draw_strengths(rows: MatchRows, fit: BradleyTerryFit, replicates: int, seed: int = 0) -> Replicates:
    """The strengths in each replicate."""
    pairs = len(rows.pairs[0])
    rated = np.flatnonzero(fit.rated)
    strength, parted, order = [], [], []
    step = max(1, _AT_ONCE // max(pairs, 1))
    for first in range(0, replicates, step):
        counts = resample_counts(rows, min(step, replicates - first), seed, first)
        found = fit_bradley_terry(counts, fit.ties, fit.penalty, start=fit.strength)
        strength.append(found.inner)
        is_unlinked = (found.connections.component[:, rated] != found.connections.component[:, rated[:1]]).any(axis=-1)
        is_unlinked = ~found.converged | (is_unlinked & (fit.penalty == 0))
        parted.append(first + np.flatnonzero(is_unlinked))
        above = found.connections.above[is_unlinked]
        below = np.swapaxes(above, -1, -2)
        code = np.where(above, np.where(below, _TOGETHER, _ABOVE), np.where(below, _BELOW, _UNKNOWN)).astype(np.int8)
        order.append(np.where(found.converged[is_unlinked][:, None, None], code, np.int8(_UNKNOWN)))
    return Replicates(*(np.concatenate(each) for each in (strength, parted, order)))


_TOGETHER, _ABOVE, _BELOW, _UNKNOWN = range(4)
_DIFFERENCES: Final = np.array([0.0, np.inf, -np.inf, np.nan])
"""What each code adds to a difference."""


def widened_quantile(confidence: float, examples: int) -> float:
    """The normal quantile that makes the interval of a mean from n examples as wide as Student's.

    Replicates vary less than samples do, by the factor (n − 1) / n of the variance.
    Source: T. C. Hesterberg, "What teachers should know about the bootstrap" (The American Statistician 69, 2015).
    """
    student = float(t_quantile(confidence, np.array([examples - 1]))[0])
    return student * math.sqrt(examples / (examples - 1))


def _accelerations_of_differences(influence: np.ndarray) -> np.ndarray:
    """The `acceleration` of the difference of each two columns: columns × columns.

    From the sums of products, because the differences themselves would be a table for each two columns.
    """
    square, mixed = influence.T @ influence, np.square(influence).T @ influence
    second, third = np.diagonal(square), np.diagonal(mixed)
    spread = second[:, None] + second - 2 * square
    skew = third[:, None] - third - 3 * (mixed - mixed.T)
    known = spread > _ROUNDING * (second[:, None] + second)
    return np.where(known, skew / (6 * np.where(known, spread, 1.0) ** 1.5), 0.0)


_ROUNDING: Final = 1e-12
