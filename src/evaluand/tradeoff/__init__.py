"""Trade-offs between objectives, at every threshold of every model that a system may use.

An operating point is a model and a threshold, with its values by some objectives: utilities, and disparities between
groups. The points that no other point dominates are the front; indicators measure its quality. In a system without
thresholds (an LLM application and its settings) each variant is a point.

    Confidences ── solve ──▶ Tradeoff ── front ──▶ indicators, interval ── pick ──▶ one point ── at ──▶ other rows
"""

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.tradeoff.confidences import Confidences as Confidences
    from evaluand.tradeoff.evaluations import (
        confidences_of as confidences_of,
        of_aggregation as of_aggregation,
        of_evaluations as of_evaluations,
    )
    from evaluand.tradeoff.indicators import (
        RADAR as RADAR,
        compare_systems as compare_systems,
        shared_objectives as shared_objectives,
    )
    from evaluand.tradeoff.objectives import Objective as Objective
    from evaluand.tradeoff.points import Tradeoff as Tradeoff, solve as solve
    from evaluand.tradeoff.trade import Trade as Trade

__getattr__, __dir__ = lazy_names(__name__)
