"""Schedules within a budget of judgements, which choose the pairs of a round by the outcomes of the rounds before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.evaluation.scorer import described
from evaluand.matches.course import Course
from evaluand.matches.schedule import Field, Pairs, Played, Schedule
from evaluand.metrics.ratings.bradley_terry import fit_bradley_terry, logistic
from evaluand.metrics.ratings.counts import MatchRows, count_matches


@dataclass(frozen=True)
class Budgeted(Schedule):
    """Plays rounds until a budget is spent, or every pair has met on every row to which both have a response.

    Args:
        budget: the most judgements; a match judged in both orders costs two, one between equal responses none.
        rounds: in how many rounds the budget is spent. More rounds choose better, and are judged less at once.
    """

    budget: int
    rounds: int = 10

    def __post_init__(self) -> None:
        for name, what in (("budget", "judgements"), ("rounds", "rounds")):
            number = getattr(self, name)
            if not isinstance(number, int) or isinstance(number, bool) or number < 1:
                raise SpecError(f"{self.kind}: {name} is {described(number)}; give a number of {what} of at least 1")

    def check(self, systems: Sequence[str], orders: int) -> None:
        if self.budget < orders:
            raise SpecError(
                f"{self.kind}: a budget of {self.budget} judges no pair in both orders; give at least {orders}, or"
                " orders: random"
            )

    def next(self, field: Field, rounds: Sequence[Played]) -> Pairs | None:
        course = Course(field, rounds)
        left = min(self.budget // field.orders - int(course.judged.sum()), int(course.left.sum()))
        if left <= 0 and rounds:
            return None
        n = -(-left // max(1, self.rounds - len(rounds)))
        planned = self.plan(course, n, _strengths(len(field.systems), rounds), rounds)
        return course.take(planned)

    def plan(self, course: Course, n: int, strengths: np.ndarray, rounds: Sequence[Played]) -> np.ndarray:
        """How many matches of each pair are to be judged in the next round, at most n in all."""
        raise NotImplementedError


@dataclass(frozen=True)
class Swiss(Budgeted):
    """Systems of similar strength meet, those that have met in fewer rounds first, as in a Swiss tournament.

    In each round a system meets one other. From the strongest on, each is paired with the one for which the difference
    in rank plus the number of rounds in which both have met is lowest. Of an odd number of systems, one that has played
    in most rounds sits out.

    Example:
        >>> import numpy as np
        >>> answers = np.array([[1, 2, 3, 4]] * 8, np.uint64)
        >>> digests = np.arange(128, dtype=np.uint8).reshape(8, 16)
        >>> field = Field("abcd", answers > 0, answers, digests, 2, 0)
        >>> pairs = Swiss(budget=40, rounds=5).next(field, [])
        >>> len(pairs.row), len({*zip(pairs.a.tolist(), pairs.b.tolist())})
        (4, 2)
    """

    kind = "swiss"

    def plan(self, course: Course, n: int, strengths: np.ndarray, rounds: Sequence[Played]) -> np.ndarray:
        pairs = self._pair(course, strengths, len(rounds))
        planned = np.zeros(len(course.a), np.int64)
        while n > 0 and len(pairs := pairs[planned[pairs] < course.left[pairs]]):
            share = np.full(len(pairs), n // len(pairs))
            share[: n % len(pairs)] += 1
            share = np.minimum(share, course.left[pairs] - planned[pairs])
            planned[pairs] += share
            n -= int(share.sum())
        return planned

    def _pair(self, course: Course, strengths: np.ndarray, number: int) -> np.ndarray:
        """The pairs of a round, in random order."""
        systems, order = len(strengths), course.shuffle(number)
        turn = np.full(systems, len(order))
        np.minimum.at(turn, course.a[order], np.arange(len(order)))
        np.minimum.at(turn, course.b[order], np.arange(len(order)))
        ranked = np.lexsort((turn, -strengths))
        rank = np.empty(systems, np.int64)
        rank[ranked] = np.arange(systems)
        cost = np.full((systems, systems), _NEVER)
        price = np.abs(rank[course.a] - rank[course.b]) + course.met
        can_meet = course.left > 0
        a, b = course.a[can_meet], course.b[can_meet]
        cost[a, b] = cost[b, a] = price[can_meet]
        turns = ranked.tolist()
        if systems % 2:  # one is left over: it pairs only if another cannot
            times = np.bincount(course.a, course.met, systems) + np.bincount(course.b, course.met, systems)
            out = max(turns, key=lambda system: (times[system], rank[system]))
            turns = [*(system for system in turns if system != out), out]
            cost[out] = cost[:, out] = np.where(cost[out] < _NEVER, _LAST, _NEVER)
        chosen: list[tuple[int, int]] = []
        for one in turns:
            other = min(range(systems), key=lambda each: (cost[one, each], rank[each]))
            if cost[one, other] < _NEVER:
                chosen.append((min(one, other), max(one, other)))
                cost[[one, other]] = cost[:, [one, other]] = _NEVER
        pairs = {*chosen}
        return np.array([p for p in order.tolist() if (course.a[p], course.b[p]) in pairs], np.int64)


@dataclass(frozen=True)
class InformationGain(Budgeted):
    """The pairs whose outcomes would narrow the ratings most, where that decides the ranking.

    A match of two systems whose expected outcome is p adds the information p (1 − p) to the difference of their
    strengths. Pairs are chosen one after the other, each so that the expected loss of the ranking falls most: by how
    much strength pairs would be ranked in the wrong order, summed over all pairs. Its slope by the variance of a
    difference d is φ(d / s) / (2 s), where s is the standard deviation. A pair whose judgements often have no outcome
    counts less. Strengths are those of the model of Bradley and Terry with a normal prior of variance 1.
    Source: the expected loss is that of P. I. Frazier, W. B. Powell & S. Dayanik, "A knowledge-gradient policy for
    sequential information collection" (SIAM J. Control Optim. 47, 2008). W.-L. Chiang et al., "Chatbot Arena" (ICML
    2024), sample by the variance of each pair alone.

    Example:
        >>> import numpy as np
        >>> answers = np.array([[1, 2, 3]] * 8, np.uint64)
        >>> digests = np.arange(128, dtype=np.uint8).reshape(8, 16)
        >>> field = Field("abc", answers > 0, answers, digests, 2, 0)
        >>> pairs = InformationGain(budget=24, rounds=2).next(field, [])
        >>> sorted(zip(pairs.a.tolist(), pairs.b.tolist()))
        [(0, 1), (0, 1), (0, 2), (0, 2), (1, 2), (1, 2)]
    """

    kind = "information_gain"

    def plan(self, course: Course, n: int, strengths: np.ndarray, rounds: Sequence[Played]) -> np.ndarray:
        order = course.shuffle(len(rounds))
        a, b, left = course.a[order], course.b[order], course.left[order]
        p = logistic(strengths[a] - strengths[b])
        information, answered = p * (1 - p), course.answered[order]
        covariance = _covariance(len(strengths), a, b, information * (course.judged[order] * answered))
        slopes = _loss_slopes(strengths, covariance)
        planned, size = np.zeros(len(order), np.int64), -(-n // _STEPS)
        while n > 0 and (can_meet := planned < left).any():
            pull = covariance[:, a] - covariance[:, b]
            spread = (pull * (slopes @ pull)).sum(axis=0)
            variance = pull[a, np.arange(len(a))] - pull[b, np.arange(len(a))]
            added = information * answered * size
            gain = np.where(can_meet, added * spread / (1 + added * variance), -1.0)
            if (largest := gain.max()) > 0:
                gain = np.round(gain / largest, 9)  # so that rounding errors decide nothing
            best = int(np.argmax(gain))
            taken = min(size, n, int(left[best] - planned[best]))
            planned[best] += taken
            n -= taken
            weight = information[best] * answered[best] * taken
            covariance -= np.outer(pull[:, best], pull[:, best]) * (weight / (1 + weight * variance[best]))
        of_pairs = np.zeros_like(planned)
        of_pairs[order] = planned
        return of_pairs


_NEVER: Final = 1 << 40
_LAST: Final = 1 << 30
_STEPS: Final = 200
_PENALTY: Final = 1.0
_TINY: Final = 1e-12


def _strengths(systems: int, rounds: Sequence[Played]) -> np.ndarray:
    """The strength of each system by the outcomes so far, with a normal prior of variance 1."""
    if all(np.isnan(played.outcome).all() for played in rounds):
        return np.zeros(systems)
    columns = zip(*((*played.pairs, played.outcome) for played in rounds), strict=True)
    row, a, b, outcome = (np.concatenate(column) for column in columns)
    known = ~np.isnan(outcome)
    rows = MatchRows.read(a[known], b[known], outcome[known], row[known], systems=systems)
    fit = fit_bradley_terry(count_matches(rows), penalty=_PENALTY)
    return np.asarray(np.round(np.nan_to_num(fit.strength), 6))


def _loss_slopes(strengths: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """The slopes of the expected loss by the variance of each difference, as the matrix of a quadratic form.

    Its value for a vector of changes is the sum over all pairs of slope × (difference of the changes)². Only ratios of
    slopes matter, so they are scaled: where every order is certain, all of them would be zero in floating point.
    """
    variance = np.diagonal(covariance)
    spread = np.sqrt(np.maximum(variance[:, None] + variance - 2 * covariance, _TINY))
    d = (strengths[:, None] - strengths) / spread
    exponents = -d * d / 2
    np.fill_diagonal(exponents, -np.inf)
    weights = np.exp(exponents - exponents.max(initial=-1e300)) / spread
    return np.asarray(np.diag(weights.sum(axis=1)) - weights)


def _covariance(systems: int, a: np.ndarray, b: np.ndarray, information: np.ndarray) -> np.ndarray:
    """The covariance of the strengths after matches with this information by pair."""
    precision = np.zeros((systems, systems))
    precision[a, b] = precision[b, a] = -information
    np.fill_diagonal(precision, _PENALTY - precision.sum(axis=1))
    return np.asarray(np.linalg.inv(precision))
