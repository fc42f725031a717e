"""Wrappers of apps with the names of TruLens, over `evaluand.apps.app`.

    recorder = TruApp(rag, app_name="rag", app_version="2", feedbacks=[relevance])
    with recorder as recording:
        rag.query("Who wrote Emma?")
    recording.get().wait_for_feedback_results()

Differences from TruLens: classes are not changed, and `@instrument` on methods is optional; `__app__` is the app's
structure as data, with secrets hidden; and records are written to a store (default: in memory), from which
`recorder.close()` creates a run and its evaluation.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, TypeVar

import orjson

from evaluand.apps import app as native, session as native_session
from evaluand.apps.instrumentation.marking import make_instrumented
from evaluand.core import identity
from evaluand.core.errors import SpecError
from evaluand.engine.policy import Policy
from evaluand.evaluation.feedback.calls import read_calls
from evaluand.evaluation.feedback.results import Result
from evaluand.interop.trulens.feedback import FeedbackMode, FeedbackResult
from evaluand.interop.trulens.lens import Lens, Select
from evaluand.interop.trulens.records import Record
from evaluand.interop.trulens.runs import Run, RunConfig
from evaluand.interop.trulens.virtual import VirtualRecord, record_from_row
from evaluand.models.usage import Spending
from evaluand.store.store import Store

R = TypeVar("R")


class instrument:  # noqa: N801 - a decorator
    """Mark a method, so that its calls are recorded.

    Example:
        >>> class Shout:
        ...     @instrument
        ...     def answer(self, text):
        ...         return text.upper()
        >>> shout = Shout()
        >>> with TruApp(shout, app_name="shout") as recording:
        ...     _ = shout.answer("hello")
        >>> recording.get().main_output
        'HELLO'
    """

    def __new__(cls, method: R) -> R:  # type: ignore[misc]
        marked: R = make_instrumented(method)
        return marked

    @staticmethod
    def method(of_cls: type, name: str) -> None:
        """Mark a method of an existing class, for all its users."""
        setattr(of_cls, name, make_instrumented(inspect.getattr_static(of_cls, name)))

    @staticmethod
    def methods(of_cls: type, names: Iterable[str]) -> None:
        """Mark several methods of an existing class."""
        for name in names:
            instrument.method(of_cls, name)


@dataclass
class AppDefinition:
    """The description of an app as data.

    Attributes:
        root_class: the class of the app's object, as `module:class`.
        root_callable: the function, or the method of the app's object, that a call of the app begins with, as
            `module:name`; None if several methods may be the one.
        app: the structure of the app, JSON-like.
    """

    app_name: str = "default_app"
    app_version: str = "base"
    app_id: str = ""
    tags: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    feedback_definitions: Sequence[str] = ()
    feedback_mode: FeedbackMode = FeedbackMode.WITH_APP_THREAD
    root_class: str = ""
    root_callable: str | None = None
    app: Any = None

    def model_dump(self) -> dict[str, Any]:
        """All fields as data."""
        return vars(self) | {"feedback_mode": self.feedback_mode.value}

    dict = model_dump


class Recording(native_session.RecordingSession):
    """The records of a `with` block, with the names of TruLens."""

    _rows: tuple[int, dict[str, tuple[Any, dict[int, dict[str, Any]]]]] | None = None

    @property
    def records(self) -> native_session.Records[Record]:  # type: ignore[override]
        """The records so far, in the order in which their calls ended."""
        return native_session.Records(self._numbers, self._read_record)

    @property
    def numbers(self) -> list[int]:
        """The number of each record, which is its `_index_` in the run."""
        return list(self._numbers)

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, index: int) -> Record:
        return self.records[index]

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def get(self) -> Record:  # type: ignore[override]
        super().get()
        return self.records[0]

    def results(self, number: int) -> Iterator[tuple[Any, FeedbackResult]]:
        """Each of the app's feedbacks with its result for a record."""
        if not self.app.feedbacks:
            return
        record_id, source = self.record_id(number), self.writer.source(number)
        for name, (spec, rows) in self._feedback_rows().items():
            feedback: Any = self.app.feedbacks[name]
            result = _read_result(rows[number], spec, source)
            spent = _read_spending(identity.decode(rows[number]["usage"] or b"{}"))
            yield feedback, FeedbackResult(feedback, result, record_id, {}, spent)

    def record_id(self, number: int) -> str:
        """The id of a record; if it is only the record's number, the recording's id is put before it."""
        record_id = str(self.writer.record(number)["record_id"])
        return f"{self.id}/{number}" if record_id == str(number) else record_id

    def _read_record(self, number: int) -> Record:
        record = Record.from_native(self.writer.record(number), lambda: self.results(number))
        record.record_id = self.record_id(number)
        return record

    def _feedback_rows(self) -> dict[str, tuple[Any, dict[int, dict[str, Any]]]]:
        """Feedback name → its identity, and its row of each record by the record's number."""
        if self._rows is None or self._rows[0] != len(self._numbers):
            evaluation = self.writer.evaluate()
            specs = evaluation.manifest["spec"]["scorers"].items()
            tables = {name: (spec, evaluation.table(name).to_pylist()) for name, spec in specs}
            rows = {name: (spec, {row["_index_"]: row for row in table}) for name, (spec, table) in tables.items()}
            self._rows = len(self._numbers), rows
        return self._rows[1]


