"""`evaluand gc`: removes files and artifacts that are no longer needed from a store."""

import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import click
from click import UsageError

from evaluand.cli.command import make_command, option
from evaluand.cli.options import json_option, store_option
from evaluand.cli.output import print_json
from evaluand.cli.progress import show_notes
from evaluand.core.errors import EngineError, Fault, plural
from evaluand.report.text import safe
from evaluand.store.addresses import Place
from evaluand.store.folder_store import FolderStore
from evaluand.store.garbage import Leftover, Removal, leftovers, postponed, remove
from evaluand.store.kinds import find_kind, kinds
from evaluand.store.opening import open_store

_EXAMPLES = """\b
Examples:
  evaluand gc --dry-run
  evaluand gc --open-older-than 7d --yes
  evaluand gc --unreferenced --dry-run --json
  evaluand gc --damaged
"""

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


class _Age(click.ParamType[float]):
    name = "age"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = re.fullmatch(r"([0-9]+)([smhdw])", str(value))
        if not found:
            self.fail(f"{value!r} is not an age; give a number and a unit: 30m, 12h, 7d, 2w", param, ctx)
        return float(int(found[1]) * _UNITS[found[2]])


@dataclass(frozen=True, kw_only=True)
class _Options:
    dry_run: bool = option("Only list what would be removed.")
    open_older_than: float | None = option(
        "Also remove open artifacts that nobody has worked on for this long, such as 7d, with their finished calls.",
        type=_Age(),
        metavar="AGE",
    )
    unreferenced: bool = option("Also remove finished artifacts that no name reaches.")
    damaged: bool = option("Also remove finished artifacts and names that are damaged.")
    yes: bool = option("Do not ask.")
    folder: Place = store_option
    as_json: bool = json_option


@make_command("gc", epilog=_EXAMPLES)
def command(options: _Options) -> None:
    """Remove files that dead processes left and, with the options below, whole artifacts.

    A name protects its artifact and everything that the artifact was made from. Artifacts in use and everything changed
    within the last hour stay. Do not start runs while --unreferenced removes, nor any work in a bucket:
    it may remove the dataset of a run that begins.
    """
    if options.as_json and not (options.yes or options.dry_run):
        raise UsageError("--json cannot ask for confirmation; add --yes or --dry-run")
    store = open_store(options.folder)
    found = leftovers(
        store, open_older_than=options.open_older_than, unreferenced=options.unreferenced, damaged=options.damaged
    )
    left = postponed(store) if options.damaged else []
    if not options.as_json:
        for item in found:
            click.echo(
                f"{_format_bytes(item.size):>9}  {safe(item.path.relative_to(store.top.path))}  {safe(item.why)}"
            )
        if not found or options.dry_run:
            _print_left(left, store)
            return click.echo(_summarise(found, "can be removed") if found else "nothing to remove")
        if not options.yes:
            question = f"remove {_summarise(found, '')}".strip() + f"?{_describe_loss(store, found)}"
            click.confirm(question, abort=True, err=True)
    loss = _describe_loss(store, found).removesuffix(";") if options.yes else ""
    with show_notes():
        outcome = Removal([], []) if options.dry_run else remove(store, found)
    left += outcome.left
    if options.as_json:
        size = sum(item.size for item in outcome.removed)
        stays = [{"where": fault.where, "message": fault.message} for fault in left]
        facts = {"found": _facts(found), "removed": _facts(outcome.removed), "bytes": size, "left": stays}
        return print_json(facts)
    _print_left(left, store)
    click.echo(_summarise(outcome.removed, "removed") + (f";{loss}" if loss else ""))


def _print_left(left: Iterable[Fault], store: FolderStore) -> None:
    for fault in left:
        where = fault.where.removeprefix(f"{store.top.path}/")
        click.echo(f"     left  {safe(where)}  {safe(fault.message)}")


def _describe_loss(store: FolderStore, items: Iterable[Leftover]) -> str:
    """How many finished calls and grades are removed, as far as manifests say; empty if none."""
    rows: Counter[str] = Counter()
    for kind, id in (item.artifact for item in items if item.artifact and find_kind(item.artifact[0]).row):
        with suppress(EngineError):  # unknown
            counts = store.manifest(kind, id).get("counts", {}).values()
            rows[kind] += sum(sum(each.values()) if isinstance(each, dict) else each for each in counts)
    lost = [plural(rows[kind.name], kind.row) for kind in kinds() if rows[kind.name]]
    return f" {' and '.join(lost)} will have to be repeated;" if lost else ""


def _summarise(items: Iterable[Leftover], what: str) -> str:
    sizes = [item.size for item in items]
    return f"{plural(len(sizes), 'item')} ({_format_bytes(sum(sizes))}) {what}"


def _facts(items: Iterable[Leftover]) -> list[dict[str, Any]]:
    return [{"path": str(item.path), "bytes": item.size, "why": item.why} for item in items]


def _format_bytes(size: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"
