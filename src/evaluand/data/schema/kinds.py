"""The types a schema consists of. Pydantic models, Arrow schemas and JSON Schemas are read into them and written from
them, so they hold everything that any of the three forms can express.

    Scalar       one value: its kind (`int8`, `string`, `datetime`, …) and its limits
    Array        a list; of fixed length where `min_length` and `max_length` are equal
    Map          an object with any text keys and values of one type
    StructType   an object with named fields; the type of a row
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import decimal
import math
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()

RANGES: Final[Mapping[str, tuple[int, int]]] = {
    **{f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (0, 2**bits - 1) for bits in (8, 16, 32, 64)},
}
DIGITS, PLACES = 38, 18
"""Digits of a decimal that declares none, and how many of them come after the point."""


@dataclass(frozen=True)
class Kind:
    """How the values of a kind are represented.

    Attributes:
        arrow: their Arrow type, unless a limit changes it.
        python: their Python type.
        json: `type` and `format` in JSON Schema.
        write: the JSON form of a value.
        read: the value of a JSON form; raises ValueError for any other text. None where JSON has the value itself.
    """

    arrow: pa.DataType
    python: type
    json: Mapping[str, str]
    write: Callable[[Any], Any] = lambda value: value
    read: Callable[[Any], Any] | None = None


def _write_duration(value: dt.timedelta) -> str:
    seconds, rest = divmod(abs(value) // dt.timedelta(microseconds=1), 1_000_000)
    fraction = f".{rest:06}".rstrip("0") if rest else ""
    return f"{'-' if value < dt.timedelta(0) else ''}PT{seconds}{fraction}S"


class Unrepresentable(ValueError):
    """A text is well-formed, but no value of its kind equals it exactly; the message says why."""


def _make_reader(pattern: str, read: Callable[[str], Any]) -> Callable[[str], Any]:
    """A reader of texts that match a pattern in full; Python's own readers accept more, and round."""
    form = re.compile(pattern, re.ASCII)

    def parse(text: str) -> Any:
        match = form.fullmatch(text)
        if not match:
            raise ValueError(text)
        if (match.groupdict().get("fraction") or "")[6:].strip("0"):
            raise Unrepresentable("finer than microseconds")
        return read(text.upper())

    return parse


_DATE = r"\d{4}-\d\d-\d\d"
_TIME = r"\d\d:\d\d:\d\d(?:\.(?P<fraction>\d+))?(?:Z|z|[+-]\d\d:[0-5]\d)?"
_UUID = r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
_DECIMAL = r"[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|NaN|Infinity)"
_DURATION = re.compile(
    r"([+-])?P(?=.)(?:([\d.]+)Y)?(?:([\d.]+)M)?(?:([\d.]+)W)?(?:([\d.]+)D)?"
    r"(?:T(?=.)(?:([\d.]+)H)?(?:([\d.]+)M)?(?:([\d.]+)S)?)?",
    re.ASCII,
)
_AMOUNT = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
_SECONDS = (7 * 86400, 86400, 3600, 60, 1)


def _read_duration(text: str) -> dt.timedelta:
    """A duration of ISO 8601, with a fraction in its last part at most."""
    match = _DURATION.fullmatch(text)
    parts = [part for part in match.groups()[1:] if part] if match else []
    if not match or not all(map(_AMOUNT.fullmatch, parts)) or any("." in part for part in parts[:-1]):
        raise ValueError(text)
    if match[2] or match[3]:
        raise Unrepresentable("with years or months, which have no fixed length; give days")
    amounts = zip(match.groups()[3:], _SECONDS, strict=True)
    micros = 10**6 * sum(Fraction(amount or 0) * seconds for amount, seconds in amounts)
    if micros.denominator > 1:
        raise Unrepresentable("finer than microseconds")
    duration = dt.timedelta(microseconds=int(micros))
    return -duration if match[1] == "-" else duration


