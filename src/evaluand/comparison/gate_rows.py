"""The rows of gates on metrics: values, disparities of groups, and how far either differs from that of a baseline."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from evaluand.aggregation.aggregator import Measure, compute_measures
from evaluand.aggregation.disparity import DisparityRow
from evaluand.aggregation.group_rules import read_rules
from evaluand.aggregation.groups import MetricRow, group_text, summarise
from evaluand.aggregation.score_shards import dataset_of, is_repeated, shards
from evaluand.aggregation.seen import Seen, can_be_seen, seen_by_group
from evaluand.comparison.checking import Row
from evaluand.comparison.difference import NO_LOOKS, Measured, Sample, count_pairs
from evaluand.comparison.disparity_differences import better_disparity, disparity_differences
from evaluand.comparison.gate_metrics import CORRECTED_MEAN, at_level, check_attributes, with_missing
from evaluand.comparison.measuring import measure_pair, read_rows
from evaluand.comparison.pairing import Pairing, why_unpairable
from evaluand.comparison.rule import ANYTIME, EQUAL, LEVEL, Gate, quote_word
from evaluand.core.errors import DataError, SpecError, first_fault, plural
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.standing import ScorerStanding
from evaluand.metrics.base.confusion import TRUTH
from evaluand.metrics.base.metric import Metric, Missing
from evaluand.metrics.judging.estimate import Estimate
from evaluand.metrics.stats.disparity import AT_MOST, Kind
from evaluand.metrics.stats.intervals import clopper_pearson


class Question(NamedTuple):
    """What a gate asks about one evaluation.

    Attributes:
        base: the baseline; None for gates without one.
        metrics: of a criterion of fairness several, of a mean corrected for its judge none, else one.
        standings: of those whose opinions the scores are.
        missing: what happens to rows without a score, in place of the default of gates.
        states_missing: whether somebody chose how rows without a score count.
        smallest: the fewest rows that a group must rest on.
        heaviest: the weight of the heaviest cluster that a growing run can have, for bounds that hold at all looks:
            where the gate says so, or a rule stopped a run. None for bounds of a single look.
        is_same: whether the evaluation is that of the baseline.
    """

    gate: Gate
    evaluation: Evaluation
    base: Evaluation | None
    scorer: str
    metrics: Sequence[Metric]
    standings: Sequence[ScorerStanding]
    missing: Missing | None
    states_missing: bool
    smallest: int
    heaviest: float | None
    is_same: bool


def find_rows(asked: Question) -> list[Row]:
    """The rows that a gate is about, one for each target."""
    gate, base = asked.gate, asked.base
    find: Callable[[Question, Sequence[Metric]], Iterator[Row]]
    if gate.metric == CORRECTED_MEAN:
        find = _find_corrected
    elif gate.disparity is not None:
        find = _find_disparities if base is None else _find_disparity_differences
    elif base is None:
        find = _find_values
    else:
        find = _find_point_differences if gate.level is None else _find_differences
    try:
        rows = [*find(asked, [with_missing(gate, metric, asked.missing) for metric in asked.metrics])]
    except DataError as error:
        return [Row(missing=first_fault(error))]
    except SpecError as error:
        raise error if str(error).startswith("gate ") else gate.fault(str(error)) from None
    return rows if asked.heaviest is None else [_allow_for_looks(gate, row) for row in rows]


def _allow_for_looks(gate: Gate, row: Row) -> Row:
    """The row without bounds of a single look, and with why those of all looks decide."""
    if row.end is None or row.is_same:
        return row
    if row.more.get(ANYTIME):
        return row if gate.anytime else row._replace(counts=f"{row.counts}; at all looks, as a rule stopped the run")
    reason = row.reason if math.isnan(row.value) else NO_LOOKS
    return row._replace(low=math.nan, high=math.nan, reason=reason)


def _find_corrected(asked: Question, _: Sequence[Metric]) -> Iterator[Row]:
    """The mean of a judge, corrected by its card; without a card that shows right and wrong there is none."""
    gate = asked.gate
    if not asked.standings:
        raise gate.fault(f"{asked.scorer!r} is no judge, so its mean needs no correction")
    standing = asked.standings[0]
    has_card = standing.status in ("measured", "weak")
    mean = standing.correct(asked.evaluation, asked.scorer) if has_card else None
    if mean is None:
        why = "its card does not say how often it errs: no right or wrong"
        yield Row(facts=None, missing=f"undefined: {why if has_card else 'the judge, as it is now, has no card'}")
        return
    share = mean.corrected if gate.level is None else mean.at(2 * gate.level - 1)
    note = f"; {mean.raw.value:.4g} judged right{mean.overlap}"
    yield _measured(gate, share, None, more={"n": share.n}, note=note, reason=str(share.reason))


def _measured(gate: Gate, row: MetricRow | DisparityRow | Estimate, target: str | None, **more: Any) -> Row:
    """The row of a number that was measured with the bounds of a gate's level."""
    return Row(row.value, row.low, row.high, gate.end, {"target": target}, **more)


