"""Checks that a problem fits its data (columns, index, media files and split), and the layout of its files."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import DataError, nearest
from evaluand.core.files.json import Findings
from evaluand.core.files.paths import require_within
from evaluand.data.columns import join_chunks
from evaluand.data.split import Folds
from evaluand.interop.d3m.dataset import (
    LEARNING,
    DatasetDocument,
    Resource,
    gathered_positions,
    read_table,
)
from evaluand.interop.d3m.names import COLUMN_TYPES
from evaluand.interop.d3m.needed import Needed, needed_of_dataset
from evaluand.interop.d3m.splits import examine_splits
from evaluand.predictions.problem.layout import FileLayout, layout_of
from evaluand.predictions.problem.problem import Division, Problem, TargetDataset
from evaluand.predictions.problem.sides import MOST_SHOWN, Side, repeated
from evaluand.predictions.problem.truth import RowKeys


def learning_resource(document: DatasetDocument, targets: TargetDataset) -> Resource | None:
    """The learning table: the one that the targets name, else the dataset's own."""
    ids = {target.resource for target in targets.targets}
    if len(ids) == 1:
        resource = document.resource(next(iter(ids)))
        if resource is not None and resource.type == "table" and not resource.collection:
            return resource
    return document.learning


def needed_columns(dataset: DatasetDocument, expected: TargetDataset) -> Needed:
    """Which faults of a dataset's document are in the table, or the columns of index and targets."""
    resource = learning_resource(dataset, expected)
    if resource is None:
        return needed_of_dataset(None, ())
    names = {target.name for target in expected.targets} | {column.name for column in resource.index}
    places = [i for i, column in enumerate(resource.columns) if column.name in names]
    return needed_of_dataset(dataset.resources.index(resource), places)


def check_table(
    number: int,
    expected: TargetDataset,
    dataset: DatasetDocument,
    findings: Findings,
    problem: Findings,
    document: Findings,
    *,
    attributes: bool = True,
) -> pa.Table | None:
    """The learning table of a dataset, checked with what the problem says of it.

    Args:
        number: the position of the dataset in the problem.
        expected: what the problem says of it.
        findings: of the table.
        problem: of the problem's document.
        document: of the dataset's document.
    """
    places, rows = Findings(), Findings()
    table = _read_learning_table(expected, dataset, rows, document, attributes)
    unread = any(fault.code in ("bad_csv", "no_such_file") for fault in (*rows.faults, *document.faults))
    findings.faults += rows.faults
    findings.notes += rows.notes
    for key, columns in (("targets", expected.targets), ("privilegedData", expected.privileged)):
        for i, column in enumerate(columns):
            _check_place(column, f"inputs.data[{number}].{key}[{i}]", dataset, places)
    if expected.horizon is not None:
        _check_place(expected.horizon.place, f"inputs.data[{number}].forecastingHorizon", dataset, places)
    problem.faults += [fault for fault in places.faults if not (unread and fault.code == "no_such_column")]
    return table


def _read_learning_table(
    expected: TargetDataset, dataset: DatasetDocument, findings: Findings, document: Findings, attributes: bool
) -> pa.Table | None:
    assert dataset.folder is not None
    resource = learning_resource(dataset, expected)
    if resource is None:
        document.fault("dataResources", "no_learning_table", f"there is no table {LEARNING!r}")
        return None
    where = f"dataResources[{dataset.resources.index(resource)}]"
    if not resource.index:
        document.fault(f"{where}.columns", "no_index", "no column has the role index or multiIndex")
    needed = {target.name for target in expected.targets} | {column.name for column in resource.index}
    side = read_table(dataset.folder, resource, findings, where, None if attributes else needed, document)
    if side is None or not resource.index:
        return None
    _check_index(resource, side, findings)
    if attributes:
        _check_media(dataset, resource, side, findings, document, where)
    return side.table


def _check_place(expected: Any, place: str, dataset: DatasetDocument, findings: Findings) -> None:
    """Checks that a column is where the problem says, by number and by name."""
    resource = dataset.resource(expected.resource)
    if resource is None:
        known = ", ".join(one.id for one in dataset.resources)
        message = f"dataset {dataset.id!r} has no resource {expected.resource!r}; it has {known}"
        resource = dataset.learning
        if resource is None or len(dataset.resources) > 1:
            return findings.fault(f"{place}.resID", "no_such_resource", message)
        findings.fault(f"{place}.resID", "other_resource", f"{message} only, which is read")
    if resource.collection or not resource.columns:
        message = f"resource {resource.id!r} of dataset {dataset.id!r} is not a table with columns"
        return findings.fault(f"{place}.resID", "not_a_table", message)
    by_index = next((column for column in resource.columns if column.index == expected.column), None)
    by_name = resource.column(expected.name)
    if by_index is not None and by_index.name == expected.name:
        return None
    if by_name is not None:
        message = f"is {expected.column}, but in dataset {dataset.id!r} {expected.name!r} is column {by_name.index}"
        return findings.fault(f"{place}.colIndex", "column_mismatch", message)
    names = [column.name for column in resource.columns]
    if by_index is None:
        message = f"dataset {dataset.id!r} has neither a column {expected.column} nor a column {expected.name!r}"
        return findings.fault(f"{place}.colName", "no_such_column", message + nearest(expected.name, names))
    message = f"is {expected.name!r}, but column {expected.column} of dataset {dataset.id!r} is {by_index.name!r}"
    return findings.fault(f"{place}.colName", "column_mismatch", message)


