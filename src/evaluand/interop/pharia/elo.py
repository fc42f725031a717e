"""Statistics of matches: ELO ratings and win rates of runs, with the native arithmetic of `metrics/ratings`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel

from evaluand.interop.pharia.domain import Refused, with_examples
from evaluand.interop.pharia.incremental import ComparisonEvaluation, Matches
from evaluand.interop.pharia.logic import AggregationLogic
from evaluand.metrics.ratings.elo import INITIAL, EloState, KFactor, Record, count_results, mean_elo, play_matches


class UnknownPlayer(Refused, KeyError):
    """A match has a player that was not named; a KeyError, as users of the SDKs expect."""

    __str__ = Exception.__str__


class PlayerScore(BaseModel):
    """The rating of one player.

    Attributes:
        elo: the mean ELO rating over 100 random orders of the matches.
        elo_standard_error: what the rating would vary by with other examples, by a bootstrap over the examples; NaN if
            they do not show it, because it does equally well on all of them.
        win_rate: the share of matches won, draws as halves.
        num_matches: how many matches were played.
        elo_order_error: what the random orders add to the standard error; None if unknown. The SDKs report this number
            as `elo_standard_error`.
    """

    elo: float
    elo_standard_error: float
    win_rate: float
    num_matches: int
    elo_order_error: float | None = None


class AggregatedComparison(BaseModel):
    """The rating of each player, by its name: the id of a run."""

    scores: Mapping[str, PlayerScore]


class EloCalculator:
    """Sequential ELO ratings, which depend on the order of the matches.

    Args:
        players: their names.
        k_start: how far the first match can move a rating.
        k_floor: how far a match can move it after very many.
        decay_factor: how fast this falls, for each match of the player.

    Attributes:
        ratings: the rating of each player, 1500 at first.

    Example:
        >>> from evaluand.interop.pharia import ComparisonEvaluation, MatchOutcome
        >>> elo = EloCalculator(["A", "B"])
        >>> won = ComparisonEvaluation(first_player="A", second_player="B", outcome=MatchOutcome.A_WINS)
        >>> elo.calculate([won])
        >>> elo.ratings
        {'A': 1510.0, 'B': 1490.0}
    """

    def __init__(
        self, players: Iterable[str], k_start: float = 20.0, k_floor: float = 10.0, decay_factor: float = 0.0005
    ) -> None:
        self.ratings = dict.fromkeys(players, INITIAL)
        self._played = np.zeros(len(self.ratings), np.int64)
        self._k = KFactor(k_start, k_floor, decay_factor)

    def calculate(self, matches: Sequence[ComparisonEvaluation]) -> None:
        """Update the ratings by some matches, one after the other; may be called again with further ones.

        Raises:
            UnknownPlayer: a match has an unknown player; a KeyError.
            Refused: a player meets itself.
        """
        columns = _Columns.read(matches, self.ratings)
        state = EloState(np.array([*self.ratings.values()], np.float64), self._played)
        final = play_matches(state, *columns, self._k)
        self.ratings = dict(zip(self.ratings, final.ratings.tolist(), strict=True))
        self._played = final.played


class WinRateCalculator:
    """Win rates, draws as halves.

    Args:
        players: their names.

    Attributes:
        match_count: the matches that each player has played.
        win_count: those that it has won, draws as halves.
    """

    def __init__(self, players: Iterable[str]) -> None:
        self.match_count = dict.fromkeys(players, 0)
        self.win_count = dict.fromkeys(self.match_count, 0.0)

    def calculate(self, matches: Sequence[ComparisonEvaluation]) -> Mapping[str, float]:
        """The win rate of each player over these matches and all of earlier calls; NaN for one without a match.

        Raises:
            UnknownPlayer: a match has an unknown player; a KeyError.
            Refused: a player meets itself.
        """
        columns = _Columns.read(matches, self.match_count)
        before = Record(np.array([*self.win_count.values()]), np.array([*self.match_count.values()], np.int64))
        record = count_results(before, *columns)
        self.win_count = dict(zip(self.win_count, record.wins.tolist(), strict=True))
        self.match_count = dict(zip(self.match_count, record.played.tolist(), strict=True))
        return dict(zip(self.match_count, record.share.tolist(), strict=True))


class EloAggregationAdapter:
    """Computes statistics of matches."""

    @staticmethod
    def aggregate(evaluations: Iterable[ComparisonEvaluation]) -> AggregatedComparison:
        """Ratings of the players; each match counts as one example."""
        matches = list(evaluations)
        return _rate(matches, range(len(matches)))


class ComparisonEvaluationAggregationLogic(AggregationLogic[ComparisonEvaluation, AggregatedComparison]):
    """Ratings of the players from results of one match each.

    Matches on one example are drawn together for the standard errors if an `Aggregator` passes the results.
    """

    def aggregate(self, evaluations: Iterable[ComparisonEvaluation]) -> AggregatedComparison:
        return _rate(*with_examples(evaluations))


class MatchesAggregationLogic(AggregationLogic[Matches, AggregatedComparison]):
    """Ratings of the players from results of several matches each.

    Matches on one example are drawn together for the standard errors, also those of several evaluations if an
    `Aggregator` passes the results.
    """

    def aggregate(self, evaluations: Iterable[Matches]) -> AggregatedComparison:
        results, examples = with_examples(evaluations)
        sizes = [len(each.comparison_evaluations) for each in results]
        matches = [match for each in results for match in each.comparison_evaluations]
        return _rate(matches, np.repeat(examples, sizes))


def _rate(matches: Sequence[ComparisonEvaluation], examples: Sequence[int] | np.ndarray) -> AggregatedComparison:
    """The ratings of all players of some matches, with the number of each match's example."""
    players = dict.fromkeys(name for each in matches for name in (each.first_player, each.second_player))
    if not players:
        return AggregatedComparison(scores={})
    columns = _Columns.read(matches, players)
    record = count_results(Record.begin(len(players)), *columns)
    elo = mean_elo(*columns, np.asarray(examples, np.int64), len(players))
    numbers = zip(*(array.tolist() for array in (*elo, record.share, record.played)), strict=True)
    scores = {
        name: PlayerScore(
            elo=rating,
            elo_standard_error=standard_error,
            elo_order_error=order_error,
            win_rate=share,
            num_matches=played,
        )
        for name, (rating, standard_error, order_error, share, played) in zip(players, numbers, strict=True)
    }
    return AggregatedComparison(scores=scores)


class _Columns(NamedTuple):
    """Matches as columns: the numbers of both players, and the share of the win that the first gets."""

    first: np.ndarray
    second: np.ndarray
    outcome: np.ndarray

    @classmethod
    def read(cls, matches: Sequence[ComparisonEvaluation], players: Iterable[str]) -> "_Columns":
        numbers = {name: number for number, name in enumerate(players)}
        for each in matches:
            for name in (each.first_player, each.second_player):
                if name not in numbers:
                    raise UnknownPlayer(f"a match has the unknown player {name!r}; name all players")
            if each.first_player == each.second_player:
                raise Refused(f"player {each.first_player!r} meets itself in a match")
        return cls(
            np.array([numbers[each.first_player] for each in matches], np.int64),
            np.array([numbers[each.second_player] for each in matches], np.int64),
            np.array([each.outcome.payoff[0] for each in matches], np.float64),
        )
