"""Battles that seem to be in the data twice, in files that do not say which examples they are on.

Rows are compared by their systems, outcomes and (if known) judges, in the order of the file: long equal stretches are
the same battles. A copy in another order cannot be recognised like this.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from evaluand.core.row_numbers import number_rows

_CHANCE: Final = 0.01
"""The expected number of stretches that are equal by chance."""

_SHARE: Final = 0.5
"""The share of repeated rows from which on a file is reported."""

_FEWEST: Final = 20
_DOUBLED: Final = 0.95


class FileRows(NamedTuple):
    """The rows of a set in the order of its file.

    Attributes:
        facts: rows × integers: what a row says.
        excluded: rows that count once in any case.
    """

    facts: np.ndarray
    excluded: np.ndarray


def count_shared(one: FileRows, other: FileRows) -> int:
    """How many rows of the shorter set seem to be in the other one too; 0 where it is less than half of them.

    Example:
        >>> rows = np.random.default_rng(0).integers(0, 5, (200, 2))
        >>> some, all_rows = (FileRows(each, np.zeros(len(each), np.bool_)) for each in (rows[1:], rows))
        >>> count_shared(some, all_rows)
        199
    """
    short, long = sorted((one, other), key=lambda each: len(each.facts))
    codes, others = number_rows([short.facts, long.facts])
    width = _stretch_length(codes, others)
    if width is None:
        return 0
    starts = np.isin(_hash_stretches(codes, width), _hash_stretches(others, width))
    return _count_if_many(_cover(starts, width) & ~short.excluded)


def count_repeated(rows: FileRows) -> int:
    """How many rows of a set seem to repeat other rows of it; 0 where it is less than half of them.

    Example:
        >>> facts = np.random.default_rng(0).integers(0, 5, (200, 2))
        >>> several = facts, np.repeat(facts, 2, axis=0), np.concatenate([facts, facts])
        >>> [count_repeated(FileRows(each, np.zeros(len(each), np.bool_))) for each in several]
        [0, 200, 200]
    """
    [codes] = number_rows([rows.facts])
    even = len(codes) // 2 * 2
    if even >= 2 * _FEWEST:
        is_doubled = np.mean(codes[0:even:2] == codes[1:even:2]) >= _DOUBLED
        if is_doubled and np.mean(codes[1 : even - 1 : 2] == codes[2:even:2]) <= _SHARE:
            return even // 2
    width = _stretch_length(codes, codes)
    if width is None:
        return 0
    hashes = _hash_stretches(codes, width)
    _, first, number = np.unique(hashes, return_index=True, return_inverse=True)
    repeats = _cover(np.arange(len(hashes)) != first[number], width)
    return int(repeats.sum()) if 2 * repeats.sum() >= _SHARE * len(repeats) else 0


def _count_if_many(repeats: np.ndarray) -> int:
    return int(repeats.sum()) if repeats.sum() >= _SHARE * len(repeats) else 0


def _stretch_length(one: np.ndarray, other: np.ndarray) -> int | None:
    """How long equal stretches must be so as not to be equal by chance; None if the rows are too few for that.

    Two places at which rows are equal have equal next rows with a probability that is estimated from neighbours, so
    sorted files need longer stretches.
    """
    fewest = min(len(one), len(other))
    if fewest < _FEWEST:
        return None
    n = int(max(one.max(), other.max())) + 1
    neighbours = np.concatenate([each[:-1] * n + each[1:] for each in (one, other)])
    counts = np.unique(neighbours, return_counts=True)[1].astype(np.float64)
    singles = np.bincount(np.concatenate([one[:-1], other[:-1]])).astype(np.float64)
    chance = float((counts**2).sum() / (singles**2).sum())
    if chance >= 1.0:
        return None
    width = max(math.ceil(math.log(_CHANCE / (len(one) * len(other))) / math.log(chance)), 2)
    return width if 2 * width <= fewest else None


_BASE: Final = 0x9E3779B97F4A7C15  # odd, so that it has an inverse modulo 2^64
_INVERSE: Final = pow(_BASE, -1, 2**64)


def _hash_stretches(codes: np.ndarray, width: int) -> np.ndarray:
    """A number for each stretch of `width` rows: a polynomial modulo 2^64."""
    n = len(codes)
    mixed = (codes.astype(np.uint64) + np.uint64(1)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(31)
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed * _powers(_BASE, n))])
    return np.asarray((total[width:] - total[:-width]) * _powers(_INVERSE, n - width + 1))


def _powers(base: int, n: int) -> np.ndarray:
    return np.cumprod(np.full(n, base, np.uint64))


def _cover(starts: np.ndarray, width: int) -> np.ndarray:
    """The rows that are in a stretch that begins at one of the starts."""
    change = np.zeros(len(starts) + width, np.int64)
    change[: len(starts)] += starts
    change[width:] -= starts
    return np.asarray(np.cumsum(change)[:-1] > 0)
