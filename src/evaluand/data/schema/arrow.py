"""Arrow schemas to records, and back.

Fields carry their documentation as `__doc__` in their metadata, and as `evaluand.schema` what an Arrow type cannot say:
bounds, choices, defaults, lengths.

There are two ways to write a record. The plain one says in the types themselves what may be null. Dyff's writes every
field as nullable, so that what may not be null is marked beside it; only in a schema that begins with a documented
`_index_` is that the rule, and what may be null is marked.
"""

from __future__ import annotations

import base64
import binascii
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import orjson
import pyarrow as pa

from evaluand.core.errors import SpecError
from evaluand.core.registry import nearest
from evaluand.data.schema import keys
from evaluand.data.schema.kinds import (
    KINDS,
    MISSING,
    Array,
    Field,
    Map,
    Scalar,
    StructType,
    Type,
    check_shapes,
    json_value,
    keywords,
    native_value,
    scalar,
)

DOC: Final = b"__doc__"
MORE: Final = b"evaluand.schema"
JSON: Final = (b"evaluand", b"json")
"""How the tables of evaluand mark a text that is JSON."""

_KEYS = {each.name: each for each in (keys.INDEX_FIELD, keys.REPLICATION_FIELD, keys.RESPONSE_INDEX_FIELD)}


def encode_schema(schema: pa.Schema) -> str:
    """An Arrow schema as text: base64 of its IPC form."""
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def decode_schema(text: str) -> pa.Schema:
    """The Arrow schema of a text that `encode_schema` made.

    Raises:
        SpecError: it is no such text.

    Example:
        >>> decode_schema(encode_schema(pa.schema([("text", pa.string())])))
        text: string
    """
    try:
        return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text, validate=True)))
    except (binascii.Error, pa.ArrowException, OSError, TypeError, ValueError) as error:
        raise SpecError(f"this is no encoded Arrow schema: {error}; make one with encode_schema") from None


def field_with_docstring(
    name: str,
    type: pa.DataType,
    nullable: bool = True,
    metadata: Mapping[Any, Any] | None = None,
    *,
    docstring: str | None = None,
) -> pa.Field:
    """An Arrow field with its documentation."""
    told = dict(metadata or {}) | ({DOC: docstring} if docstring is not None else {})
    return pa.field(name, type, nullable, told or None)


def subset_schema(schema: pa.Schema, field_names: Iterable[str]) -> pa.Schema:
    """The named fields of a schema, in the order of the names.

    Raises:
        SpecError: the schema has no such field.
    """
    names = list(field_names)
    for name in names:
        if name not in schema.names:
            raise SpecError(f"no field is called {name!r}{nearest(name, schema.names)}")
    return pa.schema([schema.field(name) for name in names], schema.metadata)


def schema_docstring(schema: pa.Schema) -> str:
    """The fields of a schema with their types and documentation, a line each."""
    return "\n".join(f"{each.name} : {each.type}{_after(_doc(each))}" for each in schema)


def field_names(fields: Iterable[pa.Field], path: str = "") -> Iterator[tuple[str, str]]:
    """The path and name of each field, and of those inside it.

    Example:
        >>> list(field_names(pa.schema([("a", pa.list_(pa.struct([("b", pa.int8())])))])))
        [('a', 'a'), ('a[].b', 'b')]
    """
    for each in fields:
        yield f"{path}{each.name}", each.name
        yield from _inner_names(each.type, f"{path}{each.name}")


def named_twice(schema: pa.Schema) -> list[str]:
    """The paths of fields whose names another field beside them has."""
    counts = Counter(path for path, _ in field_names(schema))
    return [path for path, times in counts.items() if times > 1]


def _inner_names(kind: pa.DataType, path: str) -> Iterator[tuple[str, str]]:
    if pa.types.is_map(kind):
        return _inner_names(kind.item_type, f"{path}{{}}")
    if is_list(kind):
        return _inner_names(kind.value_type, f"{path}[]")
    return field_names((kind.field(i) for i in range(kind.num_fields)), f"{path}.")


def _after(doc: str) -> str:
    return f"\n    {doc}" if doc else ""


# Writing


def write_arrow(record: StructType, *, dyff: bool = False) -> pa.Schema:
    """The Arrow schema of a record, in the plain way or in Dyff's."""
    writer = _Writer(dyff, implied=dyff and _implies(record))
    told = {} if writer.implied else _named(record)
    return pa.schema([writer.field(each) for each in record.fields], {MORE: orjson.dumps(told)} if told else None)


