"""The folder of a problem: its documents, tables and files, found by their content and not by folder names.

A problem has three folders, `…_dataset`, `…_problem` and `…_solution`, or parts of these such as `dataset_TEST`. One
path names all of it: the folder, the problem's folder in it, or its document.

Documents are found by their file names, whatever the names of their folders. A path that the problem names or that is
found in its folder may not lead out of it, not even by a link; paths that users name may be anywhere.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import DataError, Fault, SpecError, nearest, pluralize
from evaluand.core.files.json import Findings
from evaluand.core.files.paths import relative_name, require_within
from evaluand.data.columns import join_chunks
from evaluand.data.dataset import Dataset
from evaluand.data.split import Folds
from evaluand.interop.d3m.checks import (
    check_splits,
    check_table,
    declared_layout,
    learning_resource,
    needed_columns,
    row_keys,
)
from evaluand.interop.d3m.columns import describe_table
from evaluand.interop.d3m.dataset import DatasetDocument, Resource, examine_dataset, examples
from evaluand.interop.d3m.documents import (
    DATASET,
    LEARNT,
    PARTS,
    SCORED,
    TESTED,
    TRUTH,
    below,
    document_at,
    find_file,
    leading_out,
    part_of,
    root_of,
)
from evaluand.interop.d3m.needed import FolderFindings, needed_of_problem
from evaluand.interop.d3m.problem import SPLITS_FILE, examine_problem
from evaluand.interop.d3m.splits import tested_by_truth
from evaluand.predictions.problem.files import read_cells
from evaluand.predictions.problem.problem import Problem
from evaluand.predictions.problem.truth import RowKeys
from evaluand.store.store import check_name

_SPLIT: Final = "inputs.dataSplits.splitsFile"

_Examined = Mapping[Path, tuple[DatasetDocument | None, Findings]]
"""Datasets by their document, as far as they can be read, and what was found in it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ProblemFolder:
    """A problem with its data. All files are within `root`; a link that leads out of it is a DataError.

    Of several datasets the main one is the default: see `Problem.main`.

    Attributes:
        notes: deviations that did not prevent reading.
        tested_by: the file that says which rows are tested: the split, or without one the truth or the table of the
            tested part; None for none.
        untested: why no row is known to be tested, although the document names a split.
    """

    root: Path
    document: Path
    problem: Problem
    datasets: tuple[DatasetDocument, ...]
    notes: tuple[Fault, ...] = ()
    tested_by: Path | None = None
    untested: Fault | None = None
    _tables: Mapping[int, pa.Table] = field(default_factory=dict, repr=False)
    _folds: Folds | None = field(default=None, repr=False)

    @property
    def truth_path(self) -> Path | None:
        """The file with the target values of the test rows; None if there is none."""
        return find_file(self.document, self.root, TRUTH)

    @property
    def solution(self) -> Path:
        """The folder of the solution, by its name, or the root."""
        found = sorted(p for p in self.root.iterdir() if p.is_dir() and "_solution" in f"_{p.name.lower()}")
        return require_within(found[0], self.root) if found else self.root

    @property
    def predictions_path(self) -> Path:
        """Where the problem expects predictions."""
        return require_within(self.solution / self.problem.outputs.predictions, self.root)

    @property
    def scores_path(self) -> Path:
        """Where the problem expects scores."""
        return require_within(self.solution / (self.problem.outputs.scores or "scores.csv"), self.root)

    def table(self, dataset: int | None = None) -> pa.Table:
        """The learning table of a dataset, with the types that its document declares."""
        return self._tables[self._place(dataset)]

    @cached_property
    def hidden(self) -> bool:
        """Whether the learning table has no target values, as that of a test part."""
        table, targets = self.table(), self.problem.datasets[self.problem.main].targets
        names = [target.name for target in targets if target.name in table.column_names]
        return bool(targets) and all(table.column(name).null_count == len(table) for name in names)

    def dataset(self, dataset: int | None = None, *, truth: bool = True, **roles: Any) -> Dataset:
        """The learning table as examples; see `evaluand.interop.d3m.dataset.examples` for their roles.

        Args:
            dataset: which of the problem's datasets; the main one if not given.
            truth: whether to take hidden target values from `targets.csv`, if there is one.
            roles: other roles, such as `attributes=["sex"]`.

        Raises:
            SpecError: a role names no column.
            DataError: the truth cannot be read.
        """
        place = self._place(dataset)
        table, targets = self.table(place), self.problem.datasets[place]
        if truth and place == self.problem.main and self.hidden and self.truth_path is not None:
            table = _with_truth(self, table, self.truth_path)
        return examples(self.resource(place), table, targets, _valid_name(targets.id), **roles)

    def folds(self) -> Folds:
        """The split of the file, over the examples of `dataset()`; a SpecError if there is no such file.

        Without a split, the examples that have a row in the truth are tested.
        """
        if self._folds is None:
            raise SpecError(f"{self.document}: the problem has no split file; make a Split")
        return self._folds

    def keys(self, dataset: int | None = None) -> RowKeys:
        """The index of a learning table, and which example each row belongs to."""
        return row_keys(self.resource(dataset), self.table(dataset))

    def resource(self, dataset: int | None = None) -> Resource:
        """What the document says of a learning table."""
        place = self._place(dataset)
        resource = learning_resource(self.datasets[place], self.problem.datasets[place])
        assert resource is not None  # else it would not have been opened
        return resource

    def _place(self, dataset: int | None) -> int:
        return self.problem.main if dataset is None else dataset


