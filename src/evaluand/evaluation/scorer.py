"""Scorers: what grades one response.

A scorer sees a response and what was expected, and returns a `Score`: a number, a label, data, or the statement that
there is nothing to grade (abstained). A scorer that raises costs one score, never the evaluation. What summarises many
rows is a `Metric`.

Kinds are in `evaluand.evaluation.scorers`, one file each; a plain function becomes a scorer with `@scorer`. Helpers
that several kinds need (checks of parameters, descriptions of values) are at the end of this module, because kinds do
not import one another.
"""

import dataclasses
import inspect
import math
import numbers
import os
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from functools import partial
from importlib.util import find_spec
from itertools import takewhile
from operator import attrgetter
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    NamedTuple,
    Self,
    TypedDict,
    TypeGuard,
    TypeVar,
    Unpack,
    overload,
)

from evaluand.core.errors import DataError, SpecError, described, with_article
from evaluand.core.fingerprint import Identity, code_identity
from evaluand.core.near import refuse_base_class
from evaluand.core.parameters import parameter_faults
from evaluand.core.registry import find, make_default, names, split_entry
from evaluand.models.extraction import COLUMN, Extraction

if TYPE_CHECKING:
    from evaluand.evaluation.evaluator import Evaluation
    from evaluand.evaluation.standing import ScorerStanding

ARGUMENTS: Final = ("output", "expected", "input", "example", "index", "replication", "weight", "source")
"""The arguments that a scorer can have; `weight` is the example's, a float, or None where the dataset has no weights,
and `source` is everything about the row: the record of the call, the app and the example (see
`evaluand.evaluation.feedback`)."""


_S = TypeVar("_S", bound="Scorer")

CallReader = Callable[[Any, Callable[[], Mapping[str, Any] | None]], list[dict[str, Any]]]
"""Reads a cell of the column `calls`, parsed as JSON: (cell, source) → `{args, ret, meta, error}` of each call.

`source` returns what the row's call was given, or None where that is lost; it is called only where it is needed."""


class Score(NamedTuple):
    """The grade of one response.

    Attributes:
        value: the number metrics read; a bool counts as 0 or 1.
        label: a word, such as the answer that was extracted or a judge's verdict.
        data: anything JSON-like.
        explanation: why, for people.
        status: `scored`; `abstained` if the scorer found nothing to grade; `skipped` if this response is not to be
            graded; `failed` if the scorer could not grade it.
        reason: what was missing, if not scored.
        columns: the values of the columns that the scorer declares.
        error: an exception that the scorer returns and does not raise; retried if the policy says so.
    """

    value: float | None = None
    label: str | None = None
    data: Any = None
    explanation: str | None = None
    status: str = "scored"
    reason: str | None = None
    columns: Mapping[str, Any] | None = None
    error: Exception | None = None

    @classmethod
    def abstained(cls, reason: str, *, label: str | None = None) -> Self:
        """No grade, and why: shown and counted, never averaged as a zero."""
        return cls(None, label, None, None, "abstained", reason)

    @classmethod
    def of(cls, result: Any) -> "Score":
        """The score for a function's plain return value.

        Example:
            >>> Score.of(True).value, Score.of("toxic").label, Score.of(None).status
            (1.0, 'toxic', 'abstained')
        """
        if isinstance(result, Score):
            return result
        if result is None:
            return cls.abstained("the scorer returned None")
        if isinstance(result, bool | int | float):
            return cls(float(result))
        if isinstance(result, str):
            return cls(label=str.__str__(result))  # the text itself of a NumPy string or a member of an enum
        if isinstance(result, numbers.Real | Decimal):
            return cls(float(result))
        if hasattr(result, "item") and getattr(result, "ndim", None) == 0:  # a NumPy bool or an array of one value
            return cls.of(result.item())
        return cls(data=result)


def unread(reason: str, candidates: int = 0) -> Score:
    """No grade, because the part that decides could not be read, for scorers with the column `extraction`."""
    read = Extraction.unread(reason, candidates)
    return Score(status="abstained", reason=reason, columns={COLUMN: read.data})


