"""How truth and predictions are read together: words for a missing number, and integers written as floats."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import plural
from evaluand.experiment.columns.proposals import hold_few_integers
from evaluand.experiment.columns.systems import MISSING, SystemSpec, are_numbers_with_words, read_text_numbers
from evaluand.experiment.columns.tables import NamedTable
from evaluand.metrics.base.labels import contents


def read_words(
    truth: pa.Array,
    predictions: Mapping[str, pa.Array],
    table: NamedTable,
    name: str,
    specs: Sequence[SystemSpec],
    notes: list[str],
) -> tuple[pa.Array, dict[str, pa.Array]]:
    """Text as numbers, if all columns hold numbers and some of their cells a word such as NaN.

    Raises:
        DataError: a cell is infinite; names its place.
    """
    columns = [truth, *predictions.values()]
    if not all(contents(each.type) == "text" for each in columns):
        return truth, {**predictions}
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


def _note_words(name: str, column: pa.Array, notes: list[str]) -> None:
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
    truth: pa.Array, predictions: Mapping[str, pa.Array], name: str, kind: str | None, notes: list[str]
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
    notes.append(f"integers written as floats in {floats} are taken as classes; --kind numeric takes them as numbers")
    found = {each: column.cast(pa.int64()) for each, column in predictions.items()}
    return truth.cast(pa.int64()), found
