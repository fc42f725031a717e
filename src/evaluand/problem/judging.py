"""Predictions are read, held to the truth and judged."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.aggregation.groups import MetricRow, summarise
from evaluand.core import registry
from evaluand.core.errors import DataError, Fault, SpecError
from evaluand.core.files import cells
from evaluand.metrics.base.labels import contents
from evaluand.metrics.base.metric import VALUE, Metric
from evaluand.metrics.detection import Boxes, average_precision
from evaluand.problem import tables
from evaluand.problem.definitions import STANDARD, Reads, Rule, rule_of
from evaluand.problem.problem import Criterion
from evaluand.problem.reading import (
    CONFIDENCE,
    PREDICTIONS,
    RANK,
    TRUTH,
    Keys,
    Side,
    column_faults,
    keys_of,
    place,
    read_labels,
    read_numbers,
    read_pair,
    repeated,
    row_faults,
    same_labels,
)
from evaluand.store.tables import SHARD_ROWS

Labels = Sequence[Any] | Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class CriterionFault(Fault):
    """A criterion that cannot judge such examples.

    Attributes:
        number: its place among the criteria.
        key: which of its attributes is wrong; None where it is the predictions that it cannot judge.
    """

    number: int = field(kw_only=True)
    key: Literal["metric", "k", "positive", "jointly"] | None = field(default="metric", kw_only=True)


@dataclass(frozen=True, kw_only=True)
class CriterionResult:
    """What a criterion says of one target, or of all together.

    Attributes:
        criterion: the metric asked for, with its parameters.
        target: None where all targets are judged together.
        value: NaN where undefined, with a `reason`.
        low: lower end of the interval, NaN where there is none.
        high: upper end of the interval, NaN where there is none.
        reason: why the value, or else only its interval, is undefined.
        n: how many examples were judged.
        metric: our kind of metric.
        signature: the kind with all its parameters.
        definition: whose metric it is.
        made: the metric itself.
        reads: what it was computed from.
        notes: what is no fault and may not be meant.
        data: what else the metric tells.
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
    made: Metric
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
    """What predictions are worth, by each criterion, for each target or for all together.

    Rows belong together by their index, whatever their order. An index that occurs several times has several labels, is
    a table of class scores (with `confidence`; a label without a row has 0), or a ranking (with `rank`), as the
    criterion asks. Of a table of class scores, criteria of labels judge the label of greatest confidence.

    Args:
        truth: the index, the targets and whatever else, which is not looked at.
        predictions: the index, the targets and perhaps `confidence` and `rank`, in whatever case.
        criteria: what to judge by.
        index: the columns that say what a row is about; of detection those of the image.
        targets: the columns that are judged.
        definition: one of `DEFINITIONS`; the well-defined one if not given.
        labels: all labels there are, or those of each target; those of truth and predictions if not given.
        several: whether an example may have several labels; if not given, whether one has in the truth.
        confidence_of_interval: of the intervals; None for values alone, which cost less.

    Raises:
        DataError: something cannot be judged; every fault with its code and, rows counted from 1, its place.

    Example:
        >>> truth = pa.table({"id": [1, 2, 3], "kind": ["cat", "dog", "dog"]})
        >>> predictions = pa.table({"id": [3, 2, 1], "kind": ["dog", "cat", "cat"]})
        >>> [judged] = judge(truth, predictions, [Criterion(metric="accuracy")], index=["id"], targets=["kind"])
        >>> round(judged.value, 3), judged.target, judged.n, judged.signature
        (0.667, 'kind', 3, 'accuracy v1 missing=leave_out reduce=first column=value interval=wilson 95%')
    """
    sides = Side(TRUTH, truth), Side(PREDICTIONS, predictions)
    rules, faults = _rules(criteria, definition, sides[1], len(targets))
    faults += column_faults(*sides, index, targets)
    reads = {rule.reads for rule in rules if rule}
    for side in sides:
        if not side.table.num_rows and (side.name == TRUTH or reads != {"boxes"}):
            faults.append(Fault(side.name, "there is no row", code="no_rows"))
    if faults:
        raise DataError(dict.fromkeys(faults))
    keys, faults = keys_of(*sides, index)
    with_sets = _with_sets(reads, keys, sides[1], several)
    by_class = not with_sets and any(_takes_scores(rule) for rule in rules if rule) and _has_scores(sides[1], keys)
    case = _Case(*sides, tuple(index), keys, with_sets, by_class)
    faults += [*_single(criteria, rules)] if with_sets else []
    if not any(isinstance(fault, CriterionFault) for fault in faults):  # else rows would be told by the wrong rule
        faults += case.faults(targets, reads)
    if faults:
        raise DataError(dict.fromkeys(faults))
    found = list[CriterionResult]()
    for number, (criterion, rule) in enumerate(zip(criteria, rules, strict=True)):
        assert rule is not None
        together = criterion.jointly or (rule.always_jointly and len(targets) > 1)
        for names in [tuple(targets)] if together else [(name,) for name in targets]:
            try:
                made = _judged(case, criterion, rule, names, labels, confidence_of_interval, together)
                found.append(replace(made, definition=definition or STANDARD))
            except _Refused as error:
                faults.append(error.placed(f"{criterion.metric} of {', '.join(names)}", number))
            except DataError as error:
                faults += error.faults
    if faults:
        raise DataError(dict.fromkeys(faults))
    return found


