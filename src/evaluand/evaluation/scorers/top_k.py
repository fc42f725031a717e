"""Whether the expected answer is among the first k of a ranking.

For a system whose one answer is a ranking: labels in order, or a score for each label. Where a task gives several
answers as `Candidates`, each is graded for itself, by any scorer, and the metric `top_k` reads the first k grades.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evaluand.core.errors import DataError
from evaluand.evaluation.scorer import NOTHING_EXPECTED, RIGHT, WRONG, Score, described, require_text, wrong_parameter
from evaluand.evaluation.scorers.exact_match import ExactMatch


@dataclass(frozen=True, kw_only=True)
class TopK(ExactMatch):
    """1 where one of the first k labels is what was expected, 0 where none is; labels compare as with `exact_match`.

    The output is a list of labels, best first, or an object label → score, of which higher is better. Labels with equal
    scores have no order: one is among the first k only if it would be in any order of them, so that a system that gives
    every label the same score is not right by chance. Abstains where nothing is expected and where there is no ranking.

    Attributes:
        k: how many labels are looked at.
        ranking_key: where in an output that is an object the ranking stands, such as `probabilities`; None where the
            whole output is the ranking.
        normalise: what is forgiven when labels are compared, see `exact_match`.
        any_of: the expected value is a list of acceptable labels.

    Raises:
        SpecError: k is no whole number of at least 1.

    Example:
        >>> TopK(k=2).score(["cat", "dog", "cow"], "dog").value, TopK(k=1).score({"cat": 0.6, "dog": 0.4}, "dog").value
        (1.0, 0.0)
    """

    kind = "top_k"
    version = 1
    cheap = True

    k: int
    ranking_key: str | None = None

    def __post_init__(self) -> None:
        k: Any = self.k
        if not isinstance(k, int) or isinstance(k, bool) or k < 1:
            raise wrong_parameter(self, "k", "give a whole number of at least 1")
        require_text(self, "ranking_key", optional=True)
        super().__post_init__()

    def score(self, output: Any, expected: Any) -> Score:
        """Looks for the expected label.

        Raises:
            DataError: the output is no ranking, or a label is expected of another type than the output's.
        """
        if expected is None:
            return NOTHING_EXPECTED
        ranking = self._ranking(output)
        if not ranking:
            return Score.abstained(f"there is no ranking: the output is {described(output)}")
        first = self._first(ranking) if isinstance(ranking, Mapping) else ranking[: self.k]
        grades = [super(TopK, self).score(label, expected) for label in first]
        abstained = next((grade for grade in grades if grade.value is None), None)
        return abstained or (RIGHT if any(grade.value for grade in grades) else WRONG)

    def _ranking(self, output: Any) -> Any:
        ranking = output
        if self.ranking_key is not None and isinstance(output, Mapping):
            if self.ranking_key not in output:
                keys = ", ".join(map(repr, output)) or "no keys"
                raise DataError(f"there is no ranking: the output has {keys} and not {self.ranking_key!r}")
            ranking = output[self.ranking_key]
        if ranking is not None and not isinstance(ranking, list | tuple | Mapping):
            raise DataError(
                f"the ranking is {described(ranking)}, not a list of labels or an object label → score; where a task"
                " gives several answers, take the scorer exact_match and the metric top_k"
            )
        return ranking

    def _first(self, scores: Mapping[str, Any]) -> list[str]:
        """The labels that are among the first k however equal scores are ordered."""
        for label, score in scores.items():
            if not isinstance(score, int | float) or isinstance(score, bool) or math.isnan(score):
                raise DataError(f"the score of {label!r} is {described(score)}, not a number")
        least = sorted(scores.values(), reverse=True)[self.k :][:1]
        return [label for label, score in scores.items() if not least or score > least[0]]
