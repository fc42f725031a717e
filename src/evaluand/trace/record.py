"""Records: one call of an app or a task, with everything inside it, as JSON-like data for selectors.

A record is built from the rows of a trace (`Trace.rows`) and the call's input and output. A run stores the same data,
so the record of a live call equals that of the stored row, and so does whatever is selected from them.

    record_id, app_id, ts, tags, meta
    cost          {n_requests, n_successful_requests, n_prompt_tokens, n_completion_tokens, n_tokens, cost, currency}
                  cost is None if its parts are in several currencies, one of which may be unknown
    perf          {start_time, end_time, latency}; latency in seconds; None if unknown
    main_input    the input of the call: the first of several arguments
    main_output   its output; None if it failed
    main_error    {type, message, …}; None if it did not fail, as in all records passed to feedbacks
    calls         every traced call, in the order in which they ended: the last is the call itself
    app           the same calls by their place in the app: `app.retriever.search` is a list of calls

A call is {call_id, stack, kind, args, rets, error, perf, attributes, events, pid, tid}. The name of a span gives its
place: `retriever.search` is the method `search` of the component `retriever`, `steps[0].run` that of the first step,
and a name without a dot is a method of the app itself. So selectors work on any trace of any task. Calls of a component
itself, as if it were a method, are under its key `__call__`.

Rows are parsed only when needed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final, Self

import orjson
from orjson import Fragment

from evaluand.core.errors import EvaluandError
from evaluand.core.identity import decode, encode
from evaluand.core.placeholders import unstorable
from evaluand.core.selector import Selector
from evaluand.core.selector.steps import printed
from evaluand.trace.traces import Trace
from evaluand.trace.values import parse_cell

CALL: Final = "evaluand.call"
"""An attribute of spans of instrumented calls: {argument, arguments, rets, pid, tid, also}.

