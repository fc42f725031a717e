"""Output: results go to stdout, everything else to stderr."""

import io
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import IO, Any, Final, cast

import click
from rich.console import Console, RenderableType

from evaluand.core.errors import Fault
from evaluand.core.files.paths import replaced
from evaluand.core.identity import json_text
from evaluand.report.markdown import to_markdown
from evaluand.report.text import escape_controls

NARROWEST = 72
PIPED = 160


def console(*, err: bool = False) -> Console:
    """A console that prints text literally: no markup, no highlighting, and colour on terminals only.

    Piped output is wider than a usual terminal, so that lines can be searched; COLUMNS overrides it.
    """
    file = sys.stderr if err else sys.stdout
    with suppress(AttributeError, ValueError, io.UnsupportedOperation):
        file.reconfigure(errors="replace")  # type: ignore[union-attr]  # a terminal that lacks “–” gets “?”
    made = Console(file=file, markup=False, highlight=False, emoji=False)
    if made.is_terminal or os.environ.get("COLUMNS"):
        made.width = max(made.width, NARROWEST)  # below that numbers would be cut off; the terminal wraps lines instead
    else:
        made.width = PIPED
    return made


def show(renderable: RenderableType) -> None:
    """Prints tables to stdout; when piped, without trailing spaces."""
    out = console()
    if out.is_terminal:
        return out.print(renderable)
    with out.capture() as captured:
        out.print(renderable)
    click.echo("\n".join(line.rstrip() for line in captured.get().split("\n")), nl=False)


def print_markdown(renderable: RenderableType) -> None:
    """Prints tables to stdout as Markdown."""
    click.echo(to_markdown(renderable))


def print_json(value: Any) -> None:
    """Prints the JSON document of a command."""
    click.echo(escape_controls(json_text(value, indent=True)))


@contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Redirects stdout to stderr meanwhile, also that of programs that a task starts."""
    sys.stdout.flush()
    try:
        number = sys.stdout.fileno()
        saved = os.dup(number)
    except (OSError, ValueError):  # not a file
        with redirect_stdout(sys.stderr):
            yield
        return
    try:
        os.dup2(sys.stderr.fileno(), number)
        # a stream of its own, which code of the user may close
        with redirect_stdout(open(number, "w", buffering=1, errors="backslashreplace", closefd=False)):
            yield
    finally:
        os.dup2(saved, number)
        os.close(saved)


@contextmanager
def open_output(output: Path | None) -> Iterator[IO[bytes]]:
    """The file to write, which appears under its name when complete; stdout if None."""
    if output is None:
        yield cast(IO[bytes], _Terminal(sys.stdout.buffer)) if sys.stdout.isatty() else sys.stdout.buffer
        return
    with replaced(output) as file:
        yield file


class _Terminal:
    """A terminal, which what is written does not control."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, data: bytes) -> int:
        return self._file.write(escape_controls(data.decode("utf-8", "replace")).encode())


def condensed(faults: Sequence[Fault]) -> list[str]:
    """One line per fault, with its code; of many that differ only in rows and values, the first five and a count."""
    here = f"{Path.cwd()}{os.sep}"
    seen: dict[tuple[str, ...], int] = {}
    lines: dict[tuple[str, ...] | int, str] = {}
    for number, fault in enumerate(faults):
        kind = (fault.code, *(_CHANGING.sub("#", text) for text in (fault.where, fault.message)))
        seen[kind] = seen.get(kind, 0) + 1
        if seen[kind] <= _ALIKE:
            lines[number] = str(fault).removeprefix(here) + (f"  [{fault.code}]" if fault.code else "")
        else:
            where = fault.where.removeprefix(here).rpartition(":")[0] or fault.where
            lines[kind] = f"{where}: {seen[kind] - _ALIKE:,} more of this kind; --json lists all  [{fault.code}]"
    return [*lines.values()]


_CHANGING: Final = re.compile(r"\d+(\.\d+)?|'[^']*'")
_ALIKE: Final = 5
