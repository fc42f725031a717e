"""Limits: what a value of a point that is picked must not go beyond."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evaluand.errors import SpecError

if TYPE_CHECKING:
    from evaluand.tradeoff.points import Tradeoff


@dataclass(frozen=True)
class Limit:
    """What a value must not go beyond."""

    place: int
    above: bool
    bound: float
    text: str

    @classmethod
    def parse(cls, text: str, points: Tradeoff) -> Limit:
        """From text such as `accuracy >= 0.8`, by the objectives that points have.

        Raises:
            SpecError: it is written in another way, or there is no such objective.
        """
        for sign in ("<=", ">="):
            name, found, number = text.rpartition(sign)
            if found:
                try:
                    bound = float(number)
                except ValueError:
                    break
                if math.isnan(bound):
                    break
                return cls(points.place_asked(name.strip()), sign == ">=", bound, text)
        raise SpecError(f"{text!r} is no limit; write it as in '{points.objectives[-1].name} <= 0.05'")

    def kept(self, value: np.ndarray) -> np.ndarray:
        """Which values keep it."""
        return value >= self.bound if self.above else value <= self.bound

    def nearest(self, value: np.ndarray) -> str:
        """How many of some values keep it, and where they lie, in words."""
        kept = int(self.kept(value).sum())
        return f"{self.text!r} is kept by {kept}, and the values lie from {value.min():.4g} to {value.max():.4g}"
