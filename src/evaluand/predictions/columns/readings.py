"""How truth and predictions are read together, and what the truth then holds.

Numbers and labels written in several ways are converted, and whatever is taken for granted is noted.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any, Final
from unicodedata import normalize

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core import identity
from evaluand.core.errors import DataError, Fault, plural
from evaluand.core.selector.filters import compare
from evaluand.data.columns import join_chunks
from evaluand.data.text_numbers import is_missing, is_number
from evaluand.evaluation.prediction_table import HEAD, common_type, convert
from evaluand.metrics.base.labels import contents, is_list
from evaluand.predictions.columns.names import guess_columns
from evaluand.predictions.columns.notes import Notes
from evaluand.predictions.columns.proposals import Target, find_target, hold_few_integers
from evaluand.predictions.columns.systems import (
    SystemSpec,
    align_prediction,
    align_truth,
    are_numbers_with_words,
    check_decimal_commas,
    read_text_numbers,
)
from evaluand.predictions.columns.tables import NamedTable, read_column

_LABELS: Final = ("bools", "integers", "text")
_SHOWN: Final = 3
_SCALARS: Final = ("bools", "integers", "numbers", "text")


@dataclass(frozen=True)
class TypedColumns:
    """Truth and predictions in types that can be equal.

    Attributes:
        predictions: system → its column; none of systems with scores only.
        target: what the truth holds.
        type: of all columns, as that of the scorer `prediction`.
    """

    truth: pa.Array
    predictions: Mapping[str, pa.Array]
    target: Target
    type: str


def read_typed(
    base: NamedTable,
    name: str,
    specs: Sequence[SystemSpec],
    notes: Notes,
    *,
    kind: str | None = None,
    pos_label: str | None = None,
    label: Any = None,
) -> TypedColumns:
    """Reads the truth and the predictions of systems together.

    Args:
        base: the table with the truth.
        name: the column of the truth.
        kind: see `find_target`, also for the other arguments.

    Raises:
        DataError: a cell is no number where one is needed, or JSON equals the truth only by value; names its place.
        SpecError: columns have types that are never equal, or do not suit `kind`.
    """
    truth = align_truth(base, name, specs, notes)
    predictions = {
        spec.name: align_prediction(truth, name, spec, notes) for spec in specs if spec.prediction is not None
    }
    truth, predictions = read_words(truth, predictions, base, name, specs, kind, notes)
    truth, predictions = read_integers(truth, predictions, name, kind, notes)
    _note_values(name, truth, predictions, notes)
    notes.append_later(partial(_describe_copies, base.table))
    columns = [*predictions.values()]
    labels = [*dict.fromkeys(text for spec in specs for text in spec.scores or ())]
    target = find_target(name, truth, columns, kind, pos_label, notes, label=label, scored=labels)
    if target.kind in ("binary", "multiclass", "text", "multilabel"):
        notes.append_later(partial(_describe_spellings, {name: truth, **predictions}, "labels"))
        _note_no_overlap(name, truth, predictions, notes)
    type = _shared_type(truth, columns)
    for spec in specs:
        if type == "json" and spec.name in predictions:
            _require_one_spelling(name, truth, spec, predictions[spec.name])
    return TypedColumns(truth, predictions, target, type)


def _shared_type(truth: pa.Array, predictions: Iterable[pa.Array]) -> str:
    kinds = {common_type(truth, column) for column in predictions} or {common_type(truth, truth)}
    if kinds == {"integer", "number"}:
        return "number"
    return kinds.pop() if len(kinds) == 1 else "json"


# What is read


def read_words(
    truth: pa.Array,
    predictions: Mapping[str, pa.Array],
    table: NamedTable,
    name: str,
    specs: Sequence[SystemSpec],
    kind: str | None,
    notes: Notes,
) -> tuple[pa.Array, dict[str, pa.Array]]:
    """Text as numbers, if all columns hold numbers and some of their cells a word such as NaN.

    Args:
        kind: the kind of target that was stated, if any.

    Raises:
        DataError: a cell is infinite, or has a decimal comma; names its place.
    """
    columns = [truth, *predictions.values()]
    if not all(contents(each.type) == "text" for each in columns):
        return truth, {**predictions}
    own = {spec.name: (spec.table, spec.prediction or spec.name) for spec in specs}
    if kind not in ("binary", "multiclass"):
        check_decimal_commas(
            [(truth, table, name), *((column, *own[system]) for system, column in predictions.items())], notes
        )
    if not predictions or not are_numbers_with_words(columns):
        for title, column in {name: truth, **predictions}.items():
            _note_words(title, column, notes)
        return truth, {**predictions}
    found = {system: read_text_numbers(column, *own[system], notes) for system, column in predictions.items()}
    return read_text_numbers(truth, table, name, notes), found


def _note_words(name: str, column: pa.Array, notes: Notes) -> None:
    """Notes labels that are words for a missing value."""
    counts = [(each["values"], each["counts"]) for each in pc.value_counts(column.drop_null()).to_pylist()]
    words = {text: n for text, n in counts if len(text) < 5 and is_missing(text)}
    if words:
        shown = ", ".join(map(repr, words))
        notes.append(
            f"{name!r} has {plural(sum(words.values()), 'cell')} with {shown}, counted as a class; if they mean a"
            " missing value, leave these cells empty"
        )


def read_integers(
    truth: pa.Array, predictions: Mapping[str, pa.Array], name: str, kind: str | None, notes: Notes
) -> tuple[pa.Array, dict[str, pa.Array]]:
    """Floats as integers, if all columns hold few different integers, which pandas writes as floats if a cell is empty.

    Args:
        kind: the kind of target that was stated; numbers stay as they are if it is `numeric`.
    """
    columns = {name: truth, **predictions}
    holds = {contents(each.type) for each in columns.values()} - {""}
    if kind == "numeric" or "numbers" not in holds or not holds <= {"integers", "numbers"}:
        return truth, {**predictions}
    if not hold_few_integers([*columns.values()]):
        return truth, {**predictions}
    floats = " and ".join(repr(each) for each, column in columns.items() if contents(column.type) == "numbers")
    numeric = notes.option("kind", "numeric")
    notes.append(f"integers written as floats in {floats} are taken as classes; {numeric} takes them as numbers")
    found = {each: column.cast(pa.int64()) for each, column in predictions.items()}
    return truth.cast(pa.int64()), found


def read_group(table: NamedTable, name: str, notes: Notes) -> pa.Array:
    """A column to group by."""
    column = read_column(table, name, "by", notes)
    notes.append_later(partial(_describe_spellings, {name: column}, "groups"))
    return column


# What is noted


def _note_values(truth_name: str, truth: pa.Array, predictions: Mapping[str, pa.Array], notes: Notes) -> None:
    n = len(truth)
    if truth.null_count:
        have, are = ("has", "is") if truth.null_count == 1 else ("have", "are")
        notes.append(f"{plural(truth.null_count, 'row')} of {n:,} {have} no {truth_name!r} and {are} not scored")
    for name, column in predictions.items():
        if column.null_count:
            notes.append(f"{name!r}: {plural(column.null_count, 'row')} of {n:,} without a prediction")
        if n > 1 and contents(column.type) in _SCALARS and _is_constant(known := column.drop_null()):
            notes.append(f"{name!r} is {known[0].as_py()!r} in every row")
        if n > 1 and column.type == truth.type and column.equals(truth):
            notes.append(f"{name!r} equals {truth_name!r} in every row; is it a copy of the truth?")


def _is_constant(column: pa.Array) -> bool:
    """Whether all values of a column, of which none is null, are equal."""
    return len(pc.unique(column[:HEAD])) == 1 and len(pc.unique(column)) == 1


def _describe_spellings(columns: Mapping[str, pa.Array], what: str) -> str | None:
    """A sentence on values that differ in spelling only: in case, blanks, Unicode or how a number is written.

    Args:
        columns: the columns of text by name; others are left out.
        what: what different values are, such as labels.

    Example:
        >>> _describe_spellings({"y": pa.array(["Yes", "7"]), "p": pa.array(["yes", "7.0"])}, "labels")
        "'y' and 'p': 'Yes' and 'yes', '7' and '7.0' differ in spelling only; they count as different labels"
    """
    values = {name: [each for each in _distinct(column) if isinstance(each, str)] for name, column in columns.items()}
    by_form: dict[Any, dict[str, None]] = {}
    for texts in values.values():
        for text in texts:
            form = Decimal(text.strip()) if is_number(text) else " ".join(normalize("NFKC", text).casefold().split())
            by_form.setdefault(form, {})[text] = None
    alike = [spellings for spellings in by_form.values() if len(spellings) > 1]
    if not alike:
        return None
    names = [name for name, texts in values.items() if any({*texts} & spellings.keys() for spellings in alike)]
    shown = ", ".join(" and ".join(map(repr, spellings)) for spellings in alike[:_SHOWN])
    return f"{' and '.join(map(repr, names))}: {shown} differ in spelling only; they count as different {what}"


def _distinct(column: pa.Array) -> list[Any]:
    """The different values of a column, or those in its lists."""
    members = column.flatten() if is_list(column.type) else column
    return pc.unique(members.drop_null()).to_pylist() if contents(members.type) in _LABELS else []


def _require_one_spelling(name: str, truth: pa.Array, spec: SystemSpec, column: pa.Array) -> None:
    """Refuses JSON that is equal by value and not as text, such as 1 and 1.0, since each such row would be wrong."""
    pairs = zip(*(convert(each, "json").to_pylist() for each in (truth, column)), strict=True)
    for row, (a, b) in enumerate(pairs):
        if a != b and None not in (a, b) and compare(identity.decode(a), "==", identity.decode(b)):
            message = f"{spec.prediction!r} is {b} and {name!r} {a}, which are equal and differ as JSON"
            raise DataError(Fault(spec.table.where(row), f"{message}; write numbers in one way"))


def _note_no_overlap(name: str, truth: pa.Array, predictions: Mapping[str, pa.Array], notes: Notes) -> None:
    """Notes predictions that share no label with the truth."""
    known = _distinct(truth)
    for title, column in predictions.items():
        predicted = _distinct(column)
        if known and predicted and not {*known} & {*predicted}:
            notes.append(f"no value of {title!r}, such as {predicted[0]!r}, occurs in {name!r}, such as {known[0]!r}")


def _describe_copies(table: pa.Table) -> str | None:
    """A sentence on the rows of a table that equal earlier ones; None without such rows."""
    n = table.num_rows
    copies = n - _count_distinct(table) if _can_group(table) else 0
    return f"{plural(copies, 'row')} of {n:,} equal an earlier row in every column; each counts" if copies else None


def _can_group(table: pa.Table) -> bool:
    """Whether equal rows are copies: a column identifies or measures, and all can be compared."""
    tells = guess_columns(table).ids or any(contents(each.type) == "numbers" for each in table.schema)
    return bool(tells) and all(
        pa.types.is_primitive(each.type) or pa.types.is_string(each.type) or pa.types.is_boolean(each.type)
        for each in table.schema
    )


def _count_distinct(table: pa.Table) -> int:
    """The number of different rows."""
    columns = [join_chunks(column) for column in table.columns]
    if any(map(_are_distinct_numbers, columns)):
        return int(table.num_rows)
    code, count = np.zeros(table.num_rows, np.int64), 1
    for column in columns:
        encoded = column.dictionary_encode("encode")
        pairs = code * len(encoded.dictionary) + np.asarray(encoded.indices)
        distinct, code = np.unique(pairs, return_inverse=True)
        count = len(distinct)
        if count == table.num_rows:
            break
    return count


def _are_distinct_numbers(column: pa.Array) -> bool:
    """Whether a column holds real numbers of which no two are equal; sorting them is faster than looking them up."""
    if contents(column.type) != "numbers" or column.null_count or not pa.types.is_floating(column.type):
        return False
    ordered = np.sort(column.to_numpy())
    return bool((ordered[1:] > ordered[:-1]).all())
