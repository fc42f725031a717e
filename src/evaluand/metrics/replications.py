"""Metrics of all the answers to an example: one value from all its replications."""

from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.accuracy import Accuracy, Share
from evaluand.metrics.base.averaging import OfColumn, Student, zeros_and_ones
from evaluand.metrics.base.metric import (
    VALUE,
    Columns,
    Fill,
    Metric,
    Missing,
    Reduce,
    State,
    check_whole_number,
    refuse,
)
from evaluand.metrics.stats.intervals import count_rows, runs, sum_rows


@dataclass(frozen=True, kw_only=True)
class OverReplications(Metric):
    """A metric whose rows are examples with all their replications."""

    reductions: ClassVar[tuple[Reduce, ...]] = ("all",)
    over_replications = True

    reduce: Reduce = "all"


@dataclass(frozen=True, kw_only=True)
class OfK(OverReplications):
    """A metric of which a parameter says how many answers matter.

    Args:
        k: how many answers matter.

    Raises:
        SpecError: k is below 1.
    """

    k: int
    missing: Missing = "wrong"

    def __post_init__(self) -> None:
        check_whole_number(self.kind, "k", self.k, 1)
        super().__post_init__()

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
    row_range = (0.0, 1.0)

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
        joins, given = values < 0, _count_answers(values, unit)
        times, first = np.zeros(n), np.full(n, len(values))  # of the answer that leads without the missing ones
        order = np.lexsort((given.first, -given.times, given.unit))
        leads = order[runs(given.unit[order])]
        times[given.unit[leads]], first[given.unit[leads]] = given.times[leads], given.first[leads]
        more, earliest = count_rows(unit[joins], n), np.full(n, len(values))
        np.minimum.at(earliest, unit[joins], np.flatnonzero(joins))

        of = given.unit
        joined = given.times + more[of], np.minimum(given.first, earliest[of])
        can_win = (joined[0] > times[of]) | ((joined[0] == times[of]) & (joined[1] <= first[of]))
        new_wins = (more > times) | ((more == times) & (earliest < first))
        best = bool((values == _FOR_RIGHT).any())
        found = np.where(new_wins, float(best), float(not best))
        (np.maximum if best else np.minimum).at(found, of[can_win], given.grade[can_win])
        return found

    def sums(self, values: np.ndarray, group: np.ndarray, n_groups: int) -> State:
        return {"n": count_rows(group, n_groups), "correct": sum_rows(values, group, n_groups)}


_FOR_WRONG: Final = -2.0
_FOR_RIGHT: Final = -1.0
"""Votes of missing answers, for the answer of their example with the least or the largest grade that can win so."""


class _Answers(NamedTuple):
    """The different answers of each unit: how often, and at which place first, each was given, and its mean grade."""

    unit: np.ndarray
    times: np.ndarray
    first: np.ndarray
    grade: np.ndarray


def _count_answers(votes: np.ndarray, unit: np.ndarray) -> _Answers:
    """Counts the answers that are not missing.

    Args:
        unit: of each vote, in order.
    """
    place = np.flatnonzero(votes >= 0)
    answer, right = np.divmod(votes, 2)
    order = place[np.lexsort((answer[place], unit[place]))]
    starts = runs(unit[order], answer[order])
    times = np.diff(starts, append=len(order))
    grades = np.add.reduceat(right[order], starts) if len(starts) else np.zeros(0)
    return _Answers(unit[order[starts]], times, order[starts], grades / times)
