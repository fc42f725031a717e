"""datasetDoc.json and the tables that it describes, as far as problems need them.

A dataset document lists resources: tables with typed columns and roles, and collections of media that columns refer to.
The learning table becomes a `Dataset`. Where its index has several columns, or repeats, the rows of one index value are
one example: an image with its boxes, a text with its labels.
"""

import os
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from evaluand.core.errors import DataError, SpecError, nearest
from evaluand.core.files.cells import typed, written_as_real
from evaluand.core.files.json import Findings, Node, read_json, write_json
from evaluand.core.files.paths import is_within
from evaluand.data.columns import join_chunks
from evaluand.data.dataset import Dataset
from evaluand.data.sources import DataSource, open_texts
from evaluand.evaluation.prediction_table import lists_by_row
from evaluand.interop.d3m.names import ABOUT_DATASET, COLUMN_TYPES, RESOURCE_TYPES, ROLES, read_version
from evaluand.predictions.problem.files import read_header
from evaluand.predictions.problem.problem import TargetDataset
from evaluand.predictions.problem.sides import TRUTH, Side

LEARNING: Final = "learningData"

_TABLES: Final = ("table", "timeseries", "edgeList")
_UNKNOWN: Final = -1
"""The index of a column that its document does not state, until the table was read."""

_OBJECTS: Final = ("item", "node", "nodeAttribute", "edge", "edgeAttribute")
_NAMED: Final = {"columnName": str, "columnIndex": int, "nodeAttribute": str, "edgeAttribute": str}
"""What an object `resObject` may name, and the type of the name."""


@dataclass(frozen=True, kw_only=True)
class Reference:
    """What the values of a column refer to, in D3M's words: items, nodes or edges of a resource, or one of its columns.

    Attributes:
        name: of the column or attribute; the number of a `columnIndex`; None for objects without a name.
    """

    resource: str
    object: str
    name: str | int | None = None

    @property
    def item(self) -> bool:
        """Whether values are names of files in a collection."""
        return self.object == "item"


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column as the document describes it; `type` and `roles` are D3M's words."""

    index: int
    name: str
    type: str
    roles: tuple[str, ...] = ()
    refers_to: Reference | None = None
    description: str | None = None

    @property
    def is_index(self) -> bool:
        return "index" in self.roles or "multiIndex" in self.roles


@dataclass(frozen=True, kw_only=True)
class Resource:
    """A file of a dataset, or a folder of files."""

    id: str
    path: str
    type: str
    formats: tuple[str, ...] = ()
    collection: bool = False
    columns: tuple[Column, ...] = ()

    @property
    def index(self) -> tuple[Column, ...]:
        """The columns of the index, first the one that names rows."""
        return tuple(column for column in self.columns if column.is_index)

    @property
    def gathers(self) -> Column | None:
        """The column whose equal values make rows one example; None where each row is an example."""
        repeated = [column for column in self.columns if "multiIndex" in column.roles]
        return repeated[0] if repeated else self.index[1] if len(self.index) > 1 else None

    def column(self, name: str) -> Column | None:
        return next((column for column in self.columns if column.name == name), None)


@dataclass(frozen=True, kw_only=True)
class DatasetDocument:
    """A datasetDoc.json; `about` holds its other descriptions, by D3M's keys."""

    id: str
    name: str | None = None
    version: str = "1.0"
    redacted: bool = False
    about: Mapping[str, Any] = field(default_factory=dict)
    resources: tuple[Resource, ...] = ()
    folder: Path | None = None

    def resource(self, id: str) -> Resource | None:
        return next((resource for resource in self.resources if resource.id == id), None)

    @property
    def learning(self) -> Resource | None:
        """The learning table."""
        tables = [r for r in self.resources if r.type == "table" and not r.collection]
        named = [r for r in tables if r.id == LEARNING or Path(r.path).stem == LEARNING]
        return next(iter(named or (tables if len(tables) == 1 else ())), None)

    def table(self, id: str) -> pa.Table:
        """A table with the types that the document declares; an empty cell is null.

        A SpecError if there is no such table; a DataError has every fault of the file, its header and its cells.
        """
        resource = self.resource(id)
        if resource is None or resource.collection or self.folder is None:
            known = [r.id for r in self.resources if not r.collection]
            near = nearest(id, known)
            raise SpecError(f"dataset {self.id} has no table {id!r}{near}; it has {', '.join(known)}")
        findings = Findings()
        table = read_table(self.folder, resource, findings, f"dataResources[{self.resources.index(resource)}]")
        findings.check()
        assert table is not None
        return table.table

    def media(self, column: Column, value: str) -> Path:
        """The media file that a value names; a SpecError if there is none, a DataError if outside the folder."""
        found = self.resource(column.refers_to.resource) if column.refers_to else None
        if found is None or not column.refers_to or not column.refers_to.item or self.folder is None:
            raise SpecError(f"column {column.name!r} does not name files")
        within = self.folder / found.path
        if not (is_within(within / value, within) and is_within(within, self.folder)):
            raise DataError(f"{value!r} leads out of {found.path}")
        return _real(within / value)


