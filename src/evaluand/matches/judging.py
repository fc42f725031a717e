"""What a judge sees and says, call by call: presentations, and judgements as they are in the journal and stored.

A `Matcher` and matches that were judged elsewhere write the same table, and seal it alike.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core import identity as ids
from evaluand.core.errors import DataError, plural
from evaluand.core.key_columns import INDEX
from evaluand.data.dataset import ExampleStream
from evaluand.engine.outcome import Failure
from evaluand.evaluation.comparison_scorers import STRENGTH, ComparisonScorer
from evaluand.evaluation.grading import Grader
from evaluand.evaluation.scorer import Score
from evaluand.evaluation.units import Unit
from evaluand.matches.matches import JUDGE_FAILED, TABLE, MatchDigest, Matches
from evaluand.matches.pairing import ANSWERED, Entrants, unjudged_status
from evaluand.matches.response_style import ResponseStyle, response_styles
from evaluand.models.usage_total import UsageTotal
from evaluand.run.responses import Response, span_rows
from evaluand.run.runner import Run
from evaluand.store.journal import WorkLog
from evaluand.store.store import Draft, Manifest, Store, drafted, now
from evaluand.store.tables import BATCH_ROWS, COMPLETED, FAILED, MATCHES, SCORED, STYLE, TableWriter
from evaluand.trace.spans import TaskSpan
from evaluand.trace.traces import Trace

SPANS_TABLE = "spans"


def read_rows(run: Run, entrants: Entrants) -> Iterator[Response]:
    """The responses of a run on the rows of the entrants."""
    every = int(run.manifest["spec"]["replications"])
    return (response for place, response in enumerate(run) if place % every < entrants.replications)


def _read_styles(run: Run, entrants: Entrants) -> np.ndarray:
    """The style of a run's response on each row of the entrants: rows × counts, zeros where it has none."""
    responses = islice(read_rows(run, entrants), entrants.n_rows)
    answers = {place: (each.responses or [None])[0] for place, each in enumerate(responses) if is_answered(each)}
    styles = np.zeros((entrants.n_rows, len(ResponseStyle._fields)), np.int64)
    styles[[*answers]] = response_styles(answers.values())
    return styles


def is_answered(response: Response) -> bool:
    return response.status == COMPLETED and bool(response.responses)


