"""A recording in the making."""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401 - by now, since libraries that seal may not import it at the very end
import os
import secrets
import threading
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

import orjson
from orjson import Fragment

from evaluand.apps.recording.feedback_import import stored_form
from evaluand.apps.recording.judge import ATTEMPTS, POLICY, Beside, Worker, judges, judging
from evaluand.apps.recording.stored import (
    KIND,
    MODES,
    OWN_COLUMNS,
    Lanes,
    Recording,
    Standing,
    evaluation_of,
    name_in,
    read,
    record_in,
    run_of,
    sealed,
    standing,
    unit_of,
)
from evaluand.core import identity as ids
from evaluand.core.errors import DataError, SpecError, warn, with_article
from evaluand.core.json_like import text_of
from evaluand.core.provenance import provenance
from evaluand.engine.engine import InlineEngine, Outcome, Policy
from evaluand.evaluation.evaluator import Evaluation, Evaluator
from evaluand.evaluation.grading import FeedbackInput, Unit, source_of, units_of
from evaluand.evaluation.scorer import Scorer, described, ranges_of
from evaluand.run.responses import line_of
from evaluand.run.runner import Run
from evaluand.store.journal import SHARD_SLOTS
from evaluand.store.store import FORMAT, MemoryStore, Store, check_name, check_store, exists, now
from evaluand.trace import Trace
from evaluand.trace.record import Record, facts_of

_SYNC_SECONDS = 1.0
_MOST_BLOCKS = 1 << 18


class NotRecorded(UserWarning):
    """A call of an app could not be recorded."""


class About(NamedTuple):
    """What is known of a record beside the call."""

    name: str | None = None
    tags: str | None = None
    metadata: Mapping[str, Any] = {}

    def with_more(self, other: About) -> About:
        """This, and what another knows better."""
        name = self.name if other.name is None else other.name
        tags = self.tags if other.tags is None else other.tags
        return About(name, tags, {**self.metadata, **other.metadata} if other.metadata else self.metadata)


class Snapshot(NamedTuple):
    """What a recording came to so far.

    Attributes:
        run: the calls.
        evaluation: what the feedbacks said of them; None where there are none.
    """

    run: Run
    evaluation: Evaluation | None


@contextmanager
def about(
    *, name: str | None = None, tags: str | None = None, metadata: Mapping[str, Any] | None = None
) -> Iterator[None]:
    """What is known of the calls that end meanwhile, in this thread or task: kept with their records.

    Args:
        name: what the record is called; the id of the example that it becomes.
        tags: words for people.
        metadata: anything to group by, an attribute of that example each.

    Raises:
        SpecError: a name or key cannot be so.

    Example:
        >>> with about(name="q1", tags="try", metadata={"topic": "novels"}):
        ...     pass
    """
    outer = _about.get() or _NOTHING
    given = {} if metadata is None else dict(metadata)
    check_metadata(given)
    token = _about.set(outer.with_more(About(name and check_name(name), tags, given)))
    try:
        yield
    finally:
        _about.reset(token)


_NOTHING: Final = About()
_about: ContextVar[About | None] = ContextVar("evaluand.about", default=None)


