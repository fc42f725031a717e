"""Builds the parts of an experiment from its spec: dataset, views, tasks, scorers and measures."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Final, get_args, get_type_hints

from pydantic import ValidationError
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError
from pydantic_core.core_schema import ErrorType

from evaluand.aggregation.aggregator import Measure
from evaluand.aggregation.disparity import check_kinds
from evaluand.aggregation.fairness import measures_of
from evaluand.aggregation.group_rules import GroupRules, read_rules
from evaluand.aggregation.worst_groups import GroupSearch
from evaluand.core import registry
from evaluand.core.errors import DataError, ParameterError, SpecError, alternatives, kind_of, nearest
from evaluand.core.files.yaml import Document
from evaluand.core.identity import encode
from evaluand.core.redaction import is_secret_variable
from evaluand.core.secret_hosts import reading_file
from evaluand.data.adapters.base.adapter import Pipeline
from evaluand.data.dataset import Dataset
from evaluand.data.roles import RoleError, Roles
from evaluand.data.schema.data import Schema
from evaluand.data.view import ViewSpec
from evaluand.evaluation.comparison_scorers import ComparisonScorer, FunctionComparison
from evaluand.evaluation.output_view import ExpectedView, OutputView
from evaluand.evaluation.scorer import FunctionScorer, Scorer
from evaluand.experiment.near_keys import parameter_advice, word_advice
from evaluand.experiment.parsing import ValidParts
from evaluand.experiment.schemas import read_schema
from evaluand.experiment.spec import (
    GRADED_BY,
    NO_RATING,
    CodeSpec,
    DatasetSpec,
    FairnessSpec,
    GroupRulesSpec,
    GroupSearchSpec,
    JudgeEntry,
    KindSpec,
    MetricCodeSpec,
    MetricEntry,
    MetricSpec,
    RatingSpec,
    ScheduleSpec,
    ScorerEntry,
    ScorerKindSpec,
    TaskEntry,
    TaskKindSpec,
    TradeoffSpec,
)
from evaluand.experiment.task_matrix import keys_of_several
from evaluand.experiment.user_code import import_reference, load
from evaluand.judges.model_judge import ModelJudge, with_rubrics
from evaluand.matches.ratings.method import RatingMethod
from evaluand.matches.schedule import Schedule
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.function import FunctionMetric
from evaluand.metrics.names import resolve_metric, with_parameters
from evaluand.run.output_columns import RECORDED, output_columns
from evaluand.run.outputs import output_schema
from evaluand.run.task import FunctionTask, Task, as_task
from evaluand.run.tasks.stored import StoredRun
from evaluand.run.types import adapter_of
from evaluand.store.store import Store, check_name
from evaluand.tradeoff.trade import Trade


def dataset(spec: ValidParts, folder: Path, document: Document, tasks_folder: Path) -> Dataset | None:
    """The dataset; None if it has faults, which are added to the document.

    Args:
        tasks_folder: the folder of the paths of tasks, whose recorded outputs may be columns of the dataset's file.
    """
    source = spec.dataset
    if source is None:
        return None
    other = {"path", "format", "delimiter", "name", "views", "where", "adapters", "schema_"}
    roles = source.model_dump(exclude=other, exclude_defaults=True)
    path = folder / source.path
    settings: dict[str, Any] = {"format": source.format, "delimiter": source.delimiter}
    with document.at("dataset", "name"):
        settings["name"] = check_name(source.name) if source.name else spec.name
    with document.at("dataset", "adapters"):
        settings["adapters"] = None if source.adapters is None else Pipeline.of(source.adapters)
    with document.at("dataset", "schema"):
        settings["schema"] = None if source.schema_ is None else Schema.of(read_schema(source.schema_, folder))
    if not {"name", "adapters", "schema"} <= settings.keys():
        return None
    with document.at("dataset", "path"):
        try:
            examples = _read_examples(spec, folder, tasks_folder, roles, settings)
        except RoleError as error:
            for role, message in error.faults:
                document.add(("dataset", role), message)
            return None
        if not len(examples):
            raise DataError(f"{path}: the file has no examples")
        if source.where is None:
            return examples
        with document.at("dataset", "where"):
            return examples.where(source.where)
    return None


def _read_examples(
    spec: ValidParts, folder: Path, tasks_folder: Path, roles: dict[str, Any], settings: Mapping[str, Any]
) -> Dataset:
    """The examples; recorded outputs in their file are left out of the input, unless the input names them."""
    assert spec.dataset is not None
    path = folder / spec.dataset.path
    try:
        examples = Dataset.from_file(path, **settings, **roles)
    except RoleError as error:
        if {role for role, _ in error.faults} != {"input"} or spec.dataset.input is not None or not _are_recorded(spec):
            raise
        return Dataset.from_file(path, **settings, **roles | {"input": _first_role(roles)})  # which no task reads
    outputs = _recorded_outputs(spec, path, tasks_folder)
    if spec.dataset.input is None and outputs & {*_list(examples.roles.input)}:
        own = _input_without(examples.roles, outputs, all_recorded=_are_recorded(spec))
        return Dataset.from_file(path, **settings, **roles | {"input": own})
    return examples


def _list(columns: str | Sequence[str]) -> Sequence[str]:
    return (columns,) if isinstance(columns, str) else columns


def _first_role(roles: Mapping[str, Any]) -> str:
    """A column that every example has."""
    expected = roles.get("expected") or "expected"
    return str(
        roles.get("id")
        or (
            expected
            if isinstance(expected, str)
            else next(iter(expected.values() if isinstance(expected, Mapping) else expected))
        )
    )


def _recorded_outputs(spec: ValidParts, examples: Path, folder: Path) -> set[str]:
    """The columns of the examples' file with the outputs of recorded tasks, which no task may see."""
    path = examples.resolve()
    found: set[str] = set()
    for task in spec.tasks.values():
        if (
            isinstance(task, KindSpec)
            and task.kind == RECORDED
            and isinstance(file := task.parameters.get("path"), str)
        ):
            with suppress(SpecError):
                same = (folder / file).resolve() == path
                found |= {*output_columns({"kind": RECORDED, **task.parameters})} if same else set()
    return found


