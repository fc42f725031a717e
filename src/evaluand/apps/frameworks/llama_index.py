"""Apps made with LlamaIndex, recorded through its instrumentation (`pip install 'evaluand[llama-index]'`).

    app = LlamaIndexApp(index.as_query_engine(), name="qa")
    with app as recording:
        app.app.query("Who wrote Emma?")
    app.select_source_nodes()               # the selector of the nodes that the answer is based on
    app.select_context()                    # of their texts

Everything that LlamaIndex instruments is recorded: queries, chats, retrievals, syntheses, models, embeddings … each
under the path of its component in the app's object (`_retriever.retrieve`) and with its own arguments. First-party
objects and methods with `@instrument` are recorded as in any app. The main input is the question, the main output the
text of the answer; `calls[-1].rets` is the complete response with its nodes. The record of a streamed answer ends when
the answer has been read.

An outermost call in the `with` block is a record, even one of an object that is not part of the app.
"""

from __future__ import annotations

import builtins
import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from pydantic import PrivateAttr

from evaluand.apps.app import App
from evaluand.apps.components import Component, find_components
from evaluand.apps.instrumentation.calling import primed, primed_async
from evaluand.apps.instrumentation.steps import Step, begin_step, class_key
from evaluand.core.errors import SpecError, nearest
from evaluand.core.selector import Selector

try:
    from llama_index.core.base.base_query_engine import BaseQueryEngine
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.base.llms.base import BaseLLM
    from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse
    from llama_index.core.base.response.schema import AsyncStreamingResponse, Response, StreamingResponse
    from llama_index.core.chat_engine.types import AgentChatResponse, BaseChatEngine, StreamingAgentChatResponse
    from llama_index.core.instrumentation.span import BaseSpan
    from llama_index.core.instrumentation.span_handlers import BaseSpanHandler
    from llama_index.core.schema import QueryBundle
    from llama_index.core.tools import BaseTool
    from llama_index.core.workflow import Event, StopEvent, Workflow
    from llama_index_instrumentation import get_dispatcher
    from llama_index_instrumentation.dispatcher import DISPATCHER_SPAN_DECORATED_ATTR as _DECORATED
except ModuleNotFoundError as error:
    raise SpecError(f"apps made with LlamaIndex need {error.name}: pip install 'evaluand[llama-index]'") from None


class LlamaIndexApp(App):
    """A query or chat engine, or your own object that contains one, whose calls can be recorded; see `App`."""

    def select_source_nodes(self, method: str | None = None) -> Selector:
        """The selector of the nodes that the answer is based on: those of the app's only engine.

        Without an engine, they are what its only retriever found.

        Args:
            method: the method of the engine or retriever that your object calls, such as `aquery`; default: `query`,
                `chat` or `retrieve`; any method if the app is the engine itself.

        Raises:
            SpecError: the app has no engine and no retriever, or several; names them. Or they have no such method.
        """
        return Selector(self._nodes(method))

    def select_context(self, method: str | None = None) -> Selector:
        """The selector of the texts of these nodes; see `select_source_nodes`."""
        return Selector(f"{self._nodes(method)}.node.text")

    def _nodes(self, method: str | None) -> str:
        holders = [each for each in self.components if isinstance(each.value, tuple(_ANSWERING))]
        found = _outermost([each for each in holders if not isinstance(each.value, BaseRetriever)] or holders)
        if len(found) != 1:
            paths = ", ".join(each.path for each in found) or "none"
            hint = "select the nodes by the path of one: __record__.app.engine.query[:].rets.source_nodes[:]"
            raise SpecError(f"engines and retrievers of {self.name}: {paths}; {hint}")
        [holder] = found
        nodes = "rets[:]" if isinstance(holder.value, BaseRetriever) else "rets.source_nodes[:]"
        if method is None and not holder.path:
            return f"__record__.calls[-1].{nodes}"
        name = method or next(name for kind, name in _ANSWERING.items() if isinstance(holder.value, kind))
        if name not in holder.methods:
            raise SpecError(f"{holder.path or self.name} has no method {name!r}{nearest(name, holder.methods)}")
        return f"__record__.app.{f'{holder.path}.{name}' if holder.path else name}[:].{nodes}"

    def _find_components(self) -> list[Component]:
        return find_components(self.target, self._methods, reported=_reported_methods)


