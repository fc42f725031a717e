"""Calls under way: where a step begins and ends, and which recordings it belongs to."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NamedTuple, Protocol

import orjson

from evaluand.apps.instrumentation.spans import KINDS, call_of, cut, shown, thread_of
from evaluand.core.identity import decode
from evaluand.core.json_like import text_of
from evaluand.trace import UNTRACED, Span, Trace, current_span, switch
from evaluand.trace.record import CALL


class CompletedCall(NamedTuple):
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

    def take(self, recorded: CompletedCall, /) -> None:
        """Keeps a call; called in the thread where the call ended."""

    def miss(self, component: object, method: str, /) -> None:
        """Hears of a call in another thread, which is in no record since nothing is recorded there."""


@contextmanager
def named(names: Names) -> Iterator[None]:
    """Calls within have the names that they have in an app; nothing more is recorded of them for it."""
    scope = _scope.get()
    waiting = scope.waiting if scope else ()
    token = _scope.set(_Scope((_Active(names, None, takes=False),), waiting))
    try:
        yield
    finally:
        _scope.reset(token)


def opened(recorder: Recorder) -> None:
    """From now on, calls in this context are recorded by it too."""
    open_anywhere[id(recorder)] = recorder, threading.get_ident()
    scope = _scope.get()
    _scope.set(_Scope(scope.active, (*scope.waiting, recorder)) if scope else _Scope((), (recorder,)))


def closed(recorder: Recorder) -> None:
    """From now on, calls in this context are not recorded by it any more; the calls under way still are."""
    open_anywhere.pop(id(recorder), None)
    scope = _scope.get()
    if scope is None:
        return
    waiting = tuple(each for each in scope.waiting if each is not recorder)
    _scope.set(_Scope(scope.active, waiting) if waiting or scope.active else None)


def is_open(recorder: Recorder) -> bool:
    """Whether calls in this context are recorded by it."""
    scope = _scope.get()
    return scope is not None and any(each is recorder for each in (*scope.waiting, *(a.recorder for a in scope.active)))


def is_recorded() -> bool:
    """Whether calls in this context may be traced by anybody."""
    return _scope.get() is not None or current_span() is not None


def missed(component: object, method: str) -> None:
    """A call was made in a context where nothing is recorded: tells the recordings that are open in other threads."""
    here = threading.get_ident()
    for recorder, thread in list(open_anywhere.values()):
        if thread != here:
            recorder.miss(component, method)


open_anywhere: Final[dict[int, tuple[Recorder, int]]] = {}
"""The recordings that are open in any context, with the threads in which they were opened."""


def recorders() -> tuple[Recorder, ...]:
    """Who records in this context, for what is made here and begins only when it is read."""
    scope = _scope.get()
    if scope is None:
        return ()
    return (*(each.recorder for each in scope.active if each.takes), *scope.waiting)


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

    def tell(self, **more: Any) -> None:
        """Says more of the call beside its arguments; see `evaluand.trace.record.CALL`."""
        self.span.set(**{CALL: {**(decode(orjson.dumps(self.span._attributes.get(CALL))) or {}), **more}})
        for active in self._started:
            if active.told is not None:
                given, call = decode(active.told)
                active.told = text_of([given, {**call, **more}])

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
            span._input = span._kept(shown(span, args), "input")
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
    made: tuple[Recorder, ...] = (),
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
        made: who recorded where it was made; where not all of them do here, it is a call of its own for these.
    """
    scope = _scope.get()
    outer = current_span()
    if above is None and ambient:
        above = _deeper(outer)
    if above is not None:
        scope, outer = above._scope, above.span
    if outer is UNTRACED:
        outer = None
    if made and not _is_within(made, recorders()):
        scope, outer = _Scope((), made), None
    if scope is None:
        if outer is None:
            if open_anywhere and not is_recorded():
                missed(component, method)
            return None
        return Step(outer.span(_name(None, component, method), kind=kind, input=shown(outer, args)), None, ())
    if outer is not None and not scope.waiting and len(scope.active) == 1:  # most calls, in the shortest way
        name = _name(scope.active[0].recorder, component, method)
        span = outer._trace.open(outer, name, None, kind, shown(outer, args), thread_of(outer))
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
        call = call_of(main, args)
        told = None if outer is None and len(starting) == 1 else text_of([value, call])
        started = tuple(_Active(each, None if outer is None and each is starting[0] else told) for each in starting)
        waiting = tuple(each for each in scope.waiting if not any(each is other for other in starting))
        scope = _Scope(scope.active + started, waiting)
    if outer is None:
        span = Trace(kinds=KINDS).open(None, name, None, "task", value, {CALL: call})
    else:
        span = outer._trace.open(outer, name, None, kind, shown(outer, args), thread_of(outer))
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


def _is_within(made: tuple[Recorder, ...], here: tuple[Recorder, ...]) -> bool:
    return all(any(each is other for other in here) for each in made)


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
        takes: whether it keeps the call, and does not only know its names.
        names: what the spans are called for this recorder, by number, where others record them too.
    """

    __slots__ = ("is_whole", "names", "recorder", "takes", "told")

    def __init__(self, recorder: Any, told: str | None, *, takes: bool = True) -> None:
        self.recorder, self.told, self.is_whole, self.takes = recorder, told, told is None, takes
        self.names: dict[int, str] = {}

    def end(self, span: Span, error: BaseException | None, gave: Any = ...) -> None:
        trace = span._trace if self.is_whole else cut(span, self.told, self.names, gave)
        self.recorder.take(CompletedCall(trace, error))


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


def class_key(module: str, qualname: str) -> str:
    """What stands for a class where a call has no object."""
    return f"{module}:{qualname}"
