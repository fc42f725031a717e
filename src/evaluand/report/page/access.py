"""Who may read the page: a browser that came with the token, at an address that the server has.

A page of some other site can make a browser send requests here. It cannot read a store by them: its name for this
address is not one that the server answers to (DNS rebinding), a browser sends no cookie with its requests (SameSite)
and says where they come from (Sec-Fetch-Site), and whatever changes something must come from a page of this server
(Origin). Servers at other ports of this machine are the same site to a browser, so that SameSite alone is not enough.

Secrets are held as digests: neither a dump of memory nor the time that a look-up takes says what they are.
"""

from __future__ import annotations

import asyncio
import hmac
import math
import secrets
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY: Final = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
"""The content security policy of every answer: nothing runs or loads but what this server sends."""

HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    # Not `no-referrer`, with which a browser sends `Origin: null` with a form.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""What every answer says to the browser."""

TOKEN: Final = "token"
"""The parameter of a link, and the field of the form, that holds a token."""

MOST_HEAD: Final = 32 << 10
"""Bytes of the head of a request."""

MOST_BODY: Final = 1 << 20
"""Bytes of the body of a request."""

_LONGEST: Final = 8192  # characters of a path or query
_MOST_FORM: Final = 4096
_DIGITS: Final = 9
_SAFE: Final = ("GET", "HEAD")
_METHODS: Final = (*_SAFE, "POST")
_MOST_SESSIONS: Final = 1000
_MOST_LINKS: Final = 100
_LINK_LASTS: Final = 600.0  # seconds
_SESSION_LASTS: Final = 7 * 86400.0
_WAIT: Final = 0.2  # seconds until a wrong token is refused
_MOST_WAITING: Final = 20
_FORM: Final = "application/x-www-form-urlencoded"


@dataclass
class Access:
    """Decides which requests are answered.

    Args:
        hosts: the values of `Host` that are answered, such as `127.0.0.1:8000`.
        origins: the values of `Origin` that may change something.
        token: a secret that opens the page as often as it is given, for servers with `--auth`.
        trusted_header: the name of a header in which a proxy names the user whom it has let in.
        clock: the seconds of the moment.
        opened: is called when whoever has started the server has opened the page.
    """

    hosts: Collection[str]
    origins: Collection[str]
    token: str | None = field(default=None, repr=False)
    trusted_header: str | None = None
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    opened: Callable[[], None] | None = field(default=None, repr=False)
    _once: dict[bytes, float] = field(default_factory=dict, repr=False)
    _sessions: dict[bytes, float] = field(default_factory=dict, repr=False)
    _first: set[bytes] = field(default_factory=set, repr=False)  # sessions

    def __post_init__(self) -> None:
        self._token, self.token = (None if self.token is None else _digest(self.token)), None

    @property
    def has_login(self) -> bool:
        """Whether a person can enter a token."""
        return self._token is not None

    def issue_token(self, lasts: float = math.inf) -> str:
        """A token that opens the page once, for so many seconds; without an end for whoever has started the server."""
        token = secrets.token_urlsafe(24)
        _add(self._once, token, self.clock() + lasts, _MOST_LINKS)
        return token

    def issue_link(self, origin: str) -> str:
        """A link that opens the page once, within ten minutes."""
        return f"{origin}/?{TOKEN}={self.issue_token(_LINK_LASTS)}"

    def redeem(self, token: str) -> str | None:
        """The session that a token opens; None if it opens none."""
        until = self._once.pop(_digest(token), -math.inf)
        if until < self.clock() and not self.is_token(token):
            return None
        session = secrets.token_urlsafe(32)
        _add(self._sessions, session, self.clock() + _SESSION_LASTS, _MOST_SESSIONS)
        if until == math.inf:
            self._first.add(_digest(session))
            if self.opened is not None:
                self.opened()
        return session

    def is_token(self, text: str) -> bool:
        """Whether a text is the token that opens the page always."""
        return self._token is not None and hmac.compare_digest(self._token, _digest(text))

    def is_open(self, session: str) -> bool:
        """Whether a session was opened by a token."""
        return self._sessions.get(_digest(session), -math.inf) > self.clock()

    def is_first(self, session: str) -> bool:
        """Whether a session was opened by whoever has started the server."""
        return self.is_open(session) and _digest(session) in self._first

    @property
    def is_secure(self) -> bool:
        """Whether browsers come by HTTPS."""
        return all(origin.startswith("https:") for origin in self.origins)

    @property
    def cookie(self) -> str:
        """The name of the cookie, which servers at other ports of this host do not share."""
        port = urlsplit(f"//{next(iter(self.hosts))}").port
        return f"{'__Host-' if self.is_secure else ''}evaluand{'' if port is None else f'-{port}'}"


