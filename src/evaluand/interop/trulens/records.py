"""Records of calls with the names of TruLens, over `evaluand.trace.record`.

What is another here: times have their zone (UTC), errors are told as `{type, message}` in `main_error` and as the
message in a call, `stack` tells the component of each method by its path and not by its class, and `app` lays out the
calls of a method as a list, also of one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from evaluand.interop.trulens.lens import Lens
from evaluand.trace import record as native


@dataclass
class Cost:
    """What was asked and used; `n_tokens` is the sum of both kinds if not given."""

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
    cost: float = 0.0
    cost_currency: str = "USD"

    def __post_init__(self) -> None:
        self.n_tokens = self.n_tokens or self.n_prompt_tokens + self.n_completion_tokens

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Self:
        """The cost that a native record tells."""
        known = {name: told[name] for name in (each.name for each in fields(cls)) if name in told}
        currency = {"cost_currency": told["currency"]} if told.get("currency") else {}
        return cls(**known, **currency, n_completion_requests=told.get("n_requests", 0))

    def __add__(self, other: Cost) -> Cost:
        """The sum of two costs in one currency."""
        summed = {
            each.name: getattr(self, each.name) + getattr(other, each.name)
            for each in fields(self)
            if each.name != "cost_currency"
        }
        return Cost(**summed, cost_currency=self.cost_currency)


@dataclass
class Perf:
    """From when to when; None where that is not known."""

    start_time: datetime | None = None
    end_time: datetime | None = None

    @classmethod
    def of(cls, told: Mapping[str, Any] | None) -> Self | None:
        """The times that a native record tells; a call that is still open has lasted no time yet.

        None where its beginning is not known.
        """
        if told is None or told["start_time"] is None:
            return None
        start = datetime.fromisoformat(told["start_time"])
        return cls(start, datetime.fromisoformat(told["end_time"] or told["start_time"]))

    @classmethod
    def now(cls, latency: timedelta = timedelta()) -> Self:
        """From now, for so long."""
        here = datetime.now(UTC)
        return cls(here, here + latency)

    @property
    def latency(self) -> timedelta | None:
        """How long it took."""
        return None if self.start_time is None or self.end_time is None else self.end_time - self.start_time


@dataclass(frozen=True)
class Method:
    """The method of a call."""

    name: str


@dataclass(frozen=True)
class RecordAppCallMethod:
    """A method within which a call was made.

    Attributes:
        path: of the component, as of `app`.
        method: which of its methods.
    """

    path: Lens
    method: Method


@dataclass
class RecordAppCall:
    """One call of a record; `stack` has the methods from the outermost to its own."""

    call_id: str
    stack: list[RecordAppCallMethod]
    args: Any
    rets: Any = None
    error: str | None = None
    perf: Perf | None = None
    pid: int | None = None
    tid: int | None = None

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Self:
        """A call as a native record tells it."""
        stack = [RecordAppCallMethod(_lens(step["path"]), Method(step["method"])) for step in told["stack"]]
        error = told["error"] and str(told["error"].get("message") or told["error"].get("type"))
        beside = {name: told[name] for name in ("call_id", "args", "rets", "pid", "tid")}
        return cls(**beside, stack=stack, error=error, perf=Perf.of(told["perf"]))

    def top(self) -> RecordAppCallMethod:
        """The method that was called."""
        return self.stack[-1]

    def method(self) -> Method:
        """The method that was called, without its path."""
        return self.top().method


class Layout(dict[str, Any]):
    """A record as data whose keys are attributes too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


@dataclass
class Record:
    """One call of an app, with all calls within it in the order in which they ended; the last is the whole.

    Attributes:
        meta: anything known of it beside, JSON-like.
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
        self._judged: Any = None

    @classmethod
    def of(cls, told: native.Record, judged: Any = None) -> Self:
        """The record of a native one.

        Args:
            told: the record.
            judged: gives the results of feedbacks, by feedback, where the record was recorded with some.
        """
        names = ("app_id", "record_id", "tags", "meta", "main_input", "main_output", "main_error")
        made = cls(
            **{name: told[name] for name in names},
            cost=Cost.of(told["cost"]),
            perf=Perf.of(told["perf"]),
            calls=[RecordAppCall.of(call) for call in told["calls"]],
        )
        if told["ts"] is not None:
            made.ts = datetime.fromisoformat(told["ts"])
        made._native, made._judged = told, judged
        return made

    def layout_calls_as_app(self) -> Layout:
        """All of it as data, with the calls where they belong in the app, under `app`."""
        if self._native is not None:
            return Layout(self._native)
        told = self.model_dump()
        named = ((_name(call.top()), plain) for call, plain in zip(self.calls, told["calls"], strict=True))
        return Layout(told | {"app": native.layout(named)})

    def get(self, path: Lens) -> Any:
        """The one value at a path of the record."""
        return path.get_sole_item(self.layout_calls_as_app())

    def wait_for_feedback_results(self, feedback_timeout: float | None = None) -> dict[Any, Any]:
        """What the app's feedbacks say of it, by feedback; computed where that is not done yet.

        Args:
            feedback_timeout: is not needed: how long feedbacks may take is said by the app's `policy`.
        """
        return {} if self._judged is None else dict(self._judged())

    def judged_as(self, other: Record) -> None:
        """Has the results of feedbacks of another record."""
        self._judged = other._judged

    @property
    def feedback_results(self) -> list[Any]:
        """The results alone."""
        return list(self.wait_for_feedback_results().values())

    def model_dump(self) -> dict[str, Any]:
        """All of it as plain data."""
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
        """All of it as JSON."""
        return json.dumps(self.model_dump(), default=str)


def _lens(path: str) -> Lens:
    lens: Lens = Lens.of_string(f"app.{path}" if path else "app")
    return lens


def _name(method: RecordAppCallMethod) -> str:
    """The name of a call as native records have it."""
    return f"{method.path}.{method.method.name}".removeprefix("app").removeprefix(".")
