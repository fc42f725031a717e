"""Sequential ELO ratings: each match moves the ratings of its two players, so the order of the matches matters.

A player gains K × (outcome − expected outcome). K falls with the number of matches that the player has played, so later
matches count less and nothing converges: play the same matches in another order, and the ratings differ. Their mean
over many random orders nearly does not. For ratings that depend on the matches alone, fit Bradley–Terry.

Source: A. Elo, The Rating of Chessplayers, Past and Present (1978).
"""

import math
import random
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.ratings.counts import MatchCounts, MatchRows, resample_counts

INITIAL: Final = 1500.0
SCALE: Final = 400.0
"""The difference of two ratings at which the odds are ten to one."""


@dataclass(frozen=True)
class KFactor:
    """How far one match can move a rating, by the number of matches that the player has played before.

    Example:
        >>> KFactor().after(np.array([0, 1000])).round(2).tolist()
        [20.0, 16.07]
    """

    start: float = 20.0
    floor: float = 10.0
    decay: float = 0.0005

    def after(self, played: np.ndarray) -> np.ndarray:
        """K after so many matches."""
        return np.asarray(self.floor + (self.start - self.floor) * np.exp(-self.decay * played))


class EloState(NamedTuple):
    """Ratings and numbers of matches played, … × players.

    Example:
        >>> EloState.begin(2).ratings.tolist()
        [1500.0, 1500.0]
    """

    ratings: np.ndarray
    played: np.ndarray

    @classmethod
    def begin(cls, players: int) -> "EloState":
        """The state before the first match."""
        return cls(np.full(players, INITIAL), np.zeros(players, np.int64))


def play_matches(
    state: EloState, a: np.ndarray, b: np.ndarray, outcome: np.ndarray, k: KFactor | None = None
) -> EloState:
    """The state after some matches, one after the other along the last axis.

    Args:
        state: the state before; played on from by each sequence.
        a: … × matches, the numbers of the players, from 0.
        b: those of their opponents.
        outcome: the share of the win that `a` gets: 1, ½ for a tie, 0.
        k: how far matches move ratings.

    Returns:
        The state of each sequence: … × players.

    Example:
        >>> play_matches(EloState.begin(2), np.array([0]), np.array([1]), np.array([1.0])).ratings.tolist()
        [1510.0, 1490.0]
    """
    players, leading = state.ratings.shape[-1], a.shape[:-1]
    n_sequences, n_matches = math.prod(leading), a.shape[-1]
    rating, count = (np.broadcast_to(each, (*leading, players)).flatten() for each in state)
    steps = (k or KFactor()).after(np.arange(count.max(initial=0) + n_matches))
    offset = np.arange(n_sequences) * players
    first, second = (each.reshape(n_sequences, n_matches).T + offset for each in (a, b))
    for ours, theirs, share in zip(first, second, outcome.reshape(n_sequences, n_matches).T, strict=True):
        higher, lower = rating[ours], rating[theirs]
        surplus = share - expected_share(higher, lower)
        rating[ours] = higher + steps[count[ours]] * surplus
        rating[theirs] = lower - steps[count[theirs]] * surplus
        count[ours] += 1
        count[theirs] += 1
    return EloState(rating.reshape(*leading, players), count.reshape(*leading, players))


def expected_share(rating: np.ndarray, opponent: np.ndarray) -> np.ndarray:
    """The share of wins, ties as halves, that a player is expected to get against an opponent.

    Example:
        >>> round(float(expected_share(np.float64(1900), np.float64(1500))), 4)
        0.9091
    """
    return np.asarray(1 / (1 + 10 ** ((opponent - rating) / SCALE)))


class EloMean(NamedTuple):
    """Ratings over random orders of the matches; an entry for each player.

    Attributes:
        rating: the mean over the orders.
        standard_error: what the rating would vary by if other examples had been drawn, and what its random orders add.
            NaN for a player that does equally well in all clusters, or has only one: they do not show it.
        order_error: what the random orders alone add: the standard error of a mean over that many orders. It says
            nothing about how many matches the rating is made from.
    """

    rating: np.ndarray
    standard_error: np.ndarray
    order_error: np.ndarray


def mean_elo(
    a: np.ndarray,
    b: np.ndarray,
    outcome: np.ndarray,
    cluster: np.ndarray,
    players: int,
    *,
    orders: int = 100,
    replicates: int = 400,
    seed: int = 0,
) -> EloMean:
    """The mean ELO ratings over random orders of the matches, with standard errors.

    The standard error adds the variance between samples of a bootstrap over clusters and that of the mean over the
    orders.

    Args:
        a: the numbers of the players, from 0.
        b: those of their opponents.
        outcome: the share of the win that `a` gets.
        cluster: the number of the example; the matches on one example are drawn together.
        players: how many there are.
        orders: how many random orders to play.
        replicates: how many samples to draw; 400 give the standard error to about 4 %. For more than 2,500
            pairs of players there are fewer, down to 50, which give it to 10 %.
        seed: of orders and samples; the result is a function of the seed and the matches in this order.

    Raises:
        SpecError: there are no matches, a player meets itself, a value is out of range, or there are fewer than two
            orders.

    Example:
        >>> a, b = np.array([0, 0, 1, 0]), np.array([1, 1, 0, 1])
        >>> found = mean_elo(a, b, np.array([1.0, 1.0, 1.0, 0.5]), np.arange(4), 2)
        >>> found.rating.round(1).tolist(), found.standard_error.round(0).tolist()
        ([1509.4, 1490.6], [16.0, 16.0])
    """
    if orders < 2:
        raise SpecError(f"orders must be at least 2, not {orders}; one order has no spread")
    if not len(a):
        raise SpecError("there are no matches; ELO ratings need at least one")
    rows = MatchRows.read(a, b, outcome, cluster, systems=players)
    shuffled = _draw_orders(len(a), orders, seed)
    ratings = play_matches(EloState.begin(players), a[shuffled], b[shuffled], outcome[shuffled]).ratings
    order_variance = ratings.var(axis=0)
    n_clusters = len(np.unique(cluster))
    sampled = _sampling_variance(rows, replicates, seed) * n_clusters / max(n_clusters - 1, 1)
    sampled[~_varies(a, b, outcome, cluster, players)] = np.nan
    return EloMean(ratings.mean(axis=0), np.sqrt(sampled + order_variance / orders), np.sqrt(order_variance / orders))


