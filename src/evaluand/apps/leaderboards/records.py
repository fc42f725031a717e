"""The records of recordings and runs as columns, with the scores of feedbacks.

Records are read into columns, so that a hundred thousand of them take few objects; open recordings are read from their
journals, closed ones from their tables, and both give the same columns.
"""

from __future__ import annotations

import itertools
import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.apps.recording.kind import RECORDINGS
from evaluand.apps.recording.stored import Lanes, Recording
from evaluand.comparison.measures import declared_measures
from evaluand.core import identity
from evaluand.core.errors import NotFound
from evaluand.core.key_columns import INDEX, RESPONSE_INDEX
from evaluand.core.row_numbers import digest_halves
from evaluand.evaluation.evaluator import Evaluation
from evaluand.metrics.base.metric import VALUE
from evaluand.run.runner import Run
from evaluand.store.journal import WorkLog
from evaluand.store.store import Store, journalled
from evaluand.store.tables import RESPONSE_STATUSES, SCORE_STATUSES

WAITING: Final = "waiting"
"""The status of a record that a feedback has not judged yet."""

STATUSES: Final = (*SCORE_STATUSES, WAITING)

USAGE: Final = pa.struct(
    [
        *((name, pa.int64()) for name in ("requests", "failed", "input_tokens", "output_tokens")),
        ("cost", pa.float64()),
        ("currency", pa.string()),
    ]
)
"""What a score cost: requests to providers, requests without a reply, and what the replies say they used."""


@dataclass
class FeedbackScores:
    """The scores of a feedback for some records, as columns.

    Attributes:
        call: the place of each record among the calls.
        status: of each, a place in `STATUSES`.
        value: NaN where there is none.
        definition: digests of the definitions of the feedback.
        direction: `higher`, `lower` or None.
        range: the lowest and the highest possible value; None where unknown.
    """

    call: np.ndarray
    status: np.ndarray
    value: np.ndarray
    definition: frozenset[str]
    direction: str | None
    range: tuple[float, float] | None


@dataclass
class RecordColumns:
    """The records of one recording or run, as columns, with the scores of feedbacks.

    Attributes:
        digest: of inputs, in two halves.
        seconds: the latency of each; NaN where unknown.
        tokens: input and output tokens; NaN where unknown.
        task: the digest of the task, where its name does not identify it.
        scores: by feedback.
        usage: by feedback, `USAGE` of each score for which providers were asked.
    """

    app: str
    version: str | None
    digest: np.ndarray
    status: np.ndarray
    seconds: np.ndarray
    tokens: np.ndarray
    cost: np.ndarray
    currencies: frozenset[str]
    task: str | None = None
    scores: dict[str, FeedbackScores] = field(default_factory=dict)
    usage: dict[str, pa.StructArray] = field(default_factory=dict)


def find_recording(artifact: Evaluation | Run) -> str | None:
    """The id of the recording that a run, or the run of an evaluation, is made from; None where it is from none."""
    try:
        run = artifact if isinstance(artifact, Run) else artifact.read_run()
    except NotFound:
        return None
    task = run.manifest["spec"]["task"]
    id: str | None = task["recording"] if task.get("kind") == "app" else None
    return id


def read_run(run: Run, evaluations: Sequence[Evaluation]) -> RecordColumns:
    """The records of a run, with the scores of its evaluations; of several scores of one name, the newest."""
    names = [INDEX, "replication", "digest", "status", "usage", "duration"]
    table = pa.Table.from_batches(batch.select(names) for batch in run.batches(names)).combine_chunks()
    usage = table["usage"].combine_chunks()
    task = run.manifest["spec"]["task"]
    has_cost = pc.and_(usage.is_valid(), usage.field("cost").is_valid())
    currency = pc.fill_null(usage.field("currency").filter(has_cost).cast(pa.string()), "").unique().to_pylist()
    version, recorded = task.get("version"), find_recording(run) is not None
    name = run.name or next((each.name for each in evaluations if each.name), None)
    other = name or run.manifest["provenance"].get("task") or f"run {run.id[:12]}"
    columns = RecordColumns(
        app=str(task.get("name") if recorded else other),
        version=None if version is None else str(version),
        digest=digest_halves(table["digest"].combine_chunks()),
        status=_status_codes(table["status"], RESPONSE_STATUSES),
        seconds=table["duration"].cast(pa.int64()).cast(pa.float64()).fill_null(math.nan).to_numpy() / 1e6,
        tokens=np.stack([_float_field(usage, name) for name in ("input_tokens", "output_tokens")]),
        cost=_float_field(usage, "cost"),
        currencies=frozenset(currency),
        task=None if recorded else identity.digest(task).hex(),
    )
    replications = int(run.manifest["spec"]["replications"])
    keys = table[INDEX].to_numpy() * replications + table["replication"].to_numpy()
    for evaluation in sorted(evaluations, key=lambda each: str(each.manifest["created"])):
        directions = _find_directions(evaluation)
        for name, spec in evaluation.manifest["spec"]["scorers"].items():
            about = _describe_feedback(spec, directions.get(name), evaluation.ranges.get(name, {}))
            columns.usage[name] = _read_usage(evaluation, name)
            for part, scores in _read_scores(evaluation, name, keys, replications):
                columns.scores[part] = replace(scores, **about)
    return columns


