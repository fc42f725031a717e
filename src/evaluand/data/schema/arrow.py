"""Arrow schemas as `StructType`, and back.

The metadata of a field holds its documentation under `__doc__`, and under `evaluand.schema` what an Arrow type cannot
express: bounds, choices, defaults, lengths, as keywords of JSON Schema.

There are two written forms. The native form expresses nullability in the Arrow types. The Dyff form declares every
field nullable, and the keyword `null` holds the real nullability; in a Dyff schema with a documented `_index_`, fields
without that keyword are not nullable.
"""

import base64
import binascii
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import orjson
import pyarrow as pa

from evaluand.core.errors import SpecError, nearest
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
    from_json,
    keywords,
    read_scalar,
    to_json,
)

DOC: Final = b"__doc__"
KEYWORDS: Final = b"evaluand.schema"
JSON: Final = (b"evaluand", b"json")
"""The metadata of a text column that contains JSON, as in evaluand's own tables."""

_KEYS = {each.name: each for each in (keys.INDEX_FIELD, keys.REPLICATION_FIELD, keys.RESPONSE_INDEX_FIELD)}


def encode_schema(schema: pa.Schema) -> str:
    """An Arrow schema as text: its IPC form in base64."""
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def decode_schema(text: str) -> pa.Schema:
    """The Arrow schema of a text that `encode_schema` returned.

    Raises:
        SpecError: it is not such a text.

    Example:
        >>> decode_schema(encode_schema(pa.schema([("text", pa.string())])))
        text: string
    """
    try:
        return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text, validate=True)))
    except (binascii.Error, pa.ArrowException, OSError, TypeError, ValueError) as error:
        raise SpecError(f"this is not an encoded Arrow schema: {error}; create one with encode_schema") from None


def field_with_docstring(
    name: str,
    type: pa.DataType,
    nullable: bool = True,
    metadata: Mapping[Any, Any] | None = None,
    *,
    docstring: str | None = None,
) -> pa.Field:
    """An Arrow field with its documentation."""
    with_doc = dict(metadata or {}) | ({DOC: docstring} if docstring is not None else {})
    return pa.field(name, type, nullable, with_doc or None)


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
    """The fields of a schema with their types and documentation, one per line."""
    lines = []
    for each in schema:
        lines.append(f"{each.name} : {each.type}")
        if doc := _read_doc(each):
            lines.append(f"    {doc}")
    return "\n".join(lines)


def field_names(fields: Iterable[pa.Field], path: str = "") -> Iterator[tuple[str, str]]:
    """The path and name of each field and of the fields inside it.

    Example:
        >>> list(field_names(pa.schema([("a", pa.list_(pa.struct([("b", pa.int8())])))])))
        [('a', 'a'), ('a[].b', 'b')]
    """
    for each in fields:
        yield f"{path}{each.name}", each.name
        yield from _inner_names(each.type, f"{path}{each.name}")


def repeated_names(schema: pa.Schema) -> list[str]:
    """The paths at which several fields have the same name."""
    counts = Counter(path for path, _ in field_names(schema))
    return [path for path, times in counts.items() if times > 1]


def _inner_names(kind: pa.DataType, path: str) -> Iterator[tuple[str, str]]:
    if pa.types.is_map(kind):
        return _inner_names(kind.item_type, f"{path}{{}}")
    if is_list_type(kind):
        return _inner_names(kind.value_type, f"{path}[]")
    return field_names((kind.field(i) for i in range(kind.num_fields)), f"{path}.")


# Writing


def write_arrow(struct: StructType, *, dyff: bool = False) -> pa.Schema:
    """The Arrow schema of a row type, in the native form or in Dyff's."""
    documented = (keys.INDEX, keys.INDEX_FIELD.doc) in ((each.name, each.doc) for each in struct.fields)
    writer = _Writer(dyff, implied=dyff and documented)
    words = {} if writer.implied else _title_words(struct)
    return pa.schema([writer.field(each) for each in struct.fields], {KEYWORDS: orjson.dumps(words)} if words else None)


def arrow_type(type_: Type, *, dyff: bool = False) -> pa.DataType:
    """The Arrow type of a type, in the native form or in Dyff's."""
    return _Writer(dyff, implied=dyff).type(type_)


def _title_words(type_: Type) -> dict[str, Any]:
    if not isinstance(type_, StructType):
        return {}
    return {word: value for word, value in (("title", type_.title), ("description", type_.doc)) if value}


