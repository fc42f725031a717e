"""Keyed work: the one mechanism that performs, resumes, shares and counts the work of runs and evaluations.

The units of a lane are claimed shard by shard; finished units are skipped, the others go through the engine, and each
outcome is written to the journal at once as one line. If the process stops, the next one reads the lines and does only
what is missing.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, ClassVar, Final, Generic, Protocol, Self, TypeVar

from evaluand.core.errors import EngineError, SpecError
from evaluand.core.system import boot_seconds, keep_process_state
from evaluand.engine.budget import CODE as BUDGET, BudgetReached
from evaluand.engine.engine import Engine, Line, Made, Recipe
from evaluand.engine.engines.local import LocalEngine
from evaluand.engine.observation import Observer, as_machinery, machinery
from evaluand.engine.outcome import NO_CONNECTION, Aborted, Failure, Outcome, Unreachable
from evaluand.engine.policy import Policy
from evaluand.store.journal import ASK_SECONDS, WorkLog
from evaluand.store.kinds import find_kind, singular
from evaluand.store.store import Ref, Store, as_named, resolve

logger = logging.getLogger(__name__)

_LINES = 256  # that are written together where no call is made
_LINE: Final = 1  # of a finished unit
_FAILED: Final = 2
_FIRST_PAUSE = 0.02  # seconds between two looks at what other workers have ended; doubled up to `_PATIENCE`
_PATIENCE = 0.5
_MOST_REOPENED = 100  # times that the same shards are freed for workers which do not get them


class Unit(Protocol):
    """Work to be done once: one slot of the lane, or several consecutive slots in one shard."""

    @property
    def slot(self) -> int: ...
    @property
    def size(self) -> int: ...


U = TypeVar("U", bound=Unit)


@dataclass
class Tally:
    """The progress of some work; read by progress displays meanwhile.

    Attributes:
        total: all units.
        kept: units that were done before, or by other processes meanwhile.
        reused: units answered by earlier work with the same key.
        called: units done now.
        failed: how many of the units done now failed.
        skipped: units that needed no call.
        retried: further attempts that transient errors took.
        by_worker: units done now by the workers of a cluster, by their place.
    """

    label: str = ""
    total: int = 0
    kept: int = 0
    reused: int = 0
    called: int = 0
    failed: int = 0
    skipped: int = 0
    retried: int = 0
    by_worker: Counter[str] = field(default_factory=Counter)

    @property
    def done(self) -> int:
        return self.kept + self.reused + self.called + self.skipped

    def count(self, called: int, failed: int, retried: int) -> None:
        """Counts units that were done now."""
        self.called += called
        self.failed += failed
        self.retried += retried

    def add(self, other: Tally) -> None:
        """Adds the counts of other work."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def receipt(self, **more: Any) -> Receipt:
        """The receipt of the work, with the usage of what was done now and the reason."""
        return Receipt(**{name: getattr(self, name) for name in _COUNTS}, **more)


_COUNTS = ("total", "called", "reused", "kept", "skipped", "failed", "retried")


@dataclass(frozen=True)
class Receipt:
    """The work that a step took, and why.

    Attributes:
        total: units of the step.
        called: how many were done now.
        reused: how many were answered by earlier work with the same key.
        kept: how many were in this artifact already, or were done by other processes meanwhile.
        skipped: how many needed no call.
        failed: how many of those done now failed: calls of a run, or rows of a scorer.
        failures: class of error → how many rows of the artifact failed so, now or earlier, most frequent first.
        retried: further attempts that transient errors took.
        why: the reason, as a sentence.
        usage: what the units that were done now have used, in total or by scorer, as in manifests; None if unknown,
            since another process has finished the step.
    """

    total: int
    called: int = 0
    reused: int = 0
    kept: int = 0
    why: str = ""
    skipped: int = 0
    failed: int = 0
    failures: Mapping[str, int] = field(default_factory=dict)
    retried: int = 0
    usage: Mapping[str, Any] | None = field(default_factory=dict)

    def __str__(self) -> str:
        parts = [f"{self.called:,} of {self.total:,} done now"]
        if failed := sum(self.failures.values()) or self.failed:
            kinds = ", ".join(f"{n:,} {kind}" for kind, n in self.failures.items())
            earlier = " earlier" if not self.called else ""
            parts.append(f"{failed:,} failed{earlier}" + (f" ({kinds})" if kinds else ""))
        more = ((self.retried, "retried"), (self.kept, "kept"), (self.reused, "reused"), (self.skipped, "skipped"))
        parts += [f"{n:,} {word}" for n, word in more if n]
        return ", ".join(parts) + (f" ({self.why})" if self.why else "")


