"""How often each truth met each prediction, and numbers that follow from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.base.confusion import (
    ALL_WRONG,
    NO_CLASS,
    PREDICTION,
    TRUTH,
    ByClass,
    ClassCounts,
    Confusion,
    Label,
    OfCounts,
    confusion,
    harmonic,
    has_sets,
    json_number,
    sums_of,
)
from evaluand.metrics.base.curves import PARTS, Curve, Drawn, part_name
from evaluand.metrics.base.metric import LABELS, WEIGHT, Columns, Metric, State, refuse
from evaluand.metrics.base.weighted_rows import mean_without
from evaluand.metrics.class_rates import distinct_labels


@dataclass(frozen=True, kw_only=True)
class ConfusionMatrix(Confusion):
    """How often each truth met each prediction; the value is the number, or weight, of all rows.

    `data` holds the matrix: `classes`, in order, and `cells` [truth, prediction, rows], with truth and prediction as
    positions among the classes; absent cells are 0. Of more than 100 classes, those with the fewest rows are merged
    into one, called null.

    Args:
        normalize: cells are shares instead of rows: of the rows with their truth (`true`), of those with their
            prediction (`pred`), or of all rows (`all`). The value remains the number of rows.
        weighted: each row counts by the weight of its example.
        confidence: None; a count of rows has no interval.

    Raises:
        SpecError: there is no such normalisation.

    Example:
        >>> ConfusionMatrix().signature
        'confusion_matrix v1 missing=leave_out reduce=first'
    """

    kind = "confusion_matrix"

    normalize: Literal["true", "pred", "all"] | None = None
    confidence: None = None

    def __post_init__(self) -> None:
        if self.normalize not in (None, "true", "pred", "all"):
            raise SpecError(f"{self.kind}: normalize={self.normalize!r} must be true, pred or all, as text")
        super().__post_init__()

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        return np.asarray(weight.sum(axis=1))

    @property
    def drawn_by(self) -> Metric:
        return self

    def curves(self, state: State) -> list[list[Drawn]]:
        """For each truth, the predictions it met and itself: x is their position, y their share of the truth's rows."""
        found: list[list[Drawn]] = [[] for _ in state["n"]]
        for group, rows in self.rows_of(state):
            classes, table = confusion(rows, rows[WEIGHT], PARTS)
            names = [None if label is None else part_name(label) for label in classes]
            for own, (name, row) in enumerate(zip(names, table, strict=True)):
                places = np.flatnonzero((row > 0) | ((np.arange(len(row)) == own) & (row.sum() > 0)))
                cells = row[places]
                curve = Curve(places.astype(np.float64), cells / row.sum(), np.full(len(places), np.nan), cells)
                found[group].append(Drawn("confusion", name, curve, labels=[names[i] for i in places]))
        return found

    def details(self, rows: Columns, weight: np.ndarray) -> dict[str, Any]:
        classes, table = confusion(rows, weight)
        if self.normalize is not None:
            axis = {"true": 1, "pred": 0, "all": None}[self.normalize]
            total = table.sum(axis=axis, keepdims=True)
            table = table / np.where(total > 0, total, 1.0)
        cells = np.argwhere(table > 0).tolist()
        return {"classes": classes, "cells": [[i, j, json_number(table[i, j])] for i, j in cells]}


