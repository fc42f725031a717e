"""Judges: rubrics as data, and the scorers by which language models judge with them."""

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.judges.judge import Judge as Judge, PairwiseJudge as PairwiseJudge
    from evaluand.judges.jury import Jury as Jury, PairwiseJury as PairwiseJury
    from evaluand.judges.rubric import Rubric as Rubric, rubric_names as rubric_names
    from evaluand.judges.tree import JudgeTree as JudgeTree

__getattr__, __dir__ = lazy_names(__name__)
