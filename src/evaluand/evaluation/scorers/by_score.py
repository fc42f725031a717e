"""`by_score`: compares two responses by the scores that a scorer of one response gives them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from evaluand.core.errors import SpecError
from evaluand.core.fingerprint import Identity
from evaluand.core.parameters import Within
from evaluand.evaluation.comparison_scorers import FIRST, SECOND, Better, ComparisonScorer, Preference
from evaluand.evaluation.scorer import NO_ANSWER, Score, as_scorer


@dataclass(frozen=True)
class ByScore(ComparisonScorer):
    """Compares two responses by the scores that another scorer gives them: the higher is better, equal ones tie.

    Args:
        scorer: a scorer of one response: an object, a function or the name of a kind.
        margin: the largest difference that still is a tie.
        higher_is_better: whether higher scores are better.

    Example:
        >>> from evaluand.evaluation.scorers.exact_match import ExactMatch
        >>> judge = ByScore(ExactMatch())
        >>> judge.as_score(judge.compare("4", "5", "5")).label
        'second'
    """

    kind = "by_score"
    version = 1

    scorer: Any
    margin: Annotated[float, Within(0)] = 0.0
    higher_is_better: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "scorer", as_scorer("scorer", self.scorer))
        object.__setattr__(self, "margin", float(self.margin))
        if "source" in self.scorer.arguments or self.scorer.is_async or self.scorer.is_batch or self.scorer.by_target:
            raise SpecError(
                f"by_score cannot call the scorer {self.scorer.kind!r}; it needs one that grades one response at a"
                " time, from the output and the example alone"
            )

    @property
    def cheap(self) -> bool:  # type: ignore[override]
        return bool(self.scorer.cheap)

    @property
    def is_judge(self) -> bool:  # type: ignore[override]
        return bool(self.scorer.is_judge)

    @property
    def arguments(self) -> tuple[str, ...]:
        return (FIRST, SECOND, *(name for name in self.scorer.arguments if name != "output"))

    def compare(self, first: Any, second: Any, *others: Any) -> Any:
        scores = [self._grade(response, others) for response in (first, second)]
        values: list[float] = []
        for score in scores:
            if score.error is not None:
                raise score.error
            if score.status != "scored" or score.value is None:
                return Score(None, None, None, None, "abstained", score.reason or "the scorer gave no number")
            values.append(score.value)
        difference = (values[0] - values[1]) * (1 if self.higher_is_better else -1)
        better: Better = "tie" if abs(difference) <= self.margin else FIRST if difference > 0 else SECOND
        return Preference(better, abs(difference), data=values)

    def check(self, expected: Any, outputs: Sequence[Any] = ()) -> None:
        self.scorer.check(expected, outputs)

    def check_example(self, example: Any) -> None:
        self.scorer.check_example(example)

    def _grade(self, response: Any, others: Sequence[Any]) -> Score:
        if response is None:
            return NO_ANSWER
        rest = iter(others)
        arguments = [response if name == "output" else next(rest) for name in self.scorer.arguments]
        found: Score = self.scorer.as_score(self.scorer.score(*arguments))
        return found

    def identify(self) -> Identity:
        graded_by: Identity = self.scorer.identify()
        spec = {"kind": self.kind, "version": self.version, "scorer": graded_by.spec, "margin": self.margin}
        return replace(graded_by, spec=spec | {"higher_is_better": self.higher_is_better})
