"""Metrics that compare two partitions of the same rows, regardless of the names of their clusters."""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.base.confusion import PREDICTION, TRUTH, Confusion, sums_of
from evaluand.metrics.base.labels import in_order
from evaluand.metrics.base.metric import LABELS, WEIGHT, Columns
from evaluand.metrics.base.weighted_rows import NUMBER, SQUARE


class Entropies(NamedTuple):
    """What two partitions tell, in nats, an entry for each replicate: their entropies and mutual information."""

    truth: np.ndarray
    prediction: np.ndarray
    information: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Clustering(Confusion):
    """A function of how two partitions of the rows overlap; the names of the clusters do not matter."""

    direction = "higher"
    range = (0.0, 1.0)

    def arranged(self, rows: Columns) -> Columns:
        rank = np.argsort(in_order(rows[LABELS]))  # sums do not depend on the order of the rows
        truth, of_truth = np.unique(rank[rows[TRUTH]], return_inverse=True)
        prediction, of_prediction = np.unique(rank[rows[PREDICTION]], return_inverse=True)
        pairs, of_pair = np.unique(of_truth * len(prediction) + of_prediction, return_inverse=True)
        row = np.arange(len(of_pair))
        return {
            **rows,
            _OF_TRUTH: np.stack([row, of_truth]),
            _OF_PREDICTION: np.stack([row, of_prediction]),
            _OF_PAIR: np.stack([row, of_pair]),
            PAIRS: np.stack(np.divmod(pairs, len(prediction))),
            _SIZES: np.array([len(truth), len(prediction), len(pairs)]),
        }

    def sums(self, rows: Columns, weight: np.ndarray) -> list[np.ndarray]:
        """The weight of each cluster, replicates × clusters: of the truth, of the prediction, and of pairs."""
        columns = zip(PARTS, rows[_SIZES].tolist(), strict=True)
        return [sums_of(rows[name], weight, size) for name, size in columns]

    def entropies(self, rows: Columns, weight: np.ndarray) -> Entropies:
        """Of shares of rows in clusters and in pairs of them; information is never below 0."""
        total = weight.sum(axis=1, keepdims=True)
        truth, prediction, both = (sums / total for sums in self.sums(rows, weight))
        one, other = rows[PAIRS]
        occurs = both > 0
        ratio = np.where(occurs, both, 1.0) / np.where(occurs, truth[:, one] * prediction[:, other], 1.0)
        of_both = np.maximum((both * np.log(ratio)).sum(axis=1), 0.0)
        return Entropies(entropy(truth), entropy(prediction), of_both)

    def entropies_without(self, rows: Columns, one: np.ndarray) -> Entropies:
        """Those without one row of each kind, of which only its clusters and their pair become smaller."""
        total = rows[WEIGHT].sum() - one
        kinds = [rows[name] for name in PARTS]
        with np.errstate(divide="ignore", invalid="ignore"):
            truth, prediction, both = (
                _x_log_x(sums).sum() - _x_log_x(sums[of]) + _x_log_x(_less(sums[of], one))
                for (sums,), (_, of) in zip(self.sums(rows, rows[WEIGHT][None]), kinds, strict=True)
            )
            of_truth, of_prediction = (np.log(total) - part / total for part in (truth, prediction))
            of_both = np.log(total) + (both - truth - prediction) / total
        near = (np.where(part > _NEAR, part, 0.0) for part in (of_truth, of_prediction, of_both))
        return Entropies(*(np.where(total > _NEAR * one, part, np.nan) for part in near))


@dataclass(frozen=True, kw_only=True)
class OfEntropies(Clustering):
    """A function of the entropies of the two partitions and their mutual information.

    Source: A. Rosenberg & J. Hirschberg, "V-measure: A conditional entropy-based external cluster evaluation measure"
    (EMNLP 2007).
    """

    @abstractmethod
    def of_entropies(self, found: Entropies) -> np.ndarray:
        """The value of each replicate."""

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        return self.of_entropies(self.entropies(rows, weight))

    def without_rows(self, rows: Columns, one: np.ndarray) -> np.ndarray:
        return self.of_entropies(self.entropies_without(rows, one))


