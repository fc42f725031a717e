"""Data Packages and their Table Schemas (frictionless standards 1 and 2): one resource, whose files are local.

Types, missing values, dialects, encodings, the primary key and checksums are read; constraints are checked. A type that
Arrow lacks is read as text with a note. The property `evaluand:role` of a field, which evaluand writes, is its role.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from evaluand.core.errors import DataError, SpecError, kind_of, nearest, warn
from evaluand.core.selector.patterns import check_pattern, matches
from evaluand.data.files import SourceFile, Spool, kind_of_name
from evaluand.data.formats.declared import (
    ROLE,
    Column,
    check_digest,
    find_file,
    objects_in,
    read_declared,
    texts_in,
    written_roles,
)
from evaluand.data.formats.json_rows import read_json
from evaluand.data.source import DataNote, DataSource, Faults, FileFormat, OpenFiles, Reading
from evaluand.data.sources import from_rows, open_files


class DataPackage(FileFormat):
    """A Data Package; `datapackage.json#name` chooses a resource."""

    kind = "datapackage"
    has_parts = True

    def open(self, files: Sequence[SourceFile], reading: Reading) -> OpenFiles:
        file = files[0]
        value = read_json(file)
        if len(files) > 1 or not isinstance(value, dict) or file.origin is None:
            raise DataError(f"{file.name}: give one file with a Data Package")
        folder = file.origin.parent
        resource = _resource(file.name, value, reading.part)
        name = f"{file.name}: the resource {resource.get('name')!r}"
        schema = _read_schema(resource.get("schema"), folder, name)
        source = _open_resource(resource, folder, name)
        opened = read_declared(source, _columns(schema, source, name), _roles(schema, name))
        _check_constraints(schema, source, opened, name)
        return opened


def _resource(name: str, value: Mapping[str, Any], part: str | None) -> Mapping[str, Any]:
    """The resource with this name, or the only one."""
    listed = value.get("resources")
    resources = {str(each.get("name")): each for each in listed or () if isinstance(each, dict)}
    if part is not None and part not in resources:
        near = nearest(part, resources)
        raise SpecError(f"{name}: no resource is called {part!r}{near}; there are {', '.join(resources)}")
    if part is not None:
        found: Mapping[str, Any] = resources[part]
        return found
    if not resources:
        raise DataError(f"{name}: the package has no resources")
    if len(resources) > 1:
        first = next(iter(resources))
        raise SpecError(f"{name}: there are the resources {', '.join(resources)}; choose one, as in {name}#{first}")
    return next(iter(resources.values()))


def _read_schema(value: Any, folder: Path, name: str) -> Mapping[str, Any]:
    """The Table Schema of a resource, inline or in a file; empty without one."""
    if isinstance(value, str):
        value = read_json(SourceFile.open(find_file(folder, value, f"{name}: its schema")))
    if value is None:
        return {}
    if not isinstance(value, dict) or not isinstance(value.get("fields"), list):
        raise DataError(f"{name}: the schema has no list of fields")
    for number, field in enumerate(objects_in(value["fields"], f"{name}: fields")):
        _check_field(field, f"{name}: fields[{number}]")
    return value


def _check_field(field: Mapping[str, Any], where: str) -> None:
    """Refuses a field whose parts have other types than the standard says.

    Raises:
        DataError: names the part.
    """
    if not isinstance(field.get("name"), str):
        raise DataError(f"{where} has no name; give it that of a column")
    for key in ("trueValues", "falseValues"):
        texts_in(field.get(key), f"{where}: {key}")
    limits = field.get("constraints") or {}
    if not isinstance(limits, dict):
        raise DataError(f"{where}: constraints must be an object, not {kind_of(limits)}")
    if not isinstance(limits.get("enum", []), list):
        raise DataError(f"{where}: enum must be a list, not {kind_of(limits['enum'])}")
    if any(isinstance(each, list | dict) for each in limits.get("enum", [])):
        raise DataError(f"{where}: enum must be a list of texts, numbers, true or false")
    for key in ("minLength", "maxLength"):
        length = limits.get(key, 0)
        if type(length) is not int and not (type(length) is float and length.is_integer()):
            raise DataError(f"{where}: {key} must be an integer, not {kind_of(length)}")


# Files


def _open_resource(resource: Mapping[str, Any], folder: Path, name: str) -> DataSource:
    data = resource.get("data")
    if data is not None:
        return from_rows(_inline_rows(data, name), f"{name}, data")
    places = resource.get("path")
    places = places if isinstance(places, list) else [places]
    if not places or not all(isinstance(place, str) for place in places):
        raise DataError(f"{name} has neither a path nor data")
    paths = [find_file(folder, place, f"{name}: its file") for place in places]
    if resource.get("hash") and len(paths) == 1:
        algorithm, _, digest = str(resource["hash"]).rpartition(":")
        check_digest(paths[0], algorithm or "md5", digest, name)
    dialect = _read_dialect(resource.get("dialect"), folder, name)
    kind = str(resource.get("format") or kind_of_name(paths[0])).lower()
    is_text = kind in ("csv", "tsv", "json", "jsonl", "ndjson")
    files = [replace(SourceFile.open(path), kind=kind) for path in paths]
    files = [_transcode(file, resource) for file in files] if is_text else files
    reading = Reading(str(dialect["delimiter"]) if kind in ("csv", "tsv") and "delimiter" in dialect else None)
    if kind == "csv" and reading.delimiter is None:
        reading = Reading(",")
    return open_files(str(paths[0]) if len(paths) == 1 else name, files, None, reading)


def _inline_rows(data: Any, name: str) -> list[dict[str, Any]]:
    """The rows that the description itself has: objects, or lists of which the first is the header."""
    if isinstance(data, list) and data and all(isinstance(row, list) for row in data):
        header, *rows = data
        return [dict(zip(map(str, header), row, strict=False)) for row in rows]
    if isinstance(data, list) and all(isinstance(row, dict) for row in data):
        return data
    raise DataError(f"{name}: data must be a list of rows")


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


def _read_dialect(value: Any, folder: Path, name: str) -> Mapping[str, Any]:
    """The dialect of a CSV file.

    Raises:
        DataError: it asks for what cannot be read.
    """
    if isinstance(value, str):
        value = read_json(SourceFile.open(find_file(folder, value, f"{name}: its dialect")))
    if not isinstance(value or {}, dict):
        raise DataError(f"{name}: its dialect must be an object, not {kind_of(value)}")
    for key, each in (value or {}).items():
        if key != "delimiter" and key not in _IGNORED and each not in (_DIALECT.get(key), None, False, "", []):
            raise DataError(f"{name}: its dialect has {key}: {each!r}, which cannot be read; convert the file")
    return value or {}


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
_AS_TEXT: Final = {"time", "yearmonth", "duration", "geopoint", "geojson", "any", "list"}


def _columns(schema: Mapping[str, Any], source: DataSource, name: str) -> list[Column]:
    """The columns that the schema declares, or those of the file without a schema."""
    rows = source.schema
    missing = _missing_values(schema.get("missingValues", [""]), name)
    fields = schema.get("fields", ())
    if not fields:
        return [Column(n, n, None if source.texts is None else rows.field(n).type) for n in rows.names]
    notes: list[str] = []
    columns = [_column(field, missing, source, notes, name) for field in fields]
    if notes:
        warn(f"{name}: {'; '.join(notes)}", DataNote)
    return columns


def _missing_values(values: Any, where: str) -> frozenset[str]:
    if not isinstance(values, list):
        raise DataError(f"{where}: missingValues must be a list of texts, not {kind_of(values)}")
    return frozenset(map(_missing_value, values))


def _missing_value(value: Any) -> str:
    return str(value.get("value")) if isinstance(value, Mapping) else str(value)


def _column(
    field: Mapping[str, Any], missing: frozenset[str], source: DataSource, notes: list[str], where: str
) -> Column:
    name, kind = str(field.get("name")), str(field.get("type") or "any")
    if "missingValues" in field:
        missing = _missing_values(field["missingValues"], f"{where}: {name}")
    if kind in ("object", "array"):
        return Column(name, name, None, None, missing, is_json=True)
    if kind not in _TYPES:
        if kind != "any":
            notes.append(f"{name} ({kind}) is read as text")
        return Column(name, name, pa.string(), None, missing)
    zone = "UTC" if kind == "datetime" and _has_zone(source, name, missing) else None
    arrow = pa.timestamp("us", zone) if zone else _TYPES[kind]
    return Column(name, name, arrow, _parser(kind, field), missing)


def _has_zone(source: DataSource, name: str, missing: frozenset[str]) -> bool:
    """Whether the first time of a column has a zone, as all of them then must."""
    rows = source.texts() if source.texts is not None else source
    if name not in rows.schema.names or not pa.types.is_string(rows.schema.field(name).type):
        return False
    texts = (text for batch in rows.batches() for text in batch.column(name).to_pylist())
    first = next((text for text in texts if text is not None and text not in missing), "")
    return re.search(r"(Z|[+-]\d\d:?\d\d)$", first) is not None


def _parser(kind: str, field: Mapping[str, Any]) -> Callable[[str], Any] | None:
    """What reads a cell of a type; None if Arrow's own conversion does."""
    form = str(field.get("format") or "default")
    if kind == "boolean":
        yes = texts_in(field.get("trueValues", ["true", "True", "TRUE", "1"]), "trueValues")
        no = texts_in(field.get("falseValues", ["false", "False", "FALSE", "0"]), "falseValues")
        return partial(_parse_choice, {**dict.fromkeys(yes, True), **dict.fromkeys(no, False)})
    if kind in ("integer", "number", "year"):
        marks = {key: str(field[key]) for key in ("groupChar", "decimalChar") if field.get(key)}
        bare = field.get("bareNumber", True)
        return partial(_parse_number, int if kind != "number" else float, marks, bare)
    if kind == "date":
        return partial(_parse_time, dt.date.fromisoformat if form in ("default", "any") else None, form, date=True)
    if kind == "datetime":
        return partial(_parse_time, dt.datetime.fromisoformat if form in ("default", "any") else None, form)
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


