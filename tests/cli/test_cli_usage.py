"""Tokens, cost and budgets on the command line and in reports."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from support.commands import Folder, run_once

from evaluand.report.page.resources.base import Source, list_paths, read_resource

CODE = """
from evaluand import report_usage

def cheap(question):
    report_usage(input_tokens=100, output_tokens=5, cost=0.25, currency="USD", model="small")
    return question

def dear(question):
    report_usage(input_tokens=100, output_tokens=50, cost=None if question == "1" else 2.0, currency="USD")
    return question

def free(question):
    return question

def judge(output):
    report_usage(input_tokens=40, output_tokens=10, cost=0.5, currency="EUR")
    return int(output) % 2
"""

EXPERIMENT = """
name: shop
dataset: {{path: rows.jsonl, input: question, expected: answer}}
run: {{concurrency: 1}}
tasks:
  cheap: {{function: "shop.py:cheap", version: "1"}}
  dear: {{function: "shop.py:dear", version: "1"}}
  free: {{function: "shop.py:free", version: "1"}}
scorers:
  judge: {{function: "shop.py:judge", version: "1"}}
  exact: exact_match
metrics: [{{kind: mean, scorer: judge}}, {{kind: accuracy, scorer: exact}}]
"""

BUDGETED = """
name: shop
dataset: {{path: rows.jsonl, input: question, expected: answer}}
budget: {{cost: 1, currency: USD}}
run: {{concurrency: 1}}
tasks:
  cheap: {{function: "shop.py:cheap", version: "1"}}
scorers: {{exact: exact_match}}
metrics: [accuracy]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path)
    (tmp_path / "shop.py").write_text(CODE)
    return made


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Folder(tmp_path_factory.mktemp("finished"))
    (made.path / "shop.py").write_text(CODE)
    return run_once(made, made.experiment(text=EXPERIMENT))


@pytest.fixture
def shop(finished: Path, tmp_path: Path) -> Folder:
    """Where all tasks were run."""
    return Folder.copied(finished, tmp_path)


# Tokens and cost


def test_tokens_and_cost_are_shown_wherever_a_run_is(folder: Folder) -> None:
    said = folder.done("run", folder.experiment(text=EXPERIMENT), env={"COLUMNS": "200"})
    assert "6 requests, 600 input tokens, 30 output tokens, cost 1.50 USD\n" in said
    assert "6 requests, 600 input tokens, 300 output tokens, cost 10.00 USD and unknown for 1 of 6 rows\n" in said
    judged = "6 requests, 240 input tokens, 60 output tokens, cost 3.00 EUR"
    assert f"judge: {judged}\n" in said
    assert said.count(f"judge: nothing asked now (rows made earlier: {judged})\n") == 2  # the same answers
    assert said.count("requests") == 6  # nothing is said of what uses nothing; the last line is the total
    assert "this command: 18 requests, 1,440 input tokens, 390 output tokens, cost 3.00 EUR and 11.50 USD and" in said
    listed = folder.done("list", env={"COLUMNS": "200"})
    assert "6 completed; 630 tokens, 1.50 USD\n" in listed
    assert "judge: 6 scored; 300 tokens, 3.00 EUR\n" in listed
    shown = folder.done("show", "shop/dear", "--index", "1")
    assert "used        6 requests, 600 input tokens" in shown
    assert "used      1 request, 100 input tokens, 50 output tokens, cost unknown" in shown
    assert "used      1 request, 40 input tokens, 10 output tokens, cost 0.50 EUR" in folder.done(
        "show", "shop/dear", "--scorer", "judge"
    )


def test_comparisons_show_what_each_side_used(shop: Folder) -> None:
    said = shop.done("compare", "shop/cheap", "shop/dear").splitlines()
    lines = [line.split() for line in said if "·" in line and ("calls" in line or "· judge" in line)]
    assert ["A", "·", "calls", "6", "600", "30", "1.50", "USD"] in lines
    assert ["B", "·", "calls", "6", "600", "300", "10.00", "USD", "(5", "of", "6", "rows", "known)"] in lines
    assert ["B", "·", "judge", "6", "240", "60", "3.00", "EUR"] in lines
    first, second = shop.json("compare", "shop/cheap", "shop/free")["evaluations"]
    assert first["usage"]["run"]["cost"] == {"USD": 1.5}
    assert second["usage"].keys() == {"evaluation"}


def test_json_has_totals_and_rows(shop: Folder) -> None:
    results = shop.json("run", shop.path / "e.yaml")
    cheap, dear, free = (task["run"].get("usage") for task in results["tasks"])
    assert (cheap["cost"], cheap["without_cost"], dear["without_cost"], free) == ({"USD": 1.5}, 0, 1, None)
    entries = {entry["name"]: entry for entry in shop.json("list", "runs")}
    assert entries["shop/cheap"]["usage"] == cheap
    assert "usage" not in entries["shop/free"]


