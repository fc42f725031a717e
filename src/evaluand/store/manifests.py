"""Manifests and names as files: canonical JSON with the digest of everything else in it, read with types.

Format 2 has the digest (`seal`) in every file. Format 1, of earlier versions, has it in the manifests of sealed
artifacts only; a file with a seal is always validated against it.
"""

from __future__ import annotations

import datetime as dt
import os
import re
from pathlib import Path
from types import NoneType
from typing import Any, Final

import orjson

from evaluand.core import identity as ids
from evaluand.core.errors import EngineError, Fault, SpecError, kind_of
from evaluand.store.io import Folder, is_being_written
from evaluand.store.store import FORMAT, KINDS, Manifest, Ref, check_name, with_seal

SEALED, OPEN = "manifest.json", "open.json"
ID: Final = re.compile(r"[0-9a-f]{32}")
TABLE_FILE: Final = re.compile(r"[A-Za-z0-9_]*(-[0-9a-f]{8})?-[0-9a-f]{8}\.parquet")
LOST: Final = (
    "its manifest is missing; restore it, or run the same work again; `evaluand gc --damaged` removes the folder"
)

_Types = dict[str, tuple[type, ...]]
_HEAD: Final[_Types] = {
    "format": (int,),
    "kind": (str,),
    "id": (str,),
    "name": (str, NoneType),
    "spec": (dict,),
    "attempt": (int,),
    "created": (str,),
}
_OPTIONAL: Final[_Types] = {
    "provenance": (dict,),
    "counts": (dict,),
    "work": (list,),
    "pinned": (bool,),
    "observed": (bool,),
    "fresh": (bool,),
    "app": (dict,),
    "sealed": (str,),
}
_END: Final[_Types] = {"digest": (str,), "tables": (dict,)}
_TABLE: Final[_Types] = {"file": (str,), "digest": (str,), "rows": (int,), "bytes": (int,)}
_REF: Final[_Types] = {"name": (str,), "kind": (str,), "id": (str,)}
_SEAL: Final[_Types] = {"format": (int,), "seal": (str,)}


_REPAIR: Final = "see `evaluand verify`; `evaluand gc --damaged` removes what is damaged, to be made again"
_CONTINUE: Final = "start the same work again, which writes the file again and continues"


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
        return _parse_manifest(str(folder.path / file), content, kind, id, sealed=file == SEALED)
    return None


def has_lost_manifest(folder: Folder, *, elsewhere: bool = True) -> bool:
    """Whether a folder without a manifest has tables that no process is writing.

    Args:
        elsewhere: whether processes of other containers and machines may be writing.
    """
    names = folder.files()
    is_written = any(is_being_written(name, elsewhere=elsewhere) for name in names)
    return any(map(TABLE_FILE.fullmatch, names)) and not is_written


def manifest_text(manifest: Manifest) -> bytes:
    """The content of a manifest's file."""
    return ids.encode(manifest, indent=True)


def read_ref(folder: Folder, file: str) -> Ref:
    """The name in a file.

    Raises:
        DamagedFile: its content is not what evaluand wrote.
        EngineError: it is not a regular file, cannot be read, or was written by a later version.
    """
    place = str(folder.path / file)
    value, seal = _parse(place, folder.read(file, _MOST_OF_REF))
    if {"format", "seal"} & value.keys():
        _check_format(place, value, seal, "")
        _check_seal(place, value, seal, "")
        expected: _Types = {**_REF, **_SEAL}
    else:
        expected = _REF
    if reason := _unlike(value, expected) or _unreadable_ref(value, expected):
        raise DamagedFile(place, f"cannot be read: {reason}")
    if file != ref_file(value["name"], value["kind"]):
        raise DamagedFile(place, "is not the file of its name")
    return Ref(value["name"], value["kind"], value["id"])


def ref_text(ref: Ref) -> bytes:
    """The content of a name's file."""
    return ids.encode(with_seal({"format": FORMAT} | ref._asdict()), indent=True)


def ref_file(name: str, kind: str) -> str:
    """The name of a name's file."""
    return f"{ids.digest([kind, name]).hex()}.json"


def table_file(table: str, digest: str) -> str:
    """The name of a table's file."""
    return f"{file_name(table)}-{digest[:8]}.parquet"


def file_name(name: str) -> str:
    """A file name for any name: simple names stay readable, others get a digest that distinguishes them."""
    slug = re.sub(r"[^A-Za-z0-9]+", "_", name)[:40].strip("_")
    return slug if slug == name else f"{slug}-{ids.digest(name).hex()[:8]}"


_MOST_OF_REF: Final = 1 << 20


