"""`@instrument`: methods and functions that open a span whenever their calls are recorded.

    class Retriever:
        @instrument(kind="retriever")
        def search(self, query): ...

A call is traced where a recording is open (`App`), or where a task that it is part of is traced; elsewhere it costs a
fraction of a microsecond and nothing else happens. Plain and async functions, generators and async generators are
instrumented alike, and so are class methods, static methods and properties. The output of a generator is everything
that it yielded: its text where it yielded texts, else a list. Its span ends when it is exhausted, closed or dropped. A
generator belongs to the recordings that were open where it was created, even if it is read later or elsewhere; so does
a coroutine.

How calls become records: the first instrumented call in a context begins a trace for every recording that is open there
and knows the component; calls within it are spans of that trace. Where an app is part of another and both are recorded,
there is still one trace, and the inner app's records are cut from it. So each call is traced once, whoever records.

What is open in a context is a context variable, as the current span is: asyncio tasks and `asyncio.to_thread` inherit
it, plain threads do not. Give these a function that carries the context: `pool.submit(carry_context(app.query), text)`.
A call without it is not attributed to a recording that happens to be open elsewhere; it is reported: see
`Recorder.miss`.
"""

import functools
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, ParamSpec, TypeVar, overload

from evaluand.apps.instrumentation.calling import MARK, InstrumentedFunction, wrap
from evaluand.core.errors import SpecError, with_article

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F")


@overload
def instrument(method: F, /) -> F: ...
@overload
def instrument(*, kind: str = "span", name: str | None = None) -> Callable[[F], F]: ...
def instrument(method: Any = None, /, *, kind: str = "span", name: str | None = None) -> Any:
    """Marks a method or a function whose calls are traced when they are recorded.

    Args:
        method: a function, class method, static method or property; above or below such decorators.
        kind: the kind of step: `span`, `llm`, `retriever`, `tool` or any other word.
        name: its name in records; default: the name of the method.

    Example:
        >>> from evaluand.apps.app import App
        >>> class Shout:
        ...     @instrument
        ...     def answer(self, text):
        ...         return text.upper()
        >>> with App(Shout(), name="shout") as recording:
        ...     _ = Shout.answer(recording.app.target, "hello")
        >>> recording.records[0]["main_input"], recording.records[0]["main_output"]
        ('hello', 'HELLO')
    """
    if method is None:
        return lambda method: make_instrumented(method, kind=kind, name=name)
    return make_instrumented(method, kind=kind, name=name)


def make_instrumented(
    method: Any, *, kind: str = "span", name: str | None = None, marked: bool = True, bound: bool | None = None
) -> Any:
    """The instrumented form of a function, or of the descriptor that wraps it; see `instrument` for `kind` and `name`.

    Args:
        marked: whether its author marked it, so that it is traced on objects outside any app too.
        bound: whether its first argument is the object or class that it is called on; None where that is only known
            when it is called: a function does not know whether its class makes a static method of it.
    """
    if isinstance(method, property):
        parts = (
            method.fget and make_instrumented(method.fget, kind=kind, name=name, marked=marked, bound=True),
            method.fset,
        )
        return property(*parts, method.fdel, method.__doc__)
    if isinstance(method, functools.cached_property):
        return functools.cached_property(
            make_instrumented(method.func, kind=kind, name=name, marked=marked, bound=True)
        )
    if isinstance(method, classmethod | staticmethod):
        function = method.__func__
        if hasattr(function, MARK):
            return method
        return type(method)(wrap(InstrumentedFunction(function, kind, name, marked, isinstance(method, classmethod))))
    if isinstance(method, type) or not callable(method):
        raise SpecError(f"@instrument is for functions and methods, not for {with_article(type(method).__name__)}")
    return method if hasattr(method, MARK) else wrap(InstrumentedFunction(method, kind, name, marked, bound))


def is_instrumented(method: object) -> bool:
    """Whether calls of a function, or of the one that a descriptor wraps, are traced."""
    return find_instrumented(method) is not None


def find_instrumented(method: object) -> InstrumentedFunction | None:
    """The instrumentation of a function, or of the one that a descriptor wraps; None where it is not instrumented."""
    for name in ("fget", "func", "__func__"):
        method = getattr(method, name, None) or method
    return getattr(method, MARK, None)


def carry_context(function: Callable[P, R]) -> Callable[P, R]:
    """The function for use in another thread: its calls there belong to what is recorded here and now.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> from evaluand.trace import Trace, current_span
        >>> trace = Trace.start("answer")
        >>> with trace.root, ThreadPoolExecutor() as pool:
        ...     pool.submit(carry_context(current_span)).result() is trace.root
        True
    """
    context = copy_context()

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return context.copy().run(function, *args, **kwargs)

    return call
