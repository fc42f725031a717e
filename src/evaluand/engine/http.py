"""One request to an HTTP service and its answer, or one sentence that says why there is no answer.

A header or a URL may contain a secret: write it as the name of an environment variable, `Bearer ${TOKEN}`; its value is
read when a client is made. No such value appears in an error raised here, nor in what the HTTP library logs while a
client is open. A variable that a file names is sent only where the user allows it (`evaluand.core.secret_hosts`).
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlsplit
from weakref import WeakKeyDictionary

from evaluand.core.errors import ParameterError, SpecError, TaskError, TransientError, warn
from evaluand.core.redaction import LEAST, SHORTEST, TOKEN, hide_values, is_secret, use_secret, written_forms
from evaluand.core.secret_hosts import is_exposed, permissions, refusal
from evaluand.engine.event_loop import run_coroutine
from evaluand.engine.observation import machinery
from evaluand.engine.outcome import NO_CONNECTION

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

    _Client = tuple[aiohttp.ClientSession, URL]
    _Opened = tuple[_Client, AsyncGenerator[_Client]]

logger = logging.getLogger(__name__)

LARGEST = 16 << 20  # bytes of an answer
LONGEST_WAIT = 600.0  # seconds; the longest `Retry-After` that is respected
_JSON = "application/json"
_EVENTS = "text/event-stream"
_REDIRECTS = 5
_REDIRECTING = (301, 302, 303, 307, 308)
_EXCERPT = 300  # characters of an answer shown in a message
_READ = 1 << 16  # bytes read of a refusal, so that its connection can be reused
_SECONDS = re.compile(r"\d{1,9}(\.\d{0,9})?", re.ASCII)

_VARIABLE = re.compile(r"\$\{(\w+)\}")
_WHOLE_VARIABLE = re.compile(r"""(?<![^\s=:,;"'])\$\{\w+\}(?![^\s:,;"'])""")
_CREDENTIAL = re.compile(
    r"auth|token|secret|cookie|passw|passphrase|passcode|key|credential|pwd|bearer|jwt|signature|user-?pass"
    r"|(?<![a-z])(pass|sig|otp)(?![a-z])",
    re.IGNORECASE,
)
_SECRET_PARAMETER = re.compile(
    r"(auth|token|secret|passw(or)?d|passphrase|key|sig|signature|assertion|bearer|jwt|credentials?|cred|pwd"
    r"|user_?pass|(?<![a-z])(pass|pw|sas|otp|pin|sid))([_-]?(\d+|value))*$|^(pass)?code$|^session$",
    re.IGNORECASE,
)
_LIKE_A_SECRET = re.compile(  # stricter than `TOKEN`: the value of a header is rarely a harmless name
    rf"\b(bearer|basic)\s+\S|\b(sk|pk|rk|hf|gh[opsu]|glpat|xox[abp])[-_](?=[\w-]*\d)[\w-]{{6,}}|{TOKEN}", re.IGNORECASE
)


class BadRequest(TaskError):
    """The service refused the request with a 4xx status that a retry would not change.

    Attributes:
        answer: the start of its body.
    """

    answer = ""


class BadAnswer(TaskError):
    """The service answered with something unusable."""


class Unavailable(TransientError):
    """The service cannot be reached, or cannot answer now.

    Attributes:
        answer: the start of its body.
    """

    answer = ""


def refusal_of(status: int, message: str, after: float | None = None) -> TaskError:
    """The error for an answer that is none, by its status.

    Args:
        after: seconds to wait before a repeat, as the service asks.
    """
    code = str(status)
    if status in (408, 425, 429) or status >= 500:
        if after is not None and after > LONGEST_WAIT:
            waiting = f"the service asks to wait {after:,.0f} s, more than the limit of {LONGEST_WAIT:g} s"
            return TaskError(f"{waiting}; {message}", code=code)
        return Unavailable(message, code=code, after=after)
    return BadRequest(message, code=code) if 400 <= status < 500 else BadAnswer(message, code=code)


class HttpClient:
    """Sends requests to one service.

    Connections are pooled per event loop. A pool is closed by `close`, at the latest when its loop ends.

    Args:
        url: the URL; in its path and query, `${NAME}` is replaced by an environment variable.
        headers: the headers of each request, with `${NAME}` as in the URL.
        of_file: whether a file names them and not the user's own code, so that variables are sent only where the user
            allows it.
        extra: of evaluand, which an error names where no client is installed.

    Raises:
        ParameterError: the URL or a header is invalid.
    """

    def __init__(
        self, url: str, method: str, headers: Mapping[str, str], *, of_file: bool = False, extra: str = "http"
    ) -> None:
        self.url, self.method, self.headers, self.of_file, self._extra = url, method, dict(headers), of_file, extra
        faults: list[tuple[tuple[str, ...], str]] = [(("url",), message) for message in _url_faults(url)]
        for name, value in headers.items():
            faults += [(("headers", name), message) for message in _header_faults(name, value)]
            if of_file and name.lower() == "host":  # a host that is reached through another would receive the secrets
                faults.append((("headers", name), "is set by the url; leave it out"))
        if faults:
            raise ParameterError(faults)
        self._host = urlsplit(url).netloc
        self._names = sorted({name for value in (url, *headers.values()) for name in _VARIABLE.findall(value)})
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, _Opened] = WeakKeyDictionary()
        self._in_progress = 0

    def __reduce__(self) -> Any:
        """A worker of a cluster opens its own connections, with the secrets of its own environment."""
        return partial(type(self), self.url, self.method, self.headers, of_file=self.of_file, extra=self._extra), ()

    def check(self) -> None:
        """Checks that requests can be sent, and warns of secrets without encryption.

        Raises:
            SpecError: a variable is not set or must not be sent to this host, or the client is not installed.
        """
        http = _library(self._extra)
        http.proxy_of(http.URL(self.url))
        places = [(name, "url" if name in _VARIABLE.findall(self.url) else "headers") for name in self._names]
        faults = [((place,), fault) for name, place in places if (fault := self._fault_of(name))]
        if faults:
            raise ParameterError(faults)
        if self._names and not self.of_file and is_exposed(self.url) and self._host not in _warned_of:
            _warned_of.add(self._host)
            warn(f"{', '.join(self._names)} is sent to http://{self._host} without encryption; use https")

    def _fault_of(self, name: str) -> str | None:
        """Why the value of a variable cannot be sent, or not to this host; None if it can."""
        if self.of_file:
            allowed, url = permissions(), str(_library().URL(self.url))  # as the client reads it
            if reason := refusal(name, self.url, allowed) or refusal(name, url, allowed):
                return reason
        value = self._secrets.get(name)
        if value is None:
            return f"the environment variable {name} is not set"
        if not (value.isascii() and value.isprintable()):
            return f"the environment variable {name} cannot be sent; it must be printable ASCII"
        return None

    async def ask(self, content: bytes, content_type: str = _JSON) -> Any:
        """Sends a request and returns the parsed JSON of the answer.

        Raises:
            Unavailable: the service may answer later.
            BadRequest: the service refuses the request.
            BadAnswer: the answer is not JSON, or incomplete.
        """
        with machinery():
            pieces = [piece async for piece in self._pieces_of(content, content_type, _JSON)]
        return self.parse(b"".join(pieces))

    async def stream(self, content: bytes) -> AsyncGenerator[bytes]:
        """Sends a request whose answer is a stream of events, and gives the pieces of the stream as they arrive.

        Raises:
            Unavailable: the service may answer later, or the connection was lost.
            BadRequest: the service refuses the request.
            BadAnswer: the answer is no stream of events.
        """
        pieces = self._pieces_of(content, _JSON, _EVENTS)
        try:
            while True:
                with machinery():  # not around the caller's own code between two pieces
                    piece = await anext(pieces, None)
                if piece is None:
                    return
                yield piece
        finally:
            await pieces.aclose()

    def close(self) -> None:
        """Closes the connections, unless a request is in progress; a later request opens new ones."""
        if self._clients:
            run_coroutine(self._close())

    async def _close(self) -> None:
        entry = None if self._in_progress else self._clients.pop(asyncio.get_running_loop(), None)
        if entry is not None:
            await entry[1].aclose()

    def check_output(self, output: Any) -> None:
        """Checks that an answer can be stored.

        Raises:
            BadAnswer: an object has a key twice, or the answer repeats the value of a variable.
        """
        try:
            text = json.dumps(output, default=self._refuse_duplicate)
        except RecursionError:
            raise BadAnswer("the answer is nested too deeply", code="json") from None
        for name, value in self._secrets.items():
            if len(value) >= LEAST and any(written in text for written in written_forms(value)):
                message = f"the answer repeats the environment variable {name}, so it is not stored"
                raise BadAnswer(message, code="secret")

    def _refuse_duplicate(self, duplicate: _DuplicateKey) -> None:
        key = self.hide_secrets(repr(duplicate.key))[:_EXCERPT]
        raise BadAnswer(f"an object of the answer has the key {key} twice", code="json")

    async def _pieces_of(self, content: bytes, content_type: str, wanted: str) -> AsyncGenerator[bytes]:
        """The body of an answer of a wanted type, piece by piece."""
        size = 0
        self._in_progress += 1
        try:
            async with self._answer_to(content, content_type) as answer:
                await self._require(answer, wanted)
                async for piece in answer.content.iter_any():
                    size += len(piece)
                    if size > LARGEST:
                        raise BadAnswer(f"the answer is larger than {LARGEST >> 20} MiB", code="too_large")
                    yield piece
        finally:
            self._in_progress -= 1

    @asynccontextmanager
    async def _answer_to(self, content: bytes, content_type: str) -> AsyncGenerator[aiohttp.ClientResponse]:
        """The answer to a request, behind redirects, of which the body is still to be read."""
        http, (session, url) = _library(self._extra), await self._client()
        try:
            for _ in range(_REDIRECTS):
                async with http.answer_to(session, self.method, url, content, content_type) as answer:
                    logger.debug("%s %s: %d", self.method, self.url, answer.status)
                    if answer.status not in _REDIRECTING or "Location" not in answer.headers:
                        yield answer
                        return
                    url = self._redirect_target(answer)
            raise BadAnswer(f"redirects more than {_REDIRECTS} times", code="redirect")
        except http.NoConnection as error:
            raise Unavailable(
                self.hide_secrets(f"no connection to {self._host}: {error}"), code=NO_CONNECTION
            ) from None
        except http.BadEncoding as error:
            raise BadAnswer(self.hide_secrets(f"the answer cannot be unpacked: {error}"), code="encoding") from None
        except http.ConnectionLost as error:
            message = f"the connection to {self._host} was lost: {error}"
            raise Unavailable(self.hide_secrets(message), code="connection") from None

    def hide_secrets(self, text: str) -> str:
        """A text with `${NAME}` in place of the value of each variable."""
        values = {value: f"${{{name}}}" for name, value in self._secrets.items() if len(value) >= SHORTEST}
        return hide_values(text, values)

    def parse(self, body: bytes) -> Any:
        """The JSON of a body.

        Raises:
            BadAnswer: it is none.
        """
        try:
            text = body.decode(json.detect_encoding(body), "surrogatepass")
            return _DECODER.decode(text)  # accepts NaN, which servers in Python write
        except (ValueError, RecursionError):
            problem = f"not JSON{self._excerpt(body)}" if body.strip() else "empty"
            raise BadAnswer(f"the answer is {problem}", code="json") from None

    @property
    def _secrets(self) -> dict[str, str]:
        return {name: value for name in self._names if (value := os.environ.get(name, "").strip())}

    async def _client(self) -> _Client:
        loop = asyncio.get_running_loop()
        entry = self._clients.get(loop)
        if entry is None:
            generator = self._open_client()
            entry = self._clients[loop] = await anext(generator), generator
        return entry[0]

    async def _open_client(self) -> AsyncGenerator[_Client]:
        """The client of one loop; a generator, because asyncio closes open generators when a loop ends."""
        self.check()
        http, secrets = _library(), self._secrets
        for name, value in secrets.items():
            if is_secret(name) or len(value) >= LEAST:
                use_secret(value, f"${{{name}}}")
        url = http.URL(_VARIABLE.sub(lambda found: quote(secrets[found[1]], safe=""), self.url))
        own = {name: _VARIABLE.sub(lambda found: secrets[found[1]], text) for name, text in self.headers.items()}
        with _redact_logs(self.hide_secrets):
            session = http.open_session(url, own)
            try:
                yield session, url
            finally:
                await session.close()
                await asyncio.sleep(0)  # connections that failed before end now

    def _redirect_target(self, answer: aiohttp.ClientResponse) -> URL:
        """The URL that a redirect leads to.

        Raises:
            BadAnswer: the redirect leads to another host, or changes the kind of request.
        """
        try:
            target = answer.url.join(_library().URL(answer.headers["Location"]))
            is_same_host = target.origin() == answer.url.origin() and not (target.user or target.password)
        except ValueError:
            raise BadAnswer(f"redirects by {answer.status} to no valid URL", code="redirect") from None
        address = self.hide_secrets(f"{target.scheme}://{target.host_port_subcomponent}{target.path}")
        if answer.status not in (307, 308):
            message = f"redirects by {answer.status} to {address}, which drops the request; use the final url"
            raise BadAnswer(message, code="redirect")
        if not is_same_host:
            raise BadAnswer(f"redirects to another host, {address}, which is not followed", code="redirect")
        return target

    async def _require(self, answer: aiohttp.ClientResponse, wanted: str) -> None:
        """Raises an error for an answer that refuses, or of another type."""
        if not 200 <= answer.status < 300:
            raise self._refusal(answer, await _read_start(answer))
        kind = answer.headers.get("Content-Type", wanted).partition(";")[0].strip().lower()
        if kind != wanted and not (wanted == _JSON and (kind == "text/json" or kind.endswith("+json"))):
            start = self._excerpt(await _read_start(answer))
            raise BadAnswer(f"the answer is {kind or 'of no type'}, not {wanted}{start}", code="content_type")

    def _refusal(self, answer: aiohttp.ClientResponse, start: bytes) -> TaskError:
        message = self.hide_secrets(f"{answer.status} {answer.reason or ''}".strip()) + self._excerpt(start)
        error = refusal_of(answer.status, message, _parse_retry_after(answer.headers.get("Retry-After")))
        if isinstance(error, BadRequest | Unavailable):
            error.answer = self.hide_secrets(start.decode("utf-8", "replace"))
        return error

    def _excerpt(self, start: bytes) -> str:
        """The start of an answer on one line, after a colon."""
        text = " ".join(self.hide_secrets(start.decode("utf-8", "replace")).split())
        return f": {text[:_EXCERPT]}{'…' if len(text) > _EXCERPT else ''}" if text else ""


@dataclass(frozen=True)
class _DuplicateKey:
    """Replaces the values of a key that an object has twice, because it is unknown which one is meant."""

    key: str


def _mark_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        members |= {key: _DuplicateKey(key) for key, times in Counter(key for key, _ in pairs).items() if times > 1}
    return members


_DECODER = json.JSONDecoder(object_pairs_hook=_mark_duplicates)  # making one takes as long as reading a small answer


_warned_of: set[str] = set()


def _library(extra: str = "http") -> Any:
    """The module that imports the HTTP client.

    Raises:
        SpecError: it is not installed; the message names the extra that brings it.
    """
    try:
        import aiohttp  # noqa: F401
    except ImportError:
        what = "a model" if extra == "llm" else "a service"
        raise SpecError(f"asking {what} needs an HTTP client: pip install 'evaluand[{extra}]'") from None
    from evaluand.engine import connections

    return connections


@contextmanager
def _redact_logs(hide_secrets: Callable[[str], str]) -> Iterator[None]:
    """Passes every message that the HTTP library logs through `hide_secrets`."""

    def redact(record: logging.LogRecord) -> bool:
        record.msg, record.args = hide_secrets(record.getMessage()), ()
        return True

    loggers = [logging.getLogger(name) for name in ("aiohttp.client", "aiohttp.internal")]
    for logger in loggers:
        logger.addFilter(redact)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(redact)


def _url_faults(url: str) -> Iterator[str]:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        yield f"is not a URL: {error}"
        return
    if "@" in parts.netloc:  # not shown, since it may hold a password
        yield "contains a user; put the secret into a header, as ${NAME} of an environment variable"
    elif parts.scheme not in ("http", "https") or not host or not url.isprintable() or " " in url:
        yield f"is {re.split('[?#]', url)[0]!r}; give the full URL, such as https://models.example/answer"
    elif "$" in parts.netloc:
        yield "has a variable in its host; variables are allowed in the path and the query"
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if (_SECRET_PARAMETER.search(name) or is_secret(name)) and not _VARIABLE.fullmatch(value):
            yield f"has {name} in its query; {_USE_VARIABLE}"


_USE_VARIABLE = "write the secret as ${NAME} of an environment variable; its value is never stored"


def _header_faults(name: str, value: str) -> Iterator[str]:
    if not re.fullmatch(r"[\w!#$%&'*+.^`|~-]+", name, re.ASCII):
        yield "is not a valid header name"
    rest = _WHOLE_VARIABLE.sub("", value)
    if _LIKE_A_SECRET.search(rest) or (_CREDENTIAL.search(name) and (rest == value or _VARIABLE.search(rest))):
        yield _USE_VARIABLE
    elif not (value.isascii() and value.isprintable()):
        yield "cannot be sent; a header must be printable ASCII"


async def _read_start(answer: aiohttp.ClientResponse) -> bytes:
    """The start of an answer's body, as much as arrives."""
    start = b""
    with suppress(_library().aiohttp.ClientError):  # the status says enough
        async for piece in answer.content.iter_any():
            start += piece
            if len(start) >= _READ:
                break
    return start


def _parse_retry_after(header: str | None) -> float | None:
    """Seconds to wait, from a `Retry-After` header: a number or a date."""
    if header is None:
        return None
    if _SECONDS.fullmatch(header.strip()):
        return float(header)
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
