"""A new project runs as it is, and takes nothing's place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from support.chat_answers import Body, ChatServer
from support.commands import Folder

from evaluand.cli.init import BENCHMARK, KINDS, PRESETS

PROJECTS = [kind for kind in KINDS if kind != BENCHMARK]


def _reply(asked: Body) -> str:
    """A judge finds everything right, and a model knows one answer."""
    is_judge = "verdict" in asked["messages"][0]["content"]
    return json.dumps({"reasons": "It is so.", "verdict": "correct"}) if is_judge else "The answer is 5."


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with ChatServer(_reply) as server:
        yield server


def _ask(server: ChatServer) -> None:
    """Names another model, as the file says how to."""
    file = Path("experiment.yaml")
    written = file.read_text()
    file.write_text(written.replace("{model: ollama/llama3.2,", f"{{model: {server.url}#small,"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    return Folder(tmp_path)


@pytest.mark.parametrize("kind", PROJECTS)
def test_a_new_project_has_no_faults_and_runs(
    folder: Folder, kind: str, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported = folder.done("init", "mine", "--kind", kind)
    assert reported.endswith("run it:  cd mine && evaluand run experiment.yaml\n")
    monkeypatch.chdir("mine")
    assert folder.json("validate", "experiment.yaml")["faults"] == []
    _ask(server)
    facts = folder.json("run", "experiment.yaml")
    assert all("failed" not in task["run"]["counts"] for task in facts["tasks"])
    assert {row["metric"] for row in facts["metrics"]} >= {"accuracy"}
    assert ".evaluand/" in Path(".gitignore").read_text().splitlines()
    assert len(Path("README.md").read_text().splitlines()) <= 10


@pytest.mark.parametrize("kind", PROJECTS)
def test_the_commands_of_the_readme_can_be_called(
    folder: Folder, kind: str, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.done("init", "mine", "--kind", kind)
    monkeypatch.chdir("mine")
    _ask(server)
    commands = [line.split("#")[0].split() for line in Path("README.md").read_text().splitlines() if line[:4] == "    "]
    assert [words[1] for words in commands] == ["validate", "run", "show", "export"]
    for words in commands:
        folder.done(*words[1:])


def test_a_project_for_language_models_compares_prompts_by_a_rule_and_by_a_judge(
    folder: Folder, server: ChatServer
) -> None:
    reported = folder.done("init", "--kind", "llm")
    assert "needs:   it asks ollama/llama3.2: start that, or name another model in experiment.yaml\n" in reported
    _ask(server)
    facts = folder.json("run", "experiment.yaml")
    assert [task["task"] for task in facts["tasks"]] == ["bot/short", "bot/steps"]
    overall = {(row["task"], row["scorer"]): row["value"] for row in facts["metrics"] if not row["by"]}
    assert overall == {(f"bot/{name}", scorer): value for name in ("short", "steps") for scorer, value in VALUES}
    assert any("Think step by step" in body["messages"][-1]["content"] for body in server.asked)


VALUES = [("number", 0.2), ("right", 1.0)]


def test_a_project_is_made_here_where_no_folder_is_named(folder: Folder) -> None:
    assert folder.done("init").endswith("run it:  evaluand run experiment.yaml\n")
    assert Path("experiment.yaml").is_file()


def test_files_that_are_there_are_listed_and_nothing_is_written(folder: Folder) -> None:
    Path("README.md").write_text("mine")
    Path("classify.py").symlink_to("nowhere.py")
    reported = folder.refused("init")
    assert "already has README.md, classify.py" in reported or "already has classify.py, README.md" in reported
    assert sorted(path.name for path in Path().iterdir()) == ["README.md", "classify.py"]
    assert not Path("nowhere.py").exists()
    assert Path("README.md").read_text() == "mine"


def test_a_file_is_no_folder(folder: Folder) -> None:
    Path("taken").touch()
    assert "taken is not a folder; name another one" in folder.refused("init", "taken")


def test_every_template_is_a_plain_file_of_a_kind() -> None:
    templates = files("evaluand.cli") / "templates"
    assert sorted(entry.name for entry in templates.iterdir()) == sorted(KINDS)
    presets = [entry for entry in (templates / BENCHMARK).iterdir() if entry.is_dir()]
    assert sorted(entry.name for entry in presets) == sorted(PRESETS)
    folders = [*(templates / kind for kind in PROJECTS), *presets]
    assert all(file.name.endswith(".txt") for folder in folders for file in folder.iterdir())
