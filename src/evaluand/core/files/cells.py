"""Converts columns of text to a declared type, and reports cells that do not fit by row.

A file that declares its types is read as text first: guessing types would take `007` for a number or `1.50` for 1.5.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

TYPES: Final = ("integer", "real", "boolean", "text", "time", "vector")

_WHOLE: Final = r"^\s*[+-]?[0-9]+(\.0*)?\s*$"
_PLAIN: Final = r"^\s*[+-]?[0-9]+\s*$"
_REAL: Final = (
    r"^\s*[+-]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[iI][nN][fF]([iI][nN][iI][tT][yY])?|[nN][aA][nN])\s*$"
)
_TRUE: Final = r"^\s*([tT]rue|TRUE|[tTyY]|[yY]es|YES|1|1\.0)\s*$"
_FALSE: Final = r"^\s*([fF]alse|FALSE|[fFnN]|[nN]o|NO|0|0\.0)\s*$"
_DATE: Final = r"^\s*[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?)?\s*$"
_NUMBER: Final = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
_VECTOR: Final = rf"^\s*{_NUMBER}(\s*,\s*{_NUMBER})*\s*$"

_WRONG: Final = {
    "integer": "is not an integer",
    "real": "is not a number",
    "boolean": "is neither true nor false",
    "vector": "is not a list of numbers such as 10,11,100,100",
}
_TOO_LARGE: Final = "does not fit in 64 bits; declare the column as text"


def typed(texts: pa.Array, type: str, wrong: Callable[[int, str], None]) -> pa.Array:
    """The values of texts; an empty text is null.

    An integer may be written as `1.0`. If some times are not in ISO format, all stay text, since their format is
    unknown.

    Args:
        texts: a string array.
        type: one of `TYPES`.
        wrong: called with the row and a message for each cell that does not fit; its value is null.

    Example:
        >>> texts = pa.array(["1", "2.0", "", "x"])
        >>> typed(texts, "integer", lambda row, message: print(row, message)).to_pylist()
        3 'x' is not an integer
        [1, 2, None, None]
    """
    if type == "text":
        return texts
    if (numbers := _plain_numbers(texts, type)) is not None:
        return numbers
    texts = pc.if_else(pc.equal(pc.utf8_trim_whitespace(texts), ""), pa.scalar(None, pa.string()), texts)
    if type == "time":
        return _times(texts)
    if type == "boolean":
        true, false = pc.match_substring_regex(texts, _TRUE), pc.match_substring_regex(texts, _FALSE)
        _report(texts, pc.or_(true, false), _WRONG[type], wrong)
        return pc.if_else(pc.or_(true, false), true, pa.scalar(None, pa.bool_()))
    good = pc.match_substring_regex(texts, {"integer": _WHOLE, "real": _REAL, "vector": _VECTOR}[type])
    _report(texts, good, _WRONG[type], wrong)
    valid = pc.utf8_trim_whitespace(pc.if_else(good, texts, pa.scalar(None, pa.string())))
    valid = pc.utf8_ltrim(valid, "+")
    if type == "integer":
        return _integers(pc.replace_substring_regex(valid, r"\.0*$", ""), wrong)
    return valid.cast(pa.float64()) if type == "real" else _vectors(valid)


def _plain_numbers(texts: pa.Array, type: str) -> pa.Array | None:
    """The numbers of texts that Arrow converts as we do; None if any is odd, such as one with hexadecimal digits."""
    if type not in _NUMBERS or pc.any(pc.match_substring_regex(texts, "[xX]")).as_py():
        return None
    try:
        return texts.cast(_NUMBERS[type])
    except pa.ArrowInvalid:
        return None


_NUMBERS: Final = {"integer": pa.int64(), "real": pa.float64()}


def written_as_real(texts: pa.Array) -> int:
    """How many integers are written with a point, such as `1.0`."""
    whole, plain = pc.match_substring_regex(texts, _WHOLE), pc.match_substring_regex(texts, _PLAIN)
    return int(pc.sum(pc.and_not(whole, plain)).as_py() or 0)


def _integers(texts: pa.Array, wrong: Callable[[int, str], None]) -> pa.Array:
    """Texts of digits as 64-bit numbers."""
    digits = pc.utf8_ltrim(texts, "-0")
    length = pc.utf8_length(digits)
    most = pc.if_else(pc.starts_with(texts, "-"), str(2**63), str(2**63 - 1))
    fits = pc.or_(pc.less(length, 19), pc.and_(pc.equal(length, 19), pc.less_equal(digits, most)))
    _report(texts, fits, _TOO_LARGE, wrong)
    return pc.if_else(fits, texts, pa.scalar(None, pa.string())).cast(pa.int64())


def _report(texts: pa.Array, good: pa.Array, message: str, wrong: Callable[[int, str], None]) -> None:
    rows = np.flatnonzero(pc.invert(pc.fill_null(good, True)).to_numpy(zero_copy_only=False))
    for row in rows.tolist():
        wrong(row, f"{texts[row].as_py()[:60]!r} {message}")


def _times(texts: pa.Array) -> pa.Array:
    if pc.all(pc.match_substring_regex(texts, _DATE)).as_py() is False:
        return texts
    try:
        plain = pc.replace_substring(pc.utf8_trim_whitespace(texts), "T", " ")
        return plain.cast(pa.timestamp("us"))
    except pa.ArrowInvalid:  # such as a 13th month
        return texts


def _vectors(texts: pa.Array) -> pa.Array:
    parts: Any = pc.split_pattern(pc.replace_substring_regex(texts, r"\s+|(^|,)\s*\+", r"\1"), ",")
    return pa.ListArray.from_arrays(parts.offsets, parts.flatten().cast(pa.float64()), mask=pc.is_null(parts))