def arrow_type(given: Type, *, dyff: bool = False) -> pa.DataType:
    """The Arrow type of a type, in the plain way or in Dyff's."""
    return _Writer(dyff, implied=dyff).type(given)


def _implies(record: StructType) -> bool:
    return any(each.name == keys.INDEX and each.doc == keys.INDEX_FIELD.doc for each in record.fields)


def _named(given: Any) -> dict[str, Any]:
    if not isinstance(given, StructType):
        return {}
    return {word: value for word, value in (("title", given.title), ("description", given.doc)) if value}


class _Writer:
    def __init__(self, dyff: bool, implied: bool) -> None:
        self.dyff, self.implied = dyff, implied

    def field(self, given: Field) -> pa.Field:
        known = self.implied and (_KEYS.get(given.name) == given or given.name == keys.RESPONSES)
        made = self._marked(given.name, given.type, given.blank, known, given.nullable, self._of_field(given))
        return made.with_metadata({DOC: given.doc, **(made.metadata or {})}) if given.doc else made

    def type(self, given: Type, known: bool = False) -> pa.DataType:
        if isinstance(given, Scalar):
            return _scalar_type(given)
        if isinstance(given, StructType):
            return pa.struct([self.field(each) for each in given.fields])
        if isinstance(given, Map):
            return pa.map_(pa.string(), self._marked("value", given.value, given.nullable, known, given.nullable, {}))
        item = self._marked("item", given.item, given.nullable, known, given.nullable, {})
        return pa.list_(item, given.max_length if given.fixed else -1)

    def _marked(
        self, name: str, given: Type, nullable: bool, known: bool, may_be: bool, more: dict[str, Any]
    ) -> pa.Field:
        flag = nullable or self.dyff
        told = {} if known else more | _named(given) | _limits(given)
        if may_be != (False if self.implied else flag):
            told["null"] = may_be
        metadata = {MORE: orjson.dumps(told)} if told else {}
        if isinstance(given, Scalar) and given.kind == "json":
            metadata |= dict([JSON])
        return pa.field(name, self.type(given, known), flag, metadata or None)

    @staticmethod
    def _of_field(given: Field) -> dict[str, Any]:
        told: dict[str, Any] = {} if given.required else {"required": False}
        return told if given.default is MISSING else told | {"default": json_value(given.type, given.default)}


def _limits(given: Type) -> dict[str, Any]:
    """What the Arrow type does not say."""
    if isinstance(given, Scalar):
        told = keywords(given)
        for word in ("x-digits", "x-places", *(("x-min-bytes", "x-max-bytes") if _fixed_bytes(given) else ())):
            told.pop(word, None)
        return told
    if isinstance(given, StructType) or (isinstance(given, Array) and given.fixed):
        return {}
    words = ("minItems", "maxItems") if isinstance(given, Array) else ("minProperties", "maxProperties")
    lengths = zip(words, (given.min_length, given.max_length), strict=True)
    return {word: value for word, value in lengths if value is not None}


def _scalar_type(given: Scalar) -> pa.DataType:
    if given.kind == "decimal":
        made = pa.decimal128 if (given.digits or 0) <= 38 else pa.decimal256
        return made(given.digits, given.places)
    return pa.binary(given.max_length) if _fixed_bytes(given) else KINDS[given.kind].arrow


def _fixed_bytes(given: Scalar) -> bool:
    return given.kind == "binary" and given.max_length is not None and given.min_length == given.max_length


# Reading


def read_arrow(schema: pa.Schema) -> StructType:
    """The record that an Arrow schema describes.

    Raises:
        SpecError: every field that cannot be expressed, with its path and type.
    """
    implied = any(each.name == keys.INDEX and _doc(each) == keys.INDEX_FIELD.doc for each in schema)
    reader = _Reader(implied)
    reader.faults += [] if len(schema) else ["the schema has no fields"]
    reader.faults += [f"{path}: two columns have this name" for path in named_twice(schema)]
    fields = tuple(reader.field(each, "") for each in schema)
    if reader.faults:
        raise SpecError("\n".join(reader.faults))
    told = _more(schema.metadata)
    return StructType(fields, told.get("title", ""), told.get("description", ""))