def open_folder(path: str | os.PathLike[str], part: str | None = None) -> ProblemFolder:
    """Opens the problem in a folder after checking all of it.

    Args:
        path: the folder, the problem's folder in it, or its document.
        part: TRAIN, TEST or SCORE, where each has its own documents.

    Raises:
        DataError: documents and data break their schema, or do not fit each other: every fault, with the file and its
            JSON path or row, and a code.
        SpecError: there is no problem, or there are several.

    Example:
        >>> folder = open_folder("185_baseball")  # doctest: +SKIP
        >>> len(folder.dataset()), folder.folds().test(0, 0)  # doctest: +SKIP
    """
    folder, findings = examine_folder(path, part)
    findings.all().check()
    assert folder is not None
    return folder


def examine_folder(
    path: str | os.PathLike[str], part: str | None = None, truth: Path | None = None, *, attributes: bool = True
) -> tuple[ProblemFolder | None, FolderFindings]:
    """Opens the problem in a folder as far as a score needs it, with its faults and notes.

    Args:
        path: the folder, the problem's folder in it, or its document.
        part: TRAIN, TEST or SCORE, where each has its own documents.
        truth: the file of target values, if it is not that of the folder; without a split it says what is tested.
        attributes: whether to check the cells and media of columns that no score depends on; else they are text.
    """
    start = Path(path)
    if start.name in ("", "..") or (len(start.parts) == 1 and start.is_file()):
        start = Path(os.path.abspath(start))  # whose parents have names
    choice = document_at(start, part)
    document = choice.path
    root = root_of(start, document)
    name = relative_name(document, root)
    findings = FolderFindings()
    if part is None and choice.part is not None and len(choice.parts) > 1:
        others = " and ".join(each for each in choice.parts if each != choice.part)
        findings.note(str(root), "chosen_part", f"the part {choice.part} is read; --part chooses {others}")
    problem, of_problem = examine_problem(document)
    if problem is None:
        findings.take(name, of_problem, needed_of_problem)
        return None, findings
    having = [dataset.id for dataset in problem.datasets if dataset.targets]
    if len(having) > 1:
        message = f"several datasets have targets ({', '.join(having)}), so predictions cannot be scored"
        of_problem.note("inputs.data", "several_datasets", message)
    datasets: list[DatasetDocument] = []
    tables: dict[int, pa.Table] = {}
    existing = {path: _examined(path) for path in below(root, DATASET)}
    chosen = _datasets(problem, document, root, existing, of_problem, findings)
    for i, (expected, (dataset, inner)) in enumerate(zip(problem.datasets, chosen, strict=True)):
        if dataset is None:
            continue
        dataset = describe_table(dataset, expected, problem, findings)
        datasets.append(dataset)
        table = check_table(i, expected, dataset, findings, of_problem, inner, attributes=attributes)
        assert dataset.folder is not None  # since it was read from a file
        findings.take(relative_name(dataset.folder / DATASET, root), inner, needed_columns(dataset, expected))
        if table is not None:
            tables[i] = table
    keys = None
    if problem.main in tables and len(datasets) == len(problem.datasets):
        resource = learning_resource(datasets[problem.main], problem.datasets[problem.main])
        assert resource is not None  # else there were no table
        keys = row_keys(resource, tables[problem.main])
    tested_by, folds = _tested_rows(problem, keys, document, root, truth, existing, of_problem, findings)
    untested = None
    if tested_by is None and problem.division is not None:
        message = f"there is no file {problem.division.file or SPLITS_FILE} in the problem's folder, and no {TRUTH}, "
        message += "so no row is known to be tested; give the truth of those that are, or predictions of all rows"
        untested = Fault(f"{name}: {_SPLIT}", message, code="no_such_file")
        findings.beside.append(untested)
    findings.take(name, of_problem, needed_of_problem)
    if findings.faults:
        return None, findings
    folder = ProblemFolder(
        root=root,
        document=document,
        problem=problem,
        datasets=tuple(datasets),
        notes=tuple(findings.notes),
        tested_by=tested_by,
        untested=untested,
        _tables=tables,
        _folds=folds,
    )
    return folder, findings


