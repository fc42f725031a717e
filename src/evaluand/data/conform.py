"""Rows of a dataset that pass through adapters and are validated against a schema, before they get their roles.

    source ─ adapters ─ schema ─▶ source of valid rows, with the types of the schema

Every row is read once to find all faults, each with its file, row and column. Rows without an `_index_` are numbered by
the dataset, also where the schema has that field; rows with one may have it without the schema naming it.
"""

from __future__ import annotations

from array import array
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from typing import Any, Final

import orjson
import pyarrow as pa

from evaluand.core import identity
from evaluand.core.errors import DataError, Fault, SpecError, kind_of
from evaluand.data import schema as schemas  # which loads pydantic with the first schema
from evaluand.data.adapters.base.adapter import Counts, Pipeline
from evaluand.data.adapters.base.columns import build_table, read_rows
from evaluand.data.adapters.base.options import AdapterError
from evaluand.data.schema import keys
from evaluand.data.schema.arrow import write_arrow
from evaluand.data.schema.declared import convert_rows, find_faults
from evaluand.data.schema.faults import RowFault
from evaluand.data.schema.kinds import RANGES, Array, Field, Scalar, StructType, Type
from evaluand.data.schema.tables import check_columns
from evaluand.data.sources import MAX_FAULTS, DataSource, from_objects, from_table
from evaluand.store import tables


def conform(source: DataSource, adapters: Any = None, schema: Any = None) -> tuple[DataSource, Counts | None]:
    """A source of the rows after the adapters, valid against the schema; and what the adapters did to the rows.

    Args:
        adapters: a `Pipeline`, or its JSON configuration.
        schema: any form that `Schema.of` takes.

    Raises:
        DataError: rows cannot be transformed, or are invalid; lists every fault with its row and column.
        SpecError: the adapters or the schema are wrong.
    """
    if schema is None:
        pipeline = _read_pipeline(adapters)
        return (source, None) if pipeline is None else _adapt(source, pipeline)
    struct = _read_struct(schema)
    rows = _Rows(source, _read_pipeline(adapters))
    valid = _Valid(rows, struct)
    valid.check()
    return valid.source, rows.counts if rows.pipeline else None


def _read_pipeline(adapters: Any) -> Pipeline | None:
    if adapters is None:
        return None
    pipeline = adapters if isinstance(adapters, Pipeline) else Pipeline.of(adapters)
    if pipeline.last:
        raise SpecError("FileUpload prepares requests: put it into the task's input_pipeline, not into a dataset")
    return pipeline


def _read_struct(schema: Any) -> StructType:
    struct = schemas.Schema.of(schema).struct
    reserved = [name for name in struct.names if keys.is_reserved(name) and name.startswith("_") and name != keys.INDEX]
    if reserved:
        raise SpecError(
            f"the schema has {', '.join(reserved)}: it describes outputs; give the schema of a dataset's rows"
        )
    if struct.names == [keys.INDEX]:
        raise SpecError(f"the schema has no field but {keys.INDEX}; give the rows a column")
    return struct


# Adapters


def _adapt(source: DataSource, pipeline: Pipeline) -> tuple[DataSource, Counts]:
    """The rows after the adapters, with the types of the columns they come from, or else of their values."""
    rows = _Rows(source, pipeline)
    if source.objects is not None:
        rows.check()
        return from_objects(source.name, lambda: enumerate(rows.read()), rows.where), rows.counts
    pieces: list[Any] = []
    try:
        pieces += pipeline.pieces(source.batches(), rows.counts)
    except AdapterError:
        rows.check()  # names every row at fault, where a piece names the first
        raise
    table = build_table(pieces)
    return replace(from_table(table, source.name), where=rows.where, check=source.check), rows.counts


