"""What is told of an experiment before it runs, and that nothing is called or stored for it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow.parquet
import pytest
from support.commands import Folder

WHOLE = """
name: shop
dataset: {{path: rows.jsonl, input: question, expected: answer, attributes: [parity, size], weight: w, cluster: user}}
tasks:
  mine: {task}
scorers:
  same: exact_match
  luck: chance.py:grade
metrics:
  - {{kind: count, scorer: same, by: [[parity, size]]}}
"""

CHANCE = """
import random
import os
from pathlib import Path

def touch(question):
    Path("called").touch()
    return question

def grade(output, expected):
    Path("called").touch()
    return random.random()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    made = Folder(tmp_path)
    rows = [made.row(i) | {"size": "big" if i > 3 else None, "w": 1, "user": i // 2} for i in range(6)]
    rows[0] |= {"answer": None}
    made.write("rows.jsonl", [row | {"parity": "odd"} if i == 4 else row for i, row in enumerate(rows)])
    (tmp_path / "chance.py").write_text(CHANCE)
    monkeypatch.chdir(tmp_path)
    return made


def files(folder: Folder) -> set[Path]:
    return {path for path in folder.path.rglob("*") if "__pycache__" not in path.parts}


def test_notes_say_what_is_odd_and_are_no_faults(folder: Folder) -> None:
    facts = folder.json("validate", folder.experiment("app.py:whole", text=WHOLE))
    assert facts["faults"] == []
    reported = "\n".join(facts["notes"])
    assert "scorer luck is unpinned, so every evaluation calls it again: " in reported
    assert "scorer luck is read by no metric" in reported
    assert "the weights in 'w' are used by no metric; set weighted: true on a metric to use them" in reported
    assert "the clusters in 'user' are used by no metric: none has an interval" in reported
    assert "1 of 6 examples has no expected value ('answer' is empty)" in reported
    assert "4 of 6 examples have no value of 'size', an attribute to group by" in reported
    assert "by [parity, size]: 1 of 4 groups has no example" in reported


def test_nothing_is_called_and_nothing_is_stored(folder: Folder) -> None:
    path = folder.experiment("chance.py:touch", text=WHOLE)
    before = files(folder)
    folder.done("validate", path)
    assert files(folder) == before


def test_every_fault_is_reported_with_its_place(folder: Folder) -> None:
    path = folder.path / "bad.yaml"
    path.write_text(
        "name: bad\n"
        "dataset: {path: rows.jsonl, input: qestion, expected: answer}\n"
        "tasks:\n"
        "  one: gone.py:answer\n"
        "  two: {kind: recorded, path: theirs.jsonl, response: txt}\n"
        "scorers: {same: exact_mach}\n"
        "metrics: [accuracy]\n"
    )
    folder.write("theirs.jsonl", [{"text": "x"}] * 6)
    reported = folder.call("validate", path)
    assert reported.exit_code == 1
    for part in ("bad.yaml:2: ", "(did you mean 'question'?)", "bad.yaml:4: ", "bad.yaml:6: ", "'exact_match'"):
        assert part in reported.stdout
    assert reported.stdout.endswith(" faults\n")


def test_every_bad_row_of_the_data_is_reported(folder: Folder) -> None:
    (folder.path / "rows.jsonl").write_text('{"question": "1"}\nnot json\n[1]\n')
    facts = folder.call("validate", folder.experiment(), "--json")
    assert facts.exit_code == 1
    assert "rows.jsonl:2" in facts.stdout
    assert "rows.jsonl:3" in facts.stdout


def test_weights_that_a_metric_needs_and_the_dataset_has_not_are_a_fault(folder: Folder) -> None:
    text = WHOLE.replace(", weight: w", "").replace("{{kind: count,", "{{kind: accuracy, weighted: true,")
    result = folder.call("validate", folder.experiment(text=text))
    assert result.exit_code == 1
    assert "accuracy: weighted needs weights; name the dataset's column under weight" in result.stdout


def test_rows_of_a_recorded_file_that_are_missing_or_unused_are_counted(folder: Folder) -> None:
    folder.write("theirs.jsonl", [{"_index_": i, "text": "x"} for i in (0, 1, 2, 70, 71)])
    path = folder.experiment("{kind: recorded, path: theirs.jsonl, response: text}", text=WHOLE)
    reported = "\n".join(folder.json("validate", path)["notes"])
    assert "2 rows match no example, such as index 70" in reported
    assert "task mine: 3 of 6 recorded outputs are missing, and will fail: " in reported
    assert "theirs.jsonl has no row for index 3" in reported
    folder.write("theirs.jsonl", [{"_index_": i, "text": "x", "error": "429" if i > 3 else None} for i in range(6)])
    path = folder.experiment("{kind: recorded, path: theirs.jsonl, response: text, error: error}", text=WHOLE)
    reported = "\n".join(folder.json("validate", path)["notes"])
    assert "task mine: 2 of 6 recorded outputs are errors, and will fail: 429" in reported


def test_duplicates_in_a_recorded_file_are_faults(folder: Folder) -> None:
    folder.write("theirs.jsonl", [{"_index_": i, "text": "x"} for i in (0, 1, 1, 2, 2, 3)])
    path = folder.experiment("{kind: recorded, path: theirs.jsonl, response: text}", text=WHOLE)
    result = folder.call("validate", path)
    assert (result.exit_code, result.stdout.count("occurs twice")) == (1, 2)


def test_the_plan_counts_calls_that_are_new_reused_and_kept(folder: Folder) -> None:
    path = folder.experiment()
    (folder.path / "e.yaml").write_text(
        path.read_text().replace("number: {kind: numeric_answer}", "number: exact_match")
    )
    planned = {"task": "mine", "recorded": False, "calls": 6, "new": 6, "reused": 0, "kept": 0, "why": ""}
    assert folder.json("validate", path)["plan"] == [planned]
    folder.done("run", path, "--limit", 4)  # the fourth fails, and is called again in another run
    assert folder.json("validate", path)["plan"] == [planned | {"new": 3, "reused": 3}]
    folder.done("run", path)
    assert folder.json("validate", path)["plan"] == [planned | {"new": 0, "kept": 6}]
    reported = folder.json("run", path)["tasks"][0]["run"]["receipt"]
    assert (reported["called"], reported["kept"]) == (0, 6)


def test_a_plan_says_beforehand_what_a_run_then_does(folder: Folder) -> None:
    path = folder.experiment()
    folder.done("run", path)
    folder.write("rows.jsonl", [folder.row(i) for i in (5, 0, 9)])
    (planned,) = folder.json("validate", path)["plan"]
    did = folder.json("run", path)["tasks"][0]["run"]["receipt"]
    assert (planned["new"], planned["reused"], planned["kept"]) == (did["called"], did["reused"], did["kept"])
    assert planned["reused"] == 2


def test_calls_that_block_a_coroutine_are_noted(folder: Folder) -> None:
    text = WHOLE.replace("{task}", "slow.py:answer")
    code = "import asyncio, time\n\nasync def answer(question):\n    await asyncio.sleep(0)\n    time.sleep(9)\n"
    (folder.path / "slow.py").write_text(code)
    reported = [note for note in folder.json("validate", folder.experiment(text=text))["notes"] if "holds up" in note]
    assert reported == [
        "task mine: slow.py:5: time.sleep(…) in an async function holds up all calls, and timeout cannot end it;"
        " await an asynchronous one, or write def"
    ]


def test_an_unpinned_task_is_planned_as_new(folder: Folder) -> None:
    text = WHOLE.replace("{task}", "chance.py:grade_all")
    (folder.path / "chance.py").write_text(CHANCE + "\ndef grade_all(question):\n    return random.random()\n")
    path = folder.experiment(text=text)
    folder.done("run", path)
    facts = folder.json("validate", path)
    assert facts["plan"][0]["new"] == 6
    assert any(note.startswith("task mine is unpinned, so every run calls it again: ") for note in facts["notes"])


def test_a_scorer_that_can_grade_nothing_is_a_fault_and_stops_a_run_before_its_first_call(folder: Folder) -> None:
    text = WHOLE.replace("same: exact_match", "same: {{kind: prediction, type: integer}}")
    path = folder.experiment("chance.py:touch", text=text)
    reported = "e.yaml:7: scorers.same: no example can be graded: the truth is the text '2', not an integer"
    assert reported in folder.call("validate", path).stdout
    assert reported in folder.refused("run", path)
    assert not (folder.path / "called").exists()


def test_what_pins_code_is_said_as_it_is_written_in_the_file(folder: Folder) -> None:
    code = (
        "\nimport pyarrow.parquet\n\n"
        "def read(question):\n    return pyarrow.parquet.read_table(question + '.parquet').num_rows\n"
    )
    (folder.path / "chance.py").write_text(CHANCE + code)
    pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), folder.path / "0.parquet")
    path = folder.experiment("chance.py:read", text=WHOLE)
    reported = "\n".join(folder.json("validate", path)["notes"])
    assert 'name them with files: [...] or declare version: "1" in its entry to pin it' in reported
    assert reported.count('declare version: "1" in its entry to pin it') == 2
    (run,) = folder.json("run", path, "--limit", 1)["tasks"]
    assert 'declare version: "1" in its entry to pin it' in run["run"]["receipt"]["why"]
    assert 'declare version: "1" in its entry to pin it' in run["evaluation"]["receipt"]["why"]
    pinned = path.read_text().replace("chance.py:read", '{function: chance.py:read, version: "1"}')
    path.write_text(pinned)
    assert "task mine is unpinned" not in "\n".join(folder.json("validate", path)["notes"])


