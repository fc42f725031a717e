"""Evaluations: what scorers make of a run, one table per scorer.

An `Evaluator` grades stored responses, so a run is graded again, or by more scorers, without being made again. Each
row of the run ends in exactly one status per scorer, response and target; what an earlier evaluation found for the
same scorer, example and response is taken over.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass, field, fields
from itertools import islice
from typing import Any, NamedTuple

import orjson
import pyarrow as pa
from orjson import Fragment

from evaluand import ids, rows
from evaluand.dataset import Example
from evaluand.engine import Engine, InlineEngine, LocalEngine, Outcome, Policy, Wire
from evaluand.errors import DataError, SpecError, with_article
from evaluand.journal import Lane
from evaluand.provenance import provenance
from evaluand.rows import ABSTAINED, FAILED, INDEX, SCORED, SKIPPED
from evaluand.run import BATCH_CHARACTERS, Response, Rows, Run, Wanted, canonical_text, message_of, place_of
from evaluand.scorer import Score, Scorer, as_scorer
from evaluand.store import Manifest, Store, begin, check_name, check_store, drafted, journalled, now
from evaluand.work import KeyedWork, Progress, Receipt, Tally

BATCH = 4096
GATHER = 256
NEWEST = 3
_REASON = 500
_OWN = 12  # the columns of a scorer's own begin here


@dataclass(slots=True)
class _Unit:
    """One row of a run to be graded; `rest` are those that follow it in a batch."""

    slot: int
    example: Example
    response: Response
    digest: bytes
    pieces: Sequence[_Piece] = ()
    rest: Sequence[_Unit] = ()

    @property
    def size(self) -> int:
        return 1 + len(self.rest)

    def __str__(self) -> str:
        return f"_index_ {self.response.index}, replication {self.response.replication}"


def _packed(unit: _Unit) -> bytes:
    """What a process that grades a row, or a batch of them, needs of it."""
    return ids.encode([_fields(u) for u in (unit, *unit.rest)])


def _fields(unit: _Unit) -> list[Any]:
    return [
        unit.slot,
        unit.digest,
        *([getattr(part, f.name) for f in fields(part)] for part in (unit.example, unit.response)),
    ]


def _unpacked(packed: bytes) -> _Unit:
    first, *rest = (_Unit(slot, Example(*e), Response(*r), digest) for slot, digest, e, r in ids.decode(packed))
    first.rest = rest
    return first


class _Piece(NamedTuple):
    """What a scorer is asked at once: one response, as a whole or for one target."""

    number: int | None
    target: str | None
    output: Any
    expected: Any


class Evaluation:
    """An evaluation in a store.

    Attributes:
        receipt: what had to be done for it, when it was just made.
    """

    def __init__(self, store: Store, id: str, receipt: Receipt | None = None) -> None:
        self.store, self.id, self.receipt = store, id, receipt
        self.manifest = store.manifest("evaluations", id)

    def __repr__(self) -> str:
        return f"Evaluation({self.id[:12]}, {', '.join(self.scorers)})"

    @property
    def name(self) -> str | None:
        return self.manifest["name"]  # type: ignore[no-any-return]

    @property
    def digest(self) -> str:
        """32 hexadecimal digits that stand for every score."""
        return str(self.manifest["digest"])

    @property
    def scorers(self) -> list[str]:
        """The names of the scorers, each of which has a table."""
        return list(self.manifest["spec"]["scorers"])

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """Rows by scorer and status."""
        return self.manifest["counts"]  # type: ignore[no-any-return]

    def batches(self, scorer: str, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """A scorer's table as a stream, in the order of the key."""
        return self.store.read("evaluations", self.id, f"scores/{scorer}", columns)

    def columns(self, scorer: str) -> list[str]:
        """The names of the columns of a scorer's table."""
        return list(next(self.batches(scorer)).schema.names)

    def table(self, scorer: str) -> pa.Table:
        """A scorer's table."""
        return pa.Table.from_batches(self.batches(scorer))


