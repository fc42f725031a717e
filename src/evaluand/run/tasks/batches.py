"""Several examples in one request, for services that take lists.

Each example is still one call of the run, with a row, retries and a status of its own. Calls that are in flight at the
same time are gathered: a request goes out when it is full, or a moment after its first row came. So a run needs as many
calls at once as a batch holds, or more.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluand.core.errors import kind_of
from evaluand.data.adapters.base.apply import INDEX
from evaluand.data.schema.keys import RESPONSES
from evaluand.engine.http import BadAnswer, BadRequest
from evaluand.engine.rate_limit import RateLimit

LINGER = 0.01  # seconds a batch waits for more rows
_SHOWN = 5
_WHATEVER_IS_ASKED = ("401", "403", "404", "405")  # refusals that have nothing to do with the rows


@dataclass(frozen=True)
class Asked:
    """What one call asks.

    Attributes:
        row: the JSON of an object with its `_index_`.
        pace: what further requests wait for, if a batch is refused.
        notes: how much of an answer was left out, by its sort; the call logs it, while its span is open.
    """

    index: int
    replication: int
    row: bytes
    pace: RateLimit | None = None
    notes: dict[str, int] = field(default_factory=dict)


_Pair = tuple[Asked, asyncio.Future[Any]]


@dataclass
class _Batch:
    asked: list[Asked] = field(default_factory=list)
    answers: list[asyncio.Future[Any]] = field(default_factory=list)
    sending: asyncio.Task[None] | None = None


class Batches:
    """Gathers rows into requests and gives each call its part of the answer.

    Args:
        size: rows in one request.
        send: makes a request of the JSON of some rows.
        on_duplicate: `deduplicate` or `fail`.
        on_missing: `fail` or `ignore`.
        on_foreign: `fail` or `ignore`.
        stops: the first bad request ends everything, so that none is made after it.
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

    async def ask(self, asked: Asked) -> Any:
        """The output for one row.

        Raises:
            BadAnswer: there is none, or not one, as the policies have it.
        """
        loop = asyncio.get_running_loop()
        key = (loop, asked.replication)  # in one request an `_index_` stands for one row
        batch = self._waiting.get(key)
        if batch is None:
            batch = self._waiting[key] = _Batch()
            loop.call_later(LINGER, self._start, key, batch)
        answer: asyncio.Future[Any] = loop.create_future()
        batch.asked.append(asked)
        batch.answers.append(answer)
        if len(batch.asked) >= self.size:
            self._start(key, batch)
        try:
            return await answer
        finally:
            if batch.sending is not None and all(each.done() for each in batch.answers):
                batch.sending.cancel()  # nobody waits for it any more

    def _start(self, key: tuple[asyncio.AbstractEventLoop, int], batch: _Batch) -> None:
        if self._waiting.get(key) is batch:
            del self._waiting[key]
            batch.sending = asyncio.ensure_future(self._exchange(batch))

    async def _exchange(self, batch: _Batch) -> None:
        pairs = list(zip(batch.asked, batch.answers, strict=True))
        try:
            await self._settle(pairs)
        except BaseException as error:
            for _, answer in pairs:
                _give(answer, error)
            if not isinstance(error, Exception):
                raise

    async def _settle(self, pairs: Sequence[_Pair]) -> None:
        """Gives each row that still waits its output, or the error that it comes to.

        Of a refused batch each half is asked by itself, so that a bad row costs only itself.

        Raises:
            BadRequest: which ends everything.
        """
        pairs = [(asked, answer) for asked, answer in pairs if not answer.done()]
        if not pairs:
            return
        try:
            outputs = self._outputs(pairs, await self._send(b"[" + b",".join(asked.row for asked, _ in pairs) + b"]"))
        except BadRequest as error:
            if len(pairs) > 1 and error.code not in _WHATEVER_IS_ASKED:
                return await self._halve(pairs)
            outputs = [error] * len(pairs)
        except Exception as error:
            outputs = [error] * len(pairs)
        for (_, answer), output in zip(pairs, outputs, strict=True):
            _give(answer, output)
        if self._stops and isinstance(outputs[0], BadRequest):
            raise outputs[0]

    async def _halve(self, pairs: Sequence[_Pair]) -> None:
        middle = len(pairs) // 2
        halves = (pairs[:middle], pairs[middle:])
        if not self._stops:
            await asyncio.gather(*map(self._ask_anew, halves))
            return
        for half in halves:
            await self._ask_anew(half)

    async def _ask_anew(self, pairs: Sequence[_Pair]) -> None:
        if pace := pairs[0][0].pace:
            await pace.wait_async()
        await self._settle(pairs)

    def _outputs(self, pairs: Sequence[_Pair], answer: Any) -> list[Any]:
        """What an answer holds for each row: an output, or the error that takes its place."""
        asked = [each for each, _ in pairs]
        found: dict[int, list[Any]] = {each.index: [] for each in asked}
        foreign: list[int | None] = []
        for index, output in _elements(answer):
            if index is not None and index in found:
                found[index].append(output)
            else:
                foreign.append(index)
        if foreign:
            if self.on_foreign == "fail":
                shown = ", ".join("none" if index is None else str(index) for index in foreign[:_SHOWN])
                one = len(foreign) == 1
                told = (
                    f"{len(foreign)} of its outputs {'is' if one else 'are'} for an {INDEX} that was not asked: {shown}"
                )
                told += ", …" * (len(foreign) > _SHOWN)
                raise BadAnswer(
                    f"the answer to {len(asked)} row{'s' * (len(asked) != 1)} is not for them: {told}", code="foreign"
                )
            told_by = next((each for each, answer in pairs if not answer.done()), asked[0])  # some may have timed out
            told_by.notes["foreign_outputs"] = len(foreign)
        return [self._one_of(found[each.index], each) for each in asked]

    def _one_of(self, outputs: list[Any], asked: Asked) -> Any:
        if not outputs:
            if self.on_missing == "fail":
                return BadAnswer(f"the answer holds no output for {INDEX} {asked.index}", code="missing")
            return None
        if len(outputs) > 1:
            if self.on_duplicate == "fail":
                told = f"the answer holds {len(outputs)} outputs for {INDEX} {asked.index}"
                return BadAnswer(told, code="duplicate")
            asked.notes["duplicate_outputs"] = len(outputs) - 1
        return outputs[0]


def _elements(answer: Any) -> Iterator[tuple[int | None, Any]]:
    """The `_index_` of each element of an answer, None where it has none, and the output that it holds."""
    if not isinstance(answer, list):
        raise BadAnswer(f"the answer to a batch is {kind_of(answer)}, not a list", code="form")
    for element in answer:
        if not isinstance(element, dict) or type(element.get(INDEX)) is not int:
            yield None, element
        else:
            rest = {name: value for name, value in element.items() if name != INDEX}
            yield element[INDEX], rest.get(RESPONSES, rest)


def _give(answer: asyncio.Future[Any], output: Any) -> None:
    if answer.done():
        return
    if isinstance(output, asyncio.CancelledError):
        answer.cancel()
    elif isinstance(output, BaseException):
        answer.set_exception(_copied(output))
    else:
        answer.set_result(output)


def _copied(error: BaseException) -> BaseException:
    """Each call raises an error of its own, unless it is one that cannot be copied."""
    try:
        return copy.copy(error)
    except Exception:
        return error
