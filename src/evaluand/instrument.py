"""Instrumented calls: methods and functions that open a span of their own whenever somebody records them.

    class Retriever:
        @instrument(kind="retriever")
        def search(self, query): ...

A call is traced where a recording is open (`App`), or where a task is traced of which it is part; elsewhere it costs a
fraction of a microsecond and nothing else happens. Plain and async functions, generators and async generators are
instrumented alike, class methods, static methods and properties too. The output of a generator is all that it gave out:
its text where it gave texts, else a list. Its span ends when it is exhausted, closed or dropped.

How calls become records: the first instrumented call in a context begins a trace for every recording that is open there
and knows the component; calls within it are spans of that trace. Where an app is part of another and both are recorded,
there is one trace still, and the inner app's records are cut from it. So each call is traced once, whoever records.

What is open in a context is a context variable, as the current span is: asyncio tasks and `asyncio.to_thread` inherit
it, plain threads do not. Give these a function that carries it with it: `pool.submit(carried(app.query), question)`.
"""

from __future__ import annotations

import functools
import inspect
import os
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any, Final, NamedTuple, ParamSpec, Protocol, TypeVar, overload

import orjson
from orjson import Fragment

from evaluand.errors import SpecError, with_article
from evaluand.ids import decode
from evaluand.jsonlike import text_of
from evaluand.record import CALL
from evaluand.trace import UNTRACED, Span, TaskSpan, Trace, current_span, switch

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F")

MARK: Final = "__evaluand_call__"
"""The attribute by which an instrumented function is known."""


class Recorded(NamedTuple):
    """A call of an app that has ended.

    Attributes:
        trace: of the call; its root holds the input, the output and the times, as they are stored.
        error: what it failed with, or None.
        about: `record_id`, `tags` and `meta`, where the call has its own.
    """

    trace: Trace
    error: BaseException | None
    about: Mapping[str, Any] | None = None


class Names(Protocol):
    """What knows the components of an app."""

    def place(self, component: object, /) -> str | None:
        """The path of a component in the app, "" for the app itself; None for what is no part of it."""


class Recorder(Names, Protocol):
    """A recording that is open: it takes what was recorded of its app."""

    def take(self, recorded: Recorded, /) -> None:
        """Keeps a call; called in the thread where the call ended."""


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
        >>> from evaluand.app import App
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


def instrumented(method: Any, *, kind: str = "span", name: str | None = None, marked: bool = True) -> Any:
    """What takes the place of a method or function; see `instrument`.

    Args:
        method: the function, or the class method, static method or property that holds it.
        kind: the kind of its spans.
        name: what it is called; its own name if not given.
        marked: whether its author said that it is to be traced, so that it is of objects that nobody knows too.
    """
    if isinstance(method, property):
        parts = (method.fget and instrumented(method.fget, kind=kind, name=name, marked=marked), method.fset)
        return property(*parts, method.fdel, method.__doc__)
    if isinstance(method, functools.cached_property):
        return functools.cached_property(instrumented(method.func, kind=kind, name=name, marked=marked))
    if isinstance(method, classmethod | staticmethod):
        function = method.__func__
        if hasattr(function, MARK):
            return method
        return type(method)(_wrapped(_Called(function, kind, name, marked, isinstance(method, classmethod))))
    if isinstance(method, type) or not callable(method):
        raise SpecError(f"@instrument stands on functions and methods, not on {with_article(type(method).__name__)}")
    return method if hasattr(method, MARK) else _wrapped(_Called(method, kind, name, marked, None))


def is_instrumented(method: object) -> bool:
    """Whether calls of a function, or of the one that a descriptor holds, are traced."""
    for name in ("fget", "func", "__func__"):
        method = getattr(method, name, None) or method
    return hasattr(method, MARK)


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


@contextmanager
def named(names: Names) -> Iterator[None]:
    """Calls within have the names that they have in an app; nothing more is recorded of them for it."""
    scope = _scope.get()
    waiting = scope.waiting if scope else ()
    token = _scope.set(_Scope((_Active(names, None),), waiting))
    try:
        yield
    finally:
        _scope.reset(token)