@dataclass(frozen=True, kw_only=True)
class BalancedAccuracy(ByClass):
    """The mean over the true classes of the share of their rows that are right.

    Always predicting the most common of k classes gives 1 / k, not its share. The bounds include classes that only
    missing rows have.

    The interval is made of those of the classes, so it is wide where one of them has few rows, though all are right.
    There is none while a class has fewer than three rows, or is the only one.
    Source: K. Brodersen et al., "The balanced accuracy and its posterior distribution" (ICPR 2010).

    Args:
        adjusted: rescale so that guessing, 1 / k, becomes 0: (a − 1 / k) / (1 − 1 / k); undefined for one class.

    Example:
        >>> BalancedAccuracy(adjusted=True).signature
        'balanced_accuracy v1 missing=leave_out reduce=first adjusted=true interval=jackknife 95%'
    """

    kind = "balanced_accuracy"
    takes_sets = False
    direction = "higher"

    adjusted: bool = False

    @property
    def range(self) -> tuple[float, float]:
        return (-1.0 if self.adjusted else 0.0, 1.0)

    def of_counts(self, counts: ClassCounts, vocabulary: np.ndarray) -> np.ndarray:
        occurs = counts.expected > 0
        k = occurs.sum(axis=1)
        return self.of_mean(np.where(occurs, counts.right / counts.expected, 0.0).sum(axis=1) / k, counts)

    def shares_of(self, counts: ClassCounts) -> tuple[np.ndarray, np.ndarray]:
        return counts.right, counts.expected

    def of_mean(self, mean: np.ndarray, counts: ClassCounts) -> np.ndarray:
        if not self.adjusted:
            return mean
        k = (counts.expected > 0).sum(axis=1)
        return np.asarray((mean - 1 / k) / (1 - 1 / k))

    def basis_of(self, counts: ClassCounts, vocabulary: np.ndarray) -> float:
        return harmonic(counts.expected[0], float(counts.total[0]))

    def averaged(self, counts: ClassCounts) -> np.ndarray:
        return np.asarray(counts.expected[0] > 0)

    def undefined(self, rows: object, weight: object) -> str:
        return "all truths are one label, so guessing cannot be wrong"


@dataclass(frozen=True, kw_only=True)
class HammingLoss(ByClass):
    """The share of labels that are wrong: the share of rows, or for sets the share of all labels of all rows.

    For sets: missed labels plus superfluous labels, divided by rows × labels. For rows with one label it is 1 −
    accuracy; compare systems by `accuracy` then.

    Args:
        one_hot: a row with one label counts as the set of that label: 2 · errors / (rows × labels).
        labels: all possible labels; by default those of truth and prediction.

    Raises:
        SpecError: `labels` is not a list of labels.

    Example:
        >>> HammingLoss(one_hot=True).signature
        'hamming_loss v1 missing=leave_out reduce=first one_hot=true interval=jackknife 95%'
    """

    kind = "hamming_loss"
    direction = "lower"

    one_hot: bool = False
    labels: Sequence[Label] | None = None

    def __post_init__(self) -> None:
        if self.labels is not None:
            object.__setattr__(self, "labels", distinct_labels(self.kind, self.labels))
        super().__post_init__()

    def is_open(self, vocabulary: np.ndarray) -> bool:
        return self.labels is None and (self.one_hot or has_sets(vocabulary))

    def classes(self, vocabulary: np.ndarray) -> Sequence[Label] | None:
        return self.labels

    def worst_prediction(self, vocabulary: np.ndarray) -> int:
        return ALL_WRONG if has_sets(vocabulary) else NO_CLASS

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        if self.one_hot or has_sets(rows[LABELS]):
            return super().value(rows, weight)
        return np.asarray((weight * (rows[TRUTH] != rows[PREDICTION])).sum(axis=1) / weight.sum(axis=1))

    def without_rows(self, rows: Columns, one: np.ndarray) -> np.ndarray:
        if self.one_hot or has_sets(rows[LABELS]):
            return super().without_rows(rows, one)
        return mean_without((rows[TRUTH] != rows[PREDICTION]).astype(np.float64), rows[WEIGHT], one)

    def of_counts(self, counts: ClassCounts, vocabulary: np.ndarray) -> np.ndarray:
        wrong = (counts.expected + counts.predicted - 2 * counts.right).sum(axis=1) + counts.stray
        return np.asarray(wrong / (counts.total * len(counts.classes)))

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        return "there is no label at all"


class _ChanceCorrected(OfCounts):
    """1 for full agreement, 0 for agreement by chance."""

    direction = "higher"
    range = (-1.0, 1.0)

    def basis_of(self, counts: ClassCounts, vocabulary: np.ndarray) -> float:
        return harmonic(counts.expected[0], float(counts.total[0]))


