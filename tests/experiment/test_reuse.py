"""What runs again after a change, and what does not: exactly the steps that the change reaches."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from support.fresh import run_python

APP = """
import os
from pathlib import Path
from helpers import tidy

PROMPT = Path(__file__).parent / "prompt.txt"
SUFFIX = "!"
CALLS = os.environ["CALLS"]

def answer(question):
    note()
    return tidy(PROMPT.read_text() + question + SUFFIX)

def note():
    with open(CALLS, "a") as file:
        file.write("x")
"""
HELPERS = "def tidy(text):\n    return text.strip()\n"
GRADE = """
LEAST = 3

def long_enough(output):
    return is_long(output)

def is_long(text):
    return len(text) >= LEAST

def equal(output, expected):
    return output == expected
"""
EXPERIMENT = """
name: reuse
dataset: {path: data.jsonl, input: question, expected: answer}
tasks:
  app: {function: app.py:answer}
scorers:
  exact: {function: grade.py:equal}
  long: {function: grade.py:long_enough}
metrics:
  - {kind: accuracy, scorer: long}
"""
SCRIPT = """
import json, sys
from evaluand import DirectoryStore, Experiment
options = json.loads(sys.argv[2])
results = Experiment.from_file(sys.argv[1] + "/experiment.yaml").run(DirectoryStore(sys.argv[1] + "/store"), **options)
[result] = results.tasks
def told(receipt):
    return {"called": receipt.called, "reused": receipt.reused, "kept": receipt.kept, "why": receipt.why}
print(json.dumps({"run": told(result.run.receipt), "evaluation": told(result.evaluation.receipt)}))
"""


class Project:
    """An experiment in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write("app.py", APP)
        self.write("helpers.py", HELPERS)
        self.write("grade.py", GRADE)
        self.write("prompt.txt", "Say: ")
        self.write("experiment.yaml", EXPERIMENT)
        self.write("data.jsonl", "".join(row(i) for i in range(10)))

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def edit(self, name: str, old: str, new: str) -> None:
        text = (self.folder / name).read_text()
        assert old in text
        self.write(name, text.replace(old, new))

    def run(self, **options: object) -> dict[str, dict[str, object]]:
        env = os.environ | {"CALLS": str(self.folder / "calls.log")}
        done = run_python(SCRIPT, str(self.folder), json.dumps(options), env=env)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def counts(self, **options: object) -> tuple[object, object]:
        """Calls of the task and of both scorers together."""
        reported = self.run(**options)
        return reported["run"]["called"], reported["evaluation"]["called"]

    @property
    def calls(self) -> int:
        log = self.folder / "calls.log"
        return len(log.read_text()) if log.exists() else 0


def row(i: int) -> str:
    return json.dumps({"question": f"q{i}", "answer": f"Say: q{i}!"}) + "\n"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Project(tmp_path_factory.mktemp("finished"))
    assert made.counts() == (10, 20)
    assert made.calls == 10
    return made.folder


@pytest.fixture
def project(finished: Path, tmp_path: Path) -> Project:
    made = Project(tmp_path)
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    return made


def test_the_same_again_does_nothing_and_says_why(project: Project) -> None:
    reported = project.run()
    assert (reported["run"]["called"], reported["run"]["kept"]) == (0, 10)
    assert "nothing to do" in str(reported["run"]["why"])
    assert "nothing to do" in str(reported["evaluation"]["why"])
    assert project.calls == 10


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("app.py", "question + SUFFIX", "question.upper() + SUFFIX"),
        ("app.py", 'SUFFIX = "!"', 'SUFFIX = "?"'),
        ("helpers.py", "text.strip()", "text.strip().lower()"),
        ("prompt.txt", "Say: ", "Please say: "),
    ],
    ids=["function", "constant", "helper in another module", "prompt file"],
)
def test_what_the_task_reaches_runs_every_call_again(project: Project, file: str, old: str, new: str) -> None:
    project.edit(file, old, new)
    reported = project.run()
    assert reported["run"]["called"] == 10
    assert reported["run"]["why"], "says what changed"
    assert reported["evaluation"]["called"] == 20, "every response is another one"
    assert project.calls == 20


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return is_long(output)", "return not is_long(output)"),
        ("len(text) >=", "len(text) >"),
        ("LEAST = 3", "LEAST = 4"),
    ],
    ids=["scorer", "helper", "constant"],
)
def test_what_a_scorer_reaches_grades_again_by_it_alone(project: Project, old: str, new: str) -> None:
    project.edit("grade.py", old, new)
    reported = project.run()
    assert reported["run"]["called"] == 0
    assert (reported["evaluation"]["called"], reported["evaluation"]["reused"]) == (10, 10)
    assert project.calls == 10


