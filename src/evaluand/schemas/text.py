"""Text, and text in parts."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from evaluand.schema.stored import Int64, SchemaModel


class Text(SchemaModel):
    """Text data."""

    kind: ClassVar[str] = "text.Text"

    text: str = Field(description="Text data")


class Tokens(SchemaModel):
    """A list of text tokens."""

    kind: ClassVar[str] = "text.Tokens"

    tokens: list[str] = Field(default_factory=list, description="A list of text tokens")


class TaggedSpan(SchemaModel):
    """A part of a text with a tag."""

    kind: ClassVar[str] = "text.TaggedSpan"

    start: Int64 = Field(ge=0, description="The index of the first character in the span")
    end: Int64 = Field(ge=0, description="The index one past the final character in the span")
    tag: str = Field(description="The tag of the span")


class TaggedSpans(SchemaModel):
    """A list of tagged spans."""

    kind: ClassVar[str] = "text.TaggedSpans"

    spans: list[TaggedSpan] = Field(description="A list of tagged spans")
