"""Repositories on a file system of fsspec, by the names of the Pharia SDKs."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from evaluand.interop.pharia import (
    AggregationLogic,
    Aggregator,
    Evaluator,
    Example,
    FileDatasetRepository,
    FileRunRepository,
    FileSystemAggregationRepository,
    FileSystemBasedRepository,
    FileSystemDatasetRepository,
    FileSystemEvaluationRepository,
    FileSystemRunRepository,
    Runner,
    SingleOutputEvaluationLogic,
    Task,
    TaskSpan,
)
from evaluand.interop.pharia.domain import FailedExampleRun, Refused

fsspec = pytest.importorskip("fsspec")
IDS = ["1", "A/b", "../x", "x" * 200]


@pytest.fixture
def files() -> Any:
    memory = pytest.importorskip("fsspec.implementations.memory").MemoryFileSystem(skip_instance_cache=True)
    memory.store, memory.pseudo_dirs = {}, [""]
    return memory


class Upper(Task[str, str]):
    def do_run(self, input: str, task_span: TaskSpan) -> str:
        if input == "fail":
            raise ValueError("cannot")
        task_span.log("seen", input)
        return input.upper()


class Right(BaseModel):
    right: bool


class Total(BaseModel):
    right: int


class Same(SingleOutputEvaluationLogic[str, str, str, Right]):
    def do_evaluate_single_output(self, example: Example[str, str], output: str) -> Right:
        return Right(right=output == example.expected_output)


class Count(AggregationLogic[Right, Total]):
    def aggregate(self, evaluations: Iterable[Right]) -> Total:
        return Total(right=sum(each.right for each in evaluations))


def texts() -> list[Example[str, str]]:
    inputs = ["a", "b", "fail", "d"]
    return [Example(id=id, input=text, expected_output=text.upper()) for id, text in zip(IDS, inputs, strict=True)]


def test_the_steps_store_everything_on_a_file_system(files: Any) -> None:
    root = Path("/bucket/results")
    datasets, runs = FileSystemDatasetRepository(files, root), FileSystemRunRepository(files, root)
    evaluations, aggregations = (
        FileSystemEvaluationRepository(files, root),
        FileSystemAggregationRepository(files, root),
    )
    dataset = datasets.create_dataset(texts(), "texts", id="Texts", labels={"x"})
    run = Runner(Upper(), datasets, runs, "upper").run_dataset(dataset.id)
    evaluation = Evaluator(datasets, runs, evaluations, "same", Same()).evaluate_runs(run.id)
    overview = Aggregator(evaluations, aggregations, "count", Count()).aggregate_evaluation(evaluation.id)

    again = FileSystemRunRepository(files, root)
    assert FileSystemDatasetRepository(files, root).dataset("Texts") == dataset
    assert list(datasets.dataset_ids()) == ["Texts"]
    assert datasets.example("Texts", "../x", str, str) == texts()[2]
    assert again.run_overview(run.id) == run
    assert again.run_overview_ids() == [run.id]
    assert again.example_output_ids(run.id) == sorted(IDS)
    assert isinstance(again.example_output(run.id, "../x", str).output, FailedExampleRun)  # type: ignore[union-attr]
    assert [each.output for each in again.successful_example_outputs(run.id, str)] == ["A", "B", "D"]
    tracer = again.example_tracer(run.id, "1")
    assert tracer is not None
    assert tracer.export_for_viewing()[0].events[0].body == "a"
    assert again.example_tracer(run.id, "none") is None
    assert FileSystemEvaluationRepository(files, root).evaluation_overview(evaluation.id) == evaluation
    assert len(evaluations.example_evaluations(evaluation.id, Right)) == 3
    assert FileSystemAggregationRepository(files, root).aggregation_overview(overview.id, Total) == overview
    assert overview.statistics.right == 3
    assert all(name.startswith("/bucket/results/") for name in files.find("/"))


def test_a_dataset_on_a_file_system_is_deleted_and_an_id_is_used_once(files: Any) -> None:
    datasets = FileSystemDatasetRepository(files, Path("/r"))
    datasets.create_dataset(texts(), "texts", id="t")
    with pytest.raises(Refused, match="has the id 't' already"):
        datasets.create_dataset(texts(), "texts", id="t")
    datasets.delete_dataset("t")
    datasets.delete_dataset("t")
    assert list(datasets.dataset_ids()) == []
    assert datasets.dataset("t") is None


def test_a_run_on_a_file_system_is_resumed(files: Any) -> None:
    datasets, runs = FileSystemDatasetRepository(files, Path("/r")), FileSystemRunRepository(files, Path("/r"))
    datasets.create_dataset(texts(), "texts", id="t")
    with pytest.raises(ValueError, match="cannot"):
        Runner(Upper(), datasets, runs, "x").run_dataset("t", abort_on_error=True, max_workers=1)
    before = files.find("/r/runs")
    run = Runner(Upper(), datasets, runs, "x").run_dataset("t", resume_from_recovery_data=True)
    assert run.successful_example_count == 3
    assert {name for name in before if name.endswith(".jsonl")} <= set(files.find("/r/runs"))
    assert not [name for name in files.find("/r") if name.endswith(".tmp")]


def test_outputs_and_results_that_the_sdks_wrote_are_read(files: Any) -> None:
    runs = FileSystemRunRepository(files, Path("/r"))
    row = {"run_id": "R", "example_id": "1", "output": "A"}
    files.pipe_file("/r/runs/R/output/1.json", json.dumps(row).encode())
    evaluations = FileSystemEvaluationRepository(files, Path("/r"))
    result = {"evaluation_id": "E", "example_id": "1", "is_exception": False, "json_result": '{"right":true}'}
    files.pipe_file("/r/evaluations/E/1.json", json.dumps(result).encode())
    assert [each.output for each in runs.example_outputs("R", str)] == ["A"]
    assert [each.result for each in evaluations.example_evaluations("E", Right)] == [Right(right=True)]


def test_a_repository_reads_and_writes_texts_of_its_file_system(files: Any, tmp_path: Path) -> None:
    root = Path("/r")
    for repository, folder in (
        (FileSystemBasedRepository(files, root), root),
        (FileDatasetRepository(tmp_path), tmp_path),
    ):
        path = folder / "a" / "b.json"
        repository.write_utf8(path, "ä\n", create_parents=True)
        assert repository.read_utf8(path) == "ä\n"
        assert repository.file_names(path.parent) == ["b"]
        assert repository.file_names(path.parent, "txt") == []
        repository.remove_file(path)
        assert not repository.exists(path)
        with pytest.raises(FileNotFoundError):
            repository.read_utf8(path)


def test_the_local_file_system_of_fsspec_has_the_files_of_the_file_repositories(tmp_path: Path) -> None:
    local = fsspec.filesystem("file")
    datasets, runs = FileSystemDatasetRepository(local, tmp_path), FileSystemRunRepository(local, tmp_path)
    datasets.create_dataset(texts(), "texts", id="t")
    run = Runner(Upper(), datasets, runs, "x").run_dataset("t")
    assert isinstance(FileRunRepository(tmp_path), FileSystemRunRepository)
    assert list(FileDatasetRepository(tmp_path).examples("t", str, str)) == list(datasets.examples("t", str, str))
    assert list(FileRunRepository(tmp_path).example_outputs(run.id, str)) == list(runs.example_outputs(run.id, str))
