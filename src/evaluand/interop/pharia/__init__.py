"""The names of the Pharia SDKs, implemented with evaluand: tasks, traces, and the steps run, evaluate, aggregate.

    Example ──Runner──▶ ExampleOutput ──Evaluator──▶ ExampleEvaluation ──Aggregator──▶ AggregationOverview
    DatasetRepository   RunRepository                EvaluationRepository              AggregationRepository

The names are loaded on first use.
"""

from typing import TYPE_CHECKING

from evaluand.interop.names import interop_names
from evaluand.interop.pharia.missing_names import REPLACEMENTS

if TYPE_CHECKING:
    from evaluand.interop.pharia.aggregator import (
        Aggregator as Aggregator,
        CountingFilterIterable as CountingFilterIterable,
    )
    from evaluand.interop.pharia.argilla import (
        ArgillaClient as ArgillaClient,
        ArgillaEvaluation as ArgillaEvaluation,
        ArgillaEvaluationLogic as ArgillaEvaluationLogic,
        ArgillaEvaluator as ArgillaEvaluator,
        InstructComparisonArgillaEvaluationLogic as InstructComparisonArgillaEvaluationLogic,
        Record as Record,
        RecordData as RecordData,
        RecordDataSequence as RecordDataSequence,
    )
    from evaluand.interop.pharia.benchmark import Benchmark as Benchmark, BenchmarkRepository as BenchmarkRepository
    from evaluand.interop.pharia.datasets import (
        DatasetRepository as DatasetRepository,
        FileDatasetRepository as FileDatasetRepository,
        FileSystemDatasetRepository as FileSystemDatasetRepository,
        InMemoryDatasetRepository as InMemoryDatasetRepository,
    )
    from evaluand.interop.pharia.domain import (
        AggregatedEvaluation as AggregatedEvaluation,
        AggregationOverview as AggregationOverview,
        Dataset as Dataset,
        Evaluation as Evaluation,
        EvaluationFailed as EvaluationFailed,
        EvaluationOverview as EvaluationOverview,
        Example as Example,
        ExampleEvaluation as ExampleEvaluation,
        ExampleOutput as ExampleOutput,
        ExpectedOutput as ExpectedOutput,
        FailedExampleEvaluation as FailedExampleEvaluation,
        FailedExampleRun as FailedExampleRun,
        JsonSerializable as JsonSerializable,
        PartialEvaluationOverview as PartialEvaluationOverview,
        RecoveryData as RecoveryData,
        RunOverview as RunOverview,
        SerializableDict as SerializableDict,
        SuccessfulExampleOutput as SuccessfulExampleOutput,
        Task as Task,
    )
    from evaluand.interop.pharia.elo import (
        AggregatedComparison as AggregatedComparison,
        ComparisonEvaluationAggregationLogic as ComparisonEvaluationAggregationLogic,
        EloAggregationAdapter as EloAggregationAdapter,
        EloCalculator as EloCalculator,
        MatchesAggregationLogic as MatchesAggregationLogic,
        PlayerScore as PlayerScore,
        WinRateCalculator as WinRateCalculator,
    )
    from evaluand.interop.pharia.evaluations import (
        AggregationRepository as AggregationRepository,
        AsyncEvaluationRepository as AsyncEvaluationRepository,
        AsyncFileEvaluationRepository as AsyncFileEvaluationRepository,
        AsyncInMemoryEvaluationRepository as AsyncInMemoryEvaluationRepository,
        EvaluationRepository as EvaluationRepository,
        FileAggregationRepository as FileAggregationRepository,
        FileEvaluationRepository as FileEvaluationRepository,
        FileSystemAggregationRepository as FileSystemAggregationRepository,
        FileSystemEvaluationRepository as FileSystemEvaluationRepository,
        InMemoryAggregationRepository as InMemoryAggregationRepository,
        InMemoryEvaluationRepository as InMemoryEvaluationRepository,
        SerializedExampleEvaluation as SerializedExampleEvaluation,
    )
    from evaluand.interop.pharia.evaluator import Evaluator as Evaluator, EvaluatorBase as EvaluatorBase
    from evaluand.interop.pharia.example_tasks import (
        Chunk as Chunk,
        ChunkInput as ChunkInput,
        ChunkOutput as ChunkOutput,
        ChunkWithIndices as ChunkWithIndices,
        ChunkWithIndicesOutput as ChunkWithIndicesOutput,
        ChunkWithStartEndIndices as ChunkWithStartEndIndices,
        CompleteOutput as CompleteOutput,
        DetectLanguage as DetectLanguage,
        DetectLanguageInput as DetectLanguageInput,
        DetectLanguageOutput as DetectLanguageOutput,
        Instruct as Instruct,
        InstructInput as InstructInput,
        Language as Language,
        LanguageNotSupportedError as LanguageNotSupportedError,
        TextChunk as TextChunk,
    )
    from evaluand.interop.pharia.file_systems import FileSystemBasedRepository as FileSystemBasedRepository
    from evaluand.interop.pharia.graders import (
        Accumulator as Accumulator,
        BleuGrader as BleuGrader,
        FScores as FScores,
        HighlightCoverageGrader as HighlightCoverageGrader,
        IndexRange as IndexRange,
        LanguageMatchesGrader as LanguageMatchesGrader,
        MeanAccumulator as MeanAccumulator,
        RougeGrader as RougeGrader,
    )
    from evaluand.interop.pharia.hugging_face import (
        HuggingFaceAggregationRepository as HuggingFaceAggregationRepository,
        HuggingFaceDatasetRepository as HuggingFaceDatasetRepository,
        HuggingFaceRepository as HuggingFaceRepository,
        MultipleChoiceInput as MultipleChoiceInput,
        SingleHuggingfaceDatasetRepository as SingleHuggingfaceDatasetRepository,
    )
    from evaluand.interop.pharia.incremental import (
        ComparisonEvaluation as ComparisonEvaluation,
        EloEvaluationLogic as EloEvaluationLogic,
        EloGradingInput as EloGradingInput,
        IncrementalEvaluationLogic as IncrementalEvaluationLogic,
        IncrementalEvaluator as IncrementalEvaluator,
        Matches as Matches,
        MatchOutcome as MatchOutcome,
    )
    from evaluand.interop.pharia.labelling import AsyncEvaluator as AsyncEvaluator, LabellingLogic as LabellingLogic
    from evaluand.interop.pharia.lineage import (
        EXAMPLE_EVAL_TYPE as EXAMPLE_EVAL_TYPE,
        EXAMPLE_OUTPUT_TYPE as EXAMPLE_OUTPUT_TYPE,
        EvaluationLineage as EvaluationLineage,
        RepositoryNavigator as RepositoryNavigator,
        RunLineage as RunLineage,
        aggregation_overviews_to_pandas as aggregation_overviews_to_pandas,
        evaluation_lineages_to_pandas as evaluation_lineages_to_pandas,
        run_lineages_to_pandas as run_lineages_to_pandas,
    )
    from evaluand.interop.pharia.logic import (
        AggregationLogic as AggregationLogic,
        EvaluationLogic as EvaluationLogic,
        EvaluationLogicBase as EvaluationLogicBase,
        SingleOutputEvaluationLogic as SingleOutputEvaluationLogic,
    )
    from evaluand.interop.pharia.run_evaluation import (
        create_task as create_task,
        function_from_string as function_from_string,
        main as main,
        parse_args as parse_args,
    )
    from evaluand.interop.pharia.runner import Runner as Runner
    from evaluand.interop.pharia.runs import (
        FileRunRepository as FileRunRepository,
        FileSystemRunRepository as FileSystemRunRepository,
        InMemoryRunRepository as InMemoryRunRepository,
        RunRepository as RunRepository,
    )
    from evaluand.interop.pharia.to_native import (
        as_judge as as_judge,
        as_scorer as as_scorer,
        dataset_of as dataset_of,
        native_dataset as native_dataset,
        native_evaluation as native_evaluation,
        native_matches as native_matches,
    )
    from evaluand.interop.pharia.tracers import (
        Span as Span,
        TaskSpan as TaskSpan,
        extract_latency_from_trace as extract_latency_from_trace,
        extract_token_count_from_trace as extract_token_count_from_trace,
    )
    from evaluand.run.task import MAX_CONCURRENCY as MAX_CONCURRENCY, Input as Input, Output as Output
    from evaluand.trace.export import (
        Context as Context,
        ErrorValue as ErrorValue,
        Event as Event,
        ExportedSpan as ExportedSpan,
        ExportedSpanList as ExportedSpanList,
        LogEntry as LogEntry,
        PydanticSerializable as PydanticSerializable,
        SpanAttributes as SpanAttributes,
        SpanStatus as SpanStatus,
        SpanType as SpanType,
        TaskSpanAttributes as TaskSpanAttributes,
        utc_now as utc_now,
    )
    from evaluand.trace.tracer import Tracer as Tracer
    from evaluand.trace.tracers.composite import CompositeTracer as CompositeTracer
    from evaluand.trace.tracers.file import FileTracer as FileTracer, TracerLogEntryFailed as TracerLogEntryFailed
    from evaluand.trace.tracers.in_memory import (
        InMemorySpan as InMemorySpan,
        InMemoryTaskSpan as InMemoryTaskSpan,
        InMemoryTracer as InMemoryTracer,
    )
    from evaluand.trace.tracers.no_op import NoOpTracer as NoOpTracer
    from evaluand.trace.tracers.open_telemetry import OpenTelemetryTracer as OpenTelemetryTracer

__getattr__, __dir__ = interop_names(__name__, REPLACEMENTS)
