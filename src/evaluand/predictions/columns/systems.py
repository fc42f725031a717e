"""The predictions and scores of systems, converted to the types of the truth, with a note on each conversion.

A conversion is made only where it cannot mean anything else: `"3"` and 3, `true` and 1, `NaN` among numbers. What could
mean two things is refused.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core import identity
from evaluand.core.errors import DataError, Fault, SpecError, plural
from evaluand.data.text_numbers import describe_numbers, is_missing, is_number, parse_numbers
from evaluand.evaluation.prediction_table import PredictionColumns, infinite_rows, label_text, nan_as_null
from evaluand.metrics.base.labels import contents
from evaluand.predictions.columns.notes import Notes
from evaluand.predictions.columns.proposals import Target
from evaluand.predictions.columns.tables import NamedTable, read_column

_INFINITE: Final = ("inf", "+inf", "-inf", "infinity", "+infinity", "-infinity")
_DECIMAL_COMMA: Final = re.compile(r"\s*[+-]?\d+,\d+\s*")
_THOUSANDS: Final = re.compile(r"\s*[+-]?[1-9]\d{0,2}(,\d{3})+\s*")
_GROUPED: Final = re.compile(
    r"\s*[+-]?\d{1,3}((,\d{3})+(\.\d+)?|(\.\d{3})+,\d+|(\.\d{3}){2,}|([ '\u00a0\u202f]\d{3})+([.,]\d+)?)\s*"
)
_PERCENT: Final = re.compile(r"\s*[+-]?\d+([.,]\d+)?\s?%\s*")
_BOOLEANS: Final = {"true": True, "false": False}
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


def align_truth(truth: NamedTable, name: str, specs: Sequence[SystemSpec], notes: Notes) -> pa.Array:
    """The truth; as numbers where it has numbers written as text, and predictions are numbers.

    Raises:
        DataError: a cell is a word among numbers; names its place.
    """
    column = _known_numbers(read_column(truth, name, "truth", notes))
    predicted = [
        each.table.column(each.prediction, notes.name("prediction")) for each in specs if each.prediction is not None
    ]
    numbers = any(contents(each.type) in ("integers", "numbers") for each in predicted)
    if contents(column.type) != "text" or not numbers:
        return column
    texts = pc.unique(column.drop_null()).to_pylist()
    return read_text_numbers(column, truth, name, notes) if any(map(is_number, texts)) else column


def align_prediction(truth: pa.Array, truth_name: str, spec: SystemSpec, notes: Notes) -> pa.Array:
    """The predictions of a system in the type of the truth.

    Raises:
        DataError: a cell is no number where the truth holds numbers.
        SpecError: they have types that are never equal.
    """
    assert spec.prediction is not None
    name = spec.prediction
    column = _known_numbers(read_column(spec.table, name, "prediction", notes))
    one, other = contents(truth.type), contents(column.type)
    if other == "" or one == other or {one, other} <= {"integers", "numbers"}:
        if one in ("lists", "other"):
            _check_json_types(truth, column, truth_name, name)
        return column
    if {one, other} == {"bools", "integers"} and _is_zero_or_one(column if one == "bools" else truth):
        notes.append(f"{truth_name!r} and {name!r} are bools and 0 or 1: true is taken as 1")
        return column.cast(truth.type)
    if other == "text" and one in ("integers", "numbers"):
        return read_text_numbers(column, spec.table, name, notes)
    if other == "text" and one == "bools" and (found := _booleans_of(column)) is not None:
        notes.append(f"{name!r} has true and false in several spellings, taken as bools")
        if n := found.null_count - column.null_count:
            notes.append(f"{name!r} has {plural(n, 'cell')} with a word such as NA, taken as missing")
        return found
    if one == "":
        return column
    if "lists" in (one, other) or "other" in (one, other):
        _check_json_types(truth, column, truth_name, name)
        return column
    scores = f"; if {name!r} holds scores, give {notes.option('score', name)}" if other == "numbers" else ""
    raise SpecError(
        f"{truth_name!r} holds {one} such as {_first(truth)!r}, {name!r} holds {other} such as {_first(column)!r}: no"
        f" prediction could be right; name another column, or write both in the same way{scores}"
    )


def _check_json_types(truth: pa.Array, column: pa.Array, truth_name: str, name: str) -> None:
    """Refuses values that are never equal, such as text and lists of it."""
    one, other = (_json_types(each) for each in (truth, column))
    if one & other == {"bools"} and "text" in one ^ other:
        raise SpecError(
            f"{truth_name!r} holds {' and '.join(sorted(one))}, {name!r} {' and '.join(sorted(other))}, and a text such"
            " as 'True' is never equal to true; write both in the same way, and nothing where there is no answer"
        )
    if one and other and not one & other:
        first, second = (_first(each) for each in (truth, column))
        raise SpecError(
            f"{truth_name!r} holds {' and '.join(sorted(one))} such as {first!r}, {name!r} holds"
            f" {' and '.join(sorted(other))} such as {second!r}: no prediction could be right; write both in the same"
            " way"
        )


def _json_types(column: pa.Array) -> set[str]:
    """The types of the values of a column, as in JSON; none of empty lists, which any list may equal."""
    holds = contents(column.type)
    if isinstance(column, pa.ExtensionArray):
        texts = [] if column.null_count == len(column) else column.storage.drop_null().to_pylist()
        return {_JSON_TYPES.get(text[0], "numbers") for text in texts}
    if holds == "lists":
        cells = {"integers": "numbers"}.get(inner := contents(column.type.value_type), inner)
        return {f"lists of {cells}"} if cells in ("bools", "numbers", "text", "lists") else set()
    return {{"integers": "numbers", "other": "objects"}.get(holds, holds)} if holds else set()


_JSON_TYPES: Final = {'"': "text", "{": "objects", "[": "lists", "t": "bools", "f": "bools", "n": "nothing"}


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
            raise SpecError(f"{notes.class_score(text, column)}: {target.name!r} has no class {text!r}; it has {known}")
        found[by_text[text]] = read_numbers(spec.table, column, "score", notes)
    lacking = [text for text, label in by_text.items() if label not in found]
    if lacking and target.kind != "binary" and (prediction is None or not target.chosen):
        more = f" and {len(lacking) - _SHOWN} more" if len(lacking) > _SHOWN else ""
        raise SpecError(
            f"{notes.option('score')}: no score of {', '.join(map(repr, lacking[:_SHOWN]))}{more}; give"
            f" {notes.class_score(lacking[0])}"
        )
    return _complete_scores(found, target)


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


# Types


def _known_numbers(column: pa.Array) -> pa.Array:
    """A column of numbers with NaN as null, of the null type if none is known; other columns as they are."""
    known = nan_as_null(column)
    is_empty = pa.types.is_floating(column.type) and known.null_count == len(known)
    return pa.nulls(len(known)) if is_empty else known


def read_numbers(table: NamedTable, name: str, option: str, notes: Notes) -> pa.Array:
    column = read_column(table, name, option, notes)
    holds = contents(column.type)
    if holds == "text":
        column = read_text_numbers(column, table, name, notes)
    elif holds not in ("integers", "numbers", ""):
        raise SpecError(f"{notes.option(option, name)}: holds {holds}; give a column of numbers")
    numbers = column.cast(pa.float64())
    infinite = infinite_rows(numbers).tolist()
    if infinite:
        raise DataError(Fault(table.where(infinite[0]), f"{name!r} is infinite; give a finite number", code="infinite"))
    return nan_as_null(numbers)


def are_numbers_with_words(columns: Sequence[pa.Array]) -> bool:
    """Whether columns of text hold numbers, and some of them words such as NaN or inf."""
    values = [pc.unique(column.drop_null()).to_pylist() for column in columns]
    numbers = [[*map(is_number, each)] for each in values]
    if not all(map(any, numbers)) or all(map(all, numbers)):
        return False
    return all(is_number(text) or _is_word(text) for each in values for text in each)


def _is_word(text: str) -> bool:
    """Whether a text is a word that stands for a missing or an infinite number."""
    return is_missing(text) or text.strip().lower() in _INFINITE


def read_text_numbers(column: pa.Array, table: NamedTable, name: str, notes: Notes) -> pa.Array:
    """Numbers written as text, and words such as NaN as missing.

    Raises:
        DataError: a cell is neither; names its place.
    """
    texts = column.to_pylist()
    numbers = parse_numbers(texts)
    if numbers is None:
        wrong = [(row, text) for row, text in enumerate(texts) if text and not (is_number(text) or is_missing(text))]
        _check_commas(wrong, len(column) - column.null_count, table, name)
        row, text = wrong[0]
        more = f" ({plural(len(wrong) - 1, 'more such cell')})" if len(wrong) > 1 else ""
        raise DataError(
            Fault(
                table.where(row),
                f"{name!r} is {text!r} where a number is needed{more}; leave the cell empty if there is none, or name"
                " another column",
                code="not_a_number",
            )
        )
    notes.append(describe_numbers(name, texts))
    return numbers


def _check_commas(cells: Sequence[tuple[int, str]], n: int, table: NamedTable, name: str, otherwise: str = "") -> None:
    """Refuses numbers with a decimal comma, separators of thousands or a percent sign.

    Args:
        cells: (row, text) of those that are no number.
        n: the number of cells that are not empty.
        otherwise: what else to do.

    Raises:
        DataError: names the first, with its column.
    """
    marked = [(row, text) for row, text in cells if _is_marked(text)]
    if not marked or len(marked) < len(cells):
        return
    row, text = marked[0]
    sign, remedy = _explain_mark(text.strip())
    raise DataError(
        Fault(
            f"{table.where(row)}:{name}",
            f"{text!r} has {sign}, as have {len(marked):,} of {n:,} cells; write {remedy}{otherwise}",
            code="decimal_comma",
        )
    )


def _is_marked(text: str) -> bool:
    return any(each.fullmatch(text) for each in (_DECIMAL_COMMA, _GROUPED, _PERCENT))


def _explain_mark(text: str) -> tuple[str, str]:
    """What a number has that Python's numbers have not, and how to write it."""
    if _PERCENT.fullmatch(text):
        number = text.rstrip("% ").replace(",", ".")
        return "a percent sign", f"{float(number) / 100:.12g} or {number} in each"
    if _THOUSANDS.fullmatch(text):
        joined = text.replace(",", "")
        if text.count(",") > 1:
            return "separators of thousands", joined
        return "a comma", f"{joined} if it separates thousands, {text.replace(',', '.')} if it is a decimal comma"
    if _DECIMAL_COMMA.fullmatch(text):
        return "a decimal comma", text.replace(",", ".")
    digits, _, fraction = text.rpartition(max(".,", key=text.rfind))
    if not digits or (text.count(".") > 1 and "," not in text):
        digits, fraction = text, ""
    whole = re.sub(r"[^0-9+-]", "", digits)
    return "separators of thousands", f"{whole}.{fraction}" if fraction else whole


