"""Whether an answer contains the expected text.

The right tool for long answers that must mention something, and a lenient one: `not Paris` includes `Paris`, `1918`
includes `18` unless `whole_word` is set. An answer that lists every possibility includes the right one, too.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evaluand.core.errors import DataError
from evaluand.evaluation.scorer import NOTHING_EXPECTED, RIGHT, Score, Scorer, described, require_flags, wrong_parameter


@dataclass(frozen=True, kw_only=True)
class Includes(Scorer):
    """1 where the output, a text, contains the expected text, 0 where it does not.

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
    version = 1
    cheap = True

    any_of: bool = False
    all_of: bool = False
    ignore_case: bool = False
    whole_word: bool = False

    def __post_init__(self) -> None:
        require_flags(self, "any_of", "all_of", "ignore_case", "whole_word")
        if self.any_of and self.all_of:
            raise wrong_parameter(self, "all_of", "set any_of or all_of, not both")

    def score(self, output: Any, expected: Any) -> Score:
        """Looks for what was expected.

        Raises:
            DataError: the expected value is not text, or not a list of texts where `any_of` or `all_of` is set.
        """
        if expected is None:
            return NOTHING_EXPECTED
        wanted = self._wanted(expected)
        if not wanted:
            return Score.abstained("the list of expected texts is empty")
        if "" in wanted:
            return Score.abstained("the expected text is empty; every text includes it")
        if not isinstance(output, str):
            return Score.abstained(f"the output is {described(output)}, not text")
        return self._graded(output, wanted)

    def check(self, expected: Any, outputs: Sequence[Any] = ()) -> None:
        self._wanted(expected)

    def _wanted(self, expected: Any) -> list[str]:
        several = self.any_of or self.all_of
        wanted = list(expected) if several and isinstance(expected, list | tuple) else [expected]
        for text in wanted:
            if not isinstance(text, str):
                remedy = "" if several else "; for a list, set any_of or all_of"
                raise DataError(f"the expected value is {described(text)}; includes looks for text{remedy}")
        return wanted

    def _graded(self, output: str, wanted: list[str]) -> Score:
        text = output.casefold() if self.ignore_case else output
        if self.any_of:
            found = next((want for want in wanted if self._has(text, want)), None)
            return Score(1.0, found) if found is not None else _lacking(wanted)
        missing = [want for want in wanted if not self._has(text, want)]
        return _lacking(missing) if missing else RIGHT

    def _has(self, text: str, want: str) -> bool:
        if self.ignore_case:
            want = want.casefold()
        return _has_word(text, want) if self.whole_word else want in text


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
