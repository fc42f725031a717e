"""Responses as they are written: lines of a run's journal, rows of its tables, and the digests of both.

A record of the journal is a list: slot, digest of what the task saw, fold, status, error (type, message, code, place),
pairs of response index and value, number of responses, attempts, started, duration, usage, spans; and where the call
has opened files, its observed inputs (`evaluand.engine.reuse`).
"""

from __future__ import annotations

import hashlib
import os
import time
import traceback
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from orjson import Fragment

from evaluand.core import identity
from evaluand.core.errors import DataError, Skipped, storable_message, with_article
from evaluand.core.fingerprint.homes import is_first_party
from evaluand.core.key_columns import INDEX
from evaluand.data.cell_texts import TEXT, cell_texts, digests_of, join_texts
from evaluand.engine.garbage import calls_in_flight
from evaluand.engine.keyed_work import Tally
from evaluand.engine.outcome import Failure, Outcome
from evaluand.engine.reuse import Inputs
from evaluand.models.usage import Spending
from evaluand.models.usage_total import RowUsage
from evaluand.run.excerpts import by_response
from evaluand.run.task import Candidates, Recorded
from evaluand.store import tables
from evaluand.store.store import Manifest, Store, drafted, journalled, now
from evaluand.store.tables import BATCH_ROWS, COMPLETED, FAILED, SKIPPED
from evaluand.trace.spans import STATUSES
from evaluand.trace.traces import Trace

LANE = "responses"
INPUTS = "inputs"
N_FIELDS = 12  # of a journal record, before the inputs that were observed
NOT_RECORDED = "not_recorded"
"""The code of the error where a recorded file has no output."""
RECORDED = "recorded"
"""The code of an error that a recorded file has."""


@dataclass(slots=True)
class Response:
    """One row of a run.

    Attributes:
        index: the example's `_index_`.
        fold: which fold of a cross-validation, or None.
        status: completed, failed or skipped.
        error: `{type, message, code, place}` of the exception that failed or skipped the row, or None.
        responses: the answers, best first: a value each, or a list of items where the task declares items; None is
            no answer.
        digest: the digest of the example's input.
        content: a 16-byte digest of the outcome.
    """

    index: int
    replication: int
    fold: int | None
    status: str
    error: dict[str, Any] | None
    responses: list[Any] | None
    digest: bytes
    content: bytes


def line_of(
    slot: int,
    digest: bytes,
    fold: int | None,
    outcome: Outcome,
    trace: Trace | None,
    items: bool,
    spent: Spending | None = None,
) -> tuple[bytes, bool]:
    """The journal line of a completed call, and whether it failed.

    Args:
        spent: what the call has reported, in all attempts.
    """
    error, texts, n = outcome.error, None, 0
    if error is None:
        try:
            texts, n = _response_texts(outcome.value, items)
        except DataError as refused:
            error = refused
    status = COMPLETED if error is None else SKIPPED if isinstance(error, Skipped) else FAILED
    record = [
        slot,
        digest.hex(),
        fold,
        status,
        None if error is None else _error(error),
        texts,
        n,
        outcome.attempts,
        _microseconds(outcome.started),
        _microseconds(outcome.duration),
        _usage(trace, spent),
        (trace.rows() or None) if trace else None,
    ]
    return orjson.dumps(record) + b"\n", status == FAILED


def failure_in(line: bytes) -> Failure:
    """The error in the journal line of a failed call."""
    type_, message, code, *_ = orjson.loads(line)[4]
    return Failure(f"{type_}: {message}", code)


def _microseconds(nanoseconds: int | None) -> int | None:
    return None if nanoseconds is None else nanoseconds // 1000


def skipped_line(slot: int, digest: bytes, fold: int | None) -> bytes:
    """The journal line of a skipped call."""
    started = time.time_ns() // 1000
    return orjson.dumps([slot, digest.hex(), fold, SKIPPED, None, None, 0, 0, started, 0, None, None]) + b"\n"


