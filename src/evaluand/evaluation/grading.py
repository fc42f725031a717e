"""Grading: asking one scorer about the rows of a run, and writing down what it says.

A record of the journal is a list: slot, digest of what the scorer could see, scores; a score is a list: response index,
target, status, reason, value, label, data, explanation, the scorer's own columns and, where providers were asked, what
that took.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, fields
from itertools import count, islice
from typing import Any, NamedTuple

import orjson
import pyarrow as pa
from orjson import Fragment

from evaluand.core import identity
from evaluand.core.errors import DataError, NotFound, storable_message, with_article
from evaluand.core.json_like import escape_surrogates
from evaluand.core.key_columns import INDEX
from evaluand.data.dataset import Example
from evaluand.engine.engine import Outcome, Policy
from evaluand.evaluation.provider import Spending, spending
from evaluand.evaluation.scorer import NO_ANSWER, Score, Scorer
from evaluand.run.responses import Response, SpanStream, place_of, usage_of
from evaluand.run.runner import Run
from evaluand.store.journal import WorkLog
from evaluand.store.tables import COMPLETED, FAILED, SCORE_STATUSES, SKIPPED
from evaluand.trace.record import Record, comparable_rows

GATHER = 256
_REASON = 500


class Traced(NamedTuple):
    """What was traced of the call of a row: its spans as text, and when it began and how long it took (µs)."""

    rows: bytes
    started: int | None
    duration: int | None


@dataclass(slots=True)
class Unit:
    """One row of a run to be graded; `rest` are those that follow it in a batch, `traced` is there where it is read.

    `record` is there where several scorers are asked about one response, so that it is read once.
    """

    slot: int
    example: Example
    response: Response
    digest: bytes
    traced: Traced | None = None
    record: Record | None = None
    attempts: int = 0
    pieces: Sequence[_Piece] = ()
    spent: Sequence[Spending] = ()  # for each piece, in all attempts
    rest: Sequence[Unit] = ()

    @property
    def size(self) -> int:
        return 1 + len(self.rest)

    def __str__(self) -> str:
        return f"_index_ {self.response.index}, replication {self.response.replication}"


def part_of(value: Any, target: str | None) -> Any:
    """What an output, or a mapping of expected values, holds for a target; all of it where there is none."""
    return value.get(target) if target is not None and isinstance(value, Mapping) else value


def packed(unit: Unit) -> bytes:
    """What a process that grades a row, or a batch of them, needs of it."""
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
        """Itself: made for one scorer and one row. What is taken from it may stand in other arguments too."""
        return self


def seen_of(example: Example) -> dict[str, Any]:
    """What a source tells of an example; what it has not is not there."""
    told = {"id": example.id, "input": _known(example.input), "metadata": _known(example.metadata)}
    told["attributes"] = _known(example.attributes)
    optional = {"expected": _known(example.expected), "weight": example.weight}
    return told | {name: value for name, value in optional.items() if value is not None}


def _known(value: Any) -> Any:
    """What is known of an example: a column that is null there, since only others have it, is not."""
    return {k: v for k, v in value.items() if v is not None} if type(value) is dict else value


def source_of(unit: Unit, output: Any, app: Mapping[str, Any], name: str) -> FeedbackInput:
    """All there is of a row; nothing of the spans is read before it is asked for. See `record_of`."""
    record = unit.record or record_of(unit, output, app, name)
    return FeedbackInput(__record__=record, __app__=app, __example__=seen_of(unit.example))


def record_of(unit: Unit, output: Any, app: Mapping[str, Any], name: str) -> Record:
    """A row as the record of a call.

    Args:
        unit: the row, with what was traced of it.
        output: one of its responses.
        app: what is known of the app that was called.
        name: of the whole call, where its span has none.
    """
    example, replication = unit.example, unit.response.replication
    traced = unit.traced or Traced(b"[]", None, None)
    about = _known(example.attributes) | {k: v for k, v in _known(example.metadata).items() if k != "tags"}
    return Record(
        traced.rows,
        input=example.input,
        output=output,
        name=name,
        error=None if unit.response.error is None else _raised(traced, unit.response.error),
        started=traced.started,
        duration=traced.duration,
        record_id=f"{example.id}/{replication}" if replication else example.id,
        app_id=str(app.get("app_id", "")),
        tags=str(example.metadata.get("tags") or ""),
        meta=about or None,
    )


def _raised(traced: Traced, error: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a call failed with, as its span tells where that does."""
    rows = identity.decode(traced.rows)
    events = rows[0][10] if rows and rows[0][1] is None else None
    told = [body for name, _, body in events or () if name == "exception" and isinstance(body, dict)]
    return told[-1] if told else {"type": error["type"], "message": error["message"]}


