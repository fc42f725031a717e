"""Stored runs as tasks of an experiment: graded and compared with live tasks, and never called."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from support.commands import Folder, run_once

from evaluand import (
    Accuracy,
    Dataset,
    DirectoryStore,
    Experiment,
    Measure,
    MemoryStore,
    Run,
    Runner,
    report_usage,
    task,
)
from evaluand.core.errors import EvaluandWarning, SpecError
from evaluand.engine.budget import Budget
from evaluand.engine.policy import Policy
from evaluand.evaluation.sample import RowSample, choose_rows, draw_sample, find_turns
from evaluand.run.tasks.stored import StoredTask

TWO = """
name: second
tasks:
  old: {kind: stored, run: doubling/mine}
  new: app.py:whole
scorers: {number: {kind: numeric_answer}}
metrics: [accuracy]
"""

DATASET = "dataset: {path: rows.jsonl, input: question, expected: answer, attributes: [parity]}\n"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Folder(tmp_path_factory.mktemp("finished"))
    return run_once(folder, folder.experiment())


@pytest.fixture
def folder(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    folder = Folder.copied(finished, tmp_path)
    (tmp_path / "app.py").write_text((tmp_path / "app.py").read_text() + "\nprint('called')\n")
    (tmp_path / "two.yaml").write_text(TWO)
    return folder


@pytest.mark.parametrize("before", ["", DATASET], ids=["its own dataset", "the same dataset"])
def test_a_stored_run_is_compared_with_a_live_task(folder: Folder, before: str) -> None:
    (folder.path / "two.yaml").write_text(before + TWO)
    facts = folder.json("run", "two.yaml")
    old, new = facts["tasks"]
    assert old["run"]["id"] == Run.open(folder.store, "doubling/mine").id
    assert old["run"]["receipt"]["called"] == 0
    assert new["run"]["receipt"]["called"] == 6
    values = {row["task"]: row["value"] for row in facts["metrics"]}
    assert values == {"old": 1.0, "new": pytest.approx(1 / 6)}  # of 4 readable answers, and of 6
    assert [pair["n_used"] for pair in folder.json("compare", "second/old", "second/new")["pairs"]] == [4]


def test_what_a_run_would_do_counts_no_calls_of_a_stored_run(folder: Folder) -> None:
    plan = folder.json("validate", "two.yaml")["plan"]
    assert [(each["task"], each["calls"], each["new"]) for each in plan] == [("old", 6, 0), ("new", 6, 6)]


RUNS = {
    "--limit 2": (2, ["scored", "scored", "skipped", "skipped", "skipped", "skipped"]),
    "--where parity=='odd'": (3, ["skipped", "scored", "skipped", "failed", "skipped", "scored"]),
    "": (6, ["scored", "scored", "scored", "failed", "abstained", "scored"]),
    "--no-calls --task old": (0, ["scored", "scored", "scored", "failed", "abstained", "scored"]),
    "--task old": (0, ["scored", "scored", "scored", "failed", "abstained", "scored"]),
}


@pytest.mark.parametrize("options", RUNS)
def test_only_examples_that_are_asked_for_are_graded(folder: Folder, options: str) -> None:
    called, statuses = RUNS[options]
    facts = folder.json("run", "two.yaml", *filter(None, options.split(" ")))
    old, *others = facts["tasks"]
    assert sum(other["run"]["receipt"]["called"] for other in others) == called
    table = folder.store.read("evaluations", old["evaluation"]["id"], "scores/number", ["status"])
    assert [status for batch in table for status in batch.column(0).to_pylist()] == statuses


NOTES = {
    ("--fresh",): "note: second/old: a stored run, which cannot be called again",
    ("--retry-failed",): "note: second/old: a stored run, which cannot be called again",
    (): "note: second/old: a stored run, with 1 replications",
}


@pytest.mark.parametrize("options", NOTES)
def test_what_cannot_be_done_again_is_said(folder: Folder, options: tuple[str, ...]) -> None:
    (folder.path / "two.yaml").write_text(TWO + ("" if options else "run: {replications: 2}\n"))
    assert NOTES[options] in folder.call("run", "two.yaml", *options).stderr


FAULTS = {
    "run: doubling/mine": ("run: doubling/min", "two.yaml:4: tasks.old: run: nothing is called 'doubling/min'"),
    "{kind: stored, run: doubling/mine}": (
        "{kind: stored, run: doubling/mine, view: []}",
        "tasks.old.view: a stored run has the view that it was made with; leave it out",
    ),
    "kind: stored, run": ("kind: stored, name", "tasks.old.name: stored has no such parameter"),
    "\nname: second": (
        "\nname: second\n" + DATASET.replace("expected: answer", "expected: parity"),
        "tasks.old: run 'doubling/mine' is over other examples than this dataset: the one with _index_ 0 has another",
    ),
    "  old: {kind: stored, run: doubling/mine}\n": ("", "dataset: is missing; write dataset: {path: FILE"),
}


@pytest.mark.parametrize("part", FAULTS)
def test_faults_are_found_before_anything_is_called(folder: Folder, part: str) -> None:
    other, message = FAULTS[part]
    (folder.path / "two.yaml").write_text(TWO.replace(part, other))
    for command in ("run", "validate"):
        said = folder.call(command, "two.yaml")
        assert said.exit_code == 1
        assert message in said.output
    assert "second/new" not in folder.done("list")


def test_tokens_and_cost_are_those_of_the_stored_run() -> None:
    @task(version="1")
    def asking(input: str) -> str:
        report_usage(input_tokens=3, output_tokens=1)
        return input.upper()

    store, data = MemoryStore(), Dataset.from_rows([{"input": "a", "expected": "A"}, {"input": "b", "expected": "X"}])
    run = Runner(store).run(asking, data, name="first/asking")
    scorers, measures = {"same": "exact_match"}, [Measure("same", Accuracy())]
    results = Experiment("second", data, {"old": run, "new": str.lower}, scorers, measures).run(store)
    old, new = results.tasks
    assert (old.run.id, old.run.name) == (run.id, "second/old")
    assert old.run.manifest["usage"] == run.manifest["usage"]
    assert new.run.manifest.get("usage") is None
    assert results.aggregation is not None
    assert results.aggregation.table()["value"].to_pylist() == [0.5, 0.0]


def test_what_a_stored_run_has_cost_is_no_part_of_the_budget() -> None:
    @task(version="1")
    def paid(input: str) -> str:
        report_usage(cost=4.0, currency="USD")
        return input

    store, data = MemoryStore(), Dataset.from_rows([{"input": "a", "expected": "a"}])
    run, policy = Runner(store).run(paid, data, name="first/paid"), Policy(budget=Budget(3, "USD"))
    experiment = Experiment("second", data, {"old": run, "new": str.upper}, "exact_match", "mean", policy)
    experiment.run(store)
    assert experiment.run(store, only="new").tasks[0].evaluation is not None
    assert policy.shared_budget is not None
    assert policy.shared_budget.spent == 0


def test_a_run_of_another_store_is_refused() -> None:
    data = Dataset.from_rows([{"input": "a", "expected": "A"}])
    experiment = Experiment("e", data, {"old": Runner().run(str.upper, data)}, "exact_match", "mean")
    with pytest.raises(SpecError, match="is not in this store; copy it with `evaluand copy`"):
        experiment.run(MemoryStore())


def test_a_file_with_a_stored_run_needs_the_store(folder: Folder) -> None:
    with pytest.raises(SpecError, match="the store of run 'doubling/mine' is not known: from Python give store=…"):
        Experiment.from_file("two.yaml")
    experiment = Experiment.from_file("two.yaml", store=DirectoryStore(folder.path / "store"))
    assert len(experiment.dataset) == 6


@pytest.fixture
def run() -> Run:
    rows = [{"input": text, "kind": text in "aeiou"} for text in "abcdefghij"]

    def answer(input: str) -> str:
        if input == "c":
            raise ValueError(input)
        return input

    return Runner().run(answer, Dataset.from_rows(rows, input="input", attributes=["kind"]))


def test_samples_are_nested_and_depend_on_the_seed_alone(run: Run) -> None:
    drawn = [{*draw_sample(run, n).chosen.nonzero()[0].tolist()} for n in range(1, 11)]
    assert [len(each) for each in drawn] == [*range(1, 11)]
    assert all(small < large for small, large in pairwise(drawn))
    assert draw_sample(run, 4).spec == draw_sample(run, 4).spec
    assert draw_sample(run, 4).spec != draw_sample(run, 4, seed=1).spec
    assert draw_sample(run, 0.35).chosen.sum() == 4


def test_people_and_samples_draw_the_same_answers(run: Run) -> None:
    labelled = sorted(find_turns(run), key=find_turns(run).__getitem__)[:4]
    drawn = {(place, 0) for place in draw_sample(run, 5).chosen.nonzero()[0].tolist()}
    assert {*labelled} <= drawn | {(2, 0)}  # the failed row may be drawn, and is never labelled


def test_all_rows_are_no_sample(run: Run) -> None:
    assert choose_rows(run, "any", lambda key: True) is None
    some = choose_rows(run, "even", lambda key: key[0] % 2 == 0)
    assert isinstance(some, RowSample)
    assert some.reason == "not in the sample: even"


def test_warnings_are_of_evaluand() -> None:
    data = Dataset.from_rows([{"input": "a"}])
    store = MemoryStore()
    run = Runner(store).run(str.upper, data, name="x")
    with pytest.warns(EvaluandWarning, match="x: a stored run, which cannot be called again"):
        Runner(store).run(StoredTask(run), data, fresh=True, name="x")
