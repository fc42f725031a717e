"""Tasks: the system under test, as one function from an example's input to an output.

A task is a function with `@task`, an object with `do_run`, or a kind from `evaluand.run.tasks`. Its identity is its
declared version or the fingerprint of its code and everything first-party it reaches; what cannot be fingerprinted
leaves the task unpinned: it runs and is stored, but its results are never reused by themselves.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import itertools
import os
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, ClassVar, ForwardRef, Generic, Protocol, TypeVar, final, overload
from weakref import WeakKeyDictionary

import pyarrow as pa

from evaluand.core.errors import SHOWN_FAULTS, DataError, Fault, SpecError, with_article
from evaluand.core.fingerprint import Identity, code_identity
from evaluand.core.identity import digest, seed_of
from evaluand.data.dataset import Dataset
from evaluand.engine.rate_limit import RateLimit
from evaluand.run.types import Typed, arguments, hints, misfits, typed
from evaluand.trace.spans import TaskSpan
from evaluand.trace.tracer import Tracer

Input = TypeVar("Input")
Output = TypeVar("Output")

MAX_CONCURRENCY = 20
"""How many calls `Task.run_concurrently` makes at a time where nobody says."""


@dataclass(slots=True)
class Request:
    """What a task is called with.

    Attributes:
        input: the example's input: one value, or a mapping where the dataset names several input columns.
        task_span: where to trace what happens inside.
        index: the example's `_index_`.
        id: the example's id, or its index as text.
        replication: which repeat, from 0.
        digest: 16 bytes that stand for what the task can see of the example.
        run_seed: the seed of the whole run.
        timeout: seconds the call may take, or None; for tasks that can end what they started.
        pace: what limits how many attempts may start, or None; for tasks that make several requests of one.
    """

    input: Any
    task_span: TaskSpan
    index: int
    id: str
    replication: int
    digest: bytes
    run_seed: int
    timeout: float | None = None
    pace: RateLimit | None = None

    @property
    def seed(self) -> int:
        """A number that belongs to this input and replication, whatever the order of calls; in [0, 2**63)."""
        return seed_of(self.run_seed, self.digest, self.replication)


@dataclass(frozen=True)
class Candidates:
    """Several answers to one input, best first: what a task returns to give more than one response."""

    values: Sequence[Any]


class Task(ABC, Generic[Input, Output]):
    """The system under test. Implement `do_run`, plain or async.

    Attributes:
        version: declare one to pin the task yourself instead of by fingerprint. With the name it then stands for all
            that changes the answers, constructor arguments and models included: raise it whenever one does.
        items: the output is a list of items that together are the response, such as a tagger's entities.
        expects: the type of what a dataset for the task expects, where only such a dataset makes sense.
        files: files the task depends on beyond those its code names.
        transient: names of error classes that are worth another try here, beside those the policy names.
        names_errors: its failures have types that it names itself, which nobody can know before.
    """

    version: str | None = None
    items: bool = False
    expects: Any = None
    names_errors: ClassVar[bool] = False
    files: Sequence[str | os.PathLike[str]] = ()
    transient: tuple[str, ...] = ()

    @abstractmethod
    def do_run(self, input: Input, task_span: TaskSpan) -> Output | Awaitable[Output]:
        """The output for one input; None says that there is no answer.

        Args:
            input: the example's input.
            task_span: for tracing what happens inside.
        """

    @final
    def run(self, input: Input, tracer: Tracer) -> Output:
        """Runs the task in a span of its own; a task calls its subtasks by it, with its `task_span` as the tracer.

        Args:
            input: what to run it with.
            tracer: where the span is opened.

        Returns:
            The output; of an async task, an awaitable of it.

        Example:
            >>> from evaluand.trace.tracers.in_memory import InMemoryTracer
            >>> tracer = InMemoryTracer()
            >>> task(str.upper).run("hello", tracer), tracer.entries[0].output
            ('HELLO', 'HELLO')
        """
        if self.is_async:
            return self._run_async(input, tracer)  # type: ignore[return-value]
        with tracer.task_span(self.name, input) as task_span:
            output = self.do_run(input, task_span)
            task_span.record_output(output)
        return output  # type: ignore[return-value]

    @final
    def run_concurrently(
        self, inputs: Iterable[Input], tracer: Tracer, concurrency_limit: int = MAX_CONCURRENCY
    ) -> Sequence[Output]:
        """Runs the task with several inputs at a time, in one span; a task may do so within another that does.

        Plain tasks run in threads, of which the caller's is one, so that calls within calls always get on: where many
        such calls are nested, they share the threads that there are. Async tasks run in the caller's loop.

        Args:
            inputs: what to run it with.
            tracer: where the span is opened that holds those of the calls.
            concurrency_limit: how many calls are made at a time, at most.

        Returns:
            The outputs in the order of the inputs; of an async task, an awaitable of them.

        Raises:
            SpecError: the limit is no whole number from 1.
            Exception: what a call raised, of several the one of the earliest input. Calls not yet begun are not made;
                async ones under way are cancelled, as their spans tell, and those in threads are waited for.
        """
        if type(concurrency_limit) is not int or concurrency_limit < 1:
            raise SpecError(f"concurrency_limit must be a whole number from 1, not {concurrency_limit!r}")
        inputs = list(inputs)
        name = f"Concurrent {self.name} tasks"
        if self.is_async:
            return self._run_all_async(name, inputs, tracer, concurrency_limit)  # type: ignore[return-value]
        with tracer.span(name) as span:
            return _in_threads(lambda input: self.run(input, span), inputs, concurrency_limit)

    async def _run_async(self, input: Input, tracer: Tracer) -> Output:
        with tracer.task_span(self.name, input) as task_span:
            output: Output = await self.do_run(input, task_span)  # type: ignore[misc]
            task_span.record_output(output)
        return output

    async def _run_all_async(self, name: str, inputs: Sequence[Input], tracer: Tracer, limit: int) -> list[Output]:
        with tracer.span(name) as span:
            return await _in_coroutines(lambda input: self._run_async(input, span), inputs, limit)

    @property
    def name(self) -> str:
        """What the task is called where nobody names it."""
        return type(self).__name__

    @property
    def is_async(self) -> bool:
        """Whether `call` gives a coroutine."""
        return inspect.iscoroutinefunction(self.do_run)

    @property
    def reads(self) -> tuple[str, ...]:
        """What the output depends on beside the input: any of `index`, `id` and `dataset`, the examples as a whole."""
        return ()

    @property
    def replications(self) -> int | None:
        """How often each example is to be run, where the task knows: a cross-validation has so many repeats."""
        return None

    def prepare(self, dataset: Dataset) -> None:
        """Loads what the calls need; what it raises stops the run before anything is called."""

    def close(self) -> None:
        """Ends what the calls have started; called when a run has ended, however it ended. Calls may follow."""

    def fold(self, index: int, id: str, replication: int) -> int | None:
        """Which fold of a cross-validation the output for an example belongs to, where it belongs to one."""
        return None

    def skips(self, index: int, id: str, replication: int) -> bool:
        """Whether the task is not to be asked about an example, such as one that it learns from.

        It gets a row with the status `skipped`, which counts in no denominator.
        """
        return False

    def known(self, index: int, id: str, replication: int) -> Sequence[Any] | None:
        """The output for an example where it is known before anything is called: empty where there is none.

        None where the task has to be called for it.
        """
        return None

    def call(self, request: Request) -> Any:
        """One call, as the runner makes it; a coroutine where the task is async.

        Where the task declares a type of its input, such as a model, it gets that.
        """
        declared = typed(types_of(self)[0])
        return self.do_run(declared.read(request.input) if declared else request.input, request.task_span)

    def identify(self) -> Identity:
        """The task's identity as it is now."""
        return code_identity("task", self, self.name, version=self.version, files=self.files, items=self.items)


