"""Reads an experiment file into its valid parts, so that all faults can be reported at once."""

from collections.abc import Iterable, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from evaluand.comparison.rule import Gate
from evaluand.core.errors import SpecError
from evaluand.core.files.yaml import Advice, Document
from evaluand.experiment import spec
from evaluand.experiment.budget_spec import BudgetSpec
from evaluand.experiment.engine_spec import EngineSpec
from evaluand.experiment.long_forms import write_out
from evaluand.experiment.near_keys import advice, entry_advice, meant_key
from evaluand.run.types import adapter_of
from evaluand.store.store import check_name

ADD_MATCHES = "add matches: FILE.py:JUDGE"
"""The advice about a gate on matches in a file without matches."""

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
        matches: by their position in the list.
        partial_matches: the valid parts (judge, schedule, rating) of matches with faults, by their position.
        gates: by their position in the list.
        allow_unmeasured_judges: whether gates on judges without a card are checked.
        task_names: of valid and invalid tasks.
        scorer_names: of valid and invalid scorers.
        n_measured: how many metrics and criteria of fairness there are, valid and invalid.
    """

    name: str | None
    dataset: spec.DatasetSpec | None
    is_dataset_valid: bool
    tasks: dict[str, spec.TaskEntry]
    scorers: dict[str, spec.ScorerEntry]
    metrics: dict[int, spec.MetricEntry]
    fairness: dict[int, spec.FairnessSpec]
    tradeoffs: dict[int, spec.TradeoffSpec]
    matches: dict[int, spec.MatchesSpec]
    partial_matches: dict[int, dict[str, Any]]
    gates: dict[int, str]
    allow_unmeasured_judges: bool
    run: spec.RunSpec
    budget: BudgetSpec | None
    engine: EngineSpec
    prices: str | None
    task_names: list[str]
    scorer_names: list[str]
    n_measured: int

    def parse_gates(self, document: Document) -> dict[int, Gate]:
        """Reads the gates, and adds their faults to the document."""
        found: dict[int, Gate] = {}
        for place, text in self.gates.items():
            with document.at("gates", place):
                found[place] = Gate.parse(text)
        return found


def parse_file(path: Path, content: bytes | None = None, model: str | None = None) -> tuple[ValidParts, Document]:
    """The valid parts of a file, and the document with the faults of the others.

    Args:
        content: the content of the file if it was read already.
        model: the model of all tasks that take one, in place of those in the file; or the name of one of `models`.
    """
    document = Document(path, content)
    if not isinstance(document.value, dict):
        raise SpecError(f"{path}:1: an experiment must be a mapping with name, dataset, tasks, scorers and metrics")
    return parse_document(document, model), document


def parse_document(document: Document, model: str | None = None) -> ValidParts:
    """The valid parts of a document that is a mapping; adds the faults of the others to it.

    Args:
        model: see `parse_file`.
    """
    value = write_out(document, model)
    try:
        spec.ExperimentSpec.model_validate(value)
    except ValidationError as error:
        document.add_all(error, advice=Advice(spec.keys_at, meant_key, advice, entry_advice))
    meant = {key if key in spec.ExperimentSpec.model_fields else meant_key((key,)) or key for key in value}
    _require_dataset(value, meant, document)
    _require_grading(value, meant, document)
    valid = _collect_valid(value)
    if valid.name is not None:
        with document.at("name"):
            check_name(valid.name)
            return valid
    return replace(valid, name=None)


def _require_dataset(value: Mapping[str, Any], meant: Set[str], document: Document) -> None:
    """Adds a missing dataset to the faults; a stored run among the tasks has one.

    Args:
        meant: the keys of the file, an unknown one as what it means: it has a fault of its own.
    """
    tasks = [*value["tasks"].values()] if isinstance(value.get("tasks"), Mapping) else []
    is_stored = any(isinstance(task, Mapping) and task.get("kind") == "stored" for task in tasks)
    if not (is_stored or "dataset" in meant):
        document.add(("dataset",), f"is missing; write {advice(('dataset',))}")


def _require_grading(value: Mapping[str, Any], meant: Set[str], document: Document) -> None:
    """Adds missing scorers or metrics to the faults; with matches, both may be missing."""
    is_graded = bool({"scorers", "metrics", "fairness", "tradeoffs"} & meant)
    if "matches" in meant and not is_graded:
        return
    if not is_graded and (gate := _find_match_gate(value.get("gates"))) is not None:
        document.add(("matches",), f"is missing, and gate {gate!r} is about matches; {ADD_MATCHES}")
        return
    for group in ("scorers", "metrics"):
        if group not in meant:
            document.add((group,), f"is missing; write {advice((group,))}")


def _find_match_gate(gates: Any) -> str | None:
    """The first gate that is about matches."""
    for text in gates if isinstance(gates, list) else ():
        with suppress(SpecError):
            if isinstance(text, str) and Gate.parse(text).is_of_matches:
                return text
    return None


def _collect_valid(value: Mapping[str, Any]) -> ValidParts:
    tasks, scorers = (value[g] if isinstance(value.get(g), dict) else {} for g in ("tasks", "scorers"))
    lists = ("metrics", "fairness", "tradeoffs", "matches", "gates")
    metrics, fairness, tradeoffs, matches, gates = (value[g] if isinstance(value.get(g), list) else [] for g in lists)
    dataset, is_valid = _valid_keys(spec.DatasetSpec, value.get("dataset"))
    run, _ = _valid_keys(spec.RunSpec, value.get("run"))
    budget, _ = _valid_keys(BudgetSpec, value.get("budget"))
    engine, _ = _valid_keys(EngineSpec, value.get("engine"))
    return ValidParts(
        (value.get("name") or None) if isinstance(value.get("name"), str) else None,
        dataset,
        is_valid,
        _valid_entries(spec.TaskEntry, tasks.items()),
        _valid_entries(spec.ScorerEntry, scorers.items()),
        _valid_entries(spec.MetricEntry, enumerate(metrics)),
        _valid_entries(spec.FairnessSpec, enumerate(fairness)),
        _valid_entries(spec.TradeoffSpec, enumerate(tradeoffs)),
        valid_matches := _valid_entries(spec.MatchesSpec, enumerate(matches)),
        {i: _valid_match_parts(entry) for i, entry in enumerate(matches) if i not in valid_matches},
        {i: gate for i, gate in enumerate(gates) if isinstance(gate, str)},
        value.get("allow_unmeasured_judges") is True,
        run or spec.RunSpec(),
        budget,
        engine or EngineSpec(),
        value["prices"] if isinstance(value.get("prices"), str) else None,
        list(tasks),
        list(scorers),
        len(metrics) + len(fairness),
    )


def _valid_entries(kind: Any, entries: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    found, adapter = {}, adapter_of(kind)
    for name, entry in entries:
        with suppress(ValidationError):
            found[name] = adapter.validate_python(entry)
    return found


def _valid_match_parts(entry: Any) -> dict[str, Any]:
    """The valid parts (judge, schedule, rating) of an entry of matches."""
    kinds: dict[str, Any] = {"judge": spec.JudgeEntry, "schedule": spec.ScheduleSpec, "rating": spec.RatingSpec}
    found: dict[str, Any] = {}
    for name, kind in kinds.items() if isinstance(entry, Mapping) else ():
        if name in entry:
            with suppress(ValidationError):
                found[name] = adapter_of(kind).validate_python(entry[name])
    return found


def _valid_keys(kind: type[_Model], entry: Any) -> tuple[_Model | None, bool]:
    """An entry without its invalid keys, or None if it needs them; and whether it has no invalid keys."""
    try:
        return kind.model_validate(entry), True
    except ValidationError as error:
        invalid = {fault["loc"][0] for fault in error.errors() if fault["loc"]}
    with suppress(ValidationError):
        if invalid and isinstance(entry, Mapping):
            return kind.model_validate({k: v for k, v in entry.items() if k not in invalid}), False
    return None, False
