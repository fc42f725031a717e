"""The share of what was predicted that is right."""

from __future__ import annotations

from dataclasses import dataclass

from evaluand.metrics.counting import Counting


@dataclass(frozen=True, kw_only=True)
class Precision(Counting):
    """What is right of what was predicted; undefined where nothing was predicted.

    Reads the counts of a scorer such as `spans`; a partial match counts half. A system that predicts little is precise:
    look at the recall as well.

    Args:
        average: `micro` is over all things alike, `macro` the mean over tags of the value of each; tags for which it is
            undefined are left out of it and told in `data`.
        tag: only things of this tag.
        weighted: each row counts by the weight of its example.
        confidence: of the interval.
        bootstrap: take the interval from so many bootstrap replicates of whole examples or clusters instead.

    Raises:
        SpecError: the parameters contradict each other.

    Example:
        >>> Precision(tag="PER").signature
        'precision v1 missing=leave_out reduce=first average=micro tag=PER interval=wilson 95%'
    """

    kind = "precision"
    nothing = "nothing was predicted"

    @property
    def sides(self) -> tuple[float, float]:
        return 0.0, 1.0
