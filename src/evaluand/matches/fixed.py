"""Schedules that know all pairs in advance."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from evaluand.core.errors import SpecError, nearest
from evaluand.matches.schedule import Field, Pairs, Played, Schedule, on_every_row


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
        if self.baseline not in systems:
            raise SpecError(
                f"baseline {self.baseline!r} is not one of the systems{nearest(str(self.baseline), systems)}:"
                f" {', '.join(systems)}"
            )

    def next(self, field: Field, rounds: Sequence[Played]) -> Pairs | None:
        base = [*field.systems].index(self.baseline)
        pairs = itertools.combinations(range(len(field.systems)), 2)
        return None if rounds else on_every_row(field, (pair for pair in pairs if base in pair))
