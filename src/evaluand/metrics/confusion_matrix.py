"""How often each truth met each prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from evaluand.metrics.base.confusion import Confusion, confusion, json_number
from evaluand.metrics.base.curves import PARTS, Curve, Drawn, part_name
from evaluand.metrics.base.metric import WEIGHT, Columns, Metric, State


@dataclass(frozen=True, kw_only=True)
class ConfusionMatrix(Confusion):
    """How often each truth met each prediction; the value is the number, or weight, of all rows.

    `data` holds the matrix: `classes`, in order, and `cells` [truth, prediction, rows], with truth and prediction as
    positions among the classes; absent cells are 0. Of more than 100 classes, those with the fewest rows are merged
    into one, called null.

    Args:
        weighted: each row counts by the weight of its example.
        confidence: None; a count of rows has no interval.

    Example:
        >>> ConfusionMatrix().signature
        'confusion_matrix v1 missing=leave_out reduce=first'
    """

    kind = "confusion_matrix"

    confidence: None = None

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
        cells = np.argwhere(table > 0).tolist()
        return {"classes": classes, "cells": [[i, j, json_number(table[i, j])] for i, j in cells]}
