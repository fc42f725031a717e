"""Feedback functions: plain functions whose arguments are selected from what happened in a call."""

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.evaluation.feedback.calls import Missing as Missing, Result as Result, mean as mean
    from evaluand.evaluation.feedback.feedback import Aggregator as Aggregator, Feedback as Feedback

__getattr__, __dir__ = lazy_names(__name__)
