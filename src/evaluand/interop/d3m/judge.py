"""Rows of a problem judged by its metrics; faults stand where they are to be mended: in a line, or in the document."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from evaluand.core.errors import DataError, Fault
from evaluand.interop.d3m.names import worded
from evaluand.interop.d3m.prediction_files import Part
from evaluand.interop.d3m.predictions import CONFIDENCE, RANK, CellFault, cell_fault
from evaluand.interop.d3m.truth import Tested
from evaluand.problem import CriterionFault, CriterionResult, judge
from evaluand.problem.problem import SubType

_KEYS: Final = {"metric": "metric", "k": "K", "positive": "posLabel", "jointly": "applicabilityToTarget"}
_ROW: Final = re.compile(r"(truth|predictions) row (\d+), column (.+)")


def judged(part: Part, task: Tested, definition: str | None, confidence: float | None) -> list[CriterionResult]:
    """What the predictions of a part are worth.

    Raises:
        DataError: something cannot be judged; every fault by its line, or by its place in the problem's document.
    """

    def placed(fault: Fault) -> Fault:
        if isinstance(fault, CriterionFault) and fault.key is not None:
            return _in_document(fault, task)
        found = _ROW.fullmatch(fault.where)
        if found is None:
            where = f"{part.file}: {fault.where}" if fault.where else str(part.file)
            return CellFault(worded(where), worded(fault.message), code=fault.code, file=str(part.file))
        side, row = found[1], int(found[2]) - 1
        cells, rows = (task.truth, part.truth_rows) if side == "truth" else (part.cells, part.prediction_rows)
        return cell_fault(cells, fault.code, fault.message, int(rows[row]), found[3])

    names = [task.form.key, *task.form.targets]
    beside = [name for name in (CONFIDENCE, RANK) if name in part.predictions.column_names and name not in names]
    return _judged(part.truth, part.predictions.select([*names, *beside]), task, definition, confidence, placed)


def scorable(task: Tested, definition: str | None = None) -> Iterator[Fault]:
    """Why no predictions could be scored: what is wrong even of those that say what is right."""
    for mask in task.parts.values():
        rows = np.flatnonzero(mask)
        truth = task.truth.table.take(pa.array(rows))

        def placed(fault: Fault, rows: Any = rows) -> Fault:
            if isinstance(fault, CriterionFault):
                return _in_document(fault, task)
            found = _ROW.fullmatch(fault.where)
            if found is None or found[1] != "truth":
                return fault
            return cell_fault(task.truth, fault.code, fault.message, int(rows[int(found[2]) - 1]), found[3])

        try:
            _judged(truth, _right(truth, task), task, definition, None, placed)
        except DataError as error:
            yield from (fault for fault in error.faults if not fault.where.startswith("predictions"))
            return


def _judged(
    truth: pa.Table,
    predictions: pa.Table,
    task: Tested,
    definition: str | None,
    confidence: float | None,
    placed: Callable[[Fault], Fault],
) -> list[CriterionResult]:
    try:
        return judge(
            truth.select([task.form.key, *task.form.targets]),
            predictions,
            task.problem.criteria,
            index=(task.form.key,),
            targets=[*task.form.targets],
            definition=definition,
            confidence_of_interval=confidence,
            several=True if SubType.MULTI_LABEL in task.problem.sub_types else None,
        )
    except DataError as error:
        raise DataError(map(placed, error.faults)) from None


def _right(truth: pa.Table, task: Tested) -> pa.Table:
    """Predictions that say what is right, as sure as can be; several answers in the order of their rows."""
    made = truth.select([task.form.key, *task.form.targets])
    codes = np.asarray(made.column(task.form.key).combine_chunks().dictionary_encode().indices)
    order = np.argsort(codes, kind="stable")
    first = np.searchsorted(codes[order], codes[order])
    rank = np.empty(len(codes), np.int64)
    rank[order] = np.arange(len(codes)) - first + 1
    for name, values in ((CONFIDENCE, np.ones(len(codes))), (RANK, rank)):
        if name not in (each.lower() for each in made.column_names):
            made = made.append_column(name, pa.array(values))
    return made


def _in_document(fault: CriterionFault, task: Tested) -> Fault:
    """A fault of a criterion by its place in the problem's document, in the words of that."""
    if task.problem_is_stated:
        return replace(fault, where=worded(fault.where), message=worded(fault.message))
    at = f"inputs.performanceMetrics[{fault.number}]"
    place = f"{at}.{_KEYS[fault.key]}" if fault.key else at
    return CellFault(
        f"{task.name}: {place}", worded(f"{fault.where}: {fault.message}"), code=fault.code, file=str(task.document)
    )
