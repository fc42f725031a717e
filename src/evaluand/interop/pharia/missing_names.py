"""Names of the SDKs that this package does not have, and their replacements; shown on import and in the guide."""

from typing import Final

REPLACEMENTS: Final = {
    "download the folder (hf download) and open it with FileDatasetRepository or FileAggregationRepository": (
        "HuggingFaceAggregationRepository",
        "HuggingFaceDatasetRepository",
        "HuggingFaceRepository",
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
    "use evaluand.ChatModel with any endpoint of the chat completions protocol; Instruct and tasks accept it": (
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
    "write prompts as f-strings and send them to an evaluand.ChatModel": (
        "Cursor",
        "PromptItemCursor",
        "PromptRange",
        "PromptTemplate",
        "RichPrompt",
        "TextCursor",
    ),
    "there is no replacement; it needs a model that returns token probabilities or attention": (
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
    "use FileTracer, which writes trace files, and FileTracer(path).traces(), which reads them": (
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
    "use PydanticSerializable, the type of values in traces": ("JsonSerializer",),
}
"""Advice → the names it replaces."""
