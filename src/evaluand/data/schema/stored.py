"""Sized number types for the annotations of pydantic models.

    class Answer(SchemaModel):
        confidence: Float32
        votes: UInt8

Plain `int` and `float` are stored in 64 bits.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Le
from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import core_schema

from evaluand.core.errors import SpecError
from evaluand.data.schema.kinds import KINDS, RANGES


@dataclass(frozen=True)
class Stored:
    """Marks an annotated type with its storage; `kind` is one of `kinds.KINDS`."""

    kind: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        """Refuse a float that would become infinite in 32 bits."""
        schema = handler(source)
        return core_schema.no_info_after_validator_function(_narrow, schema) if self.kind == "float32" else schema

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(schema), **KINDS[self.kind].json}


def _narrow(value: float) -> float:
    if math.isfinite(value) and abs(value) > FLOAT32_MAX:
        raise ValueError("the value is out of the range of float32")
    return value


FLOAT32_MAX = float(np.finfo(np.float32).max)

Int8 = Annotated[int, Ge(RANGES["int8"][0]), Le(RANGES["int8"][1]), Stored("int8")]
Int16 = Annotated[int, Ge(RANGES["int16"][0]), Le(RANGES["int16"][1]), Stored("int16")]
Int32 = Annotated[int, Ge(RANGES["int32"][0]), Le(RANGES["int32"][1]), Stored("int32")]
Int64 = Annotated[int, Ge(RANGES["int64"][0]), Le(RANGES["int64"][1]), Stored("int64")]
UInt8 = Annotated[int, Ge(RANGES["uint8"][0]), Le(RANGES["uint8"][1]), Stored("uint8")]
UInt16 = Annotated[int, Ge(RANGES["uint16"][0]), Le(RANGES["uint16"][1]), Stored("uint16")]
UInt32 = Annotated[int, Ge(RANGES["uint32"][0]), Le(RANGES["uint32"][1]), Stored("uint32")]
UInt64 = Annotated[int, Ge(RANGES["uint64"][0]), Le(RANGES["uint64"][1]), Stored("uint64")]
Float32 = Annotated[float, Stored("float32")]
Float64 = Annotated[float, Stored("float64")]
Json = Annotated[str, Stored("json")]
"""Text that is JSON."""

SIZED: dict[str, Any] = {
    "int8": Int8,
    "int16": Int16,
    "int32": Int32,
    "int64": Int64,
    "uint8": UInt8,
    "uint16": UInt16,
    "uint32": UInt32,
    "uint64": UInt64,
    "float32": Float32,
    "float64": Float64,
}


class SchemaModel(BaseModel):
    """A pydantic model without extra fields, filled by their names in the data or in Python."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


def sized(kind: str, **bounds: Any) -> Any:
    """A sized number with bounds named as in `pydantic.Field`.

    Args:
        kind: `int8` … `uint64`, `float32` or `float64`.
        bounds: `ge`, `gt`, `le`, `lt`, `multiple_of`.
    """
    return Annotated[SIZED[kind], Field(**bounds)] if bounds else SIZED[kind]


def fixed_list(item: Any, *, list_size: Any = None) -> Any:
    """A list type, of fixed length if `list_size` is not None.

    Raises:
        SpecError: the size is not a positive integer.
    """
    if list_size is None:
        return list[item]
    if not isinstance(list_size, int) or isinstance(list_size, bool) or list_size < 1:
        raise SpecError(f"list_size is {list_size!r}; give an integer of at least 1")
    return Annotated[list[item], Field(min_length=list_size, max_length=list_size)]
