"""Code counts beside a declared `version`; answers from before a change are taken over on request, and that shows."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from evaluand import Dataset, DirectoryStore, MemoryStore, Run, Runner, task
from evaluand.cli import main

APP = """
from pathlib import Path

from evaluand import report_usage

HANDBOOK = {"France": "Paris"}


def retrieve(question):
    return HANDBOOK.get(question, "nothing")


def answer(question):
    report_usage(input_tokens=7, output_tokens=1, cost=0.25, currency="USD", model="m")
    with open("calls", "a") as calls:
        calls.write("1")
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


def n_calls() -> int:
    return len(Path("calls").read_text())


def edit(name: str, old: str, new: str) -> None:
    path = Path(name)
    path.write_text(path.read_text().replace(old, new))


CHANGES = [
    pytest.param("app.py", '"nothing"', '"no idea at all"', "app.retrieve changed", id="function"),
    pytest.param("app.py", '"Paris"', '"Marseille"', "app.HANDBOOK changed", id="constant"),
    pytest.param("prompt.txt", "Answer", "Reply", "changed since opened: prompt.txt", id="file"),
]


@pytest.mark.parametrize(("file", "old", "new", "change"), CHANGES)
def test_a_change_makes_the_calls_again_and_says_before_what_they_cost(
    folder: Path, file: str, old: str, new: str, change: str
) -> None:
    assert (notes(call("run", "own.yaml")), n_calls()) == ([], 2)
    edit(file, old, new)
    assert notes(call("run", "own.yaml")) == [
        f"note: own/app: {change}, so 2 answers are made again; the earlier ones used 2 requests, 14 input tokens, 2"
        " output tokens, cost 0.50 USD; --keep-answers (keep_answers=True) takes them over"
    ]
    assert n_calls() == 4
    assert (notes(call("run", "own.yaml")), n_calls()) == ([], 4)


@pytest.mark.parametrize(("file", "old", "new", "change"), CHANGES)
def test_kept_answers_cost_no_call_and_every_number_of_them_says_so(
    folder: Path, file: str, old: str, new: str, change: str
) -> None:
    edit(file, old, new)
    said = f"own/app: 2 of 2 answers were kept from before a change: {change}"
    printed = call("run", "own.yaml", "--keep-answers")
    assert (notes(printed), n_calls()) == ([], 2)
    assert said in " ".join(printed.output.split())
    again = call("run", "own.yaml")
    assert n_calls() == 2
    assert said in " ".join(again.output.split())
    for command in (("show", "own"), ("show", "own/app"), ("compare", "own/app", "own/app")):
        assert said in " ".join(call(*command).output.split()), command
    call("report", "own", "-o", "own.html")
    assert said in Path("own.html").read_text()
    run = Run.open(DirectoryStore(".evaluand"), "own/app")
    [kept] = run.manifest["kept"]
    assert (kept["changes"], kept["kept"], kept["of"]) == ([change], 2, 2)


def test_kept_answers_are_given_by_their_name_alone(folder: Path) -> None:
    edit("app.py", '"nothing"', '"no idea at all"')
    call("run", "own.yaml", "--keep-answers")
    write_questions("France", "Spain", "Peru")
    call("run", "own.yaml")
    assert n_calls() == 2 + 3


def test_a_change_that_is_taken_back_costs_no_call(folder: Path) -> None:
    edit("app.py", '"nothing"', '"no idea at all"')
    call("run", "own.yaml")
    edit("app.py", '"no idea at all"', '"nothing"')
    call("run", "own.yaml")
    assert n_calls() == 4


def test_a_changed_scorer_grades_again_and_makes_no_call(folder: Path) -> None:
    edit("app.py", "output == expected", "len(output) == len(expected)")
    assert "2 done now" in call("run", "own.yaml").stdout
    assert n_calls() == 2


PAID = """

def paid(output, expected):
    from evaluand import report_usage
    with open("grades", "a") as grades:
        grades.write("1")
    report_usage(input_tokens=3, output_tokens=1, cost=0.5, currency="USD", model="judge")
    return output == expected
"""


def test_scores_of_a_changed_scorer_are_repeated_with_their_cost_or_kept(folder: Path) -> None:
    Path("app.py").write_text(APP + PAID)
    edit("own.yaml", 'same: {function: app.py:same, version: "1"}', 'same: {function: app.py:paid, version: "1"}')
    call("run", "own.yaml")
    before = Path("grades").read_text()
    edit("app.py", "return output == expected\n", "return bool(output >= expected)\n")
    kept = call("run", "own.yaml", "--keep-answers")
    assert (notes(kept), Path("grades").read_text()) == ([], before)
    said = "own/app: 2 of 2 scores of same were kept from before a change: app.paid changed"
    assert said in " ".join(kept.output.split())
    edit("app.py", "return bool(output >= expected)\n", "return not output > expected\n")
    [note] = notes(call("run", "own.yaml"))
    assert "app.paid changed, so 2 scores of same are made again; the earlier ones used 2 requests" in note
    assert Path("grades").read_text() == before * 2


def test_keeping_and_repeating_all_contradict_each_other(folder: Path) -> None:
    result = call("run", "own.yaml", "--fresh", "--keep-answers")
    assert (result.exit_code, "--fresh repeats the answers that --keep-answers takes over" in result.stderr) == (
        2,
        True,
    )


def test_what_cannot_be_read_is_named_and_stands_under_the_version() -> None:
    lock = threading.Lock()

    @task(version="1")
    def guarded(text: str) -> str:
        with lock:
            return text

    store, data = MemoryStore(), Dataset.from_rows([{"input": "a"}])
    run = Runner(store).run(guarded, data)
    [covered] = run.manifest["provenance"]["covered"]
    assert covered.endswith("guarded (closure variable lock): a lock holds state that cannot be read as data")
    assert Runner(store).run(guarded, data).id == run.id


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