def read_dataset(document: str | os.PathLike[str]) -> DatasetDocument:
    """A datasetDoc.json; a DataError has every fault, with its JSON path and a code."""
    content, findings = examine_dataset(document)
    findings.check()
    return content


def examine_dataset(document: str | os.PathLike[str]) -> tuple[DatasetDocument, Findings]:
    """A dataset document as far as it can be read, with faults and notes; a DataError if it is no JSON file."""
    findings = Findings()
    path = Path(document)
    root = Node.root(read_json(path), findings, str(path))
    about = root.node("about", required=True)
    attributes = _about(about) if about else {"id": ""}
    nodes = [*root.nodes("dataResources", required=True)]
    resources = tuple(_resource(node) for node in nodes)
    root.ignore("qualities")
    root.refuse_unknown_keys()
    resources = tuple(_place_columns(*each, path.parent) for each in zip(nodes, resources, strict=True))
    _check_references(nodes, resources, path.parent)
    return DatasetDocument(**attributes, resources=resources, folder=path.parent), findings


def _about(about: Node) -> dict[str, Any]:
    read_version(about, "datasetSchemaVersion", "3.1.1")
    name = about.text("datasetName", empty=True)
    made = {
        "id": about.text("datasetID", required=True) or "",
        "name": None if name in ("NULL", "") else name,
        "version": about.text("datasetVersion") or "1.0",
        "redacted": about.boolean("redacted", False),
        "about": {key: about.text(key, empty=True) for key in ABOUT_DATASET if about.has(key)},
    }
    about.ignore("humanSubjectsResearch", *ABOUT_DATASET)
    return made


def _resource(node: Node) -> Resource:
    kind = node.text("resType", required=True) or ""
    if kind and kind not in RESOURCE_TYPES:
        node.note("resType", "unknown_word", f"unknown type {kind!r}{nearest(kind, RESOURCE_TYPES)}")
    columns = [*node.nodes("columns")]
    if columns and kind not in _TABLES:
        node.fault("columns", "not_applicable", f"is only for tables; the type is {kind}")
    made = Resource(
        id=node.text("resID", required=True) or "",
        path=node.file_path("resPath", required=True) or "",
        type=kind,
        formats=_formats(node),
        collection=node.boolean("isCollection", False),
        columns=tuple(_column(column) for column in columns),
    )
    count = node.integer("columnsCount", least=0)
    if count is not None and columns and count < len(columns):
        node.fault("columnsCount", "out_of_range", f"is {count}, but {len(columns)} columns are described")
    for key, values in (("colIndex", [c.index for c in made.columns]), ("colName", [c.name for c in made.columns])):
        for i, value in enumerate(values):
            if value in values[:i] and value not in ("", _UNKNOWN):
                columns[i].fault(key, "twice", f"two columns have the {key} {value!r}")
    return made


def _formats(node: Node) -> tuple[str, ...]:
    """The media types: a list in versions 3.x, an object media type → endings in 4.x."""
    value = node.raw("resFormat")
    if value is None:
        node.note("resFormat", "missing_key", "is missing")
    elif not isinstance(value, list | dict) or not all(isinstance(one, str) for one in value):
        node.fault("resFormat", "wrong_type", "must be a list of media types, or an object from media types to endings")
        return ()
    return tuple(value or ())


