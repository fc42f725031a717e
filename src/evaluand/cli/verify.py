"""`evaluand verify`: checks that stored artifacts are intact."""

from contextlib import suppress

from click.exceptions import Exit
from rich.console import Console
from rich.text import Text

from evaluand.cli.command import argument, make_command
from evaluand.cli.options import complete_artifact, json_option, name_store, store_option
from evaluand.cli.output import console, print_json
from evaluand.cli.progress import display
from evaluand.core.errors import EngineError, Fault, NotFound, plural
from evaluand.engine.keyed_work import Tally
from evaluand.report.facts.base import Facts
from evaluand.report.text import SHORT_ID, safe
from evaluand.report.verification import UNCHECKED, Verification
from evaluand.store.addresses import Place
from evaluand.store.catalog import DAMAGED
from evaluand.store.folder_store import FolderStore
from evaluand.store.kinds import origins, singular
from evaluand.store.opening import open_store
from evaluand.store.store import exists, resolve

_EXAMPLES = """\b
Examples:
  evaluand verify
  evaluand verify arithmetic 3f2a9c
"""


@make_command("verify", epilog=_EXAMPLES)
def command(
    artifacts: tuple[str, ...] = argument(metavar="[ID|NAME]...", nargs=-1, shell_complete=complete_artifact),
    folder: Place = store_option,
    as_json: bool = json_option,
) -> None:
    """Check files, digests, counts, ids and names of some artifacts and of what they were made from, or of all.

    Names each damaged file and its damage; exits 1 if there is any. What cannot be checked because it was made from
    something damaged is counted separately. Reads every file, and notes those that evaluand did not make.
    """
    store = open_store(folder)
    if not store.top.exists():
        raise NotFound(f"{folder}: no such store")
    selected = _add_origins(store, [resolve(store, artifact) for artifact in artifacts])
    keys = selected or store.artifacts()
    tally, verification = Tally("verify", len(keys)), Verification(store)
    found = []
    with display(as_json, quiet=False)(tally):
        for kind, id in keys:
            found.append(_facts(store, kind, id, _faults(verification, kind, id)))
            tally.called += 1
            tally.failed += bool(found[-1]["faults"])
    names = [] if selected else [*store.blocked(), *store.misplaced(), *store.damaged_refs()]
    reported = {fault["where"] for artifact in found for fault in artifact["faults"]}
    notes = [] if selected else [note for note in store.strays() if note.where not in reported]
    if as_json:
        facts = {"ok": not (tally.failed or names), "artifacts": found, "names": _fault_facts(names)}
        print_json(facts | ({"notes": _fault_facts(notes)} if notes else {}))
    else:
        _print(console(), found, names, notes, None if selected else len([*store.catalog.refs()]))
    if tally.failed or names:
        raise Exit(1)


def _add_origins(store: FolderStore, keys: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Artifacts with those that they were made from; one that is missing is a fault of the other."""
    found = dict.fromkeys(keys)
    for key in (waiting := [*found]):
        with suppress(EngineError):  # the manifest cannot be read, which is its fault
            new = [origin for origin in origins(store.manifest(*key)) if origin not in found and exists(store, *origin)]
            found |= dict.fromkeys(new)
            waiting += new
    return [*found]


def _faults(verification: Verification, kind: str, id: str) -> list[Fault]:
    """The faults of an artifact, also if its manifest cannot be read."""
    try:
        return verification.find_faults(kind, id)
    except EngineError as error:
        return [Fault("", str(error))]


def _fault_facts(faults: list[Fault]) -> list[Facts]:
    return [
        {"where": fault.where, "message": fault.message} | ({"code": fault.code} if fault.code else {})
        for fault in faults
    ]


def _facts(store: FolderStore, kind: str, id: str, faults: list[Fault]) -> Facts:
    return {
        "kind": kind,
        "id": id,
        "status": _status(store, kind, id),
        "faults": _fault_facts(faults),
    }


def _status(store: FolderStore, kind: str, id: str) -> str:
    try:
        return "sealed" if store.is_sealed(kind, id) else "open"
    except EngineError:  # its folder is a link
        return DAMAGED


def _print(out: Console, found: list[Facts], names: list[Fault], notes: list[Fault], n_names: int | None) -> None:
    for artifact in found:
        what = f"{singular(artifact['kind'])} {artifact['id'][:SHORT_ID]}"
        if not artifact["faults"]:
            out.print(Text.assemble(("ok     ", "green"), what, "" if artifact["status"] == "sealed" else "  (open)"))
        for fault in artifact["faults"]:
            is_unchecked = fault.get("code") == UNCHECKED
            mark = (UNCHECKED, "yellow") if is_unchecked else ("fault", "red")
            place = "" if is_unchecked or not fault["where"] else f"{fault['where']}: "
            message = safe(name_store(fault["message"]))
            out.print(Text.assemble(mark, f"  {what}  {safe(place)}{message}"), soft_wrap=True)
    for fault in names:
        message = safe(name_store(fault.message))
        out.print(Text.assemble(("fault  ", "red"), f"{safe(fault.where)}: {message}"), soft_wrap=True)
    for note in notes:
        out.print(Text.assemble(("note   ", "dim"), f"{safe(note.where)}: {safe(note.message)}"), soft_wrap=True)
    unchecked = sum(map(_is_unchecked, found))
    bad = sum(bool(artifact["faults"]) for artifact in found) - unchecked + len(names)
    checked = plural(len(found), "artifact") + (f" and {plural(n_names, 'name')}" if n_names is not None else "")
    more = f", {unchecked:,} that cannot be checked" if unchecked else ""
    out.print(f"{checked} checked, {bad:,} with faults{more}", soft_wrap=True)


def _is_unchecked(artifact: Facts) -> bool:
    """Whether an artifact is intact, and only what it was made from is damaged."""
    codes = {fault.get("code") for fault in artifact["faults"]}
    return codes == {UNCHECKED}
