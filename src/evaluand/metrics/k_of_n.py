"""The share of examples that were answered rightly at least k times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evaluand.metrics.accuracy import Accuracy
from evaluand.metrics.base.replications import OverReplications


@dataclass(frozen=True, kw_only=True)
class KOfN(OverReplications, Accuracy):
    """The share of examples of whose answers, over all replications, at least k are right.

    With k = 1 an example counts where one try succeeded, with k = the number of replications only where all did: how
    far the two lie apart tells how reliable a system is. A try that failed is a wrong one unless `missing` says else.

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
