"""Code that changes under a declared `version`: its stored answers are used, and a warning names what has changed."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result

from evaluand import Dataset, Evaluator, MemoryStore, Runner, task
from evaluand.cli import main
from evaluand.core.errors import EvaluandWarning
from evaluand.core.fingerprint import Identity
from evaluand.evaluation.scorer import scorer
from evaluand.run.task import FunctionTask

APP = """
from pathlib import Path

HANDBOOK = {"France": "Paris"}


def retrieve(question):
    return HANDBOOK.get(question, "nothing")


def answer(question):
    return Path(__file__).with_name("prompt.txt").read_text() + retrieve(question)


def same(output, expected):
    return output == expected
"""
EXPERIMENT = """
name: own
dataset: {path: q.jsonl, input: question, expected: answer}
tasks:
  app: {function: app.py:answer, version: "1"}
scorers:
  right: includes
  same: {function: app.py:same, version: "1"}
metrics: [{kind: accuracy, scorer: right}]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("app.py").write_text(APP)
    Path("prompt.txt").write_text("Answer: ")
    Path("own.yaml").write_text(EXPERIMENT)
    write_questions("France", "Spain")
    assert call("run", "own.yaml").exit_code == 0
    return tmp_path


def write_questions(*countries: str) -> None:
    rows = [{"question": country, "answer": "Paris"} for country in countries]
    Path("q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def call(*arguments: str) -> Result:
    before = sys.path[:]
    result = CliRunner().invoke(main, [*arguments])
    sys.path[:] = before
    return result


def notes(result: Result) -> list[str]:
    return [line for line in result.stderr.splitlines() if line.startswith("note: ")]


def edit(name: str, old: str, new: str) -> None:
    path = Path(name)
    path.write_text(path.read_text().replace(old, new))


@pytest.mark.parametrize(
    ("file", "old", "new", "note"),
    [
        ("app.py", '"nothing"', '"no idea"', "task 'own/app': app.retrieve changed"),
        ("app.py", '"Paris"', '"Marseille"', "task 'own/app': app.HANDBOOK changed"),
        ("prompt.txt", "Answer", "Reply", "task 'own/app': prompt.txt changed"),
        ("app.py", "output == expected", "len(output) == len(expected)", "scorer 'same': app.same changed"),
    ],
    ids=["function", "constant", "file", "scorer"],
)
def test_a_change_is_named_with_the_command_that_repeats_the_calls(
    folder: Path, file: str, old: str, new: str, note: str
) -> None:
    assert notes(call("run", "own.yaml")) == []
    edit(file, old, new)
    again = call("run", "own.yaml")
    assert again.exit_code == 0
    assert notes(again) == [
        f"note: {note}; its declared version is the same, so answers from before the change are used: declare another"
        f" version, or repeat the calls with `evaluand run {folder / 'own.yaml'} --fresh`"
    ]
    assert notes(call("run", "own.yaml", "--fresh")) == notes(call("run", "own.yaml")) == []


def test_answers_that_another_run_takes_over_are_named_too(folder: Path) -> None:
    edit("app.py", '"nothing"', '"no idea"')
    edit("prompt.txt", "Answer", "Reply")
    write_questions("France", "Spain", "Peru")
    more = call("run", "own.yaml")
    assert "1 done now, 2 reused" in more.stdout
    assert [note.partition(";")[0] for note in notes(more)] == [
        "note: task 'own/app': app.retrieve changed, prompt.txt changed"
    ]


class Unrecorded(FunctionTask):
    """A task as it was stored before the code under a version was recorded."""

    def identify(self) -> Identity:
        return replace(super().identify(), read_code=None)


def test_answers_stored_before_the_code_was_recorded_are_used_without_a_warning() -> None:
    store, data = MemoryStore(), Dataset.from_rows([{"input": "a"}])
    Runner(store).run(Unrecorded(str.upper, version="1", name="case"), data)
    again = Runner(store).run(task(version="1", name="case")(str.lower), data)
    assert again.receipt is not None
    assert (again.receipt.kept, [row.responses for row in again]) == (1, [["A"]])


def test_a_program_is_warned_where_it_runs_and_evaluates() -> None:
    words = SimpleNamespace(suffix="!", best="a!")
    data = Dataset.from_rows([{"input": "a", "expected": "b"}])

    def run_and_evaluate(store: MemoryStore) -> None:
        suffix, best = words.suffix, words.best
        run = Runner(store).run(task(version="1")(lambda text: text + suffix), data)
        Evaluator().evaluate(run, {"best": scorer(version="1")(lambda output: output == best)})

    store = MemoryStore()
    run_and_evaluate(store)
    words.suffix = "?"
    with pytest.warns(EvaluandWarning, match="changed; its declared version .* repeat the calls with fresh=True"):
        run_and_evaluate(store)
    words.suffix, words.best = "!", "a"
    with pytest.warns(EvaluandWarning, match="scorer 'best'.*fresh=True"):
        run_and_evaluate(store)


def test_what_code_keeps_between_calls_is_no_change_of_it() -> None:
    seen, count = list[str](), 0

    @task(version="1")
    def noted(text: str) -> str:
        nonlocal count
        seen.append(text)
        count += 1
        return text

    store, data = MemoryStore(), Dataset.from_rows([{"input": "a"}])
    for _ in range(2):
        run = Runner(store).run(noted, data)
    assert run.receipt is not None
    assert (run.receipt.kept, seen, count) == (1, ["a"], 1)


def test_a_judge_of_pairs_that_has_changed_is_named(folder: Path) -> None:
    judge = "def longer(first, second):\n    return float(len(first) > len(second))\n"
    Path("app.py").write_text(f"{APP}\n\ndef other(question):\n    return question\n\n\n{judge}")
    matches = 'matches: {judge: {function: app.py:longer, version: "1"}}\n'
    tasks = 'app: {function: app.py:answer, version: "1"}\n  other: app.py:other'
    text = EXPERIMENT.replace('app: {function: app.py:answer, version: "1"}', tasks)
    Path("own.yaml").write_text(text + matches)
    first = call("run", "own.yaml")
    assert first.exit_code == 0, first.output
    Path("app.py").write_text(Path("app.py").read_text().replace("len(first) > len(second)", "len(first) >= 3"))
    [note] = [note for note in notes(call("run", "own.yaml")) if note.startswith("note: the judge")]
    assert "app.longer changed; its declared version is the same" in note
    assert note.endswith("own.yaml --fresh`")
