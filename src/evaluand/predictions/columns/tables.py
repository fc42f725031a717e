"""Tables of predictions: read from files, and joined with the truth by id or by row."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import DataError, Fault, SpecError, plural, warn
from evaluand.data.columns import join_chunks
from evaluand.data.paths import add_paths
from evaluand.data.row_filter import RowFilter
from evaluand.data.source import DataSource, missing_column
from evaluand.data.sources import open_data, open_file
from evaluand.data.typed_columns import TypedColumn, type_column
from evaluand.predictions.columns.names import guess_columns
from evaluand.predictions.columns.notes import Notes
from evaluand.store.tables import is_json

_SHOWN: Final = 3
_JSON: Final = pa.json_(pa.string())


@dataclass(frozen=True)
class NamedTable:
    """A table with its name in messages.

    Attributes:
        where: the place of row number n (from 0).
        converted: column → what was converted when it was read.
        types: column → its declared type.
    """

    name: str
    table: pa.Table
    where: Callable[[int], str]
    converted: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    _whole: tuple[NamedTable, pa.Array] | None = None  # the table that these are some rows of, and their places in it
    _typed: dict[str, TypedColumn] = field(default_factory=dict, init=False, repr=False, compare=False)

    def column(self, name: str, role: str) -> pa.Array:
        """A column as one array, as it was read.

        Args:
            role: what it was named for, such as `--truth`.

        Raises:
            SpecError: there is no such column; the message has the nearest name.
        """
        if name not in self.table.column_names:
            raise SpecError(f"{role}: in {self.name} {missing_column(name, self.table.column_names)}")
        return join_chunks(self.table.column(name))

    def typed(self, name: str, option: str, notes: Notes) -> TypedColumn:
        """A column with its type, which is that of all rows of its file; notes what was converted.

        Args:
            option: what it was named for, such as `truth`.

        Raises:
            SpecError: as `column`.
            DataError: a cell is none of the declared type.
        """
        if name not in self._typed:
            self.column(name, notes.name(option))
            self._typed[name] = self._type(name)
        notes += [note for note in self._typed[name].notes if note not in notes]
        return self._typed[name]

    def _type(self, name: str) -> TypedColumn:
        if self._whole is not None:
            table, rows = self._whole
            return table._type(name).take(rows)
        read = type_column(name, self.table.column(name), self.types.get(name))
        return replace(read, notes=[self.converted[name], *read.notes]) if name in self.converted else read

    def take(self, rows: pa.Array) -> NamedTable:
        """Some rows; one without a place is null in every column."""
        places = rows.to_pylist()
        return replace(
            self, table=self.table.take(rows), where=lambda row: self.where(places[row] or 0), _whole=(self, rows)
        )

    def with_paths(self, names: Iterable[tuple[str, str]]) -> NamedTable:
        """This table with a column for each name that is a path into a column, such as `gold.answers[0]`.

        Args:
            names: (option, name).

        Raises:
            SpecError: a path leads nowhere in any row.
        """
        source = DataSource(self.name, self.table.schema, lambda: iter(self.table.to_batches()), self.where)
        added = add_paths(source, names)
        if added is source:
            return self
        return replace(self, table=mark_json(pa.Table.from_batches(added.batches(), added.schema)))

    def filtered(self, condition: RowFilter) -> NamedTable:
        """The rows that match a condition; warns of those that match nothing because a value is missing.

        Raises:
            SpecError: the condition does not fit the columns.
            DataError: no row matches.
        """
        masks = condition.mask_of(self.table.to_batches(), self.table.schema, self.converted)
        rows = pc.indices_nonzero(masks)
        if not len(rows):
            raise DataError(f"{self.name}: no row matches where: {condition.text}")
        if masks.null_count:
            warn(f"where: {condition.describe_unknown(masks.null_count, len(masks))}, which matches nothing")
        return self.take(rows)


def read_table(
    path: str | os.PathLike[str],
    format: str | None = None,
    delimiter: str | None = None,
    types: Mapping[str, str] | None = None,
) -> NamedTable:
    """Reads a file, a folder or standard input (`-`), in any form that datasets have.

    Args:
        format: by default it follows from the suffix or the content.
        delimiter: of a CSV file; a comma by default.
        types: column → its declared type, see `type_column`.

    Raises:
        DataError: there is no such file, it has no rows, or rows break the format.
    """
    return _as_named(open_file(os.fspath(path), format, delimiter, types), types or {})


def as_table(data: Any, name: str = "the table", types: Mapping[str, str] | None = None) -> NamedTable:
    """Any table in memory: Arrow, pandas, polars, a mapping column → values, a list of rows.

    Args:
        name: what messages call it.
        types: as of `read_table`.

    Raises:
        DataError: it has no rows.
        SpecError: it is no table.
    """
    return _as_named(open_data(data, name), types or {})


def _as_named(source: DataSource, types: Mapping[str, str]) -> NamedTable:
    table = pa.Table.from_batches(source.batches(), source.schema)
    if not table.num_rows:
        raise DataError(Fault(source.name, "there are no rows, so there is nothing to score", code="no_rows"))
    return NamedTable(source.name, mark_json(table), source.where, source.notes, types)


def mark_json(table: pa.Table) -> pa.Table:
    """A table whose columns of canonical JSON have Arrow's JSON type."""
    for place, each in enumerate(table.schema):
        if is_json(each):
            chunks = [pa.ExtensionArray.from_storage(_JSON, chunk) for chunk in table.column(place).chunks]
            table = table.set_column(place, pa.field(each.name, _JSON), pa.chunked_array(chunks, _JSON))
    return table


