"""Feedback functions: plain functions, bound by selectors to parts of what happened.

A `Feedback` is a scorer that is given the whole *source* of a row: the record of the call with everything that was
called within it, the app, and the example. Its selectors say which parts are the arguments of its implementation:

    relevance = (
        Feedback(local.context_relevance, name="context relevance")
        .on_input("question")
        .on(context="__record__.app.retriever.search.rets[:]")
        .aggregate(min)
    )

Where a selector leads to several values, the implementation is called once for each combination of them, and an
aggregate makes one number of what it says. All calls are kept, one by one.

Why it is so:

- A definition is a value: each `on…` gives a new one, and what is bound wrongly is told when it is bound. Arguments
  stand in the order of the signature however they were bound, so one definition has one identity.
- Nothing missing is passed over in silence. A part that is not there fails, or skips the row, as `if_missing` says; a
  selection without values skips it. Both have a reason.
- A call that fails keeps what the others said: the row fails with all its calls, or the call is left out, as `on_error`
  says.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, Final, NamedTuple, Self

from evaluand.core.errors import DataError, SpecError, warn
from evaluand.core.fingerprint import Identity, code_identity
from evaluand.core.registry import nearest
from evaluand.core.selector import Selector
from evaluand.core.selector.steps import Slice
from evaluand.evaluation.feedback.arguments import PLAIN, Arguments
from evaluand.evaluation.feedback.call_storage import combined, kept
from evaluand.evaluation.feedback.calls import Calls, line_of_error, number_of, reason_of
from evaluand.evaluation.feedback.references import keeps_range, reference_of, referred
from evaluand.evaluation.feedback.selector_checks import APP, EXAMPLE, RECORD, nowhere
from evaluand.evaluation.provider import Provider
from evaluand.evaluation.scorer import Score, Scorer, described, is_async

COMBINATIONS: Final = ("product", "zip")
MOST_CALLS: Final = 100_000
"""Of one source; more combinations are taken for a mistake."""

IF_MISSING: Final = ("error", "warn", "ignore")
ON_ERROR: Final = ("fail", "leave_out")

Aggregator = Callable[[Sequence[Any]], Any]


class Missing(DataError):
    """A selector leads to nothing in a source."""


def mean(values: Sequence[Any]) -> float:
    """The mean of what calls said.

    Example:
        >>> mean([1.0, 0.5])
        0.75
    """
    return math.fsum(values) / len(values)


class Result(NamedTuple):
    """What a feedback says of one source.

    Attributes:
        status: `scored`, `abstained`, `skipped` or `failed`.
        value: what the aggregate made of all calls: a number, which may be undefined (NaN), or a number for each key
            where the implementation says several; None where there is none.
        calls: each call of the implementation in order: `args`, `ret`, `meta` and, where it failed, `error`.
        reason: why there is no value.
        note: what is to be known of a value: calls left out, values not combined.
        error: what was raised, by a call or by the aggregate.
    """

    status: str
    value: Any = None
    calls: Sequence[Mapping[str, Any]] = ()
    reason: str | None = None
    note: str | None = None
    error: Exception | None = None


@dataclass(frozen=True, init=False, repr=False)
class Feedback(Scorer):
    """A feedback function: an implementation, and selectors for its arguments.

    Args:
        implementation: a function, method or callable object, plain or async. Returns a number, a bool, a list of
            numbers or a dictionary of numbers; or one of these and a dictionary of metadata, such as a `reason`. Where
            there is no value it returns None and metadata with the reason. It may raise `Skipped` for a call that is to
            be left out.
        name: shown in tables; the implementation's name if not given.
        higher_is_better: which way is good, for those who show results; what the implementation says of itself if not
            given, and None if that is not known.
        range: the lowest and the highest number that the implementation can say; what a function says of itself by an
            attribute `range`, as methods of providers do, if not given, and None if that is not known. Where the
            aggregate keeps within it, intervals of means do, and what summarises values refuses those outside.
        aggregate: makes one number of what the calls said, given as a list of numbers, in which a call that said a
            list has the mean of it; the mean if not given.
        combinations: `product` calls the implementation with every combination of the values selected, `zip` with the
            first of each, then the second of each, and so on to the end of the shortest.
        if_missing: what is done where a selector leads to nothing: the row fails (`error`), is skipped with a warning
            (`warn`), or is skipped (`ignore`).
        if_exists: a selector; rows where it leads to nothing are skipped.
        on_error: what is done where a call fails: the row fails (`fail`), or the aggregate is made of the other calls
            (`leave_out`). The calls are kept in both cases.
        version: with the name, pins the implementation instead of its fingerprint.

    Raises:
        SpecError: one of these cannot work.

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
        self._become(
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

    def _become(
        self, implementation: Callable[..., Any], *, name: str | None, if_exists: Any, range: Any = None, **values: Any
    ) -> None:
        if not callable(implementation):
            raise SpecError(f"a feedback needs a function, not {described(implementation)}")
        accepts = Arguments.of(implementation)
        if not isinstance(name, str | None):
            raise SpecError(f"a feedback's name is {described(name)}; give a text")
        self._set(implementation=implementation, accepts=accepts, name=name or accepts.called, bound={}, **values)
        if self.higher_is_better is None:
            self._set(higher_is_better=getattr(implementation, "higher_is_better", None))
        if range is None and inspect.isroutine(implementation):  # of an object it may be anything
            range = getattr(implementation, "range", None)
        self._set(range=None if range is None else self._ends(range))
        self._check_choices()
        try:
            self._set(if_exists=None if if_exists is None else self._selector(if_exists))
        except SpecError as error:
            raise self._fault(f"if_exists: {error}") from None

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _changed(self, **changes: Any) -> Self:
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

    # What it is made of

    def on(self, *selectors: str | Selector, **named: str | Selector) -> Self:
        """Binds arguments to selectors; those given without a name are taken for the next arguments not bound yet.

        Raises:
            SpecError: the implementation has no such argument, or none is left; or a text is no selector.
        """
        bound = dict(self.bound)
        try:
            for name, given in named.items():
                self.accepts.require(name)
                bound[name] = self._selector(given)
            for given in selectors:
                bound[self.accepts.next_after(bound)] = self._selector(given)
        except SpecError as error:
            raise self._fault(str(error), type(error)) from None
        return self._changed(bound=self.accepts.ordered(bound))

    def on_input(self, arg: str | None = None) -> Self:
        """Binds an argument, or the next that is not bound, to the input of the whole call."""
        return self._on_part("main_input", arg)

    def on_output(self, arg: str | None = None) -> Self:
        """Binds an argument, or the next that is not bound, to the output of the whole call."""
        return self._on_part("main_output", arg)

    on_prompt = on_input
    on_response = on_output

    def on_input_output(self) -> Self:
        """Binds the next two arguments to input and output of the whole call."""
        return self.on_input().on_output()

    def on_default(self) -> Self:
        """Binds the output to the one argument that is needed, or input and output to the two that are.

        Arguments with defaults keep these.

        Raises:
            SpecError: more are needed, or any number is taken; or none is needed, but there are some.
        """
        accepts, needed = self.accepts, self._by_default
        if len(needed) > 2 or accepts.variadic or accepts.open:
            raise self._fault(f"{accepts.called} has more than two arguments; say what they are given with on(…)")
        if accepts.names and not needed:
            raise self._fault(f"{accepts.called} needs none of {accepts}; say which are given what with on(…)")
        parts = ((), ("main_output",), ("main_input", "main_output"))[len(needed)]
        new = self
        for name, part in zip(needed, parts, strict=True):
            new = new._on_part(part, name)
        return new

    def aggregate(self, func: Aggregator | None = None, combinations: str | None = None) -> Self:
        """Sets what makes one number of what the calls said, how values are combined, or both.

        Raises:
            SpecError: neither is given, or one of them cannot work.
        """
        if func is None and combinations is None:
            raise self._fault("give aggregate(…) a function, or combinations")
        new = self._changed(
            aggregator=self.aggregator if func is None else func,
            combinations=self.combinations if combinations is None else combinations,
        )
        new._check_choices()
        return new

    @property
    def _by_default(self) -> Sequence[str]:
        """The arguments that `on_default` binds."""
        return [name for name in self.accepts.names if name in self.accepts.required]

    def _on_part(self, part: str, arg: str | None) -> Self:
        selector = Selector(f"{RECORD}.{part}")
        return self.on(selector) if arg is None else self.on(**{arg: selector})

    def _selector(self, given: Any) -> Selector:
        if isinstance(given, Selector):
            return given
        return _selector_of(given)

    def _ends(self, given: Any) -> tuple[float, float]:
        try:
            low, high = (number_of(end) for end in given)
        except (TypeError, ValueError):
            low = high = None
        if low is None or high is None or not -math.inf < low < high < math.inf:
            raise self._fault(f"range is {given!r}; give the lowest and the highest number, such as (0, 1)")
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
        given = getattr(self, name)
        given = getattr(given, "value", given)  # a member of an enum of such words
        if given not in choices:
            hint = nearest(given, choices) if isinstance(given, str) else ""
            raise self._fault(f"{name} is {described(given)}{hint}; give one of {', '.join(choices)}")
        self._set(**{name: given})

    def _fault(self, message: str, kind: type[SpecError] = SpecError) -> SpecError:
        return kind(f"feedback {self.name!r}: {message}")

    # What it is to an evaluation

    @property
    def arguments(self) -> tuple[str, ...]:
        return ("source",)

    @property
    def columns(self) -> Mapping[str, str]:
        return {"calls": "json"}

    @property
    def ranges(self) -> Mapping[str, tuple[float, float]]:  # type: ignore[override] # of a kind, it is the same for all
        return {"value": self.range} if self.range is not None and keeps_range(self.aggregator) else {}

    @cached_property
    def sees_times(self) -> bool:
        checked = [] if self.if_exists is None else [self.if_exists]
        return any(may_see_times(selector) for selector in (*self.bound.values(), *checked))

    @cached_property
    def is_async(self) -> bool:
        return is_async(self.implementation)

    def check(self, expected: Any = None, outputs: Sequence[Any] = ()) -> None:
        """Looks whether every argument that the implementation needs is bound.

        Raises:
            SpecError: one is not.
        """
        _ = self._is_bound

    def check_example(self, example: Mapping[str, Any]) -> None:
        """Looks whether the selectors of the example lead somewhere.

        Raises:
            Missing: one does not, and `if_missing` is error.
        """
        for name, selector in self.bound.items() if self.if_missing == "error" else ():
            if selector.steps[:1] == (EXAMPLE,):
                self._select(name, selector, {EXAMPLE: example})

    def check_app(self, app: Mapping[str, Any]) -> None:
        """Looks whether the selectors lead somewhere in an app.

        Calls that the app does not instrument may be traced by hand, so that it is only doubtful whether selectors of
        them lead anywhere: an `EvaluandWarning` is told, and so for names that calls do not have, or that are no
        arguments of a method. Where `if_missing` skips rows, and of `if_exists`, what this app has not may be in
        another.

        Args:
            app: its structure, as `App.json`.

        Raises:
            SpecError: an argument is not bound; or a selector leads to what no record or example has, or nowhere in the
                app itself.

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
        found = nowhere(selector, app)
        if found is None:
            return
        told = f"{name}: {selector}: {found.message}"
        if found.how == "never" or (demanded and found.how == "absent"):
            raise self._fault(told)
        if demanded or selector is self.if_exists:
            warn(f"feedback {self.name!r}: {told}")

    def identify(self) -> Identity:
        """The identity: the implementation's, the aggregate's, the selectors and the rules.

        Raises:
            SpecError: an argument is not bound.
        """
        self.check()
        parts = {"implementation": self._of_implementation()}
        if self.aggregator is not mean:
            parts["aggregate"] = code_identity("function", self.aggregator, "aggregate")
        spec = {
            "kind": self.kind,
            "selectors": {name: str(selector) for name, selector in self.bound.items()},
            "aggregate": "mean",
            "combinations": self.combinations,
            "if_missing": self.if_missing,
            "if_exists": None if self.if_exists is None else str(self.if_exists),
            "on_error": self.on_error,
            **{part: identity.spec for part, identity in parts.items()},
        }
        return Identity(
            spec,
            all(identity.pinned for identity in parts.values()),
            tuple(why for identity in parts.values() for why in identity.unpinned),
            {name: digest for identity in parts.values() for name, digest in identity.parts.items()},
        )

    def _of_implementation(self) -> Identity:
        """That of a provider's method is told by the provider."""
        provider = getattr(self.implementation, "__self__", None)
        if isinstance(provider, Provider) and self.declared is None:
            return provider.identify(self.implementation.__name__)
        return code_identity("function", self.implementation, self.name, version=self.declared)

    def score(self, source: Mapping[str, Any]) -> Any:  # type: ignore[override]
        """Grades one source; awaitable where the implementation is async."""
        if self.is_async:
            return self._score_async(source)
        return self._score_of(self.evaluate(source))

    async def _score_async(self, source: Mapping[str, Any]) -> Score:
        return self._score_of(await self.evaluate_async(source))

    def _score_of(self, result: Result) -> Score:
        status, value, calls, reason, note, error = result
        columns = {"calls": kept(calls)} if calls else None
        if status != "scored":
            return Score(status=status, reason=reason, columns=columns, error=error)
        if isinstance(value, dict):
            undefined = [f"{key!r} is {number}" for key, number in value.items() if not math.isfinite(number)]
            if undefined:  # a row has one status, and each of its numbers counts by it
                return Score(status="abstained", reason=", ".join(undefined), columns=columns, error=error)
            return Score(data=value, explanation=note, columns=columns, error=error)
        number = number_of(value)
        if number is None:
            reason = f"the aggregate gave {described(value)}; it is to give a number"
            return Score(status="failed", reason=reason, columns=columns)
        if not math.isfinite(number):
            return Score(status="abstained", reason=f"the value is {number}", columns=columns, error=error)
        return Score(number, explanation=note or reason_of(calls), columns=columns, error=error)

    # As it is stored

    def to_json(self) -> dict[str, Any]:
        """The definition as JSON-like data, in which code stands by its name.

        Raises:
            SpecError: the implementation or the aggregate cannot be imported again; says why.
        """
        return {
            "kind": self.kind,
            "name": self.name,
            "higher_is_better": self.higher_is_better,
            "range": None if self.range is None else list(self.range),
            "implementation": self._reference("implementation", self.implementation),
            "selectors": {name: str(selector) for name, selector in self.bound.items()},
            "aggregate": self._reference("aggregate", self.aggregator),
            "combinations": self.combinations,
            "if_missing": self.if_missing,
            "if_exists": None if self.if_exists is None else str(self.if_exists),
            "on_error": self.on_error,
            "version": self.declared,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], *, modules: Collection[str] = ()) -> Self:
        """The feedback that was stored; what it names is called, if at all, when all of it was found right.

        Args:
            data: what `to_json` gave.
            modules: names of modules and packages that code may be imported from, beside evaluand's own and common
                aggregates; of the standard library there are these aggregates only. Whoever wrote the data can have any
                of their functions called, and their providers made.

        Raises:
            SpecError: the data are no feedback, or name code that is not there or may not be imported.
        """
        given: Any = data  # whatever was stored
        if not isinstance(given, Mapping) or {"kind": cls.kind, **given}.keys() != {"kind", *_STORED}:
            raise SpecError(f"these data are no feedback; one has the keys {', '.join(sorted(_STORED))}")
        if given.get("kind", cls.kind) != cls.kind:
            raise SpecError(f"these data are of the kind {given['kind']!r}, not {cls.kind!r}")
        implementation = referred(given["implementation"], modules)
        selectors, exists = given["selectors"], given["if_exists"]
        if not isinstance(selectors, Mapping):
            raise SpecError(f"a feedback's selectors are {described(selectors)}; give texts by argument")
        bound = {str(name): _selector_of(text) for name, text in selectors.items()}
        more = {
            "aggregator": referred(given["aggregate"], modules).make(),
            "if_exists": None if exists is None else _selector_of(exists),
            "declared": given["version"],
            **{name: given[name] for name in _STORED_AS_GIVEN},
        }
        cls._made(implementation.likeness, bound, more)
        return cls._made(implementation.make(), bound, more)

    @classmethod
    def _made(cls, implementation: Any, bound: Mapping[str, Selector], more: Mapping[str, Any]) -> Self:
        new = object.__new__(cls)
        new._become(implementation, **more)
        return new.on(**bound)

    def _reference(self, part: str, code: Callable[..., Any]) -> dict[str, Any]:
        try:
            return reference_of(code)
        except SpecError as error:
            raise self._fault(f"{part}: {error}") from None

    # What it does

    def evaluate(self, source: Mapping[str, Any], /, **given: Any) -> Result:
        """What the feedback says of one source.

        Args:
            source: a mapping with any of the keys `__record__`, `__app__` and `__example__`, and others of your own.
            given: values of arguments, in place of what their selectors lead to.

        Raises:
            SpecError: an argument is not bound, or none of the implementation's; or that is async: await
                `evaluate_async`.
        """
        if self.is_async:
            raise self._fault("its implementation is async; await evaluate_async(…)")
        plan = self._plan(source, given)
        if isinstance(plan, Result):
            return plan
        call = self.accepts.caller(self.implementation, copied=not plan.plain)
        calls = Calls(self.accepts.called, self.strict)
        for args in plan.combinations:
            try:
                calls.add(args, call(args))
            except Exception as error:
                calls.add_failed(args, error)
        return self._result(calls, plan.note)

    async def evaluate_async(self, source: Mapping[str, Any], /, **given: Any) -> Result:
        """As `evaluate`, for an implementation that is async."""
        plan = self._plan(source, given)
        if isinstance(plan, Result):
            return plan
        call = self.accepts.caller(self.implementation, copied=not plan.plain)
        calls = Calls(self.accepts.called, self.strict)
        for args in plan.combinations:
            try:
                said = call(args)
                calls.add(args, await said if inspect.isawaitable(said) else said)
            except Exception as error:
                calls.add_failed(args, error)
        return self._result(calls, plan.note)

    def selections(self, source: Mapping[str, Any], /, **given: Any) -> Iterator[dict[str, Any]]:
        """The arguments of each call that would be made.

        Raises:
            Missing: a selector leads to nothing.
        """
        return combined(self._selected(source, given), self.combinations)

    def _plan(self, source: Mapping[str, Any], given: Mapping[str, Any]) -> _Plan | Result:
        """The calls to be made of a source; or the result, where there are none."""
        if given:
            self._check_given(given)
        else:
            _ = self._is_bound
        if self.if_exists is not None and not self._is_there(self.if_exists, source):
            return Result("skipped", reason=f"{self.if_exists} is not there")
        try:
            selected = self._selected(source, given)
        except Missing as error:
            if self.if_missing == "error":
                return Result("failed", reason=str(error), error=error)
            if self.if_missing == "warn":
                warn(f"feedback {self.name!r} is skipped: {error}")
            return Result("skipped", reason=str(error))
        several = False
        for name, values in selected.items():
            if not values:
                return Result("skipped", reason=f"{name}: {self.bound[name]} selects no values")
            several = several or len(values) > 1
        if several and (number := self._number_of(selected)) > MOST_CALLS:
            return Result("failed", reason=self._too_many(selected, number))
        plain = all(type(value) in PLAIN for values in selected.values() for value in values)
        return _Plan(combined(selected, self.combinations), plain, self._uneven(selected))

    def _selected(self, source: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Sequence[Any]]:
        """The values of each argument."""
        found: dict[str, Sequence[Any]] = {}
        for name, selector in self.bound.items():
            if name not in given:
                found[name] = self._select(name, selector, source)
        if given:
            found |= {name: (value,) for name, value in given.items()}
        return found

    def _select(self, name: str, selector: Selector, source: Mapping[str, Any]) -> list[Any]:
        try:
            return selector.require(source)
        except DataError as error:
            raise Missing(f"{name}: {error}") from None

    def _is_there(self, selector: Selector, source: Mapping[str, Any]) -> bool:
        try:
            selector.require(source)
        except DataError:
            return False
        return True

    def _number_of(self, selected: Mapping[str, Sequence[Any]]) -> int:
        sizes = map(len, selected.values())
        return math.prod(sizes) if self.combinations == "product" else min(sizes)

    def _too_many(self, selected: Mapping[str, Sequence[Any]], number: int) -> str:
        told = " × ".join(f"{len(values):,} of {name}" for name, values in selected.items() if len(values) > 1)
        less = "combine them by zip, " if self.combinations == "product" and len(selected) > 1 else ""
        hint = f"{less}make one list of them with .collect(), or select fewer"
        return f"{number:,} calls ({told}) are more than {MOST_CALLS:,}; {hint}"

    def _uneven(self, selected: Mapping[str, Sequence[Any]]) -> str | None:
        """What is to be told of values that zip leaves over."""
        if self.combinations == "product" or len({len(values) for values in selected.values()}) < 2:
            return None
        told = ", ".join(f"{len(values)} of {name}" for name, values in selected.items())
        return f"zip combines to the end of the shortest: there are {told}"

    @cached_property
    def _is_bound(self) -> bool:
        """True, or an error; kept, since it is asked for every row."""
        self._check_bound(self.bound)
        return True

    def _check_given(self, given: Mapping[str, Any]) -> None:
        try:
            for name in given:
                self.accepts.require(name)
        except SpecError as error:
            raise self._fault(str(error)) from None
        self._check_bound({**self.bound, **given})

    def _check_bound(self, bound: Collection[str]) -> None:
        try:
            self.accepts.check(bound)
        except SpecError as error:
            raise self._fault(str(error)) from None

    def _result(self, calls: Calls, note: str | None) -> Result:
        """What the aggregate makes of calls."""
        first = calls.errors[0] if calls.errors else None
        if len(calls.said) < len(calls.told):
            if first is not None and (self.on_error == "fail" or not calls.said):
                return Result("failed", None, calls.told, calls.failures, None, first)
            if not calls.said:
                return Result("abstained" if calls.undefined else "skipped", None, calls.told, calls.gaps)
            note = "; ".join(filter(None, (note, calls.failures and f"left out: {calls.failures}", calls.gaps)))
        try:
            return Result("scored", self._aggregated(calls.said), calls.told, None, note, first)
        except Exception as error:
            return Result("failed", None, calls.told, f"the aggregate failed: {line_of_error(error)}", note, error)

    def _aggregated(self, said: list[Any]) -> Any:
        if not any(type(value) is dict for value in said):
            return self.aggregator([mean(value) if type(value) is list else value for value in said])
        keys = said[0].keys() if type(said[0]) is dict else ()
        if not all(type(value) is dict and value.keys() == keys for value in said):
            raise DataError("calls returned different things; each is to return a number, or numbers of the same keys")
        made = {key: number_of(self.aggregator([value[key] for value in said])) for key in keys}
        if None in made.values():
            raise DataError("it is to give a number")
        return made


