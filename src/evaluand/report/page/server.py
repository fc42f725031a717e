"""The server of the page: the page itself, its assets, and what it reads."""

from __future__ import annotations

import asyncio
import gzip
import logging
import mimetypes
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Final
from urllib.parse import quote, unquote

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from evaluand.core.errors import SpecError
from evaluand.report.page.access import MOST_HEAD, TOKEN, Access, AccessMiddleware, is_from_terminal, issue_link
from evaluand.report.page.addresses import Address
from evaluand.report.page.connections import Connection
from evaluand.report.page.events import send_events
from evaluand.report.page.faults import answer_faults
from evaluand.report.page.labelling import labelling_routes
from evaluand.report.page.page import ASSETS, page, read_asset
from evaluand.report.page.resources.base import Source, find_resources, read_resource

_SMALL: Final = 1000  # bytes that are not worth compressing
_MOST_READING: Final = 3


def make_app(source: Source, access: Access, stop: Callable[[], None] | None = None) -> Starlette:
    """The application that serves the page on a store."""
    find_resources()
    return Starlette(
        routes=[
            Route("/assets/{name}", _serve_asset),
            Route("/api/live/{id}", send_events(source)),
            Route("/api/{path:path}", _serve_resource(source)),
            Route("/session/link", issue_link(access), methods=["POST"]),
            *([] if stop is None else [Route("/session/stop", _stop_by(stop, access), methods=["POST"])]),
            *labelling_routes(source),
            Route("/{path:path}", _serve_page(source, access, can_stop=stop is not None)),
        ],
        middleware=[Middleware(AccessMiddleware, access=access)],
    )


def _serve_resource(source: Source) -> Callable[[Request], Awaitable[Response]]:
    # A few threads read at once: more would only share the processor and the disk, and keep all else waiting.
    reading = asyncio.Semaphore(_MOST_READING)

    async def serve(request: Request) -> Response:
        path = request.scope["raw_path"].decode("latin-1").removeprefix("/api/")
        packed = "gzip" in request.headers.get("accept-encoding", "")
        async with reading:
            if await request.is_disconnected():  # nobody waits for it any more
                return Response(status_code=499)
            return await run_in_threadpool(_answer, source, path, request.query_params, packed)

    return serve


def _answer(source: Source, path: str, query: Mapping[str, str], packed: bool) -> Response:
    return answer_faults(path, lambda: _read(source, path, query, packed))


def _read(source: Source, path: str, query: Mapping[str, str], packed: bool) -> Response:
    content = read_resource(source, path, query)
    kind = "application/json" if content[:1] in (b"[", b"{") else "application/octet-stream"
    return _compress(content, kind, packed)


def _compress(content: bytes, kind: str, packed: bool) -> Response:
    headers = {"vary": "accept-encoding"}
    if packed and len(content) > _SMALL:
        content = gzip.compress(content, 1, mtime=0)
        headers["content-encoding"] = "gzip"
    return Response(content, media_type=kind, headers=headers)


async def _serve_asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in ASSETS:
        return PlainTextResponse("there is no such file", 404)
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return _compress(read_asset(name), kind, "gzip" in request.headers.get("accept-encoding", ""))


def _stop_by(stop: Callable[[], None], access: Access) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        if not is_from_terminal(access, request):
            return PlainTextResponse("only the browser that opened the link in the terminal can stop the run", 403)
        stop()
        return Response(status_code=204)

    return answer


def _serve_page(source: Source, access: Access, *, can_stop: bool) -> Callable[[Request], Awaitable[Response]]:
    facts = {} if access.trusted_header else {"links": "yes"}
    if source.labels is not None:
        facts["label"] = "yes"

    async def serve(request: Request) -> Response:
        stops = {"stop": "yes"} if can_stop and is_from_terminal(access, request) else {}
        path = request.scope["raw_path"].decode("latin-1")
        early = "".join(
            f'<link rel="preload" as="fetch" crossorigin href="/api/{each}">\n' for each in first_reads(path)
        )
        return Response(page("/assets/", "/api/", facts | stops, early), media_type="text/html")

    return serve


