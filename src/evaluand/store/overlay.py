"""A store in which another one is read, and what is written stays in memory: for readers that only look."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from evaluand.store.store import Draft, Manifest, MemoryStore, Store

if TYPE_CHECKING:
    import pyarrow as pa


class OverlayStore:
    """A store with what another one has, which is never written to.

    Args:
        store: what is read.
    """

    def __init__(self, store: Store) -> None:
        self._store, self._own = store, MemoryStore()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def ids(self, kind: str, begin: str = "", *, damaged: bool = False) -> list[str]:
        return sorted({*self._store.ids(kind, begin, damaged=damaged), *self._own.ids(kind, begin)})

    def find(self, kind: str, origin: str) -> list[str]:
        return [*dict.fromkeys((*self._own.find(kind, origin), *self._store.find(kind, origin)))]

    def manifest(self, kind: str, id: str) -> Manifest:
        return (self._own if self._own.is_sealed(kind, id) else self._store).manifest(kind, id)

    def is_sealed(self, kind: str, id: str) -> bool:
        return self._own.is_sealed(kind, id) or self._store.is_sealed(kind, id)

    def draft(self, kind: str, id: str) -> Draft:
        return self._own.draft(kind, id)

    def read(self, kind: str, id: str, *what: Any, **which: Any) -> Iterator[pa.RecordBatch]:
        return (self._own if self._own.is_sealed(kind, id) else self._store).read(kind, id, *what, **which)

    def refer(self, name: str, kind: str, id: str, about: Mapping[str, Any] = {}) -> None:
        """Names are not written either."""
