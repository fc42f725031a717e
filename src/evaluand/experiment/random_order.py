"""A random order of examples, in which `--until` takes more and more of them.

The rows of a file are often sorted, by topic or by label, so its first rows are no fair sample of all. An example's
place depends on the seed and its content alone, and a cluster's on the value that defines it: rows that are added later
do not change the order of the others, and no outcome does.
"""

from __future__ import annotations

import numpy as np

from evaluand.aggregation.score_shards import clusters_of
from evaluand.data.dataset import Dataset
from evaluand.evaluation.labelling_order import random_places
from evaluand.metrics.stats.intervals import random_bits


def draw_positions(dataset: Dataset, n: int, of: int, seed: int) -> np.ndarray:
    """The positions of n examples drawn from the first `of` ones; more if the last cluster has more.

    Example:
        >>> data = Dataset.from_rows([{"input": place} for place in range(10)])
        >>> draw_positions(data, 3, 10, 0).tolist(), draw_positions(data, 4, 10, 0).tolist()
        ([0, 6, 8], [0, 4, 6, 8])
    """
    digests = np.frombuffer(b"".join(dataset.example_digests()), ">i8").reshape(-1, 2)[:of]
    clusters = clusters_of(dataset)
    if clusters is None:
        order = np.argsort(random_places(digests, np.zeros(len(digests)), seed), kind="stable")
        return np.sort(order[:n])
    key, cluster = np.unique(clusters[:of], return_inverse=True)
    by_cluster = np.argsort(random_bits(key.view(np.uint64), seed), kind="stable")
    place = np.empty(len(key), np.int64)
    place[by_cluster] = np.arange(len(key))
    reached = np.bincount(cluster, minlength=len(key))[by_cluster].cumsum()
    return np.flatnonzero(place[cluster] <= np.searchsorted(reached, n))
