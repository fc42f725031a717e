"""The share of what was expected that was found."""

from __future__ import annotations

from dataclasses import dataclass

from evaluand.metrics.counting import Counting


@dataclass(frozen=True, kw_only=True)
class Recall(Counting):
    """What was found of what was expected; undefined where nothing was expected.

    Reads the counts of a scorer such as `spans`; a partial match counts half. A system that predicts everything finds
    everything: look at the precision as well.

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
        >>> Recall(average="macro").signature
        'recall v1 missing=leave_out reduce=first average=macro interval=wilson 95%'
    """

    kind = "recall"
    nothing = "nothing was expected"

    @property
    def sides(self) -> tuple[float, float]:
        return 1.0, 0.0
