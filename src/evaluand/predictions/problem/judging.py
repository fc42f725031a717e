"""Predictions judged by the criteria of a problem, each under a public definition."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.aggregation.groups import MetricRow, summarise
from evaluand.core import registry
from evaluand.core.errors import DataError, Fault, SpecError
from evaluand.evaluation.prediction_table import scored_table
from evaluand.metrics.base.metric import VALUE, Metric
from evaluand.metrics.detection.precision import average_precision_by_label
from evaluand.predictions.problem import tables
from evaluand.predictions.problem.alignment import AlignedTables
from evaluand.predictions.problem.criteria import CriterionError, criterion_notes, label_parameters, vocabulary
from evaluand.predictions.problem.definitions import STANDARD, Reads, Rule, rule_of
from evaluand.predictions.problem.problem import Criterion
from evaluand.predictions.problem.reading import (
    CONFIDENCE,
    PREDICTIONS,
    TRUTH,
    Keys,
    Side,
    column_faults,
    match_keys,
    repeated,
)
from evaluand.store.tables import SHARD_ROWS

Labels = Sequence[Any] | Mapping[str, Sequence[Any]]
Attribute = Literal["metric", "k", "positive", "jointly"]


@dataclass(frozen=True)
class CriterionFault(Fault):
    """A criterion that cannot judge these examples.

    Attributes:
        number: its position among the criteria.
        key: which of its attributes is wrong; None where it is the predictions that it cannot judge.
    """

    number: int = field(kw_only=True)
    key: Attribute | None = field(default="metric", kw_only=True)


@dataclass(frozen=True, kw_only=True)
class CriterionResult:
    """The value of a criterion for one target, or for all together.

    Attributes:
        target: None where all targets are judged together.
        value: NaN where undefined, with a `reason`.
        low: lower end of the interval, NaN where there is none.
        high: upper end of the interval, NaN where there is none.
        reason: why the value, or only its interval, is undefined.
        n: the number of examples judged.
        metric: our kind of metric.
        signature: the kind with all its parameters.
        definition: the public definition of the metric.
        made_metric: the metric with its parameters.
        reads: what it was computed from.
        notes: what is no fault but may be unintended.
        data: further results of the metric.
    """

    criterion: Criterion
    target: str | None
    value: float
    low: float
    high: float
    reason: str | None
    n: int
    metric: str
    signature: str
    definition: str
    made_metric: Metric
    reads: Reads
    notes: tuple[Fault, ...] = ()
    data: Any = None


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
        >>> round(result.value, 3), result.target, result.n, result.signature
        (0.667, 'kind', 3, 'accuracy v1 missing=leave_out reduce=first column=value interval=wilson 95%')
    """
    aligned, rules = align(truth, predictions, criteria, index, targets, definition, several)
    return judge_aligned(aligned, criteria, rules, targets, definition, labels, confidence_of_interval)


def align(
    truth: pa.Table,
    predictions: pa.Table,
    criteria: Sequence[Criterion],
    index: Sequence[str],
    targets: Sequence[str],
    definition: str | None = None,
    several: bool | None = None,
    multi_label: bool = False,
) -> tuple[AlignedTables, list[Rule]]:
    """Checks both tables for the criteria and aligns their rows; see `judge`.

    Args:
        multi_label: whether the problem says that examples have several labels, even if none of these has.

    Raises:
        DataError: something cannot be judged.
    """
    sides = Side(TRUTH, truth), Side(PREDICTIONS, predictions)
    rules, faults = _rules(criteria, definition, sides[1], len(targets))
    faults += column_faults(*sides, index, targets)
    reads = {rule.reads for rule in rules}
    for side in sides:
        if not side.table.num_rows and (side.name == TRUTH or reads != {"boxes"}):
            faults.append(Fault(side.name, "there is no row", code="no_rows"))
    if faults:
        raise DataError(dict.fromkeys(faults))
    keys, faults = match_keys(*sides, index)
    with_sets = _has_sets(reads, keys, sides, targets, several, multi_label)
    by_class = not with_sets and any(map(_uses_scores, rules)) and _has_scores(sides[1], keys)
    aligned = AlignedTables(*sides, tuple(index), keys, with_sets, by_class)
    if with_sets:  # areas are those of each label, which need not be two or agree
        rules = [replace(rule, two_classes=False, one_value=False) if rule.of_sets else rule for rule in rules]
    single = [*_single_label_faults(criteria, rules)] if with_sets else []
    if not single:  # else rows would be checked by the wrong rule
        faults += aligned.faults(targets, reads)
        for name in dict.fromkeys(name for rule in rules for name in rule.of_truth):
            faults += aligned.faults_of_truth(name)
    if faults or single:
        raise DataError(dict.fromkeys([*faults, *single]))
    return aligned, rules


