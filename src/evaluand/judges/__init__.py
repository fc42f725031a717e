"""Judges: rubrics as data, the scorers by which language models judge with them, and how good they are.

`cards/` measures judges on what people have labelled; `people/` holds the labels of people, and how they are collected.
"""

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.judges.cards.card import JudgeCard as JudgeCard, make_card as make_card
    from evaluand.judges.cards.from_evaluation import read_labelled_evaluation as read_labelled_evaluation
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

__getattr__, __dir__ = lazy_names(__name__)
