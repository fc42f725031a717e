"""Which scorer, metric and baseline a gate names, and what it needs of the metric: a bound, a range, a difference."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from evaluand.aggregation.aggregator import Measure, shared_ranges, with_ranges
from evaluand.aggregation.fairness import CRITERIA
from evaluand.comparison.checking import check_distance, check_threshold, refuse_anytime
from evaluand.comparison.difference import AT_ONE_END
from evaluand.comparison.disparity_differences import COMPARED
from evaluand.comparison.measures import declared_as, default_metric, find_evaluations, undeclared_metric
from evaluand.comparison.pairing import why_unpairable
from evaluand.comparison.rule import ANYTIME, EQUAL, WIN_RATE, Gate, quote_word
from evaluand.core.errors import NotFound, SpecError, nearest
from evaluand.core.identity import encode
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.metrics.base.metric import Metric, Missing
from evaluand.metrics.base.signature import distinguishing_words, words_of
from evaluand.metrics.class_rates import ClassRatio
from evaluand.metrics.names import as_called, explain_unknown, is_name
from evaluand.run.kind import RUNS
from evaluand.store.store import Store


def find_scorer(gate: Gate, known: Sequence[str], usual: str | None = None, declared: Sequence[Measure] = ()) -> str:
    """The scorer that a gate names, or else the only one, or the only one whose metric of this name is declared."""
    name = gate.scorer or usual
    measures = {scorer: [measure for measure in declared if measure.scorer == scorer] for scorer in known}
    declaring = [
        scorer
        for scorer, own in measures.items()
        if declared_as(gate.metric, own) or any(measure.criterion == gate.metric for measure in own)
    ]
    if gate.metric == WIN_RATE and not declaring:
        raise gate.fault(
            f"{WIN_RATE} is a number of ratings, not of an evaluation; check it with `evaluand rate MATCHES --gate …`"
        )
    if gate.metric in known and not is_name(gate.metric) and gate.metric not in declaring:
        kind = next((measure.metric.kind for measure in measures[gate.metric]), "accuracy")
        rule = f"{kind}({quote_word(gate.metric)})"
        raise gate.fault(f"{gate.metric!r} is a scorer, not a metric; did you mean `{rule}`?")
    if name is None:
        for alone in (known, declaring):
            if len(alone) == 1:
                return alone[0]
        if not (declaring or is_name(gate.metric) or gate.metric == CORRECTED_MEAN):
            raise _unknown_metric(gate, declared, explain_unknown(gate.metric))
        raise gate.fault(f"name the scorer: {gate.metric}({' | '.join(known) or 'SCORER'}) …")
    if name not in known:
        raise gate.fault(f"no scorer is called {name!r}{nearest(name, known)}; there are {', '.join(known)}")
    return name


def measures_of_gates(
    gates: Sequence[Gate], evaluations: Sequence[Evaluation], declared: Sequence[Measure], usual: str | None = None
) -> list[Measure]:
    """The measures that gates compare with a baseline: those on which something is decided.

    Args:
        declared: the metrics that gates refer to by kind and scorer.
        usual: the scorer of gates that name none.

    Returns:
        Those of all gates that can be checked.
    """
    found = []
    for gate in gates:
        if gate.baseline is None:
            continue
        with suppress(SpecError):  # which is raised where the gate is checked
            scorer = find_scorer(gate, evaluations[0].scorers, usual, declared)
            undeclared = partial(undeclared_metric, evaluations=evaluations, scorer=scorer, declared=declared)
            own = [measure for measure in declared if measure.scorer == scorer]
            for metric in find_metrics(gate, scorer, declared, metric_by_name=undeclared):
                alike = (each for each in own if metric in (each.metric, as_called(each.metric, gate.metric)))
                found.append(next(alike, Measure(scorer, metric)))
    return found


def find_baseline(gate: Gate, store: Store, known: Sequence[str]) -> Evaluation:
    """The baseline of a gate in the store.

    Args:
        known: names of other baselines, for the message.
    """
    name = str(gate.baseline)
    try:
        found = find_evaluations(store, name)
    except NotFound:
        stored = (ref.name for ref in store.refs() if ref.kind in (EVALUATIONS, RUNS))
        hint = nearest(name, [*known, *stored]) or (
            f"; there are {', '.join(known)}" if len(known) > 1 else f"; there is {known[0]}: name a second system"
        )
        raise gate.fault(f"no baseline is called {name!r}{hint}") from None
    if len(found) > 1:
        raise gate.fault(f"{name!r} refers to {len(found)} evaluations; name one")
    return found[0]


CORRECTED_MEAN: Final = "corrected_mean"
"""What gates call the share of right answers, estimated from a judge's verdicts and its measured errors."""


