"""Tasks: the system under test, as one function from an example's input to an output.

A task is a function with `@task`, an object with `do_run`, or a kind from `evaluand.run.tasks`. Its identity is its
declared version or the fingerprint of its code and everything first-party it reaches; what cannot be fingerprinted
leaves the task unpinned: it runs and is stored, but its results are never reused by themselves.
"""

import functools
import inspect
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, ForwardRef, Generic, NamedTuple, Protocol, Self, TypeVar, final, overload
from weakref import WeakKeyDictionary

import pyarrow as pa

from evaluand.core.errors import SpecError, with_article
from evaluand.core.fingerprint import Identity, code_identity
from evaluand.core.identity import digest, seed_of
from evaluand.core.near import refuse_base_class
from evaluand.data.dataset import Dataset
from evaluand.engine.limits import InvalidLimit
from evaluand.engine.rate_limit import RateLimit
from evaluand.run.call_parameters import DoRunParameters, read_do_run, read_function
from evaluand.run.concurrent_calls import call_in_coroutines, call_in_threads
from evaluand.run.types import Typed, arguments, hints, typed
from evaluand.trace.spans import TaskSpan
from evaluand.trace.tracer import Tracer

Input = TypeVar("Input")
Output = TypeVar("Output")

MAX_CONCURRENCY = 20  # concurrent calls of `Task.run_concurrently` by default