On the root, `argument` is the name of its input, and `arguments` holds the others; `rets` is the returned value if the
output is a part of it. `tid` is set on the root, and on spans of other threads. `also` is another method by which the
component was called: in `app`, the call is under both.
"""

ITSELF: Final = "__call__"


class Record(Mapping[str, Any]):
    """One call as data; see the module.

    Args:
        rows: of its spans, as `Trace.rows` returns them, before or after `orjson` wrote and read them, or as text.
        input: the input of the call.
        output: its output: a value, or an `orjson.Fragment` of its canonical text.
        error: its error: `type`, `message` and further keys.
        name: the name of the call, if the rows have none for it.
        started: when it began, in microseconds since 1970.
        duration: how long it took, in microseconds.
        record_id: the id of the record.
        app_id: the id of the app.
        tags: words for people.
        meta: any other data about the call.

    Example:
        >>> trace = Trace.start("answer", "Who wrote Emma?")
        >>> with trace.root as span:
        ...     with span.span("retriever.search", input={"query": "Emma"}) as s:
        ...         s.output = ["Emma is by Jane Austen."]
        ...     span.output = "Jane Austen"
        >>> record = Record.of_trace(trace)
        >>> record["main_output"], record["app"]["retriever"]["search"][0]["rets"]
        ('Jane Austen', ['Emma is by Jane Austen.'])
        >>> [call["stack"][-1]["method"] for call in record["calls"]]
        ['search', 'answer']
    """

    __slots__ = ("_cache", "_duration", "_error", "_input", "_labels", "_name", "_output", "_rows", "_started")

    def __init__(
        self,
        rows: Sequence[Sequence[Any]] | bytes | str = (),
        *,
        input: Any = None,
        output: Any = None,
        error: Mapping[str, Any] | None = None,
        name: str = "task",
        started: int | None = None,
        duration: int | None = None,
        record_id: str = "",
        app_id: str = "",
        tags: str = "",
        meta: Any = None,
    ) -> None:
        self._rows, self._input, self._output, self._error = rows, input, output, error
        self._name, self._started, self._duration = name, started, duration
        self._labels = (record_id, app_id, tags, meta)
        self._cache: dict[str, Any] | None = None

    @classmethod
    def of_trace(
        cls, trace: Trace, *, record_id: str | None = None, app_id: str = "", tags: str = "", meta: Any = None
    ) -> Self:
        """The record of a trace, of a live call or read from a file; its root may still be open.

        The other parameters are those of the class; the default id is that of the trace.
        """
        if record_id is None:
            record_id = str(trace.id)
        return cls(trace.rows(), **facts_of(trace), record_id=record_id, app_id=app_id, tags=tags, meta=meta)

    def __getitem__(self, key: str) -> Any:
        cache = self._cache
        if cache is None:
            cache = self._cache = {}
        elif key in cache:
            return cache[key]
        value = cache[key] = _KEYS[key](self)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(_KEYS)

    def __len__(self) -> int:
        return len(_KEYS)

    def __contains__(self, key: object) -> bool:
        return key in _KEYS

    def __repr__(self) -> str:
        return f"<Record {self._labels[0]} of {self.name!r}>"

    @property
    def name(self) -> str:
        """The name of the call: `query`, or `retriever.search`."""
        name: str = self._spans[0][2]
        return name

    def to_json(self) -> dict[str, Any]:
        """The complete record as plain data."""
        return dict(self)

    @property
    def _spans(self) -> list[list[Any]]:
        """The parsed rows, the root first; input and output of the root are those of the record."""
        cache = self._cache
        if cache is None:
            cache = self._cache = {}
        if "_spans" not in cache:
            text = self._rows if isinstance(self._rows, bytes | str) else orjson.dumps(self._rows)
            rows = decode(text)
            if not rows or rows[0][1] is not None:
                status = 2 if self._error else 0 if self._duration is None else 1
                rows.insert(0, [0, None, self._name, "task", 0, self._duration, status, None, None, None, None])
            cache["_spans"] = rows
        spans: list[list[Any]] = cache["_spans"]
        return spans

    def _main_error(self) -> dict[str, Any] | None:
        return {key: value for key, value in self._error.items() if value is not None} if self._error else None

    def _perf(self) -> dict[str, Any] | None:
        return None if self._started is self._duration is None else _perf(self._started, 0, self._duration)

    def _ts(self) -> str | None:
        return None if self._started is None else _time(self._started)

    def _calls(self) -> list[dict[str, Any]]:
        spans = self._spans
        stacks: dict[int, list[dict[str, str]]] = {}
        pid, tid = (_call_of(spans[0]).get(name) for name in ("pid", "tid"))
        calls = {}
        for row in spans:
            number, parent, name, kind, start, duration, status, input, output, attributes, events = row
            path, _, method = place_of(name)
            stacks[number] = [*stacks.get(parent, ()), {"path": path, "method": method}]
            call = _call_of(row)
            calls[number] = {
                "call_id": f"{self._labels[0]}:{number}" if self._labels[0] else str(number),
                "stack": stacks[number],
                "kind": kind,
                "args": _args(input),
                "rets": output,
                "error": _error(_STATUSES[status], [(name, body) for name, _, body in events or ()]),
                "perf": None if duration is None and status else _perf(self._started, start, duration),
                "attributes": {key: value for key, value in (attributes or {}).items() if key != CALL},
                "events": [{"name": name, "body": body} for name, _, body in events or ()],
                "pid": pid,
                "tid": call.get("tid", tid),
            }
        root = calls[spans[0][0]]
        call = _call_of(spans[0])
        root |= {"args": self._root_args(call), "rets": call["rets"] if "rets" in call else self["main_output"]}
        root |= {"perf": self["perf"], "error": root["error"] or self["main_error"]}
        return [calls[number] for number in _by_end(spans)]

    def _root_args(self, call: Mapping[str, Any]) -> dict[str, Any]:
        if "argument" not in call:
            return _args(self["main_input"])
        first = {} if call["argument"] is None else {call["argument"]: self["main_input"]}
        return {**first, **call.get("arguments", {})}

    def _app(self) -> dict[str, Any]:
        rows = {row[0]: row for row in self._spans}
        placed = []
        for number, call in zip(_by_end(self._spans), self["calls"], strict=True):
            name, also = rows[number][2], _call_of(rows[number]).get("also")
            placed.append((name, call))
            if isinstance(also, str):
                path = place_of(name)[0]
                placed.append((f"{path}.{also}" if path else also, call))
        return layout(placed)

    def _cost(self) -> dict[str, Any]:
        spans = self._spans
        models = {row[0]: row for row in spans if row[3] == "llm"}
        outer = {row[1] for row in models.values()}  # only the innermost of nested spans count
        requests = [row for number, row in models.items() if number not in outer]
        total = _usage(spans[0]) if "usage" in (spans[0][9] or {}) else None
        used = [total] if total else [_usage(row) for row in requests]
        tokens = {name: _sum(used, name) for name in ("input_tokens", "output_tokens")}
        named = [each.get("currency") for each in used if _is_amount(each.get("cost"))]
        currencies = {name if isinstance(name, str) and name else None for name in named}
        return {
            "n_requests": len(requests),
            "n_successful_requests": sum(row[6] != 2 for row in requests),
            "n_prompt_tokens": tokens["input_tokens"],
            "n_completion_tokens": tokens["output_tokens"],
            "n_tokens": tokens["input_tokens"] + tokens["output_tokens"],
            "cost": float(_sum(used, "cost")) if len(currencies) < 2 else None,
            "currency": currencies.pop() if len(currencies) == 1 else None,
        }


def facts_of(trace: Trace) -> dict[str, Any]:
    """The arguments of `Record` that follow from a trace, except for its rows."""
    root = trace.root
    end, started = root.end_ns, root.start_ns // 1000
    error = _error("error", [(event.name, event.body) for event in root.events]) if root._status == 2 else None
    return {
        "input": root._input,
        "output": None if error else root._output,
        "error": error,
        "name": root.name,
        "started": started or None,
        "duration": None if end is None else (end - root.start_ns) // 1000,
    }


_KEYS: Final[Mapping[str, Callable[[Record], Any]]] = {
    "record_id": lambda record: record._labels[0],
    "app_id": lambda record: record._labels[1],
    "ts": Record._ts,
    "tags": lambda record: record._labels[2],
    "meta": lambda record: _data(record._labels[3]),
    "cost": Record._cost,
    "perf": Record._perf,
    "main_input": lambda record: _data(record._input),
    "main_output": lambda record: _data(record._output),
    "main_error": Record._main_error,
    "calls": Record._calls,
    "app": Record._app,
}
RECORD_KEYS: Final = tuple(_KEYS)
COST_KEYS: Final = (
    *("n_requests", "n_successful_requests", "n_prompt_tokens", "n_completion_tokens", "n_tokens"),
    *("cost", "currency"),
)
PERF_KEYS: Final = ("start_time", "end_time", "latency")
CALL_KEYS: Final = (
    *("call_id", "stack", "kind", "args", "rets", "error", "perf", "attributes", "events", "pid", "tid"),
)
_STATUSES: Final = ("unset", "ok", "error")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ATOMS: Final = frozenset((bool, type(None)))
_MAX_INDEX: Final = 4096  # largest list in the layout, since names are arbitrary
_MAX_DEPTH: Final = 50


def _data(value: Any) -> Any:
    """A value as it would be read back from a store."""
    if type(value) in _ATOMS or (type(value) is str and value.isascii()):
        return value
    try:
        return decode(orjson.dumps(value) if type(value) is Fragment else encode(value))
    except EvaluandError:
        return unstorable(type(value).__qualname__)


def _perf(started: int | None, start: int, duration: int | None) -> dict[str, Any]:
    begun = None if started is None else started + start
    return {
        "start_time": None if begun is None else _time(begun),
        "end_time": None if begun is None or duration is None else _time(begun + duration),
        "latency": None if duration is None else duration / 1e6,
    }


def _time(microseconds: int) -> str:
    seconds, rest = divmod(microseconds, 10**6)
    return f"{_second(seconds)}.{rest:06}+00:00"


@lru_cache(maxsize=64)
def _second(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")


def _error(status: str, events: Sequence[tuple[str, Any]]) -> dict[str, Any] | None:
    if status != "error":
        return None
    bodies = [body for name, body in events if name == "exception" and isinstance(body, Mapping)]
    return dict(bodies[-1]) if bodies else {"type": "error", "message": ""}


def _call_of(row: Sequence[Any]) -> Mapping[str, Any]:
    call = (row[9] or {}).get(CALL)
    return call if isinstance(call, Mapping) else {}


def _args(input: Any) -> dict[str, Any]:
    """The arguments of a call by name."""
    if isinstance(input, Mapping):
        return dict(input)
    return {} if input is None else {"input": input}


def _usage(row: Sequence[Any]) -> Mapping[str, Any]:
    attributes = row[9] or {}
    usage = attributes.get("usage")
    return {**attributes, **usage} if isinstance(usage, Mapping) else attributes


def _sum(usages: Sequence[Mapping[str, Any]], name: str) -> Any:
    return sum(each[name] for each in usages if _is_amount(each.get(name)))


def _is_amount(value: Any) -> bool:
    return type(value) in (int, float)


def _by_end(spans: Sequence[Sequence[Any]]) -> list[int]:
    """Numbers of spans in the order of their ends: children before parents, the root last, open spans after others."""
    root = spans[0][0]
    children: dict[int, list[int]] = {}
    ends = {}
    for row in spans:
        ends[row[0]] = float("inf") if row[5] is None else row[4] + row[5]
        if row[0] != root:
            children.setdefault(row[1] if row[1] in ends else root, []).append(row[0])
    order = []
    waiting = [root]
    while waiting:  # parents before children, later ones first; reversed at the end
        order.append(waiting.pop())
        waiting += children.get(order[-1], ())
    order.reverse()
    ends[root] = float("inf")
    return sorted(order, key=ends.__getitem__)


@lru_cache(maxsize=4096)
def place_of(name: str) -> tuple[str, tuple[str | int, ...], str]:
    """The component's path, the steps to the method, and the method's name.

    Example:
        >>> place_of("steps[0].run"), place_of("ask")
        (('steps[0]', ('steps', 0, 'run'), 'run'), ('', ('ask',), 'ask'))
    """
    try:
        steps: tuple[Any, ...] = tuple(str(s) if isinstance(s, str) else s for s in Selector(name).steps)
    except EvaluandError:
        steps = ()
    are_places = all(type(step) is str or (type(step) is int and 0 <= step < _MAX_INDEX) for step in steps)
    if not (0 < len(steps) <= _MAX_DEPTH and type(steps[0]) is type(steps[-1]) is str and are_places):
        return "", (name,), name
    return "".join(map(printed, steps[:-1])).removeprefix("."), steps, steps[-1]


class _Component(dict[str | int, Any]):
    """A component while the layout is built: its methods and components, by name or index."""


def layout(calls: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Arrange named calls by their place in the app: a list of calls for each method.

    Example:
        >>> layout([("retriever.search", 1), ("query", 2), ("retriever.search", 3)])
        {'retriever': {'search': [1, 3]}, 'query': [2]}
    """
    placed: dict[tuple[str | int, ...], list[Any]] = {}
    for name, call in calls:
        placed.setdefault(place_of(name)[1], []).append(call)
    app = _Component()
    for (*path, method), calls in sorted(placed.items(), key=lambda item: -len(item[0])):  # components before calls
        component = app
        for step in path:
            component = component.setdefault(step, _Component())
        if isinstance(component.get(method), _Component):
            component = component[method]
            method = ITSELF
        component[method] = component.get(method, []) + calls
    return {str(key): _build_lists(value) for key, value in app.items()}


