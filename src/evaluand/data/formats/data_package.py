"""Data Packages and their Table Schemas (frictionless standards 1 and 2): one resource, whose files are local.

Types, missing values, dialects, encodings, the primary key and checksums are read; constraints are checked. A type that
Arrow lacks is read as text with a note. The property `evaluand:role` of a field, which evaluand writes, is its role.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from evaluand.core.errors import DataError, kind_of, warn
from evaluand.data.files import SourceFile, Spool, kind_of_name
from evaluand.data.formats.descriptions import (
    ROLE,
    Column,
    Description,
    check_digest,
    choose_part,
    find_file,
    inline_rows,
    listed,
    objects_in,
    read_declared,
    read_roles,
    texts_in,
)
from evaluand.data.formats.json_rows import read_json
from evaluand.data.source import DataNote, DataSource, Reading
from evaluand.data.sources import from_rows, open_files


class DataPackage(Description):
    """A Data Package; `datapackage.json#name` chooses a resource."""

    kind = "datapackage"
    noun = "Data Package"

    def open_part(self, value: Mapping[str, Any], name: str, folder: Path, part: str | None) -> DataSource:
        resources = listed(value.get("resources"))
        named = {str(resource.get("name")): resource for resource in resources if isinstance(resource, dict)}
        resource = choose_part(named, part, name, "resource")
        name = f"{name}: the resource {resource.get('name')!r}"
        schema = _read_object(resource.get("schema"), folder, f"{name}: its schema")
        fields = objects_in(schema.get("fields", []), f"{name}: fields")
        for number, field in enumerate(fields):
            if not isinstance(field.get("name"), str):
                raise DataError(f"{name}: fields[{number}] has no name; give it that of a column")
        source = _open_resource(resource, folder, name)
        columns = _columns(schema, fields, source, name)
        keys = texts_in(schema.get("primaryKey") or [], f"{name}: primaryKey")
        written = {field["name"]: str(field.get(ROLE) or "") for field in fields}
        return read_declared(source, columns, read_roles(written, keys, [], name), name)


def _read_object(value: Any, folder: Path, what: str) -> Mapping[str, Any]:
    """A part of a resource, inline or in a file; empty without one."""
    if isinstance(value, str):
        value = read_json(SourceFile.open(find_file(folder, value, what)))
    if not isinstance(value or {}, dict):
        raise DataError(f"{what} must be an object, not {kind_of(value)}")
    return value or {}


# Files


def _open_resource(resource: Mapping[str, Any], folder: Path, name: str) -> DataSource:
    if resource.get("data") is not None:
        return from_rows(inline_rows(resource["data"], f"{name}: data"), f"{name}, data")
    places = listed(resource.get("path"))
    if not places or not all(isinstance(place, str) for place in places):
        raise DataError(f"{name} has neither a path nor data")
    paths = [find_file(folder, place, f"{name}: its file") for place in places]
    if resource.get("hash") and len(paths) == 1:
        algorithm, _, digest = str(resource["hash"]).rpartition(":")
        check_digest(paths[0], algorithm or "md5", digest, name)
    dialect = _read_object(resource.get("dialect"), folder, f"{name}: its dialect")
    for key, value in dialect.items():
        if key != "delimiter" and key not in _IGNORED and value not in (_DIALECT.get(key), None, False, "", []):
            raise DataError(f"{name}: its dialect has {key}: {value!r}, which cannot be read; convert the file")
    kind = str(resource.get("format") or kind_of_name(paths[0])).lower()
    files = [replace(SourceFile.open(path), kind=kind) for path in paths]
    if kind in ("csv", "tsv", "json", "jsonl", "ndjson"):
        files = [_transcode(file, resource) for file in files]
    delimiter = dialect.get("delimiter", "," if kind == "csv" else None)
    reading = Reading(str(delimiter) if delimiter is not None and kind in ("csv", "tsv") else None)
    return open_files(str(paths[0]) if len(paths) == 1 else name, files, None, reading)


_DIALECT: Final[Mapping[str, Any]] = {
    "quoteChar": '"',
    "quote": '"',
    "escapeChar": '"',
    "header": True,
    "headerRows": [1],
}
_IGNORED: Final = {
    "$schema",
    "caseSensitiveHeader",
    "csvddfVersion",
    "doubleQuote",
    "lineTerminator",
    "profile",
    "type",
}


def _transcode(file: SourceFile, resource: Mapping[str, Any]) -> SourceFile:
    """A file in UTF-8, if the resource declares another encoding."""
    encoding = str(resource.get("encoding") or "utf-8")
    if encoding.lower().replace("_", "-") in ("utf-8", "utf8", "utf-8-sig", "ascii", "us-ascii"):
        return file
    spool = Spool()
    try:
        with file.path.open(encoding=encoding, newline="") as source, spool.path.open("w", newline="") as target:
            while block := source.read(1 << 20):
                target.write(block)
    except (LookupError, UnicodeDecodeError) as error:
        raise DataError(f"{file.name}: the declared encoding {encoding!r} does not fit: {error}") from None
    return replace(file, path=spool.path, spool=spool)


# Columns


_TYPES: Final[Mapping[str, pa.DataType]] = {
    "string": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "datetime": pa.timestamp("us"),
    "year": pa.int64(),
}
_UNTYPED: Final = ("any", "object", "array")


def _columns(
    schema: Mapping[str, Any], fields: Sequence[Mapping[str, Any]], source: DataSource, name: str
) -> list[Column]:
    """The columns that the schema declares, or those of the file without a schema."""
    rows = source.schema
    if not fields:
        return [Column(n, n, None if source.texts is None else rows.field(n).type) for n in rows.names]
    kinds = [(each["name"], str(each.get("type") or "any")) for each in fields]
    as_text = [f"{field} ({kind}) is read as text" for field, kind in kinds if kind not in (*_TYPES, *_UNTYPED)]
    if as_text:
        warn(f"{name}: {'; '.join(as_text)}", DataNote)
    missing = schema.get("missingValues", [""])
    return [_column(field, missing, source, f"{name}: fields[{number}]", name) for number, field in enumerate(fields)]


def _column(field: Mapping[str, Any], missing: Any, source: DataSource, where: str, table: str) -> Column:
    name, kind = str(field["name"]), str(field.get("type") or "any")
    texts = field.get("missingValues", missing)
    if not isinstance(texts, list):
        place = f"{table}: {name}" if "missingValues" in field else table
        raise DataError(f"{place}: missingValues must be a list of texts, not {kind_of(texts)}")
    constraints = field.get("constraints") or {}
    if not isinstance(constraints, dict):
        raise DataError(f"{where}: constraints must be an object, not {kind_of(constraints)}")
    column = Column(
        name,
        name,
        _TYPES.get(kind, pa.string()),
        _parser(kind, field, where),
        frozenset(str(text.get("value") if isinstance(text, Mapping) else text) for text in texts),
        constraints=constraints,
    )
    if kind in ("object", "array"):
        return replace(column, type=None, is_json=True)
    if kind == "datetime" and _has_zone(source, name, column.missing):
        return replace(column, type=pa.timestamp("us", "UTC"))
    return column


def _has_zone(source: DataSource, name: str, missing: frozenset[str]) -> bool:
    """Whether the first time of a column has a zone, as all of them then must."""
    rows = source.texts() if source.texts is not None else source
    if name not in rows.schema.names or not pa.types.is_string(rows.schema.field(name).type):
        return False
    texts = (text for batch in rows.batches() for text in batch.column(name).to_pylist())
    first = next((text for text in texts if text is not None and text not in missing), "")
    return re.search(r"(Z|[+-]\d\d:?\d\d)$", first) is not None


def _parser(kind: str, field: Mapping[str, Any], where: str) -> Callable[[str], Any] | None:
    """What reads a cell of a type; None if Arrow's own conversion does."""
    form = str(field.get("format") or "default")
    if kind == "boolean":
        yes = texts_in(field.get("trueValues", ["true", "True", "TRUE", "1"]), f"{where}: trueValues")
        no = texts_in(field.get("falseValues", ["false", "False", "FALSE", "0"]), f"{where}: falseValues")
        return partial(_parse_choice, {**dict.fromkeys(yes, True), **dict.fromkeys(no, False)})
    if kind in ("integer", "number", "year"):
        marks = {key: str(field[key]) for key in ("groupChar", "decimalChar") if field.get(key)}
        bare = field.get("bareNumber", True)
        return partial(_parse_number, int if kind != "number" else float, marks, bare)
    if kind in ("date", "datetime"):
        return partial(_parse_time, dt.date if kind == "date" else dt.datetime, form)
    return None


def _parse_choice(choices: Mapping[str, bool], text: str) -> bool:
    if text not in choices:
        raise ValueError(text)
    return choices[text]


_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|NaN|-?INF")


def _parse_number(kind: Callable[[str], Any], marks: Mapping[str, str], bare: bool, text: str) -> Any:
    if not bare:
        text = re.sub(r"^[^\d+\-.]+|[^\d.]+$", "", text)
    text = text.replace(marks.get("groupChar", "") or "\0", "").replace(marks.get("decimalChar", "."), ".")
    if not _NUMBER.fullmatch(text):
        raise ValueError(text)
    return kind(text)


def _parse_time(kind: type[dt.date], form: str, text: str) -> dt.date:
    if form in ("default", "any"):
        return kind.fromisoformat(text)
    value = dt.datetime.strptime(text, form)
    return value if kind is dt.datetime else value.date()