def _response_texts(value: Any, items: bool) -> tuple[list[tuple[int, Fragment]] | None, int]:
    """A task's output as response items in canonical text, and the number of responses."""
    if value is None:
        return None, 0
    answers = value.values if isinstance(value, Candidates) else (value,)
    if not isinstance(answers, _LISTS):
        raise DataError(f"Candidates takes a list of answers, best first, not {with_article(type(answers).__name__)}")
    if not items:
        texts = [each if type(each) is Fragment else Fragment(identity.encode(each)) for each in answers]
        return [*enumerate(texts)], len(answers)
    wrong = next((a for a in answers if not isinstance(a, _LISTS)), None)
    if wrong is not None:
        raise DataError(
            f"the task declares items, so it must return a list of items, not {with_article(type(wrong).__name__)}"
        )
    return [(i, Fragment(identity.encode(item))) for i, answer in enumerate(answers) for item in answer], len(answers)


_LISTS: Final = (list, tuple)


def _error(error: BaseException) -> list[Any]:
    try:
        code = getattr(error, "code", None)
    except Exception:
        code = None
    known = isinstance(code, str | int) and not isinstance(code, bool)
    return [type(error).__name__, storable_message(error), storable_message(code) if known else None, place_of(error)]


def place_of(error: BaseException) -> str | None:
    """Where in first-party code an error arose: `app.py:11 in lookup`; None if outside."""
    found = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if not file.startswith("<frozen") and is_first_party(file):
            found = f"{os.path.basename(file)}:{line} in {frame.f_code.co_name}"
    return found


_TOKENS = ("input_tokens", "output_tokens", "cached_input_tokens", "stored_input_tokens", "reasoning_tokens")
_USAGE: dict[str, type] = dict.fromkeys(("requests", "failed", "cached", *_TOKENS), int)
_USAGE |= {"cost": float, "currency": str, "model": str}


def _usage(trace: Trace | None, spent: Spending | None) -> dict[str, Any] | None:
    """The usage of a call: the attribute `usage` of its span, else what was counted, else that of its model spans."""
    usage = None if trace is None or not trace.root.has_attributes else trace.root.attribute("usage")
    if usage is None and spent is not None and (counted := spent.usage):
        return counted
    if usage is None and trace is not None and trace.has_kind("llm"):
        usage = _model_usage(trace)
    return _storable_usage(usage) if isinstance(usage, dict) else None


def _storable_usage(usage: dict[str, Any]) -> dict[str, Any] | None:
    """The parts of a reported usage that can be stored; None if there are none."""
    if type(usage.get("cost")) is int and abs(usage["cost"]) < 2**53:
        usage["cost"] = float(usage["cost"])
    known = {name: usage[name] for name, kind in _USAGE.items() if type(usage.get(name)) is kind}
    return {name: value for name, value in known.items() if type(value) is not int or abs(value) < 2**63} or None


def _model_usage(trace: Trace) -> dict[str, Any] | None:
    """The tokens of a trace's model spans, and the model if there is only one; of nested spans, the innermost count."""
    innermost = {span.number: span for span in trace.spans if span.kind == "llm"}
    for span in list(innermost.values()):
        if span.parent is not None and not span.attributes.keys().isdisjoint(_TOKENS):
            innermost.pop(span.parent, None)
    attributes = [span.attributes for span in innermost.values()]
    used: dict[str, Any] = {}
    for name in _TOKENS:
        counts = [each[name] for each in attributes if type(each.get(name)) is int]
        if counts:
            used[name] = sum(counts)
    models = {each["model"] for each in attributes if "model" in each}
    return used | ({"model": models.pop()} if used and len(models) == 1 else {})


def responses_of(batches: Iterator[pa.RecordBatch], items: bool) -> Iterator[Response]:
    """The rows of a run, from batches that have the columns `READ`."""
    for batch in batches:
        values = (batch.column(name).to_pylist() for name in READ[:-1])
        texts = _item_texts(batch.column("responses"))
        for index, replication, fold, status, error, n, digest in zip(*values, strict=True):
            found = next(texts)
            answers = None if found is None else _answers(found, n, items)
            content = _content(status, error, found, n, items)
            yield Response(index, replication, fold, status, error, answers, digest, content)


