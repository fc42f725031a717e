"""The fields of an experiment file, as models and as a JSON Schema.

A file is parsed into its valid parts, so that all faults can be reported at once.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, TypeAdapter, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from evaluand.aggregation.fairness import Criterion
from evaluand.comparison.ratings.method import Kind as RatingKind, RatingMethod
from evaluand.comparison.rule import MATCH_GATES, Gate
from evaluand.core import registry
from evaluand.core.errors import SpecError
from evaluand.core.files.yaml import Advice, Document, Place
from evaluand.engine.engine import TRANSIENT, Policy
from evaluand.experiment import spec
from evaluand.experiment.budget_spec import BudgetSpec
from evaluand.experiment.near_keys import advice, entry_advice, meant_key
from evaluand.experiment.task_matrix import allow_several, expand_matrices
from evaluand.metrics.base.class_scores import ScoredBy
from evaluand.metrics.names import is_name, metric_names, resolve_metric
from evaluand.store.store import check_name

ADD_MATCHES = "add matches: FILE.py:JUDGE"
"""The advice about a gate on matches in a file without matches."""

MATCHES_NAME = "matches"
"""The default name of matches."""

NO_RATING = "none"
"""The word for no rating of the systems, in place of a rating method."""

_STRICT = ConfigDict(extra="forbid", frozen=True)
_Adapters = Annotated[
    list[dict[str, Any]] | dict[str, Any],
    Field(description="adapters, each with `kind` and `configuration`, applied one after the other"),
]
_Named = Annotated[dict[str, str], Field(min_length=1)]
_VIEW: Any = Field(None, description="adapters that transform the dataset's rows, or the name of one of its views")
_OUTPUT_SCHEMA: Any = Field(
    None, description="what each output must be: a JSON Schema, a name, a file, or a model as file.py:name"
)
_OUTPUT_VIEW: Any = Field(None, description="adapters that transform outputs before they are graded")


_EXPECTED_VIEW: Any = Field(None, description="adapters that transform expected values before they are compared")


class DatasetSpec(BaseModel):
    """The file of the examples, and the roles of its columns."""

    model_config = _STRICT
    path: str = Field(description="a file, folder or pattern of files, or a part of a file: book.xlsx#sheet")
    format: str | None = Field(None, description="the file format; by default from the suffix")
    delimiter: str | None = Field(None, description="the delimiter of a CSV file; a comma by default")
    name: str | None = Field(None, description="by default the name of the experiment")
    input: str | list[str] | _Named | None = Field(
        None,
        description="the column that the task sees, or a path into one (question.text); several, as a list or name: "
        "path, are seen as a mapping",
    )
    expected: str | list[str] | dict[str, str] | None = Field(
        None, description="column or path (gold.answers[0]), several, or target: path"
    )
    attributes: str | list[str] | _Named = Field(default=[], description="columns or paths to group by, or name: path")
    id: str | None = Field(None, description="the column of the examples' ids")
    weight: str | None = Field(None, description="the column of the examples' weights")
    cluster: str | None = Field(None, description="the column that groups dependent examples")
    metadata: str | list[str] | _Named = Field(
        default=[], description="columns or paths to store with the examples, or name: path"
    )
    where: str | None = Field(
        None, min_length=1, description='only rows that match: sex == "F" and age > 30; missing values match nothing'
    )
    views: dict[str, _Adapters] = Field(default={}, description="name: adapters; tasks refer to a view by name")
    adapters: _Adapters | None = Field(None, description="adapters that transform the rows of the file")
    schema_: str | dict[str, Any] | None = Field(
        None,
        alias="schema",
        description="what every row must be, after the adapters: a JSON Schema, a name, a file, or a model as "
        "file.py:name",
    )


class CodeSpec(BaseModel):
    """Your function or class: `file.py:name`, or `module:name` importable from the file's folder."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)
    function: str = Field(pattern=r"^[^:]+:[A-Za-z_][\w.]*$")
    parameters: dict[str, Any] = Field(default={}, description="arguments, if the name is a class")
    version: str | None = Field(None, min_length=1, description="pins the code instead of its fingerprint")
    files: list[str] = Field(default=[], description="further files that it depends on")


