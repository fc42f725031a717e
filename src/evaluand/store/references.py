"""What the names and the open artifacts of a store reach, directly and through what they were made from."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Set as AbstractSet
from typing import Final, NamedTuple

from evaluand.core.errors import EngineError
from evaluand.store.checks import ID
from evaluand.store.folder_store import REFS, FolderStore
from evaluand.store.kinds import origins
from evaluand.store.manifests import LOST, OPEN, SEALED, UNKNOWN_KIND, has_lost_manifest
from evaluand.store.store import Ref

_AGAIN_SECONDS: Final = 1.0
_UNKNOWN: Final = "what is referenced is unknown, since"

Key = tuple[str, str]


class _Place(NamedTuple):
    """The manifest of an artifact: an empty name of the file if it has none."""

    file: str
    state: tuple[int, int, int]


class References:
    """What the names and the open artifacts of a store reach, found again as the store changes.

    A manifest is read again only after it has changed.

    Args:
        store: the store.
        skip_damaged_names: whether names that cannot be read count as removed.

    Example:
        >>> import tempfile
        >>> from evaluand.store.directory import DirectoryStore
        >>> References(DirectoryStore(tempfile.mkdtemp())).find_unreached()
        []
    """

    def __init__(self, store: FolderStore, *, skip_damaged_names: bool = False) -> None:
        self._store = store
        self._skips_damaged_names = skip_damaged_names
        self._origins: dict[Key, tuple[_Place, list[Key]]] = {}
        self._reached: set[Key] = set()
        self._version: int | None = None  # of the folder of names, when it was read
        self._read_at = -math.inf

    def find_unreached(self, removed: AbstractSet[Key] = frozenset()) -> list[Key]:
        """The sealed artifacts that no name and no open artifact reaches, sorted.

        Args:
            removed: artifacts that will be removed, so that what they reach does not count.

        Raises:
            EngineError: a name or manifest is missing or cannot be read, so it is unknown what it reaches.
        """
        places = {key: place for key, place in self._places() if key not in removed}
        for ref in self._store.refs():
            if (ref.kind, ref.id) in places and not places[ref.kind, ref.id].file:
                self._require_manifest((ref.kind, ref.id))
                where = self._store.folder(ref.kind, ref.id).path
                raise EngineError(
                    f"{where}: {_UNKNOWN} the name {ref.name!r} refers to it, and it has no manifest; restore it, or"
                    " run the same work again; `evaluand gc --damaged` removes the name"
                )
        reached = self._reach(places)
        return sorted(key for key, place in places.items() if place.file == SEALED and key not in reached)

    def is_reached(self, key: Key) -> bool:
        """Whether a name reaches an artifact now, or an open artifact did a second ago.

        Raises:
            EngineError: a name or manifest is missing or cannot be read, so it is unknown what it reaches.
        """
        state = self._store.top.state(REFS)
        version = None if state is None else state.st_mtime_ns
        if version != self._version or time.monotonic() - self._read_at > _AGAIN_SECONDS:
            self._reached = self._reach(dict(self._places()))
            self._version, self._read_at = version, time.monotonic()
        return key in self._reached

    def _places(self) -> Iterator[tuple[Key, _Place]]:
        """All artifacts, each with the file of its manifest."""
        for above in self._store.folders():
            ids = [id for id in above.folders() if ID.fullmatch(id)]
            for id, sealed, opened in zip(ids, above.states(ids, SEALED), above.states(ids, OPEN), strict=True):
                file, state = (SEALED, sealed) if sealed else (OPEN, opened) if opened else ("", None)
                if isinstance(state, EngineError):
                    raise state
                version = (state.st_mtime_ns, state.st_size, state.st_ino) if state else (0, 0, 0)
                yield (above.path.name, id), _Place(file, version)

    def _reach(self, places: Mapping[Key, _Place]) -> set[Key]:
        waiting = [*self._named_keys()]
        for key, place in places.items():
            if not place.file:
                self._require_manifest(key)
            elif place.file == OPEN:
                waiting.append(key)
        reached: set[Key] = set()
        while waiting:
            key = waiting.pop()
            if key not in reached and key in places and places[key].file:
                reached.add(key)
                waiting += self._read_origins(key, places[key])
        return reached

    def _named_keys(self) -> Iterator[Key]:
        """The artifacts to which names refer."""
        for _, ref in self._store.catalog.refs():
            if isinstance(ref, Ref):
                yield ref.kind, ref.id
            elif not self._skips_damaged_names:
                remedy = "" if ref.code == UNKNOWN_KIND else "; restore it; `evaluand gc --damaged` removes the name"
                raise EngineError(f"{ref.where}: {_UNKNOWN} the name in this file {ref.message}{remedy}")

    def _require_manifest(self, key: Key) -> None:
        folder = self._store.folder(*key)
        if has_lost_manifest(folder):
            raise EngineError(f"{folder.path}: {_UNKNOWN} {LOST}")

    def _read_origins(self, key: Key, place: _Place) -> list[Key]:
        known = self._origins.get(key)
        if known is None or known[0] != place:
            known = self._origins[key] = place, [*origins(self._store.manifest(*key))]
        return known[1]
