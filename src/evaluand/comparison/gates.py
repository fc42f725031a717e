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
that does not hold passes at no look of a growing run in 95 of 100 cases, see `metrics.stats.anytime`.
Names with blanks or signs need quotes. `baseline` is the first evaluation of a comparison.

A gate on the verdicts of a judge needs a card of that judge, see `evaluand.comparison.judge_gates`; that of
`corrected_mean(judge)` compares the mean corrected by it.

A value is computed from the rows that have a score, and the message counts the others. Against a baseline, rows without
a score count as wrong: a system that crashes on a hard example is not as good as one that answers. A gate on a metric
without a worst value fails where scores are missing. A gate on an undefined value fails.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import numpy as np

from evaluand.aggregation.aggregator import Measure
from evaluand.aggregation.fairness import CRITERIA
from evaluand.aggregation.groups import MetricRow, summarise
from evaluand.aggregation.score_shards import attribute_columns, dataset_of, is_repeated, shards
from evaluand.comparison.anytime import Seen, heaviest_cluster, seen_values
from evaluand.comparison.comparing import find_labelled_run
from evaluand.comparison.difference import Sample, count_pairs
from evaluand.comparison.disparity_gates import check_disparities, check_disparity_differences, declared_smallest
from evaluand.comparison.gate_checks import at_level, check_attributes, check_decidable, check_number
from evaluand.comparison.gate_outcome import (
    UNSURE,
    Outcome,
    format_bound_name,
    format_counts,
    format_pair_counts,
    format_target,
    judge_difference,
    name_counts,
)
from evaluand.comparison.gate_result import GateResult, bound_facts
from evaluand.comparison.judge_gates import (
    CORRECTED_MEAN,
    check_corrected,
    check_corrected_rule,
    check_judged,
    correct_value,
)
from evaluand.comparison.labelled_differences import LabelledSample, pair_labelled_rows
from evaluand.comparison.measures import (
    declared_as,
    declared_measures,
    default_metric,
    find_evaluations,
    undeclared_metric,
)
from evaluand.comparison.metric_differences import MetricSample
from evaluand.comparison.pairing import PairedRows, pair_rows, why_unpairable
from evaluand.comparison.ranges import check_ranges, find_ranges
from evaluand.comparison.rule import (
    BASELINE,
    LEVEL,
    RELATIONS,
    WIN_RATE,
    Gate,
    quote_word,
)
from evaluand.core.errors import DataError, NotFound, SpecError, first_fault, nearest
from evaluand.core.files.json import none_if_nan
from evaluand.core.identity import encode
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluation
from evaluand.judges.cards.standing import Standing, standings
from evaluand.metrics.base.metric import Metric, Missing
from evaluand.metrics.base.signature import distinguishing_words, words_of
from evaluand.metrics.names import is_name
from evaluand.metrics.prediction_powered import PredictionPoweredMean
from evaluand.metrics.stats.intervals import clopper_pearson
from evaluand.store.store import Store