def test_what_pins_a_class_of_scorers_is_said_as_it_is_written_in_python(folder: Folder) -> None:
    code = (
        "import random\nfrom evaluand import Scorer\n\n\nclass Luck(Scorer):\n    def score(self, output, expected):\n"
    )
    (folder.path / "luck.py").write_text(f"{code}        return random.random()\n")
    text = WHOLE.replace("chance.py:grade", "luck.py:Luck")
    reported = "\n".join(folder.json("validate", folder.experiment(text=text))["notes"])
    assert "scorer luck is unpinned" in reported
    assert "declare version=... to pin it" in reported


def test_a_file_that_is_none_is_reported(folder: Folder) -> None:
    result = folder.call("validate", "gone.yaml")
    assert (result.exit_code, "gone.yaml: no such file" in result.stdout) == (1, True)


PATIENTS = """
name: visits
dataset: {{path: visits.csv, input: [a], expected: y, cluster: patient}}
tasks:
  mine: {task}
scorers: {{right: prediction}}
metrics: [accuracy]
"""


@pytest.mark.filterwarnings("default::evaluand.run.tasks.estimator.PartedClusters")
def test_a_split_that_parts_clusters_is_reported_before_and_while_it_runs(folder: Folder) -> None:
    rows = [f"{i},{'yes' if i % 2 else 'no'},p{i // 2}" for i in range(8)]
    (folder.path / "visits.csv").write_text("\n".join(["a,y,patient", *rows]))
    (folder.path / "models.py").write_text("from sklearn.dummy import DummyClassifier as Model")
    file = folder.experiment("{kind: estimator, model: 'models.py:Model', split: {folds: 8}}", text=PATIENTS)
    reported = "rows of one 'patient' are in training and in test rows, for 4 of 4"
    assert [note for note in folder.json("validate", file)["notes"] if reported in note]
    result = folder.call("run", file)
    assert (result.exit_code, result.stderr.count(f"note: {reported}")) == (0, 1)


