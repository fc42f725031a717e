"""Comparison scorers: what judges two responses, or several, to one example.

A comparison scorer sees the responses in the order in which they are presented and not who gave them. It returns which
is better, a probability, or a `Preference`. Everything else is as for scorers of one response: errors cost one
comparison, several calls are made at once, and its identity decides what is reused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple, Unpack, overload

from evaluand.core.errors import DataError, SpecError, described, nearest
from evaluand.core.registry import find
from evaluand.evaluation.scorer import (
    FunctionOptions,
    FunctionScorer,
    Score,
    Scorer,
    is_async,
    is_number,
    made_of,
    read_number,
)

if TYPE_CHECKING:
    from evaluand.evaluation.standing import ScorerStanding
    from evaluand.run.runner import Run
    from evaluand.store.store import Store

FIRST: Final = "first"
SECOND: Final = "second"
RESPONSES: Final = "responses"
STRENGTH: Final = "strength"
COMPARISON_ARGUMENTS: Final = (
    FIRST,
    SECOND,
    "input",
    "expected",
    "example",
    "index",
    "replication",
    "weight",
    RESPONSES,
)
"""The arguments that a comparison scorer can have; `responses` are all responses to the example, for one that compares
several at once, in place of `first` and `second`."""

_SHARES: Final = {FIRST: 1.0, SECOND: 0.0, "tie": 0.5}
Better = Literal["first", "second", "tie"]


class Preference(NamedTuple):
    """Which of two responses is better.

    Attributes:
        better: `first`, `second` or `tie`, or the probability that the first is better.
        strength: how much better, 0 or more, on a scale of the judge.
        explanation: why, for people.
        label: the judge's own word, such as `A>>B`.
        data: anything JSON-like.

    Example:
        >>> Preference("second", strength=2.0, explanation="it is shorter").score.value
        0.0
    """

    better: Better | float
    strength: float | None = None
    explanation: str | None = None
    label: str | None = None
    data: Any = None

    @property
    def score(self) -> Score:
        """The preference as a score, whose value is the first response's share of the win: 1, ½ or 0."""
        strength = None if self.strength is None else read_number("the strength", self.strength, 0)
        label = self.label if self.label is not None or not isinstance(self.better, str) else self.better
        return Score(_share(self.better), label, self.data, self.explanation, columns={STRENGTH: strength})


