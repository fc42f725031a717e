"""Ratings as win rates: the mean over opponents, each of which counts equally, or against a baseline.

Two means are compared only if they are over the same opponents. p values come from the permutation test that exchanges
both systems on an example.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from evaluand.comparison.ratings.estimates import Estimates
from evaluand.comparison.significance import DRAWN_CLUSTERS, EXACT_CLUSTERS, draw_sums, drawn_p, sign_flip
from evaluand.core.errors import SpecError, nearest
from evaluand.metrics.ratings.counts import MatchRows, count_matches
from evaluand.metrics.ratings.win_rates import WinRates


def estimate_win_rates(rows: MatchRows, rates: WinRates, labels: Sequence[str], baseline: str | None) -> Estimates:
    """The ratings of all systems.

    Args:
        rows: the matches, with outcomes as they count.
        rates: their win rates.
    """
    systems = rows.systems
    if baseline is None:
        value, low, high = rates.average
        influence, centred = _influences(rows, np.maximum(rates.opponents, 1))
        reason: list[str | None] = [
            None if n else f'no match of "{labels[i]}" has an outcome' for i, n in enumerate(rates.opponents)
        ]
        incomparable = _find_incomparable(rates, labels)
    else:
        base = find_system(baseline, labels)
        value, low, high = (each[:, base].copy() for each in rates.rate)
        value[base] = low[base] = high[base] = 0.5
        against = (rows.a == base) | (rows.b == base)
        influence, centred = _influences(rows.select(against), np.ones(systems))
        influence[:, base] = centred[:, base] = 0.0
        reason = [
            None if known else f'no match of "{labels[i]}" against "{baseline}" has an outcome'
            for i, known in enumerate(~np.isnan(value))
        ]
        reason[base] = "the baseline: ½ by definition"
        incomparable = {}
    error = np.sqrt(_correction(len(influence)) * np.square(influence).sum(axis=0))
    difference = value[:, None] - value
    ends = _difference_ends(value, low, high, influence)
    p = _exchange_p(centred, difference)
    for i in np.flatnonzero(np.isnan(low) & ~np.isnan(value)).tolist():
        reason[i] = f'"{labels[i]}" has matches on one example only, so there is no interval'
    if baseline is not None:
        low[base] = high[base] = math.nan
    for i, j in incomparable:
        for each in (difference, *ends, p):
            each[i, j] = each[j, i] = math.nan
    return Estimates(
        rating=value,
        error=np.where(np.isnan(value) | (len(influence) < 2), math.nan, error),
        low=low,
        high=high,
        reason=reason,
        difference=difference,
        difference_low=ends[0],
        difference_high=ends[1],
        p=p,
        test="permutation",
        difference_reason=incomparable,
    )


def find_system(label: str, labels: Sequence[str], role: str = "baseline") -> int:
    """The number of a system.

    Args:
        role: what the system is named as, for the message.

    Raises:
        SpecError: no system is called so.
    """
    if label not in labels:
        raise SpecError(f"{role} {label!r} is not one of the systems{nearest(label, labels)}: {', '.join(labels)}")
    return [*labels].index(label)


def _correction(examples: int) -> float:
    return examples / (examples - 1) if examples > 1 else 1.0


def _influences(rows: MatchRows, opponents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """By how much each example moves each mean win rate, and what it adds to its distance from ½.

    Returns:
        Two arrays, examples × systems.
    """
    counts = count_matches(rows)
    place = rows.pairs[1]
    share = np.where(rows.a < rows.b, rows.outcome, 1.0 - rows.outcome)
    rate = (counts.score / counts.n)[place]
    weight = rows.weight / counts.n[place]
    keys, example = np.unique(rows.cluster, return_inverse=True)
    low, high = np.minimum(rows.a, rows.b), np.maximum(rows.a, rows.b)
    shape = len(keys), rows.systems
    tables = []
    for deviation in (share - rate, share - 0.5):
        table = np.bincount(example * rows.systems + low, weight * deviation, math.prod(shape))
        table -= np.bincount(example * rows.systems + high, weight * deviation, math.prod(shape))
        tables.append(table.reshape(shape) / opponents)
    return tables[0], tables[1]


def _find_incomparable(rates: WinRates, labels: Sequence[str]) -> dict[tuple[int, int], str]:
    """The pairs of systems whose opponents differ, with the reason."""
    met = rates.n > 0
    found = {}
    for i in range(len(met)):
        for j in range(i + 1, len(met)):
            others = np.arange(len(met))
            differing = (met[i] != met[j]) & (others != i) & (others != j)
            if met[i].any() and met[j].any() and differing.any():
                other = labels[int(np.argmax(differing))]
                found[i, j] = (
                    f'only one of them met "{other}", and win rates against different opponents cannot be compared; '
                    "rate by bradley_terry, or against a baseline"
                )
    return found


def _difference_ends(
    value: np.ndarray, low: np.ndarray, high: np.ndarray, influence: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The intervals of differences from those of the win rates and the correlation of their influences.

    Without variance the correlation is unknown; −1 gives the widest interval.
    Source: G. Zou, "Toward using confidence intervals to compare correlations" (Psychological Methods 12, 2007).
    """
    square = influence.T @ influence
    size = np.sqrt(np.outer(np.diagonal(square), np.diagonal(square)))
    correlation = np.divide(square, size, out=np.full(square.shape, -1.0), where=size > 0)
    below, above = value - low, high - value
    difference = value[:, None] - value
    ends = []
    for ours, theirs in ((below[:, None], above), (above[:, None], below)):
        ends.append(np.sqrt(np.maximum(ours**2 + theirs**2 - 2 * correlation * ours * theirs, 0.0)))
    np.fill_diagonal(ends[0], 0.0)
    np.fill_diagonal(ends[1], 0.0)
    return np.maximum(difference - ends[0], -1.0), np.minimum(difference + ends[1], 1.0)


_FEW_PAIRS: Final = 10
_ROUNDING: Final = 1e-12


def _exchange_p(centred: np.ndarray, difference: np.ndarray) -> np.ndarray:
    """The p value of each pair: that of `sign_flip`, whose draws all pairs share where there are many."""
    examples, systems = centred.shape
    pairs = [pair for pair in itertools.combinations(range(systems), 2) if not math.isnan(difference[pair])]
    drawn = None
    if len(pairs) > _FEW_PAIRS and EXACT_CLUSTERS < examples <= DRAWN_CLUSTERS:
        drawn = np.ascontiguousarray(draw_sums(centred).T)
    found = np.full((systems, systems), np.nan)
    for i, j in pairs:
        sums = centred[:, i] - centred[:, j]
        sums[np.abs(sums) <= _ROUNDING * np.abs(sums).max(initial=0.0)] = 0.0
        if drawn is None or np.count_nonzero(sums) <= EXACT_CLUSTERS:
            found[i, j] = found[j, i] = sign_flip(sums).p
        else:
            observed = abs(float(sums.sum())) - _ROUNDING * float(np.abs(sums).sum())
            extreme = int(np.count_nonzero(np.abs(drawn[i] - drawn[j]) >= observed))
            found[i, j] = found[j, i] = drawn_p(extreme, sums, observed)
    return found
