"""The share of examples that were answered correctly at least k times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evaluand.metrics.accuracy import Accuracy
from evaluand.metrics.base.replications import OverReplications


@dataclass(frozen=True, kw_only=True)
class KOfN(OverReplications, Accuracy):
    """The share of examples with at least k right answers over all replications.

    With k = 1 an example counts if one try succeeded, with k = the number of replications only if all did: the
    difference shows how reliable a system is. A failed try counts as wrong by default (`missing`).

    Args:
        k: how many right answers an example needs.

    Raises:
        SpecError: k is below 1.

    Example:
        >>> KOfN(k=2).reduced(np.array([1.0, 0.0, 1.0, 0.0, 0.0, 1.0]), np.array([0, 3]))
        array([1., 0.])
    """

    kind = "k_of_n"

    def reduced(self, values: np.ndarray, starts: np.ndarray) -> np.ndarray:
        return np.asarray(np.add.reduceat(values, starts) >= self.k, np.float64)
