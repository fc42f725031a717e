"""Prediction files and the parts of a split that they are for: one part each, or all folds of a repeat.

A part is judged by the metrics of its problem; each fault points to the line of a file or into the problem's document.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import DataError, Fault, SpecError, pluralize
from evaluand.core.files.json import Findings
from evaluand.core.files.paths import require_within
from evaluand.predictions.problem.alignment import AlignedTables
from evaluand.predictions.problem.definitions import STANDARD
from evaluand.predictions.problem.files import CellFault, FileCells, cell_fault, check_rows, read_cells
from evaluand.predictions.problem.judging import CriterionFault, CriterionResult, align, judge_aligned
from evaluand.predictions.problem.problem import SubType
from evaluand.predictions.problem.reading import CONFIDENCE, PREDICTIONS, RANK, TRUTH
from evaluand.predictions.problem.truth import Mask, ProblemTruth

PartKey = tuple[int, int]
"""Repeat and fold."""

ONE_SYSTEM: Final = "predictions"
"""What a system is called that is the only one."""


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


@dataclass(frozen=True)
class JudgedPart:
    """A part whose predictions were judged: its rows aligned with their truth, and the result of each criterion."""

    part: Part
    aligned: AlignedTables = field(repr=False)
    results: Sequence[CriterionResult]


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


def assign_files(files: Sequence[Path], truth: ProblemTruth) -> dict[str, dict[Path, list[PartKey]]]:
    """System → its files → the parts that each is for; every system has one file for each part.

    Files are those of several systems if two are for the same part. Each is then called after its files, without the
    numbers of repeats and folds.
    """
    if not truth.parts:
        raise SpecError(f"{truth.document}: the split tests no row, so there is nothing to score; list rows as TEST")
    twice = next((path for place, path in enumerate(files) if path in files[:place]), None)
    if twice is not None:
        raise SpecError(f"{twice}: is given twice; give each file once")
    parts = {path: _parts_of_file(path, truth) for path in files}
    claims = [part for of_file in parts.values() for part in of_file]
    if len(claims) == len({*claims}):
        systems = {ONE_SYSTEM: parts}
    else:
        stems = {path: path.stem if len(truth.parts) == 1 else _without_numbers(path.stem) for path in files}
        keys = dict.fromkeys((path.parent, stem) for path, stem in stems.items())
        names = [stem for _, stem in keys]
        systems = {}
        for folder, stem in keys:
            name = stem if names.count(stem) == 1 else f"{folder.name}/{stem}"
            if name in systems:
                raise SpecError(f"two systems are called {name!r}, after their files; rename one")
            systems[name] = {path: parts[path] for path in files if (path.parent, stems[path]) == (folder, stem)}
    for assigned in systems.values():
        _check_assigned(assigned, truth)
    return systems


def _check_assigned(files: Mapping[Path, Sequence[PartKey]], truth: ProblemTruth) -> None:
    """Checks that each part has one file."""
    files_of: dict[PartKey, Path] = {}
    for path, parts in files.items():
        for part in parts:
            if part in files_of:
                repeat, fold = part
                raise SpecError(f"{path}: {files_of[part]} is for repeat {repeat}, fold {fold} too; give one of them")
            files_of[part] = path
    missing = [part for part in truth.parts if part not in files_of]
    if missing:
        repeat, fold = missing[0]
        have = pluralize(len(missing), "has", "have")
        count = f"{len(missing)} of {len(truth.parts)} parts {have} no predictions, first repeat {repeat}, fold {fold}"
        raise SpecError(f"{count}; name their files such as {_example_name(truth)}")


def read_parts(files: Mapping[Path, list[PartKey]], truth: ProblemTruth, findings: Findings) -> Iterator[Part]:
    """The rows of each part, after all of them were checked against the tested rows."""
    layout = truth.layout
    for path, parts in files.items():
        cells = read_cells(path, layout, findings, strict=True)
        if cells is None:
            continue
        tested = _select(truth.cells.table, np.any([truth.parts[part] for part in parts], axis=0))
        if truth.untested is not None:
            of_all = pc.all(pc.is_in(tested.column(layout.key), value_set=cells.keys(layout))).as_py()
            if not of_all:
                findings.faults.append(truth.untested)
                continue
            message = "nothing says which rows are tested; all of the table are, since all have a prediction"
            findings.note(truth.untested.where, "no_split", message)
        check_rows(cells, tested, truth.known.get(layout.key), layout, findings)
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


def _without_numbers(stem: str) -> str:
    """A name of a file without the numbers of a repeat and a fold."""
    for pattern in _NUMBERED.values():
        stem = re.sub(rf"[_-]?{pattern.pattern}", "", stem, flags=re.IGNORECASE)
    return stem or ONE_SYSTEM


def _numbers_in(path: Path) -> dict[str, str | None]:
    matches = {name: pattern.search(path.stem.lower()) for name, pattern in _NUMBERED.items()}
    return {name: match[1] if match else None for name, match in matches.items()}


def _parts_of_file(path: Path, truth: ProblemTruth) -> list[PartKey]:
    if len(truth.parts) == 1:  # whatever numbers are in the name
        return [*truth.parts]
    repeats = len({repeat for repeat, _ in truth.parts})
    numbers = {name: None if text is None else int(text) for name, text in _numbers_in(path).items()}
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


_ROW: Final = re.compile(r"(truth|predictions) row (\d+), column (.+)")


def judge_part(part: Part, truth: ProblemTruth, definition: str | None, confidence: float | None) -> JudgedPart:
    """Aligns the rows of a part with their truth, and judges them by each criterion of the problem."""
    names = [truth.layout.key, *truth.layout.targets]
    optional = [name for name in (CONFIDENCE, RANK) if name in part.predictions.column_names and name not in names]
    predictions = part.predictions.select([*names, *optional])
    own = None if definition or not truth.layout.gathers or CONFIDENCE in optional else truth.definition
    try:
        aligned, results = _judge(part.truth, predictions, truth, definition or own, confidence)
        if own is not None:
            other = _OTHER[own]
            others = _judge(part.truth, predictions, truth, other, None)[1]
            results = [_with_version(mine, theirs, own, other) for mine, theirs in zip(results, others, strict=True)]
    except DataError as error:
        raise DataError(_locate(fault, part, truth) for fault in error.faults) from None
    return JudgedPart(part, aligned, results)


def _with_version(result: CriterionResult, other: CriterionResult, own: str, name: str) -> CriterionResult:
    """The result of boxes without confidence, with a note if another version of the schema gives another value."""
    if math.isclose(result.value, other.value, rel_tol=1e-9) or result.value != result.value:
        return result
    message = (
        f"there is no confidence, so the document's version of the schema decides: {result.value:.6g} by the definition"
        f" {own}, not {other.value:.6g} by {name}; give confidences, or name the definition"
    )
    return replace(result, notes=(*result.notes, Fault(PREDICTIONS, message, code="other_version")))


_OTHER: Final = {STANDARD: "3.1.1", "3.1.1": STANDARD}
"""The definitions of boxes without confidence: under 3.x in the order of the file, under 4.x independent of it."""


def scoring_faults(truth: ProblemTruth, definition: str | None = None) -> Iterator[Fault]:
    """Why no predictions could be scored: the faults that remain when the truth itself is given as predictions."""
    for (repeat, fold), mask in truth.parts.items():
        rows = np.flatnonzero(mask)
        table = truth.cells.table.take(pa.array(rows))
        perfect = _perfect_predictions(table, truth)
        part = Part(
            repeat=repeat,
            fold=fold,
            truth=table,
            predictions=perfect,
            cells=truth.cells,
            truth_rows=rows,
            prediction_rows=rows,
        )
        try:
            _judge(table, perfect, truth, definition, None)
        except DataError as error:
            yield from (
                _locate(fault, part, truth) for fault in error.faults if not fault.where.startswith(PREDICTIONS)
            )
            return


def _judge(
    table: pa.Table, predictions: pa.Table, truth: ProblemTruth, definition: str | None, confidence: float | None
) -> tuple[AlignedTables, list[CriterionResult]]:
    layout, criteria = truth.layout, truth.problem.criteria
    targets = [*layout.targets]
    multi_label = SubType.MULTI_LABEL in truth.problem.sub_types
    several, table = True if multi_label else None, table.select([layout.key, *targets])
    aligned, rules = align(table, predictions, criteria, (layout.key,), targets, definition, several, multi_label)
    return aligned, judge_aligned(aligned, criteria, rules, targets, definition, None, confidence)


def _locate(fault: Fault, part: Part, truth: ProblemTruth) -> Fault:
    """A fault with its line in a file, or its path in the problem's document."""
    if isinstance(fault, CriterionFault) and (fault.key is not None or part.cells is truth.cells):
        return _in_document(fault, truth)
    match = _ROW.fullmatch(fault.where)
    if match is None:
        where = f"{part.file}: {fault.where}" if fault.where else str(part.file)
        translate = truth.format.translate
        return CellFault(translate(where), translate(fault.message), code=fault.code, file=str(part.file))
    side, row = match[1], int(match[2]) - 1
    cells, rows = (truth.cells, part.truth_rows) if side == TRUTH else (part.cells, part.prediction_rows)
    return cell_fault(cells, fault.code, fault.message, int(rows[row]), match[3])


