"""`Feedback` and what it gives, over `evaluand.evaluation.feedback`: the names and the order of arguments are those of
TruLens.

What is another here: a wrong, missing or surplus argument is told when it is bound, or at the latest when the feedback
is run; selectors without a name are bound in order; a selection without values is skipped and has a reason, where
TruLens tells NaN of it; a call that fails leaves the others told; and an aggregate is stored with the definition.
"""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, ClassVar, Self

from evaluand.core import identity
from evaluand.core.errors import Skipped, SpecError, warn
from evaluand.core.selector import Selector
from evaluand.evaluation.feedback.calls import to_number
from evaluand.evaluation.feedback.feedback import Aggregator
from evaluand.evaluation.feedback.feedback import Feedback as Native
from evaluand.evaluation.feedback.results import Missing, Result, mean
from evaluand.evaluation.feedback.selector_checks import APP, RECORD
from evaluand.evaluation.provider import Spending, spending
from evaluand.evaluation.scorer import described
from evaluand.interop.trulens.lens import Lens
from evaluand.interop.trulens.records import Cost

InvalidSelector = Missing


class FeedbackMode(enum.StrEnum):
    """When an app's feedback functions are evaluated."""

    NONE = "none"
    WITH_APP = "with_app"
    WITH_APP_THREAD = "with_app_thread"
    DEFERRED = "deferred"


class FeedbackResultStatus(enum.StrEnum):
    """What became of one evaluation."""

    NONE = "none"
    RUNNING = "running"
    FAILED = "failed"
    DONE = "done"
    SKIPPED = "skipped"


class FeedbackCombinations(enum.StrEnum):
    """How the values of several arguments are combined."""

    ZIP = "zip"
    PRODUCT = "product"


class FeedbackOnMissingParameters(enum.StrEnum):
    """What is done where a selector leads to nothing."""

    ERROR = "error"
    WARN = "warn"
    IGNORE = "ignore"


class SkipEval(Skipped):
    """Raised by an implementation for a call that is to be left out."""

    def __init__(self, reason: str | None = None, feedback: Any = None, ins: Mapping[str, Any] | None = None) -> None:
        super().__init__(reason or "left out")
        self.reason, self.feedback, self.ins = reason, feedback, ins


@dataclass
class FeedbackCall:
    """One call of an implementation; `ret` is None where it failed with `error`."""

    args: Mapping[str, Any] = field(default_factory=dict)
    ret: Any = 0.0
    meta: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None

    @classmethod
    def of(cls, call: Mapping[str, Any], beside: Mapping[str, Any]) -> Self:
        """A call as a native feedback tells it; of several numbers, their mean."""
        ret = call["ret"]
        if isinstance(ret, dict):
            ret = math.fsum(ret.values()) / len(ret)
        return cls({**call["args"], **beside}, ret, call["meta"], call["error"])


