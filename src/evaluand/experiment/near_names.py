"""Names that people look for in evaluand first, and what to write instead."""

from typing import Final

from evaluand.metrics.names import usage

_READ: Final = "Dataset.from_data(PATH, input=…, expected=…)"
_FROM_FILE: Final = 'Experiment.from_file("experiment.yaml")'
_NEAR: Final = {
    **dict.fromkeys(("load", "read", "load_dataset", "read_csv", "read_json", "from_csv", "from_pandas"), _READ),
    **dict.fromkeys(("load_experiment", "from_yaml", "from_file", "run_experiment"), _FROM_FILE),
    **dict.fromkeys(("evaluate_dataset", "assess", "test", "benchmark"), "evaluate(truth, predictions)"),
    **dict.fromkeys(("score", "score_file"), "evaluate(truth, predictions, data=PATH), or evaluand.predictions.score"),
    **dict.fromkeys(
        ("scorers", "ExactMatch", "exact_match", "Prediction"),
        "evaluand.evaluation, such as evaluand.evaluation.ExactMatch",
    ),
    **dict.fromkeys(("tasks", "models"), "evaluand.run, or evaluand.task to mark a function"),
    **dict.fromkeys(("list_metrics", "available_metrics", "METRICS"), "evaluand list metrics in a shell"),
    **dict.fromkeys(("Metric", "BaseMetric"), "evaluand.metrics.Metric"),
    **dict.fromkeys(("set_store", "init", "connect"), "DirectoryStore(FOLDER), and pass it as store"),
    **dict.fromkeys(("to_html", "html"), "evaluand report NAME in a shell"),
    **dict.fromkeys(("F1", "F1Score", "FScore"), "FBeta(), or the name metrics='f1'"),
    **dict.fromkeys(("AUC", "ROCAUC"), "RocAuc(), or the name metrics='auc'"),
    **dict.fromkeys(("Model", "LLM", "OpenAI"), "ChatModel(url=…, name=…)"),
    **dict.fromkeys(("Chat", "Prompt", "PromptTemplate", "LLMTask"), "ChatTask(model, prompt=…)"),
    **dict.fromkeys(("Estimator", "sklearn"), "EstimatorTask(model)"),
    **dict.fromkeys(("judge", "Judge", "LLMJudge"), "evaluand.judges.Judge(rubric=…, model=…)"),
    "traced": "with span(NAME)",
    "confusion_matrix": 'evaluate(truth, predictions, metrics="confusion_matrix")',
}


def explain(name: str) -> str | None:
    """What to write in place of a name that evaluand does not have.

    Example:
        >>> explain("accuracy_score")
        'evaluate(truth, predictions, metrics="accuracy_score")'
    """
    return _NEAR.get(name) or usage(name)
