"""Histograms: between which edges numbers are counted, and how many lie there. The page and reports have the same."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

BINS: Final = 20
_LEAST_WIDTH: Final = 1e-290


def find_edges(values: np.ndarray) -> list[float] | None:
    """The edges of a histogram of numbers, which may include NaN and infinite ones; None if they do not differ.

    Edges between two bars have few digits, so that a filter with them can be read.

    Example:
        >>> find_edges(np.array([0.0, 0.123, 1.0])), find_edges(np.array([2.0, 2.0]))
        ([0.0, 0.333, 0.667, 1.0], None)
    """
    distinct = np.unique(values[np.isfinite(values)]).tolist()
    n = min(BINS, len(distinct))
    width = (distinct[-1] - distinct[0]) / n if distinct else 0
    if not _LEAST_WIDTH < width < math.inf:
        return None
    edges = np.linspace(distinct[0], distinct[-1], n + 1)
    rounded = np.round(edges[1:-1], 2 - math.floor(math.log10(width)))
    if np.all(np.diff([edges[0], *rounded, edges[-1]]) > 0):
        edges[1:-1] = rounded
    return [float(edge) for edge in edges]


def count_between(values: np.ndarray, edges: list[float]) -> list[int]:
    """How many finite numbers lie between each two edges; the last interval includes its upper edge."""
    counts, _ = np.histogram(values[np.isfinite(values)], edges)
    return [int(count) for count in counts]


def count_together(groups: Sequence[Iterable[np.ndarray]]) -> tuple[list[float] | None, list[list[int] | None]]:
    """The edges that groups of numbers share, and the counts of each group between them; None if they do not differ.

    Args:
        groups: of each group its numbers, in parts.
    """
    numbers = [np.concatenate([np.empty(0), *parts]) for parts in groups]
    edges = find_edges(np.concatenate([np.empty(0), *numbers]))
    return edges, [None if edges is None else count_between(each, edges) for each in numbers]