def prepare(task: Task[Any, Any], dataset: Dataset) -> None:
    """Lets a task prepare for a dataset, if the dataset is of the types that the task declares.

    Raises:
        DataError: examples are not of these types; names those examples.
    """
    _require_fit(task, dataset)
    task.prepare(dataset)


def types_of(task: Task[Any, Any]) -> tuple[Any, Any]:
    """The types of input and output that a task declares; None for what it does not.

    They are those of `Task[Input, Output]`, or else the annotations of `do_run` or of the function, read also under
    `from __future__ import annotations`.

    Example:
        >>> def shout(text: str) -> str: ...
        >>> types_of(as_task(shout))
        (<class 'str'>, <class 'str'>)
    """
    if isinstance(task, FunctionTask):
        if task not in _types_of_functions:
            _types_of_functions[task] = (None, None) if task.spread else _annotated(task.function, skipped=0)
        return _types_of_functions[task]
    cls: Any = type(task.inner if isinstance(task, _DuckTask) else task)
    return _types_of_class(cls)


class HasDoRun(Protocol):
    """Anything with `do_run` is a task."""

    def do_run(self, input: Any, task_span: TaskSpan, /) -> Any: ...


Runnable = Task[Any, Any] | HasDoRun | Callable[..., Any]
"""What a runner can run."""


