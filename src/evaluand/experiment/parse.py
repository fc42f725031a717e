"""What of an experiment file is sound, so that all its faults can be told at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from evaluand.core.errors import SpecError
from evaluand.core.files.yaml import Document
from evaluand.experiment import spec

_Model = TypeVar("_Model", bound=BaseModel)


@dataclass(frozen=True)
class Sound:
    """What of an experiment file is sound; it may refer to the rest, whose faults have been noted.

    Attributes:
        dataset: without its faulty keys; None where there is not a path.
        whole: whether the dataset has no faulty keys.
        metrics: by their place in the list.
        fairness: likewise.
        tradeoffs: likewise.
        task_names: those of the faulty ones too.
        scorer_names: those of the faulty ones too.
    """

    name: str | None
    dataset: spec.DatasetSpec | None
    whole: bool
    tasks: dict[str, spec.TaskEntry]
    scorers: dict[str, spec.ScorerEntry]
    metrics: dict[int, spec.MetricSpec]
    fairness: dict[int, spec.FairnessSpec]
    tradeoffs: dict[int, spec.TradeoffSpec]
    run: spec.RunSpec
    task_names: list[str]
    scorer_names: list[str]


def read(path: Path) -> tuple[Sound, Document]:
    """What is sound of a file, and the document in which the faults of its form have been noted."""
    document = Document(path)
    if not isinstance(document.value, dict):
        raise SpecError(f"{path}:1: an experiment is a mapping with name, dataset, tasks, scorers and metrics")
    value = {**document.value}
    for group in ("tasks", "scorers"):
        if isinstance(value.get(group), dict):
            value[group] = {n: _as_written(s, document, group, n) for n, s in value[group].items()}
    if isinstance(value.get("metrics"), list):
        value["metrics"] = [{"kind": s} if isinstance(s, str) else s for s in value["metrics"]]
    try:
        spec.ExperimentSpec.model_validate(value)
    except ValidationError as error:
        document.add_all(error, known=spec.keys_at)
    return _sound(value), document


def _as_written(entry: Any, document: Document, group: str, name: str) -> Any:
    """A task or scorer in full: of one word, `file.py:name` is code and anything else a kind.

    Version and model are text also where YAML has numbers: 1.10 is not 1.1.
    """
    if isinstance(entry, str):
        return {"function" if ":" in entry else "kind": entry}
    if not isinstance(entry, dict):
        return entry
    numbers = [key for key in ("version", "model") if type(entry.get(key)) in (int, float)]
    return entry | {key: document.text(group, name, key) for key in numbers}


def _sound(value: Mapping[str, Any]) -> Sound:
    tasks, scorers = (value[g] if isinstance(value.get(g), dict) else {} for g in ("tasks", "scorers"))
    lists = ("metrics", "fairness", "tradeoffs")
    metrics, fairness, tradeoffs = (value[g] if isinstance(value.get(g), list) else [] for g in lists)
    dataset, whole = _sound_keys(spec.DatasetSpec, value.get("dataset"))
    run, _ = _sound_keys(spec.RunSpec, value.get("run"))
    return Sound(
        (value.get("name") or None) if isinstance(value.get("name"), str) else None,
        dataset,
        whole,
        _sound_entries(spec.TaskEntry, tasks.items()),
        _sound_entries(spec.ScorerEntry, scorers.items()),
        _sound_entries(spec.MetricSpec, enumerate(metrics)),
        _sound_entries(spec.FairnessSpec, enumerate(fairness)),
        _sound_entries(spec.TradeoffSpec, enumerate(tradeoffs)),
        run or spec.RunSpec(),
        list(tasks),
        list(scorers),
    )


def _sound_entries(kind: Any, entries: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    found, adapter = {}, TypeAdapter(kind)
    for name, entry in entries:
        with suppress(ValidationError):
            found[name] = adapter.validate_python(entry)
    return found


def _sound_keys(kind: type[_Model], entry: Any) -> tuple[_Model | None, bool]:
    """An entry without its faulty keys, if it can do without them; and whether there are none."""
    try:
        return kind.model_validate(entry), True
    except ValidationError as error:
        faulty = {fault["loc"][0] for fault in error.errors() if fault["loc"]}
    with suppress(ValidationError):
        return kind.model_validate({k: v for k, v in entry.items() if k not in faulty}) if faulty else None, False
    return None, False
