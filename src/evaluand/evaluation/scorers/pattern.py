"""Whether an answer matches a pattern, or contains a text.

Patterns are Python's regular expressions, searched for anywhere in the text: anchor them with `^` and `$` if needed.
They backtrack: a pattern with repeats inside repeats, such as `(a|aa)+$`, takes exponential time on some texts. Such a
row fails after five seconds. Write such a repeat possessively (`(?:a|aa)++$`) or without the nesting.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final, Literal

from evaluand.core.errors import DataError, SpecError, described, nearest
from evaluand.core.limited_patterns import LimitedPattern
from evaluand.core.parameters import Text
from evaluand.core.text.normal_form import normal_form
from evaluand.evaluation.scorer import (
    NOTHING_EXPECTED,
    RIGHT,
    WRONG,
    ExpectationScorer,
    Score,
    Scorer,
    unread,
    wrong_parameter,
)
from evaluand.models.extraction import COLUMN, Extraction

_SHOWN: Final = 3


@dataclass(frozen=True, kw_only=True)
class Pattern(Scorer):
    r"""Without `group`: 1 where the pattern is found in the output, 0 where not; what was expected is not looked at.

    With `group`: what the group of a match holds is the answer and becomes the `label`; 1 where it equals the expected
    text, white space at the ends aside, else 0. The comparison minds case, whatever the flags. Abstains where the
    pattern is not found, where `which: all` finds several texts, and where the output is not text.

    Attributes:
        pattern: a regular expression of Python's module `re`.
        flags: any of `ignorecase`, `multiline`, `dotall`.
        group: name or number of the group to compare; 0 is the whole match.
        which: whose group is the answer: that of the `first` match, of the `last`, or of `all`, which must hold the
            same text. Matches whose group holds nothing do not count.

    Raises:
        SpecError: the pattern is not a regular expression (tells where), or has no such group.

    Example:
        >>> choice = Pattern(pattern=r"answer is \(?([A-D])", group=1)
        >>> choice.score("The answer is (B).", "B")[:2]
        (1.0, 'B')
    """

    kind = "pattern"
    version = 3
    cheap = True
    ranges: ClassVar = {"value": (0.0, 1.0)}

    pattern: Text
    flags: tuple[Literal["ignorecase", "multiline", "dotall"], ...] = ()
    group: str | int | None = None
    which: Literal["first", "last", "all"] = "first"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_group()

    @property
    def columns(self) -> Mapping[str, str]:
        return {} if self.group is None else {COLUMN: "json"}

    def score(self, output: Any, expected: Any) -> Score:
        """Searches the output.

        Raises:
            DataError: a group is to be compared with an expected value that is not text.
            SlowPattern: the search takes too long.
        """
        if self.group is not None:
            return self._compared(output, self.group, expected)
        if not isinstance(output, str):
            return Score.abstained(f"the output is {described(output)}, not text")
        return RIGHT if self._compiled.search(output) else WRONG

    def check(self, expected: Any, outputs: Sequence[Any] = ()) -> None:
        if self.group is not None and not isinstance(expected, str):
            raise DataError(
                f"the expected value is {described(expected)}; pattern compares text: give the expected value as text"
            )

    def _compared(self, output: Any, group: str | int, expected: Any) -> Score:
        if expected is None:
            return NOTHING_EXPECTED
        self.check(expected)
        if not isinstance(output, str):
            return unread(f"the output is {described(output)}, not text")
        matches = self._compiled.finditer(output)
        answers = [match[group].strip() for match in matches if match[group] is not None]
        if not matches:
            return unread("the pattern is not found")
        if not answers:
            return unread(f"the pattern is found, but its group {group!r} holds nothing", len(matches))
        if self.which == "all" and len({*answers}) > 1:
            several = ", ".join(map(repr, [*dict.fromkeys(answers)][:_SHOWN]))
            return unread(f"the matches hold several texts: {several}", len(answers))
        answer = answers[-1 if self.which == "last" else 0]
        read = Extraction(answer, "all matches" if self.which == "all" else f"{self.which} match", len(answers))
        return Score(1.0 if answer == expected.strip() else 0.0, answer, columns={COLUMN: read.data})

    @cached_property
    def _compiled(self) -> LimitedPattern:
        flags = sum((re.RegexFlag[name.upper()] for name in self.flags), re.NOFLAG)
        try:
            return LimitedPattern(self.pattern, flags)
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
            if self.which != "first":
                raise wrong_parameter(
                    self, "which", "set group, too: without one, only whether there is a match counts"
                )
            return
        if isinstance(group, str):
            if group not in names:
                known = f"its named groups: {', '.join(names) or 'none'}"
                raise wrong_parameter(self, "group", f"the pattern has no such group{nearest(group, names)}; {known}")
        elif not isinstance(group, int) or isinstance(group, bool):
            raise wrong_parameter(self, "group", "give the name or number of a group")
        elif not 0 <= group <= count:
            raise wrong_parameter(self, "group", f"the pattern has {count} groups")


@dataclass(frozen=True, kw_only=True)
class Includes(ExpectationScorer):
    """1 where the output, a text, contains the expected text, 0 where it does not; in their normal form, see
    `evaluand.core.text.normal_form`.

    The right tool for long answers that must mention something, and a lenient one: `not Paris` includes `Paris`, `1918`
    includes `18` unless `whole_word` is set. An answer that lists every possibility includes the right one, too.

    Abstains where the output is not text, and where nothing is expected: no value, an empty list, an empty text (which
    every text contains).

    Attributes:
        any_of: one text of the expected list is enough; `label` tells which was found first in the list.
        all_of: every text of the expected list is needed; `explanation` names the missing ones. Without either, the
            expected value must be one text.
        ignore_case: `PARIS` counts for `Paris`.
        whole_word: the text found must not be part of a longer word or number: letters, digits, `_` and accents.

    Raises:
        SpecError: both `any_of` and `all_of` are set.

    Example:
        >>> Includes(whole_word=True).score("It was in 1918.", "18").value
        0.0
        >>> Includes(all_of=True).score("red and blue", ["red", "green"]).explanation
        "missing: 'green'"
    """

    kind = "includes"
    version = 2
    cheap = True
    ranges: ClassVar = {"value": (0.0, 1.0)}

    any_of: bool = False
    all_of: bool = False
    ignore_case: bool = False
    whole_word: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.any_of and self.all_of:
            raise wrong_parameter(self, "all_of", "set any_of or all_of, not both")

    def grade(self, output: Any, truth: list[str], *others: Any) -> Score:
        """Looks for what was expected."""
        if not truth:
            return Score.abstained("the list of expected texts is empty")
        if "" in truth:
            return Score.abstained("the expected text is empty; every text includes it")
        if not isinstance(output, str):
            return Score.abstained(f"the output is {described(output)}, not text")
        text = self._normal(output)
        if self.any_of:
            found = next((want for want in truth if self._has(text, want)), None)
            return Score(1.0, found) if found is not None else _lacking(truth)
        missing = [want for want in truth if not self._has(text, want)]
        return _lacking(missing) if missing else RIGHT

    def read_expected(self, expected: Any) -> list[str]:
        several = self.any_of or self.all_of
        wanted = list(expected) if several and isinstance(expected, list | tuple) else [expected]
        for text in wanted:
            if not isinstance(text, str):
                remedy = "" if several else "; for a list, set any_of or all_of"
                raise DataError(f"the expected value is {described(text)}; includes looks for text{remedy}")
        return wanted

    def _has(self, text: str, want: str) -> bool:
        want = self._normal(want)
        return _has_word(text, want) if self.whole_word else want in text

    def _normal(self, text: str) -> str:
        return normal_form(text, ("case",) if self.ignore_case else ())


def _lacking(missing: list[str]) -> Score:
    return Score(0.0, explanation="missing: " + ", ".join(map(repr, missing)))


def _has_word(text: str, word: str) -> bool:
    start = text.find(word)
    while start >= 0:
        end = start + len(word)
        if not _joined(text[start - 1 : start], word[0]) and not _joined(word[-1], text[end : end + 1]):
            return True
        start = text.find(word, start + 1)
    return False


def _joined(left: str, right: str) -> bool:
    """Whether two neighbouring characters belong to one word; an end of the text joins nothing."""
    return bool(left and right) and _in_word(left) and _in_word(right)


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_" or unicodedata.category(character).startswith("M")
