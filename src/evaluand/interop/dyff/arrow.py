"""`dyff.schema.arrow`: Arrow schemas of models, their encoding and their derived forms."""

from evaluand.data.schema import data
from evaluand.data.schema.arrow import (
    decode_schema as decode_schema,
    encode_schema as encode_schema,
    field_with_docstring as field_with_docstring,
    schema_docstring as schema_docstring,
    subset_schema as subset_schema,
)

arrow_schema = data.arrow_schema
arrow_type = data.annotation_type
make_item_schema = data.item_schema
make_response_item_schema = data.response_item_schema
make_response_schema = data.response_schema
