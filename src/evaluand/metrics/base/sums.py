"""Base of metrics that are a function of sums over rows, such as R² or an error rate of a corpus."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluand.metrics.base.metric import WEIGHT, Columns
from evaluand.metrics.base.weighted_rows import WeightedRowsMetric


@dataclass(frozen=True, kw_only=True)
class OfSums(WeightedRowsMetric):
    """A function of sums over weighted rows: the value without a row is that of the sums less what the row adds."""

    @abstractmethod
    def terms(self, rows: Columns) -> Sequence[np.ndarray]:
        """What each of some rows adds to the sums: sums × rows (× any further axes).

        Args:
            rows: some of the rows that `arranged` returned, with all else that it returned.
        """

    @abstractmethod
    def of_sums(self, sums: Sequence[np.ndarray], rows: Columns) -> np.ndarray:
        """The values of sums × values (× any further axes)."""

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        return self.of_sums(self._sums(rows, weight), rows)

    def without_rows(self, rows: Columns, one: np.ndarray) -> np.ndarray:
        found = np.empty(len(one))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            whole = self._sums(rows, rows[WEIGHT][None])
            for part, some in self._parts(rows):
                own = [one[part].reshape(-1, *[1] * (term.ndim - 1)) * term for term in self.terms(some)]
                found[part] = self.of_sums([*map(_less, whole, own)], rows)
        return np.where(np.isfinite(found), found, np.nan)

    def _sums(self, rows: Columns, weight: np.ndarray) -> list[np.ndarray]:
        """The sums under several weightings: sums × replicates (× any further axes)."""
        parts = [[_weighed(weight[:, part], term) for term in self.terms(some)] for part, some in self._parts(rows)]
        return [np.sum(sums, axis=0) for sums in zip(*parts, strict=True)]

    def _parts(self, rows: Columns) -> Iterator[tuple[slice, Columns]]:
        """Some rows at a time, few enough for the cache of a processor."""
        n = len(rows[WEIGHT])
        for start in range(0, n, _ROWS):
            part = slice(start, start + _ROWS)
            yield part, {**rows, **{name: rows[name][part] for name in (WEIGHT, *self.row_columns)}}


def _weighed(weight: np.ndarray, term: np.ndarray) -> np.ndarray:
    """The sum of a term by each weighting."""
    if weight.strides == (0, 0):  # all alike
        return np.asarray(weight[:, 0].reshape(-1, *[1] * (term.ndim - 1)) * term.sum(axis=0))
    return np.asarray(np.einsum("rn,n...->r...", weight, term))


def _less(whole: np.ndarray, part: np.ndarray) -> np.ndarray:
    """The rest of a sum; 0 where only rounding remains."""
    rest = whole - part
    return np.where(np.abs(rest) > _ROUNDING * np.abs(whole), rest, 0.0)


_ROWS: Final = 1 << 15
_ROUNDING: Final = 1e-13