def _column(node: Node) -> Column:
    is_text = isinstance(node.value.get("role"), str)
    if is_text:
        node.note("role", "text_for_list", "is one text; read as a list of one")
    roles = (node.raw("role"),) if is_text else node.texts("role")
    for i, role in enumerate(roles):
        if role not in ROLES:
            node.note(f"role[{i}]", "unknown_word", f"unknown role {role!r}{nearest(role, ROLES)}")
    target = node.node("refersTo")
    index, name = node.integer("colIndex", least=0), node.text("colName")
    for key in ("colIndex", "colName", "colType", "role"):
        if not node.has(key):
            node.note(key, "undescribed_column", "is missing; the table decides")
    made = Column(
        index=_UNKNOWN if index is None else index,
        name=name or "",
        type=node.choice("colType", [*COLUMN_TYPES]) or "unknown",
        roles=roles,
        refers_to=_reference(target) if target else None,
        description=node.text("colDescription", empty=True),
    )
    node.ignore("timeGranularity")
    return made


def _place_columns(node: Node, resource: Resource, folder: Path) -> Resource:
    """The resource with the index and the name of each column, of which the document may state only one."""
    if all(column.index != _UNKNOWN and column.name for column in resource.columns):
        return resource
    header = header_of_table(folder, resource)
    columns = []
    for i, column in enumerate(resource.columns):
        if not column.name and 0 <= column.index < len(header):
            column = replace(column, name=header[column.index])
        elif column.index == _UNKNOWN and column.name in header:
            column = replace(column, index=header.index(column.name))
        elif not column.name or column.index == _UNKNOWN:
            key, known = ("colName", column.index) if not column.name else ("colIndex", repr(column.name))
            reason = "so is colIndex" if known == _UNKNOWN else f"{resource.path} has no column {known}"
            node.fault(f"columns[{i}].{key}", "missing_key", f"is missing, and {reason}")
        columns.append(column)
    return replace(resource, columns=tuple(columns))


def header_of_table(folder: Path, resource: Resource) -> list[str]:
    """The names of a table's columns; none if it cannot be read, which reading the table reports."""
    path = folder / resource.path
    try:
        return read_header(path) if is_within(path, folder) else []
    except DataError:
        return []


def _reference(node: Node) -> Reference | None:
    resource = node.text("resID", required=True)
    value: Any = node.raw("resObject")
    named = [(key, value[key]) for key in _NAMED if key in value] if isinstance(value, dict) else [(value, None)]
    object, name = named[0] if len(named) == 1 else (None, None)
    if isinstance(value, str) and value not in _OBJECTS:
        node.fault("resObject", "not_allowed", f"unknown value {value!r}{nearest(value, _OBJECTS)}")
    elif not isinstance(object, str) or (isinstance(value, dict) and type(name) is not _NAMED[object]):
        node.fault("resObject", "wrong_type", f'must be "item", or an object with {" or ".join(_NAMED)}')
    elif resource is not None:
        return Reference(resource=resource, object=object, name=name)
    return None


def _check_references(nodes: Sequence[Node], resources: Sequence[Resource], folder: Path) -> None:
    """Checks that ids of resources are unique, and that what columns refer to exists."""
    known = {resource.id: resource for resource in resources}
    for i, (node, resource) in enumerate(zip(nodes, resources, strict=True)):
        if any(other.id == resource.id for other in resources[:i]):
            node.fault("resID", "twice", f"two resources have the id {resource.id!r}")
        for k, column in enumerate(resource.columns):
            reference, place = column.refers_to, f"columns[{k}].refersTo"
            if reference is None:
                continue
            found = known.get(reference.resource)
            if found is None:
                message = f"there is no resource {reference.resource!r}; there are {', '.join(known)}"
                node.fault(f"{place}.resID", "no_such_resource", message)
            elif reference.item:
                if not found.collection:
                    node.fault(f"{place}.resID", "not_a_collection", f"{found.id!r} is not a collection of files")
            elif reference.object in ("columnName", "columnIndex") and found.columns:
                names = header_of_table(folder, found)  # which may have columns that the document does not describe
                columns = {one.name: one.index for one in found.columns} | {name: i for i, name in enumerate(names)}
                if reference.name not in (columns if reference.object == "columnName" else columns.values()):
                    message = f"resource {found.id!r} has no column {reference.name!r}"
                    node.fault(f"{place}.resObject", "no_such_column", message)


# Tables