def opened(recorder: Recorder) -> None:
    """From now on, calls in this context are recorded by it too."""
    scope = _scope.get()
    _scope.set(_Scope(scope.active, (*scope.waiting, recorder)) if scope else _Scope((), (recorder,)))


def closed(recorder: Recorder) -> None:
    """From now on, calls in this context are not recorded by it any more; the calls under way still are."""
    scope = _scope.get()
    if scope is None:
        return
    waiting = tuple(each for each in scope.waiting if each is not recorder)
    _scope.set(_Scope(scope.active, waiting) if waiting or scope.active else None)


def is_open(recorder: Recorder) -> bool:
    """Whether calls in this context are recorded by it."""
    scope = _scope.get()
    return scope is not None and any(each is recorder for each in (*scope.waiting, *(a.recorder for a in scope.active)))


class Step:
    """One traced call, from its beginning to its end.

    Where something else than a function is traced, such as what a framework tells by its callbacks, `begin` makes one,
    and `end` or `fail` ends it, in whatever context or thread.
    """

    __slots__ = ("_before", "_outer", "_scope", "_started", "is_entered", "span")

    def __init__(self, span: Span, scope: _Scope | None, started: tuple[_Active, ...]) -> None:
        self.span, self._scope, self._started = span, scope, started
        self._outer: Span | None = None
        self._before: _Scope | None = None
        self.is_entered = False

    def enter(self) -> None:
        """Makes it what calls in this context belong to."""
        self.is_entered = True
        self._outer, self._before = switch(self.span), _scope.get()
        if self._before is not self._scope:
            _scope.set(self._scope)

    def leave(self) -> None:
        """Ends what `enter` began."""
        self.is_entered = False
        here = switch(self._outer)
        if here is self.span:
            if self._before is not self._scope:
                _scope.set(self._before)
        else:  # another context: a coroutine or a generator was dropped in it
            switch(here)
        self._outer = self._before = None

    def end(self, output: Any, *, gave: Any = ...) -> None:
        """The call gave this.

        Args:
            output: what it returned.
            gave: the output of the app, where the call is the whole and that is only a part of what it returned.
        """
        span = self.span
        if span.end_ns is None:
            if gave is ... or span.parent is not None:
                span.record_output(output)
            else:
                span.set(**{CALL: {**decode(orjson.dumps(span._attributes[CALL])), "rets": output}})
                span.record_output(gave)
            span.end()
        for active in self._started:
            active.end(span, None, gave)

    def correct(self, args: Mapping[str, Any], given: Any) -> None:
        """The call was given this, which was not known when it began; see `begin`."""
        span = self.span
        if span.end_ns is not None:
            return
        if span.parent is None:
            call = decode(orjson.dumps(span._attributes[CALL]))
            span.set(**{CALL: {**call, "arguments": args}})
            span._input = span._kept(given, "input")
        else:
            span._input = span._kept(_shown(span, args), "input")
        for active in self._started:
            if active.told is not None:
                active.told = text_of([given, {**decode(active.told)[1], "arguments": args}])

    def fail(self, error: BaseException, output: Any = None) -> None:
        """The call raised, or, where it is a generator, was closed or dropped before its end, having given so much."""
        span = self.span
        if span.end_ns is None:
            if output is not None:
                span.record_output(output)
            span.__exit__(type(error), error, None)
        for active in self._started:
            active.end(span, None if isinstance(error, GeneratorExit) else error)

    def done(self, result: Any) -> Any:
        """What the call returned, of which the step may be ended only when it has been read."""
        kind = type(result)
        if kind is GeneratorType:
            given = _given(self, result, primed=True)
            next(given)
            return given
        if kind is AsyncGeneratorType:
            return _primed(_given_async(self, result, primed=True))
        if kind is CoroutineType:
            return _awaited(self, result)
        self.end(result)
        return result


