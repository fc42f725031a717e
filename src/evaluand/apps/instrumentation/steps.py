"""Calls in progress: where a step begins and ends, its span, and which recordings it belongs to."""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NamedTuple, Protocol

import orjson
from orjson import Fragment

from evaluand.core.credentials import hide_arguments, hide_credentials
from evaluand.core.identity import decode
from evaluand.core.json_like import text_of
from evaluand.models.capture import framework_spans
from evaluand.trace import UNTRACED, Span, TaskSpan, Trace, current_span, switch
from evaluand.trace.record import CALL


class CallSpan(Span):
    """A span of a call, which stores a description of values that are not data."""

    _by_reference = False

    def _storable(self, value: Any, where: str, name: str = "") -> Any:
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
    """The span of the outermost call; `thread` is the thread that called."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.thread = threading.get_ident()


KINDS: Final = (CallSpan, CallTaskSpan)
_ATOMS: Final = frozenset((str, int, float, bool, type(None)))


def to_span_input(outer: Span, args: Mapping[str, Any]) -> Any:
    """Arguments in the form that the spans of a trace take."""
    if type(outer) is CallSpan or type(outer) is CallTaskSpan or all(type(value) in _ATOMS for value in args.values()):
        return args
    return decode(text_of(args))


def describe_call(main: str | None, args: Mapping[str, Any]) -> dict[str, Any]:
    """What the root stores about the call besides its input; see `evaluand.trace.record.CALL`."""
    call: dict[str, Any] = {"argument": main, "pid": os.getpid(), "tid": threading.get_ident()}
    if main is None or len(args) > 1:
        call["arguments"] = {name: value for name, value in args.items() if name != main}
    return call


def thread_attributes(outer: Span) -> dict[str, Any]:
    """The attribute for a span's thread, if it differs from the root's."""
    root = outer._trace.root
    here = threading.get_ident()
    return {CALL: {"tid": here}} if type(root) is CallTaskSpan and root.thread != here else {}


def extract_trace(top: Span, call_text: str | None, names: Mapping[int, str], gave: Any) -> Trace:
    """The part of a trace below a span as a separate trace, with the names of one recorder."""
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
        name = names.get(number, name)
        events = events and [[message, time - late, body] for message, time, body in events]
        row = [numbers[number], numbers.get(parent), name, kind, start - late, duration, status]
        rows.append([*row, input, output, attributes, events])
    given, call = decode(call_text or "[null,{}]")
    if gave is not ...:
        call["rets"] = top.output
    own = Fragment(text_of({key: value for key, value in top.attributes.items() if key != CALL} | {CALL: call}))
    status, events = rows[0][6], rows[0][10]
    rows[0] = [0, None, rows[0][2], "task", 0, rows[0][5], status, None, None, own, events]
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


class CompletedCall(NamedTuple):
    """A call of an app that has ended; `about` holds `record_id`, `tags` and `meta`, if the call has any."""

    trace: Trace
    error: BaseException | None
    about: Mapping[str, Any] | None = None


class Names(Protocol):
    """Knows the paths of an app's components."""

    def place(self, component: object, /) -> str | None:
        """The path of a component in the app, "" for the app itself; None for objects that are not part of it."""


class Recorder(Names, Protocol):
    """An open recording, which receives the calls of its app."""

    def take(self, recorded: CompletedCall, /) -> None:
        """Records a call; called in the thread where the call ended."""

    def miss(self, component: object, method: str, /) -> None:
        """Receives a call in another thread that is in no record, because nothing is recorded there."""


@contextmanager
def use_names(names: Names) -> Iterator[None]:
    """Names the calls within the block as an app names them; records nothing for the app."""
    scope = _scope.get()
    waiting = scope.waiting if scope else ()
    token = _scope.set(_Scope((_Active(names, None, takes=False),), waiting))
    try:
        yield
    finally:
        _scope.reset(token)


def start_recording(recorder: Recorder) -> None:
    """Records calls in this context from now on, in addition to other recorders."""
    open_anywhere[id(recorder)] = recorder, threading.get_ident()
    scope = _scope.get()
    _scope.set(_Scope(scope.active, (*scope.waiting, recorder)) if scope else _Scope((), (recorder,)))


def stop_recording(recorder: Recorder) -> None:
    """Stops recording calls in this context; calls in progress are still recorded."""
    open_anywhere.pop(id(recorder), None)
    scope = _scope.get()
    if scope is None:
        return
    waiting = tuple(each for each in scope.waiting if each is not recorder)
    _scope.set(_Scope(scope.active, waiting) if waiting or scope.active else None)


