"""The short forms of an experiment file, written out.

The models of `spec` have only the long forms:

    dataset: questions.jsonl      dataset: {path: questions.jsonl}
    scorers: exact_match          scorers: {exact_match: {kind: exact_match}}
    tasks: [app.py:answer]        tasks: {answer: {function: app.py:answer}}
    metrics: {kind: mean}         metrics: [{kind: mean}]
"""

from collections.abc import Mapping
from typing import Any, get_args

from evaluand.core import registry
from evaluand.core.files.yaml import Document, Place
from evaluand.experiment.task_matrix import expand_matrices
from evaluand.matches.ratings.method import Kind as RatingKind
from evaluand.metrics.names import is_name, resolve_metric


def write_out(document: Document, model: str | None) -> dict[str, Any]:
    """The content of a file with every part in its long form; adds faults to the document.

    Args:
        model: the model of all tasks that take one, in place of those in the file; or the name of one of `models`.

    Raises:
        SpecError: no task takes a model.
    """
    value = _expand_texts(_renamed(document.value))
    if isinstance(document.value.get("metrics"), Mapping) and isinstance(value["metrics"], list):
        document.place(("metrics", 0), ("metrics",))
    if isinstance(value.get("tasks"), dict):
        value["tasks"] = expand_matrices(value["tasks"], document, model)
    for group in registry.NAMED:
        if isinstance(value.get(group), dict):
            value[group] = {name: _expand(entry, document, group, name) for name, entry in value[group].items()}
    if isinstance(value.get("metrics"), list):
        value["metrics"] = [_expand_metric(entry) if isinstance(entry, str) else entry for entry in value["metrics"]]
    if isinstance(value.get("matches"), list):
        value["matches"] = [
            expand_matches(_with_text_version(entry, document, i)) for i, entry in enumerate(value["matches"])
        ]
    return value


def _renamed(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """A file of an earlier version with the present names: `run: {processes: true}` is now `engine: processes`."""
    run = value.get("run")
    if not isinstance(run, Mapping) or not isinstance(run.get("processes"), bool):
        return value
    rest = {key: part for key, part in run.items() if key != "processes"}
    workers = {"workers": run["concurrency"]} if type(run.get("concurrency")) is int else {}
    engine = {"engine": {"kind": "processes", **workers}} if run["processes"] else {}
    return {**engine, **value, "run": rest}


def expand_matches(entry: Any) -> Any:
    """Matches with judge and schedule in their long forms; the short form is the judge alone."""
    if not isinstance(entry, Mapping | str):
        return entry
    full = {"judge": entry} if isinstance(entry, str) else {**entry}
    for key in ("judge", "schedule", "rating"):
        if isinstance(word := full.get(key), str):
            full[key] = long_form(word) if key == "judge" else {"kind": word}
        elif isinstance(word, Mapping):
            full[key] = expand_kind(word) if key != "rating" or {*word} & {*get_args(RatingKind)} else word
    return full


def place_of_matches(document: Document, number: int) -> Place:
    """The path to an entry of matches; a single entry may be written without a list."""
    return ("matches", number) if isinstance(document.value["matches"], list) else ("matches",)


def long_form(word: str) -> dict[str, str]:
    """An entry that is one word: `file.py:name` is code, any other a kind."""
    return {"function" if ":" in word else "kind": word}


def _expand_texts(value: Mapping[str, Any]) -> dict[str, Any]:
    """Parts that are one text or entry, and lists of tasks and scorers, in the long form; texts become names."""
    full = {**value}
    if isinstance(full.get("dataset"), str):
        full["dataset"] = {"path": full["dataset"]}
    for group in ("metrics", "gates"):
        if isinstance(full.get(group), str):
            full[group] = [full[group]]
    if isinstance(metric := full.get("metrics"), Mapping) and {"kind", "function"} & {*metric}:
        full["metrics"] = [metric]
    if isinstance(full.get("matches"), Mapping | str):
        full["matches"] = [full["matches"]]
    for group in ("tasks", "scorers"):
        words = [full[group]] if isinstance(full.get(group), str) else full.get(group)
        if isinstance(words, list) and words and all(isinstance(word, str) for word in words):
            named = {word.rpartition(":")[2]: word for word in words}
            full[group] = named if len(named) == len(words) else words
    return full


def _expand(entry: Any, document: Document, group: str, name: str) -> Any:
    """A task or scorer in its long form: the short form `file.py:name` is code, any other word a kind.

    Version and model stay text even if YAML reads numbers: 1.10 is not 1.1.
    """
    if isinstance(entry, str):
        document.place((group, name, "kind"), (group, name))
        return long_form(entry)
    if not isinstance(entry, dict):
        return entry
    numbers = [key for key in ("version", "model") if type(entry.get(key)) in (int, float)]
    return entry | {key: document.text(group, name, key) for key in numbers}


def _expand_metric(name: str) -> dict[str, Any]:
    """A metric's name or place in the long form; an unknown name is reported where metrics are built."""
    if ":" in name:
        return {"function": name}
    if not is_name(name):
        return {"kind": name}
    kind, parameters = resolve_metric(name)
    return {"kind": kind, **parameters}


def _with_text_version(entry: Any, document: Document, number: int) -> Any:
    """An entry of matches in which the version of the judge is text as written: 1.10 is not 1.1."""
    judge = entry.get("judge") if isinstance(entry, Mapping) else None
    if not isinstance(judge, Mapping) or type(judge.get("version")) not in (int, float):
        return entry
    text = document.text(*place_of_matches(document, number), "judge", "version")
    return {**entry, "judge": {**judge, "version": text}}


def expand_kind(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """`{by_score: {scorer: exact_match}}` or `{by_score: exact_match}` as `{kind: by_score, scorer: exact_match}`."""
    [(name, value), *others] = [*entry.items()] or [("", None)]
    if others or name in ("kind", "function"):
        return entry
    if isinstance(value, Mapping) and not (name in _ONLY_PARAMETER and {"kind", "function"} & {*value}):
        return {**value, "kind": name}
    return {"kind": name, _ONLY_PARAMETER[name]: value} if name in _ONLY_PARAMETER else entry


_ONLY_PARAMETER = {"by_score": "scorer", "recorded": "path", "against_baseline": "baseline"}
"""The parameter of a kind of judge or schedule that is written as `kind: value`."""
