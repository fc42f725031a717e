"""Numbers for the rows of integer tables, such as keys: equal rows get equal numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa


def digest_halves(column: pa.FixedSizeBinaryArray) -> np.ndarray:
    """Digests as two integers each."""
    digest_halves = np.frombuffer(column.buffers()[1] or b"", ">i8").reshape(-1, 2)
    return digest_halves[column.offset : column.offset + len(column)].astype(np.int64)


def count_earlier(keys: np.ndarray) -> np.ndarray:
    """For each row, the number of equal rows before it."""
    order, starts = _sort(_pack(keys))
    count = np.empty(len(keys), np.int64)
    count[order] = np.arange(len(keys)) - np.repeat(starts, np.diff(starts, append=len(keys)))
    return count


def number_rows(tables: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Numbers the rows of several tables: equal rows get the same number, smaller rows a smaller one."""
    if all(np.array_equal(table, tables[0]) for table in tables[1:]):
        return [_number(tables[0])] * len(tables)
    return np.split(_number(np.concatenate(tables)), np.cumsum([len(table) for table in tables])[:-1])


def _number(rows: np.ndarray) -> np.ndarray:
    rows = _pack(rows)
    if rows.shape[1] == 1 and len(rows) and rows.min() >= 0 and rows.max() < _DENSE * len(rows):  # count, not sort
        occurs = np.zeros(int(rows.max()) + 1, np.bool_)
        occurs[rows[:, 0]] = True
        return (np.cumsum(occurs) - 1)[rows[:, 0]]
    order, starts = _sort(rows)
    number = np.empty(len(rows), np.int64)
    number[order] = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(rows)))
    return number


_DENSE: Final = 8


def _sort(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The stable sort order of rows, and the positions in it where a different row begins."""
    order = np.argsort(rows[:, 0], kind="stable")
    run, falls = _find_runs(rows[order])
    if falls.any():  # ties in the first column that are out of order: few, with digests
        bad = np.zeros(run[-1] + 1, np.bool_)
        bad[run[falls]] = True
        places = np.flatnonzero(bad[run])
        some = order[places]
        order[places] = some[np.lexsort(rows[some].T[::-1])]
    ordered = rows[order]
    new = np.ones(len(rows), np.bool_)
    new[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in ordered.T])
    return order, np.flatnonzero(new)


def _pack(rows: np.ndarray) -> np.ndarray:
    """Rows as one number each where that fits into 64 bits: sorting by several columns is many times slower."""
    if len(rows) == 0:
        return rows
    low, high = rows.min(axis=0).tolist(), rows.max(axis=0).tolist()
    spans = [last - first + 1 for first, last in zip(low, high, strict=True)]
    if math.prod(spans) >= 2**63:
        return rows
    packed = np.zeros(len(rows), np.int64)
    for column, first, span in zip(rows.T, low, spans, strict=True):
        packed = packed * span + (column - first)
    return packed[:, None]


def _find_runs(ordered: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    same = ordered[1:, 0] == ordered[:-1, 0]
    run = np.concatenate([[0], np.cumsum(~same)]) if len(ordered) else np.zeros(0, np.int64)
    falls, tied = np.zeros(len(ordered), np.bool_), same
    for column in ordered.T[1:]:
        falls[1:] |= tied & (column[1:] < column[:-1])
        tied = tied & (column[1:] == column[:-1])
    return run, falls
