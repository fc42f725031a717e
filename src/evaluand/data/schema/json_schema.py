"""JSON Schemas (draft 2020-12) to records, and back.

The `format` of a number says how wide it is stored, as in OpenAPI's registry of formats; what neither has a word for
has one that begins with `x-`. An object takes no other fields than those it names: there is no column for them. One
that does not say whether it takes others is read so, since hardly any says; one that says it does is refused.
"""

from __future__ import annotations

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
    json_value,
    keywords,
    native_value,
    scalar,
)

_ANNOTATIONS: Final = {
    *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"),
    *("$schema", "$id", "$comment", "$defs", "definitions"),
}
_REF = ("#/$defs/", "#/definitions/")


def write_json_schema(record: StructType, title: str = "") -> dict[str, Any]:
    """The JSON Schema of a record."""
    writer = _Writer()
    made = writer.record(record, title or record.title)
    return ({"$defs": writer.defs} if writer.defs else {}) | made


class _Writer:
    def __init__(self) -> None:
        self.defs: dict[str, Any] = {}

    def record(self, given: StructType, title: str) -> dict[str, Any]:
        made: dict[str, Any] = {"additionalProperties": False}
        if given.doc:
            made["description"] = given.doc
        made["properties"] = {each.name: self._field(each) for each in given.fields}
        required = [each.name for each in given.fields if each.required]
        return made | ({"required": required} if required else {}) | {"title": title or "Item", "type": "object"}

    def _field(self, given: Field) -> dict[str, Any]:
        made = self._nullable(given.type, given.nullable, given.name)
        if given.doc:
            made["description"] = given.doc
        if given.default is not MISSING:
            made["default"] = json_value(given.type, given.default)
        return made if "$ref" in made else made | {"title": given.name.replace("_", " ").strip().title()}

    def _nullable(self, given: Type, nullable: bool, name: str) -> dict[str, Any]:
        made = self._type(given, name)
        return {"anyOf": [made, {"type": "null"}]} if nullable else made

    def _type(self, given: Type, name: str) -> dict[str, Any]:
        if isinstance(given, Scalar):
            return _scalar(given)
        if isinstance(given, StructType):
            return {"$ref": f"#/$defs/{self._defined(given, given.title or name.title().replace('_', ''))}"}
        if isinstance(given, Map):
            value = self._nullable(given.value, given.nullable, name)
            return {"type": "object", "additionalProperties": value} | _lengths(given, "minProperties", "maxProperties")
        item = self._nullable(given.item, given.nullable, name)
        return {"type": "array", "items": item} | _lengths(given, "minItems", "maxItems")

    def _defined(self, given: StructType, title: str) -> str:
        """The name under which a record is defined: another number for another record of the same title."""
        made, title = self.record(given, title), re.sub(r"[^\w.-]", "_", title)
        name, number = title, 1
        while name in self.defs and self.defs[name] != made:
            number += 1
            name = f"{title}{number}"
        self.defs[name] = made
        return name


def _scalar(given: Scalar) -> dict[str, Any]:
    low, high = RANGES.get(given.kind, (None, None))
    whole = {} if low is None else {"minimum": low, "maximum": high}
    return dict(KINDS[given.kind].json) | whole | keywords(given)


def _lengths(given: Array | Map, least: str, most: str) -> dict[str, int]:
    lengths = {least: given.min_length, most: given.max_length}
    return {word: length for word, length in lengths.items() if length is not None}


def read_json_schema(schema: Mapping[str, Any]) -> StructType:
    """The record that a JSON Schema describes.

    Raises:
        SpecError: every place that cannot be expressed, with its path.
    """
    reader = _Reader(schema)
    made, nullable = reader.type(schema, "$", ())
    if reader.faults:
        raise SpecError("\n".join(reader.faults))
    if not isinstance(made, StructType) or nullable:
        raise SpecError("$: a schema of rows is an object with properties")
    return made


