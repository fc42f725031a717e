"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

store_option = click.option(
    "--store",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=".evaluand",
    envvar="EVALUAND_STORE",
    show_default=True,
    show_envvar=True,
    metavar="DIR",
    help="Where everything is kept.",
)

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables.")
