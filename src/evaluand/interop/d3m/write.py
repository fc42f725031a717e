"""Writes the folder of a problem as a whole or not at all, without replacing anything unless asked to."""

import os
import tempfile
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import SpecError, nearest
from evaluand.core.files.csv import write_table
from evaluand.core.files.paths import require_within
from evaluand.core.key_columns import INDEX
from evaluand.data.dataset import Dataset
from evaluand.data.split import Folds
from evaluand.interop.d3m.dataset import (
    LEARNING,
    Column,
    DatasetDocument,
    Resource,
    described,
    write_dataset,
)
from evaluand.interop.d3m.documents import DATASET, PROBLEM
from evaluand.interop.d3m.folder import ProblemFolder, open_folder
from evaluand.interop.d3m.problem import SPLITS_FILE, write_problem
from evaluand.interop.d3m.splits import write_splits
from evaluand.predictions.problem.problem import Problem
from evaluand.predictions.problem.truth import RowKeys
from evaluand.store import tables as rows


def write_folder(
    path: str | os.PathLike[str],
    problem: Problem,
    dataset: Dataset,
    folds: Folds | None = None,
    *,
    version: str = "4.1.1",
    overwrite: bool = False,
) -> ProblemFolder:
    """Writes a problem with its data as `NAME_dataset`, `NAME_problem` and `NAME_solution`, and opens it.

    The learning table has the dataset's `_index_` as d3mIndex, then its columns. The problem's targets are found in it
    by name. Where a target is a list of texts or of boxes, an example has a row for each item, or one empty row, and
    d3mIndex is a multiIndex.

    Args:
        path: the folder to make; its name is NAME.
        problem: with one dataset.
        dataset: the examples.
        folds: their split; made by the problem's division if not given.
        version: of the schema.
        overwrite: whether to replace files of these names in an existing folder; other files stay.

    Raises:
        SpecError: the folder exists already, the problem has not one dataset, a target is no column, or the split's
            file would be the problem's document.
        DataError: the version cannot say what the problem says, or a link in the folder leads out of it.
    """
    root = Path(path)
    if not overwrite and os.path.lexists(root) and not (root.is_dir() and not any(root.iterdir())):
        raise SpecError(f"{root}: exists already; give a new folder, or overwrite=True")
    if len(problem.datasets) != 1:
        raise SpecError(f"a folder can have only one dataset, but the problem has {len(problem.datasets)}")
    splits = (problem.division.file if problem.division else None) or SPLITS_FILE
    if PurePosixPath(splits.casefold()) == PurePosixPath(PROBLEM.casefold()):
        raise SpecError(f"division.file: {splits!r} is the problem's own document; choose another name for the split")
    root.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{root.name[:100]}-", dir=root.parent) as place:
        draft = Path(place) / "folder"
        _write(draft, Path(os.path.abspath(root)).name, problem, dataset, folds, splits, version)
        _put(draft, root)
    return open_folder(root)


def _write(
    root: Path, name: str, problem: Problem, dataset: Dataset, folds: Folds | None, splits: str, version: str
) -> None:
    targets = [target.name for target in problem.targets]
    table, columns, positions = _learning_table(dataset, targets)
    placed = _placed(problem, [column.name for column in columns])
    if folds is None and placed.division is not None:
        folds = placed.division.split().assign(dataset)
    resource = Resource(
        id=LEARNING,
        path=f"tables/{LEARNING}.csv",
        type="table",
        formats=("text/csv",),
        columns=tuple(replace(c, roles=("suggestedTarget",)) if c.name in targets else c for c in columns),
    )
    document = DatasetDocument(id=placed.datasets[0].id, name=dataset.name, resources=(resource,))
    places = {part: root / f"{name}_{part}" for part in ("dataset", "problem", "solution")}
    for part in places.values():
        part.mkdir(parents=True)
    write_problem(placed, places["problem"] / PROBLEM, version)
    write_dataset(document, places["dataset"] / DATASET, version)
    write_table(table, places["dataset"] / resource.path)
    if folds is not None:
        repeated = len(table) > len(dataset)
        keys = RowKeys({"d3mIndex": table.column("d3mIndex").combine_chunks()}, positions, repeated)
        write_splits(places["problem"] / splits, folds, keys)