def contents_of(batches: Iterator[pa.RecordBatch], items: bool) -> Iterator[bytes]:
    """The `content` of each row of a run, from batches that have the columns `READ`."""
    for batch in batches:
        texts = None if items or batch.column("error").null_count < batch.num_rows else _single_texts(batch)
        if texts is None:
            yield from (response.content for response in responses_of(iter([batch]), items))
        else:
            yield from _contents(batch.column("status").cast(TEXT), texts)


def _single_texts(batch: pa.RecordBatch) -> pa.Array | None:
    """The text of each row's one answer, null for no answer; None if a row has several, or an empty list of them."""
    column = batch.column("responses")
    has_answer = np.asarray(column.is_valid())
    items = column.flatten()
    lengths = np.asarray(column.value_lengths().fill_null(1))
    if (lengths != 1).any() or not np.array_equal(batch.column("n_responses").to_numpy(), has_answer):
        return None
    if np.any(items.field(0).to_numpy(zero_copy_only=False)):
        return None
    return items.field(1).take(pa.array(np.cumsum(has_answer) - 1, mask=~has_answer))


def response_of(record: Sequence[Any]) -> Response:
    """The row, without items, of a journal record, as from `responses_of`; its slot is its `_index_`."""
    slot, digest, fold, status, error, values, count = record[:7]
    failure, texts = _failure(error), _texts(values)
    answers = None if texts is None else _answers(texts, count, False)
    content = _content(status, failure, texts, count, False)
    return Response(slot, 0, fold, status, failure, answers, bytes.fromhex(digest), content)


Texts = Sequence[tuple[int, str]]
"""The items of a response: index and canonical text of each."""


def _failure(error: Sequence[Any] | None) -> dict[str, Any] | None:
    """The error of a journal record."""
    return None if error is None else dict(zip(tables.ERROR.names, error, strict=True))


def _texts(values: Sequence[Any] | None) -> Texts | None:
    """The response items of a journal record, with their canonical text."""
    return None if values is None else [(number, identity.canonical_text(value)) for number, value in values]


READ = (INDEX, "replication", "fold", "status", "error", "n_responses", "digest", "responses")


def _item_texts(column: pa.Array) -> Iterator[Texts | None]:
    """The (response index, text) pairs of each row, without an object per struct."""
    items = column.flatten()
    pairs = zip(items.field(0).to_pylist(), items.field(1).to_pylist(), strict=True)
    for length in column.value_lengths().to_pylist():
        yield None if length is None else list(islice(pairs, length))


def _answers(texts: Texts, n: int, items: bool) -> list[Any]:
    return by_response(((number, identity.decode(text)) for number, text in texts), n, items)


def spans_of(store: Store, manifest: Manifest) -> Iterator[pa.RecordBatch]:
    """The spans of a sealed run; empty if the task opened none."""
    return store.read("runs", manifest["id"], "spans") if "spans" in manifest["tables"] else iter(())


class SpanStream:
    """The spans of a run, read in step with its responses."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._rows = (row for batch in batches for row in span_rows(batch))
        self._next = next(self._rows, None)

    def of(self, index: int, replication: int) -> list[list[Any]]:
        found = []
        while self._next is not None and self._next[:2] < (index, replication):
            self._next = next(self._rows, None)
        while self._next is not None and self._next[:2] == (index, replication):
            found.append(self._next[2])
            self._next = next(self._rows, None)
        return found


def span_rows(batch: pa.RecordBatch) -> Iterator[tuple[int, int, list[Any]]]:
    """`_index_`, replication and the journal's form of each row of the table of spans."""
    columns = [batch.column(i) for i in range(batch.num_columns)]
    columns = [c.cast(pa.int64()) if pa.types.is_duration(c.type) else c for c in columns]
    for row in zip(*(c.to_pylist() for c in columns), strict=True):
        index, replication, number, parent, name, kind, start, duration, status, *texts = row
        code = STATUSES.index(status)
        values = [None if text is None else Fragment(text) for text in texts]
        yield index, replication, [number, parent, name, kind, start, duration, code, *values]