def _parse_time(read: Callable[[str], Any] | None, form: str, text: str, *, date: bool = False) -> Any:
    value = dt.datetime.strptime(text, form) if read is None else read(text)
    return value.date() if date and isinstance(value, dt.datetime) else value


def _roles(schema: Mapping[str, Any], name: str) -> list[tuple[str, Any]]:
    """The roles that the fields have, and the id that a primary key of one field is."""
    roles = written_roles([(f["name"], str(f.get(ROLE) or "")) for f in schema.get("fields", ())])
    keys = texts_in(schema.get("primaryKey") or [], f"{name}: primaryKey")
    if len(keys) > 1:
        warn(f"{name}: the key {', '.join(keys)} has several fields, so that no column is the id", DataNote)
    known = any(role == "id" for role, _ in roles)
    return roles if known or len(keys) != 1 else [*roles, ("id", keys[0])]


# Constraints


def _check_constraints(schema: Mapping[str, Any], source: DataSource, opened: OpenFiles, where: str) -> None:
    """Report every cell that breaks a constraint of its field.

    Raises:
        DataError: lists every fault with its row.
    """
    checks = {field["name"]: _checks(field, where) for field in schema.get("fields", ()) if field.get("constraints")}
    checks = {name: each for name, each in checks.items() if name in opened.schema.names}
    seen: dict[str, set[Any]] = {name: set() for name, each in checks.items() if each.unique}
    faults, start = Faults(), 0
    for batch in opened.batches(0) if checks else ():
        for name, check in checks.items():
            for row, value in enumerate(batch.column(name).to_pylist()):
                if message := check.fault(value, seen.get(name)):
                    faults.add(f"{source.where(start + row)}:{name}", message)
        start += batch.num_rows
    faults.check()