def _put(draft: Path, root: Path) -> None:
    """Moves a folder to its place; into an existing one file by file."""
    if not os.path.lexists(root):
        os.replace(draft, root)
        return
    written = sorted(draft.rglob("*"))
    for path in written:  # all are checked before any is replaced
        place = require_within(root / path.relative_to(draft), root)
        if place.exists() and place.is_dir() != path.is_dir():
            raise SpecError(f"{place}: is {'a folder' if place.is_dir() else 'a file'}; move it")
    for path in written:
        place = root / path.relative_to(draft)
        if path.is_dir():
            place.mkdir(exist_ok=True)
        else:
            os.replace(path, place)


def _learning_table(
    dataset: Dataset, targets: list[str]
) -> tuple[pa.Table, list[Column], np.ndarray[Any, np.dtype[np.int64]]]:
    """The examples as cells of text, what describes them, and the example of each row."""
    names = [name for name in dataset.schema.names if name not in (INDEX, "d3mIndex")]
    source = pa.Table.from_batches(dataset.columns([INDEX, *names]))
    kinds = dict(described(source.schema))
    lists = [  # of labels or boxes, not vectors
        name for name in targets if kinds.get(name) == "string" and pa.types.is_list(source.schema.field(name).type)
    ]
    positions = np.arange(len(source))
    if lists:
        source, positions = _by_item(source, lists)
    table = {"d3mIndex": source.column(INDEX)}
    columns = [Column(index=0, name="d3mIndex", type="integer", roles=("multiIndex" if lists else "index",))]
    kinds = dict(described(source.schema))
    for i, name in enumerate(names, 1):
        values = source.column(name)
        if kinds[name] == "realVector":
            values = pc.binary_join(values.cast(pa.list_(pa.string())), ",")
        elif kinds[name] == "string" and rows.is_json(source.schema.field(name)):
            kinds[name] = "json"
        elif kinds[name] == "string" and not pa.types.is_string(values.type):
            values = _as_text(name, values)
        table[name] = values
        columns.append(Column(index=i, name=name, type=kinds[name], roles=("attribute",)))
    return pa.table(table), columns, positions


def _by_item(table: pa.Table, lists: list[str]) -> tuple[pa.Table, np.ndarray[Any, np.dtype[np.int64]]]:
    """A row for each item of lists of equal lengths, or one empty row, and the row that each comes from."""
    columns = {name: pa.concat_arrays(table.column(name).chunks) for name in lists}
    lengths = [np.asarray(pc.fill_null(pc.list_value_length(values), 0)) for values in columns.values()]
    if any((length != lengths[0]).any() for length in lengths):
        raise SpecError(f"the lists of {', '.join(lists)} have different lengths; they share the rows of an example")
    rows = np.repeat(np.arange(len(table)), np.maximum(lengths[0], 1))
    first = np.concatenate([[True], rows[1:] != rows[:-1]])
    items = np.where(lengths[0][rows] > 0, np.cumsum(lengths[0][rows] > 0) - 1, 0)
    repeated = table.take(pa.array(rows))
    for name, values in columns.items():
        cells = values.flatten().take(pa.array(items, mask=first & (lengths[0][rows] == 0)))
        repeated = repeated.set_column(repeated.column_names.index(name), name, cells)
    return repeated, rows


def _as_text(name: str, values: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return values.cast(pa.string())
    except pa.ArrowException:
        raise SpecError(f"column {name!r} of the type {values.type} cannot be written as CSV; leave it out") from None


def _placed(problem: Problem, names: list[str]) -> Problem:
    """The problem with its columns where the table has them."""
    [dataset] = problem.datasets

    def placed(column: Any) -> Any:
        if column.name not in names:
            raise SpecError(f"the dataset has no column {column.name!r}{nearest(column.name, names)}")
        return replace(column, resource=LEARNING, column=names.index(column.name))

    horizon = dataset.horizon and replace(dataset.horizon, place=placed(dataset.horizon.place))
    moved = replace(
        dataset,
        targets=tuple(map(placed, dataset.targets)),
        privileged=tuple(map(placed, dataset.privileged)),
        horizon=horizon,
    )
    return replace(problem, datasets=(moved,))