def _tested_rows(
    problem: Problem,
    keys: RowKeys | None,
    document: Path,
    root: Path,
    truth: Path | None,
    existing: _Examined,
    of_problem: Findings,
    of_files: Findings,
) -> tuple[Path | None, Folds | None]:
    """The file that says which rows are tested, and the folds that it describes.

    That is the split of the problem's document, or without one the truth or the table of the tested part.

    Args:
        keys: the rows of the main dataset; None if they cannot be read.
    """
    part = part_of(document, root)
    name = SPLITS_FILE if problem.division is None else problem.division.file or SPLITS_FILE
    split, of_split = document.parent / name, Findings()
    if problem.division is not None and os.path.lexists(split):
        folds = check_splits(split, root, problem.division, keys, of_split, of_problem, part)
        if not any(fault.code == "no_split" for fault in of_split.faults):
            of_files.faults += of_split.faults
            of_files.notes += of_split.notes
            return split, folds
    truth = truth or find_file(document, root, TRUTH)
    if problem.division is None:
        rows = "all rows of the table" if truth is None else f"the rows of {relative_name(truth, root)}"
        of_problem.note("inputs.dataSplits", "no_split", f"is missing, so {rows} are tested")
        return None, None
    if not of_split.faults and (above := find_file(document, root, name)):
        of_problem.note(_SPLIT, "other_place", f"is read from {relative_name(above, root)}")
        return above, check_splits(above, root, problem.division, keys, of_files, of_problem, part)
    if truth is None and part != LEARNT:  # of which no row is tested
        truth = _tested_table(existing, root)
    if keys is None or truth is None or not truth.is_file():
        of_files.faults += of_split.faults
        return (split, None) if of_split.faults else (None, None)
    folds = tested_by_truth(truth, keys, of_files)
    count, n = 0 if folds is None else int((folds.numbers >= 0).sum()), len(keys.positions)
    if not count:
        return None, None
    lack = f"{name} is no split of rows" if of_split.faults else f"there is no file {name}"
    message = f"{lack}, so the rows of {relative_name(truth, root)} are tested: {count:,} of {n:,}"
    of_problem.note(_SPLIT, "no_split", message)
    return truth, folds


def _tested_table(existing: _Examined, root: Path) -> Path | None:
    """The learning table of the part SCORE or TEST."""
    for part in (SCORED, TESTED):
        for path, (dataset, _) in existing.items():
            if dataset is not None and dataset.learning is not None and part_of(path, root) == part:
                return require_within(path.parent / dataset.learning.path, root)
    return None


