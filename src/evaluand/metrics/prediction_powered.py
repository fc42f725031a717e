"""Prediction-powered means: many rows that a judge has graded and few that people have labelled, as one estimate.

The judge's mean is precise but biased, that of the labels is unbiased but has a wide interval. The estimate is the mean
of the labels plus λ times the difference between the judge's mean over the other rows and over the labelled ones. It is
unbiased whatever the judge is worth if the labelled rows were drawn at random from the judged ones, and λ, from 0 to 1,
is where its estimated variance is smallest: near 0 for a judge that says nothing about the labels.

Source: A. Angelopoulos, J. Duchi & T. Zrnic, "PPI++: efficient prediction-powered inference" (arXiv 2311.01453, 2023);
A. Fisch et al., "Stratified prediction-powered inference for hybrid language model evaluation" (arXiv 2406.04291, 2024)
for strata, here with one λ for all; G. Zou & A. Donner, "Construction of confidence limits about effect measures: a
general approach" (Statistics in Medicine 27, 2008) for the interval of a sum of strata. That of a stratum is our own,
because the paper's covers too rarely with 50 labels; docs/intervals.md has the method and its simulation.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Final, NamedTuple, Self

import numpy as np

from evaluand.core.errors import SpecError, plural, pluralize
from evaluand.core.parameters import Within
from evaluand.metrics.base.averaging import ROW_GROUP, KeepingRows, OfColumn
from evaluand.metrics.base.metric import (
    CLUSTER,
    DRAW,
    NO_ROWS,
    PEOPLE,
    STRATUM,
    VALUE,
    Columns,
    Direction,
    State,
    Values,
    check_confidence,
    numbers,
    weights_of,
)
from evaluand.metrics.column_statistics import check_range
from evaluand.metrics.judging.estimate import Estimate, undefined
from evaluand.metrics.stats.intervals import (
    cluster_sums,
    cluster_variance,
    correlation_of,
    count_rows,
    interval_within,
    score_interval,
    t_quantile,
    t_tail,
)

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
        Values within the range. NaN, with the reason, without labels in some stratum; no interval if one of several
        strata has a single independent label.

    Example:
        >>> judged, labels = np.array([1.0, 0.0] * 50), np.full(100, np.nan)
        >>> labels[:20] = [1.0, 0.0] * 9 + [1.0, 1.0]
        >>> found = prediction_powered_mean(judged, labels, range=(0.0, 1.0))
        >>> [round(number, 2) for number in (found.both.value, found.judge.value, found.people.value, found.weight)]
        [0.55, 0.5, 0.55, 0.72]
        >>> [round(end, 2) for one in (found.both, found.people) for end in (one.low, one.high)]
        [0.39, 0.7, 0.33, 0.76]
    """
    n, known = len(judged), ~np.isnan(labels)
    unit, layer = (
        np.unique(default if keys is None else keys, return_inverse=True)[1]
        for keys, default in ((cluster, np.arange(n)), (stratum, np.zeros(n)))
    )
    weight = np.ones(n) if weight is None else np.asarray(weight, np.float64)
    rows = _Rows(np.asarray(judged, np.float64), np.asarray(labels, np.float64), known, weight, unit, layer, range)
    labelled = int(known.sum())
    judge = _judge_alone(rows, confidence)
    if reason := _lacking(rows):
        return PredictionPowered(undefined(reason, n), judge, undefined(reason, labelled), math.nan, math.nan)
    alone = rows.at(0.0)
    slope = rows.at(1.0).total_influence - alone.total_influence
    square = float(slope @ slope)
    # The variance is a quadratic function of λ.
    share = min(max(-float(alone.total_influence @ slope) / square, 0.0), 1.0) if square > 0 else 0.0
    lost = np.ones(rows.strata)
    people = _Parts.of(rows, alone, rows.variances(alone.influence, lost), lost)
    both = _Parts.of_both(rows, alone, rows.at(share), share)
    p = math.nan if both.fault else both.p_value()
    return PredictionPowered(both.estimate(confidence)._replace(n=n), judge, people.estimate(confidence), share, p)


