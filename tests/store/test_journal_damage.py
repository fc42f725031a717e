"""Whatever happens to the bytes of a journal: only what was written counts, and what was damaged is listed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import orjson
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from support.journals import lines_of

from evaluand.store import journal
from evaluand.store.io import DiskFolder
from evaluand.store.journal import WorkLog
from evaluand.store.log import FileLog
from evaluand.store.memory_leases import MemoryLeases
from evaluand.store.segments import fault_of, find_damage

SLOTS = 30
SCOPE = "runs/00"
LOGS = ("calls", "calls", "scorer0")  # of three writers

BODY = st.one_of(
    st.text(max_size=12), st.integers(-(2**53), 2**53), st.lists(st.sampled_from(["completed", "failed", '"', "\\"]))
)
WRITTEN = st.lists(st.lists(st.tuples(st.integers(0, SLOTS - 1), BODY), max_size=8), min_size=3, max_size=3)
PLACE = st.tuples(st.integers(0, 2), st.floats(0, 1, exclude_max=True))  # a segment, and where in it
DAMAGE = st.one_of(
    st.tuples(st.just("flip"), PLACE, st.integers(0, 7)),
    st.tuples(st.just("byte"), PLACE, st.integers(0, 255)),
    st.tuples(st.just("zeros"), PLACE, st.integers(1, 60)),
    st.tuples(st.just("cut out"), PLACE, st.integers(1, 60)),
    st.tuples(st.just("cut off"), PLACE),
    st.tuples(st.just("move line"), PLACE, PLACE),
    st.tuples(st.just("swap files"), st.sampled_from([(0, 1), (0, 2), (1, 2)])),
    st.tuples(st.just("join lines"), PLACE),
)


def line(slot: int, body: Any) -> bytes:
    return b"[%d,%b]\n" % (slot, orjson.dumps(body))


@contextmanager
def opened(log: FileLog) -> Iterator[WorkLog]:
    one = WorkLog(log, MemoryLeases(), SLOTS)
    try:
        one.refresh()
        yield one
    finally:
        one.close()


def damaged(files: list[bytes], damage: tuple[Any, ...]) -> list[bytes]:
    """The contents of the segments after some damage."""
    kind, files = damage[0], [*files]
    if kind == "swap files":
        a, b = damage[1]
        files[a], files[b] = files[b], files[a]
        return files
    number, share = damage[1]
    data = files[number]
    if not data:
        return files
    at = int(share * len(data))
    match kind:
        case "flip":
            data = data[:at] + bytes([data[at] ^ 1 << damage[2]]) + data[at + 1 :]
        case "byte":
            data = data[:at] + bytes([damage[2]]) + data[at + 1 :]
        case "zeros":
            data = data[:at] + bytes(min(damage[2], len(data) - at)) + data[at + damage[2] :]
        case "cut out":
            data = data[:at] + data[at + damage[2] :]
        case "cut off":
            data = data[:at]
        case "join lines":
            at = data.find(b"\n", at)
            data = data[:at] + data[at + 1 :]
        case "move line":
            lines = data.splitlines(keepends=True)
            moved = lines.pop(int(share * len(lines)))
            target, place = damage[2]
            files[number] = b"".join(lines)
            others = files[target].splitlines(keepends=True)
            others.insert(int(place * (len(others) + 1)), moved)
            files[target] = b"".join(others)
            return files
    files[number] = data
    return files


@given(written=WRITTEN, damages=st.lists(DAMAGE, min_size=1, max_size=4))
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_only_undamaged_lines_count_and_damage_is_listed(
    written: list[list[tuple[int, Any]]], damages: list[tuple[Any, ...]]
) -> None:
    check_damage(written, damages)


@pytest.mark.slow
@given(written=WRITTEN, damages=st.lists(DAMAGE, min_size=1, max_size=6))
@settings(max_examples=2000, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_only_undamaged_lines_count_in_thousands_of_journals(
    written: list[list[tuple[int, Any]]], damages: list[tuple[Any, ...]]
) -> None:
    check_damage(written, damages)


def check_damage(written: list[list[tuple[int, Any]]], damages: list[tuple[Any, ...]]) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        paths = []
        for name, lines in zip(LOGS, written, strict=True):
            (folder / name).mkdir(exist_ok=True)
            log = FileLog(DiskFolder(folder, name), f"{SCOPE}/{name}")
            paths.append(Path(log.path(log.segment)))
            for n in range(0, len(lines), 3):
                log.append(b"".join(line(*each) for each in lines[n : n + 3]))
            log.close()
            paths[-1].touch()
        before = [path.read_bytes() for path in paths]
        after = before
        for damage in damages:
            after = damaged(after, damage)
        for path, data in zip(paths, after, strict=True):
            path.write_bytes(data)

        segments = [Segment(*each) for each in zip(paths, before, after, strict=True)]
        with patch.object(journal, "_WRITING_SECONDS", 0):
            for name in dict.fromkeys(LOGS):
                check_log(folder, name, [each for each in segments if each.path.parent.name == name])
        logs = [FileLog(DiskFolder(folder) / name, f"{SCOPE}/{name}") for name in dict.fromkeys(LOGS)]
        faults = [fault_of(log, each) for log in logs for each in find_damage(log)]
        assert [fault.where for fault in faults] == [place for each in segments for place in each.damaged_places()]
    finally:
        shutil.rmtree(folder)


def check_log(folder: Path, name: str, segments: list[Segment]) -> None:
    expected: dict[int, bytes] = {}
    for segment in segments:
        for text in segment.undamaged():
            expected.setdefault(int(text[1 : text.index(b",")]), text[:-8] + b"\n")
    with opened(FileLog(DiskFolder(folder, name), f"{SCOPE}/{name}")) as reader:
        assert lines_of(reader) == [expected[slot] for slot in sorted(expected)]
        assert list(reader.records()) == [orjson.loads(expected[slot]) for slot in sorted(expected)]
        assert {slot for slot in range(SLOTS) if reader.is_done(slot)} == set(expected)
        assert reader.n_done == len(expected)
        assert sorted(reader.read_through()) == sorted(orjson.loads(text) for text in expected.values())
        places = [place for each in segments for place in each.damaged_places()]
        assert [fault.where for fault in reader.damage()] == places
        kept = b"".join(content for _, content in reader.read_damage())
        assert kept == b"".join(each.damaged_bytes() for each in segments)


@dataclass
class Segment:
    """A segment before and after its damage: a line counts if these very bytes were written to this segment."""

    path: Path
    before: bytes
    after: bytes

    def undamaged(self) -> list[bytes]:
        return [text for text in self.after.split(b"\n")[:-1] if text in self.before.split(b"\n")[:-1]]

    def damaged_places(self) -> list[str]:
        *lines, end = self.after.split(b"\n")
        numbers = [n for n, text in enumerate(lines, 1) if text not in self.before.split(b"\n")[:-1]]
        return [f"{self.path}:{n}" for n in [*numbers, *([len(lines) + 1] if end else [])]]

    def damaged_bytes(self) -> bytes:
        *lines, end = self.after.split(b"\n")
        return b"".join(text + b"\n" for text in lines if text not in self.before.split(b"\n")[:-1]) + end
