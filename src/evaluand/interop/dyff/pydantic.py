"""`dyff.schema.pydantic`: the model that schemas derive from, by the name that the documentation gives it."""

from __future__ import annotations

from evaluand.interop.dyff.base import DyffSchemaBaseModel

__all__ = ["DyffSchemaBaseModel"]