def first_reads(path: str) -> list[str]:
    """What the page of a path asks for at once: a browser reads it while it still loads the script.

    Example:
        >>> first_reads("/e/mine%20and%20yours/small")
        ['results/mine%20and%20yours%2Fsmall', 'answers/mine%20and%20yours%2Fsmall']
    """
    route, *parts = [unquote(part) for part in path.split("/") if part] or [""]
    name = quote("/".join(parts), safe="")
    is_readable = bool(name or not route) and "%EF%BF%BD" not in name and len(name) < _LONGEST_NAME
    return [each.format(name) for each in _FIRST_READS.get(route, ())] if is_readable else []


_LONGEST_NAME: Final = 2000  # characters; longer ones are not worth the room
_RESULTS: Final = ("results/{}", "answers/{}")
_FIRST_READS: Final = {"": ("index",), "e": _RESULTS, "r": _RESULTS, "v": _RESULTS}


def serve(
    source: Source,
    address: Address,
    started: Callable[[str, str], None],
    first: str = "/",
    stop: Callable[[], None] | None = None,
    opened: Callable[[], None] | None = None,
) -> None:
    """Serves the page until Ctrl-C, SIGTERM or SIGHUP.

    Args:
        first: the path that the link opens.
        stop: interrupts the run that is made meanwhile; None if the page may not.
        started: is called with a link that opens the page once, or with that of the page if a proxy logs people in;
            and with the host and port that are listened on.
        opened: is called when a browser has come by that link.

    Raises:
        SpecError: the address is taken, or none of this machine.
    """
    with _listen(address) as listener:
        port = listener.getsockname()[1]
        access, origin = address.make_access(port), address.find_origins(port)[0]
        access.opened = opened
        config = uvicorn.Config(
            make_app(source, access, stop),
            # What is installed beside it must not decide how requests are read.
            http=Connection,
            ws="none",
            loop="asyncio",
            lifespan="off",
            proxy_headers=False,
            log_config=None,
            log_level="error",
            access_log=False,  # it would hold tokens
            server_header=False,
            timeout_keep_alive=_IDLE,
            timeout_graceful_shutdown=1,
            h11_max_incomplete_event_size=MOST_HEAD,
        )
        logging.getLogger("uvicorn.error").addFilter(_is_of_interest)
        server = uvicorn.Server(config)
        with _ended_by_signals(server):
            link = f"{origin}{first}" if access.trusted_header else f"{origin}{first}?{TOKEN}={access.issue_token()}"
            started(link, f"{address.host} port {port}")
            server.run(sockets=[listener])


@contextmanager
def _ended_by_signals(server: uvicorn.Server) -> Iterator[None]:
    """Has signals end the server in order, by its flag: an exception could be lost in the middle of an import."""

    def end(number: int, frame: FrameType | None) -> None:
        server.should_exit = True

    handlers = {number: signal.getsignal(number) for number in _ENDING}
    before = {number: handler for number, handler in handlers.items() if handler not in (signal.SIG_IGN, None)}
    for number in before:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_ENDING: Final = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


def _is_of_interest(record: logging.LogRecord) -> bool:
    """Whether people should see a record: not that a page was still waiting for an answer when the server ended."""
    error = record.exc_info[1] if record.exc_info else None
    return not (isinstance(error, asyncio.CancelledError) or str(record.msg).startswith("Cancel %s running task"))


_IDLE: Final = 30  # seconds


def _listen(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address.host, address.port))
        listener.listen(256)
    except OSError as error:
        listener.close()
        where = f"{address.host} port {address.port}"
        raise SpecError(f"{where} cannot be listened on: {error.strerror}; choose another with --port") from None
    return listener