def _find_values(asked: Question, metrics: Sequence[Metric]) -> Iterator[Row]:
    gate, [metric] = asked.gate, metrics
    metric = metric if gate.level is None else at_level(gate, metric, is_exact=_are_independent(asked, metric))
    counted = ("n", "n_scored", "n_failed", "n_abstained", "n_skipped")
    seen = _seen_values(asked, metric) if gate.level is not None and can_be_seen(metric) else {}
    for row in _summarise(asked, asked.evaluation, metric):
        own, looks = seen.get(row.target), {}
        if gate.level is not None:
            low, high = bounds_of_value(row, own, gate.level)
            if own is not None and asked.heaviest is not None:
                (low, high), looks = own.bounds(gate.level), own.facts(str(gate.end), gate.number, gate.level)
            row = row._replace(low=low, high=high)
        yield _measured(
            gate,
            row,
            row.target,
            facts={"worst": row.worst, "best": row.best},
            more=looks | {name: getattr(row, name) for name in counted},
            counts=_counts_text(row),
            is_exact=bool(looks) or row.is_exact,
            is_bounded=math.isfinite(metric.range[1] - metric.range[0]),
            reason=row.reason or ("the metric has no interval" if gate.end else "it is undefined"),
            has_gaps=_has_gaps(asked, row),
        )


def bounds_of_value(row: MetricRow, seen: Seen | None, level: float) -> tuple[float, float]:
    """The one-sided bounds of a value at a level.

    Where it is no share of independent rows, they are no narrower than its interval of 2 · level − 1; and those of
    means with a range allow for rare values that no row has shown.

    Args:
        row: with that interval.
        seen: the clusters, of a mean with a range.
    """
    if row.is_exact:
        return clopper_pearson(row.data["correct"], row.data["n"], level)
    if seen is None:
        return row.low, row.high
    low, high = seen.bounds_of_one_look(level)
    return float(np.fmin(row.low, low)), float(np.fmax(row.high, high))


def _seen_values(asked: Question, metric: Metric) -> dict[str | None, Seen]:
    """The values of one system by cluster: target → clusters."""
    gate, evaluation = asked.gate, asked.evaluation
    by, heaviest = tuple(name for name, _ in gate.where), asked.heaviest or 0.0
    groups = seen_by_group(evaluation, metric, asked.scorer, by, heaviest)
    values = tuple(value for _, value in gate.where)
    return {target: seen for (target, *own), seen in groups.items() if tuple(own) == values}


def _summarise(asked: Question, evaluation: Evaluation, metric: Metric) -> list[MetricRow]:
    """The values of a metric in the group of a gate, by target."""
    where = dict(asked.gate.where)
    check_attributes(asked.gate, dataset_of(evaluation).roles.attributes)
    rows = shards(evaluation, asked.scorer, tuple(where), labelled_for=metric)
    found = summarise(rows, [metric], [tuple(where)], repeated=is_repeated(evaluation))
    return [row for row in found if [*row.by.values()] == [*where.values()]]


def _are_independent(asked: Question, metric: Metric) -> bool:
    """Whether the metric is of labels of independent rows that count alike."""
    evaluation = asked.evaluation
    in_clusters = is_repeated(evaluation) or dataset_of(evaluation).roles.cluster is not None
    return TRUTH in evaluation.columns(asked.scorer) and not in_clusters and not getattr(metric, "weighted", False)


def _has_gaps(asked: Question, row: MetricRow) -> bool:
    """Whether more than one row in twenty has no score, which could be worse ones, and nobody chose how they count."""
    return not asked.states_missing and row.n_scored < 0.95 * row.n


def _find_point_differences(asked: Question, metrics: Sequence[Metric]) -> Iterator[Row]:
    """The differences of the values themselves, without regard to chance."""
    gate, base, [metric] = asked.gate, cast("Evaluation", asked.base), metrics
    rule = _interval_rule(gate, metric)
    if dataset_of(base).id != dataset_of(asked.evaluation).id:
        raise gate.fault(
            f"{gate.baseline} was evaluated on another dataset, so the values themselves cannot be compared"
            f"{f'; {rule} compares the examples that both have' if rule else ''}"
        )
    of_base = {row.target: row for row in _summarise(asked, base, metric)}
    for row in _summarise(asked, asked.evaluation, metric):
        other = of_base.get(row.target)
        base_value, sides = (math.nan, [row]) if other is None else (other.value, [row, other])
        difference = row.value - base_value
        yield Row(
            difference,
            key={"target": row.target},
            facts={"difference": difference, "value": row.value, "baseline_value": base_value},
            lead=f"{_target_text(row.target)}{row.value:.4g} against {base_value:.4g}, difference ",
            note=f": a point rule, which ignores chance{f'; {rule} allows for it' if rule else ''}",
            counts=_counts_text(row),
            sign="+",
            is_rounded=True,
            reason=(None if other is None else other.reason) or row.reason or "one side has no value",
            has_gaps=metric.missing == "leave_out" and any(_has_gaps(asked, side) for side in sides),
        )


