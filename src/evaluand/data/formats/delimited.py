"""CSV and TSV: cells are read as text, then each column gets the type that fits all of its cells.

Numbers with leading zeros stay text, since they are codes. Columns without a name and names that occur twice are
renamed with a note. Cells of a CSV file may be separated by a semicolon, tab or bar if that divides every row alike.
"""

from __future__ import annotations

import csv
import io
import json
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import islice
from typing import Any, ClassVar, Final

import pyarrow as pa

from evaluand.core.errors import plural, warn
from evaluand.core.files.csv import check_names, check_quotes, header_cells, mapped, records_in
from evaluand.data.columns import compare_names, rename_columns
from evaluand.data.files import SourceFile
from evaluand.data.source import MAX_FAULTS, DataNote, DataSource, Faults, FileFormat, Reading
from evaluand.data.text import check_utf8, long_row
from evaluand.data.typed_columns import TextForm
from evaluand.store.tables import BATCH_ROWS


class Csv(FileFormat):
    """Cells separated by a comma, or by the delimiter that the user chose."""

    kind = "csv"
    has_delimiter = True
    delimiter: ClassVar[str] = ","
    others: ClassVar[str] = ";\t|"

    def open(self, files: Sequence[SourceFile], reading: Reading) -> Sequence[DataSource]:
        tables = [_Table.read(file, self.delimiter, self.others, reading) for file in files]
        names = tables[0].header
        faults = Faults()
        for table in tables[1:]:
            if message := compare_names(table.header, names, tables[0].file.name):
                faults.add(table.file.name, message)
        faults.check()
        texts = {name: TextForm(is_text=True) for name in names}
        forms = {name: TextForm(is_text=reading.texts_only or name in reading.types) for name in names}
        for table in tables:
            for batch in table.texts(faults):
                for name, form in forms.items():
                    form.see(batch.column(name))
        faults.check()
        if reading.texts_only:
            return [table.typed(texts) for table in tables]
        notes = {name: note for name, form in forms.items() if (note := form.note(name))}
        return [replace(table.typed(forms), notes=notes, texts=partial(_Table.typed, table, texts)) for table in tables]


class Tsv(Csv):
    """Cells separated by tabs."""

    kind = "tsv"
    delimiter = "\t"


