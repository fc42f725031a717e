"""What a judge sees and says, call by call: presentations, and judgements as they are in the journal and stored.

A `Matcher` and matches that were judged elsewhere write the same table, and seal it alike.

A judgement is one call of the judge. Its key is the digest of all that the judge can see: the example and the
responses in the order in which they are presented. Matches with equal keys share a judgement, equal responses tie
without one, and a match in which a response is missing has none.

A key has only what the judge can see, so that examples that are moved are not judged again, unless it can see places.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core import identity, identity as ids
from evaluand.core.errors import DataError, SpecError, described, nearest, plural
from evaluand.core.key_columns import INDEX
from evaluand.data.dataset import ExampleStream
from evaluand.evaluation.comparison_scorers import STRENGTH, ComparisonScorer
from evaluand.evaluation.grading import Grader
from evaluand.evaluation.scorer import Score
from evaluand.evaluation.units import Unit
from evaluand.matches.matches import TABLE, MatchDigest
from evaluand.matches.response_style import ResponseStyle, response_styles
from evaluand.matches.schedule import Pairs
from evaluand.models.usage_total import UsageTotal
from evaluand.run.responses import Response
from evaluand.run.runner import Run
from evaluand.store.journal import WorkLog
from evaluand.store.store import Draft, Manifest, Store, check_name, drafted, now
from evaluand.store.tables import ABSTAINED, BATCH_ROWS, COMPLETED, FAILED, MATCHES, SCORED, SKIPPED, STYLE, TableWriter
from evaluand.trace.spans import TaskSpan
from evaluand.trace.traces import Trace


@dataclass(frozen=True)
class JudgeView:
    """What a judge can see of where an example is.

    Attributes:
        index: whether it can see `_index_`.
        position: whether it can see the place in the dataset.
        replication: whether it can see the replication.
    """

    index: bool = False
    position: bool = False
    replication: bool = False

    @classmethod
    def of(cls, judge: ComparisonScorer) -> JudgeView:
        """What a judge can see: by `example` everything of it, unless the judge says that it reads no place."""
        place = judge.sees_place
        return cls(place, place and "example" in judge.arguments, "replication" in judge.arguments)


# what a system has on a row: an answer, a failed call, a skipped one, no answer, or no row
ANSWERED, FAILED_CALL, NOT_ASKED, NO_ANSWER, ABSENT = range(5)


ORDERS: Final = ("both", "random")


def check_presentation(orders: Any, seed: Any) -> None:
    """Refuses orders that are not known, and seeds that are no integers of 64 bits.

    Raises:
        SpecError: says what to give.
    """
    if orders not in ORDERS:
        hint = nearest(orders, ORDERS) if isinstance(orders, str) else ""
        raise SpecError(f"orders is {described(orders)}; give one of {', '.join(ORDERS)}{hint}")
    if not isinstance(seed, int) or isinstance(seed, bool) or not -(2**63) <= seed < 2**63:
        raise SpecError(f"seed is {described(seed)}; give a whole number of 64 bits")


def check_labels(labels: Any, n: int) -> list[str]:
    """The labels of systems if they are distinct names, one for each of n runs.

    Raises:
        SpecError: says what is wrong.
    """
    is_list = isinstance(labels, Sequence) and not isinstance(labels, str)
    if not is_list or len(labels) != n or not all(isinstance(label, str) and label.strip() for label in labels):
        raise SpecError(f"labels must be a list of texts, one for each of the {n} runs, not {labels!r}")
    for label in labels:
        check_text("labels", label)
    if twice := [label for place, label in enumerate(labels) if label in labels[:place]]:
        raise SpecError(f"two systems are called {twice[0]!r}; give each its own label")
    return [*labels]


def check_text(what: str, name: str) -> None:
    """Refuses a name that cannot be stored or printed, such as one with a lone surrogate or a null byte.

    Raises:
        SpecError: begins with what it is the name of.
    """
    try:
        check_name(name)
    except SpecError as error:
        raise SpecError(f"{what}: {error}") from None


def check_one_dataset(runs: Sequence[Run], what: str) -> None:
    """Refuses fewer than two runs, and runs in several stores or over several datasets.

    Args:
        what: what is made of them.

    Raises:
        SpecError: says what is wrong.
    """
    if len(runs) < 2:
        raise SpecError(f"{what} need two runs or more")
    store, dataset = runs[0].store, runs[0].manifest["spec"]["dataset"]
    for run in runs:
        if run.store is not store and getattr(run.store, "root", run) != getattr(store, "root", None):
            raise SpecError(f"run {run.id[:12]} is in another store; {what} are of runs in one store")
        if run.manifest["spec"]["dataset"] != dataset:
            raise SpecError(
                f"run {run.id[:12]} is over another dataset than run {runs[0].id[:12]}; run both over one dataset:"
                " finished calls are reused"
            )


@dataclass(frozen=True)
class Entrants:
    """The systems, and what each has on each row; a row is an example and replication that a system has.

    Attributes:
        labels: of the systems.
        replications: rows of each example.
        index: `_index_` of each example.
        examples: the digest of each example, 16 bytes.
        states: rows × systems: `ANSWERED`, `FAILED_CALL`, `NOT_ASKED`, `NO_ANSWER` or `ABSENT`.
        contents: rows × systems × 16: the digest of each response.
    """

    labels: Sequence[str]
    replications: int
    index: np.ndarray
    examples: np.ndarray
    states: np.ndarray
    contents: np.ndarray

    @classmethod
    def of(cls, runs: Sequence[Run], labels: Sequence[str], limit: int | None = None) -> Entrants:
        """The entrants of runs over one dataset, or over its first examples."""
        replications = min(int(run.manifest["spec"]["replications"]) for run in runs)
        examples = max(int(run.manifest["spec"]["examples"]) for run in runs)
        examples = examples if limit is None else min(examples, limit)
        shape = examples * replications, len(runs)
        states = np.full(shape, ABSENT, np.int8)
        contents = np.zeros((*shape, identity.DIGEST_SIZE), np.uint8)
        for number, run in enumerate(runs):
            every = int(run.manifest["spec"]["replications"])
            chosen = np.flatnonzero(np.arange(sum(run.counts.values())) % every < replications)
            chosen = chosen[: len(states)]
            states[: len(chosen), number] = _states(run)[chosen]
            contents[: len(chosen), number] = _as_digests(run.contents())[chosen]
        dataset = runs[0].dataset
        digests = _as_digests(itertools.islice(dataset.example_digests(), examples))
        index = np.frombuffer(dataset.indices, np.int64)[:examples]
        return cls(labels, replications, index, digests, states, contents)

    @property
    def n_rows(self) -> int:
        return len(self.states)

    def numbers(self) -> np.ndarray:
        """Rows × systems: a number for each response, equal for equal ones; 0 without a response."""
        numbers = np.maximum(np.ascontiguousarray(self.contents[..., :8]).view("<u8")[..., 0], np.uint64(1))
        return np.where(self.states == ANSWERED, numbers, np.uint64(0))


_REASONS: Final = {
    FAILED_CALL: "the task failed",
    NOT_ASKED: "the task was not asked",
    NO_ANSWER: "the task gave no answer",
}
_STATUSES: Final = {NO_ANSWER: ABSTAINED, NOT_ASKED: SKIPPED, FAILED_CALL: FAILED}
_RANKS: Final = [ANSWERED, NO_ANSWER, NOT_ASKED, FAILED_CALL]


def _states(run: Run) -> np.ndarray:
    columns: list[np.ndarray] = []
    for batch in run.batches(["status", "n_responses"]):
        status = np.asarray(batch.column("status").to_pylist())
        n_responses = np.asarray(batch.column("n_responses"))
        answered = np.where(n_responses > 0, ANSWERED, NO_ANSWER)
        others = np.where(status == SKIPPED, NOT_ASKED, FAILED_CALL)
        columns.append(np.where(status == COMPLETED, answered, others).astype(np.int8))
    return np.concatenate(columns) if columns else np.zeros(0, np.int8)


def _as_digests(digests: Iterable[bytes]) -> np.ndarray:
    return np.frombuffer(b"".join(digests), np.uint8).reshape(-1, identity.DIGEST_SIZE)


@dataclass(frozen=True)
class Round:
    """The matches of a round; arrays with an entry for each match, in the order of row, a, b and order.

    Attributes:
        row, a, b: as in `Pairs`.
        ab: whether a's response is presented first.
        equal: whether both responses are equal.
        presentation: the number of the presentation that decides the match, from 0; -1 where none is needed.
        places: matches × 2: the places of a's and b's response in the presentation.
        presented: presentations × places: the systems whose responses are shown, in their order; -1 after the last.
        rows: the row of each presentation.
        keys: its key, 16 bytes.
    """

    row: np.ndarray
    a: np.ndarray
    b: np.ndarray
    ab: np.ndarray
    equal: np.ndarray
    presentation: np.ndarray
    places: np.ndarray
    presented: np.ndarray
    rows: np.ndarray
    keys: np.ndarray


@dataclass(frozen=True)
class Presenter:
    """Decides in which order responses are presented.

    Args:
        entrants: the systems.
        orders: `both`, or `random`: one order of each pair, a pure function of the seed, the example and the responses.
        seed: of random orders.
        view: what the judge can see of where an example is.
    """

    entrants: Entrants
    orders: str
    seed: int
    view: JudgeView

    def pairs(self, pairs: Pairs) -> Round:
        """The matches of a judge that compares two responses."""
        order = np.lexsort((pairs.b, pairs.a, pairs.row))
        row, a, b = (column[order] for column in pairs)
        contents, states = self.entrants.contents, self.entrants.states
        equal = (contents[row, a] == contents[row, b]).all(axis=1) & (states[row, a] == ANSWERED)
        is_asked = (states[row, a] == ANSWERED) & (states[row, b] == ANSWERED) & ~equal
        if self.orders == "both":
            row, a, b, equal, is_asked = (np.repeat(column, 2) for column in (row, a, b, equal, is_asked))
            ab = np.tile([True, False], len(row) // 2)
        else:
            ab = np.ones(len(row), bool)
            ab[is_asked] = self._coins(row[is_asked], a[is_asked], b[is_asked])
        first, second = np.where(ab, a, b)[is_asked], np.where(ab, b, a)[is_asked]
        presentation = np.full(len(row), -1, np.int64)
        presentation[is_asked] = np.arange(int(is_asked.sum()))
        places = np.where(ab[:, None], [0, 1], [1, 0])
        rows = row[is_asked]
        keys = _digest_rows(self._seen(rows, first, second))
        return Round(row, a, b, ab, equal, presentation, places, np.stack([first, second], axis=1), rows, keys)

    def groups(self) -> Round:
        """The matches of a judge that compares all responses to an example; equal ones are presented once."""
        matches: list[tuple[int, ...]] = []
        presented: list[tuple[int, ...]] = []
        presented_rows: list[int] = []
        for row, states in enumerate(self.entrants.states.tolist()):
            here = [system for system, state in enumerate(states) if state != ABSENT]
            contents = {system: self.entrants.contents[row, system].tobytes() for system in here}
            distinct: dict[bytes, int] = {}  # the first system with each response
            for system in here:
                if states[system] == ANSWERED:
                    distinct.setdefault(contents[system], system)
            ranked = sorted(distinct.values(), key=lambda system: self._rank(row, system))
            for turned in (False, True) if self.orders == "both" else (False,):
                order = ranked[::-1] if turned else ranked
                place = {contents[system]: at for at, system in enumerate(order)}
                number = len(presented) if len(order) > 1 else -1
                if number >= 0:
                    presented.append(tuple(order))
                    presented_rows.append(row)
                for a, b in itertools.combinations(here, 2):
                    is_asked = states[a] == ANSWERED and states[b] == ANSWERED
                    at_a, at_b = (place[contents[each]] for each in (a, b)) if is_asked else (0, 1)
                    equal = at_a == at_b
                    is_first = at_a < at_b if is_asked and not equal else not turned
                    matches.append((row, a, b, is_first, equal, number if is_asked and not equal else -1, at_a, at_b))
        matches.sort(key=lambda match: (*match[:3], not match[3]))
        row_, a_, b_, ab, equal_, number_, *places = np.array(matches, np.int64).reshape(-1, 8).T
        widest, rows = max(map(len, presented), default=0), np.array(presented_rows, np.int64)
        seen = (
            self._seen(rows[[at]], *(np.array([system]) for system in systems)).tobytes()
            for at, systems in enumerate(presented)
        )
        return Round(
            row_,
            a_.astype(np.int32),
            b_.astype(np.int32),
            ab.astype(bool),
            equal_.astype(bool),
            number_,
            np.stack(places, axis=1),
            np.array([(*each, *[-1] * (widest - len(each))) for each in presented], np.int64).reshape(
                len(presented), widest
            ),
            rows,
            _digest_each(seen),
        )

    def _seen(self, rows: np.ndarray, *systems: np.ndarray) -> np.ndarray:
        """What a judge can see of some rows and systems, as bytes: rows × bytes."""
        at = rows // self.entrants.replications
        parts = [self.entrants.examples[at], *(self.entrants.contents[rows, each] for each in systems)]
        if self.view.index != self.view.position:  # a key that has both needs no mark
            parts.append(np.full((len(rows), 1), ord("i" if self.view.index else "p"), np.uint8))
        if self.view.index:
            parts.append(_as_bytes(self.entrants.index[at]))
        if self.view.position:
            parts.append(_as_bytes(at))
        if self.view.replication:
            parts.append(_as_bytes(rows % self.entrants.replications))
        return np.concatenate(parts, axis=1)

    def _coins(self, rows: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Whether a's response is presented first: by chance, but whatever the numbers of the systems are."""
        contents = self.entrants.contents
        low, high = (np.ascontiguousarray(contents[rows, each]).view("S16").ravel() for each in (a, b))
        is_lower = low < high
        lower, higher = np.where(is_lower, a, b), np.where(is_lower, b, a)
        examples = self.entrants.examples[rows // self.entrants.replications]
        seeds = np.broadcast_to(_as_bytes(np.array([self.seed])), (len(rows), 8))
        parts = np.concatenate([seeds, examples, contents[rows, lower], contents[rows, higher]], axis=1)
        heads = _digest_rows(parts)[:, 0] & 1 == 1
        return np.asarray(heads == is_lower)

    def _rank(self, row: int, system: int) -> bytes:
        """A random number for a response to an example, by which it is placed."""
        example = self.entrants.examples[row // self.entrants.replications].tobytes()
        parts = b"order%d" % self.seed + example + self.entrants.contents[row, system].tobytes()
        return hashlib.blake2b(parts, digest_size=8).digest()


def _as_bytes(numbers: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(numbers, "<i8").view(np.uint8).reshape(-1, 8)


def _digest_rows(rows: np.ndarray) -> np.ndarray:
    """The digest of each row of bytes."""
    return _digest_each(row.tobytes() for row in rows)


def _digest_each(texts: Iterable[bytes]) -> np.ndarray:
    return _as_digests(hashlib.blake2b(each, digest_size=identity.DIGEST_SIZE).digest() for each in texts)


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

    @property
    def stops_alike(self) -> bool:
        return not self.scorer.is_quick

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
    found: list[tuple[str, str | None]] = []
    for s, t, i, j, is_equal in kinds.T.tolist():
        if why := [f"{label}: {_REASONS[state]}" for label, state in {labels[i]: s, labels[j]: t}.items() if state]:
            found.append((_STATUSES[max(s, t, key=_RANKS.index)], "; ".join(why)))
        else:
            found.append((SCORED, None) if is_equal else (SKIPPED, "not judged"))
    status, reasons = (pa.array(each, pa.string()) for each in zip(*found, strict=True))
    places = pa.array(which.ravel())
    return status.take(places), reasons.take(places)