@dataclass
class Evaluator:
    """Grades runs.

    Args:
        store: where evaluations are kept; that of the run if not given.
        policy: concurrency, timeout and retries of scorers that are not quick.
        progress: shows how far it is.

    Example:
        >>> from evaluand.dataset import Dataset
        >>> from evaluand.run import Runner
        >>> data = Dataset.from_rows([{"input": "a", "expected": "A"}, {"input": "b", "expected": "C"}])
        >>> run = Runner().run(str.upper, data)
        >>> evaluation = Evaluator().evaluate(run, {"same": lambda output, expected: output == expected})
        >>> evaluation.table("same")["value"].to_pylist()
        [1.0, 0.0]
    """

    store: Store | None = None
    policy: Policy = field(default_factory=Policy)
    engine: Engine = field(default_factory=LocalEngine)
    progress: Progress | None = None

    def evaluate(
        self,
        run: Run,
        scorers: Mapping[str, Scorer | Callable[..., Any] | str],
        *,
        name: str | None = None,
        fresh: bool = False,
        retry_failed: bool = False,
        resume: str | None = None,
        origin: dict[str, Any] | None = None,
    ) -> Evaluation:
        """The evaluation of a run by some scorers; found, continued or made.

        Args:
            run: a sealed run.
            scorers: name → scorer, function, or the name of a kind, with its defaults.
            name: a name for the evaluation.
            fresh: grade everything anew, as a further attempt.
            retry_failed: grade anew what a scorer failed on, as a further attempt.
            resume: the id of an open evaluation that this must continue.
            origin: where the request came from, for provenance.

        Raises:
            SpecError: the request cannot work; nothing was graded.
            KeyboardInterrupt: stopped by the user; the evaluation stays open.
        """
        if not isinstance(run, Run):
            raise SpecError(f"give a Run to evaluate, not {with_article(type(run).__name__)}; see Runner.run")
        if not scorers:
            raise SpecError("an evaluation needs a scorer")
        if name is not None:
            check_name(name)
        store = run.store if self.store is None else self.store
        check_store(store)
        if not run.store.is_sealed("runs", run.id):
            raise SpecError(f"run {run.id} is not finished; resume it before it is evaluated")
        if not isinstance(scorers, Mapping):
            raise SpecError(f"give the scorers as a mapping name → scorer, not {with_article(type(scorers).__name__)}")
        # Sorted, so that the order in which they are named changes nothing.
        kinds = {check_name(name): as_scorer(name, kind) for name, kind in sorted(scorers.items())}
        identities = {n: s.identify() for n, s in kinds.items()}
        spec = {
            "run": run.digest,
            "dataset": run.manifest["spec"]["dataset"],
            "scorers": {n: identity.spec for n, identity in identities.items()},
        }
        pinned = all(identity.pinned for identity in identities.values())
        unpinned = [f"{n}: {why}" for n, identity in identities.items() for why in identity.unpinned]
        parts = {n: dict(identity.parts) for n, identity in identities.items()}
        manifest = begin(
            store,
            "evaluations",
            spec,
            name=name,
            again=lambda last: fresh or not pinned or (retry_failed and _has_failures(store, last, run)),
            resume=resume,
            about=lambda: {
                "work": [_work(identity.spec) for identity in identities.values() if identity.pinned],
                "pinned": pinned,
                "fresh": fresh,
                "provenance": provenance(origin) | {"run": run.id, "parts": parts, "unpinned": unpinned},
            },
        )
        total = sum(run.counts.values()) * len(kinds)
        if "digest" in manifest:
            why = "nothing to do: the same responses were graded by the same scorers before"
            return Evaluation(store, manifest["id"], Receipt(total, kept=total, why=why))
        job = _Job(self, store, run, manifest)
        try:
            for number, (scorer_name, kind) in enumerate(kinds.items()):
                reuse = identities[scorer_name].pinned and not manifest["fresh"]
                job.grade(number, scorer_name, kind, _work(spec["scorers"][scorer_name]) if reuse else None)
            job.seal(list(kinds.values()))
        finally:
            job.close()
        why = f"unpinned, so never reused: {'; '.join(unpinned)}" if unpinned else ""
        return Evaluation(store, manifest["id"], Receipt(total, job.called, job.reused, job.kept, why))


