"""A checkout or a store from somebody else: commands that look at it start no program and import no code of it."""

from __future__ import annotations

import importlib
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result
from support.patience import PATIENCE

from evaluand.apps.recording.writer import RecordingWriter
from evaluand.cli import main
from evaluand.core.user import config_folder
from evaluand.evaluation.feedback import Feedback
from evaluand.store.directory import DirectoryStore
from evaluand.store.store import with_seal
from evaluand.trace import Trace

EXPERIMENT = """
name: echo
dataset: {path: rows.jsonl}
tasks: {same: {function: app.py:same}, other: {function: app.py:other}}
scorers: {right: exact_match}
metrics: [{kind: mean, scorer: right}]
"""
CODE = "def same(input):\n    return input\n\ndef other(input):\n    return 'c'\n"
ROWS = '{"input": "a", "expected": "a"}\n{"input": "b", "expected": "c"}\n'
FILES = {"rows.jsonl": ROWS, "app.py": CODE, "e.yaml": EXPERIMENT}


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    """A folder in which every planted program and module leaves a file."""
    (tmp_path / "evil").mkdir()
    return tmp_path / "evil"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "checkout"
    path.mkdir()
    for name, text in FILES.items():
        (path / name).write_text(text)
    monkeypatch.chdir(path)
    monkeypatch.delenv("EVALUAND_STORE", raising=False)
    return path


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of a checkout whose experiment was run."""
    path, before = tmp_path_factory.mktemp("ran"), sys.path[:]
    for name, text in FILES.items():
        (path / name).write_text(text)
    call("run", str(path / "e.yaml"), "--store", str(path / "store"))
    sys.path[:] = before
    return path / "store"


@pytest.fixture
def ran(checkout: Path, store: Path) -> Path:
    shutil.copytree(store, checkout / ".evaluand")
    return checkout


def call(*arguments: str, code: int = 0, **options: Any) -> Result:
    result = CliRunner().invoke(main, arguments, **options)
    assert result.exit_code == code, result.output
    return result


# -- git


@pytest.fixture
def hostile(checkout: Path, evil: Path) -> Path:
    """A checkout whose configuration names programs."""
    git("init", "-q")
    git("add", ".")
    git("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "Add everything")
    for key in ("core.fsmonitor", "filter.planted.clean", "core.pager", "core.sshCommand", "diff.external"):
        git("config", key, f"touch {evil}/{key}; cat")
    hooks = checkout / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "post-index-change").write_text(f"#!/bin/sh\ntouch {evil}/hook\n")
    (hooks / "post-index-change").chmod(0o755)
    (checkout / ".gitattributes").write_text("* filter=planted\n")
    return checkout


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout


def test_no_command_starts_a_program_that_the_configuration_of_a_checkout_names(hostile: Path, evil: Path) -> None:
    commit = git("rev-parse", "HEAD").strip()
    (hostile / "app.py").write_text(CODE.replace("'c'", "'d'"))
    call("run", "e.yaml")
    call("compare", "echo/same", "echo/other")
    (hostile / "predictions.jsonl").write_text('{"_index_": 0, "response": "a"}\n{"_index_": 1, "response": "b"}\n')
    call("import", "predictions.jsonl", "--dataset", "echo/same", "--response", "response", "--name", "imported")
    shown = orjson.loads(call("show", "echo/same", "--json").stdout)["manifest"]["provenance"]["git"]
    assert shown == {"commit": commit, "changed": None}
    assert f"{commit}, changes unknown" in " ".join(call("show", "echo/same").stdout.split())
    call("run", "e.yaml", "--fresh", "--git-changes")
    shown = orjson.loads(call("show", "echo/same", "--json").stdout)["manifest"]["provenance"]["git"]
    assert shown == {"commit": commit, "changed": None}, "app.py passes a filter"
    assert not list(evil.iterdir())
    subprocess.run(["git", "status"], capture_output=True)
    assert list(evil.iterdir()), "the planted programs would run"


def test_git_is_asked_for_changes_on_request_only(checkout: Path) -> None:
    git("init", "-q")
    git("add", ".")
    git("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "Add everything")
    (checkout / "rows.jsonl").write_text(ROWS + '{"input": "c", "expected": "c"}\n')
    call("run", "e.yaml", "--git-changes")
    assert "with changes" in call("show", "echo/same").stdout


def test_a_checkout_cannot_ask_for_changes(checkout: Path) -> None:
    (checkout / "evaluand.toml").write_text("[run]\ngit-changes = true\n")
    assert "run.git-changes: cannot be set in evaluand.toml" in call("run", "e.yaml", code=1).stderr


# -- resume

INTERRUPTED = """
name: echo
dataset: {path: rows.jsonl}
tasks: {same: {function: app.py:same, version: 1}}
scorers: {right: exact_match}
metrics: [{kind: mean, scorer: right}]
run: {concurrency: 1, abort_on_error: true}
"""
FAILING = """
import os
open("EVIL/imported", "w").close()

