"""The folder of a problem: its documents, tables and files, found by what they are and not by their names.

A problem is kept as three folders, `…_dataset`, `…_problem` and `…_solution`, or as parts of these such as
`dataset_TEST`. Here one path stands for all of it: the folder, the problem's folder in it, or its document.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import DataError, Fault, SpecError
from evaluand.core.files.json import Findings
from evaluand.core.files.paths import relative_name, require_within
from evaluand.core.registry import nearest
from evaluand.data.dataset import Dataset
from evaluand.data.sources import open_texts
from evaluand.data.split import Folds
from evaluand.interop.d3m.checks import fitting_splits, fitting_table, keys_of, learning_resource
from evaluand.interop.d3m.dataset import DatasetDocument, Resource, examine_dataset, examples, read_table
from evaluand.interop.d3m.paths import (
    DATASET,
    PARTS,
    TRUTH,
    below,
    beside,
    document_at,
    leading_out,
    root_of,
)
from evaluand.interop.d3m.problem import examine_problem
from evaluand.problem.problem import Problem, TargetDataset
from evaluand.problem.truth import RowKeys
from evaluand.store.store import check_name


@dataclass(frozen=True, kw_only=True, eq=False)
class ProblemFolder:
    """A problem with its data.

    Of several datasets the main one is meant unless another is asked for: see `Problem.main`. Files of the problem are
    within its folder: a DataError tells of one that a link has elsewhere.

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
        return beside(self.document, self.root, TRUTH)

    @property
    def solution(self) -> Path:
        """The folder of the solution: the one that is called so, or the root."""
        found = sorted(p for p in self.root.iterdir() if p.is_dir() and "_solution" in f"_{p.name.lower()}")
        return require_within(found[0], self.root) if found else self.root

    @property
    def predictions_path(self) -> Path:
        """Where the problem says that predictions are to be."""
        return require_within(self.solution / self.problem.outputs.predictions, self.root)

    @property
    def scores_path(self) -> Path:
        """Where the problem says that scores are to be."""
        return require_within(self.solution / (self.problem.outputs.scores or "scores.csv"), self.root)

    def table(self, dataset: int | None = None) -> pa.Table:
        """The learning table of a dataset, with the types that its document declares."""
        return self._tables[self._place(dataset)]

    @cached_property
    def hidden(self) -> bool:
        """Whether the learning table has no target values, as that of rows to be tested has not."""
        table, targets = self.table(), self.problem.datasets[self.problem.main].targets
        there = [target.name for target in targets if target.name in table.column_names]
        return bool(targets) and all(table.column(name).null_count == len(table) for name in there)

    def dataset(self, dataset: int | None = None, *, truth: bool = True, **roles: Any) -> Dataset:
        """The learning table as examples; see `evaluand.interop.d3m.dataset.examples` for their roles.

        Args:
            dataset: which of the problem's datasets; the main one if not given.
            truth: whether hidden target values are taken from `targets.csv`, where there is one.
            roles: other roles, such as `attributes=["sex"]`.

        Raises:
            SpecError: a role names no column.
            DataError: the truth cannot be read.
        """
        place = self._place(dataset)
        table, resource, targets = self.table(place), self.resource(place), self.problem.datasets[place]
        if truth and place == self.problem.main and self.hidden and self.truth_path is not None:
            table = _with_truth(table, resource, targets, self.truth_path)
        return examples(resource, table, targets, _plain(targets.id), **roles)

    def folds(self) -> Folds:
        """The split of the file, over the examples of `dataset()`.

        Raises:
            SpecError: there is no such file.
        """
        if self._folds is None:
            raise SpecError(f"{self.document}: the problem has no file that divides its rows; make a Split")
        return self._folds

    def keys(self, dataset: int | None = None) -> RowKeys:
        """The index of a learning table, and which example each row belongs to."""
        return keys_of(self.resource(dataset), self.table(dataset))

    def resource(self, dataset: int | None = None) -> Resource:
        """What the document says of a learning table."""
        place = self._place(dataset)
        found = learning_resource(self.datasets[place], self.problem.datasets[place])
        assert found is not None  # else it would not have been opened
        return found

    def _place(self, dataset: int | None) -> int:
        return self.problem.main if dataset is None else dataset


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
    given = Path(path)
    if given.name in ("", "..") or (len(given.parts) == 1 and given.is_file()):
        given = Path(os.path.abspath(given))  # whose parents have names
    document = document_at(given, part)
    root = root_of(given, document)
    findings = Findings()
    problem = take_findings(findings, relative_name(document, root), *examine_problem(document))
    if problem is None:
        return None, findings
    having = [dataset.id for dataset in problem.datasets if dataset.targets]
    if len(having) > 1:
        told = (
            f"has targets of several ({', '.join(having)}); they cannot be scored: nothing says whose predictions are"
        )
        findings.note(f"{relative_name(document, root)}: inputs.data", "several_datasets", told)
    found = _datasets(problem, document, root, findings)
    tables: dict[int, pa.Table] = {}
    for i, (wanted, dataset) in enumerate(zip(problem.datasets, found, strict=True)):
        if dataset is not None:
            table = fitting_table(i, wanted, dataset, document, root, findings)
            if table is not None:
                tables[i] = table
    main = problem.main
    folds = fitting_splits(problem, found[main], tables.get(main), document, root, findings)
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