class FunctionTask(Task[Any, Any]):
    """A function as a task; see `task`."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        version: str | None = None,
        items: bool = False,
        files: Sequence[str | os.PathLike[str]] = (),
    ) -> None:
        self.function = function
        self._name = name or str(getattr(function, "__name__", type(function).__name__))
        self.version, self.items, self.files = version, items, files
        self._extras, self.spread = _parameters(function, self._name)

    @property
    def name(self) -> str:
        return self._name

    @property
    def is_async(self) -> bool:
        return is_coroutine_function(self.function)

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(name for name in self._extras if name in ("index", "id"))

    def prepare(self, dataset: Dataset) -> None:
        """Raises a SpecError where the function's parameters are not the dataset's input columns."""
        columns = dataset.roles.input
        if self.spread:
            self._named({} if isinstance(columns, str) else dict.fromkeys(columns))

    def do_run(self, input: Any, task_span: TaskSpan) -> Any:
        return self.call(Request(input, task_span, 0, "0", 0, digest(input), 0))

    def call(self, request: Request) -> Any:
        extras = {name: getattr(request, name) for name in self._extras}
        if self.spread:
            return self.function(**self._named(request.input), **extras)
        declared = typed(types_of(self)[0])
        return self.function(declared.read(request.input) if declared else request.input, **extras)

    def identify(self) -> Identity:
        code = self.function if type(self) is FunctionTask else self  # a subclass may call it otherwise
        return code_identity("function", code, self.name, version=self.version, files=self.files, items=self.items)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def _named(self, input: Any) -> dict[str, Any]:
        if not isinstance(input, Mapping):
            raise SpecError(
                f"task {self.name!r} takes {', '.join(self.spread)}, but the input is one value;"
                f" declare these as input columns: input: [{', '.join(self.spread)}]"
            )
        missing = [name for name in self.spread if name not in input]
        if missing:
            raise SpecError(f"task {self.name!r} takes {', '.join(missing)}, which the input has not")
        return {name: input[name] for name in self.spread}


@overload
def task(
    function: Callable[..., Any],
    /,
    *,
    name: str | None = None,
    version: str | None = None,
    items: bool = False,
    files: Sequence[str | os.PathLike[str]] = (),
) -> FunctionTask: ...
@overload
def task(
    *,
    name: str | None = None,
    version: str | None = None,
    items: bool = False,
    files: Sequence[str | os.PathLike[str]] = (),
) -> Callable[[Callable[..., Any]], FunctionTask]: ...
def task(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Makes a plain or async function a task.

    The first parameter is the input; further parameters named `task_span`, `seed`, `index`, `id` or `replication`
    are filled in. A function with several other parameters takes a mapping input by name.

    Example:
        >>> @task
        ... def shout(text):
        ...     return text.upper()
        >>> shout("hello"), shout.name
        ('HELLO', 'shout')
    """
    if function is None:
        return lambda f: FunctionTask(f, **options)
    return FunctionTask(function, **options)


def as_task(value: Any) -> Task[Any, Any]:
    """A task from a task, a function or an object with `do_run`.

    Raises:
        SpecError: it is none of these.
    """
    if isinstance(value, Task):
        return value
    if isinstance(value, type) and hasattr(value, "do_run"):
        raise SpecError(f"{value.__name__} is a class; give an instance of it: {value.__name__}(…)")
    if hasattr(value, "do_run"):
        return _DuckTask(value)
    if hasattr(value, "predict") and (isinstance(value, type) or not callable(value)):
        name = value.__name__ if isinstance(value, type) else type(value).__name__
        raise SpecError(
            f"{with_article(name)} is an estimator: give EstimatorTask({name}(…), Split(folds=5)) to cross-validate it,"
            " or EstimatorTask(model) where it is fitted already"
        )
    if callable(value):
        return FunctionTask(value)
    raise SpecError(
        f"{with_article(type(value).__name__)} is no task: give a function, or an object with do_run(input, task_span)"
    )


