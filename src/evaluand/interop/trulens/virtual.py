"""What is known of an app that runs elsewhere, as `VirtualApp`, and of its calls, as `VirtualRecord`."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from evaluand.apps import logs as native_logs
from evaluand.apps.components import path_text
from evaluand.apps.instrumentation.steps import CompletedCall
from evaluand.core.errors import SpecError
from evaluand.core.selector.steps import Member
from evaluand.interop.trulens.lens import Lens, Select
from evaluand.interop.trulens.records import Cost, Layout, Perf, Record
from evaluand.trace.record import Record as NativeRecord


class VirtualApp(dict[str, Any]):
    """The known structure of an app that runs elsewhere: JSON-like components, which lenses can set too.

    Example:
        >>> app = VirtualApp({"llm": {"modelname": "small"}})
        >>> app[Select.RecordCalls.llm.maxtokens] = 1024
        >>> dict(app)
        {'llm': {'modelname': 'small', 'maxtokens': 1024}}
    """

    def __setitem__(self, path: str | Lens, value: Any) -> None:
        if isinstance(path, str):
            super().__setitem__(path, value)
            return
        steps = _steps_below_app(path)
        changed = Lens.of_string(path_text(steps)).set(dict(self), value)
        self.clear()
        self.update(changed)

    @staticmethod
    def select_context() -> Lens:
        """The lens of the contexts that `TruVirtual.add_dataframe` takes."""
        lens: Lens = Select.RecordCalls.retriever.get_context.rets[:]
        return lens


class VirtualRecord(Record):
    """A record of a call that was logged elsewhere.

    Args:
        calls: lens of a method (`Select.RecordCalls.retriever.search`) → a call or a list of calls, each a mapping
            with `args` and `rets`.
        cost: its tokens and price.
        perf: its start and end.
        record_fields: `main_input`, `main_output`, `main_error`, `tags`, `meta`, `record_id`.

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
        **record_fields: Any,
    ) -> None:
        self._calls = {path_text(_steps_below_app(lens)): _native_calls(value) for lens, value in (calls or {}).items()}
        super().__init__(**{"cost": cost or Cost(), "perf": perf or Perf(), **record_fields})
        self.calls = Record.from_native(self._to_native()).calls

    @property
    def recorded(self) -> CompletedCall:
        """The call with the current values of the record's fields."""
        interaction = {
            "input": self.main_input,
            "output": self.main_output,
            "error": self.main_error,
            "calls": self._calls,
            **_times(self.perf),
            **({} if self.cost in (None, Cost()) else {"usage": _usage(self.cost)}),
            **{name: value for name in ("record_id", "tags", "meta") if (value := getattr(self, name))},
        }
        return native_logs.read_interaction(interaction, "the virtual record")

    def layout_calls_as_app(self) -> Layout:
        return Layout(self._to_native())

    def _to_native(self) -> NativeRecord:
        recorded = self.recorded
        return NativeRecord.of_trace(recorded.trace, **(recorded.about or {}))


def record_from_row(row: Mapping[str, Any]) -> VirtualRecord:
    for name in ("query", "response"):
        if name not in row:
            raise SpecError(
                f"no column {name!r} among {', '.join(row)}; columns are query, response and, optionally, contexts"
            )
    calls = context_calls(row["query"], row.get("contexts"))
    return VirtualRecord(main_input=row["query"], main_output=row["response"], calls=calls)


def context_calls(query: Any, contexts: Any) -> dict[Lens, Any]:
    """The call that `VirtualApp.select_context` selects from; none without contexts."""
    if contexts is None:
        return {}
    texts = [contexts] if isinstance(contexts, str) else list(contexts)
    return {Select.RecordCalls.retriever.get_context: {"args": {"query": query}, "rets": texts}}


def _steps_below_app(lens: Lens) -> tuple[Any, ...]:
    """The steps of a lens within the app."""
    steps = [str(step) if isinstance(step, Member) else step for step in lens.selector().steps]
    if steps[:2] == ["__record__", "app"]:
        return tuple(steps[2:])
    return tuple(steps[1:] if steps[:1] in (["app"], ["__app__"]) else steps)


def _native_calls(calls: Any) -> Any:
    """One call or several, as native logs write them: arguments without names are numbered."""
    if isinstance(calls, list | tuple):
        return list(map(_native_calls, calls))
    native_call = {name: calls[name] for name in ("rets", "error") if name in calls}
    args = calls.get("args")
    if args is not None:
        by_name = args if isinstance(args, Mapping) else {str(index): value for index, value in enumerate(args)}
        native_call["args"] = by_name
    return native_call


def _times(perf: Perf | None) -> dict[str, Any]:
    if perf is None or perf.start_time is None:
        return {}
    return {"started": perf.start_time, "duration": (perf.latency or timedelta()).total_seconds()}


def _usage(cost: Cost) -> dict[str, Any]:
    """The usage of a native log; tokens of unknown kind count as input tokens."""
    return {
        "input_tokens": max(cost.n_prompt_tokens, cost.n_tokens - cost.n_completion_tokens),
        "output_tokens": cost.n_completion_tokens,
        "cost": cost.cost,
        "currency": cost.cost_currency,
    }