def begin(
    component: object,
    method: str,
    args: Mapping[str, Any],
    *,
    kind: str = "span",
    main: str | None = None,
    given: Any = ...,
    marked: bool = True,
    above: Step | None = None,
) -> Step | None:
    """Begins a step for a call where somebody records it; else gives None.

    Args:
        component: the object whose method is called; a class, or the function itself, where there is no object.
        method: the method's name.
        args: what it is called with, by name.
        kind: the kind of the span.
        main: which of the arguments is the input of the app, where the call is the whole; the first if not given.
        given: the input of the app itself, where it is none of the arguments as it stands.
        marked: whether the call is recorded of objects that nobody knows, too.
        above: the step that it is part of; if not given, it is the current one of the context.
    """
    scope = _scope.get()
    outer = current_span()
    if above is None and ambient:
        above = _deeper(outer)
    if above is not None:
        scope, outer = above._scope, above.span
    if outer is UNTRACED:
        outer = None
    if scope is None:
        if outer is None:
            return None
        return Step(outer.span(_name(None, component, method), kind=kind, input=_shown(outer, args)), None, ())
    if outer is not None and not scope.waiting and len(scope.active) == 1:  # most calls, in the shortest way
        name = _name(scope.active[0].recorder, component, method)
        span = outer._trace.open(outer, name, None, kind, _shown(outer, args), _thread(outer))
        return Step(span, scope, ())
    starting = _starting(scope, component, marked) if scope.waiting else ()
    if outer is None and not starting:
        return None
    if given is ... and main is None:
        main = next(iter(args), None)
    recorder = scope.active[0].recorder if scope.active else starting[0]
    name = _name(recorder, component, method)
    started: tuple[_Active, ...] = ()
    if starting:
        value = given if given is not ... else None if main is None else args[main]
        call = _call(main, args)
        told = None if outer is None and len(starting) == 1 else text_of([value, call])
        started = tuple(_Active(each, None if outer is None and each is starting[0] else told) for each in starting)
        waiting = tuple(each for each in scope.waiting if not any(each is other for other in starting))
        scope = _Scope(scope.active + started, waiting)
    if outer is None:
        span = Trace(kinds=_KINDS).open(None, name, None, "task", value, {CALL: call})
    else:
        span = outer._trace.open(outer, name, None, kind, _shown(outer, args), _thread(outer))
    if len(scope.active) > 1:
        for active in scope.active:
            active.names[span.number] = _name(active.recorder, component, method)
    return Step(span, scope, started)


ambient: Final[list[Callable[[], Step | None]]] = []
"""What frameworks that keep a context of their own have to say of which step the code is in that is running now."""


def _deeper(outer: Span | None) -> Step | None:
    """The step that a framework tells of, where it was begun within the current span."""
    for told in ambient:
        step = told()
        if step is None or step.span.end_ns is not None:
            continue
        if outer is None or (outer._trace is step.span._trace and outer.number < step.span.number):
            return step
    return None


# What is recorded in a context


class _Scope(NamedTuple):
    """What is recorded in a context.

    Attributes:
        active: the recordings in which a call is under way, the outermost first.
        waiting: the others, the innermost last.
    """

    active: tuple[_Active, ...]
    waiting: tuple[Recorder, ...]


_scope: ContextVar[_Scope | None] = ContextVar("evaluand.recordings", default=None)


class _Active:
    """A call that one recorder records.

    Attributes:
        is_whole: whether it has a trace to itself, with its names; else it is cut out of one.
        told: its input and what else is said of the call, as text, where it is cut out.
        names: what the spans are called for this recorder, by number, where others record them too.
    """

    __slots__ = ("is_whole", "names", "recorder", "told")

    def __init__(self, recorder: Any, told: str | None) -> None:
        self.recorder, self.told, self.is_whole = recorder, told, told is None
        self.names: dict[int, str] = {}

    def end(self, span: Span, error: BaseException | None, gave: Any = ...) -> None:
        trace = span._trace if self.is_whole else _cut(span, self, gave)
        self.recorder.take(Recorded(trace, error))