class RecordingWriter(Recording):
    """A recording that is being made; `begin` begins one. Leaving its `with` block ends it.

    Whatever goes wrong when a call is kept is a `NotRecorded` warning and never the app's business. What feedbacks call
    of the app themselves is not recorded.

    Attributes:
        feedbacks: name → scorer, those that judge the records.
        blocks: how many `with` blocks are open that record into it.
    """

    _lanes: Lanes
    _block: int | None
    _next: int
    _block_end: int

    def __init__(
        self, store: Store, id: str, feedbacks: Mapping[str, Scorer], policy: Policy | None, attempts: int
    ) -> None:
        super().__init__(store, id)
        self.feedbacks = feedbacks
        self._policy, self._attempts = policy, attempts
        self._closing = threading.RLock()
        self._pid = os.getpid()
        self._inherited: Any = None
        self._later: Evaluation | None = None
        self.blocks = 0
        self._units: dict[int, Unit] | None = None
        self._start()
        self._claim()
        if not isinstance(store, MemoryStore):
            _living.add(self)
        _forking.add(self)

    @classmethod
    def begin(
        cls,
        store: Store,
        app: Mapping[str, Any],
        feedbacks: Mapping[str, Scorer] | Sequence[Scorer] | Scorer = (),
        *,
        mode: str = "with_app_thread",
        name: str | None = None,
        policy: Policy | None = None,
        attempts: int = ATTEMPTS,
    ) -> Self:
        """Opens a recording of an app.

        Args:
            store: where.
            app: what the app is: its `name`, `version` and structure, as JSON-like data.
            feedbacks: what judges the records: one, several with names of their own, or by name.
            mode: who judges when: one of `MODES`.
            name: what the recording, its run and its evaluation are called; if not given, as the app.
            policy: how feedbacks are asked: `concurrency` (4 threads if not given), `timeout` (a minute), retries,
                pace. With one that has a timeout, feedbacks are asked in a thread beside in the mode `with_app` too,
                which is left behind then; without, one that takes too long fails when it has ended.
            attempts: how often a record may kill the process in which a feedback is asked about it.

        Raises:
            SpecError: the mode or a feedback cannot be so; deferred, such as one that cannot be imported elsewhere.
        """
        check_store(store)
        check_policy(policy)
        mode, scorers = definitions(feedbacks, mode)
        if type(attempts) is not int or attempts < 1:
            raise SpecError(f"attempts is {attempts!r}; give a whole number of at least 1")
        identities = {n: scorer.identify() for n, scorer in scorers.items()}
        spec = {
            "app": dict(app),
            "mode": mode,
            "feedbacks": {n: identity.spec for n, identity in identities.items()},
            "attempts": attempts,
            "opened": secrets.token_hex(16),
        }
        name = name or _called(app)
        id = ids.artifact_id(KIND, spec)
        head = {"format": FORMAT, "kind": KIND, "id": id, "name": check_name(name), "spec": spec, "attempt": 0}
        made = {"pinned": all(identity.pinned for identity in identities.values()), "work": []}
        forms = {n: stored_form(n, scorer, required=False) for n, scorer in scorers.items()}
        columns = {n: dict(scorer.columns) for n, scorer in scorers.items()}
        better = {n: getattr(scorer, "higher_is_better", None) for n, scorer in scorers.items()}
        about = {
            "forms": forms,
            "columns": columns,
            "higher_is_better": better,
            "ranges": ranges_of(scorers),
            "timeout": (policy or POLICY).timeout,
        }
        told = {"provenance": provenance() | about, "created": now()}
        store.open(head | made | told)
        store.refer(name, KIND, id)
        return cls(store, id, scorers, policy, attempts)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.end()

    def keep(self, trace: Trace, error: BaseException | None = None, about: About | None = None) -> int | None:
        """Keeps the record of a call that has ended, and has it judged as the mode says.

        Args:
            trace: of the call; its root has what the call was given and what it gave.
            error: what it raised.
            about: what is known beside; what `about` tells of this context goes before it.

        Returns:
            The number of the record; None where it was not kept.
        """
        if judging.get():
            return None
        try:
            here = _about.get()
            return self._keep(trace, error, (about or _NOTHING).with_more(here) if here else about or _NOTHING)
        except Exception as fault:
            self._tell(f"a call was not recorded: {type(fault).__name__}: {fault}")
        return None

    def end(self) -> None:
        """Ends the recording: no more calls are kept. All but deferred ones are closed.

        A fork of the process that opened it only ends its own part.
        """
        self._stop()
        if self._pid == os.getpid() and self.mode != "deferred":
            self._close()

    def close(self) -> Self:
        """Ends the recording and seals it: its run, and unless the mode is `none` the evaluation of its feedbacks.

        What deferred feedbacks have not judged is judged here, beside the workers that are at it.

        Raises:
            SpecError: another process still records.
        """
        self._stop()
        self._close()
        return self

    def snapshot(self) -> Snapshot:
        """What there is so far, as a run and its evaluation by the feedbacks; the recording goes on.

        Raises:
            SpecError: nothing was recorded yet.
        """
        with self._closing:
            if self.is_sealed:
                run = self.run
                if run is not None:
                    return Snapshot(run, self.evaluate() if self.feedbacks else None)
            else:
                self._judge_waiting()
                with closing(Lanes.of(self.store, self.manifest)) as lanes:
                    lanes.refresh()
                    if lanes.records.n_done:
                        run = run_of(self.store, self.manifest, lanes.records)
                        return Snapshot(run, self._evaluated(run, lanes) if self.feedbacks else None)
        raise SpecError("nothing was recorded yet")

    def evaluate(self) -> Evaluation:
        """The evaluation of what is recorded by the feedbacks; made where it is not there yet.

        Raises:
            SpecError: there are no feedbacks, or no records.
        """
        if not self.feedbacks:
            raise SpecError("the recording has no feedbacks; evaluate its run by some: Evaluator().evaluate(run, …)")
        with self._closing:
            if self.is_sealed:
                made = self.evaluation or self._later
                if made is None and (run := self.run) is not None:
                    policy = self._policy or POLICY
                    made = self._later = Evaluator(self.store, policy).evaluate(run, self.feedbacks, name=self.name)
            else:
                made = self.snapshot().evaluation
        if made is None:
            raise SpecError("nothing was recorded")
        return made

    def standing(self) -> Standing:
        """How far it is, while it is open."""
        return standing(self.store, self.id)

    # Keeping

    def _keep(self, trace: Trace, error: BaseException | None, about: About) -> int | None:
        facts = facts_of(trace)
        started, duration = (None if facts[name] is None else facts[name] * 1000 for name in ("started", "duration"))
        given = _text(facts["input"])
        output = facts["output"]
        outcome = Outcome(None if output is None else Fragment(_text(output)), error, 1, started, duration)
        body, _ = line_of(0, ids.digest_of_text(given), None, outcome, trace, False)
        metadata = Fragment(ids.encode(about.metadata) if about.metadata else b"{}")
        name = None if about.name is None else self._told_apart(about.name)
        told = orjson.dumps([Fragment(given), name, about.tags, metadata])
        with self._lock:
            if self._ended:
                self._tell("a call ended after the recording had; it was not recorded")
                return None
            slot = self._slot()
            line = b"[%d%b,%b]\n" % (slot, body[2:-2], told)
            self._lanes.records.write(line)
            self._under_way.add(slot)
        self._dirty.set()
        try:
            self._have_judged(slot, line)
        finally:
            with self._passed:
                self._under_way.discard(slot)
                self._passed.notify_all()
        return slot

    def _have_judged(self, slot: int, line: bytes) -> None:
        if self._beside is not None:
            self._beside.give(slot, line)
        elif self._judges_here:
            unit = read(line, self.manifest["spec"]["app"])
            for judge in self._judges_here:
                judge.judge(unit)

    def _await_calls(self) -> None:
        """Returns when what other threads are keeping by now is judged, as far as it is judged there."""
        if judging.get():  # a feedback that closes the recording would wait for itself
            return
        with self._passed:
            present = frozenset(self._under_way)
            self._passed.wait_for(lambda: present.isdisjoint(self._under_way))

    def _told_apart(self, name: str) -> str:
        """A name that no other record has, as far as this process knows; sealing knows all."""
        with self._lock:
            self._named[name] += 1
            n = self._named[name]
            while n > 1 and f"{name} ({n})" in self._named:
                n += 1
            told = name if n == 1 else f"{name} ({n})"
            self._named[told] = max(self._named[told], 1)
            return told

    def _slot(self) -> int:
        if self._next == self._block_end:
            self._claim()
        slot, self._next = self._next, self._next + 1
        return slot

    def _claim(self) -> None:
        """Takes the next block of slots that nobody has used."""
        leases = self._lanes.records.leases
        self._give_block()
        while (claim := leases.claim(_MOST_BLOCKS)) is not None:
            self._block, takers = claim
            self._next, self._block_end = self._block * SHARD_SLOTS, (self._block + 1) * SHARD_SLOTS
            if not takers:
                return
            self._give_block()  # of one that died, who may have used some of it
        raise SpecError("the recording is full, or it was closed by another process")

    def _give_block(self) -> None:
        if self._block is not None:
            self._lanes.records.leases.finish(self._block)
            self._block = None
        self._next = self._block_end = 0

    def _start(self) -> None:
        """What each process has of its own."""
        self._lock, self._reading = threading.Lock(), threading.Lock()
        self._passed = threading.Condition(self._lock)
        self._under_way: set[int] = set()  # slots of records that are being kept
        self._named: Counter[str] = Counter()
        self._dirty = threading.Event()
        self._over = threading.Event()
        self._ended = False
        self._block, self._next, self._block_end = None, 0, 0
        self._lanes = Lanes.of(self.store, self.manifest)
        policy = self._policy or POLICY
        in_time = self.mode == "with_app" and self._policy is not None and self._policy.timeout is not None
        asked = judges(self.feedbacks, self._lanes, policy, self.manifest, in_time=in_time)
        self._judges_here = [*asked.values()] if self.mode == "with_app" else []
        beside = asked and self.mode == "with_app_thread"
        self._beside = Beside(self._lanes, asked, policy, self.manifest) if beside else None
        if isinstance(self.store, MemoryStore):
            return
        threading.Thread(
            target=_synced, args=(self._lanes, self._dirty, self._over), name="recording", daemon=True
        ).start()

    def _forked(self) -> None:
        """In a fork: what the process that opened it has is not touched."""
        self._inherited = self._lanes, self._beside
        ended = self._ended
        self._start()
        self._closing = threading.RLock()
        self._ended = ended

    def _stop(self, *, at_once: bool = False) -> None:
        with self._lock:
            if self._ended:
                return
            self._ended = True
        if not at_once:
            self._await_calls()
        if self._beside is not None:
            self._beside.drain()
        self._over.set()
        self._dirty.set()
        with suppress(Exception):  # a disk that is full tells so when the rest is written
            self._give_block()
            self._lanes.sync()
        self._lanes.close()
        _living.discard(self)

    def _end_with_interpreter(self) -> None:
        """No thread can be started any more: what is not judged by now is left to `evaluand resume`."""
        self._stop(at_once=True)
        if self._pid != os.getpid() or self.mode == "deferred" or isinstance(self.store, MemoryStore):
            return
        if not exists(self.store, KIND, self.id):  # the store was removed meanwhile
            return
        with suppress(Exception), closing(Lanes.of(self.store, self.manifest)) as lanes:
            lanes.refresh()
            if self.mode == "none" or lanes.are_complete:
                sealed(self.store, self.id, self.feedbacks, evaluated=self.mode != "none", engine=InlineEngine())

    @property
    def has_ended(self) -> bool:
        """Whether no more calls are kept."""
        return self._ended

    def record(self, number: int) -> Record:
        """A record by its number, as feedbacks see it."""
        return record_in(self._unit(number), self.manifest["spec"]["app"])

    def source(self, number: int) -> FeedbackInput:
        """All that feedbacks are given of a record by its number."""
        unit, app = self._unit(number), self.manifest["spec"]["app"]
        answers = unit.response.responses
        return source_of(unit, answers[0] if answers else None, app, name_in(app))

    def _unit(self, number: int) -> Unit:
        with self._reading:
            if self._units is None and self._ended and self.is_sealed:
                units = () if self.run is None else units_of(self.run)
                self._units = {unit.response.index: unit for unit in units}
            if self._units is not None:
                return self._units[number]
            records = self._lanes.records
            if not records.is_done(number):
                records.refresh()
            return unit_of(records.line(number))

    def _close(self) -> None:
        with self._closing:
            if self.is_sealed:
                return
            if self.mode == "deferred":
                self._judge_missing()
            sealed(
                self.store,
                self.id,
                self.feedbacks,
                evaluated=self.mode != "none",
                policy=self._policy or POLICY,
            )

    def _judge_waiting(self) -> None:
        self._await_calls()
        if self._beside is not None:
            self._beside.wait()
        elif self.mode == "deferred":
            self._judge_missing()

    def _judge_missing(self) -> None:
        policy = self._policy or POLICY
        Worker(self.store, self.id, self.feedbacks, policy, self._attempts, follow=False).perform()

    def _evaluated(self, run: Run, lanes: Lanes) -> Evaluation:
        return evaluation_of(self.store, self.manifest, run, self.feedbacks, lanes, self._policy or POLICY)

    def _tell(self, message: str) -> None:
        with suppress(Warning):  # where warnings are errors, they are still none of the app's business
            warn(message, NotRecorded)