def is_coroutine_function(function: Callable[..., Any]) -> bool:
    """Whether what is called gives a coroutine: an async function, or an object with an async `__call__`."""
    called = getattr(type(function), "__call__", None)  # noqa: B004 - it is the class's own that a call looks for
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)


def may_give_several(task: Task[Any, Any]) -> bool:
    """Whether a call may answer by `Candidates`, as far as that can be known before: where its file names them.

    Example:
        >>> import textwrap
        >>> may_give_several(as_task(textwrap.dedent)), may_give_several(as_task(lambda text: Candidates([text])))
        (False, True)
    """
    code = task.function if isinstance(task, FunctionTask) else getattr(task, "inner", task)
    code = inspect.unwrap(code) if inspect.isfunction(code) else type(code)
    named = vars(sys.modules[code.__module__]).values() if code.__module__ in sys.modules else ()
    return any(value is Candidates or value is sys.modules["evaluand"] for value in named)


class _DuckTask(Task[Any, Any]):
    """An object that has `do_run` without being a `Task`."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.version = getattr(inner, "version", None)
        self.items = bool(getattr(inner, "items", False))

    @property
    def name(self) -> str:
        return type(self.inner).__name__

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.inner.do_run)

    def do_run(self, input: Any, task_span: TaskSpan) -> Any:
        return self.inner.do_run(input, task_span)

    def identify(self) -> Identity:
        return code_identity("task", self.inner, self.name, version=self.version, files=self.files, items=self.items)


def _in_threads(call: Callable[[Any], Any], inputs: Sequence[Any], limit: int) -> list[Any]:
    """The outputs of calls made by this thread and helpers of it, as many as there may be."""
    work = _Work(len(inputs))

    def help() -> None:
        while (at := work.next()) is not None:
            try:
                work.outputs[at] = call(inputs[at])
            except BaseException as error:
                work.failed(at, error)

    def help_and_leave() -> None:
        try:
            help()
        finally:
            _helpers.release()

    threads: list[threading.Thread] = []
    try:
        while len(threads) + 1 < min(limit, len(inputs)) and _helpers.acquire(blocking=False):
            threads.append(_started(help_and_leave))
        help()
    except BaseException:
        work.end()
        raise
    finally:  # none outlives the span
        for thread in threads:
            thread.join()
    return work.finished()


def _started(helper: Callable[[], None]) -> threading.Thread:
    """A thread in this context; where there can be no more, its place is given back."""
    thread = threading.Thread(target=copy_context().run, args=(helper,))
    try:
        thread.start()
    except RuntimeError:
        _helpers.release()
        raise
    return thread


async def _in_coroutines(call: Callable[[Any], Awaitable[Any]], inputs: Sequence[Any], limit: int) -> list[Any]:
    work = _Work(len(inputs))

    async def help() -> None:
        while (at := work.next()) is not None:
            try:
                work.outputs[at] = await call(inputs[at])
            except BaseException as error:
                work.failed(at, error)

    helpers = {asyncio.ensure_future(help()) for _ in range(min(limit, len(inputs)))}
    try:
        while helpers and not work.has_failed:
            _, helpers = await asyncio.wait(helpers, return_when=asyncio.FIRST_COMPLETED)
    finally:  # where a call failed or this is cancelled, those under way are too, and none outlives their span
        work.end()
        for helper in helpers:
            helper.cancel()
        await asyncio.gather(*helpers, return_exceptions=True)
    return work.finished()


class _Work:
    """Which of several calls are still to be made, and what became of those that were."""

    def __init__(self, size: int) -> None:
        self.outputs: list[Any] = [None] * size
        self._waiting = iter(range(size))
        self._failure: tuple[int, BaseException] | None = None
        self._ended = False
        self._lock = threading.Lock()

    @property
    def has_failed(self) -> bool:
        return self._failure is not None

    def next(self) -> int | None:
        """The place of a call to make; None where there is none, or one has failed."""
        with self._lock:
            return None if self._ended or self.has_failed else next(self._waiting, None)

    def failed(self, at: int, error: BaseException) -> None:
        with self._lock:
            if not self._ended and (self._failure is None or at < self._failure[0]):
                self._failure = at, error

    def end(self) -> None:
        """Whatever becomes of calls under way, it counts no longer, and none is made after them."""
        with self._lock:
            self._ended = True

    def finished(self) -> list[Any]:
        if self._failure is not None:
            raise self._failure[1]
        return self.outputs


def _require_fit(task: Task[Any, Any], dataset: Dataset) -> None:
    declared, expected = typed(types_of(task)[0]), typed(task.expects)
    faults: list[Fault] = []
    if declared and not _is_plainly(declared.type, dataset, dataset.roles.input):
        faults += _misfits(dataset, declared, "input", task.name)
    if expected and not _is_plainly(expected.type, dataset, dataset.roles.expected):
        faults += _misfits(dataset, expected, "expected", task.name)
    if faults:
        raise DataError(faults)


def _misfits(dataset: Dataset, type: Typed, what: str, name: str) -> list[Fault]:
    """The first examples whose input, or what they expect, is not of a type."""
    values = ((example.index, getattr(example, what)) for example in dataset)
    found = list(itertools.islice(misfits(values, type, what), SHOWN_FAULTS))
    verb = "takes" if what == "input" else "is for datasets that expect"
    return [Fault(fault.where, f"{fault.message}; task {name!r} {verb} {type.name}") for fault in found]


def _is_plainly(type: Any, dataset: Dataset, role: Any) -> bool:
    """Whether a whole column is of a type, by the column's own type and without looking at each value."""
    if dataset.view_spec is not None or not isinstance(role, str):
        return False
    if not inspect.isclass(type) or type not in _PLAIN:
        return False
    if not any(of(dataset.schema.field(role).type) for of in _PLAIN[type]):
        return False
    return all(batch.column(0).null_count == 0 for batch in dataset.columns([role]))


