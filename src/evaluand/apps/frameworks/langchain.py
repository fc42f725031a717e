"""Apps made with LangChain, recorded through its callbacks (`pip install 'evaluand[langchain]'`).

    app = LangChainApp(chain, name="qa")
    with app as recording:
        chain.invoke("Who wrote Emma?")
    app.select_context()                    # the selector of the texts that its retriever found

Chains, retrievers, models and tools have the same place in a record as in the app's object: a sequence has `first`,
`middle[0]` … and `last`, a parallel has `steps__`, a legacy chain has its fields. The calls of a component are recorded
under the method that does the work: `_call(inputs)` of a legacy chain, `_get_relevant_documents(query)` of a retriever,
`invoke(input)` of all others. It is one call, whether it came by `invoke`, `ainvoke`, `stream` or `batch`, and `invoke`
selects it in any component: `app.retriever.invoke` are the calls of `_get_relevant_documents`. First-party objects and
methods with `@instrument` are recorded as in any app, also within a chain. A streamed call ends with its last chunk.

An outermost run of LangChain in the `with` block is a record, even one of a chain that is not part of the app.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Final, Self
from uuid import UUID

from evaluand.apps.app import App
from evaluand.apps.components import Component, find_components
from evaluand.apps.instrumentation.steps import (
    Step,
    ambient,
    begin_step,
    class_key,
    is_recorded,
    open_anywhere,
    report_missed,
)
from evaluand.apps.session import RecordingSession
from evaluand.core.errors import SpecError
from evaluand.core.selector import Selector
from evaluand.models.capture import framework_request

try:
    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.messages import BaseMessage, convert_to_messages
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import Runnable
    from langchain_core.runnables.config import var_child_runnable_config
    from langchain_core.tracers.context import register_configure_hook
except ModuleNotFoundError as error:
    raise SpecError(f"apps made with LangChain need {error.name}: pip install 'evaluand[langchain]'") from None

CALL, RETRIEVE, INVOKE = "_call", "_get_relevant_documents", "invoke"


class LangChainRecordingSession(RecordingSession):
    """What is recorded of runs of LangChain; see `RecordingSession`."""

    def __enter__(self) -> Self:
        self._before = _handler.get()
        _handler.set(_HANDLER)
        return super().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, traceback)
        _handler.set(self._before)


class LangChainApp(App):
    """A chain, or your own object that contains chains, whose runs can be recorded; see `App` for the arguments.

    Example:
        >>> from langchain_core.runnables import RunnableLambda
        >>> chain = RunnableLambda(str.strip) | RunnableLambda(str.upper)
        >>> with LangChainApp(chain, name="shout") as recording:
        ...     _ = chain.invoke(" hello ")
        >>> record = recording.get()
        >>> record["main_output"], record["app"]["first"]["invoke"][0]["rets"]
        ('HELLO', 'hello')
    """

    def record(self, *, tags: str | None = None, meta: Any = None) -> LangChainRecordingSession:
        return LangChainRecordingSession(self, self.tags if tags is None else tags, meta)

    def select_context(self) -> Selector:
        """The selector of the texts that the app's retriever found.

        Raises:
            SpecError: the app has no retriever, or several; names them.
        """
        found = [each for each in self.components if isinstance(each.value, BaseRetriever)]
        if len(found) != 1:
            paths = ", ".join(each.path or "the app itself" for each in found) or "none"
            raise SpecError(f"retrievers of {self.name}: {paths}; select the texts of one by its path")
        path = f".{found[0].path}" if found[0].path else ""
        return Selector(f"__record__.app{path}.{RETRIEVE}[:].rets[:].page_content")

    def _find_components(self) -> list[Component]:
        return find_components(self.target, self._methods, reported=_reported_methods)


class Handler(BaseCallbackHandler):
    """Begins and ends a step for each run that LangChain reports."""

    run_inline = True  # in the context of the run, async too

    def __init__(self) -> None:
        self.steps: dict[UUID, Step] = {}

    def on_chain_start(
        self, serialized: Any, inputs: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **extra: Any
    ) -> None:
        runnable = _running()
        if _method(runnable) == CALL:
            self._begin(run_id, parent_run_id, runnable, CALL, {"inputs": inputs}, "span", extra)
        else:
            self._begin(run_id, parent_run_id, runnable, INVOKE, {"input": inputs}, "span", extra)

    def on_chain_end(self, outputs: Any, *, run_id: UUID, inputs: Any = None, **extra: Any) -> None:
        step = self.steps.get(run_id)
        if step is not None and inputs is not None:  # a streamed run reports its inputs at the end
            step.correct({"input": inputs}, _main(inputs, ()))
        self._end(run_id, outputs)

    def on_retriever_start(
        self, serialized: Any, query: str, *, run_id: UUID, parent_run_id: UUID | None = None, **extra: Any
    ) -> None:
        self._begin(run_id, parent_run_id, _running(), RETRIEVE, {"query": query}, "retriever", extra)

    def on_retriever_end(self, documents: Any, *, run_id: UUID, **extra: Any) -> None:
        self._end(run_id, list(documents))

    def on_llm_start(
        self, serialized: Any, prompts: list[str], *, run_id: UUID, parent_run_id: UUID | None = None, **extra: Any
    ) -> None:
        self._begin(run_id, parent_run_id, _running(), INVOKE, {"input": _sole(prompts)}, "llm", extra)

    def on_chat_model_start(
        self,
        serialized: Any,
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **extra: Any,
    ) -> None:
        self._begin(run_id, parent_run_id, _running(), INVOKE, {"input": _sole(messages)}, "llm", extra)

    def on_llm_end(self, response: Any, *, run_id: UUID, **extra: Any) -> None:
        answers = [getattr(each[0], "message", each[0].text) if each else None for each in response.generations]
        step = self.steps.get(run_id)
        if step is not None:
            step.span.set(**_used(answers, response.llm_output or {}))
        self._end(run_id, _sole(answers))

    def on_tool_start(
        self,
        serialized: Any,
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        inputs: dict[str, Any] | None = None,
        **extra: Any,
    ) -> None:
        given = input_str if inputs is None else inputs
        self._begin(run_id, parent_run_id, _running(), INVOKE, {"input": given}, "tool", extra)

    def on_tool_end(self, output: Any, *, run_id: UUID, **extra: Any) -> None:
        self._end(run_id, output)

    def _failed(self, error: BaseException, *, run_id: UUID, **extra: Any) -> None:
        step = self._leave(run_id)
        if step is not None:
            step.fail(error)

    on_chain_error = on_llm_error = on_retriever_error = on_tool_error = _failed

    def _begin(
        self,
        run_id: UUID,
        parent: UUID | None,
        runnable: Any,
        method: str,
        args: dict[str, Any],
        kind: str,
        extra: Mapping[str, Any],
    ) -> None:
        component = _component(runnable, extra)
        above = None if parent is None else self.steps.get(parent)
        given = _main(next(iter(args.values())), getattr(runnable, "input_keys", ()))
        step = begin_step(component, method, args, kind=kind, given=given, above=above)
        if step is not None:
            self.steps[run_id] = step
            if kind == "llm":
                framework_request.set(step.span)
            if method != INVOKE:  # `invoke` sets no context and returns nothing before its end
                step.add_details(also=INVOKE)
                step.enter()

    def _end(self, run_id: UUID, output: Any) -> None:
        step = self._leave(run_id)
        if step is not None:
            step.end(output, gave=_main(output, ()))

    def _leave(self, run_id: UUID) -> Step | None:
        step = self.steps.pop(run_id, None)
        if step is not None and step.is_entered:
            step.leave()
        return step


class UnrecordedHandler(Handler):
    """Reports the runs of contexts in which nothing is recorded, such as plain threads, while a recording is open."""

    @property
    def ignore_chain(self) -> bool:
        return not open_anywhere  # so that runs cost nothing while nothing is recorded

    ignore_retriever = ignore_llm = ignore_chat_model = ignore_agent = ignore_chain  # tools are agents here

    def _begin(
        self,
        run_id: UUID,
        parent: UUID | None,
        runnable: Any,
        method: str,
        args: dict[str, Any],
        kind: str,
        extra: Mapping[str, Any],
    ) -> None:
        if parent not in _HANDLER.steps and not is_recorded():
            report_missed(_component(runnable, extra), method)


def _component(runnable: Any, extra: Mapping[str, Any]) -> Any:
    """The object that runs, or else the key of its class."""
    return runnable if runnable is not None else class_key("langchain", str(extra.get("name") or "run"))


_HANDLER: Final = Handler()
_ELSEWHERE: Final = UnrecordedHandler()
_handler: ContextVar[BaseCallbackHandler | None] = ContextVar("evaluand.langchain", default=_ELSEWHERE)
register_configure_hook(_handler, inheritable=True)


def _within() -> Step | None:
    """The step of the run whose code is running, according to LangChain."""
    config = var_child_runnable_config.get()
    run_id = getattr(config.get("callbacks"), "parent_run_id", None) if config else None
    return None if run_id is None else _HANDLER.steps.get(run_id)


ambient.append(_within)


def _running() -> Any:
    """The object whose run is reported. It is no argument of the callback, but `self` in one of the calling frames."""
    frame = sys._getframe(2)
    for _ in range(_FRAMES):
        if frame is None:
            return None
        this = frame.f_locals.get("self")
        if isinstance(this, Runnable):
            return this
        frame = frame.f_back  # type: ignore[assignment]
    return None


_FRAMES: Final = 20


def _method(runnable: Any) -> str:
    """The method of a component that does the work."""
    if isinstance(runnable, BaseRetriever):
        return RETRIEVE
    return CALL if any(base.__module__.endswith(".chains.base") for base in type(runnable).__mro__) else INVOKE


def _reported_methods(value: object) -> tuple[str, ...]:
    """The methods under which the calls of a component are recorded."""
    return tuple(dict.fromkeys((_method(value), INVOKE))) if isinstance(value, Runnable) else ()


def _sole(values: Sequence[Any]) -> Any:
    return values[0] if len(values) == 1 else list(values)


def _main(value: Any, keys: Sequence[str]) -> Any:
    """The main part of an input or output: the content of a message, the value of one key of a mapping."""
    if isinstance(value, Mapping):
        texts = [key for key, item in value.items() if isinstance(item, str)]
        known = [key for key in (*keys, *_OUTPUTS) if key in value]
        key = known[0] if known else next(iter(value)) if len(value) == 1 else texts[0] if len(texts) == 1 else None
        if key == "messages" and isinstance(value[key], list):
            with suppress(IndexError, NotImplementedError, ValueError):  # no messages in a form that LangChain takes
                return convert_to_messages(value[key])[-1].content
        return value if key is None else _main(value[key], ())
    if isinstance(value, BaseMessage):
        return value.content
    if isinstance(value, list) and value and isinstance(value[-1], BaseMessage):
        return value[-1].content
    return value


_OUTPUTS: Final = ("output", "answer", "result", "messages")


def _used(answers: Sequence[Any], output: Mapping[str, Any]) -> dict[str, Any]:
    """The tokens and the name that a model reports."""
    reported = [getattr(answer, "usage_metadata", None) for answer in answers]
    tokens: list[Mapping[str, Any]] = [each for each in reported if each]
    used: dict[str, Any] = {}
    if tokens:
        used = {name: sum(each[name] for each in tokens) for name in ("input_tokens", "output_tokens")}
    elif "token_usage" in output:
        names = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"}
        usage = output["token_usage"]
        used = {name: usage[theirs] for name, theirs in names.items() if theirs in usage}
    model = output.get("model_name")
    return used | ({"model": model} if model else {})