class _Reader:
    def __init__(self, whole: Mapping[str, Any]) -> None:
        self.whole = whole
        self.faults: list[str] = []
        self.referred: dict[str, tuple[Type, bool]] = {}

    def type(self, given: Any, path: str, above: tuple[str, ...]) -> tuple[Type, bool]:
        """The type of a part, and whether it may be null."""
        if not isinstance(given, Mapping):
            return self._refused(path, f"is {with_article(type(given).__name__)} where an object says what is allowed")
        try:
            check_shapes(given)
            _check_parts(given)
        except ValueError as error:
            return self._refused(path, str(error))
        if "$ref" in given:
            return self._referred(given, path, above)
        alternatives = given.get("anyOf", given.get("oneOf"))
        if alternatives is not None:
            return self._either(given, alternatives, path, above)
        if isinstance(given.get("allOf"), list) and len(given["allOf"]) == 1 and not {"type", "enum"} & given.keys():
            self._unknown(given, {"allOf"}, path)
            return self.type(given["allOf"][0], path, above)
        types = given.get("type")
        if isinstance(types, list):
            rest = [each for each in types if each != "null"]
            if len(rest) != 1:
                return self._refused(path, f"may be {' or '.join(map(str, types))}; one type or null can be, no other")
            listed = given["enum"] if isinstance(given.get("enum"), list) else [None]
            choices = {"enum": [each for each in listed if each is not None]} if "enum" in given else {}
            nullable = len(rest) < len(types) and None in listed
            return self._plain({**given, "type": rest[0]} | choices, path, above), nullable
        return self._plain(given, path, above), False

    def _referred(self, given: Mapping[str, Any], path: str, above: tuple[str, ...]) -> tuple[Type, bool]:
        ref = given["$ref"]
        self._unknown(given, {"$ref"}, path)
        prefix = next((prefix for prefix in _REF if isinstance(ref, str) and ref.startswith(prefix)), "")
        name = ref[len(prefix) :] if prefix else ""
        found = self.whole.get(prefix.strip("#/"), {}).get(name) if prefix else None
        if found is None:
            return self._refused(path, f"refers to {ref!r}, which is not here")
        if name in above:
            return self._refused(path, f"{name} contains itself")
        if ref not in self.referred:
            self.referred[ref] = self.type(found, path, (*above, name))
        return self.referred[ref]

    def _either(self, given: Mapping[str, Any], parts: Any, path: str, above: tuple[str, ...]) -> tuple[Type, bool]:
        rest = [each for each in parts if each != {"type": "null"}] if isinstance(parts, list) else []
        if len(rest) != 1:
            return self._refused(path, "may be one of several types; one type or null can be, no other union")
        self._unknown(given, {"anyOf"} if "anyOf" in given else {"oneOf"}, path)
        made, nullable = self.type(rest[0], path, above)
        return made, nullable or len(rest) < len(parts)

    def _plain(self, given: Mapping[str, Any], path: str, above: tuple[str, ...]) -> Type:
        given = _with_choices(given)
        kind = given.get("type")
        if kind == "object" or (kind is None and "properties" in given):
            return self._object(given, path, above)
        if kind == "array":
            return self._array(given, path, above)
        if kind in ("boolean", "integer", "number", "string"):
            self._unknown(given, {"type", "format", "contentEncoding", "contentMediaType", *WORDS}, path)
            try:
                return scalar(_kind(given), given)
            except (ValueError, TypeError) as error:
                return self._refused(path, f"a limit cannot be read: {error}")[0]
        why = "says no type, so that anything can be" if kind is None else f"is of type {kind!r}"
        return self._refused(path, f"{why}; one type is needed")[0]

    def _object(self, given: Mapping[str, Any], path: str, above: tuple[str, ...]) -> Type:
        others = given.get("additionalProperties")
        if "properties" not in given and isinstance(others, Mapping):
            self._unknown(given, {"type", "additionalProperties", "minProperties", "maxProperties"}, path)
            made, nullable = self.type(others, f"{path}{{}}", above)
            return Map(made, nullable, given.get("minProperties"), given.get("maxProperties"))
        if "properties" not in given:
            return self._refused(path, "is any object; its properties, or the type of its values, are needed")[0]
        self._unknown(given, {"type", "properties", "required", "additionalProperties"}, path)
        if not given["properties"]:
            return self._refused(path, "has no properties")[0]
        if isinstance(others, Mapping):
            return self._refused(path, "has properties and others beside; either can be, not both")[0]
        if others not in (None, False):
            told = f"takes any other properties (additionalProperties: {_json(others)}), for which there are no columns"
            return self._refused(path, f"{told}; name them, or say false")[0]
        required = given.get("required", [])
        for name in required:
            if name not in given["properties"]:
                return self._refused(path, f"requires {name!r}, which is none of its properties")[0]
        fields = (self._field(name, part, name in required, path, above) for name, part in given["properties"].items())
        return StructType(tuple(fields), str(given.get("title", "")), str(given.get("description", "")))

    def _field(self, name: str, given: Any, required: bool, path: str, above: tuple[str, ...]) -> Field:
        made, nullable = self.type(given, f"{path}.{name}", above)
        told = given if isinstance(given, Mapping) else {}
        default = MISSING
        if "default" in told and (told["default"] is not None or nullable):
            default = native_value(made, told["default"])
        return Field(name, made, nullable, required, default, str(told.get("description", "")))

    def _array(self, given: Mapping[str, Any], path: str, above: tuple[str, ...]) -> Type:
        self._unknown(given, {"type", "items", "minItems", "maxItems"}, path)
        if "items" not in given:
            return self._refused(path, "is a list whose items are not said; items is needed")[0]
        made, nullable = self.type(given["items"], f"{path}[]", above)
        return Array(made, nullable, given.get("minItems"), given.get("maxItems"))

    def _unknown(self, given: Mapping[str, Any], known: set[str], path: str) -> None:
        for word in sorted(given.keys() - known - _ANNOTATIONS):
            if not word.startswith("x-"):
                self._refused(path, f"{word} cannot be expressed")

    def _refused(self, path: str, why: str) -> tuple[Type, bool]:
        self.faults.append(f"{path}: {why}")
        return Scalar("string"), False


