"""A file of predictions becomes a run without an experiment file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.commands import Folder

from evaluand.run.runner import Run

ROLES = ("--input", "question", "--expected", "answer", "--attributes", "parity")
RECORDED = """
name: doubling
dataset: {{path: rows.jsonl, input: question, expected: answer, attributes: [parity]}}
tasks:
  mine: {task}
scorers:
  number: {{kind: numeric_answer}}
metrics:
  - accuracy
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    made = Folder(tmp_path)
    made.write("theirs.jsonl", [{"_index_": i, "text": str(2 * i), "sure": i / 10} for i in range(6)])
    monkeypatch.chdir(tmp_path)
    return made


def imported(folder: Folder, *arguments: object) -> Run:
    return Run(folder.store, folder.json("import", *arguments)["run"]["id"])


def test_a_file_becomes_a_run_and_the_next_commands_are_reported(folder: Folder) -> None:
    reported = folder.done("import", "theirs.jsonl", "--dataset", "rows.jsonl", *ROLES, "--response", "text")
    assert "(theirs) over 6 examples: 6 completed" in reported
    assert f"evaluand show theirs --store {folder.path}/store" in reported or "evaluand show theirs\n" in reported
    assert "completed" in folder.done("show", "theirs")


def test_the_run_is_that_of_a_recorded_task_of_an_experiment(folder: Folder) -> None:
    run = imported(folder, "theirs.jsonl", "--dataset", "rows.jsonl", *ROLES, "--response", "text")
    task = "{kind: recorded, path: theirs.jsonl, response: text}"
    facts = folder.json("run", folder.experiment(task, text=RECORDED))
    assert (facts["tasks"][0]["run"]["id"], run.digest) == (run.id, Run(folder.store, run.id).digest)
    assert facts["tasks"][0]["run"]["receipt"]["called"] == 0


def test_several_parts_make_one_response(folder: Folder) -> None:
    parts = ("--response", "prediction=text", "--response", "confidence=sure")
    run = imported(folder, "theirs.jsonl", "--dataset", "rows.jsonl", *ROLES, *parts)
    assert [r.responses for r in run][:2] == [
        [{"prediction": "0", "confidence": 0.0}],
        [{"prediction": "2", "confidence": 0.1}],
    ]


def test_rows_are_joined_by_id(folder: Folder) -> None:
    folder.write("named.jsonl", [{"which": str(i), "text": f"t{i}"} for i in reversed(range(6))])
    arguments = ("--response", "text", "--by", "id", "--key", "which", "--id", "question")
    run = imported(folder, "named.jsonl", "--dataset", "rows.jsonl", *ROLES, *arguments)
    assert [r.responses for r in run] == [[f"t{i}"] for i in range(6)]


def test_repeats_and_folds_are_read(folder: Folder) -> None:
    rows = [{"_index_": i, "text": f"{i}/{r}", "repeat": r, "fold": i % 2} for i in range(6) for r in range(2)]
    folder.write("repeated.jsonl", rows)
    options = ("--response", "text", "--replication", "repeat", "--replications", 2, "--fold", "fold")
    run = imported(folder, "repeated.jsonl", "--dataset", "rows.jsonl", *ROLES, *options)
    assert [(r.index, r.replication, r.fold) for r in run][:4] == [(0, 0, 0), (0, 1, 0), (1, 0, 1), (1, 1, 1)]


def test_there_are_as_many_repeats_as_the_file_has(folder: Folder) -> None:
    rows = [{"_index_": i, "text": f"{i}/{r}", "try": r} for i in range(6) for r in range(3) if (i, r) != (5, 1)]
    folder.write("repeated.jsonl", rows)
    options = ("--response", "text", "--replication", "try")
    run = imported(folder, "repeated.jsonl", "--dataset", "rows.jsonl", *ROLES, *options)
    assert run.counts == {"completed": 17, "failed": 1}
    assert [(r.index, r.replication) for r in run if r.error] == [(5, 1)]
    fewer = imported(folder, "repeated.jsonl", "--dataset", "rows.jsonl", *ROLES, *options, "--replications", 1)
    assert fewer.counts == {"completed": 6}