def check_gates(
    gates: Sequence[str | Gate],
    evaluations: Mapping[str, Evaluation],
    baselines: Mapping[str, Evaluation] | None = None,
    *,
    measures: Sequence[Measure] | None = None,
    scorer: str | None = None,
    missing: Missing | None = None,
    metric_by_name: Callable[[str], Metric] | None = None,
    allow_unmeasured_judges: bool = False,
    drawn_from: Dataset | None = None,
) -> list[GateResult]:
    """Checks each gate for each evaluation.

    Args:
        gates: rules, as text.
        evaluations: label → the evaluation that must pass.
        baselines: label → a further baseline, besides the evaluations and those that the store has by name; the first
            is `baseline`.
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
    others = dict(baselines or {})
    found: dict[str, Sequence[Measure]] = dict.fromkeys(evaluations, measures or ())
    if measures is None:
        found = {
            label: declared_measures([each]) or declared_measures(others.values())
            for label, each in evaluations.items()
        }
    results = []
    known: dict[tuple[str, str], Standing] = {}
    for evaluation in evaluations.values() if parsed else ():
        for name, standing in standings(evaluation).items():
            known.setdefault((name, standing.judge.digest), standing)
    for gate in parsed:
        subjects = [label for label in evaluations if label != gate.baseline]
        if not subjects:
            raise SpecError(f"gate {gate.text!r}: compares an evaluation with itself; name another baseline")
        for label in subjects:
            evaluation, declared = evaluations[label], found[label]
            chosen = _find_scorer(gate, evaluation.scorers, scorer, declared)
            if gate.metric == CORRECTED_MEAN:
                forms = _find_judges([evaluation], chosen, known)
                results.append(check_corrected(gate, label, evaluation, chosen, forms, allowed=allow_unmeasured_judges))
                continue
            undeclared = partial(undeclared_metric, evaluations=[evaluation], scorer=chosen, declared=declared)
            metrics = _find_metrics(gate, chosen, declared, missing, metric_by_name or undeclared)
            stated = missing is not None or _states_missing(metrics, chosen, declared)
            base = _find_baseline(gate, evaluation, evaluations, others)
            metrics = find_ranges(metrics, chosen, [one for one in (base, evaluation) if one is not None])
            check_ranges(gate, chosen, metrics)
            smallest = declared_smallest(gate, chosen, metrics, declared)
            heaviest = heaviest_cluster(evaluation, metrics[0], drawn_from) if gate.anytime else 0.0
            check = partial(
                _check_gate, gate, label, evaluation, base, chosen, metrics, missing, stated, smallest, heaviest
            )
            reads_labels = all(metric.reads_labels for metric in metrics)  # then people measure the judge here and now
            judges = [] if reads_labels else _find_judges([evaluation, base], chosen, known)
            correct = partial(correct_value, gate, evaluation, chosen)
            results.append(
                check_judged(gate, label, judges, allowed=allow_unmeasured_judges, check=check, correct=correct)
            )
    return results


def _find_judges(
    evaluations: Sequence[Evaluation | None], scorer: str, known: dict[tuple[str, str], Standing]
) -> list[Standing]:
    """The judges that a scorer is in some evaluations, each form once.

    Args:
        known: those of all evaluations by name and digest, so that all messages name the same way to measure a judge.
    """
    found: dict[str, Standing] = {}
    for evaluation in evaluations:
        if evaluation is not None and scorer in (evaluation.manifest["provenance"].get("judges") or ()):
            standing = standings(evaluation)[scorer]
            digest = standing.judge.digest
            found[digest] = known.setdefault((scorer, digest), standing)
    return [*found.values()]


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
        scorer = _find_scorer(gate, scorers, None, measures)
        if gate.metric == CORRECTED_MEAN:
            check_corrected_rule(gate)
            continue
        metrics = _find_metrics(gate, scorer, measures)
        if {metric.kind for metric in metrics} <= {each.metric.kind for each in measures if each.scorer == scorer}:
            check_ranges(gate, scorer, metrics)
        check_attributes(gate, attributes)
        if gate.baseline is not None and gate.baseline not in baselines:
            base = _find_stored_baseline(gate, gate.baseline, store, baselines)
            _find_scorer(dataclasses.replace(gate, scorer=scorer), base.scorers, None)
            check_attributes(gate, dataset_of(base).roles.attributes)


def _check_gate(
    gate: Gate,
    label: str,
    evaluation: Evaluation,
    base: Evaluation | None,
    scorer: str,
    metrics: Sequence[Metric],
    missing: Missing | None,
    states_missing: bool,
    smallest: int,
    heaviest: float,
) -> GateResult:
    metric = metrics[0]
    is_same = base is not None and _is_unchanged(gate, label, evaluation, base)
    try:
        if gate.disparity is not None and base is not None:
            filled = [_with_missing(one, missing or _usual_fill(one)) for one in metrics]
            found = list(check_disparity_differences(gate, [base, evaluation], scorer, filled, smallest, is_same))
        elif gate.disparity is not None:
            filled = [_with_missing(one, missing) for one in metrics]
            found = list(check_disparities(gate, evaluation, scorer, filled, smallest))
        elif base is None:
            found = list(_check_values(gate, evaluation, scorer, _with_missing(metric, missing), heaviest))
        else:
            filled = [_with_missing(metric, missing or _usual_fill(metric))]
            if gate.level is None:
                found = list(_check_point_differences(gate, base, evaluation, scorer, filled[0]))
            else:
                found = list(_check_differences(gate, base, evaluation, scorer, filled[0], heaviest, is_same))
    except DataError as error:
        found = [Outcome(False, first_fault(error), {}, is_decided=False)]
    except SpecError as error:
        named = str(error).startswith("gate ")
        raise error if named else SpecError(f"gate {gate.text!r}: {error}") from None
    if not found:
        found = [Outcome(False, "no rows", {}, is_decided=False)]
    found = found if states_missing else [outcome.doubted() for outcome in found]
    passed = all(one.passed for one in found)
    message = "; ".join(one.message for one in found if one.passed == passed)
    decided = passed or any(one.is_decided and not one.passed for one in found)
    return GateResult(gate, label, passed, message, {"scorer": scorer, "values": [one.facts for one in found]}, decided)


def _states_missing(metrics: Sequence[Metric], scorer: str, measures: Sequence[Measure]) -> bool:
    """Whether somebody chose how rows without a score count."""
    stated = [measure.metric for measure in measures if measure.scorer == scorer and measure.states_missing]
    return all(metric.missing != "leave_out" or metric in stated for metric in metrics)


def _usual_fill(metric: Metric) -> Missing:
    """How rows without a score count against a baseline."""
    return "wrong" if math.isfinite(metric.ends[0]) else metric.missing


def _check_values(
    gate: Gate, evaluation: Evaluation, scorer: str, metric: Metric, heaviest: float
) -> Iterator[Outcome]:
    """Compares a value with a threshold, by target."""
    if gate.level is not None:
        metric = at_level(gate, metric)
    rows = [
        row
        for row in _summarise(gate, evaluation, scorer, metric)
        if [*row.by.values()] == [value for _, value in gate.where]
    ]
    seen = _seen_values(gate, evaluation, scorer, metric, heaviest)
    for row in rows:
        end = None if gate.level is None else "low" if gate.relation in (">=", ">") else "high"
        of_looks: dict[str, Any] = {}
        if gate.anytime and gate.level is not None and row.target in seen:
            low, high = seen[row.target].bounds(gate.level)
            row = row._replace(low=low, high=high)
            of_looks = seen[row.target].facts(str(end), gate.number, gate.level)
        elif gate.level is not None and _is_exact(row):
            low, high = clopper_pearson(row.data["correct"], row.data["n"], gate.level)
            row = row._replace(low=low, high=high)
        elif gate.level is not None and row.target in seen:
            low, high = seen[row.target].bounds_of_one_look(gate.level)
            row = row._replace(low=float(np.fmin(row.low, low)), high=float(np.fmax(row.high, high)))
        number = row.value if end is None else getattr(row, end)
        about = "about " if end and not (of_looks or _is_exact(row)) else ""
        unsure = UNSURE if end and not math.isfinite(metric.range[1] - metric.range[0]) else ""
        shown = (
            f"{format_bound_name(end, gate.level, gate.anytime)}{about}{format_target(row.target)}{number:.4g}{unsure}"
        )
        facts = {name: none_if_nan(getattr(row, name)) for name in ("target", "value", "low", "high", "worst", "best")}
        facts |= bound_facts(end, number) | of_looks
        counts = {name: getattr(row, name) for name in ("n", "n_scored", "n_failed", "n_abstained", "n_skipped")}
        if math.isnan(number):
            why = row.reason or ("the metric has no interval" if end else "it is undefined")
            yield Outcome(False, f"undefined: {why}; {format_counts(row)}", facts | counts, is_decided=False)
        else:
            passed = RELATIONS[gate.relation](number, gate.number)
            yield Outcome(passed, f"{shown}; {format_counts(row)}", facts | counts, rows=row)


def _check_point_differences(
    gate: Gate, base: Evaluation, evaluation: Evaluation, scorer: str, metric: Metric
) -> Iterator[Outcome]:
    """Compares a value with that of the baseline, by target, without regard to chance."""
    rule = _interval_rule(gate, metric)
    if dataset_of(base).id != dataset_of(evaluation).id:
        raise SpecError(
            f"gate {gate.text!r}: {gate.baseline} was evaluated on another dataset, so the values themselves cannot be "
            f"compared{f'; {rule} compares the examples that both have' if rule else ''}"
        )
    groups = [value for _, value in gate.where]
    of_base, of_own = (
        {row.target: row for row in _summarise(gate, each, scorer, metric) if [*row.by.values()] == groups}
        for each in (base, evaluation)
    )
    for target, row in of_own.items():
        other = of_base.get(target)
        difference = math.nan if other is None else row.value - other.value
        facts: dict[str, Any] = {
            "target": target,
            "difference": none_if_nan(difference),
            "value": none_if_nan(row.value),
        }
        facts["baseline_value"] = None if other is None else none_if_nan(other.value)
        if other is None or math.isnan(difference):
            why = (None if other is None else other.reason) or row.reason or "one side has no value"
            yield Outcome(False, f"undefined: {why}; {format_counts(row)}", facts, is_decided=False)
            continue
        values = f"{format_target(target)}{row.value:.4g} against {other.value:.4g}, difference {difference:+.4g}"
        note = f"a point rule, which ignores chance{f'; {rule} allows for it' if rule else ''}"
        passed = RELATIONS[gate.relation](_rounded(difference), gate.number)
        left_out = min(row, other, key=lambda side: side.n_scored / side.n) if metric.missing == "leave_out" else None
        yield Outcome(passed, f"{values}: {note}; {format_counts(row)}", facts, rows=left_out)


def _rounded(difference: float) -> float:
    """A difference without the rounding of its subtraction, so that 0.90 − 0.92 is −0.02."""
    return round(difference, 12)


def _interval_rule(gate: Gate, metric: Metric) -> str:
    """The rule about the same difference that allows for chance; empty where there is none."""
    signs = {"higher": (">", ">="), "lower": ("<", "<=")}.get(metric.direction or "", ())
    worse = -gate.number if metric.direction == "higher" else gate.number
    if gate.relation not in signs or worse < 0 or why_unpairable(metric):
        return ""
    against = f"{gate.metric} not worse than {quote_word(str(gate.baseline))} by {worse:g}"
    return f"`{against}`" if worse else f"`{gate.metric} better than {quote_word(str(gate.baseline))}`"


def _seen_values(
    gate: Gate, evaluation: Evaluation, scorer: str, metric: Metric, heaviest: float
) -> dict[str | None, Seen]:
    """The clusters of a mean of values with a range, of which rare ones may not have been seen; by target."""
    if gate.level is None or not (metric.averages and np.isfinite(metric.row_range).all()) or why_unpairable(metric):
        return {}
    return seen_values(evaluation, scorer, metric, dict(gate.where), heaviest)


def _summarise(gate: Gate, evaluation: Evaluation, scorer: str, metric: Metric) -> list[MetricRow]:
    """The values of a metric by target, over all rows and by the attributes of a gate's group."""
    by, dataset = tuple(name for name, _ in gate.where), dataset_of(evaluation)
    check_attributes(gate, dataset.roles.attributes)
    rows = shards(evaluation, dataset, scorer, by, labelled_for=metric if metric.reads_labels else None)
    return summarise(rows, [metric], [attribute_columns(by)], repeated=is_repeated(evaluation))


