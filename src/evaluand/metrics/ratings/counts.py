"""Matches counted by pair of systems, of all examples and of bootstrap replicates.

A rating depends on its matches only through how often each system beat and tied each other one. So a replicate is a
table of counts, and a thousand replicates are one more axis of the same arrays.

    rows of matches ── count_matches ──▶ counts of pairs ──▶ win rates, strengths
                    ╰─ resample_counts ▶ replicates × pairs ──▶ their intervals

Counts also tell which systems the matches relate, by chains of wins, and the groups within which strengths have a
finite estimate: where every system is linked to every other by a chain of systems, each of which beat or tied the next.
Between two groups that no chain links back, the estimated difference is infinite; between two that no chain links at
all, there is none.
Source: L. R. Ford, "Solution of a ranking problem from binary comparisons" (American Mathematical Monthly 64, 1957).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal, NamedTuple

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.stats.resampling import resample_sums, resampling_units

Side = Literal["wins", "ties", "losses", "score", "n"]


@dataclass(frozen=True)
class MatchRows:
    """Matches as columns: who played, how it ended, and on which example.

    Attributes:
        a: the number of a system, 0 to `systems` − 1; `b` that of its opponent. The order is free.
        outcome: the share of the win that `a` gets: 1, ½ for a tie, 0, or a probability in between.
        cluster: the number of the example. Matches on one example belong together.
        systems: how many systems there are.
        weight: of each match, above 0; 1 for all by default.
        covariates: matches × covariates: how much more of something `a` has than `b`.

    Example:
        >>> rows = MatchRows.read(a=[0, 1], b=[1, 2], outcome=[1.0, 0.5], cluster=[0, 0])
        >>> rows.systems, rows.weight.tolist()
        (3, [1.0, 1.0])
    """

    a: np.ndarray
    b: np.ndarray
    outcome: np.ndarray
    cluster: np.ndarray
    systems: int
    weight: np.ndarray
    covariates: np.ndarray

    @classmethod
    def read(
        cls,
        a: Sequence[int] | np.ndarray,
        b: Sequence[int] | np.ndarray,
        outcome: Sequence[float] | np.ndarray,
        cluster: Sequence[int] | np.ndarray,
        *,
        systems: int | None = None,
        weight: Sequence[float] | np.ndarray | None = None,
        covariates: Sequence[float] | np.ndarray | None = None,
    ) -> MatchRows:
        """The rows of these columns, after validation; rows with the weight 0 are left out.

        Raises:
            SpecError: Columns differ in length, or a value is out of range.
        """
        first, second, keys = (_integers(name, each) for name, each in (("a", a), ("b", b), ("cluster", cluster)))
        shares = np.asarray(outcome, np.float64)
        weights = np.ones(len(first)) if weight is None else np.asarray(weight, np.float64)
        more = np.zeros((len(first), 0)) if covariates is None else np.asarray(covariates, np.float64)
        more = more[:, None] if more.ndim == 1 else more
        if not len(first) == len(second) == len(shares) == len(keys) == len(weights) == len(more):
            raise SpecError("matches: all columns must have the same length")
        largest = int(max(first.max(), second.max())) + 1 if len(first) else 0
        n = largest if systems is None else systems
        outside = (np.minimum(first, second) < 0) | (np.maximum(first, second) >= n)
        _refuse(f"a and b must be numbers from 0 to {n - 1}", outside)
        _refuse("a and b must be two different systems", first == second)
        refuse_outcomes(shares)
        usable = (weights >= _LEAST_WEIGHT) & (weights <= 1 / _LEAST_WEIGHT)
        _refuse("the weight must be 0, or a number from 1e-50 to 1e50", ~(usable | (weights == 0)))
        _refuse("covariates must be finite numbers", np.asarray(~np.isfinite(more).all(axis=-1)))
        return cls(first, second, shares, keys, n, weights, more).select(weights > 0)

    def __len__(self) -> int:
        return len(self.a)

    def select(self, known: np.ndarray) -> MatchRows:
        """The matches of a mask, with the same numbers of systems."""
        if known.all():
            return self
        names = ("a", "b", "outcome", "cluster", "weight", "covariates")
        return replace(self, **{name: getattr(self, name)[known] for name in names})

    @cached_property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """The pairs that played, as ascending codes `a` × systems + `b`, and the place of each match's pair."""
        low, high = np.minimum(self.a, self.b), np.maximum(self.a, self.b)
        codes, place = np.unique(low * self.systems + high, return_inverse=True)
        return codes, place


_LEAST_WEIGHT: Final = 1e-50
"""Squares of weights must not vanish."""