def judge_aligned(
    aligned: AlignedTables,
    criteria: Sequence[Criterion],
    rules: Sequence[Rule],
    targets: Sequence[str],
    definition: str | None = None,
    labels: Labels | None = None,
    confidence_of_interval: float | None = 0.95,
) -> list[CriterionResult]:
    """Judges aligned tables; see `judge`."""
    results, faults = list[CriterionResult](), list[Fault]()
    for number, (criterion, rule) in enumerate(zip(criteria, rules, strict=True)):
        judged = [*aligned.boxes] if rule.reads == "boxes" else targets
        together = criterion.jointly or (rule.always_jointly and len(targets) > 1) or len(judged) < len(targets)
        for names in [tuple(judged)] if together else [(name,) for name in judged]:
            try:
                result = _judge(aligned, criterion, rule, names, labels, confidence_of_interval, together)
                results.append(replace(result, definition=definition or STANDARD))
            except CriterionError as error:
                where = f"{criterion.metric} of {', '.join(names)}"
                faults.append(CriterionFault(where, str(error), code=error.code, number=number, key=error.attribute))
            except DataError as error:
                faults += error.faults
    if faults:
        raise DataError(dict.fromkeys(faults))
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
) -> Iterable[tuple[Literal["k", "positive", "jointly"], str, str]]:
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
    keys: Keys | None,
    sides: tuple[Side, Side],
    targets: Sequence[str],
    several: bool | None,
    multi_label: bool,
) -> bool:
    """Whether examples have several labels: in the truth, or in predictions that are no scores of classes."""
    if keys is None or keys.aligned or several is False or not ("sets" in reads or several):
        return False
    truth, predictions = sides
    if len(repeated(keys.truth)):
        return not reads & {"ranking", "boxes"}
    with_scores = predictions.find_column(CONFIDENCE) is not None
    if not several or not len(repeated(keys.predictions)):
        return False
    if with_scores:
        return "scores" in reads and (multi_label or any(_has_empty_cells(truth.column(name)) for name in targets))
    return "sets" in reads


def _has_empty_cells(column: pa.Array) -> bool:
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    return bool(column.null_count) or (is_text and bool(pc.any(pc.equal(column, "")).as_py()))


def _uses_scores(rule: Rule) -> bool:
    """Whether a metric is defined on scores, even if a definition applies it to labels."""
    return rule.reads in ("scores", "confidence") or rule.parameters.get("scored_by") == "labels"


def _has_scores(predictions: Side, keys: Keys | None) -> bool:
    """Whether predictions are class scores: several rows of an example, with confidences."""
    several = keys is not None and not keys.aligned and bool(len(repeated(keys.predictions)))
    return several and predictions.find_column(CONFIDENCE) is not None


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
    labels: Labels | None,
    confidence: float | None,
    together: bool,
) -> CriterionResult:
    notes = tuple(note for name in targets for note in criterion_notes(aligned, rule, name))
    try:
        metric = _metric(aligned, criterion, rule, targets, labels, confidence, together)
        row = _boxes_row(aligned, metric, targets[0]) if rule.reads == "boxes" else _row(aligned, rule, metric, targets)
        complements = rule.one_value and all(
            tables.scores_are_complements(aligned.columns(name, rule.reads)) for name in targets
        )
        if rule.one_value and not complements:
            _check_classes_agree(aligned, rule, metric, targets)
    except DataError as error:
        if error.code is not None:
            raise
        raise CriterionError(None, "cannot_be_scored", "; ".join(fault.message for fault in error.faults[:3])) from None
    except SpecError as error:
        raise CriterionError(None, "cannot_be_scored", str(error)) from None
    with_interval = confidence is not None
    return CriterionResult(
        criterion=criterion,
        target=None if together else targets[0],
        value=row.value,
        low=row.low if with_interval else math.nan,
        high=row.high if with_interval else math.nan,
        reason=row.reason,
        n=row.n // len(targets),
        metric=metric.kind,
        signature=row.signature,
        definition=STANDARD,
        made_metric=metric,
        reads=aligned.as_read(rule.reads),
        notes=notes,
        data=row.data,
    )


