"""Mutual information of two partitions, adjusted for chance."""

from dataclasses import dataclass
from typing import ClassVar, Final, Literal

import numpy as np

from evaluand.metrics.base.metric import WEIGHT, Columns
from evaluand.metrics.partitions import MEANS, PARTS, Clustering, Entropies


@dataclass(frozen=True, kw_only=True)
class AdjustedMutualInformation(Clustering):
    """(information − expected) / (mean entropy − expected): 1 for the same partition, 0 on average by chance.

    Expected is the mutual information of random partitions with clusters of the same sizes. Rows are counted, not
    weighted, since these sizes are numbers of rows. With hundreds of clusters the interval takes most of the time;
    `confidence=None` leaves it out.
    Source: N. Vinh, J. Epps & J. Bailey, "Information theoretic measures for clusterings comparison" (Journal of
    Machine Learning Research 11, 2010).

    Args:
        mean: of the two entropies: `arithmetic`, `geometric`, `min` or `max`.

    Raises:
        SpecError: there is no such mean.

    Example:
        >>> AdjustedMutualInformation().signature
        'adjusted_mutual_information v1 missing=leave_out reduce=first mean=arithmetic interval=jackknife 95%'
    """

    kind = "adjusted_mutual_information"
    range = (-np.inf, 1.0)
    weighted: ClassVar[bool] = False  # type: ignore[misc]

    mean: Literal["arithmetic", "geometric", "min", "max"] = "arithmetic"

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        counts = self.sums(rows, weight)
        expected = np.array([expected_information(*(side[i] for side in counts[:2])) for i in range(len(weight))])
        return self._adjusted(self.entropies(rows, weight), expected, *((each > 0).sum(axis=1) for each in counts))

    def without_rows(self, rows: Columns, one: np.ndarray) -> np.ndarray:
        counts = [sums[0] for sums in self.sums(rows, rows[WEIGHT][None])]
        if min(len(side) for side in counts[:2]) == 1:
            return super().without_rows(rows, one)
        of = [rows[name][1] for name in PARTS]
        left = [(sums > 0).sum() - (sums[kind] <= one) for sums, kind in zip(counts, of, strict=True)]
        expected = expected_without(counts[0], counts[1], of[0], of[1])
        return self._adjusted(self.entropies_without(rows, one), expected, *left)

    def _adjusted(
        self, found: Entropies, expected: np.ndarray, n_truth: np.ndarray, n_prediction: np.ndarray, n_both: np.ndarray
    ) -> np.ndarray:
        """The value from entropies, the expected information and the numbers of clusters and of their pairs."""
        most = MEANS[self.mean](found.truth, found.prediction)
        same = (n_truth == n_both) & (n_prediction == n_both)
        trivial = np.minimum(n_truth, n_prediction) == 1
        scale = np.where(same | trivial, 1.0, most - expected)
        is_some = scale > _NOTHING
        by_chance = np.where(is_some, (found.information - expected) / np.where(is_some, scale, 1.0), 0.0)
        return np.where(same, 1.0, np.where(trivial, 0.0, by_chance))


def expected_without(
    truth: np.ndarray, prediction: np.ndarray, of_truth: np.ndarray, of_prediction: np.ndarray
) -> np.ndarray:
    """`expected_information` without a row of some pairs of clusters: only the terms of these clusters change.

    Args:
        truth: the sizes of at least two clusters, as `prediction`.
        of_truth: the cluster of each pair, as `of_prediction`.
    """
    a, of_a = np.unique(np.rint(truth), return_inverse=True)
    b, of_b = np.unique(np.rint(prediction), return_inverse=True)
    n, often_a, often_b = float(np.rint(truth).sum()) - 1, np.bincount(of_a), np.bincount(of_b)

    def terms(truth: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        shape = np.broadcast_shapes(truth.shape, prediction.shape)
        one, other = (np.broadcast_to(side, shape).ravel()[:, None] for side in (truth, prediction))
        step = max(1, _AT_ONCE // 64)
        parts = [_expected_of_pairs(one[i : i + step], other[i : i + step], n) for i in range(0, len(one), step)]
        return np.concatenate(parts).reshape(shape)

    every = terms(a[:, None], b)
    by_truth = (terms(a[:, None] - 1, b) - every) @ often_b
    by_prediction = often_a @ (terms(a[:, None], b - 1) - every)
    i, j = of_a[of_truth], of_b[of_prediction]
    pairs, of_pair = np.unique(i * len(b) + j, return_inverse=True)
    i, j = np.divmod(pairs, len(b))
    both = terms(a[i] - 1, b[j] - 1) - terms(a[i] - 1, b[j]) - terms(a[i], b[j] - 1) + every[i, j]
    return np.asarray((often_a @ every @ often_b + by_truth[i] + by_prediction[j] + both)[of_pair])


def expected_information(truth: np.ndarray, prediction: np.ndarray) -> float:
    """The expected mutual information, in nats, of random partitions with clusters of these sizes.

    How many rows two clusters share has a hypergeometric distribution; its probabilities follow from the ratio of
    neighbours, so that they are precise for any number of rows. Counts whose probability is below 1e-20 by Hoeffding's
    inequality are left out.

    Example:
        >>> round(expected_information(np.array([2.0, 2.0]), np.array([2.0, 2.0])), 6)
        0.231049
    """
    (a, often_a), (b, often_b) = (np.unique(np.rint(x[x > 0]), return_counts=True) for x in (truth, prediction))
    n = float((a * often_a).sum())
    pairs = np.stack([np.repeat(a, len(b)), np.tile(b, len(a))])
    often = np.repeat(often_a, len(b)) * np.tile(often_b, len(a))
    found = 0.0
    width = int(2 * _REACH * np.sqrt(np.minimum(*pairs).max(initial=0))) + 4
    step = max(1, _AT_ONCE // width)
    for start in range(0, len(often), step):
        part = pairs[:, start : start + step]
        found += float(often[start : start + step] @ _expected_of_pairs(part[0][:, None], part[1][:, None], n))
    return found


def _expected_of_pairs(a: np.ndarray, b: np.ndarray, n: float) -> np.ndarray:
    """The expected term k / n · log(n k / (a b)) of each pair of clusters that share k rows."""
    least, most = np.maximum(a + b - n, 0.0), np.minimum(a, b)
    reach = np.ceil(_REACH * np.sqrt(most)) + 1
    first, last = np.maximum(least, np.floor(a * b / n) - reach), np.minimum(most, np.ceil(a * b / n) + reach)
    k = first + np.arange(int((last - first).max()) + 1)
    inside = k <= last
    ratio = (a - k + 1) * (b - k + 1) / np.where(k > first, k * (n - a - b + k), 1.0)
    steps = np.where(inside & (k > first), np.log(np.where(inside & (k > first), ratio, 1.0)), 0.0)
    logs = np.where(inside, np.cumsum(steps, axis=1), -np.inf)
    chance = np.exp(logs - logs.max(axis=1, keepdims=True))
    chance /= chance.sum(axis=1, keepdims=True)
    term = k / n * np.log(np.where(k > 0, n * np.where(k > 0, k, 1.0) / (a * b), 1.0))
    return np.asarray((chance * np.where(inside, term, 0.0)).sum(axis=1))


_REACH: Final = 5.0
"""How many times the root of the smaller cluster a shared count may lie from its mean: 2 exp(−2 · 5²) < 1e-21."""
_AT_ONCE: Final = 1 << 20
_NOTHING: Final = 4 * float(np.finfo(np.float64).eps)
