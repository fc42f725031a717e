"""Writes a dataset as others read it: its rows as Parquet with a Croissant description, or as CSV in a Data Package.

Both standards have types, keys and checksums. They have no roles, which are written as a property of evaluand's own
that other readers pass over. What cannot be represented is reported, column by column.
"""

from __future__ import annotations

import base64
import csv
import datetime as dt
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import quote

import pyarrow as pa

from evaluand.core.errors import DataError, SpecError, warn
from evaluand.core.files.paths import replaced
from evaluand.core.key_columns import INDEX
from evaluand.data.dataset import Dataset
from evaluand.data.formats.descriptions import ROLE, digest_of
from evaluand.data.schema.arrow import scalar_kind
from evaluand.data.schema.kinds import RANGES
from evaluand.data.source import DataNote
from evaluand.store.tables import is_json

Form = Literal["croissant", "datapackage"]
_About = Mapping[str, str | None]


def publish(
    dataset: Dataset,
    folder: str | Path,
    form: Form = "croissant",
    *,
    name: str | None = None,
    description: str | None = None,
    license: str | None = None,
    url: str | None = None,
) -> Path:
    """Writes the rows of a dataset and their description into a folder; reading it gives the same dataset.

    Args:
        form: `croissant` writes `data.parquet` and `croissant.json`, `datapackage` writes `data.csv` and
            `datapackage.json`.
        name: of the dataset; by default its own name.
        license: a URL, or an identifier of SPDX such as `CC-BY-4.0`.
        url: the page of the dataset.

    Returns:
        The path of the description.

    Raises:
        SpecError: the form is neither, or the dataset has no name.
        DataError: a text has a null byte, which a `datapackage` cannot hold.

    Example:
        >>> import tempfile
        >>> data = Dataset.from_rows([{"input": "2+2", "expected": "4"}], name="sums")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Dataset.from_file(publish(data, folder)).digest == data.digest
        True
    """
    if form not in ("croissant", "datapackage"):
        raise SpecError(f"form must be croissant or datapackage, not {form!r}")
    title = name or dataset.name
    if not title:
        raise SpecError("the dataset has no name; give name")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    fields = _fields(dataset)
    write = _write_croissant if form == "croissant" else _write_package
    about = {"name": title, "description": description or f"The dataset {title}.", "license": license, "url": url}
    value = _without_absent(write(dataset, folder, fields, {key: text or None for key, text in about.items()}))
    path = folder / f"{form}.json"
    with replaced(path) as file:
        file.write(json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n")
    lossless = ("object",) if form == "datapackage" else ()
    if notes := [f"{field.name} {field.note}" for field in fields if field.note and field.kind not in lossless]:
        warn(f"{path}: not all can be represented: {'; '.join(notes)}", DataNote)
    return path


@dataclass(frozen=True)
class _Field:
    """A column as the standards name its type.

    Attributes:
        kind: one of `_KINDS`.
        repeated: whether values are lists.
        roles: the roles of the column, as `ROLE` has them.
        note: what cannot be represented; empty if all can.
    """

    name: str
    kind: str
    repeated: bool
    roles: str
    note: str


_KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "string": ("sc:Text", "string"),
    "bool": ("sc:Boolean", "boolean"),
    **dict.fromkeys(RANGES, ("sc:Integer", "integer")),
    **dict.fromkeys(("float32", "float64"), ("sc:Float", "number")),
    "date": ("sc:Date", "date"),
    **dict.fromkeys(("datetime", "datetime-local"), ("sc:DateTime", "datetime")),
    "binary": ("sc:Text", "string"),
    "json": ("sc:Text", "any"),
    "object": ("sc:Text", "object"),
}
"""Kind → type in Croissant, type in a Table Schema."""


