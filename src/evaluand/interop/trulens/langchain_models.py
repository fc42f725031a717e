"""Models of LangChain as chat models: a request is a call of the object, whose answer gets the form of OpenAI's.

Everything else (cache, pace, repeats, budgets, spans) is that of `ChatModel`, which these are.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Protocol

from evaluand.core.errors import EvaluandError, SpecError, TaskError, TaskTimeout, TransientError
from evaluand.core.redaction import redact
from evaluand.engine.http import BadRequest
from evaluand.models.chat_model import ChatModel


class Exchange(Protocol):
    """What a `ChatModel` sends its requests through."""

    def check(self) -> None: ...

    def close(self) -> None: ...

    async def ask(self, content: bytes) -> Any: ...


@dataclass(frozen=True)
class ChainModel(ChatModel):
    """A language model of LangChain."""

    chain: Any = field(kw_only=True, repr=False, compare=False)

    @cached_property
    def _exchange(self) -> Exchange:  # type: ignore[override]
        return _ChainExchange(self.chain, self.timeout)


def chain_model(chain: Any, name: str, **settings: Any) -> ChainModel:
    """A LangChain object as a model, with a unique address, because replies are cached by address.

    Raises:
        SpecError: it is no model of LangChain.
    """
    if not callable(getattr(chain, "ainvoke", None)):
        raise SpecError("chain is no language model of LangChain; pass a chat model, such as ChatOpenAI(…)")
    return ChainModel(f"langchain://{next(_numbers)}", name, chain=chain, **settings)


class _ChainExchange:
    def __init__(self, chain: Any, timeout: float) -> None:
        self._chain, self._timeout = chain, timeout

    def check(self) -> None:
        pass

    def close(self) -> None:
        pass

    async def ask(self, content: bytes) -> Any:
        """The answer; LangChain has no general way to ask for the form of a reply, so it is asked for in words."""
        body = json.loads(content)
        if "response_format" in body or "tools" in body:
            raise BadRequest("LangChain's models are asked for JSON in words", code="400")
        messages = [(message["role"], message["content"]) for message in body["messages"]]
        async with _within(self._timeout):
            try:
                reply = await self._chain.ainvoke(messages)
            except Exception as error:
                raise _readable(error) from None
        return _chat_answer(reply)


def _chat_answer(reply: Any) -> dict[str, Any]:
    """What a model of LangChain returned, in the form of a chat completion."""
    text = reply if isinstance(reply, str) else getattr(reply, "text", None)
    text = text() if callable(text) and not isinstance(text, str) else text
    details = getattr(reply, "response_metadata", None) or {}
    used = getattr(reply, "usage_metadata", None) or {}
    ending = details.get("finish_reason") or details.get("stop_reason")
    answer = {"choices": [{"message": {"content": text}, "finish_reason": ending}]}
    if used:
        usage = {"prompt_tokens": used.get("input_tokens"), "completion_tokens": used.get("output_tokens")}
        answer["usage"] = usage  # type: ignore[assignment]
    model = details.get("model_name") or details.get("model")
    return answer | ({"model": model} if model else {})


class _within:  # noqa: N801 - reads as a phrase
    """A block that may take so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._limit = seconds, asyncio.timeout(seconds)

    async def __aenter__(self) -> None:
        await self._limit.__aenter__()

    async def __aexit__(self, *error: Any) -> None:
        try:
            await self._limit.__aexit__(*error)
        except TimeoutError:
            if self._limit.expired():
                raise TaskTimeout(f"the model took longer than {self._seconds:g} s", code="timeout") from None
            raise


def _readable(error: Exception) -> Exception:
    """An error of a library as one of ours, by its HTTP status if it has one."""
    if isinstance(error, EvaluandError | asyncio.TimeoutError):
        return error
    status = getattr(error, "status_code", None) or getattr(getattr(error, "response", None), "status_code", None)
    message = redact(f"{type(error).__name__}: {error}".splitlines()[0])
    code = str(status) if isinstance(status, int) else None
    if status in _TRANSIENT or (isinstance(status, int) and status >= 500) or isinstance(error, ConnectionError):
        return TransientError(message, code=code)
    if isinstance(status, int) and 400 <= status < 500:
        refused = BadRequest(message, code=code)
        refused.stops = status == 401
        return refused
    return TaskError(message, code=code)


_TRANSIENT: Final = (408, 425, 429)
_numbers = itertools.count(1)
