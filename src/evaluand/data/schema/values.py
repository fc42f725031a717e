"""Schemas of single values: what one output of a task, or one item of an answer, must be.

A `Schema` describes rows. An output may also be a text, a number or a list, so its schema is that of a row whose only
field is the value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

import pyarrow as pa
from pydantic import BaseModel

from evaluand.core import identity
from evaluand.core.errors import DataError, plural
from evaluand.data.schema import keys
from evaluand.data.schema.data import DataSchema, DyffDataSchema, Schema
from evaluand.data.schema.declared import check_declared, check_rows
from evaluand.data.schema.faults import Faults
from evaluand.data.schema.kinds import Array, Field, Map, StructType, Type
from evaluand.data.schema.models import read_annotation

_VALUE: Final = "item"
_SHOWN: Final = 3


class ValueSchema:
    """The schema of one value.

    Args:
        schema: any form that `Schema.of` takes, also a JSON Schema of a text, a number or a list, or a Python type such
            as `list[str]`. Of a schema of outputs with a list `responses`, it is that of one response.

    Raises:
        SpecError: it is no schema; lists every fault.

    Example:
        >>> ValueSchema({"type": "array", "items": {"type": "string"}}).fault(["a", 1])
        'output[1] is an integer (1), not text'
        >>> ValueSchema(list[str]) == ValueSchema({"type": "array", "items": {"type": "string"}})
        True
    """

    def __init__(self, schema: Any) -> None:
        field = _read_field(schema)
        self._struct = StructType((replace(field, name=_VALUE),))

    @classmethod
    def of(cls, schema: Any) -> ValueSchema:
        return schema if isinstance(schema, cls) else cls(schema)

    def without(self, name: str) -> ValueSchema:
        """The schema without a field, if the value is an object that has it."""
        (field,) = self._struct.fields
        if not isinstance(field.type, StructType) or name not in field.type.names:
            return self
        rest = replace(field.type, fields=tuple(each for each in field.type.fields if each.name != name))
        return ValueSchema(Schema(rest))

    @cached_property
    def spec(self) -> dict[str, Any]:
        """The JSON Schema of a row with this value: equal for schemas that accept the same values."""
        return Schema(_without_names(self._struct)).json

    def fault(self, value: Any, name: str = "output") -> str:
        """What is wrong with a value; empty if it is valid.

        Times, UUIDs, decimals and bytes may be Python objects or have their JSON forms.
        """
        faults = self._faults(value)
        messages = [f"{each.path.replace(_VALUE, name, 1)} {each.message}" for each in faults[:_SHOWN]]
        if len(faults) > _SHOWN:
            messages.append(f"and {plural(len(faults) - _SHOWN, 'more fault')}")
        return "; ".join(messages)

    def json_faults(self, values: Sequence[Any]) -> Faults:
        """The faults of values in the forms of JSON; `row` is the number of the value, and paths begin with `item`."""
        return check_rows(self._struct, [{_VALUE: value} for value in values], json=True)[1]

    def _faults(self, value: Any) -> Faults:
        faults = check_rows(self._struct, [{_VALUE: value}])[1]
        if not faults:
            return faults
        try:
            stored = identity.decode(identity.encode(value))  # a model, an array, a data class as it is stored
        except DataError:
            return faults
        faults = check_rows(self._struct, [{_VALUE: stored}])[1]
        return faults and check_rows(self._struct, [{_VALUE: stored}], json=True)[1]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ValueSchema) and self.spec == other.spec

    def __hash__(self) -> int:
        return hash(identity.digest(self.spec))

    def __repr__(self) -> str:
        return f"ValueSchema({Schema(self._struct)!r})"


def _read_field(schema: Any) -> Field:
    """The schema as the type of a field."""
    is_model = isinstance(schema, type) and issubclass(schema, BaseModel)
    if isinstance(schema, Mapping) and not schema.keys() & {"arrowSchema", "components"}:
        item = dict(schema)
        shared = {word: item.pop(word) for word in ("$defs", "definitions") if word in item}
        row = {"type": "object", "properties": {_VALUE: item}, "required": [_VALUE]} | shared
        return _as_response(Schema.of(row).struct.fields[0])
    if is_model or isinstance(schema, Mapping | str | Schema | DataSchema | DyffDataSchema | pa.Schema):
        return _as_response(Field(_VALUE, Schema.of(schema).struct))
    type_, nullable = read_annotation(schema)
    check_declared(StructType((Field(_VALUE, type_, nullable),)), "")
    return Field(_VALUE, type_, nullable)


def _as_response(field: Field) -> Field:
    """The field of a single response, where the type is that of a row with a list `responses`."""
    if isinstance(field.type, StructType) and set(field.type.names) == _OUTPUT_NAMES:
        return Field(_VALUE, DataSchema.from_model(Schema(field.type)).response().struct)
    return field


_OUTPUT_NAMES: Final = {keys.INDEX, keys.REPLICATION, keys.RESPONSES}


def _without_names(struct: StructType) -> StructType:
    """A row type as its rows know it: without titles and documentation, the fields in the order of their names."""
    fields = (replace(each, type=_type_without_names(each.type), doc="") for each in struct.fields)
    return StructType(tuple(sorted(fields, key=lambda each: each.name)))


def _type_without_names(type_: Type) -> Type:
    if isinstance(type_, StructType):
        return _without_names(type_)
    if isinstance(type_, Array):
        return replace(type_, item=_type_without_names(type_.item))
    if isinstance(type_, Map):
        return replace(type_, value=_type_without_names(type_.value))
    return replace(type_, title="")
