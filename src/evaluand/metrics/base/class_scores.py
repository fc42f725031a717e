"""Scores of classes: how confident a system was of each label, whatever form its output has.

Metrics read them in one form, a matrix of rows × labels with the codes of the truths, whether the system returned a
score for each class, one confidence, or labels only.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar, Final, Literal, Self

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.base.confusion import PREDICTION, TRUTH, Label
from evaluand.metrics.base.metric import LABELS, Columns, Labels, Metric, numbers, refuse

SCORES, CONFIDENCE, CONFIDENCE_OF = "scores", "confidence", "confidence_of"

ScoredBy = Literal["classes", "positive", "predicted", "labels"]


@dataclass(frozen=True, kw_only=True)
class OfScores(Metric):
    """A metric of the scores of classes; reads the table of the scorer `prediction`.

    Args:
        scored_by: what the scores are. `classes`: the `scores` of all classes. `positive`: the `confidence`, as the
            score of the class `label`, whatever was predicted. `predicted`: the `confidence`, as the probability of the
            predicted one of two classes. `labels`: no scores; 1 for the predicted label and 0 for the others. If the
            table says which class a confidence belongs to, `positive` refuses those of other classes, and `predicted`
            takes each as the probability of its class.
        label: the positive class; by default all classes.
        absent: the score of a class without one in a row; None if unknown. Only for `classes`.

    Attributes:
        of_one: the values of `scored_by` that need `label`.
        takes_sets: rows may have sets of labels, which come as matrices of rows × labels.

    Raises:
        SpecError: the parameters contradict each other.
    """

    of_one: ClassVar[tuple[ScoredBy, ...]] = ("positive", "predicted")
    takes_sets: ClassVar[bool] = False
    label_columns = (TRUTH, PREDICTION, CONFIDENCE_OF)
    score_columns = (SCORES,)

    scored_by: ScoredBy = "classes"
    label: Label | None = None
    absent: float | None = None

    def __post_init__(self) -> None:
        if self.label is None and self.scored_by in self.of_one:
            raise SpecError(f"{self.kind}: scored_by={self.scored_by!r} needs label, the positive class")
        if self.absent is not None:
            if isinstance(self.absent, bool) or not isinstance(self.absent, Real):
                raise SpecError(f"{self.kind}: absent={self.absent!r} must be a number")
            object.__setattr__(self, "absent", float(self.absent) if self.scored_by == "classes" else None)
        super().__post_init__()

    @property
    def columns(self) -> tuple[str, ...]:
        return {
            "classes": (TRUTH, SCORES),
            "positive": (TRUTH, CONFIDENCE),
            "predicted": (TRUTH, PREDICTION, CONFIDENCE),
            "labels": (TRUTH, PREDICTION),
        }[self.scored_by]

    @property
    def needed_columns(self) -> tuple[str, ...]:
        return tuple(name for name in self.columns if name in (SCORES, CONFIDENCE))

    def columns_for(self, available: Collection[str]) -> tuple[str, ...]:
        if SCORES in self.columns and SCORES not in available:
            raise SpecError(
                f"{self.kind} reads the scores of classes, and there are none: {GIVE_SCORES}; to read a confidence "
                "that is always the score of one class, use scored_by='positive' and label, that class"
            )
        found = super().columns_for(available)
        return (*found, CONFIDENCE_OF) if CONFIDENCE in found and CONFIDENCE_OF in available else found

    @property
    def named_labels(self) -> Sequence[Label]:
        return () if self.label is None else (self.label,)

    @property
    def otherwise(self) -> float:
        """The score of a class without one in a row, NaN if unknown."""
        if self.scored_by == "labels":
            return 0.0
        return np.nan if self.absent is None else self.absent

    def settled(self, labels: Labels) -> Self:
        """The metric itself; a SpecError if the confidence of one of three classes does not determine the others."""
        if self.label is not None and self.scored_by == "predicted":
            found = dict.fromkeys(label for name in self.label_columns for label in labels.get(name, ()))
            others = [label for label in found if label != self.label]
            if len(others) > 1:
                raise SpecError(
                    f"{self.kind}: with the classes {self.label!r}, {others[0]!r} and {others[1]!r} the confidence of "
                    "one does not determine the others; give the scores of all, or use scored_by='positive'"
                )
        return self

    def scored(self, columns: Columns) -> dict[str, np.ndarray]:
        """Codes of truths, a matrix of scores and the labels of its columns; NaN where a row has no score for one.

        With `label`, that is the only label, and other truths are -1. A row without truth or confidence is refused.
        """
        truth, labels = columns[TRUTH], columns[LABELS]
        self.check_truth(columns)
        if self.scored_by == "classes" and self.absent is not None:
            self._refuse_rows_without_scores(columns)
        if self.label is None:
            matrix = columns[SCORES] if self.scored_by == "classes" else one_hot(columns[PREDICTION], len(labels))
            return {TRUTH: truth, SCORES: matrix, LABELS: labels}
        places = [place for place, label in enumerate(labels.tolist()) if label == self.label]
        code = places[0] if places else -2
        if self.scored_by == "classes":
            score = columns[SCORES][:, code] if places else np.full(len(truth), np.nan)
        elif self.scored_by == "labels":
            score = has_label(columns[PREDICTION], code).astype(np.float64)
        else:
            score = numbers(columns, CONFIDENCE, self.kind)
            if self.scored_by == "predicted":
                score = np.where(class_of_confidence(columns) == code, score, 1 - score)
            else:
                self._refuse_others(columns, code)
        positive = np.fromiter([self.label], np.object_, 1)
        return {TRUTH: np.where(has_label(truth, code), 0, -1), SCORES: score[:, None], LABELS: positive}

    def check_truth(self, columns: Columns) -> None:
        """Raise an error if a row has no truth, or if rows have sets of labels and the metric takes none."""
        if columns[TRUTH].ndim == 2 and not (self.takes_sets and self.scored_by != "predicted"):
            setting = " with scored_by='predicted'" if self.takes_sets else ""
            raise SpecError(f"{self.kind}{setting} reads one label per row, but these rows have lists of labels")
        truth = columns[TRUTH]
        unknown = np.asarray(np.isnan(truth).any(axis=1) if truth.ndim == 2 else truth < 0)
        refuse(columns, unknown, lambda row: "is scored but has no truth; such rows must abstain")

    def _refuse_rows_without_scores(self, columns: Columns) -> None:
        """`absent` fills in single classes, not rows without any score."""
        bare = np.asarray(np.isnan(columns[SCORES]).all(axis=1))
        if len(bare) and bare.all():
            raise SpecError(
                f"{self.kind}: no row has scores of classes, and absent fills in single ones; {GIVE_SCORES}"
            )
        refuse(
            columns, bare, lambda row: "has no scores of classes, and absent fills in single ones; give the row some"
        )

    def _refuse_others(self, columns: Columns, code: int) -> None:
        if columns[TRUTH].ndim == 2:  # a set has no class of its confidence
            return
        of = columns.get(CONFIDENCE_OF, columns[TRUTH][:0])
        others = of[(of >= 0) & (of != code)]
        if len(others):
            raise SpecError(
                f"{self.kind}: scored_by='positive' takes the confidence as the score of {self.label!r}, but some rows "
                f"have that of {columns[LABELS][others[0]]!r}; use scored_by='classes', or for two classes "
                "scored_by='predicted'"
            )


def has_label(labels: np.ndarray, code: int) -> np.ndarray:
    """Which rows have the label with this code, from codes or from a matrix of sets; none for an unknown code."""
    if labels.ndim == 1:
        return np.asarray(labels == code)
    return np.asarray(labels[:, code] == 1) if code >= 0 else np.zeros(len(labels), np.bool_)


def class_of_confidence(columns: Columns) -> np.ndarray:
    """The code of the class that each row's confidence belongs to; by default the prediction's."""
    of, prediction = columns.get(CONFIDENCE_OF), columns[PREDICTION]
    return prediction if of is None else np.where(of >= 0, of, prediction)


def check_probabilities(columns: Columns, scores: np.ndarray, kind: str, *, whole: bool) -> None:
    """Raise a DataError unless scores, rows × labels with NaN for none, are probabilities.

    The scores of a row may add up to less than 1, unless `whole` is set.
    """
    outside = np.asarray(((scores < 0) | (scores > 1)).any(axis=1))
    refuse(columns, outside, lambda row: f"a score lies outside 0 and 1; {kind} needs probabilities")
    if scores.shape[1] > 1:
        total = np.nansum(scores, axis=1)
        least = np.where(np.isnan(scores).all(axis=1) | (not whole), 0.0, 1 - _ROUNDED)
        wrong = np.asarray((total > 1 + _ROUNDED) | (total < least))
        needed = f"{kind} needs probabilities, which add up to 1"
        refuse(columns, wrong, lambda row: f"the scores add up to {total[row]:.6g}; {needed}")


def one_hot(code: np.ndarray, n: int) -> np.ndarray:
    """1 for the label of each row, and NaN (see `otherwise`) for the others; a matrix of sets is returned as it is."""
    if code.ndim == 2:
        return code
    found = np.full((len(code), n), np.nan)
    known = code >= 0
    found[known, code[known]] = 1.0
    return found


GIVE_SCORES: Final = (
    "let outputs hold them as an object label → number under 'probabilities', or pass evaluate(…, "
    "scores=model.predict_proba(…))"
)
"""What to do if scores of classes are missing."""

_ROUNDED: Final = 1e-4  # tolerance for sums of many 32-bit floats
