"""D3M's documents as a format of problems: what the commands `score` and `problem` find by the registry."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from evaluand.core.errors import DataError, Fault, SpecError
from evaluand.core.files.json import Findings, no_file
from evaluand.core.files.paths import relative_name, require_within
from evaluand.data.columns import join_chunks
from evaluand.interop.d3m.checks import declared_layout, learning_resource, needed_columns
from evaluand.interop.d3m.columns import describe_table
from evaluand.interop.d3m.dataset import Resource, examine_dataset, gathered_positions
from evaluand.interop.d3m.documents import DATASET, PROBLEM, SCORED, TRUTH, below, part_of
from evaluand.interop.d3m.folder import ProblemFolder, examine_folder
from evaluand.interop.d3m.names import UPPER, WORDS, name_of, translate
from evaluand.interop.d3m.needed import FolderFindings, needed_of_problem
from evaluand.interop.d3m.problem import SPLITS_FILE, examine_problem, schema_version
from evaluand.interop.d3m.splits import examine_splits
from evaluand.predictions.problem.definitions import DEFINITIONS, STANDARD
from evaluand.predictions.problem.files import read_cells, read_header
from evaluand.predictions.problem.formats import OpenProblem, ProblemFormat
from evaluand.predictions.problem.problem import Problem
from evaluand.predictions.problem.sides import CriterionFault
from evaluand.predictions.problem.truth import (
    ProblemTruth,
    RowKeys,
    read_guessed_truth,
    split_parts,
)

if TYPE_CHECKING:
    from evaluand.predictions.problem.judging import CriterionResult
    from evaluand.predictions.problem.parts import JudgedPart


def _truth_of_folder(
    folder: ProblemFolder, named: Path | None, findings: Findings, format: ProblemFormat
) -> ProblemTruth | None:
    resource = folder.resource()
    layout = declared_layout(folder.problem, resource)
    path = named or folder.truth_path
    if path is None and folder.hidden:
        path = _hidden_truth(folder)
    name = relative_name(folder.document, folder.root)
    in_table = path is None or not _is_csv(path)
    if path is None:
        path = (folder.datasets[folder.problem.main].folder or folder.root) / resource.path
    elif in_table:
        path = _learning_table(path, folder.problem, findings)[0]
    if layout.second_key is not None:
        layout = layout.for_file(read_header(path))
    read = Findings()
    cells = read_cells(path, layout, read)
    if in_table:  # whose rows that are not tested may lack the value
        read = Findings([fault for fault in read.faults if isinstance(fault, CriterionFault)])
    findings.notes += read.notes
    findings.faults += _located(read.faults, format, folder.document, name)
    if cells is None and in_table:
        missing = f"lacks some of the columns {', '.join(layout.columns)}"
        findings.fault(str(path), "cannot_be_scored", missing)
    if cells is None or findings.faults:
        return None
    keys, table = folder.keys(), folder.table()
    known = {name: join_chunks(table.column(name)) for name in table.column_names}
    folds = folder.folds() if folder.tested_by is not None else None
    parts = split_parts(cells, layout, keys, folds, findings)
    predictions = lambda: folder.predictions_path  # noqa: E731 - a link out of the folder is an error only on use
    untested = folder.untested if in_table else None
    return ProblemTruth(
        folder.problem, folder.document, name, layout, cells, parts, known, predictions, format, untested
    )


def _hidden_truth(folder: ProblemFolder) -> Path:
    """The dataset of a scored part that has no document of its own."""
    message = f"{folder.root}: target values are hidden, and there is no {TRUTH}"
    python, command = "give truth", "give --truth FILE"
    scored = {
        name: next((path for path in below(folder.root, name) if part_of(path, folder.root) == SCORED), None)
        for name in (PROBLEM, DATASET)
    }
    if scored[PROBLEM] not in (None, folder.document):
        python, command = f'{python}, or part="{SCORED}"', f"{command}, or --part {SCORED}"
    elif scored[DATASET] is not None:
        return scored[DATASET]
    raise SpecError(message, python=python, command=command)


def _truth_of_document(document: Path, path: Path, format: ProblemFormat) -> tuple[ProblemTruth | None, Findings]:
    """A document without its data, and the truth in a file of all tested rows or in a dataset."""
    problem, inner = examine_problem(document)
    findings = FolderFindings()
    findings.take(str(document), Findings(inner.faults), needed_of_problem)
    findings.notes += findings.beside
    return (None if problem is None else _truth_in(document, problem, path, findings, format)), findings


def _truth_in(
    document: Path, problem: Problem, path: Path, findings: Findings, format: ProblemFormat
) -> ProblemTruth | None:
    """The truth in a file or dataset outside the problem's folder."""

    def predictions() -> Path:
        return require_within(document.parent / problem.outputs.predictions, document.parent)

    if _is_csv(path):
        layout, cells = read_guessed_truth(problem, path, findings)
        findings.faults = _located(findings.faults, format, None if document == path else document, str(document))
        if layout is None or cells is None or findings.faults:
            return None
        parts = split_parts(cells, layout, None, None, findings)
        return ProblemTruth(problem, document, str(document), layout, cells, parts, {}, predictions, format)
    table, resource = _learning_table(path, problem, findings)
    layout = declared_layout(problem, resource)
    cells = read_cells(table, layout, Findings())
    if cells is None:
        findings.fault(str(table), "cannot_be_scored", "lacks columns that its document declares")
        return None
    positions = gathered_positions(cells.table.column(layout.key)).to_numpy()
    keys = RowKeys({layout.key: cells.column(layout.key)}, positions, repeated=True)
    splits = document.parent / ((problem.division.file if problem.division else None) or SPLITS_FILE)
    folds = examine_splits(require_within(splits, document.parent), keys, findings) if os.path.isfile(splits) else None
    parts = split_parts(cells, layout, keys, folds, findings)
    return ProblemTruth(problem, document, str(document), layout, cells, parts, keys.columns, predictions, format)


