"""Deferred judging: any number of processes that judge what an app has recorded, or still records."""

import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext, suppress
from multiprocessing.connection import wait
from shlex import quote
from typing import Any

from evaluand.apps.recording.feedback_import import Absent, ForeignCode, MissingModule, load_feedback, load_feedbacks
from evaluand.apps.recording.judge import Worker
from evaluand.apps.recording.kind import RECORDINGS
from evaluand.apps.recording.stored import Lanes, Recording, find_recording_id, recorded_policy, seal_recording
from evaluand.core.errors import EngineError, SpecError, warn
from evaluand.core.system import require_forks
from evaluand.engine.engines.processes import GRACE, fork, settle
from evaluand.engine.keyed_work import Progress, Tally
from evaluand.engine.policy import Policy
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
    """Judges what is missing in a deferred recording, and seals it when its app has ended and nothing is missing.

    Any number of processes may do so at the same time, and any of them may die: another one continues its work.

    Args:
        store: where the recording is.
        recording: its name, its id or the beginning of its id.
        workers: how many processes to fork for judging; 0 judges in this process.
        feedbacks: name → feedback; default: imported by the names that are stored.
        allow: modules that may be imported for that, in addition to evaluand's judges and, in a recording that you
            have begun in this store, first-party modules.
        policy: how feedbacks are called; default: one at a time in each process, with the app's timeout.
        follow: continue until the app has ended.
        progress: shows the progress.

    Returns:
        The recording, sealed or still open.

    Raises:
        SpecError: its feedbacks are not deferred, cannot be imported, or have changed.
        EngineError: workers end again and again without any result.
    """
    id = find_recording_id(store, recording)
    opened = Recording(store, id)
    if opened.is_sealed:
        return opened
    if opened.mode != "deferred":
        raise SpecError(
            f"recording {id} is judged by the app that records it (mode {opened.mode}); if that app has died, "
            f"`evaluand resume {id}` closes it"
        )
    if workers and isinstance(store, MemoryStore):
        raise SpecError("other processes cannot read a store in memory; work with workers=0")
    if workers:
        require_forks("workers", "work with workers=0")
    scorers = _load(opened, recording, allow) if feedbacks is None else _check_same(opened, feedbacks)
    policy, attempts = policy or recorded_policy(opened.manifest, 1), int(opened.manifest["spec"]["attempts"])
    tally = Tally(opened.name or "feedback")
    with closing(Lanes.of(store, opened.manifest)) as lanes, progress(tally) if progress else nullcontext():
        _warn_of_wait(lanes)
        _count(lanes, tally, kept=True)
        if workers:
            complete = _WorkerPool(store, id, scorers, policy, attempts, follow, workers, tally).perform()
        else:
            complete = Worker(store, id, scorers, policy, attempts, follow=follow).perform()
            _count(lanes, tally)
    return seal_recording(store, id, scorers, policy=policy) if complete else Recording(store, id)


def close_recording(
    store: Store,
    recording: str,
    *,
    allow: Sequence[str] = (),
    policy: Policy | None = None,
    progress: Progress | None = None,
    give_up: bool = False,
) -> Recording:
    """Closes a recording whose app has died, with everything that was recorded.

    Its feedbacks are imported and judge what is missing. If one cannot be imported or has changed, its scores stay and
    the records that it has not judged fail. A deferred recording, which other processes may still judge, one with a
    feedback whose module is not found from the current folder, and one of somebody else whose code is not allowed, are
    closed so only with `give_up`.

    The other parameters are those of `work`.

    Args:
        give_up: close such a recording even if feedbacks cannot be imported or have changed.

    Raises:
        SpecError: its app still records; it is deferred and a feedback cannot be imported, or has changed; the module
            of a feedback is not found; or somebody else has begun it and a feedback names code that is not allowed.
    """
    id = find_recording_id(store, recording)
    opened = Recording(store, id)
    if opened.is_sealed:
        return opened
    if _is_recorded(store, opened):
        raise SpecError(f"recording {id} is still being recorded; its app closes it")
    if opened.mode == "deferred" and not give_up:
        return work(store, id, allow=allow, policy=policy, progress=progress)
    scorers: dict[str, Scorer] = {}
    for name in opened.manifest["spec"]["feedbacks"]:
        try:
            scorers[name] = load_feedback(store, opened.manifest, name, allow=allow)
        except SpecError as error:
            if isinstance(error, ForeignCode | MissingModule) and not give_up:
                raise _with_give_up(error, recording) from None
            scorers[name] = Absent(opened.manifest, name, str(error))
    return seal_recording(store, id, scorers, evaluated=opened.mode != "none", policy=policy, progress=progress)


