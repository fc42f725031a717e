"""The power of a gate or a comparison by drawing the clusters of a pilot again, with the difference that is assumed.

Each draw is put to the very bound or test that gates and `compare` use, as a row of counts: how often it has each
cluster of the pilot. So a number of examples costs as much as another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from evaluand.comparison.difference import Sample
from evaluand.comparison.rule import LEVEL, Gate
from evaluand.metrics.stats.intervals import BOUND_CORRECTION, paired_score, random_bits, t_quantile
from evaluand.metrics.stats.least_mean import are_means_above

DRAWS: Final = 2_000
_FEW: Final = 20
"""Draws of more clusters than so many times those of the pilot have counts by the normal distribution."""


class DrawnPower:
    """The power at a number of clusters.

    Args:
        gate: None asks whether a comparison at the confidence finds the difference.
        sample: of the pilot.
        difference: the assumed true one, to which that of the pilot is moved.
        margin: by which the new system may be worse, or differ.
        signs: of the differences that must exceed -margin: -1 where lower values are better, both for equality.
        scale: how many times as far apart as those of the pilot clusters are assumed to be.
        part: which of so many equal parts of all draws to take, (0, 1) for all.

    Attributes:
        level: of the one-sided bound.
    """

    def __init__(
        self,
        gate: Gate | None,
        confidence: float,
        sample: Sample,
        difference: float,
        margin: float,
        signs: Sequence[float],
        scale: float = 1.0,
        part: tuple[int, int] = (0, 1),
    ) -> None:
        self.draws, self.first = DRAWS // part[1], part[0] * (DRAWS // part[1])
        self.gate, self.sample, self.signs, self.limit = gate, sample, signs, -margin
        self.level = (1 + confidence) / 2 if gate is None else gate.level or LEVEL
        weight = sample.state["cluster_weight"]
        wider = scale * math.sqrt(len(weight) / (len(weight) - 1))  # draws of few clusters vary less than new ones
        off = wider * (sample.state["cluster_sum"] - sample.value * weight)
        self.sums, self.weight = np.clip(off + difference * weight, -sample.span * weight, sample.span * weight), weight
        self._normal: np.ndarray | None = None

    def __call__(self, n: int) -> float:
        return float(self.passes(self._draw(n)).mean())

    def passes(self, count: np.ndarray) -> np.ndarray:
        """Of draws × clusters, whether each draw passes."""
        n, size = count.sum(axis=1), count @ self.weight
        total, square = count @ self.sums, count @ (self.sums * self.sums)
        value = total / size
        rest = square - 2 * value * (count @ (self.sums * self.weight)) + value**2 * (count @ self.weight**2)
        rest = np.where(rest <= _ROUNDING * square, 0.0, rest)
        with np.errstate(divide="ignore", invalid="ignore"):
            half = t_quantile(2 * self.level - 1, n - 1) * np.sqrt(n / (n - 1) * rest) / size
            half = np.where((half > 0) & (half < math.inf), half, np.nan)
        for draw in np.flatnonzero(rest == 0):  # see `Sample.ends`
            effective = round(float(size[draw] ** 2 / (count[draw] @ self.weight**2)))
            correction = 0.0 if self.gate is None else BOUND_CORRECTION
            low, _ = paired_score(0, 0, effective, 2 * self.level - 1, correction=correction)
            half[draw] = -low * (abs(float(value[draw])) or self.sample.reach or math.nan)
        if self.gate is None:
            return np.asarray(np.abs(value) > half)
        passed = np.ones(len(count), bool)
        for sign in self.signs:
            passed &= sign * value - half > self.limit
            if math.isfinite(self.sample.span) and passed.any():
                passed[passed] = are_means_above(
                    sign * self.sums, self.weight, count[passed], -self.sample.span, self.level, self.limit
                )
        return passed

    def _draw(self, n: int) -> np.ndarray:
        """Draws × clusters: how often each cluster is drawn among n."""
        k = len(self.sums)
        if n > _FEW * k:
            even = n / k
            return np.maximum(even + math.sqrt(even) * self._deviations(k), 0.0)
        count, at_once = np.empty((self.draws, k)), max(_AT_ONCE // n, 1)
        for first in range(0, self.draws, at_once):
            draws, start = min(at_once, self.draws - first), self.first + first
            bits = random_bits(np.arange(start * n, (start + draws) * n, dtype=np.uint64), 2)
            places = (bits % np.uint64(k)).astype(np.int64).reshape(draws, n) + k * np.arange(draws)[:, None]
            count[first : first + draws] = np.bincount(places.ravel(), minlength=draws * k).reshape(draws, k)
        return count

    def _deviations(self, k: int) -> np.ndarray:
        """Standard normal deviations of counts, which add up to 0 in each draw."""
        if self._normal is None:
            places = 2 * k * self.first + np.arange(2 * self.draws * k, dtype=np.uint64)
            bits = random_bits(places.astype(np.uint64), 2).reshape(2, self.draws, k)
            even, angle = ((bits >> np.uint64(11)) + 0.5) / 2**53
            found = np.sqrt(-2 * np.log(even)) * np.cos(2 * np.pi * angle)
            self._normal = found - found.mean(axis=1, keepdims=True)
        return self._normal


_ROUNDING: Final = 1e-13
_AT_ONCE: Final = 1 << 14
"""Clusters that are drawn in one step: as many as fit into a small cache of the processor."""
