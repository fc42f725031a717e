"""The way to the disk of a store: nothing is reached through a link, and every failure is one sentence."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evaluand.core.errors import EngineError
from evaluand.store import io
from evaluand.store.io import Disk, DiskFolder, _is_junction
from evaluand.store.temporary import is_being_written, is_temporary, temporary_name

posix = pytest.mark.skipif(os.name == "nt", reason="Windows has other links, pipes and modes")


@pytest.fixture
def folder(tmp_path: Path) -> DiskFolder:
    made = DiskFolder(tmp_path / "store", "runs", "one")
    made.make()
    return made


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    place = tmp_path / "outside"
    place.mkdir()
    (place / "a.json").write_text("precious")
    return place


def test_what_was_put_is_read_again_and_takes_the_place_of_earlier_content(folder: DiskFolder) -> None:
    folder.put("a.json", b"first")
    folder.put("a.json", b"second")
    assert folder.read("a.json") == b"second"
    assert folder.files() == ["a.json"]


def test_only_the_first_is_put_where_a_file_is_absent(folder: DiskFolder) -> None:
    assert folder.put_if_absent("a.json", b"first")
    assert not folder.put_if_absent("a.json", b"second")
    assert (folder.read("a.json"), folder.files()) == (b"first", ["a.json"])


def test_a_folder_that_does_not_exist_is_empty(tmp_path: Path) -> None:
    folder = DiskFolder(tmp_path / "none", "runs")
    assert (folder.exists(), folder.entries(), folder.state("a"), folder.has_file("a")) == (False, [], None, False)
    with pytest.raises(FileNotFoundError):
        folder.read("a")


@posix
def test_only_the_owner_can_read_what_is_written(folder: DiskFolder) -> None:
    folder.put("a.json", b"x")
    assert stat.S_IMODE((folder.path / "a.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.path.stat().st_mode) == stat.S_IMODE(folder.path.parent.stat().st_mode) == 0o700


@posix
@pytest.mark.parametrize("depth", [0, 1], ids=["the folder", "the folder above"])
def test_no_folder_below_the_root_is_reached_through_a_link(tmp_path: Path, outside: Path, depth: int) -> None:
    (tmp_path / "store").mkdir()
    (outside / "one").mkdir()
    if depth:
        (tmp_path / "store" / "runs").symlink_to(outside)
    else:
        (tmp_path / "store" / "runs").mkdir()
        (tmp_path / "store" / "runs" / "one").symlink_to(outside)
    folder = DiskFolder(tmp_path / "store", "runs", "one")
    for act in (folder.entries, folder.make, lambda: folder.read("a.json"), lambda: folder.put("a.json", b"")):
        with pytest.raises(EngineError, match=r"is not a folder; evaluand follows no links"):
            act()
    assert (outside / "a.json").read_text() == "precious"


@posix
def test_the_root_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "store").symlink_to(tmp_path / "disk")
    folder = DiskFolder(tmp_path / "store", "runs")
    folder.make()
    folder.put("a.json", b"x")
    assert (tmp_path / "disk" / "runs" / "a.json").read_bytes() == b"x"


@posix
def test_links_pipes_and_devices_are_not_opened(folder: DiskFolder, outside: Path) -> None:
    (folder.path / "link").symlink_to(outside / "a.json")
    (folder.path / "device").symlink_to("/dev/zero")
    os.mkfifo(folder.path / "pipe")
    (folder.path / "folder").mkdir()
    for name in ("link", "device", "pipe", "folder"):
        with pytest.raises(EngineError, match=rf"{name}: is not a regular file"):
            folder.read(name)
        assert not folder.has_file(name)
    assert folder.files() == []


@posix
def test_writing_and_removing_replace_a_link_and_leave_its_target(folder: DiskFolder, outside: Path) -> None:
    for name in ("put", "removed"):
        (folder.path / name).symlink_to(outside / "a.json")
    folder.put("put", b"x")
    folder.touch("removed")
    folder.remove("removed")
    assert (outside / "a.json").read_text() == "precious"
    assert folder.files() == ["put"]
    (folder.path / "created").symlink_to(outside / "new")
    with pytest.raises(EngineError, match="File exists"):
        folder.create("created")
    assert not (outside / "new").exists()


@pytest.mark.parametrize("name", ["", ".", "..", "../a", "/etc/passwd", "a/b", "a\0b"])
def test_a_name_that_leaves_the_folder_is_refused(folder: DiskFolder, name: str) -> None:
    for act in (folder.read, folder.remove, folder.create, folder.state):
        with pytest.raises(EngineError, match="is not the name of a file in this folder"):
            act(name)


def test_a_file_that_is_too_large_is_not_read(folder: DiskFolder) -> None:
    with (folder.path / "large").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(EngineError, match="large: has more than 1,000 bytes"):
        folder.read("large", most=1000)


def test_removing_what_does_not_exist_does_nothing(folder: DiskFolder) -> None:
    folder.remove("none")
    assert folder.remove_folder("none")


def test_a_folder_with_something_in_it_is_not_removed(folder: DiskFolder) -> None:
    (folder / "full").make()
    (folder / "full").put("a", b"")
    assert not folder.remove_folder("full")
    (folder / "full").remove("a")
    assert folder.remove_folder("full")
    assert folder.folders() == []


class FullDisk(Disk):
    def write(self, handle: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class ShortDisk(Disk):
    def write(self, handle: int, data: bytes) -> int:
        return super().write(handle, data[:-1])


class BrokenDisk(Disk):
    def sync(self, handle: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.mark.parametrize(
    ("disk", "reason"),
    [
        (FullDisk(), "No space left on device; free space"),
        (ShortDisk(), "the disk took 0 of 1 bytes; free space"),
        (BrokenDisk(), "Input/output error; repair the disk"),
    ],
    ids=["full", "short", "broken"],
)
def test_a_failing_disk_is_one_sentence_and_leaves_no_part_of_the_file(
    folder: DiskFolder, monkeypatch: pytest.MonkeyPatch, disk: Disk, reason: str
) -> None:
    monkeypatch.setattr(io, "disk", disk)
    with pytest.raises(EngineError, match=rf"a.json\S*: cannot be written: {reason}, then run"):
        folder.put("a.json", b"x")
    assert folder.entries() == []


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.EROFS, "use a store that you may write"),
        (errno.EACCES, "use a store that you may write"),
        (errno.EPERM, "use a store that you may write"),
        (errno.ENOSPC, "free space, then run the same command again"),
        (errno.EIO, "repair the disk, then run the same command again"),
    ],
)
def test_an_error_says_what_to_do_about_it(
    folder: DiskFolder, monkeypatch: pytest.MonkeyPatch, number: int, advice: str
) -> None:
    folder.put("b.json", b"{}")

    class FailingDisk(Disk):
        def open(self, name: str, flags: int, folder: int | None) -> int:
            if flags & os.O_CREAT:
                raise OSError(number, os.strerror(number))
            return super().open(name, flags, folder)

        def remove(self, name: str, folder: int | None) -> None:
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(io, "disk", FailingDisk())
    with pytest.raises(EngineError) as written:
        folder.put("a.json", b"{}")
    assert str(written.value).endswith(f"cannot be written: {os.strerror(number)}; {advice}")
    with pytest.raises(EngineError, match=r"b\.json: cannot be removed") as removed:
        folder.remove("b.json")
    if number != errno.ENOSPC:
        assert str(removed.value).endswith(advice)


class UnclosingDisk(Disk):
    def close(self, handle: int) -> None:
        super().close(handle)
        raise OSError(errno.EIO, os.strerror(errno.EIO))


class UnknowingDisk(Disk):
    def state_of(self, handle: int) -> os.stat_result:
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_an_error_at_closing_loses_nothing_that_was_written(
    folder: DiskFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(io, "disk", UnclosingDisk())
    folder.put("a.json", b"x")
    assert folder.read("a.json") == b"x"


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="this system does not show open files")
def test_a_file_whose_state_cannot_be_read_is_closed_again(folder: DiskFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.put("a.json", b"x")
    before = os.listdir("/proc/self/fd")
    monkeypatch.setattr(io, "disk", UnknowingDisk())
    with pytest.raises(EngineError, match=r"a\.json: cannot be read: Input/output error; check"):
        folder.read("a.json")
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_a_folder_made_and_a_file_put_are_synced_with_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []

    class Watched(Disk):
        def sync(self, handle: int) -> None:
            synced.append(os.readlink(f"/proc/self/fd/{handle}"))

    monkeypatch.setattr(io, "disk", Watched())
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("this system does not show the files of a process")
    root = tmp_path / "results" / "store"
    DiskFolder(root, "runs").make()
    assert sorted(synced) == [str(tmp_path), str(tmp_path / "results"), str(root)]
    synced.clear()
    DiskFolder(root, "runs").put("a.json", b"x")
    assert [os.path.basename(path).split("-")[0] for path in synced] == [".a.json", "runs"]


def test_a_file_that_a_process_of_another_container_writes_is_not_taken_for_that_of_a_dead_one() -> None:
    name = temporary_name("a")
    elsewhere = name.rpartition(".tmp")[0].rpartition("-")[0][:-8] + "00000000-1.tmp"
    assert is_temporary(name)
    assert is_temporary(elsewhere)
    assert is_being_written(name)
    assert is_being_written(elsewhere)
    assert not is_being_written(elsewhere, elsewhere=False)


def test_a_junction_is_a_mount_point_of_windows(tmp_path: Path) -> None:
    tags = {"junction": 0xA0000003, "cloud": 0x9000001A}
    states: dict[str, Any] = {name: SimpleNamespace(st_reparse_tag=tag) for name, tag in tags.items()}
    assert {name: _is_junction(state) for name, state in states.items()} == {"junction": True, "cloud": False}
    assert not _is_junction(tmp_path.stat())
