"""The predictions and scores of systems, converted to the types of the truth, with a note on each conversion.

A conversion is made only where it cannot mean anything else: `"3"` and 3, `true` and 1, `NaN` among numbers. What could
mean two things is refused.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import DataError, Fault, SpecError, plural, pluralize
from evaluand.evaluation.prediction_table import PredictionColumns, infinite_rows, label_text
from evaluand.metrics.base.labels import contents
from evaluand.predictions.columns.notes import Notes
from evaluand.predictions.columns.proposals import Target
from evaluand.predictions.columns.tables import NamedTable

_SHOWN: Final = 3
_TOLERANCE: Final = 1e-3
_FEWEST: Final = 5
_HALF: Final = 0.5


@dataclass(frozen=True)
class SystemSpec:
    """The columns of one system.

    Attributes:
        prediction: the column of its predictions; None if it has scores only.
        score: the column of its score of the positive class.
        confidence: the column of the confidence of each prediction.
        rates_class: whether the confidence also makes scores of two classes.
        scores: label → the column of the score of this class.
    """

    name: str
    table: NamedTable
    prediction: str | None = None
    score: str | None = None
    confidence: str | None = None
    rates_class: bool = True
    scores: Mapping[str, str] | None = None


@dataclass(frozen=True)
class System:
    """One system in the types of the scorer `prediction`.

    Attributes:
        decides: whether it has predictions, from a column or a threshold.
        gives: what its numbers are: `probabilities` of all classes, `scores` of some, a `confidence`, or nothing.
    """

    name: str
    columns: PredictionColumns
    decides: bool
    gives: str

    @property
    def has_scores(self) -> bool:
        """Whether it has scores of classes or confidences."""
        return self.columns.scores is not None or self.columns.confidence is not None


def make_system(
    spec: SystemSpec,
    truth: pa.Array,
    prediction: pa.Array | None,
    target: Target,
    *,
    threshold: float | None,
    weight: Any,
    type: str,
    notes: Notes,
) -> System:
    """A system with its scores, which decide where it has no predictions.

    Raises:
        SpecError: the scores do not suit the kind of target.
        DataError: a score is not a number.
    """
    check_threshold(threshold, notes)
    if prediction is not None and threshold is not None:
        decided, alone = notes.option("prediction", spec.prediction), notes.option("threshold")
        raise SpecError(f"{alone} makes predictions of scores, and {spec.name!r} has {decided}; leave out one of them")
    if prediction is not None and pa.types.is_null(prediction.type):
        prediction = pa.nulls(len(prediction), target.type)
    by_class, gives = _class_scores(spec, prediction, target, notes)
    confidence = None
    if spec.confidence is not None and not by_class:
        confidence, gives = read_numbers(spec.table, spec.confidence, "confidence", notes), "confidence"
    decides = prediction is not None or threshold is not None
    if prediction is None:
        prediction = _decide(spec, by_class, target, gives, threshold, notes)
        decides = decides or spec.score is None
    columns = PredictionColumns.build(
        truth, prediction, scores=by_class or None, confidence=confidence, weight=weight, type=type
    )
    return System(spec.name, columns, decides, gives)


def _class_scores(
    spec: SystemSpec, prediction: pa.Array | None, target: Target, notes: Notes
) -> tuple[dict[Any, pa.Array], str]:
    """Label → scores, and whether they are probabilities."""
    if spec.scores:
        return _labelled_scores(spec, prediction, target, notes)
    column, option = (spec.score, "score") if spec.score is not None else (spec.confidence, "confidence")
    if column is None:
        return {}, "nothing"
    if option == "confidence" and not (spec.rates_class and target.kind == "binary" and target.positive is not None):
        return {}, "nothing"
    _require_one_class(target, column, notes)
    positive = target.positive
    if positive is None:
        known = " or ".join(repr(label_text(each)) for each in target.classes)
        words = re.split(r"[^a-z0-9]+", column.casefold())
        first = next((each for each in target.classes if label_text(each).casefold() in words), target.classes[0])
        raise SpecError(
            f"{column!r} is the score of which class, {known}? Give {notes.option('pos-label', first)}, or"
            f" {notes.class_score(first, column)}"
        )
    numbers = read_numbers(spec.table, column, option, notes)
    if option == "confidence":
        assert prediction is not None
        if not _in_unit(numbers):
            raise SpecError(
                f"{notes.option('confidence', column)}: not all are between 0 and 1; give the score of a class as"
                f" {notes.option('score')}"
            )
        same = pc.equal(prediction, pa.scalar(positive, prediction.type))
        numbers = pc.if_else(same, numbers, pc.subtract(1.0, numbers))
    elif prediction is not None:
        _check_direction(spec, column, numbers, prediction, positive, notes)
    if not _in_unit(numbers) or target.kind != "binary":
        return {positive: numbers}, "scores"
    other = [label for label in target.classes if label != positive]
    return {positive: numbers, **{label: pc.subtract(1.0, numbers) for label in other}}, "probabilities"


def _complete_scores(found: Mapping[Any, pa.Array], target: Target) -> tuple[dict[Any, pa.Array], str]:
    """Label → scores with that of the other class of two, where it follows; and whether they are probabilities."""
    completed = {**found}
    [(label, numbers)] = found.items() if len(found) == 1 else [(None, None)]
    if numbers is not None and target.kind == "binary" and _in_unit(numbers):
        completed |= {other: pc.subtract(1.0, numbers) for other in target.classes if other != label}
    total = np.sum([np.asarray(each.to_numpy(zero_copy_only=False), np.float64) for each in completed.values()], axis=0)
    known = total[~np.isnan(total)]
    sums = bool(len(known) and np.all(np.abs(known - 1) <= _TOLERANCE)) and len(completed) >= len(target.classes)
    return completed, "probabilities" if sums and all(map(_in_unit, completed.values())) else "scores"


def check_threshold(threshold: Any, notes: Notes) -> None:
    """Refuses a threshold that is no finite number."""
    if threshold is None:
        return
    if isinstance(threshold, bool) or not isinstance(threshold, int | float | np.number) or not np.isfinite(threshold):
        raise SpecError(f"{notes.option('threshold', threshold)}: give a finite number")


def _require_one_class(target: Target, column: str, notes: Notes) -> None:
    """Refuses a single column of scores where it cannot be known of which class they are."""
    if target.kind == "binary" or (target.kind in ("multiclass", "text") and target.chosen):
        return
    stated = notes.option("score", column)
    if target.kind in ("multiclass", "text"):
        raise SpecError(
            f"{stated}: {target.name!r} has {len(target.classes):,} classes, so one score does not suffice: give"
            f" {notes.class_score()} for each class, or {notes.option('confidence', column)} if it is that of each"
            " prediction"
        )
    what = "numbers" if target.kind == "numeric" else "sets of labels"
    raise SpecError(
        f"{stated}: {target.name!r} holds {what}, which have no score of a class; give"
        f" {notes.option('prediction', column)}"
    )


def _labelled_scores(
    spec: SystemSpec, prediction: pa.Array | None, target: Target, notes: Notes
) -> tuple[dict[Any, pa.Array], str]:
    """The scores of each class; of labels that are in sets, those of any."""
    columns = spec.scores or {}
    if target.kind not in ("binary", "multiclass", "text"):
        return {text: read_numbers(spec.table, column, "score", notes) for text, column in columns.items()}, "nothing"
    by_text = {label_text(label): label for label in target.classes}
    found = {}
    for text, column in columns.items():
        if text not in by_text:
            known = ", ".join([*by_text][:10])
            raise SpecError(
                f"{notes.class_score(text, column)}: {target.name!r} has no class {text!r}; it has"
                f" {known}{notes.several_systems()}"
            )
        found[by_text[text]] = read_numbers(spec.table, column, "score", notes)
    lacking = [text for text, label in by_text.items() if label not in found]
    if lacking and target.kind != "binary" and (prediction is None or not target.chosen):
        more = f" and {len(lacking) - _SHOWN} more" if len(lacking) > _SHOWN else ""
        raise SpecError(
            f"{notes.option('score')}: no score of {', '.join(map(repr, lacking[:_SHOWN]))}{more}; give"
            f" {notes.class_score(lacking[0])}"
        )
    if len(found) > 1:
        found = _whole_rows(spec, found, notes)
    if prediction is not None and not lacking:
        _check_highest(spec, found, prediction, notes)
    return _complete_scores(found, target)


def _whole_rows(spec: SystemSpec, by_class: Mapping[Any, pa.Array], notes: Notes) -> dict[Any, pa.Array]:
    """The scores of the rows that have one of every class; the others have none, which is noted."""
    gaps = np.array([np.asarray(numbers.is_null()) for numbers in by_class.values()])
    some = gaps.any(axis=0) & ~gaps.all(axis=0)
    if not some.any():
        return {**by_class}
    n = int(some.sum())
    lack = pluralize(n, "lacks the score of a class and counts", "lack the score of a class and count")
    notes.append(f"{plural(n, 'row')} of {spec.name!r} {lack} as without scores")
    return {label: pc.if_else(pa.array(some), None, numbers) for label, numbers in by_class.items()}


def _check_highest(spec: SystemSpec, by_class: Mapping[Any, pa.Array], prediction: pa.Array, notes: Notes) -> None:
    """Notes predictions that are not the class with the highest score."""
    matrix = np.stack([np.asarray(each.to_numpy(zero_copy_only=False), np.float64) for each in by_class.values()], 1)
    place = np.asarray(pc.fill_null(pc.index_in(prediction, pa.array([*by_class], prediction.type)), -1))
    known = (place >= 0) & ~np.isnan(matrix).any(axis=1)
    own = matrix[np.arange(len(matrix)), place]
    n = int(np.count_nonzero(known & (own < matrix.max(axis=1))))
    if n:
        of = plural(int(known.sum()), "row")
        notes.append(f"{spec.prediction!r} is not the class with the highest score in {n:,} of {of}")


def _check_direction(
    spec: SystemSpec, name: str, score: pa.Array, prediction: pa.Array, positive: Any, notes: Notes
) -> None:
    """Notes scores that look like those of the prediction, or of the other class."""
    values = np.asarray(score.to_numpy(zero_copy_only=False), np.float64)
    yes = np.asarray(pc.fill_null(pc.equal(prediction, pa.scalar(positive, prediction.type)), False))
    known = ~np.isnan(values)
    values, yes = (values, yes) if known.all() else (values[known], yes[known])
    n = int(np.count_nonzero(yes))
    if min(n, len(yes) - n) < _FEWEST:
        return
    of_one = float(values.sum(where=yes))
    shown = label_text(positive)
    if _in_unit(score) and values.min() >= _HALF:
        notes.append(
            f"{name!r} is at least 0.5 also where {spec.prediction!r} is not {shown!r}: if it is the confidence of the"
            f" prediction, and not the score of {shown!r}, give {notes.option('confidence', name)} instead"
        )
    elif of_one / n < (values.sum() - of_one) / (len(yes) - n):
        notes.append(
            f"{name!r} is lower where {spec.prediction!r} is {shown!r}: if it is the score of the other class, name"
            f" that with {notes.option('pos-label')}"
        )


def _decide(
    spec: SystemSpec,
    by_class: Mapping[Any, pa.Array],
    target: Target,
    gives: str,
    threshold: float | None,
    notes: Notes,
) -> pa.Array:
    """The predictions that scores make: of the highest class, or at a threshold; null where a score is missing.

    Args:
        by_class: label → scores.
    """
    if threshold is None and spec.score is None:
        notes.append(f"{spec.name!r} predicts the class with the highest score")
        return _highest_class(by_class, target.type)
    if threshold is None:
        notes.append(
            f"{spec.name!r} has scores only, so no metric of decisions is proposed; {notes.option('threshold')} makes"
            " predictions"
        )
    elif target.kind != "binary" or target.positive not in by_class:
        raise SpecError(
            f"{notes.option('threshold', threshold)} needs the scores of the positive class of two, and"
            f" {target.name!r} has {', '.join(map(label_text, target.classes[:_SHOWN]))} without a positive one; give"
            f" {notes.option('prediction')}, or name one of two classes as {notes.option('pos-label')}"
        )
    at = threshold if threshold is not None else _HALF if gives == "probabilities" else 0.0
    score = by_class[target.positive]
    others = [label for label in target.classes if label != target.positive]
    yes, no = (pa.scalar(each, target.type) for each in (target.positive, others[0]))
    return pc.if_else(pc.greater_equal(score, pa.scalar(float(at))), yes, no)


def _highest_class(by_class: Mapping[Any, pa.Array], kind: pa.DataType) -> pa.Array:
    matrix = np.stack([np.asarray(each.to_numpy(zero_copy_only=False), np.float64) for each in by_class.values()], 1)
    missing = np.isnan(matrix).any(axis=1)
    place = np.argmax(np.where(np.isnan(matrix), -np.inf, matrix), axis=1)
    return pa.array([*by_class], kind).take(pa.array(place, mask=missing))


def read_numbers(table: NamedTable, name: str, option: str, notes: Notes) -> pa.Array:
    """A column of finite numbers as doubles; words count as missing, which is noted."""
    column = table.typed(name, option, notes).as_floats()
    if column.type not in ("integer", "number", "text", "empty"):
        raise SpecError(f"{notes.option(option, name)}: holds {contents(column.values.type)}; give a column of numbers")
    numbers = column.numbers(table.where).cast(pa.float64())
    notes += filter(None, [*column.notes, column.describe_words(table.where, "counts as missing")])
    infinite = infinite_rows(numbers).tolist()
    if infinite:
        raise DataError(Fault(table.where(infinite[0]), f"{name!r} is infinite; give a finite number", code="infinite"))
    return numbers


def read_weights(table: NamedTable, name: str, notes: Notes) -> pa.Array:
    """A column of weights; a DataError names each row that has none, or one below 0."""
    weights = read_numbers(table, name, "weight", notes)
    wrong = np.flatnonzero(~(np.asarray(weights.fill_null(-1.0)) >= 0))
    faults = []
    for row in wrong.tolist():
        value = "no number" if weights[row].as_py() is None else f"{weights[row].as_py():g}"
        faults.append(Fault(table.where(row), f"the weight {name!r} is {value}; give a number of 0 or more"))
    if faults:
        raise DataError(faults)
    return weights


def _in_unit(column: pa.Array) -> bool:
    ends = pc.min_max(column).as_py()
    return ends["min"] is not None and ends["min"] >= 0 and ends["max"] <= 1
