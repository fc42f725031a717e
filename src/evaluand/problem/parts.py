"""Prediction files and the parts of a split that they are for: one part each, or all folds of a repeat."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import SpecError
from evaluand.core.files.json import Findings
from evaluand.core.files.paths import require_within
from evaluand.problem.files import FileCells, check_rows, read_predictions
from evaluand.problem.truth import Mask, ProblemTruth


@dataclass(frozen=True, kw_only=True)
class Part:
    """The tested rows of one fold of one repeat, with their truth and predictions.

    Attributes:
        truth: the tested rows with their true values.
        predictions: the rows of predictions for them.
        cells: the file of the predictions.
        truth_rows: which rows of the truth file these are.
        prediction_rows: which rows of the prediction file these are.
    """

    repeat: int
    fold: int
    truth: pa.Table
    predictions: pa.Table
    cells: FileCells = field(repr=False)
    truth_rows: np.ndarray[Any, np.dtype[np.int64]] = field(repr=False)
    prediction_rows: np.ndarray[Any, np.dtype[np.int64]] = field(repr=False)

    @property
    def file(self) -> Path:
        """The prediction file."""
        return self.cells.path


def find_files(truth: ProblemTruth) -> list[Path]:
    """The prediction file where the problem expects it, else the numbered files in that folder.

    Raises:
        DataError: a link leaves the problem's folder.
        SpecError: there are none.
    """
    expected = truth.predictions_path()
    if expected.is_file():
        return [expected]
    candidates = sorted(expected.parent.glob("*.csv"))
    numbered = [path for path in candidates if path.stem.startswith(expected.stem) and any(_numbers_in(path).values())]
    if not numbered:
        raise SpecError(
            f"{expected}: there are no predictions", python="give predictions", command="give --predictions FILE"
        )
    return [require_within(path, expected.parent) for path in numbered]


def assign_files(files: Sequence[Path], truth: ProblemTruth) -> dict[Path, list[tuple[int, int]]]:
    """The parts that each file is for; each part has one file.

    Raises:
        SpecError: a part has no file or two, or a file is for no part.
    """
    assigned: dict[Path, list[tuple[int, int]]] = {}
    files_of: dict[tuple[int, int], Path] = {}
    if not truth.parts:
        raise SpecError(f"{truth.document}: the split tests no row, so there is nothing to score")
    twice = next((path for place, path in enumerate(files) if path in files[:place]), None)
    if twice is not None:
        raise SpecError(f"{twice}: is given twice; give each file once")
    for path in files:
        for part in _parts_of_file(path, truth, alone=len(files) == 1):
            if part in files_of:
                repeat, fold = part
                raise SpecError(f"{path}: {files_of[part]} is for repeat {repeat}, fold {fold} too; give one of them")
            files_of[part] = path
            assigned.setdefault(path, []).append(part)
    missing = [part for part in truth.parts if part not in files_of]
    if missing:
        repeat, fold = missing[0]
        count = f"{len(missing)} of {len(truth.parts)} parts have no predictions, first repeat {repeat}, fold {fold}"
        raise SpecError(f"{count}; name their files such as {_example_name(truth)}")
    return assigned


def read_parts(files: Mapping[Path, list[tuple[int, int]]], truth: ProblemTruth, findings: Findings) -> Iterator[Part]:
    """The rows of each part, after all of them were checked against the tested rows."""
    layout = truth.layout
    for path, parts in files.items():
        cells = read_predictions(path, layout, findings)
        if cells is None:
            continue
        tested = _select(truth.cells.table, np.any([truth.parts[part] for part in parts], axis=0))
        check_rows(cells, tested, truth.known, layout, findings)
        for part in parts:
            mine = np.ones(cells.table.num_rows, bool)
            if len(parts) > 1:
                tested = _select(truth.cells.table, truth.parts[part])
                keys = tested.column(layout.key).combine_chunks()
                mine = np.asarray(pc.is_in(cells.keys(layout), value_set=keys))
            yield Part(
                repeat=part[0],
                fold=part[1],
                truth=tested,
                predictions=_select(cells.table, mine),
                cells=cells,
                truth_rows=np.flatnonzero(truth.parts[part]),
                prediction_rows=np.flatnonzero(mine),
            )


_NUMBERED: Final = {"repeat": re.compile(r"(?:repeat|rep)[_-]?(\d+)"), "fold": re.compile(r"fold[_-]?(\d+)")}


def _numbers_in(path: Path) -> dict[str, str | None]:
    matches = {name: pattern.search(path.stem.lower()) for name, pattern in _NUMBERED.items()}
    return {name: match[1] if match else None for name, match in matches.items()}


def _parts_of_file(path: Path, truth: ProblemTruth, *, alone: bool) -> list[tuple[int, int]]:
    repeats = len({repeat for repeat, _ in truth.parts})
    numbers = {name: None if text is None else int(text) for name, text in _numbers_in(path).items()}
    if alone and len(truth.parts) == 1:
        numbers = {"repeat": None, "fold": None}
    if repeats > 1 and numbers["repeat"] is None:
        example = _example_name(truth)
        raise SpecError(f"{path}: the split has {repeats} repeats; name one file for each, such as {example}")
    parts = [(r, f) for r, f in truth.parts if numbers["repeat"] in (None, r) and numbers["fold"] in (None, f)]
    if not parts:
        named = ", ".join(f"{name} {number}" for name, number in numbers.items() if number is not None)
        raise SpecError(f"{path}: the split has no {named}")
    return parts


def _example_name(truth: ProblemTruth) -> str:
    return f"{Path(truth.problem.outputs.predictions).stem}_repeat0_fold0.csv"


def _select(table: pa.Table, mask: Mask) -> pa.Table:
    return table if mask.all() else table.filter(pa.array(mask))
