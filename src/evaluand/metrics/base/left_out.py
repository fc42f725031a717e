"""Values of groups without each cluster of rows: what a metric's value owes to some of its examples."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from evaluand.metrics.stats.paired_change import Ends


class LeftOut(NamedTuple):
    """Values of groups, of all rows and without each cluster; an entry for each cluster that has rows of a group.

    Attributes:
        value: of each group, NaN where undefined.
        cluster: of each entry, from 0 on.
        group: of each entry.
        without: the value of the group without the cluster, by entry.
        n: the number of clusters that are left out, with those that have no rows.
        basis: the share of each group's rows that its value depends on: of recall, the expected rows.
        expected: the share of each group's rows of which a proportion would vary as the value is expected to, where few
            rows may not show how it varies.
        parts: the part of the rows that a cluster is drawn from, such as those of a class, by entry: each part shows
            its own spread, and a small one poorly.
        ends: of each group, where the spread of `without` does not give the interval; `without` then only shows which
            clusters move the value together, and may be another number than the value. None for a group without an
            interval.
        reason: of each group, why its value has no interval, so that `without` is NaN; None where nothing speaks
            against one.
    """

    value: np.ndarray
    cluster: np.ndarray
    group: np.ndarray
    without: np.ndarray
    n: int
    basis: np.ndarray
    expected: np.ndarray | None = None
    parts: np.ndarray | None = None
    ends: Sequence[Ends | None] | None = None
    reason: Sequence[str | None] = (None,)

    def of_clusters(self, first: int, last: int) -> np.ndarray:
        """The values of all groups without each of the clusters from `first` to before `last`: clusters × groups."""
        found = np.tile(self.value, (last - first, 1))
        some = (self.cluster >= first) & (self.cluster < last)
        found[self.cluster[some] - first, self.group[some]] = self.without[some]
        return found


def count_clusters(cluster: np.ndarray) -> int:
    """The number of clusters, which are numbered from 0 on."""
    return int(cluster.max(initial=-1)) + 1


def clusters_by_group(
    cluster: np.ndarray, group: np.ndarray, n_groups: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The cluster and the group of each entry of `LeftOut`, and the entry of each row.

    Example:
        >>> entries = clusters_by_group(np.array([1, 0, 1]), np.array([0, 1, 1]), 2)
        >>> [column.tolist() for column in entries]
        [[0, 1, 1], [1, 0, 1], [1, 0, 2]]
    """
    entries, of_row = np.unique(cluster * n_groups + group, return_inverse=True)
    return entries // n_groups, entries % n_groups, of_row


def rarest_parts(part: np.ndarray, cluster: np.ndarray) -> np.ndarray:
    """The part of each cluster, of which every row has one: the rarest of its rows, by number.

    Example:
        >>> rarest_parts(np.array([5, 5, 5, 7]), np.array([0, 1, 2, 2])).tolist()
        [0, 0, 1]
    """
    _, code, often = np.unique(part, return_inverse=True, return_counts=True)
    rank = np.argsort(np.argsort(-often, kind="stable"))
    found = np.zeros(count_clusters(cluster), np.int64)
    np.maximum.at(found, cluster, rank[code])
    return found


def spread_of_parts(parts: np.ndarray) -> np.ndarray:
    """By how much each cluster's change must grow for a sum of squares without bias: √(m / (m - 1)) of m in a part.

    The changes of a part have a mean of 0, which is estimated from them.
    """
    m = np.bincount(parts)[parts]
    return np.asarray(np.sqrt(m / np.maximum(m - 1, 1)))
