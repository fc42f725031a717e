"""Whether the rows of each class are in one cluster."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evaluand.metrics.base.clustering import Contingency, OfEntropies, entropy, mutual_information, share_of


@dataclass(frozen=True, kw_only=True)
class Completeness(OfEntropies):
    """The share of the clusters' entropy that the classes explain; 1 if each class is in one cluster.

    1 − H(prediction | truth) / H(prediction), and 1 if all rows are in one cluster.
    Source: Rosenberg & Hirschberg (2007), see `OfEntropies`.

    The parameters are those of `OfEntropies`.

    Example:
        >>> Completeness().signature
        'completeness v1 missing=leave_out reduce=first interval=jackknife 95%'
    """

    kind = "completeness"

    def of_table(self, table: Contingency) -> np.ndarray:
        return share_of(mutual_information(table), entropy(table.prediction), otherwise=1.0)
