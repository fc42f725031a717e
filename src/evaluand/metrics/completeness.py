"""Whether the rows of each class are in one cluster."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evaluand.metrics.base.clustering import Contingency, OfEntropies, entropy, mutual_information, share_of


@dataclass(frozen=True, kw_only=True)
class Completeness(OfEntropies):
    """How much of what tells the clusters apart the classes tell; 1 where each class is in one cluster.

    1 − H(prediction | truth) / H(prediction), and 1 where all rows are in one cluster.
    Source: A. Rosenberg & J. Hirschberg, "V-measure: A conditional entropy-based external cluster evaluation measure"
    (EMNLP 2007).

    Args:
        weighted: each row counts by the weight of its example.
        confidence: of the interval; None for a value without one.

    Example:
        >>> Completeness().signature
        'completeness v1 missing=leave_out reduce=first interval=jackknife 95%'
    """

    kind = "completeness"

    def of_table(self, table: Contingency) -> np.ndarray:
        return share_of(mutual_information(table), entropy(table.prediction), otherwise=1.0)
