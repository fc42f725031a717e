"""JSON Schemas (draft 2020-12) as `StructType`, and back.

The `format` of a number is its storage width, as in OpenAPI's registry of formats; limits without a keyword in either
have one that begins with `x-`. Objects have no fields but those they name, since there is no column for others: an
object that omits `additionalProperties` is read that way (few schemas set it), one that allows others is refused.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from evaluand.core.errors import SpecError, with_article
from evaluand.data.schema.kinds import (
    KINDS,
    MISSING,
    RANGES,
    WORDS,
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

_ANNOTATIONS: Final = {
    *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"),
    *("$schema", "$id", "$comment", "$defs", "definitions"),
}
_REF = ("#/$defs/", "#/definitions/")


def write_json_schema(struct: StructType) -> dict[str, Any]:
    """The JSON Schema of a row type."""
    writer = _Writer()
    schema = writer.struct(struct, struct.title)
    return ({"$defs": writer.defs} if writer.defs else {}) | schema


class _Writer:
    """Writes types as JSON Schemas, and collects the definitions that they refer to."""

    def __init__(self) -> None:
        self.defs: dict[str, Any] = {}

    def struct(self, struct: StructType, title: str) -> dict[str, Any]:
        schema: dict[str, Any] = {"additionalProperties": False}
        if struct.doc:
            schema["description"] = struct.doc
        schema["properties"] = {each.name: self._field(each) for each in struct.fields}
        required = [each.name for each in struct.fields if each.required]
        return schema | ({"required": required} if required else {}) | {"title": title or "Item", "type": "object"}

    def _field(self, field: Field) -> dict[str, Any]:
        schema = self._nullable(field.type, field.nullable, field.name)
        if field.doc:
            schema["description"] = field.doc
        if field.default is not MISSING:
            schema["default"] = to_json(field.type, field.default)
        return schema if "$ref" in schema else schema | {"title": field.name.replace("_", " ").strip().title()}

    def _nullable(self, type_: Type, nullable: bool, name: str) -> dict[str, Any]:
        schema = self._type(type_, name)
        return {"anyOf": [schema, {"type": "null"}]} if nullable else schema

    def _type(self, type_: Type, name: str) -> dict[str, Any]:
        if isinstance(type_, Scalar):
            low, high = RANGES.get(type_.kind, (None, None))
            bounds = {} if low is None else {"minimum": low, "maximum": high}
            return dict(KINDS[type_.kind].json) | bounds | keywords(type_)
        if isinstance(type_, StructType):
            return {"$ref": f"#/$defs/{self._define(type_, type_.title or name.title().replace('_', ''))}"}
        if isinstance(type_, Map):
            value = self._nullable(type_.value, type_.nullable, name)
            return {"type": "object", "additionalProperties": value} | _lengths(type_, "minProperties", "maxProperties")
        item = self._nullable(type_.item, type_.nullable, name)
        return {"type": "array", "items": item} | _lengths(type_, "minItems", "maxItems")

    def _define(self, struct: StructType, title: str) -> str:
        """Define an object and return the name of the definition: its title, numbered if another object has it."""
        schema, title = self.struct(struct, title), re.sub(r"[^\w.-]", "_", title)
        name, number = title, 1
        while name in self.defs and self.defs[name] != schema:
            number += 1
            name = f"{title}{number}"
        self.defs[name] = schema
        return name


def _lengths(type_: Array | Map, least: str, most: str) -> dict[str, int]:
    lengths = {least: type_.min_length, most: type_.max_length}
    return {word: length for word, length in lengths.items() if length is not None}


def read_json_schema(schema: Mapping[str, Any]) -> StructType:
    """The row type that a JSON Schema describes."""
    reader = _Reader(schema)
    struct, nullable = reader.type(schema, "$", ())
    if reader.faults:
        raise SpecError("\n".join(reader.faults))
    if not isinstance(struct, StructType) or nullable:
        raise SpecError("$: the schema of a row must be an object with properties")
    return struct


class _Reader:
    """Reads the parts of a JSON Schema and collects those that cannot be expressed.

    `above` holds the names of the definitions that a part is in, to find one that contains itself.
    """

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root
        self.faults: list[str] = []
        self.definitions: dict[str, tuple[Type, bool]] = {}

    def type(self, part: Any, path: str, above: tuple[str, ...]) -> tuple[Type, bool]:
        """The type of a part, and whether it may be null."""
        if not isinstance(part, Mapping):
            return self._refuse(path, f"is {with_article(type(part).__name__)}; give an object")
        try:
            check_shapes(part)
            _check_parts(part)
        except ValueError as error:
            return self._refuse(path, str(error))
        if "$ref" in part:
            return self._reference(part, path, above)
        alternatives = part.get("anyOf", part.get("oneOf"))
        if alternatives is not None:
            return self._union(part, alternatives, path, above)
        if isinstance(part.get("allOf"), list) and len(part["allOf"]) == 1 and not {"type", "enum"} & part.keys():
            self._check_keywords(part, {"allOf"}, path)
            return self.type(part["allOf"][0], path, above)
        types = part.get("type")
        if isinstance(types, list):
            rest = [each for each in types if each != "null"]
            if len(rest) != 1:
                return self._refuse(path, f"may be {' or '.join(map(str, types))}; {_UNION}")
            choices = part["enum"] if isinstance(part.get("enum"), list) else [None]
            enum = {"enum": [each for each in choices if each is not None]} if "enum" in part else {}
            nullable = len(rest) < len(types) and None in choices
            return self._single({**part, "type": rest[0]} | enum, path, above), nullable
        return self._single(part, path, above), False

    def _reference(self, part: Mapping[str, Any], path: str, above: tuple[str, ...]) -> tuple[Type, bool]:
        ref = part["$ref"]
        self._check_keywords(part, {"$ref"}, path)
        prefix = next((prefix for prefix in _REF if isinstance(ref, str) and ref.startswith(prefix)), "")
        name = ref[len(prefix) :] if prefix else ""
        definition = self.root.get(prefix.strip("#/"), {}).get(name) if prefix else None
        if definition is None:
            return self._refuse(path, f"refers to {ref!r}, which is not defined in this schema")
        if name in above:
            return self._refuse(path, f"{name} contains itself")
        if ref not in self.definitions:
            self.definitions[ref] = self.type(definition, path, (*above, name))
        return self.definitions[ref]

    def _union(self, part: Mapping[str, Any], parts: Any, path: str, above: tuple[str, ...]) -> tuple[Type, bool]:
        rest = [each for each in parts if each != {"type": "null"}] if isinstance(parts, list) else []
        if len(rest) != 1:
            return self._refuse(path, f"may be one of several types; {_UNION}")
        self._check_keywords(part, {"anyOf"} if "anyOf" in part else {"oneOf"}, path)
        type_, nullable = self.type(rest[0], path, above)
        return type_, nullable or len(rest) < len(parts)

    def _single(self, part: Mapping[str, Any], path: str, above: tuple[str, ...]) -> Type:
        part = _normalise_choices(part)
        kind = part.get("type")
        if kind == "object" or (kind is None and "properties" in part):
            return self._object(part, path, above)
        if kind == "array":
            return self._array(part, path, above)
        if kind in ("boolean", "integer", "number", "string"):
            self._check_keywords(part, {"type", "format", "contentEncoding", "contentMediaType", *WORDS}, path)
            try:
                return read_scalar(_read_kind(part), part)
            except (ValueError, TypeError) as error:
                return self._refuse(path, f"a limit cannot be read: {error}")[0]
        problem = "has no type" if kind is None else f"is of type {kind!r}"
        return self._refuse(path, f"{problem}; give one type of JSON Schema")[0]

    def _object(self, part: Mapping[str, Any], path: str, above: tuple[str, ...]) -> Type:
        others = part.get("additionalProperties")
        if "properties" not in part and isinstance(others, Mapping):
            self._check_keywords(part, {"type", "additionalProperties", "minProperties", "maxProperties"}, path)
            value, nullable = self.type(others, f"{path}{{}}", above)
            return Map(value, nullable, part.get("minProperties"), part.get("maxProperties"))
        if "properties" not in part:
            return self._refuse(path, "is an object of any shape; give its properties or additionalProperties")[0]
        self._check_keywords(part, {"type", "properties", "required", "additionalProperties"}, path)
        if not part["properties"]:
            return self._refuse(path, "has no properties")[0]
        if isinstance(others, Mapping):
            return self._refuse(path, "has both properties and a type of additionalProperties; give one of them")[0]
        if others not in (None, False):
            text = orjson.dumps(others).decode()
            return self._refuse(
                path,
                f"allows other properties (additionalProperties: {text}), which have no columns; name them, or set "
                "additionalProperties to false",
            )[0]
        required = part.get("required", [])
        for name in required:
            if name not in part["properties"]:
                return self._refuse(path, f"requires {name!r}, which is not one of its properties")[0]
        properties = part["properties"].items()
        fields = (self._field(name, inner, name in required, path, above) for name, inner in properties)
        return StructType(tuple(fields), str(part.get("title", "")), str(part.get("description", "")))

    def _field(self, name: str, part: Any, required: bool, path: str, above: tuple[str, ...]) -> Field:
        type_, nullable = self.type(part, f"{path}.{name}", above)
        words = part if isinstance(part, Mapping) else {}
        default = MISSING
        if "default" in words and (words["default"] is not None or nullable):
            default = from_json(type_, words["default"])
        return Field(name, type_, nullable, required, default, str(words.get("description", "")))

    def _array(self, part: Mapping[str, Any], path: str, above: tuple[str, ...]) -> Type:
        self._check_keywords(part, {"type", "items", "minItems", "maxItems"}, path)
        if "items" not in part:
            return self._refuse(path, "is a list without a type of items; give items")[0]
        item, nullable = self.type(part["items"], f"{path}[]", above)
        return Array(item, nullable, part.get("minItems"), part.get("maxItems"))

    def _check_keywords(self, part: Mapping[str, Any], known: set[str], path: str) -> None:
        for word in sorted(part.keys() - known - _ANNOTATIONS):
            if not word.startswith("x-"):
                self._refuse(path, f"the keyword {word!r} is not supported")

    def _refuse(self, path: str, problem: str) -> tuple[Type, bool]:
        """Collect a fault, and return any type so that reading goes on."""
        self.faults.append(f"{path}: {problem}")
        return Scalar("string"), False


_UNION: Final = "only a type or null is supported, no other union"


def _check_parts(part: Mapping[str, Any]) -> None:
    """Refuse keywords whose values JSON Schema does not allow."""
    for word in ("properties", "$defs", "definitions"):
        parts = part.get(word, {})
        if not isinstance(parts, Mapping) or not all(isinstance(name, str) for name in parts):
            raise ValueError(f"{word} is {with_article(type(parts).__name__)}; give an object: name: schema")
    required = part.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        raise ValueError(f"required is {required!r}; give a list of names")


def _normalise_choices(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part with `const` as `enum`, and with the type of its choices if it has no type."""
    if "const" in part:
        part = {word: value for word, value in part.items() if word != "const"} | {"enum": [part["const"]]}
    if "type" not in part and isinstance(part.get("enum"), list):
        kinds = {_JSON_TYPES.get(type(choice)) for choice in part["enum"]}
        if len(kinds) == 1:
            part = {**part, "type": kinds.pop()}
    return part


