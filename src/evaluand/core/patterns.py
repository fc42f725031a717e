r"""Regular expressions of Python's module `re` that give up on a text for which they take too long.

Python's own engine backtracks without end: `(a|aa)+$` takes years on sixty letters, and nothing can stop it. The
package `regex` matches alike and has a time limit ([why](docs/design/0023-patterns.md)). It reads two things
differently, which are escaped for it: braces that are no repeat (`{"answer": (\w)}`), which it takes for a fuzzy match,
and `[` within a set of characters.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

from evaluand.core.errors import DataError

SECONDS: Final = 5.0
"""Of processor time that a pattern may take on one text."""

_MOST_REPEATS: Final = 100_000
_FLAGS: Final = ("ASCII", "IGNORECASE", "MULTILINE", "DOTALL", "VERBOSE")
_TOKEN: Final = re.compile(
    r"""
      (?P<escape> \\N\{[^}]*\} | \\. )
    | (?P<comment> \(\?\#[^)]*\) )
    | (?P<line> \#[^\n]* )                                      # a comment, if the pattern is verbose
    | (?P<set> \[\^?\]? )
    | (?P<repeat> \{ (?: (?P<least>\d+) (?:,\d*)? | ,\d+ ) \} )
    | .
    """,
    re.DOTALL | re.VERBOSE,
)


class SlowPattern(DataError):
    """A pattern took too long on a text."""


class LimitedPattern:
    """A compiled pattern, with the methods of that of `re`.

    Args:
        pattern: as for `re.compile`, like `flags`.

    Raises:
        re.error, OverflowError, RecursionError: as `re.compile`; also if repeats of repeats are too many.

    Example:
        >>> LimitedPattern(r"answer is ([A-D])").search("The answer is B.")[1]
        'B'
    """

    def __init__(self, pattern: str, flags: int = 0) -> None:
        import regex  # on use: few experiments need it

        self.text = pattern
        checked = re.compile(pattern, flags)  # what it refuses is refused as it does
        self.groups, self.groupindex = checked.groups, checked.groupindex
        repeats = math.prod(max(1, int(found["least"])) for found in _TOKEN.finditer(pattern) if found["least"])
        if repeats > _MOST_REPEATS:
            raise re.error(f"its repeats within repeats may be {repeats:,}; at most {_MOST_REPEATS:,} are possible")
        translated = _translate(pattern, is_verbose=bool(checked.flags & re.VERBOSE))
        own = [getattr(regex, name) for name in _FLAGS if flags & getattr(re, name)]
        self._checked, self._compiled = checked, regex.compile(translated, sum(own, int(regex.VERSION0)))

    def search(self, text: str) -> Any:
        """The first match; None if there is none."""
        return self._call("search", text)

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
            return getattr(self._checked, name)(string=text, **options)
        try:
            return getattr(self._compiled, name)(string=text, timeout=SECONDS, concurrent=True, **options)
        except TimeoutError:
            raise SlowPattern(
                f"the pattern {self.text[:80]!r} took more than {SECONDS:g} s on this text; avoid repeats within"
                " repeats, such as (a|aa)+, or write them possessively: (?:a|aa)++"
            ) from None


def _translate(pattern: str, *, is_verbose: bool) -> str:
    """The pattern as `regex` reads it."""
    parts: list[str] = []
    is_set, at = False, 0
    while found := _TOKEN.match(pattern, at):
        text = found[0]
        if found["line"] and (is_set or not is_verbose):
            text = "#"
        elif is_set and text[0] == "(":
            text = "("
        at += len(text)
        if found["escape"]:
            parts.append(text)
        elif is_set:
            parts.append(f"\\{text}" if text[0] == "[" else text)
            is_set = not text.endswith("]")
        elif found["set"]:
            is_set = True
            parts.append(text.replace("]", r"\]"))
        else:
            parts.append(r"\{" if text == "{" else text)
    return "".join(parts)
