"""Predictions that are scored and not stored: artifacts in memory, as cheap as columns are.

What aggregates and compares reads evaluations of a store. Here these are the columns themselves: examples are told
apart by their number and not by a digest of their content, and the outputs of a run are written only for the rows that
are read, such as the few that are shown as won and lost. The numbers are those of the same predictions when stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core import identity
from evaluand.core.key_columns import INDEX, RESPONSE_INDEX
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.evaluation.prediction_table import SCORER, PredictionColumns
from evaluand.evaluation.scorer import Scorer, ranges_of
from evaluand.metrics.base.metric import WEIGHT
from evaluand.predictions.steps import Result
from evaluand.run.kind import RUNS
from evaluand.run.responses import recorded_batch
from evaluand.run.runner import Run
from evaluand.store.store import ALL, MemoryStore, Rows, at_once, drafted
from evaluand.store.tables import SCORE_STATUSES, SHARD_ROWS

_RESPONSES: Final = "responses"


class ColumnStore(MemoryStore):
    """A store of the predictions of systems on one dataset, which are its columns."""

    def __init__(self) -> None:
        super().__init__()
        self._outputs: dict[str, PredictionColumns] = {}  # by the id of a run

    def put(self, dataset: Dataset, scorer: Scorer, systems: Mapping[str, PredictionColumns]) -> list[Result]:
        """The run and the evaluation of each system.

        Args:
            dataset: its `_index_` are the numbers of the rows.
            scorer: of the kind `prediction`.
        """
        saved = dataset.save(self, numbered=True)
        return [self._put_system(saved, scorer, name, columns) for name, columns in systems.items()]

    def _put_system(self, dataset: Dataset, scorer: Scorer, name: str, columns: PredictionColumns) -> Result:
        n, table = len(columns.truth), columns.table()
        task = {"kind": "given", "system": name, "outputs": _digest(table)}
        spec = {"task": task, "seed": 0, "dataset": dataset.id, "examples": n, "replications": 1}
        run = self._seal(RUNS, name, spec, {"completed": n}, {"task": name}, {_RESPONSES: []})
        self._outputs[run] = columns
        table = _with_key(table)
        counts = np.bincount(np.asarray(table["status"].combine_chunks().indices), minlength=len(SCORE_STATUSES))
        by_status = {status: int(count) for status, count in zip(SCORE_STATUSES, counts, strict=True) if count}
        graded = {"run": self.manifest(RUNS, run)["digest"], "dataset": dataset.id}
        evaluation = self._seal(
            EVALUATIONS,
            name,
            graded | {"scorers": {SCORER: scorer.identify().spec}},
            {SCORER: by_status},
            {"run": run, "ranges": ranges_of({SCORER: scorer})},
            {f"scores/{SCORER}": table.to_batches(SHARD_ROWS)},
        )
        return Result(name, Run(self, run), Evaluation(self, evaluation))

    def _seal(
        self,
        kind: str,
        name: str,
        spec: Mapping[str, Any],
        counts: Mapping[str, Any],
        provenance: Mapping[str, Any],
        tables: Mapping[str, list[pa.RecordBatch]],
    ) -> str:
        """Writes an artifact, whose digest is that of its spec, and returns its id."""
        id = identity.artifact_id(kind, spec)
        with drafted(self, kind, id) as draft:
            for table, batches in tables.items():
                for batch in batches:
                    draft.append(table, batch)
            digest = identity.digest(spec).hex()
            manifest = at_once(kind, id, spec, name, digest=digest, counts=counts, provenance=provenance)
            draft.seal(manifest | {"pinned": True, "work": [], "observed": False, "fresh": False})
        return id

    def read(
        self, kind: str, id: str, table: str, columns: list[str] | None = None, rows: Rows = ALL
    ) -> Iterator[pa.RecordBatch]:
        if (kind, table) != (RUNS, _RESPONSES):
            yield from super().read(kind, id, table, columns, rows)
            return
        given = self._outputs[id]
        chosen = rows.at if rows.at is not None else rows.of
        places = np.arange(len(given.truth)) if chosen is None else np.asarray(chosen, np.int64)
        for start in range(0, max(len(places), 1), SHARD_ROWS):
            batch = _outputs_of(given, places[start : start + SHARD_ROWS])
            yield batch if columns is None else batch.select(columns)


def _digest(table: pa.Table) -> str:
    """A digest of the columns, which differs for other predictions."""
    state = hashlib.blake2b(digest_size=identity.DIGEST_SIZE)
    for batch in table.to_batches(SHARD_ROWS):
        state.update(batch.serialize())
    return state.hexdigest()


def _with_key(table: pa.Table) -> pa.Table:
    """A table of scores with the columns of the key that the table of an evaluation has."""
    n = table.num_rows
    key = {
        "replication": pa.array(np.zeros(n, np.int32)),
        RESPONSE_INDEX: pa.array(np.zeros(n, np.int64)),
        "target": pa.nulls(n, pa.string()),
        "reason": pa.nulls(n, pa.string()),
    }
    for name, column in key.items():
        table = table.append_column(name, column)
    return table.drop_columns([WEIGHT]) if WEIGHT in table.column_names else table


def _outputs_of(given: PredictionColumns, rows: np.ndarray) -> pa.RecordBatch:
    """Rows of the table of responses."""
    texts, n = given.take(pa.array(rows)).output_texts(), len(rows)
    columns = {INDEX: pa.array(rows), "replication": pa.array(np.zeros(n, np.int32)), "fold": pa.nulls(n)}
    columns |= {"digest": pa.repeat(bytes(identity.DIGEST_SIZE), n), "status": pa.repeat("completed", n)}
    return recorded_batch(columns, pc.if_else(pc.equal(texts, "null"), None, texts))