@dataclass
class _Rows:
    """The rows of a source after the adapters, as Python values, and the row of the source that each comes from."""

    source: DataSource
    pipeline: Pipeline | None

    def __post_init__(self) -> None:
        self.counts, self.places = Counts(), array("q")

    @cached_property
    def texts(self) -> DataSource | None:
        """The cells of a CSV file as text, which get the types of the schema."""
        return None if self.source.texts is None else self.source.texts()

    def written(self) -> Iterator[Any]:
        """The rows as they are written."""
        if self.texts is not None:
            return chain.from_iterable(batch.to_pylist() for batch in self.texts.batches())
        if self.source.objects is not None:
            return self.source.objects()
        return chain.from_iterable(map(read_rows, self.source.batches()))

    def read(
        self, faults: list[Fault] | None = None, counts: Counts | None = None, places: array[int] | None = None
    ) -> Iterator[Any]:
        """The rows after the adapters.

        Args:
            faults: collects the faults of rows that cannot be transformed; by default the first is raised.
            counts: counts what happens to the rows.
            places: collects the number of the row that each comes from.
        """
        if self.pipeline is None:
            yield from self.written()
            return
        counts = Counts() if counts is None else counts
        if faults is None:
            for chunk in _chunks(self.written()):
                yield from self.pipeline(chunk, counts)
            return
        for number, row in enumerate(self.written()):
            try:
                made = list(self.pipeline([row], counts))
            except AdapterError as error:
                faults.append(Fault(self.source.where(number), error.faults[0].message))
                continue
            if places is not None:
                places.extend([number] * len(made))
            yield from made

    def read_counted(self, faults: list[Fault]) -> Iterator[Any]:
        """The rows after the adapters, with `counts` and `places` of this pass."""
        self.counts, self.places = Counts(), array("q")
        return self.read(faults, self.counts, self.places)

    def check(self) -> None:
        """Raise a DataError with every row that cannot be transformed."""
        faults: list[Fault] = []
        for row in self.read_counted(faults):
            if not isinstance(row, Mapping):
                raise DataError(f"{self.source.name}: the adapters make {kind_of(row)}; a row is an object")
        if faults:
            raise DataError(faults)

    def where(self, row: int) -> str:
        """The place of a row after the adapters in the source."""
        if self.pipeline is not None and not self.places:  # the rows went through the adapters as batches
            deque(self.read([], None, self.places), 0)
        return self.source.where(row if self.pipeline is None else self.places[row])


# Schemas


