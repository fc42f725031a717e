"""Converts any Python value to JSON-like data, for records and for the configuration of apps.

Data stay as they are (`evaluand.core.identity`). Other objects become their public attributes; functions, locks and the
like become their type: `{"$unstorable": "Lock"}`. The conversion reads no property, calls no method of the value except
`model_dump`, and never fails. What is very large or very deep is left out: `{"$too_large": "list of 300000 values"}`
(`evaluand.core.placeholders`).

In a configuration, such as the parts of an app, every value whose name says that it is a credential becomes `***`, and
so do passwords inside texts (`evaluand.core.redaction`). The inputs and outputs of a call are data and stay as they
are, except for what can only be a credential inside an object: a field `api_key` or `password`, or a URL with a
password. This holds for plain objects, dataclasses and pydantic models, not for dictionaries.
"""

import dataclasses
import datetime as dt
import decimal
import inspect
import uuid
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Set
from enum import Enum
from itertools import islice
from pathlib import PurePath
from types import MemberDescriptorType, ModuleType
from typing import Any, Final

from evaluand.core.identity import encode
from evaluand.core.placeholders import too_large, unstorable
from evaluand.core.redaction import (
    HIDDEN,
    is_hidden,
    is_url_with_password,
    redact,
    without_password,
    without_passwords,
)

MOST_CHARACTERS: Final = 8_000_000  # of one value, as text
MOST_VALUES: Final = 200_000
DEEPEST: Final = 60

_ATOMS: Final = frozenset((str, int, float, bool, type(None)))
_PLAIN: Final = (bytes, bytearray, dt.datetime, dt.date, dt.time, dt.timedelta, decimal.Decimal, uuid.UUID)


def text_of(value: Any) -> str:
    """The canonical text of a value; of its JSON-like form if the value is not data or very large."""
    try:
        text = encode(_without_credentials(value) if _has_fields(value) else value)
        if len(text) <= MOST_CHARACTERS:
            return text.decode()
    except Exception:  # not data; or code of the value itself fails, such as a model_dump
        pass
    return encode(to_json_like(value)).decode()


def _has_fields(value: Any) -> bool:
    """Whether a value contains dataclasses or pydantic models."""
    kind = type(value)
    if kind is dict or kind is list or kind is tuple:
        return any(
            type(item) not in _ATOMS and _has_fields(item) for item in (value.values() if kind is dict else value)
        )
    return kind not in _ATOMS and (dataclasses.is_dataclass(value) or hasattr(value, "model_dump"))


def _without_credentials(value: Any, within: bool = False) -> Any:
    """The same data, with what can only be a credential hidden inside objects."""
    kind = type(value)
    if kind is str:
        return without_password(value) if within and is_url_with_password(value) else value
    if kind is list or kind is tuple:
        return [_without_credentials(item, within) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value, within = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}, True
    elif hasattr(value, "model_dump"):
        value, within = value.model_dump(), True
    elif kind is not dict:
        return value
    hidden = {name: within and isinstance(name, str) and is_hidden(name, value[name], strict=True) for name in value}
    return {name: HIDDEN if hidden[name] else _without_credentials(item, within) for name, item in value.items()}


def to_json_like(value: Any, *, hide: bool = False) -> Any:
    """Converts a value to data that can be stored.

    Args:
        hide: whether the value is a configuration: hides everything whose name says that it is a credential.

    Example:
        >>> from types import SimpleNamespace
        >>> to_json_like({"model": SimpleNamespace(name="small", api_key="abc", call=len)})
        {'model': {'name': 'small', 'api_key': '***', 'call': {'$unstorable': 'len'}}}
    """
    return JsonLikeConverter(hide=hide).convert(value)


def attributes_of(value: object) -> Iterator[tuple[str, Any]]:
    """The attributes in an object's dictionary or slots; reads no property."""
    try:
        attributes = object.__getattribute__(value, "__dict__")
    except (AttributeError, TypeError):
        attributes = None
    if isinstance(attributes, dict):
        yield from [(name, item) for name, item in attributes.items() if isinstance(name, str)]  # copy: threads may add
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


def escape_surrogates(text: str) -> str:
    r"""A text that can be written as UTF-8: lone surrogates are escaped.

    Example:
        >>> print(escape_surrogates("half \ud800"))
        half \ud800
    """
    return str.__str__(text).encode("utf-8", "backslashreplace").decode()


