"""The git checkout around a folder, and its commit.

A checkout may come from somebody else, and git runs programs that its configuration names: monitors of the file system,
filters, hooks. So the commit is read from files.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from evaluand.core.files.regular import read_regular_file

_MOST = 64 << 10  # bytes of a small file
_MOST_PACKED = 64 << 20  # of packed-refs, which has a line for each branch and tag
_MOST_LINKS = 5  # from one symbolic ref to the next, as in git
_COMMIT: Final = re.compile(rb"[0-9a-f]{40}|[0-9a-f]{64}")
_REF: Final = re.compile(r"refs(/(?!\.)[^\x00-\x20\x7f~^:?*\[\\/]+(?<!\.lock))+")
_OF_WORKTREE: Final = ("HEAD", "refs/bisect/", "refs/worktree/", "refs/rewritten/")


class Checkout(NamedTuple):
    """A folder with a git repository.

    Attributes:
        root: the highest folder of the checked out files.
        git: the folder with HEAD and the index; None where it is elsewhere and does not name this checkout.
        common: the folder with branches and objects, which worktrees share.
    """

    root: Path
    git: Path | None
    common: Path | None


def find_checkout(folder: Path) -> Checkout | None:
    """The checkout that a folder is in; None if it is in none. Links are not followed, and nothing is executed."""
    for place in (folder, *folder.parents):
        entry = place / ".git"
        try:
            mode = os.lstat(entry).st_mode
        except OSError:
            continue
        if not stat.S_ISDIR(mode):
            return Checkout(place, *_find_repository(place, entry))
        if os.path.lexists(entry / "HEAD"):
            return Checkout(place, entry, entry)
    return None


def read_commit(checkout: Checkout) -> str | None:
    """The commit that is checked out; None if it is unknown: no commit yet, reftables, links, or damaged files."""
    if checkout.git is None or checkout.common is None:
        return None
    with suppress(OSError, ValueError):
        name = "HEAD"
        for _ in range(_MOST_LINKS):
            content = _read_ref(checkout.git if name.startswith(_OF_WORKTREE) else checkout.common, name)
            if content is None:
                return _read_packed(checkout.common, name)
            if not content.startswith(b"ref:"):
                return content.decode() if _COMMIT.fullmatch(content) else None
            name = content[4:].strip().decode()
            if not _REF.fullmatch(name) or ".." in name:
                return None
    return None


def read_below(folder: Path, name: str, most: int = _MOST) -> bytes:
    """The content of a small file below a folder, reached through no link.

    Raises:
        OSError: it does not exist, is no regular file, or is too large.
        ValueError: a folder of its name is none.
    """
    *above, last = name.split("/")
    _check_folders(folder, above)
    return read_regular_file(folder.joinpath(*above, last), most)


def _find_repository(root: Path, entry: Path) -> tuple[Path | None, Path | None]:
    """The folders that a `.git` file names: of a worktree that names the file too, or of a submodule."""
    with suppress(OSError, ValueError):
        git = _read_path(root, ".git", b"gitdir:")
        for above in root.parents:
            if git.is_relative_to(above / ".git" / "modules"):
                _check_folders(above, git.relative_to(above).parts)
                return git, git
        common = git.parent.parent
        is_worktree = git.parent.name == "worktrees" and _read_path(git, "commondir") == common
        if is_worktree and os.path.samefile(_read_path(git, "gitdir"), entry):
            return git, common
    return None, None


def _read_path(folder: Path, name: str, prefix: bytes = b"") -> Path:
    """The path in a file, relative to the folder of the file; a ValueError if it is none, or on another machine."""
    content = read_below(folder, name)
    path = os.fsdecode(content.removeprefix(prefix).strip())
    if not content.startswith(prefix) or not path or "\0" in path or path.startswith(("//", "\\\\")):
        raise ValueError(f"{name} names no folder")
    return Path(os.path.normpath(folder / path))


def _read_ref(folder: Path, name: str) -> bytes | None:
    """The content of a ref; None if it has no file."""
    if os.path.lexists(folder / "reftable"):
        raise ValueError("refs are in tables")
    try:
        return read_below(folder, name).strip()
    except FileNotFoundError:
        return None
    except OSError:
        if stat.S_ISDIR(os.lstat(folder / name).st_mode):  # left empty by refs that were below it
            return None
        raise


def _read_packed(common: Path, name: str) -> str | None:
    lines = b"\n" + read_below(common, "packed-refs", _MOST_PACKED)
    found = re.search(rb"\n([0-9a-f]{40,64}) " + re.escape(name.encode()) + rb"\r?\n", lines + b"\n")
    return found[1].decode() if found and _COMMIT.fullmatch(found[1]) else None


def _check_folders(folder: Path, names: Sequence[str]) -> None:
    for name in names:
        folder = folder / name
        if not stat.S_ISDIR(os.lstat(folder).st_mode):
            raise ValueError(f"{folder} is not a folder")
