"""Numbers written as text, and words for a missing one: read alike in every column of every source."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from evaluand.core.errors import plural

_MISSING: Final = ("", "na", "n/a", "#n/a", "nan", "null", "none", "nil", "-", "?", ".")
_NUMBER: Final = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?\s*")
_CODE: Final = re.compile(r"\s*[+-]?(0\d|\d{16})")
_EXACT: Final = 2**53


def is_number(text: str) -> bool:
    """Whether a text is a finite number."""
    return _NUMBER.fullmatch(text) is not None


def is_missing(text: str) -> bool:
    """Whether a text is a word for a missing value."""
    return text.strip().lower() in _MISSING


def is_code(text: str) -> bool:
    """Whether digits name something, as in a CSV file: with a leading zero, or more of them than a number holds."""
    return _CODE.match(text) is not None


def as_texts(values: Sequence[Any]) -> list[str | None] | None:
    """Texts, and numbers among them as text, alike where they are equal; None if there is no text, or another value.

    Example:
        >>> as_texts([1.0, 0.5, "unknown", None]), as_texts([1, 2]), as_texts([True, "a"])
        (['1', '0.5', 'unknown', None], None, None)
    """
    kinds = {type(value) for value in values if value is not None}
    if str not in kinds or not kinds <= {str, int, float}:
        return None
    return [value if value is None or isinstance(value, str) else _number_text(value) for value in values]


def _number_text(number: float) -> str | None:
    if number != number:
        return None
    return str(int(number)) if isinstance(number, int) or number.is_integer() else repr(number)


def parse_numbers(texts: Sequence[str | None]) -> pa.Array | None:
    """The numbers of texts, null for a missing one; None if a text is neither a number nor a word for a missing one.

    Example:
        >>> parse_numbers(["1", "NA", "2.0"]).to_pylist(), parse_numbers(["1", "about 2"])
        ([1, None, 2], None)
    """
    if not all(text is None or is_number(text) or is_missing(text) for text in texts):
        return None
    values = [float(text) if text is not None and is_number(text) else None for text in texts]
    whole = all(value is None or (value.is_integer() and abs(value) < _EXACT) for value in values)
    return pa.array(values, pa.float64()).cast(pa.int64()) if whole else pa.array(values, pa.float64())


def describe_numbers(name: str, texts: Sequence[str | None]) -> str:
    """A sentence on the numbers that were read from texts."""
    words = [text for text in texts if text is not None and is_missing(text)]
    if words:
        shown = ", ".join(map(repr, dict.fromkeys(words)))
        return f"{name!r} has {plural(len(words), 'cell')} with {shown}, taken as missing"
    return f"{name!r} has numbers written as text, taken as numbers"
