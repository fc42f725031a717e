"""The power of tests and bounds of counts: exact, as the sum over all outcomes that pass."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Final

import numpy as np

from evaluand.metrics.stats.intervals import (
    BOUND_CORRECTION,
    is_pair_above,
    normal_quantile,
    normal_tail,
    paired_score,
)

MOST_ROWS: Final = 1_000_000
"""No more rows are searched for."""

MANY_DIFFER: Final = 5_000
"""Above this number of rows that differ, McNemar's power is that of the normal distribution."""

_NEXT: Final = 8
_MOST_LOSSES: Final = 60  # numbers of rows lost for which the rows to win are computed, and not interpolated
_UNLIKELY: Final = 1e-10
_LEAST_ABOVE: Final = 0.01  # a standard error of a drawn power

Power = Callable[[int], float]


def power_of_mcnemar(n: int, won: float, lost: float, confidence: float) -> float:
    """The chance that McNemar's mid-p test finds the difference, in the direction that it has.

    Args:
        n: independent rows.
        won: the chance that only the second is right in a row.
        lost: that only the first is.

    Example:
        >>> round(power_of_mcnemar(400, 0.10, 0.05, 0.95), 3)
        0.742
    """
    won, lost = max(won, lost), min(won, lost)
    differ = won + lost
    if differ <= 0:
        return 0.0
    if n * differ > MANY_DIFFER:
        spread = math.sqrt(max(differ - (won - lost) ** 2, 1e-300))
        distance = (won - lost) * math.sqrt(n) - normal_quantile(confidence) * math.sqrt(differ)
        return 1 - normal_tail(distance / spread)
    chance, total = binomial(n, differ), 0.0
    for rows in np.flatnonzero(chance > _UNLIKELY).tolist():
        total += float(chance[rows]) * chance_within(rows, won / differ, _fewest_wins(rows, confidence), rows + 1)
    return min(total, 1.0)


@lru_cache(1 << 16)
def _fewest_wins(rows: int, confidence: float) -> int:
    """Of rows that differ, the fewest won with which McNemar's test is significant; more than all if there are none."""
    tail = np.append(np.cumsum(binomial(rows, 0.5)[::-1])[::-1], 0.0)
    return int(np.searchsorted(-(tail[:-1] + tail[1:]), -(1 - confidence + 1e-12)))


def power_of_pairs(level: float, least: float, n: int, won: float, lost: float, *, both: bool = False) -> float:
    """The chance that the lower bound of gates exceeds a number, over all numbers of rows won and lost.

    Above `MANY_DIFFER` rows that differ, the bound is taken to be as far from the difference as for expected counts.

    Args:
        level: of the bound, which rises with the rows won, and falls with the rows lost.
        least: what it must exceed, at most 0.
        n: independent rows.
        won: the chance that a row is won.
        lost: that it is lost.
        both: the same must hold of the opposite difference, as for equality.
    """
    confidence = 2 * level - 1
    if n * (won + lost) > MANY_DIFFER:
        spread = math.sqrt(max(won + lost - (won - lost) ** 2, 1e-300) / n)
        sides = ((won, lost), (lost, won)) if both else ((won, lost),)
        bounds = [paired_score(a * n, b * n, n, confidence, correction=BOUND_CORRECTION)[0] for a, b in sides]
        return max(1 - sum(normal_tail((bound - least) / spread) for bound in bounds), 0.0)

    def passes(lost_rows: int, won_rows: int) -> bool:
        return is_pair_above(won_rows, lost_rows, n, least, confidence, correction=BOUND_CORRECTION)

    def exceeds(lost_rows: int, won_rows: int) -> bool:
        return not is_pair_above(lost_rows, won_rows, n, least, confidence, correction=BOUND_CORRECTION)

    chance = binomial(n, lost)
    losses = np.flatnonzero(chance > _UNLIKELY)
    shown = losses[np.unique(np.linspace(0, len(losses) - 1, _MOST_LOSSES).round().astype(np.int64))]
    wins, too_many = [0], [0]
    for lost_rows in shown.tolist():
        wins.append(first_that(partial(passes, lost_rows), wins[-1], n - lost_rows + 1))
        too_many.append(first_that(partial(exceeds, lost_rows), too_many[-1], n - lost_rows + 1) if both else n + 1)
    needed = np.ceil(np.interp(losses, shown, wins[1:]) - 1e-9).astype(np.int64)
    beyond = np.floor(np.interp(losses, shown, too_many[1:]) + 1e-9).astype(np.int64)
    total = 0.0
    for lost_rows, fewest, most in zip(losses.tolist(), needed.tolist(), beyond.tolist(), strict=True):
        total += float(chance[lost_rows]) * chance_within(n - lost_rows, min(won / (1 - lost), 1.0), fewest, most)
    return min(total, 1.0)


