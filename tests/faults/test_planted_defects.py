"""Schedules find defects that are planted in what they try: each promise of the leases and the journal in turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
from faults.schedules import play
from support.memory_disk import MemoryDisk

from evaluand.engine.keyed_work import KeyedWork
from evaluand.store import garbage
from evaluand.store.journal import WorkLog
from evaluand.store.lease_state import State
from evaluand.store.leases import FileLeases

MOST_SEEDS = 600


def forget_fences(self: FileLeases) -> None:
    """Another worker's late lines count."""


def take_from_the_living(self: FileLeases, name: str, worker: object) -> bool:
    """Whoever asks is told that others have ended."""
    return name != self._name


def fence_from_the_start(self: State, name: str, offset: Callable[[str], int]) -> None:
    """What a worker had finished is lost with its leases."""
    take_over(self, name, lambda segment: 0)


def overwrite(self: MemoryDisk, name: str, new: str, folder: int | None) -> None:
    """Two workers can put a state under one number."""
    if new.endswith(".json"):
        self._names(folder).pop(new, None)
    link(self, name, new, folder)


def claim_without_history(self: FileLeases, *given: Any, **more: Any) -> tuple[int, int] | None:
    """Who takes over a shard does not learn that somebody had it."""
    taken = claim(self, *given, **more)
    return taken and (taken[0], 0)


def finish_early(self: KeyedWork[Any], unit: Any, *given: Any) -> None:
    """A shard is done before its line is written."""
    self.lane.leases.finish(self.lane.shards.find(unit.slot))
    keep(self, unit, *given)


def lose_a_line(self: WorkLog, lines: bytes) -> bool:
    """Of lines that are written together, one is lost."""
    return append(self, lines[lines.find(b"\n") + 1 :] if lines.count(b"\n") > 1 else lines)


take_over, link = State.take_over, MemoryDisk.link
claim, keep, append = FileLeases.claim, KeyedWork._keep, WorkLog.append

DEFECTS: list[tuple[Any, str, Callable[..., Any]]] = [
    (FileLeases, "_write_fences", forget_fences),
    (FileLeases, "_is_over", take_from_the_living),
    (FileLeases, "claim", claim_without_history),
    (State, "take_over", fence_from_the_start),
    (MemoryDisk, "link", overwrite),
    (KeyedWork, "_keep", finish_early),
    (WorkLog, "holds", lambda self: True),
    (WorkLog, "append", lose_a_line),
    (garbage, "_is_abandoned", lambda *given, **more: True),
]


@pytest.mark.parametrize(("place", "name", "defect"), DEFECTS, ids=[name for _, name, _ in DEFECTS])
def test_a_planted_defect_is_found(place: Any, name: str, defect: Callable[..., Any]) -> None:
    with patch.object(place, name, defect), pytest.raises(AssertionError):
        play(range(MOST_SEEDS))
