"""Step 3: metrics over scores by group, disparities and fairness criteria, `Aggregator` and `Aggregation`."""

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.aggregation.aggregator import (
        Aggregation as Aggregation,
        Aggregator as Aggregator,
        Measure as Measure,
        MetricRefused as MetricRefused,
        find_worst_groups as find_worst_groups,
    )
    from evaluand.aggregation.fairness import CRITERIA as CRITERIA, Criterion as Criterion, measures_of as measures_of
    from evaluand.aggregation.groups import MetricRow as MetricRow, summarise as summarise
    from evaluand.aggregation.worst_groups import GroupSearch as GroupSearch, WorstGroup as WorstGroup

__getattr__, __dir__ = lazy_names(__name__)