class _Writer:
    """Writes Arrow fields: all nullable with `dyff`; with `implied`, those without the keyword `null` are not."""

    def __init__(self, dyff: bool, implied: bool) -> None:
        self.dyff, self.implied = dyff, implied

    def field(self, field: Field) -> pa.Field:
        known = self.implied and (_KEYS.get(field.name) == field or field.name == keys.RESPONSES)
        words: dict[str, Any] = {} if field.required else {"required": False}
        words |= {} if field.default is MISSING else {"default": to_json(field.type, field.default)}
        arrow = self._with_words(field.name, field.type, field.stores_null, known, field.nullable, words)
        return arrow.with_metadata({DOC: field.doc, **(arrow.metadata or {})}) if field.doc else arrow

    def type(self, type_: Type, known: bool = False) -> pa.DataType:
        if isinstance(type_, Scalar):
            if type_.kind == "decimal":
                decimal = pa.decimal128 if (type_.digits or 0) <= 38 else pa.decimal256
                return decimal(type_.digits, type_.places)
            return pa.binary(type_.max_length) if _has_fixed_size(type_) else KINDS[type_.kind].arrow
        if isinstance(type_, StructType):
            return pa.struct([self.field(each) for each in type_.fields])
        if isinstance(type_, Map):
            value = self._with_words("value", type_.value, type_.nullable, known, type_.nullable, {})
            return pa.map_(pa.string(), value)
        item = self._with_words("item", type_.item, type_.nullable, known, type_.nullable, {})
        return pa.list_(item, type_.max_length if type_.fixed else -1)

    def _with_words(
        self, name: str, type_: Type, stores_null: bool, known: bool, nullable: bool, words: dict[str, Any]
    ) -> pa.Field:
        """An Arrow field with its keywords; a `known` one of Dyff's needs none."""
        flag = stores_null or self.dyff
        words = {} if known else words | _title_words(type_) | _limit_words(type_)
        if nullable != (False if self.implied else flag):
            words["null"] = nullable
        metadata = {KEYWORDS: orjson.dumps(words)} if words else {}
        if isinstance(type_, Scalar) and type_.kind == "json":
            metadata |= dict([JSON])
        return pa.field(name, self.type(type_, known), flag, metadata or None)


def _limit_words(type_: Type) -> dict[str, Any]:
    """The limits that the Arrow type does not express."""
    if isinstance(type_, Scalar):
        limits = keywords(type_)
        for word in ("x-digits", "x-places", *(("x-min-bytes", "x-max-bytes") if _has_fixed_size(type_) else ())):
            limits.pop(word, None)
        return limits
    if isinstance(type_, StructType) or (isinstance(type_, Array) and type_.fixed):
        return {}
    words = ("minItems", "maxItems") if isinstance(type_, Array) else ("minProperties", "maxProperties")
    lengths = zip(words, (type_.min_length, type_.max_length), strict=True)
    return {word: value for word, value in lengths if value is not None}


def _has_fixed_size(scalar: Scalar) -> bool:
    return scalar.kind == "binary" and scalar.max_length is not None and scalar.min_length == scalar.max_length


# Reading


def read_arrow(schema: pa.Schema) -> StructType:
    """The row type that an Arrow schema describes."""
    implied = any(each.name == keys.INDEX and _read_doc(each) == keys.INDEX_FIELD.doc for each in schema)
    reader = _Reader(implied)
    reader.faults += [] if len(schema) else ["the schema has no fields"]
    reader.faults += [f"{path}: two columns have this name" for path in repeated_names(schema)]
    fields = tuple(reader.field(each, "") for each in schema)
    if reader.faults:
        raise SpecError("\n".join(reader.faults))
    words = _read_words(schema.metadata)
    return StructType(fields, words.get("title", ""), words.get("description", ""))