def _synced(lanes: Lanes, dirty: threading.Event, over: threading.Event) -> None:
    """Makes what was written survive the death of the machine, every now and then, so that no call waits for a disk."""
    while dirty.wait() and not over.wait(_SYNC_SECONDS):
        dirty.clear()
        with suppress(OSError):
            lanes.sync()


def definitions(
    feedbacks: Mapping[str, Scorer] | Iterable[Scorer] | Scorer, mode: str
) -> tuple[str, dict[str, Scorer]]:
    """A mode and feedbacks as they are taken; see `RecordingWriter.begin`.

    Raises:
        SpecError: they cannot be so.
    """
    mode = str(getattr(mode, "value", mode))  # of an enum of such words
    if mode not in MODES:
        raise SpecError(f"mode is {described(mode)}; give one of {', '.join(MODES)}")
    scorers = named(feedbacks)
    for name, scorer in scorers.items():
        scorer.identify()  # which refuses arguments that nothing is selected for
        if mode == "deferred":
            stored_form(name, scorer, required=True)
    return mode, scorers


def check_policy(policy: Any) -> None:
    """Refuses what is no policy.

    Raises:
        SpecError: says what one looks like.
    """
    if policy is not None and not isinstance(policy, Policy):
        raise SpecError(f"policy is {described(policy)}; give a Policy(timeout=…, retries=…), or none")


