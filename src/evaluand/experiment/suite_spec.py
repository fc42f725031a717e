"""The fields of a suite file, and its problems as parts of experiments.

    name: assistants
    tasks:
      small: {kind: chat, model: ollama/smollm2}
      large: {kind: chat, model: ollama/llama3.2}
    problems:
      arithmetic: arithmetic.yaml                   # an experiment file without tasks
      geography: {dataset: capitals.csv, scorers: exact_match, metrics: accuracy}
    score: accuracy

Every task is run on every problem, as the experiment `assistants/arithmetic` and so on. A problem may also be the
folder of a stated problem, if every task is a file of predictions: `small: {recorded: "small/{problem}.csv"}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from evaluand.core.errors import SpecError
from evaluand.core.files.yaml import Advice, ComposedDocument, Document, Place
from evaluand.core.labels import join_name
from evaluand.experiment.long_forms import expand_kind
from evaluand.experiment.near_keys import advice, meant_key
from evaluand.experiment.parsing import ValidParts, parse_document
from evaluand.store.store import check_name

_STRICT = ConfigDict(extra="forbid", frozen=True)


class ScoreSpec(BaseModel):
    """The score of a problem: one of its metrics."""

    model_config = _STRICT
    scorer: str | None = Field(None, description="the scorer whose table the metric reads; by default any")
    metric: str | None = Field(None, description="the name of the metric; by default the first of the scorer")


class SuiteSpec(BaseModel):
    """A suite file."""

    model_config = _STRICT
    name: str = Field(min_length=1)
    tasks: Any = Field(description="the systems, as tasks of an experiment; {problem} in a path is that of the problem")
    problems: dict[str, Any] = Field(
        min_length=1,
        description="name: an experiment file without tasks, or the same written here, or the folder of a problem",
    )
    score: ScoreSpec | None = Field(
        None, description="the metric by which systems are ranked; by default the first of each problem"
    )
    macro_mean: bool | None = Field(
        None,
        strict=True,
        description="whether scores are averaged over problems; by default if all are of one kind and range",
    )
    seed: int = Field(0, ge=0, lt=2**63, strict=True, description="of the bootstrap")
    confidence: float = Field(0.95, gt=0, lt=1, description="level of intervals, and 1 − that of tests")
    control: str | None = Field(None, description="the task that others are compared with; by default the first")
    run: Any = Field(None, description="how calls are made, for problems that do not say it")

    @field_validator("score", mode="before")
    @classmethod
    def _write_out(cls, value: Any) -> Any:
        return {"metric": value} if isinstance(value, str) else value


@dataclass(frozen=True)
class ProblemParts:
    """One problem of a suite as an experiment that was not built yet.

    Attributes:
        parts: the valid parts; their faults are in the document.
        document: the document that composes the problem and the tasks of the suite.
        folder: the folder of the problem's paths.
        score: of the problem, else of the suite.
        score_place: where the score is written, in the document of the suite.
    """

    parts: ValidParts
    document: ComposedDocument
    folder: Path
    score: ScoreSpec
    score_place: Place


@dataclass(frozen=True)
class ProblemFolder:
    """One problem of a suite that is the folder of a stated problem, whose predictions exist.

    Attributes:
        files: task → the files of its predictions.
        folder, score, score_place: see `ProblemParts`.
    """

    files: dict[str, list[Path]]
    folder: Path
    score: ScoreSpec
    score_place: Place


@dataclass(frozen=True)
class ParsedSuite:
    """A suite file.

    Attributes:
        spec: without invalid keys.
        document: of the file, with its faults.
        problems: by name, those that can be read.
    """

    spec: SuiteSpec
    document: Document
    problems: dict[str, ProblemParts | ProblemFolder]


def is_suite(document: Document) -> bool:
    """Whether a file is a suite, not an experiment."""
    return isinstance(document.value, dict) and "problems" in document.value and "dataset" not in document.value


def parse_suite(path: Path, model: str | None = None) -> ParsedSuite:
    """A suite file and its problems; nothing is imported, and no dataset is read.

    Args:
        model: the model of all tasks that take one, in place of those in the file.

    Raises:
        SpecError: the file is no suite, or no task takes a model.
    """
    document = Document(path)
    if not isinstance(document.value, dict):
        raise SpecError(f"{path}:1: a suite must be a mapping with name, tasks and problems")
    spec = _parse_spec(document)
    problems: dict[str, ProblemParts | ProblemFolder] = {}
    entries = document.value.get("problems")
    for name, entry in entries.items() if isinstance(entries, dict) else ():
        with document.at("problems", name):
            check_name(name)
            if (found := _parse_problem(document, spec, name, entry, model)) is not None:
                problems[name] = found
    return ParsedSuite(spec, document, problems)


def _parse_spec(document: Document) -> SuiteSpec:
    """The valid keys; adds faults to the document."""
    value = document.value
    if "tasks" in value and value["tasks"] is None:
        document.add(("tasks",), f"is empty; write {advice(('tasks',), 'suite')}")
    try:
        return SuiteSpec.model_validate(value)
    except ValidationError as error:
        document.add_all(
            error, advice=Advice(_keys_at, partial(meant_key, file="suite"), partial(advice, file="suite"))
        )
        invalid = {fault["loc"][0] for fault in error.errors() if fault["loc"]}
    valid = {key: part for key, part in value.items() if key not in invalid}
    return SuiteSpec.model_validate({"name": "suite", "tasks": None, "problems": {"": None}} | valid)


def _keys_at(place: Place) -> list[str]:
    return [*(ScoreSpec if place[:1] == ("score",) else SuiteSpec).model_fields]


def _parse_problem(
    document: Document, spec: SuiteSpec, name: str, entry: Any, model: str | None
) -> ProblemParts | ProblemFolder | None:
    """A problem; None if the suite has no tasks, which is a fault by itself.

    Raises:
        SpecError: the entry is neither a file, a folder nor a mapping, or there is no such file.
    """
    place: Place = ("problems", name)
    score, score_place = spec.score or ScoreSpec(), ("score",)
    if isinstance(entry, Mapping) and "score" in entry:
        score_place = (*place, "score")
        with document.at(*score_place):
            score = SuiteSpec.model_validate({**_ANY, "score": entry["score"]}).score or score
    if isinstance(entry, Mapping) and "file" in entry:
        for key in entry.keys() - {"file", "score"}:
            document.add((*place, key), "cannot be given beside file; write it into that file")
    file = entry.get("file") if isinstance(entry, Mapping) and "file" in entry else entry
    if isinstance(file, str) and (document.path.parent / file).is_dir():
        files = {} if spec.tasks is None else _files_of_predictions(document, spec, name)
        return ProblemFolder(files, document.path.parent / file, score, score_place)
    if isinstance(file, str):
        home = Document(document.path.parent / file)
        above: Place = ()
    elif isinstance(file, Mapping):
        home, above = document, place
    else:
        raise SpecError(
            "is neither a file nor a mapping; name an experiment file or the folder of a problem, or give dataset,"
            " scorers and metrics"
        )
    own = file if home is document else home.value
    if not isinstance(own, Mapping):
        raise SpecError(f"{home.path}:1: an experiment must be a mapping with dataset, scorers and metrics")
    return _compose(document, spec, name, (own, home, above), (score, score_place), model)


_ANY: Final = {"name": "any", "tasks": None, "problems": {"any": None}}


def _compose(
    document: Document,
    spec: SuiteSpec,
    name: str,
    problem: tuple[Mapping[str, Any], Document, Place],
    score: tuple[ScoreSpec, Place],
    model: str | None,
) -> ProblemParts | None:
    """The experiment of a problem: its own parts, with the name and the tasks of the suite."""
    own, home, above = problem
    if "tasks" in own:
        home.add((*above, "tasks"), "are those of the suite; leave them out here")
    if home is document and "name" in own:
        home.add((*above, "name"), "is that of the problem; leave it out here")
    if spec.tasks is None:
        return None
    value = {key: deepcopy(part) for key, part in own.items() if key not in ("tasks", "name", "score")}
    parts: dict[str, tuple[Document, Place]] = {"tasks": (document, ("tasks",)), "name": (document, ("name",))}
    value |= {"name": join_name(spec.name, name), "tasks": _paths_of(name, deepcopy(spec.tasks))}
    if spec.run is not None and "run" not in value:
        value["run"], parts["run"] = deepcopy(spec.run), (document, ("run",))
    composed = ComposedDocument(value, parts, (home, above))
    found = parse_document(composed, model)
    if home is not document:  # whose faults nobody else reports
        composed.take_faults(home)
    return ProblemParts(found, composed, home.path.parent, *score)


def _files_of_predictions(document: Document, spec: SuiteSpec, problem: str) -> dict[str, list[Path]]:
    """The files of each task's predictions of a problem that is a folder; adds faults to the document."""
    files: dict[str, list[Path]] = {}
    for task, entry in spec.tasks.items() if isinstance(spec.tasks, Mapping) else [("", spec.tasks)]:
        given = expand_kind(entry) if isinstance(entry, Mapping) else {}
        if given.get("kind") != "recorded" or "path" not in given:
            message = "is not a file of predictions, as a problem that is a folder needs; write NAME: {recorded: PATH}"
            document.add(("tasks", task) if task else ("tasks",), message)
            continue
        path = document.path.parent / str(given["path"]).replace("{problem}", problem)
        files[task] = sorted(path.glob("*.csv")) if path.is_dir() else [path]
    return files


def _paths_of(problem: str, tasks: Any) -> Any:
    """The tasks with the name of the problem in the paths that ask for it."""
    for entry in tasks.values() if isinstance(tasks, dict) else ():
        if isinstance(entry, dict) and isinstance(path := entry.get("path"), str):
            entry["path"] = path.replace("{problem}", problem)
    return tasks