@dataclass(slots=True)
class Request:
    """The arguments of a task call.

    Attributes:
        input: the example's input: one value, or a mapping if the dataset has several input columns.
        task_span: the tracer for what happens inside.
        index: the example's `_index_`.
        id: the example's id, or its index as text.
        replication: the number of the repeat, from 0.
        digest: 16 bytes that identify what the task can see of the example.
        run_seed: the seed of the run.
        timeout: seconds the call may take, or None; for tasks that can end what they started.
        pace: the rate limit, or None; for tasks that make several requests per call.
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
        """A number for this input and replication, independent of the order of calls; in [0, 2**63)."""
        return seed_of(self.run_seed, self.digest, self.replication)


@dataclass(frozen=True)
class Candidates:
    """Several answers to one input, best first: what a task returns to give more than one response."""

    values: Sequence[Any]


class Recorded(NamedTuple):
    """Outputs that exist already, in the order of the calls.

    Attributes:
        texts: large strings: the canonical text of each output; null for a skipped one.
        folds: the fold of a cross-validation that each belongs to, or None.
    """

    texts: pa.Array
    folds: Iterator[int | None]


class Task(ABC, Generic[Input, Output]):
    """The system under test. Implement `do_run`, plain or async.

    Attributes:
        version: declare one to pin the task yourself instead of by fingerprint. Name and version then identify
            everything that changes the answers, including constructor arguments and models: raise it when any of these
            changes.
        items: the output is a list of items that together are the response, such as a tagger's entities.
        expects: the type of the expected values in datasets for the task, if the task needs one.
        output_schema: what each output must be, or each item of it, in any form that `ValueSchema` takes; an output
            that breaks it is a failed row.
        checks_outputs: it validates its outputs against the schema itself.
        files: files the task depends on that cannot be observed, such as those that native code reads.
        transient: names of error classes that are retried, in addition to those of the policy.
        retries: further attempts after transient errors, if the policy has no number.
        names_errors: the type names of its errors are not known in advance.
        stored: the run that stands for its calls, if these were made before and cannot be made again.
    """

    version: str | None = None
    items: bool = False
    expects: Any = None
    output_schema: Any = None
    checks_outputs: ClassVar[bool] = False
    names_errors: ClassVar[bool] = False
    files: Sequence[str | os.PathLike[str]] = ()
    transient: tuple[str, ...] = ()
    retries: int = 0
    stored: Any = None

    def __new__(cls, *args: Any, **named: Any) -> Self:
        refuse_base_class(cls, Task, bool(args or named))
        return super().__new__(cls)

    @abstractmethod
    def do_run(self, input: Input, task_span: TaskSpan) -> Output | Awaitable[Output]:
        """The output for one input; None for no answer.

        Further parameters named `seed`, `index`, `id` or `replication` are filled in; others need a default.

        Args:
            task_span: the tracer for what happens inside.
        """

    @final
    def run(self, input: Input, tracer: Tracer) -> Output:
        """Run the task in a new span; a task runs its subtasks with its `task_span` as the tracer.

        Args:
            tracer: opens the span.

        Returns:
            The output; for an async task an awaitable of it.

        Example:
            >>> from evaluand.trace.tracers.in_memory import InMemoryTracer
            >>> tracer = InMemoryTracer()
            >>> task(str.upper).run("hello", tracer), tracer.entries[0].output
            ('HELLO', 'HELLO')
        """
        if self.is_async:
            return self._run_async(input, tracer)  # type: ignore[return-value]
        with tracer.task_span(self.name, input) as task_span:
            output: Output = self._invoke(input, task_span)
            task_span.record_output(output)
        return output

    @final
    def run_concurrently(
        self, inputs: Iterable[Input], tracer: Tracer, concurrency_limit: int = MAX_CONCURRENCY
    ) -> Sequence[Output]:
        """Run the task on several inputs concurrently, in one span; such calls may be nested.

        Plain tasks run in threads, including the caller's, so that nested calls always make progress: deeply nested
        calls share the available threads. Async tasks run in the caller's loop.

        Args:
            tracer: opens the span that holds the spans of the calls.
            concurrency_limit: the largest number of concurrent calls.

        Returns:
            The outputs in the order of the inputs; for an async task an awaitable of them.

        Raises:
            InvalidLimit: the limit is not an integer of at least 1; a ValueError.
            Exception: the error of a call; if several fail, of the earliest input. Further calls are not started;
                running async calls are cancelled, and calls in threads are awaited.
        """
        if type(concurrency_limit) is not int or concurrency_limit < 1:
            raise InvalidLimit(f"concurrency_limit must be an integer of at least 1, not {concurrency_limit!r}")
        inputs = list(inputs)
        name = f"Concurrent {self.name} tasks"
        if self.is_async:
            return self._run_all_async(name, inputs, tracer, concurrency_limit)  # type: ignore[return-value]
        with tracer.span(name) as span:
            return call_in_threads(lambda input: self.run(input, span), inputs, concurrency_limit)

    async def _run_async(self, input: Input, tracer: Tracer) -> Output:
        with tracer.task_span(self.name, input) as task_span:
            output: Output = await self._invoke(input, task_span)
            task_span.record_output(output)
        return output

    async def _run_all_async(self, name: str, inputs: Sequence[Input], tracer: Tracer, limit: int) -> list[Output]:
        with tracer.span(name) as span:
            return await call_in_coroutines(lambda input: self._run_async(input, span), inputs, limit)

    @property
    def name(self) -> str:
        """The default name of the task."""
        return type(self).__name__

    @property
    def is_async(self) -> bool:
        """Whether `call` returns a coroutine."""
        return inspect.iscoroutinefunction(self.do_run)

    @property
    def reads(self) -> tuple[str, ...]:
        """What the output depends on besides the input: any of `index`, `id` and `dataset` (all examples)."""
        return tuple(name for name in do_run_parameters(self).extras if name in ("index", "id"))

    @property
    def replications(self) -> int | None:
        """The number of repeats of each example, if the task determines it, as a cross-validation does."""
        return None

    def prepare(self, dataset: Dataset) -> None:
        """Load what the calls need; an error stops the run before the first call."""

    def close(self) -> None:
        """Release what the calls have started; called at the end of every run. Further calls may follow."""

    def fold(self, index: int, id: str, replication: int) -> int | None:
        """The fold of a cross-validation that the output for an example belongs to, if any."""
        return None

    def skips(self, index: int, id: str, replication: int) -> bool:
        """Whether the task skips an example, such as one that it is trained on.

        Its row has the status `skipped`, which is left out of all counts.
        """
        return False

    def known(self, index: int, id: str, replication: int) -> Sequence[Any] | None:
        """The outputs for an example that are known without a call; empty if it has no output.

        None if the task must be called.
        """
        return None

    def recorded(self, dataset: Dataset, examples: int, replications: int) -> Recorded | None:
        """The outputs of all calls if none has to be made, so that the runner writes them at once.

        Args:
            examples: the number of examples to run, from the first of the dataset.
            replications: how often each example is run.
        """
        return None

    def call(self, request: Request) -> Any:
        """One call by the runner; returns a coroutine if the task is async.

        If the task declares an input type, such as a pydantic model, the input is converted to it.
        """
        declared = input_type(self)
        input = declared.read(request.input) if declared else request.input
        return self._invoke(input, request.task_span, request)

    def _invoke(self, input: Any, task_span: TaskSpan, request: Request | None = None) -> Any:
        """Call `do_run` with the parameters that it takes; outside of runs, the seed is that of a run with seed 0."""
        takes_span, extras = do_run_parameters(self)
        if not extras:
            return self.do_run(input, task_span) if takes_span else self.do_run(input)  # type: ignore[call-arg]
        request = request or Request(input, task_span, 0, "0", 0, digest(input), 0)
        more = {name: getattr(request, name) for name in extras}
        return self.do_run(input, *([task_span] if takes_span else []), **more)

    def identify(self) -> Identity:
        """The current identity of the task."""
        return code_identity("task", self, version=self.version, files=self.files, items=self.items)


def do_run_parameters(task: Task[Any, Any]) -> DoRunParameters:
    """The parameters of a task's `do_run`.

    Raises:
        SpecError: it requires a parameter that is not filled in.
    """
    inner: Any = task.inner if isinstance(task, _DuckTask) else task
    cls: Any = type(inner)
    return read_do_run(cls) if "do_run" not in vars(inner) else DoRunParameters(True, ())


def types_of(task: Task[Any, Any]) -> tuple[Any, Any]:
    """The declared types of input and output; None if undeclared.

    They come from `Task[Input, Output]`, else from the annotations of `do_run` or of the function, also under
    `from __future__ import annotations`.

    Example:
        >>> def shout(text: str) -> str: ...
        >>> types_of(as_task(shout))
        (<class 'str'>, <class 'str'>)
    """
    if isinstance(task, FunctionTask):
        return (None, None) if task.spread else _annotated(task.function, skipped=0)
    cls: Any = type(task.inner if isinstance(task, _DuckTask) else task)
    return _types_of_class(cls)


def input_type(task: Task[Any, Any]) -> Typed | None:
    """The type as which a task reads its inputs; None if it takes them as they are."""
    if not isinstance(task, FunctionTask):
        return typed(types_of(task)[0])
    cached = _input_types.get(task)
    if cached is None:
        cached = _input_types[task] = (typed(types_of(task)[0]),)
    return cached[0]


class HasDoRun(Protocol):
    """Anything with `do_run` is a task."""

    def do_run(self, input: Any, task_span: TaskSpan, /) -> Any: ...


Runnable = Task[Any, Any] | HasDoRun | Callable[..., Any]
"""Everything that a runner can run."""


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
        output_schema: Any = None,
    ) -> None:
        self.function = function
        self._name = name or str(getattr(function, "__name__", type(function).__name__))
        self.version, self.items, self.files = version, items, files
        self.output_schema = output_schema
        self._extras, self.spread = read_function(function, self._name)

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
        """Raise a SpecError if the function's parameters are not the dataset's input columns."""
        columns = dataset.roles.input
        if self.spread:
            self._arguments({} if isinstance(columns, str) else dict.fromkeys(columns))

    def do_run(self, input: Any, task_span: TaskSpan) -> Any:
        return self.call(Request(input, task_span, 0, "0", 0, digest(input), 0))

    def call(self, request: Request) -> Any:
        extras = {name: getattr(request, name) for name in self._extras} if self._extras else {}
        if self.spread:
            return self.function(**self._arguments(request.input), **extras)
        declared = input_type(self)
        return self.function(declared.read(request.input) if declared else request.input, **extras)

    def identify(self) -> Identity:
        code = self.function if type(self) is FunctionTask else self  # a subclass may override the call
        return code_identity("function", code, version=self.version, files=self.files, items=self.items)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def _arguments(self, input: Any) -> dict[str, Any]:
        if not isinstance(input, Mapping):
            raise SpecError(
                f"task {self.name!r} takes {', '.join(self.spread)}, but the input is one value;"
                f" declare these as input columns: input: [{', '.join(self.spread)}]"
            )
        missing = [name for name in self.spread if name not in input]
        if missing:
            raise SpecError(f"task {self.name!r} takes {', '.join(missing)}, which the input does not have")
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
    output_schema: Any = None,
) -> FunctionTask: ...
@overload
def task(
    *,
    name: str | None = None,
    version: str | None = None,
    items: bool = False,
    files: Sequence[str | os.PathLike[str]] = (),
    output_schema: Any = None,
) -> Callable[[Callable[..., Any]], FunctionTask]: ...
def task(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Turn a plain or async function into a task.

    The first parameter is the input; further parameters named `task_span`, `seed`, `index`, `id` or `replication`
    are filled in. If a function has several other parameters, a mapping input is passed by name.

    Args:
        options: as the attributes of `Task`: `name`, `version`, `items`, `files`, `output_schema`.

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
        SpecError: the value is something else.
    """
    if isinstance(value, Task):
        do_run_parameters(value)
        return value
    if isinstance(value, type) and hasattr(value, "do_run"):
        raise SpecError(f"{value.__name__} is a class; pass an instance: {value.__name__}(…)")
    if hasattr(value, "do_run"):
        wrapped = _DuckTask(value)
        do_run_parameters(wrapped)
        return wrapped
    if hasattr(value, "predict") and (isinstance(value, type) or not callable(value)):
        name = value.__name__ if isinstance(value, type) else type(value).__name__
        raise SpecError(
            f"{with_article(name)} is an estimator: use EstimatorTask({name}(…), Split(folds=5)) to cross-validate it,"
            " or EstimatorTask(model) if it is already fitted"
        )
    if callable(value):
        return FunctionTask(value)
    raise SpecError(f"{with_article(type(value).__name__)} is not a task: pass a function or an object with do_run")


