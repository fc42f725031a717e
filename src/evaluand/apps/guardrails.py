"""Guardrails: decorators that judge with a feedback function during a call, and block what does not pass.

    @block_input(harmful, threshold=0.5, return_value="I cannot answer that.")
    def answer(question: str) -> str: ...

They decorate functions and methods, plain or async; feedback functions may be either, too. Each decision is a span of
kind `guardrail` with the score, the threshold and whether it passed. What a feedback cannot judge does not pass, unless
`undecided` says otherwise.
"""

import asyncio
import contextvars
import functools
import inspect
import math
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar, get_args

from evaluand.core.errors import SpecError, TaskError, described, nearest, warn
from evaluand.engine.event_loop import run_coroutine
from evaluand.evaluation.feedback.calls import to_number
from evaluand.evaluation.feedback.feedback import Feedback
from evaluand.evaluation.feedback.results import Result
from evaluand.trace.untraced import span

F = TypeVar("F", bound=Callable[..., Any])
Undecided = Literal["block", "pass", "fail"]


def block_input(
    feedback: Feedback,
    threshold: float,
    keyword_for_prompt: str | None = None,
    return_value: Any = None,
    *,
    undecided: Undecided = "block",
) -> Callable[[F], F]:
    """Call a function only if one of its arguments passes; else return `return_value`.

    Args:
        feedback: a feedback function of one argument, which says whether higher values are better.
        threshold: what is worse is blocked; what equals it passes.
        keyword_for_prompt: the argument to judge; default: the first one, after `self` or `cls`.
        return_value: what a blocked call returns.
        undecided: whether to `block` what the feedback cannot judge (it abstains or fails), with a warning, to `pass`
            it, or to `fail` with a TaskError.

    Raises:
        SpecError: the feedback has no direction, the threshold is not a number, or the function has no such argument.

    Example:
        >>> def length(text: str) -> float:
        ...     return float(len(text))
        >>> short = Feedback(length, higher_is_better=False)
        >>> @block_input(short, threshold=10, return_value="Too long.")
        ... def answer(question: str) -> str:
        ...     return "Jane Austen."
        >>> answer("Who?"), answer("Who wrote Emma?")
        ('Jane Austen.', 'Too long.')
    """
    guard = _Guard(feedback, threshold, undecided)

    def decorate(function: F) -> F:
        argument_of = _argument_reader(function, keyword_for_prompt)

        async def call_async(*args: Any, **kwargs: Any) -> Any:
            passed = await guard.passes_async(argument_of(args, kwargs))
            return await function(*args, **kwargs) if passed else return_value

        def call(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs) if guard.passes(argument_of(args, kwargs)) else return_value

        return _wrapped(function, call, call_async)

    return decorate


def block_output(
    feedback: Feedback, threshold: float, return_value: Any = None, *, undecided: Undecided = "block"
) -> Callable[[F], F]:
    """Return what a function returns only if it passes, else `return_value`; the arguments are those of `block_input`.

    Example:
        >>> def length(text: str) -> float:
        ...     return float(len(text))
        >>> @block_output(Feedback(length, higher_is_better=True), threshold=3, return_value="I do not know.")
        ... def answer(question: str) -> str:
        ...     return question[:5].strip()
        >>> answer("Emma?"), answer("?")
        ('Emma?', 'I do not know.')
    """
    guard = _Guard(feedback, threshold, undecided)

    def decorate(function: F) -> F:
        async def call_async(*args: Any, **kwargs: Any) -> Any:
            output = await function(*args, **kwargs)
            return output if await guard.passes_async(output) else return_value

        def call(*args: Any, **kwargs: Any) -> Any:
            output = function(*args, **kwargs)
            return output if guard.passes(output) else return_value

        return _wrapped(function, call, call_async)

    return decorate


def filter_contexts(
    feedback: Feedback,
    threshold: float,
    keyword_for_prompt: str | None = None,
    *,
    undecided: Undecided = "block",
) -> Callable[[F], F]:
    """Of the list that a function returns, keep the elements that pass, in their order; judges them concurrently.

    Args:
        feedback: a feedback function of two arguments, the question and a context.
        threshold: a context must be better; one that equals it is left out.
        keyword_for_prompt: the argument with the question; default: the first one, after `self` or `cls`.
        undecided: whether to leave out (`block`) a context that the feedback cannot judge, with a warning, to keep it
            (`pass`), or to `fail` with a TaskError.

    Raises:
        SpecError: the feedback has no direction, the threshold is not a number, or the function has no such argument.

    Example:
        >>> def shared(question: str, context: str) -> float:
        ...     return float(question in context)
        >>> @filter_contexts(Feedback(shared, higher_is_better=True), threshold=0.5)
        ... def retrieve(query: str) -> list[str]:
        ...     return ["Emma is a novel.", "It rains.", "Jane Austen wrote Emma."]
        >>> retrieve("Emma")
        ['Emma is a novel.', 'Jane Austen wrote Emma.']
    """
    guard = _Guard(feedback, threshold, undecided, strictly=True)

    def decorate(function: F) -> F:
        argument_of = _argument_reader(function, keyword_for_prompt)

        async def call_async(*args: Any, **kwargs: Any) -> Any:
            question = argument_of(args, kwargs)
            contexts = _require_contexts(await function(*args, **kwargs), function)
            passed = await asyncio.gather(*(guard.passes_async(question, each) for each in contexts))
            return [each for each, passes in zip(contexts, passed, strict=True) if passes]

        def call(*args: Any, **kwargs: Any) -> Any:
            question = argument_of(args, kwargs)
            contexts = _require_contexts(function(*args, **kwargs), function)
            passed = _in_threads(functools.partial(guard.passes, question), contexts)
            return [each for each, passes in zip(contexts, passed, strict=True) if passes]

        return _wrapped(function, call, call_async)

    return decorate


