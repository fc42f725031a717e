"""Statistics of judges and people as one number with its interval: shares, also corrected, and agreement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from evaluand.core.key_columns import INDEX
from evaluand.metrics.base.confusion import PREDICTION, TRUTH
from evaluand.metrics.base.metric import CLUSTER, INDEPENDENT, LABELS, NO_ROWS, Columns, Metric
from evaluand.metrics.confusion_matrix import CohenKappa, WeightedKappa, Weights
from evaluand.metrics.stats.intervals import cluster_sums, cluster_variance, clustered_wilson, normal_quantile, wilson


class Estimate(NamedTuple):
    """A number with its interval.

    Attributes:
        value: NaN where it is undefined.
        low: the lower end of the interval, NaN where there is none; `high` the upper end.
        n: the number of rows.
        effective: the number of independent rows with as much information.
        reason: why the value, or only its interval, is undefined; None if both are defined.
    """

    value: float
    low: float
    high: float
    n: int
    effective: float
    reason: str | None = None


def undefined(reason: str, n: int = 0) -> Estimate:
    """A number that these rows do not have."""
    return Estimate(math.nan, math.nan, math.nan, n, float(n), reason)


def share(values: np.ndarray, cluster: np.ndarray, *, confidence: float = 0.95) -> Estimate:
    """The mean of shares, with its score interval.

    Args:
        values: from 0 to 1, such as 1 for right and 0 for wrong.
        cluster: the number of what each row belongs to, such as its example; rows of equal numbers depend on each
            other.

    Example:
        >>> found = share(np.array([1.0, 1.0, 0.0, 1.0]), np.arange(4))
        >>> found.value, round(found.low, 3), round(found.high, 3)
        (0.75, 0.301, 0.954)
    """
    n = len(values)
    if not n:
        return undefined(NO_ROWS)
    mean = np.array([values.mean()])
    if len(np.unique(cluster)) == n and np.isin(values, (0.0, 1.0)).all():
        low, high = wilson(np.array([values.sum()]), np.array([n]), confidence)
        return Estimate(float(mean[0]), float(low[0]), float(high[0]), n, float(n))
    spread = cluster_variance(cluster_sums(values, np.ones(n), cluster, np.zeros(n, np.int64)), mean)
    low, high = clustered_wilson(mean, spread, confidence)
    value, variance = float(mean[0]), float(spread.variance[0])
    effective = value * (1 - value) / variance if variance > 0 else float(spread.effective[0])
    reason = "one cluster has no interval" if math.isnan(low[0]) else None
    return Estimate(value, float(low[0]), float(high[0]), n, min(effective, float(n)), reason)


def estimate(metric: Metric, columns: Columns, cluster: np.ndarray) -> Estimate:
    """The value of a metric over all rows, with its interval.

    Args:
        columns: what the metric's `prepare` returns.
        cluster: as in `share`.

    Example:
        >>> from evaluand.metrics.column_statistics import Mean
        >>> found = estimate(Mean(), {"value": np.array([1.0, 2.0, 3.0, 6.0])}, np.arange(4))
        >>> found.value, round(found.low, 3), round(found.high, 3)
        (3.0, -0.437, 6.437)
    """
    n, clusters = len(cluster), len(np.unique(cluster))
    if not n:
        return undefined(NO_ROWS)
    extra = {}
    if clusters == n and metric.counts_independent_rows:
        extra[INDEPENDENT] = cluster
    elif clusters < n or metric.by_cluster:
        extra[CLUSTER] = cluster
    found = metric.compute(metric.state({**columns, **extra}, np.zeros(n, np.int64), 1))
    value, low, high = (float(each[0]) for each in (found.value, found.low, found.high))
    return Estimate(value, low, high, n, float(clusters), found.reason[0])


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
    metric: Metric = CohenKappa(confidence=confidence)
    if weights is not None:
        metric = WeightedKappa(weights=weights, labels=ordered, confidence=confidence)
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
    rows = CohenKappa().prepare(columns | {INDEX: np.arange(said.shape[1])})
    found = estimate(CohenKappa(), rows, np.array([numbers[example] for example in examples]))
    return [None if np.isnan(each) else each for each in (found.value, found.low, found.high)]


def rogan_gladen(raw: Estimate, sensitivity: Estimate, specificity: Estimate, *, confidence: float = 0.95) -> Estimate:
    """The true share of right answers, from the share that a judge takes for right.

    It is (raw + specificity − 1) / (sensitivity + specificity − 1), within 0 and 1. The interval allows for the chance
    in all three shares. It assumes that the judge errs on these answers as often as on those that people have labelled,
    whatever their share of right ones, and that these are other answers than those that people have labelled.
    Source: W. Rogan & B. Gladen, "Estimating prevalence from the results of a screening test" (American Journal of
    Epidemiology 107, 1978); Z. Lang & J. Reiczigel, "Confidence limits for prevalence of disease adjusted for estimated
    sensitivity and specificity" (Preventive Veterinary Medicine 113, 2014) for the interval.

    Args:
        raw: the share that the judge takes for right.
        sensitivity: the share of right answers that the judge takes for right, on a labelled set.
        specificity: the share of wrong answers that the judge takes for wrong.
        confidence: of the interval.

    Returns:
        NaN, with the reason, where the judge is not shown to be better than chance, or where it takes more
        answers for right than it would if all were right, or fewer than if none was, by more than chance.

    Example:
        >>> found = rogan_gladen(
        ...     Estimate(0.6, 0, 0, 500, 500), Estimate(0.9, 0, 0, 100, 100), Estimate(0.8, 0, 0, 100, 100)
        ... )
        >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
        (0.571, 0.478, 0.666)
    """
    lacking = next((each for each in (raw, sensitivity, specificity) if math.isnan(each.value)), None)
    if lacking is not None:
        return undefined(lacking.reason or "a share is undefined", raw.n)
    z = normal_quantile(confidence)
    p, rows = _shrink(raw, z * z / 2)
    found, (se, n_right), (sp, n_wrong) = raw.value, _shrink(sensitivity, 1.0), _shrink(specificity, 1.0)
    of_right, of_wrong = se * (1 - se) / n_right, sp * (1 - sp) / n_wrong
    if se + sp - 1 <= z * math.sqrt(of_right + of_wrong):
        return undefined("the judge is not shown to be better than chance, so nothing can be corrected", raw.n)
    value = (found + specificity.value - 1) / (sensitivity.value + specificity.value - 1)
    middle = (p + sp - 1) / (se + sp - 1)
    shift = 2 * z * z * (middle * of_right - (1 - middle) * of_wrong)
    variance = p * (1 - p) / rows + middle**2 * of_right + (1 - middle) ** 2 * of_wrong
    half = z * math.sqrt(variance) / (se + sp - 1)
    low, high = middle + shift - half, middle + shift + half
    most, least = sensitivity.value, 1 - specificity.value  # what it takes for right where all are right, or none is
    if (low > 1 and found > most) or (high < 0 and found < least):
        return undefined(_explain_contradiction(found, most, least), raw.n)
    value, low, high = (float(np.clip(each, 0.0, 1.0)) for each in (value, low, high))
    return Estimate(value, low, high, raw.n, raw.effective)


def _explain_contradiction(found: float, most: float, least: float) -> str:
    """Why no true share explains what a judge found.

    Args:
        most: the share that it takes for right where all answers are right, `least` where none is.
    """
    beyond = (
        f"more than the {most:.3g} of right answers" if found > most else f"less than the {least:.3g} of wrong ones"
    )
    return (
        f"the judge takes {found:.3g} of these answers for right, {beyond} that people have labelled,"
        " so it probably errs otherwise here than there, and nothing can be corrected"
    )


def _shrink(share: Estimate, rows: float) -> tuple[float, float]:
    """A share after so many more right and as many more wrong rows, and the number of rows that it depends on."""
    n = share.effective
    return (share.value * n + rows) / (n + 2 * rows), n + 2 * rows
