"""`evaluand completion`: the script with which a shell completes commands, options and names of artifacts."""

import click
from click.shell_completion import get_completion_class

from evaluand.cli.command import argument, make_command
from evaluand.cli.options import COMPLETE

SHELLS = ("bash", "zsh", "fish")

_EXAMPLES = """\b
Examples:
  eval "$(evaluand completion bash)"    in ~/.bashrc; zsh the same in ~/.zshrc
  evaluand completion fish > ~/.config/fish/completions/evaluand.fish
"""


@make_command("completion", epilog=_EXAMPLES)
def command(shell: str = argument(type=click.Choice(SHELLS))) -> None:
    """Print the script with which SHELL completes commands, options and the names of stored artifacts."""
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(click.get_current_context().find_root().command, {}, "evaluand", COMPLETE).source())