def _are_recorded(spec: ValidParts) -> bool:
    """Whether all tasks are recorded, so that none reads the input."""
    tasks = [spec.tasks.get(name) for name in spec.task_names]
    return all(isinstance(task, KindSpec) and task.kind == RECORDED for task in tasks)


def _input_without(roles: Roles, outputs: set[str], *, all_recorded: bool) -> str | list[str]:
    """The default input without recorded outputs; if nothing is left and no task reads it, the id or the truth.

    Raises:
        RoleError: nothing is left for a task to see.
    """
    rest = [name for name in _list(roles.input) if name not in outputs]
    if rest:
        return rest
    if not all_recorded or not (roles.id or roles.expected):
        raise RoleError([("input", "every column has another role or is a recorded output; name the input column")])
    return _first_role({"id": roles.id, "expected": roles.expected})


def view(entry: Any, of: DatasetSpec | None, folder: Path) -> ViewSpec:
    """A task's view, written out or named among the dataset's views."""
    if not isinstance(entry, str):
        return _read_view(entry, folder)
    known = of.views if of else {}
    if entry not in known:
        names = f"there are {', '.join(known)}" if known else "the dataset has no views"
        raise SpecError(f"no view is called {entry!r}{nearest(entry, known)}; {names}")
    return _read_view(known[entry], folder)


def _read_view(entry: Any, folder: Path) -> ViewSpec:
    """The adapters of a view and its schema, which may be in a file."""
    if isinstance(entry, Mapping) and "schema" in entry:
        entry = {**entry, "schema": read_schema(entry["schema"], folder)}
    return ViewSpec.of(entry)


def task(spec: TaskEntry, folder: Path, store: Store | None) -> Task[Any, Any]:
    """A task.

    Args:
        store: where stored runs are.
    """
    built = _build_task(spec, folder)
    if isinstance(built, StoredRun):
        if isinstance(spec, TaskKindSpec) and spec.view is not None:
            raise ParameterError([(("view",), "a stored run has the view that it was made with; leave it out")])
        return built.open(store)
    _check_schema(built)
    return built


def _build_task(spec: TaskEntry, folder: Path) -> Task[Any, Any] | StoredRun:
    if isinstance(spec, KindSpec):
        _check_kind("tasks", spec.kind)
        return _make("tasks", spec.kind, _resolve_paths(spec, folder))  # type: ignore[no-any-return]
    code = load(spec, folder)
    files = tuple(str(folder / file) for file in spec.files)
    declared: dict[str, Any] = {"version": _pinned_version(spec), "files": files, "items": spec.items}
    declared["output_schema"] = _resolve_schema(spec.output_schema, folder)
    if isinstance(code, FunctionTask) and any(declared.values()):
        code = code.function
    if not hasattr(code, "do_run"):
        return FunctionTask(_require_callable(code, spec), **declared)
    built = as_task(code)
    for name, value in declared.items():
        if value:  # otherwise the class's own value stays
            setattr(built, name, value)
    return built


