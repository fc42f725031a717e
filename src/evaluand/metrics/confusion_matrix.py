"""How often each truth met each prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from evaluand.counts import Confusion, confusion, plain_number
from evaluand.metric import Columns


@dataclass(frozen=True, kw_only=True)
class ConfusionMatrix(Confusion):
    """How often each truth met each prediction; the value is the number, or weight, of all rows.

    The matrix stands in `data`: `classes`, in order, and `cells`, which are [truth, prediction, rows] by their places
    among the classes; what is not there is 0. Of more than 100 classes those with the fewest rows are put together as
    one class, called null.

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

    def told(self, rows: Columns, weight: np.ndarray) -> dict[str, Any]:
        classes, table = confusion(rows, weight)
        cells = np.argwhere(table > 0).tolist()
        return {"classes": classes, "cells": [[i, j, plain_number(table[i, j])] for i, j in cells]}