def _is_unchanged(gate: Gate, label: str, evaluation: Evaluation, base: Evaluation) -> bool:
    """Whether both sides are one task. Two tasks with the same answers share an evaluation, and may differ elsewhere.

    Answers that were made elsewhere do not say what made them, so that they may be of two systems.
    """
    if base.id != evaluation.id:
        return False
    refs = base.store.refs()
    if base is not evaluation and not any((ref.kind, ref.id) == ("evaluations", base.id) for ref in refs):
        return False
    runs = [find_labelled_run(base, str(gate.baseline), refs), find_labelled_run(evaluation, label, refs)]
    tasks = [run.manifest["spec"]["task"] for run in runs if run is not None]
    return len(tasks) == 2 and tasks[0] == tasks[1] and tasks[0]["kind"] not in _MADE_ELSEWHERE


_MADE_ELSEWHERE: Final = ("given", "recorded", "imported")


def _check_differences(
    gate: Gate, base: Evaluation, evaluation: Evaluation, scorer: str, metric: Metric, heaviest: float, is_same: bool
) -> Iterator[Outcome]:
    """Compares the difference to the baseline with a margin, by target."""
    level = gate.level or LEVEL
    if isinstance(metric, PredictionPoweredMean):
        every = pair_labelled_rows([base, evaluation], scorer, metric, dict(gate.where))
        for place, key in enumerate(every.rows.keys):
            own = every.take(every.rows.group == place)
            sample = LabelledSample.from_rows(own, 0, 1)
            yield _check_difference(gate, own.rows, key[0], metric, level, is_same, heaviest, sample)
        return
    rows = pair_rows([base, evaluation], scorer, metric, dict(gate.where))
    for place, key in enumerate(rows.keys):
        yield _check_difference(gate, rows.take(rows.group == place), key[0], metric, level, is_same, heaviest)


