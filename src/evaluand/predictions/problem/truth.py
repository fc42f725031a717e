"""A problem with its truth: the right target values, and which rows each part of the split tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import DataError, Fault
from evaluand.core.files.cells import typed
from evaluand.core.files.json import Findings
from evaluand.data.split import NOT_TESTED, Folds
from evaluand.predictions.problem.files import read_cells, read_header
from evaluand.predictions.problem.formats import ProblemFormat
from evaluand.predictions.problem.layout import FileLayout, guess_layout
from evaluand.predictions.problem.problem import Problem
from evaluand.predictions.problem.sides import MOST_SHOWN, Side, repeated_faults

Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, eq=False)
class RowKeys:
    """The index of the table whose rows are split.

    Attributes:
        columns: the columns of the index, first the one that names rows.
        positions: the number of the example that each row belongs to.
        repeated: whether several rows may have the same first index.
    """

    columns: Mapping[str, pa.Array]
    positions: np.ndarray[Any, np.dtype[np.int64]]
    repeated: bool = False

    @property
    def count(self) -> int:
        """The number of examples."""
        return int(self.positions.max(initial=-1)) + 1


@dataclass(frozen=True)
class ProblemTruth:
    """A problem with the truth of its tested rows.

    Attributes:
        document: the problem's document; of an inline problem the truth file.
        name: how messages name the document.
        cells: the truth file.
        parts: (repeat, fold) → which rows of the truth are tested.
        known: the index of all rows of the dataset by column, and its attributes as text; no columns if unknown.
        predictions_path: where the problem expects predictions; raises a DataError if that is outside its folder.
        untested: why no row is known to be tested, so that predictions must be of all; None where the tested are known.
    """

    problem: Problem
    document: Path
    name: str
    layout: FileLayout
    cells: Side
    parts: Mapping[tuple[int, int], Mask]
    known: Mapping[str, pa.Array]
    predictions_path: Callable[[], Path]
    format: ProblemFormat
    untested: Fault | None = None

    @property
    def definition(self) -> str | None:
        """The public definition that the document's version of the schema goes with; None without a document."""
        return None if self.is_inline else self.format.definition_of(self.document)

    @property
    def is_inline(self) -> bool:
        """Whether the problem has no document."""
        return self.document == self.cells.path

    def for_files(self, paths: Iterable[Path]) -> ProblemTruth:
        """The same, with rows matched by a column that all of these files have too."""
        layout = self.layout
        for path in paths if layout.second_key is not None else ():
            layout = layout.for_file(read_header(path))
        return replace(self, layout=layout)


def read_guessed_truth(problem: Problem, path: Path, findings: Findings) -> tuple[FileLayout | None, Side | None]:
    """A truth file without a dataset's document, and its layout by its header and by what the problem says."""
    try:
        header = read_header(path)
    except DataError as error:
        findings.faults += error.faults
        return None, None
    layout = guess_layout(problem, header)
    if layout is None:
        findings.fault(str(path), "missing_column", "no column names the rows; add an index such as d3mIndex")
        return None, None
    cells = read_cells(path, layout, findings)
    if cells is None:
        return layout, None
    for name in layout.index:
        wrong = dict[int, str]()
        numbers = typed(cells.table.column(name).combine_chunks(), "integer", wrong.__setitem__)
        if not wrong:
            table = cells.table.set_column(cells.table.column_names.index(name), name, numbers)
            cells = replace(cells, table=table)
            layout = replace(layout, index_types={**layout.index_types, name: "integer"})
    if layout.gathers and layout.index[0] != layout.key:
        names_images = pc.count_distinct(cells.table.column(layout.index[0])).as_py() < cells.table.num_rows
        layout = replace(layout, second_key=layout.index[0] if names_images else None)
    return layout, cells


def split_parts(
    truth: Side, layout: FileLayout, keys: RowKeys | None, folds: Folds | None, findings: Findings
) -> dict[tuple[int, int], Mask]:
    """Which rows of the truth each fold of each repeat tests; all of them in one part where there is no split."""
    if not layout.repeats and not layout.gathers:
        codes = np.asarray(truth.column(layout.key).dictionary_encode().indices.fill_null(-1))
        findings.faults += repeated_faults(truth, [layout.key], codes)
    numbers = np.zeros((1, truth.table.num_rows), np.int32)
    if keys is not None and folds is not None:
        numbers = _fold_numbers(truth, layout, keys, folds, findings)
    tested = (numbers >= 0).any(axis=0)
    for name in [layout.key] if layout.sets else layout.columns:
        empty = np.asarray(truth.table.column(name).is_null()) & tested
        findings.faults += truth.faults(empty, name, "empty_value", "is empty; a tested row needs its true value")
    parts = ((repeat, fold) for repeat in range(len(numbers)) for fold in range(numbers.max(initial=0) + 1))
    return {(r, f): mask for r, f in parts if (mask := numbers[r] == f).any()}


def _fold_numbers(
    truth: Side, layout: FileLayout, keys: RowKeys, folds: Folds, findings: Findings
) -> np.ndarray[Any, Any]:
    """repeats × rows of the truth: the fold that tests a row, or -1."""
    mine = truth.column(layout.key)
    dataset_keys = keys.columns[layout.key].cast(mine.type)
    rows = pc.index_in(mine, value_set=dataset_keys, skip_nulls=True)
    unknown = np.asarray(pc.is_null(rows))
    message = lambda row: f"the dataset has no row with the index {mine[row]}"  # noqa: E731
    findings.faults += truth.faults(unknown, layout.key, "extra_row", message)
    tested = (folds.numbers[:, keys.positions] >= 0).any(axis=0)
    without_truth = tested & ~np.asarray(pc.is_in(dataset_keys, value_set=mine))
    for row in np.flatnonzero(without_truth)[:MOST_SHOWN].tolist():
        missing = f"the tested row {dataset_keys[row]} is not in the truth"
        findings.faults.append(truth.fault("missing_row", missing, column=layout.key))
    numbers = folds.numbers[:, keys.positions[np.asarray(rows.fill_null(0))]]
    return np.where(unknown, NOT_TESTED, numbers)