def seal(
    store: Store,
    manifest: Manifest,
    batches: Iterable[list[list[Any]]],
    indices: array[int],
    replications: int,
    used: RowUsage | None = None,
) -> None:
    """Write the journal records of a run to tables in the order of their keys, as a stream.

    Args:
        batches: the records, in order.
        used: to what the usage of the rows is added.
    """
    used = used or RowUsage()
    of_items = bool(manifest["spec"]["task"].get("items"))
    counts, inputs = Counter[str](), Inputs()
    state = hashlib.blake2b(digest_size=identity.DIGEST_SIZE)
    all_indices = np.frombuffer(indices, np.int64) if len(indices) else np.empty(0, np.int64)
    with (
        drafted(store, "runs", manifest["id"]) as draft,
        journalled("runs", manifest["id"]),
        calls_in_flight(tables.BATCH_ROWS),  # the records of a batch are no garbage either
    ):
        draft.append("responses", pa.RecordBatch.from_pylist([], tables.RESPONSES))
        for records in batches:
            parts = [*islice(zip(*records, strict=False), N_FIELDS)]
            slots, digests, folds, statuses, errors, values, ns, attempts, started, durations, usages, traces = parts
            places = np.array(slots)
            index, replication = all_indices[places // replications], (places % replications).astype(np.int32)
            failures, texts = [*map(_failure, errors)], [*map(_texts, values)]
            contents = [
                _content(status, failure, items, n, of_items)
                for status, failure, items, n in zip(statuses, failures, texts, ns, strict=True)
            ]
            keys = zip(index.tolist(), replication.tolist(), folds, contents, strict=True)
            state.update(b"".join([row_digest(*key) for key in keys]))
            counts.update(statuses)
            for slot, usage in zip(slots, usages, strict=True):
                if usage:
                    used.add(slot, usage)
            for record in records:
                if len(record) > N_FIELDS:
                    inputs.add(record[0], record[N_FIELDS:])
            seen = [*map(bytes.fromhex, digests)]
            given = [item for items in texts for item in items or ()]
            numbers, answers = [number for number, _ in given], [text for _, text in given]
            answered = _item_column(
                numbers, answers, [len(items or ()) for items in texts], [items is None for items in texts]
            )
            head = [index, replication, folds, seen, statuses, failures, answered, ns]
            draft.append("responses", tables.batch_of([*head, attempts, usages, started, durations], tables.RESPONSES))
            if any(traces):
                of, spans = span_columns(traces)
                draft.append("spans", tables.batch_of([index[of], replication[of], *spans], tables.SPANS))
        if (opened_files := inputs.batch()) is not None:
            draft.append(INPUTS, opened_files)
        facts = {"digest": state.hexdigest(), "counts": dict(counts), "sealed": now()}
        draft.seal(manifest | facts | ({"usage": used.total.to_dict()} if used.total else {}))


def span_columns(traces: Sequence[Sequence[Any] | None]) -> tuple[np.ndarray, list[Any]]:
    """The columns of the table of spans after its key, for the spans of some calls; the inverse of `span_rows`.

    Returns:
        The place of the call of each span, and the columns.
    """
    owners = np.repeat(np.arange(len(traces)), [len(trace or ()) for trace in traces])
    *columns, statuses, inputs, outputs, attributes, events = zip(*chain(*filter(None, traces)), strict=True)
    texts = [
        pa.array([None if value is None else identity.canonical_text(value) for value in cells], pa.string())
        for cells in (inputs, outputs, attributes, events)
    ]
    return owners, [*columns, [STATUSES[status] for status in statuses], *texts]


def seal_recorded(
    store: Store,
    manifest: Manifest,
    keys: tuple[Iterator[int], Iterator[int], Iterator[bytes]],
    recorded: Recorded,
    tally: Tally,
) -> None:
    """Write outputs that were recorded before to the table of a run, as `seal` writes those of calls.

    Args:
        keys: of the calls the examples' `_index_`, the repeats and the digests of what the task sees.
        tally: counts the calls.
    """
    state = hashlib.blake2b(digest_size=identity.DIGEST_SIZE)
    with drafted(store, "runs", manifest["id"]) as draft:
        draft.append("responses", pa.RecordBatch.from_pylist([], tables.RESPONSES))
        rows = zip(*keys, recorded.folds, strict=True)
        for start in range(0, len(recorded.texts), BATCH_ROWS):
            texts = recorded.texts.slice(start, BATCH_ROWS)
            types = [pa.int64(), pa.int32(), pa.binary(16), pa.int32()]
            cells = zip(*islice(rows, len(texts)), strict=True)
            index, replication, digest, fold = map(pa.array, cells, types)
            status = pc.if_else(texts.is_valid(), pa.scalar(COMPLETED, TEXT), pa.scalar(SKIPPED, TEXT))
            answers = pc.if_else(pc.equal(texts, _NULL), None, texts)
            places = join_texts(["[", index.cast(TEXT), ",", replication.cast(TEXT), ",", cell_texts(fold), "]"])
            contents = zip(map(str.encode, places.to_pylist()), _contents(status, answers), strict=True)
            state.update(b"".join(chain.from_iterable(contents)))
            columns = {INDEX: index, "replication": replication, "fold": fold, "digest": digest, "status": status}
            draft.append("responses", recorded_batch(columns, answers))
            tally.skipped += texts.null_count
            tally.called += len(texts) - texts.null_count
        counts = {name: n for name, n in ((COMPLETED, tally.called), (SKIPPED, tally.skipped)) if n}
        draft.seal(manifest | {"digest": state.hexdigest(), "counts": counts, "sealed": now()})


_NULL = "null"


def recorded_batch(columns: Mapping[str, pa.Array], answers: pa.Array) -> pa.RecordBatch:
    """Rows of the table of responses, each with one answer or none; nothing says when the answers were made.

    Args:
        columns: `_index_`, replication, fold, digest and status.
        answers: canonical texts.
    """
    has_answer = np.asarray(answers.is_valid())
    given = answers.drop_null().cast(pa.string())
    made = {
        "responses": _item_column(np.zeros(len(given), np.int64), given, has_answer, ~has_answer),
        "n_responses": pa.array(has_answer.astype(np.int32)),
        "attempts": pc.equal(columns["status"], COMPLETED).cast(pa.int32()),
    }
    made |= {name: values.cast(tables.RESPONSES.field(name).type) for name, values in columns.items()}
    arrays = [made[f.name] if f.name in made else pa.nulls(len(answers), f.type) for f in tables.RESPONSES]
    return pa.RecordBatch.from_arrays(arrays, schema=tables.RESPONSES)


def _contents(status: pa.Array, texts: pa.Array) -> list[bytes]:
    """The `_content` of each call that did not fail, from the canonical text of its answer, or null for none."""
    with_answer = join_texts(['["', status, '",null,[[0,', cell_texts(texts), "]],1,false]"])
    return digests_of(pc.if_else(texts.is_valid(), with_answer, join_texts(['["', status, '",null,null,0,false]'])))


def row_digest(index: int, replication: int, fold: int | None, content: bytes) -> bytes:
    """The part of one row in the digest of its run."""
    return orjson.dumps((index, replication, fold)) + content


def _item_column(numbers: Any, texts: Any, lengths: Any, missing: Any) -> pa.Array:
    """The column of responses, from the number and text of all items, and how many each row has; see `Texts`."""
    struct = pa.StructArray.from_arrays(
        [pa.array(numbers, pa.int64()), pa.array(texts, pa.string())], fields=[*tables.RESPONSE_ITEM]
    )
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    made = pa.ListArray.from_arrays(offsets, struct, mask=pa.array(missing))
    return made.cast(tables.RESPONSES.field("responses").type)


def _content(status: str, error: dict[str, Any] | None, texts: Texts | None, n: int, items: bool) -> bytes:
    """A digest of the outcome of a call, without times and without the wording of an error."""
    kind = (error["type"], error["code"]) if error else None
    return hashlib.blake2b(orjson.dumps([status, kind, texts, n, items]), digest_size=identity.DIGEST_SIZE).digest()
