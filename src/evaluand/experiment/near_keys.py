"""Keys and shapes of experiment files that people try first, and what to write instead."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Final

from evaluand.core import registry
from evaluand.core.files.yaml import Place
from evaluand.judges.rubric import rubric_names
from evaluand.metrics.names import is_name

_Near = Mapping[str, tuple[str, str]]
"""Key → the key that is meant, and what to write."""

_DATASET: Final = ("dataset", "dataset: {path: FILE, input: COLUMN, expected: COLUMN}")
_TASKS: Final = ("tasks", "tasks: {mine: app.py:answer}")
_CHAT: Final = ("tasks", "tasks: {ask: {kind: chat, model: PROVIDER/NAME, prompt: …}}, or {mine: app.py:answer}")
_SCORERS: Final = ("scorers", "scorers: {right: exact_match}")
_GATES: Final = ("gates", "gates: [accuracy >= 0.9]")
_MATCHES: Final = ("matches", "matches: {judge: judge.py:better}")
_BY: Final = ("metrics", "by in an entry of metrics: metrics: [{kind: accuracy, by: COLUMN}]")

_TOP: Final[_Near] = {
    **dict.fromkeys(("data", "datasets", "tests", "examples", "samples", "test_data", "cases"), _DATASET),
    **dict.fromkeys(("task", "system", "systems", "target", "solver", "app"), _TASKS),
    **dict.fromkeys(("model", "models", "llm", "provider", "providers", "prompt", "prompts", "messages"), _CHAT),
    **dict.fromkeys(("scorer", "evaluator", "evaluators", "grader", "graders", "assert", "judge", "judges"), _SCORERS),
    **dict.fromkeys(("metric", "measures", "measure"), ("metrics", "metrics: [accuracy]")),
    **dict.fromkeys(
        ("match", "pairwise", "tournament", "battles", "arena", "comparisons", "compare", "rating", "ratings", "elo"),
        _MATCHES,
    ),
    **dict.fromkeys(("gate", "thresholds", "threshold", "assertions", "checks"), _GATES),
    **dict.fromkeys(("by", "groups", "group_by", "slices", "sensitive_features"), _BY),
    "problems": ("", "`evaluand suite FILE`, if the file is a suite"),
    **dict.fromkeys(("limit", "max_samples", "max_examples"), ("", "evaluand run FILE --limit N")),
    **dict.fromkeys(("epochs", "repeats", "num_fewshot_repeats"), ("run", "run: {replications: N}")),
    **dict.fromkeys(("max_concurrency", "parallel"), ("run", "run: {concurrency: N}")),
    **dict.fromkeys(
        ("workers", "max_workers", "processes", "executor", "backend"),
        ("engine", "engine: {kind: processes, workers: N}"),
    ),
    **dict.fromkeys(("store", "output", "output_dir", "output_path"), ("", "evaluand run FILE --store FOLDER")),
    **dict.fromkeys(("max_cost", "cost_limit", "cost", "max_budget"), ("budget", "budget: 5 USD")),
    **dict.fromkeys(("price", "pricing", "price_table"), ("prices", "prices: FILE.yaml")),
    **dict.fromkeys(("description", "comment"), ("", "it as a comment: # …")),
}
_OF_DATASET: Final[_Near] = {
    **dict.fromkeys(
        (
            "target",
            "targets",
            "label",
            "labels",
            "ground_truth",
            "reference",
            "reference_answer",
            "expected_output",
            "gold",
            "answer",
            "truth",
            "output",
            "y",
            "y_true",
            "ideal",
        ),
        ("expected", "expected: COLUMN"),
    ),
    **dict.fromkeys(
        ("inputs", "prompt", "question", "query", "features", "x", "X", "text"), ("input", "input: COLUMN")
    ),
    **dict.fromkeys(("file", "filename", "file_name", "source", "url", "data", "csv", "json"), ("path", "path: FILE")),
    **dict.fromkeys(
        ("rows", "examples", "samples", "records", "items"),
        ("path", "the rows into a file, one JSON object per line, and name it: path: rows.jsonl"),
    ),
    **dict.fromkeys(("by", "groups", "group_by"), ("attributes", "attributes: [COLUMN]")),
    **dict.fromkeys(("filter", "query"), ("where", 'where: sex == "F" and age > 30')),
    **dict.fromkeys(("limit", "max_samples"), ("", "evaluand run FILE --limit N")),
    **dict.fromkeys(("sample_weight", "weights"), ("weight", "weight: COLUMN")),
}
_OF_RUN: Final[_Near] = {
    **dict.fromkeys(
        ("workers", "max_workers", "max_concurrency", "parallel", "n_jobs", "threads"),
        ("concurrency", "concurrency: N"),
    ),
    **dict.fromkeys(("epochs", "repeats", "repeat", "trials"), ("replications", "replications: N")),
    **dict.fromkeys(("max_retries", "retry"), ("retries", "retries: N")),
    **dict.fromkeys(("random_state", "random_seed"), ("seed", "seed: N")),
    **dict.fromkeys(("limit", "max_samples"), ("", "evaluand run FILE --limit N")),
    **dict.fromkeys(("budget", "max_cost"), ("", "it beside run: budget: 5 USD")),
    **dict.fromkeys(("prices", "pricing"), ("", "it beside run: prices: FILE.yaml")),
}
_OF_MATCHES: Final[_Near] = {
    **dict.fromkeys(
        ("scorer", "comparison", "comparison_scorer", "judges", "function", "by", "grader", "evaluator"),
        ("judge", "judge: judge.py:better, or judge: {by_score: exact_match}"),
    ),
    **dict.fromkeys(("by_score",), ("judge", "judge: {by_score: exact_match}")),
    **dict.fromkeys(("recorded", "battles", "path", "file"), ("judge", "judge: {recorded: battles.jsonl}")),
    **dict.fromkeys(("baseline", "against", "reference"), ("schedule", "schedule: {against_baseline: TASK}")),
    **dict.fromkeys(("order", "swap", "both_orders", "randomize"), ("orders", "orders: both, or random")),
    **dict.fromkeys(("systems", "models", "players", "task"), ("tasks", "tasks: [NAME]")),
    **dict.fromkeys(("ratings", "method", "elo", "bradley_terry"), ("rating", "rating: bradley_terry")),
    **dict.fromkeys(("random_state", "random_seed"), ("seed", "seed: N")),
}
_NEAR: Final[Mapping[Place, _Near]] = {
    (): _TOP,
    ("dataset",): _OF_DATASET,
    ("matches",): _OF_MATCHES,
    ("run",): _OF_RUN,
}

_MISSING: Final = {
    ("name",): "name: NAME, under which results are stored",
    ("dataset",): _DATASET[1],
    ("tasks",): _TASKS[1],
    ("scorers",): "scorers: {right: exact_match}, or prediction for classes and numbers",
    ("metrics",): "metrics: [accuracy]",
    ("dataset", "path"): "path: FILE",
    ("budget", "cost"): "cost: 5",
    ("budget", "currency"): "currency: USD",
    ("matches", "judge"): "judge: judge.py:better, or judge: {by_score: exact_match}",
}


def meant_key(place: Place) -> str | None:
    """The key at this level that an unknown key means.

    Example:
        >>> meant_key(("data",)), meant_key(("dataset", "label")), meant_key(("colour",))
        ('dataset', 'expected', None)
    """
    near = _near_of(place)
    if near is None and place[:-1] == () and place[-1] in _RUN_KEYS:
        return "run"
    return None if near is None else near[0]


def advice(place: Place) -> str | None:
    """What to write in place of an unknown key, or for a missing one.

    Example:
        >>> advice(("gate",)), advice(("metrics",))
        ('gates: [accuracy >= 0.9]', 'metrics: [accuracy]')
    """
    if (named := _without_numbers(place)) in _MISSING:
        return _MISSING[named]
    if place[:-1] == () and place[-1] in _RUN_KEYS:
        return f"it under run: run: {{{place[-1]}: …}}"
    near = _near_of(place) if place else None
    return None if near is None else near[1]


def _near_of(place: Place) -> tuple[str, str] | None:
    return _NEAR.get(_without_numbers(place[:-1]), {}).get(str(place[-1]))


def _without_numbers(place: Place) -> Place:
    """The place of a part of matches as if there were one set of matches."""
    return tuple(step for step in place if not isinstance(step, int)) if place[:1] == ("matches",) else place


_RUN_KEYS: Final = frozenset(
    (
        "concurrency",
        "seed",
        "timeout",
        "retries",
        "replications",
        "rate",
        "total_timeout",
        "abort_on_error",
    )
)


def entry_advice(place: Place, entry: Any) -> str | None:
    """What to write for an entry of tasks, scorers or metrics that is neither a kind nor code.

    Example:
        >>> entry_advice(("metrics", 0), {"metric": "f1"}), entry_advice(("tasks", "mine"), {"path": "said.csv"})
        ('kind: f1', 'kind: recorded and response: COLUMN too')
    """
    if place[:1] == ("matches",) and isinstance(entry, Mapping) and place[-1] == "judge" and "scorer" in entry:
        return f"by_score: {entry['scorer']}" if isinstance(entry["scorer"], str) else "kind: by_score too"
    if place == ("dataset",) and isinstance(entry, list):
        return "{path: rows.jsonl}, a file with one JSON object per line"
    if not place or not isinstance(entry, Mapping):
        return None
    if "kind" in entry:
        return "function without kind" if "function" in entry else None
    for key in ("metric", "scorer", "name", "type", "id", "class"):
        if isinstance(entry.get(key), str):
            return f"function: {entry[key]}" if ":" in entry[key] else f"kind: {entry[key]}"
    if place[0] == "tasks" and "path" in entry:
        return "kind: recorded too" if "response" in entry else "kind: recorded and response: COLUMN too"
    if place[0] == "tasks" and {"prompt", "prompts", "messages", "models"} & {*entry}:
        return "kind: chat too"
    if place[0] == "tasks" and "url" in entry:
        return "kind: service too"
    if len(entry) == 1:
        [(name, value)] = entry.items()
        if place[0] == "scorers" and isinstance(value, str):
            return f"the entries without dashes, as {name}: {value}"
    return None


def word_advice(group: str, word: str) -> str | None:
    """What to write for a task or scorer that is one unknown word.

    Example:
        >>> word_advice("tasks", "app.answer"), word_advice("scorers", "f1")[:40]
        ('write app:answer', "'f1' is a metric: name it under metrics,")
    """
    if group == "scorers":
        if is_name(word):
            return f"{word!r} is a metric: name it under metrics, and here prediction or exact_match"
        near = _SCORER_WORDS.get(name := word.lower().replace("-", "_")) or _rubric_words(name)
        return None if near is None else f"write {near}"
    if group == "comparison_scorers":
        if word.startswith("pairwise") and (near := _rubric_words(word)):
            return f"write {near}"
        return f"a function is {{function: judge.py:{word if word.isidentifier() else 'FUNCTION'}}}, or judge.py:NAME"
    if group != "tasks":
        return None
    if "/" in word and word.partition("/")[0] in _TASK_WORDS:
        return f"a chat model is {{kind: chat, model: {word}, prompt: …}}"
    suffix = PurePath(word).suffix[1:]
    if suffix == "py":
        return f"name the function too: {word}:NAME"
    if suffix in registry.names("formats"):
        return f"predictions in a file are {{kind: recorded, path: {word}, response: COLUMN}}"
    if suffix.isidentifier() and "/" not in word:
        return f"write {word[: -len(suffix) - 1]}:{suffix}"
    return _TASK_WORDS.get(word.lower())


def _rubric_words(word: str) -> str | None:
    """How a judge with a rubric is written, for the name of the rubric or a usual word for it."""
    name = _RUBRIC_WORDS.get(word, word)
    return f"{{kind: judge, rubric: {name}, model: MODEL}}" if name in rubric_names() else None


_RUBRIC_WORDS: Final = {
    **dict.fromkeys(("llm_rubric", "llm_judge", "judge", "geval", "g_eval", "rubric"), "correctness"),
    **dict.fromkeys(("factuality", "model_graded_qa", "closedqa"), "question_answering"),
    **dict.fromkeys(("hallucination", "groundedness_with_cot_reasons"), "groundedness"),
    **dict.fromkeys(("relevance", "answer_relevancy"), "answer_relevance"),
    **dict.fromkeys(("context_precision", "contextual_relevancy"), "context_relevance"),
    **dict.fromkeys(("toxicity", "harmful"), "harmfulness"),
    **dict.fromkeys(("bias", "stereotype"), "stereotypes"),
    "model_graded_fact": "fact_check",
}
_SCORER_WORDS: Final = {
    **dict.fromkeys(("contains", "icontains", "contain", "substring"), "includes"),
    **dict.fromkeys(("match", "equals", "equality", "exact", "string_match", "em", "is_equal"), "exact_match"),
    **dict.fromkeys(("regex", "regexp", "re"), "{kind: pattern, pattern: REGEX}"),
    **dict.fromkeys(("numeric", "number", "is_close"), "numeric_answer"),
    **dict.fromkeys(("json", "is_json", "json_match"), "json_equality"),
    **dict.fromkeys(("classification", "label", "class", "regression"), "prediction"),
    **dict.fromkeys(("code", "unit_tests", "execution", "humaneval", "human_eval", "mbpp"), "code_tests"),
    **dict.fromkeys(("ifeval", "if_eval", "instruction_following", "instruction"), "instructions"),
    **dict.fromkeys(("python", "function", "javascript", "custom"), "grading.py:FUNCTION"),
}


def parameter_advice(kind: str, name: str) -> str | None:
    """What to write in place of a parameter that a kind of task does not have.

    Example:
        >>> parameter_advice("chat", "system_prompt"), parameter_advice("chat", "temperature")
        ('system', 'it into the model: model: {…, temperature: …}')
    """
    if kind != "chat":
        return None
    if name in _OF_MODELS:
        return f"it into the model: model: {{…, {name}: …}}"
    return _CHAT_PARAMETERS.get(name)


_OF_MODELS: Final = ("temperature", "max_tokens", "top_p", "url", "base_url", "api_key", "version", "rate", "cache")
_CHAT_PARAMETERS: Final = {
    **dict.fromkeys(("template", "user", "instruction", "question", "prompt_template"), "prompt"),
    **dict.fromkeys(("system_prompt", "system_message", "developer"), "system"),
    **dict.fromkeys(("few_shot", "fewshot", "shots", "demonstrations"), "examples: {path: FILE, expected: COLUMN}"),
    **dict.fromkeys(("turns", "conversation", "chat_history"), "history: COLUMN"),
    **dict.fromkeys(("functions", "function_calling"), "tools: [tools.py:NAME]"),
    **dict.fromkeys(("max_steps", "max_iterations", "recursion_limit"), "max_turns"),
    **dict.fromkeys(("schema", "response_format", "json_schema", "output_format"), "response_schema"),
    **dict.fromkeys(("llm", "provider", "name"), "model: PROVIDER/NAME"),
}
_INSTRUCT: Final = "a chat model is {kind: chat, model: PROVIDER/NAME, prompt: …}"
_TASK_WORDS: Final = {
    **dict.fromkeys(("openai", "azure", "llm", "model", "anthropic", "ollama", "vllm", "completion"), _INSTRUCT),
    **dict.fromkeys(("http", "https", "api", "endpoint"), "a service is {kind: service, url: URL}"),
    **dict.fromkeys(("exec", "shell", "command", "script"), "a program is {kind: program, command: COMMAND}"),
    **dict.fromkeys(("sklearn", "classifier", "regressor"), "an estimator is {kind: estimator, model: model.py:NAME}"),
    **dict.fromkeys(("python", "function", "code"), "code is {function: app.py:NAME}"),
    **dict.fromkeys(
        ("predictions", "file", "csv"), "predictions in a file are {kind: recorded, path: FILE, response: COLUMN}"
    ),
}
