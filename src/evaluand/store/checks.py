"""Checks of values in manifests, and checks made of others.

A check returns an empty text if a value is valid, otherwise where it is not and why:

    >>> object_of({"task": text, "seed": integer})({"task": "echo"})
    '.seed: is missing'
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from evaluand.core.errors import kind_of

ID: Final = re.compile(r"[0-9a-f]{32}")
MOST_NAME: Final = 4096  # characters
_MOST: Final = 1 << 63
_SHOWN: Final = 40

Check = Callable[[Any], str]


# Values


def mismatch(what: str, value: Any) -> str:
    return f": expected {what}, found {_describe(value)}"


def _describe(value: Any) -> str:
    if type(value) in (bool, type(None)):
        return {None: "null", True: "true", False: "false"}[value]
    if type(value) in (str, int, float):
        text = repr(value) if type(value) is str else str(value)
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return kind_of(value)


def text(value: Any) -> str:
    return "" if type(value) is str else mismatch("a text", value)


def short_text(value: Any) -> str:
    """Of what the catalog keeps for every artifact of a store."""
    is_short = type(value) is str and len(value) <= MOST_NAME
    return text(value) or ("" if is_short else f": expected at most {MOST_NAME:,} characters, found {len(value):,}")


def flag(value: Any) -> str:
    return "" if type(value) is bool else mismatch("true or false", value)


def count(value: Any) -> str:
    return "" if type(value) is int and 0 <= value < _MOST else mismatch("a count", value)


def integer(value: Any) -> str:
    return "" if type(value) is int else mismatch("a whole number", value)


def id_(value: Any) -> str:
    return "" if type(value) is str and ID.fullmatch(value) else mismatch("an id of 32 hexadecimal digits", value)


def time(value: Any) -> str:
    try:
        dt.datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return mismatch("a time", value)
    return ""


def number(value: Any) -> str:
    return "" if type(value) in (int, float) and value == value else mismatch("a number", value)


def seconds(value: Any) -> str:
    is_valid = type(value) in (int, float) and 0 < value < math.inf
    return "" if is_valid else mismatch("a number of seconds", value)


def confidence(value: Any) -> str:
    return "" if type(value) is float and 0 < value < 1 else mismatch("a number between 0 and 1", value)


def anything(value: Any) -> str:
    return ""


def scalar(value: Any) -> str:
    return "" if type(value) in (str, int, float, bool) else mismatch("a text or a number", value)


# Values made of others


def or_null(check: Check) -> Check:
    return lambda value: "" if value is None else check(value)


def one_or_list(check: Check) -> Check:
    each = list_of(check)
    return lambda value: each(value) if type(value) is list else check(value)


def list_of(check: Check) -> Check:
    def check_list(value: Any) -> str:
        if type(value) is not list:
            return mismatch("a list", value)
        for place, item in enumerate(value):
            if reason := check(item):
                return f"[{place}]{reason}"
        return ""

    return check_list


def map_of(check: Check) -> Check:
    def check_map(value: Any) -> str:
        if type(value) is not dict:
            return mismatch("an object", value)
        for name, item in value.items():
            if reason := check(item):
                return f".{describe_key(name)}{reason}"
        return ""

    return check_map


def object_of(required: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    checks = [*required.items()]
    others = [*(optional or {}).items()]

    def check_object(value: Any) -> str:
        if type(value) is not dict:
            return mismatch("an object", value)
        for name, check in checks:
            if name not in value:
                return f".{name}: is missing"
            if reason := check(value[name]):
                return f".{name}{reason}"
        for name, check in others:
            if name in value and (reason := check(value[name])):
                return f".{name}{reason}"
        return ""

    return check_object


def describe_key(name: str) -> str:
    return name if name.isidentifier() else repr(name[:_SHOWN])


OBJECT: Final = map_of(anything)
TEXTS: Final = list_of(text)
NAMES: Final = one_or_list(text)
IDS: Final = list_of(id_)
COUNTS: Final = map_of(count)


def ends(value: Any) -> str:
    return list_of(number)(value) or ("" if len(value) == 2 else mismatch("two numbers", value))


RANGES: Final = or_null(map_of(map_of(ends)))


def closed_object(check: Check, known: Mapping[str, Any], what: str) -> Check:
    def check_closed(value: Any) -> str:
        if reason := check(value):
            return reason
        further = next((name for name in value if name not in known), None)
        return "" if further is None else f".{describe_key(further)}: is not {what}"

    return check_closed
