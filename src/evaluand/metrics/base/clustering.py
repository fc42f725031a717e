"""Base of metrics that compare two partitions of the same rows, regardless of the names of their clusters."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evaluand.metrics.base.confusion import PREDICTION, TRUTH, Confusion, sums_of
from evaluand.metrics.base.labels import in_order
from evaluand.metrics.base.metric import LABELS, Columns


class Contingency(NamedTuple):
    """Shares of rows, replicates × clusters: of the truth, of the prediction, and of the pairs that occur."""

    truth: np.ndarray
    prediction: np.ndarray
    both: np.ndarray
    expected: np.ndarray  # replicates × pairs: `both` if independent


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
            _PAIRS: np.stack(np.divmod(pairs, len(prediction))),
            _SIZES: np.array([len(truth), len(prediction), len(pairs)]),
        }

    def sums(self, rows: Columns, weight: np.ndarray) -> list[np.ndarray]:
        """The weight of each cluster, replicates × clusters: of the truth, of the prediction, and of pairs."""
        columns = zip((_OF_TRUTH, _OF_PREDICTION, _OF_PAIR), rows[_SIZES].tolist(), strict=True)
        return [sums_of(rows[name], weight, size) for name, size in columns]


@dataclass(frozen=True, kw_only=True)
class OfEntropies(Clustering):
    """A function of the entropies of the two partitions and their mutual information.

    Source: A. Rosenberg & J. Hirschberg, "V-measure: A conditional entropy-based external cluster evaluation measure"
    (EMNLP 2007).
    """

    @abstractmethod
    def of_table(self, table: Contingency) -> np.ndarray:
        """The value of each replicate."""

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        total = weight.sum(axis=1, keepdims=True)
        truth, prediction, both = (sums / total for sums in self.sums(rows, weight))
        one, other = rows[_PAIRS]
        return self.of_table(Contingency(truth, prediction, both, truth[:, one] * prediction[:, other]))


def entropy(share: np.ndarray) -> np.ndarray:
    """−Σ s log s of each replicate, in nats."""
    return np.asarray(-(share * np.log(np.where(share > 0, share, 1.0))).sum(axis=1) + 0.0)


def mutual_information(table: Contingency) -> np.ndarray:
    """The mutual information of the partitions, in nats; never below 0."""
    occurs = table.both > 0
    ratio = np.where(occurs, table.both, 1.0) / np.where(occurs, table.expected, 1.0)
    return np.asarray(np.maximum((table.both * np.log(ratio)).sum(axis=1), 0.0))


def share_of(information: np.ndarray, total: np.ndarray, otherwise: float) -> np.ndarray:
    """Information as a share of a total entropy; `otherwise` if that is 0."""
    some = total > _NOTHING
    return np.where(some, np.minimum(information / np.where(some, total, 1.0), 1.0), otherwise)


_NOTHING = 4 * float(np.finfo(np.float64).eps)
_OF_TRUTH = "_of_truth_"
_OF_PREDICTION = "_of_prediction_"
_OF_PAIR = "_of_pair_"
_PAIRS = "_pairs_"
_SIZES = "_sizes_"
