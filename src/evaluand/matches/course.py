"""Which rows each pair of systems plays within a budget, and in which order.

Each pair goes through the rows to which both systems have a response, in an order that depends on the seed, the
examples and the labels of the pair alone. So no pair meets twice on a row, a longer course begins like a shorter one,
and different pairs begin with different examples. The first replication of every example comes before the second.

Equal responses are a tie that costs no judgement, so they are played where the course passes them, and never sought:
the share of ties of a pair is that of its course.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from evaluand.core.row_numbers import count_earlier
from evaluand.matches.schedule import Field, Pairs, Played
from evaluand.metrics.stats.intervals import random_bits


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
        order: np.ndarray = self._order_rows(pair)
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
        columns = [np.ascontiguousarray(responses[:, system]) for system in range(responses.shape[1])]
        has_one = [column != 0 for column in columns]
        each = zip(self.a.tolist(), self.b.tolist(), strict=True)
        counts = [int((has_one[a] & has_one[b] & (columns[a] != columns[b])).sum()) for a, b in each]
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

    def _order_rows(self, pair: int) -> np.ndarray:
        """All rows in the order of a pair: each block from a random place on."""
        share = float(random_bits(self._seeds[pair : pair + 1], self._field.seed)[0] >> np.uint64(11)) / 2**53
        return np.concatenate([np.roll(block, -int(share * len(block))) for block in self._blocks])