def _read_scores(
    evaluation: Evaluation, name: str, keys: np.ndarray, replications: int
) -> Iterator[tuple[str, FeedbackScores]]:
    """The scores of first responses in a scorer's table, separated by target, and by key where values have several."""
    names = [INDEX, "replication", RESPONSE_INDEX, "target", "status", "value", "data"]
    table = pa.Table.from_batches(batch.select(names) for batch in evaluation.batches(name, names))
    first = table[RESPONSE_INDEX].fill_null(0).to_numpy() == 0
    if not first.all():
        table = table.filter(pa.array(first))
    target = table["target"].to_pylist() if table["target"].null_count < table.num_rows else None
    call = np.searchsorted(keys, table[INDEX].to_numpy() * replications + table["replication"].to_numpy())
    status = _status_codes(table["status"], SCORE_STATUSES)
    value = table["value"].fill_null(math.nan).to_numpy()
    scored = status == 0
    if scored.any() and np.isnan(value[scored]).all():
        data: Sequence[Any] = [None if text is None else orjson.loads(text) for text in table["data"].to_pylist()]
        yield from _split_by_key(name, call, status, data)
    elif target is None:
        yield name, _to_scores(call, status, value)
    else:
        for each in dict.fromkeys(target):
            rows = np.array([other == each for other in target], bool)
            yield name if each is None else f"{name} · {each}", _to_scores(call[rows], status[rows], value[rows])


def _read_usage(evaluation: Evaluation, name: str) -> pa.StructArray:
    """What the scores of a table cost; tables of early versions have no column of it."""
    batches = (batch for batch in evaluation.batches(name, ["usage"]) if batch.num_columns)
    texts = (text for batch in batches for text in batch.column(0).drop_null().to_pylist())
    return pa.array([usage for usage in map(orjson.loads, texts) if _is_asked(usage)], USAGE)


def _is_asked(usage: Mapping[str, Any]) -> bool:
    """Whether a request was made; replies from the cache alone cost nothing."""
    return usage.get("requests") != 0


def _split_by_key(
    name: str, call: np.ndarray, status: np.ndarray, data: Sequence[Any]
) -> Iterator[tuple[str, FeedbackScores]]:
    """The values of a feedback that returns dictionaries: each key as a separate feedback."""
    keys = dict.fromkeys(key for each in data if isinstance(each, dict) for key in each)
    for key in keys:
        items = [each.get(key) if isinstance(each, dict) else None for each in data]
        value = np.array([item if type(item) in (int, float) else math.nan for item in items], np.float64)
        yield f"{name} · {key}", _to_scores(call, status, value)
    if not keys:
        yield name, _to_scores(call, status, np.full(len(call), math.nan))


def _to_scores(call: np.ndarray, status: np.ndarray, value: np.ndarray) -> FeedbackScores:
    """Scores as columns; a score that is not a number counts as abstained."""
    missing = (status == 0) & ~np.isfinite(value)
    status = np.where(missing, STATUSES.index("abstained"), status)
    return FeedbackScores(call, status, np.where(status == 0, value, math.nan), frozenset(), None, None)


