"""Run, evaluate, aggregate and lineage by the names of the Pharia SDKs."""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import sys
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel
from support.places import VECTORS_FOLDER, needs
from support.unread import Unread

from evaluand.core.errors import DataError, EvaluandWarning, SpecError
from evaluand.evaluation.scorers.text_overlap import Bleu
from evaluand.interop.pharia import (
    AggregationLogic,
    AggregationRepository,
    Aggregator,
    BleuGrader,
    DatasetRepository,
    EvaluationFailed,
    EvaluationLogic,
    EvaluationRepository,
    Evaluator,
    Example,
    ExampleEvaluation,
    ExampleOutput,
    FailedExampleEvaluation,
    FailedExampleRun,
    FileAggregationRepository,
    FileDatasetRepository,
    FileEvaluationRepository,
    FileRunRepository,
    InMemoryAggregationRepository,
    InMemoryDatasetRepository,
    InMemoryEvaluationRepository,
    InMemoryRunRepository,
    InMemoryTracer,
    MeanAccumulator,
    NoOpTracer,
    RougeGrader,
    Runner,
    RunRepository,
    SingleOutputEvaluationLogic,
    SuccessfulExampleOutput,
    Task,
    TaskSpan,
    aggregation_overviews_to_pandas,
    evaluation_lineages_to_pandas,
    extract_latency_from_trace,
    extract_token_count_from_trace,
    run_lineages_to_pandas,
)

VECTORS = VECTORS_FOLDER / "pharia"
needs_vectors = needs(VECTORS)


class Review(BaseModel):
    text: str


class Mood(BaseModel):
    label: str


class Verdict(BaseModel):
    correct: bool


class Share(BaseModel):
    accuracy: float
    n: int


class Classify(Task[Review, Mood]):
    def do_run(self, input: Review, task_span: TaskSpan) -> Mood:
        if "CRASH" in input.text:
            raise RuntimeError(f"task crashed on {input.text}")
        words = {"good": "pos", "great": "pos", "bad": "neg", "awful": "neg"}
        with task_span.span("lookup") as span:
            label = next((label for word, label in words.items() if word in input.text), "neu")
            span.log("hit", label)
        return Mood(label=label)


class ExactMatch(SingleOutputEvaluationLogic[Review, Mood, str, Verdict]):
    def do_evaluate_single_output(self, example: Example[Review, str], output: Mood) -> Verdict:
        if example.expected_output == "EVALCRASH":
            raise RuntimeError("evaluation crashed")
        return Verdict(correct=output.label == example.expected_output)


class Accuracy(AggregationLogic[Verdict, Share]):
    def aggregate(self, evaluations: Iterable[Verdict]) -> Share:
        mean = MeanAccumulator()
        for each in evaluations:
            mean.add(each.correct)
        return Share(accuracy=mean.extract(), n=len(list(evaluations)))


class Repositories(NamedTuple):
    datasets: DatasetRepository
    runs: RunRepository
    evaluations: EvaluationRepository
    aggregations: AggregationRepository
    root: Path | None = None


