"""A random order of examples: `--until` takes more and more of them, and worst groups are judged on one half.

The rows of a file are often sorted, by topic or by label, so its first rows are no fair sample of all. An example's
place depends on the seed and its content alone, and a cluster's on the value that defines it: rows that are added later
do not change the order of the others, and no outcome does.
"""

from __future__ import annotations

import numpy as np

from evaluand.aggregation.score_shards import clusters_of
from evaluand.data.dataset import Dataset
from evaluand.metrics.judging.labelling_order import random_places
from evaluand.metrics.stats.intervals import random_bits


def draw_places(dataset: Dataset, seed: int, purpose: int = 0) -> np.ndarray:
    """The place of each example in a random order, from 0 to below 1; equal within a cluster, and for equal examples.

    Args:
        purpose: orders for different purposes are independent of each other.
    """
    clusters = clusters_of(dataset)
    if clusters is None:
        digests = np.frombuffer(b"".join(dataset.example_digests()), ">i8").reshape(-1, 2)
        return random_places(digests, np.full(len(digests), purpose), seed)
    bits = random_bits(random_bits(clusters.view(np.uint64), seed), purpose)
    return np.asarray((bits >> np.uint64(11)) / 2**53)


def draw_positions(dataset: Dataset, n: int, of: int, seed: int) -> np.ndarray:
    """The positions of n examples drawn from the first `of` ones; more if the last cluster has more.

    Example:
        >>> data = Dataset.from_rows([{"input": place} for place in range(10)])
        >>> draw_positions(data, 3, 10, 0).tolist(), draw_positions(data, 4, 10, 0).tolist()
        ([0, 6, 8], [0, 4, 6, 8])
    """
    place = draw_places(dataset, seed)[:of]
    return np.flatnonzero(place <= np.sort(place)[min(n, len(place)) - 1])