def take_findings(findings: Findings, name: str, made: _Made, inner: Findings) -> _Made:
    """What a document says; its faults and notes get the name of the file."""
    for found, into in ((inner.faults, findings.faults), (inner.notes, findings.notes)):
        into += [replace(fault, where=f"{name}: {fault.where}" if fault.where else name) for fault in found]
    return made


_Made = TypeVar("_Made")


def _datasets(problem: Problem, document: Path, root: Path, findings: Findings) -> list[DatasetDocument | None]:
    """The document of each dataset: that of its id which is nearest to the problem."""
    read = {path: _examined(path) for path in below(root, DATASET)}
    known = {path: made for path, (made, _) in read.items() if made is not None and made.id}
    found: list[DatasetDocument | None] = []
    for i, wanted in enumerate(problem.datasets):
        where = f"{relative_name(document, root)}: inputs.data[{i}].datasetID"
        fits = [path for path, made in known.items() if made.id in {wanted.id + part for part in ("", *PARTS)}]
        best = max(fits, key=lambda path: (_shared(path, document), known[path].id == wanted.id), default=None)
        if best is None:
            if known or not read:  # else what is wrong with the documents is told below
                _tell_lacking(wanted.id, where, [made.id for made in known.values()], root, findings)
            found.append(None)
            continue
        if known[best].id != wanted.id:
            findings.note(where, "other_part", f"{wanted.id!r} is taken to be {known[best].id!r}, which is nearest")
        found.append(take_findings(findings, relative_name(best, root), *read[best]))
    if not known:
        for path, (_, inner) in read.items():
            take_findings(findings, relative_name(path, root), None, inner)
    return found


def _examined(path: Path) -> tuple[DatasetDocument | None, Findings]:
    try:
        return examine_dataset(path)
    except DataError as error:
        return None, Findings(faults=[*error.faults])


def _tell_lacking(id: str, where: str, known: list[str], root: Path, findings: Findings) -> None:
    outside = next(leading_out(root, DATASET), None)
    if outside is not None:
        told = f"{relative_name(outside, root)} leads out of {root}; put there what it leads to"
        return findings.fault(where, "unsafe_path", told)
    there = f"there are {', '.join(known)}" if known else f"there is no {DATASET} below {root}"
    return findings.fault(where, "no_such_dataset", f"no dataset is called {id!r}{nearest(id, known)}; {there}")


def _shared(path: Path, other: Path) -> int:
    """How many folders two paths have in common; a part such as _TEST counts too."""
    common = sum(1 for a, b in zip(path.parent.parts, other.parent.parts, strict=False) if a == b)
    ends = [next((part for part in PARTS if p.parent.name.upper().endswith(part)), "") for p in (path, other)]
    return 2 * common + (ends[0] == ends[1])


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


def _plain(id: str) -> str | None:
    """The id as a name, where it may be one."""
    try:
        return check_name(id)
    except (SpecError, DataError):
        return None