def take_turn_to_seal(lane: WorkLog, is_sealed: Callable[[], bool], policy: Policy) -> bool:
    """Whether this process is to seal an artifact whose work is done: one does, and the others wait until it has."""
    pause = _FIRST_PAUSE
    while not is_sealed():
        if lane.leases.take([len(lane.shards)]) is not None:  # the number after those of all shards
            return not is_sealed()
        time.sleep(pause)  # if the other process dies, its lease is free
        if pause < _PATIENCE <= 2 * pause and policy.sharing:
            policy.sharing("all calls are done; another process writes the tables")
        pause = min(2 * pause, _PATIENCE)
    return False


def take_over(lane: WorkLog, lines: Iterator[bytes]) -> int:
    """Writes lines of units that need no call; returns how many there are."""
    n = 0
    while some := [*islice(lines, _LINES)]:
        lane.append(b"".join(some))
        n += len(some)
    lane.refresh()
    return n


class Artifact:
    """The stored result of a step.

    Attributes:
        receipt: the work that it took; None if it was opened from a store.
        called: the name by which it was made or found; None if it was found by its id. One artifact may have several
            names, such as those of two experiments with the same task; the manifest has the origin of the work under
            this one.
    """

    kind: ClassVar[str]

    def __init__(self, store: Store, id: str, receipt: Receipt | None = None) -> None:
        self.store, self.id, self.receipt = store, id, receipt
        self.manifest = store.manifest(self.kind, id)
        self._called: str | None = None

    def _repr_html_(self) -> str | None:
        """What a notebook shows."""
        html: str | None = None
        if self.store.is_sealed(self.kind, self.id):
            html = find_kind(self.kind).shown.to_html(self)
        return html

    @property
    def called(self) -> str | None:
        return self._called

    @called.setter
    def called(self, name: str | None) -> None:
        self._called, self.manifest = name, as_named(self.store, self.manifest, name)

    @property
    def receipt(self) -> Receipt | None:
        return self._receipt

    @receipt.setter
    def receipt(self, receipt: Receipt | None) -> None:
        self._receipt = receipt
        if receipt is not None:
            logger.info("%s %s: %s", singular(self.kind), self.id[:12], receipt)

    @classmethod
    def open(cls, store: Store, name: str) -> Self:
        """Open the artifact with a name, an id or the beginning of an id (at least four digits).

        Raises:
            NotFound: no artifact of this kind has this name, or several ids begin like this.
            SpecError: it is not finished yet.

        Example:
            >>> from evaluand import Dataset, MemoryStore, Run, Runner
            >>> store = MemoryStore()
            >>> made = Runner(store).run(str.upper, Dataset.from_rows([{"input": "a"}]), name="demo/upper")
            >>> Run.open(store, "demo/upper").id == Run.open(store, made.id[:8]).id == made.id
            True
        """
        id = resolve(store, name, cls.kind)[1]
        if not store.is_sealed(cls.kind, id):
            raise SpecError(f"{singular(cls.kind)} {id} is not finished; continue it with `evaluand resume {id}`")
        artifact = cls(store, id)
        artifact.called = name if Ref(name, cls.kind, id) in store.named(name) else None
        return artifact

    @property
    def name(self) -> str | None:
        """The name by which it was made or found, or else the one that it had first."""
        return self.called or self.manifest["name"]

    @property
    def digest(self) -> str:
        """The digest of all rows, without times and costs, as 32 hexadecimal digits."""
        return str(self.manifest["digest"])


class Progress(Protocol):
    """Displays a tally while work is in progress."""

    def __call__(self, tally: Tally) -> Any:
        """A context manager around the work."""


