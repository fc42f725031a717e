"""The disk in memory does what a real one does, call by call, also where a call fails."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest
from support.memory_disk import MemoryDisk

from evaluand.store.io import Disk

pytestmark = pytest.mark.skipif(os.open not in os.supports_dir_fd, reason="this system has no handles of folders")

NAMES = ["a", "b", "c"]
FOLDER, CREATE = os.O_RDONLY | os.O_DIRECTORY, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND


class Handle(int):
    """A file that is open."""


class Pair:
    """A real disk and one in memory, on which the same calls are made."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        self.random, self.disks = chance, (Disk(), MemoryDisk())
        for disk in self.disks:
            disk.make_folders(str(root))
        self.folders = [self.both("open", str(root), FOLDER, None)]
        self.files: list[tuple[int, int]] = []

    def both(self, call: str, *arguments: Any) -> Any:
        """Makes a call on both, with the handles of each; checks that it is answered alike."""
        answers = []
        for number, disk in enumerate(self.disks):
            own = [each[number] if isinstance(each, tuple) else each for each in arguments]
            try:
                answer = getattr(disk, call)(*own)
                answers.append(Handle(answer) if call == "open" else answer)
            except OSError as error:
                answers.append(error.errno)
        if call == "open" and [type(each) for each in answers] == [Handle, Handle]:
            return tuple(answers)
        shown = [comparable(each) for each in answers]
        assert shown[0] == shown[1], f"{call}{arguments}"
        return None

    def step(self) -> None:
        draw, folder = self.random.choice, self.random.choice(self.folders)
        name, other = draw(NAMES), draw(NAMES)
        match draw(["create", "open", "folder", "write", "read", "state", "list", "rename", "link", "remove", "rmdir"]):
            case "create":
                self.files += [found] if (found := self.both("open", name, CREATE, folder)) else []
            case "open":
                self.folders += [found] if (found := self.both("open", name, FOLDER, folder)) else []
            case "folder":
                self.both("make_folder", name, folder)
            case "write" if self.files:
                self.both("write", draw(self.files), b"some")
            case "read" if self.files:
                self.both("state_of", draw(self.files))
            case "state":
                self.both("states", [name, f"{name}/{other}"], folder)
                self.both("state", name, folder)
                self.both("state_of", folder)
            case "list":
                for call in ("entries", "sizes"):
                    self.both(call, folder)
            case "rename":
                self.both("rename", name, other, folder)
            case "link":
                self.both("link", name, other, folder)
            case "remove":
                self.both("remove", name, folder)
            case "rmdir":
                self.both("remove_folder", name, folder)

    def close(self) -> None:
        for handles in [*self.folders, *self.files]:
            self.both("close", handles)


def comparable(answer: Any) -> Any:
    if isinstance(answer, os.stat_result):
        is_folder = answer.st_mode & 0o40000
        return (answer.st_mode, bool(answer.st_nlink), 0 if is_folder else (answer.st_size, answer.st_nlink))
    if isinstance(answer, list):
        return sorted(map(comparable, answer), key=repr)
    return answer


@pytest.mark.parametrize("seed", range(10))
def test_calls_are_answered_alike_by_a_real_disk_and_by_one_in_memory(tmp_path: Path, seed: int) -> None:
    pair = Pair(tmp_path / "root", random.Random(seed))
    for _ in range(200):
        pair.step()
    pair.close()