RIGHT: Final = Score(1.0)
WRONG: Final = Score(0.0)
NOTHING_EXPECTED: Final = Score.abstained("no expected value")
NO_ANSWER: Final = Score.abstained("the task gave no answer")
"""Made once: most rows of most scorers end in one of these."""


class Scorer(ABC):
    """Grades responses. Subclasses are frozen dataclasses whose fields are their parameters.

    A subclass defines either `score` (one response at a time, plain or async) or `score_batch` (many at a time, plain
    or async: one list for each of `arguments`, and one `Score` or plain value for each row in return).

    Attributes:
        kind: the registered name.
        version: raised whenever the same parameters would grade differently.
        cheap: pure and quick: graded in the evaluator's loop instead of by the engine.
        needs: a module that must be installed, and the extra that installs it.
        by_target: called once for each target if the dataset declares several.
        is_judge: its verdicts are opinions, such as those of a language model, whose errors have to be measured: a gate
            on it needs a card, see `evaluand judge card`.
        retries: further attempts after transient errors, if the policy has no number.
        transient: names of error classes that are retried, in addition to those of the policy.
        stops_alike: whether the evaluation stops if its first calls all fail with the same error, as the policy says.
        ranges: column → the lowest and the highest possible number; metrics that average the column use it as range.
    """

    kind: ClassVar[str]
    version: ClassVar[int] = 1
    cheap: ClassVar[bool] = False
    needs: ClassVar[tuple[str, str] | None] = None
    by_target: ClassVar[bool] = False
    is_judge: ClassVar[bool] = False
    retries: ClassVar[int] = 0
    transient: ClassVar[tuple[str, ...]] = ()
    stops_alike: ClassVar[bool] = False
    ranges: ClassVar[Mapping[str, tuple[float, float]]] = {}

    def __new__(cls, *args: Any, **named: Any) -> Self:
        refuse_base_class(cls, Scorer, bool(args or named))
        return super().__new__(cls)

    def __post_init__(self) -> None:
        """Refuses parameters that break their annotations, see `evaluand.core.parameters`, and lacking libraries."""
        if faults := [*parameter_faults(self)]:
            raise SpecError("\n".join(f"scorer {self.kind!r}: {name} {fault}" for name, fault in faults))
        module, extra = self.needs or (None, None)
        if module and find_spec(module) is None:
            raise SpecError(f"scorer {self.kind!r} needs {module.replace('_', '-')}: pip install 'evaluand[{extra}]'")

    @property
    def rubrics(self) -> Sequence[Mapping[str, Any]]:
        """What a judge asks by, word for word, to be stored with its verdicts: of each rubric `title` and `content`."""
        return ()

    def score(self, output: Any, expected: Any) -> Score | Awaitable[Score]:
        """Grades one response.

        Args:
            output: the response's value (a list of items where the task declares items).
            expected: the expected value, or a mapping target → value, or None where the dataset has none.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define how it grades one response")

    def as_score(self, result: Any) -> Score:
        """The score for what `score` returned.

        Raises:
            DataError: it is not a valid result of this scorer.
        """
        return Score.of(result)

    def check(self, expected: Any, outputs: Sequence[Any] = ()) -> None:  # noqa: B027 - most know nothing
        """Checks, before anything is called, that an example can be graded; accepts every example by default.

        Args:
            expected: the expected value, never None.
            outputs: the output, if it is known.

        Raises:
            DataError: it cannot be graded, whatever the output; an evaluation of only such examples is a mistake.
        """

    def check_kind(self, expected: Any, kind: str) -> None:  # noqa: B027 - most know nothing
        """Checks, before anything is called, that outputs of a kind can be right; accepts every kind by default.

        Args:
            expected: the expected value, never None.
            kind: what the task declares to return: `text`, `number`, `boolean`, `list` or `object`.

        Raises:
            DataError: no output of this kind is ever right; an evaluation of only such examples is a mistake.
        """

    def check_example(self, example: Mapping[str, Any]) -> None:  # noqa: B027 - most know nothing
        """Checks, before anything is called, that an example has the parts that the scorer reads.

        Args:
            example: its id, input, expected, metadata, attributes and weight.

        Raises:
            DataError: a part is missing; an evaluation of only such examples is a mistake.
        """

    def prepare(self) -> None:  # noqa: B027 - most need nothing
        """Checks, before anything is called, that the scorer can grade here; does nothing by default.

        Raises:
            SpecError: it cannot, such as without the key of a service.
        """

    def close(self) -> None:  # noqa: B027 - most have nothing open
        """Releases what was opened to grade, such as connections; called after the last row."""

    def check_app(self, app: Mapping[str, Any]) -> None:  # noqa: B027 - most know nothing
        """Checks, before anything is recorded, that records of an app have the parts that the scorer reads.

        Args:
            app: its structure, as `App.json`.

        Raises:
            SpecError: a part can never exist.
        """

    def unanswered(self, expected: Any) -> Mapping[str, Any] | None:
        """The values of the scorer's declared columns where the task or the scorer failed; None by default.

        Metrics need them if their bounds depend on what was expected, such as on how many spans.
        """
        return None

    @property
    def columns(self) -> Mapping[str, str]:
        """Names and types of the columns this scorer adds to its table.

        Types: string, int64, double, bool, json, labels, numbers (a list), scores (label → number).
        """
        return {}

    @property
    def readable(self) -> tuple[str, ...]:
        """The columns of its table that metrics can read; without `value` where the scorer never gives one."""
        return ("value", "label", "data", *self.columns)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of `score`, in order; names from `ARGUMENTS`."""
        return ("output", "expected")

    @property
    def sees_times(self) -> bool:
        """Whether it can see times and ids, so that rows which differ in nothing else may have different scores."""
        return "source" in self.arguments

    @property
    def sees_place(self) -> bool:
        """Whether it can see where an example is, so that examples that have moved are graded again."""
        return "index" in self.arguments or "example" in self.arguments

    @property
    def is_async(self) -> bool:
        return is_async(getattr(self, "score_batch", self.score))

    @property
    def is_batch(self) -> bool:
        """Whether the scorer grades many responses at a time, with `score_batch`."""
        return hasattr(self, "score_batch")

    @property
    def is_quick(self) -> bool:
        """Whether grading neither waits nor costs, so that it is done here and now, and again whenever it is needed."""
        return self.cheap and not self.is_batch and not self.is_async

    @classmethod
    def standing(cls, evaluation: "Evaluation", name: str) -> "ScorerStanding":
        """Whether a scorer whose verdicts are opinions was measured; by default as a judge is, by its card.

        Args:
            evaluation: has its scores, under a name.
        """
        judge: type[Scorer] = find("scorers", "judge")
        return judge.standing(evaluation, name)

    @classmethod
    def call_reader(cls, spec: Mapping[str, Any]) -> CallReader | None:
        """The function that reads the cells of the column `calls`; None where the scorer stores no calls of others.

        Args:
            spec: the stored identity of a scorer of this kind.
        """
        return None

    def identify(self) -> Identity:
        """The scorer's identity as it is now: by its version where the class declares one, else by fingerprint."""
        if "version" in vars(type(self)):
            return Identity({"kind": self.kind, "version": self.version, "parameters": _parameters(self)})
        return code_identity("scorer", self)