class FeedbackResult:
    """What a feedback said of one record.

    Attributes:
        status: done, failed or skipped.
        name: of the feedback.
        result: the aggregate; NaN where there are several, which `multi_result` has, or where it is undefined.
        error: why it failed.
        reason: why it was skipped.
        record_id: of the record, where there is one.
        last_ts: when it was made.
    """

    def __init__(
        self, feedback: Feedback, result: Result, record_id: str, beside: Mapping[str, Any], spent: Spending
    ) -> None:
        self._feedback, self._result, self._beside, self._spent = feedback, result, beside, spent
        self.status = _STATUSES[result.status]
        self.name = feedback.name
        several = isinstance(result.value, dict)
        number = to_number(result.value)
        self.result: Any = math.nan if several else result.value if number is None else number
        self.error = result.reason if result.status == "failed" else None
        self.reason = None if result.status == "failed" else result.reason
        self.record_id = record_id
        self.last_ts = datetime.now(UTC)

    @property
    def calls(self) -> list[FeedbackCall]:
        """Each call of the implementation, with what `run` was given beside its arguments."""
        return [FeedbackCall.of(call, self._beside) for call in self._result.calls]

    @property
    def multi_result(self) -> str | None:
        """The numbers of an implementation that tells several, by their keys, as JSON."""
        if self.status is not FeedbackResultStatus.DONE:
            return None
        return json.dumps(self._result.value if isinstance(self._result.value, dict) else None)

    @property
    def feedback_definition_id(self) -> str:
        """The id of the feedback."""
        return self._feedback.feedback_definition_id

    @property
    def feedback_result_id(self) -> str:
        """Stands for the feedback, the record and what came out."""
        told = [self.feedback_definition_id, self.record_id, self.status.value, str(self.result), self.multi_result]
        return f"feedback_result_hash_{identity.digest(told).hex()}"

    @property
    def cost(self) -> Cost:
        """What the providers that were asked have cost."""
        spent = self._spent
        usage = spent.usage or {}
        return Cost(
            n_requests=spent.n_requests,
            n_successful_requests=spent.n_requests - spent.n_failed,
            n_tokens=spent.input_tokens + spent.output_tokens,
            n_prompt_tokens=spent.input_tokens,
            n_completion_tokens=spent.output_tokens,
            cost=usage.get("cost") or 0.0,
            cost_currency=usage.get("currency") or "USD",
        )

    def model_dump(self) -> dict[str, Any]:
        """All of it as JSON-like data."""
        names = ("feedback_result_id", "record_id", "feedback_definition_id", "name", "result", "error", "multi_result")
        return {
            **{name: getattr(self, name) for name in names},
            "last_ts": self.last_ts.isoformat(),
            "status": self.status.value,
            "cost": asdict(self.cost),
            "calls": [asdict(call) for call in self.calls],
        }

    def __repr__(self) -> str:
        told = self.reason or self.error or self.multi_result if self.result is None else self.result
        return f"{self.name} ({self.status.value}) = {told}"


