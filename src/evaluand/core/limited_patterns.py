r"""Regular expressions of Python's module `re` that give up on a text for which they take too long.

Python's own engine backtracks without end: `^(a|aa)+$` takes days on sixty letters, and nothing can stop it. The
package `regex` matches alike and has a time limit ([why](docs/design/0023-patterns-with-a-time-limit.md)). It reads two
things differently, which are escaped for it: braces that are no repeat (`{"answer": (\w)}`), which it takes for a fuzzy
match, and `[` within a set of characters. It writes repeats out, so their length has a limit too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from evaluand.core.errors import DataError

SECONDS: Final = 5.0
"""Processor time that a search may take; what other threads of the process compute meanwhile counts as well."""

_LONGEST: Final = 100_000
"""Parts of a pattern, its repeats written out."""

_FLAGS: Final = ("ASCII", "IGNORECASE", "MULTILINE", "DOTALL", "VERBOSE")
_TOKEN: Final = r"""
      (?P<escape> \\N\{[^}]*\} | \\. )
    | (?P<comment> \(\?\#[^)]*\) )
    | (?P<set> \[ \^? \]? (?: \\. | [^\]\\] )* \] )
    | (?P<repeat> \{ (?: (?P<least>\d+) (?:,\d*)? | ,\d+ ) \} )
"""
_LINE: Final = r"| (?P<line> \#[^\n]* )"  # a comment of a verbose pattern
_TOKENS: Final = {
    is_verbose: re.compile(f"{_TOKEN}{_LINE if is_verbose else ''}|.", re.DOTALL | re.VERBOSE)
    for is_verbose in (False, True)
}


class SlowPattern(DataError):
    """A pattern took too long on a text."""


class LimitedPattern:
    """A compiled pattern, with the methods of that of `re`.

    Args:
        pattern: as for `re.compile`, like `flags`.

    Raises:
        re.error, OverflowError, RecursionError: as `re.compile`; `re.error` also if repeats are too long.

    Example:
        >>> LimitedPattern(r"answer is ([A-D])").search("The answer is B.")[1]
        'B'
    """

    def __init__(self, pattern: str, flags: int = 0) -> None:
        import regex  # on use: few experiments need it

        self.text = pattern
        self._checked = re.compile(pattern, flags)  # what it refuses is refused as it does
        self.groups, self.groupindex = self._checked.groups, self._checked.groupindex
        tokens = [*_TOKENS[bool(self._checked.flags & re.VERBOSE)].finditer(pattern)]
        if (length := _measure(tokens)) > _LONGEST:
            raise re.error(f"its repeats, written out, have {length:,} parts; at most {_LONGEST:,} are possible")
        own = [getattr(regex, name) for name in _FLAGS if flags & getattr(re, name)]
        try:
            self._compiled = regex.compile("".join(map(_translate, tokens)), sum(own, int(regex.VERSION0)))
        except regex.error as error:
            raise re.error(f"the package regex does not read it: {error}") from None

    def search(self, text: str) -> Any:
        """The first match; None if there is none."""
        return self._call("search", text)

    def finditer(self, text: str) -> list[Any]:
        """All matches."""
        found: list[Any] = self._call("finditer", text)
        return found

    def findall(self, text: str) -> list[Any]:
        """All matches: texts, or tuples of groups."""
        found: list[Any] = self._call("findall", text)
        return found

    def split(self, text: str, maxsplit: int = 0) -> list[Any]:
        """The parts between the matches."""
        found: list[Any] = self._call("split", text, maxsplit=maxsplit)
        return found

    def sub(self, replacement: str, text: str, count: int = 0) -> str:
        """The text with matches replaced."""
        found: str = self._call("sub", text, repl=replacement, count=count)
        return found

    def _call(self, name: str, text: str, **options: Any) -> Any:
        if not text:  # nothing is slow there, and `\B` does not match as in `regex`
            found = getattr(self._checked, name)(string=text, **options)
            return [*found] if name == "finditer" else found
        try:
            found = getattr(self._compiled, name)(string=text, timeout=SECONDS, concurrent=True, **options)
            return [*found] if name == "finditer" else found
        except TimeoutError:
            raise SlowPattern(
                f"the pattern {self.text[:80]!r} took more than {SECONDS:g} s on this text; avoid repeats within"
                " repeats, such as (a|aa)+, or write them possessively: (?:a|aa)++"
            ) from None


def _measure(tokens: Iterable[re.Match[str]]) -> int:
    """How many parts a pattern has if its repeats are written out."""
    sums, lasts = [0], [0]  # of the open groups: the parts, and how many of them the last item has
    for token in tokens:
        if token[0] == "(":
            sums.append(0)
            lasts.append(0)
        elif token[0] == ")" and len(sums) > 1:
            lasts.pop()
            lasts[-1] = sums.pop() + 1
            sums[-1] += lasts[-1]
        elif token["least"]:
            more = lasts[-1] * (max(1, int(token["least"])) - 1)
            sums[-1], lasts[-1] = sums[-1] + more, lasts[-1] + more
        else:
            lasts[-1] = 1
            sums[-1] += 1
    return sums[0]


def _translate(token: re.Match[str]) -> str:
    """A token as `regex` reads it."""
    text = token[0]
    if text == "{":
        return r"\{"
    if not token["set"]:
        return text
    start = 2 if text[1] == "^" else 1
    return f"{text[:start]}{_IN_SET.sub(_escape, text[start:-1])}]"


_IN_SET: Final = re.compile(r"\\.|[\[\]]", re.DOTALL)


def _escape(found: re.Match[str]) -> str:
    return found[0] if found[0][0] == "\\" else f"\\{found[0]}"