def _has_failures(store: Store, id: str, run: Run) -> bool:
    """Whether a scorer failed where the task had not."""
    counts = store.manifest("evaluations", id).get("counts", {})
    return any(tally.get(FAILED, 0) > run.counts.get(FAILED, 0) for tally in counts.values())


def row_digest(row: Sequence[Any]) -> bytes:
    """What one row of a scorer's table adds to the table's digest: all but its key and how a failure was worded."""
    *key, _, status, reason = row[:8]
    return orjson.dumps([key, status, None if status == FAILED else reason, row[8:]])


class _Job:
    """One evaluation in the making."""

    def __init__(self, evaluator: Evaluator, store: Store, run: Run, manifest: Manifest) -> None:
        self.evaluator, self.store, self.run, self.manifest = evaluator, store, run, manifest
        self.lanes: list[Lane] = []
        self.called = self.reused = self.kept = 0

    def grade(self, number: int, name: str, scorer: Scorer, work: str | None) -> None:
        """Grades every row of the run by one scorer."""
        self.rows = _RowStream(self.run, scorer.arguments, scorer.by_target)
        lane = self.store.lane("evaluations", self.manifest["id"], _lane(number), self.rows.total)
        self.lanes.append(lane)
        lane.refresh()
        tally = Tally(name, lane.slots, kept=lane.n_done)
        if work and lane.n_done < lane.slots:
            self._reuse(lane, work, tally, scorer.cheap)
        grader = _Grader(scorer, self.run, self.evaluator.policy)
        quick = scorer.cheap and not scorer.is_batch and not scorer.is_async
        keyed = KeyedWork(
            lane,
            lambda start, stop: (
                _batched(self.rows.take(start, stop), lane) if scorer.is_batch else self.rows.take(start, stop)
            ),
            grader.call,
            grader.line,
            self.evaluator.policy,
            InlineEngine() if quick else self.evaluator.engine,
            tally,
            GATHER if quick else 1,
            self.is_sealed,
            wire=Wire(_packed, _unpacked) if self.evaluator.policy.processes and not quick else None,
        )
        with self.evaluator.progress(tally) if self.evaluator.progress else nullcontext():
            keyed.perform()
        self.called += tally.called
        self.reused += tally.reused
        self.kept += tally.kept

    def is_sealed(self) -> bool:
        return self.store.is_sealed("evaluations", self.manifest["id"])

    def seal(self, scorers: Sequence[Scorer]) -> None:
        """Turns the journals into tables, unless another process did."""
        if self.is_sealed():
            return
        id, digests = self.manifest["id"], []
        counts: dict[str, dict[str, int]] = {}
        with drafted(self.store, "evaluations", id) as draft, journalled("evaluations", id):
            for lane, name, scorer in zip(self.lanes, self.manifest["spec"]["scorers"], scorers, strict=True):
                schema = rows.scores_schema(scorer.columns)
                draft.append(f"scores/{name}", pa.RecordBatch.from_pylist([], schema))
                counts[name], digest = self._seal_scorer(draft, lane, f"scores/{name}", schema)
                digests.append(digest)
            digest = ids.digest_of_digests(digests)
            draft.seal(self.manifest | {"digest": digest.hex(), "counts": counts, "sealed": now()})

    def close(self) -> None:
        for lane in self.lanes:
            lane.close()

    def _seal_scorer(self, draft: Any, lane: Lane, table: str, schema: pa.Schema) -> tuple[dict[str, int], bytes]:
        state = hashlib.blake2b(digest_size=ids.DIGEST_SIZE)
        counts: dict[str, int] = {}
        gathered, held = Rows(schema), 0
        own = [(field.name, rows.is_json(field)) for field in schema][_OWN:]
        for (_, digest, scores), (index, replication, fold) in zip(lane.records(), _keys(self.run), strict=True):
            for number, target, status, reason, value, label, data, explanation, columns in scores:
                cells = [_cell((columns or {}).get(name), is_text) for name, is_text in own]
                text = None if data is None else canonical_text(data)
                row = (index, replication, fold, number, target, bytes.fromhex(digest), status, reason, value, label)
                row = (*row, text, explanation, *cells)
                state.update(row_digest(row))
                counts[status] = counts.get(status, 0) + 1
                gathered.add(row)
                held += len(text or "") + len(explanation or "") + sum(len(c) for c in cells if isinstance(c, str))
            if len(gathered) >= BATCH or held >= BATCH_CHARACTERS:
                held = 0
                gathered.flush(draft, table)
        gathered.flush(draft, table)
        return counts, state.digest()

    def _reuse(self, lane: Lane, work: str, tally: Tally, quick: bool) -> None:
        """Takes over the scores that earlier evaluations by the same scorer found for the same rows."""
        sources = [id for id in self.store.find("evaluations", work) if id != self.manifest["id"]]
        if quick:
            sources = sources[:NEWEST]  # grading is cheaper than looking far
        if not sources:
            return
        wanted = Wanted((u.slot, u.digest) for u in self.rows.take(0, lane.slots) if not lane.is_done(u.slot))
        for source in sources:
            if not wanted.left:
                break
            for digest, scores in _found_scores(self.store, source, work):
                try:
                    rest = orjson.dumps([digest.hex(), scores])
                except TypeError:  # nested more deeply than orjson writes with what is around it: grade it again
                    continue
                slot = wanted.take(digest)
                if slot is not None:
                    lane.append(b"[%d,%b\n" % (slot, rest[1:]))
                    tally.reused += 1
        lane.refresh()


