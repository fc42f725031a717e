"""`evaluand suite`: many problems, the same systems."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from support.forks import end_fork, start_fork
from support.json_schemas import jsonschema

from evaluand import Accuracy, Dataset, DirectoryStore, Measure, Policy, ServiceTask, SpecError
from evaluand.cli import main
from evaluand.experiment import Experiment, Suite, suite_json_schema

APP = """
import threading
import time

from pathlib import Path

LOCK = threading.Lock()
HERE = Path(__file__).parent


def called(text):
    with open(HERE / "calls", "a") as log:
        log.write(text + "\\n")


def right(text):
    called(text)
    return text.upper()


def half(text):
    called(text)
    return text.upper() if ord(text[-1]) % 2 else text


def broken(text):
    raise ValueError("no answer <b>[red]")


def odd(text):
    called(text)
    if ord(text[-1]) % 2:
        raise ValueError("odd")
    return text.upper()


def locked(text):
    with LOCK:
        return text.upper()


def slow(text):
    called(text)
    time.sleep(0.05)
    return text.upper()
"""
PROBLEM = "{dataset: %s.jsonl, scorers: exact_match, metrics: accuracy}"
RIGHT, HALF = (f"{{function: app.py:{name}, version: x}}" for name in ("right", "half"))  # whose code need not be read
NAMES = ("a", "b", "c", "d", "e", "f")


def write_inputs(folder: Path) -> Path:
    (folder / "app.py").write_text(APP)
    for name in NAMES:
        rows = [{"input": f"{name}{letter}", "expected": f"{name}{letter}".upper()} for letter in "abcdefgh"]
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_inputs(tmp_path)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two systems have answered six problems; what the command printed is in a file."""
    folder, before = write_inputs(tmp_path_factory.mktemp("finished")), sys.path[:]
    write_suite(folder)
    (folder / "printed").write_text(suite(folder).stdout)
    sys.path[:] = before
    return folder


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    """A folder as that one was left, which the test may change."""
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    return tmp_path


def write_suite(
    folder: Path, tasks: str = f"{{right: {RIGHT}, half: {HALF}}}", further: str = "", **problems: str
) -> Path:
    entries = problems or {name: PROBLEM % name for name in NAMES}
    lines = "".join(f"  {json.dumps(name)}: {entry}\n" for name, entry in entries.items())
    path = folder / "suite.yaml"
    path.write_text(f"name: letters\ntasks: {tasks}\nproblems:\n{lines}{further}\n")
    return path


def call(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments, "--store", str(folder / "store")])


def suite(folder: Path, *arguments: str) -> Result:
    return call(folder, "suite", str(folder / "suite.yaml"), *arguments)


def facts_of(folder: Path, code: int = 0) -> dict[str, object]:
    result = suite(folder, "--json")
    assert result.exit_code == code, result.output
    facts: dict[str, object] = json.loads(result.stdout)
    return facts


def calls(folder: Path) -> list[str]:
    return (folder / "calls").read_text().split()


def test_scores_ranks_means_and_cost_are_shown(finished: Path) -> None:
    facts = facts_of(finished)
    assert [each["value"] for each in facts["problems"][0]["values"]] == [1.0, 0.5]
    assert [each["mean_rank"] for each in facts["ranks"]["systems"]] == [1.0, 2.0]
    assert (facts["ranks"]["test"], facts["ranks"]["p"]) == ("wilcoxon", 2 / 2**6)
    assert facts["macro"]["best"] == "right"
    half = facts["macro"]["systems"][1]
    assert half["difference"] == -0.5
    assert half["difference_low"] < -0.5 < half["difference_high"] < 0
    assert facts["cost"][0]["calls"]["cost"] == {}
    table = (finished / "printed").read_text()
    assert "1.000 (0.676 to 1.000) *" in table
    assert "Wilcoxon signed-rank test over problems: p = 0.031 (exact); the systems differ" in table
    assert table.count("unknown") == 6  # cost and tokens of both


def test_a_second_call_computes_nothing_again_and_prints_the_same(finished: Path, copied: Path) -> None:
    made = calls(copied)
    assert suite(copied).stdout == (copied / "printed").read_text().replace(str(finished), str(copied))
    assert calls(copied) == made


