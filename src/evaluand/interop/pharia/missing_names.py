"""Names of the SDKs that are not here, with what does their work: read where one is imported, and in the guide."""

from __future__ import annotations

from typing import Final

_INSTEAD: Final = {
    "evaluate_runs(*run_ids) takes old runs and new; natively, what was graded is not graded again": (
        "IncrementalEvaluationLogic",
        "IncrementalEvaluator",
    ),
    "evaluand.compare ranks evaluations, with intervals and the examples won and lost": (
        "AggregatedComparison",
        "ComparisonEvaluation",
        "ComparisonEvaluationAggregationLogic",
        "EloCalculator",
        "EloEvaluationLogic",
        "EloGradingInput",
        "MatchOutcome",
        "Matches",
        "MatchesAggregationLogic",
        "WinRateCalculator",
    ),
    "AsyncEvaluator with a LabellingLogic writes a file for people to fill in, and takes their labels": (
        "ArgillaClient",
        "ArgillaEvaluation",
        "ArgillaEvaluationLogic",
        "ArgillaEvaluator",
        "InstructComparisonArgillaEvaluationLogic",
        "Record",
        "RecordData",
        "RecordDataSequence",
    ),
    "download the folder (hf download) and open it with FileDatasetRepository or FileAggregationRepository": (
        "HuggingFaceAggregationRepository",
        "HuggingFaceDatasetRepository",
        "HuggingFaceRepository",
        "SingleHuggingfaceDatasetRepository",
    ),
    "nothing is sent to Studio; keep datasets in a FileDatasetRepository, results in the other File repositories, and "
    "show them with native_evaluation and evaluand report": (
        "StudioBenchmark",
        "StudioBenchmarkRepository",
        "StudioClient",
        "StudioDataset",
        "StudioDatasetRepository",
        "StudioExample",
        "StudioProject",
    ),
    "evaluand.ChatModel asks any endpoint that speaks the protocol of chat completions; Instruct and tasks take it": (
        "AlephAlphaChatModel",
        "AlephAlphaModel",
        "ChatModel",
        "CompleteInput",
        "ControlModel",
        "FinetuningMessage",
        "LanguageModel",
        "Llama2InstructModel",
        "Llama3ChatModel",
        "Llama3InstructModel",
        "LuminousControlModel",
        "Message",
        "Pharia1ChatModel",
    ),
    "write prompts as f-strings, and ask an evaluand.ChatModel": (
        "Cursor",
        "PromptItemCursor",
        "PromptRange",
        "PromptTemplate",
        "RichPrompt",
        "TextCursor",
    ),
    "nothing is in its place; it needs a model that tells probabilities or what it attends to": (
        "Echo",
        "EchoInput",
        "EchoOutput",
        "ExplainInput",
        "ExplainOutput",
        "ScoredTextHighlight",
        "TextHighlight",
        "TextHighlightInput",
        "TextHighlightOutput",
        "Token",
        "TokenWithLogProb",
    ),
    "FileTracer writes the lines of trace files, and FileTracer(path).traces() reads them": (
        "EndSpan",
        "EndTask",
        "FileSpan",
        "FileTaskSpan",
        "LogLine",
        "PersistentSpan",
        "PersistentTaskSpan",
        "PersistentTracer",
        "PlainEntry",
        "StartSpan",
        "StartTask",
    ),
    "PydanticSerializable says what traces take": ("JsonSerializer",),
    "declare a model of your own with pydantic": ("MultipleChoiceInput",),
}

INSTEAD: Final = {name: instead for instead, names in _INSTEAD.items() for name in names}
"""Name → a sentence on what to take instead."""
