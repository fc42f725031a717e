"""A name leads to its own work: its prompts, tokens, cost and task, wherever they are shown."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.commands import Folder

from evaluand.engine.keyed_work import Tally
from evaluand.report.page.bundle import write_bundle
from evaluand.report.page.resources.base import Source, find_resources, list_paths, read_resource

CODE = """
from pathlib import Path
from evaluand import report_usage, span

CALLS = Path(__file__).with_name("calls.txt")

def answer(question):
    prompt = Path("prompt.txt").read_text()
    report_usage(input_tokens=len(prompt), output_tokens=1, cost=len(prompt) / 100, currency="USD", model="m")
    return question.upper()

def upper(question):
    return question.upper()

def again(question):
    return "".join(letter.upper() for letter in question)

def priced(question):
    report_usage(input_tokens=10, output_tokens=1, cost=0.25, currency="USD", model="m")
    return question.upper()

def unpriced(question):
    report_usage(input_tokens=1000, output_tokens=100, model="x")
    return question.lower()

def traced(question):
    for known in ({"cost": 0.25, "currency": "USD"}, {"cost": 0.25, "currency": "USD"}, {}):
        with span("ask", kind="llm", usage={"input_tokens": 10, "output_tokens": 1} | known):
            pass
    return question

def compare(first, second):
    with CALLS.open("a") as file:
        file.write(first + second)
    return "first" if first < second else "second"

def judge(output):
    report_usage(input_tokens=1, output_tokens=1, cost=1.0, currency="EUR", model="judge")
    return output == "A"
