"""What a schedule is: which pairs of systems a judge compares, on which rows of their runs, round by round.

A schedule that knows everything in advance has one round. One that chooses by the outcomes so far has several: each
depends only on the complete rounds before it, so that a match table does not depend on who judged when.

Schedules within a budget choose the pairs of a round by the outcomes of the rounds before. Each pair goes through the
rows to which both systems have a response, in an order that depends on the seed, the examples and the labels of the
pair alone. So no pair meets twice on a row, a longer course begins like a shorter one, and different pairs begin with
different examples. The first replication of every example comes before the second. Equal responses are a tie that
costs no judgement, so they are played where the course passes them, and never sought: the share of ties of a pair is
that of its course.
"""

from __future__ import annotations

import hashlib
import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from evaluand.core.errors import SpecError, described, nearest
from evaluand.core.registry import make_default
from evaluand.core.row_numbers import count_earlier
from evaluand.metrics.ratings.bradley_terry import fit_bradley_terry, logistic
from evaluand.metrics.ratings.counts import MatchRows, count_matches
from evaluand.metrics.stats.intervals import random_bits


class Pairs(NamedTuple):
    """Pairs of systems to be compared, each on one row; arrays of equal length.

    Attributes:
        row: positions of rows of the runs, from 0.
        a, b: numbers of systems, a < b.
    """

    row: np.ndarray
    a: np.ndarray
    b: np.ndarray


class Played(NamedTuple):
    """The matches of the rounds so far, an entry for each pair and row; both orders are one entry.

    Attributes:
        pairs: who met on which row.
        outcome: a's share of the win, the mean of both orders; NaN where there is none.
    """

    pairs: Pairs
    outcome: np.ndarray


class Field(NamedTuple):
    """What can be played.

    Attributes:
        systems: the labels of the systems.
        answered: rows × systems: whether the system has a row there, be it a failed one.
        responses: rows × systems: 64 bits of the digest of the response, as a number: equal for equal responses. 0
            where there is no response to compare.
        digests: of the example of each row, 16 bytes: what random choices depend on.
        orders: in how many orders each pair is judged: 1 or 2.
        seed: of random choices.
    """

    systems: Sequence[str]
    answered: np.ndarray
    responses: np.ndarray
    digests: np.ndarray
    orders: int
    seed: int


class Schedule(ABC):
    """Chooses the pairs. Subclasses are frozen dataclasses whose fields are their parameters.

    Attributes:
        kind: the registered name.
        version: raised whenever the same parameters would choose otherwise.
    """

    kind: ClassVar[str]
    version: ClassVar[int] = 1

    @property
    def spec(self) -> dict[str, Any]:
        """Its identity as JSON-like data."""
        parameters: Mapping[str, Any] = asdict(self)  # type: ignore[call-overload]
        return {"kind": self.kind, "version": self.version, "parameters": parameters}

    def check(self, systems: Sequence[str], orders: int) -> None:  # noqa: B027 - most accept all systems
        """Refuses systems that it cannot pair.

        Args:
            systems: their labels.
            orders: in how many orders each pair is judged: 1 or 2.

        Raises:
            SpecError: for example if there is no such baseline.
        """

    @abstractmethod
    def next(self, field: Field, rounds: Sequence[Played]) -> Pairs | None:
        """The pairs of the next round; None after the last."""


def on_every_row(field: Field, pairs: Iterable[tuple[int, int]]) -> Pairs:
    """These pairs on every row that both systems have, row by row."""
    chosen = np.array([*pairs], np.int32).reshape(-1, 2)
    has_both = field.answered[:, chosen[:, 0]] & field.answered[:, chosen[:, 1]]
    row, pair = np.nonzero(has_both)
    return Pairs(row, chosen[pair, 0], chosen[pair, 1])


def find_system(label: str, labels: Sequence[str]) -> int:
    """The number of the baseline.

    Raises:
        SpecError: no system is called so.
    """
    if label not in labels:
        close = nearest(str(label), labels)
        raise SpecError(f"baseline {label!r} is not one of the systems{close}: {', '.join(labels)}")
    return [*labels].index(label)


def as_schedule(schedule: Schedule | str | None) -> Schedule:
    """A schedule from an object or the name of a kind; None is all pairs.

    Raises:
        SpecError: it is neither.
    """
    if schedule is None:
        schedule = "all_pairs"
    if isinstance(schedule, str):
        made: Schedule = make_default("schedules", schedule)
        return made
    if not isinstance(schedule, Schedule):
        raise SpecError(f"schedule is {schedule!r}; give a Schedule, such as AgainstBaseline(…), or the name of a kind")
    return schedule


@dataclass(frozen=True)
class AllPairs(Schedule):
    """Every two systems on every row.

    Example:
        >>> import numpy as np
        >>> responses, digests = np.array([[1, 2, 3]], np.uint64), np.zeros((1, 16), np.uint8)
        >>> field = Field(["a", "b", "c"], responses > 0, responses, digests, 2, 0)
        >>> pairs = AllPairs().next(field, [])
        >>> list(zip(pairs.a.tolist(), pairs.b.tolist()))
        [(0, 1), (0, 2), (1, 2)]
    """

    kind = "all_pairs"

    def next(self, field: Field, rounds: Sequence[Played]) -> Pairs | None:
        return None if rounds else on_every_row(field, itertools.combinations(range(len(field.systems)), 2))


