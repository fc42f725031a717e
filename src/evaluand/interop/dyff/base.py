"""`dyff.schema.base`: the base class of schemas, and sized numbers."""

from functools import partial

from evaluand.data.schema.stored import SchemaModel, fixed_list, sized

DyffSchemaBaseModel = SchemaModel
list_ = fixed_list

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
