"""How far a judge and people, or two judges, give the same labels, beyond chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from evaluand.core.key_columns import INDEX
from evaluand.metrics.base.confusion import PREDICTION, TRUTH
from evaluand.metrics.base.metric import CLUSTER, LABELS
from evaluand.metrics.confusion_matrix import CohenKappa
from evaluand.metrics.judging.estimate import Estimate, estimate, undefined
from evaluand.metrics.weighted_kappa import WeightedKappa, Weights

FEWEST: Final = 20
"""How many rows an interval of kappa must rest on; with fewer it would cover less often than it says."""


def kappa(
    people: np.ndarray,
    judge: np.ndarray,
    labels: Sequence[str | int],
    cluster: np.ndarray,
    *,
    weights: Weights | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """Cohen's kappa of a judge and people; there is no interval where nearly all labels are one.

    Args:
        people: the number of the label of each row in `labels`, `judge` likewise.
        labels: all labels; for `weights` in their order.
        cluster: the number of what each row belongs to, such as its example.
        weights: what a disagreement of ordered labels is, see `WeightedKappa`; texts are one step apart.

    Example:
        >>> same = kappa(np.array([0, 1, 1, 0]), np.array([0, 1, 1, 0]), ["no", "yes"], np.arange(4))
        >>> same.value, same.reason
        (1.0, 'no interval: too few rows have other labels than most')
    """
    n = len(people)
    if not n:
        return undefined("no rows")
    ordered = tuple(labels) if isinstance(labels[0], str) else None  # integers are as far apart as their values
    metric = (
        CohenKappa(confidence=confidence)
        if weights is None
        else WeightedKappa(weights=weights, labels=ordered, confidence=confidence)
    )
    names = np.array(labels, object)
    found = estimate(metric, {TRUTH: people, PREDICTION: judge, LABELS: names}, cluster)
    shares = [np.bincount(each, minlength=len(names)) / n for each in (people, judge)]
    disagreement = 1 - float(shares[0] @ shares[1])
    if found.effective * min(2 * disagreement, 1.0) >= FEWEST or np.isnan(found.value):
        return found
    reason = "no interval: too few rows have other labels than most"
    return found._replace(low=np.nan, high=np.nan, reason=reason)


def measure_kappa(said: np.ndarray, words: Sequence[str], examples: Sequence[Any]) -> list[float | None]:
    """Cohen's kappa of two judges with its interval, in which all judgements on one example belong together.

    Args:
        said: what each of the two said of each item, as the number of a word.
        words: what they may say.
        examples: that of each item.
    """
    numbers = {example: number for number, example in enumerate(dict.fromkeys(examples))}
    columns = {TRUTH: said[0], PREDICTION: said[1], LABELS: np.array(words, object)}
    metric = CohenKappa()
    rows = metric.prepare(columns | {INDEX: np.arange(said.shape[1])})
    cluster = np.array([numbers[example] for example in examples])
    found = metric.compute(metric.state({**rows, CLUSTER: cluster}, np.zeros(said.shape[1], np.int64), 1))
    ends = (float(each[0]) for each in (found.value, found.low, found.high))
    return [None if np.isnan(each) else each for each in ends]
