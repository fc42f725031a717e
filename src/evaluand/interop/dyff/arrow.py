"""`dyff.schema.arrow`: Arrow schemas of models, their encoding and their derived forms."""

from evaluand.data.schema.arrow import (
    decode_schema,
    encode_schema,
    field_with_docstring,
    schema_docstring,
    subset_schema,
)
from evaluand.data.schema.data import (
    annotation_type as arrow_type,
    arrow_schema,
    item_schema as make_item_schema,
    response_item_schema as make_response_item_schema,
    response_schema as make_response_schema,
)

__all__ = [
    "arrow_schema",
    "arrow_type",
    "decode_schema",
    "encode_schema",
    "field_with_docstring",
    "make_item_schema",
    "make_response_item_schema",
    "make_response_schema",
    "schema_docstring",
    "subset_schema",
]