def _datasets(
    problem: Problem, document: Path, root: Path, existing: _Examined, of_problem: Findings, of_files: FolderFindings
) -> list[tuple[DatasetDocument | None, Findings]]:
    """The document of each dataset with what was found in it: the one with its id that is nearest to the problem.

    Where none has the id, the only dataset is meant, be it in several parts.
    """
    known = {path: content for path, (content, _) in existing.items() if content is not None}
    bases = {_without_part(content.id) for content in known.values()}
    datasets: list[tuple[DatasetDocument | None, Findings]] = []
    for i, expected in enumerate(problem.datasets):
        where = f"inputs.data[{i}].datasetID"
        fits = [path for path, each in known.items() if expected.id in (each.id, _without_part(each.id))]
        if not fits and len(problem.datasets) == len(bases) == 1:
            fits = [*known]
        nearness = lambda path: (_nearness(path, document, root), known[path].id == expected.id)  # noqa: E731, B023
        best = max(fits, key=nearness, default=None)
        if best is None:
            if known or not existing:  # else the faults of the documents are reported below
                _report_missing(expected.id, where, [content.id for content in known.values()], root, of_problem)
            datasets.append((None, Findings()))
            continue
        shown = repr(known[best].id) if known[best].id else "a dataset without an id"
        message = f"{expected.id!r} is read as {shown}, the nearest one"
        if known[best].id and _without_part(known[best].id) != _without_part(expected.id):
            message = f"there is no dataset {expected.id!r}; the only one is {shown}, which is read"
            of_problem.fault(where, "other_dataset", message)
        elif known[best].id != expected.id:
            of_problem.note(where, "other_part", message)
        datasets.append((known[best], existing[best][1]))
    for path, (_, inner) in existing.items() if not known else ():
        of_files.take(relative_name(path, root), inner, lambda fault: True)
    return datasets


def _without_part(id: str) -> str:
    return next((id.removesuffix(f"_{part}") for part in PARTS if id.endswith(f"_{part}")), id)


def _examined(path: Path) -> tuple[DatasetDocument | None, Findings]:
    try:
        return examine_dataset(path)
    except DataError as error:
        return None, Findings(faults=[*error.faults])


def _report_missing(id: str, where: str, known: list[str], root: Path, findings: Findings) -> None:
    outside = next(leading_out(root, DATASET), None)
    if outside is not None:
        message = f"{relative_name(outside, root)} leads out of {root}; move its target into the folder"
        return findings.fault(where, "unsafe_path", message)
    existing = f"there are {', '.join(known)}" if known else f"there is no {DATASET} below {root}"
    return findings.fault(where, "no_such_dataset", f"there is no dataset {id!r}{nearest(id, known)}; {existing}")


def _nearness(path: Path, other: Path, root: Path) -> int:
    """How near two paths are: twice their common folders, and one for the same part such as TEST."""
    common = sum(1 for a, b in zip(path.parent.parts, other.parent.parts, strict=False) if a == b)
    return 2 * common + (part_of(path, root) == part_of(other, root))


def _with_truth(folder: ProblemFolder, table: pa.Table, path: Path) -> pa.Table:
    """The learning table with the target values of targets.csv, joined by its first index."""
    findings, layout = Findings(), declared_layout(folder.problem, folder.resource())
    by = layout.index[0]
    types = {by: layout.index_types[by]}
    truth = read_cells(path, replace(layout, index=(by,), index_types=types, key=by, second_key=None), findings)
    findings.check()
    assert truth is not None  # else there were faults
    rows = pc.index_in(table.column(by), value_set=join_chunks(truth.table.column(by)).cast(table.column(by).type))
    if rows.null_count:
        have = pluralize(rows.null_count, "row has", "rows have")
        message = f"{rows.null_count:,} test {have} no target value"
        raise DataError(Fault(str(path), message, code="missing_row"))
    for name in layout.targets:
        if name in table.column_names:
            table = table.set_column(table.column_names.index(name), name, truth.table.column(name).take(rows))
    return table


def _valid_name(id: str) -> str | None:
    """The id, if it is a valid name."""
    try:
        return check_name(id)
    except (SpecError, DataError):
        return None
