"""Schemas of rows: pydantic, Arrow and JSON Schema as three forms of one thing, and rows held to it.

    Schema.of(Answer).arrow              a pydantic model as Arrow …
    Schema.of(arrow).json                … an Arrow schema as JSON Schema …
    Schema.of(json).model                … and a JSON Schema as a pydantic model; nothing is lost on the way
    Schema.of("text.Text").validate(rows)

    kinds.py         what a schema is made of
    stored.py        Int8 … UInt64, Float32, Float64 for pydantic models
    models.py, arrow.py, json_schema.py   the three forms
    rows.py          rows held to a schema: of Python objects (objects.py) or in tables (tables.py)
    limits.py        bounds, choices and lengths, in columns
    faults.py        what is wrong, and where
    keys.py          `_index_` and its like, reserved names, ids derived from others
    data.py          names, products, stored schemas

The named schemas themselves are in `evaluand/schemas/`.
"""

from __future__ import annotations

from evaluand.data.schema.arrow import (
    decode_schema,
    encode_schema,
    field_with_docstring,
    schema_docstring,
    subset_schema,
)
from evaluand.data.schema.data import DataSchema, DyffDataSchema, Schema, find, names, register
from evaluand.data.schema.faults import RowFault, SchemaError
from evaluand.data.schema.keys import is_reserved
from evaluand.data.schema.stored import (
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Json,
    SchemaModel,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    fixed_list,
    sized,
)

__all__ = [
    "DataSchema",
    "DyffDataSchema",
    "Float32",
    "Float64",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "Json",
    "RowFault",
    "Schema",
    "SchemaError",
    "SchemaModel",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "decode_schema",
    "encode_schema",
    "field_with_docstring",
    "find",
    "fixed_list",
    "is_reserved",
    "names",
    "register",
    "schema_docstring",
    "sized",
    "subset_schema",
]