def share_of(information: np.ndarray, total: np.ndarray, otherwise: float) -> np.ndarray:
    """Information as a share of a total entropy; `otherwise` if that is 0."""
    some = total > _NOTHING
    return np.where(some, np.minimum(information / np.where(some, total, 1.0), 1.0), otherwise)


_NOTHING = 4 * float(np.finfo(np.float64).eps)
_OF_TRUTH = "_of_truth_"
_OF_PREDICTION = "_of_prediction_"
_OF_PAIR = "_of_pair_"
PAIRS: Final = "_pairs_"
PARTS: Final = (_OF_TRUTH, _OF_PREDICTION, _OF_PAIR)
_SIZES = "_sizes_"
_NEAR: Final = 1e-13


def entropy(share: np.ndarray) -> np.ndarray:
    """−Σ s log s of each replicate, in nats."""
    return np.asarray(-_x_log_x(share).sum(axis=1) + 0.0)


def _x_log_x(x: np.ndarray) -> np.ndarray:
    return np.asarray(x * np.log(np.where(x > 0, x, 1.0)))


def _less(whole: np.ndarray, part: np.ndarray) -> np.ndarray:
    """The rest of a weight; 0 where only rounding remains."""
    return np.where(whole - part > _NEAR * whole, whole - part, 0.0)


@dataclass(frozen=True, kw_only=True)
class AdjustedRand(Clustering):
    """The Rand index adjusted for chance: the share of pairs of rows that both partitions treat the same; 0 by chance.

    1 if the partitions are the same, also if both are trivial. A pair of rows counts by the product of their
    weights, so that only the ratios of weights matter; a row makes no pair with itself, whatever its weight.
    Source: L. Hubert & P. Arabie, "Comparing partitions" (Journal of Classification 2, 1985).

    Example:
        >>> AdjustedRand().signature
        'adjusted_rand v2 missing=leave_out reduce=first interval=jackknife 95%'
    """

    kind = "adjusted_rand"
    version = 2
    range = (-1.0, 1.0)

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        square = _squares(rows) * np.square(weight / np.where(rows[WEIGHT] > 0, rows[WEIGHT], 1.0))
        parts = [*zip(self.sums(rows, weight), self.sums(rows, square), strict=True)]
        parts.append((weight.sum(axis=1)[:, None], square.sum(axis=1)[:, None]))
        return self._of_pairs(*(_pairs(*part).sum(axis=1) for part in parts))

    def without_rows(self, rows: Columns, one: np.ndarray) -> np.ndarray:
        weight, square = rows[WEIGHT][None], _squares(rows)[None]
        kinds = [*(rows[name][1] for name in PARTS), np.zeros(len(one), np.int64)]
        totals = ([*self.sums(rows, each), each.sum(axis=1, keepdims=True)] for each in (weight, square))
        found = []
        for (sums,), (squares,), of in zip(*totals, kinds, strict=True):
            own = sums[of], squares[of]
            found.append(_pairs(sums, squares).sum() - _pairs(*own) + _pairs(own[0] - one, own[1] - np.square(one)))
        return self._of_pairs(*found)

    @staticmethod
    def _of_pairs(
        of_truth: np.ndarray, of_prediction: np.ndarray, together: np.ndarray, every: np.ndarray
    ) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            by_chance = of_truth * (of_prediction / every)
            most = (of_truth + of_prediction) / 2
            same = (together == of_truth) & (together == of_prediction)
            return np.where(same, 1.0, (together - by_chance) / np.where(same, 1.0, most - by_chance))

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        return "the weights are too large or too small for their squares; give them in another unit"


def _squares(rows: Columns) -> np.ndarray:
    """The sum of squared weights of the rows of each kind; of rows without weights, their number."""
    return rows.get(SQUARE, rows[NUMBER])


def _pairs(weight: np.ndarray, square: np.ndarray) -> np.ndarray:
    """The pairs of two rows within each part, by the product of weights: (Σ w)² − Σ w² is twice their sum."""
    return np.asarray((np.square(weight) - square).clip(0) / 2)


