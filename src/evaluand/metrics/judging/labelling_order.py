"""The random order in which people label answers, so that the labelled ones are a random sample of all.

An answer's place is a pure function of the seed, the content of its example and the replication. So nothing needs to be
recorded: whoever reads labels can verify that the labelled answers are the first of the order. Different systems have
the same order, so that the same examples are labelled for all of them.
"""

from __future__ import annotations

import numpy as np

from evaluand.metrics.stats.intervals import random_bits


def random_places(digests: np.ndarray, replications: np.ndarray, seed: int) -> np.ndarray:
    """The place of each answer in the random order, from 0 to below 1.

    Args:
        digests: those of the examples, each as two integers, see `digest_halves`.
        replications: of the answers.

    Example:
        >>> digests = np.array([[1, 2], [3, 4]])
        >>> random_places(digests, np.zeros(2, np.int64), 0).round(3).tolist()
        [0.938, 0.326]
    """
    first, second = (np.ascontiguousarray(half).astype(np.int64).view(np.uint64) for half in digests.T)
    bits = random_bits(random_bits(first, seed) ^ second, 1)
    bits = random_bits(bits ^ replications.astype(np.int64).view(np.uint64), 2)
    return np.asarray((bits >> np.uint64(11)) / 2**53)


def draw_in_turn(places: np.ndarray, strata: np.ndarray) -> np.ndarray:
    """The positions of answers in the order in which to label them: the first of each stratum, then the second …

    Args:
        places: their random places.
        strata: the number of the stratum of each; answers of one stratum come in the order of their places.

    Example:
        >>> draw_in_turn(np.array([0.5, 0.1, 0.7, 0.3]), np.array([0, 0, 0, 1])).tolist()
        [1, 3, 0, 2]
    """
    order = np.lexsort((places, strata))
    ordered = strata[order]
    turn = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    return np.asarray(order[np.lexsort((places[order], turn))])
