"""Step 2: scorers, comparison scorers, feedback functions, providers, Evaluator and Evaluation."""

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.evaluation.comparison_scorers import (
        ComparisonScorer as ComparisonScorer,
        FunctionComparison as FunctionComparison,
        Preference as Preference,
        comparison_scorer as comparison_scorer,
    )
    from evaluand.evaluation.evaluator import (
        Evaluation as Evaluation,
        Evaluator as Evaluator,
        ScorerFailed as ScorerFailed,
    )
    from evaluand.evaluation.feedback.feedback import Feedback as Feedback
    from evaluand.evaluation.feedback.results import Result as Result
    from evaluand.evaluation.output_view import ExpectedView as ExpectedView, OutputView as OutputView
    from evaluand.evaluation.provider import (
        Judgement as Judgement,
        Provider as Provider,
        RemoteProvider as RemoteProvider,
        Reply as Reply,
        asks as asks,
    )
    from evaluand.evaluation.scorer import FunctionScorer as FunctionScorer, Score as Score, Scorer as Scorer
    from evaluand.evaluation.scorers.by_score import ByScore as ByScore
    from evaluand.evaluation.scorers.exact_match import TopK as TopK
    from evaluand.evaluation.scorers.prediction import Prediction as Prediction
    from evaluand.evaluation.scorers.spans import HighlightCoverage as HighlightCoverage
    from evaluand.evaluation.scorers.text_overlap import Bleu as Bleu, Chrf as Chrf, Rouge as Rouge

__getattr__, __dir__ = lazy_names(__name__)
