"""Records that are missing from the journal of a recording, although something else in it shows them.

A writer claims a block of slots and uses them in order, and feedbacks judge only what was written. So a record is
missing if it has no line, and

- a later slot of its block has a line, was judged, or was leased to be judged,
- or it was judged or leased itself,
- or its writer has finished the block, and the block has no line at all.

The last records of a block that nobody has judged are counted, as far as the leases of their writer say how many there
were.
"""

from collections import defaultdict
from collections.abc import Collection
from typing import NamedTuple

from evaluand.store.journal import MOST_SLOTS, WorkLog
from evaluand.store.shards import SHARD_SLOTS


class Missing(NamedTuple):
    """Records without a line.

    Attributes:
        total: how many there are at least.
        first: the first of their slots.
    """

    total: int = 0
    first: tuple[int, ...] = ()

    def __str__(self) -> str:
        more = f" and {self.total - len(self.first):,} more" if self.total > len(self.first) else ""
        if not self.first:
            return f"{self.total:,} at an end"
        return ", ".join(map(str, self.first)) + more


def find_missing(records: WorkLog, judged: Collection[WorkLog]) -> Missing:
    """The records that are missing, if they are more than the damaged lines, which are reported as such.

    Reads what was judged before it reads the records, since each line of a record is older than its scores.

    Args:
        records: the lane of the records.
        judged: the lanes of the feedbacks.
    """
    leased: defaultdict[int, int] = defaultdict(int)  # block → its last slot that was leased to be judged
    for lane in judged:
        lane.refresh()
        for slot in lane.leases.history().taken:
            if slot < MOST_SLOTS:
                leased[slot // SHARD_SLOTS] = max(leased[slot // SHARD_SLOTS], slot)
    ended = {block for start, stop in records.leases.history().done for block in range(start, min(stop, _MOST_BLOCKS))}
    missing = Missing()
    for _ in range(_LOOKS):
        records.find_lost()
        missing = _look(records, judged, leased, ended)
        if not missing.total:
            break
    missing = missing if missing.total > len(records.damage()) else Missing()
    return missing._replace(total=max(missing.total, sum(each.rows for each in records.missing)))


_MOST_BLOCKS = MOST_SLOTS // SHARD_SLOTS
_LOOKS = 2  # the segments of a living app are not read at one moment


def _look(records: WorkLog, judged: Collection[WorkLog], leased: dict[int, int], ended: set[int]) -> Missing:
    count, first = 0, list[int]()
    blocks = {*range(-(-max(lane.slots for lane in (records, *judged)) // SHARD_SLOTS)), *leased, *ended}
    for block in sorted(blocks):
        start, stop = block * SHARD_SLOTS, (block + 1) * SHARD_SLOTS
        known = [lane.last_done(start, stop) for lane in (records, *judged)]
        last = max((slot for slot in (*known, leased.get(block)) if slot is not None), default=None)
        if last is None:
            last = start if block in ended else start - 1
        found = records.undone(start, last + 1)
        count += len(found)
        first += found[: _SHOWN - len(first)]
    return Missing(count, tuple(first))


_SHOWN = 3