class WrappedScorer(Scorer):
    """A scorer that is another one, its `scorer`, in all that subclasses do not change."""

    scorer: Any


for _name in (
    *("cheap", "by_target", "is_judge", "retries", "transient", "stops_alike", "ranges", "rubrics", "is_async"),
    *("columns", "readable", "arguments", "sees_times", "sees_place", "unanswered", "identify", "score", "as_score"),
    *("check", "check_example", "check_app", "prepare", "close"),
):
    setattr(WrappedScorer, _name, property(attrgetter(f"scorer.{_name}")))
del _name


class ExpectationScorer(Scorer):
    """Grades by what is expected, which subclasses read; abstains where nothing is."""

    @abstractmethod
    def read_expected(self, expected: Any) -> Any:
        """What is expected, in the form for grading; a DataError tells what is wrong with it."""

    @abstractmethod
    def grade(self, output: Any, truth: Any, *others: Any) -> Score:
        """The score of a response, by what was read; a DataError tells what is wrong with either."""

    def columns_of(self, truth: Any) -> Mapping[str, Any] | None:
        """The declared columns that follow from what is expected alone."""
        return None

    def abstained(self, reason: str | None, truth: Any) -> Score:
        """No grade of a response, with the columns that are known without it."""
        return Score(status="abstained", reason=reason, columns=self.columns_of(truth))

    def score(self, output: Any, expected: Any, *others: Any) -> Score:
        if expected is None:
            return NOTHING_EXPECTED
        return self.grade(output, self.read_expected(expected), *others)

    def check(self, expected: Any, outputs: Sequence[Any] = ()) -> None:
        truth = self.read_expected(expected)
        for output in outputs:
            self.grade(output, truth)

    def unanswered(self, expected: Any) -> Mapping[str, Any] | None:
        return None if expected is None else self.columns_of(self.read_expected(expected))


