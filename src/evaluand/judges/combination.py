"""Several values as one: the samples of a judge, the parts of a text, the members of a jury."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Final

COMBINE: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "mean": lambda values: math.fsum(values) / len(values),
    "median": statistics.median,
    "min": min,
    "max": max,
}


def most_frequent(labels: Sequence[str]) -> str | None:
    """The label that occurs most often; None if several do.

    Example:
        >>> most_frequent(["right", "wrong", "right"]), most_frequent(["right", "wrong"])
        ('right', None)
    """
    (first, count), *others = Counter(labels).most_common(2)
    return None if others and others[0][1] == count else first


def agreement(labels: Sequence[str]) -> float | None:
    """The share of pairs with equal labels, from 0 to 1; None for fewer than two labels.

    Source: Fleiss 1971, Measuring nominal scale agreement among many raters, equation 2 (agreement on one subject).

    Example:
        >>> agreement(["right", "right", "wrong"]), agreement(["right"]) is None
        (0.3333333333333333, True)
    """
    pairs = list(combinations(labels, 2))
    return sum(one == other for one, other in pairs) / len(pairs) if pairs else None
