"""Finds the documents of a problem below a folder, whatever the names of their folders.

A problem has one document, `NAME_problem/problemDoc.json`, and often one for each part of its data:
`TRAIN/problem_TRAIN`, `TEST/problem_TEST`, `SCORE/problem_SCORE` or, for the scored part, `SCORE/problem_TEST`.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evaluand.core.errors import DataError, Fault, SpecError
from evaluand.core.files.paths import is_within, require_within

PROBLEM: Final = "problemDoc.json"
DATASET: Final = "datasetDoc.json"
TRUTH: Final = "targets.csv"
LEARNT: Final = "TRAIN"
TESTED: Final = "TEST"
SCORED: Final = "SCORE"
"""The part that has the target values."""

PARTS: Final = (LEARNT, TESTED, SCORED)
_DEEPEST: Final = 4


@dataclass(frozen=True)
class DocumentChoice:
    """The document of a problem at a path.

    Attributes:
        path: of the document.
        part: of the data, one of `PARTS`; None for the document of all the data.
        parts: of the problem, all that have a document.
    """

    path: Path
    part: str | None = None
    parts: tuple[str, ...] = ()


def document_at(path: Path, part: str | None) -> DocumentChoice:
    """The document of the problem at a path; see `open_folder` for the errors."""
    if path.is_file():
        return DocumentChoice(path)
    if not path.is_dir():
        message = "is neither a file nor a folder" if path.exists() else "no such file or folder"
        raise DataError(Fault(str(path), message, code="no_such_file"))
    documents = [*below(path, PROBLEM)]
    if not documents:
        for outside in leading_out(path, PROBLEM):
            require_within(outside, path)
        raise SpecError(f"{path}: there is no {PROBLEM} in this folder or below it")
    places = sorted({problem_root(document, path) for document in documents})
    outermost = [place for place in places if not any(other in place.parents for other in places)]
    if len(outermost) > 1:
        _refuse_several(path, outermost)
    return _choose(path, outermost[0], [one for one in documents if problem_root(one, path) == outermost[0]], part)


def problem_root(document: Path, path: Path) -> Path:
    """The folder of the problem that a document belongs to, with all of its parts, but no folder above `path`."""
    folder = document.parent
    if folder == path or _is_in_collection(folder) or any(below(folder, DATASET)):
        return folder
    root = folder.parent
    return root.parent if root != path and root.name.upper() in PARTS else root


def root_of(path: Path, document: Path) -> Path:
    """The folder with the problem's folder and those of its datasets."""
    folder = document.parent
    if path.is_dir() and path.resolve() != folder.resolve():
        return path
    if _is_in_collection(folder):
        return folder.parent.parent
    alone = any(below(folder, DATASET)) or not any(below(folder.parent, DATASET))
    return folder if alone else folder.parent


def part_of(document: Path, root: Path) -> str | None:
    """The part of the data that a document is about: by the folder TRAIN, TEST or SCORE, else by its folder's name."""
    folders = document.parent.relative_to(root).parts if document.is_relative_to(root) else ()
    names = [name.upper() for name in (root.name, *folders)]
    named = next((name for name in reversed(names) if name in PARTS), None)
    return named or next((part for part in PARTS if names[-1].endswith(f"_{part}")), None)


def below(folder: Path, name: str) -> Iterator[Path]:
    """The files of a name below a folder, not too deep and without links that lead out of it."""
    return (path for path in _below(folder, name) if is_within(path, folder))


def leading_out(folder: Path, name: str) -> Iterator[Path]:
    """The files of a name below a folder that are links out of it."""
    return (path for path in _below(folder, name) if not is_within(path, folder))


def find_file(document: Path, root: Path, name: str) -> Path | None:
    """A file next to the problem's document or in a folder above; a DataError if a link leads out of the root.

    One without any content is none.
    """
    for place in (document.parent, *document.parent.parents):
        if os.path.isfile(place / name) and os.path.getsize(place / name):  # false also for a name that is too long
            return require_within(place / name, root)
        if place == root:
            return None
    return None


def _is_in_collection(folder: Path) -> bool:
    """Whether a problem's folder is one of `problems/`, next to `datasets/` with those of all of them."""
    return folder.parent.name == "problems" and (folder.parent.parent / "datasets").is_dir()


def _refuse_several(path: Path, places: Sequence[Path]) -> None:
    names = [str(place.relative_to(path)) for place in places]
    listed = ", ".join(names[:10]) + (" …" if len(names) > 10 else "")
    raise SpecError(f"{path}: there are {len(names)} problems: {listed}; name the folder of one, such as {places[0]}")


def _choose(path: Path, root: Path, documents: Sequence[Path], part: str | None) -> DocumentChoice:
    """Of the documents of one problem that of the part, else that of all the data, of the scored or the tested part."""
    part_by_document = {document: part_of(document, root) for document in documents}
    parts = tuple(each for each in PARTS if each in part_by_document.values())
    asked = None if part is None else part.upper()
    if asked is not None and asked not in parts:
        having = f"it has {' and '.join(parts)}" if parts else "it is not divided into parts"
        raise SpecError(f"{path}: the problem has no part {part}; {having}")
    for wanted in (None, SCORED, TESTED, *parts) if asked is None else (asked,):
        chosen = [document for document, each in part_by_document.items() if each == wanted]
        least = min((len(document.parts) for document in chosen), default=0)
        chosen = [document for document in chosen if len(document.parts) == least]
        if chosen:
            break
    if len(chosen) > 1:
        _refuse_several(path, [document.parent for document in chosen])
    return DocumentChoice(chosen[0], wanted, parts)


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
