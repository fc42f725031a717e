"""JSON documents read field by field: every fault and note is collected with its path, and reading goes on.

`read_json` parses a file and `write_json` writes one. A `Node` is an object or a list of a document; each of its
methods reads one value, checks it and adds what is wrong to the `Findings`.
"""

from __future__ import annotations

import json
import math
import os
import re
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from typing import IO, Any, BinaryIO, Final, TextIO

import orjson

from evaluand.core.errors import DataError, Fault, SpecError, kind_of, nearest, warn
from evaluand.core.files.paths import is_inside, outside_message, replaced
from evaluand.core.identity import name_float

Target = str | os.PathLike[str] | TextIO
Source = Target | BinaryIO

_MOST_BYTES: Final = 64 << 20


@dataclass
class Findings:
    """What is wrong with a document, and what was read despite a deviation.

    Attributes:
        faults: what must be corrected.
        notes: deviations that did not prevent reading.
    """

    faults: list[Fault] = field(default_factory=list)
    notes: list[Fault] = field(default_factory=list)

    def fault(self, where: str, code: str, message: str) -> None:
        self.faults.append(Fault(where, message, code=code))

    def note(self, where: str, code: str, message: str) -> None:
        self.notes.append(Fault(where, message, code=code))

    def check(self) -> None:
        """Raises a DataError with all faults, if there are any."""
        if self.faults:
            raise DataError(self.faults)

    def warn(self) -> None:
        """Warns of each note, as code does that has no other place to show notes."""
        for note in self.notes:
            warn(str(note))


def source_label(source: Source) -> str:
    """How messages name a path or an open file."""
    if isinstance(source, str | os.PathLike):
        return str(Path(source))
    return str(getattr(source, "name", "the text"))


def read_json(source: Source, *, extended: bool = False) -> Any:
    """The value of a JSON file.

    Args:
        source: a path or an open file.
        extended: whether to read NaN and Infinity as numbers; a key that occurs twice is then a fault, and the size is
            not limited. Otherwise the file must be strict JSON of at most 64 MB.

    Raises:
        DataError: there is no such file, or it is not JSON.
        SpecError: `source` is neither a path nor an open file.
    """
    where = source_label(source)
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if not path.is_file():
            raise DataError(no_file(path))
        if not extended and path.stat().st_size > _MOST_BYTES:
            message = f"is larger than {_MOST_BYTES >> 20} MB, the most that a JSON document may have"
            raise DataError(Fault(where, message, code="not_json"))
        content: Any = path.read_bytes()
    elif not hasattr(source, "read"):
        raise SpecError(f"give the path of a file or an open file, not {kind_of(source)}")
    else:
        content = None
    try:
        content = source.read() if content is None else content  # type: ignore[union-attr]
        return json.loads(content, object_pairs_hook=_unique_keys) if extended else _parse_strict(content)
    except json.JSONDecodeError as error:  # also raised by orjson
        raise DataError(
            Fault(f"{where}:{error.lineno}:{error.colno}", f"not JSON: {error.msg}", code="not_json")
        ) from None
    except (ValueError, RecursionError) as error:
        raise DataError(Fault(where, f"not readable as JSON: {error}", code="not_json")) from None
    except DataError as error:
        raise error_in(where, error) from None


def no_file(path: Path) -> Fault:
    """The fault of a path that is not a file."""
    if not os.path.exists(path):  # false also for a name that is too long
        return Fault(str(path), "no such file", code="no_such_file")
    message = "is a folder; name a file" if path.is_dir() else "is a device or pipe; save it as a file"
    return Fault(str(path), message, code="no_such_file")


def error_in(where: str, error: DataError) -> DataError:
    """The same faults, each with the file that it is in."""
    return DataError(Fault(f"{where}: {fault.where}", fault.message, code=fault.code) for fault in error.faults)


