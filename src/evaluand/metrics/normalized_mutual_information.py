"""Mutual information of two partitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.base.clustering import Contingency, OfEntropies, entropy, mutual_information, share_of


@dataclass(frozen=True, kw_only=True)
class NormalizedMutualInformation(OfEntropies):
    """The mutual information of truth and prediction, divided by a mean of their entropies.

    1 if the partitions are the same, even with a single cluster; 0 if they are independent. Many small clusters raise
    it by chance; `adjusted_rand` does not have this bias.
    Source: A. Strehl & J. Ghosh, "Cluster ensembles" (Journal of Machine Learning Research 3, 2002), with the geometric
    mean; N. Vinh, J. Epps & J. Bailey, "Information theoretic measures for clusterings comparison" (JMLR 11, 2010).

    Args:
        mean: of the two entropies: `arithmetic`, `geometric`, `min` or `max`.
        weighted: each row counts by the weight of its example.
        confidence: of the interval; None for no interval.

    Raises:
        SpecError: there is no such mean.

    Example:
        >>> NormalizedMutualInformation(mean="geometric").signature
        'normalized_mutual_information v1 missing=leave_out reduce=first mean=geometric interval=jackknife 95%'
    """

    kind = "normalized_mutual_information"

    mean: Literal["arithmetic", "geometric", "min", "max"] = "arithmetic"

    def __post_init__(self) -> None:
        if self.mean not in _MEANS:
            raise SpecError(f"{self.kind}: mean={self.mean!r} does not work here; choose one of {', '.join(_MEANS)}")
        super().__post_init__()

    def of_table(self, table: Contingency) -> np.ndarray:
        one, other = entropy(table.truth), entropy(table.prediction)
        trivial = (one == 0) & (other == 0)
        return np.where(trivial, 1.0, share_of(mutual_information(table), _MEANS[self.mean](one, other), otherwise=0.0))


_MEANS: Final[Mapping[str, Callable[[np.ndarray, np.ndarray], np.ndarray]]] = {
    "arithmetic": lambda one, other: (one + other) / 2,
    "geometric": lambda one, other: np.asarray(np.sqrt(one * other)),
    "min": np.minimum,
    "max": np.maximum,
}
