"""Shares of a class's rows: of what was expected, of what was predicted, or of the rest."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.accuracy import Accuracy
from evaluand.metrics.base.class_ratio import ClassRatio, check_labels, choose_positive
from evaluand.metrics.base.confusion import EXPECTED, OPPOSITE, PREDICTION, Label, class_counts, has_sets
from evaluand.metrics.base.counting import Counting
from evaluand.metrics.base.metric import LABELS, VALUE, Columns, Labels, State, Values, refuse

_MOST_STEPS: Final = 1 << 22


@dataclass(frozen=True, kw_only=True)
class Precision(Counting):
    """The share of what was predicted that is right; undefined if nothing was predicted.

    A system that predicts little is precise: look at the recall as well.

    Example:
        >>> Precision(label="PER").signature
        'precision v2 missing=leave_out reduce=first label=PER interval=wilson 95%'
    """

    kind = "precision"
    nothing = "nothing was predicted"
    sides = 0.0, 1.0


@dataclass(frozen=True, kw_only=True)
class Recall(Counting):
    """The share of what was expected that was found; undefined if nothing was expected.

    A system that predicts everything finds everything: look at the precision as well.

    Example:
        >>> Recall(average="macro").signature
        'recall v2 missing=leave_out reduce=first average=macro interval=jackknife 95%'
    """

    kind = "recall"
    nothing = "nothing was expected"
    sides = 1.0, 0.0


@dataclass(frozen=True, kw_only=True)
class FBeta(Counting):
    """The harmonic mean of precision and recall, in which recall has β² times the weight.

    With P predicted, E expected and c right (of spans, a partial match counts half): F = (1 + β²) c / (P + β² E). It is
    undefined if nothing was expected or predicted, and 0 if only nothing was predicted. For one tag of spans, in the
    modes in which a pair may have two tags, c differs for predicted and expected spans: (right + β² found) /
    (P + β² E).
    Source: C. J. van Rijsbergen, Information Retrieval (2nd ed., 1979), chapter 7.

    Args:
        beta: how much more recall counts than precision; 1 weighs both equally. 0 gives the precision, which is
            undefined if nothing was predicted.

    Example:
        >>> FBeta(beta=2).signature
        'f_beta v2 missing=leave_out reduce=first beta=2.0 interval=jackknife 95%'
    """

    kind = "f_beta"

    beta: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.beta < math.inf:
            raise SpecError(
                f"f_beta: beta={self.beta!r} must be a number of at least 0; 1 weighs precision and recall alike"
            )
        object.__setattr__(self, "beta", float(self.beta))
        super().__post_init__()

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        found = super().value(rows, weight)
        averages = self._mode == "macro" and self.beta > 0 and not (self.weighted or has_sets(rows[LABELS]))
        if not averages or not rows[OPPOSITE].any():
            return found
        least = [self._least_mean(rows, each) for each in weight]
        return np.where(np.isfinite(least), least, found)

    def _least_mean(self, rows: Columns, weight: np.ndarray) -> float:
        """The lowest mean over classes, by what rows that count as wrong about every class could be predicted as.

        One more prediction of a class lowers its value by less than the one before, so the largest steps are taken,
        or else each row is predicted as a class that nothing else has; the bound is reached. NaN where a class has no
        value, or rows and classes are too many.
        """
        counts = class_counts(rows, weight[None])
        row, code = rows[EXPECTED]
        own = np.bincount(code, (weight * rows[OPPOSITE])[row], minlength=len(counts.classes))
        n = round(float(counts.opposite[0]))
        if n * len(own) > _MOST_STEPS:
            return math.nan
        expected, right = counts.expected[0, :, None], counts.right[0, :, None]
        predicted = counts.predicted[0, :, None] - (counts.opposite[0] - own)[:, None] + np.arange(n + 1)
        of_class = self._divided(*self.ratio(expected, predicted, right, counts.total[0]))
        there = (counts.expected[0] > 0) | (predicted[:, 0] > 0) | (self.labels is not None)
        if np.isnan(of_class[there]).any():
            return math.nan
        steps = np.where(np.arange(n) < (n - own)[:, None], of_class[:, :-1] - of_class[:, 1:], 0.0)[there]
        largest = np.sort(steps, axis=None)[::-1][:n]
        left = of_class[there, 0].sum() - np.concatenate([[0.0], np.cumsum(largest)])
        if self.labels is not None:
            return float(left[-1] / there.sum())
        return float((left / (there.sum() + n - np.arange(len(left)))).min())

    @property
    def nothing(self) -> str:  # type: ignore[override]
        """What an undefined value lacks."""
        return "nothing was expected or predicted" if self.beta else Precision.nothing

    @property
    def prefix(self) -> str:
        return f"f{self.beta:g}" if self.beta else Precision.kind

    @property
    def sides(self) -> tuple[float, float]:
        return self.beta**2, 1.0


@dataclass(frozen=True, kw_only=True)
class _OfOtherRows(ClassRatio):
    """A share of the rows outside a class."""

    nothing = "no row expects another label"

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        return self.nothing if self.label is None else f"{self.nothing} than {self.label!r}"


@dataclass(frozen=True, kw_only=True)
class Specificity(_OfOtherRows):
    """The share of rows outside a class that were not predicted as it; undefined if there are none.

    True negatives of all negatives. A system that never predicts the class has the specificity 1: look at the recall as
    well.

    Example:
        >>> Specificity(label="yes").signature
        'specificity v2 missing=leave_out reduce=first label=yes interval=wilson 95%'
    """

    kind = "specificity"

    def ratio(self, expected: Any, predicted: Any, right: Any, total: Any) -> tuple[Any, Any]:
        return total - expected - predicted + right, total - expected


@dataclass(frozen=True, kw_only=True)
class FalsePositiveRate(_OfOtherRows):
    """The share of rows outside a class that were predicted as it; undefined if there are none.

    False positives of all negatives: 1 − specificity.

    Example:
        >>> FalsePositiveRate(label="yes").signature
        'false_positive_rate v2 missing=leave_out reduce=first label=yes interval=wilson 95%'
    """

    kind = "false_positive_rate"
    direction = "lower"

    def ratio(self, expected: Any, predicted: Any, right: Any, total: Any) -> tuple[Any, Any]:
        return predicted - right, total - expected


@dataclass(frozen=True, kw_only=True)
class FalseNegativeRate(ClassRatio):
    """The share of what was expected that was not found; undefined if nothing was expected.

    False negatives of all positives: 1 − recall.

    Example:
        >>> FalseNegativeRate(label="yes").signature
        'false_negative_rate v2 missing=leave_out reduce=first label=yes interval=wilson 95%'
    """

    kind = "false_negative_rate"
    direction = "lower"
    nothing = "nothing was expected"

    def ratio(self, expected: Any, predicted: Any, right: Any, total: Any) -> tuple[Any, Any]:
        return expected - right, expected


@dataclass(frozen=True, kw_only=True)
class Jaccard(ClassRatio):
    """The share of all that was expected or predicted that is right; undefined if there is nothing.

    c / (P + E − c), with P predicted, E expected and c right: intersection over union.
    Source: P. Jaccard, "The distribution of the flora in the alpine zone" (New Phytologist 11, 1912).

    Example:
        >>> Jaccard(label="yes").signature
        'jaccard v2 missing=leave_out reduce=first label=yes interval=wilson 95%'
    """

    kind = "jaccard"
    nothing = "nothing was expected or predicted"
    stray_weight = 1.0

    def ratio(self, expected: Any, predicted: Any, right: Any, total: Any) -> tuple[Any, Any]:
        return right, expected + predicted - right


@dataclass(frozen=True, kw_only=True)
class SelectionRate(Accuracy):
    """The share of rows that are predicted as a class, such as selected or flagged, with Wilson's score interval.

    It does not say whether the predictions are right, so neither high nor low is better. For the column `truth` it is
    the base rate.

    Args:
        label: the class; by default `true` for bools, and 1 for integers that are all 0 or 1.
        column: the column of labels, or of sets of labels.

    Raises:
        SpecError: the parameters contradict each other.

    Example:
        >>> SelectionRate(label="hired").signature
        'selection_rate v1 missing=leave_out reduce=first column=prediction label=hired interval=wilson 95%'
    """

    kind = "selection_rate"
    reductions = ("first", "all")
    direction = None

    column: str = PREDICTION
    label: Label | None = None

    def __post_init__(self) -> None:
        check_labels(self.kind, "label", [] if self.label is None else [self.label])
        super().__post_init__()

    @property
    def label_columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def named_labels(self) -> Sequence[Label]:
        return () if self.label is None else (self.label,)

    def settled(self, labels: Labels) -> Self:
        found = labels.get(self.column, ())
        if self.label is not None or not found:
            return self
        single = dict.fromkeys(label for each in found for label in (each if isinstance(each, tuple) else (each,)))
        return replace(self, label=choose_positive(self.kind, [*single]))

    def prepare(self, columns: Columns) -> Columns:
        codes, vocabulary = columns[self.column], columns[LABELS]
        refuse(columns, codes < 0, lambda row: f"is scored but has no {self.column}; such rows must abstain")
        check_labels(self.kind, "label", [] if self.label is None else [self.label], vocabulary)
        label = True if self.label is None else self.label  # True == 1
        within = vocabulary.tolist() if has_sets(vocabulary) else [(one,) for one in vocabulary.tolist()]
        return {VALUE: np.array([label in one for one in within], np.float64)[codes]}

    def compute(self, state: State) -> Values:
        values = super().compute(state)
        data = [{"selected": entry.pop("correct"), **entry} for entry in map(dict, values.data)]
        return replace(values, data=data)
