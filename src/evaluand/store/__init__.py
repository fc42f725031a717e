"""Where artifacts are stored: the protocol, the Arrow schemas of the tables, the journal of open work, and two stores.

store      the protocol `Store`, its kinds, and `MemoryStore`
directory  `DirectoryStore`: plain open files in a folder
opening    the store at an address: a folder, or a bucket with journals in PostgreSQL
folder     what a store needs of a folder, on a disk (`io`) or in a bucket (`object`)
journals   what a store needs of journals, in files (`folder_journals`) or a database (`postgres`)
copying    copies artifacts from one store to another
manifests  manifests and names as files, read with types and the digest of their content
catalog    an index of the manifests in the user's cache, for listing
digests    the digests of the files of tables
tables     the schemas of all tables, their key and their statuses
parquet    reads and writes a table as Parquet
journal    finished units of open work, and the leases on the others
log        the append-only files of the journal
garbage    what may be deleted
"""

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.store.directory import DirectoryStore as DirectoryStore
    from evaluand.store.opening import open_store as open_store
    from evaluand.store.store import Draft as Draft, MemoryStore as MemoryStore, Ref as Ref, Store as Store

__getattr__, __dir__ = lazy_names(__name__)
