"""Files: how they are called wherever the project lies, and the digests of what is in them."""

from __future__ import annotations

import errno
import os
import pathlib
import re
import stat
import time
from typing import Any, TypeGuard

from evaluand.core import identity as ids
from evaluand.core.errors import SpecError
from evaluand.core.fingerprint.homes import Home
from evaluand.core.fingerprint.tokens import leaf
from evaluand.core.system import working_folder

MAX_NAME = 260  # characters of a text that may name a file
MAX_CLIMB = 3  # folders up from the code in which a path still belongs to the project
SETTLED_NS = 2_000_000_000  # age from which a file with the same stamp is taken to be the same
MAX_REMEMBERED = 100_000  # states of files in memory

ABSENT = "absent"
UNREADABLE = "unreadable"
CHANGED = "changed"  # while it was read, or nothing that can be compared later: equal to no state, itself included

Stamp = tuple[int, int, int, int, int]
"""Mode, device, inode, size and time of the last change (ns)."""


class Files:
    """The files declared in one traversal.

    Attributes:
        cwd: the current directory.
        found: name for people → portable name and digest of the content.
    """

    def __init__(self, cwd: str) -> None:
        self.cwd = cwd
        self.found: dict[str, tuple[str, str]] = {}

    def declare(self, name: str, home: Home) -> None:
        """Adds a file or folder that the code is declared to depend on.

        Raises:
            SpecError: it does not exist or cannot be read.
        """
        tried = [os.path.join(folder, name) for folder in dict.fromkeys((self.cwd, home.folder))]
        path = next((path for path in tried if os.path.exists(path)), None)
        if path is None:
            raise SpecError(f"files: {name} does not exist (looked for {' and '.join(dict.fromkeys(tried))})")
        try:
            content = _folder_digest(path) if os.path.isdir(path) else _file_digest(path)
        except OSError as error:
            raise SpecError(f"files: {error.filename or name} cannot be read: {error.strerror}") from None
        self._record(portable(name, home.folder), content)

    def _record(self, name: str, content: str) -> None:
        number, shown = 1, name
        while shown in self.found and self.found[shown][1] != content:
            number += 1
            shown = f"{name} ({number})"
        self.found[shown] = os.path.basename(name) if os.path.isabs(name) else name, content


# -- names


def is_text_or_path(value: Any) -> TypeGuard[str | pathlib.PurePath]:
    """Whether a value may hold the name of a file."""
    return type(value) is str or issubclass(type(value), pathlib.PurePath)


def name_token(value: str | pathlib.PurePath, folder: str) -> bytes:
    """The token of a text or path reached from code in a folder, wherever that folder lies."""
    if not isinstance(value, str):
        return leaf("path", _encoded(portable(str(value), folder)))
    return leaf("text", _encoded(portable(value, folder) if os.path.isabs(value) and may_name_file(value) else value))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


_SUFFIX = re.compile(r"\.\w+$")


def may_name_file(text: str) -> bool:
    """Whether a text looks like the name of a file."""
    if not 0 < len(text) <= MAX_NAME or "\n" in text or "\0" in text:
        return False
    return "/" in text or os.sep in text or _SUFFIX.search(text) is not None


def portable(text: str, folder: str) -> str:
    """A path as it would be written after the project has moved; relative ones are that already."""
    if not os.path.isabs(text):
        return pathlib.PurePath(text).as_posix() if text else text
    path, home = os.path.normpath(text), os.path.expanduser("~")
    common, relative = os.path.commonpath([folder, path]), os.path.relpath(path, folder)
    climbed = relative.split(os.sep).count(os.pardir)
    if not climbed or (climbed <= MAX_CLIMB and common not in (os.sep, home)):
        return pathlib.PurePath(relative).as_posix()
    for base, mark in ((working_folder(), "."), (home, "~")):
        if base != os.sep and os.path.commonpath([base, path]) == base:
            return f"{mark}/{pathlib.PurePath(os.path.relpath(path, base)).as_posix()}"
    return text


def located(name: str, folder: str) -> str:
    """The path of a portable name, for code in a folder; the inverse of `portable`."""
    if name.startswith("./"):
        return os.path.join(working_folder(), name[2:])
    return os.path.join(folder, os.path.expanduser(name))


# -- states


def stamp_of(path: str) -> Stamp | None:
    """What distinguishes two states of a file without reading it; None where there is no such file."""
    try:
        known = os.stat(path)
    except (OSError, ValueError):
        return None
    return known.st_mode, known.st_dev, known.st_ino, known.st_size, known.st_mtime_ns


def file_state(path: str, stamp: Stamp | None) -> str:
    """The digest of a file's content, or a word for what cannot be read; each state of a file is read once.

    Args:
        path: of the file.
        stamp: its stamp now.
    """
    if stamp is None:
        return ABSENT
    if not stat.S_ISREG(stamp[0]):
        return CHANGED
    known = _states.get((path, stamp))
    if known is not None:
        return known
    try:
        state = ids.digest_of_file(pathlib.Path(path))
    except OSError:
        return UNREADABLE
    if time.time_ns() - stamp[-1] > SETTLED_NS:
        if len(_states) >= MAX_REMEMBERED:
            _states.clear()
        _states[path, stamp] = state
    return state


def listing_state(path: str) -> str:
    """The digest of the names in a folder, or a word for what cannot be listed."""
    try:
        with os.scandir(path) as entries:
            names = sorted(f"{entry.name}/" if entry.is_dir() else entry.name for entry in entries)
    except FileNotFoundError:
        return ABSENT
    except OSError:
        return UNREADABLE
    return leaf("listing", _encoded("\0".join(name for name in names if name not in _LEFT_BEHIND))).hex()


def state_of(name: str, folder: str) -> str:
    """The present state of the file or listed folder with a portable name, for code in a folder."""
    path = located(name, folder)
    return listing_state(path) if name.endswith("/") else file_state(path, stamp_of(path))


_LEFT_BEHIND = frozenset(("__pycache__/", ".evaluand/"))  # by running the code itself
_states: dict[tuple[str, Stamp], str] = {}


def _file_digest(path: str) -> str:
    """The digest of a file that must be readable."""
    stamp = stamp_of(path)
    if stamp is not None and not stat.S_ISREG(stamp[0]):
        raise OSError(errno.EINVAL, "it is not a regular file", path)
    state = file_state(path, stamp)
    return (
        ids.digest_of_file(pathlib.Path(path)) if state in (ABSENT, UNREADABLE) else state
    )  # which raises why it cannot be read


def _folder_digest(path: str) -> str:
    found: list[tuple[str, str]] = []
    for folder, _, names in os.walk(path):
        for name in names:
            full = os.path.join(folder, name)
            stamp = stamp_of(full)
            if stamp is not None and stat.S_ISREG(stamp[0]):
                content = _file_digest(full)
                found.append((pathlib.PurePath(os.path.relpath(full, path)).as_posix(), content))
    return leaf("folder", ids.encode(sorted(found))).hex()