def _located(faults: Sequence[Fault], format: ProblemFormat, document: Path | None, name: str) -> list[Fault]:
    """Faults, those of criteria at their paths in a document."""
    return [format.locate(each, document, name) if isinstance(each, CriterionFault) else each for each in faults]


def _is_csv(path: Path) -> bool:
    if not (path.is_file() or path.is_dir()):
        raise DataError(no_file(path))
    return path.is_file() and path.name != DATASET


def _dataset_at(path: Path) -> Path:
    """The document of a dataset, by its folder or the document itself."""
    document = path if path.is_file() else next(below(path, DATASET), None)
    if document is None:
        raise SpecError(f"{path}: there is no {DATASET} in this folder or below it")
    return document


def _learning_table(path: Path, problem: Problem, findings: Findings) -> tuple[Path, Resource]:
    """The learning table of a dataset, by the dataset's folder or document."""
    document_path = _dataset_at(path)
    document, inner = examine_dataset(document_path)
    expected = problem.datasets[problem.main]
    document = describe_table(document, expected, problem, Findings())
    examined = FolderFindings()
    examined.take(str(document_path), Findings(inner.faults), needed_columns(document, expected))
    examined.check()
    findings.notes += examined.beside
    resource = learning_resource(document, expected)
    if resource is None or not resource.index:
        raise SpecError(f"{document_path}: there is no learning table with an index")
    return require_within(document_path.parent / resource.path, document_path.parent), resource


LAYOUTS: Final = ("3.1.1", "4")
_NOTES: Final = ("no_split", "other_place", "chosen_part", "not_in_part")
"""What scores note of the folder: which rows are tested."""

_ATTRIBUTES: Final = {"metric": "metric", "k": "K", "positive": "posLabel", "jointly": "applicabilityToTarget"}


