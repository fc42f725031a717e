"""The fields of an experiment file, as models.

`parsing` reads a file into them, `spec_schema` makes a JSON Schema of them.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeGuard

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator
from pydantic_core import PydanticCustomError

from evaluand.aggregation.fairness import Criterion
from evaluand.core.files.yaml import Place
from evaluand.engine.policy import TRANSIENT, Policy
from evaluand.experiment.budget_spec import BudgetSpec
from evaluand.experiment.engine_spec import EngineSpec
from evaluand.experiment.long_forms import long_form
from evaluand.metrics.base.class_scores import ScoredBy
from evaluand.predictions.tournament import MATCHES_NAME
from evaluand.run.types import adapter_of

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
    version: str | None = Field(None, min_length=1, description="names what code cannot show; code counts beside it")
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


_GroupEntry = str | bool | int | float | list[str | bool | int | float] | dict[str, str | bool | int | float]


class GroupRulesSpec(BaseModel):
    """Which groups disparities compare, beside the two that differ most."""

    reference: _GroupEntry | None = Field(
        None, description="the group to which others are compared: a value; of several attributes, attribute: value"
    )
    pairs: list[list[_GroupEntry]] = Field(default=[], description="pairs of groups to compare")
    given: str | list[str] = Field(
        default=[], description="attributes: disparities within each of their values, and standardised over them"
    )
    smallest: int = Field(
        0, ge=0, strict=True, description="groups that fewer rows rest on are listed, with shrunk values, not judged"
    )
    adjust: Literal["bonferroni", "fdr_by"] = Field(
        "bonferroni",
        description="intervals of all disparities together: hold at once, or control the share of false ones among "
        "those that are found (Benjamini & Yekutieli)",
    )


class GroupSearchSpec(BaseModel):
    """Where to look for the groups with the worst values: on one half of the examples; the other judges them."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    attributes: str | list[str] = Field(description="attributes whose values, and crossed values, define the groups")
    depth: int = Field(2, ge=1, description="how many attributes are crossed at most")
    most: int = Field(5, ge=1, description="the largest number of groups")
    smallest: int = Field(30, ge=2, description="groups that fewer rows of the first half rest on are not looked at")
    seed: int = Field(0, ge=0, lt=2**63, description="of the halves")


class MetricPlace(GroupRulesSpec):
    """What a metric is computed on: the scorer whose table it reads, and the groups."""

    scorer: str | None = Field(None, description="may be omitted if there is one scorer")
    by: str | list[str | list[str]] = Field(default=[], description="attributes to group by; a list crosses several")
    where: str | None = Field(None, description="only rows of examples that match a condition: age > 30")
    disparities: str | list[str] = Field(default=[], description="disparities of the groups: difference, ratio, …")
    worst_groups: str | list[str] | GroupSearchSpec | None = Field(
        None, description="attributes among whose groups, also crossed, the worst are looked for"
    )


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
    concurrency: int | None = Field(None, ge=1, description="calls at once, by default 16; of each process or worker")
    timeout: float | None = Field(None, gt=0, description="seconds per call")
    retries: int = Field(
        default=None,  # type: ignore[assignment] # the number of the task
        ge=0,
        description="further attempts after an error worth a retry; by default 4 for services, chat models and judges"
        " that ask a model, else 0",
    )
    backoff: float = Field(1.0, ge=0, description="seconds before the first retry")
    backoff_growth: float = Field(
        2.0, ge=1, description="the factor by which pauses grow, up to a minute; with 1 all are equal"
    )
    transient: list[str] = Field(
        default=list(TRANSIENT), description="error classes worth a retry, by name or module.name"
    )
    rate: str | None = Field(None, description="how many calls may start in a period: 60/min, 10/s, 5000/h")
    total_timeout: float | None = Field(None, gt=0, description="seconds after which no further call of a task starts")
    abort_on_error: bool = Field(False, strict=True, description="stop at the first call that fails")
    same_failures: int = Field(
        20, ge=0, description="stop when the first so many calls have all failed with the same error; 0 never stops"
    )

    observe_models: bool = Field(
        True,
        strict=True,
        description="trace and count the requests that tasks and scorers make by the SDKs of services",
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


class FairnessSpec(GroupRulesSpec):
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


def compares_scores(judge: JudgeCodeSpec | JudgeKindSpec) -> TypeGuard[JudgeKindSpec]:
    """Whether a judge compares responses by the scores of a scorer that it names."""
    return isinstance(judge, JudgeKindSpec) and judge.kind == "by_score" and GRADED_BY in judge.parameters


def graded_by(judge: JudgeCodeSpec | JudgeKindSpec) -> ScorerCodeSpec | ScorerKindSpec | None:
    """The scorer whose scores a judge compares, in its long form; the name of an experiment's scorer is a kind here.

    Raises:
        ValidationError: it is neither a name nor a scorer.
    """
    if not compares_scores(judge):
        return None
    entry = judge.parameters[GRADED_BY]
    scorer: ScorerCodeSpec | ScorerKindSpec = adapter_of(ScorerEntry).validate_python(
        long_form(entry) if isinstance(entry, str) else entry
    )
    return scorer


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
    """An experiment file; it has scorers and metrics, which may both be left out if it has matches."""

    model_config = _STRICT
    name: str = Field(min_length=1)
    dataset: DatasetSpec | None = Field(None, description="the examples; by default those of a stored run among tasks")
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
    engine: EngineSpec = EngineSpec()


def keys_at(place: Place) -> list[str]:
    """The keys that are allowed at a place of an experiment file."""
    models: dict[str, type[BaseModel]] = {
        "dataset": DatasetSpec,
        "tasks": TaskCodeSpec,
        "scorers": ScorerCodeSpec,
        "metrics": GroupSearchSpec if "worst_groups" in place else MetricCodeSpec,
        "fairness": FairnessSpec,
        "tradeoffs": TradeoffSpec,
        "matches": JudgeCodeSpec if "judge" in place else MatchesSpec,
        "run": RunSpec,
        "budget": BudgetSpec,
        "engine": EngineSpec,
    }
    fields = (models[place[0]] if place else ExperimentSpec).model_fields
    return [field.alias or name for name, field in fields.items()]
