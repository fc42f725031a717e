"""Reuse of earlier answers: those with the same key whose observed inputs are unchanged."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from evaluand.core.errors import EngineError, warn
from evaluand.core.fingerprint import Identity, explain
from evaluand.core.fingerprint.files import CHANGED, state_of
from evaluand.core.fingerprint.parts import PIN
from evaluand.engine.observation import UNDEFINED, Node, Observer, node_key, path_of
from evaluand.store.addresses import local_folder
from evaluand.store.journal import WorkLog
from evaluand.store.key_index import KeyIndex
from evaluand.store.store import Manifest, Store
from evaluand.store.tables import INPUTS

MAX_SHOWN = 5  # changed files in a receipt

Answer = tuple[bytes, list[Any], str | None]
"""Key, journal record without its slot, and the node of the observed inputs (None: none were opened)."""

ReadAnswers = Callable[[str, np.ndarray | None], Iterator[Answer]]
"""The answers of some earlier work, all of them, or those at some places of a sealed one."""

_MOST_AT_ONCE = 1 << 20  # rows of one key that are looked at together


def digest_words(digests: pa.Array) -> np.ndarray:
    """The two halves of each digest of 16 bytes as numbers, without nulls.

    Example:
        >>> digest_words(pa.array([bytes(15) + b"a"], pa.binary(16))).tolist()
        [[0, 97]]
    """
    content = np.frombuffer(digests.buffers()[1], ">u8")[2 * digests.offset : 2 * (digests.offset + len(digests))]
    return content.reshape(-1, 2).astype(np.uint64)


class OpenSlots:
    r"""The slots still to be filled, by a key of 16 bytes; 28 bytes a slot. Slots of equal keys are filled in order.

    Example:
        >>> slots = OpenSlots(iter([(0, b"a" * 16), (1, b"b" * 16)]))
        >>> list(slots.fill([iter([(b"b" * 16, ["done"], None)])]))
        [b'[1,"done"]\n']
        >>> slots.left
        1
    """

    def __init__(self, missing: Iterator[tuple[int, bytes]]) -> None:
        slots, keys = array("q"), bytearray()
        for slot, key in missing:
            slots.append(slot)
            keys += key
        pairs = np.frombuffer(bytes(keys), ">u8").reshape(-1, 2).astype(np.uint64)
        order = np.lexsort((pairs[:, 1], pairs[:, 0]))
        self._high, self._low = np.ascontiguousarray(pairs[order, 0]), np.ascontiguousarray(pairs[order, 1])
        self._slots = np.frombuffer(slots, dtype=np.int64)[order]
        self._filled = np.zeros(len(order), np.int32)  # at the first of equal keys: how many of them
        self.left = len(order)

    def fill(self, sources: Iterable[Iterator[Answer]], observer: Observer[Any] | None = None) -> Iterator[bytes]:
        """Yield a journal line for each slot that an earlier answer fills, source by source until no slot is left.

        Args:
            sources: the answers of earlier work, each source opened when it is needed.
            observer: writes the inputs of an answer into its line; must have learned their nodes.
        """
        for source in sources if self.left else ():
            yield from self._lines(source, observer)
            if not self.left:
                return

    def fill_from(self, index: KeyIndex, read: ReadAnswers, observer: Observer[Any] | None = None) -> Iterator[bytes]:
        """Yield a journal line for each slot that an earlier answer fills: of sealed work by key, then of open work.

        Args:
            index: of the earlier work.
            read: reads the answers of one source.
            observer: as in `fill`.
        """
        numbers, first, count = np.unique(self._high, return_index=True, return_counts=True)
        search, factor, damaged = index.search(numbers), 1, set[str]()
        while self.left:
            wanted = count - (np.add.reduceat(self._filled, first) if len(first) else 0)
            found = search.take(wanted * factor)
            if found is None:
                break
            for source, places in found:
                if source not in damaged and not (yield from self._lines(read(source, places), observer)):
                    damaged.add(source)
            factor = min(2 * factor, _MOST_AT_ONCE)
        yield from self.fill((read(source, None) for source in index.others), observer)

    def _lines(self, answers: Iterator[Answer], observer: Observer[Any] | None) -> Generator[bytes, None, bool]:
        """Lines for the slots that some answers fill; returns whether the answers could be read."""
        try:
            for key, record, node in answers:
                try:
                    rest = orjson.dumps(record)
                except TypeError:  # nested too deeply for orjson: call again
                    continue
                slot = self.take(key)
                if slot is not None:
                    line = b"[%d,%b\n" % (slot, rest[1:])
                    yield line if observer is None or node is None else observer.with_inputs(line, node)
                if not self.left:
                    break
        except EngineError as error:
            warn(f"earlier answers are not reused: {error}")
            return False
        return True

    def take(self, key: bytes) -> int | None:
        """Take the next slot with that key; None if there is none left."""
        high, low = np.uint64(int.from_bytes(key[:8], "big")), np.uint64(int.from_bytes(key[8:], "big"))
        start, stop = (int(np.searchsorted(self._high, high, side)) for side in ("left", "right"))
        first = start + int(np.searchsorted(self._low[start:stop], low))
        if first == stop or self._low[first] != low:
            return None
        place = first + int(self._filled[first])
        if place == stop or self._low[place] != low:
            return None
        self._filled[first] += 1
        self.left -= 1
        return int(self._slots[place])


class Unchanged:
    """Tells whether observed inputs are unchanged; each file is checked once.

    Args:
        folder: the folder of the code, to which stored names are relative.
        files_only: whether inputs that are no files, such as the reply of a service, count as unchanged: the answers of
            one attempt go together, whenever it continues.
    """

    def __init__(self, folder: str, *, files_only: bool = False) -> None:
        self._folder, self._files_only = folder, files_only
        self._files: dict[str, str] = {}
        self._nodes: dict[str, bool] = {}
        self.changed: set[str] = set()

    def holds(self, node: str | None, nodes: Mapping[str, Node]) -> bool:
        """Whether all files on the path to a node are unchanged; False if a node of the path is undefined."""
        for key in path_of(node, nodes, self._nodes):
            parent, *file = nodes.get(key, UNDEFINED)
            self._nodes[key] = self._is_same(*file) and (parent is None or self._nodes[parent])
        return node is None or self._nodes[node]

    def _is_same(self, name: str, state: str) -> bool:
        if name.startswith("("):
            same = self._files_only or state != CHANGED
        else:
            if name not in self._files:
                self._files[name] = state_of(name, self._folder)
            same = self._files[name] == state != CHANGED
        if not same and name:
            self.changed.add(name)
        return same


@dataclass
class InputCheck:
    """Observes which files the calls of some code open, and compares what earlier answers depend on: files and code.

    Args:
        store: the store of the answers.
        identity: the identity of the code; there may be none to observe.
        entry: the entry of the code among the parts in the provenance of an artifact; None if all are of this code.
    """

    store: Store
    identity: Identity
    entry: str | None = None

    def __post_init__(self) -> None:
        root = getattr(self.store, "root", None)
        folder = None if root is None else local_folder(root)
        facts = self.identity.observed
        self.observer = Observer[Any](facts, [] if folder is None else [folder]) if facts else None
        self.unchanged = Unchanged(facts.folder, files_only=facts.is_versioned) if facts else None
        self._unchanged_in_attempt = Unchanged(facts.folder, files_only=True) if facts else None
        self._changed: set[str] = set()
        self._unrecorded = False
        self.undefined: list[int] = []  # finished units; the lines that say which files they have opened are lost

    def explain(self, manifest: Manifest) -> list[str]:
        """How the code differs from that of stored work, in words."""
        stored = manifest["provenance"].get("parts") or {}
        return explain(stored if self.entry is None else stored.get(self.entry) or {}, self.identity.parts)

    @property
    def changed_files(self) -> list[str]:
        """Which files that the last attempt opened have changed since, in words."""
        files = sorted(name.removeprefix("./") for name in self._changed if not name.startswith("("))
        more = [f"{len(files) - MAX_SHOWN:,} more"] if len(files) > MAX_SHOWN else []
        return [f"changed since opened: {', '.join([*files[:MAX_SHOWN], *more])}"] if files else []

    @property
    def why(self) -> str:
        """Which inputs of the last attempt have changed or cannot be compared, in words; empty if answers are kept."""
        others = [f"a call {name.strip('()')}" for name in sorted(self._changed) if name.startswith("(")]
        unrecorded = ["the stored answers have no record of the files they opened"] if self._unrecorded else []
        return "; ".join([*unrecorded, *self.changed_files, *([f"{' and '.join(others)}; {PIN}"] if others else [])])

    def is_stale(self, kind: str, id: str, table: str) -> bool:
        """Whether sealed work has an answer whose inputs have changed or were not observed."""
        if self.unchanged is None or not self.store.is_sealed(kind, id):
            return False
        if not self.store.manifest(kind, id).get("observed"):
            self._unrecorded = True
            return True
        stale = Inputs.stored(self.store, kind, id, table).stale(self.unchanged)
        self._changed |= self.unchanged.changed
        return bool(stale)

    def void_stale(self, lane: WorkLog, place: int) -> None:
        """Void the finished units whose inputs have changed since; those whose inputs are lost become `undefined`.

        Args:
            lane: the lane of the units, up to date.
            place: the position of the inputs in a record, after all other fields.
        """
        self.undefined = []
        if stale := self.stale(lane, place):
            lane.void({*stale} - {*self.undefined})

    def stale(self, lane: WorkLog, place: int) -> list[int]:
        """The finished slots of a lane whose inputs have changed since; arguments as in `void_stale`."""
        if self._unchanged_in_attempt is None or not lane.n_done:
            return []
        inputs = Inputs.written(lane, place)
        stale = inputs.stale(self._unchanged_in_attempt)
        self._changed |= self._unchanged_in_attempt.changed
        self.undefined = [slot for slot in stale if not inputs.is_defined(slot)]
        return stale

    def may_use(self, kind: str, id: str) -> bool:
        """Whether the answers of earlier work may be reused: it was observed, if this code must be observed."""
        return self.unchanged is None or bool(self.store.manifest(kind, id).get("observed"))

    def holds(self, node: str | None, inputs: Inputs) -> bool:
        """Whether the files of an answer are unchanged."""
        return self.unchanged is None or self.unchanged.holds(node, inputs.nodes)

    def same(self, answers: Iterator[tuple[int, bytes, list[Any]]], inputs: Inputs) -> Iterator[Answer]:
        """The answers whose inputs are unchanged.

        Args:
            answers: slot, key and journal record without its slot, in the order of the slots.
            inputs: the inputs of the same work.
        """
        for slot, key, record in answers:
            node = inputs.of(slot)
            if self.holds(node, inputs):
                if self.observer is not None and node is not None:
                    self.observer.learn(node, inputs.nodes)
                yield key, record, node


class Inputs:
    """The observed inputs of some work: a tree of files, and the node of each slot."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self._rows: dict[str, list[list[int]]] = {}  # node → first slot and number, range by range
        self._ranges: list[tuple[int, int, str]] | None = None  # the same, sorted

    @classmethod
    def stored(cls, store: Store, kind: str, id: str, table: str) -> Inputs:
        """The inputs of sealed work; empty if nothing was opened."""
        found = cls()
        keys: list[str] = []
        if table in store.manifest(kind, id)["tables"]:
            for batch in store.read(kind, id, table):
                for row in batch.to_pylist():
                    parent = None if row["parent"] is None else keys[row["parent"]]
                    keys.append(node_key(parent, row["file"], row["state"]))
                    found.nodes[keys[-1]] = (parent, row["file"], row["state"])
                    found._rows[keys[-1]] = [[each["first"], each["count"]] for each in row["rows"]]
        return found

    @classmethod
    def written(cls, lane: WorkLog, place: int) -> Inputs:
        """The inputs in the lines of a lane.

        Args:
            lane: the lane, up to date.
            place: the position of the inputs in a record, after all other fields.
        """
        found = cls()
        for record in lane.records():
            found.add(record[0], record[place:])
        return found

    def add(self, slot: int, element: list[Any]) -> None:
        """Add the inputs of a record: none, or a list of its node and of the nodes that it defines."""
        if not element:
            return
        key, *defined = element[0]
        for parent, name, state in defined[0] if defined else ():
            self.nodes[node_key(parent, name, state)] = (parent, name, state)
        rows = self._rows.setdefault(key, [])
        if rows and rows[-1][0] + rows[-1][1] == slot:
            rows[-1][1] += 1
        else:
            rows.append([slot, 1])

    def is_defined(self, slot: int) -> bool:
        """Whether it is known what a slot has opened."""
        return all(key in self.nodes for key in path_of(self.of(slot), self.nodes))

    def of(self, slot: int) -> str | None:
        """The node of a slot; None if nothing was opened."""
        if self._ranges is None:
            self._ranges = sorted((first, n, node) for node, rows in self._rows.items() for first, n in rows)
        place = bisect_right(self._ranges, slot, key=lambda each: each[0]) - 1
        first, n, node = self._ranges[place] if place >= 0 else (0, 0, None)
        return node if slot < first + n else None

    def stale(self, unchanged: Unchanged) -> list[int]:
        """The slots whose inputs are no longer the same."""
        stale = [rows for node, rows in self._rows.items() if not unchanged.holds(node, self.nodes)]
        return sorted(slot for rows in stale for first, n in rows for slot in range(first, first + n))

    def batch(self) -> pa.RecordBatch | None:
        """The table of these inputs, parents first; None if there are none."""
        if not self._rows:
            return None
        order: dict[str, int] = {}
        rows: list[dict[str, Any]] = []
        for key in self._rows:
            for node in path_of(key, self.nodes, order):
                parent, file, state = self.nodes.get(node, UNDEFINED)
                order[node] = len(rows)
                ranges = [{"first": first, "count": n} for first, n in self._rows.get(node, ())]
                at_parent = None if parent is None else order[parent]
                rows.append({"parent": at_parent, "file": file, "state": state, "rows": ranges})
        return pa.RecordBatch.from_pylist(rows, INPUTS)
