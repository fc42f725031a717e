"""Images. In new schemas prefer `binary.Media`, which holds any media type."""

import builtins
from typing import ClassVar

from pydantic import Field

from evaluand.data.schema.stored import SchemaModel


class Image(SchemaModel):
    """An image in a binary format."""

    kind: ClassVar[str] = "vision.Image"

    bytes: builtins.bytes = Field(description="The image data")
    format: str = Field(description="The data MIME type")
