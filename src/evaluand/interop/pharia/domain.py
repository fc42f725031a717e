"""The records of the three steps: examples, outputs, results, and an overview of each step.

An overview is the head of a step's record; its rows (outputs, results) are stored under the same id. Ids are the
caller's text. `provenance`, `run_order`, `skipped_example_count` and similar fields are additions to the format of the
SDKs, which ignore them.
"""

import datetime as dt
import traceback
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Annotated, Any, Final, Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, JsonValue
from pydantic_core import CoreSchema

from evaluand.core.errors import NotFound, SpecError
from evaluand.run.task import Input, Output, Task as NativeTask
from evaluand.trace.export import utc_now as utc_now

T = TypeVar("T")
ExpectedOutput = TypeVar("ExpectedOutput")
Evaluation = TypeVar("Evaluation", covariant=True)
AggregatedEvaluation = TypeVar("AggregatedEvaluation", covariant=True)

FAILING: Final = (Exception, SystemExit)
"""Errors of users' code that fail one example; `sys.exit` in it also fails the example and does not end the program."""

JsonSerializable = JsonValue
SerializableDict = dict[str, JsonValue]


class Refused(SpecError, ValueError):
    """An invalid request; a ValueError, as users of the SDKs expect."""


class Unknown(NotFound, ValueError):
    """A repository has no such dataset, run, evaluation or aggregation; a ValueError, as users of the SDKs expect."""


class EvaluationFailed(Exception):
    """Raised on request where examples could not be evaluated."""

    def __init__(self, evaluation_id: str, failed_count: int) -> None:
        super().__init__(f"Evaluation {evaluation_id} failed with {failed_count} failed examples.")


def new_id() -> str:
    """A new unique id."""
    return str(uuid.uuid4())


def require_stored(found: T | None, what: str, id: str) -> T:
    """Return what a repository has stored under an id; raises Unknown if it has nothing."""
    if found is None:
        raise Unknown(f"this repository has no {what} {id!r}")
    return found


def require_all_stored(read: Callable[[str], T | None], what: str, ids: Iterable[str]) -> list[T]:
    """What a repository has stored under some ids, each once, in their order; raises Unknown if it lacks any."""
    found = {id: read(id) for id in ids}
    missing = [id for id, each in found.items() if each is None]
    if missing:
        raise Unknown(f"this repository has no {what} {', '.join(map(repr, missing))}")
    return [each for each in found.values() if each is not None]


def read_each(read: Callable[[str], T | None], ids: Iterable[str]) -> Iterator[T]:
    """What a repository has stored under some ids; ids without anything are left out."""
    return (found for id in ids if (found := read(id)) is not None)


class Task(NativeTask[Input, Output]):
    """A task: the native one, whose subclasses may have an attribute `name`; see `evaluand.run.task.Task`."""

    @property
    def name(self) -> str:
        """The name in traces; by default that of its class."""
        return self.__dict__.get("name") or type(self).__name__

    @name.setter
    def name(self, name: str) -> None:
        self.__dict__["name"] = name


class Example(BaseModel, Generic[Input, ExpectedOutput]):
    """One input with what is expected for it.

    Example:
        >>> Example(input="2+2", expected_output="4", id="sum").expected_output
        '4'
    """

    input: Input
    expected_output: ExpectedOutput
    id: str = Field(default_factory=new_id)
    metadata: SerializableDict | None = None


class ExtendedExample(Example[Any, Any]):
    """An example of a subclass, read back: the additional fields are its attributes, as JSON."""

    model_config = ConfigDict(extra="allow")

    def __repr_name__(self) -> str:
        return Example.__name__


def retyped(example: Example[Any, Any], values: Mapping[str, Any], *, shares_values: bool) -> Example[Any, Any]:
    """A new example with its values converted to their types; it keeps its class.

    Args:
        shares_values: the example is stored, so the new one must not share its other values.
    """
    if is_extended(type(example)):
        return example.model_copy(update=values, deep=shares_values)
    return Example(
        **values, id=example.id, metadata=copy_value(example.metadata) if shares_values else example.metadata
    )


def copy_value(value: Any) -> Any:
    """A deep copy, or the value itself if it cannot change."""
    return value if type(value) in ATOMS else deepcopy(value)


ATOMS: Final = frozenset((str, int, float, bool, type(None)))
"""Types whose values cannot change."""


def is_extended(type_: Any) -> bool:
    """Whether a type is a subclass of `Example`, not `Example` itself or `Example[…]`."""
    if not (isinstance(type_, type) and issubclass(type_, Example)):
        return False
    return Example not in (type_, type_.__pydantic_generic_metadata__["origin"])


class _Head(BaseModel):
    """The head of stored rows, hashed by its id."""

    id: str

    def __hash__(self) -> int:
        return hash(self.id)


