"""D3M's documents as a format of problems: what the commands `score` and `problem` find by the registry."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from evaluand.core.errors import SpecError
from evaluand.core.files.json import Findings
from evaluand.interop.d3m.folder import PROBLEM, ProblemFolder, below, examine_folder
from evaluand.interop.d3m.names import METRICS, UPPER, WORDS, name_of, translate
from evaluand.interop.d3m.truth import read_problem_truth
from evaluand.problem.definitions import DEFINITIONS, STANDARD
from evaluand.problem.formats import OpenProblem, ProblemFormat
from evaluand.problem.problem import Problem
from evaluand.problem.truth import ProblemTruth

if TYPE_CHECKING:
    from evaluand.experiment.scoring import Score

LAYOUTS: Final = ("3.1.1", "4")
_ATTRIBUTES: Final = {"metric": "metric", "k": "K", "positive": "posLabel", "jointly": "applicabilityToTarget"}


class D3MFormat(ProblemFormat):
    """problemDoc.json with datasetDoc.json, dataSplits.csv and targets.csv; scores.csv."""

    kind = "d3m"
    score_layouts = LAYOUTS

    def recognises(self, path: Path) -> bool:
        return path.is_file() or next(below(path, PROBLEM), None) is not None

    def examine(self, path: Path, part: str | None) -> tuple[ProblemFolder | None, Findings]:
        return examine_folder(path, part)

    def read_truth(
        self, problem: Path | OpenProblem | Problem, truth: Path | None, part: str | None
    ) -> tuple[ProblemTruth | None, Findings]:
        if not isinstance(problem, Path | ProblemFolder | Problem):
            raise TypeError(f"{type(problem).__name__} is not a problem of D3M")
        return read_problem_truth(problem, truth, part, self)

    def metric_name(self, word: str) -> str:
        return name_of(word)

    def metric_word(self, name: str) -> str:
        return WORDS.get(name, name)

    def translate(self, message: str) -> str:
        return translate(message)

    def criterion_path(self, number: int, attribute: str | None) -> str:
        path = f"inputs.performanceMetrics[{number}]"
        return f"{path}.{_ATTRIBUTES[attribute]}" if attribute else path

    def scores_table(self, rows: Sequence[Any], problem: Problem, layout: str) -> pa.Table:
        return scores_table(rows, problem, layout)


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
