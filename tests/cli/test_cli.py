"""What the command line does, prints and returns."""

from __future__ import annotations

import decimal
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from rich.console import Console
from support.fresh import open_python
from support.patience import PATIENCE

import evaluand
from evaluand.cli import main
from evaluand.cli.progress import Display
from evaluand.data.dataset import Dataset
from evaluand.engine.keyed_work import Tally
from evaluand.evaluation.evaluator import Evaluator
from evaluand.evaluation.scorer import Score
from evaluand.run.runner import Runner
from evaluand.store.directory import DirectoryStore

CODE = """
import subprocess, sys, time, warnings
from pathlib import Path

def double(question):
    if question == "3":
        raise ValueError("three")
    return "about " + str(2 * int(question)) if question != "4" else "no idea"

def noisy(question):
    print("noise from Python")
    subprocess.run([sys.executable, "-c", "print('noise from a program')"])
    return double(question)

def picky(question):
    if question == "1" and not Path(__file__).with_name("allowed").exists():
        raise ValueError("not allowed")
    return question

def same(question):
    return question

def broken(question):
    raise ConnectionError("nobody there")

def warns(question):
    warnings.warn("take care")
    return question

def slow(question):
    if int(question) > 1:
        Path(__file__).with_name("begun").touch()
        while not Path(__file__).with_name("go" + question).exists():
            time.sleep(0.02)
    return question

def gives(question):
    if question == "3":
        raise ValueError("three")
    return None if question == "4" else question

def fails_from(output):
    raise ValueError("no")

def fails_at_0(output):
    return 1 / int(output) > 0

def slow_grade(output, expected):
    return slow(output) == expected
"""

EXPERIMENT = """
name: doubling
dataset: {{path: rows.jsonl, input: question, expected: answer, attributes: [parity]}}
tasks:
  mine: {{function: app.py:{task}}}
scorers:
  number: {scorer}
metrics:
  - {{kind: accuracy, scorer: number, by: [parity]}}
run: {{concurrency: 1, abort_on_error: {abort}}}
"""


