"""Converts repositories and logics of the SDKs to native objects, whose results can be compared, gated and reported.

    DatasetRepository ── native_dataset ──▶ evaluand.Dataset ── dataset_of ──▶ DatasetRepository
    EvaluationLogic   ── as_scorer ───────▶ evaluand.Scorer
    a stored evaluation of one run ── native_evaluation ──▶ evaluand.Evaluation

A result may have any type that can be written as JSON. It is stored in `data` of the scorer's table, where metrics read
each of its numbers by its path: `data.correct`, `data.rouge.f_score`. A single number is `value`, and a text `label`.
"""

from collections.abc import Mapping
from typing import Any

from pydantic_core import to_jsonable_python

from evaluand.core import identity
from evaluand.core.errors import SpecError, TaskError
from evaluand.core.fingerprint import Identity, code_identity
from evaluand.data.dataset import Dataset as NativeDataset, Example as NativeExample
from evaluand.evaluation.evaluator import Evaluation as NativeEvaluation, Evaluator as NativeEvaluator
from evaluand.evaluation.scorer import Score, Scorer
from evaluand.interop.pharia.datasets import DatasetRepository
from evaluand.interop.pharia.domain import (
    Dataset,
    Example,
    FailedExampleEvaluation,
    FailedExampleRun,
    Refused,
    SuccessfulExampleOutput,
    require_stored,
)
from evaluand.interop.pharia.evaluations import EvaluationRepository
from evaluand.interop.pharia.logic import EvaluationLogic, LogicTypes
from evaluand.interop.pharia.runs import RunRepository
from evaluand.run.runner import Runner as NativeRunner
from evaluand.run.task import Request, Task
from evaluand.run.types import adapter_of
from evaluand.store.store import MemoryStore, Store
from evaluand.trace.spans import TaskSpan


def native_dataset(repository: DatasetRepository, dataset_id: str) -> NativeDataset:
    """A dataset of a repository as a native dataset: examples in the order of their ids, values as JSON.

    Raises:
        Unknown: there is no such dataset.
    """
    head = require_stored(repository.dataset(dataset_id), "dataset", dataset_id)
    records = [
        {
            "id": each.id,
            "input": to_jsonable_python(each.input),
            "expected": to_jsonable_python(each.expected_output),
            "metadata": each.metadata,
        }
        for each in repository.examples(dataset_id, Any, Any)
    ]
    return NativeDataset.from_rows(records, name=head.name, metadata="metadata")


def dataset_of(dataset: NativeDataset, repository: DatasetRepository, name: str, id: str | None = None) -> Dataset:
    """Store a native dataset in a repository.

    Args:
        dataset: the dataset; its attributes, weight and cluster become metadata.
        repository: where to store it.
        name: its name there.
        id: its id there; a new one by default.
    """
    return repository.create_dataset(map(_to_example, dataset), name, id)


def as_scorer(
    logic: EvaluationLogic[Any, Any, Any, Any],
    *,
    input_type: Any = None,
    output_type: Any = None,
    expected_output_type: Any = None,
) -> Scorer:
    """A scorer that evaluates by a logic, one run at a time.

    Args:
        logic: the logic.
        input_type: the type of its inputs; by default as its class declares, like the other types.
        output_type: the type of its outputs.
        expected_output_type: the type of its expected outputs.

    Example:
        >>> from evaluand.interop.pharia import SingleOutputEvaluationLogic
        >>> class Same(SingleOutputEvaluationLogic[str, str, str, bool]):
        ...     def do_evaluate_single_output(self, example, output):
        ...         return output == example.expected_output
        >>> as_scorer(Same()).arguments
        ('output', 'example')
    """
    types = LogicTypes(logic)
    return _LogicScorer(
        logic,
        input_type or types.input(),
        output_type or types.output(),
        expected_output_type or types.expected(),
    )


