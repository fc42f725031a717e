"""A recording in progress: calls are written to its journal and handed to those who judge."""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401 - now: libraries used for sealing cannot import it while the interpreter ends
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
from evaluand.apps.recording.judge import (
    ATTEMPTS,
    POLICY,
    BackgroundJudging,
    Worker,
    create_judges,
    judging,
    observed_facts,
    refuse_budget,
)
from evaluand.apps.recording.kind import RECORDINGS
from evaluand.apps.recording.stored import (
    MODES,
    OWN_COLUMNS,
    Lanes,
    Recording,
    RecordingProgress,
    app_name,
    build_record,
    parse_record,
    read_progress,
    read_record,
    save_evaluation,
    save_run,
    seal_recording,
)
from evaluand.core import identity as ids
from evaluand.core.errors import DataError, EngineError, SpecError, plural, pluralize, warn, with_article
from evaluand.core.json_like import text_of
from evaluand.core.provenance import provenance
from evaluand.core.system import call_after_fork
from evaluand.engine.engines.local import InlineEngine
from evaluand.engine.outcome import Outcome
from evaluand.engine.policy import Policy
from evaluand.evaluation.evaluator import Evaluation, Evaluator
from evaluand.evaluation.scorer import Scorer, described, directions_of, ranges_of
from evaluand.evaluation.units import FeedbackInput, Unit, source_of, units_of
from evaluand.run.responses import line_of
from evaluand.run.runner import Run
from evaluand.store.ownership import with_mac
from evaluand.store.shards import SHARD_SLOTS
from evaluand.store.store import FORMAT, MemoryStore, Store, check_name, check_store, exists, give_name, now
from evaluand.trace import Trace
from evaluand.trace.record import Record, facts_of

_SYNC_SECONDS = 1.0
_MOST_BLOCKS = 1 << 18


class NotRecorded(UserWarning):
    """A call of an app could not be recorded."""


class Annotations(NamedTuple):
    """Facts about a record besides the call: its name, tags and metadata."""

    name: str | None = None
    tags: str | None = None
    metadata: Mapping[str, Any] = {}

    def merge(self, other: Annotations) -> Annotations:
        """These annotations, replaced by those that another has."""
        name = self.name if other.name is None else other.name
        tags = self.tags if other.tags is None else other.tags
        return Annotations(name, tags, {**self.metadata, **other.metadata} if other.metadata else self.metadata)


class Snapshot(NamedTuple):
    """A recording so far: its run, and its evaluation by the feedbacks, if it has any."""

    run: Run
    evaluation: Evaluation | None


@contextmanager
def annotate(
    *, name: str | None = None, tags: str | None = None, metadata: Mapping[str, Any] | None = None
) -> Iterator[None]:
    """Annotates the records of calls that end within the block, in this thread or task.

    Args:
        name: the name of the record, which is the id of the example that it becomes.
        tags: words for people.
        metadata: anything to group by; each key becomes an attribute of that example.

    Raises:
        SpecError: a name or key is not allowed.

    Example:
        >>> with annotate(name="q1", tags="try", metadata={"topic": "novels"}):
        ...     pass
    """
    outer = _about.get() or _NOTHING
    given = {} if metadata is None else dict(metadata)
    check_metadata(given)
    token = _about.set(outer.merge(Annotations(name and check_name(name), tags, given)))
    try:
        yield
    finally:
        _about.reset(token)


_NOTHING: Final = Annotations()
_about: ContextVar[Annotations | None] = ContextVar("evaluand.annotations", default=None)


