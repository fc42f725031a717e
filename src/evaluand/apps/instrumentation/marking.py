"""Instrumented calls: methods and functions that open a span of their own whenever somebody records them.

    class Retriever:
        @instrument(kind="retriever")
        def search(self, query): ...

A call is traced where a recording is open (`App`), or where a task is traced of which it is part; elsewhere it costs a
fraction of a microsecond and nothing else happens. Plain and async functions, generators and async generators are
instrumented alike, class methods, static methods and properties too. The output of a generator is all that it gave out:
its text where it gave texts, else a list. Its span ends when it is exhausted, closed or dropped. It belongs to
those who recorded where it was made, though it be read later or elsewhere; so does a coroutine.

How calls become records: the first instrumented call in a context begins a trace for every recording that is open there
and knows the component; calls within it are spans of that trace. Where an app is part of another and both are recorded,
there is one trace still, and the inner app's records are cut from it. So each call is traced once, whoever records.

What is open in a context is a context variable, as the current span is: asyncio tasks and `asyncio.to_thread` inherit
it, plain threads do not. Give these a function that carries it with it: `pool.submit(carried(app.query), question)`.
A call without it is not guessed to belong to what happens to be open elsewhere, but told: see `Recorder.miss`.

    instrument/calling.py    functions that take the place of others
    instrument/steps.py      calls under way, and the recordings that they belong to
    instrument/spans.py      the spans of calls, and what is kept of their values
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, ParamSpec, TypeVar, overload

from evaluand.apps.instrumentation.calling import MARK, Called, wrapped
from evaluand.apps.instrumentation.steps import (
    CompletedCall,
    Names,
    Recorder,
    Step,
    ambient,
    begin,
    class_key,
    closed,
    is_open,
    named,
    opened,
)
from evaluand.core.errors import SpecError, with_article

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F")

__all__ = [
    "MARK",
    "CompletedCall",
    "Names",
    "Recorder",
    "Step",
    "ambient",
    "begin",
    "carried",
    "class_key",
    "closed",
    "instrument",
    "instrumented",
    "is_instrumented",
    "is_open",
    "named",
    "opened",
    "told_of",
]


@overload
def instrument(method: F, /) -> F: ...
@overload
def instrument(*, kind: str = "span", name: str | None = None) -> Callable[[F], F]: ...
def instrument(method: Any = None, /, *, kind: str = "span", name: str | None = None) -> Any:
    """Marks a method or a function as one whose calls are traced where somebody records them.

    Args:
        method: a function, class method, static method or property; above or below such decorators.
        kind: what sort of step it is: `span`, `llm`, `retriever`, `tool` or a word of your own.
        name: what it is called in records; its own name if not given.

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
        return lambda method: instrumented(method, kind=kind, name=name)
    return instrumented(method, kind=kind, name=name)


def instrumented(
    method: Any, *, kind: str = "span", name: str | None = None, marked: bool = True, bound: bool | None = None
) -> Any:
    """What takes the place of a method or function; see `instrument`.

    Args:
        method: the function, or the class method, static method or property that holds it.
        kind: the kind of its spans.
        name: what it is called; its own name if not given.
        marked: whether its author said that it is to be traced, so that it is of objects that nobody knows too.
        bound: whether a function's first argument is the object that it is called on, where that is known.
    """
    if isinstance(method, property):
        parts = (
            method.fget and instrumented(method.fget, kind=kind, name=name, marked=marked, bound=True),
            method.fset,
        )
        return property(*parts, method.fdel, method.__doc__)
    if isinstance(method, functools.cached_property):
        return functools.cached_property(instrumented(method.func, kind=kind, name=name, marked=marked, bound=True))
    if isinstance(method, classmethod | staticmethod):
        function = method.__func__
        if hasattr(function, MARK):
            return method
        return type(method)(wrapped(Called(function, kind, name, marked, isinstance(method, classmethod))))
    if isinstance(method, type) or not callable(method):
        raise SpecError(f"@instrument stands on functions and methods, not on {with_article(type(method).__name__)}")
    return method if hasattr(method, MARK) else wrapped(Called(method, kind, name, marked, bound))


def is_instrumented(method: object) -> bool:
    """Whether calls of a function, or of the one that a descriptor holds, are traced."""
    return told_of(method) is not None


def told_of(method: object) -> Called | None:
    """How calls of a function, or of the one that a descriptor holds, are told; None where they are not traced."""
    for name in ("fget", "func", "__func__"):
        method = getattr(method, name, None) or method
    return getattr(method, MARK, None)


def carried(function: Callable[P, R]) -> Callable[P, R]:
    """A function that may be called in any thread and belongs there to what is recorded here and now.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> from evaluand.trace import Trace, current_span
        >>> trace = Trace.start("answer")
        >>> with trace.root, ThreadPoolExecutor() as pool:
        ...     pool.submit(carried(current_span)).result() is trace.root
        True
    """
    context = copy_context()

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return context.copy().run(function, *args, **kwargs)

    return call
