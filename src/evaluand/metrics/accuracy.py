"""Shares of rows that are right: of all answers, of those with a right one among the first k, of all replications."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.core.key_columns import RESPONSE_INDEX
from evaluand.metrics.base.averaging import (
    Averaging,
    OfColumn,
    OfFirst,
    Student,
    no_interval_reason,
    quotient,
    weight_problem,
    zeros_and_ones,
)
from evaluand.metrics.base.class_scores import SCORES
from evaluand.metrics.base.confusion import TRUTH
from evaluand.metrics.base.metric import (
    LABELS,
    NO_ROWS,
    VALUE,
    Columns,
    Direction,
    Fill,
    Metric,
    Missing,
    Reduce,
    State,
    Values,
    refuse,
)
from evaluand.metrics.stats.intervals import (
    ShareInterval,
    cluster_variance,
    count_rows,
    effective_rows,
    runs,
    share_interval,
    sum_rows,
)


@dataclass(frozen=True, kw_only=True)
class Share(Averaging):
    """A share of rows, with Wilson's score interval; `prepare` returns 0 or 1 for each row.

    Args:
        interval: `wilson`, `exact` or `mid_p`, see `share_interval`.

    Raises:
        SpecError: there is no such interval, or none but `wilson` besides a bootstrap.
    """

    direction: ClassVar[Direction | None] = "higher"
    range = (0.0, 1.0)

    interval: ShareInterval = "wilson"

    def __post_init__(self) -> None:
        if self.interval != "wilson" and self.bootstrap is not None:
            raise SpecError(f"{self.kind}: interval={self.interval!r} does not go with a bootstrap")
        super().__post_init__()

    @property
    def method(self) -> str:
        return self.interval

    def sums(self, values: np.ndarray, group: np.ndarray, n_groups: int) -> State:
        right = values == 1
        correct = np.array([np.count_nonzero(right)]) if n_groups == 1 else count_rows(group[right], n_groups)
        return {"n": count_rows(group, n_groups), "correct": correct}

    def compute(self, state: State) -> Values:
        n, correct = state["n"], state["correct"]
        right, of = (state["weight_value"], state["weight"]) if self.weighted else (correct, n)
        value = quotient(right, of)
        clusters: list[int | None] = [None] * len(n)
        if "cluster_key" in state:
            spread = cluster_variance(state, value)
            clusters = spread.clusters.tolist()
            if self.interval == "wilson":
                low, high = self.drawn(state, value, *self.interval_of(value, spread))
            else:
                rows = effective_rows(value, spread, self.confidence)
                low, high = share_interval(self.interval, value * rows, rows, self.confidence)
        else:
            low, high = share_interval(self.interval, correct, n, self.confidence)
        each = list(zip(n.tolist(), correct.tolist(), of.tolist(), clusters, strict=True))
        return Values(value, low, high, [_reason(*group) for group in each], [_data(*group) for group in each])


@dataclass(frozen=True, kw_only=True)
class Accuracy(Share, OfColumn):
    """The share of rows that are right, with Wilson's score interval.

    Reads a column of zeros and ones. If one class is rare, always predicting the other gives a high accuracy: look at
    the classes by group as well. If examples are replicated, share a declared cluster or have weights, the interval is
    the one for clusters.

    Args:
        column: the column of zeros and ones.

    Example:
        >>> metric = Accuracy()
        >>> state = metric.state({"value": np.array([1.0, 0.0, 1.0])}, np.array([0, 0, 0]), n_groups=1)
        >>> metric.compute(state).data
        [{'correct': 2, 'n': 3}]
        >>> metric.signature
        'accuracy v1 missing=leave_out reduce=first column=value interval=wilson 95%'
        >>> Accuracy(weighted=True, bootstrap=2000).signature
        'accuracy v1 missing=leave_out reduce=first column=value weighted=true interval=bootstrap-2000 95%'
    """

    kind = "accuracy"
    reductions: ClassVar[tuple[Reduce, ...]] = ("first", "best", "any", "all")

    def prepare(self, columns: Columns) -> Columns:
        remedy = "; apply a threshold to it, or use the metric mean"
        return {VALUE: zeros_and_ones(columns, self.column, self.kind, remedy)}


def _reason(n: int, correct: float, weight: float, clusters: int | None) -> str | None:
    if n == 0:
        return NO_ROWS
    return weight_problem(weight) or (no_interval_reason(n) if clusters == 1 else None)


def _data(n: int, correct: float, weight: float, clusters: int | None) -> dict[str, Any]:
    return {"correct": int(correct) if correct == int(correct) else correct, "n": n} | (
        {} if clusters is None else {"clusters": clusters}
    )


@dataclass(frozen=True, kw_only=True)
class TopK(OfFirst, Accuracy):
    """The share of rows for which one of the first k is right: of several answers (`Candidates`), or of classes.

    The same scores serve every k. Of one answer with scores of classes, the truth must be one of the k with the highest
    score; equal scores have no order, so it must be one in any. If the one answer is itself a
    ranking, use the scorer `top_k` and `accuracy`.

    Args:
        k: how many answers count.

    Raises:
        SpecError: k is below 1.

    Example:
        >>> TopK(k=5).signature
        'top_k v1 missing=leave_out reduce=any column=value k=5 interval=wilson 95%'
    """

    kind = "top_k"
    reductions = ("any",)
    fill_columns = (RESPONSE_INDEX,)
    label_columns = (TRUTH,)
    score_columns = (SCORES,)

    reduce: Reduce = "any"

    @property
    def looks_at(self) -> float:
        return self.k

    @property
    def needed_columns(self) -> tuple[str, ...]:
        return (SCORES,) if self.k > 1 else ()

    def columns_for(self, available: Collection[str]) -> tuple[str, ...]:
        found = (*super().columns_for(available), *(name for name in self.fill_columns if name in available))
        return (*found, TRUTH, SCORES) if self.k > 1 and SCORES in available else found

    def prepare(self, columns: Columns) -> Columns:
        several = RESPONSE_INDEX in columns and (columns[RESPONSE_INDEX] > 0).any()
        if not several and SCORES in columns and not np.isnan(columns[SCORES]).all():
            return {VALUE: self._among_highest(columns)}
        return {VALUE: np.where(self._after_top(columns), 0.0, super().prepare(columns)[VALUE])}

    def _among_highest(self, columns: Columns) -> np.ndarray:
        """Whether the truth is among the k classes with the highest scores, in any order of equal ones."""
        scores, truth = columns[SCORES], columns[TRUTH]
        own = np.where(truth >= 0, scores[np.arange(len(truth)), truth], np.nan)
        refuse(columns, np.isnan(own), lambda row: f"has no score for its truth {columns[LABELS][truth[row]]!r}")
        return np.asarray((scores >= own[:, None]).sum(axis=1) <= self.k, np.float64)

    def filled(self, columns: Columns, scored: np.ndarray, missing: Columns, fill: Fill) -> Columns:
        values = np.array(super().filled(columns, scored, missing, fill)[VALUE])
        values[~scored] = np.where(self._after_top(missing), 0.0, values[~scored])
        return {VALUE: values}

    def _after_top(self, columns: Columns) -> np.ndarray:
        """Which rows are answers after the first k; a row without any answer is not one of them."""
        return np.asarray(columns[RESPONSE_INDEX] >= self.k if RESPONSE_INDEX in columns else np.False_)


@dataclass(frozen=True, kw_only=True)
class OverReplications(Metric):
    """A metric whose rows are examples with all their replications."""

    reductions: ClassVar[tuple[Reduce, ...]] = ("all",)
    over_replications = True

    reduce: Reduce = "all"


@dataclass(frozen=True, kw_only=True)
class OfK(OverReplications, OfFirst):
    """A metric of which a parameter says how many answers matter.

    Args:
        k: how many answers matter.

    Raises:
        SpecError: k is below 1.
    """

    missing: Missing = "wrong"

    @property
    def fewest_answers(self) -> int:
        return self.k


@dataclass(frozen=True, kw_only=True)
class KOfN(OfK, Accuracy):
    """The share of examples with at least k right answers over all replications.

    With k = 1 an example counts if one try succeeded, with k = the number of replications only if all did: the
    difference shows how reliable a system is. A failed try counts as wrong by default (`missing`).

    Args:
        k: how many right answers an example needs.

    Raises:
        SpecError: k is below 1.

    Example:
        >>> KOfN(k=2).reduced(np.array([1.0, 0.0, 1.0, 0.0, 0.0, 1.0]), np.array([0, 3]))
        array([1., 0.])
    """

    kind = "k_of_n"

    def reduced(self, values: np.ndarray, starts: np.ndarray) -> np.ndarray:
        return np.asarray(np.add.reduceat(values, starts) >= self.k, np.float64)


@dataclass(frozen=True, kw_only=True)
class PassAtK(OfK, Student, OfColumn):
    """The chance that at least one of k answers to an example is right, from n ≥ k replications of each.

    For each example with c right answers of n it is 1 − C(n−c, k) / C(n, k), which does not depend on which k were
    drawn; the value is the mean over examples. A failed try counts as wrong by default (`missing`).
    Source: M. Chen et al., "Evaluating large language models trained on code" (2021), arXiv:2107.03374.

    Args:
        k: how many answers are taken.

    Raises:
        SpecError: k is below 1, or an example has fewer answers.

    Example:
        >>> PassAtK(k=2).reduced(np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0]), np.array([0, 3])).round(4)
        array([0.6667, 0.    ])
    """

    kind = "pass_at_k"
    direction = "higher"
    range = (0.0, 1.0)

    def prepare(self, columns: Columns) -> Columns:
        return {VALUE: zeros_and_ones(columns, self.column, self.kind)}

    def reduced(self, values: np.ndarray, starts: np.ndarray) -> np.ndarray:
        n = np.diff(starts, append=len(values))
        if len(n) and n.min() < self.k:
            raise SpecError(
                f"pass_at_k: k={self.k} needs as many answers to each example, but one has {n.min()};"
                f" run with replications: {self.k} or more"
            )
        wrong = n - np.add.reduceat(values, starts)
        none = np.ones(len(n))
        for i in range(self.k):  # C(wrong, k) / C(n, k), factor by factor
            none *= np.maximum(wrong - i, 0) / (n - i)
        return 1 - none


@dataclass(frozen=True, kw_only=True)
class MajorityVote(OverReplications, Share):
    """The share of examples whose most frequent answer over all replications is right: self-consistency.

    Equal answers are counted as they are in the column `answer`. Of several that are equally frequent, the one that was
    given first counts, by replication and then by response. If a scorer has graded it differently from row to row, the
    example counts by the mean of its grades. An answer that failed or abstained has no vote (`missing`); for the
    bounds, all of an example's missing answers are the same one, given before or new, that leads to the lowest or the
    highest grade, and with `missing: wrong` to the lowest.
    Source: X. Wang et al., "Self-consistency improves chain of thought reasoning in language models" (2023),
    arXiv:2203.11171.

    Args:
        answer: the column with the answers; `label` for the scorer `numeric_answer`.
        column: the column that is 1 where the answer is right, else 0.

    Example:
        >>> metric, right = MajorityVote(), np.array([1.0, 0.0, 1.0])
        >>> rows = metric.prepare({"_index_": np.arange(3), "value": right, "prediction": np.array([5, 4, 5])})
        >>> metric.reduced(rows["value"], np.array([0]))
        array([1.])
        >>> metric.signature
        'majority_vote v2 missing=leave_out reduce=all column=value answer=prediction interval=wilson 95%'
    """

    kind = "majority_vote"
    version = 2

    column: str = VALUE
    answer: str = "prediction"

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column, self.answer)

    @property
    def label_columns(self) -> tuple[str, ...]:
        return (self.answer,)

    def prepare(self, columns: Columns) -> Columns:
        right, code = zeros_and_ones(columns, self.column, self.kind), columns[self.answer]
        refuse(columns, code < 0, lambda row: f"is scored but has no {self.answer}; name the column of the answers")
        return {VALUE: 2.0 * code + right}

    def filled(self, columns: Columns, scored: np.ndarray, missing: Columns, fill: Fill) -> Columns:
        votes = np.full(len(scored), _FOR_RIGHT if fill == "best" else _FOR_WRONG)
        votes[scored] = columns[VALUE]
        return {VALUE: votes}

    def reduced(self, values: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """The grade of the answer that wins in each example: the least or the largest of what missing answers allow."""
        n, unit = len(starts), np.repeat(np.arange(len(starts)), np.diff(starts, append=len(values)))
        joins, (of, given, place, grade) = values < 0, _count_answers(values, unit)
        times, first = np.zeros(n), np.full(n, len(values))  # of the answer that leads without the missing ones
        order = np.lexsort((place, -given, of))
        leads = order[runs(of[order])]
        times[of[leads]], first[of[leads]] = given[leads], place[leads]
        more, earliest = count_rows(unit[joins], n), np.full(n, len(values))
        np.minimum.at(earliest, unit[joins], np.flatnonzero(joins))

        joined = given + more[of], np.minimum(place, earliest[of])
        can_win = (joined[0] > times[of]) | ((joined[0] == times[of]) & (joined[1] <= first[of]))
        new_wins = (more > times) | ((more == times) & (earliest < first))
        best = bool((values == _FOR_RIGHT).any())
        found = np.where(new_wins, float(best), float(not best))
        (np.maximum if best else np.minimum).at(found, of[can_win], grade[can_win])
        return found

    def sums(self, values: np.ndarray, group: np.ndarray, n_groups: int) -> State:
        return {"n": count_rows(group, n_groups), "correct": sum_rows(values, group, n_groups)}


_FOR_WRONG: Final = -2.0
_FOR_RIGHT: Final = -1.0
"""Votes of missing answers, for the answer of their example with the least or the largest grade that can win so."""


def _count_answers(votes: np.ndarray, unit: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Count the answers that are not missing.

    Args:
        unit: of each vote, in order.

    Returns:
        The unit of each different answer, how often it was given, at which place first, and its mean grade.
    """
    place = np.flatnonzero(votes >= 0)
    answer, right = np.divmod(votes, 2)
    order = place[np.lexsort((answer[place], unit[place]))]
    starts = runs(unit[order], answer[order])
    times = np.diff(starts, append=len(order))
    grades = np.add.reduceat(right[order], starts) if len(starts) else np.zeros(0)
    return unit[order[starts]], times, order[starts], grades / times
