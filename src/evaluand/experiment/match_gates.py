"""Gates of an experiment on its matches: the ratings that each gate is about, and whether it can be checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from evaluand.comparison.checking import GateResult
from evaluand.comparison.rule import AGAINST, BASELINE, Gate
from evaluand.core.errors import SpecError, nearest
from evaluand.matches.ratings.method import RatingMethod
from evaluand.matches.ratings.rating import Ratings
from evaluand.matches.ratings.rating_gates import check_limits, check_rating_gates
from evaluand.predictions.tournament import Tournament

MATCHES = "matches"
"""The parameter of a gate that names one of several sets of matches: `win_rate(mine, base, matches=helpful) >= 0.5`."""


def check_match_gates(gates: Sequence[Gate], tournaments: Sequence[Tournament], tasks: Sequence[str]) -> None:
    """Refuses gates that could never be checked, before anything runs.

    Args:
        tasks: those of the experiment.

    Raises:
        SpecError: matches or a system do not exist, the systems are not rated, or no rating can have the number.
    """
    by_name = {one.name: one for one in tournaments}
    for gate in gates:
        tournament = by_name[_choose(gate, [*by_name])]
        if tournament.rating is None:
            raise SpecError(f"gate {gate.text!r} needs ratings, and {tournament.name!r} has rating: none")
        systems = tournament.systems(tasks)
        for label in (gate.scorer, dict(gate.parameters).get(AGAINST), gate.baseline):
            if label is not None and label not in (*systems, BASELINE):
                raise gate.fault(f"no system is called {label!r}{nearest(label, systems)}: {', '.join(systems)}")
        assert isinstance(tournament.rating, RatingMethod)  # a name of a kind has become one
        check_limits(gate, tournament.rating)


def evaluate_match_gates(
    gates: Sequence[Gate],
    ratings: Mapping[str, Ratings],
    unrated: Mapping[str, str],
    *,
    allow_unmeasured_judges: bool = False,
) -> list[GateResult]:
    """Checks gates by the ratings of their matches; a gate fails if systems were not rated.

    Args:
        ratings: name of matches → ratings.
        unrated: name of matches → why their systems have no ratings.
        allow_unmeasured_judges: as in `check_rating_gates`.

    Raises:
        SpecError: a gate names matches or a system that do not exist.
    """
    results = []
    for gate in gates:
        name = _choose(gate, [*ratings, *unrated])
        if name in unrated:
            results.append(GateResult.undecided(gate, gate.scorer or "judge", f"undefined: {unrated[name]}"))
            continue
        own = tuple(each for each in gate.parameters if each[0] != MATCHES)
        rule = replace(gate, parameters=own)
        [result] = check_rating_gates([rule], ratings[name], allow_unmeasured_judges=allow_unmeasured_judges)
        results.append(replace(result, gate=gate))
    return results


def _choose(gate: Gate, known: Sequence[str]) -> str:
    """The name of the matches that a gate is about."""
    named = dict(gate.parameters).get(MATCHES)
    if not known:
        raise SpecError(f"gate {gate.text!r} needs matches: write them under matches in the experiment file")
    if named is None and len(known) == 1:
        return known[0]
    if named is None:
        raise gate.fault(f"name the matches: {gate.metric}(SYSTEM, matches={' | '.join(known)})")
    if named not in known:
        raise gate.fault(f"no matches are called {named!r}{nearest(named, known)}: {', '.join(known)}")
    return named
