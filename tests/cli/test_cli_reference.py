"""Schemas, variables, completion, and that the documents of the command line are true."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from support.commands import Folder
from support.places import ROOT_FOLDER

from evaluand.cli import main
from evaluand.experiment import json_schema
from evaluand.store import tables


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path)


# schemas


def test_the_schema_of_experiments_is_printed(folder: Folder) -> None:
    assert json.loads(folder.done("schema")) == json_schema()
    assert json.loads((ROOT_FOLDER / "docs/reference/experiment.schema.json").read_text()) == folder.json("schema")


def test_the_columns_of_tables_are_printed(folder: Folder) -> None:
    fields = folder.json("schema", "show", "evaluand.responses")["fields"]
    assert [f["field"] for f in fields if "." not in f["field"] and "[" not in f["field"]] == tables.RESPONSES.names
    reported = {line.split()[0]: line for line in folder.done("schema", "show", "evaluand.scores").splitlines()}
    assert "string (JSON)" in reported["data"]
    assert reported["status"].split()[2] == "no"


def test_a_schema_that_is_none_is_refused_with_the_nearest_that_is(folder: Folder) -> None:
    assert "did you mean 'evaluand.scores'?" in folder.refused("schema", "show", "evaluand.scorse")


# variables


def test_an_option_can_be_set_by_its_variable(folder: Folder) -> None:
    folder.done("run", folder.experiment(), env={"EVALUAND_RUN_LIMIT": "2", "EVALUAND_RUN_QUIET": "1"})
    (run,) = json.loads(folder.done("list", "runs", env={"EVALUAND_LIST_JSON": "true"}))
    assert sum(run["counts"].values()) == 2


def test_what_is_given_goes_before_its_variable(folder: Folder) -> None:
    folder.done("run", folder.experiment(), "--limit", 3, env={"EVALUAND_RUN_LIMIT": "2"})
    assert sum(folder.json("list", "runs")[0]["counts"].values()) == 3


def test_a_variable_that_cannot_be_is_wrong_usage(folder: Folder) -> None:
    result = folder.call("run", folder.experiment(), env={"EVALUAND_RUN_LIMIT": "many"})
    assert (result.exit_code, "'many' is not a valid integer range" in result.stderr) == (2, True)


# completion


COMPLETE = """
import contextlib, os, sys
from evaluand.cli import main

for command in ("show", "export", "resume", "verify"):
    os.environ["COMP_WORDS"] = f"evaluand {command} doub"
    with contextlib.suppress(SystemExit):
        main(prog_name="evaluand")
    print()
print(*sys.modules, file=sys.stderr)
"""


def environment(*words: str) -> dict[str, str]:
    return {
        "_EVALUAND_COMPLETE": "bash_complete",
        "COMP_WORDS": shlex.join(["evaluand", *words]),
        "COMP_CWORD": str(len(words)),
    }


def completions(output: str) -> list[str]:
    return [line.partition(",")[2] for line in output.splitlines() if line]


def asked(folder: Folder, *words: str) -> list[str]:
    """What a shell shows after these words."""
    return completions(folder.done(env=environment(*words), prog_name="evaluand"))


def test_names_of_artifacts_complete_without_loading_arrow(folder: Folder) -> None:
    folder.done("run", folder.experiment())
    env = os.environ | environment("show", "doub") | {"EVALUAND_STORE": str(folder.path / "store")}
    done = subprocess.run([sys.executable, "-c", COMPLETE], env=env, capture_output=True, text=True, check=False)
    assert [*map(completions, done.stdout.split("\n\n"))] == [["doubling", "doubling/mine"]] * 4 + [[]]
    assert set(done.stderr.split()).isdisjoint({"numpy", "pyarrow", "pydantic", "rich"})


def test_ids_complete_where_no_name_does(folder: Folder) -> None:
    folder.done("run", folder.experiment())
    id = folder.id("runs")
    assert asked(folder, "show", id[:6]) == [id]


def test_options_and_commands_complete(folder: Folder) -> None:
    assert asked(folder, "show", "--fa") == ["--failed"]
    assert asked(folder, "va") == ["validate"]
    assert asked(folder, "export", "x", "--format", "p") == ["parquet"]


def test_completion_of_a_store_that_is_not_there_or_broken_says_nothing(folder: Folder) -> None:
    assert asked(folder, "show", "") == []
    assert not (folder.path / "store").exists()
    (folder.path / "store" / "refs").mkdir(parents=True)
    (folder.path / "store" / "refs" / "x.json").write_text("{")
    assert asked(folder, "show", "x") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(folder: Folder, shell: str) -> None:
    assert f"_EVALUAND_COMPLETE={shell}_complete" in folder.done("completion", shell)


# documents


def test_the_published_reference_is_the_present_one(monkeypatch: pytest.MonkeyPatch) -> None:
    place = ROOT_FOLDER / "docs" / "reference" / "write_cli.py"
    spec = importlib.util.spec_from_file_location("write_cli", place)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    published = (ROOT_FOLDER / "docs" / "reference" / "cli.md").read_text()
    assert published == script.reference(), "write it anew: python docs/reference/write_cli.py"


@pytest.mark.parametrize("command", main.list_commands(click.Context(main)))
def test_every_command_has_help_and_an_example_of_itself(folder: Folder, command: str) -> None:
    assert f"evaluand {command}" in folder.done(command, "--help").split("Examples:")[1]


def test_no_help_list_cuts_a_description() -> None:
    context = click.Context(main)
    groups = {name: main.get_command(context, name) for name in main.list_commands(context)}
    subcommands = {
        f"{name} {sub}": command.get_short_help_str(45)
        for name, group in groups.items()
        if isinstance(group, click.Group)
        for sub, command in group.commands.items()
    }
    assert len(subcommands) > 10
    assert [name for name, line in subcommands.items() if line.endswith("...") or len(line) > 45] == []


READING = ("list", "show", "validate", "verify", "export", "schema", "gc", "import")


@pytest.mark.parametrize("command", READING)
def test_every_command_that_reads_can_answer_in_json(command: str) -> None:
    found: Any = main.get_command(click.Context(main), command)
    assert "--json" in [flag for option in found.params for flag in option.opts]
