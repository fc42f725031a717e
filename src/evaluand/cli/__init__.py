"""The command line: one module for each command.

Help and the version must answer at once, and `list` needs no Arrow. So this module imports click and little else, the
texts of the overview stand here, and the module of a command is imported when the command is called.

Exit codes: 0 done, 1 an error or a fault, 2 wrong usage, 3 a gate failed, 130 interrupted.
"""

from __future__ import annotations

import importlib
from keyword import iskeyword
from typing import Any

import click
from click.exceptions import Exit
from click.shell_completion import CompletionItem

from evaluand._version import __version__
from evaluand.cli.options import complete_artifact, variable
from evaluand.core.errors import EvaluandError
from evaluand.report.text import safe

INTERRUPTED = 130

_COMMANDS = {
    "init": "Make a small project that runs.",
    "validate": "Find everything wrong with an experiment before it runs.",
    "run": "Run an experiment file: call, grade, summarise.",
    "import": "Make a run of a file of predictions.",
    "adapt": "Try a pipeline of adapters on a file of data.",
    "label": "Have people grade the answers of a run.",
    "feedback": "Judge what an app has recorded.",
    "leaderboard": "Show how versions of apps do, side by side.",
    "compare": "Tell whether one run is better than another, and check gates.",
    "list": "List what is stored, newest first.",
    "show": "Show a run, an evaluation, an aggregation, a comparison, a dataset or a recording.",
    "report": "Write a report as one HTML file.",
    "export": "Write what is stored as CSV, JSON lines or Parquet.",
    "resume": "Continue what was interrupted.",
    "verify": "Check that what is stored still is what was written.",
    "gc": "Remove what nobody needs.",
    "problem": "Show or check a problem document with its data.",
    "score": "Score files of predictions by the metrics of their problem.",
    "tradeoff": "Weigh what systems are worth against how far groups lie apart.",
    "schema": "Print the form of experiment files and tables.",
    "completion": "Print what makes a shell complete commands and names.",
}

_OF_ARTIFACTS = ("leaderboard", "compare", "show", "report", "export", "resume", "verify")

_EXAMPLES = """\b
Examples:
  evaluand init                              a small project to begin with
  evaluand run experiment.yaml --limit 20    try it on the first 20 examples
  evaluand run experiment.yaml               do the rest
  evaluand list                              what there is
  evaluand show NAME --failed                what went wrong
  evaluand report NAME                       all of it as one HTML file
  evaluand compare NAME OTHER                whether the other is better
  evaluand COMMAND --help                    more about a command
"""


class _Commands(click.Group):
    """Commands that are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*_COMMANDS]  # once imported, the command `list` hides the built-in of that name here

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            ctx.fail(f"no command is called {cmd_name!r}; there are {', '.join(_COMMANDS)}")
        module = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
        command: click.Command = importlib.import_module(f"evaluand.cli.{module}").command
        for option in command.params:
            if isinstance(option, click.Option) and option.envvar is None:
                option.envvar = variable(cmd_name, option)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if ctx.resilient_parsing and len(args) == 1 and args[0] in _OF_ARTIFACTS:  # a shell asks for a first word
            return args[0], _Named(args[0], self), []
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([*_COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except EvaluandError as error:
            _tell(error, getattr(error, "for_commands", str(error)))
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            raise Exit(INTERRUPTED) from None
        except OSError as error:
            if error.filename is None or isinstance(error, BrokenPipeError):
                raise
            _tell(error, f"{error.filename}: {error.strerror}")
        raise Exit(1)


class _Named(click.Command):
    """Stands for a command while a shell completes its first word: a name must not wait for Arrow to load."""

    def __init__(self, name: str, group: _Commands) -> None:
        super().__init__(name, params=[click.Argument(["artifact"], shell_complete=complete_artifact)])
        self._group = group

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        command = self._group.get_command(ctx, self.name or "")
        return command.shell_complete(ctx, incomplete) if command else []


@click.group(
    cls=_Commands, epilog=_EXAMPLES, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, message="evaluand %(version)s")
def main() -> None:
    """Evaluate any ML or AI system on one reproducible path: run → evaluate → aggregate.

    Every step is stored below --store DIR, or $EVALUAND_STORE, or .evaluand, and nothing is computed twice. Every other
    option can be set as EVALUAND_COMMAND_OPTION: EVALUAND_RUN_LIMIT stands for --limit of run.
    """


def _tell(error: BaseException, message: str) -> None:
    """Says what went wrong; what comes from data and files can do nothing to the terminal."""
    for line in (f"error: {message}", *getattr(error, "__notes__", ())):
        click.echo("\n".join(safe(part) for part in line.split("\n")), err=True)
