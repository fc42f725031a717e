"""Score and solution files of fairical, and its names: `Scores`, `Solutions`, metrics such as `eod+race`.

    Scores ── solutions_a_posteriori ──▶ Solutions ── non_dominated_solutions ──▶ front, dominated ── indicators
           └─ solutions_a_priori, at the thresholds of an earlier solution

What is worth what is found out by `evaluand.tradeoff`; here are only the files and the names.
"""

from evaluand.interop.fairical.scores import Scores
from evaluand.interop.fairical.solutions import Solutions

__all__ = ["Scores", "Solutions"]
