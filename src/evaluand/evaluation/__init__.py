"""Step 2: scorers, feedback functions, providers, human labels, Evaluator and Evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.evaluation.evaluator import Evaluation as Evaluation
    from evaluand.evaluation.evaluator import Evaluator as Evaluator
    from evaluand.evaluation.evaluator import ScorerFailed as ScorerFailed
    from evaluand.evaluation.feedback.feedback import Feedback as Feedback
    from evaluand.evaluation.feedback.results import Result as Result
    from evaluand.evaluation.human_labels import HumanLabels as HumanLabels
    from evaluand.evaluation.output_view import OutputView as OutputView
    from evaluand.evaluation.provider import Judgement as Judgement
    from evaluand.evaluation.provider import Provider as Provider
    from evaluand.evaluation.provider import RemoteProvider as RemoteProvider
    from evaluand.evaluation.provider import Reply as Reply
    from evaluand.evaluation.provider import Spending as Spending
    from evaluand.evaluation.provider import asks as asks
    from evaluand.evaluation.provider import spending as spending
    from evaluand.evaluation.reply_cache import Replies as Replies
    from evaluand.evaluation.scorer import FunctionScorer as FunctionScorer
    from evaluand.evaluation.scorer import Score as Score
    from evaluand.evaluation.scorer import Scorer as Scorer

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "evaluator": ("Evaluation", "Evaluator", "ScorerFailed"),
        "feedback.feedback": ("Feedback",),
        "feedback.results": ("Result",),
        "human_labels": ("HumanLabels",),
        "output_view": ("OutputView",),
        "provider": ("Judgement", "Provider", "RemoteProvider", "Reply", "Spending", "asks", "spending"),
        "reply_cache": ("Replies",),
        "scorer": ("FunctionScorer", "Score", "Scorer"),
    },
)
