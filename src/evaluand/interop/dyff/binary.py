"""`dyff.schema.binary`."""

from evaluand.data.schema.named.binary import Media as Media, decode as decode, encode as encode
