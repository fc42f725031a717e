"""Bytes of a media type."""

import base64
import binascii
from typing import ClassVar

from pydantic import Field

from evaluand.core.errors import DataError
from evaluand.data.schema.stored import SchemaModel


class Media(SchemaModel):
    """Bytes and what they are."""

    kind: ClassVar[str] = "binary.Media"

    data: bytes = Field(description="The binary data")
    mediaType: str = Field(description="The IETF Media Type (MIME type) of the data")  # noqa: N815


def encode(data: bytes) -> str:
    """Bytes as base64, their form in JSON."""
    return base64.b64encode(data).decode()


def decode(data: str) -> bytes:
    """The bytes of a base64 text.

    Raises:
        DataError: the text is not base64.
    """
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise DataError(f"this is not base64: {error}") from None
