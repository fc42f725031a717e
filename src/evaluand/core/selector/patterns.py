"""Patterns of `match` and `search`: regular expressions in time linear in the text (RFC 9535, section 2.4.6).

A pattern has the syntax of RE2, which contains I-Regexp (RFC 9485) and has neither lookaround nor back references, so
that no pattern is slow on any text. A dot matches no line break.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from itertools import count
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


@lru_cache(maxsize=256)
def first_group(pattern: str) -> Callable[[str], str | None]:
    """A function that extracts from a text what the first group of a pattern matches.

    It returns the text itself where the pattern does not match, and None where no group takes part in the match.

    Raises:
        SpecError: the pattern is not one.

    Example:
        >>> extract = first_group("^(train|test)-[0-9]+")
        >>> extract("test-07.csv"), extract("other.csv")
        ('test', 'other.csv')
    """
    check_pattern(pattern)
    compute = _arrow_compute()
    named, groups = _name_groups(anchored(pattern, whole=False))
    if not groups:
        return lambda text: None if contains(text, pattern) else text
    options = compute.ExtractRegexSpanOptions(named)
    function = compute.get_function("extract_regex_span")

    def extract(text: str) -> str | None:
        scalar = _scalar(text)
        spans = function.call([scalar], options=options).as_py()
        if spans is None:
            return text
        span = next((span for span in spans.values() if span is not None), None)
        if span is None:
            return None
        start, length = span
        encoded: bytes = scalar.as_py().encode()
        return encoded[start : start + length].decode()

    return extract


def _name_groups(pattern: str) -> tuple[str, int]:
    """The pattern with a name for each of its groups, which Arrow requires, and the number of groups."""
    numbers = count(1)

    def rename(found: re.Match[str]) -> str:
        return f"(?P<g{next(numbers)}>" if found[1] else found[0]

    named = _ATOM_OR_GROUP.sub(rename, pattern)
    return named, next(numbers) - 1


_ATOM_OR_GROUP: Final = re.compile(
    r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|(\((?:\?P?<\w+>|(?!\?)))", re.DOTALL
)
"""What is quoted, escaped or in a class, in which a parenthesis is a character; or the start of a group."""


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
