"""What `evaluand run` does beside running: gates, grading again without calls, and damaged stores."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from evaluand import Comparison, Dataset, DirectoryStore, InMemoryTracer, Runner, TaskSpan, task
from evaluand.cli import main

EXPERIMENT = """
name: e
dataset: {path: data.jsonl}
tasks:
  base: app.py:base
  mine: app.py:mine
scorers: {same: app.py:same}
metrics: [accuracy]
"""
APP = """
import os

from pathlib import Path


def called():
    with open(Path(__file__).parent / "calls", "a") as log:
        log.write(".")


def base(text):
    called()
    return text.upper() if text < "h" else os.environ.get("NOTHING", text)


def mine(text):
    called()
    return text.upper()


def same(output, expected):
    return output == expected
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [{"input": letter, "expected": letter.upper()} for letter in "abcdefghij"]
    (tmp_path / "data.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "e.yaml").write_text(EXPERIMENT)
    return tmp_path


def call(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments, "--store", str(folder / "store")])


def run(folder: Path, *more: str) -> Result:
    return call(folder, "run", str(folder / "e.yaml"), *more)


def test_a_call_is_shown_under_the_name_that_its_task_has_in_every_trace(folder: Path) -> None:
    @task(name="answering")
    def answer(number: int, task_span: TaskSpan) -> int:
        with task_span.span("look up"):
            pass
        if number:
            task_span.log("number", number)  # so that the root has a row of its own
        return number

    tracer = InMemoryTracer()
    answer.run(0, tracer)
    Runner(DirectoryStore(folder / "store")).run(answer, Dataset.from_rows([{"input": 0}, {"input": 1}]), name="named")
    shown = call(folder, "show", "named").stdout
    named = re.findall(r"trace +(.*) [0-9.]+ [µm]?s", shown)
    assert named == [tracer.entries[0].name] * 2 == ["answering"] * 2


def test_gates_that_hold_let_a_run_pass(folder: Path) -> None:
    result = run(folder, "--gate", "accuracy >= 0.7", "--junit", str(folder / "gates.xml"))
    assert result.exit_code == 0, result.output
    suite = ElementTree.parse(folder / "gates.xml").getroot()
    assert [case.get("classname") for case in suite.iter("testcase")] == ["mine"]
    assert not list(suite.iter("failure"))


def test_a_gate_that_fails_is_exit_code_3_and_reported_after_the_values(folder: Path) -> None:
    result = run(folder, "--gate", "accuracy <= 0.9", "--json")
    assert result.exit_code == 3
    reported = json.loads(result.stdout)
    assert [(gate["subject"], gate["passed"]) for gate in reported["gates"]] == [("mine", False)]
    assert {row["task"]: row["value"] for row in reported["metrics"]} == {"base": 0.7, "mine": 1.0}


def test_one_task_is_the_baseline_of_the_others(folder: Path) -> None:
    assert run(folder, "--gate", "accuracy not worse than base by 0.1").exit_code == 0
    assert run(folder, "--gate", "accuracy not worse than mine by 0.1").exit_code == 3


def test_a_baseline_may_be_named_as_the_store_will_name_it(folder: Path) -> None:
    assert run(folder, "--gate", "accuracy not worse than e/base by 0.9").exit_code == 0


@pytest.mark.parametrize(
    ("options", "rules", "judged"),
    [
        ((), ["accuracy >= 0"], ["mine"]),
        ((), ["accuracy >= 0", "accuracy not worse than baseline by 1"], ["mine", "mine"]),
        ((), ["accuracy >= 0", "accuracy not worse than mine by 1"], ["base", "base"]),
        ((), ["accuracy not worse than mine by 1", "accuracy not worse than base by 1"], ["base", "mine"]),
        ((), ["accuracy not worse than earlier by 1", "accuracy >= 0"], ["base", "mine", "base", "mine"]),
        ((), ["accuracy not worse than e/base by 1"], ["mine"]),
        (("--task", "mine"), ["accuracy >= 0"], ["mine"]),
        (("--task", "base"), ["accuracy >= 0"], ["base"]),
        (("--task", "mine"), ["accuracy >= 0", "accuracy not worse than baseline by 1"], ["mine"]),
    ],
)
def test_gates_judge_the_candidates_and_not_the_baseline(
    folder: Path, options: tuple[str, ...], rules: list[str], judged: list[str]
) -> None:
    (folder / "earlier.yaml").write_text(
        EXPERIMENT.replace("name: e", "name: before").replace("  mine: app.py:mine\n", "")
    )
    assert call(folder, "run", str(folder / "earlier.yaml")).exit_code == 0
    rules = [rule.replace("earlier", "before/base") for rule in rules]
    (folder / "e.yaml").write_text(EXPERIMENT + f"gates: {json.dumps(rules)}\n")
    subjects = [gate["subject"] for gate in json.loads(run(folder, *options, "--json").stdout)["gates"]]
    assert subjects == judged