class TextScorer(ExpectationScorer):
    """Grades texts by what is expected."""

    def check(self, expected: Any, outputs: Sequence[Any] = ()) -> None:
        self.read_expected(expected)
        if outputs and not any(isinstance(output, str) for output in outputs):
            raise DataError(f"{self.kind} grades texts, and no output is one")

    def check_kind(self, expected: Any, kind: str) -> None:
        if kind != "text":
            raise DataError(f"{self.kind} grades texts, and the task returns {with_article(kind)}")


class ReferenceScorer(TextScorer):
    """Compares an answer with a reference, or with the best of several; subclasses define `compared`.

    Abstains where nothing is expected and where the answer is not text.
    """

    @abstractmethod
    def compared(self, output: str, references: Sequence[str]) -> Score:
        """The score of a text, compared with one or several references."""

    def grade(self, output: Any, truth: list[str], *others: Any) -> Score:
        if not isinstance(output, str):
            return Score.abstained(f"the answer is {described(output)}, not text")
        return self.compared(output, truth)

    def read_expected(self, expected: Any) -> list[str]:
        references = [expected] if isinstance(expected, str) else expected
        if not isinstance(references, list | tuple) or not references:
            raise DataError(
                f"the expected value is {described(expected)}; {self.kind} compares with a text, or several"
            )
        for each in references:
            if not isinstance(each, str):
                raise DataError(f"one of the expected texts is {described(each)}; {self.kind} compares with texts")
        return list(references)


class FunctionScorer(Scorer):
    """A user's function as a scorer; its identity is the fingerprint of the function.

    Args:
        function: has parameters named from `ARGUMENTS`, in any order, or else one or two of any name, which are given
            the output and what was expected. Returns a number, bool, text, data, None or a `Score`. Further
            parameters need defaults. With `batch=True` each argument is a list and so is the result.
        name: shown in tables; the function's name if not given.
        version: names what the code cannot show, such as the model that it asks; the code counts beside it.
        files: further files whose content it depends on.

    Raises:
        SpecError: the function has a parameter that no scorer can have.
    """

    kind = "function"
    known_arguments: ClassVar[Sequence[str]] = ARGUMENTS

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        version: str | None = None,
        files: Sequence[str | os.PathLike[str]] = (),
        batch: bool = False,
    ) -> None:
        self.function = function
        self.name = name or str(getattr(function, "__name__", type(function).__name__))
        self.declared = version
        self.files = tuple(files)
        self.batch = batch
        self._positional, self._keywords = _binding(function, self.name, self.known_arguments)
        if batch:
            self.score_batch = self.score

    @property
    def arguments(self) -> tuple[str, ...]:
        return self._positional + self._keywords

    @property
    def is_async(self) -> bool:
        return is_async(self.function)

    def identify(self) -> Identity:
        is_alone = type(self) is FunctionScorer or self.declared is not None  # else a subclass may call it otherwise
        code = self.function if is_alone else self
        return code_identity("function", code, version=self.declared, files=self.files, batch=self.batch)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def score(self, *args: Any) -> Any:
        """Calls the function with the values of `arguments`, in that order."""
        if not self._keywords:
            return self.function(*args)
        split = len(self._positional)
        return self.function(*args[:split], **dict(zip(self._keywords, args[split:], strict=True)))


class FunctionOptions(TypedDict, total=False):
    """The options of a `FunctionScorer`."""

    name: str | None
    version: str | None
    files: Sequence[str | os.PathLike[str]]
    batch: bool