def as_fault(path: Path, error: EngineError) -> Fault:
    """The fault of a file, or of the file in a folder, that cannot be read."""
    if isinstance(error, DamagedFile):
        return Fault(error.place, error.reason)
    return Fault(str(path), str(error).removeprefix(f"{path}: "))


def _parse_manifest(place: str, content: bytes, kind: str, id: str, *, sealed: bool) -> Manifest:
    value, seal = _parse(place, content)
    _check_format(place, value, seal, _SUBJECT)
    required = _HEAD | (_END if sealed else {}) | (_SEAL if sealed or value["format"] > 1 else {})
    reason = _unlike(value, required, _OPTIONAL) or _invalid_head(value) or (_invalid_end(value) if sealed else "")
    if "seal" not in required:
        reason = reason or next((f"{name!r} is unknown" for name in value if name not in required | _OPTIONAL), "")
    if reason:
        raise DamagedFile(place, f"cannot be read: {reason}")
    if "seal" in required:
        _check_seal(place, value, seal, _SUBJECT)
    if (value["kind"], value["id"]) != (kind, id):
        raise DamagedFile(place, f"is the manifest of {value['kind']} {value['id']}")
    return value


def _parse(place: str, content: bytes) -> tuple[dict[str, Any], str]:
    """The object in a file, and the digest of everything in it except its seal."""
    try:
        parsed = orjson.loads(content)
        if not isinstance(parsed, dict):
            raise DamagedFile(place, "cannot be read: it is not an object")
        value = {name: ids.restore(each) for name, each in parsed.items()} if b'"$' in content else parsed
        rest = {name: each for name, each in parsed.items() if name != "seal"}
        return value, ids.digest_of_text(ids.canonical_text(rest).encode()).hex()
    except (ValueError, TypeError, ArithmeticError, AttributeError, RecursionError) as error:
        raise DamagedFile(place, f"cannot be read: {error}") from None


_SUBJECT: Final = "the manifest "


def _check_format(place: str, value: dict[str, Any], seal: str, subject: str) -> None:
    if type(value.get("format")) is not int or value["format"] < 1:
        raise DamagedFile(place, "cannot be read: 'format' is not the number of a format")
    if value["format"] > FORMAT:
        _check_seal(place, value, seal, subject)
        raise EngineError(
            f"{place}: was written by a later version of evaluand: its format is {value['format']}, and this version"
            f" reads up to {FORMAT}; install a later version"
        )


def _check_seal(place: str, value: dict[str, Any], seal: str, subject: str) -> None:
    if value.get("seal") != seal:
        raise DamagedFile(place, f"{subject}was changed: its seal does not match its content")


def _unlike(value: dict[str, Any], required: _Types, optional: _Types | None = None) -> str:
    """Which key of an object is missing or of another type; empty if none is."""
    for name in required:
        if name not in value:
            return f"{name!r} is missing"
    for name, types in (*required.items(), *(optional or {}).items()):
        if name in value and type(value[name]) not in types:
            return f"{name!r} is {kind_of(value[name])}"
    return ""


def _unreadable_ref(value: dict[str, Any], expected: _Types) -> str:
    if value.keys() != expected.keys():
        return f"{', '.join(value.keys() - expected.keys())!r} is unknown"
    if value["kind"] not in KINDS:
        return f"{value['kind']!r} is not a kind of artifact"
    if not ID.fullmatch(value["id"]):
        return f"{value['id']!r} is not an id"
    try:
        check_name(value["name"])
    except SpecError as error:
        return str(error)
    return ""


def _invalid_head(value: dict[str, Any]) -> str:
    if not all(type(each) is str for each in value.get("work", [])):
        return "'work' is not a list of texts"
    try:
        times = [dt.datetime.fromisoformat(value[name]) for name in ("created", "sealed") if name in value]
        _ = times[-1] - times[0]  # one with a time zone and one without cannot be compared
    except (ValueError, TypeError):
        return "'created' or 'sealed' is not a time"
    return ""


def _invalid_end(value: dict[str, Any]) -> str:
    for each in value.get("counts", {}).values():
        if not all(_is_count(n) for n in (each.values() if type(each) is dict else [each])):
            return "'counts' has a value that is not a count"
    return _invalid_tables(value["tables"])


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def _invalid_tables(tables: dict[str, Any]) -> str:
    for name, entry in tables.items():
        if type(entry) is not dict:
            return f"the table {name!r} is {kind_of(entry)}"
        if reason := _unlike(entry, _TABLE):
            return f"of the table {name!r} {reason}"
        if not ID.fullmatch(entry["digest"]) or entry["file"] != table_file(name, entry["digest"]):
            return f"the table {name!r} names {entry['file']!r}, a file outside its folder or of another table"
    return ""
