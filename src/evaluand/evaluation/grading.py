"""Grading: asks one scorer about the rows of a run, and writes its scores to the journal.

A record of the journal is a list: slot, digest of what the scorer could see, scores; a score is a list: response index,
target, status, reason, value, label, data, explanation, the scorer's own columns and, if providers were asked, their
usage.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from copy import deepcopy
from itertools import islice
from typing import Any, ClassVar

import orjson
from orjson import Fragment

from evaluand.core import identity
from evaluand.core.errors import DataError, TaskError, storable_message, with_article
from evaluand.core.json_like import escape_surrogates, surrogate_fault
from evaluand.core.placeholders import find_gap
from evaluand.engine.budget import BudgetReached
from evaluand.engine.engine import Code, Engine, Recipe, UnitCodec
from evaluand.engine.engines.local import InlineEngine
from evaluand.engine.keyed_work import KeyedWork, Tally
from evaluand.engine.outcome import Failure, Outcome, abort_error
from evaluand.engine.policy import Policy
from evaluand.evaluation.scorer import NO_ANSWER, RIGHT, WRONG, Score, Scorer, read_number
from evaluand.evaluation.units import FeedbackInput, Piece, Unit, batched, packed, part_of, source_of, unpacked
from evaluand.models.account import Account
from evaluand.models.capture import Capture
from evaluand.models.requests import in_attempt
from evaluand.models.usage import Spending
from evaluand.run.responses import place_of
from evaluand.store.journal import WorkLog
from evaluand.store.tables import COMPLETED, FAILED, SCORE_STATUSES, SCORED, SKIPPED

_REASON = 500


class Grader:
    """Asks one scorer about rows and formats its scores for the journal.

    Args:
        scorer: the scorer.
        policy: which errors are retried.
        targets: targets of the dataset, for a scorer that grades each separately.
        app: facts about the app that was called, for a scorer that reads them.
        name: name of the call, if its trace has none.
        account: what the requests are counted against.
    """

    role: ClassVar = "scorer"
    """What it is called in the reasons of failed rows."""

    def __init__(
        self,
        scorer: Scorer,
        policy: Policy,
        targets: Sequence[str] | None = None,
        app: Mapping[str, Any] | None = None,
        name: str = "task",
        account: Account | None = None,
    ) -> None:
        self.account = account
        self.scorer, self.policy = scorer, policy
        self.targets = targets if scorer.by_target else None
        self.columns = dict(scorer.columns)
        self.app, self.name = app or {}, name
        self.readers = [self._source if name == "source" else _ARGUMENTS[name] for name in scorer.arguments]
        self._checked = _CHECKED.intersection(scorer.arguments) if app else frozenset()
        self._watches = scorer.is_async or not scorer.cheap  # a cheap scorer makes no requests
        one_by_one = self.grade_async if scorer.is_async else self.grade
        many = self.grade_batch_async if scorer.is_async else self.grade_batch
        self.call: Callable[[Unit], Any] = many if scorer.is_batch else one_by_one

    @property
    def stops_alike(self) -> bool:
        """Whether the work stops if its first calls all fail with the same error."""
        return self.scorer.stops_alike

    def work(
        self,
        name: str,
        attempt: int,
        lane: WorkLog,
        take: Callable[[int, int], Iterator[Unit]],
        engine: Engine,
        tally: Tally,
        **options: Any,
    ) -> KeyedWork[Unit]:
        """The grading of the rows of a lane.

        Args:
            name: what the scorer is called in messages.
            attempt: at the evaluation or matches, from 0.
            take: the rows from a slot up to, not including, another one.
            engine: makes the calls, unless they are quick.
            options: of `KeyedWork`.
        """
        assert self.account is not None
        is_batch = self.scorer.is_batch
        code = Code(name, self.scorer.identify, self.scorer.prepare, self.account)
        return KeyedWork(
            lane,
            lambda start, stop: batched(take(start, stop), lane) if is_batch else take(start, stop),
            Recipe(in_attempt(self.call, attempt), self.line, UnitCodec(packed, unpacked), code),
            self.policy,
            InlineEngine() if self.scorer.is_quick else engine,
            tally,
            failure=self.read_failure if self.stops_alike and not is_batch else None,
            stop_reason=self.account.stop_reason,
            **options,
        )

    def read_failure(self, line: bytes) -> Failure:
        """The error in the journal line of a row on which the scorer failed."""
        _, _, scores, *_ = orjson.loads(line)
        errors = (str(score[3]).removeprefix(f"{self.role}: ") for score in scores if score[2] == FAILED)
        return Failure(next(errors, ""))

    def grade(self, unit: Unit) -> list[Any]:
        """One result for each piece: a Score, or the error raised for that piece."""
        self._begin(unit)
        if not self._watches:
            return [self._ask(unit, piece) for piece in unit.pieces]
        results = []
        for piece, spent in zip(unit.pieces, unit.spent, strict=True):
            with self._counted(spent):
                results.append(self._ask(unit, piece))
        return results

    async def grade_async(self, unit: Unit) -> list[Any]:
        results: list[Any] = []
        self._begin(unit)
        for piece, spent in zip(unit.pieces, unit.spent, strict=True):
            try:
                with self._counted(spent):
                    pending: Any = self.scorer.score(*self._arguments(unit, piece))
                    results.append(self.scorer.as_score(await pending))
            except Exception as error:
                self._raise_to_engine(error)
                results.append(error)
            else:
                self._raise_if_retried(unit, results[-1])
        return results

    def grade_now(self, unit: Unit) -> list[list[Any]]:
        """The scores of a row, by a scorer that neither waits nor costs.

        Raises:
            Aborted: an error that stops everything.
        """
        status, reason = self._ungradable(unit)
        if status:
            return self._ungraded(unit, status, reason)
        try:
            return [self._row(piece, self._ask(unit, piece)) for piece in self._pieces(unit)]
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # whatever a scorer raises, SystemExit too, costs one row
            if self.policy.stops_at(error):
                raise abort_error(unit, error) from error
            return [self._row(piece, error) for piece in self._pieces(unit)]

    def _begin(self, unit: Unit) -> None:
        unit.pieces = self._pieces(unit)
        if self._watches and not unit.attempts:
            unit.spent = [Spending() for _ in unit.pieces]
        unit.attempts += 1

    def grade_batch(self, unit: Unit) -> list[Any]:
        """The results of all pieces of all the rows of a batch, in order."""
        columns = self._batch(unit)
        with self._counted(unit.spent[0]):
            return _check_batch(columns, self.scorer.score_batch(*columns)) if columns else []  # type: ignore[attr-defined]

    async def grade_batch_async(self, unit: Unit) -> list[Any]:
        columns = self._batch(unit)
        with self._counted(unit.spent[0]):
            return _check_batch(columns, await self.scorer.score_batch(*columns)) if columns else []  # type: ignore[attr-defined]

    def _counted(self, spent: Spending) -> AbstractContextManager[Any]:
        """A block whose requests are counted."""
        if self.account:
            return self.account.charge(lambda: spent, is_traced=False)
        return Capture(None, lambda: spent, self.policy.observe_models, is_traced=False)

    def _batch(self, unit: Unit) -> list[list[Any]]:
        """The arguments of all pieces of all the rows of a batch, as columns."""
        if not unit.attempts:
            unit.spent = [Spending()]
        unit.attempts += 1
        for u in (unit, *unit.rest):
            u.pieces = self._pieces(u)
        asked = [self._arguments(u, piece) for u in (unit, *unit.rest) for piece in u.pieces]
        return [list(column) for column in zip(*asked, strict=True)]

    def line(self, unit: Unit, outcome: Outcome) -> tuple[bytes, int]:
        results = iter(outcome.value) if outcome.error is None else None
        lines, failed = [], 0
        units = (unit, *unit.rest)
        for u in units:
            u.pieces = u.pieces or self._pieces(u)  # unset if the process that made the call has ended
        if self.scorer.is_batch and unit.spent:
            shares = iter(unit.spent[0].divide(sum(len(u.pieces) for u in units)))
            for u in units:
                u.spent = [*islice(shares, len(u.pieces))]
        for u in units:
            scores = self._rows(u, results, outcome.error)
            failed += u.response.status != FAILED and FAILED in [row[2] for row in scores]
            lines.append(line_of(u, scores))
        return b"".join(lines), failed

    def _rows(self, unit: Unit, results: Iterator[Any] | None, error: BaseException | None) -> list[list[Any]]:
        status, reason = self._ungradable(unit)
        if status:
            return self._ungraded(unit, status, reason)
        of_unit = islice(results, len(unit.pieces)) if results is not None else [error] * len(unit.pieces)
        rows = [self._row(piece, result) for piece, result in zip(unit.pieces, of_unit, strict=True)]
        if unit.spent:
            for row, spent in zip(rows, unit.spent, strict=True):
                row += filter(None, [spent.usage])
        return rows

    def _ungraded(self, unit: Unit, status: str, reason: str | None) -> list[list[Any]]:
        rows: list[list[Any]] = [[None, target, status, reason, *[None] * 5] for target in self.targets or (None,)]
        for row in rows if status != SKIPPED else ():
            row[-1] = self._without_score(part_of(unit.example.expected, row[1]))
        return rows

    def _ungradable(self, unit: Unit) -> tuple[str | None, str | None]:
        """Status and reason of a row that cannot be graded; None for a row that can."""
        response = unit.response
        if response.status == FAILED:
            error = response.error or {}
            return FAILED, f"task: {error.get('type')}: {error.get('message')}"[:_REASON]
        if response.status == SKIPPED:
            reason = "the task was not asked" if response.error is None else f"task: {response.error['message']}"
            return SKIPPED, reason[:_REASON]
        if not response.responses:
            return NO_ANSWER.status, NO_ANSWER.reason
        if gap := self._find_gap(unit):
            return FAILED, f"{gap}; record a smaller one"
        return None, None

    def _find_gap(self, unit: Unit) -> str | None:
        """What the scorer reads of a recorded call although it was not stored; None where that is nothing."""
        if not self._checked:
            return None
        for name, values in (("output", unit.response.responses or ()), ("input", (unit.example.input,))):
            if name not in self._checked:
                continue
            for value in values:
                if type(value) is not str and (gap := find_gap(value)):
                    return f"the {name}{gap.path} {gap}"
        return None

    def _pieces(self, unit: Unit) -> list[Piece]:
        expected, responses = unit.example.expected, unit.response.responses
        if unit.response.status != COMPLETED or not responses or self._find_gap(unit):
            return []
        if self.targets is None:
            return [Piece(n, None, output, expected) for n, output in enumerate(responses)]
        return [
            Piece(n, target, part_of(output, target), expected[target])
            for n, output in enumerate(responses)
            for target in self.targets
        ]

    def _convert_cell(self, name: str, kind: str, value: Any) -> Any:
        """A value of the scorer's own column, in the column's type."""
        if kind == "json":
            return Fragment(identity.encode(value))
        if kind == "double":
            return read_number(f"column {name}", value)
        if not isinstance(value, _CELL_TYPES[kind]) or (kind == "int64" and isinstance(value, bool)):
            raise DataError(f"column {name} holds {kind}, but the scorer gave {value!r}")
        if kind == "int64" and not -(2**63) <= value < 2**63:
            raise DataError(f"column {name} is {value}, which does not fit in 64 bits")
        for text in (value,) if kind == "string" else value if kind in ("labels", "scores") else ():
            _check_text(name, text)
        if kind == "numbers":
            return [read_number(f"column {name}", number) for number in value]
        if kind == "scores":
            return [{"label": text, "score": read_number(f"column {name}", score)} for text, score in value.items()]
        return value

    def _ask(self, unit: Unit, piece: Piece) -> Any:
        try:
            score = self.scorer.as_score(self.scorer.score(*self._arguments(unit, piece)))
        except Exception as error:
            self._raise_to_engine(error)
            return error
        self._raise_if_retried(unit, score)
        return score

    def _raise_to_engine(self, error: BaseException) -> None:
        """Raises an error that is worth a retry, or after which nothing more is to be asked."""
        stops = isinstance(error, BudgetReached) or (isinstance(error, TaskError) and error.stops)
        if stops or (not self.scorer.cheap and self.policy.retries_after(error, 1)):
            raise error

    def _raise_if_retried(self, unit: Unit, score: Score) -> None:
        """Raises the error in a score if it is to be retried; after the last attempt the score is reported."""
        if score.error is not None and self.policy.retries_after(score.error, unit.attempts):
            raise score.error

    def _arguments(self, unit: Unit, piece: Piece) -> list[Any]:
        arguments = [read(unit, piece) for read in self.readers]
        return arguments if self.scorer.cheap else [deepcopy(value) for value in arguments]

    def _source(self, unit: Unit, piece: Piece) -> FeedbackInput:
        return source_of(unit, piece.output, self.app, self.name)

    def _row(self, piece: Piece, result: Any) -> list[Any]:
        if not isinstance(result, BaseException):
            try:
                return self._scored(piece, result if isinstance(result, Score) else self.scorer.as_score(result))
            except Exception as error:  # an invalid score fails this row alone
                result = error
        place = place_of(result)
        reason = f"{self.role}: {type(result).__name__}: {storable_message(result)}"[:_REASON] + (
            f" ({place})" if place else ""
        )
        columns = self._without_score(piece.expected)
        return [piece.number, piece.target, FAILED, reason, None, None, None, None, columns]

    def _scored(self, piece: Piece, score: Score) -> list[Any]:
        if (score is RIGHT or score is WRONG) and not self.columns:
            return [piece.number, piece.target, SCORED, None, score.value, None, None, None, None]
        if score.status not in SCORE_STATUSES:
            raise DataError(f"a scorer gives one of the statuses {', '.join(SCORE_STATUSES)}, not {score.status!r}")
        if score.status in (FAILED, SKIPPED) and score.value is not None:
            raise DataError(f"the score is {score.status} and has the value {score.value!r}; give one of them")
        value = None if score.value is None else float(score.value)
        if value is not None and not math.isfinite(value):
            raise DataError(f"the score is {value}; give a finite number, or Score.abstained(reason)")
        _check_text("label", score.label)
        reason = _storable_text("reason", score.reason)
        if score.status in (FAILED, SKIPPED) and reason is not None:  # the message of an error
            reason = storable_message(reason)
        explanation = _storable_text("explanation", score.explanation)
        data = None if score.data is None else Fragment(identity.encode(score.data))
        columns = self._cells(score.columns or {})
        return [
            piece.number,
            piece.target,
            score.status,
            f"{self.role}: {reason}"[:_REASON] if score.status == FAILED else reason,
            value,
            score.label,
            data,
            explanation,
            columns,
        ]

    def _without_score(self, expected: Any) -> dict[str, Any] | None:
        """The scorer's columns of a row that it does not grade."""
        try:
            cells = self.scorer.unanswered(expected)
            return None if cells is None else self._cells(cells)
        except Exception:  # the expected value is invalid too
            return None

    def _cells(self, values: Mapping[str, Any]) -> dict[str, Any] | None:
        if not values and not self.columns:
            return None
        if values and (unknown := values.keys() - self.columns.keys()):
            raise DataError(
                f"the score has the column {min(unknown)!r}, which the scorer does not declare in `columns`"
            )
        return {
            name: None if (value := values.get(name)) is None else self._convert_cell(name, kind, value)
            for name, kind in self.columns.items()
        }


