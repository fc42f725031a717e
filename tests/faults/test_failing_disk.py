"""What a disk that fails for a moment, or from then on, may cost: less than it did when these tests were written."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.faulty_disk import Fault, faulty
from support.manifests import ID, create_manifest
from support.worker_process import open_lane

from evaluand import DirectoryStore
from evaluand.core.errors import EngineError
from evaluand.store import leases
from evaluand.store.io import DiskFolder
from evaluand.store.manifests import has_lost_manifest
from evaluand.store.store import exists, resolve


def fails(*names: str, lasts: bool = True) -> Fault:
    def act(name: str, call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    return Fault("fails", act, lambda name, arguments: name in names, lasts)


@pytest.fixture
def folder(tmp_path: Path) -> DiskFolder:
    made = DiskFolder(tmp_path)
    made.put("a", b"before")
    return made


def test_a_file_that_cannot_be_given_its_name_is_removed(folder: DiskFolder) -> None:
    with faulty(fails("rename"), 0), pytest.raises(EngineError, match="a: cannot be written"):
        folder.put("a", b"after")
    assert (folder.read("a"), folder.files()) == (b"before", ["a"])


def test_a_file_is_put_although_its_first_name_cannot_be_removed(folder: DiskFolder) -> None:
    with faulty(fails("remove"), 0):
        assert folder.put_if_absent("b", b"x")
    assert folder.read("b") == b"x"


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="this system does not show open files")
def test_all_tables_of_a_draft_are_closed_although_none_can_be_removed(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    draft = DirectoryStore(tmp_path).draft("runs", ID)
    for table in ("one", "two"):
        draft.append(table, pa.RecordBatch.from_pydict({"a": [1]}))
    with faulty(fails("remove"), 0):
        draft.discard()
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_a_table_that_another_process_removes_while_it_is_written_is_one_sentence(tmp_path: Path) -> None:
    draft = DirectoryStore(tmp_path).draft("runs", ID)
    draft.append("one", pa.RecordBatch.from_pydict({"a": [1]}))
    [file] = (tmp_path / "runs" / ID).iterdir()
    file.unlink()
    with pytest.raises(EngineError, match=rf"{ID}: another process has removed what was .*; run the same command"):
        draft.seal(create_manifest("runs", ID) | {"digest": "00" * 16})
    draft.discard()
    (tmp_path / "runs" / ID).rmdir()
    with pytest.raises(EngineError, match="another process has removed"):
        draft.append("two", pa.RecordBatch.from_pydict({"a": [1]}))


@pytest.mark.parametrize("call", ["rename", "link"])
def test_a_name_or_manifest_that_another_process_removes_while_it_is_written_is_one_sentence(
    tmp_path: Path, call: str
) -> None:
    def remove_first(name: str, call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        [file] = tmp_path.rglob("*.tmp")
        file.unlink()
        return call(*arguments)

    store = DirectoryStore(tmp_path)
    with (
        faulty(Fault("removed", remove_first, lambda name, arguments: name == call), 0),
        pytest.raises(EngineError, match=r"another process has removed what was .*; run the same command again"),
    ):
        store.refer("a", "runs", ID) if call == "rename" else store.open(create_manifest("runs", ID))


def test_a_folder_that_vanishes_while_it_is_examined_is_not_blocked(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    states = []

    def vanish(name: str, call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        states.append(call(*arguments))
        (tmp_path / "runs").rmdir()
        return states[0]

    with faulty(Fault("vanishes", vanish, lambda name, arguments: name == "state"), 0):
        assert DiskFolder(tmp_path, "runs").blocked() == ""


def test_work_that_is_opened_while_its_folder_is_examined_has_lost_nothing(tmp_path: Path) -> None:
    store, journal = DirectoryStore(tmp_path), tmp_path / "runs" / ID / "journal" / "calls"
    journal.mkdir(parents=True)

    def open_after(name: str, call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        found = call(*arguments)
        (tmp_path / "runs" / ID / "open.json").touch()
        (journal / f"{0:020d}-{0:08x}.lines").touch()
        return found

    with faulty(Fault("opened", open_after, lambda name, arguments: name == "entries"), 0):
        assert not has_lost_manifest(store.folder("runs", ID))


def test_nobody_in_a_process_waits_for_leases_that_its_disk_did_not_let_it_release(tmp_path: Path) -> None:
    first, second = open_lane(tmp_path), open_lane(tmp_path)
    assert first.leases.claim(1) == (0, 0)
    first.append(b"[0,1]\n")
    with faulty(fails("open", "write"), 0), pytest.raises(EngineError):
        first.close()
    assert not second.leases.busy()
    assert second.leases.claim(1) == (0, 1)
    second.refresh()
    assert second.n_done == 1
    second.close()


@pytest.mark.parametrize("earlier", [0, 1])
def test_a_claim_that_was_stored_although_the_disk_failed_is_released(tmp_path: Path, earlier: int) -> None:
    for lane in [open_lane(tmp_path) for _ in range(earlier)]:
        lane.leases.claim(1)
        lane.close()
    first, second = open_lane(tmp_path), open_lane(tmp_path)
    with faulty(fails("entries", lasts=False), earlier), pytest.raises(EngineError):
        first.leases.claim(1)
    assert second.leases.busy()
    first.close()
    assert not second.leases.busy()
    second.close()


def test_a_worker_whose_claim_was_stored_although_the_disk_failed_can_claim_again(tmp_path: Path) -> None:
    lane = open_lane(tmp_path)
    with faulty(fails("entries", lasts=False), 0), pytest.raises(EngineError):
        lane.leases.claim(1)
    assert lane.leases.claim(1) == (0, 1)
    lane.close()


def test_a_worker_whose_sign_of_life_was_stored_although_the_disk_failed_has_its_leases(tmp_path: Path) -> None:
    first, second = open_lane(tmp_path), open_lane(tmp_path)
    assert first.leases.claim(1) == (0, 0)
    with faulty(fails("entries", lasts=False), 0), pytest.raises(EngineError):
        first.leases._renew()
    first.leases._renew()
    assert first.leases.holds()
    assert first.leases.has(0)
    assert second.leases.claim(1) is None
    first.close()
    assert second.leases.claim(1) == (0, 1)
    second.close()


def test_a_worker_that_loses_a_claim_before_it_knows_of_it_goes_on_under_another_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = open_lane(tmp_path), open_lane(tmp_path)
    before = first._log.segment

    def take_over(name: str, call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        monkeypatch.setattr(leases, "LEASE_SECONDS", 0)
        assert second.leases.claim(1) == (0, 1)
        monkeypatch.undo()
        return call(*arguments)

    with faulty(Fault("paused", take_over, lambda name, arguments: name == "entries"), 0):
        assert first.leases.claim(1) is None  # stored, and lost before it was read back
    assert not first.leases.holds()
    second.close()
    assert first.leases.claim(1) == (0, 2)
    assert first._log.segment != before
    assert first.append(b"[0,1]\n")
    first.refresh()
    assert first.n_done == 1
    first.close()


def test_what_cannot_be_read_for_a_moment_does_not_exist_if_it_never_did(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    (tmp_path / "runs").mkdir()
    with faulty(fails("open", lasts=False), 0):
        assert not exists(store, "runs", ID)


def test_a_name_that_cannot_be_read_for_a_moment_is_found(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    store.open(create_manifest("runs", ID))
    store.refer("a/name", "runs", ID)
    with faulty(fails("read", lasts=False), 0):
        assert resolve(DirectoryStore(tmp_path), "a/name", "runs") == ("runs", ID)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="this system does not show open files")
def test_a_journal_is_closed_although_the_disk_takes_neither_its_lines_nor_the_release(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    lane = open_lane(tmp_path)
    assert lane.leases.claim(1) == (0, 0)
    lane.append(b"[0,1]\n")
    with faulty(fails("open", "write", "sync"), 0), pytest.raises(EngineError):
        lane.close()
    assert len(os.listdir("/proc/self/fd")) == before
