"""The folder of a problem: its documents, tables and files, found by what they are and not by their names.

A problem is kept as three folders, `…_dataset`, `…_problem` and `…_solution`, or as parts of these such as
`dataset_TEST`. Here one path stands for all of it: the folder, the problem's folder in it, or its document.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand import rows
from evaluand.dataset import Dataset
from evaluand.errors import DataError, Fault, SpecError
from evaluand.interop.d3m.dataset import (
    LEARNING,
    SHOWN,
    Column,
    DatasetDocument,
    Resource,
    described,
    examine_dataset,
    examples,
    gathered_positions,
    read_table,
    write_csv,
    write_dataset,
)
from evaluand.interop.d3m.problem import SPLITS_FILE, examine_problem, problem_document
from evaluand.interop.d3m.reading import Findings, dump
from evaluand.interop.d3m.splits import Keys, examine_splits, write_splits
from evaluand.problem import Problem, TargetDataset
from evaluand.registry import nearest
from evaluand.rows import INDEX
from evaluand.source import open_texts
from evaluand.split import Folds
from evaluand.store import check_name

PROBLEM: Final = "problemDoc.json"
DATASET: Final = "datasetDoc.json"
TRUTH: Final = "targets.csv"
_DEEPEST: Final = 4
_PARTS: Final = ("_TRAIN", "_TEST", "_SCORE")


@dataclass(frozen=True, kw_only=True, eq=False)
class ProblemFolder:
    """A problem with its data.

    Attributes:
        root: the folder that holds all of it.
        document: the problem's document.
        problem: what it says.
        datasets: the documents of its datasets, in the order of `problem.datasets`.
        notes: what is odd but was read.
    """

    root: Path
    document: Path
    problem: Problem
    datasets: tuple[DatasetDocument, ...]
    notes: tuple[Fault, ...] = ()
    _tables: Mapping[int, pa.Table] = field(default_factory=dict, repr=False)
    _folds: Folds | None = field(default=None, repr=False)

    @property
    def truth_path(self) -> Path | None:
        """The file of the target values of the rows to be tested, where there is one."""
        return next((path for path in _beside(self.document, self.root, TRUTH) if path.is_file()), None)

    @property
    def solution(self) -> Path:
        """The folder of the solution: the one that is called so, or the root."""
        found = sorted(p for p in self.root.iterdir() if p.is_dir() and "_solution" in f"_{p.name.lower()}")
        return found[0] if found else self.root

    @property
    def predictions_path(self) -> Path:
        """Where the problem says that predictions are to be."""
        return self.solution / self.problem.outputs.predictions

    @property
    def scores_path(self) -> Path:
        """Where the problem says that scores are to be."""
        return self.solution / (self.problem.outputs.scores or "scores.csv")

    def table(self, dataset: int = 0) -> pa.Table:
        """The learning table of a dataset, with the types that its document declares."""
        return self._tables[dataset]

    @cached_property
    def hidden(self) -> bool:
        """Whether the learning table has no target values, as that of rows to be tested has not."""
        table, targets = self.table(), self.problem.datasets[0].targets
        there = [target.name for target in targets if target.name in table.column_names]
        return bool(targets) and all(table.column(name).null_count == len(table) for name in there)

    def dataset(self, dataset: int = 0, *, truth: bool = True, **roles: Any) -> Dataset:
        """The learning table as examples; see `evaluand.interop.d3m.dataset.examples` for their roles.

        Args:
            dataset: which of the problem's datasets.
            truth: whether hidden target values are taken from `targets.csv`, where there is one.
            roles: other roles, such as `attributes=["sex"]`.

        Raises:
            SpecError: a role names no column.
            DataError: the truth cannot be read.
        """
        table, resource = self.table(dataset), self.resource(dataset)
        if truth and dataset == 0 and self.hidden and self.truth_path is not None:
            table = _with_truth(table, resource, self.problem.datasets[0], self.truth_path)
        name = _plain(self.problem.datasets[dataset].id)
        return examples(resource, table, self.problem.datasets[dataset], name, **roles)

    def folds(self) -> Folds:
        """The split of the file, over the examples of `dataset()`.

        Raises:
            SpecError: there is no such file.
        """
        if self._folds is None:
            raise SpecError(f"{self.document}: the problem has no file that divides its rows; make a Split")
        return self._folds

    def keys(self, dataset: int = 0) -> Keys:
        """The index of a learning table, and which example each row belongs to."""
        return _keys(self.resource(dataset), self.table(dataset))

    def resource(self, dataset: int = 0) -> Resource:
        """What the document says of a learning table."""
        found = learning(self.datasets[dataset], self.problem.datasets[dataset])
        assert found is not None  # else it would not have been opened
        return found


def open_folder(path: str | os.PathLike[str], part: str | None = None) -> ProblemFolder:
    """The problem below a folder, everything checked.

    Args:
        path: the folder, the problem's folder in it, or its document.
        part: TRAIN, TEST or SCORE, where each has documents of its own.

    Raises:
        DataError: documents and data break their schema, or do not fit each other: every fault, with the file and its
            JSON path or row, and a code.
        SpecError: there is no problem, or there are several.

    Example:
        >>> folder = open_folder("185_baseball")  # doctest: +SKIP
        >>> len(folder.dataset()), folder.folds().test(0, 0)  # doctest: +SKIP
    """
    folder, findings = examine_folder(path, part)
    findings.check()
    assert folder is not None
    return folder


def examine_folder(path: str | os.PathLike[str], part: str | None = None) -> tuple[ProblemFolder | None, Findings]:
    """The problem below a folder as far as it can be read, with what is wrong and what is worth a note."""
    document = _document(Path(path), part)
    root = _root(Path(path), document)
    findings = Findings()
    problem = _within(findings, document, root, lambda: examine_problem(document))
    if problem is None:
        return None, findings
    found = _datasets(problem, document, root, findings)
    tables: dict[int, pa.Table] = {}
    for i, (wanted, dataset) in enumerate(zip(problem.datasets, found, strict=True)):
        if dataset is not None:
            table = _checked(i, wanted, dataset, document, root, findings)
            if table is not None:
                tables[i] = table
    folds = _checked_splits(problem, found, tables, document, root, findings)
    if findings.faults:
        return None, findings
    known = tuple(dataset for dataset in found if dataset is not None)
    made = ProblemFolder(
        root=root,
        document=document,
        problem=problem,
        datasets=known,
        notes=tuple(findings.notes),
        _tables=tables,
        _folds=folds,
    )
    return made, findings


def learning(document: DatasetDocument, targets: TargetDataset) -> Resource | None:
    """The table to learn from: the one that the targets name, else the one that is called so."""
    named = {target.resource for target in targets.targets}
    if len(named) == 1:
        found = document.resource(next(iter(named)))
        if found is not None and found.type == "table" and not found.collection:
            return found
    return document.learning


# Finding


def _document(path: Path, part: str | None) -> Path:
    """The problem's document that a path stands for."""
    if path.is_file():
        return path
    if not path.is_dir():
        raise DataError(Fault(str(path), "no such folder", code="no_such_file"))
    found = [*below(path, PROBLEM)]
    if part is not None:
        wanted = f"_{part.upper()}"
        found = [one for one in found if any(name.upper().endswith(wanted) for name in _names(one, path))]
    least = min((len(one.parts) for one in found), default=0)
    nearest_ = [one for one in found if len(one.parts) == least]
    if len({one.parent.parent for one in nearest_}) == 1:  # parts beside the whole
        nearest_ = [one for one in nearest_ if not one.parent.name.upper().endswith(_PARTS)] or nearest_
    if len(nearest_) == 1:
        return nearest_[0]
    of = f" of the part {part}" if part else ""
    if not nearest_:
        raise SpecError(f"{path}: there is no {PROBLEM}{of} in this folder or below it")
    listed = ", ".join(str(one.parent.relative_to(path)) for one in nearest_[:10])
    raise SpecError(f"{path}: there are {len(nearest_)} problems{of}: {listed}; name the folder of one")


