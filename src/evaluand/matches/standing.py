"""Whether those who judged matches were measured on what people have judged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from evaluand.evaluation.comparison_scorers import ComparisonScorer
from evaluand.evaluation.scorer import class_of
from evaluand.evaluation.standing import ScorerStanding
from evaluand.judges.cards.standing import find_standing
from evaluand.matches.labelled_sets import is_by_people, is_from_elsewhere, judge_of_matches, judges_elsewhere
from evaluand.matches.matches import Matches


def standings_of(matches: Matches) -> Sequence[ScorerStanding]:
    """Whether the judges of matches were measured, as their class says; none for people and functions.

    The judgements of other tools count as those of a judge, unless people are known to have made them.
    """
    if is_by_people(matches):
        return []
    if is_from_elsewhere(matches):
        judges = judges_elsewhere(matches)
        found = [find_standing(matches.store, judge, f"FILE --judge {judge.name}") for judge in judges]
        return [standing._replace(otherwise=_BY_PEOPLE) for standing in found]
    if not matches.manifest["provenance"].get("judges"):
        return []
    kind = class_of("comparison_scorers", matches.manifest["spec"]["judge"])
    kind = kind if issubclass(kind, ComparisonScorer) else ComparisonScorer
    return kind.standings(matches.store, [judge_of_matches(matches)], matches.name or matches.id[:_SHORT])


_SHORT: Final = 12
_BY_PEOPLE: Final = "; if people have judged, read the file with --by-people (in Python and experiments: by_people)"
