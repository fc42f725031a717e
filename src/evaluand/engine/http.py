"""One request to an HTTP service and its answer; or, in one sentence, why there is none.

What a header or an address says may be a secret: it is written with the name of an environment variable,
`Bearer ${TOKEN}`, and read when a client is made. No value of such a variable stands in what is raised here, nor in
what the HTTP library logs while a client is open.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import re
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlsplit
from weakref import WeakKeyDictionary

import orjson

from evaluand._version import __version__
from evaluand.core.errors import ParameterError, SpecError, TaskError, TransientError
from evaluand.engine.rate_limit import sent

if TYPE_CHECKING:
    import httpx2

    _Client = tuple[httpx2.AsyncClient, str]  # with the address that it asks
    _Opened = tuple[_Client, AsyncGenerator[_Client]]

LARGEST = 16 << 20  # bytes of an answer
LONGEST_WAIT = 600.0  # seconds that a service may ask to be left alone for
_REDIRECTS = 5
_EXCERPT = 300  # characters of an answer that are shown
_READ = 1 << 16  # bytes of a refusal that are read, so that its connection can be used again
_SECRET = 8  # characters from which a value cannot stand in an answer by chance

_VARIABLE = re.compile(r"\$\{(\w+)\}")
_WHOLE_VARIABLE = re.compile(r"""(?<![^\s=:,;"'])\$\{\w+\}(?![^\s:,;"'])""")
_CREDENTIAL = re.compile(r"auth|token|secret|cookie|password|key", re.IGNORECASE)
_SECRET_PARAMETER = re.compile(r"(auth|token|secret|password|key|sig|signature)$", re.IGNORECASE)
_LIKE_A_SECRET = re.compile(
    r"\b(bearer|basic)\s+\S|\b(sk|pk|rk|hf|gh[opsu]|glpat|xox[abp])[-_](?=[\w-]*\d)[\w-]{6,}", re.IGNORECASE
)


class BadRequest(TaskError):
    """The service refused the request: 4xx, but for those that may pass."""


class BadAnswer(TaskError):
    """The service gave what is no answer."""


class Unavailable(TransientError):
    """The service cannot be reached, or says that it cannot answer now."""


class Exchange:
    """Asks one service.

    The connections are pooled by event loop, of which a run may have several, one after the other. Each pool is closed
    when its loop ends.

    Args:
        url: where it is asked; in its path and query, `${NAME}` stands for an environment variable.
        method: how.
        headers: what is sent beside the body; there too.

    Raises:
        ParameterError: the address or a header cannot be sent.
    """

    def __init__(self, url: str, method: str, headers: Mapping[str, str]) -> None:
        self.url, self.method, self.headers = url, method, dict(headers)
        faults: list[tuple[tuple[str, ...], str]] = [(("url",), told) for told in _faults_of_url(url)]
        faults += [(("headers", name), told) for name, value in headers.items() for told in _faults_of(name, value)]
        if faults:
            raise ParameterError(faults)
        self._host = urlsplit(url).netloc
        self._names = sorted({name for value in (url, *headers.values()) for name in _VARIABLE.findall(value)})
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, _Opened] = WeakKeyDictionary()

    def check(self) -> None:
        """Raises a SpecError where nothing can be asked: a variable is not set, or the client is not installed."""
        _library()
        faults = []
        for name in self._names:
            value = self._secrets.get(name)
            if value is None:
                faults.append((self._place(name), f"the environment variable {name} is not set"))
            elif not (value.isascii() and value.isprintable()):
                told = f"what the environment variable {name} holds cannot be sent; it must be printable ASCII"
                faults.append((self._place(name), told))
        if faults:
            raise ParameterError(faults)

    def _place(self, variable: str) -> tuple[str]:
        return ("url" if variable in _VARIABLE.findall(self.url) else "headers",)

    async def ask(self, **body: Any) -> Any:
        """The JSON of the answer to a request.

        Args:
            body: of the request, as the client takes it: `content` and `headers`, or `files` and `data`.

        Raises:
            Unavailable: it may answer another time.
            BadRequest: it refuses.
            BadAnswer: what came is no JSON, or not all of it.
        """
        return self._parsed(await self._body(body))

    def check_output(self, output: Any) -> None:
        """Stops at what an answer holds that cannot or must not be stored.

        Raises:
            BadAnswer: a key that an object has twice, or the value of a variable.
        """
        try:
            text = json.dumps(output, default=self._refuse)
        except RecursionError:
            raise BadAnswer("the answer is nested too deeply", code="json") from None
        for name, value in self._secrets.items():
            if len(value) >= _SECRET and any(written in text for written in ways_to_write(value)):
                raise BadAnswer(f"the answer repeats the environment variable {name}, so it is not kept", code="secret")

    def _refuse(self, twice: _Twice) -> None:
        told = self.hidden(repr(twice.key))[:_EXCERPT]
        raise BadAnswer(f"an object of the answer has the key {told} twice", code="json")

    async def _body(self, body: Mapping[str, Any]) -> bytes:
        http = _library()
        client, address = await self._client()
        url: httpx2.URL | str = address
        try:
            for _ in range(_REDIRECTS):
                async with client.stream(self.method, url, extensions={"trace": _tell_sent}, **body) as response:
                    if not response.has_redirect_location:
                        return await self._answer(response)
                    url = self._elsewhere(response)
            raise BadAnswer(f"redirects more than {_REDIRECTS} times", code="redirect")
        except (http.ConnectError, http.ConnectTimeout, http.ProxyError) as error:
            raise Unavailable(self.hidden(f"no connection to {self._host}: {error}"), code="connect") from None
        except http.DecodingError as error:
            raise BadAnswer(self.hidden(f"the answer cannot be unpacked: {error}"), code="encoding") from None
        except http.TransportError as error:
            told = str(error) or "the connection was closed"
            raise Unavailable(self.hidden(f"{self._host} broke off: {told}"), code="connection") from None

    def hidden(self, text: str) -> str:
        """A text without the values of variables."""
        for name, value in self._secrets.items():
            for written in ways_to_write(value):
                text = text.replace(written, f"${{{name}}}")
        return text

    def _parsed(self, body: bytes) -> Any:
        try:
            return json.loads(body, object_pairs_hook=_object)  # takes NaN, which servers in Python write
        except (ValueError, RecursionError):
            told = f"no JSON{self._excerpt(body)}" if body.strip() else "empty"
            raise BadAnswer(f"the answer is {told}", code="json") from None

    @property
    def _secrets(self) -> dict[str, str]:
        held = {name: value for name in self._names if (value := os.environ.get(name, "").strip())}
        return dict(sorted(held.items(), key=lambda pair: -len(pair[1])))  # one may be part of another

    async def _client(self) -> _Client:
        loop = asyncio.get_running_loop()
        found = self._clients.get(loop)
        if found is None:
            opened = self._opened()
            found = self._clients[loop] = await anext(opened), opened
        return found[0]

    async def _opened(self) -> AsyncGenerator[_Client]:
        """The client of one loop: a generator, since asyncio closes those that are open when a loop ends."""
        self.check()
        http, secrets = _library(), self._secrets
        client = http.AsyncClient(
            headers={"Accept": "application/json", "User-Agent": f"evaluand/{__version__}"}
            | {name: _VARIABLE.sub(lambda found: secrets[found[1]], text) for name, text in self.headers.items()},
            timeout=None,  # the policy of a run has one, and so has a provider
            limits=http.Limits(),  # and says how many requests there are at once
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),  # or an answer would depend on those before it
        )
        with _hidden_in_logs(self.hidden):
            try:
                yield client, _VARIABLE.sub(lambda found: quote(secrets[found[1]], safe=""), self.url)
            finally:
                await client.aclose()

    def _elsewhere(self, response: httpx2.Response) -> httpx2.URL:
        """Where a redirect leads.

        Raises:
            BadAnswer: to another host, to which nothing is sent, or to another kind of request.
        """
        there = response.url.join(response.headers["Location"])
        shown = self.hidden(f"{there.scheme}://{there.netloc.decode('ascii', 'replace')}{there.path}")
        if response.status_code not in (307, 308):
            told = f"redirects by {response.status_code} to {shown}, which drops the request; give the url that answers"
            raise BadAnswer(told, code="redirect")
        if (there.scheme, there.netloc) != (response.url.scheme, response.url.netloc):
            raise BadAnswer(f"redirects to another host, {shown}, which is not followed", code="redirect")
        return there

    async def _answer(self, response: httpx2.Response) -> bytes:
        if not response.is_success:
            raise self._refusal(response, await _begin(response))
        kind = response.headers.get("Content-Type", "application/json").partition(";")[0].strip().lower()
        if kind not in ("application/json", "text/json") and not kind.endswith("+json"):
            begin = self._excerpt(await _begin(response))
            raise BadAnswer(f"the answer is {kind or 'of no type'}, not application/json{begin}", code="content_type")
        pieces, size = [], 0
        async for piece in response.aiter_bytes():
            size += len(piece)
            if size > LARGEST:
                raise BadAnswer(f"the answer is larger than {LARGEST >> 20} MiB", code="too_large")
            pieces.append(piece)
        return b"".join(pieces)

    def _refusal(self, response: httpx2.Response, begin: bytes) -> TaskError:
        status, code = response.status_code, str(response.status_code)
        told = self.hidden(f"{status} {response.reason_phrase}".strip()) + self._excerpt(begin)
        if status in (408, 425, 429) or status >= 500:
            after = _after(response.headers.get("Retry-After"))
            if after is not None and after > LONGEST_WAIT:
                asks = f"it asks to wait {after:,.0f} s, and {LONGEST_WAIT:g} s is the longest that is waited"
                return TaskError(f"{asks}; {told}", code=code)
            return Unavailable(told, code=code, after=after)
        return BadRequest(told, code=code) if 400 <= status < 500 else BadAnswer(told, code=code)

    def _excerpt(self, begin: bytes) -> str:
        """How an answer begins, on one line, after a colon."""
        text = " ".join(self.hidden(begin.decode("utf-8", "replace")).split())
        return f": {text[:_EXCERPT]}{'…' * (len(text) > _EXCERPT)}" if text else ""


