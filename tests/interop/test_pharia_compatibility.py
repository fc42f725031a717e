"""Code written for the Pharia SDKs: derived repositories and evaluators, the errors it catches, older trace files."""

from __future__ import annotations

import copy
import json
import pickle
import threading
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from evaluand.core.errors import DataError, EvaluandError
from evaluand.interop.pharia import (
    EXAMPLE_EVAL_TYPE,
    AggregationLogic,
    Aggregator,
    AsyncEvaluationRepository,
    AsyncFileEvaluationRepository,
    AsyncInMemoryEvaluationRepository,
    CompositeTracer,
    CountingFilterIterable,
    Evaluator,
    Event,
    Example,
    ExampleEvaluation,
    ExampleOutput,
    FailedExampleEvaluation,
    FailedExampleRun,
    FileAggregationRepository,
    FileDatasetRepository,
    FileRunRepository,
    FileTracer,
    InMemoryAggregationRepository,
    InMemoryDatasetRepository,
    InMemoryEvaluationRepository,
    InMemoryRunRepository,
    InMemoryTracer,
    NoOpTracer,
    PartialEvaluationOverview,
    RecoveryData,
    RepositoryNavigator,
    Runner,
    RunOverview,
    RunRepository,
    SerializedExampleEvaluation,
    SingleOutputEvaluationLogic,
    SpanStatus,
    Task,
    TaskSpan,
    Tracer,
    aggregation_overviews_to_pandas,
    create_task,
    function_from_string,
    main,
    parse_args,
    utc_now,
)


class Shout(Task[str, str]):
    def do_run(self, input: str, task_span: TaskSpan) -> str:
        if input == "crash":
            raise ValueError(input)
        return input.upper()


class Verdict(BaseModel):
    correct: bool


class Share(BaseModel):
    accuracy: float
    id: str


class Same(SingleOutputEvaluationLogic[str, str, str, Verdict]):
    def do_evaluate_single_output(self, example: Example[str, str], output: str) -> Verdict:
        return Verdict(correct=output == example.expected_output)


class Accuracy(AggregationLogic[Verdict, Share]):
    def aggregate(self, evaluations: Iterable[Verdict]) -> Share:
        results = [each.correct for each in evaluations]
        return Share(accuracy=sum(results) / len(results), id="share")


def examples(*inputs: str) -> list[Example[str, str]]:
    return [Example(id=str(n), input=text, expected_output=text.upper()) for n, text in enumerate(inputs)]


class NotedRuns(RunRepository):
    """A repository as code for the SDKs derives one: with the underscored methods."""

    def __init__(self) -> None:
        super().__init__()
        self.overviews: dict[str, RunOverview] = {}
        self.outputs: dict[tuple[str, str], ExampleOutput[Any]] = {}
        self.notes: dict[str, RecoveryData] = {}
        self.writers = self.most_writers = 0

    def store_run_overview(self, overview: RunOverview) -> None:
        self.overviews[overview.id] = overview

    def run_overview(self, run_id: str) -> RunOverview | None:
        return self.overviews.get(run_id)

    def run_overview_ids(self) -> Sequence[str]:
        return sorted(self.overviews)

    def store_example_output(self, example_output: ExampleOutput[Any]) -> None:
        self.writers += 1
        self.most_writers = max(self.most_writers, self.writers)
        time.sleep(0.001)
        self.outputs[example_output.run_id, example_output.example_id] = example_output
        self.writers -= 1

    def example_output(self, run_id: str, example_id: str, output_type: type[Any]) -> ExampleOutput[Any] | None:
        return self.outputs.get((run_id, example_id))

    def example_outputs(self, run_id: str, output_type: type[Any]) -> Iterable[ExampleOutput[Any]]:
        return [output for (run, _), output in sorted(self.outputs.items()) if run == run_id]

    def example_output_ids(self, run_id: str) -> Sequence[str]:
        return [example for run, example in sorted(self.outputs) if run == run_id]

    def create_tracer_for_example(self, run_id: str, example_id: str) -> Tracer:
        return InMemoryTracer()

    def example_tracer(self, run_id: str, example_id: str) -> Tracer | None:
        return None

    def _create_temporary_run_data(self, tmp_hash: str, run_id: str) -> None:
        self.notes[tmp_hash] = RecoveryData(run_id=run_id)

    def _delete_temporary_run_data(self, tmp_hash: str) -> None:
        del self.notes[tmp_hash]

    def _temp_store_finished_example(self, tmp_hash: str, example_id: str) -> None:
        self.notes[tmp_hash].finished_examples.append(example_id)

    def finished_examples(self, tmp_hash: str) -> RecoveryData | None:
        return self.notes.get(tmp_hash)