def test_exports_have_a_column_for_each_amount(shop: Folder) -> None:
    out = shop.path / "rows.jsonl.out"
    shop.done("export", "shop/dear", "--table", "responses", "--format", "jsonl", "--output", out)
    row = json.loads(out.read_text().splitlines()[0])
    assert (row["requests"], row["failed_requests"], row["cached_replies"]) == (1, 0, 0)
    assert (row["input_tokens"], row["cost"], row["currency"]) == (100, 2.0, "USD")


def test_the_report_has_a_table_of_tokens_and_cost(shop: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shop.path)
    shop.done("run", shop.path / "e.yaml", "--report")
    page = (shop.path / "shop.html").read_text()
    assert "<h3>Tokens and cost</h3>" in page
    assert "<td>10.00 USD (5 of 6 rows known)</td>" in page


def test_a_command_says_what_it_asked_and_what_reused_rows_took_when_they_were_made(folder: Folder) -> None:
    experiment = folder.experiment(text=EXPERIMENT)
    wide = {"COLUMNS": "250"}
    said = folder.done("run", experiment, "--limit", "2", "--task", "cheap", env=wide)
    assert "this command: 4 requests, 280 input tokens, 30 output tokens, cost 1.00 EUR and 0.50 USD\n" in said
    said = folder.done("run", experiment, "--task", "cheap", env=wide)
    assert (
        "4 requests, 400 input tokens, 20 output tokens, cost 1.00 USD (rows made earlier: 2 requests, 200 input"
        in said
    )
    assert "this command: 8 requests, 560 input tokens, 60 output tokens, cost 2.00 EUR and 1.00 USD\n" in said
    said = folder.done("run", experiment, "--task", "cheap", env=wide)
    assert "judge: nothing asked now (rows made earlier: 6 requests, 240 input tokens, 60 output tokens" in said
    assert "this command: nothing asked\n" in said
    results = folder.json("run", experiment)
    [cheap, dear, _] = results["tasks"]
    assert (cheap["run"]["receipt"]["usage"], cheap["run"]["usage"]["requests"]) == ({}, 6)
    assert dear["run"]["receipt"]["usage"]["requests"] == 6
    assert results["usage"]["requests"] == 6  # of dear, whose judgements are those of the same answers
    assert results["usage"]["cost"] == {"USD": 10.0}


def test_calls_in_processes_are_counted(folder: Folder) -> None:
    text = EXPERIMENT + "engine: {{kind: processes, workers: 1}}\n"
    said = folder.done("run", folder.experiment(text=text), "--task", "dear")
    assert "this command: 12 requests, 840 input tokens" in said


def test_a_resumed_run_says_what_it_asked_since(folder: Folder) -> None:
    folder.refused("run", folder.experiment(text=BUDGETED))
    said = folder.done("resume", "--budget", "2 USD", env={"COLUMNS": "250"})
    assert "2 requests, 200 input tokens, 10 output tokens, cost 0.50 USD (rows made earlier: 4 requests" in said
    assert "this command: 2 requests, 200 input tokens, 10 output tokens, cost 0.50 USD\n" in said


PROMPTED = """
from pathlib import Path
from evaluand import report_usage

def answer(question):
    prompt = Path("prompt.txt").read_text()
    report_usage(input_tokens=len(prompt), output_tokens=1, cost=len(prompt) / 100, currency="USD")
    return question
"""


def test_tokens_and_cost_are_those_of_the_run_that_has_the_name(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.path)
    (folder.path / "shop.py").write_text(PROMPTED)
    text = "name: shop\ndataset: {{path: rows.jsonl, input: question, expected: answer}}\n"
    text += "tasks: {{mine: {{function: 'shop.py:answer'}}}}\nscorers: exact_match\nmetrics: accuracy\n"
    for prompt in ("short", "a prompt that is longer"):
        (folder.path / "prompt.txt").write_text(prompt)
        folder.done("run", folder.experiment(text=text), "--report")
    page = (folder.path / "shop.html").read_text()
    assert "<td>1.38 USD</td>" in page
    assert "0.30 USD" not in page
    source, [run] = Source(folder.store), [ref.id for ref in folder.store.refs() if ref.kind == "runs"]
    [evaluation] = [ref.id for ref in folder.store.refs() if ref.kind == "evaluations"]
    assert f"columns/{run}/{evaluation}" in list_paths(source)
    assert json.loads(read_resource(source, f"card/evaluations/{evaluation}", {}))["used"] == "144 tokens, 1.38 USD"
    assert json.loads(read_resource(source, "results/shop", {}))["tasks"][0]["run"] == run


