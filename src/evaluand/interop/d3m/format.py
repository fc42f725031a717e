"""D3M's documents as a format of problems: what the commands `score` and `problem` find by the registry."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from evaluand.core.files.json import Findings
from evaluand.interop.d3m.folder import ProblemFolder, examine_folder
from evaluand.interop.d3m.names import WORDS, name_of, translate
from evaluand.interop.d3m.paths import PROBLEM, below
from evaluand.interop.d3m.scores import LAYOUTS, scores_table
from evaluand.interop.d3m.truth import read_problem_truth
from evaluand.problem.formats import OpenProblem, ProblemFormat
from evaluand.problem.problem import Problem
from evaluand.problem.truth import ProblemTruth

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
