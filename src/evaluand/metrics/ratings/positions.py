"""What the order of presentation does to the outcomes of matches: position bias and inconsistency.

Of two responses a judge sees one first. How often the first one wins is the position bias. A pair that was judged in
both orders may get opposite winners.

All functions take arrays with an entry per match. `outcome` is the share of the win that system `a` gets, and `a_first`
says whether the judge saw the response of `a` first. Matches with the same number in `pair` compare the same two
responses, `a` being the same system in both; `pair_numbers` numbers them by what identifies a pair, such as example,
replication, systems and judge.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.ratings.counts import refuse_outcomes
from evaluand.metrics.stats.intervals import cautious_spread, cluster_sums, cluster_variance, clustered_wilson, runs


class PositionBias(NamedTuple):
    """How often the response that was shown first wins.

    Attributes:
        share: of wins of the first, a tie as a half; ½ means no bias, NaN that no order can be compared. Of each pair
            of systems both orders count equally, so that a system shown first more often does not shift it.
        low: the lower end of its interval by example, NaN below two examples; `high` the upper end.
        first: how many matches the first won.
        ties: how many ended in a tie.
        second: how many the second won.
        examples: how many examples these matches are on.
        one_order: how many matches of other pairs of systems were left out, because all of them had the same order, so
            that a better system cannot be distinguished from a better position.
    """

    share: float
    low: float
    high: float
    first: int
    ties: int
    second: int
    examples: int
    one_order: int


class Inconsistency(NamedTuple):
    """How often the two orders of a pair contradict each other.

    Attributes:
        share: of contradictory pairs among those judged in both orders, NaN without such pairs.
        low: the lower end of its interval by example, NaN below two examples; `high` the upper end.
        pairs: how many pairs were judged in both orders.
        contradictory: those with opposite winners, in which one position won twice.
        first_twice: those of them in which the first one won twice; in the others the second one did.
        half: pairs with a tie in one order and a winner in the other, which do not count as contradictory.
        one_order: how many pairs were judged in one order only.
    """

    share: float
    low: float
    high: float
    pairs: int
    contradictory: int
    first_twice: int
    half: int
    one_order: int


def position_bias(
    a: np.ndarray,
    b: np.ndarray,
    outcome: np.ndarray,
    a_first: np.ndarray,
    cluster: np.ndarray,
    *,
    confidence: float = 0.95,
) -> PositionBias:
    """How often the response that was shown first wins, with an interval by example.

    Args:
        a: the number of a system; `b` that of its opponent.
        cluster: the number of the example; all matches on one example belong together.

    Example:
        >>> outcome, a_first = np.array([1.0, 0.0, 1.0, 1.0]), np.array([True, False, True, False])
        >>> bias = position_bias(np.zeros(4, int), np.ones(4, int), outcome, a_first, np.array([0, 0, 1, 1]))
        >>> bias.share, bias.first, bias.second
        (0.75, 3, 1)
    """
    outcome = _read_outcomes(outcome, a, b, a_first, cluster)
    swapped = a > b
    systems = pair_numbers(np.where(swapped, b, a), np.where(swapped, a, b))
    low_first = a_first != swapped
    n_pairs = int(systems.max()) + 1 if len(systems) else 0
    by_order = np.stack([np.bincount(systems, low_first == order, n_pairs) for order in (False, True)])
    comparable = np.all(by_order > 0, axis=0)[systems]
    systems, low_first = systems[comparable], low_first[comparable]
    shares = np.where(a_first, outcome, 1.0 - outcome)[comparable]
    balanced = by_order.sum(axis=0)[systems] / (2 * by_order[low_first.astype(np.intp), systems])
    return PositionBias(
        *_share_by_example(shares, balanced, cluster[comparable], len(np.unique(systems)), confidence),
        first=int(np.count_nonzero(shares > 0.5)),
        ties=int(np.count_nonzero(shares == 0.5)),
        second=int(np.count_nonzero(shares < 0.5)),
        examples=len(np.unique(cluster[comparable])),
        one_order=int(np.count_nonzero(~comparable)),
    )


def inconsistency(
    outcome: np.ndarray, a_first: np.ndarray, pair: np.ndarray, cluster: np.ndarray, *, confidence: float = 0.95
) -> Inconsistency:
    """How often the two orders of a pair have opposite winners, with an interval by example.

    Example:
        >>> outcome, a_first = np.array([1.0, 0.0, 1.0, 1.0]), np.array([True, False, True, False])
        >>> found = inconsistency(outcome, a_first, np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1]))
        >>> found.share, found.pairs, found.first_twice
        (0.5, 2, 1)
    """
    row, by_order = _outcomes_by_order(_read_outcomes(outcome, a_first, pair, cluster), a_first, pair)
    both = ~np.isnan(by_order).any(axis=0)
    winner = np.sign(by_order[:, both] - 0.5)
    contradictory = _contradicts(by_order[:, both])
    parts = max(len(contradictory) // max(len(np.unique(cluster[row[both]])), 1), 1)
    return Inconsistency(
        *_share_by_example(1.0 * contradictory, np.ones(len(contradictory)), cluster[row[both]], parts, confidence),
        pairs=int(np.count_nonzero(both)),
        contradictory=int(np.count_nonzero(contradictory)),
        first_twice=int(np.count_nonzero(contradictory & (winner[_A_FIRST] > 0))),
        half=int(np.count_nonzero((winner == 0).sum(axis=0) == 1)),
        one_order=int(np.count_nonzero(~both)),
    )


def contradictory_pairs(outcome: np.ndarray, a_first: np.ndarray, pair: np.ndarray) -> np.ndarray:
    """The numbers of the pairs with opposite winners in their two orders; several matches in an order are averaged.

    Example:
        >>> outcome, a_first = np.array([1.0, 0.0, 1.0, 0.5]), np.array([True, False, True, False])
        >>> contradictory_pairs(outcome, a_first, np.array([7, 7, 8, 8])).tolist()
        [7]
    """
    row, by_order = _outcomes_by_order(_read_outcomes(outcome, a_first, pair), a_first, pair)
    return np.asarray(pair[row[_contradicts(by_order)]])


def pair_numbers(*keys: np.ndarray) -> np.ndarray:
    """The same number for entries that agree in all keys, from 0 in the order of the keys.

    Example:
        >>> pair_numbers(np.array([4, 4, 2]), np.array([0, 0, 1])).tolist()
        [1, 1, 0]
    """
    order = np.lexsort(keys[::-1])
    starts = runs(*(key[order] for key in keys))
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(order)))
    return numbers


def _read_outcomes(outcome: np.ndarray, *columns: np.ndarray) -> np.ndarray:
    shares = np.asarray(outcome, np.float64)
    if any(len(column) != len(shares) for column in columns):
        raise SpecError("matches: all columns must have the same length")
    refuse_outcomes(shares)
    return shares


_A_FIRST: Final = 1
"""The place of the order in which `a` is first."""


def _outcomes_by_order(outcome: np.ndarray, a_first: np.ndarray, pair: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first match of each pair, and the mean outcome of each order: orders × pairs, NaN where there was none."""
    _, row, place = np.unique(pair, return_index=True, return_inverse=True)
    cell, cells = a_first * len(row) + place, 2 * len(row)
    n, total = np.bincount(cell, minlength=cells), np.bincount(cell, outcome, cells)
    return row, np.divide(total, n, out=np.full(cells, np.nan), where=n > 0).reshape(2, -1)


def _contradicts(by_order: np.ndarray) -> np.ndarray:
    """Whether both orders of each pair have opposite winners."""
    return np.asarray((by_order[0] - 0.5) * (by_order[1] - 0.5) < 0)


def _share_by_example(
    share: np.ndarray, weight: np.ndarray, cluster: np.ndarray, parts: int, confidence: float
) -> tuple[float, float, float]:
    """The weighted mean of shares with its interval, NaN without any.

    Args:
        parts: the number of independent shares of each example, such as pairs of systems.
    """
    if not len(share):
        return np.nan, np.nan, np.nan
    value = np.array([(share * weight).sum() / weight.sum()])
    state = cluster_sums(share, weight, cluster, np.zeros(len(share), np.int64))
    spread = cautious_spread(value, cluster_variance(state, value), confidence, parts)
    low, high = clustered_wilson(value, spread, confidence)
    return float(value[0]), float(low[0]), float(high[0])
