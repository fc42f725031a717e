"""A store in a folder of a disk."""

from __future__ import annotations

import os
from pathlib import Path

from evaluand.store.folder_journals import FolderJournals
from evaluand.store.folder_store import FolderStore
from evaluand.store.io import DiskFolder


class DirectoryStore(FolderStore):
    """Stores artifacts as files in a folder, with the journals of open work beside them.

    Args:
        root: the folder; created by the first write.

    Example:
        >>> import tempfile
        >>> DirectoryStore(tempfile.mkdtemp()).ids("runs")
        []
    """

    def __init__(self, root: str | os.PathLike[str] = ".evaluand") -> None:
        top = DiskFolder(os.path.abspath(root))  # user code may change the current folder
        super().__init__(top, FolderJournals(top), Path(root))
