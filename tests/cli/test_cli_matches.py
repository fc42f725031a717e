"""Matches at the command line: `evaluand run` with judges and gates on win rates, `resume`, `compare --pairwise`."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from support import casing
from support.casing import write_rows_and_code

from evaluand.cli import main
from evaluand.comparison.measures import find_evaluations
from evaluand.core.errors import SpecError
from evaluand.store.directory import DirectoryStore

CODE = (
    casing.CODE
    + """

from pathlib import Path
from urllib.request import urlopen

from evaluand import comparison_scorer, report_usage


def stopping(first, second):
    if (Path(__file__).parent / "stop").exists() and "G" in (first, second):
        raise KeyboardInterrupt
    return cased(first, second)


@comparison_scorer(version="1")
def interrupted(first, second):
    return stopping(first, second)


def broken(first, second):
    raise ValueError("no idea")


@comparison_scorer(version="1")
def service(first, second):
    if (Path(__file__).parent / "down").exists() and first.isupper():
        raise ConnectionError("503")
    return cased(first, second)


def paid(first, second):
    report_usage(input_tokens=3, cost=0.5, currency="EUR")
    return stopping(first, second)


def costly(first, second):
    with urlopen("http://127.0.0.1:1/") as answer:
        return answer.read().decode()
"""
)
EXPERIMENT = casing.EXPERIMENT + "matches: app.py:cased\n"


@pytest.fixture(scope="module")
def stored_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose tasks have run and were not compared by a judge."""
    folder = tmp_path_factory.mktemp("stored")
    write_rows_and_code(folder, CODE)
    (folder / "e.yaml").write_text(casing.EXPERIMENT)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert call("run", "e.yaml").exit_code == 0
    return folder