"""

HEAD = "name: {name}\ndataset: {{path: rows.jsonl, input: input, expected: expected}}\n"
TAIL = "scorers: {{judge: {{function: 'shop.py:judge', version: '1'}}}}\nmetrics: {{kind: mean, scorer: judge}}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    made = Folder(tmp_path)
    made.write("rows.jsonl", [{"input": "a", "expected": "A"}, {"input": "b", "expected": "X"}])
    (tmp_path / "shop.py").write_text(CODE)
    return made


def experiment(folder: Folder, name: str, tasks: str, *, tail: str = TAIL) -> Path:
    path = folder.path / f"{name}.yaml"
    path.write_text((HEAD + f"tasks: {tasks}\n" + tail).format(name=name))
    return path


def page_of(folder: Folder, path: str) -> Any:
    find_resources()
    return json.loads(read_resource(Source(folder.store), path, {}))


def report_of(folder: Folder, *names: str) -> str:
    folder.done("report", *names, "-o", "report.html")
    return re.sub(r"<[^>]*>", " ", (folder.path / "report.html").read_text())


# Two runs with the same answers

SHORT, LONG = "short", "a much longer prompt"


@pytest.fixture
def prompted(folder: Folder) -> Folder:
    """Where a prompt was changed, and the answers stayed the same."""
    for prompt in (SHORT, LONG):
        (folder.path / "prompt.txt").write_text(prompt)
        folder.done("run", experiment(folder, "letters", "{{mine: {{function: 'shop.py:answer'}}}}"))
    return folder


NEW, OLD = {"input_tokens": 2 * len(LONG), "cost": {"USD": 0.4}}, {"input_tokens": 2 * len(SHORT), "cost": {"USD": 0.1}}


def used(entry: Any) -> dict[str, Any]:
    return {name: entry["usage"][name] for name in ("input_tokens", "cost")}


def test_tokens_and_cost_are_those_of_the_newest_run_of_the_name(prompted: Folder) -> None:
    runs = {ref.name: ref.id for ref in prompted.store.refs() if ref.kind == "runs"}
    evaluations = {ref.name: ref.id for ref in prompted.store.refs() if ref.kind == "evaluations"}
    [run], [evaluation] = runs.values(), evaluations.values()
    assert prompted.store.manifest("evaluations", evaluation)["provenance"]["run"] == run
    listed = {(entry["kind"], entry["name"] or ""): entry for entry in reversed(prompted.json("list"))}
    assert used(listed["runs", "letters/mine"]) == used(prompted.json("show", "letters/mine")["manifest"]) == NEW
    for name in ("letters", "letters/mine", run[:12], evaluation[:12]):
        text = report_of(prompted, name)
        assert ("0.40 USD" in text, "0.10 USD" in text) == (True, False), name
    card = page_of(prompted, f"card/evaluations/{evaluation}")
    results = page_of(prompted, "results/letters")
    assert card["used"] == f"{2 * len(LONG) + 2} tokens, 0.40 USD"
    assert [(task["run"], task["evaluation"]) for task in results["tasks"]] == [(run, evaluation)]
    old = next(entry["id"] for entry in prompted.json("list", "runs") if entry["id"] != run)
    shown = prompted.json("compare", old, "letters/mine")["evaluations"]
    assert [used({"usage": side["usage"]["run"]}) for side in shown] == [OLD, NEW]


def test_each_run_has_an_evaluation_and_rows_of_its_own_on_the_page(prompted: Folder, tmp_path: Path) -> None:
    source, store = Source(prompted.store), prompted.store
    made = {id: store.manifest("evaluations", id)["provenance"]["run"] for id in store.ids("evaluations")}
    assert sorted(made.values()) == sorted(store.ids("runs"))
    columns = [path for path in list_paths(source) if path.startswith("columns/")]
    assert sorted(columns) == sorted(f"columns/{run}/{of}" for id, run in made.items() for of in (id, "-"))
    for run, prompt in zip(prompted.json("list", "runs"), (LONG, SHORT), strict=True):
        trace = page_of(prompted, f"trace/{run['id']}/0")
        assert made[trace["evaluation"]] == run["id"]
        assert f"{len(prompt)} input tokens" in trace["rows"][0]["usage"]
    bundle = tmp_path / "bundle"
    write_bundle(source, bundle, Tally("files"))
    files = [*bundle.rglob("*.js")]
    for id, run in made.items():
        assert sum(f'"rows/{run}/{id}/0"' in file.read_text()[:200] for file in files) == 1


def test_equal_answers_cost_no_judgement(prompted: Folder) -> None:
    results = prompted.json("run", experiment(prompted, "other", "{{one: 'shop.py:upper', two: 'shop.py:again'}}"))
    receipts = [task["evaluation"]["receipt"] for task in results["tasks"]]
    assert [(each["called"], each["reused"], each["usage"]) for each in receipts] == [(0, 2, {})] * 2
    assert results["usage"]["requests"] == 0
    assert len(prompted.store.ids("evaluations")) == len(prompted.store.ids("runs")) == 4


def test_equal_answers_cost_no_comparison(folder: Folder) -> None:
    tail = TAIL + "matches: {{judge: {{function: 'shop.py:compare', version: '1'}}}}\n"
    for name, task in (("first", "upper"), ("second", "again")):
        folder.done(
            "run", experiment(folder, name, f"{{{{mine: 'shop.py:{task}', low: 'shop.py:unpriced'}}}}", tail=tail)
        )
        assert sorted((folder.path / "calls.txt").read_text()) == sorted(2 * "AaBb")
    sets = {ref.name: folder.store.manifest("matches", ref.id) for ref in folder.store.refs() if ref.kind == "matches"}
    assert len(sets) == 2
    for name, manifest in sets.items():
        runs = {ref.id for ref in folder.store.refs() if ref.kind == "runs" and ref.name.startswith(name.split("/")[0])}
        assert {*manifest["provenance"]["runs"]} == runs


def test_an_answer_has_its_grades_where_another_system_gave_the_same(folder: Folder) -> None:
    for name, task in (("first", "upper"), ("second", "again")):
        folder.done("run", experiment(folder, name, f"{{{{mine: 'shop.py:{task}'}}}}"))
    for name in ("first", "second"):
        assert f"{name}/mine · judge" in folder.done("show", name + "/mine", "--index", "0")
        [grades] = folder.json("show", f"{name}/mine", "--index", "0")["grades"].values()
        assert [row["value"] for row in grades] == [1.0]


# One run with several names


@pytest.mark.parametrize("tail", [TAIL, "scorers: exact_match\nmetrics: accuracy\n"])
def test_a_second_experiment_with_the_same_task_changes_nothing_that_the_first_shows(folder: Folder, tail: str) -> None:
    def shown() -> list[str]:
        texts = [
            folder.done("show", *options) for options in (["first"], ["first/mine"], ["first/mine", "--index", "0"])
        ]
        texts += [folder.done("export", "first", "--table", "metrics"), folder.done("export", "first/mine")]
        texts += [folder.done("export", "first/mine", "--table", "tidy")]
        pages = (json.dumps(page_of(folder, f"{part}/first")) for part in ("results", "answers", "sections"))
        return [*texts, *(re.sub(r"report [-\d]+ [:\d]+ UTC", "", page) for page in pages)]  # when it was written

    folder.done("run", experiment(folder, "first", "{{mine: 'shop.py:upper'}}"))
    before = shown()
    folder.done("run", experiment(folder, "second", "{{yours: 'shop.py:upper', twin: 'shop.py:upper'}}", tail=tail))
    assert [len(folder.store.ids(kind)) for kind in ("runs", "evaluations")] == [1, 1 if tail == TAIL else 2]
    assert shown() == before


def test_the_second_experiment_shows_the_names_of_its_own_tasks(folder: Folder) -> None:
    folder.done("run", experiment(folder, "first", "{{mine: 'shop.py:upper'}}"))
    folder.done("run", experiment(folder, "second", "{{yours: 'shop.py:upper', twin: 'shop.py:upper'}}"))
    text = report_of(folder, "second")
    assert [re.search(rf"\b{name}\b", text) is not None for name in ("yours", "twin", "mine")] == [True, True, False]
    assert folder.done("show", "second/yours").startswith(f"run {folder.id('runs')}  second/yours\n")
    assert [row.split(",")[0] for row in folder.done("export", "second", "--table", "metrics").splitlines()[1:]] == [
        '"second/yours"',
        '"second/twin"',
    ]
    assert {row.split(",")[0] for row in folder.done("export", "second/twin", "--table", "tidy").splitlines()[1:]} == {
        '"second/twin"'
    }
    compared = folder.json("compare", "first/mine", "second/yours")["evaluations"]
    assert [(side["label"], side["name"]) for side in compared] == [
        (name, name) for name in ("first/mine", "second/yours")
    ]
    assert [task["task"] for task in page_of(folder, "results/second")["tasks"]] == ["yours", "twin"]


# Totals

EXACT = "scorers: exact_match\nmetrics: accuracy\n"


@pytest.mark.parametrize(
    ("tasks", "total"),
    [
        ("[shop.py:priced, shop.py:unpriced]", "0.50 USD and unknown for 2 of 4 rows"),
        ("[shop.py:unpriced]", "unknown"),
        ("[shop.py:priced]", "0.50 USD"),
    ],
)
def test_every_total_says_what_is_unknown(folder: Folder, tasks: str, total: str) -> None:
    said = folder.done("run", experiment(folder, "two", tasks, tail=EXACT), env={"COLUMNS": "200"})
    assert re.search(r"this command: .* cost (.*)\n", said).group(1) == total  # type: ignore[union-attr]
    assert f"reused: {total}." in report_of(folder, "two")
    assert f"Cost of making all of it: {total}" in json.dumps(page_of(folder, "answers/two"))
    listed = folder.done("list", "runs", env={"COLUMNS": "200"})
    used = {entry["names"][0]: entry["used"] for entry in page_of(folder, "index")["artifacts"] if entry["names"]}
    for name, text in (("priced", "22 tokens, 0.50 USD"), ("unpriced", "2,200 tokens, cost unknown")):
        assert (used.get(f"two/{name}"), text in listed) == ((text, True) if f":{name}" in tasks else (None, False))


def test_the_total_of_a_call_says_of_how_many_requests_the_cost_is_unknown(folder: Folder) -> None:
    folder.done("run", experiment(folder, "traced", "{{mine: 'shop.py:traced'}}", tail=EXACT))
    [row] = page_of(folder, f"trace/{folder.id('runs')}/0")["rows"]
    assert row["used"] == "33 tokens, 0.50 USD and unknown for 1 of 3 requests"


# Numbers with gaps, as pandas writes them


def test_a_column_of_zeros_and_ones_with_a_gap_is_one_of_whole_numbers(folder: Folder) -> None:
    (folder.path / "p.csv").write_text("id,y,m\n1,1,1.0\n2,0,0.0\n3,1,\n4,0,1.0\n")
    (folder.path / "ints.yaml").write_text(
        "name: ints\ndataset: {path: p.csv, input: id, expected: y, id: id}\n"
        "tasks: {m: {kind: recorded, path: p.csv, by: id, key: id, response: m}}\n"
        "scorers: {right: {kind: prediction, type: integer}}\nmetrics: [accuracy]\n"
    )
    [row] = folder.json("run", folder.path / "ints.yaml")["metrics"]
    assert (row["value"], row["n"], row["n_scored"], row["n_abstained"]) == (pytest.approx(2 / 3), 4, 3, 1)
    assert "0.667" in report_of(folder, "ints")