class _Piece(NamedTuple):
    """What a scorer is asked at once: one response, as a whole or for one target."""

    number: int | None
    target: str | None
    output: Any
    expected: Any


class RowStream:
    """The rows of a run beside their examples, in ascending pieces; going back starts another pass."""

    def __init__(self, run: Run, scorer: Scorer) -> None:
        self.run = run
        arguments = scorer.arguments
        self.targets = identity.encode(targets_of(run)) if scorer.by_target else b""
        self.app = identity.digest([app_of(run), name_of(run)]) if "source" in arguments else None
        self.sees_times = scorer.sees_times
        self.reads_index = "index" in arguments or "example" in arguments
        self.reads_replication = "replication" in arguments
        self.dataset = run.dataset
        self.replications = int(run.manifest["spec"]["replications"])
        self.total = sum(run.counts.values())
        self._position = -1
        self._rows: Iterator[Unit] = iter(())

    def take(self, start: int, stop: int) -> Iterator[Unit]:
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

    def _all(self) -> Iterator[Unit]:
        responses = iter(self.run)
        traced = iter(()) if self.app is None else traced_of(self.run)
        slot = 0
        for example in self.dataset.examples(0, self.total // self.replications):
            for response in islice(responses, self.replications):
                spans = next(traced, None)
                digest = self._digest(example, response, spans)
                yield Unit(slot, example, response, digest, None if spans is None else spans[1])
                slot += 1

    def _digest(self, example: Example, response: Response, spans: tuple[bytes, Traced] | None) -> bytes:
        """16 bytes that stand for all the scorer can see of a row."""
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
    """What was traced of each row of a run, in order, after the text of it that has no times."""
    spans = SpanStream(run.spans())
    for batch in run.batches([INDEX, "replication", "started", "duration"]):
        columns = (batch.column(name) for name in (INDEX, "replication", "started", "duration"))
        plain = (c if pa.types.is_integer(c.type) else c.cast(pa.int64()) for c in columns)
        for index, replication, started, duration in zip(*(c.to_pylist() for c in plain), strict=True):
            found = spans.of(index, replication)
            yield comparable_rows(found), Traced(orjson.dumps(found), started, duration)


def units_of(run: Run) -> Iterator[Unit]:
    """The rows of a run beside their examples, with what was traced of them."""
    responses, traced = iter(run), traced_of(run)
    replications, slots = int(run.manifest["spec"]["replications"]), count()
    for example in run.dataset.examples(0, sum(run.counts.values()) // replications):
        for response, (_, spans) in zip(islice(responses, replications), traced, strict=False):
            yield Unit(next(slots), example, response, response.digest, spans)


class Sources:
    """What feedbacks were given of the rows of a run, for who reads what they were asked.

    Args:
        run: whose rows; None where it is not at hand, which then has no sources.
    """

    def __init__(self, run: Run | None) -> None:
        self._run = run
        self._units: Iterator[Unit] = iter(())
        self._unit: Unit | None = None
        self._made: dict[int, FeedbackInput] = {}  # of this unit, by response

    def of(self, index: int, replication: int, number: int | None) -> FeedbackInput | None:
        """The source of a row and one of its responses; None where there is none. Quick in ascending order.

        Args:
            index: the row's `_index_`.
            replication: which repeat.
            number: which of its responses.
        """
        unit = self._at((index, replication))
        outputs = (unit.response.responses if unit else None) or ()
        if self._run is None or unit is None or number is None or number >= len(outputs):
            return None
        if number not in self._made:
            self._made[number] = source_of(unit, outputs[number], app_of(self._run), name_of(self._run))
        return self._made[number]

    def _at(self, key: tuple[int, int]) -> Unit | None:
        if self._run is None or (self._unit is not None and _key_of(self._unit) == key):
            return self._unit
        if self._unit is None or _key_of(self._unit) > key:
            self._units = units_of(self._run)
        try:
            self._unit, self._made = next(unit for unit in self._units if _key_of(unit) == key), {}
        except (StopIteration, NotFound):  # the store may have lost its dataset
            self._unit = None
        return self._unit


def _key_of(unit: Unit) -> tuple[int, int]:
    return unit.response.index, unit.response.replication


def app_of(run: Run) -> Mapping[str, Any]:
    """What is known of the app that a run was made with."""
    known: Mapping[str, Any] = run.manifest.get("app") or {}
    return known


def batched(units: Iterator[Unit], lane: WorkLog) -> Iterator[Unit]:
    """Each unit carries the ones that follow it."""
    missing = (unit for unit in units if not lane.is_done(unit.slot))
    while chunk := list(islice(missing, GATHER)):
        chunk[0].rest = chunk[1:]
        yield chunk[0]


def name_of(run: Run) -> str:
    """What the task of a run is called."""
    return str(run.manifest["provenance"].get("task", "task"))


class Grader:
    """Asks one scorer about rows and writes down what it says.

    Args:
        scorer: who is asked.
        policy: what is tried again.
        targets: of the dataset, for a scorer that is asked about each.
        app: what is known of the app that was called, for a scorer that sees it.
        name: what the whole call is called, where its trace does not say.
    """

    def __init__(
        self,
        scorer: Scorer,
        policy: Policy,
        targets: Sequence[str] | None = None,
        app: Mapping[str, Any] | None = None,
        name: str = "task",
    ) -> None:
        self.scorer, self.policy = scorer, policy
        self.targets = targets if scorer.by_target else None
        self.columns = dict(scorer.columns)
        self.app, self.name = app or {}, name
        self.readers = [self._source if name == "source" else _ARGUMENTS[name] for name in scorer.arguments]
        self._watches = scorer.is_async or not scorer.cheap  # what is pure asks nobody
        one_by_one = self.grade_async if scorer.is_async else self.grade
        many = self.grade_batch_async if scorer.is_async else self.grade_batch
        self.call: Callable[[Unit], Any] = many if scorer.is_batch else one_by_one

    def grade(self, unit: Unit) -> list[Any]:
        """One result per piece: a Score, or the error that one piece cost."""
        self._begin(unit)
        if not self._watches:
            return [self._ask(unit, piece) for piece in unit.pieces]
        return [self._watched(unit, piece, spent) for piece, spent in zip(unit.pieces, unit.spent, strict=True)]

    async def grade_async(self, unit: Unit) -> list[Any]:
        results: list[Any] = []
        self._begin(unit)
        for piece, spent in zip(unit.pieces, unit.spent, strict=True):
            try:
                with spending(spent):
                    given: Any = self.scorer.score(*self._arguments(unit, piece))
                    results.append(Score.of(await given))
            except Exception as error:
                self._raise_if_transient(error)
                results.append(error)
            else:
                self._raise_what_passes(unit, results[-1])
        return results

    def _begin(self, unit: Unit) -> None:
        unit.pieces = self._pieces(unit)
        if self._watches and not unit.attempts:
            unit.spent = [Spending() for _ in unit.pieces]
        unit.attempts += 1

    def grade_batch(self, unit: Unit) -> list[Any]:
        """The results of all pieces of all the rows of a batch, in order."""
        columns = self._batch(unit)
        return _one_each(columns, self.scorer.score_batch(*columns)) if columns else []  # type: ignore[attr-defined]

    async def grade_batch_async(self, unit: Unit) -> list[Any]:
        columns = self._batch(unit)
        return _one_each(columns, await self.scorer.score_batch(*columns)) if columns else []  # type: ignore[attr-defined]

    def _batch(self, unit: Unit) -> list[list[Any]]:
        """The arguments of all pieces of all the rows of a batch, as columns."""
        for u in (unit, *unit.rest):
            u.pieces = self._pieces(u)
        asked = [self._arguments(u, piece) for u in (unit, *unit.rest) for piece in u.pieces]
        return [list(column) for column in zip(*asked, strict=True)]

    def line(self, unit: Unit, outcome: Outcome) -> tuple[bytes, int]:
        results = iter(outcome.value) if outcome.error is None else None
        lines, failed = [], 0
        for u in (unit, *unit.rest):
            u.pieces = u.pieces or self._pieces(u)  # where the process that made the call is gone
            scores = self._rows(u, results, outcome.error)
            failed += u.response.status != FAILED and any(row[2] == FAILED for row in scores)
            lines.append(line_of(u, scores))
        return b"".join(lines), failed

    def _rows(self, unit: Unit, results: Iterator[Any] | None, error: BaseException | None) -> list[list[Any]]:
        status, reason = self._ungradable(unit.response)
        if status:
            return [
                [None, target, status, reason, None, None, None, None, self._unanswered(unit, status, target)]
                for target in self.targets or (None,)
            ]
        given = islice(results, len(unit.pieces)) if results is not None else [error] * len(unit.pieces)
        spent: Sequence[Spending | None] = unit.spent or [None] * len(unit.pieces)
        return [
            self._row(piece, result) + _taken(asked)
            for piece, result, asked in zip(unit.pieces, given, spent, strict=True)
        ]

    def _ungradable(self, response: Response) -> tuple[str | None, str | None]:
        """The status of a row that no scorer is asked about."""
        if response.status == FAILED:
            error = response.error or {}
            return FAILED, f"task: {error.get('type')}: {error.get('message')}"[:_REASON]
        if response.status == SKIPPED:
            told = "the task was not asked" if response.error is None else f"task: {response.error['message']}"
            return SKIPPED, told[:_REASON]
        if not response.responses:
            return NO_ANSWER.status, NO_ANSWER.reason
        return None, None

    def _pieces(self, unit: Unit) -> list[_Piece]:
        expected, responses = unit.example.expected, unit.response.responses
        if unit.response.status != COMPLETED or not responses:
            return []
        if self.targets is None:
            return [_Piece(n, None, output, expected) for n, output in enumerate(responses)]
        return [
            _Piece(n, target, part_of(output, target), expected[target])
            for n, output in enumerate(responses)
            for target in self.targets
        ]

    def _own(self, name: str, kind: str, value: Any) -> Any:
        """A value of the scorer's own column, in the column's type."""
        if value is None:
            return None
        if kind == "json":
            return Fragment(identity.encode(value))
        if kind in _PARTS:
            return _parts(name, kind, value)
        wanted = _OWN_TYPES[kind]
        if not isinstance(value, wanted) or (kind != "bool" and isinstance(value, bool)):
            raise DataError(f"column {name} holds {kind}, but the scorer gave {value!r}")
        if kind == "double" and not math.isfinite(value):
            raise DataError(f"column {name} is {value}; give a finite number or nothing")
        if kind == "int64" and not -(2**63) <= value < 2**63:
            raise DataError(f"column {name} is {value}, which does not fit in 64 bits")
        if kind == "string":
            _check_text(name, value)
        if kind == "labels":
            for label in value:
                if not isinstance(label, str):
                    raise DataError(f"column {name} holds labels, but the scorer gave {value!r}")
                _check_text(name, label)
        return float(value) if kind == "double" else value

    def _ask(self, unit: Unit, piece: _Piece) -> Any:
        try:
            score = Score.of(self.scorer.score(*self._arguments(unit, piece)))
        except Exception as error:
            self._raise_if_transient(error)
            return error
        self._raise_what_passes(unit, score)
        return score

    def _watched(self, unit: Unit, piece: _Piece, spent: Spending) -> Any:
        with spending(spent):
            return self._ask(unit, piece)

    def _raise_if_transient(self, error: BaseException) -> None:
        if not self.scorer.cheap and self.policy.retries_after(error, 1):
            raise error

    def _raise_what_passes(self, unit: Unit, score: Score) -> None:
        """Raises the error that a score tells of, unless this was the last attempt; then the score says more."""
        if score.error is not None and self.policy.retries_after(score.error, unit.attempts):
            raise score.error

    def _arguments(self, unit: Unit, piece: _Piece) -> list[Any]:
        given = [read(unit, piece) for read in self.readers]
        return given if self.scorer.cheap else [deepcopy(value) for value in given]

    def _source(self, unit: Unit, piece: _Piece) -> FeedbackInput:
        return source_of(unit, piece.output, self.app, self.name)

    def _row(self, piece: _Piece, result: Any) -> list[Any]:
        if not isinstance(result, BaseException):
            try:
                return self._scored(piece, Score.of(result))
            except Exception as error:  # whatever a score is made of, it costs one score
                result = error
        place = place_of(result)
        reason = f"scorer: {type(result).__name__}: {storable_message(result)}"[:_REASON] + (
            f" ({place})" if place else ""
        )
        columns = self._without_score(piece.expected)
        return [piece.number, piece.target, FAILED, reason, None, None, None, None, columns]

    def _scored(self, piece: _Piece, score: Score) -> list[Any]:
        if score.status not in SCORE_STATUSES:
            raise DataError(f"a scorer gives one of the statuses {', '.join(SCORE_STATUSES)}, not {score.status!r}")
        if score.status in (FAILED, SKIPPED) and score.value is not None:
            raise DataError(f"the score is {score.status} and has the value {score.value!r}; give one of them")
        value = None if score.value is None else float(score.value)
        if value is not None and not math.isfinite(value):
            raise DataError(f"the score is {value}; give a finite number, or Score.abstained(reason)")
        _check_text("label", score.label)
        reason, explanation = _told("reason", score.reason), _told("explanation", score.explanation)
        data = None if score.data is None else Fragment(identity.encode(score.data))
        columns = self._cells(score.columns or {})
        return [
            piece.number,
            piece.target,
            score.status,
            f"scorer: {reason}"[:_REASON] if score.status == FAILED else reason,
            value,
            score.label,
            data,
            explanation,
            columns,
        ]

    def _unanswered(self, unit: Unit, status: str, target: str | None) -> dict[str, Any] | None:
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


def line_of(unit: Unit, scores: list[list[Any]]) -> bytes:
    """The journal's line of what a scorer says of a row."""
    return orjson.dumps([unit.slot, unit.digest.hex(), scores]) + b"\n"


def _taken(spent: Spending | None) -> list[dict[str, Any]]:
    """What a score took, as the last part of its row; nothing where nobody was asked."""
    if spent is None or not spent.n_requests:
        return []
    return [{"requests": spent.n_requests, "failed": spent.n_failed, **(usage_of(spent.usage or {}) or {})}]


def _told(name: str, text: Any) -> Any:
    """A text for people as it can be written: half a character in it costs no score."""
    if isinstance(text, str) and not text.isascii():
        return escape_surrogates(text)
    _check_text(name, text)
    return text


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


def _parts(name: str, kind: str, value: Any) -> list[Any]:
    """A list of numbers, or label → score as a list of both."""
    if not isinstance(value, _PARTS[kind]) or isinstance(value, str):
        raise DataError(f"column {name} holds {kind}, but the scorer gave {value!r}")
    labels = list(value) if isinstance(value, Mapping) else []
    numbers = list(value.values() if isinstance(value, Mapping) else value)
    for label in labels:
        if not isinstance(label, str):
            raise DataError(f"column {name} holds scores by label, but a label is {label!r}")
        _check_text(name, label)
    for number in numbers:
        if not isinstance(number, int | float) or isinstance(number, bool) or not _is_finite(number):
            raise DataError(f"column {name} holds {kind}, but one is {number!r}")
    if kind == "numbers":
        return [float(number) for number in numbers]
    return [{"label": label, "score": float(score)} for label, score in zip(labels, numbers, strict=True)]


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


_PARTS: dict[str, Any] = {"numbers": Sequence, "scores": Mapping}

_OWN_TYPES: dict[str, Any] = {"string": str, "int64": int, "double": int | float, "bool": bool, "labels": list}

_ARGUMENTS: dict[str, Callable[[Unit, _Piece], Any]] = {
    "output": lambda unit, piece: piece.output,
    "expected": lambda unit, piece: piece.expected,
    "input": lambda unit, piece: unit.example.input,
    "example": lambda unit, piece: unit.example,
    "index": lambda unit, piece: unit.example.index,
    "replication": lambda unit, piece: unit.response.replication,
    "weight": lambda unit, piece: unit.example.weight,
}


def targets_of(run: Run) -> list[str] | None:
    """The names of what is expected, where the dataset has several."""
    expected = run.dataset.roles.expected
    return sorted(expected) if isinstance(expected, Mapping) else None
