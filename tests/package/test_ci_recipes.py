"""The action for GitHub, the job for GitLab and the hook for pre-commit do what they say."""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
import sys
from contextlib import chdir
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar
from xml.etree import ElementTree

import pytest
import yaml
from click.testing import CliRunner
from support.places import ROOT_FOLDER
from support.warm_program import run_script

from evaluand.cli import main

NASTY = "$(touch owned) `touch owned`'\".yaml"
GH = """#!/bin/sh
printf '%s\\n' "$@" --end-- >> "$RUNNER_TEMP/gh.log"
case "$*" in
    "api user "*) cat "$RUNNER_TEMP/login" 2>/dev/null || { echo '{"message": "Resource not accessible"}'; exit 1; } ;;
    *--jq*) cat "$RUNNER_TEMP/comment-id" 2>/dev/null || true ;;
esac
"""
LOCKED = ROOT_FOLDER / ".ci" / "locked.py"
PIP = """#!/bin/sh
printf '%s\\n' "$*" >> "$RUNNER_TEMP/python.log"
"""


def read_yaml(name: str) -> Any:
    return yaml.safe_load((ROOT_FOLDER / name).read_text())


def program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


class Job:
    """A folder in which the steps of the action run as GitHub runs them."""

    def __init__(self, path: Path, **inputs: str) -> None:
        self.path, self.action = path, read_yaml("action.yml")
        defaults = {name: str(each.get("default", "")) for name, each in self.action["inputs"].items()}
        self.context = {f"inputs.{name}": text for name, text in (defaults | inputs).items()}
        self.context |= {"github.event.pull_request.number": "7", "github.repository": "me/repo"}
        (path / "bin").mkdir()
        (path / "temp").mkdir()
        program(path / "bin" / "gh", GH)
        program(path / "bin" / "python", PIP)

    def step(self, name: str) -> subprocess.CompletedProcess[str]:
        """Runs a step, and takes its outputs over."""
        [step] = [each for each in self.action["runs"]["steps"] if each["name"] == name]
        output = self.path / "output"
        output.write_text("")
        env = {
            key: re.sub(r"\$\{\{ (.*?) \}\}", lambda m: self.context.get(m[1], ""), text)
            for key, text in step["env"].items()
        }
        env |= {
            "HOME": str(self.path),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(self.path / "summary.md"),
            "GITHUB_ACTION_PATH": "/action",
            "RUNNER_TEMP": str(self.path / "temp"),
        }
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = run_script(command, self.path, env, first=self.path / "bin")
        for line in output.read_text().splitlines():
            key, _, value = line.partition("=")
            self.context[f"steps.{step.get('id')}.outputs.{key}"] = value
        return done

    def log(self, name: str) -> list[str]:
        return (self.path / "temp" / name).read_text().splitlines()


def make(path: Path, name: str = "experiment.yaml", least: float = 0.9, **inputs: str) -> Job:
    rows = "".join(f'{{"n": "{n}", "a": "{n if n % 2 else 0}"}}\n' for n in range(10))
    (path / "rows.jsonl").write_text(rows)
    (path / "app.py").write_text("def same(n): return n\n")
    (path / name).write_text(
        "name: sums\ndataset: {path: rows.jsonl, input: n, expected: a}\ntasks: {'same@you': 'app.py:same'}\n"
        f"scorers: {{exact: exact_match}}\nmetrics: [accuracy]\ngates: ['accuracy >= {least}']\n"
    )
    return Job(path, file=name, **inputs)


def test_no_script_of_the_action_contains_an_input() -> None:
    steps = read_yaml("action.yml")["runs"]["steps"]
    assert all(step["shell"] == "bash" and "${{" not in step["run"] for step in steps)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """A job whose gate has failed, with inputs that a shell would execute."""
    job = make(tmp_path_factory.mktemp("job"), NASTY, store="$(touch owned)", junit="gates.xml")
    for name in ("Run the experiment", "Show the values"):
        step = job.step(name)
        assert step.returncode == 0, step.stderr
    return job


