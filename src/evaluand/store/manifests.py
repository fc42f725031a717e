"""Manifests and names as files: canonical JSON with the digest of everything else in it, read with types.

Format 3 has what belongs to a name in its file (`about`). Formats 1 and 2, of earlier versions, have not; and format 1
has the digest (`seal`) in the manifests of sealed artifacts only. A file with a seal is always validated against it.
"""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import PurePath
from typing import Any, Final

import orjson

from evaluand.core import identity as ids
from evaluand.core.errors import EngineError, Fault, SpecError
from evaluand.store import checks
from evaluand.store.folder import MAX_BYTES, Folder
from evaluand.store.kinds import INSTALL, UnknownKind, find_kind, kind_names, require_shape, singular
from evaluand.store.segments import SEGMENT_FILE
from evaluand.store.store import FORMAT, Manifest, Ref, check_name, with_seal
from evaluand.store.temporary import is_being_written

SEALED, OPEN = "manifest.json", "open.json"
JOURNAL: Final = "journal"
UNKNOWN_KIND: Final = "unknown_kind"
"""The code of the fault of a sound name whose kind no installed package registers."""
TABLE_FILE: Final = re.compile(r"[A-Za-z0-9_]*(-[0-9a-f]{8})?-[0-9a-f]{8}\.parquet")
LOST: Final = (
    "its manifest is missing; restore it, or run the same work again; `evaluand gc --damaged` removes the folder"
)

_ABOUT: Final = checks.object_of({"created": checks.time}, {"origin": checks.OBJECT, "dataset": checks.short_text})
_REF: Final = checks.object_of(
    {"name": checks.text, "kind": checks.text, "id": checks.id_},
    {"about": lambda about: "" if about == {} else _ABOUT(about)},
)
_OF_FORMAT_1: Final = {
    *("format", "kind", "id", "name", "spec", "attempt", "created", "sealed", "provenance", "counts"),
    *("work", "pinned", "observed", "fresh", "app"),
}


_REPAIR: Final = "see `evaluand verify`; `evaluand gc --damaged` removes what is damaged, to be made again"
_CONTINUE: Final = "start the same work again, which writes the file again and continues"


class _Invalid(Exception):
    """The reason why the content of a file is not what evaluand wrote."""


class DamagedFile(EngineError):
    """A file of the store whose content is not what evaluand wrote.

    Attributes:
        place: the path of the file.
        reason: what is wrong.
    """

    def __init__(self, place: str, reason: str) -> None:
        advice = _CONTINUE if os.path.basename(place) == OPEN else _REPAIR
        super().__init__(f"{place}: {reason}; {advice}")
        self.place, self.reason = place, reason


def read_manifest(folder: Folder, kind: str, id: str, *files: str) -> Manifest | None:
    """The manifest in the folder of an artifact: the first of the files that exists; None if none does.

    Raises:
        DamagedFile: its content is not what evaluand wrote.
        EngineError: it is not a regular file, cannot be read, or was written by a later version.
    """
    for file in files or (SEALED, OPEN):
        try:
            content = folder.read(file)
        except FileNotFoundError:
            continue
        try:
            _check_manifest(content, kind, id, file == SEALED)
            return _value(content, orjson.loads(content))
        except _Invalid as error:
            raise DamagedFile(str(folder.path / file), str(error)) from None
        except EngineError as error:
            raise EngineError(f"{folder.path / file}: {error}") from None
    return None


def has_lost_manifest(folder: Folder, *, elsewhere: bool = True) -> bool:
    """Whether a folder without a manifest has tables or a journal with finished work, and no process is writing them.

    Args:
        elsewhere: whether processes of other containers and machines may be writing.
    """
    names = folder.files()
    if SEALED in names or OPEN in names or any(is_being_written(name, elsewhere=elsewhere) for name in names):
        return False
    journal = folder / JOURNAL
    logs = [journal / log for log in journal.folders()] if JOURNAL in folder.folders() else []
    segments = (name for log in logs for name in log.files())
    has_work = any(map(TABLE_FILE.fullmatch, names)) or any(map(SEGMENT_FILE.fullmatch, segments))
    return has_work and folder.states([SEALED, OPEN]) == [None, None]  # it may have been opened since


