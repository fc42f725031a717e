"""Which rows of sealed tables have a key, found without reading the tables.

The first eight bytes of the keys, sorted, are stored in the user's cache, where they may be deleted at any time, and
are mapped into memory. What is new is indexed when it is first looked for; so is a source of which the store now has
another content, as the digests of what was indexed are stored with it. Who reads a row compares its whole key.

A file is called a level, and is read only while its checksum is right. One that is new takes in those up to twice its
size, so there are few.
"""

from __future__ import annotations

import mmap
import secrets
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import orjson

from evaluand.core.errors import EngineError, warn
from evaluand.store.io import DiskFolder
from evaluand.store.user_cache import cache_place, file_prefix, remove_unused

_MAGIC: Final = b"EVKEYS02"
_MOST_ROWS: Final = 1 << 25  # of a level that is merged
_KEY: Final = np.dtype(np.uint64)
_NUMBER: Final = np.dtype(np.uint32)

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
        files = _Files(store, name)
        self._levels = files.load()
        known = {label for level in self._levels for label in level.sources}
        if new := self._read_new({label: id for label, id in labels.items() if label not in known}, read):
            self._levels = files.store(self._levels, new, self._ranks)

    def search(self, numbers: Numbers) -> Search:
        """A search for the rows with these numbers, which are sorted and unique."""
        return Search(numbers, self._levels, self._ranks, self.sources)

    def _read_new(self, sources: Mapping[str, str], read: ReadNumbers) -> _Level | None:
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
        return _Level.of_rows(found, *map(np.concatenate, (numbers, owners, places))) if found else None


class Search:
    """The rows that have some numbers, a few at a time: those of the best sources first."""

    def __init__(
        self, numbers: Numbers, levels: Sequence[_Level], ranks: dict[str, int], sources: Sequence[str]
    ) -> None:
        self._levels, self._sources = levels, sources
        self._ranks = [np.array([ranks.get(each, -1) for each in level.sources], np.int64) for level in levels]
        self._at = [np.searchsorted(level.numbers, numbers, "left") for level in levels]
        self._stop = [np.searchsorted(level.numbers, numbers, "right") for level in levels]

    def take(self, most: Places) -> list[tuple[str, Places]] | None:
        """The next rows of each number, by source: the places of rows, ascending.

        Args:
            most: how many of each number.

        Returns:
            None if there are no more. Rows of sources that do not count are passed over, so the list may be empty.
        """
        if not self._levels:
            return None
        parts = [self._next(number, most) for number in range(len(self._levels))]
        turn, key, rank, place, level = (np.concatenate(each) for each in zip(*parts, strict=True))
        if not len(key):
            return None
        order = np.argsort(turn, kind="stable")
        key, rank, place, level = (each[order] for each in (key, rank, place, level))
        chosen = np.arange(len(key)) - np.searchsorted(key, key) < most[key]
        for number, at in enumerate(self._at):
            at += np.bincount(key[chosen & (level == number)], minlength=len(at))
        chosen &= rank >= 0
        return [*self._by_source(rank[chosen], place[chosen])]

    def _next(self, number: int, most: Places) -> tuple[Places, ...]:
        """The turn, the number's position, the rank of the source and the place of the next rows in a level.

        A row of a source that does not count has the turn of the row before it, so that the rows of a level are taken
        in their order.
        """
        level, at = self._levels[number], self._at[number]
        n = np.minimum(most, self._stop[number] - at)
        rows = np.repeat(at - np.cumsum(n) + n, n) + np.arange(n.sum())
        key, ranks = np.repeat(np.arange(len(n)), n), self._ranks[number][level.owners[rows]]
        turn = np.maximum.accumulate((key << 32) + ranks + 1)
        return turn, key, ranks, level.places[rows].astype(np.int64), np.full(len(rows), number)

    def _by_source(self, rank: Places, place: Places) -> Iterator[tuple[str, Places]]:
        order = np.lexsort((place, rank))
        rank, place = rank[order], place[order]
        starts = np.flatnonzero(np.diff(rank, prepend=-1))
        for start, places in zip(starts, np.split(place, starts[1:]), strict=False):  # no rows are one empty part
            yield self._sources[rank[start]], places