@pytest.mark.parametrize("called", ["name of the dataset", "name of a run", "id"])
def test_a_stored_dataset_is_taken_by(folder: Folder, called: str) -> None:
    first = folder.json("import", "theirs.jsonl", "--dataset", "rows.jsonl", *ROLES, "--response", "text")
    data = {"name of the dataset": "rows", "name of a run": "theirs", "id": first["dataset"]["id"][:8]}[called]
    again = folder.json("import", "theirs.jsonl", "--dataset", data, "--response", "sure", "--name", "other")
    assert again["dataset"]["id"] == first["dataset"]["id"]
    assert again["run"]["name"] == "other"


def test_a_dataset_is_called_by_its_name_in_other_commands_too(folder: Folder) -> None:
    id = folder.json("import", "theirs.jsonl", "--dataset", "rows.jsonl", *ROLES, "--response", "text")["dataset"]["id"]
    assert [entry["name"] for entry in folder.json("list", "datasets")] == ["rows"]
    assert folder.json("show", "rows")["id"] == id
    assert len(folder.done("export", "rows").splitlines()) == 1 + 6
    assert [artifact["id"] for artifact in folder.json("verify", "rows")["artifacts"]] == [id]
    folder.write("rows.jsonl", [folder.row(i + 1) for i in range(6)])
    folder.done("import", "theirs.jsonl", "--dataset", "rows.jsonl", *ROLES, "--response", "text")
    assert "'rows' refers to several datasets: " in folder.refused("show", "rows")


@pytest.mark.filterwarnings("default::evaluand.run.tasks.recorded.DoubtfulJoin")
def test_a_missing_row_fails_and_an_unused_one_is_reported(folder: Folder) -> None:
    folder.write("odd.jsonl", [{"_index_": i, "text": "x"} for i in (0, 1, 2, 3, 4, 77)])
    result = folder.call("import", "odd.jsonl", "--dataset", "rows.jsonl", *ROLES, "--response", "text")
    assert (result.exit_code, "5 completed, 1 failed" in result.stdout) == (0, True)
    assert "1 failed: TaskError: odd.jsonl has no row for index 5" in result.stdout
    assert "note: odd.jsonl: 1 row matches no example: index 77" in result.stderr


@pytest.mark.filterwarnings("default::evaluand.run.tasks.recorded.DoubtfulJoin")
def test_a_file_that_fits_no_example_is_an_error(folder: Folder) -> None:
    folder.write("far.jsonl", [{"_index_": i, "text": "x"} for i in (70, 71)])
    reported = folder.refused("import", "far.jsonl", "--dataset", "rows.jsonl", *ROLES, "--response", "text")
    assert "error: no example has an output: 6 failed" in reported


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["theirs.jsonl", "--response", "txt"], 1, "no column is called 'txt' (did you mean 'text'?)"),
        (["theirs.jsonl", "--by", "id"], 1, "by: id needs a column 'id'"),
        (["gone.jsonl"], 1, "gone.jsonl: no such file"),
        (["theirs.jsonl", "--input", "qestion"], 1, "no column is called 'qestion' (did you mean 'question'?)"),
        (["theirs.jsonl", "--response", "a", "--response", "b=c"], 2, "'a' has no name"),
        (["theirs.jsonl", "--response", "a=x", "--response", "a=y"], 2, "'a' is given twice"),
        (["theirs.jsonl", "--response", "text", "--replications", "2"], 2, "--replications needs --replication PLACE"),
        (["theirs.jsonl", "--response", "text", "--replication", "r"], 1, "no column is called 'r'"),
        (["theirs.jsonl", "--response", "text", "--name", "a\x1b[31m"], 1, "must not have control characters"),
    ],
)
def test_what_cannot_be_imported_is_reported(folder: Folder, arguments: list[str], code: int, message: str) -> None:
    assert message in folder.refused("import", *arguments, "--dataset", "rows.jsonl", code=code)
    assert not (folder.path / "store" / "runs").exists()


@pytest.mark.parametrize(
    ("data", "more", "code", "message"),
    [
        ("rws", (), 1, "'rws' is neither a file nor a stored dataset or run (did you mean 'rows'?)"),
        (
            "rows",
            ("--input", "question"),
            2,
            "--input: only for a file of examples; 'rows' is not a file, and",
        ),
        ("empty.csv", (), 1, "empty.csv: the file has no examples"),
    ],
)
def test_a_dataset_that_is_none_is_reported(
    folder: Folder, data: str, more: tuple[str, ...], code: int, message: str
) -> None:
    folder.done("import", "theirs.jsonl", "--dataset", "rows.jsonl", *ROLES, "--response", "text")
    (folder.path / "empty.csv").write_text("input,expected\n")
    assert message in folder.refused(
        "import", "theirs.jsonl", "--dataset", data, "--response", "text", *more, code=code
    )


