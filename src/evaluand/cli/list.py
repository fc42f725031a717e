"""`evaluand list`: lists what is stored. It reads the catalog alone, so it stays fast with thousands of artifacts."""

from pathlib import Path

import click
import orjson

from evaluand.cli.options import json_option, store_option
from evaluand.cli.output import print_json, show
from evaluand.report.facts.base import Facts, Names
from evaluand.report.terminal.report import Listing
from evaluand.store.directory import DirectoryStore
from evaluand.store.store import KINDS

_EXAMPLES = """\b
Examples:
  evaluand list
  evaluand list runs
  evaluand list runs --json
"""


@click.command("list", epilog=_EXAMPLES)
@click.argument("kind", required=False, type=click.Choice(KINDS), metavar="[KIND]")
@store_option
@json_option
def command(kind: str | None, folder: Path, as_json: bool) -> None:
    """List what is stored, newest first.

    KIND is runs, evaluations, aggregations, comparisons, datasets or recordings; everything by default. A name in
    parentheses now belongs to a later artifact. Open artifacts were interrupted or are in progress.
    """
    entries = _entries(DirectoryStore(folder), kind)
    if as_json:
        return print_json(entries)
    if not entries:
        return click.echo(f"nothing is stored in {folder} yet; start with `evaluand run FILE`", err=True)
    show(Listing(entries))


def _entries(store: DirectoryStore, kind: str | None) -> list[Facts]:
    names = Names(store.refs())
    return [
        {name: entry[name] for name in ("kind", "id", "name", "status", "created")}
        | {"names": names.find(entry["kind"], entry["id"], entry["name"]), "counts": orjson.loads(entry["counts"])}
        for entry in store.catalog.entries(kind)
    ]
