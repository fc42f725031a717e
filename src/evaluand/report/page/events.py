"""Runs while they are made, as server-sent events: the whole at first, then whatever has changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from evaluand.core.errors import EvaluandError
from evaluand.report.facts.base import Facts
from evaluand.report.page.live import EVERY, LiveRun, LiveRuns
from evaluand.report.page.resources.base import Source, to_json

_BEATS: Final = 25  # looks after which a watcher hears something, so that the connection stays


def send_events(source: Source) -> Callable[[Request], Awaitable[Response]]:
    """Answers requests for the events of a run."""
    runs = LiveRuns(source.store)

    async def answer(request: Request) -> Response:
        try:
            asked = request.path_params["id"]
            id = await run_in_threadpool(runs.find, asked)
        except EvaluandError as error:
            return PlainTextResponse(str(error), 404)
        return StreamingResponse(_watch(runs, asked, id, request), media_type="text/event-stream")

    return answer


async def _watch(runs: LiveRuns, asked: str, id: str, request: Request) -> AsyncIterator[bytes]:
    """The events of a run until it is finished, or is stopped and another one is the newest that was asked for.

    A browser asks again where they end before the run is finished.
    """
    number, before, beat = 0, b"", 0
    run = await run_in_threadpool(runs.watch, id)
    try:
        while not await request.is_disconnected():
            facts, rows = await run_in_threadpool(_look, run, number)
            number = rows[-1]["number"] if rows else number
            state = to_json(facts)
            if rows or state != before or beat % _BEATS == 0:
                yield b"data: " + to_json(facts | {"rows": rows}) + b"\n\n"
            if facts["status"] == "finished":
                return
            if (
                facts["status"] == "stopped"
                and beat % _BEATS == 0
                and await run_in_threadpool(runs.is_followed, asked, id)
            ):
                return
            before, beat = state, beat + 1
            await asyncio.sleep(EVERY)
    finally:
        runs.leave(run)


def _look(run: LiveRun, number: int) -> tuple[Facts, list[Facts]]:
    run.look()
    return run.facts(), run.rows_after(number)
