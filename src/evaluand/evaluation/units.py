"""Units of grading: the rows of a run with their examples, traces and records, one by one or in batches."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import count, islice, repeat
from typing import Any, Final, NamedTuple

import orjson
import pyarrow as pa

from evaluand.core import identity
from evaluand.core.errors import NotFound
from evaluand.core.key_columns import INDEX
from evaluand.data.dataset import Example, ExampleStream
from evaluand.data.ranges import Ranges
from evaluand.evaluation.sample import RowSample
from evaluand.evaluation.scorer import Scorer
from evaluand.models.usage import Spending
from evaluand.run.responses import READ, Response, SpanStream, responses_of
from evaluand.run.runner import Run
from evaluand.store.journal import WorkLog
from evaluand.trace.record import Record, comparable_rows
from evaluand.trace.traces import Trace


class Traced(NamedTuple):
    """The trace of the call of a row: its spans as text, its start and its duration (µs)."""

    rows: bytes
    started: int | None
    duration: int | None


@dataclass(slots=True)
class Unit:
    """One row of a run to be graded; `rest` holds the rows that follow it in a batch, `traced` is set if it is read.

    `record` is set if several scorers are asked about one response, so that it is read once.
    """

    slot: int
    example: Example
    response: Response
    digest: bytes
    traced: Traced | None = None
    record: Record | None = None
    attempts: int = 0
    pieces: Sequence[Piece] = ()
    spent: Sequence[Spending] = ()  # for each piece, in all attempts
    trace: Trace | None = None  # of a call of a judge
    rest: Sequence[Unit] = ()

    @property
    def size(self) -> int:
        return 1 + len(self.rest)

    def __str__(self) -> str:
        return f"_index_ {self.response.index}, replication {self.response.replication}"


def part_of(value: Any, target: str | None) -> Any:
    """The part of an output, or of a mapping of expected values, for a target; all of it without a target."""
    return value.get(target) if target is not None and isinstance(value, Mapping) else value


def packed(unit: Unit) -> bytes:
    """A row, or a batch of rows, encoded for the process that grades it."""
    return identity.encode([_fields(u) for u in (unit, *unit.rest)])


def _fields(unit: Unit) -> list[Any]:
    return [
        unit.slot,
        unit.digest,
        *([getattr(part, f.name) for f in fields(part)] for part in (unit.example, unit.response)),
        unit.traced,
    ]


def unpacked(packed: bytes) -> Unit:
    first, *rest = (
        Unit(slot, Example(*e), Response(*r), digest, traced and Traced(*traced))
        for slot, digest, e, r, traced in identity.decode(packed)
    )
    first.rest = rest
    return first


class FeedbackInput(dict[str, Any]):
    """The record of a call, the app and the example, for scorers that ask for a `source`."""

    def __deepcopy__(self, memo: Any) -> FeedbackInput:
        """Itself: made for one scorer and one row. Its parts may also occur in other arguments."""
        return self


def seen_of(example: Example) -> dict[str, Any]:
    """The example as a source shows it; missing parts are left out."""
    seen = {"id": example.id, "input": _without_nulls(example.input), "metadata": _without_nulls(example.metadata)}
    seen["attributes"] = _without_nulls(example.attributes)
    optional = {"expected": _without_nulls(example.expected), "weight": example.weight}
    return seen | {name: value for name, value in optional.items() if value is not None}


def _without_nulls(value: Any) -> Any:
    """A part of an example without the columns that are null there."""
    return {k: v for k, v in value.items() if v is not None} if type(value) is dict else value


def source_of(unit: Unit, output: Any, app: Mapping[str, Any], name: str) -> FeedbackInput:
    """The source of a row; its spans are read on first use. See `record_of`."""
    record = unit.record or record_of(unit, output, app, name)
    return FeedbackInput(__record__=record, __app__=app, __example__=seen_of(unit.example))


def record_of(unit: Unit, output: Any, app: Mapping[str, Any], name: str) -> Record:
    """A row, with its trace, and one of its responses as the record of a call; `name` if its span has none."""
    example, replication = unit.example, unit.response.replication
    traced = unit.traced or Traced(b"[]", None, None)
    metadata = {k: v for k, v in _without_nulls(example.metadata).items() if k != "tags"}
    meta = _without_nulls(example.attributes) | metadata
    return Record(
        traced.rows,
        input=example.input,
        output=output,
        name=name,
        error=None if unit.response.error is None else _error_facts(traced, unit.response.error),
        started=traced.started,
        duration=traced.duration,
        record_id=f"{example.id}/{replication}" if replication else example.id,
        app_id=str(app.get("app_id", "")),
        tags=str(example.metadata.get("tags") or ""),
        meta=meta or None,
    )


def _error_facts(traced: Traced, error: Mapping[str, Any]) -> Mapping[str, Any]:
    """The error of a failed call: from its span if recorded there, else from the response."""
    rows = identity.decode(traced.rows)
    events = rows[0][10] if rows and rows[0][1] is None else None
    exceptions = [body for name, _, body in events or () if name == "exception" and isinstance(body, dict)]
    return exceptions[-1] if exceptions else {"type": error["type"], "message": error["message"]}


class Piece(NamedTuple):
    """What a scorer grades in one call: a response, or its part for one target."""

    number: int | None
    target: str | None
    output: Any
    expected: Any


class RowStream:
    """The rows of a run with their examples, in ascending pieces; going back starts another pass.

    Args:
        sample: the rows that are graded; by default all.
    """

    def __init__(self, run: Run, scorer: Scorer, sample: RowSample | None = None) -> None:
        self.run = run
        self._chosen = None if sample is None else sample.chosen
        self._unseen = b"" if sample is None else sample.unseen
        arguments = scorer.arguments
        self.targets = identity.encode(targets_of(run)) if scorer.by_target else b""
        self.app = identity.digest([app_of(run), name_of(run)]) if "source" in arguments else None
        self.sees_times = scorer.sees_times
        self.reads_index = scorer.sees_place
        self.reads_replication = "replication" in arguments
        self.dataset = run.dataset
        self.replications = int(run.manifest["spec"]["replications"])
        self.total = sum(run.counts.values())
        self._examples = ExampleStream(self.dataset)
        self._responses = Ranges(lambda: run.batches(list(READ)))
        self._traced: Iterator[tuple[bytes, Traced]] = iter(())
        self._traced_to = -1

    @property
    def view(self) -> tuple[Any, ...]:
        """What of the rows it reads: streams that read the same give the same units."""
        return self.targets, self.app, self.sees_times, self.reads_index, self.reads_replication

    def take(self, start: int, stop: int) -> Iterator[Unit]:
        """The rows from `start` up to, not including, `stop`."""
        examples = self._examples.take(start // self.replications, -(-stop // self.replications))
        responses = responses_of((part for _, part in self._responses.take(start, stop)), self.run.items)
        traced = self._take_traced(start)
        example = None
        for slot, response in zip(range(start, stop), responses, strict=False):
            if example is None or slot % self.replications == 0:
                example = next(examples, None)
            if example is None:
                return
            spans = next(traced, None)
            is_seen = self._chosen is None or self._chosen[slot]
            digest = self._digest(example, response, spans) if is_seen else self._unseen
            yield Unit(slot, example, response, digest, None if spans is None else spans[1])

    def _take_traced(self, start: int) -> Iterator[tuple[bytes, Traced]]:
        """The traces of the rows from `start` on, if the scorer sees them."""
        if self.app is None:
            return
        if start < self._traced_to or self._traced_to < 0:
            self._traced, self._traced_to = traced_of(self.run), 0
        for traced in islice(self._traced, start - self._traced_to, None):
            start += 1
            self._traced_to = start
            yield traced

    @property
    def has_one_row_per_example(self) -> bool:
        """Whether each example has one row, whose trace and targets the scorer does not see."""
        return self.replications == 1 and self.targets in (b"", b"null") and self.app is None

    def at(self, positions: Sequence[int]) -> Iterator[Unit]:
        """The rows of some examples, in ascending order, if each example has one row."""
        responses = self.run.at(positions)
        for example, response in zip(self.dataset.examples_at(positions), responses, strict=True):
            yield Unit(example.position, example, response, self._digest(example, response, None))

    def digests(self) -> Iterator[bytes]:
        """The digest of everything the scorer can see of each row, in order, if it does not see its trace."""
        places = (b"i%d/%d" % pair for pair in zip(self.dataset.indices, count(), strict=False))
        ends = [b"r%d" % n if self.reads_replication else b"" for n in range(self.replications)]
        contents, targets = self.run.contents(), self.targets
        for example in self.dataset.example_digests():
            place = next(places) if self.reads_index else b""
            for end, content in zip(ends, contents, strict=False):
                seen = example + content + targets + place + end
                yield hashlib.blake2b(seen, digest_size=identity.DIGEST_SIZE).digest()

    def _digest(self, example: Example, response: Response, spans: tuple[bytes, Traced] | None) -> bytes:
        """The digest (16 bytes) of everything the scorer can see of a row."""
        parts = example.digest + response.content + self.targets
        if self.reads_index:
            parts += b"i%d/%d" % (example.index, example.position)
        if self.reads_replication:
            parts += b"r%d" % response.replication
        if spans is not None and self.app is not None:
            parts += b"s" + self.app + spans[0]
            if self.sees_times:
                parts += identity.encode([spans[1], example.id, response.replication])
        return hashlib.blake2b(parts, digest_size=identity.DIGEST_SIZE).digest()


def traced_of(run: Run) -> Iterator[tuple[bytes, Traced]]:
    """For each row of a run, in order: its trace as text without times, and the trace."""
    spans = SpanStream(run.spans())
    for batch in run.batches([INDEX, "replication", "started", "duration"]):
        columns = (batch.column(name) for name in (INDEX, "replication", "started", "duration"))
        integers = (c if pa.types.is_integer(c.type) else c.cast(pa.int64()) for c in columns)
        for index, replication, started, duration in zip(*(c.to_pylist() for c in integers), strict=True):
            rows = spans.of(index, replication)
            yield comparable_rows(rows), Traced(orjson.dumps(rows), started, duration)


def units_of(run: Run) -> Iterator[Unit]:
    """The rows of a run with their examples and traces."""
    for slot, (response, example), (_, spans) in zip(count(), answered_examples(run), traced_of(run), strict=False):
        yield Unit(slot, example, response, response.digest, spans)


def answered_examples(run: Run) -> Iterator[tuple[Response, Example]]:
    """The responses of a run, each with its example."""
    responses, replications = iter(run), int(run.manifest["spec"]["replications"])
    for example in run.dataset.examples(0, sum(run.counts.values()) // replications):
        yield from zip(islice(responses, replications), repeat(example), strict=False)


class Sources:
    """The sources that feedbacks received for the rows of a run, to show what they were asked; none without a run."""

    def __init__(self, run: Run | None) -> None:
        self._run = run
        self._units: Iterator[Unit] = iter(())
        self._unit: Unit | None = None
        self._made: dict[int, FeedbackInput] = {}  # for this unit, by response

    def of(self, index: int, replication: int, number: int | None) -> FeedbackInput | None:
        """The source of a row and the response with this index; None if there is none. Fast in ascending order."""
        unit = self._at((index, replication))
        outputs = (unit.response.responses if unit else None) or ()
        if self._run is None or unit is None or number is None or number >= len(outputs):
            return None
        if number not in self._made:
            self._made[number] = source_of(unit, outputs[number], app_of(self._run), name_of(self._run))
        return self._made[number]

    def row_of(self, index: int, replication: int, number: int) -> tuple[Example, Any, FeedbackInput] | None:
        """Example, response and source of a row; None if there is none. Fast in ascending order."""
        source = self.of(index, replication, number)
        if source is None or self._unit is None:
            return None
        return self._unit.example, (self._unit.response.responses or ())[number], source

    def _at(self, key: tuple[int, int]) -> Unit | None:
        if self._run is None or (self._unit is not None and _row_key(self._unit) == key):
            return self._unit
        if self._unit is None or _row_key(self._unit) > key:
            self._units = units_of(self._run)
        try:
            self._unit, self._made = next(unit for unit in self._units if _row_key(unit) == key), {}
        except (StopIteration, NotFound):  # the store may have lost its dataset
            self._unit = None
        return self._unit


def _row_key(unit: Unit) -> tuple[int, int]:
    return unit.response.index, unit.response.replication


def app_of(run: Run) -> Mapping[str, Any]:
    """Facts about the app that a run called."""
    known: Mapping[str, Any] = run.manifest.get("app") or {}
    return known


_ROWS_AT_ONCE: Final = 256


def batched(units: Iterator[Unit], lane: WorkLog) -> Iterator[Unit]:
    """Groups units: the first of each batch carries the rest."""
    missing = (unit for unit in units if not lane.is_done(unit.slot))
    while chunk := list(islice(missing, _ROWS_AT_ONCE)):
        chunk[0].rest = chunk[1:]
        yield chunk[0]


def name_of(run: Run) -> str:
    """The name of the task of a run."""
    return str(run.manifest["provenance"].get("task", "task"))


def targets_of(run: Run) -> list[str] | None:
    """The names of the targets, if the dataset has several."""
    expected = run.dataset.roles.expected
    return sorted(expected) if isinstance(expected, Mapping) else None