def _starting(scope: _Scope, component: object, marked: bool) -> tuple[Recorder, ...]:
    """The recordings for which a call of a component is the outermost."""
    knowing = tuple(each for each in scope.waiting if each.place(component) is not None)
    if knowing or not marked or scope.active:
        return knowing
    return scope.waiting[-1:]


def _name(recorder: Names | None, component: object, method: str) -> str:
    """What a call is called: the path of its component and its method."""
    path = None if recorder is None else recorder.place(component)
    if path is None:
        path = _stranger(component)
    return f"{path}.{method}" if path else method


def _stranger(component: object) -> str:
    """What a component is called that nobody knows: its class; a function has none."""
    if isinstance(component, str):  # see `class_key`
        return component.rpartition(":")[2].rpartition(".")[2]
    return "" if component is None or inspect.isroutine(component) else type(component).__name__


class CallSpan(Span):
    """A span of a call, which keeps of values that are no data what they are like."""

    __slots__ = ()
    _by_reference = False

    def _kept(self, value: Any, where: str, name: str = "") -> Any:
        kind = type(value)
        if (
            kind is Fragment
            or value is None
            or kind is bool
            or (kind is str and value.isascii() and len(value) < 65536)
        ):
            return value
        return Fragment(text_of(value))


class CallTaskSpan(CallSpan, TaskSpan):
    """The span of the whole call; `thread` is the one it was made in."""

    __slots__ = ("thread",)

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.thread = threading.get_ident()


_KINDS: Final = (CallSpan, CallTaskSpan)
_ATOMS: Final = frozenset((str, int, float, bool, type(None)))


def _shown(outer: Span, args: Mapping[str, Any]) -> Any:
    """Arguments as the spans of a trace take them."""
    if type(outer) is CallSpan or type(outer) is CallTaskSpan or all(type(value) in _ATOMS for value in args.values()):
        return args
    return decode(text_of(args))


def _call(main: str | None, args: Mapping[str, Any]) -> dict[str, Any]:
    """What the root says of the call beside its input; see `evaluand.record.CALL`."""
    call: dict[str, Any] = {"argument": main, "pid": os.getpid(), "tid": threading.get_ident()}
    if main is None or len(args) > 1:
        call["arguments"] = {name: value for name, value in args.items() if name != main}
    return call


def _thread(outer: Span) -> dict[str, Any]:
    """What a span says of its thread, where it is another than the root's."""
    root = outer._trace.root
    here = threading.get_ident()
    return {CALL: {"tid": here}} if type(root) is CallTaskSpan and root.thread != here else {}


def _cut(top: Span, active: _Active, gave: Any) -> Trace:
    """The part of a trace below a span as a trace of its own, in the names of one recorder."""
    trace = top._trace
    late = (top.start_ns - trace.root.start_ns) // 1000
    numbers = {top.number: 0}
    rows = []
    for row in trace.rows():
        if row[0] != top.number:
            if row[1] not in numbers:
                continue
            numbers[row[0]] = len(numbers)
        number, parent, name, kind, start, duration, status, input, output, attributes, events = row
        name = active.names.get(number, name)
        events = events and [[message, time - late, body] for message, time, body in events]
        row = [numbers[number], numbers.get(parent), name, kind, start - late, duration, status]
        rows.append([*row, input, output, attributes, events])
    given, call = decode(active.told or "[null,{}]")
    if gave is not ...:
        call["rets"] = top.output
    own = {key: value for key, value in top.attributes.items() if key != CALL}
    status, events = rows[0][6], rows[0][10]
    rows[0] = [0, None, rows[0][2], "task", 0, rows[0][5], status, None, None, _object(own | {CALL: call}), events]
    trace = Trace.from_rows(
        rows,
        name=top.name,
        input=Fragment(text_of(given)),
        output=top._output if gave is ... else Fragment(text_of(gave)),
        start_ns=top.start_ns,
        end_ns=top.end_ns,
        status=top.status,
    )
    return trace


def _object(attributes: Mapping[str, Any]) -> Fragment:
    return Fragment(text_of(attributes))


