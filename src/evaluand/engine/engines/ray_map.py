"""The calls of some units in workers of a Ray cluster.

A worker holds as many units as it makes calls at once, and ahead what it does in a moment. Only this process gives
units, keeps lines and holds rate limits. When a worker dies, the units that it may have begun have had an attempt, and
all that it held are given to others; a unit whose workers have died three times fails. From the second time it is given
alone, so that no other unit dies with it.
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Iterator
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

import ray
from ray.exceptions import RayActorError, RayError

from evaluand._version import __version__
from evaluand.core.errors import EngineError
from evaluand.core.fingerprint import Identity, explain
from evaluand.engine.engine import Keep, Recipe, U
from evaluand.engine.engines import wire
from evaluand.engine.engines.elsewhere import CallsElsewhere, Job, WorkerDied
from evaluand.engine.engines.ray import end
from evaluand.engine.engines.ray_worker import Begun, Columns, Ended, columns
from evaluand.engine.engines.shared_limits import AskedLimit, HeldLimits
from evaluand.engine.outcome import Aborted
from evaluand.engine.policy import Policy
from evaluand.engine.rate_limit import RateLimit

if TYPE_CHECKING:
    from evaluand.engine.engines.ray import RayEngine

MOST_DEATHS: Final = 3
"""How many workers a unit may end before it fails; and, for each worker, how many may end before one begins."""

START: Final = 180.0
"""Seconds in which the first worker must have started."""

_END: Final = 10.0  # seconds in which a worker must have ended its work
_AHEAD: Final = 0.15  # seconds of work that a worker has beyond its calls in flight
_MOST_AHEAD: Final = 1024
_UNREPORTED: Final = 0.02  # seconds of work that a worker may have finished and not reported
_NEWEST: Final = 0.3  # weight of the newest figure in the speed of a worker


class _Worker:
    """An actor, and what it holds."""

    def __init__(self, actor: Any) -> None:
        self.actor = actor
        self.place = ""  # where it is, once it has begun
        self.units: dict[int, Job] = {}
        self.speed = 0.0  # units per second
        self.looked = time.monotonic()
        self.has_ended = False

    @property
    def is_alone(self) -> bool:
        """Whether it holds a unit that must be alone."""
        return len(self.units) == 1 and _must_be_alone(*self.units.values())


def _must_be_alone(job: Job) -> bool:
    return job.attempts >= MOST_DEATHS - 1


class RayMap(CallsElsewhere[U]):
    """The calls of some units in the workers of an engine."""

    def __init__(self, engine: RayEngine, units: Iterator[U], recipe: Recipe[U], keep: Keep[U], policy: Policy) -> None:
        super().__init__(units, recipe, keep, policy)
        assert recipe.code is not None
        self._engine, self._code = engine, recipe.code
        self._next: deque[Job] = deque()  # to be given before further units are read
        self._workers: list[_Worker] = []
        self._refs: dict[Any, _Worker] = {}  # answers that are waited for
        self._lost_starts = 0  # one after the other; where a node is lost, workers are that should start there

    def _work(self) -> None:
        if not self._workers and self._is_any_left():  # nothing to do starts nothing
            self._start_workers()
        while self._fill():
            ref = self._wait()
            if ref is not None:
                self._receive(ref)
            self._grant_turns()
        self._end_workers()

    def _is_any_left(self) -> bool:
        """Whether there are further units; the next one is read if none is."""
        if not self._next and (unit := self._next_unit()) is not None:
            self._next.append(Job(unit))
        return bool(self._next)

    def _identity(self) -> Identity:
        """The identity of the code as it is sent: made anew here as in a worker."""
        recipe, _ = wire.load(self._sent, lambda number, like: AskedLimit(number, like, lambda report: None))
        assert recipe.code is not None
        return recipe.code.identify()

    def _start_workers(self) -> None:
        limits: list[RateLimit] = []
        self._sent = sent = wire.pack(self._recipe, self._policy, limits)
        self._limits = HeldLimits(limits)
        self._expected = self._identity()
        texts = [sorted((name, *module) for name, module in sent.modules.items()), sorted(sent.texts.items())]
        modules = hashlib.blake2b(repr([sent.folder, sent.path, texts]).encode("utf-8", "replace")).digest()
        actors = self._engine.take_actors(modules)[: self._engine.size]
        self._sent_ref = ray.put(tuple(self._sent))
        self._began = time.monotonic()
        for _ in range(self._engine.size):
            self._start_worker(actors.pop() if actors else self._engine.start())

    def _start_worker(self, actor: Any) -> None:
        worker = _Worker(actor)
        self._workers.append(worker)
        self._refs[actor.begin.remote(__version__, self._sent_ref)] = worker

    def _n_in_flight(self) -> int:
        return sum(min(len(worker.units), self._policy.calls_at_once) for worker in self._workers)

    def _stop(self, reason: BaseException) -> None:
        self._failure = self._failure or reason
        self._next.clear()
        for worker in self._workers:
            if worker.units:
                worker.actor.finish.remote()

    def _fill(self) -> bool:
        """Gives units to workers; false when nothing is left to do or in flight."""
        for worker in sorted((w for w in self._workers if w.place and not w.has_ended), key=lambda w: len(w.units)):
            if orders := self._orders(worker):
                worker.actor.give.remote(orders, [])
        return any(worker.units for worker in self._workers) or self._is_any_left()

    def _orders(self, worker: _Worker) -> Columns:
        """The units that a worker is given now."""
        orders = []
        room = self._policy.calls_at_once + min(int(worker.speed * _AHEAD), _MOST_AHEAD)
        while len(worker.units) < room and not worker.is_alone and self._is_any_left():
            if _must_be_alone(self._next[0]) and worker.units:
                break  # it waits until this worker holds nothing else
            job = self._next.popleft()
            job.begin()
            worker.units[job.unit.slot] = job
            orders.append((job.unit.slot, job.attempts, self._wire.pack(job.unit)))
        return columns(orders)

    def _wait(self) -> Any:
        """Waits for an answer of a worker; None if it is time to look at something else."""
        self._interrupts.allow()  # elsewhere, a call could be lost between its answer and its line
        try:
            ready, _ = ray.wait([*self._refs], timeout=min(self._limits.soonest, 1.0))
        finally:
            self._interrupts.delay()
        is_late = time.monotonic() - self._began > START and not any(worker.place for worker in self._workers)
        if is_late and not ready:
            raise EngineError(
                f"no worker of the Ray cluster started within {START:g} s; see `ray status`, or ask for fewer workers"
            )
        return ready[0] if ready else None

    def _receive(self, ref: Any) -> None:
        worker = self._refs.pop(ref)
        try:
            answer = ray.get(ref)
        except RayActorError as error:
            return self._replace(worker, error)
        except RayError as error:
            raise EngineError(f"a worker of the Ray cluster failed: {_cause(error)}") from error
        if not worker.place:
            self._admit(worker, answer)
        else:
            lines, costs, events = answer
            if self._code.ledger is not None:
                for cost in costs:
                    self._code.ledger.note_cost(*cost)
            if lines:
                units = [worker.units.pop(slot).unit for slot in lines[0]]
                self._keep([*zip(units, *lines[1:], repeat(worker.place), strict=False)])
            for event in events:
                self._note(worker, event)
            self._measure(worker, len(lines[0]) if lines else 0)
        if not worker.has_ended:
            self._refs[worker.actor.take.remote(self._orders(worker))] = worker
        return None

    def _admit(self, worker: _Worker, answer: Begun | str) -> None:
        """Lets a worker begin if it has the code of this process."""
        if isinstance(answer, str):
            raise EngineError(answer)
        if answer.spec != self._expected.spec:
            changes = "; ".join(explain(self._expected.parts, answer.parts)[:3]) or "its identity differs"
            raise EngineError(
                f"{answer.place} has another {self._code.name}: {changes}; give all machines the same code and files"
            )
        worker.place, worker.looked, self._lost_starts = answer.place, time.monotonic(), 0

    def _note(self, worker: _Worker, event: Any) -> None:
        if type(event) is Ended:
            worker.has_ended = True
            worker.units.clear()
            if event.is_aborted:
                raise Aborted(event.reason)
            if event.reason:
                raise EngineError(f"{worker.place} failed: {event.reason}")
        else:
            self._limits.note(worker, event)

    def _measure(self, worker: _Worker, done: int) -> None:
        now = time.monotonic()
        speed = done / max(now - worker.looked, 1e-3)
        worker.speed += _NEWEST * (speed - worker.speed) if worker.speed else speed
        worker.looked = now

    def _grant_turns(self) -> None:
        granted: dict[_Worker, list[tuple[int, int]]] = {}
        for worker, limit, number in self._limits.grant():
            granted.setdefault(worker, []).append((limit, number))
        for worker, turns in granted.items():
            worker.actor.give.remote([], turns)

    def _replace(self, worker: _Worker, error: RayActorError) -> None:
        """Starts another worker in place of one that has died, and gives its units again."""
        self._workers.remove(worker)
        self._limits.forget(worker)
        end(worker.actor)  # it may only be out of reach
        if not worker.place:
            self._lost_starts += 1
            if self._lost_starts >= MOST_DEATHS * self._engine.size:
                raise EngineError(
                    f"a worker of the Ray cluster cannot start: {_cause(error)}; is evaluand installed there?"
                )
        jobs = [*worker.units.values()]  # it begins them in this order
        for job in jobs[: 2 * self._policy.calls_at_once + int(worker.speed * _UNREPORTED)]:
            job.attempts += 1
        for job in reversed(jobs):
            if job.attempts >= MOST_DEATHS:
                how = f"{job.attempts} workers ended during the call, the last on {worker.place}"
                self._fail(job, WorkerDied(how, code="worker"))
            elif self._failure is None:
                self._next.appendleft(job)
        if self._is_any_left():
            self._start_worker(self._engine.start())

    def _end_workers(self) -> None:
        """Lets the workers end their work, and keeps them for the next."""
        begun = [worker for worker in self._workers if worker.place]
        for worker in begun:
            worker.actor.finish.remote()
        until = time.monotonic() + _END
        while any(not worker.has_ended for worker in begun) and (left := until - time.monotonic()) > 0:
            refs = [ref for ref, worker in self._refs.items() if worker in begun]
            for ref in ray.wait(refs, timeout=left)[0]:
                self._receive(ref)
        for worker in [worker for worker in begun if worker.has_ended]:
            self._workers.remove(worker)
            self._engine.give_back(worker.actor)

    def _end(self) -> None:
        for worker in self._workers:
            end(worker.actor)


def _cause(error: BaseException) -> str:
    """The last line of an error of Ray, which ends with what was raised in the worker."""
    return str(error).strip().split("\n")[-1]
