"""Stored answers that were lost: how many calls are repeated because of it, which is to be asked for where they cost.

Answers are lost with damaged lines or segments of a journal, and with tables of finished work that were damaged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

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
        inputs: knows the answers of the lane that depend on nobody knows what.
        tally: of the lane.
        answer: the word for one of its answers.
        repeat: whether lost answers may be made again where that costs.
        part: the entry of the lane among counts and usage of the manifest; empty if they are of this lane.

    Raises:
        Aborted: they cost, and nobody has asked to make them again.
    """
    lost = lane.find_lost()
    before, faults = _damaged_attempt(store, manifest, part)
    counts = before.get("counts", {})
    counts = counts.get(part, {}) if part else counts
    stored = sum(n for status, n in counts.items() if status != FAILED)  # what failed is never taken over
    rows = max(0, stored - lane.accepted(before["id"])) if before else 0
    n = min(lost.rows + rows, lane.slots - lane.n_done) + len(inputs.undefined)
    if n <= 0 or store.is_sealed(manifest["kind"], manifest["id"]):
        return
    usage = before.get("usage", {})
    used = UsageTotal.read(usage.get(part) if part else usage)
    used.cost = used.cost or dict(lost.spent)
    is_paid = used.cost or used.input_tokens or used.output_tokens or lost.used or asks_models(manifest)
    places = list_places([f"{fault.where}: {fault.message.partition(';')[0]}" for fault in (*lost.faults, *faults)])
    what = f"{tally.label}: {plural(n, f'stored {answer}')} {pluralize(n, 'is', 'are')} lost ({places})"
    if is_paid and not repeat:
        amount = f", which used {used}" if used else ""
        raise Aborted(
            f"{what}{amount}; restore what is missing, or add --repeat-lost (repeat_lost=True) to make"
            f" {pluralize(n, 'it', 'them')} again",
            code="lost",
        )
    warn(f"{what}, and {pluralize(n, 'is', 'are')} made again")
    lane.void(inputs.undefined)
    tally.kept -= len(inputs.undefined)
    for name, total in {**lost.by_segment, **({before["id"]: stored} if before else {})}.items():
        if total > lane.accepted(name):
            lane.accept(name, total)


def _damaged_attempt(store: Store, manifest: Manifest, part: str) -> tuple[Mapping[str, Any], list[Fault]]:
    """The manifest and the faults of the attempt before, if it is finished and tables with its answers are damaged."""
    kind, attempt = manifest["kind"], manifest["attempt"]
    id = artifact_id(kind, manifest["spec"], attempt - 1) if attempt else ""
    found = sealed_manifest(store, kind, id) if id else None
    damage = store.damage(kind, id, quick=True) if found else []
    if found is None or not damage:
        return {}, []
    tables = {name for name in found["tables"] if (name.endswith(f"/{part}") if part else name != SPANS)}
    files = tuple(found["tables"][name]["file"] for name in tables)
    faults = [fault for fault in damage if fault.where.endswith(files)]
    return (found, faults) if faults else ({}, [])


SPANS: Final = "spans"
"""The table without which answers are taken over."""
