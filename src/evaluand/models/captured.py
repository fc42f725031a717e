"""One observed request to a model: what was asked, how the answer is read, and what it used.

Nothing here makes the observed code fail: what cannot be read is a note on the span.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from types import ModuleType, TracebackType
from typing import Any, Final
from urllib.parse import urlsplit

from evaluand.core.errors import TaskError, warn
from evaluand.engine.http import LARGEST, BadAnswer, refusal_of
from evaluand.engine.observation import machinery
from evaluand.models.account import current_prices
from evaluand.models.answers import excerpt, mappings, member
from evaluand.models.capture import Capture, Uncaptured, current_capture, framework_request, framework_spans, has_calls
from evaluand.models.chat_request import PROTOCOLS
from evaluand.models.completion import Completion, ToolCall
from evaluand.models.event_stream import EventDecoder
from evaluand.models.question import without_none
from evaluand.trace.chats import LLM
from evaluand.trace.spans import current_span
from evaluand.trace.values import error_text

_ENDPOINT: Final = re.compile(
    r"(?:(?P<chat>/chat/completions)|(?P<responses>/responses)|(?P<anthropic>/messages|:(?:streamR|r)awPredict)"
    r"|(?P<gemini>:(?:streamG|g)enerateContent))$"
)
_NAME: Final = re.compile(r"/(?:models|deployments)/([^/:]+)")
_SETTINGS: Final = {
    **{name: name for name in ("temperature", "top_p", "top_k", "max_tokens", "seed", "reasoning_effort")},
    "topP": "top_p",
    "topK": "top_k",
    **dict.fromkeys(("maxOutputTokens", "max_completion_tokens", "max_output_tokens"), "max_tokens"),
}
"""The settings in the body of a request, and their names in spans."""
_STREAM: Final = "text/event-stream"
_END: Final = b"[DONE]"


class CapturedRequest:
    """A request of the user's code, from when it is sent until its answer has been read."""

    def __init__(self, capture: Capture, protocol: str, url: str, body: dict[str, Any]) -> None:
        named = _NAME.search(url)
        self._capture, self._protocol, self._url, self._body = capture, protocol, url, body
        self._name = str(body.get("model") or (named[1] if named else ""))
        self._open_span()
        self._begun = time.perf_counter()
        self._is_over = False
        self._status, self._kind = 0, ""
        self._pieces: list[bytes] = []
        self._decode: Callable[[bytes], bytes] | None = None
        self._size = 0
        capture.requests.add(self)

    @classmethod
    def begin(cls, method: str, url: str, read_body: Callable[[], Any]) -> CapturedRequest | None:
        """The request, if it asks a model within a call whose requests are observed."""
        endpoint = _ENDPOINT.search(urlsplit(url).path) if method.upper() == "POST" else None
        capture, host = current_capture(), urlsplit(url).hostname
        if endpoint is None or not (has_calls() if capture is None else capture.is_on):
            return None
        try:
            with machinery():
                content = read_body()
                body = json.loads(content) if isinstance(content, str | bytes) else content
                if not isinstance(body, dict) or not body.keys() & {"messages", "input", "contents", "prompt"}:
                    return None  # of another service
                if capture is not None:
                    return cls(capture, str(endpoint.lastgroup), url, body)
        except Exception as error:
            warn(f"a request to {host} is neither traced nor counted: {error_text(error)}")
            return None
        where = "in a thread that knows of no call, so it is neither traced nor counted"
        warn(f"a request to {host} was made {where}; start the thread with contextvars.copy_context().run")
        return None

    def __enter__(self) -> None:
        """Begins what ends the request if it fails: it is sent, or its answer is read."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if error is not None and not isinstance(error, GeneratorExit):
            self._end(error=error)

    def receive(self, status: int, kind: str, decode: Callable[[bytes], bytes] | None = None) -> None:
        """Begins to receive an answer.

        Args:
            kind: its content type.
            decode: undoes the encoding of its content.
        """
        self._status, self._kind, self._decode = status, kind, decode

    def feed(self, piece: bytes) -> None:
        """Receives a piece of the answer."""
        self._size += len(piece)
        if self._size <= LARGEST:
            self._pieces.append(piece)

    def close(self, *, is_complete: bool = False) -> None:
        """Ends with what has been received: all, or what the code has read."""
        if self._is_over:
            return
        with machinery():
            try:
                completion = self._read(is_complete)
            except TaskError as error:
                self._end(error=error)
            except Exception as error:
                self._end(Completion("", notes=[f"the answer cannot be read: {error_text(error)}"]))
            else:
                self._end(completion)

    def _read(self, is_complete: bool) -> Completion:
        """The completion in the answer, with its cost.

        Raises:
            TaskError: there is none.
        """
        if self._size > LARGEST:
            raise ValueError(f"it has more than {LARGEST:,} bytes")
        content = b"".join(self._pieces)
        content = self._decode(content) if self._decode else content
        if self._status >= 400:
            raise refusal_of(self._status, f"HTTP {self._status}: {excerpt(content.decode(errors='replace'))}")
        if _STREAM in self._kind:
            completion = self._read_stream(content, is_complete)
        else:
            completion = PROTOCOLS[self._protocol].read_answer(json.loads(content))
        is_usual = self._body.get("service_tier") in (None, "auto", "default")
        prices, names = current_prices(), (self._name, completion.model) if is_usual else ()
        price = next((price for name in names if name and (price := prices.find(self._url, name))), None)
        return completion.priced(price)

    def _read_stream(self, content: bytes, is_complete: bool) -> Completion:
        stream, texts, has_ended = PROTOCOLS[self._protocol].Stream(), [], False
        for data in EventDecoder().feed(content + b"\n\n"):
            if has_ended := data.strip() == _END:
                break
            texts.append(stream.add(json.loads(data)))
        if not (has_ended or stream.has_ended):
            if is_complete:
                raise BadAnswer("the answer ended before the reply was complete", code="incomplete")
            with suppress(TaskError):
                partial: Completion = stream.end()
                if partial.finish_reason is not None:  # all but the last event, as LiteLLM reads Anthropic's streams
                    return partial
            note = "the stream was closed before its end, so its tokens are unknown"
            return Completion.of("".join(texts), notes=[note])
        completion: Completion = stream.end()
        if completion.output_tokens is None and self._protocol == "chat":
            note = 'the stream has no tokens; ask for them by stream_options={"include_usage": True}'
            return completion._replace(notes=[*completion.notes, note])
        return completion

    def _open_span(self) -> None:
        """Opens the span, or finds that which another tracer has opened for the request."""
        self._span, self._is_own_span = None, False
        if not self._capture.is_traced:
            return
        spans = (find() for find in (framework_request.get, *framework_spans, current_span))
        self._span = next((span for span in spans if span is not None and span.end_ns is None), None)
        if self._span is None or self._span.kind == LLM:
            return
        asked = self._body | (self._body.get("generationConfig") or {})
        settings = {ours: asked[theirs] for theirs, ours in _SETTINGS.items() if asked.get(theirs) is not None}
        tools = [name for tool in mappings(self._body.get("tools")) for name in _names_of(tool)]
        settings |= {"model": self._name, "tools": tools or None}
        try:
            said: Any = [*_messages_of(self._protocol, self._body)]
        except Exception:  # another form, perhaps of a later version
            said = self._body
        self._span = self._span.span("chat", kind=LLM, input=said, **without_none(settings))
        self._is_own_span = True

    def _end(self, completion: Completion | None = None, error: BaseException | None = None) -> None:
        """Counts the request and closes its span, once."""
        if self._is_over:
            return
        self._is_over, self._pieces, span = True, [], self._span
        self._capture.requests.discard(self)
        try:
            usage: dict[str, Any] = {}
            if completion is not None:
                usage = completion.usage(self._name) | {"seconds": time.perf_counter() - self._begun}
            self._capture.add(requests=1, failed=int(completion is None), usage=usage)
            for note in completion.notes if completion is not None and span is None else ():
                warn(f"{self._name}: {note}")
            if span is None or span.end_ns is not None:
                return
            if completion is not None:
                reported = completion.attributes | ({"notes": [*completion.notes]} if completion.notes else {})
                span.set(**{name: value for name, value in reported.items() if span.attribute(name) is None})
                if span.output is None:
                    span.record_output(completion.text)
            if self._is_own_span:
                span.__exit__(type(error) if error else None, error, None)
        except Exception as fault:  # such as a run that has ended meanwhile
            warn(f"the answer of {self._name} is not traced or not counted: {error_text(fault)}")


# What was asked, as messages of chat completions


def _names_of(tool: Mapping[str, Any]) -> Iterator[str]:
    """The names of the functions that a tool describes."""
    for described in (tool, tool.get("function"), *mappings(tool.get("functionDeclarations"))):
        if isinstance(name := member(described, "name"), str):
            yield name


def _messages_of(protocol: str, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The messages of a request."""
    if protocol == "chat":
        yield from map(dict, body["messages"])
        return
    system = body.get("system") or body.get("instructions") or member(body, "systemInstruction", "parts")
    if system:
        yield from _messages_of_turn({"role": "system", "content": system})
    said = body.get("messages") or body.get("contents") or body.get("input") or ()
    for turn in [{"role": "user", "content": said}] if isinstance(said, str) else said:
        yield from _messages_of_turn(turn)


