"""The measures of a judge of single answers: agreement with people, errors, calibration, retest and biases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Final, Literal, NamedTuple

import numpy as np

from evaluand.judges.cards.labelled_set import Item
from evaluand.judges.cards.scales import Readings
from evaluand.metrics.base.confusion import PREDICTION, TRUTH
from evaluand.metrics.base.metric import VALUE
from evaluand.metrics.correlations import Spearman
from evaluand.metrics.errors import MeanAbsoluteError
from evaluand.metrics.judging.alpha import RATINGS, KrippendorffAlpha, Level
from evaluand.metrics.judging.differences import Slope, contrast_within, mean_difference, slope_within
from evaluand.metrics.judging.estimate import Estimate, estimate, kappa, share, undefined


class Measure(NamedTuple):
    """A measure of a judge.

    Attributes:
        name: such as `agreement`.
        part: the judgements or labels that it covers, such as `first order`; empty for all.
        estimate: the number with its interval.
        note: the counts behind it, for people.
    """

    name: str
    part: str
    estimate: Estimate
    note: str = ""

    @property
    def direction(self) -> Direction | None:
        """Which values are better; None if neither, as for biases, which are best near 0."""
        return DIRECTIONS[self.name]


Direction = Literal["higher", "lower"]

DIRECTIONS: Final[Mapping[str, Direction | None]] = {
    "agreement": "higher",
    "cohen_kappa": "higher",
    "weighted_kappa": "higher",
    "krippendorff_alpha": "higher",
    "sensitivity": "higher",
    "specificity": "higher",
    "recall": "higher",
    "spearman": "higher",
    "brier": "lower",
    "mean_absolute_error": "lower",
    "mean_difference": None,
    "calibration_slope": None,
    "retest_agreement": "higher",
    "retest_alpha": "higher",
    "consistency": "higher",
    "position_bias": None,
    "length_bias": None,
    "self_preference": None,
    "abstained": None,
    "disputed": None,
    "people_alpha": None,
}
"""Which values of each measure of a judge are better; None if neither."""


def measure_grades(
    items: Sequence[Item], readings: Readings, *, threshold: float | None, judge_model: str | None, confidence: float
) -> Iterator[Measure]:
    """The measures of judgements of single answers.

    Args:
        readings: of the items.
        threshold: the lowest number with which a judge accepts an answer.
        judge_model: the model that judges, to find answers that it wrote itself.
    """
    grades = _Grades(items, readings, threshold, confidence)
    yield from undecided(items, readings.judge[:, :1], readings, confidence)
    yield from grades.labels()
    yield from grades.numbers()
    yield from grades.retest()
    yield from people(readings, confidence)
    yield from grades.biases(judge_model)


def undecided(items: Sequence[Item], judge: np.ndarray, readings: Readings, confidence: float) -> Iterator[Measure]:
    """How often the judge, or people together, gave no label; nothing if they always did.

    Args:
        judge: items × judgements; missing ones are counted.
    """
    for name, without in (("abstained", np.isnan(judge).any(axis=1)), ("disputed", np.isnan(readings.majority))):
        if without.any() and not (name == "disputed" and readings.kind == "numbers"):
            found = share(without.astype(np.float64), readings.example, confidence=confidence)
            note = f"{int(without.sum()):,} of {len(without):,}"
            yield Measure(name, "", found, note + (_main_reason(items) if name == "abstained" else ""))


def _main_reason(items: Sequence[Item]) -> str:
    """The most frequent reason of judgements without a label."""
    reasons = Counter(each.reason for item in items for each in (*item.judgements, *item.swapped) if each.reason)
    [(reason, n)] = reasons.most_common(1) or [("", 0)]
    return f"; most often: {reason.removeprefix('abstained: ')} ({n:,})" if n else ""


def people(readings: Readings, confidence: float) -> Iterator[Measure]:
    """How far people agree with each other, where several have labelled the same."""
    known = (~np.isnan(readings.people)).sum(axis=1)
    if (known > 1).any():
        alpha = KrippendorffAlpha(level=_LEVELS[readings.kind], confidence=confidence)
        note = f"{int((known > 1).sum()):,} labelled by several"
        yield Measure("people_alpha", "", estimate(alpha, {RATINGS: readings.people}, readings.example), note)


_LEVELS: Final[dict[str, Level]] = {
    "right_wrong": "nominal",
    "labels": "nominal",
    "grades": "ordinal",
    "numbers": "interval",
    "pairs": "nominal",
}


class _Grades:
    """Items with the label of most people and the first judgement, both as numbers."""

    def __init__(self, items: Sequence[Item], readings: Readings, threshold: float | None, confidence: float) -> None:
        self.items, self.readings, self.confidence = items, readings, confidence
        self.kind, self.example = readings.kind, readings.example
        self.first = readings.judge[:, 0] if readings.judge.shape[1] else np.full(len(items), np.nan)
        self.verdict = to_verdicts(readings.judge, readings, threshold)
        self.said = self.verdict[:, 0] if self.verdict.shape[1] else self.first
        self.truth = readings.majority
        self._numbers = numbers_like_people(readings, threshold)

    def labels(self) -> Iterator[Measure]:
        """Agreement beyond chance, and how often each label is found."""
        if self.kind == "numbers":
            ratings = np.stack([self.readings.mean, self.first], axis=1)
            yield Measure("krippendorff_alpha", "", self._alpha(ratings))
            return
        known = ~np.isnan(self.truth) & ~np.isnan(self.said)
        truth, said, example = self.truth[known], self.said[known], self.example[known]
        right = (truth == said).astype(np.float64)
        agreement = share(right, example, confidence=self.confidence)
        lacking = self._lacks_verdicts()
        yield Measure("agreement", "", lacking or agreement, _count_right(right))
        values, codes = np.unique(np.concatenate([truth, said]), return_inverse=True)
        names = [int(value) if not self.readings.names else self.readings.name(value) for value in values]
        people, judge = codes[: len(truth)], codes[len(truth) :]
        if self.kind == "grades":
            for weights in ("linear", "quadratic"):
                found = lacking or kappa(people, judge, names, example, weights=weights, confidence=self.confidence)
                yield Measure("weighted_kappa", weights, found)
        else:
            found = lacking or kappa(people, judge, names, example, confidence=self.confidence)
            yield Measure("cohen_kappa", "", found)
        yield Measure("krippendorff_alpha", "", lacking or self._alpha(np.stack([self.truth, self.said], axis=1)))
        if self.kind == "right_wrong":
            for name, value, word in (("sensitivity", 1.0, "right"), ("specificity", 0.0, "wrong")):
                rows = truth == value
                nothing = None if rows.any() else undefined(f"people took no answer for {word}")
                found = lacking or nothing or share(right[rows], example[rows], confidence=self.confidence)
                yield Measure(name, "", found, _count_right(right[rows]))
        elif self.kind == "labels" and len(values) <= _MOST_LABELS:
            for value in np.unique(truth).tolist():
                rows = truth == value
                found = share(right[rows], example[rows], confidence=self.confidence)
                yield Measure("recall", self.readings.name(value), found, _count_right(right[rows]))

    def numbers(self) -> Iterator[Measure]:
        """How far the judge's numbers differ from people's, and whether they are calibrated."""
        if self.kind == "labels":
            return
        known = self._comparable
        truth, said, example = self.readings.mean[known], self._numbers[known], self.example[known]
        difference = said - truth
        if not known.any():
            yield Measure("mean_difference", "", undefined(_NOTHING_IN_COMMON))
            return
        if self._is_probability:
            squares = share(np.square(difference), example, confidence=self.confidence)
            yield Measure("brier", "", squares)
        elif self.kind != "right_wrong":
            error = MeanAbsoluteError(confidence=self.confidence)
            yield Measure("mean_absolute_error", "", estimate(error, {VALUE: np.abs(difference)}, example))
            rows = {TRUTH: truth, PREDICTION: said}
            yield Measure("spearman", "", estimate(Spearman(confidence=self.confidence), rows, example))
        _, width = self._range
        yield Measure("mean_difference", "", mean_difference(difference, example, width, confidence=self.confidence))
        if self.kind != "right_wrong" or self._is_probability:
            rows = {TRUTH: truth, PREDICTION: said}
            yield Measure("calibration_slope", "", estimate(Slope(confidence=self.confidence), rows, example))

    def retest(self) -> Iterator[Measure]:
        """How often a judge that is asked again gives the same label."""
        verdict = self.verdict if self.kind != "numbers" and not self._lacks_verdicts() else self.readings.judge
        repeated = (~np.isnan(verdict)).sum(axis=1) > 1
        if not repeated.any():
            return
        note = f"{int(repeated.sum()):,} judged repeatedly"
        if verdict is self.verdict:
            same = same_shares(verdict[repeated])
            found = share(same, self.example[repeated], confidence=self.confidence)
            yield Measure("retest_agreement", "", found, note)
        yield Measure("retest_alpha", "", self._alpha(verdict), note)

    def biases(self, judge_model: str | None) -> Iterator[Measure]:
        """Whether the judge's numbers for answers with the same label depend on length, or on who wrote them."""
        if self.kind == "labels":
            return
        lengths = np.array([item.lengths[0] if item.lengths else 0 for item in self.items], np.float64)
        rows = self._comparable & (lengths > 0)
        if rows.any():
            yield Measure("length_bias", "", self._slope(np.log2(np.maximum(lengths, 1)), rows), _PER_DOUBLING)
        written = np.array([item.models[0] if item.models else None for item in self.items], object)
        rows = self._comparable & (written != np.array(None))
        own = written == judge_model
        if judge_model is not None and own[rows].any():
            note = f"{int(own[rows].sum()):,} of {int(rows.sum()):,} answers by {judge_model}"
            yield Measure("self_preference", "", self._contrast(own, rows), note)

    @property
    def _comparable(self) -> np.ndarray:
        """The answers that have a label of people and a number of the judge."""
        return np.asarray(~np.isnan(self.readings.mean) & ~np.isnan(self._numbers))

    def _slope(self, by: np.ndarray, rows: np.ndarray) -> Estimate:
        people, numbers = self.readings.mean[rows], self._numbers[rows]
        of_people = {"covariate" if self.kind == "numbers" else "stratum": people}
        return slope_within(numbers, by[rows], self.example[rows], confidence=self.confidence, **of_people)

    def _contrast(self, chosen: np.ndarray, rows: np.ndarray) -> Estimate:
        """The judge's mean number of some answers minus that of others with the same label."""
        if self.kind == "numbers":
            return self._slope(chosen.astype(np.float64), rows)
        low, width = self._range
        shares = (self._numbers[rows] - low) / width
        people, example = self.readings.mean[rows], self.example[rows]
        found = contrast_within(shares, chosen[rows], people, example, confidence=self.confidence)
        return found._replace(value=width * found.value, low=width * found.low, high=width * found.high)

    def _alpha(self, ratings: np.ndarray) -> Estimate:
        metric = KrippendorffAlpha(level=_LEVELS[self.kind], confidence=self.confidence)
        return estimate(metric, {RATINGS: ratings}, self.example)

    @property
    def _is_probability(self) -> bool:
        """Whether the judge gives numbers between right and wrong."""
        known = self.first[~np.isnan(self.first)]
        return self.kind == "right_wrong" and not np.isin(known, (0.0, 1.0)).all() and _within_one(known)

    def _lacks_verdicts(self) -> Estimate | None:
        """Why there are no verdicts to compare with people's; None if there are."""
        if not (~np.isnan(self.truth) & ~np.isnan(self.first)).any():
            return undefined(_NOTHING_IN_COMMON)
        if self.kind == "right_wrong" and np.isnan(self.said).all() and not np.isnan(self.first).all():
            return undefined("the judge gives numbers, not right or wrong; give the threshold from which it is right")
        return None

    @property
    def _range(self) -> tuple[float, float]:
        """The lowest possible number and the largest possible difference, as far as the labels show them."""
        if self.kind == "right_wrong":
            return 0.0, 1.0
        if self.readings.names:
            return 0.0, float(len(self.readings.names) - 1) or 1.0
        known = np.concatenate([self.readings.people.ravel(), self.first])
        low = float(np.nanmin(known))
        return low, float(np.nanmax(known)) - low or 1.0


