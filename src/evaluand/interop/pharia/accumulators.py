"""Numbers taken in one by one."""

from __future__ import annotations

import math


class MeanAccumulator:
    """Mean, standard deviation (of the values as the whole population) and standard error of what was added.

    By Welford's method, which loses no digits where values are large and near each other (B. P. Welford, Technometrics
    4, 1962). Of no values all three are 0.0, as in the SDKs; look at `n` where that would mislead.

    Attributes:
        n: how many values were added.

    Example:
        >>> accumulator = MeanAccumulator()
        >>> for value in (1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16):
        ...     accumulator.add(value)
        >>> accumulator.extract(), round(accumulator.standard_deviation(), 9)
        (1000000010.0, 4.74341649)
    """

    def __init__(self) -> None:
        self.n = 0
        self._mean = self._squares = 0.0

    def add(self, value: float) -> None:
        """Takes in a value."""
        self.n += 1
        off = value - self._mean
        self._mean += off / self.n
        self._squares += off * (value - self._mean)

    def extract(self) -> float:
        """The mean."""
        return self._mean

    def standard_deviation(self) -> float:
        """The root of the mean squared distance from the mean."""
        return math.sqrt(self._squares / self.n) if self.n else 0.0

    def standard_error(self) -> float:
        """The standard deviation over the root of n."""
        return self.standard_deviation() / math.sqrt(self.n) if self.n else 0.0