# and back


ANSWERS: dict[str, list[Any]] = {
    "text": ["yes", "no", "maybe, or not", 'say "hi"', "", "two\nlines"],
    "numbers": [1, -2, 3, 2**60, 0, 7],
    "objects": [{"label": "a", "p": 0.5}, {"label": "b", "p": 1.0}, {}, {"x": []}, {"x": None}, {"y": {"z": 1}}],
    "some without an answer": ["a", None, "b", None, "c", "d"],
}


@pytest.mark.parametrize("form", ["jsonl", "parquet", "csv"])
@pytest.mark.parametrize("answers", ANSWERS)
def test_an_exported_run_is_imported_as_the_same(folder: Folder, form: str, answers: str) -> None:
    if (form, answers) == ("csv", "objects"):
        pytest.skip("a cell of CSV holds no object")
    folder.write("a.jsonl", [{"out": answer} for answer in ANSWERS[answers]])
    run = imported(folder, "a.jsonl", "--dataset", "rows.jsonl", *ROLES, "--response", "out")
    folder.done("export", "a", "-o", f"b.{form}", "--raw")
    again = imported(folder, f"b.{form}", "--dataset", "rows", "--response", "response")
    assert (again.digest, again.id == run.id) == (run.digest, False)


def test_parquet_keeps_numbers_of_two_types_apart(folder: Folder) -> None:
    (folder.path / "mixed.py").write_text("def half(q):\n    return int(q) // 2 if int(q) % 2 == 0 else int(q) / 2\n")
    folder.call("run", folder.experiment("mixed.py:half"))  # the scorer of text fails throughout
    run = Run(folder.store, folder.id("runs"))
    folder.done("export", "doubling/mine", "-o", "b.parquet")
    assert imported(folder, "b.parquet", "--dataset", "doubling", "--response", "response").digest == run.digest


def test_rows_that_failed_for_want_of_an_output_stay_so_when_only_completed_rows_are_taken(folder: Folder) -> None:
    folder.write("a.jsonl", [{"_index_": i, "out": "x"} for i in (0, 2, 5)])
    run = imported(folder, "a.jsonl", "--dataset", "rows.jsonl", *ROLES, "--response", "out")
    folder.done("export", "a", "--status", "completed", "-o", "b.csv")
    again = imported(folder, "b.csv", "--dataset", "rows", "--response", "response")
    assert (again.digest, again.counts) == (run.digest, {"completed": 3, "failed": 3})


def test_json_says_everything(folder: Folder) -> None:
    facts = folder.json("import", "theirs.jsonl", "--dataset", "rows.jsonl", *ROLES, "--response", "text")
    assert facts["run"]["counts"] == {"completed": 6}
    assert facts["dataset"]["examples"] == 6
    assert json.dumps(facts["missing"]) == "[]"


def test_examples_may_be_a_pattern_of_files(folder: Folder) -> None:
    for number in (1, 2):
        folder.write(f"part{number}.jsonl", [{"id": f"x{number}", "q": f"a{number}", "truth": "A"}])
    folder.write("said.jsonl", [{"id": "x1", "said": "A"}, {"id": "x2", "said": "B"}])
    arguments = ("--input", "q", "--expected", "truth", "--id", "id", "--by", "id", "--response", "said")
    assert "over 2 examples: 2 completed" in folder.done("import", "said.jsonl", "--dataset", "part*.jsonl", *arguments)


def test_battles_are_recognised_in_csv_too_and_others_are_pointed_out(folder: Folder) -> None:
    rows = "model_a,model_b,winner\nx,y,model_a\ny,x,tie\n"
    (folder.path / "two.csv").write_text(rows)
    assert "(two) of 2 systems: 2 scored" in folder.done("import", "two.csv")
    (folder.path / "semicolons.csv").write_text(rows.replace(",", ";"))
    refused = folder.refused("import", "semicolons.csv", code=2)
    assert "To rate the systems of its battles run\n  evaluand rate semicolons.csv" in refused
    assert "and to import the battles\n  evaluand import --battles semicolons.csv" in refused
    assert "evaluand score" not in refused
    assert "(semicolons) of 2 systems: 2 scored" in folder.done("import", "--battles", "semicolons.csv")