class Place:
    """A folder with data, code and experiments, in which commands are called."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        rows = [{"question": str(i), "answer": str(2 * i), "parity": ["even", "odd"][i % 2]} for i in range(6)]
        (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (folder / "app.py").write_text(CODE)

    def experiment(
        self, task: str = "double", *, scorer: str = "{kind: numeric_answer}", abort: bool = False, name: str = "e.yaml"
    ) -> Path:
        path = self.folder / name
        path.write_text(EXPERIMENT.format(task=task, scorer=scorer, abort=str(abort).lower()))
        return path

    def call(self, *arguments: str, **options: Any) -> Result:
        env = {"EVALUAND_STORE": str(self.folder / "store"), "COLUMNS": "120"} | options.pop("env", {})
        return CliRunner(env=env).invoke(main, list(arguments), **options)

    def done(self, *arguments: str) -> str:
        result = self.call(*arguments)
        assert result.exit_code == 0, result.output
        return result.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.done(*arguments, "--json"))

    def process(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        env = os.environ | {"EVALUAND_STORE": str(self.folder / "store")} | options.pop("env", {})
        command = [sys.executable, "-m", "evaluand.cli", *arguments]
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        return subprocess.Popen(command, env=env, text=True, cwd=self.folder, **pipes)

    def store(self) -> DirectoryStore:
        return DirectoryStore(self.folder / "store")

    def id(self, kind: str) -> str:
        (id,) = self.store().ids(kind)
        return id


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place, before = Place(tmp_path_factory.mktemp("finished")), sys.path[:]
    place.done("run", str(place.experiment()))
    sys.path[:] = before
    return place.folder


@pytest.fixture
def ran(finished: Path, tmp_path: Path) -> Place:
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    return Place(tmp_path)


def interrupted(place: Place, experiment: Path) -> str:
    """What a run says that is interrupted at row 2; calls in flight end one after the other until it has ended."""
    errors, env = place.folder / "errors", os.environ | {"EVALUAND_STORE": str(place.folder / "store")}
    code = "from evaluand.cli import main\nmain(prog_name='evaluand')"
    with open_python(code, "run", str(experiment), errors=errors, env=env, cwd=place.folder) as (process, _):
        wait_for(lambda: (place.folder / "begun").exists())
        os.kill(process.pid or 0, signal.SIGINT)
        for row in range(2, 6):
            (place.folder / f"go{row}").touch()
            process.join(1)
            if process.exitcode is not None:
                break
        process.join(PATIENCE)
        assert process.exitcode == 130
    for row in range(2, 6):
        (place.folder / f"go{row}").touch()  # for whoever resumes
    return errors.read_text()


def wait_for(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# run


def test_running_an_experiment_shows_values_with_counts_and_why_rows_are_missing(place: Place) -> None:
    out = place.done("run", str(place.experiment()))
    words = [line.split() for line in out.splitlines()]
    assert words[0][:2] == ["mine", "run"]
    assert words[0][3:] == ["6", "done", "now;", "1", "failed", "(1", "ValueError)"]
    overall = next(line for line in words if line[:3] == ["accuracy", "·", "number"])
    assert overall[3] == "1.000"
    assert overall[-4:] == ["6", "4", "1", "1"]
    assert any(line[:1] == ["parity=odd"] and line[-4:] == ["3", "2", "1", "0"] for line in words)
    assert "mine 1 failed ValueError: three (first: _index_ 3)" in " ".join(out.split())
    assert "mine · number 1 abstained no number in the answer" in " ".join(out.split())
    assert f"aggregation {place.id('aggregations')[:12]}; more: evaluand show doubling" in out


def test_running_it_again_does_nothing_and_says_so(ran: Place) -> None:
    out = ran.done("run", str(ran.folder / "e.yaml"))
    assert "nothing to do: the same task, dataset and seed were run" in out
    assert len(ran.store().ids("runs")) == 1


def test_a_limit_runs_the_first_examples_and_a_higher_one_only_the_rest(place: Place) -> None:
    path = str(place.experiment())
    assert "2 done now" in place.done("run", path, "--limit", "2")
    out = place.done("run", path)
    assert "4 done now, 2 reused" in out


def test_fresh_makes_every_call_again(ran: Place) -> None:
    assert "6 done now" in ran.done("run", str(ran.folder / "e.yaml"), "--fresh")
    assert len(ran.store().ids("runs")) == 2


def test_failed_calls_are_made_again_on_demand(place: Place) -> None:
    path = str(place.experiment("picky"))
    assert "6 done now; 1 failed" in place.done("run", path)
    (place.folder / "allowed").touch()
    assert "; 1 failed" not in place.done("run", path, "--retry-failed")


def test_one_task_is_run_alone_on_demand(place: Place) -> None:
    path = place.experiment()
    path.write_text(path.read_text().replace("scorers:", "  other: {function: app.py:picky}\nscorers:"))
    place.done("run", str(path), "--task", "other")
    assert [e["name"] for e in place.json("list", "runs")] == ["doubling/other"]


def test_tasks_are_compared_as_a_step_and_the_report_reads_the_stored_comparison(place: Place) -> None:
    path, page = place.experiment(), place.folder / "page.html"
    path.write_text(path.read_text().replace("scorers:", "  other: {function: app.py:picky}\nscorers:"))
    place.done("run", str(path))
    comparison = place.id("comparisons")
    place.done("report", "doubling", "-o", str(page))
    assert "Differences b − a on the same examples" in page.read_text()
    shutil.rmtree(place.folder / "store" / "comparisons" / comparison)
    place.done("report", "doubling", "-o", str(page))
    assert f"have not been compared yet: run <code>evaluand compare {place.id('aggregations')[:12]}" in page.read_text()
    assert place.store().ids("comparisons") == []
    place.done("compare", "doubling")
    place.done("report", "doubling", "-o", str(page))
    assert "Differences b − a on the same examples" in page.read_text()


def test_a_list_explains_names_that_later_artifacts_have_taken(place: Place) -> None:
    place.done("run", str(place.experiment()))
    assert "(name)" not in place.done("list")
    place.done("run", str(place.experiment("same")))
    listed = place.done("list", "runs").splitlines()
    assert [line.split()[4] for line in listed[1:-1]] == ["doubling/mine", "(doubling/mine)"]
    assert listed[-1] == "(name): a later artifact has this name now"


def test_tasks_with_the_same_answers_are_compared_by_their_own_names(place: Place) -> None:
    path = place.experiment()
    path.write_text(path.read_text().replace("scorers:", "  other: {function: app.py:double}\nscorers:"))
    place.done("run", str(path))
    assert len(place.store().ids("evaluations")) == 1
    assert [row["label"] for row in place.json("compare", "doubling")["evaluations"]] == ["mine", "other"]


def test_a_task_that_is_not_there_is_refused_with_the_nearest(place: Place) -> None:
    result = place.call("run", str(place.experiment()), "--task", "mien")
    assert result.exit_code == 1
    assert "error: no task is called 'mien' (did you mean 'mine'?); there are mine" in result.stderr


def test_quiet_leaves_the_values_with_their_counts_and_reasons(place: Place) -> None:
    result = place.call("run", str(place.experiment()), "--quiet")
    assert "done now" not in result.stdout
    assert "evaluand show" not in result.stdout
    assert "abstained" in result.stdout
    assert result.stderr == ""


def test_results_as_json_hold_what_the_tables_show(place: Place) -> None:
    facts = place.json("run", str(place.experiment()))
    overall = facts["metrics"][0]
    assert (overall["task"], overall["value"], overall["n"], overall["n_failed"]) == ("mine", 1.0, 6, 1)
    assert facts["tasks"][0]["run"]["receipt"]["called"] == 6
    assert facts["aggregation"]["id"] == place.id("aggregations")


def test_a_task_of_which_every_call_failed_ends_the_command_with_an_error_after_the_table(place: Place) -> None:
    path = place.experiment("broken")
    result = place.call("run", str(path))
    assert result.exit_code == 1
    assert "more: evaluand show doubling" in result.stdout
    error, note = result.stderr.splitlines()
    assert error == "error: all 6 calls of task 'mine' failed: ConnectionError: nobody there"
    assert note == f"note: 6 calls of task mine failed; repeat with: evaluand run {path} --retry-failed"
    as_json = place.call("run", str(path), "--json")
    assert as_json.exit_code == 1
    assert json.loads(as_json.stdout)["tasks"][0]["run"]["counts"] == {"failed": 6}


def test_one_task_that_fails_throughout_with_others_is_an_error(place: Place) -> None:
    path = place.experiment()
    path.write_text(path.read_text().replace("scorers:", "  other: {function: app.py:broken}\nscorers:"))
    result = place.call("run", str(path), "--limit", "1")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: the one call of task 'other' failed: ConnectionError: nobody there\n")


def test_a_scorer_that_failed_on_every_row_it_was_asked_about_is_an_error(place: Place) -> None:
    path = place.experiment("gives", scorer="{function: app.py:fails_from}")
    result = place.call("run", str(path))
    assert result.exit_code == 1
    reported = "error: scorer 'number' failed on all 4 rows of task 'mine': ValueError: no (app.py:"
    assert result.stderr.startswith(reported)
    steps = [line.split() for line in result.stdout.splitlines()[:2]]
    assert steps[0][3:] == ["6", "done", "now;", "1", "failed", "(1", "ValueError)"]
    assert steps[1][2:] == ["6", "done", "now;", "4", "failed", "(4", "ValueError)"]
    facts = json.loads(place.call("run", str(path), "--json").stdout)
    assert facts["tasks"][0]["evaluation"]["counts"] == {"number": {"failed": 5, "abstained": 1}}


def test_a_scorer_that_failed_on_some_rows_is_counted_in_the_receipt_and_is_no_error(place: Place) -> None:
    facts = place.json("run", str(place.experiment("gives", scorer="{function: app.py:fails_at_0}")))
    assert facts["tasks"][0]["run"]["receipt"]["failed"] == 1
    assert facts["tasks"][0]["evaluation"]["receipt"]["failed"] == 1


@pytest.mark.slow
def test_rows_of_recorded_outputs_that_match_no_example_are_noted_once(place: Place) -> None:
    outputs = [{"id": str(i), "text": "x"} for i in [*range(6), "x17", "x18"]]
    (place.folder / "theirs.jsonl").write_text("\n".join(map(json.dumps, outputs)))
    path = place.experiment()
    recorded = "{kind: recorded, path: theirs.jsonl, response: text, by: id}"
    path.write_text(path.read_text().replace("{function: app.py:double}", recorded))
    reported = f"{place.folder / 'theirs.jsonl'}: 2 rows match no example, such as id 'x17'"
    process = place.process("run", str(path), "--limit", "1")
    assert (process.communicate()[1], process.returncode) == (f"note: {reported}\n", 0)


@pytest.mark.slow
def test_other_warnings_are_shown_as_usual(place: Place) -> None:
    process = place.process("run", str(place.experiment("warns")), "--limit", "1")
    assert "app.py:" in (err := process.communicate()[1])
    assert "UserWarning: take care" in err


@pytest.mark.slow
def test_what_tasks_and_their_programs_print_does_not_mix_with_the_results(place: Place) -> None:
    process = place.process("run", str(place.experiment("noisy")), "--json")
    out, err = process.communicate()
    assert process.returncode == 0
    assert json.loads(out)["metrics"]
    assert "noise from Python" in err
    assert "noise from a program" in err


def test_a_faulty_experiment_file_is_reported_line_by_line_without_traceback(place: Place) -> None:
    path = place.experiment()
    path.write_text(path.read_text().replace("numeric_answer", "numeric_anser").replace("parity]}\ntasks", "par]}\nta"))
    result = place.call("run", str(path))
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert "e.yaml:" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_missing_file_is_an_error_and_names_it(place: Place) -> None:
    result = place.call("run", "nowhere.yaml")
    assert result.exit_code == 1
    assert result.stderr == "error: nowhere.yaml: no such file; `evaluand run` takes an experiment file\n"


def test_a_missing_file_suggests_a_similar_one_alone(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = place.folder / "named"
    folder.mkdir()
    for name in ("capitals.yaml", "c.yaml"):
        (folder / name).write_text("name: x\n")
    monkeypatch.chdir(folder)
    near = place.call("run", "capitols.yaml")
    assert (near.exit_code, near.stderr) == (1, "error: capitols.yaml: no such file (did you mean 'capitals.yaml'?)\n")
    assert "did you mean" not in place.call("run", "nosuch.yaml").stderr


def test_an_error_message_cannot_control_the_terminal(place: Place) -> None:
    result = place.call("run", "\x1b[2Jnowhere.yaml")
    assert r"error: \x1b[2Jnowhere.yaml" in result.stderr
    assert "\x1b" not in result.stderr


def test_an_unwritable_store_is_an_error_without_traceback(place: Place) -> None:
    (place.folder / "file").touch()
    result = place.call("run", str(place.experiment()), "--store", str(place.folder / "file" / "store"))
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")
    assert "Traceback" not in result.stderr


# interrupted work


def test_an_interrupted_run_says_how_far_it_is_and_can_be_resumed(place: Place) -> None:
    err = interrupted(place, place.experiment("slow"))
    id = place.id("runs")
    finishing, stopped = err.splitlines()
    assert finishing == "finishing 1 call; Ctrl-C again to stop at once"
    assert stopped.endswith(f"of 6 done (doubling/mine); continue with: evaluand resume {id[:12]}")
    assert "Traceback" not in err
    (entry,) = place.json("list", "runs")
    assert entry["status"] == "open"
    kept = place.json("show", "doubling/mine")["progress"][0]["done"]
    assert 2 <= kept < 6
    assert f"{6 - kept} done now, {kept} already stored" in place.done("resume", id[:12])
    assert place.id("runs") == id
    assert place.json("show", id)["manifest"]["counts"] == {"completed": 6}


@pytest.mark.slow
def test_a_second_interrupt_does_not_wait_for_calls_in_flight(place: Place) -> None:
    process = place.process("run", str(place.experiment("slow")))
    wait_for(lambda: (place.folder / "begun").exists())
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert process.stderr.readline() == "finishing 1 call; Ctrl-C again to stop at once\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=PATIENCE)[1].startswith("interrupted: 2 of 6 done")
    assert process.returncode == 130


@pytest.mark.slow
def test_an_interrupted_evaluation_can_be_resumed_by_its_name(place: Place) -> None:
    err = interrupted(place, place.experiment("same", scorer="{function: app.py:slow_grade}"))
    id = place.id("evaluations")
    assert f"of 6 done (number of doubling/mine); continue with: evaluand resume {id[:12]}" in err
    assert "6 graded by number" in place.done("show", id)
    out = place.done("resume", "doubling/mine")
    assert "nothing to do" in out.splitlines()[0]
    assert "done now" in out.splitlines()[1]
    assert [e["status"] for e in place.json("list", "evaluations")] == ["sealed"]


def test_a_run_that_stops_at_the_first_failure_says_how_to_go_on(place: Place) -> None:
    result = place.call("run", str(place.experiment("picky", abort=True)))
    id = place.id("runs")
    assert result.exit_code == 1
    error, hint = result.stderr.splitlines()
    assert error.startswith("error: _index_ 1, replication 0: ValueError: not allowed")
    assert hint == f"stopped: 2 of 6 done (doubling/mine); continue with: evaluand resume {id[:12]}"
    shown = place.done("show", id)
    assert "open: not finished yet" in shown
    assert "2 of 6 calls" in shown
    assert f"evaluand resume {id[:12]}" in shown
    assert "4 done now, 2 already stored; 1 failed" in place.done("resume", id)


def test_the_hint_names_the_store_where_it_is_not_the_usual_one(place: Place) -> None:
    folder = place.folder / "other store"
    result = place.call("run", str(place.experiment("picky", abort=True)), "--store", str(folder))
    assert result.stderr.rstrip().endswith(f"--store '{folder}'")


def test_the_name_of_an_experiment_resumes_its_open_run(place: Place) -> None:
    assert place.call("run", str(place.experiment("picky", abort=True))).exit_code == 1
    assert "4 done now, 2 already stored; 1 failed" in place.done("resume", "doubling")


def test_without_a_name_the_only_open_run_is_resumed(place: Place) -> None:
    assert place.call("run", str(place.experiment("picky", abort=True))).exit_code == 1
    assert "4 done now, 2 already stored; 1 failed" in place.done("resume")
    refused = place.call("resume")
    assert refused.stderr.startswith("error: nothing to resume: no run, evaluation, matches or recording is open")


def test_several_open_runs_are_listed(place: Place) -> None:
    path = str(place.experiment("picky", abort=True))
    assert [place.call("run", path, *more).exit_code for more in ((), ("--limit", "4"))] == [1, 1]
    ids = sorted(entry["id"][:12] for entry in place.json("list", "runs"))
    refused = place.call("resume").stderr
    assert refused.startswith("error: several are open: run ")
    assert all(id in refused for id in ids)
    assert len(ids) == 2


def test_there_is_nothing_to_resume_in_what_is_complete(ran: Place) -> None:
    result = ran.call("resume", "doubling/mine")
    assert (result.exit_code, result.stdout) == (0, "")
    assert f"nothing to resume: run {ran.id('runs')[:12]} is complete" in result.stderr
    id = ran.id("runs")
    facts = {"resumed": False, "kind": "runs", "id": id, "reason": f"run {id[:12]} is complete"}
    assert ran.json("resume", "doubling/mine") == facts


def test_resuming_one_task_names_those_that_have_no_finished_run(place: Place) -> None:
    path = place.experiment("picky", abort=True)
    more = "  begun: {function: app.py:same}\n  not: {function: app.py:same}\n  done: {function: app.py:same}\n"
    path.write_text(path.read_text().replace("scorers:", more + "scorers:"))
    place.done("run", str(path), "--task", "done")
    place.call("run", str(path))
    result = place.call("resume", "doubling/mine")
    assert result.exit_code == 0
    assert result.stderr.splitlines()[-1] == f"not run yet: begun, not; evaluand run {path}"


def test_resuming_says_that_the_gates_of_the_file_are_not_checked(place: Place) -> None:
    path = place.experiment("picky", abort=True)
    path.write_text(path.read_text() + "gates: accuracy >= 0.99\n")
    place.call("run", str(path))
    result = place.call("resume", "doubling/mine")
    note = f"the gates of the file have not been checked; check them with: evaluand run {path}"
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (0, note)


def test_what_was_begun_from_python_is_resumed_from_python(place: Place) -> None:
    def stop(text: str) -> str:
        raise KeyboardInterrupt

    data = evaluand.Dataset.from_rows([{"input": "a"}])
    with pytest.raises(KeyboardInterrupt):
        Runner(place.store()).run(stop, data)
    result = place.call("resume", place.id("runs"))
    assert result.exit_code == 1
    assert "was not started from an experiment file; continue it from Python" in result.stderr


def test_a_run_cannot_be_resumed_when_its_experiment_file_is_gone(place: Place) -> None:
    path = place.experiment("picky", abort=True)
    place.call("run", str(path))
    path.unlink()
    result = place.call("resume", "doubling/mine")
    assert result.exit_code == 1
    assert f"was started from {path}, which no longer exists" in result.stderr


def test_a_run_cannot_be_resumed_when_something_else_would_be_run(place: Place) -> None:
    path = place.experiment("picky", abort=True)
    place.call("run", str(path))
    path.write_text(path.read_text().replace("concurrency", "seed: 7, concurrency"))
    result = place.call("resume", "--yes", "doubling/mine")
    assert result.exit_code == 1
    assert "cannot be resumed" in result.stderr
    assert f"{path} has changed since" in result.stderr


def test_a_run_is_resumed_with_another_way_of_making_calls(place: Place) -> None:
    path = place.experiment("picky", abort=True)
    place.call("run", str(path))
    path.write_text(path.read_text().replace("concurrency: 1", "concurrency: 3"))
    assert "4 done now, 2 already stored" in place.done("resume", "--yes", "doubling/mine")


def test_resuming_keeps_the_limit(place: Place) -> None:
    place.call("run", str(place.experiment("picky", abort=True)), "--limit", "3")
    assert "1 done now, 2 already stored" in place.done("resume", "doubling/mine")


# list and show


def test_the_list_is_newest_first_and_holds_every_artifact(ran: Place) -> None:
    kinds = [entry["kind"] for entry in ran.json("list")]
    assert kinds == ["aggregations", "evaluations", "runs", "datasets"]
    lines = ran.done("list").splitlines()
    assert lines[3].split() == ["runs", ran.id("runs")[:12], *lines[3].split()[2:4], "doubling/mine", *_RUN_COUNTS]
    assert [entry["id"] for entry in ran.json("list", "evaluations")] == ran.store().ids("evaluations")


_RUN_COUNTS = ["5", "completed,", "1", "failed"]


def test_only_the_newest_are_listed_unless_all_are_asked_for(place: Place) -> None:
    store = place.store()
    for number in range(52):
        Dataset.from_rows([{"input": number}], name=f"data {number}").save(store)
    newest = [entry["id"] for entry in place.json("list", "--all")]
    (place.folder / "store" / "datasets" / newest[0] / "manifest.json").write_text("{")
    listed = place.call("list")
    assert listed.stdout.splitlines()[-1] == "2 older ones are not listed; --all lists all"
    assert "data 51" not in listed.stdout
    assert "data 50" in listed.stdout
    assert "data 0 " not in listed.stdout
    assert "1 artifact cannot be read" in listed.stderr  # although it comes last, and is not listed
    as_json = place.call("list", "datasets", "--json")
    assert [entry["id"] for entry in json.loads(as_json.stdout)] == newest[1:51]
    assert as_json.stderr.splitlines()[-1] == "2 older ones are not listed; --all lists all"
    everything = place.call("list", "datasets", "--json", "--all")
    assert [entry["id"] for entry in json.loads(everything.stdout)] == [*newest[1:], newest[0]]
    assert "--all" not in everything.stderr


def test_an_empty_store_is_listed_as_such(place: Place) -> None:
    result = place.call("list")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "nothing is stored" in result.stderr
    assert place.json("list") == []
    assert not (place.folder / "store").exists()


def test_a_kind_that_does_not_exist_is_wrong_usage(place: Place) -> None:
    assert place.call("list", "rnus").exit_code == 2


def test_a_run_is_shown_with_its_origin_and_the_rows_that_failed(place: Place) -> None:
    place.done("run", str(place.experiment()))
    out = place.done("show", "doubling/mine", "--examples", "1")
    assert f"made from   dataset {place.id('datasets')[:12]}" in out
    assert f"used by     evaluation {place.id('evaluations')[:12]}" in out
    assert f"experiment  {place.folder / 'e.yaml'}, task mine" in out
    assert "_index_ 3: failed" in out
    assert "ValueError: three" in out
    assert "_index_ 0" not in out


@pytest.mark.parametrize("kind", ["runs", "evaluations", "aggregations", "datasets"])
def test_everything_is_shown_by_the_beginning_of_its_id_as_text_and_as_json(ran: Place, kind: str) -> None:
    id = ran.id(kind)
    assert id in ran.done("show", id[:8])
    facts = ran.json("show", id[:8])
    assert (facts["kind"], facts["id"], facts["status"]) == (kind, id, "sealed")
    assert facts["manifest"] == ran.store().manifest(kind, id)


def test_an_aggregation_shows_its_values_with_counts_and_signature(ran: Place) -> None:
    out = ran.done("show", "doubling")
    assert "doubling/mine" in out
    assert "accuracy v1 missing=leave_out" in out
    assert any(line.split()[-4:] == ["6", "4", "1", "1"] for line in out.splitlines())


@pytest.fixture
def graded(place: Place) -> Place:
    """Two examples with ids of their own, asked twice and graded by two scorers."""
    store = DirectoryStore(place.folder / "store")
    rows = [{"id": "first", "input": float("nan")}, {"id": "second", "input": 5}]
    run = Runner(store).run(lambda x: {"given": x, "raw": b"xx"}, Dataset.from_rows(rows), name="r", replications=2)
    scorers = {
        "sure": lambda output: Score(0.5, data={"odds": [float("inf"), decimal.Decimal("0.10")]}),
        "odd": lambda output: 0 if output["given"] == 5 else Score.abstained("none"),
    }
    Evaluator().evaluate(run, scorers, name="r")
    return place


def test_values_are_shown_as_people_write_them(graded: Place) -> None:
    for arguments in (("r", "--examples", "9"), ("r", "--below", "1"), (graded.id("datasets"),)):
        out = graded.done("show", *arguments)
        assert '"$' not in out
        assert re.search(r"input +NaN\n", out)
    out = graded.done("show", "r", "--below", "1")
    assert 'response  {"given":NaN,"raw":"base64:eHg="}' in out
    assert 'data      {"odds":[Infinity,0.10]}' in out
    [row, *_] = graded.json("show", "r", "--below", "1", "--examples", "1")["rows"]["sure"]
    assert row["data"] == {"odds": [{"$float": "Infinity"}, {"$decimal": "0.10"}]}


def test_every_row_shown_is_named_by_its_own_id_and_its_replication(graded: Place) -> None:
    run, scores = graded.done("show", "r"), graded.done("show", "r", "--below", "1", "--examples", "9")
    assert "_index_ 0 first, replication 0: completed" in run
    assert "_index_ 0 first, replication 0: scored 0.500" in scores
    assert "_index_ 1 second, replication 1: scored 0.500" in scores


def test_answers_without_a_score_are_named_beside_the_failed_calls(graded: Place) -> None:
    result = graded.call("show", "r", "--failed")
    assert "note: 2 rows without a score of odd: evaluand show r --scorer odd --failed" in result.stderr
    assert "without a score of sure" not in result.stderr


def test_one_scorer_is_shown_alone(graded: Place) -> None:
    facts = graded.json("show", "r", "--scorer", "odd", "--failed")
    assert facts["kind"] == "evaluations"
    assert [(s, [row["_index_"] for row in rows]) for s, rows in facts["rows"].items()] == [("odd", [0, 0])]
    assert [reason["scorer"] for reason in facts["missing"]] == ["odd"]
    assert "\nodd" not in graded.done("show", "r", "--scorer", "sure").split("\nscorer  rows")[1]
    assert set(graded.json("show", "r", "--scorer", "odd", "--scorer", "sure")["rows"]) == {"odd", "sure"}
    result = graded.call("show", "r", "--scorer", "suer")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "no scorer is called 'suer' (did you mean 'sure'?); there are odd, sure" in result.stderr
    assert graded.call("show", "r", "--scorer", "odd", "--index", "0").exit_code == 2


def test_an_index_that_match_no_example_is_refused_with_those_there_are(ran: Place) -> None:
    result = ran.call("show", "doubling/mine", "--index", "6")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"error: run {ran.id('runs')[:12]} has no _index_ 6; there are 6 examples, from 0 to 5\n"
    assert ran.json("show", "doubling/mine", "--index", "5")["rows"][0]["_index_"] == 5


def test_a_name_nobody_knows_is_an_error(ran: Place) -> None:
    result = ran.call("show", "[bold]nope")
    assert result.exit_code == 1
    assert "nothing is called '[bold]nope' here" in result.stderr


def test_what_an_artifact_was_made_from_may_be_missing(ran: Place) -> None:
    id = ran.id("datasets")
    for path in sorted((ran.folder / "store" / "datasets" / id).iterdir()):
        path.unlink()
    (ran.folder / "store" / "datasets" / id).rmdir()
    assert "(not in this store)" in ran.done("show", "doubling/mine")


def test_hostile_names_and_values_are_shown_harmlessly(place: Place) -> None:
    path = place.experiment()
    hostile = "[blink]\u202e[/blink]$(touch x)"
    path.write_text(path.read_text().replace("name: doubling", f"name: '{hostile}'"))
    rows = [{"question": "1", "answer": "2", "parity": "\x1b]0;title\x07[red]"}]
    (place.folder / "rows.jsonl").write_text(json.dumps(rows[0]))
    for out in (place.done("run", str(path)), place.done("list"), place.done("show", hostile)):
        assert "\x1b" not in out
        assert "\x07" not in out
        assert "\u202e" not in out
        assert r"[blink]\u202e[/blink]$(touch x)" in out
    assert r"parity=\x1b]0;title\x07[red]" in place.done("show", hostile)


def test_piped_output_has_no_colour_and_no_trailing_spaces(ran: Place) -> None:
    out = ran.done("show", "doubling")
    assert "\x1b" not in out
    assert all(line == line.rstrip() for line in out.splitlines())


@pytest.mark.slow
def test_a_reader_that_stops_early_ends_the_command_silently(ran: Place) -> None:
    process = ran.process("show", "doubling")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait() == 1


@pytest.mark.slow
def test_a_terminal_that_lacks_the_characters_gets_others(ran: Place) -> None:
    process = ran.process("show", "doubling", env={"PYTHONIOENCODING": "latin-1"}, encoding="latin-1")
    out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    assert "[0.510 ? 1.000]" in out


# verify


def test_what_is_whole_is_verified(ran: Place) -> None:
    out = ran.done("verify")
    assert out.count("ok ") == 4
    assert "4 artifacts and 3 names checked, 0 with faults" in out
    kinds = ("aggregations", "evaluations", "runs", "datasets")  # each with what it was made from
    intact = [{"kind": kind, "id": ran.id(kind), "status": "sealed", "faults": []} for kind in kinds]
    assert ran.json("verify", "doubling") == {"ok": True, "artifacts": intact, "names": []}


def test_damage_is_found_and_the_file_is_named(ran: Place) -> None:
    (path,) = (ran.folder / "store" / "runs" / ran.id("runs")).glob("responses*.parquet")
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    path.write_bytes(damaged)
    result = ran.call("verify")
    assert result.exit_code == 1
    assert f"fault  run {ran.id('runs')[:12]}" in result.stdout
    assert path.name in result.stdout.replace("\n", "")
    facts = json.loads(ran.call("verify", "doubling/mine", "--json").stdout)
    assert facts["ok"] is False
    assert facts["artifacts"][0]["faults"]


# help, version, start-up


def test_the_version_is_reported() -> None:
    result = CliRunner().invoke(main, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"evaluand {evaluand.__version__}\n")


@pytest.mark.parametrize(
    "command", ["", "run", "list", "show", "resume", "verify", "export", "import", "validate", "init", "gc", "schema"]
)
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_every_command_has_help_with_examples(command: str, flag: str) -> None:
    result = CliRunner().invoke(main, [*command.split(), flag])
    assert result.exit_code == 0
    assert f"evaluand {command}".strip() in result.stdout.split("Examples:")[1]


def test_the_overview_shows_every_command() -> None:
    overview = CliRunner().invoke(main, ["--help"]).stdout
    for name in main.list_commands(click.Context(main)):
        command = main.get_command(click.Context(main), name)
        assert command is not None
        assert command.name == name
        assert f"  {name}  " in overview


def test_who_would_inspect_an_experiment_learns_what_lists_its_access() -> None:
    result = CliRunner().invoke(main, ["inspect", "e.yaml"])
    assert result.exit_code == 2
    assert "type `evaluand validate --access e.yaml`, which shows what it would use and uses nothing" in result.stderr


def test_an_unknown_command_is_wrong_usage_and_the_known_are_listed() -> None:
    result = CliRunner().invoke(main, ["frobnicate"])
    assert result.exit_code == 2
    known = ", ".join(main.list_commands(click.Context(main)))
    assert f"no command is called 'frobnicate'; the commands are {known}" in result.stderr


@pytest.mark.parametrize(("arguments", "heavy"), [("--help", "rich orjson sqlite3"), ("--version", "rich orjson")])
def test_help_and_version_load_click_and_little_else(arguments: str, heavy: str) -> None:
    loaded = modules_after(arguments)
    assert "click" in loaded
    assert loaded.isdisjoint({*heavy.split(), "numpy", "pyarrow", "pydantic", "yaml"})


def test_listing_loads_neither_numpy_nor_arrow_nor_pydantic(ran: Place) -> None:
    loaded = modules_after("list", "--store", str(ran.folder / "store"))
    assert "evaluand.store.directory" in loaded
    assert loaded.isdisjoint({"numpy", "pyarrow", "pydantic", "yaml", "asyncio"})


def modules_after(*arguments: str) -> set[str]:
    """The modules that a command has loaded when it ends."""
    code = (
        "import sys\nfrom evaluand.cli import main\n"
        f"try:\n    main({list(arguments)!r})\nfinally:\n    print(*sys.modules, file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(result.stderr.split())


# progress


def test_a_terminal_sees_a_bar_that_follows_the_work() -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=80)
    tally = Tally("[red]work\x1b", 200, kept=50)
    with Display(console)(tally):
        tally.called, tally.failed = 20, 3
        wait_for(lambda: "70 of 200" in file.getvalue())
        assert "3 failed" in file.getvalue()
        assert r"[red]work\x1b" in file.getvalue()
        tally.called = 150
        wait_for(lambda: "200 of 200" in file.getvalue())


def test_elsewhere_a_line_is_printed_now_and_then_and_at_the_end() -> None:
    file = io.StringIO()
    tally = Tally("work", 2000)
    display = Display(Console(file=file, width=80), every=0.01)
    with display(tally):
        tally.called, tally.failed = 20, 3
        wait_for(lambda: "work: 20 of 2,000, 3 failed" in file.getvalue())
        tally.called = 2000
    assert file.getvalue().splitlines()[-1].startswith("work: 2,000 of 2,000, 3 failed")
    assert "\x1b" not in file.getvalue()


def test_a_step_that_is_still_loading_says_soon_that_it_is_at_work() -> None:
    file = io.StringIO()
    with Display(Console(file=file, width=80), every=1000, first=0.01)(Tally("rouge", 20)):
        wait_for(lambda: file.getvalue() == "rouge: 0 of 20\n")


def test_work_that_ends_at_once_shows_nothing() -> None:
    for terminal in (True, False):
        file = io.StringIO()
        with Display(Console(file=file, force_terminal=terminal))(Tally("work", 1)):
            pass
        assert file.getvalue() == ""


def test_progress_that_nobody_can_read_does_not_disturb_the_work() -> None:
    file = io.StringIO()
    display = Display(Console(file=file), every=0.01)
    file.close()
    tally = Tally("work", 10)
    with display(tally):
        wait_for(lambda: all(thread.name != "progress" for thread in threading.enumerate()))
    assert display.last is tally


def test_a_try_with_fewer_examples_says_which_run_its_name_named_before(place: Place) -> None:
    experiment = str(place.experiment("same"))
    place.done("run", experiment)
    whole = place.id("runs")
    assert "now names" not in place.call("run", experiment).stderr
    note = f"doubling/mine now names a run of 2 examples; that of 6: evaluand show {whole[:12]}; repeat the command"
    assert note in place.call("run", experiment, "--limit", "2").stderr
    assert "now names" not in place.call("run", experiment).stderr
    assert place.json("show", "doubling/mine")["id"] == whole
