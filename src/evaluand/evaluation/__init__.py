"""Step 2: scorers, feedback functions, providers, human labels, Evaluator and Evaluation."""

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.evaluation.evaluator import (
        Evaluation as Evaluation,
        Evaluator as Evaluator,
        ScorerFailed as ScorerFailed,
    )
    from evaluand.evaluation.feedback.calls import Result as Result
    from evaluand.evaluation.feedback.feedback import Feedback as Feedback
    from evaluand.evaluation.human_labels import HumanLabels as HumanLabels
    from evaluand.evaluation.output_view import OutputView as OutputView
    from evaluand.evaluation.provider import (
        Judgement as Judgement,
        Provider as Provider,
        RemoteProvider as RemoteProvider,
        Reply as Reply,
        Spending as Spending,
        asks as asks,
        spending as spending,
    )
    from evaluand.evaluation.reply_cache import Replies as Replies
    from evaluand.evaluation.scorer import FunctionScorer as FunctionScorer, Score as Score, Scorer as Scorer

__getattr__, __dir__ = lazy_names(__name__)