class TaskCodeSpec(CodeSpec):
    """A task in code."""

    items: bool = Field(False, strict=True, description="the output is a list of items that together form the response")
    output_schema: str | dict[str, Any] | None = _OUTPUT_SCHEMA
    view: str | _Adapters | None = _VIEW


class ScorerCodeSpec(CodeSpec):
    """A scorer in code."""

    batch: bool = Field(False, strict=True, description="the function takes and returns lists")
    view: _Adapters | None = _OUTPUT_VIEW
    expected_view: _Adapters | None = _EXPECTED_VIEW


class KindSpec(BaseModel):
    """A registered kind with its parameters."""

    model_config = ConfigDict(extra="allow", frozen=True)
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
    expected_view: _Adapters | None = _EXPECTED_VIEW


class MetricPlace(BaseModel):
    """What a metric is computed on: the scorer whose table it reads, and the groups."""

    scorer: str | None = Field(None, description="may be omitted if there is one scorer")
    by: str | list[str | list[str]] = Field(default=[], description="attributes to group by; a list crosses several")
    where: str | None = Field(None, description="only rows of examples that match a condition: age > 30")
    disparities: str | list[str] = Field(default=[], description="disparities of the groups: difference, ratio, …")


class MetricSpec(MetricPlace, KindSpec):
    """A metric: the scorer whose table it reads, the groups, and the kind's parameters."""


class MetricCodeSpec(MetricPlace, CodeSpec):
    """A metric in code: a function of columns that returns a number, or a class of metrics."""

    name: str | None = Field(None, min_length=1, description="its name in tables; by default that of the function")
    direction: Literal["higher", "lower"] | None = Field(
        None, description="which values are better; by default neither"
    )
    range: tuple[float, float] | None = Field(None, description="the lowest and the highest possible value")
    bootstrap: int | None = Field(None, description="how many times rows are drawn for the interval; 400 by default")
    confidence: float | None = Field(0.95, gt=0, lt=1, description="level of the interval; null for none")
    weighted: bool = Field(False, strict=True, description="pass the weights of examples to the function")
    missing: Literal["leave_out", "refuse"] = Field("leave_out", description="what happens to rows without a score")


class JudgeCodeSpec(CodeSpec):
    """A judge in code: a function of two responses, or a class of comparison scorers."""

    batch: bool = Field(False, strict=True, description="the function takes and returns lists")


class JudgeKindSpec(KindSpec):
    """A kind of judge."""


class ScheduleSpec(KindSpec):
    """A schedule, with the kind's parameters."""


class RatingSpec(KindSpec):
    """How systems are rated from their matches, with the parameters of the method."""

    kind: str = "bradley_terry"
    confidence: float = Field(0.95, gt=0, lt=1, description="level of the intervals")


class RunSpec(BaseModel):
    """How calls are made."""

    model_config = _STRICT
    replications: int | None = Field(
        None,
        ge=1,
        lt=2**31,
        description="how often each example is run; by default the task's own number, or once",
    )
    seed: int = Field(0, ge=-(2**63), lt=2**63, description="the seed from which the seeds of calls are derived")
    concurrency: int | None = Field(None, ge=1, description="calls at once; 16, or with processes one per CPU")
    timeout: float | None = Field(None, gt=0, description="seconds per call")
    retries: int = Field(
        default=None,  # type: ignore[assignment] # the number of the task
        ge=0,
        description="further attempts after an error worth a retry; by default 4 for services and chat models, else 0",
    )
    backoff: float = Field(1.0, ge=0, description="seconds before the first retry")
    backoff_growth: float = Field(
        2.0, ge=1, description="the factor by which pauses grow, up to a minute; with 1 all are equal"
    )
    transient: list[str] = Field(
        default=list(TRANSIENT), description="error classes worth a retry, by name or module.name"
    )
    rate: str | None = Field(None, description="how many calls may start in a period: 60/min, 10/s, 5000/h")
    processes: bool = Field(False, strict=True, description="make calls in separate processes: for tasks that compute")
    total_timeout: float | None = Field(None, gt=0, description="seconds after which no further call of a task starts")
    abort_on_error: bool = Field(False, strict=True, description="stop at the first call that fails")
    same_failures: int = Field(
        20, ge=0, description="stop when the first so many calls have all failed with the same error; 0 never stops"
    )

    @field_validator("rate", mode="before")
    @classmethod
    def _require_period(cls, value: Any) -> Any:
        if isinstance(value, int | float) and not isinstance(value, bool):
            message = "is {calls}, without a period; give calls per period, such as {calls}/s"
            raise PydanticCustomError("rate", message, {"calls": value})
        return value

    def policy(self, transient: Sequence[str]) -> Policy:
        """The policy of calls, with the names of errors where they are defined."""
        chosen = self.model_dump(exclude={"replications", "seed", "transient"}, exclude_none=True)
        return Policy(transient=tuple(transient), **chosen)