def below(folder: Path, name: str) -> Iterator[Path]:
    """The files of a name below a folder, not too deep, without links that lead elsewhere."""
    base = len(folder.parts)
    for place, folders, files in os.walk(folder):
        folders[:] = (
            sorted(f for f in folders if not f.startswith(".")) if len(Path(place).parts) - base < _DEEPEST else []
        )
        if name in files:
            yield Path(place) / name


def _names(document: Path, root: Path) -> Iterator[str]:
    yield from document.parent.relative_to(root).parts
    yield root.name


def _root(path: Path, document: Path) -> Path:
    """The folder that holds the problem's folder and those of its datasets."""
    folder = document.parent
    if path.is_dir() and path.resolve() != folder.resolve():
        return path
    return folder.parent if any(below(folder.parent, DATASET)) else folder


def _beside(document: Path, root: Path, name: str) -> Iterator[Path]:
    """Where a file of the problem may be: with its document, then outwards up to the root."""
    for place in (document.parent, *document.parent.parents):
        yield place / name
        if place == root:
            return


def _within(findings: Findings, path: Path, root: Path, read: Any) -> Any:
    """What a document says; its faults and notes get the name of the file."""
    made, inner = read()
    name = _shown(path, root)
    for found, into in ((inner.faults, findings.faults), (inner.notes, findings.notes)):
        into += [replace(fault, where=f"{name}: {fault.where}" if fault.where else name) for fault in found]
    return made