def _rules(
    criteria: Sequence[Criterion], definition: str | None, predictions: Side, n_targets: int
) -> tuple[list[Rule | None], list[Fault]]:
    rules, faults = list[Rule | None](), list[Fault]()
    for number, criterion in enumerate(criteria):
        rule = rule_of(criterion.metric, definition)
        if isinstance(rule, Rule):
            if rule.without_scores and predictions.named(CONFIDENCE) is None:
                rule = rule.without_scores
            for key, code, message in _contradictions(criterion, rule, definition or STANDARD, n_targets):
                faults.append(CriterionFault(criterion.metric, message, code=code, number=number, key=key))
            rules.append(rule)
        elif rule[0] == "definition_unknown":
            faults.append(Fault("definition", rule[1], code=rule[0]))
            rules.append(None)
        else:
            faults.append(CriterionFault(criterion.metric, rule[1], code=rule[0], number=number))
            rules.append(None)
    return rules, faults


def _contradictions(
    criterion: Criterion, rule: Rule, name: str, n_targets: int
) -> Iterable[tuple[Literal["k", "positive", "jointly"], str, str]]:
    """Attribute, code and message of what a criterion says that its metric does not take."""
    if criterion.jointly and rule.jointly is None and n_targets > 1:
        told = f"the definition {name} judges each target by itself, and not several together"
        yield "jointly", "not_applicable", told
    if rule.k == 0 and criterion.k is None:
        yield "k", "cannot_be_scored", "lacks k (K), how many ranks or rows it looks at"
    if rule.k is None and criterion.k is not None:
        yield "k", "not_applicable", "takes no k (K)"
    if rule.positive == "given" and criterion.positive is None:
        yield "positive", "needs_positive", f"lacks the positive label (posLabel), as {name} wants it"
    if rule.positive == "none" and criterion.positive is not None:
        yield "positive", "not_applicable", f"has no positive label (posLabel) in the definition {name}"


def _with_sets(reads: set[Reads], keys: Keys | None, predictions: Side, several: bool | None) -> bool:
    """Whether examples have sets of labels."""
    if keys is None or keys.aligned or several is False or not ("sets" in reads or several):
        return False
    if len(repeated(keys.truth)):
        return not reads & {"ranking", "boxes"}
    return (
        "sets" in reads
        and bool(several)
        and predictions.named(CONFIDENCE) is None
        and bool(len(repeated(keys.predictions)))
    )


def _takes_scores(rule: Rule) -> bool:
    """Whether a metric is one of scores, also where a definition takes labels for them."""
    return rule.reads in ("scores", "sure") or rule.parameters.get("scored_by") == "labels"


def _has_scores(predictions: Side, keys: Keys | None) -> bool:
    """Whether predictions are a table of class scores."""
    several = keys is not None and not keys.aligned and bool(len(repeated(keys.predictions)))
    return several and predictions.named(CONFIDENCE) is not None


