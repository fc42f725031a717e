"""evaluand evaluates any ML or AI system on one reproducible path: dataset → run → evaluate → aggregate → report.

The public names are loaded on first use, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluand.core.late_imports import keep_pandas_waiting
from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand._version import __version__ as __version__
    from evaluand.aggregation.aggregator import Aggregation as Aggregation, Aggregator as Aggregator, Measure as Measure
    from evaluand.apps.app import App as App
    from evaluand.apps.instrumentation.marking import carry_context as carry_context, instrument as instrument
    from evaluand.apps.logs import record_logs as record_logs
    from evaluand.comparison.comparing import Comparison as Comparison, compare as compare
    from evaluand.comparison.drift.drift import Drift as Drift, measure_drift as measure_drift
    from evaluand.comparison.planning import Plan as Plan, examples_for_width as examples_for_width, plan as plan
    from evaluand.core.credentials import keep_credentials as keep_credentials
    from evaluand.core.errors import (
        DataError as DataError,
        EngineError as EngineError,
        EvaluandError as EvaluandError,
        EvaluandWarning as EvaluandWarning,
        NotFound as NotFound,
        NotStored as NotStored,
        ParameterError as ParameterError,
        Skipped as Skipped,
        SpecError as SpecError,
        TaskError as TaskError,
        TaskTimeout as TaskTimeout,
        TransientError as TransientError,
    )
    from evaluand.core.text.retrieval import (
        EmbeddingIndex as EmbeddingIndex,
        Passage as Passage,
        Retriever as Retriever,
        WordIndex as WordIndex,
    )
    from evaluand.data.dataset import Dataset as Dataset, Example as Example
    from evaluand.data.roles import Roles as Roles
    from evaluand.data.split import Split as Split
    from evaluand.engine.budget import Budget as Budget
    from evaluand.engine.engines.local import LocalEngine as LocalEngine
    from evaluand.engine.engines.processes import ProcessEngine as ProcessEngine
    from evaluand.engine.policy import Policy as Policy
    from evaluand.engine.rate_limit import RateLimit as RateLimit
    from evaluand.engine.token_limit import TokenLimit as TokenLimit
    from evaluand.evaluation.comparison_scorers import (
        ComparisonScorer as ComparisonScorer,
        Preference as Preference,
        comparison_scorer as comparison_scorer,
    )
    from evaluand.evaluation.evaluator import Evaluation as Evaluation, Evaluator as Evaluator
    from evaluand.evaluation.feedback.feedback import Feedback as Feedback
    from evaluand.evaluation.provider import (
        Judgement as Judgement,
        Provider as Provider,
        RemoteProvider as RemoteProvider,
        Reply as Reply,
        asks as asks,
    )
    from evaluand.evaluation.providers.ground_truth import GroundTruth as GroundTruth
    from evaluand.evaluation.providers.local import Local as Local
    from evaluand.evaluation.scorer import Score as Score, Scorer as Scorer, scorer as scorer
    from evaluand.experiment.experiment import Experiment as Experiment
    from evaluand.judges.judge import Judge as Judge
    from evaluand.matches.matcher import Matcher as Matcher
    from evaluand.matches.matches import Matches as Matches
    from evaluand.matches.ratings.method import RatingMethod as RatingMethod
    from evaluand.matches.ratings.rating import Ratings as Ratings, rate as rate
    from evaluand.metrics import (
        Accuracy as Accuracy,
        AdjustedMutualInformation as AdjustedMutualInformation,
        AdjustedRand as AdjustedRand,
        AveragePrecision as AveragePrecision,
        AverageRecall as AverageRecall,
        BalancedAccuracy as BalancedAccuracy,
        Brier as Brier,
        CharacterErrorRate as CharacterErrorRate,
        ClasswiseCalibrationError as ClasswiseCalibrationError,
        CohenKappa as CohenKappa,
        Completeness as Completeness,
        ConfusionMatrix as ConfusionMatrix,
        Count as Count,
        CoverageError as CoverageError,
        Crps as Crps,
        D2AbsoluteError as D2AbsoluteError,
        D2Pinball as D2Pinball,
        D2Tweedie as D2Tweedie,
        DebiasedCalibrationError as DebiasedCalibrationError,
        ExpectedCalibrationError as ExpectedCalibrationError,
        ExplainedVariance as ExplainedVariance,
        FalseNegativeRate as FalseNegativeRate,
        FalsePositiveRate as FalsePositiveRate,
        FBeta as FBeta,
        FunctionMetric as FunctionMetric,
        HammingLoss as HammingLoss,
        HitsAtK as HitsAtK,
        Homogeneity as Homogeneity,
        Jaccard as Jaccard,
        Kendall as Kendall,
        KOfN as KOfN,
        LabelRankingAveragePrecision as LabelRankingAveragePrecision,
        LabelRankingLoss as LabelRankingLoss,
        LogLoss as LogLoss,
        MajorityVote as MajorityVote,
        MapAtK as MapAtK,
        MatthewsCorrelation as MatthewsCorrelation,
        MaxError as MaxError,
        Mean as Mean,
        MeanAbsoluteError as MeanAbsoluteError,
        MeanAbsolutePercentageError as MeanAbsolutePercentageError,
        MeanAbsoluteScaledError as MeanAbsoluteScaledError,
        MeanAveragePrecision as MeanAveragePrecision,
        MeanGammaDeviance as MeanGammaDeviance,
        MeanIou as MeanIou,
        MeanPoissonDeviance as MeanPoissonDeviance,
        MeanQuantileLoss as MeanQuantileLoss,
        MeanReciprocalRank as MeanReciprocalRank,
        MeanSquaredError as MeanSquaredError,
        MeanSquaredLogError as MeanSquaredLogError,
        MeanTweedieDeviance as MeanTweedieDeviance,
        MedianAbsoluteError as MedianAbsoluteError,
        Ndcg as Ndcg,
        NormalizedMutualInformation as NormalizedMutualInformation,
        OmegaIndex as OmegaIndex,
        OneVsOneRocAuc as OneVsOneRocAuc,
        OverlappingMutualInformation as OverlappingMutualInformation,
        PanopticQuality as PanopticQuality,
        PassAtK as PassAtK,
        Pearson as Pearson,
        PinballLoss as PinballLoss,
        Precision as Precision,
        PrecisionAtK as PrecisionAtK,
        PrecisionAtTopK as PrecisionAtTopK,
        PredictionPoweredMean as PredictionPoweredMean,
        Quantile as Quantile,
        Recall as Recall,
        RecallAtK as RecallAtK,
        RecognitionQuality as RecognitionQuality,
        RocAuc as RocAuc,
        RootMeanSquaredError as RootMeanSquaredError,
        RSquared as RSquared,
        SegmentationQuality as SegmentationQuality,
        SelectionRate as SelectionRate,
        Spearman as Spearman,
        Specificity as Specificity,
        SymmetricMeanAbsolutePercentageError as SymmetricMeanAbsolutePercentageError,
        TopK as TopK,
        VMeasure as VMeasure,
        WeightedAbsolutePercentageError as WeightedAbsolutePercentageError,
        WeightedKappa as WeightedKappa,
        WordErrorRate as WordErrorRate,
        make_metric as make_metric,
        seasonal_naive_scale as seasonal_naive_scale,
    )
    from evaluand.models.chat_model import ChatModel as ChatModel
    from evaluand.models.prices import Price as Price, PriceTable as PriceTable
    from evaluand.models.usage import report_usage as report_usage, spending as spending
    from evaluand.predictions.coco.scoring import score_coco as score_coco
    from evaluand.predictions.evaluating import evaluate as evaluate
    from evaluand.predictions.result import SystemScores as SystemScores
    from evaluand.run.runner import Run as Run, Runner as Runner
    from evaluand.run.task import Candidates as Candidates, Task as Task, task as task
    from evaluand.run.tasks.chat import ChatTask as ChatTask
    from evaluand.run.tasks.chunk import Chunk as Chunk
    from evaluand.run.tasks.conversation import FewShot as FewShot
    from evaluand.run.tasks.detect_language import DetectLanguage as DetectLanguage
    from evaluand.run.tasks.estimator import EstimatorTask as EstimatorTask
    from evaluand.run.tasks.instruct import Instruct as Instruct, Instruction as Instruction
    from evaluand.run.tasks.multiple_choice import MultipleChoice as MultipleChoice
    from evaluand.run.tasks.program import ProgramTask as ProgramTask
    from evaluand.run.tasks.question_answering import (
        CitedAnswer as CitedAnswer,
        DocumentQuestion as DocumentQuestion,
        QuestionAnswering as QuestionAnswering,
        RetrieverQuestionAnswering as RetrieverQuestionAnswering,
    )
    from evaluand.run.tasks.service import LocalServiceTask as LocalServiceTask, ServiceTask as ServiceTask
    from evaluand.run.tasks.summary import Summary as Summary
    from evaluand.store.directory import DirectoryStore as DirectoryStore
    from evaluand.store.store import MemoryStore as MemoryStore, Store as Store
    from evaluand.trace import Span as Span, TaskSpan as TaskSpan, Trace as Trace, Tracer as Tracer, span as span
    from evaluand.trace.foreign_spans import read_spans as read_spans
    from evaluand.trace.record import Record as Record
    from evaluand.trace.tracers.composite import CompositeTracer as CompositeTracer
    from evaluand.trace.tracers.file import FileTracer as FileTracer
    from evaluand.trace.tracers.in_memory import InMemoryTracer as InMemoryTracer
    from evaluand.trace.tracers.no_op import NoOpTracer as NoOpTracer
    from evaluand.trace.tracers.open_telemetry import OpenTelemetryTracer as OpenTelemetryTracer

_MODULES = (
    *("aggregation", "apps", "comparison", "core", "data", "engine", "errors", "evaluation", "exchange", "experiment"),
    *("interop", "judges", "matches", "metrics", "models", "predictions", "report", "run", "store", "testing", "trace"),
    "tradeoff",
)

keep_pandas_waiting()
__getattr__, __dir__ = lazy_names(__name__, explain="evaluand.metrics.names:explain", submodules=_MODULES)
