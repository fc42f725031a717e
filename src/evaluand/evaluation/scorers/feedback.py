"""A feedback function, as an experiment's file defines it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from evaluand.core.fingerprint import Identity
from evaluand.evaluation.feedback import Feedback
from evaluand.evaluation.feedback.references import AGGREGATES, aggregate_called
from evaluand.evaluation.scorer import Scorer, require_choice, wrong_parameter

SHORTHANDS: Final = ("default", "input", "output", "input_output")


@dataclass(frozen=True, kw_only=True)
class FeedbackKind(Scorer):
    """Judges what happened within a call: a function of parts of its record, the app and the example.

    Where a selector leads to several values, the function is called with each combination of them. All calls are kept
    in the column `calls`, without long arguments: `Evaluation.calls` tells these too.

    Attributes:
        implementation: the function, `file.py:name`; it returns a number, or a number and a dictionary with a reason.
        on: what its arguments are: `default` (of those that are needed, the output, or input and output), `input`,
            `output` or `input_output`; a list of selectors, in the order of the arguments; or a selector for each
            argument by name. Selectors begin with `__record__`, `__app__` or `__example__`, such as
            `__record__.app.retriever.search.rets[:]`.
        name: shown in tables of recordings; the function's name if not given.
        higher_is_better: which way is good; what the function says of itself if not given.
        aggregate: makes one number of what the calls said: mean, min, max, median, sum and others of the standard
            library and of NumPy, or a function, `file.py:name`.
        combinations: `product`, or `zip`: the first of each, then the second of each.
        if_missing: what is done where a selector leads to nothing: `error`, `warn` or `ignore`; the last two skip rows.
        if_exists: a selector; rows where it leads to nothing are skipped.
        on_error: where a call fails, the row does (`fail`), or the call is left out (`leave_out`).
        version: pins the function instead of its fingerprint.

    Raises:
        SpecError: the function lacks an argument that is bound, or needs one that is not, or one of these cannot work.

    Example:
        >>> def share(contexts: list[str]) -> float:
        ...     return sum("Austen" in context for context in contexts) / len(contexts)
        >>> scorer = FeedbackKind(implementation=share, on=["__record__.app.search.rets[:].collect()"])
        >>> scorer.score({"__record__": {"app": {"search": [{"rets": ["Jane Austen", "Emma"]}]}}}).value
        0.5
    """

    kind = "feedback"

    implementation: Any
    on: str | list[str] | dict[str, str] = "default"
    name: str | None = None
    higher_is_better: bool | None = None
    aggregate: Any = "mean"
    combinations: str = "product"
    if_missing: str = "error"
    if_exists: str | None = None
    on_error: str = "fail"
    version: str | None = None  # type: ignore[misc, assignment] # of the function, not of the kind

    def __post_init__(self) -> None:
        self.feedback.check()
        for name in ("name", "higher_is_better"):  # as recordings and leaderboards read them
            object.__setattr__(self, name, getattr(self.feedback, name))

    @cached_property
    def feedback(self) -> Feedback:
        """The feedback itself."""
        made = Feedback(
            self.implementation,
            name=self.name,
            higher_is_better=self.higher_is_better,
            aggregate=self._aggregate,
            combinations=self.combinations,
            if_missing=self.if_missing,
            if_exists=self.if_exists,
            on_error=self.on_error,
            version=self.version,
        )
        if isinstance(self.on, dict):
            return made.on(**self.on)
        if not isinstance(self.on, str):
            return made.on(*self.on)
        require_choice(self, "on", SHORTHANDS)
        return getattr(made, f"on_{self.on}")()  # type: ignore[no-any-return]

    @property
    def _aggregate(self) -> Any:
        if callable(self.aggregate):
            return self.aggregate
        if self.aggregate not in AGGREGATES:
            raise wrong_parameter(self, "aggregate", f"give one of {', '.join(AGGREGATES)}, or file.py:name")
        return aggregate_called(self.aggregate)

    @property
    def arguments(self) -> tuple[str, ...]:
        return self.feedback.arguments

    @property
    def columns(self) -> Mapping[str, str]:
        return self.feedback.columns

    @property
    def ranges(self) -> Mapping[str, tuple[float, float]]:  # type: ignore[override]
        return self.feedback.ranges

    @property
    def is_async(self) -> bool:
        return self.feedback.is_async

    @property
    def sees_times(self) -> bool:
        return self.feedback.sees_times

    def check_example(self, example: Mapping[str, Any]) -> None:
        self.feedback.check_example(example)

    def check_app(self, app: Mapping[str, Any]) -> None:
        self.feedback.check_app(app)

    def to_json(self) -> dict[str, Any]:
        """The definition of the feedback itself, as JSON-like data."""
        return self.feedback.to_json()

    def identify(self) -> Identity:
        return self.feedback.identify()

    def score(self, source: Mapping[str, Any]) -> Any:  # type: ignore[override]
        """Grades one source."""
        return self.feedback.score(source)
