"""`evaluand gc`: removes what a store keeps that nobody needs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
from click import UsageError

from evaluand.cli.options import json_option, store_option
from evaluand.cli.output import print_json
from evaluand.report.text import safe
from evaluand.store.directory import DirectoryStore
from evaluand.store.garbage import Leftover, leftovers, remove

_EXAMPLES = """\b
Examples:
  evaluand gc --dry-run
  evaluand gc --open-older-than 7d --yes
  evaluand gc --unreferenced --dry-run --json
"""

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


class _Age(click.ParamType[float]):
    name = "age"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = re.fullmatch(r"([0-9]+)([smhdw])", str(value))
        if not found:
            self.fail(f"{value!r} is no time; give a number and a unit: 30m, 12h, 7d, 2w", param, ctx)
        return float(int(found[1]) * _UNITS[found[2]])


@click.command("gc", epilog=_EXAMPLES)
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option(
    "--open-older-than",
    type=_Age(),
    metavar="AGE",
    help="Also what is open and nobody has worked on for so long, such as 7d. Its finished calls go with it.",
)
@click.option("--unreferenced", is_flag=True, help="Also what is whole but reached by no name.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@store_option
@json_option
def command(
    dry_run: bool, open_older_than: float | None, unreferenced: bool, yes: bool, folder: Path, as_json: bool
) -> None:
    """Remove what nobody needs: files that dead processes left and, when asked for, whole artifacts.

    A name reaches its artifact and all that this was made from. What somebody works on stays, and so does whatever was
    changed within the hour. Begin no runs while --unreferenced removes: it may take the dataset from under them.
    """
    if as_json and not (yes or dry_run):
        raise UsageError("--json asks nothing: give --yes or --dry-run with it")
    store = DirectoryStore(folder)
    found = leftovers(store, open_older_than=open_older_than, unreferenced=unreferenced)
    if not as_json:
        for item in found:
            click.echo(f"{_bytes(item.size):>9}  {safe(item.path.relative_to(folder))}  {safe(item.why)}")
        if not found or dry_run:
            return click.echo(_said(found, "can go") if found else "nothing to remove")
        if not yes:
            click.confirm(f"remove {_said(found, '')}".strip() + "?", abort=True, err=True)
    removed = [] if dry_run else remove(store, found)
    if as_json:
        return print_json({"found": _facts(found), "removed": _facts(removed), "bytes": sum(i.size for i in removed)})
    click.echo(_said(removed, "removed"))


def _said(items: Iterable[Leftover], what: str) -> str:
    sizes = [item.size for item in items]
    return f"{len(sizes):,} with {_bytes(sum(sizes))} {what}"


def _facts(items: Iterable[Leftover]) -> list[dict[str, Any]]:
    return [{"path": str(item.path), "bytes": item.size, "why": item.why} for item in items]


def _bytes(size: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"
