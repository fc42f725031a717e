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

import builtins
import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    Tag,
    TypeAdapter,
    ValidationError,
    field_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from evaluand import registry
from evaluand.adapter import Pipeline
from evaluand.aggregation import Aggregation, Aggregator, Measure, check_measures
from evaluand.dataset import Dataset
from evaluand.disparity import kinds_of
from evaluand.document import Document, Place
from evaluand.engine import TRANSIENT, Policy
from evaluand.errors import DataError, SpecError, kind_of
from evaluand.evaluation import Evaluation, Evaluator
from evaluand.fairness import Criterion, measures_of
from evaluand.gradable import check_gradable
from evaluand.ids import encode
from evaluand.metric import Metric
from evaluand.output_view import OutputView
from evaluand.roles import RoleError
from evaluand.run import Run, Runner
from evaluand.scorer import FunctionScorer, Scorer, as_scorer
from evaluand.store import MemoryStore, Store, check_name
from evaluand.task import FunctionTask, Task, as_task, may_give_several
from evaluand.work import Progress

_STRICT = ConfigDict(extra="forbid", frozen=True)
_OPEN = ConfigDict(extra="allow", frozen=True)
_Model = TypeVar("_Model", bound=BaseModel)


_Adapters = Annotated[
    list[dict[str, Any]] | dict[str, Any],
    Field(description="adapters, each with `kind` and `configuration`, that rows pass through one after the other"),
]
_VIEW: Any = Field(None, description="adapters that the dataset's rows pass through, or the name of one of its views")
_OUTPUT_VIEW: Any = Field(None, description="adapters that outputs pass through before they are graded")


class DatasetSpec(BaseModel):
    """Where the examples are and what their columns are for."""

    model_config = _STRICT
    path: str = Field(description="CSV, JSON lines, JSON, Parquet or Arrow file")
    format: str | None = Field(None, description="if the suffix does not tell")
    delimiter: str | None = Field(None, description="what parts the cells of a CSV file, if not a comma")
    name: str | None = Field(None, description="the experiment's name if not given")
    input: str | list[str] | None = Field(None, description="the column the task sees, or several, seen as a mapping")
    expected: str | list[str] | dict[str, str] | None = Field(None, description="column, columns, or target: column")
    attributes: str | list[str] = Field(default=[], description="columns to group by")
    id: str | None = Field(None, description="the column that names the examples")
    weight: str | None = Field(None, description="the column with each example's weight")
    cluster: str | None = Field(None, description="the column that tells which examples belong together")
    metadata: str | list[str] = Field(default=[], description="columns kept beside")
    views: dict[str, _Adapters] = Field(default={}, description="name: adapters; the view of a task that names it")


