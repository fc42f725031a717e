"""Mutual information of two partitions, adjusted for chance."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.base.metric import Columns
from evaluand.metrics.partitions import MEANS, PAIRS, Clustering, Contingency, entropy, mutual_information


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

    def __post_init__(self) -> None:
        if self.mean not in MEANS:
            raise SpecError(f"{self.kind}: mean={self.mean!r} does not work here; choose one of {', '.join(MEANS)}")
        super().__post_init__()

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        total = weight.sum(axis=1, keepdims=True)
        counts = self.sums(rows, weight)
        truth, prediction, both = (each / total for each in counts)
        one, other = rows[PAIRS]
        information = mutual_information(Contingency(truth, prediction, both, truth[:, one] * prediction[:, other]))
        expected = np.array([expected_information(*(side[i] for side in counts[:2])) for i in range(len(weight))])
        entropies: Mapping[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = MEANS
        most = entropies[self.mean](entropy(truth), entropy(prediction))
        n_truth, n_prediction, n_both = ((each > 0).sum(axis=1) for each in counts)
        same = (n_truth == n_both) & (n_prediction == n_both)
        trivial = np.minimum(n_truth, n_prediction) == 1
        scale = np.where(same | trivial, 1.0, most - expected)
        by_chance = np.where(scale > _NOTHING, (information - expected) / np.where(scale > _NOTHING, scale, 1.0), 0.0)
        return np.where(same, 1.0, np.where(trivial, 0.0, by_chance))


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
