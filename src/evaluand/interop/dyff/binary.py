"""`dyff.schema.binary`."""

from __future__ import annotations

from evaluand.data.schema.named.binary import Media, decode, encode

__all__ = ["Media", "decode", "encode"]
