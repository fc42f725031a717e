"""The share of rows that are predicted as a class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from evaluand.metrics.accuracy import Accuracy
from evaluand.metrics.base.class_ratio import check_labels, choose_positive
from evaluand.metrics.base.confusion import PREDICTION, Label, has_sets
from evaluand.metrics.base.metric import LABELS, VALUE, Columns, Labels, State, Values, refuse


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