def _branch(entry: Any) -> str | None:
    """Whether an entry is code or a kind; None if it is neither or both."""
    if not isinstance(entry, Mapping) or ("kind" in entry) == ("function" in entry):
        return None
    return "a kind" if "kind" in entry else "code"


class FairnessSpec(BaseModel):
    """A fairness criterion: the groups to treat alike, and the label."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    criterion: Criterion
    by: str | list[str | list[str]] = Field(description="attributes whose groups are compared; a list crosses several")
    scorer: str | None = Field(
        None, description="a scorer of the kind prediction; may be omitted if there is one scorer"
    )
    label: bool | int | str | None = Field(None, description="the class that is decided for")
    scored_by: ScoredBy | None = Field(None, description="calibration_by_group: the source of the probability")
    disparities: str | list[str] = Field(default=["difference", "ratio"])
    confidence: float = Field(0.95, gt=0, lt=1)


class TradeoffSpec(BaseModel):
    """A trade-off between objectives, such as the utility of tasks and disparities of groups."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    objectives: list[str] = Field(
        description="two or more, such as mean(helpful) and mean(helpful) difference by language",
        json_schema_extra={"minItems": 2},
    )
    name: str = Field("", description="its name; by default its objectives")
    tasks: list[str] = Field(default=[], description="names of tasks; by default all")
    thresholds: Literal["every", "roc"] | int | list[float] | None = Field(
        None,
        description="if set, tasks are models that decide at these thresholds of their confidence: every one, the "
        "corners of the ROC curve, so many from 0 to 1, or a list; else each task is a point, by its stored scores",
    )
    label: bool | int | str | None = Field(None, description="the positive label")
    scorer: str | None = Field(
        None,
        description="the scorer of the confidences, or of objectives that name none; may be omitted if there is one",
    )


TaskEntry = Annotated[
    Annotated[TaskCodeSpec, Tag("code")] | Annotated[TaskKindSpec, Tag("a kind")], Discriminator(_branch)
]
ScorerEntry = Annotated[
    Annotated[ScorerCodeSpec, Tag("code")] | Annotated[ScorerKindSpec, Tag("a kind")], Discriminator(_branch)
]


MetricEntry = Annotated[
    Annotated[MetricCodeSpec, Tag("code")] | Annotated[MetricSpec, Tag("a kind")], Discriminator(_branch)
]


JudgeEntry = Annotated[
    Annotated[JudgeCodeSpec, Tag("code")] | Annotated[JudgeKindSpec, Tag("a kind")], Discriminator(_branch)
]


GRADED_BY = "scorer"
"""The parameter of the judge `by_score`: the scorer whose scores it compares."""


def compares_scores(judge: JudgeCodeSpec | JudgeKindSpec) -> bool:
    """Whether a judge compares responses by the scores of a scorer that it names."""
    return isinstance(judge, JudgeKindSpec) and judge.kind == "by_score" and GRADED_BY in judge.parameters


def graded_by(judge: JudgeCodeSpec | JudgeKindSpec) -> ScorerCodeSpec | ScorerKindSpec | None:
    """The scorer whose scores a judge compares, in its long form; the name of an experiment's scorer is a kind here.

    Raises:
        ValidationError: it is neither a name nor a scorer.
    """
    if not compares_scores(judge):
        return None
    entry = judge.model_extra[GRADED_BY]  # type: ignore[index]
    return TypeAdapter(ScorerEntry).validate_python(_long_form(entry) if isinstance(entry, str) else entry)


def _long_form(word: str) -> dict[str, str]:
    """An entry that is one word: `file.py:name` is code, any other a kind."""
    return {"function" if ":" in word else "kind": word}


