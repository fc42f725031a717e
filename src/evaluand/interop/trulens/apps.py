"""Wrappers of apps with the names of TruLens, over `evaluand.apps.app`.

    recorder = TruApp(rag, app_name="rag", app_version="2", feedbacks=[relevance])
    with recorder as recording:
        rag.query("Who wrote Emma?")
    recording.get().wait_for_feedback_results()

What is another here: classes are not changed, so `@instrument` is all that marks a method, or nothing has to; what is
selected under `__app__` is the app's structure as data, in which secrets are hidden; and records are kept in a store,
in memory where none is given, from which `recorder.close()` makes a run and its evaluation.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Any, Final, TypeVar, overload

import orjson

from evaluand.apps import app as native
from evaluand.apps import logs as native_logs
from evaluand.apps import session as native_session
from evaluand.apps.components import path_text
from evaluand.apps.instrumentation.marking import make_instrumented
from evaluand.apps.instrumentation.steps import CompletedCall
from evaluand.core import identity
from evaluand.core.errors import SpecError
from evaluand.core.selector.steps import Member
from evaluand.engine.engine import Policy
from evaluand.evaluation.feedback.call_storage import read_calls
from evaluand.evaluation.feedback.results import Result
from evaluand.evaluation.provider import Spending
from evaluand.interop.trulens.feedback import FeedbackMode, FeedbackResult
from evaluand.interop.trulens.lens import Lens, Select
from evaluand.interop.trulens.records import Cost, Layout, Perf, Record
from evaluand.store.store import Store
from evaluand.trace.record import Record as NativeRecord

R = TypeVar("R")


class instrument:  # noqa: N801 - a decorator
    """Marks a method as one whose calls are recorded.

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
        made: R = make_instrumented(method)
        return made

    @staticmethod
    def method(of_cls: type, name: str) -> None:
        """Marks a method of a class that is there already, for all who use it."""
        setattr(of_cls, name, make_instrumented(inspect.getattr_static(of_cls, name)))

    @staticmethod
    def methods(of_cls: type, names: Iterable[str]) -> None:
        """Marks several."""
        for name in names:
            instrument.method(of_cls, name)


@dataclass
class AppDefinition:
    """What an app is, as data.

    Attributes:
        app: the app's structure, JSON-like.
    """

    app_name: str = "default_app"
    app_version: str = "base"
    app_id: str = ""
    tags: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    feedback_definitions: Sequence[str] = ()
    feedback_mode: FeedbackMode = FeedbackMode.WITH_APP_THREAD
    root_class: str = ""
    app: Any = None

    def model_dump(self) -> dict[str, Any]:
        """All of it as data."""
        return vars(self) | {"feedback_mode": self.feedback_mode.value}

    dict = model_dump


class Recording(native_session.RecordingSession):
    """What is recorded in a `with` block; its records have the names of TruLens."""

    _rows: tuple[int, dict[str, tuple[Any, dict[int, dict[str, Any]]]]] | None = None

    @property
    def records(self) -> Records:  # type: ignore[override]
        """The records so far, in the order in which the calls ended."""
        return Records(self)

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, place: int) -> Record:
        return self.records[place]

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def get(self) -> Record:  # type: ignore[override]
        """The only record.

        Raises:
            DataError: there is none, or more than one.
        """
        super().get()
        return self.records[0]

    def results(self, number: int) -> Iterator[tuple[Any, FeedbackResult]]:
        """What the app's feedbacks say of a record, with each of them."""
        if not self.app.feedbacks:
            return
        record_id, source = self.record_id(number), self.writer.source(number)
        for name, (spec, rows) in self._evaluated().items():
            feedback: Any = self.app.feedbacks[name]
            result = _result(rows[number], spec, source)
            spent = _spent(identity.decode(rows[number]["usage"] or b"{}"))
            yield feedback, FeedbackResult(feedback, result, record_id, {}, spent)

    def record_id(self, number: int) -> str:
        """What a record is called among all: one without a name of its own has the recording's id before its number."""
        told = str(self.writer.record(number)["record_id"])
        return f"{self.id}/{number}" if told == str(number) else told

    def _evaluated(self) -> dict[str, tuple[Any, dict[int, dict[str, Any]]]]:
        """The identity of each feedback, and its rows by the numbers of the records, as many as there are."""
        if self._rows is None or self._rows[0] != len(self._numbers):
            evaluation = self.writer.evaluate()
            specs = evaluation.manifest["spec"]["scorers"].items()
            tables = {name: (spec, evaluation.table(name).to_pylist()) for name, spec in specs}
            rows = {name: (spec, {row["_index_"]: row for row in table}) for name, (spec, table) in tables.items()}
            self._rows = len(self._numbers), rows
        return self._rows[1]


