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


@dataclass(frozen=True)
class BatchRow:
    """The row of one call.

    Attributes:
        row: the JSON of an object with its `_index_`.
        pace: the rate limit for further requests, if a batch is refused.
        notes: counts of ignored outputs by kind; the call logs them while its span is open.
    """

    index: int
    replication: int
    row: bytes
    pace: RateLimit | None = None
    notes: dict[str, int] = field(default_factory=dict)


_Pair = tuple[BatchRow, asyncio.Future[Any]]


@dataclass
class _Batch:
    rows: list[BatchRow] = field(default_factory=list)
    answers: list[asyncio.Future[Any]] = field(default_factory=list)
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
        answer: asyncio.Future[Any] = loop.create_future()
        batch.rows.append(row)
        batch.answers.append(answer)
        if len(batch.rows) >= self.size:
            self._start(key, batch)
        try:
            return await answer
        finally:
            if batch.sending is not None and all(each.done() for each in batch.answers):
                batch.sending.cancel()  # no call waits for it any more

    def _start(self, key: tuple[asyncio.AbstractEventLoop, int], batch: _Batch) -> None:
        if self._waiting.get(key) is batch:
            del self._waiting[key]
            batch.sending = asyncio.ensure_future(self._exchange(batch))

    async def _exchange(self, batch: _Batch) -> None:
        pairs = list(zip(batch.rows, batch.answers, strict=True))
        try:
            await self._settle(pairs)
        except BaseException as error:
            for _, answer in pairs:
                _set_answer(answer, error)
            if not isinstance(error, Exception):
                raise

    async def _settle(self, pairs: Sequence[_Pair]) -> None:
        """Set the output or the error of each row that still waits.

        A refused batch, or one with an invalid answer, is sent again in halves, so that a bad row fails only itself:
        k bad rows of n cost about 2 k log₂ n further requests, and fewer than 2 n. If both halves have an invalid
        answer too, some rows are sent singly; if none of them has another answer, the service is at fault, and all
        rows fail after about 2 log₂ n requests.

        Raises:
            BadRequest: it ends everything.
        """
        outcome = await self._request(pairs)
        if isinstance(outcome, BadAnswer) and _may_be_of_one_row(outcome) and len(pairs) >= _SAMPLED:
            return await self._halve(pairs, outcome, sample=True)
        await self._set_outcome(pairs, outcome)

    async def _request(self, pairs: Sequence[_Pair]) -> dict[int, Any] | Exception:
        """The outputs of the rows that still wait, or why there are none."""
        pairs = [(row, answer) for row, answer in pairs if not answer.done()]
        if not pairs:
            return {}
        try:
            return self._outputs(pairs, await self._send(b"[" + b",".join(row.row for row, _ in pairs) + b"]"))
        except Exception as error:
            return error

    async def _set_outcome(self, pairs: Sequence[_Pair], outcome: dict[int, Any] | Exception) -> None:
        if isinstance(outcome, Exception) and len(pairs) > 1 and _may_be_of_one_row(outcome):
            return await self._halve(pairs, outcome)
        for row, answer in pairs:
            if not answer.done():
                _set_answer(answer, outcome if isinstance(outcome, Exception) else outcome[row.index])
        outputs = [outcome] if isinstance(outcome, Exception) else list(outcome.values())
        if self._stops and outputs and isinstance(outputs[0], BadRequest):
            raise outputs[0]

    async def _halve(self, pairs: Sequence[_Pair], error: Exception, sample: bool = False) -> None:
        pairs = [(row, answer) for row, answer in pairs if not answer.done()]
        middle = len(pairs) // 2
        halves = [half for half in (pairs[:middle], pairs[middle:]) if half]
        if self._stops and isinstance(error, BadRequest):
            for half in halves:
                await self._set_outcome(half, await self._request_again(half))
            return
        outcomes = await asyncio.gather(*map(self._request_again, halves))
        if (
            sample
            and all(_are_alike(outcome, error) for outcome in outcomes)
            and await self._fails_singly(pairs, error)
        ):
            for _, answer in pairs:
                _set_answer(answer, error)
            return
        for half, outcome in zip(halves, outcomes, strict=True):
            await self._set_outcome(half, outcome)

    async def _fails_singly(self, pairs: Sequence[_Pair], error: Exception) -> bool:
        """Whether some rows, sent singly, all have an answer as invalid as that of the batch; sets their outcomes."""
        places = _spread_places(len(pairs))
        for together in (places[:2], places[2:]):
            rows = [[pairs[place]] for place in together]
            outcomes = await asyncio.gather(*map(self._request_again, rows))
            for row, outcome in zip(rows, outcomes, strict=True):
                await self._set_outcome(row, outcome)
            if not all(_are_alike(outcome, error) for outcome in outcomes):
                return False
        return True

    async def _request_again(self, pairs: Sequence[_Pair]) -> dict[int, Any] | Exception:
        if pace := pairs[0][0].pace:
            await pace.wait_async()
        return await self._request(pairs)

    def _outputs(self, pairs: Sequence[_Pair], answer: Any) -> dict[int, Any]:
        """`_index_` → the output of each row in an answer, or the error in its place."""
        rows = [row for row, _ in pairs]
        found: dict[int, list[Any]] = {row.index: [] for row in rows}
        foreign: list[int | None] = []
        for index, output in _elements(answer):
            if index is not None and index in found:
                found[index].append(output)
            else:
                foreign.append(index)
        if foreign:
            if self.on_foreign == "fail":
                listed = ["none" if index is None else str(index) for index in foreign[:_MAX_LISTED]]
                if len(foreign) > _MAX_LISTED:
                    listed.append("…")
                raise BadAnswer(
                    f"the answer to {plural(len(rows), 'row')} has {plural(len(foreign), 'output')} for an {INDEX} that"
                    f" was not requested: {', '.join(listed)}",
                    code="foreign",
                )
            waiting = next((row for row, answer in pairs if not answer.done()), rows[0])  # some may have timed out
            waiting.notes["foreign_outputs"] = len(foreign)
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


def _are_alike(outcome: dict[int, Any] | Exception, error: Exception) -> bool:
    """Whether an outcome is an error for the same reason."""
    return isinstance(outcome, BadAnswer) and isinstance(error, BadAnswer) and outcome.code == error.code


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


def _set_answer(answer: asyncio.Future[Any], output: Any) -> None:
    if answer.done():
        return
    if isinstance(output, asyncio.CancelledError):
        answer.cancel()
    elif isinstance(output, BaseException):
        answer.set_exception(_copy_error(output))
    else:
        answer.set_result(output)


def _copy_error(error: BaseException) -> BaseException:
    """A copy of an error, so that each call raises its own; the error itself if it cannot be copied."""
    try:
        return copy.copy(error)
    except Exception:
        return error