class RecordingWriter(Recording):
    """A recording in progress, created by `begin`. Leaving its `with` block ends it.

    A failure to record a call is a `NotRecorded` warning and never reaches the app. Calls of the app by feedbacks are
    not recorded.

    Attributes:
        feedbacks: name → scorer that judges the records.
        blocks: how many open `with` blocks record into it.
    """

    _lanes: Lanes
    _block: int | None
    _next: int
    _block_end: int
    _loss: str

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
        self._facts = observed_facts(self.feedbacks)
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
        """Opens a recording of an app, which is JSON-like data; see `evaluand.apps.app.App` for the other arguments.

        If the policy has a timeout, feedbacks run in another thread in the mode `with_app` too, which is abandoned when
        the time is over; otherwise a call that takes too long fails when it has ended. The default is `POLICY`.

        Raises:
            SpecError: the mode is unknown, a feedback cannot judge in it (a deferred one must be importable), or the
                name of the app is not a text.
        """
        check_store(store)
        check_policy(policy)
        mode, scorers = resolve_feedbacks(feedbacks, mode)
        if type(attempts) is not int or attempts < 1:
            raise SpecError(f"attempts is {attempts!r}; give an integer of at least 1")
        app = _with_storable_version(app)
        identities = {n: scorer.identify() for n, scorer in scorers.items()}
        spec = {
            "app": app,
            "mode": mode,
            "feedbacks": {n: identity.spec for n, identity in identities.items()},
            "attempts": attempts,
            "opened": secrets.token_hex(16),
        }
        name = name or (f"{app_name(app)}/{app['version']}" if app.get("version") else app_name(app))
        id = ids.artifact_id(RECORDINGS, spec)
        head = {"format": FORMAT, "kind": RECORDINGS, "id": id, "name": check_name(name), "spec": spec, "attempt": 0}
        pinned = all(identity.pinned for identity in identities.values())
        state = {"pinned": pinned, "work": [], "observed": True}
        forms = {n: stored_form(n, scorer, required=False) for n, scorer in scorers.items()}
        columns = {n: dict(scorer.columns) for n, scorer in scorers.items()}
        about = {
            "forms": forms,
            "columns": columns,
            "higher_is_better": directions_of(scorers),
            "ranges": ranges_of(scorers),
            "timeout": (policy or POLICY).timeout,
        }
        store.open(with_mac(store, head | state | {"provenance": provenance() | about, "created": now()}))
        give_name(store, name, RECORDINGS, id)
        return cls(store, id, scorers, policy, attempts)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.end()

    def keep(
        self, trace: Trace, error: BaseException | None = None, annotations: Annotations | None = None
    ) -> int | None:
        """Records a call that has ended, and has it judged as the mode says; returns its number.

        It is None where the call is not recorded. Annotations of `annotate` in this context take precedence.
        """
        if judging.get():
            return None
        written = None
        try:
            here = _about.get()
            about = (annotations or _NOTHING).merge(here) if here else annotations or _NOTHING
            written = self._record(trace, error, about)
            if written is not None:
                self._have_judged(*written)
                return written[0]
        except Exception as fault:
            if written is None:
                with self._lock:
                    self._n_unrecorded += 1
            self._warn(f"a call was not recorded: {type(fault).__name__}: {fault}")
        return None

    def end(self) -> None:
        """Ends the recording: no more calls are recorded. It is closed unless it is deferred.

        In a fork of the process that opened it, only the part of the fork ends. A `NotRecorded` warning counts the
        calls that could not be recorded.
        """
        self._stop()
        try:
            if self._pid == os.getpid() and self.mode != "deferred":
                self._close()
        finally:
            self._report_unrecorded()

    def close(self) -> Self:
        """Ends the recording and seals it; see `RecordingSession.close`. A SpecError if another process still records.

        Records that deferred feedbacks have not judged are judged here, together with running workers.
        """
        self._stop()
        try:
            self._close()
        finally:
            self._report_unrecorded()
        return self

    def snapshot(self) -> Snapshot:
        """The run and its evaluation so far; the recording continues. A SpecError if nothing was recorded yet."""
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
                        run = save_run(self.store, self.manifest, lanes.records)
                        return Snapshot(run, self._evaluate_run(run, lanes) if self.feedbacks else None)
        raise SpecError("nothing was recorded yet")

    def evaluate(self) -> Evaluation:
        """The evaluation of the records, computed if it does not exist yet; see `RecordingSession.evaluate`."""
        if not self.feedbacks:
            raise SpecError("the recording has no feedbacks; evaluate its run instead: Evaluator().evaluate(run, …)")
        with self._closing:
            if self.is_sealed:
                evaluation = self.evaluation or self._later
                if evaluation is None and (run := self.run) is not None:
                    evaluator = Evaluator(self.store, self._policy or POLICY)
                    evaluation = self._later = evaluator.evaluate(run, self.feedbacks, name=self.name)
            else:
                evaluation = self.snapshot().evaluation
        if evaluation is None:
            raise SpecError("nothing was recorded")
        return evaluation

    def progress(self) -> RecordingProgress:
        """The progress of the recording while it is open."""
        return read_progress(self.store, self.id)

    # Recording calls
    def _record(self, trace: Trace, error: BaseException | None, annotations: Annotations) -> tuple[int, bytes] | None:
        """Writes a call; returns its number and its line, or None if the recording has ended."""
        facts = facts_of(trace)
        started, duration = (None if facts[name] is None else facts[name] * 1000 for name in ("started", "duration"))
        given = _to_text(facts["input"])
        output = facts["output"]
        outcome = Outcome(None if output is None else Fragment(_to_text(output)), error, 1, started, duration)
        body, _ = line_of(0, ids.digest_of_text(given), None, outcome, trace, False)
        metadata = Fragment(ids.encode(annotations.metadata) if annotations.metadata else b"{}")
        name = None if annotations.name is None else self._distinct_name(annotations.name)
        facts_text = orjson.dumps([Fragment(given), name, annotations.tags, metadata])
        with self._lock:
            if self._ended:
                self._warn("a call ended after the recording had; it was not recorded")
                return None
            slot = self._slot()
            line = b"[%d%b,%b]\n" % (slot, body[2:-2], facts_text)
            self._write(slot, line)
            self._under_way.add(slot)
        self._dirty.set()
        return slot, line

    def _write(self, slot: int, line: bytes) -> None:
        """Writes a record. If that fails, the next one has its slot, since a slot without a line is a lost record."""
        records = self._lanes.records
        try:
            is_written = records.write(line)
        except EngineError:
            with suppress(EngineError), self._reading:
                records.refresh()
                if not records.is_done(slot):
                    self._next = slot
            raise
        if not is_written:
            self._next = slot
            self._leave_block()
            raise EngineError(self._describe_loss())

    def _have_judged(self, slot: int, line: bytes) -> None:
        try:
            if self._background is not None:
                self._background.give(slot, line)
            elif self._judges_here:
                unit = read_record(line, self.manifest["spec"]["app"])
                for judge in self._judges_here:
                    judge.judge(unit)
        finally:
            with self._passed:
                self._under_way.discard(slot)
                self._passed.notify_all()

    def _describe_loss(self) -> str:
        """Why nothing can be recorded any more, and how many earlier calls are lost with that."""
        if not self.is_sealed:
            n = sum(map(len, self._written_slots()))
            return f"the journal of recording {self.id} was removed, and {plural(n, 'call')} of this app with it"
        if not self._loss:
            n = len(self._find_lost())
            earlier = f", without {plural(n, 'earlier call')} of this app" if n else ""
            self._loss = f"another process has closed recording {self.id}{earlier}; begin another one"
        return self._loss

    def _written_slots(self) -> list[range]:
        """The slots of the calls that this process has recorded."""
        start = 0 if self._block is None else self._block * SHARD_SLOTS
        return [*self._former_slots, range(start, self._next)]

    def _find_lost(self) -> set[int]:
        """The slots of recorded calls that the closed recording does not have."""
        run = self.run
        slots = {slot for slots in self._written_slots() for slot in slots}
        return slots if run is None else slots.difference(map(int, run.dataset.indices))

    def _await_calls(self) -> None:
        """Returns when the calls that other threads are recording now are recorded, and judged if the threads judge."""
        if judging.get():  # a feedback that closes the recording would wait for itself
            return
        with self._passed:
            present = frozenset(self._under_way)
            self._passed.wait_for(lambda: present.isdisjoint(self._under_way))

    def _distinct_name(self, name: str) -> str:
        """A name that no other record of this process has; sealing resolves clashes with other processes."""
        with self._lock:
            self._named[name] += 1
            n = self._named[name]
            while n > 1 and f"{name} ({n})" in self._named:
                n += 1
            distinct = name if n == 1 else f"{name} ({n})"
            self._named[distinct] = max(self._named[distinct], 1)
            return distinct

    def _slot(self) -> int:
        if self._loss:
            raise EngineError(self._loss)
        if self._next == self._block_end:
            self._claim()
        slot, self._next = self._next, self._next + 1
        return slot

    def _claim(self) -> None:
        """Claims the next unused block of slots."""
        leases = self._lanes.records.leases
        self._give_block()
        while (claim := leases.claim(_MOST_BLOCKS, is_fenced=False)) is not None:
            self._block, takers = claim
            self._next, self._block_end = self._block * SHARD_SLOTS, (self._block + 1) * SHARD_SLOTS
            if not takers:
                return
            self._leave_block()  # its last holder died and may have used a part of it, or nothing
        if self.is_sealed or not leases.holds():
            raise EngineError(self._describe_loss())
        raise SpecError("the recording is full")

    def _give_block(self) -> None:
        """Marks the block as done, but only if it has records; else it is released when the lanes are closed."""
        if self._block is not None and self._next > self._block * SHARD_SLOTS:
            self._lanes.records.leases.finish(self._block)
        self._leave_block()

    def _leave_block(self) -> None:
        if self._block is not None and self._next > self._block * SHARD_SLOTS:
            self._former_slots.append(range(self._block * SHARD_SLOTS, self._next))
        self._block, self._next, self._block_end = None, 0, 0

    def _start(self) -> None:
        """Sets up what each process has for itself."""
        self._lock, self._reading = threading.Lock(), threading.Lock()
        self._passed = threading.Condition(self._lock)
        self._under_way: set[int] = set()  # slots of records that are being written
        self._named: Counter[str] = Counter()
        self._dirty = threading.Event()
        self._over = threading.Event()
        self._ended = False
        self._block, self._next, self._block_end = None, 0, 0
        self._former_slots: list[range] = []  # of earlier blocks
        self._n_unrecorded = self._n_reported = 0
        self._is_closed_elsewhere = False
        self._loss = ""  # why nothing more can be recorded
        self._lanes = Lanes.of(self.store, self.manifest)
        policy = self._policy or POLICY
        in_time = self.mode == "with_app" and self._policy is not None and self._policy.timeout is not None
        judges = create_judges(self.feedbacks, self._facts, self._lanes, policy, self.manifest, in_time=in_time)
        self._judges_here = [*judges.values()] if self.mode == "with_app" else []
        in_background = judges and self.mode == "with_app_thread"
        self._background = BackgroundJudging(self._lanes, judges, policy, self.manifest) if in_background else None
        if isinstance(self.store, MemoryStore):
            return
        threading.Thread(
            target=_sync_lanes, args=(self._lanes, self._dirty, self._over), name="recording", daemon=True
        ).start()

    def _forked(self) -> None:
        """Sets up a fork, which does not touch what belongs to the process that opened the recording."""
        self._inherited = self._lanes, self._background
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
        if self._background is not None:
            self._background.drain()
        self._over.set()
        self._dirty.set()
        with suppress(Exception):  # a full disk is reported when the rest is written
            self._give_block()
            self._lanes.sync()
        self._lanes.close()
        _living.discard(self)
        with suppress(Exception):
            self._is_closed_elsewhere = self.is_sealed

    def _report_unrecorded(self) -> None:
        """Warns of the calls of this process that are not in the recording, except those that closing it reported."""
        n = self._n_unrecorded
        with suppress(Exception):  # who reads the store reports what is wrong with it
            origin = self.store.manifest(RECORDINGS, self.id)["provenance"]
            is_reported = "damaged_lines" in origin or "missing_records" in origin
            if self._is_closed_elsewhere or (self.is_sealed and not is_reported):
                n += len(self._find_lost())
        if n > self._n_reported:
            self._n_reported = n
            reason = ": another process had closed it" if self._is_closed_elsewhere else ""
            self._warn(f"{plural(n, 'call')} of recording {self.id} {pluralize(n, 'was', 'were')} not recorded{reason}")

    def _end_with_interpreter(self) -> None:
        """Ends the recording when no thread can be started any more: the rest is left to `evaluand resume`."""
        self._stop(at_once=True)
        self._close_with_interpreter()
        self._report_unrecorded()

    def _close_with_interpreter(self) -> None:
        if self._pid != os.getpid() or self.mode == "deferred" or isinstance(self.store, MemoryStore):
            return
        if not exists(self.store, RECORDINGS, self.id):  # the store was removed
            return
        with suppress(Exception), closing(Lanes.of(self.store, self.manifest)) as lanes:
            lanes.refresh()
            if self.mode == "none" or lanes.are_complete:
                seal_recording(
                    self.store, self.id, self.feedbacks, evaluated=self.mode != "none", engine=InlineEngine()
                )

    @property
    def has_ended(self) -> bool:
        """Whether no more calls are recorded."""
        return self._ended

    def record(self, number: int) -> Record:
        """The record of a number, as feedbacks see it."""
        return build_record(self._unit(number), self.manifest["spec"]["app"])

    def source(self, number: int) -> FeedbackInput:
        """What feedbacks are given for the record of a number."""
        unit, app = self._unit(number), self.manifest["spec"]["app"]
        answers = unit.response.responses
        return source_of(unit, answers[0] if answers else None, app, app_name(app))

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
            return parse_record(records.line(number))

    def _close(self) -> None:
        with self._closing:
            if self.is_sealed:
                return
            if self.mode == "deferred":
                self._judge_missing()
            seal_recording(
                self.store,
                self.id,
                self.feedbacks,
                evaluated=self.mode != "none",
                policy=self._policy or POLICY,
            )

    def _judge_waiting(self) -> None:
        self._await_calls()
        if self._background is not None:
            self._background.wait()
        elif self.mode == "deferred":
            self._judge_missing()

    def _judge_missing(self) -> None:
        policy = self._policy or POLICY
        Worker(self.store, self.id, self.feedbacks, policy, self._attempts, follow=False).perform()

    def _evaluate_run(self, run: Run, lanes: Lanes) -> Evaluation:
        return save_evaluation(self.store, self.manifest, run, self.feedbacks, lanes, self._policy or POLICY)

    def _warn(self, message: str) -> None:
        with suppress(Warning):  # where warnings are errors, they still must not reach the app
            warn(message, NotRecorded)


