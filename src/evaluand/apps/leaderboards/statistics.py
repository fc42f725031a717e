"""The statistics of a leaderboard: means with intervals, and which versions differ by more than chance.

Two versions are compared by the inputs that both were asked, where these are at least half of what the smaller one was
asked; records of the same input are not independent then. Otherwise they are compared as two samples.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from evaluand.apps.leaderboards.records import STATUSES, FeedbackScores
from evaluand.apps.leaderboards.versions import Version, common_direction, common_range
from evaluand.comparison.significance import assign_letters, holm, mcnemar, sign_flip
from evaluand.core import registry
from evaluand.metrics.base.metric import VALUE, Metric
from evaluand.metrics.stats.intervals import normal_tail, t_tail

MOST_COMPARED: Final = 40
"""The most versions that are compared pair by pair."""


@dataclass
class FeedbackBoard:
    """The versions that one feedback has judged.

    Attributes:
        name: of the feedback.
        versions: best first.
        metric: computes the means.
        range: the lowest and the highest possible value; None where unknown.
        values: by version, mean, lower and upper end (NaN where there is none), and why there is none.
        direction: `higher`, `lower` or None.
    """

    name: str
    versions: Sequence[Version]
    metric: Metric
    range: tuple[float, float] | None
    values: Sequence[tuple[float, float, float, str | None]]
    direction: str | None

    @classmethod
    def of(cls, name: str, versions: Sequence[Version], confidence: float) -> FeedbackBoard:
        """The board of one feedback, for the versions that it has judged."""
        judged = [version for version in versions if name in version.scores]
        scores = [version.scores[name] for version in judged]
        direction, ends = common_direction(scores), common_range(scores)
        scored = [each.value[each.status == 0] for each in scores]
        known: dict[str, Any] = {} if ends is None else {"range": ends}
        binary = ends in (None, (0.0, 1.0)) and all(((value == 0) | (value == 1)).all() for value in scored)
        kind = {"name": "accuracy"} if binary else {"name": "mean", "direction": direction} | known
        metric: Metric = registry.make_default("metrics", confidence=confidence, **kind)
        values = [_compute_mean(metric, value) for value in scored]
        sign = 1 if direction == "lower" else -1
        order = sorted(range(len(judged)), key=lambda i: math.inf if math.isnan(values[i][0]) else sign * values[i][0])
        bounds = (0.0, 1.0) if binary else ends
        return cls(name, [judged[i] for i in order], metric, bounds, [values[i] for i in order], direction)

    def notes(self) -> Iterator[str]:
        """Remarks on the values, a sentence each."""
        definitions = [version.scores[self.name].definition for version in self.versions]
        if len(frozenset().union(*definitions)) > 1:
            yield f"{self.name} is not defined alike everywhere, so its values may not mean the same"
        directions = {version.scores[self.name].direction for version in self.versions}
        if self.direction is None and len(directions - {None}) > 1:
            yield f"{self.name} is better the higher for some versions and the lower for others"

    def pairs(self) -> Iterator[dict[str, Any]]:
        """Every two versions, with their difference and its p-value."""
        scored = [_ScoredRecords.of(version, version.scores[self.name]) for version in self.versions]
        place = np.full(max((one.asked.max(initial=-1) for one in scored), default=-1) + 1, -1)
        for a, b in itertools.combinations(range(len(scored)), 2):
            place[scored[b].asked] = np.arange(len(scored[b].asked))
            places = place[scored[a].asked]
            place[scored[b].asked] = -1
            of_a = np.flatnonzero(places >= 0)
            of_b = places[of_a]
            paired = 0 < min(len(scored[a].asked), len(scored[b].asked)) <= 2 * len(of_a)
            if paired:
                differences = scored[b].value[of_b] - scored[a].value[of_a]
                p = _test_pairs(differences, scored[a].input[of_a], self._is_binary)
                difference = float(differences.mean())
            else:
                difference = self.values[b][0] - self.values[a][0]
                p = _test_samples(scored[a].value, scored[b].value, self._is_binary)
            labels = {"a": self.versions[a].label, "b": self.versions[b].label}
            n = len(of_a) if paired else None
            yield {"feedback": self.name, **labels, "n": n, "difference": difference, "p": p, "p_holm": math.nan}

    @property
    def _is_binary(self) -> bool:
        return self.metric.kind == "accuracy"

    def rows(self, pairs: Sequence[Mapping[str, Any]], level: float) -> Iterator[dict[str, Any]]:
        """A row of the leaderboard for each version, from the compared pairs, at a significance level."""
        place = {version.label: i for i, version in enumerate(self.versions)}
        own = [pair for pair in pairs if pair["feedback"] == self.name]
        different = [
            frozenset((place[pair["a"]], place[pair["b"]]))
            for pair in own
            if pair["p_holm"] is not None and pair["p_holm"] <= level + 1e-12
        ]
        compared = own or len(self.versions) < 2
        groups = assign_letters(range(len(self.versions)), different) if compared else {}
        for i, (version, (mean, low, high, reason)) in enumerate(zip(self.versions, self.values, strict=True)):
            status = version.scores[self.name].status
            counts = {f"n_{word}": int((status == code).sum()) for code, word in enumerate(STATUSES)}
            row = {"feedback": self.name, "direction": self.direction, "metric": self.metric.signature}
            worst, best = self._bounds(mean, counts["n_scored"], len(status))
            row |= finite_or_none({"mean": mean, "low": low, "high": high, "worst": worst, "best": best})
            row |= {"reason": reason, "letters": groups.get(i)}
            yield version.about | row | {"n": len(status), **counts}

    def _bounds(self, mean: float, n_scored: int, n: int) -> tuple[float, float]:
        """The means if each record without a value had the worst, or the best, possible value."""
        if self.range is None or not n or (n_scored and math.isnan(mean)):
            return math.nan, math.nan
        total = mean * n_scored if n_scored else 0.0
        low, high = ((total + (n - n_scored) * end) / n for end in self.range)
        return (high, low) if self.direction == "lower" else (low, high)


def compare_versions(boards: Sequence[FeedbackBoard], notes: list[str]) -> list[dict[str, Any]]:
    """All pairs of all feedbacks, which are one family of tests; notes which feedbacks have too many versions."""
    too_many = [board.name for board in boards if len(board.versions) > MOST_COMPARED]
    if too_many:
        notes.append(f"{', '.join(too_many)}: more than {MOST_COMPARED} versions, so pairs are not compared")
    pairs = [pair for board in boards if board.name not in too_many for pair in board.pairs()]
    adjusted = holm(np.array([pair["p"] for pair in pairs]))
    return [finite_or_none(pair | {"p_holm": float(p)}) for pair, p in zip(pairs, adjusted, strict=True)]


def finite_or_none(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with None in place of NaN and infinity."""
    return {name: None if isinstance(v, float) and not math.isfinite(v) else v for name, v in values.items()}


