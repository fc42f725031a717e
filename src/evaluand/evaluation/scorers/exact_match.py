"""Whether an answer is the expected one, in the normal form of text, after what the user chose to forgive.

What is forgiven is part of the scorer's identity; see `evaluand.core.text.normal_form`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

from evaluand.core.errors import DataError, described, with_article
from evaluand.core.parameters import Text, Within
from evaluand.core.text.normal_form import Normalisation, normal_form
from evaluand.evaluation.scorer import (
    NOTHING_EXPECTED,
    RIGHT,
    WRONG,
    Score,
    Scorer,
    are_equal,
    is_number,
    read_field,
    value_kind,
)


@dataclass(frozen=True, kw_only=True)
class ExactMatch(Scorer):
    """1 where the output equals what was expected, 0 where it does not; abstains where nothing was expected.

    Texts are equal in their normal form: composed accents, spaces for no-break spaces, plain apostrophes and quotes.
    Text never equals a number (`numeric_answer` finds numbers in text); where the two look the same, as the text `7`
    and the number 7 do, the row fails, because that is a column read as another type and not a wrong answer. Numbers
    compare by value, `1` and `1.0` are equal; `true` and `1` are not. Lists and objects compare item by item. NaN
    equals NaN, since the answer is then the expected one.

    Attributes:
        normalise: what else to forgive when two texts are compared (never text inside lists or objects): `unicode`,
            `case`, `punctuation`, `all_punctuation`, `articles` and `space`; see `evaluand.core.text.normal_form`.
        any_of: the expected value is a list of acceptable answers; a single value counts as a list of one.

    Raises:
        SpecError: a normalisation has no such name.

    Example:
        >>> ExactMatch(normalise=("case", "punctuation", "articles", "space")).score("The  Beatles.", "beatles").value
        1.0
    """

    kind = "exact_match"
    version = 2
    cheap = True
    ranges: ClassVar = {"value": (0.0, 1.0)}

    normalise: tuple[Normalisation, ...] = ()
    any_of: bool = False

    def score(self, output: Any, expected: Any) -> Score:
        if expected is None:
            return NOTHING_EXPECTED
        if self.any_of and isinstance(expected, list | tuple):
            if not expected:
                return _NOTHING_ACCEPTABLE
            return RIGHT if any(self._equal(output, answer) for answer in expected) else _wrong(output, expected)
        return RIGHT if self._equal(output, expected) else _wrong(output, [expected])

    def check(self, expected: Any, outputs: Sequence[Any] = ()) -> None:
        answers = self._answers(expected)
        for output in outputs:
            if answers and all(_is_no_answer_to(output, answer) for answer in answers):
                raise _never_equal(output, answers[0])

    def check_kind(self, expected: Any, kind: str) -> None:
        answers = self._answers(expected)
        if answers and all(value_kind(answer) != kind for answer in answers):
            what = f"the task returns {_article(kind)} and the expected answer is {described(answers[0])}"
            raise DataError(f"{what}, which are never equal{_remedy(kind, value_kind(answers[0]))}")

    def _answers(self, expected: Any) -> Sequence[Any]:
        """The acceptable answers."""
        return expected if self.any_of and isinstance(expected, list | tuple) else [expected]

    def _equal(self, output: Any, expected: Any) -> bool:
        if isinstance(output, str) and isinstance(expected, str):
            return output == expected or normal_form(output, self.normalise) == normal_form(expected, self.normalise)
        return _same(output, expected)


_NOTHING_ACCEPTABLE: Final = Score.abstained("the list of acceptable answers is empty")


def _wrong(output: Any, acceptable: Sequence[Any]) -> Score:
    """Wrong; a DataError if it is so only because of its type."""
    for answer in acceptable:
        if _differ_in_type_only(output, answer):
            raise _never_equal(output, answer)
    return WRONG


def _is_no_answer_to(output: Any, answer: Any) -> bool:
    """Whether an output is no wrong answer but none: the right one in another type, or something that holds answers."""
    holds = {"list", "object"}
    return _differ_in_type_only(output, answer) or (value_kind(output) in holds) != (value_kind(answer) in holds)


def _never_equal(output: Any, answer: Any) -> DataError:
    what = f"the output is {described(output)} and the expected answer {described(answer)}, which are never equal"
    return DataError(what + _remedy(value_kind(output), value_kind(answer)))


def _remedy(output: Any, answer: Any) -> str:
    """How values of these kinds can become equal."""
    if {output, answer} == {"text", "number"}:
        return "; give both the same type, or use numeric_answer"
    if output == "object":
        return "; name the part of the output that is the answer"
    if output == "text" and answer in ("list", "object"):
        return "; use json_equality for JSON, or any_of for a list of answers"
    return "; give both the same type"


def _article(kind: str) -> str:
    return "text" if kind == "text" else with_article(kind)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_same(value, b[key]) for key, value in a.items())
    return are_equal(a, b)


def _differ_in_type_only(a: Any, b: Any) -> bool:
    """Whether one is a number or a truth value and the other its text."""
    text, other = (a, b) if isinstance(a, str) else (b, a)
    if not isinstance(text, str) or not isinstance(other, int | float):
        return False
    if isinstance(other, bool):
        return text.strip().lower() == str(other).lower()
    try:
        return float(text) == other
    except (ValueError, OverflowError):
        return False


@dataclass(frozen=True, kw_only=True)
class TopK(ExactMatch):
    """1 where one of the first k labels is what was expected, 0 where none is; labels compare as with `exact_match`.

    The output is a list of labels, best first, or an object label → score, of which higher is better. Labels with equal
    scores have no order: one is among the first k only if it would be in any order of them, so that a system that gives
    every label the same score is not right by chance. Abstains where nothing is expected and where there is no ranking.

    Attributes:
        k: how many labels are looked at.
        ranking_key: where in an output that is an object the ranking stands, such as `probabilities`; None where the
            whole output is the ranking.
        normalise: what is forgiven when labels are compared, see `exact_match`.
        any_of: the expected value is a list of acceptable labels.

    Raises:
        SpecError: k is not an integer of at least 1.

    Example:
        >>> TopK(k=2).score(["cat", "dog", "cow"], "dog").value, TopK(k=1).score({"cat": 0.6, "dog": 0.4}, "dog").value
        (1.0, 0.0)
    """

    kind = "top_k"
    version = 2
    cheap = True

    k: Annotated[int, Within(1)]
    ranking_key: Text | None = None

    def score(self, output: Any, expected: Any) -> Score:
        """Looks for the expected label; a DataError if the output is no ranking, or its labels have another type."""
        if expected is None:
            return NOTHING_EXPECTED
        ranking = self._ranking(output)
        if not ranking:
            return Score.abstained(f"there is no ranking: the output is {described(output)}")
        first = self._first(ranking) if isinstance(ranking, Mapping) else ranking[: self.k]
        grades = [super(TopK, self).score(label, expected) for label in first]
        abstained = next((grade for grade in grades if grade.value is None), None)
        return abstained or (RIGHT if any(grade.value for grade in grades) else WRONG)

    def check(self, expected: Any, outputs: Sequence[Any] = ()) -> None:
        for output in outputs:
            ranking = self._ranking(output)
            super().check(expected, [*ranking] if isinstance(ranking, list | tuple) else [])

    def check_kind(self, expected: Any, kind: str) -> None:
        if kind not in ("list", "object"):
            raise DataError(
                f"top_k grades rankings, a list of labels or an object, and the task returns {_article(kind)}"
            )

    def _ranking(self, output: Any) -> Any:
        ranking = output
        if self.ranking_key is not None and isinstance(output, Mapping):
            ranking = read_field("there is no ranking: the output", output, self.ranking_key)
        if ranking is not None and not isinstance(ranking, list | tuple | Mapping):
            raise DataError(
                f"the ranking is {described(ranking)}, not a list of labels or an object label → score; where a task"
                " gives several answers, take the scorer exact_match and the metric top_k"
            )
        return ranking

    def _first(self, scores: Mapping[str, Any]) -> list[str]:
        """The labels that are among the first k however equal scores are ordered."""
        for label, score in scores.items():
            if not is_number(score) or math.isnan(score):
                raise DataError(f"the score of {label!r} is {described(score)}, not a number")
        least = sorted(scores.values(), reverse=True)[self.k :][:1]
        return [label for label, score in scores.items() if not least or score > least[0]]
