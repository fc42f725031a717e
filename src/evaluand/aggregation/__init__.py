"""Step 3: metrics over scores by group, disparities and fairness criteria, `Aggregator` and `Aggregation`."""

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.aggregation.aggregator import Aggregation as Aggregation
    from evaluand.aggregation.aggregator import Aggregator as Aggregator
    from evaluand.aggregation.aggregator import Measure as Measure
    from evaluand.aggregation.aggregator import MetricRefused as MetricRefused
    from evaluand.aggregation.fairness import CRITERIA as CRITERIA
    from evaluand.aggregation.fairness import Criterion as Criterion
    from evaluand.aggregation.fairness import measures_of as measures_of
    from evaluand.aggregation.groups import MetricRow as MetricRow
    from evaluand.aggregation.groups import summarise as summarise

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "aggregator": ("Aggregation", "Aggregator", "Measure", "MetricRefused"),
        "fairness": ("CRITERIA", "Criterion", "measures_of"),
        "groups": ("MetricRow", "summarise"),
    },
)