def manifest_text(manifest: Manifest) -> bytes:
    """The content of a manifest's file."""
    return ids.encode(manifest, indent=True)


def readable_text(manifest: Manifest, *, sealed: bool) -> bytes:
    """The content of a manifest's file, in which readers accept every value.

    Raises:
        SpecError: readers would refuse a value in it, or it is too large.
    """
    content = manifest_text(manifest)
    if len(content) > MAX_BYTES:
        what = f"the {singular(manifest['kind'])} cannot be stored"
        raise SpecError(f"{what}: its manifest has {len(content):,} bytes; readers accept up to {MAX_BYTES:,}")
    require_shape(ids.decode(content), sealed=sealed)
    return content


def read_ref(folder: Folder, file: str) -> tuple[Ref, dict[str, Any]]:
    """The name in a file, and what belongs to it.

    Raises:
        DamagedFile: its content is not what evaluand wrote.
        EngineError: it is not a regular file, cannot be read, or was written by a later version.
        UnknownKind: its kind is not registered here.
    """
    content = folder.read(file, _MOST_OF_REF)
    try:
        return _parse_ref(content, file)
    except _Invalid as error:
        raise DamagedFile(str(folder.path / file), str(error)) from None
    except EngineError as error:
        raise type(error)(f"{folder.path / file}: {error}") from None


def _parse_ref(content: bytes, file: str) -> tuple[Ref, dict[str, Any]]:
    value, seal = _parse(content)
    known = {"name", "kind", "id"}
    if {"format", "seal"} & value.keys():
        _check_format(value, seal, "")
        _check_seal(value, seal, "")
        known |= {"format", "seal"} | ({"about"} if value["format"] > 2 else set())
        kind = value.get("kind")
        if type(kind) is str and kind not in kind_names():
            raise unknown_kind(kind)
    unknown = next((f"{_shorten(name)!r} is unknown" for name in value if name not in known), "")
    if reason := unknown or _invalid_ref(value):
        raise _Invalid(f"cannot be read: {reason}")
    if file != ref_file(value["name"], value["kind"]):
        raise _Invalid("is not the file of its name")
    return Ref(value["name"], value["kind"], value["id"]), value.get("about", {})


def unknown_kind(kind: str) -> UnknownKind:
    """That a name, or what is in a folder, is of a kind that is not registered here."""
    return UnknownKind(f"is of the kind {_shorten(kind)!r}, which no installed package registers; {INSTALL}")


def ref_text(ref: Ref, about: Mapping[str, Any]) -> bytes:
    """The content of a name's file."""
    return ids.encode(with_seal({"format": FORMAT} | ref._asdict() | {"about": about}), indent=True)


def ref_file(name: str, kind: str) -> str:
    """The name of a name's file."""
    return f"{ids.digest([kind, name]).hex()}.json"


def table_file(table: str, digest: str) -> str:
    """The name of a table's file."""
    return f"{file_name(table)}-{digest[:8]}.parquet"


@lru_cache(4096)
def file_name(name: str) -> str:
    """A file name for any name: simple names stay readable, others get a digest that distinguishes them."""
    slug = re.sub(r"[^A-Za-z0-9]+", "_", name)[:40].strip("_")
    return slug if slug == name else f"{slug}-{ids.digest(name).hex()[:8]}"


_MOST_OF_REF: Final = 1 << 20
_SHOWN: Final = 60  # characters of a foreign text in a message


def blocked_fault(folder: Folder) -> Fault | None:
    """The fault of what is in the place of a folder; None if that is a folder or nothing."""
    what = folder.blocked()
    if not what:
        return None
    message = f"is {what} in the place of a folder, and is not followed; remove {what.replace('a ', 'the ')}"
    return Fault(str(folder.path), message)


