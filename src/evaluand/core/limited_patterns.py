r"""Regular expressions of Python's module `re` that give up on a text for which they take too long.

Python's own engine backtracks without end: `^(a|aa)+$` takes days on sixty letters, and nothing can stop it. The
package `regex` can, but looking at the clock costs more than a short search
([why](docs/design/0023-patterns-with-a-time-limit.md)). So `re` searches where the pattern shows that it is soon done
with a text of this length, and `regex` elsewhere. That reads some things differently, which are escaped for it: braces
that are no repeat (`{"answer": (\w)}`), which it takes for a fuzzy match, and `[` within a set of characters. It writes
repeats out, so their length has a limit too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from itertools import takewhile
from math import exp, inf, log
from typing import Any, Final

from evaluand.core.errors import DataError

SECONDS: Final = 5.0
"""Processor time that a search may take; what other threads of the process compute meanwhile counts as well."""

STEPS: Final = 1e8
"""The most steps of a search without a time limit: half a second in the worst case found."""

_LONGEST: Final = 100_000
"""Parts of a pattern, its repeats written out."""

_LENGTHS: Final = tuple(1 << n for n in range(3, 21))
_FLAGS: Final = ("ASCII", "IGNORECASE", "MULTILINE", "DOTALL", "VERBOSE")
_TOKEN: Final = r"""
      (?P<escape> \\N\{[^}]*\} | \\. )
    | (?P<comment> \(\?\#[^)]*\) )
    | (?P<set> \[ \^? \]? (?: \\. | [^\]\\] )* \] )
    | (?P<repeat> \{ (?: \d+ (?:,\d*)? | ,\d+ ) \} )
