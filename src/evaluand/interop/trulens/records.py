"""Records of calls with the names of TruLens, over `evaluand.trace.record`.

Differences from TruLens: times have a time zone (UTC); an error is `{type, message}` in `main_error` and only the
message in a call; `stack` identifies the component of each method by its path, not by its class; and `app` lists the
calls of a method, even if there is only one.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from evaluand.core.errors import SpecError
from evaluand.interop.trulens.lens import Lens
from evaluand.trace import record as native


@dataclass
class Cost:
    """Requests, tokens and price.

    Attributes:
        n_tokens: default: the sum of prompt and completion tokens.
        cost: None if it is unknown, or if its parts are in several currencies, whose amounts are never added.
    """

    n_requests: int = 0
    n_successful_requests: int = 0
    n_completion_requests: int = 0
    n_classification_requests: int = 0
    n_classes: int = 0
    n_embedding_requests: int = 0
    n_embeddings: int = 0
    n_tokens: int = 0
    n_stream_chunks: int = 0
    n_prompt_tokens: int = 0
    n_completion_tokens: int = 0
    n_reasoning_tokens: int = 0
    cost: float | None = 0.0
    cost_currency: str = "USD"

    def __post_init__(self) -> None:
        self.n_tokens = self.n_tokens or self.n_prompt_tokens + self.n_completion_tokens

    @classmethod
    def from_native(cls, cost: Mapping[str, Any]) -> Self:
        """Convert the cost of a native record."""
        known = {name: cost[name] for name in (each.name for each in fields(cls)) if name in cost}
        currency = {"cost_currency": cost["currency"]} if cost.get("currency") else {}
        return cls(**known, **currency, n_completion_requests=cost.get("n_requests", 0))

    def __add__(self, other: Self) -> Self:
        """The sum of two costs; without a price it has the currency of the other.

        Raises:
            DifferentCurrencies: both have a price, in different currencies.
        """
        if self.cost and other.cost and self.cost_currency != other.cost_currency:
            raise DifferentCurrencies(
                f"costs in {self.cost_currency} and {other.cost_currency} cannot be added; sum those of each currency"
            )
        names = (each.name for each in fields(self) if each.name not in ("cost", "cost_currency"))
        sums = {name: getattr(self, name) + getattr(other, name) for name in names}
        cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        currency = other.cost_currency if self.cost == 0 else self.cost_currency
        return type(self)(**sums, cost=cost, cost_currency=currency)


class DifferentCurrencies(SpecError, ValueError):
    """Costs in different currencies cannot be added."""


@dataclass
class Perf:
    """Start and end time; None where unknown."""

    start_time: datetime | None = None
    end_time: datetime | None = None

    @classmethod
    def from_native(cls, perf: Mapping[str, Any] | None) -> Self | None:
        """Convert the times of a native record; None if the start is unknown. An open call takes no time."""
        if perf is None or perf["start_time"] is None:
            return None
        start = datetime.fromisoformat(perf["start_time"])
        return cls(start, datetime.fromisoformat(perf["end_time"] or perf["start_time"]))

    @classmethod
    def now(cls, latency: timedelta = timedelta()) -> Self:
        """A period that starts now and lasts for `latency`."""
        start = datetime.now(UTC)
        return cls(start, start + latency)

    @property
    def latency(self) -> timedelta | None:
        """The time from start to end."""
        return None if self.start_time is None or self.end_time is None else self.end_time - self.start_time


@dataclass(frozen=True)
class Method:
    """The method of a call."""

    name: str


@dataclass(frozen=True)
class RecordAppCallMethod:
    """A method on the stack of a call; `path` is the path of its component, as a step of `app`."""

    path: Lens
    method: Method


@dataclass
class RecordAppCall:
    """One call of a record; `stack` lists the methods from the outermost to the one called."""

    call_id: str
    stack: list[RecordAppCallMethod]
    args: Any
    rets: Any = None
    error: str | None = None
    perf: Perf | None = None
    pid: int | None = None
    tid: int | None = None

    @classmethod
    def from_native(cls, call: Mapping[str, Any]) -> Self:
        """Convert a call of a native record."""
        stack = [RecordAppCallMethod(_component_lens(step["path"]), Method(step["method"])) for step in call["stack"]]
        error = call["error"] and str(call["error"].get("message") or call["error"].get("type"))
        unchanged = {name: call[name] for name in ("call_id", "args", "rets", "pid", "tid")}
        return cls(**unchanged, stack=stack, error=error, perf=Perf.from_native(call["perf"]))

    def top(self) -> RecordAppCallMethod:
        """The method that was called."""
        return self.stack[-1]

    def method(self) -> Method:
        """The method that was called, without its path."""
        return self.top().method


class Layout(dict[str, Any]):
    """A record as data whose keys are also attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


