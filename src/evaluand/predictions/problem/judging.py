"""Predictions judged by the criteria of a problem, each under a public definition."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.aggregation.aggregator import Measure, MeasureResults, compute_measures
from evaluand.aggregation.groups import MetricRow
from evaluand.aggregation.shard import ATTRIBUTE
from evaluand.core import registry
from evaluand.core.errors import DataError, Fault, SpecError
from evaluand.evaluation.prediction_table import SCORER, scored_table
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.detection.precision import average_precision_by_label
from evaluand.predictions.problem.aligned import AlignedTables, Columns
from evaluand.predictions.problem.criteria import (
    CriterionError,
    criterion_notes,
    label_parameters,
    vocabulary,
)
from evaluand.predictions.problem.definitions import STANDARD, Reads, Rule, rule_of
from evaluand.predictions.problem.problem import Criterion
from evaluand.predictions.problem.sides import (
    CONFIDENCE,
    PREDICTIONS,
    TRUTH,
    Attribute,
    CriterionFault,
    Keys,
    Side,
    column_faults,
    match_keys,
    repeated,
    repeated_faults,
    row_faults,
)
from evaluand.store.tables import SHARD_ROWS

Labels = Sequence[Any] | Mapping[str, Sequence[Any]]


@dataclass(frozen=True, kw_only=True)
class CriterionResult:
    """What a criterion says of one target, or of all together.

    Attributes:
        row: the value with its interval, reason, signature and counts; without a target where all are judged together.
        definition: the public definition of the metric.
        metric: with its parameters.
        reads: what it was computed from.
        notes: what is no fault but may be unintended.
        results: the values of groups, the disparities between them, and the curves.
    """

    criterion: Criterion
    row: MetricRow
    definition: str
    metric: Metric
    reads: Reads
    notes: tuple[Fault, ...] = ()
    results: MeasureResults = field(repr=False)

    @property
    def target(self) -> str | None:
        """None where all targets are judged together."""
        return self.row.target

    @property
    def value(self) -> float:
        """NaN where undefined; `row.reason` says why."""
        return self.row.value


@dataclass(frozen=True, kw_only=True)
class JudgeOptions:
    """How criteria are judged.

    Attributes:
        definition: one of `DEFINITIONS`; the standard one if None.
        labels: all possible labels, or those of each target; those of truth and predictions if None.
        confidence: of the intervals; None for values alone.
        groups: attribute → its value of each example, by which values are grouped too.
        by: the groupings, by one attribute or by several together, between whose groups there are differences.
    """

    definition: str | None = None
    labels: Labels | None = None
    confidence: float | None = 0.95
    groups: Mapping[str, pa.Array] = field(default_factory=dict)
    by: Sequence[tuple[str, ...]] = ()


def judge(
    truth: pa.Table,
    predictions: pa.Table,
    criteria: Sequence[Criterion],
    *,
    index: Sequence[str],
    targets: Sequence[str],
    definition: str | None = None,
    labels: Labels | None = None,
    several: bool | None = None,
    confidence_of_interval: float | None = 0.95,
) -> list[CriterionResult]:
    """Judges predictions by each criterion, for each target or for all together.

    Rows are matched by their index, whatever their order. An index that occurs several times has several labels, class
    scores (with `confidence`; a label without a row has 0), or a ranking (with `rank`), as the criterion requires. Of
    class scores, criteria of labels judge the most confident label.

    Args:
        truth: the index, the targets, and other columns, which are ignored.
        predictions: the index, the targets, and optionally `confidence` and `rank` in any case.
        index: the columns that say what a row is about; of detection those of the image.
        targets: the columns that are judged.
        definition: one of `DEFINITIONS`; the standard one if not given.
        labels: all possible labels, or those of each target; those of truth and predictions if not given.
        several: whether an example may have several labels; if not given, whether one has in the truth.
        confidence_of_interval: of the intervals; None for values alone, which cost less.

    Raises:
        DataError: something cannot be judged; every fault with its code and its place, rows counted from 1.

    Example:
        >>> truth = pa.table({"id": [1, 2, 3], "kind": ["cat", "dog", "dog"]})
        >>> predictions = pa.table({"id": [3, 2, 1], "kind": ["dog", "cat", "cat"]})
        >>> [result] = judge(truth, predictions, [Criterion(metric="accuracy")], index=["id"], targets=["kind"])
        >>> round(result.value, 3), result.target, result.row.n, result.row.signature
        (0.667, 'kind', 3, 'accuracy v1 missing=leave_out reduce=first column=value interval=wilson 95%')
    """
    sides = Side(TRUTH, truth), Side(PREDICTIONS, predictions)
    rules, faults = _rules(criteria, definition, sides[1], len(targets))
    for side in sides:
        faults += column_faults(side, index, targets, truth.column_names if side.name == PREDICTIONS else None)
        if not side.table.num_rows and (side.name == TRUTH or {rule.reads for rule in rules} != {"boxes"}):
            faults.append(side.fault("no_rows", "there is no row"))
    _check(faults)
    keys, faults = match_keys(*sides, index)
    if keys is None:
        raise DataError(dict.fromkeys(faults))
    options = JudgeOptions(definition=definition, labels=labels, confidence=confidence_of_interval)
    return judge_sides(*sides, keys, criteria, targets, options, several=several, unchecked=index, faults=faults)[1]


def judge_sides(
    truth: Side,
    predictions: Side,
    keys: Keys,
    criteria: Sequence[Criterion],
    targets: Sequence[str],
    options: JudgeOptions,
    *,
    several: bool | None = None,
    multi_label: bool = False,
    unchecked: Sequence[str] = (),
    faults: Sequence[Fault] = (),
) -> tuple[AlignedTables, list[CriterionResult]]:
    """Aligns two tables and judges them; see `judge`.

    Args:
        keys: the example of each row.
        multi_label: whether the problem says that examples have several labels, even if none of these has.
        unchecked: the columns of the index, if their rows were not compared yet.
        faults: those that are known already.

    Raises:
        DataError: something cannot be judged.
    """
    rules, odd = _rules(criteria, options.definition, predictions, len(targets))
    _check(odd)
    reads = {rule.reads for rule in rules}
    with_sets = _has_sets(reads, keys, truth, predictions, targets, several, multi_label)
    has_scores = (
        not keys.aligned and len(repeated(keys.predictions)) and predictions.find_column(CONFIDENCE) is not None
    )
    by_class = bool(not with_sets and has_scores and any(map(_uses_scores, rules)))
    if with_sets:  # areas are those of each label, which need not be two or agree
        _check([*_single_label_faults(criteria, rules)])
        rules = [replace(rule, two_classes=False, one_value=False) if rule.of_sets else rule for rule in rules]
    found = [*faults]
    if unchecked and reads != {"boxes"}:
        of_one = bool(reads - {"sets", "scores", "ranking", "boxes"}) or ("sets" in reads and not with_sets)
        if of_one or ("scores" in reads and not with_sets):
            found += repeated_faults(truth, unchecked, keys.truth)
        found += row_faults(truth, predictions, unchecked, keys, one_prediction=of_one and not by_class)
    aligned = AlignedTables(truth, predictions, keys, with_sets, by_class)
    found += aligned.read(targets, reads, sound=not found)
    for name in dict.fromkeys(name for rule in rules for name in rule.of_truth):
        found += aligned.numbers_of_truth(name)[1]
    _check(found)
    return aligned, _judge_aligned(aligned, criteria, rules, targets, options)


def _check(faults: Sequence[Fault]) -> None:
    if faults:
        raise DataError(dict.fromkeys(faults))


def _judge_aligned(
    aligned: AlignedTables,
    criteria: Sequence[Criterion],
    rules: Sequence[Rule],
    targets: Sequence[str],
    options: JudgeOptions,
) -> list[CriterionResult]:
    results, faults = list[CriterionResult](), list[Fault]()
    for number, (criterion, rule) in enumerate(zip(criteria, rules, strict=True)):
        judged = [*aligned.boxes] if rule.reads == "boxes" else targets
        together = criterion.jointly or (rule.always_jointly and len(targets) > 1) or len(judged) < len(targets)
        for names in [tuple(judged)] if together else [(name,) for name in judged]:
            try:
                results.append(_judge(aligned, criterion, rule, names, options, together))
            except CriterionError as error:
                where = f"{criterion.metric} of {', '.join(names)}"
                faults.append(CriterionFault(where, str(error), code=error.code, number=number, key=error.attribute))
            except DataError as error:
                faults += error.faults
    _check(faults)
    return results


def _rules(
    criteria: Sequence[Criterion], definition: str | None, predictions: Side, n_targets: int
) -> tuple[list[Rule], list[Fault]]:
    """The rule of each criterion; fewer rules than criteria if there are faults."""
    rules, faults = list[Rule](), list[Fault]()
    for number, criterion in enumerate(criteria):
        rule = rule_of(criterion.metric, definition)
        if isinstance(rule, Rule):
            if rule.without_scores and predictions.find_column(CONFIDENCE) is None:
                rule = rule.without_scores
            for key, code, message in _contradictions(criterion, rule, definition or STANDARD, n_targets):
                faults.append(CriterionFault(criterion.metric, message, code=code, number=number, key=key))
            rules.append(rule)
        elif rule[0] == "definition_unknown":
            faults.append(Fault("definition", rule[1], code=rule[0]))
        else:
            faults.append(CriterionFault(criterion.metric, rule[1], code=rule[0], number=number))
    return rules, faults


def _contradictions(
    criterion: Criterion, rule: Rule, name: str, n_targets: int
) -> Iterable[tuple[Attribute, str, str]]:
    """Attribute, code and message of each parameter that the metric needs or does not take."""
    if criterion.jointly and rule.jointly is None and n_targets > 1:
        yield "jointly", "not_applicable", f"the definition {name} judges each target alone, not several together"
    if rule.k == 0 and criterion.k is None:
        yield "k", "cannot_be_scored", "needs k (K), the number of ranks or rows it looks at"
    if rule.k is None and criterion.k is not None:
        yield "k", "not_applicable", "takes no k (K)"
    if rule.positive == "given" and criterion.positive is None:
        yield "positive", "needs_positive", f"needs the positive label (posLabel) in the definition {name}"
    if rule.positive == "none" and criterion.positive is not None:
        yield "positive", "not_applicable", f"takes no positive label (posLabel) in the definition {name}"


def _has_sets(
    reads: set[Reads],
    keys: Keys,
    truth: Side,
    predictions: Side,
    targets: Sequence[str],
    several: bool | None,
    multi_label: bool,
) -> bool:
    """Whether examples have several labels: in the truth, or in predictions that are no scores of classes."""
    if keys.aligned or several is False or not ("sets" in reads or several):
        return False
    if len(repeated(keys.truth)):
        return not reads & {"ranking", "boxes"}
    if not several or not len(repeated(keys.predictions)):
        return False
    if predictions.find_column(CONFIDENCE) is None:
        return "sets" in reads
    return "scores" in reads and (multi_label or any(_has_empty_cells(truth.column(name)) for name in targets))


def _has_empty_cells(column: pa.Array) -> bool:
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    return bool(column.null_count) or (is_text and bool(pc.any(pc.equal(column, "")).as_py()))


def _uses_scores(rule: Rule) -> bool:
    """Whether a metric is defined on scores, even if a definition applies it to labels."""
    return rule.reads in ("scores", "confidence") or rule.parameters.get("scored_by") == "labels"


def _single_label_faults(criteria: Sequence[Criterion], rules: Sequence[Rule]) -> Iterable[Fault]:
    """Criteria that cannot judge sets of labels."""
    for number, (criterion, rule) in enumerate(zip(criteria, rules, strict=True)):
        if rule.reads != "sets" and not (rule.of_sets and rule.reads == "scores"):
            message = "judges one label of each example, but here examples have several; leave it out"
            yield CriterionFault(criterion.metric, message, code="not_applicable", number=number)


def _judge(
    aligned: AlignedTables,
    criterion: Criterion,
    rule: Rule,
    targets: tuple[str, ...],
    options: JudgeOptions,
    together: bool,
) -> CriterionResult:
    try:
        metric = _metric(aligned, criterion, rule, targets, options, together)
        results = _measure(aligned, rule, metric, targets, options)
        if rule.one_value:
            _check_classes_agree(aligned, rule, metric, targets)
    except DataError as error:
        if error.code is not None:
            raise
        raise CriterionError(None, "cannot_be_scored", "; ".join(fault.message for fault in error.faults[:3])) from None
    except SpecError as error:
        raise CriterionError(None, "cannot_be_scored", str(error)) from None
    called = None if together else targets[0]
    values = [(scorer, row._replace(target=called)) for scorer, row in results.values if row.target is None]
    return CriterionResult(
        criterion=criterion,
        row=values[0][1],
        definition=options.definition or STANDARD,
        metric=metric,
        reads=rule.reads,
        notes=tuple(note for name in targets for note in criterion_notes(aligned, rule, name)),
        results=results._replace(values=values),
    )


def _metric(
    aligned: AlignedTables,
    criterion: Criterion,
    rule: Rule,
    targets: tuple[str, ...],
    options: JudgeOptions,
    together: bool,
) -> Metric:
    """The metric with all its parameters."""
    parameters = dict(rule.parameters)
    if rule.k is not None:
        parameters["k"] = rule.k if criterion.k is None else criterion.k
    if rule.labels and (labels := options.labels) is not None:
        listed = [labels.get(name) if isinstance(labels, Mapping) else labels for name in targets]
        if any(each != listed[0] for each in listed):
            message = "targets that are judged together must have the same labels"
            raise CriterionError("jointly", "not_applicable", message)
        if listed[0] is not None:
            parameters["labels"] = list(listed[0])
    parameters |= label_parameters(aligned, criterion, rule, targets)
    if rule.if_none_ranked and all(
        len(f := aligned.columns(t, "ranking")["first_rank"]) == f.null_count for t in targets
    ):
        parameters |= rule.if_none_ranked
    if together and len(targets) > 1:
        parameters["over_targets"] = rule.jointly
    kind = registry.find("metrics", rule.kind)
    known = {each.name: each for each in fields(kind)}
    if "confidence" in known and (options.confidence is not None or known["confidence"].type not in ("float", float)):
        parameters["confidence"] = options.confidence
    metric: Metric = kind(**parameters)
    return metric


def _measure(
    aligned: AlignedTables, rule: Rule, metric: Metric, targets: tuple[str, ...], options: JudgeOptions
) -> MeasureResults:
    """The values of a metric: over all targets, and for each of several; by group too."""
    if rule.reads == "boxes":
        columns: list[Columns] = [aligned.image_columns(targets[0])]
    else:
        further = {name: aligned.numbers_of_truth(name)[0] for name in rule.of_truth}
        columns = [{**aligned.columns(name, rule.reads), **further} for name in targets]
    many = len(targets) > 1
    table = scored_table(columns, targets if many else None)
    for name, column in options.groups.items():
        table = table.append_column(ATTRIBUTE + name, pa.concat_arrays([column] * len(targets)))
    size = _ROWS_AT_ONCE if _keeps_no_rows(metric) and not many else max(table.num_rows, 1)
    shards = [table.slice(start, size) for start in range(0, max(table.num_rows, 1), size)]
    measure = Measure(scorer_of(rule.reads), metric, options.by, ("difference",) if options.by else ())
    results = compute_measures([measure], lambda *_, **__: shards)
    values = [(scorer, _of_examples(row, len(targets), options)) for scorer, row in results.values]
    if rule.reads == "boxes":
        values[0] = (values[0][0], _in_file_order(aligned, metric, targets[0], values[0][1]))
    return results._replace(values=values)


def scorer_of(reads: Reads) -> str:
    """The kind of the scorer whose table metrics read."""
    return {"boxes": "detection", "ranking": "ranking"}.get(reads, SCORER)


def _of_examples(row: MetricRow, n_targets: int, options: JudgeOptions) -> MetricRow:
    """A value with the number of examples, where it is over all targets, and without an interval if none is wanted."""
    if row.target is None and n_targets > 1:
        row = row._replace(n=row.n // n_targets, n_scored=row.n_scored // n_targets)
    return row if options.confidence is not None else row._replace(low=math.nan, high=math.nan)


def _keeps_no_rows(metric: Metric) -> bool:
    """Whether shards cost nothing to merge; small ones are faster, since they stay in the processor's cache."""
    counts = not metric.by_cluster and (metric.averages or bool(getattr(metric, "counted", False)))
    return counts or metric.counts_independent_rows