class Dataset(_Head):
    """The head of a dataset."""

    id: str = Field(default_factory=new_id)
    name: str
    labels: set[str] = set()
    metadata: SerializableDict = {}


class _Failure(BaseModel):
    error_message: str

    @classmethod
    def from_exception(cls, exception: BaseException, *, stack_trace: bool = False) -> Self:
        """The failure for an exception; the stack trace only on request, since results are shared."""
        return cls(error_message=format_exception(exception, stack_trace))


class _InOrder:
    """Annotates a union whose first type that a value has counts, which takes a third of the time of the default."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        return {**schema, "mode": "left_to_right"} if schema["type"] == "union" else schema


class FailedExampleRun(_Failure):
    """Takes the place of an output where the task raised."""


class ExampleOutput(BaseModel, Generic[Output]):
    """The output of a task for one example, or its failure."""

    run_id: str
    example_id: str
    output: Annotated[Output | FailedExampleRun, _InOrder]


class SuccessfulExampleOutput(BaseModel, Generic[Output]):
    """The output of a task that did not fail on an example; only these are evaluated."""

    run_id: str
    example_id: str
    output: Output


class FailedExampleEvaluation(_Failure):
    """Takes the place of a result where the evaluation raised."""


class ExampleEvaluation(BaseModel, Generic[Evaluation]):
    """The result of evaluating one example, or its failure."""

    evaluation_id: str
    example_id: str
    result: Annotated[Evaluation | FailedExampleEvaluation, _InOrder]


class RunOverview(_Head):
    """The head of a run.

    Attributes:
        provenance: versions, commit, seed, configuration, declared version of the environment, identity of the task.
    """

    dataset_id: str
    id: str
    start: dt.datetime
    end: dt.datetime
    failed_example_count: int
    successful_example_count: int
    description: str
    labels: set[str] = set()
    metadata: SerializableDict = {}
    provenance: SerializableDict | None = Field(default=None, repr=False)

    def __str__(self) -> str:
        counts = f"{self.successful_example_count} successful, {self.failed_example_count} failed"
        return f"run {self.id} of dataset {self.dataset_id}: {counts} ({self.description})"


class _Evaluated(_Head):
    """Fields that heads of completed and of waiting evaluations share."""

    run_overviews: frozenset[RunOverview]
    id: str
    start_date: dt.datetime
    description: str
    labels: set[str] = set()
    metadata: SerializableDict = {}
    run_order: tuple[str, ...] = ()
    skipped_example_count: int | None = None
    run_failure_count: int | None = None
    incomplete_example_count: int | None = None
    provenance: SerializableDict | None = Field(default=None, repr=False)

    @property
    def ordered_runs(self) -> list[RunOverview]:
        """The runs in the order of the request, or by id where the order was not stored."""
        places = {id: place for place, id in enumerate(self.run_order)}
        return sorted(self.run_overviews, key=lambda run: (places.get(run.id, len(places)), run.id))


class EvaluationOverview(_Evaluated):
    """The head of an evaluation.

    Attributes:
        run_order: the ids of the runs in the order of the request.
        skipped_example_count: examples of a run that were not evaluated, since a run failed on them or has no output
            for them; None if unknown.
        run_failure_count: on how many of these a run failed; the others were not part of every run, their output is
            lost, or they wait for a label. None if unknown.
        unlabelled_example_count: how many of those skipped wait for a label; in Argilla, how many records.
        incomplete_example_count: examples that were evaluated by the outputs of only some of the runs, since others
            failed on them or have no output; None if unknown.
        previous_evaluation_ids: the earlier evaluations that it extends; it does not repeat what they have compared.
        provenance: versions, commit, configuration, identity of the logic.
    """

    end_date: dt.datetime
    successful_evaluation_count: int
    failed_evaluation_count: int
    unlabelled_example_count: int = 0
    previous_evaluation_ids: tuple[str, ...] = ()

    def __str__(self) -> str:
        counts = f"{self.successful_evaluation_count} successful, {self.failed_evaluation_count} failed"
        others = _describe_others([self])
        return f"evaluation {self.id} of {len(self.run_overviews)} runs: {counts}{others} ({self.description})"


class PartialEvaluationOverview(_Evaluated):
    """The head of an evaluation that waits for labels.

    Attributes:
        submitted_example_ids: the examples in the file to be labelled; None if unknown.
        failed_example_ids: the examples that could not be submitted to Argilla.
    """

    submitted_evaluation_count: int
    submitted_example_ids: tuple[str, ...] | None = Field(default=None, repr=False)
    failed_example_ids: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"evaluation {self.id}: {self.submitted_evaluation_count} wait for labels ({self.description})"


class AggregationOverview(_Head, Generic[AggregatedEvaluation]):
    """The head of an aggregation; it has no rows.

    Its counts are those of the aggregated results; lost results of the evaluations are in no count.

    Attributes:
        failure_policy: how examples without a result were treated: `left out`, or the result they were counted as.
        provenance: versions, commit, identity of the logic.
    """

    evaluation_overviews: frozenset[EvaluationOverview]
    id: str
    start: dt.datetime
    end: dt.datetime
    successful_evaluation_count: int
    crashed_during_evaluation_count: int
    description: str
    statistics: AggregatedEvaluation
    labels: set[str] = set()
    metadata: SerializableDict = {}
    failure_policy: str | None = None
    provenance: SerializableDict | None = Field(default=None, repr=False)

    def __str__(self) -> str:
        counts = f"{self.successful_evaluation_count} evaluated, {self.failed_evaluation_count} failed"
        policy = f" and {self.failure_policy}" if self.failure_policy and self.failed_evaluation_count else ""
        others = _describe_others(self.evaluation_overviews, with_failures=True)
        evaluated = sum(e.successful_evaluation_count + e.failed_evaluation_count for e in self.evaluation_overviews)
        lost = evaluated - self.successful_evaluation_count - self.crashed_during_evaluation_count
        others = f", {lost} lost{others}" if lost > 0 else others
        return f"aggregation {self.id}: {self.statistics!r}; {counts}{policy}{others} ({self.description})"

    @property
    def run_ids(self) -> list[str]:
        """The ids of the runs that were evaluated, each once."""
        return [run.id for run in self.run_overviews()]

    def run_overviews(self) -> Iterable[RunOverview]:
        """The runs that were evaluated, each once."""
        evaluations = sorted(self.evaluation_overviews, key=lambda overview: overview.id)
        return {run.id: run for overview in evaluations for run in overview.ordered_runs}.values()

    @property
    def failed_evaluation_count(self) -> int:
        """How many examples have no result, because a task or an evaluation failed on them."""
        counts = [each.run_failure_count for each in self.evaluation_overviews]
        uncounted = [each for each in self.evaluation_overviews if each.run_failure_count is None]  # as the SDKs write
        of_runs = {run.id: run.failed_example_count for each in uncounted for run in each.run_overviews}
        return self.crashed_during_evaluation_count + sum(filter(None, counts)) + sum(of_runs.values())

    def raise_on_evaluation_failure(self) -> None:
        """Raise if the aggregation is incomplete.

        Raises:
            EvaluationFailed: examples could not be evaluated.
        """
        if self.crashed_during_evaluation_count:
            raise EvaluationFailed(self.id, self.crashed_during_evaluation_count)


class RecoveryData(BaseModel):
    """The state of an unfinished run: its id and the examples that are done."""

    run_id: str
    finished_examples: list[str] = []


class ExampleResults(list[T]):
    """Results as an aggregation logic receives them, with the id of each one's example, None if unknown."""

    def __init__(self, results: Iterable[T], example_ids: Sequence[str | None]) -> None:
        super().__init__(results)
        self.example_ids = example_ids


