"""Parses an experiment file into its valid parts, so that all faults can be reported at once."""

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
class ValidParts:
    """The valid parts of an experiment file; they may refer to invalid parts, whose faults are in the document.

    Attributes:
        dataset: without invalid keys; None if it has no path.
        is_dataset_valid: whether the dataset has no invalid keys.
        metrics: by their position in the list.
        fairness: by their position in the list.
        tradeoffs: by their position in the list.
        task_names: of valid and invalid tasks.
        scorer_names: of valid and invalid scorers.
    """

    name: str | None
    dataset: spec.DatasetSpec | None
    is_dataset_valid: bool
    tasks: dict[str, spec.TaskEntry]
    scorers: dict[str, spec.ScorerEntry]
    metrics: dict[int, spec.MetricSpec]
    fairness: dict[int, spec.FairnessSpec]
    tradeoffs: dict[int, spec.TradeoffSpec]
    run: spec.RunSpec
    task_names: list[str]
    scorer_names: list[str]


def parse_file(path: Path) -> tuple[ValidParts, Document]:
    """The valid parts of a file, and the document with the faults of the others."""
    document = Document(path)
    if not isinstance(document.value, dict):
        raise SpecError(f"{path}:1: an experiment must be a mapping with name, dataset, tasks, scorers and metrics")
    value = {**document.value}
    for group in ("tasks", "scorers"):
        if isinstance(value.get(group), dict):
            value[group] = {n: _expand(s, document, group, n) for n, s in value[group].items()}
    if isinstance(value.get("metrics"), list):
        value["metrics"] = [{"kind": s} if isinstance(s, str) else s for s in value["metrics"]]
    try:
        spec.ExperimentSpec.model_validate(value)
    except ValidationError as error:
        document.add_all(error, known=spec.keys_at)
    return _collect_valid(value), document


def _expand(entry: Any, document: Document, group: str, name: str) -> Any:
    """A task or scorer in its long form: the short form `file.py:name` is code, any other word a kind.

    Version and model stay text even if YAML reads numbers: 1.10 is not 1.1.
    """
    if isinstance(entry, str):
        return {"function" if ":" in entry else "kind": entry}
    if not isinstance(entry, dict):
        return entry
    numbers = [key for key in ("version", "model") if type(entry.get(key)) in (int, float)]
    return entry | {key: document.text(group, name, key) for key in numbers}


def _collect_valid(value: Mapping[str, Any]) -> ValidParts:
    tasks, scorers = (value[g] if isinstance(value.get(g), dict) else {} for g in ("tasks", "scorers"))
    lists = ("metrics", "fairness", "tradeoffs")
    metrics, fairness, tradeoffs = (value[g] if isinstance(value.get(g), list) else [] for g in lists)
    dataset, is_valid = _valid_keys(spec.DatasetSpec, value.get("dataset"))
    run, _ = _valid_keys(spec.RunSpec, value.get("run"))
    return ValidParts(
        (value.get("name") or None) if isinstance(value.get("name"), str) else None,
        dataset,
        is_valid,
        _valid_entries(spec.TaskEntry, tasks.items()),
        _valid_entries(spec.ScorerEntry, scorers.items()),
        _valid_entries(spec.MetricSpec, enumerate(metrics)),
        _valid_entries(spec.FairnessSpec, enumerate(fairness)),
        _valid_entries(spec.TradeoffSpec, enumerate(tradeoffs)),
        run or spec.RunSpec(),
        list(tasks),
        list(scorers),
    )


def _valid_entries(kind: Any, entries: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    found, adapter = {}, TypeAdapter(kind)
    for name, entry in entries:
        with suppress(ValidationError):
            found[name] = adapter.validate_python(entry)
    return found


def _valid_keys(kind: type[_Model], entry: Any) -> tuple[_Model | None, bool]:
    """An entry without its invalid keys, or None if it needs them; and whether it has no invalid keys."""
    try:
        return kind.model_validate(entry), True
    except ValidationError as error:
        invalid = {fault["loc"][0] for fault in error.errors() if fault["loc"]}
    with suppress(ValidationError):
        return kind.model_validate({k: v for k, v in entry.items() if k not in invalid}) if invalid else None, False
    return None, False
