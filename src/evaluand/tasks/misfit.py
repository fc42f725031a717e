"""Whether an output fits a schema: a part of JSON Schema, or an Arrow schema. Anything else is refused beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from evaluand.errors import SpecError, with_article


def misfit(schema: Any, value: Any) -> str | None:
    """Why a value does not fit, with its place; None where it does.

    Example:
        >>> misfit({"properties": {"text": {"type": "string"}}, "required": ["text"]}, {"text": 3})
        'text: is an int, not string'
    """
    if isinstance(schema, pa.Schema):
        return _misfit_of_arrow(schema, value)
    return _misfit(schema, value, "")


def schema_spec(schema: Any) -> Any:
    """A schema as data, for identities.

    Raises:
        SpecError: it is none, or says what is not checked.
    """
    if isinstance(schema, pa.Schema):
        return [[field.name, str(field.type), field.nullable] for field in schema]
    _check(schema)
    return schema


_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": Mapping,
    "array": list,
    "string": str,
    "number": (int, float),
    "integer": int,
    "boolean": bool,
    "null": type(None),
}
_CHECKED = ("type", "properties", "required", "items", "enum", "additionalProperties")
_TOLD = ("$schema", "$id", "title", "description", "default", "examples")


def _check(schema: Any) -> None:
    if not isinstance(schema, Mapping):
        raise SpecError(
            f"is {with_article(type(schema).__name__)}; give a JSON Schema as a mapping, or an Arrow schema"
        )
    unknown = [key for key in schema if key not in _CHECKED + _TOLD]
    if unknown:
        raise SpecError(f"{unknown[0]!r} is not checked here; what is checked: {', '.join(_CHECKED)}")
    wrong = [name for name in _types(schema) if name not in _TYPES]
    if wrong:
        raise SpecError(f"no type is called {wrong[0]!r}; there are {', '.join(_TYPES)}")
    if schema.get("additionalProperties", True) not in (True, False):
        raise SpecError("additionalProperties: give true or false")
    parts = schema.get("properties", {})
    if not isinstance(parts, Mapping):
        raise SpecError("properties: give a mapping name: schema")
    for part in (*parts.values(), *([schema["items"]] if "items" in schema else [])):
        _check(part)


def _types(schema: Mapping[str, Any]) -> list[Any]:
    given = schema.get("type", [])
    return given if isinstance(given, list) else [given]


def _misfit(schema: Mapping[str, Any], value: Any, place: str) -> str | None:
    types = _types(schema)
    at = f"{place}: " if place else ""
    if types and not any(_is(name, value) for name in types):
        return f"{at}is {with_article(type(value).__name__)}, not {' or '.join(types)}"
    if "enum" in schema and not any(value == one and type(value) is type(one) for one in schema["enum"]):
        return f"{at}is {value!r}, none of {', '.join(map(repr, schema['enum']))}"[:300]
    if isinstance(value, Mapping):
        parts = schema.get("properties", {})
        missing = [name for name in schema.get("required", []) if name not in value]
        if missing:
            return f"{at}{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
        more = [name for name in value if name not in parts] if schema.get("additionalProperties") is False else []
        if more:
            return f"{at}{', '.join(more)}: no field is called so"
        within = [(f"{place}.{name}".strip("."), parts[name], value[name]) for name in parts if name in value]
    elif isinstance(value, list) and "items" in schema:
        within = [(f"{place}[{i}]", schema["items"], item) for i, item in enumerate(value)]
    else:
        return None
    return next((told for where, part, item in within if (told := _misfit(part, item, where))), None)


def _is(name: str, value: Any) -> bool:
    if isinstance(value, bool) and name in ("number", "integer"):
        return False
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[name])


def _misfit_of_arrow(schema: pa.Schema, value: Any) -> str | None:
    if not isinstance(value, Mapping):
        return f"is {with_article(type(value).__name__)}, not an object"
    for field in schema:
        if value.get(field.name) is None and (field.name not in value or not field.nullable):
            return f"{field.name} is missing"
    more = [name for name in value if name not in schema.names]
    if more:
        return f"{', '.join(more)}: no field is called so"
    try:
        pa.array([dict(value)], pa.struct(schema))
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        return str(error)
    return None