def write_json(document: Mapping[str, Any], dest: Target, *, parents: bool = False) -> None:
    """Writes a document as strict, indented JSON; a file is replaced as a whole or not at all.

    Args:
        dest: a path or open text.
        parents: whether to make the folders that are missing.

    Raises:
        DataError: the document has a value that JSON does not have.
        SpecError: `dest` is neither a path that can be written nor open text.
    """
    text = json_text(document)
    if not isinstance(dest, str | os.PathLike):
        write_open(text, dest, "text")
        return
    path = Path(dest)
    try:
        with replaced(path, parents=parents) as file:
            file.write(text.encode())
    except OSError as error:
        raise SpecError(f"{path} cannot be written: {error.strerror}") from None


def write_open(content: Any, file: IO[Any], form: str) -> None:
    """Writes to an open file.

    Args:
        content: text or bytes.
        form: `text` or `bytes`, as `content` is.

    Raises:
        SpecError: `file` is not open, or open for the other form.
    """
    try:
        file.write(content)
    except (AttributeError, TypeError):
        raise SpecError(f"{short_repr(file)} is not a file open for {form}; give one, or a path") from None


def json_text(document: Mapping[str, Any]) -> str:
    """A document as strict, indented JSON; infinite numbers are text such as "Infinity".

    Raises:
        DataError: the document has a value that JSON does not have.
    """
    try:
        return orjson.dumps(without_infinities(document), option=orjson.OPT_INDENT_2).decode() + "\n"
    except orjson.JSONEncodeError as error:
        raise DataError(f"cannot be written as JSON: {error}") from None


def none_if_nan(value: Any) -> Any:
    """Null in place of NaN, which JSON does not have."""
    return None if isinstance(value, float) and value != value else value


def without_infinities(value: Any) -> Any:
    """A document with text instead of NaN and infinite numbers."""
    if isinstance(value, float) and not math.isfinite(value):
        return name_float(value)
    if isinstance(value, Mapping):
        return {key: without_infinities(each) for key, each in value.items()}
    return [without_infinities(each) for each in value] if isinstance(value, list | tuple) else value


def as_python(value: Any) -> Any:
    """Arrays and numbers of NumPy, pandas and the like as lists and numbers of Python."""
    return value.tolist() if hasattr(value, "tolist") else value


def short_repr(value: Any) -> str:
    """A value as messages quote it: its beginning, if it is long."""
    return _SHORT.repr(value)


