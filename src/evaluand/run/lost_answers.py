"""Stored answers that were lost: how many calls are repeated because of it, which is to be asked for where they cost.

Answers are lost with damaged lines or segments of a journal, and with tables of finished work that were damaged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from evaluand.core.errors import Fault, plural, pluralize, warn
from evaluand.core.identity import artifact_id
from evaluand.engine.keyed_work import Tally
from evaluand.engine.outcome import Aborted
from evaluand.engine.reuse import InputCheck
from evaluand.models.usage_total import UsageTotal
from evaluand.store.journal import WorkLog
from evaluand.store.segments import list_places
from evaluand.store.statuses import FAILED
from evaluand.store.store import Manifest, Store, asks_models, sealed_manifest

LOST: Final = "lost"
"""The code of the error of work that stops since stored answers are lost."""

SPANS: Final = "spans"
"""The table without which answers are taken over."""


def settle_lost(
    store: Store,
    manifest: Manifest,
    lane: WorkLog,
    inputs: InputCheck,
    tally: Tally,
    answer: str,
    *,
    repeat: bool,
    part: str = "",
) -> None:
    """Says how many answers are made again because stored ones were lost.

    Args:
        manifest: of the open work.
        lane: its lane, after all answers were taken over that there are.
        inputs: knows the answers of the lane that depend on nobody knows what, and whether stored ones are reused.
        tally: of the lane.
        answer: the word for one of its answers.
        repeat: whether lost answers may be made again where that costs.
        part: the entry of the lane among counts and usage of the manifest; empty if they are of this lane.

    Raises:
        Aborted: they cost, and nobody has asked to make them again.
    """
    lost = lane.find_lost()
    before = _find_damaged(store, manifest, lane, part) if inputs.identity.pinned else _Damaged()
    n = min(lost.rows + before.rows, lane.slots - lane.n_done) + len(inputs.undefined)
    if n <= 0 or store.is_sealed(manifest["kind"], manifest["id"]):
        return
    used = UsageTotal.read(before.usage)
    used.cost = used.cost or dict(lost.spent)
    is_paid = used.cost or used.input_tokens or used.output_tokens or lost.used or asks_models(manifest)
    places = list_places(
        [f"{fault.where}: {fault.message.partition(';')[0]}" for fault in (*lost.faults, *before.faults)]
    )
    what = f"{tally.label}: {plural(n, f'stored {answer}')} {pluralize(n, 'is', 'are')} lost ({places})"
    if is_paid and not repeat:
        amount = f", which used {used}" if used else ""
        raise Aborted(
            f"{what}{amount}; restore what is missing, or add --repeat-lost (repeat_lost=True) to make"
            f" {pluralize(n, 'it', 'them')} again",
            code=LOST,
        )
    warn(f"{what}, and {pluralize(n, 'is', 'are')} made again")
    lane.void(inputs.undefined)
    tally.kept -= len(inputs.undefined)
    for name, total in {**lost.by_segment, **before.stored}.items():
        if total > lane.accepted(name):
            lane.accept(name, total)


class _Damaged(NamedTuple):
    """Finished work whose damaged tables have answers.

    Attributes:
        rows: how many of these answers are missing.
        stored: by its id, how many answers it had.
        usage: of its answers.
    """

    rows: int = 0
    stored: Mapping[str, int] = {}
    usage: Any = None
    faults: Sequence[Fault] = ()


def _find_damaged(store: Store, manifest: Manifest, lane: WorkLog, part: str) -> _Damaged:
    """The attempt before, or what the name meant before, if tables with answers of the same code are damaged there."""
    kind, attempt = manifest["kind"], manifest["attempt"]
    ids = [artifact_id(kind, manifest["spec"], attempt - 1)] if attempt else []
    for id in () if manifest["fresh"] else (*ids, manifest["provenance"].get("before")):
        found = sealed_manifest(store, kind, id) if id else None
        if found is None or _asked(found, part) != _asked(manifest, part):
            continue
        counts, usage = (found.get(of, {}) for of in ("counts", "usage"))
        counts, usage = (counts.get(part, {}), usage.get(part)) if part else (counts, usage)
        stored = sum(n for status, n in counts.items() if status != FAILED)  # what failed is never taken over
        n_new = max(0, lane.slots - sum(counts.values()))
        rows = min(stored - lane.accepted(found["id"]), lane.slots - lane.n_done - n_new)
        damage = store.damage(kind, found["id"]) if rows > 0 else []
        tables = {name for name in found["tables"] if (name.endswith(f"/{part}") if part else name != SPANS)}
        files = tuple(found["tables"][name]["file"] for name in tables) if damage else ()
        if faults := [fault for fault in damage if fault.where.endswith(files)]:
            return _Damaged(rows, {found["id"]: stored}, usage, faults)
    return _Damaged()


def _asked(manifest: Manifest, part: str) -> list[Any]:
    """Of which code and for which data answers were asked."""
    spec = manifest["spec"]
    code = [spec["scorers"].get(part)] if part else [spec.get(name) for name in ("task", "judge", "seed")]
    return [*code, spec.get("dataset")]
