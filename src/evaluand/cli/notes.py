"""Warnings of evaluand as notes: one line of stderr each, without a line of code."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from evaluand.cli.options import name_store, present_store, suggest_command
from evaluand.core.errors import EvaluandWarning
from evaluand.report.text import SHORT_ID, safe
from evaluand.store.addresses import Place

_SHOWN = f"{__name__}.shown"


def note_renamed(name: str | None, made: str, earlier: str, folder: Place, again: str) -> None:
    """Notes that a name now refers to something smaller, and the commands that show the earlier and name it again.

    Args:
        made: what has the name now, and a word for the earlier.
        earlier: id of the artifact that had the name.
        again: how to repeat the command so that the earlier has the name again.
    """
    show = suggest_command("show", earlier[:SHORT_ID], folder)
    click.echo(f"note: {safe(str(name))} now names {made}: {safe(show)}; repeat the command {again}", err=True)


@contextmanager
def print_notes(*ignored: type[Warning]) -> Iterator[None]:
    """A block in which evaluand's warnings are written as one line each, the same one once in a command.

    Args:
        ignored: classes of warnings that are not written.
    """
    show_warning = warnings.showwarning
    store = present_store()  # here, because threads that warn have no context
    context = click.get_current_context(silent=True)
    shown: set[str] = context.meta.setdefault(_SHOWN, set()) if context else set()

    def show_note(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if issubclass(category, EvaluandWarning):
            if str(message) not in shown:
                click.echo(f"note: {safe(name_store(str(message), store or None))}", err=True)
            shown.add(str(message))
        else:
            show_warning(message, category, *place, **more)

    with warnings.catch_warnings():
        warnings.simplefilter("default", EvaluandWarning)
        for category in ignored:
            warnings.simplefilter("ignore", category)
        warnings.showwarning = show_note
        yield