def _messages_of_turn(turn: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A message of Anthropic, a content of Gemini or an item of Responses, with the results of tools apart."""
    role = turn.get("role") or ("user" if "parts" in turn else "assistant")
    content = turn.get("parts", turn.get("content", None if "role" in turn else [turn]))
    parts, calls = [], []
    for part in content if isinstance(content, list) else ():
        call, result = part.get("functionCall") or part, part.get("functionResponse") or part
        if "functionCall" in part or part.get("type") in ("tool_use", "function_call"):
            written = call.get("input", call.get("args", call.get("arguments")))
            text = written if isinstance(written, str) else json.dumps(written or {}, ensure_ascii=False)
            id = call.get("call_id") or call.get("id") or call["name"]
            calls.append(ToolCall(id, call["name"], text).as_sent)
        elif "functionResponse" in part or part.get("type") in ("tool_result", "function_call_output"):
            id = result.get("tool_use_id") or result.get("call_id") or result.get("id") or result.get("name")
            output = result.get("content", result.get("output", result.get("response")))
            yield {"role": "tool", "tool_call_id": id, "content": output}
        elif part.get("thought"):
            parts.append({"type": "thinking", "thinking": part.get("text", "")})
        elif part.get("type") == "reasoning":  # of Responses
            shown = (text for name in ("content", "summary") for text in mappings(part.get(name)))
            parts.append({"type": "thinking", "thinking": "\n".join(str(text.get("text", "")) for text in shown)})
        else:
            parts.append(
                part if "type" in part else {"type": "text" if "text" in part else next(iter(part), ""), **part}
            )
    said = parts if isinstance(content, list) else content
    if said or calls:
        yield {"role": "assistant" if role == "model" else role, "content": said} | (
            {"tool_calls": calls} if calls else {}
        )


# Where requests are seen

_Send = Callable[..., Any]


def methods_of(module: ModuleType) -> Iterable[tuple[type, str, Callable[[_Send], _Send]]]:
    """The methods of a module of `capture.MODULES` that send requests, each with what makes its replacement."""
    if hasattr(module, "BaseApiClient"):
        return ((module.BaseApiClient, "_async_request_once", _observe_genai),)  # others go through httpx
    return (
        (module.Client, "send", lambda send: _observe_httpx(module, send)),
        (module.AsyncClient, "send", lambda send: _observe_httpx_async(module, send)),
    )


def _observe_httpx(module: ModuleType, send: _Send) -> _Send:
    def observed_send(client: Any, request: Any, **options: Any) -> Any:
        observed = CapturedRequest.begin(request.method, str(request.url), lambda: request.content)
        if observed is None:
            return send(client, request, **options)
        with observed, Uncaptured():  # others may have wrapped a replacement that we wrap again
            response = send(client, request, **options)
        return _observe_response(module, response, observed, bool(options.get("stream")))

    return observed_send


def _observe_httpx_async(module: ModuleType, send: _Send) -> _Send:
    async def observed_send(client: Any, request: Any, **options: Any) -> Any:
        observed = CapturedRequest.begin(request.method, str(request.url), lambda: request.content)
        if observed is None:
            return await send(client, request, **options)
        with observed, Uncaptured():
            response = await send(client, request, **options)
        return _observe_response(module, response, observed, bool(options.get("stream")))

    return observed_send


def _observe_response(module: Any, response: Any, observed: CapturedRequest, is_stream: bool) -> Any:
    """A response of httpx: its content is there, or observed when it is read."""
    encoding, kind = (response.headers.get(name, "") for name in ("content-encoding", "content-type"))
    if not is_stream:
        observed.receive(response.status_code, kind)
        observed.feed(response.content)
        observed.close(is_complete=True)
        return response

    def decode(content: bytes) -> bytes:
        decoded: bytes = module.Response(200, headers={"content-encoding": encoding}, content=content).content
        return decoded

    observed.receive(response.status_code, kind, decode if encoding else None)
    response.stream = _stream_class(module)(response.stream, observed)
    return response


@cache
def _stream_class(module: Any) -> Any:
    """The class of the body of a response of httpx that passes on each piece as it comes."""

    class Stream(module.SyncByteStream, module.AsyncByteStream):  # type: ignore[misc]
        def __init__(self, stream: Any, observed: CapturedRequest) -> None:
            self._stream, self._observed = stream, observed

        def __iter__(self) -> Iterator[bytes]:
            with self._observed:
                for piece in self._stream:
                    self._observed.feed(piece)
                    yield piece
            self._observed.close(is_complete=True)

        async def __aiter__(self) -> AsyncIterator[bytes]:
            with self._observed:
                async for piece in self._stream:
                    self._observed.feed(piece)
                    yield piece
            self._observed.close(is_complete=True)

        def close(self) -> None:
            self._observed.close()
            self._stream.close()

        async def aclose(self) -> None:
            self._observed.close()
            await self._stream.aclose()

        def __del__(self) -> None:
            self._observed.close()

    return Stream


def _observe_genai(send: _Send) -> _Send:
    async def observed_send(client: Any, request: Any, stream: bool = False, **options: Any) -> Any:
        observed = CapturedRequest.begin(request.method, request.url, lambda: request.data)
        if observed is None:
            return await send(client, request, stream, **options)
        with observed, Uncaptured():
            response = await send(client, request, stream, **options)
        if not stream:
            observed.receive(200, "application/json")
            observed.feed("".join(response.response_stream).encode())
            observed.close(is_complete=True)
            return response
        segments = response.async_segments

        async def observed_segments() -> AsyncIterator[Any]:
            try:
                with observed:
                    async for event in segments():
                        observed.feed(b"data: %b\n\n" % json.dumps(event).encode())
                        yield event
                observed.close(is_complete=True)
            finally:
                observed.close()

        observed.receive(200, _STREAM)
        response.async_segments = observed_segments
        return response

    return observed_send