def _interval_rule(gate: Gate, metric: Metric) -> str:
    """The rule about the same difference that allows for chance; empty where there is none."""
    signs = {"higher": (">", ">="), "lower": ("<", "<=")}.get(metric.direction or "", ())
    worse = -gate.number if metric.direction == "higher" else gate.number
    if gate.relation not in signs or worse < 0 or why_unpairable(metric):
        return ""
    against = f"{gate.metric} not worse than {quote_word(str(gate.baseline))} by {worse:g}"
    return f"`{against}`" if worse else f"`{gate.metric} better than {quote_word(str(gate.baseline))}`"


def _find_differences(asked: Question, metrics: Sequence[Metric]) -> Iterator[Row]:
    [metric], sides = metrics, [cast("Evaluation", asked.base), asked.evaluation]
    every = read_rows(Pairing(sides, asked.scorer, dict(asked.gate.where)), metric)
    for place, (target, *_) in enumerate(every.keys):
        rows = every.take(every.group == place)
        counts = _count_pairs(count_pairs(rows, 0, 1))
        has_worst = metric.missing != "leave_out" or math.isfinite(metric.ends[0])
        if not (has_worst or counts["n_used"] == counts["n"] or _is_one_sided(counts)):
            why = f"undefined: rows without a score have no worst value; {_pairs_text(counts)}"
            yield Row(key={"target": target}, facts={"level": asked.gate.level} | counts, missing=why)
            continue
        yield _difference_row(asked, measure_pair(rows, 0, 1), target, metric.direction, counts)


def _difference_row(
    asked: Question, measured: Measured, target: str | None, better: str | None, counts: dict[str, int]
) -> Row:
    """A difference with the bound nearer to the margin of the gate.

    Args:
        better: the direction.
    """
    gate, level = asked.gate, asked.gate.level or LEVEL
    measured = replace(measured, heaviest=asked.heaviest)
    seen = measured.seen
    low, high = seen.bounds(level) if seen else measured.bounds(level)
    end = "low" if (low <= -high if gate.relation == EQUAL else better == "higher") else "high"
    looks = seen.facts(end, -gate.number if end == "low" else gate.number, level) if seen else {}
    interval, pairs = measured.interval(level), _pairs_text(counts)
    is_bounded = math.isfinite(measured.span)
    row = Row(
        measured.value,
        low,
        high,
        end,
        {"target": target},
        {"difference": measured.value, "level": level},
        {"low": interval[0], "high": interval[1]} | counts | looks,
        lead=f"difference {_target_text(target)}{measured.value:+.4g}, ",
        counts=pairs,
        sign="+",
        is_exact=is_bounded,
        is_bounded=is_bounded,
        is_same=asked.is_same and not math.isnan(measured.value),
        missing=f"undefined: one side has no scores; {pairs}" if _is_one_sided(counts) else "",
        reason=measured.fault or "the difference has no interval",
    )
    is_compared = not (gate.anytime or row.missing or row.is_same)
    return row._replace(counts=pairs + _interval_note(gate, measured, row, interval)) if is_compared else row


def _interval_note(gate: Gate, measured: Measured, row: Row, interval: tuple[float, float]) -> str:
    """Why the bound and the interval of a comparison say different things, where they do."""
    low, high = interval
    near, bound = (low, row.low) if row.end == "low" else (-high, -row.high)
    shown = f"{100 * (gate.level or LEVEL):g}% interval [{low:+.4g}, {high:+.4g}] of a comparison"
    if gate.holds(row.number, row.end) and -gate.number >= near:
        return f"; the {shown} is two-sided and so wider than the bound"
    if not bound < near:
        return ""
    if not isinstance(measured, Sample) or measured.is_pairs:
        why = "which is slightly too narrow where few rows differ"
    else:
        unit = "row" if measured.clusters == len(measured.change) else "cluster"
        why = (
            f"which uses observed {unit}s only: the bound allows for an unseen one that differs by {measured.span:.4g}"
        )
    return f"; beyond the {shown}, {why}"


