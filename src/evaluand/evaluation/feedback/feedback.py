"""`Feedback`: a plain function, bound by selectors to parts of what happened in a call.

A feedback is a scorer that sees the complete *source* of a row: the record of the call with every call made within it,
the app, and the example. Its selectors say which parts are the arguments of its implementation:

    relevance = (
        Feedback(local.context_relevance, name="context relevance")
        .on_input("question")
        .on(context="__record__.app.retriever.search.rets[:]")
        .aggregate(min)
    )

Where a selector leads to several values, the implementation is called once for each combination of them, and an
aggregate makes one number of the results. Every call is stored.

Design:

- A definition is a value: each `on…` returns a new one, and a wrong binding is reported when it is bound. Arguments
  are in the order of the signature however they were bound, so one definition has one identity.
- Nothing missing is ignored silently. A missing part fails or skips the row, as `if_missing` says; a selection without
  values skips it; and one that meets something that was not stored, such as a very large text, fails it. All have a
  reason.
- A call that fails does not lose the results of the others: the row fails with all its calls, or the call is left out,
  as `on_error` says.
"""

import inspect
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, Final, NamedTuple, Self

from evaluand.core import identity
from evaluand.core.errors import NotStored, SpecError, described, nearest, warn
from evaluand.core.fingerprint import Identity, code_identity
from evaluand.core.selector import Selector
from evaluand.evaluation.feedback.arguments import Arguments
from evaluand.evaluation.feedback.calls import Calls, to_number
from evaluand.evaluation.feedback.references import keeps_range, reference_of, referred, restored
from evaluand.evaluation.feedback.results import Aggregator, Result, make_result, mean, to_score
from evaluand.evaluation.feedback.selection import (
    Missing,
    combine,
    is_found,
    leftover_note,
    select,
    select_all,
    too_many_calls,
)
from evaluand.evaluation.feedback.selector_checks import EXAMPLE, RECORD, find_problem, may_see_times
from evaluand.evaluation.provider import Provider
from evaluand.evaluation.scorer import Score, Scorer, is_async

COMBINATIONS: Final = ("product", "zip")
IF_MISSING: Final = ("error", "warn", "ignore")
ON_ERROR: Final = ("fail", "leave_out")


class _Plan(NamedTuple):
    """The calls to make: their arguments, what makes one and what keeps them, and a note about them."""

    combinations: Iterator[dict[str, Any]]
    call: Callable[[dict[str, Any]], Any]
    calls: Calls
    note: str | None