class _Reader:
    def __init__(self, implied: bool) -> None:
        self.implied = implied
        self.faults: list[str] = []

    def field(self, given: pa.Field, path: str) -> Field:
        known = _KEYS.get(given.name)
        if known and MORE not in (given.metadata or {}) and _doc(given) == known.doc:
            return known
        told = _more(given.metadata)
        made = self._type(given, f"{path}{given.name}", told)
        required = told.get("required", True)
        default = native_value(made, told["default"]) if "default" in told else MISSING
        return Field(given.name, made, self._nullable(given, told), required, default, _doc(given))

    def _nullable(self, given: pa.Field, told: Mapping[str, Any]) -> bool:
        return bool(told.get("null", False if self.implied else given.nullable))

    def _type(self, given: pa.Field, path: str, told: Mapping[str, Any]) -> Type:
        kind = given.type
        if pa.types.is_struct(kind):
            if not kind.num_fields:
                self.faults.append(f"{path}: {kind}: has no fields")
            fields = tuple(self.field(kind.field(i), f"{path}.") for i in range(kind.num_fields))
            return StructType(fields, told.get("title", ""), told.get("description", ""))
        if pa.types.is_map(kind):
            value = kind.item_field
            if not (pa.types.is_string(kind.key_type) or pa.types.is_large_string(kind.key_type)):
                self.faults.append(f"{path}: {kind}: the keys are no texts")
            inner, told_inner = f"{path}{{}}", _more(value.metadata)
            made = self._type(value, inner, told_inner)
            return Map(made, self._nullable(value, told_inner), told.get("minProperties"), told.get("maxProperties"))
        if is_list(kind):
            item = kind.value_field
            told_item = _more(item.metadata)
            made, nullable = self._type(item, f"{path}[]", told_item), self._nullable(item, told_item)
            if pa.types.is_fixed_size_list(kind):
                return Array(made, nullable, kind.list_size, kind.list_size)
            return Array(made, nullable, told.get("minItems"), told.get("maxItems"))
        try:
            return self._scalar(given, path, told)
        except (ValueError, TypeError) as error:
            self.faults.append(f"{path}: {kind}: {error}")
            return Scalar("string")

    def _scalar(self, given: pa.Field, path: str, told: Mapping[str, Any]) -> Scalar:
        kind, words = given.type, dict(told)
        if pa.types.is_decimal(kind):
            return scalar("decimal", words | {"x-digits": kind.precision, "x-places": kind.scale})
        if pa.types.is_fixed_size_binary(kind):
            return scalar("binary", words | {"x-min-bytes": kind.byte_width, "x-max-bytes": kind.byte_width})
        if JSON in (given.metadata or {}).items():
            return scalar("json", words)
        if pa.types.is_timestamp(kind) and kind.tz not in (None, *_UTC):
            raise ValueError(f"a column of instants is in UTC; cast it to {pa.timestamp(kind.unit, 'UTC')}")
        name = kind_of(kind)
        if name is None:
            self.faults.append(f"{path}: {kind}: has no counterpart in a schema")
            return Scalar("string")
        return scalar(name, words)


def kind_of(given: pa.DataType) -> str | None:
    """The kind that an Arrow type without limits is, whichever way it is laid out."""
    if pa.types.is_dictionary(given):
        return kind_of(given.value_type)
    if pa.types.is_timestamp(given) and given.unit != "ns":
        return "datetime-local" if given.tz is None else "datetime"
    return _LAYOUTS.get(given) or _BY_TYPE.get(given)


_UTC: Final = ("UTC", "Etc/UTC", "Z", "+00:00")
_BY_TYPE = {kind.arrow: name for name, kind in KINDS.items() if name not in ("json", "decimal")}
_LAYOUTS = {
    pa.large_string(): "string",
    pa.string_view(): "string",
    pa.large_binary(): "binary",
    pa.binary_view(): "binary",
    pa.float16(): "float32",
    pa.date64(): "date",
    **{pa.time32(unit): "time" for unit in ("s", "ms")},
    **{pa.duration(unit): "duration" for unit in ("s", "ms")},
}


def is_list(given: pa.DataType) -> bool:
    """Whether an Arrow type is a list, whichever way it is laid out."""
    tests = ("is_list", "is_large_list", "is_fixed_size_list", "is_list_view", "is_large_list_view")
    return any(getattr(pa.types, test)(given) for test in tests)


def _doc(given: pa.Field) -> str:
    return bytes((given.metadata or {}).get(DOC, b"")).decode()


def _more(metadata: Mapping[bytes, bytes] | None) -> dict[str, Any]:
    if not metadata or MORE not in metadata:
        return {}
    try:
        told = orjson.loads(metadata[MORE])
    except orjson.JSONDecodeError:
        told = None
    if not isinstance(told, dict):
        raise SpecError(f"the metadata {MORE.decode()!r} of a field is no JSON object")
    try:
        check_shapes(told)
    except ValueError as error:
        raise SpecError(f"the metadata {MORE.decode()!r} of a field: {error}") from None
    return told