@dataclass(frozen=True)
class _Twice:
    """Stands for the values of a key that an object has twice: which of them is meant cannot be known."""

    key: str


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        made |= {key: _Twice(key) for key, times in Counter(key for key, _ in pairs).items() if times > 1}
    return made


def _library() -> Any:
    try:
        import httpx2
    except ImportError:
        raise SpecError("asking a service needs an HTTP client: pip install evaluand[http]") from None
    return httpx2


async def _tell_sent(event: str, told: Mapping[str, Any]) -> None:
    """Tells the pace that was waited for, so that a slow answer holds up nobody."""
    if event.endswith("send_request_body.complete"):
        sent()


@contextmanager
def _hidden_in_logs(hidden: Callable[[str], str]) -> Iterator[None]:
    """Lets the HTTP library log texts only as `hidden` gives them back."""

    def hide(record: logging.LogRecord) -> bool:
        record.msg, record.args = hidden(record.getMessage()), ()
        return True

    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] in ("httpx2", "httpcore2")]
    loggers = [logging.getLogger(name) for name in names]  # a filter holds for the logger itself, not those below it
    for logger in loggers:
        logger.addFilter(hide)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(hide)


def ways_to_write(value: str) -> Iterator[str]:
    """How a value may stand in a text: as it is, in JSON, in Python, in an address, or in base64 after anything."""
    yield from {value, orjson.dumps(value)[1:-1].decode(), value.replace("\\", "\\\\").replace("'", "\\'")}
    yield quote(value, safe="")
    if len(value) >= _SECRET:
        for before, cut in ((0, 0), (1, 2), (2, 3)):
            encoded = base64.b64encode(b"\0" * before + value.encode()).decode()
            whole = encoded[cut : (before + len(value)) * 4 // 3]  # without what neighbours have a part in
            yield from {whole, whole.replace("+", "-").replace("/", "_")}


def _faults_of_url(url: str) -> Iterator[str]:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        yield f"is no address: {error}"
        return
    if "@" in parts.netloc:  # not shown, since it may hold a password
        yield "holds a user; write what is secret into a header, as ${NAME} of an environment variable"
    elif parts.scheme not in ("http", "https") or not host or not url.isprintable() or " " in url:
        yield f"is {re.split('[?#]', url)[0]!r}; give the whole address, such as https://models.example/answer"
    elif "$" in parts.netloc:
        yield "names its host by a variable; one may stand in the path and the query"
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if _SECRET_PARAMETER.search(name) and not _VARIABLE.fullmatch(value):
            told = "write what is secret as ${NAME} of an environment variable, which is stored nowhere"
            yield f"has {name} in its query; {told}"


def _faults_of(name: str, value: str) -> Iterator[str]:
    if not re.fullmatch(r"[\w!#$%&'*+.^`|~-]+", name, re.ASCII):
        yield "is no name of a header"
    rest = _WHOLE_VARIABLE.sub("", value)
    if _LIKE_A_SECRET.search(rest) or (_CREDENTIAL.search(name) and (rest == value or _VARIABLE.search(rest))):
        yield "write what is secret, all of it, as ${NAME} of an environment variable, which is stored nowhere"
    elif not (value.isascii() and value.isprintable()):
        yield "cannot be sent; a header holds printable ASCII"


async def _begin(response: httpx2.Response) -> bytes:
    """How the body of an answer begins, as far as it comes."""
    http, begin = _library(), b""
    try:
        async for piece in response.aiter_bytes():
            begin += piece
            if len(begin) >= _READ:
                break
    except (http.TransportError, http.DecodingError):
        pass  # the status tells enough
    return begin


def _after(told: str | None) -> float | None:
    """Seconds that a `Retry-After` asks to wait: a number, or a date."""
    if told is None:
        return None
    if told.strip().isdecimal():
        return float(told)
    try:
        return max(0.0, parsedate_to_datetime(told).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
