"""The labels of people and of a judge as numbers on one scale."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np

from evaluand.core.errors import DataError, SpecError, nearest
from evaluand.judges.cards.labelled_set import Item, Label

LabelKind = Literal["right_wrong", "labels", "grades", "numbers", "pairs"]


@dataclass(frozen=True)
class Readings:
    """Labels and judgements as numbers.

    Attributes:
        kind: `right_wrong` (1 or 0; a judge may give any number, such as a probability), `labels` without an order
            (their places in `names`), `grades` (integers, or the places of words in their order), `numbers`, or `pairs`
            (1 where `a` is better, 0 where `b` is, ½ for a tie).
        names: the words that the numbers stand for; empty if they are numbers themselves.
        people: items × people, NaN where a person gave no label.
        judge: items × judgements, NaN where the judge abstained or failed.
        swapped: the same for pairs whose answers were swapped.
        example: the number of each item's example.
    """

    kind: LabelKind
    names: Sequence[str]
    people: np.ndarray
    judge: np.ndarray
    swapped: np.ndarray
    example: np.ndarray

    @cached_property
    def majority(self) -> np.ndarray:
        """The label that more than half of the people gave to each item, NaN where none has so many."""
        votes = np.sum(self.people[:, :, None] == self.people[:, None, :], axis=2)
        most = votes.argmax(axis=1) if self.people.shape[1] else np.zeros(len(self.people), np.int64)
        rows = np.arange(len(self.people))
        n = np.sum(~np.isnan(self.people), axis=1)
        return np.asarray(np.where(2 * votes[rows, most] > n, self.people[rows, most], np.nan))

    @cached_property
    def mean(self) -> np.ndarray:
        """The mean of the people's numbers."""
        return mean_of(self.people)

    def name(self, value: float) -> str:
        """A value as people read it."""
        if self.kind == "pairs":
            return "a" if value > 0.5 else "b" if value < 0.5 else "tie"
        if self.names and not math.isnan(value):
            return self.names[int(value)]
        return f"{value:.4g}"


def mean_of(matrix: np.ndarray) -> np.ndarray:
    """The mean of each row's known numbers, NaN without any."""
    known = ~np.isnan(matrix)
    n = known.sum(axis=1)
    return np.asarray(np.where(n > 0, np.where(known, matrix, 0.0).sum(axis=1) / np.maximum(n, 1), np.nan))


def read_items(
    items: Sequence[Item],
    *,
    is_pairs: bool = False,
    positive: str | None = None,
    order: Sequence[str] = (),
    threshold: float | None = None,
    judge_range: tuple[float, float] | None = None,
    verdicts: Sequence[str] = (),
) -> Readings:
    """The labels and judgements of items, on the scale that fits both.

    Args:
        is_pairs: items are pairs of answers.
        positive: the word that means right, if labels are words; any other word is wrong.
        order: all labels from the lowest to the highest.
        threshold: the lowest number with which the judge accepts an answer, if people say right or wrong.
        judge_range: the lowest and the highest number that the judge may give; None if unknown.
        verdicts: the words that the judge may give; empty if unknown.

    Raises:
        SpecError: `positive`, `order` or `threshold` does not fit the labels.
        DataError: the labels of people and judge have no scale in common.
    """
    people = _matrix([item.labels for item in items])
    judge = _matrix([[each.label for each in item.judgements] for item in items])
    swapped = _matrix([[each.label for each in item.swapped] for item in items])
    given, said = _known(people), _known(judge)
    names: Sequence[str] = ()
    of_people: Read = float
    of_judge: Read = float
    if not is_pairs:
        _check_words(given, said, verdicts, is_ordered=bool(order))
    if is_pairs:
        kind: LabelKind = "pairs"
    elif positive is not None:
        kind, names = "right_wrong", ("wrong", "right")
        of_people, of_judge = _read_positive(given, said, positive, verdicts)
    elif order:
        kind, names = "grades", tuple(order)
        of_people = of_judge = _read_order(given, said, order)
    elif all(map(_is_number, (*given, *said))):
        kind = _kind_of(given, said)
    else:
        kind, names = "labels", _merge_words(given, said)
        of_people = of_judge = _read_places(names)
    if threshold is not None:
        _check_threshold(threshold, kind, said)
    example = np.unique([item.example for item in items], return_inverse=True)[1].astype(np.int64)
    by_people, by_judge, by_swapped = (
        _numbers(people, of_people),
        _numbers(judge, of_judge),
        _numbers(swapped, of_judge),
    )
    if not is_pairs and not order and all(map(_is_number, said)):
        _check_ranges(kind, by_people, by_judge, threshold, judge_range)
    return Readings(kind, names, by_people, by_judge, by_swapped, example)


