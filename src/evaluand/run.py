"""Runs: a task's responses to the examples of a dataset.

A `Runner` makes every call once, whatever stops it: finished calls are journalled at once, calls that an earlier run
made with the same key (task, seed, example's input, replication) are taken over, and the whole is sealed into tables
when nothing is missing. A call that fails is a row, never the end of the run.
"""

from __future__ import annotations

import hashlib
import os
import time
import traceback
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from orjson import Fragment

from evaluand import ids, rows
from evaluand.dataset import Dataset, Example, ExampleStream
from evaluand.engine import Engine, LocalEngine, Outcome, Policy, Wire
from evaluand.errors import DataError, SpecError, with_article
from evaluand.fingerprint import Identity, explain
from evaluand.fingerprint.homes import is_first_party
from evaluand.journal import Lane
from evaluand.provenance import provenance
from evaluand.rows import COMPLETED, FAILED, INDEX, SKIPPED
from evaluand.store import (
    Manifest,
    MemoryStore,
    Store,
    begin,
    check_name,
    check_store,
    drafted,
    exists,
    journalled,
    now,
)
from evaluand.task import Alternatives, Request, Runnable, Task, as_task
from evaluand.trace import TaskSpan, Trace
from evaluand.work import KeyedWork, Progress, Receipt, Tally

LANE = "responses"
MAX_CALLS = 1 << 28  # 14 bytes of memory each
BATCH = 4096
BATCH_CHARACTERS = 16 << 20  # of text in a batch, so that long answers fill no memory
_MESSAGE = 2000


@dataclass(slots=True)
class _Unit:
    """One call to make."""

    slot: int
    example: Example
    replication: int
    digest: bytes
    trace: Trace | None = None
    size: int = 1

    def __str__(self) -> str:
        return f"_index_ {self.example.index}, replication {self.replication}"


def _packed(unit: _Unit) -> bytes:
    """What a process that makes the call needs of a unit."""
    e = unit.example
    return ids.encode([unit.slot, e.index, e.position, e.id, e.input, unit.replication, unit.digest])


def _unpacked(packed: bytes) -> _Unit:
    slot, index, position, id, input, replication, digest = ids.decode(packed)
    return _Unit(slot, Example(index, position, id, input, None, {}, None, None, {}, b""), replication, digest)


@dataclass(slots=True)
class Response:
    """One row of a run.

    Attributes:
        index: the example's `_index_`.
        replication: which repeat.
        fold: which fold of a cross-validation, or None.
        status: completed, failed or skipped.
        error: `{type, message, code, place}` of what was raised, or None.
        responses: the answers, best first: a value each, or a list of items where the task declares items; None is
            no answer.
        digest: of the example's input.
        content: 16 bytes that stand for what came out.
    """

    index: int
    replication: int
    fold: int | None
    status: str
    error: dict[str, Any] | None
    responses: list[Any] | None
    digest: bytes
    content: bytes