class Feedback(Native):
    """A feedback function: a native one, made and run with the names of TruLens.

    Args:
        imp: the implementation.
        agg: makes one number of what the calls said; the mean if not given.
        name: shown in tables; the implementation's name if not given.
        higher_is_better: which way is good; what the implementation says of itself if not given, or else that it is.
        if_missing: what is done where a selector leads to nothing.
        if_exists: rows where this lens leads to nothing are skipped.
        selectors: lenses, or their texts, by argument.
        combinations: how the values of several arguments are combined.
        on_error: what is done where a call fails; see `evaluand.evaluation.feedback`.

    Example:
        >>> from evaluand.interop.trulens import Select
        >>> def same(a: str, b: str) -> float:
        ...     return float(a == b)
        >>> record = {"main_input": "a", "main_output": "a"}
        >>> result = Feedback(same).on_input_output().run(record=record)
        >>> result.status.value, result.result
        ('done', 1.0)
    """

    strict: ClassVar[bool] = True

    def __init__(
        self,
        imp: Callable[..., Any] | None = None,
        agg: Aggregator | None = None,
        *,
        name: str | None = None,
        higher_is_better: bool | None = None,
        if_missing: str | FeedbackOnMissingParameters = FeedbackOnMissingParameters.ERROR,
        if_exists: Lens | None = None,
        selectors: Mapping[str, Lens | str] | None = None,
        combinations: str | FeedbackCombinations = FeedbackCombinations.PRODUCT,
        on_error: str = "fail",
    ) -> None:
        self._initialise(
            imp,  # type: ignore[arg-type] # which it refuses
            name=name,
            higher_is_better=getattr(imp, "higher_is_better", True) if higher_is_better is None else higher_is_better,
            aggregator=agg or mean,
            combinations=combinations,
            if_missing=if_missing,
            if_exists=if_exists,
            on_error=on_error,
            declared=None,
        )
        if selectors:
            lenses: dict[str, Any] = {
                n: Lens.of_string(one) if isinstance(one, str) else one for n, one in selectors.items()
            }
            self._set(bound=self.on(**lenses).bound)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the implementation says of arguments."""
        return self.implementation(*args, **kwargs)

    @property
    def imp(self) -> Callable[..., Any]:
        """The implementation."""
        return self.implementation

    @property
    def agg(self) -> Aggregator:
        """The aggregate."""
        return self.aggregator

    @property
    def selectors(self) -> Mapping[str, Lens]:
        """The lenses by argument."""
        return {name: Lens.of_string(str(selector)) for name, selector in self.bound.items()}

    @cached_property
    def feedback_definition_id(self) -> str:
        """Stands for all of the definition: two selections of one function are two definitions."""
        return f"feedback_definition_hash_{identity.digest([self.name, self.identify().spec]).hex()}"

    def run(
        self,
        app: Any = None,
        record: Any = None,
        source_data: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> FeedbackResult:
        """What the feedback says of a record.

        Args:
            app: an `AppDefinition`, or JSON-like data.
            record: a `Record`, or JSON-like data.
            source_data: what selectors begin in, beside these two.
            kwargs: values of arguments, in place of what is selected; others are left alone.

        Raises:
            InvalidSelector: a selector leads to nothing, and `if_missing` is error.
            SpecError: an argument is not bound.
        """
        source = _source(app, record, source_data)
        given = {name: kwargs.pop(name) for name in [*kwargs] if self.accepts.open or name in self.accepts.names}
        with spending() as spent:
            result = self.evaluate(source, **given)
        if isinstance(result.error, Missing) and not result.calls:
            raise result.error
        about = source.get(RECORD) if record is None else record
        record_id = about.get("record_id") if isinstance(about, Mapping) else getattr(about, "record_id", None)
        return FeedbackResult(self, result, str(record_id or "no record"), kwargs, spent)

    def extract_selection(
        self,
        app: Any = None,
        record: Any = None,
        source_data: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Iterator[dict[str, Any]]:
        """The arguments of each call that `run` would make.

        Raises:
            InvalidSelector: a selector leads to nothing.
        """
        source = _source(app, record, source_data)
        try:
            return self.selections(source, **kwargs)
        except Missing:
            if all(
                selector.exists(source) for selector in self.bound.values()
            ):  # and no element of a list has the name
                return iter(())
            raise

    def check_selectors(
        self, app: Any = None, record: Any = None, source_data: Mapping[str, Any] | None = None, warning: bool = False
    ) -> bool:
        """Whether all selectors lead somewhere.

        Args:
            app: as for `run`.
            record: as for `run`.
            source_data: as for `run`.
            warning: whether to warn, and not to raise, where one does not.

        Raises:
            InvalidSelector: one leads nowhere.
        """
        source = _source(app, record, source_data)
        try:
            self.selections(source)
        except Missing as error:
            if not warning:
                raise
            warn(f"feedback {self.name!r}: {error}")
            return False
        return True

    def model_dump(self) -> dict[str, Any]:
        """The definition as JSON-like data; `to_json`."""
        return self.to_json()

    @classmethod
    def model_validate(cls, data: Mapping[str, Any], *, modules: Collection[str] = ()) -> Self:
        """The feedback that was stored; `from_json`, to which modules of one's own are named."""
        return cls.from_json(data, modules=modules)

    @property
    def _default_arguments(self) -> Sequence[str]:
        """TruLens binds arguments with defaults too."""
        return self.accepts.names

    def _to_selector(self, given: Any) -> Selector:
        if isinstance(given, Lens):
            return Selector.of(*given.selector().steps, objects=True)
        if isinstance(given, Selector):
            return given
        raise NoLens(f"{described(given)} is no lens; write Select.RecordInput and the like, or Lens.of_string(text)")


class NoLens(SpecError, ValueError):
    """What was given as a selector is none."""


_STATUSES = {
    "scored": FeedbackResultStatus.DONE,
    "failed": FeedbackResultStatus.FAILED,
    "skipped": FeedbackResultStatus.SKIPPED,
    "abstained": FeedbackResultStatus.SKIPPED,
}


def _source(app: Any, record: Any, source_data: Mapping[str, Any] | None) -> dict[str, Any]:
    source = dict(source_data or {})
    if record is not None:
        laid_out = getattr(record, "layout_calls_as_app", None)
        source[RECORD] = laid_out() if callable(laid_out) else record
    if app is not None:
        told = getattr(app, "json", None)  # of an app that is wrapped, what it is made of
        source[APP] = told if isinstance(told, Mapping) else app
    return source
