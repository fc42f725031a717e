"""Croissant descriptions of datasets (JSON-LD of MLCommons, 1.0 and 1.1): one record set, whose files are local.

Columns of CSV, JSON, JSON lines and Parquet files, file names, regular expressions and separators are read, and objects
whose keys are sub-fields; a field that takes anything else is left out with a note. The key is the role `id`; a field
of the type `cr:Label` is expected.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from evaluand.core.errors import DataError, SpecError, warn
from evaluand.core.selector import Selector
from evaluand.core.selector.patterns import first_group
from evaluand.data.files import SourceFile, kind_of_name
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
)
from evaluand.data.formats.json_rows import read_json
from evaluand.data.source import DataNote, DataSource
from evaluand.data.sources import from_rows, open_files

_PREFIX: Final = re.compile(
    r"^(cr|sc|dct|schema|croissant|https?://schema\.org/|http://mlcommons\.org/croissant/)(?::)?"
)
_FORMATS: Final = {
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
    "application/json": "json",
    "application/jsonlines": "jsonl",
    "application/x-ndjson": "jsonl",
    "application/x-parquet": "parquet",
    "application/parquet": "parquet",
    "application/vnd.apache.parquet": "parquet",
}
_TYPES: Final[Mapping[str, pa.DataType]] = (
    {
        "Integer": pa.int64(),
        "Float": pa.float64(),
        "Number": pa.float64(),
        "Boolean": pa.bool_(),
        "Text": pa.string(),
        "URL": pa.string(),
    }
    | {f"{sign}Int{bits}": pa.int64() for sign in ("", "U") for bits in (8, 16, 32, 64)}
    | {f"Float{bits}": pa.float64() for bits in (16, 32, 64)}
)


class Croissant(Description):
    """A Croissant description; `croissant.json#name` chooses a record set."""

    kind = "croissant"
    noun = "Croissant description"

    def open_part(self, value: Mapping[str, Any], name: str, folder: Path, part: str | None) -> DataSource:
        value = _strip_prefixes(value)
        for key in ("distribution", "recordSet"):
            objects_in(value.get(key), f"{name}: {key}")
        return _Dataset(name, folder, value).open(part)


def _name(text: str) -> str:
    return _PREFIX.sub("", text)


def _strip_prefixes(value: Any) -> Any:
    """JSON-LD with short names."""
    if isinstance(value, list):
        return [_strip_prefixes(item) for item in value]
    if isinstance(value, dict):
        return {_name(k): v if _name(k) in ("data", "@context") else _strip_prefixes(v) for k, v in value.items()}
    return value


def _id(value: Any) -> str:
    return str(value.get("@id") or value.get("name") or "") if isinstance(value, Mapping) else str(value)


@dataclass(frozen=True)
class _Field:
    """A field of a record set: where its values come from and what they are.

    Attributes:
        parts: the origin and the column of each sub-field; empty for a field of one value.
    """

    name: str
    id: str
    types: list[str]
    origin: str
    extract: Mapping[str, Any]
    transforms: list[Mapping[str, Any]]
    repeated: bool
    roles: str
    parts: frozenset[tuple[str, str]] = frozenset()

    @classmethod
    def read(cls, field: Mapping[str, Any], record_set: str, where: str) -> _Field:
        """A field, or the one column of objects from which all of its sub-fields take a key.

        Args:
            where: its place, for messages.

        Raises:
            DataError: the field is not what the standard says.
        """
        where = f"{where} {_id(field)!r}"
        source = field.get("source")
        source = source if isinstance(source, Mapping) else {}
        parts = frozenset(_places(field, where))
        if not source and len(parts) == 1:
            [(place, column)] = parts
            source = {"fileObject": place, "extract": {"column": column}}
        origin = source.get("fileObject") or source.get("fileSet") or source.get("distribution")
        return cls(
            _id(field).removeprefix(f"{record_set}/"),
            _id(field),
            [_name(str(kind)) for kind in listed(field.get("dataType"))],
            _id(origin) if origin else "",
            _read_extract(source, where),
            [_check_transform(each, where) for each in objects_in(source.get("transform"), f"{where}: transform")],
            bool(field.get("repeated") or field.get("isArray")),
            str(field.get(ROLE) or ""),
            parts,
        )

    @property
    def obstacle(self) -> str:
        """Why the field cannot be read; empty if it can."""
        if not self.origin and len(self.parts) > 1:
            columns = sorted(column or "no column" for _, column in self.parts)
            return f"its sub-fields come from {', '.join(columns)}, and not from one column"
        if not self.origin:
            return "it has no file as its source"
        if not ({*self.extract} <= {"column", "jsonPath", "fileProperty"} and len(self.extract) == 1):
            return f"it extracts {', '.join(self.extract) or 'nothing'}"
        if self.extract.get("fileProperty", "filename") not in ("filename", "fullpath"):
            return f"it extracts the {self.extract['fileProperty']} of files"
        unknown = {key for each in self.transforms for key in each} - {"regex", "separator"}
        return f"it is transformed by {', '.join(sorted(unknown))}" if unknown else ""

    def column(self, is_text: bool) -> Column:
        """The column that the field declares; the name of a file is a column as if its folder named it.

        Args:
            is_text: whether the cells are text, in which objects are JSON.
        """
        types = [] if self.repeated or self.parts else [_TYPES[kind] for kind in self.types if kind in _TYPES]
        return Column(
            self.name,
            str(self.extract.get("column") or f"file {self.extract.get('fileProperty')}"),
            pa.list_(pa.string()) if any("separator" in each for each in self.transforms) else next(iter(types), None),
            self.transform if self.transforms else None,
            is_json=bool(self.parts) and is_text,
        )

    def transform(self, value: Any) -> Any:
        """The value after the transforms."""
        for each in self.transforms:
            if "regex" in each and isinstance(value, str):
                value = first_group(str(each["regex"]))(value)
            if "separator" in each and isinstance(value, str):
                value = value.split(each["separator"])
        return value


def _read_extract(source: Mapping[str, Any], where: str) -> Mapping[str, str]:
    extract = source.get("extract") or {}
    if not isinstance(extract, Mapping) or not all(isinstance(value, str) for value in extract.values()):
        raise DataError(f'{where}: extract must be an object of one text, such as {{"column": "name"}}')
    return extract


def _check_transform(transform: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    separator = transform.get("separator", ",")
    if not isinstance(separator, str) or not separator:
        raise DataError(f"{where}: separator must be a text that is not empty, not {separator!r}")
    try:
        first_group(str(transform.get("regex", "")))
    except SpecError as error:
        raise DataError(f"{where}: regex: {error}; correct it") from None
    return transform


def _places(field: Mapping[str, Any], where: str) -> Iterator[tuple[str, str]]:
    """The origin and the column of each sub-field; `("", "")` of one that is not a key of a column of objects."""
    for each in objects_in(field.get("subField"), f"{where}: subField"):
        if each.get("subField"):
            yield from _places(each, where)
            continue
        part = _Field.read(each, "", where)
        keys = [str(key) for step in part.transforms for key in step]
        is_key = {*part.extract} == {"column"} and keys and {*keys} == {"jsonPath"}
        yield (part.origin, str(part.extract["column"])) if is_key else ("", "")


def _is_catalogue(record_set: Mapping[str, Any]) -> bool:
    """Whether a record set lists the categories or splits of another one."""
    return any(_name(str(kind)) in ("Enumeration", "Split") for kind in listed(record_set.get("dataType")))


@dataclass(frozen=True)
class _Dataset:
    name: str
    folder: Path
    value: Mapping[str, Any]

    def open(self, part: str | None) -> DataSource:
        sets: dict[str, Mapping[str, Any]] = {_id(each): each for each in listed(self.value.get("recordSet"))}
        rows = {name: each for name, each in sets.items() if not _is_catalogue(each)}
        chosen = choose_part(rows if part is None else sets, part, self.name, "record set")
        name, where = _id(chosen), f"{self.name}: the field"
        fields = [
            _Field.read(field, name, where) for field in objects_in(chosen.get("field"), f"{self.name}: {name}/field")
        ]
        if chosen.get("data"):
            prefix = f"{name}/"
            data = [
                {key.removeprefix(prefix): value for key, value in row.items()}
                for row in inline_rows(chosen["data"], f"{self.name}: data of {name!r}")
            ]
            return replace(from_rows(data, f"{self.name}#{name}"), roles=self._roles(chosen, fields))
        left_out = [f"{field.name} ({field.obstacle})" for field in fields if field.obstacle]
        fields = [field for field in fields if not field.obstacle]
        if left_out:
            warn(f"{self.name}: fields of {name!r} are left out: {'; '.join(left_out)}", DataNote)
        origins = {field.origin for field in fields}
        if len(origins) != 1:
            what = f"joins {', '.join(sorted(origins))}" if origins else "has no fields that can be read"
            raise DataError(f"{self.name}: the record set {name!r} {what}; choose another, or read its files")
        files = self._files(origins.pop(), name)
        is_text = (files[0].kind or kind_of_name(files[0].path)) in ("csv", "tsv")
        roles = self._roles(chosen, fields)
        if any("jsonPath" in field.extract for field in fields):
            return replace(_select(files, fields), roles=roles)
        columns = [field.column(is_text) for field in fields]
        return read_declared(open_files(self.name, files), columns, roles, self.name)

    def _roles(self, chosen: Mapping[str, Any], fields: Sequence[_Field]) -> tuple[tuple[str, Any], ...]:
        names = {field.id: field.name for field in fields}
        keys = [names[_id(key)] for key in listed(chosen.get("key")) if _id(key) in names]
        labels = [field.name for field in fields if "Label" in field.types]
        return read_roles({field.name: field.roles for field in fields}, keys, labels, self.name)

    # Files

    def _files(self, origin: str, record_set: str) -> list[SourceFile]:
        known = {_id(each): each for each in listed(self.value.get("distribution"))}
        if origin not in known:
            raise DataError(f"{self.name}: {record_set!r} reads {origin!r}, which is not in the distribution")
        entry = known[origin]
        kind = next((_FORMATS[f] for f in map(str, listed(entry.get("encodingFormat"))) if f in _FORMATS), None)
        if entry.get("@type") and _name(str(entry["@type"])) == "FileSet":
            paths = self._matching(entry)
        else:
            place = str(entry.get("contentUrl") or entry.get("name") or "")
            containers = [_id(each) for each in listed(entry.get("containedIn"))]
            formats = {each: str(known.get(each, {}).get("encodingFormat")) for each in containers}
            container = ", ".join(each for each, form in formats.items() if not form.startswith("git"))
            packed = f", in the archive {container} (unpack it)," if container else ""
            what = f"{self.name}: {origin!r}{packed}"
            paths = [find_file(self.folder, place, what)]
            for algorithm in ("sha256", "md5"):
                if entry.get(algorithm):
                    check_digest(paths[0], algorithm, str(entry[algorithm]), f"{self.name}: {origin}")
        names = [(("file filename", p.name), ("file fullpath", p.relative_to(self.folder).as_posix())) for p in paths]
        return [replace(SourceFile.open(path, name), kind=kind) for path, name in zip(paths, names, strict=True)]

    def _matching(self, entry: Mapping[str, Any]) -> list[Path]:
        """The files of a file set below the folder."""
        includes, excludes = (list(map(str, listed(entry.get(key)))) for key in ("includes", "excludes"))
        root = self.folder.resolve()
        found = []
        for path in sorted(self.folder.rglob("*")):
            place = path.relative_to(self.folder).as_posix()
            matches = any(fnmatch(place, pattern) for pattern in includes)
            if matches and not any(fnmatch(place, pattern) for pattern in excludes) and path.is_file():
                if not path.resolve().is_relative_to(root):
                    raise DataError(f"{self.name}: {path} is a link out of the folder; copy the file")
                found.append(path)
        if not found:
            raise DataError(f"{self.name}: no file in {self.folder} matches {', '.join(includes)} of {_id(entry)!r}")
        return found


def _select(files: Sequence[SourceFile], fields: Sequence[_Field]) -> DataSource:
    """Rows of JSON documents, of which each field selects one column by a path."""
    rows: list[dict[str, Any]] = []
    for file in files:
        document = read_json(file)
        found = {field.name: Selector(str(field.extract.get("jsonPath"))).find(document) for field in fields}
        if len({len(values) for values in found.values()}) > 1:
            sizes = ", ".join(f"{name} {len(values):,}" for name, values in found.items())
            raise DataError(f"{file.name}: the paths of the fields select different numbers of values: {sizes}")
        transforms = {field.name: field.transform for field in fields}
        columns = [map(transforms[name], values) for name, values in found.items()]
        rows += [dict(zip(found, row, strict=True)) for row in zip(*columns, strict=True)]
    return from_rows(rows, files[0].name)
