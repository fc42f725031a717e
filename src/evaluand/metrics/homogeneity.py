"""Whether each cluster has rows of one class only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evaluand.metrics.base.clustering import Contingency, OfEntropies, entropy, mutual_information, share_of


@dataclass(frozen=True, kw_only=True)
class Homogeneity(OfEntropies):
    """How much of what tells the classes apart the clusters tell; 1 where each cluster is of one class.

    1 − H(truth | prediction) / H(truth), and 1 where all rows are of one class.
    Source: A. Rosenberg & J. Hirschberg, "V-measure: A conditional entropy-based external cluster evaluation measure"
    (EMNLP 2007).

    Args:
        weighted: each row counts by the weight of its example.
        confidence: of the interval; None for a value without one.

    Example:
        >>> Homogeneity().signature
        'homogeneity v1 missing=leave_out reduce=first interval=jackknife 95%'
    """

    kind = "homogeneity"

    def of_table(self, table: Contingency) -> np.ndarray:
        return share_of(mutual_information(table), entropy(table.truth), otherwise=1.0)
