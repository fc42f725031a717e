"""Agreement of two orders, pair by pair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluand.metric import WEIGHT, Columns
from evaluand.metrics.errors import PREDICTION, TRUTH
from evaluand.metrics.linear import OfNumbers
from evaluand.statistic import reordered


@dataclass(frozen=True, kw_only=True)
class Kendall(OfNumbers):
    """Kendall's τ-b: of the pairs of rows, how many more are ordered alike by truth and prediction than otherwise.

    (alike − otherwise) / √(pairs whose truths differ · pairs whose predictions differ), in O(n log n). Undefined where
    all truths or all predictions are one value. A row of weight w counts as w rows that are alike.
    Source: M. Kendall, "The treatment of ties in ranking problems" (Biometrika 33, 1945).

    Args:
        weighted: each row counts by the weight of its example.
        confidence: of the interval; None for a value without one.

    Example:
        >>> metric = Kendall(confidence=None)
        >>> columns = {"truth": np.array([1.0, 2.0, 3.0]), "prediction": np.array([1.0, 3.0, 2.0])}
        >>> metric.compute(metric.state(columns, np.zeros(3, int), n_groups=1)).value.round(4)
        array([0.3333])
    """

    kind = "kendall"
    direction = "higher"
    range = (-1.0, 1.0)

    def arranged(self, rows: Columns) -> Columns:
        found = reordered(rows, np.argsort(rows[TRUTH], kind="stable"))
        codes = {_CODES[name]: np.unique(found[name], return_inverse=True)[1] for name in (TRUTH, PREDICTION)}
        return {**found, **codes}

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        whole = np.zeros(weight.shape[1], np.int64)
        return np.array([_tau(*_pairs(rows, each, whole)[1][:, 0]) for each in weight])

    def without_each(self, rows: Columns, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Each pair that a block takes away is a pair of its rows with all rows, less those within the block."""
        weight = rows[WEIGHT]
        blocks, code = np.unique(block, return_inverse=True)
        by_row, total = _pairs(rows, weight, np.zeros(len(weight), np.int64))
        _, within = _pairs(rows, weight, code)
        touched = np.stack([np.bincount(code, weight * each, minlength=len(blocks)) for each in by_row])
        used = np.bincount(code, weight, minlength=len(blocks)) > 0
        left = (total - 2 * touched + within)[:, used]
        with np.errstate(divide="ignore", invalid="ignore"):
            return blocks[used], _tau(*np.where(np.abs(left) < _ROUNDING * total, 0.0, left))

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        return "all truths or all predictions are one value, which has no order"


def _tau(score: np.ndarray, by_truth: np.ndarray, by_prediction: np.ndarray) -> np.ndarray:
    found = score / np.sqrt(by_truth) / np.sqrt(by_prediction)
    return np.clip(np.where((by_truth > 0) & (by_prediction > 0), found, np.nan), -1, 1)


def _pairs(rows: Columns, weight: np.ndarray, part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of rows within parts, by their weights: alike less otherwise, with other truths, with other predictions.

    Args:
        rows: sorted by truth.
        part: the part of each row, from 0 on.

    Returns:
        What each row has with all others (3 × rows), and the sums over both rows of each pair (3 × parts).
    """
    order = np.argsort(part, kind="stable")
    part, weight = part[order], weight[order]
    truth, prediction = (rows[_CODES[name]][order] for name in (TRUTH, PREDICTION))
    begin, end = _bounds(part)
    below, above = _bounds(part * (int(truth.max()) + 1) + truth)
    running = np.concatenate([[0.0], np.cumsum(weight)])
    before = _under(prediction, weight, begin, below, prediction)
    before_or_tied = _under(prediction, weight, begin, below, prediction + 1)
    after = _under(prediction, weight, above, end, prediction)
    after_or_tied = _under(prediction, weight, above, end, prediction + 1)
    score = before - (running[below] - running[begin] - before_or_tied)
    score += (running[end] - running[above] - after_or_tied) - after
    by_truth = (running[end] - running[begin]) - (running[above] - running[below])
    tied = np.lexsort((prediction, part))
    first, last = _bounds((part * (int(prediction.max()) + 1) + prediction)[tied])
    sorted_weight = np.concatenate([[0.0], np.cumsum(weight[tied])])
    by_prediction = np.empty_like(by_truth)
    by_prediction[tied] = (running[end] - running[begin])[tied] - (sorted_weight[last] - sorted_weight[first])
    found = np.stack([score, by_truth, by_prediction])
    by_row = np.empty_like(found)
    by_row[:, order] = found
    return by_row, np.stack([np.bincount(part, weight * each) for each in found])


def _bounds(ordered: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the run of each of some sorted values begins and ends."""
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    sizes = np.diff(starts, append=len(ordered))
    return np.repeat(starts, sizes), np.repeat(starts + sizes, sizes)


def _under(code: np.ndarray, weight: np.ndarray, low: np.ndarray, high: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """The weight of the rows from `low` to `high` whose code is below a limit, for many of these at once.

    Bit by bit from the highest, rows with a 0 are moved before rows with a 1: F. Claude & G. Navarro, "The wavelet
    matrix" (SPIRE 2012).
    """
    found = np.zeros(len(limit))
    for bit in reversed(range(int(limit.max(initial=0)).bit_length())):
        one = (code >> bit) & 1 == 1
        zeros = np.concatenate([[0], np.cumsum(~one)])
        lighter = np.concatenate([[0.0], np.cumsum(np.where(one, 0.0, weight))])
        up = (limit >> bit) & 1 == 1
        found += np.where(up, lighter[high] - lighter[low], 0.0)
        low, high = (np.where(up, zeros[-1] + end - zeros[end], zeros[end]) for end in (low, high))
        order = np.argsort(one, kind="stable")
        code, weight = code[order], weight[order]
    return found


_CODES: Final = {TRUTH: "_truth_", PREDICTION: "_prediction_"}
_ROUNDING: Final = 1e-13
