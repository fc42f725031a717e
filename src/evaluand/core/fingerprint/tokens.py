"""Tokens: 16-byte digests of values, from which the tokens of their containers are computed."""

from __future__ import annotations

import hashlib
from typing import Any

from evaluand.core import identity


def leaf(tag: str, raw: Any) -> bytes:
    """The token of some bytes; the tag distinguishes equal bytes of different meaning."""
    state = hashlib.blake2b(tag.encode() + b"\0", digest_size=identity.DIGEST_SIZE)
    state.update(raw)
    return state.digest()


def of_integer(value: int) -> bytes:
    """The token of an integer of any size; as digits, Python refuses to write very large ones."""
    return leaf("int", value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))


def mix(tag: str, *tokens: bytes) -> bytes:
    """One token of several, in their order."""
    return leaf(tag, b"".join(tokens))
