"""Converts repositories and logics of the SDKs to native objects, whose results can be compared, gated and reported.

    DatasetRepository ── native_dataset ──▶ evaluand.Dataset ── dataset_of ──▶ DatasetRepository
    EvaluationLogic   ── as_scorer ───────▶ evaluand.Scorer
    EloEvaluationLogic ─ as_judge ────────▶ a judge for evaluand.Matcher
    a stored evaluation of one run ── native_evaluation ──▶ evaluand.Evaluation
    of several runs, by a judge ───── native_matches ─────▶ evaluand.Matches

A result may have any type that can be written as JSON. It is stored in `data` of the scorer's table, where metrics read
each of its numbers by its path: `data.correct`, `data.rouge.f_score`. A single number is `value`, and a text `label`.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_core import to_jsonable_python

from evaluand.core import identity
from evaluand.core.errors import SpecError, TaskError
from evaluand.core.fingerprint import Identity, code_identity
from evaluand.core.labels import short_labels
from evaluand.data.dataset import Dataset as NativeDataset, Example as NativeExample
from evaluand.evaluation.comparison_scorers import FIRST, SECOND, ComparisonScorer, Preference
from evaluand.evaluation.evaluator import Evaluation as NativeEvaluation, Evaluator as NativeEvaluator
from evaluand.evaluation.scorer import Score, Scorer
from evaluand.interop.pharia.datasets import DatasetRepository
from evaluand.interop.pharia.domain import (
    Dataset,
    EvaluationOverview,
    Example,
    FailedExampleEvaluation,
    FailedExampleRun,
    Refused,
    SuccessfulExampleOutput,
    require_all_stored,
    require_stored,
)
from evaluand.interop.pharia.evaluations import EvaluationRepository
from evaluand.interop.pharia.incremental import ComparisonEvaluation, EloEvaluationLogic, Matches, MatchOutcome
from evaluand.interop.pharia.logic import EvaluationLogic, LogicTypes
from evaluand.interop.pharia.runs import RunRepository
from evaluand.matches.matches import Matches as NativeMatches
from evaluand.matches.people import RecordedMatch, store_recorded_matches
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
    return _LogicScorer(logic, _Reader.of(logic, input_type, output_type, expected_output_type))


def as_judge(
    logic: EloEvaluationLogic[Any, Any, Any],
    *,
    input_type: Any = None,
    output_type: Any = None,
    expected_output_type: Any = None,
) -> ComparisonScorer:
    """A judge for `evaluand.Matcher` that compares two responses by a logic's `grade`.

    Args:
        logic: the logic.
        input_type: the type of its inputs; by default as its class declares, like the other types.
        output_type: the type of its outputs.
        expected_output_type: the type of its expected outputs.

    Example:
        >>> from evaluand.interop.pharia import EloEvaluationLogic, MatchOutcome
        >>> class Shorter(EloEvaluationLogic[str, str, str]):
        ...     def grade(self, first, second, example):
        ...         return MatchOutcome.A_WINS if len(first.output) < len(second.output) else MatchOutcome.B_WINS
        >>> as_judge(Shorter()).arguments
        ('first', 'second', 'example')
    """
    return _LogicJudge(logic, _Reader.of(logic, input_type, output_type, expected_output_type))


def native_evaluation(
    dataset_repository: DatasetRepository,
    run_repository: RunRepository,
    evaluation_repository: EvaluationRepository,
    evaluation_id: str,
    *,
    store: Store | None = None,
    scorer: str = "evaluation",
    name: str | None = None,
) -> NativeEvaluation | NativeMatches:
    """A stored evaluation as a native evaluation, or that of several runs as matches; nothing is evaluated again.

    Of an evaluation of one run, examples on which the task or the evaluation failed become failed rows; those that were
    not evaluated abstain. For several runs see `native_matches`.

    Args:
        dataset_repository: where the examples are stored.
        run_repository: where the outputs are stored.
        evaluation_repository: where the results are stored.
        evaluation_id: the evaluation.
        store: where to store runs and evaluation, by default in memory. To compare evaluations, use one store for all.
        scorer: the name of the scorer whose table has the results of one run.
        name: a name for the evaluation or the matches.

    Raises:
        Unknown: there is no such evaluation.
        Refused: it evaluates several runs together, and its results are not matches.
    """
    head = require_stored(evaluation_repository.evaluation_overview(evaluation_id), "evaluation", evaluation_id)
    if len(head.run_overviews) != 1:
        repositories = dataset_repository, run_repository, evaluation_repository
        return native_matches(*repositories, evaluation_id, store=store, name=name)
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


def native_matches(
    dataset_repository: DatasetRepository,
    run_repository: RunRepository,
    evaluation_repository: EvaluationRepository,
    *evaluation_ids: str,
    store: Store | None = None,
    name: str | None = None,
) -> NativeMatches:
    """The matches of stored evaluations of several runs as native matches; nothing is judged again.

    Evaluations that these extend are included. Where an evaluation or a task failed, the match has failed, and says
    whose output is missing. A pair that was not judged is skipped.

    Args:
        dataset_repository: where the examples are stored.
        run_repository: where the outputs are stored.
        evaluation_repository: where the results are stored.
        evaluation_ids: the evaluations, all of one dataset, whose results are `Matches` or `ComparisonEvaluation`.
        store: where to store runs and matches, by default in memory.
        name: a name for the matches.

    Raises:
        Unknown: there is no such evaluation.
        Refused: the evaluations are of several datasets or of a single run, or results are not matches of their runs.
    """
    heads = _with_extended(evaluation_repository, evaluation_ids)
    runs = list({run.id: run for head in heads for run in head.ordered_runs}.values())
    if len(runs) < 2:
        raise Refused("matches need evaluations of two runs or more; give the id of one")
    if len({run.dataset_id for run in runs}) > 1:
        raise Refused("the evaluations are of several datasets, so their matches cannot be joined")
    dataset = native_dataset(dataset_repository, runs[0].dataset_id)
    tasks = [_StoredOutputs(run.description, run_repository, run.id) for run in runs]
    runner = NativeRunner(store=store or MemoryStore())
    return store_recorded_matches(
        [runner.run(task, dataset) for task in tasks],
        _recorded_matches(heads, evaluation_repository, [run.id for run in runs], tasks, dataset),
        labels=short_labels([run.description for run in runs], [run.id for run in runs]),
        judge={
            "kind": "pharia_results",
            "code": [to_jsonable_python((head.provenance or {}).get("code")) for head in heads],
        },
        name=name,
    )


def _with_extended(repository: EvaluationRepository, ids: Sequence[str]) -> list[EvaluationOverview]:
    """The heads of evaluations, each preceded by those that it extends, as far as they are stored."""
    found: dict[str, EvaluationOverview] = {}

    def add(head: EvaluationOverview) -> None:
        for id in head.previous_evaluation_ids:
            earlier = repository.evaluation_overview(id)
            if earlier is not None and id not in found:
                add(earlier)
        found[head.id] = head

    for head in require_all_stored(repository.evaluation_overview, "evaluation", ids):
        add(head)
    return list(found.values())


def _recorded_matches(
    heads: Sequence[EvaluationOverview],
    repository: EvaluationRepository,
    run_ids: Sequence[str],
    tasks: Sequence["_StoredOutputs"],
    dataset: NativeDataset,
) -> list[RecordedMatch]:
    """What the judge said on each example, and the pairs on which it failed without another evaluation that did not."""
    indices = {example.id: example.index for example in dataset}
    numbers = {id: number for number, id in enumerate(run_ids)}
    matches: list[RecordedMatch] = []
    failures: list[tuple[EvaluationOverview, str, str]] = []
    for head in heads:
        for each in repository.example_evaluations(head.id, Any):
            if isinstance(each.result, FailedExampleEvaluation):
                failures.append((head, each.example_id, each.result.error_message))
                continue
            for match in _read_matches(each.result, head):
                if not {match.first_player, match.second_player} <= numbers.keys():
                    raise Refused(
                        f"evaluation {head.id} has matches of {match.first_player!r}, which is none of its runs"
                    )
                first, second = numbers[match.first_player], numbers[match.second_player]
                matches.append(RecordedMatch(indices[each.example_id], first, second, match.outcome.payoff[0]))
    judged = {(match.example, *sorted((match.first, match.second))) for match in matches}
    for head, example_id, reason in failures:
        answered = sorted(
            numbers[run.id] for run in head.run_overviews if tasks[numbers[run.id]].has_output(example_id)
        )
        for pair in itertools.combinations(answered, 2):
            if (key := (indices[example_id], *pair)) not in judged:
                judged.add(key)
                matches.append(RecordedMatch(*key, None, reason))
    return sorted(matches, key=lambda match: match.example)


def _read_matches(result: Any, head: EvaluationOverview) -> Sequence[ComparisonEvaluation]:
    plain = to_jsonable_python(result)
    try:
        if isinstance(plain, dict) and "comparison_evaluations" in plain:
            return Matches.model_validate(plain).comparison_evaluations
        return [ComparisonEvaluation.model_validate(plain)]
    except ValidationError:
        n_runs = len(head.run_overviews)
        raise Refused(
            f"evaluation {head.id} is of {n_runs} runs together and its results are not matches, so they belong to no"
            " single run; evaluate each run separately"
        ) from None


class _Reader:
    """Reads native examples and outputs as the types of a logic."""

    def __init__(self, input_type: Any, output_type: Any, expected_type: Any) -> None:
        self._input, self._output, self._expected = map(adapter_of, (input_type, output_type, expected_type))

    @classmethod
    def of(cls, logic: EvaluationLogic[Any, Any, Any, Any], *types: Any) -> "_Reader":
        """For the types of input, output and expected output; those that the logic's class declares for None."""
        declared = LogicTypes(logic)
        pairs = zip(types, (declared.input, declared.output, declared.expected), strict=True)
        return cls(*(type_ or read() for type_, read in pairs))

    def example(self, example: NativeExample) -> Example[Any, Any]:
        untyped = _to_example(example)
        input, expected = self._input.validate_python(untyped.input), self._expected.validate_python(example.expected)
        return untyped.model_copy(update={"input": input, "expected_output": expected})

    def output(self, output: Any, example_id: str, run_id: str) -> SuccessfulExampleOutput[Any]:
        value = self._output.validate_python(output)
        return SuccessfulExampleOutput(run_id=run_id, example_id=example_id, output=value)


