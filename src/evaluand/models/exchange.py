"""Requests to a model over HTTP: how the key is sent, and what an unusable answer means.

Why they are not sent by an SDK: docs/design/0020-model-client.md
"""

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from typing import Any, Final

from evaluand.core.errors import ParameterError, TaskError, TaskTimeout, kind_of
from evaluand.core.secret_hosts import is_of_file
from evaluand.engine.http import BadAnswer, BadRequest, HttpClient, Unavailable
from evaluand.models.answers import spent_quota
from evaluand.models.endpoints import key_headers
from evaluand.models.event_stream import EventDecoder

_END: Final = b"[DONE]"
_VARIABLE: Final = re.compile(r"[A-Z_][A-Z0-9_]*", re.ASCII)
_UNSUPPORTED: Final = re.compile(
    r"[Uu]nsupported (?:parameter|value): '(?P<name>[\w.]+)'|`(?P<old>\w+)` is deprecated for this model"
)
_FORMS: Final = ("response_format", "text", "tool_choice", "tools")
"""What the steps of structured output try in turn."""
_REMEDIES: Final = {
    "max_tokens": "set max_tokens: null and parameters: {max_completion_tokens: …}",
    "logprobs": "this model reports no probabilities",
    "top_logprobs": "this model reports no probabilities",
    "max_completion_tokens": "set max_tokens: null",
    "max_output_tokens": "set max_tokens: null",
    "reasoning.effort": "set reasoning_effort: null",
    **{name: f"set {name}: null" for name in ("temperature", "seed", "reasoning_effort")},
}


class Exchange:
    """Sends requests to one address, and reads JSON.

    Args:
        url: the endpoint up to its version, or complete.
        path: of the protocol below it.
        api_key: the name of the variable that holds the key.
        headers: those that carry a key, by the address and the key.
        timeout: seconds that a request may take.

    Raises:
        ParameterError: the address or the name is invalid.
    """

    def __init__(
        self,
        url: str,
        path: str,
        api_key: str | None,
        timeout: float,
        headers: Callable[[str, str], dict[str, str]] = key_headers,
    ) -> None:
        if api_key is not None and not _VARIABLE.fullmatch(api_key):
            # without the value, which may be the key itself
            problem = "must be the name of the environment variable that holds the key, such as OPENAI_API_KEY"
            raise ParameterError([(("api_key",), problem)])
        self._timeout = timeout
        base, mark, query = url.partition("?")
        base = base.rstrip("/")
        if not base.startswith(("http://", "https://")):
            written = base.partition("#")[0]
            found = "is no URL" if "@" in written else f"is {written!r}"  # which may hold a password
            problem = f"{found}; give the endpoint up to its version, such as https://models.example/v1"
            raise ParameterError([(("url",), problem)])
        path, _, own = path.partition("?")
        query = "&".join(filter(None, (query, own)))
        address = (base if base.endswith(path) else base + path) + (mark or "?" if query else "") + query
        self._http = HttpClient(
            address,
            "POST",
            headers(url, f"${{{api_key}}}") if api_key else {},
            of_file=is_of_file(url, api_key),
            extra="llm",
        )

    def check(self) -> None:
        """Raise a SpecError if no request can be made.

        The key is not set or must not be sent to this host, or no HTTP client is installed.
        """
        with _key_faults():
            self._http.check()

    def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        self._http.close()

    async def ask(self, content: bytes) -> Any:
        """The answer to a request, as data.

        Raises:
            TransientError: the request may succeed later.
            TaskTimeout: it took too long.
            TaskError: there is no usable answer.
        """
        try:
            with _key_faults():
                async with asyncio.timeout(self._timeout):
                    answer = await self._http.ask(content)
        except TimeoutError:
            raise self._overdue() from None
        except (BadRequest, Unavailable) as error:
            raise _explained(error) from None
        self._http.check_output(answer)
        return answer

    async def stream(self, content: bytes, read: Callable[[dict[str, Any]], None]) -> bool:
        """Passes on the events of a streamed answer, as data, until it ends. Raises what `ask` does.

        Returns:
            Whether the server has said that this is the end.
        """
        decoder = EventDecoder()
        try:
            with _key_faults():
                async with asyncio.timeout(self._timeout), aclosing(self._http.stream(content)) as pieces:
                    async for piece in pieces:
                        for data in decoder.feed(piece):
                            if data.strip() == _END:
                                return True
                            read(self._read_event(data))
        except TimeoutError:
            raise self._overdue() from None
        except (BadRequest, Unavailable) as error:
            raise _explained(error) from None
        return False

    def check_reply(self, reply: Any) -> None:
        """Raise a BadAnswer if a reply, put together from events, repeats the key."""
        self._http.check_output(reply)

    def _read_event(self, data: bytes) -> dict[str, Any]:
        event = self._http.parse(data)
        self._http.check_output(event)
        if not isinstance(event, dict):
            raise BadAnswer(f"an event of the answer is {kind_of(event)}, not an object", code="form")
        return event

    def _overdue(self) -> TaskTimeout:
        return TaskTimeout(f"the model took longer than {self._timeout:g} s", code="timeout")


@contextmanager
def _key_faults() -> Iterator[None]:
    """Reports faults of the header that holds the key as those of `api_key`, which is what a user has written."""
    try:
        yield
    except ParameterError as error:
        faults = [(("api_key",) if place[0] == "headers" else place, message) for place, message in error.faults]
        raise ParameterError(faults) from None


def write_content(body: Mapping[str, Any]) -> bytes:
    """The body of a request.

    Raises:
        TaskError: it cannot be written as JSON.
    """
    try:
        return json.dumps(body, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise TaskError(f"the request cannot be written as JSON: {error}", code="request") from None


def _explained(error: BadRequest | Unavailable) -> TaskError:
    """A refusal with advice on what to do, and whether it stops the run."""
    if spent := spent_quota(error, error.answer):
        return spent
    if isinstance(error, Unavailable):
        return error
    found = _UNSUPPORTED.search(str(error))
    name = (found["name"] or found["old"]) if found else ""
    if name.partition(".")[0] in ("", *_FORMS):
        error.stops = error.code == "401"  # every other row would fail too, as with a setting that is refused
        return error
    remedy = _REMEDIES.get(name, f"leave {name} out of the parameters of the model")
    return BadRequest(f"{error}; {remedy}", code=error.code, stops=True)
