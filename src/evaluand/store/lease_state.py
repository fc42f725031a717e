"""The state of the leases of one log: who has which units, and which are done.

A state file is one line of JSON, `{"crc":"<8 hex digits>","state":{…}}`. The CRC-32 is that of the state's text and
begins with the number of the file, so a file that was cut, changed or renamed is not a state.

The size of a state grows with the workers, the units that they have and the gaps between finished shards, not with the
number of shards.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from zlib import crc32

import orjson

from evaluand.core.system import ProcessIdentity

MAX_STATE_BYTES: Final = 16 << 20
_HEAD, _MIDDLE, _TAIL = b'{"crc":"', b'","state":', b"}\n"
_START: Final = len(_HEAD) + 8 + len(_MIDDLE)
_SEGMENT: Final = re.compile(r"[0-9A-Za-z_-][0-9A-Za-z._-]{0,99}")
_LIMIT: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker and its leases.

    Attributes:
        process: the process that works.
        beat: the boot clock of its last transaction.
        seq: the number of its last transaction.
        units: what it has.
        is_fenced: whether its lines cease to count when another worker takes over.
    """

    process: ProcessIdentity
    beat: float
    seq: int
    units: tuple[int, ...]
    is_fenced: bool


class Written(NamedTuple):
    """What a worker has written into its segment.

    Attributes:
        rows: finished units.
        spent: what their requests have cost, by currency.
        used: whether rows state a usage, so that to repeat them costs, whatever it is.
    """

    rows: int = 0
    spent: Mapping[str, float] = {}
    used: bool = False

    def plus(self, other: Written) -> Written:
        """Both together.

        Example:
            >>> Written(1, {"EUR": 0.5}).plus(Written(2, {"EUR": 0.25}))
            Written(rows=3, spent={'EUR': 0.75}, used=False)
        """
        spent = {name: self.spent.get(name, 0.0) + cost for name, cost in other.spent.items()}
        return Written(self.rows + other.rows, {**self.spent, **spent}, self.used or other.used)


NOTHING: Final = Written()


@dataclass(slots=True)
class State:
    """The leases of a log at one moment.

    Attributes:
        workers: by the name of the segment that each writes.
        done: the finished shards, as sorted ranges [start, stop).
        takers: how often each unit that is not done was taken.
        fences: where segments end that workers wrote from which others took over: [segment, offset].
        written: what each segment has at least, also after its worker has left.
    """

    workers: dict[str, Worker] = field(default_factory=dict)
    done: list[tuple[int, int]] = field(default_factory=list)
    takers: dict[int, int] = field(default_factory=dict)
    fences: list[tuple[str, int]] = field(default_factory=list)
    written: dict[str, Written] = field(default_factory=dict)

    def copy(self) -> State:
        """A state that can be changed without changing this one."""
        return State(dict(self.workers), list(self.done), dict(self.takers), list(self.fences), dict(self.written))

    def holders(self) -> dict[int, str]:
        """Which worker has each unit."""
        return {unit: name for name, worker in self.workers.items() for unit in worker.units}

    def first_free(self, shards: int, is_free: Callable[[int], bool]) -> int | None:
        """The first shard that is neither done nor taken."""
        shard = 0
        for start, stop in [*self.done, (shards, shards)]:
            for candidate in range(shard, min(start, shards)):
                if is_free(candidate):
                    return candidate
            shard = stop
        return None

    def mark_done(self, shard: int) -> None:
        """Adds a shard to those that are done."""
        self.done = _merge([*self.done, (shard, shard + 1)])
        self.takers.pop(shard, None)

    def reopen(self, shards: Iterable[int]) -> None:
        """Removes shards from those that are done; they were taken before."""
        for shard in shards:
            parts = []
            for start, stop in self.done:
                if inside := start <= shard < stop:
                    self.takers[shard] = 1
                parts += [(start, shard), (shard + 1, stop)] if inside else [(start, stop)]
            self.done = [(start, stop) for start, stop in parts if start < stop]

    def take_over(self, name: str, offset: Callable[[str], int]) -> None:
        """Removes a worker; what it had is free, and its segment ends at an offset."""
        worker = self.workers.pop(name)
        if worker.units and worker.is_fenced:
            self.fences.append((name, offset(name)))


