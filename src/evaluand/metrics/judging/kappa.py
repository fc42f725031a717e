"""How often two judges agree beyond chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evaluand.core.key_columns import INDEX
from evaluand.metrics.base.confusion import PREDICTION, TRUTH
from evaluand.metrics.base.metric import CLUSTER, LABELS
from evaluand.metrics.confusion_matrix import CohenKappa


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