@dataclass(frozen=True)
class _Guard:
    """A feedback function with the threshold that decides what passes.

    Attributes:
        strictly: what equals the threshold does not pass.
    """

    feedback: Feedback
    threshold: float
    undecided: Undecided
    strictly: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.feedback, Feedback):
            raise SpecError(f"a guardrail needs a feedback function, not {described(self.feedback)}; pass Feedback(…)")
        if not isinstance(self.feedback.higher_is_better, bool):
            raise SpecError(f"guardrail {self.feedback.name!r} has no direction; pass higher_is_better to Feedback(…)")
        number = None if isinstance(self.threshold, bool) else to_number(self.threshold)
        if number is None or not math.isfinite(number):
            raise SpecError(f"the guardrail's threshold is {described(self.threshold)}; give a number")
        if self.undecided not in get_args(Undecided):
            raise SpecError(f"undecided is {self.undecided!r}; give one of {', '.join(get_args(Undecided))}")

    def passes(self, *values: Any) -> bool:
        if self.feedback.is_async:
            return run_coroutine(self.passes_async(*values))
        with self._span() as current:
            return self._decide(self.feedback.evaluate({}, **self._arguments(values)), current)

    async def passes_async(self, *values: Any) -> bool:
        with self._span() as current:
            arguments = self._arguments(values)
            if self.feedback.is_async:
                result = await self.feedback.evaluate_async({}, **arguments)
            else:
                result = await asyncio.to_thread(self.feedback.evaluate, {}, **arguments)
            return self._decide(result, current)

    def _span(self) -> Any:
        return span(self.feedback.name, kind="guardrail", threshold=float(self.threshold))

    def _arguments(self, values: Sequence[Any]) -> dict[str, Any]:
        names = self.feedback.accepts.names
        if len(names) < len(values):
            raise SpecError(
                f"the guardrail passes {len(values)} arguments, but {self.feedback.accepts.function} has "
                f"{self.feedback.accepts}"
            )
        return dict(zip(names, values, strict=False))

    def _decide(self, result: Result, current: Any) -> bool:
        if isinstance(result.error, SpecError):
            raise result.error
        score = to_number(result.value) if result.status == "scored" else None
        if score is None or not math.isfinite(score):
            passed = self._decide_without(result.reason or f"it returned {described(result.value)}")
        else:
            margin = (score - self.threshold) * (1 if self.feedback.higher_is_better else -1)
            passed = margin > 0 if self.strictly else margin >= 0
        current.set(score=score, passed=passed)
        return passed

    def _decide_without(self, reason: str) -> bool:
        problem = f"guardrail {self.feedback.name!r} has no score: {reason}"
        if self.undecided == "fail":
            raise TaskError(problem)
        warn(f"{problem}; {_OUTCOMES[self.undecided]}")
        return self.undecided == "pass"


_OUTCOMES: Final = {"block": "what it could not judge is blocked", "pass": "what it could not judge passes"}


class UnknownArgument(SpecError, TypeError):
    """A decorated function has no such argument."""


def _argument_reader(function: Callable[..., Any], name: str | None) -> Callable[[Any, Any], Any]:
    """Reads the argument to judge from the arguments of a call; default: the first one, after `self` or `cls`."""
    title = getattr(function, "__name__", described(function))
    signature = inspect.signature(function)
    names = [each for each in signature.parameters if each not in ("self", "cls")]
    if name is None and not names:
        raise UnknownArgument(f"{title} has no argument that a guardrail could judge")
    judged = names[0] if name is None else name
    if judged not in names:
        raise UnknownArgument(f"{title} has no argument {judged!r}{nearest(judged, names)}; it has {', '.join(names)}")

    def read(args: Any, kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.arguments[judged]

    return read


def _wrapped(function: F, call: Callable[..., Any], call_async: Callable[..., Awaitable[Any]]) -> F:
    if isinstance(function, staticmethod | classmethod):
        raise SpecError(f"put the guardrail below @{type(function).__name__}, next to the function")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise SpecError(
            f"{function.__name__} yields its output in pieces, which a guardrail cannot judge; decorate a function "
            "that returns it as one"
        )
    made: Any = functools.wraps(function)(call_async if inspect.iscoroutinefunction(function) else call)
    return made  # type: ignore[no-any-return]


def _require_contexts(found: Any, function: Callable[..., Any]) -> Sequence[Any]:
    if isinstance(found, list | tuple):
        return found
    raise SpecError(f"{function.__name__} returned {described(found)}; a guardrail filters a list of contexts")


def _in_threads(judge: Callable[[Any], bool], contexts: Sequence[Any]) -> list[bool]:
    """Judge each context, several at once; spans and costs count where the call is."""
    if len(contexts) < 2:
        return [judge(each) for each in contexts]
    with ThreadPoolExecutor(min(len(contexts), _AT_ONCE)) as threads:
        calls = [threads.submit(contextvars.copy_context().run, judge, each) for each in contexts]
        return [call.result() for call in calls]


_AT_ONCE: Final = 16
