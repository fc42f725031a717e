"""Gates: rules that a result must fulfil, written in words and checked by number.

    accuracy >= 0.9                                  the value itself; also <=, > and <; a share may be written as 90 %
    accuracy >= 0.88 at 95%                          the one-sided 95 % confidence bound of the value
    accuracy better than base                        the one-sided 95 % bound of the difference lies above 0
    accuracy not worse than base by 0.02             … above -0.02; `at 99%` after either sets another level
    accuracy equal to base within 0.02               both one-sided bounds lie within ±0.02 (two one-sided tests)
    accuracy >= base - 0.02                          the two values themselves: a point rule, which ignores chance
    accuracy(answer)[topic=algebra] >= 0.8           of one scorer, in one group
    f_beta(strict, label=PER) >= 0.5                 one of several metrics, as tables label it: f_beta(label=PER)
    equalized_odds difference by sex <= 0.1          the disparity of groups by a metric or a criterion of fairness
    fpr difference by race from A <= 0.1             that to a reference group; `from A to B`: of a pair
    fpr difference by race given age <= 0.1          that of values standardised over the strata of an attribute
    win_rate(mine, base) >= 0.55 at 95%              of ratings; see `evaluand.matches.ratings.rating_gates`

`at 95%` always means that a gate passes wrongly in at most 5 of 100 cases. The level is approximate for values that are
not proportions of independent rows (the message says `about`), and not guaranteed for values without a known range: the
message says so, and a bound of a mean that could have a range is refused until it has one.
`anytime` after the level, as in `accuracy better than base at 95% anytime`, allows for repeated looks: at 95 % a rule
that does not hold passes at no look of a growing run in 95 of 100 cases, see `metrics.stats.anytime`. All bounds of
runs that a rule of `--until` stopped do so; gates on numbers without such bounds are undecided.
Names with blanks or signs need quotes. `baseline` is the first evaluation of a comparison.

A gate on the verdicts of a judge needs a card of that judge, see `evaluand.comparison.checking`; that of
`corrected_mean(judge)` compares the mean corrected by it.

A value is computed from the rows that have a score, and the message counts the others. Against a baseline, rows without
a score count as wrong: a system that crashes on a hard example is not as good as one that answers. A gate on a metric
without a worst value fails where scores are missing. A gate on an undefined value fails.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from evaluand.aggregation.aggregator import Measure
from evaluand.aggregation.score_shards import dataset_of
from evaluand.aggregation.seen import heaviest_cluster, stopping_rules
from evaluand.comparison.checking import GateResult, decide
from evaluand.comparison.gate_metrics import (
    check_attributes,
    check_ranges,
    find_baseline,
    find_metrics,
    find_ranges,
    find_scorer,
)
from evaluand.comparison.gate_rows import Question, declared_smallest, find_rows
from evaluand.comparison.measures import declared_measures, undeclared_metric
from evaluand.comparison.rule import BASELINE, Gate
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.standing import CorrectedMean, ScorerStanding, scorer_standings
from evaluand.metrics.base.metric import Metric, Missing
from evaluand.store.store import Store


def check_gates(
    gates: Sequence[str | Gate],
    evaluations: Mapping[str, Evaluation],
    baseline: str | None = None,
    *,
    measures: Sequence[Measure] | None = None,
    scorer: str | None = None,
    missing: Missing | None = None,
    metric_by_name: Callable[[str], Metric] | None = None,
    allow_unmeasured_judges: bool = False,
    drawn_from: Dataset | None = None,
) -> list[GateResult]:
    """Checks each gate for each candidate.

    Args:
        gates: rules, as text.
        evaluations: by label; what rules compare with is one of them, or in the store by name.
        baseline: the label that rules call `baseline`, whose evaluation, if there is one, is no candidate; see
            `find_candidates`.
        measures: the metrics that gates refer to by kind and scorer, with their parameters; None takes those that
            summarised each evaluation, or else its baseline.
        scorer: the scorer of gates that name none.
        missing: what happens to rows without a score, in place of the default of gates.
        metric_by_name: the metric of a name that no measure has; by default as `undeclared_metric` finds it.
        allow_unmeasured_judges: whether verdicts of judges count that have no card, only one from before they
            changed, or one that does not show agreement with people; otherwise gates on them are refused, and fail.
        drawn_from: the dataset of which the evaluated examples were drawn, for bounds at repeated looks; by default
            their own.

    Raises:
        SpecError: a text is no gate, or names a metric, scorer, attribute or baseline that does not exist.
    """
    parsed = [gate if isinstance(gate, Gate) else Gate.parse(gate) for gate in gates]
    first = [evaluation for label, evaluation in evaluations.items() if label == baseline]
    declared_of = {
        label: (declared_measures([each]) or declared_measures(first)) if measures is None else measures
        for label, each in evaluations.items()
    }
    named = dict.fromkeys([BASELINE] if first else [], *first) | dict(evaluations)
    known: dict[tuple[str, str], ScorerStanding] = {}  # so that all messages name the same way to measure a judge
    for evaluation in evaluations.values() if parsed else ():
        for name, standing in scorer_standings(evaluation).items():
            known.setdefault((name, standing.digest), standing)
    results = []
    for gate in parsed:
        for label in find_candidates(gate, {label: each.name for label, each in evaluations.items()}, baseline):
            evaluation, declared = evaluations[label], declared_of[label]
            chosen = find_scorer(gate, evaluation.scorers, scorer, declared)
            undeclared = partial(undeclared_metric, evaluations=[evaluation], scorer=chosen, declared=declared)
            metrics = find_metrics(gate, chosen, declared, missing, metric_by_name or undeclared)
            states_missing = missing is not None or _states_missing(metrics, chosen, declared)
            base = None
            if gate.baseline is not None:
                is_named = gate.baseline in named
                base = named[gate.baseline] if is_named else find_baseline(gate, evaluation.store, [*named])
            sides = [side for side in (base, evaluation) if side is not None]
            metrics = find_ranges(metrics, chosen, sides)
            check_ranges(gate, chosen, metrics)
            standings: dict[str, ScorerStanding] = {}
            if not metrics or not all(metric.reads_labels for metric in metrics):  # else people measure it here and now
                found = [own for side in reversed(sides) if (own := scorer_standings(side).get(chosen)) is not None]
                standings = {own.digest: known.setdefault((chosen, own.digest), own) for own in found}
            asked = Question(
                gate,
                evaluation,
                base,
                chosen,
                metrics,
                [*standings.values()],
                missing,
                states_missing,
                declared_smallest(gate, chosen, metrics, declared),
                _heaviest(sides, metrics, drawn_from) if gate.anytime or any(map(stopping_rules, sides)) else None,
                base is not None and _is_unchanged(evaluation, base),
            )
            allowed, correct = allow_unmeasured_judges, partial(_correct_mean, gate, evaluation, chosen)
            facts = {"scorer": chosen} if metrics else {}
            rows = partial(find_rows, asked)
            results.append(decide(gate, label, rows, asked.standings, allowed=allowed, correct=correct, **facts))
    return results


def find_candidates(gate: Gate, names: Mapping[str, str | None], baseline: str | None) -> list[str]:
    """The evaluations, by label, that a gate judges: all but the one it compares with, or else but the baseline.

    Args:
        names: label → the name in stores.

    Raises:
        SpecError: there are no others.

    Example:
        >>> rules = ["accuracy >= 0.9", "accuracy better than baseline", "accuracy better than exp/b"]
        >>> names = {"a": "exp/a", "b": "exp/b", "c": "exp/c"}
        >>> [find_candidates(Gate.parse(rule), names, "a") for rule in rules]
        [['b', 'c'], ['b', 'c'], ['a', 'c']]
    """
    reference = gate.baseline if gate.baseline in names or gate.baseline not in (None, BASELINE) else baseline
    if reference is not None and reference not in names:
        reference = next((label for label, name in names.items() if name == reference), None)
    candidates = [label for label in names if label != reference]
    if not candidates:
        raise gate.fault("compares an evaluation with itself; name another baseline")
    return candidates


def check_fit(
    gates: Sequence[Gate],
    scorers: Sequence[str],
    measures: Sequence[Measure],
    attributes: Sequence[str],
    baselines: Sequence[str],
    store: Store,
) -> None:
    """Refuses gates that could never be checked, before anything runs.

    Args:
        baselines: names of baselines that will exist, besides those that the store has by name.

    Raises:
        SpecError: a metric, scorer, attribute or baseline does not exist, or the metric never has the number, bound or
            difference that the gate needs.
    """
    for gate in gates:
        scorer = find_scorer(gate, scorers, None, measures)
        metrics = find_metrics(gate, scorer, measures)
        if {metric.kind for metric in metrics} <= {each.metric.kind for each in measures if each.scorer == scorer}:
            check_ranges(gate, scorer, metrics)
        check_attributes(gate, attributes)
        if gate.baseline is not None and gate.baseline not in baselines:
            base = find_baseline(gate, store, baselines)
            find_scorer(replace(gate, scorer=scorer), base.scorers, None)
            check_attributes(gate, dataset_of(base).roles.attributes)


def _heaviest(sides: Sequence[Evaluation], metrics: Sequence[Metric], drawn_from: Dataset | None) -> float:
    """The weight of the heaviest cluster that may be seen on any side."""
    return max((heaviest_cluster(side, metric, drawn_from) for side in sides for metric in metrics[:1]), default=0.0)


def _states_missing(metrics: Sequence[Metric], scorer: str, measures: Sequence[Measure]) -> bool:
    """Whether somebody chose how rows without a score count."""
    stated = [measure.metric for measure in measures if measure.scorer == scorer and measure.states_missing]
    return all(metric.missing != "leave_out" or metric in stated for metric in metrics)


def _is_unchanged(evaluation: Evaluation, base: Evaluation) -> bool:
    """Whether both sides are one evaluation of one task.

    Answers that were made elsewhere do not say what made them, so that they may be of two systems; nor do those of two
    stores.
    """
    run = evaluation.run if base.store is evaluation.store and base.id == evaluation.id else None
    return run is not None and run.manifest["spec"]["task"]["kind"] not in _MADE_ELSEWHERE


_MADE_ELSEWHERE: Final = ("given", "recorded", "imported")


_MEANS: Final = ("accuracy", "mean")


def _correct_mean(gate: Gate, evaluation: Evaluation, scorer: str, standing: ScorerStanding) -> CorrectedMean | None:
    """The mean that a gate compares with a threshold, corrected; None of a group, a difference or another metric."""
    is_of_all = gate.baseline is None and gate.disparity is None and not gate.where
    return standing.correct(evaluation, scorer) if gate.metric in _MEANS and is_of_all else None