class _LogicScorer(Scorer):
    """A logic as a scorer."""

    kind = "pharia_logic"
    arguments = ("output", "example")

    def __init__(self, logic: EvaluationLogic[Any, Any, Any, Any], reader: _Reader) -> None:
        self._logic, self._reader = logic, reader

    def score(self, output: Any, example: NativeExample) -> Score:
        typed = self._reader.example(example)
        answer = self._reader.output(output, example.id, "")
        return Score.of(to_jsonable_python(self._logic.do_evaluate(typed, answer)))

    def identify(self) -> Identity:
        return code_identity("scorer", self._logic)


class _LogicJudge(ComparisonScorer):
    """A logic that compares two outputs as a judge, which does not see whose outputs they are."""

    kind = "pharia_logic"
    arguments = (FIRST, SECOND, "example")

    def __init__(self, logic: EloEvaluationLogic[Any, Any, Any], reader: _Reader) -> None:
        self._logic, self._reader = logic, reader

    def compare(self, first: Any, second: Any, example: NativeExample | None = None) -> Preference:
        if example is None:
            raise SpecError("a logic compares two outputs for an example; call it by a Matcher")
        one, other = (self._reader.output(each, example.id, side) for each, side in ((first, FIRST), (second, SECOND)))
        outcome = MatchOutcome(self._logic.grade(one, other, self._reader.example(example)))
        return Preference(outcome.payoff[0], label=outcome.value)

    def identify(self) -> Identity:
        return code_identity("scorer", self._logic)


class _StoredOutputs(Task[Any, Any]):
    """The outputs stored in a repository, as a task."""

    reads = ("id",)

    def __init__(self, name: str, repository: RunRepository, run_id: str) -> None:
        self._name = name
        self._outputs = {each.example_id: each.output for each in repository.example_outputs(run_id, Any)}

    @property
    def name(self) -> str:
        return self._name

    def has_output(self, example_id: str) -> bool:
        """Whether the task did not fail on an example."""
        return not isinstance(self._outputs.get(example_id, FailedExampleRun(error_message="")), FailedExampleRun)

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