class Presentations:
    """What a judge sees, call by call, in ascending order of rows; only the responses that are shown are read."""

    def __init__(
        self, runs: Sequence[Run], entrants: Entrants, rows: np.ndarray, presented: np.ndarray, keys: np.ndarray
    ) -> None:
        self._runs, self._every, self._examples = runs, entrants.replications, ExampleStream(runs[0].dataset)
        self._rows, self._presented, self._keys = rows, presented, keys

    def take(self, start: int, stop: int) -> Iterator[Unit]:
        every, rows, presented = self._every, self._rows[start:stop], self._presented[start:stop]
        if not len(rows):
            return
        positions = {*(rows // every).tolist()}
        examples = {
            example.position: example
            for example in self._examples.take(min(positions), max(positions) + 1)
            if example.position in positions
        }
        outputs: list[dict[int, Any]] = []
        for number, run in enumerate(self._runs):
            own = np.unique(rows[(presented == number).any(axis=1)])
            in_run = own // every * int(run.manifest["spec"]["replications"]) + own % every
            responses = (response.responses[0] for response in run.at(in_run.tolist()) if response.responses)
            outputs.append(dict(zip(own.tolist(), responses, strict=True)))
        for slot, (row, systems) in enumerate(zip(rows.tolist(), presented.tolist(), strict=True), start):
            shown = [outputs[system][row] for system in systems if system >= 0]
            example, key = examples[row // every], self._keys[slot].tobytes()
            yield Unit(
                slot, example, Response(example.index, row % every, None, COMPLETED, None, [shown], key, key), key
            )


class Judgements:
    """What the judge said, judgement by judgement, as columns.

    Args:
        compares_all: whether a judgement is a number for each of several responses.
    """

    def __init__(self, compares_all: bool) -> None:
        self.values = np.zeros(0)
        self.numbers: list[Any] = []
        self.opened: list[tuple[int, list[Any]]] = []
        self.spans: list[tuple[int, list[Any]]] = []
        self.used, self.used_now = UsageTotal(), UsageTotal()  # by all judgements; by those made now
        self._compares_all = compares_all
        self._cells, self._batches = TableWriter(_CELLS), list[pa.RecordBatch]()

    def read(self, lane: WorkLog, keys: np.ndarray, earlier: Container[int] = ()) -> None:
        """Reads the lines of a round, whose judgements follow those of the rounds before.

        Args:
            keys: of its presentations.
            earlier: the slots of judgements that were reused or made before.

        Raises:
            ValueError: a line is not of the presentation that its slot has.
        """
        expected, values, number = keys.tobytes().hex(), list[float | None](), len(self.values)
        for place, (_, key, scores, *opened) in enumerate(lane.records()):
            _, _, status, reason, value, label, data, explanation, columns, *others = scores[0]
            if key != expected[place * _KEY : (place + 1) * _KEY]:
                raise ValueError(f"judgement {place} is of another comparison")
            usage, spans = [*others, None, None][:2] if others else (None, None)
            self.used.add(usage)
            if place not in earlier:
                self.used_now.add(usage)
            if opened:
                self.opened.append((number + place, opened))
            if spans:
                self.spans.append((number + place, spans))
            values.append(value)
            if self._compares_all:
                self.numbers.append(data)
            strength = columns.get(STRENGTH) if columns else None
            data, usage = (None if each is None else ids.encode(each).decode() for each in (data, usage or None))
            self._cells.add((status, reason, label, data, explanation, strength, usage))
            if self._cells.is_full:
                self._cells.flush(self, "")
        self.values = np.concatenate([self.values, np.array(values, float)])

    def append(self, table: str, batch: pa.RecordBatch) -> None:
        """Keeps a batch of cells, as a draft does."""
        self._batches.append(batch)

    def take(self, judgements: np.ndarray) -> dict[str, pa.Array]:
        """The cells of some judgements by the name of their column; null for -1."""
        self._cells.flush(self, "")
        batches = [*self._batches, pa.RecordBatch.from_pylist([], _CELLS)]  # the last one for -1
        chunk = judgements // BATCH_ROWS
        order = np.argsort(chunk, kind="stable")
        parts = np.split(judgements[order], np.flatnonzero(np.diff(chunk[order])) + 1)  # taken at once, all are copied
        taken = [batches[at[0] // BATCH_ROWS].take(pa.array(at % BATCH_ROWS, mask=at < 0)) for at in parts]
        cells = pa.Table.from_batches(taken, _CELLS).combine_chunks().take(pa.array(np.argsort(order)))
        return {name: cells.column(name).combine_chunks() for name in cells.column_names}

    def compare(self, judgement: np.ndarray, places: np.ndarray, ab: np.ndarray) -> np.ndarray:
        """The share of the first presented response of pairs whose numbers a judge of all responses gave."""
        shares = []
        for number, (at_a, at_b), a_first in zip(judgement.tolist(), places.tolist(), ab.tolist(), strict=True):
            numbers = self.numbers[number]
            if not isinstance(numbers, list) or max(at_a, at_b) >= len(numbers):
                shares.append(np.nan)
                continue
            one, other = (numbers[at_a], numbers[at_b]) if a_first else (numbers[at_b], numbers[at_a])
            shares.append(1.0 if one > other else 0.0 if one < other else 0.5)
        return np.array(shares, float)


_CELLS: Final = pa.schema(
    MATCHES.field(name).with_nullable(True)
    for name in ("status", "reason", "label", "data", "explanation", "strength", "usage")
)
_KEY: Final = 2 * ids.DIGEST_SIZE  # hexadecimal digits
_N_CELLS = 10  # of a score in the journal, with its usage and before its spans


class ComparisonGrader(Grader):
    """Asks a judge, which must say as much as it was asked; the steps that it traces are part of its line."""

    role = "judge"
    scorer: ComparisonScorer

    def grade(self, unit: Unit) -> list[Any]:
        if self.scorer.cheap:  # calls nothing whose steps could be traced
            return super().grade(unit)
        with self._traced(unit):
            return super().grade(unit)

    async def grade_async(self, unit: Unit) -> list[Any]:
        with self._traced(unit):
            return await super().grade_async(unit)

    def _traced(self, unit: Unit) -> TaskSpan:
        unit.trace = Trace.start("judge", None)
        return unit.trace.root

    def _rows(self, unit: Unit, results: Iterator[Any] | None, error: BaseException | None) -> list[list[Any]]:
        rows = super()._rows(unit, results, error)
        if unit.trace is not None and (spans := unit.trace.rows()):
            row = rows[0]
            row += [None] * (_N_CELLS - len(row)) + [spans]
        return rows

    def _scored(self, piece: Any, score: Score) -> list[Any]:
        n_said = len(score.data) if isinstance(score.data, list) else 0
        if self.scorer.compares_all and score.status == SCORED and n_said != len(piece.output):
            raise DataError(
                f"the judge compared {len(piece.output)} responses and gave {plural(n_said, 'number')}; give one each"
            )
        if not self.scorer.compares_all and score.status == SCORED and score.value is None:
            raise DataError("the judge gave no value; give first, second or tie, or the probability of the first")
        return super()._scored(piece, score)


def failure_in_judgement(line: bytes) -> Failure:
    """The error in the journal line of a judgement that failed."""
    _, _, [score, *_], *_ = orjson.loads(line)
    return Failure(str(score[3]).removeprefix(JUDGE_FAILED))


def read_open(lane: WorkLog) -> Iterator[tuple[int, bytes, list[Any]]]:
    """(slot, key, record without slot and inputs) of what a judge has said in open matches."""
    for slot, digest, scores, *_ in lane.records():
        if scores[0][2] != FAILED:
            yield slot, bytes.fromhex(digest), [digest, scores]


def read_sealed(matches: Matches, compares_all: bool) -> Iterator[tuple[int, bytes, list[Any]]]:
    """The same of sealed matches, each judgement once; its slot is its number."""
    names = ["judgement", "digest", "status", "reason", "first", "label", "data", "explanation", "strength", "usage"]
    spans = _stored_spans(matches)
    rows = (row for batch in matches.judgements(names) for row in batch.to_pylist())
    for row in rows:
        if row["status"] != FAILED:
            number, value = row["judgement"], None if compares_all else row["first"]
            data, usage = (None if row[name] is None else orjson.Fragment(row[name]) for name in ("data", "usage"))
            score = [0, None, row["status"], row["reason"], value, row["label"], data, row["explanation"]]
            others = [usage, spans[number]] if number in spans else [] if usage is None else [usage]
            yield number, row["digest"], [row["digest"].hex(), [[*score, {STRENGTH: row["strength"]}, *others]]]


def _stored_spans(matches: Matches) -> dict[int, list[list[Any]]]:
    """The steps of the calls of a judge, by judgement, as in the journal."""
    found: dict[int, list[list[Any]]] = {}
    if SPANS_TABLE in matches.manifest["tables"]:
        for batch in matches.store.read("matches", matches.id, SPANS_TABLE):
            with_replication = batch.add_column(1, "replication", pa.array([0] * batch.num_rows))
            for number, _, span in span_rows(with_replication):
                found.setdefault(number, []).append(span)
    return found


Columns = Mapping[str, np.ndarray]
"""`row`, `a`, `b`, `equal`, `outcome`, `first` and `round` of matches, as in the table or a `Round`; `ab`: whether a's
response is presented first; `judgement`: the number of the judgement that decides each, -1 for none."""


def match_batches(
    entrants: Entrants, runs: Sequence[Run], columns: Columns, said: Callable[[np.ndarray], Mapping[str, Any]]
) -> Iterator[pa.RecordBatch]:
    """The rows of the table.

    Args:
        said: judgements → the further cells that they have, by the name of their column; null for -1.
    """
    styles = np.stack([_read_styles(run, entrants) for run in runs])
    for start in range(0, len(columns["row"]), BATCH_ROWS):
        part = {name: column[start : start + BATCH_ROWS] for name, column in columns.items()}
        cells = _cells(entrants, styles, part, said(part["judgement"]))
        empty = pa.nulls(len(part["row"]))
        values = ((cells.get(field.name, empty), field.type) for field in MATCHES)
        arrays = [cell.cast(kind) if isinstance(cell, pa.Array) else pa.array(cell, kind) for cell, kind in values]
        yield pa.RecordBatch.from_arrays(arrays, schema=MATCHES)


def seal_matches(
    store: Store,
    manifest: Manifest,
    batches: Iterable[pa.RecordBatch],
    write_others: Callable[[Draft], Mapping[str, Any]] = lambda _: {},
) -> None:
    """Stores open matches with the digest of their table and its rows by status.

    Args:
        write_others: writes further tables, and returns further entries of the manifest.
    """
    state = MatchDigest()
    with drafted(store, "matches", manifest["id"]) as draft:
        draft.append(TABLE, pa.RecordBatch.from_pylist([], MATCHES))
        for batch in batches:
            state.add(batch)
            draft.append(TABLE, batch)
        sealed = {"digest": state.digest, "counts": state.counts, "sealed": now()}
        draft.seal({**manifest, **sealed, **write_others(draft)})


def _cells(entrants: Entrants, styles: np.ndarray, columns: Columns, said: Mapping[str, Any]) -> dict[str, Any]:
    row, decided, every = columns["row"], columns["judgement"], entrants.replications
    is_missing = [entrants.states[row, columns[side]] != ANSWERED for side in "ab"]
    is_asked = pa.array(decided >= 0)
    missing = np.select([is_missing[0] & is_missing[1], *is_missing], ["both", "a", "b"], "")
    status, reason = _explain_unjudged(entrants, columns)
    return {
        **said,
        INDEX: entrants.index[row // every],
        "replication": row % every,
        "order": np.where(columns["ab"], "ab", "ba"),
        "judgement": pa.array(decided, mask=decided < 0),
        "status": pc.if_else(is_asked, said["status"], status),
        "reason": pc.if_else(is_asked, said["reason"], reason),
        "missing": pa.array(missing, mask=(decided >= 0) | (missing == "")),
        **{name: pa.array(columns[name], from_pandas=True) for name in ("outcome", "first")},
        **{
            f"style_{side}": pa.StructArray.from_arrays(
                [*map(pa.array, styles[columns[side], row].T)], fields=[*STYLE], mask=pa.array(absent)
            )
            for side, absent in zip("ab", is_missing, strict=True)
        },
        **{name: columns[name] for name in ("a", "b", "round", "equal")},
    }


def _explain_unjudged(entrants: Entrants, columns: Columns) -> tuple[pa.Array, pa.Array]:
    """Status and reason of each match, if no judgement decides it."""
    a, b, labels = columns["a"], columns["b"], entrants.labels
    states = [entrants.states[columns["row"], each] for each in (a, b)]
    kinds = np.stack([*states, a, b, columns["equal"]])
    kinds[2:4, (states[0] == ANSWERED) & (states[1] == ANSWERED)] = 0
    kinds, which = np.unique(kinds, axis=1, return_inverse=True)
    found = [unjudged_status({labels[i]: s, labels[j]: t}, bool(equal)) for s, t, i, j, equal in kinds.T.tolist()]
    status, reasons = (pa.array(each, pa.string()) for each in zip(*found, strict=True))
    places = pa.array(which.ravel())
    return status.take(places), reasons.take(places)
