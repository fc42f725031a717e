"""Step 2: scorers, comparison scorers, feedback functions, providers, human labels, Evaluator and Evaluation."""

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
    from evaluand.judges.cards.card import JudgeCard as JudgeCard, make_card as make_card
    from evaluand.judges.cards.from_evaluation import read_labelled_evaluation as read_labelled_evaluation
    from evaluand.judges.cards.from_files import read_labelled_file as read_labelled_file
    from evaluand.judges.cards.labelled_set import LabelledSet as LabelledSet
    from evaluand.judges.cards.standing import Standing as Standing, standings as standings
    from evaluand.judges.cards.tuning import Tuning as Tuning, tune_judges as tune_judges
    from evaluand.judges.judge import Judge as Judge, PairwiseJudge as PairwiseJudge
    from evaluand.judges.jury import Jury as Jury, PairwiseJury as PairwiseJury
    from evaluand.judges.people.human_labels import (
        HumanLabels as HumanLabels,
        Label as Label,
        labelled as labelled,
        labelling_rows as labelling_rows,
        read_labels as read_labels,
    )
    from evaluand.judges.rubric import Rubric as Rubric, rubric_names as rubric_names
    from evaluand.judges.tree import JudgeTree as JudgeTree
    from evaluand.matches.adaptive import InformationGain as InformationGain, Swiss as Swiss
    from evaluand.matches.agreement import agreement as agreement
    from evaluand.matches.battles import read_battles as read_battles
    from evaluand.matches.fixed import AgainstBaseline as AgainstBaseline, AllPairs as AllPairs
    from evaluand.matches.labelled_sets import read_labelled_matches as read_labelled_matches
    from evaluand.matches.matcher import Matcher as Matcher
    from evaluand.matches.matches import Matches as Matches
    from evaluand.matches.people import (
        match_by_people as match_by_people,
        pairs_to_judge as pairs_to_judge,
        read_judged as read_judged,
    )
    from evaluand.matches.recorded_battles import RecordedBattles as RecordedBattles
    from evaluand.matches.schedule import Schedule as Schedule

__getattr__, __dir__ = lazy_names(__name__)