_JSON_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string"}
_BY_FORMAT = {(kind.json["type"], kind.json["format"]): name for name, kind in KINDS.items() if "format" in kind.json}
_OTHER_FORMATS = {("string", "time"): "time", ("string", "base64"): "binary", ("string", "byte"): "binary"}
_WITHOUT_FORMAT = {"boolean": "bool", "integer": "int64", "number": "float64", "string": "string"}


def _read_kind(part: Mapping[str, Any]) -> str:
    """The kind of a scalar."""
    json_type, format = part["type"], part.get("format")
    key = (json_type, str(format))
    kind = _WITHOUT_FORMAT[json_type] if format is None else _BY_FORMAT.get(key) or _OTHER_FORMATS.get(key)
    if kind is None:
        raise ValueError(f"the format {format!r} of {with_article(json_type)} cannot be validated; leave it out")
    if json_type == "integer" and format is None:
        low, high = (
            value if isinstance(value := part.get(word), int | float) else 0 for word in ("minimum", "maximum")
        )
        kind = "uint64" if high > RANGES["int64"][1] and low >= 0 else kind
    encoding, media = part.get("contentEncoding"), part.get("contentMediaType")
    if encoding is not None and (encoding, kind) not in (("base64", "binary"), ("base64", "string")):
        raise ValueError(
            f"contentEncoding {encoding!r} of {with_article(kind)} is not supported; only text in base64 is"
        )
    if media is not None and (media, kind, encoding) != (_JSON, "string", None):
        raise ValueError(f"contentMediaType {media!r} cannot be validated; only {_JSON} of plain text can be")
    return "binary" if encoding else "json" if media else kind


_JSON: Final = "application/json"