def _fields(dataset: Dataset) -> list[_Field]:
    """The columns with roles, and `_index_` where it is more than the number of the row."""
    numbered = list(dataset.indices) != list(range(len(dataset)))
    names, roles = [INDEX, *dataset.roles.columns] if numbered else dataset.roles.columns, _roles(dataset)
    fields = [_field(dataset.schema.field(name), roles.get(name, "")) for name in names]
    for place, field in enumerate(fields):
        if is_json(dataset.schema.field(field.name)):  # of which only one with objects alone has a type in Table Schema
            batches = dataset.columns([field.name])
            starts = {text[0] for batch in batches for text in batch.column(0).to_pylist() if text not in (None, "{}")}
            fields[place] = replace(field, kind="object") if starts == {"{"} else field
    return fields


def _roles(dataset: Dataset) -> dict[str, str]:
    """Column → its roles."""
    found: dict[str, list[str]] = {}
    for role in ("input", "expected", "attributes", "id", "weight", "cluster", "metadata"):
        value = getattr(dataset.roles, role)
        if isinstance(value, Mapping):
            for target, name in value.items():
                found.setdefault(name, []).append(f"{role}:{quote(target, safe='')}")
        else:
            for name in [value] if isinstance(value, str) else value or ():
                found.setdefault(name, []).append(role)
    return {name: " ".join(words) for name, words in found.items()}


def _field(column: pa.Field, roles: str) -> _Field:
    repeated = pa.types.is_list(column.type)
    item = column.type.value_type if repeated else column.type
    kind = "binary" if pa.types.is_fixed_size_binary(item) else scalar_kind(item)
    note = ""
    if is_json(column) or pa.types.is_nested(item):
        kind, repeated, note = "json", False, "has objects or values of mixed types, written as JSON text"
    elif kind == "binary":
        note = "has bytes, written as text in base64"
    elif kind not in _KINDS:
        kind, note = "string", f"is {item}, written as text"
    return _Field(column.name, str(kind), repeated, roles, note)


def _without_absent(value: Mapping[str, Any]) -> dict[str, Any]:
    return {key: part for key, part in value.items() if part is not None}


# Croissant


def _write_croissant(
    dataset: Dataset, folder: Path, fields: Sequence[_Field], about: Mapping[str, str | None]
) -> dict[str, Any]:
    import pyarrow.parquet as pq

    path = folder / "data.parquet"
    as_text = {field.name for field in fields if field.note and field.kind == "string"}
    schema = pa.schema([dataset.schema.field(field.name) for field in fields])  # in which JSON has its mark
    for place, field in enumerate(fields):
        if field.name in as_text:
            kind = pa.list_(pa.string()) if field.repeated else pa.string()
            schema = schema.set(place, schema.field(place).with_type(kind))
    with replaced(path) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for batch in dataset.columns(schema.names):
            columns = [
                pa.array(map(_texts, batch.column(each.name).to_pylist()), each.type)
                if each.name in as_text
                else batch.column(each.name)
                for each in schema
            ]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    file_object = {
        "@type": "cr:FileObject",
        "@id": path.name,
        "name": path.name,
        "contentUrl": path.name,
        "contentSize": f"{path.stat().st_size} B",
        "encodingFormat": "application/x-parquet",
        "sha256": digest_of(path, "sha256"),
    }
    keys = [{"@id": f"examples/{field.name}"} for field in fields if "id" in field.roles.split()]
    record_set = {
        "@type": "cr:RecordSet",
        "@id": "examples",
        "name": "examples",
        "key": keys[0] if keys else None,
        "field": [_croissant_field(field) for field in fields],
    }
    return {
        "@context": json.loads(Path(__file__).with_name("croissant_context.json").read_bytes()),
        "@type": "sc:Dataset",
        **about,
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "distribution": [file_object],
        "recordSet": [_without_absent(record_set)],
    }


def _croissant_field(field: _Field) -> dict[str, Any]:
    expected = any(role.partition(":")[0] == "expected" for role in field.roles.split())
    kind = _KINDS[field.kind][0]
    return _without_absent(
        {
            "@type": "cr:Field",
            "@id": f"examples/{field.name}",
            "name": f"examples/{field.name}",
            "dataType": [kind, "cr:Label"] if expected else kind,
            "repeated": field.repeated or None,
            "source": {"fileObject": {"@id": "data.parquet"}, "extract": {"column": field.name}},
            ROLE: field.roles or None,
        }
    )


