"""`evaluand grade`: further scorers and judges of what is stored or logged, as a user types it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.chat_answers import ChatServer
from support.commands import Folder, run_once
from support.foreign_results import write_eval, write_promptfoo, write_spans

from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.sample import draw_sample
from evaluand.run.runner import Run

SCORERS = """
def brief(output):
    return len(output) < 8

def asked_and_answered(asked, answered):
    return float(len(asked) + len(answered))
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Folder(tmp_path_factory.mktemp("finished"))
    (folder.path / "scorers.py").write_text(SCORERS)
    return run_once(folder, folder.experiment())


@pytest.fixture
def folder(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    return Folder.copied(finished, tmp_path)


@pytest.fixture
def judge() -> Iterator[ChatServer]:
    """Finds every answer correct that has a number."""

    def verdict(asked: dict[str, Any]) -> str:
        is_number = "about" in asked["messages"][-1]["content"]
        return json.dumps({"reasons": "It counts.", "verdict": "correct" if is_number else "incorrect"})

    with ChatServer(verdict) as server:
        yield server


def model_of(judge: ChatServer) -> str:
    return f"{{url: {judge.url}, name: small, version: '1'}}"


def evaluation(folder: Folder, name: str) -> Evaluation:
    return Evaluation.open(folder.store, name)


def statuses(folder: Folder, name: str, scorer: str) -> list[str]:
    found: list[str] = evaluation(folder, name).table(scorer)["status"].to_pylist()
    return found


# Of the six rows "mine" doubles 0, 1, 2 and 5 ("about 0" …), fails on 3, and has no idea of 4.


@pytest.mark.parametrize("source", ["doubling/mine", "doubling", "the id of the run", "the id of the evaluation"])
def test_new_scores_stay_beside_those_that_there_are(folder: Folder, source: str) -> None:
    ids = {"the id of the run": folder.id("runs"), "the id of the evaluation": folder.id("evaluations")}
    before = evaluation(folder, "doubling/mine")
    facts = folder.json("grade", ids.get(source, source), "--scorer", "scorers.py:brief")
    after = evaluation(folder, "doubling/mine")
    assert after.counts == {**before.counts, "brief": {"failed": 1, "scored": 5}}
    assert after.table("number").equals(before.table("number"))
    values = {(row["scorer"], row["metric"]): row["value"] for row in facts["metrics"] if not row["by"]}
    assert values == {("number", "accuracy"): 1.0, ("brief", "mean"): 0.8}  # "about 10" is not brief
    assert (facts["aggregation"]["name"] == "doubling") == (source == "doubling")


def test_nothing_is_graded_twice_and_the_evaluation_is_that_of_an_experiment_with_all_scorers(folder: Folder) -> None:
    folder.done("grade", "doubling/mine", "--scorer", "scorers.py:brief")
    graded = evaluation(folder, "doubling/mine").id
    assert "nothing to do: the same responses were graded" in folder.done(
        "grade", "doubling/mine", "--scorer", "scorers.py:brief"
    )
    text = (folder.path / "e.yaml").read_text().replace("metrics:", "  brief: scorers.py:brief\nmetrics:")
    (folder.path / "e.yaml").write_text(text)
    assert "nothing to do: the same responses were graded" in folder.done("run", "e.yaml")
    assert evaluation(folder, "doubling/mine").id == graded


def test_a_judge_is_asked_once_about_each_answer(folder: Folder, judge: ChatServer) -> None:
    words = ["grade", "doubling/mine", "--judge", "correctness", "--model", model_of(judge)]
    facts = folder.json(*words)
    assert len(judge.asked) == 5  # the failed row has no answer
    assert [row["value"] for row in facts["metrics"] if row["scorer"] == "correctness"] == [0.8]
    assert facts["usage"]["requests"] == 5
    folder.done(*words)
    folder.done(*words, "--scorer", "exact_match")
    assert len(judge.asked) == 5
    assert "correctness" in folder.done("show", "doubling/mine", "--scorer", "correctness", "--rubric")
    folder.done(*words, "--fresh")
    assert len(judge.asked) == 10


def test_a_sample_is_drawn_by_its_seed_and_the_rest_is_skipped(folder: Folder, judge: ChatServer) -> None:
    words = ["grade", "doubling/mine", "--judge", "correctness", "--model", model_of(judge)]
    shown = folder.done(*words, "--sample", "3", "--seed", "7")
    chosen = draw_sample(Run.open(folder.store, "doubling/mine"), 3, seed=7).chosen.tolist()
    assert [status != "skipped" for status in statuses(folder, "doubling/mine", "correctness")] == chosen
    assert "correctness 3 skipped not in the sample: 3 of 6 rows, seed 7" in " ".join(shown.split())
    n_asked = len(judge.asked)
    folder.done(*words, "--sample", "50%", "--seed", "7")  # the same rows
    assert len(judge.asked) == n_asked
    folder.done(*words)
    assert len(judge.asked) == 5
    assert "the scores of more rows stay in evaluation" in folder.call(*words, "--sample", "3").stderr


ROWS = {
    "--where question<2": ["scored", "scored", "skipped", "skipped", "skipped", "skipped"],
    "--where parity=='odd'": ["skipped", "scored", "skipped", "failed", "skipped", "scored"],
    "--failed": ["skipped", "skipped", "skipped", "failed", "scored", "skipped"],
    "--where value==0": ["scored", "scored", "scored", "skipped", "scored", "scored"],  # by the scorer label
    "--where scorer=='number'and(value==1)": ["scored", "scored", "scored", "skipped", "skipped", "scored"],
    "--where parity=='even' --sample 1.0": ["scored", "skipped", "scored", "skipped", "scored", "skipped"],
}


@pytest.mark.parametrize("rule", ROWS)
def test_rows_are_chosen_as_they_are_shown(folder: Folder, rule: str) -> None:
    folder.done("grade", "doubling/mine", "--scorer", "scorers.py:brief", *rule.split(" "))
    assert statuses(folder, "doubling/mine", "brief") == ROWS[rule]


FILES = {
    "an experiment": "name: other\ndataset: none.csv\ntasks: {it: gone.py:it}\nscorers: {brief: scorers.py:brief}\n"
    "metrics: [{kind: mean, by: [parity]}]\ngates: [mean > 2]\n",
    "scorers and metrics": "scorers: {brief: scorers.py:brief}\nmetrics: [{kind: mean, by: [parity]}]\n",
    "scorers alone": "brief: scorers.py:brief\n",
    "a list of scorers": "scorers: [scorers.py:brief]\nrun: {replications: 3, concurrency: 2}\n",
}


@pytest.mark.parametrize("kind", FILES)
def test_scorers_of_a_file_grade_with_its_metrics(folder: Folder, kind: str) -> None:
    (folder.path / "s.yaml").write_text(FILES[kind])
    graded = folder.call("grade", "doubling/mine", "--scorers", "s.yaml", "--json")
    assert "note:" not in graded.stderr
    rows = [row["by"] for row in json.loads(graded.stdout)["metrics"] if row["scorer"] == "brief"]
    assert rows == ([{}, {"parity": "even"}, {"parity": "odd"}] if "metrics" in FILES[kind] else [{}])


LOGS = {"inspect": (write_eval, 1), "promptfoo": (write_promptfoo, 3), "spans": (write_spans, 1)}
"""Tool → what writes its log, and how many scorers that has."""


@pytest.mark.parametrize("tool", LOGS)
def test_a_log_is_imported_and_graded_beside_its_own_scores(folder: Folder, tool: str) -> None:
    write, n = LOGS[tool]
    log = write(folder.path)
    facts = folder.json("grade", log, "--scorer", "scorers.py:brief")
    (task,) = facts["tasks"]
    graded = evaluation(folder, task["run"]["name"])
    assert graded.counts["brief"] == {"scored": 3}
    assert len(graded.scorers) == n + 1
    folder.done("grade", log, "--scorer", "short=rouge:stemmer=true")
    assert {*evaluation(folder, task["run"]["name"]).scorers} == {*graded.scorers, "short"}
    assert folder.call("report", task["run"]["name"], "-o", "page.html").exit_code == 0


def test_imported_predictions_are_graded_by_the_command_that_import_names(folder: Folder) -> None:
    folder.write("said.jsonl", [{"response": str(2 * i)} for i in range(6)])
    words = ["--dataset", "rows.jsonl", "--input", "question", "--expected", "answer"]
    [line] = [line for line in folder.done("import", "said.jsonl", *words).split("\n") if line.startswith("grade it:")]
    _, _, *command = line.split()[1:]
    facts = folder.json("grade", *command[1:])
    assert [row["value"] for row in facts["metrics"]] == [1.0]


def test_selectors_of_a_feedback_read_the_spans_of_a_log(folder: Folder) -> None:
    log = write_spans(folder.path)
    selected = "{asked: __record__.main_input, answered: __record__.app.ask.rets}"
    (folder.path / "s.yaml").write_text(
        f"scorers:\n  length: {{kind: feedback, implementation: scorers.py:asked_and_answered, on: {selected}}}\n"
    )
    facts = folder.json("grade", log, "--scorers", "s.yaml")
    name = facts["tasks"][0]["run"]["name"]
    assert evaluation(folder, name).table("length")["value"].to_pylist() == [6.0, 7.0, 7.0]  # "1 + 7" and "8" …


def test_several_runs_are_compared_in_one_summary(folder: Folder) -> None:
    other = (folder.path / "e.yaml").read_text().replace("mine: app.py:double", "whole: app.py:whole")
    (folder.path / "other.yaml").write_text(other)
    folder.call("run", "other.yaml")  # label fails, since the task returns numbers
    shown = folder.done("grade", "doubling/mine", "doubling/whole", "--scorer", "exact_match", "--name", "both")
    assert "mean · exact_match" in shown
    assert "compare: evaluand compare doubling/mine doubling/whole" in shown
    assert folder.json("show", "both")["kind"] == "aggregations"
    folder.done("report", "both", "-o", "page.html")
    page = (folder.path / "page.html").read_text()
    assert all(word in page for word in ("exact_match", "numeric_answer", "mine", "whole"))


def test_tasks_that_answer_alike_are_all_summarised(folder: Folder) -> None:
    twins = (
        (folder.path / "e.yaml")
        .read_text()
        .replace("mine: app.py:double", "mine: app.py:double\n  twin: app.py:double")
    )
    (folder.path / "twins.yaml").write_text(twins.replace("name: doubling", "name: twins"))
    folder.done("run", "twins.yaml")
    facts = folder.json("grade", "twins", "--scorer", "scorers.py:brief")
    assert [task["run"]["name"] for task in facts["tasks"]] == ["twins/mine", "twins/twin"]
    assert [row["task"] for row in facts["metrics"] if row["scorer"] == "brief"] == ["mine", "twin"]


def test_labels_of_people_and_scorers_that_only_failed_are_not_taken_along(folder: Folder) -> None:
    (folder.path / "scorers.py").write_text("def broken(output):\n    raise ValueError(output)\n" + SCORERS)
    assert "scorer 'broken' failed on all 5 rows" in folder.refused(
        "grade", "doubling/mine", "--scorer", "scorers.py:broken"
    )
    noted = folder.call("grade", "doubling/mine", "--scorer", "scorers.py:brief").stderr
    assert "note: broken: it failed on every row, and its errors stay in evaluation" in noted
    assert "broken" not in evaluation(folder, "doubling/mine").scorers


def test_a_spent_budget_stops_with_the_command_that_continues(folder: Folder, judge: ChatServer) -> None:
    (folder.path / "prices.yaml").write_text("")
    price = "{url: URL, name: small, version: '1', price: {input: 1000, output: 1000, currency: USD}}"
    model = price.replace("URL", judge.url)
    (folder.path / "s.yaml").write_text(f"right: {{kind: judge, rubric: correctness, model: {model}}}\n")
    stopped = folder.call("grade", "doubling/mine", "--scorers", "s.yaml", "--budget", "0.0001 USD")
    assert stopped.exit_code == 1, stopped.output
    assert "continue with: evaluand grade doubling/mine --scorers s.yaml --budget" in stopped.stderr
    resumed = folder.refused("resume")
    assert "is continued with: evaluand grade doubling/mine --scorers s.yaml" in resumed
    folder.done("grade", "doubling/mine", "--scorers", "s.yaml", "--budget", "100 USD")
    assert len(judge.asked) == 5


REFUSED = {
    "grade doubling/mine": (2, "name what grades: --scorer KIND, or --judge RUBRIC and --model NAME"),
    "grade doubling/mine --scorer exact_match --scorers e.yaml": (2, "or --scorers FILE alone"),
    "grade doubling/mine --scorer exact_mach": (1, "no kind of scorer is called 'exact_mach'"),
    "grade doubling/mine --scorer exact_match:any=true": (1, "exact_match has no such parameter"),
    "grade doubling/mine --scorer exact_match:any_of=[": (1, "--scorer exact_match:any_of=[:1:"),
    "grade doubling/mine --scorer scorers.py:brif": (1, "brif"),
    "grade doubling/mine --scorer exact_match --scorer exact_match": (1, "two scorers are called 'exact_match'"),
    "grade doubling/mine --scorer detection": (1, "name its metrics in a file: --scorers FILE"),
    "grade doubling/mine --judge correctness": (1, "a judge asks a model; give --model PROVIDER/NAME"),
    "grade doubling/mine --scorer exact_match --model openai/x": (1, "--model is the model of --judge"),
    "grade doubling/min --scorer exact_match": (2, "nothing stored with this name (did you mean 'doubling/mine'?)"),
    "grade rows.jsonl --scorer exact_match": (2, "rows.jsonl is no log of another tool that is recognised"),
    "grade doubling/mine --scorer exact_match --where question>9": (1, "has no rows where question>9"),
    "grade doubling/mine --scorer exact_match --where questio<9": (1, "questio"),
    "grade doubling/mine --scorer exact_match --sample 0": (2, "0 is not in the range x>=1"),
    "grade doubling/mine --scorer exact_match --sample many": (2, "'many' is no share; write 85% or 0.85"),
    "grade doubling/mine --scorer exact_match --fresh --retry-failed": (2, "give one of --fresh and --retry-failed"),
    "grade doubling/mine --rubric correctness": (2, "give --judge RUBRIC"),
}


@pytest.mark.parametrize("command", REFUSED)
def test_mistakes_are_one_sentence(folder: Folder, command: str) -> None:
    code, message = REFUSED[command]
    said = folder.refused(*command.split(" "), code=code)
    assert message in said
    assert "Traceback" not in said


def test_runs_over_different_examples_are_graded_one_by_one(folder: Folder) -> None:
    log = write_eval(folder.path)
    said = folder.refused("grade", "doubling/mine", log, "--scorer", "exact_match")
    assert "doubling/mine and addition/m are over different datasets; grade them one by one" in said


def test_faults_of_a_file_have_their_line(folder: Folder) -> None:
    (folder.path / "s.yaml").write_text(
        "scorers:\n  brief: scorers.py:brief\nmetrics:\n  - {kind: mean, scorer: brif}\n"
    )
    assert "s.yaml:4: metrics.0: no scorer is called 'brif'" in folder.refused(
        "grade", "doubling/mine", "--scorers", "s.yaml"
    )


def test_an_open_run_says_how_to_finish_it(folder: Folder) -> None:
    (folder.path / "app.py").write_text("def double(question):\n    raise SystemError('now')\n")
    text = (folder.path / "e.yaml").read_text() + "run: {abort_on_error: true}\n"
    (folder.path / "stop.yaml").write_text(text.replace("name: doubling", "name: stopped"))
    folder.refused("run", "stop.yaml")
    assert "is not finished; continue it with `evaluand resume" in folder.refused(
        "grade", "stopped/mine", "--scorer", "exact_match"
    )


def test_evaluate_names_the_commands_that_may_be_meant(folder: Folder) -> None:
    said = folder.refused("evaluate", "doubling/mine", code=2)
    assert "evaluand score FILE" in said
    assert "evaluand grade NAME --scorer KIND" in said
