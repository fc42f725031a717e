"""scores.csv in the layouts of D3M's schemas 3.1.1 and 4."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from evaluand.core.errors import SpecError
from evaluand.interop.d3m.names import METRICS, UPPER
from evaluand.problem.definitions import DEFINITIONS, STANDARD
from evaluand.problem.problem import Problem

if TYPE_CHECKING:
    from evaluand.experiment.scoring import Score

LAYOUTS: Final = ("3.1.1", "4")


def scores_table(rows: Sequence[Score], problem: Problem, layout: str) -> pa.Table:
    """The rows of scores.csv; an undefined value is empty.

    Args:
        rows: the scores.
        problem: what was predicted.
        layout: `3.1.1`: index, problemID, metric, value; `4`: metric, value, normalized, randomSeed, fold.

    Raises:
        SpecError: there is no such layout.
    """
    if layout not in LAYOUTS:
        raise SpecError(f"unknown layout {layout!r} of scores; give {' or '.join(LAYOUTS)}")
    values = pa.array([None if math.isnan(row.value) else row.value for row in rows], pa.float64())
    if layout == "3.1.1":
        return pa.table(
            {
                "index": pa.array(range(len(rows)), pa.int64()),
                "problemID": pa.array([problem.id] * len(rows)),
                "metric": pa.array([row.metric for row in rows]),
                "value": values,
            }
        )
    seed = problem.division.seed if problem.division else None
    folds = 1 + max(row.fold for row in rows)
    return pa.table(
        {
            "metric": pa.array([_upper_case(row.metric) for row in rows]),
            "value": values,
            "normalized": pa.array([_normalised(row) for row in rows], pa.float64()),
            "randomSeed": pa.array([seed or 0] * len(rows), pa.int64()),
            "fold": pa.array([row.repeat * folds + row.fold for row in rows], pa.int64()),
        }
    )


def _upper_case(word: str) -> str:
    name = METRICS.get(word, word)
    return UPPER.get(name, name.upper())


def _normalised(row: Score) -> float | None:
    """The value from 0, the worst, to 1, the best, by the rule of schema 4; None where that has no rule."""
    name = METRICS.get(row.metric)
    if math.isnan(row.value) or name is None:
        return None
    if DEFINITIONS[STANDARD][name].reads == "numbers":
        best = 1.0 if name == "r_squared" else 0.0
        return 2 / (1 + math.exp(min(abs(best - row.value), 700.0)))
    return 1 - row.value if name == "hamming_loss" else row.value