def _texts(value: Any) -> Any:
    if value is None:
        return None
    return [_texts(item) for item in value] if isinstance(value, list) else str(value)


# Data Package


def _write_package(
    dataset: Dataset, folder: Path, fields: Sequence[_Field], about: Mapping[str, str | None]
) -> dict[str, Any]:
    path = folder / "data.csv"
    missing = _missing_text(dataset, fields)
    with replaced(path) as file:
        for line in _csv_lines(dataset, fields, missing):
            file.write(line)
    keys = [field.name for field in fields if "id" in field.roles.split()]
    columns = [
        {
            "name": field.name,
            "type": "array" if field.repeated else _KINDS[field.kind][1],
            ROLE: field.roles or None,
        }
        for field in fields
    ]
    schema = {"fields": [*map(_without_absent, columns)], "missingValues": [missing], "primaryKey": keys or None}
    resource = {
        "name": "examples",
        "type": "table",
        "path": path.name,
        "format": "csv",
        "mediatype": "text/csv",
        "encoding": "utf-8",
        "bytes": path.stat().st_size,
        "hash": f"sha256:{digest_of(path, 'sha256')}",
        "schema": _without_absent(schema),
    }
    title, license = str(about["name"]), about["license"]
    return {
        "name": re.sub(r"[^a-z0-9._-]", "-", title.lower()),
        "title": title,
        "description": about["description"],
        "licenses": license and [{"path" if "://" in license else "name": license}],
        "homepage": about["url"],
        "resources": [resource],
    }


def _missing_text(dataset: Dataset, fields: Sequence[_Field]) -> str:
    """The text of a missing value: empty, unless a text of the data is."""
    texts = [field.name for field in fields if field.kind == "string" and not field.repeated]
    used: set[Any] = set()
    for batch in dataset.columns(texts):
        for column in batch.columns:
            used.update(value for value in column.to_pylist() if isinstance(value, str) and len(value) < 9)
    return next(text for text in ("", "\\N", *(f"\\N{i}" for i in range(len(used)))) if text not in used)


_END: Final = "\r\n"


class _Line:
    """Holds the line that the csv module writes, with one character at its end.

    The module writes two: it leaves a cell with one of them bare unless the line ends with it.
    """

    def write(self, text: str) -> None:
        self.text = f"{text.removesuffix(_END)}\n"


def _csv_lines(dataset: Dataset, fields: Sequence[_Field], missing: str) -> Iterator[bytes]:
    line = _Line()
    writer = csv.writer(line, lineterminator=_END)
    names = [field.name for field in fields]
    writer.writerow(names)
    yield line.text.encode()
    for batch in dataset.columns(names):
        columns = [batch.column(field.name).to_pylist() for field in fields]
        for row in zip(*columns, strict=True):
            cells = [missing if v is None else _cell(v, field) for v, field in zip(row, fields, strict=True)]
            writer.writerow(cells)
            if "\0" in line.text:
                column = next(name for name, cell in zip(names, cells, strict=True) if "\0" in cell)
                raise DataError(
                    f"a text of the column {column!r} has a null byte, which CSV cannot hold; use croissant"
                )
            yield line.text.encode()


def _cell(value: Any, field: _Field) -> str:
    if field.repeated or (field.kind == "json" and not isinstance(value, str)):
        return json.dumps(value, ensure_ascii=False, default=_json_value)
    plain = _json_value(value)
    if isinstance(plain, bool):
        return "true" if plain else "false"
    if isinstance(plain, float):
        return {"inf": "INF", "-inf": "-INF", "nan": "NaN"}.get(repr(plain), repr(plain))
    return str(plain)


def _json_value(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dt.datetime):
        return value.isoformat().replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, dt.date) else value