@dataclass(frozen=True, kw_only=True)
class Homogeneity(OfEntropies):
    """The share of the classes' entropy that the clusters explain; 1 if each cluster has one class.

    1 − H(truth | prediction) / H(truth), and 1 if all rows are of one class.
    Source: Rosenberg & Hirschberg (2007), see `OfEntropies`.

    Example:
        >>> Homogeneity().signature
        'homogeneity v1 missing=leave_out reduce=first interval=jackknife 95%'
    """

    kind = "homogeneity"

    def of_entropies(self, found: Entropies) -> np.ndarray:
        return share_of(found.information, found.truth, otherwise=1.0)


@dataclass(frozen=True, kw_only=True)
class Completeness(OfEntropies):
    """The share of the clusters' entropy that the classes explain; 1 if each class is in one cluster.

    1 − H(prediction | truth) / H(prediction), and 1 if all rows are in one cluster.
    Source: Rosenberg & Hirschberg (2007), see `OfEntropies`.

    Example:
        >>> Completeness().signature
        'completeness v1 missing=leave_out reduce=first interval=jackknife 95%'
    """

    kind = "completeness"

    def of_entropies(self, found: Entropies) -> np.ndarray:
        return share_of(found.information, found.prediction, otherwise=1.0)


@dataclass(frozen=True, kw_only=True)
class VMeasure(OfEntropies):
    """The harmonic mean of homogeneity and completeness, in which completeness has β times the weight.

    (1 + β) h c / (β h + c), and 0 if both are 0. With β = 1 it equals `normalized_mutual_information`.
    Source: Rosenberg & Hirschberg (2007), see `OfEntropies`.

    Args:
        beta: how much more completeness counts than homogeneity, above 0; 1 weighs both equally.

    Example:
        >>> VMeasure(beta=2).signature
        'v_measure v1 missing=leave_out reduce=first beta=2.0 interval=jackknife 95%'
    """

    kind = "v_measure"

    beta: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.beta < math.inf:
            raise SpecError(f"v_measure: beta={self.beta!r} must be a number above 0; 1 weighs both alike")
        object.__setattr__(self, "beta", float(self.beta))
        super().__post_init__()

    def of_entropies(self, found: Entropies) -> np.ndarray:
        homogeneity = share_of(found.information, found.truth, otherwise=1.0)
        completeness = share_of(found.information, found.prediction, otherwise=1.0)
        below = self.beta * homogeneity + completeness
        return np.where(below > 0, (1 + self.beta) * homogeneity * completeness / np.where(below > 0, below, 1.0), 0.0)


@dataclass(frozen=True, kw_only=True)
class NormalizedMutualInformation(OfEntropies):
    """The mutual information of truth and prediction, divided by a mean of their entropies.

    1 if the partitions are the same, even with a single cluster; 0 if they are independent. Many small clusters raise
    it by chance; `adjusted_rand` does not have this bias.
    Source: A. Strehl & J. Ghosh, "Cluster ensembles" (Journal of Machine Learning Research 3, 2002), with the geometric
    mean; N. Vinh, J. Epps & J. Bailey, "Information theoretic measures for clusterings comparison" (JMLR 11, 2010).

    Args:
        mean: of the two entropies: `arithmetic`, `geometric`, `min` or `max`.

    Raises:
        SpecError: there is no such mean.

    Example:
        >>> NormalizedMutualInformation(mean="geometric").signature
        'normalized_mutual_information v1 missing=leave_out reduce=first mean=geometric interval=jackknife 95%'
    """

    kind = "normalized_mutual_information"

    mean: Literal["arithmetic", "geometric", "min", "max"] = "arithmetic"

    def of_entropies(self, found: Entropies) -> np.ndarray:
        trivial = (found.truth == 0) & (found.prediction == 0)
        mean = MEANS[self.mean](found.truth, found.prediction)
        return np.where(trivial, 1.0, share_of(found.information, mean, otherwise=0.0))


MEANS: Final[Mapping[str, Callable[[np.ndarray, np.ndarray], np.ndarray]]] = {
    "arithmetic": lambda one, other: (one + other) / 2,
    "geometric": lambda one, other: np.asarray(np.sqrt(one * other)),
    "min": np.minimum,
    "max": np.maximum,
}