class _Grader:
    """Asks one scorer about rows and writes down what it says."""

    def __init__(self, scorer: Scorer, run: Run, policy: Policy) -> None:
        self.scorer, self.items, self.policy = scorer, run.items, policy
        self.targets = _targets(run) if scorer.by_target else None
        self.columns = dict(scorer.columns)
        self.readers = [_ARGUMENTS[name] for name in scorer.arguments]
        one_by_one = self.grade_async if scorer.is_async else self.grade
        many = self.grade_batch_async if scorer.is_async else self.grade_batch
        self.call: Callable[[_Unit], Any] = many if scorer.is_batch else one_by_one

    def grade(self, unit: _Unit) -> list[Any]:
        """One result per piece: a Score, or the error that one piece cost."""
        unit.pieces = self._pieces(unit)
        return [self._ask(unit, piece) for piece in unit.pieces]

    async def grade_async(self, unit: _Unit) -> list[Any]:
        results: list[Any] = []
        unit.pieces = self._pieces(unit)
        for piece in unit.pieces:
            try:
                given: Any = self.scorer.score(*self._arguments(unit, piece))
                results.append(Score.of(await given))
            except Exception as error:
                self._raise_if_transient(error)
                results.append(error)
        return results

    def grade_batch(self, unit: _Unit) -> list[Any]:
        """The results of all pieces of all the rows of a batch, in order."""
        columns = self._batch(unit)
        return _one_each(columns, self.scorer.score_batch(*columns)) if columns else []  # type: ignore[attr-defined]

    async def grade_batch_async(self, unit: _Unit) -> list[Any]:
        columns = self._batch(unit)
        return _one_each(columns, await self.scorer.score_batch(*columns)) if columns else []  # type: ignore[attr-defined]

    def _batch(self, unit: _Unit) -> list[list[Any]]:
        """The arguments of all pieces of all the rows of a batch, as columns."""
        for u in (unit, *unit.rest):
            u.pieces = self._pieces(u)
        asked = [self._arguments(u, piece) for u in (unit, *unit.rest) for piece in u.pieces]
        return [list(column) for column in zip(*asked, strict=True)]

    def line(self, unit: _Unit, outcome: Outcome) -> tuple[bytes, int]:
        results = iter(outcome.value) if outcome.error is None else None
        lines, failed = [], 0
        for u in (unit, *unit.rest):
            u.pieces = u.pieces or self._pieces(u)  # where the process that made the call is gone
            scores = self._rows(u, results, outcome.error)
            failed += any(row[2] == FAILED for row in scores)
            lines.append(_line(u, scores))
        return b"".join(lines), failed

    def _rows(self, unit: _Unit, results: Iterator[Any] | None, error: BaseException | None) -> list[list[Any]]:
        status, reason = self._ungradable(unit.response)
        if status:
            return [
                [None, target, status, reason, None, None, None, None, self._unanswered(unit, status, target)]
                for target in self.targets or (None,)
            ]
        given = islice(results, len(unit.pieces)) if results is not None else [error] * len(unit.pieces)
        return [self._row(piece, result) for piece, result in zip(unit.pieces, given, strict=True)]

    def _ungradable(self, response: Response) -> tuple[str | None, str | None]:
        """The status of a row that no scorer is asked about."""
        if response.status == FAILED:
            error = response.error or {}
            return FAILED, f"task: {error.get('type')}: {error.get('message')}"[:_REASON]
        if response.status == SKIPPED:
            return SKIPPED, "the task was not asked"
        if not response.responses:
            return ABSTAINED, "the task gave no answer"
        return None, None

    def _pieces(self, unit: _Unit) -> list[_Piece]:
        expected, responses = unit.example.expected, unit.response.responses
        if unit.response.status != rows.COMPLETED or not responses:
            return []
        if self.targets is None:
            return [_Piece(n, None, output, expected) for n, output in enumerate(responses)]
        return [
            _Piece(n, target, output.get(target) if isinstance(output, Mapping) else output, expected[target])
            for n, output in enumerate(responses)
            for target in self.targets
        ]

    def _own(self, name: str, kind: str, value: Any) -> Any:
        """A value of the scorer's own column, in the column's type."""
        if value is None:
            return None
        if kind == "json":
            return Fragment(ids.encode(value))
        wanted = _OWN_TYPES[kind]
        if not isinstance(value, wanted) or (kind != "bool" and isinstance(value, bool)):
            raise DataError(f"column {name} holds {kind}, but the scorer gave {value!r}")
        if kind == "double" and not math.isfinite(value):
            raise DataError(f"column {name} is {value}; give a finite number or nothing")
        if kind == "int64" and not -(2**63) <= value < 2**63:
            raise DataError(f"column {name} is {value}, which does not fit in 64 bits")
        if kind == "string":
            _check_text(name, value)
        return float(value) if kind == "double" else value

    def _ask(self, unit: _Unit, piece: _Piece) -> Any:
        try:
            return Score.of(self.scorer.score(*self._arguments(unit, piece)))
        except Exception as error:
            self._raise_if_transient(error)
            return error

    def _raise_if_transient(self, error: BaseException) -> None:
        if not self.scorer.cheap and self.policy.tries_again(error, 1):
            raise error

    def _arguments(self, unit: _Unit, piece: _Piece) -> list[Any]:
        given = [read(unit, piece) for read in self.readers]
        return given if self.scorer.cheap else [deepcopy(value) for value in given]

    def _row(self, piece: _Piece, result: Any) -> list[Any]:
        if not isinstance(result, BaseException):
            try:
                return self._scored(piece, Score.of(result))
            except Exception as error:  # whatever a score is made of, it costs one score
                result = error
        place = place_of(result)
        reason = f"scorer: {type(result).__name__}: {message_of(result)}"[:_REASON] + (f" ({place})" if place else "")
        columns = self._without_score(piece.expected)
        return [piece.number, piece.target, FAILED, reason, None, None, None, None, columns]

    def _scored(self, piece: _Piece, score: Score) -> list[Any]:
        if score.status not in (SCORED, ABSTAINED):
            raise DataError(f"a scorer gives status {SCORED} or {ABSTAINED}, not {score.status!r}")
        value = None if score.value is None else float(score.value)
        if value is not None and not math.isfinite(value):
            raise DataError(f"the score is {value}; give a finite number, or Score.abstained(reason)")
        for name in ("label", "reason", "explanation"):
            _check_text(name, getattr(score, name))
        data = None if score.data is None else Fragment(ids.encode(score.data))
        columns = self._cells(score.columns or {})
        return [
            piece.number,
            piece.target,
            score.status,
            score.reason,
            value,
            score.label,
            data,
            score.explanation,
            columns,
        ]

    def _unanswered(self, unit: _Unit, status: str, target: str | None) -> dict[str, Any] | None:
        """The scorer's columns of a row it is not asked about."""
        expected = unit.example.expected
        return None if status == SKIPPED else self._without_score(expected if target is None else expected[target])

    def _without_score(self, expected: Any) -> dict[str, Any] | None:
        try:
            given = self.scorer.unanswered(expected)
            return None if given is None else self._cells(given)
        except Exception:  # what is expected is no better than what was answered
            return None

    def _cells(self, given: Mapping[str, Any]) -> dict[str, Any] | None:
        if given and (unknown := given.keys() - self.columns.keys()):
            raise DataError(
                f"the score has the column {min(unknown)!r}, which the scorer does not declare in `columns`"
            )
        return {n: self._own(n, kind, given.get(n)) for n, kind in self.columns.items()} if self.columns else None