class MatchesSpec(BaseModel):
    """Comparisons of the tasks' responses by a judge."""

    model_config = _STRICT
    judge: JudgeEntry
    name: str = Field(MATCHES_NAME, min_length=1, description="its name; required where there are several")
    tasks: list[str] = Field(default=[], description="names of tasks; by default all")
    runs: list[str] | dict[str, str] = Field(
        default=[], description="earlier runs over the same dataset that are compared too: names or ids, or label: name"
    )
    schedule: ScheduleSpec = ScheduleSpec(kind="all_pairs")
    orders: Literal["both", "random"] = Field("both", description="who is presented first: both, or one at random")
    seed: int = Field(0, ge=-(2**63), lt=2**63, description="of random orders and of schedules that choose at random")
    rating: RatingSpec = RatingSpec()


class ExperimentSpec(BaseModel):
    """An experiment file; scorers and metrics are needed, unless there are matches: then both, or neither."""

    model_config = _STRICT
    name: str = Field(min_length=1)
    dataset: DatasetSpec
    tasks: dict[str, TaskEntry] = Field(min_length=1)
    scorers: dict[str, ScorerEntry] = Field(default={}, min_length=1)
    metrics: list[MetricEntry] = Field(default=[], min_length=1)
    fairness: list[FairnessSpec] = []
    tradeoffs: list[TradeoffSpec] = []
    matches: list[MatchesSpec] = []
    gates: list[str] = Field(default=[], description="rules that results must fulfil, such as accuracy >= 0.9")
    allow_unmeasured_judges: bool = Field(
        False, strict=True, description="check gates on judges without a card; otherwise such gates fail"
    )
    run: RunSpec = RunSpec()
    budget: BudgetSpec | None = Field(None, description="limit of the cost; the run stops there, and can be continued")
    prices: str | None = Field(None, min_length=1, description="a file of prices for models that have no price here")


def keys_at(place: Place) -> list[str]:
    """The keys that are allowed at a place of an experiment file."""
    models: dict[str, type[BaseModel]] = {
        "dataset": DatasetSpec,
        "tasks": TaskCodeSpec,
        "scorers": ScorerCodeSpec,
        "fairness": FairnessSpec,
        "tradeoffs": TradeoffSpec,
        "matches": JudgeCodeSpec if "judge" in place else MatchesSpec,
        "run": RunSpec,
        "budget": BudgetSpec,
    }
    fields = (models[place[0]] if place else ExperimentSpec).model_fields
    return [field.alias or name for name, field in fields.items()]


def place_of_matches(document: Document, number: int) -> Place:
    """The path to an entry of matches; a single entry may be written without a list."""
    return ("matches", number) if isinstance(document.value["matches"], list) else ("matches",)


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
        known = [one.name for one in metric_names()] if group == "metrics" else registry.names(group)
        by_name = {"enum": known, "description": "a kind without parameters"}
        place = schema["properties"][group]
        if group == "metrics":
            code = {"$ref": "#/$defs/MetricCodeSpec"}
            by_place = {"type": "string", "pattern": ":", "description": "file.py:name"}
            place["items"] = {"anyOf": [code, *alternatives, by_name, by_place]}
        else:
            code = {"$ref": f"#/$defs/{'TaskCodeSpec' if group == 'tasks' else 'ScorerCodeSpec'}"}
            by_place = {"type": "string", "pattern": ":", "description": "file.py:name"}
            place["additionalProperties"] = {"anyOf": [code, *alternatives, by_name, by_place]}
        if group == "tasks":
            for alternative in alternatives:
                allow_several(alternative)
    _write_matches(schema)
    schema["if"], schema["else"] = {"required": ["matches"]}, {"required": ["scorers", "metrics"]}
    for group in ("scorers", "metrics"):
        del schema["properties"][group]["default"]
    schema["dependentRequired"] = {"scorers": ["metrics"], "metrics": ["scorers"]}
    _allow_short_forms(schema["properties"])
    for holder in ("TaskKindSpec", "ScorerKindSpec", "MetricSpec", "JudgeKindSpec", "ScheduleSpec", "RatingSpec"):
        del schema["$defs"][holder]
    return schema


