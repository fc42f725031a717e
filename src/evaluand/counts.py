"""Confusion counts: how often each truth met each prediction, and what of it each class comes to.

The table of combinations is sparse and has a row for each that occurred (see `Statistic`, `counted`), so it does not
grow with the rows of the data, and the counts of classes are sums of it, for many weightings at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from evaluand.metric import LABELS, Columns, refuse
from evaluand.statistic import Statistic

TRUTH, PREDICTION = "truth", "prediction"


@dataclass(frozen=True, kw_only=True)
class Confusion(Statistic):
    """A function of how often each truth met each prediction; reads the table of the scorer `prediction`."""

    counted = True
    keeps: ClassVar[tuple[str, ...]] = (TRUTH, PREDICTION)

    @property
    def columns(self) -> tuple[str, ...]:
        return (TRUTH, PREDICTION)

    @property
    def label_columns(self) -> tuple[str, ...]:
        return (TRUTH, PREDICTION)

    def prepare(self, columns: Columns) -> Columns:
        for name in self.columns:
            _refuse_missing(columns, name)
        return {name: columns[name] for name in (*self.columns, LABELS)}


def _refuse_missing(columns: Columns, name: str) -> None:
    refuse(columns, columns[name] < 0, lambda row: f"is scored but has no {name}; a row without one abstains")


class ClassCounts(NamedTuple):
    """Sums of weights, replicates × classes; the classes are those that occur, in the order of the vocabulary."""

    classes: np.ndarray  # codes
    expected: np.ndarray  # the truth is this class
    predicted: np.ndarray
    right: np.ndarray  # both


def class_counts(rows: Columns, weight: np.ndarray) -> ClassCounts:
    """What each class comes to.

    Args:
        rows: codes of `truth` and `prediction`.
        weight: replicates × rows.
    """
    truth, prediction = rows[TRUTH], rows[PREDICTION]
    classes, code = np.unique(np.concatenate([truth, prediction]), return_inverse=True)
    expected, predicted = code[: len(truth)], code[len(truth) :]
    sums = (
        _by_class(codes, each, len(classes))
        for codes, each in (
            (expected, weight),
            (predicted, weight),
            (expected, weight * (truth == prediction)),
        )
    )
    return ClassCounts(classes, *sums)


def _by_class(code: np.ndarray, weight: np.ndarray, n: int) -> np.ndarray:
    return np.stack([np.bincount(code, each, minlength=n) for each in weight])


def by_name(labels: np.ndarray) -> list[int]:
    """The order in which classes are shown: numbers by size, text by code points, bools false first."""
    named: list[tuple[Any, int]] = sorted((label, place) for place, label in enumerate(labels.tolist()))
    return [place for _, place in named]
