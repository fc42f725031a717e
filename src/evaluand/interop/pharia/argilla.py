"""Evaluation by people in Argilla: outputs become records there, and people's answers become results.

An `ArgillaClient` makes the calls; derive one for your server. Nothing here needs the package `argilla`.
"""

import itertools
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final

from pydantic import BaseModel

from evaluand.interop.pharia.datasets import DatasetRepository
from evaluand.interop.pharia.domain import (
    FAILING,
    Evaluation,
    EvaluationOverview,
    Example,
    ExpectedOutput,
    FailedExampleEvaluation,
    PartialEvaluationOverview,
    SerializableDict,
    SuccessfulExampleOutput,
    new_id,
    require_stored,
    utc_now,
)
from evaluand.interop.pharia.evaluations import AsyncEvaluationRepository
from evaluand.interop.pharia.evaluator import EvaluatorBase
from evaluand.interop.pharia.example_tasks import CompleteOutput, InstructInput
from evaluand.interop.pharia.incremental import ComparisonEvaluation, MatchOutcome
from evaluand.interop.pharia.logic import EvaluationLogicBase
from evaluand.interop.pharia.runs import RunRepository
from evaluand.interop.pharia.types import declared_or_any, require_head_fields, to_storable
from evaluand.run.task import Input, Output


class RecordData(BaseModel):
    """What people see of an example: a text for each field."""

    content: Mapping[str, str]
    example_id: str
    metadata: Mapping[str, str | int] = {}


class Record(RecordData):
    """A record in Argilla, with its id there."""

    id: str


class RecordDataSequence(BaseModel):
    """The records of one example."""

    records: Sequence[RecordData]


class ArgillaEvaluation(BaseModel):
    """People's answers to the questions about a record, by the names of the questions."""

    example_id: str
    record_id: str
    responses: Mapping[str, Any]
    metadata: Mapping[str, Any]


class ArgillaClient(ABC):
    """Calls an Argilla server; fields and questions are passed on as the logic declares them."""

    @abstractmethod
    def create_dataset(
        self, workspace_id: str, dataset_name: str, fields: Sequence[Any], questions: Sequence[Any]
    ) -> str:
        """Create a dataset and return its id."""

    @abstractmethod
    def ensure_dataset_exists(
        self, workspace_id: str, dataset_name: str, fields: Sequence[Any], questions: Sequence[Any]
    ) -> str:
        """Create a dataset unless one with this name exists, and return its id."""

    @abstractmethod
    def add_record(self, dataset_id: str, record: RecordData) -> None:
        """Add a record to a dataset."""

    def add_records(self, dataset_id: str, records: Sequence[RecordData]) -> None:
        """Add some records to a dataset."""
        for record in records:
            self.add_record(dataset_id, record)

    @abstractmethod
    def evaluations(self, dataset_id: str) -> Iterable[ArgillaEvaluation]:
        """The records of a dataset that people have answered."""

    @abstractmethod
    def split_dataset(self, dataset_id: str, n_splits: int) -> None:
        """Divide the records of a dataset among `n_splits` people."""


class ArgillaEvaluationLogic(EvaluationLogicBase[Input, Output, ExpectedOutput, Evaluation]):
    """Defines what people see of an example, and what their answers mean.

    Args:
        fields: the fields of a record, in any form that the client understands.
        questions: the questions about a record, likewise.
    """

    def __init__(self, fields: Mapping[str, Any], questions: Sequence[Any]) -> None:
        self.fields = fields
        self.questions = questions

    @abstractmethod
    def to_record(
        self, example: Example[Input, ExpectedOutput], *output: SuccessfulExampleOutput[Output]
    ) -> RecordDataSequence:
        """The records of an example with the output of each run, in the order of the runs."""

    @abstractmethod
    def from_record(self, argilla_evaluation: ArgillaEvaluation) -> Evaluation:
        """The result for the answers about one record."""