def surrogate_fault(text: str) -> str | None:
    """What is wrong with a text that UTF-8 cannot encode; None for any other text."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"contains a lone surrogate at {error.start}, which cannot be stored"
    return None


class JsonLikeConverter:
    """Converts one value, counting values and characters against the limits. See `to_json_like`."""

    def __init__(self, *, hide: bool, values: int = MOST_VALUES, characters: int = MOST_CHARACTERS) -> None:
        self.hide = hide
        self.values, self.characters = values, characters
        self.within: set[int] = set()
        self.objects = 0  # how many objects enclose the current value

    def convert(self, value: Any, depth: int = 0) -> Any:
        self.values -= 1
        kind = type(value)
        if value is None or kind is bool or kind is int or kind is float:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, _PLAIN):
            return self.plain_value(value)
        if isinstance(value, PurePath):
            return self.text(str(value))
        if depth > DEEPEST or id(value) in self.within or self.values < 0:
            if id(value) in self.within:
                return unstorable(f"{kind.__qualname__} within itself")
            return too_large(
                f"{kind.__qualname__} {'nested too deeply' if depth > DEEPEST else 'after too many values'}"
            )
        self.within.add(id(value))
        try:
            return self.compound(value, depth + 1)
        except Exception:  # code of the value itself, such as an iterator that fails
            return unstorable(kind.__qualname__)
        finally:
            self.within.discard(id(value))

    def text(self, value: str) -> Any:
        if len(value) > self.characters:
            return too_large(f"text of {len(value)} characters")
        self.characters -= len(value)
        text = escape_surrogates(value)
        if self.hide:
            return without_passwords(text)
        return without_password(text) if self.objects and is_url_with_password(text) else text

    def plain_value(self, value: Any) -> Any:
        if isinstance(value, bytes | bytearray):
            if len(value) > self.characters:
                return too_large(f"{len(value)} bytes")
            self.characters -= len(value)
            return bytes(value)
        try:
            encode(value)
        except Exception:  # NaT
            return self.text(str(value))
        return value

    def compound(self, value: Any, depth: int) -> Any:
        if isinstance(value, Enum):
            return self.convert(value.value, depth)
        if isinstance(value, Mapping):
            return self.members(((str(key), item) for key, item in value.items()), len(value), depth)
        if isinstance(value, list | tuple | Set | deque):
            return self.list(value, len(value), type(value).__qualname__, depth)
        if isinstance(value, BaseException):
            return {"type": type(value).__qualname__, "message": self.text(redact(str(value)))}
        if isinstance(value, type | ModuleType) or inspect.isroutine(value):
            return unstorable(str(getattr(value, "__qualname__", type(value).__qualname__)))
        if type(value).__module__.partition(".")[0] in ("numpy", "pyarrow", "pandas"):
            return self.array(value, depth)
        return self.object(value, depth)

    def list(self, values: Iterable[Any], size: int, kind: str, depth: int) -> Any:
        if size > self.values:
            return too_large(f"{kind} of {size} values")
        return [self.convert(item, depth) for item in islice(values, size)]

    def members(self, items: Iterable[tuple[str, Any]], size: int, depth: int) -> Any:
        if size > self.values:
            return too_large(f"mapping of {size} values")
        converted = {}
        for key, item in list(items):
            hides = (self.hide or self.objects) and is_hidden(key, item, strict=not self.hide)
            converted[escape_surrogates(key)] = HIDDEN if hides else self.convert(item, depth)
        return converted

    def array(self, value: Any, depth: int) -> Any:
        size = getattr(value, "size", 1)
        size = size if isinstance(size, int) else 1
        if size > self.values:
            return too_large(f"{type(value).__qualname__} of {size} values")
        if hasattr(value, "tolist"):
            return self.convert(value.tolist(), depth)
        return unstorable(type(value).__qualname__)

    def object(self, value: Any, depth: int) -> Any:
        fields = [(name, item) for name, item in self.fields(value) if not name.startswith("_")]
        if not fields:
            return unstorable(type(value).__qualname__)
        self.objects += 1
        try:
            return self.members(fields, len(fields), depth)
        finally:
            self.objects -= 1

    def fields(self, value: Any) -> Iterable[tuple[str, Any]]:
        if dataclasses.is_dataclass(value):
            return [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
        return attributes_of(value)


def plain_numbers(value: Any) -> Any:
    """JSON-like data in which equal numbers are alike: a whole float that is exact becomes an integer.

    Example:
        >>> plain_numbers({"n": 1.0, "list": [2.0, 0.5, True, 1e300]})
        {'n': 1, 'list': [2, 0.5, True, 1e+300]}
    """
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, Mapping):
        return {key: plain_numbers(inner) for key, inner in value.items()}
    return [*map(plain_numbers, value)] if isinstance(value, list | tuple) else value
