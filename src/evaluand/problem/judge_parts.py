"""Parts of a problem judged by its metrics; each fault points to the line of a file or into the problem's document."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from evaluand.core.errors import DataError, Fault
from evaluand.problem.alignment import AlignedTables
from evaluand.problem.files import CellFault, cell_fault
from evaluand.problem.judging import CriterionFault, CriterionResult, align, judge_aligned
from evaluand.problem.parts import Part
from evaluand.problem.problem import SubType
from evaluand.problem.reading import CONFIDENCE, RANK
from evaluand.problem.truth import ProblemTruth

_ROW: Final = re.compile(r"(truth|predictions) row (\d+), column (.+)")


def judge_part(
    part: Part, truth: ProblemTruth, definition: str | None, confidence: float | None
) -> tuple[AlignedTables, list[CriterionResult]]:
    """Aligns the rows of a part with their truth, and judges them by each criterion of the problem.

    Args:
        definition: the public definition of the metrics.
        confidence: of the intervals; None for values alone.

    Raises:
        DataError: something cannot be judged; every fault with its line, or its path in the problem's document.
    """

    def locate(fault: Fault) -> Fault:
        if isinstance(fault, CriterionFault) and fault.key is not None:
            return _in_document(fault, truth)
        match = _ROW.fullmatch(fault.where)
        if match is None:
            where = f"{part.file}: {fault.where}" if fault.where else str(part.file)
            translate = truth.format.translate
            return CellFault(translate(where), translate(fault.message), code=fault.code, file=str(part.file))
        side, row = match[1], int(match[2]) - 1
        of_truth = side == "truth"
        cells, rows = (truth.cells, part.truth_rows) if of_truth else (part.cells, part.prediction_rows)
        return cell_fault(cells, fault.code, fault.message, int(rows[row]), match[3])

    names = [truth.layout.key, *truth.layout.targets]
    optional = [name for name in (CONFIDENCE, RANK) if name in part.predictions.column_names and name not in names]
    return _judge(part.truth, part.predictions.select([*names, *optional]), truth, definition, confidence, locate)


def scoring_faults(truth: ProblemTruth, definition: str | None = None) -> Iterator[Fault]:
    """Why no predictions could be scored: the faults that remain when the truth itself is given as predictions."""
    for mask in truth.parts.values():
        rows = np.flatnonzero(mask)
        table = truth.cells.table.take(pa.array(rows))

        def locate(fault: Fault, rows: Any = rows) -> Fault:
            if isinstance(fault, CriterionFault):
                return _in_document(fault, truth)
            match = _ROW.fullmatch(fault.where)
            if match is None or match[1] != "truth":
                return fault
            return cell_fault(truth.cells, fault.code, fault.message, int(rows[int(match[2]) - 1]), match[3])

        try:
            _judge(table, _perfect_predictions(table, truth), truth, definition, None, locate)
        except DataError as error:
            yield from (fault for fault in error.faults if not fault.where.startswith("predictions"))
            return


def _judge(
    table: pa.Table,
    predictions: pa.Table,
    truth: ProblemTruth,
    definition: str | None,
    confidence: float | None,
    locate: Callable[[Fault], Fault],
) -> tuple[AlignedTables, list[CriterionResult]]:
    layout, criteria = truth.layout, truth.problem.criteria
    targets = [*layout.targets]
    several = True if SubType.MULTI_LABEL in truth.problem.sub_types else None
    table = table.select([layout.key, *targets])
    try:
        aligned, rules = align(table, predictions, criteria, (layout.key,), targets, definition, several)
        return aligned, judge_aligned(aligned, criteria, rules, targets, definition, None, confidence)
    except DataError as error:
        raise DataError(map(locate, error.faults)) from None


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
