"""Limits: what a value of a point that is picked must not go beyond."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.tradeoff.front import ROUNDING
from evaluand.tradeoff.objectives import Objective


@dataclass(frozen=True)
class Limit:
    """What a value must not go beyond; what differs from it by rounding alone keeps it.

    Attributes:
        name: of the objective.
        above: whether values are to be at least the bound, and not at most.
        bound: the last value that keeps it.
        text: as it was written.
    """

    name: str
    above: bool
    bound: float
    text: str

    @classmethod
    def parse(cls, text: str, like: str = "accuracy") -> Limit:
        """From text such as `accuracy >= 0.8`; the last sign counts, for names may have some.

        Args:
            text: an objective, a sign and a bound.
            like: an objective that there is, to say how limits are written.

        Raises:
            SpecError: it is written in another way.

        Example:
            >>> Limit.parse("recall difference by a<=b <= 0.05").name
            'recall difference by a<=b'
        """
        found = _WRITTEN.fullmatch(text)
        try:
            bound = float(found["bound"]) if found else math.nan
        except ValueError:
            bound = math.nan
        if found is None or math.isnan(bound):
            raise SpecError(f"{text!r} is no limit; write it as in '{like} <= 0.05'")
        return cls(found["name"].strip(), found["sign"] == ">=", bound, text)

    def kept(self, value: np.ndarray, objective: Objective) -> np.ndarray:
        """Which values of the objective keep it."""
        rounding = rounding_of(objective)
        return value >= self.bound - rounding if self.above else value <= self.bound + rounding

    def nearest(self, value: np.ndarray, objective: Objective) -> str:
        """How many of some values keep it, and where they lie, in words."""
        kept = int(self.kept(value, objective).sum())
        return f"{self.text!r} is kept by {kept}, and the values lie from {value.min():.4g} to {value.max():.4g}"


def rounding_of(objective: Objective) -> float:
    """Values of an objective that lie no farther apart are one."""
    low, high = objective.range
    return ROUNDING * (high - low)


_WRITTEN: Final = re.compile(r"(?P<name>.*)(?P<sign>[<>]=)(?P<bound>.*)", re.DOTALL)
