"""The command line: one module for each command.

Help and the version must answer at once, and `list` needs no Arrow. So this module imports click and little else, holds
the texts of the overview, and imports the module of a command when the command is called.

Exit codes: 0 done, 1 an error or a fault, 2 wrong usage, 3 a gate failed, 130 interrupted.
"""

import importlib
import os
import sys
from contextlib import suppress
from keyword import iskeyword
from pathlib import Path
from typing import Any, NoReturn

import click
from click.exceptions import Exit
from click.shell_completion import CompletionItem

from evaluand._version import __version__
from evaluand.cli.logs import log_to_stderr
from evaluand.cli.notes import print_notes
from evaluand.cli.options import SETTINGS, StoreType, complete_artifact, name_store, name_variables
from evaluand.cli.settings import find_settings
from evaluand.core.errors import EvaluandError, SpecError
from evaluand.core.files.paths import FULL
from evaluand.report.text import safe
from evaluand.store.addresses import Place

INTERRUPTED = 130

_COMMANDS = {
    "init": "Create a small project that runs.",
    "validate": "Find everything wrong with an experiment before it runs.",
    "plan": "Find out how many examples a question needs, before anything is spent.",
    "run": "Run an experiment file: call, grade, summarise, compare.",
    "grade": "Grade what is stored, or a log of another tool, by further scorers and judges.",
    "suite": "Run the same systems on many problems: ranks, means, cost.",
    "import": "Import a file of predictions or battles.",
    "adapt": "Try a pipeline of adapters on a file of data.",
    "label": "Have people grade answers, or judge pairs of them.",
    "feedback": "Evaluate what an app has recorded.",
    "leaderboard": "Compare versions of apps in one table.",
    "compare": "Compare runs on the same examples, and check gates.",
    "drift": "Test whether two datasets, runs or evaluations come from one distribution.",
    "rate": "Rate systems from matches, and check gates.",
    "judge": "Measure judges on answers that people have labelled.",
    "list": "List what is stored, newest first.",
    "show": "Show a run, evaluation, aggregation, comparison, matches, ratings, card, dataset or recording.",
    "view": "Open what is stored in a browser.",
    "report": "Write a report as one HTML file.",
    "export": "Write what is stored as CSV, JSON lines or Parquet.",
    "resume": "Continue what was interrupted.",
    "workers": "Show the machines of a Ray cluster.",
    "copy": "Copy what is stored to another folder or bucket.",
    "verify": "Check that stored artifacts are intact.",
    "gc": "Remove files and artifacts that are no longer needed.",
    "problem": "Show or check a problem document with its data.",
    "score": "Score and compare columns of predictions, or files of predictions by the metrics of their problem.",
    "tradeoff": "Trade the utility of systems off against disparities of groups.",
    "schema": "Show, check and convert schemas of files and tables.",
    "secrets": "Allow environment variables to be sent to hosts.",
    "completion": "Print the script for shell completion.",
}

_TAKE_ARTIFACTS = ("grade", "leaderboard", "compare", "drift", "rate", "show", "report", "export", "resume", "verify")

_EXAMPLES = """\b
Examples:
  evaluand score FILE --truth Y --prediction A --prediction B
                                             score and compare two columns of a file
  evaluand init                              create a small project
  evaluand run experiment.yaml --limit 20    try it on the first 20 examples
  evaluand run experiment.yaml               run the rest
  evaluand list                              list what is stored
  evaluand show NAME --failed                see what went wrong
  evaluand report NAME                       write all of it to one HTML file
  evaluand compare NAME OTHER                see whether the other is better
  evaluand COMMAND --help                    read more about a command
"""


