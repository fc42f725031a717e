"""What is stored, as facts: plain, complete, JSON-like data from which every form of a report is made.

One module per kind of artifact. None of them imports NumPy or Arrow before it reads a table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.report.facts.aggregation import clustering as clustering
    from evaluand.report.facts.aggregation import confusion_matrix as confusion_matrix
    from evaluand.report.facts.aggregation import curves_facts as curves_facts
    from evaluand.report.facts.aggregation import disparities_facts as disparities_facts
    from evaluand.report.facts.aggregation import metrics_facts as metrics_facts
    from evaluand.report.facts.aggregation import summary_facts as summary_facts
    from evaluand.report.facts.aggregation import value_facts as value_facts
    from evaluand.report.facts.base import Facts as Facts
    from evaluand.report.facts.comparison import comparison_facts as comparison_facts
    from evaluand.report.facts.dataset import dataset_facts as dataset_facts
    from evaluand.report.facts.evaluation import CALLS as CALLS
    from evaluand.report.facts.evaluation import deciding as deciding
    from evaluand.report.facts.evaluation import evaluation_facts as evaluation_facts
    from evaluand.report.facts.evaluation import example_facts as example_facts
    from evaluand.report.facts.evaluation import feedback_calls as feedback_calls
    from evaluand.report.facts.evaluation import first_metrics as first_metrics
    from evaluand.report.facts.evaluation import grades_facts as grades_facts
    from evaluand.report.facts.names import Names as Names
    from evaluand.report.facts.report import Part as Part
    from evaluand.report.facts.report import report_facts as report_facts
    from evaluand.report.facts.report import scores_facts as scores_facts
    from evaluand.report.facts.results import TaskResult as TaskResult
    from evaluand.report.facts.results import results_facts as results_facts
    from evaluand.report.facts.run import missing_facts as missing_facts
    from evaluand.report.facts.run import run_facts as run_facts
    from evaluand.report.facts.tradeoff import point_facts as point_facts
    from evaluand.report.facts.tradeoff import tradeoffs_facts as tradeoffs_facts

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "aggregation": (
            "clustering",
            "curves_facts",
            "disparities_facts",
            "confusion_matrix",
            "metrics_facts",
            "summary_facts",
            "value_facts",
        ),
        "base": ("Facts",),
        "comparison": ("comparison_facts",),
        "dataset": ("dataset_facts",),
        "evaluation": (
            "CALLS",
            "deciding",
            "evaluation_facts",
            "example_facts",
            "feedback_calls",
            "first_metrics",
            "grades_facts",
        ),
        "names": ("Names",),
        "report": (
            "Part",
            "report_facts",
            "scores_facts",
        ),
        "results": (
            "TaskResult",
            "results_facts",
        ),
        "run": (
            "missing_facts",
            "run_facts",
        ),
        "tradeoff": (
            "point_facts",
            "tradeoffs_facts",
        ),
    },
)
