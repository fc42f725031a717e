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
    from evaluand.aggregation.aggregator import Aggregation, Aggregator, Measure
    from evaluand.apps.app import App, virtual
    from evaluand.apps.instrument import carried, instrument
    from evaluand.comparison import Comparison, compare
    from evaluand.core.errors import (
        DataError,
        EngineError,
        EvaluandError,
        Skipped,
        SpecError,
        TaskError,
        TaskTimeout,
        TransientError,
    )
    from evaluand.core.text.retrieval import EmbeddingIndex, Passage, Retriever, WordIndex
    from evaluand.data.dataset import Dataset, Example
    from evaluand.data.roles import Roles
    from evaluand.data.split import Split
    from evaluand.engine.engine import LocalEngine, Policy
    from evaluand.engine.rate_limit import Pace
    from evaluand.evaluation.evaluator import Evaluation, Evaluator
    from evaluand.evaluation.feedback import Feedback
    from evaluand.evaluation.provider import Judgement, Provider, RemoteProvider, Reply, asks, spending
    from evaluand.evaluation.providers.ground_truth import GroundTruth
    from evaluand.evaluation.providers.local import Local
    from evaluand.evaluation.scorer import Score, Scorer, scorer
    from evaluand.experiment import Experiment
    from evaluand.experiment.arrays import ArrayEvaluation, evaluate
    from evaluand.metrics.accuracy import Accuracy
    from evaluand.metrics.adjusted_rand import AdjustedRand
    from evaluand.metrics.at_k import HitsAtK, MapAtK, Ndcg, PrecisionAtK, RecallAtK
    from evaluand.metrics.average_precision import AveragePrecision
    from evaluand.metrics.average_recall import AverageRecall
    from evaluand.metrics.balanced_accuracy import BalancedAccuracy
    from evaluand.metrics.brier import Brier
    from evaluand.metrics.cohen_kappa import CohenKappa
    from evaluand.metrics.completeness import Completeness
    from evaluand.metrics.confusion_matrix import ConfusionMatrix
    from evaluand.metrics.count import Count
    from evaluand.metrics.expected_calibration_error import ExpectedCalibrationError
    from evaluand.metrics.f_beta import FBeta
    from evaluand.metrics.false_negative_rate import FalseNegativeRate
    from evaluand.metrics.false_positive_rate import FalsePositiveRate
    from evaluand.metrics.hamming_loss import HammingLoss
    from evaluand.metrics.homogeneity import Homogeneity
    from evaluand.metrics.jaccard import Jaccard
    from evaluand.metrics.k_of_n import KOfN
    from evaluand.metrics.kendall import Kendall
    from evaluand.metrics.log_loss import LogLoss
    from evaluand.metrics.matthews_correlation import MatthewsCorrelation
    from evaluand.metrics.max_error import MaxError
    from evaluand.metrics.mean import Mean
    from evaluand.metrics.mean_absolute_error import MeanAbsoluteError, MeanAbsolutePercentageError
    from evaluand.metrics.mean_average_precision import MeanAveragePrecision
    from evaluand.metrics.mean_reciprocal_rank import MeanReciprocalRank
    from evaluand.metrics.mean_squared_error import MeanSquaredError, RootMeanSquaredError
    from evaluand.metrics.mean_squared_log_error import MeanSquaredLogError
    from evaluand.metrics.median_absolute_error import MedianAbsoluteError
    from evaluand.metrics.normalized_mutual_information import NormalizedMutualInformation
    from evaluand.metrics.pass_at_k import PassAtK
    from evaluand.metrics.pearson import Pearson, Spearman
    from evaluand.metrics.precision import Precision
    from evaluand.metrics.precision_at_top_k import PrecisionAtTopK
    from evaluand.metrics.quantile import Quantile
    from evaluand.metrics.r_squared import ExplainedVariance, RSquared
    from evaluand.metrics.recall import Recall
    from evaluand.metrics.roc_auc import RocAuc
    from evaluand.metrics.selection_rate import SelectionRate
    from evaluand.metrics.specificity import Specificity
    from evaluand.metrics.top_k import TopK
    from evaluand.metrics.v_measure import VMeasure
    from evaluand.run.runner import Run, Runner
    from evaluand.run.task import Alternatives, Task, task
    from evaluand.run.tasks.chat import ChatModel
    from evaluand.run.tasks.chunk import Chunk
    from evaluand.run.tasks.detect_language import DetectLanguage
    from evaluand.run.tasks.estimator import EstimatorTask
    from evaluand.run.tasks.instruct import Instruct, Instruction
    from evaluand.run.tasks.program import ProgramTask
    from evaluand.run.tasks.question_answering import (
        CitedAnswer,
        DocumentQuestion,
        QuestionAnswering,
        RetrieverQuestionAnswering,
    )
    from evaluand.run.tasks.service import LocalServiceTask, ServiceTask
    from evaluand.run.tasks.summary import Summary
    from evaluand.store.directory import DirectoryStore
    from evaluand.store.store import MemoryStore, Store
    from evaluand.trace import Span, TaskSpan, Trace, Tracer, span
    from evaluand.trace.foreign_spans import read_spans
    from evaluand.trace.record import Record
    from evaluand.trace.tracers.composite import CompositeTracer
    from evaluand.trace.tracers.file import FileTracer
    from evaluand.trace.tracers.in_memory import InMemoryTracer
    from evaluand.trace.tracers.no_op import NoOpTracer
    from evaluand.trace.tracers.open_telemetry import OpenTelemetryTracer