@dataclass
class _ScoredRecords:
    """The records that have a value: what each was asked, and the value."""

    asked: np.ndarray
    input: np.ndarray
    value: np.ndarray

    @classmethod
    def of(cls, version: Version, scores: FeedbackScores) -> _ScoredRecords:
        scored = scores.status == 0
        call = scores.call[scored]
        return cls(version.asked[call], version.input[call], scores.value[scored])


def _compute_mean(metric: Metric, value: np.ndarray) -> tuple[float, float, float, str | None]:
    """Mean, lower and upper end of the scores, and why there is none."""
    if not len(value):
        return math.nan, math.nan, math.nan, "no record has a score"
    low, high = metric.range
    outside = int(((value < low) | (value > high)).sum())
    if outside:
        reason = f"{outside:,} of {len(value):,} values are outside the declared range {low:g} to {high:g}"
        return math.nan, math.nan, math.nan, reason
    result = metric.compute(metric.state({VALUE: value}, np.zeros(len(value), np.int64), 1))
    return float(result.value[0]), float(result.low[0]), float(result.high[0]), result.reason[0]


def _test_pairs(differences: np.ndarray, inputs: np.ndarray, binary: bool) -> float:
    """The p-value of McNemar's exact test; of the permutation test where values are not binary or inputs repeat."""
    sums = np.bincount(inputs, differences)[np.bincount(inputs) > 0]
    if binary and len(sums) == len(differences):
        return mcnemar(int((differences > 0).sum()), int((differences < 0).sum()))
    return sign_flip(sums, drawn_up_to=_DRAWN_UP_TO).p


_DRAWN_UP_TO: Final = 500  # drawing takes long, and there may be hundreds of pairs


def _test_samples(a: np.ndarray, b: np.ndarray, binary: bool) -> float:
    """The p-value of Welch's test; for zeros and ones, of the chi-squared test as E. Pearson gave it.

    Sources: B. L. Welch, "The generalization of 'Student's' problem when several different population variances are
    involved" (Biometrika 34, 1947); I. Campbell, "Chi-squared and Fisher-Irwin tests of two-by-two tables with small
    sample recommendations" (Statistics in Medicine 26, 2007), for the factor N − 1.
    """
    n, m = len(a), len(b)
    if not n or not m:
        return math.nan
    if binary:
        share = (a.sum() + b.sum()) / (n + m)
        spread = share * (1 - share) * (1 / n + 1 / m)
        z = math.sqrt((n + m - 1) / (n + m) / spread) * abs(b.mean() - a.mean()) if spread else 0.0
        return 2 * normal_tail(z)
    if min(n, m) < 2:
        return math.nan
    of_a, of_b = a.var(ddof=1) / n, b.var(ddof=1) / m
    if np.ptp(a) == np.ptp(b) == 0:  # rounding may still give them a spread
        return math.nan
    degrees = (of_a + of_b) ** 2 / (of_a**2 / (n - 1) + of_b**2 / (m - 1))
    return t_tail(abs(float(b.mean() - a.mean())) / math.sqrt(of_a + of_b), math.floor(degrees))