@dataclass
class KeyedWork(Generic[U]):
    """The work on one lane.

    Args:
        lane: where its lines are written.
        units: the units of the slots start … stop, in order, done or not.
        recipe: how a unit becomes journal lines.
        sealed: whether another process has ended the work.
        settled: the line of a unit that needs no call, or None; only if there may be such units.
        observer: records the files that calls open, and writes them into their lines.
        failure: the error in the line of a failed unit; None where identical failures do not stop the work.
        stop_reason: why no further unit may start; empty while they may.
    """

    lane: WorkLog
    units: Callable[[int, int], Iterator[U]]
    recipe: Recipe[U]
    policy: Policy = field(default_factory=Policy)
    engine: Engine = field(default_factory=LocalEngine)
    tally: Tally = field(default_factory=Tally)
    sealed: Callable[[], bool] = lambda: False
    settled: Callable[[U], bytes | None] | None = None
    observer: Observer[U] | None = None
    failure: Callable[[bytes], Failure] | None = None
    stop_reason: Callable[[], str] = lambda: ""

    def __post_init__(self) -> None:
        if self.observer is not None:
            call, line = self.observer.call(self.recipe.call), self.observer.line(self.recipe.line)
            self.recipe = replace(self.recipe, call=call, line=line)
        if self.policy.budget is not None:
            self.recipe = replace(self.recipe, line=partial(self._line_if_made, self.recipe.line))
        self._begin_pass()
        self._reopened: list[int] = []
        self._tried: set[int] = set()  # shards that were claimed since
        self._n_reopened = 0
        self._lock = threading.Lock()
        self._until = math.inf
        self._alike: list[int] | None = None  # slots that failed from the start, all with one error
        self._error: Failure | None = None
        self._is_stopped = False
        self._refused = ""  # why a request was not made
        self._has_reported = False

    def perform(self) -> None:
        """Do what is missing; afterwards every slot is done, or another process has sealed the artifact.

        Raises:
            KeyboardInterrupt: the user stopped it; finished units are stored.
            Aborted: the policy stops at the first failure, or its total time is over, or a budget is spent.
            EngineError: units are missing although every shard was processed.
        """
        if self.policy.total_timeout is not None:
            self._until = time.monotonic() + self.policy.total_timeout
        if self.failure and not self.tally.done and 0 < self.policy.same_failures < self.lane.slots:
            self._alike = []
        self.lane.warn_of_damage()
        with machinery():
            copy_context().run(self._perform)  # what calls leave in it ends with it
        self.tally.kept += max(0, self.tally.total - self.tally.done)  # what other processes have done meanwhile

    def _perform(self) -> None:
        pause = min(_FIRST_PAUSE, _PATIENCE)
        while not self.sealed():
            self._begin_pass()
            others = self.lane.leases.busy()
            if others:
                self._report_others()
            self._map(self._claimed() if self.observer is None else as_machinery(self._claimed()))
            others = others or self.lane.leases.busy()  # before their lines are read: who has ended has written all
            self.lane.refresh()
            self.lane.warn_of_damage()
            if self.lane.n_done == self.lane.slots:
                if self.lane.is_final():
                    break
                continue  # some of the lines ended with the leases of their worker
            if time.monotonic() >= self._until:
                limit = f"total_timeout: the {self.policy.total_timeout:g} s allowed for all calls are over"
                raise Aborted(f"{limit}; {self.lane.n_done:,} of {self.lane.slots:,} are done")
            if reason := self._refused or self.stop_reason():
                raise Aborted(f"{reason}; {self.lane.n_done:,} of {self.lane.slots:,} are done", code=BUDGET)
            if others or self._claims or not self.lane.leases.holds():
                self._report_others()
                time.sleep(pause)  # another process has the last shards; if it dies, they become free
                pause = min(2 * pause, _PATIENCE)
            elif not self.sealed():
                self._reopen()

    def _report_others(self) -> None:
        if self.policy.sharing and not self._has_reported and (others := self.lane.leases.describe_others()):
            self._has_reported = True
            self.policy.sharing(others)

    def _begin_pass(self) -> None:
        """Forgets the claims of the last pass: another worker has taken over what was not finished."""
        self._claims = 0
        self._pending: dict[int, int] = {}  # shard → units in flight; below 0 until all its units have started
        self._is_lost = False  # whether another worker has taken over since

    def _map(self, units: Iterator[U]) -> None:
        policy = replace(self.policy, timeout=self.policy.timeout or self.policy.total_timeout)
        with keep_process_state():
            self.engine.map_lines(units, self.recipe, self._keep, policy)

    def _reopen(self) -> None:
        """Free the shards whose lines were lost in a crash of the machine."""
        slots = self.lane.slots
        missing = sorted({self.lane.shards.find(slot) for slot in self.lane.undone(0, slots)})
        open_units = f"{slots - self.lane.n_done} of {slots} units are not done"
        if missing != self._reopened:
            self._n_reopened = 0
        elif self._tried.issuperset(missing):
            raise EngineError(f"{open_units} although they were all tried")
        elif self._n_reopened == _MOST_REOPENED:
            raise EngineError(f"{open_units}, and their leases cannot be had; run the same command again")
        else:
            time.sleep(_PATIENCE)  # other workers were quicker
        self._reopened, self._tried, self._n_reopened = missing, set(), self._n_reopened + 1
        self.lane.leases.reopen(missing)

    def _claimed(self) -> Iterator[U]:
        asked = -math.inf  # when it was asked whether this worker still has its claims
        while not self.sealed() and self._holds() and (claim := self.lane.leases.claim(len(self.lane.shards))):
            shard, takers = claim
            self._claims += 1
            self._tried.add(shard)
            if takers:
                self.lane.refresh()
            if self.sealed():  # since the question; then the lease and the lines went with the journal
                return
            slots = self.lane.shards.range(shard)
            n_given = 0
            self._pending[shard] = 0
            if undone := {*self.lane.undone(slots.start, slots.stop)}:
                for unit in self.units(slots.start, slots.stop):
                    if unit.slot not in undone:
                        continue
                    if self.settled and (line := self.settled(unit)) is not None:
                        if not self._append(line):
                            return
                        self.tally.skipped += unit.size
                        continue
                    if (now := boot_seconds()) - asked > ASK_SECONDS:
                        if not self._holds():
                            return
                        asked = now
                    if self._is_lost or (self._until < math.inf and time.monotonic() >= self._until):
                        return
                    if self._refused or self.stop_reason():
                        return
                    n_given += 1
                    yield unit
            with self._lock:
                is_done = self._settle(shard, n_given)
            if is_done and not self._is_lost:
                self.lane.leases.finish(shard)

    def _holds(self) -> bool:
        """Whether this worker still has its claims; if not, it claims nothing in this pass."""
        self._is_lost = self._is_lost or (self._claims > 0 and not self.lane.holds())
        return not self._is_lost

    def _append(self, lines: bytes) -> bool:
        """Writes lines, unless another worker has taken over, which repeats their calls."""
        self._is_lost = self._is_lost or not self.lane.append(lines)
        return not self._is_lost

    def _line_if_made(self, line: Line[U], unit: U, outcome: Outcome) -> tuple[bytes, int]:
        """The lines of a unit; none if a budget refused a request of its call, so that it stays open."""
        if isinstance(outcome.error, BudgetReached):
            self._refused = str(outcome.error)
            return b"", 0
        return line(unit, outcome)

    def _keep(self, made: Sequence[Made[U]]) -> None:
        if self._alike is not None and len(made) > 1:
            for alone in made:
                self._keep([alone])
            return
        kept = [done for done in made if done[_LINE] and not (self._is_stopped and done[_FAILED])]
        if self._is_lost or not kept or not self._append(b"".join([done[_LINE] for done in kept])):
            return
        ended = []
        with self._lock:
            for unit, _, failed, attempts, worker in kept:
                self.tally.count(unit.size, failed, attempts - 1)
                if worker:
                    self.tally.by_worker[worker] += 1
                if self._settle(self.lane.shards.find(unit.slot), -1):
                    ended.append(self.lane.shards.find(unit.slot))
        for shard in ended:
            self.lane.leases.finish(shard)
        if self._alike is not None:
            for unit, line, failed, *_ in kept:
                self._watch_start(unit, line, failed)

    def _watch_start(self, unit: U, line: bytes, failed: int) -> None:
        """Stop the work if all units from the start have failed with one error.

        Raises:
            Aborted: so many did; their slots are open again.
        """
        if self.failure is None or self._alike is None:
            return
        error = self.failure(line) if failed else None
        if error is None or (self._alike and error != self._error):
            self._alike = None
            return
        self._alike.append(unit.slot)
        self._error = error
        if len(self._alike) >= self.policy.same_failures:
            self._is_stopped = True  # calls in flight that fail, too, do not count
            self.lane.refresh()
            self.lane.void(self._alike)
            self.tally.called = self.tally.failed = 0
            kind = Unreachable if error.code == NO_CONNECTION else Aborted
            raise kind(
                f"the first {len(self._alike)} calls failed, all with the same error: {error.text}; none of them"
                " counts. Mend the cause and continue, or allow this with same_failures: 0"
            )

    def _settle(self, shard: int, change: int) -> bool:
        """Counts the units in flight of a shard; returns whether it is done."""
        self._pending[shard] += change
        if self._pending[shard] == 0:
            del self._pending[shard]
            return True
        return False