def _write_matches(schema: dict[str, Any]) -> None:
    """Matches with the parameters of every kind of judge and schedule."""
    definitions = schema["$defs"]
    properties = definitions["MatchesSpec"]["properties"]
    for key, group, code in (("judge", "comparison_scorers", "JudgeCodeSpec"), ("schedule", "schedules", None)):
        names = registry.names(group)
        kinds = [_kind_schema(group, name, definitions) for name in names]
        for kind in kinds:
            if GRADED_BY in kind["properties"]:
                kind["properties"][GRADED_BY] = {"$ref": "#/properties/scorers/anyOf/0/additionalProperties"}
        short = {"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": False}
        short |= {"properties": {name: {} for name in names}, "description": "kind: its parameters"}
        word = {"enum": names, "description": "a kind without parameters"}
        forms: list[Any] = [*kinds, word, short]
        if code is not None:
            place = {"type": "string", "pattern": ":", "description": "file.py:name"}
            forms = [{"$ref": f"#/$defs/{code}"}, *forms, place]
        properties[key] = {"anyOf": forms}
    properties["schedule"]["default"] = "all_pairs"
    properties["rating"] = _rating_schema(definitions["RatingSpec"]["properties"]["confidence"])
    one = schema["properties"]["matches"]["items"]
    schema["properties"]["matches"] = {"anyOf": [schema["properties"]["matches"], one, {"type": "string"}]}


def _rating_schema(confidence: dict[str, Any]) -> dict[str, Any]:
    """How systems are rated: a method with its parameters, or its name alone."""
    made = TypeAdapter(RatingMethod).json_schema()
    kind = {"enum": [*get_args(RatingKind)], "default": made["properties"]["kind"]["default"]}
    made["properties"] |= {"kind": kind, "confidence": confidence}
    made["additionalProperties"] = False
    return {"anyOf": [made, {"enum": [*get_args(RatingKind), NO_RATING]}], "default": kind["default"]}


def _allow_short_forms(parts: dict[str, Any]) -> None:
    """Parts may be one text, and tasks and scorers a list of texts."""
    text: dict[str, Any] = {"type": "string", "minLength": 1}
    for name in ("dataset", "metrics", "gates", "budget"):
        parts[name] = {"anyOf": [parts[name], text]}
    for name in ("tasks", "scorers"):
        parts[name] = {"anyOf": [parts[name], text, {"type": "array", "items": text, "minItems": 1}]}


def _kind_schema(group: str, name: str, definitions: dict[str, Any]) -> dict[str, Any]:
    made = TypeAdapter(registry.find(group, name)).json_schema(ref_template="#/$defs/{model}")
    definitions.update(made.pop("$defs", {}))
    made["properties"] = {"kind": {"const": name}, **made.get("properties", {})}
    made["required"] = ["kind", *made.get("required", [])]
    made["title"] = name
    made["additionalProperties"] = False
    return made


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
    prices: str | None
    task_names: list[str]
    scorer_names: list[str]


def parse_file(path: Path, content: bytes | None = None, model: str | None = None) -> tuple[ValidParts, Document]:
    """The valid parts of a file, and the document with the faults of the others.

    Args:
        content: the content of the file if it was read already.
        model: the model of all tasks that take one, in place of those in the file; or the name of one of `models`.
    """
    document = Document(path, content)
    if not isinstance(document.value, dict):
        raise SpecError(f"{path}:1: an experiment must be a mapping with name, dataset, tasks, scorers and metrics")
    value = _write_out(document.value)
    if isinstance(value.get("tasks"), dict):
        value["tasks"] = expand_matrices(value["tasks"], document, model)
    for group in registry.NAMED:
        if isinstance(value.get(group), dict):
            value[group] = {n: _expand(s, document, group, n) for n, s in value[group].items()}
    if isinstance(value.get("metrics"), list):
        value["metrics"] = [_expand_metric(s) if isinstance(s, str) else s for s in value["metrics"]]
    if isinstance(value.get("matches"), list):
        value["matches"] = [
            expand_matches(_with_text_version(entry, document, i)) for i, entry in enumerate(value["matches"])
        ]
    try:
        spec.ExperimentSpec.model_validate(value)
    except ValidationError as error:
        document.add_all(error, advice=Advice(spec.keys_at, meant_key, advice, entry_advice))
    _require_grading(value, document)
    valid = _collect_valid(value)
    if valid.name is not None:
        with document.at("name"):
            check_name(valid.name)
            return valid, document
    return replace(valid, name=None), document


