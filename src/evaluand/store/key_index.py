"""Which rows of sealed tables have a key, found without reading the tables.

The first eight bytes of the keys, sorted, are stored in the user's cache, where they may be deleted at any time, and
are mapped into memory. What is new is indexed when it is first looked for; so is a source of which the store now has
another content, as the digests of what was indexed are stored with it. Who reads a row compares its whole key.

A file is read only while its checksum is right. It is written anew once its new rows are worth that: a million rows
take 16 MB, and a twentieth of a second.
"""

from __future__ import annotations

import mmap
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import orjson

from evaluand.core.errors import EngineError, warn
from evaluand.store.user_cache import cache_place, file_prefix, remove_unused

_MAGIC: Final = b"EVKEYS02"
_NUMBER: Final = np.dtype(np.uint32)
_FEW: Final = 1 << 18  # rows that are soon written
_SHARE: Final = (
    64  # rows in the file by new ones, up to which it is written: those are read from their tables till then
)

Numbers = np.ndarray[Any, np.dtype[np.uint64]]
Places = np.ndarray[Any, np.dtype[np.int64]]
ReadNumbers = Callable[[str], tuple[Numbers, Places] | None]
"""The numbers of the keys of a source's rows, and the rows' places; None if the source is not sealed."""


class KeyIndex:
    """The rows of some sources by their keys.

    Args:
        store: the store of the sources.
        name: what the sources have in common, by which their index is found.
        digests: their ids, the best first, each with the digest of its content; None if the source is not sealed.
        read: reads the keys of a source that is not in the index.

    Attributes:
        others: the sources that are not sealed.
    """

    def __init__(self, store: Any, name: str, digests: Mapping[str, str | None], read: ReadNumbers) -> None:
        labels = {f"{id} {digest}": id for id, digest in digests.items()}
        self._ranks = {label: rank for rank, label in enumerate(labels)}
        self.sources = [*digests]
        self.others: list[str] = []
        file = _File(store, name)
        self._rows = file.load()
        known = {*self._rows.sources}
        if new := self._read_new({label: id for label, id in labels.items() if label not in known}, read):
            n_before = len(self._rows.numbers)
            self._rows = self._rows.behind(new, self._ranks)
            if n_before < max(_FEW, _SHARE * len(new.numbers)):
                file.store(self._rows)

    def search(self, numbers: Numbers) -> Search:
        """A search for the rows with these numbers, which are sorted and unique."""
        return Search(numbers, self._rows, self._ranks, self.sources)

    def _read_new(self, sources: Mapping[str, str], read: ReadNumbers) -> _Rows | None:
        found: list[str] = []
        numbers, places, owners = [], [], []
        for label, source in sources.items():
            try:
                keys = read(source)
            except EngineError as error:
                warn(f"earlier answers are not reused: {error}")
                continue
            if keys is None:
                self.others.append(source)
                continue
            numbers.append(keys[0])
            places.append(keys[1])
            owners.append(np.full(len(keys[0]), len(found)))
            found.append(label)
        return _Rows.sorted(found, *map(np.concatenate, (numbers, owners, places))) if found else None


class Search:
    """The rows that have some numbers, a few at a time: those of the best sources first."""

    def __init__(self, numbers: Numbers, rows: _Rows, ranks: dict[str, int], sources: Sequence[str]) -> None:
        self._rows, self._sources = rows, sources
        self._ranks = np.array([ranks.get(source, -1) for source in rows.sources], np.int64)
        self._at = np.searchsorted(rows.numbers, numbers, "left")
        self._stop = np.searchsorted(rows.numbers, numbers, "right")

    def take(self, most: Places) -> list[tuple[str, Places]] | None:
        """The next rows of each number, by source: the places of rows, ascending.

        Args:
            most: how many of each number.

        Returns:
            None if there are no more. Rows of sources that do not count are passed over, so the list may be empty.
        """
        n = np.minimum(most, self._stop - self._at)
        if not n.any():
            return None
        rows = np.repeat(self._at - np.cumsum(n) + n, n) + np.arange(n.sum())
        self._at += n
        ranks = self._ranks[self._rows.owners[rows]]
        counts = ranks >= 0
        return [*self._by_source(ranks[counts], self._rows.places[rows[counts]].astype(np.int64))]

    def _by_source(self, rank: Places, place: Places) -> Iterator[tuple[str, Places]]:
        order = np.lexsort((place, rank))
        rank, place = rank[order], place[order]
        starts = np.flatnonzero(np.diff(rank, prepend=-1))
        for start, places in zip(starts, np.split(place, starts[1:]), strict=False):  # no rows are one empty part
            yield self._sources[rank[start]], places


