"""Judging records one at a time: in the app's thread, in other threads, or in another process."""

import math
import threading
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from evaluand.apps.recording.kind import RECORDINGS
from evaluand.apps.recording.stored import Lanes, app_name, parse_record, read_record
from evaluand.core.errors import SpecError, TaskError
from evaluand.core.fingerprint import CodeFacts
from evaluand.engine.deadline import Overdue, within
from evaluand.engine.engines.local import make_calls
from evaluand.engine.event_loop import run_coroutine
from evaluand.engine.observation import Observer
from evaluand.engine.outcome import Outcome
from evaluand.engine.policy import Policy, too_long
from evaluand.evaluation.grading import Grader
from evaluand.evaluation.scorer import Scorer
from evaluand.evaluation.units import Unit
from evaluand.store.journal import WorkLog
from evaluand.store.store import Manifest, Store

ATTEMPTS: Final = 3
QUEUE: Final = 1024
POLICY: Final = Policy(concurrency=4, timeout=60.0)
"""How feedbacks are called by default."""

_POLL = 0.2
_SHORT_POLL = 0.02

judging: ContextVar[bool] = ContextVar("evaluand.judging", default=False)
"""Whether a feedback is judging: its calls of the app are not recorded."""


class Judge:
    """One feedback of a recording, and the lane to which its scores are written."""

    def __init__(
        self,
        scorer: Scorer,
        lane: WorkLog,
        policy: Policy,
        app: Mapping[str, Any],
        in_time: bool = False,
        facts: CodeFacts | None = None,
    ) -> None:
        self.lane = lane
        self._in_time = in_time
        self.mine: set[int] = set()  # slots that were judged here and are not read back yet
        self._low = 0  # every slot below is judged
        self._taken_back = 0
        grader = Grader(scorer, policy, app=app, name=app_name(app))
        self._call: Callable[[Unit], Any] = grader.call
        self._line: Callable[[Unit, Outcome], tuple[bytes, int]] = grader.line
        if facts is not None:
            observer = Observer[Unit](facts)
            self._call = observer.call(self._call)
            self._line = observer.line(self._line)
        self._policy = policy
        self._is_async = scorer.is_async

    def refresh(self) -> None:
        """Reads the lane. What was judged here and does not count after that is judged again: another has the lease."""
        written = self.mine.copy()
        self.lane.refresh()
        self.mine -= written

    def missing(self, lanes: Lanes, name: str) -> Iterator[int]:
        """The slots of records that nobody has judged, as far as was read."""
        if self._taken_back != self.lane.n_taken_back:
            self._taken_back, self._low = self.lane.n_taken_back, 0
        while self.lane.is_done(self._low):
            self._low += 1
        return (slot for slot in lanes.missing(name, self._low) if slot not in self.mine)

    def ask(self, unit: Unit) -> Any:
        """The scores of the feedback for a record, computed in this thread; raises errors worth another attempt."""
        token = judging.set(True)
        try:
            scores = self._call(unit)
            return run_coroutine(scores) if self._is_async else scores
        finally:
            judging.reset(token)

    def write(self, unit: Unit, outcome: Outcome, *, at_once: bool = False) -> bool:
        """Writes the outcome to the journal; returns whether it was written: not if another worker has taken over."""
        line, _ = self._line(unit, outcome)
        return (self.lane.write if at_once else self.lane.append)(line)

    def judge(self, unit: Unit) -> None:
        """Judges a record in this thread and writes the scores; whatever the feedback raises becomes a row.

        A call that takes longer than the policy allows fails: at once if `in_time`, else when it has ended.
        """
        limit = self._policy.timeout or math.inf
        unit.attempts = attempts = 0
        while True:
            attempts += 1
            value: Any = None
            error: BaseException | None = None
            if self._policy.rate_limit:
                self._policy.rate_limit.wait(threading.Event())
            clock = time.perf_counter()
            try:
                value = within(limit, partial(self.ask, copy(unit))) if self._in_time else self.ask(unit)
            except KeyboardInterrupt:
                raise
            except Overdue:
                error = too_long(self._policy)
            except BaseException as raised:
                error = raised
            unit.attempts = attempts
            if time.perf_counter() - clock > limit:
                value, error = None, too_long(self._policy)
            if error is None or not self._policy.retries_after(error, attempts):
                break
            time.sleep(self._policy.draw_pause(attempts, error))
        self.write(unit, Outcome(value, error, attempts, 0, 0), at_once=True)


def refuse_budget(policy: Policy) -> None:
    """Refuses a policy with a budget, which recordings do not have."""
    if policy.budget is not None:
        raise SpecError("a budget is for runs, evaluations and matches; leave it out of the policy of a recording")


def create_judges(
    scorers: Mapping[str, Scorer],
    facts: Mapping[str, CodeFacts | None],
    lanes: Lanes,
    policy: Policy,
    manifest: Manifest,
    *,
    in_time: bool = False,
) -> dict[str, Judge]:
    """The judges of a recording by feedback; `in_time` ends calls that take too long at once."""
    refuse_budget(policy)
    app = manifest["spec"]["app"]
    return {
        name: Judge(scorer, lanes.judged[name], policy, app, in_time, facts[name]) for name, scorer in scorers.items()
    }


def observed_facts(scorers: Mapping[str, Scorer]) -> dict[str, CodeFacts | None]:
    """What observing the calls of each feedback needs to know of its code; found once, since it reads the code."""
    return {name: scorer.identify().observed for name, scorer in scorers.items()}


@dataclass(slots=True)
class JudgeTask:
    """A record for one feedback to judge."""

    judge: Judge
    unit: Unit

    def __str__(self) -> str:
        return f"record {self.unit.slot}"


