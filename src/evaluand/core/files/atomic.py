"""Files that are replaced as a whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def replaced(path: Path, *, parents: bool = False) -> Iterator[IO[bytes]]:
    """Opens a temporary file that takes the place of `path` when it was written without an error.

    A device or pipe is written to directly.

    Args:
        parents: whether to make the folders that are missing.
    """
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):
        with path.open("wb") as file:
            yield file
        return
    place = Path(os.path.realpath(path))
    if parents:
        place.parent.mkdir(parents=True, exist_ok=True)
    temporary = place.with_name(f".{place.name[:100]}-{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:
            yield file
        os.replace(temporary, place)
    except OSError as error:
        if error.filename == str(temporary):
            error.filename = str(path)  # the name that the caller knows
        raise
    finally:
        temporary.unlink(missing_ok=True)