def test_the_action_shows_the_values_and_fails_with_the_gate(done: Job) -> None:
    summary = (done.path / "summary.md").read_text()
    assert "| FAILED | accuracy" in summary
    assert "same@\u200byou" in summary
    assert ElementTree.parse(done.path / "gates.xml").getroot().get("failures") == "1"
    assert done.step("Pass on the result").returncode == 3


def test_the_action_passes_if_the_gates_hold(tmp_path: Path) -> None:
    job = make(tmp_path, least=0.1)
    job.step("Run the experiment")
    assert job.step("Pass on the result").returncode == 0


def test_an_error_is_passed_on_and_takes_the_place_of_earlier_values(tmp_path: Path) -> None:
    job = Job(tmp_path, file="missing.yaml")
    assert "missing.yaml" in job.step("Run the experiment").stderr
    assert job.context["steps.run.outputs.exit-code"] not in ("0", "3")
    for name in ("Show the values", "Comment on the pull request"):
        assert job.step(name).returncode == 0
    for written in (tmp_path / "summary.md", tmp_path / "temp" / "evaluand-comment.md"):
        assert "**evaluand failed** with exit code 1, so there are no values" in written.read_text()
    assert job.step("Pass on the result").returncode != 0


@pytest.mark.parametrize(("chosen", "passed"), [({}, True), ({"retry-failed": "false"}, False)])
def test_the_action_repeats_what_failed_unless_told_otherwise(
    tmp_path: Path, chosen: dict[str, str], passed: bool
) -> None:
    job = Job(tmp_path, file="e.yaml", **chosen)
    program(tmp_path / "bin" / "evaluand", '#!/bin/sh\nprintf "%s\\n" "$@" > "$RUNNER_TEMP/evaluand.log"\n')
    assert job.step("Run the experiment").returncode == 0
    assert ("--retry-failed" in job.log("evaluand.log")) == passed


def test_inputs_are_never_executed(done: Job) -> None:
    done.context["inputs.extras"] = "http]; touch owned #"
    for name in ("Install evaluand", "Comment on the pull request"):
        step = done.step(name)
        assert step.returncode == 0, step.stderr
    assert not (done.path / "owned").exists()
    assert done.log("python.log")[0] == "/action/.ci/locked.py http]; touch owned #"


def test_the_version_of_the_action_is_installed_with_files_of_the_lock_alone(tmp_path: Path) -> None:
    job = Job(tmp_path, extras="llm")
    assert job.step("Install evaluand").returncode == 0
    locked, packages, itself = job.log("python.log")
    assert locked == "/action/.ci/locked.py llm"
    assert packages.endswith(f"--require-hashes --requirement {tmp_path}/temp/evaluand.lock")
    assert itself.endswith("--no-deps --no-build-isolation /action")


@pytest.mark.parametrize(
    ("extras", "names", "others"),
    [("", {"pyarrow", "hatchling"}, {"jinja2", "wandb"}), ("llm, sklearn", {"jinja2", "aiohttp", "scipy"}, {"wandb"})],
)
def test_the_lock_of_some_extras_has_what_they_need(extras: str, names: set[str], others: set[str]) -> None:
    done = subprocess.run([sys.executable, LOCKED, extras], capture_output=True, text=True, check=True)
    entries = re.findall(r"^([a-z0-9-]+)==.*\\\n    --hash=sha256:", done.stdout, re.MULTILINE)
    assert names <= {*entries}
    assert not others & {*entries}
    assert done.stdout.count("==") == len(entries)