class ComparisonScorer(Scorer):
    """Judges two responses to one example, or several. Subclasses are frozen dataclasses with `kind` and `compare`."""

    kind: ClassVar[str]
    has_pairs: ClassVar[bool] = False
    """Whether the pairs are those of the judge, so that no schedule chooses them."""
    ranges: ClassVar[Mapping[str, tuple[float, float]]] = {"value": (0.0, 1.0)}

    @property
    def arguments(self) -> tuple[str, ...]:
        return (FIRST, SECOND)

    @property
    def columns(self) -> Mapping[str, str]:
        return {STRENGTH: "double"}

    @property
    def compares_all(self) -> bool:
        """Whether it is called once with all responses to an example."""
        return RESPONSES in self.arguments

    def compare(self, first: Any, second: Any) -> Any:
        """Which of two responses is better; may be a coroutine function, and have other arguments, see `arguments`.

        Returns:
            `first`, `second` or `tie`; the probability that the first is better; a `Preference`; or None to abstain.
            With the argument `responses`: a number for each response, higher is better.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define how it compares two responses")

    def score(self, *arguments: Any) -> Any:
        return self.compare(*arguments)

    def read_matches(self, runs: Sequence[Run], labels: Sequence[str], **options: Any) -> Any:
        """The matches of runs, if they have been judged already and nothing is to be compared.

        Args:
            runs: over one dataset; `labels` are those of the systems.
            options: name, limit, resume and origin, as in `Matcher.match`.
        """
        return None

    @classmethod
    def standings(cls, store: Store, judges: Sequence[Any], source: str) -> Sequence[ScorerStanding]:
        """Whether those who judged matches were measured; by default as judges are.

        Args:
            judges: who they are, as the matches say.
            source: what names the matches.
        """
        judge: type[ComparisonScorer] = find("comparison_scorers", "judge")
        return judge.standings(store, judges, source)

    @property
    def is_async(self) -> bool:
        return is_async(self.compare)

    def as_score(self, result: Any) -> Score:
        return _read_numbers(result) if self.compares_all else _read_preference(result)


class FunctionComparison(FunctionScorer, ComparisonScorer):
    """A user's function as a comparison scorer; its identity is the fingerprint of the function.

    Args:
        function: has parameters named from `COMPARISON_ARGUMENTS`, in any order, or else two of any name, which are
            given the first and the second response. Further parameters need defaults.
        name: shown in tables; the function's name if not given.
        version: names what the code cannot show, such as the model that it asks.
        files: further files whose content it depends on.
        batch: whether each argument is a list, and so is the result.

    Raises:
        SpecError: the function has a parameter that no comparison scorer can have.
    """

    kind = "function"
    known_arguments = COMPARISON_ARGUMENTS

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        super().__init__(function, **options)
        if (len(self.arguments) < 2 and not self.compares_all) or (self.compares_all and FIRST in self.arguments):
            raise SpecError(
                f"judge {self.name!r} has the parameters {', '.join(self.arguments)}; give it the parameters first and"
                " second, or responses for all responses to an example"
            )


@overload
def comparison_scorer(function: Callable[..., Any], /, **options: Unpack[FunctionOptions]) -> FunctionComparison: ...
@overload
def comparison_scorer(**options: Unpack[FunctionOptions]) -> Callable[[Callable[..., Any]], FunctionComparison]: ...
def comparison_scorer(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Makes a function a comparison scorer.

    Example:
        >>> @comparison_scorer
        ... def shorter(first, second):
        ...     return "tie" if len(first) == len(second) else "first" if len(first) < len(second) else "second"
        >>> shorter.as_score(shorter("ab", "a")).value
        0.0
    """
    if function is None:
        return lambda f: FunctionComparison(f, **options)
    return FunctionComparison(function, **options)


def as_comparison_scorer(judge: ComparisonScorer | Callable[..., Any] | str) -> ComparisonScorer:
    """A comparison scorer from an object, a function, or the name of a kind with its defaults.

    Raises:
        SpecError: it is none of these.
    """
    if isinstance(judge, Scorer) and not isinstance(judge, ComparisonScorer):
        raise SpecError(
            f"scorer {judge.kind!r} grades one response; to compare two by its scores, write ByScore({judge.kind}), or"
            " `by_score` in an experiment file"
        )
    return made_of("the judge", judge, ComparisonScorer, "comparison_scorers", FunctionComparison)


def _read_preference(result: Any) -> Score:
    if isinstance(result, Preference):
        return result.score
    if isinstance(result, Score):
        if result.value is not None:
            _share(result.value)
        return result
    if result is None:
        return Score.abstained("the judge returned None")
    return Score(_share(result), result if isinstance(result, str) else None)


def _share(better: Any) -> float:
    """The first response's share of the win."""
    if isinstance(better, str):
        if better in _SHARES:
            return _SHARES[better]
        raise DataError(f"the judge returned {better!r}; give first, second or tie{nearest(better, list(_SHARES))}")
    number = better.item() if hasattr(better, "item") and getattr(better, "ndim", None) == 0 else better
    if not is_number(number) or not 0 <= number <= 1:
        raise DataError(
            f"the judge returned {described(number)}; give first, second or tie, or the probability that the first is"
            " better"
        )
    return float(number)


def _read_numbers(result: Any) -> Score:
    """The score of several responses: a number for each, as data."""
    if isinstance(result, Score):
        return result
    if result is None:
        return Score.abstained("the judge returned None")
    numbers = result.tolist() if hasattr(result, "tolist") else result
    if not isinstance(numbers, list | tuple) or not all(is_number(n) and math.isfinite(n) for n in numbers):
        raise DataError(f"the judge returned {described(result)}; give a finite number for each response, in a list")
    return Score(data=[float(number) for number in numbers])
