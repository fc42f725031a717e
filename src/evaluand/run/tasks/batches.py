"""Several examples in one request, for services that take lists.

Each example is still one call of the run, with its row, retries and status. Concurrent calls are gathered: a request is
sent when it is full, or shortly after its first row. So a run needs at least as many concurrent calls as a batch has
rows.
"""

import asyncio
import copy
import math
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluand.core.errors import kind_of, plural
from evaluand.data.adapters.base.adapter import INDEX
from evaluand.data.schema.keys import RESPONSES
from evaluand.engine.http import BadAnswer, BadRequest
from evaluand.engine.rate_limit import RateLimit

LINGER = 0.01  # seconds a batch waits for more rows
_MAX_LISTED = 5
_REFUSALS_OF_ANY_ROW = ("401", "402", "403", "404", "405", "407", "410")  # refusals that do not depend on the rows
_FAULTS_OF_A_ROW = ("content_type", "encoding", "foreign", "form", "json", "too_large")
"""Codes of invalid answers to a batch that one of its rows may have caused."""
_SAMPLED = 8  # rows; in smaller batches, single rows cost as much as halves
_FEWEST_SINGLE = 5
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(eq=False)
class BatchRow:
    """The row of one call.

    Attributes:
        row: the JSON of an object with its `_index_`.
        pace: the rate limit for further requests, if a batch is refused.
        notes: counts of ignored outputs by kind; the call logs them while its span is open.
        answer: the output, or the error in its place, once it is known.
    """

    index: int
    replication: int
    row: bytes
    pace: RateLimit | None = None
    notes: dict[str, int] = field(default_factory=dict)
    answer: asyncio.Future[Any] = field(init=False)

    def settle(self, output: Any) -> None:
        """Sets the output or the error, unless the call has ended meanwhile."""
        if self.answer.done():
            return
        if isinstance(output, asyncio.CancelledError):
            self.answer.cancel()
        elif isinstance(output, BaseException):
            self.answer.set_exception(_copy_error(output))
        else:
            self.answer.set_result(output)


_Outcome = dict[int, Any] | Exception
"""The outputs of some rows by `_index_`, or why there are none."""


@dataclass
class _Batch:
    rows: list[BatchRow] = field(default_factory=list)
    sending: asyncio.Task[None] | None = None


