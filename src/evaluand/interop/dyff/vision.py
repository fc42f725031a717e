"""`dyff.schema.vision`."""

from __future__ import annotations

from evaluand.data.schema.named.vision import Image as Image
