"""What classifiers say."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from evaluand.schema.stored import SchemaModel


class Label(SchemaModel):
    """A single discrete label for an item."""

    kind: ClassVar[str] = "classification.Label"

    label: str = Field(description="The discrete label of the item")