class App(native.App):
    """A native app with the constructor and methods of TruLens.

    Args:
        app: the function or object.
        app_name: the app's name.
        app_version: the app's version.
        feedbacks: the feedback functions that evaluate its records.
        feedback_mode: when records are evaluated.
        tags: words for people.
        metadata: any other data about the app.
        main_method: the app's main method, if it is neither marked nor recognised by its name.
        methods_to_instrument: names of methods to trace, in addition to marked ones.
        store: where records are written; default: in memory.
        policy: how feedbacks are run: concurrency, timeout, retries, rate limit.
    """

    def __init__(
        self,
        app: Any,
        *,
        app_name: str | None = None,
        app_version: str = "base",
        feedbacks: Sequence[Any] = (),
        feedback_mode: FeedbackMode | str = FeedbackMode.WITH_APP_THREAD,
        tags: str = "",
        metadata: Mapping[str, Any] | None = None,
        main_method: Callable[..., Any] | None = None,
        methods_to_instrument: Sequence[str] | None = None,
        store: Store | None = None,
        policy: Policy | None = None,
        **others: Any,
    ) -> None:
        for name in others:
            advice = _OPTION_ADVICE.get(name) or f"the options are {', '.join(inspect.signature(App).parameters)}"
            raise SpecError(f"{type(self).__name__} has no option {name!r}: {advice}")
        super().__init__(
            app if main_method is None else main_method,
            name=app_name,
            version=app_version,
            feedbacks=feedbacks,
            mode=FeedbackMode(feedback_mode).value,
            tags=tags,
            metadata=metadata,
            methods=None if methods_to_instrument is None else list(methods_to_instrument),
            store=store,
            policy=policy,
        )

    @property
    def app(self) -> Any:
        """What to call: the object, or the instrumented form of the function."""
        return super().app if self.main_method is None else self.target

    @property
    def app_name(self) -> str:
        return self.name

    @property
    def app_version(self) -> str | None:
        return self.version

    @property
    def feedback_mode(self) -> FeedbackMode:
        """When records are evaluated."""
        return FeedbackMode(self.mode)

    @cached_property
    def json(self) -> dict[str, Any]:
        """The app's structure as data, which selectors read under `__app__`."""
        structure = super().json
        names = {"app_name": structure["name"], "app_version": structure["version"]}
        feedbacks = {"feedback_definitions": structure["feedbacks"], "feedback_mode": structure["mode"]}
        return structure | names | feedbacks

    @property
    def definition(self) -> AppDefinition:
        """The description of the app as data."""
        known = AppDefinition.__dataclass_fields__
        values = {name: value for name, value in self.json.items() if name in known}
        return AppDefinition(**values | {"feedback_mode": self.feedback_mode, "root_callable": self.root_callable})

    @property
    def root_callable(self) -> str | None:
        """The function or method that a call of the app begins with; see `AppDefinition`."""
        if inspect.isroutine(self.target):
            return f"{self.target.__module__}:{self.target.__qualname__}"
        methods = [name for each in self.components if not each.path for name in each.methods]
        name = self.main_method or (methods[0] if len(methods) == 1 else None)
        return name and f"{self.json['root_class']}.{name}"

    def dict(self) -> dict[str, Any]:
        """The app's structure as data."""
        return self.json

    model_dump = dict

    def record(self, *, tags: str | None = None, meta: Any = None) -> Recording:
        return Recording(self, self.tags if tags is None else tags, meta)

    def with_record(
        self, func: Callable[..., R], *args: Any, record_metadata: Any = None, **kwargs: Any
    ) -> tuple[R, Record]:
        """Call a method of the app; return its result and its record."""
        with self.record(meta=record_metadata) as recording:
            result = func(*args, **kwargs)
        return result, recording.get()

    async def awith_record(
        self, func: Callable[..., Awaitable[R]], *args: Any, record_metadata: Any = None, **kwargs: Any
    ) -> tuple[R, Record]:
        """Call an async method of the app; return its result and its record."""
        with self.record(meta=record_metadata) as recording:
            result = await func(*args, **kwargs)
        return result, recording.get()

    def with_(self, func: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        """Call a method of the app and record it."""
        with self:
            return func(*args, **kwargs)

    async def awith_(self, func: Callable[..., Awaitable[R]], *args: Any, **kwargs: Any) -> R:
        """Call an async method of the app and record it."""
        with self:
            return await func(*args, **kwargs)

    async def __aenter__(self) -> Recording:
        recording: Any = self.__enter__()
        return recording  # type: ignore[no-any-return]

    async def __aexit__(self, *exception: Any) -> None:
        self.__exit__(*exception)

    def add_run(self, run_config: RunConfig) -> Run:
        """A run of the app over the rows of a frame."""
        return Run(self, run_config)

    def wait_for_feedback_results(self, feedback_timeout: float | None = None) -> None:
        """Evaluate everything recorded so far; see `Record.wait_for_feedback_results`."""
        if self._writer is not None and self.feedbacks:
            self._writer.evaluate()

    def format_instrumented_methods(self) -> str:
        """The traced methods of each component, as text."""
        return "\n".join(f"{path or 'app'}: {', '.join(methods)}" for path, methods in self.instrumented.items())

    @staticmethod
    def select_inputs() -> Lens:
        """The lens of the arguments of the app's call."""
        return Select.RecordArgs

    @staticmethod
    def select_outputs() -> Lens:
        """The lens of the return value of the app's call."""
        return Select.RecordRets


class TruApp(App):
    """An object with methods, or a function, whose calls are recorded."""


TruCustomApp = TruApp


class TruBasicApp(App):
    """A function from text to text, or an object; call it by `recorder.app(…)`.

    Example:
        >>> recorder = TruBasicApp(lambda text: text.upper(), app_name="shout")
        >>> with recorder as recording:
        ...     _ = recorder.app("hello")
        >>> recording.get().main_input, recording.get().main_output
        ('hello', 'HELLO')
    """

    def __init__(self, text_to_text: Any = None, app: Any = None, **options: Any) -> None:
        if (text_to_text is None) == (app is None):
            raise SpecError("pass either text_to_text, a function from text to text, or app")
        super().__init__(app if text_to_text is None else text_to_text, **options)


class TruVirtual(App, native.LoggedApp):
    """Records of an app that runs elsewhere.

    Example:
        >>> from evaluand.interop.trulens import VirtualApp
        >>> recorder = TruVirtual(app_name="logged")
        >>> records = recorder.add_dataframe([{"query": "Who?", "response": "Austen", "contexts": ["a", "b"]}])
        >>> VirtualApp.select_context()({"__record__": records[0].layout_calls_as_app()})
        ['a', 'b']
    """

    def __init__(self, app: Mapping[str, Any] | None = None, **options: Any) -> None:
        super().__init__(app or {}, **options)

    def add_record(self, record: VirtualRecord) -> Record:
        """Store a record and evaluate it."""
        recording = self.record()
        recording.take(record.recorded)
        stored = recording.get()
        record.use_feedback_results_from(stored)
        return stored

    def add_dataframe(self, df: Any) -> list[Record]:
        """Store a record of each row of a data frame, or of each mapping of a list.

        Args:
            df: has the columns `query`, `response` and, optionally, `contexts`.

        Raises:
            SpecError: a column is missing.
        """
        rows = df.to_dict("records") if hasattr(df, "to_dict") else list(df)
        return [self.add_record(record_from_row(row)) for row in rows]


_OPTION_ADVICE: Final = {
    "app_id": "it is derived from app_name and app_version",
    "session": "pass store=DirectoryStore(folder)",
    "main_method_name": "pass main_method=app.method",
    "selectors_nocheck": "selectors that match no call of the app are warnings, which you can filter",
    "selectors_check_warning": "selectors that match no call of the app are warnings",
    "record_ingest_mode": "records are written as their calls end",
}


def _read_spending(usage: Mapping[str, Any]) -> Spending:
    """Read the stored usage of a score."""
    cost = {} if usage.get("cost") is None else {usage.get("currency") or "": usage["cost"]}
    counts = (usage.get(name) or 0 for name in ("requests", "failed", "input_tokens", "output_tokens"))
    requests, failed, input_tokens, output_tokens = counts
    return Spending(requests, failed, input_tokens=input_tokens, output_tokens=output_tokens, cost=cost)


def _read_result(row: Mapping[str, Any], spec: Mapping[str, Any], source: Mapping[str, Any]) -> Result:
    """Read the result of a feedback for a record from its row."""
    value = identity.decode(row["data"]) if row["data"] is not None else row["value"]
    calls = () if row["calls"] is None else read_calls(spec, orjson.loads(row["calls"]), lambda: source)
    return Result(row["status"], value, calls, row["reason"], row["explanation"])
