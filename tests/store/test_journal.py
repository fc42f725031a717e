"""What an open artifact keeps: which lines count, whatever was cut short, and who works on what."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import orjson
import pytest
from hypothesis import given, strategies as st
from support.fresh import run_python
from support.journals import lines_of
from support.patience import PATIENCE
from support.unread import Unread
from support.worker_process import HOLDS, Process, open_lane, processes

from evaluand.core.errors import EngineError, EvaluandWarning, collect_warnings
from evaluand.core.system import boot_seconds, this_process
from evaluand.data.dataset import Dataset
from evaluand.engine.engine import Recipe
from evaluand.engine.keyed_work import KeyedWork
from evaluand.engine.outcome import Aborted, Outcome
from evaluand.engine.policy import Policy
from evaluand.report.verification import verify
from evaluand.run.runner import Run, Runner
from evaluand.run.task import task
from evaluand.store import io as store_io, leases, segments, shards
from evaluand.store.directory import DirectoryStore
from evaluand.store.io import Disk, DiskFolder
from evaluand.store.journal import MOST_SLOTS, MemoryLog, WorkLog
from evaluand.store.lease_state import State, Worker, pack_state
from evaluand.store.leases import FileLeases
from evaluand.store.log import FileLog
from evaluand.store.memory_leases import MemoryLeases
from evaluand.store.segments import add_checksums, find_damage, seed_of
from evaluand.store.shards import SHARD_SLOTS

SLOTS = 12
SCOPE = "runs/00/calls"


def log_in(folder: Path) -> FileLog:
    return FileLog(DiskFolder(folder), SCOPE)


def lane(folder: Path, slots: int | None = SLOTS) -> WorkLog:
    return WorkLog(log_in(folder), MemoryLeases(), slots)


@contextmanager
def closing(*lanes: WorkLog) -> Iterator[None]:
    try:
        yield
    finally:
        for one in lanes:
            one.close()


def line(slot: int, body: str = "") -> bytes:
    return f'[{slot},"{body}"]\n'.encode()


def done(one: WorkLog) -> set[int]:
    return {slot for slot in range(one.slots) if one.is_done(slot)}


# Which lines count


@dataclass
class Segments:
    """What is known of the segments in a folder, told without the code under test.

    Attributes:
        first: of each slot, the line that counts for a reader that looks when `look` is called.
    """

    folder: Path
    first: dict[int, bytes] = field(default_factory=dict)
    seen: dict[str, int] = field(default_factory=dict)

    def look(self) -> None:
        for name in sorted(os.listdir(self.folder)):
            whole = (self.folder / name).read_bytes().split(b"\n")[:-1]  # what follows the last line feed is torn
            for text in whole[self.seen.get(name, 0) :]:
                content = text[:-8]  # without its checksum
                self.first.setdefault(int(content[1:].split(b",")[0]), content + b"\n")
            self.seen[name] = len(whole)


APPEND = st.tuples(st.just("append"), st.integers(0, 3), st.lists(st.integers(0, SLOTS - 1), min_size=1, max_size=4))
TORN = st.tuples(st.just("torn"), st.integers(0, 3), st.integers(0, SLOTS - 1), st.integers(1, 9))
REFRESH = st.tuples(st.just("refresh"))


@given(
    steps=st.lists(st.one_of(APPEND, APPEND, TORN, REFRESH), max_size=40), chunk=st.sampled_from([1, 7, 64, 1 << 20])
)
def test_what_is_done_is_the_set_of_complete_lines_whoever_wrote_them_and_the_first_counts(
    steps: list[Any], chunk: int
) -> None:
    folder = Path(tempfile.mkdtemp())
    logs: list[FileLog] = []
    writers: dict[int, FileLog] = {}

    def log() -> FileLog:
        logs.append(log_in(folder))
        return logs[-1]

    reader, expected = WorkLog(log(), MemoryLeases(), SLOTS), Segments(folder)
    try:
        with patch.object(segments, "CHUNK_BYTES", chunk):
            for count, step in enumerate([*steps, ("refresh",)]):
                if step[0] == "refresh":
                    reader.refresh()
                    expected.look()
                    assert done(reader) == set(expected.first)
                    assert reader.n_done == len(expected.first)
                    assert lines_of(reader) == [expected.first[slot] for slot in sorted(expected.first)]
                    continue
                if step[1] not in writers:
                    writers[step[1]] = log()
                if step[0] == "append":
                    body = f"{step[1]}-{count}-" + "x" * (count % 5 * 9)
                    WorkLog(writers[step[1]], MemoryLeases(), SLOTS).append(
                        b"".join(line(slot, body) for slot in step[2])
                    )
                else:  # this writer dies while it writes; another takes its number
                    writer = writers.pop(step[1])
                    writer.append(line(step[2], f"torn-{count}"))
                    os.truncate(folder / writer.segment, writer.size(writer.segment) - step[3])

            newcomer, reported = WorkLog(log(), MemoryLeases(), SLOTS), Segments(folder)
            newcomer.refresh()
            reported.look()
            assert lines_of(newcomer) == [reported.first[slot] for slot in sorted(reported.first)]
            assert done(newcomer) == done(reader)
            once = list(WorkLog(log(), MemoryLeases(), None).read_through())
            assert sorted(once) == [orjson.loads(reported.first[slot]) for slot in sorted(reported.first)]
    finally:
        for one in logs:
            one.close()
        shutil.rmtree(folder)


def test_a_line_counts_once_its_end_is_written(tmp_path: Path) -> None:
    segment = tmp_path / "00000000000000000001-aaaaaaaa.jsonl"
    segment.write_bytes(line(0) + b'[1,"half')
    reader = lane(tmp_path)
    with closing(reader):
        reader.refresh()
        assert done(reader) == {0}
        with segment.open("ab") as file:
            file.write(b' and the rest"]\n')
        reader.refresh()
        assert done(reader) == {0, 1}
        assert lines_of(reader) == [line(0), line(1, "half and the rest")]


def test_a_line_longer_than_what_is_read_at_once_is_read_whole(tmp_path: Path) -> None:
    long = line(3, "x" * (3 * segments.CHUNK_BYTES))
    writer, reader = lane(tmp_path), lane(tmp_path)
    with closing(writer, reader):
        writer.append(line(1) + long + line(5))
        reader.refresh()
        assert lines_of(reader) == [line(1), long, line(5)]
        assert list(reader.read_through()) == [orjson.loads(text) for text in lines_of(reader)]


def test_a_long_line_that_was_never_finished_counts_for_nothing(tmp_path: Path) -> None:
    (tmp_path / "1.jsonl").write_bytes(line(1) + line(3, "x" * (3 * segments.CHUNK_BYTES))[:-2])
    reader = lane(tmp_path)
    with closing(reader):
        reader.refresh()
        assert done(reader) == {1}


def test_files_that_are_no_segments_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes").write_bytes(b"not lines")
    (tmp_path / "notes.txt").write_bytes(b"[1,]\n")
    reader = lane(tmp_path)
    with closing(reader):
        reader.refresh()
        assert reader.n_done == 0


def test_a_writer_that_wrote_nothing_leaves_no_segment(tmp_path: Path) -> None:
    lane(tmp_path).close()
    assert os.listdir(tmp_path) == []


def test_a_log_in_memory_counts_lines_like_one_on_disk(tmp_path: Path) -> None:
    for log in (MemoryLog(), log_in(tmp_path)):
        one = WorkLog(log, MemoryLeases(), SLOTS)
        with closing(one):
            one.append(line(4, "first") + line(2))
            one.append(line(4, "second"))
            one.refresh()
            assert lines_of(one) == [line(2), line(4, "first")]
            assert one.n_done == 2


DAMAGED_LINES = [
    pytest.param(b"\n", id="an empty line"),
    pytest.param(b"\x00\x00\x00\x00\n", id="zeros"),
    pytest.param(b"[x,1]\n", id="no number"),
    pytest.param(b"[1]\n", id="no fields"),
    pytest.param(b"1,2]\n[\n", id="cut at the front"),
    pytest.param(b"[1.5,2]\n", id="a fraction"),
    pytest.param(b"[-1,2]\n", id="a slot below the first"),
    pytest.param(b"[12,2]\n", id="a slot beyond the last"),
    pytest.param(b"[99999999999999999999,2]\n", id="a slot far beyond the last"),
    pytest.param(b'[1,{"void":[3,4]}]\n', id="a rule with the wrong types"),
    pytest.param(b'[1,{"void":[]}]\n', id="a rule without a place"),
    pytest.param(b'[1,{"fence":["a",4]}]\n', id="a fence of a slot"),
]


@pytest.mark.parametrize("has_checksum", [False, True])
@pytest.mark.parametrize("damage", DAMAGED_LINES)
def test_a_line_that_is_none_is_reported_with_its_number_and_stops_nothing(
    tmp_path: Path, damage: bytes, has_checksum: bool
) -> None:
    name = "0007.lines" if has_checksum else "0007.jsonl"
    text = line(0) + damage + line(2)
    seed = seed_of(SCOPE, name)
    (tmp_path / name).write_bytes(add_checksums(text, seed) if has_checksum else text)
    reader = lane(tmp_path)
    with closing(reader):
        reader.refresh()
        assert lines_of(reader) == [line(0), line(2)]
        assert list(reader.read_through()) == [[0, ""], [2, ""]]
        assert reader.damage()
        assert {fault.where for fault in reader.damage()} <= {f"{tmp_path / name}:{n}" for n in (2, 3)}
        assert all(fault.message.endswith("it counts as not done") for fault in reader.damage())


def test_readers_from_before_and_after_a_fence_agree_on_what_counts(tmp_path: Path) -> None:
    stopped, taker = log_in(tmp_path), lane(tmp_path)
    early = lane(tmp_path)
    stopped.append(line(0, "in time") + line(1, "in time"))
    offset = stopped.size(stopped.segment)
    stopped.append(line(2, "late") + line(3, "late") + line(4, "late"))
    with closing(taker, early):
        early.refresh()
        assert done(early) == {0, 1, 2, 3, 4}
        assert taker.append(line(2, "by the taker"))
        early.refresh()
        taker.fence(stopped.segment, offset)
        stopped.append(line(5, "still late"))
        assert taker.append(line(4, "by the taker"))
        newcomer = lane(tmp_path)
        expected = [line(0, "in time"), line(1, "in time"), line(2, "by the taker"), line(4, "by the taker")]
        for reader in (early, newcomer, taker):
            reader.refresh()
            assert lines_of(reader) == expected
            assert sorted(reader.read_through()) == [orjson.loads(each) for each in expected]
            assert reader.n_done == 4
        newcomer.close()
    stopped.close()


def test_the_fence_of_a_segment_that_was_not_read_yet_counts(tmp_path: Path) -> None:
    taker, late = lane(tmp_path), log_in(tmp_path)
    with closing(taker):
        taker.fence(late.segment, 0)
        late.append(line(0))
        taker.fence(late.segment, 1 << 40)  # the first of two fences of a segment is the one that counts
        taker.refresh()
        assert done(taker) == set()
    late.close()


def test_a_line_that_is_void_does_not_count_should_damage_have_moved_it(tmp_path: Path) -> None:
    writer = lane(tmp_path)
    with closing(writer):
        writer.append(line(0) + line(1, "void"))
        writer.refresh()
        writer.void([1])
        assert done(writer) == {0}
    [segment] = tmp_path.iterdir()
    segment.write_bytes(b"".join(segment.read_bytes().splitlines(keepends=True)[1:]))
    reader = lane(tmp_path)
    with closing(reader):
        reader.refresh()
        assert done(reader) == set()


def test_a_line_that_is_void_does_not_count_in_whatever_order_segments_are_read(tmp_path: Path) -> None:
    early, late = lane(tmp_path), lane(tmp_path)
    with closing(early, late):
        late.append(line(0) + line(1, "void"))
        early.refresh()
        early.void([1])
        segment = tmp_path / sorted(os.listdir(tmp_path))[1]
        segment.write_bytes(segment.read_bytes().splitlines(keepends=True)[1])  # damage moves it
        reader = lane(tmp_path)
        with closing(reader):
            reader.refresh()
            assert done(reader) == set()


def test_a_line_of_an_earlier_version_without_a_checksum_must_be_json(tmp_path: Path) -> None:
    (tmp_path / "1.jsonl").write_bytes(line(0) + b'[1,"half\n' + b'[2,"a"]]\n' + line(3))
    reader = lane(tmp_path)
    with closing(reader):
        reader.refresh()
        assert done(reader) == {0, 3}
        assert [fault.where for fault in reader.damage()] == [f"{tmp_path / '1.jsonl'}:{n}" for n in (2, 3)]


def test_a_segment_counts_in_its_own_log_and_run_only(tmp_path: Path) -> None:
    log = FileLog(DiskFolder(tmp_path, "here"), "runs/01/calls")
    (tmp_path / "here").mkdir()
    log.append(line(0))
    log.close()
    for scope, count in (("runs/01/calls", 1), ("runs/02/calls", 0), ("runs/01/scorer0", 0)):
        reader = WorkLog(FileLog(DiskFolder(tmp_path, "here"), scope), MemoryLeases(), SLOTS)
        with closing(reader):
            reader.refresh()
            assert (reader.n_done, len(reader.damage())) == (count, 1 - count)


def test_a_line_that_is_damaged_after_it_was_read_is_an_error_and_not_a_result(tmp_path: Path) -> None:
    writer, reader = lane(tmp_path), lane(tmp_path)
    with closing(writer, reader):
        writer.append(line(0) + line(1, "a"))
        for one in (writer, reader):
            one.refresh()
        [segment] = tmp_path.iterdir()
        segment.write_bytes(segment.read_bytes().replace(b'"a"', b'"b"'))
        for one in (writer, reader):
            assert one.line(0) == line(0)
            for read in (lambda one: one.line(1), lines_of, lambda one: list(one.records())):
                with pytest.raises(EngineError, match="was damaged after it had been read; start again"):
                    read(one)
            assert list(one.read_through()) == [[0, ""]]


class RecordingDisk(Disk):
    """Remembers what was synced: names of files, or `folder`."""

    def __init__(self) -> None:
        self.synced: list[str] = []

    def sync(self, handle: int) -> None:
        path = Path(f"/proc/self/fd/{handle}").resolve()
        self.synced.append("folder" if path.is_dir() else path.name)
        super().sync(handle)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="names of open files are read from /proc")
def test_the_name_of_a_new_segment_survives_a_crash_from_its_first_sync_on(tmp_path: Path) -> None:
    log, disk = log_in(tmp_path), RecordingDisk()
    first = log.segment
    with patch.object(store_io, "disk", disk):
        log.sync()
        assert disk.synced == []
        log.append(line(0))
        log.sync()
        log.append(line(1))
        log.sync()
        assert disk.synced == [first, "folder", first]
        log.restart()
        log.append(line(2))
        log.sync()
        assert disk.synced[3:] == [first, log.segment, "folder"]
    log.close()


def test_a_segment_that_is_restarted_goes_on_under_another_name(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    first = log.segment
    log.append(line(0))
    log.restart()
    assert log.segment != first
    assert (log.size(first), log.size(log.segment)) == (len(line(0)) + 8, 0)
    log.append(line(1))
    assert [*log.segments()] == [first, log.segment]
    log.close()


def test_a_lane_that_grows_has_the_slots_up_to_the_last_that_was_written(tmp_path: Path) -> None:
    reader = WorkLog(log_in(tmp_path), MemoryLeases(), None)
    with closing(reader):
        for slots in ([0], [*range(2, 40)], [100], [41]):
            reader.append(b"".join(map(line, slots)))
            reader.refresh()
            assert reader.slots == max(done(reader)) + 1
        assert done(reader) == {0, *range(2, 40), 41, 100}
        assert (reader.n_done, len(lines_of(reader)), reader.is_done(101)) == (41, 41, False)


def test_a_slot_far_beyond_what_was_recorded_is_damaged_and_takes_no_memory(tmp_path: Path) -> None:
    writer = lane(tmp_path, None)
    with closing(writer):
        writer.append(line(0) + line(MOST_SLOTS - 1) + line(1))
        writer.refresh()
        assert (done(writer), writer.slots) == ({0, 1}, 2)
        assert [fault.message for fault in writer.damage()] == [
            "damaged: its slot is out of range; it counts as not done"
        ]


def test_a_gigantic_damaged_line_is_passed_over_without_reading_it_into_memory(tmp_path: Path) -> None:
    seed = seed_of(SCOPE, "1.lines")
    text = add_checksums(line(0), seed) + bytes(100) + b"\n" + add_checksums(line(1), seed) + b"[" + b" " * 300
    (tmp_path / "1.lines").write_bytes(text)
    with patch.object(segments, "CHUNK_BYTES", 16), patch.object(segments, "MAX_LINE_BYTES", 128):
        reader = lane(tmp_path)
        with closing(reader):
            reader.refresh()
            assert done(reader) == {0, 1}
            places = [f"{tmp_path / '1.lines'}:{n}" for n in (2, 4)]
            assert [fault.where for fault in reader.damage()] == places
        assert [damage.line for damage in find_damage(log_in(tmp_path))] == [2, 4]


def open_run(store: DirectoryStore, version: str = "1") -> Callable[[], Run]:
    """A run that stopped half-way; gives what resumes it."""
    stopping = Unread(True)

    def answer(number: int) -> int:
        if stopping.value and number == 60:
            raise ValueError("sixty")
        return number

    def resume(policy: Policy) -> Run:
        data = Dataset.from_rows([{"input": i} for i in range(100)])
        return Runner(store, policy).run(task(version=version)(answer), data)

    with pytest.raises(Aborted):
        resume(Policy(abort_on_error=True))
    stopping.value = False
    return lambda: resume(Policy())


@pytest.mark.parametrize(
    "damaged",
    [
        pytest.param(lambda text: text.replace(b'"', b"\x00", 1), id="a byte"),
        pytest.param(lambda text: text[: len(text) // 2] + b"\n", id="the second half"),
        pytest.param(lambda text: text.split(b",")[0] + b",1]\n", id="the fields"),
        pytest.param(lambda text: text.replace(b'"completed"', b'"compldted"'), id="the status"),
        pytest.param(lambda text: text[:-9] + text[-9:].upper(), id="a letter of the checksum"),
        pytest.param(lambda text: b"", id="all of it"),
    ],
)
def test_the_call_of_a_damaged_line_is_repeated_and_no_other(tmp_path: Path, damaged: Callable[[bytes], bytes]) -> None:
    resume = open_run(DirectoryStore(tmp_path))
    segment = next(path for path in tmp_path.glob("runs/*/journal/*/*.lines") if path.stat().st_size)
    lines = segment.read_bytes().splitlines(keepends=True)
    place = next(n for n, text in enumerate(lines) if n > 9 and re.search(rb"[a-f]", text[-9:]))
    lines[place] = damaged(lines[place])
    segment.write_bytes(b"".join(lines))
    with warnings.catch_warnings(action="ignore"), collect_warnings() as warned:
        run = resume()
    [warning] = warned
    fault = f"{segment}:{place + 1}: damaged: " if lines[place] else f"{segment}: has lost at least 1 row"
    assert warning.startswith(f"answer: 1 stored answer is lost ({fault}")
    assert run.receipt is not None
    assert run.receipt.called == 100 - len(lines) + 1
    assert run.counts == {"completed": 99, "failed": 1}


def test_verify_lists_the_damaged_lines_of_open_journals(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    open_run(store)
    [id] = store.ids("runs")
    assert verify(store, "runs", id) == []
    [segment] = tmp_path.glob("runs/*/journal/*/*.lines")
    lines = segment.read_bytes().splitlines(keepends=True)
    lines[4] = lines[4][:30] + bytes([lines[4][30] ^ 1]) + lines[4][31:]
    lines[7] = lines[7][:-1] + b"\x0b"  # its line feed
    segment.write_bytes(b"".join(lines)[:-5])
    assert [str(fault) for fault in verify(store, "runs", id)] == [
        f"{segment}:5: damaged: its checksum does not match; it counts as not done",
        f"{segment}:8: damaged: its checksum does not match; it counts as not done",
        f"{segment}:{len(lines) - 1}: damaged: it has no end; it counts as not done",
        f"{segment}: has lost at least 1 row; what it had counts as not done",
    ]


def test_a_segment_that_was_moved_from_another_run_counts_for_nothing(tmp_path: Path) -> None:
    here, there = DirectoryStore(tmp_path / "here"), DirectoryStore(tmp_path / "there")
    resume = open_run(here)
    open_run(there, "2")
    [segment], [other] = (root.glob("runs/*/journal/*/*.lines") for root in (tmp_path / "here", tmp_path / "there"))
    other.replace(segment)
    [id] = here.ids("runs")
    count = len(segment.read_bytes().splitlines())
    assert len(verify(here, "runs", id)) >= count
    with pytest.warns(EvaluandWarning, match="stored answers are lost"):
        receipt = resume().receipt
    assert receipt is not None
    assert receipt.called == 100


def test_a_journal_that_was_not_damaged_is_resumed(tmp_path: Path) -> None:
    run = open_run(DirectoryStore(tmp_path))()
    assert sum(run.counts.values()) == 100


FULL_DISK = """
import resource, sys
from pathlib import Path
from evaluand.core.errors import EngineError
from evaluand.store.io import Disk, DiskFolder
from evaluand.store.log import FileLog