def _check_parts(given: Mapping[str, Any]) -> None:
    """Refuses parts of another form than JSON Schema has.

    Raises:
        ValueError: names the word.
    """
    for word in ("properties", "$defs", "definitions"):
        parts = given.get(word, {})
        if not isinstance(parts, Mapping) or not all(isinstance(name, str) for name in parts):
            raise ValueError(
                f"{word} is {with_article(type(parts).__name__)}; give an object with a part for each name"
            )
    required = given.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        raise ValueError(f"required is {required!r}; give a list of names")


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()


def _with_choices(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """A part with `const` told as `enum`, and with the type that its choices have where it says none."""
    if "const" in given:
        given = {word: value for word, value in given.items() if word != "const"} | {"enum": [given["const"]]}
    if "type" not in given and isinstance(given.get("enum"), list):
        kinds = {_JSON_TYPES.get(type(choice)) for choice in given["enum"]}
        if len(kinds) == 1:
            given = {**given, "type": kinds.pop()}
    return given


_JSON_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string"}
_BY_FORMAT = {(kind.json["type"], kind.json["format"]): name for name, kind in KINDS.items() if "format" in kind.json}
_OTHER_FORMATS = {("string", "time"): "time", ("string", "base64"): "binary", ("string", "byte"): "binary"}
_PLAIN = {"boolean": "bool", "integer": "int64", "number": "float64", "string": "string"}


def _kind(given: Mapping[str, Any]) -> str:
    """The kind of a value; what nothing can be held to is refused."""
    kind, format = given["type"], given.get("format")
    found = _PLAIN[kind] if format is None else _BY_FORMAT.get((kind, format)) or _OTHER_FORMATS.get((kind, format))
    if found is None:
        raise ValueError(f"the format {format!r} of {with_article(kind)} is none that rows are held to; leave it out")
    if (
        kind == "integer"
        and format is None
        and _of(given, "maximum") > RANGES["int64"][1]
        and _of(given, "minimum") >= 0
    ):
        return "uint64"
    encoding, media = given.get("contentEncoding"), given.get("contentMediaType")
    if encoding is not None and (encoding, found) not in (("base64", "binary"), ("base64", "string")):
        raise ValueError(
            f"contentEncoding {encoding!r} is none of {with_article(found)}; only texts in base64 are read"
        )
    if media is not None and (media, found, encoding) != (_JSON, "string", None):
        raise ValueError(f"contentMediaType {media!r} is none that rows are held to; only {_JSON} of a text is")
    return "binary" if encoding else "json" if media else found


def _of(given: Mapping[str, Any], word: str) -> Any:
    value = given.get(word)
    return value if isinstance(value, int | float) else 0


_JSON: Final = "application/json"