@overload
def scorer(function: Callable[..., Any], /, **options: Unpack[FunctionOptions]) -> FunctionScorer: ...
@overload
def scorer(**options: Unpack[FunctionOptions]) -> Callable[[Callable[..., Any]], FunctionScorer]: ...
def scorer(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Makes a function a scorer.

    Example:
        >>> @scorer
        ... def same_length(output, expected):
        ...     return len(output) == len(expected)
        >>> same_length.arguments
        ('output', 'expected')
    """
    if function is None:
        return lambda f: FunctionScorer(f, **options)
    return FunctionScorer(function, **options)


def as_scorer(name: str, scorer: Scorer | Callable[..., Any] | Mapping[str, Any] | str) -> Scorer:
    """A scorer from a scorer, a function, the name of a kind, or a dictionary of `kind` and parameters.

    Raises:
        SpecError: it is none of these.
    """
    return made_of(f"scorer {name!r}", scorer, Scorer, "scorers", partial(FunctionScorer, name=name))


def made_of(what: str, given: Any, base: type[_S], group: str, of_function: Callable[[Callable[..., Any]], _S]) -> _S:
    """What somebody gives as a scorer of some sort: one, a function, or the name of a kind with its parameters."""
    if isinstance(given, base):
        return given
    if isinstance(given, str | Mapping):
        kind, parameters = (given, {}) if isinstance(given, str) else split_entry(what, given)
        return make_default(group, kind, **parameters)  # type: ignore[no-any-return]
    if isinstance(given, type) and issubclass(given, base):
        raise SpecError(f"{what} is the class {given.__name__}; give an instance of it: {given.__name__}(…)")
    if not callable(given):
        need = f"give a {group.removesuffix('s').replace('_', ' ')}, a function or the name of a kind"
        raise SpecError(f"{what} is {with_article(type(given).__name__)}; {need}")
    return of_function(given)


def class_of(group: str, spec: Mapping[str, Any]) -> type[Scorer]:
    """The class of a scorer by its identity in a manifest; `Scorer` if its kind is not registered in the group."""
    kind = spec.get("kind")
    found = find(group, kind) if isinstance(kind, str) and kind in names(group) else Scorer
    return found if isinstance(found, type) and issubclass(found, Scorer) else Scorer


def find_call_reader(spec: Mapping[str, Any]) -> CallReader | None:
    """`Scorer.call_reader` of a scorer by its identity in a manifest."""
    return class_of("scorers", spec).call_reader(spec)


def ranges_of(scorers: Mapping[str, Scorer]) -> dict[str, dict[str, list[float]]]:
    """The ranges of scorers by name, as JSON-like data, of those that know any.

    Raises:
        SpecError: a range is not two numbers.
    """
    for scorer in scorers.values():
        ranges: Any = scorer.ranges or {}
        if not isinstance(ranges, Mapping):
            raise wrong_parameter(scorer, "ranges", 'give two numbers for each column, such as {"value": (0, 1)}')
        for column, ends in ranges.items():
            if not isinstance(ends, Sequence) or len(ends) != 2 or not all(map(_is_number, ends)):
                place = f"scorer {scorer.kind!r}: ranges[{column!r}]"
                raise SpecError(f"{place} is {ends!r}; give two numbers, such as (0, 1)")
    return {name: {c: [*ends] for c, ends in s.ranges.items()} for name, s in scorers.items() if s.ranges}


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, numbers.Real) and not math.isnan(value)


def directions_of(scorers: Mapping[str, Scorer]) -> dict[str, bool | None]:
    """Whether higher values of scorers are better, by name; None where a scorer does not know.

    Raises:
        SpecError: `higher_is_better` of a scorer is neither true, false nor None.
    """
    for scorer in scorers.values():
        if type(getattr(scorer, "higher_is_better", None)).__name__ not in _FLAG_TYPES:
            raise wrong_parameter(scorer, "higher_is_better", "give True, False or None")
    return {name: getattr(scorer, "higher_is_better", None) for name, scorer in scorers.items()}


_FLAG_TYPES: Final = ("NoneType", "bool", "bool_")  # of Python and of NumPy, which is not imported here


def wrong_parameter(scorer: Scorer, name: str, need: str) -> SpecError:
    """The error for a parameter of a scorer: its name, its value, and what to do."""
    return SpecError(f"scorer {scorer.kind!r}: {name} is {described(getattr(scorer, name))}; {need}")


def value_kind(value: Any) -> Any:
    """The kind of a value, which only values of the same kind can equal.

    Example:
        >>> value_kind(True), value_kind("a"), value_kind(1.5), value_kind([1]), value_kind({})
        ('boolean', 'text', 'number', 'list', 'object')
    """
    return next((name for name, types in _KINDS if isinstance(value, types)), type(value))


_KINDS: Final = (("boolean", bool), ("text", str), ("number", int | float), ("list", list | tuple), ("object", Mapping))


def are_equal(a: object, b: object) -> bool:
    """Whether two values that hold no others are equal: numbers by value, NaN to NaN; `true` and 1 are not."""
    if is_number(a) and is_number(b):
        return a == b or (a != a and b != b)
    return type(a) is type(b) and bool(a == b)


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a value is a number, which true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def read_number(what: str, value: Any, least: float = -math.inf) -> float:
    """A finite number; a DataError tells what it is instead."""
    if type(value) is float and -math.inf < value < math.inf and value >= least:
        return value
    if not is_number(value) or value < least:
        bound = "" if least == -math.inf else f" of {least:g} or more"
        raise DataError(f"{what} is {described(value)}, not a number{bound}")
    try:
        number = float(value)
    except OverflowError:
        raise DataError(f"{what} is {described(value)}, too large for a number of 64 bits") from None
    if not math.isfinite(number):
        raise DataError(f"{what} is {number}, not a finite number")
    return number


def read_field(what: str, fields: Mapping[str, Any], key: str, remedy: str = "") -> Any:
    """A field that must be there."""
    if key not in fields:
        raise DataError(f"{what} has {', '.join(map(repr, fields)) or 'no keys'} and not {key!r}{remedy}")
    return fields[key]


def as_decimal(value: float | Decimal) -> Decimal:
    """The number as it is written: 0.1 for the float 0.1, not the binary fraction nearest to it."""
    return Decimal(float.__repr__(value)) if isinstance(value, float) else Decimal(value)


ARITHMETIC: Final = Context(prec=1000, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
"""Exact for whatever people write, and bounded for what they do not: 1e999999999 minus 1 must not fill the memory."""


def is_async(function: object) -> bool:
    """Whether calling something gives a coroutine."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an instance with an async __call__
    )