def native_evaluation(
    dataset_repository: DatasetRepository,
    run_repository: RunRepository,
    evaluation_repository: EvaluationRepository,
    evaluation_id: str,
    *,
    store: Store | None = None,
    scorer: str = "evaluation",
    name: str | None = None,
) -> NativeEvaluation:
    """A stored evaluation of one run as a native evaluation; nothing is run or evaluated again.

    Examples on which the task or the evaluation failed become failed rows; those that were not evaluated abstain.

    Args:
        dataset_repository: where the examples are stored.
        run_repository: where the outputs are stored.
        evaluation_repository: where the results are stored.
        evaluation_id: the evaluation.
        store: where to store run and evaluation, by default in memory. To compare evaluations, use one store for all.
        scorer: the name of the scorer whose table has the results.
        name: a name for the evaluation.

    Raises:
        Unknown: there is no such evaluation.
        Refused: it evaluates several runs together, so its results belong to no single run.
    """
    head = require_stored(evaluation_repository.evaluation_overview(evaluation_id), "evaluation", evaluation_id)
    if len(head.run_overviews) != 1:
        raise Refused(
            f"evaluation {evaluation_id} is of {len(head.run_overviews)} runs together, so its results belong to no"
            " single run; evaluate each run separately"
        )
    (run,) = head.run_overviews
    results = {
        each.example_id: each.result
        if isinstance(each.result, FailedExampleEvaluation)
        else to_jsonable_python(each.result)
        for each in evaluation_repository.example_evaluations(evaluation_id, Any)
    }
    dataset = native_dataset(dataset_repository, run.dataset_id)
    native_run = NativeRunner(store=store or MemoryStore()).run(
        _StoredOutputs(run.description, run_repository, run.id), dataset
    )
    return NativeEvaluator().evaluate(native_run, {scorer: _StoredResults(results)}, name=name)


class _LogicScorer(Scorer):
    """A logic as a scorer."""

    kind = "pharia_logic"
    arguments = ("output", "example")

    def __init__(
        self,
        logic: EvaluationLogic[Any, Any, Any, Any],
        input_type: Any,
        output_type: Any,
        expected_type: Any,
    ) -> None:
        self._logic = logic
        self._input, self._output, self._expected = map(adapter_of, (input_type, output_type, expected_type))

    def score(self, output: Any, example: NativeExample) -> Score:
        untyped = _to_example(example)
        input, expected = self._input.validate_python(untyped.input), self._expected.validate_python(example.expected)
        typed = untyped.model_copy(update={"input": input, "expected_output": expected})
        answer: SuccessfulExampleOutput[Any] = SuccessfulExampleOutput(
            run_id="", example_id=example.id, output=self._output.validate_python(output)
        )
        return Score.of(to_jsonable_python(self._logic.do_evaluate(typed, answer)))

    def identify(self) -> Identity:
        return code_identity("scorer", self._logic, type(self._logic).__qualname__)


class _StoredOutputs(Task[Any, Any]):
    """The outputs stored in a repository, as a task."""

    reads = ("id",)

    def __init__(self, name: str, repository: RunRepository, run_id: str) -> None:
        self._name = name
        self._outputs = {each.example_id: each.output for each in repository.example_outputs(run_id, Any)}

    @property
    def name(self) -> str:
        return self._name

    def do_run(self, input: Any, task_span: TaskSpan) -> Any:
        raise SpecError("stored outputs belong to examples; run them over their dataset")

    def call(self, request: Request) -> Any:
        if request.id not in self._outputs:
            raise TaskError("the run has no output for this example")
        output = self._outputs[request.id]
        if isinstance(output, FailedExampleRun):
            raise TaskError(output.error_message)
        return to_jsonable_python(output)

    def identify(self) -> Identity:
        outputs = to_jsonable_python(sorted(self._outputs.items()))
        return Identity({"kind": "pharia_run", "name": self._name, "outputs": identity.digest(outputs).hex()})


class _StoredResults(Scorer):
    """The results stored in a repository, as a scorer."""

    kind = "pharia_results"
    arguments = ("output", "example")

    def __init__(self, results: Mapping[str, Any]) -> None:
        self._results = results

    def score(self, output: Any, example: NativeExample) -> Score:
        if example.id not in self._results:
            return Score.abstained("not evaluated")
        result = self._results[example.id]
        if isinstance(result, FailedExampleEvaluation):
            raise TaskError(result.error_message)
        return Score.of(result)

    def identify(self) -> Identity:
        results = to_jsonable_python(sorted(self._results.items()))
        return Identity({"kind": self.kind, "results": identity.digest(results).hex()})


def _to_example(example: NativeExample) -> Example[Any, Any]:
    metadata = {**example.attributes, **example.metadata}
    metadata = metadata["metadata"] or {} if metadata.keys() == {"metadata"} else metadata
    metadata |= {name: value for name in ("weight", "cluster") if (value := getattr(example, name)) is not None}
    return Example(input=example.input, expected_output=example.expected, id=example.id, metadata=metadata or None)