def test_the_report_and_lists_count_reused_rows_as_spent_once(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.path)
    experiment = folder.experiment(text=EXPERIMENT)
    folder.done("run", experiment, "--limit", "2", "--task", "cheap")
    folder.done("run", experiment, "--report")
    page = (folder.path / "shop.html").read_text()
    assert "without rows that were reused: 2.00 EUR and 11.00 USD and unknown for 1 of 30 rows.</p>" in page
    listed = folder.done("list", env={"COLUMNS": "200"})
    assert "6 completed; 630 tokens, 1.50 USD (spent 1.00 USD)\n" in listed
    assert "2 completed; 210 tokens, 0.50 USD\n" in listed


# Budgets


def test_a_spent_budget_says_how_to_go_on_and_loses_nothing(folder: Folder) -> None:
    experiment = folder.experiment(text=BUDGETED)
    said = folder.refused("run", experiment)
    assert "error: the budget of 1 USD is spent (1 USD); 4 of 6 are done\n" in said
    id = folder.id("runs")[:12]
    rest = "the rest will cost about 0.6 USD"  # two rows of 0.25, and a tenth
    assert (
        f"stopped: 4 of 6 done (shop/cheap); {rest}; continue with: evaluand resume {id} --budget '1.6 USD'\n" in said
    )
    assert "the budget of 1 USD is spent (1 USD); 4 of 6 are done" in folder.refused("resume", id)
    assert "(1.25 USD); 5 of 6" in folder.refused("resume", id, "--budget", "1.1 USD")
    assert "1 done now, 5 already stored" in folder.done("resume", id, "--budget", "2 USD")
    assert folder.store.manifest("runs", folder.id("runs"))["spent"] == {"USD": 1.5}


def test_the_budget_of_a_command_takes_the_place_of_that_of_the_file(folder: Folder) -> None:
    folder.done("run", folder.experiment(text=BUDGETED), "--budget", "1.75 USD")


def test_one_budget_is_for_all_tasks_and_judges_of_an_experiment(folder: Folder) -> None:
    said = folder.refused("run", folder.experiment(text=EXPERIMENT), "--budget", "7 USD")
    assert "a request cost 0.5 EUR, so the budget of 7 USD cannot count it; 1 of 6 are done" in said
    assert "; state all prices in USD, as no budget counts two currencies; continue with: " in said
    assert said.endswith("--budget 'AMOUNT EUR'\n")


def test_a_budget_in_another_currency_than_all_costs_says_which_to_give(folder: Folder) -> None:
    (folder.path / "shop.py").write_text(CODE.replace("USD", "EUR"))
    experiment = folder.experiment(text=BUDGETED)
    said = folder.refused("run", experiment)
    assert "a request cost 0.25 EUR, so the budget of 1 USD cannot count it" in said
    id = folder.id("runs")[:12]
    go_on = f"continue with: evaluand resume {id} --budget 'AMOUNT EUR'"
    assert f"; give the budget in EUR, or all prices in USD; {go_on}\n" in said
    folder.done("resume", id, "--budget", "1.5 EUR")


JUDGED = """
name: shop
dataset: {{path: rows.jsonl, input: question, expected: answer}}
budget: {{cost: 1, currency: USD}}
run: {{concurrency: 1, backoff: 0}}
tasks:
  cheap: {{function: "shop.py:cheap", version: "1"}}
scorers:
  right:
    kind: judge
    rubric: correctness
    model: {{model: "http://127.0.0.1:9/v1#judge", version: "1", price: {{input: 1, output: 1, currency: USD}}}}
metrics: [{{kind: mean, scorer: right}}]
"""


def test_no_budget_is_suggested_while_a_judge_that_has_a_price_was_not_asked(folder: Folder) -> None:
    said = folder.refused("run", folder.experiment(text=JUDGED))
    assert "stopped: 4 of 6 done (shop/cheap); nobody knows yet what the rest costs; continue with: " in said
    assert said.endswith("--budget 'AMOUNT USD'\n")


def test_the_costs_of_all_tasks_and_judges_add_up(folder: Folder) -> None:
    (folder.path / "shop.py").write_text(CODE.replace("EUR", "USD").replace("None if", "1.0 if"))
    experiment = folder.experiment(text=EXPERIMENT)
    said = folder.refused(
        "run", experiment, "--budget", "7 USD", "--gate", "accuracy(exact) >= 0", "--allow-unmeasured-judges"
    )
    assert "the budget of 7 USD is spent (7.5 USD); 2 of 6 are done" in said  # 4.5 for the first task and its judge
    [command] = re.findall("continue with: evaluand (.*)", said)
    options = "--gate 'accuracy(exact) >= 0' --allow-unmeasured-judges"
    # 4 rows of 1.5 and 6 judgements of 0.5; as much by row for the third task, which has not begun; and a tenth
    assert command == f"run {experiment} {options} --budget '31 USD'"
    assert "compare: evaluand compare shop/cheap shop/dear" in folder.done(*shlex.split(command))


