"""Which systems the matches relate: chains of wins, and the groups within which strengths have a finite estimate.

Strengths have a finite maximum of the likelihood where every system is linked to every other by a chain of systems,
each of which beat or tied the next. Between two groups that no chain links back, the estimated difference is infinite;
between two that no chain links at all, there is none.
Source: L. R. Ford, "Solution of a ranking problem from binary comparisons" (American Mathematical Monthly 64, 1957).
"""

from __future__ import annotations

import math
from typing import Final, Literal, NamedTuple

import numpy as np

from evaluand.metrics.ratings.counts import MatchCounts

Ties = Literal["half", "davidson", "rao_kupper"]
"""How ties enter the likelihood of strengths: as half a win for either side, or with a parameter."""

UNRATED: Final = -1


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
