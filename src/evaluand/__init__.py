"""evaluand evaluates any ML or AI system on one reproducible path: dataset → run → evaluate → aggregate → report.

The public names are loaded on first use, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluand._version import __version__ as __version__
from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.aggregation.aggregator import Aggregation as Aggregation
    from evaluand.aggregation.aggregator import Aggregator as Aggregator
    from evaluand.aggregation.aggregator import Measure as Measure
    from evaluand.apps.app import App as App
    from evaluand.apps.instrumentation.marking import carry_context as carry_context
    from evaluand.apps.instrumentation.marking import instrument as instrument
    from evaluand.apps.logs import record_logs as record_logs
    from evaluand.comparison.comparing import Comparison as Comparison
    from evaluand.comparison.comparing import compare as compare
    from evaluand.core.errors import DataError as DataError
    from evaluand.core.errors import EngineError as EngineError
    from evaluand.core.errors import EvaluandError as EvaluandError
    from evaluand.core.errors import EvaluandWarning as EvaluandWarning
    from evaluand.core.errors import NotFound as NotFound
    from evaluand.core.errors import ParameterError as ParameterError
    from evaluand.core.errors import Skipped as Skipped
    from evaluand.core.errors import SpecError as SpecError
    from evaluand.core.errors import TaskError as TaskError
    from evaluand.core.errors import TaskTimeout as TaskTimeout
    from evaluand.core.errors import TransientError as TransientError
    from evaluand.core.text.retrieval import EmbeddingIndex as EmbeddingIndex
    from evaluand.core.text.retrieval import Passage as Passage
    from evaluand.core.text.retrieval import Retriever as Retriever
    from evaluand.core.text.retrieval import WordIndex as WordIndex
    from evaluand.data.dataset import Dataset as Dataset
    from evaluand.data.dataset import Example as Example
    from evaluand.data.roles import Roles as Roles
    from evaluand.data.split import Split as Split
    from evaluand.engine.engine import LocalEngine as LocalEngine
    from evaluand.engine.engine import Policy as Policy
    from evaluand.engine.rate_limit import RateLimit as RateLimit
    from evaluand.evaluation.evaluator import Evaluation as Evaluation
    from evaluand.evaluation.evaluator import Evaluator as Evaluator
    from evaluand.evaluation.feedback.feedback import Feedback as Feedback
    from evaluand.evaluation.provider import Judgement as Judgement
    from evaluand.evaluation.provider import Provider as Provider
    from evaluand.evaluation.provider import RemoteProvider as RemoteProvider
    from evaluand.evaluation.provider import Reply as Reply
    from evaluand.evaluation.provider import asks as asks
    from evaluand.evaluation.provider import spending as spending
    from evaluand.evaluation.providers.ground_truth import GroundTruth as GroundTruth
    from evaluand.evaluation.providers.local import Local as Local
    from evaluand.evaluation.scorer import Score as Score
    from evaluand.evaluation.scorer import Scorer as Scorer
    from evaluand.evaluation.scorer import scorer as scorer
    from evaluand.experiment.arrays import ArrayEvaluation as ArrayEvaluation
    from evaluand.experiment.arrays import evaluate as evaluate
    from evaluand.experiment.experiment import Experiment as Experiment
    from evaluand.metrics.absolute_errors import MaxError as MaxError
    from evaluand.metrics.absolute_errors import MeanAbsoluteError as MeanAbsoluteError
    from evaluand.metrics.absolute_errors import MeanAbsolutePercentageError as MeanAbsolutePercentageError
    from evaluand.metrics.absolute_errors import MedianAbsoluteError as MedianAbsoluteError
    from evaluand.metrics.accuracy import Accuracy as Accuracy
    from evaluand.metrics.areas import AveragePrecision as AveragePrecision
    from evaluand.metrics.areas import RocAuc as RocAuc
    from evaluand.metrics.at_k import HitsAtK as HitsAtK
    from evaluand.metrics.at_k import MapAtK as MapAtK
    from evaluand.metrics.at_k import Ndcg as Ndcg
    from evaluand.metrics.at_k import PrecisionAtK as PrecisionAtK
    from evaluand.metrics.at_k import RecallAtK as RecallAtK
    from evaluand.metrics.average_recall import AverageRecall as AverageRecall
    from evaluand.metrics.balanced_accuracy import BalancedAccuracy as BalancedAccuracy
    from evaluand.metrics.chance_corrected import CohenKappa as CohenKappa
    from evaluand.metrics.chance_corrected import MatthewsCorrelation as MatthewsCorrelation
    from evaluand.metrics.class_rates import FalseNegativeRate as FalseNegativeRate
    from evaluand.metrics.class_rates import FalsePositiveRate as FalsePositiveRate
    from evaluand.metrics.class_rates import FBeta as FBeta
    from evaluand.metrics.class_rates import Jaccard as Jaccard
    from evaluand.metrics.class_rates import Precision as Precision
    from evaluand.metrics.class_rates import Recall as Recall
    from evaluand.metrics.class_rates import Specificity as Specificity
    from evaluand.metrics.confusion_matrix import ConfusionMatrix as ConfusionMatrix
    from evaluand.metrics.count import Count as Count
    from evaluand.metrics.expected_calibration_error import ExpectedCalibrationError as ExpectedCalibrationError
    from evaluand.metrics.hamming_loss import HammingLoss as HammingLoss
    from evaluand.metrics.kendall import Kendall as Kendall
    from evaluand.metrics.mean import Mean as Mean
    from evaluand.metrics.mean_average_precision import MeanAveragePrecision as MeanAveragePrecision
    from evaluand.metrics.mean_reciprocal_rank import MeanReciprocalRank as MeanReciprocalRank
    from evaluand.metrics.mean_squared_error import MeanSquaredError as MeanSquaredError
    from evaluand.metrics.mean_squared_error import MeanSquaredLogError as MeanSquaredLogError
    from evaluand.metrics.mean_squared_error import RootMeanSquaredError as RootMeanSquaredError
    from evaluand.metrics.partitions import AdjustedRand as AdjustedRand
    from evaluand.metrics.partitions import Completeness as Completeness
    from evaluand.metrics.partitions import Homogeneity as Homogeneity
    from evaluand.metrics.partitions import (
        NormalizedMutualInformation as NormalizedMutualInformation,
    )
    from evaluand.metrics.partitions import VMeasure as VMeasure
    from evaluand.metrics.pearson import Pearson as Pearson
    from evaluand.metrics.pearson import Spearman as Spearman
    from evaluand.metrics.precision_at_top_k import PrecisionAtTopK as PrecisionAtTopK
    from evaluand.metrics.probability_losses import Brier as Brier
    from evaluand.metrics.probability_losses import LogLoss as LogLoss
    from evaluand.metrics.quantile import Quantile as Quantile
    from evaluand.metrics.r_squared import ExplainedVariance as ExplainedVariance
    from evaluand.metrics.r_squared import RSquared as RSquared
    from evaluand.metrics.replications import KOfN as KOfN
    from evaluand.metrics.replications import PassAtK as PassAtK
    from evaluand.metrics.selection_rate import SelectionRate as SelectionRate
    from evaluand.metrics.top_k import TopK as TopK
    from evaluand.run.runner import Run as Run
    from evaluand.run.runner import Runner as Runner
    from evaluand.run.task import Candidates as Candidates
    from evaluand.run.task import Task as Task
    from evaluand.run.task import task as task
    from evaluand.run.tasks.chat import ChatModel as ChatModel
    from evaluand.run.tasks.chunk import Chunk as Chunk
    from evaluand.run.tasks.detect_language import DetectLanguage as DetectLanguage
    from evaluand.run.tasks.estimator import EstimatorTask as EstimatorTask
    from evaluand.run.tasks.instruct import Instruct as Instruct
    from evaluand.run.tasks.instruct import Instruction as Instruction
    from evaluand.run.tasks.program import ProgramTask as ProgramTask
    from evaluand.run.tasks.question_answering import CitedAnswer as CitedAnswer
    from evaluand.run.tasks.question_answering import DocumentQuestion as DocumentQuestion
    from evaluand.run.tasks.question_answering import QuestionAnswering as QuestionAnswering
    from evaluand.run.tasks.question_answering import RetrieverQuestionAnswering as RetrieverQuestionAnswering
    from evaluand.run.tasks.service import LocalServiceTask as LocalServiceTask
    from evaluand.run.tasks.service import ServiceTask as ServiceTask
    from evaluand.run.tasks.summary import Summary as Summary
    from evaluand.store.directory import DirectoryStore as DirectoryStore
    from evaluand.store.store import MemoryStore as MemoryStore
    from evaluand.store.store import Store as Store
    from evaluand.trace import Span as Span
    from evaluand.trace import TaskSpan as TaskSpan
    from evaluand.trace import Trace as Trace
    from evaluand.trace import Tracer as Tracer
    from evaluand.trace import span as span
    from evaluand.trace.foreign_spans import read_spans as read_spans
    from evaluand.trace.record import Record as Record
    from evaluand.trace.tracers.composite import CompositeTracer as CompositeTracer
    from evaluand.trace.tracers.file import FileTracer as FileTracer
    from evaluand.trace.tracers.in_memory import InMemoryTracer as InMemoryTracer
    from evaluand.trace.tracers.no_op import NoOpTracer as NoOpTracer
    from evaluand.trace.tracers.open_telemetry import OpenTelemetryTracer as OpenTelemetryTracer

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "aggregation.aggregator": ("Aggregation", "Aggregator", "Measure"),
        "apps.app": ("App",),
        "apps.logs": ("record_logs",),
        "experiment.arrays": ("ArrayEvaluation", "evaluate"),
        "comparison.comparing": ("Comparison", "compare"),
        "data.dataset": ("Dataset", "Example"),
        "engine.engine": ("LocalEngine", "Policy"),
        "core.errors": (
            "DataError",
            "EngineError",
            "EvaluandError",
            "EvaluandWarning",
            "NotFound",
            "ParameterError",
            "Skipped",
            "SpecError",
            "TaskError",
            "TaskTimeout",
            "TransientError",
        ),
        "evaluation.evaluator": ("Evaluation", "Evaluator"),
        "experiment.experiment": ("Experiment",),
        "evaluation.feedback.feedback": ("Feedback",),
        "apps.instrumentation.marking": ("carry_context", "instrument"),
        "metrics.accuracy": ("Accuracy",),
        "metrics.partitions": (
            "AdjustedRand",
            "Completeness",
            "Homogeneity",
            "NormalizedMutualInformation",
            "VMeasure",
        ),
        "metrics.at_k": ("HitsAtK", "MapAtK", "Ndcg", "PrecisionAtK", "RecallAtK"),
        "metrics.areas": ("AveragePrecision", "RocAuc"),
        "metrics.average_recall": ("AverageRecall",),
        "metrics.balanced_accuracy": ("BalancedAccuracy",),
        "metrics.probability_losses": ("Brier", "LogLoss"),
        "metrics.chance_corrected": ("CohenKappa", "MatthewsCorrelation"),
        "metrics.confusion_matrix": ("ConfusionMatrix",),
        "metrics.count": ("Count",),
        "metrics.expected_calibration_error": ("ExpectedCalibrationError",),
        "metrics.class_rates": (
            "FBeta",
            "FalseNegativeRate",
            "FalsePositiveRate",
            "Jaccard",
            "Precision",
            "Recall",
            "Specificity",
        ),
        "metrics.hamming_loss": ("HammingLoss",),
        "metrics.replications": ("KOfN", "PassAtK"),
        "metrics.kendall": ("Kendall",),
        "metrics.absolute_errors": (
            "MaxError",
            "MeanAbsoluteError",
            "MeanAbsolutePercentageError",
            "MedianAbsoluteError",
        ),
        "metrics.mean": ("Mean",),
        "metrics.mean_average_precision": ("MeanAveragePrecision",),
        "metrics.mean_reciprocal_rank": ("MeanReciprocalRank",),
        "metrics.mean_squared_error": ("MeanSquaredError", "RootMeanSquaredError", "MeanSquaredLogError"),
        "metrics.pearson": ("Pearson", "Spearman"),
        "metrics.precision_at_top_k": ("PrecisionAtTopK",),
        "metrics.quantile": ("Quantile",),
        "metrics.r_squared": ("ExplainedVariance", "RSquared"),
        "metrics.selection_rate": ("SelectionRate",),
        "metrics.top_k": ("TopK",),
        "engine.rate_limit": ("RateLimit",),
        "trace.record": ("Record",),
        "data.roles": ("Roles",),
        "run.runner": ("Run", "Runner"),
        "evaluation.scorer": ("Score", "Scorer", "scorer"),
        "data.split": ("Split",),
        "store.store": ("MemoryStore", "Store"),
        "store.directory": ("DirectoryStore",),
        "run.tasks.program": ("ProgramTask",),
        "run.task": ("Candidates", "Task", "task"),
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
        "_version": ("__version__",),
    },
)
