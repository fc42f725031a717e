"""Interactions that were logged elsewhere, as records without an app."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from numbers import Real
from typing import Any, Final

from orjson import Fragment

from evaluand.apps.app import App
from evaluand.apps.instrumentation.steps import CompletedCall
from evaluand.apps.session import RecordingSession
from evaluand.core.credentials import hide_arguments
from evaluand.core.errors import DataError, Fault, TaskError, described, nearest, with_article
from evaluand.core.json_like import text_of
from evaluand.trace import STATUSES, Trace, nanoseconds
from evaluand.trace.record import facts_of


def record_logs(
    interactions: Iterable[Mapping[str, Any] | Trace],
    *,
    name: str = "logged",
    structure: Mapping[str, Any] | None = None,
    **options: Any,
) -> RecordingSession:
    """Records interactions that were logged elsewhere, without an app.

    Args:
        interactions: each a mapping, or a trace, such as `read_spans` reads from an OpenTelemetry file. Keys of a
            mapping: `input`, `output` or `error` (text, or `{type, message}`), `started` (a datetime or ISO text),
            `duration` in seconds (without it the latency is unknown), `usage`, `record_id`, `tags`, `meta`, and
            `calls`: by name (`retriever.search`) a call or a list of calls with any of `args` (by name), `rets`,
            `error`, `kind` and `attributes`.
        name: the name of the app.
        structure: its components, JSON-like, for selectors under `__app__`.
        options: `version`, `feedbacks` and other arguments of `App`.

    Raises:
        DataError: an interaction has another form; says which.

    Example:
        >>> recording = record_logs([{"input": "Who?", "output": "Austen",
        ...                       "calls": {"retriever.search": {"args": {"query": "Who?"}, "rets": ["a", "b"]}}}])
        >>> recording.records[0]["app"]["retriever"]["search"][0]["rets"]
        ['a', 'b']
    """
    recording = App.logged(structure, name=name, **options).record()
    for place, interaction in enumerate(interactions):
        recording.take(read_interaction(interaction, f"interaction {place}"))
    return recording


def read_interaction(interaction: Mapping[str, Any] | Trace, where: str = "interaction") -> CompletedCall:
    """A logged interaction, named `where` in messages, as a completed call; see `record_logs`."""
    if isinstance(interaction, Trace):
        _check_times(interaction, where)
        return CompletedCall(interaction, _logged_error(interaction.root.status, interaction))
    if not isinstance(interaction, Mapping):
        raise DataError(Fault(where, f"must be a mapping or a Trace, not {with_article(type(interaction).__name__)}"))
    _check_keys(interaction, _INTERACTION, where)
    for key in ("record_id", "tags"):
        if interaction.get(key) is not None and not isinstance(interaction[key], str):
            raise DataError(Fault(where, f"{key} must be text, not {described(interaction[key])}"))
    start, end = _times(interaction, where)
    error = interaction.get("error")
    attributes = {"usage": interaction["usage"]} if interaction.get("usage") is not None else {}
    duration = None if end is None else (end - start) // 1000
    rows = [_span_row(0, None, "call", {"attributes": attributes, "error": error, "kind": "task"}, duration)]
    calls = interaction.get("calls") or {}
    if not isinstance(calls, Mapping):
        raise DataError(Fault(where, "calls must be a mapping from names such as retriever.search to calls"))
    for name, logged in calls.items():
        for call in logged if isinstance(logged, list | tuple) else (logged,):
            if not isinstance(call, Mapping):
                raise DataError(Fault(where, f"a call of {name} must be a mapping with args and rets"))
            _check_keys(call, _CALL, f"{where}, call of {name}")
            rows.append(_span_row(len(rows), 0, str(name), call, None))
    input, output = (Fragment(text_of(interaction.get(key))) for key in ("input", "output"))
    status = "error" if error is not None else "ok"
    trace = Trace.from_rows(rows, input=input, output=output, start_ns=start, end_ns=end, status=status)
    about = {key: interaction[key] for key in ("record_id", "tags", "meta") if interaction.get(key) is not None}
    return CompletedCall(trace, _logged_error(status, trace), about)


_INTERACTION: Final = (
    *("input", "output", "error", "calls", "started", "duration", "usage"),
    *("record_id", "tags", "meta"),
)
_CALL: Final = ("args", "rets", "error", "kind", "attributes")


def _check_keys(logged: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for key in logged:
        if key not in known:
            raise DataError(Fault(where, f"has no {key!r}{nearest(str(key), known)}; known are {', '.join(known)}"))


def _times(interaction: Mapping[str, Any], where: str) -> tuple[int, int | None]:
    """Start and end in nanoseconds since 1970; the start is 0 and the end None where they are unknown."""
    started, duration = interaction.get("started"), interaction.get("duration")
    try:
        if started is not None and not isinstance(started, datetime):
            started = datetime.fromisoformat(started)
        start = _EPOCH if started is None else started
        if duration is None:
            return nanoseconds(start), None
        if not isinstance(duration, Real) or isinstance(duration, bool):
            raise TypeError
        end = start + timedelta(seconds=float(duration))
        if end >= start:
            return nanoseconds(start), nanoseconds(end)
    except (TypeError, ValueError, OverflowError):  # of another type, or beyond the year 9999
        pass
    values = f"{interaction.get('started')!r} and {duration!r}"
    need = "started must be a datetime or ISO text, duration seconds from 0, both up to the year 9999"
    raise DataError(Fault(where, f"{need}; not {values}"))


def _check_times(trace: Trace, where: str) -> None:
    for span in trace.spans:
        if not _FIRST <= span.start_ns <= (span.start_ns if span.end_ns is None else span.end_ns) <= _LAST:
            message = f"the span {span.name!r} must begin before it ends, both in the years 1 to 9999"
            raise DataError(Fault(where, message))


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = (nanoseconds(each) for each in (datetime.min, datetime.max))


def _span_row(number: int, parent: int | None, name: str, call: Mapping[str, Any], duration: int | None) -> list[Any]:
    error, args, attributes = call.get("error"), call.get("args"), call.get("attributes")
    if isinstance(args, Mapping):
        args = hide_arguments(args)
    described_error = error if isinstance(error, Mapping) else {"message": error}
    body = {"type": str(described_error.get("type", "Error")), "message": str(described_error.get("message", ""))}
    events = None if error is None else [["exception", 0, body]]
    texts = [None if value is None else Fragment(text_of(value)) for value in (args, call.get("rets"))]
    if attributes:
        attributes = Fragment(text_of(hide_arguments(attributes) if isinstance(attributes, Mapping) else attributes))
    status = STATUSES.index("ok" if error is None else "error")
    return [
        number,
        parent,
        name,
        str(call.get("kind", "span")),
        0,
        duration,
        status,
        *texts,
        attributes or None,
        events,
    ]


def _logged_error(status: str, trace: Trace) -> BaseException | None:
    """The logged error as an exception."""
    if status != "error":
        return None
    error = facts_of(trace)["error"]
    return TaskError(f"{error['type']}: {error['message']}")