def _sync_lanes(lanes: Lanes, dirty: threading.Event, over: threading.Event) -> None:
    """Makes what was written survive a crash of the machine, once a second, so that no call waits for a disk."""
    while dirty.wait() and not over.wait(_SYNC_SECONDS):
        dirty.clear()
        with suppress(EngineError):  # a full disk is reported when something is written
            lanes.sync()


def resolve_feedbacks(
    feedbacks: Mapping[str, Scorer] | Iterable[Scorer] | Scorer, mode: str
) -> tuple[str, dict[str, Scorer]]:
    """The mode, and the feedbacks by name, from what the user gave; a SpecError if one cannot judge in that mode."""
    mode = str(getattr(mode, "value", mode))  # of an enum of such words
    if mode not in MODES:
        raise SpecError(f"mode is {described(mode)}; give one of {', '.join(MODES)}")
    scorers = name_feedbacks(feedbacks)
    for name, scorer in scorers.items():
        scorer.identify()  # refuses unbound arguments
        if mode == "deferred":
            stored_form(name, scorer, required=True)
    return mode, scorers


def _with_storable_version(app: Mapping[str, Any]) -> dict[str, Any]:
    """An app whose version is a text or a number: of a list or an object, the canonical text."""
    name, version = app.get("name"), app.get("version")
    if name is not None and not isinstance(name, str):
        raise SpecError(f"app: its name is {described(name)}; give a text")
    if version is None or isinstance(version, str | int | float):
        return dict(app)
    return {**app, "version": text_of(version)}