# What is called


class _Called:
    """A function that is instrumented: how its calls are told.

    Args:
        function: the function.
        kind: of the spans.
        name: what it is called; its own name if not given.
        marked: whether its author wants it traced.
        bound: whether its first argument is the object or class that it is called on; None where its name tells.
    """

    __slots__ = ("bound", "extra", "function", "keywords", "kind", "marked", "name", "names", "owner", "rest")

    def __init__(self, function: Any, kind: str, name: str | None, marked: bool, bound: bool | None) -> None:
        self.function, self.kind, self.marked = function, kind, marked
        self.name = name or str(getattr(function, "__name__", type(function).__name__))
        self.names, self.keywords, self.rest, self.extra = _parameters(function)
        self.bound = (self.names[:1] in (("self",), ("cls",))) if bound is None else bound
        if self.bound:
            self.names = self.names[1:]
        qualname = str(getattr(function, "__qualname__", "")).rpartition("<locals>.")[2].rpartition(".")[0]
        self.owner: object = (
            class_key(function.__module__, function.__qualname__.rpartition(".")[0]) if qualname else function
        )

    def begin(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Step | None:
        """The step of a call, where somebody records it."""
        if _scope.get() is None and current_span() is None:
            return None
        if self.bound and args:
            component, args = args[0], args[1:]
            if isinstance(component, type):
                component = class_key(component.__module__, component.__qualname__)
        else:
            component = self.owner
        given, main = self.given(args, kwargs)
        return begin(component, self.name, given, kind=self.kind, main=main, marked=self.marked)

    def given(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], str | None]:
        """The arguments by name, and the name of the first in the order of the signature."""
        names = self.names
        given = dict(zip(names, args, strict=False))
        if not kwargs and len(args) <= len(names):
            return given, names[0] if args else None
        if len(args) > len(names):
            given[self.rest] = list(args[len(names) :])
        if kwargs:
            other: dict[str, Any] = {}
            for name, value in kwargs.items():
                (given if name in self.keywords else other)[name] = value
            if other:
                given[self.extra] = other
        if args or not kwargs:
            return given, next(iter(given), None)
        return given, next((name for name in names if name in given), next(iter(given)))


def class_key(module: str, qualname: str) -> str:
    """What stands for a class where a call has no object."""
    return f"{module}:{qualname}"


