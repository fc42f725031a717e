"""What a schedule is: which pairs of systems a judge compares, on which rows of their runs, round by round.

A schedule that knows everything in advance has one round. One that chooses by the outcomes so far has several: each
depends only on the complete rounds before it, so that a match table does not depend on who judged when.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from evaluand.core.errors import SpecError, nearest
from evaluand.core.registry import make_default


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
