"""The share of what was predicted that is right."""

from __future__ import annotations

from dataclasses import dataclass

from evaluand.metrics.base.counting import Counting


@dataclass(frozen=True, kw_only=True)
class Precision(Counting):
    """The share of what was predicted that is right; undefined if nothing was predicted.

    A system that predicts little is precise: look at the recall as well.

    The parameters are those of `Counting`.

    Example:
        >>> Precision(label="PER").signature
        'precision v2 missing=leave_out reduce=first label=PER interval=wilson 95%'
    """

    kind = "precision"
    nothing = "nothing was predicted"

    @property
    def sides(self) -> tuple[float, float]:
        return 0.0, 1.0