def _build_lists(value: Any) -> Any:
    """Components with indices become lists, with None for missing ones."""
    if not isinstance(value, _Component):
        return value
    places = [key for key in value if isinstance(key, int)]
    if len(places) == len(value):
        return [_build_lists(value.get(place)) for place in range(max(places) + 1)]
    return {str(key): _build_lists(item) for key, item in value.items()}


def comparable_rows(rows: Sequence[Sequence[Any]]) -> bytes:
    """The content of a record's rows and the order in which calls ended, without times, processes and threads."""
    if not rows:
        return b""
    contents = []
    for number, parent, name, kind, _, duration, status, input, output, attributes, events in rows:
        bodies = [[name, body] for name, _, body in parse_cell(events) or ()]
        lasting = _without_process(attributes)
        contents.append([number, parent, name, kind, duration is None, status, input, output, lasting, bodies])
    with_root = rows if rows[0][1] is None else [[0, None, "", "", 0, None], *rows]
    return orjson.dumps([contents, _by_end(with_root)])


def _without_process(attributes: Any) -> Any:
    """Attributes without the process and thread of the call."""
    read = parse_cell(attributes)
    if not isinstance(read, dict) or not isinstance(read.get(CALL), dict):
        return attributes
    return {**read, CALL: {key: value for key, value in read[CALL].items() if key not in ("pid", "tid")}}
