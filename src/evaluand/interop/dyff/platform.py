"""`dyff.schema.platform`: the schemas that resources carry."""

from __future__ import annotations

from evaluand.schema.data import DataSchema, DyffDataSchema

__all__ = ["DataSchema", "DyffDataSchema"]