def _parameters(function: Any) -> tuple[tuple[str, ...], frozenset[str], str, str]:
    """Names of the parameters by place, of those by name, and of those that take all others."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # written in C
        return (), frozenset(), "args", "kwargs"
    by_kind: dict[Any, list[str]] = {}
    for each in parameters:
        by_kind.setdefault(each.kind, []).append(each.name)
    positional = by_kind.get(inspect.Parameter.POSITIONAL_ONLY, [])
    either = by_kind.get(inspect.Parameter.POSITIONAL_OR_KEYWORD, [])
    keywords = frozenset(either + by_kind.get(inspect.Parameter.KEYWORD_ONLY, []))
    rest, extra = (
        by_kind.get(inspect.Parameter.VAR_POSITIONAL, ["args"]),
        by_kind.get(inspect.Parameter.VAR_KEYWORD, ["kwargs"]),
    )
    return (*positional, *either), keywords, rest[0], extra[0]


def _wrapped(called: _Called) -> Any:
    """The function that takes the place of one: of the same sort, so that whoever looks takes it for that."""
    function = called.function
    if inspect.iscoroutinefunction(function):
        call = _of_coroutine(called)
    elif inspect.isasyncgenfunction(function):
        call = _of_async_generator(called)
    elif inspect.isgeneratorfunction(function):
        call = _of_generator(called)
    else:
        call = _of_function(called)
    functools.update_wrapper(call, function)
    setattr(call, MARK, called)
    return call


def _of_function(called: _Called) -> Any:
    function = called.function

    def call(*args: Any, **kwargs: Any) -> Any:
        step = called.begin(args, kwargs)
        if step is None:
            return function(*args, **kwargs)
        step.enter()
        try:
            result = function(*args, **kwargs)
        except BaseException as error:
            step.leave()
            step.fail(error)
            raise
        step.leave()
        return step.done(result)

    return call


def _of_coroutine(called: _Called) -> Any:
    function = called.function

    async def call(*args: Any, **kwargs: Any) -> Any:
        step = called.begin(args, kwargs)
        if step is None:
            return await function(*args, **kwargs)
        return await _awaited(step, function(*args, **kwargs))

    return call


def _of_generator(called: _Called) -> Any:
    function = called.function

    def call(*args: Any, **kwargs: Any) -> Any:
        step = called.begin(args, kwargs)
        generator = function(*args, **kwargs)
        return (yield from generator if step is None else _given(step, generator))

    return call


def _of_async_generator(called: _Called) -> Any:
    function = called.function

    async def call(*args: Any, **kwargs: Any) -> Any:
        given = _given_async(called.begin(args, kwargs), function(*args, **kwargs))
        sent, thrown = None, None
        try:
            while True:
                item = await (given.asend(sent) if thrown is None else given.athrow(thrown))
                sent, thrown = None, None
                try:
                    sent = yield item
                except GeneratorExit:
                    raise
                except BaseException as error:
                    thrown = error
        except StopAsyncIteration:
            return
        finally:
            await given.aclose()

    return call


async def _awaited(step: Step, coroutine: Coroutine[Any, Any, Any]) -> Any:
    step.enter()
    try:
        result = await coroutine
    except BaseException as error:
        step.leave()
        step.fail(error)
        raise
    step.leave()
    return step.done(result)


def _given(step: Step, generator: Generator[Any, Any, Any], *, primed: bool = False) -> Generator[Any, Any, Any]:
    """What a generator gives, while its step is the current one only as long as it works.

    Args:
        step: its step, which ends with it.
        generator: of an instrumented call.
        primed: whether to give nothing first: a generator that was never begun would not end its step.
    """
    given: list[Any] = []
    act, value = generator.send, None
    try:
        if primed:
            yield
        while True:
            step.enter()
            try:
                item = act(value)
            finally:
                step.leave()
            given.append(item)
            try:
                act, value = generator.send, (yield item)
            except GeneratorExit:
                raise
            except BaseException as error:
                act, value = generator.throw, error
    except StopIteration as stop:
        step.end(_whole(given))
        return stop.value
    except GeneratorExit as dropped:
        _closed(step, generator)
        step.fail(dropped, _whole(given))
        raise
    except BaseException as error:
        step.fail(error, _whole(given))
        raise


async def _given_async(
    step: Step | None, generator: AsyncGenerator[Any, Any], *, primed: bool = False
) -> AsyncGenerator[Any, Any]:
    """The same of an async generator."""
    given: list[Any] = []
    act: Any = generator.asend
    value: Any = None
    try:
        if primed:
            yield
        while True:
            if step:
                step.enter()
            try:
                item = await act(value)
            finally:
                if step:
                    step.leave()
            if step:
                given.append(item)
            try:
                act, value = generator.asend, (yield item)
            except GeneratorExit:
                raise
            except BaseException as error:
                act, value = generator.athrow, error
    except StopAsyncIteration:
        if step:
            step.end(_whole(given))
    except BaseException as error:
        if isinstance(error, GeneratorExit):
            await generator.aclose()
        if step:
            step.fail(error, _whole(given))
        raise


def _closed(step: Step, generator: Generator[Any, Any, Any]) -> None:
    step.enter()
    try:
        generator.close()
    except BaseException as error:
        step.leave()
        step.fail(error)
        raise
    step.leave()


def _primed(generator: AsyncGenerator[Any, Any]) -> AsyncGenerator[Any, Any]:
    with suppress(StopIteration):  # what gives at once needs no loop
        generator.__anext__().send(None)
    return generator


def _whole(given: list[Any]) -> Any:
    """All that a generator gave out."""
    return "".join(given) if given and all(isinstance(item, str) for item in given) else given
