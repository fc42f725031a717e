"""The second step: evaluates the outputs of runs, example by example."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Generic

from evaluand.core.errors import warn
from evaluand.core.fingerprint import code_identity
from evaluand.interop.pharia.datasets import DatasetRepository, as_class
from evaluand.interop.pharia.domain import (
    FAILING,
    Evaluation,
    EvaluationOverview,
    Example,
    ExampleEvaluation,
    ExpectedOutput,
    FailedExampleEvaluation,
    FailedExampleRun,
    Refused,
    RunOverview,
    SerializableDict,
    SuccessfulExampleOutput,
    require_all_stored,
    utc_now,
)
from evaluand.interop.pharia.evaluations import EvaluationRepository
from evaluand.interop.pharia.lineage import EvaluationLineage, RepositoryNavigator
from evaluand.interop.pharia.logic import (
    EvaluationLogic,
    EvaluationLogicBase,
    LogicTypes,
    SingleOutputEvaluationLogic,
)
from evaluand.interop.pharia.runs import RunRepository
from evaluand.interop.pharia.steps import each_in_threads, origin
from evaluand.interop.pharia.types import declared_or_any, require_count, require_head_fields, to_storable
from evaluand.run.task import Input, Output

WORKERS = 10


class Evaluable:
    """The examples of some runs that are to be evaluated, with the outputs of each; see `Evaluator.evaluate_runs`.

    Attributes:
        skipped: how many examples were left out so far, including those whose outputs are lost.
        failed: on how many of these a run failed.
        incomplete: how many of the others had outputs of only some of the runs.
    """

    def __init__(
        self,
        runs: list[RunOverview],
        examples: Iterable[Example[Any, Any]],
        run_repository: RunRepository,
        output_type: Any,
        num_examples: int | None,
        skip_example_on_any_failure: bool,
    ) -> None:
        self.skipped = self.failed = self.incomplete = 0
        self._examples = examples
        self._limit, self._require_all = num_examples, skip_example_on_any_failure
        self._outputs = [
            {each.example_id: each for each in run_repository.example_outputs(r.id, output_type)} for r in runs
        ]
        self._lost = max(map(_lost_count, runs, self._outputs))

    def __iter__(self) -> Iterator[tuple[Example[Any, Any], list[SuccessfulExampleOutput[Any]]]]:
        number = 0
        for example in self._examples:
            if self._limit is not None and number >= self._limit:
                return
            found = [of_run[example.id] for of_run in self._outputs if example.id in of_run]
            if not found:
                self.skipped += self._lost > 0
                self._lost -= 1
                continue
            good: list[SuccessfulExampleOutput[Any]] = [
                SuccessfulExampleOutput(run_id=each.run_id, example_id=each.example_id, output=each.output)
                for each in found
                if not isinstance(each.output, FailedExampleRun)
            ]
            if not good or (self._require_all and len(good) < len(self._outputs)):
                self.skipped += 1
                self.failed += len(good) < len(found)
                continue
            number += 1
            self.incomplete += len(good) < len(self._outputs)
            yield example, good


def _lost_count(run: RunOverview, outputs: Mapping[str, Any]) -> int:
    """How many outputs of a run are lost; warns if there are any."""
    total = run.successful_example_count + run.failed_example_count
    lost = max(total - len(outputs), 0)
    if lost:
        message = (
            f"run {run.id} made {total} outputs, of which {lost} are lost or cannot be read; run the dataset again"
        )
        warn(message)
    return lost


class EvaluatorBase(Generic[Input, Output, ExpectedOutput, Evaluation]):
    """Base of evaluators; its attributes and methods with an underscore are for derived classes, as in the SDKs.

    Args:
        dataset_repository: where the examples are stored.
        run_repository: where the outputs are stored.
        evaluation_repository: where to store the results.
        description: what the evaluations are; stored in their heads.
        evaluation_logic: how an example is evaluated.
    """

    def __init__(
        self,
        dataset_repository: DatasetRepository,
        run_repository: RunRepository,
        evaluation_repository: EvaluationRepository,
        description: str,
        evaluation_logic: EvaluationLogicBase[Input, Output, ExpectedOutput, Evaluation],
    ) -> None:
        self.description = description
        self._dataset_repository = dataset_repository
        self._run_repository = run_repository
        self._evaluation_repository = evaluation_repository
        self._evaluation_logic = evaluation_logic
        self._navigator = RepositoryNavigator(dataset_repository, run_repository, evaluation_repository)

    def input_type(self) -> type[Input]:
        """The type of inputs, as the logic's class declares it; override this where it does not."""
        return LogicTypes(self._evaluation_logic).input()  # type: ignore[no-any-return]

    def output_type(self) -> type[Output]:
        """The type of outputs, as the logic's class declares it; override this where it does not."""
        return LogicTypes(self._evaluation_logic).output()  # type: ignore[no-any-return]

    def expected_output_type(self) -> type[ExpectedOutput]:
        """The type of expected outputs, as the logic's class declares it; override this where it does not."""
        return LogicTypes(self._evaluation_logic).expected()  # type: ignore[no-any-return]

    def evaluation_type(self) -> type[Evaluation]:
        """The type of results, as the logic's class declares it; override this where it does not."""
        return LogicTypes(self._evaluation_logic).evaluation()  # type: ignore[no-any-return]

    def evaluation_lineages(
        self, evaluation_id: str
    ) -> Iterable[EvaluationLineage[Input, ExpectedOutput, Output, Evaluation]]:
        """Each example that was evaluated with its outputs, result and traces."""
        return self._navigator.evaluation_lineages(evaluation_id, *self._types())

    def evaluation_lineage(
        self, evaluation_id: str, example_id: str
    ) -> EvaluationLineage[Input, ExpectedOutput, Output, Evaluation] | None:
        """One example with its outputs, result and traces; None where it was not evaluated."""
        return self._navigator.evaluation_lineage(evaluation_id, example_id, *self._types())

    def failed_evaluations(
        self, evaluation_id: str
    ) -> Iterator[EvaluationLineage[Input, ExpectedOutput, Output, Evaluation]]:
        """Each example on which the evaluation failed."""
        for lineage in self.evaluation_lineages(evaluation_id):
            if isinstance(lineage.evaluation.result, FailedExampleEvaluation):
                yield lineage

    def _types(self) -> tuple[Any, Any, Any, Any]:
        return self.input_type(), self.expected_output_type(), self.output_type(), self.evaluation_type()

    def _load_run_overviews(self, *run_ids: str) -> list[RunOverview]:
        """The heads of runs, each once, in the order of the ids."""
        if not run_ids:
            raise Refused("give the id of a run to evaluate")
        runs = require_all_stored(self._run_repository.run_overview, "run", run_ids)
        self._raise_if_overviews_have_different_dataset(runs)
        return runs

    def _raise_if_overviews_have_different_dataset(self, run_overviews: Iterable[RunOverview]) -> None:
        runs = list(run_overviews)
        if len({run.dataset_id for run in runs}) > 1:
            listed = ", ".join(f"{run.id} of {run.dataset_id}" for run in runs)
            raise Refused(f"the runs are of several datasets, so they cannot be compared: {listed}")

    def _retrieve_eval_logic_input(
        self, run_overviews: Iterable[RunOverview], skip_example_on_any_failure: bool, num_examples: int | None = None
    ) -> Evaluable:
        """The examples to evaluate, all read in advance, so that nothing is evaluated where types do not fit."""
        runs = list(run_overviews)
        require_count("num_examples", num_examples)
        types = self.input_type(), self.expected_output_type()
        examples = list(self._dataset_repository.examples(runs[0].dataset_id, *types))
        own = LogicTypes(self._evaluation_logic).example
        if own is not None:
            examples = list(as_class(own, examples, runs[0].dataset_id))
        return Evaluable(
            runs, examples, self._run_repository, self.output_type(), num_examples, skip_example_on_any_failure
        )

    def _head(
        self,
        runs: list[RunOverview],
        evaluable: Evaluable,
        description: str | None,
        labels: set[str] | None,
        metadata: SerializableDict | None,
        configuration: dict[str, Any],
    ) -> dict[str, Any]:
        identity = code_identity("scorer", self._evaluation_logic)
        return {
            "run_overviews": frozenset(runs),
            "run_order": tuple(run.id for run in runs),
            "skipped_example_count": evaluable.skipped,
            "run_failure_count": evaluable.failed,
            "incomplete_example_count": evaluable.incomplete,
            "description": self.description if description is None else f"{self.description} : {description}",
            "labels": labels or set(),
            "metadata": metadata or {},
            "provenance": origin(identity, configuration),
        }


