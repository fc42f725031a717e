"""Values of a run that a rule of `--until` stopped: their intervals allow for all looks.

Where a rule stops a run, outcomes decide how many rows there are, and the interval of a fixed number of rows covers too
seldom. So the intervals of bounded means are those that hold at all looks; other values have none, and say so.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from shlex import quote

from evaluand.aggregation.disparity import DisparityRow
from evaluand.aggregation.groups import By, Key, MetricRow
from evaluand.aggregation.seen import can_be_seen, heaviest_cluster, seen_by_group
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.metrics.base.metric import Metric
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
        if confidence and can_be_seen(metric):
            heaviest = heaviest_cluster(self.evaluation, metric, self.dataset)
            for by in dict.fromkeys(tuple(row.by) for row in rows):
                groups = seen_by_group(self.evaluation, self.dataset, metric, scorer, by, heaviest, where)
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