def _annotated(function: Callable[..., Any], skipped: int, owner: type | None = None) -> tuple[Any, Any]:
    """The types of a function's first parameter, after some that are skipped, and of what it returns."""
    told = hints(function, owner)
    try:
        names = [*inspect.signature(function).parameters][skipped:]
    except (TypeError, ValueError):  # some built-in functions
        names = []
    return told.get(names[0]) if names else None, told.get("return")


@functools.lru_cache(256)
def _types_of_class(cls: Any) -> tuple[Any, Any]:
    given = arguments(cls, Task) if issubclass(cls, Task) else (Input, Output)
    owner = next((each for each in cls.__mro__ if "do_run" in vars(each)), cls)
    told = _annotated(cls.do_run, skipped=1, owner=owner) if owner is not Task else (None, None)
    unknown = (TypeVar, ForwardRef)
    input, output = (declared if isinstance(a, unknown) else a for a, declared in zip(given, told, strict=True))
    return input, output


_types_of_functions: WeakKeyDictionary[FunctionTask, tuple[Any, Any]] = WeakKeyDictionary()
_helpers = threading.BoundedSemaphore(512)  # threads beside the callers', however deep calls are nested

_PLAIN: Mapping[Any, tuple[Callable[[pa.DataType], bool], ...]] = {
    str: (pa.types.is_string, pa.types.is_large_string),
    int: (pa.types.is_integer,),
    float: (pa.types.is_floating, pa.types.is_integer),
    bool: (pa.types.is_boolean,),
}

_EXTRAS = frozenset(("task_span", "seed", "index", "id", "replication"))


def _parameters(function: Callable[..., Any], name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The parameters to fill in, and those to take from a mapping input (none where the input is passed whole)."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some built-in functions
        return (), ()
    named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if not named:
        raise SpecError(f"task {name!r} takes no parameter; its first parameter is the example's input")
    extras = tuple(p.name for p in named[1:] if p.name in _EXTRAS)
    others = [p for p in named if p.name not in extras]
    required = [p.name for p in others if p.default is p.empty]
    return extras, tuple(required) if len(required) > 1 or named[0].kind is named[0].KEYWORD_ONLY else ()
