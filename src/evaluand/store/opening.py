"""Opens the store at a place."""

from __future__ import annotations

import os

from evaluand.core.errors import SpecError
from evaluand.store.addresses import Address, BucketPath, Place, parse_place
from evaluand.store.directory import DirectoryStore
from evaluand.store.folder import Folder
from evaluand.store.folder_store import FolderStore
from evaluand.store.io import DiskFolder


def open_store(place: str | os.PathLike[str] | Place) -> FolderStore:
    """The store at a place: a folder, or an address such as `s3://bucket/path?catalog=postgresql://host/database`.

    Credentials come from the environment. Nothing is connected before it is needed.

    Raises:
        SpecError: it is no address of a store, or a package for it is missing.

    Example:
        >>> import tempfile
        >>> open_store(tempfile.mkdtemp()).ids("runs")
        []
    """
    found = place if isinstance(place, Address) else parse_place(os.fspath(place))
    if not isinstance(found, Address):
        return DirectoryStore(found)
    top = _open_bucket(found.place) if isinstance(found.place, BucketPath) else DiskFolder(found.place)
    if found.catalog:
        from evaluand.store.postgres import PostgresJournals

        return FolderStore(top, PostgresJournals(found.catalog, top), found)
    from evaluand.store.no_journals import NoJournals

    return FolderStore(top, NoJournals(top, found), found)


def _open_bucket(place: BucketPath) -> Folder:
    try:
        from evaluand.store.object import open_bucket
    except ModuleNotFoundError as error:
        if error.name != "obstore":
            raise
        raise SpecError(f"{place}: needs obstore: pip install 'evaluand[s3]'") from None
    return open_bucket(place)
