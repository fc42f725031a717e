"""How well scores rank the labels of each row: the labels of its truth should be above the others."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.areas import AveragePrecision
from evaluand.metrics.base.class_scores import GIVE_SCORES, SCORES, OfScores, has_label
from evaluand.metrics.base.confusion import TRUTH
from evaluand.metrics.base.metric import LABELS, VALUE, Columns, Reduce
from evaluand.metrics.base.numeric_pairs import PartlyDefined
from evaluand.metrics.base.one_vs_rest import Ties, ties_of_rows


@dataclass(frozen=True, kw_only=True)
class OfLabelRanking(OfScores, PartlyDefined):
    """A mean over rows of one number of the ranking of a row's labels by their scores.

    Ranked are the labels that have a score in the row. Rows may have one label or sets of labels.
    Source: G. Tsoumakas, I. Katakis & I. Vlahavas, "Mining multi-label data" (Data Mining and Knowledge Discovery
    Handbook, 2010).

    Args:
        absent: the score of a label of the truth without one; by default the value is undefined.
        empty: the number of a row that ranks nothing: its truth has no label, or for the ranking loss every label;
            by default the value is undefined.

    Raises:
        SpecError: `empty` is not a number in the range.
    """

    takes_sets = True
    scored_by: ClassVar[str] = "classes"  # type: ignore[misc]
    label: ClassVar[None] = None  # type: ignore[misc]
    reductions: ClassVar[tuple[Reduce, ...]] = ("first", "best", "mean", "all")
    published: ClassVar[float]
    """The number of such a row in scikit-learn."""

    empty: float | None = None

    def __post_init__(self) -> None:
        if self.empty is not None:
            least, most = self.range
            if isinstance(self.empty, bool) or not least <= self.empty <= most:
                raise SpecError(f"{self.kind}: empty={self.empty!r} must be a number from {least:g} to {most:g}")
            object.__setattr__(self, "empty", float(self.empty))
        super().__post_init__()

    @property
    def row_range(self) -> tuple[float, float]:
        return self.range

    @property
    def unfit(self) -> str:  # type: ignore[override]
        return (
            f"nothing to rank, or no score for a label of the truth; give empty, such as {self.published:g} as in "
            f"scikit-learn; {GIVE_SCORES}"
        )

    @abstractmethod
    def of_rankings(self, positive: np.ndarray, scores: np.ndarray, ties: Ties) -> np.ndarray:
        """The number of each row.

        Args:
            positive: which labels are in the truth, rows × labels.
            scores: rows × labels, NaN for none.
            ties: the labels by score, a line for each row.
        """

    def ranks_nothing(self, ties: Ties) -> np.ndarray:
        """Which rows have no label in the truth."""
        return np.asarray(ties.positive.sum(axis=1) == 0)

    def prepare(self, columns: Columns) -> Columns:
        self.check_truth(columns)
        truth, scores = columns[TRUTH], columns[SCORES]
        if not scores.shape[1]:
            return {VALUE: np.full(len(truth), np.nan)}
        positive = np.stack([has_label(truth, code) for code in range(len(columns[LABELS]))], axis=1)
        scores = np.where(positive & np.isnan(scores), self.otherwise, scores)
        ties = ties_of_rows(positive, scores)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = self.of_rankings(positive, scores, ties)
        otherwise = np.nan if self.empty is None else self.empty
        found = np.where(self.ranks_nothing(ties), otherwise, found)
        return {VALUE: np.where((positive & np.isnan(scores)).any(axis=1), np.nan, found)}


@dataclass(frozen=True, kw_only=True)
class LabelRankingAveragePrecision(OfLabelRanking):
    """For each label of the truth, the share of truths among the labels ranked as high or higher; the mean over rows.

    1 if all labels of the truth are above the others. If each row has one label, it is the mean reciprocal rank.

    Example:
        >>> LabelRankingAveragePrecision(empty=1).signature
        'label_ranking_average_precision v1 missing=leave_out reduce=first empty=1.0 interval=score 95%'
    """

    kind = "label_ranking_average_precision"
    direction = "higher"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    published = 1.0

    def of_rankings(self, positive: np.ndarray, scores: np.ndarray, ties: Ties) -> np.ndarray:
        return AveragePrecision().of_ties(ties)


@dataclass(frozen=True, kw_only=True)
class CoverageError(OfLabelRanking):
    """How many of the highest labels contain all labels of the truth; the mean over rows.

    At best the mean number of labels of a truth. Tied labels count together.

    Example:
        >>> CoverageError().signature
        'coverage_error v1 missing=leave_out reduce=first interval=hall 95%'
    """

    kind = "coverage_error"
    direction = "lower"
    range: ClassVar[tuple[float, float]] = (0.0, np.inf)
    published = 0.0

    def of_rankings(self, positive: np.ndarray, scores: np.ndarray, ties: Ties) -> np.ndarray:
        lowest = np.where(positive, scores, np.inf).min(axis=1, keepdims=True)
        return np.asarray((scores >= lowest).sum(axis=1).astype(np.float64))


@dataclass(frozen=True, kw_only=True)
class LabelRankingLoss(OfLabelRanking):
    """The share of pairs of a label of the truth and another label that are in the wrong order; the mean over rows.

    Tied labels are in the wrong order. Undefined for a row with all labels, which has no such pair.

    Example:
        >>> LabelRankingLoss().signature
        'label_ranking_loss v1 missing=leave_out reduce=first interval=score 95%'
    """

    kind = "label_ranking_loss"
    direction = "lower"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    published = 0.0

    def ranks_nothing(self, ties: Ties) -> np.ndarray:
        return np.asarray((ties.positive.sum(axis=1) == 0) | (ties.negative.sum(axis=1) == 0))

    def of_rankings(self, positive: np.ndarray, scores: np.ndarray, ties: Ties) -> np.ndarray:
        wrong = (ties.negative * np.cumsum(ties.positive, axis=1)).sum(axis=1)
        return np.asarray(wrong / (ties.positive.sum(axis=1) * ties.negative.sum(axis=1)))