@pytest.fixture
def run_folder(stored_runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it."""
    shutil.copytree(stored_runs, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def folder(run_folder: Path) -> Path:
    """One whose experiment has a judge."""
    (run_folder / "e.yaml").write_text(EXPERIMENT)
    return run_folder


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def read(*arguments: str, exit_code: int = 0) -> Any:
    result = call(*arguments, "--json")
    assert result.exit_code == exit_code, result.output
    return json.loads(result.stdout)


def test_a_run_judges_rates_and_checks_gates_on_win_rates(folder: Path) -> None:
    gates = ("--gate", "upper wins against same ≥ 55 % at 95 %", "--gate", "same wins >= 0.5")
    facts = read("run", "e.yaml", *gates, exit_code=3)
    [matches] = facts["matches"]
    assert (matches["matches"], matches["name"], matches["counts"]) == ("matches", "casing/matches", {"scored": 60})
    assert matches["receipt"]["called"] == 20
    assert [row["system"] for row in matches["ratings"]["ratings"]] == ["upper", "early", "same"]
    assert [(gate["subject"], gate["passed"]) for gate in facts["gates"]] == [("upper", True), ("same", False)]
    assert facts["gates"][0]["message"] == "lower 95% bound 0.7411; win rate 1 of 10 matches"  # 0.05 ** (1 / 10)
    shown = call("run", "e.yaml", *gates)
    assert shown.exit_code == 3
    assert "matches  judge       " in shown.stdout
    assert matches["ratings"]["signature"] in shown.stdout
    assert "FAILED  same wins >= 0.5" in shown.stdout


def test_an_experiment_without_scorers_compares_and_reports(folder: Path) -> None:
    lines = EXPERIMENT.splitlines(keepends=True)
    (folder / "e.yaml").write_text("".join(line for line in lines if not line.startswith(("scorers", "metrics"))))
    result = call("run", "e.yaml", "--report", "--gate", "win_rate(upper, same) >= 0.9")
    assert result.exit_code == 0, result.output
    assert "evaluation" not in result.stdout
    assert "more: evaluand show casing/matches" in result.stdout
    assert (folder / "casing.html").exists()
    assert read("run", "e.yaml")["aggregation"] is None
    refused = call("run", "e.yaml", "--gate", "accuracy >= 0.9")
    assert "error: gate 'accuracy >= 0.9' is about a metric; write scorers and metrics into the file" in refused.stderr


def test_runs_that_only_a_judge_compared_point_to_who_won(folder: Path) -> None:
    lines = EXPERIMENT.splitlines(keepends=True)
    (folder / "e.yaml").write_text("".join(line for line in lines if not line.startswith(("scorers", "metrics"))))
    assert call("run", "e.yaml", "--store", "other").exit_code == 0
    refused = call("compare", "casing/upper", "casing/early", "--store", "other")
    assert (
        "has not been evaluated, but a set of matches was made of it, called casing/matches; see it" in refused.stderr
    )
    assert refused.stderr.endswith("`evaluand show casing/matches --store other`\n")
    with pytest.raises(SpecError, match=r"`evaluand show casing/matches` in a shell shows it$"):
        find_evaluations(DirectoryStore("other"), "casing/upper")


def test_one_task_alone_is_not_judged_and_the_note_says_so(folder: Path) -> None:
    (folder / "e.yaml").write_text(EXPERIMENT + "gates: [upper wins > 0.5]\n")
    result = call("run", "e.yaml", "--task", "upper")
    assert result.exit_code == 0, result.output
    assert "note: matches compare several tasks, so none are judged with --task" in result.stderr
    assert "note: gate 'upper wins > 0.5' needs matches; not checked" in result.stderr
    refused = call("run", "e.yaml", "--task", "upper", "--gate", "upper wins > 0.5")
    assert refused.exit_code == 1


def test_validation_shows_the_judge_the_code_and_the_most_comparisons(folder: Path) -> None:
    shown = call("validate", "e.yaml")
    assert "judge  matches: at most 60 comparisons of upper, early, same; equal responses need none" in shown.stdout
    assert "import app.py: tasks.upper, tasks.early, tasks.same, matches.judge" in shown.stdout
    assert read("validate", "e.yaml")["matches"] == [
        {"matches": "matches", "systems": ["upper", "early", "same"], "most": 60}
    ]


def test_a_judge_that_always_fails_is_an_error(folder: Path) -> None:
    (folder / "e.yaml").write_text(EXPERIMENT.replace("cased", "broken"))
    result = call("run", "e.yaml")
    assert result.exit_code == 1
    assert "20 done now; 20 failed (20 ValueError)" in result.stdout
    assert "error: the judge of 'matches' failed on every comparison: ValueError: no idea" in result.stderr
    assert "judge: ValueError: no idea" in result.stdout
    assert "bradley_terry" not in result.stdout
    assert "note: 20 judgements of matches failed; repeat with: evaluand run e.yaml --retry-failed" in result.stderr
    again = " ".join(call("run", "e.yaml").stdout.split())
    assert "nothing to do: the same judge compared the same responses before" in again
    (folder / "app.py").write_text(CODE.replace('raise ValueError("no idea")', 'return "first"'))
    assert call("run", "e.yaml", "--retry-failed").exit_code == 0


def test_interrupted_matches_are_resumed_with_the_file_that_began_them(folder: Path) -> None:
    (folder / "e.yaml").write_text(EXPERIMENT.replace("cased", "interrupted"))
    (folder / "stop").touch()
    stopped = call("run", "e.yaml", "--limit", "9", "--budget", "5 USD")
    assert stopped.exit_code == 130, stopped.output
    assert "; continue with: evaluand run e.yaml --limit 9 --budget '5 USD'" in stopped.stderr
    again = call("run", "e.yaml", "--limit", "9", "--no-calls")
    assert "; continue with: evaluand run e.yaml --limit 9 --no-calls\n" in again.stderr
    (folder / "stop").unlink()
    facts = read("resume", "casing")
    assert facts["receipt"]["called"] + facts["receipt"]["kept"] == 18
    assert facts["receipt"]["kept"] > 0
    assert facts["ratings"]["ratings"][0]["system"] == "upper"
    again = read("run", "e.yaml", "--limit", "9")
    assert again["matches"][0]["digest"] == facts["digest"]
    assert again["matches"][0]["receipt"]["called"] == 0


def test_open_matches_of_an_entry_that_was_removed_are_not_resumed(folder: Path) -> None:
    (folder / "e.yaml").write_text(EXPERIMENT.replace("cased", "interrupted"))
    (folder / "stop").touch()
    assert call("run", "e.yaml").exit_code == 130
    (folder / "e.yaml").write_text(casing.EXPERIMENT)
    result = call("resume", "--yes")
    assert result.exit_code == 1
    assert "were begun by the entry 'matches' of matches, which there is no longer" in result.stderr


# compare --pairwise


@pytest.mark.usefixtures("run_folder")
def test_stored_runs_are_compared_by_a_judge_and_extended_by_a_further_one() -> None:
    two = read("compare", "--pairwise", "casing/upper", "casing/early", "--judge", "app.py:cased")
    assert (two["systems"], two["receipt"]["called"], two["receipt"]["reused"]) == (["upper", "early"], 10, 0)
    arguments = ("compare", "--pairwise", "casing", "--judge", "app.py:cased", "--name", "all")
    three = read(*arguments)
    assert (three["name"], three["receipt"]["called"], three["receipt"]["reused"]) == ("all", 10, 10)
    assert three["ratings"]["name"] == "all"
    assert [row["system"] for row in three["ratings"]["ratings"]] == ["upper", "early", "same"]
    shown = call(*arguments, "--gate", "upper wins against early >= 70%", "--gate", "same wins >= 20%")
    assert shown.exit_code == 3
    assert "passed  upper wins against early >= 70%" in shown.stdout
    assert "rated otherwise: evaluand rate all" in shown.stdout


def test_failed_judgements_are_counted_and_repeated_with_the_command_of_the_note(run_folder: Path) -> None:
    arguments = ("compare", "--pairwise", "casing/upper", "casing/early", "--judge", "app.py:service", "--name", "all")
    (run_folder / "down").touch()
    first = call(*arguments)
    again = call(*arguments)
    for result in (first, again):
        assert result.exit_code == 0, result.output
        [note] = [line for line in result.stderr.splitlines() if "judgements of all failed; repeat with: " in line]
    shown = " ".join(again.stdout.split())
    assert "nothing to do: " in shown
    assert "; retry_failed repeats what failed; 5 failed" in shown
    (run_folder / "down").unlink()
    facts = read(*shlex.split(note.partition("repeat with: evaluand ")[2]))
    assert (facts["receipt"]["called"], facts["receipt"]["reused"], facts["failures"]) == (5, 5, {})


@pytest.mark.usefixtures("run_folder")
def test_a_judge_that_fails_alike_from_the_start_is_stopped_and_no_ratings_are_shown() -> None:
    arguments = ("compare", "--pairwise", "casing/upper", "casing/early", "--judge", "app.py:broken")
    result = call(*arguments, "--same-failures", "3")
    assert result.exit_code == 1
    assert "error: the first 3 calls failed, all with the same error: ValueError: no idea" in result.stderr
    assert "stopped: 0 of 10 done (judge); continue with: evaluand resume " in result.stderr
    result = call(*arguments, "--same-failures", "0")
    assert result.exit_code == 1
    assert "10 done now; 10 failed (10 ValueError)" in result.stdout
    assert "bradley_terry" not in result.stdout


@pytest.mark.usefixtures("run_folder")
def test_a_judge_of_a_service_is_reported_as_unpinned_before_it_is_called() -> None:
    result = call("compare", "--pairwise", "casing", "--judge", "app.py:costly", "--limit", "1")
    note = result.stderr.splitlines()[0]
    assert note.startswith("note: the judge of matches is unpinned, so it compares everything again every time: ")
    assert note.endswith('; declare @comparison_scorer(version="1") to pin it')


def test_interrupted_comparisons_are_resumed_by_their_name(run_folder: Path) -> None:
    arguments = ("compare", "--pairwise", "casing", "--judge", "app.py:interrupted", "--baseline", "casing/early")
    arguments = (*arguments, "--limit", "9", "--name", "all")
    (run_folder / "stop").touch()
    stopped = call(*arguments)
    assert stopped.exit_code == 130, stopped.output
    assert "continue with: evaluand resume " in stopped.stderr
    (run_folder / "stop").unlink()
    facts = read("resume", "all")
    assert facts["receipt"]["kept"] > 0
    assert facts["ratings"]["name"] == "all"
    again = read(*arguments)
    assert (again["digest"], again["receipt"]["called"]) == (facts["digest"], 0)


def test_lost_judgements_that_cost_are_made_again_only_if_that_is_asked_for(run_folder: Path) -> None:
    judge = "{function: 'app.py:paid', version: '1'}"
    (run_folder / "stop").touch()
    assert call("compare", "--pairwise", "casing", "--judge", judge, "--name", "all").exit_code == 130
    (run_folder / "stop").unlink()
    [segment] = (run_folder / ".evaluand").glob("matches/*/journal/*/*.lines")
    segment.unlink()
    refused = call("resume", "all")
    assert refused.exit_code == 1
    assert "stored judgements are lost" in refused.stderr
    assert re.search("continue with: evaluand resume .* --repeat-lost", refused.stderr)
    facts = read("resume", "all", "--repeat-lost")
    assert (facts["receipt"]["kept"], facts["ratings"]["ratings"][0]["system"]) == (0, "upper")


def test_an_interrupted_comparison_whose_judge_has_changed_is_begun_again(run_folder: Path) -> None:
    arguments = ("compare", "--pairwise", "casing/upper", "casing/early", "--judge", "app.py:interrupted")
    arguments = (*arguments, "--name", "all")
    (run_folder / "stop").touch()
    assert call(*arguments).exit_code == 130
    (run_folder / "app.py").write_text(CODE.replace('"G" in (first, second)', '"H" in (first, second)'))
    result = call("resume", "all")
    assert result.exit_code == 1
    assert "settings have changed since it began; repeat the command that began it" in result.stderr
    assert f"it was begun by: evaluand {shlex.join(arguments)}" in result.stderr


def test_interrupted_comparisons_of_somebody_else_are_not_resumed(
    run_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("compare", "--pairwise", "casing", "--judge", "app.py:interrupted", "--name", "a b")
    (run_folder / "stop").touch()
    assert call(*arguments).exit_code == 130
    monkeypatch.setattr("evaluand.store.ownership.keyed_digest", lambda content: "00")
    result = call("resume", "a b")
    assert result.exit_code == 1
    assert f"to start anew, type: evaluand {shlex.join(arguments)}" in result.stderr


@pytest.mark.usefixtures("run_folder")
def test_options_with_credentials_are_not_stored(run_folder: Path) -> None:
    judge = "{function: 'app.py:stopping', version: 'https://me:secret@host'}"
    (run_folder / "stop").touch()
    stopped = call("compare", "--pairwise", "casing", "--judge", judge, "--name", "all")
    assert "run the same command again to continue" in stopped.stderr
    result = call("resume", "all")
    assert "cannot be continued by its id; repeat the command or the Python call that began it" in result.stderr


@pytest.mark.usefixtures("run_folder")
def test_a_trial_that_takes_over_a_name_is_reported() -> None:
    arguments = ("compare", "--pairwise", "casing/upper", "casing/early", "--judge", "app.py:cased", "--name", "all")
    full = read(*arguments)
    trial = call(*arguments, "--limit", "2")
    more = f"those of more examples: evaluand show {full['id'][:12]};"
    assert f"note: all now names the matches of the first 2 examples; {more}" in trial.stderr
    assert "now names" not in call(*arguments).stderr


def test_a_name_means_its_own_run_where_others_gave_the_same_responses(run_folder: Path) -> None:
    code = (run_folder / "app.py").read_text()
    (run_folder / "app.py").write_text(f"{code}\n\ndef twin(text):\n    return text.upper()\n")
    (run_folder / "e.yaml").write_text(casing.EXPERIMENT.replace("app.py:early", "app.py:twin"))
    assert call("run", "e.yaml").exit_code == 0
    judged = read("compare", "--pairwise", "casing", "--judge", "app.py:cased")
    manifest = DirectoryStore(run_folder / ".evaluand").manifest("matches", judged["id"])
    names = {ref.id: ref.name for ref in DirectoryStore(run_folder / ".evaluand").refs() if ref.kind == "runs"}
    assert manifest["spec"]["systems"] == ["upper", "twin", "same"]
    assert [names[id] for id in manifest["provenance"]["runs"]] == ["casing/upper", "casing/twin", "casing/same"]


@pytest.mark.usefixtures("run_folder")
def test_stored_runs_are_compared_by_a_scorer() -> None:
    options = ("--baseline", "casing/early", "--orders", "random", "--seed", "3", "--limit", "4")
    facts = read("compare", "--pairwise", "casing", "--by-score", "{kind: exact_match, normalise: [space]}", *options)
    assert facts["counts"] == {"scored": 8}
    budget = read(
        "compare", "--pairwise", "casing", "--by-score", "exact_match", "--schedule", "swiss", "--budget", "8"
    )
    assert budget["receipt"]["called"] <= 8


@pytest.mark.usefixtures("run_folder")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pairwise"], "--pairwise needs --judge judge.py:FUNCTION or --by-score SCORER, one of them"),
        (["--judge", "app.py:cased"], "--judge needs --pairwise"),
        (["--pairwise", "--judge", "app.py:cased", "--flips", "1"], "--flips has no meaning with --pairwise"),
        (["--pairwise", "--judge", "app.py:cased", "--budget", "1"], "--budget needs --schedule swiss or information"),
        (["--pairwise", "--judge", "app.py:cased", "--schedule", "against_baseline"], "needs --baseline NAME"),
        (["--pairwise", "--judge", "app.py:csed"], "judge: app.py has no 'csed' (did you mean 'cased'?)"),
        (["--pairwise", "--judge", "app.py:cased", "--schedule", "swis"], "schedule: no schedule is called 'swis'"),
        (["--pairwise", "--by-score", "{kind: exact_match, x: 1}"], "judge.by_score.scorer.x: exact_match has no such"),
        (["--pairwise", "--by-score", "{kind: "], "judge:1:8: not YAML: "),
        (["--pairwise", "--judge", "app.py:cased", "--baseline", "x"], "baseline 'x' is not one of the systems"),
        (["--pairwise", "--judge", "app.py:cased", "--gate", "accuracy > 1"], "gate 'accuracy > 1' is about a metric"),
        (["--pairwise", "--judge", "app.py:cased", "--gate", "x wins > 0"], "no system is called 'x': upper, early,"),
        (["--gate", "upper wins > 0.5"], "gate 'upper wins > 0.5': win_rate is a number of ratings, not of an"),
    ],
)
def test_options_that_do_not_fit_are_refused(arguments: list[str], message: str) -> None:
    result = call("compare", "casing", *arguments)
    assert result.exit_code in (1, 2)
    assert message in result.stderr
