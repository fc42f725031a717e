"""Nested data that hold nothing but texts, numbers and None: read in one go, because a table may have many rows."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from evaluand.core.fingerprint.files import may_name_file
from evaluand.core.fingerprint.secrets import EnvironmentSecrets
from evaluand.core.fingerprint.tokens import leaf

MAX_DEPTH = 8  # containers inside one another

_PLAIN = frozenset((type(None), bool, int, float, bytes))


def plain_data(value: Any, secrets: EnvironmentSecrets) -> bytes | None:
    """The token of a list, tuple or dictionary of plain data; None for what has to be read value by value.

    Written as Python's literals, which distinguish lists from tuples, whole from other numbers, and the order of keys;
    `ascii` writes the same in every version. Data with credentials from the environment are read value by value too.
    """
    if not _is_plain((value,), MAX_DEPTH + 1):
        return None
    try:
        text = ascii(value)
        return None if secrets.occur_in(text) else leaf("plain", text.encode())
    except ValueError:  # an integer too large to be written
        return None


def _is_plain(values: Iterable[Any], depth: int) -> bool:
    for value in values:
        kind = type(value)
        if kind is str:
            if os.path.isabs(value) and may_name_file(value):  # written as it would be after the project has moved
                return False
        elif kind is list or kind is tuple:
            if not depth or not _is_plain(value, depth - 1):
                return False
        elif kind is dict:
            if not depth or not _is_plain(value, depth - 1) or not _is_plain(value.values(), depth - 1):
                return False
        elif kind not in _PLAIN:
            return False
    return True
