"""`dyff.schema.vision`."""

from __future__ import annotations

from evaluand.schemas.vision import Image

__all__ = ["Image"]
