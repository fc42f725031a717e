"""The server of the page: the page itself, its assets, and what it reads."""

from __future__ import annotations

import asyncio
import gzip
import mimetypes
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib.resources import files
from typing import Final
from urllib.parse import quote

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from evaluand.core.errors import EvaluandError, NotFound, SpecError
from evaluand.view.access import Access, AccessMiddleware
from evaluand.view.live import EVERY, LiveRun, LiveRuns
from evaluand.view.resources import (  # noqa: F401 - register
    comparisons as _comparisons,
    examples as _examples,
    listing as _listing,
    results as _results,
    rows as _rows,
)
from evaluand.view.resources.base import Source, read_resource, to_json

ASSETS: Final = ("view.js", "view.css", "icon.svg")
_SMALL: Final = 1000  # bytes that are not worth compressing


def make_app(source: Source, access: Access) -> Starlette:
    """The application that serves the page on a store."""
    return Starlette(
        routes=[
            Route("/assets/{name}", _serve_asset),
            Route("/api/live/{id}", _serve_live(source)),
            Route("/api/{path:path}", _serve_resource(source)),
            Route("/{path:path}", _serve_page),
        ],
        middleware=[Middleware(AccessMiddleware, access=access)],
    )


def _serve_resource(source: Source) -> Callable[[Request], Awaitable[Response]]:
    async def serve(request: Request) -> Response:
        path = request.scope["raw_path"].decode("latin-1").partition("?")[0].removeprefix("/api/")
        try:
            content = await run_in_threadpool(read_resource, source, path, request.query_params)
        except NotFound as error:
            return PlainTextResponse(str(error), 404)
        except EvaluandError as error:
            return PlainTextResponse(str(error), 400)
        kind = "application/json" if content[:1] in b"[{" else "application/octet-stream"
        return _compress(request, content, kind)

    return serve


def _serve_live(source: Source) -> Callable[[Request], Awaitable[Response]]:
    """The state of a run as server-sent events: the whole at first, then whatever changes."""
    runs = LiveRuns(source.store)

    async def serve(request: Request) -> Response:
        asked = request.path_params["id"]
        try:
            run = await run_in_threadpool(lambda: runs.watch(runs.newest() if asked == NEWEST else asked))
        except EvaluandError as error:
            return PlainTextResponse(str(error), 404)
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(_events(runs, run, request), media_type="text/event-stream", headers=headers)

    return serve


NEWEST: Final = "newest"


async def _events(runs: LiveRuns, run: LiveRun, request: Request) -> AsyncIterator[bytes]:
    number, before, beat = 0, b"", 0
    try:
        while not await request.is_disconnected():
            await run_in_threadpool(run.look)
            facts, rows = run.facts(), run.rows_after(number)
            number = rows[-1]["number"] if rows else number
            state = to_json(facts)
            if rows or state != before or beat % _BEATS == 0:
                yield b"data: " + to_json(facts | {"rows": rows}) + b"\n\n"
            before, beat = state, beat + 1
            if facts["status"] == "finished":
                return
            await asyncio.sleep(EVERY)
    finally:
        runs.leave(run)


_BEATS: Final = 25  # looks after which a watcher hears something, so that the connection stays


def _compress(request: Request, content: bytes, kind: str) -> Response:
    headers = {"cache-control": "no-store"}
    if len(content) > _SMALL and "gzip" in request.headers.get("accept-encoding", ""):
        content = gzip.compress(content, 1, mtime=0)
        headers["content-encoding"] = "gzip"
    return Response(content, media_type=kind, headers=headers)


async def _serve_asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in ASSETS:
        return PlainTextResponse("there is no such file", 404)
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return _compress(request, read_asset(name), kind)


def read_asset(name: str) -> bytes:
    """A script, a style sheet or a picture of the page."""
    return files("evaluand.view").joinpath("assets", name).read_bytes()


async def _serve_page(request: Request) -> Response:
    return Response(page("/assets/", "/api/"), media_type="text/html", headers={"cache-control": "no-store"})


def page(assets: str, data: str) -> str:
    """The page, whose script finds the rest.

    Args:
        assets: where script and style sheet are.
        data: where what it reads is.
    """
    at, where = quote(assets), quote(data)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>evaluand</title>
<link rel="icon" href="{at}icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="{at}view.css">
<script src="{at}view.js" defer data-source="{where}"></script>
</head>
<body><noscript>Allow this page to run its script.</noscript><div id="page"></div></body>
</html>
"""


def serve(source: Source, port: int, started: Callable[[str], None]) -> None:
    """Serves the page on this machine's loopback address until Ctrl-C.

    Args:
        port: 0 for a free one.
        started: is called with the link that opens the page once.

    Raises:
        SpecError: the port is taken.
    """
    with _listen(port) as listener:
        place = f"127.0.0.1:{listener.getsockname()[1]}"
        hosts = [place, place.replace("127.0.0.1", "localhost")]
        access = Access(hosts, [f"http://{host}" for host in hosts])
        config = uvicorn.Config(
            make_app(source, access),
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_keep_alive=_IDLE,
            h11_max_incomplete_event_size=_MOST_HEAD,
        )
        started(f"http://{place}/?token={access.issue_token()}")
        uvicorn.Server(config).run(sockets=[listener])


_MOST_CONNECTIONS: Final = 1000
_IDLE: Final = 30  # seconds
_MOST_HEAD: Final = 32 << 10


def _listen(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(256)
    except OSError as error:
        listener.close()
        raise SpecError(f"port {port} cannot be listened on: {error.strerror}; choose another with --port") from None
    return listener
