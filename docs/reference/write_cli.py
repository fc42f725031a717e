"""Write cli.md, the reference of the command line, from the commands' own help."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import click

from evaluand.cli import main


def reference() -> str:
    """The reference as Markdown."""
    ctx = click.Context(main, info_name="evaluand", **main.context_settings)
    lines = ["# Commands", "", "Written by `write_cli.py` from the help of the commands.", ""]
    lines += [_fill(main.help or ""), ""]
    lines += ["Exit codes: 0 done, 1 an error or a fault, 2 wrong usage, 3 a gate failed, 130 stopped by Ctrl-C.", ""]
    lines += ["| option before the command | meaning |", "|---|---|"]
    for option in main.params:
        flags, help_text = option.get_help_record(ctx) or ("", "")
        lines.append(f"| `{flags}` | {help_text} |")
    lines.append("")
    for name in main.list_commands(ctx):
        command = main.get_command(ctx, name)
        assert command is not None
        lines += _command(name, command, click.Context(command, info_name=name, parent=ctx))
    return "\n".join(lines).rstrip() + "\n"


def _command(name: str, command: click.Command, ctx: click.Context) -> Iterator[str]:
    """The section of a command, and those of its sub-commands."""
    usage = " ".join(command.collect_usage_pieces(ctx))
    yield from (f"## evaluand {name}", "", "```text", f"evaluand {name} {usage}", "```", "")
    yield from (_fill(command.help or ""), "")
    options = [param for param in command.params if isinstance(param, click.Option) and not param.hidden]
    if options:
        yield from ("| option | meaning | environment variable |", "|---|---|---|")
        yield from (_option(option, ctx) for option in options)
        yield ""
    examples = (command.epilog or "").partition("Examples:\n")[2]
    if examples:
        yield from ("```text", textwrap.dedent(examples).strip(), "```", "")
    for below in command.list_commands(ctx) if isinstance(command, click.Group) else ():
        subcommand = command.get_command(ctx, below)
        assert subcommand is not None
        yield from _command(f"{name} {below}", subcommand, click.Context(subcommand, info_name=below, parent=ctx))


def _option(option: click.Option, ctx: click.Context) -> str:
    flags, help_text = option.get_help_record(ctx) or ("", "")
    known = option.envvar
    help_text = help_text.replace(f"env var: {known}; ", "").replace(f"  [env var: {known}]", "")
    return f"| `{flags.replace('|', chr(92) + '|')}` | {help_text.replace('|', chr(92) + '|')} | `{known}` |"


def _fill(text: str) -> str:
    """The paragraphs of a help text, with new line breaks."""
    paragraphs = textwrap.dedent(text).strip().replace("*", r"\*").split("\n\n")
    return "\n\n".join(textwrap.fill(" ".join(p.split()), 120) for p in paragraphs)


if __name__ == "__main__":
    Path(__file__).with_name("cli.md").write_text(reference())
