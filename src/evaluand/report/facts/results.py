"""Facts about the results of an experiment: the receipts of its steps, its values and missing rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from evaluand.report.facts.aggregation import summary_facts
from evaluand.report.facts.base import Facts
from evaluand.report.facts.run import missing_facts

if TYPE_CHECKING:
    from evaluand.aggregation.aggregator import Aggregation
    from evaluand.engine.keyed_work import Receipt
    from evaluand.evaluation.evaluator import Evaluation
    from evaluand.run.runner import Run


class TaskResult(Protocol):
    """The results of an experiment for one task."""

    @property
    def task(self) -> str: ...
    @property
    def run(self) -> Run: ...
    @property
    def evaluation(self) -> Evaluation: ...


def results_facts(tasks: Sequence[TaskResult], aggregation: Aggregation) -> Facts:
    """The results of an experiment: the receipt of each step, every value, and why rows are missing."""
    return {
        "tasks": [
            {
                "task": result.task,
                "run": _step_facts(result.run),
                "evaluation": _step_facts(result.evaluation),
                "missing": missing_facts(result.run, result.evaluation),
            }
            for result in tasks
        ],
        "aggregation": {"id": aggregation.id, "digest": aggregation.digest, "name": aggregation.manifest["name"]},
        **summary_facts(aggregation),
    }


def _step_facts(made: Run | Evaluation) -> Facts:
    return {
        "id": made.id,
        "digest": made.digest,
        "name": made.name,
        "counts": made.counts,
        "receipt": None if made.receipt is None else _receipt_facts(made.receipt),
    }


def _receipt_facts(receipt: Receipt) -> Facts:
    return {name: getattr(receipt, name) for name in ("total", "called", "reused", "kept", "skipped", "failed", "why")}