class _Linear(NamedTuple):
    """A mean with the influence of each cluster on it.

    Attributes:
        of_strata: the share of each stratum in all rows.
        means: of the strata.
        influence: strata × clusters, on the means of the strata.
        on_shares: of each cluster on the mean of all, because the shares of the strata are those of the rows.
    """

    value: float
    of_strata: np.ndarray
    means: np.ndarray
    influence: np.ndarray
    on_shares: np.ndarray

    @property
    def total_influence(self) -> np.ndarray:
        return np.asarray(self.of_strata @ self.influence + self.on_shares)


@dataclass(frozen=True)
class _Rows:
    """The rows, with clusters and strata numbered from 0."""

    judged: np.ndarray
    labels: np.ndarray
    known: np.ndarray
    weight: np.ndarray
    cluster: np.ndarray
    stratum: np.ndarray
    range: tuple[float, float]

    @property
    def is_bounded(self) -> bool:
        return math.isfinite(self.range[1] - self.range[0])

    @property
    def strata(self) -> int:
        return int(self.stratum.max()) + 1 if len(self.stratum) else 0

    def find_fault(self, estimated: int) -> str | None:
        """Why there is no interval if the labels have so many parameters to estimate; None if there is one."""
        labelled = (self.summed > 0).sum(axis=1)
        if labelled.min() < 2 <= self.strata:
            return "too few labels for an interval: only 1 independent one in some stratum"
        few = labelled.sum() <= estimated
        return f"too few labels for an interval: {labelled.sum()} independent ones" if few else None

    @cached_property
    def summed(self) -> np.ndarray:
        """The weight of the labelled rows, strata × clusters."""
        return self._by_cluster(self.weight * self.known)

    @cached_property
    def labels_of_strata(self) -> np.ndarray:
        """The number of labelled clusters of equal weight with as much information, by Kish's formula."""
        return _kish(self.summed)

    def at(self, share: float) -> _Linear:
        """The estimate with a λ, and the influence of each cluster."""
        total = self.weight.sum()
        of_strata = np.bincount(self.stratum, self.weight) / total
        labels, judged = np.where(self.known, self.labels, 0.0), self.judged
        mean_label, on_labelled = (self.mean(each, self.known) for each in (labels, judged))
        elsewhere = self.mean(judged, ~self.known)
        applied = np.where(np.isnan(elsewhere), 0.0, share)  # no judge is needed where all rows have labels
        elsewhere = np.nan_to_num(elsewhere)
        means = mean_label + applied * (elsewhere - on_labelled)
        value = float(of_strata @ means)
        row_share, h = applied[self.stratum], self.stratum
        off = labels - mean_label[h] - row_share * (judged - on_labelled[h])
        off = np.where(self.known, off, row_share * (judged - elsewhere[h]))
        of_kind = np.where(self.known, self._sums(self.known)[h], self._sums(~self.known)[h])
        influence = self._by_cluster(self.weight * off / of_kind)
        on_shares = np.bincount(self.cluster, self.weight * (means[h] - value) / total)
        return _Linear(value, of_strata, means, influence, on_shares)

    def _by_cluster(self, values: np.ndarray) -> np.ndarray:
        clusters = int(self.cluster.max()) + 1
        place = self.stratum * clusters + self.cluster
        return np.bincount(place, values, minlength=self.strata * clusters).reshape(self.strata, clusters)

    def _sums(self, chosen: np.ndarray) -> np.ndarray:
        return np.bincount(self.stratum, self.weight * chosen)

    def mean(self, values: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        sums = self._sums(chosen)
        return np.bincount(self.stratum, self.weight * chosen * values) / np.where(sums > 0, sums, np.nan)

    def variances(self, influence: np.ndarray, lost: np.ndarray) -> np.ndarray:
        """The variance of the mean of each stratum, whose labels have lost so many degrees of freedom.

        A few labels of much weight often agree by chance. So a variance below the one that the same deviations would
        have if they were independent of the weights is raised halfway to it.
        """
        square, summed, n = influence * influence, self.summed, self.labels_of_strata
        labelled = np.where(summed > 0, square, 0.0)
        spread = (labelled / np.where(summed > 0, summed, 1.0)).sum(axis=1)
        independent = spread * (summed * summed).sum(axis=1) / summed.sum(axis=1)
        own = labelled.sum(axis=1)
        raised = np.maximum(own, (own + independent) / 2)
        return np.asarray(raised * n / np.maximum(n - lost, 1.0) + (square - labelled).sum(axis=1))


def _kish(weights: np.ndarray) -> np.ndarray:
    return np.asarray(weights.sum(axis=-1) ** 2 / (weights * weights).sum(axis=-1))


def _lacking(rows: _Rows) -> str | None:
    """Why there is no estimate; None if there is one."""
    if not rows.known.any():
        return "no row is labelled by people"
    empty = int((np.bincount(rows.stratum, rows.known) == 0).sum())
    have = pluralize(empty, "has", "have")
    return f"{empty} of {rows.strata} strata {have} no label; label some rows of each" if empty else None


_UNSEEN: Final = 1.5
"""Labels that contradict the judge completely, and that a sample may have missed; chosen by simulation, see
docs/intervals.md."""

_SEEN: Final = 2.0
"""So many labels that do contradict it halve the number of the unseen ones."""


class _Parts(NamedTuple):
    """An estimate as the mean of strata.

    Attributes:
        labels: the number of labels that count in a stratum where all are at one end of the range.
        variance: of the value of each stratum.
        correlation: of the strata, and of their shares.
        degrees: Student's degrees of freedom.
        fault: why there is no interval; None if there is one.
    """

    rows: _Rows
    found: _Linear
    labels: np.ndarray
    variance: np.ndarray
    correlation: np.ndarray
    degrees: int
    fault: str | None

    @classmethod
    def of_both(cls, rows: _Rows, alone: _Linear, found: _Linear, share: float) -> Self:
        n = rows.labels_of_strata
        lost = 1 + n / n.sum()  # λ takes one degree of freedom of all
        variance = rows.variances(found.influence, lost) + _unseen(rows, found.influence, share)
        return cls.of(rows, found, np.minimum(variance, _largest_variances(rows, alone, found)), lost)

    @classmethod
    def of(cls, rows: _Rows, found: _Linear, variance: np.ndarray, lost: np.ndarray) -> Self:
        labels = np.maximum(rows.labels_of_strata + 1 - lost, 1.0)
        influence = np.vstack([found.influence, found.on_shares])
        estimated = round(float(lost.sum()))
        of_strata = np.bincount(rows.stratum, rows.weight) / rows.summed.sum(axis=1)
        degrees = max(round(float(_kish(of_strata @ rows.summed))) - estimated, 1)  # clusters weigh as in the mean
        correlation = correlation_of(influence @ influence.T)
        return cls(rows, found, labels, variance, correlation, degrees, rows.find_fault(estimated))

    def estimate(self, confidence: float) -> Estimate:
        value, labelled = float(np.clip(self.found.value, *self.rows.range)), int(self.rows.known.sum())
        if self.fault:
            return Estimate(value, math.nan, math.nan, labelled, float(labelled), self.fault)
        low = high = math.nan
        if self.rows.is_bounded or self.total_variance > 0:
            low, high = self._ends(float(t_quantile(confidence, np.array(self.degrees))))
        effective = _effective(value, self.total_variance, self.rows, labelled)
        return Estimate(value, low, high, labelled, effective, _flat(low))

    @property
    def total_variance(self) -> float:
        return self._add(np.sqrt(self.variance), 1.0) ** 2

    def _add(self, off: np.ndarray, t: float) -> float:
        """The distance of an end of the interval, from those of the strata."""
        own = t * math.sqrt(float(self.found.on_shares @ self.found.on_shares))
        every = np.append(self.found.of_strata * off, own)
        return math.sqrt(max(float(every @ self.correlation @ every), 0.0))

    def _ends(self, t: float) -> tuple[float, float]:
        """The ends at so many standard errors: score intervals of the strata, added as standard errors are."""
        least, most = self.rows.range
        means, value = self.found.means, float(np.clip(self.found.value, least, most))
        if self.rows.is_bounded:
            inside = (np.clip(means, least, most) - least) / (most - least)
            inner = inside * (1 - inside) * (most - least) ** 2
            with np.errstate(divide="ignore", invalid="ignore"):
                n = np.where((self.variance > 0) & (inner > 0), inner / self.variance, self.labels)
            low, high = (least + (most - least) * end for end in score_interval(inside, n, t))
            off = np.maximum(means - low, 0.0), np.maximum(high - means, 0.0)
        else:
            off = (t * np.sqrt(self.variance),) * 2
        ends = self.found.value - self._add(off[0], t), self.found.value + self._add(off[1], t)
        return float(np.clip(ends[0], least, value)), float(np.clip(ends[1], value, most))

    def p_value(self) -> float:
        """The p value that agrees with the interval: the largest level at which the interval includes 0."""
        if not self.rows.range[0] < 0 < self.rows.range[1] or not self.total_variance > 0:
            return math.nan
        least, most = 0.0, 1.0
        while self._excludes_0(most) and most < 1e9:
            most *= 2
        while least < (middle := (least + most) / 2) < most:
            least, most = (middle, most) if self._excludes_0(middle) else (least, middle)
        return t_tail(least, self.degrees)

    def _excludes_0(self, t: float) -> bool:
        low, high = self._ends(t)
        return low > 0 or high < 0


def _unseen(rows: _Rows, influence: np.ndarray, share: float) -> np.ndarray:
    """The variance, in each stratum, of disagreements that few labels may not have shown.

    Without it, 50 labels without any disagreement would make the judge's errors impossible. It is that of a few labels
    that contradict the judge by the whole range, scaled down as far as labels vary less than zeros and ones, and the
    less the more the labels of all strata do contradict it.
    """
    observed = np.concatenate([rows.judged, rows.labels[rows.known]])
    least, most = rows.range if rows.is_bounded else (float(observed.min()), float(observed.max()))
    if least == most:
        return np.zeros(rows.strata)
    scaled, n = (np.nan_to_num(rows.labels) - least) / (most - least), rows.labels_of_strata
    mean = (rows.mean(scaled, rows.known) * n + 1) / (n + 2)
    square = (rows.mean(scaled * scaled, rows.known) * n + 1) / (n + 2)
    like_binary = (square - mean * mean) / (mean * (1 - mean))
    complete = like_binary * ((1 + share) / 2 * (most - least)) ** 2
    own = np.where(rows.summed > 0, influence, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        seen = np.where(complete > 0, n * n * (own * own).sum(axis=1) / complete, 0.0).sum()
        return np.asarray(_UNSEEN * complete / (1 + seen / _SEEN) / (n * np.maximum(n - 2, 1.0)))


def _largest_variances(rows: _Rows, alone: _Linear, found: _Linear) -> np.ndarray:
    """The variances with as many effective labels as there are without the judge: no judge makes an estimate worse."""
    variance, with_judge = (rows.variances(one.influence, np.ones(rows.strata)) for one in (alone, found))
    least, most = rows.range
    if not rows.is_bounded:
        return np.asarray(np.maximum(np.where(variance > 0, variance, math.inf), with_judge))
    spread = (alone.means - least) * (most - alone.means)
    means = np.clip(found.means, least, most)
    with np.errstate(divide="ignore", invalid="ignore"):
        effective = np.where((variance > 0) & (spread > 0), spread / variance, rows.labels_of_strata)
        worse = np.where(variance > 0, np.maximum(with_judge / variance, 1.0), 1.0)
    return np.asarray((means - least) * (most - means) / effective * worse)


def _judge_alone(rows: _Rows, confidence: float) -> Estimate:
    """With the score interval of values with a range, else Student's."""
    if not (n := len(rows.judged)):
        return undefined(NO_ROWS)
    sums = cluster_sums(rows.judged, rows.weight, rows.cluster, np.zeros(n, np.int64))
    mean = float(rows.weight @ rows.judged / rows.weight.sum())
    spread = cluster_variance(sums, np.array([mean]))
    if spread.clusters[0] < 2:
        return Estimate(mean, math.nan, math.nan, n, 1.0, "one cluster has no interval")
    variance, low, high = float(spread.variance[0]), math.nan, math.nan
    if rows.is_bounded or variance > 0:
        low, high = (float(end[0]) for end in interval_within(np.array([mean]), spread, rows.range, confidence))
    return Estimate(mean, low, high, n, _effective(mean, variance, rows, n), _flat(low, "values"))


def _flat(end: float, what: str = "labels") -> str | None:
    """Why there is no interval; None if it has this end."""
    return None if math.isfinite(end) else f"no interval: all {what} are equal, and the range of the values is unknown"


def _effective(value: float, variance: float, rows: _Rows, otherwise: int) -> float:
    """The number of independent zeros and ones with as much information, for values with a range."""
    within = (value - rows.range[0]) * (rows.range[1] - value) if rows.is_bounded else 0.0
    return within / variance if within > 0 and variance > 0 else float(otherwise)


@dataclass(frozen=True, kw_only=True)
class PredictionPoweredMean(KeepingRows, OfColumn):
    """The mean of what people say about all rows: a judge grades all, and people have labelled some at random.

    Unbiased whatever the judge is worth, and never much wider than the interval of the labels alone; see
    `prediction_powered_mean`. Its `data` hold the judge's mean alone and that of the labels alone. There is no value
    unless the labelled rows were drawn at random: those that come first in the order of `evaluand label export`.

    Args:
        column: the judge's value.
        labels: the column of the dataset with people's labels, or the question if people answered several; by default
            the newest labels of the run.
        threshold: the judge's lowest number that means right, for grades of a judge where people say right or wrong.
        people_threshold: people's lowest grade that means right, where the judge says right or wrong.
        strata: an attribute of the dataset by which the labelled rows were drawn separately.
        seed: that of `evaluand label export`.
        drawn: the labelled rows were drawn at random in another way, which nothing can verify.
        weighted: each row counts by the weight of its example.
        range: the values that people and judge can give.
        direction: whether higher or lower is better; None if neither.
        confidence: of the intervals.

    Raises:
        SpecError: the range is empty or reversed, the confidence not between 0 and 1, or the threshold not finite.

    Example:
        >>> metric = PredictionPoweredMean(range=(0, 1), drawn=True)
        >>> rows = {"value": np.array([1.0, 0.0, 1.0] * 20), PEOPLE: np.array([1.0, 0.0] * 6 + [np.nan] * 48)}
        >>> state = metric.state(rows | {CLUSTER: np.arange(60)}, np.zeros(60, np.int64), n_groups=1)
        >>> found = metric.compute(state)
        >>> found.value.round(2), found.data[0]["judge"]["value"], found.data[0]["people"]["value"]
        (array([0.5]), 0.6666666666666666, 0.5)
    """

    kind = "prediction_powered_mean"
    reads_labels = True
    interval_name = "prediction-powered"
    by_cluster = True

    labels: str | None = None
    threshold: float | None = None
    people_threshold: float | None = None
    strata: str | None = None
    seed: Annotated[int, Within(0)] = 0
    drawn: bool = False
    weighted: bool = False
    range: tuple[float, float] = (-math.inf, math.inf)
    direction: Direction | None = "higher"
    confidence: float = 0.95

    def __post_init__(self) -> None:
        object.__setattr__(self, "range", check_range(self.kind, self.range))
        object.__setattr__(self, "confidence", check_confidence(self.kind, self.confidence))
        for name in ("threshold", "people_threshold"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise SpecError(f"{self.kind}: {name}={value} must be a number")
        super().__post_init__()

    def prepare(self, columns: Columns) -> Columns:
        return {VALUE: numbers(columns, self.column, self.kind)}

    def state(self, columns: Columns, group: np.ndarray, n_groups: int) -> State:
        n = len(group)
        weight = weights_of(columns, self.kind) if self.weighted else np.ones(n)
        people, draw = (columns.get(name, np.full(n, np.nan)).astype(np.float64) for name in (PEOPLE, DRAW))
        rows = columns[VALUE], people, draw, columns.get(STRATUM, np.zeros(n, np.int64)), weight, columns[CLUSTER]
        return {"n": count_rows(group, n_groups), ROW_GROUP: group} | dict(zip(_ROW, rows, strict=True))

    def compute(self, state: State) -> Values:
        groups = [(state[ROW_GROUP] == group) & (state[_WEIGHT] > 0) for group in range(len(state["n"]))]
        found = [self._compute_group(*(state[name][rows] for name in _ROW)) for rows in groups]
        value, low, high = (np.array([getattr(one, end) for one, _ in found]) for end in ("value", "low", "high"))
        return Values(value, low, high, [one.reason for one, _ in found], [data for _, data in found])

    def _compute_group(
        self, value: np.ndarray, people: np.ndarray, *rows: np.ndarray
    ) -> tuple[Estimate, dict[str, Any] | None]:
        if not len(value):
            return undefined(NO_ROWS), None
        found, fault = self.measure(value[None], people[None], *rows)
        return undefined(fault) if fault else found.both, _describe(found)

    def measure(
        self,
        judged: np.ndarray,
        labels: np.ndarray,
        draw: np.ndarray,
        stratum: np.ndarray,
        weight: np.ndarray,
        cluster: np.ndarray,
    ) -> tuple[PredictionPowered, str | None]:
        """The mean of one system, or of the second minus the first on the same rows, from those labelled for both.

        Args:
            judged: of one system or of both: systems × rows, like `labels`.
            draw: the place of each row in the random order; the other arguments as in `prediction_powered_mean`.

        Returns:
            The mean, and why it does not count; None if it does.
        """
        judged, labels = _divide(judged, self.threshold), _divide(labels, self.people_threshold)
        least, most = self._range_of(judged, labels)
        fault = _find_scale_fault(judged, labels, (least, most))
        if len(judged) > 1:
            judged, labels, least, most = np.diff(judged, axis=0), np.diff(labels, axis=0), least - most, most - least
        found = prediction_powered_mean(
            judged[0],
            labels[0],
            weight=weight,
            cluster=cluster,
            stratum=stratum if self.strata is not None else None,
            range=(least, most),
            confidence=self.confidence,
        )
        return found, fault or self._find_draw_fault(labels[0], draw, stratum)

    def _range_of(self, judged: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
        """The declared range; that of shares where none is declared for these numbers and all are 0 and 1."""
        if self.range != UNBOUNDED and self.threshold is None and self.people_threshold is None:
            return self.range
        is_binary = all(np.isin(each[~np.isnan(each)], (0.0, 1.0)).all() for each in (judged, labels))
        return (0.0, 1.0) if is_binary else self.range

    def _find_draw_fault(self, labels: np.ndarray, draw: np.ndarray, stratum: np.ndarray) -> str | None:
        """Why the labelled rows are not known to be drawn at random; None if they are."""
        known = ~np.isnan(labels)
        if self.drawn or not known.any() or known.all():
            return None
        skipped = 0
        for each in np.unique(stratum[known]):
            own = stratum == each
            last = draw[own & known].max()
            skipped += int((own & ~known).sum() if np.isnan(last) else (draw[own & ~known] < last).sum())
        if not skipped:
            return None
        without = plural(skipped, "row")
        return (
            f"labels not drawn at random: {without} before the last labelled one lack one; label these, or declare"
            " `drawn: true`"
        )


_WEIGHT: Final = "row_weight"
_ROW: Final = ("row_value", "row_people", "row_draw", "row_stratum", _WEIGHT, "row_cluster")


def _divide(values: np.ndarray, threshold: float | None) -> np.ndarray:
    """1 from the threshold on, else 0; unknown values stay unknown."""
    if threshold is None:
        return values
    return np.where(np.isnan(values), np.nan, (values >= threshold).astype(np.float64))


def _find_scale_fault(judged: np.ndarray, labels: np.ndarray, range: tuple[float, float]) -> str | None:
    """Why people and judge are not on one scale, as far as that can be seen; None if they may be."""
    given = labels[~np.isnan(labels)]
    if not len(given):
        return None
    if math.isfinite(range[1] - range[0]):
        is_alike = bool((given >= range[0]).all() and (given <= range[1]).all())
    else:
        of_people, of_judge = (bool((each >= 0).all() and (each <= 1).all()) for each in (given, judged))
        is_alike = of_people == of_judge
    if is_alike:
        return None
    ends = [f"{each.min():g} to {each.max():g}" for each in (given, judged)]
    return f"people give {ends[0]} and the judge {ends[1]}; say what means right: `people_threshold` or `threshold`"


def _describe(found: PredictionPowered) -> dict[str, Any]:
    alone = {
        name: {end: None if math.isnan(number := getattr(mean, end)) else number for end in ("value", "low", "high")}
        for name, mean in (("judge", found.judge), ("people", found.people))
    }
    share = None if math.isnan(found.weight) else found.weight
    return {"n": found.judge.n, "labelled": found.people.n, "judge_share": share} | alone
