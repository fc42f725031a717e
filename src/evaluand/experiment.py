"""Experiments: the whole path from one YAML file or a few lines.

    name: arithmetic
    dataset: {path: questions.jsonl, input: question, expected: answer}
    tasks:
      mine: {function: app.py:answer}
      theirs: {kind: recorded, path: theirs.jsonl, response: text, by: id}
    scorers:
      answer: {kind: numeric_answer}
    metrics:
      - {kind: accuracy, scorer: answer, by: [topic]}

Paths are relative to the file. Code is imported only from where the file says.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from evaluand import registry
from evaluand.aggregation import Aggregation, Aggregator, Measure
from evaluand.dataset import Dataset
from evaluand.engine import TRANSIENT, Policy
from evaluand.errors import SpecError
from evaluand.evaluation import Evaluation, Evaluator
from evaluand.ids import encode
from evaluand.metric import Metric
from evaluand.run import Run, Runner
from evaluand.scorer import FunctionScorer, Scorer
from evaluand.store import MemoryStore, Store, check_name
from evaluand.task import FunctionTask, Task, as_task
from evaluand.work import Progress

_STRICT = ConfigDict(extra="forbid", frozen=True)
_OPEN = ConfigDict(extra="allow", frozen=True)


class DatasetSpec(BaseModel):
    """Where the examples are and what their columns are for."""

    model_config = _STRICT
    path: str = Field(description="CSV, JSON lines, JSON, Parquet or Arrow file")
    format: str | None = None
    name: str | None = None
    input: str | list[str] | None = Field(None, description="the column the task sees, or several, seen as a mapping")
    expected: str | list[str] | dict[str, str] | None = Field(None, description="column, columns, or target: column")
    attributes: str | list[str] = Field(default=[], description="columns to group by")
    id: str | None = None
    weight: str | None = None
    cluster: str | None = None
    metadata: str | list[str] = []


class CodeSpec(BaseModel):
    """A function or class of your own: `file.py:name`, or `module:name` importable from the file's folder."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)
    function: str = Field(pattern=r"^[^:]+:[A-Za-z_][\w.]*$")
    parameters: dict[str, Any] = Field(default={}, description="arguments, where the name is a class")
    version: str | None = Field(None, description="pins the code instead of its fingerprint")
    files: list[str] = Field(default=[], description="files it depends on beyond those its code names")


class TaskCodeSpec(CodeSpec):
    """A task in code."""

    items: bool = Field(False, description="the output is a list of items that together are the response")


class ScorerCodeSpec(CodeSpec):
    """A scorer in code."""

    batch: bool = Field(False, description="the function takes and gives lists")