class ArgillaEvaluator(EvaluatorBase[Input, Output, ExpectedOutput, Evaluation]):
    """Evaluates runs by the answers of people in Argilla; see `EvaluatorBase` for the other arguments.

    Args:
        evaluation_repository: where to store the results; an example has one for each of its records.
        evaluation_logic: what people see, and what their answers mean.
        argilla_client: calls the server.
        workspace_id: where to create datasets there.
    """

    _evaluation_logic: ArgillaEvaluationLogic[Input, Output, ExpectedOutput, Evaluation]
    _evaluation_repository: AsyncEvaluationRepository

    def __init__(
        self,
        dataset_repository: DatasetRepository,
        run_repository: RunRepository,
        evaluation_repository: AsyncEvaluationRepository,
        description: str,
        evaluation_logic: ArgillaEvaluationLogic[Input, Output, ExpectedOutput, Evaluation],
        argilla_client: ArgillaClient,
        workspace_id: str,
    ) -> None:
        super().__init__(dataset_repository, run_repository, evaluation_repository, description, evaluation_logic)
        self._client = argilla_client
        self._workspace_id = workspace_id

    def submit(
        self,
        *run_ids: str,
        num_examples: int | None = None,
        dataset_name: str | None = None,
        abort_on_error: bool = False,
        skip_example_on_any_failure: bool = True,
        labels: set[str] | None = None,
        metadata: SerializableDict | None = None,
    ) -> PartialEvaluationOverview:
        """Create a dataset in Argilla with the records of all examples.

        Args:
            run_ids: the runs, all of one dataset; the logic gets their outputs in this order.
            num_examples: at most this many, those with the smallest ids that can be submitted.
            dataset_name: the name of the dataset in Argilla; a new one by default.
            abort_on_error: raise what `to_record` or the client raises for an example; otherwise it is stored as the
                example's failed result.
            skip_example_on_any_failure: leave out examples that any run failed on or lacks.
            labels: for finding the evaluation.
            metadata: further facts to store with it.

        Returns:
            The head of the waiting evaluation, whose id is that of the dataset in Argilla.

        Raises:
            Unknown: there is no such run.
            Refused: the runs cannot be evaluated together. Nothing was created in Argilla.
        """
        require_head_fields(description=dataset_name, labels=labels, metadata=metadata)
        runs = self._load_run_overviews(*run_ids)
        start = utc_now()
        evaluable = self._retrieve_eval_logic_input(runs, skip_example_on_any_failure, num_examples)
        records: dict[str, Sequence[RecordData]] = {}
        failures: dict[str, FailedExampleEvaluation] = {}

        def attempt(example_id: str, call: Callable[[], Any]) -> None:
            try:
                call()
            except FAILING as error:
                if abort_on_error:
                    raise
                failures[example_id] = FailedExampleEvaluation.from_exception(error)

        def convert(example: Example[Any, Any], outputs: Sequence[SuccessfulExampleOutput[Any]]) -> None:
            records[example.id] = self._evaluation_logic.to_record(example, *outputs).records

        for example, outputs in evaluable:
            attempt(example.id, partial(convert, example, outputs))
        id = self._client.create_dataset(
            self._workspace_id,
            dataset_name or new_id(),
            fields=list(self._evaluation_logic.fields.values()),
            questions=self._evaluation_logic.questions,
        )
        for example_id, of_example in records.items():
            attempt(example_id, partial(self._client.add_records, id, of_example))
        for example_id in failures:
            records.pop(example_id, None)
        for example_id, failure in failures.items():
            self._evaluation_repository.store_example_results(id, example_id, [failure])
        configuration = {
            "num_examples": num_examples,
            "skip_example_on_any_failure": skip_example_on_any_failure,
            "workspace_id": self._workspace_id,
        }
        overview = PartialEvaluationOverview(
            id=id,
            start_date=start,
            submitted_evaluation_count=sum(map(len, records.values())),
            submitted_example_ids=tuple(records),
            failed_example_ids=tuple(failures),
            **self._head(runs, evaluable, None, labels, metadata, configuration),
        )
        self._evaluation_repository.store_partial_evaluation_overview(overview)
        return overview

    def retrieve(self, partial_evaluation_id: str) -> EvaluationOverview:
        """Evaluate by the answers in Argilla now; may be called again when there are more.

        The head counts records without an answer (`unlabelled_example_count`); they are no failures.

        Raises:
            Unknown: nothing with this id was submitted here.
        """
        waiting = require_stored(
            self._evaluation_repository.partial_evaluation_overview(partial_evaluation_id),
            "submission",
            partial_evaluation_id,
        )
        results: dict[str, list[Any]] = {id: [] for id in waiting.submitted_example_ids or ()}
        for answered in self._client.evaluations(waiting.id):
            results.setdefault(answered.example_id, []).append(self._result(answered))
        for example_id, found in results.items():
            self._evaluation_repository.store_example_results(waiting.id, example_id, found)
        every = [*itertools.chain.from_iterable(results.values())]
        failed = sum(isinstance(result, FailedExampleEvaluation) for result in every)
        unlabelled = max(waiting.submitted_evaluation_count - len(every), 0)
        own = {
            "submitted_evaluation_count",
            "submitted_example_ids",
            "failed_example_ids",
            "run_overviews",
            "skipped_example_count",
        }
        overview = EvaluationOverview(
            **waiting.model_dump(exclude=own),
            run_overviews=waiting.run_overviews,
            end_date=utc_now(),
            successful_evaluation_count=len(every) - failed,
            failed_evaluation_count=failed + len({*waiting.failed_example_ids} - results.keys()),
            skipped_example_count=(waiting.skipped_example_count or 0) + unlabelled,
            unlabelled_example_count=unlabelled,
        )
        self._evaluation_repository.store_evaluation_overview(overview)
        return overview

    def _result(self, answered: ArgillaEvaluation) -> Any:
        try:
            result = self._evaluation_logic.from_record(answered)
            what = f"the result of example {answered.example_id}"
            return to_storable(result, declared_or_any(self.evaluation_type), what)
        except FAILING as error:
            return FailedExampleEvaluation.from_exception(error)