def _resolve_paths(spec: KindSpec, folder: Path) -> dict[str, Any]:
    """The parameters of a kind of task, with paths relative to the experiment's folder, and code imported."""
    parameters = spec.parameters
    if isinstance(variables := parameters.get("env"), dict) and "env" in _parameter_names("tasks", spec.kind):
        _refuse_credentials(variables)
    if "path" in parameters:
        parameters["path"] = str(folder / str(parameters["path"]))
    if isinstance(parameters.get("files"), list):
        parameters["files"] = [str(folder / str(file)) for file in parameters["files"]]
    if "folder" in _parameter_names("tasks", spec.kind):
        parameters["folder"] = str(folder / str(parameters.get("folder", "")))
    for name in ("output_schema", "response_schema"):
        if parameters.get(name) is not None:
            parameters[name] = _resolve_schema(parameters[name], folder, name)
    split = parameters.get("split")
    if isinstance(split, dict) and isinstance(split.get("file"), str):
        parameters["split"] = {**split, "file": str(folder / split["file"])}
    name = _CODE.get(spec.kind, "")
    if isinstance(parameters.get(name), str):
        parameters[name] = import_reference(CodeSpec(function=parameters[name]).function, folder)
    if spec.kind == CHAT and TOOLS in parameters:
        parameters[TOOLS] = _import_tools(parameters[TOOLS], folder)
    return parameters


def _import_tools(names: Any, folder: Path) -> list[Any]:
    """The functions that a model may call."""
    if not isinstance(names, list):
        raise ParameterError([((TOOLS,), f"is {kind_of(names)}; give a list of file.py:name")])
    tools: list[Any] = []
    faults: list[tuple[tuple[str | int, ...], str]] = []
    for number, name in enumerate(names):
        try:
            if not isinstance(name, str) or ":" not in name:
                raise SpecError(f"is {name!r}; give file.py:name")
            tools.append(import_reference(name, folder))
        except SpecError as error:
            faults.append(((TOOLS, number), str(error)))
    if faults:
        raise ParameterError(faults)
    return tools


def _refuse_credentials(variables: Mapping[Any, Any]) -> None:
    """Refuses credentials among the environment variables that a file sets for a program."""
    found = [str(name) for name, value in variables.items() if value and is_secret_variable(str(name))]
    if found:
        advice = "leave it out and set it in your environment, which the program receives"
        raise ParameterError([(("env", name), f"is a credential written into the file; {advice}") for name in found])


def _resolve_schema(what: Any, folder: Path, name: str = "output_schema") -> Any:
    """The schema of a task's outputs or replies: read from a file if it is named, else as written."""
    try:
        return read_schema(what, folder)
    except SpecError as error:
        raise _schema_error(error, name) from None


def _check_schema(built: Task[Any, Any]) -> None:
    """Reports an invalid schema of outputs when the file is read."""
    try:
        output_schema(built)
    except SpecError as error:
        raise _schema_error(error) from None


def _schema_error(error: SpecError, name: str = "output_schema") -> ParameterError:
    lines = str(error).split("\n")
    return ParameterError([((name,), line.removeprefix(f"{name}: ")) for line in lines])


_CODE = {"estimator": "model", "retriever_question_answering": "retriever"}
"""The parameter of a kind of task that is the user's code."""

CHAT = "chat"
MULTIPLE_CHOICE = "multiple_choice"
TOOLS = "tools"
"""The parameter of a chat that names functions of the user."""


def scorer(spec: ScorerEntry, folder: Path) -> Scorer:
    built = _build_scorer(spec, folder)
    if spec.view is not None:
        built = OutputView(built, _read_view(spec.view, folder))
    return built if spec.expected_view is None else ExpectedView(built, _read_view(spec.expected_view, folder))


