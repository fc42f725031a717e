"""Records of an app whose lines are missing are reported as far as anything shows that they were written."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from support.feedback_functions import feedbacks, length, use
from support.forks import call_in_fork

from evaluand import DirectoryStore, Feedback
from evaluand.apps.recording.kind import RECORDINGS
from evaluand.apps.recording.stored import Lanes, Recording, read_progress
from evaluand.apps.recording.workers import close_recording, work
from evaluand.apps.recording.writer import NotRecorded, RecordingWriter
from evaluand.cli import main
from evaluand.core.errors import EvaluandWarning
from evaluand.report.verification import verify
from evaluand.store.shards import SHARD_SLOTS

APP = {"name": "rag", "version": "2", "app_id": "rag:2"}
RECORDS = 5

DAMAGES: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "first": lambda lines: lines[1:],
    "middle": lambda lines: [*lines[:2], *lines[3:]],
    "last": lambda lines: lines[:-2],
    "all": lambda lines: [],
}


@pytest.fixture
def folder(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(tmp_path / "store")


def segment_of(store: DirectoryStore, id: str) -> Path:
    [segment] = (store.root / RECORDINGS / id).glob("journal/records/*.lines")
    return segment


def ended(store: DirectoryStore, mode: str) -> RecordingWriter:
    """A recording whose app has ended and did not close it."""
    recording = RecordingWriter.begin(store, APP, feedbacks() if mode == "with_app" else {}, mode=mode)
    for number in range(RECORDS):
        use(recording, f"q{number}")
    RecordingWriter._stop(recording)
    return recording


def remove_lines(store: DirectoryStore, id: str, what: str) -> None:
    segment = segment_of(store, id)
    left = DAMAGES[what](segment.read_bytes().splitlines(keepends=True))
    if left:
        segment.write_bytes(b"".join(left))
    else:
        segment.unlink()


def check_missing(store: DirectoryStore, id: str, slots: str, count: int) -> Recording:
    """Verifies and closes a recording whose journal lacks records."""
    *_, fault = verify(store, RECORDINGS, id)
    assert fault.where == f"{RECORDINGS} {id}"
    assert f"which other lines or leases show: {slots}" in fault.message
    with pytest.warns(EvaluandWarning, match=f"recording {id}: at least {count} record.* show: {slots}; they are lost"):
        recording = close_recording(store, id, give_up=True)
    assert store.manifest(RECORDINGS, id)["provenance"]["missing_records"] == count
    assert verify(store, RECORDINGS, id) == []
    return recording


@pytest.mark.parametrize(
    ("what", "slots", "count"),
    [("first", "0", 1), ("middle", "2", 1), ("last", "3, 4", 2), ("all", "0, 1, 2 and 2 more", 5)],
)
def test_records_that_were_judged_are_missing(
    folder: DirectoryStore, what: str, slots: str, count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    id = ended(folder, "with_app").id
    remove_lines(folder, id, what)
    recording = check_missing(folder, id, slots, count)
    assert (recording.run is None) == (what == "all")
    if recording.run is not None:
        assert recording.run.counts == {"completed": RECORDS - count}
    main(["show", id, "--store", str(folder.root)], standalone_mode=False)
    assert f"at least {count} record" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("what", "slots", "count"), [("first", "0", 1), ("middle", "2", 1), ("all", "0 and 4 more", 5)]
)
def test_records_that_nobody_judged_are_missing_if_later_ones_or_the_end_of_the_app_show_them(
    folder: DirectoryStore, what: str, slots: str, count: int
) -> None:
    id = ended(folder, "none").id
    remove_lines(folder, id, what)
    check_missing(folder, id, slots, count)


def test_the_last_records_are_missing_if_the_leases_of_their_app_say_how_many_there_were(
    folder: DirectoryStore,
) -> None:
    id = ended(folder, "none").id
    remove_lines(folder, id, "last")
    check_missing(folder, id, "2 at an end", 2)


def test_a_recording_whose_journal_is_missing_has_a_fault(folder: DirectoryStore) -> None:
    id = ended(folder, "none").id
    journal = folder.root / RECORDINGS / id / "journal"
    assert verify(folder, RECORDINGS, id) == []
    shutil.rmtree(journal)
    [fault] = verify(folder, RECORDINGS, id)
    assert (fault.where, fault.message.partition(";")[0]) == (str(journal), "is missing, and with it what was finished")
    with pytest.warns(EvaluandWarning, match="journal: is missing, and with it what was finished$"):
        assert close_recording(folder, id).run is None
    assert verify(folder, RECORDINGS, id) == []


@pytest.mark.parametrize(("n_lost", "waiting"), [(0, 2), (1, 2), (2, 2), (3, 1)])
def test_scores_of_missing_records_do_not_count_for_those_that_wait_to_be_judged(
    folder: DirectoryStore, n_lost: int, waiting: int
) -> None:
    recording = RecordingWriter.begin(folder, APP, [Feedback(length).on_output()], mode="deferred")
    for number in range(4):
        use(recording, f"q{number}")
        if number == 1:
            assert not work(folder, recording.id).is_sealed
    recording.end()
    segment = segment_of(folder, recording.id)
    segment.write_bytes(b"".join(segment.read_bytes().splitlines(keepends=True)[n_lost:]))
    progress = read_progress(folder, recording.id)
    assert progress.feedbacks == {"length": {"scored": 2, "waiting": waiting}}
    with closing(Lanes.of(folder, folder.manifest(RECORDINGS, recording.id))) as lanes:
        lanes.refresh()
        assert not lanes.are_complete


def test_records_that_a_worker_judges_now_are_missing(folder: DirectoryStore) -> None:
    recording = RecordingWriter.begin(folder, APP, feedbacks(), mode="deferred")
    for number in range(RECORDS):
        use(recording, f"q{number}")
    RecordingWriter._stop(recording)
    worker = Lanes.of(folder, recording.manifest)
    worker.refresh()
    assert next(iter(worker.judged.values())).leases.take([3]) == (3, 0)
    remove_lines(folder, recording.id, "last")
    *_, fault = verify(folder, RECORDINGS, recording.id)
    assert "show: 3" in fault.message
    worker.close()


def test_an_app_that_died_before_its_first_record_has_lost_nothing(folder: DirectoryStore) -> None:
    recording = RecordingWriter.begin(folder, APP, mode="none")
    use(recording, "q")
    assert call_in_fork(recording._claim) == 0
    for number in range(SHARD_SLOTS + 1):  # the block of the fork is passed over
        use(recording, f"q{number}")
    with closing(Lanes.of(folder, recording.manifest)) as lanes:
        lanes.refresh()
        assert lanes.records.slots > 2 * SHARD_SLOTS
    assert verify(folder, RECORDINGS, recording.id) == []
    recording.close()
    assert "missing_records" not in folder.manifest(RECORDINGS, recording.id)["provenance"]
    assert verify(folder, RECORDINGS, recording.id) == []


def test_a_call_that_could_not_be_recorded_is_not_missing(
    folder: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = RecordingWriter.begin(folder, APP, feedbacks(), mode="with_app")
    use(recording, "q0")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.warns(NotRecorded, match="No space left"):
            use(recording, "q1")
    use(recording, "q2")
    assert verify(folder, RECORDINGS, recording.id) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        recording.close()
    assert recording.run is not None
    assert [example.input for example in recording.run.dataset] == ["q0", "q2"]