def merge_units(units: Iterable[int]) -> list[tuple[int, int]]:
    """Units as sorted ranges [start, stop).

    Example:
        >>> merge_units([0, 1, 4])
        [(0, 2), (4, 5)]
    """
    return _merge([(unit, unit + 1) for unit in units])


def _merge(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(stop, merged[-1][1])
        else:
            merged.append((start, stop))
    return merged


def pack_state(number: int, state: State) -> bytes:
    """The content of a state file.

    Example:
        >>> print(pack_state(3, State(done=[(0, 2)])).decode().strip())
        {"crc":"89087544","state":{"workers":{},"done":[[0,2]],"takers":[],"fences":[],"written":{}}}
    """
    parts = {
        "workers": {name: _pack_worker(worker) for name, worker in state.workers.items()},
        "done": state.done,
        "takers": list(state.takers.items()),
        "fences": state.fences,
        "written": {name: [*written] for name, written in state.written.items()},
    }
    body = orjson.dumps(parts)
    return b"%b%08x%b%b%b" % (_HEAD, _checksum(number, body), _MIDDLE, body, _TAIL)


def unpack_state(number: int, data: bytes) -> State | None:
    """The state in a file; None if it is damaged.

    Example:
        >>> data = pack_state(3, State(done=[(0, 2)]))
        >>> unpack_state(3, data), unpack_state(4, data), unpack_state(3, data[:-9])
        (State(workers={}, done=[(0, 2)], takers={}, fences=[], written={}), None, None)
    """
    body = data[_START : -len(_TAIL)]
    if data != b"%b%08x%b%b%b" % (_HEAD, _checksum(number, body), _MIDDLE, body, _TAIL):
        return None
    try:
        return _read_state(orjson.loads(body))
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _checksum(number: int, body: bytes) -> int:
    return crc32(body, number & 0xFFFFFFFF)


def _pack_worker(worker: Worker) -> list[Any]:
    p = worker.process
    identity = [p.boot, p.numbers, p.pid, p.started, p.host]
    return [identity, worker.beat, worker.seq, worker.units, worker.is_fenced]


def _read_state(parts: Any) -> State:
    workers, done, takers, fences = (parts[key] for key in ("workers", "done", "takers", "fences"))
    if type(workers) is not dict:
        raise TypeError(workers)
    ranges = [(_read_count(start), _read_count(stop)) for start, stop in done]
    if any(start >= stop for start, stop in ranges) or _merge(ranges) != ranges:
        raise ValueError(ranges)
    state = State(
        {_read_segment(name): _read_worker(*worker) for name, worker in workers.items()},
        ranges,
        {_read_count(unit): _read_count(count) for unit, count in takers},
        [(_read_segment(name), _read_count(offset)) for name, offset in fences],
        {_read_segment(name): _read_written(*written) for name, written in parts.get("written", {}).items()},
    )
    if len(state.holders()) != sum(len(worker.units) for worker in state.workers.values()):
        raise ValueError("a unit with two holders")
    return state


def _read_worker(process: Any, beat: Any, seq: Any, units: Any, is_fenced: Any) -> Worker:
    boot, numbers, pid, started, host = process
    if not all(type(text) is str for text in (boot, numbers, host)) or type(beat) not in (int, float):
        raise TypeError(process)
    if not 0 < _read_count(pid) < 1 << 31 or type(is_fenced) is not bool:
        raise ValueError(process)
    identity = ProcessIdentity(boot, numbers, pid, _read_count(started), host)
    return Worker(identity, beat, _read_count(seq), tuple(_read_count(unit) for unit in units), is_fenced)


def _read_written(rows: Any, spent: Any, used: Any) -> Written:
    if not all(type(cost) is float for cost in spent.values()) or type(used) is not bool:
        raise TypeError(spent)
    return Written(_read_count(rows), spent, used)


def _read_count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < _LIMIT:
        raise ValueError(value)
    return value


def _read_segment(name: Any) -> str:
    if type(name) is not str or not _SEGMENT.fullmatch(name):
        raise ValueError(name)
    return name
