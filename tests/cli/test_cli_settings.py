"""Settings of a folder, the store before the command, and the log."""

import logging
import os
from pathlib import Path

import click
import orjson
import pytest
from click.testing import CliRunner

from evaluand.cli import main
from evaluand.cli.settings import find_settings
from evaluand.core.errors import SpecError

ROWS = b'{"input": "a", "expected": "a"}\n{"input": "b", "expected": "c"}\n'
EXPERIMENT = """
name: echo
dataset: {path: rows.jsonl}
tasks: {same: {function: app.py:same}}
scorers: {right: exact_match}
metrics: [{kind: mean, scorer: right}]
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    (tmp_path / "rows.jsonl").write_bytes(ROWS)
    (tmp_path / "app.py").write_text("def same(input):\n    return input\n")
    (tmp_path / "e.yaml").write_text(EXPERIMENT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EVALUAND_STORE", raising=False)
    return tmp_path


def call(*arguments, code=0, **env):
    result = CliRunner(env=env).invoke(main, arguments)
    assert result.exit_code == code, result.output
    return result


def names(*arguments, **env):
    return [entry["name"] for entry in orjson.loads(call(*arguments, "list", "runs", "--json", **env).stdout)]


@pytest.mark.parametrize(
    ("file", "head"), [("evaluand.toml", ""), ("pyproject.toml", "[project]\nname = 'p'\n[tool.evaluand]\n")]
)
def test_settings_name_the_store_and_options_for_a_folder_and_those_below(project, monkeypatch, file, head):
    table = "[tool.evaluand.run]" if head else "[run]"
    (project / file).write_text(f'{head}store = "results"\n{table}\nlimit = 1\n')
    assert "1 done now" in call("run", "e.yaml").stdout
    assert (project / "results" / "runs").is_dir()
    (project / "below").mkdir()
    monkeypatch.chdir(project / "below")
    assert names() == ["echo/same"]


def test_the_command_line_comes_before_the_environment_and_that_before_the_settings(project):
    (project / "evaluand.toml").write_text('store = "of-settings"\n[run]\nlimit = 1\n')
    assert "2 done now" in call("run", "e.yaml", "--limit", "2").stdout
    call("run", "e.yaml", EVALUAND_STORE="of-environment")
    call("--store", "before", "run", "e.yaml", EVALUAND_STORE="of-environment")
    call("--store", "before", "run", "e.yaml", "--store", "after")
    stores = [path.name for path in project.iterdir() if (path / "runs").is_dir()]
    assert sorted(stores) == ["after", "before", "of-environment", "of-settings"]
    assert names("--store", "before") == ["echo/same"]


def test_settings_of_a_folder_above_the_repository_do_not_count(project, monkeypatch):
    inner = project / "inner"
    (inner / ".git").mkdir(parents=True)
    (project / "evaluand.toml").write_text('store = "results"\n')
    monkeypatch.chdir(inner)
    assert "nothing is stored in .evaluand yet" in call("list").stderr


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can give a file to another user")
def test_settings_of_another_user_do_not_count(project):
    (project / "evaluand.toml").write_text('store = "results"\n')
    os.chown(project / "evaluand.toml", 12345, 12345)
    assert "nothing is stored in .evaluand yet" in call("list").stderr


def test_a_suggested_command_leaves_out_the_store_of_the_settings(project):
    (project / "evaluand.toml").write_text('store = "results"\n')
    assert "more: evaluand show echo\n" in call("run", "e.yaml").stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("stor = 'x'", "stor: is neither `store` nor a table of a command's options (did you mean 'store'?)"),
        ("store = 3", "store: is 3; write the path of a folder as text"),
        ("[run]\nlimt = 1", "run.limt: the command has no such option (did you mean 'limit'?)"),
        ("[run]\nfresh = 'yes'", "run.fresh: is 'yes'; give true or false"),
        ("[run]\ngate = 'x'", "run.gate: is 'x'; give a list"),
        ("[run]\nforce = true", "run.force: cannot be set in evaluand.toml; give it on the command line"),
        ("[run]\nverbose = 1", "run.verbose: cannot be set in evaluand.toml; give it on the command line"),
        ("[run", "is not valid TOML: "),
        ("a" + ".a" * 400_000 + " = 1", "has a key of more than 50 parts"),
        ("[a" + " . 'a'" * 400 + "]", "has a key of more than 50 parts"),
        ("a = " + "[" * 100_000, "is nested too deeply"),
        ("run = 1", "run: is neither `store` nor a table of a command's options"),
    ],
)
def test_faults_of_settings_are_reported_with_the_file_and_key(project, text, message):
    (project / "evaluand.toml").write_text(text)
    error = call("run", "e.yaml", code=1).stderr
    assert error.startswith(f"error: {Path.cwd() / 'evaluand.toml'}: ")
    assert message in error


def test_an_unknown_subcommand_of_the_settings_is_reported(project):
    (project / "evaluand.toml").write_text("[tradeoff.solv]\nx = 1\n")
    assert "tradeoff.solv: the command has no such option" in call("tradeoff", "solve", code=1).stderr


def test_a_value_that_does_not_fit_an_option_is_a_usage_error(project):
    (project / "evaluand.toml").write_text("[run]\nlimit = 0\n")
    assert "'--limit'" in call("run", "e.yaml", code=2).stderr


@pytest.mark.parametrize("arguments", [("-v", "run", "e.yaml"), ("run", "e.yaml", "-v")])
def test_verbose_logs_the_work_of_each_step_to_stderr(project, arguments):
    logger = logging.getLogger("evaluand")
    level = logger.level
    try:
        result = call(*arguments)
    finally:
        logger.setLevel(level)
        logger.handlers = [handler for handler in logger.handlers if handler.get_name() != "evaluand"]
    assert " INFO evaluand.engine.keyed_work: run " in result.stderr
    assert "2 of 2 done now" in result.stderr
    assert " INFO " not in result.stdout


def test_without_verbose_nothing_is_logged(project):
    assert call("run", "e.yaml").stderr == ""


WRITTEN = (
    *("adapt.output", "compare.junit", "export.output", "label.export.output"),
    *("label.pairs.export", "label.pairs.output", "rate.junit", "report.output", "run.junit"),
    *("schema.write.output", "score.junit", "score.out", "score.report", "score.table"),
    *("suite.html", "suite.junit"),
    *("tradeoff.pick.rates", "tradeoff.plot.out", "tradeoff.solve.out", "view.bundle", "view.label"),
)
READ = (
    *("adapt.pipeline", "grade.scorers", "label.export.without", "label.pairs.import", "score.coco", "score.problem"),
    *("tradeoff.pick.on", "tradeoff.plot.scores", "tradeoff.solve.prior"),
)


@pytest.mark.parametrize("key", WRITTEN)
def test_no_option_that_names_a_file_to_write_can_be_set(project, key):
    table, _, option = key.rpartition(".")
    (project / "evaluand.toml").write_text(f"[{table}]\n{option} = 'app.py'\n")
    values = find_settings(project).defaults(main, click.Context(main), key.partition(".")[0])
    for step in table.split(".")[1:]:
        values = values[step]
    with pytest.raises(SpecError, match=f"{key}: names a file to write, which evaluand.toml cannot; give --"):
        values[option]()


def test_every_option_with_a_path_is_known_to_be_read_or_written():
    def options(command, *path):
        for name, below in getattr(command, "commands", {}).items():
            yield from options(below, *path, name)
        for option in command.params:
            if isinstance(option, click.Option) and isinstance(option.type, click.Path) and option.name != "folder":
                yield ".".join((*path, max(option.opts, key=len).removeprefix("--")))

    context = click.Context(main)
    found = {one for name in main.list_commands(context) for one in options(main.get_command(context, name), name)}
    assert found == {*WRITTEN, *READ}
