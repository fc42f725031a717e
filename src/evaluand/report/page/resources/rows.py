"""Rows: the calls of a run with their scores, as columns of numbers and as pieces with all texts; and text search."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.aggregation.aggregator import find_summary
from evaluand.aggregation.kind import AGGREGATIONS
from evaluand.core.errors import EvaluandError, NotFound
from evaluand.core.key_columns import INDEX
from evaluand.core.system import release_memory
from evaluand.data.kind import DATASETS
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.report.commands import format_command
from evaluand.report.facts.base import Facts
from evaluand.report.facts.report import Part, scores_facts
from evaluand.report.html.examples import Examples
from evaluand.report.html.packing import pack_columns, pack_digests
from evaluand.report.page.resources.base import Source, read_number, resource
from evaluand.report.row_columns import (
    Attributes,
    RowColumns,
    RowKeys,
    has_many,
    iterate_columns,
    read_attributes,
)
from evaluand.report.text import SHORT_ID
from evaluand.run.kind import RUNS
from evaluand.run.runner import Run
from evaluand.store.tables import is_json
from evaluand.store.window import WindowedStore

NO_EVALUATION: Final = "-"


class Rows:
    """The rows of a run, graded or not.

    Attributes:
        part: the run and its evaluation.
        columns: of all rows.
        shown: what they are shown as.
    """

    def __init__(self, part: Part, attributes: Attributes) -> None:
        self.part = part
        self.scores, self.measures = read_scales(part)
        self.shown = Examples(part, self.scores, None, self.measures)
        self.columns: RowColumns = self.shown.columns(attributes)

    @cached_property
    def keys(self) -> RowKeys:
        return RowKeys(self.columns.index, self.columns.replication)

    def read(self, places: Sequence[int]) -> list[Facts]:
        """The rows at some places, in this order, with their texts."""
        if not len(places):
            return []
        keys = [(int(self.columns.index[place]), int(self.columns.replication[place])) for place in places]
        rows = read_window(self.part, self.scores, self.measures, [index for index, _ in keys])
        found = {(int(row["index"]), row["replication"]): row for row in rows}
        return [found[key] for key in keys]


def read_scales(part: Part) -> tuple[list[Facts], Sequence[Any]]:
    """What the values of the scorers are, as `scores_facts` returns it, and the measures that summarised them."""
    return scores_facts([part]), _read_measures(part)


def read_window(
    part: Part, scores: Sequence[Facts], measures: Sequence[Any], indices: Iterable[int], **options: Any
) -> Iterator[Facts]:
    """The rows of some examples with their texts, by reading little more than them.

    Args:
        scores: see `read_scales`, as `measures`.
        indices: the `_index_` of the examples.
        options: of `Examples`: what is shown of spans.
    """
    shown = Examples(_window(part, indices), scores, None, measures, **options)
    return (row | {"index": str(row["index"])} for row in shown)


def _window(part: Part, indices: Iterable[int]) -> Part:
    """A part whose store has the rows of some examples alone.

    Args:
        indices: the `_index_` of the examples.
    """
    store: Any = WindowedStore(part.run.store, indices)
    graded = None if part.evaluation is None else Evaluation(store, part.evaluation.id)
    return Part(part.task, Run(store, part.run.id), graded)


def _read_measures(part: Part) -> Sequence[Any]:
    summary = None if part.evaluation is None else find_summary(part.evaluation)
    return () if summary is None else summary.measures


def find_rows(source: Source, run: str, evaluation: str) -> Rows:
    """The rows of a run, or of an evaluation of it.

    Args:
        evaluation: its id, or `-`.
    """
    key = run, evaluation, source.list_ids(AGGREGATIONS)  # they say which of several answers decides
    return source.columns.get(key, lambda: _read_rows_of(source, find_part(source, run, evaluation)))


def _read_rows_of(source: Source, part: Part) -> Rows:
    dataset = part.run.manifest["spec"]["dataset"]
    attributes = source.attributes.get(dataset, lambda: read_attributes(part.run))
    rows = Rows(part, attributes)
    release_memory()
    return rows


def find_part(source: Source, run: str, evaluation: str) -> Part:
    """A run and an evaluation of it.

    Args:
        evaluation: its id, or `-`.

    Raises:
        NotFound: the store does not have both, finished.
    """
    graded = None if evaluation == NO_EVALUATION else evaluation
    if not source.store.is_sealed(RUNS, run):
        raise NotFound("this run is not finished, or not in this store")
    if graded is not None and not source.store.is_sealed(EVALUATIONS, graded):
        raise NotFound("this evaluation is not finished, or not in this store")
    found = Run(source.store, run)
    return Part(found.name or run, found, None if graded is None else Evaluation(source.store, graded))


def list_parts(source: Source) -> Iterator[Mapping[str, str]]:
    """All runs and evaluations, each as the parameters of `find_rows`."""
    runs = [entry["id"] for entry in source.finished(RUNS)]
    yield from ({"run": run, "evaluation": NO_EVALUATION} for run in runs)
    for entry in source.finished(EVALUATIONS):
        run = source.store.manifest(EVALUATIONS, entry["id"])["provenance"]["run"]
        if run in runs:
            yield {"run": run, "evaluation": entry["id"]}


@resource("columns/{run}/{evaluation}", list_parts)
def read_columns(source: Source, run: str, evaluation: str) -> bytes:
    """All rows as packed columns."""
    rows = find_rows(source, run, evaluation)
    return pack_columns(_describe(rows, source), iterate_columns(rows.columns))


def _describe(rows: Rows, source: Source) -> Facts:
    """The head of the columns."""
    command = format_command("show", rows.part.run.id[:SHORT_ID], source.root)
    return rows.shown.describe(rows.columns) | {"piece": source.piece, "command": command}


def _list_words(source: Source) -> Iterator[Mapping[str, str]]:
    for part, rows in _iterate_rows(source):
        for number, words in enumerate(rows.columns.attributes.values()):
            if has_many(words):
                yield {**part, "number": str(number)}


@resource("words/{run}/{evaluation}/{number}", _list_words)
def read_words(source: Source, run: str, evaluation: str, number: str) -> list[str]:
    """All values of an attribute, which the columns name by their places."""
    attributes = [*find_rows(source, run, evaluation).columns.attributes.values()]
    place = read_number(number, "attribute")
    if place >= len(attributes) or (known := attributes[place].known) is None:
        raise NotFound("there is no such attribute, or it has too many values")
    return known


def _list_pieces(source: Source) -> Iterator[Mapping[str, str]]:
    for part, rows in _iterate_rows(source):
        for piece in range(-(-len(rows.columns) // source.piece)):
            yield {**part, "piece": str(piece)}


def _iterate_rows(source: Source) -> Iterator[tuple[Mapping[str, str], Rows]]:
    for part in list_parts(source):
        with suppress(EvaluandError):  # the columns say why
            yield part, find_rows(source, **part)


def _list_datasets(source: Source) -> Iterator[Mapping[str, str]]:
    ids = (entry["id"] for entry in source.finished(RUNS))
    datasets = (source.store.manifest(RUNS, id)["spec"]["dataset"] for id in ids)
    yield from ({"dataset": dataset} for dataset in dict.fromkeys(datasets))


@resource("digests/{dataset}", _list_datasets)
def read_dataset_digests(source: Source, dataset: str) -> bytes:
    """By what rows are paired with those of other datasets, as packed columns."""
    return pack_digests(source.store, dataset)


@resource("rows/{run}/{evaluation}/{piece}", _list_pieces)
def read_piece(source: Source, run: str, evaluation: str, piece: str) -> list[Facts]:
    """A piece of the rows, with their texts."""
    rows, places = _find_piece(source, run, evaluation, piece)
    return rows.read(places)


def _find_piece(source: Source, run: str, evaluation: str, piece: str) -> tuple[Rows, range]:
    rows = find_rows(source, run, evaluation)
    start = read_number(piece) * source.piece
    if start and start >= len(rows.columns):
        raise NotFound("there is no such piece")
    return rows, range(start, min(start + source.piece, len(rows.columns)))


@resource("at/{run}/{evaluation}")
def read_rows(source: Source, run: str, evaluation: str, query: Mapping[str, str]) -> list[Facts]:
    """The rows at some places, with their texts; at most as many as a piece has."""
    rows = find_rows(source, run, evaluation)
    places = [read_number(part) for part in query.get("places", "").split(",")[: source.piece]]
    if any(place >= len(rows.columns) for place in places):
        raise NotFound(f"this run has {len(rows.columns)} rows")
    return rows.read(places)


@resource("find/{run}/{evaluation}")
def find_text(source: Source, run: str, evaluation: str, query: Mapping[str, str]) -> list[int]:
    """The positions of the rows that hold a text, whatever its case: in the example, an answer, an error, or a reason,
    explanation or label of a score.
    """
    text = query.get("q", "")
    if not text:
        raise NotFound("no text to search for")
    rows = find_rows(source, run, evaluation)
    ends = np.zeros(len(rows.columns) + 1, np.int64)  # of ranges of rows that hold it
    for batch in _iterate_searched(rows.part):
        first, last = _find_places(rows, batch)
        held = _holds(batch, text)
        np.add.at(ends, first[held], 1)
        np.add.at(ends, last[held], -1)
    return np.flatnonzero(np.cumsum(ends[:-1])).tolist()


@resource("texts/{run}/{evaluation}/{piece}", _list_pieces)
def read_texts(source: Source, run: str, evaluation: str, piece: str) -> list[list[str]]:
    """What `find_text` searches in each row of a piece, for pages without a server."""
    rows, places = _find_piece(source, run, evaluation, piece)
    found: list[dict[str, None]] = [{} for _ in places]
    for batch in _iterate_searched(_window(rows.part, rows.columns.index[places.start : places.stop].tolist())):
        first, last = (ends.clip(places.start, places.stop) for ends in _find_places(rows, batch))
        for texts, owner in _iterate_texts(batch):
            for text, start, stop in zip(texts.to_pylist(), first[owner].tolist(), last[owner].tolist(), strict=True):
                for place in range(start, stop) if text else ():
                    found[place - places.start][text] = None
    return [[*texts] for texts in found]


def _iterate_searched(part: Part) -> Iterator[pa.RecordBatch]:
    """What is searched, each row with its key: the index alone if it belongs to an example."""
    yield from part.run.batches([*_KEY, "error", "responses"])
    with suppress(NotFound):  # the store lacks the dataset
        yield from part.run.store.read(DATASETS, part.run.manifest["spec"]["dataset"], "examples")
    if part.evaluation is not None:
        for scorer in part.evaluation.scorers:
            for batch in part.evaluation.batches(scorer, [*_KEY, *_SAID]):
                yield batch.select([*_KEY, *_SAID])


_KEY: Final = (INDEX, "replication")
_SAID: Final = ("reason", "explanation", "label")


def _find_places(rows: Rows, batch: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
    """For each row of a batch, the first of the rows that it belongs to, and the end of them."""
    index, known = batch.column(INDEX).to_numpy(), rows.columns.index
    if "replication" not in batch.schema.names:
        return np.searchsorted(known, index), np.searchsorted(known, index, "right")
    places = rows.keys.places(index, batch.column("replication").to_numpy())
    return places.clip(0), places + 1


def _holds(batch: pa.RecordBatch, text: str) -> np.ndarray:
    """Whether any text of a row holds another text."""
    found = np.zeros(batch.num_rows, np.bool_)
    for texts, row in _iterate_texts(batch):
        held = pc.fill_null(pc.match_substring(texts, text, ignore_case=True), False)
        found[row[held.to_numpy(zero_copy_only=False)]] = True
    return found


def _iterate_texts(batch: pa.RecordBatch) -> Iterator[tuple[pa.Array, np.ndarray]]:
    """The texts in the columns and in their lists and structs, each with the number of its row."""
    for column, field in zip(batch.columns, batch.schema, strict=True):
        for texts, row in _texts_within(column, field, np.arange(batch.num_rows)):
            if len(texts):
                yield texts, row


def _texts_within(column: pa.Array, field: pa.Field, row: np.ndarray) -> Iterator[tuple[pa.Array, np.ndarray]]:
    kind = field.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        yield _without_escapes(column) if is_json(field) else _without_files(column), row
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _texts_within(column.flatten(), kind.value_field, row[pc.list_parent_indices(column).to_numpy()])
    elif pa.types.is_struct(kind):
        for child, of in zip(column.flatten(), kind, strict=True):
            yield from _texts_within(child, of, row)


def _without_escapes(texts: pa.Array) -> pa.Array:
    """JSON with the characters that it escapes, such as quotes in its texts."""
    if not pc.any(pc.match_substring(texts, "\\")).as_py():
        return texts
    return pa.array((text and _ESCAPES.sub(_read_escapes, text) for text in texts.to_pylist()), pa.string())


_ESCAPES: Final = re.compile(r"(?:\\u[0-9a-fA-F]{4})+|\\[^u]")


def _read_escapes(found: re.Match[str]) -> str:
    return str(orjson.loads(f'"{found[0]}"'))


def _without_files(texts: pa.Array) -> pa.Array:
    """Texts without pictures and other files, which nobody searches."""
    return pc.if_else(pc.starts_with(texts, "data:"), pa.scalar(None, texts.type), texts)
