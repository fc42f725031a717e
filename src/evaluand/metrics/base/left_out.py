"""Values of groups without each block of rows: what a metric's value owes to some of its examples."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from evaluand.metrics.stats.paired_change import Ends

MOST_CELLS: Final = 1 << 24
"""The most rows × blocks of a metric that computes a value for each block."""


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
        ends: of each group, where the spread of `without` does not give the interval; `without` then only shows which
            blocks move the value together, and may be another number than the value. None for a group without an
            interval.
    """

    value: np.ndarray
    without: np.ndarray
    basis: np.ndarray
    ends: Sequence[Ends | None] | None = None