log = FileLog(DiskFolder(sys.argv[1]), "runs/00/calls")
log.append(b'[0,"before"]\\n')
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (28, hard))
for slot in (1, 2):
    try:
        log.append(b'[%d,"while the disk is full"]\\n' % slot)
    except EngineError as error:
        assert "cannot be written" in str(error)
        print("refused", slot)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
log.append(b'[3,"after"]\\n')
log.close()
"""


def test_a_line_cut_short_by_a_full_disk_spoils_no_line_after_it(tmp_path: Path) -> None:
    result = run_python(FULL_DISK, str(tmp_path))
    assert result.stdout.split() == ["refused", "1", "refused", "2"], result.stderr
    reader = lane(tmp_path)
    with closing(reader):
        reader.refresh()
        assert lines_of(reader) == [line(0, "before"), line(3, "after")]


MANY_SEGMENTS = """
import resource, sys
from evaluand.store.io import DiskFolder
from evaluand.store.journal import WorkLog
from evaluand.store.memory_leases import MemoryLeases
from evaluand.store.log import FileLog

segments, limit = 100, 50
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
folder = DiskFolder(sys.argv[1])
for slot in range(segments):
    writer = WorkLog(FileLog(folder, "runs/00/calls"), MemoryLeases(), segments)
    writer.append(b"[%d,1]\\n[%d,2]\\n" % (slot, (slot + 1) % segments))
    writer.close()
