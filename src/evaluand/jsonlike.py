"""Any Python value as JSON-like data, for records and for what apps are made of.

Values that are data are kept as they are (`evaluand.ids`). Of other objects the public attributes are told, of
functions, locks and the like only the type: `{"$unstorable": "Lock"}`. No property is asked for and no method of the
value called but `model_dump`, nothing fails, and what is very large, very deep or within itself is cut short, which is
said in the same way.

Attributes and keys that are named as secrets are (`api_key`, `*_token`, `password` …) are told as `***`, where asked
for, and so are passwords in URLs.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import inspect
import re
import uuid
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Set
from enum import Enum
from itertools import islice
from pathlib import PurePath
from types import MemberDescriptorType, ModuleType
from typing import Any, Final

from evaluand.ids import encode

HIDDEN: Final = "***"
MOST_CHARACTERS: Final = 8_000_000  # of one value, as text
MOST_VALUES: Final = 200_000
DEEPEST: Final = 60

_SECRET: Final = re.compile(
    r"(?:key|token|secret|password|passwd|passphrase|credentials?|authorization)$", re.IGNORECASE
)
_IN_URL: Final = re.compile(r"(://[^/@\s:]*:)[^/@\s]+@")
_PLAIN: Final = (bytes, bytearray, dt.datetime, dt.date, dt.time, dt.timedelta, decimal.Decimal, uuid.UUID)


def text_of(value: Any) -> str:
    """The canonical text of a value: of what it is, where it is data of a usual size, and else of its likeness."""
    try:
        text = encode(value)
        if len(text) <= MOST_CHARACTERS:
            return text.decode()
    except Exception:  # not data; or code of the value's own fails, such as a model_dump
        pass
    return encode(jsonlike(value)).decode()


def jsonlike(value: Any, *, hide: bool = False) -> Any:
    """A value as data that can be stored.

    Args:
        value: anything.
        hide: whether values under keys that name secrets are hidden too, not only those of attributes.

    Example:
        >>> from types import SimpleNamespace
        >>> jsonlike({"model": SimpleNamespace(name="small", api_key="abc", call=len)})
        {'model': {'name': 'small', 'api_key': '***', 'call': {'$unstorable': 'len'}}}
    """
    return Likeness(hide=hide).of(value)


def attributes_of(value: object) -> Iterator[tuple[str, Any]]:
    """The attributes that an object holds itself, in its dictionary or its slots; no property is asked for."""
    try:
        held = object.__getattribute__(value, "__dict__")
    except (AttributeError, TypeError):
        held = None
    if isinstance(held, dict):
        yield from [(name, item) for name, item in held.items() if isinstance(name, str)]  # a copy: threads may add
    for cls in type(value).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            if name.startswith("__") and not name.endswith("__"):
                name = f"_{cls.__name__.lstrip('_')}{name}"
            member = cls.__dict__.get(name)
            if isinstance(member, MemberDescriptorType):
                try:
                    yield name, member.__get__(value, cls)
                except AttributeError:  # not set
                    continue


def is_secret(name: str) -> bool:
    """Whether what has this name is not for others."""
    return _SECRET.search(name) is not None


def unstorable(told: str) -> dict[str, str]:
    """What stands in place of a value that is no data."""
    return {"$unstorable": told}


class Likeness:
    """The likeness of one value in the making; what it may hold is counted. See `jsonlike`."""

    def __init__(self, *, hide: bool, values: int = MOST_VALUES, characters: int = MOST_CHARACTERS) -> None:
        self.hide = hide
        self.values, self.characters = values, characters
        self.within: set[int] = set()

    def of(self, value: Any, depth: int = 0) -> Any:
        self.values -= 1
        kind = type(value)
        if value is None or kind is bool or kind is int or kind is float:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, _PLAIN):
            return self.plain(value)
        if isinstance(value, PurePath):
            return self.text(str(value))
        if depth > DEEPEST or id(value) in self.within or self.values < 0:
            return unstorable(f"{kind.__qualname__} {'within itself' if id(value) in self.within else 'cut short'}")
        self.within.add(id(value))
        try:
            return self.whole(value, depth + 1)
        except Exception:  # code of the value's own, such as an iterator that fails
            return unstorable(kind.__qualname__)
        finally:
            self.within.discard(id(value))

    def text(self, value: str) -> Any:
        if len(value) > self.characters:
            return unstorable(f"text of {len(value)} characters")
        self.characters -= len(value)
        return _IN_URL.sub(rf"\1{HIDDEN}@", str.__str__(value).encode("utf-8", "replace").decode())

    def plain(self, value: Any) -> Any:
        if isinstance(value, bytes | bytearray):
            if len(value) > self.characters:
                return unstorable(f"{len(value)} bytes")
            self.characters -= len(value)
            return bytes(value)
        try:
            encode(value)
        except Exception:  # a time of pandas that is none
            return self.text(str(value))
        return value

    def whole(self, value: Any, depth: int) -> Any:
        if isinstance(value, Enum):
            return self.of(value.value, depth)
        if isinstance(value, Mapping):
            return self.members(((str(key), item) for key, item in value.items()), len(value), depth, self.hide)
        if isinstance(value, list | tuple | Set | deque):
            return self.list(value, len(value), type(value).__qualname__, depth)
        if isinstance(value, BaseException):
            return {"type": type(value).__qualname__, "message": self.text(str(value))}
        if isinstance(value, type | ModuleType) or inspect.isroutine(value):
            return unstorable(str(getattr(value, "__qualname__", type(value).__qualname__)))
        if type(value).__module__.partition(".")[0] in ("numpy", "pyarrow", "pandas"):
            return self.array(value, depth)
        return self.object(value, depth)

    def list(self, values: Iterable[Any], size: int, kind: str, depth: int) -> Any:
        if size > self.values:
            return unstorable(f"{kind} of {size} values")
        return [self.of(item, depth) for item in islice(values, size)]

    def members(self, items: Iterable[tuple[str, Any]], size: int, depth: int, hide: bool) -> Any:
        if size > self.values:
            return unstorable(f"mapping of {size} values")
        told = {}
        for key, item in list(items):
            is_hidden = hide and is_secret(key) and item is not None and type(item) is not bool
            told[self.text(key)] = HIDDEN if is_hidden else self.of(item, depth)
        return told

    def array(self, value: Any, depth: int) -> Any:
        size = getattr(value, "size", 1)
        size = size if isinstance(size, int) else 1
        if size > self.values:
            return unstorable(f"{type(value).__qualname__} of {size} values")
        if hasattr(value, "tolist"):
            return self.of(value.tolist(), depth)
        return unstorable(type(value).__qualname__)

    def object(self, value: Any, depth: int) -> Any:
        held = [(name, item) for name, item in self.fields(value) if not name.startswith("_")]
        return self.members(held, len(held), depth, True) if held else unstorable(type(value).__qualname__)

    def fields(self, value: Any) -> Iterable[tuple[str, Any]]:
        if dataclasses.is_dataclass(value):
            return [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
        return attributes_of(value)