def test_a_batch_that_can_never_be_full_is_reported(folder: Folder) -> None:
    task = "{kind: service, url: 'http://127.0.0.1:1/', model: m, version: '1', batch: 4}"
    text = WHOLE.replace("luck: chance.py:grade", "other: includes")
    few = folder.json("validate", folder.experiment(task, text=text + "run: {{concurrency: 2}}\n"))
    reported = "task mine: a batch of 4 is never full: only 2 calls are made at once; raise concurrency under run"
    assert reported in few["notes"]
    enough = folder.json("validate", folder.experiment(task, text=text + "run: {{concurrency: 4}}\n"))
    assert not any("batch" in note for note in enough["notes"])


@pytest.mark.parametrize("access", [(), ("--access",)])
def test_a_name_with_control_characters_is_reported_at_its_line(folder: Folder, access: tuple[str, ...]) -> None:
    text = WHOLE.strip().replace("shop", '"sh\\x1bop"').format(task="app.py:whole")
    (folder.path / "e.yaml").write_text(text)
    faults = json.loads(folder.call("validate", "e.yaml", *access, "--json").stdout)["faults"]
    message = "e.yaml:1: name: a name must not have control characters: 'sh\\x1bop'"
    assert faults == [{"where": "", "message": message}]
    (folder.path / "e.yaml").write_text(text.replace('"sh\\x1bop"', "shop").replace("{path", '{name: "a\\x07", path'))
    if not access:
        faults = json.loads(folder.call("validate", "e.yaml", "--json").stdout)["faults"]
        assert [fault["message"].partition(": a name")[0] for fault in faults] == ["e.yaml:2: dataset.name"]


