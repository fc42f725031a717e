"""Names of TruLens that this package does not offer, and what to use instead; shown on import and in the guide."""

from __future__ import annotations

from typing import Final

REPLACEMENTS: Final = {
    "Huggingface(local=True) judges in this process; others are asked by a Provider of your own with RemoteProvider": (
        "AzureOpenAI",
        "Bedrock",
        "Cohere",
        "Cortex",
        "Langchain",
        "LiteLLM",
        "LLMProvider",
        "OpenAI",
    ),
    "nothing has to be opened: give apps store=DirectoryStore(folder), and see `evaluand leaderboard`": (
        "Tru",
        "TruSession",
    ),
    "open the folder by `evaluand leaderboard`, `evaluand show` and `evaluand report`, which writes one page": (
        "Dashboard",
        "run_dashboard",
    ),
    "wrap the object in TruApp and select by Select.RecordCalls.<path>.<method>": (
        "NeMo",
        "TruGraph",
        "TruRails",
    ),
    "a Feedback is the metric; a Lens, or Select, is the selector": (
        "Metric",
        "Selector",
        "SnowflakeFeedback",
    ),
    "judge a run or a recording as a whole: Evaluator().evaluate(run, feedbacks), or FeedbackMode.DEFERRED": (
        "BatchEvaluator",
        "SamplingConfig",
    ),
    "give several judges as feedbacks of their own, and compare them in one evaluation": (
        "FewShotOptimizer",
        "Jury",
        "OptimizeResult",
    ),
    "Huggingface(local=True) and GroundTruthAgreement compare by embeddings": ("Embeddings",),
    "a function that validates is a feedback: it returns 1.0 or 0.0 and a dictionary with the reason": (
        "SchemaValidator",
    ),
}
"""Advice → the names it replaces."""