class KindSpec(BaseModel):
    """A registered kind with its parameters beside it."""

    model_config = _OPEN
    kind: str

    @property
    def parameters(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class MetricSpec(KindSpec):
    """A metric: which scorer's table, which groups, and the kind's parameters."""

    scorer: str | None = Field(None, description="may be left out where there is one scorer")
    by: list[str | list[str]] = Field(default=[], description="attributes to group by; a list crosses several")


class RunSpec(BaseModel):
    """How calls are made."""

    model_config = _STRICT
    replications: int = Field(1, ge=1)
    seed: int = Field(0, ge=-(2**63), lt=2**63)
    concurrency: int = Field(16, ge=1)
    timeout: float | None = Field(None, gt=0, description="seconds per call")
    retries: int = Field(0, ge=0)
    backoff: float = Field(1.0, ge=0, description="seconds before the first retry; doubles")
    transient: list[str] = Field(default=list(TRANSIENT), description="error classes worth a retry, by name")
    abort_on_error: bool = False

    @property
    def policy(self) -> Policy:
        chosen = self.model_dump(exclude={"replications", "seed", "transient"})
        return Policy(transient=tuple(self.transient), **chosen)


class ExperimentSpec(BaseModel):
    """An experiment file."""

    model_config = _STRICT
    name: str = Field(min_length=1)
    dataset: DatasetSpec
    tasks: dict[str, TaskCodeSpec | KindSpec] = Field(min_length=1)
    scorers: dict[str, ScorerCodeSpec | KindSpec] = Field(min_length=1)
    metrics: list[MetricSpec] = Field(min_length=1)
    run: RunSpec = RunSpec()


@dataclass(frozen=True)
class Result:
    """What an experiment came to for one task."""

    task: str
    run: Run
    evaluation: Evaluation


@dataclass(frozen=True)
class Results:
    """What an experiment came to."""

    tasks: Sequence[Result]
    aggregation: Aggregation


@dataclass
class Experiment:
    """The whole path: every task over the dataset, graded by every scorer, summarised by every metric.

    Args:
        name: for people, and the first part of the runs' names.
        dataset: the examples.
        tasks: name → task, function or object with `do_run`.
        scorers: name → scorer or function.
        measures: metrics on the scorers' tables.
        policy: how calls are made.
        replications: how often each example is run.
        seed: what the examples' seeds are made from.

    Example:
        >>> from evaluand.metrics.accuracy import Accuracy
        >>> experiment = Experiment(
        ...     "shouting",
        ...     Dataset.from_rows([{"input": "a", "expected": "A"}]),
        ...     {"upper": str.upper},
        ...     {"same": lambda output, expected: output == expected},
        ...     [Measure("same", Accuracy())],
        ... )
        >>> experiment.run().aggregation.table()["value"].to_pylist()
        [1.0]
    """

    name: str
    dataset: Dataset
    tasks: Mapping[str, Any]
    scorers: Mapping[str, Any]
    measures: Sequence[Measure]
    policy: Policy = field(default_factory=Policy)
    replications: int = 1
    seed: int = 0
    origin: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Experiment:
        """The experiment that a YAML file describes, with its code loaded and its dataset opened.

        Raises:
            SpecError: the file cannot work; every fault with its line.
            DataError: the dataset breaks its rules.
        """
        path = Path(path)
        spec, document = _read(path)
        folder = path.parent
        tasks = _each(document, "tasks", {n: lambda s=s: _task(s, folder) for n, s in spec.tasks.items()})
        scorers = _each(document, "scorers", {n: lambda s=s: _scorer(s, folder) for n, s in spec.scorers.items()})
        measures = _each(document, "metrics", {i: lambda s=s: _measure(s, spec) for i, s in enumerate(spec.metrics)})
        roles = spec.dataset.model_dump(exclude={"path", "format", "name"}, exclude_defaults=True)
        dataset = Dataset.from_file(
            folder / spec.dataset.path, format=spec.dataset.format, name=spec.dataset.name or spec.name, **roles
        )
        return cls(
            spec.name,
            dataset,
            tasks,
            scorers,
            list(measures.values()),
            spec.run.policy,
            spec.run.replications,
            spec.run.seed,
            {"experiment": os.path.abspath(path), "digest": hashlib.blake2b(path.read_bytes()).hexdigest()[:32]},
        )

    def run(
        self,
        store: Store | None = None,
        *,
        limit: int | None = None,
        fresh: bool = False,
        retry_failed: bool = False,
        only: str | None = None,
        resume: tuple[str, str] | None = None,
        progress: Progress | None = None,
    ) -> Results:
        """Runs, grades and summarises; does only what is not stored yet.

        Args:
            store: where everything is kept; in memory if not given.
            limit: only the first examples.
            fresh: make all calls and grades anew.
            retry_failed: make the calls and grades anew that failed.
            only: the one task to run.
            resume: the (kind, id) of an open run or evaluation of that task that must be continued.
            progress: shows how far each step is.
        """
        store = store or MemoryStore()
        runner = Runner(store, self.policy, progress=progress)
        evaluator = Evaluator(store, self.policy, progress=progress)
        results = []
        for name, task in self.tasks.items():
            if only not in (None, name):
                continue
            full = f"{_part(self.name)}/{_part(name)}"
            origin = self.origin | {"task": name, "limit": limit}
            graded = _resumed(resume, "evaluations")
            if graded:
                run = Run(store, store.manifest("evaluations", graded)["provenance"]["run"])
            else:
                run = runner.run(
                    task,
                    self.dataset,
                    name=full,
                    limit=limit,
                    replications=self.replications,
                    seed=self.seed,
                    fresh=fresh,
                    retry_failed=retry_failed,
                    resume=_resumed(resume, "runs"),
                    origin=origin,
                )
            evaluation = evaluator.evaluate(
                run,
                self.scorers,
                name=full,
                fresh=fresh,
                retry_failed=retry_failed,
                resume=graded,
                origin=origin,
            )
            results.append(Result(name, run, evaluation))
        evaluations = [result.evaluation for result in results]
        whole = check_name(self.name) if len(results) == len(self.tasks) else None
        return Results(results, Aggregator(store).aggregate(evaluations, self.measures, name=whole, origin=self.origin))


def _part(name: str) -> str:
    """A name as part of a longer one, in which a slash parts the names."""
    return check_name(name).replace("%", "%25").replace("/", "%2F")


def json_schema() -> dict[str, Any]:
    """The JSON Schema of experiment files, with the parameters of every installed kind."""
    schema = ExperimentSpec.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "evaluand experiment"
    for group, holder in (("tasks", "KindSpec"), ("scorers", "KindSpec"), ("metrics", "MetricSpec")):
        alternatives = [_kind_schema(group, name, schema["$defs"]) for name in registry.names(group)]
        base = schema["$defs"][holder]["properties"]
        for alternative in alternatives:
            alternative["properties"] = {**base, **alternative["properties"]}
        by_name = {"enum": registry.names(group), "description": "a kind without parameters"}
        place = schema["properties"][group]
        if group == "metrics":
            place["items"] = {"anyOf": [*alternatives, by_name]}
        else:
            code = {"$ref": f"#/$defs/{'TaskCodeSpec' if group == 'tasks' else 'ScorerCodeSpec'}"}
            by_place = {"type": "string", "pattern": ":", "description": "file.py:name"}
            place["additionalProperties"] = {"anyOf": [code, *alternatives, by_name, by_place]}
    del schema["$defs"]["KindSpec"], schema["$defs"]["MetricSpec"]
    return schema


def _kind_schema(group: str, name: str, definitions: dict[str, Any]) -> dict[str, Any]:
    made = TypeAdapter(registry.find(group, name)).json_schema(ref_template="#/$defs/{model}")
    definitions.update(made.pop("$defs", {}))
    made["properties"] = {"kind": {"const": name}, **made.get("properties", {})}
    made["required"] = ["kind", *made.get("required", [])]
    made["title"] = name
    made["additionalProperties"] = False
    return made


class _Document:
    """A YAML file with the line of every key and entry."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: dict[tuple[Any, ...], int] = {}
        self.faults: list[str] = []
        try:
            node = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
        except FileNotFoundError:
            raise SpecError(f"{path}: no such file; `evaluand run` takes an experiment file") from None
        except (OSError, UnicodeDecodeError) as error:
            raise SpecError(f"{path}: cannot be read: {error}") from None
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            place = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
            raise SpecError(f"{place}: not YAML: {error.problem}") from None
        except yaml.YAMLError as error:
            raise SpecError(f"{path}: not YAML: {error}") from None
        try:
            self.value = self._value(node, ())
        except (yaml.YAMLError, ValueError, TypeError) as error:
            raise SpecError(f"{path}: not YAML that says what it means: {error}") from None
        self.check()

    def add(self, place: tuple[Any, ...], message: str) -> None:
        """Notes a fault at a place, or at the nearest place above it that has a line."""
        known = place
        while known and known not in self.lines:
            known = known[:-1]
        where = f"{self.path}:{self.lines.get(known, 1)}"
        what = ".".join(str(step) for step in place)
        self.faults.append(f"{where}: {what}: {message}" if what else f"{where}: {message}")

    def check(self) -> None:
        if self.faults:
            raise SpecError("\n".join(self.faults))

    def _value(self, node: yaml.Node | None, place: tuple[Any, ...]) -> Any:
        if node is None:
            return None
        self.lines.setdefault(place, node.start_mark.line + 1)
        if len(place) > _DEEPEST:
            self.add(place, "is nested too deeply, or refers to itself")
            self.check()
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, place)
        if isinstance(node, yaml.SequenceNode):
            return [self._value(item, (*place, i)) for i, item in enumerate(node.value)]
        return _scalar(node)

    def _mapping(self, node: yaml.MappingNode, place: tuple[Any, ...]) -> dict[str, Any]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            self.lines[*place, key_node.value] = key_node.start_mark.line + 1
            if key_node.value in seen:
                self.add((*place, key_node.value), "stands here a second time; give each entry a name of its own")
            seen.add(key_node.value)
        yaml.constructor.SafeConstructor().flatten_mapping(node)  # `<<: *anchor`
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            self.lines.setdefault((*place, key_node.value), key_node.start_mark.line + 1)
            result[str(key_node.value)] = self._value(value_node, (*place, key_node.value))
        return result


_DEEPEST = 50


def _scalar(node: yaml.Node) -> Any:
    """A plain value; words such as `no`, `on` and dates stay text, as their writer most likely meant."""
    kind = node.tag.removeprefix("tag:yaml.org,2002:")
    if kind == "timestamp" or (kind == "bool" and node.value.lower() not in ("true", "false")):
        return node.value
    return yaml.constructor.SafeConstructor().construct_object(node)


def _read(path: Path) -> tuple[ExperimentSpec, _Document]:
    document = _Document(path)
    if not isinstance(document.value, dict):
        raise SpecError(f"{path}:1: an experiment is a mapping with name, dataset, tasks, scorers and metrics")
    value = {**document.value}
    for group in ("tasks", "scorers"):
        if isinstance(value.get(group), dict):
            value[group] = {n: _spelled_out(s) for n, s in value[group].items()}
    if isinstance(value.get("metrics"), list):
        value["metrics"] = [{"kind": s} if isinstance(s, str) else s for s in value["metrics"]]
    try:
        return ExperimentSpec.model_validate(value), document
    except ValidationError as error:
        for fault in error.errors():
            _add_fault(document, value, fault)
    document.check()
    raise AssertionError("a validation error without faults")


def _spelled_out(entry: Any) -> Any:
    """A task or scorer of one word: `file.py:name` is code, anything else a kind."""
    if isinstance(entry, str):
        return {"function" if ":" in entry else "kind": entry}
    return entry


def _add_fault(document: _Document, value: Any, fault: Any) -> None:
    place = tuple(step for step in fault["loc"] if step not in ("TaskCodeSpec", "ScorerCodeSpec", "KindSpec"))
    branch = next((step for step in fault["loc"] if step in ("TaskCodeSpec", "ScorerCodeSpec", "KindSpec")), None)
    if branch is not None:
        entry = value[place[0]][place[1]]
        if not isinstance(entry, dict) or ("kind" in entry) == ("function" in entry):
            if branch == "KindSpec":
                document.add(place[:2], "say either `kind: …` (a registered kind) or `function: file.py:name`")
            return
        if ("function" in entry) == (branch == "KindSpec"):
            return
    message = fault["msg"]
    if fault["type"] == "extra_forbidden":
        known = _known_names(place[:-1])
        message = f"unknown{registry.nearest(str(place[-1]), known)}; known: {', '.join(known)}"
    elif fault["type"] == "missing":
        message = "is missing"
    document.add(place, message)


def _known_names(place: tuple[Any, ...]) -> list[str]:
    models: dict[Any, type[BaseModel]] = {"dataset": DatasetSpec, "run": RunSpec, "tasks": TaskCodeSpec}
    models["scorers"] = ScorerCodeSpec
    return list((models[place[0]] if place else ExperimentSpec).model_fields)


def _each(document: _Document, group: str, makers: Mapping[Any, Any]) -> dict[Any, Any]:
    """Makes every entry, and tells what is wrong with all that cannot be made."""
    made = {}
    for name, make in makers.items():
        try:
            if isinstance(name, str):
                check_name(name)
            made[name] = make()
        except SpecError as error:
            document.add((group, name), str(error))
    document.check()
    return made


def _task(spec: TaskCodeSpec | KindSpec, folder: Path) -> Task[Any, Any]:
    if isinstance(spec, KindSpec):
        parameters = spec.parameters
        if "path" in parameters:
            parameters["path"] = str(folder / str(parameters["path"]))
        return _made("tasks", spec.kind, parameters)  # type: ignore[no-any-return]
    code = _code(spec, folder)
    files = tuple(str(folder / file) for file in spec.files)
    version = _version(spec)
    if isinstance(code, FunctionTask):
        code = code.function if spec.version or files or spec.items else code
    if isinstance(code, FunctionTask | Task) or hasattr(code, "do_run"):
        made = as_task(code)
        if version is not None:
            made.version = version
        if files:
            made.files = files
        if spec.items:
            made.items = True
        return made
    return FunctionTask(code, version=version, items=spec.items, files=files)


def _scorer(spec: ScorerCodeSpec | KindSpec, folder: Path) -> Scorer:
    if isinstance(spec, KindSpec):
        return _made("scorers", spec.kind, spec.parameters)  # type: ignore[no-any-return]
    code = _code(spec, folder)
    files = tuple(str(folder / file) for file in spec.files)
    if isinstance(code, Scorer) and not (spec.version or files or spec.batch):
        return code
    function = code.function if isinstance(code, FunctionScorer) else code
    return FunctionScorer(function, version=_version(spec), files=files, batch=spec.batch)


def _version(spec: CodeSpec) -> str | None:
    """What a declared version pins: the code it was declared for, with its parameters."""
    return None if spec.version is None else f"{spec.version} of {spec.function} {encode(spec.parameters).decode()}"


def _measure(spec: MetricSpec, experiment: ExperimentSpec) -> Measure:
    scorer = spec.scorer
    if scorer is None:
        if len(experiment.scorers) > 1:
            raise SpecError(f"say which scorer it reads: scorer: {' | '.join(experiment.scorers)}")
        scorer = next(iter(experiment.scorers))
    if scorer not in experiment.scorers:
        raise SpecError(f"no scorer is called {scorer!r}{registry.nearest(scorer, experiment.scorers)}")
    metric: Metric = _made("metrics", spec.kind, spec.parameters)
    return Measure(scorer, metric, tuple((by,) if isinstance(by, str) else tuple(by) for by in spec.by))


def _made(group: str, kind: str, parameters: Mapping[str, Any]) -> Any:
    made = registry.find(group, kind)
    known = [f.name for f in fields(made)] if is_dataclass(made) else []
    unknown = [name for name in parameters if name not in known]
    if unknown:
        hint = registry.nearest(unknown[0], known)
        raise SpecError(f"{kind} has no parameter {unknown[0]!r}{hint}; it has {', '.join(known) or 'none'}")
    try:
        return TypeAdapter(made).validate_python(dict(parameters))
    except ValidationError as error:
        told = (f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
        raise SpecError(f"{kind}: {'; '.join(told)}") from None


def _code(spec: CodeSpec, folder: Path) -> Any:
    place, _, name = spec.function.rpartition(":")
    value: Any = _module(place, folder)
    for part in name.split("."):
        if not hasattr(value, part):
            known = [n for n in vars(value) if not n.startswith("_")]
            raise SpecError(f"{place} has no {part!r}{registry.nearest(part, known)}")
        value = getattr(value, part)
    if isinstance(value, type):
        try:
            return value(**spec.parameters)
        except Exception as error:
            raise SpecError(f"{spec.function} cannot be made: {type(error).__name__}: {error}") from error
    if spec.parameters:
        raise SpecError(f"{spec.function} is no class, so it takes no parameters")
    return value


def _module(place: str, folder: Path) -> Any:
    """The module at a path or of a name, with the experiment's folder on the import path."""
    entry = str(folder.resolve())
    if entry not in sys.path:
        sys.path.insert(0, entry)
    try:
        if not place.endswith(".py"):
            return importlib.import_module(place)
        path = (folder / place).resolve()
        if not path.is_file():
            raise SpecError(f"{path}: no such file")
        return _executed(path)
    except SpecError:
        raise
    except (Exception, SystemExit) as error:
        raise SpecError(f"{place} cannot be imported: {type(error).__name__}: {error}") from error


def _executed(path: Path) -> Any:
    """The module of a file, executed again only when its text has changed."""
    text = hashlib.blake2b(path.read_bytes()).digest()
    name = f"{path.stem}_" if path.stem in sys.stdlib_module_names else path.stem
    loaded = sys.modules.get(name)
    if loaded is not None and getattr(loaded, "__file__", None) == str(path) and _TEXTS.get(name) == text:
        return loaded
    made = importlib.util.spec_from_file_location(name, path)
    assert made is not None
    assert made.loader is not None
    module = importlib.util.module_from_spec(made)
    sys.modules[name] = module
    made.loader.exec_module(module)
    _TEXTS[name] = text
    return module


_TEXTS: dict[str, bytes] = {}


def _resumed(resume: tuple[str, str] | None, kind: Literal["runs", "evaluations"]) -> str | None:
    return resume[1] if resume and resume[0] == kind else None
