"""Folders in the user's cache for what evaluand can compute again from a store; files that nobody uses are removed."""

from __future__ import annotations

import os
import time
from typing import Final

from evaluand.core import identity as ids
from evaluand.core.user import cache_folder
from evaluand.store.io import DiskFolder

_UNUSED_SECONDS: Final = 90 * 86400.0


def cache_place(name: str) -> DiskFolder:
    """The folder of a kind of files in the user's cache."""
    return DiskFolder(cache_folder(), name)


def file_prefix(place: str, name: str = "") -> str:
    """The beginning of the names of the files about something in a store: a digest of the store's place and its name.

    Args:
        place: `Folder.place` of the store.
    """
    path = os.fsencode(place)
    return ids.digest_of_text(path + b"\0" + name.encode() if name else path).hex()


def remove_unused(folder: DiskFolder) -> None:
    """Removes the files that were neither written nor touched for three months."""
    files = folder.files()
    for file, state in zip(files, folder.states(files), strict=True):
        if isinstance(state, os.stat_result) and time.time() - state.st_mtime > _UNUSED_SECONDS:
            folder.remove(file)
