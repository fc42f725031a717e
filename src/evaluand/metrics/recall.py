"""The share of what was expected that was found."""

from __future__ import annotations

from dataclasses import dataclass

from evaluand.metrics.base.counting import Counting


@dataclass(frozen=True, kw_only=True)
class Recall(Counting):
    """The share of what was expected that was found; undefined if nothing was expected.

    A system that predicts everything finds everything: look at the precision as well.

    The parameters are those of `Counting`.

    Example:
        >>> Recall(average="macro").signature
        'recall v2 missing=leave_out reduce=first average=macro interval=jackknife 95%'
    """

    kind = "recall"
    nothing = "nothing was expected"

    @property
    def sides(self) -> tuple[float, float]:
        return 1.0, 0.0