class Batches:
    """Gathers rows into requests and returns to each call its part of the answer.

    Args:
        size: rows in one request.
        send: sends the JSON of some rows.
        on_duplicate: `deduplicate` or `fail`.
        on_missing: `fail` or `ignore`.
        on_foreign: `fail` or `ignore`.
        stops: whether the first bad request ends everything.
    """

    def __init__(
        self,
        size: int,
        send: Callable[[bytes], Awaitable[Any]],
        on_duplicate: str,
        on_missing: str,
        on_foreign: str,
        stops: bool = False,
    ) -> None:
        self.size, self._send, self._stops = size, send, stops
        self.on_duplicate, self.on_missing, self.on_foreign = on_duplicate, on_missing, on_foreign
        self._waiting: dict[tuple[asyncio.AbstractEventLoop, int], _Batch] = {}

    async def ask(self, row: BatchRow) -> Any:
        """The output for one row."""
        loop = asyncio.get_running_loop()
        key = (loop, row.replication)  # an `_index_` must be unique within a request
        batch = self._waiting.get(key)
        if batch is None:
            batch = self._waiting[key] = _Batch()
            loop.call_later(LINGER, self._start, key, batch)
        row.answer = loop.create_future()
        batch.rows.append(row)
        if len(batch.rows) >= self.size:
            self._start(key, batch)
        try:
            return await row.answer
        finally:
            if batch.sending is not None and all(row.answer.done() for row in batch.rows):
                batch.sending.cancel()  # no call waits for it any more

    def _start(self, key: tuple[asyncio.AbstractEventLoop, int], batch: _Batch) -> None:
        if self._waiting.get(key) is batch:
            del self._waiting[key]
            batch.sending = asyncio.ensure_future(self._exchange(batch))

    async def _exchange(self, batch: _Batch) -> None:
        """Set the output or the error of each row that still waits.

        A refused batch, or one with an invalid answer, is sent again in halves, so that a bad row fails only itself:
        k bad rows of n cost about 2 k log₂ n further requests, and fewer than 2 n. If both halves have an invalid
        answer too, some rows are sent singly; if none of them has another answer, the service is at fault, and all
        rows fail after about 2 log₂ n requests.
        """
        try:
            outcome = await self._request(batch.rows)
            may_sample = isinstance(outcome, BadAnswer) and len(batch.rows) >= _SAMPLED
            await self._settle(batch.rows, outcome, may_sample=may_sample)
        except BaseException as error:
            for row in batch.rows:
                row.settle(error)
            if not isinstance(error, Exception):
                raise

    async def _request(self, rows: Sequence[BatchRow], *, is_repeated: bool = False) -> _Outcome:
        """The outcome of the rows that still wait."""
        if is_repeated and (pace := rows[0].pace):
            await pace.wait_async()
        if not (waiting := _waiting(rows)):
            return {}
        try:
            return self._outputs(waiting, await self._send(b"[" + b",".join(row.row for row in waiting) + b"]"))
        except Exception as error:
            return error

    async def _settle(self, rows: Sequence[BatchRow], outcome: _Outcome, *, may_sample: bool = False) -> None:
        if isinstance(outcome, Exception) and len(rows) > 1 and _may_be_of_one_row(outcome):
            return await self._halve(_waiting(rows), outcome, may_sample)
        for row in _waiting(rows):
            row.settle(outcome if isinstance(outcome, Exception) else outcome[row.index])
        outputs = [outcome] if isinstance(outcome, Exception) else list(outcome.values())
        if self._stops and outputs and isinstance(outputs[0], BadRequest):
            raise outputs[0]

    async def _halve(self, rows: Sequence[BatchRow], error: Exception, may_sample: bool) -> None:
        middle = len(rows) // 2
        halves = [half for half in (rows[:middle], rows[middle:]) if half]
        if self._stops and isinstance(error, BadRequest):
            for half in halves:
                await self._settle(half, await self._request(half, is_repeated=True))
            return
        outcomes = await self._request_all(halves)
        is_alike = may_sample and all(_are_alike(outcome, error) for outcome in outcomes)
        if is_alike and await self._fails_singly(rows, error):
            for row in rows:
                row.settle(error)
            return
        for half, outcome in zip(halves, outcomes, strict=True):
            await self._settle(half, outcome)

    async def _fails_singly(self, rows: Sequence[BatchRow], error: Exception) -> bool:
        """Whether some rows, sent singly, all have an answer as invalid as that of the batch; sets their outcomes."""
        chosen = [[rows[place]] for place in _spread_places(len(rows))]
        for together in (chosen[:2], chosen[2:]):
            outcomes = await self._request_all(together)
            for row, outcome in zip(together, outcomes, strict=True):
                await self._settle(row, outcome)
            if not all(_are_alike(outcome, error) for outcome in outcomes):
                return False
        return True

    async def _request_all(self, parts: Sequence[Sequence[BatchRow]]) -> list[_Outcome]:
        return await asyncio.gather(*(self._request(part, is_repeated=True) for part in parts))

    def _outputs(self, rows: Sequence[BatchRow], answer: Any) -> dict[int, Any]:
        """`_index_` → the output of each row in an answer, or the error in its place."""
        found: dict[int, list[Any]] = {row.index: [] for row in rows}
        foreign: list[int | None] = []
        for index, output in _elements(answer):
            if index is not None and index in found:
                found[index].append(output)
            else:
                foreign.append(index)
        if foreign and self.on_foreign == "fail":
            listed = ["none" if index is None else str(index) for index in foreign[:_MAX_LISTED]]
            if len(foreign) > _MAX_LISTED:
                listed.append("…")
            raise BadAnswer(
                f"the answer to {plural(len(rows), 'row')} has {plural(len(foreign), 'output')} for an {INDEX} that"
                f" was not requested: {', '.join(listed)}",
                code="foreign",
            )
        if foreign:
            noted = next(iter(_waiting(rows)), rows[0])  # some may have timed out
            noted.notes["foreign_outputs"] = len(foreign)
        return {row.index: self._single_output(found[row.index], row) for row in rows}

    def _single_output(self, outputs: list[Any], row: BatchRow) -> Any:
        if not outputs:
            if self.on_missing == "fail":
                return BadAnswer(f"the answer holds no output for {INDEX} {row.index}", code="missing")
            return None
        if len(outputs) > 1:
            if self.on_duplicate == "fail":
                return BadAnswer(f"the answer holds {len(outputs)} outputs for {INDEX} {row.index}", code="duplicate")
            row.notes["duplicate_outputs"] = len(outputs) - 1
        return outputs[0]


def _may_be_of_one_row(error: Exception) -> bool:
    """Whether one row of a batch may have caused its error, so that the other rows would succeed without it."""
    if isinstance(error, BadRequest):
        return error.code not in _REFUSALS_OF_ANY_ROW
    return isinstance(error, BadAnswer) and error.code in _FAULTS_OF_A_ROW


def _are_alike(outcome: _Outcome, error: Exception) -> bool:
    """Whether an outcome is an error for the same reason."""
    return isinstance(outcome, BadAnswer) and isinstance(error, BadAnswer) and outcome.code == error.code


def _waiting(rows: Sequence[BatchRow]) -> Sequence[BatchRow]:
    return [row for row in rows if not row.answer.done()]


def _copy_error(error: BaseException) -> BaseException:
    """A copy of an error, so that each call raises its own; the error itself if it cannot be copied."""
    try:
        return copy.copy(error)
    except Exception:
        return error


def _spread_places(rows: int) -> list[int]:
    """About 2 log₂ n places in a batch: the first, the last, and others at no regular distance."""
    singles = max(_FEWEST_SINGLE, 2 * math.ceil(math.log2(rows)) - 3)
    inner = (int(rows * (step * _GOLDEN % 1)) for step in range(1, rows))
    return list(dict.fromkeys([0, rows - 1, *inner]))[:singles]


def _elements(answer: Any) -> Iterator[tuple[int | None, Any]]:
    """The `_index_` of each element of an answer, None if it has none, and its output."""
    if not isinstance(answer, list):
        raise BadAnswer(f"the answer to a batch is {kind_of(answer)}, not a list", code="form")
    for element in answer:
        if not isinstance(element, dict) or type(element.get(INDEX)) is not int:
            yield None, element
        else:
            rest = {name: value for name, value in element.items() if name != INDEX}
            yield element[INDEX], rest.get(RESPONSES, rest)
