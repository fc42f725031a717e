"""Functions that take the place of others: what they are called with becomes a step, and what they give its output."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Coroutine, Generator, Mapping
from contextlib import suppress
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any, Final

from evaluand.instrument.steps import Step, begin, class_key, is_recorded, missed, open_anywhere

MARK: Final = "__evaluand_call__"
"""The attribute by which an instrumented function is known."""


class Called:
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
            self.keywords -= {*self.names[:1]}
            self.names = self.names[1:]
        qualname = str(getattr(function, "__qualname__", "")).rpartition("<locals>.")[2].rpartition(".")[0]
        self.owner: object = (
            class_key(function.__module__, function.__qualname__.rpartition(".")[0]) if qualname else function
        )

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names under which arguments are told."""
        return tuple(dict.fromkeys((*self.names, *sorted(self.keywords), self.rest, self.extra)))

    def begin(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Step | None:
        """The step of a call, where somebody records it."""
        if not is_recorded():
            if open_anywhere:
                missed(self.component(args), self.name)
            return None
        component = self.component(args)
        given, main = self.given(args[1:] if self.bound else args, kwargs)
        return begin(component, self.name, given, kind=self.kind, main=main, marked=self.marked)

    def component(self, args: tuple[Any, ...]) -> object:
        """What stands for the object or class that it is called on, or for the function itself."""
        if not (self.bound and args):
            return self.owner
        return class_key(args[0].__module__, args[0].__qualname__) if isinstance(args[0], type) else args[0]

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


def wrapped(called: Called) -> Any:
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


def _of_function(called: Called) -> Any:
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
        return finished(step, result)

    return call


def _of_coroutine(called: Called) -> Any:
    function = called.function

    async def call(*args: Any, **kwargs: Any) -> Any:
        step = called.begin(args, kwargs)
        if step is None:
            return await function(*args, **kwargs)
        return await _awaited(step, function(*args, **kwargs))

    return call


def _of_generator(called: Called) -> Any:
    function = called.function

    def call(*args: Any, **kwargs: Any) -> Any:
        step = called.begin(args, kwargs)
        generator = function(*args, **kwargs)
        return (yield from generator if step is None else _given(step, generator))

    return call


def _of_async_generator(called: Called) -> Any:
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


def finished(step: Step, result: Any) -> Any:
    """What a call returned, of which the step may be ended only when it has been read."""
    kind = type(result)
    if kind is GeneratorType:
        given = _given(step, result, primed=True)
        next(given)
        return given
    if kind is AsyncGeneratorType:
        return _primed(_given_async(step, result, primed=True))
    if kind is CoroutineType:
        return _awaited(step, result)
    step.end(result)
    return result


async def _awaited(step: Step, coroutine: Coroutine[Any, Any, Any]) -> Any:
    step.enter()
    try:
        result = await coroutine
    except BaseException as error:
        step.leave()
        step.fail(error)
        raise
    step.leave()
    return finished(step, result)


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