class _Reader:
    """Reads Arrow fields and collects those that cannot be expressed."""

    def __init__(self, implied: bool) -> None:
        self.implied = implied
        self.faults: list[str] = []

    def field(self, field: pa.Field, path: str) -> Field:
        known = _KEYS.get(field.name)
        if known and KEYWORDS not in (field.metadata or {}) and _read_doc(field) == known.doc:
            return known
        words = _read_words(field.metadata)
        type_ = self._type(field, f"{path}{field.name}", words)
        required = words.get("required", True)
        default = from_json(type_, words["default"]) if "default" in words else MISSING
        return Field(field.name, type_, self._nullable(field, words), required, default, _read_doc(field))

    def _nullable(self, field: pa.Field, words: Mapping[str, Any]) -> bool:
        return bool(words.get("null", False if self.implied else field.nullable))

    def _type(self, field: pa.Field, path: str, words: Mapping[str, Any]) -> Type:
        arrow = field.type
        if pa.types.is_struct(arrow):
            if not arrow.num_fields:
                self.faults.append(f"{path}: {arrow}: has no fields")
            fields = tuple(self.field(arrow.field(i), f"{path}.") for i in range(arrow.num_fields))
            return StructType(fields, words.get("title", ""), words.get("description", ""))
        if pa.types.is_map(arrow):
            if not (pa.types.is_string(arrow.key_type) or pa.types.is_large_string(arrow.key_type)):
                self.faults.append(f"{path}: {arrow}: the keys are not text")
            value, nullable = self._inner(arrow.item_field, f"{path}{{}}")
            return Map(value, nullable, words.get("minProperties"), words.get("maxProperties"))
        if is_list_type(arrow):
            item, nullable = self._inner(arrow.value_field, f"{path}[]")
            if pa.types.is_fixed_size_list(arrow):
                return Array(item, nullable, arrow.list_size, arrow.list_size)
            return Array(item, nullable, words.get("minItems"), words.get("maxItems"))
        try:
            return self._scalar(field, path, words)
        except (ValueError, TypeError) as error:
            self.faults.append(f"{path}: {arrow}: {error}")
            return Scalar("string")

    def _inner(self, field: pa.Field, path: str) -> tuple[Type, bool]:
        """The type of the items of a list or the values of a map, and whether they may be null."""
        words = _read_words(field.metadata)
        return self._type(field, path, words), self._nullable(field, words)

    def _scalar(self, field: pa.Field, path: str, words: Mapping[str, Any]) -> Scalar:
        arrow, words = field.type, dict(words)
        if pa.types.is_decimal(arrow):
            return read_scalar("decimal", words | {"x-digits": arrow.precision, "x-places": arrow.scale})
        if pa.types.is_fixed_size_binary(arrow):
            return read_scalar("binary", words | {"x-min-bytes": arrow.byte_width, "x-max-bytes": arrow.byte_width})
        if JSON in (field.metadata or {}).items():
            return read_scalar("json", words)
        if pa.types.is_timestamp(arrow) and arrow.tz not in (None, *_UTC):
            raise ValueError(f"timestamps with a time zone must be UTC; cast to {pa.timestamp(arrow.unit, 'UTC')}")
        kind = scalar_kind(arrow)
        if kind is None:
            self.faults.append(f"{path}: {arrow}: has no counterpart in a schema")
            return Scalar("string")
        return read_scalar(kind, words)


def scalar_kind(arrow: pa.DataType) -> str | None:
    """The kind of an Arrow type in any layout, or None where it has no counterpart."""
    if pa.types.is_dictionary(arrow):
        return scalar_kind(arrow.value_type)
    if pa.types.is_timestamp(arrow) and arrow.unit != "ns":
        return "datetime-local" if arrow.tz is None else "datetime"
    return _LAYOUTS.get(arrow) or _BY_TYPE.get(arrow)


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


def is_list_type(arrow: pa.DataType) -> bool:
    """Whether an Arrow type is a list in any layout."""
    tests = ("is_list", "is_large_list", "is_fixed_size_list", "is_list_view", "is_large_list_view")
    return any(getattr(pa.types, test)(arrow) for test in tests)


def _read_doc(field: pa.Field) -> str:
    return bytes((field.metadata or {}).get(DOC, b"")).decode()


def _read_words(metadata: Mapping[bytes, bytes] | None) -> dict[str, Any]:
    """The keywords in the metadata of a field or schema."""
    if not metadata or KEYWORDS not in metadata:
        return {}
    try:
        words = orjson.loads(metadata[KEYWORDS])
    except orjson.JSONDecodeError:
        words = None
    if not isinstance(words, dict):
        raise SpecError(f"the metadata {KEYWORDS.decode()!r} of a field is not a JSON object")
    try:
        check_shapes(words)
    except ValueError as error:
        raise SpecError(f"the metadata {KEYWORDS.decode()!r} of a field: {error}") from None
    return words