def _count_pairs(counts: Mapping[str, int]) -> dict[str, int]:
    """The counts of pairs, named as those of a gate."""
    names = {"n_a_missing": "n_baseline_missing", "n_b_missing": "n_missing", "n_only_a": "n_only_baseline"}
    names |= {"n_only_b": "n_only"}
    return {names.get(name, name): n for name, n in counts.items() if name != "n_skipped"}


def _is_one_sided(counts: Mapping[str, int]) -> bool:
    return counts["n"] in (counts["n_baseline_missing"], counts["n_missing"])


def _find_disparities(asked: Question, metrics: Sequence[Metric]) -> Iterator[Row]:
    gate, evaluation, kind = asked.gate, asked.evaluation, cast("Kind", asked.gate.disparity)
    check_attributes(gate, dataset_of(evaluation).roles.attributes)
    # the end whose errors are more frequent
    nearer = kind.startswith("difference" if gate.relation in (">=", ">") else "ratio")
    if gate.level is not None:
        metrics = [at_level(gate, metric, AT_MOST if nearer else 0.5) for metric in metrics]
    pairs = [[[*gate.reference], [*gate.other]]] if gate.other else []
    reference = None if gate.other else [*gate.reference] or None
    rules = read_rules((gate.by,), reference=reference, pairs=pairs, given=gate.given, smallest=asked.smallest)
    measures = [Measure(asked.scorer, metric, (gate.by,), (kind,), gate.metric, rules=rules) for metric in metrics]
    found = compute_measures(measures, partial(shards, evaluation), repeated=is_repeated(evaluation), drawn=False)
    overall = {row.target: row for _, row in found.values if not row.by}
    for _, row in found.disparities:
        if bool(row.other) != bool(gate.other) or row.given != (dict.fromkeys(gate.given) or None):
            continue
        disparity = _measured(
            gate,
            row,
            row.target,
            facts={"n_groups": row.n_groups, "lowest": row.lowest, "highest": row.highest},
            note=f"; from {group_text(row.lowest)} to {group_text(row.highest)}" if row.lowest and row.highest else "",
            reason=row.reason or "it is undefined",
            has_gaps=_has_gaps(asked, overall[row.target]),
        )
        small = "" if math.isnan(disparity.number) else _small_text(row.small, row.unjudged)
        yield disparity._replace(counts=_counts_text(overall[row.target]) + small)


def declared_smallest(gate: Gate, scorer: str, metrics: Sequence[Metric], measures: Sequence[Measure]) -> int:
    """The fewest rows that a group must rest on, as the metric or criterion declares it for these groups."""
    kinds = {metric.kind for metric in metrics}
    declared = [
        measure.rules.smallest
        for measure in measures
        if measure.rules and measure.scorer == scorer and gate.by in measure.by
        if measure.criterion == gate.metric or (measure.criterion is None and measure.metric.kind in kinds)
    ]
    return max(declared, default=0)


def _find_disparity_differences(asked: Question, metrics: Sequence[Metric]) -> Iterator[Row]:
    gate, kind = asked.gate, cast("Kind", asked.gate.disparity)
    sides = [cast("Evaluation", asked.base), asked.evaluation]
    for change in disparity_differences(sides, asked.scorer, metrics, kind, gate.by, asked.smallest):
        row = _difference_row(asked, change.sample, change.target, better_disparity(kind), _count_pairs(change.counts))
        small = _small_text(change.small, change.unjudged)
        yield row._replace(counts=row.counts + small, missing=row.missing and row.missing + small)


def _small_text(small: Sequence[Mapping[str, Any]], unjudged: Sequence[Mapping[str, Any]]) -> str:
    """The groups with few rows, and those with too few to be judged, at the end of a message."""
    named = (("few rows", small), ("too few rows, so not judged", unjudged))
    return "".join(f"; {what}: {' | '.join(map(group_text, groups))}" for what, groups in named if groups)


def _target_text(target: str | None) -> str:
    return "" if target is None else f"({target}) "


def _pairs_text(counts: Mapping[str, int]) -> str:
    words = {
        "n_baseline_missing": "without a score in the baseline",
        "n_missing": "without a score",
        "n_only_baseline": "more only in the baseline",
        "n_only": "more not in the baseline",
    }
    return ", ".join(
        [plural(counts["n"], "pair"), *(f"{counts[n]:,} {word}" for n, word in words.items() if counts[n])]
    )


def _counts_text(row: MetricRow) -> str:
    """The rows behind a value, with those that have none."""
    others = ((row.n_failed, "failed"), (row.n_abstained, "abstained"), (row.n_skipped, "more skipped"))
    parts = [f"{plural(row.n, 'row')}: {row.n_scored:,} scored", *(f"{n:,} {word}" for n, word in others if n)]
    bounds = "" if row.worst == row.best or math.isnan(row.worst) else f", worst {row.worst:.4g} … best {row.best:.4g}"
    return ", ".join(parts) + bounds
