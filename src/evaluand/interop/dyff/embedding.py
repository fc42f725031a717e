"""`dyff.schema.embedding`."""

from __future__ import annotations

from evaluand.schemas.embedding import embedding

__all__ = ["embedding"]