def _perfect_predictions(table: pa.Table, truth: ProblemTruth) -> pa.Table:
    """The truth as predictions with confidence 1; several answers are ranked in the order of their rows."""
    layout = truth.layout
    predictions = table.select([layout.key, *layout.targets])
    codes = np.asarray(predictions.column(layout.key).combine_chunks().dictionary_encode().indices)
    order = np.argsort(codes, kind="stable")
    first = np.searchsorted(codes[order], codes[order])
    rank = np.empty(len(codes), np.int64)
    rank[order] = np.arange(len(codes)) - first + 1
    for name, values in ((CONFIDENCE, np.ones(len(codes))), (RANK, rank)):
        if name not in (each.lower() for each in predictions.column_names):
            predictions = predictions.append_column(name, pa.array(values))
    return predictions


def _in_document(fault: CriterionFault, truth: ProblemTruth) -> Fault:
    """A fault of a criterion with its path in the problem's document, in the words of that document."""
    translate = truth.format.translate
    if truth.is_inline:
        return replace(fault, where=translate(fault.where), message=translate(fault.message))
    path = truth.format.criterion_path(fault.number, fault.key)
    message = translate(f"{fault.where}: {fault.message}")
    return CellFault(f"{truth.name}: {path}", message, code=fault.code, file=str(truth.document))