@dataclass(frozen=True)
class AgainstBaseline(Schedule):
    """Every system against one, on every row.

    Args:
        baseline: the label of that system.
    """

    baseline: str

    kind = "against_baseline"

    def check(self, systems: Sequence[str], orders: int) -> None:
        find_system(self.baseline, systems)

    def next(self, field: Field, rounds: Sequence[Played]) -> Pairs | None:
        base = find_system(self.baseline, field.systems)
        pairs = itertools.combinations(range(len(field.systems)), 2)
        return None if rounds else on_every_row(field, (pair for pair in pairs if base in pair))


class Course:
    """The rows of all pairs, and how far each pair has come.

    Args:
        field: what can be played.
        rounds: the matches so far, all of which must come from this course.

    Attributes:
        a, b: the systems of each pair, a < b.
        met: in how many rounds each pair has met.
        judged: how many matches of each pair were judged.
        answered: the share of these with an outcome, one match with an outcome added.
        left: how many matches of each pair could still be judged.
    """

    def __init__(self, field: Field, rounds: Sequence[Played]) -> None:
        self._field, n = field, len(field.systems)
        self.a, self.b = (each.astype(np.int32) for each in np.triu_indices(n, 1))
        number = np.zeros((n, n), np.int64)
        number[self.a, self.b] = np.arange(len(self.a))
        self._passed, self.met, self.judged = np.zeros((3, len(self.a)), np.int64)
        n_answered = np.ones(len(self.a))
        for played in rounds:
            row, a, b = played.pairs
            pair = number[a, b]
            differs = field.responses[row, a] != field.responses[row, b]
            passed = np.bincount(pair, minlength=len(self.a))
            self._passed += passed
            self.met += passed > 0
            self.judged += np.bincount(pair[differs], minlength=len(self.a))
            n_answered += np.bincount(pair[differs & ~np.isnan(played.outcome)], minlength=len(self.a))
        self.answered = n_answered / (self.judged + 1)
        self.left = self._n_to_judge - self.judged

    def rows(self, pair: int, n: int) -> np.ndarray:
        """The next rows of a pair: up to the n-th that must be judged, or all where no more must be."""
        first, second = (self._field.responses[:, each[pair]] for each in (self.a, self.b))
        share = float(random_bits(self._seeds[pair : pair + 1], self._field.seed)[0] >> np.uint64(11)) / 2**53
        # each block from a random place on
        order: np.ndarray = np.concatenate([np.roll(block, -int(share * len(block))) for block in self._blocks])
        order = order[(first[order] != 0) & (second[order] != 0)][self._passed[pair] :]
        if n >= self.left[pair]:
            return order
        n_judged = np.cumsum(first[order] != second[order])
        return order[: int(np.searchsorted(n_judged, n)) + 1] if n else order[:0]

    def take(self, planned: np.ndarray) -> Pairs:
        """The matches of the next round.

        Args:
            planned: how many matches of each pair are to be judged.
        """
        is_free = (self._n_to_judge == 0) & (self._passed == 0)  # nothing but equal responses
        chosen = np.flatnonzero((planned > 0) | is_free).tolist()
        rows = [self.rows(pair, int(planned[pair])) for pair in chosen]
        pair = np.repeat(np.array(chosen, np.int64), [len(each) for each in rows])
        return Pairs(np.concatenate([np.zeros(0, np.int64), *rows]), self.a[pair], self.b[pair])

    def shuffle(self, number: int) -> np.ndarray:
        """The pairs in a random order that does not depend on their numbers.

        Args:
            number: of the shuffle: another one gives another order.
        """
        keys = random_bits(self._seeds, self._field.seed + number + 1)
        return np.argsort(keys, kind="stable")

    @cached_property
    def _n_to_judge(self) -> np.ndarray:
        """On how many rows each pair has responses that differ."""
        responses = self._field.responses
        each = zip(self.a.tolist(), self.b.tolist(), strict=True)
        pairs = ((responses[:, a], responses[:, b]) for a, b in each)
        counts = [int(((one != 0) & (other != 0) & (one != other)).sum()) for one, other in pairs]
        return np.array(counts, np.int64)

    @cached_property
    def _seeds(self) -> np.ndarray:
        """A random number for each pair, from the labels."""
        labels, pairs = self._field.systems, zip(self.a.tolist(), self.b.tolist(), strict=True)
        texts = ("\0".join(sorted((labels[a], labels[b]))) for a, b in pairs)
        digests = b"".join(
            hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest() for text in texts
        )
        return np.frombuffer(digests, "<u8").astype(np.uint64)

    @cached_property
    def _blocks(self) -> list[np.ndarray]:
        """The rows in random order: those of the first replication of each example, of the second, and so on."""
        examples = np.ascontiguousarray(self._field.digests).view("<u8")[:, 0].astype(np.uint64)
        repeat = count_earlier(examples.view(np.int64)[:, None])
        order = np.lexsort((random_bits(examples, self._field.seed), repeat))
        return np.split(order, np.flatnonzero(np.diff(repeat[order])) + 1)


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

    @abstractmethod
    def plan(self, course: Course, n: int, strengths: np.ndarray, rounds: Sequence[Played]) -> np.ndarray:
        """How many matches of each pair are to be judged in the next round, at most n in all."""


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
