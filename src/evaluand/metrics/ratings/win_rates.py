"""Win rates: how often each system wins against each other one, and on average over its opponents.

A win counts 1, a tie ½, and a probability is a share of a win. Intervals treat examples as the sample: all matches on
an example, of all pairs and in both orders, belong together.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from evaluand.metrics.ratings.counts import MatchCounts, MatchRows, count_matches
from evaluand.metrics.stats.disparity import IntervalEnds
from evaluand.metrics.stats.intervals import Arrays, cautious_spread, cluster_sums, cluster_variance, clustered_wilson


class WinRates(NamedTuple):
    """The win rates of some systems; NaN where systems never met.

    Attributes:
        rate: systems × systems with intervals, the share of wins of the row's system against the column's; intervals
            are NaN below two examples.
        wins: systems × systems, the weight of the matches that the row's system won; `ties` of the ties, `n` of all.
        examples: systems × systems, how many examples these matches are on.
        average: of each system over its opponents, each of which counts equally, with intervals.
        opponents: how many opponents each system met; averages over different opponents are not comparable.
        average_examples: how many examples each system had matches on.
    """

    rate: IntervalEnds
    wins: np.ndarray
    ties: np.ndarray
    n: np.ndarray
    examples: np.ndarray
    average: IntervalEnds
    opponents: np.ndarray
    average_examples: np.ndarray


def win_rates(rows: MatchRows, *, confidence: float = 0.95) -> WinRates:
    """The win rates of all pairs of systems and on average, with intervals by example.

    Example:
        >>> rows = MatchRows.read(a=[0, 0, 0, 1], b=[1, 1, 2, 2], outcome=[1.0, 0.5, 0.8, 1.0], cluster=[0, 1, 0, 1])
        >>> win_rates(rows).rate.value.round(3).tolist()
        [[nan, 0.75, 0.8], [0.25, nan, 1.0], [0.2, 0.0, nan]]
        >>> win_rates(rows).average.value.round(3).tolist()
        [0.775, 0.625, 0.1]
    """
    counts, cells, value = _rates_of_pairs(rows)
    spread = cluster_variance(cells, value)
    low, high = clustered_wilson(value, cautious_spread(value, spread, confidence), confidence)
    sides = (value, 1 - value), (low, 1 - high), (high, 1 - low)
    rate = IntervalEnds(*(counts.fill(*pair, np.nan) for pair in sides))
    wins, ties = counts.square("wins"), counts.square("ties")
    n, examples = (counts.fill(each, each) for each in (counts.n, spread.clusters))
    return WinRates(rate, wins, ties, n, examples, *_averages(cells, value, counts, confidence))


def _rates_of_pairs(rows: MatchRows) -> tuple[MatchCounts, Arrays, np.ndarray]:
    """The counts, the sums of each example of each pair, and the win rate of the first system of each pair."""
    counts = count_matches(rows)
    share = np.where(rows.a < rows.b, rows.outcome, 1.0 - rows.outcome)
    cells = cluster_sums(share, rows.weight, rows.cluster, rows.pairs[1])
    return counts, cells, np.bincount(cells["cluster_group"], cells["cluster_sum"], len(counts.n)) / counts.n


def _averages(
    cells: Arrays, rate: np.ndarray, counts: MatchCounts, confidence: float
) -> tuple[IntervalEnds, np.ndarray, np.ndarray]:
    """The mean win rate of each system with its interval; the numbers of opponents and of examples."""
    value, opponents = _mean_rates(rate, counts)
    sides = _enlarged_sides(cells, rate, counts)
    state = cluster_sums(value[sides.system] + sides.deviation, sides.part, sides.example, sides.system)
    spread = cluster_variance(state, value)
    enlarged_twice = 1 - 1 / np.maximum(spread.clusters, 1)
    spread = spread._replace(variance=spread.variance * enlarged_twice)
    spread = cautious_spread(value, spread, confidence, np.maximum(opponents, 1))
    low, high = clustered_wilson(value, spread, confidence)
    return IntervalEnds(value, low, high), opponents, spread.clusters


def _mean_rates(rate: np.ndarray, counts: MatchCounts) -> tuple[np.ndarray, np.ndarray]:
    """The mean win rate of each system over its opponents, and their number."""
    opponents = np.bincount(np.concatenate([counts.a, counts.b]), minlength=counts.systems)
    totals = np.bincount(counts.a, rate, counts.systems) + np.bincount(counts.b, 1 - rate, counts.systems)
    return np.divide(totals, opponents, out=np.full(counts.systems, np.nan), where=opponents > 0), opponents


class _Sides(NamedTuple):
    """The matches of a pair of systems on an example, twice: from the side of each of the two systems.

    Attributes:
        system, example: their numbers.
        share: of the wins of the system.
        deviation: of the share from the win rate, enlarged by its leverage.
        part: its part of the mean win rate of the system.
    """

    system: np.ndarray
    example: np.ndarray
    share: np.ndarray
    deviation: np.ndarray
    part: np.ndarray


def _enlarged_sides(cells: Arrays, rate: np.ndarray, counts: MatchCounts) -> _Sides:
    """The sides of all cells, of which each is an example of a pair.

    A cell deviates from the win rate of its pair, so that strong and weak opponents do not widen the interval. With few
    examples the deviation is too small, as the win rate was fitted to it, and is enlarged by its leverage
    (J. MacKinnon & H. White, Journal of Econometrics 29, 1985: HC2); the only example of a pair deviates from the mean.
    """
    value, opponents = _mean_rates(rate, counts)
    pair, weight = cells["cluster_group"], cells["cluster_weight"]
    first = cells["cluster_sum"] / weight
    leverage = np.tile(weight / np.bincount(pair, weight, len(rate))[pair], 2)
    system = np.concatenate([counts.a[pair], counts.b[pair]])
    share = np.concatenate([first, 1 - first])
    deviation = np.concatenate([first - rate[pair], rate[pair] - first])
    several = leverage < 1
    deviation[several] /= np.sqrt(1 - leverage[several])
    deviation[~several] = (share - value[system])[~several]
    return _Sides(system, np.tile(cells["cluster_key"], 2), share, deviation, leverage / opponents[system])


class Influences(NamedTuple):
    """What each example adds to the mean win rate of each system: examples × systems.

    Attributes:
        deviation: from the win rates, enlarged by leverage; the sum of squares is the variance of the mean.
        from_half: from ½; the sum is the distance of the mean from ½.
        part: its weight; the sum is 1.
    """

    deviation: np.ndarray
    from_half: np.ndarray
    part: np.ndarray


def win_rate_influences(rows: MatchRows) -> Influences:
    """The influence of each example on the mean weighted win rates over opponents.

    Example:
        >>> rows = MatchRows.read(a=[0, 0, 0], b=[1, 1, 1], outcome=[1.0, 0.5, 0.0], cluster=[0, 1, 2])
        >>> np.square(win_rate_influences(rows).deviation).sum(axis=0).round(4).tolist()  # s² / n = 0.25 / 3
        [0.0833, 0.0833]
    """
    counts, cells, rate = _rates_of_pairs(rows)
    sides = _enlarged_sides(cells, rate, counts)
    keys, example = np.unique(sides.example, return_inverse=True)
    shape = len(keys), rows.systems
    place = example * rows.systems + sides.system
    amounts = sides.deviation * sides.part, (sides.share - 0.5) * sides.part, sides.part
    return Influences(*(np.bincount(place, each, math.prod(shape)).reshape(shape) for each in amounts))
