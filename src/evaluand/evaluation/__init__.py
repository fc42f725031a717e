"""Step 2: scorers, comparison scorers, feedback functions, providers, human labels, Evaluator and Evaluation."""

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.evaluation.evaluator import (
        Evaluation as Evaluation,
        Evaluator as Evaluator,
        ScorerFailed as ScorerFailed,
    )
    from evaluand.evaluation.feedback.feedback import Feedback as Feedback
    from evaluand.evaluation.feedback.results import Result as Result
    from evaluand.evaluation.human_labels import (
        HumanLabels as HumanLabels,
        Label as Label,
        labelled as labelled,
        labelling_rows as labelling_rows,
        read_labels as read_labels,
    )
    from evaluand.evaluation.judges.cards.card import JudgeCard as JudgeCard, make_card as make_card
    from evaluand.evaluation.judges.cards.from_evaluation import read_labelled_evaluation as read_labelled_evaluation
    from evaluand.evaluation.judges.cards.from_files import read_labelled_file as read_labelled_file
    from evaluand.evaluation.judges.cards.from_matches import read_labelled_matches as read_labelled_matches
    from evaluand.evaluation.judges.cards.labelled_set import LabelledSet as LabelledSet
    from evaluand.evaluation.judges.cards.standing import Standing as Standing, standings as standings
    from evaluand.evaluation.judges.cards.tuning import Tuning as Tuning, tune_judges as tune_judges
    from evaluand.evaluation.judges.judge import Judge as Judge, PairwiseJudge as PairwiseJudge
    from evaluand.evaluation.judges.jury import Jury as Jury, PairwiseJury as PairwiseJury
    from evaluand.evaluation.judges.rubric import Rubric as Rubric, rubric_names as rubric_names
    from evaluand.evaluation.judges.tree import JudgeTree as JudgeTree
    from evaluand.evaluation.matching.adaptive import InformationGain as InformationGain, Swiss as Swiss
    from evaluand.evaluation.matching.agreement import agreement as agreement
    from evaluand.evaluation.matching.battles import read_battles as read_battles
    from evaluand.evaluation.matching.comparison_scorers import (
        ComparisonScorer as ComparisonScorer,
        FunctionComparison as FunctionComparison,
        Preference as Preference,
        comparison_scorer as comparison_scorer,
    )
    from evaluand.evaluation.matching.fixed import AgainstBaseline as AgainstBaseline, AllPairs as AllPairs
    from evaluand.evaluation.matching.matcher import Matcher as Matcher
    from evaluand.evaluation.matching.matches import Matches as Matches
    from evaluand.evaluation.matching.people import (
        match_by_people as match_by_people,
        pairs_to_judge as pairs_to_judge,
        read_judged as read_judged,
    )
    from evaluand.evaluation.matching.schedule import Schedule as Schedule
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
    from evaluand.evaluation.scorers.recorded_battles import RecordedBattles as RecordedBattles
    from evaluand.evaluation.scorers.spans import HighlightCoverage as HighlightCoverage
    from evaluand.evaluation.scorers.text_overlap import Bleu as Bleu, Chrf as Chrf, Rouge as Rouge

__getattr__, __dir__ = lazy_names(__name__)