class CohenKappa(_ChanceCorrected):
    """Cohen's kappa: agreement beyond chance, as a share of the largest possible.

    (observed − expected) / (1 − expected), where expected is the agreement of independent labels with the same shares;
    undefined if chance agrees everywhere.
    Source: J. Cohen, "A coefficient of agreement for nominal scales" (Educational and Psychological Measurement 20,
    1960).

    Example:
        >>> CohenKappa().signature
        'cohen_kappa v1 missing=leave_out reduce=first interval=jackknife 95%'
    """

    kind = "cohen_kappa"

    def of_counts(self, counts: ClassCounts, vocabulary: np.ndarray) -> np.ndarray:
        total, said = counts.expected.sum(axis=1), counts.predicted.sum(axis=1) + counts.stray
        # The rest is summed like its parts, so that a class with all rows leaves exactly 0.
        others = said[:, None] - counts.predicted
        disagreement = (counts.expected * others).sum(axis=1) / (total * said)  # 1 − expected
        wrong = (counts.expected - counts.right).sum(axis=1) / total
        return np.asarray((disagreement - wrong) / disagreement)

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        return "all truths and predictions are one label, so chance agrees everywhere"


class MatthewsCorrelation(_ChanceCorrected):
    """Matthews' correlation coefficient, for any number of classes.

    (c n − Σ Eₖ Pₖ) / √((n² − Σ Eₖ²) (n² − Σ Pₖ²)), with c of n rows right and Eₖ expected, Pₖ predicted rows of class
    k.
    Undefined if all truths or all predictions are equal.
    Source: J. Gorodkin, "Comparing two K-category assignments by a K-category correlation coefficient" (Computational
    Biology and Chemistry 28, 2004).

    Example:
        >>> MatthewsCorrelation().signature
        'matthews_correlation v1 missing=leave_out reduce=first interval=jackknife 95%'
    """

    kind = "matthews_correlation"

    def of_counts(self, counts: ClassCounts, vocabulary: np.ndarray) -> np.ndarray:
        total = counts.expected.sum(axis=1, keepdims=True)
        expected = counts.expected / total
        predicted = counts.predicted / counts.predicted.sum(axis=1, keepdims=True)  # exactly 1 if one class has all
        wrong = (counts.expected - counts.right).sum(axis=1) / total[:, 0]
        covariance = (expected * (1 - predicted)).sum(axis=1) - wrong  # precise even if one class has nearly all
        spread = _spread(expected) * _spread(predicted)
        return np.asarray(np.clip(covariance / np.sqrt(np.where(spread > 0, spread, np.nan)), -1.0, 1.0))

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        return "all truths, or all predictions, are one label"


def _spread(share: np.ndarray) -> np.ndarray:
    """1 − Σ s², which is 0 if one class has all."""
    return np.asarray((share * (1 - share)).sum(axis=1))


Weights = Literal["linear", "quadratic"]


