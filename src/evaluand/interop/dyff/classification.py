"""`dyff.schema.classification`."""

from __future__ import annotations

from evaluand.schemas.classification import Label

__all__ = ["Label"]
