"""evaluand evaluates any ML or AI system on one reproducible path: dataset → run → evaluate → aggregate → report.

The public names are loaded on first use, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    from evaluand.metrics.accuracy import (
        Accuracy as Accuracy,
        KOfN as KOfN,
        MajorityVote as MajorityVote,
        PassAtK as PassAtK,
        TopK as TopK,
    )
    from evaluand.metrics.adjusted_mutual_information import AdjustedMutualInformation as AdjustedMutualInformation
    from evaluand.metrics.areas import (
        AveragePrecision as AveragePrecision,
        OneVsOneRocAuc as OneVsOneRocAuc,
        RocAuc as RocAuc,
    )
    from evaluand.metrics.box_averages import (
        AverageRecall as AverageRecall,
        MeanAveragePrecision as MeanAveragePrecision,
    )
    from evaluand.metrics.calibration import (
        ClasswiseCalibrationError as ClasswiseCalibrationError,
        DebiasedCalibrationError as DebiasedCalibrationError,
        ExpectedCalibrationError as ExpectedCalibrationError,
    )
    from evaluand.metrics.class_rates import (
        FalseNegativeRate as FalseNegativeRate,
        FalsePositiveRate as FalsePositiveRate,
        FBeta as FBeta,
        Jaccard as Jaccard,
        Precision as Precision,
        Recall as Recall,
        SelectionRate as SelectionRate,
        Specificity as Specificity,
    )
    from evaluand.metrics.column_statistics import Count as Count, Mean as Mean, Quantile as Quantile
    from evaluand.metrics.confusion_matrix import (
        BalancedAccuracy as BalancedAccuracy,
        CohenKappa as CohenKappa,
        ConfusionMatrix as ConfusionMatrix,
        HammingLoss as HammingLoss,
        MatthewsCorrelation as MatthewsCorrelation,
        WeightedKappa as WeightedKappa,
    )
    from evaluand.metrics.correlations import (
        ExplainedVariance as ExplainedVariance,
        Kendall as Kendall,
        Pearson as Pearson,
        RSquared as RSquared,
        Spearman as Spearman,
    )
    from evaluand.metrics.covers import (
        OmegaIndex as OmegaIndex,
        OverlappingMutualInformation as OverlappingMutualInformation,
    )
    from evaluand.metrics.deviances import (
        D2AbsoluteError as D2AbsoluteError,
        D2Pinball as D2Pinball,
        D2Tweedie as D2Tweedie,
        MeanGammaDeviance as MeanGammaDeviance,
        MeanPoissonDeviance as MeanPoissonDeviance,
        MeanTweedieDeviance as MeanTweedieDeviance,
        PinballLoss as PinballLoss,
    )
    from evaluand.metrics.errors import (
        MaxError as MaxError,
        MeanAbsoluteError as MeanAbsoluteError,
        MeanAbsolutePercentageError as MeanAbsolutePercentageError,
        MeanSquaredError as MeanSquaredError,
        MeanSquaredLogError as MeanSquaredLogError,
        MedianAbsoluteError as MedianAbsoluteError,
        RootMeanSquaredError as RootMeanSquaredError,
    )
    from evaluand.metrics.forecasts import (
        Crps as Crps,
        MeanAbsoluteScaledError as MeanAbsoluteScaledError,
        MeanQuantileLoss as MeanQuantileLoss,
        SymmetricMeanAbsolutePercentageError as SymmetricMeanAbsolutePercentageError,
        WeightedAbsolutePercentageError as WeightedAbsolutePercentageError,
        seasonal_naive_scale as seasonal_naive_scale,
    )
    from evaluand.metrics.function import FunctionMetric as FunctionMetric
    from evaluand.metrics.names import make_metric as make_metric
    from evaluand.metrics.partitions import (
        AdjustedRand as AdjustedRand,
        Completeness as Completeness,
        Homogeneity as Homogeneity,
        NormalizedMutualInformation as NormalizedMutualInformation,
        VMeasure as VMeasure,
    )
    from evaluand.metrics.prediction_powered import PredictionPoweredMean as PredictionPoweredMean
    from evaluand.metrics.probabilities import Brier as Brier, LogLoss as LogLoss
    from evaluand.metrics.rankings import (
        CoverageError as CoverageError,
        HitsAtK as HitsAtK,
        LabelRankingAveragePrecision as LabelRankingAveragePrecision,
        LabelRankingLoss as LabelRankingLoss,
        MapAtK as MapAtK,
        MeanReciprocalRank as MeanReciprocalRank,
        Ndcg as Ndcg,
        PrecisionAtK as PrecisionAtK,
        PrecisionAtTopK as PrecisionAtTopK,
        RecallAtK as RecallAtK,
    )
    from evaluand.metrics.segment_averages import (
        MeanIou as MeanIou,
        PanopticQuality as PanopticQuality,
        RecognitionQuality as RecognitionQuality,
        SegmentationQuality as SegmentationQuality,
    )
    from evaluand.metrics.text_errors import (
        CharacterErrorRate as CharacterErrorRate,
        WordErrorRate as WordErrorRate,
    )
    from evaluand.models.chat_model import ChatModel as ChatModel
    from evaluand.models.prices import Price as Price, PriceTable as PriceTable
    from evaluand.models.usage import report_usage as report_usage, spending as spending
    from evaluand.predictions.arrays.arrays import ArrayEvaluation as ArrayEvaluation, evaluate as evaluate
    from evaluand.predictions.coco.scoring import score_coco as score_coco
    from evaluand.predictions.columns.scoring import score_columns as score_columns
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

__getattr__, __dir__ = lazy_names(__name__, explain="evaluand.metrics.names:explain", submodules=_MODULES)