def _build_scorer(spec: ScorerEntry, folder: Path) -> Scorer:
    if isinstance(spec, KindSpec):
        return _make("scorers", spec.kind, _import_code(spec, folder))  # type: ignore[no-any-return]
    code = load(spec, folder)
    files = tuple(str(folder / file) for file in spec.files)
    if isinstance(code, Scorer) and not (spec.version or files or spec.batch):
        return code
    if isinstance(code, Scorer) and not isinstance(code, FunctionScorer):
        raise SpecError(f"{spec.function} is a Scorer class: declare its version there, and leave out batch")
    function = code.function if isinstance(code, FunctionScorer) else code
    return FunctionScorer(
        _require_callable(function, spec), version=_pinned_version(spec), files=files, batch=spec.batch
    )


def _import_code(spec: KindSpec, folder: Path) -> dict[str, Any]:
    """The parameters of a scorer: those of a feedback with code imported, those of a judge with paths of rubrics."""
    parameters = _resolve_rubrics("scorers", spec, folder)
    for name in _CODE_OF_SCORERS.get(spec.kind, ()):
        if isinstance(parameters.get(name), str) and ":" in parameters[name]:
            parameters[name] = import_reference(parameters[name], folder)
    return parameters


def _resolve_rubrics(group: str, spec: KindSpec, folder: Path) -> dict[str, Any]:
    """The parameters of a kind; those of a judge with the paths of its rubrics relative to the experiment's folder."""
    found = registry.find(group, spec.kind) if spec.kind in registry.names(group) else None
    if not isinstance(found, type) or not issubclass(found, ModelJudge):
        return spec.parameters
    resolved: dict[str, Any] = with_rubrics(spec.parameters, lambda path: str(folder / path))
    return resolved


_CODE_OF_SCORERS = {"feedback": ("implementation", "aggregate")}
"""The parameters of a kind of scorer that are the user's code."""

CODE_PARAMETERS = {kind: (parameter,) for kind, parameter in _CODE.items()} | _CODE_OF_SCORERS
"""The parameters of all kinds that are the user's code."""


def _require_callable(code: Any, spec: CodeSpec) -> Any:
    if not callable(code):
        what = f"{spec.function}: {kind_of(code)} is not callable"
        raise SpecError(f"{what}; name a function, or a class whose objects are callable")
    return code


def _pinned_version(spec: CodeSpec) -> str | None:
    """A declared version with the code and parameters that it pins."""
    return None if spec.version is None else f"{spec.version} of {spec.function} {encode(spec.parameters).decode()}"


def judge(spec: JudgeEntry, graded: Scorer | None, folder: Path) -> ComparisonScorer:
    """A judge.

    Args:
        graded: the scorer whose scores it compares, if it does.
    """
    if isinstance(spec, KindSpec):
        parameters = _resolve_rubrics("comparison_scorers", spec, folder)
        parameters |= {} if graded is None else {GRADED_BY: graded}
        if "path" in parameters:
            parameters["path"] = str(folder / str(parameters["path"]))
        return _make("comparison_scorers", spec.kind, parameters)  # type: ignore[no-any-return]
    code = load(spec, folder)
    files = tuple(str(folder / file) for file in spec.files)
    if isinstance(code, ComparisonScorer) and not (spec.version or files or spec.batch):
        return code
    if isinstance(code, ComparisonScorer) and not isinstance(code, FunctionComparison):
        raise SpecError(f"{spec.function} is a class of comparison scorers: declare its version there, leave out batch")
    if isinstance(code, Scorer):
        raise SpecError(
            f"{spec.function} grades one response; to compare two by its scores: {{by_score: {spec.function}}}"
        )
    function = code.function if isinstance(code, FunctionComparison) else _require_callable(code, spec)
    return FunctionComparison(function, version=_pinned_version(spec), files=files, batch=spec.batch)


def schedule(spec: ScheduleSpec) -> Schedule:
    return _make("schedules", spec.kind, spec.parameters)  # type: ignore[no-any-return]


def rating(spec: RatingSpec) -> RatingMethod | None:
    """How systems are rated; None if they are not."""
    if spec.kind == NO_RATING and not spec.parameters:
        return None
    known = [field.name for field in fields(RatingMethod)]
    if unknown := [name for name in spec.parameters if name not in known]:
        raise ValidationError.from_exception_data(
            spec.kind, [_unknown_parameter("ratings", "rating", name, known) for name in unknown]
        )
    return RatingMethod(kind=spec.kind, **spec.parameters)