def _check_difference(
    gate: Gate,
    rows: PairedRows,
    target: str | None,
    metric: Metric,
    level: float,
    is_same: bool,
    heaviest: float,
    labelled: LabelledSample | None = None,
) -> Outcome:
    known = np.all(rows.known, axis=0)
    by_rows = Sample.from_rows(rows.take(known), 0, 1, metric) if metric.averages and not labelled else None
    sample = labelled or by_rows or MetricSample.from_rows(rows, 0, 1)
    counts = name_counts(count_pairs(rows, 0, 1))
    scored = counts["n"] not in (counts["n_baseline_missing"], counts["n_missing"])
    if (
        scored
        and metric.missing == "leave_out"
        and counts["n_used"] < counts["n"]
        and not math.isfinite(metric.ends[0])
    ):
        why = f"undefined: rows without a score have no worst value; {format_pair_counts(counts)}"
        return Outcome(False, why, {"target": target, "level": level} | counts, is_decided=False)
    return judge_difference(gate, sample, target, metric.direction, level, is_same, counts, heaviest)


def _find_baseline(
    gate: Gate, evaluation: Evaluation, evaluations: Mapping[str, Evaluation], others: Mapping[str, Evaluation]
) -> Evaluation | None:
    name = gate.baseline
    if name is None:
        return None
    known = {**evaluations, **others}
    if name in known:
        return known[name]
    if name == BASELINE and others:
        return next(iter(others.values()))
    return _find_stored_baseline(gate, name, evaluation.store, [*known, *([BASELINE] if others else [])])