def test_a_budget_that_is_spent_counts_all_tasks_when_one_is_resumed(folder: Folder) -> None:
    (folder.path / "shop.py").write_text(CODE.replace("EUR", "USD").replace("None if", "1.0 if"))
    folder.refused("run", folder.experiment(text=EXPERIMENT), "--budget", "7 USD")
    id = next(id for id in folder.store.ids("runs") if not folder.store.is_sealed("runs", id))[:12]
    said = folder.refused("resume", id, "--budget", "7 USD")
    assert "the budget of 7 USD is spent (7.5 USD); 2 of 6 are done" in said
    said = folder.refused("resume", id, "--budget", "10 USD")
    assert "the budget of 10 USD is spent (11.5 USD); 4 of 6 are done" in said


MATCHED = """
name: shop
dataset: {{path: rows.jsonl, input: question, expected: answer}}
budget: {{cost: 2, currency: USD}}
run: {{concurrency: 1}}
tasks:
  cheap: {{function: "shop.py:cheap", version: "1"}}
  loud: {{function: "shop.py:loud", version: "1"}}
scorers: {{exact: exact_match}}
metrics: [accuracy]
matches: shop.py:longer
"""


def test_resumed_matches_count_what_their_runs_have_cost(folder: Folder) -> None:
    with (folder.path / "shop.py").open("a") as file:
        file.write("""
def loud(question):
    return question + "!"

def longer(first, second):
    report_usage(cost=0.25, currency="USD")
    return "first" if len(first) > len(second) else "second"
""")
    said = folder.refused("run", folder.experiment(text=MATCHED))
    assert "the budget of 2 USD is spent (2 USD); 2 of 12 are done" in said
    id = folder.id("matches")[:12]
    assert "the budget of 2 USD is spent (2 USD); 2 of 12 are done" in folder.refused("resume", id)
    said = folder.refused("resume", id, "--budget", "3 USD")
    assert "the budget of 3 USD is spent (3 USD); 6 of 12 are done" in said


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        ("5", "budget: is 5; write an amount and its currency, such as 5 USD"),
        ("five dollars", "budget: is five dollars; write an amount and its currency, such as 5 USD"),
        ("{{cost: 5}}", "budget.currency: is missing; write currency: USD"),
        ("{{cost: -5, currency: USD}}", "budget.cost: is -5; give more than 0"),
    ],
)
def test_what_is_no_budget_is_a_fault_of_the_file(folder: Folder, budget: str, message: str) -> None:
    text = BUDGETED.replace("{{cost: 1, currency: USD}}", budget)
    assert message in folder.refused("run", folder.experiment(text=text))


def test_what_is_no_budget_is_refused_as_an_option(folder: Folder) -> None:
    said = folder.refused("run", folder.experiment(text=BUDGETED), "--budget", "5", code=2)
    assert "Invalid value for '--budget': is '5'; write an amount and its currency, such as '5 USD'" in said


# Prices


def test_all_faults_of_a_file_of_prices_are_reported_with_their_lines(folder: Folder) -> None:
    (folder.path / "prices.yaml").write_text(
        'prices:\n  "*":\n    small: {input: 1, outputs: 2}\n    large: {input: -1, output: 2}\n'
        "  host: 5\ncurency: EUR\n"
    )
    text = BUDGETED.replace("run:", "prices: prices.yaml\nrun:")
    said = folder.refused("run", folder.experiment(text=text))
    for fault in (
        "prices.yaml:3: prices.*.small.outputs: unknown key (did you mean 'output'?)",
        "prices.yaml:4: prices.*.large.input: is -1; give a number of at least 0",
        "prices.yaml:5: prices.host: is a number; give a mapping of models to prices",
        "prices.yaml:6: curency: unknown key (did you mean 'currency'?)",
    ):
        assert fault in said


# What to do next


def test_a_run_of_several_systems_names_the_commands_that_compare_and_report_them(folder: Folder) -> None:
    said = folder.done("run", folder.experiment(text=EXPERIMENT)).splitlines()
    report, compare = said[-2:]
    assert report.startswith("report: evaluand report shop")
    assert compare.startswith("compare: evaluand compare shop/cheap shop/dear")
    one = folder.done("run", folder.experiment(text=EXPERIMENT), "--task", "free")
    assert "\ncompare: " not in one
