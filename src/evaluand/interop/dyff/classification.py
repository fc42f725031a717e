"""`dyff.schema.classification`."""

from __future__ import annotations

from evaluand.data.schema.named.classification import Label as Label
