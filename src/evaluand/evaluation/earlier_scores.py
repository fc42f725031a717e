"""The scores that earlier evaluations have, to be reused: found by their keys, and read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from orjson import Fragment

from evaluand.core import identity
from evaluand.core.errors import NotFound
from evaluand.core.key_columns import INDEX
from evaluand.engine.reuse import Inputs, digest_words
from evaluand.evaluation.grading import N_FIELDS
from evaluand.evaluation.score_tables import SHARED
from evaluand.run.kind import RUNS
from evaluand.store import tables
from evaluand.store.journal import WorkLog
from evaluand.store.store import Manifest, Store
from evaluand.store.tables import FAILED

Scores = Iterator[tuple[int, bytes, list[Any]]]
"""Slot, digest, and journal record without slot and inputs, of rows of a run."""


def work_of(scorer: Mapping[str, Any]) -> str:
    """What identifies the work of a scorer for any data."""
    return identity.digest({"scorer": scorer}).hex()


def lane_name(number: int) -> str:
    """The lane of a scorer of an evaluation, by its position."""
    return f"scorer{number}"


def scored_keys(store: Store, id: str, work: str) -> tuple[np.ndarray, np.ndarray] | None:
    """The first eight bytes of the digests of the rows that a scorer graded, and their slots.

    Returns:
        None if the evaluation is open. Rows where the scorer failed are left out.
    """
    manifest = store.manifest("evaluations", id)
    if "digest" not in manifest:
        return None
    name = _scorers(manifest, work)[0][1]
    columns = [INDEX, "replication", "status", "digest"]
    table = pa.Table.from_batches(store.read("evaluations", id, f"scores/{name}", columns)).combine_chunks()
    if not table.num_rows:
        return np.zeros(0, np.uint64), np.zeros(0, np.int64)
    starts = _starts(table)
    failed = pc.equal(table["status"], FAILED).to_numpy()
    is_scored = ~np.logical_or.reduceat(failed, starts)
    digests = digest_words(table["digest"].chunk(0))
    return digests[starts][is_scored, 0], np.flatnonzero(is_scored)


def _scorers(manifest: Manifest, work: str) -> list[tuple[int, str]]:
    """The position and name of each scorer of an evaluation that does some work."""
    named = enumerate(manifest["spec"]["scorers"].items())
    return [(number, name) for number, (name, spec) in named if work_of(spec) == work]


def _starts(keys: pa.Table) -> np.ndarray:
    """Where the scores of the next row of the run begin."""
    index, replication = keys[INDEX].to_numpy(), keys["replication"].to_numpy()
    is_new = (np.diff(index) != 0) | (np.diff(replication) != 0)
    return np.flatnonzero(np.concatenate([[True], is_new]))


def read_scores(store: Store, id: str, work: str, slots: np.ndarray | None = None) -> Iterator[tuple[Scores, Inputs]]:
    """The scores that an evaluation's scorers of some work gave, and the files they opened.

    Args:
        slots: rows of a sealed evaluation, ascending: only these, of the first of its scorers.
    """
    manifest = store.manifest("evaluations", id)
    for number, name in _scorers(manifest, work)[: None if slots is None else 1]:
        if "digest" in manifest or store.is_sealed("evaluations", id):
            opened = Inputs.stored(store, "evaluations", id, f"inputs/{name}")
            yield _sealed_scores(store, manifest, name, slots), opened
            continue
        run = manifest["provenance"]["run"]
        total = sum(store.manifest(RUNS, run)["counts"].values())
        with closing(store.lane("evaluations", id, lane_name(number), total)) as lane:
            lane.refresh()
            yield _open_scores(lane), Inputs.written(lane, N_FIELDS)


def _open_scores(lane: WorkLog) -> Scores:
    """The scores of every row that an open evaluation could grade."""
    for slot, digest, scores, *_ in lane.records():
        if all(row[2] != FAILED for row in scores):
            yield slot, bytes.fromhex(digest), [digest, scores]


def _sealed_scores(store: Store, manifest: Manifest, name: str, slots: np.ndarray | None) -> Scores:
    places = None if slots is None else _places(store, manifest, name, slots)
    numbers = count() if slots is None else iter(slots.tolist())
    slot = -1
    key: tuple[Any, ...] | None = None
    digest, scores = b"", list[Any]()
    for batch in store.read("evaluations", manifest["id"], f"scores/{name}", at=places):
        columns = {f.name: batch.column(f.name).to_pylist() for f in batch.schema}
        texts = {f.name for f in batch.schema if tables.is_json(f)}
        own = [name for name in batch.schema.names if name not in SHARED]
        usage = columns.get("usage") or [None] * batch.num_rows  # tables of early versions have no such column
        for i in range(batch.num_rows):
            if (columns[INDEX][i], columns["replication"][i]) != key:
                if key is not None and all(row[2] != FAILED for row in scores):
                    yield slot, digest, [digest.hex(), scores]
                slot = next(numbers)
                key, scores = (columns[INDEX][i], columns["replication"][i]), []
            digest = columns["digest"][i]
            row = [columns[c][i] for c in ("_response_index_", "target", "status", "reason", "value", "label")]
            extra = {c: _to_fragment(c, columns[c][i], texts) for c in own}
            scores.append(
                [
                    *row,
                    _to_fragment("data", columns["data"][i], texts),
                    columns["explanation"][i],
                    extra if own else None,
                    *map(Fragment, filter(None, usage[i : i + 1])),
                ]
            )
    if key is not None and all(row[2] != FAILED for row in scores):
        yield slot, digest, [digest.hex(), scores]


def _places(store: Store, manifest: Manifest, name: str, slots: np.ndarray) -> np.ndarray:
    """The places of the scores of some rows in the table of a scorer, which may have several of each row."""
    if sum(manifest["counts"][name].values()) == _n_rows(store, manifest):
        return slots
    read = store.read("evaluations", manifest["id"], f"scores/{name}", [INDEX, "replication"])
    table = pa.Table.from_batches(read)
    bounds = np.append(_starts(table), table.num_rows)
    slots = slots[slots < len(bounds) - 1]
    first, n = bounds[slots], bounds[slots + 1] - bounds[slots]
    return np.repeat(first - np.cumsum(n) + n, n) + np.arange(n.sum())


def _n_rows(store: Store, manifest: Manifest) -> int | None:
    """The number of rows of the run of an evaluation; None where the store has lost it."""
    try:
        counts: dict[str, int] = store.manifest(RUNS, manifest["provenance"]["run"])["counts"]
        return sum(counts.values())
    except NotFound:
        return None


def _to_fragment(name: str, value: Any, texts: set[str]) -> Any:
    return Fragment(value) if name in texts and value is not None else value
