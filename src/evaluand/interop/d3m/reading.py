"""Reading JSON documents against what their schema says, with every fault at once, each by its path and code.

A document that deviates mildly, as real ones do, is read, and a note says what was taken for what.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from evaluand.core.errors import DataError, Fault, kind_of
from evaluand.core.registry import nearest
from evaluand.interop.d3m.names import VERSIONS, Version
from evaluand.problem.problem import is_inside, outside

_LARGEST: Final = 64 << 20


@dataclass
class Findings:
    """What is wrong with documents, and what is only worth a note.

    Attributes:
        faults: what must be mended.
        notes: what was read all the same.
    """

    faults: list[Fault] = field(default_factory=list)
    notes: list[Fault] = field(default_factory=list)

    def fault(self, where: str, code: str, message: str) -> None:
        self.faults.append(Fault(where, message, code=code))

    def note(self, where: str, code: str, message: str) -> None:
        self.notes.append(Fault(where, message, code=code))

    def check(self) -> None:
        """Raises a DataError when there are faults."""
        if self.faults:
            raise DataError(self.faults)


def load(path: Path) -> Any:
    """The JSON of a file.

    Raises:
        DataError: no such file, or no JSON.
    """
    if not path.is_file():
        raise DataError(no_file(path))
    if path.stat().st_size > _LARGEST:
        raise DataError(Fault(str(path), f"is larger than {_LARGEST >> 20} MB, and so no document", code="not_json"))
    try:
        return orjson.loads(path.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError as error:
        raise DataError(
            Fault(f"{path}:{error.lineno}:{error.colno}", f"not JSON: {error.msg}", code="not_json")
        ) from None


def no_file(path: Path) -> Fault:
    """That a path is none of a file, in words."""
    told = "is a folder; name a file" if path.is_dir() else "is a device or pipe; save it as a file"
    return Fault(str(path), told if path.exists() else "no such file", code="no_such_file")


def dump(document: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Writes a document as JSON for people."""
    with replacing(path) as draft:
        draft.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A file to write, which takes the place of another once it is whole; folders that lack are made."""
    place = Path(os.path.realpath(path))
    if place.exists() and not place.is_file():  # a device cannot be replaced
        yield place
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = place.with_name(f".{place.name[:100]}-{secrets.token_hex(4)}.tmp")
    try:
        yield draft
        os.replace(draft, place)
    finally:
        draft.unlink(missing_ok=True)


class Node:
    """An object of a document, whose keys are asked for one by one; what was not asked for is not known.

    A key that is null or missing is not there. Where a value is not what it must be, a fault is noted and the value is
    taken as not there, so that reading goes on.
    """

    def __init__(self, value: Mapping[str, Any], where: str, findings: Findings) -> None:
        self.value, self.where, self.findings = value, where, findings
        self._known: list[str] = []

    @classmethod
    def root(cls, value: Any, findings: Findings, name: str = "") -> Node:
        """The document as a whole.

        Raises:
            DataError: it is no object.
        """
        if not isinstance(value, dict):
            raise DataError(Fault(name, f"a document is an object, not {kind_of(value)}", code="wrong_type"))
        return cls(value, "", findings)

    def has(self, key: str) -> bool:
        return self.value.get(key) is not None

    def place(self, key: str) -> str:
        return f"{self.where}.{key}" if self.where else key

    def fault(self, key: str, code: str, message: str) -> None:
        self.findings.fault(self.place(key), code, message)

    def note(self, key: str, code: str, message: str) -> None:
        self.findings.note(self.place(key), code, message)

    def text(self, key: str, *, required: bool = False, empty: bool = False) -> str | None:
        """A text; None where there is none.

        Args:
            empty: whether an empty text is one.
        """
        value = self._get(key, required)
        if isinstance(value, int | float) and not isinstance(value, bool):
            self.note(key, "number_for_text", f"is the number {value}; taken as text")
            value = str(value)
        if value is not None and not isinstance(value, str):
            self._wrong(key, value, "a text")
            return None
        if value == "" and not empty:
            if required:
                self.fault(key, "empty", "is empty")
            return None
        return value

    def path(self, key: str, *, required: bool = False) -> str | None:
        """The path of a file within the folder."""
        value = self.text(key, required=required)
        if value is not None and not is_inside(value):
            self.fault(key, "unsafe_path", outside(value))
            return None
        return value

    def word(self, key: str, allowed: Sequence[str], *, required: bool = False) -> str | None:
        """A text that is one of several."""
        value = self.text(key, required=required)
        return None if value is None else self._allowed(key, value, allowed)

    def words(self, key: str, allowed: Sequence[str], *, required: bool = False) -> dict[int, str]:
        """A list of such texts, each by its place."""
        found: dict[int, str] = {}
        for i, value in enumerate(self._list(key, required)):
            if isinstance(value, str):
                word = self._allowed(f"{key}[{i}]", value, allowed)
                if word in found.values():
                    self.note(f"{key}[{i}]", "twice", f"{word!r} is there twice")
                elif word is not None:
                    found[i] = word
            else:
                self._wrong(f"{key}[{i}]", value, "a text")
        return found

    def integer(self, key: str, *, required: bool = False, least: int | None = None) -> int | None:
        """A whole number, also one written as 1.0."""
        value = self._get(key, required)
        if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
            self.note(key, "float_for_integer", f"is {value}; taken as {int(value)}")
            value = int(value)
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        if value is not None and (isinstance(value, bool) or not whole):
            told = str(value) if isinstance(value, float) else kind_of(value)
            self.fault(key, "wrong_type", f"must be a whole number, not {told}")
            return None
        if value is not None and not -(2**63) <= value < 2**63:
            self.fault(key, "out_of_range", "is a number that 64 bits do not hold")
            return None
        if value is not None and least is not None and value < least:
            self.fault(key, "out_of_range", f"is {value}; give at least {least}")
            return None
        return value

    def number(self, key: str, *, required: bool = False, least: float, most: float) -> float | None:
        """A number within a range."""
        value = self._get(key, required)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            self._wrong(key, value, "a number")
            return None
        if value is not None and not least <= value <= most:
            self.fault(key, "out_of_range", f"is {value}; give a number from {least:g} to {most:g}")
            return None
        return None if value is None else float(value)

    def truth(self, key: str, default: bool) -> bool:
        value = self._get(key, False)
        if value is not None and not isinstance(value, bool):
            self._wrong(key, value, "true or false")
            return default
        return default if value is None else value

    def node(self, key: str, *, required: bool = False) -> Node | None:
        value = self._get(key, required)
        if value is not None and not isinstance(value, dict):
            self._wrong(key, value, "an object")
            return None
        return None if value is None else Node(value, self.place(key), self.findings)

    def nodes(self, key: str, *, required: bool = False) -> Iterator[Node]:
        for i, value in enumerate(self._list(key, required)):
            if isinstance(value, dict):
                yield Node(value, f"{self.place(key)}[{i}]", self.findings)
            else:
                self._wrong(f"{key}[{i}]", value, "an object")

    def raw(self, key: str) -> Any:
        """Whatever stands there."""
        return self._get(key, False)

    def ignore(self, *keys: str) -> None:
        """These keys are known, and mean nothing here."""
        self._known += keys

    def other(self, keys: Sequence[str], told: str) -> None:
        """These keys belong to another version: a note says so where they are there."""
        for key in keys:
            if self.has(key):
                self.note(key, "other_version", told)
        self._known += keys

    def done(self) -> None:
        """Every key that was not asked for is unknown."""
        for key in self.value:
            if key not in self._known:
                known = ", ".join(dict.fromkeys(self._known))
                self.fault(key, "unknown_key", f"no key is called so{nearest(key, self._known)}; there are {known}")

    def _get(self, key: str, required: bool) -> Any:
        self._known.append(key)
        value = self.value.get(key)
        if value is None and required:
            self.fault(key, "missing_key", "is required" if key not in self.value else "is null, and required")
        elif value is None and key in self.value:
            self.note(key, "null", "is null; taken as not there")
        return value

    def _list(self, key: str, required: bool) -> list[Any]:
        value = self._get(key, required)
        if value is not None and not isinstance(value, list):
            self._wrong(key, value, "a list")
            return []
        return value or []

    def _allowed(self, key: str, value: str, allowed: Sequence[str]) -> str | None:
        if value in allowed:
            return value
        alike = [one for one in allowed if one.lower() == value.lower()]
        if alike:
            self.note(key, "other_case", f"{value!r} is taken as {alike[0]!r}")
            return alike[0]
        self.fault(key, "not_allowed", f"{value!r} is unknown{nearest(value, allowed)}; there are {', '.join(allowed)}")
        return None

    def _wrong(self, key: str, value: Any, wanted: str) -> None:
        self.fault(key, "wrong_type", f"must be {wanted}, not {kind_of(value)}")


def version_of(node: Node, key: str, default: str) -> Version:
    """The version that a document says its schema has; one that is unknown is read as the nearest below it."""
    text = node.text(key)
    if text is None:
        if node.value.get(key) is None:
            node.note(key, "no_version", f"is not given; read as {default}")
        return parsed(default)
    try:
        version = parsed(text)
    except ValueError:
        version = ()
    if version[:1] not in ((3,), (4,)):
        node.fault(key, "unknown_version", f"{text!r} is unknown; there are {', '.join(VERSIONS)}")
        return parsed(VERSIONS[-1] if version > parsed(VERSIONS[-1]) else default)
    if text not in VERSIONS:
        node.note(key, "unknown_version", f"{text!r} is unknown; read by what is known of {version[0]}.x")
    return version


def parsed(version: str) -> Version:
    return tuple(int(part) for part in version.split("."))