class _Valid:
    """The rows that a schema accepts, as batches of its types."""

    def __init__(self, rows: _Rows, struct: StructType) -> None:
        self.rows = rows
        self.is_table = rows.pipeline is None and rows.texts is None and rows.source.objects is None
        self.is_table = self.is_table and not any(map(tables.is_json, rows.source.schema))
        fields = tuple(field for field in struct.fields if field.name != keys.INDEX)
        if self._has_index():  # else the dataset numbers the rows
            fields = struct.fields if keys.INDEX in struct.names else (Field(keys.INDEX, Scalar("int64")), *fields)
        self.struct = replace(struct, fields=fields)
        self.is_json = rows.texts is not None or rows.source.is_json  # in which times, UUIDs and the like are texts

    @property
    def source(self) -> DataSource:
        """The valid rows."""
        fields = zip(self.struct.fields, write_arrow(self.struct), strict=True)
        schema = pa.schema(
            [arrow.remove_metadata() if _is_native(f.type) else tables.json_field(f.name) for f, arrow in fields]
        )
        source = self.rows.source
        return DataSource(source.name, schema, lambda: self._batches(schema), self.rows.where, check=source.check)

    def check(self) -> None:
        """Raise a DataError with every fault of every row."""
        faults = [*self._column_faults()]
        if faults:
            raise DataError(faults)
        broken: list[Fault] = []
        found = self._find_faults(self.is_json, broken)
        may_be_json = not self.is_json and self.rows.source.objects is not None
        if found and may_be_json and not self._find_faults(True, []):  # rows in Python may have the forms of JSON
            self.is_json, found = True, []
        if found or broken:
            raise DataError([*broken, *map(self._locate, found)])

    def _has_index(self) -> bool:
        if self.rows.pipeline is None:
            return keys.INDEX in self.rows.source.schema.names
        first = next(self.rows.read([]), None)
        return isinstance(first, Mapping) and keys.INDEX in first

    def _find_faults(self, is_json: bool, broken: list[Fault]) -> list[RowFault]:
        if self.is_table:
            table = pa.Table.from_batches(self.rows.source.batches(), self.rows.source.schema)
            return find_faults(self.struct, table, most=MAX_FAULTS)
        rows = self._parsed(self.rows.read_counted(broken))
        return find_faults(self.struct, rows, json=is_json, most=MAX_FAULTS)

    def _column_faults(self) -> Iterator[Fault]:
        """Columns that a file lacks, or that the schema does not know: once, instead of in every row."""
        source = self.rows.texts
        if source is None or self.rows.pipeline is not None:
            return
        names = pa.schema([pa.field(name, pa.null()) for name in source.schema.names])
        for fault in check_columns(self.struct, names, Counter()):
            yield Fault(f"{source.name}:1:{fault.path}", fault.message)

    def _locate(self, fault: RowFault) -> Fault:
        if fault.row is None:
            return Fault(f"{self.rows.source.name}:{fault.path}", fault.message)
        where = self.rows.where(fault.row)
        if not fault.path:
            return Fault(where, fault.message)
        is_line = where.rpartition(":")[2].isdigit() or where.endswith("]")
        message = fault.message
        if (fault.path, fault.what) == (keys.INDEX, "twice"):
            message = f"{fault.index} occurs twice; give each row its own"
        return Fault(f"{where}:{fault.path}" if is_line else f"{where}, {fault.path}", message)

    def _parsed(self, rows: Iterator[Any]) -> Iterator[Any]:
        """Rows whose cells have the types of the schema."""
        return rows if self.rows.texts is None else (parse_cells(self.struct, row) for row in rows)

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        data: Iterable[Any]
        if self.is_table:
            data = (pa.Table.from_batches([batch]) for batch in self.rows.source.batches())
        else:
            data = _chunks(self._parsed(self.rows.read()))
        for part in data:
            for columns in convert_rows(self.struct, part, json=self.is_json):
                arrays = [
                    _native_array(field, column) for field, column in zip(self.struct.fields, columns, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _chunks(rows: Iterator[Any]) -> Iterator[list[Any]]:
    while chunk := list(islice(rows, tables.BATCH_ROWS)):
        yield chunk


# Cells of a CSV file


def parse_cells(struct: StructType, row: Any) -> Any:
    """A row whose texts are read as the schema's types say; an empty cell of an optional field is missing."""
    if not isinstance(row, dict):
        return row
    fields = {each.name: each for each in struct.fields}
    return {
        name: value if field is None else _parse_cell(field.type, value)
        for name, value in row.items()
        if (field := fields.get(name)) is None or value is not None or field.required
    }


def _parse_cell(type_: Type, value: Any) -> Any:
    """The value of a cell; a text of another type is returned unchanged, for validation to report."""
    if not isinstance(value, str):
        return value
    is_plain = value.isascii() and value.strip() == value and "_" not in value
    try:
        if not isinstance(type_, Scalar):
            return orjson.loads(value)
        if type_.kind in RANGES and is_plain:
            return int(value)
        if type_.kind in ("float32", "float64") and is_plain:
            return float(value)
    except ValueError:
        return value
    return _BOOLEANS.get(value.lower(), value) if type_.kind == "bool" else value


_BOOLEANS: Final = {"true": True, "false": False}


# Columns of a dataset


def _is_native(type_: Type) -> bool:
    """Whether a dataset has a column of this type; others are JSON text, as objects are."""
    return isinstance(type_, Scalar) or (isinstance(type_, Array) and isinstance(type_.item, Scalar))


def _native_array(field: Field, array: pa.Array) -> pa.Array:
    if _is_native(field.type):
        return array
    values = array.to_pylist(maps_as_pydicts="strict")
    return pa.array([None if value is None else identity.encode(value).decode() for value in values], pa.string())
