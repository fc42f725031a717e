"""A feedback function, as an experiment's file defines it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from evaluand.core.errors import nearest
from evaluand.evaluation.feedback.calls import call_reader
from evaluand.evaluation.feedback.feedback import Feedback
from evaluand.evaluation.feedback.references import AGGREGATES, aggregate_called
from evaluand.evaluation.scorer import CallReader, WrappedScorer, wrong_parameter

_OPTIONS: Final = ("name", "higher_is_better", "combinations", "if_missing", "if_exists", "on_error", "version")
SHORTHANDS: Final = ("default", "input", "output", "input_output")


@dataclass(frozen=True, kw_only=True)
class FeedbackKind(WrappedScorer):
    """Judges what happened within a call: a function of parts of its record, the app and the example.

    Where a selector finds several values, the function is called with each combination of them. All calls are stored
    in the column `calls`, without long arguments, which `Evaluation.calls` selects again.

    Attributes:
        implementation: the function, `file.py:name`; it returns a number, or a number and a dictionary with a reason.
        on: what its arguments are bound to: `default` (the only required argument to the output, or the two required
            ones to input and output), `input`, `output` or `input_output`; a list of selectors, in the order of the
            arguments; or a selector for each argument by name. Selectors begin with `__record__`, `__app__` or
            `__example__`, such as `__record__.app.retriever.search.rets[:]`.
        name: shown in tables of recordings; default: the function's name.
        higher_is_better: whether higher values are better; default: the function's attribute of this name.
        aggregate: makes one number of the calls' results: mean, min, max, median, sum and others of the standard
            library and of NumPy, or a function, `file.py:name`.
        combinations: `product`, or `zip`: the first of each, then the second of each.
        if_missing: where a selector finds nothing: `error`, `warn` or `ignore`; the last two skip the row.
        if_exists: a selector; rows in which it finds nothing are skipped.
        on_error: where a call fails, the row fails (`fail`), or the call is left out (`leave_out`).
        version: names what the code cannot show, such as the model that it asks; the code counts beside it.

    Raises:
        SpecError: the function lacks an argument that is bound, or needs one that is not, or an attribute is wrong.

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
        super().__post_init__()
        self.scorer.check()
        for name in ("name", "higher_is_better"):  # as recordings and leaderboards read them
            object.__setattr__(self, name, getattr(self.scorer, name))

    @cached_property
    def scorer(self) -> Feedback:
        """The feedback itself."""
        options = {name: getattr(self, name) for name in _OPTIONS}
        unbound = Feedback(self.implementation, aggregate=self._aggregate, **options)
        if isinstance(self.on, dict):
            return unbound.on(**self.on)
        if not isinstance(self.on, str):
            return unbound.on(*self.on)
        if self.on not in SHORTHANDS:
            hint = nearest(self.on, SHORTHANDS)
            raise wrong_parameter(self, "on", f"give one of {', '.join(SHORTHANDS)}{hint}, or selectors")
        return getattr(unbound, f"on_{self.on}")()  # type: ignore[no-any-return]

    @property
    def _aggregate(self) -> Any:
        if callable(self.aggregate):
            return self.aggregate
        if self.aggregate not in AGGREGATES:
            raise wrong_parameter(self, "aggregate", f"give one of {', '.join(AGGREGATES)}, or file.py:name")
        return aggregate_called(self.aggregate)

    @classmethod
    def call_reader(cls, spec: Mapping[str, Any]) -> CallReader | None:
        return call_reader(spec)

    def to_json(self, *, check: bool = True) -> dict[str, Any]:
        """The definition of the feedback itself, as JSON-like data; see `Feedback.to_json`."""
        return self.scorer.to_json(check=check)