def _binding(function: Callable[..., Any], name: str, known: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The arguments a function takes by position, and those it can only be given by keyword."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some built-ins have no readable signature
        return tuple(known[:2]), ()
    own = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if not any(p.name in known for p in own):
        return _unnamed(parameters, name, known), ()
    unknown = [p.name for p in own if p.name not in known and p.default is p.empty]
    noun = "judge" if "first" in known else "scorer"
    if unknown:
        raise SpecError(
            f"{noun} {name!r} asks for {', '.join(unknown)}; a {noun} is given {', '.join(known)}: "
            "rename the parameter or give it a default"
        )
    head = [p.name for p in takewhile(lambda p: p.name in known and p.kind is not p.KEYWORD_ONLY, own)]
    keywords = (p.name for p in own[len(head) :] if p.name in known and p.kind is not p.POSITIONAL_ONLY)
    return tuple(head), tuple(keywords)


def _unnamed(parameters: Sequence[inspect.Parameter], name: str, known: Sequence[str]) -> tuple[str, ...]:
    """The arguments passed to a function whose parameters have other names: the first two of the known arguments."""
    required = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    n = max(len(required), 2 * any(p.kind is p.VAR_POSITIONAL for p in parameters))
    if not 1 <= n <= 2 or any(p.kind is p.KEYWORD_ONLY for p in required):
        raise SpecError(f"scorer {name!r}: give it parameters named from {', '.join(known)}")
    return tuple(known[:n])


def _parameters(scorer: Any) -> dict[str, Any]:
    if not dataclasses.is_dataclass(scorer):
        raise SpecError(f"scorer {type(scorer).__name__} has no known parameters; make it a frozen dataclass")
    return {f.name: getattr(scorer, f.name) for f in dataclasses.fields(scorer)}