@dataclass(frozen=True)
class _Level:
    """Some rows, sorted by their numbers: the number, the source and the place of each.

    Attributes:
        sources: their ids, each with the digest of the content that was indexed.
    """

    sources: list[str]
    numbers: Numbers
    owners: Any
    places: Any
    file: str = ""

    @classmethod
    def of_rows(cls, sources: list[str], numbers: Numbers, owners: Any, places: Any) -> _Level:
        """A level of rows in the order of sources and places."""
        order = np.argsort(numbers, kind="stable")
        return cls(sources, numbers[order], owners[order].astype(_NUMBER), places[order].astype(_NUMBER))

    @classmethod
    def merged(cls, levels: Sequence[_Level], ranks: dict[str, int]) -> _Level:
        """One level of several, without sources that no longer exist."""
        sources = sorted({each for level in levels for each in level.sources if each in ranks}, key=ranks.__getitem__)
        number_of = {source: number for number, source in enumerate(sources)}
        parts = []
        for level in levels:
            owners = np.array([number_of.get(each, -1) for each in level.sources], np.int64)[level.owners]
            kept = owners >= 0
            parts.append((level.numbers[kept], owners[kept], level.places[kept]))
        numbers, owners, places = map(np.concatenate, zip(*parts, strict=True))
        order = np.lexsort((places, owners))
        return cls.of_rows(sources, numbers[order], owners[order], places[order])

    def encode(self) -> bytes:
        head = orjson.dumps({"rows": len(self.numbers), "sources": self.sources})
        head += b" " * (-len(head) % 8)
        arrays = (self.numbers.tobytes(), self.owners.tobytes(), self.places.tobytes())
        content = b"".join([len(head).to_bytes(8, "little"), head, *arrays])
        return b"".join([_MAGIC, zlib.crc32(content).to_bytes(8, "little"), content])

    @classmethod
    def decode(cls, content: Any, file: str) -> _Level:
        """The inverse of `encode`; its arrays share the memory of the content.

        Raises:
            ValueError: the content is not that of a level.
        """
        if content[:8] != _MAGIC or int.from_bytes(content[8:16], "little") != zlib.crc32(memoryview(content)[16:]):
            raise ValueError(file)
        start = 24 + int.from_bytes(content[16:24], "little")
        head = orjson.loads(content[24:start])
        n = head["rows"]
        numbers = np.frombuffer(content, np.uint64, n, start)
        owners = np.frombuffer(content, _NUMBER, n, start + numbers.nbytes)
        places = np.frombuffer(content, _NUMBER, n, start + numbers.nbytes + owners.nbytes)
        return cls(head["sources"], numbers, owners, places, file)


class _Files:
    """The stored levels of an index; none where the cache cannot be written, or for a store in memory."""

    def __init__(self, store: Any, name: str) -> None:
        top = getattr(store, "top", None)
        self._folder = None if top is None else cache_place("indexes")
        self._prefix = "" if top is None else f"{file_prefix(top.place, name)}-"

    def load(self) -> list[_Level]:
        """The stored levels, without those that have a source of another one: what was merged as a process died."""
        found: list[_Level] = []
        known: set[str] = set()
        for level in sorted(self._read(), key=lambda level: -len(level.numbers)):
            if known.isdisjoint(level.sources):
                known.update(level.sources)
                found.append(level)
        return found

    def store(self, levels: list[_Level], new: _Level, ranks: dict[str, int]) -> list[_Level]:
        """The levels with a new one, which is stored."""
        if self._folder is None:
            return [*levels, new]
        merged, n = [new], len(new.numbers)
        for level in sorted(levels, key=lambda level: len(level.numbers)):
            if len(level.numbers) <= 2 * n and n + len(level.numbers) <= _MOST_ROWS:
                merged.append(level)
                n += len(level.numbers)
        if len(merged) > 1:
            new = _Level.merged(merged, ranks)
        with suppress(EngineError, FileNotFoundError):
            self._folder.make()
            if not levels:
                remove_unused(self._folder)
            self._folder.put(f"{self._prefix}{secrets.token_hex(8)}.keys", new.encode(), durable=False)
            for level in merged[1:]:
                self._folder.remove(level.file)
        return [*(level for level in levels if all(level is not each for each in merged)), new]

    def _read(self) -> Iterator[_Level]:
        if self._folder is None:
            return
        with suppress(EngineError):
            for name in self._folder.files():
                if name.startswith(self._prefix) and name.endswith(".keys"):
                    with suppress(FileNotFoundError, EngineError, ValueError, OSError):
                        yield _Level.decode(_map(self._folder, name), name)


def _map(folder: DiskFolder, name: str) -> mmap.mmap:
    """A file as memory, read when it is used."""
    with closing(folder.open_file(name)) as file:
        folder.touch(name)  # it is in use
        return mmap.mmap(file.handle, 0, access=mmap.ACCESS_READ)