def test_problems_are_ordinary_experiments(copied: Path) -> None:
    assert "letters/a" in call(copied, "show", "letters/a").stdout
    assert "right" in call(copied, "compare", "letters/b").stdout
    result = call(copied, "report", "letters/c", "-o", str(copied / "c.html"))
    assert result.exit_code == 0, result.output


@pytest.mark.slow
def test_what_was_stored_before_a_kill_is_not_computed_again(folder: Path) -> None:
    write_suite(folder, "{slow: app.py:slow}", "run: {concurrency: 1}")
    process = start_fork(lambda: suite(folder))
    deadline = time.monotonic() + 60
    while not (folder / "calls").exists() or len(calls(folder)) < 12:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(process, signal.SIGKILL)
    end_fork(process)
    facts_of(folder)
    assert len({*calls(folder)}) == 8 * len(NAMES)
    assert len(calls(folder)) <= 8 * len(NAMES) + 1  # only the call in flight is repeated


def test_a_system_that_fails_leaves_the_scores_of_the_others(folder: Path) -> None:
    write_suite(folder, further="run: {same_failures: 3}", tasks=f"{{right: {RIGHT}, broken: app.py:broken}}")
    (folder / "c.jsonl").write_text(json.dumps({"input": "ca", "expected": "CA"}))
    result = suite(folder)
    assert result.exit_code == 1
    assert "broken failed on a, b, d and 2 more: the first 3 calls failed" in result.stdout
    assert "broken failed on c: all 1 call failed: ValueError: no answer <b>[red]" in result.stdout
    assert result.output.count("the first 3 calls failed") == 1
    assert "error: broken failed on a, b, d and 2 more\n" in result.stderr
    assert "a, b, c and 3 more are left out of ranks and means: no value of broken" in result.stdout
    assert "no mean over problems: no problem has a value of every system" in result.stdout
    assert "the cost of broken is without a, b, d and 2 more" in result.stdout
    facts = facts_of(folder, code=1)
    states = [[(each["value"], each["state"]) for each in problem["values"]] for problem in facts["problems"]]
    assert states == [[(1.0, "scored"), (None, "failed")]] * len(NAMES)
    assert facts["absent"][0]["problems"] == ["a", "b", "d", "e", "f"]


def test_problems_that_every_system_has_answered_are_ranked_and_averaged(folder: Path) -> None:
    (folder / "app.py").write_text(APP + "\n\ndef fussy(text):\n    return half(text) if text[0] != 'a' else 1 / 0\n")
    problems = {name: PROBLEM % name for name in "abc"}
    write_suite(folder, "{right: app.py:right, fussy: app.py:fussy}", "run: {same_failures: 3}", **problems)
    facts = facts_of(folder, code=1)
    assert [problem["left_out"] for problem in facts["problems"]] == ["no value of fussy", None, None]
    assert facts["problems"][0]["values"][0]["value"] == 1.0
    assert (facts["ranks"]["problems"], facts["macro"]["problems"]) == (2, 2)
    assert [each["value"] for each in facts["macro"]["systems"]] == [1.0, 0.5]
    assert "letters/b" in call(folder, "show", "letters/b").stdout
    (folder / "app.py").write_text(APP + "\n\ndef fussy(text):\n    return half(text)\n")
    assert facts_of(folder)["ranks"]["problems"] == 3


def test_a_problem_that_fails_as_a_whole_leaves_the_others(folder: Path) -> None:
    (folder / "app.py").write_text(APP + "\n\ndef prefer(first, second):\n    raise ValueError('no verdict')\n")
    matches = "matches: {judge: {function: app.py:prefer, version: x}}"
    write_suite(folder, a=(PROBLEM % "a")[:-1] + f", {matches}}}", b=PROBLEM % "b", further="run: {same_failures: 2}")
    result = suite(folder)
    assert result.exit_code == 1
    assert "a failed: the first 2 calls failed" in result.stdout
    assert "error: a failed\n" in result.stderr