def _selector_of(text: Any) -> Selector:
    if not isinstance(text, str):
        raise SpecError(f"{described(text)} is no selector; give a text such as {RECORD}.main_input")
    return Selector(text)


def may_see_times(selector: Selector) -> bool:
    """Whether a selector may lead to what differs between two calls that gave the same: times, ids and processes.

    Example:
        >>> may_see_times(Selector("__record__.app.ask[:].rets")), may_see_times(Selector("__record__.app.ask[0]"))
        (False, True)
    """
    steps: list[Any] = [*selector.steps, None, None]
    root, *rest = steps
    if root == APP:
        return False
    if root == EXAMPLE:
        return rest[0] not in _OF_EXAMPLES
    if rest[0] in ("calls", "app"):
        at = next((place for place, step in enumerate(rest) if place > 1 and step in _OF_CALLS), None)
        return at is None or not all(isinstance(step, str | int | Slice) for step in rest[:at])
    return root != RECORD or rest[0] not in _OF_RECORDS


_OF_EXAMPLES: Final = frozenset(("input", "expected", "metadata", "attributes", "weight"))
_OF_RECORDS: Final = frozenset(("main_input", "main_output", "main_error", "cost", "app_id", "tags", "meta"))
_OF_CALLS: Final = frozenset(("args", "rets", "error", "stack", "kind", "attributes", "events"))
"""What is the same of two calls that gave the same."""


_STORED_AS_GIVEN: Final = ("name", "higher_is_better", "range", "combinations", "if_missing", "on_error")
_STORED: Final = (*_STORED_AS_GIVEN, "implementation", "selectors", "aggregate", "if_exists", "version")


class _Plan(NamedTuple):
    """The calls to be made: their arguments, whether all of these are plain, and what is to be told of them."""

    combinations: Iterator[dict[str, Any]]
    plain: bool
    note: str | None