@dataclass(frozen=True)
class MatchCounts:
    """How often one system of each pair beat the other, with any leading axes, such as replicates.

    Attributes:
        systems: how many systems there are.
        a: the first system of each pair that played, below `b`, the second; sorted.
        wins: … × pairs, the weight of the matches that `a` won: whose outcome is above ½.
        ties: of those with the outcome ½.
        losses: of those that `b` won.
        score: the sum of the outcomes of `a`. Without probabilities it is wins + ties / 2.

    Example:
        >>> rows = MatchRows.read(a=[0, 1, 0], b=[1, 0, 2], outcome=[1.0, 0.5, 0.2], cluster=[0, 0, 1])
        >>> counts = count_matches(rows)
        >>> counts.wins.tolist(), counts.ties.tolist(), counts.losses.tolist(), counts.score.tolist()
        ([1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.5, 0.2])
    """

    systems: int
    a: np.ndarray
    b: np.ndarray
    wins: np.ndarray
    ties: np.ndarray
    losses: np.ndarray
    score: np.ndarray

    @property
    def n(self) -> np.ndarray:
        """The weight of the matches of each pair."""
        return np.asarray(self.wins + self.ties + self.losses)

    @property
    def played(self) -> np.ndarray:
        """… × systems: the systems that have matches."""
        return np.asarray(self.square("n").any(axis=-1))

    def square(self, side: Side = "wins") -> np.ndarray:
        """The counts as … × systems × systems, in which each row is one system's view of its opponents.

        Example:
            >>> rows = MatchRows.read(a=[0, 0], b=[1, 1], outcome=[1.0, 0.5], cluster=[0, 1])
            >>> count_matches(rows).square("score").tolist()
            [[0.0, 1.5], [0.5, 0.0]]
        """
        ours: np.ndarray = getattr(self, side)
        n = self.n
        others = {"wins": self.losses, "losses": self.wins, "ties": self.ties, "score": n - self.score, "n": n}[side]
        return self.fill(ours.astype(np.float64), others)

    def fill(self, ours: np.ndarray, others: np.ndarray, otherwise: float = 0.0) -> np.ndarray:
        """… × systems × systems, from numbers of the first and of the second system of each pair."""
        square = np.full((*ours.shape[:-1], self.systems, self.systems), otherwise, ours.dtype)
        square[..., self.a, self.b], square[..., self.b, self.a] = ours, others
        return square

    def select(self, replicates: slice | np.ndarray | int) -> MatchCounts:
        """The counts of some replicates: of these places on the first axis."""
        return replace(self, **{name: getattr(self, name)[replicates] for name in _SIDES})

    def reshape(self, *axes: int) -> MatchCounts:
        """The counts with other leading axes."""
        return replace(self, **{name: getattr(self, name).reshape(*axes, len(self.a)) for name in _SIDES})

    def scale(self, factor: np.ndarray) -> MatchCounts:
        """The counts times a factor, … × pairs."""
        return replace(self, **{name: getattr(self, name) * factor for name in _SIDES})


_SIDES = ("wins", "ties", "losses", "score")


def count_matches(rows: MatchRows) -> MatchCounts:
    """The counts of all matches, without leading axes."""
    codes, place = rows.pairs
    return _counts(rows.systems, codes, [np.bincount(place, each, minlength=len(codes)) for each in _columns(rows)])


def resample_counts(rows: MatchRows, replicates: int, seed: int = 0, first: int = 0) -> MatchCounts:
    """The counts in each replicate of a bootstrap that draws examples: replicates × pairs.

    All matches on an example, of all pairs and in both orders, are drawn together. A replicate is a pure function of
    the seed, its number, and the set of examples.

    Args:
        replicates: the number of replicates.
        first: the number of the first one, to continue earlier ones.

    Example:
        >>> rows = MatchRows.read(a=[0, 0, 0], b=[1, 1, 1], outcome=[1.0, 0.5, 0.0], cluster=[0, 1, 2])
        >>> resample_counts(rows, replicates=3, seed=0).n.tolist()
        [[3.0], [3.0], [3.0]]
    """
    codes, place = rows.pairs
    sums = resample_sums(resampling_units(rows.cluster), place, len(codes), _columns(rows), replicates, seed, first)
    return _counts(rows.systems, codes, sums)


def _columns(rows: MatchRows) -> list[np.ndarray]:
    """What each match adds to the counts of its pair, seen from the system with the lower number."""
    return weigh_outcomes(rows.weight, np.where(rows.a < rows.b, rows.outcome, 1 - rows.outcome))


