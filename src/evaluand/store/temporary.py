"""Names of files that are being written, which say by which process."""

from __future__ import annotations

import os
import re
import secrets
from typing import Final
from zlib import crc32

from evaluand.core.system import is_alive, this_process


def temporary_name(name: str) -> str:
    """A name for a file that is being written, which says by which process."""
    return f".{name}-{secrets.token_hex(4)}.{_namespace()}-{os.getpid()}.tmp"


TEMPORARY: Final = re.compile(r"\..+-[0-9a-f]{8}\.(?:([0-9a-f]{8})-)?([0-9]+)\.tmp", re.ASCII)


def is_temporary(name: str) -> bool:
    """Whether a name is one of `temporary_name`."""
    return TEMPORARY.fullmatch(name) is not None


def is_being_written(name: str, *, elsewhere: bool = True) -> bool:
    """Whether a file is being written by a living process.

    Args:
        elsewhere: the answer for processes of other containers and machines, and of this one before it was restarted.
    """
    found = TEMPORARY.fullmatch(name)
    if found is None:
        return False
    return elsewhere if found[1] not in (None, _namespace()) else is_alive(int(found[2]))


def _namespace() -> str:
    """Within which process numbers are distinct, as eight hexadecimal digits."""
    return f"{crc32(this_process().numbers.encode()):08x}"