def test_an_unknown_extra_is_named() -> None:
    done = subprocess.run([sys.executable, LOCKED, "lm"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.partition(";")[0]) == (1, "error: evaluand has no extra 'lm'")


def test_a_comment_is_written_once_and_then_replaced(done: Job) -> None:
    step = done.step("Comment on the pull request")
    assert step.returncode == 0, step.stderr
    assert "repos/me/repo/issues/7/comments" in done.log("gh.log")
    body = (done.path / "temp" / "evaluand-comment.md").read_text()
    assert body.startswith("<!-- evaluand ")
    assert "accuracy" in body
    (done.path / "temp" / "comment-id").write_text("41\n")
    done.step("Comment on the pull request")
    calls = "\n".join(done.log("gh.log"))
    assert "PATCH\nrepos/me/repo/issues/comments/41\n" in calls


@pytest.mark.parametrize(("login", "author"), [("", "github-actions[bot]"), ("robot", "robot")])
def test_only_the_own_comment_of_a_job_is_replaced(tmp_path: Path, login: str, author: str) -> None:
    job = Job(tmp_path, file="e.yaml")
    (tmp_path / "values.md").write_text("values")
    job.context["steps.summary.outputs.markdown"] = str(tmp_path / "values.md")
    if login:
        (tmp_path / "temp" / "login").write_text(login)
    marks = set()
    for id in ("", "large"):
        job.context["inputs.id"] = id
        assert job.step("Comment on the pull request").returncode == 0
        marks.add((tmp_path / "temp" / "evaluand-comment.md").read_text().splitlines()[0])
    assert len(marks) == 2
    assert f'.user.login == "{author}"' in "\n".join(job.log("gh.log"))


def test_a_long_comment_is_cut_where_github_accepts_it(tmp_path: Path) -> None:
    job = Job(tmp_path, file="e.yaml")
    (tmp_path / "long.md").write_text("…" * 40_000)
    job.context["steps.summary.outputs.markdown"] = str(tmp_path / "long.md")
    assert job.step("Comment on the pull request").returncode == 0
    assert len((tmp_path / "temp" / "evaluand-comment.md").read_text()) < 65_536


def test_the_hook_validates_every_file(tmp_path: Path) -> None:
    [hook] = read_yaml(".pre-commit-hooks.yaml")
    assert hook["id"] == "evaluand-validate"
    pattern = re.compile(hook["files"])
    assert pattern.search("a/experiment.yaml")
    assert pattern.search("support.experiment.yml")
    assert not pattern.search("a/other.yaml")
    make(tmp_path)
    (tmp_path / "wrong.yaml").write_text("name: [1]\n")

    def check(*files: str) -> subprocess.CompletedProcess[str]:
        command = [*shlex.split(hook["entry"]), *files]
        return run_script(["bash", "-c", shlex.join(command)], tmp_path, {"HOME": str(tmp_path)})

    both = check("wrong.yaml", "experiment.yaml")
    assert both.returncode == 1
    assert "wrong.yaml" in both.stdout + both.stderr
    assert "experiment.yaml" not in both.stderr
    assert check("experiment.yaml").returncode == 0


def recipes() -> list[Any]:
    page = (ROOT_FOLDER / "docs/howto/ci.md").read_text()
    return [*map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", page, re.DOTALL))]


class Notes(BaseHTTPRequestHandler):
    """The comments of merge requests, as GitLab takes them."""

    posted: ClassVar[list[tuple[str, str, str]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.posted.append((self.path, self.headers["PRIVATE-TOKEN"], body))
        self.send_response(201)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.mark.parametrize("code", [0, 1, 3])
def test_only_a_job_for_gitlab_that_has_values_reports_them(tmp_path: Path, code: int) -> None:
    job = recipes()[1]["evaluate"]
    assert job["cache"]["when"] == "always"
    assert run_recipe("\n".join(line for line in job["script"] if "pip install" not in line), tmp_path, code) == code
    assert (tmp_path / "evaluand.md").exists() == (code != 1)


@pytest.mark.parametrize(("code", "commands"), [(0, 3), (1, 1), (3, 3)])
def test_a_failed_gate_does_not_end_a_step_before_its_summary(tmp_path: Path, code: int, commands: int) -> None:
    page = (ROOT_FOLDER / "docs/howto/ci.md").read_text()
    [script] = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    assert run_recipe(script, tmp_path, code) == code
    assert len((tmp_path / "called").read_text().splitlines()) == commands


def run_recipe(script: str, folder: Path, code: int) -> int:
    """The exit code of a script in which `evaluand run` has an exit code, and other commands of evaluand succeed."""
    (folder / "bin").mkdir()
    program(folder / "bin" / "evaluand", f'#!/bin/sh\necho "$1" >> called\n[ "$1" != run ] || exit {code}\n')
    env = {"PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}", "GITHUB_STEP_SUMMARY": "summary.md"}
    return subprocess.run(["bash", "-e", "-c", script], cwd=folder, env=env, check=False).returncode


def test_the_job_for_gitlab_comments_if_it_has_a_token(tmp_path: Path) -> None:
    make(tmp_path)
    job = recipes()[1]["evaluate"]

    def call(lines: list[str], token: str) -> int:
        env = {"HOME": str(tmp_path), "EVALUAND_TOKEN": token, "CI_API_V4_URL": address}
        env |= {"CI_PROJECT_ID": "12", "CI_MERGE_REQUEST_IID": "7"}
        command = ["bash", "-e", "-c", "\n".join(lines)]
        return run_script(command, tmp_path, env).returncode

    Notes.posted.clear()
    with HTTPServer(("127.0.0.1", 0), Notes) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/api/v4"
        assert call([line for line in job["script"] if "pip install" not in line], "") == 3
        assert call(job["after_script"], "") == 0
        assert not Notes.posted
        assert set(job["artifacts"]["paths"]) <= {each.name for each in tmp_path.iterdir()}
        assert call(job["after_script"], "secret") == 0
        (tmp_path / "evaluand.md").unlink()
        assert call(job["after_script"], "secret") == 0
        server.shutdown()
    [(asked, sent, body)] = Notes.posted
    assert (asked, sent) == ("/api/v4/projects/12/merge_requests/7/notes", "secret")
    assert "**sums**" in body


def test_the_experiment_of_the_page_gives_gitlab_a_test_case(tmp_path: Path) -> None:
    _, gitlab, experiment, _ = recipes()
    [options] = [line for line in gitlab["evaluate"]["script"] if line.startswith("evaluand run")]
    options = options.partition(" || ")[0]
    (tmp_path / "experiment.yaml").write_text(yaml.safe_dump(experiment))
    (tmp_path / "app.py").write_text("def answer(question):\n    return question.upper()\n")
    (tmp_path / "questions.csv").write_text("input,expected\na,A\nb,B\n")
    with chdir(tmp_path):
        result = CliRunner().invoke(main, options.split()[1:])
        assert result.exit_code == 0, result.output
        assert b'tests="1" failures="0"' in (tmp_path / "gates.xml").read_bytes()
        (tmp_path / "experiment.yaml").write_text(yaml.safe_dump({**experiment, "gates": []}))
        assert "--junit needs gates: in the file, or --gate" in CliRunner().invoke(main, options.split()[1:]).output


def test_the_recipes_of_the_page_are_yaml_and_name_what_exists() -> None:
    page = (ROOT_FOLDER / "docs/howto/ci.md").read_text()
    github, gitlab, _, hooks = recipes()
    steps = {each["uses"].partition("@")[0]: each for each in github["jobs"]["evaluate"]["steps"]}
    step = steps["OWNER/evaluand"]
    restored, saved = steps["actions/cache/restore"], steps["actions/cache/save"]
    assert saved["if"] == "always()"
    assert saved["with"]["key"] == restored["with"]["key"]
    assert saved["with"]["key"].startswith(restored["with"]["restore-keys"])
    assert step["with"].keys() <= read_yaml("action.yml")["inputs"].keys()
    assert all(f"| `{name}` |" in page for name in read_yaml("action.yml")["inputs"])
    assert hooks["repos"][0]["hooks"][0]["id"] == "evaluand-validate"
    assert any("evaluand run" in line for line in gitlab["evaluate"]["script"])
