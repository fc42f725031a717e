"""Where rows come from: files, folders and globs of files, standard input, tables in memory and Python rows.

`open_file` opens everything that has a path, `open_data` also what other libraries hold in memory. Text is UTF-8, with
or without a byte order mark.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from evaluand.core import identity, registry
from evaluand.core.errors import DataError, SpecError, kind_of
from evaluand.data.columns import plain_table, rename_columns
from evaluand.data.files import (
    ARCHIVES,
    STDIN,
    SourceFile,
    file_states,
    is_glob,
    kind_of_content,
    kind_of_name,
    list_files,
)
from evaluand.data.records import read_objects
from evaluand.data.source import (
    MAX_FAULTS as MAX_FAULTS,
    DataNote as DataNote,
    DataSource as DataSource,
    Faults as Faults,
    FileFormat as FileFormat,
    Reading as Reading,
    missing_column as missing_column,
    read_column as read_column,
)
from evaluand.data.text import check_text, check_utf8
from evaluand.store.tables import BATCH_ROWS


def format_names() -> list[str]:
    """The suffixes of the files that can be read."""
    return registry.names("formats")


def open_file(
    path: str | Path, format: str | None = None, delimiter: str | None = None, types: Mapping[str, str] | None = None
) -> DataSource:
    """A source that reads a file, the files of a folder or a glob as one table, or standard input.

    Args:
        path: a file; a folder or a pattern such as `parts/*.parquet`, whose files are read in the order of their
            paths; or `-`. Files may be compressed by gzip, zstd, xz or bzip2. `file#name` chooses a part of the file,
            such as a sheet.
        format: one of `format_names()`; by default it follows from the suffix.
        delimiter: the delimiter of a CSV file; by default a comma, or a tab in a TSV file.
        types: column of a CSV file → its declared type, see `type_column`; its cells are left as text.

    Raises:
        DataError: there is no such file, or rows break the format; lists every fault with its row.
        SpecError: the format is not one of `format_names()`, or takes no such delimiter.
    """
    text, part = _split_part(os.fspath(path))
    reading = Reading(delimiter, part, types=types or {})
    return open_files("<stdin>" if text == STDIN else text, _find_files(text), format, reading)


def open_files(
    name: str, files: Sequence[SourceFile], format: str | None = None, reading: Reading | None = None
) -> DataSource:
    """A source that reads files as one table.

    Args:
        name: the name of all of them in messages.
        format: as in `open_file`.

    Raises:
        DataError: rows break the format.
        SpecError: the format is unknown, or files have several; or the format takes no such delimiter or part.
    """
    reading = reading or Reading()
    kind = _choose_kind(name, files, format)
    chosen: FileFormat = registry.find("formats", kind)()
    delimiter: Any = reading.delimiter
    if delimiter is not None and not chosen.has_delimiter:
        raise SpecError(f"delimiter is for CSV files; {kind} has none")
    if delimiter is not None and not _is_delimiter(delimiter):
        raise SpecError(f'delimiter must be one character such as ";", not {delimiter!r}')
    if reading.part is not None and not chosen.has_parts:
        raise SpecError(f"{name}#{reading.part}: a {kind} file has no parts that #{reading.part} could choose")
    return _open_checked(name, files, chosen, reading)


def open_texts(path: str | Path) -> DataSource:
    """A source that reads every column of a CSV file as text, for files whose types are declared elsewhere."""
    path = Path(path)
    if not os.path.isfile(path):
        raise DataError(f"{path}: no such file")
    return _open_checked(
        str(path), [SourceFile.open(path)], registry.find("formats", "csv")(), Reading(texts_only=True)
    )


def digest_of_files(path: str | Path) -> str:
    """The digest of the bytes of a file, or of all files behind a path of `open_file`, as 32 hexadecimal digits.

    Raises:
        DataError: there is no such file.
    """
    text, part = _split_part(os.fspath(path))
    if os.path.isfile(text) and part is None:
        return identity.digest_of_file(Path(text))
    files = [file.origin or file.path for file in _find_files(text)]
    return identity.digest([part, [[file.name, identity.digest_of_file(file)] for file in files]]).hex()


def open_data(data: Any, name: str = "rows") -> DataSource:
    """A source over whatever holds rows.

    Args:
        data: a path as in `open_file`; anything with `__arrow_c_stream__` (polars, DuckDB, pandas, Hugging Face
            datasets); an Arrow table, batch, reader or dataset; a frame with `to_arrow`; a pandas frame; or rows as a
            list of mappings, or as a mapping of columns.
        name: its name in messages.

    Raises:
        DataError: rows are invalid; lists every fault with its place.
        SpecError: this has no rows.

    Example:
        >>> open_data({"input": ["a", "b"], "x": [1, 2]}).schema.names
        ['input', 'x']
    """
    if isinstance(data, DataSource):
        return data
    if isinstance(data, str | os.PathLike):
        return open_file(os.fspath(data))
    if is_pandas(data):
        return from_pandas(data, name)
    if isinstance(data, Mapping):
        return from_rows(_rows_of_columns(data), name)
    if (table := read_table(data)) is not None:
        return from_table(table, name)
    if isinstance(data, bytes | type) or not isinstance(data, Iterable):
        raise SpecError(f"{name}: give a path, a table or frame, or a list of mappings, not {kind_of(data)}")
    return from_rows(data, name)


def from_rows(records: Iterable[Mapping[str, Any]], name: str = "rows") -> DataSource:
    """A source over Python mappings."""
    if isinstance(records, str | bytes | Mapping) or not isinstance(records, Iterable):
        raise SpecError(f"{name}: give a list of mappings, one for each row, not {kind_of(records)}")
    rows = records if isinstance(records, Sequence) else list(records)
    return from_objects(name, lambda: enumerate(rows), lambda row: f"{name}[{row}]")


def from_objects(
    name: str, records: Callable[[], Iterable[tuple[int, Any]]], where: Callable[[int], str], *, is_json: bool = False
) -> DataSource:
    """A source over objects.

    Args:
        records: starts a pass over pairs of a line, from 0, and its object.
        where: the place of a line, for messages.
        is_json: whether the objects are JSON, in which times are text.
    """
    [source] = read_objects([records], lambda _, line: where(line), is_json=is_json)
    return replace(source, name=name)


def from_table(table: pa.Table, name: str = "table") -> DataSource:
    """A source over an Arrow table, in plain types and with unique names."""
    table = plain_table(table, name)
    return DataSource(
        name, table.schema, lambda: iter(table.to_batches(BATCH_ROWS)), lambda row: f"{name}[{row}]", len(table)
    )


# Files


def _split_part(path: str) -> tuple[str, str | None]:
    """The path of a file, and the name of a part of it after `#`; a file may also have a `#` in its own name."""
    file, mark, part = path.rpartition("#")
    return (file, part) if mark and not os.path.exists(path) and os.path.isfile(file) else (path, None)


def names_files(path: str) -> bool:
    """Whether a text is the path of a file, a part of one, a pattern, or a folder that ends in a slash."""
    file, _ = _split_part(path)
    return os.path.isfile(file) or is_glob(path) or (path.endswith(os.sep) and os.path.isdir(path))


def _find_files(path: str) -> list[SourceFile]:
    if path == STDIN:
        return [SourceFile.of_pipe()]
    if os.path.isfile(path):
        return [SourceFile.open(Path(path))]
    if os.path.exists(path) and not os.path.isdir(path):  # a pipe, such as that of a process substitution
        return [SourceFile.of_pipe(path)]
    if not is_glob(path) and not os.path.isdir(path):
        raise DataError(f"{path}: no such file")
    found = list_files(path)
    if not found:
        raise DataError(f"{path}: {'no file matches' if is_glob(path) else 'the folder has no files'}")
    return [SourceFile.open(file, partition) for file, partition in found]


_DESCRIPTIONS: Final = ("datapackage.json", "croissant.json")


def _choose_kind(path: str, files: Sequence[SourceFile], format: str | None) -> str:
    known = format_names()
    kinds = [format.lower()] if format else sorted({_kind_of_file(file) for file in files})
    unknown = next((kind for kind in kinds if kind not in known), None)
    if unknown in ARCHIVES and not format:
        raise SpecError(f"{path}: is an archive; unpack it, and name the file with the rows")
    if unknown is not None:
        where = path if format else next(file.name for file in files if _kind_of_file(file) == unknown)
        raise SpecError(f"{where}: unknown format {unknown!r}; give format as one of {', '.join(known)}")
    description = next((file.name for file in files if Path(file.name).name in _DESCRIPTIONS), None)
    if len(kinds) > 1 and description is not None:
        raise SpecError(f"{path}: the folder has a description of its files; give {description}")
    if len(kinds) > 1:
        raise SpecError(f"{path}: the files have several formats: {', '.join(kinds)}; give a pattern such as *.csv")
    return kinds[0]


def _kind_of_file(file: SourceFile) -> str:
    """The format of a file by its name, or by its content for standard input."""
    if file.kind is not None:
        return file.kind
    return kind_of_content(file.path) if file.origin is None else kind_of_name(file.origin)


def _is_delimiter(text: Any) -> bool:
    return isinstance(text, str) and len(text) == 1 and text.isascii() and text not in '"\r\n'


def _open_checked(name: str, files: Sequence[SourceFile], chosen: FileFormat, reading: Reading) -> DataSource:
    """A source whose files are valid and which refuses to be read after they have changed."""
    if chosen.is_text:
        for file in files:
            check_text(file)
    before = file_states(files)
    try:
        parts = chosen.open(files, reading)
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        for file in files if chosen.is_text else ():
            check_utf8(file)
        raise DataError(f"{name}: {error}") from error
    except RecursionError:
        raise DataError(f"{name}: has values that are nested too deeply to be read; make them flatter") from None
    source = _concatenate(name, files, parts)

    def check() -> None:
        for file, old, now in zip(files, before, file_states(files), strict=True):
            if now != old:
                raise DataError(f"{file.name}: the file has changed since it was opened; open it again")

    def batches() -> Iterator[pa.RecordBatch]:
        check()
        for batch in source.batches():
            check()
            yield batch

    def objects() -> Iterator[Any]:
        check()
        yield from source.objects() if source.objects else ()

    return replace(source, batches=batches, check=check, objects=objects if source.objects else None)


def _concatenate(name: str, files: Sequence[SourceFile], parts: Sequence[DataSource]) -> DataSource:
    """The rows of all parts, one after the other, with the columns that the folders of their files name."""
    first = parts[0]
    columns = _partition_columns(files, first.schema)
    if len(parts) == 1 and not columns:
        return replace(first, name=name)
    schema = pa.schema([*first.schema, *(field for field, _ in columns)])

    def batches() -> Iterator[pa.RecordBatch]:
        for number, part in enumerate(parts):
            for batch in part.batches():
                added = [pa.repeat(pa.scalar(values[number], f.type), batch.num_rows) for f, values in columns]
                yield pa.RecordBatch.from_arrays([*batch.columns, *added], schema=schema) if added else batch

    def objects() -> Iterator[Any]:
        for number, part in enumerate(parts):
            added = {field.name: values[number] for field, values in columns}
            for row in part.objects() if part.objects else ():
                yield {**row, **added} if added and isinstance(row, Mapping) else row

    def count(part: DataSource) -> int:
        return sum(batch.num_rows for batch in part.batches()) if part.n_rows is None else part.n_rows

    @cache
    def ends() -> list[int]:
        return [*accumulate(map(count, parts))]

    def where(row: int) -> str:
        number = bisect_right(ends(), row)
        return parts[number].where(row - (ends()[number - 1] if number else 0))

    return replace(
        first,
        name=name,
        schema=schema,
        batches=batches,
        where=where,
        n_rows=None if first.n_rows is None else ends()[-1],
        objects=objects if first.objects else None,
        texts=first.texts and (lambda: _concatenate(name, files, [part.texts() for part in parts if part.texts])),
    )


def _partition_columns(files: Sequence[SourceFile], schema: pa.Schema) -> list[tuple[pa.Field, list[Any]]]:
    """The columns in the names of folders (`year=2026`) that are not in the files, with the value of each file."""
    names = dict.fromkeys(name for file in files for name, _ in file.partition if name not in schema.names)
    columns = []
    for name in names:
        lacking = next((file for file in files if name not in dict(file.partition)), None)
        if lacking is not None:
            raise DataError(f"{lacking.name}: no folder names the column {name!r}, as {name}=… does for other files")
        texts = [dict(file.partition)[name] for file in files]
        whole = all(text is None or _INTEGER.fullmatch(text) for text in texts)
        values = [None if text is None else int(text) if whole else text for text in texts]
        known = any(text is not None for text in texts)
        columns.append((pa.field(name, pa.int64() if whole and known else pa.string()), values))
    return columns


_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,17}")


# Tables in memory


def read_table(data: Any) -> pa.Table | None:
    """An Arrow table with the rows of an object of another library; None if it is none.

    Raises:
        DataError: the library cannot give its rows as Arrow.
    """
    if isinstance(data, pa.Table | type):
        return data if isinstance(data, pa.Table) else None
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    for attribute, read in _READERS:
        if not hasattr(data, attribute) or (attribute == "with_format" and not hasattr(data, "__len__")):
            continue
        kind = f"{type(data).__module__.partition('.')[0].lstrip('_')}.{type(data).__name__}"
        if kind == "polars.DataFrame" and (names := [n for n, each in data.schema.items() if str(each) == "Object"]):
            columns = ", ".join(map(repr, names))  # which would give their addresses as values
            raise DataError(f"a {kind} cannot give Python objects as Arrow: {columns}; cast them")
        if attribute == "__arrow_c_stream__" and hasattr(data, "to_frame"):
            raise SpecError(f"a {kind} is one column; give a table, such as its to_frame()")
        try:
            table = read(data)
            return table if isinstance(table, pa.Table) else pa.table(table)
        except Exception as error:  # of another library, which may raise anything
            raise DataError(f"a {kind} cannot give its rows as Arrow: {error}") from error
    return None


_READERS: Final[Sequence[tuple[str, Callable[[Any], Any]]]] = (
    ("collect", lambda data: read_table(data.collect())),  # a lazy frame of polars
    ("__arrow_c_stream__", lambda data: data),
    ("__arrow_c_array__", lambda data: pa.Table.from_batches([pa.record_batch(data)])),
    ("to_table", lambda data: data.to_table()),  # a dataset or scanner of Arrow
    ("to_arrow_table", lambda data: data.to_arrow_table()),  # what a connection of DuckDB has executed
    ("to_arrow", lambda data: data.to_arrow()),
    ("with_format", lambda data: data.with_format("arrow")[:]),  # a dataset of Hugging Face
)


def is_pandas(data: Any) -> bool:
    """Whether data is a pandas frame, without importing pandas."""
    return hasattr(data, "astype") and hasattr(data, "columns") and hasattr(data, "index")


def from_pandas(frame: Any, name: str = "frame") -> DataSource:
    """A source over a pandas frame without its index; NaN, NaT and NA are missing values."""
    names = [label if isinstance(label, str) else str(label) for label in frame.columns]
    frame = frame.set_axis(rename_columns(names, name), axis=1)
    columns = (frame[label] for label in frame.columns if frame[label].dtype == object)
    if not any(
        isinstance(value, list | tuple | Mapping) for column in columns for value in column
    ):  # Arrow merges keys
        try:
            return from_table(pa.Table.from_pandas(frame, preserve_index=False), name)
        except (pa.ArrowException, OverflowError):  # mixed types or large integers, which rows support
            pass
    objects = frame.astype(object)
    return from_rows(objects.where(objects.notna(), None).to_dict("records"), name)


def _rows_of_columns(columns: Mapping[Any, Any]) -> list[dict[str, Any]]:
    """Rows of a mapping column → values."""
    for name, values in columns.items():
        if hasattr(values, "column_names") or is_pandas(values):
            raise SpecError(f"this is a mapping of tables; choose one, such as data[{name!r}]")
        if isinstance(values, str | bytes | Mapping) or not hasattr(values, "__len__"):
            raise SpecError(f"a mapping of columns must hold lists; {name!r} is {kind_of(values)}")
    lists = {name: _as_list(values) for name, values in columns.items()}
    lengths = {name: len(values) for name, values in lists.items()}
    if len(set(lengths.values())) > 1:
        sizes = ", ".join(f"{name} has {length:,}" for name, length in lengths.items())
        raise DataError(f"the columns have different lengths: {sizes}")
    return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]


def _as_list(values: Any) -> list[Any]:
    """The values of a column as plain Python values."""
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(values, method):
            return list(getattr(values, method)())
    return list(values)
