"""What looks at a growing run have seen: bounds that hold at all of them together, and what could still come.

Where a rule of `--until` stops a run, outcomes decide how many rows there are, and the interval of a fixed number of
rows covers too seldom. So the intervals of bounded means are those that hold at all looks; other values have none, and
say so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any, NamedTuple, Self

import numpy as np

from evaluand.aggregation.disparity import DisparityRow
from evaluand.aggregation.groups import By, Key, MetricRow, units_of
from evaluand.aggregation.score_shards import cluster_of_examples, dataset_of, shards, weights_of
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.stats.anytime import anytime_interval, fewest_to_exceed
from evaluand.metrics.stats.intervals import cluster_sums
from evaluand.metrics.stats.least_mean import least_mean
from evaluand.store.store import find_stops


class Seen(NamedTuple):
    """The clusters seen so far.

    Attributes:
        total: the weighted sum of each cluster.
        weight: of each cluster.
        range: the lowest and the highest possible value of a row.
        heaviest: the weight of the heaviest cluster that may come, see `heaviest_cluster`.
    """

    total: np.ndarray
    weight: np.ndarray
    range: tuple[float, float]
    heaviest: float

    def bounds(self, level: float) -> tuple[float, float]:
        """The lower and the upper bound, each at the level; NaN where nothing has been seen."""
        if not len(self.weight):
            return math.nan, math.nan
        return anytime_interval(self.total, self.weight, self.range, level, self.heaviest)

    def bounds_of_one_look(self, level: float) -> tuple[float, float]:
        """Bounds that allow for a value that no row has shown, see `least_mean`; NaN where nothing has been seen."""
        if not len(self.weight):
            return math.nan, math.nan
        low = least_mean(self.total, self.weight, self.range[0], level)
        return low, -least_mean(-self.total, self.weight, -self.range[1], level)

    def facts(self, side: str, limit: float, level: float) -> dict[str, Any]:
        """What decides whether to look again.

        Args:
            side: `low` if the lower bound must exceed the limit, `high` if the upper one must stay below it.

        Returns:
            `anytime`; `opposite`, the bound on the other side; `refuted`, whether it shows that the rule does not hold;
            `needed`, how many more clusters, at the least, could make it pass, None if no number can.
        """
        if not len(self.weight):
            return {"anytime": True, "opposite": None, "refuted": False, "needed": None}
        low, high = self.bounds(level)
        total, range = (self.total, self.range) if side == "low" else (-self.total, (-self.range[1], -self.range[0]))
        limit = limit if side == "low" else -limit
        needed = fewest_to_exceed(total, self.weight, range, limit, level, self.heaviest)
        return {
            "anytime": True,
            "opposite": high if side == "low" else low,
            "refuted": high < limit if side == "low" else low > -limit,
            "needed": int(needed) if math.isfinite(needed) else None,
        }


def can_be_seen(metric: Metric) -> bool:
    """Whether a metric is a mean of one bounded number per row, of which alone there are bounds at all looks."""
    is_mean = metric.averages and (metric.reduce != "all" or metric.over_replications)
    return bool(is_mean and np.isfinite(metric.row_range).all())


def seen_by_group(
    evaluation: Evaluation, metric: Metric, scorer: str, by: By, heaviest: float, where: str | None = None
) -> dict[Key, Seen]:
    """The clusters seen of each group.

    Args:
        metric: see `can_be_seen`.
        by: attributes.
        where: a condition for rows.
    """
    dataset = dataset_of(evaluation)
    indices, clusters = np.frombuffer(dataset.indices, np.int64), cluster_of_examples(dataset)
    places: dict[Key, int] = {}
    parts = []
    for table in shards(evaluation, scorer, by, where=where):
        units = units_of(table, metric, by)
        group = np.array([places.setdefault(key, len(places)) for key in units.keys], np.int64)[units.group]
        weight = units.weight if getattr(metric, "weighted", False) else None
        weight = np.ones(len(group)) if weight is None else weight
        used = ~np.isnan(units.value) & (weight > 0)
        columns = (units.value, weight, clusters[np.searchsorted(indices, units.index)], group)
        parts.append([column[used] for column in columns])
    state = cluster_sums(*map(np.concatenate, zip(*parts, strict=True)))
    of_group = {key: state["cluster_group"] == place for key, place in places.items()}
    total, size = state["cluster_sum"], state["cluster_weight"]
    return {key: Seen(total[own], size[own], metric.row_range, heaviest) for key, own in of_group.items()}


def heaviest_cluster(evaluation: Evaluation, metric: Metric, dataset: Dataset | None = None) -> float:
    """The weight of the heaviest cluster of a dataset, run or not; without clusters, of an example.

    Args:
        dataset: from which the examples of the evaluation were drawn; by default its own.
    """
    dataset = dataset_of(evaluation) if dataset is None else dataset
    _, cluster = np.unique(cluster_of_examples(dataset), return_inverse=True)
    weights = weights_of(dataset) if getattr(metric, "weighted", False) else None
    weight = None if weights is None else weights.to_numpy()
    run = evaluation.read_run().manifest
    times = 1 if metric.over_replications else run["spec"]["replications"]
    return float(np.bincount(cluster, weight).max(initial=0)) * times


def stopping_rules(evaluation: Evaluation) -> list[str]:
    """The rules that stopped the run of an evaluation before all examples."""
    stops = find_stops(evaluation.store, [(EVALUATIONS, evaluation.id)])
    return list(dict.fromkeys(stop.rule for stop in stops))


@dataclass(frozen=True)
class StoppedRun:
    """An evaluation of a run that rules stopped."""

    evaluation: Evaluation
    rules: Sequence[str]

    @classmethod
    def of(cls, evaluation: Evaluation) -> Self | None:
        """None where no rule stopped the run."""
        rules = stopping_rules(evaluation)
        return cls(evaluation, rules) if rules else None

    @property
    def reason(self) -> str:
        """Why a value has no interval."""
        rules = " and ".join(map(quote, self.rules))
        return f"the run stopped by the rule {rules}, which an interval of a fixed number of rows does not allow for"

    def with_ends(self, rows: Sequence[MetricRow], metric: Metric, scorer: str, where: str | None) -> list[MetricRow]:
        """The values of a metric, with intervals that hold at all looks.

        Args:
            metric: settled.
            where: the condition for rows.
        """
        ends: dict[tuple[By, Key], tuple[float, float]] = {}
        confidence = getattr(metric, "confidence", None)
        if confidence and can_be_seen(metric):
            heaviest = heaviest_cluster(self.evaluation, metric)
            for by in dict.fromkeys(tuple(row.by) for row in rows):
                groups = seen_by_group(self.evaluation, metric, scorer, by, heaviest, where)
                ends |= {(by, key): seen.bounds((1 + confidence) / 2) for key, seen in groups.items()}
        result = []
        for row in rows:
            low, high = ends.get((tuple(row.by), (row.target, *row.by.values())), (math.nan, math.nan))
            if not (math.isnan(row.low) and math.isnan(row.high)):
                row = row._replace(low=low, high=high, reason=self.reason if math.isnan(low) else row.reason)
            result.append(row)
        return result

    def without_ends(self, row: DisparityRow) -> DisparityRow:
        """A disparity without its interval, which is one of a fixed number of rows."""
        return row._replace(low=math.nan, high=math.nan, reason=row.reason or self.reason)
