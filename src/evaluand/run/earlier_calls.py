"""The calls of earlier runs: how their answers are read, and given again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from orjson import Fragment

from evaluand.core.errors import warn
from evaluand.core.key_columns import INDEX
from evaluand.data.dataset import Dataset, ExampleStream
from evaluand.engine.policy import Policy
from evaluand.engine.reuse import Inputs, digest_words
from evaluand.models.account import Account
from evaluand.run.calling import Call, Calling
from evaluand.run.calls import Calls, key_of, numbers_of
from evaluand.run.dataset_fit import prepare
from evaluand.run.earlier_work import CHECKED, EarlierWork, Records, Repeats
from evaluand.run.responses import INPUTS, LANE, N_FIELDS, SpanStream, spans_of
from evaluand.store.journal import WorkLog
from evaluand.store.manifests import DamagedFile
from evaluand.store.store import Manifest, MemoryStore, Rows, Store
from evaluand.store.tables import COMPLETED
from evaluand.store.window import WindowedStore


@dataclass
class EarlierCalls(EarlierWork[Call]):
    """The answers of a task in earlier runs.

    Args:
        calls: that are to be made now.
    """

    calls: Calls

    kind = "runs"

    @property
    def code(self) -> str:
        return self.calls.work

    def read(self, id: str, slots: np.ndarray | None = None) -> Iterator[tuple[Records, Inputs]]:
        manifest = self.store.manifest("runs", id)
        if "digest" in manifest:  # not asked of the store, where another process may have sealed it meanwhile
            inputs = Inputs.stored(self.store, "runs", id, INPUTS)
            yield _sealed_records(self.store, manifest, slots), inputs
            return
        spec = manifest["spec"]
        with closing(self.store.lane("runs", id, LANE, spec["examples"] * spec["replications"])) as lane:
            lane.refresh()
            yield _open_records(lane, spec["replications"]), Inputs.written(lane, N_FIELDS)

    def keys(self, id: str) -> tuple[np.ndarray, np.ndarray] | None:
        if "digest" not in self.store.manifest("runs", id):
            return None
        numbers, slots, first = [], [], 0
        for batch in self.store.read("runs", id, "responses", ["digest", "replication", "status"]):
            digest, replication, status = batch.columns
            is_completed = pc.equal(status, COMPLETED).to_numpy(zero_copy_only=False)
            numbers.append(numbers_of(digest_words(digest), replication.to_numpy())[is_completed])
            slots.append(first + np.flatnonzero(is_completed))
            first += batch.num_rows
        return np.concatenate(numbers), np.concatenate(slots)

    def spec_in(self, manifest: Manifest) -> Mapping[str, Any] | None:
        spec = manifest["spec"]
        return spec["task"] if spec["seed"] == self.calls.seed else None

    def can_repeat(self, manifest: Manifest) -> bool:
        return "view" not in manifest["spec"]  # which is not stored with the dataset

    def usage_of(self, record: list[Any]) -> list[Any]:
        return record[9:10]

    def compared(self, record: list[Any]) -> Any:
        return record[:6]

    def seconds_of(self, manifest: Manifest, n_slots: int, record: list[Any]) -> float:
        return float(record[8] / 1e6 + (manifest["provenance"].get("prepared") or 0) / CHECKED)

    @contextmanager
    def repeating(self, id: str, slots: Sequence[int], policy: Policy) -> Iterator[Repeats[Call]]:
        manifest = self.store.manifest("runs", id)
        spec, dataset, task = manifest["spec"], Dataset.stored(self.store, manifest["spec"]["dataset"]), self.calls.task
        asked = {name: spec[name] for name in ("examples", "replications", "seed")}
        calls, stream = replace(self.calls, dataset=dataset, **asked), ExampleStream(dataset)
        account = Account(f"runs/{id}", MemoryStore().lane("runs", id, LANE, calls.total), policy)
        recipe = Calling(task, calls.seed, manifest["attempt"], policy, account).recipe
        prepare(task, dataset)
        try:
            units = (call for slot in slots for call in calls.between(stream, slot, slot + 1))
            yield units, recipe.call, recipe.line
        finally:
            task.close()


def _open_records(lane: WorkLog, replications: int) -> Records:
    for slot, *record in lane.records():
        if record[2] == COMPLETED:
            yield slot, key_of(bytes.fromhex(record[0]), slot % replications), record[: N_FIELDS - 1]


def _sealed_records(store: Store, manifest: Manifest, slots: np.ndarray | None) -> Records:
    id = manifest["id"]
    spans = SpanStream(_if_readable(spans_of(store, manifest) if slots is None else _spans_at(store, manifest, slots)))
    numbers = count() if slots is None else iter(slots.tolist())
    for batch in store.read("runs", id, "responses", rows=Rows(at=slots)):
        columns = {name: batch.column(name) for name in batch.schema.names}
        columns |= {name: columns[name].cast(pa.int64()) for name in ("started", "duration")}
        for row in pa.RecordBatch.from_arrays(list(columns.values()), list(columns)).to_pylist():
            slot = next(numbers)
            traced = spans.of(row[INDEX], row["replication"])
            if row["status"] == COMPLETED:
                yield slot, key_of(row["digest"], row["replication"]), _record(row, traced)


def _if_readable(spans: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Spans; none where their table is damaged, which is no reason to repeat calls."""
    try:
        yield from spans
    except DamagedFile as error:
        warn(f"{error.place}: {error.reason}; the answers are taken over without their traces")


def _spans_at(store: Store, manifest: Manifest, slots: np.ndarray) -> Iterator[pa.RecordBatch]:
    """At least the spans of the rows at some slots of a sealed run."""
    if "spans" not in manifest["tables"]:
        return iter(())
    batches = store.read("runs", manifest["id"], "responses", [INDEX], Rows(at=slots))
    indices = chain.from_iterable(batch.column(INDEX).to_pylist() for batch in batches)
    return spans_of(WindowedStore(store, indices), manifest)


def _record(row: dict[str, Any], traced: list[list[Any]]) -> list[Any]:
    """The journal record, without its slot, that became a completed row."""
    texts = row["responses"] and [[r["_response_index_"], Fragment(r["value"])] for r in row["responses"]]
    facts = [row[name] for name in ("n_responses", "attempts", "started", "duration", "usage")]
    return [row["digest"].hex(), row["fold"], COMPLETED, None, texts, *facts, traced or None]
