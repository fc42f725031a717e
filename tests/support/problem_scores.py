"""What scores of a problem know beyond their values."""

from __future__ import annotations

from collections.abc import Sequence

from evaluand.core.errors import Fault
from evaluand.predictions.result import SystemScores
from evaluand.predictions.scoring import GradedProblem


def graded(scores: SystemScores) -> GradedProblem:
    """The judged parts."""
    assert isinstance(scores.graded, GradedProblem)
    return scores.graded


def noted(scores: SystemScores) -> Sequence[Fault]:
    """The notes with their places and codes."""
    return graded(scores).notes