def _single(criteria: Sequence[Criterion], rules: Sequence[Rule | None]) -> Iterable[Fault]:
    """Criteria that cannot judge sets of labels."""
    for number, (criterion, rule) in enumerate(zip(criteria, rules, strict=True)):
        if rule is not None and rule.reads != "sets":
            told = "judges one label of each example, and here examples have several; leave it out"
            yield CriterionFault(criterion.metric, told, code="not_applicable", number=number)


@dataclass(frozen=True)
class _Case:
    """Both tables, checked, and what is made of them."""

    truth: Side
    predictions: Side
    index: tuple[str, ...]
    keys: Keys | None
    with_sets: bool
    by_class: bool = False

    @cached_property
    def _held(self) -> dict[tuple[str, Reads], tables.Columns]:
        return {}

    @cached_property
    def boxes(self) -> dict[str, tuple[Boxes, Boxes]]:
        """The boxes of each target."""
        return {}

    def as_read(self, reads: Reads) -> Reads:
        """Sets are single labels where no example has several."""
        return "labels" if reads == "sets" and not self.with_sets else reads

    def faults(self, targets: Sequence[str], reads: set[Reads]) -> list[Fault]:
        """What is wrong with the rows and cells; what is sound is kept for `columns`."""
        faults = list[Fault]()
        wanted = {self.as_read(each) for each in reads}
        if self.keys is not None and wanted - {"boxes"}:
            one_each = bool(wanted.intersection(("labels", "numbers", "rows", "sure")))
            faults += row_faults(
                self.truth,
                self.predictions,
                self.index,
                self.keys,
                one_truth=one_each or "scores" in wanted,
                one_prediction=one_each and not self.by_class,
            )
        for name in targets:
            for each in sorted(wanted):
                faults += self._read(name, each, sound=not faults)
        return faults

    def columns(self, name: str, reads: Reads) -> tables.Columns:
        """A target as the kinds read it."""
        return self._held[name, self.as_read(reads)]

    def _read(self, name: str, reads: Reads, sound: bool) -> list[Fault]:
        if reads == "boxes":
            return self._read_boxes(name)
        faults, keys = list[Fault](), self.keys
        made: tables.Columns | None = None
        if reads in ("labels", "numbers", "rows", "sets", "sure"):
            truth, prediction, faults = read_pair(self.truth, self.predictions, name, reads)
            if keys is not None and reads == "sets" and not faults:
                for side, column, codes in (
                    (self.truth, truth, keys.truth),
                    (self.predictions, prediction, keys.predictions),
                ):
                    faults += tables.set_faults(side.name, name, column, codes, keys)
            if reads == "sure" or self.by_class:
                faults += self._sure[1]
            if keys is not None and sound and not faults:
                made = (
                    tables.sets(truth, prediction, keys)
                    if reads == "sets"
                    else self._pairs(truth, prediction, keys, reads)
                )
        else:
            made, faults = self._read_table(name, reads, sound)
        if made is not None:
            self._held[name, reads] = made
        return faults

    def _pairs(self, truth: pa.Array, prediction: pa.Array, keys: Keys, reads: Reads) -> tables.Columns:
        given = {"prediction": prediction} | ({CONFIDENCE: self._sure[0]} if reads == "sure" else {})
        if self.by_class:
            rows = pa.array(tables.surest(prediction, self._sure[0], keys.predictions))
            given = {name: cells.take(rows) for name, cells in given.items()}
            keys = replace(keys, predictions=np.arange(keys.n))
        return tables.pairs(truth, given, keys, as_filed=reads == "rows")

    @cached_property
    def _sure(self) -> tuple[pa.Array | None, list[Fault]]:
        """The column `confidence`."""
        column = self.predictions.named(CONFIDENCE)
        if column is None:
            return None, [Fault(PREDICTIONS, f"there is no column {CONFIDENCE!r}; {_GIVE}", code="needs_confidence")]
        return read_numbers(self.predictions, column)

    def _read_table(self, name: str, reads: Reads, sound: bool) -> tuple[tables.Columns | None, list[Fault]]:
        """Several rows of predictions for each example, with a number beside each label."""
        wanted, keys = CONFIDENCE if reads == "scores" else RANK, self.keys
        (truth, wrong), (label, also) = (read_labels(side, name) for side in (self.truth, self.predictions))
        faults = [*wrong, *also]
        if not faults:
            truth, label, faults = same_labels(truth, label, f"{PREDICTIONS}, column {name}")
        number, odd = None, list[Fault]()
        column = self.predictions.named(wanted)
        if reads == "scores":
            number, odd = self._sure
        elif column is None:
            odd = [Fault(PREDICTIONS, f"there is no column {wanted!r}; give ranks", code="missing_column")]
        else:
            number, odd = read_numbers(self.predictions, column)
        if keys is not None and not faults:
            faults += tables.set_faults(PREDICTIONS, name, label, keys.predictions, keys)
            if reads == "ranking":
                faults += tables.set_faults(TRUTH, name, truth, keys.truth, keys)
        faults += odd
        if reads == "ranking" and column is not None and not odd:
            faults += self._rank_faults(column, number)
        if keys is None or faults or not sound:
            return None, faults
        return (tables.scores if reads == "scores" else tables.ranking)(truth, label, number, keys), faults

    def _rank_faults(self, column: str, rank: pa.Array) -> Iterable[Fault]:
        numbers = np.asarray(rank)
        bad = (numbers < 1) | (np.floor(numbers) != numbers)
        yield from self.predictions.faults(
            bad, column, "wrong_type", lambda row: f"is {numbers[row]:g}; ranks are 1, 2, 3, …"
        )
        if self.keys is not None and not bad.any():
            codes = tables.pair_codes(self.keys.predictions, rank.dictionary_encode())
            for row in repeated(codes).tolist():
                told = f"{self.keys.names(self.keys.predictions[row])} has the rank {numbers[row]:g} already"
                yield Fault(place(PREDICTIONS, row, column), told, code="duplicate_row")

    def _read_boxes(self, name: str) -> list[Fault]:
        faults, found = list[Fault](), list[Boxes]()
        for side in (self.truth, self.predictions):
            corners, wrong = _corners(side, name)
            faults += wrong
            confidence = side.named(CONFIDENCE) if side.name == PREDICTIONS else None
            number = None
            if confidence is not None:
                number, wrong = read_numbers(side, confidence)
                faults += wrong
            if not faults:
                image = np.asarray(self._images[side.name])
                found.append(Boxes(side.name, pa.array(image), corners, None if number is None else np.asarray(number)))
        if not faults:
            self.boxes[name] = (found[0], found[1])
        return faults

    @cached_property
    def _images(self) -> dict[str, np.ndarray]:
        """The number of each row's image, for all images of both tables."""
        assert self.keys is not None
        both = Side(TRUTH, pa.concat_tables([side.table.select(self.index) for side in (self.truth, self.predictions)]))
        keys, _ = keys_of(both, both, self.index)
        assert keys is not None
        n = self.truth.table.num_rows
        return {TRUTH: keys.truth[:n], PREDICTIONS: keys.truth[n:]}

    def image_columns(self, name: str) -> tables.Columns:
        """The boxes of each image, one row for each."""
        codes = self._images
        n = int(max(codes[TRUTH].max(initial=-1), codes[PREDICTIONS].max(initial=-1))) + 1
        return tables.images(*self.boxes[name], Keys(codes[TRUTH], codes[PREDICTIONS], n, str))