@dataclass(frozen=True)
class JoinedTables:
    """The rows of the truth with the columns of each file of predictions in the same order.

    Attributes:
        base: the file with the truth.
        files: each file of predictions; a row is null where it has none.
        notes: how rows were joined, and which ones were left out.
    """

    base: NamedTable
    files: Sequence[NamedTable]
    notes: Sequence[str]


def join_tables(
    base: NamedTable, files: Sequence[NamedTable], truth: str, id: str | None, names: Notes
) -> JoinedTables:
    """Joins files of predictions with the file of the truth.

    Without `id`, the one column is taken that all files have, that looks like an id, and that names each row; else rows
    are joined by their number if all files have the same truth in each row.

    Args:
        names: the names of options in messages.

    Raises:
        DataError: an id is missing or occurs twice, or files differ in the truth of a row.
        SpecError: nothing says which rows belong together.
    """
    others = [each for each in files if each is not base]
    if not others:
        return JoinedTables(base, files, ())
    notes: list[str] = []
    key = id or _find_id([base, *others])
    if key is None:
        _require_same_rows(base, others, truth, names)
        return JoinedTables(base, files, ("rows are joined by their number; every file has the same truth in each",))
    if id is None:
        other_id = names.name("id")
        notes.append(f"rows are joined by {key!r}, which names each row of every file; {other_id} names another column")
    ids = _ids(base, key, names)
    joined = []
    for other in files:
        if other is base:
            joined.append(base)
            continue
        other_ids = _ids(other, key, names)
        places = pc.index_in(ids, other_ids)
        if places.null_count == len(places):
            raise DataError(
                f"{other.name} and {base.name} have no {key!r} in common: {other_ids[0].as_py()!r} in the one,"
                f" {ids[0].as_py()!r} in the other; give the column that joins them as {names.name('id')}"
            )
        matched = other.take(places)
        _check_same_truth(base, matched, truth, ids, key, names)
        notes += _unmatched((base.name, ids), (other.name, other_ids), key)
        joined.append(matched)
    return JoinedTables(base, joined, notes)


def _find_id(tables: Sequence[NamedTable]) -> str | None:
    """The one column that all tables have, that looks like an id, and that names each row."""
    shared = set.intersection(*({*guess_columns(each.table).ids} for each in tables))
    unique = [name for name in sorted(shared) if all(_is_unique(each.table.column(name)) for each in tables)]
    return unique[0] if len(unique) == 1 else None


def _is_unique(column: pa.ChunkedArray) -> bool:
    return column.null_count == 0 and len(pc.unique(column)) == len(column)


def _ids(table: NamedTable, key: str, names: Notes) -> pa.Array:
    """The ids of a table as text; every row has its own."""
    column = table.typed(key, "id", names).texts()
    check_ids(column, table, key)
    return column


def check_ids(column: pa.Array, table: NamedTable, key: str) -> None:
    """Refuses ids that are missing or occur twice.

    Raises:
        DataError: names the rows.
    """
    values = column.to_pylist()
    first: dict[str, int] = {}
    faults = []
    for row, value in enumerate(values):
        if value is None:
            faults.append(Fault(table.where(row), f"{key!r} is empty; give the row its id", code="no_id"))
        elif first.setdefault(value, row) != row:
            message = f"{key} {value!r} occurs twice (first at {table.where(first[value])}); keep one row for each"
            faults.append(Fault(table.where(row), message, code="twice_id"))
    if faults:
        raise DataError(faults)


def _require_same_rows(base: NamedTable, others: Sequence[NamedTable], truth: str, names: Notes) -> None:
    for other in others:
        one, two = base.table.num_rows, other.table.num_rows
        alike = one == two and truth in other.table.column_names
        if not alike or not _texts(base, truth, names).equals(_texts(other, truth, names)):
            why = (
                f"{plural(one, 'row')} and {plural(two, 'row')}" if one != two else "no column in common that shows it"
            )
            raise SpecError(
                f"nothing says which rows of {base.name} and {other.name} belong together ({why});"
                f" give the column that names each row as {names.name('id')}"
            )


def _texts(table: NamedTable, truth: str, names: Notes) -> pa.Array:
    return table.typed(truth, "truth", names).texts()


def _check_same_truth(base: NamedTable, other: NamedTable, truth: str, ids: pa.Array, key: str, names: Notes) -> None:
    """Refuses a second truth that differs from the first."""
    if truth not in other.table.column_names or truth not in base.table.column_names:
        return
    one, two = (_texts(table, truth, names) for table in (base, other))
    differ = pc.fill_null(pc.not_equal(one, two), False).to_pylist()
    rows = [row for row, differs in enumerate(differ) if differs]
    if rows:
        shown = ", ".join(repr(ids[row].as_py()) for row in rows[:_SHOWN])
        raise DataError(
            Fault(
                other.where(rows[0]),
                f"{truth!r} is {two[rows[0]].as_py()!r} here and {one[rows[0]].as_py()!r} in {base.name}; it differs in"
                f" {plural(len(rows), 'row')}, such as {key} {shown}; correct one, or remove the column from one file",
                code="other_truth",
            )
        )


def _unmatched(base: tuple[str, pa.Array], other: tuple[str, pa.Array], key: str) -> list[str]:
    """Notes on the ids of one table that the other lacks; each table is (name, ids)."""
    notes = []
    for one, two, what in ((other, base, "has no truth and is left out"), (base, other, "counts as missing")):
        outside = pc.invert(pc.is_in(one[1], two[1]))
        n = pc.sum(outside).as_py() or 0
        if n:
            first = one[1].filter(outside)[0].as_py()
            each = "" if n == 1 else "each "
            notes.append(f"{plural(n, 'row')} of {one[0]} not in {two[0]}, such as {key} {first!r}: {each}{what}")
    return notes