_LABELLED: Final[Mapping[LabelKind, str]] = {
    "grades": "grades",
    "numbers": "numbers",
    "labels": "words",
    "pairs": "the better of two answers",
}
Read = Callable[[Any], float]
"""The number of a label."""


def _check_words(given: Sequence[Label], said: Sequence[Label], verdicts: Sequence[str], *, is_ordered: bool) -> None:
    """Refuses words of people that cannot agree with any verdict, as each of them would count as an error of the judge.

    If only the verdicts that occurred are known, people may have used others of the same scale; but then some words are
    the same, or an order says that these are words of one scale.

    Raises:
        DataError: there are such words.
    """
    known: Sequence[Label] = verdicts or said
    if not known or all(map(_is_number, given)) or all(map(_is_number, known)):
        return
    spellings = set(map(_spelling, known))
    foreign = [label for label in given if _spelling(label) not in spellings]
    is_disjoint = len(foreign) == len(given)
    if not foreign or not (verdicts or (is_disjoint and not is_ordered)):
        return
    may = "may say" if verdicts else "says"
    what = "no word is the same" if is_disjoint else f"{_list(foreign)} can never agree"
    one_scale = "" if verdicts else "; if these are words of one scale, list all of them: `--order LOWEST,…,HIGHEST`"
    raise DataError(
        f"people say {_list(given)} and the judge {may} {_list(known)}: {what}; write the judge's words"
        f" into column `label`, or say what each other word means: `{word_option(foreign)}`{one_scale}"
    )


def word_option(words: Sequence[Label]) -> str:
    """The options that replace words of people by verdicts.

    Example:
        >>> word_option(["good", "bad"])
        '--word good=VERDICT --word bad=VERDICT'
    """
    shown = " ".join(f"--word {shlex.quote(str(word))}=VERDICT" for word in words[:_SHOWN])
    return f"{shown} …" if len(words) > _SHOWN else shown


def _check_threshold(threshold: float, kind: LabelKind, said: Iterable[Label]) -> None:
    """Refuses a threshold of judgements that it cannot divide into right and wrong.

    Raises:
        SpecError: it is one.
    """
    if not math.isfinite(threshold):
        raise SpecError(f"`--threshold` is {threshold}; give the lowest number that counts as right")
    if kind != "right_wrong":
        raise SpecError(
            f"people give {_LABELLED[kind]}, and `--threshold` is for labels that say right or wrong; leave it out"
        )
    if not all(map(_is_number, said)):
        raise SpecError("the judge gives words, and `--threshold` is for a judge that gives numbers; leave it out")


def _matrix(rows: Sequence[Sequence[Label | None]]) -> list[list[Label | None]]:
    """Rows of equal length, filled up with None."""
    width = max((len(row) for row in rows), default=0)
    return [[*row, *[None] * (width - len(row))] for row in rows]


def _known(matrix: Sequence[Sequence[Label | None]]) -> list[Label]:
    """The distinct labels, in the order in which they occur."""
    return list(dict.fromkeys(label for row in matrix for label in row if label is not None))


def _is_number(label: Label) -> bool:
    """Whether a label is a number, or the text of one, as in files without types."""
    try:
        return math.isfinite(float(label))
    except ValueError:
        return False


def _numbers(matrix: Sequence[Sequence[Label | None]], read: Read) -> np.ndarray:
    rows = [[math.nan if label is None else read(label) for label in row] for row in matrix]
    return np.array(rows, np.float64).reshape(len(matrix), -1)


def _kind_of(given: Sequence[Label], said: Sequence[Label]) -> LabelKind:
    if all(float(label) in (0.0, 1.0) for label in given):
        return "right_wrong"
    return "grades" if all(float(label).is_integer() for label in (*given, *said)) else "numbers"


