"""Entries that stand for several tasks: each prompt with each model.

    ask: {kind: chat, prompts: {short: …, long: …}, models: {small: …, big: …}}

stands for the tasks `ask/short/small`, `ask/short/big`, `ask/long/small` and `ask/long/big`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import product
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple

from evaluand.core import registry
from evaluand.core.errors import SpecError
from evaluand.core.files.yaml import Document, Place
from evaluand.run.tasks.conversation import FILE

_AXES: Final = {"prompts": "prompt", "models": "model"}
"""The key with several choices → the parameter of a single task."""


def expand_matrices(tasks: Mapping[str, Any], document: Document, model: str | None) -> dict[str, Any]:
    """The tasks of a file, with every combination written out; adds faults to the document.

    Args:
        model: the model of all tasks that take one, in place of those in the file; or the name of one of `models`.

    Raises:
        SpecError: no task takes a model.
    """
    found: dict[str, Any] = {}
    taking = 0
    for name, entry in [*tasks.items()]:  # a copy, since combinations are added to the document
        if not isinstance(entry, Mapping) or "function" in entry:
            found[name] = entry
            continue
        if model is not None and _takes_model(entry):
            taking += 1
            entry = _with_model(entry, model)
        found |= _combinations(name, entry, document) if {*_AXES} & {*entry} else {name: entry}
    if model is not None and not taking:
        remedy = f"to run the task {model!r} alone, give --task {model}" if model in tasks else "leave out --model"
        raise SpecError(f"{document.path}: no task takes a model, such as {{kind: chat, prompt: …}}; {remedy}")
    return found


def allow_several(schema: dict[str, Any]) -> None:
    """Extends the JSON Schema of a kind of task by its prompts and models, if it takes a model."""
    properties = schema["properties"]
    if not _takes_model({"kind": properties["kind"]["const"]}):
        return
    schema["required"] = [name for name in schema["required"] if name != "model"]  # `models` or --model may name it
    for key, single in _AXES.items():
        if single in properties:
            one = {"anyOf": [properties[single], {"type": "object"}]} if single == "prompt" else properties[single]
            by_name = {"type": "object", "additionalProperties": one, "minProperties": 1}
            several = [by_name, {"type": "array", "items": one, "minItems": 1}]
            properties[key] = {"anyOf": several, "description": f"several, each as {single}: a task for each"}


def keys_of_several(kind: str, parameters: Collection[str]) -> list[str]:
    """The keys with several choices that a kind of task has beside its parameters."""
    return [key for key, single in _AXES.items() if single in parameters] if _takes_model({"kind": kind}) else []


def _takes_model(entry: Mapping[str, Any]) -> bool:
    from evaluand.run.tasks.asking import AskingTask  # on use: kinds of tasks are imported when they are needed

    kind = entry.get("kind")
    if kind not in registry.names("tasks"):
        return False
    found = registry.find("tasks", kind)
    return isinstance(found, type) and issubclass(found, AskingTask)


def _with_model(entry: Mapping[str, Any], model: str) -> dict[str, Any]:
    """An entry with one model: that of a name among its `models`, else another one with the settings of its model."""
    models, own = entry.get("models"), entry.get("model")
    if isinstance(models, Mapping) and model in models:
        return {**entry, "models": {model: models[model]}}
    settings = {key: value for key, value in own.items() if key not in _OF_ONE_MODEL} if isinstance(own, dict) else {}
    rest = {key: value for key, value in entry.items() if key != "models"}
    return rest | {"model": {**settings, "model": model} if settings else model}


_OF_ONE_MODEL: Final = ("model", "url", "name", "version", "api_key", "rate", "token_rate", "price")
"""The settings that belong to a single model, and are not taken over by another one."""


def _combinations(name: str, entry: Mapping[str, Any], document: Document) -> dict[str, Any]:
    """The tasks of an entry by name."""
    rest = {key: value for key, value in entry.items() if key not in _AXES}
    axes: dict[str, list[_Choice]] = {}
    for key in _AXES.keys() & entry.keys():
        place = ("tasks", name, key)
        axes[key] = _choices(entry[key], place, document)
        if _AXES[key] in entry:
            document.add(place, f"and {_AXES[key]} exclude each other; leave out one of them")
    if not all(axes.values()):
        return {name: rest}  # whose other faults are reported too
    found: dict[str, Any] = {}
    for combination in product(*(axes[key] for key in _AXES if key in axes)):
        called = "/".join((name, *(choice.name for choice in combination)))
        if called in document.value["tasks"]:
            document.add(("tasks", called), f"is also a task of {name}; give it another name")
        found[called] = rest | {key: value for choice in combination for key, value in choice.parameters.items()}
        sources = {part: place for choice in combination for part, place in choice.sources.items()}
        document.derive(("tasks", called), found[called], {(): ("tasks", name), **sources})
    return found


class _Choice(NamedTuple):
    """One prompt, or one model.

    Attributes:
        name: in the names of tasks.
        parameters: those that a task gets with this choice.
        sources: where they are written, by their places in the task.
    """

    name: str
    parameters: Mapping[str, Any]
    sources: Mapping[Place, Place]


def _choices(written: Any, place: Place, document: Document) -> list[_Choice]:
    """The choices of a key; those of a list get the names of their files or models, or their numbers.

    Adds faults to the document.
    """
    if isinstance(written, Mapping):
        named = [(name, value, (*place, name)) for name, value in written.items()]
    else:
        values = written if isinstance(written, list) else []
        named = [(_name_of(value, number), value, (*place, number)) for number, value in enumerate(values)]
    names = [name for name, _, _ in named]
    twice = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if not named or twice is not None:
        what = "is no list of choices" if twice is None else f"has two that are called {twice!r}"
        document.add(place, f"{what}; give each a name: {place[-1]}: {{NAME: …, NAME: …}}")
        return []
    return [_choice(name, value, _AXES[place[-1]], where) for name, value, where in named]


def _choice(name: str, value: Any, parameter: str, place: Place) -> _Choice:
    """A choice; a prompt may be a mapping of several parameters, such as prompt and system."""
    if parameter == "prompt" and isinstance(value, Mapping):
        return _Choice(name, value, {(key,): (*place, key) for key in value})
    return _Choice(name, {parameter: value}, {(parameter,): place})


def _name_of(value: Any, number: int) -> str:
    """The name of a choice in a list: of a file or model its last part, else its number from 1.

    Example:
        >>> [_name_of(value, 0) for value in ("file:prompts/long.txt", "openai/gpt-5-mini", "Say {{ input }}.")]
        ['long', 'gpt-5-mini', '1']
    """
    if isinstance(value, Mapping):
        return str(value.get("name", number + 1))
    if not isinstance(value, str) or any(mark in value for mark in " \n{"):
        return str(number + 1)
    if value.startswith(FILE):
        return PurePosixPath(value.removeprefix(FILE)).stem
    return value.replace("#", "/").rpartition("/")[2] or str(number + 1)