@dataclass(frozen=True, init=False, repr=False)
class Feedback(Scorer):
    """A feedback function: an implementation, and selectors for its arguments.

    Args:
        implementation: a function, method or callable object, plain or async. Returns a number, a bool, a list of
            numbers or a dictionary of numbers; or a tuple of one of these and a dictionary of metadata, such as a
            `reason`. Without a value it returns None and metadata with the reason. It may raise `Skipped` to leave a
            call out.
        name: shown in tables; default: the implementation's name.
        higher_is_better: whether higher values are better, for reports; default: the implementation's attribute of
            this name, else None (unknown).
        range: the lowest and the highest number that the implementation can return; default: the function's attribute
            `range`, as methods of providers have it, else None (unknown). If the aggregate stays within the range,
            intervals of means do too, and metrics refuse values outside it.
        aggregate: makes one number of a list with the number of each call; a call that returned a list counts with its
            mean. Default: the mean.
        combinations: `product` calls the implementation with every combination of the selected values, `zip` with the
            first of each, then the second of each, and so on to the end of the shortest.
        if_missing: where a selector finds nothing, the row fails (`error`), is skipped with a warning (`warn`), or is
            skipped (`ignore`).
        if_exists: a selector; rows in which it finds nothing are skipped.
        on_error: where a call fails, the row fails (`fail`), or the aggregate is made of the other calls
            (`leave_out`). The calls are stored in both cases.
        version: names what the code cannot show, such as the model that it asks; the code counts beside it.

    Raises:
        SpecError: an argument is wrong.

    Example:
        >>> def overlap(question: str, context: str) -> float:
        ...     asked = set(question.lower().split())
        ...     return len(asked & set(context.lower().split())) / len(asked)
        >>> relevance = Feedback(overlap).on_input().on("__record__.app.retriever.search[:].rets[:]").aggregate(max)
        >>> record = {
        ...     "main_input": "Who wrote Emma",
        ...     "app": {"retriever": {"search": [{"rets": ["Austen wrote Emma", "Emma Stone"]}]}},
        ... }
        >>> result = relevance.evaluate({"__record__": record})
        >>> round(result.value, 2), [round(call["ret"], 2) for call in result.calls]
        (0.67, [0.67, 0.33])
        >>> relevance.on(answer="__record__.main_output")
        Traceback (most recent call last):
        evaluand.SpecError: feedback 'overlap': overlap has no argument 'answer'; it has question, context
    """

    kind: ClassVar[str] = "feedback"
    strict: ClassVar[bool] = False
    """Whether a dictionary of numbers may only hold floats."""
    arguments = ("source",)
    columns: ClassVar = {"calls": "json"}

    implementation: Callable[..., Any]
    name: str
    higher_is_better: bool | None
    range: tuple[float, float] | None
    aggregator: Aggregator
    combinations: str
    if_missing: str
    if_exists: Selector | None
    on_error: str
    declared: str | None
    bound: Mapping[str, Selector] = field(hash=False)
    accepts: Arguments = field(compare=False)

    def __init__(
        self,
        implementation: Callable[..., Any],
        *,
        name: str | None = None,
        higher_is_better: bool | None = None,
        range: tuple[float, float] | None = None,
        aggregate: Aggregator = mean,
        combinations: str = "product",
        if_missing: str = "error",
        if_exists: str | Selector | None = None,
        on_error: str = "fail",
        version: str | None = None,
    ) -> None:
        self._initialise(
            implementation,
            name=name,
            higher_is_better=higher_is_better,
            range=range,
            aggregator=aggregate,
            combinations=combinations,
            if_missing=if_missing,
            if_exists=if_exists,
            on_error=on_error,
            declared=version,
        )

    def _initialise(
        self, implementation: Callable[..., Any], *, name: str | None, if_exists: Any, range: Any = None, **values: Any
    ) -> None:
        if not callable(implementation):
            raise SpecError(f"a feedback needs a function, not {described(implementation)}")
        accepts = Arguments.of(implementation)
        if not isinstance(name, str | None):
            raise SpecError(f"a feedback's name is {described(name)}; give a text")
        self._set(implementation=implementation, accepts=accepts, name=name or accepts.function, bound={}, **values)
        if self.higher_is_better is None:
            self._set(higher_is_better=getattr(implementation, "higher_is_better", None))
        if range is None and inspect.isroutine(implementation):  # of an object it may be anything
            range = getattr(implementation, "range", None)
        self._set(range=None if range is None else self._to_range(range))
        self._check_choices()
        with self._naming_faults("if_exists: "):
            self._set(if_exists=None if if_exists is None else self._to_selector(if_exists))

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _replace(self, **changes: Any) -> Self:
        new = object.__new__(type(self))
        new._set(**({f.name: getattr(self, f.name) for f in fields(self)} | changes))
        return new

    def __repr__(self) -> str:
        bound = ", ".join(f"{name}={str(selector)!r}" for name, selector in self.bound.items())
        return f"<{type(self).__name__} {self.name} on({bound})>"

    @property
    def selectors(self) -> Mapping[str, Any]:
        """The selectors by argument."""
        return dict(self.bound)

    # Definition

    def on(self, *selectors: str | Selector, **named: str | Selector) -> Self:
        """Binds arguments to selectors; a selector without a name is for the next argument that is not bound yet.

        Raises:
            SpecError: the implementation has no such argument, or none is left; or a text is not a selector.
        """
        bound = dict(self.bound)
        with self._naming_faults():
            for name, selector in named.items():
                self.accepts.require(name)
                bound[name] = self._to_selector(selector)
            for selector in selectors:
                bound[self.accepts.next_after(bound)] = self._to_selector(selector)
        return self._replace(bound=self.accepts.ordered(bound))

    def on_input(self, arg: str | None = None) -> Self:
        """Binds an argument, by default the next that is not bound, to the input of the outermost call."""
        return self._on_part("main_input", arg)

    def on_output(self, arg: str | None = None) -> Self:
        """Binds an argument, by default the next that is not bound, to the output of the outermost call."""
        return self._on_part("main_output", arg)

    on_prompt = on_input
    on_response = on_output

    def on_input_output(self) -> Self:
        """Binds the next two arguments to the input and the output of the outermost call."""
        return self.on_input().on_output()

    def on_default(self) -> Self:
        """Binds the only required argument to the output, or the two required arguments to input and output.

        Arguments with defaults keep these.

        Raises:
            SpecError: there are more than two, or any number of arguments; or none of the arguments is required.
        """
        accepts, needed = self.accepts, self._default_arguments
        if len(needed) > 2 or accepts.variadic or accepts.open:
            raise self._fault(f"{accepts.function} has more than two arguments; bind them with on(…)")
        if accepts.names and not needed:
            raise self._fault(f"{accepts.function} requires none of {accepts}; bind arguments with on(…)")
        parts = ((), ("main_output",), ("main_input", "main_output"))[len(needed)]
        new = self
        for name, part in zip(needed, parts, strict=True):
            new = new._on_part(part, name)
        return new

    def aggregate(self, func: Aggregator | None = None, combinations: str | None = None) -> Self:
        """Sets the aggregate, how values are combined, or both; a SpecError without either, or if one is wrong."""
        if func is None and combinations is None:
            raise self._fault("aggregate(…) needs a function or combinations")
        new = self._replace(
            aggregator=self.aggregator if func is None else func,
            combinations=self.combinations if combinations is None else combinations,
        )
        new._check_choices()
        return new

    @property
    def _default_arguments(self) -> Sequence[str]:
        """The arguments that `on_default` binds."""
        return [name for name in self.accepts.names if name in self.accepts.required]

    def _on_part(self, part: str, arg: str | None) -> Self:
        selector = Selector(f"{RECORD}.{part}")
        return self.on(selector) if arg is None else self.on(**{arg: selector})

    def _to_selector(self, value: Any) -> Selector:
        return value if isinstance(value, Selector) else self._read_selector(value)

    @classmethod
    def _read_selector(cls, text: Any) -> Selector:
        if not isinstance(text, str):
            raise SpecError(f"{described(text)} is not a selector; give a text such as {RECORD}.main_input")
        return Selector(text)

    def _to_range(self, value: Any) -> tuple[float, float]:
        try:
            low, high = (to_number(end) for end in value)
        except (TypeError, ValueError):
            low = high = None
        if low is None or high is None or not -math.inf < low < high < math.inf:
            raise self._fault(f"range is {value!r}; give the lowest and the highest number, such as (0, 1)")
        return low, high

    def _check_choices(self) -> None:
        if not isinstance(self.declared, str | None):
            raise self._fault(f"version is {described(self.declared)}; give a text, such as '1'")
        if not isinstance(self.higher_is_better, bool | None):
            raise self._fault(f"higher_is_better is {described(self.higher_is_better)}; give True, False or None")
        self._check_choice("combinations", COMBINATIONS)
        self._check_choice("if_missing", IF_MISSING)
        self._check_choice("on_error", ON_ERROR)
        if not callable(self.aggregator):
            raise self._fault(f"aggregate is {described(self.aggregator)}; give a function of a list of numbers")

    def _check_choice(self, name: str, choices: Sequence[str]) -> None:
        choice = getattr(self, name)
        choice = getattr(choice, "value", choice)  # a member of an enum of such words
        if choice not in choices:
            hint = nearest(choice, choices) if isinstance(choice, str) else ""
            raise self._fault(f"{name} is {described(choice)}{hint}; give one of {', '.join(choices)}")
        self._set(**{name: choice})

    def _fault(self, message: str, kind: type[SpecError] = SpecError) -> SpecError:
        return kind(f"feedback {self.name!r}: {message}")

    @contextmanager
    def _naming_faults(self, part: str = "") -> Iterator[None]:
        """A block whose SpecErrors name this feedback, and the part of it that is wrong."""
        try:
            yield
        except SpecError as error:
            raise self._fault(f"{part}{error}", type(error)) from None

    # Scorer

    @property
    def is_judge(self) -> bool:  # type: ignore[override] # a class variable of other scorers
        """Whether a provider that asks a model judges."""
        provider = getattr(self.implementation, "__self__", None)
        return isinstance(provider, Provider) and provider.is_judge

    @property
    def ranges(self) -> Mapping[str, tuple[float, float]]:  # type: ignore[override] # a class variable of other scorers
        return {"value": self.range} if self.range is not None and keeps_range(self.aggregator) else {}

    @cached_property
    def sees_times(self) -> bool:
        checked = [] if self.if_exists is None else [self.if_exists]
        return any(may_see_times(selector) for selector in (*self.bound.values(), *checked))

    @cached_property
    def is_async(self) -> bool:
        return is_async(self.implementation)

    def check(self, expected: Any = None, outputs: Sequence[Any] = ()) -> None:
        """Raises a SpecError unless every required argument of the implementation is bound."""
        _ = self._is_bound

    def check_example(self, example: Mapping[str, Any]) -> None:
        """Raises `Missing` if a selector that reads the example finds nothing, and `if_missing` is `error`."""
        for name, selector in self.bound.items() if self.if_missing == "error" else ():
            if selector.steps[:1] == (EXAMPLE,):
                select(name, selector, {EXAMPLE: example})

    def check_app(self, app: Mapping[str, Any]) -> None:
        """Checks the selectors against the structure of an app.

        A selector of calls that the app does not instrument, of keys that calls do not have, or of arguments that a
        method does not have, costs an `EvaluandWarning` only, because such calls may be traced by hand. Where
        `if_missing` skips rows, and for `if_exists`, a part that this app does not have may exist in another.

        Args:
            app: its structure, as `App.json`.

        Raises:
            SpecError: an argument is not bound; or a selector reads something that no record or example has, or that
                the app itself does not have.

        Example:
            >>> app = {"app_id": "rag", "instrumented": {"": ["query"], "retriever": ["search"]}}
            >>> Feedback(len).on("__record__.app.retriever.search.rets").check_app(app)
            >>> Feedback(len).on("__app__.app_ids").check_app(app)
            Traceback (most recent call last):
            evaluand.SpecError: feedback 'len': obj: __app__.app_ids: __app__ has no 'app_ids' (did ...
        """
        self.check()
        for name, selector in self.bound.items():
            self._check_selector(name, selector, app, demanded=self.if_missing == "error")
        if self.if_exists is not None:
            self._check_selector("if_exists", self.if_exists, app, demanded=False)

    def _check_selector(self, name: str, selector: Selector, app: Mapping[str, Any], *, demanded: bool) -> None:
        problem = find_problem(selector, app)
        if problem is None:
            return
        message = f"{name}: {selector}: {problem.message}"
        if problem.certainty == "never" or (demanded and problem.certainty == "absent"):
            raise self._fault(message)
        if demanded or selector is self.if_exists:
            warn(f"feedback {self.name!r}: {message}")

    def identify(self) -> Identity:
        """The identity: implementation, aggregate, selectors and rules; a SpecError if an argument is not bound."""
        self.check()
        parts = {"implementation": self._identify_implementation()}
        if self.aggregator is not mean:
            parts["aggregate"] = code_identity("function", self.aggregator)
        spec = {
            "kind": self.kind,
            "selectors": {name: str(selector) for name, selector in self.bound.items()},
            "aggregate": "mean",
            "combinations": self.combinations,
            "if_missing": self.if_missing,
            "if_exists": None if self.if_exists is None else str(self.if_exists),
            "on_error": self.on_error,
        }
        return Identity(spec).joined(parts)

    def _identify_implementation(self) -> Identity:
        """The identity of the implementation; a provider identifies its own methods."""
        provider = getattr(self.implementation, "__self__", None)
        if isinstance(provider, Provider):
            return provider.identify(self.implementation.__name__).versioned(self.declared)
        return code_identity("function", self.implementation, version=self.declared)

    def score(self, source: Mapping[str, Any]) -> Any:  # type: ignore[override]
        """Grades one source; awaitable where the implementation is async."""
        if self.is_async:
            return self._score_async(source)
        return to_score(self.evaluate(source))

    async def _score_async(self, source: Mapping[str, Any]) -> Score:
        return to_score(await self.evaluate_async(source))

    # Stored form

    def to_json(self, *, check: bool = True) -> dict[str, Any]:
        """The definition as JSON-like data, in which code is named as `module:function`.

        Args:
            check: create providers again from the stored arguments, to make sure that they judge as before.

        Raises:
            SpecError: the implementation or the aggregate could not be imported again, or importing it would give
                another one; the message gives the reason.
        """
        return {
            "kind": self.kind,
            "name": self.name,
            "higher_is_better": self.higher_is_better,
            "range": None if self.range is None else list(self.range),
            "implementation": self._reference("implementation", self.implementation, check),
            "selectors": {name: str(selector) for name, selector in self.bound.items()},
            "aggregate": self._reference("aggregate", self.aggregator, check),
            "combinations": self.combinations,
            "if_missing": self.if_missing,
            "if_exists": None if self.if_exists is None else str(self.if_exists),
            "on_error": self.on_error,
            "version": self.declared,
            "identity": self._identity_digest,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], *, modules: Collection[str] = ()) -> Self:
        """The feedback of a stored definition; none of the code that it names is called before everything is checked.

        Args:
            data: what `to_json` returned.
            modules: names of modules and packages that code may be imported from, in addition to evaluand's own and to
                common aggregates, which are all that may be imported from the standard library. Whoever wrote the data
                can have any function of these modules called, and any of their providers created.

        Raises:
            SpecError: the data are not a feedback, or name code that does not exist or may not be imported; or the
                feedback judges otherwise than the one that was stored.
        """
        stored: Any = data  # may be anything
        if not isinstance(stored, Mapping) or {*stored} - {"kind", "identity"} != {*_STORED}:
            raise SpecError(f"this is not a stored feedback; one has the keys {', '.join(sorted(_STORED))}")
        if stored.get("kind", cls.kind) != cls.kind:
            raise SpecError(f"this is of the kind {stored['kind']!r}, not {cls.kind!r}")
        implementation = referred(stored["implementation"], modules)
        selectors, exists = stored["selectors"], stored["if_exists"]
        if not isinstance(selectors, Mapping):
            raise SpecError(f"the selectors of a feedback are {described(selectors)}; give a text for each argument")
        bound = {str(name): cls._read_selector(text) for name, text in selectors.items()}
        options = {
            "aggregator": referred(stored["aggregate"], modules).make(),
            "if_exists": None if exists is None else cls._read_selector(exists),
            "declared": stored["version"],
            **{name: stored[name] for name in _STORED_AS_GIVEN},
        }
        cls._create(implementation.likeness, bound, options)
        new = cls._create(implementation.make(), bound, options)
        if stored.get("identity") not in (None, new._identity_digest):
            raise SpecError(
                f"feedback {new.name!r} has changed since it was stored; to take it as it is now, remove its identity"
            )
        return new

    @classmethod
    def _create(cls, implementation: Any, bound: Mapping[str, Selector], options: Mapping[str, Any]) -> Self:
        new = object.__new__(cls)
        new._initialise(implementation, **options)
        return new.on(**bound)

    def _reference(self, part: str, code: Callable[..., Any], check: bool) -> dict[str, Any]:
        with self._naming_faults(f"{part}: "):
            reference = reference_of(code)
            again = restored(code, reference) if check else code
        field_name = "aggregator" if part == "aggregate" else part
        if again is not code and self._replace(**{field_name: again})._identity_digest != self._identity_digest:
            raise self._fault(
                f"{part}: its provider has another identity when made again; give it texts, numbers, lists"
            )
        return reference

    @property
    def _identity_digest(self) -> str | None:
        """The digest of the identity; None while an argument is not bound."""
        is_complete = self.accepts.required <= self.bound.keys()
        return identity.digest(self.identify().spec).hex() if is_complete else None

    # Evaluation

    def evaluate(self, source: Mapping[str, Any], /, **values: Any) -> Result:
        """The result of the feedback for one source.

        Args:
            source: a mapping with any of the keys `__record__`, `__app__` and `__example__`, and any further keys.
            values: values of arguments, in place of what their selectors find.

        Raises:
            SpecError: an argument is not bound, or the implementation has no such argument; or it is async: await
                `evaluate_async`.
        """
        if self.is_async:
            raise self._fault("its implementation is async; await evaluate_async(…)")
        plan = self._plan(source, values)
        if isinstance(plan, Result):
            return plan
        calls = plan.calls
        for args in plan.combinations:
            try:
                calls.add(args, plan.call(args))
            except Exception as error:
                calls.add_failed(args, error)
        return make_result(calls, self.aggregator, on_error=self.on_error, note=plan.note)

    async def evaluate_async(self, source: Mapping[str, Any], /, **values: Any) -> Result:
        """Like `evaluate`, for an async implementation."""
        plan = self._plan(source, values)
        if isinstance(plan, Result):
            return plan
        calls = plan.calls
        for args in plan.combinations:
            try:
                returned = plan.call(args)
                calls.add(args, await returned if inspect.isawaitable(returned) else returned)
            except Exception as error:
                calls.add_failed(args, error)
        return make_result(calls, self.aggregator, on_error=self.on_error, note=plan.note)

    def selections(self, source: Mapping[str, Any], /, **values: Any) -> Iterator[dict[str, Any]]:
        """The arguments of each call that `evaluate` would make; raises `Missing` if a selector finds nothing."""
        return combine(select_all(self.bound, source, values), self.combinations)

    def _plan(self, source: Mapping[str, Any], values: Mapping[str, Any]) -> _Plan | Result:
        """The calls to make for a source; the result, where there are none."""
        if values:
            self._check_values(values)
        else:
            _ = self._is_bound
        try:
            if self.if_exists is not None and not is_found(self.if_exists, source):
                return Result("skipped", reason=f"{self.if_exists} is not there")
            selected = select_all(self.bound, source, values)
        except NotStored as error:  # whatever `if_missing` says: it was there
            return Result("failed", reason=str(error), error=error)
        except Missing as error:
            if self.if_missing == "error":
                return Result("failed", reason=str(error), error=error)
            if self.if_missing == "warn":
                warn(f"feedback {self.name!r} is skipped: {error}")
            return Result("skipped", reason=str(error))
        several = False
        for name, found in selected.items():
            if not found:
                return Result("skipped", reason=f"{name}: {self.bound[name]} selects no values")
            several = several or len(found) > 1
        if several and (problem := too_many_calls(selected, self.combinations)):
            return Result("failed", reason=problem)
        call, calls = self.accepts.caller(self.implementation), Calls(self.accepts.function, self.strict)
        return _Plan(combine(selected, self.combinations), call, calls, leftover_note(selected, self.combinations))

    @cached_property
    def _is_bound(self) -> bool:
        """True, or an error; cached, because it is checked for every row."""
        self._check_values({})
        return True

    def _check_values(self, values: Mapping[str, Any]) -> None:
        with self._naming_faults():
            for name in values:
                self.accepts.require(name)
            self.accepts.check({**self.bound, **values})


_STORED_AS_GIVEN: Final = ("name", "higher_is_better", "range", "combinations", "if_missing", "on_error")
_STORED: Final = (*_STORED_AS_GIVEN, "implementation", "selectors", "aggregate", "if_exists", "version")
