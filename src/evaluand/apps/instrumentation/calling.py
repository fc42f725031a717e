"""Functions that replace instrumented ones: a call becomes a step, and what it returns becomes the step's output."""

import functools
import inspect
from collections.abc import AsyncGenerator, Coroutine, Generator, Iterator, Mapping
from contextlib import nullcontext, suppress
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any, Final

from evaluand.apps.instrumentation.steps import (
    Recorder,
    Step,
    begin_step,
    class_key,
    current_recorders,
    is_recorded,
    open_anywhere,
    report_missed,
)

MARK: Final = "__evaluand_call__"
"""The attribute of a replacement that holds its `InstrumentedFunction`."""


class InstrumentedFunction:
    """An instrumented function, and how its calls are recorded; see `make_instrumented`."""

    __slots__ = (
        "_bound",
        "extra",
        "function",
        "keywords",
        "kind",
        "marked",
        "name",
        "names",
        "owner",
        "places",
        "rest",
    )

    def __init__(self, function: Any, kind: str, name: str | None, marked: bool, bound: bool | None) -> None:
        self.function, self.kind, self.marked = function, kind, marked
        self.name = name or str(getattr(function, "__name__", type(function).__name__))
        self.places, self.keywords, self.rest, self.extra = _parameters(function)
        qualname = str(getattr(function, "__qualname__", "")).rpartition("<locals>.")[2].rpartition(".")[0]
        self.owner: object = (
            class_key(function.__module__, function.__qualname__.rpartition(".")[0]) if qualname else function
        )
        self.names = self.places
        self._bound: bool | None = None
        if bound is not None or not qualname:
            self._bind(self._looks_bound if bound is None else bound)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names under which arguments are recorded."""
        receiver = self.places[: self._looks_bound if self._bound is None else self._bound]
        names = dict.fromkeys((*self.places, *self.keywords, self.rest, self.extra))
        return tuple(name for name in names if name not in receiver)

    def begin(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], made: tuple[Recorder, ...] = ()) -> Step | None:
        """The step of a call, if it is recorded here, or by the recorders where it was created."""
        if not made and not is_recorded():
            if open_anywhere:
                report_missed(self._received(args)[0], self.name)
            return None
        component, args = self._received(args)
        given, main = self.given(args, kwargs)
        return begin_step(component, self.name, given, kind=self.kind, main=main, marked=self.marked, made=made)

    def _received(self, args: tuple[Any, ...]) -> tuple[object, tuple[Any, ...]]:
        """The object or class that it is called on, or the function itself; and the other arguments."""
        if not args or not self._is_bound(args[0]):
            return self.owner, args
        on = args[0]
        return class_key(on.__module__, on.__qualname__) if isinstance(on, type) else on, args[1:]

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
        return given, next((name for name in self.keywords if name in given), next(iter(given)))

    def _is_bound(self, first: Any) -> bool:
        if self._bound is None:
            self._bind(self._receives(first))
        return bool(self._bound)

    def _bind(self, bound: bool) -> None:
        self.names, self._bound = self.places[bound:], bound

    def _receives(self, first: Any) -> bool:
        """Whether the first argument of a call is what a method of the class is called on, as the class says."""
        kinds: list[type] = [first, type(first)] if isinstance(first, type) else [type(first)]
        for cls in (base for kind in kinds for base in kind.__mro__):
            if class_key(cls.__module__, cls.__qualname__) == self.owner:
                held = inspect.getattr_static(cls, self.function.__name__, None)
                return not isinstance(held, staticmethod)
        return self._looks_bound

    @property
    def _looks_bound(self) -> bool:
        return self.places[:1] in (("self",), ("cls",))


def _parameters(function: Any) -> tuple[tuple[str, ...], dict[str, None], str, str]:
    """Names of the parameters by place, of those by name in their order, and of those that take all others."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # written in C
        return (), {}, "args", "kwargs"
    by_kind: dict[Any, list[str]] = {}
    for each in parameters:
        by_kind.setdefault(each.kind, []).append(each.name)
    positional = by_kind.get(inspect.Parameter.POSITIONAL_ONLY, [])
    either = by_kind.get(inspect.Parameter.POSITIONAL_OR_KEYWORD, [])
    keywords = dict.fromkeys(either + by_kind.get(inspect.Parameter.KEYWORD_ONLY, []))
    rest, extra = (
        by_kind.get(inspect.Parameter.VAR_POSITIONAL, ["args"]),
        by_kind.get(inspect.Parameter.VAR_KEYWORD, ["kwargs"]),
    )
    return (*positional, *either), keywords, rest[0], extra[0]


def wrap(called: InstrumentedFunction) -> Any:
    """The replacement of a function: of the same sort (plain, async, generator), so that callers see no difference."""
    function = called.function
    if inspect.iscoroutinefunction(function):
        call = _wrap_coroutine(called)
    elif inspect.isasyncgenfunction(function):
        call = _wrap_async_generator(called)
    elif inspect.isgeneratorfunction(function):
        call = _wrap_generator(called)
    else:
        call = _wrap_function(called)
    functools.update_wrapper(call, function)
    setattr(call, MARK, called)
    return call


