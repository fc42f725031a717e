"""What is stored, as facts: plain, complete, JSON-like data from which every form of a report is made.

One module per kind of artifact. None of them imports NumPy or Arrow before it reads a table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.report.facts.aggregation import (
        clustering as clustering,
        confusion_matrix as confusion_matrix,
        curves_facts as curves_facts,
        disparities_facts as disparities_facts,
        metrics_facts as metrics_facts,
        summary_facts as summary_facts,
        value_facts as value_facts,
    )
    from evaluand.report.facts.base import Facts as Facts
    from evaluand.report.facts.comparison import comparison_facts as comparison_facts
    from evaluand.report.facts.dataset import dataset_facts as dataset_facts
    from evaluand.report.facts.evaluation import (
        CALLS as CALLS,
        deciding as deciding,
        evaluation_facts as evaluation_facts,
        example_facts as example_facts,
        feedback_calls as feedback_calls,
        first_metrics as first_metrics,
        grades_facts as grades_facts,
    )
    from evaluand.report.facts.names import Names as Names
    from evaluand.report.facts.report import Part as Part, report_facts as report_facts, scores_facts as scores_facts
    from evaluand.report.facts.results import TaskResult as TaskResult, results_facts as results_facts
    from evaluand.report.facts.run import missing_facts as missing_facts, run_facts as run_facts
    from evaluand.report.facts.tradeoff import point_facts as point_facts, tradeoffs_facts as tradeoffs_facts

__getattr__, __dir__ = lazy_names(__name__)