reader = WorkLog(FileLog(folder, "runs/00/calls"), MemoryLeases(), segments)
reader.refresh()
print(reader.n_done, len([*reader.records()]), len([*reader.read_through()]), len(reader.damage()))
"""


def test_more_segments_are_read_than_files_may_be_open(tmp_path: Path) -> None:
    result = run_python(MANY_SEGMENTS, str(tmp_path))
    assert result.stdout == "100 100 100 0\n", result.stderr


class CountingLog(FileLog):
    """Remembers which segments were read."""

    def __init__(self, folder: Path) -> None:
        super().__init__(DiskFolder(folder), SCOPE)
        self.reads: list[str] = []

    def read(self, segment: str, offset: int, size: int) -> bytes:
        self.reads.append(segment)
        return super().read(segment, offset, size)


def write_segments(folder: Path, numbers: Iterable[int]) -> None:
    """Writes a segment with one line for each number."""
    for n in numbers:
        name = f"{n:020}-0.lines"
        (folder / name).write_bytes(add_checksums(line(n), seed_of(SCOPE, name)))


@pytest.mark.parametrize("segments", [50, pytest.param(40_000, marks=pytest.mark.slow)])
def test_only_segments_that_have_grown_are_read_again(tmp_path: Path, segments: int) -> None:
    write_segments(tmp_path, range(segments))
    log = CountingLog(tmp_path)
    reader = WorkLog(log, MemoryLeases(), None)
    with closing(reader):
        reader.refresh()
        assert log.reads == [f"{n:020}-0.lines" for n in range(segments)]
        assert lines_of(reader) == [line(n) for n in range(segments)]
        log.reads = []
        write_segments(tmp_path, [segments])
        reader.refresh()
        assert log.reads == [f"{segments:020}-0.lines"]
        assert reader.n_done == segments + 1
        assert reader.damage() == []


def test_an_incomplete_last_line_is_reported_unless_it_is_being_written(tmp_path: Path) -> None:
    segment = tmp_path / "1.lines"
    text = add_checksums(line(0) + line(1), seed_of(SCOPE, "1.lines"))
    segment.write_bytes(text[:-4])
    reader = lane(tmp_path)
    with closing(reader):
        reader.refresh()
        assert [str(fault) for fault in reader.damage()] == [
            f"{segment}:2: damaged: it has no end; it counts as not done"
        ]
        segment.write_bytes(text)
        assert reader.damage() == []
        reader.refresh()
        assert done(reader) == {0, 1}


FULL_WHILE_RUNNING = """
import resource, sys
from pathlib import Path
from evaluand import Dataset, DirectoryStore, Policy, Runner, task
from evaluand.core.errors import EngineError