def test_a_run_repository_with_the_underscored_methods_runs_and_resumes_one_write_at_a_time() -> None:
    datasets, runs = InMemoryDatasetRepository(), NotedRuns()
    dataset = datasets.create_dataset(examples("a", "b", "c", "crash"), "letters")
    with pytest.raises(ValueError, match="crash"):
        Runner(Shout(), datasets, runs, "r").run_dataset(dataset.id, abort_on_error=True, max_workers=1)
    (note,) = runs.notes.values()
    assert note.finished_examples == ["0", "1", "2"]
    run = Runner(Shout(), datasets, runs, "r").run_dataset(dataset.id, resume_from_recovery_data=True)
    assert (run.id, run.successful_example_count, run.failed_example_count) == (note.run_id, 3, 1)
    assert (runs.most_writers, runs.notes) == (1, {})
    assert isinstance(runs.outputs[run.id, "3"].output, FailedExampleRun)


def test_outputs_are_stored_one_at_a_time_in_a_repository_derived_from_a_ready_made_one() -> None:
    class Counting(InMemoryRunRepository):
        writers = most_writers = 0

        def store_example_output(self, example_output: ExampleOutput[Any]) -> None:
            self.writers += 1
            self.most_writers = max(self.most_writers, self.writers)
            time.sleep(0.001)
            super().store_example_output(example_output)
            self.writers -= 1

    datasets, runs = InMemoryDatasetRepository(), Counting()
    Runner(Shout(), datasets, runs, "r").run_dataset(datasets.create_dataset(examples(*"abcdefgh"), "n").id)
    assert runs.most_writers == 1


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_the_public_recovery_calls_return_the_finished_examples_as_they_were_noted(kind: str, tmp_path: Path) -> None:
    def again() -> RunRepository:
        return runs if kind == "memory" else FileRunRepository(tmp_path)

    runs = InMemoryRunRepository() if kind == "memory" else FileRunRepository(tmp_path)
    assert again().finished_examples("h") is None
    runs.create_temporary_run_data("h", "run")
    runs.temp_store_finished_example("h", "z")
    runs.store_example_output_parallel("h", ExampleOutput(run_id="run", example_id="b", output=1))
    runs.temp_store_finished_example("h", "a")
    assert again().finished_examples("h") == RecoveryData(run_id="run", finished_examples=["z", "a", "b"])
    again().delete_temporary_run_data("h")
    assert again().finished_examples("h") is None
    runs.create_temporary_run_data("h", "other")
    assert again().finished_examples("h") == RecoveryData(run_id="other", finished_examples=[])


def test_storing_an_output_does_not_note_its_example_in_a_derived_repository() -> None:
    runs = NotedRuns()
    runs.create_temporary_run_data("h", "run")
    runs.store_example_output_parallel("h", ExampleOutput(run_id="run", example_id="b", output=1))
    assert runs.finished_examples("h") == RecoveryData(run_id="run")
    runs.temp_store_finished_example("h", "b")
    assert runs.finished_examples("h") == RecoveryData(run_id="run", finished_examples=["b"])


def test_reading_creates_no_folder(tmp_path: Path) -> None:
    runs, evaluations = FileRunRepository(tmp_path), AsyncFileEvaluationRepository(tmp_path)
    assert list(FileDatasetRepository(tmp_path).dataset_ids()) == []
    assert (
        list(runs.run_overview_ids())
        == list(runs.example_output_ids("r"))
        == list(runs.example_outputs("r", str))
        == []
    )
    assert runs.run_overview("r") is runs.example_output("r", "e", str) is runs.example_tracer("r", "e") is None
    assert runs.finished_examples("h") is None
    assert list(evaluations.evaluation_overview_ids()) == list(evaluations.partial_evaluation_overview_ids()) == []
    assert (
        evaluations.evaluation_overview("e")
        is FileAggregationRepository(tmp_path).aggregation_overview("a", str)
        is None
    )
    with pytest.raises(ValueError, match="no evaluation 'e'"):
        evaluations.example_evaluations("e", str)
    runs.delete_temporary_run_data("h")
    assert list(tmp_path.iterdir()) == []


