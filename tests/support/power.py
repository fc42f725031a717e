"""A disk that remembers what would survive a loss of power: what was synced, and of the rest what chance leaves."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from pathlib import Path

from evaluand.store.io import Disk


@dataclass
class Node:
    """A file or folder: what of it was synced, and what it would be without a loss of power."""

    is_folder: bool
    synced: bytes = b""
    content: bytes = b""
    synced_names: dict[str, Node] = field(default_factory=dict)
    names: dict[str, Node] = field(default_factory=dict)


class WatchedDisk(Disk):
    """Does everything, and remembers what would survive a loss of power."""

    def __init__(self, root: Path) -> None:
        self.root, self.top = root, Node(is_folder=True)

    def open(self, name: str, flags: int, folder: int | None) -> int:
        handle = super().open(name, flags, folder)
        if flags & os.O_CREAT:
            self._names(folder)[name] = Node(is_folder=False)
        return handle

    def write(self, handle: int, data: bytes) -> int:
        written = super().write(handle, data)
        if node := self._node(self._path(handle)):
            node.content += bytes(data[:written])
        return written

    def sync(self, handle: int) -> None:
        if node := self._node(self._path(handle)):
            node.synced, node.synced_names = node.content, dict(node.names)

    def make_folder(self, name: str, folder: int | None) -> None:
        super().make_folder(name, folder)
        self._names(folder)[name] = Node(is_folder=True)

    def rename(self, name: str, new: str, folder: int | None) -> None:
        super().rename(name, new, folder)
        names = self._names(folder)
        names[new] = names.pop(name, Node(is_folder=False))

    def link(self, name: str, new: str, folder: int | None) -> None:
        super().link(name, new, folder)
        names = self._names(folder)
        names[new] = names.get(name, Node(is_folder=False))  # its folder may be removed meanwhile

    def remove(self, name: str, folder: int | None) -> None:
        super().remove(name, folder)
        self._names(folder).pop(name, None)

    def remove_folder(self, name: str, folder: int | None) -> None:
        super().remove_folder(name, folder)
        self._names(folder).pop(name, None)

    def _path(self, handle: int | None) -> Path:
        return Path(os.readlink(f"/proc/self/fd/{handle}"))

    def _names(self, folder: int | None) -> dict[str, Node]:
        node = self._node(self._path(folder))
        return {} if node is None else node.names

    def _node(self, path: Path) -> Node | None:
        """The file or folder at a path; None above the store."""
        if not path.is_relative_to(self.root):
            return None
        node: Node | None = self.top
        for name in path.relative_to(self.root).parts:
            node = None if node is None else node.names.get(name)
        return node


def write_survivors(node: Node, place: Path, random_: random.Random, lost: float) -> None:
    """Writes what a loss of power leaves: all that was synced, and of the rest what chance leaves."""
    if not node.is_folder:
        place.write_bytes(survived(node, random_, lost))
        return
    place.mkdir()
    names = dict(node.synced_names)
    for name in {*node.names, *node.synced_names}:
        if node.names.get(name) is not node.synced_names.get(name) and random_.random() >= lost:
            if name in node.names:
                names[name] = node.names[name]
            else:
                names.pop(name, None)
    for name, below in names.items():
        write_survivors(below, place / name, random_, lost)


def survived(node: Node, random_: random.Random, lost: float) -> bytes:
    rest = node.content[len(node.synced) :]
    if random_.random() < lost:
        return node.synced
    left = rest[: random_.randrange(len(rest) + 1)]
    return node.synced + random_.choice([left, bytes(len(left)), left[: len(left) // 2] + bytes(len(left) // 2)])


def unsynced_lines(node: Node, name: str = "") -> int:
    """How many lines of segments could be lost."""
    if not node.is_folder:
        return node.content.count(b"\n") - node.synced.count(b"\n") if name.endswith(".lines") else 0
    return sum(unsynced_lines(below, name) for name, below in node.names.items())


def nameless(node: Node) -> list[str]:
    """The names that could be lost, although what they name is synced."""
    found = [name for name, below in node.names.items() if node.synced_names.get(name) is not below and below.synced]
    return found + [name for below in node.names.values() if below.is_folder for name in nameless(below)]
