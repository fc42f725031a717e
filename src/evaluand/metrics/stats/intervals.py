"""Statistics behind intervals: mergeable moments, quantiles, score intervals, clusters and random bits.

Everything works on all groups at once: arrays with an entry per group. Rows that belong together (the replications of
an example, the questions on one document) are summed by cluster first, and the spread *between* clusters gives the
interval; a thousand rows from ten documents are ten observations, not a thousand.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import cache, reduce
from statistics import NormalDist
from typing import Literal, NamedTuple, Self

import numpy as np

Arrays = Mapping[str, np.ndarray]


def runs(*keys: np.ndarray) -> np.ndarray:
    """The places in sorted arrays at which a new combination of values begins."""
    new = np.ones(len(keys[0]), np.bool_)
    if len(new):
        new[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    return np.flatnonzero(new)


def count_rows(group: np.ndarray, n_groups: int) -> np.ndarray:
    """The number of rows of each group."""
    return np.array([len(group)]) if n_groups == 1 else np.bincount(group, minlength=n_groups)


def sum_rows(values: np.ndarray, group: np.ndarray, n_groups: int) -> np.ndarray:
    """The sum of the values of each group, added one after the other as `np.bincount` does.

    For one group by a reduction, which takes a quarter of the time: subtractions are never reordered, as additions are.

    Example:
        >>> sum_rows(np.array([0.5, 2.0, 1.0]), np.array([0, 1, 0]), 2).tolist()
        [1.5, 2.0]
    """
    if n_groups != 1:
        return np.bincount(group, values, minlength=n_groups)
    return np.array([0.0 - np.subtract.reduce(values, initial=0.0)])


def moments(values: np.ndarray, group: np.ndarray, n_groups: int, *, third: bool = False) -> Arrays:
    """Count, mean and squared deviations of each group, as a numerically stable state.

    The mean is the unevaluated sum of `mean` and the much smaller `rest`, and deviations are taken from it, so values
    with a large common offset lose nothing: the corrected two-pass algorithm of Chan, Golub & LeVeque, "Algorithms
    for computing the sample variance" (The American Statistician 37, 1983).

    Returns:
        `n`, `mean`, `rest` and `m2`, the sum of squared deviations, with `third` also `m3`, that of their cubes; zeros
        for a group without rows. Overflow gives infinite values or NaN, without a warning.
    """
    n = count_rows(group, n_groups)
    share = _by_row(1.0 / np.maximum(n, 1), group)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.zeros(n_groups)
        rows = slice(-1, None) if n_groups == 1 else slice(None)
        mean[group[rows]] = values[rows]  # the last of each, so that equal values have deviations of exactly 0
        deviations = values - _by_row(mean, group)
        mean += sum_rows(np.multiply(deviations, share, out=deviations), group, n_groups)
        deviations = np.subtract(values, _by_row(mean, group), out=deviations)
        power = deviations * share
        rest = sum_rows(power, group, n_groups)
        np.square(deviations, out=power)
        m2 = np.maximum(sum_rows(power, group, n_groups) - n * rest * rest, 0.0)
        cubes = dict[str, np.ndarray]()
        if third:
            power *= deviations
            cubes = {"m3": sum_rows(power, group, n_groups) - 3 * rest * m2}
        mean, rest = _two_sum(mean, rest)
    return {"n": n, "mean": mean, "rest": rest, "m2": m2} | cubes


def _by_row(of_groups: np.ndarray, group: np.ndarray) -> np.ndarray:
    """The number of each row's group; of a single group once, for all rows."""
    return of_groups if len(of_groups) == 1 else of_groups[group]


def merge_moments(states: Sequence[Arrays]) -> Arrays:
    """The moments of all rows together, merged from left to right.

    Source: the pairwise update of Chan, Golub & LeVeque (see `moments`).
    """
    return reduce(_merge_two, states)