_GIVE: Final = "give a score for each class: rows of index, label and confidence"


def _corners(side: Side, name: str) -> tuple[np.ndarray, list[Fault]]:
    """The boxes of a column of texts or lists, 4 × rows."""
    column = side.column(name)
    wrong: dict[int, str] = {}
    kind = contents(column.type)
    if kind == "text":
        column = cells.typed(column.cast(pa.string()), "vector", wrong.__setitem__)
    elif kind not in ("lists", ""):
        return np.empty((4, 0)), [
            Fault(f"{side.name}, column {name}", "holds no boxes; give x_min,y_min,x_max,y_max", code="wrong_type")
        ]
    faults = [Fault(place(side.name, row, name), message, code="wrong_type") for row, message in wrong.items()]
    empty = np.asarray(column.is_null())
    empty[list(wrong)] = False
    faults += side.faults(empty, name, "empty_value", lambda row: "is empty; give x_min,y_min,x_max,y_max")
    if kind == "":
        return np.empty((4, 0)), faults
    length = np.asarray(pc.fill_null(pc.list_value_length(column), 4))
    faults += side.faults(
        length != 4,
        name,
        "wrong_type",
        lambda row: f"has {length[row]} numbers; a box is x_min,y_min,x_max,y_max",
    )
    if faults:
        return np.empty((4, 0)), faults
    corners = np.asarray(column.flatten().cast(pa.float64())).reshape(-1, 4).T
    odd = ~(np.abs(corners) < _LARGEST).all(axis=0)
    faults += side.faults(odd, name, "not_finite", lambda row: "has a number that is not finite, or far too large")
    return np.ascontiguousarray(corners), faults


