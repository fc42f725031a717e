"""A model keeps its rate limits with a server on loopback; how much of them it uses is shown in tests/engine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from support.chats import Chat

Starts = Callable[..., Chat]

PERIOD = 0.5


def ask_all(chat: Starts, n: int, at_once: int, **limits: Any) -> tuple[float, Chat]:
    """Asks n questions of 60 to 99 words, whose replies repeat them; the seconds that it took, and who answered."""
    server, numbers = chat(), iter(range(n))
    model = replace(server.model, cache=False, **limits)

    async def work() -> None:
        for number in numbers:
            text = f"{number} " + "word " * (59 + number * 17 % 40)
            await model.complete_async([{"role": "user", "content": text}])

    async def work_all() -> None:
        await asyncio.gather(*(work() for _ in range(at_once)))

    began = time.monotonic()
    asyncio.run(work_all())
    return time.monotonic() - began, server


def tokens_of(request: dict[str, object]) -> int:
    """What the server counts: the words of the question and of the reply."""
    [message] = request["body"]["messages"]  # type: ignore[index]
    return 2 * len(message["content"].split())


def test_requests_take_as_long_as_their_limit_says(chat: Starts) -> None:
    taken, server = ask_all(chat, 120, 32, rate=f"40/{PERIOD} s")
    assert len(server.asked) == 120
    assert taken >= PERIOD * (120 / 40 - 1)


def test_tokens_take_as_long_as_their_limit_says_but_for_what_is_in_flight(chat: Starts) -> None:
    limit = 4000
    taken, server = ask_all(chat, 80, 32, token_rate=f"{limit}/{PERIOD} s", max_tokens=400)
    assert taken >= PERIOD * ((sum(map(tokens_of, server.asked)) - 32 * 200) / limit - 1)
