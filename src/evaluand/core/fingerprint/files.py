"""Files: which texts and paths name one, and the digests of what is in them.

A text names a file where it looks like a name (a folder or a suffix in it) and such a file exists beside the code or in
the current directory. Paths are told as they would be written after the project has moved.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import pathlib
import re
import stat
from collections.abc import Iterable, Sequence
from typing import Any, TypeGuard

from evaluand.core import identity
from evaluand.core.errors import SpecError
from evaluand.core.fingerprint.homes import Home, working_folder
from evaluand.core.fingerprint.parts import PIN
from evaluand.core.fingerprint.tokens import leaf

MAX_NAME = 260  # characters of a text that may name a file
MAX_CLIMB = 3  # folders up from the code in which a path still belongs to the project
MAX_LISTED = 10_000  # entries of a folder that code lists, and the bytes in them
MAX_LISTED_BYTES = 1 << 30
BLOCK = 1 << 20
SETTLED = 2.0  # seconds after which a file with the same times and size is taken to be the same


class Files:
    """The files named in one traversal.

    Attributes:
        cwd: the current directory.
        found: name for people → portable name and digest of the content.
        unpinned: where to say that a file could not be read.
    """

    def __init__(self, cwd: str, unpinned: dict[str, str]) -> None:
        self.cwd = cwd
        self.found: dict[str, tuple[str, str]] = {}
        self.unpinned = unpinned

    def mention(self, value: str | pathlib.PurePath, home: Home) -> None:
        """Takes in the file that a text or path names, if it names one."""
        self.look(str(value), (home.folder, self.cwd), home, certain=not isinstance(value, str))

    def look_for(self, texts: Iterable[str], folders: Sequence[str], home: Home) -> None:
        """Takes in the files that some texts in code name, in any of these folders."""
        near = tuple(dict.fromkeys(folders))
        for text in sorted(texts):
            self.look(text, near, home)

    def look(self, text: str, folders: Sequence[str], home: Home, certain: bool = False) -> None:
        """Takes in the files of one name."""
        if not (certain or may_name_file(text)):
            return
        for folder in dict.fromkeys(folders):
            path = os.path.join(folder, text)
            if _is_file(path):
                self._take(path, text if folder in (home.folder, self.cwd) else path, home)

    def list(self, folder: pathlib.Path, pattern: str, home: Home) -> str:
        """Takes in the names and contents of the files in a folder that fit a pattern; gives why it cannot."""
        try:
            content = _listing_digest(folder, pattern)
        except (OSError, ValueError, NotImplementedError) as error:
            return f"cannot be listed ({getattr(error, 'strerror', None) or error})"
        if content is None:
            return f"has more than {MAX_LISTED:,} entries or {MAX_LISTED_BYTES >> 20:,} MiB"
        self._record(_portable(str(folder / pattern), home.folder), content)
        return ""

    def declare(self, name: str, home: Home) -> None:
        """Takes in a file or folder that the code is said to depend on.

        Raises:
            SpecError: it does not exist or cannot be read.
        """
        tried = [os.path.join(folder, name) for folder in dict.fromkeys((self.cwd, home.folder))]
        path = next((path for path in tried if os.path.exists(path)), None)
        if path is None:
            raise SpecError(f"files: {name} does not exist (looked for {' and '.join(dict.fromkeys(tried))})")
        try:
            content = _folder_digest(path) if os.path.isdir(path) else _content_digest(path)
        except OSError as error:
            raise SpecError(f"files: {error.filename or name} cannot be read: {error.strerror}") from None
        self._record(_portable(name, home.folder), content)

    def _take(self, path: str, text: str, home: Home) -> None:
        try:
            content = _content_digest(path)
        except OSError as error:
            self.unpinned.setdefault(text, f"{text}: the file cannot be read ({error.strerror}); {PIN}")
            return
        self._record(_portable(text, home.folder), content)

    def _record(self, name: str, content: str) -> None:
        number, shown = 1, name
        while shown in self.found and self.found[shown][1] != content:
            number += 1
            shown = f"{name} ({number})"
        portable = os.path.basename(name) if os.path.isabs(name) else name
        self.found[shown] = portable, content


# -- names


def is_text_or_path(value: Any) -> TypeGuard[str | pathlib.PurePath]:
    """Whether something is what `Files.mention` takes."""
    return type(value) is str or issubclass(type(value), pathlib.PurePath)


def name_token(value: str | pathlib.PurePath, folder: str) -> bytes:
    """The token of a text or path reached from code in a folder, wherever that folder lies."""
    if not isinstance(value, str):
        return leaf("path", _encoded(_portable(str(value), folder)))
    return leaf("text", _encoded(_portable(value, folder) if os.path.isabs(value) and may_name_file(value) else value))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


_SUFFIX = re.compile(r"\.\w+$")


def may_name_file(text: str) -> bool:
    """Whether a text looks like the name of a file."""
    if not 0 < len(text) <= MAX_NAME or "\n" in text or "\0" in text:
        return False
    return "/" in text or os.sep in text or _SUFFIX.search(text) is not None


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _portable(text: str, folder: str) -> str:
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


# -- contents


_Stamp = tuple[int, int, int, int]
_contents: dict[str, tuple[_Stamp, str]] = {}


def _content_digest(path: str) -> str:
    """The digest of a file's content. A large file is read again only after it has been touched."""
    with open(path, "rb") as file:
        told = os.fstat(file.fileno())
        stamp = told.st_dev, told.st_ino, told.st_size, told.st_mtime_ns
        known = _contents.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        state = hashlib.blake2b(digest_size=identity.DIGEST_SIZE)
        while block := file.read(BLOCK):
            state.update(block)
    newest = max(told.st_mtime, told.st_ctime)
    if told.st_size > BLOCK and dt.datetime.now().timestamp() - newest > SETTLED:
        _contents[path] = stamp, state.hexdigest()
    return state.hexdigest()


def _folder_digest(path: str) -> str:
    found: list[tuple[str, str]] = []
    for folder, _, names in os.walk(path):
        for name in names:
            full = os.path.join(folder, name)
            if _is_file(full):
                found.append((pathlib.PurePath(os.path.relpath(full, path)).as_posix(), _content_digest(full)))
    return leaf("folder", identity.encode(sorted(found))).hex()


_MACHINERY = frozenset(("__pycache__", ".evaluand"))  # what running the code itself leaves


def _listing_digest(folder: pathlib.Path, pattern: str) -> str | None:
    """The digest of what fits a pattern in a folder; None where that is too much."""
    found: list[tuple[str, str]] = []
    size = 0
    for path in folder.glob(pattern):
        name = path.relative_to(folder)
        if _MACHINERY.isdisjoint(name.parts):
            size += path.stat().st_size if (is_file := _is_file(str(path))) else 0
            found.append((name.as_posix(), _content_digest(str(path)) if is_file else ""))
        if len(found) > MAX_LISTED or size > MAX_LISTED_BYTES:
            return None
    return leaf("listing", identity.encode(sorted(found))).hex()