@dataclass(frozen=True)
class _Rows:
    """Some rows, sorted by their numbers: the number, the source and the place of each.

    Attributes:
        sources: their ids, each with the digest of the content that was indexed.
    """

    sources: list[str]
    numbers: Numbers
    owners: Any
    places: Any

    @classmethod
    def sorted(cls, sources: list[str], numbers: Numbers, owners: Any, places: Any) -> _Rows:
        """Rows that are given in the order of sources and places."""
        order = np.argsort(numbers, kind="stable")
        return cls(sources, numbers[order], owners[order].astype(_NUMBER), places[order].astype(_NUMBER))

    def behind(self, new: _Rows, ranks: dict[str, int]) -> _Rows:
        """These rows, each behind the new ones of its number, without those of sources that no longer exist."""
        sources = [*new.sources, *(source for source in self.sources if source in ranks)]
        number_of = {source: number for number, source in enumerate(sources)}
        owners = np.array([number_of.get(source, -1) for source in self.sources], np.int64)[self.owners]
        kept = owners >= 0
        numbers, owners, places = self.numbers[kept], owners[kept].astype(_NUMBER), self.places[kept]
        at = np.searchsorted(numbers, new.numbers, "left")
        pairs = ((numbers, new.numbers), (owners, new.owners), (places, new.places))
        return _Rows(sources, *(np.insert(old, at, added) for old, added in pairs))

    def encode(self) -> bytes:
        head = orjson.dumps({"rows": len(self.numbers), "sources": self.sources})
        head += b" " * (-len(head) % 8)
        arrays = (self.numbers.tobytes(), self.owners.tobytes(), self.places.tobytes())
        content = b"".join([len(head).to_bytes(8, "little"), head, *arrays])
        return b"".join([_MAGIC, zlib.crc32(content).to_bytes(8, "little"), content])

    @classmethod
    def decode(cls, content: Any) -> _Rows:
        """The inverse of `encode`; the arrays share the memory of the content.

        Raises:
            ValueError: no rows were encoded so.
        """
        if content[:8] != _MAGIC or int.from_bytes(content[8:16], "little") != zlib.crc32(memoryview(content)[16:]):
            raise ValueError("damaged")
        start = 24 + int.from_bytes(content[16:24], "little")
        head = orjson.loads(content[24:start])
        n = head["rows"]
        numbers = np.frombuffer(content, np.uint64, n, start)
        owners = np.frombuffer(content, _NUMBER, n, start + numbers.nbytes)
        places = np.frombuffer(content, _NUMBER, n, start + numbers.nbytes + owners.nbytes)
        return cls(head["sources"], numbers, owners, places)


class _File:
    """The stored rows of an index; none where the cache cannot be written, or for a store in memory."""

    def __init__(self, store: Any, name: str) -> None:
        top = getattr(store, "top", None)
        self._folder = None if top is None else cache_place("indexes")
        self._name = "" if top is None else f"{file_prefix(top.place, name)}.keys"

    def load(self) -> _Rows:
        if self._folder is not None:
            with (
                suppress(FileNotFoundError, EngineError, ValueError, OSError),
                closing(self._folder.open_file(self._name)) as file,
            ):
                self._folder.touch(self._name)  # it is in use
                return _Rows.decode(mmap.mmap(file.handle, 0, access=mmap.ACCESS_READ))
        return _Rows([], np.zeros(0, np.uint64), np.zeros(0, _NUMBER), np.zeros(0, _NUMBER))

    def store(self, rows: _Rows) -> None:
        if self._folder is not None:
            with suppress(EngineError, FileNotFoundError):
                self._folder.make()
                if not self._folder.has_file(self._name):
                    remove_unused(self._folder)
                self._folder.put(self._name, rows.encode(), durable=False)
