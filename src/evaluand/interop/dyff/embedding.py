"""`dyff.schema.embedding`."""

from evaluand.data.schema.named.embedding import embedding as embedding