def check_policy(policy: Any) -> None:
    """Refuses values that are not a policy; the SpecError shows one."""
    if policy is not None and not isinstance(policy, Policy):
        raise SpecError(f"policy is {described(policy)}; give a Policy(timeout=…, retries=…), or none")
    if policy is not None:
        refuse_budget(policy)


def name_feedbacks(feedbacks: Mapping[str, Scorer] | Iterable[Scorer] | Scorer) -> dict[str, Scorer]:
    """Feedbacks by name, the second of the same name as `name 2`; a SpecError for what is not a feedback."""
    several: Any = [feedbacks] if isinstance(feedbacks, Scorer) else feedbacks
    if isinstance(several, str) or not isinstance(several, Iterable):
        raise SpecError(f"feedbacks is {described(several)}; give Feedback(function).on(…), or a list of such")
    if isinstance(several, Mapping):
        pairs = [*several.items()]
    else:
        pairs = [(str(getattr(each, "name", getattr(each, "kind", ""))), each) for each in several]
    by_name: dict[str, Scorer] = {}
    for name, scorer in pairs:
        if not isinstance(scorer, Scorer):
            what = with_article(type(scorer).__name__)
            raise SpecError(f"a feedback is {what}; give Feedback(function).on(…), or another scorer")
        distinct, n = check_name(name), 1
        while distinct in by_name:
            n += 1
            distinct = f"{name} {n}"
        by_name[distinct] = scorer
    return by_name


def check_metadata(metadata: Mapping[Any, Any]) -> None:
    """Refuses metadata that cannot become attributes of examples, and names the key."""
    for key in metadata:
        if not isinstance(key, str) or not key or key in OWN_COLUMNS or (key.startswith("_") and key.endswith("_")):
            own = ", ".join(OWN_COLUMNS)
            raise SpecError(f"{key!r} cannot be a key of metadata: give text other than {own} and _names_ like this")
    try:
        ids.encode(dict(metadata))
    except DataError as error:
        raise SpecError(f"metadata: {error}") from None


def _to_text(value: Any) -> bytes:
    """The canonical text of a value, which may be that already; values that are not data are described."""
    return orjson.dumps(value) if type(value) is Fragment else text_of(value).encode()


_living: set[RecordingWriter] = set()  # ended with the interpreter
_forking: weakref.WeakSet[RecordingWriter] = weakref.WeakSet()


def _end_all() -> None:
    """At the end of the interpreter, judges queued records and closes complete recordings."""
    for recording in list(_living):
        recording._end_with_interpreter()


def _fork_all() -> None:
    for recording in list(_forking):
        recording._forked()


atexit.register(_end_all)
call_after_fork(_fork_all)
