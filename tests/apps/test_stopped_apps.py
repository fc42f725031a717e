"""An app or a judge that was stopped loses no call without a warning, and judges on."""

from __future__ import annotations

import os
import shutil
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.feedback_functions import length, use

from evaluand import DirectoryStore, Feedback
from evaluand.apps.recording.judge import Worker
from evaluand.apps.recording.kind import RECORDINGS
from evaluand.apps.recording.workers import close_recording, recorded_policy
from evaluand.apps.recording.writer import NotRecorded, RecordingWriter
from evaluand.store import journal, leases
from evaluand.store.log import FileLog

APP = {"name": "rag", "version": "2", "app_id": "rag:2"}
LEASE_SECONDS = 0.2


@pytest.fixture
def folder(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(tmp_path / "store")


def close_while_stopped(recording: RecordingWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closes a recording as another process does after the leases of its app have run out."""
    heart = recording._lanes.records.leases._beating  # type: ignore[attr-defined]
    assert heart is not None
    heart.set()
    with monkeypatch.context() as patched:
        patched.setattr(leases, "LEASE_SECONDS", LEASE_SECONDS)
        time.sleep(1.5 * LEASE_SECONDS)
        close_recording(DirectoryStore(recording.store.root), recording.id)  # type: ignore[attr-defined]


def reports_of(action: Callable[[], object]) -> list[str]:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        action()
    return [str(each.message) for each in seen if each.category is NotRecorded]


def test_an_app_whose_recording_was_closed_while_it_was_stopped_reports_each_call(
    folder: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = RecordingWriter.begin(folder, APP)
    for number in range(3):
        use(recording, f"q{number}")
    close_while_stopped(recording, monkeypatch)
    closed = f"another process has closed recording {recording.id}"
    for number in range(2):
        assert reports_of(lambda n=number: use(recording, f"r{n}")) == [
            f"a call was not recorded: EngineError: {closed}; begin another one"
        ]
    at_end = f"2 calls of recording {recording.id} were not recorded: another process had closed it"
    assert reports_of(recording.end) == [at_end]
    assert reports_of(recording.close) == []
    assert recording.run is not None
    assert recording.run.counts == {"completed": 3}


@pytest.fixture
def closed(folder: DirectoryStore, monkeypatch: pytest.MonkeyPatch) -> RecordingWriter:
    """A recording of one call, which another process has closed while its app was stopped."""
    recording = RecordingWriter.begin(folder, APP)
    use(recording, "q")
    close_while_stopped(recording, monkeypatch)
    return recording


def test_calls_written_before_the_loss_is_noticed_are_counted(
    closed: RecordingWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(journal, "ASK_SECONDS", 60.0)
        assert reports_of(lambda: [use(closed, f"r{number}") for number in range(2)]) == []
    time.sleep(0.02)
    [warning] = reports_of(lambda: use(closed, "r2"))
    assert "without 2 earlier calls of this app" in warning
    [warning] = reports_of(closed.end)
    assert "3 calls" in warning


def test_calls_that_no_later_call_follows_are_counted_at_the_end(
    closed: RecordingWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "ASK_SECONDS", 60.0)
    use(closed, "r")
    assert reports_of(closed.end) == [
        f"1 call of recording {closed.id} was not recorded: another process had closed it"
    ]


@pytest.mark.skipif(os.name == "nt", reason="open files cannot be removed there")
def test_a_journal_that_was_removed_is_noticed_before_the_leases_are_renewed(folder: DirectoryStore) -> None:
    recording = RecordingWriter.begin(folder, APP)
    use(recording, "q")
    time.sleep(0.02)
    shutil.rmtree(folder.root / RECORDINGS / recording.id / "journal")
    [warning] = reports_of(lambda: use(recording, "r"))
    assert f"the journal of recording {recording.id} was removed, and 1 call of this app with it" in warning
    assert reports_of(recording.end) == [f"2 calls of recording {recording.id} were not recorded"]


def test_an_app_that_ends_after_a_full_disk_counts_the_calls_it_could_not_record(
    folder: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = RecordingWriter.begin(folder, APP)
    use(recording, "q0")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        assert len(reports_of(lambda: [use(recording, f"r{number}") for number in range(3)])) == 3
    use(recording, "q1")
    assert reports_of(recording.end) == [f"3 calls of recording {recording.id} were not recorded"]
    assert recording.run is not None
    assert recording.run.counts == {"completed": 2}


def test_a_judge_that_was_stopped_between_the_question_and_the_write_judges_again(
    folder: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    feedback = Feedback(length).on_output()
    with RecordingWriter.begin(folder, APP, [feedback], mode="deferred") as recording:
        for number in range(5):
            use(recording, f"q{number}")
    monkeypatch.setattr(leases, "LEASE_SECONDS", LEASE_SECONDS)
    policy = recorded_policy(folder.manifest(RECORDINGS, recording.id), 1)
    worker = Worker(folder, recording.id, recording.feedbacks, policy, 3, follow=False)
    [lane] = worker._lanes.judged.values()
    append, written = FileLog.append, list[bytes]()

    def stop_once(log: FileLog, data: bytes, *what: Any) -> bool:
        if log is lane._log:
            written.append(data)
            if len(written) == 2:
                lane.leases._beating.set()  # type: ignore[attr-defined]
                time.sleep(1.5 * LEASE_SECONDS)
                other = folder.lane(RECORDINGS, recording.id, "feedback0", None)
                other.refresh()
                assert other.leases.take(iter([1, 2, 3, 4])) == (1, 1)
                other.leases.release()
        return append(log, data, *what)

    monkeypatch.setattr(FileLog, "append", stop_once)
    assert worker.perform()
    judged = folder.lane(RECORDINGS, recording.id, "feedback0", None)
    judged.refresh()
    assert (judged.n_done, len(written)) == (5, 6)
    judged.close()
