"""Results written for MLflow, Weights & Biases and the Hugging Face Hub: what those read of them."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
import yaml
from huggingface_hub.repocard_data import model_index_to_eval_results
from support.commands import Folder

from evaluand.core.errors import SpecError
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluation
from evaluand.exchange.exporter import Exporter, Result
from evaluand.exchange.exporters.huggingface import HuggingFace
from evaluand.exchange.exporters.mlflow import MLflow
from evaluand.exchange.exporters.optional import environment, need
from evaluand.exchange.exporters.wandb import WandB
from evaluand.experiment import Experiment
from evaluand.run.runner import Run, Runner
from evaluand.store.opening import open_store
from evaluand.store.store import resolve

CODE = """
from evaluand import span

def plus(q):
    with span("add", kind="tool", n=2):
        if "3" in q:
            raise ValueError("no 3")
    return "seven" if "7" in q else str(sum(map(int, q.split("+"))))
"""
EXPERIMENT = """
name: sums
dataset: {path: sums.jsonl, input: q, expected: a, id: name, attributes: [topic]}
tasks: {plus: "app.py:plus"}
scorers: {exact: exact_match, inside: includes}
metrics: [{kind: accuracy, scorer: exact, by: [topic]}, {kind: mean, scorer: inside, direction: higher}]
"""
SECRET = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    path = tmp_path_factory.mktemp("sums")
    made = Folder(path)
    rows = [{"name": f"q{n}", "q": f"{n}+{n}", "a": str(2 * n), "topic": f"t{n % 2}"} for n in range(10)]
    made.write("sums.jsonl", rows)
    (path / "app.py").write_text(CODE)
    (path / "e.yaml").write_text(EXPERIMENT)
    made.done("run", path / "e.yaml")
    return made


@pytest.fixture(scope="module")
def result(folder: Folder) -> Result:
    store = open_store(str(folder.path / "store"))
    evaluation = Evaluation(store, resolve(store, "sums/plus", "evaluations")[1])
    return Result(Run(store, evaluation.manifest["provenance"]["run"]), evaluation)


def needs(library: str) -> pytest.MarkDecorator:
    missing = importlib.util.find_spec(library) is None
    return pytest.mark.skipif(missing, reason=f"needs {library}: pip install 'evaluand[{library}]'")


# What all of them write


def test_numbers_have_the_names_of_scorer_and_metric(result: Result) -> None:
    assert result.measured() | {"exact.accuracy": 8 / 9, "inside.mean": 8 / 9} == result.measured()
    assert result.measured()["exact.accuracy.n"] == 10
    assert result.measured()["calls.failed"] == 1
    assert result.describe_left_out() == ["2 values by group left out; `evaluand export NAME --table metrics` has all"]


def test_facts_say_what_was_evaluated_by_what(result: Result) -> None:
    facts = result.facts()
    assert facts["dataset.digest"] == result.run.dataset.digest
    assert (facts["problem"], facts["system"], facts["scorer.exact.kind"]) == ("sums", "plus", "exact_match")
    assert all(isinstance(value, str | int) for value in facts.values())


def test_rows_have_calls_with_their_grades(result: Result) -> None:
    rows = [sample.row() for sample in result.samples()]
    assert [row["exact.value"] for row in rows] == [1, 1, 1, None, 1, 1, 1, 0, 1, 1]
    assert rows[3]["error"] == "ValueError: no 3"
    assert rows[3]["exact.status"] == "failed"
    assert rows[4]["attribute.topic"] == "t0"
    assert len({tuple(row) for row in rows}) == 1


@pytest.mark.parametrize("exporter", [MLflow, WandB])
def test_a_library_that_is_missing_is_named_with_its_extra(
    exporter: type[Exporter], result: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, exporter.kind, None)
    with pytest.raises(SpecError, match=rf"needs {exporter.kind}: pip install 'evaluand\[{exporter.kind}\]'"):
        exporter().write(result, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_environment_is_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", SECRET)
    before = dict(os.environ)
    with environment(WANDB_API_KEY=None, WANDB_MODE="offline"):
        assert "WANDB_API_KEY" not in os.environ
        assert os.environ["WANDB_MODE"] == "offline"
    assert dict(os.environ) == before


def test_a_library_that_is_there_is_given() -> None:
    assert need("json", "this", "yaml") is json


# Hugging Face Hub


def test_problems_whose_names_differ_in_special_characters_have_a_file_each(tmp_path: Path) -> None:
    data = Dataset.from_rows([{"input": "a", "expected": "A"}])
    for name in ("sums: 1", "sums/ 1", "sums: 1"):
        [made] = Experiment(name, data, {"plus": str.upper}, "exact_match", ["accuracy"]).run().tasks
        HuggingFace().write(Result(made.run, made.evaluation), tmp_path)
    files = [*(tmp_path / ".eval_results").iterdir()]
    assert len(files) == 2
    assert all(file.name.startswith("sums_1-") for file in files)
    [model] = yaml.safe_load((tmp_path / "model-index.yaml").read_text())["model-index"]
    assert [each["dataset"]["name"] for each in model["results"]] == ["sums/ 1", "sums: 1"]


def test_the_hub_reads_every_value(folder: Folder, tmp_path: Path) -> None:
    said = folder.json("export", "sums/plus", "--to", "huggingface", "-o", tmp_path)
    entries, index = (Path(file) for file in said["files"])
    assert entries == tmp_path / ".eval_results" / "sums.yaml"
    found = huggingface_hub.parse_eval_result_entries(yaml.safe_load(entries.read_text()))
    assert [(each.dataset_id, each.task_id, each.value) for each in found] == [
        ("sums", "exact.accuracy", 8 / 9),
        ("sums", "inside.mean", 8 / 9),
    ]
    assert "9 of 10 rows scored; interval" in str(found[0].notes)
    assert huggingface_hub.eval_result_entries_to_yaml(found) == yaml.safe_load(entries.read_text())
    name, results = model_index_to_eval_results(yaml.safe_load(index.read_text())["model-index"])
    assert name == "plus"
    assert [(each.metric_name, each.metric_type, each.metric_value) for each in results] == [
        ("exact.accuracy", "accuracy", 8 / 9),
        ("inside.mean", "mean", 8 / 9),
    ]
    assert said["notes"][0] == "'sums' is no dataset on the Hub; write the id of one in sums.yaml"


def test_values_for_the_hub_are_the_same_bytes_each_time(result: Result, tmp_path: Path) -> None:
    one, two = (HuggingFace().write(result, tmp_path / name) for name in ("one", "two"))
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]


def test_the_hub_has_no_place_for_grades_without_values(tmp_path: Path) -> None:
    run = Runner().run(str.upper, Dataset.from_rows([{"input": "a"}]), name="../../x/..")
    with pytest.raises(SpecError, match="this run has none; run it with metrics first"):
        HuggingFace().write(Result(run, None), tmp_path)


def test_a_name_never_leaves_the_folder(result: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result.evaluation, "called", "../../up./plus")  # the name by which it was asked for
    entries, _ = HuggingFace().write(result, tmp_path / "in")
    assert entries.parent == tmp_path / "in" / ".eval_results"
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_an_index_holds_all_problems_of_a_model(
    result: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def problems() -> list[str]:
        [model] = yaml.safe_load((tmp_path / "model-index.yaml").read_text())["model-index"]
        return [each["dataset"]["name"] for each in model["results"]]

    HuggingFace().write(result, tmp_path)
    for name in ("other/plus", "sums/plus"):
        monkeypatch.setattr(result.evaluation, "called", name)
        HuggingFace().write(result, tmp_path)
    assert problems() == ["other", "sums"]
    monkeypatch.setattr(result.evaluation, "called", "sums/minus")
    with pytest.raises(SpecError, match="is that of plus; export the results of minus to another folder"):
        HuggingFace().write(result, tmp_path)
    for text in ("a: b", "[", "model-index: 3"):
        (tmp_path / "model-index.yaml").write_text(text)
        with pytest.raises(SpecError, match=r"is no model index; export to another folder"):
            HuggingFace().write(result, tmp_path)


# MLflow


@pytest.mark.slow
@needs("mlflow")
@pytest.mark.filterwarnings("ignore")  # those of its own libraries
def test_mlflow_opens_the_run_with_metrics_table_and_traces(
    result: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with environment(MLFLOW_DISABLE_TELEMETRY="true"):
        import mlflow

        exporter = MLflow()
        exporter.write(result, tmp_path / "ml")
        monkeypatch.chdir(tmp_path)
        mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/ml/mlflow.db")
        client = mlflow.MlflowClient()
        experiment = client.get_experiment_by_name("sums")
        [run] = client.search_runs([experiment.experiment_id])
        table = client.load_table(experiment.experiment_id, "eval_results_table.json", run_ids=[run.info.run_id])
        traces = client.search_traces(locations=[experiment.experiment_id], max_results=100)
    assert run.data.metrics == {name: float(value) for name, value in result.measured().items()}
    assert run.data.params == {name: str(value) for name, value in result.facts().items()}
    assert (run.info.status, run.info.run_name) == ("FINISHED", "plus")
    rows = [sample.row() for sample in result.samples()]
    assert table["id"].tolist() == [row["id"] for row in rows]
    assert [None if value != value else value for value in table["exact.value"]] == [row["exact.value"] for row in rows]
    by_id = {trace.info.tags["evaluand.example.id"]: trace for trace in traces}
    assert len(by_id) == 10
    assert [each.name for each in by_id["q1"].data.spans] == ["plus", "add"]
    assert by_id["q3"].info.state == "ERROR"
    grades = {each.name: each for each in by_id["q7"].info.assessments}
    assert (grades["exact"].feedback.value, grades["expected"].expectation.value) == (0.0, "14")
    assert {trace.info.trace_metadata["mlflow.sourceRun"] for trace in traces} == {run.info.run_id}
    assert exporter.notes == result.describe_left_out()


# Weights & Biases


@pytest.mark.slow
@needs("wandb")
@pytest.mark.filterwarnings("ignore")
def test_wandb_writes_an_offline_run_and_opens_no_connection(
    result: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*address: Any) -> None:
        raise AssertionError(f"connects to {address}")

    monkeypatch.setenv("WANDB_API_KEY", SECRET)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    (tmp_path / "home").mkdir()
    [run] = WandB().write(result, tmp_path / "wb")
    assert run.name.startswith("offline-run-")
    assert run.name.endswith(f"-{result.newest['id']}")
    [records] = run.glob("*.wandb")
    assert records.read_bytes()[:4] == b":W&B"
    [table] = run.glob("files/media/table/*.json")
    written = json.loads(table.read_text())
    rows = [sample.row() for sample in result.samples()]
    assert written["columns"] == [*rows[0]]
    assert [dict(zip(written["columns"], row, strict=True))["exact.value"] for row in written["data"]] == [
        row["exact.value"] for row in rows
    ]
    assert [*(tmp_path / "home").rglob("*")] == []
    assert not any(SECRET.encode() in path.read_bytes() for path in (tmp_path / "wb").rglob("*") if path.is_file())
