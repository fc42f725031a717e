"""Apps: any Python function or object whose calls are recorded, without a change to it.

    app = App(rag, name="rag", version="2")
    with app as recording:
        rag.query("Who wrote Emma?")
    recording.records[0]["app"]["retriever"]["search"][0]["rets"]

Each outermost instrumented call in the `with` block is one record (`evaluand.trace.record`). Instrumented are the
methods marked with `@instrument` or named in `methods`; without either, the public methods of the first-party objects
of the app (`evaluand.apps.components`). `app.print_instrumented()` shows them. Other objects of these classes are not
changed.

Interactions that were logged elsewhere become records by `record_logs`, without an app.
"""

from __future__ import annotations

import inspect
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import islice
from types import MethodType, TracebackType
from typing import Any, ParamSpec, TypeVar

from evaluand.apps.components import Component, class_of, find_components, key_of
from evaluand.apps.instrumentation.calling import MARK
from evaluand.apps.instrumentation.marking import make_instrumented
from evaluand.apps.instrumentation.steps import use_names
from evaluand.apps.recording.judge import ATTEMPTS
from evaluand.apps.recording.writer import RecordingWriter, check_policy, resolve_feedbacks
from evaluand.apps.session import RecordingSession
from evaluand.core.errors import SpecError, described, with_article
from evaluand.core.fingerprint import Identity
from evaluand.core.json_like import JsonLikeConverter, attributes_of
from evaluand.data.dataset import Dataset
from evaluand.engine.policy import Policy
from evaluand.evaluation.scorer import Scorer
from evaluand.run.task import Request, Task, as_task
from evaluand.store.store import MemoryStore, Store, check_store
from evaluand.trace import TaskSpan

P = ParamSpec("P")
R = TypeVar("R")


