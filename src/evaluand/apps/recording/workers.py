"""Deferred work: any number of processes that judge what an app has recorded, or still records."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext, suppress
from multiprocessing.connection import wait
from shlex import quote
from typing import Any

from evaluand.apps.recording.feedback_import import Absent, all_loaded, loaded
from evaluand.apps.recording.judge import Worker
from evaluand.apps.recording.stored import KIND, Lanes, Recording, found, policy_of, sealed, standing
from evaluand.core.errors import EngineError, SpecError
from evaluand.engine.engine import Policy
from evaluand.engine.keyed_work import Progress, Tally
from evaluand.engine.processes import GRACE, forked, settle
from evaluand.evaluation.scorer import Scorer
from evaluand.store.store import MemoryStore, Store

_LOOK_SECONDS = 0.25


def work(
    store: Store,
    recording: str,
    *,
    workers: int = 0,
    feedbacks: Mapping[str, Scorer] | None = None,
    allow: Sequence[str] = (),
    policy: Policy | None = None,
    follow: bool = False,
    progress: Progress | None = None,
) -> Recording:
    """Judges what is missing of a deferred recording, and seals it when its app has ended and nothing is missing.

    Any number of processes may do so at the same time, and any of them may die: what it was at is done by another.

    Args:
        store: where the recording is.
        recording: its name, its id or the beginning of one.
        workers: how many processes to judge in, forked from this one; with 0 this process does.
        feedbacks: name → feedback; if not given, they are imported by the names that are stored.
        allow: modules beside first-party ones and evaluand's that may be imported for that.
        policy: how feedbacks are asked; one at a time in each process if not given, and no longer than by the app.
        follow: go on until the app has ended.
        progress: shows how far it is.

    Returns:
        The recording, sealed or still open.

    Raises:
        SpecError: its feedbacks are not deferred, or cannot be imported, or are not what they were.
        EngineError: workers end again and again without having done anything.
    """
    id = found(store, recording)
    made = Recording(store, id)
    if made.is_sealed:
        return made
    if made.mode != "deferred":
        raise SpecError(
            f"recording {id} is judged by its own app (mode {made.mode}); if that has died, `evaluand resume` closes it"
        )
    if workers and isinstance(store, MemoryStore):
        raise SpecError("a store in memory has no other processes; work with workers=0")
    scorers = _loaded(made, recording, allow) if feedbacks is None else _same(made, feedbacks)
    policy, attempts = policy or policy_of(made.manifest, 1), int(made.manifest["spec"]["attempts"])
    tally = Tally(made.name or "feedback")
    with closing(Lanes.of(store, made.manifest)) as lanes, progress(tally) if progress else nullcontext():
        _count(lanes, tally, kept=True)
        if workers:
            complete = _Crew(store, id, scorers, policy, attempts, follow, workers, tally).perform()
        else:
            complete = Worker(store, id, scorers, policy, attempts, follow=follow).perform()
            _count(lanes, tally)
    return sealed(store, id, scorers, policy=policy) if complete else Recording(store, id)


def closed(
    store: Store,
    recording: str,
    *,
    allow: Sequence[str] = (),
    policy: Policy | None = None,
    progress: Progress | None = None,
    give_up: bool = False,
) -> Recording:
    """A recording whose app has died, sealed with all that was recorded.

    Its feedbacks are imported, and do what is missing. One that cannot be imported, or is not what it was, keeps what
    it has said; what it has not judged is failed. Of a deferred recording, which others may still judge, that is so
    only where it is asked for.

    Args:
        store: where the recording is.
        recording: its name, its id or the beginning of one.
        allow: modules beside first-party ones and evaluand's that may be imported.
        policy: how feedbacks are asked.
        progress: shows how far it is.
        give_up: whether a deferred one is closed without the judgements of feedbacks that cannot be had as they were.

    Raises:
        SpecError: its app still records; or it is deferred and a feedback cannot be imported, or is not what it was.
    """
    id = found(store, recording)
    made = Recording(store, id)
    if made.is_sealed:
        return made
    if standing(store, id).recording:
        raise SpecError(f"recording {id} is still being recorded; its app closes it")
    if made.mode == "deferred" and not give_up:
        return work(store, id, allow=allow, policy=policy, progress=progress)
    scorers: dict[str, Scorer] = {}
    for name in made.manifest["spec"]["feedbacks"]:
        try:
            scorers[name] = loaded(made.manifest, name, allow=allow)
        except SpecError as error:
            scorers[name] = Absent(made.manifest, name, str(error))
    return sealed(store, id, scorers, evaluated=made.mode != "none", policy=policy, progress=progress)


def _loaded(made: Recording, called: str, allow: Sequence[str]) -> dict[str, Scorer]:
    """The feedbacks of a recording; where one cannot be had, with what can be done."""
    try:
        return all_loaded(made.manifest, allow=allow)
    except SpecError as error:
        told = "closes it without what is not judged yet; its run can then be evaluated by the code there is"
        command = f"; evaluand resume {quote(called)} --give-up {told}"
        refused = SpecError(f"{error}; closed(store, {called!r}, give_up=True) {told}")
        refused.for_commands = error.for_commands + command
        raise refused from None


def _same(recording: Recording, feedbacks: Mapping[str, Scorer]) -> dict[str, Scorer]:
    """Feedbacks that are those of a recording."""
    asked = recording.manifest["spec"]["feedbacks"]
    for name in asked:
        if name not in feedbacks:
            raise SpecError(f"the recording has the feedback {name!r}, which is not among those given")
        if feedbacks[name].identify().spec != asked[name]:
            raise SpecError(f"feedback {name!r} is not what it was when the recording was opened")
    return {name: feedbacks[name] for name in asked}


def _count(lanes: Lanes, tally: Tally, *, kept: bool = False) -> None:
    lanes.refresh()
    tally.total = lanes.records.n_done * len(lanes.judged)
    done = sum(lane.n_done for lane in lanes.judged.values())
    if kept:
        tally.kept = done
    else:
        tally.called = done - tally.kept


class _Crew:
    """Processes that judge, and the one that looks after them and takes the place of none."""

    def __init__(
        self,
        store: Store,
        id: str,
        scorers: Mapping[str, Scorer],
        policy: Policy,
        attempts: int,
        follow: bool,
        workers: int,
        tally: Tally,
    ) -> None:
        self._worker = (store, id, scorers, policy, attempts, follow)
        self._lanes = Lanes.of(store, store.manifest(KIND, id))
        self._workers, self._tally = workers, tally
        self.patience = (attempts + 1) * workers  # how many may end one after the other without having done anything
        self._running: list[Any] = []

    def perform(self) -> bool:
        """Returns when the workers have nothing left to do; whether that is all there will be."""
        deaths, done, complete = 0, -1, False
        self._running = [self._fork() for _ in range(self._workers)]
        try:
            while self._running:
                wait([process.sentinel for process in self._running], _LOOK_SECONDS)
                _count(self._lanes, self._tally)
                if self._tally.done > done:
                    deaths, done = 0, self._tally.done
                for process in [p for p in self._running if not p.is_alive()]:
                    self._running.remove(process)
                    code = _buried(process)
                    complete |= code == _COMPLETE
                    if code not in (_COMPLETE, _LEFT):
                        deaths += 1
                        if deaths > self.patience:
                            raise EngineError(f"workers end again and again; the last one {_ended(code)}")
                        self._running.append(self._fork())
        finally:
            self._end()
            self._lanes.close()
        return complete

    def _fork(self) -> Any:
        return forked(_serve, (os.getpid(), *self._worker), "evaluand feedback")

    def _end(self) -> None:
        """Has workers give back what they hold; those that do not end are killed."""
        for process in self._running:
            process.terminate()
        until = time.monotonic() + GRACE
        for process in self._running:
            process.join(max(0.0, until - time.monotonic()))
            if process.is_alive():
                process.kill()
            _buried(process)


_COMPLETE, _LEFT = 0, 7  # exit codes of workers: all is done, or more may be recorded


def _buried(process: Any) -> int:
    process.join()
    code = int(process.exitcode)
    process.close()
    return code


def _ended(code: int) -> str:
    if code >= 0:
        return f"with exit status {code}"
    return f"by {signal.Signals(-code).name}" if -code in {*signal.Signals} else f"by signal {-code}"


def _serve(
    parent: int, store: Store, id: str, scorers: Mapping[str, Scorer], policy: Policy, attempts: int, follow: bool
) -> None:
    """Judges, in a process of its own."""
    settle(parent)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    code = _LEFT
    with suppress(KeyboardInterrupt):
        if Worker(store, id, scorers, policy, attempts, follow=follow).perform():
            code = _COMPLETE
    raise SystemExit(code)