def detectable_difference(discordance: float, n: int, confidence: float, power: float) -> float:
    """The smallest difference of shares that McNemar's mid-p test finds with a power; NaN if none is.

    The systems are assumed to differ on as many rows as observed, or on as many as the difference needs.

    Example:
        >>> round(detectable_difference(0.1, 200, 0.95, 0.8), 3)
        0.06
    """

    def has_power(difference: float) -> bool:
        differ = max(discordance, difference)
        return power_of_mcnemar(n, (differ + difference) / 2, (differ - difference) / 2, confidence) >= power

    if not has_power(1.0):
        return math.nan
    low, high = 0.0, 1.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if has_power(middle) else (middle, high)
    return high


def fewest_rows(power: Power, target: float) -> int | None:
    """The fewest rows with the power, so that the next few have it too: the power of counts is a saw.

    Returns:
        None if more than a million are needed.
    """
    high = 8
    while power(high) < target:
        high *= 2
        if high > 2 * MOST_ROWS:
            return None
    low = first_that(lambda n: power(n) >= target, high // 2 if high > 8 else 1, high)
    while below := [n for n in range(low, low + _NEXT) if power(n) < target]:
        low = below[-1] + 1
    return low if low <= MOST_ROWS else None


def fewest_drawn(power: Power, target: float) -> int | None:
    """The fewest rows, within 2 %, with the power where each power is drawn and takes time: and a little more.

    Returns:
        None if more than a million are needed.
    """
    least, low, high = target + min(_LEAST_ABOVE, (1 - target) / 4), 1, 50
    while power(high) < least:
        low, high = high, 2 * high
        if low > MOST_ROWS:
            return None
    while high - low > max(high // 50, 1):
        middle = (low + high) // 2
        low, high = (middle, high) if power(middle) < least else (low, middle)
    return high


def first_that(passes: Callable[[int], bool], low: int, high: int) -> int:
    """The least number from low that passes, or else high: once one passes, all larger ones do.

    Example:
        >>> first_that(lambda n: n * n >= 50, 0, 100)
        8
    """
    step = 1
    while low + step < high and not passes(low + step - 1):
        low, step = low + step, 2 * step
    high = min(high, low + step)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(middle) else (middle + 1, high)
    return low


def binomial(n: int, share: float) -> np.ndarray:
    """The chances of 0 to n successes.

    Example:
        >>> binomial(2, 0.5).round(6).tolist()
        [0.25, 0.5, 0.25]
    """
    if share <= 0 or share >= 1:
        certain = np.zeros(n + 1)
        certain[0 if share <= 0 else n] = 1.0
        return certain
    return _binomial_between(n, share, 0, n + 1)


def chance_within(n: int, share: float, low: int, high: int) -> float:
    """The chance of `low` to `high` - 1 successes; those that are too far from the mean to change it are left out.

    Farther than so many standard deviations and rows lies less than 1e-30, by Bernstein's inequality.

    Example:
        >>> round(chance_within(2, 0.5, 1, 3), 6)
        0.75
    """
    if share <= 0 or share >= 1:
        return float(low <= (0 if share <= 0 else n) < high)
    far = _FAR * math.sqrt(n * share * (1 - share)) + _FAR_ROWS
    low, high = max(low, math.floor(n * share - far), 0), min(high, math.ceil(n * share + far), n + 1)
    return float(_binomial_between(n, share, low, high).sum()) if low < high else 0.0


_FAR: Final = 12
_FAR_ROWS: Final = 50


def _binomial_between(n: int, share: float, low: int, high: int) -> np.ndarray:
    logs, k = _log_factorials(1 << max(n, 1).bit_length()), np.arange(low, high)
    ways = logs[n] - logs[low:high] - logs[n - high + 1 : n - low + 1][::-1]
    return np.asarray(np.exp(ways + k * math.log(share) + (n - k) * math.log1p(-share)))


@lru_cache(32)
def _log_factorials(n: int) -> np.ndarray:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
