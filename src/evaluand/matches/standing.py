"""Whether those who judged matches were measured on what people have judged."""

from __future__ import annotations

from typing import Final

from evaluand.evaluation.comparison_scorers import ComparisonScorer
from evaluand.evaluation.scorer import class_of
from evaluand.evaluation.standing import ScorerStanding
from evaluand.judges.cards.labelled_set import JudgeIdentity
from evaluand.judges.cards.standing import find_standing
from evaluand.matches.labelled_sets import is_by_people, is_from_elsewhere, judge_of_matches, judges_elsewhere
from evaluand.matches.matches import Matches


def standings_of(matches: Matches) -> list[tuple[JudgeIdentity, ScorerStanding]]:
    """The judges of matches, each with whether it was measured, as its class says; none for people and functions.

    The judgements of other tools count as those of a judge, unless people are known to have made them.
    """
    if is_by_people(matches):
        return []
    if is_from_elsewhere(matches):
        judges = judges_elsewhere(matches)
        found = [find_standing(matches.store, judge, f"FILE --judge {judge.name}") for judge in judges]
        return [(judge, one._replace(otherwise=_BY_PEOPLE)) for judge, one in zip(judges, found, strict=True)]
    if not matches.manifest["provenance"].get("judges"):
        return []
    kind = class_of("comparison_scorers", matches.manifest["spec"]["judge"])
    kind = kind if issubclass(kind, ComparisonScorer) else ComparisonScorer
    judge = judge_of_matches(matches)
    return [(judge, one) for one in kind.standings(matches.store, [judge], matches.name or matches.id[:_SHORT])]


_SHORT: Final = 12
_BY_PEOPLE: Final = "; if people have judged, read the file with --by-people (in Python and experiments: by_people)"
