"""The scores that earlier evaluations have: found by their keys, read, and given again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import chain, count, groupby
from operator import itemgetter
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from orjson import Fragment

from evaluand.core import identity
from evaluand.core.errors import NotFound
from evaluand.core.key_columns import INDEX
from evaluand.engine.policy import Policy
from evaluand.engine.reuse import Inputs, digest_words
from evaluand.evaluation.grading import N_FIELDS, Grader
from evaluand.evaluation.score_tables import SHARED
from evaluand.evaluation.scorer import Scorer
from evaluand.evaluation.units import RowStream, Unit, app_of, name_of, targets_of
from evaluand.run.earlier_work import EarlierWork, Records, Repeats
from evaluand.run.kind import RUNS
from evaluand.run.runner import Run
from evaluand.store import tables
from evaluand.store.journal import WorkLog
from evaluand.store.store import Manifest, Rows, Store
from evaluand.store.tables import FAILED

_N_CELLS: Final = 9  # of a score in the journal, before its usage
_CELLS: Final = (
    *(INDEX, "replication", "digest"),
    *("_response_index_", "target", "status", "reason", "value", "label", "data", "explanation"),
)


def work_of(scorer: Mapping[str, Any]) -> str:
    """What identifies the work of a scorer for any data."""
    return identity.digest({"scorer": scorer}).hex()


def lane_name(number: int) -> str:
    """The lane of a scorer of an evaluation, by its position."""
    return f"scorer{number}"


@dataclass
class EarlierGrades(EarlierWork[Unit]):
    """What a scorer has given: scores of responses, or judgements of several."""

    scorer: Scorer

    def can_repeat(self, manifest: Manifest) -> bool:
        return not self.scorer.is_batch

    def usage_of(self, record: list[Any]) -> list[Any]:
        return [usage for row in record[1] for usage in row[_N_CELLS : _N_CELLS + 1]]

    def compared(self, record: list[Any]) -> Any:
        digest, rows, *_ = record
        return [digest, [row[:_N_CELLS] for row in rows]]


@dataclass
class EarlierScores(EarlierGrades):
    """The scores of one scorer in earlier evaluations.

    Args:
        name: of the scorer.
    """

    name: str

    kind = "evaluations"

    @property
    def is_quick(self) -> bool:
        """Whether rows are graded again rather than looked up, since that costs less and gives the same."""
        return self.scorer.is_quick and self.inputs.observer is None

    @property
    def what(self) -> str:
        return f"scores of {self.name}"

    def as_in(self, manifest: Manifest) -> EarlierScores:
        return replace(self, name=self._lanes(manifest)[0][1])

    @property
    def code(self) -> str:
        return work_of(self.inputs.identity.spec)

    def read(self, id: str, slots: np.ndarray | None = None) -> Iterator[tuple[Records, Inputs]]:
        manifest = self.store.manifest("evaluations", id)
        for number, name in self._lanes(manifest)[: None if slots is None else 1]:
            if "digest" in manifest or self.store.is_sealed("evaluations", id):
                opened = Inputs.stored(self.store, "evaluations", id, f"inputs/{name}")
                yield _sealed_scores(self.store, manifest, name, slots), opened
                continue
            total = self.count_slots(manifest)
            with closing(self.store.lane("evaluations", id, lane_name(number), total)) as lane:
                lane.refresh()
                yield _open_scores(lane), Inputs.written(lane, N_FIELDS)

    def _lanes(self, manifest: Manifest) -> list[tuple[int, str]]:
        """The position and name of each scorer of an evaluation that has this code, or else this name."""
        lanes = [(number, *entry) for number, entry in enumerate(manifest["spec"]["scorers"].items())]
        same = [(number, name) for number, name, spec in lanes if work_of(spec) == self.code]
        return same or [(number, name) for number, name, _ in lanes if name == self.name]

    def keys(self, id: str) -> tuple[np.ndarray, np.ndarray] | None:
        """As said there; rows where the scorer failed are left out."""
        manifest = self.store.manifest("evaluations", id)
        if "digest" not in manifest:
            return None
        columns = [INDEX, "replication", "status", "digest"]
        batches = self.store.read("evaluations", id, f"scores/{self._lanes(manifest)[0][1]}", columns)
        table = pa.Table.from_batches(batches).combine_chunks()
        if not table.num_rows:
            return np.zeros(0, np.uint64), np.zeros(0, np.int64)
        starts = _starts(table)
        failed = pc.equal(table["status"], FAILED).to_numpy()
        is_scored = ~np.logical_or.reduceat(failed, starts)
        digests = digest_words(table["digest"].chunk(0))
        return digests[starts][is_scored, 0], np.flatnonzero(is_scored)

    def spec_in(self, manifest: Manifest) -> Mapping[str, Any] | None:
        spec: Mapping[str, Any] | None = manifest["spec"]["scorers"].get(self.name)
        return spec

    def count_slots(self, manifest: Manifest) -> int:
        return sum(self.store.manifest(RUNS, manifest["provenance"]["run"])["counts"].values())

    @contextmanager
    def repeating(self, id: str, slots: Sequence[int], policy: Policy) -> Iterator[Repeats[Unit]]:
        run = Run(self.store, self.store.manifest("evaluations", id)["provenance"]["run"])
        grader = Grader(self.scorer, policy, targets_of(run), app_of(run), name_of(run))
        stream = RowStream(run, self.scorer)
        self.scorer.prepare()
        try:
            units = (unit for slot in slots for unit in stream.take(slot, slot + 1))
            yield units, grader.call, grader.line
        finally:
            self.scorer.close()


def _starts(keys: pa.Table) -> np.ndarray:
    """Where the scores of the next row of the run begin."""
    index, replication = keys[INDEX].to_numpy(), keys["replication"].to_numpy()
    is_new = (np.diff(index) != 0) | (np.diff(replication) != 0)
    return np.flatnonzero(np.concatenate([[True], is_new]))


def _open_scores(lane: WorkLog) -> Records:
    """The scores of every row that an open evaluation could grade."""
    for slot, digest, scores, *_ in lane.records():
        if all(row[2] != FAILED for row in scores):
            yield slot, bytes.fromhex(digest), [digest, scores]


def _sealed_scores(store: Store, manifest: Manifest, name: str, slots: np.ndarray | None) -> Records:
    places = None if slots is None else _places(store, manifest, name, slots)
    batches = store.read("evaluations", manifest["id"], f"scores/{name}", rows=Rows(at=places))
    rows = groupby(chain.from_iterable(map(_journal_rows, batches)), itemgetter(0))
    for (_, of_row), slot in zip(rows, count() if slots is None else slots.tolist(), strict=False):
        _, digests, scores = zip(*of_row, strict=True)
        if all(score[2] != FAILED for score in scores):
            yield slot, digests[-1], [digests[-1].hex(), [*scores]]


def _journal_rows(batch: pa.RecordBatch) -> Iterator[tuple[tuple[int, int], bytes, list[Any]]]:
    """The rows of a table: the key of the response's row, what the scorer saw, and the score as a journal has it."""
    columns: dict[str, list[Any]] = {field.name: batch.column(field.name).to_pylist() for field in batch.schema}
    for field in filter(tables.is_json, batch.schema):
        columns[field.name] = [None if text is None else Fragment(text) for text in columns[field.name]]
    own = [name for name in columns if name not in SHARED]
    shared = zip(*(columns[name] for name in _CELLS), strict=True)
    usage = columns.get("usage") or [None] * batch.num_rows  # tables of early versions have no such column
    for i, (index, replication, digest, *cells) in enumerate(shared):
        extra = {name: columns[name][i] for name in own} or None
        yield (index, replication), digest, [*cells, extra, *filter(None, usage[i : i + 1])]


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
