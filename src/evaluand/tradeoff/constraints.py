"""Constraints on the point that is picked, such as `accuracy >= 0.8`."""

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
    """A lower or an upper bound on the values of an objective; differences by rounding alone do not count.

    Attributes:
        above: whether the bound is a minimum; otherwise it is a maximum.
        bound: the last value that is allowed.
        text: the limit as the user wrote it.
    """

    name: str
    above: bool
    bound: float
    text: str

    @classmethod
    def parse(cls, text: str, example: str = "accuracy") -> Limit:
        """A limit from text such as `accuracy >= 0.8`; the last sign counts, since names may contain others.

        Args:
            text: an objective, a sign and a bound.
            example: a known objective, for the message.

        Example:
            >>> Limit.parse("recall difference by a<=b <= 0.05").name
            'recall difference by a<=b'
        """
        match = _LIMIT.fullmatch(text)
        try:
            bound = float(match["bound"]) if match else math.nan
        except ValueError:
            bound = math.nan
        if match is None or math.isnan(bound):
            raise SpecError(f"{text!r} is not a limit; write it as in '{example} <= 0.05'")
        return cls(match["name"].strip(), match["sign"] == ">=", bound, text)

    def allows(self, values: np.ndarray, objective: Objective) -> np.ndarray:
        """Which values of the objective are within the limit."""
        rounding = rounding_of(objective)
        return values >= self.bound - rounding if self.above else values <= self.bound + rounding

    def describe_misses(self, values: np.ndarray, objective: Objective) -> str:
        """How many values are within the limit, and the range of all values, in words."""
        n = int(self.allows(values, objective).sum())
        return f"{self.text!r} is met by {n}, and the values lie between {values.min():.4g} and {values.max():.4g}"


def rounding_of(objective: Objective) -> float:
    """The largest distance at which two values of an objective count as equal."""
    low, high = objective.range
    return ROUNDING * (high - low)


_LIMIT: Final = re.compile(r"(?P<name>.*)(?P<sign>[<>]=)(?P<bound>.*)", re.DOTALL)