def _is_recorded(store: Store, recording: Recording) -> bool:
    with closing(Lanes.of(store, recording.manifest)) as lanes:
        _warn_of_wait(lanes)
        return lanes.records.leases.busy(patient=True)


def _warn_of_wait(lanes: Lanes) -> None:
    """Warns if only time will show whether a worker of another machine, or from before a restart, still lives."""
    for lane in (lanes.records, *lanes.judged.values()):
        if others := lane.leases.describe_others(only_distant=True):
            return warn(others)


def _load(recording: Recording, name: str, allow: Sequence[str]) -> dict[str, Scorer]:
    """The feedbacks of a recording; the error for one that cannot be loaded says how to close the recording."""
    try:
        return load_feedbacks(recording.store, recording.manifest, allow=allow)
    except SpecError as error:
        raise _with_give_up(error, name) from None


def _with_give_up(error: SpecError, name: str) -> SpecError:
    """The error for a feedback that cannot be loaded, which also says how to close the recording without it."""
    effect = "closes it without the missing scores; its run can then be evaluated with the present code"
    refused = SpecError(f"{error}; close_recording(store, {name!r}, give_up=True) {effect}")
    refused.for_commands = f"{error.for_commands}; `evaluand resume {quote(name)} --give-up` {effect}"
    return refused


def _check_same(recording: Recording, feedbacks: Mapping[str, Scorer]) -> dict[str, Scorer]:
    """The feedbacks, which must be those of the recording."""
    recorded = recording.manifest["spec"]["feedbacks"]
    for name in recorded:
        if name not in feedbacks:
            raise SpecError(f"the recording has the feedback {name!r}, which is missing in feedbacks=")
        if feedbacks[name].identify().spec != recorded[name]:
            raise SpecError(f"feedback {name!r} has changed since the recording was opened")
    return {name: feedbacks[name] for name in recorded}


def _count(lanes: Lanes, tally: Tally, *, kept: bool = False) -> None:
    lanes.refresh()
    tally.total = lanes.records.n_done * len(lanes.judged)
    done = sum(lane.n_done for lane in lanes.judged.values())
    if kept:
        tally.kept = done
    else:
        tally.called = done - tally.kept


class _WorkerPool:
    """Processes that judge, restarted when they die."""

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
        self._lanes = Lanes.of(store, store.manifest(RECORDINGS, id))
        self._workers, self._tally = workers, tally
        self.patience = (attempts + 1) * workers  # how many may die in a row without any result
        self._running: list[Any] = []

    def perform(self) -> bool:
        """Returns when the workers have nothing left to do: whether the recording is complete."""
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
                    code = _join_process(process)
                    complete |= code == _COMPLETE
                    if code not in (_COMPLETE, _LEFT):
                        deaths += 1
                        if deaths > self.patience:
                            raise EngineError(f"workers end again and again; the last one ended {_describe_exit(code)}")
                        self._running.append(self._fork())
        finally:
            self._end()
            self._lanes.close()
        return complete

    def _fork(self) -> Any:
        return fork(_serve, (os.getpid(), *self._worker), "evaluand feedback")

    def _end(self) -> None:
        """Ends the workers, which release their leases; kills those that do not end."""
        for process in self._running:
            process.terminate()
        until = time.monotonic() + GRACE
        for process in self._running:
            process.join(max(0.0, until - time.monotonic()))
            if process.is_alive():
                process.kill()
            _join_process(process)


_COMPLETE, _LEFT = 0, 7  # exit codes of workers: the recording is complete, or more may be recorded


def _join_process(process: Any) -> int:
    process.join()
    code = int(process.exitcode)
    process.close()
    return code


def _describe_exit(code: int) -> str:
    if code >= 0:
        return f"with exit status {code}"
    return f"by {signal.Signals(-code).name}" if -code in {*signal.Signals} else f"by signal {-code}"


def _serve(
    parent: int, store: Store, id: str, scorers: Mapping[str, Scorer], policy: Policy, attempts: int, follow: bool
) -> None:
    """Judges in a forked process."""
    settle(parent)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    code = _LEFT
    with suppress(KeyboardInterrupt):
        if Worker(store, id, scorers, policy, attempts, follow=follow).perform():
            code = _COMPLETE
    raise SystemExit(code)