def test_recovery_data_of_the_sdks_are_read(tmp_path: Path) -> None:
    runs = FileRunRepository(tmp_path)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "h.tmp").write_text('{"run_id":"run","finished_examples":["b","a"]}')
    runs.store_example_output(ExampleOutput(run_id="run", example_id="c", output="x"))
    runs.temp_store_finished_example("h", "a")
    assert runs.finished_examples("h") == RecoveryData(run_id="run", finished_examples=["b", "a", "c"])


def test_recovery_data_written_by_many_threads_are_complete(tmp_path: Path) -> None:
    runs = FileRunRepository(tmp_path)
    runs.create_temporary_run_data("h", "run")
    threads = [
        threading.Thread(target=lambda n=n: [runs.temp_store_finished_example("h", f"{n}{k}") for k in range(20)])
        for n in range(5)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    found = FileRunRepository(tmp_path).finished_examples("h")
    assert found is not None
    assert sorted(found.finished_examples) == sorted(f"{n}{k}" for n in range(5) for k in range(20))


def test_derived_steps_find_the_repositories_and_logics_under_the_names_of_the_sdks() -> None:
    class Counting(Evaluator[str, str, str, Verdict]):
        def count(self, *run_ids: str) -> tuple[int, int]:
            overviews = self._load_run_overviews(*run_ids)
            self._raise_if_overviews_have_different_dataset(overviews)
            inputs = list(self._retrieve_eval_logic_input(overviews, True, num_examples=1))
            outputs = [self._run_repository.example_output_ids(run.id) for run in overviews]
            return len(inputs), len(outputs[0])

    datasets, runs = InMemoryDatasetRepository(), InMemoryRunRepository()
    evaluations, aggregations = InMemoryEvaluationRepository(), InMemoryAggregationRepository()
    run = Runner(Shout(), datasets, runs, "r")
    assert (run._dataset_repository, run._run_repository) == (datasets, runs)
    id = run.run_dataset(datasets.create_dataset(examples("a", "b"), "n").id).id
    logic = Same()
    evaluator = Counting(datasets, runs, evaluations, "e", logic)
    assert evaluator.count(id) == (1, 2)
    assert (evaluator._dataset_repository, evaluator._evaluation_repository) == (datasets, evaluations)
    assert evaluator._evaluation_logic is logic
    aggregator = Aggregator(evaluations, aggregations, "a", Accuracy())
    assert (aggregator._evaluation_repository, aggregator._aggregation_repository) == (evaluations, aggregations)
    with pytest.raises(ValueError, match="several datasets"):
        evaluator.count(id, run.run_dataset(datasets.create_dataset(examples("a"), "m").id).id)


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_a_stored_partial_evaluation_exists_and_has_no_results_yet(kind: str, tmp_path: Path) -> None:
    repository: AsyncEvaluationRepository = (
        AsyncInMemoryEvaluationRepository() if kind == "memory" else AsyncFileEvaluationRepository(tmp_path)
    )
    waiting = PartialEvaluationOverview(
        run_overviews=frozenset(), id="p", start_date=datetime.now(UTC), submitted_evaluation_count=1, description=""
    )
    with pytest.raises(ValueError, match="no evaluation 'p'"):
        repository.failed_example_evaluations("p", Verdict)
    repository.store_partial_evaluation_overview(waiting)
    assert list(repository.failed_example_evaluations("p", Verdict)) == []
    assert list(repository.successful_example_evaluations("p", Verdict)) == []
    assert repository.example_evaluation("p", "1", Verdict) is None
    assert repository.evaluation_overview("p") is None
    assert list(repository.evaluation_overview_ids()) == []


def test_rows_of_one_evaluation_differ_in_the_policy_by_which_failures_count() -> None:
    pytest.importorskip("pandas")
    datasets, runs = InMemoryDatasetRepository(), InMemoryRunRepository()
    evaluations, aggregations = InMemoryEvaluationRepository(), InMemoryAggregationRepository()
    run = Runner(Shout(), datasets, runs, "r").run_dataset(datasets.create_dataset(examples("a", "crash"), "n").id)
    evaluation = Evaluator(datasets, runs, evaluations, "e", Same()).evaluate_runs(run.id)
    overviews = [
        Aggregator(evaluations, aggregations, "a", Accuracy(), failure_counts_as=policy).aggregate_evaluation(
            evaluation.id
        )
        for policy in (None, Verdict(correct=False))
    ]
    frame = aggregation_overviews_to_pandas(overviews)
    assert frame["accuracy"].tolist() == [1.0, 0.5]
    assert frame["failure_policy"].tolist() == ["left out", 'counted as {"correct":false}']
    assert frame["id"].tolist() == [each.id for each in overviews]
    assert frame["statistics.id"].tolist() == ["share", "share"]


def test_an_example_without_an_id_text_is_refused(tmp_path: Path) -> None:
    for datasets in (InMemoryDatasetRepository(), FileDatasetRepository(tmp_path)):
        with pytest.raises(ValueError, match="the id of an example is empty"):
            datasets.create_dataset([Example(id="", input="a", expected_output="A")], "n")
        assert list(datasets.dataset_ids()) == []


class Pair(BaseModel):
    left: int
    right: int


def test_values_of_another_type_are_validation_errors_of_pydantic(tmp_path: Path) -> None:
    datasets = FileDatasetRepository(tmp_path)
    datasets.create_dataset([Example(id="1", input={"left": "x"}, expected_output="A")], "n", id="d")
    with pytest.raises(ValidationError) as raised:
        list(datasets.examples("d", Pair, str))
    error = raised.value
    assert isinstance(error, DataError)
    assert [(each["type"], each["loc"]) for each in error.errors()] == [
        ("int_parsing", ("left",)),
        ("missing", ("right",)),
    ]
    assert str(error) == (
        "dataset d, example 1, input.left: Input should be a valid integer, unable to parse string as an integer\n"
        "dataset d, example 1, input.right: Field required"
    )
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (type(again), str(again), again.faults) == (type(error), str(error), error.faults)
    runs = InMemoryRunRepository()
    runs.store_example_output(ExampleOutput(run_id="r", example_id="1", output="text"))
    with pytest.raises(ValidationError, match="example 1 is not a valid Pair"):
        runs.example_output("r", "1", Pair)
    (tmp_path / "datasets" / "d" / "d.json").write_text("{}")
    with pytest.raises(ValidationError, match=r"d\.json is not a valid Dataset"):
        datasets.dataset("d")


def test_wrong_uses_of_spans_and_navigators_are_the_errors_of_the_sdks(tmp_path: Path) -> None:
    span = InMemoryTracer().span("step")
    with span:
        pass
    with pytest.raises(ValueError, match="already entered"), span:
        pass
    for use in (
        lambda: span.log("a", 1),
        lambda: span.set(a=1),
        lambda: span.record_output(1),
        lambda: span.span("below"),
        InMemoryTracer().span("open").export_for_viewing,
    ):
        with pytest.raises(RuntimeError) as raised:
            use()
        assert isinstance(raised.value, EvaluandError)
    with pytest.raises(ValueError, match="pass it to RepositoryNavigator"):
        list(
            RepositoryNavigator(InMemoryDatasetRepository(), InMemoryRunRepository()).evaluation_lineages(
                "e", str, str, str, Verdict
            )
        )
    with pytest.raises(FileNotFoundError, match="cannot be read: No such file"):
        FileTracer(tmp_path / "none.jsonl").traces()
    (tmp_path / "other.jsonl").write_text(json.dumps({"a": 1}))
    with pytest.raises(ValidationError, match="not a line of a trace"):
        FileTracer(tmp_path / "other.jsonl").traces()


def walked(tracer: InMemoryTracer) -> list[str]:
    """The names of all entries, as code for the SDKs collects them."""
    names = []
    for entry in tracer.entries:
        if isinstance(entry, InMemoryTracer):
            names += [entry.name, *walked(entry)]
        else:
            names.append(entry.message)
    return names


def test_a_recursive_walk_through_a_trace_in_memory_finds_every_entry() -> None:
    tracer, other = InMemoryTracer(), InMemoryTracer()
    with CompositeTracer([tracer, other]).task_span("task", "input") as task_span:
        task_span.log("first", 1)
        with task_span.span("step") as step:
            step.log("second", 2)
            CompositeTracer([step]).span("third").end()
    names = ["task", "first", "step", "second", "third"]
    assert walked(tracer) == walked(other) == names
    assert isinstance(tracer.entries[0], InMemoryTracer)
    assert Event(name="log", message="first", body=1).timestamp <= utc_now()
    assert not isinstance(NoOpTracer().span("a"), InMemoryTracer)


def test_the_tracer_of_an_example_exports_what_its_repository_has_stored(tmp_path: Path) -> None:
    runs = FileRunRepository(tmp_path)
    tracer, memory = runs.create_tracer_for_example("run", "1"), InMemoryTracer()
    assert list(tracer.export_for_viewing()) == []
    task_span = CompositeTracer([tracer, memory]).task_span("task", "input")
    with pytest.raises(RuntimeError, match="the span 'task' is still open"):
        tracer.export_for_viewing()
    with task_span.span("step") as step:
        step.log("value", 1)
    task_span.end()
    stored = runs.example_tracer("run", "1")
    assert stored is not None
    assert tracer.export_for_viewing() == stored.export_for_viewing() == memory.export_for_viewing()


def test_trace_lines_without_a_status_are_read_as_ended_well(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    with FileTracer(path).task_span("task", "input") as task_span:
        task_span.span("step").end()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        line["entry"].pop("status_code", None)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [span.status for span in FileTracer(path).export_for_viewing()] == [SpanStatus.OK, SpanStatus.OK]


OPTIONS = {
    "--eval-logic": f"{__name__}.Same",
    "--aggregation-logic": f"{__name__}.Accuracy",
    "--task": f"{__name__}.Shout",
    "--dataset-id": "letters",
    "--description": "letters",
}


def test_main_takes_the_arguments_of_a_process_and_returns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    FileDatasetRepository(tmp_path).create_dataset(examples("a", "b"), "n", id="letters")
    folders = ["--dataset-repository-path", str(tmp_path), "--target-dir", str(tmp_path / "out")]
    options = [*(part for option in OPTIONS.items() for part in option), *folders]
    main(["run_evaluation", *options])
    assert "2 evaluated, 0 failed" in capsys.readouterr().out
    assert len(FileAggregationRepository(tmp_path / "out").aggregation_overview_ids()) == 1
    with pytest.raises(SystemExit) as raised:
        main(["run_evaluation", *options[:-2]])
    assert (raised.value.code, "run_evaluation" in (shown := capsys.readouterr().err)) == (2, True)
    assert "--target-dir" in shown
    for arguments, code in ((["", "--help"], 0), ([], 2)):
        for function in (main, parse_args):
            with pytest.raises(SystemExit) as raised:
                function(arguments)
            assert raised.value.code == code


def test_the_options_of_main_are_parsed_and_their_names_loaded(tmp_path: Path) -> None:
    folders = ["--dataset-repository-path", str(tmp_path), "--target-dir", str(tmp_path / "out")]
    options = [*(part for option in OPTIONS.items() for part in option), *folders]
    found = parse_args(["run_evaluation", *options])
    assert (found.dataset_id, found.target_dir, found.description) == ("letters", tmp_path / "out", "letters")
    assert isinstance(create_task(found.task), found.task)
    assert found.eval_logic is function_from_string(OPTIONS["--eval-logic"])
    with pytest.raises(ModuleNotFoundError):
        function_from_string("no_such_module.Name")
    with pytest.raises(AttributeError):
        function_from_string(f"{__name__}.Nobody")


@pytest.mark.parametrize("value", [0.5, float("nan"), FailedExampleEvaluation(error_message="no")])
def test_a_result_is_written_as_json_and_read_again(value: Any) -> None:
    result = ExampleEvaluation(evaluation_id="e", example_id="1", result=value)
    written = SerializedExampleEvaluation.from_example_result(result)
    assert written.is_exception == isinstance(value, FailedExampleEvaluation)
    again = SerializedExampleEvaluation.model_validate_json(written.model_dump_json()).to_example_result(float)
    assert repr(again) == repr(result)
    assert isinstance(again, EXAMPLE_EVAL_TYPE)


def test_items_are_filtered_and_counted_as_they_are_read() -> None:
    items = CountingFilterIterable(iter(range(5)), lambda number: number % 2)
    assert (next(items), items.included_count(), items.excluded_count()) == (1, 1, 1)
    assert [*items] == [3]
    assert (items.included_count(), items.excluded_count()) == (2, 3)
