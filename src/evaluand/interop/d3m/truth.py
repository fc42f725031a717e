"""What is to be scored: what is right, and which rows of it each part of the split tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import DataError, SpecError
from evaluand.core.files.cells import typed
from evaluand.core.files.json import Findings, no_file
from evaluand.data.split import NOT_TESTED, Folds
from evaluand.interop.d3m.checks import learning
from evaluand.interop.d3m.columns import Form, form_of, guessed_form, reads_of
from evaluand.interop.d3m.dataset import SHOWN, Resource, examine_dataset, gathered_positions
from evaluand.interop.d3m.folder import ProblemFolder, examine_folder, named
from evaluand.interop.d3m.names import worded
from evaluand.interop.d3m.paths import DATASET, below, held, shown
from evaluand.interop.d3m.predictions import (
    CellFault,
    Cells,
    cell_fault,
    check_truth,
    header_in,
    read_at_once,
    read_truth,
)
from evaluand.interop.d3m.problem import SPLITS_FILE, examine_problem
from evaluand.interop.d3m.splits import Keys, examine_splits
from evaluand.problem.problem import Problem

Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True)
class Tested:
    """A problem with what is right.

    Attributes:
        name: how messages call the document.
        parts: (repeat, fold) → which rows of the truth are tested.
        known: the keys of all rows of the dataset; None where they are not known.
        expected: gives the file that the problem names for predictions; raises a DataError if that is outside.
    """

    problem: Problem
    document: Path
    name: str
    form: Form
    truth: Cells
    parts: Mapping[tuple[int, int], Mask]
    known: pa.Array | None
    expected: Callable[[], Path]

    @property
    def problem_is_stated(self) -> bool:
        """Whether there is no document of it."""
        return self.document == self.truth.path


def tested(
    problem: str | os.PathLike[str] | ProblemFolder | Problem, truth: Path | None, part: str | None
) -> tuple[Tested | None, Findings]:
    """What is to be scored of a folder or document, as far as it can be read, with what is wrong.

    Args:
        truth: a file of index and targets, or a dataset; where the folder has it, if not given.
        part: TRAIN, TEST or SCORE, where each has documents of its own.

    Raises:
        DataError: a file is not there, or a link leads out of the problem's folder.
        SpecError: there is no truth, or the problem does not say what is predicted.
    """
    if isinstance(problem, ProblemFolder):
        findings = Findings()
        return _of_folder(problem, truth, findings), findings
    if isinstance(problem, Problem):
        if truth is None:
            raise SpecError("a problem without a document needs its truth", python="give truth", command="give --truth")
        return _beside(truth, problem, truth, Findings())
    path = Path(problem)
    if truth is not None and path.is_file():
        return _of_document(path, truth)
    folder, findings = examine_folder(path, part)
    findings.notes.clear()  # which `evaluand problem check` tells
    return (None if folder is None else _of_folder(folder, truth, findings)), findings


def _of_folder(folder: ProblemFolder, given: Path | None, findings: Findings) -> Tested | None:
    """A problem with its data; what is right is in a file given, in targets.csv, or in the learning table."""
    resource = folder.resource()
    form = form_of(folder.problem, resource)
    path = given or folder.truth_path
    if path is None and folder.hidden:
        told = "target values are hidden, and there is no targets.csv"
        raise SpecError(f"{folder.root}: {told}", python="give truth", command="give --truth FILE")
    if path is None or not _is_csv(path):
        folded = (folder.datasets[folder.problem.main].folder or folder.root) / resource.path
        table = folded if given is None else _table_of(given, folder.problem)[0]
        read = Findings()  # of rows that are not tested the value may lack
        truth = read_truth(table, form, read)
        _check_numbers(table, form, folder.problem, shown(folder.document, folder.root), read, findings)
        if truth is None:
            findings.fault(str(table), "cannot_be_scored", f"has not all of the columns {', '.join(form.columns)}")
    else:
        truth = read_truth(path, form, findings)
        _check_numbers(path, form, folder.problem, shown(folder.document, folder.root), findings, findings)
    if truth is None or findings.faults:
        return None
    keys = folder.keys()
    folds = folder.folds() if folder.problem.division is not None else None
    parts = _parts(truth, form, keys, folds, findings)
    known = keys.columns[form.key]
    name = shown(folder.document, folder.root)
    return Tested(folder.problem, folder.document, name, form, truth, parts, known, lambda: folder.predictions_path)


def _of_document(document: Path, path: Path) -> tuple[Tested | None, Findings]:
    """A problem without its data, beside the truth: a file of all that is tested, or a dataset."""
    findings = Findings()
    problem = named(findings, str(document), *examine_problem(document))
    findings.notes.clear()
    if problem is None:
        return None, findings
    return _beside(document, problem, path, findings)


def _beside(document: Path, problem: Problem, path: Path, findings: Findings) -> tuple[Tested | None, Findings]:
    """A problem beside the truth."""

    def expected() -> Path:
        return held(document.parent / problem.outputs.predictions, document.parent)

    if _is_csv(path):
        form, truth = _guessed(problem, path, findings)
        if form is not None:
            _check_numbers(path, form, problem, str(document), findings, findings)
        if form is None or truth is None or findings.faults:
            return None, findings
        parts = _parts(truth, form, None, None, findings)
        return Tested(problem, document, str(document), form, truth, parts, None, expected), findings
    table, resource = _table_of(path, problem)
    form = form_of(problem, resource)
    truth = read_truth(table, form, Findings())
    if truth is None:
        findings.fault(str(table), "cannot_be_scored", "has not the columns that its document tells")
        return None, findings
    keys = Keys({form.key: truth.keys(form)}, gathered_positions(truth.table.column(form.key)).to_numpy(), True)
    splits = document.parent / ((problem.division.file if problem.division else None) or SPLITS_FILE)
    folds = examine_splits(held(splits, document.parent), keys, findings) if splits.is_file() else None
    parts = _parts(truth, form, keys, folds, findings)
    return Tested(problem, document, str(document), form, truth, parts, truth.keys(form), expected), findings


def _check_numbers(path: Path, form: Form, problem: Problem, document: str, read: Findings, findings: Findings) -> None:
    """Metrics of numbers are of targets that are numbers; a target without any is told once, and not by its rows.

    Args:
        read: what was found when the file was read.
    """
    odd = {fault.column for fault in read.faults if isinstance(fault, CellFault) and fault.code == "wrong_type"}
    wanted = odd.intersection(name for name, kind in form.targets.items() if kind == "real")
    texts = read_truth(path, replace(form, targets=dict.fromkeys(form.targets, "text")), Findings()) if wanted else None
    for name in sorted(filter(None, wanted)) if texts is not None else ():
        labels = pc.unique(texts.table.column(name).combine_chunks().cast(pa.string()).drop_null())  # type: ignore[union-attr]
        labels = labels.filter(pc.not_equal(labels, ""))
        wrong: list[int] = []
        typed(labels, "real", lambda row, message, wrong=wrong: wrong.append(row))  # type: ignore[misc]
        at = _place_of_numbers(problem)
        if len(wrong) < len(labels) or at is None:
            continue
        findings.faults[:] = [fault for fault in findings.faults if getattr(fault, "column", None) != name]
        metric = problem.criteria[at].metric
        few = ", ".join(map(repr, labels[:3].to_pylist()))
        told = f"{worded(metric)} is of numbers, and the target {name!r} has none, only {few}"
        place = f"{document}: inputs.performanceMetrics[{at}].metric" if document != str(path) else str(path)
        findings.fault(place, "not_applicable", told)


def _place_of_numbers(problem: Problem) -> int | None:
    """The place of the first criterion that reads numbers."""
    each = (reads_of(replace(problem, criteria=(criterion,))) for criterion in problem.criteria)
    return next((place for place, reads in enumerate(each) if reads == {"numbers"}), None)


def _is_csv(path: Path) -> bool:
    if not (path.is_file() or path.is_dir()):
        raise DataError(no_file(path))
    return path.is_file() and path.name != DATASET


def _table_of(path: Path, problem: Problem) -> tuple[Path, Resource]:
    """The learning table of a dataset, which is given by its folder or its document."""
    found = path if path.is_file() else next(below(path, DATASET), None)
    if found is None:
        raise SpecError(f"{path}: there is no {DATASET} in this folder or below it")
    document, findings = examine_dataset(found)
    findings.check()
    resource = learning(document, problem.datasets[problem.main])
    if resource is None or not resource.index:
        raise SpecError(f"{found}: there is no table to learn from that has an index")
    return held(found.parent / resource.path, found.parent), resource


def _guessed(problem: Problem, path: Path, findings: Findings) -> tuple[Form | None, Cells | None]:
    """A file with the truth, and what files are made of by it and by what the problem says."""
    try:
        header = header_in(path)
    except DataError as error:
        findings.faults += error.faults
        return None, None
    plain = guessed_form(problem, header)
    if plain is None:
        findings.fault(str(path), "missing_column", "no column names the rows; there must be d3mIndex or such")
        return None, None
    numbered = replace(plain, index_types=dict.fromkeys(plain.index, "integer"))
    truth = read_at_once(path, numbered)
    if truth is not None:
        return numbered, truth
    as_text = read_truth(path, plain, Findings())
    whole = {name for name in plain.index if as_text and _all_whole(as_text.table.column(name))}
    form = replace(plain, index_types={name: "integer" if name in whole else "text" for name in plain.index})
    return form, read_truth(path, form, findings)


def _all_whole(texts: pa.ChunkedArray) -> bool:
    wrong: list[int] = []
    typed(texts.combine_chunks(), "integer", lambda row, message: wrong.append(row))
    return not wrong


def _parts(
    truth: Cells, form: Form, keys: Keys | None, folds: Folds | None, findings: Findings
) -> dict[tuple[int, int], Mask]:
    """Which rows of the truth are tested in each fold of each repeat; all of them where there is no split."""
    check_truth(truth, form, findings)
    numbers = np.zeros((1, truth.table.num_rows), np.int32)
    if keys is not None and folds is not None:
        numbers = _numbers(truth, form, keys, folds, findings)
    used = (numbers >= 0).any(axis=0)
    for name in [form.key] if form.sets else form.columns:
        for row in np.flatnonzero(np.asarray(truth.table.column(name).is_null()) & used)[:SHOWN].tolist():
            findings.faults.append(
                cell_fault(truth, "empty_value", "is empty; a tested row needs the value that is right", row, name)
            )
    parts = ((repeat, fold) for repeat in range(len(numbers)) for fold in range(numbers.max(initial=0) + 1))
    return {(r, f): mask for r, f in parts if (mask := numbers[r] == f).any()}


def _numbers(truth: Cells, form: Form, keys: Keys, folds: Folds, findings: Findings) -> np.ndarray[Any, Any]:
    """repeats × rows of the truth: the fold that tests a row, or -1."""
    wanted = truth.keys(form)
    there = keys.columns[form.key].cast(wanted.type)
    rows = pc.index_in(wanted, value_set=there, skip_nulls=True)
    unknown = np.asarray(pc.is_null(rows))
    for row in np.flatnonzero(unknown)[:SHOWN].tolist():
        told = f"the dataset has no row with the index {wanted[row]}"
        findings.faults.append(cell_fault(truth, "extra_row", told, row, form.key))
    tested = (folds.numbers[:, keys.positions] >= 0).any(axis=0)
    for row in np.flatnonzero(tested & ~np.asarray(pc.is_in(there, value_set=wanted)))[:SHOWN].tolist():
        told = f"the tested row {there[row]} is not in the truth"
        findings.faults.append(cell_fault(truth, "missing_row", told, None, form.key))
    numbers = folds.numbers[:, keys.positions[np.asarray(rows.fill_null(0))]]
    return np.where(unknown, NOT_TESTED, numbers)