class Records(Sequence[Record]):
    """The records of a recording."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def __len__(self) -> int:
        return len(self._recording._numbers)

    @overload
    def __getitem__(self, place: int) -> Record: ...
    @overload
    def __getitem__(self, place: slice) -> list[Record]: ...
    def __getitem__(self, place: int | slice) -> Record | list[Record]:
        numbers = self._recording._numbers[place]
        return self._made(numbers) if isinstance(numbers, int) else [self._made(number) for number in numbers]

    def _made(self, number: int) -> Record:
        record = Record.of(self._recording.writer.record(number), lambda: self._recording.results(number))
        record.record_id = self._recording.record_id(number)
        return record


class App(native.App):
    """A native app, made and used with the names of TruLens.

    Args:
        app: the function or object.
        app_name: what it is called.
        app_version: which version of it.
        feedbacks: what judges its records.
        feedback_mode: when they are judged.
        tags: words for people.
        metadata: anything known of it beside.
        main_method: the method that is the app's, where it is traced neither by a mark nor by its name.
        methods_to_instrument: names of methods to trace beside those that are marked.
        store: where records are kept; in memory if not given.
        policy: how feedbacks are asked: concurrency, timeout, retries, pace.
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
            instead = _OPTIONS.get(name) or f"there are {', '.join(inspect.signature(App).parameters)}"
            raise SpecError(f"{type(self).__name__} has no option {name!r}: {instead}")
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
        """The object that was given, or the function that takes the place of the one that was given."""
        return super().app if self.main_method is None else self.target

    @property
    def app_name(self) -> str:
        """What it is called."""
        return self.name

    @property
    def app_version(self) -> str | None:
        """Which version of it."""
        return self.version

    @property
    def feedback_mode(self) -> FeedbackMode:
        """When records are judged."""
        return FeedbackMode(self.mode)

    @cached_property
    def json(self) -> dict[str, Any]:
        """What the app is made of, as data; selectors find it under `__app__`."""
        told = super().json
        names = {"app_name": told["name"], "app_version": told["version"]}
        return told | names | {"feedback_definitions": told["feedbacks"], "feedback_mode": told["mode"]}

    @property
    def definition(self) -> AppDefinition:
        """What the app is, as data."""
        known = AppDefinition.__dataclass_fields__
        told = {name: value for name, value in self.json.items() if name in known}
        return AppDefinition(**told | {"feedback_mode": self.feedback_mode})

    def dict(self) -> dict[str, Any]:
        """What the app is made of, as data."""
        return self.json

    model_dump = dict

    def record(self, *, tags: str | None = None, meta: Any = None) -> Recording:
        return Recording(self, self.tags if tags is None else tags, meta)

    def with_record(
        self, func: Callable[..., R], *args: Any, record_metadata: Any = None, **kwargs: Any
    ) -> tuple[R, Record]:
        """Calls a method of the app and gives its record too."""
        with self.record(meta=record_metadata) as recording:
            result = func(*args, **kwargs)
        return result, recording.get()

    async def awith_record(
        self, func: Callable[..., Awaitable[R]], *args: Any, record_metadata: Any = None, **kwargs: Any
    ) -> tuple[R, Record]:
        """The same of an async method."""
        with self.record(meta=record_metadata) as recording:
            result = await func(*args, **kwargs)
        return result, recording.get()

    def with_(self, func: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        """Calls a method of the app and keeps its record."""
        with self:
            return func(*args, **kwargs)

    async def awith_(self, func: Callable[..., Awaitable[R]], *args: Any, **kwargs: Any) -> R:
        """The same of an async method."""
        with self:
            return await func(*args, **kwargs)

    async def __aenter__(self) -> Recording:
        entered: Any = self.__enter__()
        return entered  # type: ignore[no-any-return]

    async def __aexit__(self, *raised: Any) -> None:
        self.__exit__(*raised)

    def wait_for_feedback_results(self, feedback_timeout: float | None = None) -> None:
        """Has everything judged that was recorded so far; see `Record.wait_for_feedback_results`."""
        if self._writer is not None and self.feedbacks:
            self._writer.evaluate()

    def format_instrumented_methods(self) -> str:
        """What is traced, as text."""
        return "\n".join(f"{path or 'app'}: {', '.join(methods)}" for path, methods in self.instrumented.items())

    @staticmethod
    def select_inputs() -> Lens:
        """The lens of the arguments of the whole call."""
        return Select.RecordArgs

    @staticmethod
    def select_outputs() -> Lens:
        """The lens of what the whole call returned."""
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
            raise SpecError("give a function from text to text, or an app")
        super().__init__(app if text_to_text is None else text_to_text, **options)


class VirtualApp(dict[str, Any]):
    """What is known of an app that is not here: its components, JSON-like, also set by lenses.

    Example:
        >>> app = VirtualApp({"llm": {"modelname": "small"}})
        >>> app[Select.RecordCalls.llm.maxtokens] = 1024
        >>> dict(app)
        {'llm': {'modelname': 'small', 'maxtokens': 1024}}
    """

    def __setitem__(self, place: str | Lens, value: Any) -> None:
        if isinstance(place, str):
            super().__setitem__(place, value)
            return
        steps = _below_app(place)
        made = Lens.of_string(path_text(steps)).set(dict(self), value)
        self.clear()
        self.update(made)

    @staticmethod
    def select_context() -> Lens:
        """The lens of the contexts that `TruVirtual.add_dataframe` takes."""
        lens: Lens = Select.RecordCalls.retriever.get_context.rets[:]
        return lens


class VirtualRecord(Record):
    """A record of a call that was logged elsewhere.

    Args:
        calls: by the lens of the method (`Select.RecordCalls.retriever.search`), a call or a list of calls, each a
            mapping with `args` and `rets`.
        cost: what it used.
        perf: when it was.
        told: `main_input`, `main_output`, `main_error`, `tags`, `meta`, `record_id`.

    Example:
        >>> record = VirtualRecord(main_input="Who?", main_output="Austen", calls={
        ...     Select.RecordCalls.retriever.search: {"args": {"query": "Who?"}, "rets": ["a", "b"]}})
        >>> list(Select.RecordCalls.retriever.search.rets[:]({"__record__": record.layout_calls_as_app()}))
        ['a', 'b']
    """

    def __init__(
        self,
        calls: Mapping[Lens, Any] | None = None,
        cost: Cost | None = None,
        perf: Perf | None = None,
        **told: Any,
    ) -> None:
        self._calls = {path_text(_below_app(lens)): _calls(given) for lens, given in (calls or {}).items()}
        super().__init__(**{"cost": cost or Cost(), "perf": perf or Perf(), **told})
        self.calls = Record.of(self._told()).calls

    @property
    def recorded(self) -> CompletedCall:
        """The call as it is now, also where it was changed since it was made."""
        told = {
            "input": self.main_input,
            "output": self.main_output,
            "error": self.main_error,
            "calls": self._calls,
            **_times(self.perf),
            **({} if self.cost in (None, Cost()) else {"usage": _usage(self.cost)}),
            **{name: value for name in ("record_id", "tags", "meta") if (value := getattr(self, name))},
        }
        return native_logs.read_interaction(told, "the virtual record")

    def layout_calls_as_app(self) -> Layout:
        return Layout(self._told())

    def _told(self) -> NativeRecord:
        recorded = self.recorded
        return NativeRecord.of_trace(recorded.trace, **(recorded.about or {}))


class TruVirtual(App, native.LoggedApp):
    """Records of an app that is not here.

    Example:
        >>> recorder = TruVirtual(app_name="logged")
        >>> records = recorder.add_dataframe([{"query": "Who?", "response": "Austen", "contexts": ["a", "b"]}])
        >>> VirtualApp.select_context()({"__record__": records[0].layout_calls_as_app()})
        ['a', 'b']
    """

    def __init__(self, app: Mapping[str, Any] | None = None, **options: Any) -> None:
        super().__init__(app or {}, **options)

    def add_record(self, record: VirtualRecord) -> Record:
        """Keeps a record and has it judged."""
        recording = self.record()
        recording.take(record.recorded)
        kept = recording.get()
        record.judged_as(kept)
        return kept

    def add_dataframe(self, df: Any) -> list[Record]:
        """Keeps a record of each row of a frame, or mapping of a list.

        Args:
            df: with the columns `query`, `response` and, if there are any, `contexts`.

        Raises:
            SpecError: another has no such columns.
        """
        rows = df.to_dict("records") if hasattr(df, "to_dict") else list(df)
        return [self.add_record(_of_row(row)) for row in rows]


_OPTIONS: Final = {
    "app_id": "it is made of app_name and app_version",
    "session": "give store=DirectoryStore(folder)",
    "main_method_name": "give main_method=app.method",
    "selectors_nocheck": "selectors that lead to no call of the app are warnings, which can be filtered",
    "selectors_check_warning": "selectors that lead to no call of the app are warnings",
    "record_ingest_mode": "records are written as their calls end",
}


def _of_row(row: Mapping[str, Any]) -> VirtualRecord:
    for name in ("query", "response"):
        if name not in row:
            raise SpecError(f"there is no column {name!r}; give query, response and contexts, not {', '.join(row)}")
    calls: dict[Lens, Any] = {}
    if row.get("contexts") is not None:
        contexts = row["contexts"]
        found = [contexts] if isinstance(contexts, str) else list(contexts)
        calls = {Select.RecordCalls.retriever.get_context: {"args": {"query": row["query"]}, "rets": found}}
    return VirtualRecord(main_input=row["query"], main_output=row["response"], calls=calls)


def _below_app(lens: Lens) -> tuple[Any, ...]:
    """The steps of a lens within the app."""
    steps = [str(step) if isinstance(step, Member) else step for step in lens.selector().steps]
    if steps[:2] == ["__record__", "app"]:
        return tuple(steps[2:])
    return tuple(steps[1:] if steps[:1] in (["app"], ["__app__"]) else steps)


def _calls(given: Any) -> Any:
    return [_call(each) for each in given] if isinstance(given, list | tuple) else _call(given)


def _call(given: Mapping[str, Any]) -> dict[str, Any]:
    """A call as native logs have it: arguments without names are numbered."""
    args = given.get("args")
    named = args if isinstance(args, Mapping) or args is None else {str(n): value for n, value in enumerate(args)}
    known = {name: given[name] for name in ("rets", "error") if name in given}
    return known | ({} if named is None else {"args": named})


def _times(perf: Perf | None) -> dict[str, Any]:
    if perf is None or perf.start_time is None:
        return {}
    return {"started": perf.start_time, "duration": (perf.latency or timedelta()).total_seconds()}


def _usage(cost: Cost) -> dict[str, Any]:
    """What was used; tokens of which it is not said what they were count as read."""
    return {
        "input_tokens": max(cost.n_prompt_tokens, cost.n_tokens - cost.n_completion_tokens),
        "output_tokens": cost.n_completion_tokens,
        "cost": cost.cost,
        "currency": cost.cost_currency,
    }


def _spent(usage: Mapping[str, Any]) -> Spending:
    """What a score took, as it is stored."""
    cost = {} if usage.get("cost") is None else {usage.get("currency") or "": usage["cost"]}
    counts = (usage.get(name) or 0 for name in ("requests", "failed", "input_tokens", "output_tokens"))
    requests, failed, read, written = counts
    return Spending(requests, failed, input_tokens=read, output_tokens=written, cost=cost)


def _result(row: Mapping[str, Any], spec: Mapping[str, Any], source: Mapping[str, Any]) -> Result:
    """What a feedback said of a record, from the row that tells it."""
    value = identity.decode(row["data"]) if row["data"] is not None else row["value"]
    calls = () if row["calls"] is None else read_calls(spec, orjson.loads(row["calls"]), lambda: source)
    return Result(row["status"], value, calls, row["reason"], row["explanation"])
