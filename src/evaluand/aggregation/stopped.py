"""Values of a run that a rule of `--until` stopped: their intervals allow for all looks.

Where a rule stops a run, outcomes decide how many rows there are, and the interval of a fixed number of rows covers too
seldom. So the intervals of bounded means are those that hold at all looks; other values have none, and say so.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from shlex import quote

import numpy as np

from evaluand.aggregation.disparity import DisparityRow
from evaluand.aggregation.groups import By, Key, MetricRow, units_of
from evaluand.aggregation.score_shards import attribute_values, shards
from evaluand.aggregation.seen import Seen, cluster_keys, heaviest_cluster
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.stats.intervals import cluster_sums
from evaluand.store.store import find_stops


def stopping_rules(evaluation: Evaluation) -> list[str]:
    """The rules that stopped the run of an evaluation before all examples."""
    stops = find_stops(evaluation.store, [(EVALUATIONS, evaluation.id)])
    return list(dict.fromkeys(stop.rule for stop in stops))


@dataclass(frozen=True)
class StoppedRun:
    """An evaluation of a run that rules stopped."""

    evaluation: Evaluation
    dataset: Dataset
    rules: Sequence[str]

    @property
    def reason(self) -> str:
        """Why a value has no interval."""
        rules = " and ".join(map(quote, self.rules))
        return f"the run stopped by the rule {rules}, which an interval of a fixed number of rows does not allow for"

    def with_ends(self, rows: Sequence[MetricRow], metric: Metric, scorer: str, where: str | None) -> list[MetricRow]:
        """The values of a metric, with intervals that hold at all looks.

        Args:
            rows: their attributes are columns of the table, see `attribute_columns`.
            metric: settled.
            where: the condition for rows.
        """
        ends: dict[tuple[By, Key], tuple[float, float]] = {}
        confidence = getattr(metric, "confidence", None)
        is_mean = metric.averages and (metric.reduce != "all" or metric.over_replications)
        if confidence and is_mean and np.isfinite(metric.row_range).all():
            for by in dict.fromkeys(tuple(row.by) for row in rows):
                intervals = self._intervals(metric, (1 + confidence) / 2, scorer, by, where)
                ends |= {(by, key): interval for key, interval in intervals}
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

    def _intervals(
        self, metric: Metric, level: float, scorer: str, by: By, where: str | None
    ) -> Iterator[tuple[Key, tuple[float, float]]]:
        """The interval of each group, whose ends have this level each."""
        attributes = [*attribute_values(dict.fromkeys(by))]
        indices, clusters = np.frombuffer(self.dataset.indices, np.int64), cluster_keys(self.dataset)
        places: dict[Key, int] = {}
        parts = []
        for table in shards(self.evaluation, self.dataset, scorer, attributes, where=where):
            units = units_of(table, metric, by)
            group = np.array([places.setdefault(key, len(places)) for key in units.keys], np.int64)[units.group]
            weight = units.weight if getattr(metric, "weighted", False) else None
            weight = np.ones(len(group)) if weight is None else weight
            used = ~np.isnan(units.value) & (weight > 0)
            columns = (units.value, weight, clusters[np.searchsorted(indices, units.index)], group)
            parts.append([column[used] for column in columns])
        state = cluster_sums(*map(np.concatenate, zip(*parts, strict=True)))
        heaviest = heaviest_cluster(self.evaluation, metric, self.dataset)
        for key, place in places.items():
            own = state["cluster_group"] == place
            seen = Seen(state["cluster_sum"][own], state["cluster_weight"][own], metric.row_range, heaviest)
            yield key, seen.bounds(level)
