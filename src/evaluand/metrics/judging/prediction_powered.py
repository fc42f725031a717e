"""Prediction-powered means: many rows that a judge has graded and few that people have labelled, as one estimate.

The judge's mean is precise but biased, that of the labels is unbiased but has a wide interval. The estimate is the mean
of the labels plus λ times the difference between the judge's mean over the other rows and over the labelled ones. It is
unbiased whatever the judge is worth if the labelled rows were drawn at random from the judged ones, and λ, from 0 to 1,
is where its estimated variance is smallest: near 0 for a judge that says nothing about the labels.

Source: A. Angelopoulos, J. Duchi & T. Zrnic, "PPI++: efficient prediction-powered inference" (arXiv 2311.01453, 2023);
A. Fisch et al., "Stratified prediction-powered inference for hybrid language model evaluation" (arXiv 2406.04291, 2024)
for strata, here with one λ for all. The interval is our own, because that of the paper covers too rarely with 50
labels; docs/intervals.md has the method and its simulation.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from evaluand.metrics.base.metric import NO_ROWS
from evaluand.metrics.judging.estimate import Estimate, undefined
from evaluand.metrics.stats.intervals import Spread, cluster_sums, cluster_variance, interval_within, t_tail

UNBOUNDED: Final = (-math.inf, math.inf)


class PredictionPowered(NamedTuple):
    """A mean from the judge and people together, and from each alone.

    Attributes:
        both: the prediction-powered mean.
        judge: the mean of the judge over all rows.
        people: the mean of the labels.
        weight: λ, how much the judge counts: from 0 (not at all) to 1.
        p: the two-sided p value of the mean 0; NaN where all values lie on one side of 0.
    """

    both: Estimate
    judge: Estimate
    people: Estimate
    weight: float
    p: float


def prediction_powered_mean(
    judged: np.ndarray,
    labels: np.ndarray,
    *,
    weight: np.ndarray | None = None,
    cluster: np.ndarray | None = None,
    stratum: np.ndarray | None = None,
    range: tuple[float, float] = UNBOUNDED,
    confidence: float = 0.95,
) -> PredictionPowered:
    """The mean that people would give all rows, from the judge's values of all and the labels of some.

    A difference of two systems on the same rows is the mean of the differences of their values and of their labels.

    Args:
        judged: the judge's value of each row.
        labels: what people say about the same row, NaN where it is not labelled. The labelled rows must have been drawn
            at random, or at random within each stratum.
        weight: of each row, above 0; equal by default.
        cluster: equal numbers for rows that depend on each other; by default none do.
        stratum: equal numbers for rows among which labels were drawn separately; by default all.
        range: the lowest and highest possible value; the interval of values with a range is a score interval.
        confidence: of the intervals.

    Returns:
        Values within the range. NaN, with the reason, without labels in some stratum.

    Example:
        >>> judged, labels = np.array([1.0, 0.0] * 50), np.full(100, np.nan)
        >>> labels[:20] = [1.0, 0.0] * 9 + [1.0, 1.0]
        >>> found = prediction_powered_mean(judged, labels, range=(0.0, 1.0))
        >>> [round(number, 2) for number in (found.both.value, found.judge.value, found.people.value, found.weight)]
        [0.55, 0.5, 0.55, 0.72]
        >>> [round(end, 2) for one in (found.both, found.people) for end in (one.low, one.high)]
        [0.39, 0.7, 0.33, 0.76]
    """
    rows = _Rows.of(judged, labels, weight, cluster, stratum)
    n, labelled = len(rows.judged), int(rows.known.sum())
    judge = _judge_alone(rows, range, confidence)
    if reason := _lacking(rows):
        return PredictionPowered(undefined(reason, n), judge, undefined(reason, labelled), math.nan, math.nan)
    at_0, at_1 = rows.at(0.0), rows.at(1.0)
    share = _tune(at_0.influence, at_1.influence)
    found = rows.at(share)
    degrees = rows.labelled_clusters - rows.strata - 1
    people = _people_alone(rows, at_0, range, confidence)
    value = float(np.clip(found.value, *range))
    if degrees < 1:
        both = Estimate(value, math.nan, math.nan, n, float(labelled), _too_few(rows))
        return PredictionPowered(both, judge, people, share, math.nan)
    variance = rows.variance(found.influence, degrees) + _unseen(rows, found.influence, share, range, degrees)
    variance = min(variance, _largest_variance(rows, at_0, value, range))
    spread = Spread(*(np.array([each], np.float64) for each in (variance, degrees + 1, degrees + 1)))
    low, high = _interval(value, spread, range, confidence)
    both = Estimate(value, low, high, n, _effective(value, variance, range, labelled), _flat(low))
    return PredictionPowered(both, judge, people, share, _p_value(value, variance, range, degrees))


class _Linear(NamedTuple):
    """A mean and the influence of each cluster on it."""

    value: float
    influence: np.ndarray


class _Rows(NamedTuple):
    """The rows, with clusters and strata numbered from 0."""

    judged: np.ndarray
    labels: np.ndarray
    known: np.ndarray
    weight: np.ndarray
    cluster: np.ndarray
    stratum: np.ndarray

    @classmethod
    def of(
        cls,
        judged: np.ndarray,
        labels: np.ndarray,
        weight: np.ndarray | None,
        cluster: np.ndarray | None,
        stratum: np.ndarray | None,
    ) -> _Rows:
        n = len(judged)
        numbered = [
            np.arange(n) * (place == 0) if each is None else np.unique(each, return_inverse=True)[1]
            for place, each in enumerate((cluster, stratum))
        ]
        weight = np.ones(n) if weight is None else np.asarray(weight, np.float64)
        return cls(np.asarray(judged, np.float64), np.asarray(labels, np.float64), ~np.isnan(labels), weight, *numbered)

    @property
    def strata(self) -> int:
        return int(self.stratum.max()) + 1 if len(self.stratum) else 0

    @property
    def has_labels(self) -> np.ndarray:
        """Which clusters have labelled rows."""
        return np.bincount(self.cluster, self.known) > 0

    @property
    def labelled_clusters(self) -> int:
        return int(self.has_labels.sum())

    @property
    def effective(self) -> float:
        """The number of labelled clusters of equal weight with as much information, by Kish's formula."""
        summed = np.bincount(self.cluster, self.weight * self.known)
        return float(summed.sum() ** 2 / (summed @ summed))

    def at(self, share: float) -> _Linear:
        """The estimate with a λ, and the influence of each cluster."""
        total = self.weight.sum()
        of_strata = np.bincount(self.stratum, self.weight) / total
        labels, judged = np.where(self.known, self.labels, 0.0), self.judged
        mean_label, on_labelled = (self._mean(each, self.known) for each in (labels, judged))
        elsewhere = self._mean(judged, ~self.known)
        applied = np.where(np.isnan(elsewhere), 0.0, share)  # no judge is needed where all rows have labels
        elsewhere = np.nan_to_num(elsewhere)
        means = mean_label + applied * (elsewhere - on_labelled)
        value = float(of_strata @ means)
        row_share, h = applied[self.stratum], self.stratum
        off = np.where(
            self.known,
            labels - mean_label[h] - row_share * (judged - on_labelled[h]),
            row_share * (judged - elsewhere[h]),
        )
        of_kind = np.where(self.known, self._sums(self.known)[h], self._sums(~self.known)[h])
        pull = self.weight * (of_strata[h] * off / of_kind + (means[h] - value) / total)
        return _Linear(value, np.bincount(self.cluster, pull))

    def _sums(self, chosen: np.ndarray) -> np.ndarray:
        return np.bincount(self.stratum, self.weight * chosen)

    def _mean(self, values: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        sums = self._sums(chosen)
        return np.bincount(self.stratum, self.weight * chosen * values) / np.where(sums > 0, sums, np.nan)

    def variance(self, influence: np.ndarray, degrees: int) -> float:
        """The variance of an estimate; the labelled clusters have lost the degrees of freedom of the means and of λ."""
        square, labelled = influence * influence, self.has_labels
        return float(square[labelled].sum() * labelled.sum() / degrees + square[~labelled].sum())


def _lacking(rows: _Rows) -> str | None:
    """Why there is no estimate; None if there is one."""
    if not rows.known.any():
        return "no row is labelled by people"
    empty = int((np.bincount(rows.stratum, rows.known) == 0).sum())
    return f"{empty} of {rows.strata} strata have no label; label some rows of each" if empty else None


def _tune(at_0: np.ndarray, at_1: np.ndarray) -> float:
    """The λ from 0 to 1 with the smallest variance, which is a quadratic function of it."""
    slope = at_1 - at_0
    square = float(slope @ slope)
    return min(max(-float(at_0 @ slope) / square, 0.0), 1.0) if square > 0 else 0.0


_UNSEEN: Final = 1.5
"""Labels that contradict the judge completely, and that a sample may have missed; chosen by simulation, see
docs/intervals.md."""

_SEEN: Final = 2.0
"""So many labels that do contradict it halve the number of the unseen ones."""


def _unseen(rows: _Rows, influence: np.ndarray, share: float, range: tuple[float, float], degrees: int) -> float:
    """The variance of disagreements that few labels may not have shown.

    Without it, 50 labels without any disagreement would make the judge's errors impossible. It is that of a few labels
    that contradict the judge by the whole range, scaled down as far as labels vary less than zeros and ones, and the
    less the more the labels do contradict it.
    """
    labels, weight = rows.labels[rows.known], rows.weight[rows.known]
    least, most = range if math.isfinite(range[1] - range[0]) else _observed(rows)
    if least == most:
        return 0.0
    scaled, n = (labels - least) / (most - least), rows.effective
    mean = (float(weight @ scaled / weight.sum()) * n + 1) / (n + 2)
    square = (float(weight @ (scaled * scaled) / weight.sum()) * n + 1) / (n + 2)
    like_binary = (square - mean * mean) / (mean * (1 - mean))
    complete = like_binary * ((1 + share) / 2 * (most - least)) ** 2
    if complete == 0:
        return 0.0
    own = influence[rows.has_labels]
    seen = n * n * float(own @ own) / complete
    return _UNSEEN * complete / (1 + seen / _SEEN) / (n * max(n - rows.strata - 1, 1.0))


def _observed(rows: _Rows) -> tuple[float, float]:
    values = np.concatenate([rows.judged, rows.labels[rows.known]])
    return float(values.min()), float(values.max())


def _largest_variance(rows: _Rows, alone: _Linear, value: float, range: tuple[float, float]) -> float:
    """The variance with as many effective labels as there are without the judge: no judge makes an estimate worse."""
    degrees = max(rows.labelled_clusters - rows.strata, 1)
    variance = rows.variance(alone.influence, degrees)
    least, most = range
    if not math.isfinite(most - least):
        return variance if variance > 0 else math.inf
    spread = (alone.value - least) * (most - alone.value)
    effective = spread / variance if variance > 0 and spread > 0 else rows.effective
    return (value - least) * (most - value) / effective


def _people_alone(rows: _Rows, alone: _Linear, range: tuple[float, float], confidence: float) -> Estimate:
    labelled, degrees = int(rows.known.sum()), rows.labelled_clusters - rows.strata
    if degrees < 1:
        return Estimate(alone.value, math.nan, math.nan, labelled, float(labelled), _too_few(rows))
    variance = rows.variance(alone.influence, degrees)
    spread = Spread(np.array([variance]), np.array([degrees + 1]), np.array([max(rows.effective, 2.0)]))
    low, high = _interval(alone.value, spread, range, confidence)
    return Estimate(alone.value, low, high, labelled, _effective(alone.value, variance, range, labelled), _flat(low))


def _judge_alone(rows: _Rows, range: tuple[float, float], confidence: float) -> Estimate:
    if not (n := len(rows.judged)):
        return undefined(NO_ROWS)
    sums = cluster_sums(rows.judged, rows.weight, rows.cluster, np.zeros(n, np.int64))
    mean = float(rows.weight @ rows.judged / rows.weight.sum())
    spread = cluster_variance(sums, np.array([mean]))
    if spread.clusters[0] < 2:
        return Estimate(mean, math.nan, math.nan, n, 1.0, "one cluster has no interval")
    low, high = _interval(mean, spread, range, confidence)
    return Estimate(mean, low, high, n, _effective(mean, float(spread.variance[0]), range, n), _flat(low, "values"))


def _too_few(rows: _Rows) -> str:
    return f"too few labels for an interval: {rows.labelled_clusters} independent ones"


def _flat(end: float, what: str = "labels") -> str | None:
    """Why there is no interval; None if it has this end."""
    return None if math.isfinite(end) else f"no interval: all {what} are equal, and the range of the values is unknown"


def _interval(value: float, spread: Spread, range: tuple[float, float], confidence: float) -> tuple[float, float]:
    """The score interval of values with a range, else Student's; NaN without spread and range."""
    if not math.isfinite(range[1] - range[0]) and not spread.variance[0] > 0:
        return math.nan, math.nan
    spread = spread._replace(clusters=np.rint(spread.clusters).astype(np.int64))
    low, high = interval_within(np.array([value]), spread, range, confidence)
    return float(low[0]), float(high[0])


def _effective(value: float, variance: float, range: tuple[float, float], otherwise: int) -> float:
    """The number of independent zeros and ones with as much information, for values with a range."""
    least, most = range
    within = (value - least) * (most - value) if math.isfinite(most - least) else 0.0
    return within / variance if within > 0 and variance > 0 else float(otherwise)


def _p_value(value: float, variance: float, range: tuple[float, float], degrees: int) -> float:
    """The p value that agrees with the interval: the largest level at which the interval includes 0."""
    least, most = range
    if math.isfinite(most - least):
        if not least < 0 < most:
            return math.nan
        variance *= least * most / ((value - least) * (value - most)) if least < value < most else 1.0
    return t_tail(abs(value) / math.sqrt(variance), degrees) if variance > 0 else math.nan