N_FIELDS = 3  # of a journal record, before the inputs that were observed


def line_of(unit: Unit, scores: list[list[Any]]) -> bytes:
    """The journal's line for the scores of a row."""
    return orjson.dumps([unit.slot, unit.digest.hex(), scores]) + b"\n"


def _storable_text(name: str, text: Any) -> Any:
    """A text for people, with lone surrogates escaped: they do not fail the score."""
    if isinstance(text, str) and not text.isascii():
        return escape_surrogates(text)
    _check_text(name, text)
    return text


def _check_text(name: str, value: Any) -> None:
    if value is None or (type(value) is str and value.isascii()):
        return
    if not isinstance(value, str):
        raise DataError(f"{name} is text, not {with_article(type(value).__name__)}")
    if fault := surrogate_fault(value):
        raise DataError(f"{name} {fault}")


def _check_batch(columns: list[list[Any]], results: Any) -> list[Any]:
    scores = list(results)
    if len(scores) != len(columns[0]):
        counts = f"{len(columns[0])} responses and gave {len(scores)} scores"
        raise DataError(f"the scorer was given {counts}; give one each")
    return scores


_CHECKED = frozenset(("output", "input"))
"""Arguments in which the record of an app's call may lack what was not stored; feedbacks check what they select."""

_CELL_TYPES: dict[str, Any] = {"string": str, "int64": int, "bool": bool, "scores": Mapping}
_CELL_TYPES |= dict.fromkeys(("labels", "numbers"), list | tuple)

_ARGUMENTS: dict[str, Callable[[Unit, Piece], Any]] = {
    "output": lambda unit, piece: piece.output,
    "expected": lambda unit, piece: piece.expected,
    "input": lambda unit, piece: unit.example.input,
    "example": lambda unit, piece: unit.example,
    "index": lambda unit, piece: unit.example.index,
    "replication": lambda unit, piece: unit.response.replication,
    "weight": lambda unit, piece: unit.example.weight,
    "first": lambda unit, piece: piece.output[0],
    "second": lambda unit, piece: piece.output[1],
    "responses": lambda unit, piece: piece.output,
}