class App:
    """A function or an object whose calls can be recorded.

    Args:
        target: the function, the object, or a method of it.
        name: the name of the app; default: the name of the function or class.
        version: the version of the app, for comparing versions.
        feedbacks: what judges its records: one feedback, several, or a mapping by name.
        mode: when records are judged: `none`, `with_app` (before the call returns), `with_app_thread` or `deferred`.
        store: where recordings are stored; default: in memory.
        policy: how feedbacks are called in threads and processes: concurrency, timeout, retries, rate limit.
        attempts: how many times a deferred feedback may kill its process with one record.
        methods: names of methods to trace in addition to the marked ones: `search` of all components that have it,
            `retriever.search` of one, `.query` of the app itself.
        tags: words for people, stored with its records.
        metadata: anything else about the app, JSON-like.

    Raises:
        SpecError: the app cannot be instrumented, or the feedbacks cannot judge in this mode; says why.

    Example:
        >>> def shout(text):
        ...     return text.upper()
        >>> app = App(shout, version="1")
        >>> with app as recording:
        ...     _ = app.app("hello")
        >>> recording.records[0]["main_output"], recording.records[0]["app_id"]
        ('HELLO', 'shout:1')
    """

    def __init__(
        self,
        target: Any,
        *,
        name: str | None = None,
        version: str | None = None,
        feedbacks: Mapping[str, Scorer] | Sequence[Scorer] | Scorer = (),
        mode: str = "with_app_thread",
        store: Store | None = None,
        policy: Policy | None = None,
        attempts: int = ATTEMPTS,
        methods: Sequence[str] | None = None,
        tags: str = "",
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        _check_target(target)
        _check_words(name=name, version=version)
        _check_about(tags, metadata)
        check_policy(policy)
        if store is not None:
            check_store(store)
        self.mode, self.feedbacks = resolve_feedbacks(feedbacks, mode)
        self.target = target.__self__ if isinstance(target, MethodType) else target
        self.main_method: str | None = target.__name__ if isinstance(target, MethodType) else None
        self.name = name or str(getattr(self.target, "__name__", class_of(self.target).__name__))
        self.version, self.tags, self.metadata = version, tags, dict(metadata or {})
        self.store, self._methods = store, methods
        self.policy, self.attempts = policy, attempts
        self._entered: list[RecordingSession] = []
        self._sessions: weakref.WeakSet[RecordingSession] = weakref.WeakSet()
        self._missed: set[str] = set()
        self._writer: RecordingWriter | None = None
        self._opening = threading.Lock()
        self.refresh()
        for feedback in self.feedbacks.values():
            feedback.check_app(self.json)

    @staticmethod
    def logged(structure: Mapping[str, Any] | None = None, *, name: str = "logged", **options: Any) -> App:
        """An app that is known from its logs only; see `record_logs`, also for the arguments."""
        return LoggedApp(structure or {}, name=name, **options)

    def refresh(self) -> None:
        """Finds the components again, after the app has changed."""
        self.components = self._find_components()
        self._paths = _component_paths(self.components)
        self.__dict__.pop("json", None)

    @property
    def app_id(self) -> str:
        """The app's id in its records: name and version."""
        return self.name if self.version is None else f"{self.name}:{self.version}"

    @property
    def app(self) -> Any:
        """What to call: the object, its method, or the instrumented form of the function."""
        if _is_function(self.target):
            return self._function
        return self.target if self.main_method is None else getattr(self.target, self.main_method)

    @property
    def instrumented(self) -> dict[str, list[str]]:
        """The traced methods, as records name them, by path of their component; "" is the app itself."""
        return {each.path: list(each.calls) for each in self.components if each.methods}

    def print_instrumented(self) -> None:
        """Prints the traced methods, and the named methods that cannot be traced."""
        for each in self.components:
            print(f"{each.path or '(app)'}: {', '.join(each.calls) or 'nothing'}  [{each.of.__qualname__}]")  # noqa: T201
            if each.reason:
                print(f"    not {each.reason}")  # noqa: T201

    @cached_property
    def json(self) -> dict[str, Any]:
        """The structure of the app, which selectors read under `__app__`; secrets are hidden."""
        return {
            "app_id": self.app_id,
            "name": self.name,
            "version": self.version,
            "tags": self.tags,
            "metadata": JsonLikeConverter(hide=True).convert(self.metadata),
            "root_class": key_of(class_of(self.target)),
            "feedbacks": list(self.feedbacks),
            "mode": self.mode,
            "instrumented": self.instrumented,
            "arguments": {
                f"{each.path}.{name}" if each.path else name: list(arguments)
                for each in self.components
                for name, arguments in each.calls.items()
                if arguments is not None
            },
            "app": self._structure(),
        }

    def as_task(self, method: str | None = None) -> Task[Any, Any]:
        """The app as a task to run over a dataset; feedbacks select from the run as they do from recordings.

        Args:
            method: which of its methods; default: the function or method that the app was created with.

        Raises:
            SpecError: there are several methods, and none is named.

        Example:
            >>> from evaluand import Dataset, Runner
            >>> class Shout:
            ...     def answer(self, text):
            ...         return text.upper()
            >>> task = App(Shout().answer).as_task()
            >>> run = Runner().run(task, Dataset.from_rows([{"input": "a"}]))
            >>> [response.responses for response in run]
            [['A']]
        """
        if _is_function(self.target):
            target: Any = self.target
            return _AppTask(self, getattr(target, MARK).function if hasattr(target, MARK) else target)
        name = method or self.main_method
        methods = [method for each in self.components if not each.path for method in each.methods]
        if name is None and len(methods) == 1:
            name = methods[0]
        if name is None or not callable(getattr(self.target, name, None)):
            raise SpecError(f"which method is the task? Name one: as_task({methods[0] if methods else 'query'!r})")
        function = getattr(self.target, name)
        if hasattr(function, MARK):  # the call itself is the root of the run's trace
            function = MethodType(getattr(function, MARK).function, self.target)
        return _AppTask(self, function)

    def record(self, *, tags: str | None = None, meta: Any = None) -> RecordingSession:
        """A recording session, which a `with` block opens.

        Args:
            tags: words for people, stored with its records; default: those of the app.
            meta: anything about what is recorded, such as the user who asks.
        """
        _check_about(self.tags if tags is None else tags, None)
        return RecordingSession(self, self.tags if tags is None else tags, meta)

    def close(self) -> None:
        """Closes the recording, as `RecordingSession.close` does; the next block begins another one."""
        if self._writer is not None:
            self._writer.close()

    def place(self, component: object) -> str | None:
        """The path of a component, "" for the app itself; None for objects that are not part of it."""
        return self._paths.get(component if type(component) is str else id(component))

    def __enter__(self) -> RecordingSession:
        recording = self.record()
        self._entered.append(recording)
        return recording.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        here = [each for each in self._entered if each.is_open] or self._entered
        self._entered.remove(here[-1])
        here[-1].__exit__(kind, error, traceback)

    def __repr__(self) -> str:
        return f"<App {self.app_id} of {class_of(self.target).__qualname__}>"

    def open_writer(self, session: RecordingSession) -> RecordingWriter:
        """The recording that a session writes to: that of earlier sessions, unless a session around it uses it."""
        with self._opening:
            is_nested = any(each.is_open and each.writer is self._writer for each in self._sessions)
            self._sessions.add(session)
            if self._writer is not None and not self._writer.has_ended and not is_nested:
                return self._writer
            writer = RecordingWriter.begin(
                MemoryStore() if self.store is None else self.store,
                self.json,
                self.feedbacks,
                mode=self.mode,
                policy=self.policy,
                attempts=self.attempts,
            )
            if not is_nested:
                self._writer = writer
            return writer

    def _find_components(self) -> list[Component]:
        if _is_function(self.target):
            function: Any = self.target
            if self._methods:
                raise SpecError(f"{function.__name__} is a function and has no methods to trace; leave methods out")
            self._function = make_instrumented(function)
            return [Component("", self._function, (function.__name__,))]
        found = find_components(self.target, self._methods)
        main = self.main_method
        if main is not None and not any(main in each.methods for each in found if not each.path):
            found = find_components(self.target, [*(self._methods or ()), f".{main}"])
        if not any(each.methods for each in found):
            reasons = "".join(f"; {each.reason}" for each in found if each.reason)
            raise SpecError(
                f"{class_of(self.target).__qualname__} has no method that can be traced{reasons}; "
                "mark methods with @instrument, or name them: methods=['query']"
            )
        return found

    def _structure(self) -> Any:
        return _StructureConverter(self.components).convert(self.target)


class _AppTask(Task[Any, Any]):
    """A method of an app as a task; calls within it are named as in the app."""

    def __init__(self, app: App, function: Callable[..., Any]) -> None:
        self._app, self._inner = app, as_task(function)
        self.output_schema = self._inner.output_schema

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def is_async(self) -> bool:
        return self._inner.is_async

    @property
    def reads(self) -> tuple[str, ...]:
        return self._inner.reads

    def prepare(self, dataset: Dataset) -> None:
        self._inner.prepare(dataset)

    def identify(self) -> Identity:
        return self._inner.identify()

    def do_run(self, input: Any, task_span: TaskSpan) -> Any:
        return self._within(lambda: self._inner.do_run(input, task_span))

    def call(self, request: Request) -> Any:
        return self._within(lambda: self._inner.call(request))

    def _within(self, call: Callable[[], Any]) -> Any:
        if self.is_async:
            return self._within_async(call)
        with use_names(self._app):
            return call()

    async def _within_async(self, call: Callable[[], Any]) -> Any:
        with use_names(self._app):
            return await call()


class LoggedApp(App):
    """An app that is known from its logs only; see `App.logged`."""

    def __init__(self, structure: Mapping[str, Any], **options: Any) -> None:
        self._logged_structure = JsonLikeConverter(hide=True).convert(structure)
        super().__init__(self, **options)

    def _find_components(self) -> list[Component]:
        return []

    def _structure(self) -> Any:
        return self._logged_structure


class _StructureConverter(JsonLikeConverter):
    """The structure of an app: its components with their classes, and private attributes that lead to components."""

    def __init__(self, components: Iterable[Component]) -> None:
        super().__init__(hide=True, values=20_000, characters=1_000_000)
        self._components = {id(each.value) for each in components}

    def object(self, value: Any, depth: int) -> Any:
        shown = [(name, item) for name, item in attributes_of(value) if not name.startswith("_") or self._leads(item)]
        members = self.members(shown, len(shown), depth)
        return {"__class__": key_of(class_of(value)), **members}

    def _leads(self, value: Any) -> bool:
        """Whether a value is a component, or a list or dictionary that contains one."""
        within = value if type(value) in (list, tuple) else value.values() if type(value) is dict else ()
        return id(value) in self._components or any(id(item) in self._components for item in islice(within, 100))


def _check_target(target: Any) -> None:
    if isinstance(target, type):
        raise SpecError(f"an app is an object; give {target.__name__}(…), not the class")
    if target is None or type(target) in (str, bytes, bool, int, float, list, tuple, dict, set):
        raise SpecError(f"an app is a function or an object with methods, not {with_article(type(target).__name__)}")


def _check_words(**words: Any) -> None:
    for word, text in words.items():
        if text is not None and (not isinstance(text, str) or not text):
            raise SpecError(f"{word} is {described(text)}; give text, such as {word}={str(text) or '1'!r}, or none")


def _check_about(tags: Any, metadata: Any) -> None:
    if not isinstance(tags, str):
        raise SpecError(f"tags is {described(tags)}; give text")
    if metadata is not None and not isinstance(metadata, Mapping):
        raise SpecError(f"metadata is {described(metadata)}; give a dictionary, such as {{'team': 'search'}}")


def _is_function(target: Any) -> bool:
    return inspect.isroutine(target) and not inspect.ismethod(target)


def _component_paths(components: Sequence[Component]) -> dict[Any, str]:
    """Paths by the id of a component, and by its class where it is the only one of that class."""
    paths: dict[Any, str] = {}
    of_class: dict[str, list[str]] = {}
    for each in components:
        paths[id(each.value)] = each.path
        function = getattr(each.value, MARK, None)  # set on an instrumented function
        if function is not None:
            paths[id(function.function)] = each.path
        of_class.setdefault(key_of(each.of), []).append(each.path)
    return paths | {key: found[0] for key, found in of_class.items() if len(found) == 1}