def _draw_orders(n: int, orders: int, seed: int) -> np.ndarray:
    """Random orders of n matches, each a shuffle of the one before."""
    generator, places = random.Random(seed), list(range(n))
    found = np.empty((orders, n), np.int64)
    for row in found:
        generator.shuffle(places)
        row[:] = places
    return found


def _varies(a: np.ndarray, b: np.ndarray, outcome: np.ndarray, cluster: np.ndarray, players: int) -> np.ndarray:
    """Which players do better in some clusters than in others."""
    keys, place = np.unique(cluster, return_inverse=True)
    cell = np.concatenate([a, b]) * len(keys) + np.concatenate([place, place])
    played = np.bincount(cell, minlength=players * len(keys)).reshape(players, -1)
    wins = np.bincount(cell, np.concatenate([outcome, 1 - outcome]), players * len(keys)).reshape(players, -1)
    share = np.divide(wins, played, where=played > 0, out=np.full(wins.shape, np.nan))
    least = np.min(share, axis=1, initial=2, where=played > 0)
    return np.asarray(least < np.max(share, axis=1, initial=-1, where=played > 0))


def _sampling_variance(rows: MatchRows, replicates: int, seed: int) -> np.ndarray:
    """The variance between replicates of the ratings that a typical order leads to."""
    n_pairs = len(rows.pairs[0])
    replicates = min(replicates, max(_LEAST_REPLICATES, _MOST_WORK // (n_pairs * _STEPS)))
    step = max(1, _AT_ONCE // n_pairs)
    ratings = [
        _expected_path(resample_counts(rows, min(step, replicates - first), seed, first))
        for first in range(0, replicates, step)
    ]
    return np.asarray(np.concatenate(ratings).var(axis=0, ddof=1))


_AT_ONCE: Final = 1 << 18
"""How many pairs of all replicates are held in memory."""

_MOST_WORK: Final = 100_000_000
_LEAST_REPLICATES: Final = 50

_STEPS: Final = 100
_STEEPEST: Final = math.log(10) / (4 * SCALE)
"""The largest change of an expected share with a rating."""


def _expected_path(counts: MatchCounts) -> np.ndarray:
    """The final ratings (… × systems) if every short part of the sequence had all matches in proportion.

    That is close to the mean over orders, without the chance of an order. Each step is shortened by the pull towards
    the ratings at which expected and actual shares agree, so that it does not go beyond them.
    """
    k, played = KFactor(), _sum_by_system(counts, counts.n, counts.n)
    rating = np.full(played.shape, INITIAL)
    for step in range(_STEPS):
        factor = k.after(played * ((step + 0.5) / _STEPS)) / _STEPS
        surplus = counts.score - counts.n * expected_share(rating[..., counts.a], rating[..., counts.b])
        pull = 1 + factor * _STEEPEST * played
        rating = rating + factor * _sum_by_system(counts, surplus, -surplus) / pull
    return rating


def _sum_by_system(counts: MatchCounts, of_a: np.ndarray, of_b: np.ndarray) -> np.ndarray:
    """The sums by system (… × systems) of numbers of the first and of the second system of each pair."""
    found = np.zeros((*of_a.shape[:-1], counts.systems))
    for systems, values in ((counts.a, of_a), (counts.b, of_b)):
        order = np.argsort(systems, kind="stable")
        present, starts = np.unique(systems[order], return_index=True)
        found[..., present] += np.add.reduceat(values[..., order], starts, axis=-1)
    return found


class Record(NamedTuple):
    """What players have won and played; an entry for each player.

    Attributes:
        wins: matches won, ties as halves.
        played: matches played.
    """

    wins: np.ndarray
    played: np.ndarray

    @classmethod
    def begin(cls, players: int) -> "Record":
        """The record before the first match."""
        return cls(np.zeros(players), np.zeros(players, np.int64))

    @property
    def share(self) -> np.ndarray:
        """The share of wins; NaN for a player without matches."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.wins / self.played)


def count_results(before: Record, a: np.ndarray, b: np.ndarray, outcome: np.ndarray) -> Record:
    """The record after some matches, whose order does not matter.

    Example:
        >>> count_results(Record.begin(2), np.array([0, 1]), np.array([1, 0]), np.array([1.0, 0.5])).share.tolist()
        [0.75, 0.25]
    """
    n = len(before.wins)
    wins = np.bincount(a, outcome, minlength=n) + np.bincount(b, 1 - outcome, minlength=n)
    played = np.bincount(a, minlength=n) + np.bincount(b, minlength=n)
    return Record(before.wins + wins, before.played + played)