_LARGEST: Final = 1e150


def _judged(
    case: _Case,
    criterion: Criterion,
    rule: Rule,
    targets: tuple[str, ...],
    labels: Labels | None,
    confidence: float | None,
    together: bool,
) -> CriterionResult:
    notes = tuple(note for name in targets for note in _notes(case, rule, name))
    try:
        parameters = _parameters(case, criterion, rule, targets, labels)
        if together and len(targets) > 1:
            parameters["over_targets"] = rule.jointly
        metric = _metric(rule, parameters, confidence)
        row = _boxes_row(case, metric, targets[0]) if rule.reads == "boxes" else _row(case, rule, metric, targets)
        if rule.one_value and not all(tables.say_the_same(case.columns(name, rule.reads)) for name in targets):
            _check_alike(case, rule, metric, targets)
    except DataError as error:
        if error.code is not None:
            raise
        told = "; ".join(fault.message for fault in error.faults[:3])
        raise _Refused(None, "cannot_be_scored", told) from None
    except SpecError as error:
        raise _Refused(None, "cannot_be_scored", str(error)) from None
    shown = confidence is not None
    return CriterionResult(
        criterion=criterion,
        target=None if together else targets[0],
        value=row.value,
        low=row.low if shown else math.nan,
        high=row.high if shown else math.nan,
        reason=row.reason,
        n=row.n // len(targets),
        metric=metric.kind,
        signature=row.signature,
        definition=STANDARD,
        made=metric,
        reads=case.as_read(rule.reads),
        notes=notes,
        data=row.data,
    )


class _Refused(Exception):
    """A criterion that cannot judge: which of its attributes is wrong, or None where the predictions are."""

    def __init__(self, key: Literal["metric", "positive", "jointly"] | None, code: str, message: str) -> None:
        super().__init__(message)
        self.key, self.code = key, code

    def placed(self, where: str, number: int) -> Fault:
        return CriterionFault(where, str(self), code=self.code, number=number, key=self.key)


def _metric(rule: Rule, parameters: Mapping[str, Any], confidence: float | None) -> Metric:
    kind = registry.find("metrics", rule.kind)
    known = {each.name: each for each in fields(kind)}
    if "confidence" in known and (confidence is not None or known["confidence"].type != "float"):
        parameters = {**parameters, "confidence": confidence}
    made: Metric = kind(**parameters)
    return made


def _row(case: _Case, rule: Rule, metric: Metric, targets: tuple[str, ...]) -> MetricRow:
    columns = [case.columns(name, rule.reads) for name in targets]
    if VALUE in metric.columns:
        columns = [tables.with_value(each) for each in columns]
    many = len(targets) > 1
    table = tables.table_of(columns, targets if many else None)
    size = _AT_ONCE if _keeps_no_rows(metric) and not many else max(table.num_rows, 1)
    rows = summarise([table.slice(start, size) for start in range(0, table.num_rows, size)], [metric])
    return next(row for row in rows if row.target is None) if many else rows[0]


def _keeps_no_rows(metric: Metric) -> bool:
    """Whether shards cost nothing to merge; small ones are quicker, since they stay in the processor's cache."""
    counts = not metric.by_cluster and (metric.averages or bool(getattr(metric, "counted", False)))
    return counts or metric.counts_independent_rows


_AT_ONCE: Final = 2 * SHARD_ROWS