def find_metrics(
    gate: Gate,
    scorer: str,
    measures: Sequence[Measure],
    missing: Missing | None = None,
    metric_by_name: Callable[[str], Metric] = default_metric,
) -> list[Metric]:
    """The metric of a gate; for a criterion of fairness, all metrics it consists of; none for a corrected mean."""
    if gate.metric == CORRECTED_MEAN:
        _check_corrected(gate)
        return []
    own = [measure for measure in measures if measure.scorer == scorer]
    of_criterion: dict[str, dict[str, Metric]] = {}
    for metric in (measure.metric for measure in own if measure.criterion == gate.metric):
        of_criterion.setdefault(metric.kind, {})[metric.signature] = metric
    if of_criterion and gate.disparity is None:
        raise gate.fault(
            f"{gate.metric} is a criterion, which has no value; name one of its disparities: {gate.metric} difference"
            " by …"
        )
    found = [_require_one(gate, scorer, _match_parameters(gate, scorer, alike)) for alike in of_criterion.values()]
    found = found or [_find_metric(gate, scorer, own, missing, metric_by_name)]
    for metric in found:
        _check_number(gate, metric)
        _check_decidable(gate, scorer, metric)
    return found


def _check_corrected(gate: Gate) -> None:
    """Refuses a gate on a corrected mean that is not a threshold of all rows."""
    if gate.baseline is not None or gate.disparity is not None or gate.where or gate.parameters:
        raise gate.fault(
            f"{CORRECTED_MEAN} is of all rows of a judge and has no parameters, groups or differences; write"
            f" `{CORRECTED_MEAN}(JUDGE) >= 0.8 at 95%`"
        )
    refuse_anytime(gate, CORRECTED_MEAN)
    check_threshold(gate, CORRECTED_MEAN, 0.0, 1.0)


def _find_metric(
    gate: Gate, scorer: str, measures: Sequence[Measure], missing: Missing | None, by_name: Callable[[str], Metric]
) -> Metric:
    alike = declared_as(gate.metric, measures)
    meant = _match_parameters(gate, scorer, {metric.signature: metric for metric in alike})
    declared = {with_missing(gate, metric, missing).signature: metric for metric in meant}
    if declared:
        return _require_one(gate, scorer, [*declared.values()])
    try:
        return by_name(gate.metric)
    except SpecError as error:
        raise _unknown_metric(gate, measures, str(error)) from None


def _unknown_metric(gate: Gate, measures: Sequence[Measure], reason: str) -> SpecError:
    """The error that no metric has the name in a gate, with what it may mean: a criterion, or a name in the problem."""
    if gate.metric in CRITERIA:
        return gate.fault(
            f"{gate.metric} is a criterion of fairness, which the experiment must declare:"
            f" fairness: [{{criterion: {gate.metric}, by: [{', '.join(gate.by) or '…'}], label: …}}]"
        )
    known = [*dict.fromkeys(name for measure in measures for name in (*measure.called, measure.criterion) if name)]
    near, hint = nearest(gate.metric, known), f"; known names: {', '.join(known)}" if known else ""
    return gate.fault(f"no metric is called {gate.metric!r}{near}" if near else f"{reason}{hint}")


def _require_one(gate: Gate, scorer: str, metrics: Sequence[Metric]) -> Metric:
    if len(metrics) == 1:
        return metrics[0]
    spellings = _list_spellings(gate, scorer, [metric.signature for metric in metrics])
    raise gate.fault(f"{gate.metric} of {scorer!r} is declared more than once; name one: {spellings}")


def _match_parameters(gate: Gate, scorer: str, metrics: Mapping[str, Metric]) -> list[Metric]:
    """The metrics of a kind, by signature, that have a gate's parameters; only one if its label in tables matches."""
    parameters = dict(gate.parameters)
    having = [
        s for s in metrics if all(_is_same_value(words_of(s).get(name), value) for name, value in parameters.items())
    ]
    if parameters and not having:
        known = f"; there are {_list_spellings(gate, scorer, [*metrics])}" if metrics else ""
        raise gate.fault(f"the experiment has no {gate.metric} with these parameters{known}")
    words = distinguishing_words([*metrics])
    called = [signature for signature in having if words[signature].keys() == parameters.keys()]
    return [metrics[signature] for signature in (called if len(called) == 1 else having)]


def _is_same_value(word: str | None, value: str) -> bool:
    """Whether a value in a signature, where texts may be quoted, is the value in a gate."""
    if word is None or word == value:
        return word is not None
    with suppress(ValueError):
        return float(word) == float(value)
    return word == encode(value).decode()


def _list_spellings(gate: Gate, scorer: str, signatures: Sequence[str]) -> str:
    """How a gate would name each of several metrics of a kind."""
    named = (
        [f"{name}={quote_word(word)}" for name, word in words.items() if name]
        for words in distinguishing_words(signatures).values()
    )
    return ", ".join(f"{gate.metric}({', '.join([quote_word(scorer), *words])})" for words in named)


def with_missing(gate: Gate, metric: Metric, missing: Missing | None) -> Metric:
    """The metric as a gate uses it: against a baseline, rows without a score count as wrong where that has a value.

    Args:
        missing: how they count instead.
    """
    if missing is None and gate.baseline is not None and math.isfinite(metric.ends[0]):
        missing = "wrong"
    return metric if missing is None else dataclasses.replace(metric, missing=missing)