_PLACES = {
    "aggregation.aggregator": ("Aggregation", "Aggregator", "Measure"),
    "apps.app": ("App", "virtual"),
    "experiment.arrays": ("ArrayEvaluation", "evaluate"),
    "comparison": ("Comparison", "compare"),
    "data.dataset": ("Dataset", "Example"),
    "engine.engine": ("LocalEngine", "Policy"),
    "core.errors": (
        "DataError",
        "EngineError",
        "EvaluandError",
        "Skipped",
        "SpecError",
        "TaskError",
        "TaskTimeout",
        "TransientError",
    ),
    "evaluation.evaluator": ("Evaluation", "Evaluator"),
    "experiment": ("Experiment",),
    "evaluation.feedback": ("Feedback",),
    "apps.instrument": ("carried", "instrument"),
    "metrics.accuracy": ("Accuracy",),
    "metrics.adjusted_rand": ("AdjustedRand",),
    "metrics.at_k": ("HitsAtK", "MapAtK", "Ndcg", "PrecisionAtK", "RecallAtK"),
    "metrics.average_precision": ("AveragePrecision",),
    "metrics.average_recall": ("AverageRecall",),
    "metrics.balanced_accuracy": ("BalancedAccuracy",),
    "metrics.brier": ("Brier",),
    "metrics.cohen_kappa": ("CohenKappa",),
    "metrics.completeness": ("Completeness",),
    "metrics.confusion_matrix": ("ConfusionMatrix",),
    "metrics.count": ("Count",),
    "metrics.expected_calibration_error": ("ExpectedCalibrationError",),
    "metrics.f_beta": ("FBeta",),
    "metrics.false_negative_rate": ("FalseNegativeRate",),
    "metrics.false_positive_rate": ("FalsePositiveRate",),
    "metrics.hamming_loss": ("HammingLoss",),
    "metrics.homogeneity": ("Homogeneity",),
    "metrics.jaccard": ("Jaccard",),
    "metrics.k_of_n": ("KOfN",),
    "metrics.kendall": ("Kendall",),
    "metrics.log_loss": ("LogLoss",),
    "metrics.matthews_correlation": ("MatthewsCorrelation",),
    "metrics.max_error": ("MaxError",),
    "metrics.mean": ("Mean",),
    "metrics.mean_absolute_error": ("MeanAbsoluteError", "MeanAbsolutePercentageError"),
    "metrics.mean_average_precision": ("MeanAveragePrecision",),
    "metrics.mean_reciprocal_rank": ("MeanReciprocalRank",),
    "metrics.mean_squared_error": ("MeanSquaredError", "RootMeanSquaredError"),
    "metrics.mean_squared_log_error": ("MeanSquaredLogError",),
    "metrics.median_absolute_error": ("MedianAbsoluteError",),
    "metrics.normalized_mutual_information": ("NormalizedMutualInformation",),
    "metrics.pass_at_k": ("PassAtK",),
    "metrics.pearson": ("Pearson", "Spearman"),
    "metrics.precision": ("Precision",),
    "metrics.precision_at_top_k": ("PrecisionAtTopK",),
    "metrics.quantile": ("Quantile",),
    "metrics.r_squared": ("ExplainedVariance", "RSquared"),
    "metrics.recall": ("Recall",),
    "metrics.roc_auc": ("RocAuc",),
    "metrics.selection_rate": ("SelectionRate",),
    "metrics.specificity": ("Specificity",),
    "metrics.top_k": ("TopK",),
    "metrics.v_measure": ("VMeasure",),
    "engine.rate_limit": ("Pace",),
    "trace.record": ("Record",),
    "data.roles": ("Roles",),
    "run.runner": ("Run", "Runner"),
    "evaluation.scorer": ("Score", "Scorer", "scorer"),
    "data.split": ("Split",),
    "store.store": ("MemoryStore", "Store"),
    "store.directory": ("DirectoryStore",),
    "run.tasks.program": ("ProgramTask",),
    "run.task": ("Alternatives", "Task", "task"),
    "evaluation.provider": ("Judgement", "Provider", "RemoteProvider", "Reply", "asks", "spending"),
    "evaluation.providers.ground_truth": ("GroundTruth",),
    "evaluation.providers.local": ("Local",),
    "core.text.retrieval": ("EmbeddingIndex", "Passage", "Retriever", "WordIndex"),
    "run.tasks.chat": ("ChatModel",),
    "run.tasks.chunk": ("Chunk",),
    "run.tasks.detect_language": ("DetectLanguage",),
    "run.tasks.estimator": ("EstimatorTask",),
    "run.tasks.instruct": ("Instruct", "Instruction"),
    "run.tasks.question_answering": (
        "CitedAnswer",
        "DocumentQuestion",
        "QuestionAnswering",
        "RetrieverQuestionAnswering",
    ),
    "run.tasks.summary": ("Summary",),
    "run.tasks.service": ("LocalServiceTask", "ServiceTask"),
    "trace": ("Span", "TaskSpan", "Trace", "Tracer", "span"),
    "trace.tracers.composite": ("CompositeTracer",),
    "trace.tracers.file": ("FileTracer",),
    "trace.tracers.in_memory": ("InMemoryTracer",),
    "trace.tracers.no_op": ("NoOpTracer",),
    "trace.tracers.open_telemetry": ("OpenTelemetryTracer",),
    "trace.foreign_spans": ("read_spans",),
}
_MODULES = {name: module for module, names in _PLACES.items() for name in names}

