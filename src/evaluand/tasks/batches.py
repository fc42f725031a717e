"""Several examples in one request, for services that take lists.

Each example is still one call of the run, with a row, retries and a status of its own. Calls that are in flight at the
same time are gathered: a request goes out when it is full, or a moment after its first row came. So a run needs as many
calls at once as a batch holds, or more.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluand.adapter import INDEX
from evaluand.errors import with_article
from evaluand.tasks.exchange import BadAnswer, BadRequest

LINGER = 0.01  # seconds a batch waits for more rows
_SHOWN = 5


@dataclass(frozen=True)
class Asked:
    """What one call asks.

    Attributes:
        notes: how much of an answer was left out, by its sort; the call logs it, while its span is open.
    """

    index: int
    replication: int
    row: Mapping[str, Any]
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
        send: asks for some rows at once.
        on_duplicate: `deduplicate` or `fail`.
        on_missing: `fail` or `ignore`.
        on_foreign: `fail` or `ignore`.
    """

    def __init__(
        self,
        size: int,
        send: Callable[[list[dict[str, Any]]], Awaitable[Any]],
        on_duplicate: str,
        on_missing: str,
        on_foreign: str,
    ) -> None:
        self.size, self._send = size, send
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
        pairs = [(asked, a) for asked, a in zip(batch.asked, batch.answers, strict=True) if not a.done()]
        if not pairs:
            return
        try:
            for (_, answer), output in zip(pairs, await self._outputs(pairs), strict=True):
                _give(answer, output)
        except BaseException as error:
            for _, answer in pairs:
                _give(answer, error)
            if not isinstance(error, Exception):
                raise

    async def _outputs(self, pairs: Sequence[_Pair]) -> list[Any]:
        """For each row its output, or the error that it comes to."""
        asked = [each for each, _ in pairs]
        try:
            answer = await self._send([{**each.row, INDEX: each.index} for each in asked])
        except BadRequest:
            if len(asked) == 1:
                raise
            alone = await asyncio.gather(*(self._outputs([pair]) for pair in pairs), return_exceptions=True)
            return [each if isinstance(each, BaseException) else each[0] for each in alone]
        found: dict[int, list[Any]] = {each.index: [] for each in asked}
        foreign: list[int] = []
        for index, output in _elements(answer):
            if index in found:
                found[index].append(output)
            else:
                foreign.append(index)
        if foreign:
            if self.on_foreign == "fail":
                shown = ", ".join(map(str, foreign[:_SHOWN])) + ", …" * (len(foreign) > _SHOWN)
                told = f"{len(foreign)} of its outputs are for an {INDEX} that was not asked: {shown}"
                raise BadAnswer(f"the answer to {len(asked)} rows is not for them: {told}", code="foreign")
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


def _elements(answer: Any) -> list[tuple[int, Any]]:
    """The `_index_` and the output of each element of an answer."""
    if not isinstance(answer, list):
        raise BadAnswer(f"the answer to a batch is {with_article(type(answer).__name__)}, not a list", code="form")
    found = []
    for place, element in enumerate(answer):
        if not isinstance(element, dict) or type(element.get(INDEX)) is not int:
            raise BadAnswer(f"element {place} of the answer has no {INDEX} that says what it is for", code="form")
        rest = {name: value for name, value in element.items() if name != INDEX}
        found.append((element[INDEX], rest["responses"] if [*rest] == ["responses"] else rest))
    return found


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