_PER_DOUBLING: Final = "per doubling of the length"
_MOST_LABELS: Final = 20
_NOTHING_IN_COMMON: Final = "no answer has both a label of people and one of the judge"


def _count_right(right: np.ndarray) -> str:
    return f"{int(right.sum()):,} of {len(right):,}" if len(right) else ""


def _within_one(numbers: np.ndarray) -> bool:
    return bool(((numbers >= 0) & (numbers <= 1)).all())


def to_verdicts(judge: np.ndarray, readings: Readings, threshold: float | None) -> np.ndarray:
    """Judgements as labels: of numbers between right and wrong, those by a threshold, NaN without one."""
    if readings.kind != "right_wrong":
        return judge
    known = ~np.isnan(judge)
    if threshold is not None:
        return np.where(known, judge >= threshold, np.nan)
    return judge if np.isin(judge[known], (0.0, 1.0)).all() else np.full(judge.shape, np.nan)


def numbers_like_people(readings: Readings, threshold: float | None) -> np.ndarray:
    """The first judgement of each item on the scale of people: of right and wrong a verdict, if not from 0 to 1."""
    if not readings.judge.shape[1]:
        return np.full(len(readings.judge), np.nan)
    first = readings.judge[:, 0]
    if readings.kind != "right_wrong" or _within_one(first[~np.isnan(first)]):
        return first
    return np.asarray(to_verdicts(readings.judge, readings, threshold)[:, 0])


def same_shares(verdicts: np.ndarray) -> np.ndarray:
    """The share of the pairs of verdicts on each item that are equal.

    Example:
        >>> same_shares(np.array([[1.0, 1.0, 0.0], [1.0, 1.0, np.nan]])).round(3).tolist()
        [0.333, 1.0]
    """
    equal, pairs = np.zeros(len(verdicts)), np.zeros(len(verdicts))
    for one, other in combinations(verdicts.T, 2):
        both = ~np.isnan(one) & ~np.isnan(other)
        equal += both & (one == other)
        pairs += both
    return np.asarray(equal / np.where(pairs > 0, pairs, np.nan))