_TITLES: Final = {
    "KEY_INSTRUCTION": "Instruction",
    "KEY_INPUT": "Input",
    "KEY_RESPONSE_1": "Response 1",
    "KEY_RESPONSE_2": "Response 2",
}


@dataclass(frozen=True)
class TextField:
    """A field of a record."""

    name: str
    title: str


@dataclass(frozen=True)
class RatingQuestion:
    """A question with some numbers to choose from."""

    name: str
    title: str
    description: str
    values: Sequence[int]


class InstructComparisonArgillaEvaluationLogic(
    ArgillaEvaluationLogic[InstructInput, CompleteOutput, None, ComparisonEvaluation]
):
    """Asks people which of two completions of an instruction is better, for each pair of runs.

    Which completion comes first is chosen at random, by example and pair. Each record has one result; aggregate them
    with `ComparisonEvaluationAggregationLogic`.

    Args:
        high_priority_runs: ask only about pairs with one of these runs; by default about all pairs.
    """

    KEY_INSTRUCTION: ClassVar = "instruction"
    KEY_INPUT: ClassVar = "input"
    KEY_RESPONSE_1: ClassVar = "first"
    KEY_RESPONSE_2: ClassVar = "second"
    KEY_QUESTION: ClassVar = "winner"
    OPTIONS: ClassVar = [1, 2, 3]

    def __init__(self, high_priority_runs: frozenset[str] | None = None) -> None:
        self._high_priority_runs = high_priority_runs
        super().__init__(
            fields={key: TextField(getattr(self, key), title) for key, title in _TITLES.items()},
            questions=[
                RatingQuestion(
                    self.KEY_QUESTION,
                    "Which response is better?",
                    "Choose 1 for the first response, 2 for the second, and 3 if they are equally good.",
                    self.OPTIONS,
                )
            ],
        )

    def to_record(
        self,
        example: Example[InstructInput, None],
        *outputs: SuccessfulExampleOutput[CompleteOutput],
    ) -> RecordDataSequence:
        chosen = self._high_priority_runs
        return RecordDataSequence(
            records=[
                self._record(example, *pair)
                for pair in itertools.combinations(outputs, 2)
                if chosen is None or chosen & {each.run_id for each in pair}
            ]
        )

    def _record(
        self, example: Example[InstructInput, None], *pair: SuccessfulExampleOutput[CompleteOutput]
    ) -> RecordData:
        ids = sorted(each.run_id for each in pair)
        first, second = random.Random(" ".join([example.id, *ids])).sample(pair, 2)
        return RecordData(
            content={
                self.KEY_INSTRUCTION: example.input.instruction,
                self.KEY_INPUT: example.input.input or "",
                self.KEY_RESPONSE_1: first.output.completion,
                self.KEY_RESPONSE_2: second.output.completion,
            },
            example_id=example.id,
            metadata={self.KEY_RESPONSE_1: first.run_id, self.KEY_RESPONSE_2: second.run_id},
        )

    def from_record(self, argilla_evaluation: ArgillaEvaluation) -> ComparisonEvaluation:
        return ComparisonEvaluation(
            first_player=argilla_evaluation.metadata[self.KEY_RESPONSE_1],
            second_player=argilla_evaluation.metadata[self.KEY_RESPONSE_2],
            outcome=MatchOutcome.from_rank_literal(int(argilla_evaluation.responses[self.KEY_QUESTION])),
        )