def _describe_feedback(spec: Any, direction: str | None, ranges: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """The attributes that all scores of a feedback share."""
    ends = ranges.get(VALUE)
    known = None if ends is None else tuple(ends)
    return {"definition": frozenset((identity.digest(spec).hex(),)), "direction": direction, "range": known}


def _find_directions(evaluation: Evaluation) -> dict[str, str | None]:
    """By scorer whether higher or lower is better, where the recording or an aggregation says so."""
    origin = evaluation.manifest["provenance"].get("origin") or {}
    recording = origin.get("recording") or find_recording(evaluation)
    if recording is not None and (directions := _recorded_directions(evaluation.store, recording)):
        return directions
    return {measure.scorer: measure.metric.direction for measure in reversed(declared_measures([evaluation]))}


def _recorded_directions(store: Store, recording: str) -> dict[str, str | None]:
    try:
        flags = store.manifest(RECORDINGS, recording)["provenance"].get("higher_is_better") or {}
    except NotFound:
        return {}
    return {name: None if higher is None else "higher" if higher else "lower" for name, higher in flags.items()}


def read_journal(recording: Recording) -> RecordColumns:
    """The records of an open recording so far."""
    store, manifest = recording.store, recording.manifest
    directions, ranges = _recorded_directions(store, recording.id), manifest["provenance"].get("ranges", {})
    with closing(Lanes.of(store, manifest)) as lanes, journalled(RECORDINGS, recording.id):
        columns, slots = _read_records(lanes.records, manifest["spec"]["app"])
        for name, lane in lanes.judged.items():
            read = _JournalScores.read(lane)
            about = _describe_feedback(manifest["spec"]["feedbacks"][name], directions.get(name), ranges.get(name, {}))
            columns.usage[name] = pa.array(read.usage, USAGE)
            for part, scores in read.parts(name, slots):
                columns.scores[part] = replace(scores, **about)
    return columns


def _read_records(lane: WorkLog, app: Mapping[str, Any]) -> tuple[RecordColumns, np.ndarray]:
    """The records in a journal, and their slots."""
    slot, status, seconds = array("q"), array("b"), array("d")
    digests: list[bytes] = []
    used = {name: array("d") for name in ("input_tokens", "output_tokens", "cost")}
    currencies: set[str] = set()
    for record in lane.read_through():
        slot.append(record[0])
        digests.append(bytes.fromhex(record[1]))
        status.append(RESPONSE_STATUSES.index(record[3]))
        seconds.append(math.nan if record[9] is None else record[9] / 1e6)
        usage = record[10] or {}
        for name, values in used.items():
            values.append(usage.get(name, math.nan))
        if usage.get("cost") is not None:
            currencies.add(usage.get("currency") or "")
    order = np.argsort(slot)
    columns = RecordColumns(
        app=str(app.get("name") or "app"),
        version=None if app.get("version") is None else str(app["version"]),
        digest=digest_halves(pa.array(digests, pa.binary(16)))[order],
        status=np.array(status)[order],
        seconds=np.array(seconds)[order],
        tokens=np.stack([used["input_tokens"], used["output_tokens"]])[:, order],
        cost=np.array(used["cost"])[order],
        currencies=frozenset(currencies),
    )
    return columns, np.array(slot)[order]


@dataclass
class _JournalScores:
    """The scores in a journal, as columns: the slot of each record, and what `FeedbackScores` have."""

    slot: array[int]
    status: array[int]
    value: array[float]
    data: list[Any]
    usage: list[Mapping[str, Any]]

    @classmethod
    def read(cls, lane: WorkLog) -> _JournalScores:
        columns = cls(array("q"), array("b"), array("d"), [], [])
        for slot, _, scores in lane.read_through():
            if scores:
                _, _, status, _, value, _, data, _, _, *usage = scores[0]
                columns.slot.append(slot)
                columns.status.append(_STATUS_CODES[status])
                columns.value.append(math.nan if value is None else value)
                columns.data.append(data)
                columns.usage += filter(_is_asked, usage)
        return columns

    def parts(self, name: str, slots: np.ndarray) -> Iterator[tuple[str, FeedbackScores]]:
        """The scores for records with these slots; records that are not judged yet are waiting."""
        slot = np.array(self.slot, np.int64)
        known = np.isin(slot, slots)
        place = np.searchsorted(slots, slot[known])
        status = np.full(len(slots), STATUSES.index(WAITING), np.int8)
        value = np.full(len(slots), math.nan)
        status[place], value[place] = np.array(self.status)[known], np.array(self.value)[known]
        call, scored = np.arange(len(slots)), status == 0
        if scored.any() and np.isnan(value[scored]).all():
            data: list[Any] = [None] * len(slots)
            for at, each in zip(place.tolist(), itertools.compress(self.data, known.tolist()), strict=True):
                data[at] = each
            yield from _split_by_key(name, call, status, data)
        else:
            yield name, _to_scores(call, status, value)


_STATUS_CODES: Final = {status: code for code, status in enumerate(STATUSES)}


def _status_codes(column: pa.ChunkedArray, words: Sequence[str]) -> np.ndarray:
    return np.asarray(pc.index_in(column, pa.array(words)).to_numpy()).astype(np.int8)


def _float_field(struct: pa.StructArray, name: str) -> np.ndarray:
    column = struct.flatten()[struct.type.get_field_index(name)]  # flatten, unlike field, respects null rows
    return np.asarray(column.cast(pa.float64()).fill_null(math.nan).to_numpy(zero_copy_only=False))