def _line(unit: _Unit, scores: list[list[Any]]) -> bytes:
    return orjson.dumps([unit.slot, unit.digest.hex(), scores]) + b"\n"


def _check_text(name: str, value: Any) -> None:
    if value is None or (type(value) is str and value.isascii()):
        return
    if not isinstance(value, str):
        raise DataError(f"{name} is text, not {with_article(type(value).__name__)}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"{name} holds half a character (a lone surrogate) at {error.start}; it cannot be stored"
        ) from None


def _one_each(columns: list[list[Any]], results: Any) -> list[Any]:
    given = list(results)
    if len(given) != len(columns[0]):
        raise DataError(f"the scorer was given {len(columns[0])} responses and gave {len(given)} scores; give one each")
    return given


_OWN_TYPES: dict[str, Any] = {"string": str, "int64": int, "double": int | float, "bool": bool}

_ARGUMENTS: dict[str, Callable[[_Unit, _Piece], Any]] = {
    "output": lambda unit, piece: piece.output,
    "expected": lambda unit, piece: piece.expected,
    "input": lambda unit, piece: unit.example.input,
    "example": lambda unit, piece: unit.example,
    "index": lambda unit, piece: unit.example.index,
    "replication": lambda unit, piece: unit.response.replication,
    "weight": lambda unit, piece: unit.example.weight,
}


