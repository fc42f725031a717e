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
        return np.asarray((np.cumsum(occurs) - 1)[rows[:, 0]])
    order, starts = _sort(rows)
    number = np.empty(len(rows), np.int64)
    number[order] = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(rows)))
    return number


_DENSE: Final = 8


def _sort(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The stable sort order of rows, and the positions in it where a different row begins."""
    order = np.argsort(rows[:, 0], kind="stable")
    first = rows[order, 0]
    new = np.append(True, first[1:] != first[:-1])[: len(rows)]
    if rows.shape[1] > 1 and not new.all():
        tied = np.flatnonzero(~(new & np.append(new[1:], True)))
        some = rows[order[tied]]
        if (np.append(True, (some[1:] != some[:-1]).any(axis=1)) != new[tied]).any():  # few, with digests
            order[tied] = order[tied][np.lexsort((*some.T[:0:-1], np.cumsum(new)[tied]))]
            some = rows[order[tied]]
            new[tied] = np.append(True, (some[1:] != some[:-1]).any(axis=1))
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
        packed *= span
        packed += column - first
    return packed[:, None]