@dataclass
class Record:
    """One call of an app, with every call within it in the order in which they ended; the last is the call of the app.

    Attributes:
        meta: any other JSON-like data about the call.
    """

    app_id: str = ""
    record_id: str = ""
    cost: Cost | None = None
    perf: Perf | None = None
    ts: datetime = field(default_factory=lambda: datetime.now(UTC))
    tags: str = ""
    meta: Any = None
    main_input: Any = None
    main_output: Any = None
    main_error: Any = None
    calls: list[RecordAppCall] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._native: native.Record | None = None
        self._evaluate_feedbacks: Callable[[], Any] | None = None

    @classmethod
    def from_native(cls, record: native.Record, evaluate_feedbacks: Callable[[], Any] | None = None) -> Self:
        """Convert a native record.

        Args:
            record: the native record.
            evaluate_feedbacks: returns the pairs of a feedback and its result, if the app has feedbacks.
        """
        names = ("app_id", "record_id", "tags", "meta", "main_input", "main_output", "main_error")
        converted = cls(
            **{name: record[name] for name in names},
            cost=Cost.from_native(record["cost"]),
            perf=Perf.from_native(record["perf"]),
            calls=[RecordAppCall.from_native(call) for call in record["calls"]],
        )
        if record["ts"] is not None:
            converted.ts = datetime.fromisoformat(record["ts"])
        converted._native, converted._evaluate_feedbacks = record, evaluate_feedbacks
        return converted

    def layout_calls_as_app(self) -> Layout:
        """The record as data, with its calls under `app`, arranged as the app's components are."""
        if self._native is not None:
            return Layout(self._native)
        data = self.model_dump()
        calls_by_name = ((_call_name(call.top()), dump) for call, dump in zip(self.calls, data["calls"], strict=True))
        return Layout(data | {"app": native.layout(calls_by_name)})

    def get(self, path: Lens) -> Any:
        """The one value at a path of the record."""
        return path.get_sole_item(self.layout_calls_as_app())

    def wait_for_feedback_results(self, feedback_timeout: float | None = None) -> dict[Any, Any]:
        """The results of the app's feedbacks, by feedback; computes those that are not there yet.

        Args:
            feedback_timeout: ignored; the app's `policy` limits how long feedbacks may take.
        """
        return {} if self._evaluate_feedbacks is None else dict(self._evaluate_feedbacks())

    def use_feedback_results_from(self, other: "Record") -> None:
        """Return the feedback results of another record from now on."""
        self._evaluate_feedbacks = other._evaluate_feedbacks

    @property
    def feedback_results(self) -> list[Any]:
        """The results without their feedbacks."""
        return list(self.wait_for_feedback_results().values())

    def model_dump(self) -> dict[str, Any]:
        """All fields as plain data."""
        calls = [
            asdict(call) | {"stack": [{"path": str(s.path), "method": {"name": s.method.name}} for s in call.stack]}
            for call in self.calls
        ]
        return {each.name: getattr(self, each.name) for each in fields(self)} | {
            "cost": self.cost and asdict(self.cost),
            "perf": self.perf and asdict(self.perf),
            "calls": calls,
        }

    dict = model_dump

    def model_dump_json(self) -> str:
        """All fields as JSON."""
        return json.dumps(self.model_dump(), default=str)


def _component_lens(path: str) -> Lens:
    lens: Lens = Lens.of_string(f"app.{path}" if path else "app")
    return lens


def _call_name(method: RecordAppCallMethod) -> str:
    """The name of a call as native records write it."""
    return f"{method.path}.{method.method.name}".removeprefix("app").removeprefix(".")
