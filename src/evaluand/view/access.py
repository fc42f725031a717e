"""Who may read the page: a browser that came with the token, at an address that the server has.

A page of some other site can make a browser send requests here. It cannot read a store by them: its name for this
address is not one that the server answers to (DNS rebinding), a browser sends no cookie with its requests (SameSite),
and whatever changes something must come from a page of this server (Origin).
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Collection
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY: Final = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
"""The content security policy of every answer: nothing runs or loads but what this server sends."""

_HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_LONGEST: Final = 8192  # characters of a path or query
_MOST_BODY: Final = 1 << 20
_DIGITS: Final = 9
_SAFE: Final = ("GET", "HEAD")
_MOST_SESSIONS: Final = 1000


@dataclass
class Access:
    """Decides which requests are answered.

    Args:
        hosts: the values of `Host` that are answered, such as `127.0.0.1:8000`.
        origins: the values of `Origin` that may change something.
        token: a secret that opens the page as often as it is given, for servers with `--auth`.
        trusted_header: the name of a header in which a proxy names the user whom it has let in.
    """

    hosts: Collection[str]
    origins: Collection[str]
    token: str | None = None
    trusted_header: str | None = None
    _once: set[str] = field(default_factory=set, repr=False)
    _sessions: dict[str, None] = field(default_factory=dict, repr=False)

    def issue_token(self) -> str:
        """A token that opens the page once."""
        token = secrets.token_urlsafe(24)
        self._once.add(token)
        return token

    def redeem(self, token: str) -> str | None:
        """The session that a token opens; None if it opens none."""
        known = next((each for each in self._once if hmac.compare_digest(each.encode(), token.encode())), None)
        if known is not None:
            self._once.discard(known)
        elif self.token is None or not hmac.compare_digest(self.token.encode(), token.encode()):
            return None
        while len(self._sessions) >= _MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        session = secrets.token_urlsafe(32)
        self._sessions[session] = None
        return session

    def is_open(self, session: str | None) -> bool:
        """Whether a session was opened by a token."""
        return session is not None and session in self._sessions

    @property
    def cookie(self) -> str:
        """The name of the cookie, which servers at other ports of this host do not share."""
        port = next(iter(self.hosts)).rpartition(":")[2]
        return f"evaluand-{port}" if port.isdecimal() else "evaluand"


class AccessMiddleware:
    """Answers only requests that `Access` lets in, and adds the headers that keep a page to itself."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":
            return await _close(scope, send)
        refusal = self._refuse(scope) or self._enter(scope)
        await (refusal or self._app)(scope, _limit(receive), _with_headers(send))

    def _refuse(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if headers.getlist("host") not in [[host] for host in self._access.hosts]:
            return PlainTextResponse("this server has another address", 421)
        if len(scope["raw_path"] or b"") > _LONGEST or len(scope["query_string"]) > _LONGEST:
            return PlainTextResponse("the address is too long", 414)
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > _DIGITS or int(length) > _MOST_BODY:
            return PlainTextResponse("the request is too large", 413)
        if scope["method"] in _SAFE:
            return None
        is_own = headers.get("origin") in self._access.origins
        if not is_own or headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return PlainTextResponse("only the page itself can do this", 403)
        return None

    def _enter(self, scope: Scope) -> Response | None:
        """None if the browser has been let in; else the answer to it."""
        access, headers = self._access, Headers(scope=scope)
        if access.trusted_header is not None:
            return None if headers.get(access.trusted_header) else PlainTextResponse("log in at the proxy", 401)
        if access.is_open(_read_cookie(headers.get("cookie"), access.cookie)):
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        token = next((value for name, value in query if name == "token"), None)
        session = access.redeem(token) if token and scope["method"] == "GET" else None
        if session is None:
            return PlainTextResponse("open the page by the link that `evaluand view` prints", 401)
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        path = scope["path"] if _is_local(scope["path"]) else "/"
        answer = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
        answer.set_cookie(access.cookie, session, path="/", httponly=True, samesite="lax")
        return answer


def _is_local(path: str) -> bool:
    """Whether a browser takes a path for one of this server, and not for another server's address."""
    return path.startswith("/") and not path.startswith(("//", "/\\"))


def _read_cookie(text: str | None, name: str) -> str | None:
    try:
        found = SimpleCookie(text or "").get(name)
    except CookieError:
        return None
    return None if found is None else found.value


def _limit(receive: Receive) -> Receive:
    """Receives at most so many bytes of a body."""
    seen = 0

    async def limited() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        return {"type": "http.disconnect"} if seen > _MOST_BODY else message

    return limited


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            known = {name for name, _ in message.get("headers", ())}
            added = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
            message["headers"] = [*message.get("headers", ()), *((n, v) for n, v in added if n not in known)]
        await send(message)

    return sending


async def _close(scope: Scope, send: Send) -> None:
    message: dict[str, Any] = {"type": "websocket.close", "code": 1008}
    if scope["type"] == "websocket":
        await send(message)