@pytest.fixture(params=["memory", "files"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Repositories:
    if request.param == "memory":
        kinds: Any = (InMemoryDatasetRepository, InMemoryRunRepository)
        kinds += (InMemoryEvaluationRepository, InMemoryAggregationRepository)
        return Repositories(*(kind() for kind in kinds))
    kinds = (FileDatasetRepository, FileRunRepository, FileEvaluationRepository, FileAggregationRepository)
    return Repositories(*(kind(tmp_path) for kind in kinds), tmp_path)


def reviews(*texts: tuple[str, str, str]) -> list[Example[Review, str]]:
    return [Example(id=id, input=Review(text=text), expected_output=label) for id, text, label in texts]


THREE = reviews(("3", "awful", "neg"), ("1", "good", "pos"), ("2", "CRASH", "pos"))


def classified(kept: Repositories, examples: Iterable[Example[Any, Any]] = THREE, **options: Any) -> Any:
    dataset = kept.datasets.create_dataset(examples, "reviews")
    return Runner(Classify(), kept.datasets, kept.runs, "words").run_dataset(dataset.id, **options)


def evaluator(kept: Repositories) -> Evaluator[Review, Mood, str, Verdict]:
    return Evaluator(kept.datasets, kept.runs, kept.evaluations, "same", ExactMatch())


def aggregator(kept: Repositories, **options: Any) -> Aggregator[Verdict, Share]:
    return Aggregator(kept.evaluations, kept.aggregations, "share", Accuracy(), **options)


@needs_vectors
@pytest.mark.parametrize("case", ["all_ok", "two_task_failures"])
def test_the_vectors_counts_statuses_results_lineages_and_traces_come_out(kept: Repositories, case: str) -> None:
    vector = json.loads((VECTORS / "accuracy_10.json").read_text())["cases"][case]
    given = vector["dataset"]
    examples = reviews(*((each["id"], each["input"]["text"], each["expected_output"]) for each in given["examples"]))
    dataset = kept.datasets.create_dataset(
        examples, given["name"], given["id"], set(given["labels"]), given["metadata"]
    )
    runner = Runner(Classify(), kept.datasets, kept.runs, "lexicon")
    run = runner.run_dataset(dataset.id, description="v1", labels={"r"}, metadata={"k": 1})
    assert run.model_dump(include=vector["run_overview"].keys()) | {"labels": ["r"]} == vector["run_overview"]
    outputs = [
        {"example_id": each.example_id, "failed": each.output.error_message}
        if isinstance(each.output, FailedExampleRun)
        else each.model_dump(exclude={"run_id"})
        for each in kept.runs.example_outputs(run.id, Mood)
    ]
    assert outputs == vector["example_outputs"]

    judge = Evaluator(kept.datasets, kept.runs, kept.evaluations, "exact-match", ExactMatch())
    evaluation = judge.evaluate_runs(run.id, description="v1")
    assert evaluation.model_dump(include=vector["evaluation_overview"].keys()) == vector["evaluation_overview"]
    results = kept.evaluations.example_evaluations(evaluation.id, Verdict)
    assert [each.model_dump(exclude={"evaluation_id"}) for each in results] == vector["example_evaluations"]

    adding = Aggregator(kept.evaluations, kept.aggregations, "acc", Accuracy())
    aggregation = adding.aggregate_evaluation(evaluation.id, description="v1")
    reported = aggregation.model_dump(include=vector["aggregation_overview"].keys())
    reported["failed_evaluation_count"] = aggregation.failed_evaluation_count
    assert reported.pop("statistics") == pytest.approx(vector["aggregation_overview"].pop("statistics"), abs=1e-9)
    assert reported == vector["aggregation_overview"]

    assert [each.example.id for each in judge.evaluation_lineages(evaluation.id)] == vector["lineages"]
    assert [each.example.id for each in runner.failed_runs(run.id, str)] == vector["failed_runs"]
    assert list(judge.failed_evaluations(evaluation.id)) == vector["failed_evaluations"]
    traces = {each.example.id: _told(each.tracer) for each in runner.run_lineages(run.id, str)}
    assert traces == vector["traces"]


def _told(tracer: Any) -> list[dict[str, Any]]:
    """A trace as the vectors tell it."""
    spans = [json.loads(span.model_dump_json()) for span in tracer.export_for_viewing()]
    names = {span["context"]["span_id"]: span["name"] for span in spans}
    for span in spans:
        for event in span["events"]:
            if isinstance(event["body"], dict):
                del event["body"]["stack_trace"]
    return [
        {
            "name": span["name"],
            "parent": names.get(span["parent_id"]),
            "type": span["attributes"]["type"],
            "status": span["status"],
            "input": span["attributes"].get("input"),
            "output": span["attributes"].get("output"),
            "events": [{"message": event["message"], "body": event["body"]} for event in span["events"]],
        }
        for span in spans
    ]


@needs_vectors
def test_the_accumulators_vectors_come_out_with_the_true_deviation() -> None:
    for case in json.loads((VECTORS / "mean_accumulator.json").read_text())["cases"]:
        values = [0.1] * 1000 if isinstance(case["values"], str) else case["values"]
        accumulator = MeanAccumulator()
        for value in values:
            accumulator.add(value)
        assert accumulator.extract() == pytest.approx(case["mean"], abs=1e-9)
        assert accumulator.standard_deviation() == pytest.approx(case["true_population_sd"], abs=1e-9)
        of = math.sqrt(len(values) or 1)
        assert accumulator.standard_error() == pytest.approx(case["true_population_sd"] / of, abs=1e-9)


def test_failures_are_left_out_or_count_as_what_is_declared(kept: Repositories) -> None:
    right = [(f"r{n}", "good", "pos") for n in range(6)]
    wrong = [(f"w{n}", "good", "neg") for n in range(2)]
    crashed = [(f"c{n}", "CRASH", "pos") for n in range(2)]
    run = classified(kept, reviews(*right, *wrong, *crashed))
    evaluation = evaluator(kept).evaluate_runs(run.id)
    left_out = aggregator(kept).aggregate_evaluation(evaluation.id)
    assert left_out.statistics == Share(accuracy=0.75, n=8)
    assert (left_out.failure_policy, left_out.failed_evaluation_count) == ("left out", 2)
    counted = aggregator(kept, failure_counts_as=Verdict(correct=False)).aggregate_evaluation(evaluation.id)
    assert counted.statistics.model_dump() == pytest.approx({"accuracy": 0.6, "n": 10}, abs=1e-9)
    assert counted.failure_policy == 'counted as {"correct":false}'
    assert counted.successful_evaluation_count == 8


def test_examples_evaluated_by_some_of_the_outputs_are_reported(kept: Repositories) -> None:
    first, second = shouted(kept, Shout("b"), Shout("c", "!"))
    all_of = Evaluator(kept.datasets, kept.runs, kept.evaluations, "all", Outputs())
    assert all_of.evaluate_runs(first, second).incomplete_example_count == 0
    part = all_of.evaluate_runs(first, second, skip_example_on_any_failure=False)
    reported = "4 successful, 0 failed, 2 evaluated by the outputs of some runs only (all)"
    assert (part.incomplete_example_count, part.run_failure_count) == (2, 0)
    assert str(kept.evaluations.evaluation_overview(part.id)).endswith(reported)


@pytest.mark.parametrize("damage", [lambda lines: [*lines[:-1], lines[-1][:-15]], lambda lines: lines[1:]])
def test_outputs_that_are_lost_are_reported_and_count_as_skipped(tmp_path: Path, damage: Any) -> None:
    def kept_anew() -> Repositories:
        kinds: Any = (FileDatasetRepository, FileRunRepository, FileEvaluationRepository, FileAggregationRepository)
        return Repositories(*(kind(tmp_path) for kind in kinds), tmp_path)

    kept = kept_anew()
    ids = shouted(kept, Shout(), Shout())
    file = tmp_path / "runs" / ids[0] / "outputs.jsonl"
    file.write_text("".join(damage(file.read_text().splitlines(keepends=True))))
    kept = kept_anew()
    all_of = Evaluator(kept.datasets, kept.runs, kept.evaluations, "all", Outputs())
    for runs in (ids[:1], ids):
        with pytest.warns(EvaluandWarning, match=f"run {ids[0]} made 4 outputs, of which 1 are lost or cannot be read"):
            evaluation = all_of.evaluate_runs(*runs)
        counts = evaluation.successful_evaluation_count, evaluation.skipped_example_count, evaluation.run_failure_count
        assert counts == (3, 1, 0)


class Ones(EvaluationLogic[Review, Mood, str, Verdict]):
    def do_evaluate(self, example: Example[Review, str], *output: SuccessfulExampleOutput[Mood]) -> Verdict:
        return Verdict(correct=True)


def test_examples_that_a_run_was_never_asked_are_no_failures(kept: Repositories) -> None:
    crashing = [("c", "CRASH", "pos")]
    dataset = kept.datasets.create_dataset(reviews(*((f"{n}", "good", "pos") for n in range(9)), *crashing), "reviews")
    runner = Runner(Classify(), kept.datasets, kept.runs, "words")
    some, all_ = runner.run_dataset(dataset.id, num_examples=4), runner.run_dataset(dataset.id)
    ones = Evaluator(kept.datasets, kept.runs, kept.evaluations, "ones", Ones())
    evaluation = ones.evaluate_runs(some.id, all_.id)
    assert (evaluation.skipped_example_count, evaluation.run_failure_count) == (6, 1)
    counted = aggregator(kept, failure_counts_as=Verdict(correct=False)).aggregate_evaluation(evaluation.id)
    assert (counted.statistics, counted.failed_evaluation_count) == (Share(accuracy=0.8, n=5), 1)
    either = ones.evaluate_runs(some.id, all_.id, skip_example_on_any_failure=False)
    overview = aggregator(kept).aggregate_evaluation(either.id)
    assert (overview.successful_evaluation_count, overview.failed_evaluation_count) == (9, 1)
    twice = ones.evaluate_runs(all_.id, runner.run_dataset(dataset.id).id, skip_example_on_any_failure=False)
    assert "9 evaluated, 1 failed and left out" in str(aggregator(kept).aggregate_evaluation(twice.id))


def test_failed_evaluations_are_counted_as_declared_too(kept: Repositories) -> None:
    run = classified(kept, reviews(("a", "good", "pos"), ("b", "good", "EVALCRASH")))
    evaluation = evaluator(kept).evaluate_runs(run.id)
    assert (evaluation.successful_evaluation_count, evaluation.failed_evaluation_count) == (1, 1)
    (failed,) = evaluator(kept).failed_evaluations(evaluation.id)
    assert failed.evaluation.result == FailedExampleEvaluation(error_message="RuntimeError: evaluation crashed")
    overview = aggregator(kept, failure_counts_as=Verdict(correct=False)).aggregate_evaluation(evaluation.id)
    assert overview.statistics == Share(accuracy=0.5, n=2)
    with pytest.raises(EvaluationFailed, match="1 failed examples"):
        overview.raise_on_evaluation_failure()


def test_each_call_makes_a_run_of_its_own(kept: Repositories) -> None:
    dataset = kept.datasets.create_dataset(THREE, "reviews")
    runner = Runner(Classify(), kept.datasets, kept.runs, "words")
    first = runner.run_dataset(dataset.id, metadata={"model": "a"})
    second = runner.run_dataset(dataset.id, num_examples=2, description="two")
    assert kept.runs.run_overview_ids() == sorted([first.id, second.id])
    assert list(kept.runs.example_output_ids(second.id)) == ["1", "2"]
    assert second.description == "words : two"
    assert runner.run_is_already_computed({"model": "a"})
    assert not runner.run_is_already_computed({"model": "b"})


def test_a_runs_head_tells_commit_versions_seed_configuration_and_environment(kept: Repositories) -> None:
    reported = classified(kept, seed=7, environment_version="prod-3", max_workers=2).provenance
    assert reported is not None
    assert (reported["seed"], reported["environment_version"]) == (7, "prod-3")
    assert reported["configuration"]["max_workers"] == 2
    assert {"evaluand", "python", "packages", "git", "code"} <= reported.keys()
    (stored,) = kept.runs.run_overviews()
    assert stored.provenance == reported


def test_a_run_is_traced_by_example_and_where_the_caller_wants(kept: Repositories) -> None:
    tracer = InMemoryTracer()
    run = classified(kept, tracer=tracer)
    assert len(tracer.entries) == 3
    own = kept.runs.example_tracer(run.id, "1")
    assert [span.name for span in own.export_for_viewing()] == ["lookup", "Classify"]
    assert kept.runs.example_tracer(run.id, "none") is None
    alone = classified(kept, tracer=tracer, trace_examples_individually=False)
    assert len(tracer.entries) == 6
    assert kept.runs.example_tracer(alone.id, "1") is None


def test_stack_traces_are_kept_out_of_results(kept: Repositories) -> None:
    run = classified(kept)
    failed = kept.runs.example_output(run.id, "2", Mood)
    assert failed.output == FailedExampleRun(error_message="RuntimeError: task crashed on CRASH")
    with pytest.raises(ZeroDivisionError) as raised:
        1 / 0  # noqa: B018
    assert __file__ in FailedExampleRun.from_exception(raised.value, stack_trace=True).error_message


def test_a_dataset_that_does_not_fit_the_task_is_refused_before_anything_runs(kept: Repositories) -> None:
    dataset = kept.datasets.create_dataset([*THREE, Example(id="4", input="bare", expected_output="pos")], "mixed")
    with pytest.raises(ValueError, match=r"example 4, input: .*instance of Review"):
        Runner(Classify(), kept.datasets, kept.runs, "words").run_dataset(dataset.id)
    assert list(kept.runs.run_overview_ids()) == []


def test_expected_values_that_do_not_fit_the_logic_are_refused_before_anything_is_evaluated(kept: Repositories) -> None:
    run = classified(kept, [Example(id="1", input=Review(text="good"), expected_output=3)])
    with pytest.raises(ValueError, match=r"example 1, expected_output: .*valid string"):
        evaluator(kept).evaluate_runs(run.id)


class Shout(Task[str, str]):
    def __init__(self, fails_on: str = "", suffix: str = "") -> None:
        self.fails_on, self.suffix = fails_on, suffix

    def do_run(self, input: str, task_span: TaskSpan) -> str:
        if input == self.fails_on:
            raise ValueError("boom")
        return input.upper() + self.suffix


class Outputs(EvaluationLogic[str, str, None, list[str]]):
    def do_evaluate(self, example: Example[str, None], *output: SuccessfulExampleOutput[str]) -> list[str]:
        return [each.output for each in output]


def shouted(kept: Repositories, *tasks: Task[str, Any], **options: Any) -> list[str]:
    examples = [Example(id=each, input=each, expected_output=None) for each in "abcd"]
    dataset = kept.datasets.create_dataset(examples, "letters")
    return [Runner(task, kept.datasets, kept.runs, "shout").run_dataset(dataset.id, **options).id for task in tasks]


def results(kept: Repositories, evaluation_id: str) -> dict[str, list[str]]:
    found = kept.evaluations.example_evaluations(evaluation_id, list[str])
    return {each.example_id: each.result for each in found}


def test_the_outputs_of_several_runs_come_in_the_order_given(kept: Repositories) -> None:
    ids = shouted(kept, *(Shout(suffix=str(n)) for n in range(5)))
    evaluate = Evaluator(kept.datasets, kept.runs, kept.evaluations, "all", Outputs()).evaluate_runs
    for order in (ids, ids[::-1], [ids[2], ids[0]]):
        evaluation = evaluate(*order, num_examples=1)
        assert results(kept, evaluation.id) == {"a": [f"A{ids.index(id)}" for id in order]}
        stored = kept.evaluations.evaluation_overview(evaluation.id)
        assert [run.id for run in stored.ordered_runs] == order


def test_examples_that_a_run_failed_on_are_left_out_or_evaluated_with_what_there_is(kept: Repositories) -> None:
    first, second = shouted(kept, Shout("b"), Shout("c", "!"))
    all_of = Evaluator(kept.datasets, kept.runs, kept.evaluations, "all", Outputs())
    whole = all_of.evaluate_runs(first, second)
    assert results(kept, whole.id) == {"a": ["A", "A!"], "d": ["D", "D!"]}
    assert whole.skipped_example_count == 2
    part = all_of.evaluate_runs(first, second, skip_example_on_any_failure=False)
    assert results(kept, part.id) == {"a": ["A", "A!"], "b": ["B!"], "c": ["C"], "d": ["D", "D!"]}
    two = all_of.evaluate_runs(first, second, num_examples=2)
    assert list(results(kept, two.id)) == ["a", "d"]
    lineage = all_of.evaluation_lineage(part.id, "b")
    assert [type(each.output) for each in lineage.outputs] == [FailedExampleRun, str]


def test_runs_that_overlap_are_evaluated_where_they_do(kept: Repositories) -> None:
    dataset = kept.datasets.create_dataset([Example(id=e, input=e, expected_output=None) for e in "abc"], "letters")
    runner = Runner(Shout(), kept.datasets, kept.runs, "shout")
    all_, two = runner.run_dataset(dataset.id), runner.run_dataset(dataset.id, num_examples=2)
    evaluation = Evaluator(kept.datasets, kept.runs, kept.evaluations, "all", Outputs()).evaluate_runs(all_.id, two.id)
    assert list(results(kept, evaluation.id)) == ["a", "b"]
    assert evaluation.skipped_example_count == 1


def test_what_cannot_be_evaluated_together_is_refused_with_its_reason(kept: Repositories) -> None:
    (first,), (other,) = shouted(kept, Shout()), shouted(kept, Shout())
    judge = Evaluator(kept.datasets, kept.runs, kept.evaluations, "all", Outputs())
    with pytest.raises(ValueError, match="give the id of a run"):
        judge.evaluate_runs()
    with pytest.raises(ValueError, match="no run 'none'"):
        judge.evaluate_runs(first, "none")
    with pytest.raises(ValueError, match="several datasets"):
        judge.evaluate_runs(first, other)
    two = shouted(kept, Shout(), Shout())
    with pytest.raises(ValueError, match="outputs of one run"):
        evaluator(kept).evaluate_runs(*two)


def test_several_evaluations_are_aggregated_as_one(kept: Repositories) -> None:
    first, second = classified(kept, num_examples=1), classified(kept)
    ids = [evaluator(kept).evaluate_runs(run.id).id for run in (first, second)]
    overview = aggregator(kept).aggregate_evaluation(*ids, labels={"x"}, metadata={"k": 1}, description="both")
    assert overview.statistics == Share(accuracy=1.0, n=3)
    assert sorted(overview.run_ids) == sorted([first.id, second.id])
    stored = kept.aggregations.aggregation_overview(overview.id, Share)
    assert stored == overview
    assert stored.description == "share : both"
    with pytest.raises(ValueError, match="no evaluation 'none'"):
        aggregator(kept).aggregate_evaluation("none")
    with pytest.raises(ValueError, match="id of an evaluation"):
        aggregator(kept).aggregate_evaluation()


def test_undefined_numbers_come_back_undefined(kept: Repositories) -> None:
    class Nothing(AggregationLogic[Verdict, Share]):
        def aggregate(self, evaluations: Iterable[Verdict]) -> Share:
            return Share(accuracy=math.nan, n=0)

    evaluation = evaluator(kept).evaluate_runs(classified(kept).id)
    overview = Aggregator(kept.evaluations, kept.aggregations, "none", Nothing()).aggregate_evaluation(evaluation.id)
    assert math.isnan(kept.aggregations.aggregation_overview(overview.id, Share).statistics.accuracy)


def test_an_undefined_number_among_others_comes_back_undefined_and_not_as_nothing(kept: Repositories) -> None:
    class Parts(BaseModel):
        parts: dict[str, Any]

    class Half(AggregationLogic[Verdict, Parts]):
        def aggregate(self, evaluations: Iterable[Verdict]) -> Parts:
            return Parts(parts={"f1": math.nan, "note": None, "deep": [{"x": math.inf}]})

    evaluation = evaluator(kept).evaluate_runs(classified(kept).id)
    overview = Aggregator(kept.evaluations, kept.aggregations, "half", Half()).aggregate_evaluation(evaluation.id)
    parts = kept.aggregations.aggregation_overview(overview.id, Parts).statistics.parts
    assert math.isnan(parts.pop("f1"))
    assert parts == {"note": None, "deep": [{"x": math.inf}]}
    assert math.isnan(aggregation_overviews_to_pandas([overview])["parts"][0]["f1"])


class Undecided(Task[Any, Any]):
    def do_run(self, input: Any, task_span: TaskSpan) -> Any:
        if input == "crash":
            raise RuntimeError("crashed")
        return {"error_message": input}


@pytest.mark.parametrize("output_type", [Any, dict, dict[str, str]])
def test_a_crashed_task_never_reads_back_as_success(kept: Repositories, output_type: Any) -> None:
    examples = [Example(id=each, input=each, expected_output=None) for each in ("crash", "fine")]
    dataset = kept.datasets.create_dataset(examples, "any")
    run = Runner(Undecided(), kept.datasets, kept.runs, "any").run_dataset(dataset.id)
    assert (run.successful_example_count, run.failed_example_count) == (1, 1)
    crashed, fine = kept.runs.example_outputs(run.id, output_type)
    assert crashed.output == FailedExampleRun(error_message="RuntimeError: crashed")
    assert fine.output == {"error_message": "fine"}
    assert isinstance(kept.runs.example_output(run.id, "crash", output_type).output, FailedExampleRun)
    assert [each.example_id for each in kept.runs.successful_example_outputs(run.id, output_type)] == ["fine"]
    assert [each.example_id for each in kept.runs.failed_example_outputs(run.id, output_type)] == ["crash"]


def test_an_output_that_cannot_be_written_is_a_failure(kept: Repositories) -> None:
    class Bad(Task[str, Any]):
        def do_run(self, input: str, task_span: TaskSpan) -> Any:
            return object()

    dataset = kept.datasets.create_dataset([Example(id="a", input="a", expected_output=None)], "one")
    runner = Runner(Bad(), kept.datasets, kept.runs, "bad")
    assert runner.run_dataset(dataset.id).failed_example_count == 1
    with pytest.raises(SpecError, match=r"example a: .* cannot be stored"):
        runner.run_dataset(dataset.id, abort_on_error=True)


def test_async_tasks_and_functions_run(kept: Repositories) -> None:
    class Later(Task[str, str]):
        async def do_run(self, input: str, task_span: TaskSpan) -> str:  # type: ignore[override]
            return input.upper()

    dataset = kept.datasets.create_dataset([Example(id="a", input="a", expected_output=None)], "one")
    for task in (Later(), str.upper):
        run = Runner(task, kept.datasets, kept.runs, "later").run_dataset(dataset.id)
        assert kept.runs.example_output(run.id, "a", str).output == "A"


def test_a_run_that_was_stopped_by_an_error_goes_on_with_what_is_missing(kept: Repositories) -> None:
    calls: list[str] = []

    class Fragile(Task[str, str]):
        mended = False

        def do_run(self, input: str, task_span: TaskSpan) -> str:
            calls.append(input)
            if input == "c" and not self.mended:
                raise ValueError("boom")
            return input.upper()

    dataset = kept.datasets.create_dataset([Example(id=e, input=e, expected_output=None) for e in "abcd"], "letters")
    task = Fragile()
    runner = Runner(task, kept.datasets, kept.runs, "fragile")
    with pytest.raises(ValueError, match="boom"):
        runner.run_dataset(dataset.id, abort_on_error=True, max_workers=1)
    assert list(kept.runs.run_overviews()) == []
    task.mended = True
    calls.clear()
    run = runner.run_dataset(dataset.id, resume_from_recovery_data=True, max_workers=1)
    assert calls == ["c", "d"]
    assert (run.successful_example_count, run.failed_example_count) == (4, 0)
    assert [each.output for each in kept.runs.example_outputs(run.id, str)] == list("ABCD")
    again = runner.run_dataset(dataset.id, resume_from_recovery_data=True)
    assert again.id != run.id


def test_only_what_the_same_task_left_is_gone_on_with(kept: Repositories) -> None:
    def another() -> type[Shout]:
        class Shout(Task[str, str]):
            def do_run(self, input: str, task_span: TaskSpan) -> str:
                return input + "?"

        return Shout

    dataset = kept.datasets.create_dataset([Example(id=e, input=e, expected_output=None) for e in "abcd"], "letters")

    def run(task: Any, **options: Any) -> Any:
        runner = Runner(task, kept.datasets, kept.runs, "shout")
        return runner.run_dataset(dataset.id, resume_from_recovery_data=True, max_workers=1, **options)

    with pytest.raises(ValueError, match="boom"):
        run(Shout("c", "!"), abort_on_error=True)
    for task, suffix in ((another()(), "?"), (Shout("", "#"), "#")):
        with pytest.warns(EvaluandWarning, match="a new run begins"):
            other = run(task)
        assert [each.output[1:] for each in kept.runs.example_outputs(other.id, str)] == [suffix] * 4
    whole = run(Shout("c", "!"))
    assert (whole.successful_example_count, whole.failed_example_count) == (3, 1)
    assert run(Shout("c", "!")).id != whole.id


def test_equal_runs_at_the_same_time_keep_apart_and_the_one_that_failed_is_gone_on_with(kept: Repositories) -> None:
    begun, go_on = threading.Event(), threading.Event()
    calls: list[str] = []

    class Slow(Task[str, str]):
        version = "1"

        def do_run(self, input: str, task_span: TaskSpan) -> str:
            calls.append(input)
            if input == "c" and not begun.is_set():
                begun.set()
                assert go_on.wait(30)
                raise ValueError("boom")
            return input.upper()

    dataset = kept.datasets.create_dataset([Example(id=e, input=e, expected_output=None) for e in "abcd"], "letters")
    options: Any = {"resume_from_recovery_data": True, "max_workers": 1, "abort_on_error": True}

    def run() -> Any:
        runs = kept.runs if isinstance(kept.runs, InMemoryRunRepository) else FileRunRepository(kept.root)
        return Runner(Slow(), kept.datasets, runs, "slow").run_dataset(dataset.id, **options)

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(run)
        assert begun.wait(30)
        second = run()
        assert list(kept.runs.example_output_ids(second.id)) == list("abcd")
        go_on.set()
        with pytest.raises(ValueError, match="boom"):
            first.result()
    calls.clear()
    third = run()
    assert calls == ["c", "d"]
    assert third.id != second.id
    assert [each.output for each in kept.runs.example_outputs(third.id, str)] == list("ABCD")
    assert kept.root is None or not list(kept.root.glob("runs/*.tmp"))


def test_later_changes_of_what_was_given_change_nothing_that_is_kept(kept: Repositories) -> None:
    given = {"tags": ["x"]}
    kept.runs.store_example_output(ExampleOutput(run_id="r", example_id="1", output=given))
    kept.evaluations.store_example_evaluation(ExampleEvaluation(evaluation_id="e", example_id="1", result=given))
    given["tags"].append("y")
    for _ in range(2):
        output = kept.runs.example_output("r", "1", dict[str, list[str]]).output
        result = kept.evaluations.example_evaluation("e", "1", dict[str, list[str]]).result
        assert output == result == {"tags": ["x"]}
        output["tags"].append("z")
        result["tags"].append("z")


def test_datasets_do_not_change(kept: Repositories) -> None:
    example = Example(id="a", input={"tags": ["x"]}, expected_output=None)
    dataset = kept.datasets.create_dataset([example], "one", id="mine")
    example.input["tags"].append("y")
    for _ in range(2):
        (found,) = kept.datasets.examples(dataset.id, dict[str, list[str]], type(None))
        assert found.input == {"tags": ["x"]}
        found.input["tags"].append("z")
    with pytest.raises(ValueError, match="'mine' already"):
        kept.datasets.create_dataset([], "other", id="mine")
    with pytest.raises(ValueError, match="two examples have the id 'a'"):
        kept.datasets.create_dataset([example, example], "twice")
    kept.datasets.delete_dataset("mine")
    assert list(kept.datasets.dataset_ids()) == []
    with pytest.raises(ValueError, match="no dataset 'mine'"):
        list(kept.datasets.examples("mine", Any, Any))


def test_an_id_that_cannot_be_written_is_refused_in_one_sentence_and_never_found(kept: Repositories) -> None:
    for dataset_id, example_id in (("a\ud800", "1"), ("a", "1\ud800")):
        example = Example(id=example_id, input="x", expected_output=None)
        with pytest.raises(ValueError, match=r"^.*cannot be stored: it contains a lone surrogate$"):
            kept.datasets.create_dataset([example], "n", id=dataset_id)
    assert kept.datasets.dataset("a\ud800") is None
    with pytest.raises(ValueError, match="no dataset 'a"):
        list(kept.datasets.examples("a\ud800", str, str))
    assert list(kept.datasets.dataset_ids()) == []


def test_types_are_read_from_brackets_and_from_annotations(kept: Repositories) -> None:
    class Annotated(Task):  # type: ignore[type-arg]
        def do_run(self, input: int, task_span: TaskSpan) -> str:
            return str(input)

    class Base(Task[int, Any]):
        def do_run(self, input, task_span):  # type: ignore[no-untyped-def]
            return input

    class Heir(Base):
        pass

    class Silent(Task):  # type: ignore[type-arg]
        def do_run(self, input, task_span):  # type: ignore[no-untyped-def]
            return input

    def runner(task: Any) -> Runner[Any, Any]:
        return Runner(task, kept.datasets, kept.runs, "types")

    assert (runner(Annotated()).input_type(), runner(Annotated()).output_type()) == (int, str)
    assert (runner(Heir()).input_type(), runner(Heir()).output_type()) == (int, Any)
    with pytest.raises(TypeError, match=r"Silent does not declare the type of its input; annotate Silent\.do_run"):
        runner(Silent()).input_type()

    class Told(SingleOutputEvaluationLogic):  # type: ignore[type-arg]
        def do_evaluate_single_output(self, example: Example[str, int], output: float) -> Verdict:
            return Verdict(correct=True)

    judge: Evaluator[Any, Any, Any, Any] = Evaluator(kept.datasets, kept.runs, kept.evaluations, "told", Told())
    types = (judge.input_type(), judge.output_type(), judge.expected_output_type(), judge.evaluation_type())
    assert types == (str, float, int, Verdict)


def test_lineages_become_tables(kept: Repositories) -> None:
    run = classified(kept)
    runner = Runner(Classify(), kept.datasets, kept.runs, "words")
    frame = run_lineages_to_pandas(list(runner.run_lineages(run.id, str)))
    assert frame.index.names == ["example_id", "run_id"]
    assert list(frame.columns) == ["input", "expected_output", "metadata", "output", "lineage"]
    assert list(frame["expected_output"]) == ["pos", "pos", "neg"]
    evaluation = evaluator(kept).evaluate_runs(run.id)
    frame = evaluation_lineages_to_pandas(list(evaluator(kept).evaluation_lineages(evaluation.id)))
    assert frame.index.names == ["example_id", "evaluation_id", "run_id"]
    columns = ["input", "expected_output", "metadata", "output", "result", "tracer", "lineage"]
    assert list(frame.columns) == columns
    assert list(frame["result"]) == [Verdict(correct=True)] * 2
    assert len(evaluation_lineages_to_pandas([])) == 0
    lineage = runner.run_lineage(run.id, "1", str)
    assert (lineage.example.expected_output, lineage.output.output) == ("pos", Mood(label="pos"))
    assert runner.run_lineage(run.id, "none", str) is None


@pytest.mark.parametrize(
    ("outputs", "dtype"),
    [([1, 2, 3], "int64"), ([True, False, True], "bool"), ([0.5, 1, 2.5], "float64"), ([1, None, 2], "float64")],
)
def test_numbers_in_tables_of_lineages_are_columns_of_numbers(kept: Repositories, outputs: Any, dtype: str) -> None:
    examples = [Example(id=str(n), input=n, expected_output=n) for n in range(len(outputs))]
    dataset = kept.datasets.create_dataset(examples, "numbers")
    runner = Runner(outputs.__getitem__, kept.datasets, kept.runs, "numbers")
    run = runner.run_dataset(dataset.id)
    frame = run_lineages_to_pandas(list(runner.run_lineages(run.id, int)))
    assert str(frame["output"].dtype) == dtype
    assert [None if value != value else value for value in frame["output"]] == outputs
    assert [str(frame[name].dtype) for name in ("input", "expected_output", "metadata")] == ["int64", "int64", "object"]


def test_lineages_are_shown_as_trees_with_nothing_taken_for_markup(
    kept: Repositories, capsys: pytest.CaptureFixture[str]
) -> None:
    run = classified(kept, reviews(("[red]1", "good", "pos")))
    evaluation = evaluator(kept).evaluate_runs(run.id)
    next(Runner(Classify(), kept.datasets, kept.runs, "words").run_lineages(run.id, str))._ipython_display_()
    next(iter(evaluator(kept).evaluation_lineages(evaluation.id)))._ipython_display_()
    shown = capsys.readouterr().out
    for title, part in (("Run Lineage", run.id), ("Evaluation Lineage", evaluation.id)):
        assert title in shown
        assert part in shown
    assert shown.count("example [red]1") == 2
    assert '"correct": true' in shown


def test_aggregations_become_tables(kept: Repositories) -> None:
    evaluation = evaluator(kept).evaluate_runs(classified(kept).id)
    metadata = {"model": "a", "id": "shadow", "deep": {"x": 2}}
    overview = aggregator(kept).aggregate_evaluation(evaluation.id, metadata=metadata)
    (row,) = aggregation_overviews_to_pandas([overview]).to_dict("records")
    assert (row["accuracy"], row["n"], row["model"], row["deep.x"]) == (1.0, 2, "a", 2)
    assert (row["id"], row["metadata.id"]) == (overview.id, "shadow")
    (row,) = aggregation_overviews_to_pandas([overview], False, True, False).to_dict("records")
    assert (row["statistics"], row["metadata"]) == ({"accuracy": 1.0, "n": 2}, metadata)
    other = overview.model_copy(update={"statistics": Verdict(correct=True)})
    with pytest.raises(ValueError, match="several types"):
        aggregation_overviews_to_pandas([overview, other])
    assert len(aggregation_overviews_to_pandas([overview, other], strict=False)) == 2


def test_latency_and_tokens_are_reported_by_a_trace() -> None:
    class Complete(Task[str, dict[str, Any]]):
        def do_run(self, input: str, task_span: TaskSpan) -> dict[str, Any]:
            return {"usage": {"completion_tokens": 5}}

    class Twice(Task[str, dict[str, Any]]):
        def do_run(self, input: str, task_span: TaskSpan) -> dict[str, Any]:
            for _ in range(2):
                Complete().run(input, task_span)
            return {"num_tokens_generated": 10}

    tracer = InMemoryTracer()
    Twice().run("a", tracer)
    trace = tracer.export_for_viewing()
    assert extract_token_count_from_trace(trace) == 10
    root = trace[-1]
    assert timedelta(microseconds=extract_latency_from_trace(trace)) == root.end_time - root.start_time
    with pytest.raises(ValueError, match="without a parent"):
        extract_latency_from_trace([])


def test_a_task_runs_without_any_trace(kept: Repositories) -> None:
    assert Classify().run(Review(text="good"), NoOpTracer()) == Mood(label="pos")


def test_an_async_task_is_run_where_a_loop_is_running() -> None:
    class Later(Task[str, str]):
        async def do_run(self, input: str, task_span: TaskSpan) -> str:  # type: ignore[override]
            await asyncio.sleep(0)
            return input.upper()

    async def run() -> list[int]:
        datasets = InMemoryDatasetRepository()
        dataset = datasets.create_dataset([Example(input="a", expected_output=None)], "one")
        runner: Any = Runner(Later(), datasets, InMemoryRunRepository(), "later")
        return [runner.run_dataset(dataset.id, max_workers=n).successful_example_count for n in (1, 2)]

    assert asyncio.run(run()) == [1, 1]


def test_an_iterator_is_kept_as_what_it_gives_or_is_a_failure(tmp_path: Path) -> None:
    class Each(Task[str, Any]):
        def do_run(self, input: str, task_span: TaskSpan) -> Any:
            letters = (letter for letter in input)
            return {"all": [letters]} if input == "inside" else letters

    datasets, runs = InMemoryDatasetRepository(), FileRunRepository(tmp_path)
    examples = [Example(id=text, input=text, expected_output=None) for text in ("ab", "inside")]
    dataset = datasets.create_dataset(examples, "letters")
    run = Runner(Each(), datasets, runs, "each").run_dataset(dataset.id)
    kept, failed = runs.example_outputs(run.id, Any)
    assert kept.output == ["a", "b"]
    assert "the value contains an iterator" in failed.output.error_message


class Prompted(Task[str, str]):
    def __init__(self, prompt: str) -> None:
        self.prompt = prompt

    def do_run(self, input: str, task_span: TaskSpan) -> str:
        if (self.prompt, input) == ("old", "c"):
            raise ValueError("boom")
        return self.prompt + input


class Surrounded(Task[str, str]):
    def do_run(self, input: str, task_span: TaskSpan) -> str:
        return Prompted(os.environ["PROMPT"]).do_run(input, task_span)


def test_a_run_is_gone_on_with_by_the_same_prompt_only_and_doubted_where_that_cannot_be_known(
    kept: Repositories, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = kept.datasets.create_dataset([Example(id=e, input=e, expected_output=None) for e in "abcd"], "letters")

    def run(task: Any, **options: Any) -> list[str]:
        runner = Runner(task, kept.datasets, kept.runs, "asks")
        id = runner.run_dataset(dataset.id, max_workers=1, abort_on_error=True, **options).id
        return [each.output for each in kept.runs.example_outputs(id, str)]

    with pytest.raises(ValueError, match="boom"):
        run(Prompted("old"))
    with pytest.warns(
        EvaluandWarning, match=r"a new run begins: the unfinished run .* other code, arguments or version"
    ):
        assert run(Prompted("new"), resume_from_recovery_data=True) == ["newa", "newb", "newc", "newd"]

    monkeypatch.setenv("PROMPT", "old")
    with pytest.raises(ValueError, match="boom"):
        run(Surrounded())
    monkeypatch.setenv("PROMPT", "new")
    with pytest.warns(EvaluandWarning, match=r"is resumed and may mix settings: .*os\.environ"):
        assert run(Surrounded(), resume_from_recovery_data=True) == ["olda", "oldb", "newc", "newd"]


@pytest.mark.parametrize("given", [-1, 1.5, True, "3"])
def test_numbers_that_there_cannot_be_are_refused_in_one_sentence(kept: Repositories, given: Any) -> None:
    dataset = kept.datasets.create_dataset(THREE, "reviews")
    runner = Runner(Classify(), kept.datasets, kept.runs, "words")
    for name in ("num_examples", "max_workers"):
        with pytest.raises(SpecError, match=rf"^{name} must be an integer of at least [01], not "):
            runner.run_dataset(dataset.id, **{name: given})
    run = runner.run_dataset(dataset.id)
    with pytest.raises(SpecError, match=r"^num_examples must be an integer of at least 0, not "):
        evaluator(kept).evaluate_runs(run.id, num_examples=given)
    assert runner.run_dataset(dataset.id, num_examples=0).successful_example_count == 0


class Noted(Example[str, str]):
    due: date
    note: str = "none"


class Due(SingleOutputEvaluationLogic[str, str, str, bool]):
    def do_evaluate_single_output(self, example: Noted, output: str) -> bool:  # type: ignore[override]
        return output == f"{example.input.upper()}" and example.due == date(2026, 1, 2) and example.note == "x"


def test_fields_of_ones_own_class_of_examples_reach_the_logic_and_stay_readable(kept: Repositories) -> None:
    given = Noted(id="1", input="a", expected_output="A", due=date(2026, 1, 2), note="x", metadata={"k": 1})
    dataset = kept.datasets.create_dataset([given], "noted")
    for found in (*kept.datasets.examples(dataset.id, str, str), kept.datasets.example(dataset.id, "1", str, str)):
        assert (found.note, found.input, found.metadata) == ("x", "a", {"k": 1})
        assert found == given if kept.root is None else found.due == "2026-01-02"
        assert "Example(" in repr(found) or "Noted(" in repr(found)
    run = Runner(Shout(), kept.datasets, kept.runs, "shout").run_dataset(dataset.id)
    judge: Any = Evaluator(kept.datasets, kept.runs, kept.evaluations, "due", Due())
    evaluation = judge.evaluate_runs(run.id)
    assert [each.result for each in kept.evaluations.example_evaluations(evaluation.id, bool)] == [True]
    (lineage,) = judge.evaluation_lineages(evaluation.id)
    assert lineage.example.note == "x"


def test_examples_that_are_not_of_the_logics_class_are_refused_with_what_is_missing(kept: Repositories) -> None:
    dataset = kept.datasets.create_dataset([Example(id="1", input="a", expected_output="A")], "plain")
    run = Runner(Shout(), kept.datasets, kept.runs, "shout").run_dataset(dataset.id)
    judge: Any = Evaluator(kept.datasets, kept.runs, kept.evaluations, "due", Due())
    with pytest.raises(ValueError, match=r"example 1\.due: Field required"):
        judge.evaluate_runs(run.id)


def test_what_is_no_text_is_not_graded() -> None:
    pytest.importorskip("sacrebleu")
    for hypothesis, reference, reported in ((None, "a", "hypothesis is null"), ("a", 3, "reference is a number")):
        for grade in (BleuGrader().calculate_bleu, RougeGrader().calculate_rouge):
            with pytest.raises(TypeError, match=f"^{reported}; pass a text$"):
                grade(hypothesis, reference)  # type: ignore[operator]
    assert BleuGrader().calculate_bleu("the cat", "the cat") == 0
    assert Bleu().score("the cat", "the cat").value == pytest.approx(100)


class Leaving(Task[str, str]):
    def do_run(self, input: str, task_span: TaskSpan) -> str:
        return sys.exit(0) if input == "b" else input


class LeavingLogic(SingleOutputEvaluationLogic[str, str, None, bool]):
    def do_evaluate_single_output(self, example: Example[str, None], output: str) -> bool:
        return sys.exit(0) if output == "c" else True


def test_code_that_leaves_the_program_fails_on_its_example_only(kept: Repositories) -> None:
    (run_id,) = shouted(kept, Leaving())
    run = kept.runs.run_overview(run_id)
    assert (run.successful_example_count, run.failed_example_count) == (3, 1)
    judge = Evaluator(kept.datasets, kept.runs, kept.evaluations, "leaving", LeavingLogic())
    evaluation = judge.evaluate_runs(run_id)
    assert (evaluation.successful_evaluation_count, evaluation.failed_evaluation_count) == (2, 1)
    assert kept.runs.example_output(run_id, "b", str).output.error_message == "SystemExit: 0"


class Mixed(Task[str, str]):
    def do_run(self, input: str, task_span: TaskSpan) -> Any:
        return 5 if input == "b" else input


class MixedLogic(SingleOutputEvaluationLogic[str, str, None, float]):
    def do_evaluate_single_output(self, example: Example[str, None], output: str) -> Any:
        return "much" if output == "c" else 1.0


class Total(AggregationLogic[float, float]):
    def aggregate(self, evaluations: Iterable[float]) -> float:
        return sum(evaluations)


def test_what_is_not_of_the_declared_type_is_a_failure_of_its_example_only(kept: Repositories) -> None:
    (run_id,) = shouted(kept, Mixed())
    wrong = "the output for example b is not a valid str: Input should be a valid string"
    assert kept.runs.example_output(run_id, "b", str).output.error_message == f"Misfit: {wrong}"
    judge = Evaluator(kept.datasets, kept.runs, kept.evaluations, "mixed", MixedLogic())
    evaluation = judge.evaluate_runs(run_id)
    (failed,) = judge.failed_evaluations(evaluation.id)
    assert failed.evaluation.result.error_message.startswith("Misfit: the result of example c is not a valid float: ")
    overview = Aggregator(kept.evaluations, kept.aggregations, "total", Total()).aggregate_evaluation(evaluation.id)
    assert (overview.statistics, overview.failed_evaluation_count) == (2.0, 2)
    with pytest.raises(ValueError, match=wrong):
        shouted(kept, Mixed(), abort_on_error=True)


def test_kept_values_of_another_type_are_reported_with_their_example(kept: Repositories) -> None:
    run = shouted(kept, Shout())[0]
    with pytest.raises(
        ValueError, match=f"^the output of run {run} for example a is not a valid int: Input should be a valid"
    ):
        list(kept.runs.example_outputs(run, int))
    evaluation = Evaluator(kept.datasets, kept.runs, kept.evaluations, "mixed", MixedLogic()).evaluate_runs(run)
    with pytest.raises(
        ValueError, match=f"^the result of evaluation {evaluation.id} for example a is not a valid Verdict: "
    ):
        aggregator(kept).aggregate_evaluation(evaluation.id)


@pytest.mark.parametrize(
    ("inputs", "options"),
    [("wxyz", {}), ("abcd", {"seed": 2}), ("abcd", {"environment_version": "B"}), ("abcd", {"num_examples": 2})],
)
def test_a_run_of_other_examples_or_settings_is_not_gone_on_with(
    kept: Repositories, inputs: str, options: dict[str, Any]
) -> None:
    calls: list[str] = []
    fails = Unread(False)

    class Fragile(Shout):
        version = "1"

        def do_run(self, input: str, task_span: TaskSpan) -> str:
            calls.append(input)
            if fails.value and input == "c":
                raise ValueError("boom")
            return input.upper()

    def run(inputs: str, **options: Any) -> Any:
        kept.datasets.delete_dataset("letters")
        examples = [Example(id=f"{n}", input=each, expected_output=None) for n, each in enumerate(inputs)]
        kept.datasets.create_dataset(examples, "letters", "letters")
        runner = Runner(Fragile(), kept.datasets, kept.runs, "fragile")
        return runner.run_dataset("letters", max_workers=1, resume_from_recovery_data=True, **options)

    fails.value = True
    with pytest.raises(ValueError, match="boom"):
        run("abcd", abort_on_error=True, seed=1, environment_version="A")
    fails.value = False
    calls.clear()
    other = run(inputs, **{"seed": 1, "environment_version": "A"} | options)
    count = options.get("num_examples", 4)
    assert calls == list(inputs[:count])
    calls.clear()
    assert [each.output for each in kept.runs.example_outputs(other.id, str)] == list(inputs.upper()[:count])
    assert (other.successful_example_count, other.failed_example_count) == (count, 0)
    begun = run("abcd", seed=1, environment_version="A")
    assert begun.id != other.id
    assert calls == ["c", "d"]
    assert kept.root is None or not list(kept.root.glob("runs/*.tmp"))


def test_results_that_are_lost_are_doubted_and_in_no_count(tmp_path: Path) -> None:
    kinds: Any = (FileDatasetRepository, FileRunRepository, FileEvaluationRepository, FileAggregationRepository)
    kept = Repositories(*(kind(tmp_path) for kind in kinds), tmp_path)
    run = classified(kept, reviews(("1", "good", "pos"), ("2", "good", "neg"), ("3", "good", "EVALCRASH")))
    evaluation = evaluator(kept).evaluate_runs(run.id)
    file = tmp_path / "evaluations" / evaluation.id / "results.jsonl"
    lines = [line for line in file.read_text().splitlines(keepends=True) if '"1"' in line]
    file.write_text("".join(lines))
    kept = Repositories(*(kind(tmp_path) for kind in kinds), tmp_path)
    with pytest.warns(
        EvaluandWarning, match=f"evaluation {evaluation.id} made 3 results, of which 2 are lost"
    ) as reported:
        overview = aggregator(kept).aggregate_evaluation(evaluation.id)
    assert reported[0].filename == __file__
    assert overview.statistics == Share(accuracy=1.0, n=1)
    assert (overview.successful_evaluation_count, overview.failed_evaluation_count) == (1, 0)
    assert "1 evaluated, 0 failed, 2 lost (share)" in str(kept.aggregations.aggregation_overview(overview.id, Share))


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        ({"labels": "abc"}, "labels must be a set of texts, not 'abc'"),
        ({"metadata": {"a": object}}, "metadata must be a dictionary of JSON values, not "),
        ({"description": 5}, "description must be text, not 5"),
        ({"seed": "1"}, "seed must be an integer, not '1'"),
    ],
)
def test_what_a_head_cannot_tell_is_refused_before_anything_is_done(
    kept: Repositories, given: dict[str, Any], reported: str
) -> None:
    calls: list[Any] = []

    class Counting(Shout):
        def do_run(self, input: str, task_span: TaskSpan) -> str:
            calls.append(input)
            return input

    class CountingLogic(MixedLogic):
        def do_evaluate_single_output(self, example: Example[str, None], output: str) -> float:
            calls.append(output)
            return 1.0

    class CountingTotal(Total):
        def aggregate(self, evaluations: Iterable[float]) -> float:
            calls.append(evaluations)
            return 1.0

    with pytest.raises(ValueError, match=f"^{reported}"):
        shouted(kept, Counting(), **given)
    assert calls == []
    if "seed" in given:
        return
    judge = Evaluator(kept.datasets, kept.runs, kept.evaluations, "counting", CountingLogic())
    total = Aggregator(kept.evaluations, kept.aggregations, "total", CountingTotal())
    run = shouted(kept, Shout())[0]
    evaluation = judge.evaluate_runs(run)
    calls.clear()
    with pytest.raises(ValueError, match=f"^{reported}"):
        judge.evaluate_runs(run, **given)
    with pytest.raises(ValueError, match=f"^{reported}"):
        total.aggregate_evaluation(evaluation.id, **given)
    assert calls == []


def test_what_failures_count_as_is_of_the_type_of_results(kept: Repositories) -> None:
    evaluation = evaluator(kept).evaluate_runs(classified(kept).id)
    with pytest.raises(ValueError, match=r"^failure_counts_as is not a valid Verdict: "):
        aggregator(kept, failure_counts_as="zero").aggregate_evaluation(evaluation.id)


def test_a_head_that_was_cut_off_is_reported_with_its_file(tmp_path: Path) -> None:
    kinds: Any = (FileDatasetRepository, FileRunRepository, FileEvaluationRepository, FileAggregationRepository)
    kept = Repositories(*(kind(tmp_path) for kind in kinds), tmp_path)
    evaluation = evaluator(kept).evaluate_runs(classified(kept).id)
    aggregator(kept).aggregate_evaluation(evaluation.id)
    reads: dict[str, Any] = {
        "runs": kept.runs.run_overviews,
        "evaluations": kept.evaluations.evaluation_overviews,
        "aggregations": lambda: kept.aggregations.aggregation_overviews(Share),
        "datasets/*": kept.datasets.datasets,
    }
    for folder, read in reads.items():
        (file,) = tmp_path.glob(f"{folder}/*.json")
        file.write_text("{")
        with pytest.raises(DataError, match=f"^{re.escape(str(file))} is not a valid .*: Invalid JSON"):
            list(read())


def test_a_mean_with_an_infinity_is_infinite_and_has_no_spread() -> None:
    one, other = MeanAccumulator(), MeanAccumulator()
    for value in (1.0, math.inf):
        one.add(value)
    assert one.extract() == math.inf
    assert math.isnan(one.standard_deviation())
    assert math.isnan(one.standard_error())
    other.add(-math.inf)
    assert other.extract() == -math.inf
    assert math.isnan(other.standard_error())
    assert math.isnan(one.merge(other).extract())


def test_outputs_whose_examples_are_gone_are_named(kept: Repositories) -> None:
    run = classified(kept)
    evaluation = evaluator(kept).evaluate_runs(run.id)
    kept.datasets.delete_dataset(run.dataset_id)
    kept.datasets.create_dataset(THREE[:1], "reviews", run.dataset_id)
    gone = f"2 examples of run {run.id} are no longer in dataset {run.dataset_id} and have no lineage: ['1', '2']"
    with pytest.warns(EvaluandWarning, match=re.escape(gone)) as reported:
        lineages = list(Runner(Classify(), kept.datasets, kept.runs, "words").run_lineages(run.id, str))
    assert [each.example.id for each in lineages] == ["3"]
    assert reported[0].filename == __file__
    with pytest.warns(EvaluandWarning, match=f"1 examples of evaluation {evaluation.id} are no longer in dataset"):
        assert len(list(evaluator(kept).evaluation_lineages(evaluation.id))) == 1
