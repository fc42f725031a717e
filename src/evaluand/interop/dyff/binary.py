"""`dyff.schema.binary`."""

from __future__ import annotations

from evaluand.data.schema.named.binary import Media as Media, decode as decode, encode as encode
