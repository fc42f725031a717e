"""Values of groups without each block of rows: what a metric's value owes to some of its examples."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from evaluand.metrics.stats.paired_change import Ends


class Blocks(NamedTuple):
    """The block of each row.

    Attributes:
        of_row: from 0 to `n` - 1; the rows of a cluster are in one block.
        n: the number of blocks, each of which has rows.
    """

    of_row: np.ndarray
    n: int


class LeftOut(NamedTuple):
    """Values of groups, of all rows and without each block.

    Attributes:
        value: of each group, NaN where undefined.
        without: blocks × groups; a block without rows of a group leaves its value.
        basis: the share of each group's rows that its value depends on: of recall, the expected rows.
        expected: the share of each group's rows of which a proportion would vary as the value is expected to, where few
            rows may not show how it varies.
        parts: blocks × groups, the part of the rows that a block is drawn from, such as those of a class: each part
            shows its own spread, and a small one poorly; -1 without rows of the group.
        ends: of each group, where the spread of `without` does not give the interval; `without` then only shows which
            blocks move the value together, and may be another number than the value. None for a group without an
            interval.
        reason: of each group, why its value has no interval, so that `without` is NaN; None where nothing speaks
            against one.
    """

    value: np.ndarray
    without: np.ndarray
    basis: np.ndarray
    ends: Sequence[Ends | None] | None = None
    expected: np.ndarray | None = None
    parts: np.ndarray | None = None
    reason: Sequence[str | None] = (None,)


def rarest_parts(part: np.ndarray, blocks: Blocks) -> np.ndarray:
    """The part of each block, of which every row has one: the rarest of its rows, by number; -1 without rows.

    Example:
        >>> rarest_parts(np.array([5, 5, 5, 7]), Blocks(np.array([0, 1, 2, 2]), 4)).tolist()
        [0, 0, 1, -1]
    """
    _, code, often = np.unique(part, return_inverse=True, return_counts=True)
    rank = np.argsort(np.argsort(-often, kind="stable"))
    found = np.full(blocks.n, -1)
    np.maximum.at(found, blocks.of_row, rank[code])
    return found


def spread_of_parts(parts: np.ndarray) -> np.ndarray:
    """By how much each block's change must grow so that the sum of squares has no bias: √(m / (m - 1)) of m in a part.

    The changes of a part have a mean of 0, which is estimated from them.
    """
    m = np.bincount(parts + 1)[parts + 1]
    return np.asarray(np.sqrt(m / np.maximum(m - 1, 1)))
