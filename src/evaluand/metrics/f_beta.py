"""Precision and recall in one number."""

from __future__ import annotations

import math
from dataclasses import dataclass

from evaluand.core.errors import SpecError
from evaluand.metrics.base.counting import Counting


@dataclass(frozen=True, kw_only=True)
class FBeta(Counting):
    """The harmonic mean of precision and recall, in which recall weighs β² as much; undefined where there is nothing.

    Reads truth and prediction, labels or sets of labels (scorer `prediction`), or the counts of a scorer such as
    `spans`. Of P predicted and E expected c are right (of spans, a partial match counts half):
    F = (1 + β²) c / (P + β² E). So it is 0, and not undefined, where nothing was predicted but something expected. For
    one tag of spans, in the modes in which a pair may have two, c is what is right of this tag's predictions and what
    was found of its expected ones: (right + β² found) / (P + β² E).
    Source: C. J. van Rijsbergen, Information Retrieval (2nd ed., 1979), chapter 7.

    Args:
        beta: how much more recall counts than precision.
        label: the class that is looked at, the positive one; of spans, their tag.
        average: over classes, see `ClassRatio`: `micro`, `macro`, `weighted` or, over rows, `example`; over spans
            `micro` (as it is) or `macro`, the mean over tags of the value of each. Classes for which it is undefined
            are left out of the mean, and told in `data`.
        labels: the classes that are averaged over; those of truth and prediction if not given.
        zero_division: what an undefined ratio of labels is taken for, 0 or 1.
        weighted: each row counts by the weight of its example.
        confidence: of the interval; None for a value without one.
        bootstrap: over spans: take the interval from so many bootstrap replicates of whole examples or clusters.

    Raises:
        SpecError: beta is not positive, or the parameters contradict each other.

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