folder = Path(sys.argv[1])
calls = []


@task(version="1")
def long(text):
    calls.append(text)
    return text * 1000


data = Dataset.from_rows([{"input": f"{i:04d}"} for i in range(200)])
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
try:
    Runner(DirectoryStore(folder), Policy(concurrency=1)).run(long, data)
except EngineError as error:
    print("cannot be written" in str(error), len(calls) < 60)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
run = Runner(DirectoryStore(folder), Policy(concurrency=1)).run(long, data)
print(run.counts, len(calls))
"""


def test_a_run_on_a_full_disk_stops_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    result = run_python(FULL_WHILE_RUNNING, str(tmp_path))
    assert result.stdout.splitlines() == ["True True", "{'completed': 200} 201"], result.stderr


# Work on lanes


@dataclass
class Unit:
    slot: int
    size: int = 1


def units(start: int, stop: int) -> Iterator[Unit]:
    return (Unit(slot) for slot in range(start, stop))


def written(unit: Unit, outcome: Outcome) -> tuple[bytes, int]:
    return line(unit.slot, "failed" if outcome.error else "done"), int(outcome.error is not None)


@pytest.mark.parametrize("slots", [0, 1, SHARD_SLOTS, SHARD_SLOTS + 1, 2 * SHARD_SLOTS + 7])
def test_work_is_done_once_whatever_the_number_of_units(tmp_path: Path, slots: int) -> None:
    called: list[int] = []
    one = open_lane(tmp_path, slots)
    with closing(one):
        KeyedWork(one, units, Recipe(lambda unit: called.append(unit.slot), written)).perform()
        assert sorted(called) == list(range(slots))
        assert lines_of(one) == [line(slot, "done") for slot in range(slots)]


class SlowLog(MemoryLog):
    """Takes a while over the line of slot 0, and tells that it has begun."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = threading.Event()

    def append(self, data: bytes, *written: Any) -> bool:
        if data.startswith(b"[0,"):
            self.begun.set()
            time.sleep(0.2)
        return super().append(data, *written)