def test_a_server_that_cannot_be_reached_is_asked_on_one_problem_alone(folder: Path) -> None:
    down = '{kind: service, url: "http://127.0.0.1:9/answer"}'
    write_suite(folder, f"{{right: {RIGHT}, down: {down}}}", "run: {same_failures: 3, retries: 0}")
    result = suite(folder)
    assert result.exit_code == 1
    assert "down failed on a: the first 3 calls failed" in result.stdout
    assert "down was not run on b, c, d and 2 more: its server could not be reached on a" in result.stdout
    facts = facts_of(folder, code=1)
    assert [problem["values"][1]["state"] for problem in facts["problems"]] == ["failed", *["not run"] * 5]
    assert {problem["values"][0]["value"] for problem in facts["problems"]} == {1.0}


def test_another_server_of_a_system_is_asked_although_the_first_one_cannot_be_reached() -> None:
    def problem(port: int) -> Experiment:
        rows = [{"input": str(n), "expected": str(n)} for n in range(4)]
        tasks = {"asked": ServiceTask(url=f"http://127.0.0.1:{port}/answer")}
        policy = Policy(same_failures=2, retries=0)
        same = {"same": lambda output, expected: output == expected}
        return Experiment("any", Dataset.from_rows(rows), tasks, same, [Measure("same", Accuracy())], policy)

    found = Suite("mine", {"a": problem(9), "b": problem(9), "c": problem(11)}).run().to_dict()
    assert [each["values"][0]["state"] for each in found["problems"]] == ["failed", "not run", "failed"]


def test_all_faults_of_all_files_are_listed_before_the_first_call(folder: Path) -> None:
    (folder / "d.yaml").write_text("dataset: d.jsonl\nscorers: exact_match\nmetrics: acuracy\ntasks: {x: y}\n")
    write_suite(
        folder,
        "{right: app.py:rigth, half: app.py:half}",
        "colour: red",
        a=PROBLEM % "missing",
        b="nowhere.yaml",
        d="d.yaml",
        e="3",
    )
    result = suite(folder)
    assert result.exit_code == 1
    text = result.stderr.replace(f"{folder}/", "")
    assert "suite.yaml:2: tasks.right: app.py has no 'rigth' (did you mean 'right'?)" in text
    assert text.count("rigth") == 1
    assert "suite.yaml:4: problems.a.dataset.path: " in text
    assert "suite.yaml:5: problems.b: " in text
    assert "d.yaml:3: metrics.0" in text
    assert "d.yaml:4: tasks: are those of the suite; leave them out here" in text
    assert "suite.yaml:7: problems.e: is neither a file nor a mapping" in text
    assert "suite.yaml:8: colour: unknown key" in text
    assert not (folder / "calls").exists()
    found = call(folder, "validate", str(folder / "suite.yaml"), "--json")
    assert found.exit_code == 1
    assert len(json.loads(found.stdout)["faults"]) == 7


def test_a_name_that_occurs_twice_is_a_fault(folder: Path) -> None:
    path = write_suite(folder, a=PROBLEM % "a")
    path.write_text(path.read_text() + f"  a: {PROBLEM % 'b'}\n")
    assert "problems.a: occurs twice" in suite(folder).stderr


def test_paths_of_a_problem_are_relative_to_its_file_and_those_of_tasks_to_the_suite(folder: Path) -> None:
    below = folder / "below"
    below.mkdir()
    (folder / "a.jsonl").rename(below / "a.jsonl")
    (below / "a.yaml").write_text("name: alone\ndataset: a.jsonl\nscorers: exact_match\nmetrics: accuracy\n")
    write_suite(folder, a="below/a.yaml")
    assert facts_of(folder)["problems"][0]["values"][0]["value"] == 1.0


def test_recorded_outputs_are_found_by_the_name_of_the_problem(folder: Path) -> None:
    for name in "ab":
        rows = [{"said": f"{name}{letter}".upper() if letter < "e" else ""} for letter in "abcdefgh"]
        (folder / f"said-{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    write_suite(
        folder,
        '{said: {kind: recorded, path: "said-{problem}.jsonl", response: said}, right: app.py:right}',
        **{name: PROBLEM % name for name in "ab"},
    )
    assert {problem["values"][0]["value"] for problem in facts_of(folder)["problems"]} == {0.5}