def test_a_pipe_is_not_waited_for(folder: Folder) -> None:
    os.mkfifo(folder.path / "pipe.yaml")
    for command in (("validate", "--access"), ("validate",), ("run",)):
        result = folder.call(*command, "pipe.yaml")
        assert (result.exit_code, "pipe.yaml: is not a regular file" in result.output) == (1, True)


# Gates


def test_a_baseline_that_run_would_not_find_is_a_fault_with_its_line(folder: Folder) -> None:
    text = WHOLE + "gates:\n  - accuracy(same) >= 0.5\n  - accuracy(same) not worse than shop/other/small by 0.05\n"
    text = text.replace("kind: count, scorer: same, by: [[parity, size]]", "kind: accuracy, scorer: same")
    path = folder.experiment("app.py:whole", text=text)
    line = 1 + path.read_text().split("\n").index("  - accuracy(same) not worse than shop/other/small by 0.05")
    [fault] = json.loads(folder.call("validate", path, "--json").stdout)["faults"]
    assert fault["message"].startswith(f"{path}:{line}: gates")
    assert "no baseline is called 'shop/other/small'" in fault["message"]
    assert folder.refused("run", path).startswith(f"error: {path}:{line}: gates")
    text = text.replace("tasks:\n", "tasks:\n  yours: app.py:whole\n")
    for known in ("yours", "shop/mine"):
        assert folder.json("validate", folder.experiment("app.py:whole", text=text.replace("shop/other/small", known)))


def test_a_gate_on_an_unmeasured_judge_is_noted_and_judgements_are_counted(folder: Folder) -> None:
    model = "{{model: 'http://127.0.0.1:9/v1#small', version: '1'}}"
    judge = f"{{{{kind: judge, rubric: correctness, model: {model}}}}}"
    text = WHOLE.replace("  luck: chance.py:grade", f"  right: {judge}")
    text = text.replace("kind: count, scorer: same, by: [[parity, size]]", "kind: mean, scorer: right")
    both = "gates 'mean(right) >= 0.5', 'mean >= 0.4' will be refused: judge 'right' is unmeasured"
    path = folder.experiment("app.py:whole", text=text + "gates: ['mean(right) >= 0.5', mean >= 0.4]\n")
    said = folder.done("validate", path)
    assert f"note   {both}: nobody knows" in said
    path = folder.experiment("app.py:whole", text=text + "gates: ['mean(right) >= 0.5']\n")
    said = folder.done("validate", path)
    assert "note   gate 'mean(right) >= 0.5' will be refused: judge 'right' is unmeasured: nobody knows" in said
    assert "measure it with `evaluand judge card shop/mine --scorer right`, or allow it with" in said
    assert "judge  right: at most 6 judgements" in said
    allowed = folder.experiment(
        "app.py:whole", text=text + "gates: ['mean(right) >= 0.5']\nallow_unmeasured_judges: true\n"
    )
    assert "will be refused" not in folder.done("validate", allowed)
