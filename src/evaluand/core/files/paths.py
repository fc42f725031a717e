"""Paths that a document names, which must stay inside the document's folder."""

from __future__ import annotations

from pathlib import PurePosixPath


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