class Evaluator(EvaluatorBase[Input, Output, ExpectedOutput, Evaluation]):
    """Evaluates runs by a logic; see `EvaluatorBase` for the arguments."""

    def __init__(
        self,
        dataset_repository: DatasetRepository,
        run_repository: RunRepository,
        evaluation_repository: EvaluationRepository,
        description: str,
        evaluation_logic: EvaluationLogic[Input, Output, ExpectedOutput, Evaluation],
    ) -> None:
        super().__init__(dataset_repository, run_repository, evaluation_repository, description, evaluation_logic)
        self._do_evaluate = evaluation_logic.do_evaluate

    def evaluate_runs(
        self,
        *run_ids: str,
        num_examples: int | None = None,
        abort_on_error: bool = False,
        skip_example_on_any_failure: bool = True,
        description: str | None = None,
        labels: set[str] | None = None,
        metadata: SerializableDict | None = None,
    ) -> EvaluationOverview:
        """Evaluate the outputs of one or more runs, over the examples that they have in common.

        Args:
            run_ids: the runs, all of one dataset; the logic gets their outputs in this order.
            num_examples: at most this many, those with the smallest ids that can be evaluated. Examples skipped before
                the last of them are counted; later ones are not, since they were not read.
            abort_on_error: raise what the logic raises; otherwise it is stored as a failed result.
            skip_example_on_any_failure: leave out examples that any run failed on or lacks. Otherwise the logic gets
                the available outputs, and only examples without any are left out; the head states how many were
                evaluated with some outputs missing (`incomplete_example_count`).
            description: appended to that of the evaluator.
            labels: for finding the evaluation.
            metadata: further facts to store with it.

        Raises:
            Unknown: there is no such run.
            Refused: the runs cannot be evaluated together, or an argument has the wrong type for the head.
            Misfit: the examples do not have the types of the logic; nothing was evaluated.
        """
        require_head_fields(description=description, labels=labels, metadata=metadata)
        runs = self._load_run_overviews(*run_ids)
        if len(runs) > 1 and isinstance(self._evaluation_logic, SingleOutputEvaluationLogic):
            name = type(self._evaluation_logic).__name__
            raise Refused(f"{name} evaluates the outputs of one run; evaluate the {len(runs)} runs one by one")
        start, id = utc_now(), self._evaluation_repository.initialize_evaluation()
        evaluable = self._retrieve_eval_logic_input(runs, skip_example_on_any_failure, num_examples)
        counts = {True: 0, False: 0}

        def evaluate(each: tuple[Example[Any, Any], list[SuccessfulExampleOutput[Any]]]) -> bool:
            return isinstance(self.evaluate(each[0], id, abort_on_error, *each[1]), FailedExampleEvaluation)

        for failed in each_in_threads(evaluate, evaluable, WORKERS):
            counts[failed] += 1
        configuration = {
            "num_examples": num_examples,
            "abort_on_error": abort_on_error,
            "skip_example_on_any_failure": skip_example_on_any_failure,
        }
        overview = EvaluationOverview(
            id=id,
            start_date=start,
            end_date=utc_now(),
            successful_evaluation_count=counts[False],
            failed_evaluation_count=counts[True],
            **self._head(runs, evaluable, description, labels, metadata, configuration),
        )
        self._evaluation_repository.store_evaluation_overview(overview)
        return overview

    def evaluate(
        self,
        example: Example[Input, ExpectedOutput],
        evaluation_id: str,
        abort_on_error: bool,
        *example_outputs: SuccessfulExampleOutput[Output],
    ) -> Evaluation | FailedExampleEvaluation:
        """Evaluate one example by the outputs of the runs, and store the result under the evaluation's id.

        Args:
            abort_on_error: raise what the logic raises.
        """
        result: Any
        try:
            result = self._do_evaluate(example, *example_outputs)
            result = to_storable(result, self._result_type, f"the result of example {example.id}")
        except FAILING as error:
            if abort_on_error:
                raise
            result = FailedExampleEvaluation.from_exception(error)
        evaluation: ExampleEvaluation[Any] = ExampleEvaluation(
            evaluation_id=evaluation_id, example_id=example.id, result=result
        )
        self._evaluation_repository.store_example_evaluation(evaluation)
        return result  # type: ignore[no-any-return]

    @cached_property
    def _result_type(self) -> Any:
        return declared_or_any(self.evaluation_type)
