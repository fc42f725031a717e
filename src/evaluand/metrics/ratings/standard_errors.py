"""Standard errors of strengths whose matches come in examples, and the influence of each example.

Matches on one example are not independent: both orders, all pairs and all opponents share its difficulty. So what each
example adds to the slope of the likelihood is summed first, and the spread between examples gives the error.
Source: the robust ("sandwich") variance of K.-Y. Liang & S. L. Zeger, "Longitudinal data analysis using generalized
linear models" (Biometrika 73, 1986), times G / (G − 1) for G examples.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from evaluand.metrics.ratings.bradley_terry import BradleyTerryFit, inverse_hessian, pair_slopes
from evaluand.metrics.ratings.counts import MatchCounts, MatchRows, count_matches, weigh_outcomes
from evaluand.metrics.stats.resampling import Units


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