def _read_bytes(text: str) -> bytes:
    data = binascii.a2b_base64(text, strict_mode=True)
    if base64.b64encode(data).decode() != text:
        raise ValueError(text)
    return data


def _write_decimal(value: decimal.Decimal) -> str:
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _read_decimal(text: str) -> decimal.Decimal:
    try:
        return decimal.Decimal(text)
    except decimal.InvalidOperation:
        raise ValueError(text) from None


_read_time = _make_reader(_TIME, dt.time.fromisoformat)
_read_datetime = _make_reader(f"{_DATE}[Tt ]{_TIME}", dt.datetime.fromisoformat)


def _text(format: str, **more: str) -> dict[str, str]:
    return {"type": "string", "format": format} | more


KINDS: Final[Mapping[str, Kind]] = {
    "bool": Kind(pa.bool_(), bool, {"type": "boolean"}),
    **{name: Kind(getattr(pa, name)(), int, {"type": "integer", "format": name}) for name in RANGES},
    "float32": Kind(pa.float32(), float, {"type": "number", "format": "float"}),
    "float64": Kind(pa.float64(), float, {"type": "number", "format": "double"}),
    "string": Kind(pa.string(), str, {"type": "string"}),
    "json": Kind(pa.string(), str, {"type": "string", "contentMediaType": "application/json"}),
    "binary": Kind(
        pa.binary(),
        bytes,
        _text("binary", contentEncoding="base64"),
        lambda value: base64.b64encode(value).decode(),
        _read_bytes,
    ),
    "uuid": Kind(pa.uuid(), uuid.UUID, _text("uuid"), str, _make_reader(_UUID, uuid.UUID)),
    "date": Kind(pa.date32(), dt.date, _text("date"), dt.date.isoformat, _make_reader(_DATE, dt.date.fromisoformat)),
    "time": Kind(pa.time64("us"), dt.time, _text("time-local"), dt.time.isoformat, _read_time),
    "datetime": Kind(
        pa.timestamp("us", "UTC"),
        dt.datetime,
        _text("date-time"),
        dt.datetime.isoformat,
        _read_datetime,
    ),
    "datetime-local": Kind(
        pa.timestamp("us"), dt.datetime, _text("date-time-local"), dt.datetime.isoformat, _read_datetime
    ),
    "duration": Kind(pa.duration("us"), dt.timedelta, _text("duration"), _write_duration, _read_duration),
    "decimal": Kind(
        pa.decimal128(DIGITS, PLACES),
        decimal.Decimal,
        _text("decimal"),
        _write_decimal,
        _make_reader(_DECIMAL, _read_decimal),
    ),
}


@dataclass(frozen=True)
class Scalar:
    """One value.

    Attributes:
        kind: one of `KINDS`.
        minimum: the lowest value; all bounds are values of the kind.
        min_length: characters of a text, bytes of binary data.
        pattern: a regular expression that the text contains a match of.
        digits: the most digits of a decimal, `places` of them after the point.
        finite: refuses infinity and NaN.
        choices: the allowed values; empty for any.
        names: the members of an enumeration, in the order of `choices`.
        title: the name of the enumeration.
    """

    kind: str
    minimum: Any = None
    maximum: Any = None
    exclusive_minimum: Any = None
    exclusive_maximum: Any = None
    multiple_of: Any = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    digits: int | None = None
    places: int | None = None
    finite: bool = False
    choices: tuple[Any, ...] = ()
    names: tuple[str, ...] = ()
    title: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        """Drop bounds that the kind implies, so that equal schemas have one written form."""
        low, high = RANGES.get(self.kind, (None, None))
        if low is not None and high is not None:
            for name, beyond in (
                ("minimum", self.minimum is not None and self.minimum <= low),
                ("maximum", self.maximum is not None and self.maximum >= high),
                ("exclusive_minimum", self.exclusive_minimum is not None and self.exclusive_minimum < low),
                ("exclusive_maximum", self.exclusive_maximum is not None and self.exclusive_maximum > high),
            ):
                if beyond:
                    object.__setattr__(self, name, None)
        if self.kind == "decimal":
            object.__setattr__(self, "digits", DIGITS if self.digits is None else self.digits)
            object.__setattr__(self, "places", PLACES if self.places is None else self.places)

    def __hash__(self) -> int:
        return hash((self.kind, self.choices))


