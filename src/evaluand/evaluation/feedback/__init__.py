"""Feedback functions: plain functions whose arguments are selected from what happened in a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.evaluation.feedback.feedback import Aggregator as Aggregator
    from evaluand.evaluation.feedback.feedback import Feedback as Feedback
    from evaluand.evaluation.feedback.results import Missing as Missing
    from evaluand.evaluation.feedback.results import Result as Result
    from evaluand.evaluation.feedback.results import mean as mean

__getattr__, __dir__, __all__ = lazy_names(
    __name__, {"feedback": ("Aggregator", "Feedback"), "results": ("Missing", "Result", "mean")}
)