def _digest(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _add(known: dict[bytes, float], secret: str, until: float, most: int) -> None:
    """Adds a secret, in place of the oldest ones if there are too many."""
    while len(known) >= most:
        del known[next(iter(known))]
    known[_digest(secret)] = until


class AccessMiddleware:
    """Answers only requests that `Access` lets in, and adds the headers that keep a page to itself."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access
        self._waiting = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return None
        answer = self._refuse(scope) or await self._enter(scope, receive)
        await (answer or self._app)(scope, receive, _with_headers(send))

    def _refuse(self, scope: Scope) -> Response | None:
        """The answer to what no browser sends for a page of this server; None if all is well."""
        headers, method = Headers(scope=scope), scope["method"]
        if not _is_one_of(headers, "host", self._access.hosts):
            return _refusal("this server has another address", 421)
        if not (path := scope["raw_path"] or b"").startswith(b"/"):  # `http://…`, as proxies are asked
            return _refusal("the address must begin with /", 400)
        if len(path) > _LONGEST or len(scope["query_string"]) > _LONGEST:
            return _refusal("the address is too long", 414)
        if sum(len(name) + len(value) for name, value in scope["headers"]) > MOST_HEAD:
            return _refusal("the request has too much in its head", 431)
        if "transfer-encoding" in headers:  # where two servers could see different ends of a request
            return _refusal("the request must say its length", 411)
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdecimal()) or len(length) > _DIGITS or int(length) > MOST_BODY:
            return _refusal("the request is too large", 413)
        if method not in _METHODS:
            return _refusal("only GET, HEAD and POST are answered", 405, {"allow": ", ".join(_METHODS)})
        if "websocket" in headers.get("upgrade", "").lower():
            return _refusal("this server has no web sockets", 400)
        site = headers.get("sec-fetch-site", "same-origin")
        is_own = site == "same-origin" or (site == "none" and method in _SAFE)
        is_link = method in _SAFE and headers.get("sec-fetch-mode") == "navigate"
        if not is_own and not is_link:
            return _refusal("only the page itself can do this", 403)
        if method not in _SAFE and not _is_one_of(headers, "origin", self._access.origins):
            return _refusal("only the page itself can do this", 403)
        return None

    async def _enter(self, scope: Scope, receive: Receive) -> Response | None:
        """None if the browser has been let in; else the answer to it."""
        access, headers = self._access, Headers(scope=scope)
        if access.trusted_header is not None:
            users = headers.getlist(access.trusted_header)
            return None if len(users) == 1 and users[0].strip() else _refusal("log in at the proxy", 401)
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        tokens, is_login = [value for name, value in query if name == TOKEN], False
        if access.has_login and scope["method"] == "POST" and headers.get("content-type", "").startswith(_FORM):
            tokens, is_login = await _read_form(Request(scope, receive)), True
        elif scope["method"] != "GET":
            tokens = []
        session = access.redeem(tokens[0]) if len(tokens) == 1 and tokens[0] else None
        if session is not None:
            return self._welcome(scope, query, session)
        is_in = any(access.is_open(each) for each in _read_cookies(headers, access.cookie))
        if is_in and (tokens or is_login):  # the address is shown, stored and copied without it
            return self._welcome(scope, query, None)
        bearer = _read_bearer(headers)
        if is_in or (bearer is not None and access.is_token(bearer)):
            return None
        return await self._turn_away(bool(tokens or bearer or is_login))

    def _welcome(self, scope: Scope, query: list[tuple[str, str]], session: str | None) -> Response:
        """Leads to the same address without the token."""
        rest = urlencode([(name, value) for name, value in query if name != TOKEN])
        path = scope["raw_path"].decode("ascii")
        path = path if _is_local(path) else "/"
        answer = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
        if session is not None:
            access = self._access
            answer.set_cookie(
                access.cookie,
                session,
                path="/",
                httponly=True,
                samesite="lax",
                secure=access.is_secure,
                max_age=int(_SESSION_LASTS),
            )
        return answer

    async def _turn_away(self, has_tried: bool) -> Response:
        """Refuses requests without a session, with a delay if a person chose the token, so that guessing is slow."""
        if has_tried and self._access.has_login:
            if self._waiting >= _MOST_WAITING:
                return _refusal("too many wrong tokens; try again in a moment", 429)
            self._waiting += 1
            try:
                await asyncio.sleep(_WAIT)
            finally:
                self._waiting -= 1
        if self._access.has_login:
            said = "That was not the token." if has_tried else "Enter the token of this server."
            return HTMLResponse(_LOGIN.format(said=said), 401, {"www-authenticate": "Bearer"})
        link = "by the link that `evaluand view` prints, or by one that an open page makes for another browser"
        return _refusal(f"open the page {link}; each opens once, so start `evaluand view` again for a new one", 401)


_LOGIN: Final = f"""<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>evaluand</title></head>
<body><main><h1>evaluand</h1><form method="post">
<p><label for="token">{{said}}</label></p>
<p><input id="token" name="{TOKEN}" type="password" autocomplete="current-password" required autofocus>
<button>Open the page</button></p></form></main></body>
</html>
"""


def issue_link(access: Access) -> Callable[[Request], Response]:
    """Answers with a link for another browser, to a page that asks for one."""

    def answer(request: Request) -> Response:
        if access.trusted_header is not None:
            return _refusal("every browser logs in at the proxy", 404)
        return JSONResponse({"link": access.issue_link(request.headers["origin"])})

    return answer


def is_from_terminal(access: Access, request: Request) -> bool:
    """Whether a browser was let in by the link in the terminal, and not by one that the page has made."""
    return any(access.is_first(each) for each in _read_cookies(request.headers, access.cookie))


def _refusal(text: str, status: int, headers: dict[str, str] | None = None) -> Response:
    # What else comes on the connection is not read: it may have been meant as something else.
    return PlainTextResponse(text, status, {"connection": "close"} | (headers or {}))


def _is_one_of(headers: Headers, name: str, allowed: Collection[str]) -> bool:
    """Whether a header is there exactly once, with one of some values."""
    return len(found := headers.getlist(name)) == 1 and found[0] in allowed


def _is_local(path: str) -> bool:
    """Whether a browser takes a path for one of this server, and not for another server's address."""
    return path.startswith("/") and not path.startswith(("//", "/\\"))


def _read_cookies(headers: Headers, name: str) -> list[str]:
    """The values of a cookie.

    Other servers on this machine may have set cookies of any form, which must not hide this one.
    """
    pairs = (each.partition("=") for header in headers.getlist("cookie") for each in header.split(";"))
    return [value.strip() for found, _, value in pairs if found.strip() == name]


def _read_bearer(headers: Headers) -> str | None:
    found = headers.getlist("authorization")
    scheme, _, token = found[0].partition(" ") if len(found) == 1 else ("", "", "")
    return token.strip() if scheme.lower() == "bearer" else None


async def _read_form(request: Request) -> list[str]:
    """The tokens in a form."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MOST_FORM:
            return []
    pairs = parse_qsl(body.decode("latin-1"), keep_blank_values=True)
    return [value.strip() for name, value in pairs if name == TOKEN]


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            known = {name for name, _ in message.get("headers", ())}
            added = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            message["headers"] = [*message.get("headers", ()), *((n, v) for n, v in added if n not in known)]
        await send(message)

    return sending
