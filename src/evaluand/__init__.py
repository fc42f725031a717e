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
    from evaluand.app import App, virtual
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
    from evaluand.feedback import Feedback
    from evaluand.instrument import carried, instrument
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
    from evaluand.pace import Pace
    from evaluand.provider import Judgement, Provider, RemoteProvider, Reply, asks, spending
    from evaluand.providers.ground_truth import GroundTruth
    from evaluand.providers.local import Local
    from evaluand.record import Record
    from evaluand.retriever import EmbeddingIndex, Passage, Retriever, WordIndex
    from evaluand.roles import Roles
    from evaluand.run import Run, Runner
    from evaluand.scorer import Score, Scorer, scorer
    from evaluand.split import Split
    from evaluand.store import MemoryStore, Store
    from evaluand.stores.directory import DirectoryStore
    from evaluand.task import Alternatives, Task, task
    from evaluand.tasks.chat import ChatModel
    from evaluand.tasks.chunk import Chunk
    from evaluand.tasks.detect_language import DetectLanguage
    from evaluand.tasks.estimator import EstimatorTask
    from evaluand.tasks.instruct import Instruct, Instruction
    from evaluand.tasks.program import ProgramTask
    from evaluand.tasks.question_answering import (
        CitedAnswer,
        DocumentQuestion,
        QuestionAnswering,
        RetrieverQuestionAnswering,
    )
    from evaluand.tasks.service import LocalServiceTask, ServiceTask
    from evaluand.tasks.summary import Summary
    from evaluand.trace import Span, TaskSpan, Trace, Tracer, span
    from evaluand.tracers.composite import CompositeTracer
    from evaluand.tracers.file import FileTracer
    from evaluand.tracers.in_memory import InMemoryTracer
    from evaluand.tracers.no_op import NoOpTracer
    from evaluand.tracers.open_telemetry import OpenTelemetryTracer
    from evaluand.tracers.spans import read_spans

_PLACES = {
    "aggregation": ("Aggregation", "Aggregator", "Measure"),
    "app": ("App", "virtual"),
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
    "instrument": ("carried", "instrument"),
    "feedback": ("Feedback",),
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
    "pace": ("Pace",),
    "record": ("Record",),
    "roles": ("Roles",),
    "run": ("Run", "Runner"),
    "scorer": ("Score", "Scorer", "scorer"),
    "split": ("Split",),
    "store": ("MemoryStore", "Store"),
    "stores.directory": ("DirectoryStore",),
    "tasks.program": ("ProgramTask",),
    "task": ("Alternatives", "Task", "task"),
    "provider": ("Judgement", "Provider", "RemoteProvider", "Reply", "asks", "spending"),
    "providers.ground_truth": ("GroundTruth",),
    "providers.local": ("Local",),
    "retriever": ("EmbeddingIndex", "Passage", "Retriever", "WordIndex"),
    "tasks.chat": ("ChatModel",),
    "tasks.chunk": ("Chunk",),
    "tasks.detect_language": ("DetectLanguage",),
    "tasks.estimator": ("EstimatorTask",),
    "tasks.instruct": ("Instruct", "Instruction"),
    "tasks.question_answering": (
        "CitedAnswer",
        "DocumentQuestion",
        "QuestionAnswering",
        "RetrieverQuestionAnswering",
    ),
    "tasks.summary": ("Summary",),
    "tasks.service": ("LocalServiceTask", "ServiceTask"),
    "trace": ("Span", "TaskSpan", "Trace", "Tracer", "span"),
    "tracers.composite": ("CompositeTracer",),
    "tracers.file": ("FileTracer",),
    "tracers.in_memory": ("InMemoryTracer",),
    "tracers.no_op": ("NoOpTracer",),
    "tracers.open_telemetry": ("OpenTelemetryTracer",),
    "tracers.spans": ("read_spans",),
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
