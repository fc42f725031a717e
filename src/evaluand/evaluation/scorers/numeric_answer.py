"""Whether the number in an answer is the expected one, as with GSM8K and other problems that end in a number.

Numbers are compared exactly, as ratios times square roots, never as floats: long integers and `0.1` are what they say.
What is read and what abstains: `docs/howto/scorers.md`.
"""

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

from evaluand.core.errors import DataError, described
from evaluand.core.parameters import Text, Within
from evaluand.evaluation.final_answer import BOXED, STATED, Region, Unreadable, final_answer
from evaluand.evaluation.scorer import ExpectationScorer, Score, as_decimal, unread
from evaluand.evaluation.written_numbers import Numbers, Quantity, are_equal, plain_quantity
from evaluand.models.extraction import COLUMN, Extraction


@dataclass(frozen=True, kw_only=True)
class NumericAnswer(ExpectationScorer):
    """1 where the number in the output is the expected one, 0 where it is another; the number's text is the `label`.

    Outputs and expected values may be text or numbers. Abstains where no number can be read for sure: no marker, no
    digits, several numbers, a piece of a larger expression, another unit, a list, `true`, NaN.

    Attributes:
        after: only the text after the last occurrence of this marker is looked at, such as `A:` or `####`.
        expected_after: the same for the expected text; the whole text if not given.
        take: which number counts where none is boxed or stated, in the output and in the expected text: `first`,
            `last`, or `only`, which abstains where there are several that differ.
        tolerance: the largest difference that still counts as equal.
        relative: the same as a share of the expected number; the larger of the two allowances holds.
        fractions: read `1/5` as 0.2 and `2 1/2` as 2.5; otherwise each integer is a separate number.

    Raises:
        SpecError: a tolerance is negative, or `take` is something else.

    Example:
        >>> NumericAnswer(after="A:").score("12 * 1.5 = 18 dollars. A: $1,018.00", "1018")[:2]
        (1.0, '1,018.00')
    """

    kind = "numeric_answer"
    version = 3
    cheap = True
    ranges: ClassVar = {"value": (0.0, 1.0)}
    columns: ClassVar = {COLUMN: "json"}

    after: Text | None = None
    expected_after: Text | None = None
    take: Literal["first", "last", "only"] = "last"
    tolerance: Annotated[float, Within(0)] = 0
    relative: Annotated[float, Within(0)] = 0
    fractions: bool = True

    def grade(self, output: Any, truth: Quantity, *others: Any) -> Score:
        try:
            answer, extraction = self._read(output, self.after)
            right = are_equal(answer, truth, self._close if self.tolerance or self.relative else None)
        except Unreadable as error:
            return unread(str(error))
        explanation = None if right else f"{answer} ≠ {truth}"
        return Score(float(right), answer.text, None, explanation, columns={COLUMN: extraction.data})

    def read_expected(self, expected: Any) -> Quantity:
        try:
            return self._read(expected, self.expected_after)[0]
        except Unreadable as error:
            raise DataError(f"the expected value is {described(expected)}: {error}") from None

    def _read(self, value: Any, marker: str | None) -> tuple[Quantity, Extraction]:
        """The number in a value, and how it was chosen."""
        if isinstance(value, str):
            return self._read_text(value, marker)
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            raise Unreadable(f"{described(value)} is neither a number nor text")
        if not isinstance(value, int) and not math.isfinite(value):
            raise Unreadable(f"{value} is not a finite number")
        quantity = Quantity.of(as_decimal(value))
        return quantity, Extraction(quantity.text, "the output itself")

    def _read_text(self, text: str, marker: str | None) -> tuple[Quantity, Extraction]:
        if marker is not None:
            _, marked, text = text.rpartition(marker)
            if not marked:
                raise Unreadable(f"no text after {marker!r}")
        if quantity := plain_quantity(text):
            return quantity, Extraction(quantity.text, "whole reply")
        region = final_answer(text)
        numbers = self._numbers(region)
        if not numbers and (whole := final_answer(text, reasoning=True)).rule:
            region, numbers = whole, self._numbers(whole)
        if not numbers:
            raise Unreadable("no number in the answer")
        if region.rule == STATED and numbers.leads:
            return _taken(numbers, "first", STATED, region.candidates)
        if region.rule == BOXED:
            return _taken(numbers, "only", BOXED, region.candidates)
        return _taken(numbers, self.take, f"{self.take} number", len(numbers))

    def _numbers(self, region: Region) -> Numbers:
        return Numbers(region.text, region.rule, fractions=self.fractions)

    def _close(self, value: Fraction, target: Fraction) -> bool:
        allowed = max(Fraction(as_decimal(self.tolerance)), Fraction(as_decimal(self.relative)) * abs(target))
        return abs(value - target) <= allowed


def _taken(numbers: Numbers, take: str, rule: str, candidates: int) -> tuple[Quantity, Extraction]:
    quantity = numbers.read_only() if take == "only" else numbers.read(0 if take == "first" else len(numbers) - 1)
    return quantity, Extraction(quantity.text, rule, candidates)
