"""`evaluand copy`: copies finished artifacts from one store to another."""

from typing import Any

import click

from evaluand.cli.command import argument, make_command
from evaluand.cli.options import StoreType, json_option
from evaluand.cli.output import print_json
from evaluand.cli.progress import display, show_notes
from evaluand.core.errors import NotFound, SpecError, plural, warn
from evaluand.engine.keyed_work import Tally
from evaluand.report.text import safe
from evaluand.store.addresses import Place
from evaluand.store.copying import copy_artifact, copy_name, plan_copy
from evaluand.store.folder_store import REFS
from evaluand.store.kinds import kind_names
from evaluand.store.opening import open_store

_EXAMPLES = """\b
Examples:
  evaluand copy .evaluand s3://team/evals
  evaluand copy .evaluand /mnt/archive arithmetic
  evaluand copy 's3://team/evals?catalog=postgresql://db/evals' here arithmetic --json
"""


@make_command("copy", epilog=_EXAMPLES)
def command(
    source: Place = argument(metavar="STORE", type=StoreType()),
    target: Place = argument(metavar="STORE", type=StoreType()),
    names: tuple[str, ...] = argument(metavar="[NAME]...", nargs=-1),
    as_json: bool = json_option,
) -> None:
    """Copy finished artifacts from the first STORE to the second, with their names.

    A NAME, or an id, brings all that the artifact was made from; without, everything is copied. Each file is read again
    in the target, and its digest compared. Repeat the command after an interruption: it copies what is missing. Open
    work stays where it is.
    """
    if str(source) == str(target):
        raise SpecError(f"{source}: is both stores; name another one to copy to")
    here, there = open_store(source), open_store(target)
    if not here.top.exists():
        raise NotFound(f"{source}: no such store")
    others = there.top.names()
    if others and not {REFS, *kind_names()} & {*others}:
        raise SpecError(f"{target}: has other files and no store; name a new folder")
    plan = plan_copy(here, names)
    tally, copied, size = Tally("copy", len(plan.keys)), [], 0
    with show_notes(), display(as_json, quiet=False)(tally):
        for key in plan.keys:
            added = copy_artifact(here, there, *key)
            if added is None:
                tally.kept += 1
                continue
            copied.append(key)
            tally.called += 1
            size += added
        for ref in plan.names:
            copy_name(here, there, ref)
        if plan.left:
            warn(f"{plural(len(plan.left), 'open artifact')} cannot be copied; finish them with `evaluand resume`")
    if as_json:
        return print_json(_facts(copied, plan.keys, size, plan.names, plan.left))
    there_already = len(plan.keys) - len(copied)
    click.echo(
        f"{plural(len(copied), 'artifact')} copied ({size:,} bytes), {there_already:,} there already,"
        f" {plural(len(plan.names), 'name')}; verify: {safe(f'evaluand verify --store {target}')}"
    )


def _facts(copied: list[Any], keys: list[Any], size: int, names: list[Any], left: list[Any]) -> dict[str, Any]:
    return {
        "copied": [{"kind": kind, "id": id} for kind, id in copied],
        "artifacts": len(keys),
        "bytes": size,
        "names": [ref._asdict() for ref in names],
        "open": [{"kind": kind, "id": id} for kind, id in left],
    }