def named(feedbacks: Mapping[str, Scorer] | Iterable[Scorer] | Scorer) -> dict[str, Scorer]:
    """Feedbacks by name, or one alone; of several with one name, the second is called `name 2`.

    Raises:
        SpecError: something else is given.
    """
    several: Any = [feedbacks] if isinstance(feedbacks, Scorer) else feedbacks
    if isinstance(several, str) or not isinstance(several, Iterable):
        raise SpecError(f"feedbacks is {described(several)}; give Feedback(function).on(…), or a list of such")
    if isinstance(several, Mapping):
        given = [*several.items()]
    else:
        given = [(str(getattr(each, "name", getattr(each, "kind", ""))), each) for each in several]
    made: dict[str, Scorer] = {}
    for name, scorer in given:
        if not isinstance(scorer, Scorer):
            told = with_article(type(scorer).__name__)
            raise SpecError(f"a feedback is {told}; give Feedback(function).on(…), or another scorer")
        called, n = check_name(name), 1
        while called in made:
            n += 1
            called = f"{name} {n}"
        made[called] = scorer
    return made


def _called(app: Mapping[str, Any]) -> str:
    return f"{name_in(app)}/{app['version']}" if app.get("version") else name_in(app)


def check_metadata(metadata: Mapping[Any, Any]) -> None:
    """Refuses metadata that cannot become attributes of examples.

    Raises:
        SpecError: names the key.
    """
    for key in metadata:
        if not isinstance(key, str) or not key or key in OWN_COLUMNS or (key.startswith("_") and key.endswith("_")):
            own = ", ".join(OWN_COLUMNS)
            raise SpecError(f"metadata cannot be called {key!r}: give text other than {own} and _names_ like this")
    try:
        ids.encode(dict(metadata))
    except DataError as error:
        raise SpecError(f"metadata: {error}") from None


def _text(value: Any) -> bytes:
    """The canonical text of a value, which may be that already; what is no data is told by its likeness."""
    return orjson.dumps(value) if type(value) is Fragment else text_of(value).encode()


_living: set[RecordingWriter] = set()  # what is to be ended with the interpreter
_forking: weakref.WeakSet[RecordingWriter] = weakref.WeakSet()


def _end_all() -> None:
    """At the end of the interpreter: what was given to be judged is judged, and what is complete is closed."""
    for recording in list(_living):
        recording._end_with_interpreter()


def _fork_all() -> None:
    for recording in list(_forking):
        recording._forked()


atexit.register(_end_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_fork_all)
