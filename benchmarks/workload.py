"""The examples that everything is measured on: short texts, each different, four of five with the right answer known.

Forty characters of base 64 hold thirty random bytes, so compression can take a quarter away and no more, and what is
stored beyond the texts is seen as it is.
"""

from __future__ import annotations

import base64
import hashlib

LENGTH = 40
PAYLOAD = 3 * LENGTH
"""Bytes of an example's input, expected answer and response."""


def example(number: int) -> tuple[str, str]:
    """Input and expected answer of example `number`."""
    text = _text(b"input %d" % number)
    return text, text if number % 5 else _text(b"other %d" % number)


def _text(name: bytes) -> str:
    return base64.b64encode(hashlib.blake2b(name, digest_size=LENGTH * 3 // 4).digest()).decode()
