"""`dyff.schema.embedding`."""

from __future__ import annotations

from evaluand.data.schema.named.embedding import embedding as embedding