class _Commands(click.Group):
    """Commands that are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*_COMMANDS]  # once imported, the command `list` hides the built-in of that name here

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
        command: click.Command = importlib.import_module(f"evaluand.cli.{module}").command
        if verbose_option not in command.params:
            name_variables(command, cmd_name)
            command.params.append(verbose_option)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if ctx.resilient_parsing and len(args) == 1 and args[0] in _TAKE_ARTIFACTS:  # a shell asks for a first word
            return args[0], _FirstWord(args[0], self), []
        if ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        if args == ["help"]:
            _print(ctx, ctx.get_help())
        if args[0] == "version":
            _print(ctx, f"evaluand {__version__}")
        if args[0] == "help":
            args = [*args[1:], "--help"]
        if args[0] not in _COMMANDS:
            from evaluand.cli.near_commands import advise  # only for a wrong name: it takes a while to import

            ctx.fail(f"no command is called {args[0]!r}; {advise(args[0], args[1:], _COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([*_COMMANDS.items()])

    def main(self, *args: Any, **extra: Any) -> Any:
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is None:  # which the shell has closed, so that a file would get its number
                setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        try:
            return super().main(*args, **extra)
        except OSError as error:
            if error.errno not in FULL:
                raise
            _end_output(error)
        finally:
            _flush_output()

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with print_notes():
                return super().invoke(ctx)
        except EvaluandError as error:
            _print_error(error, getattr(error, "for_commands", str(error)))
        except click.MissingParameter as error:
            if ctx.invoked_subcommand not in _TAKE_ARTIFACTS or not isinstance(error.param, click.Argument):
                raise
            hint = name_store("`evaluand list` shows names and ids")
            raise click.UsageError(f"{error.param.make_metavar(ctx)} is missing; {hint}", error.ctx) from None
        except click.UsageError as error:
            message = error.format_message()
            if name_store(message) == message:
                raise
            raise click.UsageError(name_store(message), error.ctx) from None
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            raise Exit(INTERRUPTED) from None
        except OSError as error:
            if error.filename is None or isinstance(error, BrokenPipeError):
                raise
            _print_error(error, f"{error.filename}: {_explain(error)}")
        except MemoryError as error:
            _print_error(error, "this needs more memory than there is; use a machine with more, or less data at once")
        raise Exit(1)


def _print(ctx: click.Context, text: str) -> NoReturn:
    click.echo(text)
    ctx.exit()


def _log_more(ctx: click.Context, param: click.Parameter, value: int) -> None:
    log_to_stderr(value + int(ctx.find_root().params.get("verbose") or 0))


verbose_option = click.Option(["-v", "--verbose"], count=True, expose_value=False, hidden=True, callback=_log_more)
"""`-v` after a command, which does the same as before it."""

_STORE_HELP = "The folder or bucket where everything is stored, for any command."


class _FirstWord(click.Command):
    """A stand-in for a command while a shell completes its first word, which must not wait for Arrow to load."""

    def __init__(self, name: str, group: _Commands) -> None:
        super().__init__(name, params=[click.Argument(["artifact"], shell_complete=complete_artifact)])
        self._group = group

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        command = self._group.get_command(ctx, self.name or "")
        return command.shell_complete(ctx, incomplete) if command else []


@click.group(
    cls=_Commands, epilog=_EXAMPLES, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, "-V", "--version", message="evaluand %(version)s")
@click.option("--store", "folder", type=StoreType(), metavar="DIR", help=_STORE_HELP)
@click.option("-v", "--verbose", count=True, help="Log what happens to stderr; -vv also each request.")
@click.pass_context
def main(ctx: click.Context, folder: Place | None, verbose: int) -> None:
    """Evaluate any ML or AI system on one reproducible path: run → evaluate → aggregate → compare → report.

    Every step is stored in --store DIR, or $EVALUAND_STORE, or .evaluand, and nothing is computed twice. Every other
    option can be set as EVALUAND_COMMAND_OPTION: EVALUAND_RUN_LIMIT sets --limit of run. Both can also be written into
    evaluand.toml, or [tool.evaluand] of pyproject.toml: store = "DIR", and [run] limit = 20.
    """
    log_to_stderr(verbose)
    try:
        name, settings = ctx.invoked_subcommand, find_settings(Path.cwd())
    except FileNotFoundError:
        raise SpecError("the current folder was removed; change into another one") from None
    if name is not None and settings is not None:
        ctx.meta[SETTINGS] = settings
        ctx.default_map = {name: settings.defaults(main, ctx, name)}


def _flush_output() -> None:
    """Writes what is left for stdout; ends the command if that is not possible.

    Raises:
        SystemExit: stdout is full or broken, or its reader has ended.
    """
    try:
        sys.stdout.flush()
    except OSError as error:
        _end_output(error)


def _end_output(error: OSError) -> NoReturn:
    """Ends the command after stdout, or a temporary file without a name, could not be written."""
    with suppress(OSError, ValueError):  # else Python flushes at its end, and prints a traceback
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if not isinstance(error, BrokenPipeError):
        _print_error(error, f"the output or a temporary file cannot be written: {_explain(error)}")
    raise SystemExit(1) from None


def _explain(error: OSError) -> str:
    advice = "; free space, then run the same command again" if error.errno in FULL else ""
    return f"{error.strerror}{advice}"


def _print_error(error: BaseException, message: str) -> None:
    """Prints an error with its notes; text from data and files cannot control the terminal, nor show credentials."""
    from evaluand.core.redaction import hide_values, variable_values

    values = variable_values()
    for line in (f"error: {message}", *getattr(error, "__notes__", ())):
        line = hide_values(name_store(line), values)
        click.echo("\n".join(safe(part) for part in line.split("\n")), err=True)
