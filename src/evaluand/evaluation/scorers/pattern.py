"""Whether a regular expression is found in an answer, or whether what it extracts is the expected value.

Python's regular expressions are meant, searched for anywhere in the text: anchor with `^` and `$` where that matters.
They backtrack: a pattern with repeats inside repeats, such as `(a+)+$`, takes exponential time on some texts, and
nothing stops it, since a search cannot be interrupted. Write such a repeat possessively (`(?:a++)+$`) or without the
nesting.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from evaluand.core.errors import DataError, SpecError, nearest
from evaluand.evaluation.scorer import (
    NOTHING_EXPECTED,
    RIGHT,
    WRONG,
    Score,
    Scorer,
    described,
    require_choices,
    require_text,
    wrong_parameter,
)

FLAGS: Final = {"ignorecase": re.IGNORECASE, "multiline": re.MULTILINE, "dotall": re.DOTALL}


@dataclass(frozen=True, kw_only=True)
class Pattern(Scorer):
    r"""Without `group`: 1 where the pattern is found in the output, 0 where not; what was expected is not looked at.

    With `group`: what the group of the first match holds is the answer and becomes the `label`; 1 where it equals the
    expected text, white space at the ends aside, else 0. Abstains where the pattern is not found. The comparison minds
    case, whatever the flags. Abstains where the output is not text.

    Attributes:
        pattern: a regular expression of Python's module `re`.
        flags: any of `ignorecase`, `multiline`, `dotall`.
        group: name or number of the group to compare; 0 is the whole match.

    Raises:
        SpecError: the pattern is not a regular expression (tells where), or has no such group.

    Example:
        >>> choice = Pattern(pattern=r"answer is \(?([A-D])", group=1)
        >>> choice.score("The answer is (B).", "B")[:2]
        (1.0, 'B')
    """

    kind = "pattern"
    version = 1
    cheap = True

    pattern: str
    flags: tuple[str, ...] = ()
    group: str | int | None = None

    def __post_init__(self) -> None:
        require_text(self, "pattern")
        require_choices(self, "flags", tuple(FLAGS))
        self._require_group()

    def score(self, output: Any, expected: Any) -> Score:
        """Searches the output.

        Raises:
            DataError: a group is to be compared with an expected value that is not text.
        """
        if not isinstance(output, str):
            return Score.abstained(f"the output is {described(output)}, not text")
        match = self._compiled.search(output)
        if self.group is None:
            return RIGHT if match else WRONG
        return self._compared(match, expected)

    def check(self, expected: Any, outputs: Sequence[Any] = ()) -> None:
        if self.group is not None and not isinstance(expected, str):
            raise DataError(
                f"the expected value is {described(expected)}; pattern compares text: give the expected value as text"
            )

    def _compared(self, match: re.Match[str] | None, expected: Any) -> Score:
        if expected is None:
            return NOTHING_EXPECTED
        self.check(expected)
        if match is None:
            return Score.abstained("the pattern is not found")
        answer: str | None = match[self.group or 0]
        if answer is None:
            return Score.abstained(f"the pattern is found, but its group {self.group!r} holds nothing")
        answer = answer.strip()
        return Score(1.0 if answer == expected.strip() else 0.0, answer)

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        flags = sum((FLAGS[name] for name in self.flags), re.NOFLAG)
        try:
            return re.compile(self.pattern, flags)
        except re.error as error:
            where = f" at line {error.lineno}, column {error.colno}" if error.lineno else ""
            raise self._not_a_pattern(f"{error.msg}{where}") from None
        except (OverflowError, RecursionError) as error:  # a{99999999999}, thousands of nested groups
            raise self._not_a_pattern(str(error)) from None

    def _not_a_pattern(self, why: str) -> SpecError:
        return SpecError(f"scorer 'pattern': {self.pattern[:80]!r} is not a regular expression: {why}")

    def _require_group(self) -> None:
        names, count = self._compiled.groupindex, self._compiled.groups
        group: object = self.group
        if group is None:
            return
        if isinstance(group, str):
            if group not in names:
                known = f"its named groups: {', '.join(names) or 'none'}"
                raise wrong_parameter(self, "group", f"the pattern has no such group{nearest(group, names)}; {known}")
        elif not isinstance(group, int) or isinstance(group, bool):
            raise wrong_parameter(self, "group", "give the name or number of a group")
        elif not 0 <= group <= count:
            raise wrong_parameter(self, "group", f"the pattern has {count} groups")