@pytest.mark.parametrize("file", ["app.py", "grade.py", "helpers.py"])
def test_a_comment_changes_nothing(project: Project, file: str) -> None:
    text = (project.folder / file).read_text()
    project.write(file, "# a remark\n" + text.replace("    return", "    # why so\n    return", 1))
    assert project.counts() == (0, 0)


def test_an_edit_that_is_undone_costs_nothing(project: Project) -> None:
    project.edit("app.py", 'SUFFIX = "!"', 'SUFFIX = "?"')
    assert project.counts()[0] == 10
    project.edit("app.py", 'SUFFIX = "?"', 'SUFFIX = "!"')
    assert project.counts() == (0, 0)
    assert project.calls == 20


def test_rows_that_were_run_before_are_not_run_again(project: Project) -> None:
    project.write("data.jsonl", "".join(row(i) for i in range(15)))
    assert project.counts() == (5, 10)
    project.edit("data.jsonl", '"q3"', '"q33"')
    assert project.counts() == (1, 2)
    assert project.calls == 16


def test_a_corrected_expected_answer_is_graded_again_without_a_call(project: Project) -> None:
    project.edit("data.jsonl", "Say: q3!", "Say: three!")
    assert project.counts() == (0, 2)
    assert project.calls == 10


def test_a_limit_runs_part_and_the_whole_only_the_rest(tmp_path: Path) -> None:
    project = Project(tmp_path)
    assert project.counts(limit=4) == (4, 8)
    assert project.counts() == (6, 12)
    assert project.counts(limit=7) == (0, 0)
    assert project.calls == 10


def test_fresh_makes_every_call_again_and_then_rests(project: Project) -> None:
    assert project.counts(fresh=True)[0] == 10
    assert project.counts()[0] == 0
    assert project.calls == 20


def test_a_failure_is_tried_again_only_when_asked(project: Project) -> None:
    project.edit("app.py", "    note()\n", "    note()\n    if question == 'q5': raise ValueError('five')\n")
    assert project.counts()[0] == 10
    assert project.counts()[0] == 0
    assert project.counts(retry_failed=True)[0] == 1
    assert project.calls == 21


def test_an_unpinned_task_runs_every_time_and_says_why(project: Project) -> None:
    project.edit("app.py", "SUFFIX =", "import threading\nLOCK = threading.Lock()\nSUFFIX =")
    project.edit("app.py", "    note()\n    return", "    with LOCK:\n        note()\n    return")
    for _ in range(2):
        reported = project.run()
        assert reported["run"]["called"] == 10
        assert "unpinned" in str(reported["run"]["why"])
        assert "LOCK" in str(reported["run"]["why"])


def test_a_declared_version_pins_what_cannot_be_read(project: Project) -> None:
    project.edit("app.py", "SUFFIX =", "import threading\nLOCK = threading.Lock()\nSUFFIX =")
    project.edit("app.py", "    note()\n    return", "    with LOCK:\n        note()\n    return")
    project.edit("experiment.yaml", "{function: app.py:answer}", "{function: app.py:answer, version: '1'}")
    assert project.counts()[0] == 10
    assert project.counts()[0] == 0
    project.edit("experiment.yaml", "version: '1'", "version: '2'")
    assert project.counts()[0] == 10


def test_a_version_pins_one_class_with_its_parameters_and_not_another(project: Project) -> None:
    model = "class Model:\n    def __init__(self, says):\n        self.says = says\n"
    model += "    def do_run(self, input, task_span):\n        return self.says\n"
    project.write("model.py", model)
    reported = []
    for says in ("a", "b"):
        project.write(
            "experiment.yaml",
            EXPERIMENT.replace(
                "{function: app.py:answer}",
                f"{{function: model.py:Model, parameters: {{says: {says}}}, version: '1'}}",
            ),
        )
        reported.append(project.counts()[0])
    assert reported == [10, 10]
