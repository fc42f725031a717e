"""The share of what was expected that was found."""

from __future__ import annotations

from dataclasses import dataclass

from evaluand.metrics.base.counting import Counting


@dataclass(frozen=True, kw_only=True)
class Recall(Counting):
    """What was found of what was expected; undefined where nothing was expected.

    Reads truth and prediction, labels or sets of labels (scorer `prediction`), or the counts of a scorer such as
    `spans`, where a partial match counts half. A system that predicts everything finds
    everything: look at the precision as well.

    Args:
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
        SpecError: the parameters contradict each other.

    Example:
        >>> Recall(average="macro").signature
        'recall v2 missing=leave_out reduce=first average=macro interval=jackknife 95%'
    """

    kind = "recall"
    nothing = "nothing was expected"

    @property
    def sides(self) -> tuple[float, float]:
        return 1.0, 0.0
