"""Finds the files of a problem, none of them outside its folder.

Documents are found by their file names, whatever the names of their folders. A path that the problem names or that is
found in its folder may not lead out of it, not even by a link; paths that users name may be anywhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from evaluand.core.errors import DataError, Fault, SpecError
from evaluand.core.files.paths import is_within, require_within

PROBLEM: Final = "problemDoc.json"
DATASET: Final = "datasetDoc.json"
TRUTH: Final = "targets.csv"
PARTS: Final = ("_TRAIN", "_TEST", "_SCORE")
_DEEPEST: Final = 4


def document_at(path: Path, part: str | None) -> Path:
    """The document of the problem at a path.

    Raises:
        DataError: there is no such path, or a link leads out of it.
        SpecError: there is no problem, or there are several.
    """
    if path.is_file():
        return path
    if not path.is_dir():
        message = "is neither a file nor a folder" if path.exists() else "no such file or folder"
        raise DataError(Fault(str(path), message, code="no_such_file"))
    found = [one for one in below(path, PROBLEM) if part is None or _is_of(part, one, path)]
    least = min((len(one.parts) for one in found), default=0)
    nearest = [one for one in found if len(one.parts) == least]
    if len({one.parent.parent for one in nearest}) == 1:  # parts of the data next to all of it
        nearest = [one for one in nearest if not one.parent.name.upper().endswith(PARTS)] or nearest
    if len(nearest) == 1:
        return nearest[0]
    for outside in leading_out(path, PROBLEM) if not nearest else ():
        require_within(outside, path)
    of = f" of the part {part}" if part else ""
    if not nearest:
        raise SpecError(f"{path}: there is no {PROBLEM}{of} in this folder or below it")
    listed = ", ".join(str(one.parent.relative_to(path)) for one in nearest[:10])
    raise SpecError(f"{path}: there are {len(nearest)} problems{of}: {listed}; name the folder of one")


def _is_of(part: str, document: Path, root: Path) -> bool:
    names = [root.name, *document.parent.relative_to(root).parts]
    return any(name.upper().endswith(f"_{part.upper()}") for name in names)


def root_of(path: Path, document: Path) -> Path:
    """The folder with the problem's folder and those of its datasets."""
    folder = document.parent
    if path.is_dir() and path.resolve() != folder.resolve():
        return path
    alone = any(below(folder, DATASET)) or not any(below(folder.parent, DATASET))
    return folder if alone else folder.parent


def below(folder: Path, name: str) -> Iterator[Path]:
    """The files of a name below a folder, not too deep and without links that lead out of it."""
    return (path for path in _below(folder, name) if is_within(path, folder))


def leading_out(folder: Path, name: str) -> Iterator[Path]:
    """The files of a name below a folder that are links out of it."""
    return (path for path in _below(folder, name) if not is_within(path, folder))


def _below(folder: Path, name: str) -> Iterator[Path]:
    base = len(folder.parts)
    for at, folders, files in os.walk(folder):
        place = Path(at)
        folders[:] = sorted(f for f in folders if not f.startswith(".")) if len(place.parts) - base < _DEEPEST else []
        if name in files:
            yield place / name
        for linked in (place / f / name for f in folders if (place / f).is_symlink()):  # which are not walked into
            if linked.is_file() and not is_within(linked, folder):
                yield linked


def find_file(document: Path, root: Path, name: str) -> Path | None:
    """A file of the problem: next to its document, or in a folder above it up to the root.

    Raises:
        DataError: a link leads out of the root.
    """
    for place in (document.parent, *document.parent.parents):
        if (place / name).is_file():
            return require_within(place / name, root)
        if place == root:
            return None
    return None
