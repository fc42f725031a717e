"""Variance components: how much of the spread of numbers comes from each facet of a balanced design.

Each number is a sum of independent random effects: of its example, of its prompt, of their combination, and so on, the
last of all facets together, which no replication tells from chance. Mean squares are solved from that last one upwards.
Source: S. R. Searle, G. Casella & C. E. McCulloch, Variance Components (1992), chapter 4; R. L. Brennan,
Generalizability Theory (2001), chapter 3.
"""

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

Effect = tuple[str, ...]
"""Facets whose levels together have an effect of their own."""


def variance_components(
    values: np.ndarray, facets: Sequence[str], nested: Mapping[str, Sequence[str]] | None = None
) -> dict[Effect, float]:
    """The variance of the effects of each facet and of each combination; a negative estimate is taken as 0.

    Args:
        values: one axis for each facet, with at least two levels each.
        nested: facet → the facets in whose cells its levels have a meaning of their own: the first answer to one
            example has nothing to do with the first answer to another.

    Example:
        >>> values = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])  # examples differ, and judges
        >>> variance_components(values, ("examples", "judges"))
        {('examples',): 4.0, ('judges',): 0.5, ('examples', 'judges'): 0.0}
        >>> variance_components(values, ("examples", "replications"), {"replications": ["examples"]})
        {('examples',): 3.75, ('examples', 'replications'): 0.5}
    """
    sizes = dict(zip(facets, values.shape, strict=True))
    subsets = (subset for n in range(1, len(facets) + 1) for subset in itertools.combinations(facets, n))
    within = nested or {}
    effects = [subset for subset in subsets if all({*within.get(facet, ())} <= {*subset} for facet in subset)]
    squares: dict[Effect, float] = {(): 0.0}
    degrees: dict[Effect, int] = {(): 1}
    values = values - values.mean()
    for effect in effects:
        averaged = tuple(axis for axis, facet in enumerate(facets) if facet not in effect)
        cells = values.mean(axis=averaged)
        parts = [part for part in squares if {*part} < {*effect}]
        total = values.size / cells.size * float(np.square(cells).sum())
        squares[effect] = total - sum(squares[part] for part in parts)
        degrees[effect] = cells.size - sum(degrees[part] for part in parts)
    found: dict[Effect, float] = {}
    for effect in reversed(effects):
        above = sum(values.size / _cells(sizes, one) * found[one] for one in found if {*effect} < {*one})
        mean_square = squares[effect] / degrees[effect]
        found[effect] = (mean_square - above) / (values.size / _cells(sizes, effect))
    return {effect: max(found[effect], 0.0) for effect in effects}


def _cells(sizes: Mapping[str, int], effect: Effect) -> int:
    return math.prod(sizes[facet] for facet in effect)