class D3MFormat(ProblemFormat):
    """problemDoc.json with datasetDoc.json, dataSplits.csv and targets.csv; scores.csv."""

    kind = "d3m"
    score_layouts = LAYOUTS

    def recognises(self, path: Path) -> bool:
        return path.is_file() or next(below(path, PROBLEM), None) is not None

    def examine(self, path: Path, part: str | None) -> tuple[ProblemFolder | None, Findings]:
        folder, findings = examine_folder(path, part)
        return folder, findings.all()

    def read_truth(
        self, problem: Path | OpenProblem | Problem, truth: Path | None, part: str | None
    ) -> tuple[ProblemTruth | None, Findings]:
        findings = Findings()
        if isinstance(problem, ProblemFolder):
            return _truth_of_folder(problem, truth, findings, self), findings
        if isinstance(problem, Problem):
            if truth is None:
                need = "a problem without a document needs its truth"
                raise SpecError(need, python="give truth", command="give --truth")
            return _truth_in(truth, problem, truth, findings, self), findings
        assert isinstance(problem, Path)  # nothing else is a problem of this format
        if truth is not None and problem.is_file():
            return _truth_of_document(problem, truth, self)
        named = truth
        if truth is not None and not _is_csv(truth):
            document, _ = examine_dataset(_dataset_at(truth))
            named = truth if document.learning is None else _dataset_at(truth).parent / document.learning.path
        folder, examined = examine_folder(problem, part, named, attributes=False)
        notes = [note for note in examined.notes if note.code in _NOTES]  # `evaluand problem check` has all
        beside = [fault for fault in examined.beside if folder is None or fault != folder.untested]
        findings = Findings(examined.faults, [*notes, *beside])
        return (None if folder is None else _truth_of_folder(folder, truth, findings, self)), findings

    def metric_name(self, word: str) -> str:
        return name_of(word)

    def metric_word(self, name: str) -> str:
        return WORDS.get(name, name)

    def translate(self, message: str) -> str:
        return translate(message)

    def definition_of(self, document: Path) -> str:
        return "3.1.1" if schema_version(document) < (4,) else STANDARD

    def criterion_path(self, number: int, attribute: str | None) -> str:
        path = f"inputs.performanceMetrics[{number}]"
        return f"{path}.{_ATTRIBUTES[attribute]}" if attribute else path

    def scores_table(self, parts: Sequence[JudgedPart], problem: Problem, layout: str) -> pa.Table:
        """`3.1.1`: index, problemID, metric, value; `4`: metric, value, normalized, randomSeed, fold."""
        if layout not in LAYOUTS:
            raise SpecError(f"unknown layout {layout!r} of scores; give {' or '.join(LAYOUTS)}")
        rows = [(each.part, result) for each in parts for result in each.results]
        # an undefined value is empty
        values = pa.array([None if math.isnan(result.value) else result.value for _, result in rows], pa.float64())
        names = [result.criterion.metric for _, result in rows]
        columns: dict[str, Sequence[Any]] = {
            "index": range(len(rows)),
            "problemID": [problem.id] * len(rows),
            "metric": [self.metric_word(name) for name in names],
            "value": values,
        }
        if layout == "4":
            folds = 1 + max(part.fold for part, _ in rows)
            columns = {
                "metric": [UPPER.get(name, name.upper()) for name in names],
                "value": values,
                "normalized": pa.array([_normalised(result) for _, result in rows], pa.float64()),
                "randomSeed": [(problem.division and problem.division.seed) or 0] * len(rows),
                "fold": [part.repeat * folds + part.fold for part, _ in rows],
            }
        return pa.table({name: pa.array(cells) for name, cells in columns.items()})


def _normalised(result: CriterionResult) -> float | None:
    """The value from 0, the worst, to 1, the best, by the rule of schema 4; None where that has no rule."""
    name = result.criterion.metric
    if math.isnan(result.value) or name not in WORDS:
        return None
    if DEFINITIONS[STANDARD][name].reads == "numbers":
        best = 1.0 if name == "r_squared" else 0.0
        return 2 / (1 + math.exp(min(abs(best - result.value), 700.0)))
    return 1 - result.value if name == "hamming_loss" else result.value
