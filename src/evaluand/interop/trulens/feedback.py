"""`Feedback` and its results, over `evaluand.evaluation.feedback`, with the names and argument order of TruLens.

Differences from TruLens: a wrong, missing or surplus argument is an error when it is bound, or at the latest when the
feedback runs; selectors without a name are bound in order; an empty selection is skipped with a reason, where TruLens
returns NaN; if a call fails, the results of the others are still reported; and an aggregate is stored with the
definition.
"""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, ClassVar, Self

from evaluand.core import identity
from evaluand.core.errors import Skipped, SpecError, alternatives, described, warn
from evaluand.core.selector import Selector
from evaluand.evaluation.feedback.calls import to_number
from evaluand.evaluation.feedback.feedback import Feedback as Native
from evaluand.evaluation.feedback.results import Aggregator, Result, mean
from evaluand.evaluation.feedback.selection import Missing
from evaluand.evaluation.feedback.selector_checks import APP, RECORD
from evaluand.interop.trulens.lens import Lens
from evaluand.interop.trulens.records import Cost
from evaluand.models.usage import Spending, spending

InvalidSelector = Missing


class FeedbackMode(enum.StrEnum):
    """When an app's feedback functions are evaluated."""

    NONE = "none"
    WITH_APP = "with_app"
    WITH_APP_THREAD = "with_app_thread"
    DEFERRED = "deferred"


class FeedbackResultStatus(enum.StrEnum):
    """The outcome of one evaluation."""

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
    """What to do if a selector matches nothing."""

    ERROR = "error"
    WARN = "warn"
    IGNORE = "ignore"


class SkipEval(Skipped):
    """Raised by an implementation to skip a call."""

    def __init__(self, reason: str | None = None, feedback: Any = None, ins: Mapping[str, Any] | None = None) -> None:
        super().__init__(reason or "left out")
        self.reason, self.feedback, self.ins = reason, feedback, ins


@dataclass
class FeedbackCall:
    """One call of an implementation; `ret` is None if it failed with `error`."""

    args: Mapping[str, Any] = field(default_factory=dict)
    ret: Any = 0.0
    meta: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None

    @classmethod
    def from_native(cls, call: Mapping[str, Any], extra_args: Mapping[str, Any]) -> Self:
        """Convert a call of a native feedback; several numbers become their mean."""
        ret = call["ret"]
        if isinstance(ret, dict):
            ret = math.fsum(ret.values()) / len(ret)
        return cls({**call["args"], **extra_args}, ret, call["meta"], call["error"])


class FeedbackResult:
    """The result of a feedback for one record.

    Attributes:
        status: done, failed or skipped.
        name: the feedback's name.
        result: the aggregate; NaN if it is undefined, or if there are several, which are in `multi_result`.
        error: why it failed.
        reason: why it was skipped.
        record_id: the record's id, or "no record".
        last_ts: when the result was created.
    """

    def __init__(
        self, feedback: Feedback, result: Result, record_id: str, extra_args: Mapping[str, Any], spent: Spending
    ) -> None:
        self._feedback, self._result, self._extra_args, self._spent = feedback, result, extra_args, spent
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
        """Each call of the implementation; its arguments include the other keyword arguments of `run`."""
        return [FeedbackCall.from_native(call, self._extra_args) for call in self._result.calls]

    @property
    def multi_result(self) -> str | None:
        """The numbers of an implementation that returns a dictionary, by key, as JSON."""
        if self.status is not FeedbackResultStatus.DONE:
            return None
        return json.dumps(self._result.value if isinstance(self._result.value, dict) else None)

    @property
    def feedback_definition_id(self) -> str:
        return self._feedback.feedback_definition_id

    @property
    def feedback_result_id(self) -> str:
        """A hash of the feedback's id, the record's id and the result."""
        parts = [self.feedback_definition_id, self.record_id, self.status.value, str(self.result), self.multi_result]
        return f"feedback_result_hash_{identity.digest(parts).hex()}"

    @property
    def cost(self) -> Cost:
        """What the providers' calls cost; the price is None if it is unknown or in several currencies."""
        spent = self._spent
        usage = spent.usage or {}
        return Cost(
            n_requests=spent.n_requests,
            n_successful_requests=spent.n_requests - spent.n_failed,
            n_tokens=spent.input_tokens + spent.output_tokens,
            n_prompt_tokens=spent.input_tokens,
            n_completion_tokens=spent.output_tokens,
            cost=usage.get("cost") if spent.n_requests else 0.0,
            cost_currency=usage.get("currency") or "USD",
        )

    def model_dump(self) -> dict[str, Any]:
        """All fields as JSON-like data."""
        names = ("feedback_result_id", "record_id", "feedback_definition_id", "name", "result", "error", "multi_result")
        return {
            **{name: getattr(self, name) for name in names},
            "last_ts": self.last_ts.isoformat(),
            "status": self.status.value,
            "cost": asdict(self.cost),
            "calls": [asdict(call) for call in self.calls],
        }

    def __repr__(self) -> str:
        shown = self.reason or self.error or self.multi_result if self.result is None else self.result
        return f"{self.name} ({self.status.value}) = {shown}"