@dataclass(frozen=True)
class Array:
    """A list; its items may be null if `nullable`."""

    item: Type
    nullable: bool = False
    min_length: int | None = None
    max_length: int | None = None

    @property
    def fixed(self) -> bool:
        return bool(self.max_length) and self.min_length == self.max_length


@dataclass(frozen=True)
class Map:
    """An object with any text keys; its values may be null if `nullable`."""

    value: Type
    nullable: bool = False
    min_length: int | None = None
    max_length: int | None = None


@dataclass(frozen=True)
class Field:
    """A field of an object.

    Attributes:
        nullable: whether it may be null.
        required: whether it must be present.
        default: its value where it is missing.
        doc: a description for people.
    """

    name: str
    type: Type
    nullable: bool = False
    required: bool = True
    default: Any = MISSING
    doc: str = ""

    @property
    def fill_value(self) -> Any:
        """The stored value of a missing field: the default, else an empty list or object, else null."""
        if self.default is not MISSING:
            return self.default
        if self.nullable or not isinstance(self.type, Array | Map) or self.type.min_length:
            return None
        return [] if isinstance(self.type, Array) else {}

    @property
    def stores_null(self) -> bool:
        """Whether its column may contain null: for null itself, or for a missing value without a fill value."""
        return self.nullable or (not self.required and self.fill_value is None)


@dataclass(frozen=True)
class StructType:
    """An object with named fields; `title` is the name of its class, `doc` its description."""

    fields: tuple[Field, ...]
    title: str = field(default="", compare=False)
    doc: str = ""

    @property
    def names(self) -> list[str]:
        return [each.name for each in self.fields]


Type = Scalar | Array | Map | StructType

BOUNDS: Final = ("minimum", "maximum", "exclusive_minimum", "exclusive_maximum", "multiple_of")
KEYWORDS: Final = {
    "minimum": "minimum",
    "maximum": "maximum",
    "exclusive_minimum": "exclusiveMinimum",
    "exclusive_maximum": "exclusiveMaximum",
    "multiple_of": "multipleOf",
    "min_length": "minLength",
    "max_length": "maxLength",
    "pattern": "pattern",
    "finite": "x-finite",
    "choices": "enum",
    "names": "x-enum-varnames",
    "title": "x-enum-title",
    "digits": "x-digits",
    "places": "x-places",
}
"""The limits of a scalar → keywords of JSON Schema, with `x-` keywords where it has none."""
_BYTE_WORDS: Final = {"min_length": "x-min-bytes", "max_length": "x-max-bytes"}
_LENGTH_WORDS: Final = ("minLength", "maxLength", *_BYTE_WORDS.values())


def is_json_number(kind: str) -> bool:
    """Whether values of the kind are JSON numbers."""
    return KINDS[kind].json["type"] in ("integer", "number")


def keyword(kind: str, limit: str) -> str:
    """The keyword of a limit; those of bounds of texts such as times begin with `format`.

    Example:
        >>> keyword("int8", "minimum"), keyword("date", "minimum"), keyword("binary", "max_length")
        ('minimum', 'formatMinimum', 'x-max-bytes')
    """
    word = KEYWORDS[limit]
    if kind == "binary" and limit in _BYTE_WORDS:
        return _BYTE_WORDS[limit]
    return _format_word(word) if limit in BOUNDS[:-1] and not is_json_number(kind) else word


def _format_word(word: str) -> str:
    return f"format{word[0].upper()}{word[1:]}"