def read_table(
    folder: Path,
    resource: Resource,
    findings: Findings,
    place: str,
    needed: Set[str] | None = None,
    document: Findings | None = None,
) -> Side | None:
    """A table with its declared types; None, with faults, where it cannot be read.

    Columns that are not `needed` are text; by default all are needed.

    Args:
        findings: of the file.
        place: of the resource in its document.
        document: the findings of the document; the same by default.
    """
    document = findings if document is None else document
    path = _real(folder / resource.path)
    if not path.is_relative_to(_real(folder)):
        document.fault(f"{place}.resPath", "unsafe_path", f"{resource.path!r} leads out of the folder")
        return None
    source = open_csv(path, findings, document, f"{place}.resPath")
    if source is None:
        return None
    before = len(findings.faults)
    header = source.schema.names
    _check_header(header, resource, document, place, path)
    side, columns = Side.of(TRUTH, source), {}
    for name in header:
        column = resource.column(name)
        typed_here = column is not None and (needed is None or name in needed)
        columns[name] = _values(side, column, findings) if column and typed_here else side.column(name)
    lost = [column.name for column in resource.index if column.name not in columns]
    return None if lost or len(findings.faults) > before else replace(side, table=pa.table(columns))


def open_csv(path: Path, findings: Findings, document: Findings | None = None, place: str = "") -> DataSource | None:
    """A CSV file with a header; None, with a fault, if it cannot be read.

    Args:
        document: the findings of the document that names it at `place`; by default those of the file.
    """
    try:
        source = open_texts(path)
    except DataError as error:
        for fault in error.faults:
            if os.path.isfile(path):
                findings.fault(fault.where, "bad_csv", fault.message)
            else:
                (document or findings).fault(place or fault.where, "no_such_file", fault.message)
        return None
    if not source.schema.names:
        findings.fault(str(path), "empty_file", "the file is empty; it needs a header and rows")
        return None
    return source


def _real(path: Path) -> Path:
    """Where a path leads after all links are resolved, even links to themselves."""
    return Path(os.path.realpath(path))


def _values(side: Side, column: Column, findings: Findings) -> pa.Array:
    kind, texts = COLUMN_TYPES[column.type], side.column(column.name)
    wrong = dict[int, str]()
    values = typed(texts, kind, wrong.__setitem__)
    findings.faults += side.faults(np.array([*wrong], np.int64), column.name, "bad_value", wrong.__getitem__)
    if kind == "integer" and (count := written_as_real(texts)):
        findings.note(str(side.path), "real_for_integer", f"{column.name}: {count:,} integers are written as 1.0")
    if kind == "time" and pa.types.is_string(values.type):
        findings.note(str(side.path), "times_as_text", f"{column.name}: some times are not in ISO format; read as text")
    return values


def _check_header(header: Sequence[str], resource: Resource, findings: Findings, place: str, path: Path) -> None:
    """Checks that the file has the columns of the document at their positions, which may leave out unnamed ones."""
    named = [name for name in read_header(path) if name]
    if len(named) < len(header) and all(column.name in named[column.index :][:1] for column in resource.columns):
        return findings.note(f"{place}.columns", "unnamed_column", f"{path.name} has a further one, unnamed")
    by_index = {column.index: (i, column) for i, column in enumerate(resource.columns)}
    for index, (i, column) in sorted(by_index.items()):
        where = f"{place}.columns[{i}]"
        found = header[index] if index < len(header) else None
        if found == column.name or index == _UNKNOWN or not column.name:  # which are reported already
            continue
        if column.name in header:
            message = f"is {index}, but in {path.name} {column.name!r} is column {header.index(column.name)}"
            findings.fault(f"{where}.colIndex", "header_mismatch", message)
        elif "suggestedTarget" in column.roles and index >= len(header):
            message = f"{path.name} has no column {column.name!r}; its values are read as hidden"
            findings.note(f"{where}.colName", "hidden_target", message)
        else:
            actual = f"column {index} is {found!r}" if found else f"there are {len(header)} columns"
            near = nearest(column.name, [name for name in header if name != found])
            message = f"is {column.name!r}, but in {path.name} {actual}{near}"
            findings.fault(f"{where}.colName", "header_mismatch", message)


# Examples