def _shown(path: Path, root: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)


def _datasets(problem: Problem, document: Path, root: Path, findings: Findings) -> list[DatasetDocument | None]:
    """The document of each dataset: that of its id which is nearest to the problem."""
    read: list[tuple[Path, DatasetDocument]] = []
    broken: list[tuple[Path, Findings]] = []
    for path in below(root, DATASET):
        try:
            made, inner = examine_dataset(path)
        except DataError as error:
            inner = Findings(faults=[*error.faults])
            broken.append((path, inner))
            continue
        read.append((path, made))
        broken.append((path, inner))
    found: list[DatasetDocument | None] = []
    for i, wanted in enumerate(problem.datasets):
        where = f"{_shown(document, root)}: inputs.data[{i}].datasetID"
        exact = [(path, made) for path, made in read if made.id == wanted.id]
        views = [(path, made) for path, made in read if made.id in {wanted.id + part for part in _PARTS}]
        chosen = max(exact + views, key=lambda one: (_shared(one[0], document), one in exact), default=None)
        if chosen is None:
            known = [made.id for _, made in read]
            there = f"there are {', '.join(known)}" if known else f"there is no {DATASET} below {root}"
            findings.fault(
                where, "no_such_dataset", f"no dataset is called {wanted.id!r}{nearest(wanted.id, known)}; {there}"
            )
            found.append(None)
            if not known:
                for path, inner in broken:
                    _within(findings, path, root, lambda inner=inner: (None, inner))
            continue
        if chosen[1].id != wanted.id:
            findings.note(where, "other_part", f"{wanted.id!r} is taken to be {chosen[1].id!r}, which is nearest")
        inner = next(inner for path, inner in broken if path == chosen[0])
        _within(findings, chosen[0], root, lambda inner=inner: (None, inner))
        found.append(chosen[1])
    return found


def _shared(path: Path, other: Path) -> int:
    """How many folders two paths have in common; a part such as _TEST counts too."""
    common = sum(1 for a, b in zip(path.parent.parts, other.parent.parts, strict=False) if a == b)
    ends = [next((part for part in _PARTS if p.parent.name.upper().endswith(part)), "") for p in (path, other)]
    return 2 * common + (ends[0] == ends[1])


# Checking


def _checked(
    number: int, wanted: TargetDataset, dataset: DatasetDocument, document: Path, root: Path, findings: Findings
) -> pa.Table | None:
    """The learning table of a dataset; what the problem says of it is held against the dataset's document."""
    place = f"{_shown(document, root)}: inputs.data[{number}]"
    for i, target in enumerate(wanted.targets):
        _check_place(target, f"{place}.targets[{i}]", dataset, findings)
    for i, column in enumerate(wanted.privileged):
        _check_place(column, f"{place}.privilegedData[{i}]", dataset, findings)
    if wanted.horizon is not None:
        _check_place(wanted.horizon.place, f"{place}.forecastingHorizon", dataset, findings)
    assert dataset.folder is not None
    name = _shown(dataset.folder / DATASET, root)
    resource = learning(dataset, wanted)
    if resource is None:
        findings.fault(f"{name}: dataResources", "no_learning_table", f"no table is called {LEARNING}")
        return None
    where = f"{name}: dataResources[{dataset.resources.index(resource)}]"
    if not resource.index:
        findings.fault(f"{where}.columns", "no_index", "no column has the role index or multiIndex")
    read = read_table(dataset.folder, resource, findings, where)
    if read is None or not resource.index:
        return None
    table, row_place = read
    _check_index(resource, table, row_place, findings)
    _check_media(dataset, resource, table, row_place, findings, where)
    return table