def is_coroutine_function(function: Callable[..., Any]) -> bool:
    """Whether calling it returns a coroutine: an async function, or an object with an async `__call__`."""
    called = getattr(type(function), "__call__", None)  # noqa: B004 - a call looks the method up on the class
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)


def may_give_several(task: Task[Any, Any]) -> bool:
    """Whether a call may return `Candidates`: true if the module of the task mentions them.

    Example:
        >>> import textwrap
        >>> may_give_several(as_task(textwrap.dedent)), may_give_several(as_task(lambda text: Candidates([text])))
        (False, True)
    """
    code = task.function if isinstance(task, FunctionTask) else getattr(task, "inner", task)
    code = inspect.unwrap(code) if inspect.isfunction(code) else type(code)
    names = vars(sys.modules[code.__module__]).values() if code.__module__ in sys.modules else ()
    return any(value is Candidates or value is sys.modules["evaluand"] for value in names)


class _DuckTask(Task[Any, Any]):
    """An object with `do_run` that is not a `Task`."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.version = getattr(inner, "version", None)
        self.items = bool(getattr(inner, "items", False))
        self.output_schema = getattr(inner, "output_schema", None)
        files = getattr(inner, "files", ())
        self.files = tuple(files) if isinstance(files, list | tuple) else ()

    @property
    def name(self) -> str:
        return type(self.inner).__name__

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.inner.do_run)

    def do_run(self, input: Any, *more: Any, **extras: Any) -> Any:
        return self.inner.do_run(input, *more, **extras)

    def identify(self) -> Identity:
        return code_identity("task", self.inner, version=self.version, files=self.files, items=self.items)


def _annotated(function: Callable[..., Any], skipped: int, owner: type | None = None) -> tuple[Any, Any]:
    """The types of a function's first parameter, after skipped ones, and of its return value."""
    annotations = hints(function, owner)
    try:
        names = [*inspect.signature(function).parameters][skipped:]
    except (TypeError, ValueError):  # some built-in functions
        names = []
    return annotations.get(names[0]) if names else None, annotations.get("return")


@functools.lru_cache(256)
def _types_of_class(cls: Any) -> tuple[Any, Any]:
    bound = arguments(cls, Task) if issubclass(cls, Task) else (Input, Output)
    owner = next((each for each in cls.__mro__ if "do_run" in vars(each)), cls)
    annotated = _annotated(cls.do_run, skipped=1, owner=owner) if owner is not Task else (None, None)
    unknown = (TypeVar, ForwardRef)
    input, output = (declared if isinstance(a, unknown) else a for a, declared in zip(bound, annotated, strict=True))
    return input, output


_input_types: WeakKeyDictionary[FunctionTask, tuple[Typed | None]] = WeakKeyDictionary()  # since each call asks