class Feedback(Native):
    """A native feedback function with the constructor and methods of TruLens.

    Args:
        imp: the implementation.
        agg: combines the numbers that the calls returned; default: their mean.
        name: shown in tables; default: the implementation's name.
        higher_is_better: whether higher is better; default: the implementation's attribute of this name, else True.
        if_missing: what to do if a selector matches nothing.
        if_exists: skip rows where this lens matches nothing.
        selectors: argument → lens, or its text.
        combinations: how the values of several arguments are combined.
        on_error: what to do if a call fails; see `evaluand.evaluation.feedback`.
        options: those of a method of a model provider: `criteria`, `additional_instructions`, `examples`,
            `min_score_val`, `max_score_val`, `output_space`, `temperature`, `groundedness_configs`.

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
        **options: Any,
    ) -> None:
        imp = _with_options(imp, options) if options else imp
        self._initialise(
            imp,  # type: ignore[arg-type] # None is refused there
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
                name: Lens.of_string(lens) if isinstance(lens, str) else lens for name, lens in selectors.items()
            }
            self._set(bound=self.on(**lenses).bound)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
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
        """A hash of the complete definition; two selections of one function are two definitions."""
        return f"feedback_definition_hash_{identity.digest([self.name, self.identify().spec]).hex()}"

    def run(
        self,
        app: Any = None,
        record: Any = None,
        source_data: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> FeedbackResult:
        """Evaluate a record.

        Args:
            app: an `AppDefinition`, or JSON-like data.
            record: a `Record`, or JSON-like data.
            source_data: other roots of selectors → their data.
            kwargs: values of arguments, in place of selected ones; names that the implementation does not accept are
                only copied to the calls of the result.

        Raises:
            InvalidSelector: a selector matches nothing, and `if_missing` is error.
            SpecError: an argument is not bound.
        """
        source = _selection_source(app, record, source_data)
        values = {name: kwargs.pop(name) for name in [*kwargs] if self.accepts.open or name in self.accepts.names}
        with spending() as spent:
            result = self.evaluate(source, **values)
        if isinstance(result.error, Missing) and not result.calls:
            raise result.error
        evaluated = source.get(RECORD) if record is None else record
        return FeedbackResult(self, result, _record_id(evaluated), kwargs, spent)

    def extract_selection(
        self,
        app: Any = None,
        record: Any = None,
        source_data: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Iterator[dict[str, Any]]:
        """The arguments of each call that `run` would make.

        Raises:
            InvalidSelector: a selector matches nothing.
        """
        source = _selection_source(app, record, source_data)
        try:
            return self.selections(source, **kwargs)
        except Missing:
            # Each path may exist although none of the elements of a list has the name; TruLens then makes no call.
            if all(selector.exists(source) for selector in self.bound.values()):
                return iter(())
            raise

    def check_selectors(
        self, app: Any = None, record: Any = None, source_data: Mapping[str, Any] | None = None, warning: bool = False
    ) -> bool:
        """Whether every selector matches something; the other arguments are those of `run`.

        Args:
            warning: warn instead of raising an error if one does not.

        Raises:
            InvalidSelector: a selector matches nothing.
        """
        source = _selection_source(app, record, source_data)
        try:
            self.selections(source)
        except Missing as error:
            if not warning:
                raise
            warn(f"feedback {self.name!r}: {error}")
            return False
        return True

    def model_dump(self) -> dict[str, Any]:
        """The definition as JSON-like data; the same as `to_json`."""
        return self.to_json()

    @classmethod
    def model_validate(cls, data: Mapping[str, Any], *, modules: Collection[str] = ()) -> Self:
        """Read a stored definition; the same as `from_json`, with the modules that your code may be loaded from."""
        return cls.from_json(data, modules=modules)

    @property
    def _default_arguments(self) -> Sequence[str]:
        """All arguments, as TruLens binds those with defaults too; without the options of model providers."""
        is_judged = hasattr(self.implementation, "judged")
        return [name for name in self.accepts.names if not is_judged or name in self.accepts.required]

    def _to_selector(self, value: Any) -> Selector:
        if isinstance(value, Lens):
            return Selector.of(*value.selector().steps, objects=True)
        if isinstance(value, Selector):
            return value
        raise InvalidLens(
            f"{described(value)} is not a lens; pass one such as Select.RecordInput, or Lens.of_string(text)"
        )

    @classmethod
    def _read_selector(cls, text: Any) -> Selector:
        """A stored lens."""
        return Selector(super()._read_selector(text).text, objects=True)


def _with_options(imp: Any, options: Mapping[str, Any]) -> Any:
    """The method of a provider that has the options."""
    if not hasattr(imp, "judged"):
        raise SpecError(f"{', '.join(options)}: only methods of model providers have these; {described(imp)} is none")
    for name in options:
        if name not in imp.judged.options:
            known = alternatives(name, imp.judged.options)
            raise SpecError(f"{imp.__name__} has no option {name!r}{known}")
    provider = imp.__self__
    return getattr(replace(provider, options={**(provider.options or {}), **options}), imp.__name__)


class InvalidLens(SpecError, ValueError):
    """A selector is neither a lens nor a native selector."""


_STATUSES = {
    "scored": FeedbackResultStatus.DONE,
    "failed": FeedbackResultStatus.FAILED,
    "skipped": FeedbackResultStatus.SKIPPED,
    "abstained": FeedbackResultStatus.SKIPPED,
}


def _record_id(record: Any) -> str:
    record_id = record.get("record_id") if isinstance(record, Mapping) else getattr(record, "record_id", None)
    return str(record_id or "no record")


def _selection_source(app: Any, record: Any, source_data: Mapping[str, Any] | None) -> dict[str, Any]:
    source = dict(source_data or {})
    if record is not None:
        layout = getattr(record, "layout_calls_as_app", None)
        source[RECORD] = layout() if callable(layout) else record
    if app is not None:
        structure = getattr(app, "json", None)  # a recorder's description of the app that it wraps
        source[APP] = structure if isinstance(structure, Mapping) else app
    return source