@dataclass(frozen=True, eq=False)
class _Table:
    """One file: its header, and where its rows begin.

    Attributes:
        body: the position of the first byte after the header.
        is_empty: whether there are no rows.
        where: the place of a row, from 0.
    """

    file: SourceFile
    delimiter: str
    header: list[str]
    body: int
    is_empty: bool
    where: Callable[[int], str]
    texts_only: bool

    @classmethod
    def read(cls, file: SourceFile, default: str, others: str, reading: Reading) -> _Table:
        """The table of a file, with the user's delimiter, if any, or the one that its rows show.

        Raises:
            DataError: the header cannot be read, or a quoted cell is not closed.
        """
        check_utf8(file, _MOST_BYTES)
        text = mapped(file.path)
        delimiter = reading.delimiter or default
        if reading.delimiter is None and not reading.texts_only:
            delimiter = _find_delimiter(text, file, default, others)
        records = records_in(text, delimiter)
        line, start, end = next(records, (1, 0, 0))
        place = f"{file.name}:{line}"
        cells = header_cells(
            text[start:end].decode(),
            place,
            delimiter,
            declared=reading.delimiter is not None,
            fixed=reading.texts_only,
        )
        header = check_names(cells, place) if reading.texts_only else rename_columns(cells, place)
        check_quotes(text, file.name, delimiter)
        is_empty = next(records, None) is None  # Arrow rejects a header without rows

        @cache
        def lines() -> array[int]:  # in which a row begins, which may span several; blank lines are not rows
            return array("q", (line for line, _, _ in records_in(mapped(file.path), delimiter)))

        return cls(
            file, delimiter, header, end, is_empty, lambda row: f"{file.name}:{lines()[row + 1]}", reading.texts_only
        )

    def typed(self, forms: Mapping[str, TextForm]) -> DataSource:
        """The rows in the types of their forms."""
        schema = pa.schema([pa.field(name, form.type) for name, form in forms.items()])

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in self.texts(Faults()):
                columns = [form.convert(batch.column(name)) for name, form in forms.items()]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)

        return DataSource(self.file.name, schema, batches, self.where)

    def texts(self, faults: Faults) -> Iterator[pa.RecordBatch]:
        """The cells as text; rows of the wrong length are left out and reported after the last batch."""
        if self.is_empty:
            return
        from pyarrow import csv as arrow_csv

        broken: list[Any] = []

        def skip(row: Any) -> str:  # an error raised here is only printed
            broken.append(row)
            return "skip" if len(broken) <= MAX_FAULTS else "error"

        try:
            with pa.OSFile(str(self.file.path)) as stream:
                stream.seek(self.body)
                with arrow_csv.open_csv(
                    stream,
                    read_options=arrow_csv.ReadOptions(
                        use_threads=False, block_size=_MOST_BYTES, column_names=self.header
                    ),
                    parse_options=arrow_csv.ParseOptions(
                        delimiter=self.delimiter, newlines_in_values=True, invalid_row_handler=skip
                    ),
                    convert_options=arrow_csv.ConvertOptions(
                        column_types=dict.fromkeys(self.header, pa.string()),
                        strings_can_be_null=True,
                        quoted_strings_can_be_null=False,
                        null_values=[""],
                    ),
                ) as reader:
                    for batch in reader:
                        for start in range(0, batch.num_rows, BATCH_ROWS):
                            yield batch.slice(start, BATCH_ROWS)
        except pa.ArrowInvalid:
            if len(broken) <= MAX_FAULTS:
                records = records_in(mapped(self.file.path), self.delimiter)
                for line in (line for line, start, end in records if end - start > _MOST_BYTES):
                    raise long_row(f"{self.file.name}:{line}", _MOST_BYTES) from None
                raise
            faults.add(self.file.name, f"over {MAX_FAULTS:,} rows have another number of values than the header")
        for row in broken:
            where = self.where(row.number - 1)
            if not self.texts_only:
                where = _cell_place(where, row.text, self.delimiter, row.expected_columns)
            message = f"{plural(row.actual_columns, 'value')} where the header names {row.expected_columns}"
            faults.add(where, message, "ragged_row")


def _cell_place(where: str, text: str, delimiter: str, number: int) -> str:
    """file:line:column of the cell with this number (from 0) in a row, or of the end of the row."""
    place, cells, quoted = 0, 0, False
    while place < len(text) and cells < number:
        if text[place] == '"' and (quoted or place == 0 or text[place - 1] == delimiter):
            quoted = not quoted
        cells += text[place] == delimiter and not quoted
        place += 1
    name, _, line = where.rpartition(":")
    before = text[:place].replace("\r\n", "\n").replace("\r", "\n")
    return f"{name}:{int(line) + before.count(chr(10))}:{len(before) - before.rfind(chr(10))}"


_MOST_BYTES: Final = 8 << 20  # of a row; Arrow reads so many at once

# The delimiter

_SAMPLE: Final = 100


def _find_delimiter(text: Any, file: SourceFile, default: str, others: str) -> str:
    """The default delimiter, or another one that divides the header and the first rows into as many cells each."""
    cells = _cells(text, default)
    if not cells or len(cells[0]) > 1:
        return default
    for other in others:
        rows = _cells(text, other) if other in cells[0][0] else []
        if len(rows) > 1 and len({len(row) for row in rows}) == 1:
            warn(
                f"{file.name}: the cells are separated by {json.dumps(other)}; set delimiter: {json.dumps(default)} if"
                " it is one column",
                DataNote,
            )
            return other
    return default


def _cells(text: Any, delimiter: str) -> list[list[str]]:
    """The cells of the first records."""
    rows = islice(records_in(text, delimiter), _SAMPLE)
    try:
        return [next(csv.reader(io.StringIO(text[a:b].decode(), newline=""), delimiter=delimiter)) for _, a, b in rows]
    except csv.Error:
        return []