class _RowStream:
    """The rows of a run beside their examples, in ascending pieces; going back starts another pass."""

    def __init__(self, run: Run, arguments: Sequence[str], by_target: bool) -> None:
        self.run = run
        self.targets = ids.encode(_targets(run)) if by_target else b""
        self.reads_index = "index" in arguments or "example" in arguments
        self.reads_replication = "replication" in arguments
        self.dataset = run.dataset
        self.replications = int(run.manifest["spec"]["replications"])
        self.total = sum(run.counts.values())
        self._position = -1
        self._rows: Iterator[_Unit] = iter(())

    def take(self, start: int, stop: int) -> Iterator[_Unit]:
        if start < self._position or self._position < 0:
            self._rows, self._position = self._all(), 0
        next(islice(self._rows, start - self._position, start - self._position), None)
        self._position = start
        while self._position < stop:
            unit = next(self._rows, None)
            if unit is None:
                return
            self._position += 1
            yield unit

    def _all(self) -> Iterator[_Unit]:
        responses = iter(self.run)
        slot = 0
        for example in self.dataset.examples(0, self.total // self.replications):
            for response in islice(responses, self.replications):
                yield _Unit(slot, example, response, self._digest(example, response))
                slot += 1

    def _digest(self, example: Example, response: Response) -> bytes:
        """16 bytes that stand for all the scorer can see of a row."""
        parts = example.digest + response.content + self.targets
        if self.reads_index:
            parts += b"i%d/%d" % (example.index, example.position)
        if self.reads_replication:
            parts += b"r%d" % response.replication
        return hashlib.blake2b(parts, digest_size=ids.DIGEST_SIZE).digest()


def _keys(run: Run) -> Iterator[tuple[int, int, int | None]]:
    """(`_index_`, replication, fold) of every row of a run."""
    for batch in run.batches([INDEX, "replication", "fold"]):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _batched(units: Iterator[_Unit], lane: Lane) -> Iterator[_Unit]:
    """Each unit carries the ones that follow it."""
    missing = (unit for unit in units if not lane.is_done(unit.slot))
    while chunk := list(islice(missing, GATHER)):
        chunk[0].rest = chunk[1:]
        yield chunk[0]


def _found_scores(store: Store, id: str, work: str) -> Iterator[tuple[bytes, list[Any]]]:
    """(digest, journalled scores) of every row that an evaluation's scorers of that work could grade."""
    manifest = store.manifest("evaluations", id)
    for number, (name, spec) in enumerate(manifest["spec"]["scorers"].items()):
        if _work(spec) != work:
            continue
        if store.is_sealed("evaluations", id):
            yield from _sealed_scores(Evaluation(store, id), name)
            continue
        run = manifest["provenance"]["run"]
        lane = store.lane("evaluations", id, _lane(number), sum(store.manifest("runs", run)["counts"].values()))
        try:
            lane.refresh()
            for _, digest, scores in lane.records():
                if all(row[2] != FAILED for row in scores):
                    yield bytes.fromhex(digest), scores
        finally:
            lane.close()


def _sealed_scores(evaluation: Evaluation, name: str) -> Iterator[tuple[bytes, list[Any]]]:
    key: tuple[Any, ...] | None = None
    digest, scores = b"", list[Any]()
    for batch in evaluation.batches(name):
        columns = {f.name: batch.column(f.name).to_pylist() for f in batch.schema}
        texts = {f.name for f in batch.schema if rows.is_json(f)}
        own = batch.schema.names[_OWN:]
        for i in range(batch.num_rows):
            if (columns[INDEX][i], columns["replication"][i]) != key:
                if key is not None and all(row[2] != FAILED for row in scores):
                    yield digest, scores
                key, scores = (columns[INDEX][i], columns["replication"][i]), []
            digest = columns["digest"][i]
            row = [columns[c][i] for c in ("_response_index_", "target", "status", "reason", "value", "label")]
            extra = {c: _written(c, columns[c][i], texts) for c in own}
            scores.append(
                [
                    *row,
                    _written("data", columns["data"][i], texts),
                    columns["explanation"][i],
                    extra if own else None,
                ]
            )
    if key is not None and all(row[2] != FAILED for row in scores):
        yield digest, scores


def _written(name: str, value: Any, texts: set[str]) -> Any:
    return Fragment(value) if name in texts and value is not None else value


def _targets(run: Run) -> list[str] | None:
    expected = run.dataset.roles.expected
    return sorted(expected) if isinstance(expected, Mapping) else None


def _cell(value: Any, is_json: bool) -> Any:
    return canonical_text(value) if is_json and value is not None else value


def _work(scorer: Mapping[str, Any]) -> str:
    return ids.digest({"scorer": scorer}).hex()


def _lane(number: int) -> str:
    return f"scorer{number}"