def is_open(recorder: Recorder) -> bool:
    """Whether the recorder records calls in this context."""
    scope = _scope.get()
    return scope is not None and any(each is recorder for each in (*scope.waiting, *(a.recorder for a in scope.active)))


def is_recorded() -> bool:
    """Whether calls in this context may be traced."""
    return _scope.get() is not None or current_span() is not None


def report_missed(component: object, method: str) -> None:
    """Reports a call in a context where nothing is recorded to the recordings that are open in other threads."""
    here = threading.get_ident()
    for recorder, thread in list(open_anywhere.values()):
        if thread != here:
            recorder.miss(component, method)


open_anywhere: Final[dict[int, tuple[Recorder, int]]] = {}
"""The recordings that are open in any context, with the threads in which they were opened."""


def current_recorders() -> tuple[Recorder, ...]:
    """The recorders of this context, for generators and coroutines that are created here and run later."""
    scope = _scope.get()
    if scope is None:
        return ()
    return (*(each.recorder for each in scope.active if each.takes), *scope.waiting)


class Step:
    """One traced call, from its beginning to its end.

    To trace something other than a function, such as what a framework reports by callbacks, `begin_step` creates a
    step, and `end` or `fail` ends it, in any context or thread.
    """

    __slots__ = ("_before", "_outer", "_scope", "_started", "is_entered", "span")

    def __init__(self, span: Span, scope: _Scope | None, started: tuple[_Active, ...]) -> None:
        self.span, self._scope, self._started = span, scope, started
        self._outer: Span | None = None
        self._before: _Scope | None = None
        self.is_entered = False

    def enter(self) -> None:
        """Makes it the step that calls in this context belong to."""
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
        else:  # another context, in which a coroutine or a generator was dropped
            switch(here)
        self._outer = self._before = None

    def __enter__(self) -> None:
        self.enter()

    def __exit__(self, *error: object) -> None:
        self.leave()

    def end(self, output: Any, *, gave: Any = ...) -> None:
        """Ends the step of a call that returned.

        `gave` is the output of the app, if the call is the outermost one and that is only a part of what it returned.
        """
        span = self.span
        if span.end_ns is None:
            if gave is ... or span.parent is not None:
                span.record_output(output)
            else:
                call = {**decode(orjson.dumps(span._attributes[CALL])), "rets": output}
                span._attributes[CALL] = span._storable(call, "attributes", CALL)  # not `set`: an output stays as it is
                span.record_output(gave)
            span.end()
        for active in self._started:
            active.end(span, None, gave)

    def add_details(self, **more: Any) -> None:
        """Stores more about the call than its arguments; see `evaluand.trace.record.CALL`."""
        self.span.set(**{CALL: {**(decode(orjson.dumps(self.span._attributes.get(CALL))) or {}), **more}})
        for active in self._started:
            if active.call_text is not None:
                given, call = decode(active.call_text)
                active.call_text = text_of([given, {**call, **more}])

    def correct(self, args: Mapping[str, Any], given: Any) -> None:
        """Replaces the arguments and the input, if they were not known when the call began; see `begin_step`."""
        span = self.span
        if span.end_ns is not None:
            return
        args, given = hide_arguments(args), hide_credentials(given)
        if span.parent is None:
            call = decode(orjson.dumps(span._attributes[CALL]))
            span.set(**{CALL: {**call, "arguments": args}})
            span._input = span._storable(given, "input")
        else:
            span._input = span._storable(to_span_input(span, args), "input")
        for active in self._started:
            if active.call_text is not None:
                active.call_text = text_of([given, {**decode(active.call_text)[1], "arguments": args}])

    def fail(self, error: BaseException, output: Any = None) -> None:
        """Ends the step of a call that raised, or of a generator that was closed or dropped after yielding `output`."""
        span = self.span
        if span.end_ns is None:
            if output is not None:
                span.record_output(output)
            span.__exit__(type(error), error, None)
        for active in self._started:
            active.end(span, None if isinstance(error, GeneratorExit) else error)


