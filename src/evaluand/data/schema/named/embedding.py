"""Vectors of fixed length."""

from typing import Any

from pydantic import Field, create_model

from evaluand.data.schema.stored import SchemaModel, fixed_list


def embedding(element_type: Any, size: int) -> type[SchemaModel]:
    """The schema of an embedding: a field `embedding` with `size` numbers.

    Args:
        element_type: `Float32` or `Float64`.
        size: the number of elements, at least 1.

    Raises:
        SpecError: the size is not a positive integer.

    Example:
        >>> from evaluand.data.schema import Float32, Schema
        >>> Schema.of(embedding(Float32, 4)).arrow.field("embedding").type
        FixedSizeListType(fixed_size_list<item: float not null>[4])
    """
    field = (fixed_list(element_type, list_size=size), Field(description="An embedding vector"))
    return create_model("Embedding", __base__=SchemaModel, embedding=field)
