"""`dyff.schema.base`: the base class of schemas, and sized numbers."""

from functools import partial

from evaluand.data.schema.stored import SchemaModel as DyffSchemaBaseModel, fixed_list as list_, sized

int8 = partial(sized, "int8")
int16 = partial(sized, "int16")
int32 = partial(sized, "int32")
int64 = partial(sized, "int64")
uint8 = partial(sized, "uint8")
uint16 = partial(sized, "uint16")
uint32 = partial(sized, "uint32")
uint64 = partial(sized, "uint64")
float32 = partial(sized, "float32")
float64 = partial(sized, "float64")

__all__ = [
    "DyffSchemaBaseModel",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "list_",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]