"""
_LINE: Final = r"| (?P<line> \#[^\n]* )"  # a comment of a verbose pattern
_TOKENS: Final = {
    is_verbose: re.compile(f"{_TOKEN}{_LINE if is_verbose else ''}|.", re.DOTALL | re.VERBOSE)
    for is_verbose in (False, True)
}
_UNLIKE: Final = re.compile(
    r"[^\x00-\xb1\xb4-\xb8\xba\xbb\xbf-\u02ff\u0370-\u0482\u048a-\u052f\u2010-\u203e\u2041-\u2053\u2055-\u2064\u20a0-\u20bf\u2190-\u23ff"
    r"\u3001-\u3006\u3008-\u3020\u3041-\u3096\u309b-\u30ff\u4e00-\u9ffc\uac00-\ud7a3\U0001f300-\U0001f6d7]"
)
"""Characters outside the blocks in which both engines know the same letters, digits and blanks."""

_IGNORES_CASE: Final = re.compile(r"\(\?[a-zA-Z]*i")
_BEYOND_ASCII: Final = re.compile(r"[^\x00-\x7f]|\\[0-9NUux]")


class SlowPattern(DataError):
    """A pattern took too long on a text."""


class LimitedPattern:
    """A compiled pattern, with the methods of that of `re`.

    Args:
        pattern: as for `re.compile`, like `flags`.

    Attributes:
        longest: the length of texts up to which `re` searches, as it takes no more than `STEPS`.

    Raises:
        re.error, OverflowError, RecursionError: as `re.compile`; `re.error` also if repeats are too long.

    Example:
        >>> LimitedPattern(r"answer is ([A-D])").search("The answer is B.")[1]
        'B'
    """

    def __init__(self, pattern: str, flags: int = 0) -> None:
        parts = re._parser.parse(pattern, flags)  # type: ignore[attr-defined]
        self.text, self._flags = pattern, flags
        self._quick: re.Pattern[str] = re._compiler.compile(parts, flags)  # type: ignore[attr-defined]
        self.groups, self.groupindex = self._quick.groups, self._quick.groupindex
        if (size := _measure(parts)) > _LONGEST:
            raise re.error(f"its repeats, written out, have {size:,} parts; at most {_LONGEST:,} are possible")
        self._ignores_case = bool(self._quick.flags & re.IGNORECASE or _IGNORES_CASE.search(pattern))
        lengths = () if self._ignores_case and _BEYOND_ASCII.search(pattern) else _LENGTHS
        self.longest = max(takewhile(lambda length: _count_steps(parts, length) <= STEPS, lengths), default=0)

    def search(self, text: str) -> Any:
        """The first match; None if there is none."""
        return self._call("search", text, text)

    def finditer(self, text: str) -> list[Any]:
        """All matches."""
        return [*self._call("finditer", text, text)]

    def findall(self, text: str) -> list[Any]:
        """All matches: texts, or tuples of groups."""
        return [*self._call("findall", text, text)]

    def split(self, text: str, maxsplit: int = 0) -> list[Any]:
        """The parts between the matches."""
        found: list[Any] = self._call("split", text, text, maxsplit)
        return found

    def sub(self, replacement: str, text: str, count: int = 0) -> str:
        """The text with matches replaced."""
        return str(self._call("sub", text, replacement, text, count))

    def _call(self, name: str, text: str, *arguments: Any) -> Any:
        if len(text) <= self.longest and (text.isascii() or not (self._ignores_case or _UNLIKE.search(text))):
            return getattr(self._quick, name)(*arguments)
        try:
            found = getattr(self._limited, name)(*arguments, timeout=SECONDS, concurrent=True)
            return [*found] if name == "finditer" else found
        except TimeoutError:
            raise SlowPattern(
                f"the pattern {self.text[:80]!r} took more than {SECONDS:g} s on this text; avoid repeats within"
                " repeats, such as (a|aa)+, or write them possessively: (?:a|aa)++"
            ) from None

    @cached_property
    def _limited(self) -> Any:
        import regex  # on use: few patterns and texts need it

        tokens = _TOKENS[bool(self._quick.flags & re.VERBOSE)].finditer(self.text)
        own = [getattr(regex, name) for name in _FLAGS if self._flags & getattr(re, name)]
        try:
            return regex.compile("".join(map(_translate, tokens)), sum(own, int(regex.VERSION0)))
        except regex.error as error:
            raise DataError(f"the pattern {self.text[:80]!r} cannot be searched in this text: {error}") from None


def _measure(parts: Iterable[Any]) -> int:
    """How many parts a pattern has if its repeats are written out."""
    size = 0
    for kind, content in parts:
        if (name := str(kind)).endswith("_REPEAT"):
            size += max(1, content[0]) * _measure(content[2])
        else:
            inner = content[1] if name == "BRANCH" else [content[-1]] if name == "SUBPATTERN" else ()
            size += 1 + sum(map(_measure, inner))
    return size


def _count_steps(parts: Any, length: int) -> float:
    """The most steps in which `re` searches all places of a text of this length: each character once, and the rest."""
    return length + (length + 1) * _explore(parts, length, is_last=True)[1]


def _explore(parts: Any, length: int, is_last: bool) -> tuple[float, float, bool]:
    """How `re` tries parts of a pattern, one behind the other, at one place of a text.

    Args:
        is_last: whether nothing behind them can fail, so that what matched first is never tried in another way.

    Returns:
        In how many ways they may match, the steps to try them all, and whether they can fail.
    """
    ways, steps, can_fail = 1.0, 1.0, False
    for kind, content in reversed(parts):
        own_ways, own_steps, own_fail = _explore_part(str(kind), content, length, is_last)
        ways, steps = own_ways * ways, own_steps + own_ways * steps
        is_last, can_fail = is_last and not own_fail, can_fail or own_fail
    return ways, steps, can_fail


def _explore_part(name: str, content: Any, length: int, is_last: bool) -> tuple[float, float, bool]:
    if name in _SINGLE or name == "AT":
        return 1.0, 1.0, True
    if name == "SUBPATTERN":
        return _explore(content[-1], length, is_last)
    if name in ("ASSERT", "ASSERT_NOT"):
        ways, steps, _ = _explore(content[-1], length, is_last=False)
        return ways, steps, True
    if name == "BRANCH":
        sides = [_explore(side, length, is_last) for side in content[1]]
        return sum(side[0] for side in sides), sum(side[1] for side in sides), all(side[2] for side in sides)
    if name not in ("MAX_REPEAT", "MIN_REPEAT"):
        return inf, inf, True  # what is not understood here: possessive repeats, conditions, references
    least, most, body = content
    if is_last and len(body) == 1 and str(body[0][0]) in _SINGLE:
        return 1.0, least + 1.0, least > 0  # beyond the least, what is tried becomes part of the match
    ways, steps, can_fail = _explore(body, length, is_last and most == 1)
    turns = min(most, least + length // max(1, body.getwidth()[0]) + 1) + 1
    ways = float(turns) if ways == 1 else exp(min(turns * log(ways), 700.0))
    return ways, ways * (steps + 1), can_fail and least > 0


_SINGLE: Final = frozenset(("LITERAL", "NOT_LITERAL", "ANY", "IN"))


def _translate(token: re.Match[str]) -> str:
    """A token as `regex` reads it."""
    text = token[0]
    if not token["set"]:
        return _READ.get(text, text)
    start = 2 if text[1] == "^" else 1
    return f"{text[:start]}{_IN_SET.sub(lambda found: _READ_IN_SET.get(found[0], found[0]), text[start:-1])}]"


_READ: Final = {"{": r"\{", r"\s": r"[\s\x1c-\x1f]", r"\S": r"[^\s\x1c-\x1f]"}
_READ_IN_SET: Final = {"[": r"\[", "]": r"\]", r"\s": r"\s\x1c-\x1f"}
_IN_SET: Final = re.compile(r"\\.|[\[\]]", re.DOTALL)