def _metric(
    aligned: AlignedTables,
    criterion: Criterion,
    rule: Rule,
    targets: tuple[str, ...],
    labels: Labels | None,
    confidence: float | None,
    together: bool,
) -> Metric:
    """The metric with all its parameters."""
    parameters = dict(rule.parameters)
    if rule.k is not None:
        parameters["k"] = rule.k if criterion.k is None else criterion.k
    if labels is not None and rule.labels:
        listed = [labels.get(name) if isinstance(labels, Mapping) else labels for name in targets]
        if any(each != listed[0] for each in listed):
            message = "targets that are judged together must have the same labels"
            raise CriterionError("jointly", "not_applicable", message)
        if listed[0] is not None:
            parameters["labels"] = list(listed[0])
    parameters |= label_parameters(aligned, criterion, rule, targets)
    if rule.if_none_ranked and not any(map(aligned.has_ranked_answer, targets)):
        parameters |= rule.if_none_ranked
    if together and len(targets) > 1:
        parameters["over_targets"] = rule.jointly
    kind = registry.find("metrics", rule.kind)
    known = {each.name: each for each in fields(kind)}
    if "confidence" in known and (confidence is not None or known["confidence"].type not in ("float", float)):
        parameters["confidence"] = confidence
    metric: Metric = kind(**parameters)
    return metric


def _row(aligned: AlignedTables, rule: Rule, metric: Metric, targets: tuple[str, ...]) -> MetricRow:
    further = {name: aligned.numbers_of_truth(name) for name in rule.of_truth}
    columns: list[tables.Columns] = [{**aligned.columns(name, rule.reads), **further} for name in targets]
    if VALUE in metric.columns:
        columns = [tables.with_value(each) for each in columns]
    many = len(targets) > 1
    table = scored_table(columns, targets if many else None)
    size = _ROWS_AT_ONCE if _keeps_no_rows(metric) and not many else max(table.num_rows, 1)
    rows = summarise([table.slice(start, size) for start in range(0, table.num_rows, size)], [metric])
    return next(row for row in rows if row.target is None) if many else rows[0]


def _keeps_no_rows(metric: Metric) -> bool:
    """Whether shards cost nothing to merge; small ones are faster, since they stay in the processor's cache."""
    counts = not metric.by_cluster and (metric.averages or bool(getattr(metric, "counted", False)))
    return counts or metric.counts_independent_rows


_ROWS_AT_ONCE: Final = 2 * SHARD_ROWS


def _check_classes_agree(aligned: AlignedTables, rule: Rule, metric: Any, targets: tuple[str, ...]) -> None:
    """Refuses scores of two classes that order the examples differently."""
    for name in targets:
        columns = aligned.columns(name, rule.reads)
        values = [
            _row(aligned, rule, replace(metric, label=label, over_targets=None), (name,)).value
            for label in vocabulary(columns)
        ]
        if len(values) > 1 and abs(values[0] - values[1]) > _EQUAL:
            both = f"{values[0]:.6g} and {values[1]:.6g}"
            message = f"the scores of the two classes give different values: {both}; give the scores of both"
            if tables.has_one_score_each(columns):
                message = (
                    "each example has one row, and a class without a row has the score 0, so the two classes give "
                    f"different values: {both}; give a row for each class"
                )
            raise CriterionError(None, "cannot_be_scored", f"{message}, such as 0.7 and 0.3")


_EQUAL: Final = 1e-9


def _boxes_row(aligned: AlignedTables, metric: Any, target: str) -> MetricRow:
    """The value of boxes in the order of their files, with the interval of images as rows if one is requested."""
    truths, detections = aligned.boxes[target]
    curves = average_precision_by_label(detections, truths, definition=metric.definition)
    values = {label: curve.ap for label, curve in curves.items() if not math.isnan(curve.ap)}
    value = float(np.mean([*values.values()])) if values else math.nan
    data = None if truths.label is None else {"labels": {str(label): {"value": ap} for label, ap in values.items()}}
    low = high = math.nan
    reason = "no image has a true box" if value != value else None
    if metric.confidence is not None and reason is None:
        row = summarise([scored_table([aligned.image_columns(target)], None)], [metric])[0]
        low, high, reason = row.low, row.high, row.reason
        if not abs(row.value - value) < _EQUAL:
            low = high = math.nan
            reason = "no interval: detections of one confidence count in the order of the file"
    n_images = tables.count_distinct(truths.image, detections.image)
    counts = {"n": n_images, "n_scored": n_images, "n_failed": 0, "n_abstained": 0, "n_skipped": 0}
    return MetricRow(
        metric=metric.kind,
        signature=metric.signature,
        target=None,
        by={},
        value=value,
        low=low,
        high=high,
        worst=math.nan,
        best=math.nan,
        reason=reason,
        data=data,
        **counts,
    )