def check_attributes(gate: Gate, attributes: Sequence[str]) -> None:
    """Refuses attributes that the dataset does not have."""
    unknown = [name for name in (*dict(gate.where), *gate.by, *gate.given) if name not in attributes]
    if unknown:
        raise gate.fault(f"{unknown[0]!r} is not an attribute{nearest(unknown[0], attributes)}")


def at_level(gate: Gate, metric: Metric, share: float | None = None, *, is_exact: bool = False) -> Metric:
    """The metric with an interval whose ends are one-sided bounds of the gate's level.

    Args:
        share: the fraction of an interval's errors that fall on this end; by default as much as may do so.
        is_exact: rows are independent, so that shares of them have exact bounds.
    """
    if gate.level is None or not hasattr(metric, "confidence"):
        raise gate.fault(f"{metric.kind} has no interval; leave out `at …`")
    if is_exact and isinstance(metric, ClassRatio) and metric.is_share:
        return dataclasses.replace(metric, confidence=2 * gate.level - 1, interval="exact")
    if share is None:
        share = 0.5 if metric.errs_evenly else AT_ONE_END
    return dataclasses.replace(metric, confidence=1 - (1 - gate.level) / share)  # type: ignore[call-arg]


def find_ranges(metrics: Sequence[Metric], scorer: str, evaluations: Sequence[Evaluation]) -> list[Metric]:
    """The metrics with the range that their scorer knows, unless they declare one."""
    measures = with_ranges([Measure(scorer, metric) for metric in metrics], shared_ranges(evaluations))
    return [measure.metric for measure in measures]


def check_ranges(gate: Gate, scorer: str, metrics: Sequence[Metric]) -> None:
    """Refuses a bound of values that could have a range and have none: rare values, not seen yet, could be anywhere."""
    for metric in metrics[:1] if gate.anytime else ():
        if not metric.averages or (metric.reduce == "all" and not metric.over_replications):
            refuse_anytime(gate, metric.kind)
        if not all(map(math.isfinite, metric.row_range)):
            raise gate.fault(
                f"a bound for repeated looks (`{ANYTIME}`, --until) needs the lowest and the highest possible value of"
                f" {metric.kind}; declare its range under metrics of the experiment"
            )
    for metric in metrics if gate.level is not None else ():
        can_have = any(field.name == "range" for field in dataclasses.fields(metric))
        if can_have and metric.range == (-math.inf, math.inf):
            lower = ", direction: lower" if metric.direction == "lower" else ""
            point = "" if gate.baseline is None else f"compare the values themselves: {_point_rule(gate, metric)}"
            raise gate.fault(
                "no bound holds at a level without the lowest and the highest possible value; declare them under"
                f" metrics of the experiment: {{kind: {metric.kind}, scorer: {scorer}{lower}, range: [0, 10]}}, or"
                f" {point or 'leave out `at …`'}"
            )


def _point_rule(gate: Gate, metric: Metric) -> str:
    """The rule about the two values themselves, without regard to chance."""
    return f"`{gate.metric} {'<=' if metric.direction == 'lower' else '>='} {quote_word(str(gate.baseline))}`"


def _check_decidable(gate: Gate, scorer: str, metric: Metric) -> None:
    """Refuses a difference or a bound that the metric never has."""
    if gate.level is None:
        return
    if gate.baseline is None:
        at_level(gate, metric)
        return
    if gate.disparity is not None and gate.disparity not in COMPARED:
        raise gate.fault(
            f"a disparity of kind {gate.disparity!r} has no difference with an interval; take {' or '.join(COMPARED)}"
        )
    if gate.reference or gate.given:
        raise gate.fault("against a baseline all groups count; leave out `from …` and `given …`")
    if why := why_unpairable(metric):
        raise gate.fault(f"{why}; or compare the values themselves: {_point_rule(gate, metric)}")
    if metric.direction is None and gate.relation != EQUAL and gate.disparity is None:
        raise gate.fault(
            f"{metric.kind} of {scorer!r} has no direction; declare under metrics of the experiment whether higher or"
            f" lower is better, and run it: {{kind: {metric.kind}, scorer: {scorer}, direction: lower}}; or import its"
            f" results again with --direction {scorer}=lower"
        )


def _check_number(gate: Gate, metric: Metric) -> None:
    """Refuses a threshold that no value can have, and a margin by which no two values can differ."""
    low, high = metric.range
    if gate.baseline is not None:
        check_distance(gate, f"values of {gate.metric}", high - low, is_share=(low, high) == (0, 1))
        return
    what = gate.metric if gate.disparity is None else f"the {gate.disparity} of {gate.metric}"
    if gate.disparity is not None and gate.disparity not in ("min", "max"):
        low, high = (0.0, 1.0) if gate.disparity.startswith("ratio") else (0.0, high - low)
    check_threshold(gate, what, low, high)
