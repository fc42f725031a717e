"""Prediction files and the parts of a split that they are for: one part each, or all folds of a repeat.

A part is judged by the metrics of its problem; each fault points to the line of a file or into the problem's document.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import DataError, Fault, SpecError, pluralize
from evaluand.core.files.json import Findings
from evaluand.core.files.paths import require_within
from evaluand.predictions.problem.aligned import AlignedTables
from evaluand.predictions.problem.definitions import STANDARD
from evaluand.predictions.problem.files import read_cells
from evaluand.predictions.problem.judging import CriterionResult, JudgeOptions, judge_sides
from evaluand.predictions.problem.layout import FileLayout
from evaluand.predictions.problem.problem import SubType
from evaluand.predictions.problem.sides import (
    CONFIDENCE,
    PREDICTIONS,
    RANK,
    CellFault,
    CriterionFault,
    Keys,
    Side,
    match_keys,
    row_faults,
)
from evaluand.predictions.problem.truth import ProblemTruth

PartKey = tuple[int, int]
"""Repeat and fold."""

ONE_SYSTEM: Final = "predictions"
"""What a system is called that is the only one."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """The tested rows of one fold of one repeat, with their truth and predictions.

    Attributes:
        keys: the example of each row.
    """

    repeat: int
    fold: int
    truth: Side
    predictions: Side
    keys: Keys = field(repr=False)


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


def assign_files(
    files: Sequence[Path] | Mapping[str, Sequence[Path]], truth: ProblemTruth
) -> dict[str, dict[Path, list[PartKey]]]:
    """System → its files → the parts that each is for; every system has one file for each part.

    Files are those of several systems if systems are named, or if two are for the same part. Each is then called after
    its files, without the numbers of repeats and folds.
    """
    if not truth.parts:
        raise SpecError(f"{truth.document}: the split tests no row, so there is nothing to score; list rows as TEST")
    named = files if isinstance(files, Mapping) else {}
    files = [path for own in named.values() for path in own] if isinstance(files, Mapping) else files
    twice = next((path for place, path in enumerate(files) if path in files[:place]), None)
    if twice is not None:
        raise SpecError(f"{twice}: is given twice; give each file once")
    parts = {path: _parts_of_file(path, truth) for path in files}
    claims = [part for of_file in parts.values() for part in of_file]
    if named:
        systems = {name: {path: parts[path] for path in own} for name, own in named.items()}
    elif len(claims) == len({*claims}):
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
        predictions = read_cells(path, layout, findings, strict=True)
        if predictions is None:
            continue
        tested = truth.cells.filter(np.any([truth.parts[part] for part in parts], axis=0))
        keys = _match(tested, predictions, layout)
        if truth.untested is not None:
            if not np.isin(np.arange(keys.n), keys.predictions).all():
                findings.faults.append(truth.untested)
                continue
            message = "nothing says which rows are tested; all of the table are, since all have a prediction"
            findings.note(truth.untested.where, "no_split", message)
        of_classes = layout.by_class and CONFIDENCE in predictions.table.column_names
        findings.faults += row_faults(
            tested,
            predictions,
            [layout.key],
            keys,
            one_prediction=not (layout.repeats or of_classes),
            gathers=layout.gathers,
            known=truth.known.get(layout.key),
        )
        for part in parts:
            own, said = tested, predictions
            if len(parts) > 1:
                own = truth.cells.filter(truth.parts[part])
                is_own = pc.is_in(predictions.column(layout.key), value_set=own.column(layout.key))
                said = predictions.filter(np.asarray(is_own))
                keys = _match(own, said, layout)
            yield Part(repeat=part[0], fold=part[1], truth=own, predictions=said, keys=keys)


def _match(truth: Side, predictions: Side, layout: FileLayout) -> Keys:
    keys, _ = match_keys(truth, predictions, [layout.key])
    assert keys is not None  # both have the type of the layout
    return keys


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


def judge_part(part: Part, truth: ProblemTruth, options: JudgeOptions) -> JudgedPart:
    """Aligns the rows of a part with their truth, and judges them by each criterion of the problem."""
    has_confidence = CONFIDENCE in part.predictions.table.column_names
    own = None if options.definition or not truth.layout.gathers or has_confidence else truth.definition
    options = replace(options, definition=options.definition or own)
    aligned, results = _judge(part, truth, options)
    if own is not None:
        other = _OTHER[own]
        others = _judge(part, truth, replace(options, definition=other, confidence=None))[1]
        pairs = zip(results, others, strict=True)
        results = [_with_version(mine, theirs, own, other, part.predictions) for mine, theirs in pairs]
    return JudgedPart(part, aligned, results)


def _with_version(
    result: CriterionResult, other: CriterionResult, own: str, name: str, predictions: Side
) -> CriterionResult:
    """The result of boxes without confidence, with a note if another version of the schema gives another value."""
    if math.isclose(result.value, other.value, rel_tol=1e-9) or result.value != result.value:
        return result
    message = (
        f"there is no confidence, so the document's version of the schema decides: {result.value:.6g} by the definition"
        f" {own}, not {other.value:.6g} by {name}; give confidences, or name the definition"
    )
    return replace(result, notes=(*result.notes, predictions.fault("other_version", message)))


_OTHER: Final = {STANDARD: "3.1.1", "3.1.1": STANDARD}
"""The definitions of boxes without confidence: under 3.x in the order of the file, under 4.x independent of it."""


def scoring_faults(truth: ProblemTruth, definition: str | None = None) -> Iterator[Fault]:
    """Why no predictions could be scored: the faults that remain when the truth itself is given as predictions."""
    for (repeat, fold), mask in truth.parts.items():
        own = truth.cells.filter(mask)
        perfect = replace(own, name=PREDICTIONS, table=_perfect_predictions(own, truth))
        keys = _match(own, perfect, truth.layout)
        part = Part(repeat=repeat, fold=fold, truth=own, predictions=perfect, keys=keys)
        try:
            _judge(part, truth, JudgeOptions(definition=definition, confidence=None))
        except DataError as error:
            yield from error.faults
            return


def _perfect_predictions(side: Side, truth: ProblemTruth) -> pa.Table:
    """The truth as predictions with confidence 1; several answers are ranked in the order of their rows."""
    predictions = side.table.select([truth.layout.key, *truth.layout.targets])
    codes = np.asarray(side.column(truth.layout.key).dictionary_encode().indices)
    order = np.argsort(codes, kind="stable")
    first = np.searchsorted(codes[order], codes[order])
    rank = np.empty(len(codes), np.int64)
    rank[order] = np.arange(len(codes)) - first + 1
    for name, values in ((CONFIDENCE, np.ones(len(codes))), (RANK, rank)):
        if name not in (each.lower() for each in predictions.column_names):
            predictions = predictions.append_column(name, pa.array(values))
    return predictions


def _judge(part: Part, truth: ProblemTruth, options: JudgeOptions) -> tuple[AlignedTables, list[CriterionResult]]:
    targets, multi_label = [*truth.layout.targets], SubType.MULTI_LABEL in truth.problem.sub_types
    try:
        return judge_sides(
            part.truth,
            part.predictions,
            part.keys,
            truth.problem.criteria,
            targets,
            options,
            several=True if multi_label else None,
            multi_label=multi_label,
        )
    except DataError as error:
        is_perfect = part.predictions.path == part.truth.path
        raise DataError(_locate(fault, truth, part, is_perfect) for fault in error.faults) from None


def _locate(fault: Fault, truth: ProblemTruth, part: Part, is_perfect: bool) -> Fault:
    """A fault of a criterion with its path in the problem's document, in the words of that document."""
    translate = truth.format.translate
    if isinstance(fault, CellFault):
        return fault
    if isinstance(fault, CriterionFault) and (fault.key is not None or is_perfect):
        return truth.format.locate(fault, None if truth.is_inline else truth.document, truth.name)
    file = str(part.predictions.path)
    where = f"{file}: {translate(fault.where)}"
    return CellFault(where, translate(fault.message), code=fault.code, file=file)