_ANSWERING: Final[Mapping[type, str]] = {BaseQueryEngine: "query", BaseChatEngine: "chat", BaseRetriever: "retrieve"}
"""Classes that return nodes, and the method that does so."""


def _outermost(components: Sequence[Component]) -> list[Component]:
    """The components that are not part of another one."""
    paths = {each.path for each in components}
    below = {p for p in paths for other in paths - {p} if not other or p.startswith((f"{other}.", f"{other}["))}
    return [each for each in components if each.path not in below]


class Handler(BaseSpanHandler[BaseSpan]):
    """Begins and ends a step for each span that LlamaIndex reports."""

    _steps: dict[str, Step] = PrivateAttr(default_factory=dict)
    _unfinished: dict[int, tuple[str, Any]] = PrivateAttr(default_factory=dict)

    def new_span(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: Any = None,
        parent_span_id: str | None = None,
        tags: dict[str, Any] | None = None,
        **extra: Any,
    ) -> BaseSpan | None:
        place, _, method = id_[:-_UUID].rpartition(".")
        component = class_key("llama_index", place) if instance is None else instance
        args = dict(bound_args.arguments)
        given = _text(args.get("start_event", next(iter(args.values()), None)))  # of a workflow, not its state
        above = None if parent_span_id is None else self._steps.get(parent_span_id)
        step = begin_step(component, method, args, kind=_kind(instance, method), given=given, above=above)
        if step is None:
            return None
        self._steps[id_] = step
        if not isinstance(instance, Workflow):  # whose span ends elsewhere
            step.enter()
        return BaseSpan(id_=id_, parent_id=parent_span_id)

    def prepare_to_exit_span(
        self, id_: str, bound_args: inspect.BoundArguments, instance: Any = None, result: Any = None, **extra: Any
    ) -> BaseSpan | None:
        step = self._leave(id_)
        if step is None:
            return None
        if isinstance(result, StreamingResponse) and isinstance(result.response_gen, Generator):
            result.response_gen = primed(self._read(id_, result, result.response_gen))
        elif isinstance(result, AsyncStreamingResponse) and isinstance(result.response_gen, AsyncGenerator):
            result.response_gen = primed_async(self._read_async(id_, result, result.response_gen))
        elif isinstance(result, StreamingAgentChatResponse):
            self._defer_end(id_, result)
        else:
            self._end(id_, result)
        if isinstance(instance, StreamingAgentChatResponse):  # it is written to the history completely
            self._end_unfinished(instance)
        return self.open_spans.get(id_)

    def prepare_to_drop_span(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: Any = None,
        err: BaseException | None = None,
        **extra: Any,
    ) -> BaseSpan | None:
        step = self._leave(id_)
        if step is None:
            return None
        self._fail(id_, err or RuntimeError("the span was dropped"))
        if isinstance(instance, StreamingAgentChatResponse):
            self._end_unfinished(instance, err)
        return self.open_spans.get(id_)

    def _leave(self, id: str) -> Step | None:
        step = self._steps.get(id)
        if step is not None and step.is_entered:
            step.leave()
        return step

    def _end(self, id: str, result: Any, text: str | None = None) -> None:
        step = self._steps.pop(id, None)
        if step is None:
            return
        used = _used(result)
        if used:
            step.span.set(**used)
        if isinstance(result, Generator | AsyncGenerator):
            result = None  # its items are recorded where it is read
        step.end(_response_data(result, text), gave=_text(result) if text is None else text)

    def _read(
        self, id: str, response: Any, parts: Iterator[Any], text: Callable[[Any], str] = str
    ) -> Generator[Any, None, None]:
        """The parts of an answer, which are generated within the step; it ends with the last of them."""
        with self._reading(id, response) as (step, read):
            yield
            while True:
                with step:
                    part = next(parts, _DONE)
                if part is _DONE:
                    return
                read.append(text(part))
                yield part

    async def _read_async(
        self, id: str, response: AsyncStreamingResponse, parts: AsyncGenerator[str, None]
    ) -> AsyncGenerator[Any, None]:
        with self._reading(id, response) as (step, read):
            yield
            while True:
                with step:
                    part = await anext(parts, _DONE)
                if part is _DONE:
                    return
                read.append(str(part))
                yield part

    @contextmanager
    def _reading(self, id: str, response: Any) -> Iterator[tuple[Step, list[str]]]:
        """The step of an answer and the texts read of it so far; it ends, or fails, with the reading."""
        read: list[str] = []
        try:
            yield self._steps[id], read
        except Exception as error:
            self._fail(id, error)
            raise
        finally:
            self._end(id, response, "".join(read))

    def _fail(self, id: str, error: BaseException) -> None:
        step = self._steps.pop(id, None)
        if step is not None:
            step.fail(error)

    def _defer_end(self, id: str, response: StreamingAgentChatResponse) -> None:
        """Continues the step until a thread has written the complete answer to the history."""
        if not response.is_writing_to_memory and response.chat_stream is not None:
            response.chat_stream = primed(self._read(id, response, response.chat_stream, lambda part: part.delta or ""))
            return
        key = builtins.id(response)
        self._unfinished[key] = (id, response)
        if response.is_done or response.exception is not None:
            self._end_unfinished(response)

    def _end_unfinished(self, response: StreamingAgentChatResponse, error: BaseException | None = None) -> None:
        id, _ = self._unfinished.pop(builtins.id(response), ("", None))
        if error is None:
            self._end(id, response, response.response)
        else:
            self._fail(id, error)


