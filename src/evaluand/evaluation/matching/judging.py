"""What a judge sees and says, call by call: presentations, and judgements as they are in the journal and stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from evaluand.core import identity as ids
from evaluand.core.errors import DataError, plural
from evaluand.data.dataset import Example
from evaluand.evaluation.grading import Grader, Unit
from evaluand.evaluation.matching.comparison_scorers import STRENGTH
from evaluand.evaluation.matching.matches import Matches
from evaluand.evaluation.matching.pairing import Entrants
from evaluand.evaluation.scorer import Score
from evaluand.run.responses import Response, span_rows
from evaluand.run.runner import Run
from evaluand.store.journal import WorkLog
from evaluand.store.tables import COMPLETED, FAILED, MATCHES, SCORED
from evaluand.trace.spans import TaskSpan
from evaluand.trace.traces import Trace

SPANS_TABLE = "spans"


def rows_of(run: Run, entrants: Entrants) -> Iterator[Response]:
    """The responses of a run on the rows of the entrants."""
    every = int(run.manifest["spec"]["replications"])
    return (response for place, response in enumerate(run) if place % every < entrants.replications)


def is_answered(response: Response) -> bool:
    return response.status == COMPLETED and bool(response.responses)


class Presentations:
    """What a judge sees, call by call, in ascending order; going back starts another pass over the runs."""

    def __init__(
        self,
        runs: Sequence[Run],
        entrants: Entrants,
        rows: np.ndarray,
        presented: Sequence[tuple[int, ...]],
        keys: np.ndarray,
    ) -> None:
        self._runs, self._entrants = runs, entrants
        self._rows, self._presented, self._keys = rows, presented, keys
        self._row = -1
        self._stream: Iterator[tuple[int, Example, list[Response | None]]] = iter(())
        self._current: tuple[int, Example, list[Response | None]] | None = None

    def take(self, start: int, stop: int) -> Iterator[Unit]:
        for slot in range(start, min(stop, len(self._presented))):
            row = int(self._rows[slot])
            example, responses = self._at(row)
            systems, key = self._presented[slot], self._keys[slot].tobytes()
            outputs = [responses[system].responses[0] for system in systems]  # type: ignore[index, union-attr]
            replication = row % self._entrants.replications
            shown = Response(example.index, replication, None, COMPLETED, None, [outputs], key, key)
            yield Unit(slot, example, shown, key)

    def _at(self, row: int) -> tuple[Example, list[Response | None]]:
        if self._current is None or self._current[0] > row:
            self._stream = self._all()
            self._current = next(self._stream)
        while self._current[0] < row:
            self._current = next(self._stream)
        return self._current[1], self._current[2]

    def _all(self) -> Iterator[tuple[int, Example, list[Response | None]]]:
        every = self._entrants.replications
        streams = [rows_of(run, self._entrants) for run in self._runs]
        n_examples = self._entrants.n_rows // every
        for position, example in enumerate(self._runs[0].dataset.examples(0, n_examples)):
            for replication in range(every):
                yield position * every + replication, example, [next(stream, None) for stream in streams]


class Judgements:
    """What the judge said, judgement by judgement."""

    def __init__(self) -> None:
        self.value: list[float | None] = []
        self.data: list[Any] = []
        self.opened: list[tuple[int, list[Any]]] = []
        self.spans: list[tuple[int, list[Any]]] = []
        self._cells: dict[str, list[Any]] = {name: [] for name in ("status", "reason", "label", "data", "explanation")}
        self._cells |= {"strength": [], "usage": []}

    def read(self, lane: WorkLog) -> None:
        """Reads the lines of a round, whose judgements follow those of the rounds before."""
        cells = self._cells
        for _, _, scores, *opened in lane.records():
            _, _, status, reason, value, label, data, explanation, columns, *others = scores[0]
            usage, spans = [*others, None, None][:2]
            if opened:
                self.opened.append((len(self.value), opened))
            if spans:
                self.spans.append((len(self.value), spans))
            self.value.append(value)
            self.data.append(data)
            row = {
                "status": status,
                "reason": reason,
                "label": label,
                "data": None if data is None else ids.encode(data).decode(),
                "explanation": explanation,
                "strength": (columns or {}).get(STRENGTH),
                "usage": ids.encode(usage).decode() if usage else None,
            }
            for name, cell in row.items():
                cells[name].append(cell)

    def taken(self, places: pa.Array) -> dict[str, pa.Array]:
        """The cells of the judgements at some places, null where there is none."""
        wanted = places.to_pylist()
        return {
            name: pa.array([None if at is None else column[at] for at in wanted], MATCHES.field(name).type)
            for name, column in self._cells.items()
        }

    def compared(self, judgement: np.ndarray, places: np.ndarray, ab: np.ndarray) -> np.ndarray:
        """The share of the first presented response of pairs whose numbers a judge of all responses gave."""
        shares = []
        for number, (at_a, at_b), a_first in zip(judgement.tolist(), places.tolist(), ab.tolist(), strict=True):
            numbers = self.data[number]
            if not isinstance(numbers, list) or max(at_a, at_b) >= len(numbers):
                shares.append(np.nan)
                continue
            one, other = (numbers[at_a], numbers[at_b]) if a_first else (numbers[at_b], numbers[at_a])
            shares.append(1.0 if one > other else 0.0 if one < other else 0.5)
        return np.array(shares, float)


_N_CELLS = 10  # of a score in the journal, with its usage and before its spans


class ComparisonGrader(Grader):
    """Asks a judge, which must say as much as it was asked; the steps that it traces are part of its line."""

    def grade(self, unit: Unit) -> list[Any]:
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
        if self.scorer.compares_all and score.status == SCORED and n_said != len(piece.output):  # type: ignore[attr-defined]
            raise DataError(
                f"the judge compared {len(piece.output)} responses and gave {plural(n_said, 'number')}; give one each"
            )
        if not self.scorer.compares_all and score.status == SCORED and score.value is None:  # type: ignore[attr-defined]
            raise DataError("the judge gave no value; give first, second or tie, or the probability of the first")
        return super()._scored(piece, score)


def read_open(lane: WorkLog) -> Iterator[tuple[int, bytes, list[Any]]]:
    """(slot, key, record without slot and inputs) of what a judge has said in open matches."""
    for slot, digest, scores, *_ in lane.records():
        if scores[0][2] != FAILED:
            yield slot, bytes.fromhex(digest), [digest, scores]


def read_sealed(matches: Matches, compares_all: bool) -> Iterator[tuple[int, bytes, list[Any]]]:
    """The same of sealed matches, each judgement once; its slot is its number."""
    names = ["judgement", "digest", "status", "reason", "first", "label", "data", "explanation", "strength", "usage"]
    spans = _stored_spans(matches)
    for row in stored_judgements(matches, names):
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


def stored_judgements(matches: Matches, columns: Sequence[str] = ("status", "reason")) -> Iterator[dict[str, Any]]:
    """Of each judgement the first match that it decides."""
    seen: set[int] = set()
    for batch in matches.batches([*dict.fromkeys(("judgement", *columns))]):
        for row in batch.to_pylist():
            if row["judgement"] is not None and row["judgement"] not in seen:
                seen.add(row["judgement"])
                yield row