def test_scores_on_different_scales_are_ranked_and_not_averaged(copied: Path) -> None:
    problems = {name: PROBLEM % name for name in NAMES}
    problems["a"] = "{dataset: a.jsonl, scorers: exact_match, metrics: [{kind: mean, range: [0, 2]}]}"
    write_suite(copied, **problems)
    facts = facts_of(copied)
    assert facts["macro"]["systems"] == []
    assert "different scales: mean from 0 to 2 (a), accuracy from 0 to 1 (b)" in facts["macro"]["reason"]
    assert facts["ranks"]["test"] == "sign"
    write_suite(copied, further="macro_mean: true", **{name: problems[name] for name in "ab"})
    assert [each["value"] for each in facts_of(copied)["macro"]["systems"]] == [1.0, 0.5]


def test_a_problem_may_have_its_own_score_and_lower_may_be_better(folder: Path) -> None:
    both = "[accuracy, {kind: mean, direction: lower, range: [0, 1]}]"
    problems = {name: f"{{dataset: {name}.jsonl, scorers: exact_match, metrics: {both}}}" for name in "ab"}
    problems["b"] = problems["b"][:-1] + ", score: mean}"
    write_suite(folder, further="score: accuracy", **problems)
    facts = facts_of(folder)
    assert [[each["rank"] for each in problem["values"]] for problem in facts["problems"]] == [[1.0, 2.0], [2.0, 1.0]]
    assert facts["macro"]["reason"] == "higher scores are better on some problems, and lower ones on others"
    write_suite(folder, further="score: f1", **problems)
    assert "problem a has no f1; it has accuracy of exact_match, mean of exact_match" in suite(folder).stderr


def test_systems_that_answer_only_some_rows_are_shown_with_their_number(folder: Path) -> None:
    (folder / "app.py").write_text(APP + "\n\ndef some(text):\n    return right(text) if text[-1] < 'g' else 1 / 0\n")
    write_suite(folder, "{right: app.py:right, some: app.py:some}", a=PROBLEM % "a", b=PROBLEM % "b")
    table = suite(folder).stdout
    assert "1.000 (0.610 to 1.000) [6/8] *" in table
    advice = "`missing: wrong` at the metric counts the others as wrong"
    assert "[scored/all]: the other rows failed or abstained" in table
    assert advice in table
    page = folder / "page.html"
    markdown = suite(folder, "--markdown", "--html", str(page)).stdout
    for text in (markdown.replace("\\", ""), page.read_text()):
        assert "[6/8]" in text
        assert advice in text
    counts = [(each["n_scored"], each["n"]) for each in facts_of(folder)["problems"][0]["values"]]
    assert counts == [(8, 8), (6, 8)]


def test_rows_that_count_as_wrong_need_no_advice(folder: Path) -> None:
    (folder / "app.py").write_text(APP + "\n\ndef some(text):\n    return right(text) if text[-1] < 'g' else 1 / 0\n")
    strict = "{dataset: a.jsonl, scorers: exact_match, metrics: [{kind: accuracy, missing: wrong}]}"
    write_suite(folder, tasks="{right: app.py:right, some: app.py:some}", a=strict)
    table = suite(folder).stdout
    assert "0.750" in table
    assert "[6/8]" in table
    assert "counts the others as wrong" not in table


def test_a_run_that_two_problems_share_is_paid_once(folder: Path) -> None:
    stricter = "{dataset: a.jsonl, scorers: {other: exact_match}, metrics: accuracy}"
    write_suite(folder, a=PROBLEM % "a", b=stricter)
    assert [cost["rows"] for cost in facts_of(folder)["cost"]] == [8, 8]
    assert len(calls(folder)) == 16


def test_systems_of_a_problem_are_compared_by_their_names(folder: Path) -> None:
    write_suite(folder, a=PROBLEM % "a")
    suite(folder)
    compared = call(folder, "compare", "letters/a/half", "letters/a/right")
    assert compared.exit_code == 0, compared.output
    assert call(folder, "compare", "letters/a/half", "letters/a/none").exit_code == 1


def test_gates_of_the_problems_count(folder: Path) -> None:
    write_suite(folder, a=(PROBLEM % "a")[:-1] + ", gates: [accuracy >= 0.9]}", b=PROBLEM % "b")
    result = suite(folder, "--junit", str(folder / "gates.xml"))
    assert result.exit_code == 3
    assert "a/half" in result.stdout
    assert 'failures="1"' in (folder / "gates.xml").read_text()
    write_suite(folder, a=(PROBLEM % "a")[:-1] + ", gates: [f1 better than nothing]}")
    assert "problems.a" in suite(folder).stderr
    write_suite(folder, a=PROBLEM % "a")
    assert "--junit needs gates: in a problem" in suite(folder, "--junit", str(folder / "gates.xml")).stderr