def run_task(task: JudgeTask) -> Any:
    return task.judge.ask(task.unit)


class BackgroundJudging:
    """Judges records in threads of the app's process, in the order in which they arrive.

    Records wait in a queue. Of those that find it full only the slot is stored; they are read from the journal when the
    queue is empty.
    """

    def __init__(self, lanes: Lanes, judges: Mapping[str, Judge], policy: Policy, manifest: Manifest) -> None:
        self._lanes, self._judges, self._policy = lanes, judges, policy
        self._app = manifest["spec"]["app"]
        self._queue: deque[bytes] = deque()
        self._left = array("q")
        self._changed = threading.Condition()
        self._ended = False
        self._pending = 0  # records that are not judged yet, counted for each feedback
        self._thread: threading.Thread | None = None

    def give(self, slot: int, line: bytes) -> None:
        """Queues a record; never waits."""
        with self._changed:
            if len(self._queue) < QUEUE and not self._left:
                self._queue.append(line)
            else:
                self._left.append(slot)
            self._pending += len(self._judges)
            self._changed.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="feedback", daemon=True)
                self._thread.start()

    def wait(self) -> None:
        """Returns when every queued record is judged, or the thread that judges has died."""
        with self._changed:
            while self._pending and self._thread is not None and self._thread.is_alive():
                self._changed.wait(_POLL)

    def drain(self) -> None:
        """Like `wait`; afterwards nothing more is judged."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        with suppress(Exception):  # a record that is not judged, because the disk is full for example, is judged later
            make_calls(self._tasks(), run_task, self._finish, self._policy)

    def _finish(self, task: JudgeTask, outcome: Outcome) -> None:
        try:
            task.judge.write(task.unit, outcome)
        finally:
            with self._changed:
                self._pending -= 1
                self._changed.notify_all()

    def _tasks(self) -> Iterator[JudgeTask]:
        while (line := self._next()) is not None:
            unit = read_record(line, self._app)
            yield from (JudgeTask(judge, copy(unit)) for judge in self._judges.values())

    def _next(self) -> bytes | None:
        with self._changed:
            while not self._queue and not self._left and not self._ended:
                self._changed.wait()
            if self._queue:
                return self._queue.popleft()
            if not self._left:
                return None
            slots, self._left = self._left[:QUEUE], self._left[QUEUE:]
        self._lanes.records.refresh()
        lines = [self._lanes.records.line(slot) for slot in slots if self._lanes.records.is_done(slot)]
        with self._changed:
            self._queue.extend(lines)
            return self._queue.popleft() if self._queue else None


class Worker:
    """Judges what is missing in a recording, together with any number of other workers.

    Each unit, a record and a feedback, has a lease while it is judged. A unit whose holders have died `attempts` times
    is not tried again. With `follow` it waits for further records while the app records.
    """

    def __init__(
        self, store: Store, id: str, scorers: Mapping[str, Scorer], policy: Policy, attempts: int, *, follow: bool
    ) -> None:
        self._store, self._id, self._policy = store, id, policy
        self._attempts, self._follow = attempts, follow
        manifest = store.manifest(RECORDINGS, id)
        self._lanes = Lanes.of(store, manifest)
        self._judges = create_judges(scorers, observed_facts(scorers), self._lanes, policy, manifest)

    def perform(self) -> bool:
        """Judges until nothing is left here; returns whether the recording is complete."""
        try:
            make_calls(self._tasks(), run_task, self._finish, self._policy)
            return self._is_sealed() or (self._lanes.are_complete and not self._lanes.records.leases.busy(patient=True))
        finally:
            self._lanes.close()

    def _tasks(self) -> Iterator[JudgeTask]:
        while not self._is_sealed():
            living = self._lanes.records.leases.busy()  # first, so that everything recorded before is read below
            self._lanes.records.refresh()
            for judge in self._judges.values():
                judge.refresh()
            taken, until = False, time.monotonic() + _POLL
            while time.monotonic() < until:
                found = False
                for name, judge in self._judges.items():
                    unit = self._take(name)
                    if unit is not None:
                        found = taken = True
                        yield JudgeTask(judge, unit)
                if not found:
                    break
            if taken:
                continue
            if not self._lanes.are_complete:
                time.sleep(_SHORT_POLL)  # other workers hold the rest
            elif living and self._follow:
                time.sleep(_POLL)
            else:
                return

    def _take(self, name: str) -> Unit | None:
        """The next record for a feedback to judge; None where other workers hold what is missing."""
        judge, records = self._judges[name], self._lanes.records
        lane = judge.lane
        missing = judge.missing(self._lanes, name)
        while (taken := lane.leases.take(missing)) is not None:
            if self._is_sealed():
                return None
            slot, takers = taken
            lane.refresh()  # its last holder may have judged it meanwhile
            if lane.is_done(slot):
                lane.leases.drop(slot)
                continue
            unit = parse_record(records.line(slot))
            if takers < self._attempts:
                return unit
            error = JudgeDied(f"the process that judged it died, {takers} times")
            self._finish(JudgeTask(judge, unit), Outcome(None, error, takers, 0, 0))
        return None

    def _finish(self, task: JudgeTask, outcome: Outcome) -> None:
        slot, leases = task.unit.slot, task.judge.lane.leases
        if not leases.has(slot):  # another worker has taken it over, and judges it again
            return
        if task.judge.write(task.unit, outcome):
            task.judge.mine.add(slot)
            leases.drop(slot)

    def _is_sealed(self) -> bool:
        return self._store.is_sealed(RECORDINGS, self._id)


class JudgeDied(TaskError):
    """Every process in which a feedback judged this record has died."""