_ROWS_AT_ONCE: Final = 2 * SHARD_ROWS
_EQUAL: Final = 1e-9


def _check_classes_agree(aligned: AlignedTables, rule: Rule, metric: Any, targets: tuple[str, ...]) -> None:
    """Refuses scores of two classes that order the examples differently."""
    for name in targets:
        columns = aligned.columns(name, rule.reads)
        if _are_complements(columns["scores"]):
            continue
        own = [replace(metric, label=label, over_targets=None) for label in vocabulary(columns)]
        values = [_measure(aligned, rule, each, (name,), JudgeOptions()).values[0][1].value for each in own]
        if len(values) > 1 and abs(values[0] - values[1]) > _EQUAL:
            both = f"{values[0]:.6g} and {values[1]:.6g}"
            message = f"the scores of the two classes give different values: {both}; give the scores of both"
            if (np.diff(np.asarray(columns["scores"].offsets)) == 1).all():
                message = (
                    "each example has one row, and a class without a row has the score 0, so the two classes give "
                    f"different values: {both}; give a row for each class"
                )
            raise CriterionError(None, "cannot_be_scored", f"{message}, such as 0.7 and 0.3")


def _are_complements(lists: pa.Array) -> bool:
    """Whether the scores of two classes have the same sum in every row, so one determines the other."""
    if not bool((np.diff(np.asarray(lists.offsets)) == 2).all()):
        return False
    total = np.asarray(pc.struct_field(lists.flatten(), "score")).reshape(-1, 2).sum(axis=1)
    return bool(np.ptp(total) < 1e-12 * max(1.0, float(np.abs(total).max())))


def _in_file_order(aligned: AlignedTables, metric: Any, target: str, row: MetricRow) -> MetricRow:
    """The value of boxes in the order of their files, which counts where detections have one confidence."""
    truths, detections = aligned.boxes[target]
    curves = average_precision_by_label(detections, truths, definition=metric.definition)
    values = {label: curve.ap for label, curve in curves.items() if not math.isnan(curve.ap)}
    value = float(np.mean([*values.values()])) if values else math.nan
    if value != value or abs(row.value - value) < _EQUAL:
        return row._replace(value=value)
    data = None if truths.label is None else {"labels": {str(label): {"value": ap} for label, ap in values.items()}}
    reason = "no interval: detections of one confidence count in the order of the file"
    return row._replace(
        value=value, low=math.nan, high=math.nan, worst=math.nan, best=math.nan, reason=reason, data=data
    )