def test_gates_that_need_a_system_without_results_fail(folder: Path) -> None:
    gates = 'gates: ["accuracy >= 0.9", "accuracy better than broken"]'
    tasks = "{right: app.py:right, broken: app.py:broken}"
    write_suite(folder, tasks, "run: {same_failures: 3}", a=(PROBLEM % "a")[:-1] + f", {gates}}}")
    result = suite(folder, "--junit", str(folder / "gates.xml"))
    assert result.exit_code == 1
    assert 'tests="2" failures="1"' in (folder / "gates.xml").read_text()
    assert "UNDECIDED  accuracy better than broken  a/right\n           undefined: no result of broken" in result.stdout


@pytest.mark.parametrize(
    ("further", "rules", "judged"),
    [
        ("", ["accuracy >= 0"], ["half"]),
        ("control: half", ["accuracy >= 0", "accuracy not worse than baseline by 1"], ["right", "right"]),
        ("", ["accuracy >= 0", "accuracy not worse than half by 1"], ["right", "right"]),
    ],
)
def test_gates_judge_the_candidates_and_not_the_baseline(
    folder: Path, further: str, rules: list[str], judged: list[str]
) -> None:
    write_suite(folder, further=further, a=(PROBLEM % "a")[:-1] + f", gates: {json.dumps(rules)}}}")
    gates = json.loads(suite(folder, "--json").stdout)["gates"]
    assert [gate["subject"] for gate in gates] == [f"a/{system}" for system in judged]


def test_a_gate_with_results_of_its_baseline_alone_is_undecided(folder: Path) -> None:
    tasks, gates = "{right: app.py:right, broken: app.py:broken}", 'gates: ["accuracy better than right"]'
    write_suite(folder, tasks, "run: {same_failures: 3}", a=(PROBLEM % "a")[:-1] + f", {gates}}}")
    result = suite(folder)
    assert result.exit_code == 1
    assert "UNDECIDED  accuracy better than right  a/broken\n           undefined: no result of broken" in result.stdout


def test_one_problem_and_one_system_have_no_test_but_a_sentence(folder: Path) -> None:
    write_suite(folder, "{right: app.py:right}", a=PROBLEM % "a")
    result = suite(folder)
    assert result.exit_code == 0
    assert "no test of the ranks: one system has no other to be compared with" in result.stdout


def test_names_are_shown_as_they_are(folder: Path) -> None:
    write_suite(folder, '{"<i>x</i>/[red]": app.py:right, half: app.py:half}', **{"p/<b>[bold]|": PROBLEM % "a"})
    page = folder / "page.html"
    result = suite(folder, "--html", str(page))
    assert result.exit_code == 0, result.output
    assert "p/<b>[bold]|" in result.stdout
    html = page.read_text()
    assert "<i>x" not in html
    assert "<b>[" not in html
    assert "&lt;i&gt;x" in html
    assert r"\<b\>\[bold\]\|" in suite(folder, "--markdown").stdout


def test_names_with_special_characters_are_shown_and_understood_as_written(folder: Path) -> None:
    path = write_suite(folder, '{"so/me": app.py:right, half: app.py:half}', **{"50 %/x": PROBLEM % "a"})
    path.write_text(path.read_text().replace("name: letters", "name: my/letters"))
    result = suite(folder)
    assert "evaluand show 'my/letters/50 %/x'" in result.stdout
    listed = call(folder, "list", "aggregations").stdout
    assert "my/letters/50 %/x" in listed
    for text in (result.output, listed):
        assert "%2" not in text
    for name in ("my/letters/50 %/x", "my/letters/50 %/x/half"):
        shown = call(folder, "show", name)
        assert shown.exit_code == 0, shown.output
        assert name in shown.stdout
    compared = call(folder, "compare", "my/letters/50 %/x/half", "my/letters/50 %/x/so/me")
    assert compared.exit_code == 0, compared.output