def keywords(scalar: Scalar) -> dict[str, Any]:
    """The limits of a scalar as keywords of JSON Schema."""
    write = KINDS[scalar.kind].write
    values: dict[str, Any] = {limit: getattr(scalar, limit) for limit in KEYWORDS}
    values |= {limit: write(values[limit]) for limit in BOUNDS if values[limit] is not None}
    values |= {"choices": [*map(write, scalar.choices)] or None, "names": [*scalar.names] or None}
    values |= {"finite": scalar.finite or None, "title": scalar.title or None}
    return {keyword(scalar.kind, limit): value for limit, value in values.items() if value is not None}


def read_scalar(kind: str, words: Mapping[str, Any]) -> Scalar:
    """The scalar of a kind with the limits that `keywords` returned."""
    _check_words(kind, words)
    limits = {limit: words[word] for limit in KEYWORDS if words.get(word := keyword(kind, limit)) is not None}
    limits |= {limit: _read_native(kind, limits[limit]) for limit in BOUNDS if limit in limits}
    number = float if KINDS[kind].python is float else partial(_read_native, kind)
    limits |= {"choices": tuple(map(number, limits.get("choices", ()))), "names": tuple(limits.get("names", ()))}
    return Scalar(kind, **limits | {"finite": bool(limits.get("finite"))})


def check_shapes(words: Mapping[str, Any]) -> None:
    """Refuse keywords whose values are malformed."""
    for word in _LENGTHS:
        value = words.get(word)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            raise ValueError(f"{word} is {value!r}; give an integer of at least 0")
        if value is not None and value > _MAX_LENGTH:
            raise ValueError(f"{word} is {value!r}; no column holds more than {_MAX_LENGTH}")
    for word in _TEXTS:
        if not isinstance(words.get(word, ""), str):
            raise ValueError(f"{word} is {words[word]!r}; give text")
    if not isinstance(words.get("enum", [None]), list) or words.get("enum") == []:
        raise ValueError(f"enum is {words['enum']!r}; give a list of at least one value")
    names = words.get("x-enum-varnames", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"x-enum-varnames is {names!r}; give a list of texts")


_LENGTHS: Final = (
    *_LENGTH_WORDS,
    *("minItems", "maxItems", "minProperties", "maxProperties"),
)
_MAX_LENGTH: Final = 2**31 - 1
_TEXTS: Final = (*("title", "description", "format", "contentEncoding", "contentMediaType", "pattern", "x-enum-title"),)