def with_examples(results: Iterable[T]) -> tuple[Sequence[T], list[int]]:
    """Results and the number of the example of each; each result of an unknown example has a separate number."""
    listed = results if isinstance(results, ExampleResults) else ExampleResults(results, [])
    ids = [*listed.example_ids, *[None] * (len(listed) - len(listed.example_ids))]
    numbers: dict[str | int, int] = {}
    return listed, [numbers.setdefault(place if id is None else id, len(numbers)) for place, id in enumerate(ids)]


def _describe_others(evaluations: Iterable[EvaluationOverview], *, with_failures: bool = False) -> str:
    """The text after the counts of results: examples without one, and those evaluated by some runs only."""
    skipped = unlabelled = incomplete = 0
    for each in evaluations:
        counted_already = each.unlabelled_example_count + ((each.run_failure_count or 0) if with_failures else 0)
        skipped += max((each.skipped_example_count or 0) - counted_already, 0)
        unlabelled += each.unlabelled_example_count
        incomplete += each.incomplete_example_count or 0
    parts = {
        "skipped": skipped,
        "not labelled yet": unlabelled,
        "evaluated by the outputs of some runs only": incomplete,
    }
    return "".join(f", {count} {words}" for words, count in parts.items() if count)


def format_exception(exception: BaseException, stack_trace: bool) -> str:
    """An exception as text, with its stack trace on request."""
    line = f"{type(exception).__name__}: {exception}"
    return line + "\n" + "".join(traceback.format_exception(exception)) if stack_trace else line


def as_failure(value: Any) -> str | None:
    """The error message of a failure in the SDKs' output files, which mark a failure only by its form."""
    if isinstance(value, dict) and value.keys() == {"error_message"} and isinstance(value["error_message"], str):
        return value["error_message"]
    return None