def test_the_page_needs_no_network_and_shows_who_does_not_differ(copied: Path) -> None:
    tasks = f"{{right: {RIGHT}, also: app.py:right, half: {HALF}}}"
    write_suite(copied, tasks)
    page = copied / "page.html"
    suite(copied, "--html", str(page))
    html = page.read_text()
    assert "default-src 'none'" in html
    assert " src=" not in html
    assert 'class="tick" x="160.0" y="16">1<' in html
    diagram = html[html.index('<svg class="plane"') :].partition("</svg>")[0]
    assert diagram.count('class="line s0"') == 1  # right and also
    assert "half 3" in diagram


def test_the_plan_calls_nothing(folder: Path) -> None:
    write_suite(folder)
    result = suite(folder, "--plan")
    assert "plan   a, right: 8 of 8 calls to make" in result.stdout
    assert "plan   a, right: 8 of 8 calls to make" in call(folder, "validate", str(folder / "suite.yaml")).stdout
    assert not (folder / "calls").exists()
    access = call(folder, "validate", str(folder / "suite.yaml"), "--access").stdout
    assert access == "import app.py: tasks.right, tasks.half\n"


def test_the_plan_counts_the_calls_of_the_same_options(folder: Path) -> None:
    write_suite(folder, "{right: app.py:right, odd: app.py:odd}", a=PROBLEM % "a")
    assert "plan   a, right: 3 of 3 calls to make" in suite(folder, "--limit", "3", "--plan").stdout
    suite(folder)
    assert "plan   a, odd: 0 of 8 calls to make, 8 already stored" in suite(folder, "--plan").stdout
    planned = suite(folder, "--retry-failed", "--plan").stdout
    assert "plan   a, right: 0 of 8 calls to make, 8 already stored" in planned
    assert "plan   a, odd: 4 of 8 calls to make, 4 reused (failures tried again)" in planned
    planned = suite(folder, "--fresh", "--plan").stdout
    assert "right: 8 of 8 calls to make\n" in planned
    assert "odd: 8 of 8 calls to make\n" in planned
    (folder / "calls").unlink()
    suite(folder, "--retry-failed")
    assert len((folder / "calls").read_text().split()) == 4
    assert "--no-calls there are none" in suite(folder, "--no-calls", "--plan").output


def test_a_task_that_is_called_again_each_time_is_named_once_with_the_reason(folder: Path) -> None:
    write_suite(folder, "{locked: app.py:locked}", a=PROBLEM % "a", b=PROBLEM % "b")
    for arguments in ((), ("--plan",)):
        result = suite(folder, *arguments)
        assert result.stderr.count("note: task locked is unpinned, so every run calls it again: app.LOCK") == 1
    assert "a, locked: 8 of 8 calls to make (unpinned)" in result.stdout
    assert "unpinned" not in suite(folder, "--no-calls").stderr


def test_run_and_resume_lead_to_the_suite(folder: Path) -> None:
    path = write_suite(folder)
    assert "evaluand suite FILE" in call(folder, "run", str(path)).stderr


def test_the_schema_accepts_suites(folder: Path) -> None:
    path = write_suite(folder, further="score: accuracy\nmacro_mean: false\nseed: 1", b="b.yaml", a=PROBLEM % "a")
    schema = jsonschema.Draft202012Validator(made := suite_json_schema())
    assert schema.is_valid(yaml.safe_load(path.read_text()))
    assert not schema.is_valid({"name": "x", "tasks": {}, "problems": {}})
    assert not schema.is_valid(yaml.safe_load(path.read_text()) | {"colour": "red"})
    assert json.loads(call_without_store("schema", "show", "suite").stdout) == made


def call_without_store(*arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments])


def test_in_python_problems_need_the_same_systems(folder: Path) -> None:
    (folder / "e.yaml").write_text(
        "name: e\ndataset: a.jsonl\nscorers: exact_match\nmetrics: accuracy\ntasks: {right: app.py:right}\n"
    )
    one = Experiment.from_file(folder / "e.yaml")
    found = Suite("mine", {"a": one}).run(DirectoryStore(folder / "store"))
    assert found.problems[0].experiment == "mine/a"
    assert "mean rank over 1 problem" in str(found)
    other = Experiment("b", one.dataset, {**one.tasks, "other": str.upper}, one.scorers, one.measures)
    with pytest.raises(SpecError, match=r"problems\.b has the tasks right, other"):
        Suite("mine", {"a": one, "b": other})