def as_fault(path: PurePath, error: EngineError) -> Fault:
    """The fault of a file, or of the file in a folder, that cannot be read."""
    if isinstance(error, DamagedFile):
        return Fault(error.place, error.reason)
    code = UNKNOWN_KIND if isinstance(error, UnknownKind) else ""
    text, place = str(error), str(path)
    if text.startswith(f"{place}{os.sep}"):  # of a file in the folder
        name, _, message = text.removeprefix(place).partition(": ")
        return Fault(f"{place}{name}", message, code=code)
    return Fault(place, text.removeprefix(f"{place}: "), code=code)


@lru_cache(16)  # an artifact's manifest is read from several sides, one after the other
def _check_manifest(content: bytes, kind: str, id: str, sealed: bool) -> None:
    value, seal = _parse(content)
    _check_format(value, seal, _SUBJECT)
    if sealed or value["format"] > 1 or "seal" in value:
        _check_seal(value, seal, _SUBJECT)
    elif unknown := next((name for name in value if name not in _OF_FORMAT_1), ""):
        raise _Invalid(f"cannot be read: {unknown!r} is unknown")
    if (value.get("kind"), value.get("id")) != (kind, id):
        raise _Invalid(f"is the manifest of {_shorten(value.get('kind'))} {_shorten(value.get('id'))}")
    reason = (
        find_kind(kind).check(value, sealed=sealed)
        or _invalid_times(value)
        or (_invalid_tables(value) if sealed else "")
    )
    if reason:
        raise _Invalid(f"cannot be read: {reason}; evaluand did not write this")


def _shorten(value: Any) -> str:
    return str(value)[:_SHOWN]


def _parse(content: bytes) -> tuple[dict[str, Any], str]:
    """The object in a file, and the digest of everything in it except its seal."""
    try:
        parsed = orjson.loads(content)
        if not isinstance(parsed, dict):
            raise _Invalid("cannot be read: it is not an object")
        value = _value(content, parsed)
        rest = {name: each for name, each in parsed.items() if name != "seal"}
        return value, ids.digest_of_text(ids.canonical_text(rest).encode()).hex()
    except (ValueError, TypeError, ArithmeticError, AttributeError, RecursionError) as error:
        raise _Invalid(f"cannot be read: {error}") from None


def _value(content: bytes, parsed: dict[str, Any]) -> dict[str, Any]:
    """What an object in a file says, in which JSON stands for some values that it has not."""
    return {name: ids.restore(each) for name, each in parsed.items()} if b'"$' in content else parsed


_SUBJECT: Final = "the manifest "


def _check_format(value: dict[str, Any], seal: str, subject: str) -> None:
    if type(value.get("format")) is not int or value["format"] < 1:
        raise _Invalid("cannot be read: 'format' is not the number of a format")
    if value["format"] > FORMAT:
        _check_seal(value, seal, subject)
        raise EngineError(
            f"was written by a later version of evaluand: its format is {value['format']}, and this version"
            f" reads up to {FORMAT}; install a later version"
        )


def _check_seal(value: dict[str, Any], seal: str, subject: str) -> None:
    if "seal" not in value:
        raise _Invalid("cannot be read: 'seal' is missing")
    if value["seal"] != seal:
        raise _Invalid(f"{subject}was changed: its seal does not match its content")


def _invalid_ref(value: dict[str, Any]) -> str:
    if reason := _REF(value):
        return reason.removeprefix(".")
    if value["kind"] not in kind_names():
        return f"{_shorten(value['kind'])!r} is not a kind of artifact"
    try:
        check_name(value["name"])
    except SpecError as error:
        return str(error)
    return ""


def _invalid_times(value: dict[str, Any]) -> str:
    try:
        times = [dt.datetime.fromisoformat(value[name]) for name in ("created", "sealed") if name in value]
        _ = times[-1] - times[0]  # one with a time zone and one without cannot be compared
    except TypeError:
        return "sealed: expected a time with a time zone if created has one"
    return ""


def _invalid_tables(manifest: Manifest) -> str:
    for name, entry in manifest["tables"].items():
        if entry["file"] != table_file(name, entry["digest"]):
            file = _shorten(entry["file"])
            return f"tables.{_shorten(name)}.file: {file!r} is outside its folder or of another table"
    return ""
