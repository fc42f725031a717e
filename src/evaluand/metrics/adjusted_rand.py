"""How often two partitions agree about pairs of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evaluand.metrics.clustering import Clustering, Contingency


@dataclass(frozen=True, kw_only=True)
class AdjustedRand(Clustering):
    """The Rand index, so adjusted that chance is worth 0: the share of pairs of rows both partitions treat alike.

    1 where the partitions are the same, also where both are trivial. A row of weight w counts as w rows.
    Source: L. Hubert & P. Arabie, "Comparing partitions" (Journal of Classification 2, 1985).

    Args:
        weighted: each row counts by the weight of its example.
        confidence: of the interval; None for a value without one.

    Example:
        >>> AdjustedRand().signature
        'adjusted_rand v1 missing=leave_out reduce=first interval=jackknife 95%'
    """

    kind = "adjusted_rand"
    range = (-1.0, 1.0)

    def of_table(self, table: Contingency) -> np.ndarray:
        n = table.total
        together, of_truth, of_prediction = (
            (np.square(share * n[:, None]).sum(axis=1) - n) / 2 for share in (table.both, table.truth, table.prediction)
        )
        pairs = n * (n - 1) / 2
        by_chance = of_truth * of_prediction
        most = (of_truth + of_prediction) / 2 * pairs
        same = (together == of_truth) & (together == of_prediction)
        return np.where(same, 1.0, (together * pairs - by_chance) / np.where(same, 1.0, most - by_chance))