def measure(spec: MetricEntry, scorers: Sequence[str], folder: Path) -> Measure:
    scorer = _choose_scorer(spec.scorer, scorers)
    by = _read_groupings(spec.by)
    metric = _code_metric(spec, folder) if isinstance(spec, MetricCodeSpec) else _named_metric(spec)
    kinds, rules = check_kinds(spec.disparities), _group_rules(spec, by)
    if rules is not None and not kinds:
        raise SpecError(
            "reference, pairs, given, smallest and adjust are about disparities; add disparities: difference"
        )
    stated = "missing" in (spec.parameters if isinstance(spec, MetricSpec) else spec.model_fields_set)
    search = _group_search(spec)
    return Measure(scorer, metric, by, kinds, where=spec.where, rules=rules, search=search, states_missing=stated)


def _group_search(spec: MetricEntry) -> GroupSearch | None:
    wanted = spec.worst_groups
    if wanted is None:
        return None
    return GroupSearch(**wanted.model_dump()) if isinstance(wanted, GroupSearchSpec) else GroupSearch(wanted)


def _group_rules(spec: GroupRulesSpec, by: Sequence[Sequence[str]]) -> GroupRules | None:
    return read_rules(by, **{name: getattr(spec, name) for name in GroupRulesSpec.model_fields})


def lower_is_better(measure: Measure, spec: MetricEntry) -> Measure:
    """A measure on a scorer for whose values lower is better, as far as its entry does not say a direction itself."""
    metric: Any = measure.metric
    has_choice = isinstance(spec, MetricSpec) and "direction" in _parameter_names("metrics", metric.kind)
    if not has_choice or "direction" in spec.parameters or (metric.column, metric.direction) != ("value", "higher"):
        return measure
    return replace(measure, metric=replace(metric, direction="lower"))


def _named_metric(spec: MetricSpec) -> Metric:
    kind, parameters = spec.kind, spec.parameters
    if kind not in registry.names("metrics"):
        kind, of_name = resolve_metric(kind)
        parameters = with_parameters(of_name, parameters)
    return _make("metrics", kind, parameters)  # type: ignore[no-any-return]


def _code_metric(spec: MetricCodeSpec, folder: Path) -> Metric:
    """A function as a metric, or an object of a class of metrics, which states its parameters itself."""
    code = load(spec, folder)
    chosen = {"name", "direction", "range", "bootstrap", "confidence", "weighted", "missing"} & spec.model_fields_set
    if isinstance(code, Metric):
        if further := sorted(chosen | ({"version", "files"} & spec.model_fields_set)):
            raise SpecError(f"{spec.function} is a class of metrics: put {', '.join(further)} under parameters")
        return code
    declared = {name: getattr(spec, name) for name in chosen}
    files = tuple(str(folder / file) for file in spec.files)
    return FunctionMetric(
        function=_require_callable(code, spec), code_version=_pinned_version(spec), files=files, **declared
    )


def fairness(spec: FairnessSpec, scorers: Sequence[str]) -> list[Measure]:
    scorer = _choose_scorer(spec.scorer, scorers)
    return measures_of(
        spec.criterion,
        spec.by,
        scorer=scorer,
        label=spec.label,
        scored_by=spec.scored_by,
        disparities=check_kinds(spec.disparities),
        confidence=spec.confidence,
        rules=_group_rules(spec, _read_groupings(spec.by)),
    )


