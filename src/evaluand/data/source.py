"""What every source of rows is: typed Arrow batches that can be read several times, and the place of each row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import pyarrow as pa

from evaluand.core import identity
from evaluand.core.errors import DataError, EvaluandWarning, Fault, nearest
from evaluand.data.files import SourceFile
from evaluand.store import tables

MAX_FAULTS = 1000


class DataNote(EvaluandWarning):
    """Data were read with an assumption that the reader should know."""


@dataclass(frozen=True)
class DataSource:
    """Rows that can be streamed repeatedly.

    Attributes:
        name: its name in messages, such as a file name.
        schema: the native columns; JSON columns are marked in their field's metadata.
        batches: starts a new pass over the rows.
        where: the place of row number n (from 0), for messages.
        n_rows: the number of rows, if known without reading them.
        check: raises a DataError if the rows have changed since the source was opened.
        objects: starts a pass over the rows as they are written, if they are objects.
        is_json: whether these objects are JSON, in which times are text.
        texts: the same rows with every cell as text, if the file has no types.
        roles: the roles that the source declares for its columns, used where the reader declares none.
        notes: column → what was converted in it.
    """

    name: str
    schema: pa.Schema
    batches: Callable[[], Iterator[pa.RecordBatch]]
    where: Callable[[int], str]
    n_rows: int | None = None
    check: Callable[[], None] = lambda: None
    objects: Callable[[], Iterator[Any]] | None = None
    is_json: bool = False
    texts: Callable[[], DataSource] | None = None
    roles: tuple[tuple[str, Any], ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Reading:
    """How a file is to be read.

    Attributes:
        delimiter: the delimiter of a CSV file; None for that of the format.
        part: the name of a part of the file, such as a sheet of a workbook; None for its only one.
        texts_only: whether every column of a CSV file is read as text, exactly as its header names it.
        types: column → the type that it is declared to have; its cells are left as they are written.
    """

    delimiter: str | None = None
    part: str | None = None
    texts_only: bool = False
    types: Mapping[str, str] = field(default_factory=dict)


class FileFormat:
    """A format of files with rows. A kind is one class in `data/formats/`, found by the suffix of its files.

    Attributes:
        kind: the suffix, by which it is registered.
        is_text: whether its files are text in UTF-8.
        has_delimiter: whether the user may choose the character between the cells.
        has_parts: whether a file may have several named tables, of which `file#name` chooses one.
    """

    kind: ClassVar[str]
    is_text: ClassVar[bool] = True
    has_delimiter: ClassVar[bool] = False
    has_parts: ClassVar[bool] = False

    def open(self, files: Sequence[SourceFile], reading: Reading) -> Sequence[DataSource]:
        """The rows of each file, all with the same columns in types that fit all of them.

        Raises:
            DataError: rows break the format; lists every fault with its row.
        """
        raise NotImplementedError


class Faults:
    """Collects faults: stores the first `MAX_FAULTS` and counts the others."""

    def __init__(self) -> None:
        self.first: list[Fault] = []
        self.more = 0

    def add(self, where: str, message: str, code: str = "") -> None:
        if len(self.first) < MAX_FAULTS:
            self.first.append(Fault(where, message, code=code))
        else:
            self.more += 1

    def check(self) -> None:
        """Raise a DataError if there are faults."""
        if self.first:
            more = [Fault("", f"… and {self.more} more faults")] if self.more else []
            raise DataError(self.first + more)


def read_column(batch: pa.RecordBatch, name: str) -> list[Any]:
    """A column as Python values."""
    return read_values(batch.column(name), batch.schema.field(name))


def read_values(array: pa.Array, field: pa.Field) -> list[Any]:
    """The values of a column as Python has them, with JSON parsed."""
    try:
        values: list[Any] = array.to_pylist()
    except ValueError as error:  # such as objects of which two fields have one name
        raise DataError(f"the column {field.name!r} cannot be read: {error}") from None
    return [None if text is None else identity.decode(text) for text in values] if tables.is_json(field) else values


def read_rows(source: DataSource) -> Iterator[tuple[dict[str, Any], str]]:
    """Each row as Python values, with its place."""
    number = 0
    for batch in source.batches():
        names = batch.schema.names
        for cells in zip(*(read_column(batch, name) for name in names), strict=True):
            yield dict(zip(names, cells, strict=True)), source.where(number)
            number += 1


def missing_column(name: str, columns: Sequence[str]) -> str:
    """The message that there is no such column, with the nearest name."""
    if is_undivided(columns):
        return f"no column is called {name!r}; {list_columns(columns)}"
    more = f" and {len(columns) - _MAX_NAMES} more" if len(columns) > _MAX_NAMES else ""
    return f"no column is called {name!r}{nearest(name, columns)}; there are {', '.join(columns[:_MAX_NAMES])}{more}"


def list_columns(columns: Sequence[str]) -> str:
    """Which columns there are, for a message that one is missing."""
    if is_undivided(columns):
        return f"there is one column, {columns[0]!r}; another delimiter may be meant"
    return f"the columns are {', '.join(columns)}"


def is_undivided(columns: Sequence[str]) -> bool:
    """Whether the only column has a name like a line of several, as of a file that was read by another delimiter."""
    return len(columns) == 1 and any(sign in columns[0] for sign in ",;\t|")


_MAX_NAMES: Final = 20