def test_a_report_of_a_file_has_the_gates_of_its_run(folder: Path) -> None:
    (folder / "e.yaml").write_text(EXPERIMENT + "gates: [accuracy >= 0.9, accuracy better than baseline]\n")
    ran = json.loads(run(folder, "--json").stdout)["gates"]
    shown = json.loads(call(folder, "report", str(folder / "e.yaml"), "-o", str(folder / "e.html"), "--json").stdout)[
        "gates"
    ]
    assert [(gate["gate"], gate["subject"], gate["result"]) for gate in shown] == [
        (gate["gate"], gate["subject"], gate["result"]) for gate in ran
    ]
    assert {gate["subject"] for gate in ran} == {"mine"}


def test_a_gate_that_is_none_is_refused_before_anything_is_called(folder: Path) -> None:
    result = run(folder, "--gate", "accuracy > > 1")
    assert result.exit_code == 1
    assert "accuracy > > 1" in result.stderr
    assert not (folder / "calls").exists()


@pytest.mark.parametrize("option", ["--gate", "--until"])
def test_a_gate_of_the_only_task_against_itself_is_refused_before_anything_is_called(folder: Path, option: str) -> None:
    rule = "accuracy(same) not worse than mine by 0.1 at 95% anytime"
    result = run(folder, "--task", "mine", option, rule)
    assert result.exit_code == 1
    assert f"gate '{rule}': compares an evaluation with itself; name another baseline" in result.stderr
    assert not (folder / "calls").exists()
    text = "".join(line for line in EXPERIMENT.splitlines(keepends=True) if "base" not in line)
    (folder / "e.yaml").write_text(f"{text}gates: ['{rule}']\n")
    result = run(folder)
    assert (result.exit_code, (folder / "calls").exists()) == (1, False)
    assert f"gates.0: gate '{rule}': compares an evaluation with itself" in result.stderr


def test_a_scorer_is_changed_without_calling_an_unpinned_task_again(folder: Path) -> None:
    assert run(folder).exit_code == 0
    (folder / "app.py").write_text(APP.replace("output == expected", "output.lower() == expected.lower()"))
    result = run(folder, "--no-calls", "--json")
    assert result.exit_code == 0, result.output
    assert {row["task"]: row["value"] for row in json.loads(result.stdout)["metrics"]} == {"base": 1.0, "mine": 1.0}
    assert len((folder / "calls").read_text()) == 20


def test_nothing_is_graded_again_that_was_never_run(folder: Path) -> None:
    result = run(folder, "--no-calls")
    assert result.exit_code == 1
    assert "no finished run is called 'e/base'" in result.stderr


@pytest.mark.parametrize(
    "options", [("--fresh", "--retry-failed"), ("--fresh", "--no-calls"), ("--junit", "gates.xml")]
)
def test_options_that_contradict_each_other_are_wrong_usage(folder: Path, options: tuple[str, ...]) -> None:
    assert run(folder, *options).exit_code == 2


# Damage


def test_verify_goes_on_behind_what_cannot_be_read(folder: Path) -> None:
    run(folder)
    first, second = sorted((folder / "store" / "runs").iterdir())
    (first / "manifest.json").write_text("{")
    (second / "manifest.json").unlink()
    result = call(folder, "verify", "--json")
    assert result.exit_code == 1
    reported = json.loads(result.stdout)
    broken = {artifact["id"] for artifact in reported["artifacts"] if artifact["kind"] == "runs" and artifact["faults"]}
    assert broken == {first.name, second.name}
    assert len(reported["artifacts"]) == 7


def test_a_damaged_name_is_reported_and_hides_no_other(folder: Path) -> None:
    run(folder)
    sorted((folder / "store" / "refs").iterdir())[0].write_text("garbage")
    result = call(folder, "verify")
    assert result.exit_code == 1
    assert "the name in this file cannot be read" in result.stdout
    assert call(folder, "list").exit_code == 0
    assert run(folder).exit_code == 0
    assert call(folder, "verify").exit_code == 0