@dataclass(frozen=True, kw_only=True)
class WeightedKappa(Confusion):
    """Cohen's kappa of ordered labels: 1 − the mean disagreement / that of independent labels with the same shares.

    The disagreement of two labels is their distance, or its square. Integers are as far from each other as their values
    are; of text no order is assumed, so `labels` must list it. Undefined if all truths and predictions are one label.
    Source: J. Cohen, "Weighted kappa" (Psychological Bulletin 70, 1968).

    Args:
        weights: a disagreement is the distance of the labels (`linear`) or its square (`quadratic`).
        labels: all labels in order; neighbours have the distance 1. With all integers from the least to the largest it
            is the default.

    Raises:
        SpecError: there are no such weights, or `labels` is not a list of labels.

    Example:
        >>> WeightedKappa(labels=["low", "high"]).signature
        'weighted_kappa v1 missing=leave_out reduce=first weights=quadratic labels=(low,high) interval=jackknife 95%'
    """

    kind = "weighted_kappa"
    direction = "higher"
    range = (-1.0, 1.0)

    weights: Weights = "quadratic"
    labels: Sequence[Label] | None = None

    def __post_init__(self) -> None:
        if self.weights not in ("linear", "quadratic"):
            raise SpecError(f"{self.kind}: weights={self.weights!r} must be linear or quadratic")
        if self.labels is not None:
            distinct_labels(self.kind, self.labels)
            object.__setattr__(self, "labels", tuple(self.labels))
        super().__post_init__()

    def prepare(self, columns: Columns) -> Columns:
        found = super().prepare(columns)
        vocabulary = found[LABELS].tolist()
        if self.labels is None:
            text = next((label for label in vocabulary if isinstance(label, str)), None)
            if text is not None:
                raise SpecError(
                    f"{self.kind} needs the order of labels, which text such as {text!r} does not have; give labels, "
                    "a list from the lowest to the highest"
                )
            return found
        unknown = np.array([label not in self.labels for label in vocabulary], np.bool_)
        for name in (TRUTH, PREDICTION):
            code = found[name]
            refuse(
                columns,
                unknown[code],
                lambda row, code=code, name=name: f"{name} {vocabulary[code[row]]!r} is not among labels; add it",  # type: ignore[misc]
            )
        return found

    def arranged(self, rows: Columns) -> Columns:
        place = {label: number for number, label in enumerate(self.labels or ())}
        known = [place.get(label, label) for label in rows[LABELS].tolist()]
        position = np.array([float(each) if not isinstance(each, str) else np.nan for each in known])
        truth, prediction = (position[rows[name]] for name in (TRUTH, PREDICTION))
        positions = np.unique(np.concatenate([truth, prediction]))
        distance = np.abs(truth - prediction) if self.weights == "linear" else np.square(truth - prediction)
        row = np.arange(len(truth))
        of_truth, of_prediction = (np.stack([row, np.searchsorted(positions, each)]) for each in (truth, prediction))
        return {**rows, _DISTANCE: distance, _POSITIONS: positions, _OF_T: of_truth, _OF_P: of_prediction}

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        positions, total = rows[_POSITIONS], weight.sum(axis=1)
        truth, prediction = (sums_of(rows[name], weight, len(positions)) for name in (_OF_T, _OF_P))
        expected = (truth * self._reach(positions, prediction)).sum(axis=1) / total
        several = ((truth > 0) | (prediction > 0)).sum(axis=1) > 1
        return np.asarray(1 - weight @ rows[_DISTANCE] / np.where(several, expected, np.nan))

    def without_rows(self, rows: Columns, one: np.ndarray) -> np.ndarray:
        positions, distance, weight = rows[_POSITIONS], rows[_DISTANCE], rows[WEIGHT][None]
        truth, prediction = (sums_of(rows[name], weight, len(positions)) for name in (_OF_T, _OF_P))
        own, other = rows[_OF_T][1], rows[_OF_P][1]
        to_predictions, to_truths = (self._reach(positions, side)[0] for side in (prediction, truth))
        rest = weight.sum() - one
        with np.errstate(divide="ignore", invalid="ignore"):
            expected = truth[0] @ to_predictions - one * (to_predictions[own] + to_truths[other] - one * distance)
            found = 1 - (weight @ distance - one * distance) * rest / expected
        is_left = expected > _ROUNDING * (truth[0] @ to_predictions)
        return np.where(is_left & np.isfinite(found), found, np.nan)

    def _reach(self, positions: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Σ wⱼ dᵢⱼ: the disagreement of each position with all labels of one side, replicates × positions."""
        off = np.abs(positions[:, None] - positions)
        return np.asarray(weight @ (off if self.weights == "linear" else np.square(off)))

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        return "all truths and predictions are one label, so chance agrees everywhere"


_DISTANCE: Final = "_distance_"
_POSITIONS: Final = "_positions_"
_ROUNDING: Final = 1e-13
_OF_T: Final = "_of_truth_"
_OF_P: Final = "_of_prediction_"
