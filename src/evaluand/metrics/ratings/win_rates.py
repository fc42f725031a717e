"""Win rates: how often each system wins against each other one, and on average over its opponents.

A win counts 1, a tie ½. `discrete` rounds each outcome to the winner, so that probabilities of 0.6 and 1 are both wins;
`weighted` takes the probability itself. Intervals treat examples as the sample: all matches on an example, of all pairs
and in both orders, belong together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.ratings.counts import MatchCounts, MatchRows, count_matches
from evaluand.metrics.stats.disparity import IntervalEnds
from evaluand.metrics.stats.intervals import Arrays, cluster_sums, cluster_variance, interval_within

Kind = Literal["discrete", "weighted"]


@dataclass(frozen=True)
class WinRates:
    """The win rates of some systems; NaN where systems never met.

    Attributes:
        kind: `discrete` or `weighted`.
        rate: systems × systems with intervals, the share of wins of the row's system against the column's; intervals
            are NaN below two examples.
        wins: systems × systems, the weight of the matches that the row's system won; `ties` of the ties, `n` of all.
        examples: systems × systems, how many examples these matches are on.
        average: of each system over its opponents, each of which counts equally, with intervals.
        opponents: how many opponents each system met; averages over different opponents are not comparable.
        average_examples: how many examples each system had matches on.
    """

    kind: Kind
    rate: IntervalEnds
    wins: np.ndarray
    ties: np.ndarray
    n: np.ndarray
    examples: np.ndarray
    average: IntervalEnds
    opponents: np.ndarray
    average_examples: np.ndarray


def count_win_rates(counts: MatchCounts, kind: Kind = "discrete") -> tuple[np.ndarray, np.ndarray]:
    """The win rates in counts with any leading axes, such as the replicates of a bootstrap.

    Returns:
        … × systems × systems, the share of wins of the row's system against the column's, NaN where they never met; and
        … × systems, the mean over opponents.

    Raises:
        SpecError: There is no such kind.

    Example:
        >>> rows = MatchRows.read(a=[0, 0, 0, 1], b=[1, 1, 2, 2], outcome=[1.0, 0.5, 0.8, 1.0], cluster=[0, 1, 0, 1])
        >>> count_win_rates(count_matches(rows))[1].tolist()
        [0.875, 0.625, 0.0]
    """
    _check_kind(kind)
    won = counts.square("wins") + counts.square("ties") / 2 if kind == "discrete" else counts.square("score")
    n = _Square(counts.systems, counts.a, counts.b).fill(counts.n, counts.n, 0.0)
    rate = np.divide(won, n, out=np.full(won.shape, np.nan), where=n > 0)
    opponents = np.count_nonzero(n, axis=-1)
    total = np.nansum(rate, axis=-1)
    return rate, np.divide(total, opponents, out=np.full(total.shape, np.nan), where=opponents > 0)


def win_rates(rows: MatchRows, kind: Kind = "discrete", *, confidence: float = 0.95) -> WinRates:
    """The win rates of all pairs of systems and on average, with intervals by example.

    Raises:
        SpecError: There is no such kind.

    Example:
        >>> rows = MatchRows.read(a=[0, 0, 0, 1], b=[1, 1, 2, 2], outcome=[1.0, 0.5, 0.8, 1.0], cluster=[0, 1, 0, 1])
        >>> win_rates(rows).rate.value.tolist()
        [[nan, 0.75, 1.0], [0.25, nan, 1.0], [0.0, 0.0, nan]]
        >>> win_rates(rows, "weighted").average.value.round(3).tolist()
        [0.775, 0.625, 0.1]
    """
    _check_kind(kind)
    share = np.where(rows.a < rows.b, rows.outcome, 1.0 - rows.outcome)
    if kind == "discrete":
        share = (np.sign(share - 0.5) + 1) / 2
    counts = count_matches(rows)
    cells = cluster_sums(share, rows.weight, rows.cluster, rows.pairs[1])
    rate, examples = _pair_rates(cells, counts.n, confidence)
    square = _Square(rows.systems, counts.a, counts.b)
    mirrored = IntervalEnds(1 - rate.value, 1 - rate.high, 1 - rate.low)
    average, opponents, average_examples = _averages(cells, rate.value, square, confidence)
    return WinRates(
        kind=kind,
        rate=IntervalEnds(*(square.fill(*sides, np.nan) for sides in zip(rate, mirrored, strict=True))),
        wins=counts.square("wins"),
        ties=counts.square("ties"),
        n=square.fill(counts.n, counts.n, 0.0),
        examples=square.fill(examples, examples, 0),
        average=average,
        opponents=opponents,
        average_examples=average_examples,
    )


def _check_kind(kind: str) -> None:
    if kind not in get_args(Kind):
        raise SpecError(f"the kind of win rates must be one of {', '.join(get_args(Kind))}, not {kind!r}")


@dataclass(frozen=True)
class _Square:
    """The pairs that played, as places of a square of systems."""

    systems: int
    a: np.ndarray
    b: np.ndarray

    def fill(self, ours: np.ndarray, others: np.ndarray, otherwise: float) -> np.ndarray:
        found = np.full((*ours.shape[:-1], self.systems, self.systems), otherwise, ours.dtype)
        found[..., self.a, self.b] = ours
        found[..., self.b, self.a] = others
        return found


def _pair_rates(cells: Arrays, n: np.ndarray, confidence: float) -> tuple[IntervalEnds, np.ndarray]:
    """The win rate of the first system of each pair with its interval, and the number of examples."""
    value = np.bincount(cells["cluster_group"], cells["cluster_sum"], len(n)) / n
    spread = cluster_variance(cells, value)
    low, high = interval_within(value, spread, (0.0, 1.0), confidence)
    return IntervalEnds(value, low, high), spread.clusters


def _averages(
    cells: Arrays, rate: np.ndarray, square: _Square, confidence: float
) -> tuple[IntervalEnds, np.ndarray, np.ndarray]:
    """The mean win rate of each system over its opponents with its interval; the numbers of opponents and of examples.

    A cell is an example of a pair. It deviates from the win rate of its pair, so that strong and weak opponents do not
    widen the interval. With few examples the deviation is too small, as the win rate was fitted to it, and is enlarged
    by its leverage (J. MacKinnon & H. White, Journal of Econometrics 29, 1985: HC2); the only example of a pair
    deviates from the average.
    """
    pair, weight = cells["cluster_group"], cells["cluster_weight"]
    share = cells["cluster_sum"] / weight
    leverage = weight / np.bincount(pair, weight, len(rate))[pair]
    opponents = np.bincount(np.concatenate([square.a, square.b]), minlength=square.systems)
    system = np.concatenate([square.a[pair], square.b[pair]])
    example = np.tile(cells["cluster_key"], 2)
    totals = np.bincount(square.a, rate, square.systems) + np.bincount(square.b, 1 - rate, square.systems)
    value = np.divide(totals, opponents, out=np.full(square.systems, np.nan), where=opponents > 0)
    own = np.concatenate([share, 1 - share])
    deviation = np.concatenate([share - rate[pair], rate[pair] - share])
    leverage = np.tile(leverage, 2)
    several = leverage < 1
    deviation[several] /= np.sqrt(1 - leverage[several])
    deviation[~several] = (own - value[system])[~several]
    state = cluster_sums(value[system] + deviation, leverage / opponents[system], example, system)
    spread = cluster_variance(state, value)
    enlarged_twice = 1 - 1 / np.maximum(spread.clusters, 1)
    spread = spread._replace(variance=spread.variance * enlarged_twice)
    low, high = interval_within(value, spread, (0.0, 1.0), confidence)
    return IntervalEnds(value, low, high), opponents, spread.clusters