def _find_stored_baseline(gate: Gate, name: str, store: Store, known: Sequence[str]) -> Evaluation:
    """The baseline that has this name in the store."""
    try:
        found = find_evaluations(store, name)
    except NotFound:
        stored = (ref.name for ref in store.refs() if ref.kind in ("evaluations", "runs"))
        hint = nearest(name, [*known, *stored]) or f"; there are {', '.join(known)}"
        raise SpecError(f"gate {gate.text!r}: no baseline is called {name!r}{hint}") from None
    if len(found) > 1:
        raise SpecError(f"gate {gate.text!r}: {name!r} refers to {len(found)} evaluations; name one")
    return found[0]


def _find_scorer(gate: Gate, known: Sequence[str], usual: str | None, declared: Sequence[Measure] = ()) -> str:
    """The scorer that a gate names, or else the only one, or the only one whose metric of this name is declared."""
    name = gate.scorer or usual
    if gate.metric == WIN_RATE and not any(_is_declared(WIN_RATE, scorer, declared) for scorer in known):
        raise SpecError(
            f"gate {gate.text!r}: {WIN_RATE} is a number of ratings, not of an evaluation; check it with"
            " `evaluand rate MATCHES --gate …`"
        )
    if gate.metric in known and not is_name(gate.metric) and not _is_declared(gate.metric, gate.metric, declared):
        kinds = [measure.metric.kind for measure in declared if measure.scorer == gate.metric]
        rule = f"{(kinds or ['accuracy'])[0]}({quote_word(gate.metric)})"
        raise SpecError(f"gate {gate.text!r}: {gate.metric!r} is a scorer, not a metric; did you mean `{rule}`?")
    if name is None and len(known) == 1:
        return known[0]
    if name is None:
        of_metric = [scorer for scorer in known if _is_declared(gate.metric, scorer, declared)]
        if len(of_metric) == 1:
            return of_metric[0]
        raise SpecError(f"gate {gate.text!r}: name the scorer: {gate.metric}({' | '.join(known) or 'SCORER'}) …")
    if name not in known:
        raise SpecError(
            f"gate {gate.text!r}: no scorer is called {name!r}{nearest(name, known)}; there are {', '.join(known)}"
        )
    return name


def _is_declared(metric: str, scorer: str, declared: Sequence[Measure]) -> bool:
    own = [measure for measure in declared if measure.scorer == scorer]
    return any(measure.criterion == metric for measure in own) or bool(declared_as(metric, own))


def _find_metrics(
    gate: Gate,
    scorer: str,
    measures: Sequence[Measure],
    missing: Missing | None = None,
    metric_by_name: Callable[[str], Metric] = default_metric,
) -> list[Metric]:
    """The metric of a gate; for a criterion of fairness, all metrics it consists of."""
    own = [measure for measure in measures if measure.scorer == scorer]
    of_criterion = [measure.metric for measure in own if measure.criterion == gate.metric]
    found = (
        _find_criterion_metrics(gate, scorer, of_criterion)
        if of_criterion
        else [_find_metric(gate, scorer, own, missing, metric_by_name)]
    )
    for metric in found:
        check_number(gate, metric)
        check_decidable(gate, scorer, metric)
    return found