class CodeSpec(BaseModel):
    """A function or class of your own: `file.py:name`, or `module:name` importable from the file's folder."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)
    function: str = Field(pattern=r"^[^:]+:[A-Za-z_][\w.]*$")
    parameters: dict[str, Any] = Field(default={}, description="arguments, where the name is a class")
    version: str | None = Field(None, min_length=1, description="pins the code instead of its fingerprint")
    files: list[str] = Field(default=[], description="files it depends on beyond those its code names")


class TaskCodeSpec(CodeSpec):
    """A task in code."""

    items: bool = Field(False, strict=True, description="the output is a list of items that together are the response")
    view: str | _Adapters | None = _VIEW


class ScorerCodeSpec(CodeSpec):
    """A scorer in code."""

    batch: bool = Field(False, strict=True, description="the function takes and gives lists")
    view: _Adapters | None = _OUTPUT_VIEW


class KindSpec(BaseModel):
    """A registered kind with its parameters beside it."""

    model_config = _OPEN
    kind: str

    @property
    def parameters(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class TaskKindSpec(KindSpec):
    """A kind of task."""

    view: str | _Adapters | None = _VIEW


class ScorerKindSpec(KindSpec):
    """A kind of scorer."""

    view: _Adapters | None = _OUTPUT_VIEW


class MetricSpec(KindSpec):
    """A metric: which scorer's table, which groups, and the kind's parameters."""

    scorer: str | None = Field(None, description="may be left out where there is one scorer")
    by: str | list[str | list[str]] = Field(default=[], description="attributes to group by; a list crosses several")
    disparities: str | list[str] = Field(default=[], description="how far the groups lie apart: difference, ratio, …")


class RunSpec(BaseModel):
    """How calls are made."""

    model_config = _STRICT
    replications: int | None = Field(
        None,
        ge=1,
        lt=2**31,
        description="how often each example is run; if not given, as often as the task tells, or once",
    )
    seed: int = Field(0, ge=-(2**63), lt=2**63, description="what the seeds of calls are made from")
    concurrency: int | None = Field(None, ge=1, description="calls at once; 16, or with processes one per CPU")
    timeout: float | None = Field(None, gt=0, description="seconds per call")
    retries: int = Field(0, ge=0, description="further attempts after an error worth a retry")
    backoff: float = Field(1.0, ge=0, description="seconds before the first retry")
    backoff_growth: float = Field(
        2.0, ge=1, description="how many times as long each further pause is, up to a minute; with 1 all are the same"
    )
    transient: list[str] = Field(
        default=list(TRANSIENT), description="error classes worth a retry, by name or module.name"
    )
    rate: str | None = Field(None, description="how many calls may start in a period: 60/min, 10/s, 5000/h")
    processes: bool = Field(
        False, strict=True, description="each call has a process of its own: for tasks that compute"
    )
    total_timeout: float | None = Field(None, gt=0, description="seconds after which no further call of a task starts")
    abort_on_error: bool = Field(False, strict=True, description="stop at the first call that fails")

    @field_validator("rate", mode="before")
    @classmethod
    def _of_a_period(cls, given: Any) -> Any:
        if isinstance(given, int | float) and not isinstance(given, bool):
            told = "is {calls}, and of no period; give calls per period, such as {calls}/s"
            raise PydanticCustomError("rate", told, {"calls": given})
        return given

    def policy(self, transient: Sequence[str]) -> Policy:
        """How calls are made, with the names of errors as they are called where they are defined."""
        chosen = self.model_dump(exclude={"replications", "seed", "transient"}, exclude_none=True)
        return Policy(transient=tuple(transient), **chosen)


def _branch(entry: Any) -> str | None:
    """Whether an entry is code or a kind; None where it is neither or both."""
    if not isinstance(entry, Mapping) or ("kind" in entry) == ("function" in entry):
        return None
    return "a kind" if "kind" in entry else "code"


class FairnessSpec(BaseModel):
    """A fairness criterion: which groups are to be treated alike, and for which label."""

    model_config = _STRICT
    criterion: Criterion
    by: str | list[str | list[str]] = Field(description="attributes whose groups are compared; a list crosses several")
    scorer: str | None = Field(
        None, description="one of the kind prediction; may be left out where there is one scorer"
    )
    label: StrictBool | StrictInt | StrictStr | None = Field(None, description="the class decided for")
    disparities: str | list[str] = Field(default=["difference", "ratio"])
    confidence: float = Field(0.95, gt=0, lt=1)


_TaskEntry = Annotated[
    Annotated[TaskCodeSpec, Tag("code")] | Annotated[TaskKindSpec, Tag("a kind")], Discriminator(_branch)
]
_ScorerEntry = Annotated[
    Annotated[ScorerCodeSpec, Tag("code")] | Annotated[ScorerKindSpec, Tag("a kind")], Discriminator(_branch)
]


class ExperimentSpec(BaseModel):
    """An experiment file."""

    model_config = _STRICT
    name: str = Field(min_length=1)
    dataset: DatasetSpec
    tasks: dict[str, _TaskEntry] = Field(min_length=1)
    scorers: dict[str, _ScorerEntry] = Field(min_length=1)
    metrics: list[MetricSpec] = Field(min_length=1)
    fairness: list[FairnessSpec] = []
    run: RunSpec = RunSpec()


@dataclass(frozen=True)
class _Sound:
    """What of an experiment file is sound; it may refer to the rest, whose faults have been noted.

    Attributes:
        dataset: without its faulty keys; None where there is no path.
        whole: whether the dataset has no faulty keys.
        metrics: by their place in the list.
        fairness: likewise.
        n_tasks: how many there are with the faulty ones.
        scorer_names: those of the faulty ones too.
    """

    name: str | None
    dataset: DatasetSpec | None
    whole: bool
    tasks: dict[str, TaskCodeSpec | TaskKindSpec]
    scorers: dict[str, ScorerCodeSpec | ScorerKindSpec]
    metrics: dict[int, MetricSpec]
    fairness: dict[int, FairnessSpec]
    run: RunSpec
    n_tasks: int
    scorer_names: list[str]


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
        replications: how often each example is run; if not given, as often as the task tells, or once.
        seed: what the examples' seeds are made from.
        views: task → the adapters that the dataset's rows pass through before it sees them.

    Raises:
        SpecError: something else than these is given.

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
    replications: int | None = None
    seed: int = 0
    origin: dict[str, Any] = field(default_factory=dict)
    views: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Experiment:
        """The experiment that a YAML file describes, with its code loaded and its dataset opened.

        Raises:
            SpecError: the file cannot work; every fault with its line.
            DataError: the dataset or recorded outputs break their rules, or there are no examples.
        """
        path = Path(path)
        spec, document = _read(path)
        folder = path.parent
        tasks: dict[str, Task[Any, Any]] = {}
        views: dict[str, Pipeline] = {}
        scorers: dict[str, Scorer] = {}
        measures: dict[Place, list[Measure]] = {}
        for name, task in spec.tasks.items():
            with document.at("tasks", name):
                tasks[check_name(name)] = _task(task, folder)
            with document.at("tasks", name, "view"):
                if task.view is not None:
                    views[name] = _view(task.view, spec.dataset)
        for name, scorer in spec.scorers.items():
            with document.at("scorers", name):
                scorers[check_name(name)] = _scorer(scorer, folder)
        for i, metric in spec.metrics.items():
            with document.at("metrics", i):
                measures["metrics", i] = [_measure(metric, spec.scorer_names)]
        for i, rule in spec.fairness.items():
            with document.at("fairness", i):
                measures["fairness", i] = _fairness(rule, spec.scorer_names)
        any_name = len(tasks) < spec.n_tasks or any(task.names_errors for task in tasks.values())
        transient = _transient(spec.run, folder, document, any_name)
        with document.at("run", "rate"):
            policy = spec.run.policy(transient)
        dataset = _dataset(spec, folder, document)
        _check_fit(spec, document, dataset if spec.whole else None, tasks, views, scorers, measures)
        document.check()
        assert spec.name is not None
        assert dataset is not None
        return cls(
            spec.name,
            dataset,
            tasks,
            scorers,
            [measure for those in measures.values() for measure in those],
            policy,
            spec.run.replications,
            spec.run.seed,
            {"experiment": os.path.abspath(path), "digest": hashlib.blake2b(path.read_bytes()).hexdigest()[:32]},
            views,
        )

    def __post_init__(self) -> None:
        if not isinstance(self.dataset, Dataset):
            raise SpecError(f"dataset must be a Dataset, not {kind_of(self.dataset)}; see Dataset.from_file")
        given: Any
        for what, given in (("task", self.tasks), ("scorer", self.scorers)):
            if not isinstance(given, Mapping) or not given:
                raise SpecError(f"{what}s must be a mapping name: {what} with at least one, not {kind_of(given)}")
        measures: Any = self.measures
        if not isinstance(measures, list | tuple) or not measures or not all(isinstance(m, Measure) for m in measures):
            raise SpecError("measures must be a list of Measure(scorer, metric) with at least one")
        if not isinstance(self.policy, Policy):
            raise SpecError(f"policy must be a Policy, not {kind_of(self.policy)}")
        names: Any = (self.name, *self.tasks, *self.scorers)
        for name in names:
            if not isinstance(name, str):
                raise SpecError(f"a name must be text, not {name!r}")
            check_name(name)
        for name, task in self.tasks.items():
            try:
                as_task(task)
            except SpecError as error:
                raise SpecError(f"tasks.{name}: {error}") from None
        for name in self.views:
            if name not in self.tasks:
                raise SpecError(f"views.{name}: no task is called so{registry.nearest(name, self.tasks)}")
        readable = {name: as_scorer(name, scorer).readable for name, scorer in self.scorers.items()}
        check_measures(self.measures, readable, self.dataset.roles)
        for measure in self.measures:
            _check_answers(measure.metric, self.tasks, self.replications)

    def run_name(self, task: str) -> str:
        """What runs and evaluations of a task are called in stores."""
        return f"{_part(self.name)}/{_part(task)}"

    def seen_by(self, task: str) -> Dataset:
        """The dataset as a task sees it."""
        return self.dataset.view(self.views[task]) if task in self.views else self.dataset

    def run(
        self,
        store: Store | None = None,
        *,
        limit: int | None = None,
        fresh: bool = False,
        retry_failed: bool = False,
        calls: bool = True,
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
            calls: whether tasks may be called; if not, the run that has a task's name is graded again.
            only: the one task to run.
            resume: the (kind, id) of an open run or evaluation of that task that must be continued.
            progress: shows how far each step is.
        """
        store = store or MemoryStore()
        runner = Runner(store, self.policy, progress=progress)
        grading = replace(self.policy, rate=None, total_timeout=None)  # these are for the tasks
        evaluator = Evaluator(store, grading, progress=progress)
        results = []
        for name, task in self.tasks.items():
            if only not in (None, name):
                continue
            full = self.run_name(name)
            origin = self.origin | {"task": name, "limit": limit}
            graded = _resumed(resume, "evaluations")
            if graded:
                run = Run(store, store.manifest("evaluations", graded)["provenance"]["run"])
            elif not calls:
                run = _finished(store, full)
            else:
                run = runner.run(
                    task,
                    self.seen_by(name),
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
        labels = [result.task for result in results]
        aggregation = Aggregator(store).aggregate(
            evaluations, self.measures, labels=labels, name=whole, origin=self.origin
        )
        return Results(results, aggregation)


def _part(name: str) -> str:
    """A name as part of a longer one, in which a slash parts the names."""
    return check_name(name).replace("%", "%25").replace("/", "%2F")


def json_schema() -> dict[str, Any]:
    """The JSON Schema of experiment files, with the parameters of every installed kind."""
    schema = ExperimentSpec.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "evaluand experiment"
    for group, holder in (("tasks", "TaskKindSpec"), ("scorers", "ScorerKindSpec"), ("metrics", "MetricSpec")):
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
    for holder in ("TaskKindSpec", "ScorerKindSpec", "MetricSpec"):
        del schema["$defs"][holder]
    return schema


def _kind_schema(group: str, name: str, definitions: dict[str, Any]) -> dict[str, Any]:
    made = TypeAdapter(registry.find(group, name)).json_schema(ref_template="#/$defs/{model}")
    definitions.update(made.pop("$defs", {}))
    made["properties"] = {"kind": {"const": name}, **made.get("properties", {})}
    made["required"] = ["kind", *made.get("required", [])]
    made["title"] = name
    made["additionalProperties"] = False
    return made


def _read(path: Path) -> tuple[_Sound, Document]:
    """What is sound of a file, and the document in which the faults of its form have been noted."""
    document = Document(path)
    if not isinstance(document.value, dict):
        raise SpecError(f"{path}:1: an experiment is a mapping with name, dataset, tasks, scorers and metrics")
    value = {**document.value}
    for group in ("tasks", "scorers"):
        if isinstance(value.get(group), dict):
            value[group] = {n: _as_written(_spelled_out(s), document, group, n) for n, s in value[group].items()}
    if isinstance(value.get("metrics"), list):
        value["metrics"] = [{"kind": s} if isinstance(s, str) else s for s in value["metrics"]]
    try:
        ExperimentSpec.model_validate(value)
    except ValidationError as error:
        document.add_all(error, known=_known_names)
    return _sound(value), document


def _as_written(entry: Any, document: Document, group: str, name: str) -> Any:
    """An entry whose version and model are text also where YAML has numbers: 1.10 is not 1.1."""
    if not isinstance(entry, dict):
        return entry
    numbers = [key for key in ("version", "model") if type(entry.get(key)) in (int, float)]
    return entry | {key: document.text(group, name, key) for key in numbers}


def _sound(value: Mapping[str, Any]) -> _Sound:
    tasks, scorers = (value[g] if isinstance(value.get(g), dict) else {} for g in ("tasks", "scorers"))
    metrics, fairness = (value[g] if isinstance(value.get(g), list) else [] for g in ("metrics", "fairness"))
    dataset, whole = _sound_keys(DatasetSpec, value.get("dataset"))
    run, _ = _sound_keys(RunSpec, value.get("run"))
    return _Sound(
        (value.get("name") or None) if isinstance(value.get("name"), str) else None,
        dataset,
        whole,
        _sound_entries(_TaskEntry, tasks.items()),
        _sound_entries(_ScorerEntry, scorers.items()),
        _sound_entries(MetricSpec, enumerate(metrics)),
        _sound_entries(FairnessSpec, enumerate(fairness)),
        run or RunSpec(),
        len(tasks),
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


def _spelled_out(entry: Any) -> Any:
    """A task or scorer of one word: `file.py:name` is code, anything else a kind."""
    if isinstance(entry, str):
        return {"function" if ":" in entry else "kind": entry}
    return entry


def _known_names(place: Place) -> list[str]:
    models: dict[Any, type[BaseModel]] = {"dataset": DatasetSpec, "run": RunSpec, "tasks": TaskCodeSpec}
    models["scorers"] = ScorerCodeSpec
    return list((models[place[0]] if place else ExperimentSpec).model_fields)


def _dataset(spec: _Sound, folder: Path, document: Document) -> Dataset | None:
    """The dataset; None where it has faults, which are noted."""
    given = spec.dataset
    if given is None:
        return None
    roles = given.model_dump(exclude={"path", "format", "delimiter", "name", "views"}, exclude_defaults=True)
    path = folder / given.path
    with document.at("dataset", "path"):
        try:
            made = Dataset.from_file(
                path, format=given.format, delimiter=given.delimiter, name=given.name or spec.name, **roles
            )
        except RoleError as error:
            for role, message in error.faults:
                document.add(("dataset", role), message)
            return None
        if not len(made):
            raise DataError(f"{path}: the file holds no examples")
        return made
    return None


def _check_fit(
    spec: _Sound,
    document: Document,
    dataset: Dataset | None,
    tasks: Mapping[str, Task[Any, Any]],
    views: Mapping[str, Pipeline],
    scorers: Mapping[str, Scorer],
    measures: Mapping[Place, Sequence[Measure]],
) -> None:
    """Notes files that are missing and, where there is a dataset, what does not fit it, before anything is called.

    A class of the user's own is left to the runner: to prepare it may load a model.
    """
    prepared: dict[str, Task[Any, Any]] = {}
    for name, task in tasks.items():
        seen: Dataset | None = None
        with document.at("tasks", name, "view"):
            seen = dataset.view(views[name]) if dataset is not None and name in views else dataset
        with document.at("tasks", name):
            task.identify()
            if seen is not None and (isinstance(spec.tasks[name], KindSpec) or isinstance(task, FunctionTask)):
                task.prepare(seen)
                prepared[name] = task
    for name, scorer in scorers.items():
        with document.at("scorers", name):
            scorer.identify()
            if dataset is not None:
                check_gradable(scorer, dataset, prepared, spec.run.replications)
    for place, those in measures.items():
        for measure in those:
            with document.at(*place):
                _check_answers(measure.metric, tasks, spec.run.replications)
            if dataset is not None and measure.scorer in scorers:
                with document.at(*place):
                    check_measures([measure], {measure.scorer: scorers[measure.scorer].readable}, dataset.roles)


def _view(given: Any, dataset: DatasetSpec | None) -> Pipeline:
    """The adapters of a task's view, given as they are or by their name among the dataset's."""
    if not isinstance(given, str):
        return Pipeline.of(given)
    known = dataset.views if dataset else {}
    if given not in known:
        there = f"there are {', '.join(known)}" if known else "the dataset has no views"
        raise SpecError(f"no view is called {given!r}{registry.nearest(given, known)}; {there}")
    return Pipeline.of(known[given])


def _check_answers(metric: Metric, tasks: Mapping[str, Any], replications: int | None) -> None:
    """Refuses a metric that needs more answers to each example than a task will give.

    Raises:
        SpecError: names the tasks, and what to do.
    """
    given = {name: as_task(task) for name, task in tasks.items()}
    times = {name: replications or task.replications or 1 for name, task in given.items()}
    short = [name for name, n in times.items() if n < metric.fewest_answers and not may_give_several(given[name])]
    if short:
        k, n = metric.fewest_answers, times[short[0]]
        once = "once" if n == 1 else f"{n} times"
        raise SpecError(
            f"{metric.kind}: k={k} needs {k} answers to each example, but {', '.join(short)} is asked {once};"
            f" run with replications: {k} or more"
        )


def _task(spec: TaskCodeSpec | TaskKindSpec, folder: Path) -> Task[Any, Any]:
    if isinstance(spec, KindSpec):
        return _made("tasks", spec.kind, _placed(spec, folder))  # type: ignore[no-any-return]
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
    return FunctionTask(_callable(code, spec), version=version, items=spec.items, files=files)


def _placed(spec: KindSpec, folder: Path) -> dict[str, Any]:
    """The parameters of a kind of task, with paths taken from the experiment's folder and code in place of its name."""
    parameters = spec.parameters
    if "path" in parameters:
        parameters["path"] = str(folder / str(parameters["path"]))
    if isinstance(parameters.get("files"), list):
        parameters["files"] = [str(folder / str(file)) for file in parameters["files"]]
    if "folder" in _parameter_names("tasks", spec.kind):
        parameters["folder"] = str(folder / str(parameters.get("folder", "")))
    if spec.kind == "estimator" and isinstance(parameters.get("model"), str):
        parameters["model"] = referred(CodeSpec(function=parameters["model"]).function, folder)
    return parameters


def _scorer(spec: ScorerCodeSpec | ScorerKindSpec, folder: Path) -> Scorer:
    made = _graded_by(spec, folder)
    return made if spec.view is None else OutputView(made, spec.view)


def _graded_by(spec: ScorerCodeSpec | ScorerKindSpec, folder: Path) -> Scorer:
    if isinstance(spec, KindSpec):
        return _made("scorers", spec.kind, spec.parameters)  # type: ignore[no-any-return]
    code = _code(spec, folder)
    files = tuple(str(folder / file) for file in spec.files)
    if isinstance(code, Scorer) and not (spec.version or files or spec.batch):
        return code
    if isinstance(code, Scorer) and not isinstance(code, FunctionScorer):
        raise SpecError(f"{spec.function} is a class of scorers, which declares its version itself and takes no batch")
    function = code.function if isinstance(code, FunctionScorer) else code
    return FunctionScorer(_callable(function, spec), version=_version(spec), files=files, batch=spec.batch)


def _callable(code: Any, spec: CodeSpec) -> Any:
    if not callable(code):
        what = f"{spec.function}: {kind_of(code)} cannot be called"
        raise SpecError(f"{what}; name a function, or a class whose objects can be called")
    return code


def _version(spec: CodeSpec) -> str | None:
    """What a declared version pins: the code it was declared for, with its parameters."""
    return None if spec.version is None else f"{spec.version} of {spec.function} {encode(spec.parameters).decode()}"


def _measure(spec: MetricSpec, scorers: Sequence[str]) -> Measure:
    scorer = _scorer_read(spec.scorer, scorers) if scorers else ""
    metric: Metric = _made("metrics", spec.kind, spec.parameters)
    groupings = [spec.by] if isinstance(spec.by, str) else spec.by
    by = tuple((names,) if isinstance(names, str) else tuple(names) for names in groupings)
    return Measure(scorer, metric, by, kinds_of(spec.disparities))


def _fairness(spec: FairnessSpec, scorers: Sequence[str]) -> list[Measure]:
    scorer = _scorer_read(spec.scorer, scorers) if scorers else ""
    kinds = kinds_of(spec.disparities)
    return measures_of(
        spec.criterion, spec.by, scorer=scorer, label=spec.label, disparities=kinds, confidence=spec.confidence
    )


def _scorer_read(name: str | None, scorers: Sequence[str]) -> str:
    if name is None and len(scorers) == 1:
        return scorers[0]
    if name is None:
        raise SpecError(f"say which scorer it reads: scorer: {' | '.join(scorers)}")
    if name not in scorers:
        hint = registry.nearest(name, scorers)
        raise SpecError(f"no scorer is called {name!r}{hint}; there are {', '.join(scorers)}")
    return name


def _made(group: str, kind: str, parameters: Mapping[str, Any]) -> Any:
    """A kind with its parameters.

    Raises:
        SpecError: no kind is called so, or it refuses the parameters together.
        ValidationError: parameters it has not, or values they cannot have.
    """
    known = _parameter_names(group, kind)
    unknown = [name for name in parameters if name not in known]
    if unknown:
        raise ValidationError.from_exception_data(kind, [_unknown(kind, name, known) for name in unknown])
    made = TypeAdapter(registry.find(group, kind)).validate_python(dict(parameters))
    if lax := list(_lax_flags(made, parameters)):
        raise ValidationError.from_exception_data(kind, lax)
    return made


def _parameter_names(group: str, kind: str) -> list[str]:
    made = registry.find(group, kind)
    return [f.name for f in fields(made) if f.init] if is_dataclass(made) else []


def _lax_flags(made: Any, given: Mapping[str, Any], place: tuple[str, ...] = ()) -> Iterator[InitErrorDetails]:
    """What was read as true or false without being either: pydantic takes `yes`, 1 and much else."""
    for name, value in given.items():
        read = getattr(made, name, None)
        if isinstance(read, bool) and not isinstance(value, bool):
            yield InitErrorDetails(type="bool_type", loc=(*place, name), input=value)
        elif isinstance(value, Mapping) and is_dataclass(read):
            yield from _lax_flags(read, value, (*place, name))


def _unknown(kind: str, name: str, known: Sequence[str]) -> InitErrorDetails:
    told = f"{kind} has no such parameter{registry.nearest(name, known)}; it has {', '.join(known) or 'none'}"
    return InitErrorDetails(type=PydanticCustomError("unknown", "{told}", {"told": told}), loc=(name,), input=None)


def _code(spec: CodeSpec, folder: Path) -> Any:
    """A function or an object; a class is called with the parameters."""
    value, name = referred(spec.function, folder), spec.function.rpartition(":")[2]
    if isinstance(value, type):
        try:
            return value(**spec.parameters)
        except Exception as error:
            hint = f"; the arguments of {name} stand under parameters"
            raise SpecError(_told(error, folder) or f"{_home(value, folder)}{_named(error)}{hint}") from error
    if spec.parameters:
        raise SpecError(f"{spec.function} is no class, so it takes no parameters")
    return value


def referred(function: str, folder: Path) -> Any:
    """What stands under a name in a file or module, `file.py:name` or `module:name`."""
    place, _, name = function.rpartition(":")
    value: Any = _module(place, folder)
    for part in name.split("."):
        if not hasattr(value, part):
            known = [n for n in vars(value) if not n.startswith("_")]
            raise SpecError(f"{place} has no {part!r}{registry.nearest(part, known)}")
        value = getattr(value, part)
    return value


def _transient(spec: RunSpec, folder: Path, document: Document, any_name: bool) -> list[str]:
    """What the error classes worth a retry are called where they are defined; notes those that are none."""
    names = []
    for i, name in enumerate(spec.transient):
        with document.at("run", "transient", i):
            names.append(_error_class(name, folder, any_name))
    return names


def _error_class(name: str, folder: Path, any_name: bool) -> str:
    if name in TRANSIENT:
        return name
    importlib.import_module("evaluand.processes")  # has errors of its own
    loaded = _loaded_errors()
    if "." in name:
        module, _, last = name.rpartition(".")
        given = referred(f"{module}:{last}", folder)
    else:
        given = loaded.get(name) or getattr(builtins, name, None)
    if given is None and any_name:
        return name
    if given is None:
        hint = registry.nearest(name, loaded)
        raise SpecError(f"no error class is called {name!r}{hint}; name one of your code, or say module.{name}")
    if not isinstance(given, type) or not issubclass(given, BaseException):
        raise SpecError(f"{name} is {kind_of(given)}, not an error class")
    return given.__name__


def _loaded_errors() -> dict[str, type[BaseException]]:
    """Every class of errors that is defined by now, by its name."""
    found: dict[type[BaseException], None] = {}
    left: list[type[BaseException]] = [BaseException]
    while left:
        error = left.pop()
        if error not in found:
            found[error] = None
            left += error.__subclasses__()
    return {error.__name__: error for error in found}


def _home(made: type, folder: Path) -> str:
    """`file.py:line: ` of a class."""
    with suppress(OSError, TypeError):
        return f"{_relative(inspect.getfile(made), folder)}:{inspect.getsourcelines(made)[1]}: "
    return ""


def _module(place: str, folder: Path) -> Any:
    """The module at a path or of a name, with the experiment's folder on the import path."""
    entry = str(folder.resolve())
    if entry not in sys.path:
        sys.path.insert(0, entry)
    try:
        if not place.endswith(".py"):
            if place.startswith("."):
                raise SpecError(f"{place!r} is neither a file nor a module; give file.py:name or module:name")
            return importlib.import_module(place)
        path = (folder / place).resolve()
        if not path.is_file():
            raise SpecError(f"{path}: no such file")
        return _executed(path)
    except SpecError:
        raise
    except (Exception, SystemExit) as error:
        told = _told(error, folder) or f"{place} cannot be imported: {_named(error)}"
        raise SpecError(told) from error


def _told(error: BaseException, folder: Path) -> str:
    """What was raised, after the place in the user's files; nothing where it was raised outside of them."""
    places = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError) and error.filename:
        places.append((error.filename, error.lineno))
    own = [(_relative(file, folder), line) for file, line in places if _is_own(file, folder)]
    return f"{own[-1][0]}:{own[-1][1]}: {_named(error)}" if own else ""


def _is_own(file: str, folder: Path) -> bool:
    path = Path(file)
    return path.is_relative_to(folder.resolve()) and "site-packages" not in path.parts


def _relative(file: str, folder: Path) -> str:
    return os.path.relpath(file, folder.resolve())


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}"


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
    try:
        made.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]  # half a module is none
        raise
    _TEXTS[name] = text
    return module


_TEXTS: dict[str, bytes] = {}


def _finished(store: Store, name: str) -> Run:
    id = next((ref.id for ref in store.refs() if (ref.kind, ref.name) == ("runs", name)), None)
    if id is None or not store.is_sealed("runs", id):
        raise SpecError(f"there is no finished run {name!r} to grade; run it first, without --no-calls")
    return Run(store, id)


def _resumed(resume: tuple[str, str] | None, kind: Literal["runs", "evaluations"]) -> str | None:
    return resume[1] if resume and resume[0] == kind else None
