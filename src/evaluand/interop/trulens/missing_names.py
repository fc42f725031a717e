"""Names of TruLens that this package does not offer, and what to use instead; shown on import and in the guide."""

from typing import Final

REPLACEMENTS: Final = {
    "no session is needed: pass store=DirectoryStore(folder) to apps, and run `evaluand leaderboard`": (
        "Tru",
        "TruSession",
    ),
    "run `evaluand leaderboard`, `evaluand show`, or `evaluand report`, which writes one page, on the store's folder": (
        "Dashboard",
        "run_dashboard",
    ),
    "wrap the object in TruApp and select with Select.RecordCalls.<path>.<method>": ("TruGraph",),
    "use Feedback for the metric, and Lens or Select for the selector": (
        "Metric",
        "Selector",
        "SnowflakeFeedback",
    ),
    "evaluate a complete run or recording: Evaluator().evaluate(run, feedbacks), or FeedbackMode.DEFERRED": (
        "BatchEvaluator",
        "SamplingConfig",
    ),
    "pass several judges as separate feedbacks, and compare them in one evaluation": (
        "FewShotOptimizer",
        "Jury",
        "OptimizeResult",
    ),
    "use Huggingface(local=True) or GroundTruthAgreement, which compare by embeddings": ("Embeddings",),
    "write a feedback function that validates: it returns 1.0 or 0.0 and a dictionary with the reason": (
        "SchemaValidator",
    ),
}
"""Advice → the names it replaces."""
