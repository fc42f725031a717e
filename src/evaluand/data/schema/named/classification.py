"""Outputs of classifiers."""

from typing import ClassVar

from pydantic import Field

from evaluand.data.schema.stored import SchemaModel


class Label(SchemaModel):
    """One label, of finitely many."""

    kind: ClassVar[str] = "classification.Label"

    label: str = Field(description="The discrete label of the item")
