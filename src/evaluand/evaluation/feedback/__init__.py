"""Feedback functions: plain functions whose arguments are selected from what happened in a call."""

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.evaluation.feedback.feedback import Feedback as Feedback
    from evaluand.evaluation.feedback.results import Aggregator as Aggregator, Result as Result, mean as mean
    from evaluand.evaluation.feedback.selection import Missing as Missing

__getattr__, __dir__ = lazy_names(__name__)
