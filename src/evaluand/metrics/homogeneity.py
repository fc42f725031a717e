"""Whether each cluster has rows of one class only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evaluand.metrics.base.clustering import Contingency, OfEntropies, entropy, mutual_information, share_of


@dataclass(frozen=True, kw_only=True)
class Homogeneity(OfEntropies):
    """The share of the classes' entropy that the clusters explain; 1 if each cluster has one class.

    1 − H(truth | prediction) / H(truth), and 1 if all rows are of one class.
    Source: Rosenberg & Hirschberg (2007), see `OfEntropies`.

    The parameters are those of `OfEntropies`.

    Example:
        >>> Homogeneity().signature
        'homogeneity v1 missing=leave_out reduce=first interval=jackknife 95%'
    """

    kind = "homogeneity"

    def of_table(self, table: Contingency) -> np.ndarray:
        return share_of(mutual_information(table), entropy(table.truth), otherwise=1.0)