def same(input):
    if os.path.exists("EVIL/broken"):
        raise ValueError("broken")
    return input
"""


def become(somebody: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / f"home of {somebody}"))
    for name in ("app", "judges"):
        sys.modules.pop(name, None)


@pytest.fixture
def interrupted(checkout: Path, evil: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a run that somebody else has begun, whose code leaves a file when it is imported."""
    become("somebody else", tmp_path, monkeypatch)
    begin(checkout, evil)
    become("the user", tmp_path, monkeypatch)
    return checkout


def begin(checkout: Path, evil: Path, file: str = "e.yaml") -> None:
    (checkout / "app.py").write_text(FAILING.replace("EVIL", str(evil)))
    (checkout / file).write_text(
        INTERRUPTED.replace("rows.jsonl", str(checkout / "rows.jsonl")).replace(
            "app.py", os.path.relpath(checkout / "app.py", (checkout / file).parent)
        )
    )
    (evil / "broken").touch()
    call("run", file, code=1)
    for name in ("broken", "imported"):
        (evil / name).unlink()
    sys.modules.pop("app", None)


def was_executed(evil: Path) -> bool:
    return (evil / "imported").exists()


def test_a_run_of_somebody_else_is_resumed_only_on_request(interrupted: Path, evil: Path) -> None:
    for looking in (("list",), ("show", "echo/same"), ("verify",), ("gc", "--dry-run")):
        call(*looking)
    refused = call("resume", "echo/same", code=1).stderr
    assert f"was not begun by you in this store, or your key in {config_folder()} was removed; resuming it" in refused
    assert f"code that {interrupted}/e.yaml names, and modules that this code imports are not compared; " in refused
    assert "if you trust it and the calls stored in it, add --yes; " in refused
    assert f"to start anew, type: evaluand run {interrupted}/e.yaml --fresh\n" in refused
    assert not was_executed(evil)
    call("resume", "echo/same", "--yes")
    assert was_executed(evil)


def test_calls_that_somebody_else_has_stored_are_noted(interrupted: Path) -> None:
    noted = call("run", "e.yaml").stderr
    assert " was not begun by you in this store: 1 call stored in it is used as if made by you; " in noted
    assert "to repeat every call and grade, add --fresh (fresh=True)" in noted
    (manifest,) = [orjson.loads(path.read_bytes()) for path in interrupted.glob(".evaluand/runs/*/manifest.json")]
    assert manifest["provenance"]["unproven_results"] == 1
    assert "stored in it" not in call("run", "e.yaml").stderr
    call("verify")


def test_work_of_somebody_else_can_be_started_anew(interrupted: Path) -> None:
    assert "stored in it" not in call("run", "e.yaml", "--fresh").stderr
    (manifest,) = [orjson.loads(path.read_bytes()) for path in interrupted.glob(".evaluand/runs/*/manifest.json")]
    assert "unproven_results" not in manifest["provenance"]


def test_continued_calls_of_the_user_are_not_noted(checkout: Path, evil: Path) -> None:
    begin(checkout, evil)
    assert "stored in it" not in call("run", "e.yaml").stderr


