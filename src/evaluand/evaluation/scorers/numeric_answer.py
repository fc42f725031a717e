r"""Whether the number in an answer is the expected one, as with GSM8K and other problems that end in a number.

What counts as a number: digits with an optional sign (`-` or `−`), decimals after a point, an exponent (`1e5`),
thousands grouped by commas, underscores or no-break spaces (`1,450,000`), a fraction without spaces (`1/5`), a whole
number and a fraction (`2 1/2`, `2½`). Currency signs, a trailing `.` and `%` are ignored: `25%` is 25.

What does not: digits that continue a word (`H2O`, `covid19`). A minus after a letter, digit or bracket is a dash or a
subtraction: `10-5` holds 10 and 5, `covid-19` holds 19. Groups must be complete: `1,2,3` are three numbers, and so are
`1,2,345`; yet `100,200,300` can only be read as one. Decimal commas and points between thousands are not understood:
where answers look like that, extract them first. A number that is a piece of LaTeX (`\frac{5}{4}`), of a power or an
index (`3 × 10^5`, `x_1`), or that a word of size follows (`1.2 million`), is none that can be graded; `\boxed{5}` is 5.

Numbers are compared exactly, as decimals, never as floats: long integers and `0.1` are what they say.
"""

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, ClassVar, Final

from evaluand.core.errors import DataError
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
)

TAKES: Final = ("first", "last", "only")

_Number = tuple[str, Decimal]
"""A number as it was written, and its value."""