def _find_criterion_metrics(gate: Gate, scorer: str, metrics: Sequence[Metric]) -> list[Metric]:
    if gate.disparity is None:
        raise SpecError(
            f"gate {gate.text!r}: {gate.metric} is a criterion, which has no value; name one of its disparities:"
            f" {gate.metric} difference by …"
        )
    of_kind: dict[str, dict[str, Metric]] = {}
    for metric in metrics:
        of_kind.setdefault(metric.kind, {})[metric.signature] = metric
    return [_require_one(gate, scorer, _match_parameters(gate, scorer, alike)) for alike in of_kind.values()]


def _find_metric(
    gate: Gate, scorer: str, measures: Sequence[Measure], missing: Missing | None, by_name: Callable[[str], Metric]
) -> Metric:
    alike = declared_as(gate.metric, measures)
    meant = _match_parameters(gate, scorer, {metric.signature: metric for metric in alike})
    if gate.baseline is not None and all(math.isfinite(metric.ends[0]) for metric in meant):
        missing = missing or "wrong"
    declared = {_with_missing(metric, missing).signature: metric for metric in meant}  # as the gate will use them
    if declared:
        return _require_one(gate, scorer, [*declared.values()])
    try:
        return by_name(gate.metric)
    except SpecError as error:
        if gate.metric in CRITERIA:
            raise SpecError(
                f"gate {gate.text!r}: {gate.metric} is a criterion of fairness, which the experiment must declare:"
                f" fairness: [{{criterion: {gate.metric}, by: [{', '.join(gate.by) or '…'}], label: …}}]"
            ) from None
        known = [*dict.fromkeys(name for measure in measures for name in (*measure.called, measure.criterion) if name)]
        near = nearest(gate.metric, known)
        hint = f"; known names: {', '.join(known)}" if known else ""
        reason = f"no metric is called {gate.metric!r}{near}" if near else f"{error}{hint}"
        raise SpecError(f"gate {gate.text!r}: {reason}") from None


def _require_one(gate: Gate, scorer: str, metrics: Sequence[Metric]) -> Metric:
    if len(metrics) == 1:
        return metrics[0]
    raise SpecError(
        f"gate {gate.text!r}: {gate.metric} of {scorer!r} is declared more than once; name one:"
        f" {', '.join(_list_spellings(gate, scorer, [metric.signature for metric in metrics]))}"
    )


def _match_parameters(gate: Gate, scorer: str, metrics: Mapping[str, Metric]) -> list[Metric]:
    """The metrics of a kind, by signature, that have a gate's parameters; only one if its label in tables matches."""
    distinct, parameters = distinguishing_words([*metrics]), dict(gate.parameters)
    having = [
        s for s in metrics if all(_is_same_value(words_of(s).get(name), value) for name, value in parameters.items())
    ]
    if parameters and not having:
        known = f"; there are {', '.join(_list_spellings(gate, scorer, [*metrics]))}" if metrics else ""
        raise SpecError(f"gate {gate.text!r}: the experiment has no {gate.metric} with these parameters{known}")
    called = [signature for signature in having if distinct[signature].keys() == parameters.keys()]
    return [metrics[signature] for signature in (called if len(called) == 1 else having)]


def _is_same_value(word: str | None, value: str) -> bool:
    """Whether a value in a signature, where texts may be quoted, is the value in a gate."""
    if word is None or word == value:
        return word is not None
    with suppress(ValueError):
        return float(word) == float(value)
    return word == encode(value).decode()


def _list_spellings(gate: Gate, scorer: str, signatures: Sequence[str]) -> Iterator[str]:
    """How a gate would name each of several metrics of a kind."""
    for parameters in distinguishing_words(signatures).values():
        words = [quote_word(scorer), *(f"{name}={quote_word(word)}" for name, word in parameters.items() if name)]
        yield f"{gate.metric}({', '.join(words)})"


def _with_missing(metric: Metric, missing: Missing | None) -> Metric:
    return metric if missing is None else dataclasses.replace(metric, missing=missing)


def _is_exact(row: MetricRow) -> bool:
    """Whether the value is a proportion of independent rows, for which an exact bound is known."""
    return isinstance(row.data, dict) and row.data.keys() == {"correct", "n"}
