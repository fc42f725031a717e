"""`dyff.schema.text`."""

from evaluand.data.schema.named.text import TaggedSpan, TaggedSpans, Text, Tokens

__all__ = ["TaggedSpan", "TaggedSpans", "Text", "Tokens"]
