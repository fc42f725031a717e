"""Commands in messages name the store of the command that printed them, so that they can be copied."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from support.places import ROOT_FOLDER

from evaluand import Dataset, EvaluandError, Policy, Runner
from evaluand.cli import _COMMANDS, main
from evaluand.cli.options import WITH_STORE, name_store
from evaluand.store.directory import DirectoryStore


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVALUAND_STORE", raising=False)
    monkeypatch.chdir(tmp_path)
    Runner(DirectoryStore("my store")).run(str.upper, Dataset.from_rows([{"input": "a"}]), name="demo")


def stderr_of(*arguments: str, env: dict[str, str] | None = None) -> str:
    result = CliRunner(env=env).invoke(main, [*arguments])
    assert result.exit_code in (1, 2), result.output
    assert isinstance(result.exception, SystemExit)
    return result.stderr


@pytest.mark.usefixtures("in_folder")
def test_the_hint_of_an_error_names_the_store_that_the_command_named() -> None:
    hint = "see `evaluand list --store 'my store'` for names and ids"
    assert hint in stderr_of("show", "nothing", "--store", "my store")
    assert hint in stderr_of("--store", "my store", "show", "nothing")
    assert "; `evaluand list --store 'my store'` shows names" in stderr_of("show", "--store", "my store")


@pytest.mark.usefixtures("in_folder")
def test_the_hint_of_an_error_names_no_store_where_a_command_uses_it_without() -> None:
    hint = "see `evaluand list` for names and ids"
    Path("my store").rename(".evaluand")
    assert hint in stderr_of("show", "nothing")
    assert hint in stderr_of("show", "nothing", "--store", ".evaluand")
    Path(".evaluand").rename("mine")
    assert hint in stderr_of("show", "nothing", env={"EVALUAND_STORE": "mine"})
    Path("evaluand.toml").write_text('store = "mine"\n')
    assert hint in stderr_of("show", "nothing")


@pytest.mark.usefixtures("in_folder")
def test_the_hint_to_continue_unfinished_work_names_the_store() -> None:
    store = DirectoryStore("my store")
    with pytest.raises(EvaluandError):
        Runner(store, Policy(abort_on_error=True)).run(int, Dataset.from_rows([{"input": "a"}]), name="open")
    id = next(id for id in store.ids("runs") if not store.is_sealed("runs", id))
    refused = stderr_of("label", "export", "open", "-o", "labels.jsonl", "--store", "my store")
    assert f"is not finished; continue it with `evaluand resume {id} --store 'my store'`" in refused


@pytest.mark.usefixtures("in_folder")
def test_the_hint_to_repair_damage_names_the_store() -> None:
    (run,) = DirectoryStore("my store").ids("runs")
    Path("my store", "runs", run, "manifest.json").unlink()
    hint = "`evaluand gc --damaged --store 'my store'` removes the folder"
    assert hint in stderr_of("show", run, "--store", "my store")
    found = CliRunner().invoke(main, ["verify", "--store", "my store"])
    assert (found.exit_code, hint in found.stdout) == (1, True)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("see `evaluand list`", "see `evaluand list --store X`"),
        ("`evaluand gc --damaged` removes it", "`evaluand gc --damaged --store X` removes it"),
        ("`evaluand list metrics` lists names", "`evaluand list metrics` lists names"),
        ("see `evaluand secrets list`, `evaluand listing`", "see `evaluand secrets list`, `evaluand listing`"),
        ("type `evaluand show a --store Y`", "type `evaluand show a --store Y`"),
        ("`evaluand show a`; `evaluand show b`", "`evaluand show a --store X`; `evaluand show b --store X`"),
        ("evaluand list", "evaluand list"),
    ],
)
def test_only_commands_between_backticks_that_use_a_store_name_it(message: str, expected: str) -> None:
    assert name_store(message, " --store X") == expected


def test_the_commands_that_hints_name_the_store_for_are_those_that_have_one() -> None:
    context = click.Context(main)
    commands = {name: main.get_command(context, name) for name in _COMMANDS}  # type: ignore[attr-defined]
    assert {name for name, command in commands.items() if has_store(command)} == {*WITH_STORE}


def has_store(command: click.Command) -> bool:
    subcommands = command.commands.values() if isinstance(command, click.Group) else ()
    return any("--store" in option.opts for option in command.params) or any(map(has_store, subcommands))


def test_commands_in_messages_from_below_the_command_line_are_between_backticks() -> None:
    """Those with a placeholder, such as `evaluand run FILE`, explain and are not copied."""
    bare = re.compile(
        r"(?<!`)\bevaluand (?:compare|export|feedback work|gc|label|leaderboard|list(?! metrics)|resume|show|verify)\b"
    )
    package = ROOT_FOLDER / "src" / "evaluand"
    files = [path for path in package.rglob("*.py") if "cli" not in path.relative_to(package).parts]
    assert len(files) > 300
    sources = {path.name: path.read_text(encoding="utf-8") for path in files}
    messages = [(name, text) for name, source in sources.items() if bare.search(source) for text in texts_in(source)]
    assert len(messages) > 10
    assert [(name, text) for name, text in messages if bare.search(text)] == []


def texts_in(source: str) -> list[str]:
    """The texts in a module that are no docstrings."""
    nodes = [*ast.walk(ast.parse(source))]
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    found = (node for node in nodes if isinstance(node, ast.Constant) and id(node) not in docstrings)
    return [node.value for node in found if isinstance(node.value, str)]


@pytest.mark.usefixtures("in_folder")
@pytest.mark.parametrize("command", ["show", "verify", "export"])
def test_every_command_writes_a_warning_as_one_line(command: str) -> None:
    """The name of a dataset is damaged, that of the run is not."""
    store = DirectoryStore("my store")
    store.refer("demo", "datasets", next(iter(store.ids("datasets"))))
    [ref] = [path for path in Path("my store", "refs").iterdir() if b'"datasets"' in path.read_bytes()]
    ref.write_bytes(ref.read_bytes().replace(b'"id"', b'"ID"'))
    result = CliRunner().invoke(main, [command, "demo", "--store", "my store"])
    assert result.exit_code == 0, result.output
    note = "note: the name 'demo' of a dataset is damaged; this is the run of that name"
    assert [line for line in result.stderr.splitlines() if "demo" in line] == [note]
    assert "Warning" not in result.stderr
