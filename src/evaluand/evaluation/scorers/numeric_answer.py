r"""Whether the number in an answer is the expected one, as with GSM8K and other problems that end in a number.

Which number: that of the last `\boxed{…}`, or else the one that the last `answer is`, `Answer:` or `####` states, or
else the one that `take` says. What is read: digits with a sign (`-5`, `−5`), decimals, exponents (`1e5`, `3 × 10^5`),
complete groups of thousands (`1,450,000`, `1{,}450`, `10,\!080`), fractions (`1/5`, `2 1/2`, `½`, `\frac{5}{4}`),
square roots (`5\sqrt{3}`), powers of whole numbers (`2^{10}`), words of size (`1.2 million`), percent signs (`25%` is
25), currencies and units.

What cannot be read for sure abstains: `5x`, `3 + 4`, `7 or 8`, `1, 2`, `x > 5`, `1.5-2`, `3,14`, `5!`, `10:30`,
reasoning or a box without an end. Units must be the same where both sides have a known one (`5 km`, `5 m`); nothing
is converted.

Numbers are compared exactly, as ratios times square roots, never as floats: long integers and `0.1` are what they
say.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, ClassVar, Final

from evaluand.core.errors import DataError
from evaluand.evaluation.final_answer import BOXED, STATED, Unreadable, final_answer
from evaluand.evaluation.scorer import (
    ARITHMETIC,
    NOTHING_EXPECTED,
    Score,
    Scorer,
    as_decimal,
    described,
    require_choice,
    require_flags,
    require_text,
    require_tolerances,
    unread,
)
from evaluand.evaluation.written_numbers import Number, Quantity, are_equal, plain_quantity, quantities
from evaluand.models.extraction import COLUMN, Extraction

TAKES: Final = ("first", "last", "only")


@dataclass(frozen=True, kw_only=True)
class NumericAnswer(Scorer):
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

    after: str | None = None
    expected_after: str | None = None
    take: str = "last"
    tolerance: float = 0
    relative: float = 0
    fractions: bool = True

    def __post_init__(self) -> None:
        require_text(self, "after", optional=True)
        require_text(self, "expected_after", optional=True)
        require_choice(self, "take", TAKES)
        require_tolerances(self, "tolerance", "relative")
        require_flags(self, "fractions")

    @property
    def columns(self) -> Mapping[str, str]:
        return {COLUMN: "json"}

    def score(self, output: Any, expected: Any) -> Score:
        """Grades one number; a DataError if none is expected that can be read."""
        if expected is None:
            return NOTHING_EXPECTED
        truth = self._truth(expected)
        try:
            answer, extraction = self._read(output, self.after)
            right = are_equal(answer, truth, self._close)
        except Unreadable as error:
            return unread(str(error))
        explanation = None if right else f"{answer.text[:_SHOWN]} ≠ {truth.text[:_SHOWN]}"
        return Score(float(right), answer.text, None, explanation, columns={COLUMN: extraction.data})

    def check(self, expected: Any, outputs: Sequence[Any] = ()) -> None:
        self._truth(expected)

    def _truth(self, expected: Any) -> Quantity:
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
        number = as_decimal(value)
        return Quantity(str(number), Number(number)), Extraction(str(number), "the output itself")

    def _read_text(self, text: str, marker: str | None) -> tuple[Quantity, Extraction]:
        if marker is not None:
            _, marked, text = text.rpartition(marker)
            if not marked:
                raise Unreadable(f"no text after {marker!r}")
        if quantity := plain_quantity(text):
            return quantity, Extraction(quantity.text, "whole reply")
        region = final_answer(text)
        clauses = quantities(region.text, states=region.rule is not None, fractions=self.fractions)
        if not clauses.numbered:
            raise Unreadable("no number in the answer")
        if region.rule == STATED and clauses.numbered[0] == 0:
            quantity, rule, candidates = clauses.read(0, last=False), STATED, region.candidates
        elif region.rule == BOXED:
            quantity, rule, candidates = clauses.read_only(), BOXED, region.candidates
        else:
            rule, candidates = f"{self.take} number", len(clauses.numbered)
            quantity = {
                "first": lambda: clauses.read(clauses.numbered[0], last=False),
                "last": lambda: clauses.read(clauses.numbered[-1]),
                "only": clauses.read_only,
            }[self.take]()
        return quantity, Extraction(quantity.text, rule, candidates)

    def _close(self, value: Number, target: Number) -> bool:
        if not self.tolerance and not self.relative:
            return False
        tolerance, relative = self._allowances
        allowed = max(tolerance, ARITHMETIC.multiply(relative, target.decimal.copy_abs()))
        return ARITHMETIC.subtract(value.decimal, target.decimal).copy_abs() <= allowed

    @cached_property
    def _allowances(self) -> tuple[Decimal, Decimal]:
        return as_decimal(self.tolerance), as_decimal(self.relative)


_SHOWN: Final = 80