def weigh_outcomes(weight: np.ndarray, share: np.ndarray) -> list[np.ndarray]:
    """The weights of wins, ties and losses, and the weighted shares."""
    return [weight * each for each in (share > 0.5, share == 0.5, share < 0.5, share)]


def _counts(systems: int, codes: np.ndarray, sums: Sequence[np.ndarray]) -> MatchCounts:
    return MatchCounts(systems, codes // max(systems, 1), codes % max(systems, 1), *sums)


def _integers(name: str, values: Sequence[int] | np.ndarray) -> np.ndarray:
    found = np.asarray(values)
    if found.ndim != 1 or (len(found) and found.dtype.kind not in "iu"):
        raise SpecError(f"matches: the column {name} must be integers, one for each match")
    return found.astype(np.int64)


def refuse_outcomes(shares: np.ndarray) -> None:
    """Raise a SpecError that names the first outcome of a match that is no share of a win."""
    _refuse("the outcome must be a number from 0 to 1", ~((shares >= 0) & (shares <= 1)))


def _refuse(rule: str, wrong: np.ndarray) -> None:
    if wrong.any():
        raise SpecError(f"matches: row {int(np.argmax(wrong))}: {rule}")


Ties = Literal["half", "davidson", "rao_kupper"]
"""How ties enter the likelihood of strengths: as half a win for either side, or with a parameter."""


class Connections(NamedTuple):
    """What the matches say about the order of systems, with the leading axes of the counts.

    Attributes:
        above: … × systems × systems, whether a chain of wins or ties leads from the first system to the second.
        component: … × systems, the lowest number of a system that is linked both to and from this one.
    """

    above: np.ndarray
    component: np.ndarray

    @property
    def together(self) -> np.ndarray:
        """… × systems × systems: whether two systems are in one component."""
        return np.asarray(self.component[..., :, None] == self.component[..., None, :])


def connect(counts: MatchCounts, ties: Ties = "half") -> Connections:
    """The chains of wins and ties.

    Example:
        >>> from evaluand.metrics.ratings.counts import MatchRows, count_matches
        >>> rows = MatchRows.read(a=[0, 1, 2], b=[1, 2, 1], outcome=[1.0, 1.0, 1.0], cluster=[0, 1, 2])
        >>> connect(count_matches(rows)).component.tolist()
        [0, 1, 1]
    """
    if ties == "half":
        rounding = _ROUNDING * counts.n
        above = counts.fill(counts.score > rounding, counts.n - counts.score > rounding)
    else:
        above = counts.fill(counts.wins + counts.ties > 0, counts.losses + counts.ties > 0)
    shape = above.shape
    above[..., np.arange(counts.systems), np.arange(counts.systems)] = True
    above = _close(above.reshape(math.prod(shape[:-2]), counts.systems, counts.systems)).reshape(shape)
    component = (above & np.swapaxes(above, -1, -2)).argmax(axis=-1) if counts.systems else np.zeros(shape[:-1], int)
    return Connections(above, component)


def largest_component(counts: MatchCounts, connections: Connections) -> np.ndarray:
    """The systems that can be rated together: … × systems, true in the largest component.

    Of components of equal size it is the one with more matches. If these are equal too, or no component has two
    systems, no system is rated.
    """
    together = connections.together
    size = together.sum(axis=-1)
    inside = counts.scale(together[..., counts.a, counts.b]).square("n").sum(axis=-1)
    matches = np.einsum("...ij,...j->...i", together, inside)
    best = size == size.max(axis=-1, keepdims=True, initial=2)
    most = np.where(best, matches, -1.0)
    best &= most == most.max(axis=-1, keepdims=True, initial=0.0)
    return np.asarray(best & (best.sum(axis=-1, keepdims=True) == size))


_ROUNDING: Final = 1e-12


def _close(linked: np.ndarray) -> np.ndarray:
    """The transitive closure of relations (many × systems × systems), by Warshall's algorithm on packed bits."""
    many, systems = linked.shape[0], linked.shape[-1]
    words = -(-systems // 64)
    padded = np.zeros((many, systems, 64 * words), np.bool_)
    padded[..., :systems] = linked
    bits = np.packbits(padded, axis=-1, bitorder="little").view("<u8")
    one = np.uint64(1)
    for pivot in range(systems):
        reaches = (bits[:, :, pivot // 64] >> np.uint64(pivot % 64)) & one
        bits |= bits[:, pivot, None, :] * reaches[:, :, None]
    return np.unpackbits(bits.view(np.uint8), axis=-1, bitorder="little", count=systems).astype(np.bool_)