def check_decimal_commas(columns: Sequence[tuple[pa.Array, NamedTable, str]], notes: Notes) -> None:
    """Refuses columns of text that all hold numbers, some of them with a decimal comma or another mark.

    Args:
        columns: (column, its table, its name).

    Raises:
        DataError: names the first such cell.
    """
    found = []
    for column, table, name in columns:
        values = pc.unique(column.drop_null()).to_pylist()
        marked = [text for text in values if _is_marked(text)]
        if not all(is_number(text) or _is_word(text) for text in {*values} - {*marked}):
            return
        if marked:
            found.append((column, table, name, marked))
    for column, table, name, marked in found:
        places = np.flatnonzero(np.asarray(pc.is_in(column, pa.array(marked, column.type))))
        cells = [(int(row), column[int(row)].as_py()) for row in places]
        labels = f", or give {notes.option('kind', 'multiclass')} if these are labels"
        _check_commas(cells, len(column), table, name, labels)


def _booleans_of(column: pa.Array) -> pa.Array | None:
    words = [None if text is None or is_missing(text) else text.strip().lower() for text in column.to_pylist()]
    if not {word for word in words if word is not None} <= {*_BOOLEANS}:
        return None
    return pa.array([None if word is None else _BOOLEANS[word] for word in words], pa.bool_())


def _is_zero_or_one(column: pa.Array) -> bool:
    return {*pc.unique(column.drop_null()).to_pylist()} <= {0, 1}


def _in_unit(column: pa.Array) -> bool:
    ends = pc.min_max(column).as_py()
    return ends["min"] is not None and ends["min"] >= 0 and ends["max"] <= 1


def _first(column: pa.Array) -> Any:
    known = column.drop_null()
    if isinstance(known, pa.ExtensionArray) and len(known):
        return identity.decode(known.storage[0].as_py())
    return known[0].as_py() if len(known) else None
