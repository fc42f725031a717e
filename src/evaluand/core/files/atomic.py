"""Files that are there as a whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def replaced(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes its name, or the place of another, once it is whole; a device or pipe is written to."""
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):
        with path.open("wb") as file:
            yield file
        return
    place = Path(os.path.realpath(path))
    temporary = place.with_name(f".{place.name[:100]}-{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:
            yield file
        os.replace(temporary, place)
    except OSError as error:
        if error.filename == str(temporary):
            error.filename = str(path)  # the name that was given
        raise
    finally:
        temporary.unlink(missing_ok=True)