def _check_ranges(
    kind: LabelKind,
    people: np.ndarray,
    judge: np.ndarray,
    threshold: float | None,
    judge_range: tuple[float, float] | None,
) -> None:
    """Refuses numbers of people and judge that are on different scales, as far as these can be known.

    Raises:
        DataError: they are.
    """
    given, said = (np.unique(each[~np.isnan(each)]) for each in (people, judge))
    if not len(given) or not len(said):
        return
    is_declared = judge_range is not None and all(map(math.isfinite, judge_range))
    least, most = judge_range if judge_range is not None and is_declared else (float(said[0]), float(said[-1]))
    numbers = "the judge gives " + (f"numbers from {least:g} to {most:g}" if least < most else f"{least:g} alone")
    if kind == "right_wrong":
        if threshold is None and not (least >= 0 and most <= 1):
            raise DataError(
                f"people say right or wrong (1 or 0) and {numbers}, which are different scales; give the threshold from"
                f" which on it says right, such as `--threshold {most:g}`, or, if these are grades, list all of them,"
                " such as `--order 0,1,2,3,4`"
            )
        return
    low, high = float(given[0]), float(given[-1])
    if is_declared:
        fits, remedy = least <= low and high <= most, "label answers on the scale of the judge"
    else:
        may_be_share = least >= 0 and most <= 1 and not (low >= 0 and high <= 1)
        is_one_grade = len(said) == 1 and low <= least <= high
        is_elsewhere = len(given) > 1 and len(said) > 1 and (most < low or least > high)
        fits = is_one_grade or not (may_be_share or is_elsewhere)
        remedy = "bring both onto one scale or, if they are on one, list all of its grades, such as `--order 0,1,2,3,4`"
    if least >= 0 and most <= 1:
        remedy += "; or, if the judge says right or wrong, give the grade of people that means right, such as"
        remedy += f" `--people-threshold {high:g}`"
    if not fits:
        raise DataError(
            f"people give numbers from {low:g} to {high:g} and {numbers}, which are different scales; {remedy}"
        )


def _read_positive(
    given: Sequence[Label], said: Sequence[Label], positive: str, verdicts: Sequence[str]
) -> tuple[Read, Read]:
    """The numbers of words; one side may have numbers already.

    Raises:
        SpecError: no label is the word that means right, or people give numbers that do not say right or wrong.
    """
    known = verdicts if any(not _is_number(label) for label in said) else ()
    words = [*(str(label) for side in (given, said) if not all(map(_is_number, side)) for label in side), *known]
    if positive.casefold() not in map(str.casefold, words):
        there = f"; there are {_list(dict.fromkeys(words))}" if words else ": labels are numbers"
        raise SpecError(f"no label is {positive!r}{nearest(positive, words)}{there}")
    if all(map(_is_number, given)) and not all(float(label) in (0.0, 1.0) for label in given):
        raise SpecError(
            f"people give numbers ({_list(given)}), and `--positive` compares words with words, or with 1 (right) and 0"
            " (wrong)"
        )

    def read(label: Any) -> float:
        return float(str(label).casefold() == positive.casefold())

    of_people, of_judge = (float if all(map(_is_number, side)) else read for side in (given, said))
    return of_people, of_judge


def _read_order(given: Sequence[Label], said: Sequence[Label], order: Sequence[str]) -> Read:
    read = _read_places(order)
    known = {_spelling(word) for word in order}
    if len(known) < len(order):
        raise SpecError(f"the order {', '.join(order)} names a label twice; name each once")
    if unknown := list(dict.fromkeys(str(label) for label in (*given, *said) if _spelling(label) not in known)):
        raise SpecError(f"the order {', '.join(order)} lacks {_list(unknown)}; name all labels, from the lowest on")
    return read


def _read_places(names: Sequence[str]) -> Read:
    places = {_spelling(name): float(place) for place, name in enumerate(names)}
    return lambda label: places[_spelling(label)]


def _spelling(label: Label) -> str:
    """The same text for all spellings of a word or number."""
    return f"{float(label):g}" if _is_number(label) else str(label).casefold()


def _merge_words(given: Sequence[Label], said: Sequence[Label]) -> tuple[str, ...]:
    """The words of people and judge, spelt as people spell them."""
    by_people, by_judge = ({_spelling(label): str(label) for label in side} for side in (given, said))
    if by_judge and not by_people.keys() & by_judge.keys():
        raise DataError(
            f"people say {_list(given)} and the judge says {_list(said)}, so no label is the same; if the numbers are 1"
            " (right) and 0 (wrong), name the word that means right: `--positive WORD`"
        )
    return tuple(sorted((by_judge | by_people).values(), key=str.casefold))


def _list(labels: Iterable[Label]) -> str:
    words = [*map(str, labels)]
    shown = ", ".join(words[:_SHOWN])
    return f"{shown}, …" if len(words) > _SHOWN else shown or "nothing"


_SHOWN: Final = 5
