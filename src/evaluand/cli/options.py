"""Options that several commands share."""

from __future__ import annotations

import os
from pathlib import Path
from shlex import quote

import click

_VARIABLE, _DEFAULT = "EVALUAND_STORE", ".evaluand"

store_option = click.option(
    "--store",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=_DEFAULT,
    envvar=_VARIABLE,
    show_default=True,
    show_envvar=True,
    metavar="DIR",
    help="Where everything is kept.",
)

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables.")


def suggested(command: str, what: str, folder: Path) -> str:
    """A command line that can be copied: quoted, and with the store where it is not the one that is taken anyway."""
    usual = Path(os.environ.get(_VARIABLE) or _DEFAULT)
    store = "" if folder == usual else f" --store {quote(str(folder))}"
    return f"evaluand {command} {quote(what)}{store}"