def begin_step(
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
    """Begins a step for a call; None where it is not recorded.

    Args:
        component: the object whose method is called; without an object, a class or the function itself.
        method: the method's name.
        args: the arguments by name.
        kind: the kind of the span.
        main: which argument is the input of the app, if the call is the outermost one; default: the first.
        given: the input of the app, if it is not one of the arguments.
        marked: whether calls of objects outside any app are recorded too.
        above: the step that it is part of; default: the current one of the context.
        made: the recorders where it was created; if not all of them record here, it is a separate call for these.
    """
    scope = _scope.get()
    outer = current_span()
    if above is None and ambient:
        above = _deeper(outer)
    if above is not None:
        scope, outer = above._scope, above.span
    if outer is UNTRACED:
        outer = None
    if made and not _is_within(made, current_recorders()):
        scope, outer = _Scope((), made), None
    if scope is None:
        if outer is None:
            if open_anywhere and not is_recorded():
                report_missed(component, method)
            return None
        return Step(
            outer.span(_call_name(None, component, method), kind=kind, input=to_span_input(outer, args)), None, ()
        )
    if outer is not None and not scope.waiting and len(scope.active) == 1:  # a fast path for most calls
        name = _call_name(scope.active[0].recorder, component, method)
        span = outer._trace.open(outer, name, None, kind, to_span_input(outer, args), thread_attributes(outer))
        return Step(span, scope, ())
    starting = _starting(scope, component, marked) if scope.waiting else ()
    if outer is None and not starting:
        return None
    if given is ... and main is None:
        main = next(iter(args), None)
    recorder = scope.active[0].recorder if scope.active else starting[0]
    name = _call_name(recorder, component, method)
    started: tuple[_Active, ...] = ()
    if starting:
        hidden = hide_arguments(args)
        value = hide_credentials(given) if given is not ... else None if main is None else hidden[main]
        call = describe_call(main, hidden)
        text = None if outer is None and len(starting) == 1 else text_of([value, call])
        started = tuple(_Active(each, None if outer is None and each is starting[0] else text) for each in starting)
        waiting = tuple(each for each in scope.waiting if not any(each is other for other in starting))
        scope = _Scope(scope.active + started, waiting)
    if outer is None:
        span = Trace(kinds=KINDS).open(None, name, None, "task", value, {CALL: call})
    else:
        span = outer._trace.open(outer, name, None, kind, to_span_input(outer, args), thread_attributes(outer))
    if len(scope.active) > 1:
        for active in scope.active:
            active.names[span.number] = _call_name(active.recorder, component, method)
    return Step(span, scope, started)


ambient: Final[list[Callable[[], Step | None]]] = []
"""Functions of frameworks that keep track of the current call: each returns the step that is running now."""


def _deeper(outer: Span | None) -> Step | None:
    """The current step of a framework, if it was begun within the current span."""
    for current_step in ambient:
        step = current_step()
        if step is None or step.span.end_ns is not None:
            continue
        if outer is None or (outer._trace is step.span._trace and outer.number < step.span.number):
            return step
    return None


def _framework_span() -> Span | None:
    step = _deeper(current_span())
    return None if step is None else step.span


framework_spans.append(_framework_span)


def _is_within(made: tuple[Recorder, ...], here: tuple[Recorder, ...]) -> bool:
    return all(any(each is other for other in here) for each in made)


class _Scope(NamedTuple):
    """The recordings of a context: those with a call in progress, the outermost first; others, the innermost last."""

    active: tuple[_Active, ...]
    waiting: tuple[Recorder, ...]


_scope: ContextVar[_Scope | None] = ContextVar("evaluand.recordings", default=None)


class _Active:
    """A call that one recorder records.

    It has a trace to itself (`is_whole`), or is cut out of a larger one, with its input and other facts from
    `call_text`; `names` are those of the spans for this recorder, by number, if others record them too. Without
    `takes`, only names are used.
    """

    __slots__ = ("call_text", "is_whole", "names", "recorder", "takes")

    def __init__(self, recorder: Any, call_text: str | None, *, takes: bool = True) -> None:
        self.recorder, self.call_text, self.is_whole, self.takes = recorder, call_text, call_text is None, takes
        self.names: dict[int, str] = {}

    def end(self, span: Span, error: BaseException | None, gave: Any = ...) -> None:
        trace = span._trace if self.is_whole else extract_trace(span, self.call_text, self.names, gave)
        self.recorder.take(CompletedCall(trace, error))


def _starting(scope: _Scope, component: object, marked: bool) -> tuple[Recorder, ...]:
    """The recordings for which a call of a component is the outermost."""
    knowing = tuple(each for each in scope.waiting if each.place(component) is not None)
    if knowing or not marked or scope.active:
        return knowing
    return scope.waiting[-1:]


def _call_name(recorder: Names | None, component: object, method: str) -> str:
    """The name of a call: the path of its component and its method."""
    path = None if recorder is None else recorder.place(component)
    if path is None:
        path = _class_name(component)
    return f"{path}.{method}" if path else method


def _class_name(component: object) -> str:
    """The name of a component outside any app: its class; empty for a function."""
    if isinstance(component, str):  # see `class_key`
        return component.rpartition(":")[2].rpartition(".")[2]
    return "" if component is None or inspect.isroutine(component) else type(component).__name__


def class_key(module: str, qualname: str) -> str:
    """The key of a class, for calls without an object."""
    return f"{module}:{qualname}"