def _check_index(resource: Resource, side: Side, findings: Findings) -> None:
    """Checks that the index has no empty values, and no repeated ones unless it is a multiIndex."""
    for name in (column.name for column in resource.index):
        empty = np.asarray(side.column(name).is_null())
        findings.faults += side.faults(empty, None, "empty_index", f"{name} is empty")
    first = resource.index[0]
    if "multiIndex" in first.roles:
        return
    codes, values = gathered_positions(side.table.column(first.name)).to_numpy(), side.column(first.name)

    def message(row: int) -> str:
        before = side.line(int(np.flatnonzero(codes == codes[row])[0]))
        return f"{first.name} {values[row]} occurs twice (first at {side.path}:{before})"

    findings.faults += side.faults(repeated(codes), None, "twice", message)


def _check_media(
    dataset: DatasetDocument,
    resource: Resource,
    side: Side,
    findings: Findings,
    document: Findings,
    place: str,
) -> None:
    """Checks that the media files that columns name exist, if their folder exists."""
    for i, column in enumerate(resource.columns):
        if column.refers_to is None or not column.refers_to.item or column.name not in side.table.column_names:
            continue
        media = dataset.resource(column.refers_to.resource)
        if media is None or dataset.folder is None:
            continue
        folder = dataset.folder / media.path
        if not os.path.isdir(folder):
            document.note(f"{place}.columns[{i}].refersTo", "no_media", f"there is no folder {media.path}")
        values = side.column(column.name).cast(pa.string())
        outside, missing = [], []
        for name in values.unique().drop_null().to_pylist():
            try:
                if not os.path.isfile(dataset.media(column, name)) and os.path.isdir(folder):
                    missing.append(name)
            except DataError:
                outside.append(name)
        for names, code, problem in (
            (outside, "unsafe_path", "leads out of its folder"),
            (missing, "no_such_media", f"is not in {media.path}"),
        ):
            rows = np.flatnonzero(pc.is_in(values, pa.array(names, pa.string())))
            texts = {row: f"{column.name}: {values[row].as_py()!r} {problem}" for row in rows[:MOST_SHOWN].tolist()}
            findings.faults += side.faults(rows, None, code, texts.__getitem__)


def check_splits(
    path: Path,
    folder: Path,
    division: Division,
    keys: RowKeys | None,
    findings: Findings,
    problem: Findings,
    part: str | None = None,
) -> Folds | None:
    """The split of a file, after it was checked against the rows of the main dataset and what the problem says of it.

    Args:
        folder: which the path may not leave.
        keys: the rows of the dataset; None if they cannot be read.
        findings: of the file.
        problem: of the problem's document.
        part: of the data that the rows are, see `part_of`.
    """
    try:
        require_within(path, folder)
    except DataError:
        problem.fault("inputs.dataSplits.splitsFile", "unsafe_path", f"{division.file!r} leads out of the folder")
        return None
    folds = None if keys is None else examine_splits(path, keys, findings, part)
    if folds is not None:
        _check_division(folds, division, problem)
    return folds


def _check_division(folds: Folds, division: Division, findings: Findings) -> None:
    """Checks that the file divides the rows as the document says; shares only where all of the data is present."""
    place = "inputs.dataSplits"
    repeats, n = folds.numbers.shape
    if repeats != division.repeats:
        findings.note(
            f"{place}.numRepeats", "other_split", f"is {division.repeats}, but the file has {repeats} repeats"
        )
    tested = (folds.numbers >= 0).sum(axis=1)
    if division.method == "folds":
        if division.folds is not None and folds.count != division.folds:
            findings.fault(
                f"{place}.numFolds", "other_split", f"is {division.folds}, but the file has {folds.count} folds"
            )
        elif (tested < n).any():
            message = f"is kFold, but the file tests {int(tested.min()):,} of {n:,} examples in a repeat"
            findings.fault(f"{place}.method", "never_tested", message)
        return
    if folds.count > 1:
        findings.fault(f"{place}.method", "other_split", f"is holdOut, but the file has {folds.count} folds")
    elif division.test is not None and tested.min() > 0 and tested.max() < n:
        share = tested.max() / n
        if abs(share - division.test) > max(0.01, 1 / n):
            message = f"is {division.test:g}, but the file tests {share:.3g} of the examples"
            findings.note(f"{place}.testSize", "other_split", message)


def row_keys(resource: Resource, table: pa.Table) -> RowKeys:
    """The index of a learning table, and which example each row belongs to."""
    gathers = resource.gathers
    columns = {column.name: join_chunks(table.column(column.name)) for column in resource.index}
    by = gathered_positions(table.column(gathers.name)).to_numpy() if gathers else np.arange(len(table))
    return RowKeys(columns, by, repeated="multiIndex" in resource.index[0].roles)


def declared_layout(problem: Problem, resource: Resource) -> FileLayout:
    """The layout of prediction and truth files, by the learning table; a SpecError unless one dataset has targets."""
    types = {column.name: COLUMN_TYPES[column.type] for column in resource.columns}
    index = tuple(column.name for column in resource.index)
    return layout_of(problem, index, types, several_rows="multiIndex" in resource.index[0].roles)
