"""Trade-offs: what a system costs whom, at every threshold of every model it may use.

An operating point is a model and a threshold, with what it is worth by some objectives: its utility, and how far groups
lie apart. The points that no other beats are the front, which is what a system has to offer; indicators say in a number
how much that is. Of a system without thresholds (an LLM application and its settings) each variant is a point.

    Confidences ── solve ──▶ Tradeoff ── front ──▶ indicators, interval ── pick ──▶ one point ── at ──▶ other rows
"""

from evaluand.tradeoff.confidences import Confidences
from evaluand.tradeoff.indicators import RADAR, compared, shared_objectives
from evaluand.tradeoff.objectives import Objective
from evaluand.tradeoff.points import Tradeoff
from evaluand.tradeoff.solving import solve

__all__ = ["RADAR", "Confidences", "Objective", "Tradeoff", "compared", "shared_objectives", "solve"]