def test_a_changed_file_of_somebody_else_is_not_executed(interrupted: Path, evil: Path) -> None:
    (interrupted / "e.yaml").write_text(INTERRUPTED + "# changed\n")
    refused = call("resume", "echo/same", "--yes", code=1).stderr
    assert f"{interrupted}/e.yaml is not the file that began it; " in refused
    assert f"to start anew, type: evaluand run {interrupted}/e.yaml --fresh\n" in refused
    assert not was_executed(evil)


def test_a_changed_file_of_the_user_is_resumed_on_request(checkout: Path, evil: Path) -> None:
    begin(checkout, evil)
    text = (checkout / "e.yaml").read_text()
    (checkout / "e.yaml").write_text(text.replace("concurrency: 1", "concurrency: 2"))
    refused = call("resume", code=1).stderr
    assert f"error: {checkout}/e.yaml has changed since you began run " in refused
    assert f"if you agree, add --yes, or type: evaluand run {checkout}/e.yaml\n" in refused
    assert not was_executed(evil)
    call("resume", "--yes")
    assert was_executed(evil)


def test_a_missing_experiment_is_found_in_the_current_folder(
    checkout: Path, evil: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(checkout, evil)
    (checkout / ".evaluand").rename(checkout / "my store")
    (checkout / "there").mkdir()
    (checkout / "e.yaml").rename(checkout / "there" / "e.yaml")
    missing = call("--store", "my store", "resume", code=1).stderr
    assert f"{checkout}/e.yaml, which no longer exists; restore the file, or run another one\n" in missing
    monkeypatch.chdir(checkout / "there")
    found = call("--store", "../my store", "resume", code=1).stderr
    assert "in this folder, and continues it: evaluand run ./e.yaml --store '../my store'\n" in found
    (checkout / "there" / "e.yaml").write_text("name: another")
    assert "restore the file" in call("--store", "../my store", "resume", code=1).stderr


def test_work_with_the_spec_of_other_work_is_not_continued(checkout: Path, evil: Path) -> None:
    begin(checkout, evil)
    for file in (checkout / ".evaluand" / "runs").glob("*/open.json"):
        manifest = orjson.loads(file.read_bytes())
        manifest["spec"]["seed"] = 7
        file.write_bytes(orjson.dumps(with_seal(manifest)))
    for command in (("resume", "--yes"), ("run", "e.yaml")):
        assert "cannot be continued: its manifest was changed, and its spec does not" in call(*command, code=1).stderr
    assert not list(checkout.glob(".evaluand/runs/*/manifest.json"))


def test_a_store_that_was_moved_is_that_of_somebody_else(checkout: Path, evil: Path) -> None:
    begin(checkout, evil)
    (checkout / ".evaluand").rename(checkout / "moved")
    refused = call("--store", "moved", "resume", code=1).stderr
    assert "was not begun by you in this store; resuming" in refused
    assert f"to start anew, type: evaluand run {checkout}/e.yaml --fresh --store moved\n" in refused
    assert not was_executed(evil)


@pytest.mark.parametrize("is_link", [False, True])
def test_an_experiment_inside_the_store_is_never_executed(checkout: Path, evil: Path, is_link: bool) -> None:
    (checkout / ".evaluand").mkdir()
    if is_link:
        begin(checkout, evil)
        (checkout / "e.yaml").rename(checkout / ".evaluand" / "e.yaml")
        (checkout / "e.yaml").symlink_to(".evaluand/e.yaml")
    else:
        begin(checkout, evil, ".evaluand/e.yaml")
    assert "is inside the store; a store holds data" in call("resume", "--yes", code=1).stderr
    assert not was_executed(evil)


def test_a_checkout_cannot_answer_for_the_user(interrupted: Path, evil: Path) -> None:
    (interrupted / "evaluand.toml").write_text("[resume]\nyes = true\n")
    assert "resume.yes: cannot be set in evaluand.toml" in call("resume", code=1).stderr
    assert not was_executed(evil)


@contextmanager
def resuming_on_a_terminal() -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A process that resumes, and a handle for what the user types."""
    typed, terminal = pty.openpty()
    command = [sys.executable, "-m", "evaluand.cli", "resume"]
    process = subprocess.Popen(command, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        yield process, typed
    finally:
        process.kill()
        process.communicate()
        for handle in (typed, terminal):
            os.close(handle)


@pytest.mark.slow
def test_on_a_terminal_the_user_is_asked(interrupted: Path, evil: Path) -> None:
    with resuming_on_a_terminal() as (asked, terminal):
        os.write(terminal, b"n\n")
        _, errors = asked.communicate(timeout=PATIENCE)
    assert b"code that" in errors
    assert b"continue? [y/N]" in errors
    assert asked.returncode == 1
    assert not was_executed(evil)


@pytest.mark.slow
def test_what_was_compared_is_executed_if_the_file_is_replaced_meanwhile(interrupted: Path, evil: Path) -> None:
    with resuming_on_a_terminal() as (asked, terminal):
        assert asked.stderr is not None
        errors = b""
        while b"[y/N]" not in errors and (read := asked.stderr.read1()):
            errors += read
        (interrupted / "e.yaml").write_text("name: replaced")
        os.write(terminal, b"y\n")
        _, more = asked.communicate(timeout=PATIENCE)
    assert asked.returncode == 0, errors + more
    assert was_executed(evil)


# -- feedbacks

JUDGES = """
open("EVIL/imported", "w").close()

def fits(text):
    return 1.0
"""


@pytest.fixture
def recorded(checkout: Path, evil: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Records a call for somebody else, to be judged by a function of a module in the checkout."""
    (checkout / "judges.py").write_text(JUDGES.replace("EVIL", str(evil)))

    def record() -> str:
        become("somebody else", tmp_path, monkeypatch)
        monkeypatch.syspath_prepend(checkout)
        feedback = Feedback(importlib.import_module("judges").fits, name="fits").on_output()
        app = {"name": "app", "version": "1", "app_id": "app:1"}
        writer = RecordingWriter.begin(DirectoryStore(".evaluand"), app, feedback, mode="deferred", name="app")
        trace = Trace.start("app", "a question")
        with trace.root as root:
            root.output = "an answer"
        writer.keep(trace)
        writer.end()
        monkeypatch.undo()
        monkeypatch.chdir(checkout)
        become("the user", tmp_path, monkeypatch)
        (evil / "imported").unlink()
        return writer.id

    return record


def test_modules_of_a_checkout_are_imported_only_by_name_for_a_recording_of_somebody_else(
    recorded: Callable[..., str], evil: Path
) -> None:
    recorded()
    for command in (("feedback", "status", "app"), ("show", "app"), ("list",), ("verify",)):
        call(*command)
    for command in (("feedback", "work", "app"), ("resume", "app")):
        refused = call(*command, code=1).stderr
        assert "judges:fits may not be imported: the recording was not begun by you in this store" in refused
        assert "--allow judges" in refused
    assert not was_executed(evil)
    assert "fits: 1 scored" in call("feedback", "work", "app", "--allow", "judges").stdout
    assert was_executed(evil)


def test_giving_up_imports_nothing(recorded: Callable[..., str], evil: Path) -> None:
    recorded()
    assert "fits: 1 failed" in call("resume", "app", "--give-up").stdout
    assert not was_executed(evil)


# -- modules and settings

LOOKING = """
import sys
from click.testing import CliRunner
from evaluand.cli import main

for command in sys.stdin.read().splitlines():
    result = CliRunner().invoke(main, command.split())
    assert result.exit_code == 0, (command, result.output, result.exception)

asked = {"_EVALUAND_COMPLETE": "bash_complete", "COMP_WORDS": "evaluand show ec", "COMP_CWORD": "2"}
completed = CliRunner(env=asked).invoke(main, [], prog_name="evaluand")
assert "plain,echo" in completed.output, completed.output
"""
PLUGIN = """
[evaluand.metrics]
planted = planted_plugin:Metric
accuracy = planted_plugin:Metric
[evaluand.formats]
jsonl = planted_plugin:Format
"""


@pytest.mark.slow
def test_looking_imports_no_module_of_the_working_folder(checkout: Path, evil: Path) -> None:
    """In a process of its own, as the console script is started: without the working folder on the import path."""
    call("run", "e.yaml")
    names = ("numpy", "yaml", "pyarrow", "click", "orjson", "rich", "pydantic", "pandas", "app", "conftest", "readline")
    for name in (*names, "sitecustomize", "usercustomize", "evaluand", "planted_plugin", "json"):
        (checkout / f"{name}.py").write_text(f"open('{evil}/{name}', 'w').close()\n")
    (checkout / "planted-1.0.dist-info").mkdir()
    (checkout / "planted-1.0.dist-info" / "METADATA").write_text("Name: planted\nVersion: 1.0\n")
    (checkout / "planted-1.0.dist-info" / "entry_points.txt").write_text(PLUGIN)
    commands = [
        "list", "list metrics", "list runs --json", "show echo", "show echo/same --failed", "verify", "report echo",
        "export echo/same -o out.csv", "compare echo/same echo/other", "gc --dry-run", "completion bash",
        "label export echo/same -o labels.csv",
    ]  # fmt: skip
    process = [sys.executable, "-P", "-c", LOOKING]
    looked = subprocess.run(process, input="\n".join(commands), capture_output=True, text=True)
    assert looked.returncode == 0, looked.stderr
    assert [path.name for path in evil.iterdir()] == []


def test_work_on_a_recording_of_somebody_else_leaves_the_folder_off_the_import_path(
    recorded: Callable[..., str], checkout: Path
) -> None:
    recorded()
    before = sys.path[:]
    call("feedback", "work", "app", code=1)
    call("resume", "app", code=1)
    assert sys.path == before
    call("feedback", "work", "app", "--allow", "judges")
    assert sys.path == [*before, str(checkout)]


@pytest.mark.parametrize(
    ("text", "command", "flag"),
    [
        ("[export]\noutput = 'app.py'", "export echo/same", "--output"),
        ("[export]\noutput = '.venv/lib/python3.11/site-packages/a.pth'", "export echo/same", "--output"),
        ("[run]\njunit = '.git/config'\ngate = ['mean >= 0']", "run e.yaml", "--junit"),
        ("[compare]\njunit = 'app.py'\ngate = ['mean >= 0']", "compare echo/same echo/other", "--junit"),
        ("[report]\noutput = 'e.yaml'", "report echo", "--output"),
        ("[score]\nreport = 'app.py'", "score rows.jsonl --truth expected --prediction input", "--report"),
        ("[score]\ntable = 'app.py'", "score rows.jsonl --truth expected --prediction input", "--table"),
    ],
)
def test_settings_of_a_checkout_write_no_file(ran: Path, text: str, command: str, flag: str) -> None:
    (ran / "evaluand.toml").write_text(text)
    before = contents(ran)
    name, option = command.split()[0], flag.removeprefix("--")
    assert call(*command.split(), code=1).stderr == (
        f"error: {ran}/evaluand.toml: {name}.{option}: names a file to write, which evaluand.toml cannot;"
        f" give {flag} on the command line, or set EVALUAND_{name.upper()}_{option.upper()}\n"
    )
    assert contents(ran) == before


def contents(folder: Path) -> dict[Path, bytes]:
    """The files of a folder, without its store."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and ".evaluand" not in path.parts}


def test_a_file_to_write_is_named_on_the_command_line_or_in_the_environment(ran: Path) -> None:
    (ran / "evaluand.toml").write_text("[export]\noutput = 'app.py'\ntable = 'responses'\n")
    call("export", "echo/same", "-o", "one.csv")
    call("export", "echo/same", env={"EVALUAND_EXPORT_OUTPUT": "two.csv"})
    assert (ran / "one.csv").read_bytes() == (ran / "two.csv").read_bytes()


@pytest.mark.parametrize("name", ["../app.py", ".git/config", "app.py"])
def test_a_report_that_settings_request_replaces_no_other_file(checkout: Path, name: str) -> None:
    (checkout / "e.yaml").write_text(EXPERIMENT.replace("name: echo", f"name: {name}"))
    (checkout / "app.py.html").write_text("<title>mine</title>")
    (checkout / "evaluand.toml").write_text("[run]\nreport = true\n")
    before = {*contents(checkout.parent)}
    CliRunner().invoke(main, ["run", "e.yaml"])
    assert (checkout / "app.py.html").read_text() == "<title>mine</title>"
    new = {path for path in {*contents(checkout.parent)} - before if "__pycache__" not in path.parts}
    assert all(path.parent == checkout and path.suffix == ".html" for path in new)


@pytest.mark.parametrize("table", ["gc", "resume"])
def test_settings_of_a_checkout_do_not_confirm(checkout: Path, table: str) -> None:
    (checkout / "evaluand.toml").write_text(f"[{table}]\nyes = true\n")
    assert f"{table}.yes: cannot be set in evaluand.toml" in call(table, code=1).stderr


def test_settings_that_are_no_file_do_not_count(checkout: Path) -> None:
    os.mkfifo(checkout / "evaluand.toml")
    (checkout / "pyproject.toml").symlink_to("/dev/zero")
    os.mkfifo(checkout / "other.yaml")
    call("list")
    call("run")


@pytest.mark.parametrize("key", ["open-older-than = '0s'", "unreferenced = true", "damaged = true"])
def test_settings_of_a_checkout_choose_nothing_to_remove(checkout: Path, key: str) -> None:
    (checkout / "evaluand.toml").write_text(f"[gc]\n{key}\n")
    message = f"gc.{key.split()[0]}: cannot be set in evaluand.toml; give it on the command line"
    assert message in call("gc", "--dry-run", code=1).stderr


def test_an_option_of_the_command_line_replaces_what_settings_may_not_set(ran: Path) -> None:
    (ran / "evaluand.toml").write_text("[export]\noutput = '../outside'\n[gc]\nyes = true\n")
    call("export", "echo/same", code=1)
    call("export", "echo/same", "-o", "inside.csv")
    call("gc", "--yes")
    call("gc", "--help")


SOMEWHERE = ["list", "verify", "gc --yes", "gc --dry-run", "run e.yaml", "show echo/same", "resume", "report echo"]


@pytest.fixture
def elsewhere(checkout: Path, store: Path) -> Path:
    """A store outside the checkout, in which nothing may change."""
    return shutil.copytree(store, checkout.parent / "elsewhere")


@pytest.mark.parametrize("text", ['store = "../elsewhere"', 'store = "link"', 'store = "link/../elsewhere"'])
@pytest.mark.parametrize("in_command", [False, True])
def test_settings_of_a_checkout_name_no_store_elsewhere(
    checkout: Path, elsewhere: Path, text: str, in_command: bool
) -> None:
    (checkout / "link").symlink_to(elsewhere)
    before = sorted(elsewhere.rglob("*"))
    for command in SOMEWHERE:
        (checkout / "evaluand.toml").write_text(f"[{command.split()[0]}]\n{text}" if in_command else text)
        refused = call(*command.split(), code=1).stderr
        assert refused.endswith(
            f"leads out of the folder of this file; give --store {elsewhere}, or set EVALUAND_STORE\n"
        )
    assert sorted(elsewhere.rglob("*")) == before
    call("list", "--store", str(elsewhere))
    call("--store", "link", "list")
    call("list", env={"EVALUAND_STORE": "link"})


def test_a_default_store_that_is_a_link_elsewhere_is_not_followed(checkout: Path, elsewhere: Path) -> None:
    (checkout / ".evaluand").symlink_to("../elsewhere")
    before = sorted(elsewhere.rglob("*"))
    for command in SOMEWHERE:
        refused = call(*command.split(), code=1).stderr
        assert refused == (
            f"error: .evaluand is a link to {elsewhere}, outside this folder, and is not followed;"
            f" to use that store, give --store {elsewhere}\n"
        )
    assert sorted(elsewhere.rglob("*")) == before
    assert "more: evaluand show echo --store .evaluand\n" in call("run", "e.yaml", "--store", ".evaluand").stdout
    call("list", "--store", str(elsewhere))
    call("list", env={"EVALUAND_STORE": ".evaluand"})


def test_a_default_store_that_is_a_link_within_the_folder_is_used(checkout: Path) -> None:
    (checkout / "results").mkdir()
    (checkout / ".evaluand").symlink_to("results")
    call("run", "e.yaml")
    assert (checkout / "results" / "runs").is_dir()
