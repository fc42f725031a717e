"""Metrics of rankings, of answers or of the labels of a row by their scores: means of one number per ranking.

Most are of the first k answers. Also the overlap of two tops.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Final, Literal

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.core.parameters import Within
from evaluand.metrics.accuracy import Share
from evaluand.metrics.areas import AveragePrecision, Ties, ties_of_rows
from evaluand.metrics.base.averaging import Averaging, OfFirst, Student
from evaluand.metrics.base.class_scores import GIVE_SCORES, SCORES, OfScores, has_label
from evaluand.metrics.base.metric import LABELS, VALUE, Columns, Direction, Reduce, State, Values, refuse
from evaluand.metrics.base.numeric_pairs import PREDICTION, TRUTH, PartlyDefined, paired_numbers
from evaluand.metrics.base.weighted_rows import WeightedRowsMetric

Gains = Literal["linear", "exponential"]


@dataclass(frozen=True, kw_only=True)
class AtK(OfFirst, Averaging):
    """A mean of one number per ranking; reads the lists of the scorer `ranking`, as matrices padded with NaN.

    Args:
        k: how many answers count.

    Raises:
        SpecError: k is below 1.
    """

    direction: ClassVar[Direction | None] = "higher"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    columns = ("ranks", "grades", "relevant")

    def prepare(self, columns: Columns) -> Columns:
        refuse_ranks(columns, "ranks")
        for name in ("grades", "relevant"):
            endless = np.asarray(np.isinf(columns[name]).any(axis=1))
            refuse(columns, endless, lambda row: "has an infinite relevance; give finite numbers of at least 0")
        some = np.asarray((columns["relevant"] > 0).any(axis=1))
        refuse(columns, ~some, lambda row: "is scored but has nothing relevant; such rankings must abstain")
        return {VALUE: self.value_of_rankings(columns)}

    @abstractmethod
    def value_of_rankings(self, columns: Columns) -> np.ndarray:
        """The value of each ranking."""

    def relevant_in_top(self, columns: Columns) -> np.ndarray:
        """Which answers are relevant and among the first k."""
        return np.asarray((columns["grades"] > 0) & (columns["ranks"] <= self.k))


@dataclass(frozen=True, kw_only=True)
class HitsAtK(AtK, Share):
    """The share of rankings with a relevant answer among the first k.

    Example:
        >>> HitsAtK(k=3).signature
        'hits_at_k v1 missing=leave_out reduce=first k=3 interval=wilson 95%'
    """

    kind = "hits_at_k"
    reductions: ClassVar[tuple[Reduce, ...]] = ("first", "best", "any", "all")

    def value_of_rankings(self, columns: Columns) -> np.ndarray:
        return np.asarray(self.relevant_in_top(columns).any(axis=1), np.float64)


class RecallAtK(AtK, Student):
    """The share of the relevant answers that is among the first k; the mean over rankings.

    Example:
        >>> lists = {"ranks": [[1, 2]], "grades": [[0, 1]], "relevant": [[1, 1]]}
        >>> RecallAtK(k=2).prepare({name: np.array(cells, float) for name, cells in lists.items()})["value"]
        array([0.5])
    """

    kind = "recall_at_k"

    def value_of_rankings(self, columns: Columns) -> np.ndarray:
        return np.asarray(self.relevant_in_top(columns).sum(axis=1) / (columns["relevant"] > 0).sum(axis=1))


class PrecisionAtK(AtK, Student):
    """The number of relevant answers among the first k, divided by k; the mean over rankings.

    A ranking shorter than k is divided by k too.

    Example:
        >>> lists = {"ranks": [[1, 2]], "grades": [[0, 1]], "relevant": [[1, 1]]}
        >>> PrecisionAtK(k=4).prepare({name: np.array(cells, float) for name, cells in lists.items()})["value"]
        array([0.25])
    """

    kind = "precision_at_k"

    def value_of_rankings(self, columns: Columns) -> np.ndarray:
        return np.asarray(self.relevant_in_top(columns).sum(axis=1) / self.k)


class MapAtK(AtK, Student):
    """Mean average precision of rankings: the mean of (Σ precision at each relevant answer / min(k, relevant)).

    Source: C. Manning, P. Raghavan & H. Schütze, Introduction to Information Retrieval (2008), section 8.4, cut at k.

    Example:
        >>> lists = {"ranks": [[1, 2, 3]], "grades": [[1, 0, 1]], "relevant": [[1, 1]]}
        >>> MapAtK(k=3).prepare({name: np.array(cells, float) for name, cells in lists.items()})["value"].round(4)
        array([0.8333])
    """

    kind = "map_at_k"

    def value_of_rankings(self, columns: Columns) -> np.ndarray:
        found, ranks = self.relevant_in_top(columns), columns["ranks"]
        so_far = np.where(_lasts(ranks), np.cumsum(found, axis=1), np.inf)
        so_far = np.minimum.accumulate(so_far[:, ::-1], axis=1)[:, ::-1]  # tied answers count together
        precision = np.where(found, so_far / np.where(found, ranks, 1.0), 0.0).sum(axis=1)
        return np.asarray(precision / np.minimum((columns["relevant"] > 0).sum(axis=1), self.k))


@dataclass(frozen=True, kw_only=True)
class Ndcg(AtK, Student):
    """Normalised discounted cumulative gain: Σ gain / log₂(1 + rank), as a share of that of the best ranking.

    Answers with equal scores get the mean gain over their orders, as in scikit-learn.
    Source: K. Järvelin & J. Kekäläinen, "Cumulated gain-based evaluation of IR techniques" (ACM TOIS 20, 2002), with
    the discount of C. Burges et al., "Learning to rank using gradient descent" (ICML 2005), and for ties F. McSherry &
    M. Najork, "Computing information retrieval performance measures efficiently in the presence of tied scores" (2008).

    Args:
        k: how many answers count; all by default.
        gains: the gain of a relevance: itself (`linear`) or 2^relevance − 1 (`exponential`).

    Raises:
        SpecError: k is below 1, or there are no such gains.

    Example:
        >>> lists = {"ranks": [[1, 2]], "grades": [[0, 1]], "relevant": [[1]]}
        >>> Ndcg().prepare({name: np.array(cells, float) for name, cells in lists.items()})["value"].round(4)
        array([0.6309])
    """

    kind = "ndcg"

    k: Annotated[int, Within(1)] | None = None  # type: ignore[assignment]
    gains: Gains = "linear"

    def value_of_rankings(self, columns: Columns) -> np.ndarray:
        relevant, grades = (np.nan_to_num(columns[name]) for name in ("relevant", "grades"))
        largest = np.maximum(relevant.max(axis=1, initial=0.0), grades.max(axis=1, initial=0.0))[:, None]
        places = np.broadcast_to(np.arange(1.0, relevant.shape[1] + 1), relevant.shape)
        best = (self._gain(relevant, largest) * self._discount(places)).sum(axis=1)
        gain = (self._gain(grades, largest) * self._mean_discount(columns["ranks"])).sum(axis=1)
        return np.asarray(np.clip(gain / best, 0.0, 1.0))

    def _gain(self, grades: np.ndarray, largest: np.ndarray) -> np.ndarray:
        """The gains divided by a power of two near the largest: shares stay the same, and nothing overflows."""
        if self.gains == "linear":
            return np.asarray(np.ldexp(grades, -np.frexp(largest)[1]))
        power = np.floor(largest)
        small = np.expm1(np.minimum(grades, 1) * np.log(2)) * np.exp2(-power)
        return np.asarray(np.where(grades < 1, small, np.exp2(grades - power) - np.exp2(-power)))

    def _discount(self, ranks: np.ndarray) -> np.ndarray:
        seen = ranks > 0 if self.k is None else (ranks > 0) & (ranks <= self.k)
        return np.where(seen, 1 / np.log2(1 + np.where(seen, ranks, 1.0)), 0.0)

    def _mean_discount(self, ranks: np.ndarray) -> np.ndarray:
        """The discount of each answer; for tied answers the mean over their places."""
        place = np.broadcast_to(np.arange(ranks.shape[1]), ranks.shape)
        lasts = _lasts(ranks)
        end = np.minimum.accumulate(np.where(lasts, place, ranks.shape[1])[:, ::-1], axis=1)[:, ::-1]
        firsts = np.roll(lasts, 1, axis=1)
        firsts[:, :1] = True
        start = np.maximum.accumulate(np.where(firsts, place, 0), axis=1)
        untied = end == start
        summed = np.concatenate([[0.0], np.cumsum(self._discount(np.arange(1.0, ranks.shape[1] + 1)))])
        together = (summed[end + 1] - summed[start]) / (end - start + 1)
        return np.where(np.isnan(ranks), 0.0, np.where(untied, self._discount(ranks), together))


def refuse_ranks(columns: Columns, name: str) -> None:
    """Raise a DataError that lists the rows whose rank is not an integer of at least 1; NaN means no rank."""
    ranks = columns[name].astype(np.float64)
    ranks = ranks[:, None] if ranks.ndim == 1 else ranks
    odd = np.asarray((ranks < 1) | (np.floor(ranks) < ranks) | np.isinf(ranks))

    def message(row: int) -> str:
        return f"{name} has {ranks[row][odd[row]][0]:g}; ranks are integers from 1 on"

    refuse(columns, np.asarray(odd.any(axis=1)), message)


def _lasts(ranks: np.ndarray) -> np.ndarray:
    """Which answer is the last of its tie."""
    lasts = np.ones(ranks.shape, np.bool_)
    lasts[:, :-1] = ranks[:, 1:] != ranks[:, :-1]
    return lasts


@dataclass(frozen=True, kw_only=True)
class MeanReciprocalRank(Student):
    """The mean of 1 / the rank of the first relevant answer; reads the table of the scorer `ranking`.

    Args:
        absent_rank: the rank of a relevant answer that is not in the ranking; by default such a row counts 0.

    Raises:
        SpecError: `absent_rank` is below 1.

    Example:
        >>> metric = MeanReciprocalRank(absent_rank=500)
        >>> metric.prepare({"first_rank": np.array([1.0, 4.0, np.nan])})["value"]
        array([1.   , 0.25 , 0.002])
    """

    kind = "mean_reciprocal_rank"
    direction = "higher"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    columns = ("first_rank",)

    absent_rank: float | None = None

    def __post_init__(self) -> None:
        if self.absent_rank is not None:
            if not self.absent_rank >= 1:
                raise SpecError(f"{self.kind}: absent_rank={self.absent_rank!r} must be at least 1")
            object.__setattr__(self, "absent_rank", None if self.absent_rank == math.inf else float(self.absent_rank))
        super().__post_init__()

    def prepare(self, columns: Columns) -> Columns:
        refuse_ranks(columns, "first_rank")
        rank = columns["first_rank"].astype(np.float64)
        absent = 0.0 if self.absent_rank is None else 1 / self.absent_rank
        return {VALUE: np.where(np.isnan(rank), absent, 1 / rank)}


Top = Literal["largest", "first", "largest_integers"]


@dataclass(frozen=True, kw_only=True)
class PrecisionAtTopK(OfFirst, WeightedRowsMetric):
    """The overlap of the tops of truth and prediction, divided by k even if there are fewer rows.

    It depends on the order of the rows if values are equal, and always with `top="first"`: rows are in the order of the
    dataset. So it has no interval and no weights.

    Args:
        k: the number of rows in the top.
        top: `largest`: count the rows that have one of the k largest values in both columns (of equal values the later
            rows come first). `largest_integers`: the same of the integer parts of the values. `first`: count the
            values that occur in the first k rows of both columns.

    Raises:
        SpecError: k is below 1, or there is no such top.

    Example:
        >>> metric = PrecisionAtTopK(k=3)
        >>> columns = {"truth": np.array([0, 1, 2, 3, 4]), "prediction": np.array([1, 3, 2, 4, 0])}
        >>> metric.compute(metric.state(columns, np.zeros(5, int), n_groups=1)).value.round(3)
        array([0.667])
    """

    kind = "precision_at_top_k"
    direction = "higher"
    range = (0.0, 1.0)
    row_columns: ClassVar[tuple[str, ...]] = (TRUTH, PREDICTION)
    weighted: ClassVar[bool] = False  # type: ignore[misc]
    confidence: ClassVar[None] = None  # type: ignore[misc]
    columns = (TRUTH, PREDICTION)

    top: Top = "largest"

    def prepare(self, columns: Columns) -> Columns:
        return super().prepare(columns) if self.top == "first" else paired_numbers(columns, self.kind)

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        truth, prediction = (self._top(rows[name]) for name in self.columns)
        return np.full(len(weight), len(np.intersect1d(truth, prediction)) / self.k)

    def compute(self, state: State) -> Values:
        found = super().compute(state)
        each = zip(found.value.tolist(), found.reason, strict=True)
        return replace(found, reason=[reason if value != value else _NO_INTERVAL for value, reason in each])

    def details(self, rows: Columns, weight: np.ndarray) -> dict[str, Any]:
        """The number of rows in the top."""
        return {"top": min(self.k, len(weight))}

    def _top(self, values: np.ndarray) -> np.ndarray:
        if self.top == "first":
            return values[: self.k]
        if self.top == "largest_integers":
            values = np.trunc(values)
        return np.argsort(values, kind="stable")[::-1][: self.k]


_NO_INTERVAL: Final = "no interval: a top hangs on the order of rows"


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
