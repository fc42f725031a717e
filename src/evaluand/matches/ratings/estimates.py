"""What a method of rating returns: a number per system and per pair of systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Estimates:
    """Ratings and their differences; NaN where undefined, ±∞ for the open end of an interval.

    Attributes:
        rating: of each system, as are the next four.
        error: its standard error.
        low, high: its interval.
        reason: why something is undefined.
        difference: systems × systems: the rating of the first minus that of the second, as are the next three.
        difference_low, difference_high: its interval.
        p: the two-sided p value of equal ratings.
        test: the name of the test.
        difference_reason: why a difference is undefined, by pair of systems.
        strength: in log-odds; None if the method has none.
        parameters: rows of the table `parameters`.
    """

    rating: np.ndarray
    error: np.ndarray
    low: np.ndarray
    high: np.ndarray
    reason: Sequence[str | None]
    difference: np.ndarray
    difference_low: np.ndarray
    difference_high: np.ndarray
    p: np.ndarray
    test: str
    difference_reason: Mapping[tuple[int, int], str] = field(default_factory=dict)
    strength: np.ndarray | None = None
    parameters: Sequence[Mapping[str, Any]] = ()