def _require_grading(value: Mapping[str, Any], document: Document) -> None:
    """Adds missing scorers or metrics to the faults; with matches, both may be missing."""
    meant = {(meant_key((key,)) or key) for key in value}
    is_graded = bool({"scorers", "metrics", "fairness", "tradeoffs"} & meant)
    if "matches" in meant and not is_graded:
        return
    if not is_graded and (gate := _find_match_gate(value.get("gates"))) is not None:
        document.add(("matches",), f"is missing, and gate {gate!r} is about matches; {ADD_MATCHES}")
        return
    for group in ("scorers", "metrics"):
        if group not in meant:  # else the unknown key that means it has a fault
            document.add((group,), f"is missing; write {advice((group,))}")


def _find_match_gate(gates: Any) -> str | None:
    """The first gate that is about matches."""
    for text in gates if isinstance(gates, list) else ():
        with suppress(SpecError):
            if isinstance(text, str) and Gate.parse(text).metric in MATCH_GATES:
                return text
    return None


def _write_out(value: Mapping[str, Any]) -> dict[str, Any]:
    """Parts that are one text, and lists of tasks and scorers, in the long form; each is named after itself."""
    full = {**value}
    if isinstance(full.get("dataset"), str):
        full["dataset"] = {"path": full["dataset"]}
    for group in ("metrics", "gates"):
        if isinstance(full.get(group), str):
            full[group] = [full[group]]
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
        return _long_form(entry)
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
    """An entry of matches in which the version of the judge is as it was written: 1.10 is not 1.1."""
    judge = entry.get("judge") if isinstance(entry, Mapping) else None
    if not isinstance(judge, Mapping) or type(judge.get("version")) not in (int, float):
        return entry
    text = document.text(*place_of_matches(document, number), "judge", "version")
    return {**entry, "judge": {**judge, "version": text}}


def expand_matches(entry: Any) -> Any:
    """Matches with judge and schedule in their long forms; the short form is the judge alone."""
    if not isinstance(entry, Mapping | str):
        return entry
    full = {"judge": entry} if isinstance(entry, str) else {**entry}
    for key in ("judge", "schedule", "rating"):
        if isinstance(word := full.get(key), str):
            full[key] = _long_form(word) if key == "judge" else {"kind": word}
        elif isinstance(word, Mapping):
            full[key] = _expand_kind(word) if key != "rating" or {*word} & {*get_args(RatingKind)} else word
    return full


def _expand_kind(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """`{by_score: {scorer: exact_match}}` or `{by_score: exact_match}` as `{kind: by_score, scorer: exact_match}`."""
    [(name, value), *others] = [*entry.items()] or [("", None)]
    if others or name in ("kind", "function"):
        return entry
    if isinstance(value, Mapping) and not (name in _ONLY_PARAMETER and {"kind", "function"} & {*value}):
        return {**value, "kind": name}
    return {"kind": name, _ONLY_PARAMETER[name]: value} if name in _ONLY_PARAMETER else entry


_ONLY_PARAMETER = {"by_score": "scorer", "recorded": "path", "against_baseline": "baseline"}
"""The parameter of a kind of judge or schedule that is written as `kind: value`."""


def _collect_valid(value: Mapping[str, Any]) -> ValidParts:
    tasks, scorers = (value[g] if isinstance(value.get(g), dict) else {} for g in ("tasks", "scorers"))
    lists = ("metrics", "fairness", "tradeoffs", "matches", "gates")
    metrics, fairness, tradeoffs, matches, gates = (value[g] if isinstance(value.get(g), list) else [] for g in lists)
    dataset, is_valid = _valid_keys(spec.DatasetSpec, value.get("dataset"))
    run, _ = _valid_keys(spec.RunSpec, value.get("run"))
    budget, _ = _valid_keys(BudgetSpec, value.get("budget"))
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
        value["prices"] if isinstance(value.get("prices"), str) else None,
        list(tasks),
        list(scorers),
    )


def _valid_entries(kind: Any, entries: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    found, adapter = {}, TypeAdapter(kind)
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
                found[name] = TypeAdapter(kind).validate_python(entry[name])
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
