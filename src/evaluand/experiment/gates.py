"""Gates of an experiment, on its metrics and on its matches: whether they can be checked, and their results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from evaluand.comparison.checking import GateResult
from evaluand.comparison.gates import check_fit, check_gates, find_candidates
from evaluand.comparison.rule import AGAINST, BASELINE, Gate
from evaluand.core.errors import SpecError, nearest
from evaluand.matches.ratings.method import RatingMethod
from evaluand.matches.ratings.rating import Ratings
from evaluand.matches.ratings.rating_gates import check_limits, check_rating_gates, check_system
from evaluand.predictions.steps import Results, Steps
from evaluand.predictions.tournament import Tournament
from evaluand.store.store import Store


def choose_baseline(gates: Iterable[Gate], tasks: Sequence[str]) -> str | None:
    """The task that gates on metrics do not judge: what a rule names first as its baseline, or else the first task.

    Returns:
        None where all are candidates: of a single task, and if what is named first is in the store alone.

    Example:
        >>> choose_baseline([Gate.parse("accuracy >= 0.9")], ["base", "mine"])
        'base'
        >>> choose_baseline([Gate.parse("cost <= 2"), Gate.parse("accuracy better than old")], ["mine", "old"])
        'old'
    """
    named = next((gate.baseline for gate in gates if gate.baseline is not None), BASELINE)
    baseline = tasks[0] if named == BASELINE and named not in tasks else named
    return baseline if len(tasks) > 1 and baseline in tasks else None


def check_experiment_gates(
    gates: Sequence[Gate], experiment: Steps, tasks: Sequence[str], store: Store, *, has_matches: bool = True
) -> None:
    """Refuses gates that could never be checked, before anything runs.

    Args:
        tasks: those that run, and others that baselines may be.
        has_matches: whether they are judged.

    Raises:
        SpecError: the experiment and the store do not have what a gate names.
    """
    of_metrics = [gate for gate in gates if not experiment.is_of_matches(gate)]
    if of_metrics and not experiment.scorers:
        raise SpecError(f"gate {of_metrics[0].text!r} is about a metric; write scorers and metrics into the file")
    of_matches = [*filter(experiment.is_of_matches, gates)]
    check_match_gates(of_matches, experiment.matches if has_matches else (), [*experiment.tasks])
    baseline, names = choose_baseline(gates, tasks), {task: experiment.run_name(task) for task in tasks}
    for gate in of_metrics:
        find_candidates(gate, names, baseline)
    known, attributes = [*names, *names.values()], experiment.dataset.roles.attributes
    known += [BASELINE] if baseline else []
    check_fit(of_metrics, [*experiment.scorers], experiment.measures_of_all_rows, attributes, known, store)


def evaluate_experiment_gates(
    gates: Sequence[Gate],
    experiment: Steps,
    results: Results,
    baseline: str | None,
    *,
    allow_unmeasured_judges: bool = False,
) -> list[GateResult]:
    """Checks gates by the results of an experiment: those on metrics first; see `choose_baseline`."""
    allowed = allow_unmeasured_judges or experiment.allow_unmeasured_judges
    of_metrics = [gate for gate in gates if not experiment.is_of_matches(gate)]
    of_matches = [*filter(experiment.is_of_matches, gates)]
    measures = experiment.measures_of_all_rows
    return [
        *check_gates(of_metrics, results.evaluations, baseline, measures=measures, allow_unmeasured_judges=allowed),
        *evaluate_match_gates(of_matches, results.ratings, results.unrated, allow_unmeasured_judges=allowed),
    ]


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
            if label is not None and label != BASELINE:
                check_system(gate, label, systems)
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
        rule = replace(gate, parameters=tuple(each for each in gate.parameters if each[0] != MATCHES))
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