def wilson(
    successes: np.ndarray, n: np.ndarray, confidence: float, correction: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """The score interval of a proportion, by default without continuity correction.

    It stays within [0, 1] and is usable for few rows and for proportions near 0 and 1, where the textbook normal
    interval is not. It takes the rows as independent: for rows that share a cluster see `clustered_wilson`.
    Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference" (JASA 22, 1927).

    Args:
        correction: the rows by which the observed share is moved towards each hypothesis; with a half, an end errs
            about as often as its level says where few rows are right or wrong.

    Returns:
        Lower and upper ends, NaN for n = 0.

    Example:
        >>> low, high = wilson(np.array([80]), np.array([90]), 0.95)
        >>> round(float(low[0]), 4), round(float(high[0]), 4)
        (0.8074, 0.9385)
    """
    rows, z = np.where(n > 0, n, np.nan), normal_quantile(confidence)
    low, _ = score_interval(np.maximum(successes - correction, 0) / rows, rows, z)
    _, high = score_interval(np.minimum(successes + correction, n) / rows, rows, z)
    return np.where(successes == 0, 0 * rows, low), np.where(successes == n, 1 + 0 * rows, high)


ShareInterval = Literal["wilson", "exact", "mid_p"]


def share_interval(
    kind: ShareInterval, successes: np.ndarray, n: np.ndarray, confidence: float
) -> tuple[np.ndarray, np.ndarray]:
    """The interval of proportions of independent rows; of clusters of rows, see `effective_rows`.

    Args:
        kind: `wilson` covers a proportion as often as it says on average over proportions; `exact` at least as often
            whatever the proportion, as rare failures need, by `clopper_pearson`; `mid_p` lies between them.
        successes, n: may be fractional.

    Returns:
        Lower and upper ends, NaN for n = 0.
    """
    if kind == "wilson":
        return wilson(successes, n, confidence)
    ends = [
        mid_p(right, rows, confidence) if kind == "mid_p" else clopper_pearson(right, rows, (1 + confidence) / 2)
        for right, rows in zip(successes.tolist(), n.tolist(), strict=True)
    ]
    low, high = np.array(ends).reshape(-1, 2).T
    return low, high


def effective_rows(value: np.ndarray, spread: "Spread", confidence: float) -> np.ndarray:
    """The number of independent rows that tell as much about a proportion as rows in clusters, or with weights.

    NaN below two clusters. Fewer clusters count less, by the ratio of the quantiles of the normal and of Student's
    distribution; where clusters nearly agree, see `cautious_spread`.
    Source: E. Korn & B. Graubard, "Confidence intervals for proportions with small expected number of positive counts
    estimated from survey data" (Survey Methodology 24, 1998).
    """
    variance, inner = cautious_spread(value, spread, confidence).variance, value * (1 - value)
    with np.errstate(divide="ignore", invalid="ignore"):
        rows = np.where((variance > 0) & (inner > 0), inner / variance, spread.effective)
    shrunk = np.square(normal_quantile(confidence) / t_quantile(confidence, _degrees(spread.effective)))
    return np.where(spread.clusters > 1, rows * shrunk, np.nan)


def clopper_pearson(successes: float, n: float, level: float) -> tuple[float, float]:
    """One-sided bounds of a proportion of independent rows, each with at least the confidence `level` (½ to 1).

    For an interval use `wilson`, whose average coverage is closer to its level, but whose one-sided bounds err more.
    Source: C. Clopper & E. Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial"
    (Biometrika 26, 1934).

    Returns:
        The lower and the upper bound, NaN for n = 0.

    Example:
        >>> low, high = clopper_pearson(80, 90, 0.95)
        >>> round(low, 4), round(high, 4)
        (0.8188, 0.9385)
    """
    if not n > 0:
        return math.nan, math.nan
    return _least_share(successes, n, level), 1 - _least_share(n - successes, n, level)


def is_share_above(successes: int, n: int, least: float, level: float) -> bool:
    """Whether the lower bound of `clopper_pearson` is a number between 0 and 1 or more, without the search for it.

    Example:
        >>> is_share_above(80, 90, 0.8188, 0.95), is_share_above(80, 90, 0.8189, 0.95)
        (True, False)
    """
    return successes > least * n and _incomplete_beta(successes, n - successes + 1, least) <= 1 - level


def _least_share(successes: float, n: float, level: float) -> float:
    """The largest proportion for which so many successes or more have a probability of at most 1 - level."""
    if successes <= _ROUNDING * n:
        return 0.0
    if n - successes <= _ROUNDING * n:
        return float((1 - level) ** (1 / n))
    low, high = 0.0, successes / n
    while (middle := (low + high) / 2) not in (low, high):
        at_least = _incomplete_beta(successes, n - successes + 1, middle)
        low, high = (middle, high) if at_least <= 1 - level else (low, middle)
    return low


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function, for x below about a / (a + b), where its continued fraction is fast.

    NIST Digital Library of Mathematical Functions 8.17.22, evaluated by Lentz's method.
    """
    log_scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    fraction = upper = 1.0
    lower = 0.0
    for step in itertools.count(1):
        m = step // 2
        factor = -(a + m) * (a + b + m) if step % 2 else m * (b - m)
        term = factor * x / ((a + step - 1) * (a + step))
        upper, lower = 1 + term / upper, 1 / (1 + term * lower)
        fraction *= upper * lower
        if abs(upper * lower - 1) <= _ROUNDING:
            break
    return math.exp(log_scale) / (a * fraction)


def mid_p(successes: float, n: float, confidence: float) -> tuple[float, float]:
    """The mid-P interval of a proportion of independent rows: Clopper & Pearson's with half of the observed count.

    Unlike Wilson's, it covers a proportion near 0 or 1 about as often as its level says also with few rows.
    Source: A. Agresti & A. Gottard, "Nonconservative exact small-sample inference for discrete data" (Computational
    Statistics & Data Analysis 51, 2007).

    Args:
        successes: may be fractional, as the effective number of weighted rows is.

    Returns:
        Lower and upper ends, NaN for n = 0.

    Example:
        >>> low, high = mid_p(1, 20, 0.95)
        >>> round(low, 4), round(high, 4)
        (0.0025, 0.2228)
    """
    if not n > 0:
        return math.nan, math.nan
    beyond = (1 - confidence) / 2
    return _mid_p_end(successes, n, beyond), 1 - _mid_p_end(n - successes, n, beyond)


def _mid_p_end(successes: float, n: float, beyond: float) -> float:
    """The proportion for which more successes, and half of as many, have the probability `beyond`."""
    if successes <= _ROUNDING * n:
        return 0.0
    if n - successes <= _ROUNDING * n:
        return float((2 * beyond) ** (1 / n))
    low, high = 0.0, successes / n
    while high - low > _NEAR * min(high, 1 - high) and low != (low + high) / 2 != high:
        middle = (low + high) / 2
        here = _incomplete_beta(successes, n - successes + 1, middle)
        above = _incomplete_beta(successes + 1, n - successes, middle)
        low, high = (middle, high) if (here + above) / 2 <= beyond else (low, middle)
    return (low + high) / 2


class Spread(NamedTuple):
    """The variance of a weighted mean, from the spread between clusters; an entry per group.

    Attributes:
        variance: of the mean; 0 where clusters differ by rounding alone, NaN below two clusters.
        clusters: the number of clusters with weight.
        effective: the effective number of clusters, by Kish's formula.
    """

    variance: np.ndarray
    clusters: np.ndarray
    effective: np.ndarray


def clustered_wilson(value: np.ndarray, spread: Spread, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """The score interval of a proportion whose rows come in clusters, or count by weights.

    The number of rows is replaced by the effective one, value × (1 − value) / variance, and the normal quantile by
    Student's with one degree of freedom less than the effective number of clusters. Where all clusters agree, there is
    no variance, and a cluster of average weight counts as one row.
    Source: N. Dean & M. Pagano, "Evaluating confidence interval methods for binomial proportions in clustered
    surveys" (Journal of Survey Statistics and Methodology 3, 2015); L. Kish, Survey Sampling (1965), for the weights.

    Returns:
        Lower and upper ends, NaN below two clusters.
    """
    inner = value * (1 - value)
    with np.errstate(divide="ignore", invalid="ignore"):
        rows = np.where((spread.variance > 0) & (inner > 0), inner / spread.variance, spread.effective)
    rows = np.where((spread.clusters > 1) & (rows > 0), rows, np.nan)
    low, high = score_interval(value, rows, t_quantile(confidence, _degrees(spread.effective)))
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def cautious_spread(value: np.ndarray, spread: Spread, confidence: float, parts: np.ndarray | int = 1) -> Spread:
    """The spread of a mean of shares, at least as large as clusters that no sample has shown could make it.

    Where clusters agree, or nearly so, their variance says nothing about rarer ones: those of which none is observed
    may be as many as t² of n, by the score interval. So the variance is at least that of t² clusters at the further end
    of the range, but never above that of independent rows. At 0 and 1 nothing changes. Ends of intervals then follow
    the clusters: a gate that some clusters pass is not failed by better ones (validated for all samples of up to 60
    clusters of 0, ½ and 1 in one part). If a cluster has several parts, such as opponents, unseen ones rarely deviate
    together: the variance is that of t² / parts² clusters, and at least of one; validated by simulation, see
    docs/intervals.md.

    Args:
        parts: how many independent parts of equal weight each cluster has.

    Example:
        >>> spread = Spread(np.zeros(2), np.array([60, 60]), np.array([60.0, 60.0]))
        >>> value = np.array([0.5, 1.0])
        >>> low, high = clustered_wilson(value, cautious_spread(value, spread, 0.95), 0.95)
        >>> low.round(3).tolist(), high.round(3).tolist()
        ([0.467, 0.937], [0.533, 1.0])
    """
    further = np.maximum(value, 1 - value)
    rows = spread.effective
    clusters = np.maximum(np.square(t_quantile(confidence, _degrees(rows)) / parts), 1.0)
    least = np.minimum(value * (1 - value) / rows, clusters * np.square(further / rows))
    return spread._replace(variance=np.maximum(spread.variance, least))


def _degrees(effective: np.ndarray) -> np.ndarray:
    return np.asarray(np.maximum(np.rint(np.nan_to_num(effective, posinf=0.0)).astype(np.int64) - 1, 1))


def interval_within(
    value: np.ndarray, spread: Spread, range: tuple[float, float], confidence: float
) -> tuple[np.ndarray, np.ndarray]:
    """The interval of a value from its spread, NaN below two clusters.

    That of a proportion if the range, the lowest and the highest possible value, is finite, else Student's.
    """
    least, most = range
    if not math.isfinite(most - least):
        half = t_quantile(confidence, spread.clusters - 1) * np.sqrt(spread.variance)
        return np.clip(value - half, least, most), np.clip(value + half, least, most)
    width = most - least
    share = spread._replace(variance=spread.variance / width**2)
    low, high = clustered_wilson((value - least) / width, share, confidence)
    return np.minimum(least + width * low, value), np.maximum(least + width * high, value)


def mean_of_shares(
    share: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    correlation: np.ndarray | None = None,
    range: tuple[float, float] = (0.0, 1.0),
) -> tuple[np.ndarray, np.ndarray]:
    """The interval of the mean of shares from their intervals.

    The distances of the ends from the shares are added as standard errors are; NaN shares are left out.
    Source: G. Zou & A. Donner, "Construction of confidence limits about effect measures: a general approach"
    (Statistics in Medicine 27, 2008); with correlations G. Zou, "Toward using confidence intervals to compare
    correlations" (Psychological Methods 12, 2007).

    Args:
        share: any axes × shares, as `low` and `high`.
        correlation: any axes × shares × shares; by default the shares are independent.

    Example:
        >>> low, high = mean_of_shares(np.array([0.9, 0.7]), np.array([0.8, 0.6]), np.array([0.95, 0.8]))
        >>> round(float(low), 3), round(float(high), 3)
        (0.729, 0.856)
    """
    known = ~np.isnan(share)
    with np.errstate(divide="ignore", invalid="ignore"):
        n = np.where(known.any(axis=-1), known.sum(axis=-1), np.nan)
        mean = np.where(known, share, 0.0).sum(axis=-1) / n
    ends = []
    for off in (np.where(known, share - low, 0.0), np.where(known, high - share, 0.0)):
        other = off if correlation is None else np.einsum("...ij,...j->...i", correlation, off)
        ends.append(np.sqrt(np.maximum((off * other).sum(axis=-1), 0.0)) / n)
    return np.maximum(mean - ends[0], range[0]), np.minimum(mean + ends[1], range[1])


def correlation_of(covariance: np.ndarray) -> np.ndarray:
    """The correlations of any axes × shares × shares; 0 for shares without variance."""
    size = covariance.shape[-1]
    spread = np.sqrt(np.maximum(np.einsum("...ii->...i", covariance), 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = covariance / (spread[..., :, None] * spread[..., None, :])
    known = np.where(np.isfinite(found), np.clip(found, -1.0, 1.0), 0.0)
    return np.where(np.eye(size, dtype=np.bool_), 1.0, known)


class PartChanges(NamedTuple):
    """What independent units change in the values of several parts; an entry for each part that a unit has rows of.

    Attributes:
        part: from 0 on.
        unit: from 0 on.
        change: the sum over the unit's rows of the part.
        error: of each part, the root of the sum of squared changes; 0 if they may be rounding.
    """

    part: np.ndarray
    unit: np.ndarray
    change: np.ndarray
    error: np.ndarray

    @classmethod
    def of(cls, part: np.ndarray, key: np.ndarray | None, change: np.ndarray, n_parts: int) -> Self:
        """From the part, the unit (any integer; None if each row is one) and the change of each row."""
        unit = np.arange(len(part)) if key is None else np.unique(key, return_inverse=True)[1]
        order = np.lexsort((unit, part))
        part, unit = part[order], unit[order]
        starts = runs(part, unit)
        change = np.add.reduceat(change[order], starts) if len(starts) else change
        square, n = (np.bincount(part[starts], each, minlength=n_parts) for each in (change * change, None))
        error = np.sqrt(square)
        return cls(part[starts], unit[starts], change, np.where(error > _ROUNDING * np.sqrt(n), error, 0.0))


def mean_of_parts(
    value: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    rows: PartChanges,
    otherwise: float,
    range: tuple[float, float] = (0.0, 1.0),
) -> tuple[float, float]:
    """As `mean_of_shares`, of values whose correlations follow from what units change in them.

    Args:
        otherwise: the correlation with others of a part in which nothing changes, 0 or 1.
    """
    ends, n = [], len(value)
    for off in (value - low, high - value):
        moves = rows.error > 0
        scale = np.where(moves, off / np.where(moves, rows.error, 1.0), 0.0)
        by_unit = np.bincount(rows.unit, scale[rows.part] * rows.change)
        fixed, moving = off[~moves], off[moves].sum()
        alone = fixed.sum() ** 2 + 2 * fixed.sum() * moving if otherwise else fixed @ fixed
        ends.append(math.sqrt(max(float(by_unit @ by_unit + alone), 0.0)) / n)
    mean = float(value.mean())
    return max(mean - ends[0], range[0]), min(mean + ends[1], range[1])


def steady_interval(
    value: float, variance: float, expected: float, effective: float, range: tuple[float, float], confidence: float
) -> tuple[float, float]:
    """The score interval of a value whose variance is estimated from few rows, and so is not reliable alone.

    Near an end of the range, where most rows agree, the estimated variance is mostly too small and sometimes much too
    large. So it is shrunk towards that of a proportion, with the weight of a few rows; the estimate counts by the rows
    that decide times value × (1 − value), which is about the number of rows that disagree. The weight of the prior, and
    Student's degrees, were chosen by simulation, see the table in docs/concepts.md.
    Source: G. Smyth, "Linear models and empirical Bayes methods" (Statistical Applications in Genetics and Molecular
    Biology 3, 2004), for variances drawn towards an expected one; R. Newcombe, "Confidence intervals for an effect size
    measure based on the Mann-Whitney statistic. Part 2" (Statistics in Medicine 25, 2006), for the score interval.

    Args:
        expected: the number of rows for which a proportion has the expected variance.
        effective: the effective number of rows that decide the value.
        range: the lowest and the highest possible value; unless both are finite, the interval is Student's.

    Example:
        >>> low, high = steady_interval(1.0, 0.0, 40.0, 10.0, (0.0, 1.0), 0.95)
        >>> round(low, 3), high
        (0.896, 1.0)
    """
    least, most = range
    if not math.isfinite(most - least):
        degrees = np.array(max(round(effective) - 1, 1))
        half = float(t_quantile(confidence, degrees)) * math.sqrt(variance)
        return max(value - half, least), min(value + half, most)
    one = np.array([[value], [variance], [expected], [effective]])
    low, high = steady_intervals(one[0], one[1], one[2], one[3], range, confidence)
    return float(low[0]), float(high[0])


def steady_intervals(
    value: np.ndarray,
    variance: np.ndarray,
    expected: np.ndarray,
    effective: np.ndarray,
    range: tuple[float, float],
    confidence: float,
) -> tuple[np.ndarray, np.ndarray]:
    """`steady_interval` of many values with a finite range; NaN where a value or its variance is."""
    least, most = range
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (value - least) / (most - least)
        near = (share * expected + 0.5) / (expected + 1)
        found = _FOUND * share * (1 - share) * effective
        steady = (near * (1 - near) / expected + found * variance / (most - least) ** 2) / (1 + found)
        quantile = t_quantile(confidence, _degrees(effective) + _EXPECTED_DEGREES)
        low, high = score_interval(share, near * (1 - near) / steady, quantile)
    low, high = (least + (most - least) * np.clip(end, 0.0, 1.0) for end in (low, high))
    return np.minimum(low, value), np.maximum(high, value)  # at an end of the range rounding could exclude the value


_FOUND = 2.0
_EXPECTED_DEGREES = 4


def score_interval(p: np.ndarray, n: np.ndarray, z: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
    """The score interval of proportions of n rows, which it holds, not clipped to [0, 1]; z is the quantile."""
    z2 = np.square(z)
    scale = 1 + z2 / n
    centre = (p + z2 / (2 * n)) / scale
    half = np.sqrt(z2 * (p * (1 - p) / n + z2 / (4 * n * n))) / scale
    return np.minimum(centre - half, p), np.maximum(centre + half, p)


def paired_score(
    won: float, lost: float, n: float, confidence: float, *, correction: float = 0.0
) -> tuple[float, float]:
    """The score interval of the difference between two proportions on the same rows.

    It keeps its coverage with few or no discordant rows, where the normal interval of the differences does not, and
    stays within [-1, 1].
    Source: T. Tango, "Equivalence test and confidence interval for the difference in proportions for the paired-sample
    design" (Statistics in Medicine 17, 1998).

    Args:
        won: rows right in the second and wrong in the first.
        lost: rows wrong in the second and right in the first.
        correction: the rows by which the observed difference is moved towards each hypothesis; with a half, a one-sided
            bound errs at most as often as its level says.

    Returns:
        Lower and upper end, NaN for n = 0.

    Example:
        >>> low, high = paired_score(1, 7, 21, 0.95)
        >>> round(low, 3), round(high, 3)
        (-0.517, -0.026)
    """
    if n == 0:
        return math.nan, math.nan
    z = normal_quantile(confidence)
    return -_paired_end(lost, won, n, z, correction), _paired_end(won, lost, n, z, correction)


BOUND_CORRECTION = 0.5
"""The correction of `paired_score` with which a one-sided bound errs at most as often as its level says."""


def is_pair_above(won: float, lost: float, n: int, limit: float, confidence: float, *, correction: float = 0.0) -> bool:
    """Whether the lower end of `paired_score` lies above a limit of at most 0, without the search for it.

    Example:
        >>> [is_pair_above(7, 1, 21, limit, 0.95) for limit in (0.0, -0.02)], round(paired_score(7, 1, 21, 0.95)[0], 3)
        ([True, True], 0.026)
    """
    return _below(lost, won, n, -limit, correction) > normal_quantile(confidence)


def _paired_end(won: float, lost: float, n: float, z: float, correction: float) -> float:
    """The largest difference that the counts do not contradict, by bisection."""
    low, high = (won - lost) / n, 1.0
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if _below(won, lost, n, middle, correction) < z else (low, middle)
    return high


def _below(won: float, lost: float, n: float, difference: float, correction: float) -> float:
    """The standard errors by which the observed difference lies below a hypothetical one."""
    distance = max(n * difference - (won - lost) - correction, 0.0)
    a, b = 2 * n, (2 * n - won + lost) * difference - won - lost
    share = (math.sqrt(b * b + 4 * a * lost * difference * (1 - difference)) - b) / (2 * a)
    variance = n * (2 * share + difference * (1 - difference))
    if variance <= 0:
        return math.inf if distance > 0 else 0.0
    return distance / math.sqrt(variance)


def binomial_tail(k: int, n: int) -> float:
    """The probability of at most k heads in n tosses of a fair coin, to better than 1e-8 relatively.

    Example:
        >>> binomial_tail(1, 4)
        0.3125
    """
    if k < 0 or k >= n:
        return float(k >= n)
    if 2 * k >= n:
        return 1 - binomial_tail(n - k - 1, n)
    i = np.arange(k, 0, -1)
    falling = 1 + float(np.cumprod(i / (n - i + 1)).sum())
    if n <= _EXACT_DEGREES:
        return min(math.ldexp(math.comb(n, k), -n) * falling, 1.0)
    log_exactly = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) - n * math.log(2)
    return min(math.exp(log_exactly) * falling, 1.0)


def normal_tail(z: float) -> float:
    """The probability that a standard normal variable exceeds z."""
    return math.erfc(z / math.sqrt(2)) / 2


def t_tail(t: float, degrees: int) -> float:
    """The probability that a Student variable lies beyond t or −t, a positive number; NaN without degrees of freedom.

    It is relatively exact to 1e-8, also far below the distance of 1 from the next number.
    Source: NIST Digital Library of Mathematical Functions 8.17, the incomplete beta function.

    Example:
        >>> round(t_tail(2.228, 10), 3), round(t_tail(1.96, 100_000), 3)
        (0.05, 0.05)
    """
    if degrees < 1:
        return math.nan
    square = t * t
    if square > _FAR:
        beyond = degrees / (degrees + square)
        return _incomplete_beta(degrees / 2, 0.5, beyond) if beyond > 0 else 0.0
    return 1 - _incomplete_beta(0.5, degrees / 2, square / (degrees + square)) if square != 0 else 1.0


def f_tail(f: float, between: int, within: int) -> float:
    """The probability that an F variable with these degrees of freedom is larger.

    Source: NIST Digital Library of Mathematical Functions 8.17, the incomplete beta function.

    Example:
        >>> round(f_tail(3.24, 3, 16), 3), f_tail(0.0, 3, 16)
        (0.05, 1.0)
    """
    if not 0 < f < math.inf:
        return math.nan if math.isnan(f) else float(f <= 0)
    part, total = between * f, between * f + within
    if f >= 1:
        return _incomplete_beta(within / 2, between / 2, within / total)
    return 1 - _incomplete_beta(between / 2, within / 2, part / total)


_FAR = 3.0
"""The square of t from which the tail is computed directly, not as the rest of what lies within."""


def t_quantile(confidence: float, degrees: np.ndarray) -> np.ndarray:
    """The t for which a Student variable lies in [-t, t] with this probability; NaN below one degree of freedom.

    Agrees with the exact quantile to better than 1e-9, relatively, for confidences up to 0.99999.

    Example:
        >>> [round(float(t), 3) for t in t_quantile(0.95, np.array([1, 10, 100_000]))]
        [12.706, 2.228, 1.96]
    """
    degrees = np.asarray(degrees)
    result = np.full(degrees.shape, np.nan)
    large = degrees > _EXACT_DEGREES
    result[large] = _t_expansion(confidence, degrees[large].astype(np.float64))
    small = (degrees >= 1) & ~large
    distinct, where = np.unique(degrees[small], return_inverse=True)
    result[small] = np.array([_t_exact(confidence, int(df)) for df in distinct], np.float64)[where]
    return result


CLUSTER_TABLE = ("cluster_key", "cluster_group", "cluster_sum", "cluster_weight")
"""The arrays of a state with a row per group and cluster, sorted by both; other arrays have one per group."""


def cluster_sums(values: np.ndarray, weights: np.ndarray, clusters: np.ndarray, group: np.ndarray) -> Arrays:
    """The weighted sum of values and the weight of each cluster (64-bit key) in each group, as part of a state."""
    return cluster_table(clusters, group, weights * values, weights)


def cluster_table(key: np.ndarray, group: np.ndarray, total: np.ndarray, weight: np.ndarray) -> Arrays:
    """The sums of each cluster in each group from those of parts of it."""
    return merge_clusters([dict(zip(CLUSTER_TABLE, (key, group, total, weight), strict=True))])


def merge_clusters(states: Sequence[Arrays]) -> Arrays:
    """The cluster tables of states merged from left to right; empty if they have none."""
    if CLUSTER_TABLE[0] not in states[0]:
        return {}
    key, group, total, weight = (np.concatenate([state[name] for state in states]) for name in CLUSTER_TABLE)
    order = np.lexsort((key, group))  # stable: equal clusters stay in the order of their states
    key, group = key[order], group[order]
    starts = runs(key, group)
    sums = (np.add.reduceat(array[order], starts) if len(starts) else array for array in (total, weight))
    return dict(zip(CLUSTER_TABLE, (key[starts], group[starts], *sums), strict=True))


def cluster_variance(state: Arrays, value: np.ndarray) -> Spread:
    """The spread between clusters of the weighted mean of each group, from a state with a cluster table.

    The mean is a ratio of two sums over clusters, linearised about its value: W. G. Cochran, Sampling Techniques
    (3rd ed., 1977), section 6.3. Clusters without weight do not count. NaN where deviations are too small for squares.
    """
    weighing = state["cluster_weight"] > 0
    group, total, weight = (state[name][weighing] for name in CLUSTER_TABLE[1:])
    unit = -int(np.frexp(weight.max(initial=0.0))[1])  # so that squares of weights are numbers
    total, weight = np.ldexp(total, unit), np.ldexp(weight, unit)
    deviation = total - value[group] * weight
    n = np.bincount(group, minlength=len(value))
    total_weight = np.bincount(group, weight, minlength=len(value))
    largest = np.zeros(len(value))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        square = np.bincount(group, weight * weight, minlength=len(value))
        np.maximum.at(largest, group, np.maximum(np.abs(total), np.abs(value[group]) * weight))
        squares = np.bincount(group, deviation * deviation, minlength=len(value))
        variance = n / (n - 1) * squares / (total_weight * total_weight)
        rounding = _ROUNDING * largest * n / total_weight
        variance = np.where(n > 1, np.where(np.sqrt(variance) <= rounding, 0.0, variance), np.nan)
        varied = np.zeros(len(value))
        np.maximum.at(varied, group, np.abs(deviation))
        variance = np.where((varied < _NO_SQUARE) & (varied > _ROUNDING * largest), np.nan, variance)
        return Spread(variance, n, total_weight * total_weight / square)


def cluster_skew(state: Arrays, value: np.ndarray) -> np.ndarray:
    """The skewness of the deviations of clusters from the weighted mean of each group; see `cluster_variance`."""
    group, total, weight = (state[name] for name in CLUSTER_TABLE[1:])
    weighing = weight > 0
    deviation, group = (total - value[group] * weight)[weighing], group[weighing]
    n = np.bincount(group, minlength=len(value))
    with np.errstate(over="ignore", invalid="ignore"):
        squares, cubes = (np.bincount(group, deviation**power, minlength=len(value)) for power in (2, 3))
    return skewness(n, squares, cubes)


def skewness(n: np.ndarray, squares: np.ndarray, cubes: np.ndarray) -> np.ndarray:
    """The skewness of each group, without most of the bias of few rows; 0 where it is unknown.

    Fewer than five rows do not show it: it is taken as that with which gates on means of errors hold their level.

    Args:
        squares, cubes: sums over the rows of powers of deviations from the mean.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found = np.sqrt(n * (n - 1.0)) / (n - 2.0) * (cubes / n) / (squares / n) ** 1.5
    raised = np.where(n < _FEWEST_SKEWED, _USUAL_SKEW, found * (1 + _MORE_SKEW / np.maximum(n, 1)))
    return np.asarray(np.where(np.isfinite(found), raised, 0.0))


def skewed_interval(
    value: np.ndarray, spread: Spread, skew: np.ndarray, confidence: float
) -> tuple[np.ndarray, np.ndarray]:
    """Student's interval of a mean of skewed values, such as errors, NaN where all are equal.

    The statistic is transformed so that its skewness is gone, by a cubic function that always has an inverse. Where
    values are not skewed, it is Student's interval.
    Source: P. Hall, "On the removal of skewness by transformation" (Journal of the Royal Statistical Society B 54,
    1992). Skewness of few rows is estimated too low, so it is raised; by how much was chosen by simulation, see
    docs/intervals.md.

    Args:
        spread: of the mean.
        skew: of the values, or of the clusters, see `skewness`.
    """
    n = np.maximum(spread.clusters, 1)
    deviation, quantile = np.sqrt(spread.variance * n), t_quantile(confidence, spread.clusters - 1) / np.sqrt(n)
    some = np.where(np.abs(skew) > _NEAR, skew, 1.0)
    ends = []
    for w in (quantile, -quantile):
        off = np.where(np.abs(skew) > _NEAR, 3 / some * (np.cbrt(1 + some * (w - some / (6 * n))) - 1), w)
        ends.append(np.where(np.isfinite(off) & (spread.variance > 0), value - deviation * off, np.nan))
    return np.minimum(ends[0], value), np.maximum(ends[1], value)


def ratio_interval(
    value: float, variance: float, clusters: int, range: tuple[float, float], confidence: float
) -> tuple[float, float]:
    """Student's interval of a ratio of sums, or of 1 less one, on logarithms of the distance from the end of its range.

    Such a ratio varies more the farther it lies from that end, so that the ends are not equally far from the value; the
    nearer end is the mean of that on logarithms and that of Student's interval, of which one is too near and one too
    far. Chosen by simulation, see docs/intervals.md.

    Returns:
        NaN at the end of the range, and where the farther end is so many times as far as to say nothing.
    """
    edge = range[0] if math.isfinite(range[0]) else range[1]
    off, half = value - edge, float(t_quantile(confidence, np.array(clusters - 1))) * math.sqrt(variance)
    if not off or not half <= _FARTHEST * abs(off):
        return math.nan, math.nan
    by = math.exp(half / abs(off))
    nearer = (off / by + max(abs(off) - half, 0.0) * math.copysign(1, off)) / 2
    ends = edge + off * by, edge + nearer
    return min(ends), max(ends)


_FARTHEST = 3.0


_MORE_SKEW = 5.0
_FEWEST_SKEWED = 5
_USUAL_SKEW = 0.2

_ROUNDING = 64 * float(np.finfo(np.float64).eps)
_NO_SQUARE = 1e-140


def random_bits(counter: np.ndarray, seed: int) -> np.ndarray:
    """64 random bits for each number: SplitMix64 (G. Steele, D. Lea & C. Flood, OOPSLA 2014)."""
    start = np.uint64((seed * 0xD1342543DE82EF95 + 0x9E3779B97F4A7C15) % 2**64)
    bits = np.asarray(start + counter * np.uint64(0x9E3779B97F4A7C15))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits ^= bits >> np.uint64(shift)
        bits *= np.uint64(factor)
    bits ^= bits >> np.uint64(31)
    return bits


def _merge_two(a: Arrays, b: Arrays) -> Arrays:
    n = a["n"] + b["n"]
    share = b["n"] / np.maximum(n, 1)
    with np.errstate(over="ignore", invalid="ignore"):
        difference = (b["mean"] - a["mean"]) + (b["rest"] - a["rest"])
        mean, rest = _two_sum(a["mean"], a["rest"] + difference * share)
        m2 = a["m2"] + b["m2"] + difference * difference * (a["n"] * share)
        merged = {"n": n, "mean": mean, "rest": rest, "m2": m2}
        if "m3" in a:
            rest_of_share = 1 - share
            cubes = difference**3 * a["n"] * share * (rest_of_share - share)
            merged["m3"] = a["m3"] + b["m3"] + cubes + 3 * difference * (rest_of_share * b["m2"] - share * a["m2"])
    return {name: np.where(a["n"] == 0, b[name], np.where(b["n"] == 0, a[name], merged[name])) for name in merged}


def _two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A sum and its rounding error (Knuth, The Art of Computer Programming, vol. 2, 4.2.2)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def normal_quantile(confidence: float) -> float:
    """The z for which a normal variable lies in [-z, z] with the given probability."""
    return NormalDist().inv_cdf((1 + confidence) / 2)


_NEAR = 1e-7
"""The relative precision of ends found by bisection."""

_EXACT_DEGREES = 1000


@cache
def _t_exact(confidence: float, degrees: int) -> float:
    """Newton's method from the normal quantile.

    It is below the root and the distribution is concave above 0, so every step goes towards the root and none beyond;
    the number of steps grows only with the logarithm of the quantile.
    """
    t = normal_quantile(confidence)
    log_peak = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - 0.5 * math.log(degrees * math.pi)
    for _ in range(200):
        density = math.exp(log_peak - (degrees + 1) / 2 * math.log1p(t * t / degrees))
        step = (confidence - _t_within(t, degrees)) / (2 * density)
        t += step
        if abs(step) <= 1e-14 * t:
            break
    return t


def _t_within(t: float, degrees: int) -> float:
    """The probability of [-t, t]: the finite sums of Abramowitz & Stegun 26.7.3 and 26.7.4."""
    cosine2 = degrees / (degrees + t * t)
    sine = t / math.sqrt(degrees + t * t)
    steps = np.arange(1 + degrees % 2, degrees - 2, 2)
    series = 1 + float(np.cumprod(steps / (steps + 1) * cosine2).sum())
    if degrees % 2 == 0:
        return sine * series
    angle = math.atan(t / math.sqrt(degrees))
    return 2 / math.pi * (angle + (sine * math.sqrt(cosine2) * series if degrees > 1 else 0.0))


def _t_expansion(confidence: float, degrees: np.ndarray) -> np.ndarray:
    """For many degrees of freedom: the expansion about the normal quantile, Abramowitz & Stegun 26.7.5."""
    z = normal_quantile(confidence)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    quantile = np.full_like(degrees, z)
    for power, term in enumerate(terms, 1):
        quantile += term / degrees**power
    return quantile