def _parameters(
    case: _Case, criterion: Criterion, rule: Rule, targets: tuple[str, ...], labels: Labels | None
) -> dict[str, Any]:
    found = dict(rule.parameters)
    if rule.k is not None:
        found["k"] = rule.k if criterion.k is None else criterion.k
    if labels is not None and rule.labels:
        listed = [labels.get(name) if isinstance(labels, Mapping) else labels for name in targets]
        if any(each != listed[0] for each in listed):
            raise _Refused(
                "jointly", "not_applicable", "targets that are judged together cannot have labels of their own"
            )
        if listed[0] is not None:
            found["labels"] = list(listed[0])
    if rule.two_classes or rule.positive != "none":
        for name in targets:
            vocabulary = _vocabulary(case.columns(name, rule.reads))
            if rule.two_classes and len(vocabulary) > 2:
                _check_two(case, criterion, rule, name)
            if rule.one_value and len(vocabulary) == 2:
                found["label"] = max(vocabulary)
            positive = _positive(criterion, rule, vocabulary)
            if positive is not None:
                found["label"] = positive
    return found


def _check_two(case: _Case, criterion: Criterion, rule: Rule, name: str) -> None:
    """Refuses more than two classes: those of the truth, or labels of predictions that the truth does not have."""
    known, strange = _told_apart(case, rule, name)
    if len(known) > 2:
        shown = ", ".join(map(repr, known[:4])) + (" …" if len(known) > 4 else "")
        instead = _INSTEAD.get(criterion.metric, "f1_macro")
        told = f"is of two classes, and the truth has {len(known)}: {shown}; take an average over them, such as"
        raise _Refused("metric", "not_applicable", f"{told} {instead}")
    raise DataError(_strange_rows(case, name, known, strange))


def _told_apart(case: _Case, rule: Rule, name: str) -> tuple[list[Any], list[Any]]:
    """The labels of the truth, and those that only predictions have."""
    truth = case.columns(name, rule.reads)["truth"]
    there = np.bincount(truth.indices, minlength=len(truth.dictionary)) > 0
    return tuple(truth.dictionary.filter(pa.array(mask)).to_pylist() for mask in (there, ~there))


def _strange_rows(case: _Case, name: str, known: list[Any], strange: list[Any]) -> Iterable[Fault]:
    """The first row of each label that the truth does not have, and how many there are."""
    column = case.predictions.column(name)
    shown = " and ".join(map(repr, known))
    for label in strange:
        rows = np.flatnonzero(np.asarray(pc.equal(column, pa.scalar(label, column.type)).fill_null(False)))
        alike = [each for each in known if str(each).strip().lower() == str(label).strip().lower()]
        told = f"is {label!r}, and the truth has {shown}" + (f" (did you mean {alike[0]!r}?)" if alike else "")
        more = f"; so {'is' if len(rows) == 2 else 'are'} {len(rows) - 1:,} more" if len(rows) > 1 else ""
        yield Fault(place(PREDICTIONS, int(rows[0]), name), told + more, code="unknown_label")


_INSTEAD: Final = {"roc_auc": "roc_auc_macro"}


def _vocabulary(columns: tables.Columns) -> list[Any]:
    """All labels of a target, of the truth and the predictions."""
    if pa.types.is_list(columns["truth"].type):
        both = [columns[name].flatten() for name in ("truth", "prediction")]
        return sorted(pa.chunked_array(both).unique().to_pylist())
    found: list[Any] = columns["truth"].dictionary.to_pylist()
    return found


def _positive(criterion: Criterion, rule: Rule, vocabulary: Sequence[Any]) -> Any:
    """The label that counts as positive, in the type of the labels."""
    if rule.positive == "none" or (rule.positive == "chosen" and criterion.positive is None):
        return None
    by_text = {_text(label): label for label in vocabulary}
    shown = " and ".join(map(repr, sorted(vocabulary)))
    if criterion.positive is None:
        known = [label for label in vocabulary if label is True or _text(label) == "1"]
        if not known and set(by_text) <= {"0", "False"}:
            known = [type(vocabulary[0])(1)]
        if not known:
            raise _Refused("positive", "needs_positive", f"say which label is positive (posLabel): {shown}")
        return known[0]
    if criterion.positive in by_text:
        return by_text[criterion.positive]
    if len(vocabulary) > 1:
        raise _Refused(
            "positive", "needs_positive", f"the positive label (posLabel) {criterion.positive!r} is none of {shown}"
        )
    return _typed(criterion.positive, vocabulary[0])


