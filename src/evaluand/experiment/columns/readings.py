"""How truth and predictions are read together, and what the truth then holds.

Numbers and labels written in several ways are converted, and whatever is taken for granted is noted.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import plural
from evaluand.data.columns import join_chunks
from evaluand.evaluation.prediction_table import HEAD, common_type
from evaluand.experiment.columns.names import guess_columns
from evaluand.experiment.columns.notes import Notes
from evaluand.experiment.columns.proposals import Target, find_target, hold_few_integers
from evaluand.experiment.columns.systems import (
    MISSING,
    SystemSpec,
    align_prediction,
    align_truth,
    are_numbers_with_words,
    check_decimal_commas,
    read_text_numbers,
)
from evaluand.experiment.columns.tables import NamedTable
from evaluand.metrics.base.labels import contents

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
        DataError: a cell is no number where one is needed; names its place.
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
    target = find_target(
        name,
        truth,
        columns,
        kind,
        pos_label,
        notes,
        label=label,
        scored=labels,
    )
    return TypedColumns(truth, predictions, target, _shared_type(truth, columns))


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
    if kind not in ("binary", "multiclass"):
        own = {spec.name: (spec.table, spec.prediction or spec.name) for spec in specs}
        check_decimal_commas(
            [(truth, table, name), *((column, *own[system]) for system, column in predictions.items())], notes
        )
    if not predictions or not are_numbers_with_words(columns):
        for title, column in {name: truth, **predictions}.items():
            _note_words(title, column, notes)
        return truth, {**predictions}
    tables = {spec.name: spec for spec in specs}
    found = {}
    for system, column in predictions.items():
        spec = tables[system]
        found[system] = read_text_numbers(column, spec.table, spec.prediction or system, notes)
    return read_text_numbers(truth, table, name, notes), found


def _note_words(name: str, column: pa.Array, notes: Notes) -> None:
    """Notes labels that are words for a missing value."""
    counts = [(each["values"], each["counts"]) for each in pc.value_counts(column.drop_null()).to_pylist()]
    words = {text: n for text, n in counts if len(text) < 5 and text.strip().lower() in MISSING}
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