def to_number(value: Any) -> float | None:
    """A number, also one written as text; None for anything else and for numbers too large for 64 bits."""
    if isinstance(value, bool) or not isinstance(value, Real | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def is_text(value: Any) -> bool:
    """Whether a value is text that UTF-8 can encode; half of a surrogate pair cannot be."""
    return isinstance(value, str) and not _SURROGATE.search(value)


class Node:
    """An object or a list of a document, with the path to it.

    Each method reads the value of one key, or of one place of a list. A key that is null or missing counts as missing.
    A value of the wrong type or out of range becomes a fault and counts as missing too, so reading goes on.

    Args:
        value: the object or list.
        where: its path within the document; empty for the document.
        findings: where to collect faults and notes.

    Example:
        >>> findings = Findings()
        >>> node = Node({"repeats": 0, "tset": 0.2}, "split", findings)
        >>> node.integer("repeats", least=1)
        >>> node.number("test", least=0, most=1)
        >>> node.refuse_unknown_keys()
        >>> for fault in findings.faults:
        ...     print(fault)
        split.repeats: is 0; give at least 1
        split.tset: unknown key (did you mean 'test'?); known keys: repeats, test
    """

    def __init__(self, value: Mapping[str, Any] | Sequence[Any], where: str, findings: Findings) -> None:
        self.value: Any = value
        self.where, self.findings = where, findings
        self._read_keys: list[str] = []
        self._objects: list[Node] = []

    @classmethod
    def root(cls, value: Any, findings: Findings, name: str = "") -> Node:
        """The node of a document.

        Raises:
            DataError: the document is not an object.
        """
        if not isinstance(value, Mapping):
            message = f"must be an object, not {kind_of(value)}"
            raise DataError(Fault(name or "the document", message, code="wrong_type"))
        return cls(value, "", findings)

    def has(self, key: str) -> bool:
        """Whether a key has a value other than null."""
        return isinstance(self.value, Mapping) and self.value.get(key) is not None

    def place(self, key: str | int) -> str:
        """The path of a key, or of a place in a list."""
        if isinstance(key, int):
            return f"{self.where}[{key}]"
        return f"{self.where}.{key}" if self.where else key

    def fault(self, key: str | int, code: str, message: str) -> None:
        self.findings.fault(self.place(key), code, message)

    def note(self, key: str | int, code: str, message: str) -> None:
        self.findings.note(self.place(key), code, message)

    def text(self, key: str, *, required: bool = False, empty: bool = False) -> str | None:
        """A text; a number is read as text, with a note.

        Args:
            key: where it is.
            required: whether its absence is a fault.
            empty: whether the text may be empty.
        """
        value = self._get(key, required)
        if isinstance(value, int | float) and not isinstance(value, bool):
            self.note(key, "number_for_text", f"is the number {value}; read as text")
            value = str(value)
        if value is not None and not isinstance(value, str):
            self._wrong_type(key, value, "a text")
            return None
        if value == "" and not empty:
            if required:
                self.fault(key, "empty", "is empty")
            return None
        return value

    def file_path(self, key: str, *, required: bool = False) -> str | None:
        """The path of a file within the document's folder."""
        value = self.text(key, required=required)
        if value is not None and not is_inside(value):
            self.fault(key, "unsafe_path", outside_message(value))
            return None
        return value

    def choice(self, key: str, allowed: Sequence[str], *, required: bool = False) -> str | None:
        """One of several texts; a difference in case is noted."""
        value = self.text(key, required=required)
        return None if value is None else self._choose(key, value, allowed)

    def choices(self, key: str, allowed: Sequence[str], *, required: bool = False) -> dict[int, str]:
        """A list of such texts by place, each once."""
        chosen: dict[int, str] = {}
        for i, value in self._items(key, str, "a text", required):
            word = self._choose(f"{key}[{i}]", value, allowed)
            if word in chosen.values():
                self.note(f"{key}[{i}]", "twice", f"{word!r} occurs twice")
            elif word is not None:
                chosen[i] = word
        return chosen

    def texts(self, key: str) -> tuple[str, ...]:
        """The texts of a list."""
        return tuple(value for _, value in self._items(key, str, "a text", False))

    def integer(self, key: str, *, required: bool = False, least: int | None = None) -> int | None:
        """An integer of 64 bits; 1.0 is read as 1, with a note."""
        value = self._get(key, required)
        if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
            self.note(key, "float_for_integer", f"is {value}; read as {int(value)}")
            value = int(value)
        integral = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        if value is not None and (isinstance(value, bool) or not integral):
            actual = str(value) if isinstance(value, float) else kind_of(value)
            self.fault(key, "wrong_type", f"must be an integer, not {actual}")
            return None
        if value is not None and not -(2**63) <= value < 2**63:
            self.fault(key, "out_of_range", "does not fit in 64 bits")
            return None
        if value is not None and least is not None and value < least:
            self.fault(key, "out_of_range", f"is {value}; give at least {least}")
            return None
        return value

    def number(self, key: str, *, required: bool = False, least: float, most: float) -> float | None:
        """A number within a range."""
        value = self._typed(key, int | float, "a number", required)
        if value is not None and not least <= value <= most:
            self.fault(key, "out_of_range", f"is {value}; give a number from {least:g} to {most:g}")
            return None
        return None if value is None else float(value)

    def numbers(self, key: str | int, *, least: float, most: float) -> list[float]:
        """A list or array of numbers within a range; numbers written as text are read too, and faults are 0.

        The key, or the place in a list, must exist.
        """
        values = as_python(self.value[key])
        if not isinstance(values, list | tuple):
            self._wrong_type(key, values, "a list of numbers")
            return []
        numbers = [value if type(value) is float else to_number(as_python(value)) for value in values]
        place = self.place(key)
        for i, number in enumerate(numbers):
            if number is None:
                self.findings.fault(f"{place}[{i}]", "wrong_type", f"{short_repr(values[i])} is not a number")
            elif not least <= number <= most:
                message = f"is {number:g}; give a number from {least:g} to {most:g}"
                self.findings.fault(f"{place}[{i}]", "out_of_range", message)
        return [0.0 if number is None else number for number in numbers]

    def boolean(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self._typed(key, bool, "true or false", False)
        return default if value is None else value

    def node(self, key: str, *, required: bool = False) -> Node | None:
        """The object of a key."""
        value = self._typed(key, Mapping, "an object", required)
        return None if value is None else self._object(value, key)

    def nodes(self, key: str, *, required: bool = False) -> Iterator[Node]:
        """The objects of a list."""
        for i, value in self._items(key, Mapping, "an object", required):
            yield self._object(value, f"{key}[{i}]")

    def raw(self, key: str) -> Any:
        """The value of a key, of whatever type."""
        return self._get(key, False)

    def ignore(self, *keys: str) -> None:
        """Accepts keys that have no meaning here."""
        self._read_keys += keys

    def ignore_with_note(self, keys: Sequence[str], code: str, message: str) -> None:
        """Accepts keys that have no meaning here, and notes each that has a value."""
        for key in keys:
            if self.has(key):
                self.note(key, code, message)
        self._read_keys += keys

    def refuse_unknown_keys(self) -> None:
        """Makes a fault of every key that was neither read nor ignored, here and in the objects that were read."""
        for key in self.value:
            if key not in self._read_keys:
                known = ", ".join(dict.fromkeys(self._read_keys))
                self.fault(key, "unknown_key", f"unknown key{nearest(key, self._read_keys)}; known keys: {known}")
        for inner in self._objects:
            inner.refuse_unknown_keys()

    def _object(self, value: Mapping[str, Any], key: str) -> Node:
        self._objects.append(Node(value, self.place(key), self.findings))
        return self._objects[-1]

    def _get(self, key: str, required: bool) -> Any:
        self._read_keys.append(key)
        value = self.value.get(key)
        if value is None and required:
            self.fault(key, "missing_key", "is null; give a value" if key in self.value else "is missing")
        elif value is None and key in self.value:
            self.note(key, "null", "is null; read as missing")
        return value

    def _typed(self, key: str, kind: Any, expected: str, required: bool) -> Any:
        """The value of a key, if it is of a type; truth values are no numbers."""
        value = self._get(key, required)
        if value is None or (isinstance(value, kind) and (kind is bool or not isinstance(value, bool))):
            return value
        self._wrong_type(key, value, expected)
        return None

    def _items(self, key: str, kind: type, expected: str, required: bool) -> Iterator[tuple[int, Any]]:
        """The items of a list that are of a type, with their places."""
        for i, value in enumerate(self._typed(key, list, "a list", required) or ()):
            if isinstance(value, kind):
                yield i, value
            else:
                self._wrong_type(f"{key}[{i}]", value, expected)

    def _choose(self, key: str, value: str, allowed: Sequence[str]) -> str | None:
        if value in allowed:
            return value
        alike = next((one for one in allowed if one.lower() == value.lower()), None)
        if alike is not None:
            self.note(key, "other_case", f"{value!r} is read as {alike!r}")
            return alike
        self.fault(key, "not_allowed", f"unknown value {value!r}{nearest(value, allowed)}; give {', '.join(allowed)}")
        return None

    def _wrong_type(self, key: str | int, value: Any, expected: str) -> None:
        self.fault(key, "wrong_type", f"must be {expected}, not {kind_of(value)}")


def _parse_strict(content: str | bytes) -> Any:
    content = content.encode() if isinstance(content, str) else content
    return orjson.loads(content.removeprefix(b"\xef\xbb\xbf"))


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object without repeated keys.

    Raises:
        DataError: a key occurs twice, or cannot be encoded.
    """
    document: dict[str, Any] = {}
    for key, value in pairs:
        if not is_text(key):
            raise DataError(Fault(short_repr(key), "is not text that UTF-8 can encode", code="not_json"))
        if key in document:
            raise DataError(Fault(key, "occurs twice in one object", code="not_json"))
        document[key] = value
    return document


_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
_SHORT: Final = reprlib.Repr()
