"""Homogeneity and completeness in one number."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.base.clustering import Contingency, OfEntropies, entropy, mutual_information, share_of


@dataclass(frozen=True, kw_only=True)
class VMeasure(OfEntropies):
    """The harmonic mean of homogeneity and completeness, in which completeness has β times the weight.

    (1 + β) h c / (β h + c), and 0 if both are 0. With β = 1 it equals `normalized_mutual_information`.
    Source: Rosenberg & Hirschberg (2007), see `OfEntropies`.

    The other parameters are those of `OfEntropies`.

    Args:
        beta: how much more completeness counts than homogeneity, above 0; 1 weighs both alike.

    Example:
        >>> VMeasure(beta=2).signature
        'v_measure v1 missing=leave_out reduce=first beta=2.0 interval=jackknife 95%'
    """

    kind = "v_measure"

    beta: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.beta < math.inf:
            raise SpecError(f"v_measure: beta={self.beta!r} must be a number above 0; 1 weighs both alike")
        object.__setattr__(self, "beta", float(self.beta))
        super().__post_init__()

    def of_table(self, table: Contingency) -> np.ndarray:
        information = mutual_information(table)
        homogeneity = share_of(information, entropy(table.truth), otherwise=1.0)
        completeness = share_of(information, entropy(table.prediction), otherwise=1.0)
        below = self.beta * homogeneity + completeness
        return np.where(below > 0, (1 + self.beta) * homogeneity * completeness / np.where(below > 0, below, 1.0), 0.0)