def _check_place(wanted: Any, place: str, dataset: DatasetDocument, findings: Findings) -> None:
    """Whether a column is where a problem says, by its number and by its name."""
    resource = dataset.resource(wanted.resource)
    if resource is None:
        known = ", ".join(one.id for one in dataset.resources)
        told = f"dataset {dataset.id!r} has no resource {wanted.resource!r}; there are {known}"
        return findings.fault(f"{place}.resID", "no_such_resource", told)
    if resource.collection or not resource.columns:
        told = f"resource {resource.id!r} of dataset {dataset.id!r} is no table with columns"
        return findings.fault(f"{place}.resID", "not_a_table", told)
    there = next((column for column in resource.columns if column.index == wanted.column), None)
    named = resource.column(wanted.name)
    if there is not None and there.name == wanted.name:
        return None
    if named is not None:
        told = f"is {wanted.column}, but in dataset {dataset.id!r} {wanted.name!r} is column {named.index}"
        return findings.fault(f"{place}.colIndex", "column_mismatch", told)
    names = [column.name for column in resource.columns]
    if there is None:
        told = f"dataset {dataset.id!r} has neither a column {wanted.column} nor one called {wanted.name!r}"
        return findings.fault(f"{place}.colName", "no_such_column", told + nearest(wanted.name, names))
    told = f"is {wanted.name!r}, but column {wanted.column} of dataset {dataset.id!r} is called {there.name!r}"
    return findings.fault(f"{place}.colName", "column_mismatch", told)


def _check_index(resource: Resource, table: pa.Table, where: Any, findings: Findings) -> None:
    """The index has no empty values, and names each row once unless it is a multiIndex."""
    for column in resource.index:
        values = table.column(column.name)
        empty = np.flatnonzero(values.is_null().to_numpy())
        for row in empty[:SHOWN].tolist():
            findings.fault(where(row), "empty_index", f"{column.name} is empty")
    first = resource.index[0]
    if "multiIndex" in first.roles:
        return
    codes = gathered_positions(table.column(first.name)).to_numpy()
    _, seen, back = np.unique(codes, return_index=True, return_inverse=True)
    for row in np.flatnonzero(seen[back] != np.arange(len(codes)))[:SHOWN].tolist():
        value, before = table.column(first.name)[row], where(int(seen[back[row]]))
        findings.fault(where(row), "twice", f"{first.name} {value} is there twice (first at {before})")


def _check_media(
    dataset: DatasetDocument, resource: Resource, table: pa.Table, where: Any, findings: Findings, place: str
) -> None:
    """Files that columns name are there, where the folder of media is there at all."""
    for i, column in enumerate(resource.columns):
        if column.refers_to is None or not column.refers_to.item or column.name not in table.column_names:
            continue
        media = dataset.resource(column.refers_to.resource)
        if media is None or dataset.folder is None:
            continue
        folder = dataset.folder / media.path
        if not folder.is_dir():
            findings.note(f"{place}.columns[{i}].refersTo", "no_media", f"there is no folder {media.path}")
        names = table.column(column.name).cast(pa.string()).unique().drop_null().to_pylist()
        bad = {name: code for name in names if (code := _media_fault(dataset, column, name, folder))}
        values = table.column(column.name).cast(pa.string())
        lost = np.flatnonzero(pc.is_in(values, pa.array([*bad], pa.string())).to_numpy())
        for row in lost[:SHOWN].tolist():
            name = values[row].as_py()
            told = "leads out of its folder" if bad[name] == "unsafe_path" else f"is not in {media.path}"
            findings.fault(where(row), bad[name], f"{column.name}: {name!r} {told}")


def _media_fault(dataset: DatasetDocument, column: Column, name: str, folder: Path) -> str | None:
    try:
        file = dataset.media(column, name)
    except DataError:
        return "unsafe_path"
    return "no_such_media" if folder.is_dir() and not file.is_file() else None


