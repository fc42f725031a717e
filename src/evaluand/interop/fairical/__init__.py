"""The classes and method names of fairical over native score and solution files: `Scores` and `Solutions`.

    Scores ── solutions_a_posteriori ──▶ Solutions ── non_dominated_solutions ──▶ front, dominated ── indicators
           └─ solutions_a_priori, at the thresholds of an earlier solution

Files and values are those of `evaluand.tradeoff`; only names, and the thresholds by default, are those of fairical.
"""

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.interop.fairical.files import Scores as Scores, Solutions as Solutions

__getattr__, __dir__ = lazy_names(__name__)