@dataclass
class LateFirst:
    """An engine that hands over the first unit last, while it already asks for more units."""

    log: SlowLog

    def map_lines(self, units: Any, recipe: Any, keep: Any, policy: Policy) -> None:
        def done(unit: Any, outcome: Outcome) -> None:
            keep([(unit, *recipe.line(unit, outcome), outcome.attempts, "")])

        taken = [next(units) for _ in range(4)]
        for unit in taken[1:]:
            done(unit, Outcome(None, None, 1, 0, 0))
        late = threading.Thread(target=done, args=(taken[0], Outcome(None, None, 1, 0, 0)))
        late.start()
        assert self.log.begun.wait(PATIENCE)
        assert next(units, None) is None
        late.join()


def test_a_shard_that_ends_while_another_line_is_written_does_not_touch_that_line() -> None:
    log = SlowLog()
    with patch.object(shards, "SHARD_SLOTS", 2):
        one = WorkLog(log, MemoryLeases(), 4)
        KeyedWork(one, units, Recipe(lambda unit: None, written), engine=LateFirst(log)).perform()
    appended = log.read("memory", 0, 1 << 20).splitlines(keepends=True)
    assert sorted(appended) == [line(slot, "done") for slot in range(4)]


def test_the_shard_of_a_process_that_dies_is_taken_over_by_who_still_works(tmp_path: Path) -> None:
    """It dies while the other has claimed all that was free and waits for its own last call."""
    holder = Process(HOLDS, tmp_path, 1e9)
    last_runs, died = threading.Event(), threading.Event()
    called: list[int] = []

    def call(unit: Unit) -> None:
        called.append(unit.slot)
        if unit.slot == 2 * SHARD_SLOTS - 1:
            last_runs.set()
            assert died.wait(PATIENCE)

    class Watched(FileLeases):
        """Lets the other die only after it was asked for and refused its shard."""

        def claim(self, shards: int, *, is_fenced: bool = True) -> tuple[int, int] | None:
            claimed = super().claim(shards)
            if claimed is None and not died.is_set():
                assert last_runs.wait(PATIENCE)
                holder.kill()
                died.set()
            return claimed

    with processes(holder):
        assert holder.read_line() == "0 0"
        one = open_lane(tmp_path, 2 * SHARD_SLOTS, Watched)
        with closing(one):
            KeyedWork(one, units, Recipe(call, written), Policy(concurrency=4)).perform()
            assert sorted(called) == list(range(2 * SHARD_SLOTS))
            assert one.n_done == 2 * SHARD_SLOTS


@pytest.mark.parametrize("is_distant", [True, False])
def test_another_process_at_the_same_work_is_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_distant: bool
) -> None:
    monkeypatch.setattr(leases, "LEASE_SECONDS", 0.3)
    said: list[str] = []
    parts = {"boot": "x", "numbers": "x"} if is_distant else {"pid": os.getppid(), "started": 0}
    beat = 1.0 if is_distant else boot_seconds()
    other = Worker(replace(this_process(), host="far", **parts), beat, 1, (0,), True)
    (tmp_path / "leases").mkdir()
    (tmp_path / "leases" / f"{1:012d}.json").write_bytes(pack_state(1, State({"a.lines": other})))
    lane = open_lane(tmp_path, 3)
    with closing(lane):
        KeyedWork(lane, units, Recipe(lambda unit: None, written), Policy(sharing=said.append)).perform()
    assert said == [
        "waiting up to 0.3 s for a worker of far that may still be alive"
        if is_distant
        else f"another process ({os.getppid()} on far) works on this; sharing the rest with it"
    ]