def _read_groupings(by: str | Sequence[str | Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    each = [by] if isinstance(by, str) else by
    return tuple((names,) if isinstance(names, str) else tuple(names) for names in each)


def tradeoff(spec: TradeoffSpec) -> Trade:
    return Trade(**spec.model_dump())


def _choose_scorer(name: str | None, scorers: Sequence[str]) -> str:
    if not scorers:
        return ""  # this fault is already in the document
    if name is None and len(scorers) == 1:
        return scorers[0]
    if name is None:
        raise SpecError(f"name the scorer it reads: scorer: {' | '.join(scorers)}")
    if name not in scorers:
        hint = nearest(name, scorers)
        raise SpecError(f"no scorer is called {name!r}{hint}; there are {', '.join(scorers)}")
    return name


def _make(group: str, kind: str, parameters: Mapping[str, Any]) -> Any:
    """Makes a kind with its parameters.

    Raises:
        SpecError: no kind has this name, or it refuses this combination of parameters.
        ValidationError: a parameter is unknown, or has an invalid value.
    """
    _check_kind(group, kind)
    known = _parameter_names(group, kind)
    unknown = [name for name in parameters if name not in known]
    if unknown:
        known += keys_of_several(kind, known) if group == "tasks" else []
        known += [name for name in _ENTRIES.get(group, KindSpec).model_fields if name != "kind"]
        raise ValidationError.from_exception_data(
            kind, [_unknown_parameter(group, kind, name, known) for name in unknown]
        )
    found = registry.find(group, kind)
    kind_adapter = adapter_of(found)
    try:
        with reading_file():
            made = kind_adapter.validate_python(dict(parameters))
    except ParameterError as error:
        raise ParameterError((_place_in(parameters, place), message) for place, message in error.faults) from None
    except ValidationError as error:
        faults = error.errors(include_url=False)
        if not any(fault["type"] == _UNKNOWN_KEY for fault in faults):
            raise
        raise ValidationError.from_exception_data(kind, [_with_known_keys(fault, found) for fault in faults]) from None
    if lax := list(_lax_flags(made, parameters)):
        raise ValidationError.from_exception_data(kind, lax)
    return made


_ENTRIES: Final[Mapping[str, type[KindSpec]]] = {
    "tasks": TaskKindSpec,
    "scorers": ScorerKindSpec,
    "metrics": MetricSpec,
}
"""The entries that have keys besides the parameters of their kind, by group."""


def _place_in(parameters: Mapping[str, Any], place: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """The place of a fault among parameters; it may be in a nested parameter, such as a field of a model."""
    if not place or place[0] in parameters:
        return place
    within = [name for name, value in parameters.items() if isinstance(value, Mapping) and place[0] in value]
    return (*within, *place) if len(within) == 1 else place


def _check_kind(group: str, kind: str) -> None:
    """Reports an unknown kind at its place, with what is probably meant."""
    known = registry.names(group)
    if kind not in known:
        words = word_advice(group, kind)
        remedy = f"; {words}" if words else alternatives(kind, known)
        raise ParameterError(
            [((("kind",) if group in registry.NAMED else ()), f"{registry.no_kind(group, kind)}{remedy}")]
        )


def _parameter_names(group: str, kind: str) -> list[str]:
    found = registry.find(group, kind)
    return [f.name for f in fields(found) if f.init] if is_dataclass(found) else []


def _lax_flags(made: Any, parameters: Mapping[str, Any], place: tuple[str, ...] = ()) -> Iterator[InitErrorDetails]:
    """Values that are not booleans but were read as such: pydantic accepts `yes`, 1 and more."""
    for name, value in parameters.items():
        read = getattr(made, name, None)
        if isinstance(read, bool) and not isinstance(value, bool):
            yield InitErrorDetails(type="bool_type", loc=(*place, name), input=value)
        elif isinstance(value, Mapping) and is_dataclass(read):
            yield from _lax_flags(read, value, (*place, name))


def _with_known_keys(fault: ErrorDetails, kind: Any) -> InitErrorDetails:
    """A fault of a validation; that of an unknown key of a nested mapping with the keys that it may have."""
    message, place = fault["msg"], fault["loc"]
    if fault["type"] == _UNKNOWN_KEY and (known := _keys_at(kind, place[:-1])):
        message = f"unknown key{alternatives(str(place[-1]), known)}"
    elif fault["type"] in get_args(ErrorType):
        return InitErrorDetails(type=fault["type"], loc=place, input=fault["input"], ctx=fault.get("ctx", {}))
    error = PydanticCustomError("other", "{message}", {"message": message})
    return InitErrorDetails(type=error, loc=place, input=fault["input"])


_UNKNOWN_KEY: Final = "unexpected_keyword_argument"


def _keys_at(kind: Any, place: Sequence[str | int]) -> list[str]:
    """The keys of a mapping among the parameters of a kind; empty if they are not known."""
    for step in place:
        hint = get_type_hints(kind).get(str(step)) if is_dataclass(kind) else None
        kind = next((each for each in (hint, *get_args(hint)) if is_dataclass(each)), None)
    return [each.name for each in fields(kind) if each.init] if is_dataclass(kind) else []


def _unknown_parameter(group: str, kind: str, name: str, known: Sequence[str]) -> InitErrorDetails:
    near = parameter_advice(group, kind, name)
    message = f"{kind} has no such parameter{nearest(name, known)}; it has {', '.join(known) or 'none'}"
    message = message if near is None else f"{kind} has no such parameter; write {near}"
    error = PydanticCustomError("unknown", "{message}", {"message": message})
    return InitErrorDetails(type=error, loc=(name,), input=None)