__all__ = [
    "Accuracy",
    "AdjustedRand",
    "Aggregation",
    "Aggregator",
    "Alternatives",
    "App",
    "ArrayEvaluation",
    "AveragePrecision",
    "AverageRecall",
    "BalancedAccuracy",
    "Brier",
    "ChatModel",
    "Chunk",
    "CitedAnswer",
    "CohenKappa",
    "Comparison",
    "Completeness",
    "CompositeTracer",
    "ConfusionMatrix",
    "Count",
    "DataError",
    "Dataset",
    "DetectLanguage",
    "DirectoryStore",
    "DocumentQuestion",
    "EmbeddingIndex",
    "EngineError",
    "EstimatorTask",
    "EvaluandError",
    "Evaluation",
    "Evaluator",
    "Example",
    "ExpectedCalibrationError",
    "Experiment",
    "ExplainedVariance",
    "FBeta",
    "FalseNegativeRate",
    "FalsePositiveRate",
    "Feedback",
    "FileTracer",
    "GroundTruth",
    "HammingLoss",
    "HitsAtK",
    "Homogeneity",
    "InMemoryTracer",
    "Instruct",
    "Instruction",
    "Jaccard",
    "Judgement",
    "KOfN",
    "Kendall",
    "Local",
    "LocalEngine",
    "LocalServiceTask",
    "LogLoss",
    "MapAtK",
    "MatthewsCorrelation",
    "MaxError",
    "Mean",
    "MeanAbsoluteError",
    "MeanAbsolutePercentageError",
    "MeanAveragePrecision",
    "MeanReciprocalRank",
    "MeanSquaredError",
    "MeanSquaredLogError",
    "Measure",
    "MedianAbsoluteError",
    "MemoryStore",
    "Ndcg",
    "NoOpTracer",
    "NormalizedMutualInformation",
    "OpenTelemetryTracer",
    "Pace",
    "PassAtK",
    "Passage",
    "Pearson",
    "Policy",
    "Precision",
    "PrecisionAtK",
    "PrecisionAtTopK",
    "ProgramTask",
    "Provider",
    "Quantile",
    "QuestionAnswering",
    "RSquared",
    "Recall",
    "RecallAtK",
    "Record",
    "RemoteProvider",
    "Reply",
    "Retriever",
    "RetrieverQuestionAnswering",
    "RocAuc",
    "Roles",
    "RootMeanSquaredError",
    "Run",
    "Runner",
    "Score",
    "Scorer",
    "SelectionRate",
    "ServiceTask",
    "Skipped",
    "Span",
    "Spearman",
    "SpecError",
    "Specificity",
    "Split",
    "Store",
    "Summary",
    "Task",
    "TaskError",
    "TaskSpan",
    "TaskTimeout",
    "TopK",
    "Trace",
    "Tracer",
    "TransientError",
    "VMeasure",
    "WordIndex",
    "__version__",
    "asks",
    "carried",
    "compare",
    "evaluate",
    "instrument",
    "read_spans",
    "scorer",
    "span",
    "spending",
    "task",
    "virtual",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'evaluand' has no attribute {name!r}")
    return getattr(importlib.import_module(f"evaluand.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__


class _Package(ModuleType):
    """Keeps the decorators `task`, `scorer` and `instrument` in front of the modules that define them."""

    @property
    def task(self) -> Any:
        return __getattr__("task")

    @property
    def scorer(self) -> Any:
        return __getattr__("scorer")

    @property
    def instrument(self) -> Any:
        return __getattr__("instrument")

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in ("task", "scorer", "instrument"):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
