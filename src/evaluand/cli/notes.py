"""Warnings of evaluand as notes: one line of stderr each, without a line of code."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from evaluand.cli.options import name_store, present_store
from evaluand.core.errors import EvaluandWarning
from evaluand.report.text import safe


@contextmanager
def print_notes(*ignored: type[Warning]) -> Iterator[None]:
    """A block in which evaluand's warnings are written as one line each.

    Args:
        ignored: classes of warnings that are not written.
    """
    show_warning = warnings.showwarning
    store = present_store()  # here, because threads that warn have no context

    def show_note(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if issubclass(category, EvaluandWarning):
            click.echo(f"note: {safe(name_store(str(message), store or None))}", err=True)
        else:
            show_warning(message, category, *place, **more)

    with warnings.catch_warnings():
        warnings.simplefilter("default", EvaluandWarning)
        for category in ignored:
            warnings.simplefilter("ignore", category)
        warnings.showwarning = show_note
        yield