def _checked_splits(
    problem: Problem,
    datasets: list[DatasetDocument | None],
    tables: Mapping[int, pa.Table],
    document: Path,
    root: Path,
    findings: Findings,
) -> Folds | None:
    """The split of the file, held against what the problem says of it and against the rows there are."""
    division = problem.division
    if division is None:
        return None
    place = f"{_shown(document, root)}: inputs.dataSplits"
    path = document.parent / (division.file or SPLITS_FILE)
    if not path.resolve().is_relative_to(document.parent.resolve()):
        findings.fault(f"{place}.splitsFile", "unsafe_path", f"{division.file!r} leads out of the folder")
        return None
    if not path.is_file():
        findings.fault(
            f"{place}.splitsFile", "no_such_file", f"there is no file {division.file} in the problem's folder"
        )
        return None
    if 0 not in tables or datasets[0] is None:
        return None
    resource = learning(datasets[0], problem.datasets[0])
    assert resource is not None
    keys = _keys(resource, tables[0])
    folds = examine_splits(path, keys, findings)
    if folds is None:
        return None
    _check_division(folds, problem, place, findings)
    return folds


def _check_division(folds: Folds, problem: Problem, place: str, findings: Findings) -> None:
    """Whether the file divides as the document says; a part of the data cannot tell how large the whole was."""
    division = problem.division
    assert division is not None
    repeats, n = folds.numbers.shape
    if repeats != division.repeats:
        told = f"says {division.repeats} repeats, and the file has {repeats}"
        findings.note(f"{place}.numRepeats", "other_split", told)
    tested = (folds.numbers >= 0).sum(axis=1)
    if division.method == "folds":
        if folds.count != division.folds:
            findings.fault(
                f"{place}.numFolds", "other_split", f"is {division.folds}, and the file has {folds.count} folds"
            )
        elif (tested < n).any():
            told = f"kFold, but the file tests {int(tested.min()):,} of {n:,} examples in a repeat"
            findings.fault(f"{place}.method", "never_tested", told)
        return
    if folds.count > 1:
        findings.fault(f"{place}.method", "other_split", f"is holdOut, and the file has {folds.count} folds")
    elif division.test is not None and tested.min() > 0 and tested.max() < n:
        share = tested.max() / n
        if abs(share - division.test) > max(0.01, 1 / n):
            told = f"is {division.test:g}, and the file tests {share:.3g} of the examples"
            findings.note(f"{place}.testSize", "other_split", told)


def _keys(resource: Resource, table: pa.Table) -> Keys:
    gathers = resource.gathers
    columns = {c.name: table.column(c.name).combine_chunks() for c in resource.index}
    columns = {n: v.chunk(0) if isinstance(v, pa.ChunkedArray) else v for n, v in columns.items()}
    by = gathered_positions(table.column(gathers.name)).to_numpy() if gathers else np.arange(len(table))
    return Keys(columns, by, repeated="multiIndex" in resource.index[0].roles)


def _with_truth(table: pa.Table, resource: Resource, targets: TargetDataset, path: Path) -> pa.Table:
    """The learning table with the target values of targets.csv, joined by its first index."""
    index = resource.index[0]
    wanted = [c for c in resource.columns if c.name in {t.name for t in targets.targets}]
    described_ = replace(
        resource,
        path=path.name,
        columns=tuple(replace(c, index=i, roles=()) for i, c in enumerate([index, *wanted])),
    )
    findings = Findings()
    header = open_texts(path).schema.names
    placed = [replace(c, index=header.index(c.name)) for c in described_.columns if c.name in header]
    read = read_table(path.parent, replace(described_, columns=tuple(placed)), findings)
    findings.check()
    if read is None or index.name not in read[0].column_names:
        raise DataError(Fault(str(path), f"no column is called {index.name!r}", code="missing_column"))
    truth = read[0]
    rows_ = pc.index_in(table.column(index.name), value_set=truth.column(index.name).combine_chunks())
    lacking = rows_.null_count
    if lacking:
        raise DataError(Fault(str(path), f"{lacking:,} rows to be tested have no target value", code="missing_row"))
    for column in wanted:
        if column.name in truth.column_names and column.name in table.column_names:
            place = table.column_names.index(column.name)
            table = table.set_column(place, column.name, truth.column(column.name).take(rows_))
    return table


# Writing


