"""The area under the ROC curve of several classes, averaged over pairs of classes."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.areas import RocAuc
from evaluand.metrics.base.class_scores import SCORES
from evaluand.metrics.base.confusion import MAX_CLASSES, TRUTH
from evaluand.metrics.base.curves import Drawn
from evaluand.metrics.base.labels import in_order
from evaluand.metrics.base.metric import LABELS, Columns, Metric, State
from evaluand.metrics.base.one_vs_rest import CLASSES, Ordered, Ties


@dataclass(frozen=True, kw_only=True)
class OneVsOneRocAuc(RocAuc):
    """The mean area over all pairs of classes, each computed from the rows whose truth is one of the two.

    A pair has two areas, one by the score of each class; their mean counts. Unlike `roc_auc`, it does not depend on how
    common classes are if `average` is `macro`.
    Source: D. Hand & R. Till, "A simple generalisation of the area under the ROC curve for multiple class
    classification problems" (Machine Learning 45, 2001).

    Args:
        scored_by: `classes`, or `labels` for predicted labels without scores; see `OfScores`.
        absent: the score of a class without one in a row; by default the value is undefined if one is missing.
        average: over pairs: their mean (`macro`), or weighted by how many rows each has (`weighted`).

    Raises:
        SpecError: there is no such average, or `scored_by` is the score of a single class.

    Example:
        >>> OneVsOneRocAuc(confidence=None).signature
        'roc_auc_one_vs_one v1 missing=leave_out reduce=first scored_by=classes average=macro'
    """

    kind = "roc_auc_one_vs_one"
    takes_sets = False
    label: ClassVar[None] = None  # type: ignore[misc]

    def __post_init__(self) -> None:
        if self.average not in ("macro", "weighted"):
            raise SpecError(f"{self.kind}: average={self.average!r} must be one of macro, weighted")
        if self.scored_by not in ("classes", "labels"):
            raise SpecError(f"{self.kind}: scored_by={self.scored_by!r} must be one of classes, labels")
        super().__post_init__()

    @property
    def drawn_by(self) -> Metric | None:
        return None

    def curves(self, state: State) -> list[list[Drawn]]:
        return [[] for _ in state["n"]]

    def needs_matrix(self, rows: Columns) -> bool:
        return True

    def _ordered(self, rows: Columns) -> Iterator[Ordered | Ties]:
        """The rows of both classes of each pair, ordered by the score of one; then by that of the other."""
        for pair in _pairs(rows):
            chosen = np.flatnonzero(np.isin(rows[TRUTH], pair))
            for place in pair:
                one = self._order_rows(rows[SCORES][chosen, place], rows[TRUTH][chosen] == place, 1)
                yield one._replace(row=chosen[one.row]) if isinstance(one, Ordered) else one

    def _shares(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        pairs = np.searchsorted(rows[CLASSES], np.array(_pairs(rows)).reshape(-1, 2))
        if not len(pairs):
            return np.full(0, np.nan)
        of_pair = (
            self._positives(rows, weight)[pairs].sum(axis=1) if self.average == "weighted" else np.ones(len(pairs))
        )
        return np.asarray(np.repeat(of_pair / of_pair.sum() / 2, 2))

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        if len(rows[CLASSES]) < 2:
            return np.full(len(weight), np.nan)
        return super().value(rows, weight)

    def _of_share(self, rows: Columns, weight: np.ndarray, values: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """What a row of each class adds by changing the shares of the pairs with its class."""
        pairs = np.searchsorted(rows[CLASSES], np.array(_pairs(rows)))
        change = (values.reshape(-1, 2).mean(axis=1) - values @ shares) / self._positives(rows, weight)[pairs].sum()
        return np.asarray(np.bincount(pairs.ravel(), np.repeat(change, 2), minlength=len(rows[CLASSES])))

    def _of_each_class(self, rows: Columns, values: np.ndarray) -> np.ndarray:
        pairs = np.searchsorted(rows[CLASSES], np.array(_pairs(rows)))
        of_pair = np.repeat(values.reshape(-1, 2).mean(axis=1), 2)
        return np.asarray(np.bincount(pairs.ravel(), of_pair) / np.bincount(pairs.ravel()))

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        if len(rows[CLASSES]) < 2:
            return "there is one class, and a pair needs two"
        return super().undefined(rows, weight)

    def details(self, rows: Columns, weight: np.ndarray) -> dict[str, Any]:
        """The value of each pair of classes, of at most `MAX_CLASSES` pairs."""
        if len(rows[CLASSES]) < 2:
            return {}
        with np.errstate(divide="ignore", invalid="ignore"):
            values = self._of_classes(rows, weight).reshape(-1, 2).mean(axis=1).tolist()
        rank = np.argsort(in_order(rows[LABELS])).tolist()
        places = [sorted(pair, key=rank.__getitem__) for pair in _pairs(rows)]
        in_ranks = sorted(zip(places, values, strict=True), key=lambda each: [rank[place] for place in each[0]])
        named = [
            {"labels": [rows[LABELS][place] for place in pair], "value": None if value != value else value}
            for pair, value in in_ranks
        ]
        return {"n_pairs": len(named), "pairs": named[:MAX_CLASSES]}


def _pairs(rows: Columns) -> list[tuple[int, int]]:
    return list(combinations(rows[CLASSES].tolist(), 2))