@dataclass(frozen=True, kw_only=True)
class NumericAnswer(Scorer):
    """1 where the number in the output is the expected one, 0 where it is another; the number's text is the `label`.

    Outputs and expected values may be text or numbers. Abstains where the output holds no number to grade: no marker,
    no digits, several numbers where only one is allowed, a piece of a larger expression, a list, `true`, NaN.

    Attributes:
        after: only the text after the last occurrence of this marker is looked at, such as `A:` or `####`.
        expected_after: the same for the expected text; the whole text if not given.
        take: which number of that text counts, in the output and in the expected text: `first`, `last`, or `only`,
            which abstains where there are several that differ.
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
    version = 2
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

    def score(self, output: Any, expected: Any) -> Score:
        """Grades one number; a DataError if none is expected, or several are and `take` is `only`."""
        if expected is None:
            return NOTHING_EXPECTED
        truth = self._truth(expected)
        answer = self._found(output, self.after)
        if isinstance(answer, str):
            return Score.abstained(answer)
        (label, value), (wanted, target) = answer, truth
        if value == target or self._close(value, target):
            return Score(1.0, label)
        return Score(0.0, label, None, f"{label[:_SHOWN]} ≠ {wanted[:_SHOWN]}")

    def check(self, expected: Any, outputs: Sequence[Any] = ()) -> None:
        self._truth(expected)

    def _truth(self, expected: Any) -> _Number:
        truth = self._found(expected, self.expected_after)
        if isinstance(truth, str):
            raise DataError(f"the expected value is {described(expected)}: {truth}")
        return truth

    def _found(self, value: Any, marker: str | None) -> _Number | str:
        """The number in a value, or why there is none."""
        if isinstance(value, str):
            return self._found_in_text(value, marker)
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            return f"{described(value)} is neither a number nor text"
        if not isinstance(value, int) and not math.isfinite(value):
            return f"{value} is not a finite number"
        number = as_decimal(value)
        return str(number), number

    def _found_in_text(self, text: str, marker: str | None) -> _Number | str:
        if marker is not None:
            _, found, text = text.rpartition(marker)
            if not found:
                return f"no text after {marker!r}"
        text = text.translate(_PLAIN)
        numbers = self._numbers(text)
        chosen = next(numbers, None)
        if chosen is None:
            return "no number in the answer"
        if self.take != "first":
            for other in numbers:
                if self.take == "only" and other[0][1] != chosen[0][1]:
                    return f"several numbers in the answer: {chosen[0][0]}, {other[0][0]}"
                chosen = other
        number, (start, end) = chosen
        if (before := _PIECE_BEFORE.search(text[:start])) or _PIECE_AFTER.match(text, end):
            begin = before.start() if before else start
            return f"{text[begin : end + _AROUND].strip()!r} is a piece of an expression, or a word of size follows"
        return number

    def _numbers(self, text: str) -> Iterator[tuple[_Number, tuple[int, int]]]:
        """The numbers in a text, each with its place."""
        for match in (_NUMBER if self.fractions else _NUMBER_WITHOUT_FRACTIONS).finditer(text):
            value = _value(match)
            if value is not None:
                sign = "-" if "-" in (match["sign"], match["inner"]) else ""
                yield (sign + match["number"], value.copy_negate() if sign else value), match.span()

    def _close(self, value: Decimal, target: Decimal) -> bool:
        if not self.tolerance and not self.relative:
            return False
        tolerance, relative = self._allowances
        allowed = max(tolerance, ARITHMETIC.multiply(relative, target.copy_abs()))
        return ARITHMETIC.subtract(value, target).copy_abs() <= allowed

    @cached_property
    def _allowances(self) -> tuple[Decimal, Decimal]:
        return as_decimal(self.tolerance), as_decimal(self.relative)


_LONGEST_EXPONENT: Final = 9
_SHOWN: Final = 80


def _value(match: re.Match[str]) -> Decimal | None:
    """The value of a number without its sign; None for a fraction over zero."""
    parts = match.groupdict()
    if parts.get("under") is None:
        digits = parts["digits"].translate(_UNGROUPED)
        return Decimal(f"{digits}e{_bounded(parts['exponent'])}" if parts["exponent"] else digits)
    under = Decimal(parts["under"])
    if not under:
        return None
    return ARITHMETIC.add(Decimal(parts["whole"] or 0), ARITHMETIC.divide(Decimal(parts["over"]), under))


def _bounded(exponent: str) -> str:
    """An exponent that decimals can hold; beyond it all numbers are equally far from any that is expected."""
    size = exponent.lstrip("+-").lstrip("0") or "0"
    sign = "-" if exponent.startswith("-") else ""
    return sign + (size if len(size) <= _LONGEST_EXPONENT else "9" * _LONGEST_EXPONENT)


_GROUPING: Final = ",_\u00a0"
_UNGROUPED: Final = dict.fromkeys(map(ord, _GROUPING))
_VULGAR: Final = "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒"
_PLAIN: Final = {ord("−"): "-", ord("⁄"): "/", ord("\u2009"): "\u00a0", ord("\u202f"): "\u00a0"} | {
    ord(c): " " + unicodedata.normalize("NFKC", c).replace("⁄", "/") for c in _VULGAR
}

_AROUND: Final = 12  # characters after a number that is refused
_PIECE_BEFORE: Final = re.compile(r"(?:\\[!,;:]?|(?<!\\boxed)\{|[\^}]|[^\W_]_)$")
_PIECE_AFTER: Final = re.compile(
    r"\s*+(?:\\(?![)\]])|[{^]|_\{|(?:[×x*]|\\times|\\cdot)\s*+10(?:\^|\*\*)"
    r"|(?:hundred|thousand|million|billion|trillion|dozen|lakh|crore|mn|bn)s?\b)",
    re.IGNORECASE,
)

# Repeats are possessive (++), so that no text, however hostile, is read twice.
_SIGN = r"(?:(?<![^\W_])(?<![.)\]%+-])(?P<sign>[-+]))?+(?:[$€£¥₹₽₩₺₪₫฿₦₴₱₲¢][ ]?+(?P<inner>[-+])?+|(?<![^\W_]))"
_FRACTION = r"(?<!/)(?:(?P<whole>\d++)[ ])?(?P<over>\d++)/(?P<under>\d++)(?!/|\.?\d)"
_GROUPED = rf"(?<!\d[{_GROUPING}])(?!0)\d{{1,3}}(?P<group>[{_GROUPING}])\d{{3}}(?:(?P=group)\d{{3}})*+(?!(?P=group)?\d)"
_DIGITS = rf"(?P<digits>(?:{_GROUPED}|\d++)(?:\.\d++)?+|(?<!\.)\.\d++)(?:[eE](?P<exponent>[-+]?\d++))?+"
_NUMBER: Final = re.compile(f"{_SIGN}(?P<number>{_FRACTION}|{_DIGITS})")
_NUMBER_WITHOUT_FRACTIONS: Final = re.compile(f"{_SIGN}(?P<number>{_DIGITS})")
