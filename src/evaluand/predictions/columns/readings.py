"""How truth and predictions are read together, and what the truth then holds.

Numbers and labels written in several ways are converted, and whatever is taken for granted is noted.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Any, Final, NamedTuple, NoReturn, Self
from unicodedata import normalize

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core import identity
from evaluand.core.errors import SpecError, plural, pluralize
from evaluand.core.json_like import plain_numbers
from evaluand.data.columns import join_chunks
from evaluand.data.typed_columns import TypedColumn, is_number
from evaluand.evaluation.prediction_table import HEAD, common_type
from evaluand.evaluation.scorers.spans import spans_of_tags, token_tags
from evaluand.metrics.base.labels import contents, is_list
from evaluand.predictions.columns.names import guess_columns
from evaluand.predictions.columns.notes import Notes
from evaluand.predictions.columns.proposals import Target, find_target, hold_few_integers
from evaluand.predictions.columns.systems import SystemSpec
from evaluand.predictions.columns.tables import NamedTable

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
    label: Any = None,
    as_labels: bool = True,
) -> TypedColumns:
    """Reads the truth and the predictions of systems together.

    Args:
        base: the table with the truth.
        name: the column of the truth.
        kind: see `find_target`, also for `label`.
        as_labels: whether some metric tells labels apart, so that their spellings are noted.

    Raises:
        DataError: a cell is no number where one is needed; names its place.
        SpecError: columns have types that are never equal, or do not suit `kind`.
    """
    columns: dict[str | None, _Read] = {None: _Read(base, base.typed(name, "truth", notes))}
    columns |= {
        spec.name: _Read(spec.table, spec.table.typed(spec.prediction, "prediction", notes))
        for spec in specs
        if spec.prediction is not None
    }
    arrays = _comparable(columns, kind, notes)
    marked = _mark_spans(columns, arrays, notes) if kind is None else None
    arrays = marked or arrays
    truth = arrays.pop(None)
    predictions = {system: arrays[system] for system in arrays if system is not None}
    truth, predictions = read_integers(truth, predictions, name, kind, notes)
    _note_values(name, truth, predictions, notes)
    for column in {name: truth, **predictions}.items():
        _note_infinite(*column, notes)
    notes.append_later(partial(_describe_copies, base.table))
    predicted = [*predictions.values()]
    labels = [*dict.fromkeys(text for spec in specs for text in spec.scores or ())]
    target = find_target(name, truth, predicted, kind, label, notes, scored=labels)
    target = replace(target, kind="spans") if marked else target
    if as_labels and target.kind in ("binary", "multiclass", "text", "multilabel"):
        notes.append_later(partial(_describe_spellings, {name: truth, **predictions}, "labels"))
        _note_no_overlap(name, truth, predictions, notes)
    return TypedColumns(truth, predictions, target, _shared_type(truth, predicted))


def _shared_type(truth: pa.Array, predictions: Iterable[pa.Array]) -> str:
    kinds = {common_type(truth, column) for column in predictions} or {common_type(truth, truth)}
    if kinds == {"integer", "number"}:
        return "number"
    return kinds.pop() if len(kinds) == 1 else "json"


# What is read


class _Read(NamedTuple):
    """A column with the table that it is of."""

    table: NamedTable
    column: TypedColumn

    def as_written(self) -> Self:
        """The column with its texts, where these were read as lists or as numbers with a percent sign or the like."""
        column = self.column
        if column.written is None:
            return self
        return self._replace(column=TypedColumn(column.name, "text", column.written))

    def numbers(self, notes: Notes) -> pa.Array:
        """The numbers; words count as missing, which is noted."""
        column = self.column.as_floats()
        numbers = column.numbers(self.table.where)
        notes += filter(None, [*column.notes, column.describe_words(self.table.where, "counts as missing")])
        return numbers


def _comparable(columns: Mapping[str | None, _Read], kind: str | None, notes: Notes) -> dict[str | None, pa.Array]:
    """Truth and predictions in types that can be equal: numbers by value, words among them as classes of their own.

    Args:
        columns: system → its predictions; None → the truth.
        kind: the kind of target that was stated, if any.

    Raises:
        DataError: a cell is no number where one is needed; names its place.
        SpecError: the types are never equal.
    """
    if kind in _OF_CLASSES:
        columns = {system: read.as_written() for system, read in columns.items()}
    typed = {system: read.column for system, read in columns.items()}
    values = {system: column.values for system, column in typed.items()}
    types = {column.type for column in typed.values()} - {"empty"}
    if kind not in _OF_CLASSES:
        for read in columns.values():
            if read.column.fault is not None:
                read.numbers(notes)
    has_words = any(column.words is not None for column in typed.values())
    if types <= {"integer", "number"} and not has_words:
        return values
    truth = typed[None]
    if "number" in types or types == {"integer"} or (kind == "numeric" and "text" in types):
        whole = [column.values for column in typed.values() if column.type in ("integer", "number")]
        if kind == "numeric" or (kind not in _OF_CLASSES and truth.type != "text" and not hold_few_integers(whole)):
            return {system: read.numbers(notes) for system, read in columns.items()}
    is_mixed = {"boolean"} < types <= {"boolean", "integer", "number"}
    if is_mixed and not has_words and all(map(_is_zero_or_one, values.values())):
        named = " and ".join(repr(column.name) for column in typed.values())
        notes.append(f"{named} are bools and 0 or 1: true is taken as 1")
        return {system: column.cast(truth.values.type) for system, column in values.items()}
    if types <= {"text", "integer", "number"} or types <= {"text", "boolean"}:
        if len(types) == 1 and not has_words:
            return values
        for system, read in columns.items():
            if system is not None:
                _require_shared_form(truth, read.column, notes)
        for read in columns.values():
            notes += filter(None, [read.column.describe_words(read.table.where, "counts as a class of its own")])
        return {system: column.texts() for system, column in typed.items()}
    if types == {"time"} and len({column.type for column in values.values() if column.null_count < len(column)}) > 1:
        return values | _as_times(typed)
    for system, read in columns.items():
        if system is not None and "empty" not in (truth.type, read.column.type):
            _require_equal_types(truth, read.column, notes)
    return dict(zip(values, _equal_numbers([*values.values()]), strict=True))


_OF_CLASSES: Final = ("binary", "multiclass")


def _require_shared_form(truth: TypedColumn, column: TypedColumn, notes: Notes) -> None:
    """Refuses a column of words beside one of numbers, or of true and false."""
    if "empty" in (truth.type, column.type) or (truth.type == "text") == (column.type == "text"):
        return
    text, other = (truth, column) if truth.type == "text" else (column, truth)
    if not (text.booleans_among if other.type == "boolean" else text.numbers_among):
        _refuse_types(truth, column, notes)


def _require_equal_types(truth: TypedColumn, column: TypedColumn, notes: Notes) -> None:
    """Refuses values that are never equal, such as text and lists of it."""
    scalars = ("integer", "number", "boolean", "text", "time")
    if truth.type == column.type == "time":
        return
    if truth.type in scalars and column.type in scalars:
        _refuse_types(truth, column, notes)
    one, other = _json_types(truth.values), _json_types(column.values)
    if one & other == {"bools"} and "text" in one ^ other:
        raise SpecError(
            f"{truth.name!r} holds {' and '.join(sorted(one))}, {column.name!r} {' and '.join(sorted(other))}, and a"
            " text such as 'True' is never equal to true; write both in the same way, and nothing where there is no"
            " answer"
        )
    if one and other and not one & other:
        raise SpecError(
            f"{truth.name!r} holds {' and '.join(sorted(one))} such as {_first(truth.values)!r}, {column.name!r} holds"
            f" {' and '.join(sorted(other))} such as {_first(column.values)!r}: no prediction could be right; write"
            " both in the same way"
        )


def _refuse_types(truth: TypedColumn, column: TypedColumn, notes: Notes) -> NoReturn:
    scores = ""
    if column.type == "number":
        scores = f"; if {column.name!r} holds scores, give {notes.option('score', column.name)}"
    raise SpecError(
        f"{truth.name!r} holds {contents(truth.values.type)} such as {_first(truth.values)!r}, {column.name!r} holds"
        f" {contents(column.values.type)} such as {_first(column.values)!r}: no prediction could be right; name another"
        f" column, or write both in the same way{scores}"
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


def _equal_numbers(columns: Sequence[pa.Array]) -> list[pa.Array]:
    """Lists and objects in which numbers that are equal are written alike; other columns as they are."""
    if len({column.type for column in columns}) == 1 and not isinstance(columns[0], pa.ExtensionArray):
        return [*columns]
    return [_encode_alike(column) if contents(column.type) in ("lists", "other") else column for column in columns]


def _encode_alike(column: pa.Array) -> pa.Array:
    values: Iterable[Any]
    if isinstance(column, pa.ExtensionArray):
        values = (None if text is None else identity.decode(text) for text in column.storage.to_pylist())
    elif _holds_text(column.type):
        return column
    else:
        values = map(_without_nulls, column.to_pylist())  # Arrow gives objects the fields of all others
    texts = [None if value is None else identity.encode(plain_numbers(value)).decode() for value in values]
    return pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(texts, pa.string()))


def _holds_text(kind: pa.DataType) -> bool:
    """Whether a column has neither objects nor numbers in lists, which may be written in several ways."""
    return not pa.types.is_struct(kind) and not (is_list(kind) and contents(kind.value_type) not in ("bools", "text"))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(own) for key, own in value.items() if own is not None}
    return [*map(_without_nulls, value)] if isinstance(value, list) else value


def _as_times(columns: Mapping[str | None, TypedColumn]) -> dict[str | None, pa.Array]:
    """Days and times in one unit.

    Raises:
        SpecError: some have a time zone.
    """
    values = {system: column.values for system, column in columns.items() if column.type == "time"}
    zoned = {system: getattr(column.type, "tz", None) is not None for system, column in values.items()}
    if len({*zoned.values()}) > 1:
        one, other = (next(columns[s].name for s, has in zoned.items() if has is which) for which in (True, False))
        raise SpecError(f"{one!r} has times with a zone, {other!r} without one; write both in the same way")
    kind = pa.timestamp("us", "UTC" if all(zoned.values()) else None)
    return {system: column.cast(kind) for system, column in values.items()}


def _mark_spans(
    columns: Mapping[str | None, _Read], arrays: Mapping[str | None, pa.Array], notes: Notes
) -> dict[str | None, pa.Array] | None:
    """Lists of the tags of tokens, such as `B-PER`, as sets of the spans that they mark; None of other columns.

    The truth decides: all of its cells are tags, of which some are `O` and some begin a span. A prediction that has not
    as many tags as its row has tokens is none, which is noted.
    """
    if not all(pa.types.is_null(column.type) or _is_text_list(column.type) for column in arrays.values()):
        return None
    truth = arrays[None]
    tags = [] if pa.types.is_null(truth.type) else pc.unique(truth.flatten()).to_pylist()
    if token_tags(tags) is None or "O" not in tags or {*tags} == {"O"}:
        return None
    names = " and ".join(repr(read.column.name) for read in columns.values())
    notes.append(f"the lists of {names} are tags of tokens, taken as the spans that they mark")
    marked = {}
    lengths = pc.list_value_length(truth)
    for system, column in arrays.items():
        column = column.cast(pa.list_(pa.string()))
        differs = pc.not_equal(pc.list_value_length(column), lengths).fill_null(False)
        if n := pc.sum(differs).as_py():
            row, name = pc.index(differs, True).as_py(), columns[system].column.name
            where = f"{columns[system].table.where(row)}: {len(column[row])} of {lengths[row]}"
            lack = pluralize(n, "lacks tags and counts", "lack tags and count")
            notes.append(f"{plural(n, 'row')} of {name!r} {lack} as without a prediction, such as {where} tokens")
        marked[system] = _spans_in(pc.if_else(differs, pa.scalar(None, column.type), column))
    return marked


def _is_text_list(kind: pa.DataType) -> bool:
    return is_list(kind) and contents(kind.value_type) == "text"


def _spans_in(column: pa.Array) -> pa.Array:
    tagged = (None if tags is None else [tag or "O" for tag in tags] for tags in column.to_pylist())
    spans = (None if tags is None else spans_of_tags(tags) for tags in tagged)
    rows = [None if row is None else [f"{tag} {start}:{end}" for start, end, tag in row] for row in spans]
    return pa.array(rows, pa.list_(pa.string()))


def _is_zero_or_one(column: pa.Array) -> bool:
    return {*pc.unique(column.drop_null()).to_pylist()} <= {0, 1}


def _first(column: pa.Array) -> Any:
    known = column.drop_null()
    if isinstance(known, pa.ExtensionArray) and len(known):
        return identity.decode(known.storage[0].as_py())
    return known[0].as_py() if len(known) else None


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


def read_group(table: NamedTable, name: str, notes: Notes, option: str) -> pa.Array:
    """A column to group by, or whose equal values mark rows that belong together.

    Raises:
        SpecError: it holds lists, objects or values of several types.
    """
    column = table.typed(name, option, notes)
    labels = column.labels()
    if pa.types.is_nested(labels.type) or isinstance(labels, pa.ExtensionArray):
        raise SpecError(
            f"{option}: {name!r} holds lists, objects or mixed values such as {_first(labels)!r}, which are no groups;"
            " name a column of text, numbers, bools or times"
        )
    if column.words is not None:
        notes += filter(None, [column.describe_words(table.where, "counts as a group of its own")])
    notes.append_later(partial(_describe_spellings, {name: labels}, "groups"))
    return labels


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


def _note_infinite(name: str, column: pa.Array, notes: Notes) -> None:
    if pa.types.is_floating(column.type) and (n := pc.sum(pc.is_inf(column)).as_py()):
        notes.append(f"{name!r} is infinite in {plural(n, 'row')}, which {pluralize(n, 'has', 'have')} failed")


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
    """Whether a column holds numbers of which no two are equal; sorting them is faster than looking them up."""
    types, head = pa.types, column[:HEAD]
    if not (types.is_floating(column.type) or types.is_integer(column.type)) or column.null_count:
        return False
    if len(pc.unique(head)) < len(head):
        return False
    ordered = np.sort(column.to_numpy())
    return bool((ordered[1:] > ordered[:-1]).all())
