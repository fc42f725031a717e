"""Schemas of rows: pydantic, Arrow and JSON Schema as three forms of one schema, and the validation of rows.

Schema.of(Answer).arrow              a pydantic model as Arrow …
Schema.of(arrow).json                … an Arrow schema as JSON Schema …
Schema.of(json).model                … and a JSON Schema as a pydantic model; nothing is lost on the way
Schema.of("text.Text").validate(rows)

data.py          `Schema`, names, products, stored schemas
kinds.py         the types that a schema consists of
stored.py        `Int8` … `UInt64`, `Float32`, `Float64` for pydantic models
models.py, arrow.py, json_schema.py   the three forms
declared.py      checks of a schema itself
objects.py, tables.py   validation of rows: Python objects, or tables
limits.py        bounds, choices and lengths of whole columns
faults.py        faults and their places
keys.py          `_index_` and other reserved names, derived ids
named/           the named schemas
"""

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.data.schema.arrow import (
        decode_schema as decode_schema,
        encode_schema as encode_schema,
        field_with_docstring as field_with_docstring,
        schema_docstring as schema_docstring,
        subset_schema as subset_schema,
    )
    from evaluand.data.schema.data import (
        DataSchema as DataSchema,
        DyffDataSchema as DyffDataSchema,
        Schema as Schema,
        find as find,
        names as names,
        register as register,
    )
    from evaluand.data.schema.faults import RowFault as RowFault, SchemaError as SchemaError
    from evaluand.data.schema.keys import is_reserved as is_reserved
    from evaluand.data.schema.stored import (
        Float32 as Float32,
        Float64 as Float64,
        Int8 as Int8,
        Int16 as Int16,
        Int32 as Int32,
        Int64 as Int64,
        Json as Json,
        SchemaModel as SchemaModel,
        UInt8 as UInt8,
        UInt16 as UInt16,
        UInt32 as UInt32,
        UInt64 as UInt64,
        fixed_list as fixed_list,
        sized as sized,
    )
    from evaluand.data.schema.values import ValueSchema as ValueSchema

__getattr__, __dir__ = lazy_names(__name__)