def examples(resource: Resource, table: pa.Table, targets: TargetDataset, name: str | None, **roles: Any) -> Dataset:
    """The rows of the learning table as examples.

    The index is their id, the targets are the expected values, and other columns are input, except keys, weights and
    privileged columns. A column `suggestedGroupingKey` is the cluster. Where several rows are one example, the targets
    and the first column of the index are lists, and so are the other columns, unless a multiIndex repeats them.

    Args:
        roles: other roles, such as `attributes=["sex"]`, which replace these.
    """
    known = [target.name for target in targets.targets]
    expected = {name: name for name in known if name in table.column_names}
    gathers = resource.gathers
    if gathers is not None:
        listed = known if "multiIndex" in gathers.roles else table.column_names
        table = _gather_rows(table, gathers.name, [name for name in listed if name != gathers.name])
    role = next(iter(expected)) if len(expected) == 1 else expected or None
    by_default: dict[str, Any] = {"id": (gathers or resource.index[0]).name, "expected": role}
    taken = {*known, *(column.name for column in resource.index), *(place.name for place in targets.privileged)}
    for column in resource.columns:
        if column.name not in table.column_names or column.name in taken:
            continue
        if "instanceWeight" in column.roles:
            by_default["weight"] = column.name
            taken.add(column.name)
        elif "key" in column.roles and "attribute" not in column.roles:
            taken.add(column.name)
        elif "suggestedGroupingKey" in column.roles and gathers is None:
            by_default.setdefault("cluster", column.name)
    inputs = [name for name in table.column_names if name not in taken]
    by_default["input"] = inputs or [by_default["id"]]
    used = {*inputs, *known, by_default["id"], by_default.get("weight")}
    by_default["metadata"] = [name for name in table.column_names if name not in used]
    return Dataset.from_arrow(table, name=name, **{**by_default, **roles})


def _gather_rows(table: pa.Table, by: str, listed: Sequence[str]) -> pa.Table:
    """One row for each value of a column, as they first occur; listed columns become lists, others the first value."""
    positions = gathered_positions(table.column(by)).to_numpy()
    first = pa.array(np.unique(positions, return_index=True)[1])
    columns = {
        name: lists_by_row(join_chunks(table.column(name)), positions, len(first))
        if name in listed
        else table.column(name).take(first)
        for name in table.column_names
    }
    return pa.table(columns)


def gathered_positions(values: pa.ChunkedArray) -> pa.Array:
    """The number of the example that each row belongs to, in the order in which examples first occur."""
    return join_chunks(values).dictionary_encode(null_encoding="encode").indices.cast(pa.int64())


# Writing


def dataset_document(document: DatasetDocument, version: str = "4.1.1") -> dict[str, Any]:
    """A dataset document as the object of a datasetDoc.json."""
    old = version.startswith("3.")
    about = {
        "datasetID": document.id,
        "datasetName": document.name or "NULL",
        "license": "unknown",
        **document.about,
        "datasetVersion": document.version,
        "datasetSchemaVersion": version,
        "redacted": document.redacted,
    }
    return {"about": about, "dataResources": [_resource_to_write(r, old) for r in document.resources]}


def write_dataset(document: DatasetDocument, path: str | os.PathLike[str], version: str = "4.1.1") -> None:
    """Writes a datasetDoc.json, without the files it describes."""
    write_json(dataset_document(document, version), path, parents=True)


def _resource_to_write(resource: Resource, old: bool) -> dict[str, Any]:
    endings = {format: [format.rpartition("/")[2]] for format in resource.formats}
    made: dict[str, Any] = {
        "resID": resource.id,
        "resPath": resource.path,
        "resType": resource.type,
        "resFormat": list(resource.formats) if old else endings,
        "isCollection": resource.collection,
    }
    if resource.columns:
        made["columns"] = [*map(_column_to_write, resource.columns)]
    return made


def _column_to_write(column: Column) -> dict[str, Any]:
    made = {
        "colIndex": column.index,
        "colName": column.name,
        "colDescription": column.description,
        "colType": column.type,
        "role": list(column.roles),
    }
    if (to := column.refers_to) is not None:
        made["refersTo"] = {"resID": to.resource, "resObject": to.object if to.name is None else {to.object: to.name}}
    return {key: value for key, value in made.items() if value is not None}


def described(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    """The name of each column and the type that a document gives it."""
    for column in schema:
        kind = column.type
        vector = pa.types.is_list(kind) and pa.types.is_primitive(kind.value_type)
        words = (
            (pa.types.is_boolean(kind), "boolean"),
            (pa.types.is_integer(kind), "integer"),
            (pa.types.is_floating(kind), "real"),
            (pa.types.is_temporal(kind), "dateTime"),
            (vector, "realVector"),
        )
        yield column.name, next((word for fits, word in words if fits), "string")
