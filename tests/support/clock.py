"""A clock for tests of rates, and how many starts a period holds."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def fullest(starts: Sequence[float], seconds: float) -> int:
    """The most starts that any period, wherever it begins, holds."""
    ordered = sorted(starts)
    return max((bisect_left(ordered, start + seconds) - i for i, start in enumerate(ordered)), default=0)
