"""What changes something: labels that the page sends, if its server was started with `--label`.

`AccessMiddleware` has let in only browsers with a session, and requests that come from the page itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from evaluand.core.errors import SpecError
from evaluand.report.facts.base import Facts
from evaluand.report.page.access import MOST_BODY
from evaluand.report.page.faults import answer_faults
from evaluand.report.page.resources.base import Source, to_json
from evaluand.report.page.resources.labels import label, store

Change = Callable[[Source, str, Mapping[str, Any]], Facts]


def labelling_routes(source: Source) -> list[Route]:
    """The routes by which labels come; none if the page only shows."""
    if source.labels is None:
        return []
    changes = {"/label/{run}": label, "/label/{run}/store": store}
    return [Route(path, _serve(source, change), methods=["POST"]) for path, change in changes.items()]


def _serve(source: Source, change: Change) -> Callable[[Request], Awaitable[Response]]:
    async def serve(request: Request) -> Response:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            return PlainTextResponse("send JSON, as application/json", 415)
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > MOST_BODY:
                return PlainTextResponse("the request is too large", 413)
        run = request.path_params["run"]

        def answer() -> Response:
            return Response(to_json(change(source, run, _read_object(body))), media_type="application/json")

        return await run_in_threadpool(answer_faults, request.url.path, answer)

    return serve


def _read_object(body: bytes) -> Mapping[str, Any]:
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise SpecError(f"this is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise SpecError("send an object with the fields of a label")
    return found
