"""Precision and recall in one number."""

from __future__ import annotations

import math
from dataclasses import dataclass

from evaluand.core.errors import SpecError
from evaluand.metrics.base.counting import Counting


@dataclass(frozen=True, kw_only=True)
class FBeta(Counting):
    """The harmonic mean of precision and recall, in which recall has β² times the weight.

    With P predicted, E expected and c right (of spans, a partial match counts half): F = (1 + β²) c / (P + β² E). It is
    undefined if nothing was expected or predicted, and 0 if only nothing was predicted. For one tag of spans, in the
    modes in which a pair may have two tags, c differs for predicted and expected spans: (right + β² found) /
    (P + β² E).
    Source: C. J. van Rijsbergen, Information Retrieval (2nd ed., 1979), chapter 7.

    The other parameters are those of `Counting`.

    Args:
        beta: how much more recall counts than precision, above 0; 1 weighs both alike.

    Example:
        >>> FBeta(beta=2).signature
        'f_beta v2 missing=leave_out reduce=first beta=2.0 interval=jackknife 95%'
    """

    kind = "f_beta"
    nothing = "nothing was expected or predicted"

    beta: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.beta < math.inf:
            raise SpecError(f"f_beta: beta={self.beta!r} must be a number above 0; 1 weighs precision and recall alike")
        object.__setattr__(self, "beta", float(self.beta))
        super().__post_init__()

    @property
    def sides(self) -> tuple[float, float]:
        return self.beta**2, 1.0