_DONE: Final[Any] = object()
_UUID: Final = 37  # with the dash before it
_HANDLER: Final = Handler()
get_dispatcher().add_span_handler(_HANDLER)


def _reported_methods(value: object) -> tuple[str, ...]:
    """The methods of a component whose calls LlamaIndex reports."""
    names = (name for base in type(value).__mro__ for name, item in vars(base).items() if hasattr(item, _DECORATED))
    return tuple(dict.fromkeys(name for name in names if "_prompt" not in name))


def _kind(instance: Any, method: str) -> str:
    if isinstance(instance, BaseLLM):
        return "llm"
    if isinstance(instance, BaseEmbedding):
        return "embedding"
    if isinstance(instance, BaseTool):
        return "tool"
    return "retriever" if method.strip("_") in ("retrieve", "aretrieve") else "span"


def _text(value: Any) -> Any:
    """The main part of an input or output: the text of a question or a response, also where it is an event's."""
    if type(value) is StopEvent:
        return _text(value.result)
    if isinstance(value, Event):
        fields = {name: getattr(value, name) for name in type(value).model_fields} | dict(value.items())
        names = [name for name in ("user_msg", "response") if fields.get(name)] or [*fields]
        return _text(fields[names[0]]) if len(names) == 1 else fields
    if isinstance(value, QueryBundle):
        return value.query_str
    if isinstance(value, Response | AgentChatResponse | StreamingAgentChatResponse):
        return value.response
    if isinstance(value, list) and value and isinstance(value[-1], ChatMessage):
        return value[-1].content
    if isinstance(value, ChatMessage):
        return value.content
    if isinstance(value, ChatResponse):
        return value.message.content
    return value.text if isinstance(value, CompletionResponse) else value


def _response_data(result: Any, text: str | None) -> Any:
    """A response as data; a streamed one with the text that was read."""
    if text is None:
        return result
    data = {"response": text, "source_nodes": result.source_nodes}
    return data | {name: getattr(result, name) for name in ("metadata", "sources") if hasattr(result, name)}


def _used(result: Any) -> dict[str, Any]:
    """The tokens that a model reports."""
    raw = getattr(result, "raw", None) if isinstance(result, CompletionResponse | ChatResponse) else None
    usage = raw.get("usage") if isinstance(raw, Mapping) else getattr(raw, "usage", None)
    names = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"}
    found = {
        name: usage.get(theirs) if isinstance(usage, Mapping) else getattr(usage, theirs, None)
        for name, theirs in names.items()
    }
    return {name: count for name, count in found.items() if isinstance(count, int)}
