"""Agreement of two partitions on pairs of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from evaluand.metrics.base.clustering import Clustering
from evaluand.metrics.base.metric import WEIGHT, Columns, State, weights_of


@dataclass(frozen=True, kw_only=True)
class AdjustedRand(Clustering):
    """The Rand index adjusted for chance: the share of pairs of rows that both partitions treat alike; 0 by chance.

    1 if the partitions are the same, also if both are trivial. A pair of rows counts by the product of their
    weights, so that only the ratios of weights matter; a row makes no pair with itself, whatever its weight.
    Source: L. Hubert & P. Arabie, "Comparing partitions" (Journal of Classification 2, 1985).

    The parameters are those of `Clustering`.

    Example:
        >>> AdjustedRand().signature
        'adjusted_rand v2 missing=leave_out reduce=first interval=jackknife 95%'
    """

    kind = "adjusted_rand"
    version = 2
    range = (-1.0, 1.0)
    adds: ClassVar[tuple[str, ...]] = ("_square_",)

    def state(self, columns: Columns, group: np.ndarray, n_groups: int) -> State:
        weight = weights_of(columns, self.kind) if self.weighted else np.ones(len(group))
        with np.errstate(over="ignore", under="ignore"):
            square = np.square(weight)
        usable = (square >= _LEAST) & (square < np.inf) | (weight == 0)
        return super().state({**columns, _SQUARE: np.where(usable, square, np.nan)}, group, n_groups)

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        square = rows[_SQUARE] * np.square(weight / np.where(rows[WEIGHT] > 0, rows[WEIGHT], 1.0))
        parts = zip(self.sums(rows, weight), self.sums(rows, square), strict=True)
        of_truth, of_prediction, together = (_pairs(*each) for each in parts)
        by_chance = of_truth * (of_prediction / _pairs(weight.sum(axis=1)[:, None], square.sum(axis=1)[:, None]))
        most = (of_truth + of_prediction) / 2
        same = (together == of_truth) & (together == of_prediction)
        return np.where(same, 1.0, (together - by_chance) / np.where(same, 1.0, most - by_chance))

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        return "the weights are too large or too small for their squares; give them in another unit"


def _pairs(weight: np.ndarray, square: np.ndarray) -> np.ndarray:
    """The pairs of two rows within parts, by the product of their weights: (Σ w)² − Σ w² is twice their sum."""
    return np.asarray((np.square(weight) - square).clip(0).sum(axis=1) / 2)


_SQUARE: Final = "_square_"
"""The sum of squared weights of the rows that are merged into one."""
_LEAST: Final = float(np.finfo(np.float64).tiny)
