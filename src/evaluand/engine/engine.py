"""Engines carry calls: to threads and the event loop of this process, to other processes, to other machines.

Keyed work hands an engine its units and a recipe, and receives finished journal lines. An engine knows nothing about
tables or stores: whoever made the recipe alone reads datasets, holds leases and writes the journal.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from evaluand.core.fingerprint import Identity
from evaluand.engine.outcome import Outcome
from evaluand.engine.policy import Policy

U = TypeVar("U")

Line = Callable[[U, Outcome], tuple[bytes, int]]
"""A unit and its outcome → its journal lines, and how many of its slots failed."""


Made = tuple[U, bytes, int, int, str]
"""A finished unit, its journal lines, how many of its slots failed, the attempts that its call took, and the place of
the worker that made it, empty in this process."""

Keep = Callable[[Sequence[Made[U]]], None]
"""Receives units that were finished together; one write stores their lines."""


def nothing() -> None:
    """Does nothing; unlike a lambda, it can be sent by name."""


@dataclass(frozen=True)
class UnitCodec(Generic[U]):
    """How a unit is sent to another process.

    Args:
        pack: unit → the bytes that the other process needs.
        unpack: bytes → unit, in the other process.
        close: ends what the calls have started, in the other process.
    """

    pack: Callable[[U], bytes]
    unpack: Callable[[bytes], U]
    close: Callable[[], None] = nothing


class Ledger(Protocol):
    """Costs that calls report: a worker gathers them until they are taken, and who writes the journal notes them."""

    def take_costs(self) -> list[tuple[float, str]]:
        """The amounts and currencies gathered since the last time; for workers."""

    def note_cost(self, cost: float, currency: str) -> None:
        """Notes what a call has cost in a worker."""


@dataclass(frozen=True)
class Code:
    """The code behind a recipe, for workers that do not inherit it from this process.

    Args:
        name: what it is called in messages, such as `task 'shout'`.
        identify: its present identity; that of a worker must equal that of this process.
        prepare: loads what its calls need.
        ledger: of what its calls cost.
    """

    name: str
    identify: Callable[[], Identity]
    prepare: Callable[[], object] = nothing
    ledger: Ledger | None = None


@dataclass(frozen=True)
class Recipe(Generic[U]):
    """How units become journal lines.

    Args:
        call: performs a unit; may be a coroutine function.
        line: the lines of a unit and its outcome.
        wire: encodes units for other processes; without it they stay in this one.
        code: what other machines need to know of the code; without it units stay on this one.
    """

    call: Callable[[U], Any]
    line: Line[U]
    wire: UnitCodec[U] | None = None
    code: Code | None = None


class Engine(Protocol):
    """Maps a recipe over units."""

    def check(self, policy: Policy) -> None:
        """Raises a SpecError if this engine cannot make calls as the policy says."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """What provenance says about it; empty for calls in this process."""

    def map_lines(self, units: Iterator[U], recipe: Recipe[U], keep: Keep[U], policy: Policy) -> None:
        """Makes the call of each unit and keeps its lines; returns when all are done.

        Failures are lines. `keep` may be called from any thread, by one at a time, and before anything else is waited
        for: finished units survive the process.

        Raises:
            Aborted: the policy stops at the first failure, and there was one.
            KeyboardInterrupt: the user stopped the run; calls in flight that ended in time were kept.
        """