def _text(label: Any) -> str:
    return str(label).lower() if isinstance(label, bool) else str(label)


def _typed(text: str, like: Any) -> Any:
    """A label that does not occur, in the type of those that do."""
    if isinstance(like, bool):
        return text == "true"
    try:
        return int(text) if isinstance(like, int) else text
    except ValueError:
        raise _Refused(
            "positive", "needs_positive", f"the positive label (posLabel) {text!r} is no whole number"
        ) from None


def _notes(case: _Case, rule: Rule, name: str) -> Iterable[Fault]:
    yield from _unknown_labels(case, rule, name)
    confidence = case.predictions.named(CONFIDENCE)
    if rule.parameters.get("scored_by") == "labels" and confidence is not None:
        told = "is not read: this definition takes the area of labels, not of scores"
        yield Fault(f"{PREDICTIONS}, column {confidence}", told, code="confidence_not_read")


def _unknown_labels(case: _Case, rule: Rule, name: str) -> Iterable[Fault]:
    if rule.reads not in ("labels", "sets") or rule.clusters:
        return
    columns = case.columns(name, rule.reads)
    if case.with_sets and rule.reads == "sets":
        truth, predicted = (pc.unique(columns[side].flatten()) for side in ("truth", "prediction"))
        strange = predicted.filter(pc.invert(pc.is_in(predicted, truth)))
    else:
        labels = columns["truth"].dictionary
        there, often = (np.bincount(columns[s].indices, minlength=len(labels)) for s in ("truth", "prediction"))
        strange = labels.filter(pa.array((often > 0) & (there == 0)))
    for label in strange.to_pylist():
        yield Fault(f"{PREDICTIONS}, column {name}", f"the truth never has the label {label!r}", code="unknown_label")


def _check_alike(case: _Case, rule: Rule, metric: Any, targets: tuple[str, ...]) -> None:
    """Refuses two classes whose scores put the examples into different orders."""
    for name in targets:
        values = [
            _row(case, rule, replace(metric, label=label, over_targets=None), (name,)).value
            for label in _vocabulary(case.columns(name, rule.reads))
        ]
        if len(values) > 1 and abs(values[0] - values[1]) > _ALIKE:
            both = f"{values[0]:.6g} and {values[1]:.6g}"
            told = f"the scores of the two classes say different things: {both}; give the scores of both"
            if tables.one_score_each(case.columns(name, rule.reads)):
                told = (
                    "each example has one row, and the class that has none is taken to have the score 0, so that the "
                    f"two classes say different things: {both}; give a row for each class"
                )
            raise _Refused(None, "cannot_be_scored", f"{told}, such as 0.7 and 0.3")


_ALIKE: Final = 1e-9


def _boxes_row(case: _Case, metric: Any, target: str) -> MetricRow:
    """The value of boxes in the order of their files; the interval, where one is asked for, from images as rows."""
    truths, detections = case.boxes[target]
    found = average_precision(detections, truths, definition=metric.definition).ap
    images = np.union1d(np.asarray(truths.image), np.asarray(detections.image))
    low = high = math.nan
    reason = "no image has a true box" if found != found else None
    if metric.confidence is not None and reason is None:
        row = summarise([tables.table_of([case.image_columns(target)], None)], [metric])[0]
        low, high, reason = row.low, row.high, row.reason
        if not abs(row.value - found) < _ALIKE:
            low = high = math.nan
            reason = "no interval: detections of one confidence count in the order of the file"
    counts = {"n": len(images), "n_scored": len(images), "n_failed": 0, "n_abstained": 0, "n_skipped": 0}
    return MetricRow(
        metric=metric.kind,
        signature=metric.signature,
        target=None,
        by={},
        value=found,
        low=low,
        high=high,
        worst=math.nan,
        best=math.nan,
        reason=reason,
        data=None,
        **counts,
    )
