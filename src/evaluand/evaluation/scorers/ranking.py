"""Rankings against what is relevant: which places the relevant answers have.

For search, recommendation and link prediction, where one answer is a whole ranking. Its metrics (`hits_at_k`, `ndcg`,
`mean_reciprocal_rank`, …) are means of one number per ranking, so any k can be asked for without grading again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, Final, NamedTuple

from evaluand.core import identity
from evaluand.core.errors import DataError, described
from evaluand.core.parameters import Text
from evaluand.data.typed_columns import number_text
from evaluand.evaluation.scorer import NO_ANSWER, ExpectationScorer, Score, is_number, read_number


@dataclass(frozen=True, kw_only=True)
class Ranking(ExpectationScorer):
    """The value is the reciprocal rank: 1 / the place of the first relevant answer, 0 where there is none.

    The output is a list of answers, best first; a list of objects with an answer and its `rank` (from 1) or `score`; or
    an object answer → score, of which higher is better. Answers with equal scores share the last of their places, so
    that a system that gives all the same score is not right by chance; `ndcg` takes the mean over their orders instead.

    The expected value is one relevant answer, a list of them, or an object answer → relevance (0 or more). Abstains
    where nothing relevant is expected. An empty ranking is a ranking. Numbers compare by value; a text equals no
    number, and a ranking whose answers have other types than all that is relevant is refused.

    Columns: `reciprocal_rank`; `first_rank`, empty where no relevant answer is found; the lists `ranks` and `grades` of
    the answers, best first; and `relevant`, the relevances of all that is relevant, largest first.

    Attributes:
        answer_key: where the answer stands in an object of a list.
        repeats: an answer may come again; it keeps its further places, in which it is irrelevant. Otherwise it is
            refused.

    Example:
        >>> Ranking().score(["father", "brother", "uncle"], ["brother", "uncle"]).columns["first_rank"]
        2.0
        >>> Ranking().score({"father": 0.2, "brother": 0.7, "uncle": 0.7}, "brother").value
        0.5
    """

    kind = "ranking"
    version = 3
    cheap = True
    by_target = True
    columns: ClassVar = {
        **dict.fromkeys(("reciprocal_rank", "first_rank"), "double"),
        **dict.fromkeys(("ranks", "grades", "relevant"), "numbers"),
    }

    answer_key: Text = "answer"
    repeats: bool = False

    def grade(self, output: Any, truth: "_Relevance", *others: Any) -> Score:
        """Finds the relevant answers; a DataError names what is no ranking or rank, or is twice in it."""
        as_text = truth.by_text or isinstance(output, Mapping)  # whose keys can only be texts
        key_of = partial(_key, as_text=as_text)
        relevance = {key_of(answer): grade for answer, grade in truth.grades if grade > 0}
        if not relevance:
            return Score.abstained("nothing relevant is expected")
        if output is None:
            return NO_ANSWER
        answers, ranks = self._ordered(output)
        keys = self._keys(answers, key_of)
        if not as_text:
            _check_types(answers, [answer for answer, _ in truth.grades])
        grades = [relevance.get(key, 0.0) for key in keys]
        first = next((rank for rank, grade in zip(ranks, grades, strict=True) if grade), None)
        reciprocal = 0.0 if first is None else 1 / first
        columns = {
            "reciprocal_rank": reciprocal,
            "first_rank": first,
            "ranks": ranks,
            "grades": grades,
            "relevant": sorted(relevance.values(), reverse=True),
        }
        return Score(reciprocal, columns=columns)

    def read_expected(self, expected: Any) -> "_Relevance":
        if isinstance(expected, Mapping):
            grades = [(answer, read_number(f"the relevance of {answer!r}", g, 0)) for answer, g in expected.items()]
            return _Relevance(grades, by_text=True)
        relevant = expected if isinstance(expected, list | tuple) else [expected]
        return _Relevance([(answer, 1.0) for answer in relevant], by_text=False)

    def _ordered(self, output: Any) -> tuple[Sequence[Any], list[float]]:
        """The answers, best first, and their ranks."""
        if isinstance(output, Mapping):
            return _by_score(
                [(answer, read_number(f"the score of {answer!r}", score)) for answer, score in output.items()]
            )
        if not isinstance(output, list | tuple):
            raise DataError(f"the ranking is {described(output)}, not a list of answers or an object answer → score")
        if not output or not all(isinstance(one, Mapping) and self.answer_key in one for one in output):
            return output, [float(place + 1) for place in range(len(output))]
        for key, read, order in (("rank", _rank, _by_rank), ("score", partial(read_number, "the score"), _by_score)):
            if all(key in one for one in output):
                return order([(one[self.answer_key], read(one[key])) for one in output])
        raise DataError(f"the answers have {self.answer_key!r} but not all of them a rank, or all a score")

    def _keys(self, answers: Sequence[Any], key_of: Callable[[Any], bytes]) -> list[bytes]:
        keys: list[bytes] = []
        seen: set[bytes] = set()
        for answer in answers:
            key = key_of(answer)
            if key in seen and not self.repeats:
                raise DataError(f"the ranking has {answer!r} twice; give each answer one place")
            keys.append(_AGAIN if key in seen else key)
            seen.add(key)
        return keys


class _Relevance(NamedTuple):
    """The relevance of answers, and whether these are texts, since they were the keys of an object."""

    grades: list[tuple[Any, float]]
    by_text: bool


_AGAIN: Final = b""  # the key of no answer


def _key(answer: Any, *, as_text: bool) -> bytes:
    """The key of an answer, the same for equal numbers, and for the text of a number where ids are texts."""
    if is_number(answer) and as_text:
        return identity.encode(number_text(answer))
    return identity.encode(int(answer) if is_number(answer) and float(answer).is_integer() else answer)


def _check_types(answers: Sequence[Any], relevant: Sequence[Any]) -> None:
    """Refuses answers of which none has a type of the relevant ones, so that none can be among them."""
    if answers and not {*map(_type, answers)} & {*map(_type, relevant)}:
        raise DataError(
            f"the ranking has {described(answers[0])}, and relevant is {described(relevant[0])}, which are"
            " never equal; write the ids in one type, such as all of them as text"
        )


def _type(answer: Any) -> type:
    return float if isinstance(answer, int) and not isinstance(answer, bool) else type(answer)


def _by_rank(pairs: list[tuple[Any, float]]) -> tuple[list[Any], list[float]]:
    pairs = sorted(pairs, key=lambda pair: pair[1])
    ranks = [rank for _, rank in pairs]
    if len(set(ranks)) < len(ranks):
        twice = next(rank for rank, after in pairwise(ranks) if rank == after)
        raise DataError(f"the rank {twice:g} occurs twice; give scores where answers have no order")
    return [answer for answer, _ in pairs], ranks


def _by_score(pairs: list[tuple[Any, float]]) -> tuple[list[Any], list[float]]:
    pairs = sorted(pairs, key=lambda pair: -pair[1])
    last = {score: float(place + 1) for place, (_, score) in enumerate(pairs)}
    return [answer for answer, _ in pairs], [last[score] for _, score in pairs]


def _rank(value: Any) -> float:
    if not is_number(value) or not (value >= 1 and value % 1 == 0):
        raise DataError(f"the rank is {described(value)}, not an integer of 1 or more; the first answer has rank 1")
    return float(value)
