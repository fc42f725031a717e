"""`imported`: scores that another tool gave, stored as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evaluand.evaluation.scorer import Score, Scorer


@dataclass(frozen=True)
class Imported(Scorer):
    """Has no scores of its own: those of a file are stored under its name, see `evaluand import`.

    A row without a score in the file abstains.

    Args:
        tool: the tool that gave the scores.
        scorer: the name of its scorer.
        scores: a digest of the scores, so that other scores of the same answers are another scorer.
        is_share: every score lies between 0 and 1.
        higher_is_better: whether higher scores are better; None if unknown.
    """

    kind = "imported"
    version = 1
    cheap = True

    tool: str
    scorer: str
    scores: str
    is_share: bool = False
    higher_is_better: bool | None = None

    @property
    def ranges(self) -> Mapping[str, tuple[float, float]]:  # type: ignore[override]
        return {"value": (0, 1)} if self.is_share else {}

    def score(self, output: Any, expected: Any) -> Score:
        """No score: the file has none for this row."""
        return Score.abstained(f"{self.tool} has not scored this row")
