"""Parts of a large JSON document, found without parsing all of it.

    JsonCursor(bytes) ──▶ members of an object, items of an array ──▶ the text of one value at a time

So a document of a gigabyte with one long list takes the memory of one item. Only brackets and strings are looked at:
what is between them is checked when a part is parsed.
"""

from __future__ import annotations

import json
import mmap
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import orjson

from evaluand.core.errors import DataError, Fault
from evaluand.core.files.csv import mapped

_BRACKET: Final = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+([\[\]{}])', re.DOTALL)
_SPACE: Final = re.compile(rb"[ \t\r\n]*+")
_SCALAR: Final = re.compile(rb"[^,\]}\s]++")
_STRING: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_MARK: Final = b"\xef\xbb\xbf"  # with which some programs begin a file
_WINDOW: Final = 1 << 24  # bytes, a multiple of the size of a page
_DEPTHS: Final = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}


class JsonCursor:
    """A place in a JSON document.

    Members and items are visited in order. The one that is visited may be entered by `members` or `items`, read by
    `value`, or left, and is skipped then.

    Args:
        content: the document.
        name: of the document, in messages.

    Example:
        >>> cursor = JsonCursor(b'{"version": 2, "rows": [{"a": 1}, {"a": 2}]}')
        >>> [cursor.value() for key in cursor.members() if key == "rows" for _ in cursor.items()]
        [{'a': 1}, {'a': 2}]
    """

    def __init__(self, content: bytes | mmap.mmap, name: str = "JSON") -> None:
        self._content, self._name = content, name
        self._place = len(_MARK) if content[: len(_MARK)] == _MARK else 0
        self._released = 0
        self._skip_space()

    @classmethod
    def open(cls, path: Path) -> JsonCursor:
        """The beginning of a file, which is mapped, not read."""
        return cls(mapped(path), str(path))

    @property
    def kind(self) -> str:
        """The first character of the value here: `{`, `[`, `"` or that of a number or word; empty at the end."""
        return self._content[self._place : self._place + 1].decode("latin-1")

    @property
    def place(self) -> int:
        """How many bytes precede the value here."""
        return self._place

    def documents(self) -> Iterator[None]:
        """Stops at each of several documents that follow each other, such as lines.

        Raises:
            DataError: one ends early.
        """
        while self.kind:
            start = self._place
            yield
            if self._place == start:
                self._skip()
            self._skip_space()

    def members(self) -> Iterator[str]:
        """The keys of the object here; at each, the cursor is at its value.

        Raises:
            DataError: the document ends early, or this is no object.
        """
        for _ in self._parts("{", "}"):
            found = _STRING.match(self._content, self._place)
            if found is None:
                raise self._fault("a key is expected here")
            key = parse_json(found.group(), self._name)
            self._place = found.end()
            self._skip_space()
            self._expect(":")
            start = self._place
            yield key
            if self._place == start:
                self._skip()

    def items(self) -> Iterator[None]:
        """Stops at each item of the array here.

        Raises:
            DataError: the document ends early, or this is no array.
        """
        for _ in self._parts("[", "]"):
            start = self._place
            yield
            if self._place == start:
                self._skip()

    def value(self) -> Any:
        """The value here, parsed; the cursor is behind it then.

        Raises:
            DataError: it is not JSON.
        """
        return parse_json(self.text(), f"{self._name}, byte {self._place:,}")

    def text(self) -> bytes:
        """The text of the value here; the cursor is behind it then."""
        start = self._place
        self._skip()
        text = self._content[start : self._place]
        self._release()
        return text

    def starts_with(self, pattern: re.Pattern[bytes]) -> bool:
        """Whether the text from here on begins like this."""
        return pattern.match(self._content, self._place) is not None

    def _release(self) -> None:
        """Gives back the memory in which a mapped file was seen up to here."""
        stop = self._place // _WINDOW * _WINDOW
        if stop > self._released and isinstance(self._content, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            self._content.madvise(mmap.MADV_DONTNEED, self._released, stop - self._released)
            self._released = stop

    def _parts(self, first: str, last: str) -> Iterator[None]:
        self._expect(first)
        if self.kind == last:
            self._step()
            return
        while True:
            yield
            self._skip_space()
            if self.kind == last:
                self._step()
                return
            self._expect(",")

    def _skip(self) -> None:
        """Goes behind the value here."""
        if self.kind not in ("{", "["):
            found = (_STRING if self.kind == '"' else _SCALAR).match(self._content, self._place)
            if found is None:
                raise self._fault("a value is expected here")
            self._place = found.end()
            return
        depth, place = 0, self._place
        while (found := _BRACKET.match(self._content, place)) is not None:  # finditer would try every later place
            depth += _DEPTHS[found[1]]
            place = found.end()
            if not depth:
                self._place = place
                return
        raise self._fault("the document ends before this value does")

    def _expect(self, character: str) -> None:
        if self.kind != character:
            raise self._fault(f"{character!r} is expected here, not {self.kind or 'the end'!r}")
        self._step()

    def _step(self) -> None:
        self._place += 1
        self._skip_space()

    def _skip_space(self) -> None:
        found = _SPACE.match(self._content, self._place)
        self._place = found.end() if found else self._place

    def _fault(self, message: str) -> DataError:
        return DataError(Fault(f"{self._name}, byte {self._place:,}", f"not JSON: {message}"))


def parse_json(text: bytes | str, where: str) -> Any:
    """A JSON value; NaN and infinities, which several tools write, are read as numbers.

    Raises:
        DataError: this is not JSON; names the place.

    Example:
        >>> parse_json('{"a": NaN}', "line 1")
        {'a': nan}
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise DataError(Fault(where, f"not JSON: {error}")) from None