def _check_decimal(digits: Any, places: Any) -> None:
    """Refuse digits and decimal places that no column has; None means undeclared."""
    for name, value in (("digits", digits), ("decimal places", places)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            raise ValueError(f"it has {value!r} {name}; give an integer of at least 0")
    if digits is not None and places is None:
        raise ValueError(
            f"it has at most {digits} digits, but a column needs a fixed number of them after the point; give that "
            "too (decimal_places, in JSON Schema x-places)"
        )
    most = DIGITS if digits is None else digits
    if not 1 <= most <= _MAX_DIGITS:
        raise ValueError(f"it has {most} digits; give 1 to {_MAX_DIGITS}")
    if places is not None and places > most:
        raise ValueError(f"it has {places} decimal places, more than its {most} digits")


_MAX_DIGITS: Final = 76


def _check_words(kind: str, words: Mapping[str, Any]) -> None:
    check_shapes(words)
    python = KINDS[kind].python
    has_length = kind in ("string", "json", "binary")
    lengths = [keyword(kind, limit) for limit in ("min_length", "max_length")] if has_length else []
    for word in _LENGTH_WORDS:
        if words.get(word) is not None and word not in lengths:
            raise ValueError(f"{word} does not apply to {kind}")
    if words.get("pattern") is not None:
        if kind != "string":
            raise ValueError(f"pattern does not apply to {kind}")
        try:
            pc.match_substring_regex(pa.array([""]), words["pattern"])
        except pa.ArrowException:  # RE2 has no lookahead, lookbehind or backreference
            raise ValueError(f"the pattern {words['pattern']!r} is not supported by RE2") from None
    if kind == "decimal":
        _check_decimal(words.get("x-digits"), words.get("x-places"))
    factor = _read_native(kind, words.get("multipleOf"))
    number = is_json_number(kind) or kind == "decimal"
    if factor is not None and not (number and _is_number(factor, kind) and factor > 0):
        raise ValueError(f"multipleOf is {factor!r}; give a number above 0, for a numeric type only")
    bounds = [words[word] for limit in BOUNDS[:-1] if words.get(word := keyword(kind, limit)) is not None]
    for value in (*bounds, *words.get("enum", ())):
        if python is int and as_integer(value) is None:
            raise ValueError(f"{value!r} is not an integer")
        if python is float and not _is_number(value, kind):
            raise ValueError(f"{value!r} is not a number")


def as_integer(value: Any) -> int | None:
    """A value as an integer, or None where it is not one.

    1.0 is the integer 1, as JSON Schema has it (and pydantic, unless strict): writers of JSON differ in whether they
    write the point, and the same row must be valid however it was read. A float counts only below 2**53, where no
    other integer rounds to it. A boolean is not a number.

    Example:
        >>> [as_integer(value) for value in (1, 1.0, 1.5, 2.0**53, True, "1")]
        [1, 1, None, None, None, None]
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < _EXACT else None
    return int(value) if isinstance(value, int) else None


_EXACT: Final = 2**53


def _is_number(value: Any, kind: str) -> bool:
    return isinstance(value, decimal.Decimal if kind == "decimal" else (int, float)) and not isinstance(value, bool)


WORDS: Final = {*KEYWORDS.values(), *_BYTE_WORDS.values(), *(_format_word(KEYWORDS[limit]) for limit in BOUNDS[:-1])}
"""Every keyword that `keywords` can return."""


def merge_limits(name: str, old: Any, new: Any) -> Any:
    """The limit that is equivalent to two limits of the same name."""
    if old is None or new is None or old == new:
        return old if new is None else new
    if name == "multiple_of" and isinstance(old, int) and isinstance(new, int):
        return math.lcm(old, new)
    if name in ("multiple_of", "pattern"):
        raise ValueError(f"has the limit {name.replace('_', ' ')} twice, {old!r} and {new!r}; combine them in one")
    return max(old, new) if "min" in name or name == "finite" else min(old, new)


def to_json(type: Type, value: Any) -> Any:
    """The JSON form of a native value, without the nulls that represent missing fields."""
    if value is None:
        return None
    if isinstance(type, Scalar):
        return KINDS[type.kind].write(value)
    if isinstance(type, Array):
        return [to_json(type.item, item) for item in value]
    if isinstance(type, Map):
        return {key: to_json(type.value, item) for key, item in value.items()}
    present = ((field, value[field.name]) for field in type.fields if field.name in value)
    return {field.name: to_json(field.type, one) for field, one in present if one is not None or field.nullable}


def from_json(type: Type, value: Any) -> Any:
    """The native value of a JSON form; a value of another type is returned unchanged, for validation to report."""
    if isinstance(type, Scalar):
        return _read_native(type.kind, value)
    if isinstance(type, Array):
        return [from_json(type.item, item) for item in value] if isinstance(value, list) else value
    if not isinstance(value, Mapping):
        return value
    if isinstance(type, Map):
        return {key: from_json(type.value, item) for key, item in value.items()}
    return {**value} | {each.name: from_json(each.type, value[each.name]) for each in type.fields if each.name in value}


def _read_native(kind: str, value: Any) -> Any:
    if KINDS[kind].python is int:
        return value if (number := as_integer(value)) is None else number
    read = KINDS[kind].read
    try:
        return read(value) if read and isinstance(value, str) else value
    except (ValueError, OverflowError):
        return value
