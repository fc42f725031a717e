"""Paths that a document names, which must stay inside the document's folder."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

from evaluand.core.errors import DataError, Fault


def is_inside(path: str) -> bool:
    """Whether a relative path stays within its folder on every operating system.

    Example:
        >>> [is_inside(path) for path in ("tables/a.csv", "../a.csv", "/etc/passwd", "media/", "")]
        [True, False, False, True, False]
    """
    if not path or "\\" in path or "\0" in path or ":" in path.partition("/")[0]:
        return False
    pure = PurePosixPath(path)
    return not pure.is_absolute() and ".." not in pure.parts


def outside_message(path: str) -> str:
    """The message of a path that leaves its folder."""
    return f"{path!r} is not inside the folder; give a path such as 'tables/learningData.csv'"


def is_within(path: Path, root: Path) -> bool:
    """Whether a path is inside a folder after all links are resolved."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def require_within(path: Path, root: Path) -> Path:
    """The path.

    Raises:
        DataError: a link or `..` leads out of the folder `root`.
    """
    if not is_within(path, root):
        raise DataError(Fault(str(path), f"leads out of {root}; move its target into the folder", code="unsafe_path"))
    return path


def relative_name(path: Path, root: Path) -> str:
    """A path as messages show it: relative to the folder if it is inside."""
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
