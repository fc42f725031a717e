"""Evaluation by people in Argilla, by the names of the Pharia SDKs, with a client that stores records in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from evaluand.interop.pharia import (
    Aggregator,
    ArgillaClient,
    ArgillaEvaluation,
    ArgillaEvaluationLogic,
    ArgillaEvaluator,
    AsyncEvaluationRepository,
    AsyncFileEvaluationRepository,
    AsyncInMemoryEvaluationRepository,
    ComparisonEvaluation,
    ComparisonEvaluationAggregationLogic,
    CompleteOutput,
    Example,
    FailedExampleEvaluation,
    InMemoryAggregationRepository,
    InMemoryDatasetRepository,
    InMemoryRunRepository,
    InstructComparisonArgillaEvaluationLogic,
    InstructInput,
    Record,
    RecordData,
    RecordDataSequence,
    Runner,
    SuccessfulExampleOutput,
    Task,
    TaskSpan,
)


class MemoryClient(ArgillaClient):
    """A client whose people answer what `answer` returns for a record; None for no answer."""

    def __init__(self) -> None:
        self.created: list[tuple[str, str, list[Any], list[Any]]] = []
        self.records: dict[str, list[Record]] = {}
        self.answers: dict[str, Any] = {}

    def create_dataset(
        self, workspace_id: str, dataset_name: str, fields: Sequence[Any], questions: Sequence[Any]
    ) -> str:
        self.created.append((workspace_id, dataset_name, list(fields), list(questions)))
        id = f"dataset-{len(self.created)}"
        self.records[id] = []
        return id

    def ensure_dataset_exists(
        self, workspace_id: str, dataset_name: str, fields: Sequence[Any], questions: Sequence[Any]
    ) -> str:
        return self.create_dataset(workspace_id, dataset_name, fields, questions)

    def add_record(self, dataset_id: str, record: RecordData) -> None:
        id = f"r{len(self.records[dataset_id])}"
        self.records[dataset_id].append(Record(**record.model_dump(), id=id))

    def evaluations(self, dataset_id: str) -> Iterable[ArgillaEvaluation]:
        for record in self.records[dataset_id]:
            if record.id in self.answers:
                yield ArgillaEvaluation(
                    example_id=record.example_id,
                    record_id=record.id,
                    responses={"stars": self.answers[record.id], "winner": self.answers[record.id]},
                    metadata=record.metadata,
                )

    def split_dataset(self, dataset_id: str, n_splits: int) -> None:
        raise AssertionError("no test divides a dataset")


class Says(Task[str, str]):
    def __init__(self, name: str) -> None:
        self.label = name

    def do_run(self, input: str, task_span: TaskSpan) -> str:
        return f"{self.label}:{input}"


class Stars(ArgillaEvaluationLogic[str, str, str, int]):
    def __init__(self) -> None:
        super().__init__(fields={"text": "a field"}, questions=["a question"])

    def to_record(self, example: Example[str, str], *output: SuccessfulExampleOutput[str]) -> RecordDataSequence:
        if example.id == "broken":
            raise ValueError("no record")
        return RecordDataSequence(
            records=[RecordData(content={"text": each.output}, example_id=example.id) for each in output]
        )

    def from_record(self, argilla_evaluation: ArgillaEvaluation) -> int:
        stars = argilla_evaluation.responses["stars"]
        if stars == 0:
            raise ValueError("no such number of stars")
        return stars  # type: ignore[no-any-return]


@pytest.fixture(params=["memory", "files"])
def waiting(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncEvaluationRepository:
    if request.param == "memory":
        return AsyncInMemoryEvaluationRepository()
    return AsyncFileEvaluationRepository(tmp_path)


def starred(
    waiting: AsyncEvaluationRepository, ids: Sequence[str], runs: int
) -> tuple[ArgillaEvaluator[str, str, str, int], MemoryClient, list[str]]:
    datasets, stored = InMemoryDatasetRepository(), InMemoryRunRepository()
    examples = [Example(id=id, input=id, expected_output="") for id in ids]
    datasets.create_dataset(examples, "letters", "letters")
    run_ids = [Runner(Says(name), datasets, stored, name).run_dataset("letters").id for name in "ABC"[:runs]]
    client = MemoryClient()
    return ArgillaEvaluator(datasets, stored, waiting, "stars", Stars(), client, "team"), client, run_ids


def test_records_are_submitted_and_their_answers_become_results(waiting: AsyncEvaluationRepository) -> None:
    evaluator, client, runs = starred(waiting, ["e0", "e1"], runs=2)
    submitted = evaluator.submit(*runs, dataset_name="letters of May", labels={"may"})
    assert client.created == [("team", "letters of May", ["a field"], ["a question"])]
    texts = [record.content["text"] for record in client.records[submitted.id]]
    assert texts == ["A:e0", "B:e0", "A:e1", "B:e1"]
    assert (submitted.id, submitted.submitted_evaluation_count) == ("dataset-1", 4)
    client.answers = {"r0": 5, "r1": 2, "r2": 3}
    found = evaluator.retrieve(submitted.id)
    assert (found.successful_evaluation_count, found.failed_evaluation_count, found.unlabelled_example_count) == (
        3,
        0,
        1,
    )
    assert (found.id, found.labels) == (submitted.id, {"may"})
    results = waiting.example_evaluations(found.id, int)
    assert [(each.example_id, each.result) for each in results] == [("e0", 5), ("e0", 2), ("e1", 3)]


def test_later_answers_replace_earlier_ones_and_withdrawn_ones_disappear(waiting: AsyncEvaluationRepository) -> None:
    evaluator, client, runs = starred(waiting, ["e0", "e1"], runs=2)
    id = evaluator.submit(*runs).id
    client.answers = {"r0": 1, "r1": 2, "r2": 3, "r3": 4}
    evaluator.retrieve(id)
    client.answers = {"r0": 5, "r1": 2}
    found = evaluator.retrieve(id)
    assert (found.successful_evaluation_count, found.unlabelled_example_count) == (2, 2)
    assert [(each.example_id, each.result) for each in waiting.example_evaluations(id, int)] == [("e0", 5), ("e0", 2)]


def test_failures_cost_one_example_or_one_record(waiting: AsyncEvaluationRepository) -> None:
    evaluator, client, runs = starred(waiting, ["broken", "e1", "e2"], runs=1)
    submitted = evaluator.submit(*runs)
    assert (submitted.submitted_evaluation_count, submitted.failed_example_ids) == (2, ("broken",))
    client.answers = {"r0": 0, "r1": "many"}
    for _ in range(2):
        found = evaluator.retrieve(submitted.id)
        assert (found.successful_evaluation_count, found.failed_evaluation_count) == (0, 3)
    results = waiting.failed_example_evaluations(found.id, int)
    messages = [each.result.error_message for each in results if isinstance(each.result, FailedExampleEvaluation)]
    assert [message.partition(":")[0] for message in messages] == ["ValueError", "ValueError", "Misfit"]
    with pytest.raises(ValueError, match="no record"):
        evaluator.submit(*runs, abort_on_error=True)
    assert len(client.created) == 1


def test_an_example_that_the_server_refuses_is_a_failure(waiting: AsyncEvaluationRepository) -> None:
    evaluator, client, runs = starred(waiting, ["e0", "e1"], runs=1)
    add = client.add_record

    def add_others(dataset_id: str, record: RecordData) -> None:
        if record.example_id == "e0":
            raise ConnectionError("the server is busy")
        add(dataset_id, record)

    client.add_record = add_others  # type: ignore[method-assign]
    submitted = evaluator.submit(*runs)
    assert (submitted.submitted_evaluation_count, submitted.failed_example_ids) == (1, ("e0",))
    (failure,) = waiting.failed_example_evaluations(submitted.id, int)
    assert failure.result.error_message == "ConnectionError: the server is busy"
    client.answers = {"r0": 5}
    found = evaluator.retrieve(submitted.id)
    assert (found.successful_evaluation_count, found.failed_evaluation_count) == (1, 1)
    with pytest.raises(ConnectionError):
        evaluator.submit(*runs, abort_on_error=True)


def test_what_was_not_submitted_cannot_be_retrieved(waiting: AsyncEvaluationRepository) -> None:
    evaluator, client, _ = starred(waiting, ["e0"], runs=1)
    with pytest.raises(ValueError, match="no submission 'none'"):
        evaluator.retrieve("none")
    with pytest.raises(ValueError, match="no run 'none'"):
        evaluator.submit("none")
    assert client.created == []


class Writes(Task[InstructInput, CompleteOutput]):
    def __init__(self, name: str) -> None:
        self.label = name

    def do_run(self, input: InstructInput, task_span: TaskSpan) -> CompleteOutput:
        return CompleteOutput.model_validate(
            {
                "model_version": self.label,
                "completions": [{"completion": f"{self.label} says"}],
                "num_tokens_prompt_total": 1,
                "num_tokens_generated": 1,
            }
        )


def test_people_compare_completions_by_pair_in_random_order_and_runs_get_ratings() -> None:
    datasets, runs, waiting = InMemoryDatasetRepository(), InMemoryRunRepository(), AsyncInMemoryEvaluationRepository()
    examples = [
        Example(
            id=f"e{n}", input=InstructInput(instruction="Write", input="a line" if n else None), expected_output=None
        )
        for n in range(30)  # so many that each order occurs
    ]
    datasets.create_dataset(examples, "lines", "lines")
    ids = {Runner(Writes(name), datasets, runs, name).run_dataset("lines").id: name for name in "ABC"}
    client, logic = MemoryClient(), InstructComparisonArgillaEvaluationLogic()
    evaluator = ArgillaEvaluator(datasets, runs, waiting, "which is better", logic, client, "team")
    submitted = evaluator.submit(*ids)
    records = client.records[submitted.id]
    assert submitted.submitted_evaluation_count == len(records) == 90
    assert records[0].content.keys() == {"instruction", "input", "first", "second"}
    assert (records[0].content["input"], records[3].content["input"]) == ("", "a line")
    for record in records:
        assert [f"{ids[str(record.metadata[side])]} says" for side in ("first", "second")] == [
            record.content["first"],
            record.content["second"],
        ]
    assert len({tuple(ids[str(record.metadata[side])] for side in ("first", "second")) for record in records}) == 6
    client.answers = {record.id: 1 if record.content["first"] < record.content["second"] else 2 for record in records}
    found = evaluator.retrieve(submitted.id)
    assert found.successful_evaluation_count == 90
    aggregator = Aggregator(waiting, InMemoryAggregationRepository(), "ELO", ComparisonEvaluationAggregationLogic())
    scores = aggregator.aggregate_evaluation(found.id).statistics.scores
    assert {ids[id]: (score.win_rate, score.num_matches) for id, score in scores.items()} == {
        "A": (1.0, 60),
        "B": (0.5, 60),
        "C": (0.0, 60),
    }


def test_only_pairs_with_a_run_of_priority_are_asked() -> None:
    outputs = [
        SuccessfulExampleOutput(run_id=name, example_id="e", output=Writes(name).do_run(None, None))  # type: ignore[arg-type]
        for name in "ABC"
    ]
    example = Example(id="e", input=InstructInput(instruction="Write"), expected_output=None)
    chosen = InstructComparisonArgillaEvaluationLogic(frozenset({"B"}))
    pairs = [{*record.metadata.values()} for record in chosen.to_record(example, *outputs).records]
    assert pairs == [{"A", "B"}, {"B", "C"}]
    assert chosen.to_record(example, *outputs) == chosen.to_record(example, *outputs)


@pytest.mark.parametrize(("answer", "outcome"), [(1, "a_wins"), ("2", "b_wins"), (3, "draw")])
def test_an_answer_is_the_rank_of_the_better_completion(answer: Any, outcome: str) -> None:
    answered = ArgillaEvaluation(
        example_id="e", record_id="r", responses={"winner": answer}, metadata={"first": "A", "second": "B"}
    )
    expected = ComparisonEvaluation.model_validate({"first_player": "A", "second_player": "B", "outcome": outcome})
    assert InstructComparisonArgillaEvaluationLogic().from_record(answered) == expected
