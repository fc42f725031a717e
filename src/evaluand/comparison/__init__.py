"""Comparisons: whether B is better than A, by how much, how sure that is, and on which examples.

Two evaluations are laid side by side example by example (`pairing`), and everything is said about the differences:
their mean with an interval, tests, counts of what was won and lost, and what a difference would have to be to be found
(`difference`). Several runs and metrics make a family of tests, whose p values are adjusted (`significance`), and a
ranking that says which runs cannot be told apart (`ranking`). Rules such as `accuracy not worse than base by 0.02` are
checked by `gates`.
"""

from evaluand.comparison.comparing import Comparison, compare, find_evaluations, find_measures
from evaluand.comparison.gates import Gate, GateResult, check_fit, check_gates

__all__ = [
    "Comparison",
    "Gate",
    "GateResult",
    "check_fit",
    "check_gates",
    "compare",
    "find_evaluations",
    "find_measures",
]
