"""Patterns of `match` and `search`: regular expressions in time linear in the text (RFC 9535, section 2.4.6).

A pattern has the syntax of RE2, which contains I-Regexp (RFC 9485) and has neither lookaround nor back references, so
that no pattern is slow on any text. A dot matches no line break.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, Final

from evaluand.core.errors import SpecError


def matches(text: Any, pattern: Any) -> bool:
    """Whether a text matches a pattern as a whole; False if one is no text, or the pattern is wrong."""
    return _test(text, pattern, whole=True)


def contains(text: Any, pattern: Any) -> bool:
    """Whether some part of a text matches a pattern; False if one is no text, or the pattern is wrong."""
    return _test(text, pattern, whole=False)


def check_pattern(pattern: str) -> None:
    """Refuse a text that is no pattern.

    Raises:
        SpecError: says what is wrong with it.
    """
    try:
        _matcher(pattern, whole=False)
    except ValueError as error:
        why = str(error).removeprefix("Invalid regular expression: ")
        raise SpecError(f"{pattern!r} is not a pattern in the syntax of RE2: {why}") from None


def anchored(pattern: str, *, whole: bool) -> str:
    """The pattern as RE2 takes it: a dot matches no line break and, with `whole`, the match covers the full text."""
    pattern = _DOT.sub(lambda found: found[1] or r"[^\n\r]", pattern)
    return rf"\A(?:{pattern})\z" if whole else pattern


_DOT: Final = re.compile(r"(\\.|\[\^?\]?(?:\\.|[^\]\\])*\])|\.", re.DOTALL)

_Matcher = Callable[[str], bool]


def _test(text: Any, pattern: Any, *, whole: bool) -> bool:
    if not (isinstance(text, str) and isinstance(pattern, str)):
        return False
    try:
        matcher = _matcher(pattern, whole=whole)
    except ValueError:
        return False
    return matcher(text)


@lru_cache(maxsize=256)
def _matcher(pattern: str, *, whole: bool) -> _Matcher:
    """A function that tests a text.

    Raises:
        ValueError: the text is not a pattern.
    """
    prepared = anchored(pattern, whole=whole)
    compute = _arrow_compute()
    options = compute.MatchSubstringOptions(prepared)
    function = compute.get_function("match_substring_regex")

    def match_in_re2(text: str) -> bool:
        found = function.call([_scalar(text)], options=options)
        return bool(found.as_py())

    match_in_re2("")  # raises if this is not a pattern
    if _is_simple(pattern, whole=whole):
        found = re.compile(prepared.replace(r"\z", r"\Z"))
        return lambda text: found.search(text) is not None
    return match_in_re2


def _is_simple(pattern: str, *, whole: bool) -> bool:
    """Whether Python's `re` means the same by it, and is as linear in the text as RE2 (and faster to call).

    So it is if nothing is repeated, or, in a match of the full text without groups, one character or class.
    """
    rest = _PLAIN_CLASS.sub("", _ESCAPED_MARK.sub("", pattern))
    repetitions = len(_REPETITION.findall(rest))
    return not _SPECIAL.search(rest) and (not repetitions or (whole and repetitions == 1 and not _GROUP.search(rest)))


_ESCAPED_MARK: Final = re.compile(r"\\[^\w\s]", re.ASCII)
_PLAIN_CLASS: Final = re.compile(r"\[\^?(?:[\w ](?:-[\w](?!-))?)+\]", re.ASCII)
_SPECIAL: Final = re.compile(r"[\\\[\]{}$]|\(\?|[^\x00-\x7f]")
_REPETITION: Final = re.compile(r"[*+?]")
_GROUP: Final = re.compile(r"[()|]")


def _scalar(text: str) -> Any:
    import pyarrow as pa

    return pa.scalar(text.encode("utf-8", "replace").decode() if not text.isascii() else text)


@cache
def _arrow_compute() -> Any:
    import pyarrow.compute as pc  # on use: its import takes 40 ms, and only patterns need it

    return pc