@dataclass(frozen=True)
class _Checks:
    """The constraints of a field."""

    required: bool
    unique: bool
    tests: Sequence[tuple[str, Callable[[Any], bool]]]

    def fault(self, value: Any, seen: set[Any] | None) -> str:
        """What is wrong with a value; empty if nothing is."""
        if value is None:
            return "is missing, but required" if self.required else ""
        if seen is not None:
            if value in seen:
                return f"{str(value)[:60]!r} occurs twice, but must be unique"
            seen.add(value)
        for text, test in self.tests:
            try:
                if not test(value):
                    return f"{str(value)[:60]!r} is not {text}"
            except TypeError:
                return f"{str(value)[:60]!r} is of a type that cannot be {text}; correct the constraint"
        return ""


def _checks(field: Mapping[str, Any], where: str) -> _Checks:
    limits = field["constraints"]
    parse = _parser(str(field.get("type")), field) or (lambda text: text)

    def read(text: str) -> Any:
        try:
            return parse(text)
        except (ValueError, OverflowError):
            message = f"{text[:60]!r} is not of its type {field.get('type')}; correct the constraint"
            raise DataError(f"{where}: constraints of the field {field['name']!r}: {message}") from None

    tests: list[tuple[str, Callable[[Any], bool]]] = [*_range_tests(limits, read)]
    if "enum" in limits:
        allowed = {_limit(each, read) for each in limits["enum"]}
        tests.append((f"one of {', '.join(map(str, limits['enum']))}", lambda value: value in allowed))
    if "pattern" in limits:
        pattern = str(limits["pattern"])
        try:
            check_pattern(pattern)
        except SpecError as error:
            raise DataError(f"{where}: pattern of the field {field['name']!r}: {error}; correct it") from None
        tests.append((f"of the pattern {pattern}", lambda value: matches(str(value), pattern)))
    return _Checks(bool(limits.get("required")), bool(limits.get("unique")), tests)


def _range_tests(limits: Mapping[str, Any], read: Callable[[str], Any]) -> Iterator[tuple[str, Callable[[Any], bool]]]:
    for key, words, test in _RANGES:
        if key in limits:
            bound = limits[key] if "Length" in key else _limit(limits[key], read)
            yield f"{words} {limits[key]}", partial(test, bound)


_RANGES: Final[Sequence[tuple[str, str, Callable[[Any, Any], bool]]]] = (
    ("minimum", "at least", lambda bound, value: value >= bound),
    ("maximum", "at most", lambda bound, value: value <= bound),
    ("exclusiveMinimum", "greater than", lambda bound, value: value > bound),
    ("exclusiveMaximum", "less than", lambda bound, value: value < bound),
    ("minLength", "of a length of at least", lambda bound, value: len(value) >= bound),
    ("maxLength", "of a length of at most", lambda bound, value: len(value) <= bound),
)


def _limit(value: Any, read: Callable[[str], Any]) -> Any:
    return read(value) if isinstance(value, str) else value
