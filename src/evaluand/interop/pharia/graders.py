"""The SDK's graders and its accumulator of means, over the native scorers and moments."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, Self, TypeVar

import numpy as np

from evaluand.core.errors import DataError, kind_of
from evaluand.evaluation.scorer import Score
from evaluand.evaluation.scorers.language_match import LanguageMatch
from evaluand.evaluation.scorers.spans import HighlightCoverage
from evaluand.evaluation.scorers.text_overlap import Bleu, Rouge
from evaluand.metrics.stats.intervals import merge_moments, moments
from evaluand.store.tables import ABSTAINED

T = TypeVar("T")
Output = TypeVar("Output")


class NoText(DataError, TypeError):
    """A grader got a value that is not a text; a TypeError, as users of the SDKs expect."""


@dataclass
class FScores:
    """Precision, recall and their F score.

    Attributes:
        precision: NaN where nothing was highlighted.
        recall: NaN where nothing was expected.
        f_score: 0 where there is nothing in common, 1 where nothing was highlighted and nothing expected.
        reason: why a share is undefined.
    """

    precision: float
    recall: float
    f_score: float
    reason: str | None = None


class BleuGrader:
    """BLEU of one pair with the defaults for a corpus: a text of fewer than four words scores 0. The native scorer
    `bleu` leaves out the orders for which the text is too short, and scores 100 for the reference itself.

    Example:
        >>> BleuGrader().calculate_bleu("a b c d e f g h", "a b c d x f g h")
        50.000000000000014
    """

    def __init__(self) -> None:
        self._scorer = Bleu(effective_order=False)

    def calculate_bleu(self, hypothesis: str, reference: str) -> float:
        """From 0 to 100; 0 where the reference is empty.

        Raises:
            NoText: one of them is not a text.
        """
        _require_texts(hypothesis=hypothesis, reference=reference)
        return self._scorer.score(hypothesis, reference).value or 0.0


class RougeGrader:
    """ROUGE-2 of stems.

    Example:
        >>> RougeGrader().calculate_rouge("the cat sat", "the cat sat here").precision
        1.0
    """

    def __init__(self) -> None:
        self._scorer = Rouge(variant="2")

    def calculate_rouge(self, hypothesis: str, reference: str) -> FScores:
        """All 0 where the reference has no pair of words.

        Raises:
            NoText: one of them is not a text.
        """
        _require_texts(hypothesis=hypothesis, reference=reference)
        score = self._scorer.score(hypothesis, reference)
        return FScores(0.0, 0.0, 0.0, score.reason) if score.status == ABSTAINED else _f_scores(score)


class IndexRange(NamedTuple):
    """The positions of a highlight, from `start` up to, not including, `stop`; a pair.

    Example:
        >>> HighlightCoverageGrader().compute_fscores([IndexRange(0, 2)], [IndexRange(0, 4)]).recall
        0.5
    """

    start: int
    stop: int


class HighlightCoverageGrader:
    """The positions that highlights cover, compared with those they should cover.

    Args:
        beta_factor: the weight of recall relative to precision; 0 gives the precision.

    Example:
        >>> HighlightCoverageGrader(beta_factor=2.0).compute_fscores([(3, 5)], [(4, 7)]).recall
        0.3333333333333333
        >>> HighlightCoverageGrader().compute_fscores([], [(0, 3)])
        FScores(precision=nan, recall=0.0, f_score=0.0, reason='nothing is highlighted, so there is no precision')
    """

    def __init__(self, beta_factor: float = 1.0) -> None:
        self.beta_factor = beta_factor
        self._scorer = HighlightCoverage(beta=beta_factor)

    def compute_fscores(
        self,
        generated_highlight_indices: Sequence[tuple[int, int]],
        expected_highlight_indices: Sequence[tuple[int, int]],
    ) -> FScores:
        """Shares of positions, each counted once.

        Raises:
            DataError: a highlight is not a valid pair of positions.
        """
        return _f_scores(self._scorer.score(list(generated_highlight_indices), list(expected_highlight_indices)))


class LanguageMatchesGrader:
    """Whether two texts are in one language.

    Args:
        acceptance_threshold: the minimum probability of a detected language.

    Example:
        >>> LanguageMatchesGrader().languages_match("Wie wird das Wetter heute?", "Voici une phrase sur la pluie.")
        False
    """

    def __init__(self, acceptance_threshold: float = 0.1) -> None:
        self._scorer = LanguageMatch(threshold=min(max(acceptance_threshold, 0.0), 1.0))

    def languages_match(self, input: str, output: str) -> bool:
        """Also true if the language of the input is unclear: it has no letters, no language reaches the threshold, or
        it is in two languages; false where only that of the output is.

        Raises:
            NoText: one of them is not a text.
        """
        _require_texts(input=input, output=output)
        score = self._scorer.score(output, None, input)
        if score.status == ABSTAINED:
            return (score.reason or "").startswith(_OF_INPUT)
        return score.value == 1


_OF_INPUT: Final = ("the input", "the language of the input")


class Accumulator(ABC, Generic[T, Output]):
    """Collects values one by one and aggregates them."""

    @abstractmethod
    def add(self, value: T) -> None:
        """Add a value."""

    @abstractmethod
    def extract(self) -> Output:
        """The aggregate of the values so far."""


class MeanAccumulator(Accumulator[float, float]):
    """Mean and spread of numbers, numerically stable and mergeable.

    Without values, all statistics are 0, as in the SDK.

    Example:
        >>> one, other = MeanAccumulator(), MeanAccumulator()
        >>> one.add(1.0)
        >>> other.add(0.0)
        >>> one.merge(other).extract(), one.standard_deviation()
        (0.5, 0.5)
    """

    def __init__(self) -> None:
        self._state = moments(np.empty(0), np.empty(0, np.int64), 1)
        self._sum: list[float] = []  # numbers whose sum is that of the values, without rounding
        self._pending: list[float] = []
        self._odd = 0.0  # the sum of infinities and NaN, which have no moments

    def add(self, value: float) -> None:
        value = float(value)
        if not math.isfinite(value):
            self._odd += value
            return
        self._pending.append(value)
        if len(self._pending) >= _BLOCK:
            self._settle()

    def extract(self) -> float:
        """The mean: the exact sum, rounded once, divided by the number of values."""
        self._settle()
        total = math.fsum(self._sum)
        if math.isinf(total):
            return float(self._state["mean"][0] + self._state["rest"][0]) + self._odd
        return total / max(int(self._state["n"][0]), 1) + self._odd

    def standard_deviation(self) -> float:
        """The standard deviation of the values as a population; NaN if one is infinite or NaN."""
        if self._odd:
            return math.nan
        self._settle()
        n = int(self._state["n"][0])
        return math.sqrt(float(self._state["m2"][0]) / n) if n else 0.0

    def standard_error(self) -> float:
        """The standard deviation divided by the square root of the number of values."""
        deviation, n = self.standard_deviation(), int(self._state["n"][0])
        return deviation / math.sqrt(n) if n else deviation

    def merge(self, other: Self) -> Self:
        """Add the values of another accumulator; returns itself."""
        self._settle()
        other._settle()
        self._state = merge_moments([self._state, other._state])
        self._sum = _sum_exactly([*self._sum, *other._sum])
        self._odd += other._odd
        return self

    def _settle(self) -> None:
        if self._pending:
            values = np.array(self._pending)
            self._sum = _sum_exactly([*self._sum, *self._pending])
            self._pending = []
            self._state = merge_moments([self._state, moments(values, np.zeros(len(values), np.int64), 1)])


_BLOCK: Final = 1024


def _sum_exactly(values: list[float]) -> list[float]:
    """A few numbers whose sum is that of the values, without rounding; an infinity if it overflows."""
    parts: list[float] = []
    try:
        while part := math.fsum([*values, *(-each for each in parts)]):
            parts.append(part)
            if math.isinf(part):
                break
    except OverflowError:
        return [math.inf]
    return parts


def _require_texts(**values: Any) -> None:
    for name, value in values.items():
        if not isinstance(value, str):
            raise NoText(f"{name} is {kind_of(value)}; pass a text")


def _f_scores(score: Score) -> FScores:
    columns = score.columns or {}
    precision, recall = (math.nan if (share := columns[n]) is None else float(share) for n in ("precision", "recall"))
    return FScores(precision, recall, float(score.value or 0.0), score.explanation)