class Run:
    """A run in a store.

    Attributes:
        receipt: what had to be done for it, when it was just made.
    """

    def __init__(self, store: Store, id: str, receipt: Receipt | None = None) -> None:
        self.store, self.id, self.receipt = store, id, receipt
        self.manifest = store.manifest("runs", id)

    def __repr__(self) -> str:
        counts = ", ".join(f"{n} {word}" for word, n in self.counts.items())
        return f"Run({self.id[:12]}, {self.name or 'unnamed'}: {counts})"

    @property
    def name(self) -> str | None:
        return self.manifest["name"]  # type: ignore[no-any-return]

    @property
    def digest(self) -> str:
        """32 hexadecimal digits that stand for every response, without times and costs."""
        return str(self.manifest["digest"])

    @property
    def counts(self) -> dict[str, int]:
        """Rows by status."""
        return self.manifest["counts"]  # type: ignore[no-any-return]

    @property
    def items(self) -> bool:
        """Whether each response is a list of items."""
        return bool(self.manifest["spec"]["task"].get("items"))

    @property
    def dataset(self) -> Dataset:
        return Dataset.stored(self.store, self.manifest["spec"]["dataset"])

    def batches(self, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The table of responses as a stream."""
        return self.store.read("runs", self.id, "responses", columns)

    def table(self) -> pa.Table:
        """The table of responses."""
        return pa.Table.from_batches(self.batches(), rows.RESPONSES)

    def __iter__(self) -> Iterator[Response]:
        columns = [INDEX, "replication", "fold", "status", "error", "n_responses", "digest"]
        for batch in self.batches([*columns, "responses"]):
            values = (batch.column(name).to_pylist() for name in columns)
            texts = _item_texts(batch.column("responses"))
            for index, replication, fold, status, error, n, digest in zip(*values, strict=True):
                items = next(texts)
                answers = None if items is None else _answers(items, n, self.items)
                content = _content(status, error, items, n, self.items)
                yield Response(index, replication, fold, status, error, answers, digest, content)

    def spans(self) -> Iterator[pa.RecordBatch]:
        """The table of spans as a stream; empty where the task opened none."""
        if "spans" not in self.manifest["tables"]:
            return iter(())
        return self.store.read("runs", self.id, "spans")


@dataclass
class Runner:
    """Runs tasks over datasets.

    Args:
        store: where runs are kept; in memory if not given.
        policy: concurrency, timeout, retries, what stops the run.
        progress: shows how far it is.

    Example:
        >>> from evaluand.dataset import Dataset
        >>> data = Dataset.from_rows([{"input": "a"}, {"input": "b"}])
        >>> run = Runner().run(str.upper, data)
        >>> [response.responses for response in run]
        [['A'], ['B']]
    """

    store: Store = field(default_factory=MemoryStore)
    policy: Policy = field(default_factory=Policy)
    engine: Engine = field(default_factory=LocalEngine)
    progress: Progress | None = None

    def run(
        self,
        task: Runnable,
        dataset: Dataset,
        *,
        name: str | None = None,
        limit: int | None = None,
        replications: int | None = None,
        seed: int = 0,
        fresh: bool = False,
        retry_failed: bool = False,
        resume: str | None = None,
        origin: dict[str, Any] | None = None,
    ) -> Run:
        """The run of a task over a dataset; found, continued or made.

        Args:
            task: a task, a function or an object with `do_run`.
            dataset: the examples.
            name: a name for the run, for people and for finding it again.
            limit: only the first examples.
            replications: how often each example is run; if not given, as often as the task tells, or once.
            seed: what the examples' seeds are made from.
            fresh: make all calls anew, as a further attempt.
            retry_failed: make the calls anew that failed, as a further attempt.
            resume: the id of an open run that this must continue.
            origin: where the request came from, for provenance.

        Raises:
            SpecError: the request cannot work; nothing was called.
            Aborted: a call failed and the policy stops at the first failure; the run stays open.
            KeyboardInterrupt: stopped by the user; the run stays open.
        """
        check_store(self.store)
        task = as_task(task)
        if not isinstance(dataset, Dataset):
            raise SpecError(
                f"give a Dataset, not {with_article(type(dataset).__name__)}; see Dataset.from_rows and from_file"
            )
        if name is not None:
            check_name(name)
        replications = _replications(task, replications)
        if limit is not None and limit < 1:
            raise SpecError("limit must be at least 1")
        identity = task.identify()
        unpinned = identity.reasons(in_yaml="experiment" in (origin or {}))
        stored = dataset.save(self.store)
        asked = min(limit or len(stored), len(stored))
        core = {"task": identity.spec, "seed": seed}
        if asked * replications > MAX_CALLS:
            calls = f"{asked:,} examples × {replications:,} replications"
            raise SpecError(f"{calls} are more than the {MAX_CALLS:,} calls that a run can hold; make several runs")
        spec = core | {"dataset": stored.id, "examples": asked, "replications": replications}
        before = next((ref.id for ref in self.store.refs() if (ref.name, ref.kind) == (name, "runs")), None)

        def about() -> Manifest:
            task.prepare(stored)
            return {
                "work": [ids.digest(core).hex()] if identity.pinned else [],
                "pinned": identity.pinned,
                "fresh": fresh,
                "provenance": provenance(origin)
                | {"parts": dict(identity.parts), "unpinned": unpinned, "policy": _policy(self.policy)},
            }

        manifest = begin(
            self.store,
            "runs",
            spec,
            name=name,
            again=lambda last: self._wants_another(last, fresh, identity.pinned, retry_failed),
            resume=resume,
            about=about,
        )
        total = asked * replications
        if "digest" in manifest:
            why = f"nothing to do: the same task, dataset and seed were run on {manifest['created'][:16]}Z"
            return Run(self.store, manifest["id"], Receipt(total, kept=total, why=why))
        job = _Job(self, task, stored, manifest, asked, replications, seed)
        receipt = job.perform(reuse=identity.pinned and not manifest["fresh"])
        if not identity.pinned:
            why = f"unpinned, so never reused: {'; '.join(unpinned)}"
        elif retry_failed and manifest["attempt"]:
            why = "failures tried again"
        else:
            why = self._changes(before, identity, manifest["id"])
        return Run(self.store, manifest["id"], replace(receipt, why=why))

    def plan(self, task: Runnable, dataset: Dataset, *, replications: int | None = None, seed: int = 0) -> Receipt:
        """What a run would have to do now: `called` are the calls that are new. Calls nothing and stores nothing."""
        task = as_task(task)
        identity = task.identify()
        task.prepare(dataset)
        replications = _replications(task, replications)
        total = len(dataset) * replications
        core = {"task": identity.spec, "seed": seed}
        last = _last_attempt(
            self.store, core | {"dataset": dataset.id, "examples": len(dataset), "replications": replications}
        )
        if last and not self.store.is_sealed("runs", last):
            kept = _done_slots(self.store, last, total)
        elif not identity.pinned:
            kept = set()
        else:
            kept = set(range(total if last else 0))
        wanted = Wanted(
            (example.position * replications + r, _key(_seen(task, example, dataset.id), r))
            for example in dataset
            for r in range(replications)
            if example.position * replications + r not in kept and not task.skips(example.index, example.id, r)
        )
        missing = wanted.left
        sources = self.store.find("runs", ids.digest(core).hex()) if identity.pinned else []
        for source in sources:
            if not wanted.left:
                break
            for digest, replication, _ in _completed_records(self.store, source):
                wanted.take(_key(digest, replication))
        why = "" if identity.pinned else f"unpinned, so never reused: {'; '.join(identity.unpinned)}"
        skipped = total - len(kept) - missing
        return Receipt(total, wanted.left, missing - wanted.left, len(kept), why, skipped=skipped)

    def _wants_another(self, last: str, fresh: bool, pinned: bool, retry_failed: bool) -> bool:
        """Whether there is to be a further attempt after the last."""
        if fresh or not pinned:
            return True
        return retry_failed and self.store.manifest("runs", last).get("counts", {}).get(FAILED, 0) > 0

    def _changes(self, before: str | None, identity: Identity, id: str) -> str:
        """What changed since the run that had the name before, in words."""
        if before is None or before == id or not exists(self.store, "runs", before):
            return ""
        earlier = self.store.manifest("runs", before)
        changes = explain(earlier["provenance"].get("parts", {}), identity.parts)
        return "; ".join(changes[:5])


def _replications(task: Task[Any, Any], asked: int | None) -> int:
    """How often each example is run.

    Raises:
        SpecError: it cannot be run so often, or not by this task.
    """
    own = task.replications
    if asked is None:
        return own or 1
    if asked < 1:
        raise SpecError("replications must be at least 1")
    if own is not None and asked != own:
        raise SpecError(f"task {task.name!r} repeats each example {own} times; give replications: {own}, not {asked}")
    return asked


class _Job:
    """One run in the making."""

    def __init__(
        self,
        runner: Runner,
        task: Task[Any, Any],
        dataset: Dataset,
        manifest: Manifest,
        examples: int,
        replications: int,
        seed: int,
    ) -> None:
        self.runner, self.task, self.dataset, self.manifest = runner, task, dataset, manifest
        self.store, self.id = runner.store, manifest["id"]
        self.examples, self.replications, self.seed = examples, replications, seed
        self.stream = ExampleStream(dataset)
        self.lane = self.store.lane("runs", self.id, LANE, examples * replications)
        self.tally = Tally(manifest["name"] or task.name, self.lane.slots)

    def perform(self, reuse: bool) -> Receipt:
        try:
            self.lane.refresh()
            self.tally.kept = self.lane.n_done
            if reuse and self.lane.n_done < self.lane.slots:
                self._reuse()
            work = KeyedWork(
                self.lane,
                self._units,
                self._call_async if self.task.is_async else self._call,
                self._line,
                self.runner.policy,
                self.runner.engine,
                self.tally,
                sealed=self.is_sealed,
                settled=None if type(self.task).skips is Task.skips else self._skipped_line,
                wire=Wire(_packed, _unpacked, self.task.close) if self.runner.policy.processes else None,
            )
            with self.runner.progress(self.tally) if self.runner.progress else nullcontext():
                work.perform()
            if not self.is_sealed():
                _seal_run(self.store, self.manifest, self.lane, self.dataset.indices, self.replications)
        finally:
            self.task.close()
            self.lane.close()
        tally = self.tally
        return Receipt(
            self.lane.slots, tally.called, tally.reused, tally.kept, skipped=tally.skipped, failed=tally.failed
        )

    def is_sealed(self) -> bool:
        return self.store.is_sealed("runs", self.id)

    def _digest(self, example: Example) -> bytes:
        return _seen(self.task, example, self.dataset.id)

    def _units(self, start: int, stop: int) -> Iterator[_Unit]:
        times = self.replications
        for example in self.stream.take(start // times, -(-stop // times)):
            digest = self._digest(example)
            for replication in range(times):
                slot = example.position * times + replication
                if start <= slot < stop:
                    yield _Unit(slot, example, replication, digest)

    def _call(self, unit: _Unit) -> Any:
        with self._traced(unit) as task_span:
            return self.task.call(self._request(unit, task_span))

    async def _call_async(self, unit: _Unit) -> Any:
        with self._traced(unit) as task_span:
            return await self.task.call(self._request(unit, task_span))

    def _traced(self, unit: _Unit) -> TaskSpan:
        """The root span of a new trace, which stays with the unit whatever becomes of the call."""
        unit.trace = Trace.start(self.task.name, unit.example.input)
        return unit.trace.root

    def _request(self, unit: _Unit, task_span: TaskSpan) -> Request:
        example, timeout = unit.example, self.runner.policy.timeout
        return Request(
            _own(example.input), task_span, example.index, example.id, unit.replication, unit.digest, self.seed, timeout
        )

    def _skipped_line(self, unit: _Unit) -> bytes | None:
        """The line of a call that is not to be made; None where it is."""
        if not self._skips(unit.example, unit.replication):
            return None
        fold = self.task.fold(unit.example.index, unit.example.id, unit.replication)
        started = time.time_ns() // 1000
        record = [unit.slot, unit.digest.hex(), fold, SKIPPED, None, None, 0, 0, started, 0, None, None]
        return orjson.dumps(record) + b"\n"

    def _skips(self, example: Example, replication: int) -> bool:
        return self.task.skips(example.index, example.id, replication)

    def _line(self, unit: _Unit, outcome: Outcome) -> tuple[bytes, bool]:
        error, texts, n = outcome.error, None, 0
        if error is None:
            try:
                texts, n = _texts(outcome.value, self.task.items)
            except DataError as refused:
                error = refused
        record = [
            unit.slot,
            unit.digest.hex(),
            self.task.fold(unit.example.index, unit.example.id, unit.replication),
            COMPLETED if error is None else FAILED,
            None if error is None else _error(error),
            texts,
            n,
            outcome.attempts,
            outcome.started // 1000,
            outcome.duration // 1000,
            _usage(unit.trace),
            (unit.trace.rows() or None) if unit.trace else None,
        ]
        return orjson.dumps(record) + b"\n", error is not None

    def _reuse(self) -> None:
        """Takes over the calls that earlier runs of the same work have completed, each for one row."""
        sources = [id for id in self.store.find("runs", self.manifest["work"][0]) if id != self.id]
        if not sources:
            return
        wanted = Wanted(self._missing())
        for source in sources:
            if not wanted.left:
                break
            for digest, replication, record in _completed_records(self.store, source):
                try:
                    rest = orjson.dumps(record[1:])
                except TypeError:  # nested more deeply than orjson writes with what is around it: call it again
                    continue
                slot = wanted.take(_key(digest, replication))
                if slot is not None:
                    self.lane.append(b"[%d,%b\n" % (slot, rest[1:]))
                    self.tally.reused += 1
        self.lane.refresh()

    def _missing(self) -> Iterator[tuple[int, bytes]]:
        for example in self.dataset.examples(0, self.examples):
            first = example.position * self.replications
            open_ = (r for r in range(self.replications) if not self.lane.is_done(first + r))
            missing = [r for r in open_ if not self._skips(example, r)]
            if missing:
                digest = self._digest(example)
                yield from ((first + r, _key(digest, r)) for r in missing)


def _seen(task: Task[Any, Any], example: Example, dataset: str) -> bytes:
    """16 bytes that stand for all the task can see of an example of a dataset."""
    if not task.reads:
        return example.input_digest
    more = (dataset if name == "dataset" else getattr(example, name) for name in task.reads)
    return ids.digest([example.input, *more])


def _last_attempt(store: Store, spec: Mapping[str, Any]) -> str | None:
    number, last = 0, None
    while exists(store, "runs", id := ids.artifact_id("runs", spec, number)):
        number, last = number + 1, id
    return last


def _done_slots(store: Store, id: str, slots: int) -> set[int]:
    """The calls of an open run that are finished."""
    lane = store.lane("runs", id, LANE, slots)
    try:
        lane.refresh()
        return {slot for slot in range(slots) if lane.is_done(slot)}
    finally:
        lane.close()


def _own(value: Any) -> Any:
    """A value that the task may change without any other call seeing it."""
    return deepcopy(value) if isinstance(value, list | dict) else value


def _key(digest: bytes, replication: int) -> bytes:
    """16 bytes that stand for one call: what the task sees, and which repeat it is."""
    return hashlib.blake2b(digest + replication.to_bytes(4, "little"), digest_size=ids.DIGEST_SIZE).digest()


class Wanted:
    """The slots still to be filled, by a key of 16 bytes; 28 bytes a slot. Slots of equal keys are filled in order."""

    def __init__(self, missing: Iterator[tuple[int, bytes]]) -> None:
        slots, keys = array("q"), bytearray()
        for slot, key in missing:
            slots.append(slot)
            keys += key
        pairs = np.frombuffer(bytes(keys), dtype=">u8").reshape(-1, 2).astype(np.uint64)
        order = np.lexsort((pairs[:, 1], pairs[:, 0]))
        self._high, self._low = np.ascontiguousarray(pairs[order, 0]), np.ascontiguousarray(pairs[order, 1])
        self._slots = np.frombuffer(slots, dtype=np.int64)[order]
        self._filled = np.zeros(len(order), np.int32)  # at the first of equal keys: how many of them
        self.left = len(order)

    def take(self, key: bytes) -> int | None:
        """The next slot with that key, or None when there is none left."""
        high, low = int.from_bytes(key[:8], "big"), int.from_bytes(key[8:], "big")
        first = int(np.searchsorted(self._high, np.uint64(high), "left"))
        while first < len(self._slots) and self._high[first] == high and self._low[first] < low:
            first += 1
        if first == len(self._slots) or not self._is(first, high, low):
            return None
        place = first + int(self._filled[first])
        if place == len(self._slots) or not self._is(place, high, low):
            return None
        self._filled[first] += 1
        self.left -= 1
        return int(self._slots[place])

    def _is(self, place: int, high: int, low: int) -> bool:
        return bool(self._high[place] == high and self._low[place] == low)


def _completed_records(store: Store, id: str) -> Iterator[tuple[bytes, int, list[Any]]]:
    """(digest, replication, journal record) of every completed call of a run, sealed or open."""
    manifest = store.manifest("runs", id)
    times = manifest["spec"]["replications"]
    if store.is_sealed("runs", id):
        yield from _sealed_records(Run(store, id))
        return
    lane = store.lane("runs", id, LANE, manifest["spec"]["examples"] * times)
    try:
        lane.refresh()
        for record in lane.records():
            if record[3] == COMPLETED:
                yield bytes.fromhex(record[1]), record[0] % times, record
    finally:
        lane.close()


def _sealed_records(run: Run) -> Iterator[tuple[bytes, int, list[Any]]]:
    spans = _SpanStream(run)
    for batch in run.batches():
        columns = {name: batch.column(name) for name in batch.schema.names}
        columns["started"] = columns["started"].cast(pa.int64())
        columns["duration"] = columns["duration"].cast(pa.int64())
        table = pa.RecordBatch.from_arrays(list(columns.values()), list(columns)).to_pylist()
        for row in table:
            traced = spans.of(row[INDEX], row["replication"])
            if row["status"] != COMPLETED:
                continue
            responses = row["responses"]
            texts = responses and [[r["_response_index_"], Fragment(r["value"])] for r in responses]
            yield (
                row["digest"],
                row["replication"],
                [
                    None,
                    row["digest"].hex(),
                    row["fold"],
                    COMPLETED,
                    None,
                    texts,
                    row["n_responses"],
                    row["attempts"],
                    row["started"],
                    row["duration"],
                    row["usage"],
                    traced or None,
                ],
            )


class _SpanStream:
    """The spans of a run, row by row beside its responses."""

    def __init__(self, run: Run) -> None:
        self._rows = (row for batch in run.spans() for row in _span_rows(batch))
        self._next = next(self._rows, None)

    def of(self, index: int, replication: int) -> list[list[Any]]:
        found = []
        while self._next is not None and self._next[:2] == (index, replication):
            found.append(self._next[2])
            self._next = next(self._rows, None)
        return found


def _span_rows(batch: pa.RecordBatch) -> Iterator[tuple[int, int, list[Any]]]:
    columns = [batch.column(i) for i in range(batch.num_columns)]
    plain = [c.cast(pa.int64()) if pa.types.is_duration(c.type) else c for c in columns]
    for row in zip(*(c.to_pylist() for c in plain), strict=True):
        index, replication, number, parent, name, kind, start, duration, status, *texts = row
        code = _SPAN_STATUSES.index(status)
        written = [None if text is None else Fragment(text) for text in texts]
        yield index, replication, [number, parent, name, kind, start, duration, code, *written]


_SPAN_STATUSES = ("unset", "ok", "error")


def _seal_run(store: Store, manifest: Manifest, lane: Lane, indices: array[int], replications: int) -> None:
    """Turns the journal into tables, in the order of the keys, as a stream."""
    of_items = bool(manifest["spec"]["task"].get("items"))
    counts: dict[str, int] = {}
    state = hashlib.blake2b(digest_size=ids.DIGEST_SIZE)
    with drafted(store, "runs", manifest["id"]) as draft, journalled("runs", manifest["id"]):
        draft.append("responses", pa.RecordBatch.from_pylist([], rows.RESPONSES))
        held = 0
        responses, spans = Rows(rows.RESPONSES, {"responses": _item_column}), Rows(rows.SPANS)
        for record in lane.records():
            slot, digest, fold, status, error, values, count, attempts, started, duration, usage, traced = record
            index, replication = indices[slot // replications], slot % replications
            failure = error and dict(zip(_ERROR, error, strict=True))
            texts = None if values is None else [(n, canonical_text(value)) for n, value in values]
            content = _content(status, failure, texts, count, of_items)
            state.update(row_digest(index, replication, fold, content))
            counts[status] = counts.get(status, 0) + 1
            head = (index, replication, fold, bytes.fromhex(digest), status, failure, texts, count)
            responses.add((*head, attempts, usage, started, duration))
            for span in traced or ():
                _add_span(spans, index, replication, span)
            held += sum(len(text) for _, text in texts or ())
            if len(responses) >= BATCH or len(spans) >= BATCH * 4 or held >= BATCH_CHARACTERS:
                held = 0
                responses.flush(draft, "responses")
                spans.flush(draft, "spans")
        responses.flush(draft, "responses")
        spans.flush(draft, "spans")
        draft.seal(manifest | {"digest": state.hexdigest(), "counts": counts, "sealed": now()})


def row_digest(index: int, replication: int, fold: int | None, content: bytes) -> bytes:
    """What one row adds to the digest of its run."""
    return orjson.dumps([index, replication, fold]) + content


class Rows:
    """Rows gathered until they make a batch.

    Args:
        schema: of the table.
        makers: how some columns are made of their values; Arrow makes the others.
    """

    def __init__(
        self, schema: pa.Schema, makers: Mapping[str, Callable[[Sequence[Any]], pa.Array]] | None = None
    ) -> None:
        self._schema = schema
        self._makers = makers or {}
        self._rows: list[tuple[Any, ...]] = []
        self.add: Callable[[tuple[Any, ...]], None] = self._rows.append

    def __len__(self) -> int:
        return len(self._rows)

    def flush(self, draft: Any, table: str) -> None:
        if self._rows:
            columns = zip(*self._rows, strict=True)
            arrays = [
                self._makers[field.name](column) if field.name in self._makers else pa.array(column, field.type)
                for column, field in zip(columns, self._schema, strict=True)
            ]
            draft.append(table, pa.RecordBatch.from_arrays(arrays, schema=self._schema))
            self._rows.clear()


_NOTHING = [None] * 4  # input, output, attributes and events of a plain span


def _add_span(spans: Rows, index: int, replication: int, span: list[Any]) -> None:
    number, parent, name, kind, start, duration, status, *values = span
    texts = _NOTHING if values == _NOTHING else [value if value is None else canonical_text(value) for value in values]
    spans.add((index, replication, number, parent, name, kind, start, duration, _SPAN_STATUSES[status], *texts))


def _texts(value: Any, items: bool) -> tuple[list[tuple[int, Fragment]] | None, int]:
    """A task's output as response items in canonical text, and the number of responses."""
    if value is None:
        return None, 0
    answers = value.values if isinstance(value, Alternatives) else (value,)
    if not isinstance(answers, list | tuple):
        raise DataError(f"Alternatives takes a list of answers, best first, not {with_article(type(answers).__name__)}")
    if not items:
        return [(i, Fragment(ids.encode(answer))) for i, answer in enumerate(answers)], len(answers)
    wrong = next((a for a in answers if not isinstance(a, list | tuple)), None)
    if wrong is not None:
        raise DataError(
            f"the task declares items, so it must return a list of items, not {with_article(type(wrong).__name__)}"
        )
    return [(i, Fragment(ids.encode(item))) for i, answer in enumerate(answers) for item in answer], len(answers)


def canonical_text(value: Any) -> str:
    """What canonical JSON was parsed to, as that text again."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _item_texts(column: pa.Array) -> Iterator[list[tuple[int, str]] | None]:
    """The (response index, text) pairs of each row, without an object per struct."""
    items = column.flatten()
    pairs = zip(items.field(0).to_pylist(), items.field(1).to_pylist(), strict=True)
    for length in column.value_lengths().to_pylist():
        yield None if length is None else list(islice(pairs, length))


def _item_column(texts: Sequence[list[tuple[int, str]] | None]) -> pa.Array:
    """The inverse of `_item_texts`."""
    pairs = [pair for items in texts if items for pair in items]
    numbers, values = zip(*pairs, strict=True) if pairs else ((), ())
    struct = pa.StructArray.from_arrays(
        [pa.array(numbers, pa.int64()), pa.array(values, pa.string())], fields=list(rows.RESPONSE_ITEM)
    )
    lengths = np.array([len(items) if items else 0 for items in texts])
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    missing = pa.array([items is None for items in texts])
    return pa.ListArray.from_arrays(pa.array(offsets), struct, mask=missing).cast(
        rows.RESPONSES.field("responses").type
    )


def _answers(texts: list[tuple[int, str]], n: int, items: bool) -> list[Any]:
    if not items:
        return [ids.decode(text) for _, text in texts]
    answers: list[Any] = [[] for _ in range(n)]
    for number, text in texts:
        answers[number].append(ids.decode(text))
    return answers


def _content(
    status: str, error: dict[str, Any] | None, texts: list[tuple[int, str]] | None, n: int, items: bool
) -> bytes:
    """16 bytes that stand for what came out of one call: not when, not how long, not in which words it failed."""
    kind = (error["type"], error["code"]) if error else None
    return hashlib.blake2b(orjson.dumps([status, kind, texts, n, items]), digest_size=ids.DIGEST_SIZE).digest()


_USAGE: dict[str, type] = {"input_tokens": int, "output_tokens": int, "cost": float, "currency": str, "model": str}


def _usage(trace: Trace | None) -> dict[str, Any] | None:
    """What the task says a call used: the attribute `usage` of its span, as far as it has the known parts."""
    told = trace.root.attributes.get("usage") if trace and trace.root.has_attributes else None
    if not isinstance(told, dict):
        return None
    if type(told.get("cost")) is int and abs(told["cost"]) < 2**53:
        told["cost"] = float(told["cost"])
    known = {name: told[name] for name, kind in _USAGE.items() if type(told.get(name)) is kind}
    return {name: value for name, value in known.items() if type(value) is not int or abs(value) < 2**63} or None


def _error(error: BaseException) -> list[Any]:
    try:
        code = getattr(error, "code", None)
    except Exception:
        code = None
    known = isinstance(code, str | int) and not isinstance(code, bool)
    return [type(error).__name__, message_of(error), message_of(code) if known else None, place_of(error)]


_ERROR = rows.ERROR.names


def message_of(said: object) -> str:
    """Text of an error that can be stored, whatever the error is like."""
    try:
        return str(said)[:_MESSAGE].encode("utf-8", "replace").decode()
    except Exception:  # a __str__ that fails
        return f"{with_article(type(said).__name__)} that cannot be shown"


def place_of(error: BaseException) -> str | None:
    """Where in first-party code an error arose: `app.py:11 in lookup`; None where it arose nowhere there."""
    found = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if not file.startswith("<frozen") and is_first_party(file):
            found = f"{os.path.basename(file)}:{line} in {frame.f_code.co_name}"
    return found


def _policy(policy: Policy) -> dict[str, Any]:
    told = {"concurrency": policy.concurrency, "timeout": policy.timeout, "retries": policy.retries}
    return (
        told | ({"rate": str(policy.pace)} if policy.pace else {}) | ({"processes": True} if policy.processes else {})
    )
