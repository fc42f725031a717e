"""Text, and text in parts."""

from typing import ClassVar

from pydantic import Field

from evaluand.data.schema.stored import Int64, SchemaModel


class Text(SchemaModel):
    """A text."""

    kind: ClassVar[str] = "text.Text"

    text: str = Field(description="Text data")


class Tokens(SchemaModel):
    """A text in tokens."""

    kind: ClassVar[str] = "text.Tokens"

    tokens: list[str] = Field(default_factory=list, description="A list of text tokens")


class TaggedSpan(SchemaModel):
    """A part of a text with a tag."""

    kind: ClassVar[str] = "text.TaggedSpan"

    start: Int64 = Field(ge=0, description="Where it begins: characters before it")
    end: Int64 = Field(ge=0, description="Where it ends: characters up to its last")
    tag: str = Field(description="What it is tagged as")


class TaggedSpans(SchemaModel):
    """The tagged parts of a text."""

    kind: ClassVar[str] = "text.TaggedSpans"

    spans: list[TaggedSpan] = Field(description="The tagged parts, in any order")