def test_a_store_that_is_not_there_is_not_verified(folder: Path) -> None:
    result = call(folder, "verify")
    assert result.exit_code == 1
    assert "no such store" in result.stderr


@pytest.mark.parametrize(
    "gate",
    [
        "acuracy > 1",
        "accuracy(sane) > 1",
        "accuracy[topic=a] > 1",
        "accuracy > 90",
        "accuracy better than bse",
        "accuracy not worse than base by 5",
    ],
)
def test_a_gate_that_fits_nothing_is_reported_before_anything_is_called(folder: Path, gate: str) -> None:
    result = run(folder, "--gate", gate)
    assert result.exit_code == 1
    assert gate in result.stderr
    assert not (folder / "calls").exists()


def test_a_variable_holds_a_gate_on_each_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALUAND_RUN_GATE", "accuracy >= 0.1\naccuracy <= 0.9")
    reported = json.loads(run(folder, "--json").stdout)
    assert [gate["passed"] for gate in reported["gates"]] == [True, False]


def test_a_folder_that_is_not_there_is_reported_before_anything_is_called(folder: Path) -> None:
    assert run(folder, "--gate", "accuracy > 0", "--junit", str(folder / "none" / "x.xml")).exit_code == 2
    assert not (folder / "calls").exists()


FUNCTIONS = """
def share(truth, prediction):
    return float((truth == prediction).mean())

def crashing(truth, prediction):
    return 1 / 0
"""
FUNCTION_METRICS = """
name: labels
dataset: {path: rows.csv, id: x, input: x, expected: y}
tasks: {mine: {kind: recorded, path: answers.csv, by: id, key: x, response: {prediction: p}}}
scorers: {label: prediction}
metrics:
  - f1_macro
  - {kind: f2_weighted}
  - {function: m.py:share, name: right, direction: higher, range: [0, 1], bootstrap: 100}
  - m.py:crashing
"""


def test_names_and_functions_are_metrics_of_an_experiment_file(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(FUNCTIONS)
    (tmp_path / "e.yaml").write_text(FUNCTION_METRICS)
    (tmp_path / "rows.csv").write_text("x,y\n" + "".join(f"{x},{'abc'[x % 3]}\n" for x in range(12)))
    (tmp_path / "answers.csv").write_text("x,p\n" + "".join(f"{x},{'abca'[x % 4]}\n" for x in range(12)))
    done = run(tmp_path, "--gate", "right >= 0.1", "--gate", "f1Macro >= 0.1")
    assert (done.exit_code, done.stdout.count("passed")) == (0, 2), done.output
    for name in ("f1_macro", "f2_weighted", "right", "crashing"):
        assert f"{name} · " in done.stdout
    assert "crashing failed: ZeroDivisionError: division by zero (m.py:6)" in " ".join(done.stdout.split())
    assert call(tmp_path, "show", "labels", "--metric", "f1Macro").exit_code == 0
    unknown = call(tmp_path, "show", "labels", "--metric", "mae")
    assert "no metric is called 'mae'; there are f1_macro, f2_weighted, right, crashing" in unknown.stderr
    (tmp_path / "m.py").write_text(FUNCTIONS.replace("1 / 0", "0.5"))
    assert "crashing failed" not in run(tmp_path).stdout  # other code is another metric


def test_a_function_as_a_metric_has_values_and_the_tasks_are_compared_by_the_others(folder: Path) -> None:
    (folder / "app.py").write_text(APP + "\n\ndef share(values):\n    return values.mean()\n")
    metrics = "metrics: [accuracy, {function: app.py:share, version: '1'}]"
    (folder / "e.yaml").write_text(EXPERIMENT.replace("metrics: [accuracy]", metrics))
    result = run(folder)
    assert result.exit_code == 0, result.output or repr(result.exception)
    assert re.findall(r"share · same +(\S+)", result.stdout)[:2] == ["0.700", "1.000"]
    store = DirectoryStore(folder / "store")
    [compared] = (Comparison(store, id) for id in store.ids("comparisons"))
    assert [pair["metric"] for pair in compared.pairs] == ["accuracy"]
    assert [one["reason"] for one in compared.left_out] == ["its differences have no interval"]
    refused = run(folder, "--gate", "share not worse than base by 0.1")
    assert refused.exit_code == 1
    assert "has no differences with an interval; compare by another metric" in refused.stderr