def _wrap_function(called: InstrumentedFunction) -> Any:
    function = called.function

    def call(*args: Any, **kwargs: Any) -> Any:
        step = called.begin(args, kwargs)
        if step is None:
            return function(*args, **kwargs)
        try:
            with step:
                result = function(*args, **kwargs)
        except BaseException as error:
            step.fail(error)
            raise
        return finish(step, result)

    return call


def _wrap_coroutine(called: InstrumentedFunction) -> Any:
    function = called.function

    async def run(made: tuple[Recorder, ...], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        step = called.begin(args, kwargs, made)
        if step is None:
            return await function(*args, **kwargs)
        return await _await_result(step, function(*args, **kwargs))

    return _note_recorders(run, function)


def _wrap_generator(called: InstrumentedFunction) -> Any:
    function = called.function

    def run(made: tuple[Recorder, ...], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        step = called.begin(args, kwargs, made)
        generator = function(*args, **kwargs)
        return (yield from generator if step is None else _read_generator(step, generator))

    return _note_recorders(run, function)


def _wrap_async_generator(called: InstrumentedFunction) -> Any:
    function = called.function

    async def run(made: tuple[Recorder, ...], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        given = _read_async_generator(called.begin(args, kwargs, made), function(*args, **kwargs))
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

    return _note_recorders(run, function)


def _note_recorders(run: Any, function: Any) -> Any:
    """A function that returns generators or coroutines, and notes who records when it is called.

    Generators and coroutines run only when they are read, perhaps after the recording in which they were created, or in
    another thread. The flags of the code object, by which `inspect` tells the sort of a function, are set to those of
    what the function returns.
    """
    functools.update_wrapper(run, function)

    def call(*args: Any, **kwargs: Any) -> Any:
        return run(current_recorders(), args, kwargs)

    call.__code__ = call.__code__.replace(co_flags=call.__code__.co_flags | run.__code__.co_flags & _SORTS)
    return call


_SORTS: Final = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def finish(step: Step, result: Any) -> Any:
    """What a call returned; the step of a generator or coroutine ends only when it has been read."""
    kind = type(result)
    if kind is GeneratorType:
        return primed(_read_generator(step, result, primed=True))
    if kind is AsyncGeneratorType:
        return primed_async(_read_async_generator(step, result, primed=True))
    if kind is CoroutineType:
        return _await_result(step, result)
    step.end(result)
    return result


async def _await_result(step: Step, coroutine: Coroutine[Any, Any, Any]) -> Any:
    try:
        with step:
            result = await coroutine
    except BaseException as error:
        step.fail(error)
        raise
    return finish(step, result)


def _read_generator(
    step: Step, generator: Generator[Any, Any, Any], *, primed: bool = False
) -> Generator[Any, Any, Any]:
    """The items of a generator; its step, which ends with it, is the current one only while it runs.

    `primed` yields once before the first item: a generator that was never started would not end its step.
    """
    given: list[Any] = []
    act, value = generator.send, None
    try:
        if primed:
            yield
        while True:
            with step:
                item = act(value)
            given.append(item)
            try:
                act, value = generator.send, (yield item)
            except GeneratorExit:
                raise
            except BaseException as error:
                act, value = generator.throw, error
    except StopIteration as stop:
        step.end(_join_items(given))
        return stop.value
    except GeneratorExit as dropped:
        _close_generator(step, generator)
        step.fail(dropped, _join_items(given))
        raise
    except BaseException as error:
        step.fail(error, _join_items(given))
        raise


async def _read_async_generator(
    step: Step | None, generator: AsyncGenerator[Any, Any], *, primed: bool = False
) -> AsyncGenerator[Any, Any]:
    """The same for an async generator."""
    given: list[Any] = []
    act: Any = generator.asend
    value: Any = None
    try:
        if primed:
            yield
        while True:
            with step or nullcontext():
                item = await act(value)
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
            step.end(_join_items(given))
    except BaseException as error:
        if isinstance(error, GeneratorExit):
            await generator.aclose()
        if step:
            step.fail(error, _join_items(given))
        raise


def _close_generator(step: Step, generator: Generator[Any, Any, Any]) -> None:
    try:
        with step:
            generator.close()
    except BaseException as error:
        step.fail(error)
        raise


def primed(generator: Iterator[Any]) -> Any:
    """A started generator, which ends its step even if nobody reads it."""
    next(generator)
    return generator


def primed_async(generator: AsyncGenerator[Any, Any]) -> Any:
    """The same for an async generator."""
    with suppress(StopIteration):  # it yields at once and needs no event loop
        generator.__anext__().send(None)
    return generator


def _join_items(given: list[Any]) -> Any:
    """Everything that a generator yielded: its text if all items are texts."""
    return "".join(given) if given and all(isinstance(item, str) for item in given) else given
