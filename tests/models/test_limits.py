"""How close a model comes to its rate limits, measured by a server on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
from support.chats import Chat
from support.clock import fullest

from evaluand.models.chat_model import ChatModel

Starts = Callable[..., Chat]

PERIOD = 0.5


def ask_all(model: ChatModel, n: int, at_once: int) -> None:
    """Asks n questions of 60 to 99 words, whose replies repeat them."""
    numbers = iter(range(n))

    async def work() -> None:
        for number in numbers:
            text = f"{number} " + "word " * (59 + number * 17 % 40)
            await model.complete_async([{"role": "user", "content": text}])

    async def work_all() -> None:
        await asyncio.gather(*(work() for _ in range(at_once)))

    asyncio.run(work_all())


def tokens_of(request: dict[str, object]) -> int:
    """What the server counts: the words of the question and of the reply."""
    [message] = request["body"]["messages"]  # type: ignore[index]
    return 2 * len(message["content"].split())


@pytest.mark.slow
def test_requests_use_95_percent_of_their_limit_and_never_more(chat: Starts) -> None:
    def used() -> float:
        server = chat()
        ask_all(replace(server.model, rate=f"40/{PERIOD} s", cache=False), 480, 32)
        moments = [request["at"] for request in server.asked]
        assert fullest(moments, PERIOD) <= 40
        return 480 / ((moments[-1] - moments[0]) / PERIOD + 1) / 40

    assert any(used() >= 0.95 for _ in range(3))  # on a busy machine a request may be sent long after its turn


@pytest.mark.slow
def test_tokens_use_90_percent_of_their_limit_and_more_only_by_what_is_in_flight(chat: Starts) -> None:
    limit = 4000

    def used() -> float:
        server = chat()
        ask_all(replace(server.model, token_rate=f"{limit}/{PERIOD} s", max_tokens=400, cache=False), 300, 32)
        sent = [(request["at"], tokens_of(request)) for request in server.asked]
        most = max(sum(size for other, size in sent if at <= other < at + PERIOD) for at, _ in sent)
        assert most <= limit + 32 * 200
        begin, end = sent[0][0] + 2 * PERIOD, sent[-1][0]
        steady = sum(size for at, size in sent if begin <= at < end)
        return steady / ((end - begin) / PERIOD) / limit

    assert any(used() >= 0.9 for _ in range(3))