def write_folder(
    path: str | os.PathLike[str],
    problem: Problem,
    dataset: Dataset,
    folds: Folds | None = None,
    *,
    version: str = "4.1.1",
) -> ProblemFolder:
    """Writes a problem with its data as `NAME_dataset`, `NAME_problem` and `NAME_solution`, and opens it.

    The table to learn from has the dataset's `_index_` as d3mIndex, then its columns. Where the problem's targets are
    in it follows from their names. Where a target is a list of texts or of boxes, an example has a row for each of
    them, or one that is empty, and d3mIndex is a multiIndex.

    Args:
        path: the folder to be made; its name is NAME.
        problem: with one dataset.
        dataset: the examples.
        folds: their split; made by the problem's division where none is given.
        version: of the schema.

    Raises:
        SpecError: the folder is there already, the problem has not one dataset, or a target is no column.
        DataError: the version cannot say what the problem says.
    """
    root = Path(path)
    if root.exists() and any(root.iterdir()):
        raise SpecError(f"{root}: is not empty; give a new folder")
    if len(problem.datasets) != 1:
        raise SpecError(f"a folder is written of a problem with one dataset, not {len(problem.datasets)}")
    table, columns, positions = _learning_table(dataset, [target.name for target in problem.targets])
    placed = _placed(problem, [column.name for column in columns])
    if folds is None and placed.division is not None:
        folds = placed.division.split().assign(dataset)
    resource = Resource(
        id=LEARNING,
        path=f"tables/{LEARNING}.csv",
        type="table",
        formats=("text/csv",),
        columns=tuple(_with_target_role(column, placed) for column in columns),
    )
    document = DatasetDocument(id=placed.datasets[0].id, name=dataset.name, resources=(resource,))
    told = problem_document(placed, version)
    places = {part: root / f"{root.name}_{part}" for part in ("dataset", "problem", "solution")}
    (places["dataset"] / "tables").mkdir(parents=True)
    for part in ("problem", "solution"):
        places[part].mkdir()
    dump(told, places["problem"] / PROBLEM)
    write_dataset(document, places["dataset"] / DATASET, version)
    write_csv(table, places["dataset"] / resource.path)
    if folds is not None:
        file = (placed.division.file if placed.division else None) or SPLITS_FILE
        repeated = len(table) > len(dataset)
        keys = Keys({"d3mIndex": table.column("d3mIndex").combine_chunks()}, positions, repeated)
        write_splits(places["problem"] / file, folds, keys)
    return open_folder(root)


def _learning_table(
    dataset: Dataset, targets: list[str]
) -> tuple[pa.Table, list[Column], np.ndarray[Any, np.dtype[np.int64]]]:
    """The examples as cells of text, what describes them, and the example of each row."""
    names = [name for name in dataset.schema.names if name not in (INDEX, "d3mIndex")]
    source = pa.Table.from_batches(dataset.columns([INDEX, *names]))
    lists = [name for name in targets if name in names and _is_several(source.schema.field(name).type)]
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


def _is_several(kind: pa.DataType) -> bool:
    """Whether a value is several labels or boxes, and not one vector."""
    return pa.types.is_list(kind) and not pa.types.is_primitive(kind.value_type)


def _by_item(table: pa.Table, lists: list[str]) -> tuple[pa.Table, np.ndarray[Any, np.dtype[np.int64]]]:
    """A row for each item of lists that are equally long, or an empty one, and which row each comes from."""
    held = {name: pa.concat_arrays(table.column(name).chunks) for name in lists}
    lengths = [np.asarray(pc.fill_null(pc.list_value_length(values), 0)) for values in held.values()]
    if any((length != lengths[0]).any() for length in lengths):
        raise SpecError(f"the lists of {', '.join(lists)} are of different lengths; they share the rows of an example")
    rows = np.repeat(np.arange(len(table)), np.maximum(lengths[0], 1))
    first = np.concatenate([[True], rows[1:] != rows[:-1]])
    items = np.where(lengths[0][rows] > 0, np.cumsum(lengths[0][rows] > 0) - 1, 0)
    taken = table.take(pa.array(rows))
    for name, values in held.items():
        cells = values.flatten().take(pa.array(items, mask=first & (lengths[0][rows] == 0)))
        taken = taken.set_column(taken.column_names.index(name), name, cells)
    return taken, rows


def _as_text(name: str, values: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return values.cast(pa.string())
    except pa.ArrowException:
        raise SpecError(f"column {name!r} of the type {values.type} has no form in a CSV file; leave it out") from None


def _with_target_role(column: Column, problem: Problem) -> Column:
    targets = [target.name for target in problem.targets]
    return replace(column, roles=("suggestedTarget",)) if column.name in targets else column


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


def _plain(id: str) -> str | None:
    """The id as a name, where it may be one."""
    try:
        return check_name(id)
    except (SpecError, DataError):
        return None
