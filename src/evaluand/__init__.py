"""evaluand evaluates any ML or AI system on one reproducible path: dataset → run → evaluate → aggregate → report.

The public names are loaded on first use, so that importing the package costs next to nothing.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from evaluand._version import __version__

if TYPE_CHECKING:
    from evaluand.aggregation import Aggregation, Aggregator, Measure
    from evaluand.arrays import ArrayEvaluation, evaluate
    from evaluand.comparison import Comparison, compare
    from evaluand.dataset import Dataset, Example
    from evaluand.engine import LocalEngine, Policy
    from evaluand.errors import (
        DataError,
        EngineError,
        EvaluandError,
        Skipped,
        SpecError,
        TaskError,
        TaskTimeout,
        TransientError,
    )
    from evaluand.evaluation import Evaluation, Evaluator
    from evaluand.experiment import Experiment
    from evaluand.metrics.accuracy import Accuracy
    from evaluand.metrics.count import Count
    from evaluand.metrics.f_beta import FBeta
    from evaluand.metrics.k_of_n import KOfN
    from evaluand.metrics.mean import Mean
    from evaluand.metrics.pass_at_k import PassAtK
    from evaluand.metrics.precision import Precision
    from evaluand.metrics.quantile import Quantile
    from evaluand.metrics.recall import Recall
    from evaluand.metrics.top_k import TopK
    from evaluand.pace import Pace
    from evaluand.roles import Roles
    from evaluand.run import Run, Runner
    from evaluand.scorer import Score, Scorer, scorer
    from evaluand.split import Split
    from evaluand.store import MemoryStore, Store
    from evaluand.stores.directory import DirectoryStore
    from evaluand.task import Alternatives, Task, task
    from evaluand.tasks.estimator import EstimatorTask
    from evaluand.tasks.program import ProgramTask
    from evaluand.tasks.service import LocalServiceTask, ServiceTask
    from evaluand.trace import Span, TaskSpan, Trace, Tracer, span

_PLACES = {
    "aggregation": ("Aggregation", "Aggregator", "Measure"),
    "arrays": ("ArrayEvaluation", "evaluate"),
    "comparison": ("Comparison", "compare"),
    "dataset": ("Dataset", "Example"),
    "engine": ("LocalEngine", "Policy"),
    "errors": (
        "DataError",
        "EngineError",
        "EvaluandError",
        "Skipped",
        "SpecError",
        "TaskError",
        "TaskTimeout",
        "TransientError",
    ),
    "evaluation": ("Evaluation", "Evaluator"),
    "experiment": ("Experiment",),
    "metrics.accuracy": ("Accuracy",),
    "metrics.count": ("Count",),
    "metrics.f_beta": ("FBeta",),
    "metrics.k_of_n": ("KOfN",),
    "metrics.mean": ("Mean",),
    "metrics.pass_at_k": ("PassAtK",),
    "metrics.precision": ("Precision",),
    "metrics.quantile": ("Quantile",),
    "metrics.recall": ("Recall",),
    "metrics.top_k": ("TopK",),
    "pace": ("Pace",),
    "roles": ("Roles",),
    "run": ("Run", "Runner"),
    "scorer": ("Score", "Scorer", "scorer"),
    "split": ("Split",),
    "store": ("MemoryStore", "Store"),
    "stores.directory": ("DirectoryStore",),
    "tasks.program": ("ProgramTask",),
    "task": ("Alternatives", "Task", "task"),
    "tasks.estimator": ("EstimatorTask",),
    "tasks.service": ("LocalServiceTask", "ServiceTask"),
    "trace": ("Span", "TaskSpan", "Trace", "Tracer", "span"),
}
_MODULES = {name: module for module, names in _PLACES.items() for name in names}

__all__ = [
    "Accuracy",
    "Aggregation",
    "Aggregator",
    "Alternatives",
    "ArrayEvaluation",
    "Comparison",
    "Count",
    "DataError",
    "Dataset",
    "DirectoryStore",
    "EngineError",
    "EstimatorTask",
    "EvaluandError",
    "Evaluation",
    "Evaluator",
    "Example",
    "Experiment",
    "FBeta",
    "KOfN",
    "LocalEngine",
    "LocalServiceTask",
    "Mean",
    "Measure",
    "MemoryStore",
    "Pace",
    "PassAtK",
    "Policy",
    "Precision",
    "ProgramTask",
    "Quantile",
    "Recall",
    "Roles",
    "Run",
    "Runner",
    "Score",
    "Scorer",
    "ServiceTask",
    "Skipped",
    "Span",
    "SpecError",
    "Split",
    "Store",
    "Task",
    "TaskError",
    "TaskSpan",
    "TaskTimeout",
    "TopK",
    "Trace",
    "Tracer",
    "TransientError",
    "__version__",
    "compare",
    "evaluate",
    "scorer",
    "span",
    "task",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'evaluand' has no attribute {name!r}")
    return getattr(importlib.import_module(f"evaluand.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__


class _Package(ModuleType):
    """Keeps the decorators `task` and `scorer` in front of the modules that define them."""

    @property
    def task(self) -> Any:
        return __getattr__("task")

    @property
    def scorer(self) -> Any:
        return __getattr__("scorer")

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in ("task", "scorer"):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
